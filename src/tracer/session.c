/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "tracer/tracer.h"

/* A recorder that changes its rules all the time is followed at the next hit. */
#define SYNC_TRIES 8

/*
 * What a session takes is never given back, and whoever can write to the control file can ask for one again and
 * again: this many joins (changes of rules count) are had at once, and one more in every so many nanoseconds.
 */
#define JOINS_AT_ONCE 4096
#define JOIN_NS	      (UINT64_C(16) * 1000000000)

static bool is_tracked(const struct ky_session_file *file)
{
	const uint32_t *pids = (const void *)((const char *)file + file->track_pids);

	for (uint32_t i = 0; i < file->n_track_pids; i++) {
		if (pids[i] == ky_trace_pid())
			return true;
	}
	return !file->n_track_pids;
}

/* What goes on when the session's file changed: ring, ids. */
static void tracer_session_take_over(struct ky_slot *slot, struct ky_slot *old)
{
	slot->ring = old->ring;
	slot->ring.client = slot;
	ky_wait_set(slot);
	slot->blob = old->blob;
	slot->blob_bytes = old->blob_bytes;
	slot->notes_bytes = old->notes_bytes;
	slot->pid = old->pid;
	slot->is_shared = old->is_shared;
	slot->next_id = old->next_id;
	memcpy(slot->trace_uuid, old->trace_uuid, sizeof(slot->trace_uuid));
	slot->n_contexts = old->n_contexts;
	slot->context_bytes = old->context_bytes;
	memcpy(slot->contexts, old->contexts, sizeof(slot->contexts));
}

static void tracer_session_leave(uint32_t number)
{
	struct ky_slot *old = ky_trace.slots[number];

	if (!old)
		return;
	ky_session_forget_events(number, false);
	__atomic_store_n(&ky_trace.slots[number], NULL, __ATOMIC_RELEASE);
	ky_session_correct_enable_bytes(old);
	/* No event has ever been recorded in it, so it can be another one. */
	if (!old->file && !ky_trace.spare) {
		__atomic_store_n(&old->is_joined, false, __ATOMIC_RELAXED);
		ky_trace.spare = old;
		return;
	}
	if (!(ky_trace.control->slots[number].flags & KY_SLOT_NO_CALLS))
		ky_ring_file_leave(old);
}

void ky_session_enter(struct ky_slot *slot, uint32_t number, uint32_t reason)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[number];
	struct ky_slot *old = ky_trace.slots[number];
	bool goes_on = old && old->ring.file && old->pid == ky_trace_pid() && slot->file &&
		       !memcmp(old->uuid, slot->file->uuid, sizeof(old->uuid));

	slot->number = number;
	if (slot->file) {
		memcpy(slot->uuid, slot->file->uuid, sizeof(slot->uuid));
		slot->clock = slot->file->clock.kind;
	}
	if (goes_on)
		tracer_session_take_over(slot, old);
	else if (old)
		tracer_session_leave(number);
	if (slot->file && !goes_on) {
		int off = ky_contexts_link(slot);

		reason = off ? (uint32_t)off : reason;
	}
	ky_session_forget_events(number, goes_on);
	slot->n_events = 0;
	slot->reason = reason;
	ky_session_report(slot);
	shared->joined_pid = ky_trace_pid();
	/* Before the events: a hit that sees the bit finds the slot. Partner: hits. */
	__atomic_store_n(&ky_trace.slots[number], slot, __ATOMIC_RELEASE);
	ky_session_ask(slot);
	__atomic_store_n(&slot->is_joined, true, __ATOMIC_RELEASE);
	__atomic_store_n(&shared->joined, slot->cookie, __ATOMIC_RELEASE);
}

int ky_session_open(struct ky_slot *slot, int dir_fd, int *os_error)
{
	const struct ky_session_file *file;
	int result = ky_session_read(dir_fd, &file, &slot->file_bytes, os_error);

	if (result)
		return result;
	if (file->clock.kind != KY_CLOCK_RECORD_TSC &&
	    file->clock.kind != KY_CLOCK_RECORD_MONOTONIC)
		result = KY_OFF_VERSION;
	else if (!is_tracked(file))
		result = KY_OFF_NO_EVENT;
	if (result) {
		ky_sys(SYS_munmap, (long)file, slot->file_bytes, 0, 0, 0, 0);
		return result;
	}
	slot->file = file;
	slot->shared_file = file->wait_ns ? ky_session_map(dir_fd) : NULL;
	return 0;
}

static bool may_join(void)
{
	uint64_t age_ns;

	if (ky_trace.n_joins < JOINS_AT_ONCE)
		return true;
	age_ns = (uint64_t)ky_clock_ns(CLOCK_MONOTONIC) - ky_trace.start_ns;
	return ky_trace.n_joins - JOINS_AT_ONCE < age_ns / JOIN_NS;
}

/* The session in the directory that @slot has. 0 or enum ky_off. */
static int tracer_session_open_directory(struct ky_slot *slot, int *os_error)
{
	int dir_fd, result;

	if (!may_join())
		return KY_OFF_OFTEN;
	dir_fd = ky_directory_open(slot->directory);
	if (dir_fd < 0) {
		*os_error = -dir_fd;
		return KY_OFF_DIRECTORY;
	}
	result = ky_session_open(slot, dir_fd, os_error);
	ky_sys(SYS_close, dir_fd, 0, 0, 0, 0, 0);
	return result;
}

/* Slot @number asks for a session that cannot be had, and for another one than before, which could not either. */
static void refuse_again(uint32_t number, uint64_t cookie, uint32_t reason)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[number];
	struct ky_slot *slot = ky_trace.slots[number];

	__atomic_store_n(&slot->cookie, cookie, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->reason, reason, __ATOMIC_RELAXED);
	ky_session_report(slot);
	ky_session_correct_enable_bytes(slot);
	__atomic_store_n(&shared->joined, cookie, __ATOMIC_RELEASE);
}

/* A slot asks for a session that is not known. */
static void tracer_session_join(uint32_t number, uint64_t cookie)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[number];
	struct ky_slot *slot = ky_trace.spare, *old = ky_trace.slots[number];
	int result, os_error = 0;

	if (!slot)
		slot = ky_trace.spare = ky_trace_alloc(sizeof(*slot));
	if (!slot)
		return;
	slot->cookie = cookie;
	memcpy(slot->directory, shared->directory, sizeof(slot->directory));
	slot->directory[sizeof(slot->directory) - 1] = 0;
	/* The session may be another one by now: then its cookie comes with the next hit. */
	result = tracer_session_open_directory(slot, &os_error);
	shared->os_error = os_error;
	if (result && old && !old->file && old->is_joined) {
		refuse_again(number, cookie, (uint32_t)result);
		return;
	}
	ky_trace.spare = NULL;
	ky_trace.n_joins += !result;
	ky_session_enter(slot, number, (uint32_t)result);
}

/* Bits that were set and mean nothing: by a recorder that set too many, or died half-way. */
static void correct_slot(uint32_t number)
{
	struct ky_slot none = {.number = number};

	if (ky_trace.slots[number])
		ky_session_correct_enable_bytes(ky_trace.slots[number]);
	else if (!__atomic_load_n(&ky_trace.control->slots[number].owner, __ATOMIC_RELAXED))
		ky_session_correct_enable_bytes(&none);
}

/* Is what slot @number asks for what we know? */
static bool tracer_session_is_known(uint32_t number, uint64_t cookie)
{
	const struct ky_slot *slot = __atomic_load_n(&ky_trace.slots[number], __ATOMIC_ACQUIRE);

	if (!slot)
		return !cookie;
	/* Not joined: this process was forked beside a thread that was about to. */
	return __atomic_load_n(&slot->is_joined, __ATOMIC_ACQUIRE) &&
	       __atomic_load_n(&slot->cookie, __ATOMIC_RELAXED) == cookie;
}

static uint64_t asked_cookie(uint32_t number)
{
	/* Partner: the store-release of who filled the slot. */
	return __atomic_load_n(&ky_trace.control->slots[number].cookie, __ATOMIC_ACQUIRE);
}

/*
 * Another slot has the session: one before this one; or one that we have joined, since a recorder that changed its
 * rules asked us while we were about to join by ourselves. Two would record each event twice.
 */
static bool is_double(uint32_t number, uint64_t cookie)
{
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (i != number && asked_cookie(i) == cookie &&
		    (i < number || tracer_session_is_known(i, cookie)))
			return true;
	}
	return false;
}

static bool needs_calls(uint32_t number, uint64_t cookie)
{
	uint32_t flags = __atomic_load_n(&ky_trace.control->slots[number].flags, __ATOMIC_RELAXED);

	return !tracer_session_is_known(number, cookie) && (cookie || !(flags & KY_SLOT_NO_CALLS));
}

bool ky_sessions_need_calls(void)
{
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (needs_calls(i, asked_cookie(i)))
			return true;
	}
	return false;
}

static void sync_slot(uint32_t number, uint64_t cookie)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[number];

	if (tracer_session_is_known(number, cookie)) {
		correct_slot(number);
		return;
	}
	if (cookie && is_double(number, cookie)) {
		__atomic_store_n(&shared->cookie, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
		cookie = 0;
	}
	if (cookie) {
		tracer_session_join(number, cookie);
		return;
	}
	tracer_session_leave(number);
	/* The recorder's own end: the slot may be taken again. */
	__atomic_store_n(&shared->joined, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->reason, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
}

/* Recorders set a slot's cookie before bits: a thread that cleared a bit of the next rules sees their cookie. */
static bool is_behind(bool may_call)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		uint64_t cookie = asked_cookie(i);

		if (!tracer_session_is_known(i, cookie) && (may_call || !needs_calls(i, cookie)))
			return true;
	}
	return false;
}

/*
 * The process, or its parent, has given up for good the user whose control file it is. That user's sessions are
 * not for it any more: their directories are not its own. A thread that can go back, and a child that
 * lives in its parent's memory, do not count.
 */
static bool is_other_user(void)
{
	uint32_t real = 0, effective = 0, saved = 0;

	if (kymo_ring_is_shared_thread() ||
	    ky_sys(SYS_getresuid, (long)&real, (long)&effective, (long)&saved, 0, 0, 0) < 0)
		return false;
	return real != ky_trace.uid && effective != ky_trace.uid && saved != ky_trace.uid;
}

void ky_sessions_sync(bool may_call)
{
	int tries = 0;

	if (may_call && is_other_user()) {
		ky_modules_begin_anew();
		ky_sessions_find();
		return;
	}
	do {
		for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
			uint64_t cookie = asked_cookie(i);

			if (may_call || !needs_calls(i, cookie))
				sync_slot(i, cookie);
		}
	} while (is_behind(may_call) && ++tries < SYNC_TRIES);
}

void ky_sessions_catch_up(void)
{
	if (is_behind(true))
		ky_sessions_sync(true);
}

/*
 * A process that makes itself a control file goes without sessions until it finds them for itself. The
 * addresses of the rings stay mapped: a hit may be using them.
 */
void ky_sessions_forget(void)
{
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		struct ky_slot *slot = ky_trace.slots[i];

		__atomic_store_n(&ky_trace.slots[i], NULL, __ATOMIC_RELAXED);
		if (slot)
			ky_ring_file_leave(slot);
	}
}
