/* SPDX-License-Identifier: MIT */
#include "flow/graph/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/text.h"
#include "store/read/walk.h"

#define NS_PER_S INT64_C(1000000000)

/* ---- ranges ----------------------------------------------------------------------------- */

/* Widen the range by the events of one packet. */
static void packet_range(struct ky_walk *walk, const struct ky_packet_entry *entry,
			 uint64_t *counts, int64_t *begin_ns, int64_t *end_ns)
{
	ky_walk_go(walk, entry->offset_bytes);
	if (ky_walk_next(walk, NULL) > 0)
		(void)ky_decoder_count(walk->decoder, counts, begin_ns, end_ns, NULL);
}

/* First and last event among @packets: empty ones at the ends are passed over. */
static void packets_range(struct ky_walk *walk, const struct ky_packet_list *packets,
			  uint64_t *counts, int64_t *begin_ns, int64_t *end_ns)
{
	int64_t unused;

	for (size_t i = 0; i < packets->len && *begin_ns == INT64_MAX; i++) {
		unused = INT64_MIN;
		packet_range(walk, &packets->data[i], counts, begin_ns, &unused);
	}
	for (size_t i = packets->len; i-- > 0 && *end_ns == INT64_MIN;) {
		unused = INT64_MAX;
		packet_range(walk, &packets->data[i], counts, &unused, end_ns);
	}
}

int ky_packets_range(const struct ky_stream *stream, const struct ky_packet_list *packets,
		     int64_t *begin_ns, int64_t *end_ns)
{
	uint64_t *counts = calloc(stream->trace->cls->events.len + 1, sizeof(*counts));
	struct ky_walk walk;
	int ret = counts ? ky_walk_init(&walk, stream, NULL) : KYMO_E_MEMORY;

	*begin_ns = INT64_MAX;
	*end_ns = INT64_MIN;
	if (ret == KYMO_OK) {
		packets_range(&walk, packets, counts, begin_ns, end_ns);
		ky_walk_fini(&walk);
	}
	free(counts);
	return ret;
}

int ky_stream_range(const struct ky_stream *stream, int64_t *begin_ns, int64_t *end_ns)
{
	struct ky_packet_list packets = KY_VEC_INIT;
	int ret = ky_stream_packets(stream, &packets, NULL);

	/* Damage further on: what stands before it counts. */
	if (ret == KYMO_E_FORMAT)
		ret = KYMO_OK;
	if (ret == KYMO_OK)
		ret = ky_packets_range(stream, &packets, begin_ns, end_ns);
	ky_vec_fini(&packets);
	return ret;
}

bool ky_is_of_before(const struct ky_trace_class *trace, const struct ky_event_class *cls)
{
	const struct ky_env *tracer = ky_env_find(trace, "tracer_name");

	return tracer && tracer->is_text && strcmp(tracer->text, "perf") == 0 && cls->name &&
	       strncmp(cls->name, "perf_", 5) == 0;
}

/* By ky_event_class.index: is it what was recorded? False when all of @trace is. */
static bool mark_recorded(const struct ky_trace_class *trace, uint8_t *recorded)
{
	bool any = false;

	for (size_t i = 0; i < trace->events.len; i++) {
		recorded[i] = !ky_is_of_before(trace, trace->events.data[i]);
		any |= !recorded[i];
	}
	return any;
}

/* The first event with a time among those that are wanted of the walk's decoder. */
static int64_t first_wanted(struct ky_walk *walk, const struct ky_packet_list *packets)
{
	_Alignas(KY_EVENT_ALIGN) struct ky_event event;

	for (size_t i = 0; i < packets->len; i++) {
		ky_walk_go(walk, packets->data[i].offset_bytes);
		if (ky_walk_next(walk, NULL) <= 0)
			continue;
		while (ky_decoder_next(walk->decoder, &event, 1, NULL) > 0) {
			if (event.ns != INT64_MIN)
				return event.ns;
		}
	}
	return INT64_MAX;
}

/* *@begin_ns is that of @stream's first event; here of the first one that is not of the time before. */
static int skip_before(const struct ky_stream *stream, int64_t *begin_ns)
{
	const struct ky_trace_class *trace = stream->trace->cls;
	struct ky_packet_list packets = KY_VEC_INIT;
	uint8_t *recorded = calloc(trace->events.len + 1, 1);
	struct ky_walk walk;
	int ret = recorded ? KYMO_OK : KYMO_E_MEMORY;

	if (ret == KYMO_OK && mark_recorded(trace, recorded)) {
		ret = ky_stream_packets(stream, &packets, NULL);
		if (ret != KYMO_E_MEMORY)
			ret = ky_walk_init(&walk, stream, NULL);
		if (ret == KYMO_OK) {
			ky_decoder_want(walk.decoder, recorded);
			*begin_ns = first_wanted(&walk, &packets);
			ky_walk_fini(&walk);
		}
		ky_vec_fini(&packets);
	}
	free(recorded);
	return ret;
}

int ky_set_range(const struct ky_trace_set *set, int64_t *begin_ns, int64_t *end_ns,
		 struct kymo_error *err)
{
	int64_t first = INT64_MAX, last = INT64_MIN, before = INT64_MAX, begin, end;

	ky_vec_foreach(&set->streams, stream) {
		if (!(*stream)->file.data)
			continue;
		if (ky_stream_range(*stream, &begin, &end) < 0)
			return ky_error_nomem(err);
		before = begin < before ? begin : before;
		last = end > last ? end : last;
		if (skip_before(*stream, &begin) < 0)
			return ky_error_nomem(err);
		first = begin < first ? begin : first;
	}
	if (first == INT64_MAX)
		first = before; /* nothing else is there */
	*begin_ns = first == INT64_MAX ? INT64_MIN : first;
	*end_ns = last;
	return KYMO_OK;
}

bool ky_set_intersection(const struct ky_trace_set *set, int64_t *begin_ns, int64_t *end_ns)
{
	int64_t begin, end;

	*begin_ns = INT64_MIN;
	*end_ns = INT64_MAX;
	ky_vec_foreach(&set->streams, stream) {
		if (!(*stream)->file.data || ky_stream_range(*stream, &begin, &end) < 0 ||
		    begin == INT64_MAX)
			continue;
		*begin_ns = begin > *begin_ns ? begin : *begin_ns;
		*end_ns = end < *end_ns ? end : *end_ns;
	}
	return *begin_ns <= *end_ns && *begin_ns != INT64_MIN;
}

/* ---- times ------------------------------------------------------------------------------ */

/* Digits of a fraction of a second, up to nine; NULL when there are none or more. */
static const char *read_fraction(const char *at, int64_t *ns)
{
	int64_t unit = NS_PER_S / 10;

	*ns = 0;
	if (*at != '.')
		return at;
	at++;
	if (*at < '0' || *at > '9')
		return NULL;
	for (; *at >= '0' && *at <= '9'; at++, unit /= 10) {
		if (!unit)
			return NULL;
		*ns += (*at - '0') * unit;
	}
	return at;
}

static int read_seconds(const char *text, int64_t *ns)
{
	bool negative = *text == '-';
	long long seconds;
	int64_t fraction;
	char *end;

	text += negative;
	if (*text < '0' || *text > '9')
		return KYMO_E_INVALID;
	seconds = strtoll(text, &end, 10);
	if (seconds >= INT64_MAX / NS_PER_S)
		return KYMO_E_INVALID;
	text = read_fraction(end, &fraction);
	if (!text || *text)
		return KYMO_E_INVALID;
	*ns = seconds * NS_PER_S + fraction;
	if (negative)
		*ns = -*ns;
	return KYMO_OK;
}

static int two_digits(const char **at, int max, int *value)
{
	const char *text = *at;

	if (text[0] < '0' || text[0] > '9' || text[1] < '0' || text[1] > '9')
		return KYMO_E_INVALID;
	*value = (text[0] - '0') * 10 + (text[1] - '0');
	*at += 2;
	return *value <= max ? KYMO_OK : KYMO_E_INVALID;
}

/* "hh:mm[:ss[.fraction]]" and nothing behind it. */
static int read_time(const char *at, struct tm *tm, int64_t *fraction)
{
	*fraction = 0;
	if (two_digits(&at, 23, &tm->tm_hour) < 0 || *at++ != ':' ||
	    two_digits(&at, 59, &tm->tm_min) < 0)
		return KYMO_E_INVALID;
	tm->tm_sec = 0;
	if (*at == ':') {
		at++;
		if (two_digits(&at, 60, &tm->tm_sec) < 0)
			return KYMO_E_INVALID;
		at = read_fraction(at, fraction);
	}
	return at && !*at ? KYMO_OK : KYMO_E_INVALID;
}

static int from_tm(struct tm *tm, int64_t fraction, bool gmt, int64_t *ns)
{
	time_t seconds;

	tm->tm_isdst = -1;
	seconds = gmt ? timegm(tm) : mktime(tm);
	if (seconds >= INT64_MAX / NS_PER_S || seconds <= INT64_MIN / NS_PER_S)
		return KYMO_E_INVALID;
	*ns = (int64_t)seconds * NS_PER_S + fraction;
	return KYMO_OK;
}

static int read_date(const char *text, bool gmt, int64_t *ns)
{
	struct tm tm = {.tm_mday = 1};
	int64_t fraction = 0;
	int used = 0;

	if (sscanf(text, "%4d-%2d-%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &used) != 3 ||
	    used != 10 || tm.tm_mon < 1 || tm.tm_mon > 12 || tm.tm_mday < 1 || tm.tm_mday > 31)
		return KYMO_E_INVALID;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	text += used;
	if (*text && ((*text != ' ' && *text != 'T') || read_time(text + 1, &tm, &fraction) < 0))
		return KYMO_E_INVALID;
	return from_tm(&tm, fraction, gmt, ns);
}

static int read_time_of_day(const char *text, int64_t begin_ns, bool gmt, int64_t *ns)
{
	time_t day = (time_t)(begin_ns / NS_PER_S);
	int64_t fraction;
	struct tm tm;

	if (begin_ns == INT64_MIN || !(gmt ? gmtime_r(&day, &tm) : localtime_r(&day, &tm)) ||
	    read_time(text, &tm, &fraction) < 0)
		return KYMO_E_INVALID;
	return from_tm(&tm, fraction, gmt, ns);
}

static int read_percent(const char *text, int64_t begin_ns, int64_t end_ns, int64_t *ns)
{
	char *end;
	double percent = strtod(text, &end), part;
	uint64_t span_ns = (uint64_t)end_ns - (uint64_t)begin_ns;

	if (strcmp(end, "%") != 0 || !(percent >= 0) || percent > 100 || begin_ns == INT64_MIN)
		return KYMO_E_INVALID;
	/* Where a clock runs over, the range may be longer than a signed number can say. */
	part = percent / 100 * (double)span_ns;
	if (part < (double)span_ns)
		span_ns = (uint64_t)part;
	*ns = (int64_t)((uint64_t)begin_ns + span_ns);
	return KYMO_OK;
}

static bool has_unit(const char *text)
{
	size_t len = strlen(text);

	return len && ((text[len - 1] >= 'a' && text[len - 1] <= 'z'));
}

static int read_relative(const char *text, int64_t origin_ns, int64_t *ns)
{
	uint64_t duration;

	if (origin_ns == INT64_MIN || ky_parse_duration(text + 1, &duration) < 0 ||
	    duration > INT64_MAX)
		return KYMO_E_INVALID;
	if (text[0] == '-')
		return __builtin_sub_overflow(origin_ns, (int64_t)duration, ns) ? KYMO_E_INVALID
										: KYMO_OK;
	return __builtin_add_overflow(origin_ns, (int64_t)duration, ns) ? KYMO_E_INVALID : KYMO_OK;
}

int ky_parse_time(const char *text, int64_t begin_ns, int64_t end_ns, bool gmt, int64_t *ns)
{
	size_t len = strlen(text);

	if (text[0] == '+')
		return read_relative(text, begin_ns, ns);
	/* "-5" is five seconds before the origin, "-5s" five before the trace's end. */
	if (text[0] == '-' && has_unit(text))
		return read_relative(text, end_ns, ns);
	if (len && text[len - 1] == '%')
		return read_percent(text, begin_ns, end_ns, ns);
	if (len >= 10 && text[4] == '-')
		return read_date(text, gmt, ns);
	if (len >= 5 && text[2] == ':')
		return read_time_of_day(text, begin_ns, gmt, ns);
	return read_seconds(text, ns);
}
