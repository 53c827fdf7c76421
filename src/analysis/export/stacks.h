/* SPDX-License-Identifier: MIT */
/*
 * Trees of call stacks in the formats of other programs.
 *
 *	folded		"group;outer;inner 42" for each stack (flamegraph.pl, inferno); two weights of two trees that are compared
 *	speedscope	its JSON file format, for speedscope.app
 *	pprof		a gzipped profile.proto, for go tool pprof
 *
 * Threads: any.
 */
#ifndef KY_ANALYSIS_EXPORT_STACKS_H
#define KY_ANALYSIS_EXPORT_STACKS_H

#include "analysis/stacks/stack-tree.h"
#include "base/strbuf.h"
#include "flow/graph/sink.h"

enum ky_stacks_form {
	KY_STACKS_FOLDED,
	KY_STACKS_SPEEDSCOPE,
	KY_STACKS_PPROF,
	KY_STACKS_CHROME, /* a flame chart of single calls (chart.h); stacks have no such form */
	KY_STACKS_FORMS,
};

/* The form of that name ("folded", ...); KY_STACKS_FORMS: none, or NULL. */
enum ky_stacks_form ky_stacks_form_find(const char *name);

/* @tree was summed up. @name: of the profile, a text for people. 0, KYMO_E_MEMORY or KYMO_E_UNSUPPORTED (@err). */
int ky_stacks_export(struct ky_strbuf *out, const struct ky_stack_tree *tree, const char *name,
		     enum ky_stacks_form form, struct kymo_error *err);

/*
 * A sink of the samples of @set, which must outlive it. @fd and @symbol_dirs (see ky_trace_symbols_options) are the caller's.
 * finish fails with KYMO_E_UNSUPPORTED when there were none.
 */
int ky_stacks_sink_open(const struct ky_trace_set *set, int fd, enum ky_stacks_form form,
			const char *const *symbol_dirs, size_t n_symbol_dirs, struct ky_sink **sink,
			struct kymo_error *err);

#endif
