/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-summary.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/terminal/command.h"

/* Programs that get a line of their own; those with losses come in any case. */
#define PROGRAMS_MAX 40

/* ---- the kernel ----------------------------------------------------------------------- */

static void print_cpu(const struct ky_session_stats *stats, uint32_t i)
{
	fprintf(stderr, "%8" PRIu32 " %14" PRIu64 " %14" PRIu64, stats->cpus[i].cpu,
		stats->cpus[i].events, stats->cpus[i].lost);
	if (stats->cpus[i].group) {
		fputs("  group ", stderr);
		ky_cli_put_text(stderr, stats->cpus[i].group);
	}
	fputc('\n', stderr);
}

static void print_kernel(const struct ky_session_stats *stats)
{
	fprintf(stderr, "%8s %14s %14s\n", "CPU", stats->is_raw ? "records" : "events", "lost");
	for (uint32_t i = 0; i < stats->n_cpus; i++)
		print_cpu(stats, i);
	fprintf(stderr, "%8s %14" PRIu64 "\n", "state", stats->dump_events);
}

/* The recorder does not parse raw pages. */
static void print_counts(uint64_t events, uint64_t records)
{
	fputs("Recorded ", stderr);
	if (records)
		fprintf(stderr, "%" PRIu64 " raw records", records);
	if (records && events)
		fputs(" and ", stderr);
	if (events || !records)
		fprintf(stderr, "%" PRIu64 " events", events);
}

static void print_full_rings(const struct ky_recording_buffers *buffers)
{
	char size[32];

	fprintf(stderr, "kymo: warning: %" PRIu64 " events", buffers->lost);
	if (buffers->group) {
		fputs(" of group ", stderr);
		ky_cli_put_text(stderr, buffers->group);
	}
	fprintf(stderr, " were lost: the rings (%s per CPU) were full; try a larger ",
		ky_format_bytes(size, buffers->bytes));
	if (buffers->group) {
		fputs("--group ", stderr);
		ky_cli_put_text(stderr, buffers->group);
		fputs(":SIZE, or fewer events in the group\n", stderr);
	} else {
		fputs("--buffer-size, or fewer events with --kernel\n", stderr);
	}
}

static void print_kernel_losses(const struct ky_recording_stats *all)
{
	const struct ky_session_stats *stats = all->kernel;

	if (stats->bad)
		fprintf(stderr,
			"kymo: warning: %" PRIu64 " records of the kernel could not be read\n",
			stats->bad);
	if (stats->content_missing)
		fprintf(stderr,
			"kymo: warning: the content of %" PRIu64 " system calls was lost (see "
			"their content_status); try a larger --buffer-size, or fewer calls with "
			"--kernel\n",
			stats->content_missing);
	if (stats->counters_missing)
		fprintf(stderr,
			"kymo: warning: the counters of %" PRIu64 " events were lost: these events "
			"have the counters of the previous event on their CPU\n",
			stats->counters_missing);
	if (stats->samples_lost)
		fprintf(stderr,
			"kymo: warning: %" PRIu64
			" samples%s were lost; try a larger --buffer-size, or fewer samples\n",
			stats->samples_lost,
			stats->samples_are_chosen
				? " of all threads of the machine, not only of the chosen ones,"
				: "");
	for (size_t i = 0; i < all->n_kernel_buffers; i++)
		if (all->kernel_buffers[i].lost)
			print_full_rings(&all->kernel_buffers[i]);
}

/* ---- programs ------------------------------------------------------------------------- */

static void record_summary_print_programs(const struct ky_user_stats *stats)
{
	char archived[32];
	size_t left = 0;

	fprintf(stderr, "%8s %14s %14s %12s  %s\n", "pid", "events", "lost", "size", "program");
	for (size_t i = 0; i < stats->n_programs; i++) {
		const struct ky_user_program_stats *program = &stats->programs[i];
		char size[32];

		if (i >= PROGRAMS_MAX && !program->lost && !program->lost_claimed) {
			left++;
			continue;
		}
		fprintf(stderr, "%8" PRIu32 " %14" PRIu64 " %14" PRIu64 " %12s  ", program->pid,
			program->events, program->lost, ky_format_bytes(size, program->bytes));
		ky_cli_put_text(stderr, program->procname);
		if (program->group) {
			fputs("  group ", stderr);
			ky_cli_put_text(stderr, program->group);
		}
		fputc('\n', stderr);
	}
	if (left)
		fprintf(stderr, "%8s %zu more programs\n", "...", left);
	if (stats->n_archived)
		fprintf(stderr,
			"%8s %14" PRIu64 " %14" PRIu64
			" %12s  in chunks: %zu program%s that ended\n",
			"...", stats->archived.events, stats->archived.lost,
			ky_format_bytes(archived, stats->archived.bytes), stats->n_archived,
			stats->n_archived == 1 ? "" : "s");
	fprintf(stderr, "%8s %14" PRIu64 "\n", "state", stats->dump_events);
}

static void print_cause(uint64_t count, const char *cause, bool *any)
{
	if (!count)
		return;
	fprintf(stderr, "%s%" PRIu64 ": %s", *any ? "; " : "", count, cause);
	*any = true;
}

/* "; try a larger --buffer-size (now 64.0 KiB per CPU), ..." */
static void print_full_buffers(const struct ky_recording_stats *stats)
{
	const char *before = "; try a larger ";
	bool of_groups = false, of_main = false;
	char size[32];

	for (size_t i = 0; i < stats->n_user_buffers; i++) {
		const struct ky_recording_buffers *buffers = &stats->user_buffers[i];

		if (!buffers->lost)
			continue;
		fputs(before, stderr);
		before = ", a larger ";
		*(buffers->group ? &of_groups : &of_main) = true;
		fputs(buffers->group ? "--group " : "--buffer-size", stderr);
		if (buffers->group)
			ky_cli_put_text(stderr, buffers->group);
		fprintf(stderr, "%s (now %s per CPU)", buffers->group ? ":SIZE" : "",
			ky_format_bytes(size, buffers->bytes));
	}
	if (of_main || of_groups)
		fprintf(stderr, ", fewer events %s, or --when-full block",
			!of_groups ? "with --user"
			: of_main  ? "with --user and in the groups"
				   : "in the groups");
}

static void print_user_losses(const struct ky_recording_stats *all)
{
	const struct ky_user_stats *stats = all->user;
	uint64_t by[KYMO_RING_LOSSES_MAX] = {0}, joining = 0, no_id = 0, unread = 0;
	bool any = false;

	if (!stats->lost)
		return;
	for (size_t i = 0; i <= stats->n_programs; i++) {
		const struct ky_user_program_stats *program =
			i < stats->n_programs ? &stats->programs[i] : &stats->archived;

		if (program->lost_claimed)
			continue;
		for (unsigned int k = 0; k < KYMO_RING_LOSSES_MAX; k++)
			by[k] += program->lost_by[k];
		joining += program->lost_joining;
		no_id += program->lost_no_id;
		unread += program->lost_unread;
	}
	fprintf(stderr, "kymo: warning: %" PRIu64 " events of programs were lost (", stats->lost);
	for (unsigned int k = 0; k < KYMO_RING_LOSSES_MAX; k++)
		print_cause(by[k], kymo_ring_loss_text(k), &any);
	print_cause(joining, "while joining", &any);
	print_cause(no_id, "too many kinds of events", &any);
	print_cause(unread, "not read, see above", &any);
	fputs(")", stderr);
	print_full_buffers(all);
	fputc('\n', stderr);
}

/* A program's counts are what it says. */
static void print_claims(const struct ky_user_stats *stats)
{
	size_t n = 0;

	for (size_t i = 0; i < stats->n_programs; i++) {
		const struct ky_user_program_stats *program = &stats->programs[i];

		if (!program->lost_claimed || n++ >= PROGRAMS_MAX)
			continue;
		fputs("kymo: warning: ", stderr);
		ky_cli_put_text(stderr, program->procname);
		fprintf(stderr,
			" (%" PRIu32 ") claims to have lost %" PRIu64
			" events, which is impossible; the count leaves them out\n",
			program->pid, program->lost_claimed);
	}
	if (n > PROGRAMS_MAX)
		fprintf(stderr, "kymo: warning: %zu more programs have impossible loss counts\n",
			n - PROGRAMS_MAX);
}

static void print_cut_texts(const struct ky_user_stats *stats)
{
	const struct ky_user_program_stats *first = NULL;

	for (size_t i = 0; i < stats->n_programs && !first; i++)
		first = stats->programs[i].cut_texts ? &stats->programs[i] : NULL;
	if (!first)
		return;
	fprintf(stderr, "kymo: warning: %" PRIu64 " texts of programs, such as ", stats->cut_texts);
	ky_cli_put_text(stderr, first->procname);
	fprintf(stderr,
		" (%" PRIu32
		"), are longer than %d bytes; the trace has their beginning, with \"...\" at the "
		"end\n",
		first->pid, KY_USER_TEXT_MAX);
}

/* "the buffers have 64.0 KiB per CPU, those of group rare 1.0 MiB": those that overwrite, each once. */
static void print_sizes(const struct ky_recording_buffers *list, size_t n, bool of_groups,
			bool *any)
{
	char size[32];

	for (size_t i = 0; i < n; i++) {
		const struct ky_recording_buffers *buffers = &list[i];

		if (!buffers->overwrite || of_groups != (buffers->group != NULL))
			continue;
		if (!of_groups && *any)
			continue;
		fputs(*any ? ", those" : "the buffers", stderr);
		if (buffers->group) {
			fputs(" of group ", stderr);
			ky_cli_put_text(stderr, buffers->group);
		}
		fprintf(stderr, "%s %s%s", *any ? "" : " have",
			ky_format_bytes(size, buffers->bytes), *any ? "" : " per CPU");
		*any = true;
	}
}

/* What a flight recorder had no room for. */
static void print_overwritten(const struct ky_recording_stats *stats)
{
	const struct ky_session_stats *kernel = stats->kernel;
	const struct ky_user_stats *user = stats->user;
	uint64_t n = (kernel ? kernel->overwritten : 0) + (user ? user->overwritten : 0);
	bool any = false;

	if (n) {
		fprintf(stderr, "%" PRIu64 " older events were overwritten: ", n);
		for (int of_groups = 0; of_groups < 2; of_groups++) {
			print_sizes(stats->kernel_buffers, stats->n_kernel_buffers, of_groups,
				    &any);
			print_sizes(stats->user_buffers, stats->n_user_buffers, of_groups, &any);
		}
		fputc('\n', stderr);
	}
	if (user && user->n_dropped)
		fprintf(stderr,
			"the buffers of %zu ended program%s were dropped; --keep-ended keeps more\n",
			user->n_dropped, user->n_dropped == 1 ? "" : "s");
}

static void print_missing(uint64_t missing, const char *whose)
{
	if (missing)
		fprintf(stderr,
			"kymo: warning: the state dump of %s is not complete: %" PRIu64
			" files are missing, because too many were open; raise the limit of open "
			"files (ulimit -n)\n",
			whose, missing);
}

/* ---- both ----------------------------------------------------------------------------- */

static void print_path(const char *before, const char *path)
{
	fputs(before, stderr);
	ky_cli_put_text(stderr, path);
	fputc('\n', stderr);
}

static void print_next(const char *output, const struct ky_recording_stats *stats, bool has_calls)
{
	const struct ky_session_stats *kernel = stats->kernel;

	if (kernel && kernel->is_raw)
		fputs("Not every raw record becomes an event: 'kymo convert' leaves out records of "
		      "Kymo itself, and prints their number\n",
		      stderr);
	print_path("Trace: ", output);
	if (stats->n_chunks)
		fprintf(stderr, "Chunks: %" PRIu64 " in archives/, %" PRIu64 " removed\n",
			stats->n_chunks - stats->n_removed, stats->n_removed);
	/* What is at a relay is read there. */
	if (strstr(output, "://"))
		return;
	print_path("Next:  kymo info ", output);
	if (has_calls)
		print_path("       kymo report calls ", output);
	if (kernel && kernel->samples)
		print_path("       kymo report flame ", output);
	if (kernel && kernel->events > kernel->samples)
		print_path("       kymo report why ", output);
	print_path("       kymo print ", output);
}

/* What kymo ctl has done. */
static void print_control(const struct ky_recording_stats *stats)
{
	char time[32];

	if (stats->n_pauses)
		fprintf(stderr, "The recording was paused for %s in %u pause%s.\n",
			ky_format_duration(time, stats->paused_ns), stats->n_pauses,
			stats->n_pauses == 1 ? "" : "s");
	if (stats->cleared_events)
		fprintf(stderr,
			"%" PRIu64 " events were cleared; the tables below count them, too.\n",
			stats->cleared_events);
}

void ky_record_summary(const char *output, const struct ky_recording_stats *stats, bool has_calls,
		       bool is_whole)
{
	const struct ky_session_stats *kernel = stats->kernel;
	const struct ky_user_stats *user = stats->user;
	uint64_t events = 0, records = 0, bytes = 0, lost = 0;
	char size[32], time[32];

	if (kernel) {
		*(kernel->is_raw ? &records : &events) += kernel->events;
		events += kernel->dump_events;
		bytes += kernel->bytes;
		lost += kernel->lost;
	}
	if (user) {
		events += user->events + user->dump_events;
		bytes += user->bytes;
		lost += user->lost;
	}
	events -= events < stats->cleared_events ? events : stats->cleared_events;
	bytes -= bytes < stats->cleared_bytes ? bytes : stats->cleared_bytes;
	/* Another thread's message does not come in between. */
	flockfile(stderr);
	print_counts(events, records);
	fprintf(stderr, ", %s, in %s; %" PRIu64 " lost.%s\n", ky_format_bytes(size, bytes),
		ky_format_duration(time, stats->duration_ns), lost,
		is_whole ? "" : " The trace may be incomplete: see above.");
	funlockfile(stderr);
	print_control(stats);
	if (kernel)
		print_kernel(kernel);
	if (user && (user->n_programs || user->n_archived))
		record_summary_print_programs(user);
	print_overwritten(stats);
	if (kernel) {
		print_kernel_losses(stats);
		print_missing(kernel->dump_missing, "the kernel");
	}
	if (user) {
		print_user_losses(stats);
		print_cut_texts(user);
		print_missing(user->dump_missing, "programs");
		print_claims(user);
	}
	if (user && user->n_left_out)
		fprintf(stderr,
			"kymo: warning: %zu program%s could not join, or not fully: see above\n",
			user->n_left_out, user->n_left_out == 1 ? "" : "s");
	if (user && user->n_refused)
		fprintf(stderr, "kymo: warning: %zu ring file%s could not be read: see above\n",
			user->n_refused, user->n_refused == 1 ? "" : "s");
	if (user && !user->n_programs && !user->n_archived && user->n_lacking)
		fprintf(stderr,
			"kymo: warning: %zu program%s with matching events ran, but no event has "
			"the fields of --filter\n",
			user->n_lacking, user->n_lacking == 1 ? "" : "s");
	else if (user && !user->n_programs && !user->n_archived && !user->n_dropped &&
		 !user->n_left_out && !user->n_refused)
		fputs("kymo: warning: no program with matching events ran; 'kymo list --user' "
		      "shows the running programs\n",
		      stderr);
	print_next(output, stats, has_calls);
}
