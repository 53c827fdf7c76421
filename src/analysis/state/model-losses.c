/* SPDX-License-Identifier: MIT */
/* What is not known since events were lost, or a stream's file is damaged from some place on. */
#include <string.h>

#include "analysis/state/model-internal.h"
#include "base/error.h"

/* Events of @cpu were lost; @damage: all that would follow. */
static int lose_cpu(struct ky_model *model, struct ky_cpu *cpu, bool has_switch, int64_t begin,
		    int64_t end, bool damage)
{
	ky_irq_lose(cpu);
	if (damage)
		cpu->cut_ns = begin;
	return has_switch ? ky_cpu_lose(model, cpu, begin, end) : 0;
}

/* The same of @stream, of whichever of its CPUs. */
static int lose_cpus(struct ky_model *model, const struct ky_stream_state *stream, int64_t begin,
		     int64_t end, bool damage)
{
	int status = 0;
	size_t pos = 0;
	uint64_t index;
	void *cpu;

	if (!stream->cpus.len)
		return stream->cpu ? lose_cpu(model, stream->cpu, stream->has_switch, begin, end,
					      damage)
				   : 0;
	while (status >= 0 && ky_map_next(&stream->cpus, &pos, &index, &cpu))
		status = lose_cpu(model, cpu, stream->has_switch, begin, end, damage);
	return status;
}

int ky_model_lose(struct ky_feed *feed, const struct ky_batch *batch)
{
	const struct ky_loss *loss = batch->loss;
	struct ky_model *model = feed->model;
	int64_t begin = loss->begin_ns, end = loss->end_ns;
	int status = 0;

	/* It has its turn before its packet's first event, which may be behind a border. */
	if (model->first_ns != INT64_MIN && loss->ns >= model->boundary_ns) {
		status = ky_model_boundary(model, loss->ns);
		if (status)
			return status;
	}
	if (end == INT64_MIN)
		end = batch->n_events ? batch->events[0].ns : feed->stream->last_ns;
	if (begin == INT64_MIN)
		begin = feed->stream->last_ns;
	if (begin > end || begin == INT64_MIN)
		begin = end;
	if (model->first_ns != INT64_MIN && end != INT64_MIN)
		end = ky_near_ns(model->first_ns, end);
	begin = ky_near_ns(end, begin);
	if (model->telling) {
		feed->host->lost_events += loss->events;
		feed->host->gaps++;
	}
	if (end == INT64_MIN)
		return 0;
	ky_periods_lose(model, feed->host, end);
	status = ky_functions_lose(model, feed->host);
	if (status < 0)
		return status;
	if (feed->stream->has_syscalls && end > feed->host->torn_until_ns)
		feed->host->torn_until_ns = end;
	if (feed->stream->has_switch && end > feed->host->blind_until_ns)
		feed->host->blind_until_ns = end;
	status = lose_cpus(model, feed->stream, begin, end, false);
	if (status < 0 || !model->telling)
		return status;
	return ky_model_notify(model, lost, feed->cpu, begin, end, loss->events);
}

/* In a pause of the recording, nothing is known of any CPU; no event was lost. */
int ky_on_resumed(struct ky_feed *feed, const struct ky_event *event,
		  const struct ky_class_info *info)
{
	struct ky_model *model = feed->model;
	struct ky_host *host = feed->host;
	uint64_t paused_ns = ky_get_u64(event, &info->fields[0], 0), index;
	int64_t end = event->ns, begin;
	size_t pos = 0;
	int status = 0;
	void *cpu;

	if (paused_ns > INT64_MAX / 2)
		paused_ns = 0;
	begin = end - (int64_t)paused_ns;
	ky_periods_lose(model, host, end);
	host->torn_until_ns = end > host->torn_until_ns ? end : host->torn_until_ns;
	host->blind_until_ns = end > host->blind_until_ns ? end : host->blind_until_ns;
	if (model->telling) {
		host->pauses++;
		host->paused_ns += paused_ns;
	}
	while (status >= 0 && ky_map_next(&host->cpus, &pos, &index, &cpu)) {
		status = lose_cpu(model, cpu, true, begin, end, false);
		if (status >= 0 && model->telling)
			status = ky_model_notify(model, lost, cpu, begin, end, 0);
	}
	return status;
}

/* Does another file go on with the CPU of @damaged? Files of one CPU may follow each other. */
static bool model_losses_goes_on(const struct ky_model *model,
				 const struct ky_stream_state *damaged)
{
	for (size_t i = 0; i < model->set->streams.len; i++) {
		const struct ky_stream_state *other = &model->streams[i];

		if (other->has_switch && other->cpu == damaged->cpu &&
		    other->last_ns > damaged->last_ns)
			return true;
	}
	return false;
}

/* What the CPU of that file did from the last event there on is not known, however long the other ones go on. */
static int lose_file(struct ky_model *model, const char *path)
{
	int status = 0;

	ky_vec_foreach(&model->set->streams, it) {
		const struct ky_stream *stream = *it;
		const struct ky_stream_state *state = &model->streams[stream->index];

		if (!state->cpu || !state->has_switch || !model->telling ||
		    state->last_ns >= model->end_ns || strcmp(stream->file.path, path) != 0 ||
		    model_losses_goes_on(model, state))
			continue;
		if (status >= 0)
			status = lose_cpus(model, state, state->last_ns, model->end_ns, true);
	}
	return status;
}

int ky_model_lose_damaged(struct ky_model *model, struct ky_flow *flow, struct kymo_error *err)
{
	struct kymo_error here;
	int64_t ns, first_ns = INT64_MAX;
	int found, damage = 0;

	for (size_t i = 0; (found = ky_flow_broken(flow, i, &ns, &here)) < 0; i++) {
		if (ns >= model->end_ns)
			continue;
		if (lose_file(model, here.path) < 0)
			return ky_error_nomem(err);
		if (ns >= first_ns)
			continue;
		first_ns = ns;
		damage = found;
		if (err)
			*err = here;
	}
	return damage;
}
