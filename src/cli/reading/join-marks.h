/* SPDX-License-Identifier: MIT */
/* --clock-offset TRACE:mark: times are shifted so that marks of kymo mark (base/mark.h) are where they belong. */
#ifndef KY_CLI_READING_JOIN_MARKS_H
#define KY_CLI_READING_JOIN_MARKS_H

#include "base/vec.h"
#include "cli/terminal/command.h"
#include "store/read/trace.h"

struct ky_joined_offsets {
	KY_VEC(char *) items; /* as of --clock-offset, without marks */
};

bool ky_join_has_marks(const struct ky_text_list *offsets);

/*
 * @joined gets @offsets (with @set NULL: those without marks), and for each that asks for a mark the offset that the marks in @set
 * give. @set was opened with the others. KYMO_E_INVALID: a trace has no mark. The caller frees @joined in every case.
 */
int ky_join_marks(const struct ky_trace_set *set, const struct ky_text_list *offsets,
		  struct ky_joined_offsets *joined, struct kymo_error *err);
void ky_joined_offsets_fini(struct ky_joined_offsets *joined);

#endif
