/* SPDX-License-Identifier: MIT */
/*
 * The texts of uftrace's directory: lines of task.txt, and what sessions had mapped, as events. What cannot be read is kept for the end,
 * so that the rest is read. Threads: one at a time per directory.
 */
#ifndef KY_IMPORT_UFTRACE_TEXT_H
#define KY_IMPORT_UFTRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "base/vec.h"
#include "import/common/foreign-file.h"
#include "import/common/trace-maker.h"
#include "import/uftrace/uftrace-names.h"

#define UFTRACE_SID_MAX	  32 /* digits */
#define UFTRACE_DEPTH_MAX 1024

enum {
	UFTRACE_ENTRY,
	UFTRACE_EXIT,
	UFTRACE_IMAGE,
	UFTRACE_BUILD_ID,
	UFTRACE_FUNCTION,
	UFTRACE_N_EVENTS
};

struct uftrace_thread {
	struct ky_foreign_file file;
	char *path;
	int64_t tid, pid;
	size_t order;  /* among the threads: of equal times, the first comes first */
	uint64_t at;   /* of the record at hand */
	uint64_t time; /* of it; UINT64_MAX: the file is over */
	uint64_t word;
	uint64_t callers[UFTRACE_DEPTH_MAX];
};

struct uftrace_map {
	char sid[UFTRACE_SID_MAX + 1];
	bool is_read;
	struct ky_strbuf text; /* empty where no file has it */
};

struct uftrace {
	const char *path;
	bool swap;
	struct ky_maker *maker;
	int events[UFTRACE_N_EVENTS];
	KY_VEC(struct uftrace_thread *) threads;
	struct ky_map tids; /* that task.txt names, with a file or without */
	struct ky_names maps;
	uint64_t map_bytes; /* read or turned: sessions can name one map again and again */
	bool maps_are_over; /* too many bytes */
	struct uftrace_names names;
	struct kymo_error *err, *broken;
};

/* The importer tells the first thing that is broken at the end. KYMO_OK. */
int ky_uftrace_keep_broken(struct uftrace *uftrace);
/* A file that is missing says that there is nothing; one that cannot be read is broken, and the others go on. 0 or KYMO_E_MEMORY. */
int ky_uftrace_no_file(struct uftrace *uftrace);

/* The text of regular file @path, without bytes 0; @text is the caller's to end. */
int ky_uftrace_text(struct uftrace *uftrace, const char *path, struct ky_strbuf *text);
/* "tid=31180" in the line; -1: it has none. */
int64_t ky_uftrace_word(const char *line, const char *name);

/* What the session of a line of task.txt had mapped becomes events. */
int ky_uftrace_maps(struct uftrace *uftrace, const char *line);
void ky_uftrace_free_maps(struct uftrace *uftrace);

#endif
