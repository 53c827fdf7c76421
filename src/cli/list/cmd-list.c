/* SPDX-License-Identifier: MIT */
/* kymo list: what can be recorded here. */
#include "cli/terminal/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/terminal/json-output.h"
#include "cli/list/list-containers.h"
#include "cli/list/list-counters.h"
#include "cli/list/list-sdt.h"
#include "cli/list/list-user.h"
#include "kernel/events/catalogue.h"
#include "kernel/events/events.h"
#include "kernel/tracefs/format.h"

#define ENTRY_PREFIX "syscall_entry_"

struct list_options {
	bool kernel, user, sdt, counters, containers, json, fields;
};

/* An event or a system call that is to be shown. */
struct item {
	const struct ky_event_source *source;
	bool is_default;
	const char *syscall; /* "openat", or NULL for an event */
	struct ky_format format;
	struct ky_event_field *fields;
	int n_fields;
};

struct listing {
	const struct list_options *options;
	struct ky_tracefs fs;
	struct ky_catalogue catalogue;
	struct ky_arena arena; /* of the formats */
	struct ky_strbuf text;
	KY_VEC(struct item) items;
	json_t *events, *syscalls;
};

/* "syscall_entry_openat" -> "openat"; NULL for anything else. */
static const char *syscall_name(const struct ky_event_source *source)
{
	size_t len = strlen(ENTRY_PREFIX);

	return strncmp(source->name, ENTRY_PREFIX, len) ? NULL : source->name + len;
}

/* Exits are listed with their entries. */
static bool is_syscall_exit(const struct ky_event_source *source)
{
	return ky_event_is_syscall(source->system) && strncmp(source->event, "sys_exit_", 9) == 0;
}

/* ---- choosing --------------------------------------------------------------------------- */

/* As for recording; and "openat" finds the system call. */
static int select_pattern(struct ky_catalogue *catalogue, const char *pattern,
			  struct kymo_error *err)
{
	char entry[KY_EVENT_NAME_BYTES];
	int ret = ky_catalogue_select(catalogue, pattern, true, err);
	int calls;

	snprintf(entry, sizeof(entry), ENTRY_PREFIX "%s", pattern);
	calls = ky_catalogue_select(catalogue, entry, true, NULL);
	return ret == KYMO_E_NOT_FOUND && calls > 0 ? calls : ret;
}

static int cmd_list_choose(struct listing *listing, int n_globs, char **globs,
			   struct kymo_error *err)
{
	struct ky_catalogue *catalogue = &listing->catalogue;
	int ret = KYMO_OK;

	ky_catalogue_select_default(catalogue);
	ky_vec_foreach(&catalogue->events, source) {
		struct item item = {.source = source,
				    .is_default = source->selected,
				    .syscall = syscall_name(source)};

		source->selected = n_globs == 0 && !source->of_bpf;
		if (!is_syscall_exit(source) && ky_vec_push(&listing->items, item) < 0)
			return ky_error_nomem(err);
	}
	for (int i = 0; i < n_globs && ret >= 0; i++)
		ret = select_pattern(catalogue, globs[i], err);
	return ret < 0 ? ret : KYMO_OK;
}

/* An event whose description we cannot read is shown without fields. */
static int read_fields(struct listing *listing, struct item *item, struct kymo_error *err)
{
	const struct ky_event_source *source = item->source;
	char path[2 * KY_EVENT_NAME_BYTES + 32];
	int ret;

	snprintf(path, sizeof(path), "events/%s/%s/format", source->system, source->event);
	ret = ky_event_source_format(source, &listing->fs, &listing->text, err);
	if (ret < 0)
		return ret;
	ret = ky_format_parse(&listing->arena, ky_strbuf_text(&listing->text), listing->text.len,
			      &item->format, err);
	if (ret == KYMO_E_FORMAT) {
		ky_log_warning(&ky_cli_log, "%s/%s: %s", listing->fs.path, path, err->message);
		item->format.n_fields = 0;
		return KYMO_OK;
	}
	if (ret < 0)
		return ret;
	item->n_fields =
		ky_event_fields(&listing->arena, source->system, &item->format, &item->fields);
	return item->n_fields < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- fields ----------------------------------------------------------------------------- */

/* "int32", "char[16]", "string": how the field stands in the trace. */
static void cmd_list_field_type(const struct ky_event_field *field, char type[48])
{
	const char *sign = field->is_signed ? "int" : "uint";
	int bits = field->bytes * 8;

	switch (field->how) {
	case KY_HOW_STRING:
		snprintf(type, 48, "string");
		break;
	case KY_HOW_TEXT:
		snprintf(type, 48, "char[%u]", field->elements);
		break;
	case KY_HOW_COMM:
		snprintf(type, 48, "char[%d]", KY_EVENT_COMM_BYTES);
		break;
	case KY_HOW_ARRAY:
		snprintf(type, 48, "%s%d[%u]", sign, bits, field->elements);
		break;
	case KY_HOW_SEQUENCE:
		snprintf(type, 48, "%s%d[]", sign, bits);
		break;
	default:
		snprintf(type, 48, "%s%d", sign, bits);
	}
}

/* The call's own argument, not what stands before the arguments in the kernel's record. */
static bool is_argument(const struct ky_format_field *field)
{
	return strcmp(field->name, "__syscall_nr") != 0 && strcmp(field->name, "nr") != 0;
}

static void cmd_list_print_field(const struct item *item, int i)
{
	char type[48];

	cmd_list_field_type(&item->fields[i], type);
	printf("      %-10s ", type); /* lint: own text */
	ky_cli_put_text(stdout, item->fields[i].name);
	putchar('\n');
}

static void cmd_list_print_event(const struct listing *listing, const struct item *item)
{
	printf("%c ", item->is_default ? '*' : ' ');
	ky_cli_put_text(stdout, item->source->name);
	putchar('\n');
	for (int i = 0; listing->options->fields && i < item->n_fields; i++)
		cmd_list_print_field(item, i);
}

/* openat(dfd, filename, flags, mode), with --fields as C declares it. */
static void print_syscall(const struct listing *listing, const struct item *item)
{
	const char *comma = "";

	printf("%c ", item->is_default ? '*' : ' ');
	ky_cli_put_text(stdout, item->syscall);
	putchar('(');
	for (size_t i = 0; i < item->format.n_fields; i++) {
		const struct ky_format_field *field = &item->format.fields[i];
		size_t len = strlen(field->type);

		if (!is_argument(field))
			continue;
		fputs(comma, stdout);
		if (listing->options->fields) {
			ky_cli_put_text(stdout, field->type);
			fputs(len && field->type[len - 1] == '*' ? "" : " ", stdout);
		}
		ky_cli_put_text(stdout, field->name);
		comma = ", ";
	}
	puts(")");
}

static json_t *json_field(const char *name, const char *type)
{
	return json_pack("{s:o, s:o}", "name", ky_jansson_text(name), "type",
			 ky_jansson_text(type));
}

static void cmd_list_put_field(const struct item *item, json_t *fields, int i)
{
	char type[48];

	cmd_list_field_type(&item->fields[i], type);
	json_array_append_new(fields, json_field(item->fields[i].name, type));
}

static json_t *cmd_list_event_json(const struct item *item)
{
	json_t *fields = json_array();

	for (int i = 0; i < item->n_fields; i++)
		cmd_list_put_field(item, fields, i);
	return json_pack("{s:o, s:o, s:o, s:b, s:o}", "name", ky_jansson_text(item->source->name),
			 "system", ky_jansson_text(item->source->system), "event",
			 ky_jansson_text(item->source->event), "default", item->is_default,
			 "fields", fields);
}

static void cmd_list_put_argument(const struct ky_format_field *field, json_t *arguments)
{
	if (is_argument(field))
		json_array_append_new(arguments, json_field(field->name, field->type));
}

static json_t *syscall_json(const struct item *item)
{
	json_t *arguments = json_array();

	for (size_t i = 0; i < item->format.n_fields; i++)
		cmd_list_put_argument(&item->format.fields[i], arguments);
	return json_pack("{s:o, s:b, s:o}", "name", ky_jansson_text(item->syscall), "default",
			 item->is_default, "arguments", arguments);
}

/* ---- the list --------------------------------------------------------------------------- */

static bool cmd_list_is_shown(const struct item *item)
{
	return item->source->selected;
}

/* The heading where a subsystem begins. */
static void print_heading(const struct listing *listing, size_t at, const char *last)
{
	const struct item *first = &listing->items.data[at];
	const char *bold = ky_cli_colour(stdout) ? "\033[1m" : "";
	size_t count = 0;

	for (size_t i = at; i < listing->items.len; i++) {
		const struct item *item = &listing->items.data[i];

		if (strcmp(item->source->system, first->source->system) != 0)
			break;
		count += cmd_list_is_shown(item);
	}
	printf("%s%s", last ? "\n" : "", bold);
	ky_cli_put_text(stdout, first->source->system);
	printf("%s: %zu %s%s%s\n", *bold ? "\033[0m" : "", count,
	       first->syscall ? "system call" : "event", count == 1 ? "" : "s",
	       first->syscall ? "; events syscall_entry_NAME, syscall_exit_NAME" : "");
}

static int show_item(struct listing *listing, size_t at, const char **system,
		     struct kymo_error *err)
{
	struct item *item = &listing->items.data[at];
	bool json = listing->options->json;
	int ret = KYMO_OK;

	if (item->syscall || listing->options->fields || json)
		ret = read_fields(listing, item, err);
	if (ret < 0)
		return ret;
	if (json) {
		ret = item->syscall
			      ? json_array_append_new(listing->syscalls, syscall_json(item))
			      : json_array_append_new(listing->events, cmd_list_event_json(item));
		return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
	}
	if (!*system || strcmp(*system, item->source->system) != 0)
		print_heading(listing, at, *system);
	*system = item->source->system;
	if (item->syscall)
		print_syscall(listing, item);
	else
		cmd_list_print_event(listing, item);
	return KYMO_OK;
}

static int cmd_list_show(struct listing *listing, struct kymo_error *err)
{
	const char *system = NULL;
	int ret = KYMO_OK;

	for (size_t i = 0; i < listing->items.len && ret == KYMO_OK; i++)
		if (cmd_list_is_shown(&listing->items.data[i]))
			ret = show_item(listing, i, &system, err);
	if (ret < 0)
		return ret;
	if (!listing->options->json) {
		puts("\nkymo record without --kernel records the events with *.");
		return KYMO_OK;
	}
	return ky_cli_put_json(
		json_pack("{s:O, s:O}", "events", listing->events, "syscalls", listing->syscalls),
		1, err);
}

static int list_all(struct listing *listing, int n_globs, char **globs, struct kymo_error *err)
{
	int ret = ky_catalogue_load(&listing->catalogue, &listing->fs, err);

	if (ret == KYMO_OK && ky_catalogue_add_calls(&listing->catalogue) < 0)
		ret = ky_error_nomem(err);
	if (ret == KYMO_OK)
		ret = cmd_list_choose(listing, n_globs, globs, err);
	if (ret == KYMO_OK)
		ret = cmd_list_show(listing, err);
	ky_catalogue_fini(&listing->catalogue);
	return ret;
}

static int list_kernel(const struct list_options *options, int n_globs, char **globs,
		       struct kymo_error *err)
{
	struct listing listing = {.options = options};
	int ret = ky_tracefs_open(&listing.fs, err);

	if (ret < 0)
		return ret;
	ky_arena_init(&listing.arena);
	listing.events = json_array();
	listing.syscalls = json_array();
	ret = list_all(&listing, n_globs, globs, err);
	json_decref(listing.events);
	json_decref(listing.syscalls);
	ky_vec_fini(&listing.items);
	ky_strbuf_fini(&listing.text);
	ky_arena_fini(&listing.arena);
	ky_tracefs_close(&listing.fs);
	return ret;
}

static int run_list(const struct ky_command *command, void *opaque, int n_args, char **args)
{
	const struct list_options *options = opaque;
	struct kymo_error err;
	int ret;

	if (options->user + options->kernel + options->sdt + options->counters +
		    options->containers >
	    1)
		return ky_cli_usage(command, "--kernel, --user, --sdt, --counters and "
					     "--containers exclude each other");
	if (options->sdt && !n_args)
		return ky_cli_usage(command, "--sdt needs the names of programs or libraries");
	if (options->counters)
		ret = ky_list_counters(options->json, &err);
	else if (options->containers)
		ret = ky_list_containers(options->json, &err);
	else if (options->sdt)
		ret = ky_list_sdt(options->json, n_args, args, &err);
	else if (options->user)
		ret = ky_list_user(options->json, options->fields, n_args, args, &err);
	else
		ret = list_kernel(options, n_args, args, &err);
	return ret < 0 ? ky_cli_error(&err) : KY_EXIT_OK;
}

static const struct ky_option_def list_options[] = {
	{"kernel", 'k', KY_OPTION_FLAG, NULL,
	 "List the kernel's events and system calls (default).",
	 offsetof(struct list_options, kernel), NULL},
	{"user", 'u', KY_OPTION_FLAG, NULL,
	 "List the running programs with libkymo-trace, and their events with log level and source "
	 "line.",
	 offsetof(struct list_options, user), NULL},
	{"sdt", 's', KY_OPTION_FLAG, NULL,
	 "List the SDT (USDT) probes of programs and libraries; the arguments are files or names.",
	 offsetof(struct list_options, sdt), NULL},
	{"counters", 0, KY_OPTION_FLAG, NULL,
	 "List the perf counters of this machine, for kymo record --context: counters of CPUs and "
	 "of threads.",
	 offsetof(struct list_options, counters), NULL},
	{"containers", 0, KY_OPTION_FLAG, NULL,
	 "List the running containers, for kymo record --container: name, runtime, ID, processes, "
	 "control group. The names of control groups show containers of docker, podman, "
	 "containerd, kubernetes, lxc and systemd-nspawn.",
	 offsetof(struct list_options, containers), NULL},
	{"fields", 'f', KY_OPTION_FLAG, NULL,
	 "Show the fields of events, and the types of system calls' arguments.",
	 offsetof(struct list_options, fields), NULL},
	{"json", 0, KY_OPTION_FLAG, NULL, "Write JSON, with all fields.",
	 offsetof(struct list_options, json), NULL},
	{0},
};

const struct ky_command ky_command_list = {
	.name = "list",
	.summary = "list what can be recorded here",
	.usage = "[OPTIONS] [GLOB...]",
	.description =
		"List the kernel's events by subsystem, under the names that they have in a trace, "
		"and its system calls with their arguments. A star marks the events that kymo "
		"record records without --kernel.\n\n"
		"A GLOB matches names in a trace (sched_switch), in the kernel "
		"(sched:sched_switch), of subsystems (sched) and of system calls (open*). kymo "
		"record --kernel takes these names; system call openat is 'syscall_*_openat' "
		"there.\n\n"
		"With --user, list the running programs that are built with libkymo-trace, and "
		"their events. A GLOB then matches PROVIDER:NAME, the provider or the program's "
		"name.\n\n"
		"Reading tracefs needs root, and so do other users' programs.",
	.examples = "# everything\nsudo kymo list\n\n"
		    "# one subsystem, with fields\nsudo kymo list --fields sched\n\n"
		    "# the system calls that open files\nsudo kymo list --fields 'open*'\n\n"
		    "# events of running programs\nkymo list --user --fields\n\n"
		    "# SDT probes of a library\nkymo list --sdt libstdc++.so.6\n\n"
		    "# perf counters\nsudo kymo list --counters\n\n"
		    "# the running containers, and a recording of one\nsudo kymo list "
		    "--containers\n"
		    "sudo kymo record --container 3f4e5d6c7b8a",
	.see_also = "doctor record sessions",
	.options = list_options,
	.options_size = sizeof(struct list_options),
	.min_args = 0,
	.max_args = -1,
	.run = run_list,
};
