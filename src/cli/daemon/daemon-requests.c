/* SPDX-License-Identifier: MIT */
/* What users ask of the daemon. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/daemon/daemon-policies-internal.h"
#include "cli/terminal/command.h"
#include "os/now.h"
#include "record/control/daemon-request.h"

/* How long a recorder that is asked may be silent. */
#define STATUS_S     5
#define POLICIES_MAX 256

/* ---- policies ------------------------------------------------------------------------- */

/* Root may have everything anyway. */
static bool may_have(const struct ky_policy_client *client, const struct ky_policy *policy)
{
	bool may = client->uid == 0 || client->uid == geteuid();

	ky_vec_foreach(&policy->groups, gid)
		may = may || ky_daemon_socket_has_group(client->fd, *gid);
	return may;
}

/* Calls @found for each policy that the client may have. */
static void each_policy(const struct ky_policy_client *client,
			void (*found)(void *data, const char *name, const struct ky_policy *policy),
			void *data)
{
	const char *profiles = client->policies->options.profiles;
	DIR *dir = opendir(profiles);
	struct dirent *entry;
	char name[256];
	int n = 0;

	while (dir && n < POLICIES_MAX && (entry = readdir(dir))) {
		struct ky_policy policy;

		if (!ky_policy_file_name(entry->d_name, KY_POLICY_SUFFIX, name) ||
		    strlen(name) > KY_POLICY_NAME_MAX)
			continue;
		n++;
		if (ky_policy_read(profiles, name, &policy, NULL) == 0 && may_have(client, &policy))
			found(data, name, &policy);
		ky_policy_fini(&policy);
	}
	if (dir)
		closedir(dir);
}

static void daemon_requests_add_name(void *data, const char *name, const struct ky_policy *policy)
{
	struct ky_strbuf *names = data;

	(void)policy;
	ky_strbuf_addf(names, "%s%s", names->len ? ", " : "", name);
}

/* The same answer for a policy that is not there and for one of other groups. */
static int no_policy(const struct ky_policy_client *client, const char *name,
		     struct kymo_error *err)
{
	struct ky_strbuf names = KY_STRBUF_INIT;

	each_policy(client, daemon_requests_add_name, &names);
	ky_error_set(err, KYMO_E_PERMISSION, "there is no policy '%.64s' for you", name);
	if (names.len)
		ky_error_hint(err, "yours are: %s", ky_strbuf_text(&names));
	else
		ky_error_hint(
			err,
			"none of your groups has a policy; 'id' shows the groups of this process");
	ky_strbuf_fini(&names);
	return KYMO_E_PERMISSION;
}

static int read_policy(const struct ky_policy_client *client, const char *name,
		       struct ky_policy *policy, struct kymo_error *err)
{
	struct kymo_error cause;
	int ret = KYMO_E_NOT_FOUND;

	*policy = (struct ky_policy){.own = false};
	if (strlen(name) <= KY_POLICY_NAME_MAX && ky_policy_file_name(name, "", (char[256]){0}))
		ret = ky_policy_read(client->policies->options.profiles, name, policy, &cause);
	if (!ret && may_have(client, policy))
		return KYMO_OK;
	/* Mistakes concern the administrator, so they go to the daemon's log. */
	if (ret < 0 && ret != KYMO_E_NOT_FOUND)
		(void)ky_cli_error(&cause);
	return no_policy(client, name, err);
}

/* ---- requests ------------------------------------------------------------------------- */

/* The time that the client wants, or the policy's. */
static int choose_duration(const struct ky_policy *policy, uint64_t wanted_ns,
			   uint64_t *duration_ns, struct kymo_error *err)
{
	char limit[32];

	*duration_ns = policy->duration_ns ? policy->duration_ns : policy->max_duration_ns;
	if (wanted_ns)
		*duration_ns = wanted_ns;
	if (*duration_ns <= policy->max_duration_ns)
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_INVALID, "the policy allows at most %s",
			    ky_format_setting(limit, policy->max_duration_ns));
}

static int take_record(struct ky_policy_client *client, const struct ky_daemon_request *request,
		       struct kymo_error *err)
{
	struct ky_policy_recording *recording = NULL;
	struct ky_policy policy;
	uint64_t duration_ns;
	int ret = read_policy(client, request->id, &policy, err);

	if (!ret)
		ret = choose_duration(&policy, request->duration_ns, &duration_ns, err);
	if (!ret && request->own && (policy.chooses || policy.has_user))
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "the policy chooses its processes; it cannot record only yours");
	if (!ret)
		ret = ky_policy_recording_start(client->policies, &policy, request->id, client->uid,
						duration_ns, request->own || policy.own, &recording,
						err);
	ky_policy_fini(&policy);
	if (ret < 0)
		return ret;
	client->recording = recording;
	client->in_background = request->in_background;
	ky_policy_client_wait(client, KY_POLICY_FOR_START, 0);
	return KYMO_OK;
}

/* The client's own recording: by name, by policy, or the only one. */
static int daemon_requests_find(const struct ky_policy_client *client, const char *id,
				struct ky_policy_recording **found, struct kymo_error *err)
{
	unsigned int n = 0;

	ky_vec_foreach(&client->policies->recordings, it) {
		if ((*it)->uid != client->uid)
			continue;
		if (strcmp((*it)->name, id) == 0) {
			*found = *it;
			return KYMO_OK;
		}
		if (!*id || strcmp((*it)->policy, id) == 0) {
			*found = *it;
			n++;
		}
	}
	if (n == 1)
		return KYMO_OK;
	if (n)
		ky_error_set(err, KYMO_E_INVALID, "you have %u such recordings; name one", n);
	else
		ky_error_set(err, KYMO_E_NOT_FOUND, "you have no recording '%.64s' of a policy",
			     id);
	ky_error_hint(err, "'kymo sessions' shows them");
	return err->code;
}

static int take_stop(struct ky_policy_client *client, const char *id, struct kymo_error *err)
{
	int ret = daemon_requests_find(client, id, &client->recording, err);

	if (ret < 0)
		return ret;
	ky_policy_client_wait(client, KY_POLICY_FOR_END, 0);
	if (ky_policy_is_active(client->recording))
		ky_policy_recording_end(client->recording);
	else
		ky_policy_hand_over(client);
	return KYMO_OK;
}

static int daemon_requests_find_running(struct ky_policy_client *client, const char *id,
					struct ky_policy_recording **recording,
					struct kymo_error *err)
{
	int ret = daemon_requests_find(client, id, recording, err);

	if (!ret && (*recording)->state != KY_POLICY_RUNS)
		ret = ky_error_set(err, KYMO_E_STATE, "'%s' does not run", (*recording)->name);
	return ret;
}

static int daemon_requests_take_snapshot(struct ky_policy_client *client, const char *id,
					 struct kymo_error *err)
{
	struct ky_policy_recording *recording;
	int ret = daemon_requests_find_running(client, id, &recording, err);

	if (ret < 0)
		return ret;
	client->recording = recording;
	client->is_snapshot = true;
	ret = ky_policy_recording_snapshot(recording, client, err);
	if (!ret)
		ky_policy_client_wait(client, KY_POLICY_FOR_SNAPSHOT, 0);
	return ret;
}

static void add_policy(void *data, const char *name, const struct ky_policy *policy)
{
	struct ky_control_socket_message *message = data;
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_vec_foreach(&policy->args, arg)
		ky_strbuf_addf(&text, "%s%s", text.len ? " " : "", *arg);
	ky_control_socket_add(message, name);
	ky_policy_add_number(message, policy->max_duration_ns);
	ky_policy_add_number(message, policy->max_bytes);
	ky_control_socket_add(message, policy->own ? "own" : "");
	ky_control_socket_add(message, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

/* "ok", then the policies, each of five words. */
static void take_policies(struct ky_policy_client *client)
{
	struct ky_control_socket_message message = {.len = 0};

	ky_control_socket_add(&message, "ok");
	each_policy(client, add_policy, &message);
	(void)ky_policy_client_answer(client, &message);
}

/* "ok", then the client's recordings: name, policy, "runs" or "has-ended". */
static void take_sessions(struct ky_policy_client *client)
{
	struct ky_control_socket_message message = {.len = 0};

	ky_control_socket_add(&message, "ok");
	ky_vec_foreach(&client->policies->recordings, it) {
		if ((*it)->uid != client->uid)
			continue;
		ky_control_socket_add(&message, (*it)->name);
		ky_control_socket_add(&message, (*it)->policy);
		ky_control_socket_add(&message, ky_policy_is_active(*it) ? "runs" : "has-ended");
	}
	(void)ky_policy_client_answer(client, &message);
}

/* The recorder's answer goes to the client as it is. */
static int take_status_answer(void *data, struct kymo_error *err)
{
	struct ky_control_socket_message message;
	struct ky_policy_client *client = data;
	int ret = ky_daemon_socket_receive(client->status_fd, &message, NULL);

	(void)err;
	if (ret == 0)
		return KYMO_OK;
	ky_policy_client_end_status(client);
	client->recording = NULL;
	if (ret < 0) {
		message.len = 0;
		ky_control_socket_add(&message, "error");
		ky_control_socket_add(&message, "the recorder does not answer");
	}
	ky_policy_client_wait(client, KY_POLICY_IDLE, KY_POLICY_SILENCE_S);
	(void)ky_policy_client_answer(client, &message);
	return KYMO_OK;
}

static int take_status(struct ky_policy_client *client, const char *id, struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0};
	struct ky_policy_recording *recording;
	int ret = daemon_requests_find_running(client, id, &recording, err);

	if (ret < 0)
		return ret;
	ky_control_socket_add(&request, "status");
	client->status_fd = ky_daemon_socket_connect_recorder(recording->pid);
	if (client->status_fd < 0 || ky_daemon_socket_send(client->status_fd, &request, -1) < 0)
		return ky_error_set(err, KYMO_E_STATE, "the recorder does not answer");
	client->recording = recording;
	ky_policy_client_wait(client, KY_POLICY_FOR_STATUS, STATUS_S);
	return ky_loop_add(client->policies->options.loop, client->status_fd, take_status_answer,
			   client, &client->status, err);
}

static int daemon_requests_take(struct ky_policy_client *client,
				const struct ky_daemon_request *request, struct kymo_error *err)
{
	if (client->policies->ends)
		return ky_error_set(err, KYMO_E_STATE, "the daemon ends");
	switch (request->kind) {
	case KY_DAEMON_RECORD:
		return take_record(client, request, err);
	case KY_DAEMON_STOP:
		return take_stop(client, request->id, err);
	case KY_DAEMON_SNAPSHOT:
		return daemon_requests_take_snapshot(client, request->id, err);
	case KY_DAEMON_STATUS:
		return take_status(client, request->id, err);
	case KY_DAEMON_SESSIONS:
		take_sessions(client);
		return KYMO_OK;
	case KY_DAEMON_POLICIES:
		take_policies(client);
		return KYMO_OK;
	default:
		return ky_error_set(err, KYMO_E_STATE, "this connection fetches no recording");
	}
}

/* A client that waits for its recording, or fetches its files. */
static void take_more(struct ky_policy_client *client, enum ky_daemon_request_kind kind)
{
	if (client->wait == KY_POLICY_FETCHES) {
		ky_policy_take_fetch(client, kind);
	} else if (client->wait == KY_POLICY_FOREGROUND && kind == KY_DAEMON_STOP) {
		client->wait = KY_POLICY_FOR_END;
		ky_policy_recording_end(client->recording);
	} else {
		ky_policy_client_drop(client);
	}
}

int ky_policy_take_client(void *data, struct kymo_error *loop_err)
{
	struct ky_control_socket_message message;
	struct ky_policy_client *client = data;
	struct ky_daemon_request request;
	struct kymo_error err;
	int ret = ky_daemon_socket_receive(client->fd, &message, NULL);

	(void)loop_err;
	if (ret == 0)
		return KYMO_OK;
	if (ret < 0) {
		ky_policy_client_drop(client);
		return KYMO_OK;
	}
	ret = ky_daemon_request_parse(&message, &request, &err);
	if (!ret && client->wait != KY_POLICY_IDLE) {
		take_more(client, request.kind);
		return KYMO_OK;
	}
	if (!ret) {
		client->until_s = ky_os_now_s() + KY_POLICY_SILENCE_S;
		ret = daemon_requests_take(client, &request, &err);
	}
	if (ret < 0)
		ky_policy_client_refuse(client, &err);
	return KYMO_OK;
}
