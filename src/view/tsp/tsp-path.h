/* SPDX-License-Identifier: MIT */
/*
 * Outputs that clients make: the critical path of a thread, as a time graph.
 *
 * Threads: any. The list of an experiment is under the lock of struct ky_tsp; a path has its own lock.
 */
#ifndef KY_VIEW_TSP_PATH_H
#define KY_VIEW_TSP_PATH_H

#include "view/tsp/tsp-internal.h"

/* Of each experiment. */
#define KY_TSP_PATHS_MAX 32

struct ky_tsp_part {
	int64_t begin_ns, end_ns;
	uint32_t row; /* in ->rows */
	enum ky_state_kind kind;
	const char *label; /* foreign text, in ->arena */
};

struct ky_tsp_path_row {
	int64_t tid;
	const char *name;
	int64_t begin_ns, end_ns;
};

struct ky_tsp_path_arrow {
	int64_t ns;
	uint32_t from, to;
};

struct ky_tsp_path {
	/* Immutable: */
	char id[KY_TSP_OUTPUT_BYTES];
	char *name; /* the client's */
	int64_t tid;
	bool has_range; /* else it is about the whole trace */
	int64_t begin_ns, end_ns;
	unsigned int
		n_users; /* under the lock of struct ky_tsp: the list, and answers in progress */
	pthread_mutex_t lock; /* for what follows */
	bool is_made;
	int64_t made_begin_ns, made_end_ns; /* of which it is */
	struct ky_arena arena;
	KY_VEC(struct ky_tsp_path_row)
	rows; /* in the order of the path; an entry's id is its place and one */
	KY_VEC(struct ky_tsp_part) parts; /* by their begins */
	KY_VEC(struct ky_tsp_path_arrow) arrows;
};

/* A path without parts. NULL: out of memory. */
struct ky_tsp_path *ky_tsp_path_new(const struct ky_tsp_request *request);
/*
 * Make it, unless it is there. The caller has path->lock. *@is_running: the state history, which knows the threads, is not complete.
 * 0; KYMO_E_NOT_FOUND: no such thread; or the error of the report.
 */
int ky_tsp_path_make(struct ky_tsp_answer *answer, struct ky_tsp_path *path, bool *is_running,
		     struct kymo_error *err);

/* The path that the answer's output is; the caller puts it back. NULL: the experiment has none. */
struct ky_tsp_path *ky_tsp_path_take(struct ky_tsp_answer *answer);
void ky_tsp_path_put(struct ky_tsp_answer *answer, struct ky_tsp_path *path);
/* As JSON: the descriptor of the output. */
void ky_tsp_path_put_output(struct ky_strbuf *out, const struct ky_tsp_path *path);
/* ", {...}" for each path of the experiment. */
void ky_tsp_path_put_outputs(struct ky_tsp_answer *answer);

#endif
