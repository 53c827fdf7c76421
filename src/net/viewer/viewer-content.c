/* SPDX-License-Identifier: MIT */
/* What a viewer gets of streams: entries of the index, packets, metadata. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/packet.h"
#include "net/viewer/viewer-trace-files.h"
#include "net/viewer/viewer-client-internal.h"
#include "os/file.h"

/* So long a strict viewer waits for traces that have just begun, and may have earlier events. */
#define HOLD_NS 200000000
/* Packets that a strict viewer cannot use, in one request. */
#define LATE_MAX 1000
/* A viewer that has been told of new streams so often does not ask for them: Trace Compass never does. */
#define PASSED_MAX 100

#define BEGIN_AT offsetof(struct ky_packet_prolog, begin_cycles)

/* ---- index ---------------------------------------------------------------------------- */

static bool has_new_metadata(const struct ky_viewer_attachment *attachment,
			     struct ky_viewer_trace *trace)
{
	struct stat st;

	return fstatat(ky_viewer_trace_fd(trace), "metadata", &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_size > attachment->cursors.data[trace->metadata].next;
}

/* The packet of @entry goes to the viewer next. */
static void viewer_content_go_to(struct ky_viewer_client *client, struct ky_viewer_cursor *cursor,
				 const struct ky_index_record *entry,
				 struct ky_viewer_index *answer)
{
	uint64_t begin = be64toh(entry->begin_cycles), end = be64toh(entry->end_cycles);

	cursor->packet_at = be64toh(entry->offset_bytes);
	cursor->packet_end = cursor->packet_at + be64toh(entry->packet_bits) / 8;
	ky_viewer_let_go(client);
	cursor->is_changed = client->is_strict && begin < cursor->told_cycles;
	cursor->begin_cycles = cursor->is_changed ? cursor->told_cycles : begin;
	cursor->told_cycles = end > cursor->told_cycles ? end : cursor->told_cycles;
	cursor->next++;
	answer->offset_bytes = entry->offset_bytes;
	answer->packet_bits = entry->packet_bits;
	answer->content_bits = entry->content_bits;
	answer->begin_cycles = htobe64(cursor->begin_cycles);
	answer->end_cycles = entry->end_cycles;
	answer->discarded = entry->discarded;
	answer->stream_class_id = entry->stream_class_id;
	answer->status = htobe32(KY_VIEWER_INDEX_OK);
}

/*
 * The next packet that the viewer may have. False: none up to *bound, which is lowered to the begin of a packet that
 * must wait. A stream whose files are gone has none; it ends with its trace.
 */
static bool viewer_content_next_packet(struct ky_viewer_client *client,
				       const struct ky_viewer_track *track,
				       struct ky_viewer_cursor *cursor, uint64_t *bound,
				       struct ky_index_record *entry)
{
	for (int i = 0; i < LATE_MAX; i++) {
		uint64_t end;

		if (!ky_viewer_track_entry(track, cursor->next, entry))
			return false;
		if (!client->is_strict)
			return true;
		end = be64toh(entry->end_cycles);
		if (end > *bound) {
			uint64_t begin = be64toh(entry->begin_cycles);

			*bound = begin < *bound ? begin : *bound;
			return false;
		}
		if (end >= cursor->told_cycles &&
		    be64toh(entry->begin_cycles) >= cursor->floor_cycles)
			return true;
		/* To a viewer in order, it would be the end of everything. */
		if (!cursor->was_late)
			ky_log_warning(
				client->hub->log,
				"%s/%s: packets came too late for a viewer, from packet %" PRIu64
				" on; the recording has them",
				track->trace->path, track->name, cursor->next);
		cursor->was_late = true;
		cursor->next++;
	}
	return false;
}

static void put_index(struct ky_viewer_client *client, struct ky_viewer_index *answer,
		      uint32_t flags)
{
	answer->flags = htobe32(flags);
	ky_viewer_reply_put(&client->reply, answer, sizeof(*answer));
}

/* Nothing now. @bound: no event comes before it; UINT64_MAX: none at all. */
static void say_nothing_now(const struct ky_viewer_track *track, uint64_t number,
			    struct ky_viewer_cursor *cursor, uint64_t bound,
			    struct ky_viewer_index *answer)
{
	if (bound == UINT64_MAX) {
		cursor->is_over = true;
		answer->status = htobe32(KY_VIEWER_INDEX_HUP);
		return;
	}
	/* babeltrace2 warns of streams that are silent up to the same time. */
	bound -= number < bound ? number : 0;
	if (bound > cursor->told_cycles)
		cursor->told_cycles = bound;
	answer->status =
		htobe32(cursor->told_cycles ? KY_VIEWER_INDEX_INACTIVE : KY_VIEWER_INDEX_RETRY);
	answer->end_cycles = htobe64(cursor->told_cycles);
	answer->stream_class_id = htobe64(track->class_id);
}

/*
 * babeltrace2 ignores the flags of an answer without a packet, and would learn of new streams only from the next packet of a
 * stream that it knows: never, when those streams are idle. A packet without bytes makes it ask for the streams at once.
 */
static void say_streams_are_new(const struct ky_viewer_track *track, struct ky_viewer_index *answer)
{
	answer->status = htobe32(KY_VIEWER_INDEX_OK);
	answer->stream_class_id = htobe64(track->class_id);
}

static bool has_unread(const struct ky_viewer_attachment *attachment)
{
	for (size_t i = 0; i < attachment->cursors.len; i++) {
		const struct ky_viewer_track *track = &attachment->recording->tracks.data[i];

		if (track->name &&
		    attachment->cursors.data[i].next < ky_viewer_track_entries(track))
			return true;
	}
	return false;
}

/* Whether the viewer is to ask for new streams before anything else. */
static bool has_new_streams(struct ky_viewer_attachment *attachment, uint32_t *flags)
{
	if (attachment->cursors.len >= attachment->recording->tracks.len)
		return false;
	*flags |= KY_VIEWER_NEW_STREAM;
	if (attachment->n_passed >= PASSED_MAX)
		return false;
	attachment->n_passed++;
	return true;
}

int ky_viewer_answer_index(struct ky_viewer_client *client)
{
	struct ky_viewer_attachment *attachment;
	struct ky_viewer_cursor *cursor =
		ky_viewer_find(client, be64toh(*(const ky_be64 *)client->body), &attachment);
	struct ky_viewer_index answer = {.status = htobe32(KY_VIEWER_INDEX_ERROR)};
	const struct ky_viewer_track *track;
	struct ky_index_record entry;
	int64_t settled_ns;
	uint32_t flags = 0;
	uint64_t bound;
	bool tells;

	if (!cursor ||
	    !attachment->recording->tracks.data[cursor - attachment->cursors.data].name) {
		put_index(client, &answer, 0);
		return 0;
	}
	/* Each look may make the list longer, and so move it. */
	ky_viewer_look(client, attachment->recording);
	track = &attachment->recording->tracks.data[cursor - attachment->cursors.data];
	ky_viewer_trace_look(attachment->recording, track->trace, client->now_ns);
	track = &attachment->recording->tracks.data[cursor - attachment->cursors.data];
	settled_ns = ky_viewer_recording_settled_ns(attachment->recording, client->now_ns);
	bound = ky_viewer_trace_horizon(track->trace, settled_ns, client->is_strict ? HOLD_NS : 0);
	tells = has_new_streams(attachment, &flags);
	if (tells && bound == UINT64_MAX)
		bound--;
	if (!cursor->is_over && viewer_content_next_packet(client, track, cursor, &bound, &entry))
		viewer_content_go_to(client, cursor, &entry, &answer);
	else if (cursor->is_over)
		say_nothing_now(track, 0, cursor, UINT64_MAX, &answer);
	else if (tells && client->is_strict)
		say_streams_are_new(track, &answer);
	else if (client->ends_early && has_unread(attachment))
		answer.status = htobe32(KY_VIEWER_INDEX_RETRY);
	else
		say_nothing_now(track, (uint64_t)(cursor - attachment->cursors.data), cursor,
				tells ? 0 : bound, &answer);
	if (has_new_metadata(attachment, track->trace))
		flags |= KY_VIEWER_NEW_METADATA;
	put_index(client, &answer, flags);
	return 0;
}

/* ---- packets -------------------------------------------------------------------------- */

/* Replaces the packet's begin, in the viewer's bytes, by the last time that the viewer has. */
static void change_begin(const struct ky_viewer_cursor *cursor, struct ky_viewer_reply *reply)
{
	struct ky_packet_prolog prolog;
	uint64_t skip = reply->offset_bytes - cursor->packet_at;
	size_t part;

	if (!cursor->is_changed || reply->offset_bytes < cursor->packet_at ||
	    skip >= sizeof(prolog) ||
	    pread(reply->fd, &prolog, sizeof(prolog), (off_t)cursor->packet_at) != sizeof(prolog) ||
	    prolog.magic != KY_CTF_MAGIC || prolog.begin_cycles > cursor->begin_cycles)
		return;
	prolog.begin_cycles = cursor->begin_cycles;
	part = BEGIN_AT + sizeof(prolog.begin_cycles);
	part = part > skip ? part - skip : 0;
	part = part < reply->left_bytes ? part : reply->left_bytes;
	ky_viewer_reply_put(reply, (const uint8_t *)&prolog + skip, part);
	reply->offset_bytes += part;
	reply->left_bytes -= part;
}

void ky_viewer_let_go(struct ky_viewer_client *client)
{
	if (client->held_fd >= 0)
		close(client->held_fd);
	client->held_fd = -1;
}

/* The rest of a packet of which the viewer has a part: also when its file is removed meanwhile. */
static bool continue_packet(struct ky_viewer_client *client, const struct ky_viewer_cursor *cursor,
			    uint64_t stream, uint64_t at, uint64_t bytes)
{
	struct ky_viewer_reply *reply = &client->reply;

	if (client->held_fd < 0 || client->held_stream != stream || at <= cursor->packet_at ||
	    at >= cursor->packet_end || bytes > cursor->packet_end - at)
		return false;
	reply->fd = fcntl(client->held_fd, F_DUPFD_CLOEXEC, 0);
	reply->offset_bytes = at;
	reply->left_bytes = bytes;
	return reply->fd >= 0;
}

static void viewer_content_hold(struct ky_viewer_client *client,
				const struct ky_viewer_cursor *cursor, uint64_t stream, uint64_t at,
				uint64_t bytes)
{
	ky_viewer_let_go(client);
	if (at != cursor->packet_at || at + bytes >= cursor->packet_end)
		return;
	client->held_fd = fcntl(client->reply.fd, F_DUPFD_CLOEXEC, 0);
	client->held_stream = stream;
}

static enum ky_viewer_packet_status viewer_content_open_packet(struct ky_viewer_client *client)
{
	const struct ky_viewer_get_packet *request = (const void *)client->body;
	uint64_t at = be64toh(request->offset_bytes), bytes = be32toh(request->bytes), readable;
	struct ky_viewer_reply *reply = &client->reply;
	struct ky_viewer_attachment *attachment;
	struct ky_viewer_cursor *cursor =
		ky_viewer_find(client, be64toh(request->stream), &attachment);
	const struct ky_viewer_track *track;

	if (!cursor)
		return KY_VIEWER_PACKET_ERROR;
	track = &attachment->recording->tracks.data[cursor - attachment->cursors.data];
	if (!track->name || !bytes)
		return KY_VIEWER_PACKET_ERROR;
	if (continue_packet(client, cursor, be64toh(request->stream), at, bytes))
		return KY_VIEWER_PACKET_OK;
	readable = ky_viewer_track_bytes(track);
	if (at >= readable)
		return KY_VIEWER_PACKET_EOF;
	if (bytes > readable - at)
		return KY_VIEWER_PACKET_ERROR;
	reply->fd = ky_file_open_regular(ky_viewer_trace_fd(track->trace), track->name,
					 O_RDONLY | O_NOFOLLOW);
	if (reply->fd < 0)
		return KY_VIEWER_PACKET_ERROR;
	reply->offset_bytes = at;
	reply->left_bytes = bytes;
	viewer_content_hold(client, cursor, be64toh(request->stream), at, bytes);
	return KY_VIEWER_PACKET_OK;
}

int ky_viewer_answer_packet(struct ky_viewer_client *client)
{
	struct ky_viewer_reply *reply = &client->reply;
	enum ky_viewer_packet_status status = viewer_content_open_packet(client);
	const struct ky_viewer_packet answer = {htobe32((uint32_t)status),
						htobe32((uint32_t)reply->left_bytes), 0};
	const struct ky_viewer_get_packet *request = (const void *)client->body;
	struct ky_viewer_attachment *attachment;

	ky_viewer_reply_put(reply, &answer, sizeof(answer));
	if (status == KY_VIEWER_PACKET_OK)
		change_begin(ky_viewer_find(client, be64toh(request->stream), &attachment), reply);
	return 0;
}

/* ---- metadata ------------------------------------------------------------------------- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

/* The trace's UUID, from the text: uuid = "..." */
static void viewer_content_read_uuid(struct ky_viewer_trace *trace, int fd)
{
	static const char key[] = "uuid = \"";
	char text[4096];
	ssize_t got = pread(fd, text, sizeof(text) - 1, 0);
	const char *at;
	size_t n = 0;

	trace->has_uuid = true;
	text[got > 0 ? got : 0] = '\0';
	at = strstr(text, key);
	if (!at)
		return;
	for (at += sizeof(key) - 1; *at && *at != '"' && n < 2 * sizeof(trace->uuid); at++) {
		int digit = hex_digit(*at);

		if (digit < 0)
			continue;
		trace->uuid[n / 2] = (uint8_t)(trace->uuid[n / 2] << 4 | digit);
		n++;
	}
}

/* Metadata that is in packets ends for the viewer with the last whole one. */
static uint64_t end_of_packets(int fd, uint64_t at, uint64_t end)
{
	struct ky_metadata_packet head;

	while (end - at >= sizeof(head) &&
	       pread(fd, &head, sizeof(head), (off_t)at) == sizeof(head)) {
		uint32_t bits = head.packet_bits;

		if (head.magic == __builtin_bswap32(KY_METADATA_MAGIC))
			bits = __builtin_bswap32(bits);
		else if (head.magic != KY_METADATA_MAGIC)
			break;
		if (bits / 8 < sizeof(head) || bits / 8 > end - at)
			break;
		at += bits / 8;
	}
	return at;
}

/* Text of CTF 1.8 goes as a packet, so that parts of it can be told from whole metadata. */
static void put_text_head(struct ky_viewer_client *client, struct ky_viewer_trace *trace, int fd)
{
	struct ky_viewer_reply *reply = &client->reply;
	struct ky_metadata_packet head = {
		.magic = KY_METADATA_MAGIC,
		.major = 1,
		.minor = 8,
	};

	if (!trace->has_uuid)
		viewer_content_read_uuid(trace, fd);
	/* Its size is a number of 32 bits. */
	if (reply->left_bytes > (UINT32_MAX / 8) - sizeof(head))
		reply->left_bytes = (UINT32_MAX / 8) - sizeof(head);
	head.content_bits = head.packet_bits = (uint32_t)(reply->left_bytes + sizeof(head)) * 8;
	memcpy(head.uuid, trace->uuid, sizeof(head.uuid));
	ky_viewer_reply_put(reply, &head, sizeof(head));
}

static void unify_clock(const struct ky_viewer_client *client,
			struct ky_viewer_attachment *attachment, int fd,
			struct ky_viewer_reply *reply)
{
	char *text = (char *)client->hub->scratch;
	ssize_t got = pread(fd, text, KY_VIEWER_SCRATCH_BYTES, 0);

	if (got > 0)
		ky_viewer_clock_apply(&attachment->clock, text, (size_t)got, reply);
}

/* What is new in the metadata goes into the reply, after @answer. */
static void viewer_content_put_metadata(struct ky_viewer_client *client,
					struct ky_viewer_attachment *attachment,
					struct ky_viewer_trace *trace,
					struct ky_viewer_cursor *cursor, int fd,
					uint64_t size_bytes)
{
	struct ky_viewer_reply *reply = &client->reply;
	struct ky_viewer_metadata answer = {.status = htobe32(KY_VIEWER_METADATA_OK)};
	size_t answer_at = reply->head_bytes;
	uint32_t magic = 0;
	char first = 0;

	(void)!pread(fd, &magic, sizeof(magic), 0);
	(void)!pread(fd, &first, 1, 0);
	reply->head_bytes += sizeof(answer);
	reply->fd = fd;
	reply->offset_bytes = cursor->next;
	reply->left_bytes = size_bytes - cursor->next;
	if (magic == KY_METADATA_MAGIC || magic == __builtin_bswap32(KY_METADATA_MAGIC))
		reply->left_bytes = end_of_packets(fd, cursor->next, size_bytes) - cursor->next;
	else if (first != '\x1e' && first != '{' && first != '[')
		put_text_head(client, trace, fd);
	if (client->is_strict && !cursor->next)
		unify_clock(client, attachment, fd, reply);
	cursor->next += reply->left_bytes;
	answer.bytes = htobe64(reply->left_bytes + reply->head_bytes - answer_at - sizeof(answer));
	if (!answer.bytes)
		answer.status = htobe32(KY_VIEWER_METADATA_NO_NEW);
	memcpy(reply->head + answer_at, &answer, sizeof(answer));
}

int ky_viewer_answer_metadata(struct ky_viewer_client *client)
{
	struct ky_viewer_metadata answer = {.status = htobe32(KY_VIEWER_METADATA_ERROR)};
	struct ky_viewer_attachment *attachment;
	struct ky_viewer_cursor *cursor =
		ky_viewer_find(client, be64toh(*(const ky_be64 *)client->body), &attachment);
	const struct ky_viewer_track *track;
	struct stat st;
	int fd = -1;

	track = cursor ? &attachment->recording->tracks.data[cursor - attachment->cursors.data]
		       : NULL;
	if (track && !track->name) {
		fd = ky_viewer_trace_metadata(track->trace);
		answer.status = htobe32(KY_VIEWER_METADATA_NO_NEW);
	}
	if (fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size > cursor->next) {
		viewer_content_put_metadata(client, attachment, track->trace, cursor, fd,
					    (uint64_t)st.st_size);
		return 0;
	}
	if (fd >= 0)
		close(fd);
	ky_viewer_reply_put(&client->reply, &answer, sizeof(answer));
	return 0;
}
