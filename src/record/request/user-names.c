/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "record/request/user-context.h"
#include "record/request/user-request.h"

/* ---- the names of a filter ------------------------------------------------------------ */

/* A hostile program's table has room for millions. */
#define NAMES_MAX 10000

static bool user_names_has_name(const struct ky_user_names *names, const char *name)
{
	return ky_names_get(&names->known, name) != NULL;
}

/* @text is taken over; NULL: no memory. */
static int user_names_remember(struct ky_user_names *names, char *text, bool is_label)
{
	int ret = KYMO_E_MEMORY;

	if (text)
		ret = is_label ? ky_vec_push(&names->labels, text)
			       : ky_vec_push(&names->names, text);
	if (ret < 0) {
		free(text);
		return KYMO_E_MEMORY;
	}
	return ky_names_set(&names->known, text, text);
}

#define KEY_BYTES (2 * KY_NAME_MAX + 2)

static void label_key(char key[KEY_BYTES], const char *field, const char *label)
{
	snprintf(key, KEY_BYTES, "%.127s\n%.127s", field, label);
}

static int user_names_add_label(struct ky_user_names *names, const char *field, const char *label)
{
	char key[KEY_BYTES];

	label_key(key, field, label);
	names->is_full |= names->labels.len == NAMES_MAX;
	return names->is_full || user_names_has_name(names, key)
		       ? KYMO_OK
		       : user_names_remember(names, strdup(key), true);
}

static int add_labels(struct ky_user_names *names, const struct ky_user_event *event,
		      unsigned int i)
{
	const struct ky_event_record *record = event->record;
	const struct ky_field_record *field = &record->fields[i];
	const char *base = (const char *)record, *name = ky_user_field_name(event, i);
	const struct ky_label_record *labels = (const void *)(base + field->labels);
	int ret = KYMO_OK;

	if (field->kind != KY_KIND_ENUM)
		return user_names_add_label(names, name, "");
	for (uint32_t k = 0; k < field->n_labels && !ret; k++)
		ret = user_names_add_label(names, name, base + labels[k].name);
	return ret;
}

int ky_user_names_add(struct ky_user_names *names, const struct ky_user_event *event)
{
	int ret = KYMO_OK;

	names->any_event = true;
	for (unsigned int i = 0; !ret && i < event->record->n_fields; i++) {
		const char *name = ky_user_field_name(event, i);

		names->is_full |= names->names.len == NAMES_MAX;
		if (!names->is_full && !user_names_has_name(names, name))
			ret = user_names_remember(names, strdup(name), false);
		if (!ret)
			ret = add_labels(names, event, i);
	}
	return ret;
}

void ky_user_names_fini(struct ky_user_names *names)
{
	ky_vec_foreach(&names->names, it)
		free(*it);
	ky_vec_fini(&names->names);
	ky_vec_foreach(&names->labels, it)
		free(*it);
	ky_vec_fini(&names->labels);
	ky_names_fini(&names->known);
}

/* The three nearest of @n words that begin with @prefix, which is left out; the best first. */
static void user_names_nearest(const char *const *words, size_t n_words, const char *prefix,
			       const char *word, char *text, size_t size)
{
	size_t used[3] = {SIZE_MAX, SIZE_MAX, SIZE_MAX}, len = 0, skip = strlen(prefix);

	text[0] = 0;
	for (int n = 0; n < 3; n++) {
		size_t best = SIZE_MAX, distance = SIZE_MAX;

		for (size_t i = 0; i < n_words; i++) {
			size_t d;

			if (i == used[0] || i == used[1] || strncmp(words[i], prefix, skip) != 0)
				continue;
			d = ky_edit_distance(word, words[i] + skip);
			if (d < distance) {
				best = i;
				distance = d;
			}
		}
		if (best == SIZE_MAX)
			break;
		used[n] = best;
		len += (size_t)snprintf(text + len, size - len, "%s%s", n ? ", " : "",
					words[best] + skip);
		if (len >= size)
			break;
	}
}

/* Programs have all of them, asked for or not: the name must be wrong. */
static int no_context(const char *name, struct kymo_error *err)
{
	const char *all[KY_USER_CONTEXTS_MAX];
	char near[300];
	size_t n = 0;

	while (n < KY_USER_CONTEXTS_MAX && (all[n] = ky_user_context_name(n)))
		n++;
	user_names_nearest(all, n, "", name, near, sizeof(near));
	return ky_error_set(err, KYMO_E_INVALID,
			    "programs have no context field '%s'; the nearest names are: %s", name,
			    near);
}

/* An enumeration that is compared with a text: has it this label in any event? */
static int check_label(const struct ky_user_names *names, const struct ky_user_name *name,
		       const char *label, struct kymo_error *err)
{
	char key[KEY_BYTES], prefix[KEY_BYTES], near[400];

	label_key(prefix, name->text, "");
	label_key(key, name->text, label);
	/* Not there at all, or a text in some other event. */
	if (!user_names_has_name(names, name->text) || user_names_has_name(names, prefix) ||
	    user_names_has_name(names, key))
		return KYMO_OK;
	user_names_nearest((const char *const *)names->labels.data, names->labels.len, prefix,
			   label, near, sizeof(near));
	ky_error_set(err, KYMO_E_INVALID, "'%s' has no label '%s'%s%s", name->text, label,
		     near[0] ? "; the nearest are: " : "", near);
	ky_error_input(err, "filter");
	ky_error_line(err, 1, name->column);
	return KYMO_E_INVALID;
}

static int check_labels(const struct ky_user_names *names, const struct ky_user_filter *filter,
			struct kymo_error *err)
{
	const struct ky_filter_op *ops = filter->ops.data;
	size_t n_names = 0;
	int ret = KYMO_OK;

	for (size_t i = 0; i + 2 < filter->ops.len && !ret; i++) {
		const struct ky_user_name *name = &filter->names.data[n_names];

		/* Each of these has its name, in the same order. */
		n_names += ops[i].code == KY_FILTER_FIELD || ops[i].code == KY_FILTER_CONTEXT ||
			   ops[i].code == KY_FILTER_HAS;
		if (ops[i].code == KY_FILTER_FIELD && ops[i + 1].code == KY_FILTER_TEXT &&
		    (ops[i + 2].code == KY_FILTER_EQ || ops[i + 2].code == KY_FILTER_NE))
			ret = check_label(names, name, filter->texts.data + ops[i + 1].arg, err);
	}
	return ret;
}

int ky_user_names_check(const struct ky_user_names *names, const struct ky_user_filter *filter,
			struct kymo_error *err)
{
	char near[300];

	if (!names->any_event || names->is_full)
		return KYMO_OK;
	ky_vec_foreach(&filter->names, name) {
		if (name->is_asked || ky_user_is_context(name->text) ||
		    (!name->is_context && user_names_has_name(names, name->text)))
			continue;
		if (name->is_context) {
			(void)no_context(name->text, err);
		} else {
			user_names_nearest((const char *const *)names->names.data, names->names.len,
					   "", name->text, near, sizeof(near));
			ky_error_set(err, KYMO_E_INVALID,
				     "none of these events has a field '%s'%s%s", name->text,
				     near[0] ? "; the nearest names are: " : "", near);
		}
		ky_error_input(err, "filter");
		ky_error_line(err, 1, name->column);
		return KYMO_E_INVALID;
	}
	return check_labels(names, filter, err);
}
