/* SPDX-License-Identifier: MIT */
/*
 * What the kernel's events are called in a trace, and which fields they have there: LTTng's
 * names, so that whatever reads LTTng's kernel traces reads ours.
 *
 * The rules are a table (events.c). An event or field without a rule keeps the kernel's name; the
 * event gets its subsystem before it where it does not begin with it already.
 *
 * Threads: any.
 */
#ifndef KY_KERNEL_EVENTS_EVENTS_H
#define KY_KERNEL_EVENTS_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "kernel/tracefs/format.h"

#define KY_EVENT_COMM_BYTES 16
#define KY_EVENT_NAME_BYTES 128

/* How a field of the trace comes from the record of the kernel. */
enum ky_field_how {
	KY_HOW_COPY,  /* an integer: the first @bytes bytes at @offset */
	KY_HOW_PRIO,  /* a priority: minus 100, as LTTng counts */
	KY_HOW_TEXT,  /* @elements characters at @offset */
	KY_HOW_ARRAY, /* @elements integers of @bytes at @offset */
	/*
	 * The address of a text in user memory, which becomes a null-terminated string:
	 * "0x7f58527200b1". Readers of LTTng's traces expect text there.
	 */
	KY_HOW_ADDRESS,
	KY_HOW_CONTENT, /* the same, of content.h's place @elements: the text, if it could be read */
	KY_HOW_STRING,	/* a dynamic text, becomes a null-terminated string */
	KY_HOW_COMM,	/* a dynamic text, becomes 16 characters */
	KY_HOW_SEQUENCE,   /* a dynamic array of integers of @bytes; NAME_length precedes it */
	KY_HOW_RWBS,	   /* the text of a block request's kind, becomes LTTng's bit mask */
	KY_HOW_TID,	   /* the thread that the event happened in */
	KY_HOW_PARENT_PID, /* sched_process_fork: the process of thread @offset */
	KY_HOW_CHILD_PID,
};

/* One field of the trace. */
struct ky_event_field {
	const char *name;
	const char *kernel_name; /* what the kernel's filters call the source */
	enum ky_field_how how;
	uint16_t offset;   /* of the source in the record */
	uint16_t size;	   /* of the source: bytes that are there */
	uint16_t elements; /* ARRAY, TEXT */
	uint8_t bytes;	   /* of the integer in the trace, or of one element */
	uint8_t base;	   /* 8, 10 or 16 */
	bool is_signed;
	bool is_relative;      /* STRING, COMM, SEQUENCE: a __rel_loc */
	bool is_rest;	       /* STRING: what follows, to the record's end */
	bool is_kernel_text;   /* the kernel's filters take it for a text: a char * */
	bool is_kernel_signed; /* they compare it as signed: not so any argument of a system call */
	bool is_device;	       /* COPY: a dev_t of the kernel, 12 bits major and 20 bits minor */
	/* COPY: what its values are called; the format's. */
	const struct ky_format_label *labels;
	uint16_t n_labels;
};

/* What the recorder learns about threads from an event, besides recording it. */
enum ky_event_role {
	KY_EVENT_PLAIN,
	KY_EVENT_SYSCALL, /* entry or exit: not recorded for the recorder's own threads */
	KY_EVENT_SWITCH,
	KY_EVENT_NEWTASK,
	KY_EVENT_FORK,
	KY_EVENT_RENAME,
	KY_EVENT_EXEC,
	KY_EVENT_EXIT,
	KY_EVENT_SETPRIO,
	KY_EVENT_KERNEL_STACK, /* of an event that comes, or came: stacks.h */
	KY_EVENT_USER_STACK,
	KY_EVENT_CGROUP, /* a thread or process is put into another control group */
};

/* The trace's name for tracefs event @system/@event; @name has KY_EVENT_NAME_BYTES bytes. */
void ky_event_name(const char *system, const char *event, char *name);

/* Are @system's events calls: of 64-bit or of 32-bit programs? */
bool ky_event_is_syscall(const char *system);

enum ky_event_role ky_event_role(const char *system, const char *event);

/*
 * The fields of @system/@format->name in the trace, in order, in @arena.
 * Returns how many, or KYMO_E_MEMORY.
 */
int ky_event_fields(struct ky_arena *arena, const char *system, const struct ky_format *format,
		    struct ky_event_field **fields);

/* LTTng's bits of `rwbs`. */
enum {
	KY_RWBS_WRITE = 1,
	KY_RWBS_DISCARD = 2,
	KY_RWBS_READ = 4,
	KY_RWBS_RAHEAD = 8,
	KY_RWBS_BARRIER = 16,
	KY_RWBS_SYNC = 32,
	KY_RWBS_META = 64,
	KY_RWBS_SECURE = 128,
	KY_RWBS_FLUSH = 256,
	KY_RWBS_FUA = 512,
	KY_RWBS_PREFLUSH = 1024,
};

/* "FWFS" -> the mask; @text need not be terminated within @len. */
uint32_t ky_rwbs_mask(const char *text, size_t len);

#endif
