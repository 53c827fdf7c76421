/* SPDX-License-Identifier: MIT */
/* The traces of perf.data: their events, their clock, their begin. */
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/error.h"
#include "import/common/import-internal.h"
#include "import/perf/import-perf.h"

#define SOURCES_MAX 256u

/* The layout of Kymo's own samples: docs/design/samples.md. */
static const struct ky_maker_field context_fields[] = {
	{.name = "tid", .kind = KY_MAKER_S32},
	{.name = "pid", .kind = KY_MAKER_S32},
	{.name = "procname", .kind = KY_MAKER_COMM},
	{.name = "callstack_kernel", .kind = KY_MAKER_HEXES},
	{.name = "callstack_user", .kind = KY_MAKER_HEXES},
};

/* The labels of the source are the file's events. */
static const struct ky_maker_field sample_fields[] = {
	{.name = "source", .kind = KY_MAKER_ENUM},
	{.name = "period", .kind = KY_MAKER_U64},
	{.name = "addr", .kind = KY_MAKER_HEX},
};
static const struct ky_maker_field comm_fields[] = {{.name = "name", .kind = KY_MAKER_TEXT}};
static const struct ky_maker_field exec_fields[] = {{.name = "tid", .kind = KY_MAKER_S32},
						    {.name = "name", .kind = KY_MAKER_TEXT}};
static const struct ky_maker_field fork_fields[] = {
	{.name = "parent_pid", .kind = KY_MAKER_S32},
	{.name = "parent_tid", .kind = KY_MAKER_S32},
	{.name = "child_pid", .kind = KY_MAKER_S32},
	{.name = "child_tid", .kind = KY_MAKER_S32},
};
static const struct ky_maker_field map_fields[] = {
	{.name = "pid", .kind = KY_MAKER_S32},	     {.name = "begin", .kind = KY_MAKER_HEX},
	{.name = "end", .kind = KY_MAKER_HEX},	     {.name = "protection", .kind = KY_MAKER_U32},
	{.name = "offset", .kind = KY_MAKER_HEX},    {.name = "build_id", .kind = KY_MAKER_TEXT},
	{.name = "filename", .kind = KY_MAKER_TEXT},
};
static const struct ky_maker_field throttle_fields[] = {{.name = "on", .kind = KY_MAKER_U8}};
static const struct ky_maker_field switch_fields[] = {{.name = "out", .kind = KY_MAKER_U8}};

static const struct ky_maker_field aux_fields[] = {
	{.name = "offset", .kind = KY_MAKER_HEX},
	{.name = "size", .kind = KY_MAKER_U64},
	{.name = "flags", .kind = KY_MAKER_HEX},
};
static const struct ky_maker_field auxtrace_fields[] = {
	{.name = "kind", .kind = KY_MAKER_TEXT},     {.name = "index", .kind = KY_MAKER_U32},
	{.name = "offset", .kind = KY_MAKER_HEX},    {.name = "size", .kind = KY_MAKER_U64},
	{.name = "reference", .kind = KY_MAKER_HEX},
};
static const struct ky_maker_field auxtrace_data_fields[] = {
	{.name = "index", .kind = KY_MAKER_U32},
	{.name = "offset", .kind = KY_MAKER_HEX},
	{.name = "data", .kind = KY_MAKER_BYTES},
};

#define FIELDS(list) list, sizeof(list) / sizeof((list)[0])

static const struct {
	const char *name;
	const struct ky_maker_field *fields;
	size_t n;
} kinds[KY_IMPORT_PERF_EVENTS] = {
	[KY_IMPORT_PERF_SAMPLE] = {"sample", FIELDS(sample_fields)},
	[KY_IMPORT_PERF_COMM] = {"perf_comm", FIELDS(comm_fields)},
	[KY_IMPORT_PERF_EXEC] = {"perf_exec", FIELDS(exec_fields)},
	[KY_IMPORT_PERF_FORK] = {"perf_fork", FIELDS(fork_fields)},
	[KY_IMPORT_PERF_EXIT] = {"perf_exit", FIELDS(fork_fields)},
	[KY_IMPORT_PERF_MMAP] = {"lttng_statedump_process_map", FIELDS(map_fields)},
	[KY_IMPORT_PERF_THROTTLE] = {"perf_throttle", FIELDS(throttle_fields)},
	[KY_IMPORT_PERF_SWITCH] = {"perf_switch", FIELDS(switch_fields)},
	[KY_IMPORT_PERF_AUX] = {"perf_aux", FIELDS(aux_fields)},
	[KY_IMPORT_PERF_AUXTRACE] = {"perf_auxtrace", FIELDS(auxtrace_fields)},
	[KY_IMPORT_PERF_AUXTRACE_DATA] = {"perf_auxtrace_data", FIELDS(auxtrace_data_fields)},
};

int ky_import_perf_init(struct ky_import_perf_trace *trace, struct ky_import *imports,
			const char *path, struct kymo_error *err)
{
	struct ky_scratch_trace *kernel, *perf;
	int ret;

	trace->has_init = true;
	ky_foreign_kernel_init(&trace->kernel);
	ky_map_init(&trace->names);
	ky_arena_init(&trace->arena);
	kernel = ky_import_new_trace(imports);
	perf = ky_import_new_trace(imports);
	if (!kernel || !perf)
		return ky_error_nomem(err);
	ret = ky_scratch_store_open(kernel, &trace->kernel_store, err);
	if (!ret)
		ret = ky_scratch_store_open(perf, &trace->perf_store, err);
	trace->imports = imports;
	trace->kernel_scratch = kernel;
	trace->perf_scratch = perf;
	trace->kernel.kernel.name = path;
	return ret;
}

void ky_import_perf_fini(struct ky_import_perf_trace *trace)
{
	if (!trace->has_init)
		return;
	(void)ky_maker_close(trace->maker, NULL);
	ky_perf_stacks_fini(&trace->stacks);
	ky_foreign_kernel_fini(&trace->kernel);
	ky_store_free(trace->kernel_store);
	ky_store_free(trace->perf_store);
	ky_vec_fini(&trace->kernel_chain);
	ky_vec_fini(&trace->user_chain);
	ky_map_fini(&trace->names);
	ky_arena_fini(&trace->arena);
}

/* ---- the begin ------------------------------------------------------------------------ */

/* id -> the first description of that event. 0 or KYMO_E_MEMORY. */
static int import_perf_begin_descriptions(struct ky_perf_file *perf, struct ky_map *events)
{
	ky_vec_foreach(&perf->tracing.events, event)
		if (event->id != KY_TRACING_NO_ID && !ky_map_get(events, event->id) &&
		    ky_map_set(events, event->id, event) < 0)
			return KYMO_E_MEMORY;
	return KYMO_OK;
}

/* Many attributes may be of one event: it is added with the first of them. */
static int import_perf_begin_tracepoint(struct ky_import_perf_trace *trace, struct ky_map *events,
					const struct ky_perf_attr *attr, struct kymo_error *err)
{
	const struct ky_tracing_event *event = ky_map_del(events, attr->config);

	trace->kernel.has_stacks |= ky_perf_has_chain(attr);
	return event ? ky_foreign_kernel_add(&trace->kernel, event->system, event->text, event->len,
					     err)
		     : KYMO_OK;
}

static int import_perf_begin_tracepoints(struct ky_import_perf_trace *trace,
					 struct ky_perf_file *perf, struct kymo_error *err)
{
	struct ky_map events;
	int ret;

	trace->kernel.swap = perf->file.swap;
	trace->kernel.is_x86_64 = perf->arch && strcmp(perf->arch, "x86_64") == 0;
	ky_map_init(&events);
	ret = import_perf_begin_descriptions(perf, &events) < 0 ? ky_error_nomem(err) : KYMO_OK;
	ky_vec_foreach(&perf->attrs, attr)
		if (attr->type == KY_PERF_TYPE_TRACEPOINT && !ret)
			ret = import_perf_begin_tracepoint(trace, &events, attr, err);
	ky_map_fini(&events);
	trace->has_kernel = trace->kernel.kernel.catalogue.events.len != 0;
	return ret;
}

/* Names for events whose file has none. */
static const char *import_perf_begin_event_name(const struct ky_perf_attr *attr, char buf[64])
{
	static const char *const hardware[] = {"cycles",       "instructions", "cache-references",
					       "cache-misses", "branches",     "branch-misses"};
	static const char *const software[] = {"cpu-clock",	   "task-clock",     "page-faults",
					       "context-switches", "cpu-migrations", "minor-faults",
					       "major-faults"};

	if (attr->name)
		return attr->name;
	if (attr->type == 0 && attr->config < sizeof(hardware) / sizeof(hardware[0]))
		return hardware[attr->config];
	if (attr->type == 1 && attr->config < sizeof(software) / sizeof(software[0]))
		return software[attr->config];
	snprintf(buf, 64, "perf_%u_%llx", attr->type, (unsigned long long)attr->config);
	return buf;
}

/* The kinds of samples; each attribute that has some gets its number. */
static int import_perf_begin_sources(struct ky_import_perf_trace *trace, struct ky_perf_file *perf,
				     const char **labels, size_t *n, struct kymo_error *err)
{
	*n = 0;
	ky_vec_foreach(&perf->attrs, attr) {
		char buf[64];

		if (attr->type == KY_PERF_TYPE_TRACEPOINT || ky_perf_is_dummy(attr) ||
		    *n >= SOURCES_MAX)
			continue;
		labels[*n] =
			ky_arena_strdup(&trace->arena, import_perf_begin_event_name(attr, buf));
		if (!labels[*n])
			return ky_error_nomem(err);
		attr->event = (int)(*n)++;
	}
	return KYMO_OK;
}

static int import_perf_begin_maker(struct ky_import_perf_trace *trace, struct ky_perf_file *perf,
				   const struct ky_maker_about *about, struct kymo_error *err)
{
	const char *labels[SOURCES_MAX];
	struct ky_maker_field sample[sizeof(sample_fields) / sizeof(sample_fields[0])];
	size_t n;
	int ret = import_perf_begin_sources(trace, perf, labels, &n, err);

	if (!ret)
		ret = ky_maker_open(&trace->maker, trace->perf_store, about, err);
	memcpy(sample, sample_fields, sizeof(sample));
	sample[0].labels = labels;
	sample[0].n_labels = n;
	for (size_t i = 0; i < KY_IMPORT_PERF_EVENTS && ret >= 0; i++)
		ret = trace->events[i] = ky_maker_event(
			trace->maker, kinds[i].name,
			i == KY_IMPORT_PERF_SAMPLE ? sample : kinds[i].fields, kinds[i].n, err);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_import_perf_begin(struct ky_import_perf_trace *trace, struct ky_perf_file *perf,
			 uint64_t first_ns, struct kymo_error *err)
{
	struct ky_os_clock *clock = &trace->kernel.kernel.clock;
	uint8_t uuid[16];
	struct ky_maker_about about = {
		.path = "perf",
		.name = perf->path,
		.domain = "perf",
		.has_cpus = true,
		.tracer = "perf",
		.hostname = perf->hostname,
		.release = perf->release,
		.clock = "perf",
		.description = perf->wall_ns ? "perf's clock, with the wall time that perf recorded"
					     : "perf's clock: since the machine was started",
		.clock_uuid = uuid,
		.offset_ns = perf->wall_ns ? (int64_t)(perf->wall_ns - perf->clock_ns) : 0,
		.context = context_fields,
		.n_context = sizeof(context_fields) / sizeof(context_fields[0]),
	};
	char boot_id[64] = "";
	int ret;

	trace->begin_ns = first_ns;
	trace->has_begun = true;
	if (ky_perf_kernel_is_here(perf) && ky_os_boot_id_text(boot_id, sizeof(boot_id)))
		about.boot_id = boot_id;
	if (getrandom(uuid, sizeof(uuid), 0) != (ssize_t)sizeof(uuid))
		return ky_error_set(err, KYMO_E_IO, "no random numbers");
	clock->name = about.clock;
	clock->description = about.description;
	clock->offset_s = about.offset_ns / 1000000000;
	clock->offset_cycles = about.offset_ns % 1000000000;
	memcpy(clock->uuid, uuid, sizeof(uuid));
	trace->kernel.kernel.hostname = perf->hostname ? perf->hostname : "";
	trace->kernel.kernel.kernel_release = perf->release ? perf->release : "";
	ret = import_perf_begin_maker(trace, perf, &about, err);
	if (!ret)
		ret = import_perf_begin_tracepoints(trace, perf, err);
	/* What perf reads of /proc before it begins has the first times. */
	trace->kernel.begins_with_events = true;
	if (!ret && trace->has_kernel)
		ret = ky_foreign_kernel_begin(&trace->kernel, trace->kernel_store, first_ns, err);
	if (!ret && trace->has_kernel)
		ret = ky_import_add_place(trace->imports, perf->path, "kernel",
					  trace->kernel_scratch, err);
	if (!ret)
		ret = ky_import_add_place(trace->imports, perf->path, "perf", trace->perf_scratch,
					  err);
	return ret;
}
