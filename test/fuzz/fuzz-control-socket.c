/* SPDX-License-Identifier: MIT */
/*
 * What comes over a recorder's socket, in both directions. The first byte says which: an even one, that a
 * recorder gets the rest as a request; an odd one, that the client gets it as an answer. Whatever it
 * is: words end within the message, one behind the other, and an answer is a yes, or a no with a reason.
 * Requests come over a real socket, so that lengths are what the kernel says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "record/control/control-socket-internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- words ---- */

/* Words that are added again make the same message, as far as the words went. */
static void check_words(const struct ky_control_socket_message *message)
{
	static struct ky_control_socket_message again;
	const char *word;
	size_t at = 0, before;

	again.len = 0;
	for (before = 0; (word = ky_control_socket_next(message, &at)); before = at) {
		if (word != message->text + before || at <= before || at > message->len ||
		    strlen(word) + 1 != at - before)
			abort();
		ky_control_socket_add(&again, word);
	}
	if (before > message->len || again.len != before ||
	    memcmp(again.text, message->text, before) != 0)
		abort();
	/* What remains is no word: it has no end. */
	if (memchr(message->text + before, 0, message->len - before))
		abort();
}

/* ---- a request ---- */

static void try_request(const uint8_t *data, size_t size)
{
	static struct ky_control_socket_message request, answer;
	struct ky_control_socket_server server;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
		abort();
	if (ky_control_socket_init(&server) < 0)
		abort();
	ky_control_socket_add_client(&server, fds[0]);
	if (send(fds[1], data, size, MSG_NOSIGNAL) != (ssize_t)size)
		shutdown(fds[1], SHUT_RDWR);
	if (ky_control_socket_take(&server, &request)) {
		if (request.len != size || memcmp(request.text, data, size) != 0)
			abort();
		check_words(&request);
		answer.len = 0;
		ky_control_socket_add(&answer, "ok");
		ky_control_socket_answer(&server, &answer);
	} else if (size && size <= sizeof(request.text)) {
		abort();
	}
	if (server.client_fd >= 0)
		abort();
	ky_control_socket_close(&server);
	close(fds[1]);
}

/* ---- an answer ---- */

static void try_answer(const uint8_t *data, size_t size)
{
	static struct ky_control_socket_message answer;
	struct kymo_error err = {0};
	int ret;

	answer.len = size < sizeof(answer.text) ? size : sizeof(answer.text);
	if (answer.len)
		memcpy(answer.text, data, answer.len);
	check_words(&answer);
	ret = ky_control_socket_result(&answer, &err);
	if (ret < 0 ? ret != KYMO_E_STATE || !memchr(err.message, 0, sizeof(err.message))
		    : answer.len < 3 || memcmp(answer.text, "ok", 3) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] % 2)
		try_answer(data + 1, size - 1);
	else
		try_request(data + 1, size - 1);
	return 0;
}
