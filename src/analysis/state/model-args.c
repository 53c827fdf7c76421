/* SPDX-License-Identifier: MIT */
/*
 * The state model's arguments of system calls. The payload of a call's entry is kept as bytes. A report that keeps the
 * call decodes them to numbers and makes them text for calls that it shows.
 */
#include "analysis/state/model-internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/utf8.h"
#include "ctf/decode/plan.h"

/* Copies of payloads keep their places in units of so many bits, which alignment needs. */
#define KEPT_ALIGN_BITS 64u
#define KEPT_BYTES_MAX	256

enum args_kind { ARGS_SIGNED, ARGS_UNSIGNED, ARGS_HEX, ARGS_TEXT, ARGS_V4, ARGS_V6 };

struct ky_args_plan {
	const struct ky_event_class *cls;
	bool stands_alone; /* the payload alone tells where its fields are */
	size_t n;
	struct {
		const char *name; /* the trace's */
		enum args_kind kind;
		struct ky_handle handle;
	} args[KY_CALL_ARGS_MAX];
};

/* The arguments of a thread's call. */
struct ky_kept_args {
	const struct ky_args_plan *plan; /* NULL: the entry has none */
	uint32_t payload_bits, end_bits; /* of the payload, in @bytes */
	bool is_decoded;
	union {
		uint8_t bytes[KEPT_BYTES_MAX];
		struct ky_call_args decoded; /* long payloads, and those that do not stand alone */
	};
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

	if (!plan)
		return NULL;
	plan->cls = cls;
	if (!ky_handle_root(&root, cls, KY_SCOPE_PAYLOAD) || root.cls->kind != KY_FIELD_STRUCT)
		return plan;
	plan->stands_alone = root.cls->align_bits <= KEPT_ALIGN_BITS &&
			     !ky_scope_plan_of(cls, KY_SCOPE_PAYLOAD)->outer_scopes;
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

static void model_args_decode(struct ky_call_args *args, const struct ky_args_plan *plan,
			      const struct ky_event *event)
{
	args->plan = plan;
	args->text_bytes = 0;
	for (size_t i = 0; i < plan->n; i++)
		model_args_keep_one(args, event, i);
}

/* As memcpy(), for the few words of a payload: compilers make string instructions of it, which are slow to begin. */
static inline void model_args_copy(uint8_t *to, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i + 16 < n; i += 16)
		memcpy(to + i, from + i, 16);
	if (n >= 16)
		memcpy(to + n - 16, from + n - 16, 16);
	else
		for (size_t i = 0; i < n; i++)
			to[i] = from[i];
}

/* Keep the bytes of the payload. False: they are too many, or are not enough. */
static bool model_args_keep_bytes(struct ky_kept_args *kept, const struct ky_event *event)
{
	uint64_t begin_bits = event->begin_bits + event->payload_bits;
	uint64_t base_bits = begin_bits / KEPT_ALIGN_BITS * KEPT_ALIGN_BITS;
	uint64_t n_bytes = (event->end_bits - base_bits + 7) / 8;

	if (!kept->plan->stands_alone || n_bytes > sizeof(kept->bytes))
		return false;
	model_args_copy(kept->bytes, event->packet->data + base_bits / 8, n_bytes);
	kept->payload_bits = (uint32_t)(begin_bits - base_bits);
	kept->end_bits = (uint32_t)(event->end_bits - base_bits);
	return true;
}

int ky_args_keep(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info, struct ky_thread *thread)
{
	struct ky_kept_args *kept = thread->args;

	if (!kept)
		kept = thread->args = ky_arena_new(&feed->model->arena, struct ky_kept_args);
	if (!kept)
		return KYMO_E_MEMORY;
	kept->plan = info->args;
	if (!kept->plan || !kept->plan->n)
		return 0;
	kept->is_decoded = !model_args_keep_bytes(kept, event);
	if (kept->is_decoded)
		model_args_decode(&kept->decoded, kept->plan, event);
	return 0;
}

void ky_call_args_get(const struct ky_thread *thread, struct ky_call_args *args)
{
	const struct ky_kept_args *kept = thread->args;
	struct ky_packet packet = {0};
	struct ky_event event = {.packet = &packet};

	args->plan = kept ? kept->plan : NULL;
	args->text_bytes = 0;
	if (!args->plan || !args->plan->n)
		return;
	if (kept->is_decoded) {
		*args = kept->decoded;
		return;
	}
	packet.data = kept->bytes;
	event.cls = kept->plan->cls;
	event.payload_bits = kept->payload_bits;
	event.end_bits = kept->end_bits;
	model_args_decode(args, kept->plan, &event);
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
