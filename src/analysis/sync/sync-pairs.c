/* SPDX-License-Identifier: MIT */
/* What was seen on two machines becomes points of their pair. */
#include "analysis/sync/sync.h"

#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

/* Two generations of so many: 64 MiB. */
#define TABLE_SLOTS ((size_t)1 << 21)
#define TABLE_FULL  (TABLE_SLOTS / 4 * 3)
/* Address pairs of two machines whose directions are found out each for itself. */
#define FLOWS_MAX 1024

const char *ky_sync_source_name(enum ky_sync_source source)
{
	static const char *const names[KY_SYNC_SOURCES] = {"messages", "tsc", "ptp", "utc"};

	return names[source];
}

/* ---- pairs ---------------------------------------------------------------------------- */

struct ky_sync_pair *ky_sync_pair_of(struct ky_sync_run *run, uint32_t a, uint32_t b)
{
	uint64_t key = (uint64_t)(a < b ? a : b) << 32 | (a < b ? b : a);
	uintptr_t number = (uintptr_t)ky_map_get(&run->by_pair, key);
	struct ky_sync_pair *pair;

	if (number)
		return run->pairs.data[number - 1];
	pair = calloc(1, sizeof(*pair));
	if (!pair)
		return NULL;
	pair->a = a < b ? a : b;
	pair->b = a < b ? b : a;
	if (ky_vec_push(&run->pairs, pair) < 0) {
		free(pair);
		return NULL;
	}
	number = run->pairs.len;
	return ky_map_set(&run->by_pair, key, (void *)number) < 0 ? NULL : pair;
}

static void flow_free(struct ky_sync_flow *flow)
{
	ky_hull_fini(&flow->from[0]);
	ky_hull_fini(&flow->from[1]);
	free(flow);
}

void ky_sync_pair_free(struct ky_sync_pair *pair)
{
	ky_vec_foreach(&pair->flows, flow)
		flow_free(*flow);
	ky_vec_fini(&pair->flows);
	ky_hull_fini(&pair->least);
	ky_hull_fini(&pair->most);
	free(pair);
}

static int flow_of(struct ky_sync_pair *pair, uint64_t addresses, struct ky_sync_flow **found)
{
	struct ky_sync_flow *flow = NULL;

	*found = NULL;
	for (size_t i = pair->flows.len; i-- > 0;) {
		if (pair->flows.data[i]->addresses == addresses) {
			*found = pair->flows.data[i];
			return KYMO_OK;
		}
	}
	if (pair->flows.len == FLOWS_MAX)
		return KYMO_OK;
	flow = calloc(1, sizeof(*flow));
	if (!flow || ky_vec_push(&pair->flows, flow) < 0) {
		free(flow);
		return KYMO_E_MEMORY;
	}
	flow->addresses = addresses;
	*found = flow;
	return KYMO_OK;
}

/* The point of two times, whichever way the message went. */
static int add_point(struct ky_hull *hull, int64_t a_ns, int64_t b_ns)
{
	int64_t offset;

	return __builtin_sub_overflow(a_ns, b_ns, &offset) ? KYMO_OK
							   : ky_hull_add(hull, b_ns, offset);
}

int ky_sync_message(struct ky_sync_run *run, uint32_t from, int64_t from_ns, uint32_t to,
		    int64_t to_ns)
{
	struct ky_sync_pair *pair = ky_sync_pair_of(run, from, to);

	if (!pair)
		return KYMO_E_MEMORY;
	return from == pair->a ? add_point(&pair->least, from_ns, to_ns)
			       : add_point(&pair->most, to_ns, from_ns);
}

int ky_sync_same(struct ky_sync_run *run, uint32_t one, int64_t one_ns, uint32_t other,
		 int64_t other_ns, int64_t error_ns)
{
	int ret = KYMO_OK;

	if (one_ns > INT64_MIN + error_ns && other_ns > INT64_MIN + error_ns) {
		ret = ky_sync_message(run, one, one_ns - error_ns, other, other_ns);
		ret = ret ? ret : ky_sync_message(run, other, other_ns - error_ns, one, one_ns);
	}
	return ret;
}

/* ---- the table ------------------------------------------------------------------------ */

static struct ky_sync_seen *sync_pairs_find(struct ky_sync_seen *slots, uint64_t key)
{
	size_t at = key & (TABLE_SLOTS - 1);

	while (slots[at].machine && slots[at].key != key)
		at = (at + 1) & (TABLE_SLOTS - 1);
	return &slots[at];
}

/* The slot of @key: with what was seen before, or free. NULL: memory is out. */
static struct ky_sync_seen *sync_pairs_slot_of(struct ky_sync_run *run, uint64_t key)
{
	struct ky_sync_table *table = &run->table;
	struct ky_sync_seen *slot;

	for (int i = 0; i < 2; i++) {
		if (!table->slots[i])
			table->slots[i] = calloc(TABLE_SLOTS, sizeof(*slot));
		if (!table->slots[i])
			return NULL;
	}
	slot = sync_pairs_find(table->slots[0], key);
	if (slot->machine)
		return slot;
	slot = sync_pairs_find(table->slots[1], key);
	if (slot->machine)
		return slot;
	if (table->n >= TABLE_FULL) {
		struct ky_sync_seen *oldest = table->slots[1];

		for (size_t i = 0; i < TABLE_SLOTS; i++)
			run->n_forgotten += oldest[i].machine && !oldest[i].is_over;
		memset(oldest, 0, TABLE_SLOTS * sizeof(*oldest));
		table->slots[1] = table->slots[0];
		table->slots[0] = oldest;
		table->n = 0;
	}
	table->n++;
	return sync_pairs_find(table->slots[0], key);
}

static int sync_pairs_match(struct ky_sync_run *run, const struct ky_sync_seen *first,
			    uint32_t machine, enum ky_sync_way way, uint64_t addresses, int64_t ns)
{
	uint32_t other = first->machine - 1;
	struct ky_sync_pair *pair;
	struct ky_sync_flow *flow;
	bool is_a;
	int ret;

	if (way == KY_SYNC_MARK)
		return ky_sync_same(run, other, first->ns, machine, ns,
				    (int64_t)run->options->mark_error_ns);
	if (way == KY_SYNC_RECEIVED)
		return ky_sync_message(run, other, first->ns, machine, ns);
	if (way == KY_SYNC_SENT)
		return ky_sync_message(run, machine, ns, other, first->ns);
	pair = ky_sync_pair_of(run, other, machine);
	ret = pair ? flow_of(pair, addresses, &flow) : KYMO_E_MEMORY;
	if (ret < 0 || !flow)
		return ret;
	is_a = machine == pair->a;
	return add_point(&flow->from[way == KY_SYNC_BY_HIGHER], is_a ? ns : first->ns,
			 is_a ? first->ns : ns);
}

int ky_sync_see(struct ky_sync_run *run, uint32_t machine, uint64_t key, enum ky_sync_way way,
		uint64_t addresses, int64_t ns)
{
	struct ky_sync_seen *seen = sync_pairs_slot_of(run, key);

	if (!seen)
		return KYMO_E_MEMORY;
	if (!seen->machine) {
		*seen = (struct ky_sync_seen){key, ns, machine + 1, (uint8_t)way, false};
		return KYMO_OK;
	}
	/*
	 * Of a packet that is sent again, the first one of each side counts: it was sent before it was received. A mark that comes
	 * twice says nothing.
	 */
	if (seen->machine == machine + 1) {
		seen->is_over |= way == KY_SYNC_MARK;
		return KYMO_OK;
	}
	/* A mark is for all machines; the way of a packet ends at the second one. */
	if (seen->is_over || (way <= KY_SYNC_RECEIVED && seen->way == way))
		return KYMO_OK;
	seen->is_over = way != KY_SYNC_MARK;
	return sync_pairs_match(run, seen, machine, way, addresses, ns);
}

/* ---- results -------------------------------------------------------------------------- */

static int solve_way(const struct ky_sync_run *run, struct ky_sync_flow *flow, int lower_is_b,
		     struct ky_hull_line *line)
{
	return ky_hull_solve(&flow->from[lower_is_b], &flow->from[!lower_is_b],
			     run->options->drift_max, line);
}

/* Which machine has the lower address: the way round that is possible, or that leaves more room. */
static int settle_flow(const struct ky_sync_run *run, struct ky_sync_pair *pair,
		       struct ky_sync_flow *flow)
{
	struct ky_hull_line lines[2];
	int lower_is_b, ret;

	pair->n_ab += flow->from[0].n;
	pair->n_ba += flow->from[1].n;
	if (!flow->from[0].n || !flow->from[1].n)
		return KYMO_OK;
	ret = solve_way(run, flow, 0, &lines[0]);
	ret = ret ? ret : solve_way(run, flow, 1, &lines[1]);
	if (ret < 0)
		return ret;
	if (lines[0].is_possible != lines[1].is_possible)
		lower_is_b = lines[1].is_possible;
	else
		lower_is_b = lines[0].is_possible == (lines[1].drift_bound > lines[0].drift_bound);
	ret = ky_hull_join(&pair->least, &flow->from[lower_is_b]);
	if (!ret)
		ret = ky_hull_join(&pair->most, &flow->from[!lower_is_b]);
	if (lower_is_b) {
		pair->n_ab += flow->from[1].n - flow->from[0].n;
		pair->n_ba += flow->from[0].n - flow->from[1].n;
	}
	return ret;
}

static int solve_pair(const struct ky_sync_run *run, struct ky_sync_pair *pair)
{
	int ret = KYMO_OK;

	pair->n_ab = pair->least.n;
	pair->n_ba = pair->most.n;
	for (size_t i = 0; i < pair->flows.len && !ret; i++)
		ret = settle_flow(run, pair, pair->flows.data[i]);
	if (ret < 0)
		return ret;
	pair->quality = pair->n_ab || pair->n_ba ? KY_SYNC_INCOMPLETE : KY_SYNC_ABSENT;
	if (!pair->least.n || !pair->most.n)
		return KYMO_OK;
	ret = ky_hull_solve(&pair->least, &pair->most, run->options->drift_max, &pair->line);
	pair->quality = pair->line.is_drift_seen ? KY_SYNC_ACCURATE : KY_SYNC_APPROXIMATE;
	/* That it is this guest is only likely. */
	if (pair->source == KY_SYNC_COUNTER && !pair->n_checked)
		pair->quality = KY_SYNC_APPROXIMATE;
	pair->bound_ns = pair->line.begin_bound > pair->line.end_bound ? pair->line.begin_bound
								       : pair->line.end_bound;
	return ret;
}

int ky_sync_solve_pairs(struct ky_sync_run *run)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < run->pairs.len && !ret; i++)
		ret = solve_pair(run, run->pairs.data[i]);
	return ret;
}
