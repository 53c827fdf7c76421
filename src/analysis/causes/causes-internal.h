/* SPDX-License-Identifier: MIT */
/* What the files of causes share; others use causes.h alone. */
#ifndef KY_ANALYSIS_CAUSES_CAUSES_INTERNAL_H
#define KY_ANALYSIS_CAUSES_CAUSES_INTERNAL_H

#include "analysis/causes/causes.h"
#include "base/hash.h"

/* So many records of all kinds, of at most 64 bytes each. */
#define KY_CAUSES_MAX (UINT64_C(1) << 24)
/* So many stretches of a thread are looked at for one question; what is farther away is unknown. */
#define KY_CAUSES_LOOKS 64

/* What matters of a system call, by its name. */
enum ky_call_aspect {
	KY_CALL_PLAIN,
	KY_CALL_FUTEX,
	KY_CALL_SLEEP, /* until a time */
	KY_CALL_POLL,  /* at most until a time: then it returns 0 */
	KY_CALL_TIMED, /* the same, but then it fails, or returns less */
	KY_CALL_EXEC,  /* what comes then is another program */
};

enum ky_stretch_kind {
	KY_STRETCH_RUN,
	KY_STRETCH_PREEMPTED, /* it could run, and was taken off the CPU */
	KY_STRETCH_READY,     /* it was woken */
	KY_STRETCH_SLEEP,
	KY_STRETCH_DISK, /* uninterruptible */
	KY_STRETCH_OTHER,
};

/* What a thread did over some time, by the switches and wake-ups. */
struct ky_stretch {
	int64_t begin_ns, end_ns;
	const struct ky_thread *waker; /* that ended it; NULL: none, or unknown */
	uint32_t line;		       /* of the interrupt that ended it, + 1; 0: none */
	uint16_t cpu;		       /* by index, of those that ran */
	uint8_t kind;		       /* enum ky_stretch_kind */
	bool woken : 1;		       /* a wake-up ended it, and was seen */
};

/* A system call of a thread. */
struct ky_track_call {
	int64_t begin_ns, end_ns; /* INT64_MIN, INT64_MAX: not seen */
	const struct ky_file *file;
	uint64_t address; /* of a futex */
	int64_t ret;
	uint32_t syscall;
	bool done, unsure; /* it has @ret; events were lost in it */
};

/* A part of a wait at a futex: the parts of each wait lie one after the other. */
struct ky_track_lock {
	int64_t begin_ns, end_ns;
	const struct ky_lock *lock;
	const struct ky_thread *holder; /* NULL: none, or unknown */
	bool is_free;			/* the lock was released, and the waiter was on its way */
};

/* A request of a block device, or a flush of its cache. */
struct ky_disk_run {
	int64_t queue_ns, issue_ns, end_ns;
	const struct ky_disk *disk;
	const struct ky_thread *thread;
	bool is_flush;
};

/* Requests of a device, or of a thread: their places in ky_causes.requests, so in the order of their ends. */
struct ky_disk_lane {
	KY_VEC(uint32_t) places;
	uint64_t longest_ns;
};

struct ky_move {
	int64_t ns;
	int32_t cpu; /* where it is from then on, by its id */
};

/* All of a thread. */
struct ky_track {
	KY_VEC(struct ky_stretch) stretches; /* in their order, disjoint */
	KY_VEC(struct ky_track_call) calls;
	KY_VEC(struct ky_track_lock) locks;
	struct ky_disk_lane requests; /* its own */
	KY_VEC(int64_t) faults;
	KY_VEC(struct ky_move) moves;
	KY_VEC(struct ky_fs_seen) steps; /* in the order of their ends */
	int64_t exit_ns;		 /* its end began; 0: not seen */
};

struct ky_lane_run {
	int64_t begin_ns, end_ns;
	const struct ky_thread *thread; /* NULL: idle, or unknown */
	bool idle;
};

/* The topmost interrupt: those below it are cut where it ran. */
struct ky_lane_irq {
	int64_t begin_ns, end_ns;
	const struct ky_irq_line *line;
};

/* All of a CPU. */
struct ky_lane {
	KY_VEC(struct ky_lane_run) runs;
	KY_VEC(struct ky_lane_irq) irqs; /* in their order, disjoint */
};

/* ---- TCP ------------------------------------------------------------------------------- */

/* A call that sent data. */
struct ky_tcp_send {
	int64_t begin_ns, end_ns;
	const struct ky_thread *thread;
};

struct ky_tcp_socket {
	uint32_t link; /* its connection's place + 1; 0: none yet */
	KY_VEC(struct ky_tcp_send) sends;
};

/* A socket that had the connection: its sends from @first on. */
struct ky_tcp_end {
	uint32_t socket; /* its place + 1 */
	size_t first;
};

/* A connection, as one side sees it. */
struct ky_tcp_link {
	struct ky_tcp_pair pair;
	KY_VEC(struct ky_tcp_end) ends;
	uint32_t next; /* with the same hash, + 1 */
};

/* Data came for a connection. */
struct ky_tcp_receipt {
	int64_t ns;
	uint32_t link; /* its place + 1 */
	const struct ky_cpu *cpu;
};

struct ky_tcp {
	KY_VEC(struct ky_tcp_link) links;
	KY_VEC(struct ky_tcp_socket) sockets;
	KY_VEC(struct ky_tcp_receipt) receipts; /* in the order of time */
	struct ky_map by_pair, by_socket;
};

struct ky_causes {
	struct ky_model *model;
	KY_VEC(struct ky_track) tracks;	     /* by thread */
	KY_VEC(struct ky_lane) lanes;	     /* by CPU */
	KY_VEC(struct ky_disk_run) requests; /* in the order of their ends */
	KY_VEC(struct ky_disk_lane) disks;   /* by disk */
	struct ky_tcp tcp;
	uint64_t n;		 /* records of all kinds */
	int64_t full_ns;	 /* INT64_MAX: there was room for all */
	KY_VEC(uint8_t) aspects; /* by system call: enum ky_call_aspect + 1; 0: not looked at yet */
	unsigned int abilities;
};

/* The parts of a time, as they are made: each begins where the last one ended. */
struct ky_teller {
	const struct ky_causes *causes;
	const struct ky_track *track;
	const struct ky_thread *thread;
	int64_t at_ns, end_ns;
	ky_part_hook hook;
	void *data;
};

/* The next part is @like, up to @ns (not beyond the end; nothing, if that is not after the last part). */
int ky_tell(struct ky_teller *teller, struct ky_part like, int64_t ns);
/* The place of the first element of a sorted vector whose @member is after @ns; may be the number of all. */
#define ky_causes_find(vec, member, ns)                          \
	({                                                       \
		size_t low_ = 0, high_ = (vec)->len;             \
		while (low_ < high_) {                           \
			size_t mid_ = low_ + (high_ - low_) / 2; \
			if ((vec)->data[mid_].member <= (ns))    \
				low_ = mid_ + 1;                 \
			else                                     \
				high_ = mid_;                    \
		}                                                \
		low_;                                            \
	})

/* A part of that thread without anything else. */
static inline struct ky_part ky_part_of(const struct ky_teller *teller, enum ky_cause cause)
{
	return (struct ky_part){.cause = cause,
				.thread = teller->thread,
				.syscall = KY_NO_SYSCALL,
				.cpu = KY_UNKNOWN};
}

enum ky_call_aspect ky_call_aspect(const struct ky_causes *causes, uint32_t syscall);

/* The track of a thread; NULL: nothing is known of it. */
const struct ky_track *ky_causes_track(const struct ky_causes *causes,
				       const struct ky_thread *thread);
const struct ky_lane *ky_causes_lane(const struct ky_causes *causes, uint32_t cpu);
/* The first of the track's stretches that ends after @ns; may be the number of all. */
size_t ky_track_find(const struct ky_track *track, int64_t ns);
/* The time since which the thread runs its program, by the last execve(); INT64_MIN: it was there before the trace. */
int64_t ky_track_program_ns(const struct ky_causes *causes, const struct ky_track *track);
/* The call that the thread was in at @ns; NULL: none. */
const struct ky_track_call *ky_track_call_at(const struct ky_track *track, int64_t ns);
/* The same for calls that began after @ns. */
const struct ky_track_call *ky_track_call_after(const struct ky_track *track, int64_t ns);
/* The interrupt that a CPU was in at @ns, or the first one that ends after it; may be the number of all. */
size_t ky_lane_irq_find(const struct ky_lane *lane, int64_t ns);

/* Did the thread have a page fault between the two times? */
bool ky_track_faults(const struct ky_track *track, int64_t begin_ns, int64_t end_ns);

/* causes-blocked.c: the thread that ended a wait; NULL: an interrupt did, or it is not known. */
const struct ky_thread *ky_stretch_waker(const struct ky_causes *causes,
					 const struct ky_stretch *stretch);
/* Did a signal end the wait, as the result of its call says? */
bool ky_wait_is_interrupted(const struct ky_track *track, const struct ky_stretch *stretch,
			    const struct ky_track_call *call);
/* May an interrupt that the trace does not have have ended the wait, in @call (NULL: none), on top of the waker? */
bool ky_waker_is_doubtful(const struct ky_causes *causes, const struct ky_stretch *stretch,
			  const struct ky_track *track, const struct ky_track_call *call);
/* The parts of a stretch in which the thread waits for something, up to @ns. */
int ky_tell_blocked(struct ky_teller *teller, const struct ky_stretch *stretch, int64_t ns);
/* causes-futex.c: the same of a wait at a futex, in @call. */
int ky_tell_futex(struct ky_teller *teller, const struct ky_stretch *stretch,
		  const struct ky_track_call *call, int64_t ns);
/* causes-disk.c: the parts up to @ns in which requests of the thread are at a device. */
int ky_tell_disk(struct ky_teller *teller, struct ky_part like, const struct ky_stretch *stretch,
		 int64_t ns);
/* Whose requests the device of @disk had, between the two times, of others than @own. NULL: nobody's. */
const struct ky_thread *ky_disk_others(const struct ky_causes *causes, const struct ky_disk *disk,
				       const struct ky_thread *own, int64_t begin_ns,
				       int64_t end_ns);
/* The request that completed last in [@begin_ns, @end_ns], of any disk of @host. NULL: none. */
const struct ky_disk_run *ky_disk_completed(const struct ky_causes *causes,
					    const struct ky_host *host, int64_t begin_ns,
					    int64_t end_ns);

/* causes-tcp.c: keep it. 0 or KYMO_E_MEMORY. */
int ky_tcp_record(struct ky_tcp *tcp, const struct ky_tcp_seen *seen);
void ky_tcp_fini(struct ky_tcp *tcp);
/* Of the data that came last on @cpu between the two times: who sent it, on any host. NULL: unknown. */
const struct ky_tcp_send *ky_tcp_sender(const struct ky_causes *causes, const struct ky_cpu *cpu,
					int64_t begin_ns, int64_t ns);

#endif
