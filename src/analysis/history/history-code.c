/* SPDX-License-Identifier: MIT */
/* The state history: prefix codes. */
#include "analysis/history/history-code.h"

#include <stdlib.h>

#define FULL_SUM (1u << KY_CODE_BITS)

/* ---- making codes ---------------------------------------------------------------------------- */

/* A symbol, or two nodes together. */
struct code_node {
	uint32_t count;
	uint16_t parent;
	uint16_t symbol;
};

static int history_code_compare(const void *left, const void *right)
{
	const struct code_node *a = left, *b = right;

	if (a->count != b->count)
		return a->count < b->count ? -1 : 1;
	return a->symbol < b->symbol ? -1 : a->symbol > b->symbol;
}

/* The smaller one of the next symbol and the next pair. */
static uint32_t history_code_take(const struct code_node *nodes, uint32_t *leaf, uint32_t n,
				  uint32_t *pair, uint32_t n_nodes)
{
	if (*leaf < n && (*pair == n_nodes || nodes[*leaf].count <= nodes[*pair].count))
		return (*leaf)++;
	return (*pair)++;
}

/* Huffman's tree of @n sorted symbols: parents of all nodes. */
static void join(struct code_node *nodes, uint32_t n)
{
	uint32_t leaf = 0, pair = n;

	for (uint32_t at = n; at < 2 * n - 1; at++) {
		uint32_t a = history_code_take(nodes, &leaf, n, &pair, at);
		uint32_t b = history_code_take(nodes, &leaf, n, &pair, at);

		nodes[at].count = nodes[a].count + nodes[b].count;
		nodes[a].parent = nodes[b].parent = (uint16_t)at;
	}
}

/* No symbol has more than KY_CODE_BITS: others get more bits, the rarest ones first. */
static void limit_bits(struct ky_code *code, const struct code_node *sorted, uint32_t n)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += FULL_SUM >> code->bits[sorted[i].symbol];
	for (uint32_t i = 0; sum > FULL_SUM; i = (i + 1) % n) {
		uint8_t *bits = &code->bits[sorted[i].symbol];

		if (*bits < KY_CODE_BITS) {
			sum -= FULL_SUM >> (*bits + 1);
			++*bits;
		}
	}
}

void ky_code_make(struct ky_code *code, const uint32_t *counts, uint32_t n)
{
	struct code_node nodes[2 * KY_CODE_SYMBOLS];
	uint8_t depths[2 * KY_CODE_SYMBOLS];
	uint32_t used = 0;

	memset(code->bits, 0, sizeof(code->bits));
	code->n = n;
	for (uint32_t i = 0; i < n; i++) {
		if (counts[i])
			nodes[used++] =
				(struct code_node){.count = counts[i], .symbol = (uint16_t)i};
	}
	code->n_used = used;
	if (used < 2) {
		code->bits[used ? nodes[0].symbol : 0] = n > 1;
		return;
	}
	qsort(nodes, used, sizeof(*nodes), history_code_compare);
	join(nodes, used);
	depths[2 * used - 2] = 0;
	for (uint32_t i = 2 * used - 2; i-- > 0;)
		depths[i] = (uint8_t)(depths[nodes[i].parent] + 1);
	for (uint32_t i = 0; i < used; i++)
		code->bits[nodes[i].symbol] = depths[i] < KY_CODE_BITS ? depths[i] : KY_CODE_BITS;
	limit_bits(code, nodes, used);
}

void ky_code_make_flat(struct ky_code *code, uint32_t n)
{
	uint32_t bits = n > 1 ? 32 - (uint32_t)__builtin_clz(n - 1) : 0;

	code->n = code->n_used = n;
	memset(code->bits, (int)bits, n);
}

uint64_t ky_code_cost(const struct ky_code *code, const uint32_t *counts)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < code->n; i++)
		sum += (uint64_t)counts[i] * code->bits[i];
	return sum;
}

/* ---- using them ---------------------------------------------------------------------------------- */

/* The lowest @n bits of @word, in the other order. */
static uint16_t reverse(uint32_t word, uint32_t n)
{
	word = (word >> 1 & 0x5555) | (word & 0x5555) << 1;
	word = (word >> 2 & 0x3333) | (word & 0x3333) << 2;
	word = (word >> 4 & 0x0f0f) | (word & 0x0f0f) << 4;
	word = (word >> 8 & 0x00ff) | (word & 0x00ff) << 8;
	return (uint16_t)(word >> (16 - n));
}

bool ky_code_words(const struct ky_code *code, uint16_t *words)
{
	uint32_t counts[KY_CODE_BITS + 1] = {0}, next[KY_CODE_BITS + 2] = {0};

	for (uint32_t i = 0; i < code->n; i++) {
		if (code->bits[i] > KY_CODE_BITS)
			return false;
		counts[code->bits[i]]++;
	}
	counts[0] = 0;
	for (uint32_t bits = 1; bits <= KY_CODE_BITS; bits++) {
		if (next[bits] + counts[bits] > 1u << bits)
			return false;
		next[bits + 1] = (next[bits] + counts[bits]) << 1;
	}
	for (uint32_t i = 0; i < code->n; i++)
		words[i] = code->bits[i] ? reverse(next[code->bits[i]]++, code->bits[i]) : 0;
	return true;
}

/* One symbol only, without bits. */
static bool history_code_fill_one(struct ky_code_table *table, const struct ky_code *code,
				  uint32_t symbol)
{
	table->mask = 0;
	table->entries[0] = (uint16_t)(symbol << 4);
	return symbol < code->n;
}

bool ky_code_table(struct ky_code_table *table, const struct ky_code *code)
{
	uint16_t words[KY_CODE_SYMBOLS];
	uint32_t most = 0, sum = 0, size;

	if (code->n == 1)
		return history_code_fill_one(table, code, 0);
	if (!ky_code_words(code, words))
		return false;
	for (uint32_t i = 0; i < code->n; i++) {
		most = code->bits[i] > most ? code->bits[i] : most;
		sum += code->bits[i] ? FULL_SUM >> code->bits[i] : 0;
	}
	size = 1u << most;
	table->mask = (uint16_t)(size - 1);
	if (sum < FULL_SUM) {
		for (uint32_t i = 0; i < size; i++)
			table->entries[i] = KY_CODE_NONE & UINT16_MAX;
	}
	for (uint32_t i = 0; i < code->n; i++) {
		for (uint32_t at = words[i]; code->bits[i] && at < size; at += 1u << code->bits[i])
			table->entries[at] = (uint16_t)(i << 4 | code->bits[i]);
	}
	return true;
}

static void put_code_bits(const struct ky_code *code, char bytes[256], uint32_t i)
{
	if (i & 1)
		bytes[i / 2] = (char)(bytes[i / 2] | code->bits[i] << 4);
	else
		bytes[i / 2] = (char)code->bits[i];
}

void ky_code_put(struct ky_strbuf *out, const struct ky_code *code)
{
	char bytes[KY_CODE_SYMBOLS / 2];

	if (code->n < 2)
		return;
	for (uint32_t i = 0; i < code->n; i++)
		put_code_bits(code, bytes, i);
	ky_strbuf_add(out, bytes, (code->n + 1) / 2);
}

bool ky_code_get(struct ky_bytes *bytes, uint32_t n, struct ky_code *code)
{
	code->n = code->n_used = n;
	if (n < 2)
		return true;
	if ((size_t)(bytes->end - bytes->at) < (n + 1) / 2)
		return false;
	for (uint32_t i = 0; i < n; i++)
		code->bits[i] = bytes->at[i / 2] >> (i & 1 ? 4 : 0) & 15;
	bytes->at += (n + 1) / 2;
	return true;
}

/* ---- states --------------------------------------------------------------------------------------- */

struct numbered {
	uint64_t state;
	uint16_t code;
};

static int history_code_compare_states(const void *left, const void *right)
{
	const struct numbered *a = left, *b = right;
	uint64_t x = ky_state_kind(a->state), y = ky_state_kind(b->state);

	if (x == y) {
		x = ky_state_value(a->state);
		y = ky_state_value(b->state);
	}
	return x < y ? -1 : x > y;
}

/* Numbers above this many steps of their group have 64 bits instead. */
#define STEPS_MAX 24u

/* Bits of a difference, if a step has @bits. */
static uint32_t step_cost(uint64_t value, uint32_t bits)
{
	uint64_t steps = value >> bits;

	return steps < STEPS_MAX ? (uint32_t)steps + 1 + bits : STEPS_MAX + 64;
}

/* The best number of bits of a step for values @from to @to, which are sorted. */
static uint32_t step_bits(const struct numbered *from, const struct numbered *to)
{
	uint64_t mean = ky_state_value(to[-1].state) / (uint64_t)(to - from), least = UINT64_MAX;
	uint32_t most = ky_bits_class(mean), best = 0;

	most = most < 31 ? most : 31;
	for (uint32_t bits = most < 4 ? 0 : most - 4; bits <= most; bits++) {
		uint64_t cost = 0, last = 0;

		for (const struct numbered *it = from; it < to; it++) {
			cost += step_cost(ky_state_value(it->state) - last, bits);
			last = ky_state_value(it->state);
		}
		if (cost < least) {
			least = cost;
			best = bits;
		}
	}
	return best;
}

static void put_step(struct ky_bits_out *out, uint64_t value, uint32_t bits)
{
	uint64_t steps = value >> bits;

	if (steps >= STEPS_MAX) {
		ky_bits_put(out, 0, STEPS_MAX);
		ky_bits_put(out, value & UINT32_MAX, 32);
		ky_bits_put(out, value >> 32, 32);
		return;
	}
	ky_bits_put(out, UINT64_C(1) << steps, (uint32_t)steps + 1);
	ky_bits_put(out, value & ((UINT64_C(1) << bits) - 1), bits);
}

/* Returns the end of the states that have the kind of the first. */
static const struct numbered *end_of_kind(const struct numbered *from, const struct numbered *end)
{
	const struct numbered *to = from;

	while (to < end && ky_state_kind(to->state) == ky_state_kind(from->state))
		to++;
	return to;
}

void ky_states_put(struct ky_strbuf *out, uint32_t n, const uint64_t *states, uint16_t *order)
{
	struct numbered sorted[KY_CODE_SYMBOLS];
	uint8_t bytes[KY_CODE_SYMBOLS * 11 + 8];
	struct ky_bits_out bits = {.at = bytes};
	const struct numbered *to;

	for (uint32_t i = 0; i < n; i++)
		sorted[i] = (struct numbered){states[i], (uint16_t)i};
	if (n > 1)
		qsort(sorted, n, sizeof(*sorted), history_code_compare_states);
	for (uint32_t i = 0; i < n; i++)
		order[sorted[i].code] = (uint16_t)i;
	ky_put_varint(out, n);
	for (const struct numbered *it = sorted; it < sorted + n; it = to) {
		uint32_t step;
		uint64_t last = 0;

		to = end_of_kind(it, sorted + n);
		step = step_bits(it, to);
		ky_put_varint(out, ky_state_kind(it->state) << 5 | step);
		ky_put_varint(out, (uint64_t)(to - it));
		for (const struct numbered *one = it; one < to; one++) {
			put_step(&bits, ky_state_value(one->state) - last, step);
			last = ky_state_value(one->state);
		}
	}
	ky_put_varint(out, (uint64_t)(ky_bits_end(&bits) - bytes));
	ky_strbuf_add(out, (const char *)bytes, (size_t)(ky_bits_end(&bits) - bytes));
}

/* The kinds with their numbers of states, and the bits of their steps; the states get these for now. */
static bool get_kinds(struct ky_bytes *bytes, uint64_t n, uint64_t *states)
{
	uint64_t of_kind;

	for (uint64_t at = 0; at < n; at += of_kind) {
		uint64_t kind = ky_bytes_varint(bytes);

		of_kind = ky_bytes_varint(bytes);
		if (kind >> 5 >= KY_STATE_KINDS || !of_kind || of_kind > n - at)
			return false;
		for (uint64_t i = 0; i < of_kind; i++)
			states[at + i] = ky_state((enum ky_state_kind)(kind >> 5), kind & 31) |
					 (uint64_t)(i == 0) << 32;
	}
	return !bytes->bad;
}

static uint64_t get_step(struct ky_bits_in *in, uint32_t bits)
{
	uint64_t low;
	uint32_t steps;

	ky_bits_refill(in);
	steps = (uint32_t)__builtin_ctzll(in->held | UINT64_C(1) << STEPS_MAX);
	if (steps < STEPS_MAX) {
		ky_bits_skip(in, steps + 1);
		ky_bits_refill(in);
		return (uint64_t)steps << bits | ky_bits_get(in, bits);
	}
	ky_bits_skip(in, STEPS_MAX);
	ky_bits_refill(in);
	low = ky_bits_get(in, 32);
	ky_bits_refill(in);
	return low | ky_bits_get(in, 32) << 32;
}

bool ky_states_get(struct ky_bytes *bytes, uint32_t max, uint64_t *states, uint32_t *n_states)
{
	uint64_t n = ky_bytes_varint(bytes), len, value = 0;
	struct ky_bits_in in;

	*n_states = 0;
	if (n > max || !get_kinds(bytes, n, states))
		return false;
	len = ky_bytes_varint(bytes);
	if (bytes->bad || len > (uint64_t)(bytes->end - bytes->at))
		return false;
	in = (struct ky_bits_in){.at = bytes->at, .end = bytes->at + len};
	bytes->at += len;
	for (uint64_t i = 0; i < n; i++) {
		if (states[i] >> 32)
			value = 0;
		value += get_step(&in, (uint32_t)ky_state_value(states[i]) & 31);
		states[i] = ky_state(ky_state_kind(states[i]), value);
	}
	*n_states = (uint32_t)n;
	return ky_bits_are_over(&in);
}

/* ---- bits ---------------------------------------------------------------------------------------- */

void ky_bits_refill_end(struct ky_bits_in *in)
{
	while (in->n_held < 56) {
		if (in->at < in->end)
			in->held |= (uint64_t)*in->at++ << in->n_held;
		else
			in->over++;
		in->n_held += 8;
	}
}

bool ky_bits_are_over(const struct ky_bits_in *in)
{
	/* Fewer than 8 bits of the last byte are left, and they are 0. */
	uint32_t left = in->n_held + 8 * (uint32_t)(in->end - in->at);

	return left >= 8 * in->over && left - 8 * in->over < 8;
}
