/* SPDX-License-Identifier: MIT */
/*
 * What this machine allows, and what helps where it does not: a list of checks, for kymo doctor and others.
 *
 * Threads: one at a time per list.
 */
#ifndef KY_RECORD_DOCTOR_DOCTOR_H
#define KY_RECORD_DOCTOR_DOCTOR_H

#include <stdbool.h>

#include "base/vec.h"

enum ky_check_status {
	KY_CHECK_OK,
	KY_CHECK_WARN, /* recording works, something is missing or may hurt */
	KY_CHECK_FAIL, /* recording does not work */
};

/* One line of the report. Texts are cut when they do not fit. */
struct ky_check {
	const char *name; /* static: "tracefs" */
	enum ky_check_status status;
	char text[240];	  /* what was found */
	char advice[240]; /* what to do; "" when there is nothing to do */
};

struct ky_doctor {
	KY_VEC(struct ky_check) checks;
	bool failed_memory;
};

/* Add a check; the last one added is what ky_doctor_advice() speaks of. */
void ky_doctor_add(struct ky_doctor *doctor, const char *name, enum ky_check_status status,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void ky_doctor_advice(struct ky_doctor *doctor, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Privileges, tracefs, an instance of our own that is really recorded with, its leftovers. */
void ky_doctor_tracing(struct ky_doctor *doctor);
/* What else the kernel offers: BPF, perf, probes, rseq, lockdown. */
void ky_doctor_kernel(struct ky_doctor *doctor);
/* Programs with libkymo-trace: the runtime directory, leftovers, who is off and why. */
void ky_doctor_user(struct ky_doctor *doctor);
/* Clock, CPUs, memory, disk, containers. */
void ky_doctor_machine(struct ky_doctor *doctor);

#endif
