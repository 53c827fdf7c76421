/* SPDX-License-Identifier: MIT */
#include "analysis/addresses/trace-symbols.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/addresses/trace-maps.h"
#include "analysis/addresses/trace-store.h"
#include "base/arena.h"
#include "base/error.h"
#include "base/foreign.h"
#include "os/clock.h"

/* How to find out which process an event is of. */
struct who {
	struct ky_handle pid;
	size_t trace;
	bool is_kernel, is_tid, is_constant;
	uint32_t constant;
};

struct ky_trace_symbols {
	const struct ky_trace_set *set;
	struct ky_symbols *symbols;
	struct ky_address_names names;
	struct ky_map who;	   /* event class -> struct who */
	struct ky_map tids;	   /* of the kernel's threads -> process + 1 */
	KY_VEC(const char *) dirs; /* the caller's, then those of the traces */
	struct ky_arena texts;
	const char *kallsyms; /* that was stored; NULL: none */
	pthread_mutex_t lock;
};

/* ---- what the traces have --------------------------------------------------------------- */

static const enum ky_scope scopes[] = {KY_SCOPE_STREAM_CONTEXT, KY_SCOPE_EVENT_CONTEXT,
				       KY_SCOPE_PAYLOAD};

#define N_SCOPES (sizeof(scopes) / sizeof(scopes[0]))

bool ky_trace_has_addresses(const struct ky_trace_set *set)
{
	ky_vec_foreach(&set->traces, trace)
		ky_vec_foreach(&(*trace)->cls->events, event)
			for (size_t i = 0; i < N_SCOPES; i++)
				if (ky_address_in_scope(*event, scopes[i]))
					return true;
	return false;
}

/* Contexts are of programs, too; fields of the kernel's events are of the kernel, those of programs' events of programs. */
static bool has_user_addresses(const struct ky_trace_set *set)
{
	ky_vec_foreach(&set->traces, trace)
		ky_vec_foreach(&(*trace)->cls->events, event)
			if (ky_address_in_scope(*event, KY_SCOPE_STREAM_CONTEXT) ||
			    ky_address_in_scope(*event, KY_SCOPE_EVENT_CONTEXT) ||
			    (!ky_trace_maps_is_kernel((*trace)->cls) &&
			     ky_address_in_scope(*event, KY_SCOPE_PAYLOAD)))
				return true;
	return false;
}

/* A file of another tracer, whose importer knows that: "boot_id". Its traces have one clock. */
static bool is_clock_of_boot(const struct ky_trace_set *set, const uint8_t uuid[16],
			     const char *boot)
{
	ky_vec_foreach(&set->traces, trace) {
		const struct ky_env *env = ky_env_find((*trace)->cls, "boot_id");

		if (!env || !env->is_text || strcmp(env->text, boot) != 0)
			continue;
		ky_vec_foreach(&(*trace)->cls->clocks, clock) {
			if ((*clock)->has_uuid && memcmp((*clock)->uuid, uuid, 16) == 0)
				return true;
		}
	}
	return false;
}

/* Were all traces recorded on this machine, since it booted? A trace's clock has the boot's ID. */
static bool is_of_this_boot(const struct ky_trace_set *set)
{
	char text[64] = "";
	uint8_t boot[16];

	if (!ky_os_boot_id(boot) || !ky_os_boot_id_text(text, sizeof(text)))
		return false;
	ky_vec_foreach(&set->traces, trace) {
		const struct ky_trace_class *cls = (*trace)->cls;
		bool is_here = false;

		ky_vec_foreach(&cls->clocks, clock)
			is_here |= (*clock)->has_uuid &&
				   (memcmp((*clock)->uuid, boot, sizeof(boot)) == 0 ||
				    is_clock_of_boot(set, (*clock)->uuid, text));
		if (!is_here)
			return false;
	}
	return set->traces.len > 0;
}

/* ---- open ------------------------------------------------------------------------------- */

static void trace_symbols_put(void *data, const struct ky_event *event, uint64_t address,
			      bool is_return, struct ky_strbuf *out)
{
	struct ky_trace_symbols *symbols = data;
	const struct ky_symbols_frame *frames;
	size_t n;

	pthread_mutex_lock(&symbols->lock);
	n = ky_trace_symbols_resolve(symbols, event, address, is_return, &frames);
	ky_trace_symbols_text(out, frames, n);
	pthread_mutex_unlock(&symbols->lock);
}

static int add_store(struct ky_trace_symbols *symbols, const char *path, int len)
{
	char *dir = ky_arena_printf(&symbols->texts, "%.*s/" KY_TRACE_STORE, len, path), *list;
	struct stat st;

	if (!dir)
		return KYMO_E_MEMORY;
	/* A link could lead anywhere. */
	if (lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode))
		return KYMO_OK;
	ky_vec_foreach(&symbols->dirs, known)
		if (strcmp(*known, dir) == 0)
			return KYMO_OK;
	list = ky_arena_printf(&symbols->texts, "%s/kallsyms", dir);
	if (list && !symbols->kallsyms && access(list, R_OK) == 0)
		symbols->kallsyms = list;
	return list ? ky_vec_push(&symbols->dirs, (const char *)dir) : KYMO_E_MEMORY;
}

/* A trace's store is in its directory, or in one above it, up to what the user has named. */
static int find_stores(struct ky_trace_symbols *symbols)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&symbols->set->traces, trace) {
		const char *path = (*trace)->path;
		size_t len = path ? strlen(path) : 0;

		for (int up = 0; !ret && len && up < 8; up++) {
			ret = add_store(symbols, path, (int)len);
			if (len <= (*trace)->name_at)
				break;
			while (len && path[len - 1] != '/')
				len--;
			while (len > 1 && path[len - 1] == '/')
				len--;
		}
	}
	return ret;
}

static int take_dirs(struct ky_trace_symbols *symbols,
		     const struct ky_trace_symbols_options *options)
{
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && i < options->n_dirs; i++)
		ret = ky_vec_push(&symbols->dirs, options->dirs[i]);
	return ret || options->for_store ? ret : find_stores(symbols);
}

int ky_trace_symbols_open(const struct ky_trace_set *set,
			  const struct ky_trace_symbols_options *options,
			  struct ky_trace_symbols **symbols, struct kymo_error *err)
{
	struct ky_trace_symbols *s = calloc(1, sizeof(*s));
	struct ky_symbols_options own = {
		.want_lines = options->want_lines,
		.want_store = options->for_store,
		.is_here = is_of_this_boot(set),
	};
	int ret;

	if (!s)
		return ky_error_nomem(err);
	s->set = set;
	s->names = (struct ky_address_names){.put = trace_symbols_put, .data = s};
	ky_map_init(&s->who);
	ky_map_init(&s->tids);
	pthread_mutex_init(&s->lock, NULL);
	ky_arena_init(&s->texts);
	ret = take_dirs(s, options) < 0 ? ky_error_nomem(err) : KYMO_OK;
	own.dirs = s->dirs.data;
	own.n_dirs = s->dirs.len;
	own.kallsyms = s->kallsyms;
	if (!ret)
		ret = ky_symbols_open(&own, &s->symbols, err);
	if (!ret && !options->is_live && has_user_addresses(set))
		ret = ky_trace_maps_read(set, s->symbols, &s->tids, options->is_over,
					 options->over_data, err);
	if (ret) {
		ky_trace_symbols_close(s);
		return ret;
	}
	*symbols = s;
	return KYMO_OK;
}

void ky_trace_symbols_close(struct ky_trace_symbols *symbols)
{
	size_t at = 0;
	uint64_t key;
	void *value;

	if (!symbols)
		return;
	while (ky_map_next(&symbols->who, &at, &key, &value))
		free(value);
	ky_map_fini(&symbols->who);
	ky_map_fini(&symbols->tids);
	ky_symbols_close(symbols->symbols);
	ky_vec_fini(&symbols->dirs);
	ky_arena_fini(&symbols->texts);
	pthread_mutex_destroy(&symbols->lock);
	free(symbols);
}

const struct ky_address_names *ky_trace_symbols_names(struct ky_trace_symbols *symbols)
{
	return &symbols->names;
}

struct ky_symbols *ky_trace_symbols_all(struct ky_trace_symbols *symbols)
{
	return symbols->symbols;
}

/* ---- events ----------------------------------------------------------------------------- */

/* Contexts come first: the payload's pid may be another's. */
static bool find_context(struct ky_handle *handle, const struct ky_event_class *cls,
			 const char *name)
{
	return ky_handle_find(handle, cls, KY_SCOPE_EVENT_CONTEXT, name) ||
	       ky_handle_find(handle, cls, KY_SCOPE_STREAM_CONTEXT, name);
}

static void trace_symbols_fill_who(const struct ky_trace_symbols *symbols,
				   const struct ky_event_class *cls, struct who *who)
{
	const struct ky_trace_class *trace = cls->stream->trace;
	const struct ky_env *env = ky_env_find(trace, "vpid");

	for (who->trace = 0; who->trace < symbols->set->traces.len; who->trace++)
		if (symbols->set->traces.data[who->trace]->cls == trace)
			break;
	who->is_kernel = ky_trace_maps_is_kernel(trace);
	if (!who->is_kernel) {
		if (find_context(&who->pid, cls, "vpid") || !env || env->is_text)
			return;
		who->is_constant = true;
		who->constant = (uint32_t)env->number;
		return;
	}
	if (find_context(&who->pid, cls, "pid") || find_context(&who->pid, cls, "vpid"))
		return;
	who->is_tid = find_context(&who->pid, cls, "tid") || find_context(&who->pid, cls, "vtid");
}

static const struct who *who_of(struct ky_trace_symbols *symbols, const struct ky_event_class *cls)
{
	struct who *who = ky_map_get(&symbols->who, (uintptr_t)cls);

	if (who)
		return who;
	who = calloc(1, sizeof(*who));
	if (!who || ky_map_set(&symbols->who, (uintptr_t)cls, who) < 0) {
		free(who);
		return NULL;
	}
	trace_symbols_fill_who(symbols, cls, who);
	return who;
}

static bool trace_symbols_process_of(struct ky_trace_symbols *symbols, const struct ky_event *event,
				     int64_t *pid)
{
	const struct who *who = who_of(symbols, event->cls);
	uint64_t value;

	if (!who)
		return false;
	if (who->is_constant)
		value = who->constant;
	else if (!who->pid.cls || !ky_get_number(event, &who->pid, &value))
		return false;
	if (who->is_tid && ky_map_get(&symbols->tids, (uint32_t)value))
		value = (uintptr_t)ky_map_get(&symbols->tids, (uint32_t)value) - 1;
	*pid = ky_trace_maps_process(who->trace, who->is_kernel, (uint32_t)value);
	return true;
}

int64_t ky_trace_symbols_process(struct ky_trace_symbols *symbols, const struct ky_event *event,
				 uint64_t address)
{
	int64_t pid;

	if (address >> 63 || !trace_symbols_process_of(symbols, event, &pid))
		return -1;
	return pid;
}

static struct ky_symbols_query query_of(const struct ky_event *event, uint64_t address,
					bool is_return)
{
	return (struct ky_symbols_query){
		.pid = -1,
		.address = address,
		.time_ns = event->ns > 0 ? (uint64_t)event->ns : 0,
		.is_return = is_return,
	};
}

bool ky_trace_symbols_place(struct ky_trace_symbols *symbols, const struct ky_event *event,
			    uint64_t address, bool is_return, struct ky_symbols_place *place)
{
	struct ky_symbols_query query = query_of(event, address, is_return);

	return address >> 63 == 0 && trace_symbols_process_of(symbols, event, &query.pid) &&
	       ky_symbols_place(symbols->symbols, &query, place);
}

size_t ky_trace_symbols_resolve(struct ky_trace_symbols *symbols, const struct ky_event *event,
				uint64_t address, bool is_return,
				const struct ky_symbols_frame **frames)
{
	struct ky_symbols_query query = query_of(event, address, is_return);

	*frames = NULL;
	/* The kernel has the upper half of the addresses. */
	if (address >> 63 == 0 && !trace_symbols_process_of(symbols, event, &query.pid))
		return 0;
	return ky_symbols_resolve(symbols->symbols, &query, frames);
}

/* ---- text ------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void put_frame(struct ky_strbuf *out, const struct ky_symbols_frame *frame)
{
	if (frame->function) {
		ky_foreign_adds(out, frame->function);
		if (!frame->is_inlined)
			ky_strbuf_addf(out, "+0x%" PRIx64, frame->offset);
	} else {
		ky_foreign_adds(out, base_name(frame->object));
		ky_strbuf_addf(out, "+0x%" PRIx64, frame->object_offset);
	}
	if (frame->file) {
		ky_strbuf_addc(out, ' ');
		ky_foreign_adds(out, base_name(frame->file));
		ky_strbuf_addf(out, ":%" PRIu32, frame->line);
	}
}

void ky_trace_symbols_text(struct ky_strbuf *out, const struct ky_symbols_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (i)
			ky_strbuf_adds(out, ", inlined in ");
		put_frame(out, &frames[i]);
	}
}
