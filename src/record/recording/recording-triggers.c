/* SPDX-License-Identifier: MIT */
/*
 * What a recording does when a trigger fires. Snapshots, rotations and marks are made here. Actions that need
 * a process are tasks of the caller.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "os/now.h"
#include "record/recording/recording-internal.h"

/* Firings in one step: the recording's own work comes in between. */
#define FIRINGS_STEP 8
/* How long the end of the recording carries out what has fired. */
#define END_S 10

/*
 * An action that fails is a warning: no snapshot because there are no events yet, a directory that is
 * full. Only a rotation that fails half-way ends the recording.
 */
static int carry_out(struct ky_recording *recording, const struct ky_trigger_firing *firing,
		     struct kymo_error *err)
{
	const struct ky_trigger_rule *rule = ky_triggers_rule(recording->triggers, firing->trigger);
	char result[PATH_MAX] = "";
	struct kymo_error why;

	for (size_t i = 0; rule && i < rule->actions.len; i++) {
		const struct ky_trigger_action *action = &rule->actions.data[i];
		int ret = ky_recording_act(recording, action, firing, result, &why);

		if (ret < 0)
			ky_log_warning(recording->options.log, "trigger '%s': %s: %s%s%s",
				       firing->condition, action->text, why.path,
				       why.path[0] ? ": " : "", why.message);
		else if (action->kind == KY_TRIGGER_SNAPSHOT || action->kind == KY_TRIGGER_ROTATE)
			ky_log_info(recording->options.log, "trigger '%s': %s%s%s",
				    firing->condition, action->text, *result ? ": " : "", result);
		if (ret < 0 && action->kind == KY_TRIGGER_ROTATE && ret != KYMO_E_STATE) {
			*err = why;
			return ret;
		}
	}
	return KYMO_OK;
}

int ky_recording_step_triggers(struct ky_recording *recording, struct kymo_error *err)
{
	struct ky_trigger_firing *firing;
	int ret = KYMO_OK;

	ky_triggers_step(recording->triggers);
	for (int i = 0; i < FIRINGS_STEP && !ret; i++) {
		firing = ky_triggers_take(recording->triggers);
		if (!firing)
			break;
		ret = carry_out(recording, firing, err);
		ky_trigger_firing_free(firing);
	}
	return ret;
}

/* ---- the set --------------------------------------------------------------------------- */

static int unsuitable(const struct ky_trigger_action *action, const char *why,
		      struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_INVALID, "'%s': %s", action->text, why);
}

int ky_recording_check_action(const struct ky_recording *recording,
			      const struct ky_trigger_action *action, struct kymo_error *err)
{
	bool is_flight = recording->options.user.overwrite;

	if (action->kind == KY_TRIGGER_SNAPSHOT && !is_flight &&
	    !ky_recording_has_flight_groups(recording))
		return unsuitable(action, "only a flight recorder makes snapshots; try rotate",
				  err);
	if (action->kind == KY_TRIGGER_ROTATE && !ky_recording_has_chunks(recording))
		return unsuitable(action,
				  "a flight recorder and a raw recording have no chunks; try "
				  "snapshot",
				  err);
	if (action->kind == KY_TRIGGER_REPORT && !is_flight && !ky_recording_has_chunks(recording))
		return unsuitable(action, "a raw recording has no complete trace before its end",
				  err);
	if (recording->options.store &&
	    (action->kind == KY_TRIGGER_REPORT ||
	     (action->kind == KY_TRIGGER_SNAPSHOT && !action->argument)))
		return unsuitable(action, "the recording goes to a relay and has no directory here",
				  err);
	return KYMO_OK;
}

static int recording_triggers_open_set(struct ky_recording *recording, struct kymo_error *err)
{
	const struct ky_trigger_scope scope = {
		.kernel = recording->options.has_kernel ? &recording->options.kernel : NULL,
		.user = recording->options.has_user ? &recording->options.user : NULL,
		.session = recording->session,
		.clock_kind = recording->options.clock,
		.clock = ky_recording_clock(recording),
		.log = recording->options.log,
	};

	return recording->triggers ? KYMO_OK : ky_triggers_new(&scope, &recording->triggers, err);
}

/* Takes over the rule. */
static int recording_triggers_add_rule(struct ky_recording *recording, struct ky_trigger_rule *rule,
				       uint32_t *number, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < rule->actions.len && !ret; i++)
		ret = ky_recording_check_action(recording, &rule->actions.data[i], err);
	if (!ret)
		ret = ky_triggers_add(recording->triggers, rule, number, err);
	ky_trigger_rule_fini(rule);
	return ret;
}

int ky_recording_open_triggers(struct ky_recording *recording, struct kymo_error *err)
{
	size_t n = recording->options.n_triggers;
	int ret = n ? recording_triggers_open_set(recording, err) : KYMO_OK;

	for (size_t i = 0; i < n && !ret; i++)
		ret = recording_triggers_add_rule(recording, &recording->options.triggers[i], NULL,
						  err);
	return ret;
}

static int start_set(struct ky_recording *recording, struct kymo_error *err)
{
	int32_t tids[KY_RECORDING_USER_THREADS_MAX];
	size_t n = ky_recording_program_threads(recording, tids);

	return ky_triggers_start(recording->triggers, tids, n, err);
}

int ky_recording_start_triggers(struct ky_recording *recording, struct kymo_error *err)
{
	return recording->triggers ? start_set(recording, err) : KYMO_OK;
}

int ky_recording_triggers_fd(const struct ky_recording *recording)
{
	return recording->triggers ? ky_triggers_fd(recording->triggers) : -1;
}

static void drop_triggers(struct ky_recording *recording)
{
	ky_triggers_free(recording->triggers);
	recording->triggers = NULL;
}

/* What the last events have fired, until their sources ended. */
static int end_triggers(struct ky_recording *recording, struct kymo_error *err)
{
	struct ky_trigger_firing *firing;
	time_t until_s = ky_os_now_s() + END_S;
	int ret = KYMO_OK;

	ky_triggers_stop(recording->triggers);
	while (!ret && ky_os_now_s() < until_s &&
	       (firing = ky_triggers_take(recording->triggers))) {
		ret = carry_out(recording, firing, err);
		ky_trigger_firing_free(firing);
	}
	firing = ky_triggers_take(recording->triggers);
	if (firing)
		ky_log_warning(recording->options.log,
			       "the recording ends: not all actions of triggers were carried out");
	ky_trigger_firing_free(firing);
	return ret;
}

int ky_recording_end_triggers(struct ky_recording *recording, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (recording->triggers && recording->is_started)
		ret = end_triggers(recording, err);
	drop_triggers(recording);
	return ret;
}

void ky_recording_close_triggers(struct ky_recording *recording)
{
	drop_triggers(recording);
	ky_vec_foreach(&recording->tasks, task)
		ky_recording_task_free(*task);
	ky_vec_fini(&recording->tasks);
}

/* ---- requests -------------------------------------------------------------------------- */

static int first_trigger(struct ky_recording *recording, struct kymo_error *err)
{
	int ret;

	if (recording->triggers)
		return KYMO_OK;
	ret = recording_triggers_open_set(recording, err);
	if (!ret)
		ret = start_set(recording, err);
	return ret < 0 ? ret : ky_recording_watch_triggers(recording, err);
}

/* An answer has no place for the column. */
static int with_column(struct kymo_error *err, int ret)
{
	struct kymo_error why = *err;

	if (why.column) {
		ky_error_set(err, ret, "column %u: %.400s", why.column, why.message);
		if (why.hint[0])
			ky_error_hint(err, "%s", why.hint);
	}
	return ret;
}

int ky_recording_add_trigger(struct ky_recording *recording,
			     const struct ky_control_socket_message *request, size_t at,
			     struct ky_control_socket_message *answer, struct kymo_error *err)
{
	const char *text = ky_control_socket_next(request, &at);
	struct ky_trigger_rule rule = {0};
	uint32_t number = 0;
	char word[16];
	int ret = text ? ky_trigger_rule_parse(&rule, text, err)
		       : ky_error_set(err, KYMO_E_INVALID, "the request has no condition");

	while (!ret && (text = ky_control_socket_next(request, &at)))
		ret = ky_trigger_rule_add_action(&rule, text, err);
	if (!ret && !rule.actions.len)
		ret = ky_error_set(err, KYMO_E_INVALID, "the request has no action");
	if (!ret)
		ret = first_trigger(recording, err);
	if (!ret)
		ret = recording_triggers_add_rule(recording, &rule, &number, err);
	ky_trigger_rule_fini(&rule);
	if (ret < 0)
		return with_column(err, ret);
	ky_recording_set_tick(recording);
	snprintf(word, sizeof(word), "%u", number);
	ky_control_socket_add(answer, word);
	return KYMO_OK;
}

int ky_recording_remove_trigger(struct ky_recording *recording, const char *text,
				struct kymo_error *err)
{
	struct ky_trigger_info info;
	uint64_t number;
	int ret = KYMO_OK;

	if (!text || (strcmp(text, "all") != 0 && ky_parse_u64(text, &number) < 0))
		return ky_error_set(err, KYMO_E_INVALID, "a trigger's number or 'all' is needed");
	if (!recording->triggers)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "the recording has no triggers");
	if (strcmp(text, "all") == 0) {
		while (!ret && ky_triggers_at(recording->triggers, 0, &info))
			ret = ky_triggers_remove(recording->triggers, info.number, err);
	} else {
		ret = number > UINT32_MAX
			      ? ky_error_set(err, KYMO_E_NOT_FOUND,
					     "the recording has no trigger %s", text)
			      : ky_triggers_remove(recording->triggers, (uint32_t)number, err);
	}
	ky_recording_set_tick(recording);
	return ret;
}

static void recording_triggers_add_number(struct ky_control_socket_message *answer, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	ky_control_socket_add(answer, text);
}

void ky_recording_list_triggers(const struct ky_recording *recording,
				struct ky_control_socket_message *answer)
{
	struct ky_trigger_info info;

	for (size_t i = 0; recording->triggers && ky_triggers_at(recording->triggers, i, &info);
	     i++) {
		struct ky_strbuf actions = KY_STRBUF_INIT;

		ky_vec_foreach(&info.rule->actions, action)
			ky_strbuf_addf(&actions, "%s%s", actions.len ? ", " : "", action->text);
		recording_triggers_add_number(answer, info.number);
		ky_control_socket_add(answer, info.rule->condition.text);
		recording_triggers_add_number(answer, info.n_fired);
		recording_triggers_add_number(answer, info.n_held);
		recording_triggers_add_number(answer, info.n_lost);
		ky_control_socket_add(answer, ky_strbuf_text(&actions));
		ky_strbuf_fini(&actions);
	}
}
