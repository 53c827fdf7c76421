/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/syscall.h>

#include "tracer/tracer.h"

/* A recorder that changes its rules all the time is followed at the next hit. */
#define SYNC_TRIES 8

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
static void take_over(struct ky_slot *slot, struct ky_slot *old)
{
	slot->ring = old->ring;
	slot->ring.client = slot;
	slot->blob = old->blob;
	slot->pid = old->pid;
	slot->next_id = old->next_id;
	memcpy(slot->trace_uuid, old->trace_uuid, sizeof(slot->trace_uuid));
	slot->n_contexts = old->n_contexts;
	slot->context_bytes = old->context_bytes;
	memcpy(slot->contexts, old->contexts, sizeof(slot->contexts));
}

static void leave(uint32_t number)
{
	struct ky_slot *old = ky_trace.slots[number];

	if (!old)
		return;
	ky_session_forget_events(number, false);
	__atomic_store_n(&ky_trace.slots[number], NULL, __ATOMIC_RELEASE);
	ky_session_correct_enable_bytes(old);
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
		take_over(slot, old);
	else if (old)
		leave(number);
	if (slot->file && !goes_on) {
		int off = ky_contexts_link(slot);

		reason = off ? (uint32_t)off : reason;
	}
	ky_session_forget_events(number, goes_on);
	shared->n_events = 0;
	shared->reason = reason;
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
	slot->file = file;
	if (file->clock.kind == KY_CLOCK_RECORD_TSC ||
	    file->clock.kind == KY_CLOCK_RECORD_MONOTONIC)
		return is_tracked(file) ? 0 : KY_OFF_NO_EVENT;
	return KY_OFF_VERSION;
}

/* A slot asks for a session that is not known. */
static void join(uint32_t number, uint64_t cookie)
{
	struct ky_control_slot *shared = &ky_trace.control->slots[number];
	struct ky_slot *slot = ky_trace_alloc(sizeof(*slot));
	int result, os_error = 0;
	int dir_fd;

	if (!slot)
		return;
	slot->cookie = cookie;
	memcpy(slot->directory, shared->directory, sizeof(slot->directory));
	slot->directory[sizeof(slot->directory) - 1] = 0;
	dir_fd = ky_directory_open(slot->directory);
	if (dir_fd < 0) {
		result = KY_OFF_DIRECTORY;
		os_error = -dir_fd;
	} else {
		result = ky_session_open(slot, dir_fd, &os_error);
		ky_sys(SYS_close, dir_fd, 0, 0, 0, 0, 0);
	}
	/* The session may be another one by now: then its cookie comes with the next hit. */
	if (result)
		slot->file = NULL;
	shared->os_error = os_error;
	ky_session_enter(slot, number, (uint32_t)result);
}

/* Another slot, before this one, has the session: this one is not needed. */
static bool is_double(uint32_t number, uint64_t cookie)
{
	for (uint32_t i = 0; i < number; i++) {
		if (__atomic_load_n(&ky_trace.control->slots[i].cookie, __ATOMIC_ACQUIRE) == cookie)
			return true;
	}
	return false;
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
static bool is_known(uint32_t number, uint64_t cookie)
{
	const struct ky_slot *slot = __atomic_load_n(&ky_trace.slots[number], __ATOMIC_ACQUIRE);

	if (!slot)
		return !cookie;
	/* Not joined: this process was forked beside a thread that was about to. */
	return __atomic_load_n(&slot->is_joined, __ATOMIC_ACQUIRE) && slot->cookie == cookie;
}

static uint64_t asked_cookie(uint32_t number)
{
	/* Partner: the store-release of who filled the slot. */
	return __atomic_load_n(&ky_trace.control->slots[number].cookie, __ATOMIC_ACQUIRE);
}

static bool needs_calls(uint32_t number, uint64_t cookie)
{
	uint32_t flags = __atomic_load_n(&ky_trace.control->slots[number].flags, __ATOMIC_RELAXED);

	return !is_known(number, cookie) && (cookie || !(flags & KY_SLOT_NO_CALLS));
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

	if (is_known(number, cookie)) {
		correct_slot(number);
		return;
	}
	if (cookie && is_double(number, cookie)) {
		__atomic_store_n(&shared->cookie, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
		cookie = 0;
	}
	if (cookie) {
		join(number, cookie);
		return;
	}
	leave(number);
	/* The recorder's own end: the slot may be taken again. */
	__atomic_store_n(&shared->joined, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->reason, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
}

/* Recorders set a slot's cookie before bits: who has cleared a bit of the next rules sees their cookie now. */
static bool is_behind(bool may_call)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		uint64_t cookie = asked_cookie(i);

		if (!is_known(i, cookie) && (may_call || !needs_calls(i, cookie)))
			return true;
	}
	return false;
}

void ky_sessions_sync(bool may_call)
{
	int tries = 0;

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
 * A child that makes itself a control file goes without its parent's sessions until it finds them
 * for itself. The parent's rings stay mapped: a hit may be using them.
 */
void ky_sessions_forget(void)
{
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++)
		__atomic_store_n(&ky_trace.slots[i], NULL, __ATOMIC_RELAXED);
}
