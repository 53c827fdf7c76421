/* SPDX-License-Identifier: MIT */
/* The bytes of packets on their way from a connection's buffer to their files: those that follow each other are one write. */
#include <unistd.h>

#include "net/lttng/lttng-stream.h"

#define PADDING_AT_ONCE 8192

/* The file has no part of a packet. A file that cannot be cut keeps it: readers warn of it. */
static void lttng_write_undo(struct ky_lttng_stream *stream)
{
	stream->is_index_broken = true;
	stream->size_bytes = stream->written_bytes;
	stream->taken_bytes = 0;
	/* Records of these packets find none. */
	while (stream->packets.len && ky_vec_last(&stream->packets)->file == stream->file_number &&
	       ky_vec_last(&stream->packets)->offset_bytes >= stream->written_bytes)
		stream->packets.len--;
	if (stream->index_file == stream->file_number &&
	    stream->shown_bytes > stream->written_bytes)
		stream->shown_bytes = stream->written_bytes;
	if (ftruncate(stream->file.fd, (off_t)stream->written_bytes) < 0)
		return;
}

int ky_lttng_traces_write(struct ky_lttng_traces *traces, struct kymo_error *err)
{
	struct ky_relay_stream_file *failed = NULL;
	size_t n = traces->batch.n;
	int ret = ky_relay_batch_write(&traces->batch, &failed);

	for (size_t i = 0; i < n; i++) {
		struct ky_lttng_stream *stream =
			(struct ky_lttng_stream *)traces->batch.files[i].file;

		if (ret < 0)
			lttng_write_undo(stream);
		stream->written_bytes = stream->size_bytes;
	}
	if (ret < 0) {
		const struct ky_lttng_stream *stream = (const struct ky_lttng_stream *)failed;

		ret = ky_lttng_trace_io_error(stream->trace, stream->name, -ret, "write what came",
					      err);
	}
	return ret;
}

static int lttng_write_put(struct ky_lttng_stream *stream, const uint8_t *data, size_t bytes,
			   uint64_t at_bytes, struct kymo_error *err)
{
	struct ky_relay_batch *batch = &stream->traces->batch;
	int ret = KYMO_OK;

	if (ky_relay_batch_data(batch, &stream->file, data, bytes, at_bytes))
		return KYMO_OK;
	ret = ky_lttng_traces_write(stream->traces, err);
	if (!ret)
		(void)ky_relay_batch_data(batch, &stream->file, data, bytes, at_bytes);
	return ret;
}

/* A short padding is written with the packet: the file need not be made longer afterwards. */
int ky_lttng_stream_write(struct ky_lttng_stream *stream, const uint8_t *data, size_t bytes,
			  size_t padding_bytes, struct kymo_error *err)
{
	static const uint8_t zeros[PADDING_AT_ONCE];
	uint64_t at = stream->size_bytes + stream->taken_bytes;
	int ret;

	if (!stream->trace)
		return ky_lttng_stream_no_chunk(err);
	ret = lttng_write_put(stream, data, bytes, at, err);
	if (!ret && padding_bytes && padding_bytes <= sizeof(zeros)) {
		ret = lttng_write_put(stream, zeros, padding_bytes, at + bytes, err);
		stream->is_padded = !ret;
	}
	if (ret < 0)
		return ret;
	stream->taken_bytes += bytes;
	ky_lttng_chunk_count(stream->trace->chunk, (int64_t)bytes);
	return KYMO_OK;
}
