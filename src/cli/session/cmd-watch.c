/* SPDX-License-Identifier: MIT */
/* kymo watch: what happens to a recording, line by line, while it runs. */
#include "cli/terminal/command.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "ctf/json/json.h"
#include "cli/recording/recordings.h"
#include "record/triggers/trigger-firing.h"

struct options {
	bool json;
	uint64_t count;
};

struct line {
	const char *kind, *text, *json;
	int64_t ns;
};

/* "missed 5": lines that this process read too late. */
static void put_missed(struct ky_strbuf *out, const char *n, bool json)
{
	if (json)
		ky_strbuf_addf(out, "{\"kind\": \"missed\", \"lines\": %" PRIu64 "}",
			       (uint64_t)strtoull(n, NULL, 10));
	else
		ky_strbuf_addf(out,
			       "%" PRIu64 " lines are missing here: kymo watch read too slowly",
			       (uint64_t)strtoull(n, NULL, 10));
}

static void cmd_watch_put_json(struct ky_strbuf *out, const struct line *line)
{
	char time[KY_TRIGGER_TIME_BYTES];

	ky_strbuf_adds(out, "{\"kind\": ");
	ky_json_put_text(out, line->kind, strlen(line->kind));
	if (strcmp(line->kind, "trigger") != 0) {
		ky_trigger_time(time, line->ns);
		ky_strbuf_addf(out, ", \"time_ns\": %" PRId64 ", \"time\": \"%s\"", line->ns, time);
	}
	if (*line->json)
		ky_strbuf_addf(out, ", %s", line->json);
	ky_strbuf_addc(out, '}');
}

static void cmd_watch_put_text(struct ky_strbuf *out, const struct line *line)
{
	char time[KY_TRIGGER_TIME_BYTES];

	if (strcmp(line->kind, "trigger") != 0) {
		ky_trigger_time(time, line->ns);
		ky_strbuf_addf(out, "%s %s: ", time, line->kind);
	}
	ky_strbuf_adds(out, line->text);
}

/* Returns whether it was the last line. */
static bool cmd_watch_put_line(const struct ky_control_socket_message *message, bool json)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	const char *kind, *text, *more, *ns;
	size_t at = 0;
	bool is_end;

	kind = ky_control_socket_next(message, &at);
	text = ky_control_socket_next(message, &at);
	more = ky_control_socket_next(message, &at);
	ns = ky_control_socket_next(message, &at);
	is_end = kind && strcmp(kind, "end") == 0;
	if (kind && text) {
		const struct line line = {kind, text, more ? more : "",
					  ns ? strtoll(ns, NULL, 10) : 0};

		if (strcmp(kind, "missed") == 0)
			put_missed(&out, text, json);
		else if (json)
			cmd_watch_put_json(&out, &line);
		else
			cmd_watch_put_text(&out, &line);
		if (json)
			fputs(ky_strbuf_text(&out),
			      stdout); /* lint: own text: JSON escapes the rest */
		else
			ky_cli_put_text(stdout, ky_strbuf_text(&out));
		putchar('\n');
		fflush(stdout);
	}
	ky_strbuf_fini(&out);
	return is_end;
}

static int cmd_watch_follow(int fd, const struct options *options)
{
	struct ky_control_socket_message message;
	uint64_t n = 0;
	struct kymo_error err;

	while (ky_control_socket_wait(fd, &message)) {
		n++;
		if (cmd_watch_put_line(&message, options->json) || ky_cli_pipe_closed() ||
		    n == options->count)
			return KY_EXIT_OK;
	}
	ky_error_set(&err, KYMO_E_IO, "the recorder has ended without a word");
	return ky_cli_error(&err);
}

static int run_watch(const struct ky_command *command, void *data, int n_args, char **args)
{
	const struct options *options = data;
	struct ky_control_socket_message request = {.len = 0};
	struct ky_control_socket_place place;
	struct kymo_error err;
	int fd, code, ret = ky_recordings_find(n_args ? args[0] : NULL, false, &place, &err);

	(void)command;
	ky_control_socket_add(&request, "watch");
	if (!ret)
		ret = ky_control_socket_subscribe(&place, &request, &fd, &err);
	if (ret < 0)
		return ky_cli_error(&err);
	code = cmd_watch_follow(fd, options);
	close(fd);
	return code;
}

static const struct ky_option_def option_defs[] = {
	{"json", 0, KY_OPTION_FLAG, NULL, "Print one JSON object per line, for scripts.",
	 offsetof(struct options, json), NULL},
	{"count", 'n', KY_OPTION_U64, "N", "End after N lines. Default: at the recording's end.",
	 offsetof(struct options, count), NULL},
	{0},
};

const struct ky_command ky_command_watch = {
	.name = "watch",
	.is_rare = true,
	.summary = "print what happens to a running recording, line by line",
	.usage = "[OPTIONS] [RECORDING]",
	.description =
		"Prints a line for each trigger that fires with the action notify, and for each "
		"snapshot, rotation, loss of events, and end of a trigger's command, until the "
		"recording ends. A line has the time in UTC.\n\n"
		"RECORDING is the recording's name, its number or the directory of its trace (kymo "
		"sessions shows them). It may be left out while one recording runs.\n\n"
		"The recorder never waits for kymo watch: lines that do not fit into the queue (about 200 KiB) "
		"are missing, and a line says how many. Up to 16 processes can watch a recording. kymo record "
		"--when and kymo ctl --when define triggers.",
	.examples =
		"# each switch to a real-time thread that waited for more than 1 ms\n"
		"kymo record --name rt --background --overwrite --when 'sched_waking -> sched_switch by tid=next_tid with "
		"duration > 1ms' --do notify\n"
		"kymo watch rt\n\n"
		"# the next line, for a script\nkymo watch --json -n 1 rt\n",
	.see_also = "record ctl sessions",
	.names_recording = true,
	.options = option_defs,
	.options_size = sizeof(struct options),
	.max_args = 1,
	.run = run_watch,
};
