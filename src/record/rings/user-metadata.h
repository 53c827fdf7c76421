/* SPDX-License-Identifier: MIT */
/*
 * The metadata of a program's trace, from its ring's blob: LTTng-UST's layout, with event names,
 * log levels, fields, contexts. The state dump's events have a stream class of their own.
 */
#ifndef KY_RECORD_RINGS_USER_METADATA_H
#define KY_RECORD_RINGS_USER_METADATA_H

#include "abi/control.h"
#include "base/strbuf.h"
#include "ctf/model/model.h"
#include "record/request/user-event.h"

/* The stream class of the state dump; the program's events have 0. */
#define KY_USER_DUMP_STREAM 1

/* The state dump's events: ids in their stream class. */
enum ky_user_dump_event {
	KY_USER_DUMP_START,
	KY_USER_DUMP_END,
	KY_USER_DUMP_BIN_INFO,
	KY_USER_DUMP_BUILD_ID,
	KY_USER_DUMP_DEBUG_LINK,
	KY_USER_DUMP_PROCNAME,
	/* Libraries that are loaded or unloaded after the dump: */
	KY_USER_DUMP_LOAD,
	KY_USER_DUMP_LOAD_BUILD_ID,
	KY_USER_DUMP_LOAD_DEBUG_LINK,
	KY_USER_DUMP_UNLOAD,
	KY_USER_DUMP_EVENTS,
};
#define KY_USER_DUMP_ALL ((1u << KY_USER_DUMP_EVENTS) - 1)

/* The event's name in the trace: "lttng_ust_statedump:start". */
const char *ky_user_dump_event_name(enum ky_user_dump_event event);

/* A blob: the recorder's own copy, aligned to 8 bytes; ky_user_blob_check() has checked it. */
struct ky_user_blob {
	const struct ky_blob *head;
	size_t bytes; /* the head included */
};

/* Whether the head of the blob is well-formed; the copy has @bytes. Returns 0 or KYMO_E_FORMAT. */
int ky_user_blob_check(const struct ky_user_blob *blob, struct kymo_error *err);

/*
 * Whether the machine has rebooted since @blob was written. @boot_id is the ID of the present boot.
 * When it or the blob's ID is unknown (zeros), the time decides, although the clock may have been
 * set meanwhile.
 */
bool ky_user_blob_is_of_earlier_boot(const struct ky_blob *blob, const uint8_t boot_id[16]);

/* The well-formed records of the blob. The caller starts with *at = 0. Returns false at the end. */
bool ky_user_blob_next(const struct ky_user_blob *blob, size_t *at, struct ky_user_event *event);

/* Whether the program's events have the context field @name, such as "ip". */
bool ky_user_blob_has_context(const struct ky_user_blob *blob, const char *name);

/*
 * Make the metadata text. @clock: the blob's, or a refined one. @trace_name: for env. *n_bad: the
 * number of malformed records, which the metadata omits. The caller frees *text with free().
 * Returns 0, KYMO_E_FORMAT (an impossible clock), KYMO_E_MEMORY.
 */
int ky_user_metadata(const struct ky_user_blob *blob, const struct ky_clock_record *clock,
		     const char *trace_name, char **text, size_t *len_bytes, uint32_t *n_bad,
		     struct kymo_error *err);

/*
 * user-clock.c: the clock as a part of @trace, which owns it. Returns NULL with KYMO_E_FORMAT
 * (impossible clock) or KYMO_E_MEMORY.
 */
struct ky_clock_class *ky_user_clock_class(struct ky_trace_class *trace,
					   const struct ky_clock_record *clock,
					   struct kymo_error *err);
/*
 * Adds blanks to the metadata, so that every other clock fits. On failure, frees *text and sets it
 * to NULL.
 */
int ky_user_clock_make_room(char **text, size_t *len_bytes, struct kymo_error *err);
/*
 * Finds the clock's values in such metadata: *bytes of text at *at_bytes. Returns false when @text
 * has no clock.
 */
bool ky_user_clock_find(const char *text, size_t len_bytes, uint64_t *at_bytes, size_t *bytes);
/*
 * Write the values of @clock to @text, which has @bytes, in the form of the metadata, padded with
 * blanks. KYMO_E_FORMAT: the clock is impossible, or its values do not fit; KYMO_E_MEMORY.
 */
int ky_user_clock_values(const struct ky_clock_record *clock, char *text, size_t bytes,
			 struct kymo_error *err);

/* LTTng's name for the directory of a program's trace: "shop-1234-20261121-153000". */
#define KY_USER_TRACE_NAME_BYTES 64
void ky_user_trace_name(const struct ky_blob *blob, char name[KY_USER_TRACE_NAME_BYTES]);

/*
 * user-metadata-events.c: the classes of the events that @blob describes. Its first record is the contexts'; each of the others has an id.
 * *n_bad: as ky_user_metadata(). 0 or KYMO_E_MEMORY.
 */
int ky_user_metadata_events(struct ky_stream_class *stream, const struct ky_user_blob *blob,
			    uint32_t *n_bad);

#endif
