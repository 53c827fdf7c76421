/* SPDX-License-Identifier: MIT */
/* The state history: records of its file. */
#include "analysis/history/history-format.h"

#include <string.h>

/* ---- checksums ------------------------------------------------------------------------------- */

#define PRIME_1 UINT64_C(0x9e3779b97f4a7c15)
#define PRIME_2 UINT64_C(0xc2b2ae3d27d4eb4f)

static inline uint64_t history_format_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static inline uint64_t history_format_word(const uint8_t *at, size_t len)
{
	uint64_t value = 0;

	memcpy(&value, at, len);
	return value;
}

uint64_t ky_history_checksum(uint64_t seed, const void *data, size_t len)
{
	const uint8_t *at = data;
	uint64_t a = seed ^ PRIME_1, b = seed ^ PRIME_2, n = len;

	for (; len >= 16; at += 16, len -= 16) {
		a = history_format_fold(a ^ history_format_word(at, 8), PRIME_2);
		b = history_format_fold(b ^ history_format_word(at + 8, 8), PRIME_1);
	}
	if (len >= 8) {
		a = history_format_fold(a ^ history_format_word(at, 8), PRIME_2);
		at += 8;
		len -= 8;
	}
	b = history_format_fold(b ^ history_format_word(at, len), PRIME_1);
	return history_format_fold(a ^ n, b ^ PRIME_2) ^ history_format_fold(b, PRIME_2);
}

uint64_t ky_record_checksum(const struct ky_record_head *head, uint64_t offset, const void *payload)
{
	uint64_t seed =
		ky_history_checksum(offset, head, offsetof(struct ky_record_head, checksum));

	return ky_history_checksum(seed, payload, head->bytes);
}

/* ---- numbers --------------------------------------------------------------------------------- */

uint64_t ky_bytes_long(struct ky_bytes *bytes)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; shift < 64 && bytes->at < bytes->end; shift += 7) {
		uint64_t byte = *bytes->at++;

		if (shift == 63 && byte > 1)
			break;
		value |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	bytes->bad = true;
	bytes->at = bytes->end;
	return 0;
}

static uint8_t get_byte(struct ky_bytes *bytes)
{
	if (bytes->at == bytes->end) {
		bytes->bad = true;
		return 0;
	}
	return *bytes->at++;
}

int64_t ky_bytes_signed(struct ky_bytes *bytes)
{
	uint64_t value = ky_bytes_varint(bytes);

	return (int64_t)(value >> 1 ^ -(value & 1));
}

#define VARINT_MAX 10

static char *history_format_put_varint(char *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*out++ = (char)(value | 0x80);
	*out++ = (char)value;
	return out;
}

void ky_put_varint(struct ky_strbuf *out, uint64_t value)
{
	if (ky_strbuf_reserve(out, VARINT_MAX))
		out->len = (size_t)(history_format_put_varint(out->data + out->len, value) -
				    out->data);
}

void ky_put_signed(struct ky_strbuf *out, int64_t value)
{
	ky_put_varint(out, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

/* Adds @span to @begin; false: that is no time. */
static bool later(int64_t begin_ns, uint64_t span, int64_t *end_ns)
{
	return !__builtin_add_overflow(begin_ns, span, end_ns);
}

static void history_format_put_states(struct ky_strbuf *out, uint32_t n, const uint64_t *states)
{
	ky_put_varint(out, n);
	for (uint32_t i = 0; i < n; i++)
		ky_put_varint(out, states[i]);
}

/* At most @max. Returns how many. */
static uint32_t get_states(struct ky_bytes *bytes, uint32_t max, uint64_t *states)
{
	uint64_t n = ky_bytes_varint(bytes);

	if (n > max) {
		bytes->bad = true;
		return 0;
	}
	for (uint64_t i = 0; i < n; i++) {
		states[i] = ky_bytes_varint(bytes);
		bytes->bad |= ky_state_kind(states[i]) >= KY_STATE_KINDS;
	}
	return (uint32_t)n;
}

/* ---- leaves ------------------------------------------------------------------------------------ */

/*
 * What follows a state depends on it and on the one before: after a call comes user space, and what comes
 * then depends on that call. So only a state that is not what followed last time takes a byte.
 */
struct follow {
	uint8_t codes[256];
	uint8_t last, before;
};

static inline uint8_t *guess(struct follow *follow)
{
	return &follow->codes[(uint8_t)(follow->last + follow->before * 37u)];
}

static inline void follow_on(struct follow *follow, uint8_t code)
{
	follow->before = follow->last;
	follow->last = code;
}

void ky_leaf_put(struct ky_strbuf *out, int64_t begin_ns, uint32_t n, const uint64_t *durations,
		 const uint8_t *codes, uint32_t n_states, const uint64_t *states)
{
	struct follow follow = {{0}, 0, 0};
	char *at;

	ky_put_varint(out, n);
	history_format_put_states(out, n_states, states);
	ky_put_signed(out, begin_ns);
	if (!ky_strbuf_reserve(out, (size_t)n * (VARINT_MAX + 1)))
		return;
	at = out->data + out->len;
	for (uint32_t i = 0; i < n; i++) {
		uint8_t *guessed = guess(&follow);
		bool miss = *guessed != codes[i];

		at = history_format_put_varint(at, durations[i] << 1 | miss);
		if (miss)
			*at++ = (char)codes[i];
		*guessed = codes[i];
		follow_on(&follow, codes[i]);
	}
	out->len = (size_t)(at - out->data);
}

bool ky_leaf_get(struct ky_bytes *bytes, struct ky_leaf *leaf)
{
	struct follow follow = {{0}, 0, 0};
	uint64_t n = ky_bytes_varint(bytes);
	int64_t ns;

	leaf->n = 0;
	if (n > KY_LEAF_INTERVALS)
		return false;
	leaf->n_states = get_states(bytes, KY_LEAF_STATES, leaf->states);
	leaf->begin_ns = ns = ky_bytes_signed(bytes);
	if (bytes->bad || (n && !leaf->n_states))
		return false;
	for (uint64_t i = 0; i < n; i++) {
		uint8_t *guessed = guess(&follow);
		uint64_t token = ky_bytes_varint(bytes);

		if (token & 1) {
			if (bytes->at == bytes->end)
				return false;
			*guessed = *bytes->at++;
		}
		if (*guessed >= leaf->n_states || !later(ns, token >> 1, &ns))
			return false;
		leaf->durations[i] = token >> 1;
		leaf->codes[i] = *guessed;
		follow_on(&follow, *guessed);
	}
	leaf->n = (uint32_t)n;
	leaf->end_ns = ns;
	return !bytes->bad;
}

/* ---- entries ----------------------------------------------------------------------------------- */

/* The number of @state among @n @states, which has room for one more; added if it is new. */
static uint32_t history_format_number_of(uint64_t *states, uint32_t *n, uint64_t state)
{
	for (uint32_t i = *n; i-- > 0;) {
		if (states[i] == state)
			return i;
	}
	states[*n] = state;
	return (*n)++;
}

/* A cell with one state is filled by it. Of streams, shares are densities. */
static bool has_share(const struct ky_entry *entry, uint32_t c)
{
	return entry->more >> c & 1 || ky_state_kind(entry->states[c]) == KY_STATE_EVENTS;
}

/* Shares, and curves where there are several states. */
static void put_parts(struct ky_strbuf *out, const struct ky_entry *entry)
{
	char bytes[2 * KY_CELLS];
	size_t n = 0;

	for (uint32_t c = 0; c < KY_CELLS; c++) {
		if (has_share(entry, c))
			bytes[n++] = (char)entry->shares[c];
	}
	for (uint32_t c = 0; c < KY_CELLS; c++) {
		if (entry->more >> c & 1)
			bytes[n++] = (char)entry->curve[c];
	}
	ky_strbuf_add(out, bytes, n);
}

static void get_parts(struct ky_bytes *bytes, struct ky_entry *entry)
{
	for (uint32_t c = 0; c < KY_CELLS; c++)
		entry->shares[c] = has_share(entry, c) ? get_byte(bytes) : UINT8_MAX;
	for (uint32_t c = 0; c < KY_CELLS; c++)
		entry->curve[c] =
			entry->more >> c & 1 ? get_byte(bytes) : ky_whole_curve(entry->states[c]);
}

void ky_entries_put(struct ky_strbuf *out, const struct ky_entry *entries, uint32_t n)
{
	uint64_t states[KY_NODE_ENTRIES * KY_CELLS];
	uint32_t codes[KY_NODE_ENTRIES][KY_CELLS];
	uint32_t n_states = 0;

	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t c = 0; c < KY_CELLS; c++)
			codes[i][c] =
				history_format_number_of(states, &n_states, entries[i].states[c]);
	}
	ky_put_varint(out, n);
	history_format_put_states(out, n_states, states);
	ky_put_signed(out, n ? entries[0].begin_ns : 0);
	for (uint32_t i = 0; i < n; i++) {
		const struct ky_entry *entry = &entries[i];

		ky_put_varint(out, entry->offset);
		ky_put_varint(out, (uint64_t)entry->end_ns - (uint64_t)entry->begin_ns);
		ky_put_varint(out, entry->count);
		ky_put_varint(out, entry->more);
		for (uint32_t c = 0; c < KY_CELLS; c++)
			ky_put_varint(out, codes[i][c]);
		put_parts(out, entry);
	}
}

static bool get_entry(struct ky_bytes *bytes, struct ky_entry *entry, const uint64_t *states,
		      uint32_t n_states, int64_t *ns)
{
	uint64_t more;

	entry->offset = ky_bytes_varint(bytes);
	entry->begin_ns = *ns;
	if (!later(*ns, ky_bytes_varint(bytes), ns))
		return false;
	entry->end_ns = *ns;
	entry->count = ky_bytes_varint(bytes);
	more = ky_bytes_varint(bytes);
	if (more > UINT32_MAX || bytes->bad)
		return false;
	entry->more = (uint32_t)more;
	for (uint32_t c = 0; c < KY_CELLS; c++) {
		uint64_t code = ky_bytes_varint(bytes);

		if (code >= n_states)
			return false;
		entry->states[c] = states[code];
	}
	get_parts(bytes, entry);
	return !bytes->bad;
}

bool ky_entries_get(struct ky_bytes *bytes, struct ky_entry *entries, uint32_t *n)
{
	uint64_t states[KY_NODE_ENTRIES * KY_CELLS];
	uint64_t many = ky_bytes_varint(bytes);
	uint32_t n_states;
	int64_t ns;

	*n = 0;
	if (many > KY_NODE_ENTRIES)
		return false;
	n_states = get_states(bytes, KY_NODE_ENTRIES * KY_CELLS, states);
	ns = ky_bytes_signed(bytes);
	for (uint64_t i = 0; i < many; i++) {
		if (!get_entry(bytes, &entries[i], states, n_states, &ns))
			return false;
	}
	*n = (uint32_t)many;
	return !bytes->bad;
}
