/* SPDX-License-Identifier: MIT */
/* Which event becomes what in a Perfetto trace. */
#include "analysis/perfetto/perfetto-internal.h"

/* @name without perf's "sched:". */
static const char *perfetto_classes_plain_name(const char *name)
{
	const char *colon = strrchr(name, ':');

	return colon ? colon + 1 : name;
}

static bool has_plain_event(const struct ky_trace_class *trace, const char *name)
{
	ky_vec_foreach(&trace->events, cls) {
		if (strcmp(perfetto_classes_plain_name((*cls)->name), name) == 0)
			return true;
	}
	return false;
}

/* 1: a span's event, and @info says so; 0: none; negative: out of memory. */
static int resolve_span(struct ky_pf *pf, const struct ky_event_class *cls, bool is_kernel,
			struct ky_pf_class *info)
{
	bool per_cpu;
	size_t len;
	enum ky_span_part part = ky_span_part(cls, &len, &per_cpu);

	if (part == KY_SPAN_NONE)
		return 0;
	info->name = ky_arena_strndup(&pf->arena, cls->name, len);
	info->handle = part == KY_SPAN_BEGIN ? ky_pf_on_span_begin : ky_pf_on_span_end;
	info->track = !is_kernel ? KY_PF_TRACK_OF_USER
		      : per_cpu	 ? KY_PF_TRACK_OF_CPU
				 : KY_PF_TRACK_OF_THREAD;
	return info->name ? 1 : KYMO_E_MEMORY;
}

static int resolve_user(struct ky_pf *pf, const struct ky_event_class *cls,
			struct ky_pf_class *info)
{
	int ret;

	info->category = "user";
	ky_event_thread_find(&info->thread, cls);
	ret = resolve_span(pf, cls, false, info);
	if (ret)
		return ret;
	info->name = cls->name;
	info->handle = ky_pf_on_instant;
	info->track = KY_PF_TRACK_OF_USER;
	return 0;
}

static int resolve_native(const struct ky_pf_host *host, const struct ky_event_class *cls,
			  const char *name, struct ky_pf_class *info)
{
	info->native = ky_pf_native_find(name);
	if (!info->native)
		return 0;
	ky_pf_native_fields(info->native, cls, info);
	info->handle = ky_pf_on_native;
	if (strcmp(name, "sched_process_fork") == 0 && !host->has_newtask)
		info->handle = ky_pf_on_fork;
	else if (strcmp(name, "sched_process_exec") == 0 && !host->has_rename)
		info->handle = ky_pf_on_exec;
	return 1;
}

static int resolve_kernel(struct ky_pf *pf, const struct ky_host *host,
			  const struct ky_pf_host *own, const struct ky_event_class *cls,
			  struct ky_pf_class *info)
{
	const struct ky_class_info *known = &host->classes[cls->index];
	const char *name = perfetto_classes_plain_name(cls->name);
	int ret;

	info->category = "kernel";
	info->name = cls->name;
	/* The model knows on which scale a class' priorities are; its own begins at 100. */
	info->prio_offset = known->prio_offset + 100;
	/* The listener hears of system calls. */
	if (known->handle == ky_on_syscall_entry || known->handle == ky_on_syscall_exit)
		return 0;
	if (resolve_native(own, cls, name, info))
		return 0;
	if (ky_pf_block_fields(name, cls, info))
		return 0;
	ret = resolve_span(pf, cls, true, info);
	if (ret)
		return ret;
	info->handle = ky_pf_on_generic;
	return 0;
}

int ky_pf_resolve(struct ky_pf *pf, const struct ky_host *host, struct ky_pf_host *own)
{
	const struct ky_trace_class *trace = host->trace->cls;

	own->is_kernel = ky_host_is_kernel(host);
	own->has_newtask = has_plain_event(trace, "task_newtask");
	own->has_rename = has_plain_event(trace, "task_rename");
	own->classes = ky_arena_array(&pf->arena, trace->events.len + 1, sizeof(*own->classes));
	if (!own->classes)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < trace->events.len; i++) {
		const struct ky_event_class *cls = trace->events.data[i];
		struct ky_pf_class *info = &own->classes[i];
		int ret = own->is_kernel ? resolve_kernel(pf, host, own, cls, info)
					 : resolve_user(pf, cls, info);

		if (ret < 0)
			return ret;
	}
	return 0;
}
