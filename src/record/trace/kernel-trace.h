/* SPDX-License-Identifier: MIT */
/*
 * Events of the kernel, from pages of its rings to packets of a trace: formats, conversion, threads, clock, filters. Where the
 * pages come from is the owner's: a session that records, a raw recording, a file of another program.
 *
 *	ky_kernel_trace_init()		nothing is known yet; the owner fills the catalogue and the settings
 *	ky_kernel_trace_build()		the trace class and the plans, from the events' formats
 *	ky_kernel_cpu_begin()		a CPU whose ring or file of pages is open
 *	ky_kernel_trace_read_round()	convert the pages that there are; packets go to the store
 *	ky_kernel_trace_end_streams()
 *	ky_kernel_trace_fini()
 *
 * Threads: one at a time per trace; ky_kernel_trace_send() and ky_kernel_trace_write_metadata() any.
 */
#ifndef KY_RECORD_TRACE_KERNEL_TRACE_H
#define KY_RECORD_TRACE_KERNEL_TRACE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/vec.h"
#include "ctf/model/model.h"
#include "kernel/bpf/btf.h"
#include "kernel/content/content.h"
#include "kernel/convert/convert.h"
#include "kernel/counters/counters.h"
#include "kernel/events/catalogue.h"
#include "kernel/process/threads.h"
#include "kernel/tracefs/ring.h"
#include "kernel/tracefs/tracefs.h"
#include "os/clock.h"
#include "query/filter.h"
#include "store/block-writer.h"
#include "store/packet-store.h"

#define KY_KERNEL_TRACE_PACKET_BYTES KY_BLOCK_BYTES

struct ky_kernel_trace;

/* A CPU: its pages, and how far they are converted. */
struct ky_kernel_cpu {
	struct ky_kernel_trace *kernel;
	struct ky_ring ring;
	struct ky_convert_cpu convert;
	int stream;		/* the store's number; -1: no packet yet */
	bool online;		/* when recording began */
	struct ky_block *block; /* what is being filled: a packet, or raw pages; NULL: none */
	uint64_t raw_lost;	/* where no kernel counts losses: how many there were at the end */
	bool has_page, has_begun;
	bool is_drained;      /* in this round: all its pages are converted */
	uint64_t known_until; /* without a page: all its events up to here were seen */
};

/* A filter of events: one for each text. */
struct ky_kernel_trace_filter {
	const char *text;
	struct ky_filter *filter;
	size_t n_events;   /* kinds of events of which it can be true */
	size_t n_recorder; /* of these, those where the kernel does not decide all */
	const char *example;
};

struct ky_kernel_trace {
	/* Settings, before build; the owner's to keep. */
	const char *name;     /* env trace_name */
	bool identity_kymo;   /* env tracer_name = "kymo", not "lttng-modules" */
	unsigned int context; /* KY_CONTEXT_* */
	const char *comm;     /* only threads of this name, or events about them; NULL: all */
	const struct ky_tracefs *fs;	    /* where formats are; NULL: each event brings its own */
	const struct ky_instance *instance; /* where the kernel counts losses; NULL: nowhere */
	const struct ky_log *log;	    /* may be NULL */
	struct ky_pid_view *view;	    /* NULL: ids are the kernel's */
	uint64_t buffer_bytes;		    /* of a CPU's ring */
	bool is_flight; /* files of a flight recorder: what was overwritten before them is no loss */
	bool keeps_constants; /* remember what BTF was asked for */
	bool has_compat,
		has_unknown; /* calls of 32-bit programs, calls that the kernel does not know */
	bool merge;	     /* convert in the order of time across CPUs */
	bool has_threads;

	struct ky_catalogue catalogue;
	struct ky_btf btf;  /* while the model is built */
	bool has_constants; /* what follows is what BTF was asked for: ky_btf_asked() */
	struct ky_strbuf constants;
	struct ky_convert convert;
	struct ky_threads threads;
	struct ky_content *content;   /* the owner's; NULL: none */
	struct ky_counters *counters; /* the owner's; NULL: none */

	uint8_t uuid[16];
	struct ky_os_clock clock;
	struct ky_trace_class *trace;
	struct ky_stream_class *stream;
	struct ky_clock_class *clock_class;
	KY_VEC(struct ky_kernel_trace_filter) filters;
	uint32_t first_dump_id; /* event classes of the kernel's events have the ids before it */
	uint32_t n_added;	/* events that were added since */
	uint32_t
		needed_state; /* what of the kernel's state the events speak of: ky_statedump_needs() */
	bool compact_header;

	uint32_t page_bytes;
	struct ky_page_layout page_layout;
	KY_VEC(struct ky_kernel_cpu *) cpus; /* in the order of their numbers */
	uint64_t start_cycles;
	bool is_running; /* recording is on */
	bool is_ending;	 /* each packet may be the last of its stream */

	pthread_mutex_t sink_lock;	/* of `packets` */
	struct ky_store_trace *packets; /* where finished packets go; the owner's */
	/* The owner's; packets are built in its blocks. NULL: in memory of their own. */
	struct ky_block_writer *blocks;
};

void ky_kernel_trace_init(struct ky_kernel_trace *kernel);
/* Frees all but what is the owner's. */
void ky_kernel_trace_fini(struct ky_kernel_trace *kernel);

int ky_kernel_trace_make_uuid(struct ky_kernel_trace *kernel, struct kymo_error *err);

/* kernel-trace-model.c: trace class, plans and filters, from the events that the catalogue has selected. */
int ky_kernel_trace_build(struct ky_kernel_trace *kernel, struct kymo_error *err);
/* Describe an event that the trace did not have until now; the trace class is to be finished, and metadata written, then. */
int ky_kernel_trace_add_event(struct ky_kernel_trace *kernel, struct ky_event_source *source,
			      struct kymo_error *err);
/* Copy the clock's mapping into the model (again, once it is refined). */
int ky_kernel_trace_update_clock(struct ky_kernel_trace *kernel, struct kymo_error *err);
int ky_kernel_trace_write_metadata(struct ky_kernel_trace *kernel, struct kymo_error *err);

/*
 * kernel-trace-filter.c. While recording: @filter, NULL: none, is what the chosen events are recorded under from now on (one
 * bool for each of the catalogue's). When that is no filter of theirs, nothing changes. The owner tells the kernel.
 */
int ky_kernel_trace_set_filter(struct ky_kernel_trace *kernel, const bool *chosen,
			       const char *filter, struct kymo_error *err);
int ky_kernel_trace_bind_filter(struct ky_kernel_trace *kernel, struct ky_event_source *source,
				struct kymo_error *err);
/* The event's filter, where it depends on its fields, is evaluated here and not by the kernel. */
void ky_kernel_trace_leave_to_recorder(struct ky_kernel_trace *kernel,
				       struct ky_event_source *source);
/* Which filters that are. */
void ky_kernel_trace_log_filters(const struct ky_kernel_trace *kernel);

/* kernel-trace-read.c. A CPU without pages yet; its owner puts it into kernel->cpus, in the order of numbers. */
void ky_kernel_cpu_init(struct ky_kernel_cpu *cpu, struct ky_kernel_trace *kernel, uint32_t number);
/* Once its ring is open and the model is built: its packets begin at kernel->start_cycles. KYMO_E_MEMORY. */
int ky_kernel_cpu_begin(struct ky_kernel_cpu *cpu, struct kymo_error *err);
/* Its ring and its packet writer; its block is the block writer's. */
void ky_kernel_cpu_fini(struct ky_kernel_cpu *cpu);
/* Read and convert what is there; @final: to the last event, recording being off. */
int ky_kernel_trace_read_round(struct ky_kernel_trace *kernel, bool final, struct kymo_error *err);
/* Read and convert up to now, or shortly before, recording being on. */
int ky_kernel_trace_read_now(struct ky_kernel_trace *kernel, struct kymo_error *err);
/* Up to when events are converted, in the order of time, but not beyond @until_cycles. */
uint64_t ky_kernel_trace_merged_until(const struct ky_kernel_trace *kernel, uint64_t until_cycles);
/* End all streams at @end_cycles. */
int ky_kernel_trace_end_streams(struct ky_kernel_trace *kernel, uint64_t end_cycles,
				struct kymo_error *err);
/* Close @writer's packet and send it; it is in @block, which is gone then, or NULL. */
int ky_kernel_trace_send(struct ky_kernel_trace *kernel, struct ky_packet_writer *writer,
			 int stream, struct ky_block *block, uint64_t end_cycles,
			 uint64_t discarded, struct kymo_error *err);

#endif
