/* SPDX-License-Identifier: MIT */
/*
 * Reading an archive or a compressed file by libarchive, which is loaded with the first one; what gzip, zstd and xz compressed comes from archive-source.h. Numbers in the archive have limits, and filters that
 * would run other programs are off.
 *
 * Threads: one at a time per reader.
 */
#ifndef KY_IMPORT_ARCHIVE_READER_H
#define KY_IMPORT_ARCHIVE_READER_H

#include "import/archive/archive-source.h"
#include "import/common/import-internal.h"

struct archive;

struct ky_archive_reader {
	const char *path;
	struct ky_import *imports;
	const struct ky_log *log;
	struct kymo_error *err;
	int fd;
	struct ky_archive_source *source;     /* NULL: libarchive reads the file itself */
	uint64_t n_members, total, total_max; /* of one pass; bytes */
	bool goes_on;			      /* only the member at hand is damaged */
	bool is_damage_known; /* the damage of the compressed data is an error already */
};

/* A regular file in the archive. */
struct ky_archive_member {
	struct archive *archive;
	const char *name; /* without "./"; valid during the call */
	uint64_t size_bytes;
	bool is_alone; /* there is no archive: the file is compressed */
};

/* Sets reader->err to @code with the archive's path. Returns @code. */
int ky_archive_reader_bad(const struct ky_archive_reader *reader, int code, const char *what);

/*
 * One pass over the regular files of the archive. @take returns 0 or a negative code, which ends the pass, unless only this member is
 * damaged: then it is among the broken. 0; KYMO_E_FORMAT: the archive is damaged, or empty; KYMO_E_LIMIT, KYMO_E_IO, KYMO_E_UNSUPPORTED (the library is missing).
 */
int ky_archive_reader_pass(struct ky_archive_reader *reader,
			   int (*take)(void *context, const struct ky_archive_member *member),
			   void *context);

/* All bytes of @member; @take gets them in order. Holes become zeros. 0, KYMO_E_FORMAT, KYMO_E_LIMIT, or what @take returned. */
int ky_archive_reader_data(struct ky_archive_reader *reader, const struct ky_archive_member *member,
			   int (*take)(void *context, const uint8_t *data, size_t len),
			   void *context);

/* Unpacks @member into a file without a name and imports that by its content. 1: it is of no known format. */
int ky_archive_reader_file(struct ky_archive_reader *reader,
			   const struct ky_archive_member *member);

#endif
