/* SPDX-License-Identifier: MIT */
/* What the files of trace-dat.h share: trace-dat.c has the head, dat-options.c the options, dat-pages.c the pages. */
#ifndef KY_IMPORT_TRACE_DAT_INTERNAL_H
#define KY_IMPORT_TRACE_DAT_INTERNAL_H

#include "base/error.h"
#include "import/ftrace/trace-dat.h"

#define KY_DAT_CPUS_MAX		 65536u
#define KY_DAT_OPTIONS_MAX	 65536u
#define KY_DAT_SECTION_MAX_BYTES (256u << 20) /* of all together, too */

static inline int ky_dat_code(const struct kymo_error *err)
{
	return err && err->code ? err->code : KYMO_E_FORMAT;
}

/* A new buffer of @dat; NULL: memory is out, or there are too many. */
struct ky_dat_buffer *ky_dat_new_buffer(struct ky_dat *dat);
/* "flyrecord" at @at, with the place of each CPU's pages, or another kind of data. */
int ky_dat_read_flyrecord(struct ky_dat *dat, struct ky_dat_buffer *buffer, uint64_t at,
			  struct kymo_error *err);
/* A section's content as a file of its own. Its window is all of it; the caller closes it. */
int ky_dat_open_section(struct ky_dat *dat, uint64_t at, struct ky_foreign_file *section,
			struct kymo_error *err);
/*
 * The options at *@at of @file: {u16 id, u32 size, data}. Version 6 ends them with an id alone; the end of version 7 tells where
 * the next ones are, in *@next. *@clock: of the buffers that name none.
 */
int ky_dat_read_options(struct ky_dat *dat, struct ky_foreign_file *file, uint64_t *at,
			uint64_t *next, const char **clock, struct kymo_error *err);

#endif
