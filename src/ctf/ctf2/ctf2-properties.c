/* SPDX-License-Identifier: MIT */
/* Properties that several field classes of CTF 2 have. */
#include <string.h>

#include "base/error.h"
#include "ctf/ctf2/ctf2-read.h"

void *ky_ctf2_alloc(struct ky_ctf2_reader *r, size_t count, size_t size)
{
	void *data = ky_arena_array(&r->trace->arena, count ? count : 1, size);

	if (!data)
		ky_error_nomem(r->err);
	return data;
}

/* ---- properties ---------------------------------------------------------------------------- */

int ky_ctf2_property(struct ky_ctf2_reader *r, const struct ky_json *object, const char *key,
		     bool required, enum ky_json_kind kind, const struct ky_json **value)
{
	*value = ky_json_get(object, key);
	if (!*value)
		return required ? ky_json_error(r->err, object, "property '%s' is missing", key)
				: KYMO_OK;
	if ((*value)->kind != kind)
		return ky_json_error(r->err, *value, "'%s' must be %s, not %s", key,
				     ky_json_kind_name(kind), ky_json_kind_name((*value)->kind));
	return KYMO_OK;
}

int ky_ctf2_string(struct ky_ctf2_reader *r, const struct ky_json *object, const char *key,
		   bool required, const char **value)
{
	const struct ky_json *node;
	int ret = ky_ctf2_property(r, object, key, required, KY_JSON_STRING, &node);

	if (ret < 0 || !node)
		return ret;
	*value = ky_arena_strdup(&r->trace->arena, node->string.data);
	return *value ? KYMO_OK : ky_error_nomem(r->err);
}

int ky_ctf2_uint(struct ky_ctf2_reader *r, const struct ky_json *object, const char *key,
		 bool required, uint64_t *value)
{
	const struct ky_json *node;
	int ret = ky_ctf2_property(r, object, key, required, KY_JSON_INTEGER, &node);

	if (ret < 0 || !node)
		return ret;
	if (node->integer.negative)
		return ky_json_error(r->err, node, "'%s' must not be negative", key);
	*value = node->integer.u;
	return KYMO_OK;
}

int ky_ctf2_align(struct ky_ctf2_reader *r, const struct ky_json *node, const char *key,
		  uint32_t *align)
{
	uint64_t value = 1;
	int ret = ky_ctf2_uint(r, node, key, false, &value);

	if (ret < 0)
		return ret;
	if (!value || (value & (value - 1)))
		return ky_json_error(r->err, ky_json_get(node, key), "'%s' must be a power of two",
				     key);
	if (value > UINT32_C(1) << 30)
		return ky_json_error(r->err, ky_json_get(node, key),
				     "an alignment of more than 2^30 bits is not supported");
	*align = (uint32_t)value;
	return KYMO_OK;
}

int ky_ctf2_mappings(struct ky_ctf2_reader *r, const struct ky_json *node, const char *key,
		     bool is_signed, unsigned int bits, struct ky_field_class *cls)
{
	const struct ky_json *map;
	struct ky_mapping *out;
	size_t n = 0;
	int ret = ky_ctf2_property(r, node, key, false, KY_JSON_OBJECT, &map);

	if (ret < 0 || !map || !map->list.len)
		return ret;
	out = ky_ctf2_alloc(r, map->list.len, sizeof(*out));
	if (!out)
		return KYMO_E_MEMORY;
	for (const struct ky_json *item = map->list.first; item; item = item->next, n++) {
		out[n].label = ky_arena_strdup(&r->trace->arena, item->key);
		if (!out[n].label)
			return ky_error_nomem(r->err);
		ret = ky_ctf2_ranges(r, item, is_signed, bits, &out[n].ranges, &out[n].n_ranges);
		if (ret < 0)
			return ret;
	}
	cls->num.mappings = out;
	cls->num.n_mappings = n;
	return KYMO_OK;
}

struct role_name {
	const char *name;
	enum ky_role role;
	enum ky_scope scope;
};

static const struct role_name role_names[] = {
	{"packet-magic-number", KY_ROLE_MAGIC, KY_SCOPE_PACKET_HEADER},
	{"metadata-stream-uuid", KY_ROLE_TRACE_UUID, KY_SCOPE_PACKET_HEADER},
	{"data-stream-class-id", KY_ROLE_STREAM_CLASS_ID, KY_SCOPE_PACKET_HEADER},
	{"data-stream-id", KY_ROLE_STREAM_ID, KY_SCOPE_PACKET_HEADER},
	{"packet-total-length", KY_ROLE_PACKET_SIZE, KY_SCOPE_PACKET_CONTEXT},
	{"packet-content-length", KY_ROLE_CONTENT_SIZE, KY_SCOPE_PACKET_CONTEXT},
	{"default-clock-timestamp", KY_ROLE_CLOCK_BEGIN, KY_SCOPE_PACKET_CONTEXT},
	{"packet-end-default-clock-timestamp", KY_ROLE_CLOCK_END, KY_SCOPE_PACKET_CONTEXT},
	{"discarded-event-record-counter-snapshot", KY_ROLE_DISCARDED, KY_SCOPE_PACKET_CONTEXT},
	{"packet-sequence-number", KY_ROLE_SEQUENCE, KY_SCOPE_PACKET_CONTEXT},
	{"default-clock-timestamp", KY_ROLE_CLOCK_BEGIN, KY_SCOPE_EVENT_HEADER},
	{"event-record-class-id", KY_ROLE_EVENT_ID, KY_SCOPE_EVENT_HEADER},
};

static int ctf2_properties_set_role(struct ky_ctf2_reader *r, const struct ky_json *node,
				    struct ky_field_class *cls, const struct role_name *role)
{
	if (role->role == KY_ROLE_CLOCK_BEGIN || role->role == KY_ROLE_CLOCK_END) {
		if (!r->clock)
			return ky_json_error(r->err, node,
					     "role '%s' needs a default clock class of the data "
					     "stream class",
					     role->name);
		cls->num.clock = r->clock;
	}
	if (role->role == KY_ROLE_TRACE_UUID) {
		if (cls->kind != KY_FIELD_BLOB || cls->text.length_bytes != 16)
			return ky_json_error(r->err, node, "role '%s' needs a BLOB of 16 bytes",
					     role->name);
		if (!r->trace->has_uuid)
			return ky_json_error(r->err, node,
					     "role '%s' needs a 'uuid' in the preamble",
					     role->name);
	} else if (cls->kind != KY_FIELD_UINT && cls->kind != KY_FIELD_VARUINT) {
		return ky_json_error(r->err, node, "role '%s' needs an unsigned integer",
				     role->name);
	}
	if (role->role == KY_ROLE_MAGIC &&
	    (cls->kind != KY_FIELD_UINT || cls->num.length_bits != 32))
		return ky_json_error(r->err, node, "role '%s' needs a 32-bit unsigned integer",
				     role->name);
	/* The root is the first class of its scope, so its first member is the second. */
	if (role->role == KY_ROLE_MAGIC && r->order != 2)
		return ky_json_error(r->err, node, "the field of role '%s' must come first",
				     role->name);
	if (cls->kind == KY_FIELD_UINT && cls->num.length_bits > 64) {
		ky_json_error(r->err, node, "role '%s' of an integer of more than 64 bits",
			      role->name);
		r->err->code = KYMO_E_UNSUPPORTED;
		return KYMO_E_UNSUPPORTED;
	}
	if (cls->role != KY_ROLE_NONE && cls->role != role->role)
		cls->more_roles |= 1u << role->role;
	else
		cls->role = role->role;
	return KYMO_OK;
}

/* Roles mean something in their own scopes only; elsewhere they are ignored. */
int ky_ctf2_roles(struct ky_ctf2_reader *r, const struct ky_json *node, struct ky_field_class *cls)
{
	const struct ky_json *list;
	int ret = ky_ctf2_property(r, node, "roles", false, KY_JSON_ARRAY, &list);

	if (ret < 0 || !list || r->checking)
		return ret;
	for (const struct ky_json *item = list->list.first; item; item = item->next) {
		if (item->kind != KY_JSON_STRING)
			return ky_json_error(r->err, item, "a role is a string");
		for (size_t i = 0; i < sizeof(role_names) / sizeof(role_names[0]); i++) {
			if (role_names[i].scope != r->scope ||
			    strcmp(role_names[i].name, item->string.data) != 0)
				continue;
			ret = ctf2_properties_set_role(r, item, cls, &role_names[i]);
			if (ret < 0)
				return ret;
		}
	}
	return KYMO_OK;
}

int ky_ctf2_encoding(struct ky_ctf2_reader *r, const struct ky_json *node,
		     struct ky_field_class *cls)
{
	static const struct {
		const char *name;
		enum ky_encoding encoding;
	} names[] = {
		{"utf-8", KY_ENCODING_UTF8},	   {"utf-16be", KY_ENCODING_UTF16BE},
		{"utf-16le", KY_ENCODING_UTF16LE}, {"utf-32be", KY_ENCODING_UTF32BE},
		{"utf-32le", KY_ENCODING_UTF32LE},
	};
	const char *name = "utf-8";
	int ret = ky_ctf2_string(r, node, "encoding", false, &name);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(names[i].name, name) == 0) {
			cls->text.encoding = names[i].encoding;
			return KYMO_OK;
		}
	}
	return ky_json_error(r->err, ky_json_get(node, "encoding"), "unknown encoding '%s'", name);
}

/* What an extension changes is not known; those that the preamble declares were refused there. */
int ky_ctf2_no_extensions(struct ky_ctf2_reader *r, const struct ky_json *node)
{
	const struct ky_json *list;
	int ret = ky_ctf2_property(r, node, "extensions", false, KY_JSON_OBJECT, &list);

	for (const struct ky_json *space = list ? list->list.first : NULL; space && ret == KYMO_OK;
	     space = space->next) {
		if (space->kind != KY_JSON_OBJECT)
			return ky_json_error(r->err, space,
					     "a namespace of extensions must be an object");
		if (space->list.first)
			return ky_json_error(
				r->err, space,
				"extension '%s' of '%s' is not declared in the preamble",
				space->list.first->key, space->key);
	}
	return ret;
}

/* Remember a location; ky_ctf2_locate() finds the field once its scope is whole. */
int ky_ctf2_location(struct ky_ctf2_reader *r, const struct ky_json *node, const char *key,
		     bool is_length, struct ky_ctf2_place *place, struct ky_field_ref **ref)
{
	const struct ky_json *location, *path;
	int ret = ky_ctf2_property(r, node, key, true, KY_JSON_OBJECT, &location);

	if (ret == KYMO_OK)
		ret = ky_ctf2_property(r, location, "path", true, KY_JSON_ARRAY, &path);
	if (ret < 0)
		return ret;
	if (!path->list.len)
		return ky_json_error(r->err, path, "the path of a field location is empty");
	*ref = ky_ctf2_alloc(r, 1, sizeof(**ref));
	if (!*ref)
		return KYMO_E_MEMORY;
	(*ref)->line = location->line;
	(*ref)->column = location->column;
	if (r->checking)
		return KYMO_OK;
	if (ky_vec_push(&r->pending, (struct ky_ctf2_pending){place, *ref, node, location, r->scope,
							      is_length}) < 0)
		return ky_error_nomem(r->err);
	return KYMO_OK;
}
