/* SPDX-License-Identifier: MIT */
/* kymo sync: the clocks of machines against each other. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/sync/sync.h"
#include "base/error.h"
#include "base/vec.h"
#include "cli/traces/sync-output.h"
#include "cli/reading/input-options.h"
#include "cli/reading/run-flow.h"
#include "cli/terminal/command.h"

#define MARK_ERROR_NS	UINT64_C(1000000)
#define DRIFT_MAX_PPM	UINT64_C(100)
#define DRIFT_ONE_PPM	INT64_C(1000000000000)
#define DRIFT_LIMIT_PPM 10000

struct sync_options {
	struct ky_input_options input;
	bool json, show, remove, dry;
	const char *reference;
	struct ky_text_list marks;
	uint64_t mark_error_ns, drift_ppm;
};

/* clang-format off */
static const struct ky_option_def sync_option_defs[] = {
	{"reference", 0, KY_OPTION_TEXT, "MACHINE",
	 "The machine whose clock counts: its host name, or the path of its trace (default: of the first trace).",
	 offsetof(struct sync_options, reference), NULL},
	{"mark", 0, KY_OPTION_LIST, "EVENT:FIELD",
	 "Events EVENT with the same value of FIELD happened at the same time on all machines. May be given again.",
	 offsetof(struct sync_options, marks), NULL},
	{"mark-error", 0, KY_OPTION_DURATION, "TIME",
	 "How far apart such events may be (default: 1ms).",
	 offsetof(struct sync_options, mark_error_ns), NULL},
	{"max-drift", 0, KY_OPTION_U64, "PPM",
	 "Clocks go apart by at most PPM us in a second (default: 100).",
	 offsetof(struct sync_options, drift_ppm), NULL},
	{"dry-run", 'n', KY_OPTION_FLAG, NULL, "Write nothing beside the traces.",
	 offsetof(struct sync_options, dry), NULL},
	{"show", 0, KY_OPTION_FLAG, NULL, "Show what is known of the clocks of the traces; read no events.",
	 offsetof(struct sync_options, show), NULL},
	{"remove", 0, KY_OPTION_FLAG, NULL, "Forget what is known: times are as they were recorded.",
	 offsetof(struct sync_options, remove), NULL},
	{"json", 0, KY_OPTION_FLAG, NULL, "Print JSON.",
	 offsetof(struct sync_options, json), NULL},
	KY_INPUT_OPTION_DEFS(struct sync_options, input),
	{0},
};
/* clang-format on */

KY_VEC_TYPE(sync_marks, struct ky_sync_mark);

static int parse_mark(char *text, struct ky_sync_mark *mark, struct kymo_error *err)
{
	char *colon = strrchr(text, ':');

	if (!colon || colon == text || !colon[1])
		return ky_error_set(err, KYMO_E_INVALID,
				    "--mark: EVENT:FIELD is expected, not '%s'", text);
	*colon = '\0';
	*mark = (struct ky_sync_mark){text, colon + 1};
	return KYMO_OK;
}

static int parse_marks(const struct sync_options *options, struct sync_marks *marks,
		       struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < options->marks.len && !ret; i++) {
		struct ky_sync_mark mark;

		ret = parse_mark((char *)(uintptr_t)options->marks.items[i], &mark, err);
		if (!ret && ky_vec_push(marks, mark) < 0)
			ret = ky_error_nomem(err);
	}
	return ret;
}

static int cmd_sync_save(const struct ky_sync_run *run, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < run->set->traces.len && !ret; i++) {
		const struct ky_sync_machine *machine = &run->machines.data[run->of_trace[i]];
		struct ky_sync *sync = NULL;
		unsigned int n;

		if (!machine->is_reached) {
			ret = ky_sync_remove(run->set->traces.data[i], &n, err);
			continue;
		}
		ret = ky_sync_of_trace(run, i, &sync) < 0 ? ky_error_nomem(err) : KYMO_OK;
		if (!ret)
			ret = ky_sync_save(run->set->traces.data[i], sync, err);
		ky_sync_free(sync);
	}
	return ret;
}

static void warn(const struct ky_sync_run *run)
{
	size_t n = 0;

	ky_vec_foreach(&run->machines, machine) {
		n += !machine->is_reached;
		if (!machine->n_packets && !machine->n_marks && !machine->is_reached)
			ky_log_warning(&ky_cli_log, "%s: no event tells of packets or marks",
				       machine->name);
	}
	if (run->n_forgotten)
		ky_log_warning(&ky_cli_log,
			       "%" PRIu64 " packets were not compared, because too many lie "
			       "between both sides; --clock-offset brings the clocks closer",
			       run->n_forgotten);
	if (n)
		ky_log_warning(
			&ky_cli_log,
			"the clocks of %zu machines stay as they are; docs/clocks.md says what "
			"to record",
			n);
}

static void tell_progress(void *data, uint64_t n_events)
{
	(void)data;
	ky_cli_progress("comparing", n_events, 0);
}

static int sync_traces(const struct sync_options *options, const struct ky_trace_set *set,
		       char **args, int n_args, struct kymo_error *err)
{
	struct sync_marks marks = KY_VEC_INIT;
	struct ky_sync_options how = {
		.paths = (const char *const *)args,
		.n_paths = (size_t)n_args,
		.reference = options->reference,
		.mark_error_ns = options->mark_error_ns,
		.drift_max = (int64_t)options->drift_ppm * DRIFT_ONE_PPM,
		.progress = tell_progress,
		.stop = ky_cli_interrupted,
	};
	struct ky_sync_run *run = NULL;
	int ret = parse_marks(options, &marks, err);

	how.marks = marks.data;
	how.n_marks = marks.len;
	if (!ret)
		ret = ky_sync_run(set, &how, &run, err);
	ky_cli_progress_end();
	if (!ret && !options->dry)
		ret = cmd_sync_save(run, err);
	if (!ret && options->json)
		ret = ky_cli_sync_put_json(run, err);
	else if (!ret)
		ky_cli_sync_put(run);
	if (!ret)
		warn(run);
	ky_sync_run_free(run);
	ky_vec_fini(&marks);
	return ret;
}

static int cmd_sync_remove_all(const struct ky_trace_set *set, struct kymo_error *err)
{
	unsigned int n = 0, sum = 0;
	int ret = KYMO_OK;

	for (size_t i = 0; i < set->traces.len && !ret; i++) {
		ret = ky_sync_remove(set->traces.data[i], &n, err);
		sum += n;
	}
	if (!ret)
		printf("removed %u files\n", sum);
	return ret;
}

static int cmd_sync_show(const struct sync_options *options, const struct ky_trace_set *set,
			 struct kymo_error *err)
{
	if (options->json)
		return ky_cli_sync_show_json(set, err);
	ky_cli_sync_show(set);
	return KYMO_OK;
}

static int run_sync(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct sync_options *options = data;
	struct ky_trace_set set;
	struct kymo_error err;
	int ret;

	options->mark_error_ns = options->mark_error_ns ? options->mark_error_ns : MARK_ERROR_NS;
	options->drift_ppm = options->drift_ppm ? options->drift_ppm : DRIFT_MAX_PPM;
	if (options->drift_ppm > DRIFT_LIMIT_PPM)
		return ky_cli_usage(command, "--max-drift: at most %d ppm", DRIFT_LIMIT_PPM);
	if (options->mark_error_ns > INT64_MAX / 4)
		return ky_cli_usage(command, "--mark-error is too large");
	if (options->show && options->remove)
		return ky_cli_usage(command, "--show and --remove exclude each other");
	options->input.no_sync = !options->show;
	ky_error_clear(&err);
	ret = ky_cli_open(&set, args, n_args, &options->input, false, &err);
	if (ret < 0) {
		ky_cli_error(&err);
		return ret == KYMO_E_INVALID ? KY_EXIT_USAGE : KY_EXIT_FAIL;
	}
	if (options->show)
		ret = cmd_sync_show(options, &set, &err);
	else if (options->remove)
		ret = cmd_sync_remove_all(&set, &err);
	else
		ret = sync_traces(options, &set, args, n_args, &err);
	ky_trace_set_close(&set);
	if (ret < 0)
		ky_cli_error(&err);
	return ky_cli_inputs_finish(!ret		    ? KY_EXIT_OK
				    : ret == KYMO_E_INVALID ? KY_EXIT_USAGE
							    : KY_EXIT_FAIL);
}

const struct ky_command ky_command_sync = {
	.name = "sync",
	.summary = "bring the clocks of several machines together",
	.usage = "[OPTIONS] TRACE TRACE...\n"
		 "       kymo sync --show | --remove TRACE...",
	.description =
		"Finds out how far the clocks of machines are apart, and how fast they go apart, from what was seen on both "
		"sides: packets of TCP (captures of tcpdump; LTTng's net_dev_queue and net_if_receive_skb, or inet_sock_local_out and inet_sock_local_in; the kernel's tcp_probe, "
		"sock_send_length and inet_sock_set_state), or marks (--mark). The clocks of a host and its guests come from the time "
		"stamp counter that they share. Machines that nothing else connects are compared by linuxptp's lines in logs, or by the state of NTP in their "
		"recordings. Each TRACE is one machine; below one path, "
		"traces with different host names are several.\n"
		"\n"
		"A packet is sent before it is received. So each packet limits the clocks' difference, and packets in both "
		"directions leave a range. The result is the middle of the range; the error is at most half of it.\n"
		"\n"
		"The result is written beside each trace, in a file " KY_SYNC_FILE_NAME
		". All commands that read the trace use it, unless --no-sync is given. docs/clocks.md explains it.\n"
		"\n"
		"Qualities: ACCURATE: offset and drift are known within the error. APPROXIMATE: only NTP or PTP tells the difference, the packets do not tell the drift "
		"(then it is at most --max-drift), no straight line fits all packets, because somebody has set a clock, "
		"or nothing shows that the trace is of this guest (no kvm_entry of the host). "
		"INCOMPLETE: packets in one direction only. ABSENT: none.",
	.examples =
		"# two captures of the same traffic, and what happened in both in one order\n"
		"kymo sync web.pcap db.pcap\nkymo print web.pcap db.pcap\n\n"
		"# recordings of two machines that talk to each other\n"
		"kymo record -k default,tcp_probe,sock_send_length,inet_sock_set_state -o web --duration 10s\n"
		"kymo sync web db\n\n"
		"# a host and its guest\n"
		"kymo record -k default,kvm_entry,kvm_exit -o host --duration 10s\n"
		"kymo sync host guest\nkymo report guests host guest\n\n"
		"# a signal that both got at the same time, give or take 20 us\n"
		"kymo sync --mark app:pulse:number --mark-error 20us web db\n\n"
		"# what is known, and forget it\nkymo sync --show web db\nkymo sync --remove web db",
	.see_also = "print report query view",
	.first_trace = 1,
	.is_rare = true,
	.options = sync_option_defs,
	.options_size = sizeof(struct sync_options),
	.min_args = 1,
	.max_args = -1,
	.run = run_sync,
};
