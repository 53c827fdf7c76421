/* SPDX-License-Identifier: MIT */
/*
 * What a process has mapped where, and from when to when.
 * Threads: one at a time per struct.
 */
#ifndef KY_SYMBOLS_ADDRESS_SPACE_H
#define KY_SYMBOLS_ADDRESS_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "symbols/lookup/symbols.h"

#define KY_ADDRESS_SPACE_MAX (1u << 18)

struct ky_region {
	uint64_t begin, end;
	uint64_t offset; /* of begin */
	uint64_t from_ns, to_ns;
	uint32_t object;
	bool is_image;
};

struct ky_address_space {
	KY_VEC(struct ky_region) regions; /* by begin, then by from_ns */
	uint64_t longest;		  /* of all regions */
};

void ky_address_space_fini(struct ky_address_space *space);
/* Ends what lies there at @time_ns. 0 or KYMO_E_MEMORY. */
int ky_address_space_cut(struct ky_address_space *space, uint64_t begin, uint64_t end,
			 uint64_t time_ns);
/* Adds a region, after it has cut what it covers. 0, KYMO_E_LIMIT or KYMO_E_MEMORY. */
int ky_address_space_add(struct ky_address_space *space, const struct ky_region *region);
/* Adds what @from has at @time_ns to an empty space. 0 or KYMO_E_MEMORY. */
int ky_address_space_copy(struct ky_address_space *space, const struct ky_address_space *from,
			  uint64_t time_ns);
/* One of the regions that overlap [begin, end) at @time_ns; NULL: nothing lay there. */
const struct ky_region *ky_address_space_overlap(const struct ky_address_space *space,
						 uint64_t begin, uint64_t end, uint64_t time_ns);
/* NULL: nothing lay there then. */
const struct ky_region *ky_address_space_find(const struct ky_address_space *space,
					      uint64_t address, uint64_t time_ns);

#endif
