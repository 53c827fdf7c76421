/* SPDX-License-Identifier: MIT */
/* The metadata of a kernel recording. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/tsdl/tsdl.h"
#include "kernel/events/compat-calls.h"
#include "kernel/events/print-fmt.h"
#include "record/kernel/session-internal.h"

/* LTTng's layout, version 2.13, is what the events follow; readers choose field names by it. */
static int add_tracer(struct ky_session *session)
{
	struct ky_trace_class *trace = session->trace;
	unsigned int major = 0, minor = 0, patch = 0;
	int ret;

	if (!session->options.identity_kymo) {
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

static int add_environment(struct ky_session *session)
{
	struct ky_trace_class *trace = session->trace;
	const char *name = strrchr(session->output, '/');
	time_t now = time(NULL);
	struct utsname un;
	char date[64];
	struct tm tm;
	int ret;

	name = name && name[1] ? name + 1 : session->output;
	strftime(date, sizeof(date), "%Y%m%dT%H%M%S%z", localtime_r(&now, &tm));
	if (uname(&un) < 0)
		memset(&un, 0, sizeof(un));
	ret = ky_env_add_text(trace, "hostname", un.nodename);
	if (!ret)
		ret = ky_env_add_text(trace, "domain", "kernel");
	if (!ret)
		ret = ky_env_add_text(trace, "sysname", un.sysname);
	if (!ret)
		ret = ky_env_add_text(trace, "kernel_release", un.release);
	if (!ret)
		ret = ky_env_add_text(trace, "kernel_version", un.version);
	if (!ret)
		ret = add_tracer(session);
	if (!ret)
		ret = ky_env_add_text(trace, "trace_buffering_scheme", "global");
	if (!ret)
		ret = ky_env_add_text(trace, "trace_name", name);
	if (!ret)
		ret = ky_env_add_text(trace, "trace_creation_datetime", date);
	return ret;
}

int ky_session_update_clock(struct ky_session *session, struct kymo_error *err)
{
	struct ky_clock_class *cls = session->clock_class;
	const struct ky_os_clock *clock = &session->clock;

	cls->frequency_hz = clock->frequency_hz;
	cls->offset_s = clock->offset_s;
	cls->offset_cycles = clock->offset_cycles;
	cls->precision_cycles =
		(uint64_t)((double)clock->precision_ns * (double)clock->frequency_hz / 1e9);
	return ky_clock_finish(cls, err);
}

static int add_clock(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_os_clock *clock = &session->clock;
	struct ky_clock_class *cls = ky_clock_class_new(session->trace, clock->name);

	if (!cls)
		return ky_error_nomem(err);
	session->clock_class = cls;
	cls->description = clock->description;
	cls->has_uuid = true;
	memcpy(cls->uuid, clock->uuid, sizeof(cls->uuid));
	cls->is_unix_epoch = true;
	return ky_session_update_clock(session, err);
}

/* Read the format of @source into @format. */
static int read_format(struct ky_session *session, const struct ky_event_source *source,
		       struct ky_strbuf *text, struct ky_format *format, struct kymo_error *err)
{
	char name[400];
	int ret;

	snprintf(name, sizeof(name), "events/%s/%s/format", source->system, source->event);
	ret = ky_event_source_format(source, &session->fs, text, err);
	if (ret < 0)
		return ret;
	ret = ky_format_parse(&session->convert.arena, ky_strbuf_text(text), text->len, format,
			      err);
	if (ret < 0)
		ky_error_path(err, name);
	else
		ret = ky_print_fmt_apply(&session->convert.arena, ky_strbuf_text(text), text->len,
					 &session->btf, format, err);
	return ret;
}

/* @id: of its class; NULL: it is only learnt from. */
static int add_event(struct ky_session *session, struct ky_event_source *source, const uint32_t *id,
		     struct ky_strbuf *text, struct kymo_error *err)
{
	struct ky_event_class *event = NULL;
	struct ky_format format;
	int ret = read_format(session, source, text, &format, err);

	if (ret < 0)
		return ret;
	if (id) {
		event = ky_event_class_new(session->stream, *id, source->name);
		if (!event)
			return ky_error_nomem(err);
	}
	source->id = format.id;
	source->event_class = event;
	if (id)
		session->dump.needed |= ky_statedump_needs(source->system, &format);
	ret = ky_convert_add(&session->convert, source->system, &format, event, err);
	if (!ret)
		ky_convert_set_stacks(&session->convert, source->id, source->stacks);
	return ret;
}

static int add_events(struct ky_session *session, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	ky_btf_init(&session->btf, NULL);
	/* The machine that converts a raw recording may have another kernel. */
	if (session->is_replay && session->has_constants &&
	    !ky_btf_know(&session->btf, ky_strbuf_text(&session->constants)))
		ret = ky_error_nomem(err);
	ky_vec_foreach(&session->catalogue.events, source) {
		if (ret < 0)
			break;
		if (!source->selected && !source->hidden)
			continue;
		ret = add_event(session, source, source->selected ? &session->first_dump_id : NULL,
				&text, err);
		session->first_dump_id += !ret && source->selected;
	}
	ky_strbuf_fini(&text);
	if (session->options.raw) {
		ky_btf_asked(&session->btf, &session->constants);
		session->has_constants = true;
	}
	ky_btf_fini(&session->btf);
	session->stats.event_classes = session->first_dump_id;
	return ret;
}

/* Of those that tracefs does not have. */
static bool has_such_calls(const struct ky_session *session, const struct ky_event_source *source)
{
	return ky_unknown_is_system(source->system) ? session->has_unknown : session->has_compat;
}

int ky_session_add_event(struct ky_session *session, struct ky_event_source *source,
			 struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint32_t id = (uint32_t)session->stream->events.len;
	int ret = KYMO_OK;

	/* Behind those of the state dump: ids are given away without gaps. */
	ky_btf_init(&session->btf, NULL);
	if (source->of_bpf && !has_such_calls(session, source))
		ret = ky_error_set(err, KYMO_E_STATE,
				   "%s: %s calls are recorded where the recording began with some",
				   source->name,
				   ky_unknown_is_system(source->system) ? "unknown" : "32-bit");
	else if (session->content && strcmp(source->system, "syscalls") == 0)
		ky_content_select(session->content, source->event);
	if (!ret)
		ret = add_event(session, source, &id, &text, err);
	if (!ret)
		ret = ky_session_count_at(session, source, err);
	ky_strbuf_fini(&text);
	ky_btf_fini(&session->btf);
	source->selected = source->added = ret == 0;
	session->stats.event_classes += ret == 0;
	return ret;
}

static int add_stream(struct ky_session *session, struct kymo_error *err)
{
	size_t n = 0;

	ky_vec_foreach(&session->catalogue.events, source)
		n += source->selected;
	/* The compact header has 5 bits for the id, of which 31 is the way out. */
	session->compact_header = n <= 31;
	session->stream = ky_lttng_layout_stream(session->trace, 0, session->clock_class,
						 session->compact_header);
	if (!session->stream)
		return ky_error_nomem(err);
	session->stream->event_context =
		ky_convert_context_class(&session->convert, session->trace);
	return session->stream->event_context ? KYMO_OK : ky_error_nomem(err);
}

int ky_session_build_model(struct ky_session *session, struct kymo_error *err)
{
	int ret;

	session->trace = ky_trace_class_new();
	if (!session->trace)
		return ky_error_nomem(err);
	session->trace->has_uuid = true;
	session->trace->big_endian = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
	memcpy(session->trace->uuid, session->uuid, sizeof(session->uuid));
	if (add_environment(session) < 0)
		return ky_error_nomem(err);
	ret = add_clock(session, err);
	if (!ret && ky_lttng_layout_trace(session->trace) < 0)
		ret = ky_error_nomem(err);
	if (!ret)
		ret = add_stream(session, err);
	if (!ret)
		ret = add_events(session, err);
	if (!ret)
		ret = ky_statedump_define(session->stream, session->first_dump_id, err);
	if (!ret)
		ret = ky_trace_class_finish(session->trace, true, err);
	if (!ret)
		ret = ky_session_compile_filters(session, err);
	return ret;
}

int ky_session_write_metadata(struct ky_session *session, struct kymo_error *err)
{
	char *text = NULL;
	size_t len = 0;
	int ret = ky_tsdl_write(session->trace, &text, &len, err);

	if (!ret) {
		pthread_mutex_lock(&session->sink_lock);
		ret = ky_store_metadata(session->packets, text, len, err);
		pthread_mutex_unlock(&session->sink_lock);
	}
	free(text);
	return ret;
}
