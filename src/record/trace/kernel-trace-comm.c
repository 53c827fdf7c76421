/* SPDX-License-Identifier: MIT */
/* The choice of threads by name: a part of the events' filters. */
#include <string.h>

#include "base/error.h"
#include "record/trace/kernel-trace-internal.h"

/* The names of threads that events speak of, besides the one that they happen in. */
static bool kernel_trace_comm_is_name(const char *field)
{
	static const char *const names[] = {"comm", "prev_comm", "next_comm", "parent_comm",
					    "child_comm"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(field, names[i]) == 0)
			return true;
	return false;
}

static bool kernel_trace_comm_is_text(const struct ky_event_field *field)
{
	return field->how == KY_HOW_TEXT || field->how == KY_HOW_COMM ||
	       field->how == KY_HOW_STRING;
}

static void add_condition(struct ky_strbuf *text, const char *field, const char *comm)
{
	ky_strbuf_addf(text, "%s%s == \"%s\"", text->len ? " || " : "", field, comm);
}

/*
 * In the kernel: the name of who runs, or one that the event speaks of. Of events that are recorded to
 * learn from, all are needed: there the recorder looks at what they say.
 */
int ky_kernel_trace_filter_comm(struct ky_kernel_trace *kernel, struct ky_event_source *source,
				struct kymo_error *err)
{
	const char *comm = kernel->comm;
	struct ky_arena *arena = &kernel->catalogue.arena;
	struct ky_strbuf text = KY_STRBUF_INIT;
	const struct ky_event_field *fields;
	/* Calls that tracefs does not have are not the kernel's to filter. */
	bool by_recorder = source->hidden || source->of_bpf;
	const char *copy;
	size_t n;

	if (!comm || !source->selected)
		return KYMO_OK;
	if (source->of_bpf && !(kernel->context & KY_CONTEXT_PROCNAME)) {
		ky_error_set(err, KYMO_E_INVALID,
			     "32-bit and unknown calls have thread names only with procname in the "
			     "context");
		ky_error_input(err, "comm");
		return KYMO_E_INVALID;
	}
	if (!by_recorder)
		add_condition(&text, "COMM", comm);
	else if (kernel->context & KY_CONTEXT_PROCNAME)
		add_condition(&text, "$ctx.procname", comm);
	fields = ky_convert_fields(&kernel->convert, source->id, &n);
	for (size_t i = 0; i < n; i++)
		if (kernel_trace_comm_is_name(fields[i].name) &&
		    kernel_trace_comm_is_text(&fields[i]))
			add_condition(&text, by_recorder ? fields[i].name : fields[i].kernel_name,
				      comm);
	copy = ky_strbuf_failed(&text) ? NULL : ky_arena_strdup(arena, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	if (!copy)
		return ky_error_nomem(err);
	if (!*copy)
		return KYMO_OK;
	if (!by_recorder)
		source->kernel_filter = copy;
	else if (source->filter)
		source->filter = ky_arena_printf(arena, "(%s) && (%s)", source->filter, copy);
	else
		source->filter = copy;
	return by_recorder && !source->filter ? ky_error_nomem(err) : KYMO_OK;
}
