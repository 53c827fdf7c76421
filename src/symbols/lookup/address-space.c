/* SPDX-License-Identifier: MIT */
#include "symbols/lookup/address-space.h"

#include <string.h>

void ky_address_space_fini(struct ky_address_space *space)
{
	ky_vec_fini(&space->regions);
	space->longest = 0;
}

/* The first region that begins behind @address. */
static size_t address_space_behind(const struct ky_address_space *space, uint64_t address)
{
	size_t low = 0, high = space->regions.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (space->regions.data[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert(struct ky_address_space *space, const struct ky_region *region)
{
	size_t at = address_space_behind(space, region->begin);

	if (space->regions.len >= KY_ADDRESS_SPACE_MAX)
		return KYMO_E_LIMIT;
	if (ky_vec_reserve(&space->regions, 1) < 0)
		return KYMO_E_MEMORY;
	memmove(space->regions.data + at + 1, space->regions.data + at,
		(space->regions.len - at) * sizeof(*region));
	space->regions.data[at] = *region;
	space->regions.len++;
	if (region->end - region->begin > space->longest)
		space->longest = region->end - region->begin;
	return KYMO_OK;
}

/* Ends region @at, of which [begin, end) is replaced; the rest of it stays. */
static int split(struct ky_address_space *space, size_t at, uint64_t begin, uint64_t end,
		 uint64_t time_ns)
{
	struct ky_region old = space->regions.data[at], part = old;
	int ret = KYMO_OK;

	space->regions.data[at].to_ns = time_ns;
	part.from_ns = time_ns;
	if (old.begin < begin) {
		part.end = begin;
		ret = insert(space, &part);
	}
	if (!ret && old.end > end) {
		part.begin = end;
		part.end = old.end;
		part.offset = old.offset + (end - old.begin);
		ret = insert(space, &part);
	}
	return ret;
}

/* A region that is there at @time_ns and overlaps [begin, end); SIZE_MAX: none. */
static size_t find_overlap(const struct ky_address_space *space, uint64_t begin, uint64_t end,
			   uint64_t time_ns)
{
	uint64_t first = begin > space->longest ? begin - space->longest : 0;

	for (size_t i = end ? address_space_behind(space, end - 1) : 0; i-- > 0;) {
		const struct ky_region *region = &space->regions.data[i];

		if (region->begin < first)
			break;
		if (region->begin < end && region->end > begin && region->from_ns <= time_ns &&
		    region->to_ns > time_ns)
			return i;
	}
	return SIZE_MAX;
}

int ky_address_space_cut(struct ky_address_space *space, uint64_t begin, uint64_t end,
			 uint64_t time_ns)
{
	size_t at;

	while ((at = find_overlap(space, begin, end, time_ns)) != SIZE_MAX) {
		int ret = split(space, at, begin, end, time_ns);

		if (ret)
			return ret;
	}
	return KYMO_OK;
}

int ky_address_space_add(struct ky_address_space *space, const struct ky_region *region)
{
	int ret = ky_address_space_cut(space, region->begin, region->end, region->from_ns);

	return ret ? ret : insert(space, region);
}

int ky_address_space_copy(struct ky_address_space *space, const struct ky_address_space *from,
			  uint64_t time_ns)
{
	ky_vec_foreach(&from->regions, region) {
		struct ky_region copy = *region;

		if (region->from_ns > time_ns || region->to_ns <= time_ns)
			continue;
		copy.from_ns = time_ns;
		if (ky_vec_push(&space->regions, copy) < 0)
			return KYMO_E_MEMORY;
	}
	space->longest = from->longest;
	return KYMO_OK;
}

const struct ky_region *ky_address_space_overlap(const struct ky_address_space *space,
						 uint64_t begin, uint64_t end, uint64_t time_ns)
{
	size_t at = find_overlap(space, begin, end, time_ns);

	return at == SIZE_MAX ? NULL : &space->regions.data[at];
}

const struct ky_region *ky_address_space_find(const struct ky_address_space *space,
					      uint64_t address, uint64_t time_ns)
{
	size_t at = address == UINT64_MAX ? SIZE_MAX
					  : find_overlap(space, address, address + 1, time_ns);

	return at == SIZE_MAX ? NULL : &space->regions.data[at];
}
