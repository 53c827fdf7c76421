/* SPDX-License-Identifier: MIT */
#include "cli/recording/daemon-policies.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/recording/daemon-policies-internal.h"
#include "cli/terminal/command.h"

#define NS_PER_S UINT64_C(1000000000)
/* Connections of all users, and of one. */
#define CLIENTS_MAX	 128
#define CLIENTS_USER_MAX 8
/*
 * How long a client may be silent before its request, and between two files: it copies the first one meanwhile, which may be
 * large; and a recorder that is asked.
 */
#define SILENCE_S 10
#define FETCH_S	  3600
#define STATUS_S  5
/* How often the daemon looks at sizes and times, while there is something to look at, and else. */
#define LOOK_NS	       (NS_PER_S / 5)
#define LOOK_RARELY_NS (600 * NS_PER_S)
#define POLICIES_MAX   256

int64_t ky_policies_now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* ---- clients -------------------------------------------------------------------------- */

static void end_status(struct ky_policy_client *client)
{
	ky_loop_remove(client->status);
	client->status = NULL;
	if (client->status_fd >= 0)
		close(client->status_fd);
	client->status_fd = -1;
}

/* What hung on the client: a recording in the foreground ends, files are free for the next client. */
static void leave(struct ky_policy_client *client)
{
	struct ky_policy_recording *recording = client->recording;

	end_status(client);
	ky_policy_fetch_end(client);
	client->recording = NULL;
	if (!recording)
		return;
	if (client->wait == KY_POLICY_FOR_START || client->wait == KY_POLICY_FOREGROUND)
		ky_policy_recording_end(recording);
	if (client->wait == KY_POLICY_FETCHES && !client->is_snapshot)
		recording->is_fetched = false;
	if (recording->snapshot_client == client) {
		recording->snapshot_client = NULL;
		/* While it is being written, its end removes it. */
		if (!recording->snapshot_pid)
			ky_policy_snapshot_remove(recording);
	}
}

static void drop(struct ky_policy_client *client)
{
	struct ky_policies *policies = client->policies;
	size_t i = 0;

	while (policies->clients.data[i] != client)
		i++;
	policies->clients.data[i] = policies->clients.data[--policies->clients.len];
	leave(client);
	ky_loop_remove(client->source);
	close(client->fd);
	free(client);
}

void ky_policy_drop_clients(const struct ky_policy_recording *recording)
{
	struct ky_policies *policies = recording->policies;

	for (size_t i = policies->clients.len; i-- > 0;)
		if (policies->clients.data[i]->recording == recording)
			drop(policies->clients.data[i]);
}

/* A client that does not take its answer goes. False: it has gone. */
static bool answer(struct ky_policy_client *client, const struct ky_control_socket_message *message)
{
	if (ky_daemon_socket_send(client->fd, message, -1) == 0)
		return true;
	drop(client);
	return false;
}

static void refuse(struct ky_policy_client *client, const struct kymo_error *err)
{
	struct ky_control_socket_message message = {.len = 0};

	ky_control_socket_add(&message, "error");
	ky_control_socket_add(&message, err->message);
	ky_control_socket_add(&message, err->path);
	ky_control_socket_add(&message, err->hint);
	if (answer(client, &message))
		drop(client);
}

static void add_number(struct ky_control_socket_message *message, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	ky_control_socket_add(message, text);
}

static void set_limit(struct ky_policy_client *client, enum ky_policy_wait wait, int silence_s)
{
	client->wait = wait;
	client->until_s = silence_s ? ky_policies_now_s() + silence_s : 0;
	ky_policies_look_soon(client->policies);
}

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

static void add_name(void *data, const char *name, const struct ky_policy *policy)
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

	each_policy(client, add_name, &names);
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
static int choose_duration(const struct ky_policy *policy, const char *text, uint64_t *duration_ns,
			   struct kymo_error *err)
{
	char limit[32];

	*duration_ns = policy->duration_ns ? policy->duration_ns : policy->max_duration_ns;
	if (*text && (ky_parse_u64(text, duration_ns) < 0 || !*duration_ns))
		return ky_error_set(err, KYMO_E_INVALID, "the duration makes no sense");
	if (*duration_ns <= policy->max_duration_ns)
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_INVALID, "the policy allows at most %s",
			    ky_format_duration(limit, policy->max_duration_ns));
}

/* "record", policy, duration in ns or "", "own" or "", "background" or "" */
static int take_record(struct ky_policy_client *client, const char *const words[5],
		       struct kymo_error *err)
{
	struct ky_policy_recording *recording = NULL;
	struct ky_policy policy;
	uint64_t duration_ns;
	bool own = strcmp(words[3], "own") == 0;
	int ret = read_policy(client, words[1], &policy, err);

	if (!ret)
		ret = choose_duration(&policy, words[2], &duration_ns, err);
	if (!ret && own && (policy.chooses || policy.has_user))
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "the policy chooses its processes; it cannot record only yours");
	if (!ret)
		ret = ky_policy_recording_start(client->policies, &policy, words[1], client->uid,
						duration_ns, own || policy.own, &recording, err);
	ky_policy_fini(&policy);
	if (ret < 0)
		return ret;
	client->recording = recording;
	client->in_background = strcmp(words[4], "background") == 0;
	set_limit(client, KY_POLICY_FOR_START, 0);
	return KYMO_OK;
}

/* The client's own recording: by name, by policy, or the only one. */
static int find(const struct ky_policy_client *client, const char *id,
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
		refuse(client, &err);
		return;
	}
	set_limit(client, KY_POLICY_FETCHES, FETCH_S);
	if (!client->is_snapshot)
		recording->is_fetched = true;
	ky_policy_log(recording, log, &text);
	ky_control_socket_add(&message, "ok");
	ky_control_socket_add(&message, recording->name);
	ky_control_socket_add(&message, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	(void)answer(client, &message);
}

static void fetch_recording(struct ky_policy_client *client)
{
	struct kymo_error err;

	if (client->recording->is_fetched) {
		ky_error_set(&err, KYMO_E_STATE, "another process fetches '%s'",
			     client->recording->name);
		refuse(client, &err);
		return;
	}
	begin_fetch(client, "trace", "log");
}

static int take_stop(struct ky_policy_client *client, const char *id, struct kymo_error *err)
{
	int ret = find(client, id, &client->recording, err);

	if (ret < 0)
		return ret;
	set_limit(client, KY_POLICY_FOR_END, 0);
	if (ky_policy_is_active(client->recording))
		ky_policy_recording_end(client->recording);
	else
		fetch_recording(client);
	return KYMO_OK;
}

static int take_snapshot(struct ky_policy_client *client, const char *id, struct kymo_error *err)
{
	struct ky_policy_recording *recording;
	int ret = find(client, id, &recording, err);

	if (!ret && recording->state != KY_POLICY_RUNS)
		ret = ky_error_set(err, KYMO_E_STATE, "'%s' does not run", recording->name);
	if (ret < 0)
		return ret;
	client->recording = recording;
	client->is_snapshot = true;
	ret = ky_policy_recording_snapshot(recording, client, err);
	if (!ret)
		set_limit(client, KY_POLICY_FOR_SNAPSHOT, 0);
	return ret;
}

static void add_policy(void *data, const char *name, const struct ky_policy *policy)
{
	struct ky_control_socket_message *message = data;
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_vec_foreach(&policy->args, arg)
		ky_strbuf_addf(&text, "%s%s", text.len ? " " : "", *arg);
	ky_control_socket_add(message, name);
	add_number(message, policy->max_duration_ns);
	add_number(message, policy->max_bytes);
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
	(void)answer(client, &message);
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
	(void)answer(client, &message);
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
	end_status(client);
	client->recording = NULL;
	if (ret < 0) {
		message.len = 0;
		ky_control_socket_add(&message, "error");
		ky_control_socket_add(&message, "the recorder does not answer");
	}
	set_limit(client, KY_POLICY_IDLE, SILENCE_S);
	(void)answer(client, &message);
	return KYMO_OK;
}

static int take_status(struct ky_policy_client *client, const char *id, struct kymo_error *err)
{
	struct ky_control_socket_message request = {.len = 0};
	struct ky_policy_recording *recording;
	int ret = find(client, id, &recording, err);

	if (!ret && recording->state != KY_POLICY_RUNS)
		ret = ky_error_set(err, KYMO_E_STATE, "'%s' does not run", recording->name);
	if (ret < 0)
		return ret;
	ky_control_socket_add(&request, "status");
	client->status_fd = ky_daemon_socket_connect_recorder(recording->pid);
	if (client->status_fd < 0 || ky_daemon_socket_send(client->status_fd, &request, -1) < 0)
		return ky_error_set(err, KYMO_E_STATE, "the recorder does not answer");
	client->recording = recording;
	set_limit(client, KY_POLICY_FOR_STATUS, STATUS_S);
	return ky_loop_add(client->policies->options.loop, client->status_fd, take_status_answer,
			   client, &client->status, err);
}

static int take_request(struct ky_policy_client *client, const char *const words[5],
			struct kymo_error *err)
{
	if (client->policies->ends)
		return ky_error_set(err, KYMO_E_STATE, "the daemon ends");
	if (strcmp(words[0], "record") == 0)
		return take_record(client, words, err);
	if (strcmp(words[0], "stop") == 0)
		return take_stop(client, words[1], err);
	if (strcmp(words[0], "snapshot") == 0)
		return take_snapshot(client, words[1], err);
	if (strcmp(words[0], "status") == 0)
		return take_status(client, words[1], err);
	if (strcmp(words[0], "sessions") == 0)
		take_sessions(client);
	else if (strcmp(words[0], "policies") == 0)
		take_policies(client);
	else
		return ky_error_set(
			err, KYMO_E_INVALID,
			"the daemon does not have this request; it may be of another version "
			"of Kymo");
	return KYMO_OK;
}

/* "next": the next file; "done": the client has them all, and the recording goes. */
static void take_fetch(struct ky_policy_client *client, const char *word)
{
	struct ky_policy_recording *recording = client->recording;

	if (strcmp(word, "next") == 0) {
		client->until_s = ky_policies_now_s() + FETCH_S;
		if (ky_policy_fetch_next(client) < 0)
			drop(client);
	} else if (strcmp(word, "done") == 0 && client->next == client->files.len) {
		if (client->is_snapshot)
			drop(client);
		else
			ky_policy_recording_remove(recording);
	} else {
		drop(client);
	}
}

static int take_client(void *data, struct kymo_error *loop_err)
{
	struct ky_control_socket_message request;
	struct ky_policy_client *client = data;
	const char *words[5];
	struct kymo_error err;
	size_t at = 0;
	int ret = ky_daemon_socket_receive(client->fd, &request, NULL);

	(void)loop_err;
	if (ret == 0)
		return KYMO_OK;
	if (ret < 0) {
		drop(client);
		return KYMO_OK;
	}
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *word = ky_control_socket_next(&request, &at);

		words[i] = word ? word : "";
	}
	if (client->wait == KY_POLICY_IDLE) {
		client->until_s = ky_policies_now_s() + SILENCE_S;
		if (take_request(client, words, &err) < 0)
			refuse(client, &err);
	} else if (client->wait == KY_POLICY_FETCHES) {
		take_fetch(client, words[0]);
	} else if (client->wait == KY_POLICY_FOREGROUND && strcmp(words[0], "stop") == 0) {
		client->wait = KY_POLICY_FOR_END;
		ky_policy_recording_end(client->recording);
	} else {
		drop(client);
	}
	return KYMO_OK;
}

/* ---- what happens to recordings ------------------------------------------------------- */

static struct ky_policy_client *client_of(const struct ky_policy_recording *recording,
					  enum ky_policy_wait wait)
{
	ky_vec_foreach(&recording->policies->clients, it)
		if ((*it)->recording == recording && (*it)->wait == wait)
			return *it;
	return NULL;
}

void ky_policy_has_begun(struct ky_policy_recording *recording)
{
	struct ky_policy_client *client = client_of(recording, KY_POLICY_FOR_START);
	struct ky_control_socket_message message = {.len = 0};

	ky_policies_look_soon(recording->policies);
	if (!client)
		return;
	ky_control_socket_add(&message, "ok");
	ky_control_socket_add(&message, recording->name);
	add_number(&message, recording->duration_ns);
	client->wait = client->in_background ? KY_POLICY_IDLE : KY_POLICY_FOREGROUND;
	if (client->in_background) {
		client->recording = NULL;
		set_limit(client, KY_POLICY_IDLE, SILENCE_S);
	}
	(void)answer(client, &message);
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
	struct ky_policy_client *client = client_of(recording, KY_POLICY_FOR_START);
	struct kymo_error err;

	last_line(recording, "log", &err);
	if (client) {
		client->wait = KY_POLICY_IDLE;
		client->recording = NULL;
		refuse(client, &err);
	}
	ky_policy_recording_remove(recording);
}

int ky_policy_has_ended(struct ky_policy_recording *recording, bool had_begun)
{
	struct ky_policies *policies = recording->policies;
	struct ky_policy_client *client;

	if (!had_begun) {
		has_failed(recording);
	} else {
		client = client_of(recording, KY_POLICY_FOREGROUND);
		if (client)
			fetch_recording(client);
		while ((client = client_of(recording, KY_POLICY_FOR_END))) {
			client->wait = KY_POLICY_IDLE;
			fetch_recording(client);
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
	refuse(client, &err);
}

/* ---- the daemon's loop ---------------------------------------------------------------- */

void ky_policies_look_soon(struct ky_policies *policies)
{
	ky_loop_set_timer(policies->timer, LOOK_NS);
}

static int look(void *data, struct kymo_error *err)
{
	struct ky_policies *policies = data;
	int64_t now = ky_policies_now_s();
	bool has_work = policies->clients.len != 0;

	(void)err;
	for (size_t i = policies->clients.len; i-- > 0;) {
		struct ky_policy_client *client = policies->clients.data[i];

		if (client->until_s && now >= client->until_s)
			drop(client);
	}
	ky_policy_recordings_look(policies);
	ky_vec_foreach(&policies->recordings, it)
		has_work = has_work || ky_policy_is_active(*it);
	ky_loop_set_timer(policies->timer, has_work ? LOOK_NS : LOOK_RARELY_NS);
	return KYMO_OK;
}

static bool has_room(const struct ky_policies *policies, uid_t uid)
{
	size_t n = 0;

	ky_vec_foreach(&policies->clients, it)
		n += (*it)->uid == uid;
	return policies->clients.len < CLIENTS_MAX && n < CLIENTS_USER_MAX;
}

static int take_connection(void *data, struct kymo_error *err)
{
	struct ky_policies *policies = data;
	int fd = accept4(policies->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct ky_policy_client *client;
	uid_t uid;

	(void)err;
	if (fd < 0)
		return KYMO_OK;
	client = ky_daemon_socket_user(fd, &uid) && has_room(policies, uid)
			 ? calloc(1, sizeof(*client))
			 : NULL;
	if (!client) {
		close(fd);
		return KYMO_OK;
	}
	*client = (struct ky_policy_client){
		.policies = policies, .fd = fd, .uid = uid, .status_fd = -1, .root_fd = -1};
	if (ky_vec_push(&policies->clients, client) < 0) {
		close(fd);
		free(client);
	} else if (ky_loop_add(policies->options.loop, fd, take_client, client, &client->source,
			       NULL) < 0) {
		drop(client);
	} else {
		set_limit(client, KY_POLICY_IDLE, SILENCE_S);
	}
	return KYMO_OK;
}

bool ky_policies_exist(const char *profiles)
{
	DIR *dir = opendir(profiles);
	struct dirent *entry;
	bool exist = false;
	char name[256];

	while (dir && !exist && (entry = readdir(dir)))
		exist = ky_policy_file_name(entry->d_name, KY_POLICY_SUFFIX, name);
	if (dir)
		closedir(dir);
	return exist;
}

int ky_policies_open(const struct ky_policies_options *options, struct ky_policies **out,
		     struct kymo_error *err)
{
	struct ky_policies *policies = calloc(1, sizeof(*policies));
	int ret;

	*out = NULL;
	if (!policies)
		return ky_error_nomem(err);
	policies->options = *options;
	policies->listen_fd = ky_daemon_socket_listen(options->socket, err);
	ret = policies->listen_fd < 0 ? policies->listen_fd : KYMO_OK;
	if (!ret)
		ret = ky_loop_add(options->loop, policies->listen_fd, take_connection, policies,
				  &policies->listen, err);
	if (!ret)
		ret = ky_loop_add_timer(options->loop, look, policies, &policies->timer, err);
	if (ret < 0) {
		ky_policies_close(policies);
		return ret;
	}
	ky_policy_recordings_find(policies);
	ky_policies_look_soon(policies);
	*out = policies;
	return KYMO_OK;
}

static void stop_listening(struct ky_policies *policies)
{
	ky_loop_remove(policies->listen);
	policies->listen = NULL;
	if (policies->listen_fd < 0)
		return;
	(void)unlink(policies->options.socket);
	close(policies->listen_fd);
	policies->listen_fd = -1;
}

void ky_policies_end(struct ky_policies *policies)
{
	if (!policies)
		return;
	policies->ends = true;
	stop_listening(policies);
	ky_vec_foreach(&policies->recordings, it)
		ky_policy_recording_end(*it);
}

bool ky_policies_any_runs(const struct ky_policies *policies)
{
	if (policies)
		ky_vec_foreach(&policies->recordings, it)
			if ((*it)->pid)
				return true;
	return false;
}

void ky_policies_close(struct ky_policies *policies)
{
	if (!policies)
		return;
	stop_listening(policies);
	while (policies->clients.len)
		drop(policies->clients.data[0]);
	while (policies->recordings.len)
		ky_policy_recording_free(policies->recordings.data[0]);
	ky_vec_fini(&policies->clients);
	ky_vec_fini(&policies->recordings);
	ky_loop_remove(policies->timer);
	free(policies);
}
