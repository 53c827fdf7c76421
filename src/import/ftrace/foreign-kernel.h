/* SPDX-License-Identifier: MIT */
/*
 * Events of the kernel from files of other programs, as the kernel wrote them into its rings: the trace gets the
 * names and fields of Kymo's own kernel recordings, so that all reports read it.
 *
 *	ky_foreign_kernel_init()
 *	ky_foreign_kernel_add()		each event, with its description
 *	ky_foreign_kernel_begin()	the trace in the store
 *	ky_foreign_kernel_record()	or _page(): in the order of time on each CPU
 *	ky_foreign_kernel_end()
 *	ky_foreign_kernel_fini()
 *
 * Threads: one at a time per object.
 */
#ifndef KY_IMPORT_FOREIGN_KERNEL_H
#define KY_IMPORT_FOREIGN_KERNEL_H

#include "base/arena.h"
#include "import/ftrace/foreign-calls.h"
#include "record/trace/kernel-trace.h"

/* CPUs have numbers below this. */
#define KY_FOREIGN_CPUS_MAX 4096u

struct ky_foreign_cpu;
struct ky_foreign_swap;

enum ky_foreign_call {
	KY_FOREIGN_CALL_KNOWN = 1, /* has an event */
	KY_FOREIGN_CALL_UNKNOWN,   /* stays raw_syscalls */
};

struct ky_foreign_kernel {
	struct ky_kernel_trace
		kernel; /* the owner sets ->name, ->hostname, ->release and ->clock */
	struct ky_arena arena;
	KY_VEC(struct ky_foreign_cpu *) cpus; /* by number; NULL: no record yet */
	struct ky_foreign_swap **swaps; /* by common_type, of a file in the other byte order */
	/* The owner sets these before the first event: */
	bool swap;			    /* records have the other byte order */
	bool is_x86_64;			    /* numbers of system calls are that machine's */
	bool has_stacks;		    /* records come with call stacks */
	uint32_t raw_entry_id, raw_exit_id; /* of raw_syscalls; 0: none */
	uint8_t calls[2]
		     [KY_FOREIGN_CALLS]; /* [1]: exits; 0: none has come, or enum ky_foreign_call */
	bool has_begun;
	uint64_t last_ns;
	/* Of a CPU, nothing is known before its first event: the file's first records are older than the recording. */
	bool begins_with_events;
	uint64_t next_ns; /* of the record at hand */
	uint8_t *record;  /* the copy of one */
	uint32_t record_cap;
	struct ky_packet_writer dump; /* the stream of the state dump */
	int dump_stream;	      /* the store's number of it; -1: no packet yet */
};

void ky_foreign_kernel_init(struct ky_foreign_kernel *foreign);
void ky_foreign_kernel_fini(struct ky_foreign_kernel *foreign);

/*
 * Adds event @name of @system; @format (tracefs's description of it, @len bytes) must outlive @foreign. An event
 * whose description makes no sense is left out. 0 or KYMO_E_MEMORY.
 */
int ky_foreign_kernel_add(struct ky_foreign_kernel *foreign, const char *system, const char *format,
			  size_t len, struct kymo_error *err);

/* Begins the trace "kernel" in @store, with packets from @begin_ns on. */
int ky_foreign_kernel_begin(struct ky_foreign_kernel *foreign, struct ky_packet_store *store,
			    uint64_t begin_ns, struct kymo_error *err);

/* The addresses of call stacks, the innermost first; of the kernel and of the program. */
struct ky_foreign_stacks {
	const uint64_t *kernel, *user;
	size_t n_kernel, n_user;
};

/*
 * A record as the kernel's ring holds it (common_type first), of event @id. A record of an unknown event is skipped.
 * @stacks: with has_stacks; may be NULL. KYMO_E_LIMIT: @cpu is above all limits.
 */
int ky_foreign_kernel_record(struct ky_foreign_kernel *foreign, uint32_t cpu, uint32_t id,
			     uint64_t ns, const uint8_t *data, uint32_t len,
			     const struct ky_foreign_stacks *stacks, struct kymo_error *err);
/*
 * A page of the ring, of this machine's byte order. Records of raw_syscalls stay what they are: take the page apart where
 * raw_entry_id or raw_exit_id is set.
 */
int ky_foreign_kernel_page(struct ky_foreign_kernel *foreign, uint32_t cpu,
			   const struct ky_page *page, struct kymo_error *err);
/* Thread @tid of process @pid was there when the recording began, as @comm (16 bytes): a state dump of its own. */
int ky_foreign_kernel_thread(struct ky_foreign_kernel *foreign, int32_t tid, int32_t pid,
			     const char *comm, struct kymo_error *err);
/* @n events of @cpu were lost before what comes next. */
int ky_foreign_kernel_lost(struct ky_foreign_kernel *foreign, uint32_t cpu, uint64_t n,
			   struct kymo_error *err);

/* Writes what remains and the metadata. The counts: events in the trace, records that did not fit their format. */
int ky_foreign_kernel_end(struct ky_foreign_kernel *foreign, uint64_t *n_events, uint64_t *n_bad,
			  struct kymo_error *err);

#endif
