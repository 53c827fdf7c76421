/* SPDX-License-Identifier: MIT */
/* Notes of executable and libraries in rings (abi/control.h). */
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "tracer/ring-config.h"
#include "tracer/tracer.h"

/* Notes take memory in such steps. */
#define STEP_BYTES 16384u

/* How many objects the dynamic linker had loaded in all when a module last came, and when they were last noted. */
static unsigned long long seen_adds, noted_adds;
static bool is_exiting;

static int take_adds(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size;
	*(unsigned long long *)data = info->dlpi_adds;
	return 1;
}

void ky_notes_count(void)
{
	unsigned long long adds = 0;

	dl_iterate_phdr(take_adds, &adds);
	__atomic_store_n(&seen_adds, adds, __ATOMIC_RELAXED);
}

/* Modules are removed when the program ends, too, and that is no news. */
static void begin_exit(void)
{
	is_exiting = true;
}

void ky_notes_begin(void)
{
	static bool has_begun;

	if (!has_begun) {
		(void)atexit(begin_exit);
		ky_state_note_begin();
	}
	has_begun = true;
}

/* Memory up to @end of the region at @region, of which @begin is there. */
static bool populate(uint8_t *region, uint32_t begin, uint32_t end)
{
	uint32_t there = (begin + STEP_BYTES - 1) / STEP_BYTES * STEP_BYTES;

	return end <= there || kymo_ring_populate(region + there, end - there) == 0;
}

/* Read /proc/self/maps to @to. Returns the text's length; 0: it cannot be had, or is longer than @room. */
static uint32_t read_maps(uint8_t *region, uint32_t at, uint32_t room)
{
	uint32_t bytes = 0;
	long fd = ky_sys(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0,
			 0);
	long got = fd < 0 ? -1 : 1;

	while (got > 0 && bytes < room) {
		uint32_t step = STEP_BYTES - (at + bytes) % STEP_BYTES;

		step = step < room - bytes ? step : room - bytes;
		if (!populate(region, at + bytes, at + bytes + step))
			break;
		got = ky_sys(SYS_read, fd, (long)(region + at + bytes), step, 0, 0, 0);
		bytes += got > 0 ? (uint32_t)got : 0;
	}
	if (fd >= 0)
		ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return got == 0 ? bytes : 0;
}

/* A note of @bytes, which stand behind its head already, is valid now. */
static void loaded_objects_add(struct ky_slot *slot, struct ky_blob *blob, uint32_t kind,
			       uint32_t bytes)
{
	struct ky_note *note =
		(struct ky_note *)((uint8_t *)blob + KY_BLOB_BYTES + slot->notes_bytes);

	*note = (struct ky_note){
		.cycles =
			slot->clock == KY_CLOCK_RECORD_TSC ? ky_clock_tsc() : ky_clock_monotonic(),
		.kind = kind,
		.bytes = bytes,
	};
	slot->notes_bytes += (uint32_t)sizeof(*note) + (bytes + 7) / 8 * 8;
	/* Partner: the recorder's load. */
	__atomic_store_n(&blob->notes_bytes, slot->notes_bytes, __ATOMIC_RELEASE);
	kymo_ring_wake(&slot->ring, KYMO_RING_WAKE_SWITCH);
}

void ky_note_maps(struct ky_slot *slot, struct ky_blob *blob)
{
	uint8_t *region = (uint8_t *)blob + KY_BLOB_BYTES;
	uint32_t at = slot->notes_bytes + (uint32_t)sizeof(struct ky_note), bytes;

	/* 8: for the zeros behind. */
	if (at + 8 >= KY_NOTES_BYTES)
		return;
	bytes = read_maps(region, at, KY_NOTES_BYTES - at - 8);
	if (bytes && populate(region, at + bytes, at + bytes + 8))
		loaded_objects_add(slot, blob, KY_NOTE_MAPS, bytes);
	noted_adds = __atomic_load_n(&seen_adds, __ATOMIC_RELAXED);
}

void ky_notes_joined(const struct ky_slot *slot, int dir_fd)
{
	ky_state_note_maps(slot, dir_fd);
	noted_adds = __atomic_load_n(&seen_adds, __ATOMIC_RELAXED);
}

static bool loaded_objects_is_ours(const struct ky_slot *slot)
{
	return slot && slot->blob && slot->ring.file && !slot->is_shared &&
	       slot->pid == ky_trace_pid();
}

/* The ring has no place for notes. */
static bool loaded_objects_is_of_many(const struct ky_slot *slot)
{
	return slot && slot->blob && slot->ring.file && slot->is_shared;
}

void ky_notes_loaded(void)
{
	if (__atomic_load_n(&seen_adds, __ATOMIC_RELAXED) == noted_adds)
		return;
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (loaded_objects_is_ours(ky_trace.slots[i]))
			ky_note_maps(ky_trace.slots[i], ky_trace.slots[i]->blob);
		else if (loaded_objects_is_of_many(ky_trace.slots[i]))
			ky_state_note_change(ky_trace.slots[i], NULL);
	}
	noted_adds = __atomic_load_n(&seen_adds, __ATOMIC_RELAXED);
}

void ky_notes_unload(const void *address)
{
	for (uint32_t i = 0; !is_exiting && i < KY_CONTROL_SLOTS; i++) {
		struct ky_slot *slot = ky_trace.slots[i];
		uint8_t *region;
		uint32_t at;

		if (loaded_objects_is_of_many(slot))
			ky_state_note_change(slot, address);
		if (!loaded_objects_is_ours(slot))
			continue;
		region = (uint8_t *)slot->blob + KY_BLOB_BYTES;
		at = slot->notes_bytes + (uint32_t)sizeof(struct ky_note);
		if (at + sizeof(uint64_t) > KY_NOTES_BYTES ||
		    !populate(region, slot->notes_bytes, at + (uint32_t)sizeof(uint64_t)))
			continue;
		*(uint64_t *)(region + at) = (uint64_t)(uintptr_t)address;
		loaded_objects_add(slot, slot->blob, KY_NOTE_UNLOAD, sizeof(uint64_t));
	}
}
