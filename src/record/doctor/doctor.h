/* SPDX-License-Identifier: MIT */
/*
 * Checks of what this machine supports, with advice about missing features. For kymo doctor and
 * others.
 *
 * Threads: one at a time per list.
 */
#ifndef KY_RECORD_DOCTOR_DOCTOR_H
#define KY_RECORD_DOCTOR_DOCTOR_H

#include <stdbool.h>

#include "base/vec.h"

enum ky_check_status {
	KY_CHECK_OK,
	KY_CHECK_WARN, /* recording works, but a feature is missing or there is a risk */
	KY_CHECK_FAIL, /* recording does not work */
};

/* One line of the report. The functions cut texts that do not fit. */
struct ky_check {
	const char *name; /* static: "tracefs" */
	enum ky_check_status status;
	char text[240];	  /* the result */
	char advice[240]; /* the remedy; "" when none is needed */
};

struct ky_doctor {
	KY_VEC(struct ky_check) checks;
	bool failed_memory;
};

/* Adds a check. ky_doctor_advice() refers to the last check. */
void ky_doctor_add(struct ky_doctor *doctor, const char *name, enum ky_check_status status,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void ky_doctor_advice(struct ky_doctor *doctor, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Checks privileges, tracefs, a test recording with an instance of our own, and leftover instances.
 */
void ky_doctor_tracing(struct ky_doctor *doctor);
/* Checks other features of the kernel: BPF, perf, probes, rseq, lockdown. */
void ky_doctor_kernel(struct ky_doctor *doctor);
/*
 * Checks programs with libkymo-trace: the runtime directory, leftovers, programs that do not
 * record.
 */
void ky_doctor_user(struct ky_doctor *doctor);
/* Checks clock, CPUs, memory, disk, containers. */
void ky_doctor_machine(struct ky_doctor *doctor);

#endif
