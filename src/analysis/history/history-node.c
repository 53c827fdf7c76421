/* SPDX-License-Identifier: MIT */
/*
 * The state history: entries as bytes. Cells have prefix codes for their states and bytes for their shares. Curves are apart, as
 * pictures do without them: the difference from what the share says, by a prefix code of its length in bits.
 */
#include "analysis/history/history-code.h"

#define NODE_CELLS (KY_NODE_ENTRIES * KY_CELLS)
#define LANES	   2u
#define OWN_STATES 64u /* above that, a code of its own is larger than what it saves */
#define CLASSES	   9u  /* of differences: 0 to 8 bits */
#define SLOTS	   1024u

/* A cell with one state is filled by it. Of streams, shares are densities. */
static inline bool has_share(const struct ky_entry *entry, uint32_t c)
{
	return entry->more >> c & 1 || ky_state_kind(entry->states[c]) == KY_STATE_EVENTS;
}

/* What the curve would be, if as much as possible were active, or as little, and the difference goes one way. */
static inline uint8_t bend(const struct ky_entry *entry, uint32_t c, uint8_t value)
{
	if (ky_state_kind(entry->states[c]) == KY_STATE_VALUE)
		return (uint8_t)(entry->shares[c] - value);
	if (!ky_whole_curve(entry->states[c]))
		return (uint8_t)(UINT8_MAX - entry->shares[c] - value);
	return (uint8_t)(value - entry->shares[c]);
}

static inline uint8_t unbend(const struct ky_entry *entry, uint32_t c, uint8_t value)
{
	if (ky_state_kind(entry->states[c]) == KY_STATE_VALUE)
		return (uint8_t)(entry->shares[c] - value);
	if (!ky_whole_curve(entry->states[c]))
		return (uint8_t)(UINT8_MAX - entry->shares[c] - value);
	return (uint8_t)(value + entry->shares[c]);
}

/* ---- putting ------------------------------------------------------------------------------------- */

/* All cells of some entries, in the order of time. */
struct cells {
	uint32_t n, n_states;
	uint64_t states[NODE_CELLS];
	uint16_t codes[NODE_CELLS];
	uint16_t slots[SLOTS]; /* numbers of states + 1, by hash */
};

static uint16_t history_node_number_of(struct cells *cells, uint64_t state)
{
	uint32_t at = (uint32_t)(state * UINT64_C(0x9e3779b97f4a7c15) >> 40) % SLOTS;

	while (cells->slots[at]) {
		if (cells->states[cells->slots[at] - 1] == state)
			return cells->slots[at] - 1;
		at = (at + 1) % SLOTS;
	}
	cells->states[cells->n_states] = state;
	cells->slots[at] = (uint16_t)++cells->n_states;
	return cells->slots[at] - 1;
}

/* Numbers of the states, which go to @out. */
static void number_cells(struct cells *cells, struct ky_strbuf *out, const struct ky_entry *entries,
			 uint32_t n)
{
	uint16_t order[NODE_CELLS];

	cells->n = n * KY_CELLS;
	cells->n_states = 0;
	memset(cells->slots, 0, sizeof(cells->slots));
	for (uint32_t i = 0; i < cells->n; i++)
		cells->codes[i] =
			history_node_number_of(cells, entries[i / KY_CELLS].states[i % KY_CELLS]);
	ky_states_put(out, cells->n_states, cells->states, order);
	for (uint32_t i = 0; i < cells->n; i++)
		cells->codes[i] = order[cells->codes[i]];
}

static void put_lane(struct ky_strbuf *out, const uint8_t *bytes, const struct ky_bits_out *bits)
{
	ky_put_varint(out, (uint64_t)(ky_bits_end(bits) - bytes));
	ky_strbuf_add(out, (const char *)bytes, (size_t)(ky_bits_end(bits) - bytes));
}

static void history_node_put_states(struct ky_strbuf *out, const struct cells *cells)
{
	uint32_t counts[KY_CODE_SYMBOLS] = {0};
	uint16_t words[KY_CODE_SYMBOLS];
	uint8_t bytes[NODE_CELLS * 2];
	struct ky_code code;

	for (uint32_t i = 0; i < cells->n; i++)
		counts[cells->codes[i]]++;
	if (cells->n_states <= OWN_STATES) {
		ky_code_make(&code, counts, cells->n_states);
		ky_code_put(out, &code);
	} else {
		ky_code_make_flat(&code, cells->n_states);
	}
	(void)ky_code_words(&code, words);
	for (uint32_t lane = 0; lane < LANES; lane++) {
		struct ky_bits_out bits = {.at = bytes};

		for (uint32_t i = lane; i < cells->n; i += LANES)
			ky_bits_put(&bits, words[cells->codes[i]], code.bits[cells->codes[i]]);
		put_lane(out, bytes, &bits);
	}
}

static void history_node_put_shares(struct ky_strbuf *out, const struct ky_entry *entries,
				    uint32_t n)
{
	char bytes[NODE_CELLS];
	size_t len = 0;

	for (uint32_t i = 0; i < n * KY_CELLS; i++) {
		if (has_share(&entries[i / KY_CELLS], i % KY_CELLS))
			bytes[len++] = (char)entries[i / KY_CELLS].shares[i % KY_CELLS];
	}
	ky_strbuf_add(out, bytes, len);
}

static void history_node_put_curves(struct ky_strbuf *out, const struct ky_entry *entries,
				    uint32_t n)
{
	uint8_t bends[NODE_CELLS], bytes[NODE_CELLS * 3];
	struct ky_bits_out bits = {.at = bytes};
	uint32_t counts[CLASSES] = {0}, len = 0;
	uint16_t words[KY_CODE_SYMBOLS];
	struct ky_code code;

	for (uint32_t i = 0; i < n * KY_CELLS; i++) {
		const struct ky_entry *entry = &entries[i / KY_CELLS];

		if (entry->more >> i % KY_CELLS & 1) {
			bends[len] = bend(entry, i % KY_CELLS, entry->curve[i % KY_CELLS]);
			counts[ky_bits_class(bends[len++])]++;
		}
	}
	ky_code_make(&code, counts, CLASSES);
	ky_code_put(out, &code);
	(void)ky_code_words(&code, words);
	for (uint32_t i = 0; i < len; i++) {
		uint32_t class = ky_bits_class(bends[i]);

		ky_bits_put(&bits, words[class], code.bits[class]);
		if (class > 1)
			ky_bits_put(&bits, bends[i] & ((1u << (class - 1)) - 1), class - 1);
	}
	put_lane(out, bytes, &bits);
}

void ky_entries_put(struct ky_strbuf *out, const struct ky_entry *entries, uint32_t n)
{
	struct cells cells;
	uint16_t len; /* of all cells: some thousand bytes */
	size_t at;

	ky_put_varint(out, n);
	if (!n)
		return;
	ky_put_signed(out, entries[0].begin_ns);
	for (uint32_t i = 0; i < n; i++) {
		ky_put_varint(out, entries[i].offset);
		ky_put_varint(out, (uint64_t)entries[i].end_ns - (uint64_t)entries[i].begin_ns);
		ky_put_varint(out, entries[i].count);
		ky_strbuf_add(out, (const char *)&entries[i].more, sizeof(entries[i].more));
	}
	at = out->len;
	ky_strbuf_add(out, "\0", sizeof(len));
	number_cells(&cells, out, entries, n);
	history_node_put_states(out, &cells);
	history_node_put_shares(out, entries, n);
	history_node_put_curves(out, entries, n);
	len = (uint16_t)(out->len - at - sizeof(len));
	if (!ky_strbuf_failed(out))
		memcpy(out->data + at, &len, sizeof(len));
}

/* ---- getting --------------------------------------------------------------------------------------- */

static bool get_lane(struct ky_bytes *bytes, struct ky_bits_in *lane)
{
	uint64_t len = ky_bytes_varint(bytes);

	if (bytes->bad || len > (uint64_t)(bytes->end - bytes->at))
		return false;
	*lane = (struct ky_bits_in){.at = bytes->at, .end = bytes->at + len};
	bytes->at += len;
	return true;
}

static bool get_heads(struct ky_bytes *bytes, struct ky_entry *entries, uint32_t n)
{
	int64_t ns = ky_bytes_signed(bytes);

	for (uint32_t i = 0; i < n; i++) {
		entries[i].offset = ky_bytes_varint(bytes);
		entries[i].begin_ns = ns;
		if (__builtin_add_overflow(ns, ky_bytes_varint(bytes), &ns))
			return false;
		entries[i].end_ns = ns;
		entries[i].count = ky_bytes_varint(bytes);
		if (bytes->bad || (size_t)(bytes->end - bytes->at) < sizeof(entries[i].more))
			return false;
		memcpy(&entries[i].more, bytes->at, sizeof(entries[i].more));
		bytes->at += sizeof(entries[i].more);
	}
	return true;
}

/* Four cells need one refill: 2 symbols of each lane. */
static bool history_node_get_cells(struct ky_bits_in lanes[LANES],
				   const struct ky_code_table *table, const uint64_t *states,
				   uint32_t n_states, struct ky_entry *entries, uint32_t n)
{
	struct ky_bits_in even = lanes[0], odd = lanes[1];
	bool bad = false;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t *to = entries[i].states;

		for (uint32_t c = 0; c < KY_CELLS; c += 4) {
			uint32_t codes[4];

			ky_bits_refill(&even);
			ky_bits_refill(&odd);
			for (uint32_t j = 0; j < 4; j += 2) {
				codes[j] = ky_bits_symbol(&even, table);
				codes[j + 1] = ky_bits_symbol(&odd, table);
			}
			for (uint32_t j = 0; j < 4; j++) {
				bad |= codes[j] >= n_states;
				to[c + j] = states[codes[j] < n_states ? codes[j] : 0];
			}
		}
	}
	return !bad && ky_bits_are_over(&even) && ky_bits_are_over(&odd);
}

static bool history_node_get_states(struct ky_bytes *bytes, struct ky_entry *entries, uint32_t n)
{
	uint64_t states[NODE_CELLS];
	struct ky_bits_in lanes[LANES];
	struct ky_code_table table;
	struct ky_code code;
	uint32_t n_states;

	if (!ky_states_get(bytes, n * KY_CELLS, states, &n_states) || !n_states)
		return false;
	if (n_states > OWN_STATES)
		ky_code_make_flat(&code, n_states);
	else if (!ky_code_get(bytes, n_states, &code))
		return false;
	return ky_code_table(&table, &code) && get_lane(bytes, &lanes[0]) &&
	       get_lane(bytes, &lanes[1]) &&
	       history_node_get_cells(lanes, &table, states, n_states, entries, n);
}

static bool history_node_get_shares(struct ky_bytes *bytes, struct ky_entry *entries, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct ky_entry *entry = &entries[i];

		if (entry->more == UINT64_MAX && bytes->end - bytes->at >= (ptrdiff_t)KY_CELLS) {
			memcpy(entry->shares, bytes->at, KY_CELLS);
			bytes->at += KY_CELLS;
			continue;
		}
		memset(entry->shares, UINT8_MAX, sizeof(entry->shares));
		for (uint32_t c = 0; c < KY_CELLS; c++) {
			if (!has_share(entry, c))
				continue;
			if (bytes->at == bytes->end)
				return false;
			entry->shares[c] = *bytes->at++;
		}
	}
	return true;
}

static void get_curve(struct ky_bits_in *lane, const struct ky_code_table *table,
		      struct ky_entry *entry, bool *bad)
{
	for (uint32_t c = 0; c < KY_CELLS; c++) {
		uint32_t class;

		entry->curve[c] = ky_whole_curve(entry->states[c]);
		if (!(entry->more >> c & 1))
			continue;
		ky_bits_refill(lane);
		class = ky_bits_symbol(lane, table);
		if (class >= CLASSES) {
			*bad = true;
			class = 0;
		}
		entry->curve[c] = unbend(
			entry, c,
			(uint8_t)(class < 2 ? class
					    : ky_bits_get(lane, class - 1) | 1u << (class - 1)));
	}
}

static bool get_curves(struct ky_bytes *bytes, bool wanted, struct ky_entry *entries, uint32_t n)
{
	struct ky_bits_in lane;
	struct ky_code_table table;
	struct ky_code code;
	bool bad = false;

	if (!ky_code_get(bytes, CLASSES, &code) || !get_lane(bytes, &lane))
		return false;
	if (!wanted)
		return true;
	if (!ky_code_table(&table, &code))
		return false;
	for (uint32_t i = 0; i < n; i++)
		get_curve(&lane, &table, &entries[i], &bad);
	return !bad && ky_bits_are_over(&lane);
}

static bool get_cells(struct ky_bytes *bytes, const struct ky_wanted *wanted,
		      struct ky_entry *entries, uint32_t n)
{
	struct ky_bytes cells = *bytes;
	uint16_t len;

	if ((size_t)(bytes->end - bytes->at) < sizeof(len))
		return false;
	memcpy(&len, bytes->at, sizeof(len));
	cells.at += sizeof(len);
	if (len > cells.end - cells.at)
		return false;
	bytes->at = cells.end = cells.at + len;
	if (!wanted || entries[0].begin_ns > wanted->end_ns ||
	    entries[n - 1].end_ns < wanted->begin_ns)
		return true;
	return history_node_get_states(&cells, entries, n) &&
	       history_node_get_shares(&cells, entries, n) &&
	       get_curves(&cells, wanted->curves, entries, n) && cells.at == cells.end;
}

bool ky_entries_get(struct ky_bytes *bytes, const struct ky_wanted *wanted,
		    struct ky_entry *entries, uint32_t *n)
{
	uint64_t many = ky_bytes_varint(bytes);

	*n = 0;
	if (many > KY_NODE_ENTRIES)
		return false;
	if (many && (!get_heads(bytes, entries, (uint32_t)many) ||
		     !get_cells(bytes, wanted, entries, (uint32_t)many)))
		return false;
	*n = (uint32_t)many;
	return !bytes->bad;
}
