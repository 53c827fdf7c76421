/* SPDX-License-Identifier: MIT */
/*
 * A filter of Kymo's language (docs/filter.md), bound to one event class, said in the language of
 * tracefs's `filter` files, so that the kernel does not even record what is not wanted:
 *
 *	next_prio < 0 && next_comm =~ "ngin*"   ->   (next_prio < 100) && (next_comm ~ "ngin*")
 *
 * The kernel compares one field with one constant; it knows no arithmetic. So the text may ask for
 * less than the filter: everything for which the filter is true passes it, but not the reverse.
 *
 * Threads: any.
 */
#ifndef KY_KERNEL_EVENTS_KERNEL_FILTER_H
#define KY_KERNEL_EVENTS_KERNEL_FILTER_H

#include "base/strbuf.h"
#include "kernel/events/events.h"
#include "query/filter.h"

enum ky_kernel_filter {
	KY_KERNEL_FILTER_NONE, /* the kernel cannot decide any of it; @text is empty */
	KY_KERNEL_FILTER_PART, /* what passes may still be unwanted */
	KY_KERNEL_FILTER_ALL,  /* exactly the filter */
};

/*
 * Append to @text what the kernel shall evaluate of @filter for the events of @cls, which is of
 * traces[0] of the filter and whose verdict DEPENDS. @fields: of ky_event_fields().
 * Memory: ky_strbuf_failed(@text).
 */
enum ky_kernel_filter ky_kernel_filter(const struct ky_filter *filter,
				       const struct ky_event_class *cls,
				       const struct ky_event_field *fields, size_t n_fields,
				       struct ky_strbuf *text);

#endif
