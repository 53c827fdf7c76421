/* SPDX-License-Identifier: MIT */
/*
 * The metadata of a program's trace, from its ring's blob: LTTng-UST's layout, with event names,
 * log levels, fields, contexts; and the state dump's events in a stream class of their own.
 */
#ifndef KY_RECORD_USER_USER_MODEL_H
#define KY_RECORD_USER_USER_MODEL_H

#include "abi/control.h"
#include "base/strbuf.h"
#include "ctf/model/model.h"
#include "record/user/user-event.h"

/* The stream class of the state dump; the program's is 0. */
#define KY_USER_DUMP_STREAM 1

/* The state dump's events: ids in their stream class. */
enum ky_user_dump_event {
	KY_USER_DUMP_START,
	KY_USER_DUMP_END,
	KY_USER_DUMP_BIN_INFO,
	KY_USER_DUMP_BUILD_ID,
	KY_USER_DUMP_DEBUG_LINK,
	KY_USER_DUMP_PROCNAME,
	/* Libraries that come and go after that: */
	KY_USER_DUMP_LOAD,
	KY_USER_DUMP_LOAD_BUILD_ID,
	KY_USER_DUMP_LOAD_DEBUG_LINK,
	KY_USER_DUMP_UNLOAD,
	KY_USER_DUMP_EVENTS,
};
#define KY_USER_DUMP_ALL ((1u << KY_USER_DUMP_EVENTS) - 1)

/* Its name in the trace: "lttng_ust_statedump:start". */
const char *ky_user_dump_event_name(enum ky_user_dump_event event);

/* A blob: a copy in memory of our own, aligned to 8 bytes; checked by ky_user_blob_check(). */
struct ky_user_blob {
	const struct ky_blob *head;
	size_t bytes; /* the head included */
};

/*
 * Whether the head of the blob makes sense, @bytes (of the copy) being there.
 * 0 or KYMO_E_FORMAT.
 */
int ky_user_blob_check(const struct ky_user_blob *blob, struct kymo_error *err);

/*
 * Whether the machine was started anew since @blob was written, which bears the boot id of then; @boot_id is
 * today's. Where either is zeros, not known, the clock decides, which may have been set meanwhile.
 */
bool ky_user_blob_is_of_earlier_boot(const struct ky_blob *blob, const uint8_t boot_id[16]);

/* The well-formed records of the blob. Start with *at = 0; false: the end. */
bool ky_user_blob_next(const struct ky_user_blob *blob, size_t *at, struct ky_user_event *event);

/* Whether events of the program have the context field @name, such as "ip". */
bool ky_user_blob_has_context(const struct ky_user_blob *blob, const char *name);

/*
 * The metadata text. @clock: what the blob says, or better. @trace_name: for env.
 * *n_bad: records that make no sense; they are left out.
 * *text is malloc()ed. 0, KYMO_E_FORMAT (a clock that cannot be), KYMO_E_MEMORY.
 */
int ky_user_metadata(const struct ky_user_blob *blob, const struct ky_clock_record *clock,
		     const char *trace_name, char **text, size_t *len_bytes, uint32_t *n_bad,
		     struct kymo_error *err);

/*
 * user-clock.c: the clock as a part of @trace, which owns it. NULL: it cannot be (KYMO_E_FORMAT), or
 * KYMO_E_MEMORY.
 */
struct ky_clock_class *ky_user_clock_class(struct ky_trace_class *trace,
					   const struct ky_clock_record *clock,
					   struct kymo_error *err);
/* Metadata gets so many blanks that any other clock fits, too. On failure *text is freed, and NULL. */
int ky_user_clock_make_room(char **text, size_t *len_bytes, struct kymo_error *err);
/* Find the clock's values in such metadata: *bytes of text at *at_bytes. false: @text has no clock. */
bool ky_user_clock_find(const char *text, size_t len_bytes, uint64_t *at_bytes, size_t *bytes);
/*
 * Write the values of @clock to @text, @bytes long, as they stand in metadata, padded with blanks. KYMO_E_FORMAT: the
 * clock cannot be, or its values do not fit; KYMO_E_MEMORY.
 */
int ky_user_clock_values(const struct ky_clock_record *clock, char *text, size_t bytes,
			 struct kymo_error *err);

/* "shop-1234-20261121-153000": what LTTng calls the directory of a program's trace. */
#define KY_USER_TRACE_NAME_BYTES 64
void ky_user_trace_name(const struct ky_blob *blob, char name[KY_USER_TRACE_NAME_BYTES]);

#endif
