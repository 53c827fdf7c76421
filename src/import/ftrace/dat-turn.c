/* SPDX-License-Identifier: MIT */
#include "import/ftrace/dat-turn.h"

#include <string.h>

#include "import/common/foreign-file.h"
#include "kernel/tracefs/page.h"

#define COMMIT_BYTES  0x000fffffu
#define MISSED_STORED (1u << 30)
#define DELTA_MASK    ((1u << KY_RECORD_DELTA_BITS) - 1)

static void dat_turn_put(uint8_t *out, uint32_t word)
{
	memcpy(out, &word, sizeof(word));
}

/* The word that a record begins with: its type has the lowest bits of a little-endian machine, and the highest of a big-endian one. */
static uint32_t dat_turn_head(const uint8_t *bytes, bool is_big, uint8_t *out)
{
	uint32_t word = ky_foreign_u32(bytes, true), type = word & 31, delta = word >> 5;

	if (is_big) {
		type = word >> KY_RECORD_DELTA_BITS;
		delta = word & DELTA_MASK;
	}
	dat_turn_put(out, delta << 5 | type);
	return delta << 5 | type;
}

/* How many bytes belong to a record beside its first word; where the next word is a number of the ring's own, it is turned. */
static uint32_t dat_turn_body(uint32_t head, const uint8_t *bytes, uint32_t left, uint8_t *out)
{
	uint32_t type = head & 31, word;

	if (type >= 1 && type <= KY_RECORD_DATA_MAX)
		return 4 * type;
	/* The rest of the page is empty. */
	if ((type == KY_RECORD_PADDING && !(head >> 5)) || left < 4)
		return left;
	word = ky_foreign_u32(bytes, true);
	dat_turn_put(out, word);
	if (type == KY_RECORD_EXTEND || type == KY_RECORD_STAMP)
		return 4;
	/* Its own word counts. */
	return word > left ? left : (word + 3) & ~3u;
}

static void dat_turn_records(const uint8_t *bytes, uint32_t len, bool is_big, uint8_t *out)
{
	uint32_t at = 0;

	while (len - at >= 4) {
		uint32_t head = dat_turn_head(bytes + at, is_big, out + at), body;

		at += 4;
		body = dat_turn_body(head, bytes + at, len - at, out + at);
		if (!body || body > len - at)
			break;
		at += body;
	}
}

void ky_dat_turn_page(const struct ky_page_layout *layout, bool is_big, const uint8_t *bytes,
		      uint32_t len, uint8_t *out)
{
	uint32_t commit, data_end;
	uint64_t value;

	memcpy(out, bytes, len);
	if (len < layout->data_offset || len < layout->time_offset + 8u ||
	    len < (uint32_t)layout->commit_offset + layout->commit_bytes)
		return;
	value = ky_foreign_u64(bytes + layout->time_offset, true);
	memcpy(out + layout->time_offset, &value, sizeof(value));
	value = layout->commit_bytes == 8 ? ky_foreign_u64(bytes + layout->commit_offset, true)
					  : ky_foreign_u32(bytes + layout->commit_offset, true);
	commit = (uint32_t)value;
	memcpy(out + layout->commit_offset, layout->commit_bytes == 8 ? (void *)&value : &commit,
	       layout->commit_bytes);
	data_end = layout->data_offset + (commit & COMMIT_BYTES);
	if (data_end > len)
		return;
	if (commit & MISSED_STORED && len - data_end >= sizeof(value)) {
		value = layout->commit_bytes == 8 ? ky_foreign_u64(bytes + data_end, true)
						  : ky_foreign_u32(bytes + data_end, true);
		memcpy(out + data_end, &value, sizeof(value));
	}
	dat_turn_records(bytes + layout->data_offset, commit & COMMIT_BYTES, is_big,
			 out + layout->data_offset);
}
