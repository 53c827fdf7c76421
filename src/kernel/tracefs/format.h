/* SPDX-License-Identifier: MIT */
/*
 * The kernel's description of its events: tracefs's events/SYSTEM/EVENT/format, and of its
 * ring buffer pages: events/header_page. The text is not trusted: what does not fit is an
 * error, sizes are bounded, and offsets stay within one record.
 *
 * Threads: any, on different arenas.
 */
#ifndef KY_KERNEL_TRACEFS_FORMAT_H
#define KY_KERNEL_TRACEFS_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/arena.h"

#define KY_FORMAT_MAX_FIELDS 128
#define KY_FORMAT_MAX_BYTES  8192 /* of the fixed part of a record */

enum ky_format_kind {
	KY_FORMAT_INT,	     /* 1, 2, 4 or 8 bytes */
	KY_FORMAT_POINTER,   /* an address, 4 or 8 bytes */
	KY_FORMAT_TEXT,	     /* char NAME[N] */
	KY_FORMAT_ARRAY,     /* @elements of @element_bytes; anything else, as bytes, too */
	KY_FORMAT_LOC_TEXT,  /* __data_loc char[] NAME, __rel_loc: elsewhere in the record */
	KY_FORMAT_LOC_ARRAY, /* the same, of integers */
	KY_FORMAT_REST_TEXT, /* char NAME[] or char NAME, size 0: to the record's end */
};

/* A value of a field that has a name. */
struct ky_format_label {
	const char *text;
	int64_t value; /* as the field holds it: sign-extended, or its bits */
};

struct ky_format_field {
	const char *name;
	const char *type; /* as the kernel writes it, without the array part */
	enum ky_format_kind kind;
	uint16_t offset, size; /* bytes within the record */
	bool is_signed;	       /* of an integer, or of an array's elements */
	bool is_relative;      /* LOC_*: counted from the end of this field, not of the record */
	uint8_t element_bytes; /* ARRAY, LOC_ARRAY: 1, 2, 4, 8 */
	uint16_t elements;     /* ARRAY, TEXT */
	/* What print-fmt.h finds; without it no labels, and base 0: nothing is said. */
	uint8_t base; /* 8, 16 */
	uint16_t n_labels;
	const struct ky_format_label *labels; /* of an INT */
};

struct ky_format {
	const char *name;
	uint16_t id;			/* common_type of its records */
	struct ky_format_field *fields; /* without common_* */
	size_t n_fields;
	uint16_t fixed_bytes;		 /* the end of the last field */
	uint16_t type_offset, type_size; /* common_type */
	uint16_t pid_offset;		 /* common_pid, always 4 bytes */
};

/*
 * Read a format file. Names and arrays live in @arena.
 * Returns 0, KYMO_E_FORMAT with the line, or KYMO_E_MEMORY.
 */
int ky_format_parse(struct ky_arena *arena, const char *text, size_t len, struct ky_format *format,
		    struct kymo_error *err);

/* A page (sub-buffer) of the ring. */
struct ky_page_layout {
	uint16_t time_offset;	/* u64 */
	uint16_t commit_offset; /* 4 or 8 bytes */
	uint16_t commit_bytes;
	uint16_t data_offset;
};

/* Read events/header_page. 0 or KYMO_E_FORMAT. */
int ky_page_layout_parse(const char *text, size_t len, struct ky_page_layout *layout,
			 struct kymo_error *err);

#endif
