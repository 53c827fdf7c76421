/* SPDX-License-Identifier: MIT */
/*
 * Hosts and guests: a guest's time stamp counter is its host's times a ratio, plus an offset, which the host's kernel knows. Which virtual
 * machine a trace is from shows where its events are: a guest's CPU has events only between an entry and an exit of its thread on the host.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_ANALYSIS_SYNC_SYNC_GUESTS_H
#define KY_ANALYSIS_SYNC_SYNC_GUESTS_H

#include "analysis/sync/sync-facts.h"
#include "analysis/sync/sync.h"
#include "ctf/decode/decode.h"

/* Stays in guests that are kept of each machine, and events of possible guests. */
#define KY_GUESTS_STAYS_MAX  ((size_t)1 << 22)
#define KY_GUESTS_EVENTS_MAX ((size_t)1 << 16)
/* An offset that has changed more often than this follows a host's counter that is not stable: it says nothing. */
#define KY_GUESTS_OFFSETS_MAX 16

struct ky_guest_event;

/* What events tell of hosts and guests; also which events do. */
struct ky_guests {
	KY_VEC(struct ky_guest_host *) hosts; /* by machine; NULL: none */
};

/* May any trace of @set tell of entries into guests? Only then guests' own events are of interest. */
bool ky_guests_have_entries(const struct ky_trace_set *set);

/* What @event tells, in @arena; NULL: nothing, or memory is out. @has_entries: as above. */
struct ky_guest_event *ky_guest_event_find(struct ky_arena *arena, bool has_entries,
					   const struct ky_event_class *event);

int ky_guests_init(struct ky_guests *guests, size_t n_machines);
void ky_guests_fini(struct ky_guests *guests);
/* 0 or KYMO_E_MEMORY. */
int ky_guests_see(struct ky_guests *guests, const struct ky_guest_event *known, uint32_t machine,
		  const struct ky_event *event);
/* After all events: finds the guests, and tells @run of their clocks. 0 or KYMO_E_MEMORY. */
int ky_guests_match(struct ky_guests *guests, struct ky_sync_run *run);

#endif
