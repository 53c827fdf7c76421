/* SPDX-License-Identifier: MIT */
#include "net/lttng/lttng-stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "net/files/relay-files.h"
#include "os/file.h"
#include "store/live/live-file.h"

#define METADATA "metadata"
/* Packets and records that wait for the other half, of a stream. */
#define WAITING_MAX 512
/* Of records on their way to the file. */
#define OUT_BYTES 4032
/* Files of a stream that leaves its trace. */
#define LINES_MAX 4096

/* ---- files ---------------------------------------------------------------------------- */

static void lttng_stream_put_name(const struct ky_lttng_stream *stream, uint64_t file,
				  const char *suffix, char name[NAME_MAX + 1])
{
	if (stream->file_bytes_max)
		snprintf(name, NAME_MAX + 1, "%s_%" PRIu64 "%s", stream->name, file, suffix);
	else
		snprintf(name, NAME_MAX + 1, "%s%s", stream->name, suffix);
}

static void lttng_stream_count_bytes(const struct ky_lttng_stream *stream, int64_t bytes)
{
	ky_lttng_chunk_count(stream->trace->chunk, bytes);
}

static void lttng_stream_remove_file(const struct ky_lttng_stream *stream, int dir_fd,
				     const char *name)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && unlinkat(dir_fd, name, 0) == 0)
		lttng_stream_count_bytes(stream, -(int64_t)(st.st_size + KY_RELAY_ENTRY_BYTES));
}

/* A file that is written over goes first: readers keep the old one. */
static void lttng_stream_remove_old(const struct ky_lttng_stream *stream, const char *name)
{
	char index[NAME_MAX + 1];

	lttng_stream_remove_file(stream, stream->trace->fd, name);
	lttng_stream_put_name(stream, stream->file_number, ".idx", index);
	lttng_stream_remove_file(stream, stream->trace->index_fd, index);
}

static int lttng_stream_open_file(struct ky_lttng_stream *stream, bool is_old,
				  struct kymo_error *err)
{
	char name[NAME_MAX + 1];
	int ret = ky_lttng_traces_write(stream->traces, err);

	if (ret < 0)
		return ret;
	lttng_stream_put_name(stream, stream->file_number, "", name);
	if (is_old)
		lttng_stream_remove_old(stream, name);
	ky_relay_close_file(&stream->file.fd, &stream->file.room_bytes);
	stream->file.fd = ky_file_open(stream->trace->fd, name,
				       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (stream->file.fd < 0)
		return ky_lttng_trace_io_error(stream->trace, name, errno, "open the stream's file",
					       err);
	/* With its index. */
	lttng_stream_count_bytes(stream, 2 * (int64_t)KY_RELAY_ENTRY_BYTES);
	stream->size_bytes = stream->written_bytes = 0;
	if (stream->file_number > stream->highest_file)
		stream->highest_file = stream->file_number;
	return KYMO_OK;
}

/* A file that cannot be cut keeps a packet that is not whole: readers warn of it. */
static void lttng_stream_cut(int fd, uint64_t size_bytes)
{
	int ret = ftruncate(fd, (off_t)size_bytes);

	(void)ret;
}

/* Begins the next file of a stream whose files have a limit. */
static int next_file(struct ky_lttng_stream *stream, struct kymo_error *err)
{
	stream->file_number++;
	if (stream->files && stream->file_number >= stream->files)
		stream->file_number = 0;
	return lttng_stream_open_file(stream, stream->file_number <= stream->highest_file, err);
}

int ky_lttng_stream_flush(struct ky_lttng_stream *stream, struct kymo_error *err)
{
	int ret = stream->n_out ? ky_lttng_traces_write(stream->traces, err) : KYMO_OK;

	if (ret < 0)
		return ret;
	if (stream->n_out)
		ret = ky_write_all(stream->file.index_fd, stream->out, stream->n_out);
	if (stream->n_out)
		lttng_stream_count_bytes(stream, (int64_t)stream->n_out);
	stream->n_out = 0;
	if (!ret)
		return KYMO_OK;
	stream->is_index_broken = true;
	return ky_lttng_trace_io_error(stream->trace, stream->name, -ret, "write the index", err);
}

static int lttng_stream_open_index(struct ky_lttng_stream *stream, uint64_t file,
				   struct kymo_error *err)
{
	struct ky_index_head head = ky_index_head();
	char name[NAME_MAX + 1];
	int ret;

	if (stream->file.index_fd >= 0 && stream->index_file == file)
		return KYMO_OK;
	ret = ky_lttng_stream_flush(stream, err);
	if (ret < 0)
		return ret;
	lttng_stream_put_name(stream, file, ".idx", name);
	ky_relay_close_fd(&stream->file.index_fd);
	stream->file.index_fd =
		ky_file_open(stream->trace->index_fd, name,
			     O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (stream->file.index_fd < 0)
		return ky_lttng_trace_io_error(stream->trace, name, errno, "open the index", err);
	if (stream->record_bytes == KY_INDEX_ENTRY_1_0) {
		head.minor = htobe32(0);
		head.record_bytes = htobe32(KY_INDEX_ENTRY_1_0);
	}
	ret = ky_write_all(stream->file.index_fd, &head, sizeof(head));
	lttng_stream_count_bytes(stream, sizeof(head));
	stream->index_file = file;
	stream->shown_bytes = 0;
	return ret < 0 ? ky_lttng_trace_io_error(stream->trace, name, -ret, "write the index", err)
		       : KYMO_OK;
}

/* ---- begin, end ----------------------------------------------------------------------- */

/* The stream's place in @chunk. */
static int lttng_stream_enter(struct ky_lttng_stream *stream, struct ky_lttng_chunk *chunk,
			      struct kymo_error *err)
{
	int ret = ky_lttng_trace_join(stream->traces, chunk, stream->path, stream, &stream->trace,
				      err);

	stream->file_number = stream->index_file = stream->highest_file = 0;
	stream->size_bytes = stream->shown_bytes = 0;
	stream->is_index_broken = false;
	return ret < 0 || stream->is_metadata ? ret : lttng_stream_open_file(stream, false, err);
}

/* Readers find the packets without an index. */
static void lttng_stream_remove_index(const struct ky_lttng_stream *stream)
{
	char name[NAME_MAX + 1];

	for (uint64_t file = 0; file <= stream->highest_file; file++) {
		lttng_stream_put_name(stream, file, ".idx", name);
		lttng_stream_remove_file(stream, stream->trace->index_fd, name);
	}
}

/* Of the packet that is coming in. Its connection goes on with it, and still holds the stream. */
static void drop_taken(struct ky_lttng_stream *stream)
{
	if (stream->file.fd >= 0 && stream->taken_bytes)
		lttng_stream_cut(stream->file.fd, stream->size_bytes);
	stream->taken_bytes = 0;
}

static void lttng_stream_leave(struct ky_lttng_stream *stream)
{
	struct ky_strbuf lines = KY_STRBUF_INIT;

	if (!stream->trace)
		return;
	(void)ky_lttng_traces_write(stream->traces, NULL);
	drop_taken(stream);
	(void)ky_lttng_stream_flush(stream, NULL);
	if (stream->has_index && (stream->packets.len || stream->is_index_broken)) {
		lttng_stream_remove_index(stream);
		stream->index_file = stream->file_number;
		stream->shown_bytes = stream->size_bytes;
	}
	ky_relay_close_file(&stream->file.fd, &stream->file.room_bytes);
	ky_relay_close_fd(&stream->file.index_fd);
	if (!stream->is_metadata)
		(void)ky_lttng_stream_put_live(stream, LINES_MAX, &lines);
	ky_lttng_trace_leave(stream->trace, stream, &lines);
	ky_strbuf_fini(&lines);
	stream->trace = NULL;
}

int ky_lttng_stream_new(struct ky_lttng_traces *traces, struct ky_lttng_chunk *chunk,
			const struct ky_lttng_stream_spec *spec, struct ky_lttng_stream **out,
			struct kymo_error *err)
{
	struct ky_lttng_stream *stream = calloc(1, sizeof(*stream));
	int ret;

	if (!stream)
		return ky_error_nomem(err);
	*stream = (struct ky_lttng_stream){.traces = traces,
					   .path = strdup(spec->path),
					   .name = strdup(spec->channel),
					   .is_metadata = strcmp(spec->channel, METADATA) == 0,
					   .has_index = spec->has_index,
					   .record_bytes = spec->has_sequence ? KY_INDEX_ENTRY_1_1
									      : KY_INDEX_ENTRY_1_0,
					   .file_bytes_max = spec->file_bytes,
					   .files = spec->files,
					   .file = {-1, -1, 0},
					   .data_number = UINT64_MAX,
					   .index_number = UINT64_MAX,
					   .last_number = UINT64_MAX};
	ret = stream->path && stream->name ? lttng_stream_enter(stream, chunk, err)
					   : ky_error_nomem(err);
	if (ret < 0) {
		ky_lttng_stream_free(stream);
		return ret;
	}
	*out = stream;
	return KYMO_OK;
}

void ky_lttng_stream_free(struct ky_lttng_stream *stream)
{
	if (!stream)
		return;
	lttng_stream_leave(stream);
	ky_lttng_chunk_put(stream->to);
	ky_vec_fini(&stream->packets);
	ky_vec_fini(&stream->records);
	free(stream->out);
	free(stream->path);
	free(stream->name);
	free(stream);
}

/* ---- rotation ------------------------------------------------------------------------- */

static int lttng_stream_copy_bytes(int from_fd, uint64_t from, int to_fd, uint64_t to,
				   uint64_t bytes)
{
	uint64_t copied = 0;
	char buffer[16384];
	int ret;

	if (lseek(to_fd, (off_t)to, SEEK_SET) < 0)
		return -errno;
	ret = ky_copy_range(from_fd, from, to_fd, bytes, &copied);
	while (!ret && copied < bytes) {
		size_t part =
			bytes - copied < sizeof(buffer) ? (size_t)(bytes - copied) : sizeof(buffer);
		ssize_t got = pread(from_fd, buffer, part, (off_t)(from + copied));

		ret = got > 0 ? ky_relay_write(to_fd, buffer, (size_t)got, to + copied) : -EIO;
		copied += got > 0 ? (uint64_t)got : 0;
	}
	return ret;
}

/* The files of the old chunk, from which a stream goes. */
struct old_files {
	struct ky_lttng_trace *trace;
	int fd, index_fd;
	uint64_t file, size_bytes, room_bytes;
	struct ky_strbuf lines; /* for `.live` */
};

static bool needs_next_file(const struct ky_lttng_stream *stream, uint64_t bytes)
{
	return stream->file_bytes_max && stream->size_bytes &&
	       (bytes > stream->file_bytes_max ||
		stream->size_bytes > stream->file_bytes_max - bytes);
}

/* The new chunk has them: deleting the old one does not free them. */
static void count_moved(const struct ky_lttng_stream *stream, const struct old_files *old,
			uint64_t bytes)
{
	ky_lttng_chunk_count(old->trace->chunk, -(int64_t)bytes);
	lttng_stream_count_bytes(stream, (int64_t)bytes);
}

static int move_packet(struct ky_lttng_stream *stream, const struct old_files *old,
		       struct ky_lttng_packet *packet, struct kymo_error *err)
{
	char name[NAME_MAX + 1];
	int ret = needs_next_file(stream, packet->bytes) ? next_file(stream, err) : KYMO_OK;
	int fd = old->fd;

	if (ret < 0)
		return ret;
	lttng_stream_put_name(stream, packet->file, "", name);
	if (packet->file != old->file)
		fd = ky_file_open_here(old->trace->fd, name, O_RDONLY);
	ret = fd < 0 ? fd
		     : lttng_stream_copy_bytes(fd, packet->offset_bytes, stream->file.fd,
					       stream->size_bytes, packet->bytes);
	if (fd >= 0 && fd != old->fd)
		close(fd);
	if (ret < 0)
		return ky_lttng_trace_io_error(stream->trace, name, -ret,
					       "move a packet to its chunk", err);
	count_moved(stream, old, packet->bytes);
	packet->file = stream->file_number;
	packet->offset_bytes = stream->size_bytes;
	stream->size_bytes += packet->bytes;
	return KYMO_OK;
}

/* Moves what came after the last packet of the old chunk. */
static int move_tail(struct ky_lttng_stream *stream, const struct old_files *old,
		     struct kymo_error *err)
{
	struct ky_lttng_packet first = {.file = old->file, .offset_bytes = old->size_bytes};
	char name[NAME_MAX + 1];
	int ret = KYMO_OK;

	if (stream->packets.len)
		first = stream->packets.data[0];
	ky_vec_foreach(&stream->packets, packet)
		if (!ret)
			ret = move_packet(stream, old, packet, err);
	if (ret < 0)
		return ret;
	ret = lttng_stream_copy_bytes(old->fd, old->size_bytes, stream->file.fd, stream->size_bytes,
				      stream->taken_bytes);
	lttng_stream_put_name(stream, old->file, "", name);
	if (ret < 0)
		return ky_lttng_trace_io_error(stream->trace, name, -ret,
					       "move a packet to its chunk", err);
	count_moved(stream, old, stream->taken_bytes);
	if (first.file == old->file) {
		lttng_stream_cut(old->fd, first.offset_bytes);
		return KYMO_OK;
	}
	(void)unlinkat(old->trace->fd, name, 0);
	lttng_stream_put_name(stream, first.file, "", name);
	ret = ky_file_open_here(old->trace->fd, name, O_RDWR);
	if (ret >= 0) {
		lttng_stream_cut(ret, first.offset_bytes);
		close(ret);
	}
	return KYMO_OK;
}

/* To a chunk in which the stream continues. */
static int change_chunk(struct ky_lttng_stream *stream, struct ky_lttng_chunk *to,
			struct kymo_error *err)
{
	int written = ky_lttng_traces_write(stream->traces, err);
	struct old_files old = {.trace = stream->trace,
				.fd = stream->file.fd,
				.index_fd = stream->file.index_fd,
				.file = stream->file_number,
				.size_bytes = stream->size_bytes,
				.room_bytes = stream->file.room_bytes,
				.lines = KY_STRBUF_INIT};
	int ret = written < 0 ? written : ky_lttng_stream_flush(stream, err);

	if (ret < 0)
		return ret;
	if (!stream->is_metadata)
		(void)ky_lttng_stream_put_live(stream, LINES_MAX, &old.lines);
	stream->trace = NULL;
	stream->file.fd = stream->file.index_fd = -1;
	stream->file.room_bytes = 0;
	ret = lttng_stream_enter(stream, to, err);
	if (!ret && old.fd >= 0 && (stream->packets.len || stream->taken_bytes))
		ret = move_tail(stream, &old, err);
	stream->written_bytes = stream->size_bytes;
	ky_relay_close_file(&old.fd, &old.room_bytes);
	ky_relay_close_fd(&old.index_fd);
	if (old.trace)
		ky_lttng_trace_leave(old.trace, stream, &old.lines);
	ky_strbuf_fini(&old.lines);
	return ret;
}

static int lttng_stream_rotate(struct ky_lttng_stream *stream, struct kymo_error *err)
{
	struct ky_lttng_chunk *to = stream->to;
	bool has_tail = stream->packets.len || stream->taken_bytes;
	int ret = KYMO_OK;

	stream->rotates = false;
	stream->to = NULL;
	if (to)
		ret = change_chunk(stream, to, err);
	else
		lttng_stream_leave(stream);
	ky_lttng_chunk_put(to);
	if (!to && has_tail && !stream->is_metadata)
		ret = ky_error_set(err, KYMO_E_FORMAT, "packets come for a stream without a chunk");
	return ret;
}

/* Whether packet @sequence is of the new chunk. */
static bool lttng_stream_is_new(const struct ky_lttng_stream *stream, uint64_t sequence)
{
	return stream->rotates && sequence >= stream->rotate_sequence;
}

int ky_lttng_stream_rotate(struct ky_lttng_stream *stream, struct ky_lttng_chunk *to,
			   uint64_t sequence, struct kymo_error *err)
{
	if (stream->rotates)
		return ky_error_set(err, KYMO_E_FORMAT, "a stream rotates already");
	stream->rotates = true;
	stream->to = to ? ky_lttng_chunk_ref(to) : NULL;
	stream->rotate_sequence = sequence;
	if (stream->is_metadata || !stream->has_index ||
	    lttng_stream_is_new(stream, stream->next_sequence))
		return lttng_stream_rotate(stream, err);
	return KYMO_OK;
}

/* ---- packets and their index ---------------------------------------------------------- */

static int lttng_stream_write_record(struct ky_lttng_stream *stream,
				     const struct ky_lttng_packet *packet,
				     const struct ky_lttng_record *record, struct kymo_error *err)
{
	struct ky_index_record out = record->record;
	int ret = lttng_stream_open_index(stream, packet->file, err);

	if (ret < 0)
		return ret;
	if (!stream->out)
		stream->out = malloc(OUT_BYTES);
	if (!stream->out)
		return ky_error_nomem(err);
	if (stream->n_out + stream->record_bytes > OUT_BYTES)
		ret = ky_lttng_stream_flush(stream, err);
	if (ret < 0)
		return ret;
	out.offset_bytes = htobe64(packet->offset_bytes);
	memcpy(stream->out + stream->n_out, &out, stream->record_bytes);
	stream->n_out += stream->record_bytes;
	stream->shown_bytes = packet->offset_bytes + packet->bytes;
	stream->until_cycles = be64toh(out.end_cycles);
	stream->index_number = record->number;
	stream->next_sequence = be64toh(out.sequence) + 1;
	ky_lttng_trace_change(stream->trace);
	return KYMO_OK;
}

static void drop_first(struct ky_lttng_stream *stream, bool packet, bool record)
{
	if (packet)
		memmove(stream->packets.data, stream->packets.data + 1,
			--stream->packets.len * sizeof(*stream->packets.data));
	if (record)
		memmove(stream->records.data, stream->records.data + 1,
			--stream->records.len * sizeof(*stream->records.data));
}

/* The first packet and the first record that wait. */
static int match_first(struct ky_lttng_stream *stream, struct kymo_error *err)
{
	const struct ky_lttng_record record = stream->records.data[0];
	uint64_t number = stream->packets.data[0].number;
	int ret = KYMO_OK;

	if (number != record.number) {
		/* One of both has been lost. */
		stream->is_index_broken = true;
		drop_first(stream, number<record.number, number> record.number);
		return KYMO_OK;
	}
	if (be64toh(record.record.packet_bits) != stream->packets.data[0].bytes * 8)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the index of a packet has another size than the packet");
	if (lttng_stream_is_new(stream, be64toh(record.record.sequence)))
		ret = lttng_stream_rotate(stream, err);
	if (!ret && !stream->trace)
		ret = ky_error_set(err, KYMO_E_FORMAT,
				   "an index comes for a stream without a chunk");
	if (!ret)
		ret = lttng_stream_write_record(stream, &stream->packets.data[0], &record, err);
	if (ret < 0)
		return ret;
	drop_first(stream, true, true);
	return lttng_stream_is_new(stream, stream->next_sequence) ? lttng_stream_rotate(stream, err)
								  : KYMO_OK;
}

static int match(struct ky_lttng_stream *stream, struct kymo_error *err)
{
	int ret = KYMO_OK;

	while (!ret && stream->packets.len && stream->records.len)
		ret = match_first(stream, err);
	return ret;
}

int ky_lttng_stream_no_chunk(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_FORMAT, "a packet comes for a stream without a chunk");
}

int ky_lttng_stream_begin(struct ky_lttng_stream *stream, const struct ky_lttng_data_head *head,
			  struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (stream->is_metadata)
		return ky_error_set(err, KYMO_E_FORMAT, "a packet comes for metadata");
	if (stream->packets.len >= WAITING_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "too many packets come without an index");
	/* The index may be here already, and say that the packet is of the new chunk. */
	if (!stream->packets.len && stream->records.len &&
	    stream->records.data[0].number == head->number &&
	    lttng_stream_is_new(stream, be64toh(stream->records.data[0].record.sequence)))
		ret = lttng_stream_rotate(stream, err);
	if (!ret && !stream->trace)
		return ky_lttng_stream_no_chunk(err);
	if (!ret && needs_next_file(stream, head->bytes))
		ret = next_file(stream, err);
	stream->taken_bytes = 0;
	stream->is_padded = false;
	stream->is_busy = !ret;
	return ret;
}

void ky_lttng_stream_cancel(struct ky_lttng_stream *stream)
{
	drop_taken(stream);
	stream->is_busy = false;
}

int ky_lttng_stream_end(struct ky_lttng_stream *stream, const struct ky_lttng_data_head *head,
			struct kymo_error *err)
{
	uint64_t bytes = (uint64_t)head->bytes + head->padding_bytes;
	struct ky_lttng_packet packet = {head->number, stream->file_number, stream->size_bytes,
					 bytes};

	if (!stream->trace)
		return ky_lttng_stream_no_chunk(err);
	if (head->padding_bytes && !stream->is_padded &&
	    ftruncate(stream->file.fd, (off_t)(packet.offset_bytes + bytes)) < 0)
		return ky_lttng_trace_io_error(stream->trace, stream->name, errno,
					       "write what came", err);
	lttng_stream_count_bytes(stream, head->padding_bytes);
	stream->taken_bytes = 0;
	stream->is_busy = false;
	stream->size_bytes += bytes;
	stream->data_number = head->number;
	if (!stream->has_index) {
		stream->index_file = stream->file_number;
		stream->shown_bytes = stream->size_bytes;
		ky_lttng_trace_change(stream->trace);
		return KYMO_OK;
	}
	if (ky_vec_push(&stream->packets, packet) < 0)
		return ky_error_nomem(err);
	return match(stream, err);
}

int ky_lttng_stream_index(struct ky_lttng_stream *stream, const struct ky_lttng_index *index,
			  struct kymo_error *err)
{
	const struct ky_lttng_record record = {
		index->number,
		{0, htobe64(index->packet_bits), htobe64(index->content_bits),
		 htobe64(index->begin_cycles), htobe64(index->end_cycles),
		 htobe64(index->discarded), htobe64(index->stream_class_id),
		 htobe64(index->stream_id), htobe64(index->sequence)}};

	if (!index->packet_bits) {
		/* A time up to which there are no further packets. */
		if (!stream->packets.len && !stream->records.len && stream->trace &&
		    index->end_cycles > stream->until_cycles) {
			stream->until_cycles = index->end_cycles;
			ky_lttng_trace_change(stream->trace);
		}
		return KYMO_OK;
	}
	if (!stream->has_index || stream->is_metadata)
		return KYMO_OK;
	if (stream->records.len >= WAITING_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "too many indexes come without a packet");
	if (ky_vec_push(&stream->records, record) < 0)
		return ky_error_nomem(err);
	return match(stream, err);
}

/* ---- questions ------------------------------------------------------------------------ */

static bool lttng_stream_is_before(uint64_t number, uint64_t than)
{
	return (int64_t)(number - than) < 0;
}

bool ky_lttng_stream_is_pending(const struct ky_lttng_stream *stream, uint64_t number)
{
	return lttng_stream_is_before(stream->data_number, number) ||
	       (stream->has_index && lttng_stream_is_before(stream->index_number, number));
}

uint64_t ky_lttng_stream_put_live(const struct ky_lttng_stream *stream, uint64_t lines_max,
				  struct ky_strbuf *text)
{
	uint64_t files = stream->highest_file + 1, n = files < lines_max ? files : lines_max;
	char name[NAME_MAX + 1];
	struct stat st;

	for (uint64_t file = 0; file < n; file++) {
		lttng_stream_put_name(stream, file, "", name);
		if (file == stream->index_file)
			ky_live_put_stream(text, name, stream->shown_bytes);
		else if ((file < stream->index_file || stream->index_file > stream->file_number) &&
			 file != stream->file_number &&
			 fstatat(stream->trace->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			ky_live_put_stream(text, name, (uint64_t)st.st_size);
		else
			ky_live_put_stream(text, name, 0);
	}
	return n;
}
