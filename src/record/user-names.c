/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "record/user-context.h"
#include "record/user-request.h"

/* ---- the names of a filter ------------------------------------------------------------ */

/* A hostile program's table has room for millions. */
#define NAMES_MAX 10000

static bool has_name(const struct ky_user_names *names, const char *name)
{
	return ky_names_get(&names->known, name) != NULL;
}

static int add_name(struct ky_user_names *names, const char *name)
{
	char *copy = strdup(name);

	if (!copy || ky_vec_push(&names->names, copy) < 0) {
		free(copy);
		return KYMO_E_MEMORY;
	}
	return ky_names_set(&names->known, copy, copy);
}

int ky_user_names_add(struct ky_user_names *names, const struct ky_user_event *event)
{
	int ret = KYMO_OK;

	names->any_event = true;
	for (unsigned int i = 0; !ret && i < event->record->n_fields; i++) {
		const char *name = ky_user_field_name(event, i);

		names->is_full |= names->names.len == NAMES_MAX;
		if (!names->is_full && !has_name(names, name))
			ret = add_name(names, name);
	}
	return ret;
}

void ky_user_names_fini(struct ky_user_names *names)
{
	ky_vec_foreach(&names->names, it)
		free(*it);
	ky_vec_fini(&names->names);
	ky_names_fini(&names->known);
}

/* The three nearest names, the best first. */
static void nearest(const struct ky_user_names *names, const char *word, char *text, size_t size)
{
	size_t used[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX}, len = 0;

	text[0] = 0;
	for (int n = 0; n < 3; n++) {
		size_t best = SIZE_MAX, distance = SIZE_MAX;

		for (size_t i = 0; i < names->names.len; i++) {
			size_t d = ky_edit_distance(word, names->names.data[i]);

			if (d < distance && i != used[0] && i != used[1]) {
				best = i;
				distance = d;
			}
		}
		if (best == SIZE_MAX)
			break;
		used[n] = best;
		len += (size_t)snprintf(text + len, size - len, "%s%s", n ? ", " : "",
					names->names.data[best]);
		if (len >= size)
			break;
	}
}

int ky_user_names_check(const struct ky_user_names *names, const struct ky_user_filter *filter,
			struct kymo_error *err)
{
	char near[300];

	if (!names->any_event || names->is_full)
		return KYMO_OK;
	ky_vec_foreach(&filter->names, name) {
		if (name->is_asked || ky_user_is_context(name->text) ||
		    (!name->is_context && has_name(names, name->text)))
			continue;
		if (name->is_context) {
			ky_error_set(err, KYMO_E_INVALID, "there is no context field '%s'",
				     name->text);
		} else {
			nearest(names, name->text, near, sizeof(near));
			ky_error_set(err, KYMO_E_INVALID,
				     "none of these events has a field '%s'%s%s", name->text,
				     near[0] ? "; the nearest names are: " : "", near);
		}
		ky_error_path(err, "--filter");
		ky_error_line(err, 1, name->column);
		return KYMO_E_INVALID;
	}
	return KYMO_OK;
}
