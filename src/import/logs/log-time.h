/* SPDX-License-Identifier: MIT */
/* Times as logs write them. Threads: one at a time per struct. */
#ifndef KY_IMPORT_LOG_TIME_H
#define KY_IMPORT_LOG_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ky_log_clock {
	int64_t now_s; /* when the file was written last: for times without a year or a date */
	/* The last hour in local time that was asked for, and its offset. */
	int64_t local_hour, local_offset_s;
	bool has_local;
};

/*
 * All of these read a time at *@text, before @end, move *@text behind it, and return true; *@ns is Unix time. Times without a zone
 * are local.
 */

/* "2026-11-26T18:24:53.123456+01:00", "2026-11-26 18:24:53,123 Z", "2026-11-26  8:24:53" and the like. */
bool ky_log_time_iso(struct ky_log_clock *clock, const char **text, const char *end, int64_t *ns);
/* "Nov 26 18:24:53": of the year that makes it the last such moment before now_s; Feb 29 is of a leap year. */
bool ky_log_time_bsd(struct ky_log_clock *clock, const char **text, const char *end, int64_t *ns);
/* "18:24:53.123456": of the 24 hours before now_s. */
bool ky_log_time_of_day(struct ky_log_clock *clock, const char **text, const char *end,
			int64_t *ns);
/* "1764181493.123456": seconds; exact to the ns. */
bool ky_log_time_seconds(const char **text, const char *end, int64_t *ns);
/*
 * By strftime()'s conversions Y y m b B h d e j H I p M S T F s Z z %, and f (a fraction of digits); other characters stand for
 * themselves.
 */
bool ky_log_time_format(struct ky_log_clock *clock, const char *format, const char **text,
			const char *end, int64_t *ns);
/* The first conversion of @format that is not in this list; NULL: all are in it. */
const char *ky_log_time_unknown(const char *format);
/* A number whose size tells its unit: s, ms, us or ns since 1970. False: no time is so large, or negative. */
bool ky_log_time_number(double value, int64_t *ns);
bool ky_log_time_integer(int64_t value, int64_t *ns);
/* The same as a text, "1764181493123" or "1764181493123.25". */
bool ky_log_time_count(const char **text, const char *end, int64_t *ns);

#endif
