/* SPDX-License-Identifier: MIT */
/* The state history: leaves, entries and prefix codes of any numbers are read as they were written. */
#include "unit.h"

#include <string.h>
#include <unistd.h>

#include "analysis/history/history-code.h"
#include "analysis/history/history-format.h"
#include "analysis/history/history-save.h"

#define ROUNDS 3000

static uint64_t random_state;

static uint64_t random_number(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

/* ---- codes -------------------------------------------------------------------------------------- */

static void check_code(const struct ky_code *code)
{
	static struct ky_code_table table;
	uint16_t words[KY_CODE_SYMBOLS];

	assert_true(ky_code_table(&table, code));
	assert_true(ky_code_words(code, words));
	for (uint32_t i = 0; i < code->n; i++) {
		uint16_t entry = table.entries[words[i] & table.mask];

		assert_true(code->bits[i] <= KY_CODE_BITS);
		if (code->bits[i] || code->n == 1)
			assert_int_equal(entry, i << 4 | code->bits[i]);
	}
}

static void codes_are_short_and_can_be_read(void **unused)
{
	uint32_t counts[KY_CODE_SYMBOLS];
	struct ky_code code, flat;

	(void)unused;
	random_state = 88172645463325252;
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t n = 1 + (uint32_t)random_number(KY_CODE_SYMBOLS);
		uint64_t skew = 1 + random_number(12);

		for (uint32_t s = 0; s < n; s++)
			counts[s] = (uint32_t)random_number(UINT64_C(1) << random_number(skew));
		ky_code_make(&code, counts, n);
		check_code(&code);
		ky_code_make_flat(&flat, n);
		check_code(&flat);
		for (uint32_t s = 0; s < n; s++)
			assert_true(!counts[s] || code.bits[s] || n == 1);
	}
}

static void impossible_codes_are_refused(void **unused)
{
	static struct ky_code_table table;
	struct ky_code code = {.n = 3, .bits = {1, 1, 1}};

	(void)unused;
	assert_false(ky_code_table(&table, &code));
	code.bits[2] = KY_CODE_BITS + 1;
	assert_false(ky_code_table(&table, &code));
	/* Bits that no symbol has. */
	code = (struct ky_code){.n = 3, .bits = {2, 2, 2}};
	assert_true(ky_code_table(&table, &code));
	assert_true(table.entries[3] >> 4 > KY_CODE_SYMBOLS);
}

/* ---- leaves -------------------------------------------------------------------------------------- */

static uint64_t random_duration(uint64_t bits)
{
	uint64_t value = UINT64_C(1) << random_number(bits + 1);

	return random_number(20) ? value + random_number(value) : 0;
}

struct made_leaf {
	uint32_t n, n_states;
	int64_t begin_ns;
	uint64_t durations[KY_LEAF_INTERVALS], states[KY_LEAF_STATES];
	uint8_t codes[KY_LEAF_INTERVALS];
};

/* Durations of up to @bits bits; states follow each other often, or not. */
static void make_leaf(struct made_leaf *leaf, uint64_t bits)
{
	bool regular = random_number(2);
	uint64_t most = 1 + random_number(KY_LEAF_STATES);

	leaf->n = 1 + (uint32_t)random_number(KY_LEAF_INTERVALS);
	leaf->begin_ns = (int64_t)random_number(INT64_MAX) * (random_number(2) ? 1 : -1) / 4;
	leaf->n_states = (uint32_t)most;
	for (uint32_t i = 0; i < most; i++) /* all different */
		leaf->states[i] = ky_state((enum ky_state_kind)(i % KY_STATE_KINDS),
					   random_number(1u << random_number(30)) * 256 + i);
	for (uint32_t i = 0; i < leaf->n; i++) {
		leaf->durations[i] = random_duration(bits);
		leaf->codes[i] = (uint8_t)(regular ? i % 5 % most : random_number(most));
	}
}

static void check_leaf(const struct made_leaf *made)
{
	static struct ky_leaf leaf;
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_bytes bytes;
	int64_t ns = made->begin_ns;

	ky_leaf_put(&out, made->begin_ns, made->n, made->durations, made->codes, made->n_states,
		    made->states);
	assert_false(ky_strbuf_failed(&out));
	bytes = (struct ky_bytes){.at = (const uint8_t *)out.data};
	bytes.end = bytes.at + out.len;
	assert_true(ky_leaf_get(&bytes, &leaf));
	assert_true(bytes.at == bytes.end);
	assert_int_equal(leaf.n, made->n);
	assert_true(leaf.begin_ns == made->begin_ns);
	for (uint32_t i = 0; i < leaf.n; i++) {
		assert_true(leaf.durations[i] == made->durations[i]);
		assert_true(leaf.states[leaf.codes[i]] == made->states[made->codes[i]]);
		ns = (int64_t)((uint64_t)ns +
			       made->durations[i]); /* it wraps, as the leaf's does */
	}
	assert_true(leaf.end_ns == ns);
	/* Each shorter text is malformed, or ends elsewhere. */
	bytes = (struct ky_bytes){.at = (const uint8_t *)out.data};
	bytes.end = bytes.at + random_number(out.len);
	assert_false(ky_leaf_get(&bytes, &leaf));
	ky_strbuf_fini(&out);
}

static void leaves_are_read_as_written(void **unused)
{
	static struct made_leaf leaf;

	(void)unused;
	random_state = 88172645463325252;
	for (int i = 0; i < ROUNDS; i++) {
		make_leaf(&leaf, random_number(52));
		check_leaf(&leaf);
	}
	/* One long duration needs all bits. */
	leaf = (struct made_leaf){.n = 3, .n_states = 1, .begin_ns = INT64_MIN};
	leaf.durations[0] = UINT64_MAX - 3;
	leaf.durations[2] = 2;
	check_leaf(&leaf);
}

/* ---- entries --------------------------------------------------------------------------------------- */

static void make_entry(struct ky_entry *entry, int64_t begin_ns, uint64_t n_states)
{
	*entry = (struct ky_entry){.offset = random_number(UINT64_C(1) << 40),
				   .begin_ns = begin_ns,
				   .end_ns = begin_ns + (int64_t)random_number(1u << 30),
				   .count = random_number(512)};
	for (uint32_t c = 0; c < KY_CELLS; c++) {
		bool more = random_number(3) == 0;

		entry->states[c] = random_number(n_states) << 8 |
				   (random_number(2) ? KY_STATE_SYSCALL : KY_STATE_BLOCKED);
		if (random_number(9) == 0)
			entry->states[c] = ky_state(KY_STATE_VALUE, random_number(1000));
		entry->more |= (uint64_t)more << c;
		entry->shares[c] = more ? (uint8_t)random_number(256) : UINT8_MAX;
		entry->curve[c] =
			more ? (uint8_t)random_number(256) : ky_whole_curve(entry->states[c]);
	}
}

static void check_entries(const struct ky_entry *made, uint32_t n, const struct ky_wanted *wanted)
{
	struct ky_entry entries[KY_NODE_ENTRIES];
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_bytes bytes;
	uint32_t found;

	ky_entries_put(&out, made, n);
	bytes = (struct ky_bytes){.at = (const uint8_t *)out.data};
	bytes.end = bytes.at + out.len;
	assert_true(ky_entries_get(&bytes, wanted, entries, &found));
	assert_true(bytes.at == bytes.end);
	assert_int_equal(found, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_true(entries[i].begin_ns == made[i].begin_ns);
		assert_true(entries[i].end_ns == made[i].end_ns);
		assert_true(entries[i].offset == made[i].offset);
		assert_true(entries[i].count == made[i].count);
		assert_true(entries[i].more == made[i].more);
		if (!wanted)
			continue;
		assert_memory_equal(entries[i].states, made[i].states, sizeof(made[i].states));
		assert_memory_equal(entries[i].shares, made[i].shares, sizeof(made[i].shares));
		if (wanted->curves)
			assert_memory_equal(entries[i].curve, made[i].curve, sizeof(made[i].curve));
	}
	bytes = (struct ky_bytes){.at = (const uint8_t *)out.data};
	bytes.end = bytes.at + random_number(out.len);
	assert_true(bytes.at == bytes.end || !ky_entries_get(&bytes, wanted, entries, &found));
	ky_strbuf_fini(&out);
}

static void entries_are_read_as_written(void **unused)
{
	struct ky_entry entries[KY_NODE_ENTRIES];
	const struct ky_wanted all = {INT64_MIN, INT64_MAX, true},
			       pictures = {INT64_MIN, INT64_MAX, false};

	(void)unused;
	random_state = 88172645463325252;
	for (int i = 0; i < ROUNDS / 3; i++) {
		uint32_t n = (uint32_t)random_number(KY_NODE_ENTRIES + 1);
		uint64_t n_states = 1 + random_number(UINT64_C(1) << random_number(12));

		for (uint32_t e = 0; e < n; e++)
			make_entry(&entries[e], e ? entries[e - 1].end_ns : -5, n_states);
		check_entries(entries, n, &all);
		check_entries(entries, n, &pictures);
		check_entries(entries, n, NULL);
	}
}

/* ---- states of the model ------------------------------------------------------------------------------ */

/* A state that is cut or has another byte is refused, or is a state; it never leads astray. */
static void damaged_states_are_refused(void **unused)
{
	const char *path = KY_TEST_SHARED "/traces/lttng-kernel/kernel";
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_trace_set set;
	struct ky_model *model, *other;
	struct kymo_error err;
	struct ky_flow *flow;
	int64_t ns = 0;

	(void)unused;
	if (access(path, R_OK) < 0)
		skip();
	assert_int_equal(ky_trace_set_open(&set, &path, 1, NULL, &err), 0);
	model = ky_model_new(&set, &err);
	assert_int_equal(ky_flow_open_set(&set, &flow, &err), 0);
	assert_int_equal(ky_model_run(model, flow, &err), 0);
	ky_flow_close(flow);
	assert_int_equal(ky_history_save(model, ky_model_end_ns(model) + 1, &out), 0);
	for (size_t i = 0; i < out.len; i += 1 + i / 64) {
		struct ky_bytes bytes = {.at = (const uint8_t *)out.data,
					 .end = (const uint8_t *)out.data + i};

		other = ky_model_new(&set, &err);
		assert_int_equal(ky_history_restore(other, &bytes, &ns), KYMO_E_FORMAT);
		ky_model_free(other);
		out.data[i] = (char)(out.data[i] ^ 0x55);
		bytes = (struct ky_bytes){.at = (const uint8_t *)out.data,
					  .end = (const uint8_t *)out.data + out.len};
		other = ky_model_new(&set, &err);
		(void)ky_history_restore(other, &bytes, &ns);
		ky_model_free(other);
		out.data[i] = (char)(out.data[i] ^ 0x55);
	}
	ky_strbuf_fini(&out);
	ky_model_free(model);
	ky_trace_set_close(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codes_are_short_and_can_be_read),
		cmocka_unit_test(impossible_codes_are_refused),
		cmocka_unit_test(leaves_are_read_as_written),
		cmocka_unit_test(entries_are_read_as_written),
		cmocka_unit_test(damaged_states_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
