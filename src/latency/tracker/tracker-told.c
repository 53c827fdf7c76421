/* SPDX-License-Identifier: MIT */
#include "latency/tracker/tracker-told.h"

#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

struct ky_told {
	struct ky_tracker_key key;
	uint64_t begin_ns;
	struct ky_told *next; /* of the same hash */
	size_t place;	      /* in `all` */
	uint32_t look;	      /* that saw it last */
};

static uint64_t told_hash(const struct ky_tracker_key *key, uint64_t begin_ns)
{
	return ky_hash_u64(ky_hash_bytes(key, sizeof(*key)) ^ begin_ns);
}

void ky_told_fini(struct ky_told_table *table)
{
	ky_vec_foreach(&table->all, told)
		free(*told);
	ky_vec_fini(&table->all);
	ky_map_fini(&table->by_hash);
}

void ky_told_begin(struct ky_told_table *table)
{
	table->look++;
}

static struct ky_told *told_find(const struct ky_told_table *table,
				 const struct ky_tracker_key *key, uint64_t begin_ns)
{
	struct ky_told *told = ky_map_get(&table->by_hash, told_hash(key, begin_ns));

	while (told && (told->begin_ns != begin_ns || memcmp(&told->key, key, sizeof(*key)) != 0))
		told = told->next;
	return told;
}

int ky_told_see(struct ky_told_table *table, const struct ky_tracker_key *key, uint64_t begin_ns)
{
	struct ky_told *told = told_find(table, key, begin_ns);
	uint64_t hash = told_hash(key, begin_ns);

	if (told) {
		told->look = table->look;
		return 1;
	}
	told = malloc(sizeof(*told));
	if (!told)
		return KYMO_E_MEMORY;
	*told = (struct ky_told){.key = *key,
				 .begin_ns = begin_ns,
				 .next = ky_map_get(&table->by_hash, hash),
				 .place = table->all.len,
				 .look = table->look};
	if (ky_vec_push(&table->all, told) < 0) {
		free(told);
		return KYMO_E_MEMORY;
	}
	if (ky_map_set(&table->by_hash, hash, told) < 0) {
		table->all.len--;
		free(told);
		return KYMO_E_MEMORY;
	}
	return 0;
}

/* Out of the chain of its hash. */
static void told_unchain(struct ky_told_table *table, const struct ky_told *told)
{
	uint64_t hash = told_hash(&told->key, told->begin_ns);
	struct ky_told *at = ky_map_get(&table->by_hash, hash);

	if (at != told) {
		while (at->next != told)
			at = at->next;
		at->next = told->next;
	} else if (told->next) {
		(void)ky_map_set(&table->by_hash, hash, told->next); /* a key that it has */
	} else {
		ky_map_del(&table->by_hash, hash);
	}
}

static void told_forget(struct ky_told_table *table, struct ky_told *told)
{
	struct ky_told *last = *ky_vec_last(&table->all);

	told_unchain(table, told);
	table->all.data[told->place] = last;
	last->place = told->place;
	table->all.len--;
	free(told);
}

bool ky_told_end(struct ky_told_table *table, const struct ky_tracker_key *key, uint64_t begin_ns)
{
	struct ky_told *told = told_find(table, key, begin_ns);

	if (told)
		told_forget(table, told);
	return told;
}

void ky_told_sweep(struct ky_told_table *table)
{
	for (size_t i = table->all.len; i-- > 0;)
		if (table->all.data[i]->look != table->look)
			told_forget(table, table->all.data[i]);
}
