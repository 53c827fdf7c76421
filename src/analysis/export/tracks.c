/* SPDX-License-Identifier: MIT */
/* The sink: its life, and the pass over the events. */
#include "analysis/export/tracks-internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/error.h"
#include "flow/sinks/json-value.h"
#include "os/file.h"

#define WRITE_BYTES ((size_t)256 << 10)
#define EXACT_MAX   ((uint64_t)1 << 53)

/* ---- classes ---------------------------------------------------------------------------- */

/* The model tells of these, as slices and states. */
static bool tracks_is_of_model(const struct ky_class_info *info, const char *name)
{
	const ky_event_handler handle = info->whole ? info->whole : info->handle;

	return handle == ky_on_syscall_entry || handle == ky_on_syscall_exit ||
	       handle == ky_on_switch || handle == ky_on_irq_entry || handle == ky_on_irq_exit ||
	       handle == ky_on_softirq_entry || handle == ky_on_softirq_exit ||
	       handle == ky_on_vector_entry || handle == ky_on_vector_exit ||
	       handle == ky_on_rq_issue || handle == ky_on_rq_complete ||
	       strncmp(name, "lttng_statedump_", 16) == 0;
}

static int tracks_resolve(struct ky_tracks *tracks, const struct ky_host *host,
			  const struct ky_event_class *cls, struct ky_tracks_class *own)
{
	bool is_kernel = tracks->hosts[host->index].is_kernel;
	enum ky_span_part part;
	size_t len;

	own->what = KY_TRACK_INSTANT;
	own->category = is_kernel ? "kernel" : "user";
	if (is_kernel && (!tracks->form->wants_model ||
			  tracks_is_of_model(&host->classes[cls->index], cls->name)))
		return 0;
	if (!is_kernel)
		ky_event_thread_find(&own->thread, cls);
	/* The model tells of samples; what perf tells of threads and mappings is no happening. */
	if (host->classes[cls->index].of_before ||
	    (tracks->form->wants_stacks && host->classes[cls->index].is_sample))
		return 0;
	own->name = cls->name;
	part = ky_span_part(cls, &len, &own->on_cpu);
	if (part == KY_SPAN_NONE)
		return 0;
	own->what = part == KY_SPAN_BEGIN ? KY_TRACK_BEGIN : KY_TRACK_END;
	own->name = ky_arena_strndup(&tracks->arena, cls->name, len);
	return own->name ? 0 : KYMO_E_MEMORY;
}

static uint32_t tracks_machine(const struct ky_tracks *tracks, size_t n)
{
	const char *name = ky_model_host(tracks->model, n)->name;
	uint32_t most = 0;

	for (size_t i = 0; i < n; i++) {
		if (strcmp(ky_model_host(tracks->model, i)->name, name) == 0)
			return tracks->hosts[i].machine;
		if (tracks->hosts[i].machine >= most)
			most = tracks->hosts[i].machine + 1;
	}
	return most;
}

static int tracks_add_hosts(struct ky_tracks *tracks)
{
	size_t n = ky_model_n_hosts(tracks->model);

	tracks->hosts = ky_arena_array(&tracks->arena, n + 1, sizeof(*tracks->hosts));
	if (!tracks->hosts)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		const struct ky_host *host = ky_model_host(tracks->model, i);
		const struct ky_trace_class *trace = host->trace->cls;
		struct ky_tracks_host *own = &tracks->hosts[i];

		own->machine = tracks_machine(tracks, i);
		own->is_kernel = ky_host_is_kernel(host);
		own->classes = ky_arena_array(&tracks->arena, trace->events.len + 1,
					      sizeof(*own->classes));
		if (!own->classes)
			return KYMO_E_MEMORY;
		for (size_t j = 0; j < trace->events.len; j++) {
			if (tracks_resolve(tracks, host, trace->events.data[j], &own->classes[j]) <
			    0)
				return KYMO_E_MEMORY;
		}
	}
	return 0;
}

/* ---- events ----------------------------------------------------------------------------- */

static int tracks_write(struct ky_tracks *tracks, struct kymo_error *err)
{
	int ret;

	if (ky_strbuf_failed(&tracks->out))
		return ky_error_nomem(err);
	ret = ky_write_all(tracks->fd, tracks->out.data, tracks->out.len);
	ky_strbuf_clear(&tracks->out);
	return ret < 0 ? ky_error_errno(err, -ret, "cannot write %s", tracks->form->what) : KYMO_OK;
}

/* The thread that a kernel's event happened in; NULL: none, or not known. */
static const struct ky_thread *tracks_current(const struct ky_tracks *tracks,
					      const struct ky_host *host,
					      const struct ky_stream *stream,
					      const struct ky_event *event)
{
	const struct ky_class_info *info = &host->classes[event->cls->index];
	const struct ky_cpu *cpu = tracks->model->streams[stream->index].cpu;
	int64_t tid;

	if (info->tid.cls) {
		tid = ky_get_i64(event, &info->tid, 0);
		return tid > 0 && tid <= INT32_MAX ? ky_map_get(&host->threads, (uint32_t)tid)
						   : NULL;
	}
	return cpu && cpu->state == KY_CPU_BUSY ? cpu->current : NULL;
}

/*
 * A program's events without a thread in their context: of the thread that ran on the CPU, where the kernel's trace tells it and it
 * is one of that process; else of the process.
 */
static struct ky_track *tracks_of_process(struct ky_tracks *tracks, const struct ky_host *host,
					  uint32_t cpu_id)
{
	const struct ky_env *pid = ky_env_find(host->trace->cls, "vpid");

	for (size_t i = 0; pid && !pid->is_text && i < ky_model_n_hosts(tracks->model); i++) {
		const struct ky_host *kernel = ky_model_host(tracks->model, i);
		const struct ky_cpu *cpu;

		if (!tracks->hosts[i].is_kernel ||
		    tracks->hosts[i].machine != tracks->hosts[host->index].machine)
			continue;
		cpu = ky_map_get(&kernel->cpus, cpu_id);
		if (cpu && cpu->state == KY_CPU_BUSY && cpu->current &&
		    cpu->current->pid == pid->number)
			return ky_tracks_of_thread(tracks, cpu->current);
	}
	return ky_tracks_of_process(tracks, host);
}

static struct ky_track *tracks_place(struct ky_tracks *tracks, const struct ky_host *host,
				     const struct ky_stream *stream, const struct ky_event *event,
				     const struct ky_tracks_class *cls)
{
	const struct ky_thread *thread;
	struct ky_track *track = NULL;
	uint32_t cpu_id = ky_event_cpu(event, &host->classes[event->cls->index]);

	if (!tracks->hosts[host->index].is_kernel) {
		track = ky_tracks_of_user(tracks, host, event, cls);
		if (!track)
			track = tracks_of_process(tracks, host, cpu_id);
	} else {
		thread = cls->on_cpu && cls->what != KY_TRACK_INSTANT
				 ? NULL
				 : tracks_current(tracks, host, stream, event);
		if (thread)
			track = ky_tracks_of_thread(tracks, thread);
		else if (cpu_id != UINT32_MAX)
			track = ky_tracks_of_cpu(tracks, host, KY_TRACK_INTERRUPTS, cpu_id);
	}
	return track ? track : ky_tracks_of_stream(tracks, host, stream);
}

static int tracks_show(struct ky_tracks *tracks, const struct ky_host *host,
		       const struct ky_stream *stream, const struct ky_event *event,
		       struct kymo_error *err)
{
	const struct ky_tracks_class *cls = &tracks->hosts[host->index].classes[event->cls->index];
	struct ky_track_item item = {
		.what = cls->what,
		.name = cls->name,
		.category = cls->category,
		.ns = event->ns,
	};
	int n;

	if (!cls->name)
		return KYMO_OK;
	item.track = tracks_place(tracks, host, stream, event, cls);
	if (!item.track)
		return ky_error_nomem(err);
	n = ky_values_decode(&tracks->values, event, KY_SCOPE_PAYLOAD, err);
	if (n < 0)
		return n;
	item.fields = n > 0 ? tracks->values.list.data : NULL;
	return tracks->form->item(tracks, &item, err);
}

static int tracks_event(struct ky_tracks *tracks, struct ky_host *host,
			const struct ky_stream *stream, const struct ky_event *event,
			const struct ky_loss *loss, struct kymo_error *err)
{
	const struct ky_batch one = {
		.stream = stream, .events = event, .n_events = 1, .loss = loss};
	bool is_before = ky_model_is_before(tracks->model, host, event);
	size_t whole = tracks->out.len;
	int ret;

	if (!is_before && tracks->origin_ns == INT64_MIN)
		tracks->origin_ns = event->ns;
	tracks->now = event;
	tracks->err = err;
	ret = ky_model_feed(tracks->model, &one, err);
	tracks->now = NULL;
	if (ret >= 0 && !is_before)
		ret = tracks_show(tracks, host, stream, event, err);
	if (ret == KYMO_E_FORMAT) {
		/* No half items. */
		tracks->out.len = whole;
		ky_error_path(err, stream->file.path);
	}
	return ret;
}

static int tracks_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	struct ky_tracks *tracks = (struct ky_tracks *)sink;
	struct ky_host *host = tracks->model->streams[batch->stream->index].host;
	const struct ky_loss *loss = batch->loss;
	int ret = KYMO_OK;

	tracks->err = err;
	if (loss && !batch->n_events)
		return ky_model_feed(tracks->model, batch, err);
	for (size_t i = 0; i < batch->n_events && ret >= 0; i++) {
		if (batch->events[i].ns == INT64_MIN) {
			tracks->n_untimed++;
			continue;
		}
		ret = tracks_event(tracks, host, batch->stream, &batch->events[i], loss, err);
		loss = NULL;
		if (ret >= 0 && tracks->out.len >= WRITE_BYTES)
			ret = tracks_write(tracks, err);
	}
	return ret;
}

static int tracks_finish(struct ky_sink *sink, struct kymo_error *err)
{
	struct ky_tracks *tracks = (struct ky_tracks *)sink;
	int ret;

	if (tracks->origin_ns == INT64_MIN && tracks->n_untimed)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "no event has a time, so there is no time line");
	tracks->err = err;
	ret = ky_model_end(tracks->model, err);
	if (ret >= 0)
		ret = tracks->form->end(tracks, err);
	return ret < 0 ? ret : tracks_write(tracks, err);
}

/* Viewers keep numbers as floats of 64 bits: larger integers, such as addresses of the kernel, are texts. */
static bool tracks_is_exact(const struct ky_value *v)
{
	bool is_signed = v->cls->kind == KY_FIELD_SINT || v->cls->kind == KY_FIELD_VARSINT;
	uint64_t size = is_signed && v->s < 0 ? -(uint64_t)v->s : v->u;

	if (!is_signed && v->cls->kind != KY_FIELD_UINT && v->cls->kind != KY_FIELD_VARUINT)
		return true;
	return ky_value_is_big(v) || v->cls->num.is_enum || size <= EXACT_MAX;
}

static const struct ky_value *tracks_json_scalar(struct ky_strbuf *out, const struct ky_value *v)
{
	if (tracks_is_exact(v))
		return ky_json_value(out, v);
	if (v->cls->num.base == 16)
		ky_strbuf_addf(out, "\"0x%" PRIx64 "\"", v->u);
	else if (v->cls->kind == KY_FIELD_SINT || v->cls->kind == KY_FIELD_VARSINT)
		ky_strbuf_addf(out, "\"%" PRId64 "\"", v->s);
	else
		ky_strbuf_addf(out, "\"%" PRIu64 "\"", v->u);
	return v + 1;
}

/* A field, or an array of numbers: what lies deeper is as JSON has it. NULL: out of memory, and @out has failed. */
static const struct ky_value *tracks_json_field(struct ky_strbuf *out, const struct ky_value *v)
{
	const struct ky_value *at = v + 1, *end = at + v->n_below;

	if (v->cls->kind != KY_FIELD_ARRAY)
		return tracks_json_scalar(out, v);
	ky_strbuf_addc(out, '[');
	while (at && at < end) {
		at = tracks_json_scalar(out, at);
		ky_strbuf_adds(out, at < end ? "," : "");
	}
	ky_strbuf_addc(out, ']');
	return at ? end : NULL;
}

bool ky_tracks_json_fields(struct ky_strbuf *out, const struct ky_value *value)
{
	const struct ky_value *at = value ? value + 1 : NULL,
			      *end = at ? at + value->n_below : NULL;
	bool any = false;

	while (at && at < end) {
		ky_strbuf_adds(out, any ? "," : "");
		any = true;
		ky_json_text(out, at->name, strlen(at->name));
		ky_strbuf_addc(out, ':');
		at = tracks_json_field(out, at);
	}
	return any;
}

/* ---- its life --------------------------------------------------------------------------- */

static void tracks_free(struct ky_sink *sink)
{
	struct ky_tracks *tracks = (struct ky_tracks *)sink;

	if (tracks->own && tracks->form->free)
		tracks->form->free(tracks);
	ky_map_fini(&tracks->tracks);
	ky_vec_fini(&tracks->list);
	ky_values_fini(&tracks->values);
	ky_strbuf_fini(&tracks->out);
	ky_model_free(tracks->model);
	ky_arena_fini(&tracks->arena);
	free(tracks);
}

static const struct ky_sink_ops tracks_ops = {
	.batch = tracks_batch,
	.finish = tracks_finish,
	.free = tracks_free,
};

static int tracks_prepare(struct ky_tracks *tracks, struct kymo_error *err)
{
	tracks->own = ky_arena_array(&tracks->arena, 1, tracks->form->own_bytes + 1);
	tracks->model = ky_model_new(tracks->set, err);
	if (!tracks->model || !tracks->own)
		return ky_error_nomem(err);
	if (tracks_add_hosts(tracks) < 0 || ky_tracks_listen(tracks) < 0)
		return ky_error_nomem(err);
	return tracks->form->begin(tracks, err);
}

int ky_tracks_open(const struct ky_trace_set *set, int fd, const struct ky_tracks_form *form,
		   const void *options, struct ky_sink **sink, struct kymo_error *err)
{
	struct ky_tracks *tracks = calloc(1, sizeof(*tracks));
	int ret;

	if (!tracks)
		return ky_error_nomem(err);
	tracks->sink.ops = &tracks_ops;
	tracks->form = form;
	tracks->options = options;
	tracks->fd = fd;
	tracks->set = set;
	tracks->origin_ns = INT64_MIN;
	tracks->err = err;
	ky_arena_init(&tracks->arena);
	ky_values_init(&tracks->values);
	ret = tracks_prepare(tracks, err);
	if (ret < 0)
		tracks_free(&tracks->sink);
	else
		*sink = &tracks->sink;
	return ret;
}
