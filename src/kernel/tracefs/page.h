/* SPDX-License-Identifier: MIT */
/*
 * A page (sub-buffer) of the kernel's ring: a header (when it begins, how much is in it, whether
 * events were lost before it), then records. Nothing in it is trusted.
 */
#ifndef KY_KERNEL_TRACEFS_PAGE_H
#define KY_KERNEL_TRACEFS_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <kymo/error.h>

#include "kernel/tracefs/format.h"

/* What is to be read of a page: the records from `at` to `end`. */
struct ky_page {
	const uint8_t *records; /* what lies behind the header; borrowed */
	uint32_t at, end;	/* bytes from `records` */
	uint64_t cycles;	/* the time before the record at `at` */
	bool missed;		/* events were lost before this page */
	uint64_t lost;		/* how many; 0: the page has no room to say */
};

/*
 * All of the page at @data, which is @len bytes long; it must live as long as @page is used.
 * 0, or KYMO_E_FORMAT: the page contradicts itself.
 */
int ky_page_open(const struct ky_page_layout *layout, const uint8_t *data, uint32_t len,
		 struct ky_page *page, struct kymo_error *err);

/*
 * Go to the record at @to (not beyond page->end) without looking at those before it, other than for
 * the time. Stops early where the records make no sense.
 */
void ky_page_skip(struct ky_page *page, uint32_t to);

/* ---- records -------------------------------------------------------------------------- */

enum ky_record_kind {
	KY_RECORD_EVENT,
	KY_RECORD_TIME, /* or something discarded: nothing but *cycles and `next` */
	KY_RECORD_END,	/* the rest is empty */
	KY_RECORD_BAD,	/* it does not fit into the page */
};

struct ky_record {
	uint32_t data, len; /* of an event: bytes from `records`, bytes */
	uint32_t next;	    /* where the next record is */
	uint32_t delta;	    /* of an event: cycles since the record before it */
};

/* type_len of a record: up to 28 it is a length in words. */
enum {
	KY_RECORD_LONG = 0, /* the length stands in the next word */
	KY_RECORD_DATA_MAX = 28,
	KY_RECORD_PADDING = 29,
	KY_RECORD_EXTEND = 30,
	KY_RECORD_STAMP = 31,
};

#define KY_RECORD_DELTA_BITS 27
/* An absolute stamp has 59 bits; the others are those of the time before it. */
#define KY_RECORD_STAMP_MASK ((UINT64_C(1) << 59) - 1)

static inline uint32_t ky_record_word(const uint8_t *at)
{
	uint32_t word;

	memcpy(&word, at, 4);
	return word;
}

static inline uint64_t ky_record_long(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, 8);
	return value;
}

static inline uint64_t ky_record_stamp(uint64_t stamp, uint64_t before)
{
	stamp |= before & ~KY_RECORD_STAMP_MASK;
	if (stamp < before && (before & ~KY_RECORD_STAMP_MASK))
		stamp += KY_RECORD_STAMP_MASK + 1;
	return stamp;
}

/*
 * The record at @at, of those that end at @end. *cycles: the time so far, moved on by a record
 * of time; an event's own `delta` is for the caller to add. Inline: this is once per event.
 */
static inline enum ky_record_kind ky_record_parse(const uint8_t *records, uint32_t at, uint32_t end,
						  uint64_t *cycles, struct ky_record *record)
{
	uint32_t head, type, word;

	if (at + 4 > end)
		return KY_RECORD_END;
	head = ky_record_word(records + at);
	type = head & 31;
	record->delta = head >> 5;
	record->data = at + 4;
	if (__builtin_expect(type >= 1 && type <= KY_RECORD_DATA_MAX, 1)) {
		record->len = type * 4;
	} else {
		if (end - record->data < 4)
			return KY_RECORD_END;
		word = ky_record_word(records + record->data);
		if (type == KY_RECORD_EXTEND || type == KY_RECORD_STAMP) {
			uint64_t time = ((uint64_t)word << KY_RECORD_DELTA_BITS) + record->delta;

			*cycles = type == KY_RECORD_EXTEND ? *cycles + time
							   : ky_record_stamp(time, *cycles);
			record->next = record->data + 4;
			return KY_RECORD_TIME;
		}
		if (type == KY_RECORD_PADDING) {
			if (!record->delta || word > end - record->data)
				return KY_RECORD_END;
			record->next = record->data + word;
			return KY_RECORD_TIME;
		}
		/* KY_RECORD_LONG: the length counts its own word. */
		if (word < 4)
			return KY_RECORD_BAD;
		record->data += 4;
		record->len = word - 4;
	}
	if (record->len > end - record->data)
		return KY_RECORD_BAD;
	record->next = record->data + ((record->len + 3) & ~3u);
	return KY_RECORD_EVENT;
}

#endif
