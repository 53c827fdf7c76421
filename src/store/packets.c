/* SPDX-License-Identifier: MIT */
/* The packet list of a stream: from its index where that is right, else from the file. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "os/file.h"
#include "store/index.h"

/* An index of more than this (3.7 M packets) costs more than scanning the file. */
#define INDEX_MAX_BYTES ((size_t)256 << 20)
/* So many packets, evenly spread, are compared with the file before an index is believed. */
#define INDEX_CHECKS 64

static struct ky_packet_entry entry_of(const struct ky_packet *p)
{
	return (struct ky_packet_entry){
		.offset_bytes = p->file_offset_bytes,
		.packet_bits = p->packet_bits,
		.content_bits = p->content_bits,
		.begin_cycles = p->begin_cycles,
		.end_cycles = p->end_cycles,
		.begin_ns = p->begin_ns,
		.end_ns = p->end_ns,
		.discarded = p->discarded,
		.sequence = p->sequence,
		.has_times = p->has_begin && p->has_end,
		.has_discarded = p->has_discarded,
		.has_sequence = p->has_sequence,
	};
}

/* ---- index ------------------------------------------------------------------------------- */

/* "DIR/index/NAME.idx" of "DIR/NAME"; malloc()ed. */
static char *index_path(const struct ky_stream *stream)
{
	char *path;

	if (asprintf(&path, "%s/index/%s.idx", stream->trace->path, stream->name) < 0)
		return NULL;
	return path;
}

static int check_packet(const struct ky_stream *stream, struct ky_decoder *decoder,
			const struct ky_packet_entry *entry, struct kymo_error *err)
{
	const struct ky_packet *p;
	int ret = ky_decoder_packet(decoder, stream->file.data + entry->offset_bytes,
				    stream->file.size_bytes - entry->offset_bytes,
				    entry->offset_bytes, &p, err);

	if (ret < 0)
		return ret;
	if (p->packet_bits == entry->packet_bits && p->content_bits == entry->content_bits &&
	    (!p->has_begin || p->begin_cycles == entry->begin_cycles) &&
	    (!p->has_end || p->end_cycles == entry->end_cycles))
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_FORMAT, "the packet at byte %llu says otherwise",
			    (unsigned long long)entry->offset_bytes);
}

static int check_sample(const struct ky_stream *stream, const struct ky_packet_list *packets,
			struct kymo_error *err)
{
	size_t n = packets->len < INDEX_CHECKS ? packets->len : INDEX_CHECKS;
	struct ky_decoder *decoder;
	int ret = KYMO_OK;

	if (!n)
		return KYMO_OK;
	decoder = ky_decoder_new(stream->trace->cls);
	if (!decoder)
		return ky_error_nomem(err);
	for (size_t i = 0; i < n && ret == KYMO_OK; i++) {
		size_t at = n == 1 ? 0 : i * (packets->len - 1) / (n - 1);

		ret = check_packet(stream, decoder, &packets->data[at], err);
	}
	ky_decoder_free(decoder);
	return ret;
}

/* 1: @packets is the index; 0: there is none, or none to be believed. @err is not NULL. */
static int from_index(const struct ky_stream *stream, struct ky_packet_list *packets,
		      struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	char *path = index_path(stream);
	int ret;

	if (!path)
		return ky_error_nomem(err);
	ret = ky_read_file(AT_FDCWD, path, INDEX_MAX_BYTES, &bytes);
	if (ret < 0) {
		ret = ret == -ENOMEM ? ky_error_nomem(err) : 0;
		goto out;
	}
	ret = ky_index_read((const uint8_t *)ky_strbuf_text(&bytes), bytes.len, stream, packets,
			    err);
	if (ret == KYMO_OK)
		ret = check_sample(stream, packets, err);
	if (ret == KYMO_OK) {
		ret = 1;
	} else if (ret != KYMO_E_MEMORY) {
		ky_log_warning(stream->trace->log, "%s: wrong index, scanning the file: %s", path,
			       err->message);
		ky_error_clear(err);
		ret = 0;
	}
out:
	ky_strbuf_fini(&bytes);
	free(path);
	return ret;
}

/* ---- scan -------------------------------------------------------------------------------- */

int ky_packet_check_cut(const struct ky_stream *stream, const struct ky_packet *packet,
			struct kymo_error *err)
{
	uint64_t avail_bytes = stream->file.size_bytes - packet->file_offset_bytes;

	if (packet->packet_bits / 8 <= avail_bytes)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_FORMAT, "packet is truncated: %llu bytes, %llu in the file",
		     (unsigned long long)(packet->packet_bits / 8),
		     (unsigned long long)avail_bytes);
	ky_error_path(err, stream->file.path);
	ky_error_offset(err, stream->file.size_bytes);
	return KYMO_E_FORMAT;
}

static bool all_zero(const uint8_t *data, uint64_t size_bytes)
{
	return !size_bytes || (!data[0] && !memcmp(data, data + 1, size_bytes - 1));
}

void ky_packet_error(const struct ky_stream *stream, uint64_t offset_bytes, struct kymo_error *err)
{
	uint64_t rest = stream->file.size_bytes - offset_bytes;

	if (all_zero(stream->file.data + offset_bytes, rest)) {
		ky_error_set(err, KYMO_E_FORMAT, "the file ends in %llu zero bytes, not in packets",
			     (unsigned long long)rest);
		ky_error_offset(err, offset_bytes);
		ky_error_hint(err, "the recorder was cut off before it wrote them; "
				   "what lies before is complete");
	}
	ky_error_path(err, stream->file.path);
}

static int scan(const struct ky_stream *stream, struct ky_packet_list *packets,
		struct kymo_error *err)
{
	const struct ky_stream_file *file = &stream->file;
	struct ky_decoder *decoder = ky_decoder_new(stream->trace->cls);
	const struct ky_packet *p;
	uint64_t at = 0;
	int ret = KYMO_OK;

	if (!decoder)
		return ky_error_nomem(err);
	while (at < file->size_bytes) {
		ret = ky_decoder_packet(decoder, file->data + at, file->size_bytes - at, at, &p,
					err);
		if (ret < 0) {
			ky_packet_error(stream, at, err);
			break;
		}
		if (ky_vec_push(packets, entry_of(p)) < 0) {
			ret = ky_error_nomem(err);
			break;
		}
		ret = ky_packet_check_cut(stream, p, err);
		if (ret < 0)
			break;
		at += p->packet_bits / 8;
	}
	ky_decoder_free(decoder);
	return ret;
}

int ky_stream_packets(const struct ky_stream *stream, struct ky_packet_list *packets,
		      struct kymo_error *err)
{
	struct kymo_error own;
	int ret;

	if (!err)
		err = &own;
	ky_vec_clear(packets);
	ret = from_index(stream, packets, err);
	if (ret)
		return ret < 0 ? ret : KYMO_OK;
	ky_vec_clear(packets);
	return scan(stream, packets, err);
}
