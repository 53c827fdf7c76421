/* SPDX-License-Identifier: MIT */
#include "net/reader/live-client.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/protocol/answer-reader.h"
#include "net/protocol/frame.h"
#include "net/link/link.h"
#include "os/now.h"

#define CONNECT_MS 10000
/* For an answer, or a part of a packet. */
#define ANSWER_MS 20000

#define SESSIONS_MAX   16384
#define CHANNELS_MAX   65536
#define PACKET_MAX     ((uint64_t)KY_NET_PACKET_MAX)
#define METADATA_MAX   ((uint64_t)256 << 20)
#define PIECE_BYTES    ((uint32_t)512 << 10)
#define TEXT_BYTES_MAX 255u

struct ky_live_client {
	struct ky_link *link;
	int64_t end_ms; /* of the answer at hand */
	uint32_t minor; /* of the version that both sides speak */
	uint8_t *piece; /* PIECE_BYTES */
};

/* ---- bytes ---------------------------------------------------------------------------- */

static int broken(int errnum, struct kymo_error *err)
{
	if (errnum == EINTR)
		return ky_error_set(err, KYMO_E_INTERRUPTED, "interrupted");
	if (errnum == 0 || errnum == ECONNRESET || errnum == EPIPE) {
		ky_error_set(err, KYMO_E_IO, "the relay has closed the connection");
		ky_error_hint(err, "look whether the relay runs, and try again");
	} else {
		ky_error_errno(err, errnum, "the connection to the relay is broken");
	}
	if (err)
		err->code = KYMO_E_IO;
	return KYMO_E_IO;
}

static int malformed(const char *what, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_FORMAT, "the relay's answer is not one of the protocol: %s",
			    what);
}

/* 0 or an errno. */
static int wait_for(struct ky_live_client *client, int fd, short events)
{
	struct pollfd wanted = {fd, events, 0};
	int64_t left = client->end_ms - ky_os_now_ms();

	if (left <= 0)
		return ETIMEDOUT;
	return poll(&wanted, 1, (int)left) < 0 ? errno : 0;
}

static int send_all(struct ky_live_client *client, struct iovec *parts, int n,
		    struct kymo_error *err)
{
	int errnum = 0;

	while (n && !errnum) {
		ssize_t sent = ky_link_send(client->link, parts, n);

		if (sent == -EAGAIN)
			errnum = wait_for(client, ky_link_out_fd(client->link), POLLOUT);
		else if (sent < 0)
			errnum = (int)-sent;
		while (n && sent >= 0 && (size_t)sent >= parts->iov_len) {
			sent -= (ssize_t)parts->iov_len;
			parts++;
			n--;
		}
		if (n && sent > 0) {
			parts->iov_base = (uint8_t *)parts->iov_base + sent;
			parts->iov_len -= (size_t)sent;
		}
	}
	return errnum ? broken(errnum, err) : KYMO_OK;
}

static int receive_all(struct ky_live_client *client, void *to, size_t bytes,
		       struct kymo_error *err)
{
	uint8_t *at = to;

	while (bytes) {
		ssize_t got = ky_link_receive(client->link, at, bytes);
		int errnum = 0;

		if (got == -EAGAIN)
			errnum = wait_for(client, ky_link_in_fd(client->link), POLLIN);
		else if (got <= 0)
			return broken((int)-got, err);
		if (errnum)
			return broken(errnum, err);
		at += got > 0 ? got : 0;
		bytes -= got > 0 ? (size_t)got : 0;
	}
	return KYMO_OK;
}

/* A request; its answer begins with @bytes to @answer. */
static int ask(struct ky_live_client *client, enum ky_viewer_command command, const void *request,
	       size_t request_bytes, void *answer, size_t bytes, struct kymo_error *err)
{
	const struct ky_viewer_head head = {.bytes = htobe64(request_bytes),
					    .command = htobe32(command)};
	struct iovec parts[] = {{(void *)&head, sizeof(head)}, {(void *)request, request_bytes}};
	int ret;

	client->end_ms = ky_os_now_ms() + ANSWER_MS;
	ret = send_all(client, parts, request_bytes ? 2 : 1, err);
	return ret < 0 ? ret : receive_all(client, answer, bytes, err);
}

/* Asks about session or stream @id. */
static int ask_about(struct ky_live_client *client, enum ky_viewer_command command, uint64_t id,
		     void *answer, size_t bytes, struct kymo_error *err)
{
	const uint64_t wanted = htobe64(id);

	return ask(client, command, &wanted, sizeof(wanted), answer, bytes, err);
}

/* ---- the beginning -------------------------------------------------------------------- */

struct greeting {
	bool is_welcome;
	struct kymo_error *err;
};

static int take_answer(void *data, const struct ky_answer *answer)
{
	struct greeting *greeting = data;

	if (answer->type == KY_FRAME_ERROR)
		return ky_error_set(greeting->err, KYMO_E_IO, "the relay refuses: %s",
				    answer->text);
	greeting->is_welcome = answer->type == KY_FRAME_WELCOME;
	return greeting->is_welcome ? 0 : -EPROTO;
}

/* Byte for byte: what follows the answer is of the other protocol. */
static int receive_welcome(struct ky_live_client *client, struct kymo_error *err)
{
	struct ky_answer_reader reader = {.n_head = 0};
	struct greeting greeting = {.err = err};
	uint8_t byte;
	int ret = KYMO_OK;

	while (!ret && !greeting.is_welcome) {
		ret = receive_all(client, &byte, 1, err);
		if (!ret)
			ret = ky_answer_reader_take(&reader, &byte, 1, take_answer, &greeting);
		if (ret == -EPROTO)
			ret = malformed("no welcome", err);
	}
	return ret;
}

static int greet(struct ky_live_client *client, const struct ky_live_client_options *options,
		 struct kymo_error *err)
{
	const char *token = options->token;
	struct ky_net_hello hello = {
		.version = htole32(KY_NET_VERSION),
		.wishes = htole32(options->delay_ms),
		.token_bytes = htole16((uint16_t)(token ? strlen(token) : 0)),
	};
	const struct ky_frame frame = {.type = KY_FRAME_READER,
				       .bytes = sizeof(hello) + (token ? strlen(token) : 0)};
	uint8_t head[KY_FRAME_HEAD_BYTES];
	struct iovec parts[] = {{head, sizeof(head)},
				{&hello, sizeof(hello)},
				{(void *)token, token ? strlen(token) : 0}};
	int ret;

	memcpy(hello.magic, KY_NET_MAGIC, sizeof(hello.magic));
	ky_frame_put(&frame, head);
	client->end_ms = ky_os_now_ms() + CONNECT_MS;
	ret = send_all(client, parts, token ? 3 : 2, err);
	return ret < 0 ? ret : receive_welcome(client, err);
}

static int agree(struct ky_live_client *client, struct kymo_error *err)
{
	const struct ky_viewer_connect wanted = {
		.major = htobe32(KY_VIEWER_MAJOR),
		.minor = htobe32(KY_VIEWER_MINOR),
		.type = htobe32(1),
	};
	struct ky_viewer_connect answer;
	int ret = ask(client, KY_VIEWER_CONNECT, &wanted, sizeof(wanted), &answer, sizeof(answer),
		      err);

	if (ret < 0)
		return ret;
	client->minor = be32toh(answer.minor);
	if (client->minor > KY_VIEWER_MINOR)
		client->minor = KY_VIEWER_MINOR;
	if (be32toh(answer.major) != KY_VIEWER_MAJOR || client->minor < 4)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "the relay speaks version %u.%u of the live protocol; kymo "
				    "speaks 2.4 to 2.%u",
				    be32toh(answer.major), be32toh(answer.minor), KY_VIEWER_MINOR);
	return KYMO_OK;
}

int ky_live_client_begin(int fd, const struct ky_live_client_options *options,
			 struct ky_live_client **out, struct kymo_error *err)
{
	struct ky_live_client *client = calloc(1, sizeof(*client));
	int ret = KYMO_OK;

	*out = NULL;
	if (client)
		client->piece = malloc(PIECE_BYTES);
	if (!client || !client->piece) {
		free(client);
		close(fd);
		return ky_error_nomem(err);
	}
	ret = ky_link_new(fd, fd, &client->link, err);
	if (!ret && options->tls)
		ret = ky_link_use_tls(client->link, options->tls, err);
	if (!ret)
		ret = ky_link_handshake(client->link, CONNECT_MS, err);
	if (!ret && options->is_kymo)
		ret = greet(client, options, err);
	if (!ret)
		ret = agree(client, err);
	if (ret < 0) {
		ky_live_client_close(client);
		return ret;
	}
	*out = client;
	return KYMO_OK;
}

int ky_live_client_open(const struct ky_live_client_options *options,
			struct ky_live_client **client, struct kymo_error *err)
{
	bool is_loopback;
	int fd = ky_net_connect(&options->address, CONNECT_MS, &is_loopback, err), ret;

	*client = NULL;
	if (fd < 0)
		return fd;
	ret = ky_live_client_begin(fd, options, client, err);
	if (ret == KYMO_E_IO && options->is_kymo && !options->tls)
		ky_error_hint(
			err,
			"a relay with a key answers only readers that have the key, also on its own machine");
	return ret;
}

void ky_live_client_close(struct ky_live_client *client)
{
	if (!client)
		return;
	ky_link_free(client->link);
	free(client->piece);
	free(client);
}

/* ---- sessions ------------------------------------------------------------------------- */

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
	int ret = receive_all(client, &session, sizeof(session), err);

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
		return malformed("a name is too long", err);
	ret = receive_all(client, buffer, bytes, err);
	if (ret < 0)
		return ret;
	*text = strdup(buffer);
	return *text ? KYMO_OK : ky_error_nomem(err);
}

static int receive_session_15(struct ky_live_client *client, struct ky_live_session *to,
			      struct kymo_error *err)
{
	struct ky_viewer_session_15 session;
	int ret = receive_all(client, &session, sizeof(session), err);

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
	int ret = ask(client, KY_VIEWER_LIST_SESSIONS, NULL, 0, &count, sizeof(count), err);

	count = be32toh(count);
	if (!ret && count > SESSIONS_MAX)
		ret = malformed("it has too many sessions", err);
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
	int ret = ask(client, KY_VIEWER_CREATE_SESSION, NULL, 0, &status, sizeof(status), err);

	if (ret < 0)
		return ret;
	if (be32toh(status) != KY_VIEWER_OK)
		return ky_error_set(err, KYMO_E_IO, "the relay does not accept a reader");
	return KYMO_OK;
}

/* ---- streams -------------------------------------------------------------------------- */

static int receive_channels(struct ky_live_client *client, uint32_t count,
			    struct ky_live_channels *channels, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (count > CHANNELS_MAX || channels->len + count > CHANNELS_MAX)
		return malformed("it has too many streams", err);
	for (uint32_t i = 0; i < count && !ret; i++) {
		struct ky_live_channel channel = {.id = 0};
		struct ky_viewer_stream stream;

		ret = receive_all(client, &stream, sizeof(stream), err);
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
	int ret = ask(client, KY_VIEWER_ATTACH, &wanted, sizeof(wanted), &answer, sizeof(answer),
		      err);

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
	int ret = ask_about(client, KY_VIEWER_GET_NEW_STREAMS, id, &answer, sizeof(answer), err);

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

/* ---- packets -------------------------------------------------------------------------- */

int ky_live_client_index(struct ky_live_client *client, uint64_t id, struct ky_live_index *index,
			 struct kymo_error *err)
{
	struct ky_viewer_index answer;
	uint64_t bits;
	int ret = ask_about(client, KY_VIEWER_GET_NEXT_INDEX, id, &answer, sizeof(answer), err);

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
	if (index->status == KY_VIEWER_INDEX_OK && (!bits || bits % 8 || bits / 8 > PACKET_MAX))
		return malformed("a packet has an impossible size", err);
	if (index->status == KY_VIEWER_INDEX_ERROR)
		return ky_error_set(err, KYMO_E_IO, "the relay cannot read the session's files");
	if (index->status < KY_VIEWER_INDEX_OK || index->status > KY_VIEWER_INDEX_EOF)
		return malformed("an unknown status of a stream", err);
	return KYMO_OK;
}

static int write_piece(const struct ky_live_client *client, int fd, uint64_t at, size_t bytes,
		       struct kymo_error *err)
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
	int ret = ask(client, KY_VIEWER_GET_PACKET, &wanted, sizeof(wanted), &answer,
		      sizeof(answer), err);

	if (ret < 0)
		return ret;
	flags = be32toh(answer.flags);
	if (be32toh(answer.status) == KY_VIEWER_PACKET_OK) {
		if (be32toh(answer.bytes) != bytes)
			return malformed("a packet has another size than its index says", err);
		ret = receive_all(client, client->piece, bytes, err);
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
		uint32_t bytes = left < PIECE_BYTES ? (uint32_t)left : PIECE_BYTES;
		int ret = get_piece(client, id, index, done, bytes, err);

		if (ret > 0 && write_piece(client, fd, at + done, bytes, err) < 0)
			return KYMO_E_IO;
		if (ret <= 0)
			return ret;
		done += bytes;
	}
	return 1;
}

/* ---- metadata ------------------------------------------------------------------------- */

static int receive_metadata(struct ky_live_client *client, uint64_t bytes, struct ky_strbuf *text,
			    struct kymo_error *err)
{
	if (bytes > METADATA_MAX || text->len + bytes > METADATA_MAX)
		return malformed("the metadata is too large", err);
	while (bytes) {
		size_t piece = bytes < PIECE_BYTES ? (size_t)bytes : PIECE_BYTES;
		int ret = receive_all(client, client->piece, piece, err);

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
	int ret = ask_about(client, KY_VIEWER_GET_METADATA, id, &answer, sizeof(answer), err);

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
