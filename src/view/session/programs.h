/* SPDX-License-Identifier: MIT */
/*
 * Reports of other programs that speak LAMI 1.0, and the user's own in files of SQL, for a range, as those of kymo report. The command line
 * names them.
 *
 * A browser chooses one by its number only. What a program writes is foreign: it is bounded, and only tables of known kinds of cells
 * become an answer, in which all text is in JSON strings.
 */
#ifndef KY_VIEW_PROGRAMS_H
#define KY_VIEW_PROGRAMS_H

#include "view/answers/answer.h"

#define KY_PROGRAM_MAX_BYTES ((size_t)8 << 20) /* of what it writes */
#define KY_PROGRAM_MAX_NS    ((int64_t)600 * 1000000000)

struct ky_view_programs {
	const char *const *names; /* in PATH, or paths */
	size_t n;
	const char *trace; /* what they read */
	const char *const *
		own; /* files of SQL, read again for each answer; their numbers come after those of programs */
	size_t n_own;
};

/*
 * The answers to KY_VIEW_PROGRAMS and KY_VIEW_PROGRAM; see ky_view_answer(). One program runs at a time, and others wait. KYMO_E_UNSUPPORTED: the program
 * has an error of its own, which is the message; KYMO_E_FORMAT: it does not speak LAMI; KYMO_E_LIMIT: too much output or time.
 * @view: whose traces a file of SQL reads. Threads: any.
 */
int ky_view_programs_answer(const struct ky_view_programs *programs, struct ky_view *view,
			    const struct ky_view_request *request, const struct ky_view_stop *stop,
			    struct ky_strbuf *out, struct kymo_error *err);

/*
 * programs-table.c: what program @name says of itself (--metadata) and its results, as the JSON of kymo report. KYMO_E_FORMAT, KYMO_E_LIMIT,
 * KYMO_E_MEMORY.
 */
int ky_program_report(const char *name, const struct ky_strbuf *metadata,
		      const struct ky_strbuf *results, struct ky_strbuf *out,
		      struct kymo_error *err);
/* The message of an error that a program writes as LAMI, in @out; false: they have none. */
bool ky_program_error(const struct ky_strbuf *results, struct ky_strbuf *out);

#endif
