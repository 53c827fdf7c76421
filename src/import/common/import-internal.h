/* SPDX-License-Identifier: MIT */
/* What formats share that make several traces of one path. */
#ifndef KY_IMPORT_IMPORT_INTERNAL_H
#define KY_IMPORT_IMPORT_INTERNAL_H

#include "import/common/import.h"

/* A new empty trace, which @imports owns; NULL: out of memory. */
struct ky_scratch_trace *ky_import_new_trace(struct ky_import *imports);
/* Readers find @trace at @path as PATH/NAME; both texts are copied. 0 or KYMO_E_MEMORY. */
int ky_import_add_place(struct ky_import *imports, const char *path, const char *name,
			const struct ky_scratch_trace *trace, struct kymo_error *err);

/* What @imports has now; and back to that: the traces that were added since are gone. */
struct ky_import_mark {
	size_t n_traces, n_places;
};
struct ky_import_mark ky_import_mark(const struct ky_import *imports);
void ky_import_undo(struct ky_import *imports, const struct ky_import_mark *mark);

/* Where the content of the file @path lies: @path, or a path of its unpacked content, in @content. */
const char *ky_import_content(const struct ky_import *imports, const char *path, char content[32]);
/* Converts a file whose unpacked content is @fd, from its begin on, if it has a known format. 1: it has none. */
int ky_import_unpacked(struct ky_import *imports, const char *path, int fd,
		       const struct ky_log *log, struct kymo_error *err);
/* The file of @why is damaged from there on; what was good before is in the traces. */
void ky_import_broken(struct ky_import *imports, const struct kymo_error *why);

#endif
