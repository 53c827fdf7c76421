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
/* Converts a file whose unpacked content is @fd, from its begin on, if its format is known and no archive's. 1: nothing is converted. */
int ky_import_unpacked(struct ky_import *imports, const char *path, int fd,
		       const struct ky_log *log, struct kymo_error *err);
/* Likewise for content that came over a pipe: it may be an archive. */
int ky_import_piped(struct ky_import *imports, const char *path, int fd, const struct ky_log *log,
		    struct kymo_error *err);
/* A new file without a name in the directory of $TMPDIR, else in /var/tmp. A descriptor, which is the caller's, or a negative code. */
int ky_import_new_file(struct kymo_error *err);

/* import-pipe.c: whether @path is "-", standard input, or a pipe. */
bool ky_import_pipe_is(const char *path);
/* Converts all that comes over the pipe, to its end. 0, the format's error, KYMO_E_FORMAT (unknown), KYMO_E_IO. */
int ky_import_pipe(struct ky_import *imports, const char *path, const struct ky_log *log,
		   struct kymo_error *err);

/* The file of @why is damaged from there on; what was good before is in the traces. */
void ky_import_broken(struct ky_import *imports, const struct kymo_error *why);

#endif
