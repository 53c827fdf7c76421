/* SPDX-License-Identifier: MIT */
/*
 * libkymo-trace: what runs inside traced programs. docs/design/tracer.md has the why.
 *
 *	module.c	executables and libraries come and go: their events, the control file
 *	describe.c	a call site becomes a struct ky_event_record
 *	session.c	sessions: joining, leaving
 *	session-find.c	finding them, when the program starts
 *	session-events.c	which events they want
 *	session-file.c	reading a session's file, and checking it
 *	ring-file.c	a session's ring file in this process: making it, ids, its packets
 *	shared.c	the ring file of a session that all programs of a user share
 *	wait.c		a hit waits until the recorder has read, where a session wants that
 *	filter-link.c	a filter is bound to an event's fields, and checked
 *	filter.c	and evaluated
 *	context.c	context fields
 *	perf.c		those that count: faults, cycles, ...
 *	hit.c		an event is hit: the fast path
 *	straight-*.h	and its shortest one, by hand
 *	record.c	what else there is to record
 *	latency.c	the program's own trackers: pairs that are open, histograms
 *	latency-*.c	their clock, and the file with the histograms
 *
 * Memory that others can write to (the control file, ring files) is written to, and never believed: a forked
 * child that has given up its privileges has it, too. What the library needs to know stands in private
 * memory (struct ky_trace, struct ky_slot, struct ky_event); what others say there is read once, and
 * checked. docs/design/tracer.md, "Trust", has the list of what is read.
 *
 * Everything here may run in a signal handler that interrupted anything, except kymo_module_add(),
 * kymo_module_remove(), kymo_app_context() and kymo_printf(): no allocation (memory comes from mmap()
 * and is never given back), no locks that are waited for, no errno changed, no cancellation point.
 *
 * One lock (ky_trace_lock()) guards all changes; who cannot get it at once goes without: a hit is
 * counted as lost. It lies in a page that forked children find zeroed, so a child never waits for
 * a thread that it does not have. What is changed is published with one store, last, so
 * neither hits beside it nor a child that was forked meanwhile see halves.
 */
#ifndef KY_TRACER_TRACER_H
#define KY_TRACER_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define KYMO_TRACE_LIBRARY
#include <kymo/ring.h>
#include <kymo/trace.h>

#include "abi/control.h"

/*
 * Where an event is hit: what the call into the library returns to, and where the call stack goes on: either the
 * frame of the function there, or one of the library's from which frame pointers lead to it.
 */
struct ky_place {
	uintptr_t ip, frame;
};

/* Where a page's data of a process lies that a forked child must not inherit: zeroed in it. */
struct ky_process {
	uint32_t lock;	      /* 1: a thread has it, and changes the structures */
	uint32_t pid;	      /* 0: not known */
	uint64_t ns_inode[8]; /* of namespaces, by kind - KY_CONTEXT_CGROUP_NS; 0: not known */
	struct ky_latency_file *latency; /* of this process' own trackers; NULL: none so far */
	bool has_no_latency;		 /* it could not be made */
	bool is_correcting;		 /* a thread corrects the clock of these trackers */
};

struct ky_field {
	uint8_t kind;	 /* enum ky_field_kind */
	uint8_t bytes;	 /* of the number, or of an element */
	uint8_t flags;	 /* KY_FIELD_* */
	uint8_t value;	 /* its index in a hit's values */
	uint32_t length; /* of an array */
	const char *name;
};

struct ky_context {
	uint32_t kind;		    /* enum ky_context_kind */
	uint32_t index;		    /* of the application's context; of the perf counter */
	char name[KY_NAME_MAX + 1]; /* of the field */
};

/*
 * One comparison of a number with a constant: what most filters are. Each of them is a range of numbers, which a
 * subtraction and a comparison test. The range of "differs" begins after the constant and wraps.
 */
struct ky_test {
	uint64_t
		flip; /* the sign's bit of signed numbers: with it, they are in the order of unsigned ones */
	uint64_t low, span; /* from @low to @low + @span, as flipped */
	uint8_t value;	    /* index in a hit's values */
};

/* A filter, bound to an event. */
struct ky_filter_linked {
	struct ky_filter_linked *next; /* another rule's, which is as good */
	uint32_t n_tests;	       /* > 0: all of these, instead of ops */
	uint32_t n_ops;
	struct ky_test tests[4];
	struct ky_linked_op *ops;
};

/* A step of a filter; FIELD of one that the event lacks has field NULL, HAS is a number by now. */
struct ky_linked_op {
	uint32_t code; /* enum ky_filter_code */
	uint32_t jump;
	union {
		uint64_t number;
		double real;
		const char *text;
		const struct ky_field *field;
		const struct ky_context *context;
	};
};

struct ky_slot;
struct stat;

/*
 * What a session means for an event that it wants. Never changed once it is published in
 * event->reservations: a hit that has one has a slot, an id and a filter that belong together.
 */
struct ky_reservation {
	/* The slot's: a copy, for to look there would take longer than to write the record. */
	struct kymo_ring_writer ring;
	const uint64_t *asked_cookie; /* in the control file */
	uint64_t cookie;	      /* as long as that is this one, the session is on */
	uint32_t id;
	uint8_t bit; /* the slot's */
	/* Payload of an event of one number that can be written at once; 0: the long way. */
	uint8_t fast_bytes;
	bool has_one_test; /* the filter is @test of a field, and nobody else's decision */
	uint32_t clock;	   /* KY_CLOCK_RECORD_* */
	uint64_t room;	   /* from there, at most, 12 bytes fit into a sub-buffer */
	struct ky_test test;
	struct ky_filter_linked *filter; /* NULL: always */
	struct ky_slot *slot;
	struct kymo_site *site;
} __attribute__((aligned(64)));

enum ky_shape {
	KY_SHAPE_FIXED, /* numbers only: fixed_bytes */
	KY_SHAPE_ANY,
};

struct ky_event {
	unsigned char *enable; /* its byte */
	uint8_t mask;	       /* slots that want it; relaxed, the slots' pointers order */
	uint8_t known;	       /* slots whose rules were checked; under the lock */
	uint8_t expected;      /* slots whose bit may be set in the enable byte, by us */
	uint8_t kind;	       /* enum ky_event_kind */
	uint8_t shape;	       /* enum ky_shape */
	uint8_t n_fields;
	uint8_t fixed_bytes;
	bool is_gone; /* its module was unloaded */
	uint8_t log_level;
	struct ky_reservation *only; /* the only reservation there is; NULL: none or more */
	struct ky_reservation *reservations[KY_CONTROL_SLOTS];
	uint32_t ids[KY_CONTROL_SLOTS]; /* under the lock */
	uint8_t has_id;			/* slots in which it has one */
	struct ky_event_record *record; /* private; the control file has a copy ... */
	uint32_t table_at;		/* ... here in its table */
	struct kymo_site *site;
	uint64_t hash; /* of all that makes it a type: names and fields */
	struct ky_module *module;
	struct ky_event *next;
	struct ky_field fields[];
};

struct ky_module {
	struct ky_module *next;
	struct kymo_module *module; /* NULL: unloaded; the page may be used again */
	uint16_t page;
};

#define KY_CONTEXTS_MAX 32

/*
 * A session of this process. A thread makes it under the lock and publishes it in ky_trace.slots.
 * The fields that hits use never change, and the struct is never freed: a hit may be using it.
 */
struct ky_slot {
	struct kymo_ring_writer ring; /* ring.file NULL: none exists */
	uint64_t cookie;
	uint32_t number; /* which slot */
	uint32_t clock;	 /* KY_CLOCK_RECORD_* */
	uint32_t pid;	 /* of the ring file's creator: only that process adds to the blob */
	bool is_joined; /* all events were asked; else the process was forked beside the one that asks */
	uint32_t n_contexts;
	uint32_t context_bytes; /* their maximum; 0: no contexts */
	struct ky_context contexts[KY_CONTEXTS_MAX];
	struct ky_blob *blob; /* only written to */
	bool is_shared;	      /* the ring is that of all programs of the user */
	uint32_t blob_bytes;  /* what is valid of it; shared: what has memory */
	uint32_t notes_bytes; /* the same of its notes */
	uint32_t next_id;
	uint32_t n_events; /* that it wants */
	uint32_t reason;   /* enum ky_off */
	uint8_t uuid[16], trace_uuid[16];
	const struct ky_session_file *file; /* a private copy, checked */
	uint32_t file_bytes;
	const struct ky_session_file *shared_file; /* mapped for reading; NULL: hits never wait */
	uint64_t
		dead_beat; /* 1 + the beat of a recorder that has stopped; 0: none; hits write it */
	bool is_unread;	   /* no recorder has come to read the ring; hits write it */
	char directory[KY_SESSION_PATH_MAX + 1];
};

/* All there is, per process (and per copy of the library in it). */
struct ky_trace {
	struct ky_control
		*control; /* NULL: the library is off; only slots and enable bytes are read */
	struct ky_process *process;
	struct ky_slot *slots[KY_CONTROL_SLOTS];
	struct ky_event *events; /* newest first */
	struct ky_module *modules;
	uint32_t n_events;
	uint32_t off; /* enum ky_off */
	uint32_t pid; /* whose control file it is */
	uint32_t uid; /* effective, when that was made */
	int fd;
	uint64_t start_ns;
	int64_t start_realtime_ns;
	char procname[16];     /* NUL-terminated */
	uint32_t n_pages;      /* of the control file */
	uint32_t n_records;    /* in its table */
	uint64_t table_bytes;  /* of its table */
	void *scratch;	       /* KY_RECORD_BYTES_MAX, under the lock */
	struct ky_slot *spare; /* for a session that may prove unfit; under the lock */
	uint64_t n_joins;      /* sessions joined, rules followed */
};

extern struct ky_trace ky_trace __attribute__((visibility("hidden")));
/* The same in all rings; outside of the struct, for hits find it sooner there. */
extern ptrdiff_t ky_rseq_area __attribute__((visibility("hidden")));

/* ---- loaded-objects.c: what is loaded, for those who look addresses up. The caller has the lock. ---- */

/* Before all others; without the lock. */
void ky_notes_begin(void);
/*
 * A module comes: look whether libraries have. Without the lock: the dynamic linker's is taken, and a hit in a callback of
 * dl_iterate_phdr() wants ours while it has that.
 */
void ky_notes_count(void);
/* Of a ring that begins: @blob is its region. */
void ky_note_maps(struct ky_slot *slot, struct ky_blob *blob);
/* The same for a ring of many programs. @dir_fd: the session's directory. */
void ky_notes_joined(const struct ky_slot *slot, int dir_fd);
/* If libraries have come since they were last noted, note them in all rings of this process. */
void ky_notes_loaded(void);
/* The library at @address is about to be unloaded, or the program ends, which is not noted. */
void ky_notes_unload(const void *address);

/* ---- state-note.c: the same of a program whose ring belongs to many; in files of the session's directory ---- */

/* Before all others: forked children write notes, too. */
void ky_state_note_begin(void);
/* What is loaded now, when the program joins. @dir_fd: the session's directory. */
void ky_state_note_maps(const struct ky_slot *slot, int dir_fd);
/* A library has come (NULL), or the one at @unloaded is about to be unloaded. */
void ky_state_note_change(const struct ky_slot *slot, const void *unloaded);

/* ---- os.c: system calls without errno and cancellation; memory ---- */

/* A negative errno instead of -1 and errno. */
long ky_sys(long number, long a, long b, long c, long d, long e, long f);
/* fstat(), with a negative errno. */
int ky_fstat(int fd, struct stat *to);
/* Nanoseconds of @clock. */
int64_t ky_clock_ns(int clock);
/* Memory for ky_trace.process and ky_trace.scratch, before anything is locked. False: none exists. */
bool ky_trace_begin(void);
/* Zeroed, for good; NULL without memory. */
void *ky_trace_alloc(size_t bytes);
/* Who holds the lock may change things. Never waits. */
bool ky_trace_trylock(void);
bool ky_trace_is_locked(void);
/* For those who must: waits for other threads, which never hold it long. */
void ky_trace_lock(void);
void ky_trace_unlock(void);
/* This process, as it sees itself. */
uint32_t ky_trace_pid(void);
/* '*' is any run of bytes, with @any also '?' any byte; '\' takes away the next one's meaning. */
bool ky_trace_glob(const char *pattern, size_t pattern_bytes, const char *text, size_t text_bytes,
		   bool any);

/* ---- record.c ---- */

/* The lowest @bytes of @bits; may write 8. */
static inline void ky_put_number(uint8_t *to, uint64_t bits, uint32_t bytes)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	bits <<= 64 - 8 * bytes;
#endif
	memcpy(to, &bits, sizeof(bits));
}

/* Write a record of @reservation's event whose payload is ready. */
void ky_record_payload(struct ky_reservation *reservation, const void *payload, uint64_t bytes);
/* Pack what @values are, and write it. @place: for contexts. */
void ky_record_any(struct ky_reservation *reservation, const struct ky_event *event,
		   const uint64_t *values, struct ky_place place);

/* ---- describe.c ---- */

/*
 * Write the record of @site at @to, which has @room bytes.
 * Returns its length; 0: it does not fit, or the site is malformed.
 */
uint32_t ky_describe(const struct kymo_site *site, const void *no_labels, uint32_t number,
		     uint16_t page, void *to, uint64_t room);
/* The same type: name, fields, but not where it stands. Also of records that are copied. */
bool ky_record_same(const struct ky_event_record *a, const struct ky_event_record *b);
uint64_t ky_record_hash(const struct ky_event_record *record);
/* The text at @offset of @record. */
static inline const char *ky_record_text(const struct ky_event_record *record, uint32_t offset)
{
	return (const char *)record + offset;
}

/* ---- module.c: the lock is held ---- */

/* This process makes itself a control file, and leaves all sessions, and the memory that it shares with its parent. */
void ky_modules_begin_anew(void);

/* ---- session.c: the lock is held ---- */

/* Does a slot ask for something that takes system calls? Without the lock: as it is now. */
bool ky_sessions_need_calls(void);
/* Do what the control file's slots ask for; what takes system calls only if @may_call. */
void ky_sessions_sync(bool may_call);
/* The same, where they ask for something. */
void ky_sessions_catch_up(void);
/* Forget all sessions, and let their rings go: the process begins anew. */
void ky_sessions_forget(void);
/* Read the session in @dir_fd for @slot. 0 or enum ky_off. */
int ky_session_open(struct ky_slot *slot, int dir_fd, int *os_error);
/* Fill slot @number of this process, for the session in @slot->file, or none. */
void ky_session_enter(struct ky_slot *slot, uint32_t number, uint32_t reason);

/* ---- session-find.c: the lock is held ---- */

/* Look into the runtime directories, and join what is there. */
void ky_sessions_find(void);

/* ---- session-events.c: the lock is held ---- */

/* Ask all sessions about events that they do not know yet. */
void ky_sessions_new_events(void);
/* The same, of one. */
void ky_session_ask(struct ky_slot *slot);
/* Tell the recorder how many events @slot wants, and why not more. */
void ky_session_report(const struct ky_slot *slot);
/* Enable bytes that are set and should not be lose the slot's bit; those that should be have it. */
void ky_session_correct_enable_bytes(const struct ky_slot *slot);
/* All events: not asked, not wanted, by slot @number. */
void ky_session_forget_events(uint32_t number, bool keep_ids);

/* ---- session-file.c ---- */

/*
 * Read "session" in the directory @dir_fd into memory, and check it.
 * Returns 0 or an enum ky_off; @os_error: errno, if there is one.
 */
int ky_session_read(int dir_fd, const struct ky_session_file **file, uint32_t *bytes,
		    int *os_error);
/* The session's file in @dir_fd, mapped for reading: its head. NULL: not possible. */
const struct ky_session_file *ky_session_map(int dir_fd);
/* The cookie of that file, now; 0: none exists, or its recorder is dead. */
uint64_t ky_session_cookie(int dir_fd);
/* Does a rule want the event? */
bool ky_rule_takes(const struct ky_session_file *file, const struct ky_session_rule *rule,
		   const struct ky_event *event);
/* A directory, but no link to one. A descriptor or -errno. */
int ky_directory_open(const char *path);
/* May this be a directory of sessions, or a session's: owner and mode. */
bool ky_directory_is_safe(int fd);

/* ---- ring-file.c ---- */

/* Writes KY_RING_UNFINISHED, and the name of a file of this program but for its suffix. And: a number. Both return the end. */
char *ky_ring_file_name(char *to);
char *ky_ring_file_number(char *to, uint64_t number, unsigned int base);

/* Make the ring file and map it. 0 or an enum ky_off. */
int ky_ring_file_make(struct ky_slot *slot, int dir_fd, int *os_error);
/*
 * Leave a note that it could not be made: for a recorder that looks when this program has ended. The records of
 * @n @events go along, at most KY_NOTE_EVENTS_MAX.
 */
void ky_ring_file_note(int dir_fd, uint32_t reason, int os_error,
		       const struct ky_event *const *events, uint32_t n);
#define KY_NOTE_EVENTS_MAX 64
/* The id of the event in @slot, with its record in the blob. 0 or KY_OFF_SPACE. */
int ky_ring_file_id(struct ky_slot *slot, struct ky_event *event);
/* The same in a new file KY_SHARED_RING. 0 or a negative errno; -EEXIST: another program was first. */
int ky_shared_make(struct ky_slot *slot, int dir_fd);
/* Let go: later writes of late hits go to private memory. */
void ky_ring_file_leave(struct ky_slot *slot);

/* ---- shared.c ---- */

/* Map, or make, the ring of all programs. False: not possible; the slot has no ring then. */
bool ky_shared_join(struct ky_slot *slot, int dir_fd);
/*
 * Agree with the other programs on the context fields: those of the first one. False: this program has others. The ring
 * is mapped.
 */
bool ky_shared_agree(struct ky_slot *slot);
/* The id of an event there. 0 or KY_OFF_SPACE. */
int ky_shared_id(struct ky_slot *slot, const struct ky_event_record *record, uint64_t hash,
		 uint32_t *id);

/* ---- wait.c ---- */

/* Sets how hits of @slot, which has a ring, wait for room. */
void ky_wait_set(struct ky_slot *slot);

/* ---- filter-link.c ---- */

/*
 * Bind the filter of @rule to @event, in @slot. @to is set to a filter; or to NULL, when the
 * filter can never be true here. 0, KY_OFF_FILTER, KY_OFF_MEMORY.
 */
int ky_filter_link(const struct ky_slot *slot, const struct ky_session_rule *rule,
		   const struct ky_event *event, struct ky_filter_linked **to);

/* ---- filter.c ---- */

/* Is the filter, which has steps instead of tests, true? @ip: the call site. */
bool ky_filter_run(const struct ky_filter_linked *filter, const struct ky_event *event,
		   const uint64_t *values, uintptr_t ip);

/* ---- context.c ---- */

/* Bytes that one needs at most. */
#define KY_CONTEXT_BYTES_MAX  264
#define KY_CONTEXT_TEXT_BYTES 64

/* The context whose field is called @name (perf counters: those that a session has). False: none exists. */
bool ky_context_find(const char *name, struct ky_context *to);
/*
 * Its value: a number; or a text, written to @text, which has KY_CONTEXT_TEXT_BYTES, and ends with
 * NUL: then @text is returned, else NULL.
 */
const char *ky_context_get(const struct ky_context *context, uintptr_t ip, char *text,
			   uint64_t *number);
/* Look @slot's contexts up in its file; those that cannot be had are left out: KY_OFF_CONTEXT. */
int ky_contexts_link(struct ky_slot *slot);
/* The blob's record of them, at @to. Its length, or 0. */
uint32_t ky_contexts_describe(const struct ky_slot *slot, void *to, uint64_t room);
/* Write the values of all; returns their length. @to has slot->context_bytes. */
uint32_t ky_contexts_put(const struct ky_slot *slot, uint8_t *to, struct ky_place place);

/* ---- perf.c ---- */

/*
 * The counter of perf's @type and @config, whose field is "perf_thread_" and @name. Its index for the
 * others; -1: it cannot be had here, or there are too many. The lock is held.
 */
int ky_perf_find(uint32_t type, uint64_t config, const char *name);
/* Its field's name; NULL: there are not so many. */
const char *ky_perf_name(uint32_t index);
/* Its count in this thread; 0 where none exists. */
uint64_t ky_perf_read(uint32_t index);

#endif
