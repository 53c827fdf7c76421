/* SPDX-License-Identifier: MIT */
#include "cli/traces/sync-output.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"

/* Pairs of which nothing was seen are named up to so many machines. */
#define ABSENT_MACHINES_MAX 10
#define NAME_WIDTH_MAX	    40

static int name_width(const struct ky_sync_run *run)
{
	size_t most = strlen("machine");

	ky_vec_foreach(&run->machines, machine) {
		size_t len = strlen(machine->name);

		most = len > most ? len : most;
	}
	return (int)(most < NAME_WIDTH_MAX ? most : NAME_WIDTH_MAX) + 2;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static const char *text_offset(char out[64], int64_t ns)
{
	uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;

	(void)snprintf(out, 64, "%c%" PRIu64 ".%09" PRIu64 " s", ns < 0 ? '-' : '+',
		       size / 1000000000, size % 1000000000);
	return out;
}

static void sync_output_put_bound(uint64_t ns)
{
	printf("%12" PRIu64 " ns", ns);
}

static void put_machine(const struct ky_sync_run *run, const struct ky_sync_machine *machine,
			int width)
{
	const struct ky_sync_pair *pair;
	char text[64];
	size_t number = (size_t)(machine - run->machines.data);

	ky_cli_put_padded(stdout, machine->name, width);
	if (number == run->reference) {
		puts("the reference");
		return;
	}
	/* lint: own text */
	printf("%-12s", ky_sync_quality_name(machine->quality));
	if (!machine->is_reached) {
		putchar('\n');
		return;
	}
	/* lint: own text */
	printf(" %24s", text_offset(text, machine->shift_ns));
	printf(" %+13.6f ppm", (double)machine->drift / 1e12);
	sync_output_put_bound(most_of(machine->begin_bound_ns, machine->end_bound_ns));
	pair = run->pairs.data[machine->by_pair];
	fputs("  ", stdout);
	ky_cli_put_text(stdout, run->machines.data[pair->a == number ? pair->b : pair->a].name);
	putchar('\n');
}

static void sync_output_put_pair(const struct ky_sync_run *run, const struct ky_sync_pair *pair,
				 int width)
{
	ky_cli_put_padded(stdout, run->machines.data[pair->a].name, width);
	ky_cli_put_padded(stdout, run->machines.data[pair->b].name, width);
	/* lint: own text */
	printf("%-12s %10" PRIu64 " %10" PRIu64, ky_sync_quality_name(pair->quality), pair->n_ab,
	       pair->n_ba);
	if (pair->quality >= KY_SYNC_APPROXIMATE)
		sync_output_put_bound(pair->bound_ns);
	if (pair->source == KY_SYNC_COUNTER && !pair->n_checked)
		fputs("  by the counter (TSC), not checked: the host has no kvm_entry events",
		      stdout);
	else if (pair->source == KY_SYNC_COUNTER)
		printf("  by the counter (TSC), %" PRIu64 " of %" PRIu64
		       " events between entry and exit",
		       pair->n_inside, pair->n_checked);
	else if (pair->source == KY_SYNC_UTC)
		fputs("  by UTC (NTP)", stdout);
	else if (pair->source == KY_SYNC_PTP)
		fputs("  by PTP (linuxptp's logs)", stdout);
	puts(pair->is_chosen ? "  in the tree" : "");
}

static uint64_t n_absent(const struct ky_sync_run *run)
{
	uint64_t n = (uint64_t)run->machines.len * (run->machines.len - 1) / 2;

	ky_vec_foreach(&run->pairs, pair)
		n -= (*pair)->quality != KY_SYNC_ABSENT;
	return n;
}

static void put_absent(const struct ky_sync_run *run, int width)
{
	uint64_t n = n_absent(run);

	if (!n)
		return;
	if (run->machines.len > ABSENT_MACHINES_MAX) {
		printf("%" PRIu64 " other pairs: ABSENT\n", n);
		return;
	}
	for (uint32_t a = 0; a < run->machines.len; a++) {
		for (uint32_t b = a + 1; b < run->machines.len; b++) {
			uintptr_t number =
				(uintptr_t)ky_map_get(&run->by_pair, (uint64_t)a << 32 | b);
			struct ky_sync_pair none = {.a = a, .b = b};

			if (!number || run->pairs.data[number - 1]->quality == KY_SYNC_ABSENT)
				sync_output_put_pair(run, &none, width);
		}
	}
}

void ky_cli_sync_put(const struct ky_sync_run *run)
{
	int width = name_width(run);

	printf("%-*s%-12s %24s %17s %15s  %s\n", width, "machine", "quality", "offset", "drift",
	       "error at most", "by");
	ky_vec_foreach(&run->machines, machine)
		put_machine(run, machine, width);
	printf("\n%-*s%-*s%-12s %10s %10s %15s\n", width, "pair", width, "", "quality", "messages",
	       "back", "error at most");
	ky_vec_foreach(&run->pairs, pair)
		if ((*pair)->quality != KY_SYNC_ABSENT)
			sync_output_put_pair(run, *pair, width);
	put_absent(run, width);
}

/* ---- JSON ----------------------------------------------------------------------------- */

static void sync_output_set_number(json_t *object, const char *key, uint64_t number)
{
	json_object_set_new(object, key, json_integer((json_int_t)number));
}

static void set_signed(json_t *object, const char *key, int64_t number)
{
	json_object_set_new(object, key, json_integer(number));
}

static void sync_output_set_text(json_t *object, const char *key, const char *text)
{
	json_object_set_new(object, key, ky_jansson_text(text));
}

static json_t *json_machine(const struct ky_sync_run *run, const struct ky_sync_machine *machine)
{
	json_t *object = json_object();
	size_t number = (size_t)(machine - run->machines.data);
	const struct ky_sync_pair *pair;

	sync_output_set_text(object, "machine", machine->name);
	sync_output_set_text(object, "quality", ky_sync_quality_name(machine->quality));
	sync_output_set_number(object, "packets", machine->n_packets);
	sync_output_set_number(object, "marks", machine->n_marks);
	if (!machine->is_reached)
		return object;
	set_signed(object, "at_ns", machine->at_ns);
	set_signed(object, "shift_ns", machine->shift_ns);
	set_signed(object, "drift", machine->drift);
	set_signed(object, "begin_ns", machine->begin_ns);
	set_signed(object, "end_ns", machine->end_ns);
	sync_output_set_number(object, "begin_bound_ns", machine->begin_bound_ns);
	sync_output_set_number(object, "end_bound_ns", machine->end_bound_ns);
	sync_output_set_number(object, "drift_bound", machine->drift_bound);
	if (number == run->reference)
		return object;
	pair = run->pairs.data[machine->by_pair];
	sync_output_set_text(object, "by",
			     run->machines.data[pair->a == number ? pair->b : pair->a].name);
	return object;
}

static json_t *json_pair(const struct ky_sync_run *run, const struct ky_sync_pair *pair)
{
	json_t *object = json_object();

	sync_output_set_text(object, "a", run->machines.data[pair->a].name);
	sync_output_set_text(object, "b", run->machines.data[pair->b].name);
	sync_output_set_text(object, "quality", ky_sync_quality_name(pair->quality));
	sync_output_set_number(object, "messages_ab", pair->n_ab);
	sync_output_set_number(object, "messages_ba", pair->n_ba);
	if (pair->quality >= KY_SYNC_APPROXIMATE)
		sync_output_set_number(object, "bound_ns", pair->bound_ns);
	sync_output_set_text(object, "source", ky_sync_source_name(pair->source));
	if (pair->source == KY_SYNC_COUNTER) {
		sync_output_set_number(object, "events_checked", pair->n_checked);
		sync_output_set_number(object, "events_inside", pair->n_inside);
	}
	json_object_set_new(object, "in_tree", json_boolean(pair->is_chosen));
	return object;
}

int ky_cli_sync_put_json(const struct ky_sync_run *run, struct kymo_error *err)
{
	json_t *root = json_object(), *machines = json_array(), *pairs = json_array();

	sync_output_set_text(root, "reference", run->machines.data[run->reference].name);
	ky_vec_foreach(&run->machines, machine)
		json_array_append_new(machines, json_machine(run, machine));
	ky_vec_foreach(&run->pairs, pair)
		json_array_append_new(pairs, json_pair(run, *pair));
	json_object_set_new(root, "machines", machines);
	json_object_set_new(root, "pairs", pairs);
	sync_output_set_number(root, "absent_pairs", n_absent(run));
	return ky_cli_put_json(root, 2, err);
}

/* ---- what is there -------------------------------------------------------------------- */

void ky_cli_sync_show(const struct ky_trace_set *set)
{
	char text[64];

	ky_vec_foreach(&set->traces, it) {
		const struct ky_sync *sync = (*it)->sync;

		ky_cli_put_text(stdout, (*it)->path);
		if (!sync) {
			puts(": its clock is as it was recorded");
			continue;
		}
		/* lint: own text */
		printf(": %s, %s, ", ky_sync_quality_name(sync->quality),
		       text_offset(text, sync->shift_ns));
		printf("%+.6f ppm, error at most %" PRIu64 " ns; machine ",
		       (double)sync->drift / 1e12,
		       most_of(sync->begin_bound_ns, sync->end_bound_ns));
		ky_cli_put_text(stdout, sync->machine);
		fputs(", by the clock of ", stdout);
		ky_cli_put_text(stdout, sync->reference);
		putchar('\n');
	}
}

int ky_cli_sync_show_json(const struct ky_trace_set *set, struct kymo_error *err)
{
	json_t *root = json_array();

	ky_vec_foreach(&set->traces, it) {
		const struct ky_sync *sync = (*it)->sync;
		json_t *object = json_object();

		sync_output_set_text(object, "trace", (*it)->path);
		json_object_set_new(object, "synchronised", json_boolean(sync != NULL));
		if (sync) {
			sync_output_set_text(object, "machine", sync->machine);
			sync_output_set_text(object, "reference", sync->reference);
			sync_output_set_text(object, "quality",
					     ky_sync_quality_name(sync->quality));
			set_signed(object, "at_ns", sync->at_ns);
			set_signed(object, "shift_ns", sync->shift_ns);
			set_signed(object, "drift", sync->drift);
			sync_output_set_number(object, "begin_bound_ns", sync->begin_bound_ns);
			sync_output_set_number(object, "end_bound_ns", sync->end_bound_ns);
		}
		json_array_append_new(root, object);
	}
	return ky_cli_put_json(root, 2, err);
}
