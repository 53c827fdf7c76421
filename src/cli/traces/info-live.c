/* SPDX-License-Identifier: MIT */
/*
 * Counters have names, since a set of traces is opened again whenever a stream or an event comes. The time is that of the
 * events: an interval ends when all its events have come.
 */
#include "cli/traces/info-live.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "analysis/tables/jansson-text.h"
#include "cli/terminal/json-output.h"
#include "flow/sinks/text.h"

struct counter {
	const char *name;
	uint64_t events, before; /* all, and up to the last interval */
	uint64_t lost_events, lost_packets;
};

KY_VEC_TYPE(counter_list, struct counter);

/* Names and their counters; a counter's place in the list does not change. */
struct counters {
	struct ky_names places; /* name -> place + 1 */
	struct counter_list list;
};

struct info_live {
	const struct ky_info_live *live;
	const struct ky_trace_set *set;
	struct ky_arena arena; /* names */
	struct counters streams, types;
	size_t *stream_places; /* by stream of the set */
	size_t **type_places;  /* by trace of the set, by event class */
	size_t n_traces;
	int64_t begin_ns, due_ns, end_ns; /* of the interval; of the last event; INT64_MIN: none */
	bool is_screen, is_new;		  /* there is something that was not shown */
};

/* ---- counting ------------------------------------------------------------------------- */

static int info_live_place_of(struct info_live *info, struct counters *counters, const char *name,
			      size_t *place)
{
	uintptr_t found = (uintptr_t)ky_names_get(&counters->places, name);
	struct counter fresh = {.name = name};

	if (!found) {
		fresh.name = ky_arena_strdup(&info->arena, name);
		if (!fresh.name || ky_vec_push(&counters->list, fresh) < 0)
			return KYMO_E_MEMORY;
		found = counters->list.len;
		if (ky_names_set(&counters->places, fresh.name, (void *)found) < 0)
			return KYMO_E_MEMORY;
	}
	*place = found - 1;
	return KYMO_OK;
}

static void free_places(struct info_live *info)
{
	for (size_t i = 0; i < info->n_traces && info->type_places; i++)
		free(info->type_places[i]);
	free(info->type_places);
	free(info->stream_places);
	info->type_places = NULL;
	info->stream_places = NULL;
	info->n_traces = 0;
}

static int place_types(struct info_live *info, const struct ky_trace *trace, size_t **places)
{
	int ret = KYMO_OK;

	*places = calloc(trace->cls->events.len + 1, sizeof(**places));
	if (!*places)
		return KYMO_E_MEMORY;
	ky_vec_foreach(&trace->cls->events, event) {
		if (!ret)
			ret = info_live_place_of(info, &info->types, (*event)->name,
						 &(*places)[(*event)->index]);
	}
	return ret;
}

static int info_live_place_all(struct info_live *info)
{
	const struct ky_trace_set *set = info->set;
	int ret = KYMO_OK;

	info->stream_places = calloc(set->streams.len + 1, sizeof(*info->stream_places));
	info->type_places = calloc(set->traces.len + 1, sizeof(*info->type_places));
	if (!info->stream_places || !info->type_places)
		return KYMO_E_MEMORY;
	info->n_traces = set->traces.len;
	for (size_t i = 0; i < set->traces.len && !ret; i++)
		ret = place_types(info, set->traces.data[i], &info->type_places[i]);
	for (size_t i = 0; i < set->streams.len && !ret; i++)
		ret = info_live_place_of(info, &info->streams, set->streams.data[i]->file.path,
					 &info->stream_places[i]);
	return ret;
}

static int open_counters(void *data, const struct ky_trace_set *set, struct kymo_error *err)
{
	struct info_live *info = data;

	free_places(info);
	info->set = set;
	return info_live_place_all(info) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static const size_t *types_of(const struct info_live *info, const struct ky_trace *trace)
{
	for (size_t i = 0; i < info->n_traces; i++)
		if (info->set->traces.data[i] == trace)
			return info->type_places[i];
	return NULL;
}

static void count_loss(struct info_live *info, const struct ky_loss *loss)
{
	struct counter *counter =
		&info->streams.list.data[info->stream_places[loss->stream->index]];

	counter->lost_events += loss->events;
	counter->lost_packets += loss->packets;
}

/* ---- showing -------------------------------------------------------------------------- */

static uint64_t rate_of(const struct counter *counter, int64_t interval_ns)
{
	uint64_t n = counter->events - counter->before;

	return interval_ns > 0 ? (uint64_t)((double)n * 1e9 / (double)interval_ns + 0.5) : 0;
}

static struct counter total_of(const struct info_live *info)
{
	struct counter total = {.name = ""};

	ky_vec_foreach(&info->streams.list, counter) {
		total.events += counter->events;
		total.before += counter->before;
		total.lost_events += counter->lost_events;
		total.lost_packets += counter->lost_packets;
	}
	return total;
}

static void info_live_put_row(int64_t interval_ns, struct counter *counter)
{
	if (!counter->events && !counter->lost_events)
		return;
	printf("  %12llu %12llu %8llu  ", (unsigned long long)counter->events,
	       (unsigned long long)rate_of(counter, interval_ns),
	       (unsigned long long)counter->lost_events);
	ky_cli_put_text(stdout, counter->name);
	putchar('\n');
}

static void info_live_put_rows(const char *title, const struct counters *counters,
			       int64_t interval_ns)
{
	printf("\n  %12s %12s %8s  %s\n", "events", "events/s", "lost", title);
	ky_vec_foreach(&counters->list, counter)
		info_live_put_row(interval_ns, counter);
}

static void info_live_put_text(const struct info_live *info, int64_t interval_ns)
{
	const struct counter total = total_of(info);
	struct ky_text_options times = {.clock_date = true};
	char end[64];

	if (info->is_screen)
		fputs("\033[H\033[J", stdout);
	printf("%s: %llu events, %llu events/s, %zu streams, %llu events lost, %llu packets missing\n",
	       ky_text_time(end, info->end_ns, &times), (unsigned long long)total.events,
	       (unsigned long long)rate_of(&total, interval_ns), info->set->streams.len,
	       (unsigned long long)total.lost_events, (unsigned long long)total.lost_packets);
	info_live_put_rows("stream", &info->streams, interval_ns);
	info_live_put_rows("event type", &info->types, interval_ns);
	putchar('\n');
}

static json_t *json_rows(const struct counters *counters, int64_t interval_ns)
{
	json_t *rows = json_array();

	ky_vec_foreach(&counters->list, counter) {
		json_t *row = json_object();

		json_object_set_new(row, "name", ky_jansson_text(counter->name));
		json_object_set_new(row, "events", json_integer((json_int_t)counter->events));
		json_object_set_new(row, "events_per_s",
				    json_integer((json_int_t)rate_of(counter, interval_ns)));
		json_object_set_new(row, "lost_events",
				    json_integer((json_int_t)counter->lost_events));
		json_object_set_new(row, "lost_packets",
				    json_integer((json_int_t)counter->lost_packets));
		json_array_append_new(rows, row);
	}
	return rows;
}

/* One object per line. */
static int info_live_put_json(const struct info_live *info, int64_t interval_ns,
			      struct kymo_error *err)
{
	const struct counter total = total_of(info);
	json_t *object = json_object();
	char *text;

	json_object_set_new(object, "end_ns", json_integer(info->end_ns));
	json_object_set_new(object, "interval_ns", json_integer(interval_ns));
	json_object_set_new(object, "events", json_integer((json_int_t)total.events));
	json_object_set_new(object, "events_per_s",
			    json_integer((json_int_t)rate_of(&total, interval_ns)));
	json_object_set_new(object, "lost_events", json_integer((json_int_t)total.lost_events));
	json_object_set_new(object, "lost_packets", json_integer((json_int_t)total.lost_packets));
	json_object_set_new(object, "streams", json_rows(&info->streams, interval_ns));
	json_object_set_new(object, "event_types", json_rows(&info->types, interval_ns));
	text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	if (!text)
		return ky_error_nomem(err);
	puts(text); /* lint: own text: JSON escapes the rest */
	free(text);
	return KYMO_OK;
}

/* The interval is over at @end_ns. */
static int info_live_show(struct info_live *info, int64_t end_ns, struct kymo_error *err)
{
	int64_t interval_ns = end_ns - info->begin_ns;
	int ret = KYMO_OK;

	if (info->live->json)
		ret = info_live_put_json(info, interval_ns, err);
	else
		info_live_put_text(info, interval_ns);
	fflush(stdout);
	ky_vec_foreach(&info->streams.list, counter)
		counter->before = counter->events;
	ky_vec_foreach(&info->types.list, counter)
		counter->before = counter->events;
	info->begin_ns = end_ns;
	info->is_new = false;
	return ret;
}

/* All events before @ns have been counted. */
static int info_live_reach(struct info_live *info, int64_t ns, struct kymo_error *err)
{
	int64_t step_ns = (int64_t)info->live->interval_ns, over;

	if (info->due_ns == INT64_MIN || ns < info->due_ns)
		return KYMO_OK;
	over = info->due_ns;
	/* Intervals without events are not shown. */
	info->due_ns += ((ns - info->due_ns) / step_ns + 1) * step_ns;
	return info->is_new ? info_live_show(info, over, err) : KYMO_OK;
}

static int count_event(struct info_live *info, const struct ky_stream *stream, const size_t *types,
		       const struct ky_event *event, struct kymo_error *err)
{
	int ret;

	if (event->ns == INT64_MIN)
		return KYMO_OK;
	if (info->due_ns == INT64_MIN) {
		info->begin_ns = event->ns;
		info->due_ns = event->ns + (int64_t)info->live->interval_ns;
	}
	ret = info_live_reach(info, event->ns, err);
	info->end_ns = event->ns;
	info->is_new = true;
	info->streams.list.data[info->stream_places[stream->index]].events++;
	info->types.list.data[types[event->cls->index]].events++;
	return ret;
}

static int count_batch(void *data, const struct ky_batch *batch, struct kymo_error *err)
{
	struct info_live *info = data;
	struct ky_batch rest = *batch, run;
	int ret = KYMO_OK;

	if (batch->loss)
		count_loss(info, batch->loss);
	while (!ret && ky_batch_run(&rest, &run)) {
		const size_t *types = run.n_events ? types_of(info, run.stream->trace) : NULL;

		for (size_t i = 0; i < run.n_events && !ret; i++)
			ret = count_event(info, run.stream, types, &run.events[i], err);
	}
	return ret;
}

static int info_live_flush(void *data, int64_t until_ns, struct kymo_error *err)
{
	return info_live_reach(data, until_ns, err);
}

/* What has come is shown in any case. */
static int info_live_end(void *data, int ret, struct kymo_error *err)
{
	struct info_live *info = data;
	int shown = KYMO_OK;

	if (info->is_new && ret != KYMO_E_MEMORY)
		shown = info_live_show(info, info->end_ns, ret < 0 ? NULL : err);
	return ret < 0 ? ret : shown;
}

int ky_info_live(const struct ky_info_live *live, struct kymo_error *err)
{
	static const struct ky_text_options times;
	struct ky_select_options all;
	struct info_live info = {
		.live = live,
		.begin_ns = INT64_MIN,
		.due_ns = INT64_MIN,
		.end_ns = INT64_MIN,
		.is_screen = !live->json && isatty(STDOUT_FILENO),
	};
	struct ky_follow_run run = live->run;
	int ret;

	memset(&all, 0, sizeof(all));
	ky_cli_select_defaults(&all);
	ky_arena_init(&info.arena);
	ky_names_init(&info.streams.places);
	ky_names_init(&info.types.places);
	run.select = &all;
	run.times = &times;
	run.open = open_counters;
	run.batch = count_batch;
	run.flush = info_live_flush;
	run.close = info_live_end;
	run.data = &info;
	ret = ky_cli_follow(&run, err);
	free_places(&info);
	ky_names_fini(&info.streams.places);
	ky_names_fini(&info.types.places);
	ky_vec_fini(&info.streams.list);
	ky_vec_fini(&info.types.list);
	ky_arena_fini(&info.arena);
	return ret;
}
