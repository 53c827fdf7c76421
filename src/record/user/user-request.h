/* SPDX-License-Identifier: MIT */
/* What a recording asks programs for: checked options, and the session file made of them. */
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
	struct ky_user_filter filter; /* as the user wrote it; for checking names */
	struct ky_user_rules rules;
	uint64_t cookie;
	uint8_t uuid[16];
	uint32_t subbuf_bytes, n_subbufs;
	struct ky_strbuf file; /* the session file */
};

/* Check the options and make the session file. fini is due in any case. */
int ky_user_request_init(struct ky_user_request *request, const struct ky_user_options *options,
			 struct kymo_error *err);
void ky_user_request_fini(struct ky_user_request *request);

/* Change the rules: a new session file, with a new cookie. Nothing is changed when that fails. */
int ky_user_request_change(struct ky_user_request *request, const struct ky_user_change *change,
			   struct kymo_error *err);

/* Whether a rule takes the event (but for its filter). @request: a struct ky_user_request. */
bool ky_user_request_wants(void *request, const struct ky_user_event *event);

/*
 * Names of the filter that no wanted event of @programs has (nor a context is called so):
 * KYMO_E_INVALID with the column and the nearest names. 0 also when there is no wanted event, and, with a warning,
 * when only other users' programs have any.
 */
int ky_user_request_check(struct ky_user_request *request, const struct ky_programs *programs,
			  struct kymo_error *err);

/* The clock as session files and blobs have it. */
void ky_user_clock_record(const struct ky_os_clock *clock, struct ky_clock_record *record);

/* Names of fields and of their values, each once. */
struct ky_user_names {
	KY_VEC(char *) names;
	KY_VEC(char *) labels; /* "FIELD\nLABEL" of enumerations; "FIELD\n" of other fields */
	struct ky_names known; /* all these, to look them up */
	bool any_event;
	bool is_full; /* there are more than anybody has; who is called what is not checked then */
};
/* Add the fields of @event, if they are new. 0 or KYMO_E_MEMORY. */
int ky_user_names_add(struct ky_user_names *names, const struct ky_user_event *event);
void ky_user_names_fini(struct ky_user_names *names);
/* The check above against names that were collected. */
int ky_user_names_check(const struct ky_user_names *names, const struct ky_user_filter *filter,
			struct kymo_error *err);

#endif
