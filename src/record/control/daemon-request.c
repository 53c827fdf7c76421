/* SPDX-License-Identifier: MIT */
#include "record/control/daemon-request.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

static const char *const kinds[KY_DAEMON_REQUESTS] = {
	[KY_DAEMON_RECORD] = "record",	   [KY_DAEMON_STOP] = "stop",
	[KY_DAEMON_SNAPSHOT] = "snapshot", [KY_DAEMON_STATUS] = "status",
	[KY_DAEMON_SESSIONS] = "sessions", [KY_DAEMON_POLICIES] = "policies",
	[KY_DAEMON_NEXT] = "next",	   [KY_DAEMON_DONE] = "done",
};

/* The next word; "" after the last one. */
static const char *daemon_request_next(const struct ky_control_socket_message *message, size_t *at)
{
	const char *word = ky_control_socket_next(message, at);

	return word ? word : "";
}

int ky_daemon_request_parse(const struct ky_control_socket_message *message,
			    struct ky_daemon_request *request, struct kymo_error *err)
{
	size_t at = 0;
	const char *word = daemon_request_next(message, &at);
	int kind = 0;

	while (kind < KY_DAEMON_REQUESTS && strcmp(word, kinds[kind]) != 0)
		kind++;
	if (kind == KY_DAEMON_REQUESTS)
		return ky_error_set(
			err, KYMO_E_INVALID,
			"the daemon does not have this request; it may be of another version "
			"of Kymo");
	*request = (struct ky_daemon_request){.kind = (enum ky_daemon_request_kind)kind,
					      .id = daemon_request_next(message, &at)};
	if (kind != KY_DAEMON_RECORD)
		return KYMO_OK;
	word = daemon_request_next(message, &at);
	if (*word && (ky_parse_u64(word, &request->duration_ns) < 0 || !request->duration_ns))
		return ky_error_set(err, KYMO_E_INVALID, "the duration makes no sense");
	request->own = strcmp(daemon_request_next(message, &at), "own") == 0;
	request->in_background = strcmp(daemon_request_next(message, &at), "background") == 0;
	return KYMO_OK;
}
