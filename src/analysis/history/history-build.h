/* SPDX-License-Identifier: MIT */
/*
 * What the files of the builder share: history-build.c the pass, history-linux.c states of the state model, history-rows.c
 * their rows and names, history-streams.c rows of data streams and of spans.
 */
#ifndef KY_ANALYSIS_HISTORY_HISTORY_BUILD_H
#define KY_ANALYSIS_HISTORY_HISTORY_BUILD_H

#include "analysis/history/history-writer.h"
#include "analysis/state/model.h"

struct ky_part {
	int64_t begin_ns, end_ns;
	uint64_t state;
};

KY_VEC_TYPE(ky_parts_list, struct ky_part);

/* Hosts with the same name are one machine: a kernel's trace and its programs'. */
struct ky_machine {
	const char *name;
	struct ky_open_row *row;
	struct ky_map processes; /* pid -> struct ky_open_row * */
	struct ky_map users;	 /* tid -> struct ky_span_row * */
};

/* What is known of a thread of the model beside it. */
struct ky_thread_row {
	struct ky_open_row *row;
	struct ky_parts_list calls; /* over, while the thread's time on the CPU is not */
};

struct ky_cpu_row {
	struct ky_open_row *row, *queue;
	struct ky_parts_list irqs; /* over, and none in another one */
	int64_t queue_ns;
	uint64_t n_waiting;
};

/* A row of values. */
struct ky_counter_row {
	struct ky_open_row *row; /* NULL: none yet */
	enum ky_counter what;
	int64_t since_ns;
	uint64_t
		value; /* from since_ns on; of rates: what the millisecond that begins there has so far */
};

#define KY_DISK_LANES 64

struct ky_disk_row {
	struct ky_open_row *row;
	struct ky_open_row *lanes[KY_DISK_LANES];
	struct ky_counter_row read, written;
	int64_t since_ns;
	uint32_t n_issued;
};

struct ky_span {
	uint64_t name;
	int64_t begin_ns;
	bool is_call; /* of a function */
};

#define KY_SPAN_DEPTH 64u

/* The spans of a thread or stream. */
struct ky_span_row {
	struct ky_open_row *row; /* of the thread or stream */
	uint32_t depth, beyond;	 /* open ones, and those that are too deep */
	struct ky_span open[KY_SPAN_DEPTH];
	struct ky_open_row *rows[KY_SPAN_DEPTH];
};

/* An event class, as far as spans go. */
struct ky_span_class {
	enum {
		KY_SPAN_NOT,
		KY_SPAN_BEGINS,
		KY_SPAN_ENDS,
		KY_SPAN_THREAD, /* none: its thread has a row, without states */
		KY_SPAN_FREQUENCY,
		KY_SPAN_CALLS, /* a function; its name is that of ->address */
		KY_SPAN_RETURNS,
	} what;
	uint64_t name;
	struct ky_handle tid, pid, comm;
	struct ky_handle khz, cpu; /* of KY_SPAN_FREQUENCY */
	struct ky_handle address;  /* of functions; of a return, it may be unknown */
};

struct ky_stream_row {
	struct ky_open_row *row;
	struct ky_machine *machine;
	const struct ky_host *host;
	const struct ky_span_class *classes; /* by ky_event_class.index; NULL: no spans */
	struct ky_span_row *spans;	     /* of events without a thread */
	int64_t since_ns, last_ns;
	int64_t last_tid; /* of KY_SPAN_THREAD */
	uint32_t n;	  /* events that no interval has */
};

struct ky_history_builder {
	struct ky_history_writer writer;
	struct ky_model *model;
	const struct ky_trace_set *set;
	bool is_live; /* the traces are still written */
	bool (*is_over)(
		void *data); /* nobody wants the history any more; NULL: somebody always does */
	void *over_data;
	struct ky_machine *machines; /* by their first host */
	size_t n_machines;
	struct ky_machine **machine_of; /* by ky_host.index */
	KY_VEC(struct ky_thread_row) threads;
	KY_VEC(struct ky_cpu_row) cpus;
	KY_VEC(struct ky_disk_row *) disks;
	KY_VEC(uint64_t) syscalls; /* names, by the model's index; UINT64_MAX: not yet */
	KY_VEC(uint8_t) reasons;   /* enum ky_state_kind of a wait in that call */
	KY_VEC(uint64_t) lines;	   /* names of interrupts */
	KY_VEC(struct ky_counter_row *) counters; /* all of them */
	KY_VEC(struct ky_counter_row *) received; /* by ky_netif.index; elements may be NULL */
	KY_VEC(struct ky_counter_row *) sent;
	struct ky_map frequencies; /* row of the CPU -> struct ky_counter_row * */
	struct ky_map memories;	   /* row of the process, in the same way */
	struct ky_map irqs;	   /* line << 32 | CPU -> struct ky_open_row * */
	struct ky_stream_row *streams;
	struct ky_span_class **span_classes; /* by host */
	struct ky_function_names *functions; /* NULL: no calls of functions yet */
	int64_t begin_ns, end_ns;	     /* of events; INT64_MIN: none yet */
	uint64_t n_events, n_unsettled;
	uint64_t saved_at, saved_bytes, saved_events; /* of the last state of the model */
	struct ky_history_pace pace;
};

/* history-functions.c: names of functions, for the traces of @builder. NULL: out of memory. */
struct ky_function_names *ky_function_names_new(const struct ky_history_builder *builder);
void ky_function_names_free(struct ky_function_names *names);
/* The name of the function at @address, a field of @event, as the writer's number; UINT64_MAX: out of memory. */
uint64_t ky_function_name(struct ky_function_names *names, struct ky_history_writer *writer,
			  const struct ky_event *event, int64_t pid, uint64_t address);
/* Is it an event of a function that begins (or *@begins false: ends)? */
bool ky_is_function_event(const char *name, bool *begins);

/* history-linux.c: listens to builder->model. 0 or KYMO_E_MEMORY. */
int ky_history_listen(struct ky_history_builder *builder);
/* history-counters.c. 0 or a negative status. */
int ky_history_packet(void *data, const struct ky_packet_seen *packet);
int ky_history_memory(void *data, const struct ky_memory *memory);
int ky_history_transfer(struct ky_history_builder *builder, struct ky_disk_row *disk,
			const struct ky_request *request);
int ky_history_frequency(struct ky_history_builder *builder, const struct ky_stream_row *stream,
			 const struct ky_event *event, const struct ky_span_class *cls);
/* Counters go on up to the last event. @over: no more comes. */
int ky_history_counters_up(struct ky_history_builder *builder, bool over);
void ky_history_counters_fini(struct ky_history_builder *builder);
/* Counters go on up to the last event. */
int ky_history_count_up(struct ky_history_builder *builder);
void ky_history_linux_fini(struct ky_history_builder *builder);

/* history-rows.c: names and parents of rows, as far as they are known now. 0 or KYMO_E_MEMORY. */
int ky_history_name_rows(struct ky_history_builder *builder);
/* Names and reasons of all calls up to @syscall. 0 or KYMO_E_MEMORY. */
int ky_history_know_call(struct ky_history_builder *builder, uint32_t syscall);
/* The call's state; KY_STATE_NONE: out of memory. */
uint64_t ky_history_call_state(struct ky_history_builder *builder, uint32_t syscall);
/* The name of an interrupt: its number, UINT64_MAX: out of memory; its text. */
uint64_t ky_history_line_name(struct ky_history_builder *builder, const struct ky_irq_line *line);
void ky_history_line_text(const struct ky_irq_line *line, char *text, size_t size);
/* What the history knows of @thread and @cpu, with their rows. NULL: out of memory. */
struct ky_thread_row *ky_history_thread(struct ky_history_builder *builder,
					const struct ky_thread *thread);
struct ky_cpu_row *ky_history_cpu(struct ky_history_builder *builder, const struct ky_cpu *cpu);
/* The row of the thread @tid of @machine, if the model has one; else NULL. */
struct ky_open_row *ky_history_thread_row(struct ky_history_builder *builder,
					  const struct ky_machine *machine, int32_t tid);
/* The row of process @pid; made when it is new. NULL: out of memory. */
struct ky_open_row *ky_history_process_row(struct ky_history_builder *builder,
					   struct ky_machine *machine, int32_t pid);

/* history-streams.c: rows of all streams, and which events are spans. 0 or KYMO_E_MEMORY. */
int ky_history_streams_init(struct ky_history_builder *builder);
void ky_history_streams_fini(struct ky_history_builder *builder);
/* Events of the batch. 0 or a negative status. */
int ky_history_streams_feed(struct ky_history_builder *builder, const struct ky_batch *batch);
/* What has been counted goes to the rows. @over: spans that are open end now. */
int ky_history_streams_flush(struct ky_history_builder *builder, bool over);

#endif
