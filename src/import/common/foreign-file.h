/* SPDX-License-Identifier: MIT */
/*
 * Reading files of other programs: bytes at any place, numbers in either byte order, errors with the
 * file and offset. The file is not trusted: it may shrink meanwhile, and every length in it may be wrong.
 *
 * Threads: one at a time per file.
 */
#ifndef KY_IMPORT_FOREIGN_FILE_H
#define KY_IMPORT_FOREIGN_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <kymo/error.h>

/* The longest piece that a caller can ask for at once. */
#define KY_FOREIGN_PIECE_MAX (256u << 20)

struct ky_foreign_file {
	const char *path; /* borrowed */
	int fd;
	uint64_t size_bytes; /* at the open */
	bool swap;	     /* numbers have the other byte order; the caller sets it */
	uint8_t *window;     /* the bytes from window_at on */
	uint64_t window_at;
	size_t window_bytes, window_cap;
	const uint8_t *map;	 /* size_bytes; NULL: not mapped */
	uint64_t unpacked_bytes; /* out of compressed parts so far */
};

/* Unpacked bytes per byte of a file, and those that every file may have. */
#define KY_FOREIGN_RATIO_MAX  1024u
#define KY_FOREIGN_FREE_BYTES (UINT64_C(256) << 20)

/*
 * Open the regular file @path, which must outlive @file; @fd >= 0: its content is there, unpacked, and @path is only for messages; @fd stays
 * the caller's. 0, KYMO_E_NOT_FOUND, KYMO_E_PERMISSION, KYMO_E_IO.
 */
int ky_foreign_open(struct ky_foreign_file *file, const char *path, int fd, struct kymo_error *err);
/* A descriptor of that content alone, as above: it is the caller's. -errno. */
int ky_foreign_open_content(const char *path, int fd);
/* All zeros are allowed. */
void ky_foreign_close(struct ky_foreign_file *file);

/*
 * The @len bytes at @offset, valid until the next call. NULL: the file ends before (KYMO_E_FORMAT: "@what
 * is cut"), is unreadable (KYMO_E_IO), memory is out, or @len is above KY_FOREIGN_PIECE_MAX (KYMO_E_LIMIT).
 */
const uint8_t *ky_foreign_bytes(struct ky_foreign_file *file, uint64_t offset, uint64_t len,
				const char *what, struct kymo_error *err);

/*
 * Maps the whole file: file->map. False: it cannot be mapped. Another process may change these bytes at any time, so a number out
 * of them is read once, and what is read twice is copied first. What is cut off reads as zeros: ky_foreign_is_cut().
 */
bool ky_foreign_map(struct ky_foreign_file *file);
/* Has a part of the map been missing when it was read? */
bool ky_foreign_is_cut(const struct ky_foreign_file *file);

/* Counts @bytes that are unpacked from byte @offset. 0, or KYMO_E_LIMIT: the file unpacks to more than a trace has. */
int ky_foreign_unpack(struct ky_foreign_file *file, uint64_t offset, uint64_t bytes,
		      struct kymo_error *err);

/* Sets KYMO_E_FORMAT for byte @offset: "@what". Returns it. */
int ky_foreign_bad(const struct ky_foreign_file *file, uint64_t offset, const char *what,
		   struct kymo_error *err);

/* Whether the file @path begins with the @len bytes @magic at byte @offset. False for an unreadable file. */
bool ky_foreign_begins(const char *path, uint64_t offset, const void *magic, size_t len);

static inline uint16_t ky_foreign_u16(const uint8_t *at, bool swap)
{
	uint16_t value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap16(value) : value;
}

static inline uint32_t ky_foreign_u32(const uint8_t *at, bool swap)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap32(value) : value;
}

static inline uint64_t ky_foreign_u64(const uint8_t *at, bool swap)
{
	uint64_t value;

	memcpy(&value, at, sizeof(value));
	return swap ? __builtin_bswap64(value) : value;
}

#endif
