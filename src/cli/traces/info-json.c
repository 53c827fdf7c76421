/* SPDX-License-Identifier: MIT */
/* kymo info --json. Times are ns from the clock's origin, sizes bytes. */
#include "cli/traces/info.h"

#include "base/text.h"
#include "cli/terminal/json-output.h"

static json_t *info_json_text_or_null(const char *text)
{
	return text ? ky_jansson_text(text) : json_null();
}

static json_t *uuid_or_null(bool has_uuid, const uint8_t uuid[16])
{
	char text[KY_UUID_TEXT_BYTES];

	return has_uuid ? json_string(ky_format_uuid(text, uuid)) : json_null();
}

static json_t *info_json_count(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *time_or_null(int64_t ns, bool known)
{
	return known ? json_integer(ns) : json_null();
}

static void info_json_add_range(json_t *to, int64_t begin_ns, int64_t end_ns)
{
	bool known = info_has_range(begin_ns, end_ns);

	json_object_set_new(to, "begin_ns", time_or_null(begin_ns, known));
	json_object_set_new(to, "end_ns", time_or_null(end_ns, known));
}

static json_t *clock_json(const struct ky_clock_class *clock)
{
	json_t *json = json_object();

	json_object_set_new(json, "name", info_json_text_or_null(clock->name));
	json_object_set_new(json, "description", info_json_text_or_null(clock->description));
	json_object_set_new(json, "uuid", uuid_or_null(clock->has_uuid, clock->uuid));
	json_object_set_new(json, "frequency_hz", info_json_count(clock->frequency_hz));
	json_object_set_new(json, "precision_cycles", info_json_count(clock->precision_cycles));
	json_object_set_new(json, "offset_s", json_integer(clock->offset_s));
	json_object_set_new(json, "offset_cycles", json_integer(clock->offset_cycles));
	json_object_set_new(json, "unix_epoch", json_boolean(clock->is_unix_epoch));
	json_object_set_new(json, "zero_ns", json_integer(clock->base_ns));
	return json;
}

static void info_json_put_env(json_t *json, struct ky_env *env)
{
	json_t *name = info_json_text_or_null(env->name);

	json_object_set_new(json, json_string_value(name),
			    env->is_text ? info_json_text_or_null(env->text)
					 : json_integer(env->number));
	json_decref(name);
}

static json_t *environment_json(const struct ky_trace_class *cls)
{
	json_t *json = json_object();

	ky_vec_foreach(&cls->env, env)
		info_json_put_env(json, env);
	return json;
}

/* Each loss: how much, and between which times (null where the trace does not tell). */
static json_t *losses_json(const struct ky_stream_summary *summary)
{
	json_t *list = json_array();

	ky_vec_foreach(&summary->losses, loss) {
		json_t *json;

		if (loss->damage)
			continue;
		json = json_object();
		json_object_set_new(json, "events", info_json_count(loss->events));
		json_object_set_new(json, "packets", info_json_count(loss->packets));
		json_object_set_new(json, "begin_ns",
				    time_or_null(loss->begin_ns, loss->begin_ns != INT64_MIN));
		json_object_set_new(json, "end_ns",
				    time_or_null(loss->end_ns, loss->end_ns != INT64_MIN));
		json_array_append_new(list, json);
	}
	return list;
}

static json_t *number_or_null(uint64_t number)
{
	return number == KYMO_NO_OFFSET ? json_null() : info_json_count(number);
}

static json_t *damages_json(const struct ky_stream_summary *summary)
{
	json_t *list = json_array();

	ky_vec_foreach(&summary->losses, loss) {
		json_t *json;

		if (!loss->damage)
			continue;
		json = json_object();
		json_object_set_new(json, "path", info_json_text_or_null(loss->damage->path));
		json_object_set_new(json, "offset", info_json_count(loss->damage->offset));
		json_object_set_new(json, "packet", number_or_null(loss->damage->packet));
		json_object_set_new(json, "event", number_or_null(loss->damage->event));
		json_object_set_new(json, "message", info_json_text_or_null(loss->damage->message));
		json_object_set_new(json, "skipped_bytes", info_json_count(loss->skipped_bytes));
		json_array_append_new(list, json);
	}
	return list;
}

static json_t *files_json(const struct ky_stream *stream)
{
	json_t *list = json_array();

	for (size_t i = 0; i < stream->parts.len; i++)
		json_array_append_new(list, info_json_text_or_null(info_file_name(stream, i)));
	return list;
}

static json_t *events_json(const struct info *info, uint64_t events)
{
	return info->counted ? info_json_count(events) : json_null();
}

static json_t *stream_json(const struct info *info, const struct ky_stream_summary *summary)
{
	const struct ky_stream *stream = summary->stream;
	json_t *json = json_object();

	json_object_set_new(json, "file", info_json_text_or_null(stream->name));
	json_object_set_new(json, "files", files_json(stream));
	json_object_set_new(json, "class_id",
			    stream->cls ? info_json_count(stream->cls->id) : json_null());
	json_object_set_new(json, "id", stream->has_id ? info_json_count(stream->id) : json_null());
	json_object_set_new(json, "cpu",
			    stream->has_cpu_id ? json_integer(stream->cpu_id) : json_null());
	json_object_set_new(json, "packets", info_json_count(summary->packets));
	json_object_set_new(json, "bytes", info_json_count(info_stream_bytes(stream)));
	json_object_set_new(json, "events", events_json(info, summary->events));
	json_object_set_new(json, "lost_events", info_json_count(summary->lost_events));
	json_object_set_new(json, "lost_packets", info_json_count(summary->lost_packets));
	json_object_set_new(json, "losses", losses_json(summary));
	json_object_set_new(json, "damages", damages_json(summary));
	json_object_set_new(json, "skipped_bytes", info_json_count(summary->skipped_bytes));
	info_json_add_range(json, summary->begin_ns, summary->end_ns);
	return json;
}

static json_t *info_json_event_json(const struct ky_event_class *cls, uint64_t n)
{
	json_t *json = json_object();

	json_object_set_new(json, "name", info_json_text_or_null(cls->name));
	json_object_set_new(json, "id", info_json_count(cls->id));
	json_object_set_new(json, "stream_class_id", info_json_count(cls->stream->id));
	json_object_set_new(json, "count", info_json_count(n));
	return json;
}

static json_t *trace_json(const struct info *info, const struct info_trace *t)
{
	const struct ky_trace_class *cls = t->trace->cls;
	json_t *json = json_object(), *list;

	json_object_set_new(json, "path", info_json_text_or_null(t->trace->path));
	json_object_set_new(json, "format", json_string(info_format(cls)));
	/* In CTF 2 every field says its own. */
	json_object_set_new(json, "byte_order",
			    cls->major >= 2   ? json_null()
			    : cls->big_endian ? json_string("big-endian")
					      : json_string("little-endian"));
	json_object_set_new(json, "uuid", uuid_or_null(cls->has_uuid, cls->uuid));
	json_object_set_new(json, "environment", environment_json(cls));
	json_object_set_new(json, "clocks", list = json_array());
	ky_vec_foreach(&cls->clocks, clock)
		json_array_append_new(list, clock_json(*clock));
	json_object_set_new(json, "streams", list = json_array());
	for (size_t i = 0; i < t->trace->streams.len; i++)
		json_array_append_new(list, stream_json(info, &t->streams[i]));
	json_object_set_new(json, "event_classes", info_json_count(cls->events.len));
	json_object_set_new(json, "event_types", list = info->counted ? json_array() : json_null());
	for (size_t i = 0; i < t->n_classes; i++)
		json_array_append_new(
			list, info_json_event_json(t->classes[i], t->counts[t->classes[i]->index]));
	return json;
}

int ky_info_json(const struct info *info, struct kymo_error *err)
{
	const struct info_totals *totals = &info->totals;
	bool known = info_has_range(totals->begin_ns, totals->end_ns);
	json_t *root = json_object(), *traces = json_array();

	for (size_t i = 0; i < info->n_traces; i++)
		json_array_append_new(traces, trace_json(info, &info->traces[i]));
	json_object_set_new(root, "events", events_json(info, totals->events));
	json_object_set_new(root, "packets", info_json_count(totals->packets));
	json_object_set_new(root, "bytes", info_json_count(totals->bytes));
	json_object_set_new(root, "lost_events", info_json_count(totals->lost_events));
	json_object_set_new(root, "lost_packets", info_json_count(totals->lost_packets));
	info_json_add_range(root, totals->begin_ns, totals->end_ns);
	json_object_set_new(
		root, "duration_ns",
		time_or_null((int64_t)((uint64_t)totals->end_ns - (uint64_t)totals->begin_ns),
			     known));
	json_object_set_new(root, "traces", traces);
	return ky_cli_put_json(root, 2, err);
}
