/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <stdlib.h>
#include <string.h>

#include <kymo/error.h>

#define TABLE_MIN 16

/* The finaliser of MurmurHash3: every input bit reaches every output bit. */
uint64_t ky_hash_u64(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdULL;
	key ^= key >> 33;
	key *= 0xc4ceb9fe1a85ec53ULL;
	key ^= key >> 33;
	return key;
}

/* FNV-1a, finalised so that its low bits are good enough for a mask. */
uint64_t ky_hash_bytes(const void *data, size_t len)
{
	const unsigned char *bytes = data;
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < len; i++) {
		hash ^= bytes[i];
		hash *= 0x100000001b3ULL;
	}
	return ky_hash_u64(hash);
}

void ky_map_init(struct ky_map *map)
{
	memset(map, 0, sizeof(*map));
}

void ky_map_fini(struct ky_map *map)
{
	free(map->slots);
	memset(map, 0, sizeof(*map));
}

static struct ky_map_slot *map_find(const struct ky_map *map, uint64_t key)
{
	size_t at = ky_hash_u64(key) & (map->cap - 1);

	while (map->slots[at].value && map->slots[at].key != key)
		at = (at + 1) & (map->cap - 1);
	return &map->slots[at];
}

void *ky_map_get(const struct ky_map *map, uint64_t key)
{
	return map->len ? map_find(map, key)->value : NULL;
}

static int map_grow(struct ky_map *map)
{
	struct ky_map bigger = {.cap = map->cap ? map->cap * 2 : TABLE_MIN, .len = map->len};

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < map->cap; i++) {
		if (map->slots[i].value)
			*map_find(&bigger, map->slots[i].key) = map->slots[i];
	}
	free(map->slots);
	*map = bigger;
	return KYMO_OK;
}

int ky_map_set(struct ky_map *map, uint64_t key, void *value)
{
	struct ky_map_slot *slot;

	if (map->len * 4 >= map->cap * 3 && map_grow(map) < 0)
		return KYMO_E_MEMORY;
	slot = map_find(map, key);
	if (!slot->value)
		map->len++;
	slot->key = key;
	slot->value = value;
	return KYMO_OK;
}

void *ky_map_del(struct ky_map *map, uint64_t key)
{
	size_t mask = map->cap - 1, hole, at;
	void *value;

	if (!map->len)
		return NULL;
	hole = (size_t)(map_find(map, key) - map->slots);
	value = map->slots[hole].value;
	if (!value)
		return NULL;
	/* Close the gap: move back every follower whose home is not behind the hole. */
	for (at = (hole + 1) & mask; map->slots[at].value; at = (at + 1) & mask) {
		size_t home = ky_hash_u64(map->slots[at].key) & mask;

		if (((at - home) & mask) >= ((at - hole) & mask)) {
			map->slots[hole] = map->slots[at];
			hole = at;
		}
	}
	map->slots[hole].value = NULL;
	map->len--;
	return value;
}

bool ky_map_next(const struct ky_map *map, size_t *pos, uint64_t *key, void **value)
{
	while (*pos < map->cap) {
		const struct ky_map_slot *slot = &map->slots[(*pos)++];

		if (slot->value) {
			if (key)
				*key = slot->key;
			*value = slot->value;
			return true;
		}
	}
	return false;
}

void ky_names_init(struct ky_names *names)
{
	memset(names, 0, sizeof(*names));
}

void ky_names_fini(struct ky_names *names)
{
	free(names->slots);
	memset(names, 0, sizeof(*names));
}

static struct ky_names_slot *names_find(const struct ky_names *names, const char *key, size_t len,
					uint64_t hash)
{
	size_t at = hash & (names->cap - 1);

	for (;; at = (at + 1) & (names->cap - 1)) {
		struct ky_names_slot *slot = &names->slots[at];

		if (!slot->key ||
		    (slot->hash == hash && slot->len == len && memcmp(slot->key, key, len) == 0))
			return slot;
	}
}

void *ky_names_getn(const struct ky_names *names, const char *key, size_t len)
{
	return names->len ? names_find(names, key, len, ky_hash_bytes(key, len))->value : NULL;
}

void *ky_names_get(const struct ky_names *names, const char *key)
{
	return ky_names_getn(names, key, strlen(key));
}

static int names_grow(struct ky_names *names)
{
	struct ky_names bigger = {.cap = names->cap ? names->cap * 2 : TABLE_MIN,
				  .len = names->len};

	bigger.slots = calloc(bigger.cap, sizeof(*bigger.slots));
	if (!bigger.slots)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < names->cap; i++) {
		struct ky_names_slot *slot = &names->slots[i];

		if (slot->key)
			*names_find(&bigger, slot->key, slot->len, slot->hash) = *slot;
	}
	free(names->slots);
	*names = bigger;
	return KYMO_OK;
}

int ky_names_set(struct ky_names *names, const char *key, void *value)
{
	struct ky_names_slot *slot;
	size_t len = strlen(key);
	uint64_t hash = ky_hash_bytes(key, len);

	if (names->len * 4 >= names->cap * 3 && names_grow(names) < 0)
		return KYMO_E_MEMORY;
	slot = names_find(names, key, len, hash);
	if (!slot->key) {
		names->len++;
		slot->key = key;
		slot->len = len;
		slot->hash = hash;
	}
	slot->value = value;
	return KYMO_OK;
}

bool ky_names_next(const struct ky_names *names, size_t *pos, const char **key, void **value)
{
	while (*pos < names->cap) {
		const struct ky_names_slot *slot = &names->slots[(*pos)++];

		if (slot->key) {
			*key = slot->key;
			*value = slot->value;
			return true;
		}
	}
	return false;
}
