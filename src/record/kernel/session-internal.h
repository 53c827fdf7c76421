/* SPDX-License-Identifier: MIT */
/* The shared part of the session's files. */
#ifndef KY_RECORD_KERNEL_SESSION_INTERNAL_H
#define KY_RECORD_KERNEL_SESSION_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "kernel/probe/probe.h"
#include "kernel/samples/samples.h"
#include "kernel/statedump/statedump.h"
#include "record/kernel/session.h"
#include "record/trace/kernel-trace.h"
#include "store/packets/packet-store.h"

/*
 * The size of raw pages: the largest sub-buffers that Linux has, since each page costs a write. One
 * page fills a block.
 */
#define KY_RAW_BLOCK_BYTES    (512u * 1024)
#define KY_SESSION_DUMP_BYTES (64u * 1024)

/*
 * A raw flight recorder: the pages that the last snapshot took out of a CPU's ring. The next
 * snapshot begins with them, because reading removes pages from the ring.
 */
struct ky_raw_flight {
	int fd; /* -1: no such data */
	uint64_t bytes, events;
	uint64_t overrun, read; /* the ring's counts at that time */
};

struct ky_session_cpu {
	struct ky_kernel_cpu kernel;
	struct ky_session *session;
	const struct ky_session_buffers *buffers; /* of its group; NULL: the main buffers */
	int raw_fd;				  /* raw recordings: the CPU's file; -1: none yet */
	int direct_fd;				  /* the same file, opened without the page cache */
	struct ky_block_file *raw_file;
	uint32_t block_bytes; /* bytes of raw pages in the block */
	uint64_t raw_bytes;
	struct ky_raw_flight raw_flight;
	bool unpollable; /* the CPU is offline, so the kernel cannot signal new data */
};

KY_VEC_TYPE(ky_tids, int32_t);

/* session-dump.c explains which members the session and the thread share. */
struct ky_session_dump {
	pthread_t thread;
	bool is_running;
	atomic_bool busy; /* set with an order: release and acquire */
	int order_fd, done_fd,
		tid_fd;	  /* eventfds: for the thread, and for a process that waits for the dump */
	atomic_int tid;	  /* the thread stores it: relaxed */
	atomic_bool stop; /* the session stores it, the thread reads it: relaxed */
	uint32_t excluded,
		told;	/* sets of events: those that no rule selects, those already dumped */
	bool of_chosen; /* only selected threads, not the whole machine */
	struct ky_tids tids, late; /* threads to dump; threads selected since then */
	struct ky_statedump dump;
	struct ky_packet_writer writer; /* its data is NULL when there is no stream */
	int stream;
	uint64_t events, missing; /* totals of all dumps */
	uint64_t archived_events; /* of those before the last rotation */
	int result;
	struct kymo_error err;
};

/* A span of time; both ends are included. */
struct ky_session_span {
	uint64_t first_cycles, last_cycles;
};

/* The snapshots of a flight recorder. */
struct ky_session_flight {
	uint64_t begin_cycles; /* the last clearing; 0: none */
	uint64_t cleared;      /* number of events that were cleared */
	struct ky_session_span first, before,
		last; /* the span of the state dumps in memory; zeros: none */
	/* A snapshot is in progress. */
	bool is_taken;
	struct ky_packet_store *store;
	struct ky_store_trace *to;
	uint64_t at_cycles, oldest_cycles; /* time of the snapshot; begin of its oldest event */
	uint64_t events, bytes;
};

/* The pauses of a recording. */
struct ky_session_pauses {
	bool is_on;
	uint64_t since_cycles;		    /* begin of the present pause */
	struct ky_event_class *begin, *end; /* their events; NULL: no pause yet */
};

/* How often samples are read: a process that ends meanwhile can no longer be asked what it had mapped. */
#define KY_SESSION_SAMPLES_MS 100

/* The rings wake the session when they are this full. */
#define KY_SESSION_WAKE_PERCENT 25

/* Readers that follow the trace during the recording (live readers). */
struct ky_session_live {
	uint32_t delay_ms; /* that they want; 0: there is no reader */
	int64_t due_ms;	   /* CLOCK_MONOTONIC time of the next update for live readers */
	uint64_t n_events; /* at the last update */
	uint64_t n_beacons;
	bool is_idle;	     /* no event since then: the first one wakes the session */
	bool programs_write; /* programs of the recording write, so that beacons must come often */
};

/*
 * Selected users and control groups, and a tracefs instance with events about processes that join
 * or leave them.
 */
struct ky_session_watch {
	KY_VEC(int32_t) uids;
	KY_VEC(char *) groups;	     /* directories */
	struct ky_instance instance; /* no path: there is nothing to watch */
	int fd;
	bool is_due;		     /* an event came since the last look */
	bool has_failed;	     /* the last look failed; logged once */
	uint64_t looked_ns, took_ns; /* end of the last look; its CPU time */
};

/* The buffers of a group. */
struct ky_session_buffers {
	uint32_t number; /* the first group is 1 */
	const struct ky_session_group *group;
	struct ky_instance instance;
	uint32_t page_bytes;
	struct ky_store_trace *packets; /* in memory; NULL: the group does not overwrite */
	uint64_t kept;			/* number of events that the memory had at the end */
};

/* A CPU's data stream of samples. */
struct ky_session_sampled {
	struct ky_packet_writer writer;
	int stream; /* the store's number; -1: no packet yet */
	uint64_t samples;
	uint32_t part; /* of the output, from 1: each part has its stacks' addresses */
	uint64_t packets;
};

struct ky_session_samples {
	struct ky_samples *rings; /* NULL: nothing is sampled */
	struct ky_sample_source sources[KY_SAMPLE_SOURCES_MAX];
	KY_VEC(struct ky_session_sampled) cpus; /* as the rings have them */
	struct ky_map left_out;			/* threads that the user removed */
	uint64_t read_ns;			/* CLOCK_MONOTONIC time of the last reading */
	uint64_t told_ns; /* the same, when a live recording began to have all stacks anew */
	bool is_woken;
};

struct ky_session {
	struct ky_session_options options;
	char *output; /* the output directory that the user named */
	bool made_output;

	struct ky_kernel_trace kernel;
	struct ky_tracefs fs;
	struct ky_instance instance;
	struct ky_session_buffers buffers[KY_SESSION_GROUPS_MAX]; /* of the options' groups */
	struct ky_pid_view view; /* of /proc: maps ids of this PID namespace to the kernel's */
	struct kymo_error blind; /* the reason why the view is not available */
	struct ky_probes probes;
	struct ky_switches
		*switches; /* switches from idle tasks, which the ring lacks; NULL: not available */
	const struct ky_event_source *switch_source; /* sched_switch; NULL: not available */
	bool takes_switches;			     /* the session is recording them */
	struct ky_map
		chosen_tids;   /* threads whose switches count, where has_chosen or follow is set */
	bool has_chosen;       /* the recording is limited to selected threads */
	bool has_list;	       /* the kernel has a list of selected threads */
	bool has_ids;	       /* the user selected processes or threads by their ids */
	struct ky_map removed; /* threads that the user removed by their ids */
	struct ky_tids collected; /* the threads that a selection matches at this time */
	struct ky_session_watch watch;

	/* Writes the packets; NULL: they stay in memory. */
	struct ky_block_writer *blocks;
	struct ky_raw_direct *direct;	   /* NULL: the session copies raw pages to blocks */
	struct ky_packet_store *store;	   /* store of the traces */
	struct ky_packet_store *own_store; /* the store, when the caller gave none; or NULL */
	struct ky_store_trace
		*disk; /* flight recorder: the trace of the last snapshot; else NULL */
	KY_VEC(struct ky_session_cpu *) cpus;
	int epoll_fd;
	int64_t rests_until_ns; /* CLOCK_MONOTONIC time until which the session does not read rings; 0: no pause */
	uint64_t followed_ns; /* time of the last search for new CPUs */
	int64_t kicked_ms; /* CLOCK_MONOTONIC time of the last request to the writer not to wait for more */
	bool started, stopped;
	uint64_t raw_bytes;	/* total size of a raw recording's files */
	const char *raw_output; /* the directory of these files */
	struct ky_session_dump dump;
	struct ky_session_samples samples;
	struct ky_session_flight flight;
	struct ky_session_live live;
	struct ky_session_pauses pauses;
	bool hides_own; /* session-own.c */
	struct ky_session_stats stats;
};

/*
 * session-filter.c. Writes source->kernel_filter to the instance; when the kernel refuses, the
 * recorder filters.
 */
int ky_session_write_filter(struct ky_session *session, struct ky_event_source *source,
			    struct kymo_error *err);
/* The same; also clears the kernel's filter when the source has no filter left. */
int ky_session_write_filter_anew(struct ky_session *session, struct ky_event_source *source,
				 struct kymo_error *err);

/* session-select.c: select the threads of the recording. */
int ky_session_choose_threads(struct ky_session *session, struct kymo_error *err);
/*
 * Append a thread, or all threads of a process, to session->collected. The latter returns their
 * number; 0: no such process.
 */
int ky_session_collect_tid(struct ky_session *session, int32_t tid, struct kymo_error *err);
int ky_session_collect_process(struct ky_session *session, const char *pid, struct kymo_error *err);
/* Append the threads of the watched users and groups at this time. */
int ky_session_collect_watched(struct ky_session *session, struct kymo_error *err);
/* Repeat the search and select new threads, until a search finds none. */
int ky_session_choose_watched(struct ky_session *session, struct kymo_error *err);

/*
 * session-groups.c. Append the threads of a group, and of the groups below it, to
 * session->collected. Unless @must_be_there is set, a group that is gone counts as empty.
 */
int ky_session_collect_group(struct ky_session *session, const char *dir, bool must_be_there,
			     struct kymo_error *err);
/* The same; from now on the session also watches the group's directory. KYMO_E_NOT_FOUND. */
int ky_session_watch_group(struct ky_session *session, const char *name, struct kymo_error *err);
/*
 * End the watch of a group. @path gets its directory, which may be gone by now. KYMO_E_NOT_FOUND:
 * the group neither exists nor is watched.
 */
int ky_session_unwatch_group(struct ky_session *session, const char *name, char path[4096],
			     struct kymo_error *err);

/* session-removed.c: note removed threads; @processes: with all their present threads. */
int ky_session_note_removed(struct ky_session *session, const int32_t *ids, size_t n,
			    bool processes, struct kymo_error *err);
/* Drop the removed threads from session->collected, from index @first on. */
int ky_session_spare_removed(struct ky_session *session, size_t first, struct kymo_error *err);
/* Threads in session->collected are no longer removed. */
void ky_session_readmit(struct ky_session *session);

/* session-pids.c: the kernel's lists of threads. The caller owns the maps, on failure too. */
int ky_session_pids_read(const struct ky_session *session, struct ky_map *chosen,
			 struct ky_map *left_out, struct kymo_error *err);
/*
 * Add threads to the list. The first call limits the recording to the list. *n_new: number of
 * threads that were not in the list, or were removed.
 */
int ky_session_pids_add(struct ky_session *session, const struct ky_tids *tids, size_t *n_new,
			struct kymo_error *err);
/*
 * Remove threads. KYMO_E_STATE: no thread would be left, nor could come. *n_new: number of threads
 * that were recorded until now.
 */
int ky_session_pids_remove(struct ky_session *session, const struct ky_tids *tids, size_t *n_new,
			   struct kymo_error *err);

/* session-watch.c: watch processes that join or leave a user or a group. */
int ky_session_watch_start(struct ky_session *session, struct kymo_error *err);
/*
 * Looks at the present processes, unless the last look was a moment ago. @told: an event reported a
 * change.
 */
int ky_session_watch_look(struct ky_session *session, bool told, struct kymo_error *err);
int ky_session_watch_close(struct ky_session *session, struct kymo_error *err);

/*
 * session-stacks.c: select the events that have call stacks, and make the kernel record the stacks.
 */
int ky_session_choose_stacks(struct ky_session *session, struct kymo_error *err);
int ky_session_write_stacks(struct ky_session *session, struct kymo_error *err);
/* Called for an event that is switched on or off. */
void ky_session_switch_stacks(struct ky_session *session, const struct ky_event_source *source,
			      bool enables);

/* session-counters.c: perf counters in the context, read at the selected events. */
int ky_session_open_counters(struct ky_session *session, struct kymo_error *err);
int ky_session_attach_counters(struct ky_session *session, struct kymo_error *err);
/* The same for a new event; logs a warning when it cannot have counters. */
int ky_session_count_at(struct ky_session *session, const struct ky_event_source *source,
			struct kymo_error *err);

/*
 * session-samples.c: samples of what CPUs run. find comes before the trace model is built, open after the output is there;
 * &session->samples marks their rings in epoll.
 */
int ky_session_find_samples(struct ky_session *session, struct kymo_error *err);
int ky_session_open_samples(struct ky_session *session, struct kymo_error *err);
int ky_session_begin_samples(struct ky_session *session, struct kymo_error *err);
/* Sampling is off; all samples are in packets, which end here. */
int ky_session_pause_samples(struct ky_session *session, uint64_t end_cycles,
			     struct kymo_error *err);
/* Reads the rings if it is time, or a ring is full enough. */
int ky_session_step_samples(struct ky_session *session, struct kymo_error *err);
/* Reads them up to a moment ago, and sends the packets. *until: no later than all samples that are not known yet. */
int ky_session_flush_samples(struct ky_session *session, uint64_t *until, struct kymo_error *err);
/* Rotation: the trace so far ends at @end_cycles; the next one begins with an empty packet, and has no mappings yet. */
int ky_session_split_samples(struct ky_session *session, uint64_t end_cycles,
			     struct kymo_error *err);
int ky_session_continue_samples(struct ky_session *session, struct kymo_error *err);
uint64_t ky_session_count_samples(const struct ky_session *session, uint64_t *lost);
void ky_session_close_samples(struct ky_session *session);

/* session-buffers.c: groups. The @i-th instance, the main one first; NULL: there are not so many. */
const struct ky_instance *ky_session_instance_at(const struct ky_session *session, size_t i);
/* The instance that records the event. */
const struct ky_instance *ky_session_instance_of(const struct ky_session *session,
						 const struct ky_event_source *source);
/* Writes @text to a file of all instances. */
int ky_session_write_all(const struct ky_session *session, const char *name, const char *text,
			 struct kymo_error *err);
/* Selects the groups' events, after those of the main buffers. */
int ky_session_select_groups(struct ky_session *session, struct kymo_error *err);
/* The memory of groups that overwrite. */
int ky_session_open_groups(struct ky_session *session, struct kymo_error *err);
void ky_session_close_groups(struct ky_session *session);
/* Copies the groups' packets in memory to @to. *events: their number is added. */
int ky_session_copy_groups(struct ky_session *session, struct ky_store_trace *to, uint64_t *events,
			   struct kymo_error *err);
/* Beside main buffers that do not overwrite: moves them to the session's trace. */
int ky_session_move_groups(struct ky_session *session, uint64_t *events, struct kymo_error *err);
/* Whether groups overwrite beside main buffers that do not. */
bool ky_session_has_flight_groups(const struct ky_session *session);

/* session-setup.c: the tracefs instance. */
int ky_session_setup_instance(struct ky_session *session, struct kymo_error *err);
/*
 * Attaches the BPF programs of content and counters, and switches on the selected events that are not
 * off, with their call stacks.
 */
int ky_session_switch_on(struct ky_session *session, struct kymo_error *err);

/* session.c: parts of the session's opening. */
int ky_session_init_convert(struct ky_session *session, struct kymo_error *err);
/* Choose the frequency of the clock that is right at its start and now. */
int ky_session_finish_clock(struct ky_session *session, struct kymo_error *err);

/* Whether the recording has system calls that tracefs does not have. */
static inline bool ky_session_has_calls(const struct ky_session *session)
{
	return session->kernel.has_compat || session->kernel.has_unknown;
}

/*
 * session-live.c: wake up when a reader begins to follow the recording; &session->live marks this
 * in epoll.
 */
int ky_session_live_open(struct ky_session *session, struct kymo_error *err);
/* Check for live readers. */
void ky_session_live_look(struct ky_session *session);
/* A ring has woken the session. */
void ky_session_live_wake(struct ky_session *session);
/* The time until the next update for live readers, in ms; -1: none is due. */
int ky_session_live_timeout(const struct ky_session *session);
/* Write the data that is due for live readers. */
int ky_session_live_step(struct ky_session *session, struct kymo_error *err);
/* Reads and converts the available events. *until: all earlier events are converted; 0: not known. */
int ky_session_read_now(struct ky_session *session, uint64_t *until, struct kymo_error *err);
/* The same; all events from before the call are converted. */
int ky_session_read_past(struct ky_session *session, uint64_t *until, struct kymo_error *err);
/* session-flight.c: the place of packets: the trace in @path, or memory. */
int ky_session_open_packets(struct ky_session *session, struct kymo_error *err);
/* The place of a raw recording's state dump, which is not a trace by itself. */
extern const struct ky_store_place ky_raw_state_place;
/*
 * Copies the packets in memory to @to: events, or (@state) the state dumps and the metadata.
 * *events: their number.
 */
int ky_session_copy_flight(struct ky_session *session, struct ky_store_trace *to, bool state,
			   uint64_t *events, struct kymo_error *err);
/*
 * Dump the state as of @at_cycles, for a snapshot whose events begin at @oldest_cycles (0:
 * unknown). Drop state dumps with which no later snapshot can begin.
 */
int ky_session_renew_state(struct ky_session *session, uint64_t at_cycles, uint64_t oldest_cycles,
			   struct kymo_error *err);

/* raw-write.c: raw recordings. */
int ky_raw_make_dir(const struct ky_session *session, struct kymo_error *err);
/* @final: reads everything; the files are then complete. */
int ky_raw_round(struct ky_session *session, bool final, struct kymo_error *err);
/* Writes the description that conversion needs; @end_cycles 0: the recording continues. */
int ky_raw_describe(struct ky_session *session, uint64_t end_cycles, struct kymo_error *err);
/* Counts the records, after all readable pages were read. */
int ky_raw_count(struct ky_session *session, struct kymo_error *err);
/* Counts the records and writes the description. */
int ky_raw_finish(struct ky_session *session, uint64_t end_cycles, struct kymo_error *err);
/* Opens a CPU's file. The metadata goes to a place where readers do not look for traces. */
int ky_raw_open_file(struct ky_session_cpu *cpu, struct kymo_error *err);
/*
 * Copies whole pages of a CPU into blocks; a limit gives other CPUs their turn; @final: no limit.
 */
int ky_raw_copy(struct ky_session_cpu *cpu, bool final, struct kymo_error *err);
/* Sets the error about a CPU's file. Returns the code. */
int ky_raw_failed(const struct ky_session_cpu *cpu, int errnum, const char *what,
		  struct kymo_error *err);

/*
 * raw-direct.c: writes pages to disk without copies where the system allows it. Otherwise
 * session->direct is NULL, and the other functions do nothing. A round of reading lies between
 * begin, which fails if the guard failed, and end. For a CPU's pages: 1: the caller must copy the
 * rest; 0: the CPU's turn is over.
 */
int ky_raw_direct_open(struct ky_session *session, struct kymo_error *err);
int ky_raw_direct_begin(struct ky_session *session, struct kymo_error *err);
int ky_raw_direct_read(struct ky_session_cpu *cpu, struct kymo_error *err);
/* Counts the bytes that this round took out of a ring, in either way. */
void ky_raw_direct_took(struct ky_session *session, uint64_t bytes);
void ky_raw_direct_end(struct ky_session *session);
/* After the final round. */
void ky_raw_direct_close(struct ky_session *session);

/* raw-flight.c: raw flight recorders. Takes the contents of all rings while recording is off. */
int ky_raw_take_rings(struct ky_session *session, struct kymo_error *err);
int ky_raw_snapshot(struct ky_session *session, const char *output, struct kymo_error *err);
int ky_raw_snapshot_finish(struct ky_session *session, uint64_t *events, uint64_t *bytes,
			   struct kymo_error *err);

/*
 * session-switches.c: called when the instance is ready, before events are switched on. Returns 0
 * or an error of tracefs.
 */
int ky_session_find_switches(struct ky_session *session, struct kymo_error *err);
/*
 * Begin or end the recording of switches from idle tasks, according to the selected events and
 * threads.
 */
void ky_session_review_switches(struct ky_session *session);

/*
 * session-own.c: keep the recorder's own system calls out of the rings of a raw recording, or no
 * longer.
 */
void ky_session_hide_own(struct ky_session *session, bool hides);

/* session-dump.c: open without dumping. Close comes after finish. */
int ky_session_dump_open(struct ky_session *session, struct kymo_error *err);
void ky_session_dump_close(struct ky_session *session);
/* Before recording is on: starts the thread, so its id is known. */
int ky_session_dump_prepare(struct ky_session *session, struct kymo_error *err);
/* Starts the dump of the needed state, of the selected threads. */
int ky_session_dump_start(struct ky_session *session, struct kymo_error *err);
/* During a recording: thread @tid (the kernel's id) is selected from now on. */
int ky_session_dump_add(struct ky_session *session, int32_t tid, struct kymo_error *err);
/*
 * Whether the recording needs more state than was dumped. If so, starts that dump, unless one is in
 * progress.
 */
bool ky_session_dump_waits(const struct ky_session *session);
int ky_session_dump_more(struct ky_session *session, struct kymo_error *err);
/*
 * Rotation, while no dump is in progress: begins the dump's stream in the next trace, at
 * @begin_cycles, and starts the dump of all needed state.
 */
int ky_session_dump_again(struct ky_session *session, uint64_t begin_cycles,
			  struct kymo_error *err);
bool ky_session_dump_is_busy(const struct ky_session *session);
/*
 * While no dump is in progress: writes one event of this class, at @cycles, with @body after the context.
 */
int ky_session_dump_event(struct ky_session *session, const struct ky_event_class *event,
			  uint64_t cycles, const void *body, uint32_t body_bytes,
			  struct kymo_error *err);
/* While no dump is in progress: starts the dump of all needed state once more, if there is one. */
int ky_session_dump_anew(struct ky_session *session, struct kymo_error *err);
/* Waits until no dump is in progress. Reads the rings meanwhile, if recording is on. */
int ky_session_dump_wait(struct ky_session *session, struct kymo_error *err);
/* Dumps the whole state again, as of @at_cycles, and waits for the end of the dump. */
int ky_session_dump_now(struct ky_session *session, uint64_t at_cycles, struct kymo_error *err);
/* Stops the thread (@abort_it: at once) and waits for its end. Returns its result. */
int ky_session_dump_finish(struct ky_session *session, bool abort_it, struct kymo_error *err);
/* Ends the dump's stream at the same time as the others. */
int ky_session_dump_end_stream(struct ky_session *session, uint64_t end_cycles,
			       struct kymo_error *err);

/* session-open.c: removes the directories of a recording that never began. */
void ky_session_remove_output(struct ky_session *session);
/* session-open.c: a new session without open files. ky_session_close() frees it. */
int ky_session_new(const struct ky_session_options *options, struct ky_session **session,
		   struct kymo_error *err);

/* session-cpus.c */
int ky_session_open_cpus(struct ky_session *session, struct kymo_error *err);
void ky_session_close_cpus(struct ky_session *session);
/*
 * Reads the rings, and converts the pages unless the recording is raw; @final: up to the last
 * event, with recording off.
 */
int ky_session_read_round(struct ky_session *session, bool final, struct kymo_error *err);

#endif
