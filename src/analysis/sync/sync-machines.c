/* SPDX-License-Identifier: MIT */
/* Which traces are of one machine, and a whole run. */
#include "analysis/sync/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"

/* The path that the user gave and that @path lies in: the longest. */
static size_t sync_machines_path_of(const struct ky_sync_options *options, const char *path,
				    size_t *len)
{
	size_t best = 0, best_len = 0;

	for (size_t i = 0; i < options->n_paths; i++) {
		size_t n = strlen(options->paths[i]);

		while (n > 1 && options->paths[i][n - 1] == '/')
			n--;
		if (n >= best_len && strncmp(path, options->paths[i], n) == 0 &&
		    (!path[n] || path[n] == '/' || options->paths[i][n - 1] == '/')) {
			best = i;
			best_len = n;
		}
	}
	*len = best_len;
	return best;
}

static bool sync_machines_is_of(const struct ky_trace *trace, const char *domain)
{
	const struct ky_env *env = ky_env_find(trace->cls, "domain");

	return env && env->is_text && strcmp(env->text, domain) == 0;
}

/* A log that lies in the directory of a machine's trace is of this machine. */
static bool sync_machines_add_log(struct ky_sync_run *run, size_t number)
{
	const char *path = run->set->traces.data[number]->path;
	size_t best = 0;

	for (size_t i = 0; i < run->machines.len; i++) {
		const char *of = run->machines.data[i].path;
		size_t len = strlen(of);

		if (len > best && strncmp(path, of, len) == 0 && path[len] == '/') {
			best = len;
			run->of_trace[number] = (uint32_t)i;
		}
	}
	return best > 0;
}

static int add_trace(struct ky_sync_run *run, size_t number, struct kymo_error *err)
{
	const struct ky_trace *trace = run->set->traces.data[number];
	const struct ky_env *env = ky_env_find(trace->cls, "hostname");
	const char *host = env && env->is_text ? env->text : "";
	size_t len, i, of = sync_machines_path_of(run->options, trace->path, &len);
	struct ky_sync_machine machine = {.host = host};

	machine.path = ky_arena_strndup(&run->arena, run->options->paths[of],
					len ? len : strlen(run->options->paths[of]));
	if (!machine.path)
		return ky_error_nomem(err);
	for (i = 0; i < run->machines.len; i++)
		if (strcmp(run->machines.data[i].host, host) == 0 &&
		    strcmp(run->machines.data[i].path, machine.path) == 0)
			break;
	run->of_trace[number] = (uint32_t)i;
	if (i < run->machines.len)
		return KYMO_OK;
	if (i == KY_SYNC_MACHINES_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "there are more than %d machines",
				    KY_SYNC_MACHINES_MAX);
	return ky_vec_push(&run->machines, machine) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* The host name where only one has it; else the path, with the host name where the path has several. */
static int name_machine(struct ky_sync_run *run, struct ky_sync_machine *machine)
{
	size_t n_host = 0, n_path = 0, bytes = strlen(machine->path) + strlen(machine->host) + 4;
	char *name;

	ky_vec_foreach(&run->machines, other) {
		n_host += strcmp(other->host, machine->host) == 0;
		n_path += strcmp(other->path, machine->path) == 0;
	}
	machine->name = machine->host[0] && n_host == 1 ? machine->host : machine->path;
	if (machine->name == machine->host || n_path == 1 || !machine->host[0])
		return KYMO_OK;
	name = ky_arena_alloc(&run->arena, bytes);
	if (!name)
		return KYMO_E_MEMORY;
	(void)snprintf(name, bytes, "%s (%s)", machine->host, machine->path);
	machine->name = name;
	return KYMO_OK;
}

static int find_reference(struct ky_sync_run *run, struct kymo_error *err)
{
	const char *wanted = run->options->reference;

	for (size_t i = 0; wanted && i < run->machines.len; i++) {
		const struct ky_sync_machine *machine = &run->machines.data[i];

		if (strcmp(machine->name, wanted) == 0 || strcmp(machine->path, wanted) == 0) {
			run->reference = i;
			return KYMO_OK;
		}
	}
	return wanted ? ky_error_set(
				err, KYMO_E_INVALID,
				"no machine or trace is called '%s', which is to be the reference",
				wanted)
		      : KYMO_OK;
}

/* Times of logs and captures are those of the system's clock. */
static void sync_machines_find_walls(struct ky_sync_run *run)
{
	for (size_t i = 0; i < run->machines.len; i++)
		run->facts[i].wall.has |= !run->facts[i].has_times;
	for (size_t i = 0; i < run->set->traces.len; i++) {
		const struct ky_trace *trace = run->set->traces.data[i];
		struct ky_sync_facts *facts = &run->facts[run->of_trace[i]];

		if (!facts->has_times && !sync_machines_is_of(trace, "log") &&
		    !sync_machines_is_of(trace, "network"))
			facts->wall.has = false;
	}
}

/* Of several traces of a machine, the one that says most. */
static int sync_machines_find_facts(struct ky_sync_run *run)
{
	run->facts = calloc(run->machines.len + 1, sizeof(*run->facts));
	run->ptps = calloc(run->machines.len + 1, sizeof(*run->ptps));
	if (!run->facts || !run->ptps)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < run->set->traces.len; i++) {
		struct ky_sync_facts *facts = &run->facts[run->of_trace[i]], other;

		if (ky_sync_facts_of(run->set->traces.data[i], &other) &&
		    (other.has_times > facts->has_times ||
		     (other.has_times == facts->has_times && !facts->counter)))
			*facts = other;
	}
	sync_machines_find_walls(run);
	return KYMO_OK;
}

int ky_sync_find_machines(struct ky_sync_run *run, struct kymo_error *err)
{
	int ret = KYMO_OK;

	run->of_trace = calloc(run->set->traces.len + 1, sizeof(*run->of_trace));
	if (!run->of_trace)
		return ky_error_nomem(err);
	for (size_t i = 0; i < run->set->traces.len && !ret; i++)
		if (!sync_machines_is_of(run->set->traces.data[i], "log"))
			ret = add_trace(run, i, err);
	for (size_t i = 0; i < run->set->traces.len && !ret; i++)
		if (sync_machines_is_of(run->set->traces.data[i], "log") &&
		    !sync_machines_add_log(run, i))
			ret = add_trace(run, i, err);
	for (size_t i = 0; i < run->machines.len && !ret; i++)
		ret = name_machine(run, &run->machines.data[i]) < 0 ? ky_error_nomem(err) : KYMO_OK;
	if (!ret && run->machines.len < 2) {
		ret = ky_error_set(err, KYMO_E_INVALID, "all traces are of one machine");
		ky_error_hint(err, "give a trace of each machine: kymo sync web-server data-base");
	}
	if (!ret && sync_machines_find_facts(run) < 0)
		ret = ky_error_nomem(err);
	return ret ? ret : find_reference(run, err);
}

int ky_sync_run(const struct ky_trace_set *set, const struct ky_sync_options *options,
		struct ky_sync_run **out, struct kymo_error *err)
{
	struct ky_sync_run *run = calloc(1, sizeof(*run));
	int ret;

	*out = run;
	if (!run)
		return ky_error_nomem(err);
	run->set = set;
	run->options = options;
	ky_arena_init(&run->arena);
	ky_map_init(&run->by_pair);
	(void)!getrandom(&run->group, sizeof(run->group), GRND_NONBLOCK);
	ret = ky_sync_find_machines(run, err);
	if (!ret)
		ret = ky_sync_read(run, err);
	for (size_t i = 0; i < run->machines.len && !ret; i++)
		ky_sync_ptp_finish(&run->ptps[i], &run->facts[i]);
	if (!ret && (ky_sync_solve_pairs(run) < 0 || ky_sync_choose_tree(run) < 0))
		ret = ky_error_nomem(err);
	return ret;
}

void ky_sync_run_free(struct ky_sync_run *run)
{
	if (!run)
		return;
	ky_vec_foreach(&run->pairs, pair)
		ky_sync_pair_free(*pair);
	ky_vec_fini(&run->pairs);
	ky_vec_fini(&run->machines);
	ky_map_fini(&run->by_pair);
	free(run->table.slots[0]);
	free(run->table.slots[1]);
	free(run->of_trace);
	free(run->facts);
	free(run->ptps);
	ky_arena_fini(&run->arena);
	free(run);
}

static int add_pairs(const struct ky_sync_run *run, uint32_t machine, struct ky_sync *sync)
{
	ky_vec_foreach(&run->pairs, it) {
		const struct ky_sync_pair *pair = *it;
		bool is_a = pair->a == machine;
		struct ky_sync_with with = {
			.machine = run->machines.data[is_a ? pair->b : pair->a].name,
			.quality = pair->quality,
			.n_to = is_a ? pair->n_ab : pair->n_ba,
			.n_from = is_a ? pair->n_ba : pair->n_ab,
			.bound_ns = pair->bound_ns,
			.is_chosen = pair->is_chosen,
		};

		if (!is_a && pair->b != machine)
			continue;
		with.machine = ky_arena_strdup(&sync->arena, with.machine);
		if (sync->pairs.len < KY_SYNC_PAIRS_MAX &&
		    (!with.machine || ky_vec_push(&sync->pairs, with) < 0))
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

int ky_sync_of_trace(const struct ky_sync_run *run, size_t trace, struct ky_sync **out)
{
	uint32_t number = run->of_trace[trace];
	const struct ky_sync_machine *machine = &run->machines.data[number];
	struct ky_sync *sync = *out = ky_sync_new();

	if (!sync)
		return KYMO_E_MEMORY;
	sync->trace = ky_sync_identity(run->set->traces.data[trace]);
	sync->group = run->group;
	sync->quality = machine->quality;
	sync->at_ns = machine->at_ns;
	sync->shift_ns = machine->shift_ns;
	sync->drift = machine->drift;
	sync->begin_ns = machine->begin_ns;
	sync->end_ns = machine->end_ns;
	sync->begin_bound_ns = machine->begin_bound_ns;
	sync->end_bound_ns = machine->end_bound_ns;
	sync->drift_bound = machine->drift_bound;
	sync->machine = ky_arena_strdup(&sync->arena, machine->name);
	sync->reference = ky_arena_strdup(&sync->arena, run->machines.data[run->reference].name);
	if (!sync->machine || !sync->reference)
		return KYMO_E_MEMORY;
	return add_pairs(run, number, sync);
}
