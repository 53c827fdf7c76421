/* SPDX-License-Identifier: MIT */
/* What the files of the Perfetto sink share. */
#ifndef KY_ANALYSIS_EXPORT_PERFETTO_INTERNAL_H
#define KY_ANALYSIS_EXPORT_PERFETTO_INTERNAL_H

#include "analysis/state/model-internal.h"
#include "analysis/export/event-kind.h"
#include "analysis/perfetto/perfetto.h"
#include "analysis/export/protobuf.h"

#define KY_PF_FIELDS 8

/* The numbers of the fields that are written, by message. */
enum {
	KY_PF_TRACE_PACKET = 1,

	KY_PF_PACKET_FTRACE = 1,
	KY_PF_PACKET_PROCESS_TREE = 2,
	KY_PF_PACKET_CLOCK_SNAPSHOT = 6,
	KY_PF_PACKET_TIMESTAMP = 8,
	KY_PF_PACKET_SEQUENCE_ID = 10,
	KY_PF_PACKET_TRACK_EVENT = 11,
	KY_PF_PACKET_INTERNED = 12,
	KY_PF_PACKET_SEQUENCE_FLAGS = 13,
	KY_PF_PACKET_SYSTEM_INFO = 45,
	KY_PF_PACKET_TRACK_DESCRIPTOR = 60,
	KY_PF_PACKET_FIRST_ON_SEQUENCE = 87,
	KY_PF_PACKET_MACHINE_ID = 98,

	KY_PF_BUNDLE_CPU = 1,
	KY_PF_BUNDLE_EVENT = 2,
	KY_PF_BUNDLE_LOST = 3,

	KY_PF_FTRACE_TIMESTAMP = 1,
	KY_PF_FTRACE_PID = 2,
	KY_PF_FTRACE_TASK_NEWTASK = 235,
	KY_PF_FTRACE_TASK_RENAME = 236,
	KY_PF_FTRACE_GENERIC = 327,

	KY_PF_GENERIC_NAME = 1,
	KY_PF_GENERIC_FIELD = 2,
	KY_PF_GENERIC_FIELD_NAME = 1,
	KY_PF_GENERIC_FIELD_TEXT = 3,
	KY_PF_GENERIC_FIELD_INT = 4,
	KY_PF_GENERIC_FIELD_UINT = 5,

	KY_PF_EVENT_CATEGORY_IID = 3,
	KY_PF_EVENT_ANNOTATION = 4,
	KY_PF_EVENT_TYPE = 9,
	KY_PF_EVENT_NAME_IID = 10,
	KY_PF_EVENT_TRACK = 11,

	KY_PF_SLICE_BEGIN = 1, /* values of the type */
	KY_PF_SLICE_END = 2,
	KY_PF_INSTANT = 3,

	KY_PF_ANNOTATION_NAME_IID = 1,
	KY_PF_ANNOTATION_BOOL = 2,
	KY_PF_ANNOTATION_UINT = 3,
	KY_PF_ANNOTATION_INT = 4,
	KY_PF_ANNOTATION_DOUBLE = 5,
	KY_PF_ANNOTATION_TEXT = 6,
	KY_PF_ANNOTATION_POINTER = 7,
	KY_PF_ANNOTATION_DICT = 11,
	KY_PF_ANNOTATION_ARRAY = 12,

	KY_PF_TRACK_UUID = 1,
	KY_PF_TRACK_NAME = 2,
	KY_PF_TRACK_THREAD = 4,
	KY_PF_TRACK_PARENT = 5,

	KY_PF_THREAD_PID = 1,
	KY_PF_THREAD_TID = 2,
	KY_PF_THREAD_NAME = 5,
};

/* Tables of interned texts; the values are their fields in the message InternedData. */
enum ky_pf_names {
	KY_PF_CATEGORIES = 1,
	KY_PF_EVENT_NAMES = 2,
	KY_PF_ANNOTATION_NAMES = 3,
	KY_PF_NAME_TABLES = 4,
};

/* Hosts with the same name are one machine: a kernel's trace and its programs'. */
struct ky_pf_machine {
	uint32_t id; /* the first is 0 */
	const char *name;
	bool begun; /* its clocks and what the traces say of it are written */
	const struct ky_trace_class *kernel; /* the trace that describes it, or any */
	struct ky_names names[KY_PF_NAME_TABLES];
	struct ky_map cpus;  /* id + 1 -> struct ky_pf_cpu * */
	struct ky_map users; /* pid << 32 | tid -> struct ky_pf_user * */
	struct ky_map dump;  /* tid -> struct ky_pf_dumped * */
};

/* A thread, as the state dump tells of it. */
struct ky_pf_dumped {
	int32_t tid, pid, ppid;
	int64_t dump_ns; /* INT64_MAX: not in a dump */
	int64_t born_ns; /* of the first with this id whose birth was recorded; INT64_MAX: none */
	char comm[KY_COMM_SIZE];
};

/* A CPU of a machine: its ftrace events are written when some have come together. */
struct ky_pf_cpu {
	uint32_t id;
	struct ky_strbuf events;
	bool lost;
	uint64_t track; /* for spans of the kernel; 0: none yet */
};

/* A thread of user space. */
struct ky_pf_user {
	uint64_t uuid;
};

#define KY_PF_LANES 64

/* A block device: requests that overlap need tracks of their own. */
struct ky_pf_device {
	uint64_t used;		     /* a bit per lane */
	uint64_t lanes[KY_PF_LANES]; /* their tracks; 0: none yet */
};

struct ky_pf;

/* perfetto.c: the operations of the sink (flow/graph/sink.h). */
int ky_pf_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err);
int ky_pf_finish(struct ky_sink *sink, struct kymo_error *err);

struct ky_pf_class;

/* An event, with what is known of it. */
struct ky_pf_at {
	const struct ky_event *event;
	const struct ky_pf_class *cls;
	const struct ky_stream *stream;
	struct ky_host *host;
	struct ky_pf_machine *machine;
	struct ky_pf_cpu *cpu; /* NULL: none, or one that Perfetto does not know */
	struct kymo_error *err;
};

typedef int (*ky_pf_handler)(struct ky_pf *pf, const struct ky_pf_at *at);

/* An ftrace event that Perfetto knows: its number, and where its fields come from. */
struct ky_pf_native;

enum ky_pf_track_of {
	KY_PF_TRACK_OF_USER, /* the context's thread, else the stream */
	KY_PF_TRACK_OF_CPU,
	KY_PF_TRACK_OF_THREAD, /* that runs on the CPU */
};

struct ky_pf_class {
	ky_pf_handler handle; /* NULL: not shown by itself */
	const struct ky_pf_native *native;
	const char *name; /* as shown: of a span without its "_begin" */
	const char *category;
	enum ky_pf_track_of track;
	int32_t prio_offset; /* what takes its priorities to the kernel's scale */
	struct ky_handle fields[KY_PF_FIELDS];
	struct ky_event_thread thread; /* of user space */
};

/* A thread of the state model. */
struct ky_pf_thread {
	uint64_t uuid; /* 0: no track yet */
	uint32_t open; /* slices that have not ended */
	bool placed;   /* the track is its process' thread */
	bool told;     /* Perfetto knows its process */
};

struct ky_pf_host {
	struct ky_pf_machine *machine;
	struct ky_pf_class *classes; /* by ky_event_class.index */
	bool is_kernel, has_newtask, has_rename;
};

struct ky_pf {
	struct ky_sink sink;
	int fd;
	const struct ky_trace_set *set;
	struct ky_model *model;
	struct ky_arena arena;
	struct ky_strbuf out, interned, scratch;
	struct ky_values values;
	struct ky_pf_machine *machines;
	size_t n_machines;
	struct ky_pf_host *hosts;	     /* as the model's */
	uint64_t *stream_tracks;	     /* by ky_stream.index; 0: none yet */
	KY_VEC(struct ky_pf_thread) threads; /* by ky_thread.index */
	struct ky_map requests; /* hash of device and sector -> lane + 1, as a pointer */
	struct ky_map devices;	/* machine << 32 | device -> struct ky_pf_device * */
	uint64_t next_uuid;
	uint64_t n_untimed, n_timed;
	int64_t shift_ns;	    /* so that no time is negative */
	const struct ky_pf_at *now; /* for the model's listener */
};

/* ---- perfetto.c: packets ------------------------------------------------------------------ */

/* A packet of @machine at @ns; ends with ky_pf_packet_end(). Returns what that takes. */
size_t ky_pf_packet(struct ky_pf *pf, const struct ky_pf_machine *machine, int64_t ns);
void ky_pf_packet_end(struct ky_pf *pf, size_t begun);
/* The time as Perfetto gets it. */
uint64_t ky_pf_time(const struct ky_pf *pf, int64_t ns);
/* The number that stands for @text from now on; the packet at hand tells. */
uint64_t ky_pf_intern(struct ky_pf *pf, struct ky_pf_machine *machine, enum ky_pf_names table,
		      const char *text);
/* A track with a name of its own. Returns its number. */
uint64_t ky_pf_track_named(struct ky_pf *pf, const struct ky_pf_machine *machine, uint64_t parent,
			   const char *name);
/* The CPU @id of @machine; NULL when out of memory, or no CPU that Perfetto takes. */
struct ky_pf_cpu *ky_pf_cpu_get(struct ky_pf *pf, struct ky_pf_machine *machine, uint32_t id);
/* Write the CPU's events so far. */
void ky_pf_cpu_flush(struct ky_pf *pf, const struct ky_pf_machine *machine, struct ky_pf_cpu *cpu);

/* A message FtraceEvent of thread @pid; ends with ky_pb_end(). Returns what that takes. */
size_t ky_pf_ftrace(struct ky_strbuf *out, uint64_t time, int32_t pid);

/*
 * A track event: begins the packet. Annotations may follow; then ky_pf_event_end().
 * @name: NULL for none.
 */
struct ky_pf_event {
	size_t packet, event;
};
struct ky_pf_event ky_pf_event_begin(struct ky_pf *pf, struct ky_pf_machine *machine, int64_t ns,
				     int type, uint64_t track, const char *category,
				     const char *name);
void ky_pf_event_end(struct ky_pf *pf, struct ky_pf_event event);

/* ---- perfetto-values.c: fields -------------------------------------------------------------- */

/* All fields of the payload, as annotations of the event at hand. 0 or a negative status. */
int ky_pf_annotate(struct ky_pf *pf, const struct ky_pf_at *at);
/* A single one. */
void ky_pf_annotate_text(struct ky_pf *pf, struct ky_pf_machine *machine, const char *name,
			 const char *text);
/* All fields of the payload, flat, as those of a generic ftrace event in @out. */
int ky_pf_generic_fields(struct ky_pf *pf, struct ky_strbuf *out, const struct ky_pf_at *at);

/* ---- perfetto-classes.c: which event is what ------------------------------------------------ */

/* Fills host->classes. 0 or KYMO_E_MEMORY. */
int ky_pf_resolve(struct ky_pf *pf, const struct ky_host *host, struct ky_pf_host *pf_host);

/* ---- perfetto-ftrace.c ------------------------------------------------------------------------ */

/* The row for the kernel's event @name, or NULL. */
const struct ky_pf_native *ky_pf_native_find(const char *name);
/* Resolve its fields. */
void ky_pf_native_fields(const struct ky_pf_native *native, const struct ky_event_class *cls,
			 struct ky_pf_class *info);
int ky_pf_on_native(struct ky_pf *pf, const struct ky_pf_at *at);
int ky_pf_on_generic(struct ky_pf *pf, const struct ky_pf_at *at);
int ky_pf_on_fork(struct ky_pf *pf, const struct ky_pf_at *at);
int ky_pf_on_exec(struct ky_pf *pf, const struct ky_pf_at *at);
/* A rename event: it gives Perfetto a thread's name, which later events may replace. */
void ky_pf_rename(struct ky_strbuf *out, uint64_t time, int32_t tid, const char *comm);

/* ---- perfetto-threads.c ----------------------------------------------------------------------- */

/* What the state dumps tell goes to machine->dump. Damage is left for the pass to find. */
int ky_pf_read_dumps(struct ky_pf *pf, struct kymo_error *err);
/* Was the thread there before the trace? One that was born in it tells of itself. */
static inline bool ky_pf_was_there(const struct ky_pf_dumped *dumped)
{
	return dumped->dump_ns != INT64_MAX && dumped->dump_ns < dumped->born_ns;
}

/* One thread of a message ProcessTree. */
void ky_pf_dump_tree(struct ky_strbuf *out, const struct ky_pf_dumped *dumped);
/* What is kept of a thread; NULL when out of memory. Valid until the next call. */
struct ky_pf_thread *ky_pf_thread(struct ky_pf *pf, const struct ky_thread *thread);
/* Its process, as far as is known, or KY_UNKNOWN. */
int32_t ky_pf_pid(const struct ky_pf *pf, const struct ky_thread *thread);
/* The id of the thread that @at happened in; 0 is idle, or not known. */
int32_t ky_pf_tid(const struct ky_pf *pf, const struct ky_pf_at *at);
/* What the model knows of the thread that runs, and Perfetto may not. */
void ky_pf_note_current(struct ky_pf *pf, const struct ky_pf_at *at);
/* The thread's track; made when it is new. */
uint64_t ky_pf_thread_track(struct ky_pf *pf, const struct ky_thread *thread, int64_t ns);
/* The track for an event of user space: its thread's, else its stream's. */
uint64_t ky_pf_user_track(struct ky_pf *pf, const struct ky_pf_at *at);

/* ---- perfetto-slices.c ------------------------------------------------------------------------ */

/* The model's listener: system calls. */
int ky_pf_call_begin(void *data, struct ky_thread *thread, int64_t ns);
int ky_pf_call(void *data, const struct ky_call *call);
int ky_pf_on_span_begin(struct ky_pf *pf, const struct ky_pf_at *at);
int ky_pf_on_span_end(struct ky_pf *pf, const struct ky_pf_at *at);
int ky_pf_on_instant(struct ky_pf *pf, const struct ky_pf_at *at);
/* Is @name about block requests, with the fields that it takes? Then @info is filled. */
bool ky_pf_block_fields(const char *name, const struct ky_event_class *cls,
			struct ky_pf_class *info);
int ky_pf_on_block_issue(struct ky_pf *pf, const struct ky_pf_at *at);
int ky_pf_on_block_complete(struct ky_pf *pf, const struct ky_pf_at *at);

#endif
