/* SPDX-License-Identifier: MIT */
/* Which machine is a guest of which host, and its clock by the host's. */
#include <stdlib.h>
#include <string.h>

#include "analysis/sync/sync-guests-internal.h"

/* So many events of a guest are looked at; fewer than LEAST say nothing. */
#define CHECKED_MAX   1024
#define CHECKED_LEAST 10
/* Of 100: so many of a guest's events are within stays of its CPU's thread. */
#define INSIDE_LEAST 99
/* Where no events can be checked: the wall clocks of host and guest are not further apart. */
#define APART_MAX_NS INT64_C(5000000000)
/* Before and behind the events: an exact line is known at any two times. */
#define AROUND_NS INT64_C(1000000000)
/* CPUs of a guest whose events are looked at. */
#define CPUS_MAX 512

/* @guest as a machine that runs in the virtual machine of @vcpu. */
struct match {
	uint32_t host, guest;
	const struct ky_guest_vcpu *vcpu;
	struct ky_sync_anchor at_guest[2], at_host[2]; /* the same moments */
	unsigned int n_moments;
	bool can_check; /* there are entries of the host, and events of the guest */
	uint64_t n_checked, n_inside;
	uint64_t apart_ns;
};

static bool guests_match_same_vm(const struct ky_guest_vcpu *a, const struct ky_guest_vcpu *b)
{
	return a->vm || b->vm ? a->vm == b->vm : a->offset == b->offset;
}

/* ---- by the counter ------------------------------------------------------------------- */

/* The host's counter when the guest's is @tsc. */
static bool guests_match_host_tsc(const struct ky_guest_vcpu *vcpu, uint64_t tsc, uint64_t *host)
{
	unsigned __int128 wide = tsc - (uint64_t)vcpu->offset;

	if (vcpu->ratio)
		wide = (wide << vcpu->ratio_bits) / vcpu->ratio;
	*host = (uint64_t)wide;
	return wide <= INT64_MAX;
}

/* A trace may claim any times. */
static int64_t guests_match_add(int64_t ns, int64_t more_ns)
{
	int64_t sum;

	if (__builtin_add_overflow(ns, more_ns, &sum))
		return more_ns < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static unsigned int guests_match_moments(const struct ky_sync_facts *facts,
					 const struct ky_guest_host *seen,
					 struct ky_sync_anchor anchors[2])
{
	int64_t times[2] = {guests_match_add(facts->begin_ns, -AROUND_NS),
			    guests_match_add(facts->end_ns, AROUND_NS)};

	if (!facts->counter) {
		anchors[0] = facts->anchors[0];
		anchors[1] = facts->anchors[1];
		return facts->n_anchors;
	}
	if (!facts->has_times && (!seen || !seen->n_seen))
		return 0;
	if (!facts->has_times) {
		times[0] = guests_match_add(seen->first_ns, -AROUND_NS);
		times[1] = guests_match_add(seen->last_ns, AROUND_NS);
	}
	for (int i = 0; i < 2; i++)
		if (!ky_sync_facts_ns(facts, ky_clock_from_ns(facts->counter, times[i]),
				      &anchors[i]))
			return 0;
	return 2;
}

static bool guests_match_compare(struct match *match, const struct ky_sync_facts *host,
				 const struct ky_sync_facts *guest,
				 const struct ky_guest_host *seen)
{
	struct ky_sync_anchor anchors[2];
	unsigned int n = guests_match_moments(guest, seen, anchors);
	int64_t apart;
	uint64_t tsc;

	match->n_moments = 0;
	for (unsigned int i = 0; i < n; i++) {
		if (!guests_match_host_tsc(match->vcpu, anchors[i].tsc, &tsc) ||
		    !ky_sync_facts_ns(host, tsc, &match->at_host[match->n_moments]))
			continue;
		match->at_guest[match->n_moments++] = anchors[i];
	}
	if (!match->n_moments)
		return false;
	apart = match->at_host[0].ns - match->at_guest[0].ns;
	match->apart_ns = (uint64_t)(apart < 0 ? -apart : apart);
	return true;
}

/* ---- by entries and exits ------------------------------------------------------------- */

static int64_t guests_match_at_host(const struct match *match, int64_t ns)
{
	const struct ky_sync_anchor *g = match->at_guest, *h = match->at_host;
	__int128 since = (__int128)ns - g[0].ns, at = h[0].ns + since;

	if (match->n_moments == 2 && g[1].ns > g[0].ns)
		at = h[0].ns + since * (h[1].ns - h[0].ns) / (g[1].ns - g[0].ns);
	return at < 0 ? 0 : at > INT64_MAX ? INT64_MAX : (int64_t)at;
}

/* The last stay that begins before @ns; NULL: none, or it is the last one of all. */
static const struct ky_guest_stay *guests_match_stay(const struct ky_guest_vcpu *vcpu, int64_t ns)
{
	size_t low = 0, high = vcpu->stays.len;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (vcpu->stays.data[middle].begin_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &vcpu->stays.data[low - 1] : NULL;
}

/* The threads of the virtual machine's CPUs, by number. */
static void guests_match_cpus(const struct ky_guest_host *host, const struct ky_guest_vcpu *of,
			      const struct ky_guest_vcpu *cpus[CPUS_MAX])
{
	memset(cpus, 0, CPUS_MAX * sizeof(*cpus));
	ky_vec_foreach(&host->vcpus, it)
		if ((*it)->vcpu_id < CPUS_MAX && (*it)->stays.len && guests_match_same_vm(*it, of))
			cpus[(*it)->vcpu_id] = *it;
}

/* Is there a stay of its CPU around the event? Events outside of what the host recorded say nothing. */
static void guests_match_check_one(struct match *match, const struct ky_guest_vcpu *vcpu,
				   const struct ky_guest_seen *seen)
{
	const int64_t error = (int64_t)(match->at_host[0].error_ns + match->at_guest[0].error_ns);
	int64_t ns = guests_match_at_host(match, seen->ns);
	const struct ky_guest_stay *stay;

	if (!vcpu || ns < vcpu->stays.data[0].begin_ns ||
	    ns > vcpu->stays.data[vcpu->stays.len - 1].end_ns)
		return;
	stay = guests_match_stay(vcpu, guests_match_add(ns, error));
	match->n_checked++;
	match->n_inside += stay && guests_match_add(ns, -error) <= stay->end_ns;
}

static void guests_match_check(struct match *match, const struct ky_guest_host *host,
			       const struct ky_guest_host *guest)
{
	size_t n = guest ? guest->seen.len : 0, step = n / CHECKED_MAX + 1;
	const struct ky_guest_vcpu *cpus[CPUS_MAX];

	match->n_checked = match->n_inside = 0;
	match->can_check = host->n_stays && n;
	guests_match_cpus(host, match->vcpu, cpus);
	for (size_t i = 0; i < n; i += step)
		if (guest->seen.data[i].cpu < CPUS_MAX)
			guests_match_check_one(match, cpus[guest->seen.data[i].cpu],
					       &guest->seen.data[i]);
}

static bool guests_match_is_checked(const struct match *match)
{
	return match->n_checked >= CHECKED_LEAST;
}

static bool guests_match_is_possible(const struct match *match)
{
	if (!match->can_check)
		return match->apart_ns <= (uint64_t)APART_MAX_NS;
	return guests_match_is_checked(match) &&
	       match->n_inside * 100 >= match->n_checked * INSIDE_LEAST;
}

/* ---- all of them ---------------------------------------------------------------------- */

static bool guests_match_is_better(const struct match *match, const struct match *best)
{
	if (!best->vcpu || guests_match_is_checked(match) != guests_match_is_checked(best))
		return !best->vcpu || guests_match_is_checked(match);
	return match->apart_ns < best->apart_ns;
}

/* The first virtual CPU of each machine speaks for it. */
static void guests_match_find_first(struct ky_guest_host *host)
{
	for (size_t number = 0; number < host->vcpus.len; number++) {
		bool is_first = true;

		for (size_t i = 0; i < number && is_first; i++)
			is_first = !guests_match_same_vm(host->vcpus.data[i],
							 host->vcpus.data[number]);
		host->vcpus.data[number]->is_first = is_first;
	}
}

static void guests_match_on_host(struct ky_guests *guests, const struct ky_sync_facts *facts,
				 uint32_t host, uint32_t guest, struct match *best)
{
	const struct ky_guest_host *vms = guests->hosts.data[host];

	for (size_t i = 0; vms && host != guest && i < vms->vcpus.len; i++) {
		struct match match = {.host = host, .guest = guest, .vcpu = vms->vcpus.data[i]};

		if (!match.vcpu->n_offsets || match.vcpu->n_offsets > KY_GUESTS_OFFSETS_MAX ||
		    !match.vcpu->is_first ||
		    !guests_match_compare(&match, &facts[host], &facts[guest],
					  guests->hosts.data[guest]))
			continue;
		guests_match_check(&match, vms, guests->hosts.data[guest]);
		if (guests_match_is_possible(&match) && guests_match_is_better(&match, best))
			*best = match;
	}
}

static int guests_match_tell(struct ky_sync_run *run, const struct match *match)
{
	struct ky_sync_pair *pair = ky_sync_pair_of(run, match->host, match->guest);
	int ret = pair ? KYMO_OK : KYMO_E_MEMORY;

	for (unsigned int i = 0; i < match->n_moments && !ret; i++)
		ret = ky_sync_same(
			run, match->host, match->at_host[i].ns, match->guest, match->at_guest[i].ns,
			(int64_t)(match->at_host[i].error_ns + match->at_guest[i].error_ns));
	if (ret < 0)
		return ret;
	pair->source = KY_SYNC_COUNTER;
	pair->n_checked = match->n_checked;
	pair->n_inside = match->n_inside;
	run->machines.data[match->host].n_marks += match->n_moments;
	run->machines.data[match->guest].n_marks += match->n_moments;
	return KYMO_OK;
}

int ky_guests_match(struct ky_guests *guests, struct ky_sync_run *run)
{
	uint32_t n = (uint32_t)run->machines.len;
	int ret = KYMO_OK;

	ky_vec_foreach(&guests->hosts, host)
		if (*host)
			guests_match_find_first(*host);
	for (uint32_t guest = 0; guest < n && !ret; guest++) {
		struct match best = {0};

		for (uint32_t host = 0; host < n; host++)
			guests_match_on_host(guests, run->facts, host, guest, &best);
		if (best.vcpu)
			ret = guests_match_tell(run, &best);
	}
	return ret;
}
