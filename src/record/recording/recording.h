/* SPDX-License-Identifier: MIT */
/*
 * A recording: of the kernel, of programs, or of both with one clock, and what other processes ask of it
 * through its control socket.
 *
 *	ky_recording_open()	everything is checked and set up; nothing is recorded yet
 *	ky_recording_start()	recording is on
 *	ky_recording_step()	whenever ky_recording_fd() is readable
 *	ky_recording_stop()	recording is off, the traces are finished
 *	ky_recording_close()	after any of the above, failed or not
 *
 * A recording never waits for the next event: the caller does, and may have other recordings and descriptors
 * to wait for. Requests, snapshots and the stop take as long as their work.
 *
 * Threads: one at a time per recording. Several recordings may run in one thread.
 */
#ifndef KY_RECORD_RECORDING_RECORDING_H
#define KY_RECORD_RECORDING_RECORDING_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "record/kernel/session.h"
#include "record/user/user.h"

struct ky_recording_options {
	bool has_kernel, has_user;
	/* Their output, log and clock are those below. */
	struct ky_session_options kernel;
	struct ky_user_options user;
	enum ky_os_clock_kind clock;
	const char *output; /* the directory to create */
	const char *name;   /* what other processes call it; NULL: its directory alone */
	const char *
		log_path; /* where the owner writes what the log has; NULL: nowhere that others should know */
	/* Names of containers whose events the kernel's recorder takes; as ky_container_cgroup(). */
	const char *const *containers;
	size_t n_containers;
	const struct ky_log *log; /* may be NULL; called in any thread */
};

/* What a step has found. */
enum {
	/* Once, after start: all is recorded, and the state dump is done. A traced command may begin. */
	KY_RECORDING_HAS_BEGUN = 1 << 0,
	/* It is time to stop: another process asked for that, or recording cannot go on, and the stop says why. */
	KY_RECORDING_ENDS = 1 << 1,
};

struct ky_recording_snapshot {
	char path[PATH_MAX];
	uint64_t events, bytes;
	bool is_raw; /* `events` counts records of the kernel that nobody has looked at */
};

struct ky_recording_stats {
	const struct ky_session_stats *kernel; /* NULL: not recorded */
	const struct ky_user_stats *user;      /* NULL: not recorded */
	uint64_t duration_ns;
};

struct ky_recording;

/*
 * What @options point to must outlive the recording. Errors are those of ky_session_open(), ky_user_open() and
 * ky_container_cgroup(). On failure nothing is left behind, and *recording is NULL.
 */
int ky_recording_open(const struct ky_recording_options *options, struct ky_recording **recording,
		      struct kymo_error *err);
/* Before start: as ky_session_choose_child(). Without the kernel nothing is to be chosen. */
int ky_recording_choose_child(struct ky_recording *recording, int32_t pid, struct kymo_error *err);
/*
 * Start, and listen to other processes; where nobody can find the recording, the log has a warning. On failure stop and
 * close are still due.
 */
int ky_recording_start(struct ky_recording *recording, struct kymo_error *err);

/* Becomes readable when a step has something to do. The recording's; valid until close. */
int ky_recording_fd(const struct ky_recording *recording);
/* Do what there is to do. *found: KY_RECORDING_*. 0, or what went wrong: then stop and close are still due. */
int ky_recording_step(struct ky_recording *recording, unsigned int *found, struct kymo_error *err);

/*
 * Flight recorder, between start and stop: write what is kept to a directory, which this call makes: @path, or the
 * first of OUTPUT-snapshot-1, -2 and so on that does not exist where @path is NULL or "".
 * KYMO_E_STATE: this recording is no flight recorder, or nothing was recorded yet; others as opening and writing a trace.
 */
int ky_recording_snapshot(struct ky_recording *recording, const char *path,
			  struct ky_recording_snapshot *snapshot, struct kymo_error *err);

/* May a recording be called so? Letters, digits, '.', '_' and '-', 64 at most, and not a number alone. */
bool ky_recording_is_name(const char *name);

/*
 * 0: all is in the traces' files; or the first error. Also after a start that failed; once per recording.
 */
int ky_recording_stop(struct ky_recording *recording, struct kymo_error *err);
/* After stop; what it points to is valid until close. */
void ky_recording_stats(const struct ky_recording *recording, struct ky_recording_stats *stats);
/* NULL is fine. 0, or the error of removing what was set up. */
int ky_recording_close(struct ky_recording *recording, struct kymo_error *err);

#endif
