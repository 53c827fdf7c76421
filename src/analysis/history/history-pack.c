/* SPDX-License-Identifier: MIT */
/*
 * The state history: leaves as bytes.
 *
 * A leaf has the states in the order of their numbers; then for each interval a symbol for its state and a symbol for the length
 * of its duration in bits, by prefix codes that each leaf has for itself, and the duration's bits below the highest one. Intervals go
 * to two streams of bits in turn, so that a CPU decodes two of them at the same time.
 */
#include "analysis/history/history-code.h"

#define LANES	    2u
#define CLASSES	    65u /* of durations: 0, and 1 to 64 bits */
#define GROUPS	    2u	/* of states, for the lengths of their durations */
#define MODE_OWN    1u	/* the states' code is in the leaf; else it is flat */
#define MODE_GUESS  2u	/* symbol n: the state that followed last time */
#define MODE_GROUPS 4u
#define MODES	    8u
/* Guesses cost time: they must save more bits than that. */
#define GUESS_BITS 256u
/* Above that, a code of its own is larger than what it saves. */
#define OWN_STATES 64u
#define LANE_BYTES ((KY_LEAF_INTERVALS / LANES + 1) * 12u + 8u)

/* ---- guesses ------------------------------------------------------------------------------------- */

/*
 * What follows a state depends on it and on the one before: after a call comes user space, and what comes
 * then depends on that call.
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

/* ---- codes ----------------------------------------------------------------------------------------- */

/* A symbol more than the states: as guessed. */
static void make_guess_flat(struct ky_code *code, uint32_t n)
{
	ky_code_make_flat(code, n);
	for (uint32_t i = 0; i < n; i++)
		code->bits[i]++;
	code->bits[n] = 1;
	code->n = code->n_used = n + 1;
}

static void make_states_code(struct ky_code *code, uint32_t mode, uint32_t n)
{
	if (mode & MODE_GUESS)
		make_guess_flat(code, n);
	else
		ky_code_make_flat(code, n);
}

/* ---- putting -------------------------------------------------------------------------------------- */

struct packing {
	uint32_t n, n_states, mode;
	uint8_t codes[KY_LEAF_INTERVALS];    /* by the order of the states */
	uint16_t symbols[KY_LEAF_INTERVALS]; /* the same with guesses */
	uint8_t classes[KY_LEAF_INTERVALS];
	uint8_t groups[KY_LEAF_STATES];
	struct ky_code states, lengths[GROUPS];
	uint32_t first_class[GROUPS];
};

static void guess_all(struct packing *pack)
{
	struct follow follow = {{0}, 0, 0};

	for (uint32_t i = 0; i < pack->n; i++) {
		uint8_t *guessed = guess(&follow), code = pack->codes[i];

		pack->symbols[i] = *guessed == code ? (uint16_t)pack->n_states : code;
		*guessed = code;
		follow_on(&follow, code);
	}
}

/* The cheapest code for the states. */
static void choose_states_code(struct packing *pack)
{
	uint32_t plain[KY_CODE_SYMBOLS] = {0}, guessed[KY_CODE_SYMBOLS] = {0};
	struct ky_code code;
	uint64_t best = UINT64_MAX;

	guess_all(pack);
	for (uint32_t i = 0; i < pack->n; i++) {
		plain[pack->codes[i]]++;
		guessed[pack->symbols[i]]++;
	}
	for (uint32_t mode = 0; mode <= (MODE_OWN | MODE_GUESS); mode++) {
		const uint32_t *counts = mode & MODE_GUESS ? guessed : plain;
		uint32_t n = pack->n_states + (mode & MODE_GUESS ? 1 : 0);
		uint64_t cost = 0;

		if (mode & MODE_OWN && n > OWN_STATES)
			continue;
		if (mode & MODE_OWN) {
			ky_code_make(&code, counts, n);
			cost = (n + 1) / 2 * 8;
		} else {
			make_states_code(&code, mode, pack->n_states);
		}
		cost += ky_code_cost(&code, counts) + (mode & MODE_GUESS ? GUESS_BITS : 0);
		if (cost < best) {
			best = cost;
			pack->mode = mode;
			pack->states = code;
		}
	}
	if (!(pack->mode & MODE_GUESS)) {
		for (uint32_t i = 0; i < pack->n; i++)
			pack->symbols[i] = pack->codes[i];
	}
}

/* States with long durations are apart from those with short ones. */
static void choose_groups(struct packing *pack)
{
	uint32_t sums[KY_LEAF_STATES] = {0}, counts[KY_LEAF_STATES] = {0}, all = 0;

	for (uint32_t i = 0; i < pack->n; i++) {
		sums[pack->codes[i]] += pack->classes[i];
		counts[pack->codes[i]]++;
		all += pack->classes[i];
	}
	for (uint32_t s = 0; s < pack->n_states; s++)
		pack->groups[s] = (uint64_t)sums[s] * pack->n > (uint64_t)all * counts[s];
}

/* The codes of the lengths, and what they cost. */
static uint64_t make_lengths(struct packing *pack)
{
	uint32_t counts[GROUPS][CLASSES] = {{0}};
	uint64_t cost = 0;

	for (uint32_t i = 0; i < pack->n; i++)
		counts[pack->groups[pack->codes[i]]][pack->classes[i]]++;
	for (uint32_t g = 0; g < GROUPS; g++) {
		uint32_t first = 0, end = CLASSES;

		while (first < end && !counts[g][first])
			first++;
		while (end > first && !counts[g][end - 1])
			end--;
		pack->first_class[g] = first == end ? 0 : first;
		ky_code_make(&pack->lengths[g], counts[g] + first, end - first);
		cost += 16 + (uint64_t)(end - first) * 4 +
			ky_code_cost(&pack->lengths[g], counts[g] + first);
	}
	return cost;
}

static void choose_lengths(struct packing *pack)
{
	uint64_t one, two;

	memset(pack->groups, 0, sizeof(pack->groups));
	one = make_lengths(pack);
	choose_groups(pack);
	two = make_lengths(pack) + pack->n_states;
	if (two < one) {
		pack->mode |= MODE_GROUPS;
		return;
	}
	memset(pack->groups, 0, sizeof(pack->groups));
	(void)make_lengths(pack);
}

static void put_groups(struct ky_strbuf *out, const struct packing *pack)
{
	char bytes[(KY_LEAF_STATES + 7) / 8] = {0};

	for (uint32_t s = 0; s < pack->n_states; s++)
		bytes[s / 8] = (char)(bytes[s / 8] | pack->groups[s] << s % 8);
	ky_strbuf_add(out, bytes, (pack->n_states + 7) / 8);
}

static void put_codes(struct ky_strbuf *out, const struct packing *pack)
{
	ky_put_varint(out, pack->mode);
	if (pack->mode & MODE_OWN)
		ky_code_put(out, &pack->states);
	if (pack->mode & MODE_GROUPS)
		put_groups(out, pack);
	for (uint32_t g = 0; g < (pack->mode & MODE_GROUPS ? GROUPS : 1); g++) {
		ky_put_varint(out, pack->first_class[g]);
		ky_put_varint(out, pack->lengths[g].n);
		ky_code_put(out, &pack->lengths[g]);
	}
}

static void history_pack_put_lane(struct ky_strbuf *out, const struct packing *pack, uint32_t lane,
				  const uint64_t *durations)
{
	uint16_t states[KY_CODE_SYMBOLS], lengths[GROUPS][KY_CODE_SYMBOLS];
	uint8_t bytes[LANE_BYTES];
	struct ky_bits_out bits = {.at = bytes};

	(void)ky_code_words(&pack->states, states);
	for (uint32_t g = 0; g < GROUPS; g++)
		(void)ky_code_words(&pack->lengths[g], lengths[g]);
	for (uint32_t i = lane; i < pack->n; i += LANES) {
		uint32_t g = pack->groups[pack->codes[i]], class = pack->classes[i],
			 symbol = class - pack->first_class[g];

		ky_bits_put(&bits, states[pack->symbols[i]], pack->states.bits[pack->symbols[i]]);
		ky_bits_put(&bits, lengths[g][symbol], pack->lengths[g].bits[symbol]);
		if (class > 1)
			ky_bits_put_long(&bits, durations[i] & ((UINT64_C(1) << (class - 1)) - 1),
					 class - 1);
	}
	ky_put_varint(out, (uint64_t)(ky_bits_end(&bits) - bytes));
	ky_strbuf_add(out, (const char *)bytes, (size_t)(ky_bits_end(&bits) - bytes));
}

void ky_leaf_put(struct ky_strbuf *out, int64_t begin_ns, uint32_t n, const uint64_t *durations,
		 const uint8_t *codes, uint32_t n_states, const uint64_t *states)
{
	struct packing pack = {.n = n, .n_states = n_states};
	uint16_t order[KY_LEAF_STATES];

	ky_put_varint(out, n);
	if (!n)
		return;
	ky_states_put(out, n_states, states, order);
	ky_put_signed(out, begin_ns);
	for (uint32_t i = 0; i < n; i++) {
		pack.codes[i] = (uint8_t)order[codes[i]];
		pack.classes[i] = (uint8_t)ky_bits_class(durations[i]);
	}
	choose_states_code(&pack);
	choose_lengths(&pack);
	put_codes(out, &pack);
	for (uint32_t lane = 0; lane < LANES; lane++)
		history_pack_put_lane(out, &pack, lane, durations);
}

/* ---- getting --------------------------------------------------------------------------------------- */

#define TABLE	    (1u << KY_CODE_BITS)
#define NO_CODE	    255u /* no leaf has so many states */
#define NO_CLASS    (CLASSES + 1)
#define SHORT_CLASS 36u /* what a refill brings beside both symbols */

/* Tables are by the next bits. One of both symbols is enough for the state and its group. */
struct unpacking {
	uint32_t mode, n_states;
	bool bad;
	bool has_holes; /* some bits are no state's */
	struct follow follow;
	struct ky_bits_in lanes[LANES];
	uint32_t states_mask, lengths_mask;
	uint32_t states[TABLE]; /* symbol << 4 | its bits | where its lengths begin << 16 */
	uint16_t lengths[GROUPS * TABLE]; /* length << 4 | bits of its symbol */
	uint8_t groups[256];
};

static bool get_groups(struct ky_bytes *bytes, struct unpacking *pack, uint32_t n)
{
	if ((size_t)(bytes->end - bytes->at) < (n + 7) / 8)
		return false;
	for (uint32_t s = 0; s < n; s++)
		pack->groups[s] = bytes->at[s / 8] >> s % 8 & 1;
	bytes->at += (n + 7) / 8;
	return true;
}

/* The code of a group's lengths. */
static bool get_lengths(struct ky_bytes *bytes, struct ky_code_table *table, uint32_t *first)
{
	struct ky_code code;
	uint64_t low = ky_bytes_varint(bytes), n = ky_bytes_varint(bytes);

	if (bytes->bad || n > CLASSES || low > CLASSES - n)
		return false;
	*first = (uint32_t)low;
	if (!n) { /* no interval is in that group */
		table->mask = 0;
		table->entries[0] = KY_CODE_NONE & UINT16_MAX;
		return true;
	}
	return ky_code_get(bytes, (uint32_t)n, &code) && ky_code_table(table, &code);
}

static uint16_t length_entry(uint16_t entry, uint32_t first)
{
	uint32_t class = (entry >> 4) + first;

	return (uint16_t)((class < CLASSES ? class : NO_CLASS) << 4 | (entry & 15u));
}

/* Both groups' tables have the same size. */
static bool get_all_lengths(struct ky_bytes *bytes, struct unpacking *pack)
{
	struct ky_code_table tables[GROUPS];
	uint32_t first[GROUPS], n = pack->mode & MODE_GROUPS ? GROUPS : 1;

	pack->lengths_mask = 0;
	for (uint32_t g = 0; g < n; g++) {
		if (!get_lengths(bytes, &tables[g], &first[g]))
			return false;
		pack->lengths_mask |= tables[g].mask;
	}
	for (uint32_t g = 0; g < n; g++) {
		for (uint32_t i = 0; i <= pack->lengths_mask; i++)
			pack->lengths[g * TABLE + i] =
				length_entry(tables[g].entries[i & tables[g].mask], first[g]);
	}
	return true;
}

static void set_states(struct unpacking *pack, const struct ky_code_table *table)
{
	uint32_t n_symbols = pack->n_states + (pack->mode & MODE_GUESS ? 1 : 0);

	pack->states_mask = table->mask;
	pack->has_holes = false;
	for (uint32_t i = 0; i <= table->mask; i++) {
		uint32_t entry = table->entries[i], symbol = entry >> 4;
		uint32_t group = symbol < pack->n_states ? pack->groups[symbol] : 0;

		pack->has_holes |= symbol >= n_symbols;
		pack->states[i] = entry | group * TABLE << 16;
	}
}

static bool get_codes(struct ky_bytes *bytes, struct unpacking *pack)
{
	uint64_t mode = ky_bytes_varint(bytes);
	struct ky_code_table table;
	struct ky_code code;

	if (mode >= MODES || !pack->n_states)
		return false;
	pack->mode = (uint32_t)mode;
	if (!(mode & MODE_OWN))
		make_states_code(&code, pack->mode, pack->n_states);
	else if (!ky_code_get(bytes, pack->n_states + (mode & MODE_GUESS ? 1 : 0), &code))
		return false;
	if (!ky_code_table(&table, &code))
		return false;
	memset(pack->groups, 0, sizeof(pack->groups));
	if (mode & MODE_GROUPS && !get_groups(bytes, pack, pack->n_states))
		return false;
	set_states(pack, &table);
	return get_all_lengths(bytes, pack);
}

static bool get_lanes(struct ky_bytes *bytes, struct unpacking *pack)
{
	for (uint32_t i = 0; i < LANES; i++) {
		uint64_t len = ky_bytes_varint(bytes);

		if (bytes->bad || len > (uint64_t)(bytes->end - bytes->at))
			return false;
		pack->lanes[i] = (struct ky_bits_in){.at = bytes->at, .end = bytes->at + len};
		bytes->at += len;
	}
	return true;
}

/* A duration that takes more bits than are held. */
static __attribute__((noinline)) uint64_t get_long(struct ky_bits_in *in, uint32_t class, bool *bad)
{
	uint64_t low;

	if (class > 64) {
		*bad = true;
		return 0;
	}
	ky_bits_refill(in);
	if (class <= 56)
		return ky_bits_get(in, class - 1) | UINT64_C(1) << (class - 1);
	low = ky_bits_get(in, 32);
	ky_bits_refill(in);
	return low | ky_bits_get(in, class - 33) << 32 | UINT64_C(1) << (class - 1);
}

/* The state that is guessed, or the one that the symbol names. */
static inline uint32_t follow_code(struct unpacking *pack, uint32_t symbol)
{
	uint8_t *guessed = guess(&pack->follow);
	/* No branch: which one it is cannot be foreseen. */
	uint32_t code = symbol ^ ((symbol ^ *guessed) & -(uint32_t)(symbol == pack->n_states));

	*guessed = (uint8_t)code;
	follow_on(&pack->follow, (uint8_t)code);
	return code;
}

/* The next interval of @in. What cannot be gets a state that no leaf has, or sets ->bad. */
static inline __attribute__((always_inline)) uint64_t
get_interval(struct unpacking *pack, struct ky_bits_in *in, bool guesses, uint8_t *to)
{
	uint32_t entry, code, at, class, n;
	uint64_t value;

	ky_bits_refill(in);
	entry = pack->states[in->held & pack->states_mask];
	ky_bits_skip(in, entry & 15u);
	code = entry >> 4 & 0xfff;
	at = entry >> 16;
	if (guesses) {
		code = follow_code(pack, code);
		at = pack->groups[(uint8_t)code] * TABLE;
	}
	*to = (uint8_t)(code < NO_CODE ? code : NO_CODE);
	entry = pack->lengths[(in->held & pack->lengths_mask) + at];
	ky_bits_skip(in, entry & 15u);
	class = entry >> 4;
	if (__builtin_expect(class > SHORT_CLASS, 0)) {
		struct ky_bits_in copy = *in; /* so that @in can be in registers */

		value = get_long(&copy, class, &pack->bad);
		*in = copy;
		return value;
	}
	n = class - (class != 0);
	value = (in->held & ((UINT64_C(1) << n) - 1)) | (uint64_t)(class != 0) << n;
	ky_bits_skip(in, n);
	return value;
}

static inline __attribute__((always_inline)) void
get_intervals(struct unpacking *pack, struct ky_leaf *leaf, uint32_t n, bool guesses)
{
	struct ky_bits_in even = pack->lanes[0], odd = pack->lanes[1];
	uint32_t i;

	for (i = 0; i + 1 < n; i += 2) {
		leaf->durations[i] = get_interval(pack, &even, guesses, &leaf->codes[i]);
		leaf->durations[i + 1] = get_interval(pack, &odd, guesses, &leaf->codes[i + 1]);
	}
	if (i < n)
		leaf->durations[i] = get_interval(pack, &even, guesses, &leaf->codes[i]);
	pack->lanes[0] = even;
	pack->lanes[1] = odd;
}

/* Adds up the durations; false: there is no such time, or state. */
static bool history_pack_end(const struct unpacking *pack, struct ky_leaf *leaf, uint32_t n)
{
	uint64_t sum = 0;
	bool bad = false;

	for (uint32_t i = 0; i < n; i++) {
		sum += leaf->durations[i];
		bad |= sum < leaf->durations[i];
	}
	for (uint32_t i = 0; pack->has_holes && i < n; i++)
		bad |= leaf->codes[i] >= leaf->n_states;
	return !__builtin_add_overflow(leaf->begin_ns, sum, &leaf->end_ns) && !bad;
}

bool ky_leaf_get(struct ky_bytes *bytes, struct ky_leaf *leaf)
{
	struct unpacking pack;
	uint64_t n = ky_bytes_varint(bytes);

	leaf->n = leaf->n_states = 0;
	leaf->begin_ns = leaf->end_ns = 0;
	if (!n || n > KY_LEAF_INTERVALS)
		return !n && !bytes->bad;
	if (!ky_states_get(bytes, KY_LEAF_STATES, leaf->states, &leaf->n_states))
		return false;
	leaf->begin_ns = ky_bytes_signed(bytes);
	pack.bad = false;
	pack.follow = (struct follow){{0}, 0, 0};
	pack.n_states = leaf->n_states;
	if (!get_codes(bytes, &pack) || !get_lanes(bytes, &pack))
		return false;
	if (pack.mode & MODE_GUESS)
		get_intervals(&pack, leaf, (uint32_t)n, true);
	else
		get_intervals(&pack, leaf, (uint32_t)n, false);
	if (pack.bad || !ky_bits_are_over(&pack.lanes[0]) || !ky_bits_are_over(&pack.lanes[1]) ||
	    !history_pack_end(&pack, leaf, (uint32_t)n))
		return false;
	leaf->n = (uint32_t)n;
	return true;
}
