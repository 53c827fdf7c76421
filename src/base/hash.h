/* SPDX-License-Identifier: MIT */
/*
 * Hash tables: integer keys (struct ky_map) and text keys (struct ky_names), values are
 * pointers that the table does not own. Threads: one at a time per table.
 */
#ifndef KY_BASE_HASH_H
#define KY_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* uint64_t -> void *. Open addressing; the order of iteration is not defined. */
struct ky_map_slot {
	uint64_t key;
	void *value; /* NULL: the slot is free */
};

struct ky_map {
	struct ky_map_slot *slots;
	size_t len;
	size_t cap; /* 0 or a power of two */
};

void ky_map_init(struct ky_map *map);
void ky_map_fini(struct ky_map *map);
/* The value, or NULL. */
void *ky_map_get(const struct ky_map *map, uint64_t key);
/* Stores @value (not NULL) in place of the old value. Returns 0 or KYMO_E_MEMORY. */
int ky_map_set(struct ky_map *map, uint64_t key, void *value);
/* Remove and return the value, or NULL. */
void *ky_map_del(struct ky_map *map, uint64_t key);
/*
 * Iterates: the caller starts with *pos = 0. Returns false at the end. The table must not change
 * meanwhile.
 */
bool ky_map_next(const struct ky_map *map, size_t *pos, uint64_t *key, void **value);

/* text -> void *. Keys are borrowed: they must outlive the table. */
struct ky_names_slot {
	const char *key; /* NULL: the slot is free */
	void *value;
	size_t len;
	uint64_t hash;
};

struct ky_names {
	struct ky_names_slot *slots;
	size_t len;
	size_t cap;
};

void ky_names_init(struct ky_names *names);
void ky_names_fini(struct ky_names *names);
void *ky_names_get(const struct ky_names *names, const char *key);
void *ky_names_getn(const struct ky_names *names, const char *key, size_t len);
int ky_names_set(struct ky_names *names, const char *key, void *value);
bool ky_names_next(const struct ky_names *names, size_t *pos, const char **key, void **value);

uint64_t ky_hash_bytes(const void *data, size_t len);
uint64_t ky_hash_u64(uint64_t key);

#endif
