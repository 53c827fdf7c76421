/* SPDX-License-Identifier: MIT */
/* The request of a recording to programs: checked options, and the session file made of them. */
#ifndef KY_RECORD_USER_USER_REQUEST_H
#define KY_RECORD_USER_USER_REQUEST_H

#include "base/hash.h"
#include "base/strbuf.h"
#include "record/user/user-event.h"
#include "record/user/user-filter.h"
#include "record/user/user-program.h"
#include "record/user/user-rules.h"
#include "record/user/user.h"

struct ky_user_request {
	const struct ky_user_options *options;
	struct ky_user_filter filter; /* in the user's form; for checking names */
	struct ky_user_rules rules;
	uint64_t cookie;
	uint8_t uuid[16];
	uint32_t subbuf_bytes, n_subbufs;
	struct ky_strbuf file; /* the session file */
};

/* Checks the options and makes the session file. The caller must call fini in any case. */
int ky_user_request_init(struct ky_user_request *request, const struct ky_user_options *options,
			 struct kymo_error *err);
void ky_user_request_fini(struct ky_user_request *request);

/* Changes the rules: a new session file with a new cookie. On failure nothing changes. */
int ky_user_request_change(struct ky_user_request *request, const struct ky_user_change *change,
			   struct kymo_error *err);

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
