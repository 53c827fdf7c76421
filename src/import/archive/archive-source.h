/* SPDX-License-Identifier: MIT */
/*
 * The unpacked bytes of a file that gzip, zstd or xz has compressed. libarchive has filters for these, too, but they drop what
 * they unpacked last before damage, and the one of gzip does not compare checksums.
 *
 * Threads: one at a time per source.
 */
#ifndef KY_IMPORT_ARCHIVE_SOURCE_H
#define KY_IMPORT_ARCHIVE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

struct ky_archive_source;

/*
 * Opens the file @fd, which stays the caller's and is read from its begin. *@source: NULL for a file that is not compressed in one of these ways.
 * 0, KYMO_E_MEMORY, KYMO_E_UNSUPPORTED (the library is missing).
 */
int ky_archive_source_open(int fd, struct ky_archive_source **source, struct kymo_error *err);
/* NULL is allowed. */
void ky_archive_source_close(struct ky_archive_source *source);

/* The number of bytes that come next, at *@data, valid until the next call. 0: the end, or the begin of damage. */
size_t ky_archive_source_read(struct ky_archive_source *source, const void **data);

/* After the last byte: what the damage is, and its place in the file, *@offset_bytes; NULL: the data are whole. */
const char *ky_archive_source_damage(const struct ky_archive_source *source,
				     uint64_t *offset_bytes);

/* Nothing has been unpacked so far. */
bool ky_archive_source_is_empty(const struct ky_archive_source *source);
/* The source has ended because the data need more memory than a decoder gets; the data may be whole. */
bool ky_archive_source_is_too_large(const struct ky_archive_source *source);

#endif
