/* SPDX-License-Identifier: MIT */
/* The last drafts of CTF 2 (to CTF2-SPECRC-7.0), of which traces exist, in the words of CTF 2.0. */
#include <string.h>

#include "base/deep.h"
#include "base/error.h"
#include "ctf/ctf2/ctf2-read.h"

static bool is_key(const struct ky_json *node, const char *key)
{
	return node->key && strcmp(node->key, key) == 0;
}

/* ["event-record-header", "id"] is {"origin": "event-record-header", "path": ["id"]} now. */
static int location(struct ky_ctf2_reader *r, struct ky_json *node)
{
	struct ky_json *origin = node->list.first, *path;

	if (!origin)
		return KYMO_OK;
	path = ky_arena_new(&r->json, struct ky_json);
	if (!path)
		return KYMO_E_MEMORY;
	*path = *node;
	path->key = "path";
	path->next = NULL;
	path->list.first = origin->next;
	path->list.len--;
	origin->key = "origin";
	origin->next = path;
	node->kind = KY_JSON_OBJECT;
	node->list.len = 2;
	r->trace->is_draft = true;
	return KYMO_OK;
}

/* Enumerations were types of their own; now integers may have mappings. */
static void type(struct ky_ctf2_reader *r, struct ky_json *node)
{
	static const char *const names[][2] = {
		{"fixed-length-unsigned-enumeration", "fixed-length-unsigned-integer"},
		{"fixed-length-signed-enumeration", "fixed-length-signed-integer"},
		{"variable-length-unsigned-enumeration", "variable-length-unsigned-integer"},
		{"variable-length-signed-enumeration", "variable-length-signed-integer"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(node->string.data, names[i][0]) != 0)
			continue;
		node->string.data = names[i][1];
		r->trace->is_draft = true;
	}
}

KY_DEEP2(int, ctf2_draft_walk, struct ky_ctf2_reader *, struct ky_json *)

static int ctf2_draft_walk(struct ky_ctf2_reader *r, struct ky_json *node)
{
	int ret = KYMO_OK;

	if (node->kind == KY_JSON_STRING && is_key(node, "type"))
		type(r, node);
	else if (node->kind == KY_JSON_ARRAY &&
		 (is_key(node, "length-field-location") || is_key(node, "selector-field-location")))
		return location(r, node);
	/* What users put there is not ours to change. */
	if ((node->kind != KY_JSON_ARRAY && node->kind != KY_JSON_OBJECT) ||
	    is_key(node, "attributes") || is_key(node, "environment") || is_key(node, "extensions"))
		return KYMO_OK;
	for (struct ky_json *child = node->list.first; child && ret == KYMO_OK; child = child->next)
		ret = ctf2_draft_walk_deep(KYMO_E_MEMORY, r, child);
	return ret;
}

static void rename_key(struct ky_ctf2_reader *r, const struct ky_json *fragment, const char *from,
		       const char *to)
{
	struct ky_json *node = ky_json_get(fragment, from);

	if (!node || ky_json_get(fragment, to))
		return;
	node->key = to;
	r->trace->is_draft = true;
}

int ky_ctf2_from_draft(struct ky_ctf2_reader *r, struct ky_json *fragment)
{
	const struct ky_json *kind = ky_json_get(fragment, "type");

	/* Clock classes were known by their names. */
	if (kind && kind->kind == KY_JSON_STRING && strcmp(kind->string.data, "clock-class") == 0)
		rename_key(r, fragment, "name", "id");
	rename_key(r, fragment, "default-clock-class-name", "default-clock-class-id");
	return ctf2_draft_walk(r, fragment) < 0 ? ky_error_nomem(r->err) : KYMO_OK;
}
