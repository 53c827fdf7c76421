/* SPDX-License-Identifier: MIT */
/*
 * A trigger that fired: which one, when, and the event's fields as text.
 *
 * Threads: a firing belongs to one thread at a time.
 */
#ifndef KY_RECORD_TRIGGERS_TRIGGER_FIRING_H
#define KY_RECORD_TRIGGERS_TRIGGER_FIRING_H

#include "base/strbuf.h"
#include "ctf/decode/decode.h"
#include "record/triggers/trigger-match.h"

/* Bytes of all fields' texts; further fields are left out. */
#define KY_TRIGGER_FIELDS_BYTES_MAX 16384

struct ky_trigger_field {
	char *name, *value;
	bool is_text; /* else the value is a number, or a list of numbers, in JSON */
};

struct ky_trigger_firing {
	uint32_t trigger; /* its number */
	char *condition;
	uint64_t n;	 /* it fired so many times, with this one */
	uint64_t n_held; /* the limits held so many back since the beginning */
	struct ky_trigger_hit hit;
	char *event;  /* its name; NULL: no event */
	uint32_t cpu; /* UINT32_MAX: unknown */
	KY_VEC(struct ky_trigger_field) fields;
};

/*
 * Make the firing of trigger @number; @event may be NULL. NULL: out of memory. The caller frees it with
 * ky_trigger_firing_free().
 */
struct ky_trigger_firing *ky_trigger_firing_new(uint32_t number,
						const struct ky_trigger_match *match,
						const struct ky_trigger_hit *hit,
						const struct ky_event *event);
void ky_trigger_firing_free(struct ky_trigger_firing *firing); /* NULL is allowed */

/*
 * Append the firing as one line of JSON without a line feed. @action, @argument: an action's name and
 * result; NULL: none.
 */
void ky_trigger_firing_json(struct ky_strbuf *out, const struct ky_trigger_firing *firing,
			    const char *action, const char *argument);
/* Append the firing as text for people, on one line. */
void ky_trigger_firing_text(struct ky_strbuf *out, const struct ky_trigger_firing *firing);
/* "2026-11-24T15:04:05.123456Z" */
#define KY_TRIGGER_TIME_BYTES 40
void ky_trigger_time(char out[KY_TRIGGER_TIME_BYTES], int64_t ns);

#endif
