/* SPDX-License-Identifier: MIT */
/* The requests of a live client: sessions, streams, packets, metadata. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/protocol/frame.h"
#include "net/reader/live-client-internal.h"

#define SESSIONS_MAX   16384
#define CHANNELS_MAX   65536
#define PACKET_MAX     ((uint64_t)KY_NET_PACKET_MAX)
#define METADATA_MAX   ((uint64_t)256 << 20)
#define TEXT_BYTES_MAX 255u

/* ---- sessions ------------------------------------------------------------------------ */

void ky_live_sessions_fini(struct ky_live_sessions *sessions)
{
	ky_vec_foreach(sessions, session) {
		free(session->host);
		free(session->name);
	}
	ky_vec_fini(sessions);
}

static int receive_session(struct ky_live_client *client, struct ky_live_session *to,
			   struct kymo_error *err)
{
	struct ky_viewer_session session;
	int ret = ky_live_client_receive(client, &session, sizeof(session), err);

	if (ret < 0)
		return ret;
	to->id = be64toh(session.id);
	to->timer_us = be32toh(session.timer_us);
	to->clients = be32toh(session.clients);
	to->streams = be32toh(session.streams);
	to->host = strndup(session.host, sizeof(session.host));
	to->name = strndup(session.name, sizeof(session.name));
	return to->host && to->name ? KYMO_OK : ky_error_nomem(err);
}

static int receive_text(struct ky_live_client *client, uint32_t bytes, char **text,
			struct kymo_error *err)
{
	char buffer[TEXT_BYTES_MAX + 1] = "";
	int ret;

	if (bytes > TEXT_BYTES_MAX)
		return ky_live_client_malformed("a name is too long", err);
	ret = ky_live_client_receive(client, buffer, bytes, err);
	if (ret < 0)
		return ret;
	*text = strdup(buffer);
	return *text ? KYMO_OK : ky_error_nomem(err);
}

static int receive_session_15(struct ky_live_client *client, struct ky_live_session *to,
			      struct kymo_error *err)
{
	struct ky_viewer_session_15 session;
	int ret = ky_live_client_receive(client, &session, sizeof(session), err);

	if (ret < 0)
		return ret;
	to->id = be64toh(session.id);
	to->timer_us = be32toh(session.timer_us);
	to->clients = be32toh(session.clients);
	to->streams = be32toh(session.streams);
	ret = receive_text(client, be32toh(session.host_bytes), &to->host, err);
	return ret < 0 ? ret : receive_text(client, be32toh(session.name_bytes), &to->name, err);
}

int ky_live_client_sessions(struct ky_live_client *client, struct ky_live_sessions *sessions,
			    struct kymo_error *err)
{
	uint32_t count = 0;
	int ret = ky_live_client_ask(client, KY_VIEWER_LIST_SESSIONS, NULL, 0, &count,
				     sizeof(count), err);

	count = be32toh(count);
	if (!ret && count > SESSIONS_MAX)
		ret = ky_live_client_malformed("it has too many sessions", err);
	for (uint32_t i = 0; i < count && !ret; i++) {
		struct ky_live_session session = {.id = 0};

		ret = client->minor >= KY_VIEWER_MINOR_CTF2
			      ? receive_session_15(client, &session, err)
			      : receive_session(client, &session, err);
		if (!ret && ky_vec_push(sessions, session) < 0)
			ret = ky_error_nomem(err);
		if (ret < 0) {
			free(session.host);
			free(session.name);
		}
	}
	return ret;
}

int ky_live_client_begin_session(struct ky_live_client *client, struct kymo_error *err)
{
	uint32_t status;
	int ret = ky_live_client_ask(client, KY_VIEWER_CREATE_SESSION, NULL, 0, &status,
				     sizeof(status), err);

	if (ret < 0)
		return ret;
	if (be32toh(status) != KY_VIEWER_OK)
		return ky_error_set(err, KYMO_E_IO, "the relay does not accept a reader");
	return KYMO_OK;
}

/* ---- streams ------------------------------------------------------------------------- */

static int receive_channels(struct ky_live_client *client, uint32_t count,
			    struct ky_live_channels *channels, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (count > CHANNELS_MAX || channels->len + count > CHANNELS_MAX)
		return ky_live_client_malformed("it has too many streams", err);
	for (uint32_t i = 0; i < count && !ret; i++) {
		struct ky_live_channel channel = {.id = 0};
		struct ky_viewer_stream stream;

		ret = ky_live_client_receive(client, &stream, sizeof(stream), err);
		if (ret < 0)
			break;
		channel.id = be64toh(stream.id);
		channel.trace = be64toh(stream.trace);
		channel.is_metadata = stream.is_metadata != 0;
		memcpy(channel.path, stream.path, sizeof(channel.path) - 1);
		memcpy(channel.name, stream.channel, sizeof(channel.name) - 1);
		if (ky_vec_push(channels, channel) < 0)
			ret = ky_error_nomem(err);
	}
	return ret;
}

static int attach_error(uint32_t status, struct kymo_error *err)
{
	if (status == KY_VIEWER_ATTACH_NOT_LIVE) {
		ky_error_set(err, KYMO_E_UNSUPPORTED, "the session is not live");
		ky_error_hint(err, "create it as a live session with lttng create");
		return KYMO_E_UNSUPPORTED;
	}
	return ky_error_set(err, KYMO_E_IO,
			    status == KY_VIEWER_ATTACH_ALREADY
				    ? "another reader is attached to the session, and the relay "
				      "allows one"
			    : status == KY_VIEWER_ATTACH_UNKNOWN
				    ? "the relay has dropped the session"
				    : "the relay does not let the reader attach to the session");
}

int ky_live_client_attach(struct ky_live_client *client, uint64_t id,
			  struct ky_live_channels *channels, struct kymo_error *err)
{
	const struct ky_viewer_attach wanted = {.session = htobe64(id),
						.seek = htobe32(KY_VIEWER_SEEK_BEGIN)};
	struct ky_viewer_streams answer;
	int ret = ky_live_client_ask(client, KY_VIEWER_ATTACH, &wanted, sizeof(wanted), &answer,
				     sizeof(answer), err);

	if (ret < 0)
		return ret;
	if (be32toh(answer.status) != KY_VIEWER_ATTACH_OK)
		return attach_error(be32toh(answer.status), err);
	return receive_channels(client, be32toh(answer.count), channels, err);
}

int ky_live_client_new_channels(struct ky_live_client *client, uint64_t id,
				struct ky_live_channels *channels, bool *has_ended,
				struct kymo_error *err)
{
	struct ky_viewer_streams answer;
	int ret = ky_live_client_ask_about(client, KY_VIEWER_GET_NEW_STREAMS, id, &answer,
					   sizeof(answer), err);

	*has_ended = false;
	if (ret < 0)
		return ret;
	switch (be32toh(answer.status)) {
	case KY_VIEWER_STREAMS_OK:
		return receive_channels(client, be32toh(answer.count), channels, err);
	case KY_VIEWER_STREAMS_NO_NEW:
		return KYMO_OK;
	case KY_VIEWER_STREAMS_HUP:
		*has_ended = true;
		return KYMO_OK;
	default:
		return ky_error_set(err, KYMO_E_IO, "the relay cannot tell the session's streams");
	}
}

/* ---- packets ------------------------------------------------------------------------- */

int ky_live_client_index(struct ky_live_client *client, uint64_t id, struct ky_live_index *index,
			 struct kymo_error *err)
{
	struct ky_viewer_index answer;
	uint64_t bits;
	int ret = ky_live_client_ask_about(client, KY_VIEWER_GET_NEXT_INDEX, id, &answer,
					   sizeof(answer), err);

	if (ret < 0)
		return ret;
	bits = be64toh(answer.packet_bits);
	*index = (struct ky_live_index){
		.offset_bytes = be64toh(answer.offset_bytes),
		.packet_bytes = bits / 8,
		.end_cycles = be64toh(answer.end_cycles),
		.status = be32toh(answer.status),
		.has_metadata = be32toh(answer.flags) & KY_VIEWER_NEW_METADATA,
		.has_streams = be32toh(answer.flags) & KY_VIEWER_NEW_STREAM,
	};
	/* A relay names a packet without bytes for viewers that read the flags of packets only. */
	if (index->status == KY_VIEWER_INDEX_OK &&
	    ((!bits && !index->has_streams) || bits % 8 || bits / 8 > PACKET_MAX))
		return ky_live_client_malformed("a packet has an impossible size", err);
	if (index->status == KY_VIEWER_INDEX_ERROR)
		return ky_error_set(err, KYMO_E_IO, "the relay cannot read the session's files");
	if (index->status < KY_VIEWER_INDEX_OK || index->status > KY_VIEWER_INDEX_EOF)
		return ky_live_client_malformed("an unknown status of a stream", err);
	return KYMO_OK;
}

static int live_requests_write_piece(const struct ky_live_client *client, int fd, uint64_t at,
				     size_t bytes, struct kymo_error *err)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t wrote = pwrite(fd, client->piece + done, bytes - done, (off_t)(at + done));

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote <= 0) {
			int ret = ky_error_errno(err, wrote < 0 ? errno : EIO,
						 "cannot keep what the relay sends");

			ky_error_hint(err, "set TMPDIR to a directory on another disk");
			return ret;
		}
		done += (size_t)wrote;
	}
	return KYMO_OK;
}

/* Bytes of a packet from @done on: 1; 0: not now; or negative. */
static int get_piece(struct ky_live_client *client, uint64_t id, struct ky_live_index *index,
		     uint64_t done, uint32_t bytes, struct kymo_error *err)
{
	const struct ky_viewer_get_packet wanted = {
		.stream = htobe64(id),
		.offset_bytes = htobe64(index->offset_bytes + done),
		.bytes = htobe32(bytes),
	};
	struct ky_viewer_packet answer;
	uint32_t flags;
	int ret = ky_live_client_ask(client, KY_VIEWER_GET_PACKET, &wanted, sizeof(wanted), &answer,
				     sizeof(answer), err);

	if (ret < 0)
		return ret;
	flags = be32toh(answer.flags);
	if (be32toh(answer.status) == KY_VIEWER_PACKET_OK) {
		if (be32toh(answer.bytes) != bytes)
			return ky_live_client_malformed(
				"a packet has another size than its index says", err);
		ret = ky_live_client_receive(client, client->piece, bytes, err);
		return ret < 0 ? ret : 1;
	}
	index->has_metadata = flags & KY_VIEWER_NEW_METADATA;
	index->has_streams = flags & KY_VIEWER_NEW_STREAM;
	/* A recording that is cleared loses what it has. */
	index->is_gone = be32toh(answer.status) == KY_VIEWER_PACKET_EOF;
	if (index->is_gone)
		return 0;
	/* An error with a flag only means that the reader must ask for something else first. */
	if (be32toh(answer.status) == KY_VIEWER_PACKET_RETRY ||
	    (be32toh(answer.status) == KY_VIEWER_PACKET_ERROR &&
	     (index->has_metadata || index->has_streams)))
		return 0;
	return ky_error_set(err, KYMO_E_IO,
			    "the relay does not have a packet that its index names");
}

int ky_live_client_packet(struct ky_live_client *client, uint64_t id, struct ky_live_index *index,
			  int fd, uint64_t at, struct kymo_error *err)
{
	uint64_t done = 0;

	while (done < index->packet_bytes) {
		uint64_t left = index->packet_bytes - done;
		uint32_t bytes = left < KY_LIVE_PIECE_BYTES ? (uint32_t)left : KY_LIVE_PIECE_BYTES;
		int ret = get_piece(client, id, index, done, bytes, err);

		if (ret > 0 && live_requests_write_piece(client, fd, at + done, bytes, err) < 0)
			return KYMO_E_IO;
		if (ret <= 0)
			return ret;
		done += bytes;
	}
	return 1;
}

/* ---- metadata ------------------------------------------------------------------------ */

static int receive_metadata(struct ky_live_client *client, uint64_t bytes, struct ky_strbuf *text,
			    struct kymo_error *err)
{
	if (bytes > METADATA_MAX || text->len + bytes > METADATA_MAX)
		return ky_live_client_malformed("the metadata is too large", err);
	/* Otherwise a relay could say for ever that there is some. */
	if (!bytes)
		return 0;
	while (bytes) {
		size_t piece = bytes < KY_LIVE_PIECE_BYTES ? (size_t)bytes : KY_LIVE_PIECE_BYTES;
		int ret = ky_live_client_receive(client, client->piece, piece, err);

		if (ret < 0)
			return ret;
		ky_strbuf_add(text, (const char *)client->piece, piece);
		bytes -= piece;
	}
	return ky_strbuf_failed(text) ? ky_error_nomem(err) : 1;
}

int ky_live_client_metadata(struct ky_live_client *client, uint64_t id, struct ky_strbuf *text,
			    struct kymo_error *err)
{
	struct ky_viewer_metadata answer;
	int ret = ky_live_client_ask_about(client, KY_VIEWER_GET_METADATA, id, &answer,
					   sizeof(answer), err);

	if (ret < 0)
		return ret;
	switch (be32toh(answer.status)) {
	case KY_VIEWER_METADATA_OK:
		return receive_metadata(client, be64toh(answer.bytes), text, err);
	case KY_VIEWER_METADATA_NO_NEW:
		return 0;
	default:
		return ky_error_set(err, KYMO_E_IO, "the relay cannot read the session's metadata");
	}
}
