/* SPDX-License-Identifier: MIT */
/*
 * The clock of a recording, and how its values map to Unix time.
 *
 * Two clocks can be used by kernel and user space alike: the raw time stamp counter ("tsc",
 * tracefs clock x86-tsc), where it is invariant and the kernel keeps time by it, and
 * CLOCK_MONOTONIC ("monotonic", tracefs clock mono) everywhere else.
 *
 * Exactness. Readers compute  time = offset + value / frequency,  where the value counts from boot.
 * A frequency that is wrong by 1 ppm would be wrong by 0.86 s after ten days of uptime. So the
 * offset is anchored: at ky_os_clock_init() the pair (value, Unix time) is measured, and the
 * offset is chosen such that the formula, WITH the frequency that we write, gives exactly that
 * time for that value. Whatever is wrong with the frequency then adds up from the start of
 * the recording only, not from boot. The kernel knows the frequency to about 1 ppb of its own
 * idea (perf's mmap page), but wall time is steered by NTP, by up to 500 ppm. So at the end
 * ky_os_clock_resample() measures again, and ky_os_clock_refine() chooses the frequency that is
 * right at both ends. Wall time that is SET meanwhile (a step) is told apart from steering with
 * the help of CLOCK_MONOTONIC, which is steered but never stepped, and is not followed.
 *
 * Threads: a struct ky_os_clock may be read by any number of threads; init and refine need it alone.
 */
#ifndef KY_OS_CLOCK_H
#define KY_OS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

enum ky_os_clock_kind {
	KY_OS_CLOCK_AUTO, /* TSC where it is sound, else MONOTONIC */
	KY_OS_CLOCK_TSC,
	KY_OS_CLOCK_MONOTONIC,
};

/* One simultaneous reading of two clocks, as exact as the best of many tries. */
struct ky_os_clock_pair {
	uint64_t cycles;
	int64_t ns;
	uint64_t error_ns; /* the true instant of @ns is within +- this of @cycles */
};

struct ky_os_clock {
	enum ky_os_clock_kind kind; /* never AUTO */
	const char *name;	    /* "tsc", "monotonic": the CTF clock's name */
	const char *tracefs_name;   /* "x86-tsc", "mono": for trace_clock */
	const char *description;    /* one sentence for the metadata and for people */
	uint64_t frequency_hz;
	/* Unix time of value v: offset_s + (offset_cycles + v) / frequency_hz seconds. */
	int64_t offset_s;
	int64_t offset_cycles; /* 0 <= offset_cycles < frequency_hz */
	uint64_t precision_ns; /* of the anchor: how far the mapping may be off at its start */
	/* The boot id, zeros where it is not known: clocks with the same one are the same clock. */
	uint8_t uuid[16];
	/* What the mapping hangs on: CLOCK_REALTIME and CLOCK_MONOTONIC at the start. */
	struct ky_os_clock_pair real, mono;
};

/*
 * Choose and measure a clock. Takes well under a millisecond, except perf does not tell the TSC's
 * frequency (not allowed, or a KVM guest): then it is measured, for 50 ms.
 *
 * Returns 0; KYMO_E_UNSUPPORTED when KY_OS_CLOCK_TSC is asked for and not sound (@err says why).
 */
int ky_os_clock_init(struct ky_os_clock *clock, enum ky_os_clock_kind kind, struct kymo_error *err);

/*
 * What the kernel calls the time from this start of the machine to the next. False, and zeros: it does
 * not tell (no /proc).
 */
bool ky_os_boot_id(uint8_t id[16]);

/* The clock's value now, in cycles; not reordered with what stands before it. */
uint64_t ky_os_clock_now(const struct ky_os_clock *clock);

/* The clock and CLOCK_MONOTONIC at one moment, as exact as some tries make it. Takes less than 50 us. */
void ky_os_clock_mono_pair(const struct ky_os_clock *clock, struct ky_os_clock_pair *pair);

/* A value -> Unix time in ns, as readers compute it. */
int64_t ky_os_clock_to_ns(const struct ky_os_clock *clock, uint64_t cycles);

/* How the mapping fared against wall time since its start. */
struct ky_os_clock_drift {
	int64_t elapsed_ns;
	int64_t drift_ns;  /* clock minus wall time now, steps not counted: a wrong frequency */
	int64_t step_ns;   /* wall time was set forward by this much meanwhile; 0: it was not */
	uint64_t error_ns; /* of these figures */
	struct ky_os_clock_pair mono;
};

/* Measure. Does not change @clock. */
void ky_os_clock_resample(const struct ky_os_clock *clock, struct ky_os_clock_drift *drift);

/*
 * Take the frequency that is right at both ends, and the offset that belongs to it, when the
 * drift is larger than the error of the measurement. Values recorded already stay valid; the
 * metadata must be written after this. Returns whether anything changed.
 */
bool ky_os_clock_refine(struct ky_os_clock *clock, const struct ky_os_clock_drift *drift);

/* ---- for diagnosis ---- */

/* NULL when the TSC is sound; else why not, as a short static text. */
const char *ky_os_tsc_unsound(void);
/* The kernel's current clocksource: "tsc", "kvm-clock"; @name has 64 bytes. "" when not known. */
void ky_os_clocksource(char name[64]);
/* From perf's mmap page. 0, KYMO_E_PERMISSION, or KYMO_E_UNSUPPORTED: perf does not tell. */
int ky_os_tsc_frequency_perf(uint64_t *hz);

#endif
