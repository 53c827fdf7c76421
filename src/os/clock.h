/* SPDX-License-Identifier: MIT */
/*
 * The clock of a recording, and the mapping of its values to Unix time.
 *
 * Kernel and user space can share two clocks: the raw time stamp counter ("tsc", tracefs clock
 * x86-tsc), where it is invariant and the kernel uses it as its clocksource, and CLOCK_MONOTONIC
 * ("monotonic", tracefs clock mono) on all machines.
 *
 * Exactness. Readers compute  time = offset + value / frequency,  where the value counts from boot.
 * A frequency error of 1 ppm would make an error of 0.86 s after ten days of uptime. So
 * ky_os_clock_init() measures a pair (value, Unix time) and chooses the offset such that the
 * formula, WITH the frequency in the metadata, gives exactly that time for that value. An error of
 * the frequency then accumulates from the start of the recording only, not from boot. The kernel
 * knows the frequency to about 1 ppb (perf's mmap page), but NTP steers wall time by up to 500 ppm.
 * So at the end ky_os_clock_resample() measures again, and ky_os_clock_refine() chooses the
 * frequency that is right at both ends. CLOCK_MONOTONIC is steered but never stepped; comparing
 * with it tells a step of wall time from steering, and the mapping does not follow steps.
 *
 * Threads: any number of threads may read a struct ky_os_clock; init and refine need exclusive
 * access.
 */
#ifndef KY_OS_CLOCK_H
#define KY_OS_CLOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

enum ky_os_clock_kind {
	KY_OS_CLOCK_AUTO, /* TSC where it is sound, else MONOTONIC */
	KY_OS_CLOCK_TSC,
	KY_OS_CLOCK_MONOTONIC,
};

/* A simultaneous reading of two clocks: the best of many tries. */
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
	uint64_t precision_ns; /* of the anchor: the largest error of the mapping at its start */
	/* The boot ID; zeros when unknown. Clocks with the same boot ID are the same clock. */
	uint8_t uuid[16];
	/* The anchors of the mapping: CLOCK_REALTIME and CLOCK_MONOTONIC at the start. */
	struct ky_os_clock_pair real, mono;
	bool is_fixed; /* a finished trace has this mapping: ky_os_clock_refine() keeps it */
};

/*
 * Choose and measure a clock. This takes well under a millisecond, except when perf does not give
 * the TSC's frequency (no permission, or a KVM guest): then the measurement takes 50 ms.
 *
 * Returns 0, or KYMO_E_UNSUPPORTED when the caller requires KY_OS_CLOCK_TSC and the TSC is not
 * sound (@err has the reason).
 */
int ky_os_clock_init(struct ky_os_clock *clock, enum ky_os_clock_kind kind, struct kymo_error *err);

/*
 * The kernel's ID for the time from this boot to the next. Returns false, and zeros, when the
 * kernel does not give it (no /proc).
 */
bool ky_os_boot_id(uint8_t id[16]);
/* The same as text: "2b3ad1ee-...". */
bool ky_os_boot_id_text(char *text, size_t size);

/*
 * The clock's value now, in cycles. The CPU does not move the reading before earlier instructions.
 */
uint64_t ky_os_clock_now(const struct ky_os_clock *clock);

/* The clock and CLOCK_MONOTONIC at one moment: the best of several tries. Takes less than 1 us. */
void ky_os_clock_mono_pair(const struct ky_os_clock *clock, struct ky_os_clock_pair *pair);

/* A time of CLOCK_MONOTONIC as cycles: the clock runs evenly between the two readings, and near them. */
uint64_t ky_os_clock_between(const struct ky_os_clock_pair *from, const struct ky_os_clock_pair *to,
			     uint64_t time_ns);

/* @ns as a number of cycles, rounded up. */
uint64_t ky_os_clock_cycles(const struct ky_os_clock *clock, uint64_t ns);

/* Converts a value to Unix time in ns, in the same way as readers. */
int64_t ky_os_clock_to_ns(const struct ky_os_clock *clock, uint64_t cycles);

/* The difference between mapping and wall time since the mapping's start. */
struct ky_os_clock_drift {
	int64_t elapsed_ns;
	int64_t drift_ns; /* clock minus wall time now, without steps: the error of the frequency */
	int64_t step_ns;  /* steps of wall time in the meantime, forward is positive; 0: none */
	uint64_t error_ns; /* of these figures */
	struct ky_os_clock_pair mono;
};

/* Measures the drift. Does not change @clock. */
void ky_os_clock_resample(const struct ky_os_clock *clock, struct ky_os_clock_drift *drift);

/*
 * Choose the frequency that is right at both ends, and the matching offset, when the drift is
 * larger than the error of the measurement. Earlier values stay valid. The caller must write the
 * metadata after this. Returns whether anything changed.
 */
bool ky_os_clock_refine(struct ky_os_clock *clock, const struct ky_os_clock_drift *drift);

/*
 * The trace with the present mapping is finished, and the next one begins at the moment of @drift,
 * which ky_os_clock_resample() measured before the last refinement. The next trace has the same
 * mapping, unless the mapping is fixed and has drifted by more than 50 us. The clock then begins a
 * new mapping, which agrees with the old one at that moment and can be refined. Returns whether
 * anything changed.
 */
bool ky_os_clock_continue(struct ky_os_clock *clock, const struct ky_os_clock_drift *drift);

/* ---- for diagnosis ---- */

/* NULL when the TSC is sound; else the reason, as a short static text. */
const char *ky_os_tsc_unsound(void);
/* The kernel's current clocksource: "tsc", "kvm-clock"; @name has 64 bytes. "" when not known. */
void ky_os_clocksource(char name[64]);
/*
 * From perf's mmap page. Returns 0, KYMO_E_PERMISSION, or KYMO_E_UNSUPPORTED: perf does not give
 * it.
 */
int ky_os_tsc_frequency_perf(uint64_t *hz);

#endif
