/* SPDX-License-Identifier: MIT */
#include "net/viewer/viewer-reply.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/viewer/viewer-trace-files.h"

/* More than this goes from the file to the socket inside the kernel. */
#define COPY_MAX 16384
/* A viewer that takes all that it is sent does not keep the others waiting: so much of an answer goes at a time. */
#define TURN_BYTES (4u << 20)

struct ky_viewer_blob *ky_viewer_blob_new(size_t bytes)
{
	struct ky_viewer_blob *blob = malloc(sizeof(*blob) + bytes);

	if (blob)
		*blob = (struct ky_viewer_blob){.users = 1, .bytes = bytes};
	return blob;
}

void ky_viewer_blob_drop(struct ky_viewer_blob *blob)
{
	if (blob && --blob->users == 0)
		free(blob);
}

void ky_viewer_reply_init(struct ky_viewer_reply *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->fd = -1;
}

void ky_viewer_reply_clear(struct ky_viewer_reply *reply)
{
	if (reply->fd >= 0)
		close(reply->fd);
	ky_viewer_blob_drop(reply->blob);
	ky_viewer_reply_init(reply);
}

void ky_viewer_reply_put(struct ky_viewer_reply *reply, const void *data, size_t bytes)
{
	memcpy(reply->head + reply->head_bytes, data, bytes);
	reply->head_bytes += bytes;
}

/* ---- streams -------------------------------------------------------------------------- */

static bool is_chosen(const struct ky_viewer_reply *reply, size_t i)
{
	return i >= reply->hidden_end || reply->shown[i];
}

uint32_t ky_viewer_reply_streams(const struct ky_viewer_reply *reply)
{
	uint32_t n = 0;

	for (size_t i = reply->next; reply->recording && i < reply->end; i++)
		n += is_chosen(reply, i);
	return n;
}

uint64_t ky_viewer_track_id(const struct ky_viewer_recording *recording, size_t track)
{
	return (uint64_t)recording->serial << 32 | (uint32_t)(track + 1);
}

/* A viewer on this machine opens the files there: Trace Compass asks the relay only how far they go. */
static bool viewer_reply_put_place(struct ky_viewer_trace *trace, struct ky_viewer_stream *to)
{
	char name[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
	ssize_t n;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", ky_viewer_trace_fd(trace));
	n = readlink(name, to->path, sizeof(to->path) - 1);
	to->path[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static void viewer_reply_put_stream(const struct ky_viewer_reply *reply, size_t i,
				    struct ky_viewer_stream *to)
{
	const struct ky_viewer_recording *recording = reply->recording;
	const struct ky_viewer_track *track = &recording->tracks.data[i];

	memset(to, 0, sizeof(*to));
	to->id = htobe64(ky_viewer_track_id(recording, i));
	to->trace = htobe64(ky_viewer_track_id(recording, track->trace->metadata));
	to->is_metadata = htobe32(!track->name);
	if (!reply->has_places || !viewer_reply_put_place(track->trace, to))
		snprintf(to->path, sizeof(to->path), "%s", track->trace->path);
	snprintf(to->channel, sizeof(to->channel), "%s", track->name ? track->name : "metadata");
}

static ssize_t send_stream(struct ky_viewer_reply *reply, struct ky_link *link, uint8_t *scratch)
{
	struct iovec part;
	ssize_t sent;

	while (reply->next < reply->end && !is_chosen(reply, reply->next))
		reply->next++;
	if (reply->next == reply->end) {
		reply->recording = NULL;
		return 1;
	}
	viewer_reply_put_stream(reply, reply->next, (struct ky_viewer_stream *)scratch);
	part.iov_base = scratch + reply->stream_sent;
	part.iov_len = sizeof(struct ky_viewer_stream) - reply->stream_sent;
	sent = ky_link_send(link, &part, 1);
	if (sent <= 0)
		return sent;
	reply->stream_sent += (size_t)sent;
	if (reply->stream_sent == sizeof(struct ky_viewer_stream)) {
		reply->stream_sent = 0;
		reply->next++;
	}
	return sent;
}

/* ---- the other parts ------------------------------------------------------------------ */

/* The bytes of the file that are in @data come from the patch, as far as it reaches. */
static void patch(const struct ky_viewer_reply *reply, uint8_t *data, size_t bytes)
{
	uint64_t begin = reply->patch_at_bytes, end = begin + reply->patch_bytes;
	uint64_t from = begin > reply->offset_bytes ? begin : reply->offset_bytes;
	uint64_t to = end < reply->offset_bytes + bytes ? end : reply->offset_bytes + bytes;

	if (from < to)
		memcpy(data + (from - reply->offset_bytes), reply->patch + (from - begin),
		       (size_t)(to - from));
}

/* The head, and with it what is short. */
static ssize_t send_head(struct ky_viewer_reply *reply, struct ky_link *link, uint8_t *scratch)
{
	struct iovec parts[2] = {
		{reply->head + reply->head_sent, reply->head_bytes - reply->head_sent}};
	ssize_t sent, got = 0;
	int n = 1;

	if (reply->fd >= 0 && reply->left_bytes && reply->left_bytes <= COPY_MAX) {
		got = pread(reply->fd, scratch, reply->left_bytes, (off_t)reply->offset_bytes);
		if (got != (ssize_t)reply->left_bytes)
			return got < 0 ? -errno : -EIO;
		patch(reply, scratch, (size_t)got);
		parts[n++] = (struct iovec){scratch, (size_t)got};
	}
	sent = ky_link_send(link, parts, n);
	if (sent <= 0)
		return sent;
	if ((size_t)sent > parts[0].iov_len) {
		reply->offset_bytes += (size_t)sent - parts[0].iov_len;
		reply->left_bytes -= (size_t)sent - parts[0].iov_len;
		sent = (ssize_t)parts[0].iov_len;
	}
	reply->head_sent += (size_t)sent;
	return 1;
}

static ssize_t send_patched(struct ky_viewer_reply *reply, struct ky_link *link, uint8_t *scratch)
{
	size_t bytes = reply->left_bytes < KY_VIEWER_SCRATCH_BYTES ? (size_t)reply->left_bytes
								   : KY_VIEWER_SCRATCH_BYTES;
	ssize_t got = pread(reply->fd, scratch, bytes, (off_t)reply->offset_bytes);
	const struct iovec part = {scratch, got > 0 ? (size_t)got : 0};

	if (got <= 0)
		return got < 0 ? -errno : 0;
	patch(reply, scratch, (size_t)got);
	return ky_link_send(link, &part, 1);
}

static ssize_t send_file(struct ky_viewer_reply *reply, struct ky_link *link, uint8_t *scratch)
{
	ssize_t sent;

	if (reply->offset_bytes < reply->patch_at_bytes + reply->patch_bytes)
		sent = send_patched(reply, link, scratch);
	else
		sent = ky_link_send_file(link, reply->fd, reply->offset_bytes, reply->left_bytes,
					 scratch, KY_VIEWER_SCRATCH_BYTES);
	if (sent <= 0)
		return sent ? sent : -EIO;
	reply->offset_bytes += (size_t)sent;
	reply->left_bytes -= (size_t)sent;
	return sent;
}

static ssize_t send_blob(struct ky_viewer_reply *reply, struct ky_link *link)
{
	const struct iovec part = {reply->blob->data + reply->blob_sent,
				   reply->blob->bytes - reply->blob_sent};
	ssize_t sent = ky_link_send(link, &part, 1);

	if (sent > 0)
		reply->blob_sent += (size_t)sent;
	return sent;
}

int ky_viewer_reply_send(struct ky_viewer_reply *reply, struct ky_link *link, uint8_t *scratch)
{
	ssize_t sent = 1;
	uint64_t total = 0;

	while (sent > 0) {
		if (total >= TURN_BYTES)
			return 0;
		if (reply->head_sent < reply->head_bytes)
			sent = send_head(reply, link, scratch);
		else if (reply->left_bytes)
			sent = send_file(reply, link, scratch);
		else if (reply->recording)
			sent = send_stream(reply, link, scratch);
		else if (reply->blob && reply->blob_sent < reply->blob->bytes)
			sent = send_blob(reply, link);
		else
			break;
		total += sent > 0 ? (uint64_t)sent : 0;
	}
	if (sent > 0)
		ky_viewer_reply_clear(reply);
	return sent > 0 ? 1 : sent == 0 || sent == -EAGAIN ? 0 : (int)sent;
}
