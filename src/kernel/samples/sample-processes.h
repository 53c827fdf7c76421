/* SPDX-License-Identifier: MIT */
/*
 * Processes and threads as the records of perf events tell of them, in the order of time: names, and what executable memory
 * each process has mapped. What was there before the first record comes from /proc, when a sample needs it first.
 *
 * IDs are those of the recorder's PID namespace. Threads: one at a time per table.
 */
#ifndef KY_KERNEL_SAMPLES_SAMPLE_PROCESSES_H
#define KY_KERNEL_SAMPLES_SAMPLE_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/hash.h"
#include "base/vec.h"

#define KY_SAMPLE_COMM_BYTES	 16
#define KY_SAMPLE_BUILD_ID_BYTES 20
#define KY_SAMPLE_MAPS_MAX	 65536u /* of a process; further ones replace the last one */

struct ky_sample_map {
	uint64_t begin, end, offset, inode;
	uint32_t device;    /* as the kernel numbers it: major << 20 | minor */
	uint8_t protection; /* 1 read, 2 write, 4 execute, 8 shared */
	uint8_t build_id_bytes;
	uint8_t build_id[KY_SAMPLE_BUILD_ID_BYTES];
	char *path; /* "": anonymous */
};

/* Shared by a process and its children until one of them changes it. */
struct ky_sample_maps {
	uint32_t n_users;
	KY_VEC(struct ky_sample_map) maps; /* in the order of addresses, without overlaps */
};

struct ky_sample_process {
	int32_t pid;
	struct ky_sample_maps *maps; /* NULL: not known yet */
	uint64_t version;	     /* other maps of files have another one */
	uint64_t told;		     /* the generation in which the trace got its maps; 0: never */
};

struct ky_sample_thread {
	int32_t tid, pid;
	bool is_chosen, has_exited;
	char comm[KY_SAMPLE_COMM_BYTES];
};

KY_VEC_TYPE(ky_sample_tids, int32_t);

struct ky_sample_processes {
	bool is_foreign; /* of another time or machine: /proc says nothing of them */
	struct ky_map processes, threads;
	uint64_t n_versions;
	/* Threads whose end was read: in the kernel they go on for a while. Those of the last round, and of this one. */
	struct ky_sample_tids exited, exiting;
	struct ky_map files; /* build ids by device and inode: struct ky_sample_file */
};

void ky_sample_processes_init(struct ky_sample_processes *table);
void ky_sample_processes_fini(struct ky_sample_processes *table);

/* The thread; a new one gets its name from /proc. NULL: out of memory. */
struct ky_sample_thread *ky_sample_thread(struct ky_sample_processes *table, int32_t tid,
					  int32_t pid);
/* The process. NULL: out of memory. */
struct ky_sample_process *ky_sample_process(struct ky_sample_processes *table, int32_t pid);
/* What it has mapped; from /proc if no record has told it. 0 or KYMO_E_MEMORY. */
int ky_sample_process_find_maps(struct ky_sample_processes *table,
				struct ky_sample_process *process);

/* Thread @tid of @pid, a child of @parent_tid of @parent_pid, begins. 0 or KYMO_E_MEMORY. */
int ky_sample_processes_fork(struct ky_sample_processes *table, int32_t pid, int32_t tid,
			     int32_t parent_pid, int32_t parent_tid);
/* 0 or KYMO_E_MEMORY. */
int ky_sample_processes_exit(struct ky_sample_processes *table, int32_t pid, int32_t tid);
/* A round of reading is over: those that had ended before it are forgotten. */
void ky_sample_processes_forget(struct ky_sample_processes *table);
/* @is_exec: it runs another program, and has nothing mapped. 0 or KYMO_E_MEMORY. */
int ky_sample_processes_name(struct ky_sample_processes *table, int32_t pid, int32_t tid,
			     const char *comm, bool is_exec);
/*
 * It has mapped @map, whose path is copied. *told: the trace has its other maps, and needs this one. 0 or KYMO_E_MEMORY.
 */
int ky_sample_processes_map(struct ky_sample_processes *table, int32_t pid,
			    const struct ky_sample_map *map, uint64_t generation, bool *told);

/* sample-maps.c: add a mapping, whose path is copied; it replaces what was there. 0 or KYMO_E_MEMORY. */
int ky_sample_maps_add(struct ky_sample_maps *maps, const struct ky_sample_map *map);

#endif
