/* SPDX-License-Identifier: MIT */
/* Actions of triggers for conditions that others watch, such as the trackers of kymo latency. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "record/recording/recording-internal.h"
#include "record/triggers/trigger-firing.h"

/* As many as an event of the kernel may have. */
#define FIELDS_MAX 128

/* A number is a part of JSON as it stands. */
static bool recording_act_is_number(const char *text)
{
	const char *digits = text + (*text == '-');

	for (const char *c = digits; *c; c++)
		if (!isdigit((unsigned char)*c))
			return false;
	return *digits;
}

/* The fields that follow. */
static int recording_act_take_fields(struct ky_trigger_firing *firing,
				     const struct ky_control_socket_message *request, size_t at)
{
	const char *name;

	while ((name = ky_control_socket_next(request, &at)) && firing->fields.len < FIELDS_MAX) {
		const char *kind = ky_control_socket_next(request, &at);
		const char *value = kind ? ky_control_socket_next(request, &at) : NULL;
		struct ky_trigger_field field = {0};

		if (!value)
			return KYMO_OK;
		field.name = strdup(name);
		field.value = strdup(value);
		field.is_text = strcmp(kind, "number") != 0 || !recording_act_is_number(value);
		if (!field.name || !field.value || ky_vec_push(&firing->fields, field) < 0) {
			free(field.name);
			free(field.value);
			return KYMO_E_MEMORY;
		}
	}
	return KYMO_OK;
}

static uint64_t recording_act_number(const struct ky_control_socket_message *request, size_t *at)
{
	const char *text = ky_control_socket_next(request, at);

	return text ? strtoull(text, NULL, 10) : 0;
}

/* NULL: out of memory, or words are missing. */
static struct ky_trigger_firing *
recording_act_firing(const struct ky_control_socket_message *request, size_t at)
{
	struct ky_trigger_firing *firing = calloc(1, sizeof(*firing));
	const char *condition = ky_control_socket_next(request, &at);
	const char *event = ky_control_socket_next(request, &at);

	if (!firing || !event) {
		free(firing);
		return NULL;
	}
	firing->cpu = UINT32_MAX;
	firing->condition = strdup(condition);
	firing->event = strdup(event);
	firing->n = recording_act_number(request, &at);
	firing->hit.ns = (int64_t)(recording_act_number(request, &at) & INT64_MAX);
	firing->hit.duration_ns = recording_act_number(request, &at);
	firing->hit.has_duration = true;
	if (!firing->condition || !firing->event ||
	    recording_act_take_fields(firing, request, at) < 0) {
		ky_trigger_firing_free(firing);
		return NULL;
	}
	return firing;
}

int ky_recording_obey_act(struct ky_recording *recording,
			  const struct ky_control_socket_message *request, size_t at,
			  struct ky_control_socket_message *answer, struct kymo_error *err)
{
	const char *text = ky_control_socket_next(request, &at);
	struct ky_trigger_firing *firing = NULL;
	struct ky_trigger_rule rule = {0};
	char result[PATH_MAX] = "";
	int ret = text ? ky_trigger_rule_add_action(&rule, text, err)
		       : ky_error_set(err, KYMO_E_INVALID, "the request has no action");

	if (!ret)
		ret = ky_recording_check_action(recording, &rule.actions.data[0], err);
	if (!ret) {
		firing = recording_act_firing(request, at);
		ret = firing ? KYMO_OK
			     : ky_error_set(err, KYMO_E_INVALID, "the request has no event");
	}
	if (!ret)
		ret = ky_recording_act(recording, &rule.actions.data[0], firing, result, err);
	if (!ret)
		ky_control_socket_add(answer, result);
	ky_trigger_firing_free(firing);
	ky_trigger_rule_fini(&rule);
	return ret;
}
