/* SPDX-License-Identifier: MIT */
/*
 * What any user may send to the daemon. Whatever it is: the request is one of those that exist, its text is a word of the
 * message, its words make the same request again, and a refusal gives a reason.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/control/daemon-request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Is @text one of the message's words, or the empty text that stands for one which is missing? */
static void check_text(const struct ky_control_socket_message *message, const char *text)
{
	const char *word;
	size_t at = 0;

	if (!*text)
		return;
	while ((word = ky_control_socket_next(message, &at)))
		if (word == text)
			return;
	abort();
}

/* The request's words again make the same request. */
static void check_again(const struct ky_daemon_request *request)
{
	static struct ky_control_socket_message message;
	struct ky_daemon_request again;
	char duration[24] = "";

	if (request->duration_ns)
		snprintf(duration, sizeof(duration), "%" PRIu64, request->duration_ns);
	message.len = 0;
	ky_control_socket_add(&message, "record");
	ky_control_socket_add(&message, request->id);
	ky_control_socket_add(&message, duration);
	ky_control_socket_add(&message, request->own ? "own" : "");
	ky_control_socket_add(&message, request->in_background ? "background" : "");
	if (message.len == sizeof(message.text))
		return;
	if (ky_daemon_request_parse(&message, &again, NULL) < 0 || again.kind != KY_DAEMON_RECORD ||
	    strcmp(again.id, request->id) != 0 || again.duration_ns != request->duration_ns ||
	    again.own != request->own || again.in_background != request->in_background)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ky_control_socket_message message;
	struct ky_daemon_request request;
	struct kymo_error err = {0};
	int ret;

	if (size > sizeof(message.text))
		return 0;
	/* The last message has left something behind the end of this one. */
	memcpy(message.text, data, size);
	message.len = size;
	ret = ky_daemon_request_parse(&message, &request, &err);
	if (ret < 0) {
		if (ret != KYMO_E_INVALID || !err.message[0])
			abort();
		return 0;
	}
	if (request.kind >= KY_DAEMON_REQUESTS)
		abort();
	check_text(&message, request.id);
	if (request.kind == KY_DAEMON_RECORD)
		check_again(&request);
	else if (request.duration_ns || request.own || request.in_background)
		abort();
	return 0;
}
