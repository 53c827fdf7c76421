/* SPDX-License-Identifier: MIT */
/*
 * Filters of a trace's events: what the kernel can decide it decides, the rest the converter.
 * Events that only some helper needs are not filtered in the kernel, since threads are learnt from
 * them.
 */
#include <string.h>

#include "base/error.h"
#include "kernel/events/kernel-filter.h"
#include "query/program.h"
#include "record/trace/kernel-trace-internal.h"

/* The latest of that text: those before may not know events that were added. */
static struct ky_kernel_trace_filter *kernel_trace_filter_find(struct ky_kernel_trace *kernel,
							       const char *text)
{
	for (size_t i = kernel->filters.len; i-- > 0;)
		if (strcmp(kernel->filters.data[i].text, text) == 0)
			return &kernel->filters.data[i];
	return NULL;
}

static int kernel_trace_filter_compile(struct ky_kernel_trace *kernel, const char *text,
				       struct kymo_error *err)
{
	const struct ky_trace_class *trace = kernel->trace;
	struct ky_kernel_trace_filter filter = {.text = text};
	int ret = ky_filter_compile(text, &trace, 1, &filter.filter, err);

	if (ret < 0) {
		if (ret == KYMO_E_INVALID) {
			ky_error_input(err, "kernel filter");
			ky_kernel_trace_explain_context(kernel, text, err);
		}
		return ret;
	}
	if (ky_vec_push(&kernel->filters, filter) == 0)
		return KYMO_OK;
	ky_filter_free(filter.filter);
	return ky_error_nomem(err);
}

/* Does @code ask for what is not known before the packet is finished? */
static bool asks_too_early(const struct ky_code *code)
{
	for (; code; code = code->next) {
		if (code->op == KY_OP_NAME && !code->is_constant &&
		    (code->name == KY_NAME_TIME || code->handle.scope == KY_SCOPE_PACKET_CONTEXT))
			return true;
		if (asks_too_early(code->left) || asks_too_early(code->right))
			return true;
	}
	return false;
}

static int too_early(const char *filter, const char *event, struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_INVALID,
			    "'%s': $time and the packet's fields are for reading; a filter of a "
			    "recording can use fields of %s, $ctx.NAME and $cpu",
			    filter, event);
}

static int true_of_none(const char *filter, struct kymo_error *err)
{
	int ret =
		ky_error_set(err, KYMO_E_INVALID, "'%s' is true for no event of its rule", filter);

	ky_error_hint(err, "kymo list shows the fields of events");
	return ret;
}

/* The converter decides; called anew when the kernel turns out not to. */
static void leave_to_recorder(struct ky_kernel_trace *kernel, struct ky_event_source *source)
{
	struct ky_kernel_trace_filter *filter = kernel_trace_filter_find(kernel, source->filter);

	ky_convert_set_filter(&kernel->convert, source->id, filter->filter, source->event_class);
	filter->n_recorder++;
	filter->example = source->name;
}

/* Besides what is there already (ky_kernel_trace_filter_comm()). False: out of memory. */
static bool add_kernel_filter(struct ky_kernel_trace *kernel, struct ky_event_source *source,
			      struct ky_strbuf *text)
{
	struct ky_arena *arena = &kernel->catalogue.arena;
	const char *before = source->kernel_filter, *both = NULL;

	if (!ky_strbuf_failed(text))
		both = before ? ky_arena_printf(arena, "%s && (%s)", ky_strbuf_text(text), before)
			      : ky_arena_strdup(arena, ky_strbuf_text(text));
	ky_strbuf_fini(text);
	source->kernel_filter = both;
	return both != NULL;
}

void ky_kernel_trace_leave_to_recorder(struct ky_kernel_trace *kernel,
				       struct ky_event_source *source)
{
	if (ky_filter_code(kernel_trace_filter_find(kernel, source->filter)->filter, 0,
			   source->event_class))
		leave_to_recorder(kernel, source);
}

static int bind_event(struct ky_kernel_trace *kernel, struct ky_event_source *source,
		      struct kymo_error *err)
{
	struct ky_kernel_trace_filter *filter = kernel_trace_filter_find(kernel, source->filter);
	struct ky_strbuf text = KY_STRBUF_INIT;
	enum ky_kernel_filter how = KY_KERNEL_FILTER_NONE;
	const struct ky_event_field *fields;
	size_t n_fields;

	if (asks_too_early(ky_filter_code(filter->filter, 0, source->event_class)))
		return too_early(filter->text, source->name, err);
	switch (ky_filter_verdict(filter->filter, 0, source->event_class)) {
	case KY_ALWAYS:
		filter->n_events++;
		return KYMO_OK;
	case KY_NEVER:
		source->never = true;
		/* It is recorded all the same, to learn from. */
		if (source->hidden)
			leave_to_recorder(kernel, source);
		return KYMO_OK;
	case KY_DEPENDS:
		filter->n_events++;
		break;
	}
	fields = ky_convert_fields(&kernel->convert, source->id, &n_fields);
	if (!source->hidden && !source->of_bpf)
		how = ky_kernel_filter(filter->filter, source->event_class, fields, n_fields,
				       &text);
	if (how == KY_KERNEL_FILTER_NONE)
		ky_strbuf_fini(&text);
	else if (!add_kernel_filter(kernel, source, &text))
		return ky_error_nomem(err);
	if (how != KY_KERNEL_FILTER_ALL)
		leave_to_recorder(kernel, source);
	return KYMO_OK;
}

int ky_kernel_trace_compile_filters(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&kernel->catalogue.events, source) {
		source->own_filter = source->filter;
		ret = ky_kernel_trace_filter_comm(kernel, source, err);
		if (ret < 0)
			return ret;
		if (!source->selected || !source->filter)
			continue;
		if (!kernel_trace_filter_find(kernel, source->filter))
			ret = kernel_trace_filter_compile(kernel, source->filter, err);
		if (!ret)
			ret = bind_event(kernel, source, err);
		if (ret < 0)
			return ret;
	}
	ky_vec_foreach(&kernel->filters, filter) {
		if (filter->n_events)
			continue;
		return true_of_none(filter->text, err);
	}
	return KYMO_OK;
}

int ky_kernel_trace_bind_filter(struct ky_kernel_trace *kernel, struct ky_event_source *source,
				struct kymo_error *err)
{
	int ret;

	source->kernel_filter = NULL;
	source->never = false;
	source->filter = source->own_filter;
	ky_convert_set_filter(&kernel->convert, source->id, NULL, NULL);
	ret = ky_kernel_trace_filter_comm(kernel, source, err);
	if (ret < 0 || !source->filter)
		return ret;
	if (source->filter != source->own_filter ||
	    !kernel_trace_filter_find(kernel, source->filter))
		ret = kernel_trace_filter_compile(kernel, source->filter, err);
	return ret < 0 ? ret : bind_event(kernel, source, err);
}

/* Would it be a filter of the events, and true of one? */
static int try_filter(struct ky_kernel_trace *kernel, const bool *chosen, const char *filter,
		      struct kymo_error *err)
{
	int ret = kernel_trace_filter_compile(kernel, filter, err), n = 0;
	const struct ky_filter *compiled;

	if (ret < 0)
		return ret;
	compiled = kernel_trace_filter_find(kernel, filter)->filter;
	for (size_t i = 0; i < kernel->catalogue.events.len; i++) {
		const struct ky_event_source *source = &kernel->catalogue.events.data[i];

		if (!chosen[i])
			continue;
		if (asks_too_early(ky_filter_code(compiled, 0, source->event_class)))
			return too_early(filter, source->name, err);
		n += ky_filter_verdict(compiled, 0, source->event_class) != KY_NEVER;
	}
	return n ? KYMO_OK : true_of_none(filter, err);
}

int ky_kernel_trace_set_filter(struct ky_kernel_trace *kernel, const bool *chosen,
			       const char *filter, struct kymo_error *err)
{
	int ret = filter ? try_filter(kernel, chosen, filter, err) : KYMO_OK;

	for (size_t i = 0; i < kernel->catalogue.events.len && !ret; i++) {
		struct ky_event_source *source = &kernel->catalogue.events.data[i];

		if (!chosen[i])
			continue;
		source->own_filter = filter;
		ret = ky_kernel_trace_bind_filter(kernel, source, err);
	}
	return ret;
}

void ky_kernel_trace_log_filters(const struct ky_kernel_trace *kernel)
{
	ky_vec_foreach(&kernel->filters, filter) {
		if (!filter->n_recorder)
			continue;
		ky_log_info(kernel->log,
			    "'%s': for %zu of %zu kinds of events (%s%s), the kernel records more "
			    "events, and the recorder filters them",
			    filter->text, filter->n_recorder, filter->n_events, filter->example,
			    filter->n_recorder > 1 ? " and others" : "");
	}
}

void ky_kernel_trace_free_filters(struct ky_kernel_trace *kernel)
{
	ky_vec_foreach(&kernel->filters, filter)
		ky_filter_free(filter->filter);
	ky_vec_fini(&kernel->filters);
}
