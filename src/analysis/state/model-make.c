/* SPDX-License-Identifier: MIT */
/* The state model: made from the traces' metadata, and freed. */
#include "analysis/state/model-internal.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/addresses/trace-symbols.h"
#include "base/error.h"
#include "store/read/join-classes.h"

/* The traces of a host are closed: nothing more comes from it. */
static struct ky_trace_class no_class;
static const struct ky_trace no_trace = {.path = (char *)"", .cls = &no_class};

/* What the metadata of @trace tells. 0 or KYMO_E_MEMORY. */
static int bind_host(struct ky_model *model, struct ky_host *host, const struct ky_trace *trace)
{
	const struct ky_env *env = ky_env_find(trace->cls, "hostname");
	const char *name = env && env->is_text ? env->text : "";

	host->trace = trace;
	if (!host->name || strcmp(host->name, name) != 0)
		host->name = ky_arena_strdup(&model->arena, name);
	return host->name ? ky_model_resolve(model, host) : KYMO_E_MEMORY;
}

static struct ky_host *model_make_add_host(struct ky_model *model, const struct ky_trace *trace)
{
	struct ky_host *host = ky_arena_new(&model->arena, struct ky_host);

	if (!host)
		return NULL;
	host->index = (uint32_t)model->hosts.len;
	host->torn_until_ns = host->blind_until_ns = host->memory_ns = INT64_MIN;
	ky_map_init(&host->threads);
	ky_map_init(&host->cpus);
	host->state = ky_arena_new(&model->arena, struct ky_host_state);
	if (!host->state || ky_vec_push(&model->hosts, host) < 0)
		return NULL;
	return bind_host(model, host, trace) < 0 ? NULL : host;
}

/* The streams of a trace of the host; a CPU that records switches exists even if nothing happens there. */
static int add_streams(struct ky_model *model, struct ky_host *host, const struct ky_trace *trace)
{
	bool any = false, all = true;

	ky_vec_foreach(&model->set->streams, it) {
		const struct ky_stream *stream = *it;
		struct ky_stream_state *state = &model->streams[stream->index];

		if (stream->trace != trace)
			continue;
		*state = (struct ky_stream_state){.host = host, .last_ns = INT64_MIN};
		for (size_t i = 0; stream->cls && i < stream->cls->events.len; i++) {
			uint32_t index = stream->cls->events.data[i]->index;
			ky_event_handler handle = host->classes[index].whole;

			state->has_switch |= handle == ky_on_switch;
			state->has_syscalls |= handle == ky_on_syscall_entry;
		}
		any |= state->has_switch;
		all &= !state->has_switch || stream->has_cpu_id;
		if (!state->has_switch || !stream->has_cpu_id)
			continue;
		if (!ky_model_cpu_get(model, host, stream->cpu_id))
			return KYMO_E_MEMORY;
		if (stream->cpu_id < 64)
			host->recorded_cpus |= UINT64_C(1) << stream->cpu_id;
	}
	host->knows_cpus = any && all;
	return 0;
}

/* ---- chunks ------------------------------------------------------------------------------ */

/* Whether @a's classes are @b's, at the same indexes, and maybe further ones. */
static bool has_classes_of(const struct ky_trace *a, const struct ky_trace *b)
{
	if (!ky_join_has_identity(a->cls) || memcmp(a->cls->uuid, b->cls->uuid, 16) != 0 ||
	    a->cls->events.len < b->cls->events.len || !ky_join_covers(a->cls, b->cls))
		return false;
	for (size_t i = 0; i < b->cls->events.len; i++) {
		const struct ky_event_class *one = a->cls->events.data[i],
					    *other = b->cls->events.data[i];

		if (one->id != other->id || one->stream->id != other->stream->id)
			return false;
	}
	return true;
}

/*
 * The host of the recording of which @trace is a chunk. A reader that follows a recording has its chunks as traces of their
 * own: the later ones continue what the earlier ones tell.
 */
static struct ky_host *host_of_chunk(const struct ky_model *model, const struct ky_trace *trace)
{
	ky_vec_foreach(&model->hosts, host)
		if (has_classes_of((*host)->trace, trace) || has_classes_of(trace, (*host)->trace))
			return *host;
	return NULL;
}

/* One more chunk of the host; the metadata that knows more describes both. */
static int model_make_add_chunk(struct ky_model *model, struct ky_host *host,
				const struct ky_trace *trace)
{
	int ret = has_classes_of(host->trace, trace) ? 0 : bind_host(model, host, trace);

	return ret < 0 ? ret : add_streams(model, host, trace);
}

static bool model_make_is_followed(const struct ky_trace_set *set)
{
	ky_vec_foreach(&set->traces, trace)
		if ((*trace)->live.is_written)
			return true;
	return false;
}

/* A host's name where no other one has it, else the trace's path; and which hosts are of one machine. 0 or KYMO_E_MEMORY. */
static int label_hosts(struct ky_model *model)
{
	ky_programs_pair(model);
	ky_vec_foreach(&model->hosts, host) {
		const char *label = (*host)->name[0] ? (*host)->name : (*host)->trace->path;

		ky_vec_foreach(&model->hosts, other) {
			if (*other != *host && strcmp((*other)->name, (*host)->name) == 0)
				label = (*host)->trace->path;
		}
		/* The path of closed traces stays. */
		if ((*host)->label && (!*label || strcmp((*host)->label, label) == 0))
			continue;
		(*host)->label = ky_arena_strdup(&model->arena, label);
		if (!(*host)->label)
			return KYMO_E_MEMORY;
	}
	return 0;
}

struct ky_model *ky_model_new(const struct ky_trace_set *set, struct kymo_error *err)
{
	struct ky_model *model = calloc(1, sizeof(*model));

	if (!model)
		goto fail;
	ky_arena_init(&model->arena);
	ky_values_init(&model->values);
	ky_names_init(&model->syscall_ids);
	ky_names_init(&model->sample_sources);
	ky_map_init(&model->syscall_numbers);
	model->set = set;
	model->first_ns = model->range_ns = model->begin_ns = model->end_ns = INT64_MIN;
	model->n_first_cpus = SIZE_MAX;
	model->boundary_ns = INT64_MAX;
	model->telling = true;
	model->streams = calloc(set->streams.len + 1, sizeof(*model->streams));
	if (!model->streams)
		goto fail;
	model->n_streams = set->streams.len;
	ky_vec_foreach(&set->traces, trace) {
		struct ky_host *host =
			model_make_is_followed(set) ? host_of_chunk(model, *trace) : NULL;

		if (!host)
			host = model_make_add_host(model, *trace);
		if (!host || model_make_add_chunk(model, host, *trace) < 0)
			goto fail;
	}
	if (label_hosts(model) < 0)
		goto fail;
	ky_model_ask(model, 0);
	return model;
fail:
	ky_model_free(model);
	ky_error_nomem(err);
	return NULL;
}

/* ---- traces that were opened again ------------------------------------------------------ */

static struct ky_host *host_of(const struct ky_model *model, const char *path)
{
	ky_vec_foreach(&model->hosts, host)
		if (strcmp((*host)->trace->path, path) == 0)
			return *host;
	return NULL;
}

/* What was known of streams goes to the streams of the same host and name; of several chunks, that of the latest. */
static void carry_streams(struct ky_model *model, const struct ky_trace_set *before,
			  struct ky_stream_state *known)
{
	ky_vec_foreach(&model->set->streams, it) {
		const struct ky_stream *stream = *it;
		struct ky_stream_state *to = &model->streams[stream->index];

		ky_vec_foreach(&before->streams, old) {
			struct ky_stream_state *from = &known[(*old)->index];

			if (from->host != to->host || from->last_ns < to->last_ns ||
			    strcmp((*old)->name, stream->name) != 0)
				continue;
			ky_map_fini(&to->cpus);
			to->begun = from->begun;
			to->cpu_id = from->cpu_id;
			to->cpu = from->cpu;
			to->cpus = from->cpus;
			to->last_ns = from->last_ns;
			from->cpus = (struct ky_map){0};
		}
	}
	ky_vec_foreach(&before->streams, old)
		ky_map_fini(&known[(*old)->index].cpus);
}

/* Hosts whose traces are gone must not lead to them. */
static void leave_hosts(const struct ky_model *model, const bool *is_bound)
{
	ky_vec_foreach(&model->hosts, host)
		if (!is_bound[(*host)->index])
			(*host)->trace = &no_trace;
}

/* What was known of the host goes on with @trace. */
static int rebind_host(struct ky_model *model, struct ky_host *host, const struct ky_trace *trace,
		       bool *is_bound)
{
	int ret = 0;

	/* A trace of the set before must go. */
	if (!is_bound[host->index] || !has_classes_of(host->trace, trace))
		ret = bind_host(model, host, trace);
	is_bound[host->index] = true;
	return ret < 0 ? ret : add_streams(model, host, trace);
}

/* First traces at their places; then the @others: chunks of a host's recording, and traces that have just begun. */
static int rebind_trace(struct ky_model *model, const struct ky_trace *trace, bool others,
			bool *is_bound)
{
	struct ky_host *host = host_of(model, trace->path);

	if (others == (host != NULL))
		return 0;
	if (others)
		host = host_of_chunk(model, trace);
	if (!host)
		host = model_make_add_host(model, trace);
	return host ? rebind_host(model, host, trace, is_bound) : KYMO_E_MEMORY;
}

int ky_model_rebind(struct ky_model *model, const struct ky_trace_set *set)
{
	const struct ky_trace_set *before = model->set;
	struct ky_stream_state *known = model->streams;
	bool *is_bound = calloc(model->hosts.len + set->traces.len + 1, sizeof(*is_bound));
	int status = 0;

	model->streams = calloc(set->streams.len + 1, sizeof(*model->streams));
	if (!model->streams || !is_bound) {
		free(model->streams);
		model->streams = known;
		free(is_bound);
		return KYMO_E_MEMORY;
	}
	model->n_streams = set->streams.len;
	ky_trace_symbols_close(model->symbols);
	model->symbols = NULL;
	model->set = set;
	for (int others = 0; others < 2; others++)
		ky_vec_foreach(&set->traces, trace)
			if (rebind_trace(model, *trace, others, is_bound) < 0)
				status = KYMO_E_MEMORY;
	leave_hosts(model, is_bound);
	free(is_bound);
	carry_streams(model, before, known);
	free(known);
	if (label_hosts(model) < 0)
		status = KYMO_E_MEMORY;
	ky_model_ask(model, model->subjects);
	return status;
}

void ky_model_free(struct ky_model *model)
{
	if (!model)
		return;
	ky_locks_fini(model);
	ky_periods_fini(model);
	ky_functions_fini(model);
	ky_trace_symbols_close(model->symbols);
	ky_files_fini(model);
	ky_vec_foreach(&model->disks, disk)
		ky_map_fini(&(*disk)->requests);
	ky_vec_foreach(&model->hosts, host) {
		ky_map_fini(&(*host)->threads);
		ky_map_fini(&(*host)->cpus);
		free((*host)->classes);
		if (!(*host)->state)
			continue;
		ky_map_fini(&(*host)->state->cgroups);
		ky_map_fini(&(*host)->state->disks);
		ky_map_fini(&(*host)->state->spaces);
		ky_map_fini(&(*host)->state->contended);
		ky_map_fini(&(*host)->state->locks);
		ky_map_fini(&(*host)->state->timers);
		ky_names_fini(&(*host)->state->netifs);
		for (int i = 0; i < KY_IRQ_KINDS; i++)
			ky_map_fini(&(*host)->state->lines[i]);
	}
	ky_values_fini(&model->values);
	ky_vec_fini(&model->lines);
	ky_vec_fini(&model->files);
	ky_vec_fini(&model->disks);
	ky_vec_fini(&model->netifs);
	ky_fs_fini(model);
	for (size_t i = 0; i < KY_HOOKS; i++)
		ky_vec_fini(&model->hooked[i]);
	ky_vec_fini(&model->hosts);
	ky_vec_fini(&model->cpus);
	ky_vec_fini(&model->threads);
	ky_vec_fini(&model->syscalls);
	ky_vec_fini(&model->late);
	ky_vec_fini(&model->foreseen);
	ky_vec_fini(&model->doubts);
	ky_vec_fini(&model->doubted);
	ky_names_fini(&model->late_files);
	ky_names_fini(&model->foreseen_files);
	ky_names_fini(&model->syscall_ids);
	ky_names_fini(&model->sample_sources);
	ky_map_fini(&model->syscall_numbers);
	/* The set may be closed by now. */
	for (size_t i = 0; i < model->n_streams; i++)
		ky_map_fini(&model->streams[i].cpus);
	free(model->streams);
	ky_arena_fini(&model->arena);
	free(model);
}

struct ky_trace_symbols **ky_model_symbols(struct ky_model *model)
{
	return &model->symbols;
}
