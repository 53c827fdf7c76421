/* SPDX-License-Identifier: MIT */
/* kymo/reader.h: finding fields. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/error.h"

_Static_assert(sizeof(struct ky_handle) <= sizeof(((struct kymo_field *)NULL)->internal),
	       "room for the handle");
_Static_assert(_Alignof(struct ky_handle) <= _Alignof(struct kymo_field), "alignment");

/* ---- ways ---------------------------------------------------------------------------------- */

/* What is optional is passed through: @handle becomes what it holds. */
static int see_through(struct ky_handle *handle, const struct ky_event_class *event)
{
	int ret = KYMO_OK;

	while (ret == KYMO_OK && handle->cls->kind == KY_FIELD_OPTIONAL)
		ret = ky_handle_child(handle, event, handle, 0);
	return ret;
}

static int go_down(struct ky_handle *handle, const struct ky_event_class *event, uint64_t i)
{
	int ret = ky_handle_child(handle, event, handle, i);

	return ret == KYMO_OK ? see_through(handle, event) : ret;
}

static bool api_field_is_text(const char *name, const char *text, size_t len)
{
	return name && strncmp(name, text, len) == 0 && !name[len];
}

/* To the member or option of @handle named @name, which has @len bytes. */
static int go_to_name(struct ky_handle *handle, const struct ky_event_class *event,
		      const char *name, size_t len)
{
	const struct ky_field_class *cls = handle->cls;

	for (size_t i = 0; cls->kind == KY_FIELD_STRUCT && i < cls->st.n_members; i++) {
		if (api_field_is_text(cls->st.members[i].display, name, len) ||
		    api_field_is_text(cls->st.members[i].name, name, len))
			return go_down(handle, event, i);
	}
	for (size_t i = 0; cls->kind == KY_FIELD_VARIANT && i < cls->var.n_options; i++) {
		if (api_field_is_text(cls->var.options[i].display, name, len) ||
		    api_field_is_text(cls->var.options[i].name, name, len))
			return go_down(handle, event, i);
	}
	return KYMO_E_NOT_FOUND;
}

/* "[12]" at *@path, which moves behind it. */
static int go_to_number(struct ky_handle *handle, const struct ky_event_class *event,
			const char **path)
{
	unsigned long long i;
	char *end;

	if ((*path)[1] < '0' || (*path)[1] > '9')
		return KYMO_E_INVALID;
	errno = 0;
	i = strtoull(*path + 1, &end, 10);
	if (*end != ']')
		return KYMO_E_INVALID;
	*path = end + 1;
	if (handle->cls->kind != KY_FIELD_ARRAY && handle->cls->kind != KY_FIELD_VARIANT)
		return KYMO_E_NOT_FOUND;
	return errno ? KYMO_E_NOT_FOUND : go_down(handle, event, i);
}

/* All of @path from @handle on, which stands at the root of a scope. */
static int api_field_follow(struct ky_handle *handle, const struct ky_event_class *event,
			    const char *path)
{
	size_t len = strcspn(path, ".[");
	int ret = len ? go_to_name(handle, event, path, len) : KYMO_E_INVALID;

	path += len;
	while (ret == KYMO_OK && *path) {
		if (*path == '[') {
			ret = go_to_number(handle, event, &path);
			continue;
		}
		if (*path++ != '.')
			return KYMO_E_INVALID;
		len = strcspn(path, ".[");
		ret = len ? go_to_name(handle, event, path, len) : KYMO_E_INVALID;
		path += len;
	}
	return ret;
}

/* ---- handles ------------------------------------------------------------------------------- */

static int api_field_give(struct kymo_field *field, const struct kymo_event_class *event_class,
			  const struct ky_handle *handle)
{
	field->event_class = event_class;
	field->field_class = field_class_out(handle->cls);
	memcpy(field->internal, handle, sizeof(*handle));
	return KYMO_OK;
}

/* In one scope: a name that looks like a path is a name at first. */
static int api_field_find_in(const struct kymo_event_class *event_class, enum ky_scope scope,
			     const char *path, struct kymo_field *field)
{
	const struct ky_event_class *cls = event_class_in(event_class);
	struct ky_handle root, handle;
	int ret;

	if (!ky_handle_root(&root, cls, scope))
		return KYMO_E_NOT_FOUND;
	handle = root;
	ret = go_to_name(&handle, cls, path, strlen(path));
	if (ret == KYMO_E_NOT_FOUND) {
		handle = root;
		ret = api_field_follow(&handle, cls, path);
	}
	return ret == KYMO_OK ? api_field_give(field, event_class, &handle) : ret;
}

int kymo_field_find(const struct kymo_event_class *event_class, const char *path,
		    struct kymo_field *field)
{
	static const enum ky_scope order[] = {KY_SCOPE_PAYLOAD, KY_SCOPE_EVENT_CONTEXT,
					      KY_SCOPE_STREAM_CONTEXT, KY_SCOPE_PACKET_CONTEXT};
	int ret = KYMO_E_NOT_FOUND;

	if (!field)
		return KYMO_E_INVALID;
	memset(field, 0, sizeof(*field));
	if (!event_class || !path)
		return KYMO_E_INVALID;
	for (size_t i = 0; ret == KYMO_E_NOT_FOUND && i < sizeof(order) / sizeof(order[0]); i++)
		ret = api_field_find_in(event_class, order[i], path, field);
	return ret;
}

int kymo_field_find_in(const struct kymo_event_class *event_class, enum kymo_scope scope,
		       const char *path, struct kymo_field *field)
{
	if (!field)
		return KYMO_E_INVALID;
	memset(field, 0, sizeof(*field));
	if (!event_class || !path || (unsigned int)scope >= KYMO_SCOPE_COUNT)
		return KYMO_E_INVALID;
	return api_field_find_in(event_class, (enum ky_scope)scope, path, field);
}

int kymo_field_root(const struct kymo_event_class *event_class, enum kymo_scope scope,
		    struct kymo_field *field)
{
	struct ky_handle handle;

	if (!field)
		return KYMO_E_INVALID;
	memset(field, 0, sizeof(*field));
	if (!event_class || (unsigned int)scope >= KYMO_SCOPE_COUNT)
		return KYMO_E_INVALID;
	if (!ky_handle_root(&handle, event_class_in(event_class), (enum ky_scope)scope))
		return KYMO_E_NOT_FOUND;
	return api_field_give(field, event_class, &handle);
}

/* Child of @field by @name, or by @i when that is NULL. */
static int child_of(const struct kymo_field *field, size_t i, const char *name,
		    struct kymo_field *child)
{
	const struct kymo_event_class *event_class;
	struct ky_handle handle;
	int ret;

	if (!child)
		return KYMO_E_INVALID;
	if (!field || !field->event_class) {
		memset(child, 0, sizeof(*child));
		return KYMO_E_INVALID;
	}
	/* They may be the same. */
	event_class = field->event_class;
	handle = *handle_of(field);
	memset(child, 0, sizeof(*child));
	if (name)
		ret = go_to_name(&handle, event_class_in(event_class), name, strlen(name));
	else
		ret = go_down(&handle, event_class_in(event_class), i);
	return ret == KYMO_OK ? api_field_give(child, event_class, &handle) : ret;
}

int kymo_field_child(const struct kymo_field *field, size_t i, struct kymo_field *child)
{
	return child_of(field, i, NULL, child);
}

int kymo_field_member(const struct kymo_field *field, const char *name, struct kymo_field *child)
{
	if (name)
		return child_of(field, 0, name, child);
	if (child)
		memset(child, 0, sizeof(*child));
	return KYMO_E_INVALID;
}
