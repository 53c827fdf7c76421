/* SPDX-License-Identifier: MIT */
/* What the files of the import of Perfetto's traces share: two traces, "kernel" and "perfetto", and what packets say to later ones. */
#ifndef KY_IMPORT_PERFETTO_TRACE_H
#define KY_IMPORT_PERFETTO_TRACE_H

#include "import/logs/log-format.h"
#include "import/perfetto/protobuf-reader.h"

/* Open slices of a track: further ones have no names at their ends. */
#define KY_PERFETTO_DEPTH_MAX 256

enum ky_perfetto_names {
	KY_PERFETTO_CATEGORIES,
	KY_PERFETTO_EVENTS,
	KY_PERFETTO_ANNOTATIONS,
	KY_PERFETTO_TEXTS,
	KY_PERFETTO_TABLES,
};

/* A clock of a sequence, or of all of them: its relation to the trace's clock. */
struct ky_perfetto_clock {
	uint32_t id;
	bool is_incremental;
	uint64_t unit_ns;
	uint64_t at, last; /* its time at the snapshot; of the last packet */
	int64_t trace_ns;  /* the trace's time at the snapshot */
};

struct ky_perfetto_sequence {
	struct ky_map names[KY_PERFETTO_TABLES]; /* id -> text */
	KY_VEC(struct ky_perfetto_clock) clocks;
	uint32_t clock; /* of packets that tell none; 0: the trace's */
	uint64_t track; /* of events that tell none */
};

struct ky_perfetto_track {
	uint64_t parent;
	int64_t pid, tid;
	const char *name;
	KY_VEC(char *) open; /* names of slices */
	uint32_t n_deeper;
};

/* The thread that the last compact switch of a CPU went to. */
struct ky_perfetto_cpu {
	bool is_known;
	int32_t tid, prio;
	char comm[64];
	size_t comm_len;
};

/* A thread that a tree of processes tells of. */
struct ky_perfetto_thread {
	int64_t tid, pid, ppid;
	const char *name;
};

struct ky_perfetto {
	struct ky_foreign_file file;
	struct ky_log_file kernel, user;
	struct ky_arena arena;
	struct ky_map sequences; /* id + 1 -> struct ky_perfetto_sequence * */
	struct ky_map cpus;	 /* number + 1 -> struct ky_perfetto_cpu * */
	struct ky_map told;	 /* tid -> pid + 1, as the kernel's trace has it */
	KY_VEC(struct ky_perfetto_thread) threads; /* that the next bundle tells of */
	struct ky_map calls;			   /* number * 2 + is an exit + 1 -> name */
	struct ky_map tracks;			   /* uuid -> struct ky_perfetto_track * */
	KY_VEC(struct ky_perfetto_sequence *) all_sequences;
	KY_VEC(struct ky_perfetto_track *) all_tracks;
	KY_VEC(struct ky_perfetto_clock) clocks; /* of all sequences */
	struct ky_strbuf scratch;
	struct ky_arena of_event; /* texts of the event at hand */
	bool has_event_texts;
	uint64_t n_unknown;	  /* ftrace events of kinds that are not known here */
	uint64_t at;		  /* the packet at hand, in the file */
	uint64_t n_damaged;	  /* parts of packets that contradict themselves */
	struct kymo_error damage; /* the first of them; code 0: none */
	struct kymo_error *err;
};

/* Text of the file that stays. NULL: out of memory. */
static inline const char *ky_perfetto_text(struct ky_perfetto *perfetto,
					   const struct ky_pb_field *field)
{
	return ky_arena_strndup(&perfetto->arena, (const char *)field->data, field->len);
}

/* The packet at hand is damaged, but others are not: the caller reports the first such damage at the end. */
static inline void ky_perfetto_damaged(struct ky_perfetto *perfetto, const char *what)
{
	if (!perfetto->n_damaged++)
		(void)ky_foreign_bad(&perfetto->file, perfetto->at, what, &perfetto->damage);
}

/* Behind the last field of a message. */
static inline void ky_perfetto_check(struct ky_perfetto *perfetto,
				     const struct ky_pb_reader *reader)
{
	if (reader->is_bad)
		ky_perfetto_damaged(perfetto, "a packet contradicts itself; what follows the "
					      "contradiction in it is left out");
}

/* The clocks of traces begin at 0. */
static inline void ky_perfetto_check_time(struct ky_perfetto *perfetto, int64_t ns)
{
	if (ns < 0)
		ky_perfetto_damaged(perfetto,
				    "the time of an event makes no sense; it is taken for 0");
}

#define KY_PERFETTO_CLOCK_REAL 1
#define KY_PERFETTO_CLOCK_BOOT 6

/* perfetto-sequence.c: sequence @id. NULL: memory is out, or there are too many. */
struct ky_perfetto_sequence *ky_perfetto_sequence(struct ky_perfetto *perfetto, uint64_t id);
/* What earlier packets of the sequence said is over. */
void ky_perfetto_clear(struct ky_perfetto_sequence *sequence);
/* InternedData. 0 or KYMO_E_MEMORY. */
int ky_perfetto_intern(struct ky_perfetto *perfetto, struct ky_perfetto_sequence *sequence,
		       const struct ky_pb_field *interned);
/* TracePacketDefaults. */
void ky_perfetto_defaults(struct ky_perfetto_sequence *sequence,
			  const struct ky_pb_field *defaults);

/* perfetto-clock.c: the value of clock @id in a ClockSnapshot; false: it has none. */
bool ky_perfetto_clock_value(const struct ky_pb_field *snapshot, uint32_t id, uint64_t *value);
/* A ClockSnapshot. 0 or KYMO_E_MEMORY. */
int ky_perfetto_snapshot(struct ky_perfetto *perfetto, struct ky_perfetto_sequence *sequence,
			 const struct ky_pb_field *snapshot);
/* A packet's time @value of clock @clock_id (0: it tells none) on the trace's clock. */
int64_t ky_perfetto_time(struct ky_perfetto *perfetto, struct ky_perfetto_sequence *sequence,
			 uint64_t clock_id, uint64_t value);

/* perfetto-ftrace-event.c: an event of thread @tid. 0 or negative. */
int ky_perfetto_ftrace_put(struct ky_perfetto *perfetto, const char *name, int64_t ns, int64_t tid,
			   struct ky_log_value *values, size_t n);
/* An FtraceEvent. */
int ky_perfetto_ftrace_event(struct ky_perfetto *perfetto, const uint8_t *data, size_t len,
			     int64_t ns);
/* perfetto-ftrace.c: an FtraceEventBundle. 0 or negative. */
int ky_perfetto_ftrace(struct ky_perfetto *perfetto, const uint8_t *data, size_t len);
/* A ProcessTree. */
int ky_perfetto_processes(struct ky_perfetto *perfetto, const uint8_t *data, size_t len);

/* perfetto-track.c: a TrackDescriptor; a TrackEvent at @ns. 0 or negative. */
int ky_perfetto_describe(struct ky_perfetto *perfetto, const uint8_t *data, size_t len);
int ky_perfetto_event(struct ky_perfetto *perfetto, struct ky_perfetto_sequence *sequence,
		      const uint8_t *data, size_t len, int64_t ns);

#endif
