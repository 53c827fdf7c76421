/* SPDX-License-Identifier: MIT */
#ifndef KY_ANALYSIS_EXPORT_STACKS_INTERNAL_H
#define KY_ANALYSIS_EXPORT_STACKS_INTERNAL_H

#include "analysis/export/stacks.h"

#define KY_STACKS_DEPTH_MAX 2048

/* The frames from node @at outwards, at most @max. Returns their number. */
size_t ky_stacks_path(const struct ky_stack_tree *tree, uint32_t at, uint32_t *path, size_t max);

/* speedscope's file format, up to the list of profiles. */
void ky_stacks_speedscope_begin(struct ky_strbuf *out, const struct ky_stack_tree *tree,
				const char *name);
/* stacks-pprof.c */
void ky_stacks_pprof(struct ky_strbuf *out, const struct ky_stack_tree *tree);

#endif
