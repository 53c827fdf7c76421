/* SPDX-License-Identifier: MIT */
/* One recording in the list of recordings: as text and as JSON. */
#include "cli/recording/recordings.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "cli/terminal/command.h"
#include "os/now.h"

/* What is recorded: words of a status, and options of kymo record. */
static const char *const kinds[] = {"kernel", "probe", "sdt", "kprobe", "sample", "user", "group"};
/* Numbers of a status: how far the recording is. */
static const char *const counters[] = {"events",   "lost",   "bytes", "fill",
				       "programs", "queued", "spill", "spilled"};
/* Those of the "user" rule that they follow. */
static const char *const conditions[] = {"filter", "loglevel", "exclude"};

void ky_recordings_print_owner(const struct ky_control_socket_place *place)
{
	const struct passwd *user = place->is_own ? NULL : getpwuid(place->uid);

	if (place->is_own)
		return;
	fputs(" of ", stdout);
	if (user)
		ky_cli_put_text(stdout, user->pw_name);
	else
		printf("user %u", (unsigned int)place->uid);
}

/* Changes since the start that the rules above do not show, in their order. */
static void print_changes(const struct ky_control_socket_message *status)
{
	const char *change;

	for (unsigned int i = 0; (change = ky_recordings_value(status, "change", i)); i++) {
		fputs("         then ctl --", stdout);
		ky_cli_put_text(stdout, change);
		putchar('\n');
	}
}

/* The conditions of a rule follow its word. */
static void print_rules(const struct ky_control_socket_message *status)
{
	const char *word, *text;
	size_t at = 0;

	(void)ky_control_socket_next(status, &at); /* "ok" */
	while ((word = ky_control_socket_next(status, &at)) &&
	       (text = ky_control_socket_next(status, &at))) {
		bool is_rule = false;

		for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
			is_rule = is_rule || strcmp(word, kinds[k]) == 0;
		for (size_t k = 0; k < sizeof(conditions) / sizeof(conditions[0]) && !is_rule; k++)
			is_rule = strcmp(word, conditions[k]) == 0;
		if (!is_rule)
			continue;
		printf("         --%s ", word); /* lint: own text: it is one of the lists' */
		ky_cli_put_text(stdout, text);
		putchar('\n');
	}
	print_changes(status);
}

uint64_t ky_recordings_number(const struct ky_control_socket_message *status, const char *name)
{
	return strtoull(ky_recordings_word(status, name), NULL, 10);
}

/* How far it is; recorders of other versions do not say. */
static void print_progress(const struct ky_control_socket_message *status)
{
	uint64_t programs = ky_recordings_number(status, "programs");
	char size[32];

	if (!*ky_recordings_word(status, "events"))
		return;
	printf("         %" PRIu64 " events, %" PRIu64 " lost, %s written",
	       ky_recordings_number(status, "events"), ky_recordings_number(status, "lost"),
	       ky_format_bytes(size, ky_recordings_number(status, "bytes")));
	if (*ky_recordings_word(status, "fill"))
		printf(", kernel buffer %" PRIu64 " %% full", ky_recordings_number(status, "fill"));
	if (*ky_recordings_word(status, "programs"))
		printf(", %" PRIu64 " program%s", programs, programs == 1 ? "" : "s");
	if (ky_recordings_number(status, "queued"))
		printf(", %s wait for the relay",
		       ky_format_bytes(size, ky_recordings_number(status, "queued")));
	if (ky_recordings_number(status, "spilled"))
		printf(", %s in the spill file",
		       ky_format_bytes(size, ky_recordings_number(status, "spill")));
	putchar('\n');
}

/* Whether it is paused, or was. */
static void print_pauses(const struct ky_control_socket_message *status)
{
	uint64_t n = ky_recordings_number(status, "pauses");
	char time[32];

	if (strcmp(ky_recordings_word(status, "state"), "paused") == 0)
		fputs(", paused now", stdout);
	if (n)
		printf(", %s in %" PRIu64 " pause%s",
		       ky_format_duration(time, ky_recordings_number(status, "paused_ns")), n,
		       n == 1 ? "" : "s");
	putchar('\n');
}

void ky_recordings_print_one(const struct ky_control_socket_place *place,
			     const struct ky_control_socket_message *status)
{
	int64_t start_ns = strtoll(ky_recordings_word(status, "start"), NULL, 10);
	const char *name;
	char time[32];

	start_ns = ky_os_time_ns(CLOCK_REALTIME) - start_ns;
	name = ky_recordings_word(status, "name");
	ky_cli_put_padded(stdout, *name ? name : ky_control_socket_name(place->path), 8);
	putchar(' ');
	ky_cli_put_text(stdout, ky_recordings_word(status, "output"));
	printf("  %s", strcmp(ky_recordings_word(status, "mode"), "flight") == 0 ? "flight recorder"
										 : "recording");
	ky_recordings_print_owner(place);
	printf(", for %s", ky_format_duration(time, start_ns > 0 ? (uint64_t)start_ns : 0));
	print_pauses(status);
	print_progress(status);
	print_rules(status);
}

static json_t *words_json(const struct ky_control_socket_message *status, const char *name)
{
	json_t *list = json_array();
	const char *word;

	for (unsigned int i = 0; (word = ky_recordings_value(status, name, i)); i++)
		json_array_append_new(list, ky_jansson_text(word));
	return list;
}

/* One object for each rule of programs' events: its pattern, and its conditions as lists. */
static json_t *rules_json(const struct ky_control_socket_message *status)
{
	json_t *rules = json_array(), *rule = NULL, *list;
	const char *word, *text;
	size_t at = 0;

	(void)ky_control_socket_next(status, &at); /* "ok" */
	while ((word = ky_control_socket_next(status, &at)) &&
	       (text = ky_control_socket_next(status, &at))) {
		if (strcmp(word, "user") == 0) {
			rule = json_pack("{s:o}", "pattern", ky_jansson_text(text));
			json_array_append_new(rules, rule);
		}
		for (size_t k = 0; k < sizeof(conditions) / sizeof(conditions[0]) && rule; k++) {
			if (strcmp(word, conditions[k]) != 0)
				continue;
			list = json_object_get(rule, word);
			if (!list) {
				list = json_array();
				json_object_set_new(rule, word, list);
			}
			json_array_append_new(list, ky_jansson_text(text));
		}
	}
	return rules;
}

json_t *ky_recordings_json(const struct ky_control_socket_place *place,
			   const struct ky_control_socket_message *status)
{
	json_t *recording = json_pack(
		"{s:s, s:I, s:I, s:o, s:o, s:I}", "id", ky_control_socket_name(place->path), "pid",
		(json_int_t)strtoll(ky_recordings_word(status, "pid"), NULL, 10), "uid",
		(json_int_t)place->uid, "output",
		ky_jansson_text(ky_recordings_word(status, "output")), "mode",
		ky_jansson_text(ky_recordings_word(status, "mode")), "start_ns",
		(json_int_t)strtoll(ky_recordings_word(status, "start"), NULL, 10));

	json_object_set_new(recording, "name",
			    *ky_recordings_word(status, "name")
				    ? ky_jansson_text(ky_recordings_word(status, "name"))
				    : json_null());
	for (size_t k = 0; k < sizeof(counters) / sizeof(counters[0]); k++)
		if (*ky_recordings_word(status, counters[k]))
			json_object_set_new(recording, counters[k],
					    json_integer((json_int_t)ky_recordings_number(
						    status, counters[k])));
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
		json_object_set_new(recording, kinds[k], words_json(status, kinds[k]));
	json_object_set_new(recording, "state",
			    json_string(strcmp(ky_recordings_word(status, "state"), "paused") == 0
						? "paused"
						: "on"));
	json_object_set_new(recording, "pauses",
			    json_integer((json_int_t)ky_recordings_number(status, "pauses")));
	json_object_set_new(recording, "paused_ns",
			    json_integer((json_int_t)ky_recordings_number(status, "paused_ns")));
	json_object_set_new(recording, "user_rules", rules_json(status));
	json_object_set_new(recording, "changes", words_json(status, "change"));
	return recording;
}
