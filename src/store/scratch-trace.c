/* SPDX-License-Identifier: MIT */
#include "store/scratch-trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

struct scratch_sink {
	struct ky_packet_sink base;
	struct ky_scratch_trace *trace;
	char directory[PATH_MAX];
};

static struct scratch_sink *scratch_sink(struct ky_packet_sink *base)
{
	return (struct scratch_sink *)base;
}

void ky_scratch_trace_fini(struct ky_scratch_trace *trace)
{
	ky_vec_foreach(&trace->streams, stream) {
		close(stream->fd);
		free(stream->name);
	}
	ky_vec_fini(&trace->streams);
	ky_strbuf_fini(&trace->metadata);
}

/* The traces may be larger than memory, which /tmp often is. */
static void choose_directory(struct scratch_sink *sink)
{
	const char *choices[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	const char *chosen = choices[0];

	for (size_t i = 1; (!chosen || !*chosen) && i < sizeof(choices) / sizeof(choices[0]); i++)
		chosen = access(choices[i], W_OK | X_OK) == 0 ? choices[i] : NULL;
	snprintf(sink->directory, sizeof(sink->directory), "%s", chosen ? chosen : "/tmp");
}

static int sink_error(const struct scratch_sink *sink, int errnum, const char *what,
		      struct kymo_error *err)
{
	int code = ky_error_errno(err, errnum, "cannot %s", what);

	ky_error_path(err, sink->directory);
	ky_error_hint(
		err,
		errnum == ENOSPC || errnum == EDQUOT || errnum == EFBIG
			? "there is no room for the converted trace; name a directory on another disk by TMPDIR"
			: "name another directory by TMPDIR");
	return code;
}

/* A file without a name. Some file systems cannot do that: there it has one for a moment, and is empty then. */
static int open_unnamed(const char *directory)
{
	char path[PATH_MAX + 16];
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);

	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	snprintf(path, sizeof(path), "%s/kymo-XXXXXX", directory);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

static int scratch_stream(struct ky_packet_sink *base, const char *name, struct kymo_error *err)
{
	struct scratch_sink *sink = scratch_sink(base);
	struct ky_scratch_stream stream = {.name = strdup(name), .fd = -1};

	if (!stream.name)
		return ky_error_nomem(err);
	stream.fd = open_unnamed(sink->directory);
	if (stream.fd < 0) {
		free(stream.name);
		return sink_error(sink, errno, "create a temporary file", err);
	}
	if (ky_vec_push(&sink->trace->streams, stream) < 0) {
		close(stream.fd);
		free(stream.name);
		return ky_error_nomem(err);
	}
	return (int)sink->trace->streams.len - 1;
}

static int scratch_packet(struct ky_packet_sink *base, int number,
			  const struct ky_packet_out *packet, struct kymo_error *err)
{
	struct scratch_sink *sink = scratch_sink(base);
	struct iovec parts[] = {
		{(void *)packet->head, packet->head_bytes},
		{(void *)packet->data, packet->size_bytes - packet->head_bytes},
	};
	struct ky_scratch_stream *stream;
	int ret;

	if (number < 0 || (size_t)number >= sink->trace->streams.len)
		return ky_error_set(err, KYMO_E_INVALID, "there is no stream %d", number);
	stream = &sink->trace->streams.data[number];
	ret = ky_writev_all(stream->fd, parts, 2);
	if (ret < 0) {
		/* Half a packet would be damage for its reader. */
		(void)!ftruncate(stream->fd, (off_t)stream->size_bytes);
		return sink_error(sink, -ret, "write a temporary file", err);
	}
	stream->size_bytes += packet->size_bytes;
	base->bytes_written += packet->size_bytes;
	return KYMO_OK;
}

static int scratch_metadata(struct ky_packet_sink *base, const char *text, size_t len_bytes,
			    struct kymo_error *err)
{
	struct ky_strbuf *metadata = &scratch_sink(base)->trace->metadata;

	ky_strbuf_clear(metadata);
	ky_strbuf_add(metadata, text, len_bytes);
	return ky_strbuf_failed(metadata) ? ky_error_nomem(err) : KYMO_OK;
}

static int scratch_close(struct ky_packet_sink *base, struct kymo_error *err)
{
	(void)err;
	free(base);
	return KYMO_OK;
}

static const struct ky_packet_sink_ops scratch_ops = {
	.stream = scratch_stream,
	.packet = scratch_packet,
	.metadata = scratch_metadata,
	.close = scratch_close,
};

int ky_scratch_sink_open(struct ky_scratch_trace *trace, struct ky_packet_sink **out,
			 struct kymo_error *err)
{
	struct scratch_sink *sink = calloc(1, sizeof(*sink));

	*out = NULL;
	if (!sink)
		return ky_error_nomem(err);
	sink->base.ops = &scratch_ops;
	sink->trace = trace;
	choose_directory(sink);
	*out = &sink->base;
	return KYMO_OK;
}
