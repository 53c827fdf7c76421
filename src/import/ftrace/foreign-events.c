/* SPDX-License-Identifier: MIT */
/* The descriptions of a foreign kernel's events. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "import/ftrace/foreign-kernel-internal.h"
#include "kernel/events/events.h"

static int foreign_events_add_swap(struct ky_foreign_kernel *foreign,
				   const struct ky_format *format, struct kymo_error *err)
{
	struct ky_format *kept = ky_arena_memdup(&foreign->arena, format, sizeof(*format));
	struct ky_foreign_swap *swap = ky_arena_new(&foreign->arena, struct ky_foreign_swap);

	if (!foreign->swaps)
		foreign->swaps = calloc(UINT16_MAX + 1u, sizeof(struct ky_foreign_swap *));
	if (!kept || !swap || !foreign->swaps)
		return ky_error_nomem(err);
	swap->format = kept;
	foreign->swaps[format->id] = swap;
	return KYMO_OK;
}

/* Only where number and arguments lie as in the events of single calls. */
static void foreign_events_note_raw(struct ky_foreign_kernel *foreign,
				    const struct ky_format *format)
{
	bool fits = format->n_fields == 2 && format->fields[0].offset == 8 &&
		    format->fields[0].size == 8 && format->fields[1].offset == 16;

	if (fits && strcmp(format->name, "sys_enter") == 0)
		foreign->raw_entry_id = format->id;
	else if (fits && strcmp(format->name, "sys_exit") == 0)
		foreign->raw_exit_id = format->id;
}

int ky_foreign_kernel_add(struct ky_foreign_kernel *foreign, const char *system, const char *format,
			  size_t len, struct kymo_error *err)
{
	struct ky_catalogue *catalogue = &foreign->kernel.catalogue;
	char name[KY_EVENT_NAME_BYTES];
	struct ky_event_source source = {.format = format, .format_len = len, .selected = true};
	struct ky_format parsed;
	struct kymo_error why;
	int ret = ky_format_parse(&foreign->arena, format, len, &parsed, &why);

	if (ret < 0)
		return ret == KYMO_E_MEMORY ? ky_error_nomem(err) : KYMO_OK;
	if (strlen(system) + strlen(parsed.name) + 16 > sizeof(name))
		return KYMO_OK;
	ky_vec_foreach(&catalogue->events, other)
		if (other->id == parsed.id)
			return KYMO_OK;
	ky_event_name(system, parsed.name, name);
	source.id = parsed.id;
	source.system = ky_arena_strdup(&catalogue->arena, system);
	source.event = ky_arena_strdup(&catalogue->arena, parsed.name);
	source.name = ky_arena_strdup(&catalogue->arena, name);
	if (!source.system || !source.event || !source.name ||
	    ky_vec_push(&catalogue->events, source) < 0)
		return ky_error_nomem(err);
	if (foreign->is_x86_64 && strcmp(system, "raw_syscalls") == 0)
		foreign_events_note_raw(foreign, &parsed);
	return foreign->swap ? foreign_events_add_swap(foreign, &parsed, err) : KYMO_OK;
}

/* A description that @foreign owns. */
static int foreign_events_add_own(struct ky_foreign_kernel *foreign, const char *system,
				  const struct ky_strbuf *text, struct kymo_error *err)
{
	char *kept = ky_arena_strndup(&foreign->arena, ky_strbuf_text(text), text->len);
	bool swap = foreign->swap;
	int ret;

	if (!kept || ky_strbuf_failed(text))
		return ky_error_nomem(err);
	/* These records are made here, in this machine's byte order. */
	foreign->swap = false;
	ret = ky_foreign_kernel_add(foreign, system, kept, text->len, err);
	foreign->swap = swap;
	return ret;
}

int ky_foreign_add_call(struct ky_foreign_kernel *foreign, uint32_t number, bool is_exit,
			struct kymo_error *err)
{
	struct ky_catalogue *catalogue = &foreign->kernel.catalogue;
	struct ky_strbuf text = KY_STRBUF_INIT;
	size_t n = catalogue->events.len;
	int ret = KYMO_OK;

	foreign->calls[is_exit][number] = KY_FOREIGN_CALL_UNKNOWN;
	if (ky_foreign_call_format(number, is_exit, &text))
		ret = foreign_events_add_own(foreign, "syscalls", &text, err);
	if (!ret && catalogue->events.len > n) {
		if (foreign->has_stacks)
			ky_vec_last(&catalogue->events)->stacks = KY_STACK_KERNEL | KY_STACK_USER;
		ret = ky_kernel_trace_add_event(&foreign->kernel, ky_vec_last(&catalogue->events),
						err);
		if (!ret)
			foreign->calls[is_exit][number] = KY_FOREIGN_CALL_KNOWN;
	}
	ky_strbuf_fini(&text);
	return ret;
}

static int foreign_events_add_stack(struct ky_foreign_kernel *foreign, const char *name,
				    uint32_t id, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_addf(
		&text,
		"name: %s\nID: %u\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:int size;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:unsigned long caller[%u];\toffset:16;\tsize:%u;\tsigned:0;\n\n"
		"print fmt: \"\"\n",
		name, id, KY_FOREIGN_STACK_FRAMES, KY_FOREIGN_STACK_FRAMES * 8);
	ret = foreign_events_add_own(foreign, "ftrace", &text, err);
	if (!ret) {
		struct ky_event_source *source = ky_vec_last(&foreign->kernel.catalogue.events);

		source->selected = false;
		source->hidden = true;
	}
	ky_strbuf_fini(&text);
	return ret;
}

int ky_foreign_add_stacks(struct ky_foreign_kernel *foreign, struct kymo_error *err)
{
	int ret;

	ky_vec_foreach(&foreign->kernel.catalogue.events, source)
		source->stacks = KY_STACK_KERNEL | KY_STACK_USER;
	foreign->kernel.context |= KY_CONTEXT_OF_STACKS;
	ret = foreign_events_add_stack(foreign, "kernel_stack", KY_FOREIGN_KERNEL_STACK_ID, err);
	return ret ? ret
		   : foreign_events_add_stack(foreign, "user_stack", KY_FOREIGN_USER_STACK_ID, err);
}
