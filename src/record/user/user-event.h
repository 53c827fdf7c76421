/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of events that traced programs wrote (struct ky_event_record of abi/control.h): in
 * their control files, and in the blobs of their rings. Nothing in them is trusted; what comes
 * out of here is.
 */
#ifndef KY_RECORD_USER_USER_EVENT_H
#define KY_RECORD_USER_USER_EVENT_H

#include <stdbool.h>
#include <stddef.h>

#include "abi/control.h"

struct ky_user_event {
	const struct ky_event_record *record; /* in the memory that was checked */
	const char *provider, *name;	      /* "" of KY_EVENT_CONTEXT */
	const char *file;
	uint32_t number; /* in the table; in a blob: its id */
	bool is_query;	 /* no event: a place that asks whether there is one */
};

/*
 * The next record of [@at, @end), which is memory of our own: a copy, aligned to 8 bytes.
 *
 * Returns the record's length, and fills @event if the record is well-formed; *is_good says so.
 * 0: what is there is not even a record; nothing behind it can be found.
 */
size_t ky_user_event_next(const void *at, const void *end, struct ky_user_event *event,
			  bool *is_good);

/* "shop:order_placed" in @name. */
#define KY_USER_EVENT_NAME_BYTES (2 * KY_NAME_MAX + 2)
void ky_user_event_name(const struct ky_user_event *event, char name[KY_USER_EVENT_NAME_BYTES]);

/* A field's name; of a checked event. */
const char *ky_user_field_name(const struct ky_user_event *event, unsigned int field);
/* "int32", "string", "enum uint8", "float64[4]": how people call its type. */
void ky_user_field_type(const struct ky_field_record *field, char type[48]);

/* "INFO", "DEBUG_SYSTEM"; static text. */
const char *ky_log_level_name(unsigned int level);
/* A name or a number 0..14, upper or lower case. -1: neither. */
int ky_log_level_parse(const char *text, size_t len);

/* '*' any run of bytes, '\' takes away the next one's meaning: patterns of sessions. */
bool ky_user_glob(const char *pattern, const char *text);

#endif
