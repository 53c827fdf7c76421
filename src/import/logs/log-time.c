/* SPDX-License-Identifier: MIT */
#include "import/logs/log-time.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
				   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

/* Days since 1970 of a date of the Gregorian calendar. */
static int64_t days_of(int64_t year, int month, int day)
{
	int64_t era, of_era, day_of_year;

	year -= month <= 2;
	era = (year >= 0 ? year : year - 399) / 400;
	of_era = year - era * 400;
	day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719468;
}

static int days_in(int64_t year, int month)
{
	bool is_december = month == 12;

	return (int)(days_of(year + is_december, is_december ? 1 : month + 1, 1) -
		     days_of(year, month, 1));
}

/* @seconds of local time, as if it were UTC, to Unix time. */
static int64_t log_time_from_local(struct ky_log_clock *clock, int64_t seconds)
{
	int64_t hour = seconds / 3600;

	if (!clock->has_local || clock->local_hour != hour) {
		time_t guess = (time_t)seconds;
		struct tm tm;

		/* Fields of the wall clock, which mktime() takes for local ones. */
		if (!gmtime_r(&guess, &tm))
			return seconds;
		tm.tm_isdst = -1;
		clock->local_offset_s = seconds - (int64_t)mktime(&tm);
		clock->local_hour = hour;
		clock->has_local = true;
	}
	return seconds - clock->local_offset_s;
}

/* False: the time is beyond the years of 64 bits (1678 to 2262). */
static bool log_time_add(int64_t *ns, int64_t seconds)
{
	int64_t whole;

	return !__builtin_mul_overflow(seconds, SECOND, &whole) &&
	       !__builtin_add_overflow(*ns, whole, ns);
}

/* @n digits at most, @min at least. */
static bool digits(const char **text, const char *end, int min, int n, int *value)
{
	int i = 0;

	*value = 0;
	for (; i < n && *text < end && isdigit((unsigned char)**text); i++)
		*value = *value * 10 + (*(*text)++ - '0');
	return i >= min;
}

static bool skip_char(const char **text, const char *end, char c)
{
	if (*text >= end || **text != c)
		return false;
	++*text;
	return true;
}

/* The digits of a fraction, in ns; further ones are skipped. */
static int64_t fraction(const char **text, const char *end)
{
	int64_t ns = 0, unit = SECOND / 10;

	for (; *text < end && isdigit((unsigned char)**text); ++*text, unit /= 10)
		ns += (**text - '0') * unit;
	return ns;
}

/* "18:24:53" and a fraction behind '.' or ','. */
static bool clock_time(const char **text, const char *end, int64_t *seconds, int64_t *ns)
{
	int hour, minute, second = 0;

	if (!digits(text, end, 1, 2, &hour) || !skip_char(text, end, ':') ||
	    !digits(text, end, 2, 2, &minute) || hour > 24 || minute > 59)
		return false;
	if (skip_char(text, end, ':') && (!digits(text, end, 2, 2, &second) || second > 60))
		return false;
	*seconds = hour * 3600 + minute * 60 + second;
	*ns = 0;
	if (*text + 1 < end && (**text == '.' || **text == ',') &&
	    isdigit((unsigned char)(*text)[1])) {
		++*text;
		*ns = fraction(text, end);
	}
	return true;
}

/* The letters of a zone's name end here: "Zone 7" and "UTCx" are words. */
static bool log_time_ends_word(const char *at, const char *end)
{
	return at >= end || !(isalnum((unsigned char)*at) || *at == '_');
}

/* "Z", "+01:00", "+0100", "UTC", with a blank before it or not. False: none is there. */
static bool zone(const char **text, const char *end, int64_t *offset_s)
{
	const char *at = *text;
	int hour, minute = 0;
	bool is_west;

	at += at < end && *at == ' ';
	*offset_s = 0;
	if (end - at >= 3 && (memcmp(at, "UTC", 3) == 0 || memcmp(at, "GMT", 3) == 0) &&
	    log_time_ends_word(at + 3, end)) {
		*text = at + 3;
		return true;
	}
	if (at < end && *at == 'Z' && log_time_ends_word(at + 1, end)) {
		*text = at + 1;
		return true;
	}
	if (at >= end || (*at != '+' && *at != '-'))
		return false;
	is_west = *at++ == '-';
	if (!digits(&at, end, 2, 2, &hour))
		return false;
	skip_char(&at, end, ':');
	if (at < end && isdigit((unsigned char)*at) && !digits(&at, end, 2, 2, &minute))
		return false;
	*offset_s = (hour * 3600 + minute * 60) * (is_west ? -1 : 1);
	*text = at;
	return true;
}

bool ky_log_time_iso(struct ky_log_clock *clock, const char **text, const char *end, int64_t *ns)
{
	const char *at = *text;
	int64_t seconds, offset_s, day_s;
	int year, month, day;
	char separator;

	if (!digits(&at, end, 4, 4, &year) || at >= end)
		return false;
	separator = *at++;
	if ((separator != '-' && separator != '/' && separator != '.') ||
	    !digits(&at, end, 2, 2, &month) || !skip_char(&at, end, separator) ||
	    !digits(&at, end, 2, 2, &day) || !month || month > 12 || !day || day > 31 ||
	    at >= end || (*at != 'T' && *at != ' ' && *at != 't' && *at != '_'))
		return false;
	at++;
	/* MariaDB: "2021-11-09  5:13:11". */
	if (end - at > 2 && at[-1] == ' ' && *at == ' ' && at[2] == ':')
		at++;
	if (!clock_time(&at, end, &seconds, ns))
		return false;
	day_s = days_of(year, month, day) * 86400 + seconds;
	day_s = zone(&at, end, &offset_s) ? day_s - offset_s : log_time_from_local(clock, day_s);
	*text = at;
	return log_time_add(ns, day_s);
}

static int month_of(const char *at)
{
	for (int i = 0; i < 12; i++)
		if (strncasecmp(at, months[i], 3) == 0)
			return i + 1;
	return 0;
}

static int year_of(int64_t seconds)
{
	time_t time = (time_t)seconds;
	struct tm tm;

	return localtime_r(&time, &tm) ? tm.tm_year + 1900 : 1970;
}

bool ky_log_time_bsd(struct ky_log_clock *clock, const char **text, const char *end, int64_t *ns)
{
	const char *at = *text;
	int64_t seconds, whole;
	int month, day, year = year_of(clock->now_s);

	if (end - at < 12 || !(month = month_of(at)))
		return false;
	at += 3;
	while (at < end && *at == ' ')
		at++;
	if (!digits(&at, end, 1, 2, &day) || !day || day > 31 || !skip_char(&at, end, ' ') ||
	    !clock_time(&at, end, &seconds, ns))
		return false;
	/* A day of grace: files are written a moment after their last line, and clocks differ. */
	for (int i = 0; i <= 8; i++, year--) {
		if (day > days_in(year, month))
			continue;
		whole = log_time_from_local(clock, days_of(year, month, day) * 86400 + seconds);
		if (whole > clock->now_s + 86400)
			continue;
		*text = at;
		return log_time_add(ns, whole);
	}
	return false;
}

bool ky_log_time_of_day(struct ky_log_clock *clock, const char **text, const char *end, int64_t *ns)
{
	time_t now = (time_t)clock->now_s;
	struct tm tm;
	int64_t seconds, day_s, whole;

	if (!clock_time(text, end, &seconds, ns) || !localtime_r(&now, &tm))
		return false;
	day_s = days_of(tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday) * 86400;
	whole = log_time_from_local(clock, day_s + seconds);
	/* An hour of grace: clocks differ. */
	if (whole > clock->now_s + 3600)
		whole = log_time_from_local(clock, day_s - 86400 + seconds);
	return log_time_add(ns, whole);
}

bool ky_log_time_seconds(const char **text, const char *end, int64_t *ns)
{
	const char *at = *text;
	int64_t seconds = 0;
	int n = 0;

	for (; at < end && isdigit((unsigned char)*at) && n < 11; at++, n++)
		seconds = seconds * 10 + (*at - '0');
	if (!n || (at < end && isdigit((unsigned char)*at)) || seconds > INT64_MAX / SECOND - 1)
		return false;
	*ns = seconds * SECOND;
	if (at + 1 < end && *at == '.' && isdigit((unsigned char)at[1])) {
		at++;
		*ns += fraction(&at, end);
	}
	*text = at;
	return true;
}

const char *ky_log_time_unknown(const char *format)
{
	while ((format = strchr(format, '%'))) {
		if (!format[1] || !strchr("YymbBhdejHIpMSTFsZzf%", format[1]))
			return format;
		format += 2;
	}
	return NULL;
}

struct parts {
	int64_t year, fraction_ns, offset_s, epoch_s;
	int month, day, day_of_year, hour, minute, second;
	bool has_zone, has_epoch, is_pm, has_half;
};

static bool part(const char conversion, const char **text, const char *end, struct parts *parts)
{
	int value = 0;

	switch (conversion) {
	case 'Y':
		if (!digits(text, end, 4, 4, &value))
			return false;
		parts->year = value;
		return true;
	case 'y':
		if (!digits(text, end, 2, 2, &value))
			return false;
		parts->year = value + (value < 69 ? 2000 : 1900);
		return true;
	case 'm':
		return digits(text, end, 1, 2, &parts->month) && parts->month >= 1 &&
		       parts->month <= 12;
	case 'b':
	case 'B':
	case 'h':
		if (end - *text < 3 || !(parts->month = month_of(*text)))
			return false;
		*text += 3;
		while (conversion == 'B' && *text < end && isalpha((unsigned char)**text))
			++*text;
		return true;
	case 'e':
	case 'd':
		*text += *text < end && **text == ' ';
		return digits(text, end, 1, 2, &parts->day) && parts->day >= 1 && parts->day <= 31;
	case 'j':
		return digits(text, end, 3, 3, &parts->day_of_year) && parts->day_of_year <= 366;
	case 'H':
	case 'I':
		return digits(text, end, 1, 2, &parts->hour) && parts->hour <= 24;
	case 'p':
		if (end - *text < 2)
			return false;
		parts->has_half = true;
		parts->is_pm = **text == 'P' || **text == 'p';
		*text += 2;
		return true;
	case 'M':
		return digits(text, end, 2, 2, &parts->minute) && parts->minute <= 59;
	case 'S':
		return digits(text, end, 2, 2, &parts->second) && parts->second <= 60;
	case 'f':
		if (*text >= end || !isdigit((unsigned char)**text))
			return false;
		parts->fraction_ns = fraction(text, end);
		return true;
	case 'z':
	case 'Z':
		parts->has_zone = zone(text, end, &parts->offset_s);
		return parts->has_zone;
	case 's': {
		int64_t ns;
		const char *from = *text;

		while (*text < end && isdigit((unsigned char)**text))
			++*text;
		if (!ky_log_time_seconds(&from, *text, &ns))
			return false;
		parts->epoch_s = ns / SECOND;
		parts->has_epoch = true;
		return true;
	}
	default:
		return skip_char(text, end, conversion);
	}
}

static bool parts_of(const char *format, const char **text, const char *end, struct parts *parts)
{
	for (; *format; format++) {
		if (*format != '%') {
			if (!skip_char(text, end, *format))
				return false;
			continue;
		}
		if (!*++format)
			return false;
		if (*format == 'T') {
			if (!parts_of("%H:%M:%S", text, end, parts))
				return false;
		} else if (*format == 'F') {
			if (!parts_of("%Y-%m-%d", text, end, parts))
				return false;
		} else if (!part(*format, text, end, parts)) {
			return false;
		}
	}
	return true;
}

bool ky_log_time_format(struct ky_log_clock *clock, const char *format, const char **text,
			const char *end, int64_t *ns)
{
	struct parts parts = {.year = year_of(clock->now_s), .month = 1, .day = 1};
	const char *at = *text;
	int64_t seconds;

	if (!parts_of(format, &at, end, &parts))
		return false;
	if (parts.has_half)
		parts.hour = parts.hour % 12 + (parts.is_pm ? 12 : 0);
	seconds = parts.day_of_year ? days_of(parts.year, 1, 1) + parts.day_of_year - 1
				    : days_of(parts.year, parts.month, parts.day);
	seconds = seconds * 86400 + parts.hour * 3600 + parts.minute * 60 + parts.second;
	if (parts.has_epoch)
		seconds = parts.epoch_s;
	else
		seconds = parts.has_zone ? seconds - parts.offset_s
					 : log_time_from_local(clock, seconds);
	*ns = parts.fraction_ns;
	*text = at;
	return log_time_add(ns, seconds);
}

/* @whole and a fraction of 1e-9ths, in the unit that the size tells. False: beyond 64 bits. */
static bool log_time_of_count(int64_t whole, int64_t billionths, int64_t *ns)
{
	int64_t unit = SECOND, limit = 100000000000;

	while (unit > 1 && whole >= limit) {
		unit /= 1000;
		limit = unit > 1 ? limit * 1000 : limit;
	}
	return !__builtin_mul_overflow(whole, unit, ns) &&
	       !__builtin_add_overflow(*ns, billionths / (SECOND / unit), ns);
}

bool ky_log_time_number(double value, int64_t *ns)
{
	int64_t whole;

	if (!(value >= 0) || value > 9e18)
		return false;
	whole = (int64_t)value;
	/* A product would lose the digits that the fraction has. */
	return log_time_of_count(whole, (int64_t)((value - (double)whole) * (double)SECOND + 0.5),
				 ns);
}

bool ky_log_time_integer(int64_t value, int64_t *ns)
{
	return value >= 0 && log_time_of_count(value, 0, ns);
}

bool ky_log_time_count(const char **text, const char *end, int64_t *ns)
{
	const char *at = *text;
	int64_t whole = 0, billionths = 0;

	for (; at < end && isdigit((unsigned char)*at); at++)
		if (__builtin_mul_overflow(whole, 10, &whole) ||
		    __builtin_add_overflow(whole, *at - '0', &whole))
			return false;
	if (at == *text)
		return false;
	if (at + 1 < end && *at == '.' && isdigit((unsigned char)at[1])) {
		at++;
		billionths = fraction(&at, end);
	}
	if (!log_time_of_count(whole, billionths, ns))
		return false;
	*text = at;
	return true;
}
