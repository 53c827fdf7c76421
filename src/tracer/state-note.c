/* SPDX-License-Identifier: MIT */
/*
 * State notes (abi/control.h): what a program that shares its ring with others has loaded. A file of its own for each
 * note, since the ring has no place for those of many programs.
 *
 * A forked child writes one, too, as its events have its own vpid. It does so in fork(), before it can be in a sandbox
 * in which a system call may kill it. No lock is taken: in a child, another thread may have it for ever.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "tracer/ring-config.h"
#include "tracer/tracer.h"

/* On the stack, which may be a signal's. */
#define STEP_BYTES 2048u

/* Beyond the limit for file sizes, writing would be the program's end. */
static bool state_note_fits(uint64_t bytes)
{
	struct rlimit limit;

	return ky_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit, 0, 0) == 0 &&
	       bytes <= limit.rlim_cur;
}

/* Returns the length of the text; 0: it cannot be had, or is too long. */
static uint32_t copy_maps(int to)
{
	const uint32_t head = (uint32_t)sizeof(struct ky_state_note);
	char buffer[STEP_BYTES];
	uint32_t bytes = 0;
	long fd = ky_sys(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0,
			 0);
	long got = fd < 0 ? -1 : 1;

	while (got > 0) {
		got = ky_sys(SYS_read, fd, (long)buffer, sizeof(buffer), 0, 0, 0);
		if (got <= 0)
			break;
		if (bytes + got > KY_STATE_NOTE_MAX - head ||
		    !state_note_fits(head + bytes + (uint64_t)got) ||
		    ky_sys(SYS_pwrite64, to, (long)buffer, got, head + bytes, 0, 0) != got)
			got = -1;
		bytes += got > 0 ? (uint32_t)got : 0;
	}
	if (fd >= 0)
		ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return got == 0 ? bytes : 0;
}

/* The head comes last: its time is the one at which the text was complete. */
static bool state_note_fill(const struct ky_slot *slot, int fd, uint32_t kind, uint64_t address,
			    uint32_t flags)
{
	struct ky_state_note head = {
		.magic = KY_STATE_NOTE_MAGIC,
		.pid = ky_trace_pid(),
		.flags = flags,
		.note = {.kind = kind, .bytes = sizeof(address)},
	};

	if (kind == KY_NOTE_MAPS)
		head.note.bytes = copy_maps(fd);
	else if (!state_note_fits(sizeof(head) + sizeof(address)) ||
		 ky_sys(SYS_pwrite64, fd, (long)&address, sizeof(address), sizeof(head), 0, 0) !=
			 (long)sizeof(address))
		return false;
	memcpy(head.procname, ky_trace.procname, sizeof(head.procname));
	head.note.cycles =
		slot->clock == KY_CLOCK_RECORD_TSC ? ky_clock_tsc() : ky_clock_monotonic();
	return head.note.bytes &&
	       ky_sys(SYS_pwrite64, fd, (long)&head, sizeof(head), 0, 0, 0) == (long)sizeof(head);
}

static void state_note_write(const struct ky_slot *slot, int dir_fd, uint32_t kind,
			     uint64_t address, uint32_t flags)
{
	static uint32_t count;
	char name[96], *end = ky_ring_file_name(name);
	long fd;

	memcpy(end, KY_STATE_NOTE_SUFFIX, sizeof(KY_STATE_NOTE_SUFFIX));
	end = ky_ring_file_number(end + sizeof(KY_STATE_NOTE_SUFFIX) - 1,
				  __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED), 10);
	*end = 0;
	fd = ky_sys(SYS_openat, dir_fd, (long)name,
		    O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600, 0, 0);
	if (fd < 0)
		return;
	/* The recorder takes what has a name without the dot. */
	if (!state_note_fill(slot, (int)fd, kind, address, flags) ||
	    ky_sys(SYS_renameat2, dir_fd, (long)name, dir_fd, (long)(name + 1), 0, 0) < 0)
		ky_sys(SYS_unlinkat, dir_fd, (long)name, 0, 0, 0, 0);
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

void ky_state_note_maps(const struct ky_slot *slot, int dir_fd)
{
	state_note_write(slot, dir_fd, KY_NOTE_MAPS, 0, KY_STATE_NOTE_JOINS);
}

/* In the session's directory, whose name the recorder may have removed by now. */
static void state_note_send(const struct ky_slot *slot, uint32_t kind, uint64_t address,
			    uint32_t flags)
{
	int dir_fd = ky_directory_open(slot->directory);

	if (dir_fd < 0)
		return;
	if (ky_directory_is_safe(dir_fd))
		state_note_write(slot, dir_fd, kind, address, flags);
	ky_sys(SYS_close, dir_fd, 0, 0, 0, 0, 0);
}

void ky_state_note_change(const struct ky_slot *slot, const void *unloaded)
{
	state_note_send(slot, unloaded ? KY_NOTE_UNLOAD : KY_NOTE_MAPS, (uintptr_t)unloaded, 0);
}

static void state_note_fork_child(void)
{
	for (uint32_t i = 0; ky_trace.process && i < KY_CONTROL_SLOTS; i++) {
		const struct ky_slot *slot = __atomic_load_n(&ky_trace.slots[i], __ATOMIC_ACQUIRE);

		if (slot && __atomic_load_n(&slot->is_joined, __ATOMIC_ACQUIRE) &&
		    slot->is_shared && slot->ring.file)
			state_note_send(slot, KY_NOTE_MAPS, 0, KY_STATE_NOTE_JOINS);
	}
}

void ky_state_note_begin(void)
{
	(void)pthread_atfork(NULL, NULL, state_note_fork_child);
}
