/* SPDX-License-Identifier: MIT */
/*
 * Counts and sums of the kernel's events by their fields. A BPF program counts where the event happens; no event leaves the kernel.
 *
 *	ky_count_open(&options, &count, err);
 *	ky_count_start(count, err);
 *	loop: wait; ky_count_read(count, err); ky_count_rows(count, &n) ...
 *	ky_count_stop(count); ky_count_read(count, err);
 *
 * Threads: one at a time per object.
 */
#ifndef KY_KERNEL_COUNT_COUNT_H
#define KY_KERNEL_COUNT_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "kernel/events/events.h"

struct ky_count;

struct ky_count_options {
	const char *rule; /* as ky_catalogue_select_rule() takes it: "EVENTS [if EXPR]" */
	const char *const *by;
	size_t n_by;	   /* 0: by event */
	const char *sum;   /* a field; NULL: none */
	uint32_t max_keys; /* 0: a default */
	bool follows;	   /* only processes of ky_count_follow() and their children */
};

/* A field of --by. */
struct ky_count_column {
	const char *name;
	bool is_text, is_signed, is_event;
	bool is_kernel_stack, is_user_stack;
	bool is_device; /* a number: the major in bits 20 to 31, the minor below */
	uint8_t base;	/* of a number: 10 or 16 */
	const struct ky_format_label *labels;
	uint16_t n_labels;
	uint32_t at, text_bytes; /* in a key */
};

/* What happened since the last read. */
struct ky_count_row {
	const uint8_t *key;
	uint64_t count;
	int64_t sum;
};

/*
 * Load the programs; nothing counts yet. 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (no BPF), KYMO_E_NOT_FOUND (no such event),
 * KYMO_E_INVALID (a field that no event has, or a filter that the kernel cannot evaluate), KYMO_E_LIMIT, KYMO_E_MEMORY, KYMO_E_IO.
 */
int ky_count_open(const struct ky_count_options *options, struct ky_count **count,
		  struct kymo_error *err);
void ky_count_close(struct ky_count *count); /* NULL is allowed */

/* Process @pid and its children count. 0, KYMO_E_IO. */
int ky_count_follow(struct ky_count *count, pid_t pid, struct kymo_error *err);
int ky_count_start(struct ky_count *count, struct kymo_error *err);
void ky_count_stop(struct ky_count *count);

/* A period ends. 0, KYMO_E_MEMORY, KYMO_E_IO. */
int ky_count_read(struct ky_count *count, struct kymo_error *err);
/* The rows of the period, those with the greatest sum, or count, first. Valid until the next read. */
const struct ky_count_row *ky_count_rows(const struct ky_count *count, size_t *n);

const struct ky_count_column *ky_count_columns(const struct ky_count *count, size_t *n);
/* Had the event this field? */
bool ky_count_has(const struct ky_count *count, const struct ky_count_row *row, size_t column);
/* The number in a row; of an event's column its place in ky_count_event(). */
uint64_t ky_count_number(const struct ky_count *count, const struct ky_count_row *row,
			 size_t column);
/* The text in a row, with its end. */
const char *ky_count_text(const struct ky_count *count, const struct ky_count_row *row,
			  size_t column);
/* The frames of a row's call stack, the innermost first. At most @max; 0: it is not known. */
size_t ky_count_stack(const struct ky_count *count, const struct ky_count_row *row, size_t column,
		      uint64_t *addresses, size_t max);
/* The name of event @i, or of the @i-th of ky_count_n_events(). */
const char *ky_count_event(const struct ky_count *count, uint64_t i);
size_t ky_count_n_events(const struct ky_count *count);

/* Since the start: events without room for their key; runs that the kernel skipped, as a program ran on the CPU. */
void ky_count_losses(const struct ky_count *count, uint64_t *lost, uint64_t *missed);

#endif
