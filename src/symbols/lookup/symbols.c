/* SPDX-License-Identifier: MIT */
#include "symbols/lookup/symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "symbols/dwarf/libdw.h"
#include "symbols/demangle/demangle.h"
#include "symbols/lookup/symbols-internal.h"

#define OBJECTS_MAX (1u << 20)

/* ---- open and close --------------------------------------------------------------------- */

int ky_symbols_open(const struct ky_symbols_options *options, struct ky_symbols **symbols,
		    struct kymo_error *err)
{
	struct ky_symbols *s;
	int ret = ky_libdw_load(err);

	if (ret < 0)
		return ret;
	s = calloc(1, sizeof(*s));
	if (!s)
		return ky_error_nomem(err);
	s->options = *options;
	s->search = (struct ky_object_search){
		.dirs = options->dirs,
		.n_dirs = options->n_dirs,
		.only_dirs = options->only_dirs,
		.is_here = options->is_here,
		.keep_open = options->want_lines || options->want_store,
	};
	ky_names_init(&s->by_name);
	ky_map_init(&s->processes);
	ky_map_init(&s->cache);
	ky_map_init(&s->jit_bytes);
	ky_arena_init(&s->keys);
	ky_arena_init(&s->cached);
	*symbols = s;
	return KYMO_OK;
}

static void process_free(struct ky_symbols_process *process)
{
	ky_address_space_fini(&process->space);
	ky_jit_table_fini(&process->jit);
	ky_jit_table_fini(&process->told);
	free(process);
}

static void processes_free(struct ky_symbols *symbols)
{
	size_t at = 0;
	uint64_t pid;
	void *value;

	while (ky_map_next(&symbols->processes, &at, &pid, &value))
		process_free(value);
	ky_map_fini(&symbols->processes);
}

void ky_symbols_close(struct ky_symbols *symbols)
{
	if (!symbols)
		return;
	processes_free(symbols);
	ky_vec_foreach(&symbols->objects, object) {
		ky_object_fini(*object);
		free(*object);
	}
	ky_vec_fini(&symbols->objects);
	ky_kernel_table_fini(&symbols->kernel);
	if (symbols->lookup)
		ky_kernel_lookup_fini(symbols->lookup);
	free(symbols->lookup);
	ky_names_fini(&symbols->by_name);
	ky_map_fini(&symbols->cache);
	ky_map_fini(&symbols->jit_bytes);
	ky_arena_fini(&symbols->keys);
	ky_arena_fini(&symbols->cached);
	free(symbols);
}

/* ---- objects ---------------------------------------------------------------------------- */

/* What tells files apart: the build ID; else the path, as the process's root has it. */
static char *key_of(struct ky_symbols *symbols, const char *path, const uint8_t *id, size_t bytes,
		    int64_t pid)
{
	char hex[2 * KY_ELF_BUILD_ID_MAX + 1] = "";

	if (!bytes)
		return ky_arena_printf(
			&symbols->keys, "%lld:%s",
			symbols->options.is_here && path[0] == '/' ? (long long)pid : -1LL, path);
	for (size_t i = 0; i < bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", id[i]);
	return ky_arena_strdup(&symbols->keys, hex);
}

static struct ky_object *object_new(const struct ky_symbols *symbols, const char *path, int64_t pid)
{
	struct ky_object *object = calloc(1, sizeof(*object));

	if (!object)
		return NULL;
	object->path = strdup(path);
	if (pid > 0 && symbols->options.is_here && path[0] == '/' &&
	    asprintf(&object->also, "/proc/%lld/root%s", (long long)pid, path) < 0)
		object->also = NULL;
	if (!object->path) {
		ky_object_fini(object);
		free(object);
		return NULL;
	}
	return object;
}

uint32_t ky_symbols_object(struct ky_symbols *symbols, const char *path, const uint8_t *build_id,
			   size_t build_id_bytes, int64_t pid)
{
	struct ky_object *object;
	uintptr_t number;
	char *key;

	if (build_id_bytes > KY_ELF_BUILD_ID_MAX)
		build_id_bytes = 0;
	key = key_of(symbols, path, build_id, build_id_bytes, pid);
	number = key ? (uintptr_t)ky_names_get(&symbols->by_name, key) : 0;
	if (number)
		return (uint32_t)(number - 1);
	object = key && symbols->objects.len < OBJECTS_MAX ? object_new(symbols, path, pid) : NULL;
	if (!object)
		return KY_SYMBOLS_NO_OBJECT;
	memcpy(object->build_id, build_id_bytes ? build_id : (const uint8_t *)"", build_id_bytes);
	object->build_id_bytes = (uint32_t)build_id_bytes;
	if (ky_vec_push(&symbols->objects, object) < 0) {
		ky_object_fini(object);
		free(object);
		return KY_SYMBOLS_NO_OBJECT;
	}
	ky_names_set(&symbols->by_name, key, (void *)(uintptr_t)symbols->objects.len);
	return (uint32_t)(symbols->objects.len - 1);
}

size_t ky_symbols_build_id(const struct ky_symbols *symbols, uint32_t object,
			   const uint8_t **build_id)
{
	*build_id = NULL;
	if (object >= symbols->objects.len)
		return 0;
	*build_id = symbols->objects.data[object]->build_id;
	return symbols->objects.data[object]->build_id_bytes;
}

/* ---- processes -------------------------------------------------------------------------- */

struct ky_symbols_process *ky_symbols_process(struct ky_symbols *symbols, int64_t pid)
{
	struct ky_symbols_process *process = ky_map_get(&symbols->processes, (uint64_t)pid);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process || ky_map_set(&symbols->processes, (uint64_t)pid, process) < 0) {
		free(process);
		return NULL;
	}
	process->pid = pid;
	process->user = KY_SYMBOLS_NO_USER;
	ky_jit_table_init(&process->jit);
	ky_jit_table_init(&process->told);
	return process;
}

int ky_symbols_map(struct ky_symbols *symbols, int64_t pid,
		   const struct ky_symbols_mapping *mapping)
{
	struct ky_symbols_process *process = ky_symbols_process(symbols, pid);
	struct ky_region region = {
		.begin = mapping->begin,
		.end = mapping->end,
		.offset = mapping->offset,
		.from_ns = mapping->time_ns,
		.to_ns = UINT64_MAX,
		.object = mapping->object,
		.is_image = mapping->is_image,
	};

	if (mapping->begin >= mapping->end || mapping->object >= symbols->objects.len)
		return KYMO_E_INVALID;
	if (!process)
		return KYMO_E_MEMORY;
	process->is_known = true;
	if (pid > 0 && pid <= INT32_MAX && !mapping->is_image) {
		struct ky_object *object = symbols->objects.data[mapping->object];

		object->mapped_by = pid;
		object->mapped_begin = mapping->begin;
		object->mapped_end = mapping->end;
	}
	if (mapping->is_old) {
		const struct ky_region *last = ky_address_space_overlap(
			&process->space, region.begin, region.end, UINT64_MAX - 1);

		if (last && last->begin == region.begin && last->end == region.end &&
		    last->offset == region.offset && last->object == region.object)
			return KYMO_OK;
		if (!last)
			region.from_ns = 0;
	}
	return ky_address_space_add(&process->space, &region);
}

void ky_symbols_unmap(struct ky_symbols *symbols, int64_t pid, uint64_t begin, uint64_t end,
		      uint64_t time_ns)
{
	struct ky_symbols_process *process = ky_map_get(&symbols->processes, (uint64_t)pid);

	/* Out of memory, what was unmapped seems to be still there. */
	if (process && begin < end)
		(void)ky_address_space_cut(&process->space, begin, end, time_ns);
}

int ky_symbols_fork(struct ky_symbols *symbols, int64_t parent, int64_t child, uint64_t time_ns)
{
	struct ky_symbols_process *from = ky_map_get(&symbols->processes, (uint64_t)parent), *to;

	if (!from || parent == child)
		return KYMO_OK;
	to = ky_symbols_process(symbols, child);
	if (!to)
		return KYMO_E_MEMORY;
	to->is_known = from->is_known;
	to->user = from->user;
	if (to->space.regions.len)
		ky_symbols_exec(symbols, child, time_ns);
	return ky_address_space_copy(&to->space, &from->space, time_ns);
}

void ky_symbols_exec(struct ky_symbols *symbols, int64_t pid, uint64_t time_ns)
{
	struct ky_symbols_process *process = ky_map_get(&symbols->processes, (uint64_t)pid);

	if (!process)
		return;
	process->is_known = true;
	ky_vec_foreach(&process->space.regions, region)
		if (region->to_ns > time_ns)
			region->to_ns = time_ns;
}

int ky_symbols_map_running(struct ky_symbols *symbols, int64_t pid, uint64_t time_ns)
{
	struct ky_symbols_process *process = ky_symbols_process(symbols, pid);

	return process ? ky_symbols_read_maps(symbols, process, time_ns) : KYMO_E_MEMORY;
}

int ky_symbols_set_user(struct ky_symbols *symbols, int64_t pid, uint32_t uid)
{
	struct ky_symbols_process *process = ky_symbols_process(symbols, pid);

	if (!process)
		return KYMO_E_MEMORY;
	process->user = uid;
	return KYMO_OK;
}

int ky_symbols_name(struct ky_symbols *symbols, int64_t pid, uint64_t begin, uint64_t bytes,
		    const char *name)
{
	struct ky_symbols_process *process = ky_symbols_process(symbols, pid);
	const struct ky_jit_function function = {.begin = begin, .bytes = bytes};
	char plain[KY_DEMANGLED_BYTES];

	if (!process)
		return KYMO_E_MEMORY;
	if (ky_demangle(name, plain))
		name = plain;
	return ky_jit_table_add(&process->told, &function, name, strlen(name));
}

const char *ky_symbols_kernel_problem(const struct ky_symbols *symbols)
{
	return symbols->kernel.problem;
}
