/* SPDX-License-Identifier: MIT */
/* What users ask of the daemon: messages of words over its socket (daemon-socket.h). */
#ifndef KY_RECORD_CONTROL_DAEMON_REQUEST_H
#define KY_RECORD_CONTROL_DAEMON_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "record/control/control-socket.h"

enum ky_daemon_request_kind {
	KY_DAEMON_RECORD, /* "record", policy, duration in ns or "", "own" or "", "background" or "" */
	KY_DAEMON_STOP,	    /* "stop", recording or "" */
	KY_DAEMON_SNAPSHOT, /* "snapshot", recording or "" */
	KY_DAEMON_STATUS,   /* "status", recording or "" */
	KY_DAEMON_SESSIONS, /* "sessions" */
	KY_DAEMON_POLICIES, /* "policies" */
	KY_DAEMON_NEXT,	    /* "next": the next file of a recording */
	KY_DAEMON_DONE,	    /* "done": the client has all files */
	KY_DAEMON_REQUESTS,
};

struct ky_daemon_request {
	enum ky_daemon_request_kind kind;
	const char *id; /* of the policy or the recording; "": none was named. In the message */
	uint64_t duration_ns; /* RECORD; 0: the policy's */
	bool own;	      /* RECORD: only the processes of the user */
	bool in_background;   /* RECORD: the recording goes on without the client */
};

/*
 * Reads a request. @request points into @message. KYMO_E_INVALID: the message is not a request, @err says why, and @request is
 * not valid. Any thread.
 */
int ky_daemon_request_parse(const struct ky_control_socket_message *message,
			    struct ky_daemon_request *request, struct kymo_error *err);

#endif
