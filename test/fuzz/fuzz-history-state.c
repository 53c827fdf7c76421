/* SPDX-License-Identifier: MIT */
/*
 * States of the model in index files of the state history, of any bytes: the first one is the number of data streams. A state that
 * is accepted must bear the end of the range and of the trace.
 */
#include <stdint.h>
#include <stdlib.h>

#include "analysis/history/history-save.h"
#include "base/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STREAMS_MAX 8u

static int hear_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
		    struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	(void)data;
	(void)begin_ns;
	(void)end_ns;
	if ((state == KY_CPU_BUSY) != (thread != NULL) || !cpu->host)
		abort();
	return 0;
}

static int hear_off(void *data, const struct ky_time_off *time)
{
	(void)data;
	if (!time->thread || !time->thread->host)
		abort();
	return 0;
}

static int hear_call(void *data, const struct ky_call *call)
{
	const struct ky_model *const *model = data;

	if (!*ky_model_syscall_name(*model, call->syscall) && call->outcome == KY_CALL_DONE)
		abort();
	return 0;
}

static int hear_irq(void *data, const struct ky_irq *irq)
{
	(void)data;
	(void)irq;
	return 0;
}

/* All wakers and lines are there. */
static void follow_waits(const struct ky_model *model)
{
	uint64_t sum = 0;

	ky_vec_foreach(&model->threads, it) {
		const struct ky_thread *thread = *it;

		if (thread->wait.waker)
			sum += (uint64_t)thread->wait.waker->tid;
		if (thread->woken.irq)
			sum += thread->woken.irq->index;
		if (thread->queue)
			sum += thread->queue->n_waiting;
	}
	ky_vec_foreach(&model->cpus, cpu)
		sum += ky_irq_current(*cpu) ? 1 : 0;
	if (sum == UINT64_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ky_trace_class cls;
	static struct ky_trace trace = {.path = (char *)"", .cls = &cls};
	static struct ky_stream streams[STREAMS_MAX];
	struct ky_trace_set set = {0};
	struct ky_model *model;
	const struct ky_listener listener = {.data = &model,
					     .ran = hear_ran,
					     .off = hear_off,
					     .call = hear_call,
					     .irq = hear_irq};
	struct ky_bytes bytes = {.at = data, .end = data + size};
	struct ky_focus focus;
	struct kymo_error err;
	int64_t ns;

	if (!size)
		return 0;
	bytes.at++;
	if (ky_vec_push(&set.traces, &trace) < 0)
		return 0;
	for (uint32_t i = 0; i < data[0] % (STREAMS_MAX + 1); i++) {
		streams[i] = (struct ky_stream){.index = i, .trace = &trace};
		if (ky_vec_push(&set.streams, &streams[i]) < 0)
			abort();
	}
	model = ky_model_new(&set, &err);
	ky_focus_init(&focus);
	if (model && ky_model_listen(model, &listener) >= 0) {
		focus.begin_ns = INT64_MIN + 1;
		ky_model_set_focus(model, &focus);
		if (ky_history_restore(model, &bytes, &ns) >= 0) {
			follow_waits(model);
			(void)ky_model_reach(model, ns);
			(void)ky_model_end(model, &err);
		}
	}
	ky_model_free(model);
	ky_focus_fini(&focus);
	ky_vec_fini(&set.traces);
	ky_vec_fini(&set.streams);
	return 0;
}
