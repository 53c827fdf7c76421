/* SPDX-License-Identifier: MIT */
/* What the files of a session share. */
#ifndef KY_RECORD_KERNEL_SESSION_INTERNAL_H
#define KY_RECORD_KERNEL_SESSION_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "kernel/probe/probe.h"
#include "kernel/statedump/statedump.h"
#include "record/kernel/session.h"
#include "record/trace/kernel-trace.h"
#include "store/packet-store.h"

/* Raw pages: as large as Linux has sub-buffers, since each costs a write; one fills a block. */
#define KY_RAW_BLOCK_BYTES    (512u * 1024)
#define KY_SESSION_DUMP_BYTES (64u * 1024)

/* A raw flight recorder: what was taken out of a CPU's ring for the last snapshot, which has more than its file. */
struct ky_raw_flight {
	int fd; /* -1: there was none */
	uint64_t bytes, events;
	uint64_t overrun, read; /* the ring's counts by then */
};

struct ky_session_cpu {
	struct ky_kernel_cpu kernel;
	struct ky_session *session;
	int raw_fd;    /* raw recordings: its file; -1: none yet */
	int direct_fd; /* the same file, past the page cache */
	struct ky_block_file *raw_file;
	uint32_t block_bytes; /* of raw pages in the block */
	uint64_t raw_bytes;
	struct ky_raw_flight raw_flight;
	bool unpollable; /* offline: the kernel cannot say when there is data */
};

KY_VEC_TYPE(ky_tids, int32_t);

/* session-dump.c says how session and thread share it. */
struct ky_session_dump {
	pthread_t thread;
	bool is_running;
	atomic_bool busy;	       /* with an order: release and acquire */
	int order_fd, done_fd, tid_fd; /* events: for the thread, and for who waits for it */
	atomic_int tid;		       /* set by the thread: relaxed */
	atomic_bool stop;	       /* set by the session, read by the thread: relaxed */
	uint32_t excluded, told;       /* sets of events: asked for by nobody, dumped */
	bool of_chosen;		       /* not of the whole machine */
	struct ky_tids tids, late;     /* of whom; who was chosen since */
	struct ky_statedump dump;
	struct ky_packet_writer writer; /* no data: there is no stream */
	int stream;
	uint64_t events, missing; /* of all runs */
	int result;
	struct kymo_error err;
};

/* From one time to another, both included. */
struct ky_session_span {
	uint64_t first_cycles, last_cycles;
};

/* A flight recorder's snapshots. */
struct ky_session_flight {
	struct ky_session_span first, before,
		last; /* which state dumps are kept; zeros: there is none */
	/* One that is under way. */
	bool is_taken;
	struct ky_packet_store *store;
	struct ky_store_trace *to;
	uint64_t at_cycles, oldest_cycles; /* when it was taken; when what it has begins */
	uint64_t events, bytes;
};

/* Those who read the trace while it is written. */
struct ky_session_live {
	bool is_on;	/* there is one */
	int64_t due_ms; /* when they are told next; CLOCK_MONOTONIC */
};

/* Users and control groups that are chosen, and an instance that tells when somebody joins or leaves one. */
struct ky_session_watch {
	KY_VEC(int32_t) uids;
	KY_VEC(char *) groups;	     /* directories */
	struct ky_instance instance; /* no path: there is nothing to watch */
	int fd;
	bool is_due;		     /* something has happened since they were looked for last */
	bool has_failed;	     /* to look for them; said once */
	uint64_t looked_ns, took_ns; /* when that ended; of CPU time */
};

struct ky_session {
	struct ky_session_options options;
	char *output; /* the directory that the user named */
	bool made_output;

	struct ky_kernel_trace kernel;
	struct ky_tracefs fs;
	struct ky_instance instance;
	struct ky_pid_view view; /* of /proc: this process' ids of others, and the kernel's */
	struct kymo_error blind; /* why it is blind */
	struct ky_probes probes;
	struct ky_switches *switches; /* from idle, where the ring lacks them; NULL: nowhere */
	bool takes_switches;	      /* they are recorded now */
	struct ky_map chosen_tids;    /* of these, where has_chosen or follow */
	bool has_chosen;	      /* only some threads are recorded */
	bool has_list;		      /* the kernel has one */
	bool has_ids;		      /* of these, processes or threads by their ids */
	struct ky_map removed;	      /* threads that were removed by their ids */
	struct ky_tids collected;     /* the threads that a choice means now */
	struct ky_session_watch watch;

	/* What becomes of events is written by it; NULL: it stays in memory. */
	struct ky_block_writer *blocks;
	struct ky_raw_direct *direct;	   /* NULL: raw pages are copied to blocks */
	struct ky_packet_store *store;	   /* where traces go */
	struct ky_packet_store *own_store; /* the same, where the caller gave none; or NULL */
	struct ky_store_trace *disk; /* flight recorder: where the last snapshot goes; else NULL */
	KY_VEC(struct ky_session_cpu *) cpus;
	int epoll_fd;
	int64_t rests_until_ns; /* CLOCK_MONOTONIC: rings are not looked at before; 0: it does not rest */
	uint64_t followed_ns; /* when CPUs were last looked for */
	int64_t kicked_ms; /* when the writer was last told not to wait for more; CLOCK_MONOTONIC */
	bool started, stopped;
	uint64_t raw_bytes;	/* of all files of a raw recording */
	const char *raw_output; /* the directory that these are in */
	struct ky_session_dump dump;
	struct ky_session_flight flight;
	struct ky_session_live live;
	bool hides_own; /* session-own.c */
	struct ky_session_stats stats;
};

/* session-filter.c. Write source->kernel_filter to the instance; or else the recorder decides. */
int ky_session_write_filter(struct ky_session *session, struct ky_event_source *source,
			    struct kymo_error *err);
/* Also where there is none any more. */
int ky_session_write_filter_anew(struct ky_session *session, struct ky_event_source *source,
				 struct kymo_error *err);

/* session-select.c: the threads whose events are recorded. */
int ky_session_choose_threads(struct ky_session *session, struct kymo_error *err);
/* These add to session->collected: a thread; all threads of a process (how many; 0: there is none). */
int ky_session_collect_tid(struct ky_session *session, int32_t tid, struct kymo_error *err);
int ky_session_collect_process(struct ky_session *session, const char *pid, struct kymo_error *err);
/* Whom the users and groups that are watched mean now. */
int ky_session_collect_watched(struct ky_session *session, struct kymo_error *err);
/* Once more, and who is new is chosen, until nobody is. */
int ky_session_choose_watched(struct ky_session *session, struct kymo_error *err);

/*
 * session-groups.c. Add to session->collected who is in a group, and in those below; unless it must be there, one that
 * is gone is empty.
 */
int ky_session_collect_group(struct ky_session *session, const char *dir, bool must_be_there,
			     struct kymo_error *err);
/* The same, and its directory is watched from now on. KYMO_E_NOT_FOUND. */
int ky_session_watch_group(struct ky_session *session, const char *name, struct kymo_error *err);
/* And no more, where it was: in @path, which may be gone by now. KYMO_E_NOT_FOUND: there neither is one nor was. */
int ky_session_unwatch_group(struct ky_session *session, const char *name, char path[4096],
			     struct kymo_error *err);

/* session-removed.c: these were taken out; @processes: with what threads they have then. */
int ky_session_note_removed(struct ky_session *session, const int32_t *ids, size_t n,
			    bool processes, struct kymo_error *err);
/* Without those, from session->collected's number @first on. */
int ky_session_spare_removed(struct ky_session *session, size_t first, struct kymo_error *err);
/* Who is in session->collected is in again. */
void ky_session_readmit(struct ky_session *session);

/* session-pids.c: the kernel's lists. The maps are the caller's, on failure too. */
int ky_session_pids_read(const struct ky_session *session, struct ky_map *chosen,
			 struct ky_map *left_out, struct kymo_error *err);
/* From the first time on, nobody else is recorded. *n_new: how many were not in the list, or left out. */
int ky_session_pids_add(struct ky_session *session, const struct ky_tids *tids, size_t *n_new,
			struct kymo_error *err);
/* KYMO_E_STATE: nobody would be left, nor come. *n_new: how many were recorded until now. */
int ky_session_pids_remove(struct ky_session *session, const struct ky_tids *tids, size_t *n_new,
			   struct kymo_error *err);

/* session-watch.c: who joins a user or a group, or leaves. */
int ky_session_watch_start(struct ky_session *session, struct kymo_error *err);
/* @told: it said so. Look at who is there now, unless that was done a moment ago. */
int ky_session_watch_look(struct ky_session *session, bool told, struct kymo_error *err);
int ky_session_watch_close(struct ky_session *session, struct kymo_error *err);

/* session-stacks.c: which events have call stacks; and to make the kernel write them. */
int ky_session_choose_stacks(struct ky_session *session, struct kymo_error *err);
int ky_session_write_stacks(struct ky_session *session, struct kymo_error *err);
/* Of an event that is switched on or off. */
void ky_session_switch_stacks(struct ky_session *session, const struct ky_event_source *source,
			      bool enables);

/* session-counters.c: perf counters in the context; where events are that they are read at. */
int ky_session_open_counters(struct ky_session *session, struct kymo_error *err);
int ky_session_attach_counters(struct ky_session *session, struct kymo_error *err);
/* Of an event that is new; a warning where it has none. */
int ky_session_count_at(struct ky_session *session, const struct ky_event_source *source,
			struct kymo_error *err);

/* session-setup.c: the tracefs instance. */
int ky_session_setup_instance(struct ky_session *session, struct kymo_error *err);

/* session.c: parts of opening one. */
int ky_session_init_convert(struct ky_session *session, struct kymo_error *err);
/* Choose the frequency of the clock that is right at its start and now. */
int ky_session_finish_clock(struct ky_session *session, struct kymo_error *err);

/* Are calls recorded that tracefs does not have? */
static inline bool ky_session_has_calls(const struct ky_session *session)
{
	return session->kernel.has_compat || session->kernel.has_unknown;
}

/* session.c: one step, when there is something to do or @fd is readable. */
int ky_session_wait_for(struct ky_session *session, int fd, struct kymo_error *err);

/* session-live.c: wake up when somebody begins to follow the recording: &session->live is epoll's word for it. */
int ky_session_live_open(struct ky_session *session, struct kymo_error *err);
/* Find out whether anybody does. */
void ky_session_live_look(struct ky_session *session);
/* How long nothing needs to be done for them, in ms; -1: for ever. */
int ky_session_live_timeout(const struct ky_session *session);
/* Write what is due for them. */
int ky_session_live_step(struct ky_session *session, struct kymo_error *err);
/* session-flight.c: where packets go: to the trace in @path, or stay in memory. */
int ky_session_open_packets(struct ky_session *session, struct kymo_error *err);
/* The state dump's part of a raw recording: no trace by itself. */
extern const struct ky_store_place ky_raw_state_place;
/* What is in memory goes to @to: events, or (@state) the state dumps and the metadata. *events: how many. */
int ky_session_copy_flight(struct ky_session *session, struct ky_store_trace *to, bool state,
			   uint64_t *events, struct kymo_error *err);
/*
 * Dump the state as of @at_cycles, for a snapshot whose events begin at @oldest_cycles (0: that is not known), and forget state
 * dumps that no snapshot begins with any more.
 */
int ky_session_renew_state(struct ky_session *session, uint64_t at_cycles, uint64_t oldest_cycles,
			   struct kymo_error *err);

/* raw-write.c: recording raw. */
int ky_raw_make_dir(const struct ky_session *session, struct kymo_error *err);
/* @final: to the end; all is in the files then. */
int ky_raw_round(struct ky_session *session, bool final, struct kymo_error *err);
/* Write what is needed to read it; @end_cycles 0: it goes on. */
int ky_raw_describe(struct ky_session *session, uint64_t end_cycles, struct kymo_error *err);
/* All is read, or as much as can be: count it. */
int ky_raw_count(struct ky_session *session, struct kymo_error *err);
/* And describe it. */
int ky_raw_finish(struct ky_session *session, uint64_t end_cycles, struct kymo_error *err);
/* The metadata goes where no reader looks for it. */
int ky_raw_open_file(struct ky_session_cpu *cpu, struct kymo_error *err);
/* Whole pages of a CPU into blocks, so many that others get their turn; @final: all there is. */
int ky_raw_copy(struct ky_session_cpu *cpu, bool final, struct kymo_error *err);
/* What could not be done with a CPU's file. Returns the code. */
int ky_raw_failed(const struct ky_session_cpu *cpu, int errnum, const char *what,
		  struct kymo_error *err);

/*
 * raw-direct.c: pages that go to the disk without a copy, where that can be. session->direct is NULL otherwise, and the
 * others do nothing then. A round of reading is between begin, which fails if the guard did, and end. A CPU's
 * pages: 1: the rest is to be copied; 0: its turn is over.
 */
int ky_raw_direct_open(struct ky_session *session, struct kymo_error *err);
int ky_raw_direct_begin(struct ky_session *session, struct kymo_error *err);
int ky_raw_direct_read(struct ky_session_cpu *cpu, struct kymo_error *err);
/* So much was taken out of a ring in this round, in either way. */
void ky_raw_direct_took(struct ky_session *session, uint64_t bytes);
void ky_raw_direct_end(struct ky_session *session);
/* Behind the final round. */
void ky_raw_direct_close(struct ky_session *session);

/* raw-flight.c: raw, and overwritten until somebody wants it. Recording being off, take all rings out. */
int ky_raw_take_rings(struct ky_session *session, struct kymo_error *err);
int ky_raw_snapshot(struct ky_session *session, const char *output, struct kymo_error *err);
int ky_raw_snapshot_finish(struct ky_session *session, uint64_t *events, uint64_t *bytes,
			   struct kymo_error *err);

/* session-switches.c: the instance being ready, before events are switched on. 0, or what tracefs fails with. */
int ky_session_find_switches(struct ky_session *session, struct kymo_error *err);
/* Begin or end to record them, as events and threads are chosen now. */
void ky_session_review_switches(struct ky_session *session);

/* session-own.c: of a raw recording, keep the recorder's own system calls out of the rings, or no more. */
void ky_session_hide_own(struct ky_session *session, bool hides);

/* session-dump.c: nothing is dumped yet. Close: after finish. */
int ky_session_dump_open(struct ky_session *session, struct kymo_error *err);
void ky_session_dump_close(struct ky_session *session);
/* Before recording is on: the thread's id is known from then on. */
int ky_session_dump_prepare(struct ky_session *session, struct kymo_error *err);
/* Dump what is needed, of whom. */
int ky_session_dump_start(struct ky_session *session, struct kymo_error *err);
/* While recording: thread @tid, by the kernel's id, is chosen from now on. */
int ky_session_dump_add(struct ky_session *session, int32_t tid, struct kymo_error *err);
/* Is more needed than was dumped? Then begin with that, unless a dump is under way. */
bool ky_session_dump_waits(const struct ky_session *session);
int ky_session_dump_more(struct ky_session *session, struct kymo_error *err);
bool ky_session_dump_is_busy(const struct ky_session *session);
/* Wait until it is not; the rings are read meanwhile, if recording is on. */
int ky_session_dump_wait(struct ky_session *session, struct kymo_error *err);
/* Dump all of it anew, as of @at_cycles, and wait until that is done. */
int ky_session_dump_now(struct ky_session *session, uint64_t at_cycles, struct kymo_error *err);
/* Tell the thread to stop (@abort) and wait for it. Returns its result. */
int ky_session_dump_finish(struct ky_session *session, bool abort_it, struct kymo_error *err);
/* Its stream ends when the others do. */
int ky_session_dump_end_stream(struct ky_session *session, uint64_t end_cycles,
			       struct kymo_error *err);

/* session-open.c: take back the directories of a recording that never began. */
void ky_session_remove_output(struct ky_session *session);
/* session-open.c: one that is open to nothing. ky_session_close() frees it. */
int ky_session_new(const struct ky_session_options *options, struct ky_session **session,
		   struct kymo_error *err);

/* session-cpus.c */
int ky_session_open_cpus(struct ky_session *session, struct kymo_error *err);
void ky_session_close_cpus(struct ky_session *session);
/* Read what is there, and convert it unless pages go to disk raw; @final: to the last event, recording being off. */
int ky_session_read_round(struct ky_session *session, bool final, struct kymo_error *err);

#endif
