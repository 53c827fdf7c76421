/* SPDX-License-Identifier: MIT */
#include "record/rings/user-metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <kymo/version.h>

#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/tsdl/tsdl.h"

/* The version of LTTng-UST whose layout this is; readers choose what to expect by it. */
#define UST_MAJOR 2
#define UST_MINOR 13

#define YEAR_9999_S INT64_C(253402300799)

#define PROCNAME_BYTES 17 /* LTTng's */

const char *ky_user_dump_event_name(enum ky_user_dump_event event)
{
	static const char *const names[] = {
		[KY_USER_DUMP_START] = "lttng_ust_statedump:start",
		[KY_USER_DUMP_END] = "lttng_ust_statedump:end",
		[KY_USER_DUMP_BIN_INFO] = "lttng_ust_statedump:bin_info",
		[KY_USER_DUMP_BUILD_ID] = "lttng_ust_statedump:build_id",
		[KY_USER_DUMP_DEBUG_LINK] = "lttng_ust_statedump:debug_link",
		[KY_USER_DUMP_PROCNAME] = "lttng_ust_statedump:procname",
		[KY_USER_DUMP_LOAD] = "lttng_ust_lib:load",
		[KY_USER_DUMP_LOAD_BUILD_ID] = "lttng_ust_lib:build_id",
		[KY_USER_DUMP_LOAD_DEBUG_LINK] = "lttng_ust_lib:debug_link",
		[KY_USER_DUMP_UNLOAD] = "lttng_ust_lib:unload",
	};

	return names[event];
}

static struct ky_field_class *dump_event(struct ky_stream_class *stream, enum ky_user_dump_event id)
{
	struct ky_event_class *cls = ky_event_class_new(stream, id, ky_user_dump_event_name(id));

	if (!cls)
		return NULL;
	cls->has_loglevel = true;
	cls->loglevel = 13; /* DEBUG_LINE, as LTTng's */
	cls->payload = ky_struct_new(stream->trace);
	return cls->payload;
}

/* An executable or library: @info, with more about it in two more events. */
static int add_dump_binary(struct ky_stream_class *stream, enum ky_user_dump_event info,
			   enum ky_user_dump_event build_id, enum ky_user_dump_event debug_link)
{
	struct ky_trace_class *trace = stream->trace;
	struct ky_field_class *st = dump_event(stream, info), *length;

	if (!st || !ky_struct_add_int(trace, st, "_baddr", 64, false, 16) ||
	    !ky_struct_add_int(trace, st, "_memsz", 64, false, 10) ||
	    !ky_struct_add_string(trace, st, "_path") ||
	    (info == KY_USER_DUMP_BIN_INFO &&
	     !ky_struct_add_int(trace, st, "_is_pic", 8, false, 10)) ||
	    !ky_struct_add_int(trace, st, "_has_build_id", 8, false, 10) ||
	    !ky_struct_add_int(trace, st, "_has_debug_link", 8, false, 10))
		return KYMO_E_MEMORY;
	st = dump_event(stream, build_id);
	if (!st || !ky_struct_add_int(trace, st, "_baddr", 64, false, 16))
		return KYMO_E_MEMORY;
	length = ky_struct_add_int(trace, st, "__build_id_length", 64, false, 10);
	if (!length || !ky_struct_add_sequence(trace, st, "_build_id",
					       ky_int_new(trace, 8, false, 16), length))
		return KYMO_E_MEMORY;
	st = dump_event(stream, debug_link);
	return st && ky_struct_add_int(trace, st, "_baddr", 64, false, 16) &&
			       ky_struct_add_int(trace, st, "_crc", 32, false, 10) &&
			       ky_struct_add_string(trace, st, "_filename")
		       ? KYMO_OK
		       : KYMO_E_MEMORY;
}

static int add_dump_binaries(struct ky_stream_class *stream)
{
	struct ky_field_class *st;

	if (add_dump_binary(stream, KY_USER_DUMP_BIN_INFO, KY_USER_DUMP_BUILD_ID,
			    KY_USER_DUMP_DEBUG_LINK) < 0 ||
	    add_dump_binary(stream, KY_USER_DUMP_LOAD, KY_USER_DUMP_LOAD_BUILD_ID,
			    KY_USER_DUMP_LOAD_DEBUG_LINK) < 0)
		return KYMO_E_MEMORY;
	st = dump_event(stream, KY_USER_DUMP_UNLOAD);
	return st && ky_struct_add_int(stream->trace, st, "_baddr", 64, false, 16) ? KYMO_OK
										   : KYMO_E_MEMORY;
}

/* Its context: what readers that look addresses up (babeltrace2 --debug-info) want there. */
static int add_dump_stream(struct ky_trace_class *trace, struct ky_clock_class *clock, bool has_ip)
{
	struct ky_stream_class *stream =
		ky_lttng_layout_stream(trace, KY_USER_DUMP_STREAM, clock, true);
	struct ky_field_class *st;

	if (!stream)
		return KYMO_E_MEMORY;
	stream->event_context = ky_struct_new(trace);
	if (!stream->event_context ||
	    !ky_struct_add_int(trace, stream->event_context, "_vpid", 32, true, 10) ||
	    (has_ip && !ky_struct_add_int(trace, stream->event_context, "_ip", 64, false, 16)))
		return KYMO_E_MEMORY;
	if (!dump_event(stream, KY_USER_DUMP_START) || !dump_event(stream, KY_USER_DUMP_END) ||
	    add_dump_binaries(stream) < 0)
		return KYMO_E_MEMORY;
	st = dump_event(stream, KY_USER_DUMP_PROCNAME);
	return st && ky_struct_add_text(trace, st, "_procname", PROCNAME_BYTES) ? KYMO_OK
										: KYMO_E_MEMORY;
}

/* ---- environment, clock --------------------------------------------------------------- */

/* Seconds since 1970, within what can be shown. */
static time_t start_s(const struct ky_blob *blob)
{
	int64_t s = blob->start_realtime_ns / 1000000000;

	return s < 0 || s > YEAR_9999_S ? 0 : (time_t)s;
}

/* At most @room - 1 bytes, what is no letter, digit, '_', '-', '.' replaced. */
static void user_metadata_plain_text(const char *from, size_t from_bytes, char *to, size_t room)
{
	size_t n = 0;

	for (; n + 1 < room && n < from_bytes && from[n]; n++) {
		char c = from[n];
		bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				(c >= '0' && c <= '9') || c == '-' || (c == '.' && n);

		to[n] = c;
		if (!is_plain)
			to[n] = '_';
	}
	to[n] = 0;
}

void ky_user_trace_name(const struct ky_blob *blob, char name[KY_USER_TRACE_NAME_BYTES])
{
	char proc[sizeof(blob->procname) + 1], date[32];
	time_t start = start_s(blob);
	struct tm tm;

	if (blob->flags & KY_BLOB_SHARED) {
		snprintf(name, KY_USER_TRACE_NAME_BYTES, "64-bit");
		return;
	}
	user_metadata_plain_text(blob->procname, sizeof(blob->procname), proc, sizeof(proc));
	strftime(date, sizeof(date), "%Y%m%d-%H%M%S", localtime_r(&start, &tm));
	snprintf(name, KY_USER_TRACE_NAME_BYTES, "%s-%" PRIu32 "-%s", proc[0] ? proc : "_",
		 blob->pid, date);
}

static int user_metadata_add_text(struct ky_trace_class *trace, const char *name, const char *text,
				  size_t bytes)
{
	char copy[260];

	user_metadata_plain_text(text, bytes, copy, sizeof(copy));
	return ky_env_add_text(trace, name, copy);
}

static int user_metadata_add_environment(struct ky_trace_class *trace, const struct ky_blob *blob,
					 const char *trace_name)
{
	bool is_shared = blob->flags & KY_BLOB_SHARED;
	const struct {
		const char *name;
		int64_t value;
	} numbers[] = {
		{"tracer_major", UST_MAJOR},
		{"tracer_minor", UST_MINOR},
		{"tracer_patchlevel", 0},
		{"tracer_buffering_id", is_shared ? blob->uid : blob->pid},
		{"architecture_bit_width", 64},
		{"vpid", blob->pid}, /* the last one: of one program */
	};
	size_t n_numbers = sizeof(numbers) / sizeof(numbers[0]) - is_shared;
	time_t start = start_s(blob);
	char date[32];
	struct tm tm;
	int ret;

	strftime(date, sizeof(date), "%Y%m%dT%H%M%S%z", localtime_r(&start, &tm));
	ret = ky_env_add_text(trace, "domain", "ust");
	ret = ret ? ret : ky_env_add_text(trace, "tracer_name", "lttng-ust");
	ret = ret ? ret
		  : ky_env_add_text(trace, "tracer_buffering_scheme", is_shared ? "uid" : "pid");
	for (size_t i = 0; !ret && i < n_numbers; i++)
		ret = ky_env_add_number(trace, numbers[i].name, numbers[i].value);
	ret = ret ? ret : ky_env_add_text(trace, "trace_name", trace_name);
	ret = ret ? ret : ky_env_add_text(trace, "trace_creation_datetime", date);
	ret = ret ? ret
		  : user_metadata_add_text(trace, "hostname", blob->hostname,
					   sizeof(blob->hostname));
	if (!ret && !is_shared)
		ret = user_metadata_add_text(trace, "procname", blob->procname,
					     sizeof(blob->procname));
	if (!ret && !is_shared)
		ret = ky_env_add_text(trace, "vpid_datetime", date);
	return ret ? ret : ky_env_add_text(trace, "kymo_version", KYMO_VERSION);
}

/* ---- all of it ------------------------------------------------------------------------ */

static int user_metadata_build(struct ky_trace_class *trace, const struct ky_user_blob *blob,
			       const struct ky_clock_record *clock_record, const char *trace_name,
			       uint32_t *n_bad, struct kymo_error *err)
{
	struct ky_stream_class *stream;
	struct ky_clock_class *clock;

	trace->has_uuid = true;
	trace->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	memcpy(trace->uuid, blob->head->trace_uuid, sizeof(trace->uuid));
	clock = ky_user_clock_class(trace, clock_record, err);
	if (!clock)
		return err ? err->code : KYMO_E_FORMAT;
	if (user_metadata_add_environment(trace, blob->head, trace_name) < 0 ||
	    ky_lttng_layout_trace(trace) < 0)
		return ky_error_nomem(err);
	stream = ky_lttng_layout_stream(trace, 0, clock, true);
	/*
	 * The program's events are the last ones: when it describes more of them, the text gets longer at its end. Viewers
	 * of LTTng's protocol get only what is new.
	 */
	if (!stream || add_dump_stream(trace, clock, ky_user_blob_has_context(blob, "ip")) < 0 ||
	    ky_user_metadata_events(stream, blob, n_bad) < 0)
		return ky_error_nomem(err);
	return ky_trace_class_finish(trace, true, err);
}

int ky_user_metadata(const struct ky_user_blob *blob, const struct ky_clock_record *clock,
		     const char *trace_name, char **text, size_t *len_bytes, uint32_t *n_bad,
		     struct kymo_error *err)
{
	struct ky_trace_class *trace = ky_trace_class_new();
	int ret;

	*n_bad = 0;
	if (!trace)
		return ky_error_nomem(err);
	ret = user_metadata_build(trace, blob, clock, trace_name, n_bad, err);
	if (!ret)
		ret = ky_tsdl_write(trace, text, len_bytes, err);
	ky_trace_class_free(trace);
	if (!ret)
		ret = ky_user_clock_make_room(text, len_bytes, err);
	return ret;
}
