/* SPDX-License-Identifier: MIT */
#include "net/lttng/lttng-trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/lttng/lttng-stream.h"
#include "net/files/relay-files.h"
#include "os/file.h"
#include "os/now.h"
#include "store/live/live-file.h"

#define INDEX_DIR     "index"
#define METADATA      "metadata"
#define METADATA_ALL  ".metadata.all"
#define METADATA_COPY ".metadata.new"
/* Readers of live sessions see what is new after this time. */
#define ROUND_MS 50
/* The same without live readers. */
#define IDLE_ROUND_MS 1000
/* Metadata that is still coming can end within a word; it is shown when no piece came for this time, or at last: */
#define QUIET_MS     100
#define QUIET_MAX_MS 2000
/* Larger metadata is copied less often. */
#define METADATA_BYTES_PER_MS 20000
#define DONE_BYTES_MAX	      65536
/* Of `.live`, for streams that go on; readers take 65536 in all. */
#define LINES_MAX 57344
/* Each reader would copy and parse more, and the relay copies it whenever it grows. */
#define METADATA_MAX ((uint64_t)256 << 20)
/* Traces that change share this time of a round: the others get theirs in the next one. */
#define ROUND_SHARE_MS 25

/* ---- traces of a relay ---------------------------------------------------------------- */

int ky_lttng_trace_io_error(const struct ky_lttng_trace *trace, const char *name, int errnum,
			    const char *what, struct kymo_error *err)
{
	char path[KY_LTTNG_PATH_BYTES + 256];

	snprintf(path, sizeof(path), "%s/%s/%s", trace->chunk->session->path, trace->path, name);
	return ky_relay_io_error(path, errnum, what, err);
}

/* ---- metadata ------------------------------------------------------------------------- */

static int open_metadata(struct ky_lttng_trace *trace, struct kymo_error *err)
{
	if (trace->metadata_fd < 0)
		trace->metadata_fd =
			ky_file_open(trace->fd, METADATA_ALL,
				     O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	return trace->metadata_fd < 0 ? ky_lttng_trace_io_error(trace, METADATA_ALL, errno,
								"write the metadata", err)
				      : KYMO_OK;
}

static int begin_metadata(struct ky_lttng_trace *trace, uint64_t bytes, struct kymo_error *err)
{
	if (bytes > METADATA_MAX - trace->metadata_bytes)
		return ky_error_set(err, KYMO_E_LIMIT, "the metadata is too large");
	return open_metadata(trace, err);
}

static void lttng_trace_add_metadata(struct ky_lttng_trace *trace, uint64_t bytes)
{
	trace->metadata_bytes += bytes;
	ky_lttng_chunk_count(trace->chunk, (int64_t)bytes);
}

int ky_lttng_trace_metadata(struct ky_lttng_trace *trace, const uint8_t *data, size_t bytes,
			    struct kymo_error *err)
{
	int ret = begin_metadata(trace, bytes, err);

	if (ret < 0)
		return ret;
	ret = ky_relay_write(trace->metadata_fd, data, bytes, trace->metadata_bytes);
	if (ret < 0)
		return ky_lttng_trace_io_error(trace, METADATA_ALL, -ret, "write the metadata",
					       err);
	lttng_trace_add_metadata(trace, bytes);
	return KYMO_OK;
}

int ky_lttng_trace_pad_metadata(struct ky_lttng_trace *trace, uint64_t bytes,
				struct kymo_error *err)
{
	int ret = begin_metadata(trace, bytes, err);

	if (ret < 0)
		return ret;
	if (bytes && ftruncate(trace->metadata_fd, (off_t)(trace->metadata_bytes + bytes)) < 0)
		return ky_lttng_trace_io_error(trace, METADATA_ALL, errno, "write the metadata",
					       err);
	lttng_trace_add_metadata(trace, bytes);
	trace->metadata_ms = ky_os_now_ms();
	ky_lttng_trace_change(trace);
	return KYMO_OK;
}

int ky_lttng_trace_reset_metadata(struct ky_lttng_trace *trace, struct kymo_error *err)
{
	int ret = open_metadata(trace, err);

	if (ret < 0)
		return ret;
	if (ftruncate(trace->metadata_fd, 0) < 0)
		return ky_lttng_trace_io_error(trace, METADATA_ALL, errno, "write the metadata",
					       err);
	ky_lttng_chunk_count(trace->chunk, -(int64_t)trace->metadata_bytes);
	trace->metadata_bytes = trace->shown_bytes = 0;
	return KYMO_OK;
}

static int lttng_trace_copy_metadata(const struct ky_lttng_trace *trace)
{
	int fd = ky_file_open(trace->fd, METADATA_COPY,
			      O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	uint64_t copied = 0;
	char buffer[4096];
	int ret;

	if (fd < 0)
		return -errno;
	ret = ky_copy_range(trace->metadata_fd, 0, fd, trace->metadata_bytes, &copied);
	while (!ret && copied < trace->metadata_bytes) {
		ssize_t got = pread(trace->metadata_fd, buffer, sizeof(buffer), (off_t)copied);

		ret = got > 0 ? ky_relay_write(fd, buffer, (size_t)got, copied) : -EIO;
		copied += got > 0 ? (uint64_t)got : 0;
	}
	close(fd);
	return ret;
}

/* A piece of the metadata may have come, but not the next one, which completes its last declaration. */
static bool may_be_torn(const struct ky_lttng_trace *trace, uint64_t now)
{
	return !trace->chunk->session->is_live && now - trace->metadata_ms < QUIET_MS &&
	       now - trace->published_ms < QUIET_MAX_MS;
}

/* Whether readers have all metadata that has come. */
static bool show_metadata(struct ky_lttng_trace *trace, uint64_t now)
{
	if (trace->metadata_bytes == trace->shown_bytes)
		return true;
	if (may_be_torn(trace, now) ||
	    now - trace->published_ms < trace->metadata_bytes / METADATA_BYTES_PER_MS)
		return false;
	if (lttng_trace_copy_metadata(trace) < 0 ||
	    renameat(trace->fd, METADATA_COPY, trace->fd, METADATA) < 0)
		return false;
	trace->shown_bytes = trace->metadata_bytes;
	return true;
}

/* ---- publishing ----------------------------------------------------------------------- */

/* The time up to which all streams are complete. */
static uint64_t until(const struct ky_lttng_trace *trace)
{
	uint64_t least = UINT64_MAX;

	ky_vec_foreach(&trace->streams, stream)
		if (!(*stream)->is_metadata && (*stream)->until_cycles < least)
			least = (*stream)->until_cycles;
	return least == UINT64_MAX ? trace->until_cycles : least;
}

static void write_live(struct ky_lttng_trace *trace)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint64_t left = LINES_MAX;

	trace->until_cycles = until(trace);
	ky_live_put_head(&text, trace->until_cycles);
	ky_strbuf_add(&text, ky_strbuf_text(&trace->done), trace->done.len);
	ky_vec_foreach(&trace->streams, stream)
		if (!(*stream)->is_metadata)
			left -= ky_lttng_stream_put_live(*stream, left, &text);
	if (!ky_strbuf_failed(&text))
		(void)ky_file_replace(trace->fd, KY_LIVE_FILE_NAME, ky_strbuf_text(&text),
				      text.len);
	ky_strbuf_fini(&text);
}

/* A failure costs readers the news, not the recording its events: those come with the next one. */
static void lttng_trace_publish(struct ky_lttng_trace *trace, uint64_t now)
{
	const struct ky_lttng_session *session = trace->chunk->session;

	ky_vec_foreach(&trace->streams, stream)
		(void)ky_lttng_stream_flush(*stream, NULL);
	if (now - trace->published_ms < IDLE_ROUND_MS && !session->is_live &&
	    !ky_live_has_readers(session->fd))
		return;
	if (!show_metadata(trace, now))
		return;
	write_live(trace);
	trace->published_ms = now;
	trace->is_changed = false;
}

static void lttng_trace_arm(struct ky_lttng_traces *traces)
{
	traces->is_armed = true;
	ky_loop_set_timer(traces->timer, UINT64_C(1000000) * ROUND_MS);
}

static int take_round(void *data, struct kymo_error *err)
{
	struct ky_lttng_traces *traces = data;
	uint64_t now = ky_os_now_ms();
	size_t n = traces->list.len, first = n ? traces->next % n : 0;
	bool again = false, has_time = true;

	(void)err;
	traces->is_armed = false;
	for (size_t i = 0; i < n; i++) {
		struct ky_lttng_trace *trace = traces->list.data[(first + i) % n];

		if (trace->is_changed && has_time) {
			lttng_trace_publish(trace, now);
			has_time = ky_os_now_ms() - now < ROUND_SHARE_MS;
			traces->next = first + i + 1;
		}
		again |= trace->is_changed;
	}
	if (again)
		lttng_trace_arm(traces);
	return KYMO_OK;
}

void ky_lttng_trace_change(struct ky_lttng_trace *trace)
{
	trace->is_changed = true;
	if (!trace->traces->is_armed)
		lttng_trace_arm(trace->traces);
}

int ky_lttng_traces_init(struct ky_lttng_traces *traces, struct ky_loop *loop,
			 struct kymo_error *err)
{
	*traces = (struct ky_lttng_traces){.timer = NULL};
	return ky_loop_add_timer(loop, take_round, traces, &traces->timer, err);
}

void ky_lttng_traces_fini(struct ky_lttng_traces *traces)
{
	ky_loop_remove(traces->timer);
	ky_vec_fini(&traces->list);
}

/* ---- begin, end ----------------------------------------------------------------------- */

static void lttng_trace_free(struct ky_lttng_trace *trace)
{
	ky_relay_close_fd(&trace->metadata_fd);
	ky_relay_close_fd(&trace->index_fd);
	ky_relay_close_fd(&trace->fd);
	ky_strbuf_fini(&trace->done);
	ky_vec_fini(&trace->streams);
	ky_lttng_chunk_put(trace->chunk);
	free(trace->path);
	free(trace);
}

static int lttng_trace_open_trace(struct ky_lttng_trace *trace, struct kymo_error *err)
{
	struct ky_lttng_chunk *chunk = trace->chunk;
	uint64_t made = 0;
	int ret = ky_lttng_chunk_add_path(chunk, trace->path, err);

	if (!ret)
		ret = ky_relay_make_parents(chunk->fd, trace->path, &made, err);
	if (ret < 0)
		return ret;
	trace->fd = ky_relay_open_directory(chunk->fd, trace->path, &made);
	if (trace->fd >= 0)
		trace->index_fd = ky_relay_open_directory(trace->fd, INDEX_DIR, &made);
	ky_lttng_chunk_count(chunk, (int64_t)made);
	if (trace->fd < 0 || trace->index_fd < 0)
		return ky_lttng_trace_io_error(trace, "", errno, "create the trace's directory",
					       err);
	ky_live_begin(trace->index_fd);
	write_live(trace);
	return KYMO_OK;
}

static int lttng_trace_new(struct ky_lttng_traces *traces, struct ky_lttng_chunk *chunk,
			   const char *path, struct ky_lttng_trace **out, struct kymo_error *err)
{
	struct ky_lttng_trace *trace = calloc(1, sizeof(*trace));
	int ret;

	if (!trace)
		return ky_error_nomem(err);
	*trace = (struct ky_lttng_trace){.traces = traces,
					 .chunk = ky_lttng_chunk_ref(chunk),
					 .path = strdup(path),
					 .fd = -1,
					 .index_fd = -1,
					 .metadata_fd = -1};
	ky_strbuf_init(&trace->done);
	ret = trace->path ? lttng_trace_open_trace(trace, err) : ky_error_nomem(err);
	if (!ret && ky_vec_push(&traces->list, trace) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0) {
		lttng_trace_free(trace);
		return ret;
	}
	*out = trace;
	return KYMO_OK;
}

/* Readers find the complete trace. */
static void lttng_trace_complete(struct ky_lttng_trace *trace)
{
	struct ky_lttng_traces *traces = trace->traces;
	size_t i = 0;

	while (traces->list.data[i] != trace)
		i++;
	traces->list.data[i] = traces->list.data[--traces->list.len];
	if (trace->metadata_fd >= 0)
		(void)renameat(trace->fd, METADATA_ALL, trace->fd, METADATA);
	(void)unlinkat(trace->fd, KY_LIVE_FILE_NAME, 0);
	lttng_trace_free(trace);
}

int ky_lttng_trace_join(struct ky_lttng_traces *traces, struct ky_lttng_chunk *chunk,
			const char *path, struct ky_lttng_stream *stream,
			struct ky_lttng_trace **out, struct kymo_error *err)
{
	struct ky_lttng_trace *trace = NULL;
	int ret = KYMO_OK;

	ky_vec_foreach(&traces->list, it)
		if ((*it)->chunk == chunk && strcmp((*it)->path, path) == 0)
			trace = *it;
	if (!trace)
		ret = lttng_trace_new(traces, chunk, path, &trace, err);
	if (ret < 0)
		return ret;
	if (ky_vec_push(&trace->streams, stream) < 0) {
		if (!trace->streams.len)
			lttng_trace_complete(trace);
		return ky_error_nomem(err);
	}
	*out = trace;
	return KYMO_OK;
}

void ky_lttng_trace_leave(struct ky_lttng_trace *trace, struct ky_lttng_stream *stream,
			  const struct ky_strbuf *lines)
{
	size_t i = 0;

	while (trace->streams.data[i] != stream)
		i++;
	trace->streams.data[i] = trace->streams.data[--trace->streams.len];
	if (trace->done.len + lines->len <= DONE_BYTES_MAX)
		ky_strbuf_add(&trace->done, ky_strbuf_text(lines), lines->len);
	if (trace->streams.len)
		ky_lttng_trace_change(trace);
	else
		lttng_trace_complete(trace);
}
