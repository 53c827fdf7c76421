/* SPDX-License-Identifier: MIT */
/* What an experiment can show: the list of outputs, and the styles of their states. */
#include <stdio.h>
#include <string.h>

#include "analysis/reports/report.h"
#include "base/error.h"
#include "view/tsp/tsp-path.h"

#define KINDS_OF_CPUS	  (1U << KY_ROW_CPU | 1U << KY_ROW_IRQ | 1U << KY_ROW_QUEUE)
#define KINDS_OF_THREADS  (1U << KY_ROW_THREAD | 1U << KY_ROW_SPANS)
#define KINDS_OF_DISKS	  (1U << KY_ROW_DISK | 1U << KY_ROW_REQUESTS)
#define KINDS_OF_COUNTERS (1U << KY_ROW_QUEUE | 1U << KY_ROW_DISK | 1U << KY_ROW_COUNTER)

struct output {
	const char *id, *name, *description, *type;
	unsigned int kinds; /* of rows with data */
};

/* Clients know the ids of the histogram and of the table of events. */
static const struct output outputs[] = {
	{KY_TSP_EVENTS_TABLE, "Events Table", "All events, in the order of their times", "TABLE",
	 0},
	{KY_TSP_HISTOGRAM, "Histogram", "The number of events over time", "TREE_TIME_XY", 0},
	{KY_TSP_CPU_USAGE, "CPU Usage", "How much of the time CPUs ran threads, in percent",
	 "TREE_TIME_XY", 0},
	{KY_TSP_COUNTERS, "Counters", "Waiting threads, disk requests, bytes, frequencies, memory",
	 "TREE_TIME_XY", KINDS_OF_COUNTERS},
	{KY_TSP_DURATIONS, "Durations",
	 "How many system calls, waits, interrupts, disk requests and spans took how long",
	 "TREE_GENERIC_XY", 0},
	{"kymo.cpus", "CPUs", "What CPUs and their interrupts did", "TIME_GRAPH", KINDS_OF_CPUS},
	{"kymo.threads", "Threads and Spans", "What threads did, and the spans of programs",
	 "TIME_GRAPH", KINDS_OF_THREADS},
	{"kymo.disks", "Disks", "Requests of block devices", "TIME_GRAPH", KINDS_OF_DISKS},
	{KY_TSP_PATH, "Critical Path",
	 "Over which threads and causes the time of a thread went; choose a thread", "NONE", 0},
};

unsigned int ky_tsp_row_kinds(const char *id)
{
	for (size_t i = 0; i < sizeof(outputs) / sizeof(*outputs); i++) {
		if (strcmp(outputs[i].id, id) == 0)
			return outputs[i].kinds;
	}
	return 0;
}

/* Reports on causes are about something: an output for each. */
static const struct about {
	const char *name; /* of the output, after KY_TSP_REPORT */
	const char *report, *of, *title;
} abouts[] = {
	{"why", "why", "", "why"},
	{"breakdown", "breakdown", "", "breakdown of threads"},
	{"breakdown.syscalls", "breakdown", "syscall:*", "breakdown of system calls"},
	{"breakdown.wakeups", "breakdown", "wakeup", "breakdown of waits for a CPU"},
	{"flame", "flame", "", "flame, of samples"},
	{"flame.off-cpu", "flame", "off-cpu", "flame, of time off the CPU"},
	{"heatmap.syscalls", "heatmap", "syscall:*", "heatmap of system calls"},
	{"heatmap.wakeups", "heatmap", "wakeup", "heatmap of waits for a CPU"},
	{"heatmap.block", "heatmap", "block", "heatmap of disk requests"},
	{"heatmap.softirqs", "heatmap", "softirq", "heatmap of softirqs"},
};

#define ABOUTS (sizeof(abouts) / sizeof(*abouts))

static const struct about *tsp_outputs_about(const char *name)
{
	for (size_t i = 0; i < ABOUTS; i++) {
		if (strcmp(abouts[i].name, name) == 0)
			return &abouts[i];
	}
	return NULL;
}

static bool tsp_outputs_is_plain(const struct ky_report *report)
{
	return !report->wants_periods && !report->whole;
}

/* The report of an output; NULL: the output has another type. */
const struct ky_report *ky_tsp_report(const char *id, const char **of)
{
	const char *name = id + sizeof(KY_TSP_REPORT) - 1;
	const struct ky_report *report;
	const struct about *about;

	*of = "";
	if (strncmp(id, KY_TSP_REPORT, sizeof(KY_TSP_REPORT) - 1) != 0)
		return NULL;
	about = tsp_outputs_about(name);
	if (about) {
		*of = about->of;
		return ky_report_find(about->report);
	}
	report = ky_report_find(name);
	return report && tsp_outputs_is_plain(report) ? report : NULL;
}

static void put_output(struct ky_strbuf *out, const struct output *output)
{
	ky_strbuf_addf(out, "{\"id\": \"%s\", \"type\": \"%s\", \"name\": ", output->id,
		       output->type);
	ky_view_put_text(out, output->name);
	ky_strbuf_adds(out, ", \"description\": ");
	ky_view_put_text(out, output->description);
	ky_strbuf_adds(out, strcmp(output->id, KY_TSP_PATH) == 0
				    ? ", \"capabilities\": {\"canCreate\": true}}"
				    : "}");
}

/* @name: of a report, or of what it is about. */
static void put_report(struct ky_strbuf *out, const char *name)
{
	const struct about *about = tsp_outputs_about(name);
	const struct ky_report *report = ky_report_find(about ? about->report : name);
	char id[KY_TSP_OUTPUT_BYTES], title[KY_TSP_NAME_BYTES];
	const struct output output = {id, title, report->summary, "DATA_TREE", 0};

	snprintf(id, sizeof(id), KY_TSP_REPORT "%s", name);
	snprintf(title, sizeof(title), "Report: %s", about ? about->title : name);
	put_output(out, &output);
}

static void tsp_outputs_put_all(struct ky_tsp_answer *answer)
{
	struct ky_strbuf *out = answer->out;

	ky_strbuf_adds(out, "[");
	for (size_t i = 0; i < sizeof(outputs) / sizeof(*outputs); i++) {
		ky_strbuf_adds(out, i ? ", " : "");
		put_output(out, &outputs[i]);
	}
	for (size_t i = 0; i < ABOUTS; i++) {
		ky_strbuf_adds(out, ", ");
		put_report(out, abouts[i].name);
	}
	for (const struct ky_report *const *report = ky_reports; *report; report++) {
		if (!tsp_outputs_is_plain(*report))
			continue;
		ky_strbuf_adds(out, ", ");
		put_report(out, (*report)->name);
	}
	ky_tsp_path_put_outputs(answer);
	ky_strbuf_adds(out, "]");
}

bool ky_tsp_is_path(const char *id)
{
	return strncmp(id, KY_TSP_PATH ".", sizeof(KY_TSP_PATH)) == 0;
}

static const struct output *tsp_outputs_find(const char *id)
{
	for (size_t i = 0; i < sizeof(outputs) / sizeof(*outputs); i++) {
		if (strcmp(outputs[i].id, id) == 0)
			return &outputs[i];
	}
	return NULL;
}

int ky_tsp_check_output(const char *id, const char *type, struct kymo_error *err)
{
	const struct output *output = tsp_outputs_find(id);
	const char *of, *own = ky_tsp_report(id, &of) ? "DATA_TREE"
			       : ky_tsp_is_path(id)   ? "TIME_GRAPH"
			       : output		      ? output->type
						      : "";

	if (*own && (!type || strcmp(own, type) == 0))
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_NOT_FOUND,
			    *own ? "the output has another type" : "there is no such output");
}

/* One that a client made. */
static int tsp_outputs_put_path(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	struct ky_tsp_path *path = ky_tsp_path_take(answer);

	if (!path)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such output");
	ky_tsp_path_put_output(answer->out, path);
	ky_tsp_path_put(answer, path);
	return KYMO_OK;
}

int ky_tsp_outputs(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	const char *id = answer->request->output;
	const struct output *output = tsp_outputs_find(id);
	int ret = KYMO_OK;

	if (answer->request->what == KY_TSP_OUTPUTS) {
		tsp_outputs_put_all(answer);
		return KYMO_OK;
	}
	ret = ky_tsp_check_output(id, NULL, err);
	if (ret < 0)
		return ret;
	if (ky_tsp_is_path(id))
		return tsp_outputs_put_path(answer, err);
	if (output)
		put_output(answer->out, output);
	else
		put_report(answer->out, id + sizeof(KY_TSP_REPORT) - 1);
	return KYMO_OK;
}

/* ---- styles ------------------------------------------------------------------------------ */

/* The colours are those of the page. Narrow rows: the thread does not run. */
static const struct {
	const char *name, *colour, *height;
} styles[KY_STATE_KINDS] = {
	[KY_STATE_NONE] = {"several", "#8a97a8", "1"},
	[KY_STATE_IDLE] = {"idle", "#c8ced6", "0.33"},
	[KY_STATE_RUNS] = {"runs", "#0072b2", "1"},
	[KY_STATE_USER] = {"user", "#009e73", "1"},
	[KY_STATE_SYSCALL] = {"syscall", "#0072b2", "1"},
	[KY_STATE_IRQ] = {"irq", "#d55e00", "1"},
	[KY_STATE_SOFTIRQ] = {"softirq", "#e69f00", "1"},
	[KY_STATE_WAIT_CPU] = {"wait-cpu", "#f0e442", "0.5"},
	[KY_STATE_BLOCKED] = {"blocked", "#c8ced6", "0.33"},
	[KY_STATE_DISK] = {"disk", "#cc79a7", "0.5"},
	[KY_STATE_LOCK] = {"lock", "#b05a8a", "0.5"},
	[KY_STATE_NETWORK] = {"network", "#7a6fbe", "0.5"},
	[KY_STATE_TIMER] = {"timer", "#c8ced6", "0.33"},
	[KY_STATE_STOPPED] = {"stopped", "#55606d", "0.33"},
	[KY_STATE_ACTIVE] = {"active", "#d55e00", "1"},
	[KY_STATE_SPAN] = {"span", "#56b4e9", "1"},
	[KY_STATE_READ] = {"read", "#009e73", "1"},
	[KY_STATE_WRITE] = {"write", "#d55e00", "1"},
	[KY_STATE_OTHER] = {"other", "#8a97a8", "1"},
	[KY_STATE_VALUE] = {"value", "#56b4e9", "1"},
	[KY_STATE_EVENTS] = {"events", "#56b4e9", "1"},
	[KY_STATE_RUNNING] = {"running", "#009e73", "1"},
};

const char *ky_tsp_style(enum ky_state_kind kind)
{
	return styles[kind < KY_STATE_KINDS ? kind : KY_STATE_NONE].name;
}

static void put_style(struct ky_strbuf *out, const char *key, const char *name, const char *colour,
		      const char *height)
{
	ky_strbuf_addf(
		out,
		"\"%s\": {\"values\": {\"style-name\": \"%s\", \"background-color\": \"%s\", "
		"\"height\": %s, \"opacity\": 1}}",
		key, name, colour, height);
}

int ky_tsp_styles(struct ky_tsp_answer *answer, struct kymo_error *err)
{
	int ret = ky_tsp_check_output(answer->request->output, NULL, err);

	if (ret < 0)
		return ret;
	ky_tsp_put_head(answer->out, false);
	ky_strbuf_adds(answer->out, "{\"styles\": {");
	put_style(answer->out, "unknown", "unknown", "#e4e7eb", "0.1");
	for (size_t i = 0; i < KY_STATE_KINDS; i++) {
		ky_strbuf_adds(answer->out, ", ");
		put_style(answer->out, styles[i].name,
			  i == KY_STATE_NONE ? "several short states"
					     : ky_state_text((enum ky_state_kind)i),
			  styles[i].colour, styles[i].height);
	}
	ky_strbuf_adds(answer->out, "}}}\n");
	return KYMO_OK;
}
