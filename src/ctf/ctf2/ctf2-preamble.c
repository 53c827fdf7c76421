/* SPDX-License-Identifier: MIT */
/* The preamble of a CTF 2 metadata stream, and the attributes of its objects. */
#include "ctf/ctf2/ctf2-read.h"

#include <string.h>

#include "base/error.h"
#include "ctf/ctf2/attributes.h"

/* ---- attributes ----------------------------------------------------------------------------- */

int ky_ctf2_attributes(struct ky_ctf2_reader *r, const struct ky_json *node,
		       const char **attributes)
{
	struct ky_json *object = ky_json_get(node, "attributes");
	uint64_t key = (uint64_t)(uintptr_t)object;
	const char *text = object ? ky_map_get(&r->attributes, key) : NULL;

	*attributes = NULL;
	if (!object)
		return KYMO_OK;
	if (!text) {
		if (ky_attributes_keep(&r->trace->arena, object, NULL, &text) < 0)
			return ky_error_nomem(r->err);
		if (!text)
			return KYMO_OK;
		if (ky_map_set(&r->attributes, key, (void *)(uintptr_t)text) < 0)
			return ky_error_nomem(r->err);
	}
	r->attribute_bytes += strlen(text);
	if (r->attribute_bytes <= KY_ATTRIBUTE_BYTES_MAX)
		*attributes = text;
	else if (!r->checking)
		r->trace->n_attributes_lost++;
	return KYMO_OK;
}

/* ---- preamble ------------------------------------------------------------------------------- */

/* Whatever an extension changes, we do not know it: declared means refused. */
static int check_extensions(struct ky_ctf2_reader *r, const struct ky_json *preamble)
{
	const struct ky_json *list = ky_json_get(preamble, "extensions");

	if (!list)
		return KYMO_OK;
	if (ky_ctf2_need_object(r, list, "'extensions'") < 0)
		return KYMO_E_FORMAT;
	for (const struct ky_json *space = list->list.first; space; space = space->next) {
		if (ky_ctf2_need_object(r, space, "a namespace of extensions") < 0)
			return KYMO_E_FORMAT;
		if (!space->list.first)
			continue;
		ky_json_error(r->err, space, "extension '%s' of '%s' is not supported",
			      space->list.first->key, space->key);
		if (r->err)
			r->err->code = KYMO_E_UNSUPPORTED;
		return KYMO_E_UNSUPPORTED;
	}
	return KYMO_OK;
}

static int ctf2_preamble_read_uuid(struct ky_ctf2_reader *r, const struct ky_json *preamble)
{
	const struct ky_json *list = ky_json_get(preamble, "uuid"), *byte;
	size_t i = 0;

	if (!list)
		return KYMO_OK;
	if (list->kind != KY_JSON_ARRAY || list->list.len != 16)
		return ky_json_error(r->err, list, "'uuid' must be an array of 16 integers");
	for (byte = list->list.first; byte; byte = byte->next) {
		if (byte->kind != KY_JSON_INTEGER || byte->integer.u > 255)
			return ky_json_error(r->err, byte, "a byte of a UUID is 0 to 255");
		r->trace->uuid[i++] = (uint8_t)byte->integer.u;
	}
	r->trace->has_uuid = true;
	return KYMO_OK;
}

int ky_ctf2_preamble(struct ky_ctf2_reader *r, const struct ky_json *fragment)
{
	uint64_t version = 0;
	int ret = ky_ctf2_uint(r, fragment, "version", true, &version);

	if (ret < 0)
		return ret;
	if (version != 2)
		return ky_json_error(r->err, ky_json_get(fragment, "version"),
				     "CTF version %llu is not supported",
				     (unsigned long long)version);
	ret = check_extensions(r, fragment);
	if (ret == KYMO_OK)
		ret = ky_ctf2_attributes(r, fragment, &r->trace->preamble_attributes);
	return ret < 0 ? ret : ctf2_preamble_read_uuid(r, fragment);
}
