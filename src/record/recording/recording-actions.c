/* SPDX-License-Identifier: MIT */
/* What a recording does when a trigger fires. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "ctf/json/json.h"
#include "record/recording/recording-internal.h"

/* Tasks that wait for the caller. */
#define TASKS_MAX 64

/* ---- tasks ----------------------------------------------------------------------------- */

void ky_recording_task_free(struct ky_recording_task *task)
{
	if (!task)
		return;
	ky_vec_foreach(&task->environment, it)
		free(*it);
	ky_vec_fini(&task->environment);
	free(task->argument);
	free(task->trace);
	free(task->firing);
	free(task);
}

struct ky_recording_task *ky_recording_take_task(struct ky_recording *recording)
{
	struct ky_recording_tasks *tasks = &recording->tasks;
	struct ky_recording_task *task = tasks->len ? tasks->data[0] : NULL;

	if (!task)
		return NULL;
	tasks->len--;
	memmove(tasks->data, tasks->data + 1, tasks->len * sizeof(tasks->data[0]));
	return task;
}

static void __attribute__((format(printf, 3, 4)))
set_variable(struct ky_recording_task *task, const char *name, const char *fmt, ...)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char *variable;
	va_list ap;

	ky_strbuf_addf(&text, "KYMO_TRIGGER_%s=", name);
	va_start(ap, fmt);
	ky_strbuf_addv(&text, fmt, ap);
	va_end(ap);
	variable = ky_strbuf_take(&text);
	if (!variable || ky_vec_push(&task->environment, variable) < 0)
		free(variable);
}

/* Names of fields come from programs: a variable's name has only these characters. */
static bool is_plain_name(const char *name)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

	return *name && strlen(name) <= 64 && strspn(name, plain) == strlen(name);
}

static void set_environment(const struct ky_recording *recording, struct ky_recording_task *task,
			    const struct ky_trigger_firing *firing, const char *result)
{
	char time[KY_TRIGGER_TIME_BYTES];

	ky_trigger_time(time, firing->hit.ns);
	set_variable(task, "CONDITION", "%s", firing->condition);
	set_variable(task, "NUMBER", "%u", firing->trigger);
	set_variable(task, "COUNT", "%" PRIu64, firing->n);
	set_variable(task, "TIME", "%s", time);
	set_variable(task, "TIME_NS", "%" PRId64, firing->hit.ns);
	set_variable(task, "RECORDING", "%s", recording->options.output);
	set_variable(task, "JSON", "%s", task->firing ? task->firing : "");
	if (recording->options.name)
		set_variable(task, "NAME", "%s", recording->options.name);
	if (*result)
		set_variable(task, "TRACE", "%s", result);
	if (firing->hit.has_duration)
		set_variable(task, "DURATION_NS", "%" PRIu64, firing->hit.duration_ns);
	if (!firing->event)
		return;
	set_variable(task, "EVENT", "%s", firing->event);
	if (firing->cpu != UINT32_MAX)
		set_variable(task, "CPU", "%u", firing->cpu);
	ky_vec_foreach(&firing->fields, field) {
		char name[80];

		if (!is_plain_name(field->name))
			continue;
		snprintf(name, sizeof(name), "FIELD_%s", field->name);
		set_variable(task, name, "%s", field->value);
	}
}

static int add_task(struct ky_recording *recording, const struct ky_trigger_action *action,
		    const struct ky_trigger_firing *firing, const char *result,
		    struct kymo_error *err)
{
	struct ky_recording_task *task;
	struct ky_strbuf json = KY_STRBUF_INIT;

	if (recording->tasks.len == TASKS_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "%d actions wait already", TASKS_MAX);
	task = calloc(1, sizeof(*task));
	if (!task)
		return ky_error_nomem(err);
	ky_trigger_firing_json(&json, firing, NULL, NULL);
	task->kind = action->kind;
	task->argument = action->argument ? strdup(action->argument) : NULL;
	task->trace = strdup(result);
	task->firing = ky_strbuf_take(&json);
	set_environment(recording, task, firing, result);
	if ((action->argument && !task->argument) || !task->trace || !task->firing ||
	    ky_vec_push(&recording->tasks, task) < 0) {
		ky_recording_task_free(task);
		return ky_error_nomem(err);
	}
	return KYMO_OK;
}

void ky_recording_tell_task(struct ky_recording *recording, const struct ky_recording_task *task,
			    const char *result)
{
	struct ky_strbuf json = KY_STRBUF_INIT, text = KY_STRBUF_INIT;
	const char *name = ky_trigger_action_name(task->kind);

	ky_strbuf_addf(&json, "\"action\": \"%s\", \"result\": ", name);
	ky_json_put_text(&json, result, strlen(result));
	ky_strbuf_addf(&text, "%s: %s", name, result);
	if (!ky_strbuf_failed(&json) && !ky_strbuf_failed(&text))
		ky_recording_tell(recording, "action", ky_strbuf_text(&text),
				  ky_strbuf_text(&json));
	ky_log_info(recording->options.log, "trigger: %s", ky_strbuf_text(&text));
	ky_strbuf_fini(&json);
	ky_strbuf_fini(&text);
}

/* ---- actions --------------------------------------------------------------------------- */

/* PREFIX-1, the first that does not exist. */
static int number_path(const char *prefix, char path[PATH_MAX], struct kymo_error *err)
{
	for (int i = 1; i < INT_MAX; i++) {
		if (snprintf(path, PATH_MAX, "%s-%d", prefix, i) >= PATH_MAX)
			break;
		if (access(path, F_OK) < 0)
			return KYMO_OK;
	}
	return ky_error_set(err, KYMO_E_INVALID, "the path of the snapshot is too long");
}

static int recording_triggers_snapshot(struct ky_recording *recording, const char *prefix,
				       char result[PATH_MAX], struct kymo_error *err)
{
	struct ky_recording_snapshot made;
	char path[PATH_MAX] = "";
	int ret = prefix ? number_path(prefix, path, err) : KYMO_OK;

	if (!ret)
		ret = ky_recording_snapshot(recording, path, &made, err);
	if (!ret)
		snprintf(result, PATH_MAX, "%s", made.path);
	return ret;
}

static int recording_triggers_rotate(struct ky_recording *recording, char result[PATH_MAX],
				     struct kymo_error *err)
{
	struct ky_recording_chunk chunk;
	int ret = ky_recording_rotate(recording, &chunk, err);

	if (!ret && chunk.number)
		snprintf(result, PATH_MAX, "%s", chunk.path);
	return ret;
}

/* A complete trace of what happened until now. */
static int recording_triggers_complete_trace(struct ky_recording *recording, char result[PATH_MAX],
					     struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (!*result)
		ret = recording->options.user.overwrite
			      ? recording_triggers_snapshot(recording, NULL, result, err)
			      : recording_triggers_rotate(recording, result, err);
	if (!ret && !*result)
		ret = ky_error_set(err, KYMO_E_STATE, "no events were recorded yet");
	return ret;
}

static void notify(struct ky_recording *recording, const struct ky_trigger_firing *firing,
		   const char *message)
{
	struct ky_strbuf text = KY_STRBUF_INIT, json = KY_STRBUF_INIT;

	if (message)
		ky_strbuf_addf(&text, "%s: ", message);
	ky_trigger_firing_text(&text, firing);
	ky_trigger_firing_json(&json, firing, message ? "notify" : NULL, message);
	/* Without the braces. */
	if (!ky_strbuf_failed(&text) && !ky_strbuf_failed(&json)) {
		json.data[json.len - 1] = '\0';
		ky_recording_tell(recording, "trigger", ky_strbuf_text(&text), json.data + 1);
	}
	ky_strbuf_fini(&text);
	ky_strbuf_fini(&json);
}

int ky_recording_act(struct ky_recording *recording, const struct ky_trigger_action *action,
		     const struct ky_trigger_firing *firing, char result[PATH_MAX],
		     struct kymo_error *err)
{
	int ret;

	switch (action->kind) {
	case KY_TRIGGER_SNAPSHOT:
		return recording_triggers_snapshot(recording, action->argument, result, err);
	case KY_TRIGGER_ROTATE:
		return recording_triggers_rotate(recording, result, err);
	case KY_TRIGGER_MARK:
		return ky_recording_mark(recording, firing, action->argument, err);
	case KY_TRIGGER_NOTIFY:
		notify(recording, firing, action->argument);
		return KYMO_OK;
	case KY_TRIGGER_REPORT:
		ret = recording_triggers_complete_trace(recording, result, err);
		return ret < 0 ? ret : add_task(recording, action, firing, result, err);
	default:
		return add_task(recording, action, firing, result, err);
	}
}
