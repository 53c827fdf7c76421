/* SPDX-License-Identifier: MIT */
#include "analysis/addresses/trace-store.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "ctf/decode/stored-stacks.h"
#include "os/file.h"

#define SEEN_MAX (4u << 20) /* different addresses; more are left out */

struct file {
	KY_VEC(struct ky_symbols_place) places;
};

/* Functions of the kernel, or of a process's compiler at run time, by address. */
struct code {
	uint64_t begin;
	int64_t pid; /* < 0: the kernel */
	const char *name, *object;
};

struct store {
	struct ky_trace_symbols *symbols;
	struct ky_trace_stored *stored;
	struct ky_map seen; /* hash of a place in a file, or of an address -> anything */
	struct ky_map code_seen;
	KY_VEC(struct file) files; /* by number of the object */
	KY_VEC(struct code) code;
	struct ky_arena texts;
	struct ky_values values;
};

/* ---- addresses -------------------------------------------------------------------------- */

static int take_code(struct store *store, const struct ky_symbols_frame *frame, uint64_t address,
		     int64_t pid)
{
	struct code code = {.begin = address - frame->offset, .pid = pid};
	uint64_t key = ky_hash_u64(code.begin ^ (uint64_t)pid << 48);

	if (ky_map_get(&store->code_seen, key))
		return KYMO_OK;
	code.name = ky_arena_strdup(&store->texts, frame->function);
	code.object = ky_arena_strdup(&store->texts, frame->object);
	if (!code.name || !code.object || ky_map_set(&store->code_seen, key, store) < 0)
		return KYMO_E_MEMORY;
	store->stored->kernel_functions += pid < 0;
	return ky_vec_push(&store->code, code);
}

/* 1: @key is new; 0: it is not, or there are too many; or KYMO_E_MEMORY. */
static int trace_store_is_new(struct store *store, uint64_t key)
{
	if (ky_map_get(&store->seen, key) || store->seen.len >= SEEN_MAX)
		return 0;
	if (ky_map_set(&store->seen, key, store) < 0)
		return KYMO_E_MEMORY;
	store->stored->addresses++;
	return 1;
}

/* Files are read when all places in them are known. */
static int trace_store_take_place(struct store *store, const struct ky_symbols_place *place)
{
	uint64_t key = ky_hash_u64(place->offset * 2 + place->is_image) ^
		       ky_hash_u64(place->object + 1ull);
	int ret = trace_store_is_new(store, key);

	if (ret <= 0)
		return ret;
	while (store->files.len <= place->object)
		if (ky_vec_push(&store->files, (struct file){KY_VEC_INIT}) < 0)
			return KYMO_E_MEMORY;
	return ky_vec_push(&store->files.data[place->object].places, *place);
}

static int take_address(struct store *store, const struct ky_event *event, uint64_t address,
			bool is_return)
{
	const struct ky_symbols_frame *frames;
	struct ky_symbols_place place;
	int64_t pid;
	int ret;

	if (ky_trace_symbols_place(store->symbols, event, address, is_return, &place))
		return trace_store_take_place(store, &place);
	if (!ky_trace_symbols_resolve(store->symbols, event, address, is_return, &frames) ||
	    !frames->function)
		return KYMO_OK;
	pid = ky_trace_symbols_process(store->symbols, event, address);
	ret = trace_store_is_new(store,
				 ky_hash_u64(address * 2 + is_return) ^ ky_hash_u64((uint64_t)pid));
	return ret > 0 ? take_code(store, frames, address, pid) : ret;
}

/* ---- events ----------------------------------------------------------------------------- */

static int take_value(struct store *store, const struct ky_event *event,
		      const struct ky_value *value)
{
	int ret = KYMO_OK;

	if (value->cls->kind != KY_FIELD_ARRAY)
		return take_address(store, event, value->u, false);
	for (uint32_t i = 0; !ret && i < value->n_below; i++)
		ret = take_address(store, event, value[1 + i].u, i > 0);
	return ret;
}

static int take_scope(struct store *store, const struct ky_event *event, enum ky_scope scope)
{
	int n = ky_address_in_scope(event->cls, scope)
			? ky_values_decode(&store->values, event, scope, NULL)
			: 0;
	const struct ky_value *at = store->values.list.data + 1, *end;
	int ret = KYMO_OK;

	if (n <= 0)
		return n == KYMO_E_MEMORY ? n : KYMO_OK;
	end = at + at[-1].n_below;
	for (; !ret && at < end; at += 1 + at->n_below)
		if (ky_address_is_field(event->cls, scope, at->name, at->cls))
			ret = take_value(store, event, at);
	return ret;
}

static int trace_store_take_event(struct store *store, const struct ky_event *event)
{
	static const enum ky_scope scopes[] = {KY_SCOPE_STREAM_CONTEXT, KY_SCOPE_EVENT_CONTEXT,
					       KY_SCOPE_PAYLOAD};
	int ret = KYMO_OK;

	/* The first event with a stack has been, or will be, here. */
	if (ky_stored_stacks_are_elsewhere(event))
		return KYMO_OK;
	for (size_t i = 0; !ret && i < sizeof(scopes) / sizeof(scopes[0]); i++)
		ret = take_scope(store, event, scopes[i]);
	return ret;
}

static int trace_store_read_events(struct store *store, const struct ky_trace_set *set,
				   struct kymo_error *err)
{
	struct ky_flow *flow;
	struct ky_batch batch;
	int ret = ky_flow_open_set(set, &flow, err);

	if (ret < 0)
		return ret;
	while ((ret = ky_flow_next(flow, &batch, err)) > 0)
		for (size_t i = 0; i < batch.n_events; i++)
			if (trace_store_take_event(store, &batch.events[i]) < 0) {
				ky_flow_close(flow);
				return ky_error_nomem(err);
			}
	ky_flow_close(flow);
	return ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT || ret == KYMO_E_AGAIN ? KYMO_OK : ret;
}

/* ---- files ------------------------------------------------------------------------------ */

static int by_process(const void *a, const void *b)
{
	const struct code *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Ends of functions are not known here; only recorded addresses are looked up. */
static void trace_store_put_code(struct ky_strbuf *out, const struct code *code)
{
	bool is_module = code->object[0] == '[' && strcmp(code->object, "[kernel]") != 0;

	if (code->pid < 0)
		ky_strbuf_addf(out, "%016" PRIx64 " T %s%s%s\n", code->begin, code->name,
			       is_module ? "\t" : "", is_module ? code->object : "");
	else
		ky_strbuf_addf(out, "%" PRIx64 " 100000 %s\n", code->begin, code->name);
}

static int write_code(const struct store *store, int dir, size_t first, size_t end,
		      struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	int64_t pid = store->code.data[first].pid;
	char name[64] = "kallsyms";
	int code;

	if (pid >= 0)
		snprintf(name, sizeof(name), "perf-%" PRId64 ".map", pid);
	for (size_t i = first; i < end; i++)
		trace_store_put_code(&out, &store->code.data[i]);
	code = ky_strbuf_failed(&out) ? -ENOMEM : ky_file_replace(dir, name, out.data, out.len);
	ky_strbuf_fini(&out);
	if (code >= 0)
		return KYMO_OK;
	ky_error_errno(err, -code, "cannot write symbols");
	ky_error_path(err, name);
	return KYMO_E_IO;
}

static int write_all_code(struct store *store, int dir, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (store->code.len)
		qsort(store->code.data, store->code.len, sizeof(*store->code.data), by_process);
	for (size_t first = 0, end; !ret && first < store->code.len; first = end) {
		for (end = first + 1; end < store->code.len; end++)
			if (store->code.data[end].pid != store->code.data[first].pid)
				break;
		ret = write_code(store, dir, first, end, err);
	}
	return ret;
}

/* A descriptor of @path/symbols, or an error. A link could lead anywhere. */
static int trace_store_open_store(const char *path, struct kymo_error *err)
{
	char name[4096];
	int dir = -1;

	if (snprintf(name, sizeof(name), "%s/" KY_TRACE_STORE, path) >= (int)sizeof(name))
		return ky_error_set(err, KYMO_E_LIMIT, "the trace's path is too long");
	if (mkdir(name, 0755) == 0 || errno == EEXIST)
		dir = open(name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir >= 0)
		return dir;
	ky_error_errno(err, errno, "cannot create a directory for symbols");
	ky_error_path(err, name);
	return KYMO_E_IO;
}

static int write_objects(struct store *store, int dir, struct kymo_error *err)
{
	struct ky_symbols *all = ky_trace_symbols_all(store->symbols);
	int ret = KYMO_OK;

	for (uint32_t i = 0; ret >= 0 && i < store->files.len; i++) {
		const struct file *file = &store->files.data[i];
		size_t known;

		if (!file->places.len)
			continue;
		ret = ky_symbols_store(all, i, file->places.data, file->places.len, dir, &known,
				       err);
		store->stored->unknown += file->places.len - known;
		store->stored->files += ret > 0;
	}
	return ret < 0 ? ret : KYMO_OK;
}

static int trace_store_write_files(struct store *store, const char *path, struct kymo_error *err)
{
	int dir = trace_store_open_store(path, err), ret;

	if (dir < 0)
		return dir;
	ret = write_objects(store, dir, err);
	if (!ret)
		ret = write_all_code(store, dir, err);
	close(dir);
	return ret;
}

int ky_trace_store(const struct ky_trace_set *set, struct ky_trace_symbols *symbols,
		   const char *path, struct ky_trace_stored *stored, struct kymo_error *err)
{
	struct store store = {.symbols = symbols, .stored = stored};
	int ret;

	*stored = (struct ky_trace_stored){0};
	ky_map_init(&store.seen);
	ky_map_init(&store.code_seen);
	ky_arena_init(&store.texts);
	ky_values_init(&store.values);
	ret = trace_store_read_events(&store, set, err);
	if (!ret && stored->addresses)
		ret = trace_store_write_files(&store, path, err);
	stored->kernel_problem = ky_symbols_kernel_problem(ky_trace_symbols_all(symbols));
	ky_vec_foreach(&store.files, file)
		ky_vec_fini(&file->places);
	ky_vec_fini(&store.files);
	ky_vec_fini(&store.code);
	ky_map_fini(&store.seen);
	ky_map_fini(&store.code_seen);
	ky_arena_fini(&store.texts);
	ky_values_fini(&store.values);
	return ret;
}
