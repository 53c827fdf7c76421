/* SPDX-License-Identifier: MIT */
/* The content of a system call as fields of its event. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ctf/lttng-layout.h"
#include "kernel/compat-calls.h"
#include "kernel/content.h"

/* What became of an event's content: the worst of its items. */
enum status {
	STATUS_READ,
	STATUS_LATE,
	STATUS_TRUNCATED,
	STATUS_UNREADABLE,
	STATUS_LOST,
};

static const char *const status_names[] = {"read", "read_late", "truncated", "unreadable", "lost"};

/* ---- which ---------------------------------------------------------------------------- */

static bool replaces_address(const struct ky_content_item *item, const struct ky_event_field *field)
{
	return item->kind == KY_CONTENT_TEXT && strcmp(item->name, field->name) == 0 &&
	       (field->how == KY_HOW_ADDRESS ||
		(field->how == KY_HOW_COPY && field->size == 8 && field->bytes == 8));
}

static bool is_recorded(const struct ky_content_item *item, bool buffers)
{
	return item->kind != KY_CONTENT_NONE && item->kind != KY_CONTENT_IDS &&
	       ((item->kind != KY_CONTENT_BUFFER && item->kind != KY_CONTENT_ENVIRON) || buffers);
}

/* *call: NULL: it has no content. 0 or KYMO_E_MEMORY. */
static int find_call(struct ky_arena *arena, const char *system, const char *event, bool *is_exit,
		     const struct ky_content_call **call)
{
	struct ky_content_call compat;

	*call = NULL;
	if (strcmp(system, "syscalls") == 0) {
		*call = ky_content_call_find(event, is_exit);
	} else if (ky_compat_is_system(system) &&
		   ky_content_call_find_compat(event, is_exit, &compat)) {
		*call = ky_arena_memdup(arena, &compat, sizeof(compat));
		return *call ? KYMO_OK : KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

int ky_content_plan(const struct ky_content *content, struct ky_arena *arena, const char *system,
		    const char *event, struct ky_event_field *fields, int n_fields,
		    uint16_t src_bytes, const struct ky_content_plan **out)
{
	const struct ky_content_call *call;
	struct ky_content_plan *plan;
	bool is_exit;

	*out = NULL;
	if (find_call(arena, system, event, &is_exit, &call) < 0)
		return KYMO_E_MEMORY;
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

		if (!ky_content_has_fields(content) || !is_recorded(item, plan->buffers) ||
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

/* What is input, and yet is read at exit, says so in its name. */
static void field_name(const struct ky_content_plan *plan, unsigned int place, const char *name,
		       const char *suffix, char *out, size_t size)
{
	bool late = plan->is_exit && place < KY_CONTENT_IN_PLACES;

	snprintf(out, size, "_%s%s%s", late ? "late_" : "", name, suffix);
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
	struct ky_field_class *payload;
	unsigned int place;
};

static bool add_int(struct classes *c, const char *name, uint32_t bits)
{
	char full[128];

	field_name(c->plan, c->place, name, "", full, sizeof(full));
	return ky_struct_add_int(c->trace, c->payload, full, bits, false, 10);
}

static bool add_text(struct classes *c, const char *name)
{
	char full[128];

	field_name(c->plan, c->place, name, "", full, sizeof(full));
	return ky_struct_add_string(c->trace, c->payload, full);
}

static bool add_bytes(struct classes *c, const char *name, const char *suffix, uint8_t base)
{
	struct ky_field_class *length;
	char full[128], length_name[144];

	field_name(c->plan, c->place, name, suffix, full, sizeof(full));
	snprintf(length_name, sizeof(length_name), "_%s_length", full);
	length = ky_struct_add_int(c->trace, c->payload, length_name, 32, false, 10);
	return length && ky_struct_add_sequence(c->trace, c->payload, full,
						ky_int_new(c->trace, 8, false, base), length);
}

static bool add_texts(struct classes *c, const char *name)
{
	struct ky_field_class *length;
	char full[128], length_name[144];

	field_name(c->plan, c->place, name, "_texts", full, sizeof(full));
	snprintf(length_name, sizeof(length_name), "_%s_length", full);
	length = ky_struct_add_int(c->trace, c->payload, length_name, 32, false, 10);
	return length &&
	       ky_struct_add_sequence(c->trace, c->payload, full, ky_string_new(c->trace), length);
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

	field_name(c->plan, c->place, "family", "", full, sizeof(full));
	family = ky_struct_add_enum(c->trace, c->payload, full, 16, false);
	for (size_t i = 0; family && i < sizeof(families) / sizeof(families[0]); i++)
		if (ky_enum_add(c->trace, family, families[i].name, families[i].value,
				families[i].value) < 0)
			return false;
	return family && add_int(c, is_peer(c->plan) ? "dport" : "sport", 16) &&
	       add_bytes(c, "v4addr", "", 10) && add_bytes(c, "v6addr", "", 10) &&
	       add_text(c, "sun_path");
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
		return add_text(c, item->name);
	case KY_CONTENT_SOCKADDR:
	case KY_CONTENT_MSG_NAME:
		return add_sockaddr(c);
	case KY_CONTENT_TEXTS:
	case KY_CONTENT_ENVIRON:
		return add_texts(c, item->name);
	case KY_CONTENT_BUFFER:
	case KY_CONTENT_VALUE:
		return add_bytes(c, item->name, "_data", 16);
	case KY_CONTENT_IOVEC:
	case KY_CONTENT_MSG_IOVEC:
		snprintf(name, sizeof(name), "%.40s_bytes", item->name);
		return add_int(c, name, 64) &&
		       (!c->plan->buffers || add_bytes(c, item->name, "_data", 16));
	}
	return false;
}

int ky_content_add_classes(const struct ky_content_plan *plan, struct ky_trace_class *trace,
			   struct ky_field_class *payload)
{
	struct classes c = {plan, trace, payload, 0};
	struct ky_field_class *status;

	if (!ky_content_plan_has_fields(plan))
		return KYMO_OK;
	for (c.place = 0; c.place < KY_CONTENT_PLACES; c.place++)
		if ((plan->places & (1u << c.place)) && !add_item(&c, &plan->call->items[c.place]))
			return KYMO_E_MEMORY;
	status = ky_struct_add_enum(trace, payload, "_content_status", 8, false);
	if (!status)
		return KYMO_E_MEMORY;
	for (int i = STATUS_READ; i <= STATUS_LOST; i++)
		if (ky_enum_add(trace, status, status_names[i], i, i) < 0)
			return KYMO_E_MEMORY;
	return KYMO_OK;
}

/* ---- values --------------------------------------------------------------------------- */

static const uint8_t *find_part(const struct ky_content_record *record, unsigned int place,
				struct ky_content_part *part)
{
	const uint8_t *at = (const uint8_t *)(record + 1), *end;

	if (!record)
		return NULL;
	end = (const uint8_t *)record + record->bytes;
	while ((size_t)(end - at) >= sizeof(*part)) {
		memcpy(part, at, sizeof(*part));
		at += sizeof(*part);
		if (part->len > (size_t)(end - at))
			return NULL;
		if (part->place == place)
			return at;
		at += (part->len + 7) & ~7u;
	}
	return NULL;
}

const char *ky_content_text(const struct ky_content_record *record, unsigned int place,
			    uint32_t *len)
{
	struct ky_content_part part;
	const uint8_t *data = find_part(record, place, &part);

	if (!data || (part.status != KY_CONTENT_OK && part.status != KY_CONTENT_LATE))
		return NULL;
	*len = (uint32_t)strnlen((const char *)data, part.len);
	return (const char *)data;
}

const struct ky_thread_ids *ky_content_ids(const struct ky_content_record *record)
{
	struct ky_content_part part;
	const uint8_t *data = find_part(record, KY_CONTENT_OUT_IDS, &part);

	/* Parts are aligned to 8 bytes. */
	return data && part.status == KY_CONTENT_OK && part.len >= sizeof(struct ky_thread_ids)
		       ? (const void *)data
		       : NULL;
}

/* Counts what would be written where there is no place for it. */
struct writer {
	uint8_t *at;
	uint32_t bytes;
};

static void put(struct writer *w, const void *data, uint32_t len)
{
	if (w->at && len) {
		memcpy(w->at, data, len);
		w->at += len;
	}
	w->bytes += len;
}

static void put_sequence(struct writer *w, const void *data, uint32_t len)
{
	put(w, &len, 4);
	put(w, data, len);
}

static void put_text(struct writer *w, const uint8_t *data, uint32_t len)
{
	put(w, data, data ? (uint32_t)strnlen((const char *)data, len) : 0);
	put(w, "", 1);
}

/* An abstract name begins with NUL: that is shown as '@'. It need not be terminated. */
static void put_path(struct writer *w, const uint8_t *data, uint32_t len)
{
	const uint32_t from = offsetof(struct sockaddr_un, sun_path);

	if (len <= from) {
		put(w, "", 1);
		return;
	}
	data += from;
	len -= from;
	if (!data[0] && len > 1) {
		put(w, "@", 1);
		data++;
		len--;
	}
	put_text(w, data, len);
}

static void put_sockaddr(struct writer *w, const uint8_t *data, uint32_t len)
{
	uint16_t family = 0, port = 0;
	const uint8_t *v4 = NULL, *v6 = NULL;

	if (len >= 2)
		memcpy(&family, data, 2);
	if ((family == AF_INET && len >= 8) || (family == AF_INET6 && len >= 24)) {
		memcpy(&port, data + 2, 2);
		port = ntohs(port);
		v4 = family == AF_INET ? data + offsetof(struct sockaddr_in, sin_addr) : NULL;
		v6 = family == AF_INET6 ? data + offsetof(struct sockaddr_in6, sin6_addr) : NULL;
	}
	put(w, &family, 2);
	put(w, &port, 2);
	put_sequence(w, v4, v4 ? 4 : 0);
	put_sequence(w, v6, v6 ? 16 : 0);
	put_path(w, data, family == AF_UNIX ? len : 0);
}

/* Those that could not be read are their addresses. */
static void put_texts(struct writer *w, const uint8_t *data, uint32_t len)
{
	struct writer counted = {NULL, 0}, *to = &counted;
	uint32_t n = 0;

	/* Twice: to know how many. */
	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			put(w, &n, 4);
		for (uint32_t at = 0; data && len - at >= 8;) {
			char address[24];
			int64_t bytes;

			memcpy(&bytes, data + at, 8);
			at += 8;
			if (bytes < 0) {
				snprintf(address, sizeof(address), "0x%" PRIx64, (uint64_t)~bytes);
				put(to, address, (uint32_t)strlen(address) + 1);
			} else {
				if (bytes > len - at)
					break;
				put_text(to, data + at, (uint32_t)bytes);
				at += ((uint32_t)bytes + 7) & ~7u;
				at = at > len ? len : at;
			}
			n += !pass;
		}
		to = w;
	}
}

static void put_item(struct writer *w, const struct ky_content_plan *plan,
		     const struct ky_content_item *item, const struct ky_content_part *part,
		     const uint8_t *data)
{
	uint32_t len = data ? part->len : 0;
	uint64_t total = data && (part->status == KY_CONTENT_OK || part->status == KY_CONTENT_LATE)
				 ? part->value
				 : 0;

	switch ((enum ky_content_kind)item->kind) {
	case KY_CONTENT_NONE:
	case KY_CONTENT_IDS:
		break;
	case KY_CONTENT_TEXT:
	case KY_CONTENT_OUT_TEXT:
		put_text(w, data, len);
		break;
	case KY_CONTENT_SOCKADDR:
	case KY_CONTENT_MSG_NAME:
		put_sockaddr(w, data, len);
		break;
	case KY_CONTENT_TEXTS:
	case KY_CONTENT_ENVIRON:
		put_texts(w, data, len);
		break;
	case KY_CONTENT_BUFFER:
	case KY_CONTENT_VALUE:
		put_sequence(w, data, len);
		break;
	case KY_CONTENT_IOVEC:
	case KY_CONTENT_MSG_IOVEC:
		put(w, &total, 8);
		if (plan->buffers)
			put_sequence(w, data, len);
		break;
	}
}

static bool is_cut(const struct ky_content_plan *plan, const struct ky_content_item *item,
		   const struct ky_content_record *record, const struct ky_content_part *part)
{
	uint64_t wanted = part->value;

	switch ((enum ky_content_kind)item->kind) {
	case KY_CONTENT_TEXT:
		return part->len >= KY_CONTENT_TEXT_BYTES;
	case KY_CONTENT_TEXTS:
	case KY_CONTENT_ENVIRON:
		return wanted != 0;
	case KY_CONTENT_IOVEC:
	case KY_CONTENT_MSG_IOVEC:
		if (plan->is_exit && (uint64_t)record->ret < wanted)
			wanted = (uint64_t)record->ret;
		return plan->buffers && part->len < wanted;
	default:
		return part->len < wanted;
	}
}

static uint8_t status_of(const struct ky_content_plan *plan, const struct ky_content_record *record)
{
	uint8_t status = STATUS_READ;

	if (!record)
		return plan->is_exit && !(plan->places >> KY_CONTENT_IN_PLACES) ? STATUS_READ
										: STATUS_LOST;
	for (unsigned int place = 0; place < KY_CONTENT_PLACES; place++) {
		struct ky_content_part part;
		uint8_t worse = STATUS_READ;

		if (place == KY_CONTENT_OUT_IDS || !find_part(record, place, &part) ||
		    part.status == KY_CONTENT_ABSENT)
			continue;
		if (part.status == KY_CONTENT_UNREADABLE)
			worse = STATUS_UNREADABLE;
		else if (is_cut(plan, &plan->call->items[place], record, &part))
			worse = STATUS_TRUNCATED;
		else if (part.status == KY_CONTENT_LATE)
			worse = STATUS_LATE;
		status = worse > status ? worse : status;
	}
	return status;
}

static void put_tail(struct writer *w, const struct ky_content_plan *plan,
		     const struct ky_content_record *record)
{
	uint8_t status = status_of(plan, record);

	for (unsigned int place = 0; place < KY_CONTENT_PLACES; place++) {
		struct ky_content_part part = {0};

		if (plan->places & (1u << place)) {
			const uint8_t *data = find_part(record, place, &part);

			put_item(w, plan, &plan->call->items[place], &part, data);
		}
	}
	put(w, &status, 1);
}

uint32_t ky_content_tail_bytes(const struct ky_content_plan *plan,
			       const struct ky_content_record *record)
{
	struct writer w = {NULL, 0};

	put_tail(&w, plan, record);
	return w.bytes;
}

uint8_t *ky_content_put_tail(const struct ky_content_plan *plan,
			     const struct ky_content_record *record, uint8_t *out)
{
	struct writer w = {out, 0};

	put_tail(&w, plan, record);
	return w.at;
}
