/* SPDX-License-Identifier: MIT */
#include "import/logs/log-late.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* What is kept at once. The maker has 64 streams, so a file may go back 63 times by so much. */
#define LATE_BYTES (16u << 20)

enum { LATE_NUMBER = 1, LATE_DOUBLE, LATE_TEXT };

void ky_log_late_fini(struct ky_log_late *late)
{
	ky_strbuf_fini(&late->values);
	ky_vec_fini(&late->events);
}

int ky_log_late_begin(struct ky_log_late *late, int number, uint64_t ns, struct kymo_error *err)
{
	const struct ky_log_late_event event = {.ns = ns, .at = late->values.len, .number = number};

	return ky_vec_push(&late->events, event) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static void log_late_put(struct ky_log_late *late, char kind, const void *value, size_t len)
{
	ky_strbuf_addc(&late->values, kind);
	ky_strbuf_add(&late->values, value, len);
}

void ky_log_late_number(struct ky_log_late *late, uint64_t value)
{
	log_late_put(late, LATE_NUMBER, &value, sizeof(value));
}

void ky_log_late_double(struct ky_log_late *late, double value)
{
	log_late_put(late, LATE_DOUBLE, &value, sizeof(value));
}

void ky_log_late_text(struct ky_log_late *late, const char *text, size_t len)
{
	log_late_put(late, LATE_TEXT, &len, sizeof(len));
	ky_strbuf_add(&late->values, text, len);
}

int ky_log_late_commit(struct ky_log_late *late, struct ky_maker *maker, struct kymo_error *err)
{
	ky_strbuf_addc(&late->values, '\0');
	if (ky_strbuf_failed(&late->values))
		return ky_error_nomem(err);
	return late->values.len < LATE_BYTES &&
			       late->events.len < LATE_BYTES / sizeof(late->events.data[0])
		       ? KYMO_OK
		       : ky_log_late_flush(late, maker, err);
}

/* By time, else as they came. */
static int log_late_compare(const void *a, const void *b)
{
	const struct ky_log_late_event *one = a, *other = b;

	if (one->ns != other->ns)
		return one->ns < other->ns ? -1 : 1;
	return one->at < other->at ? -1 : one->at > other->at;
}

/* The values from *@at on to the maker; *@at goes behind them. */
static void log_late_value(const char **at, struct ky_maker *maker)
{
	char kind = *(*at)++;
	uint64_t number;
	double real;
	size_t len;

	if (kind == LATE_NUMBER) {
		memcpy(&number, *at, sizeof(number));
		ky_maker_number(maker, number);
		*at += sizeof(number);
	} else if (kind == LATE_DOUBLE) {
		memcpy(&real, *at, sizeof(real));
		ky_maker_double(maker, real);
		*at += sizeof(real);
	} else {
		memcpy(&len, *at, sizeof(len));
		*at += sizeof(len);
		ky_maker_text(maker, *at, len);
		*at += len;
	}
}

/* Each event ends where the one that came next begins, which is another one in the order of time: a zero ends its values. */
int ky_log_late_flush(struct ky_log_late *late, struct ky_maker *maker, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!late->events.len)
		return KYMO_OK;
	qsort(late->events.data, late->events.len, sizeof(late->events.data[0]), log_late_compare);
	ky_vec_foreach(&late->events, event) {
		const char *at = ky_strbuf_text(&late->values) + event->at;

		ky_maker_begin(maker, 0, event->number, event->ns);
		while (*at)
			log_late_value(&at, maker);
		ret = ky_maker_commit(maker, err);
		if (ret < 0)
			break;
	}
	ky_vec_clear(&late->events);
	ky_strbuf_clear(&late->values);
	return ret;
}
