/* SPDX-License-Identifier: MIT */
#include "analysis/scheduling/guests.h"

#include <stdlib.h>
#include <string.h>

#define RUNS_KEPT 1024 /* a power of 2 */
#define AWAYS_MAX ((size_t)1 << 21)
#define PARTS_MAX \
	(AWAYS_MAX << 3) /* states of guests' CPUs, and threads that ran instead, of all times */
#define VCPUS_MAX   4096
#define INSTEAD_MAX 64 /* of one time */
/* The first switches of a possible guest are all looked at, then one of so many. */
#define SWITCHES_ALL  4096
#define SWITCHES_EACH 64
/* Runs are counted when there are so many, or twice as many as before; at most MAX wait for that. */
#define BUSY_FEW 16
#define BUSY_MAX 65536
#define CPUS_MAX 8192

struct ky_guest_run {
	const struct ky_thread *thread;
	int64_t begin_ns, end_ns;
};

struct ky_guest_runs {
	uint64_t n;
	struct ky_guest_run last[RUNS_KEPT];
	/* Should it be a guest's CPU: what it ran since the hosts' last events, and the sum before. */
	KY_VEC(struct ky_guest_run) busy;
	uint64_t busy_ns;
};

static const struct ky_thread unknown_thread;
const struct ky_thread *const ky_guest_unknown = &unknown_thread;

void ky_guests_seen_init(struct ky_guests_seen *seen, const struct ky_model *model,
			 int64_t begin_ns)
{
	seen->begin_ns = begin_ns;
	seen->model = model;
	ky_map_init(&seen->by_thread);
	ky_map_init(&seen->runs);
	for (size_t i = 0; i < ky_model_n_hosts(model); i++) {
		const struct ky_host *host = ky_model_host(model, i);

		if (host->abilities & KY_CAN_SWITCH && seen->n_maybe < KY_GUESTS_MAX)
			seen->maybe[seen->n_maybe++] = host;
	}
}

static void guests_free_vcpu(struct ky_vcpu *vcpu)
{
	free(vcpu->fits);
	free(vcpu);
}

void ky_guests_seen_fini(struct ky_guests_seen *seen)
{
	size_t pos = 0;
	uint64_t key;
	void *value;

	ky_vec_foreach(&seen->vcpus, it)
		guests_free_vcpu(*it);
	while (ky_map_next(&seen->runs, &pos, &key, &value)) {
		struct ky_guest_runs *runs = value;

		ky_vec_fini(&runs->busy);
		free(runs);
	}
	ky_vec_fini(&seen->vcpus);
	ky_vec_fini(&seen->aways);
	ky_vec_fini(&seen->instead);
	ky_vec_fini(&seen->states);
	ky_map_fini(&seen->by_thread);
	ky_map_fini(&seen->runs);
}

/* ---- virtual CPUs --------------------------------------------------------------------- */

static struct ky_vcpu *guests_vcpu_of(const struct ky_guests_seen *seen,
				      const struct ky_thread *thread)
{
	return seen->vcpus.len ? ky_map_get(&seen->by_thread, thread->index) : NULL;
}

static int guests_add_vcpu(struct ky_guests_seen *seen, const struct ky_thread *thread, uint32_t id,
			   struct ky_vcpu **added)
{
	struct ky_vcpu *vcpu;

	*added = NULL;
	if (seen->vcpus.len == VCPUS_MAX)
		return 0;
	vcpu = calloc(1, sizeof(*vcpu));
	if (vcpu)
		vcpu->fits = calloc(seen->n_maybe + 1, sizeof(*vcpu->fits));
	if (!vcpu || !vcpu->fits || ky_vec_push(&seen->vcpus, vcpu) < 0) {
		if (vcpu)
			guests_free_vcpu(vcpu);
		return KYMO_E_MEMORY;
	}
	vcpu->index = (uint32_t)seen->vcpus.len - 1;
	vcpu->host = thread->host;
	vcpu->thread = thread;
	vcpu->id = id;
	vcpu->vm = KY_UNKNOWN;
	vcpu->entered_ns = INT64_MIN;
	*added = vcpu;
	return ky_map_set(&seen->by_thread, thread->index, vcpu);
}

static int guests_on_vcpu(void *data, const struct ky_vcpu_seen *event)
{
	struct ky_guests_seen *seen = data;
	struct ky_vcpu *vcpu = guests_vcpu_of(seen, event->thread);

	if (!vcpu && (event->vcpu_id == UINT32_MAX ||
		      guests_add_vcpu(seen, event->thread, event->vcpu_id, &vcpu) < 0))
		return event->vcpu_id == UINT32_MAX ? 0 : KYMO_E_MEMORY;
	if (!vcpu)
		return 0;
	if (event->vm != KY_UNKNOWN)
		vcpu->vm = event->vm;
	if (event->kind == KY_VCPU_ENTRY)
		vcpu->entered_ns = event->ns > seen->begin_ns ? event->ns : seen->begin_ns;
	if (event->kind != KY_VCPU_EXIT)
		return 0;
	vcpu->exits += event->ns >= seen->begin_ns;
	if (vcpu->entered_ns != INT64_MIN && event->ns > vcpu->entered_ns)
		vcpu->in_guest_ns += (uint64_t)(event->ns - vcpu->entered_ns);
	vcpu->entered_ns = INT64_MIN;
	return 0;
}

/* QEMU's names of these threads, where libvirt or debug-threads=on ask for them: "CPU 3/KVM", "CPU 3/TCG". */
static bool guests_is_named(const struct ky_thread *thread, uint32_t *id)
{
	unsigned long number;
	char *end;

	if (strncmp(thread->comm, "CPU ", 4) != 0)
		return false;
	number = strtoul(thread->comm + 4, &end, 10);
	*id = (uint32_t)number;
	return end != thread->comm + 4 && number < UINT32_MAX &&
	       (strcmp(end, "/KVM") == 0 || strcmp(end, "/TCG") == 0);
}

/* Of the host's last event. */
static int64_t guests_last_ns(const struct ky_host *host)
{
	int64_t last = INT64_MIN;
	size_t pos = 0;
	uint64_t key;
	void *value;

	while (ky_map_next(&host->cpus, &pos, &key, &value)) {
		const struct ky_cpu *cpu = value;

		last = cpu->event_ns > last ? cpu->event_ns : last;
	}
	return last;
}

/* Has the host's trace an event at @ns or later? Mostly the thread's own CPU has. */
static bool guests_reaches(const struct ky_thread *thread, int64_t ns)
{
	const struct ky_cpu *cpu = ky_map_get(&thread->host->cpus, (uint32_t)thread->cpu);

	return (cpu && cpu->event_ns >= ns) || guests_last_ns(thread->host) >= ns;
}

/* The trace of the host goes on: what was seen since the thread's last event counts. */
static void guests_go_on(const struct ky_guests_seen *seen, struct ky_vcpu *vcpu)
{
	if (!guests_reaches(vcpu->thread, vcpu->since_ns))
		return;
	for (uint32_t i = 0; i < seen->n_maybe; i++) {
		struct ky_vcpu_fit *fit = &vcpu->fits[i];

		fit->inside += fit->since_inside;
		fit->outside += fit->since_outside;
		fit->since_inside = fit->since_outside = 0;
	}
}

/* ---- which guest it is ---------------------------------------------------------------- */

int ky_guests_number_of(const struct ky_guests_seen *seen, const struct ky_host *host)
{
	for (uint32_t i = 0; i < seen->n_maybe; i++)
		if (seen->maybe[i] == host)
			return (int)i;
	return -1;
}

static int guests_on_switched(void *data, struct ky_thread *thread, int64_t ns)
{
	struct ky_guests_seen *seen = data;
	int guest = seen->vcpus.len ? ky_guests_number_of(seen, thread->host) : -1;
	uint64_t n;

	if (guest < 0)
		return 0;
	n = seen->n_switches[guest]++;
	if (n >= SWITCHES_ALL && n % SWITCHES_EACH)
		return 0;
	ky_vec_foreach(&seen->vcpus, it) {
		struct ky_vcpu *vcpu = *it;

		if (vcpu->host == thread->host || (int32_t)vcpu->id != thread->cpu)
			continue;
		if (vcpu->thread->running)
			vcpu->fits[guest].since_inside++;
		else if (vcpu->thread->off != KY_OFF_UNKNOWN)
			vcpu->fits[guest].since_outside++;
		vcpu->since_ns = ns;
	}
	return 0;
}

/* ---- what hosts' CPUs run ------------------------------------------------------------- */

/* The time of all hosts' records together. False: no host has a record yet. */
static bool guests_recorded(const struct ky_guests_seen *seen, int64_t *begin, int64_t *end)
{
	*begin = INT64_MAX;
	*end = INT64_MIN;
	ky_vec_foreach(&seen->vcpus, it) {
		const struct ky_host *host = (*it)->host;
		int64_t last = guests_last_ns(host);
		size_t pos = 0;
		uint64_t key;
		void *value;

		if (it != seen->vcpus.data && host == it[-1]->host)
			continue;
		*end = last > *end ? last : *end;
		while (ky_map_next(&host->cpus, &pos, &key, &value)) {
			const struct ky_cpu *cpu = value;

			if (cpu->begin_ns != INT64_MIN && cpu->begin_ns < *begin)
				*begin = cpu->begin_ns;
		}
	}
	*begin = *begin > seen->begin_ns ? *begin : seen->begin_ns;
	return *begin < *end;
}

/* What was busy while the hosts were recorded counts. */
static void guests_count_busy(const struct ky_guests_seen *seen, struct ky_guest_runs *runs,
			      bool is_over)
{
	int64_t begin, end;
	size_t kept = 0;

	if (!guests_recorded(seen, &begin, &end))
		return;
	ky_vec_foreach(&runs->busy, run) {
		int64_t from = run->begin_ns > begin ? run->begin_ns : begin;
		int64_t to = run->end_ns < end ? run->end_ns : end;

		if (run->end_ns > end && !is_over)
			runs->busy.data[kept++] = *run;
		else if (to > from)
			runs->busy_ns += (uint64_t)(to - from);
	}
	runs->busy.len = kept;
}

static int guests_note_busy(struct ky_guests_seen *seen, struct ky_guest_runs *runs,
			    const struct ky_guest_run *run)
{
	/* Of a list that stays full, the hosts' end is looked up only now and then. */
	bool is_due = runs->busy.len == BUSY_MAX ? runs->n % BUSY_MAX == 0
						 : runs->busy.len >= BUSY_FEW &&
							   !(runs->busy.len & (runs->busy.len - 1));

	if (is_due)
		guests_count_busy(seen, runs, false);
	return runs->busy.len == BUSY_MAX ? 0 : ky_vec_push(&runs->busy, *run);
}

void ky_guests_count_rest(struct ky_guests_seen *seen)
{
	size_t pos = 0;
	uint64_t key;
	void *runs;

	while (ky_map_next(&seen->runs, &pos, &key, &runs))
		guests_count_busy(seen, runs, true);
}

uint64_t ky_guests_busy_ns(const struct ky_guests_seen *seen, const struct ky_cpu *cpu)
{
	const struct ky_guest_runs *runs = ky_map_get(&seen->runs, cpu->index);

	return runs ? runs->busy_ns : 0;
}

static int guests_on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
			 struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	struct ky_guests_seen *seen = data;
	struct ky_guest_runs *runs;
	struct ky_guest_run run;
	struct ky_vcpu *vcpu;
	uint32_t id;

	/* At the end of all traces, those that ended before have nothing to tell. */
	end_ns = end_ns < cpu->event_ns ? end_ns : cpu->event_ns;
	if (state != KY_CPU_BUSY || !thread || end_ns <= begin_ns)
		return 0;
	vcpu = guests_vcpu_of(seen, thread);
	if (!vcpu && guests_is_named(thread, &id) && guests_add_vcpu(seen, thread, id, &vcpu) < 0)
		return KYMO_E_MEMORY;
	if (vcpu)
		guests_go_on(seen, vcpu);
	runs = ky_map_get(&seen->runs, cpu->index);
	if (!runs && seen->runs.len >= CPUS_MAX)
		return 0;
	if (!runs) {
		runs = calloc(1, sizeof(*runs));
		if (!runs || ky_map_set(&seen->runs, cpu->index, runs) < 0) {
			free(runs);
			return KYMO_E_MEMORY;
		}
	}
	run = (struct ky_guest_run){thread, begin_ns, end_ns};
	runs->last[runs->n++ % RUNS_KEPT] = run;
	return guests_note_busy(seen, runs, &run);
}

/* ---- while the thread is away --------------------------------------------------------- */

static int guests_add_instead(struct ky_guests_seen *seen, struct ky_away *away,
			      const struct ky_thread *thread, uint64_t ns)
{
	for (size_t i = 0; i < away->n_instead; i++) {
		struct ky_instead *instead = &seen->instead.data[away->instead + i];

		if (instead->thread == thread) {
			instead->ns += ns;
			return 0;
		}
	}
	if (away->n_instead == INSTEAD_MAX)
		return 0;
	away->n_instead++;
	return ky_vec_push(&seen->instead, (struct ky_instead){thread, ns});
}

/* What ran on the CPU that the thread waited for: the last runs, backwards. */
static int guests_find_instead(struct ky_guests_seen *seen, struct ky_away *away,
			       const struct ky_thread *but)
{
	const struct ky_guest_runs *runs = ky_map_get(&seen->runs, away->cpu->index);
	uint64_t n = runs ? runs->n : 0, kept = n < RUNS_KEPT ? n : RUNS_KEPT;
	int ret = 0;

	for (uint64_t i = 1; i <= kept && !ret; i++) {
		const struct ky_guest_run *run = &runs->last[(n - i) % RUNS_KEPT];
		int64_t begin = run->begin_ns > away->begin_ns ? run->begin_ns : away->begin_ns;
		int64_t end = run->end_ns < away->end_ns ? run->end_ns : away->end_ns;

		if (run->end_ns <= away->begin_ns)
			break;
		if (end > begin && run->thread != but)
			ret = guests_add_instead(seen, away, run->thread, (uint64_t)(end - begin));
	}
	return ret;
}

/* What CPU @id of each possible guest does now: nothing changes there while the thread is away. */
static int guests_add_states(struct ky_guests_seen *seen, const struct ky_host *host, uint32_t id)
{
	int ret = 0;

	for (uint32_t i = 0; i < seen->n_maybe && !ret; i++) {
		const struct ky_host *guest = seen->maybe[i];
		const struct ky_cpu *cpu = guest == host ? NULL : ky_map_get(&guest->cpus, id);
		const struct ky_thread *thread = ky_guest_unknown;

		if (cpu && cpu->state == KY_CPU_IDLE)
			thread = NULL;
		else if (cpu && cpu->state == KY_CPU_BUSY && cpu->current)
			thread = cpu->current;
		ret = ky_vec_push(&seen->states, thread);
	}
	return ret;
}

static int guests_add_away(struct ky_guests_seen *seen, struct ky_vcpu *vcpu, struct ky_away *away)
{
	int ret;

	guests_go_on(seen, vcpu);
	away->begin_ns = away->begin_ns > seen->begin_ns ? away->begin_ns : seen->begin_ns;
	/* An interval that is open at the end of the host's trace ends here when the guest has gone on. */
	if (away->end_ns <= away->begin_ns || !guests_reaches(vcpu->thread, away->end_ns))
		return 0;
	if (seen->aways.len == AWAYS_MAX || seen->states.len >= PARTS_MAX ||
	    seen->instead.len >= PARTS_MAX) {
		seen->n_forgotten++;
		return 0;
	}
	away->vcpu = vcpu->index;
	away->instead = seen->instead.len;
	away->states = seen->states.len;
	ret = guests_add_states(seen, vcpu->host, vcpu->id);
	if (!ret && away->cpu)
		ret = guests_find_instead(seen, away, vcpu->thread);
	return ret ? ret : ky_vec_push(&seen->aways, *away);
}

static int guests_on_waited(void *data, const struct ky_waited *waited)
{
	struct ky_guests_seen *seen = data;
	struct ky_vcpu *vcpu = guests_vcpu_of(seen, waited->thread);
	struct ky_away away = {.kind = KY_AWAY_WAITED,
			       .begin_ns = waited->wait.begin_ns,
			       .end_ns = waited->end_ns,
			       .cpu = waited->cpu};

	return vcpu ? guests_add_away(seen, vcpu, &away) : 0;
}

static int guests_on_off(void *data, const struct ky_time_off *off)
{
	struct ky_guests_seen *seen = data;
	struct ky_vcpu *vcpu = guests_vcpu_of(seen, off->thread);
	struct ky_away away = {
		.kind = KY_AWAY_BLOCKED, .begin_ns = off->begin_ns, .end_ns = off->end_ns};

	if (!vcpu || off->kind == KY_OFF_READY || off->kind == KY_OFF_UNKNOWN)
		return 0;
	return guests_add_away(seen, vcpu, &away);
}

const struct ky_listener ky_guests_listener = {.vcpu = guests_on_vcpu,
					       .switched = guests_on_switched,
					       .ran = guests_on_ran,
					       .waited = guests_on_waited,
					       .off = guests_on_off};
