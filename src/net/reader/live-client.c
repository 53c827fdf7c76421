/* SPDX-License-Identifier: MIT */
#include "net/reader/live-client.h"

#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/link/link.h"
#include "net/protocol/answer-reader.h"
#include "net/protocol/frame.h"
#include "net/reader/live-client-internal.h"
#include "os/now.h"

#define CONNECT_MS 10000
/* For an answer, or a part of a packet. */
#define ANSWER_MS 20000

/* ---- bytes --------------------------------------------------------------------------- */

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

int ky_live_client_malformed(const char *what, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_FORMAT, "the relay's answer is not one of the protocol: %s",
			    what);
}

/* 0 or an errno. */
static int live_client_wait_for(struct ky_live_client *client, int fd, short events)
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
			errnum =
				live_client_wait_for(client, ky_link_out_fd(client->link), POLLOUT);
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

int ky_live_client_receive(struct ky_live_client *client, void *to, size_t bytes,
			   struct kymo_error *err)
{
	uint8_t *at = to;

	while (bytes) {
		ssize_t got = ky_link_receive(client->link, at, bytes);
		int errnum = 0;

		if (got == -EAGAIN)
			errnum = live_client_wait_for(client, ky_link_in_fd(client->link), POLLIN);
		else if (got <= 0)
			return broken((int)-got, err);
		if (errnum)
			return broken(errnum, err);
		at += got > 0 ? got : 0;
		bytes -= got > 0 ? (size_t)got : 0;
	}
	return KYMO_OK;
}

int ky_live_client_ask(struct ky_live_client *client, enum ky_viewer_command command,
		       const void *request, size_t request_bytes, void *answer, size_t bytes,
		       struct kymo_error *err)
{
	const struct ky_viewer_head head = {.bytes = htobe64(request_bytes),
					    .command = htobe32(command)};
	struct iovec parts[] = {{(void *)&head, sizeof(head)}, {(void *)request, request_bytes}};
	int ret;

	/* A relay that always has an answer lets no wait be interrupted. */
	if (client->stop && client->stop())
		return broken(EINTR, err);
	client->end_ms = ky_os_now_ms() + ANSWER_MS;
	ret = send_all(client, parts, request_bytes ? 2 : 1, err);
	return ret < 0 ? ret : ky_live_client_receive(client, answer, bytes, err);
}

int ky_live_client_ask_about(struct ky_live_client *client, enum ky_viewer_command command,
			     uint64_t id, void *answer, size_t bytes, struct kymo_error *err)
{
	const uint64_t wanted = htobe64(id);

	return ky_live_client_ask(client, command, &wanted, sizeof(wanted), answer, bytes, err);
}

/* ---- the beginning ------------------------------------------------------------------- */

struct greeting {
	bool is_welcome;
	struct kymo_error *err;
};

static int live_client_take_answer(void *data, const struct ky_answer *answer)
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
		ret = ky_live_client_receive(client, &byte, 1, err);
		if (!ret)
			ret = ky_answer_reader_take(&reader, &byte, 1, live_client_take_answer,
						    &greeting);
		if (ret == -EPROTO)
			ret = ky_live_client_malformed("no welcome", err);
	}
	return ret;
}

static int live_client_greet(struct ky_live_client *client,
			     const struct ky_live_client_options *options, struct kymo_error *err)
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
	int ret = ky_live_client_ask(client, KY_VIEWER_CONNECT, &wanted, sizeof(wanted), &answer,
				     sizeof(answer), err);

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
		client->piece = malloc(KY_LIVE_PIECE_BYTES);
	if (!client || !client->piece) {
		free(client);
		close(fd);
		return ky_error_nomem(err);
	}
	client->stop = options->stop;
	ret = ky_link_new(fd, fd, &client->link, err);
	if (!ret && options->tls)
		ret = ky_link_use_tls(client->link, options->tls, err);
	if (!ret)
		ret = ky_link_handshake(client->link, CONNECT_MS, err);
	/* That means something else to readers. */
	ret = ret == KYMO_E_AGAIN ? KYMO_E_IO : ret;
	if (!ret && options->is_kymo)
		ret = live_client_greet(client, options, err);
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
	int errnum, fd = ky_net_connect(&options->address, CONNECT_MS, &is_loopback, &errnum, err);
	int ret;

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
