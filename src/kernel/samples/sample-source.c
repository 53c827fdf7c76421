/* SPDX-License-Identifier: MIT */
#include "kernel/samples/sample-source.h"

#include <ctype.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "os/counter.h"

#define DEFAULT_HZ 99

static int sample_source_refuse(const char *text, const char *why, struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_INVALID, "'%s': %s", text, why);
	ky_error_input(err, "samples");
	ky_error_hint(err, "give times a second (99), a counter and its period (page-faults:10, "
			   "cpu-clock:999Hz), or an event (sched:sched_switch)");
	return KYMO_E_INVALID;
}

/* "1000" or "99Hz" */
static bool sample_source_rate(const char *text, struct ky_sample_source *source)
{
	char *end;
	unsigned long long n;

	if (!isdigit((unsigned char)*text))
		return false;
	n = strtoull(text, &end, 10);
	source->frequency_hz = 0;
	source->period = 0;
	if (strcasecmp(end, "hz") == 0)
		source->frequency_hz = n;
	else if (!*end)
		source->period = n;
	else
		return false;
	return n && n <= INT64_MAX && source->frequency_hz <= KY_SAMPLE_HZ_MAX;
}

/* Clocks, and counters of what happens all the time, are sampled at a frequency; each rare event is a sample. */
static void sample_source_default_rate(const struct ky_os_counter *counter,
				       struct ky_sample_source *source)
{
	if (ky_os_counter_is_software(counter) && !ky_sample_source_is_clock(source))
		source->period = 1;
	else
		source->frequency_hz = DEFAULT_HZ;
}

static bool sample_source_counter(const char *text, size_t len, struct ky_sample_source *source)
{
	const struct ky_os_counter *counter = ky_os_counter_find(text, len);

	if (!counter)
		return false;
	snprintf(source->name, sizeof(source->name), "%s", counter->name);
	source->type = counter->type;
	source->config = counter->config;
	sample_source_default_rate(counter, source);
	return true;
}

static bool sample_source_is_word(const char *text, size_t len)
{
	if (!len || len > KY_SAMPLE_SOURCE_BYTES / 2 - 2 || isdigit((unsigned char)*text))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("_-", text[i]))
			return false;
	}
	return true;
}

/* "sched:sched_switch"; its number is not known yet. */
static bool sample_source_tracepoint(const char *system, size_t len, const char *event,
				     size_t event_len, struct ky_sample_source *source)
{
	if (!sample_source_is_word(system, len) || !sample_source_is_word(event, event_len))
		return false;
	snprintf(source->name, sizeof(source->name), "%.*s:%.*s", (int)len, system, (int)event_len,
		 event);
	source->is_tracepoint = true;
	source->type = PERF_TYPE_TRACEPOINT;
	source->period = 1;
	return true;
}

int ky_sample_source_parse(const char *text, struct ky_sample_source *source,
			   struct kymo_error *err)
{
	size_t len = strcspn(text, ":"), next;
	const char *rest = text[len] ? text + len + 1 : NULL;

	*source = (struct ky_sample_source){.name = "cpu-clock"};
	if (!rest && sample_source_rate(text, source)) {
		source->frequency_hz += source->period;
		source->period = 0;
		source->is_default = true;
		return source->frequency_hz <= KY_SAMPLE_HZ_MAX
			       ? KYMO_OK
			       : sample_source_refuse(text, "at most 100000 times a second", err);
	}
	if (sample_source_counter(text, len, source))
		return !rest || sample_source_rate(rest, source)
			       ? KYMO_OK
			       : sample_source_refuse(text, "the period is no number above 0", err);
	if (!rest)
		return sample_source_refuse(text, "neither a number nor a counter", err);
	next = strcspn(rest, ":");
	if (!sample_source_tracepoint(text, len, rest, next, source))
		return sample_source_refuse(text, "neither a counter nor an event", err);
	return !rest[next] || (sample_source_rate(rest + next + 1, source) && source->period)
		       ? KYMO_OK
		       : sample_source_refuse(text, "the period is no number above 0", err);
}

bool ky_sample_source_is_clock(const struct ky_sample_source *source)
{
	return source->type == PERF_TYPE_SOFTWARE && (source->config == PERF_COUNT_SW_CPU_CLOCK ||
						      source->config == PERF_COUNT_SW_TASK_CLOCK);
}

static int sample_source_find_tracepoint(struct ky_sample_source *source,
					 const struct ky_tracefs *fs, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char name[KY_SAMPLE_SOURCE_BYTES + 32];
	char *colon;
	int ret;

	snprintf(name, sizeof(name), "events/%s/id", source->name);
	colon = strchr(name, ':');
	if (colon)
		*colon = '/';
	ret = ky_tracefs_read(fs->fd, fs->path, name, &text, NULL);
	if (!ret)
		source->config = strtoull(ky_strbuf_text(&text), NULL, 10);
	ky_strbuf_fini(&text);
	if (!ret)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_NOT_FOUND, "the kernel has no event '%s'", source->name);
	ky_error_input(err, "samples");
	return KYMO_E_NOT_FOUND;
}

static bool sample_source_opens(const struct ky_os_counter *counter)
{
	int fd = ky_os_counter_open(counter, 0, false);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int ky_sample_source_find(struct ky_sample_source *source, const struct ky_tracefs *fs,
			  struct kymo_error *err)
{
	static const char cycles[] = "cycles";
	uint64_t hz = source->frequency_hz;

	if (source->is_tracepoint)
		return sample_source_find_tracepoint(source, fs, err);
	if (!source->is_default)
		return KYMO_OK;
	/* Cycles are counted where interrupts are off, too: they come by NMI. */
	if (!sample_source_opens(ky_os_counter_find(cycles, strlen(cycles))) ||
	    !sample_source_counter(cycles, strlen(cycles), source))
		(void)sample_source_counter("cpu-clock", 9, source);
	source->frequency_hz = hz;
	return KYMO_OK;
}
