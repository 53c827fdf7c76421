/* SPDX-License-Identifier: MIT */
/*
 * Virtual machines among the hosts of a model: which threads of a host run the CPUs of which guest, and what the guests' CPUs seemed to do
 * while these threads did not run.
 *
 * Which trace is a guest's: each event of a guest's CPU happens while the thread of that CPU runs. So of each switch in a possible guest, the
 * threads of all virtual CPUs with this number are looked at.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_ANALYSIS_SCHEDULING_GUESTS_H
#define KY_ANALYSIS_SCHEDULING_GUESTS_H

#include "analysis/state/model.h"

/* Hosts with switches that may be guests; others have no guest. */
#define KY_GUESTS_MAX 64

/* How many switches of a possible guest's CPU came while the thread ran, and while it did not. */
struct ky_vcpu_fit {
	uint32_t inside, outside;
	/* The same since the thread's last event: the host's trace may be over. */
	uint32_t since_inside, since_outside;
};

/* A CPU of a virtual machine. */
struct ky_vcpu {
	uint32_t index;
	const struct ky_host *host;
	const struct ky_thread *thread;
	uint32_t id;
	int32_t vm;	    /* the process of its virtual machine; KY_UNKNOWN: it is not known */
	int64_t entered_ns; /* INT64_MIN: it is not in the guest, as far as is known */
	uint64_t in_guest_ns, exits;
	struct ky_vcpu_fit *fits; /* of each possible guest */
	int64_t since_ns;	  /* the last switch that they count */
	/* After ky_guests_finish(): */
	const struct ky_host *guest; /* NULL: unknown */
	const struct ky_cpu *cpu;    /* its CPU; NULL: unknown */
};

enum ky_away_kind {
	KY_AWAY_WAITED,	 /* it could run, and another thread had the CPU */
	KY_AWAY_BLOCKED, /* it waited for something: for an interrupt when the guest is idle */
};

enum ky_away_why {
	KY_AWAY_UNKNOWN, /* what the guest's CPU did is not known */
	KY_AWAY_IDLE,	 /* it was idle, and nothing was there for it */
	KY_AWAY_LATE,	 /* it was idle, and was to wake up */
	KY_AWAY_STOLEN,	 /* it was busy, and another thread had the host's CPU */
	KY_AWAY_HELD,	 /* it was busy, and its thread waited for something on the host */
};

/* Of the times of a guest's CPU, in ns. */
struct ky_vcpu_sums {
	uint64_t stolen, held, late, waited, longest;
};

/* A time that the thread of a guest's CPU did not run. */
struct ky_away {
	uint32_t vcpu;
	enum ky_away_kind kind;
	int64_t begin_ns, end_ns;
	const struct ky_cpu *cpu;  /* of the host, that it waited for */
	size_t instead, n_instead; /* who ran there meanwhile */
	size_t states; /* what the CPUs of possible guests did: a thread each, or NULL for an idle one, or ky_guest_unknown */
	/* After ky_guests_finish(): what the guest's CPU ran; NULL: nothing. */
	bool is_known;
	const struct ky_thread *running;
};

struct ky_instead {
	const struct ky_thread *thread;
	uint64_t ns;
};

/* What each CPU of a host ran last. */
struct ky_guest_runs;

struct ky_guests_seen {
	const struct ky_model *model;
	int64_t begin_ns;
	const struct ky_host *maybe[KY_GUESTS_MAX];
	uint32_t n_maybe;
	uint64_t n_switches[KY_GUESTS_MAX];
	KY_VEC(struct ky_vcpu *) vcpus;
	struct ky_map by_thread; /* thread's index -> struct ky_vcpu * */
	struct ky_map runs;	 /* CPU's index -> struct ky_guest_runs * */
	KY_VEC(struct ky_away) aways;
	KY_VEC(struct ky_instead) instead;
	KY_VEC(const struct ky_thread *) states;
	uint64_t n_forgotten; /* times that there was no room for */
};

extern const struct ky_thread *const ky_guest_unknown;

/* @begin_ns: what is before it is not counted; INT64_MIN: everything is. */
void ky_guests_seen_init(struct ky_guests_seen *seen, const struct ky_model *model,
			 int64_t begin_ns);
void ky_guests_seen_fini(struct ky_guests_seen *seen);

/* Whose ->data is to be the struct ky_guests_seen. */
extern const struct ky_listener ky_guests_listener;

/* For guests-join.c: the number of @host among those that may be guests; -1: it has no number. */
int ky_guests_number_of(const struct ky_guests_seen *seen, const struct ky_host *host);
/* What waits to be counted as busy. */
void ky_guests_count_rest(struct ky_guests_seen *seen);

/* guests-join.c. No more events: whose guests they are. */
void ky_guests_finish(struct ky_guests_seen *seen);
/* How long the guest's CPU ran threads, as its own trace has it, while hosts were recorded. */
uint64_t ky_guests_busy_ns(const struct ky_guests_seen *seen, const struct ky_cpu *cpu);
/* What the time was for the guest. */
enum ky_away_why ky_guests_why(const struct ky_away *away);
void ky_guests_add(struct ky_vcpu_sums *sums, const struct ky_away *away);
/* Who ran longest on the CPU that the thread waited for; NULL: it waited for none. */
const struct ky_instead *ky_guests_longest(const struct ky_guests_seen *seen,
					   const struct ky_away *away);

#endif
