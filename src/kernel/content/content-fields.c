/* SPDX-License-Identifier: MIT */
/* The content of a system call as fields of its event: which, and what they are. content-values.c fills them in. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "ctf/resolve/lttng-layout.h"
#include "kernel/events/compat-calls.h"
#include "kernel/content/content-internal.h"

static const char *const status_names[] = {"read", "read_late", "truncated", "unreadable", "lost"};

/* ---- which ---------------------------------------------------------------------------- */

static bool replaces_address(const struct ky_content_item *item, const struct ky_event_field *field)
{
	return item->kind == KY_CONTENT_TEXT && strcmp(item->name, field->name) == 0 &&
	       (field->how == KY_HOW_ADDRESS ||
		(field->how == KY_HOW_COPY && field->size == 8 && field->bytes == 8));
}

static bool content_fields_is_recorded(const struct ky_content_item *item, bool buffers)
{
	return item->kind != KY_CONTENT_NONE && item->kind != KY_CONTENT_IDS &&
	       ((item->kind != KY_CONTENT_BUFFER && item->kind != KY_CONTENT_ENVIRON) || buffers);
}

/* NULL: it has no content. */
static const struct ky_content_call *content_fields_find_call(const char *system, const char *event,
							      bool *is_exit)
{
	if (strcmp(system, "syscalls") == 0)
		return ky_content_call_find(event, is_exit);
	return ky_compat_is_system(system) ? ky_content_call_find_compat(event, is_exit) : NULL;
}

int ky_content_plan(const struct ky_content *content, struct ky_arena *arena, const char *system,
		    const char *event, struct ky_event_field *fields, int n_fields,
		    uint16_t src_bytes, const struct ky_content_plan **out)
{
	struct ky_content_plan *plan;
	bool is_exit;
	const struct ky_content_call *call = content_fields_find_call(system, event, &is_exit);

	*out = NULL;
	if (!call || src_bytes < 16)
		return KYMO_OK;
	plan = ky_arena_new(arena, struct ky_content_plan);
	if (!plan)
		return KYMO_E_MEMORY;
	plan->call = call;
	plan->is_exit = is_exit;
	plan->buffers = ky_content_has_buffers(content);
	plan->ids = is_exit && call->items[KY_CONTENT_OUT_IDS].kind && ky_content_has_ids(content);
	plan->n_args = (uint16_t)((src_bytes - 16) / 8 < 6 ? (src_bytes - 16) / 8 : 6);
	for (unsigned int place = 0; place < KY_CONTENT_PLACES; place++) {
		const struct ky_content_item *item = &call->items[place];
		bool is_text = false;

		if (!ky_content_has_fields(content) ||
		    !content_fields_is_recorded(item, plan->buffers) ||
		    (!is_exit && place >= KY_CONTENT_IN_PLACES))
			continue;
		for (int i = 0; i < n_fields && !is_exit; i++) {
			if (!replaces_address(item, &fields[i]))
				continue;
			fields[i].how = KY_HOW_CONTENT;
			fields[i].elements = (uint16_t)place;
			is_text = true;
		}
		if (is_text)
			plan->in_texts |= (uint8_t)(1u << place);
		else if (is_exit || item->kind != KY_CONTENT_TEXT) /* else the kernel has it */
			plan->places |= (uint8_t)(1u << place);
	}
	if (plan->in_texts || plan->places || plan->ids)
		*out = plan;
	return KYMO_OK;
}

static bool is_peer(const struct ky_content_plan *plan)
{
	static const char *const calls[] = {"connect", "sendto", "sendmsg", "sendmmsg",
					    "getpeername"};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (strcmp(plan->call->name, calls[i]) == 0)
			return true;
	return false;
}

/* ---- classes -------------------------------------------------------------------------- */

struct classes {
	const struct ky_content_plan *plan;
	struct ky_trace_class *trace;
	struct ky_field_class *to; /* the event's payload, or a struct in it */
	unsigned int place;
	bool is_member; /* of that struct */
};

/* What is input, and yet is read at exit, says so in its name; members of a struct need not. */
static void field_name(const struct classes *c, const char *name, const char *suffix, char *out,
		       size_t size)
{
	bool late = c->plan->is_exit && c->place < KY_CONTENT_IN_PLACES && !c->is_member;

	snprintf(out, size, "_%s%s%s", late ? "late_" : "", name, suffix);
}

static bool add_int(struct classes *c, const char *name, uint32_t bits)
{
	char full[128];

	field_name(c, name, "", full, sizeof(full));
	return ky_struct_add_int(c->trace, c->to, full, bits, false, 10);
}

static bool content_fields_add_text(struct classes *c, const char *name)
{
	char full[128];

	field_name(c, name, "", full, sizeof(full));
	return ky_struct_add_string(c->trace, c->to, full);
}

static bool content_fields_add_bytes(struct classes *c, const char *name, const char *suffix,
				     uint8_t base)
{
	struct ky_field_class *length;
	char full[128], length_name[144];

	field_name(c, name, suffix, full, sizeof(full));
	snprintf(length_name, sizeof(length_name), "_%s_length", full);
	length = ky_struct_add_int(c->trace, c->to, length_name, 32, false, 10);
	return length && ky_struct_add_sequence(c->trace, c->to, full,
						ky_int_new(c->trace, 8, false, base), length);
}

static bool content_fields_add_texts(struct classes *c, const char *name)
{
	struct ky_field_class *length;
	char full[128], length_name[144];

	field_name(c, name, "_texts", full, sizeof(full));
	snprintf(length_name, sizeof(length_name), "_%s_length", full);
	length = ky_struct_add_int(c->trace, c->to, length_name, 32, false, 10);
	return length &&
	       ky_struct_add_sequence(c->trace, c->to, full, ky_string_new(c->trace), length);
}

static bool add_sockaddr(struct classes *c)
{
	static const struct {
		const char *name;
		int value;
	} families[] = {{"AF_UNSPEC", AF_UNSPEC},	{"AF_UNIX", AF_UNIX},
			{"AF_INET", AF_INET},		{"AF_INET6", AF_INET6},
			{"AF_NETLINK", AF_NETLINK},	{"AF_PACKET", AF_PACKET},
			{"AF_BLUETOOTH", AF_BLUETOOTH}, {"AF_VSOCK", AF_VSOCK}};
	struct ky_field_class *family;
	char full[128];

	field_name(c, "family", "", full, sizeof(full));
	family = ky_struct_add_enum(c->trace, c->to, full, 16, false);
	for (size_t i = 0; family && i < sizeof(families) / sizeof(families[0]); i++)
		if (ky_enum_add(c->trace, family, families[i].name, families[i].value,
				families[i].value) < 0)
			return false;
	return family && add_int(c, is_peer(c->plan) ? "dport" : "sport", 16) &&
	       content_fields_add_bytes(c, "v4addr", "", 10) &&
	       content_fields_add_bytes(c, "v6addr", "", 10) &&
	       content_fields_add_text(c, "sun_path") && content_fields_add_text(c, "address");
}

/* The messages: a sequence of structs. What has arrived is known of output only. */
static bool add_messages(struct classes *c, const char *name)
{
	struct ky_field_class *length, *message = ky_struct_new(c->trace);
	struct classes inner = {c->plan, c->trace, message, c->place, true};
	char full[128], length_name[144];

	field_name(c, name, "_messages", full, sizeof(full));
	snprintf(length_name, sizeof(length_name), "_%s_length", full);
	length = ky_struct_add_int(c->trace, c->to, length_name, 32, false, 10);
	return length && message && add_sockaddr(&inner) && add_int(&inner, "bytes", 64) &&
	       (c->place < KY_CONTENT_IN_PLACES || add_int(&inner, "len", 32)) &&
	       (!c->plan->buffers || content_fields_add_bytes(&inner, "data", "", 16)) &&
	       ky_struct_add_sequence(c->trace, c->to, full, message, length);
}

static bool add_item(struct classes *c, const struct ky_content_item *item)
{
	char name[64];

	switch ((enum ky_content_kind)item->kind) {
	case KY_CONTENT_NONE:
	case KY_CONTENT_IDS:
		return true;
	case KY_CONTENT_TEXT:
	case KY_CONTENT_OUT_TEXT:
		return content_fields_add_text(c, item->name);
	case KY_CONTENT_SOCKADDR:
	case KY_CONTENT_MSG_NAME:
		return add_sockaddr(c);
	case KY_CONTENT_TEXTS:
	case KY_CONTENT_ENVIRON:
		return content_fields_add_texts(c, item->name);
	case KY_CONTENT_MESSAGES:
		return add_messages(c, item->name);
	case KY_CONTENT_BUFFER:
	case KY_CONTENT_VALUE:
		return content_fields_add_bytes(c, item->name, "_data", 16);
	case KY_CONTENT_IOVEC:
	case KY_CONTENT_MSG_IOVEC:
		snprintf(name, sizeof(name), "%.40s_bytes", item->name);
		return add_int(c, name, 64) &&
		       (!c->plan->buffers || content_fields_add_bytes(c, item->name, "_data", 16));
	}
	return false;
}

int ky_content_add_classes(const struct ky_content_plan *plan, struct ky_trace_class *trace,
			   struct ky_field_class *payload)
{
	struct classes c = {plan, trace, payload, 0, false};
	struct ky_field_class *status;

	if (!ky_content_plan_has_fields(plan))
		return KYMO_OK;
	for (c.place = 0; c.place < KY_CONTENT_PLACES; c.place++)
		if ((plan->places & (1u << c.place)) && !add_item(&c, &plan->call->items[c.place]))
			return KYMO_E_MEMORY;
	status = ky_struct_add_enum(trace, payload, "_content_status", 8, false);
	if (!status)
		return KYMO_E_MEMORY;
	for (int i = KY_CONTENT_STATE_READ; i <= KY_CONTENT_STATE_LOST; i++)
		if (ky_enum_add(trace, status, status_names[i], i, i) < 0)
			return KYMO_E_MEMORY;
	return KYMO_OK;
}
