/* SPDX-License-Identifier: MIT */
/*
 * The state history: what every row of a picture of a trace did at every time, in a file.
 *
 * One pass of the state model writes closed intervals (row, begin, end, state) to an index on disk.
 * Queries read the index and never the trace. docs/design/history.md has the format.
 *
 * A row is a CPU, a thread, an interrupt of a CPU, the spans of a thread at one depth, a block
 * device, a data stream. Rows form a tree. The intervals of a row do not overlap. Between them the
 * state is unknown (KY_STATE_NONE).
 *
 * The file is untrusted input. A reader checks the checksum and every number of each record that it
 * uses. A damaged record is an error (KYMO_E_FORMAT) of the query that needs it.
 *
 * Threads: a builder and a reader are each for one thread at a time; they may be in different
 * threads or processes, on one file.
 */
#ifndef KY_ANALYSIS_HISTORY_HISTORY_H
#define KY_ANALYSIS_HISTORY_HISTORY_H

#include "flow/graph/flow.h"

struct ky_model;

/* ---- states ---------------------------------------------------------------------------------- */

/* What a row does: the low 8 bits of a state. Numbers are part of the format. */
enum ky_state_kind {
	KY_STATE_NONE = 0,     /* unknown, or nothing */
	KY_STATE_IDLE = 1,     /* CPU */
	KY_STATE_RUNS = 2,     /* CPU; value: the thread's row */
	KY_STATE_USER = 3,     /* thread, in user space */
	KY_STATE_SYSCALL = 4,  /* thread, in a system call; value: its name */
	KY_STATE_IRQ = 5,      /* thread, interrupted; value: the handler's name */
	KY_STATE_SOFTIRQ = 6,  /* the same by a softirq */
	KY_STATE_WAIT_CPU = 7, /* thread, could run */
	KY_STATE_BLOCKED = 8,  /* thread, waits; value: the name of the system call, or 0 */
	KY_STATE_DISK = 9,     /* the same, uninterruptible: most often a disk */
	KY_STATE_LOCK = 10,    /* the same, for a futex */
	KY_STATE_NETWORK = 11, /* the same, for a socket */
	KY_STATE_TIMER = 12,   /* the same, for a time */
	KY_STATE_STOPPED = 13, /* the same, stopped, traced or parked */
	KY_STATE_ACTIVE =
		14,	    /* interrupt handler; value: the row of the thread below it + 1, or 0 */
	KY_STATE_SPAN = 15, /* between a begin and an end event; value: its name */
	KY_STATE_READ = 16, /* request of a block device; value: sectors */
	KY_STATE_WRITE = 17,
	KY_STATE_OTHER = 18, /* discard, or unknown */
	KY_STATE_VALUE = 19, /* a counter; value: its value */
	KY_STATE_EVENTS =
		20, /* stream: KY_HISTORY_EVENTS events, or value of them if it is not 0 */
	KY_STATE_RUNNING = 21, /* thread, in user space or in the kernel: no event tells */
	KY_STATE_KINDS = 22,
};

/* Events of a stream for one interval of its row: the resolution of densities. */
#define KY_HISTORY_EVENTS 32

static inline uint64_t ky_state(enum ky_state_kind kind, uint64_t value)
{
	return (uint64_t)kind | value << 8;
}

static inline enum ky_state_kind ky_state_kind(uint64_t state)
{
	return (enum ky_state_kind)(state & 0xff);
}

static inline uint64_t ky_state_value(uint64_t state)
{
	return state >> 8;
}

/* Is the value of such states a number of a name (ky_history_name())? */
bool ky_state_has_name(enum ky_state_kind kind);
/* "running", "in a system call", ...: static. */
const char *ky_state_text(enum ky_state_kind kind);

/* ---- rows ------------------------------------------------------------------------------------ */

/* Numbers are part of the format; a row's parent has a smaller kind. */
enum ky_row_kind {
	KY_ROW_MACHINE = 0, /* no states of its own */
	KY_ROW_CPU = 1,	    /* number: the CPU's; below the machine */
	KY_ROW_IRQ = 2, /* an interrupt handler on a CPU; number: of the interrupt; below the CPU */
	KY_ROW_QUEUE = 3,   /* how many threads wait for a CPU; below the CPU */
	KY_ROW_PROCESS = 4, /* number: its id; no states of its own */
	KY_ROW_THREAD =
		5,	 /* number: its id; below its process or, if that is unknown, the machine */
	KY_ROW_DISK = 6, /* how many requests the device has; below the machine */
	KY_ROW_REQUESTS = 7, /* number: of requests at the same time, this one's; below the disk */
	KY_ROW_STREAM = 8,   /* density of events; below the machine */
	KY_ROW_SPANS = 9,    /* number: the depth; below a thread or a stream */
	KY_ROW_COUNTER =
		10, /* number: enum ky_counter; below a machine, a CPU, a process or a disk */
	KY_ROW_KINDS = 11,
};

/* Numbers are part of the format. */
enum ky_counter {
	KY_COUNTER_FREQUENCY = 0, /* of a CPU, in MHz */
	KY_COUNTER_READ = 1,	  /* of a disk: bytes per ms */
	KY_COUNTER_WRITTEN = 2,
	KY_COUNTER_RECEIVED = 3, /* of a network interface: bytes per ms */
	KY_COUNTER_SENT = 4,
	KY_COUNTER_MEMORY = 5, /* the resident size of a process, in units of 64 KiB */
	KY_COUNTERS = 6,
};

/* Do the states of such rows hold values (KY_STATE_VALUE)? */
static inline bool ky_row_holds_values(enum ky_row_kind kind)
{
	return kind == KY_ROW_QUEUE || kind == KY_ROW_DISK || kind == KY_ROW_COUNTER;
}

/* "cpu", "thread", ...: static. */
const char *ky_row_kind_text(enum ky_row_kind kind);

#define KY_HISTORY_NO_ROW UINT32_MAX

struct ky_history_row {
	uint32_t id; /* dense, in the order of their first appearance */
	enum ky_row_kind kind;
	uint32_t parent; /* a smaller or a larger id, or KY_HISTORY_NO_ROW */
	int64_t number;
	int64_t origin; /* of a process: the number of the process that made it; 0: unknown */
	int64_t begin_ns, end_ns; /* of its states; INT64_MIN: it has none */
	const char *name;	  /* foreign text, up to 255 bytes; valid until the next refresh */
};

struct ky_history_interval {
	int64_t begin_ns,
		end_ns; /* [begin, end); INT64_MIN and INT64_MAX outside of the row's states */
	uint64_t state; /* KY_STATE_NONE: unknown from begin to end */
};

/* ---- places and identity --------------------------------------------------------------------- */

/*
 * The directory of indexes: $XDG_CACHE_HOME/kymo, or ~/.cache/kymo; made with mode 0700 if it does not
 * exist. The caller frees it. NULL and @err: it cannot be made, or belongs to another user.
 */
char *ky_history_directory(struct kymo_error *err);

/* What an index belongs to. */
struct ky_history_identity {
	uint8_t place[16];   /* which traces: a digest of their paths */
	uint8_t content[16]; /* in which state */
};

/*
 * The identity of @set: paths, uuids, metadata, and for each file of a stream its name, size, time of
 * change, inode, first and last bytes; and the clock offsets of the reader. 0, KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_history_identify(const struct ky_trace_set *set, struct ky_history_identity *identity,
			struct kymo_error *err);

/* ---- building -------------------------------------------------------------------------------- */

struct ky_history_builder;

/*
 * Begin an index of the events of @set, which must outlive the builder. @identity: all zero: the traces are still written. @fd is a new, empty file, open
 * for reading and writing; the builder borrows it. 0, KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_history_builder_open(const struct ky_trace_set *set,
			    const struct ky_history_identity *identity, int fd,
			    struct ky_history_builder **builder, struct kymo_error *err);
/*
 * Names of functions need a pass of their own over the traces, with their first call. The pass ends when @is_over says that nobody wants the
 * history any more. @data is borrowed.
 */
void ky_history_builder_set_stop(struct ky_history_builder *builder, bool (*is_over)(void *data),
				 void *data);
/* The next events, in the order of the merge. 0 or a negative status. */
int ky_history_builder_feed(struct ky_history_builder *builder, const struct ky_batch *batch,
			    struct kymo_error *err);
/* Readers of the file see everything so far, as far as it is certain. 0 or a negative status. */
int ky_history_builder_publish(struct ky_history_builder *builder, struct kymo_error *err);
/*
 * @flow has ended with an error: the states of CPUs after the damage are unknown. 0 or KYMO_E_MEMORY.
 */
int ky_history_builder_damage(struct ky_history_builder *builder, struct ky_flow *flow,
			      struct kymo_error *err);
/* No more events: the index is complete. 0 or a negative status. */
int ky_history_builder_end(struct ky_history_builder *builder, struct kymo_error *err);
void ky_history_builder_free(struct ky_history_builder *builder); /* NULL is allowed */
/* How often the state of the model goes to the index: after so many events, and so many times its size. */
struct ky_history_pace {
	uint64_t events, times;
};

/* Before the first event; for tests. */
void ky_history_builder_set_pace(struct ky_history_builder *builder,
				 const struct ky_history_pace *pace);
/* Is there much more to publish than a publication takes? */
bool ky_history_builder_is_due(const struct ky_history_builder *builder);
/*
 * After a publication: how long a builder whose events come as they happen waits with the next one, in ns. Publications are
 * a part of the file, which thus stays small beside the trace.
 */
int64_t ky_history_builder_pause_ns(const struct ky_history_builder *builder);
/* So far. */
uint64_t ky_history_builder_events(const struct ky_history_builder *builder);
uint64_t ky_history_builder_intervals(const struct ky_history_builder *builder);
uint64_t ky_history_builder_bytes(const struct ky_history_builder *builder);

/* ---- reading --------------------------------------------------------------------------------- */

struct ky_history;

/*
 * Read the index in @fd, which stays the caller's and may be closed afterwards. @identity: whose index it must be;
 * NULL: any. @partial: an index that is still being built will do.
 *
 * KYMO_E_FORMAT: no index, damaged, of another byte order; KYMO_E_NOT_FOUND: of another version, of other traces, or of another state of
 * them; KYMO_E_AGAIN: not complete; KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_history_open_fd(int fd, const struct ky_history_identity *identity, bool partial,
		       struct ky_history **history, struct kymo_error *err);
/*
 * NULL is allowed. An index of the directory of indexes, in which a question has found damage, is removed there, with a
 * warning to the log that it was opened with. The next ky_history_get() builds it again.
 */
void ky_history_close(struct ky_history *history);
/* Has a question found damage (KYMO_E_FORMAT)? What other questions get is right all the same. */
bool ky_history_is_damaged(const struct ky_history *history);
/*
 * See what the builder has published meanwhile. 1: there is more; 0: there is not; or as ky_history_open_fd(),
 * and the earlier state stays. @fd: the same file.
 */
int ky_history_refresh(struct ky_history *history, int fd, struct kymo_error *err);

/* How ky_history_get() gets events when it has to build. */
struct ky_history_source {
	/* All events of @set, merged. Owned by the caller after success. */
	int (*open)(void *data, const struct ky_trace_set *set, struct ky_flow **flow,
		    struct kymo_error *err);
	/* After some events each time, or 0 of them while names are looked for; may be NULL. Negative ends the pass. */
	int (*progress)(void *data, uint64_t n_events);
	/* From time to time: what there is of the index until now, owned by the callee. May be NULL. */
	void (*partial)(void *data, struct ky_history *history);
	void *data;
	const struct ky_log
		*log; /* gets a warning about a damaged index; outlives the history; may be NULL */
};

/*
 * The index of @set: the one on disk where it is right, else a new one, which replaces it. When another process builds the same
 * index, the function waits for it. *@damage is set when the trace is damaged: then the index has everything before the
 * damage, and is not kept on disk. *@built: a pass was necessary.
 */
int ky_history_get(const struct ky_trace_set *set, const struct ky_history_source *source,
		   struct ky_history **history, bool *built, struct kymo_error *damage,
		   struct kymo_error *err);

/*
 * The index of @set, if it is on disk, complete and right; else NULL. Nothing is built. A damaged one is removed. @log: as of
 * struct ky_history_source.
 */
struct ky_history *ky_history_find(const struct ky_trace_set *set, const struct ky_log *log);

/*
 * For a report of a range that begins at @begin_ns: @model, which is new and knows its listeners and its focus, becomes what it would be
 * after all events before *@ns, which is at most @begin_ns. 1; 0: the index has no such state, a damaged one, or not all of what the
 * listeners ask for; KYMO_E_FORMAT, KYMO_E_IO, KYMO_E_MEMORY: @model must not be used.
 */
int ky_history_resume(struct ky_history *history, struct ky_model *model, int64_t begin_ns,
		      int64_t *ns, struct kymo_error *err);

bool ky_history_is_complete(const struct ky_history *history);
uint64_t ky_history_n_events(const struct ky_history *history);
uint64_t ky_history_size_bytes(const struct ky_history *history);
/* The first and the last event's time; INT64_MIN: no event. */
int64_t ky_history_begin_ns(const struct ky_history *history);
int64_t ky_history_end_ns(const struct ky_history *history);
size_t ky_history_n_rows(const struct ky_history *history);
/* @id is below the number of rows. */
const struct ky_history_row *ky_history_row(const struct ky_history *history, uint32_t id);
/* Sorts the ids @rows: by parent, then kind, then number, so that children of one row are neighbours. */
void ky_history_sort_rows(struct ky_history *history, uint32_t *rows, size_t n);
/* The name of number @name; "" for 0 and for one that does not exist. Valid until the next refresh. */
const char *ky_history_name(const struct ky_history *history, uint64_t name);

/*
 * What @row did at @ns. The next change of a row is at ->end_ns, the previous one at ->begin_ns. 0, KYMO_E_FORMAT, KYMO_E_MEMORY.
 */
int ky_history_at(struct ky_history *history, uint32_t row, int64_t ns,
		  struct ky_history_interval *interval, struct kymo_error *err);

/* A part of a row, as wide as one pixel. */
struct ky_history_pixel {
	uint64_t state; /* fills most of it, unknown states included */
	uint8_t share; /* how much, of 255; an estimate where the index was not read to its intervals */
	bool more;     /* it has other states, too */
};

/*
 * @row from @begin_ns to @end_ns (at least @n ns later) in @n pixels. Where the index is read to its intervals (leaves wider than 64 pixels),
 * they are exact. Elsewhere the state is the one with the largest sum over cells in which it fills most; a cell that lies in
 * two pixels counts in both.
 */
int ky_history_pixels(struct ky_history *history, uint32_t row, int64_t begin_ns, int64_t end_ns,
		      size_t n, struct ky_history_pixel *pixels, struct kymo_error *err);

/*
 * ky_history_pixels() for @n_rows of @rows: @pixels has room for @n_pixels of each row. Several threads paint where several CPUs are
 * usable. They live until the history is closed.
 */
int ky_history_picture(struct ky_history *history, const uint32_t *rows, size_t n_rows,
		       int64_t begin_ns, int64_t end_ns, size_t n_pixels,
		       struct ky_history_pixel *pixels, struct kymo_error *err);

/*
 * The @i-th piece of work. @reader is @history, or a copy for this thread, which other pieces get later; it answers all questions but
 * ky_history_refresh() and ky_history_share().
 */
typedef int (*ky_history_work)(void *data, struct ky_history *reader, size_t i,
			       struct kymo_error *err);
/* Calls @work for each i below @n, in threads as of ky_history_picture(). The first negative status ends all. */
int ky_history_share(struct ky_history *history, size_t n, ky_history_work work, void *data,
		     struct kymo_error *err);

/* A part of a row, as wide as one pixel, as a part of a curve. */
struct ky_history_height {
	double low, high; /* values; of no use where ->ns is 0 */
	double sum_ns;	  /* values times their durations */
	double ns;	  /* of the pixel, with known states */
};

/*
 * The next questions are for pixels or heights of @rows (borrowed until the next call), in this range, with @n_pixels each. So if the kernel's
 * cache lacks what they need, the disk gets all of it at once. Without @rows: nothing is expected any more.
 */
void ky_history_expect(struct ky_history *history, const uint32_t *rows, size_t n_rows,
		       int64_t begin_ns, int64_t end_ns, size_t n_pixels);

/*
 * @row as a curve of @n pixels. The values of a row that holds values are its own: sum_ns / ns is their mean. All other states
 * have the value 1 if something is active in them (a CPU runs a thread, a thread runs, a span is open), else 0: sum_ns is the
 * active time. Where the index was not read to its intervals, low and mean are exact to 1/255 of high, and high is exact.
 */
int ky_history_heights(struct ky_history *history, uint32_t row, int64_t begin_ns, int64_t end_ns,
		       size_t n, struct ky_history_height *heights, struct kymo_error *err);

/*
 * Events of a row of kind KY_ROW_STREAM, for each of @n pixels: their sum is exact to KY_HISTORY_EVENTS at each end.
 */
int ky_history_density(struct ky_history *history, uint32_t row, int64_t begin_ns, int64_t end_ns,
		       size_t n, double *events, struct kymo_error *err);

#endif
