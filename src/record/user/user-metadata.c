/* SPDX-License-Identifier: MIT */
#include "record/user/user-metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kymo/version.h>

#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/tsdl/tsdl.h"
#include "record/user/user-request.h"

/* The version of LTTng-UST whose layout this is; readers choose what to expect by it. */
#define UST_MAJOR 2
#define UST_MINOR 13

#define YEAR_9999_S INT64_C(253402300799)

/* ---- the blob ------------------------------------------------------------------------- */

int ky_user_blob_check(const struct ky_user_blob *blob, struct kymo_error *err)
{
	const struct ky_blob *head = blob->head;

	if (blob->bytes < sizeof(*head) || head->magic != KY_BLOB_MAGIC)
		return ky_error_set(err, KYMO_E_FORMAT, "the ring has no description of events");
	if (head->version != KY_CONTROL_VERSION)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a ring of version %" PRIu32
				    " of libkymo-trace, and this program knows version %d",
				    head->version, KY_CONTROL_VERSION);
	if (head->head_bytes != sizeof(*head) || head->bytes < sizeof(*head) ||
	    head->bytes > KY_BLOB_BYTES)
		return ky_error_set(err, KYMO_E_FORMAT,
				    "the ring's description of events is malformed");
	return KYMO_OK;
}

bool ky_user_blob_is_of_earlier_boot(const struct ky_blob *blob, const uint8_t boot_id[16])
{
	static const uint8_t unknown[16];
	struct timespec now, up;

	if (memcmp(boot_id, unknown, sizeof(unknown)) != 0 &&
	    memcmp(blob->clock.uuid, unknown, sizeof(unknown)) != 0)
		return memcmp(blob->clock.uuid, boot_id, sizeof(unknown)) != 0;
	if (clock_gettime(CLOCK_REALTIME, &now) < 0 || clock_gettime(CLOCK_BOOTTIME, &up) < 0)
		return false;
	return blob->start_realtime_ns / 1000000000 < now.tv_sec - up.tv_sec;
}

bool ky_user_blob_next(const struct ky_user_blob *blob, size_t *at, struct ky_user_event *event)
{
	const uint8_t *records = (const uint8_t *)(blob->head + 1);
	size_t room = blob->bytes - sizeof(*blob->head);
	bool is_good = false;

	while (*at < room && !is_good) {
		size_t bytes = ky_user_event_next(records + *at, records + room, event, &is_good);

		if (!bytes)
			return false;
		*at += bytes;
	}
	return is_good;
}

/* ---- fields --------------------------------------------------------------------------- */

static struct ky_field_class *number_new(struct ky_trace_class *trace,
					 const struct ky_field_record *field, bool is_float)
{
	bool is_signed = field->flags & KY_FIELD_SIGNED;
	uint8_t base = field->base == 2 || field->base == 8 || field->base == 16 ? field->base : 10;
	struct ky_field_class *cls;

	if (is_float) {
		cls = ky_field_class_new(trace, KY_FIELD_FLOAT);
		if (!cls)
			return NULL;
		cls->align_bits = 8;
		cls->num.length_bits = field->element_bytes * 8u;
		cls->num.big_endian = trace->big_endian;
	} else {
		cls = ky_int_new(trace, field->element_bytes * 8u, is_signed, base);
		if (!cls)
			return NULL;
	}
	if (field->flags & KY_FIELD_BIG_ENDIAN)
		cls->num.big_endian = true;
	else if (field->flags & KY_FIELD_LITTLE_ENDIAN)
		cls->num.big_endian = false;
	return cls;
}

static int user_metadata_add_enum(struct ky_trace_class *trace, struct ky_field_class *st,
				  const char *name, const struct ky_user_event *event,
				  const struct ky_field_record *field)
{
	const struct ky_label_record *labels =
		(const void *)((const char *)event->record + field->labels);
	struct ky_field_class *cls = ky_struct_add_enum(trace, st, name, field->element_bytes * 8u,
							field->flags & KY_FIELD_SIGNED);

	if (!cls)
		return KYMO_E_MEMORY;
	if (field->flags & (KY_FIELD_BIG_ENDIAN | KY_FIELD_LITTLE_ENDIAN))
		cls->num.big_endian = field->flags & KY_FIELD_BIG_ENDIAN;
	for (uint32_t i = 0; i < field->n_labels; i++) {
		if (ky_enum_add(trace, cls, (const char *)event->record + labels[i].name,
				labels[i].first, labels[i].last) < 0)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

static bool has_member(const struct ky_field_class *st, const char *name)
{
	for (size_t i = 0; i < st->st.n_members; i++) {
		if (strcmp(st->st.members[i].name, name) == 0)
			return true;
	}
	return false;
}

/*
 * The length field of a sequence may have the name of another field. So may a field whose name had a ':', which
 * metadata cannot have. The second field gets a number, since readers refuse two fields of one name.
 */
static void make_unique(const struct ky_field_class *st, char *name, size_t size)
{
	size_t len = strlen(name);

	for (unsigned int i = 2; has_member(st, name); i++)
		snprintf(name + len, size - len, "_%u", i);
}

/* "_NAME_length" before the elements, as LTTng has it; @name begins with '_' already. */
static struct ky_field_class *add_length(struct ky_trace_class *trace, struct ky_field_class *st,
					 const char *name)
{
	char text[KY_NAME_MAX + 32];

	snprintf(text, sizeof(text), "_%s_length", name);
	make_unique(st, text, sizeof(text));
	return ky_struct_add_int(trace, st, text, 32, false, 10);
}

static int add_dynamic(struct ky_trace_class *trace, struct ky_field_class *st, const char *name,
		       const struct ky_field_record *field)
{
	struct ky_field_class *length = add_length(trace, st, name), *element;

	if (!length)
		return KYMO_E_MEMORY;
	if (field->kind == KY_KIND_TEXT)
		return ky_struct_add_dynamic_text(trace, st, name, length) ? 0 : KYMO_E_MEMORY;
	/* A blob is a sequence of bytes: CTF 1.8 has nothing else for it. */
	element = field->kind == KY_KIND_BLOB
			  ? ky_int_new(trace, 8, false, 16)
			  : number_new(trace, field, field->flags & KY_FIELD_FLOAT_ELEMENTS);
	return element && ky_struct_add_sequence(trace, st, name, element, length) ? 0
										   : KYMO_E_MEMORY;
}

static int user_metadata_add_field(struct ky_trace_class *trace, struct ky_field_class *st,
				   const struct ky_user_event *event, unsigned int number)
{
	const struct ky_field_record *field = &event->record->fields[number];
	bool is_float = ky_user_field_is_float(field);
	struct ky_field_class *cls = NULL;
	struct ky_field_record plain = {.element_bytes = 1};
	char name[KY_NAME_MAX + 16];

	snprintf(name, sizeof(name), "_%s", ky_user_field_name(event, number));
	for (char *c = name; *c; c++)
		*c = *c == ':' ? '_' : *c;
	make_unique(st, name, sizeof(name));
	switch (field->kind) {
	case KY_KIND_STRING:
		cls = ky_struct_add_string(trace, st, name);
		break;
	case KY_KIND_TEXT_ARRAY:
		cls = ky_struct_add_text(trace, st, name, field->length);
		break;
	case KY_KIND_ENUM:
		return user_metadata_add_enum(trace, st, name, event, field);
	case KY_KIND_TEXT:
	case KY_KIND_BLOB:
	case KY_KIND_SEQUENCE:
		return add_dynamic(trace, st, name, field);
	case KY_KIND_ARRAY:
		cls = number_new(trace, field, is_float);
		cls = cls ? ky_struct_add_array(trace, st, name, cls, field->length) : NULL;
		break;
	default:
		cls = number_new(trace, field->kind == KY_KIND_BOOLEAN ? &plain : field, is_float);
		if (cls && ky_struct_add(trace, st, name, cls) < 0)
			cls = NULL;
	}
	return cls ? KYMO_OK : KYMO_E_MEMORY;
}

static struct ky_field_class *fields_of(struct ky_trace_class *trace,
					const struct ky_user_event *event)
{
	struct ky_field_class *st = ky_struct_new(trace);

	for (unsigned int i = 0; st && i < event->record->n_fields; i++) {
		if (event->record->fields[i].flags & KY_FIELD_FILTER_ONLY)
			continue;
		if (user_metadata_add_field(trace, st, event, i) < 0)
			return NULL;
	}
	return st;
}

/* ---- events --------------------------------------------------------------------------- */

static int user_metadata_add_event(struct ky_stream_class *stream,
				   const struct ky_user_event *event)
{
	char name[KY_USER_EVENT_NAME_BYTES];
	struct ky_event_class *cls;

	ky_user_event_name(event, name);
	cls = ky_event_class_new(stream, event->number, name);
	if (!cls)
		return KYMO_E_MEMORY;
	cls->has_loglevel = true;
	cls->loglevel = event->record->log_level;
	cls->payload = fields_of(stream->trace, event);
	return cls->payload ? KYMO_OK : KYMO_E_MEMORY;
}

/* The first record is the contexts'; the others, one per id. */
static int user_metadata_add_events(struct ky_stream_class *stream, const struct ky_user_blob *blob,
				    uint32_t *n_bad)
{
	uint64_t is_used[KY_EVENTS_MAX / 64] = {0};
	struct ky_user_event event;
	int ret = KYMO_OK;

	for (size_t at = 0; !ret && ky_user_blob_next(blob, &at, &event);) {
		uint64_t bit = UINT64_C(1) << event.number % 64;

		if (event.record->kind == KY_EVENT_CONTEXT) {
			if (stream->event_context || !event.record->n_fields)
				continue;
			stream->event_context = fields_of(stream->trace, &event);
			ret = stream->event_context ? KYMO_OK : KYMO_E_MEMORY;
			continue;
		}
		if (event.is_query || is_used[event.number / 64] & bit) {
			++*n_bad;
			continue;
		}
		is_used[event.number / 64] |= bit;
		ret = user_metadata_add_event(stream, &event);
	}
	return ret;
}

bool ky_user_blob_has_context(const struct ky_user_blob *blob, const char *name)
{
	struct ky_user_event event;

	for (size_t at = 0; ky_user_blob_next(blob, &at, &event);) {
		if (event.record->kind != KY_EVENT_CONTEXT)
			continue;
		for (unsigned int i = 0; i < event.record->n_fields; i++) {
			if (strcmp(ky_user_field_name(&event, i), name) == 0)
				return true;
		}
	}
	return false;
}

/* ---- the state dump's events ---------------------------------------------------------- */

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
	    user_metadata_add_events(stream, blob, n_bad) < 0)
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
