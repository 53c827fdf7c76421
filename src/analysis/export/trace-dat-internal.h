/* SPDX-License-Identifier: MIT */
#ifndef KY_ANALYSIS_EXPORT_TRACE_DAT_INTERNAL_H
#define KY_ANALYSIS_EXPORT_TRACE_DAT_INTERNAL_H

#include "analysis/export/event-words.h"
#include "analysis/export/trace-dat.h"
#include "base/strbuf.h"

#define KY_DAT_PAGE_BYTES  4096
#define KY_DAT_PAGE_HEAD   16	/* time, and bytes of events */
#define KY_DAT_EVENT_BYTES 3584 /* of an event at most */
#define KY_DAT_FIELDS_MAX  192	/* 16 bytes each at most, so that they fit into an event */
#define KY_DAT_FIRST_ID	   100	/* smaller ones are ftrace's own */

/* ---- trace-dat-format.c: an event class, as a format of the kernel --------------------------------- */

enum ky_dat_kind {
	KY_DAT_INT,
	KY_DAT_COMM, /* char[16] */
	KY_DAT_TEXT, /* of any length: everything that is no number */
};

struct ky_dat_field {
	const char *name; /* in the trace */
	enum ky_dat_kind kind;
	uint32_t offset, size;
	bool is_signed, is_hex, is_prio;
};

struct ky_dat_class {
	struct ky_event_words words;
	bool is_used; /* else the file has no such events */
	uint16_t id;
	uint32_t head_bytes; /* of the fields; texts follow */
	struct ky_dat_field *fields;
	size_t n_fields;
};

/* Fills @own by the class' payload; @arena keeps the fields. 0 or KYMO_E_MEMORY. */
int ky_dat_class_init(struct ky_dat_class *own, struct ky_arena *arena, const struct ky_host *host,
		      const struct ky_event_class *cls, uint16_t id);
/* The file "format" of it. */
void ky_dat_put_format(struct ky_strbuf *out, const struct ky_dat_class *cls);
/* The record of an event with this payload (NULL: none) in @out, which is empty. */
void ky_dat_put_record(struct ky_strbuf *out, const struct ky_dat_class *cls,
		       const struct ky_value *payload, int32_t tid);

/* ---- trace-dat-pages.c: the pages of a CPU ----------------------------------------------------------- */

struct ky_dat_cpu {
	int fd; /* complete pages */
	uint64_t n_pages;
	uint8_t page[KY_DAT_PAGE_BYTES];
	uint32_t used; /* bytes of events in the page */
	uint64_t last_ns;
	bool lost; /* events were lost before the page */
};

/* 0, KYMO_E_IO ... */
int ky_dat_cpu_open(struct ky_dat_cpu *cpu, const char *directory, struct kymo_error *err);
void ky_dat_cpu_close(struct ky_dat_cpu *cpu);
int ky_dat_cpu_add(struct ky_dat_cpu *cpu, uint64_t ns, const struct ky_strbuf *record,
		   struct kymo_error *err);
/* The page at hand is complete. */
int ky_dat_cpu_flush(struct ky_dat_cpu *cpu, struct kymo_error *err);

#endif
