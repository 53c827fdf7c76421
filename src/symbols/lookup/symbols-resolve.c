/* SPDX-License-Identifier: MIT */
/* Frames of an address (symbols.h), and their cache. */
#include <stdlib.h>
#include <string.h>

#include "symbols/demangle/demangle.h"
#include "symbols/dwarf/dwarf-units.h"
#include "symbols/kdi/kdi.h"
#include "symbols/lookup/symbols-internal.h"

#define CACHED_MAX_BYTES (32u << 20)

/* ---- the cache -------------------------------------------------------------------------- */

static uint64_t resolve_key_of(uint32_t object, uint64_t address)
{
	return ky_hash_u64(address ^ (uint64_t)object << 40);
}

static const struct ky_symbols_entry *symbols_resolve_find_entry(const struct ky_symbols *symbols,
								 uint32_t object, uint64_t address)
{
	const struct ky_symbols_entry *entry =
		ky_map_get(&symbols->cache, resolve_key_of(object, address));

	return entry && entry->object == object && entry->address == address ? entry : NULL;
}

static const char *keep(struct ky_symbols *symbols, const char *text)
{
	return text ? ky_arena_strdup(&symbols->cached, text) : NULL;
}

/* A function's name as people write it. */
static const char *keep_function(struct ky_symbols *symbols, const char *name)
{
	char plain[KY_DEMANGLED_BYTES];

	return keep(symbols, name && ky_demangle(name, plain) ? plain : name);
}

static struct ky_symbols_entry *entry_new(struct ky_symbols *symbols, uint32_t object,
					  uint64_t address, size_t n)
{
	struct ky_symbols_entry *entry;

	if (symbols->cached.total > CACHED_MAX_BYTES) {
		ky_map_fini(&symbols->cache);
		ky_map_init(&symbols->cache);
		ky_arena_fini(&symbols->cached);
		ky_arena_init(&symbols->cached);
	}
	entry = ky_arena_alloc(&symbols->cached, sizeof(*entry) + n * sizeof(entry->frames[0]));
	if (!entry)
		return NULL;
	*entry = (struct ky_symbols_entry){.address = address, .object = object, .n = (uint32_t)n};
	if (ky_map_set(&symbols->cache, resolve_key_of(object, address), entry) < 0)
		entry->object = KY_SYMBOLS_NO_OBJECT;
	return entry;
}

/* ---- files ------------------------------------------------------------------------------ */

/* Lines of a few files are held at a time. */
static void close_oldest(struct ky_symbols *symbols)
{
	struct ky_object *oldest = NULL;
	unsigned int open = 0;

	ky_vec_foreach(&symbols->objects, object) {
		if (!(*object)->module)
			continue;
		open++;
		if (!oldest || (*object)->used < oldest->used)
			oldest = *object;
	}
	if (open >= KY_SYMBOLS_OPEN_FILES)
		ky_object_close(oldest);
}

static size_t resolve_find_lines(struct ky_symbols *symbols, struct ky_object *object,
				 uint64_t address, struct ky_dwarf_frame *frames)
{
	if (!symbols->options.want_lines || object->has_no_lines)
		return 0;
	if (!object->module)
		close_oldest(symbols);
	if (ky_object_open(object, &symbols->search) && !object->units)
		object->units = ky_dwarf_units_new(object->module, &object->alt);
	object->has_no_lines = !object->units;
	if (!object->units) {
		ky_object_close(object);
		return 0;
	}
	object->used = ++symbols->uses;
	return ky_dwarf_units_find(object->units, address + object->bias, frames,
				   KY_SYMBOLS_FRAMES_MAX);
}

static void set_frame(struct ky_symbols *symbols, struct ky_symbols_frame *frame,
		      const struct ky_dwarf_frame *found)
{
	frame->function = keep_function(symbols, found->name);
	frame->file = keep(symbols, found->file);
	frame->line = frame->file ? found->line : 0;
}

static void set_outermost_frame(const struct ky_object *object, uint64_t from,
				struct ky_symbols_entry *entry, uint32_t i)
{
	entry->frames[i].offset = from ? entry->address - from : 0;
	entry->frames[i].object = object->path;
	entry->frames[i].object_offset = entry->address;
	entry->frames[i].is_inlined = i + 1 < entry->n;
	entry->frames[i].number = entry->object;
}

/* The function that is not inlined is called as its symbol: "f.cold", where the debug information says "f". */
static void set_outermost(struct ky_symbols *symbols, const struct ky_object *object,
			  const char *name, uint64_t from, struct ky_symbols_entry *entry)
{
	struct ky_symbols_frame *last = &entry->frames[entry->n - 1];

	if (name)
		last->function = keep_function(symbols, name);
	for (uint32_t i = 0; i < entry->n; i++)
		set_outermost_frame(object, from, entry, i);
}

/* Of a file of Kymo's debug information. */
static const struct ky_symbols_entry *kdi_entry(struct ky_symbols *symbols, uint32_t number,
						uint64_t address)
{
	struct ky_object *object = symbols->objects.data[number];
	struct ky_kdi_frame found[KY_SYMBOLS_FRAMES_MAX];
	struct ky_symbols_entry *entry;
	struct ky_kdi_found function;
	size_t n = 0;
	bool is_known = ky_kdi_find(object->kdi, address, &function);

	if (is_known && symbols->options.want_lines)
		n = ky_kdi_frames(object->kdi, &function, address, found, KY_SYMBOLS_FRAMES_MAX);
	entry = entry_new(symbols, number, address, n ? n : 1);
	for (size_t i = 0; entry && i < n; i++)
		set_frame(symbols, &entry->frames[i],
			  &(struct ky_dwarf_frame){.name = found[i].name,
						   .file = found[i].file,
						   .line = found[i].line});
	if (entry)
		set_outermost(symbols, object, is_known ? function.name : NULL,
			      is_known ? function.address : 0, entry);
	return entry;
}

static const struct ky_symbols_entry *object_entry(struct ky_symbols *symbols, uint32_t number,
						   uint64_t address)
{
	struct ky_object *object = symbols->objects.data[number];
	struct ky_dwarf_frame found[KY_SYMBOLS_FRAMES_MAX];
	const struct ky_symbol *symbol = ky_symbol_table_find(&object->table, address);
	size_t n = resolve_find_lines(symbols, object, address, found);
	struct ky_symbols_entry *entry = entry_new(symbols, number, address, n ? n : 1);
	const char *name = symbol ? ky_symbol_name(&object->table, symbol) : NULL;

	for (size_t i = 0; entry && i < n; i++)
		set_frame(symbols, &entry->frames[i], &found[i]);
	if (entry)
		set_outermost(symbols, object, name,
			      symbol ? symbol->address
			      : n    ? found[n - 1].begin
				     : 0,
			      entry);
	return entry;
}

/* ---- kinds of addresses ----------------------------------------------------------------- */

static size_t symbols_resolve_answer_one(struct ky_symbols *symbols,
					 const struct ky_symbols_frame *frame)
{
	symbols->frames[0] = *frame;
	if (frame->object[0] == '[' && !frame->object_offset)
		symbols->frames[0].number = KY_SYMBOLS_NO_OBJECT;
	return 1;
}

static struct ky_kernel_lookup *kernel_lookup(struct ky_symbols *symbols)
{
	bool is_tried = symbols->is_lookup_tried;

	symbols->is_lookup_tried = true;
	if (is_tried || symbols->options.kallsyms || !symbols->options.is_here)
		return symbols->lookup;
	symbols->lookup = malloc(sizeof(*symbols->lookup));
	if (symbols->lookup && !ky_kernel_lookup_open(symbols->lookup)) {
		ky_kernel_lookup_fini(symbols->lookup);
		free(symbols->lookup);
		symbols->lookup = NULL;
	}
	return symbols->lookup;
}

static size_t table_frames(struct ky_symbols *symbols, uint64_t address)
{
	const char *path = symbols->options.kallsyms;
	const struct ky_symbol *symbol;

	if (!path && symbols->options.is_here)
		path = "/proc/kallsyms";
	if (!symbols->is_kernel_read && path)
		(void)ky_kernel_table_read(&symbols->kernel, path);
	symbols->is_kernel_read = true;
	symbol = ky_symbol_table_find(&symbols->kernel.table, address);
	if (!symbol)
		return 0;
	return symbols_resolve_answer_one(
		symbols, &(struct ky_symbols_frame){
				 .function = ky_symbol_name(&symbols->kernel.table, symbol),
				 .offset = address - symbol->address,
				 .object = ky_kernel_table_module(&symbols->kernel, symbol),
			 });
}

static size_t kernel_frames(struct ky_symbols *symbols, uint64_t address)
{
	struct ky_kernel_lookup *lookup = kernel_lookup(symbols);
	const struct ky_kernel_function *function;
	int ret = lookup ? ky_kernel_lookup_find(lookup, address, &function) : KYMO_E_LIMIT;

	if (ret == KYMO_E_LIMIT)
		return table_frames(symbols, address);
	if (ret <= 0)
		return 0;
	return symbols_resolve_answer_one(symbols, &(struct ky_symbols_frame){
							   .function = function->name,
							   .offset = address - function->begin,
							   .object = function->module,
						   });
}

static size_t jit_frames(struct ky_symbols *symbols, struct ky_symbols_process *process,
			 uint64_t address, uint64_t time_ns)
{
	const struct ky_jit_function *function;

	ky_symbols_read_jit(symbols, process);
	function = ky_jit_table_find(&process->jit, address, time_ns);
	if (!function)
		return 0;
	return symbols_resolve_answer_one(symbols, &(struct ky_symbols_frame){
							   .function = function->name,
							   .offset = address - function->begin,
							   .object = "[jit]",
						   });
}

static size_t file_frames(struct ky_symbols *symbols, uint32_t number, uint64_t address)
{
	const struct ky_symbols_entry *entry = symbols_resolve_find_entry(symbols, number, address);

	if (!entry)
		entry = symbols->objects.data[number]->kdi ? kdi_entry(symbols, number, address)
							   : object_entry(symbols, number, address);
	if (!entry)
		return 0;
	memcpy(symbols->frames, entry->frames, entry->n * sizeof(entry->frames[0]));
	return entry->n;
}

static bool symbols_resolve_load(struct ky_symbols *symbols, struct ky_object *object)
{
	if (object->state == KY_OBJECT_NEW && symbols->search.keep_open)
		close_oldest(symbols);
	object->used = ++symbols->uses;
	return ky_object_load(object, &symbols->search);
}

static size_t region_frames(struct ky_symbols *symbols, const struct ky_region *region,
			    uint64_t address)
{
	struct ky_object *object = symbols->objects.data[region->object];
	uint64_t offset = address - region->begin + region->offset;

	if (!symbols_resolve_load(symbols, object) ||
	    !(region->is_image || ky_object_address(object, offset, &address)))
		return symbols_resolve_answer_one(
			symbols, &(struct ky_symbols_frame){.object = object->path,
							    .object_offset = offset});
	if (region->is_image)
		address = offset + object->first_page;
	return file_frames(symbols, region->object, address);
}

size_t ky_symbols_resolve_in(struct ky_symbols *symbols, uint32_t object, uint64_t address,
			     const struct ky_symbols_frame **frames)
{
	*frames = symbols->frames;
	if (object >= symbols->objects.len ||
	    !symbols_resolve_load(symbols, symbols->objects.data[object]))
		return 0;
	return file_frames(symbols, object, address);
}

static const struct ky_region *symbols_resolve_region(struct ky_symbols *symbols,
						      struct ky_symbols_process *process,
						      uint64_t address, uint64_t time_ns)
{
	if (!process->is_known && symbols->options.is_here)
		(void)ky_symbols_read_maps(symbols, process, 0);
	return ky_address_space_find(&process->space, address,
				     time_ns == UINT64_MAX ? UINT64_MAX - 1 : time_ns);
}

bool ky_symbols_place(struct ky_symbols *symbols, const struct ky_symbols_query *query,
		      struct ky_symbols_place *place)
{
	uint64_t address = query->address - (query->is_return && query->address);
	struct ky_symbols_process *process =
		query->pid < 0 ? NULL : ky_symbols_process(symbols, query->pid);
	const struct ky_region *region =
		process ? symbols_resolve_region(symbols, process, address, query->time_ns) : NULL;

	if (!region)
		return false;
	*place = (struct ky_symbols_place){.offset = address - region->begin + region->offset,
					   .object = region->object,
					   .is_image = region->is_image};
	return true;
}

/*
 * The name that the trace tells: where the file of a region has none for @address, or where the trace says that a function begins in the
 * middle of the file's one. Stubs of called library functions have no symbols, so the one before them seems to reach there.
 */
static size_t told_frames(struct ky_symbols *symbols, struct ky_symbols_process *process,
			  uint64_t address, size_t n)
{
	const struct ky_jit_function *function =
		n == 1 && process->told.functions.len
			? ky_jit_table_find(&process->told, address, UINT64_MAX)
			: NULL;
	const struct ky_symbols_frame *frame = &symbols->frames[0];

	if (function && (!frame->function || (function->begin == address && frame->offset != 0))) {
		symbols->frames[0].function = function->name;
		symbols->frames[0].offset = address - function->begin;
	}
	return n;
}

static size_t user_frames(struct ky_symbols *symbols, int64_t pid, uint64_t address,
			  uint64_t time_ns)
{
	struct ky_symbols_process *process = ky_symbols_process(symbols, pid);
	const struct ky_region *region =
		process ? symbols_resolve_region(symbols, process, address, time_ns) : NULL;

	if (!process)
		return 0;
	return region ? told_frames(symbols, process, address,
				    region_frames(symbols, region, address))
		      : jit_frames(symbols, process, address, time_ns);
}

size_t ky_symbols_resolve(struct ky_symbols *symbols, const struct ky_symbols_query *query,
			  const struct ky_symbols_frame **frames)
{
	uint64_t address = query->address - (query->is_return && query->address);
	size_t n = query->pid < 0 ? kernel_frames(symbols, address)
				  : user_frames(symbols, query->pid, address, query->time_ns);

	for (size_t i = 0; i < n && query->is_return && query->address; i++) {
		symbols->frames[i].offset++;
		symbols->frames[i].object_offset++;
	}
	*frames = symbols->frames;
	return n;
}
