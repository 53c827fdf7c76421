/* SPDX-License-Identifier: MIT */
/* kymo list --user: programs, their events, log levels, fields, source lines. */
#include "cli/list/list-user.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"
#include "record/request/user-program.h"

struct listing {
	bool fields;
	int n_globs;
	char **globs;
};

/* A glob matches "provider:name", the provider, or the program. */
static bool list_user_is_shown(const struct listing *listing, const struct ky_program *program,
			       const struct ky_user_event *event)
{
	char name[KY_USER_EVENT_NAME_BYTES];

	if (event->is_query)
		return false;
	ky_user_event_name(event, name);
	for (int i = 0; i < listing->n_globs; i++) {
		if (ky_glob_match(listing->globs[i], name) ||
		    ky_glob_match(listing->globs[i], event->provider) ||
		    ky_glob_match(listing->globs[i], program->procname))
			return true;
	}
	return !listing->n_globs;
}

static const char *why_off(const struct ky_program *program)
{
	if (program->blocked)
		return program->blocked;
	return program->off ? ky_off_text(program->off) : NULL;
}

/* ---- text ----------------------------------------------------------------------------- */

static void list_user_print_event(const struct listing *listing, const struct ky_user_event *event)
{
	char name[KY_USER_EVENT_NAME_BYTES], type[48];

	ky_user_event_name(event, name);
	fputs("  ", stdout);
	ky_cli_put_padded(stdout, name, 32);
	printf(" %-14s ", ky_log_level_name(event->record->log_level));
	ky_cli_put_text(stdout, event->file);
	printf(":%" PRIu32 "\n", event->record->line);
	for (unsigned int i = 0; listing->fields && i < event->record->n_fields; i++) {
		const struct ky_field_record *field = &event->record->fields[i];

		ky_user_field_type(field, type);
		printf("      %-14s ", type); /* lint: own text */
		ky_cli_put_text(stdout, ky_user_field_name(event, i));
		puts(field->flags & KY_FIELD_FILTER_ONLY ? " (for filters only)" : "");
	}
}

static size_t list_user_count_events(const struct listing *listing,
				     const struct ky_program *program)
{
	struct ky_user_event event;
	size_t n = 0;

	for (size_t at = 0; ky_program_next_event(program, &at, &event);)
		n += list_user_is_shown(listing, program, &event);
	return n;
}

static void print_program(const struct listing *listing, const struct ky_program *program)
{
	const char *bold = ky_cli_colour(stdout) ? "\033[1m" : "", *off = why_off(program);
	size_t n = list_user_count_events(listing, program);
	struct ky_user_event event;

	if (!n && listing->n_globs)
		return;
	fputs(bold, stdout);
	ky_cli_put_text(stdout, program->procname);
	printf(" (%d)%s: %zu event%s, user %u%s", (int)program->pid, *bold ? "\033[0m" : "", n,
	       n == 1 ? "" : "s", (unsigned int)program->uid, off ? "; tracing is off: " : "");
	ky_cli_put_text(stdout, off ? off : "");
	putchar('\n');
	for (size_t at = 0; ky_program_next_event(program, &at, &event);) {
		if (list_user_is_shown(listing, program, &event))
			list_user_print_event(listing, &event);
	}
}

/* ---- JSON ----------------------------------------------------------------------------- */

static void list_user_put_field(const struct ky_user_event *event, json_t *fields, char type[48],
				unsigned int i)
{
	const struct ky_field_record *field = &event->record->fields[i];

	ky_user_field_type(field, type);
	json_array_append_new(fields,
			      json_pack("{s:o, s:s, s:b}", "name",
					ky_jansson_text(ky_user_field_name(event, i)), "type", type,
					"filter_only", !!(field->flags & KY_FIELD_FILTER_ONLY)));
}

static json_t *fields_json(const struct ky_user_event *event)
{
	json_t *fields = json_array();
	char type[48];

	for (unsigned int i = 0; i < event->record->n_fields; i++)
		list_user_put_field(event, fields, type, i);
	return fields;
}

static json_t *program_json(const struct listing *listing, const struct ky_program *program)
{
	const char *off = why_off(program);
	json_t *events = json_array();
	char name[KY_USER_EVENT_NAME_BYTES];
	struct ky_user_event event;

	for (size_t at = 0; ky_program_next_event(program, &at, &event);) {
		if (!list_user_is_shown(listing, program, &event))
			continue;
		ky_user_event_name(&event, name);
		json_array_append_new(events, json_pack("{s:o, s:s, s:o, s:I, s:o}", "name",
							ky_jansson_text(name), "log_level",
							ky_log_level_name(event.record->log_level),
							"file", ky_jansson_text(event.file), "line",
							(json_int_t)event.record->line, "fields",
							fields_json(&event)));
	}
	return json_pack("{s:o, s:i, s:i, s:s?, s:o}", "procname",
			 ky_jansson_text(program->procname), "pid", (int)program->pid, "uid",
			 (int)program->uid, "off", off, "events", events);
}

static int list_user_print_json(const struct listing *listing, const struct ky_programs *programs,
				struct kymo_error *err)
{
	json_t *list = json_array();

	ky_vec_foreach(&programs->list, program) {
		if (!listing->n_globs || list_user_count_events(listing, *program))
			json_array_append_new(list, program_json(listing, *program));
	}
	return ky_cli_put_json(json_pack("{s:o}", "programs", list), 1, err);
}

int ky_list_user(bool json, bool fields, int n_globs, char **globs, struct kymo_error *err)
{
	struct listing listing = {.fields = fields, .n_globs = n_globs, .globs = globs};
	struct ky_programs programs = {0};
	int ret = ky_programs_scan(&programs, err);

	if (!ret && json) {
		ret = list_user_print_json(&listing, &programs, err);
	} else if (!ret) {
		ky_vec_foreach(&programs.list, program)
			print_program(&listing, *program);
		if (!programs.list.len)
			puts("No program with libkymo-trace is running.");
		if (programs.n_denied && geteuid() != 0)
			puts("Only root sees the programs of other users.");
	}
	ky_programs_fini(&programs);
	return ret;
}
