/* SPDX-License-Identifier: MIT */
/* Shared by the parts of the state dump: an event's fields, and sending it. */
#ifndef KY_KERNEL_STATEDUMP_STATEDUMP_RUN_H
#define KY_KERNEL_STATEDUMP_STATEDUMP_RUN_H

#include <string.h>

#include "kernel/process/pid-view.h"
#include "kernel/process/proc.h"
#include "kernel/statedump/statedump.h"
#include "os/elf-file.h"

/* Kept free by texts for the fixed-size fields that may follow them. */
#define KY_DUMP_TAIL_BYTES 64

/* The fields of the event being built; a text that does not fit is cut. */
struct ky_dump_body {
	uint32_t len;
	uint8_t data[PATH_MAX + 512];
};

struct ky_dump_run {
	struct ky_statedump *dump;
	struct ky_proc proc;
	struct ky_dump_body body;
	struct ky_proc_fd file;
	struct kymo_error *err;
	int32_t self_tid;
	uint32_t pid_ns; /* that /proc is of */
};

/* Is one of the events in the set @events wanted? */
static inline bool ky_dump_wants(const struct ky_dump_run *run, uint32_t events)
{
	return run->dump->wanted & events;
}

static inline void ky_dump_put(struct ky_dump_body *body, const void *data, size_t len)
{
	if (len > sizeof(body->data) - body->len)
		return;
	memcpy(body->data + body->len, data, len);
	body->len += (uint32_t)len;
}

static inline void ky_dump_put8(struct ky_dump_body *body, uint8_t value)
{
	ky_dump_put(body, &value, sizeof(value));
}

static inline void ky_dump_put16(struct ky_dump_body *body, uint16_t value)
{
	ky_dump_put(body, &value, sizeof(value));
}

static inline void ky_dump_put32(struct ky_dump_body *body, uint32_t value)
{
	ky_dump_put(body, &value, sizeof(value));
}

static inline void ky_dump_put64(struct ky_dump_body *body, uint64_t value)
{
	ky_dump_put(body, &value, sizeof(value));
}

/* An id from /proc, as the kernel has it. */
static inline int32_t ky_dump_id(const struct ky_dump_run *run, int32_t own)
{
	return run->dump->view ? ky_pid_to_kernel(run->dump->view, own) : own;
}

static inline void ky_dump_put_id(struct ky_dump_run *run, int32_t own)
{
	ky_dump_put32(&run->body, (uint32_t)ky_dump_id(run, own));
}

/* The first @len bytes of @text, and a NUL. */
static inline void ky_dump_put_textn(struct ky_dump_body *body, const char *text, size_t len)
{
	size_t room = sizeof(body->data) - body->len;

	room = room > KY_DUMP_TAIL_BYTES ? room - KY_DUMP_TAIL_BYTES : 0;
	ky_dump_put(body, text, len < room ? len : room);
	ky_dump_put8(body, 0);
}

static inline void ky_dump_put_text(struct ky_dump_body *body, const char *text)
{
	ky_dump_put_textn(body, text, strlen(text));
}

/* Send the body as event @event, if that is wanted, and start a new one. 0, or what the dump's flush() returned. */
int ky_dump_emit(struct ky_dump_run *run, enum ky_statedump_event event);

/* The machine's memory, and loaded modules. */
int ky_dump_memory(struct ky_dump_run *run);
/* Sizes of a process, and where it has what mapped. */
int ky_dump_process_memory(struct ky_dump_run *run, int32_t pid);

/* statedump-kvm.c: CPUs of virtual machines, as far as debugfs shows them. */
int ky_dump_kvm(struct ky_dump_run *run);

/* A line of /proc/PID/maps. */
struct ky_dump_map {
	uint64_t begin, end, offset, inode;
	unsigned int protection; /* 1 read, 2 write, 4 execute, 8 shared */
	unsigned int major, minor;
	const char *path; /* within the line; "" when anonymous */
};
bool ky_dump_parse_map(const char *line, struct ky_dump_map *map);
/* A line of /proc/modules. False: the line has another format. */
bool ky_dump_parse_module(const char *line, char name[64], uint64_t *size, uint64_t *address);
/* The GNU build id among @len bytes of ELF notes, as text. "": none. */
void ky_dump_note_build_id(const uint8_t *notes, size_t len, char id[2 * KY_ELF_BUILD_ID_MAX + 1]);

/* Block devices, network interfaces, interrupts, CPUs. What is missing is left out. */
int ky_dump_devices(struct ky_dump_run *run);

/* statedump-ids.c: the ids of @thread, and the namespaces that it is in. */
int ky_dump_namespaces(struct ky_dump_run *run, const struct ky_proc_thread *thread);

#endif
