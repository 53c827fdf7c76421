/* SPDX-License-Identifier: MIT */
/* The packet list of a stream: from its index where that is right, else from the file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/error.h"
#include "os/file.h"
#include "store/read/index.h"
#include "store/live/live-file.h"
#include "store/read/quirks.h"
#include "store/read/walk.h"

/* An index of more than this (3.7 M packets) costs more than scanning the file. */
#define INDEX_MAX_BYTES ((size_t)256 << 20)
/* So many packets, evenly spread, are compared with the file before an index is believed. */
#define INDEX_CHECKS 64
/* To read such a file whole takes no longer than to read the headers of its packets one by one. */
#define SMALL_FILE_BYTES ((uint64_t)512 << 10)

static struct ky_packet_entry store_packets_entry_of(const struct ky_packet *p)
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
static char *index_path(const char *file)
{
	const char *name = strrchr(file, '/') + 1;
	char *path;

	if (asprintf(&path, "%.*sindex/%s.idx", (int)(name - file), file, name) < 0)
		return NULL;
	return path;
}

static int store_packets_check_packet(const struct ky_stream *stream, struct ky_decoder *decoder,
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
	return ky_error_set(err, KYMO_E_FORMAT, "it contradicts the packet at byte %llu",
			    (unsigned long long)entry->offset_bytes);
}

/* How the file is read from now on. It is only about speed. */
static void store_packets_advise(const struct ky_stream *stream, int advice)
{
	uintptr_t from = (uintptr_t)stream->file.data & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
	size_t size_bytes = (uintptr_t)stream->file.data + stream->file.size_bytes - from;

	if (stream->file.size_bytes)
		(void)madvise((void *)from, size_bytes, advice);
}

static int check_sample(const struct ky_stream *stream, struct ky_decoder *decoder,
			const struct ky_packet_list *packets, struct kymo_error *err)
{
	size_t n = packets->len < INDEX_CHECKS ? packets->len : INDEX_CHECKS;
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && ret == KYMO_OK; i++) {
		size_t at = n == 1 ? 0 : i * (packets->len - 1) / (n - 1);

		ret = store_packets_check_packet(stream, decoder, &packets->data[at], err);
	}
	return ret;
}

/*
 * Whether a recorder writes the file of @part, or has moved it away: the index is then of another moment. The
 * trace's path would be wrong: a stream of several chunks has files of several directories.
 */
static bool is_changing(const struct ky_stream_part *part)
{
	const char *name = strrchr(part->path, '/');
	char directory[PATH_MAX];
	struct stat st;

	if (stat(part->path, &st) < 0 || st.st_ino != part->inode || st.st_dev != part->device)
		return true;
	if ((size_t)(name - part->path) >= sizeof(directory))
		return false;
	memcpy(directory, part->path, name - part->path);
	directory[name - part->path] = '\0';
	return ky_live_is_written(directory);
}

/* Read the index at @path of the file of @part, which is all of @file; 1, 0 or negative. The function uses @decoder. */
static int read_index(const char *path, const struct ky_stream_part *part,
		      const struct ky_stream *file, struct ky_decoder *decoder,
		      struct ky_packet_list *packets, struct kymo_error *err)
{
	struct ky_strbuf bytes = KY_STRBUF_INIT;
	int ret = ky_read_regular(AT_FDCWD, path, INDEX_MAX_BYTES, &bytes);

	if (ret < 0) {
		ret = ret == -ENOMEM ? ky_error_nomem(err) : 0;
		goto out;
	}
	ret = ky_index_read((const uint8_t *)ky_strbuf_text(&bytes), bytes.len, file, packets, err);
	if (ret == KYMO_OK)
		ret = check_sample(file, decoder, packets, err);
	if (ret == KYMO_OK) {
		ret = 1;
	} else if (ret != KYMO_E_MEMORY) {
		if (!is_changing(part))
			ky_log_warning(file->trace->log, "%s: wrong index, scanning the file: %s",
				       path, err->message);
		ky_error_clear(err);
		ret = 0;
	}
out:
	ky_strbuf_fini(&bytes);
	return ret;
}

/* An index repeats its tracer's mistakes; the walk does not. */
static bool is_doubtful(unsigned int quirks, const struct ky_packet_entry *entry)
{
	return (quirks & (KY_QUIRK_LATE_EVENTS | KY_QUIRK_EARLY_EVENTS)) ||
	       ((quirks & KY_QUIRK_ZERO_END) && !entry->end_cycles && entry->begin_cycles);
}

/* Add the packets that an index lists, in the stream's own terms. */
static int add_packets(struct ky_walk *walk, const struct ky_stream_part *part,
		       const struct ky_packet_list *from, struct ky_packet_list *packets,
		       struct kymo_error *err)
{
	if (ky_vec_reserve(packets, from->len) < 0)
		return ky_error_nomem(err);
	ky_vec_foreach(from, found) {
		struct ky_packet_entry entry = *found;

		entry.offset_bytes += part->at_bytes;
		if (entry.offset_bytes < part->begin_bytes)
			continue;
		if (is_doubtful(walk->stream->trace->quirks, &entry)) {
			ky_walk_go(walk, entry.offset_bytes);
			if (ky_walk_next(walk, NULL) > 0)
				entry = store_packets_entry_of(walk->packet);
		}
		(void)ky_vec_push(packets, entry);
	}
	return KYMO_OK;
}

/* 1: @packets has what the index says; 0: none exists, or none to be believed. */
static int from_index(struct ky_walk *walk, const struct ky_stream_part *part,
		      struct ky_packet_list *packets, struct kymo_error *err)
{
	struct ky_packet_list found = KY_VEC_INIT;
	struct ky_stream file = *walk->stream;
	char *path = index_path(part->path);
	int ret;

	if (!path)
		return ky_error_nomem(err);
	file.file.path = part->path;
	file.file.data += part->size_bytes ? part->at_bytes : 0;
	file.file.size_bytes = part->size_bytes;
	ret = read_index(path, part, &file, walk->decoder, &found, err);
	if (ret > 0 && add_packets(walk, part, &found, packets, err) < 0)
		ret = KYMO_E_MEMORY;
	ky_vec_fini(&found);
	free(path);
	return ret;
}

/* ---- scan -------------------------------------------------------------------------------- */

/* One step: 1, 0 at the end, or negative. */
static int scan_packet(struct ky_walk *walk, struct ky_packet_list *packets, struct kymo_error *err)
{
	int ret = ky_walk_next(walk, err);

	if (ret <= 0)
		return ret;
	if (ky_vec_push(packets, store_packets_entry_of(walk->packet)) < 0)
		return ky_error_nomem(err);
	ret = ky_walk_leave(walk, err);
	return ret < 0 ? ret : 1;
}

/* The packets of @part, or those before the damage. @err is not NULL. */
static int store_packets_scan(struct ky_walk *walk, const struct ky_stream_part *part,
			      struct ky_packet_list *packets, struct kymo_error *err)
{
	uint64_t end_bytes = part->at_bytes + part->size_bytes, skipped_bytes;
	int ret = KYMO_OK;

	ky_walk_go(walk, part->begin_bytes);
	while (ret >= 0 && walk->next_bytes < end_bytes) {
		ret = scan_packet(walk, packets, err);
		if (ret < 0 && ky_walk_recover(walk, err, &skipped_bytes))
			ret = KYMO_OK;
	}
	return ret < 0 ? ret : KYMO_OK;
}

static int list_part(struct ky_walk *walk, const struct ky_stream_part *part,
		     struct ky_packet_list *packets, struct kymo_error *err)
{
	int ret = from_index(walk, part, packets, err);

	return ret ? ret : store_packets_scan(walk, part, packets, err);
}

int ky_stream_packets(const struct ky_stream *stream, struct ky_packet_list *packets,
		      struct kymo_error *err)
{
	struct kymo_error own;
	struct ky_walk walk;
	int ret;

	if (!err)
		err = &own;
	ky_vec_clear(packets);
	/* Else the kernel reads megabytes around the header of each packet, of a file that it has not in memory. */
	if (stream->file.size_bytes > SMALL_FILE_BYTES)
		store_packets_advise(stream, MADV_RANDOM);
	ret = ky_walk_init(&walk, stream, err);
	for (size_t i = 0; i < stream->parts.len && ret >= 0; i++)
		ret = list_part(&walk, &stream->parts.data[i], packets, err);
	ky_walk_fini(&walk);
	if (stream->file.size_bytes > SMALL_FILE_BYTES)
		store_packets_advise(stream, MADV_NORMAL);
	return ret < 0 ? ret : KYMO_OK;
}
