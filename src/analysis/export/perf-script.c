/* SPDX-License-Identifier: MIT */
#include "analysis/export/perf-script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/export/event-words.h"
#include "analysis/state/model-internal.h"
#include "base/error.h"
#include "base/utf8.h"
#include "flow/sinks/json-value.h"
#include "os/file.h"

#define WRITE_BYTES ((size_t)256 << 10)
#define TEXT_BYTES  4096

struct perf_script {
	struct ky_sink sink;
	int fd;
	const struct ky_trace_set *set;
	struct ky_model *model;
	struct ky_trace_symbols *symbols;
	struct ky_arena arena;
	struct ky_values values;
	struct ky_strbuf out, stack;
	struct ky_event_words **classes; /* by host, then event class */
	uint64_t period;		 /* of the sample at hand */
	const char *source;		 /* likewise */
	uint64_t n_events;
	int64_t shift_ns; /* the text has no times before 0: the first event is then there */
	bool has_stacks; /* the trace has: then times are those that perf prints, in microseconds */
	bool failed;
};

/* ---- classes ------------------------------------------------------------------------------ */

static int perf_script_classes(struct perf_script *script)
{
	size_t n = ky_model_n_hosts(script->model);

	script->classes = ky_arena_array(&script->arena, n + 1, sizeof(*script->classes));
	if (!script->classes)
		return KYMO_E_MEMORY;
	for (size_t i = 0; i < n; i++) {
		const struct ky_host *host = ky_model_host(script->model, i);
		const struct ky_trace_class *trace = host->trace->cls;

		script->classes[i] = ky_arena_array(&script->arena, trace->events.len + 1,
						    sizeof(**script->classes));
		if (!script->classes[i])
			return KYMO_E_MEMORY;
		for (size_t j = 0; j < trace->events.len; j++) {
			ky_event_words_find(&script->classes[i][j], host, trace->events.data[j]);
			script->has_stacks |= host->classes[j].has_stacks;
		}
	}
	return 0;
}

/* ---- lines -------------------------------------------------------------------------------- */

/* Lines stay lines, and terminals get no commands. */
static void perf_script_text(struct ky_strbuf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len && i < TEXT_BYTES; i++)
		ky_strbuf_addc(out, (unsigned char)text[i] < ' ' || text[i] == 127 ||
						    (i && ky_utf8_is_control(text + i - 1))
					    ? '?'
					    : text[i]);
}

static void perf_script_name(struct ky_strbuf *out, const char *name)
{
	perf_script_text(out, name, strlen(name));
}

static void perf_script_value(struct ky_strbuf *out, const struct ky_value *v, int64_t offset)
{
	switch (v->cls->kind) {
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		if (v->cls->text.encoding <= KY_ENCODING_ASCII) {
			perf_script_text(out, v->str.data, v->str.len_bytes);
			return;
		}
		break;
	case KY_FIELD_UINT:
		if (ky_value_is_big(v) || v->cls->num.is_enum)
			break;
		if (v->cls->num.base == 16)
			ky_strbuf_addf(out, "0x%" PRIx64, v->u);
		else
			ky_strbuf_addu(out, v->u + (uint64_t)offset);
		return;
	case KY_FIELD_SINT:
		if (ky_value_is_big(v) || v->cls->num.is_enum)
			break;
		ky_strbuf_addi(out, v->s + offset);
		return;
	default:
		break;
	}
	ky_json_value(out, v);
}

/* The kernel's letters, as its text has them. */
static void perf_script_state(struct ky_strbuf *out, uint64_t state)
{
	static const char letters[] = "SDTtXZPI";
	bool any = false;

	if ((state & 0x402) == 0x402) {
		ky_strbuf_addc(out, 'I');
		return;
	}
	for (size_t i = 0; letters[i]; i++) {
		if (!(state & UINT64_C(1) << i))
			continue;
		ky_strbuf_adds(out, any ? "|" : "");
		ky_strbuf_addc(out, letters[i]);
		any = true;
	}
	ky_strbuf_adds(out, any ? "" : "R");
}

static void perf_script_field(struct ky_strbuf *out, const struct ky_event_words *cls,
			      const struct ky_value *v)
{
	bool is_prio = ky_kernel_field_is_prio(&cls->words, v->name);

	perf_script_name(out, ky_kernel_field(&cls->words, v->name));
	ky_strbuf_addc(out, '=');
	if (cls->is_switch && strcmp(v->name, "prev_state") == 0 && !v->cls->num.is_enum)
		perf_script_state(out, v->u);
	else
		perf_script_value(out, v, is_prio ? cls->prio_offset : 0);
}

static int perf_script_fields(struct perf_script *script, const struct ky_event_words *cls,
			      const struct ky_event *event, struct kymo_error *err)
{
	int n = ky_values_decode(&script->values, event, KY_SCOPE_PAYLOAD, err);
	const struct ky_value *at = script->values.list.data, *end = at;

	if (n <= 0)
		return n;
	end += 1 + at->n_below;
	for (at++; at < end; at += 1 + at->n_below) {
		if (cls->words.is_exit && strcmp(at->name, "ret") == 0) {
			ky_strbuf_addf(&script->out, " 0x%" PRIx64, at->u);
			break;
		}
		if (cls->has_names && strcmp(at->name, "callstack") == 0)
			continue;
		ky_strbuf_addc(&script->out, ' ');
		if (cls->words.is_syscall) {
			perf_script_name(&script->out, at->name);
			ky_strbuf_adds(&script->out, ": ");
			perf_script_value(&script->out, at, 0);
			ky_strbuf_adds(&script->out, at + 1 + at->n_below < end ? "," : "");
			continue;
		}
		if (cls->is_switch && strcmp(at->name, "next_comm") == 0)
			ky_strbuf_adds(&script->out, "==> ");
		perf_script_field(&script->out, cls, at);
	}
	return 0;
}

/* ---- stacks ------------------------------------------------------------------------------- */

static void perf_script_frame(struct perf_script *script, const struct ky_event *event,
			      uint64_t address, bool is_return)
{
	const struct ky_symbols_frame *frames = NULL;
	size_t n = script->symbols ? ky_trace_symbols_resolve(script->symbols, event, address,
							      is_return, &frames)
				   : 0;

	for (size_t i = 0; i < n || i == 0; i++) {
		const char *function = n ? frames[i].function : NULL;
		const char *object = n ? frames[i].object : NULL;

		ky_strbuf_addf(&script->stack, "\t%16" PRIx64 " ", address);
		if (function)
			perf_script_text(&script->stack, function, strlen(function));
		else
			ky_strbuf_adds(&script->stack, "[unknown]");
		if (function && !frames[i].is_inlined)
			ky_strbuf_addf(&script->stack, "+0x%" PRIx64, frames[i].offset);
		ky_strbuf_adds(&script->stack, " (");
		if (object)
			perf_script_text(&script->stack, object, strlen(object));
		else
			ky_strbuf_adds(&script->stack, "[unknown]");
		ky_strbuf_adds(&script->stack, ")\n");
	}
}

/* Of a text there are no addresses left. */
static void perf_script_named_frame(struct perf_script *script, const struct ky_stack_name *name)
{
	ky_strbuf_addf(&script->stack, "\t%16" PRIx64 " ", name->is_kernel ? ~UINT64_C(0) : 0);
	perf_script_text(&script->stack, name->text, name->len);
	ky_strbuf_adds(&script->stack,
		       name->is_kernel ? " ([kernel.kallsyms])\n" : " ([unknown])\n");
}

static int perf_script_stack(void *data, const struct ky_stack_seen *seen)
{
	struct perf_script *script = data;

	script->period = seen->weight;
	script->source = seen->source;
	for (uint32_t i = 0; i < seen->n_names; i++)
		perf_script_named_frame(script, &seen->names[i]);
	for (uint32_t i = 0; i < seen->n_kernel; i++)
		perf_script_frame(script, seen->event, seen->kernel[i], i > 0);
	for (uint32_t i = 0; i < seen->n_user; i++)
		perf_script_frame(script, seen->event, seen->user[i], i > 0);
	return 0;
}

/* ---- the pass ----------------------------------------------------------------------------- */

static int perf_script_write(struct perf_script *script, struct kymo_error *err)
{
	int ret;

	if (ky_strbuf_failed(&script->out) || ky_strbuf_failed(&script->stack))
		return ky_error_nomem(err);
	ret = ky_write_all(script->fd, script->out.data, script->out.len);
	ky_strbuf_clear(&script->out);
	return ret < 0 ? ky_error_errno(err, -ret, "cannot write the text of perf script")
		       : KYMO_OK;
}

static void perf_script_head(struct perf_script *script, const struct ky_event_words *cls,
			     const struct ky_event *event, uint32_t cpu_id,
			     const struct ky_event_who *who)
{
	struct ky_strbuf *out = &script->out;
	uint64_t ns = (uint64_t)(event->ns + script->shift_ns);

	/* As perf: before a call stack, the name has no spaces in front. By this, readers know it from text of ftrace. */
	ky_strbuf_addf(out,
		       script->stack.len ? "%s %7" PRId64 " [%03u] " : "%16s %7" PRId64 " [%03u] ",
		       who->comm, who->tid, cpu_id == UINT32_MAX ? 0 : cpu_id);
	if (script->has_stacks)
		ky_strbuf_addf(out, "%5" PRIu64 ".%06" PRIu64 ": ", ns / 1000000000,
			       ns % 1000000000 / 1000);
	else
		ky_strbuf_addf(out, "%5" PRIu64 ".%09" PRIu64 ": ", ns / 1000000000,
			       ns % 1000000000);
	if (cls->is_sample)
		ky_strbuf_addf(out, "%10" PRIu64 " ", script->period);
}

static int perf_script_put(struct perf_script *script, const struct ky_host *host,
			   const struct ky_event_words *cls, const struct ky_event *event,
			   const struct ky_event_who *who, struct kymo_error *err)
{
	const struct ky_class_info *info = &host->classes[event->cls->index];
	struct ky_strbuf *out = &script->out;
	int ret = 0;

	perf_script_head(script, cls, event, ky_event_cpu(event, info), who);
	if (cls->is_sample) {
		perf_script_name(out, script->source ? script->source : "sample");
		ky_strbuf_addc(out, ':');
	} else if (cls->is_kernel) {
		ky_strbuf_addf(out, "%s:", cls->words.system);
		perf_script_name(out, cls->words.event);
		ky_strbuf_addc(out, ':');
		ret = perf_script_fields(script, cls, event, err);
	} else {
		perf_script_name(out, event->cls->name);
		ky_strbuf_addc(out, ':');
		ret = perf_script_fields(script, cls, event, err);
	}
	ky_strbuf_addc(out, '\n');
	if (script->stack.len) {
		ky_strbuf_add(out, script->stack.data, script->stack.len);
		ky_strbuf_addc(out, '\n');
	}
	return ret;
}

static int perf_script_event(struct perf_script *script, struct ky_host *host,
			     const struct ky_stream *stream, const struct ky_event *event,
			     const struct ky_loss *loss, struct kymo_error *err)
{
	const struct ky_event_words *cls = &script->classes[host->index][event->cls->index];
	const struct ky_batch one = {
		.stream = stream, .events = event, .n_events = 1, .loss = loss};
	size_t whole = script->out.len;
	struct ky_event_who who;
	int ret;

	ky_event_who(&who, script->model, stream, event, cls);
	ky_strbuf_clear(&script->stack);
	script->period = 1;
	script->source = NULL;
	ret = ky_model_feed(script->model, &one, err);
	if (ret < 0 || event->ns == INT64_MIN || cls->is_dump)
		return ret;
	if (script->n_events++ == 0 && event->ns < 0)
		script->shift_ns = -event->ns;
	ret = perf_script_put(script, host, cls, event, &who, err);
	if (ret < 0) {
		script->out.len = whole;
		ky_error_path(err, stream->file.path);
	} else if (script->out.len >= WRITE_BYTES) {
		ret = perf_script_write(script, err);
	}
	return ret;
}

static int perf_script_batch(struct ky_sink *sink, const struct ky_batch *batch,
			     struct kymo_error *err)
{
	struct perf_script *script = (struct perf_script *)sink;
	struct ky_host *host = script->model->streams[batch->stream->index].host;
	const struct ky_loss *loss = batch->loss;
	int ret = KYMO_OK;

	if (loss && !batch->n_events)
		return ky_model_feed(script->model, batch, err);
	for (size_t i = 0; i < batch->n_events && ret >= 0; i++) {
		ret = perf_script_event(script, host, batch->stream, &batch->events[i], loss, err);
		loss = NULL;
	}
	return ret;
}

static int perf_script_finish(struct ky_sink *sink, struct kymo_error *err)
{
	struct perf_script *script = (struct perf_script *)sink;
	int ret = ky_model_end(script->model, err);

	return ret < 0 ? ret : perf_script_write(script, err);
}

static void perf_script_free(struct ky_sink *sink)
{
	struct perf_script *script = (struct perf_script *)sink;

	ky_values_fini(&script->values);
	ky_strbuf_fini(&script->out);
	ky_strbuf_fini(&script->stack);
	ky_model_free(script->model);
	ky_arena_fini(&script->arena);
	free(script);
}

static const struct ky_sink_ops perf_script_ops = {
	.batch = perf_script_batch,
	.finish = perf_script_finish,
	.free = perf_script_free,
};

int ky_perf_script_open(const struct ky_trace_set *set, int fd, struct ky_trace_symbols *symbols,
			struct ky_sink **sink, struct kymo_error *err)
{
	struct perf_script *script = calloc(1, sizeof(*script));
	struct ky_listener listener = {.stack = perf_script_stack};

	if (!script)
		return ky_error_nomem(err);
	script->sink.ops = &perf_script_ops;
	script->fd = fd;
	script->set = set;
	script->symbols = symbols;
	ky_arena_init(&script->arena);
	ky_values_init(&script->values);
	script->model = ky_model_new(set, err);
	listener.data = script;
	if (!script->model || ky_model_listen(script->model, &listener) < 0 ||
	    perf_script_classes(script) < 0) {
		perf_script_free(&script->sink);
		return ky_error_nomem(err);
	}
	*sink = &script->sink;
	return 0;
}
