/* SPDX-License-Identifier: MIT */
#include "analysis/addresses/trace-maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"

#define EVENT_PATH_MAX 4096

enum kind {
	KIND_NONE,
	KIND_LOAD,     /* of a library, or what is loaded already */
	KIND_BUILD_ID, /* of the one at the same address */
	KIND_UNLOAD,
	KIND_MAP,   /* the kernel's state dump */
	KIND_BEGIN, /* of the mappings of a process, all that it has */
	KIND_THREAD,
	KIND_FORK,
	KIND_EXEC,
	KIND_FUNCTION, /* its name, told by a tracer */
};

static const struct {
	const char *name;
	enum kind kind;
	bool is_old; /* it was there before the event */
} known[] = {
	{"lttng_ust_statedump:bin_info", KIND_LOAD, true},
	{"lttng_ust_statedump:build_id", KIND_BUILD_ID, true},
	{"lttng_ust_dl:dlopen", KIND_LOAD, false},
	{"lttng_ust_dl:dlmopen", KIND_LOAD, false},
	{"lttng_ust_dl:build_id", KIND_BUILD_ID, false},
	{"lttng_ust_dl:dlclose", KIND_UNLOAD, false},
	{"lttng_ust_lib:load", KIND_LOAD, false},
	{"lttng_ust_lib:build_id", KIND_BUILD_ID, false},
	{"lttng_ust_lib:unload", KIND_UNLOAD, false},
	{"lttng_statedump_process_map", KIND_MAP, true},
	{"kymo_mappings_begin", KIND_BEGIN, true},
	{"lttng_statedump_process_state", KIND_THREAD, true},
	{"sched_process_fork", KIND_FORK, false},
	{"sched_process_exec", KIND_EXEC, false},
	/* Of perf.data, which tells so of all threads, whatever it records. */
	{"perf_fork", KIND_FORK, false},
	{"perf_exec", KIND_EXEC, false},
	{"uftrace:function", KIND_FUNCTION, false},
};

/* A library that was loaded: the build ID may come in an event of its own. */
struct library {
	int64_t pid;
	uint64_t begin, bytes, time_ns;
	char path[EVENT_PATH_MAX];
	bool is_pending, is_old;
};

struct maps {
	struct ky_symbols *symbols;
	struct ky_map *tids;
	struct ky_map changed; /* processes that have changed in the trace */
	struct ky_map begun;   /* those whose mappings the trace tells as a whole */
	struct ky_map sizes;   /* of a program's libraries, by size_key() */
	struct library last;
	size_t trace;
	bool is_kernel;
	bool (*is_over)(void *data); /* NULL: never */
	void *over_data;
};

bool ky_trace_maps_is_kernel(const struct ky_trace_class *cls)
{
	const struct ky_env *domain = ky_env_find(cls, "domain");

	return !domain || !domain->is_text || strcmp(domain->text, "ust") != 0;
}

/* ---- fields ----------------------------------------------------------------------------- */

static bool trace_maps_number(const struct ky_event *event, const char *name, uint64_t *value)
{
	struct ky_handle handle;

	return ky_handle_find_any(&handle, event->cls, name) &&
	       ky_get_number(event, &handle, value);
}

static size_t trace_maps_text(const struct ky_event *event, const char *name, char *text,
			      size_t bytes)
{
	struct ky_handle handle;
	struct ky_place place;
	const char *from = NULL;
	size_t len = 0;

	if (ky_handle_find_any(&handle, event->cls, name) &&
	    ky_handle_place(event, &handle, &place))
		from = ky_place_bytes(event, &place, &len);
	if (!from || len >= bytes)
		len = 0;
	memcpy(text, from ? from : "", len);
	text[len] = '\0';
	return len;
}

/* An array of bytes, such as a build ID. */
static size_t trace_maps_bytes(const struct ky_event *event, const char *name, uint8_t *bytes,
			       size_t max)
{
	struct ky_values values;
	struct ky_handle handle;
	size_t n = 0;

	if (!ky_handle_find_any(&handle, event->cls, name))
		return 0;
	ky_values_init(&values);
	if (ky_handle_decode(&values, event, &handle, NULL) > 0 &&
	    values.list.data[0].cls->kind == KY_FIELD_ARRAY)
		for (uint32_t i = 0; i < values.list.data[0].n_below && n < max; i++)
			bytes[n++] = (uint8_t)values.list.data[1 + i].u;
	ky_values_fini(&values);
	return n;
}

/* The bytes of "8f3c..." */
static size_t from_hex(const char *hex, uint8_t *bytes, size_t max)
{
	size_t n = 0;

	for (; n < max && hex[0] && hex[1]; hex += 2) {
		int high = ky_digit_value(hex[0]), low = ky_digit_value(hex[1]);

		if (high > 15 || low > 15)
			break;
		bytes[n++] = (uint8_t)(high << 4 | low);
	}
	return *hex ? 0 : n;
}

static uint64_t time_of(const struct ky_event *event)
{
	return event->ns > 0 ? (uint64_t)event->ns : 0;
}

/* ---- programs --------------------------------------------------------------------------- */

static bool user_process(const struct maps *maps, const struct ky_event *event, int64_t *pid)
{
	const struct ky_env *env = ky_env_find(event->cls->stream->trace, "vpid");
	uint64_t vpid;

	if (!trace_maps_number(event, "vpid", &vpid)) {
		if (!env || env->is_text)
			return false;
		vpid = (uint64_t)env->number;
	}
	*pid = ky_trace_maps_process(maps->trace, false, (uint32_t)vpid);
	return true;
}

static uint64_t size_key(int64_t pid, uint64_t begin)
{
	return ky_hash_u64(begin ^ ky_hash_u64((uint64_t)pid));
}

static int add_library(struct maps *maps, const uint8_t *id, size_t id_bytes)
{
	struct library *library = &maps->last;
	struct ky_symbols_mapping mapping = {
		.begin = library->begin,
		.end = library->begin + library->bytes,
		.is_image = true,
		.time_ns = library->time_ns,
		.is_old = library->is_old,
	};
	int ret;

	if (!library->is_pending)
		return KYMO_OK;
	library->is_pending = false;
	mapping.object = ky_symbols_object(maps->symbols, library->path, id, id_bytes, -1);
	ret = ky_symbols_map(maps->symbols, library->pid, &mapping);
	if (!ret)
		ret = ky_map_set(&maps->sizes, size_key(library->pid, library->begin),
				 (void *)(uintptr_t)library->bytes);
	return ret == KYMO_E_MEMORY ? ret : KYMO_OK;
}

static int trace_maps_load(struct maps *maps, const struct ky_event *event, bool is_old)
{
	struct library *library = &maps->last;
	uint64_t has_id = 0;
	int ret = add_library(maps, NULL, 0);

	if (ret || !user_process(maps, event, &library->pid) ||
	    !trace_maps_number(event, "baddr", &library->begin) ||
	    !trace_maps_number(event, "memsz", &library->bytes) ||
	    !trace_maps_text(event, "path", library->path, sizeof(library->path)) ||
	    library->bytes > UINT64_MAX - library->begin)
		return ret;
	library->time_ns = time_of(event);
	library->is_old = is_old;
	library->is_pending = true;
	trace_maps_number(event, "has_build_id", &has_id);
	return has_id ? KYMO_OK : add_library(maps, NULL, 0);
}

static int take_build_id(struct maps *maps, const struct ky_event *event)
{
	uint8_t id[64];
	uint64_t begin;
	int64_t pid;

	if (!user_process(maps, event, &pid) || !trace_maps_number(event, "baddr", &begin) ||
	    pid != maps->last.pid || begin != maps->last.begin)
		return KYMO_OK;
	return add_library(maps, id, trace_maps_bytes(event, "build_id", id, sizeof(id)));
}

static int unload(struct maps *maps, const struct ky_event *event)
{
	uint64_t begin;
	int64_t pid;
	int ret = add_library(maps, NULL, 0);

	if (!ret && user_process(maps, event, &pid) && trace_maps_number(event, "baddr", &begin))
		ky_symbols_unmap(maps->symbols, pid, begin,
				 begin + (uintptr_t)ky_map_get(&maps->sizes, size_key(pid, begin)),
				 time_of(event));
	return ret;
}

static int name_function(struct maps *maps, const struct ky_event *event)
{
	char name[EVENT_PATH_MAX];
	uint64_t begin, bytes;
	int64_t pid;

	if (!user_process(maps, event, &pid) || !trace_maps_number(event, "begin", &begin) ||
	    !trace_maps_number(event, "size", &bytes) ||
	    !trace_maps_text(event, "name", name, sizeof(name)))
		return KYMO_OK;
	return ky_symbols_name(maps->symbols, pid, begin, bytes, name) == KYMO_E_MEMORY
		       ? KYMO_E_MEMORY
		       : KYMO_OK;
}

/* ---- the kernel's events ---------------------------------------------------------------- */

static int map(struct maps *maps, const struct ky_event *event)
{
	struct ky_symbols_mapping mapping = {0};
	char path[EVENT_PATH_MAX], hex[2 * 64 + 1];
	uint64_t pid, protection = 4;
	uint8_t id[64];
	size_t id_bytes;
	int ret;

	trace_maps_number(event, "protection", &protection);
	if (!(protection & 4) || !trace_maps_number(event, "pid", &pid) ||
	    !trace_maps_number(event, "begin", &mapping.begin) ||
	    !trace_maps_number(event, "end", &mapping.end) ||
	    !trace_maps_number(event, "offset", &mapping.offset) ||
	    !trace_maps_text(event, "filename", path, sizeof(path)))
		return KYMO_OK;
	trace_maps_text(event, "build_id", hex, sizeof(hex));
	id_bytes = from_hex(hex, id, sizeof(id));
	mapping.time_ns = time_of(event);
	mapping.is_old = !ky_map_get(&maps->changed, pid);
	mapping.object =
		ky_symbols_object(maps->symbols, path, id, id_bytes, (int64_t)(uint32_t)pid);
	ret = ky_symbols_map(maps->symbols, (int64_t)(uint32_t)pid, &mapping);
	return ret == KYMO_E_MEMORY ? ret : KYMO_OK;
}

/* The first time, what follows was there before; later the process has begun, or executes another program. */
static int begin_maps(struct maps *maps, const struct ky_event *event)
{
	uint64_t pid;
	bool is_known;

	if (!trace_maps_number(event, "pid", &pid))
		return KYMO_OK;
	is_known = ky_map_get(&maps->begun, (uint32_t)pid) ||
		   ky_map_get(&maps->changed, (uint32_t)pid);
	if (ky_map_set(&maps->begun, (uint32_t)pid, maps) < 0)
		return KYMO_E_MEMORY;
	if (!is_known)
		return KYMO_OK;
	ky_symbols_exec(maps->symbols, (int64_t)(uint32_t)pid, time_of(event));
	return ky_map_set(&maps->changed, (uint32_t)pid, maps);
}

static int add_thread(struct maps *maps, uint64_t tid, uint64_t pid)
{
	return ky_map_set(maps->tids, (uint32_t)tid, (void *)(uintptr_t)((uint32_t)pid + 1ull));
}

static int fork_process(struct maps *maps, const struct ky_event *event)
{
	uint64_t parent, child, tid;
	int ret = KYMO_OK;

	if (!trace_maps_number(event, "child_tid", &tid))
		return KYMO_OK;
	if (!trace_maps_number(event, "child_pid", &child))
		child = tid;
	ret = add_thread(maps, tid, child);
	if (ret || !trace_maps_number(event, "parent_pid", &parent) || parent == child)
		return ret;
	ret = ky_map_set(&maps->changed, (uint32_t)child, maps);
	return ret ? ret
		   : ky_symbols_fork(maps->symbols, (int64_t)(uint32_t)parent,
				     (int64_t)(uint32_t)child, time_of(event));
}

static int exec(struct maps *maps, const struct ky_event *event)
{
	uint64_t tid;

	/* sched_process_exec comes after the program's first mappings, of which samples tell. */
	if (!trace_maps_number(event, "tid", &tid) || ky_map_get(&maps->begun, (uint32_t)tid))
		return KYMO_OK;
	ky_symbols_exec(maps->symbols, (int64_t)(uint32_t)tid, time_of(event));
	return ky_map_set(&maps->changed, (uint32_t)tid, maps);
}

static int take_event(struct maps *maps, const struct ky_event *event)
{
	uint64_t tid, pid;
	size_t i;

	for (i = 0; strcmp(event->cls->name, known[i].name) != 0;)
		if (++i == sizeof(known) / sizeof(known[0]))
			return KYMO_OK;
	switch (known[i].kind) {
	case KIND_LOAD:
		return trace_maps_load(maps, event, known[i].is_old);
	case KIND_BUILD_ID:
		return take_build_id(maps, event);
	case KIND_UNLOAD:
		return unload(maps, event);
	case KIND_MAP:
		return map(maps, event);
	case KIND_BEGIN:
		return begin_maps(maps, event);
	case KIND_THREAD:
		if (trace_maps_number(event, "tid", &tid) && trace_maps_number(event, "pid", &pid))
			return add_thread(maps, tid, pid);
		return KYMO_OK;
	case KIND_FORK:
		return fork_process(maps, event);
	case KIND_EXEC:
		return exec(maps, event);
	case KIND_FUNCTION:
		return name_function(maps, event);
	case KIND_NONE:
		break;
	}
	return KYMO_OK;
}

/* ---- the pass --------------------------------------------------------------------------- */

static uint8_t *wanted_of(const struct ky_trace_class *cls, bool *any)
{
	uint8_t *wanted = calloc(cls->events.len + 1, 1);

	for (size_t e = 0; wanted && e < cls->events.len; e++)
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			if (cls->events.data[e]->name &&
			    strcmp(cls->events.data[e]->name, known[i].name) == 0) {
				wanted[e] = 1;
				*any = true;
			}
	return wanted;
}

/* The events of @trace that are wanted, in the order of time. */
static int open_trace(const struct maps *maps, const struct ky_trace *trace, const uint8_t *wanted,
		      struct ky_flow **flow, struct kymo_error *err)
{
	struct ky_flow **inputs = calloc(trace->streams.len + 1, sizeof(struct ky_flow *));
	size_t n = 0;
	int ret = inputs ? KYMO_OK : ky_error_nomem(err);

	while (!ret && n < trace->streams.len) {
		ret = ky_source_open(trace->streams.data[n], &inputs[n], err);
		if (ret)
			break;
		ky_source_want(inputs[n], wanted);
		ky_source_stop(inputs[n++], maps->is_over, maps->over_data);
	}
	if (ret)
		for (size_t i = 0; i < n; i++)
			ky_flow_close(inputs[i]);
	else
		ret = ky_merge_open(inputs, n, flow, err);
	free(inputs);
	return ret;
}

static int read_flow(struct maps *maps, struct ky_flow *flow, struct kymo_error *err)
{
	struct ky_batch batch;
	int ret;

	while ((ret = ky_flow_next(flow, &batch, err)) > 0)
		for (size_t i = 0; i < batch.n_events; i++)
			if (take_event(maps, &batch.events[i]) < 0)
				return ky_error_nomem(err);
	/* The reader of the events reports damage. */
	return ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT || ret == KYMO_E_AGAIN ? KYMO_OK : ret;
}

static int read_trace(struct maps *maps, const struct ky_trace *trace, struct kymo_error *err)
{
	bool any = false;
	uint8_t *wanted = wanted_of(trace->cls, &any);
	struct ky_flow *flow;
	int ret = wanted ? KYMO_OK : ky_error_nomem(err);

	if (!ret && any && trace->streams.len) {
		ret = open_trace(maps, trace, wanted, &flow, err);
		if (!ret) {
			ret = read_flow(maps, flow, err);
			ky_flow_close(flow);
		}
		if (!ret && add_library(maps, NULL, 0) < 0)
			ret = ky_error_nomem(err);
	}
	free(wanted);
	return ret;
}

int ky_trace_maps_read(const struct ky_trace_set *set, struct ky_symbols *symbols,
		       struct ky_map *tids, bool (*is_over)(void *data), void *over_data,
		       struct kymo_error *err)
{
	struct maps *maps = calloc(1, sizeof(*maps));
	int ret = maps ? KYMO_OK : ky_error_nomem(err);

	if (ret)
		return ret;
	maps->symbols = symbols;
	maps->tids = tids;
	maps->is_over = is_over;
	maps->over_data = over_data;
	ky_map_init(&maps->changed);
	ky_map_init(&maps->begun);
	ky_map_init(&maps->sizes);
	for (size_t i = 0; !ret && i < set->traces.len; i++) {
		maps->trace = i;
		maps->is_kernel = ky_trace_maps_is_kernel(set->traces.data[i]->cls);
		ret = read_trace(maps, set->traces.data[i], err);
	}
	ky_map_fini(&maps->changed);
	ky_map_fini(&maps->begun);
	ky_map_fini(&maps->sizes);
	free(maps);
	return ret;
}
