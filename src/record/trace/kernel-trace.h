/* SPDX-License-Identifier: MIT */
/*
 * Events of the kernel, from pages of its rings to packets of a trace: formats, conversion,
 * threads, clock, filters. The owner supplies the pages: a session that records, a raw recording,
 * or a file of another program.
 *
 *	ky_kernel_trace_init()		an empty object; the owner fills the catalogue and the settings
 *	ky_kernel_trace_build()		the trace class and the plans, from the events' formats
 *	ky_kernel_cpu_begin()		a CPU whose ring or file of pages is open
 *	ky_kernel_trace_read_round()	converts the available pages; packets go to the store
 *	ky_kernel_trace_end_streams()
 *	ky_kernel_trace_fini()
 *
 * Threads: one at a time per trace; any thread may call ky_kernel_trace_send() and
 * ky_kernel_trace_write_metadata().
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
#include "kernel/samples/sample-source.h"
#include "kernel/tracefs/cpu-ring.h"
#include "kernel/tracefs/tracefs.h"
#include "os/clock.h"
#include "query/filter.h"
#include "store/packets/block-writer.h"
#include "store/packets/packet-store.h"

#define KY_KERNEL_TRACE_PACKET_BYTES KY_BLOCK_BYTES

/* The stream class of samples, and its events. */
enum {
	KY_KERNEL_SAMPLES_STREAM = 1,
	KY_KERNEL_SAMPLE_EVENT = 0,
	KY_KERNEL_SAMPLE_BEGIN, /* the process has none of its earlier mappings any more */
	KY_KERNEL_SAMPLE_MAP,
};

struct ky_kernel_trace;

/* A CPU: its pages, and the progress of their conversion. */
struct ky_kernel_cpu {
	struct ky_kernel_trace *kernel;
	struct ky_cpu_ring ring;
	struct ky_convert_cpu convert;
	/* NULL: those of the trace. */
	const struct ky_instance *instance; /* counts the losses */
	struct ky_store_trace *packets;	    /* a memory trace, without blocks */
	const char *channel;		    /* the stream's name is CHANNEL_cpu; NULL: "channel0" */
	bool is_late; /* packets come long after those of others: the stream has KY_LIVE_LATE_MARK in its name */
	uint64_t stream_id;
	uint64_t buffer_bytes;	/* 0: those of the trace */
	uint32_t page_bytes;	/* 0: those of the trace */
	int stream;		/* the store's number of the stream; -1: no packet yet */
	bool online;		/* at the start of the recording */
	struct ky_block *block; /* the block in filling: a packet, or raw pages; NULL: none */
	uint64_t raw_lost;	/* when no kernel counts losses: their number at the end */
	bool has_page, has_begun;
	bool is_drained;      /* in this round: all pages of the CPU are converted */
	uint64_t known_until; /* without a page: all events of the CPU up to this time are known */
};

/* A filter of events; events with the same text share it. */
struct ky_kernel_trace_filter {
	const char *text;
	struct ky_filter *filter;
	size_t n_events;   /* number of event classes for which the filter can be true */
	size_t n_recorder; /* number of those where the recorder must evaluate the filter */
	const char *example;
};

struct ky_kernel_trace {
	/* Settings; the owner sets them before build and keeps their memory. */
	const char *name;		       /* env trace_name */
	const char *hostname, *kernel_release; /* of the machine of the events; NULL: this one */
	bool identity_kymo;		       /* env tracer_name = "kymo", not "lttng-modules" */
	unsigned int context;		       /* KY_CONTEXT_* */
	const char *comm; /* only threads of this name, or events about them; NULL: all */
	const struct ky_tracefs *fs; /* source of the formats; NULL: each event has its own */
	const struct ky_instance *instance; /* the kernel counts losses here; NULL: nowhere */
	const struct ky_log *log;	    /* may be NULL */
	struct ky_pid_view *view;	    /* NULL: ids are those of the kernel */
	uint64_t buffer_bytes;		    /* of a CPU's ring */
	bool is_flight; /* files of a flight recorder: events that were overwritten before their begin are no losses */
	const struct ky_sample_source *sources; /* of samples, which have streams of their own */
	size_t n_sources;
	bool keeps_constants;	      /* keep the answers of BTF */
	bool has_compat, has_unknown; /* calls of 32-bit programs, calls with unknown numbers */
	bool merge;		      /* convert in the order of time across CPUs */
	bool has_threads;
	bool grows;	  /* events come after the build */
	bool tells_clock; /* the environment has the clock's state at the begin */

	struct ky_catalogue catalogue;
	struct ky_btf btf;  /* valid during the build of the trace model */
	bool has_constants; /* the answers of BTF are in what follows: ky_btf_asked() */
	struct ky_strbuf constants;
	struct ky_convert convert;
	struct ky_threads threads;
	struct ky_content *content;   /* the owner's; NULL: no content */
	struct ky_counters *counters; /* the owner's; NULL: no counters */

	uint8_t uuid[16];
	struct ky_os_clock clock;
	struct ky_trace_class *trace;
	struct ky_stream_class *stream;
	struct ky_clock_class *clock_class;
	KY_VEC(struct ky_kernel_trace_filter) filters;
	uint32_t first_dump_id; /* event classes of the kernel's events have lower ids */
	uint32_t n_added;	/* events that were added after the build */
	uint32_t
		needed_state; /* the kernel's state that the events refer to: ky_statedump_needs() */
	bool compact_header;

	uint32_t page_bytes;
	struct ky_page_layout page_layout;
	KY_VEC(struct ky_kernel_cpu *) cpus; /* in the order of their numbers */
	uint64_t start_cycles;
	bool is_running; /* recording is on */
	bool is_ending;	 /* each packet may be the last one of its stream */

	pthread_mutex_t sink_lock;	/* of `packets` */
	struct ky_store_trace *packets; /* the trace of finished packets; the owner's */
	/* Packets use its blocks. The owner's; NULL: packets use memory of their own. */
	struct ky_block_writer *blocks;
};

void ky_kernel_trace_init(struct ky_kernel_trace *kernel);
/* Frees everything except the owner's objects. */
void ky_kernel_trace_fini(struct ky_kernel_trace *kernel);

int ky_kernel_trace_make_uuid(struct ky_kernel_trace *kernel, struct kymo_error *err);

/*
 * kernel-trace-classes.c: trace class, plans and filters, from the events that the catalogue has
 * selected.
 */
int ky_kernel_trace_build(struct ky_kernel_trace *kernel, struct kymo_error *err);
/*
 * Adds the description of a new event to the trace. The caller must then finish the trace class and
 * write the metadata.
 */
int ky_kernel_trace_add_event(struct ky_kernel_trace *kernel, struct ky_event_source *source,
			      struct kymo_error *err);
/* Takes back the event that was added last, before the trace's metadata has it. */
void ky_kernel_trace_remove_event(struct ky_kernel_trace *kernel, struct ky_event_source *source);
/* Copies the clock's mapping into the trace model (and again after each refinement). */
int ky_kernel_trace_update_clock(struct ky_kernel_trace *kernel, struct kymo_error *err);
/*
 * kernel-trace-clock.c: the trace's environment gets the clock's state now (os/clock-facts.h), if the events are of this machine: at the begin,
 * and before the metadata is written for the last time. 0 or KYMO_E_MEMORY.
 */
int ky_kernel_trace_clock_begins(struct ky_kernel_trace *kernel);
int ky_kernel_trace_clock_ends(struct ky_kernel_trace *kernel);
int ky_kernel_trace_write_metadata(struct ky_kernel_trace *kernel, struct kymo_error *err);

/*
 * kernel-trace-filter.c. During a recording: set @filter (NULL: none) for the chosen events (one
 * bool for each event of the catalogue). When @filter is not valid for them, nothing changes. The
 * owner sets the kernel's filters.
 */
int ky_kernel_trace_set_filter(struct ky_kernel_trace *kernel, const bool *chosen,
			       const char *filter, struct kymo_error *err);
int ky_kernel_trace_bind_filter(struct ky_kernel_trace *kernel, struct ky_event_source *source,
				struct kymo_error *err);
/*
 * The recorder evaluates the part of the event's filter that depends on its fields, not the kernel.
 */
void ky_kernel_trace_leave_to_recorder(struct ky_kernel_trace *kernel,
				       struct ky_event_source *source);
/* Logs these filters. */
void ky_kernel_trace_log_filters(const struct ky_kernel_trace *kernel);

/*
 * kernel-trace-read.c. A CPU without pages yet. Its owner adds it to kernel->cpus, in the order of
 * numbers.
 */
void ky_kernel_cpu_init(struct ky_kernel_cpu *cpu, struct ky_kernel_trace *kernel, uint32_t number);
/*
 * Called after the opening of its ring and the build of the trace model: its packets begin at
 * kernel->start_cycles. KYMO_E_MEMORY.
 */
int ky_kernel_cpu_begin(struct ky_kernel_cpu *cpu, struct kymo_error *err);
/* Frees its ring and its packet writer; its block belongs to the block writer. */
void ky_kernel_cpu_fini(struct ky_kernel_cpu *cpu);
/* Reads and converts the available pages; @final: up to the last event, with recording off. */
int ky_kernel_trace_read_round(struct ky_kernel_trace *kernel, bool final, struct kymo_error *err);
/* Reads and converts up to now, or shortly before, with recording on. */
int ky_kernel_trace_read_now(struct ky_kernel_trace *kernel, struct kymo_error *err);
/* Reads and converts all that was recorded before the call, which takes some milliseconds. */
int ky_kernel_trace_read_past(struct ky_kernel_trace *kernel, struct kymo_error *err);
/* The time up to which events are converted, in the order of time; at most @until_cycles. */
uint64_t ky_kernel_trace_merged_until(const struct ky_kernel_trace *kernel, uint64_t until_cycles);
/* Ends all streams at @end_cycles. */
int ky_kernel_trace_end_streams(struct ky_kernel_trace *kernel, uint64_t end_cycles,
				struct kymo_error *err);
/*
 * Rotation, after the available events were read. The first call completes the trace so far: its
 * streams end at @end_cycles, or at their last event. The second call begins the streams of the next
 * trace with empty packets, which tell the losses until then.
 */
uint64_t ky_kernel_trace_step(const struct ky_kernel_trace *kernel); /* 2 ns in cycles */
int ky_kernel_trace_split_streams(struct ky_kernel_trace *kernel, uint64_t end_cycles,
				  struct kymo_error *err);
int ky_kernel_trace_begin_streams(struct ky_kernel_trace *kernel, struct kymo_error *err);
/*
 * Closes @writer's packet and sends it. The packet is in @block, which the call takes over, or
 * @block is NULL.
 */
int ky_kernel_trace_send(struct ky_kernel_trace *kernel, struct ky_packet_writer *writer,
			 int stream, struct ky_block *block, uint64_t end_cycles,
			 uint64_t discarded, struct kymo_error *err);

#endif
