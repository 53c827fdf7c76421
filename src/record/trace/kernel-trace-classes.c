/* SPDX-License-Identifier: MIT */
/* The metadata of a kernel recording. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include <kymo/version.h>

#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/tsdl/tsdl.h"
#include "kernel/events/compat-calls.h"
#include "kernel/events/print-fmt.h"
#include "kernel/statedump/statedump.h"
#include "record/trace/kernel-trace-internal.h"

/* LTTng's layout, version 2.13, is what the events follow; readers choose field names by it. */
static int add_tracer(struct ky_kernel_trace *kernel)
{
	struct ky_trace_class *trace = kernel->trace;
	unsigned int major = 0, minor = 0, patch = 0;
	int ret;

	if (!kernel->identity_kymo) {
		ret = ky_env_add_text(trace, "tracer_name", "lttng-modules");
		major = 2;
		minor = 13;
	} else {
		ret = ky_env_add_text(trace, "tracer_name", "kymo");
		sscanf(KYMO_VERSION, "%u.%u.%u", &major, &minor, &patch);
	}
	if (!ret)
		ret = ky_env_add_number(trace, "tracer_major", major);
	if (!ret)
		ret = ky_env_add_number(trace, "tracer_minor", minor);
	if (!ret)
		ret = ky_env_add_number(trace, "tracer_patchlevel", patch);
	if (!ret)
		ret = ky_env_add_text(trace, "kymo_version", KYMO_VERSION);
	return ret;
}

static int kernel_trace_classes_add_environment(struct ky_kernel_trace *kernel)
{
	struct ky_trace_class *trace = kernel->trace;
	const char *name = strrchr(kernel->name, '/');
	time_t now = time(NULL);
	struct utsname un;
	char date[64];
	struct tm tm;
	int ret;

	name = name && name[1] ? name + 1 : kernel->name;
	strftime(date, sizeof(date), "%Y%m%dT%H%M%S%z", localtime_r(&now, &tm));
	if (uname(&un) < 0)
		memset(&un, 0, sizeof(un));
	/* Of another machine, what is not known is not said. */
	if (kernel->hostname || kernel->kernel_release)
		un = (struct utsname){.sysname = "Linux"};
	ret = ky_env_add_text(trace, "hostname", kernel->hostname ? kernel->hostname : un.nodename);
	if (!ret)
		ret = ky_env_add_text(trace, "domain", "kernel");
	if (!ret)
		ret = ky_env_add_text(trace, "sysname", un.sysname);
	if (!ret)
		ret = ky_env_add_text(trace, "kernel_release",
				      kernel->kernel_release ? kernel->kernel_release : un.release);
	if (!ret)
		ret = ky_env_add_text(trace, "kernel_version", un.version);
	if (!ret)
		ret = add_tracer(kernel);
	if (!ret)
		ret = ky_env_add_text(trace, "trace_buffering_scheme", "global");
	if (!ret)
		ret = ky_env_add_text(trace, "trace_name", name);
	if (!ret)
		ret = ky_env_add_text(trace, "trace_creation_datetime", date);
	return ret ? ret : ky_kernel_trace_clock_begins(kernel);
}

int ky_kernel_trace_update_clock(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	struct ky_clock_class *cls = kernel->clock_class;
	const struct ky_os_clock *clock = &kernel->clock;

	cls->frequency_hz = clock->frequency_hz;
	cls->offset_s = clock->offset_s;
	cls->offset_cycles = clock->offset_cycles;
	cls->precision_cycles =
		(uint64_t)((double)clock->precision_ns * (double)clock->frequency_hz / 1e9);
	return ky_clock_finish(cls, err);
}

static int add_clock(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	const struct ky_os_clock *clock = &kernel->clock;
	struct ky_clock_class *cls = ky_clock_class_new(kernel->trace, clock->name);

	if (!cls)
		return ky_error_nomem(err);
	kernel->clock_class = cls;
	cls->description = clock->description;
	cls->has_uuid = true;
	memcpy(cls->uuid, clock->uuid, sizeof(cls->uuid));
	cls->is_unix_epoch = true;
	return ky_kernel_trace_update_clock(kernel, err);
}

/* Read the format of @source into @format. */
static int read_format(struct ky_kernel_trace *kernel, const struct ky_event_source *source,
		       struct ky_strbuf *text, struct ky_format *format, struct kymo_error *err)
{
	char name[400];
	int ret;

	snprintf(name, sizeof(name), "events/%s/%s/format", source->system, source->event);
	ret = ky_event_source_format(source, kernel->fs, text, err);
	if (ret < 0)
		return ret;
	ret = ky_format_parse(&kernel->convert.arena, ky_strbuf_text(text), text->len, format, err);
	if (ret < 0)
		ky_error_path(err, name);
	else
		ret = ky_print_fmt_apply(&kernel->convert.arena, ky_strbuf_text(text), text->len,
					 &kernel->btf, format, err);
	return ret;
}

/* @id: of its class; NULL: it is only learnt from. */
static int kernel_trace_classes_add_event(struct ky_kernel_trace *kernel,
					  struct ky_event_source *source, const uint32_t *id,
					  struct ky_strbuf *text, struct kymo_error *err)
{
	struct ky_event_class *event = NULL;
	struct ky_format format;
	int ret = read_format(kernel, source, text, &format, err);

	if (ret < 0)
		return ret;
	if (id) {
		event = ky_event_class_new(kernel->stream, *id, source->name);
		if (!event)
			return ky_error_nomem(err);
	}
	source->id = format.id;
	source->event_class = event;
	if (id)
		kernel->needed_state |= ky_statedump_needs(source->system, &format);
	ret = ky_convert_add(&kernel->convert, source->system, &format, event, err);
	if (!ret)
		ky_convert_set_stacks(&kernel->convert, source->id, source->stacks);
	return ret;
}

static int kernel_trace_classes_add_events(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	ky_btf_init(&kernel->btf, NULL);
	/* The machine that converts a raw recording may have another kernel. */
	if (kernel->has_constants && !ky_btf_know(&kernel->btf, ky_strbuf_text(&kernel->constants)))
		ret = ky_error_nomem(err);
	ky_vec_foreach(&kernel->catalogue.events, source) {
		if (ret < 0)
			break;
		if (!source->selected && !source->hidden)
			continue;
		ret = kernel_trace_classes_add_event(
			kernel, source, source->selected ? &kernel->first_dump_id : NULL, &text,
			err);
		kernel->first_dump_id += !ret && source->selected;
	}
	ky_strbuf_fini(&text);
	if (kernel->keeps_constants) {
		ky_btf_asked(&kernel->btf, &kernel->constants);
		kernel->has_constants = true;
	}
	ky_btf_fini(&kernel->btf);
	return ret;
}

/* Of those that tracefs does not have. */
static bool has_such_calls(const struct ky_kernel_trace *kernel,
			   const struct ky_event_source *source)
{
	return ky_unknown_is_system(source->system) ? kernel->has_unknown : kernel->has_compat;
}

void ky_kernel_trace_remove_event(struct ky_kernel_trace *kernel, struct ky_event_source *source)
{
	if (source->event_class)
		ky_event_class_forget(source->event_class);
	source->event_class = NULL;
	ky_convert_forget(&kernel->convert, source->id, source->hidden);
	kernel->n_added -= source->added;
	source->selected = source->added = false;
}

int ky_kernel_trace_add_event(struct ky_kernel_trace *kernel, struct ky_event_source *source,
			      struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint32_t id = (uint32_t)kernel->stream->events.len;
	int ret = KYMO_OK;

	/* Behind those of the state dump: ids are given away without gaps. */
	ky_btf_init(&kernel->btf, NULL);
	if (source->of_bpf && !has_such_calls(kernel, source))
		ret = ky_error_set(err, KYMO_E_STATE,
				   "%s: %s calls are recorded where the recording began with some",
				   source->name,
				   ky_unknown_is_system(source->system) ? "unknown" : "32-bit");
	else if (kernel->content && strcmp(source->system, "syscalls") == 0)
		ky_content_select(kernel->content, source->event);
	if (!ret)
		ret = kernel_trace_classes_add_event(kernel, source, &id, &text, err);
	ky_strbuf_fini(&text);
	ky_btf_fini(&kernel->btf);
	if (ret < 0)
		ky_kernel_trace_remove_event(kernel, source);
	source->selected = source->added = ret == 0;
	kernel->n_added += ret == 0;
	return ret;
}

static int kernel_trace_classes_add_stream(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	size_t n = 0;

	ky_vec_foreach(&kernel->catalogue.events, source)
		n += source->selected;
	/* The compact header has 5 bits for the id, of which 31 is the way out. */
	kernel->compact_header = n <= 31 && !kernel->grows;
	kernel->stream = ky_lttng_layout_stream(kernel->trace, 0, kernel->clock_class,
						kernel->compact_header);
	if (!kernel->stream)
		return ky_error_nomem(err);
	kernel->stream->event_context = ky_convert_context_class(&kernel->convert, kernel->trace);
	return kernel->stream->event_context ? KYMO_OK : ky_error_nomem(err);
}

int ky_kernel_trace_build(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	int ret;

	kernel->trace = ky_trace_class_new();
	if (!kernel->trace)
		return ky_error_nomem(err);
	kernel->trace->has_uuid = true;
	kernel->trace->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	memcpy(kernel->trace->uuid, kernel->uuid, sizeof(kernel->uuid));
	if (kernel_trace_classes_add_environment(kernel) < 0)
		return ky_error_nomem(err);
	ret = add_clock(kernel, err);
	if (!ret && ky_lttng_layout_trace(kernel->trace) < 0)
		ret = ky_error_nomem(err);
	if (!ret)
		ret = kernel_trace_classes_add_stream(kernel, err);
	if (!ret)
		ret = kernel_trace_classes_add_events(kernel, err);
	if (!ret)
		ret = ky_statedump_define(kernel->stream, kernel->first_dump_id, err);
	if (!ret)
		ret = ky_kernel_trace_add_samples(kernel, err);
	if (!ret)
		ret = ky_trace_class_finish(kernel->trace, true, err);
	if (!ret)
		ret = ky_kernel_trace_compile_filters(kernel, err);
	ky_kernel_trace_use_convert(kernel);
	return ret;
}

int ky_kernel_trace_write_metadata(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	char *text = NULL;
	size_t len = 0;
	int ret = ky_tsdl_write(kernel->trace, &text, &len, err);

	if (!ret) {
		pthread_mutex_lock(&kernel->sink_lock);
		ret = ky_store_metadata(kernel->packets, text, len, err);
		pthread_mutex_unlock(&kernel->sink_lock);
	}
	free(text);
	return ret;
}
