/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of events that traced programs wrote (struct ky_event_record of abi/control.h), in
 * their control files and in the blobs of their rings. The input is untrusted; the output of these
 * functions is checked.
 */
#ifndef KY_RECORD_REQUEST_USER_EVENT_H
#define KY_RECORD_REQUEST_USER_EVENT_H

#include <stdbool.h>
#include <stddef.h>

#include "abi/control.h"

struct ky_user_event {
	const struct ky_event_record *record; /* in the checked memory */
	const char *provider, *name;	      /* "" of KY_EVENT_CONTEXT */
	const char *file;
	uint32_t number; /* index in the table; in a blob: its id */
	bool is_query;	 /* not an event: a place that checks for one */
};

/*
 * The next record of [@at, @end), which is the recorder's own memory: a copy, aligned to 8 bytes.
 *
 * Returns the record's length. Fills @event and sets *is_good if the record is well-formed. Returns
 * 0 when the record's head is malformed, so that no later record can be found.
 */
size_t ky_user_event_next(const void *at, const void *end, struct ky_user_event *event,
			  bool *is_good);

/* Writes "shop:order_placed" to @name. */
#define KY_USER_EVENT_NAME_BYTES (2 * KY_NAME_MAX + 2)
void ky_user_event_name(const struct ky_user_event *event, char name[KY_USER_EVENT_NAME_BYTES]);

/* The name of a field of a checked event. */
const char *ky_user_field_name(const struct ky_user_event *event, unsigned int field);
/* Whether the field of a checked event is a floating-point number, or has such elements: of others the flag says nothing. */
bool ky_user_field_is_float(const struct ky_field_record *field);
/* The type of a field for people: "int32", "string", "enum uint8", "float64[4]". */
void ky_user_field_type(const struct ky_field_record *field, char type[48]);

/* "INFO", "DEBUG_SYSTEM"; static text. */
const char *ky_log_level_name(unsigned int level);
/* Parses a name in upper or lower case, or a number 0..14. Returns -1 for other text. */
int ky_log_level_parse(const char *text, size_t len);

/*
 * Patterns of sessions: '*' any run of bytes, '\' removes the special meaning of the next
 * character.
 */
bool ky_user_glob(const char *pattern, const char *text);

#endif
