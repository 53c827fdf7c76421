/* SPDX-License-Identifier: MIT */
/* kymo ctl: a running recording is changed, or ended. */
#include "cli/terminal/command.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/options/user-options.h"
#include "record/containers/containers.h"
#include "cli/reading/filter-hint.h"
#include "cli/recording/ctl-status.h"
#include "cli/recording/recordings.h"
#include "cli/recording/trigger-requests.h"
#include "record/request/user-program.h"

struct options {
	struct ky_text_list enable, disable, enable_kernel, disable_kernel;
	struct ky_text_list add_pid, add_tid, add_uid, add_cgroup, add_container;
	struct ky_text_list remove_pid, remove_tid, remove_uid, remove_cgroup, remove_container;
	const char *comm;
	const char *filter, *log_level;
	struct ky_text_list triggers, remove_trigger;
	bool list_triggers, pause, resume, clear, status, json;
	bool stop;
};

static int cmd_ctl_ask(const struct ky_control_socket_place *place, const char *what,
		       const char *pattern, const struct options *options, struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0}, answer;
	bool enables = strcmp(what, "enable") == 0;

	ky_control_socket_add(&request, what);
	ky_control_socket_add(&request, pattern);
	ky_control_socket_add(&request, enables && options->filter ? options->filter : "");
	ky_control_socket_add(&request, enables && options->log_level ? options->log_level : "");
	return ky_control_socket_ask(place, &request, 0, &answer, err);
}

/* A container's control group and users' ids are looked for here: the recorder cannot wait for that. */
static int ask_choice(const struct ky_control_socket_place *place, const char *kind,
		      const char *how, const char *text, struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0}, answer;
	char cgroup[KY_CONTAINER_PATH_BYTES] = "";
	struct ky_strbuf uids = KY_STRBUF_INIT;
	struct kymo_error why;
	int ret, found = KYMO_OK;

	if (strcmp(kind, "uid") == 0) {
		ret = ky_cli_user_ids(text, &uids, err);
		if (ret < 0) {
			ky_strbuf_fini(&uids);
			return ret;
		}
		text = ky_strbuf_text(&uids);
	}
	if (strcmp(kind, "container") == 0)
		found = ky_container_cgroup(text, cgroup, &ky_cli_log, &why);
	/* What is to be removed may be gone, and be known to the recorder by this name. */
	if (found < 0 && strcmp(how, "remove") != 0) {
		*err = why;
		return found;
	}
	ky_control_socket_add(&request, "choose");
	ky_control_socket_add(&request, kind);
	ky_control_socket_add(&request, how);
	ky_control_socket_add(&request, text);
	ky_control_socket_add(&request, cgroup);
	ky_strbuf_fini(&uids);
	ret = ky_control_socket_ask(place, &request, 0, &answer, err);
	/* It does not know the name; here it is that of several. */
	if (ret == KYMO_E_STATE && found == KYMO_E_INVALID)
		*err = why;
	return ret;
}

struct choice {
	const char *kind, *how;
	const struct ky_text_list *texts;
};

#define N_CHOICES 10

/* Additions first: so those of one recording can be exchanged for others. */
static void list_choices(const struct options *options, struct choice choices[N_CHOICES])
{
	const struct choice all[N_CHOICES] = {
		{"pid", "add", &options->add_pid},
		{"tid", "add", &options->add_tid},
		{"uid", "add", &options->add_uid},
		{"cgroup", "add", &options->add_cgroup},
		{"container", "add", &options->add_container},
		{"pid", "remove", &options->remove_pid},
		{"tid", "remove", &options->remove_tid},
		{"uid", "remove", &options->remove_uid},
		{"cgroup", "remove", &options->remove_cgroup},
		{"container", "remove", &options->remove_container},
	};

	memcpy(choices, all, sizeof(all));
}

static bool has_choice(const struct options *options)
{
	struct choice choices[N_CHOICES];

	list_choices(options, choices);
	for (size_t i = 0; i < N_CHOICES; i++)
		if (choices[i].texts->len)
			return true;
	return options->comm != NULL;
}

static int ask_choices(const struct ky_control_socket_place *place, const struct options *options,
		       struct kymo_error *err)
{
	struct choice choices[N_CHOICES];
	int ret = KYMO_OK;

	list_choices(options, choices);
	for (size_t i = 0; i < N_CHOICES; i++)
		for (size_t k = 0; k < choices[i].texts->len && !ret; k++)
			ret = ask_choice(place, choices[i].kind, choices[i].how,
					 choices[i].texts->items[k], err);
	return !ret && options->comm ? ask_choice(place, "comm", "add", options->comm, err) : ret;
}

static int ask_all(const struct ky_control_socket_place *place, const struct options *options,
		   struct kymo_error *err)
{
	const struct {
		const char *what;
		const struct ky_text_list *patterns;
	} changes[] = {
		{"disable", &options->disable},
		{"enable", &options->enable},
		{"disable-kernel", &options->disable_kernel},
		{"enable-kernel", &options->enable_kernel},
	};
	int ret = options->pause ? cmd_ctl_ask(place, "pause", "", options, err) : KYMO_OK;

	if (!ret && options->clear)
		ret = cmd_ctl_ask(place, "clear", "", options, err);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		for (size_t k = 0; k < changes[i].patterns->len && !ret; k++)
			ret = cmd_ctl_ask(place, changes[i].what, changes[i].patterns->items[k],
					  options, err);
	}
	if (!ret)
		ret = ask_choices(place, options, err);
	if (!ret && options->resume)
		ret = cmd_ctl_ask(place, "resume", "", options, err);
	if (!ret && options->status)
		ret = ky_ctl_print_status(place, options->json, err);
	return !ret && options->stop ? cmd_ctl_ask(place, "stop", "", options, err) : ret;
}

static bool cmd_ctl_has_event(const struct ky_programs *programs, const char *pattern)
{
	char name[KY_USER_EVENT_NAME_BYTES];
	struct ky_user_event event;

	ky_vec_foreach(&programs->list, program) {
		for (size_t at = 0; ky_program_next_event(*program, &at, &event);) {
			ky_user_event_name(&event, name);
			if (!event.is_query && ky_glob_match(pattern, name))
				return true;
		}
	}
	return false;
}

/* The recorder waits for such events as long as it runs; a pattern that is mistyped never comes. */
static void warn_of_unknown(const struct options *options)
{
	struct ky_programs programs = {0};
	struct kymo_error err;

	if (options->enable.len && ky_programs_scan(&programs, &err) == 0) {
		for (size_t i = 0; i < options->enable.len; i++) {
			if (!cmd_ctl_has_event(&programs, options->enable.items[i]))
				ky_log_warning(
					&ky_cli_log,
					"no running program has an event that matches '%s'; the "
					"recorder takes it from programs that start later "
					"('kymo list --user' shows the events there are)",
					options->enable.items[i]);
		}
	}
	ky_programs_fini(&programs);
}

static bool is_about_triggers(const struct options *options)
{
	return options->triggers.len || options->remove_trigger.len || options->list_triggers;
}

static int ask_triggers(const struct ky_control_socket_place *place, const struct options *options,
			const struct ky_trigger_rules *rules, struct kymo_error *err)
{
	int ret = ky_trigger_requests_remove(place, &options->remove_trigger, err);

	if (!ret)
		ret = ky_trigger_requests_add(place, rules, err);
	if (!ret && options->list_triggers)
		ret = ky_trigger_requests_list(place, options->json, err);
	return ret;
}

static bool has_order(const struct options *options)
{
	return options->pause || options->resume || options->clear || options->status ||
	       options->stop;
}

static int run_ctl(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	struct ky_control_socket_place place;
	struct ky_trigger_rules rules;
	struct kymo_error err;
	int ret;

	if (!options->enable.len && !options->disable.len && !options->enable_kernel.len &&
	    !options->disable_kernel.len && !has_choice(options) && !is_about_triggers(options) &&
	    !has_order(options))
		return ky_cli_usage(command, "say what is to be changed, or --status");
	if (options->pause && options->resume)
		return ky_cli_usage(command, "--pause and --resume exclude each other");
	if (!options->enable.len && (options->filter || options->log_level))
		return ky_cli_usage(command, "--filter and --loglevel need --enable-event");
	ky_cli_hint_filter(options->filter);
	ky_cli_hint_rules(&options->enable_kernel);
	ret = ky_trigger_options_parse(command, &options->triggers, &rules);
	if (ret) {
		ky_trigger_rules_fini(&rules);
		return ret;
	}
	ret = ky_recordings_find(n_args ? args[0] : NULL, false, &place, &err);
	if (!ret)
		ret = ask_triggers(&place, options, &rules, &err);
	ky_trigger_rules_fini(&rules);
	if (!ret)
		ret = ask_all(&place, options, &err);
	if (ret < 0)
		return ky_cli_error(&err);
	warn_of_unknown(options);
	return KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {
	{"enable-event", 'e', KY_OPTION_LIST, "PATTERN",
	 "Add the programs' events that match: PROVIDER:NAME, where '*' matches any characters. "
	 "For a pattern of the recording, the new filter and log level replace the old ones. May "
	 "be given again.",
	 offsetof(struct options, enable), NULL},
	{"disable-event", 'x', KY_OPTION_LIST, "PATTERN",
	 "Stop recording the programs' events that match. May be given again. The recorder applies "
	 "it before --enable-event.",
	 offsetof(struct options, disable), NULL},
	{"filter", 0, KY_OPTION_TEXT, "EXPR",
	 "For --enable-event: only events for which EXPR is true, as with kymo record.",
	 offsetof(struct options, filter), NULL},
	{"loglevel", 0, KY_OPTION_TEXT, "LEVEL",
	 "For --enable-event: only events with this log level, as with kymo record.",
	 offsetof(struct options, log_level), KY_CLI_LOG_LEVELS},
	{"enable-kernel", 0, KY_OPTION_LIST, "EVENTS[ if EXPR]",
	 "Add these kernel events: a list as for kymo record --kernel. For events of the "
	 "recording, the new filter (or none) replaces the old one. May be given again.",
	 offsetof(struct options, enable_kernel), NULL},
	{"disable-kernel", 0, KY_OPTION_LIST, "PATTERN",
	 "Stop recording the kernel events that match.", offsetof(struct options, disable_kernel),
	 NULL},
	{"add-pid", 0, KY_OPTION_LIST, "PID[,PID...]",
	 "Add the kernel events of these processes and of their children, and the events of these "
	 "programs. A recording of the whole machine then records only these processes.",
	 offsetof(struct options, add_pid), NULL},
	{"add-tid", 0, KY_OPTION_LIST, "TID[,TID...]", "Add the kernel events of these threads.",
	 offsetof(struct options, add_tid), NULL},
	{"add-uid", 0, KY_OPTION_LIST, "USER[,USER...]",
	 "Add the kernel events of the processes of these users, given by ID or name, including "
	 "processes that change to these users later, and the events of their programs.",
	 offsetof(struct options, add_uid), NULL},
	{"add-cgroup", 0, KY_OPTION_LIST, "DIR",
	 "Add the kernel events of the processes in this control group, as for kymo record "
	 "--cgroup, including processes that join it later. May be given again.",
	 offsetof(struct options, add_cgroup), NULL},
	{"add-container", 0, KY_OPTION_LIST, "NAME",
	 "The same for this container, as for kymo record --container. May be given again.",
	 offsetof(struct options, add_container), NULL},
	{"remove-pid", 0, KY_OPTION_LIST, "PID[,PID...]",
	 "Stop recording the kernel events of these processes, and the events of these programs. "
	 "Their children stay in the recording. A selected user or control group does not add the processes again, unless "
	 "--add-pid, --add-uid or --add-cgroup adds them. The trace may still contain their "
	 "switches to and from a CPU. Before Linux 5.7, the kernel records nothing during the "
	 "change.",
	 offsetof(struct options, remove_pid), NULL},
	{"remove-tid", 0, KY_OPTION_LIST, "TID[,TID...]", "The same for threads.",
	 offsetof(struct options, remove_tid), NULL},
	{"remove-uid", 0, KY_OPTION_LIST, "USER[,USER...]",
	 "The same for the processes of these users, except processes in control groups that are "
	 "still selected.",
	 offsetof(struct options, remove_uid), NULL},
	{"remove-cgroup", 0, KY_OPTION_LIST, "DIR",
	 "The same for the processes in this control group, except processes of another group or "
	 "of a user that is still selected. May be given again.",
	 offsetof(struct options, remove_cgroup), NULL},
	{"remove-container", 0, KY_OPTION_LIST, "NAME",
	 "The same for this container. A container that has ended can be removed by the name that "
	 "added it. May be given again.",
	 offsetof(struct options, remove_container), NULL},
	{"comm", 0, KY_OPTION_TEXT, "NAME",
	 "Record only the kernel events in or about threads with this name from now on; an empty "
	 "NAME selects all threads.",
	 offsetof(struct options, comm), NULL},
	KY_OPTION_WHEN(struct options, triggers),
	KY_OPTION_DO(struct options, triggers),
	{"remove-trigger", 0, KY_OPTION_LIST, "N",
	 "Remove the trigger with this number, or all triggers ('all'). May be given again. The "
	 "recorder applies it before --when.",
	 offsetof(struct options, remove_trigger), NULL},
	{"triggers", 0, KY_OPTION_FLAG, NULL,
	 "Show the recording's triggers: number, how often each one fired, how often its limits "
	 "held it back, events that came too fast for its condition, condition and actions.",
	 offsetof(struct options, list_triggers), NULL},
	{"status", 0, KY_OPTION_FLAG, NULL,
	 "Show the recording in detail, after the changes: rules, events and losses of each CPU "
	 "and program, fill of the buffers, disk.",
	 offsetof(struct options, status), NULL},
	{"json", 0, KY_OPTION_FLAG, NULL, "With --status or --triggers: print JSON.",
	 offsetof(struct options, json), NULL},
	{"pause", 0, KY_OPTION_FLAG, NULL,
	 "Record nothing until --resume. A paused recording costs the kernel and programs nothing. "
	 "Other changes take effect when the recording resumes.",
	 offsetof(struct options, pause), NULL},
	{"resume", 0, KY_OPTION_FLAG, NULL,
	 "Continue a paused recording in the same trace, after the other changes.",
	 offsetof(struct options, resume), NULL},
	{"clear", 0, KY_OPTION_FLAG, NULL,
	 "Drop what was recorded so far: a flight recorder forgets its events, and another "
	 "recording begins its traces anew. Complete chunks and snapshots stay.",
	 offsetof(struct options, clear), NULL},
	{"stop", 0, KY_OPTION_FLAG, NULL, "End the recording after the changes, as Ctrl-C does.",
	 offsetof(struct options, stop), NULL},
	{0},
};

const struct ky_command ky_command_ctl = {
	.name = "ctl",
	.is_rare = true,
	.summary = "change, pause or examine a running recording",
	.usage = "[OPTIONS] [RECORDING]",
	.description =
		"Changes which events a running kymo record records. Programs see the change at "
		"their next event. The trace stays the same.\n\n"
		"RECORDING is the recording's name, its number or the directory of its trace "
		"(kymo sessions shows them). It may be left out while only one recording runs. A "
		"recorder answers its user and root. Root's own recordings come before those of "
		"other users with the same name.\n\n"
		"Context fields cannot change: they are part of every event's layout. For other "
		"context fields, start a second recording; the number of recordings has no limit.",
	.examples =
		"# more events, for a while\nkymo ctl --enable-event 'shop:stock_*' --filter "
		"'items > 100'\n"
		"kymo ctl --disable-event 'shop:stock_*'\n\n"
		"# other kernel events, with a filter, of this process only\n"
		"kymo ctl --enable-kernel 'syscall:read if ret > 4096' --add-pid 4711\n\n"
		"# another container from now on\nkymo ctl --add-container db --remove-container "
		"web\n\n"
		"# a snapshot when a system call takes too long, from now on\n"
		"kymo ctl always --when 'syscall_exit_fsync with duration > 100ms' --do snapshot\n"
		"kymo ctl always --triggers\nkymo ctl always --remove-trigger 1\n\n"
		"# how far it is; nothing while the backup runs\nkymo ctl web --status\nkymo ctl "
		"web --pause\nkymo ctl web --resume\n\n"
		"# one of several recordings; end it\nkymo ctl my-trace --stop",
	.see_also = "record sessions snapshot rotate",
	.names_recording = true,
	.options = option_defs,
	.options_size = sizeof(struct options),
	.min_args = 0,
	.max_args = 1,
	.run = run_ctl,
};
