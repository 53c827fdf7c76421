/* SPDX-License-Identifier: MIT */
/* The state history: the pass that builds an index. */
#include "analysis/history/history-build.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/history/history-save.h"
#include "analysis/state/model-internal.h"
#include "base/error.h"

/* Threads that run long without a switch do not make the lists of their calls longer than this. */
#define SETTLE_EVENTS 32768

/* ---- machines ---------------------------------------------------------------------------------- */

static struct ky_machine *history_build_find_machine(struct ky_history_builder *builder,
						     const char *name)
{
	for (size_t i = 0; *name && i < builder->n_machines; i++) {
		if (strcmp(builder->machines[i].name, name) == 0)
			return &builder->machines[i];
	}
	return NULL;
}

static int history_build_add_machine(struct ky_history_builder *builder, const struct ky_host *host)
{
	struct ky_machine *machine = &builder->machines[builder->n_machines++];

	*machine = (struct ky_machine){.name = host->name};
	ky_map_init(&machine->processes);
	ky_map_init(&machine->users);
	machine->row = ky_history_writer_row(&builder->writer, KY_ROW_MACHINE, KY_HISTORY_NO_ROW,
					     host->index, host->name[0] ? host->name : host->label);
	builder->machine_of[host->index] = machine;
	return machine->row ? 0 : KYMO_E_MEMORY;
}

static int add_machines(struct ky_history_builder *builder)
{
	size_t n = ky_model_n_hosts(builder->model);
	int status = 0;

	builder->machines = calloc(n + 1, sizeof(*builder->machines));
	builder->machine_of = calloc(n + 1, sizeof(*builder->machine_of));
	if (!builder->machines || !builder->machine_of)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n && status >= 0; i++) {
		const struct ky_host *host = ky_model_host(builder->model, i);

		builder->machine_of[i] = history_build_find_machine(builder, host->name);
		if (!builder->machine_of[i])
			status = history_build_add_machine(builder, host);
	}
	return status;
}

/* ---- life ----------------------------------------------------------------------------------------- */

static int history_build_prepare(struct ky_history_builder *builder,
				 const struct ky_history_identity *identity, int fd)
{
	int status = ky_history_writer_init(&builder->writer, fd, identity);

	if (status >= 0)
		status = add_machines(builder);
	if (status >= 0)
		status = ky_history_streams_init(builder);
	return status < 0 ? status : ky_history_listen(builder);
}

/* What @status means. Returns it. */
static int explain(const struct ky_history_builder *builder, int status, struct kymo_error *err)
{
	if (status >= 0)
		return 0;
	if (builder->writer.error.code) {
		if (err)
			*err = builder->writer.error;
		return status;
	}
	if (status == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	return ky_error_set(err, status, "cannot build the state history: %s",
			    kymo_status_text(status));
}

/* Reports of a range begin there, so the events between two of them take a tenth of a second or so. */
static const struct ky_history_pace usual_pace = {.events = 1u << 18, .times = 100};

void ky_history_builder_set_stop(struct ky_history_builder *builder, bool (*is_over)(void *data),
				 void *data)
{
	builder->is_over = is_over;
	builder->over_data = data;
}

int ky_history_builder_open(const struct ky_trace_set *set,
			    const struct ky_history_identity *identity, int fd,
			    struct ky_history_builder **out, struct kymo_error *err)
{
	static const struct ky_history_identity none;
	struct ky_history_builder *builder = calloc(1, sizeof(*builder));
	int status;

	*out = NULL;
	if (!builder)
		return ky_error_nomem(err);
	builder->set = set;
	builder->is_live = memcmp(identity, &none, sizeof(none)) == 0;
	builder->begin_ns = builder->end_ns = INT64_MIN;
	builder->model = ky_model_new(set, err);
	if (!builder->model) {
		free(builder);
		return KYMO_E_MEMORY;
	}
	builder->pace = usual_pace;
	ky_map_init(&builder->irqs);
	ky_map_init(&builder->frequencies);
	ky_map_init(&builder->memories);
	status = history_build_prepare(builder, identity, fd);
	if (status < 0) {
		explain(builder, status, err);
		ky_history_builder_free(builder);
		return status;
	}
	*out = builder;
	return 0;
}

void ky_history_builder_free(struct ky_history_builder *builder)
{
	if (!builder)
		return;
	ky_history_streams_fini(builder);
	ky_history_counters_fini(builder);
	ky_history_linux_fini(builder);
	for (size_t i = 0; i < builder->n_machines; i++) {
		ky_map_fini(&builder->machines[i].processes);
		ky_map_fini(&builder->machines[i].users);
	}
	free(builder->machines);
	free(builder->machine_of);
	ky_history_writer_fini(&builder->writer);
	ky_model_free(builder->model);
	free(builder);
}

/* ---- the pass --------------------------------------------------------------------------------------- */

static void see_times(struct ky_history_builder *builder, const struct ky_batch *batch)
{
	for (size_t i = 0; i < batch->n_events && builder->begin_ns == INT64_MIN; i++)
		builder->begin_ns = batch->events[i].ns;
	if (batch->n_events && batch->events[batch->n_events - 1].ns > builder->end_ns)
		builder->end_ns = batch->events[batch->n_events - 1].ns;
	builder->n_events += batch->n_events;
	builder->n_unsettled += batch->n_events;
}

void ky_history_builder_set_pace(struct ky_history_builder *builder,
				 const struct ky_history_pace *pace)
{
	builder->pace = *pace;
}

/* Before @batch, the model has the events before a time, and no other one. */
static bool is_at_rest(const struct ky_history_builder *builder, const struct ky_batch *batch)
{
	return batch->n_events && !batch->loss && builder->model->first_ns != INT64_MIN &&
	       batch->events[0].ns > builder->end_ns;
}

static int save_state(struct ky_history_builder *builder, const struct ky_batch *batch)
{
	struct ky_history_writer *writer = &builder->writer;
	uint64_t bytes = ky_history_builder_bytes(builder);
	int status;

	if (builder->n_events - builder->saved_events < builder->pace.events ||
	    bytes - builder->saved_at < builder->saved_bytes * builder->pace.times ||
	    !is_at_rest(builder, batch))
		return 0;
	status = ky_history_save(builder->model, batch->events[0].ns, &writer->scratch);
	builder->saved_bytes = writer->scratch.len;
	builder->saved_events = builder->n_events;
	if (status >= 0)
		status = ky_history_writer_state(writer, batch->events[0].ns);
	builder->saved_at = ky_history_builder_bytes(builder);
	return status;
}

int ky_history_builder_feed(struct ky_history_builder *builder, const struct ky_batch *batch,
			    struct kymo_error *err)
{
	int status;

	status = save_state(builder, batch);
	see_times(builder, batch);
	if (status >= 0)
		status = ky_model_feed(builder->model, batch, err);
	if (status >= 0)
		status = ky_history_streams_feed(builder, batch);
	if (status >= 0 && builder->n_unsettled >= SETTLE_EVENTS) {
		builder->n_unsettled = 0;
		status = ky_model_settle(builder->model);
	}
	return explain(builder, status, err);
}

static int history_build_publish(struct ky_history_builder *builder, bool complete)
{
	const struct ky_history_facts facts = {.begin_ns = builder->begin_ns,
					       .end_ns = builder->end_ns,
					       .n_events = builder->n_events};
	int status = ky_history_count_up(builder);

	if (status >= 0)
		status = ky_history_counters_up(builder, complete);
	if (status >= 0)
		status = ky_history_streams_flush(builder, complete);
	if (status >= 0)
		status = ky_history_name_rows(builder);
	return status < 0 ? status : ky_history_writer_publish(&builder->writer, &facts, complete);
}

int ky_history_builder_publish(struct ky_history_builder *builder, struct kymo_error *err)
{
	int status = ky_model_settle(builder->model);

	return explain(builder, status < 0 ? status : history_build_publish(builder, false), err);
}

int ky_history_builder_end(struct ky_history_builder *builder, struct kymo_error *err)
{
	int status = ky_model_end(builder->model, err);

	return explain(builder, status < 0 ? status : history_build_publish(builder, true), err);
}

int ky_history_builder_damage(struct ky_history_builder *builder, struct ky_flow *flow,
			      struct kymo_error *err)
{
	if (ky_model_lose_damaged(builder->model, flow, NULL) == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	return 0;
}

/* What is published before the end is a part of the file afterwards, too. */
#define DUE_TIMES 32

bool ky_history_builder_is_due(const struct ky_history_builder *builder)
{
	const struct ky_history_writer *writer = &builder->writer;

	return ky_history_builder_bytes(builder) - writer->published_at >=
	       writer->published_bytes * DUE_TIMES;
}

/* 512 KiB a second, and the less the larger the file is: twice the file, half of it. */
#define PUBLISHED_BYTES (UINT64_C(512) << 10)
#define LARGE_BYTES	(UINT64_C(64) << 20)

int64_t ky_history_builder_pause_ns(const struct ky_history_builder *builder)
{
	double seconds = (double)builder->writer.published_bytes / (double)PUBLISHED_BYTES *
			 (1 + (double)ky_history_builder_bytes(builder) / (double)LARGE_BYTES);

	return (int64_t)((seconds < 0.5 ? 0.5 : seconds > 600 ? 600 : seconds) * 1e9);
}

uint64_t ky_history_builder_events(const struct ky_history_builder *builder)
{
	return builder->n_events;
}

uint64_t ky_history_builder_intervals(const struct ky_history_builder *builder)
{
	return builder->writer.n_intervals;
}

uint64_t ky_history_builder_bytes(const struct ky_history_builder *builder)
{
	return builder->writer.written + builder->writer.out.len;
}
