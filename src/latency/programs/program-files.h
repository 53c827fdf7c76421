/* SPDX-License-Identifier: MIT */
/*
 * The files in which programs keep the histograms of their own trackers (abi/latency-file.h): of all processes that this user
 * may look at. A file stays open for a last reading when its process has ended. Nothing in it is trusted.
 *
 * Threads: one at a time per struct.
 */
#ifndef KY_LATENCY_PROGRAM_FILES_H
#define KY_LATENCY_PROGRAM_FILES_H

#include <stdbool.h>
#include <sys/types.h>

#include <kymo/error.h>

#include "abi/latency-file.h"
#include "base/hash.h"
#include "base/vec.h"
#include "latency/bpf/latency-layout.h"

/* What was read of a tracker last. */
struct ky_program_last {
	uint64_t sum_ns; /* that was taken in */
	uint64_t buckets[KY_LATENCY_BUCKETS];
};

struct ky_program_file {
	dev_t device;
	ino_t inode;
	int fd;
	pid_t pid;
	uid_t uid;
	char comm[KY_LATENCY_COMM_BYTES];
	bool is_seen;  /* the process has it, as of the last look */
	bool is_fresh; /* it was made since the beginning: all that it has counts */
	bool is_read;  /* once at least */
	uint64_t n_lost, n_lost_before; /* pairs and trackers; before the beginning */
	struct ky_program_last *last[KY_LATENCY_TRACKERS_MAX];
};

struct ky_program_files {
	pid_t only_pid; /* 0: all */
	KY_VEC(struct ky_program_file *) list;
	uint64_t
		n_lost; /* files for which there was no room, and what files that are gone have lost */
	/* Private. */
	uint64_t begin_ns, looked_ns, all_ns;
	dev_t device;
	struct ky_map
		processes; /* pid -> ms since the beginning at which it was seen first, and 1 */
};

/* The name of a process, with its NUL. False: there is no such process; @comm is as it was. */
bool ky_program_comm(pid_t pid, char comm[KY_LATENCY_COMM_BYTES]);

/* All zero is an empty set. The first look finds what is there at the beginning. */
void ky_program_files_fini(struct ky_program_files *files);
/*
 * Look for files of processes that have come, and for those that have gone. Unless @is_last, before a reading, it is cheap, and
 * nothing if little time has passed. 0 or KYMO_E_MEMORY, KYMO_E_IO.
 */
int ky_program_files_look(struct ky_program_files *files, bool is_last, struct kymo_error *err);
/* Forget the files of processes that have gone: they were read after the look that missed them. */
void ky_program_files_sweep(struct ky_program_files *files);

#endif
