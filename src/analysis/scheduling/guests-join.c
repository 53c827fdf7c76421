/* SPDX-License-Identifier: MIT */
/* Which guest each virtual CPU is of. */
#include "analysis/scheduling/guests.h"

#define CHECKED_LEAST 10
/* Of 100 switches: so many come while the thread runs. */
#define INSIDE_LEAST 95

static bool guests_join_same(const struct ky_vcpu *a, const struct ky_vcpu *b)
{
	return a == b || (a->host == b->host && a->vm == b->vm && a->vm != KY_UNKNOWN);
}

/* How sure it is, of 100, that @guest runs in the machine of @of. */
static uint64_t guests_join_sureness(const struct ky_guests_seen *seen, const struct ky_vcpu *of,
				     uint32_t guest)
{
	uint64_t inside = 0, outside = 0;

	ky_vec_foreach(&seen->vcpus, it) {
		if (guests_join_same(*it, of)) {
			inside += (*it)->fits[guest].inside;
			outside += (*it)->fits[guest].outside;
		}
	}
	return inside < CHECKED_LEAST ? 0 : inside * 100 / (inside + outside);
}

static bool guests_join_has_cpu(const struct ky_guests_seen *seen, const struct ky_host *guest,
				uint32_t id)
{
	ky_vec_foreach(&seen->vcpus, it)
		if ((*it)->guest == guest && (*it)->id == id)
			return true;
	return false;
}

static void guests_join(const struct ky_guests_seen *seen, struct ky_vcpu *vcpu, uint32_t guest)
{
	vcpu->guest = seen->maybe[guest];
	vcpu->cpu = ky_map_get(&seen->maybe[guest]->cpus, vcpu->id);
}

static const struct ky_vcpu *guests_join_best(const struct ky_guests_seen *seen, uint32_t guest)
{
	const struct ky_vcpu *best = NULL;
	uint64_t most = INSIDE_LEAST - 1;

	ky_vec_foreach(&seen->vcpus, it) {
		uint64_t sure = 0;

		if ((*it)->fits[guest].inside && !(*it)->guest)
			sure = guests_join_sureness(seen, *it, guest);
		if (sure > most) {
			best = *it;
			most = sure;
		}
	}
	return best;
}

/* Of some threads the trace does not tell the process: each speaks for itself. */
static bool guests_join_fits_alone(const struct ky_guests_seen *seen, const struct ky_vcpu *vcpu,
				   const struct ky_vcpu *best, uint32_t guest)
{
	return !vcpu->guest && vcpu->host == best->host &&
	       (vcpu->vm == KY_UNKNOWN || best->vm == KY_UNKNOWN) &&
	       guests_join_sureness(seen, vcpu, guest) >= INSIDE_LEAST &&
	       !guests_join_has_cpu(seen, seen->maybe[guest], vcpu->id);
}

static void guests_join_choose(struct ky_guests_seen *seen, uint32_t guest)
{
	const struct ky_vcpu *best = guests_join_best(seen, guest);

	if (!best)
		return;
	ky_vec_foreach(&seen->vcpus, it)
		if (guests_join_same(*it, best))
			guests_join(seen, *it, guest);
	ky_vec_foreach(&seen->vcpus, it)
		if (guests_join_fits_alone(seen, *it, best, guest))
			guests_join(seen, *it, guest);
}

void ky_guests_finish(struct ky_guests_seen *seen)
{
	ky_guests_count_rest(seen);
	ky_vec_foreach(&seen->vcpus, it)
		if ((*it)->vm == KY_UNKNOWN)
			(*it)->vm = (*it)->thread->pid;
	for (uint32_t i = 0; i < seen->n_maybe; i++)
		guests_join_choose(seen, i);
	ky_vec_foreach(&seen->aways, away) {
		const struct ky_vcpu *vcpu = seen->vcpus.data[away->vcpu];
		int guest = vcpu->guest ? ky_guests_number_of(seen, vcpu->guest) : -1;

		/* Behind the guest's last event, its state is not known. */
		if (guest < 0 || !vcpu->cpu || away->begin_ns > vcpu->cpu->event_ns)
			continue;
		away->running = seen->states.data[away->states + (size_t)guest];
		away->is_known = away->running != ky_guest_unknown;
		away->running = away->is_known ? away->running : NULL;
	}
}

enum ky_away_why ky_guests_why(const struct ky_away *away)
{
	if (!away->is_known)
		return KY_AWAY_UNKNOWN;
	if (away->kind == KY_AWAY_WAITED)
		return away->running ? KY_AWAY_STOLEN : KY_AWAY_LATE;
	return away->running ? KY_AWAY_HELD : KY_AWAY_IDLE;
}

void ky_guests_add(struct ky_vcpu_sums *sums, const struct ky_away *away)
{
	uint64_t ns = (uint64_t)(away->end_ns - away->begin_ns);
	enum ky_away_why why = ky_guests_why(away);

	sums->waited += away->kind == KY_AWAY_WAITED ? ns : 0;
	sums->late += why == KY_AWAY_LATE ? ns : 0;
	sums->held += why == KY_AWAY_HELD ? ns : 0;
	sums->stolen += why == KY_AWAY_STOLEN ? ns : 0;
	if (why == KY_AWAY_STOLEN && ns > sums->longest)
		sums->longest = ns;
}

const struct ky_instead *ky_guests_longest(const struct ky_guests_seen *seen,
					   const struct ky_away *away)
{
	const struct ky_instead *most = NULL;

	for (size_t i = 0; i < away->n_instead; i++) {
		const struct ky_instead *one = &seen->instead.data[away->instead + i];

		most = !most || one->ns > most->ns ? one : most;
	}
	return most;
}
