/* SPDX-License-Identifier: MIT */
/*
 * The state history: names of the functions that programs call, from the addresses in events of libkymo-cyg-profile, libkymo-mcount and
 * their peers. A name is looked up once for each process and address.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/addresses/trace-symbols.h"
#include "analysis/history/history-build.h"
#include "base/foreign.h"
#include "base/hash.h"

#define NAMES_MAX ((size_t)1 << 20) /* other functions have their address as a name */

struct ky_function_names {
	struct ky_trace_symbols *symbols; /* NULL: addresses are the names */
	struct ky_map known;		  /* process and address -> the writer's number and one */
	struct ky_map unnamed;		  /* object and address -> the same */
	struct ky_map objects;		  /* its number -> the writer's and one */
};

struct ky_function_names *ky_function_names_new(const struct ky_history_builder *builder)
{
	const struct ky_trace_symbols_options options = {.is_live = builder->is_live,
							 .is_over = builder->is_over,
							 .over_data = builder->over_data};
	struct ky_function_names *names = calloc(1, sizeof(*names));
	struct kymo_error err;

	if (!names)
		return NULL;
	ky_map_init(&names->known);
	ky_map_init(&names->unnamed);
	ky_map_init(&names->objects);
	if (ky_trace_symbols_open(builder->set, &options, &names->symbols, &err) < 0)
		names->symbols = NULL;
	return names;
}

void ky_function_names_free(struct ky_function_names *names)
{
	if (!names)
		return;
	ky_map_fini(&names->known);
	ky_map_fini(&names->unnamed);
	ky_map_fini(&names->objects);
	ky_trace_symbols_close(names->symbols);
	free(names);
}

bool ky_is_function_event(const char *name, bool *begins)
{
	static const char provider[] = "lttng_ust_cyg_profile";

	if (strncmp(name, provider, sizeof(provider) - 1) != 0)
		return false;
	name += sizeof(provider) - 1;
	if (strncmp(name, "_fast", 5) == 0)
		name += 5;
	*begins = strcmp(name, ":func_entry") == 0;
	return *begins || strcmp(name, ":func_exit") == 0;
}

/* ---- functions whose symbols may come later ------------------------------------------------------ */

static uint32_t function_names_object(struct ky_function_names *names,
				      struct ky_history_writer *writer,
				      const struct ky_symbols_frame *frame)
{
	uintptr_t known = (uintptr_t)ky_map_get(&names->objects, frame->number);
	struct ky_unnamed_object object = {.path = frame->object};
	uint32_t number;

	if (known)
		return (uint32_t)(known - 1);
	object.build_id_bytes = (uint32_t)ky_symbols_build_id(ky_trace_symbols_all(names->symbols),
							      frame->number, &object.build_id);
	number = ky_history_writer_object(writer, &object);
	if (number != UINT32_MAX &&
	    ky_map_set(&names->objects, frame->number, (void *)((uintptr_t)number + 1)) < 0)
		return UINT32_MAX;
	return number;
}

/* "libshop.so+0x1139": the same name for all processes. */
static uint64_t function_names_unnamed(struct ky_function_names *names,
				       struct ky_history_writer *writer,
				       const struct ky_symbols_frame *frame)
{
	const uint64_t key[] = {frame->number, frame->object_offset};
	uint64_t place = ky_hash_bytes(key, sizeof(key)), name;
	uintptr_t known = (uintptr_t)ky_map_get(&names->unnamed, place);
	const char *file = strrchr(frame->object, '/');
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint32_t object;

	if (known)
		return known - 1;
	object = function_names_object(names, writer, frame);
	ky_foreign_adds(&text, file ? file + 1 : frame->object);
	ky_strbuf_addf(&text, "+0x%" PRIx64, frame->object_offset);
	name = object == UINT32_MAX || ky_strbuf_failed(&text)
		       ? UINT64_MAX
		       : ky_history_writer_unnamed(writer, ky_strbuf_text(&text), object,
						   frame->object_offset);
	ky_strbuf_fini(&text);
	if (name != UINT64_MAX &&
	    ky_map_set(&names->unnamed, place, (void *)(uintptr_t)(name + 1)) < 0)
		return UINT64_MAX;
	return name;
}

/* ---- all functions --------------------------------------------------------------------------------- */

/* "checkout", "libshop.so+0x1139", "0x401139"; as the writer's number. UINT64_MAX: out of memory. */
static uint64_t function_names_find(struct ky_function_names *names,
				    struct ky_history_writer *writer, const struct ky_event *event,
				    uint64_t address)
{
	const struct ky_symbols_frame *frames, *own;
	size_t n = names->symbols ? ky_trace_symbols_resolve(names->symbols, event, address, false,
							     &frames)
				  : 0;
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint64_t name;

	own = n ? &frames[n - 1] : NULL;
	if (own && !own->function && own->object && own->number != KY_SYMBOLS_NO_OBJECT)
		return function_names_unnamed(names, writer, own);
	if (own && own->function)
		ky_foreign_adds(&text, own->function);
	else
		ky_strbuf_addf(&text, "0x%" PRIx64, address);
	name = ky_strbuf_failed(&text) ? UINT64_MAX
				       : ky_history_writer_name(writer, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	return name;
}

uint64_t ky_function_name(struct ky_function_names *names, struct ky_history_writer *writer,
			  const struct ky_event *event, int64_t pid, uint64_t address)
{
	int64_t process =
		names->symbols ? ky_trace_symbols_process(names->symbols, event, address) : -1;
	/* Where no process is known, the number that the event has. */
	const uint64_t key[] = {(uint64_t)process, process < 0 ? (uint64_t)pid : 0, address};
	uint64_t place = ky_hash_bytes(key, sizeof(key)), name;
	uintptr_t known = (uintptr_t)ky_map_get(&names->known, place);

	if (known)
		return known - 1;
	if (names->known.len >= NAMES_MAX)
		return ky_history_writer_name(writer, "other functions");
	name = function_names_find(names, writer, event, address);
	if (name != UINT64_MAX &&
	    ky_map_set(&names->known, place, (void *)(uintptr_t)(name + 1)) < 0)
		return UINT64_MAX;
	return name;
}
