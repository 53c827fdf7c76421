/* SPDX-License-Identifier: MIT */
#include "symbols/tables/jit-table.h"

#include <stdlib.h>
#include <string.h>

#define FUNCTIONS_MAX (4u << 20)
#define COVERING_MAX  64 /* functions of other times that are looked at for an address */

void ky_jit_table_init(struct ky_jit_table *table)
{
	*table = (struct ky_jit_table){0};
	ky_arena_init(&table->names);
}

void ky_jit_table_fini(struct ky_jit_table *table)
{
	ky_vec_fini(&table->functions);
	ky_arena_fini(&table->names);
}

int ky_jit_table_add(struct ky_jit_table *table, const struct ky_jit_function *function,
		     const char *name, size_t len)
{
	struct ky_jit_function copy = *function;

	if (table->functions.len >= FUNCTIONS_MAX || table->names.total > KY_JIT_FILE_MAX_BYTES)
		return KYMO_E_LIMIT;
	copy.order = (uint32_t)table->functions.len;
	copy.name = ky_arena_strndup(&table->names, name, len);
	table->is_sorted = false;
	return copy.name ? ky_vec_push(&table->functions, copy) : KYMO_E_MEMORY;
}

/* ---- map files -------------------------------------------------------------------------- */

/* Reads a hexadecimal number, with or without 0x, and the spaces behind it. False: the line has no number here. */
static bool jit_table_take_hex(const char **at, const char *end, uint64_t *value)
{
	int digits = 0;

	*value = 0;
	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] == 'x' || (*at)[1] == 'X'))
		*at += 2;
	for (; *at < end && digits < 16; (*at)++, digits++) {
		char c = **at;
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			break;
		*value = *value << 4 | (uint64_t)digit;
	}
	if (!digits || *at == end || **at != ' ')
		return false;
	while (*at < end && **at == ' ')
		(*at)++;
	return true;
}

void ky_jit_table_read_map(struct ky_jit_table *table, const char *text, size_t len)
{
	const char *at = text, *end = text + len;

	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		struct ky_jit_function function = {0};

		stop = stop ? stop : end;
		if (jit_table_take_hex(&at, stop, &function.begin) &&
		    jit_table_take_hex(&at, stop, &function.bytes) && at < stop && function.bytes &&
		    ky_jit_table_add(table, &function, at, (size_t)(stop - at)) < 0)
			return;
		at = stop + 1;
	}
}

/* ---- jitdump ---------------------------------------------------------------------------- */

#define DUMP_MAGIC 0x4A695444u

enum {
	DUMP_LOAD = 0,
	DUMP_MOVE = 1,
};

struct dump_header {
	uint32_t magic, version, header_bytes, machine, padding, pid;
	uint64_t time_ns, flags; /* flags, bit 0: times are of the CPU's counter */
};

struct dump_record {
	uint32_t id, bytes;
	uint64_t time_ns;
};

struct dump_load {
	uint32_t pid, tid;
	uint64_t vma, address, bytes, index;
};

struct dump_move {
	uint32_t pid, tid;
	uint64_t vma, from, to, bytes, index;
};

static int dump_add_load(struct ky_jit_table *table, const char *data, size_t len, uint64_t time_ns)
{
	struct ky_jit_function function = {.time_ns = time_ns};
	struct dump_load load;

	if (len < sizeof(load))
		return KYMO_OK;
	memcpy(&load, data, sizeof(load));
	function.begin = load.address;
	function.bytes = load.bytes;
	return ky_jit_table_add(table, &function, data + sizeof(load),
				strnlen(data + sizeof(load), len - sizeof(load)));
}

static int dump_add_move(struct ky_jit_table *table, const char *data, size_t len, uint64_t time_ns)
{
	const struct ky_jit_function *old;
	struct ky_jit_function function;
	struct dump_move move;

	if (len < sizeof(move))
		return KYMO_OK;
	memcpy(&move, data, sizeof(move));
	/* Of what was there last, without sorting for each move. */
	for (size_t i = table->functions.len, n = 0; i-- > 0 && n < 4096; n++) {
		old = &table->functions.data[i];
		if (old->begin != move.from)
			continue;
		function = (struct ky_jit_function){
			.begin = move.to, .bytes = old->bytes, .time_ns = time_ns};
		return ky_jit_table_add(table, &function, old->name, strlen(old->name));
	}
	return KYMO_OK;
}

void ky_jit_table_read_dump(struct ky_jit_table *table, const char *data, size_t len,
			    uint64_t offset_ns)
{
	struct dump_header header;
	struct dump_record record;
	size_t at;
	int ret = KYMO_OK;

	if (len < sizeof(header))
		return;
	memcpy(&header, data, sizeof(header));
	if (header.magic != DUMP_MAGIC || header.header_bytes < sizeof(header))
		return;
	for (at = header.header_bytes; at < len && len - at >= sizeof(record) && !ret;
	     at += record.bytes) {
		const char *body = data + at + sizeof(record);
		uint64_t time_ns;

		memcpy(&record, data + at, sizeof(record));
		if (record.bytes < sizeof(record) || record.bytes > len - at)
			return;
		time_ns = header.flags & 1 ? 0 : record.time_ns + offset_ns;
		if (record.id == DUMP_LOAD)
			ret = dump_add_load(table, body, record.bytes - sizeof(record), time_ns);
		else if (record.id == DUMP_MOVE)
			ret = dump_add_move(table, body, record.bytes - sizeof(record), time_ns);
	}
}

/* ---- looking ---------------------------------------------------------------------------- */

static int jit_table_by_begin(const void *a, const void *b)
{
	const struct ky_jit_function *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

const struct ky_jit_function *ky_jit_table_find(struct ky_jit_table *table, uint64_t address,
						uint64_t time_ns)
{
	const struct ky_jit_function *found = NULL;
	size_t low = 0, high = table->functions.len;

	if (!table->is_sorted && high)
		qsort(table->functions.data, high, sizeof(*table->functions.data),
		      jit_table_by_begin);
	table->is_sorted = true;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (table->functions.data[middle].begin <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (int i = 0; low && i < COVERING_MAX; i++, low--) {
		const struct ky_jit_function *function = &table->functions.data[low - 1];

		if (address - function->begin < function->bytes && function->time_ns <= time_ns &&
		    (!found || function->order > found->order))
			found = function;
	}
	return found;
}
