/* SPDX-License-Identifier: MIT */
/*
 * The parts of an argument's expression, one after the other: from a register or the stack over members and
 * elements to the kernel's fetch argument.
 *
 * Threads: one at a time per file that the types are of.
 */
#ifndef KY_KERNEL_PROBE_PROBE_LOCATION_H
#define KY_KERNEL_PROBE_PROBE_LOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include <kymo/error.h>

#include "base/strbuf.h"
#include "kernel/probe/probe-spec.h"
#include "kernel/probe/probe-type.h"

/*
 * What a part of an expression is: a value, or the memory at @offset bytes behind value @base, or what is @offset bytes
 * behind the beginning of @words.
 */
struct ky_probe_location {
	char base[200]; /* "%di", "+8(%di)" */
	bool in_memory;
	/* A struct that is passed in registers, word by word; NULL: in one that the kernel cannot fetch. */
	const char *words[2];
	bool in_words;
	int64_t offset;
	Dwarf_Die type;
	bool has_type;
	/* A bit field. */
	unsigned int bits, bit_offset, container_bits;
};

/*
 * Take the steps of @argument, whose root is at @place.
 * 0; KYMO_E_INVALID, KYMO_E_NOT_FOUND: the types have no such step; KYMO_E_UNSUPPORTED: it cannot be fetched.
 */
int ky_probe_location_step(struct ky_probe_location *place,
			   const struct ky_probe_argument *argument, struct kymo_error *err);

/* Append how the kernel fetches @place, "+8(%di):s32", to @fetch. 0 or KYMO_E_UNSUPPORTED. */
int ky_probe_location_put(struct ky_probe_location *place, const struct ky_probe_argument *argument,
			  struct ky_strbuf *fetch, struct kymo_error *err);

#endif
