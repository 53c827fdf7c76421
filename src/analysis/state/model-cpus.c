/* SPDX-License-Identifier: MIT */
/* The state model: what CPUs run. */
#include "analysis/state/model-internal.h"

static int tell_ran(struct ky_model *model, struct ky_cpu *cpu, enum ky_cpu_state state, int64_t ns)
{
	struct ky_thread *thread = state == KY_CPU_BUSY ? cpu->current : NULL;
	int64_t begin = cpu->since_ns;

	cpu->since_ns = ns;
	if (thread && model->subjects & KY_ABOUT_RUNS &&
	    ky_cpu_note_run(model, cpu, thread, begin, ns) < 0)
		return KYMO_E_MEMORY;
	/* Other CPUs may be left out; other threads not, as they make this one busy. */
	if (!model->telling || !ky_model_tells_cpu(model, cpu->id))
		return 0;
	return ky_model_notify(model, ran, cpu, state, thread, begin, ns);
}

int ky_cpu_flush(struct ky_model *model, struct ky_cpu *cpu, int64_t ns)
{
	int status;

	if (cpu->since_ns == INT64_MIN || ns <= cpu->since_ns)
		return 0;
	if (cpu->since_ns < cpu->lost_until_ns) {
		status = tell_ran(model, cpu, KY_CPU_UNKNOWN,
				  ns < cpu->lost_until_ns ? ns : cpu->lost_until_ns);
		if (status < 0 || ns <= cpu->lost_until_ns)
			return status;
	}
	return tell_ran(model, cpu, cpu->state, ns);
}

int ky_thread_move(struct ky_model *model, struct ky_thread *thread, int32_t cpu, int64_t ns)
{
	int32_t from = thread->cpu;
	int status;

	thread->cpu = cpu;
	if (from == KY_UNKNOWN || from == cpu || !ky_model_tells(model, thread, (uint32_t)cpu))
		return 0;
	status = ky_model_notify(model, migrated, thread, ns);
	if (status < 0)
		return status;
	return ky_model_notify(model, migration,
			       &(struct ky_migration){.thread = thread, .ns = ns});
}

void ky_cpu_set_state(struct ky_cpu *cpu, struct ky_thread *thread, int64_t ns)
{
	if (cpu->current && cpu->current != thread)
		cpu->current->running = false;
	if (thread)
		thread->running = true;
	cpu->state = thread ? KY_CPU_BUSY : KY_CPU_IDLE;
	cpu->current = thread;
	cpu->unnamed = thread && thread->pid == KY_UNKNOWN;
	cpu->seen_ns = ns;
}

static bool agrees(const struct ky_cpu *cpu, const struct ky_thread *thread)
{
	return thread ? cpu->state == KY_CPU_BUSY && cpu->current == thread
		      : cpu->state == KY_CPU_IDLE;
}

/* Of a CPU whose state is not known: since when its record is whole, in the range. */
static int64_t whole_since(const struct ky_model *model, const struct ky_cpu *cpu)
{
	int64_t ns = cpu->begin_ns > model->range_ns ? cpu->begin_ns : model->range_ns;

	return cpu->lost_until_ns > ns ? cpu->lost_until_ns : ns;
}

int ky_cpu_settle(struct ky_model *model, struct ky_cpu *cpu, struct ky_thread *thread, int64_t ns)
{
	int status = 0;

	if (cpu->state == KY_CPU_UNKNOWN && !cpu->missing) {
		int64_t whole_ns = whole_since(model, cpu);

		ky_cpu_set_state(cpu, thread, ns);
		if (whole_ns < ns)
			status = ky_model_late(model, cpu, whole_ns, ns, cpu->state, thread);
	} else if (cpu->state != KY_CPU_UNKNOWN && !agrees(cpu, thread)) {
		status = ky_cpu_flush(model, cpu, cpu->seen_ns);
		if (status >= 0)
			status = ky_model_late(model, cpu, cpu->seen_ns, ns, KY_CPU_UNKNOWN, NULL);
		if (cpu->state == KY_CPU_BUSY)
			cpu->current->running = false;
		cpu->state = KY_CPU_UNKNOWN;
		cpu->current = NULL;
		cpu->missing++;
	}
	return status < 0 ? status : ky_cpu_flush(model, cpu, ns);
}

int ky_cpu_learn(struct ky_model *model, struct ky_cpu *cpu, struct ky_thread *thread, int64_t ns)
{
	int status;

	if (agrees(cpu, thread)) {
		cpu->seen_ns = ns;
		return 0;
	}
	status = ky_cpu_settle(model, cpu, thread, ns);
	ky_cpu_set_state(cpu, thread, ns);
	if (thread && status >= 0)
		status = ky_wait_run(model, thread, cpu, ns, false);
	return thread && status >= 0 ? ky_thread_move(model, thread, (int32_t)cpu->id, ns) : status;
}

int ky_cpu_lose(struct ky_model *model, struct ky_cpu *cpu, int64_t begin_ns, int64_t end_ns)
{
	int status = ky_cpu_flush(model, cpu, begin_ns);

	/* The first event after a loss reveals it. Borders in between got the old state. */
	if (status >= 0 && cpu->state != KY_CPU_UNKNOWN)
		status = ky_model_late(model, cpu, begin_ns, end_ns, KY_CPU_UNKNOWN, NULL);
	if (cpu->current)
		cpu->current->running = false;
	cpu->state = KY_CPU_UNKNOWN;
	cpu->current = NULL;
	cpu->lost_ns += end_ns - begin_ns;
	/* The end may lie in a later interval, or after the range: later events add the rest. */
	if (cpu->lost_until_ns < end_ns)
		cpu->lost_until_ns = end_ns;
	if (cpu->since_ns == INT64_MIN)
		cpu->since_ns = end_ns;
	return status;
}

int ky_model_settle(struct ky_model *model)
{
	int status = 0;

	ky_vec_foreach(&model->cpus, it) {
		struct ky_cpu *cpu = *it;

		/* What is unknown may still become known. */
		if (status >= 0 && cpu->state != KY_CPU_UNKNOWN)
			status = ky_cpu_flush(model, cpu, cpu->seen_ns);
	}
	return status;
}
