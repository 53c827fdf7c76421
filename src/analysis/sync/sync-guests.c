/* SPDX-License-Identifier: MIT */
/* What a host's events tell of its virtual machines, and what guests' events tell of their CPUs. sync-guests-match.c compares them. */
#include "analysis/sync/sync-guests-internal.h"

#include <stdlib.h>
#include <string.h>

enum guest_kind { GUEST_DUMP, GUEST_OFFSET, GUEST_ENTRY, GUEST_EXIT, GUEST_SEEN };

/* Kymo and LTTng, and the kernel. */
static const struct {
	const char *event;
	enum guest_kind kind;
} sync_guests_events[] = {
	{"lttng_statedump_kvm_vcpu", GUEST_DUMP},
	{"kvm_write_tsc_offset", GUEST_OFFSET},
	{"kvm_x86_write_tsc_offset", GUEST_OFFSET},
	{"kvm_entry", GUEST_ENTRY},
	{"kvm_x86_entry", GUEST_ENTRY},
	{"kvm_exit", GUEST_EXIT},
	{"kvm_x86_exit", GUEST_EXIT},
	{"sched_switch", GUEST_SEEN},
};

enum { DUMP_VM, DUMP_VCPU, DUMP_TID, DUMP_OFFSET, DUMP_RATIO, DUMP_BITS, DUMP_FIELDS };
enum { EVENT_TID, EVENT_VCPU, EVENT_OFFSET };

struct ky_guest_event {
	enum guest_kind kind;
	struct ky_handle fields[DUMP_FIELDS];
};

/* ---- classes -------------------------------------------------------------------------- */

bool ky_guests_have_entries(const struct ky_trace_set *set)
{
	ky_vec_foreach(&set->traces, it) {
		ky_vec_foreach(&(*it)->cls->events, event) {
			const char *name = (*event)->name;

			if (strcmp(name, "kvm_entry") == 0 || strcmp(name, "kvm_x86_entry") == 0)
				return true;
		}
	}
	return false;
}

static bool sync_guests_find_thread(struct ky_handle *handle, const struct ky_event_class *event)
{
	return ky_handle_find(handle, event, KY_SCOPE_STREAM_CONTEXT, "tid") ||
	       ky_handle_find_any(handle, event, "tid") ||
	       ky_handle_find_any(handle, event, "common_pid");
}

static bool sync_guests_find_fields(struct ky_guest_event *known,
				    const struct ky_event_class *event)
{
	static const char *const of_dump[DUMP_FIELDS] = {
		"vm", "vcpu_id", "tid", "tsc_offset", "tsc_ratio", "tsc_ratio_bits"};
	struct ky_handle *fields = known->fields;
	bool found = true;

	if (known->kind == GUEST_SEEN)
		return true;
	for (int i = 0; i < DUMP_FIELDS && known->kind == GUEST_DUMP; i++)
		found &= ky_handle_find(&fields[i], event, KY_SCOPE_PAYLOAD, of_dump[i]);
	if (known->kind == GUEST_DUMP)
		return found;
	found = sync_guests_find_thread(&fields[EVENT_TID], event);
	/* Exits have no number before Linux 5.12. */
	if (!ky_handle_find(&fields[EVENT_VCPU], event, KY_SCOPE_PAYLOAD, "vcpu_id") &&
	    known->kind != GUEST_EXIT)
		return false;
	return found &&
	       (known->kind != GUEST_OFFSET ||
		ky_handle_find(&fields[EVENT_OFFSET], event, KY_SCOPE_PAYLOAD, "next_tsc_offset"));
}

struct ky_guest_event *ky_guest_event_find(struct ky_arena *arena, bool has_entries,
					   const struct ky_event_class *event)
{
	for (size_t i = 0; i < sizeof(sync_guests_events) / sizeof(sync_guests_events[0]); i++) {
		struct ky_guest_event *known;

		if (strcmp(sync_guests_events[i].event, event->name) != 0 ||
		    (sync_guests_events[i].kind == GUEST_SEEN && !has_entries))
			continue;
		known = ky_arena_new(arena, struct ky_guest_event);
		if (!known)
			return NULL;
		known->kind = sync_guests_events[i].kind;
		return sync_guests_find_fields(known, event) ? known : NULL;
	}
	return NULL;
}

/* ---- machines ------------------------------------------------------------------------- */

int ky_guests_init(struct ky_guests *guests, size_t n_machines)
{
	*guests = (struct ky_guests){0};
	for (size_t i = 0; i < n_machines; i++)
		if (ky_vec_push(&guests->hosts, NULL) < 0)
			return KYMO_E_MEMORY;
	return KYMO_OK;
}

static void sync_guests_free_host(struct ky_guest_host *host)
{
	if (!host)
		return;
	ky_vec_foreach(&host->vcpus, it) {
		ky_vec_fini(&(*it)->stays);
		free(*it);
	}
	ky_vec_fini(&host->vcpus);
	ky_vec_fini(&host->seen);
	ky_map_fini(&host->by_tid);
	free(host);
}

void ky_guests_fini(struct ky_guests *guests)
{
	ky_vec_foreach(&guests->hosts, host)
		sync_guests_free_host(*host);
	ky_vec_fini(&guests->hosts);
}

static struct ky_guest_host *sync_guests_host(struct ky_guests *guests, uint32_t machine)
{
	struct ky_guest_host **host = &guests->hosts.data[machine];

	if (!*host) {
		*host = calloc(1, sizeof(**host));
		if (*host)
			ky_map_init(&(*host)->by_tid);
	}
	return *host;
}

/* The dump of an older kernel does not know the thread: then the first one that enters this CPU is it. */
static struct ky_guest_vcpu *sync_guests_unknown(struct ky_guest_host *host, uint32_t vcpu_id)
{
	struct ky_guest_vcpu *found = NULL;

	ky_vec_foreach(&host->vcpus, it) {
		if ((*it)->tid || (*it)->vcpu_id != vcpu_id)
			continue;
		if (found)
			return NULL;
		found = *it;
	}
	return found;
}

/* NULL: memory is out, or there are too many. */
static struct ky_guest_vcpu *sync_guests_vcpu(struct ky_guest_host *host, int32_t tid,
					      uint32_t vcpu_id, bool is_dump)
{
	struct ky_guest_vcpu *vcpu = tid ? ky_map_get(&host->by_tid, (uint32_t)tid) : NULL;

	if (vcpu)
		return vcpu;
	if (!is_dump)
		vcpu = sync_guests_unknown(host, vcpu_id);
	if (!vcpu) {
		if (host->vcpus.len == KY_GUESTS_VCPUS_MAX)
			return NULL;
		vcpu = calloc(1, sizeof(*vcpu));
		if (!vcpu || ky_vec_push(&host->vcpus, vcpu) < 0) {
			free(vcpu);
			return NULL;
		}
		vcpu->vcpu_id = vcpu_id;
		vcpu->entered_ns = INT64_MIN;
	}
	vcpu->tid = tid;
	return tid && ky_map_set(&host->by_tid, (uint32_t)tid, vcpu) < 0 ? NULL : vcpu;
}

/* ---- events --------------------------------------------------------------------------- */

static void sync_guests_set_offset(struct ky_guest_vcpu *vcpu, int64_t offset)
{
	if (vcpu->n_offsets && vcpu->offset == offset)
		return;
	vcpu->offset = offset;
	vcpu->n_offsets++;
}

static int sync_guests_on_dump(struct ky_guest_host *host, const struct ky_guest_event *known,
			       const struct ky_event *event)
{
	const struct ky_handle *fields = known->fields;
	uint64_t bits = ky_get_u64(event, &fields[DUMP_BITS], 0);
	struct ky_guest_vcpu *vcpu =
		sync_guests_vcpu(host, (int32_t)ky_get_i64(event, &fields[DUMP_TID], 0),
				 (uint32_t)ky_get_u64(event, &fields[DUMP_VCPU], 0), true);

	if (!vcpu)
		return host->vcpus.len == KY_GUESTS_VCPUS_MAX ? KYMO_OK : KYMO_E_MEMORY;
	vcpu->vcpu_id = (uint32_t)ky_get_u64(event, &fields[DUMP_VCPU], 0);
	vcpu->vm = (int32_t)ky_get_i64(event, &fields[DUMP_VM], 0);
	vcpu->ratio = ky_get_u64(event, &fields[DUMP_RATIO], 0);
	vcpu->ratio_bits = bits < 64 ? (unsigned int)bits : 0;
	sync_guests_set_offset(vcpu, ky_get_i64(event, &fields[DUMP_OFFSET], 0));
	return KYMO_OK;
}

static int sync_guests_on_exit(struct ky_guest_host *host, struct ky_guest_vcpu *vcpu, int64_t ns)
{
	struct ky_guest_stay stay = {vcpu->entered_ns, ns};

	vcpu->entered_ns = INT64_MIN;
	if (stay.begin_ns == INT64_MIN || host->n_stays == KY_GUESTS_STAYS_MAX)
		return KYMO_OK;
	host->n_stays++;
	return ky_vec_push(&vcpu->stays, stay);
}

/* Every other one goes when there are too many, so that what is kept is spread over the whole time. */
static int sync_guests_on_seen(struct ky_guest_host *host, const struct ky_event *event)
{
	struct ky_guest_seen seen = {event->ns, event->cpu_id};
	size_t kept = 0;

	if (!host->n_seen)
		host->first_ns = event->ns;
	host->last_ns = event->ns;
	if (host->n_seen++ & host->thinned)
		return KYMO_OK;
	if (host->seen.len == KY_GUESTS_EVENTS_MAX) {
		host->thinned = 2 * host->thinned + 1;
		for (size_t i = 0; i < host->seen.len; i += 2)
			host->seen.data[kept++] = host->seen.data[i];
		host->seen.len = kept;
	}
	return ky_vec_push(&host->seen, seen);
}

int ky_guests_see(struct ky_guests *guests, const struct ky_guest_event *known, uint32_t machine,
		  const struct ky_event *event)
{
	struct ky_guest_host *host = sync_guests_host(guests, machine);
	const struct ky_handle *fields = known->fields;
	struct ky_guest_vcpu *vcpu;

	if (!host)
		return KYMO_E_MEMORY;
	if (known->kind == GUEST_DUMP)
		return sync_guests_on_dump(host, known, event);
	if (known->kind == GUEST_SEEN)
		return sync_guests_on_seen(host, event);
	vcpu = sync_guests_vcpu(host, (int32_t)ky_get_i64(event, &fields[EVENT_TID], 0),
				(uint32_t)ky_get_u64(event, &fields[EVENT_VCPU], 0), false);
	if (!vcpu)
		return host->vcpus.len == KY_GUESTS_VCPUS_MAX ? KYMO_OK : KYMO_E_MEMORY;
	if (known->kind == GUEST_OFFSET)
		sync_guests_set_offset(vcpu, ky_get_i64(event, &fields[EVENT_OFFSET], 0));
	else if (known->kind == GUEST_EXIT)
		return sync_guests_on_exit(host, vcpu, event->ns);
	else
		vcpu->entered_ns = event->ns;
	return KYMO_OK;
}
