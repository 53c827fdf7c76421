/* SPDX-License-Identifier: MIT */
/* What happens to recordings of policies, for their clients; and their files, which the clients fetch. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli/daemon/daemon-policies-internal.h"
#include "os/now.h"

/* How long a client may be silent between two files: it copies the first one meanwhile, which may be large. */
#define FETCH_S 3600

/* ---- files ----------------------------------------------------------------------------- */

/* The files of a recording that has ended: first its log, then one by one as the client asks. */
static void begin_fetch(struct ky_policy_client *client, const char *directory, const char *log)
{
	struct ky_policy_recording *recording = client->recording;
	struct ky_control_socket_message message = {.len = 0};
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct kymo_error err;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", recording->path, directory);
	if (ky_policy_fetch_begin(client, path, &err) < 0) {
		ky_policy_client_refuse(client, &err);
		return;
	}
	ky_policy_client_wait(client, KY_POLICY_FETCHES, FETCH_S);
	if (!client->is_snapshot)
		recording->is_fetched = true;
	ky_policy_log(recording, log, &text);
	ky_control_socket_add(&message, "ok");
	ky_control_socket_add(&message, recording->name);
	ky_control_socket_add(&message, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	(void)ky_policy_client_answer(client, &message);
}

void ky_policy_hand_over(struct ky_policy_client *client)
{
	struct kymo_error err;

	if (client->recording->is_fetched) {
		ky_error_set(&err, KYMO_E_STATE, "another process fetches '%s'",
			     client->recording->name);
		ky_policy_client_refuse(client, &err);
		return;
	}
	begin_fetch(client, "trace", "log");
}

void ky_policy_take_fetch(struct ky_policy_client *client, enum ky_daemon_request_kind kind)
{
	if (kind == KY_DAEMON_NEXT) {
		client->until_s = ky_os_now_s() + FETCH_S;
		if (ky_policy_fetch_next(client) < 0)
			ky_policy_client_drop(client);
	} else if (kind == KY_DAEMON_DONE && client->next == client->files.len &&
		   !client->is_snapshot) {
		ky_policy_recording_remove(client->recording);
	} else {
		ky_policy_client_drop(client);
	}
}

/* ---- begin and end --------------------------------------------------------------------- */

static struct ky_policy_client *
daemon_hand_over_client_of(const struct ky_policy_recording *recording, enum ky_policy_wait wait)
{
	ky_vec_foreach(&recording->policies->clients, it)
		if ((*it)->recording == recording && (*it)->wait == wait)
			return *it;
	return NULL;
}

void ky_policy_has_begun(struct ky_policy_recording *recording)
{
	struct ky_policy_client *client =
		daemon_hand_over_client_of(recording, KY_POLICY_FOR_START);
	struct ky_control_socket_message message = {.len = 0};

	ky_policies_look_soon(recording->policies);
	if (!client)
		return;
	ky_control_socket_add(&message, "ok");
	ky_control_socket_add(&message, recording->name);
	ky_policy_add_number(&message, recording->duration_ns);
	client->wait = client->in_background ? KY_POLICY_IDLE : KY_POLICY_FOREGROUND;
	if (client->in_background) {
		client->recording = NULL;
		ky_policy_client_wait(client, KY_POLICY_IDLE, KY_POLICY_SILENCE_S);
	}
	(void)ky_policy_client_answer(client, &message);
}

/* The last line of a log, without "kymo: " at its beginning. */
static void last_line(struct ky_policy_recording *recording, const char *log,
		      struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char *line;

	ky_policy_log(recording, log, &text);
	while (text.len && text.data[text.len - 1] == '\n')
		text.data[--text.len] = '\0';
	line = text.len ? strrchr(text.data, '\n') : NULL;
	line = line ? line + 1 : text.data;
	if (line && strncmp(line, "kymo: ", 6) == 0)
		line += 6;
	ky_error_set(err, KYMO_E_STATE, "the recorder says: %s", line && *line ? line : "nothing");
	ky_strbuf_fini(&text);
}

/* It has not begun: its client gets the reason. */
static void has_failed(struct ky_policy_recording *recording)
{
	struct ky_policy_client *client =
		daemon_hand_over_client_of(recording, KY_POLICY_FOR_START);
	struct kymo_error err;

	last_line(recording, "log", &err);
	if (client) {
		client->wait = KY_POLICY_IDLE;
		client->recording = NULL;
	}
	/* Before the answer: with it, the user may begin the next one. */
	ky_policy_recording_remove(recording);
	if (client)
		ky_policy_client_refuse(client, &err);
}

int ky_policy_has_ended(struct ky_policy_recording *recording, bool had_begun)
{
	struct ky_policies *policies = recording->policies;
	struct ky_policy_client *client;

	if (!had_begun) {
		has_failed(recording);
	} else {
		client = daemon_hand_over_client_of(recording, KY_POLICY_FOREGROUND);
		if (client)
			ky_policy_hand_over(client);
		while ((client = daemon_hand_over_client_of(recording, KY_POLICY_FOR_END))) {
			client->wait = KY_POLICY_IDLE;
			ky_policy_hand_over(client);
		}
	}
	if (!policies->ends || ky_policies_any_runs(policies))
		return KYMO_OK;
	return policies->options.ended(policies->options.data);
}

void ky_policy_has_snapshot(struct ky_policy_recording *recording, struct ky_policy_client *client,
			    bool is_whole)
{
	struct kymo_error err;

	if (is_whole) {
		begin_fetch(client, "snapshot", "snapshot-log");
		return;
	}
	last_line(recording, "snapshot-log", &err);
	ky_policy_client_refuse(client, &err);
}
