/* SPDX-License-Identifier: MIT */
/* Report why: the times that threads lost, by their reasons. */
#ifndef KY_ANALYSIS_OVERVIEW_WHY_H
#define KY_ANALYSIS_OVERVIEW_WHY_H

#include "analysis/overview/breakdown.h"

enum ky_why {
	KY_WHY_CPU,	/* others had the CPU */
	KY_WHY_LOCK,	/* of one futex */
	KY_WHY_DISK,	/* of one device, in calls or in page faults */
	KY_WHY_FAULT,	/* page faults */
	KY_WHY_SPACE,	/* of one process: its address space, which other threads of it change */
	KY_WHY_IRQ,	/* one interrupt */
	KY_WHY_THREAD,	/* other threads of one name: pipes, sockets, condition variables */
	KY_WHY_SLEEP,	/* until a time */
	KY_WHY_STOPPED, /* by a signal or a debugger */
	KY_WHY_SIGNAL,	/* until a signal ended the call */
	KY_WHY_EVENT,	/* the network, a device, or what is not known */
};

struct ky_why_sum {
	const struct ky_thread *thread;
	uint64_t ns, preempted_ns;
};

/* Sums by thread. */
struct ky_why_sums {
	struct ky_map places; /* the thread's index -> its place + 1 */
	KY_VEC(struct ky_why_sum) list;
};

struct ky_why_loss {
	enum ky_why why;
	const struct ky_disk *disk;
	const struct ky_irq_line *line;
	const struct ky_thread *partner; /* of KY_WHY_THREAD; of a lock one of its waiters */
	uint64_t address;		 /* of a futex */
	bool in_fault;			 /* of a device's: outside of calls */
	uint64_t ns, longest_ns, count;
	/* Of ns: the CPU was idle; requests were in the queue; the device flushed its cache. */
	uint64_t idle_ns, queue_ns, flush_ns;
	/* Of waits for a CPU: it was taken off, and nobody ran there; another CPU was idle, for @beside the most. */
	uint64_t stopped_ns, beside_ns;
	const struct ky_thread *beside;
	/* The victims that waited longest in a rhythm; n 0: none did. */
	struct ky_rhythm rhythm;
	const struct ky_thread *rhythmic;
	uint64_t
		shared_ns; /* of a lock: several threads may have held it, and the culprit was the last */
	uint64_t held_ns;     /* of a known device's: its request was not there */
	uint64_t doubtful_ns; /* of ns: an interrupt may have woken, not the culprit */
	uint32_t syscall;     /* in which the most of it was */
	uint64_t syscall_ns;
	uint32_t longest_syscall;	      /* in which the longest was */
	struct ky_why_sums victims, culprits; /* the largest first, at the end */
	uint64_t victims_ns;		      /* all the victims' time that counts */
};

struct ky_why_losses {
	KY_VEC(struct ky_why_loss) list; /* the largest first, at the end */
	uint64_t total_ns, running_ns, unknown_ns;
	struct ky_why_sums threads; /* the time of each that counts, the largest first */
	struct ky_why_sums runners; /* how long each ran */
	KY_VEC(uint64_t) calls;	    /* how long threads ran in each system call, by its number */
	bool chosen;		    /* by the user: all time counts */
};

/*
 * Of the parts that @run has added up. @chosen: of threads that the user chose, so that waits for others and sleeps
 * count as well; else threads of the kernel do not count. 0 or KYMO_E_MEMORY.
 */
int ky_why_find(struct ky_why_losses *losses, const struct ky_breakdown *run, bool chosen);
void ky_why_fini(struct ky_why_losses *losses);

/* Does it stand out: is it a part of the whole, or of its victims' time, that matters? */
bool ky_why_matters(const struct ky_why_losses *losses, const struct ky_why_loss *loss);

/* What it is, who causes it, and what the culprit does meanwhile. Texts are the trace's: to be escaped. */
void ky_why_say(struct ky_strbuf *out, const struct ky_breakdown *run,
		const struct ky_why_losses *losses, const struct ky_why_loss *loss);
/* How sure that is. */
const char *ky_why_sure(const struct ky_breakdown *run, const struct ky_why_loss *loss);
/* The command that shows more, without the trace. @of: what the user asked about; NULL: threads. */
void ky_why_more(struct ky_strbuf *out, const struct ky_why_loss *loss, const char *of);
/* "worker (tid 4711)". */
void ky_why_add_thread(struct ky_strbuf *out, const struct ky_thread *thread);
/* "12.3 %" of the whole. */
void ky_why_add_share(struct ky_strbuf *out, uint64_t part, uint64_t whole);

#endif
