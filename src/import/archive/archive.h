/* SPDX-License-Identifier: MIT */
/*
 * Archives of traces and reports: tar (ustar), compressed with zstd. `tar xf` unpacks them, and kymo
 * reads them as they are (import-archive.c).
 *
 * Threads: one at a time per writer.
 */
#ifndef KY_IMPORT_ARCHIVE_H
#define KY_IMPORT_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#define KY_ARCHIVE_BLOCK_BYTES 512u
#define KY_ARCHIVE_NAME_MAX    255u /* of a member's name */

/* The head of a member: ustar. Numbers are octal digits. */
struct ky_archive_head {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8];
	char type; /* '0': a file */
	char link[100], magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155];
	char rest[12];
};

/* The sum of the head's bytes, with blanks for its field `checksum`. */
unsigned int ky_archive_checksum(const struct ky_archive_head *head);

struct ky_archive;

/*
 * Create the archive @path, which must not exist; it appears there when it is complete. KYMO_E_IO,
 * KYMO_E_INVALID (it exists), KYMO_E_MEMORY.
 */
int ky_archive_create(const char *path, struct ky_archive **archive, struct kymo_error *err);
/* Add a member with these bytes. KYMO_E_INVALID: the name is too long. */
int ky_archive_add(struct ky_archive *archive, const char *name, const void *data, size_t len_bytes,
		   struct kymo_error *err);
/* Add the regular file @fd, as long as it is now. KYMO_E_LIMIT: it has 8 GiB or more. */
int ky_archive_add_file(struct ky_archive *archive, const char *name, int fd,
			struct kymo_error *err);
/* Add the regular files at and below the directory @path, as NAME/...; no links. */
int ky_archive_add_tree(struct ky_archive *archive, const char *name, const char *path,
			struct kymo_error *err);
/* Completes the archive and frees it, on failure too. */
int ky_archive_close(struct ky_archive *archive, struct kymo_error *err);
/* The alternative: removes what was written. NULL is allowed. */
void ky_archive_discard(struct ky_archive *archive);

#endif
