/* SPDX-License-Identifier: MIT */
/* The state model's arguments of system calls: kept as numbers at the entry, and made text only for calls that are shown. */
#include "analysis/state/model-internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"

enum args_kind { ARGS_SIGNED, ARGS_UNSIGNED, ARGS_HEX, ARGS_TEXT, ARGS_V4, ARGS_V6 };

struct ky_args_plan {
	size_t n;
	struct {
		const char *name; /* the trace's */
		enum args_kind kind;
		struct ky_handle handle;
	} args[KY_CALL_ARGS_MAX];
};

/* How to show a field. False: not at all. */
static bool model_args_kind(const struct ky_member *member, enum args_kind *kind)
{
	const struct ky_field_class *cls = member->cls;

	switch (cls->kind) {
	case KY_FIELD_SINT:
		*kind = cls->num.base == 16 ? ARGS_HEX : ARGS_SIGNED;
		return true;
	case KY_FIELD_UINT:
		*kind = cls->num.base == 16 ? ARGS_HEX : ARGS_UNSIGNED;
		return true;
	case KY_FIELD_STRING:
	case KY_FIELD_TEXT:
		*kind = ARGS_TEXT;
		return true;
	case KY_FIELD_ARRAY:
		*kind = strcmp(member->display, "v4addr") == 0 ? ARGS_V4 : ARGS_V6;
		return *kind == ARGS_V4 || strcmp(member->display, "v6addr") == 0;
	default:
		return false;
	}
}

/* The number of the call and lengths of other fields are no arguments. */
static bool model_args_is_one(const char *name)
{
	size_t len = strlen(name);

	return strcmp(name, "content_status") != 0 && strcmp(name, "__syscall_nr") != 0 &&
	       strcmp(name, "id") != 0 && strcmp(name, "nr") != 0 &&
	       strncmp(name, "common_", 7) != 0 &&
	       !(len > 7 && strcmp(name + len - 7, "_length") == 0);
}

const struct ky_args_plan *ky_args_plan_new(struct ky_model *model,
					    const struct ky_event_class *cls)
{
	struct ky_args_plan *plan = ky_arena_new(&model->arena, struct ky_args_plan);
	struct ky_handle root;

	if (!plan || !ky_handle_root(&root, cls, KY_SCOPE_PAYLOAD) ||
	    root.cls->kind != KY_FIELD_STRUCT)
		return plan;
	for (size_t i = 0; i < root.cls->st.n_members && plan->n < KY_CALL_ARGS_MAX; i++) {
		const struct ky_member *member = &root.cls->st.members[i];

		if (!model_args_is_one(member->display) ||
		    !model_args_kind(member, &plan->args[plan->n].kind) ||
		    ky_handle_child(&plan->args[plan->n].handle, cls, &root, i) < 0)
			continue;
		plan->args[plan->n++].name = member->display;
	}
	return plan;
}

/* The first text counts. Was it? */
static bool model_args_keep_text(struct ky_call_args *args, const char *text, size_t len)
{
	if (args->text_bytes || !len)
		return false;
	args->text_bytes = len < KY_CALL_TEXT_MAX ? (uint32_t)len : KY_CALL_TEXT_MAX;
	memcpy(args->text, text, args->text_bytes);
	return true;
}

static bool model_args_keep_address(struct ky_call_args *args, const struct ky_event *event,
				    size_t i)
{
	static const struct ky_handle none;
	const struct ky_handle *handle = &args->plan->args[i].handle;
	bool is_v4 = args->plan->args[i].kind == ARGS_V4;
	char address[KY_CALL_TEXT_MAX];
	int n = ky_address_format(event, is_v4 ? handle : &none, is_v4 ? NULL : handle, -1, address,
				  sizeof(address));

	return n > 0 && model_args_keep_text(args, address, (size_t)n);
}

static void model_args_keep_one(struct ky_call_args *args, const struct ky_event *event, size_t i)
{
	const struct ky_handle *handle = &args->plan->args[i].handle;
	const char *text;
	size_t len;

	switch (args->plan->args[i].kind) {
	case ARGS_TEXT:
		text = ky_get_text(event, handle, &len);
		args->values[i] = model_args_keep_text(args, text, len);
		break;
	case ARGS_V4:
	case ARGS_V6:
		args->values[i] = model_args_keep_address(args, event, i);
		break;
	default:
		args->values[i] = ky_get_u64(event, handle, 0);
	}
}

int ky_args_keep(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info, struct ky_thread *thread)
{
	if (!thread->args)
		thread->args = ky_arena_new(&feed->model->arena, struct ky_call_args);
	if (!thread->args)
		return KYMO_E_MEMORY;
	thread->args->plan = info->args;
	thread->args->text_bytes = 0;
	for (size_t i = 0; info->args && i < info->args->n; i++)
		model_args_keep_one(thread->args, event, i);
	return 0;
}

/* What is no character of a line is shown as its bytes. */
static void model_args_add_text(struct ky_strbuf *out, const struct ky_call_args *args)
{
	const uint8_t *text = (const uint8_t *)args->text;
	bool is_cut = args->text_bytes == KY_CALL_TEXT_MAX;

	for (size_t at = 0, n; at < args->text_bytes; at += n ? n : 1) {
		uint32_t code = 0;

		n = ky_utf8_length(text + at, args->text_bytes - at);
		if (n)
			code = ky_utf8_code(text + at, n);
		if (code >= 0x20 && (code < 0x7f || code >= 0xa0))
			ky_strbuf_add(out, args->text + at, n);
		else if (n || !is_cut || at + 4 <= args->text_bytes)
			ky_strbuf_addf(out, "\\x%02x",
				       text[at]); /* but not a character that is cut */
	}
	ky_strbuf_adds(out, is_cut ? "..." : "");
}

static void model_args_add_number(struct ky_strbuf *out, const struct ky_field_class *cls,
				  enum args_kind kind, uint64_t value)
{
	const char *label = cls->num.is_enum ? ky_enum_label(cls, value) : NULL;

	if (label)
		ky_strbuf_adds(out, label);
	else if (kind == ARGS_HEX)
		ky_strbuf_addf(out, value ? "0x%" PRIx64 : "%" PRIu64, value);
	else if (kind == ARGS_SIGNED)
		ky_strbuf_addf(out, "%" PRId64, (int64_t)value);
	else
		ky_strbuf_addf(out, "%" PRIu64, value);
}

static void model_args_add_one(struct ky_strbuf *out, const struct ky_call_args *args, size_t i)
{
	enum args_kind kind = args->plan->args[i].kind;

	ky_strbuf_addf(out, "%s=", args->plan->args[i].name);
	if (kind < ARGS_TEXT) {
		model_args_add_number(out, args->plan->args[i].handle.cls, kind, args->values[i]);
		return;
	}
	ky_strbuf_adds(out, kind == ARGS_TEXT ? "\"" : "");
	model_args_add_text(out, args);
	ky_strbuf_adds(out, kind == ARGS_TEXT ? "\"" : "");
}

void ky_call_args_text(struct ky_strbuf *out, const struct ky_call_args *args)
{
	const char *between = "";

	for (size_t i = 0; args->plan && i < args->plan->n; i++) {
		if (args->plan->args[i].kind >= ARGS_TEXT && !args->values[i])
			continue;
		ky_strbuf_adds(out, between);
		between = ", ";
		model_args_add_one(out, args, i);
	}
}
