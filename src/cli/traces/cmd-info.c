/* SPDX-License-Identifier: MIT */
/* kymo info: what a trace consists of, and how many events of which types it holds. */
#include "cli/terminal/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/reading/damage.h"
#include "cli/traces/info.h"
#include "cli/traces/info-live.h"
#include "cli/reading/input-options.h"
#include "cli/reading/jobs.h"
#include "cli/recording/recordings.h"
#include "flow/graph/parallel.h"
#include "flow/sinks/text.h"

/* Counting the events of so much takes no time that anybody notices. */
#define COUNT_BYTES ((uint64_t)64 << 20)

struct info_options {
	bool json, count;
	struct ky_input_options input;
	struct ky_live_options live;
	uint64_t jobs, refresh_ns;
};

static const struct ky_option_def info_option_defs[] = {
	{.name = "json",
	 .letter = 'j',
	 .kind = KY_OPTION_FLAG,
	 .help = "Write one JSON object: times in nanoseconds from the clock's origin, sizes in "
		 "bytes.",
	 .at = offsetof(struct info_options, json)},
	{.name = "count",
	 .letter = 'c',
	 .kind = KY_OPTION_FLAG,
	 .help = "Count the events of traces of any size, which reads all of them. Without it, "
		 "kymo counts the events of traces of up to 64 MiB, or with --recover.",
	 .at = offsetof(struct info_options, count)},
	KY_LIVE_OPTION_DEFS(struct info_options, live,
			    "show counts and rates of events, streams and losses again and again"),
	{.name = "refresh",
	 .letter = 'r',
	 .kind = KY_OPTION_DURATION,
	 .arg = "TIME",
	 .help = "With --live: the interval between two outputs. Default: 1s.",
	 .at = offsetof(struct info_options, refresh_ns)},
	KY_JOBS_OPTION_DEF(struct info_options, jobs),
	KY_INPUT_OPTION_DEFS(struct info_options, input),
	{0},
};

/* ---- collecting -------------------------------------------------------------------------- */

static void cmd_info_add_totals(struct info_totals *totals, const struct ky_stream_summary *stream)
{
	totals->streams++;
	totals->events += stream->events;
	totals->packets += stream->packets;
	totals->bytes += info_stream_bytes(stream->stream);
	totals->lost_events += stream->lost_events;
	totals->lost_packets += stream->lost_packets;
	if (!info_has_range(stream->begin_ns, stream->end_ns))
		return;
	if (stream->begin_ns < totals->begin_ns)
		totals->begin_ns = stream->begin_ns;
	if (stream->end_ns > totals->end_ns)
		totals->end_ns = stream->end_ns;
}

static int most_frequent_first(const void *a, const void *b, void *data)
{
	const struct ky_event_class *x = *(const struct ky_event_class *const *)a;
	const struct ky_event_class *y = *(const struct ky_event_class *const *)b;
	const uint64_t *counts = data;

	if (counts[x->index] != counts[y->index])
		return counts[x->index] > counts[y->index] ? -1 : 1;
	return strcmp(x->name, y->name);
}

static int rank_classes(struct info_trace *t, struct kymo_error *err)
{
	const struct ky_trace_class *cls = t->trace->cls;

	t->classes = calloc(cls->events.len + 1, sizeof(*t->classes));
	if (!t->classes)
		return ky_error_nomem(err);
	ky_vec_foreach(&cls->events, event) {
		if (t->counts[(*event)->index])
			t->classes[t->n_classes++] = *event;
	}
	qsort_r(t->classes, t->n_classes, sizeof(*t->classes), most_frequent_first, t->counts);
	return KYMO_OK;
}

static int prepare_trace(struct info_trace *t, const struct ky_trace *trace, struct kymo_error *err)
{
	t->trace = trace;
	t->counts = calloc(trace->cls->events.len + 1, sizeof(*t->counts));
	t->streams = calloc(trace->streams.len + 1, sizeof(*t->streams));
	return t->counts && t->streams ? KYMO_OK : ky_error_nomem(err);
}

/* Count all streams of all traces at once; summaries and counts are by stream of the set. */
static int cmd_info_count_streams(struct info *info, const struct ky_trace_set *set,
				  struct ky_thread_pool *pool, struct kymo_error *damage,
				  struct kymo_error *err)
{
	size_t n = set->streams.len, at = 0;
	struct ky_stream_summary *summaries = calloc(n + 1, sizeof(*summaries));
	uint64_t **counts = calloc(n + 1, sizeof(*counts));
	int ret = KYMO_OK;

	for (size_t i = 0; i < info->n_traces && counts; i++) {
		for (size_t j = 0; j < info->traces[i].trace->streams.len; j++)
			counts[at++] = info->traces[i].counts;
	}
	if (summaries && counts)
		(void)ky_parallel_summarize(pool, set->streams.data, n, summaries,
					    info->counted ? counts : NULL, NULL, damage);
	if (!summaries || !counts || damage->code == KYMO_E_MEMORY)
		ret = ky_error_nomem(err);
	at = 0;
	for (size_t i = 0; i < info->n_traces && ret == KYMO_OK; i++) {
		for (size_t j = 0; j < info->traces[i].trace->streams.len; j++) {
			info->traces[i].streams[j] = summaries[at];
			ky_vec_foreach(&summaries[at].losses, loss)
				ky_cli_damage(loss);
			cmd_info_add_totals(&info->totals, &summaries[at++]);
		}
	}
	free(summaries);
	free(counts);
	return ret;
}

/* The first damage of any stream goes to @damage; the others are counted nevertheless. */
static int cmd_info_collect(struct info *info, const struct ky_trace_set *set,
			    struct ky_thread_pool *pool, struct kymo_error *damage,
			    struct kymo_error *err)
{
	int ret = KYMO_OK;

	info->totals = (struct info_totals){.begin_ns = INT64_MAX, .end_ns = INT64_MIN};
	info->traces = calloc(set->traces.len + 1, sizeof(*info->traces));
	if (!info->traces)
		return ky_error_nomem(err);
	info->n_traces = set->traces.len;
	for (size_t i = 0; i < info->n_traces && ret == KYMO_OK; i++)
		ret = prepare_trace(&info->traces[i], set->traces.data[i], err);
	if (ret == KYMO_OK)
		ret = cmd_info_count_streams(info, set, pool, damage, err);
	for (size_t i = 0; i < info->n_traces && ret == KYMO_OK; i++)
		ret = rank_classes(&info->traces[i], err);
	return ret;
}

static void info_free_trace(struct info *info, size_t i)
{
	const struct ky_trace *trace = info->traces[i].trace;

	for (size_t s = 0; info->traces[i].streams && s < trace->streams.len; s++)
		ky_stream_summary_fini(&info->traces[i].streams[s]);
	free(info->traces[i].streams);
	free(info->traces[i].counts);
	free(info->traces[i].classes);
}

static void info_fini(struct info *info)
{
	for (size_t i = 0; i < info->n_traces; i++)
		info_free_trace(info, i);
	free(info->traces);
}

/* ---- showing ----------------------------------------------------------------------------- */

static void label(const char *name)
{
	printf("  %-12s ", name);
}

static void print_uuid(const uint8_t uuid[16])
{
	char text[KY_UUID_TEXT_BYTES];

	puts(ky_format_uuid(text, uuid));
}

/* With the date where the clock tells it, else as seconds from the clock's zero. */
static char *format_time(char out[64], int64_t ns, const struct ky_trace *trace)
{
	static struct ky_text_options options = {.clock_date = true};
	static const struct ky_trace
		*asked; /* cached: a trace may have many clocks, and many times to format */

	if (trace != asked) {
		options.clock_seconds = false;
		ky_vec_foreach(&trace->cls->clocks, clock)
			options.clock_seconds |= !(*clock)->is_unix_epoch;
		asked = trace;
	}
	return ky_text_time(out, ns, &options);
}

static void print_frequency(uint64_t hz)
{
	if (hz % 1000000000 == 0)
		printf("%llu GHz", (unsigned long long)(hz / 1000000000));
	else if (hz >= 1000000)
		printf("%llu.%06llu MHz", (unsigned long long)(hz / 1000000),
		       (unsigned long long)(hz % 1000000));
	else
		printf("%llu Hz", (unsigned long long)hz);
}

static void print_clock(const struct ky_clock_class *clock, const struct ky_trace *trace)
{
	char zero[64];

	label("clock");
	ky_cli_put_text(stdout, clock->name);
	fputs(", ", stdout);
	print_frequency(clock->frequency_hz);
	if (clock->precision_cycles > 1)
		printf(", exact to %llu cycles", (unsigned long long)clock->precision_cycles);
	if (clock->description && *clock->description) {
		fputs(": ", stdout);
		ky_cli_put_text(stdout, clock->description);
	}
	putchar('\n');
	label("");
	if (clock->is_unix_epoch)
		printf("its zero is %s\n", format_time(zero, clock->base_ns, trace));
	else
		printf("its zero is %s s from an origin that the trace does not name\n",
		       format_time(zero, clock->base_ns, trace));
	if (clock->has_uuid) {
		label("");
		fputs("uuid ", stdout);
		print_uuid(clock->uuid);
	}
}

static void print_environment(const struct ky_trace_class *cls)
{
	const char *name = "environment";

	ky_vec_foreach(&cls->env, env) {
		label(name);
		name = "";
		ky_cli_put_text(stdout, env->name);
		fputs(" = ", stdout);
		if (env->is_text)
			ky_cli_put_text(stdout, env->text);
		else
			printf("%lld", (long long)env->number);
		putchar('\n');
	}
}

static const char *number_or_dash(char out[24], bool known, uint64_t number)
{
	if (known)
		snprintf(out, 24, "%llu", (unsigned long long)number);
	return known ? out : "-";
}

/* The time in which the stream lost something: from the first loss to the last. */
static void print_losses(const struct ky_stream_summary *summary)
{
	int64_t begin_ns = INT64_MAX, end_ns = INT64_MIN;
	char begin[64], end[64];

	ky_vec_foreach(&summary->losses, loss) {
		if (loss->damage || loss->begin_ns == INT64_MIN || loss->end_ns == INT64_MIN)
			continue;
		begin_ns = loss->begin_ns < begin_ns ? loss->begin_ns : begin_ns;
		end_ns = loss->end_ns > end_ns ? loss->end_ns : end_ns;
	}
	if (info_has_range(begin_ns, end_ns))
		printf("\n  %57s lost between %s\n  %57s and %s", "",
		       format_time(begin, begin_ns, summary->stream->trace), "",
		       format_time(end, end_ns, summary->stream->trace));
}

const char *info_file_name(const struct ky_stream *stream, size_t part)
{
	const char *path = stream->parts.data[part].path, *base = stream->trace->path;
	size_t len = strlen(base);

	/* A chunk of a rotated trace lies elsewhere than the first. */
	return !strncmp(path, base, len) && path[len] == '/' ? path + len + 1 : path;
}

uint64_t info_stream_bytes(const struct ky_stream *stream)
{
	uint64_t bytes = 0;

	ky_vec_foreach(&stream->parts, part)
		bytes += part->size_bytes;
	return bytes;
}

static void print_files(const struct ky_stream *stream)
{
	for (size_t i = 0; i < stream->parts.len; i++) {
		if (i)
			printf("\n  %59s ", "");
		ky_cli_put_text(stdout, info_file_name(stream, i));
	}
}

/* The stream of a group has ten digits, which the column of the class gives up. */
static void print_class_and_id(const struct ky_stream *stream)
{
	char cls[24], id[24];
	size_t len = strlen(number_or_dash(id, stream->has_id, stream->id));
	int more = len > 6 ? (int)len - 6 : 0;

	printf("  %*s %*s ", more < 6 ? 6 - more : 1,
	       number_or_dash(cls, stream->cls, stream->cls ? stream->cls->id : 0), 6 + more,
	       number_or_dash(id, stream->has_id, stream->id));
}

static void print_stream(const struct info *info, const struct ky_stream_summary *summary)
{
	const struct ky_stream *stream = summary->stream;
	char cpu[24], events[24], bytes[32], begin[64], end[64];

	print_class_and_id(stream);
	printf("%4s %8llu %10s %10s %8llu  ",
	       number_or_dash(cpu, stream->has_cpu_id, stream->cpu_id),
	       (unsigned long long)summary->packets,
	       ky_format_bytes(bytes, info_stream_bytes(stream)),
	       number_or_dash(events, info->counted, summary->events),
	       (unsigned long long)summary->lost_events);
	print_files(stream);
	if (info_has_range(summary->begin_ns, summary->end_ns))
		printf("\n  %57s from %s\n  %57s to   %s", "",
		       format_time(begin, summary->begin_ns, stream->trace), "",
		       format_time(end, summary->end_ns, stream->trace));
	if (summary->lost_packets)
		printf("\n  %57s %llu packets are missing", "",
		       (unsigned long long)summary->lost_packets);
	print_losses(summary);
	if (summary->damages)
		printf("\n  %57s damaged in %llu places, %llu bytes skipped", "",
		       (unsigned long long)summary->damages,
		       (unsigned long long)summary->skipped_bytes);
	putchar('\n');
}

static void print_trace(const struct info *info, const struct info_trace *t)
{
	const struct ky_trace_class *cls = t->trace->cls;

	ky_cli_put_text(stdout, t->trace->path);
	putchar('\n');
	label("format");
	fputs(info_format(cls), stdout);
	/* In CTF 2 every field says its byte order. */
	if (cls->major < 2)
		printf(", %s-endian", cls->big_endian ? "big" : "little");
	putchar('\n');
	if (cls->has_uuid) {
		label("uuid");
		print_uuid(cls->uuid);
	}
	ky_vec_foreach(&cls->clocks, clock)
		print_clock(*clock, t->trace);
	print_environment(cls);
	printf("\n  %6s %6s %4s %8s %10s %10s %8s  %s\n", "class", "stream", "cpu", "packets",
	       "size", "events", "lost", "file");
	for (size_t i = 0; i < t->trace->streams.len; i++)
		print_stream(info, &t->streams[i]);
	if (!info->counted) {
		printf("\n  %zu event types; --count counts the events of each\n\n",
		       cls->events.len);
		return;
	}
	printf("\n  %10s  event type (%zu of the %zu that the metadata describes)\n", "events",
	       t->n_classes, cls->events.len);
	for (size_t i = 0; i < t->n_classes; i++) {
		printf("  %10llu  ", (unsigned long long)t->counts[t->classes[i]->index]);
		ky_cli_put_text(stdout, t->classes[i]->name);
		putchar('\n');
	}
	putchar('\n');
}

static void print_totals(const struct info *info)
{
	const struct info_totals *totals = &info->totals;
	const struct ky_trace *trace = info->traces[0].trace;
	char bytes[32], begin[64], end[64], duration[32];

	if (info->counted)
		printf("%llu events, ", (unsigned long long)totals->events);
	printf("%llu packets, %llu streams, %s\n", (unsigned long long)totals->packets,
	       (unsigned long long)totals->streams, ky_format_bytes(bytes, totals->bytes));
	if (info_has_range(totals->begin_ns, totals->end_ns))
		printf("from %s to %s: %s\n", format_time(begin, totals->begin_ns, trace),
		       format_time(end, totals->end_ns, trace),
		       ky_format_duration(duration,
					  (uint64_t)totals->end_ns - (uint64_t)totals->begin_ns));
	if (totals->lost_events || totals->lost_packets)
		printf("lost: %llu events dropped by the tracer, %llu packets missing\n",
		       (unsigned long long)totals->lost_events,
		       (unsigned long long)totals->lost_packets);
	else
		puts("nothing lost");
}

static int cmd_info_show(const struct info *info, const struct info_options *options,
			 struct kymo_error *err)
{
	if (options->json)
		return ky_info_json(info, err);
	for (size_t i = 0; i < info->n_traces; i++)
		print_trace(info, &info->traces[i]);
	print_totals(info);
	return KYMO_OK;
}

static bool must_count(const struct ky_trace_set *set, const struct info_options *options)
{
	uint64_t bytes = 0;

	ky_vec_foreach(&set->streams, stream)
		bytes += (*stream)->file.size_bytes;
	return options->count || options->input.recover || bytes <= COUNT_BYTES;
}

static int collect_in_parallel(struct info *info, const struct ky_trace_set *set,
			       const struct info_options *options, struct kymo_error *damage,
			       struct kymo_error *err)
{
	struct ky_thread_pool *pool;
	int ret;

	*info = (struct info){.counted = must_count(set, options)};
	ret = ky_thread_pool_new(ky_cli_jobs(options->jobs, set), &pool, err);
	if (ret < 0)
		return ret;
	ret = cmd_info_collect(info, set, pool, damage, err);
	ky_thread_pool_free(pool);
	return ret;
}

static int cmd_info_run_live(const struct info_options *options, int n_args, char **args)
{
	const struct ky_info_live live = {
		.run = {.paths = args,
			.n_paths = n_args,
			.input = &options->input,
			.live = &options->live,
			.is_recorded = ky_recordings_write},
		.interval_ns = options->refresh_ns ?: 1000000000,
		.json = options->json,
	};
	struct kymo_error err;
	int ret;

	ky_error_clear(&err);
	ret = ky_cli_damage_end(ky_info_live(&live, &err), &err);
	if (ret == KYMO_OK)
		return KY_EXIT_OK;
	ky_cli_error(&err);
	return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
}

static int cmd_info_check_options(const struct ky_command *command,
				  const struct info_options *options)
{
	if (ky_cli_check_live(command, &options->live))
		return KY_EXIT_USAGE;
	if (options->refresh_ns && !options->live.on)
		return ky_cli_usage(command, "--refresh needs --live");
	if (options->refresh_ns > INT64_MAX)
		return ky_cli_usage(command, "--refresh: the interval is too long");
	return KY_EXIT_OK;
}

static int run_info(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct kymo_error err, damage;
	struct ky_trace_set set;
	struct info info;
	int ret;

	if (cmd_info_check_options(command, data))
		return KY_EXIT_USAGE;
	if (((struct info_options *)data)->live.on)
		return cmd_info_run_live(data, n_args, args);
	ky_error_clear(&err);
	ky_error_clear(&damage);
	ret = ky_cli_open(&set, args, n_args, &((struct info_options *)data)->input, false, &err);
	if (ret < 0) {
		ky_cli_error(&err);
		return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
	}
	ret = collect_in_parallel(&info, &set, data, &damage, &err);
	if (ret == KYMO_OK)
		ret = cmd_info_show(&info, data, &err);
	info_fini(&info);
	ky_trace_set_close(&set);
	if (ret < 0)
		return ky_cli_error(&err);
	return ky_cli_damage_end(damage.code, &damage) < 0 ? ky_cli_error(&damage) : KY_EXIT_OK;
}

const struct ky_command ky_command_info = {
	.name = "info",
	.summary = "show the streams, event types, time range and losses of traces",
	.usage = "[OPTIONS] TRACE...",
	.description =
		"Shows the origin and the content of a trace: format, clock and environment; "
		"packets, size, events, losses and time range of each stream; the number of events "
		"of each event type. TRACE is a directory that holds a trace, or traces below it; the name of a running recording; or an address: kymo://HOST/NAME of kymo relay, net://HOST/host/MACHINE/SESSION of lttng-relayd.\n"
		"\n"
		"kymo counts the events of traces of up to 64 MiB, or with --count. For other "
		"traces it reads only the index or the headers of packets, which is fast for any "
		"size. Numbers of events are then '-' (in JSON null), and kymo does not find "
		"damage inside packets.\n"
		"\n"
		"Times are local (TZ) when the trace's clock counts from the Unix epoch, else "
		"seconds from its origin. 'lost' counts the lost events between two packets of a "
		"stream. A stream in several files, as after rotation, has one row with the names "
		"of all its files.\n"
		"\n"
		"From a damaged trace, kymo counts every event that it can read. It then reports "
		"the first damage, with file and place, and the exit code is 1.",
	.examples = "# the content of a trace\nkymo info my-trace\n\n"
		    "# the number of events, for a program\n"
		    "kymo info --count --json my-trace | jq .events\n\n"
		    "# the numbers of events, every second, of a recording in another terminal\n"
		    "kymo info --live my-trace",
	.see_also = "print report",
	.first_trace = 1,
	.options = info_option_defs,
	.options_size = sizeof(struct info_options),
	.min_args = 1,
	.max_args = -1,
	.run = run_info,
};
