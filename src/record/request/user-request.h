/* SPDX-License-Identifier: MIT */
/* The request of a recording to programs: checked options, and the session file made of them. */
#ifndef KY_RECORD_REQUEST_USER_REQUEST_H
#define KY_RECORD_REQUEST_USER_REQUEST_H

#include "base/hash.h"
#include "base/strbuf.h"
#include "record/request/user-event.h"
#include "record/request/user-filter.h"
#include "record/request/user-program.h"
#include "record/request/user-rules.h"
#include "record/request/user-options.h"

/* A selected process: its id here, and in its own PID namespace. */
struct ky_user_chosen_pid {
	uint32_t pid, inner;
};

/* The selected processes and users; nothing in both: all programs. */
struct ky_user_choice {
	KY_VEC(struct ky_user_chosen_pid) pids;
	KY_VEC(uid_t) uids;
};

struct ky_user_request {
	const struct ky_user_options *options;
	struct ky_user_choice choice;
	bool is_paused;
	struct ky_user_filter filter; /* in the user's form; for checking names */
	struct ky_user_rules rules;
	uint64_t cookie;
	uint8_t uuid[16];
	uint32_t subbuf_bytes, n_subbufs;
	/*
	 * The session file, and its variants: for all processes of a selected user; without rules, for
	 * the processes of any other user, and for all processes during a pause.
	 */
	struct ky_strbuf file, whole, closed;
};

/* Checks the options and makes the session file. The caller must call fini in any case. */
int ky_user_request_init(struct ky_user_request *request, const struct ky_user_options *options,
			 struct kymo_error *err);
void ky_user_request_fini(struct ky_user_request *request);

/* Changes the rules: a new session file with a new cookie. On failure nothing changes. */
int ky_user_request_change(struct ky_user_request *request, const struct ky_user_change *change,
			   struct kymo_error *err);

/* The session file for programs of @uid. */
const struct ky_strbuf *ky_user_request_file(const struct ky_user_request *request, uid_t uid);
/* Whether a program is selected: its process, or its user. */
bool ky_user_request_chooses(const struct ky_user_request *request,
			     const struct ky_program *program);

/*
 * Whether a rule selects the event (without regard to its filter). @request: a struct
 * ky_user_request.
 */
bool ky_user_request_wants(void *request, const struct ky_user_event *event);

/*
 * Check the names in the filter against the selected events of @programs and the context fields.
 * Returns KYMO_E_INVALID with the column and the nearest names for an unknown name; 0 also when no
 * event is selected, and, with a warning, when only other users' programs have selected events.
 */
int ky_user_request_check(struct ky_user_request *request, const struct ky_programs *programs,
			  struct kymo_error *err);

/* The clock in the form of session files and blobs. */
void ky_user_clock_record(const struct ky_os_clock *clock, struct ky_clock_record *record);

/* Names of fields and of their values, each once. */
struct ky_user_names {
	KY_VEC(char *) names;
	KY_VEC(char *) labels; /* "FIELD\nLABEL" of enumerations; "FIELD\n" of other fields */
	struct ky_names known; /* all these, to look them up */
	bool any_event;
	bool is_full; /* too many names; checks accept every name then */
};
/* Add the fields of @event, if they are new. 0 or KYMO_E_MEMORY. */
int ky_user_names_add(struct ky_user_names *names, const struct ky_user_event *event);
void ky_user_names_fini(struct ky_user_names *names);
/* The same check against collected names. */
int ky_user_names_check(const struct ky_user_names *names, const struct ky_user_filter *filter,
			struct kymo_error *err);

#endif
