/* SPDX-License-Identifier: MIT */
/* What a conversion learns from an event: its role, call stacks, new ids. */
#include "kernel/convert/convert-plan.h"

#include <string.h>

/* ---- what is learnt from an event ----------------------------------------------------- */

struct role_fields {
	enum ky_event_role role;
	unsigned int context; /* needed only when one of these is recorded; 0: always */
	struct {
		const char *name;
		uint16_t size; /* 0: a text of any size */
	} fields[3];
};

static const struct role_fields role_fields[] = {
	{KY_EVENT_SWITCH,
	 KY_CONTEXT_PROCNAME | KY_CONTEXT_PRIO | KY_CONTEXT_NICE,
	 {{"next_pid", 4}, {"next_prio", 4}, {"next_comm", 0}}},
	{KY_EVENT_NEWTASK, 0, {{"pid", 4}, {"clone_flags", 8}, {"comm", 0}}},
	{KY_EVENT_RENAME, KY_CONTEXT_PROCNAME, {{"pid", 4}, {"newcomm", 0}, {0}}},
	{KY_EVENT_EXEC, 0, {{"pid", 4}, {"old_pid", 4}, {0}}},
	{KY_EVENT_EXIT, 0, {{"pid", 4}, {0}}},
	{KY_EVENT_KERNEL_STACK, 0, {{"size", 4}, {0}}},
	{KY_EVENT_USER_STACK, 0, {{0}}},
	{KY_EVENT_CGROUP, KY_CONTEXT_CGROUP, {{"pid", 4}, {"dst_root", 4}, {"dst_id", 8}}},
	{KY_EVENT_SETPRIO, KY_CONTEXT_PRIO | KY_CONTEXT_NICE, {{"pid", 4}, {"newprio", 4}, {0}}},
};

static const struct ky_format_field *convert_role_find_field(const struct ky_format *format,
							     const char *name)
{
	for (size_t i = 0; i < format->n_fields; i++)
		if (strcmp(format->fields[i].name, name) == 0)
			return &format->fields[i];
	return NULL;
}

static bool bind_role(struct ky_convert_plan *plan, const struct role_fields *role,
		      const struct ky_format *format)
{
	for (size_t i = 0; i < 3 && role->fields[i].name; i++) {
		const struct ky_format_field *field =
			convert_role_find_field(format, role->fields[i].name);
		uint16_t size = role->fields[i].size;

		if (!field || (size && (field->kind != KY_FORMAT_INT || field->size != size)))
			return false;
		if (!size && (field->kind != KY_FORMAT_TEXT || field->size != KY_COMM_BYTES))
			return false;
		plan->at[i] = field->offset;
	}
	return true;
}

/* The end of a call after which the thread may be another's. */
static bool changes_ids(const char *event)
{
	bool is_exit;
	const struct ky_content_call *call = ky_content_call_find(event, &is_exit);

	return call && is_exit && call->items[KY_CONTENT_OUT_IDS].kind;
}

/* There are as many frames as there are, whatever the format says. */
static void set_frames(struct ky_convert_plan *plan, const struct ky_format *format)
{
	const struct ky_format_field *frames = convert_role_find_field(format, "caller");

	if (!frames || (frames->kind == KY_FORMAT_ARRAY && frames->element_bytes != 8)) {
		plan->role = KY_EVENT_PLAIN;
		return;
	}
	plan->at[1] = frames->offset;
	plan->src_bytes = frames->offset;
}

static void convert_role_try_role(const struct ky_convert *convert, struct ky_convert_plan *plan,
				  enum ky_event_role role, const struct ky_format *format,
				  const struct role_fields *fields)
{
	if (fields->role != role || (fields->context && !(fields->context & convert->context)))
		return;
	if (bind_role(plan, fields, format))
		plan->role = (uint8_t)role;
}

/* A kernel's event of another format gives no names of threads; the recorder records it all the same. */
void ky_convert_set_role(const struct ky_convert *convert, struct ky_convert_plan *plan,
			 enum ky_event_role role, const struct ky_format *format)
{
	plan->role = KY_EVENT_PLAIN;
	if (role == KY_EVENT_SYSCALL)
		plan->role = KY_EVENT_SYSCALL;
	plan->learns_ids = role == KY_EVENT_SYSCALL && (convert->context & KY_CONTEXT_OF_IDS) &&
			   changes_ids(format->name);
	for (size_t i = 0; i < sizeof(role_fields) / sizeof(role_fields[0]); i++)
		convert_role_try_role(convert, plan, role, format, &role_fields[i]);
	if (plan->role == KY_EVENT_KERNEL_STACK || plan->role == KY_EVENT_USER_STACK)
		set_frames(plan, format);
}
