/* SPDX-License-Identifier: MIT */
/* The definition of a tracker, bound to the events that this kernel has. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/strbuf.h"
#include "kernel/events/catalogue.h"
#include "kernel/tracefs/format.h"
#include "latency/tracker/tracker-internal.h"
#include "record/triggers/trigger-rule.h"

struct definer {
	struct ky_tracefs fs;
	struct ky_catalogue catalogue;
	struct ky_tracker_definition *to;
	const struct ky_log *log;
	struct kymo_error *err;
};

/* "NAME:" comes first. Returns what follows; NULL: an error. */
static const char *take_label(const char *text, struct ky_tracker_definition *to,
			      struct kymo_error *err)
{
	const char *begin = text + strspn(text, " \t");
	size_t len = strcspn(begin, ": \t");

	if (!len || begin[len] != ':' || begin[len + 1] == ':' || len >= sizeof(to->name)) {
		ky_error_set(err, KYMO_E_INVALID, "a tracker begins with its name and ':'");
		ky_error_hint(err,
			      "for example 'fsync: syscall_entry_fsync -> syscall_exit_fsync'");
		return NULL;
	}
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)begin[i]) && !strchr("_-.", begin[i])) {
			ky_error_set(err, KYMO_E_INVALID,
				     "the name of a tracker has only letters, digits, '_', '-', "
				     "'.'");
			return NULL;
		}
	memcpy(to->name, begin, len);
	return begin + len + 1;
}

/* ---- events ------------------------------------------------------------------------------- */

static bool tracker_define_is_named(const struct ky_event_source *source, const char *pattern)
{
	const char *colon = strchr(pattern, ':');

	if (source->of_bpf)
		return false;
	if (strcmp(source->name, pattern) == 0 || strcmp(source->event, pattern) == 0)
		return true;
	return colon && strncmp(source->system, pattern, (size_t)(colon - pattern)) == 0 &&
	       strlen(source->system) == (size_t)(colon - pattern) &&
	       strcmp(source->event, colon + 1) == 0;
}

/* "syscall:read": its entry as a begin, its exit as an end. */
static void tracker_define_expand(char *to, size_t size, const char *pattern, bool is_end)
{
	if (strncmp(pattern, "syscall:", 8) == 0)
		snprintf(to, size, "syscall_%s_%s", is_end ? "exit" : "entry", pattern + 8);
	else
		snprintf(to, size, "%s", pattern);
}

static const struct ky_event_source *
tracker_define_find(struct definer *definer, const struct ky_trigger_events *events, bool is_end)
{
	char name[192];

	tracker_define_expand(name, sizeof(name), events->pattern, is_end);
	ky_vec_foreach(&definer->catalogue.events, source)
		if (tracker_define_is_named(source, name))
			return source;
	ky_error_set(definer->err, KYMO_E_NOT_FOUND, "this kernel has no event '%s'", name);
	ky_error_hint(
		definer->err,
		events->of_programs
			? "both ends of a tracker are events of programs with libkymo-trace, or none of them"
			: "'kymo list' shows the events");
	return NULL;
}

/* ---- one event with its filter and keys --------------------------------------------------- */

static int define_condition(struct definer *definer, const struct ky_trigger_events *events,
			    struct ky_condition_event *event, struct ky_arena *arena, size_t offset)
{
	int ret = events->filter
			  ? ky_condition_compile(events->filter, event, 1, arena, definer->err)
			  : KYMO_OK;

	if (ret < 0 && definer->err->column)
		ky_error_line(definer->err, 1,
			      definer->err->column + (uint32_t)(events->filter_at + offset));
	return ret;
}

static int tracker_define_keys(struct definer *definer,
			       const struct ky_trigger_condition *condition, bool is_end,
			       const struct ky_condition_event *event, struct ky_arena *arena,
			       struct ky_tracker_side *side)
{
	int ret = KYMO_OK;

	if (!condition->n_keys)
		return ky_tracker_key("$ctx.tid", event, arena, side, definer->err);
	for (size_t i = 0; i < condition->n_keys && !ret; i++)
		ret = ky_tracker_key(is_end ? condition->keys[i].end : condition->keys[i].begin,
				     event, arena, side, definer->err);
	if (ret < 0)
		ky_error_line(definer->err, 0, 0); /* it counts in the key, not in the definition */
	return ret;
}

/* The event as traces have it. */
static int describe_event(struct ky_arena *arena, const char *system, const char *name,
			  const struct ky_format *format, struct ky_condition_event *event,
			  struct kymo_error *err)
{
	struct ky_event_field *fields = NULL;
	int n = ky_event_fields(arena, system, format, &fields);

	event->name = ky_arena_strdup(arena, name);
	event->fields = fields;
	event->n_fields = n < 0 ? 0 : (size_t)n;
	return n < 0 || !event->name ? ky_error_nomem(err) : KYMO_OK;
}

/* An event of tracefs. */
static int define_traced(struct definer *definer, const struct ky_trigger_events *events,
			 bool is_end, struct ky_arena *arena, struct ky_condition_event *described)
{
	const struct ky_event_source *source = tracker_define_find(definer, events, is_end);
	struct ky_tracker_event *event = is_end ? &definer->to->end : &definer->to->begin;
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_format format = {0};
	int ret;

	if (!source)
		return definer->err->code;
	snprintf(event->system, sizeof(event->system), "%s", source->system);
	snprintf(event->event, sizeof(event->event), "%s", source->event);
	ret = ky_event_source_format(source, &definer->fs, &text, definer->err);
	if (!ret)
		ret = ky_format_parse(arena, ky_strbuf_text(&text), text.len, &format,
				      definer->err);
	if (!ret)
		ret = describe_event(arena, source->system, source->name, &format, described,
				     definer->err);
	ky_strbuf_fini(&text);
	return ret;
}

/* Where @events happen, and what their fields are. */
static int define_event(struct definer *definer, const struct ky_trigger_events *events,
			bool is_end, struct ky_arena *arena, struct ky_condition_event *described)
{
	struct ky_tracker_side *side =
		is_end ? &definer->to->config.end : &definer->to->config.begin;
	struct ky_tracker_event *event = is_end ? &definer->to->end : &definer->to->begin;
	struct ky_format format = {0};
	int ret;

	described->to = &side->condition;
	if (!ky_tracker_is_probe(events->pattern))
		return define_traced(definer, events, is_end, arena, described);
	described->cuts_texts = true;
	ret = ky_tracker_probe_find(events->pattern, definer->log, arena, event, side, &format,
				    definer->err);
	return ret < 0 ? ret
		       : describe_event(arena, "", format.name, &format, described, definer->err);
}

static int define_side(struct definer *definer, const struct ky_trigger_condition *condition,
		       bool is_end, size_t offset)
{
	const struct ky_trigger_events *events = is_end ? &condition->second : &condition->first;
	struct ky_tracker_side *side =
		is_end ? &definer->to->config.end : &definer->to->config.begin;
	struct ky_condition_event event = {0};
	struct ky_arena arena;
	int ret;

	ky_arena_init(&arena);
	ret = define_event(definer, events, is_end, &arena, &event);
	if (!ret)
		ret = define_condition(definer, events, &event, &arena, offset);
	if (!ret)
		ret = tracker_define_keys(definer, condition, is_end, &event, &arena, side);
	if (!ret && side->n_places)
		ky_tracker_probe_settle(side);
	ky_arena_fini(&arena);
	return ret;
}

/* ---- the whole ---------------------------------------------------------------------------- */

static int copy_key_names(struct ky_tracker_definition *to,
			  const struct ky_trigger_condition *condition, struct kymo_error *err)
{
	for (size_t i = 0; i < condition->n_keys && i < KY_TRACKER_KEYS; i++) {
		const char *name = condition->keys[i].begin;

		name += strncmp(name, "$ctx.", 5) == 0 ? 5 : 0;
		/* Triggers have this one for programs. Here it is the same. */
		name += strcmp(name, "vtid") == 0 && !to->of_programs;
		to->key_names[i] = strdup(name);
		if (!to->key_names[i])
			return ky_error_nomem(err);
	}
	return KYMO_OK;
}

/* Is it an event of programs with libkymo-trace? */
static bool is_user_event(const struct definer *definer, const struct ky_trigger_events *events)
{
	if (!events->of_programs || ky_tracker_is_probe(events->pattern))
		return false;
	ky_vec_foreach(&definer->catalogue.events, source)
		if (tracker_define_is_named(source, events->pattern))
			return false;
	return true;
}

/* What BPF programs do. */
static int define_sides(struct definer *definer, const struct ky_trigger_condition *condition,
			size_t offset)
{
	int ret = define_side(definer, condition, false, offset);

	return ret < 0 ? ret : define_side(definer, condition, true, offset);
}

static int define_with(struct definer *definer, const struct ky_trigger_condition *condition,
		       size_t offset)
{
	int ret = ky_tracefs_open(&definer->fs, definer->err);

	if (ret < 0)
		return ret;
	ret = ky_catalogue_load(&definer->catalogue, &definer->fs, definer->err);
	if (!ret)
		definer->to->of_programs = is_user_event(definer, &condition->first) &&
					   is_user_event(definer, &condition->second);
	if (!ret && !definer->to->of_programs)
		ret = define_sides(definer, condition, offset);
	if (!ret)
		ret = copy_key_names(definer->to, condition, definer->err);
	ky_catalogue_fini(&definer->catalogue);
	ky_tracefs_close(&definer->fs);
	return ret;
}

/* Triggers' conditions have the same pairs, and a duration. */
static int parse_pair(struct ky_trigger_rule *rule, const char *text, struct kymo_error *err)
{
	struct ky_strbuf condition = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_adds(&condition, text);
	ky_strbuf_adds(&condition, " with duration > 0");
	ret = ky_strbuf_failed(&condition)
		      ? ky_error_nomem(err)
		      : ky_trigger_rule_parse(rule, ky_strbuf_text(&condition), err);
	ky_strbuf_fini(&condition);
	if (!ret && (rule->condition.kind != KY_TRIGGER_DURATION || !rule->condition.first.pattern))
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "a tracker needs two events: NAME: BEGIN -> END");
	return ret;
}

int ky_tracker_define(const char *text, const struct ky_log *log,
		      struct ky_tracker_definition *definition, struct kymo_error *err)
{
	struct definer definer = {.to = definition, .log = log, .err = err};
	struct ky_trigger_rule *rule = &definition->rule;
	const char *rest;
	int ret;

	memset(definition, 0, sizeof(*definition));
	rest = take_label(text, definition, err);
	if (!rest)
		return err->code;
	definition->rule_at = (size_t)(rest - text);
	ret = parse_pair(rule, rest, err);
	if (ret < 0 && err->column)
		ky_error_line(err, 1, err->column + (uint32_t)(rest - text));
	if (!ret)
		ret = define_with(&definer, &rule->condition, (size_t)(rest - text));
	return ret;
}

void ky_tracker_definition_fini(struct ky_tracker_definition *definition)
{
	for (size_t i = 0; i < KY_TRACKER_KEYS; i++) {
		free(definition->key_names[i]);
		definition->key_names[i] = NULL;
	}
	ky_trigger_rule_fini(&definition->rule);
	ky_tracker_event_fini(&definition->begin);
	ky_tracker_event_fini(&definition->end);
}
