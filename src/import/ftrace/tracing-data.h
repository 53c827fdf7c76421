/* SPDX-License-Identifier: MIT */
/*
 * What trace-cmd and perf write about the kernel's events in front of their records: byte order, the page's
 * header, and the description of each event, as tracefs has them.
 *
 * Threads: one at a time per object.
 */
#ifndef KY_IMPORT_TRACING_DATA_H
#define KY_IMPORT_TRACING_DATA_H

#include "base/arena.h"
#include "base/vec.h"
#include "import/common/foreign-file.h"

struct ky_tracing_event {
	const char *system, *text; /* @text: @len bytes, and a NUL */
	size_t len;
	uint32_t id; /* common_type; KY_TRACING_NO_ID: the text has none */
};

#define KY_TRACING_NO_ID UINT32_MAX

struct ky_tracing_data {
	struct ky_arena arena;
	bool big_endian;
	uint8_t long_bytes;
	uint32_t page_bytes;
	const char *header_page; /* NULL: the file has none */
	size_t header_page_len;
	const char *texts; /* of trace_printk() and others, by their addresses; NULL: none */
	size_t texts_len;
	size_t texts_bytes; /* of their copies in descriptions */
	size_t n_told;	    /* events that have theirs: a pipe of perf may have several sections */
	KY_VEC(struct ky_tracing_event) events;
};

void ky_tracing_data_init(struct ky_tracing_data *data);
void ky_tracing_data_fini(struct ky_tracing_data *data);

/* The number in the line "ID:" of an event's description, or KY_TRACING_NO_ID. */
uint32_t ky_tracing_event_id(const char *text);

/*
 * Reads the sections that begin with the magic number at byte *@at of @file: perf's section, or the head of
 * trace.dat version 6. Moves *@at behind them. Sets file->swap by the sections' byte order.
 * KYMO_E_FORMAT with the offset, KYMO_E_LIMIT, KYMO_E_MEMORY, KYMO_E_IO.
 */
int ky_tracing_data_read(struct ky_tracing_data *data, struct ky_foreign_file *file, uint64_t *at,
			 struct kymo_error *err);

/*
 * Reads one kind of them, as the sections of trace.dat version 7 have them: the two headers with their names; the formats
 * of ftrace's own events; those of all systems; the kernel's texts. Each moves *@at.
 */
int ky_tracing_data_read_headers(struct ky_tracing_data *data, struct ky_foreign_file *file,
				 uint64_t *at, struct kymo_error *err);
int ky_tracing_data_read_ftrace(struct ky_tracing_data *data, struct ky_foreign_file *file,
				uint64_t *at, struct kymo_error *err);
int ky_tracing_data_read_systems(struct ky_tracing_data *data, struct ky_foreign_file *file,
				 uint64_t *at, struct kymo_error *err);
int ky_tracing_data_read_texts(struct ky_tracing_data *data, struct ky_foreign_file *file,
			       uint64_t *at, struct kymo_error *err);

/* After these: puts the kernel's texts into the descriptions of events whose fields have addresses of texts (KY_FORMAT_TEXTS). 0 or KYMO_E_MEMORY. */
int ky_tracing_data_add_texts(struct ky_tracing_data *data, struct kymo_error *err);

/* The text up to a NUL at byte *@at, at most @max bytes; moves *@at behind the NUL. Copied to the arena. NULL: @err. */
const char *ky_tracing_data_text(struct ky_tracing_data *data, struct ky_foreign_file *file,
				 uint64_t *at, size_t max, struct kymo_error *err);

#endif
