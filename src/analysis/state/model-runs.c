/* SPDX-License-Identifier: MIT */
/* The state model: the last runs of each CPU, for the threads that waited meanwhile. */
#include "analysis/state/model-internal.h"

#define RUNS_MAX 128

struct one_run {
	const struct ky_thread *thread;
	int64_t begin_ns, end_ns;
};

/* In a circle. */
struct ky_cpu_runs {
	size_t n;
	struct one_run runs[RUNS_MAX];
};

int ky_cpu_note_run(struct ky_model *model, struct ky_cpu *cpu, const struct ky_thread *thread,
		    int64_t begin_ns, int64_t end_ns)
{
	struct one_run *last;

	if (!cpu->runs)
		cpu->runs = ky_arena_new(&model->arena, struct ky_cpu_runs);
	if (!cpu->runs)
		return KYMO_E_MEMORY;
	/* A border of an interval may have cut it. */
	last = &cpu->runs->runs[(cpu->runs->n - 1) % RUNS_MAX];
	if (cpu->runs->n && last->thread == thread && last->end_ns == begin_ns) {
		last->end_ns = end_ns;
		return 0;
	}
	cpu->runs->runs[cpu->runs->n++ % RUNS_MAX] = (struct one_run){thread, begin_ns, end_ns};
	return 0;
}

/* @i of the last runs, from 1 on. */
static const struct one_run *last_run(const struct ky_cpu *cpu, size_t i)
{
	return &cpu->runs->runs[(cpu->runs->n - i) % RUNS_MAX];
}

size_t ky_cpu_runs_since(const struct ky_cpu *cpu, int64_t ns)
{
	size_t n = 0;

	while (cpu->runs && n < cpu->runs->n && n < RUNS_MAX && last_run(cpu, n + 1)->end_ns > ns)
		n++;
	return n;
}

const struct ky_thread *ky_cpu_run(const struct ky_cpu *cpu, size_t i, int64_t *begin_ns,
				   int64_t *end_ns)
{
	const struct one_run *run = last_run(cpu, i);

	*begin_ns = run->begin_ns;
	*end_ns = run->end_ns;
	return run->thread;
}

static uint64_t model_runs_overlap(int64_t begin_ns, int64_t end_ns, int64_t from_ns, int64_t to_ns)
{
	from_ns = from_ns > begin_ns ? from_ns : begin_ns;
	to_ns = to_ns < end_ns ? to_ns : end_ns;
	return to_ns > from_ns ? (uint64_t)to_ns - (uint64_t)from_ns : 0;
}

/* The time of @thread in the @n last runs on @cpu and in the one that goes on. */
static uint64_t model_runs_time(const struct ky_cpu *cpu, size_t n, const struct ky_thread *thread,
				int64_t begin_ns, int64_t end_ns)
{
	uint64_t ns = 0;

	for (size_t i = 1; i <= n; i++) {
		const struct one_run *run = last_run(cpu, i);

		if (run->thread == thread)
			ns += model_runs_overlap(begin_ns, end_ns, run->begin_ns, run->end_ns);
	}
	if (cpu->state == KY_CPU_BUSY && cpu->current == thread)
		ns += model_runs_overlap(begin_ns, end_ns, cpu->since_ns, end_ns);
	return ns;
}

const struct ky_thread *ky_cpu_ran_most(const struct ky_cpu *cpu, const struct ky_thread *but,
					int64_t begin_ns, int64_t end_ns, uint64_t *ns)
{
	const struct ky_thread *current = cpu->state == KY_CPU_BUSY ? cpu->current : NULL;
	const struct ky_thread *most = NULL;
	size_t n = ky_cpu_runs_since(cpu, begin_ns);

	*ns = 0;
	for (size_t i = 0; i <= n; i++) {
		const struct ky_thread *thread = i ? last_run(cpu, i)->thread : current;
		uint64_t mine;

		if (!thread || thread == most || thread == but)
			continue;
		mine = model_runs_time(cpu, n, thread, begin_ns, end_ns);
		if (mine > *ns) {
			most = thread;
			*ns = mine;
		}
	}
	return most;
}
