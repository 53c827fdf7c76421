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
	if (ky_trace_symbols_open(builder->set, &options, &names->symbols, &err) < 0)
		names->symbols = NULL;
	return names;
}

void ky_function_names_free(struct ky_function_names *names)
{
	if (!names)
		return;
	ky_map_fini(&names->known);
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

/* "checkout", "libshop.so+0x1139", "0x401139" */
static void function_names_text(struct ky_function_names *names, const struct ky_event *event,
				uint64_t address, struct ky_strbuf *text)
{
	const struct ky_symbols_frame *frames, *own;
	size_t n = names->symbols ? ky_trace_symbols_resolve(names->symbols, event, address, false,
							     &frames)
				  : 0;
	const char *file;

	own = n ? &frames[n - 1] : NULL;
	if (own && own->function) {
		ky_foreign_adds(text, own->function);
	} else if (own && own->object) {
		file = strrchr(own->object, '/');
		ky_foreign_adds(text, file ? file + 1 : own->object);
		ky_strbuf_addf(text, "+0x%" PRIx64, own->object_offset);
	} else {
		ky_strbuf_addf(text, "0x%" PRIx64, address);
	}
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
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (known)
		return known - 1;
	if (names->known.len < NAMES_MAX)
		function_names_text(names, event, address, &text);
	else
		ky_strbuf_adds(&text, "other functions");
	name = ky_strbuf_failed(&text) ? UINT64_MAX
				       : ky_history_writer_name(writer, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	if (name != UINT64_MAX && names->known.len < NAMES_MAX &&
	    ky_map_set(&names->known, place, (void *)(uintptr_t)(name + 1)) < 0)
		return UINT64_MAX;
	return name;
}
