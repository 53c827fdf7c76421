/* SPDX-License-Identifier: MIT */
/*
 * The clock in the metadata of programs. It is known best when a recording has ended, and there may be many thousand
 * programs by then: their metadata has room for other values, which are put in place of the first ones.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/tsdl/tsdl.h"
#include "record/rings/user-metadata.h"

/* Four lines of at most 36 bytes. */
#define VALUES_BYTES 144

struct ky_clock_class *ky_user_clock_class(struct ky_trace_class *trace,
					   const struct ky_clock_record *clock,
					   struct kymo_error *err)
{
	bool is_tsc = clock->kind == KY_CLOCK_RECORD_TSC;
	struct ky_clock_class *cls = ky_clock_class_new(trace, is_tsc ? "tsc" : "monotonic");
	double cycles = (double)clock->precision_ns * (double)clock->frequency_hz / 1e9;

	if (!cls) {
		ky_error_nomem(err);
		return NULL;
	}
	cls->description = is_tsc ? "Time stamp counter" : "Monotonic Clock";
	cls->has_uuid = true;
	memcpy(cls->uuid, clock->uuid, sizeof(cls->uuid));
	cls->is_unix_epoch = true;
	cls->frequency_hz = clock->frequency_hz;
	cls->offset_s = clock->offset_s;
	cls->offset_cycles = clock->offset_cycles;
	cls->precision_cycles = cycles < 1e18 ? (uint64_t)cycles : 0;
	return ky_clock_finish(cls, err) < 0 ? NULL : cls;
}

/* The lines of the clock's values, and the blanks behind them; false: there are none. */
static bool find_values(const char *text, size_t len, size_t *at, size_t *bytes)
{
	static const char block[] = "\nclock {\n",
			  first[] = "\n\tfreq = ", last[] = "\n\toffset = ";
	const char *end = text + len, *clock, *begin, *offset, *line_end;

	clock = memmem(text, len, block, sizeof(block) - 1);
	begin = clock ? memmem(clock, (size_t)(end - clock), first, sizeof(first) - 1) : NULL;
	offset = begin ? memmem(begin, (size_t)(end - begin), last, sizeof(last) - 1) : NULL;
	line_end = offset ? memchr(offset + 1, '\n', (size_t)(end - offset - 1)) : NULL;
	if (!line_end)
		return false;
	*at = (size_t)(begin + 1 - text);
	*bytes = (size_t)(line_end - begin - 1);
	return true;
}

int ky_user_clock_make_room(char **text, size_t *len_bytes, struct kymo_error *err)
{
	size_t at, bytes, more;
	char *larger;

	if (!find_values(*text, *len_bytes, &at, &bytes) || bytes >= VALUES_BYTES)
		return KYMO_OK;
	more = VALUES_BYTES - bytes;
	larger = realloc(*text, *len_bytes + more + 1);
	if (!larger) {
		free(*text);
		*text = NULL;
		return ky_error_nomem(err);
	}
	at += bytes;
	memmove(larger + at + more, larger + at, *len_bytes - at + 1);
	memset(larger + at, ' ', more);
	*text = larger;
	*len_bytes += more;
	return KYMO_OK;
}

bool ky_user_clock_find(const char *text, size_t len_bytes, uint64_t *at_bytes, size_t *bytes)
{
	size_t at;

	if (!find_values(text, len_bytes, &at, bytes))
		return false;
	*at_bytes = at;
	return true;
}

int ky_user_clock_values(const struct ky_clock_record *clock, char *text, size_t bytes,
			 struct kymo_error *err)
{
	struct ky_trace_class *trace = ky_trace_class_new();
	struct ky_clock_class *cls = trace ? ky_user_clock_class(trace, clock, err) : NULL;
	struct ky_strbuf values = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	if (cls)
		ky_tsdl_put_clock_values(&values, cls);
	if (!trace || ky_strbuf_failed(&values))
		ret = ky_error_nomem(err);
	else if (!cls)
		ret = KYMO_E_FORMAT;
	else if (values.len - 1 > bytes)
		ret = ky_error_set(err, KYMO_E_FORMAT,
				   "the metadata has no room for the clock's values");
	if (!ret) {
		/* Without the last line feed: the metadata has one. */
		memset(text, ' ', bytes);
		memcpy(text, values.data, values.len - 1);
	}
	ky_strbuf_fini(&values);
	ky_trace_class_free(trace);
	return ret;
}
