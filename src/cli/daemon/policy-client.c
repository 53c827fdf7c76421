/* SPDX-License-Identifier: MIT */
#include "cli/daemon/policy-client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/terminal/command.h"
#include "cli/terminal/json-output.h"
#include "net/protocol/frame.h"
#include "os/file.h"
#include "record/common/record-dir.h"
#include "record/control/daemon-socket.h"

#define COPY_BYTES (256u << 10)
/* A daemon answers within milliseconds, but for the end of a recording. */
#define STATUS_TIMEOUT_S 10

static int connect_daemon(struct kymo_error *err)
{
	const char *path = getenv("KYMO_DAEMON_SOCKET");

	return ky_daemon_socket_connect(path && *path ? path : KY_DAEMON_SOCKET, err);
}

static int send_words(int fd, const char *const *words, size_t n, struct kymo_error *err)
{
	struct ky_control_socket_message message = {.len = 0};
	int ret;

	for (size_t i = 0; i < n; i++)
		ky_control_socket_add(&message, words[i]);
	ret = ky_daemon_socket_send(fd, &message, -1);
	return ret < 0 ? ky_error_errno(err, -ret, "cannot ask the daemon") : KYMO_OK;
}

/* An answer: "ok" and more; KYMO_E_STATE: the daemon's refusal. */
static int policy_client_receive(int fd, struct ky_control_socket_message *answer, int *file,
				 struct kymo_error *err)
{
	int ret;

	do {
		errno = 0;
		ret = ky_daemon_socket_receive(fd, answer, file);
	} while (ret == 0 && errno == EINTR);
	if (ret == 0)
		return ky_error_set(err, KYMO_E_AGAIN, "the daemon does not answer");
	if (ret < 0)
		return ky_error_set(err, KYMO_E_IO,
				    "the daemon ended the connection without an answer");
	return KYMO_OK;
}

static int policy_client_ask(int fd, const char *const *words, size_t n,
			     struct ky_control_socket_message *answer, struct kymo_error *err)
{
	int ret = send_words(fd, words, n, err);

	if (!ret)
		ret = policy_client_receive(fd, answer, NULL, err);
	return ret ? ret : ky_control_socket_result(answer, err);
}

/* The word @n of an answer; "": it has not so many. */
static const char *policy_client_word(const struct ky_control_socket_message *answer,
				      unsigned int n)
{
	const char *text;
	size_t at = 0;

	do {
		text = ky_control_socket_next(answer, &at);
	} while (text && n--);
	return text ? text : "";
}

/* ---- files ---------------------------------------------------------------------------- */

static int policy_client_copy(int from, int to)
{
	uint64_t copied = 0;
	struct stat st;
	char *data;
	ssize_t got;
	int ret;

	if (fstat(from, &st) < 0)
		return -errno;
	ret = ky_copy_range(from, 0, to, (uint64_t)st.st_size, &copied);
	if (ret < 0 || copied == (uint64_t)st.st_size)
		return ret;
	data = malloc(COPY_BYTES);
	if (!data)
		return -ENOMEM;
	while (!ret && (got = pread(from, data, COPY_BYTES, (off_t)copied)) != 0) {
		ret = got < 0 ? -errno : ky_write_all(to, data, (size_t)got);
		copied += got > 0 ? (uint64_t)got : 0;
	}
	free(data);
	return ret;
}

/* Creates the directories above the last name of @path. 0 or -errno. */
static int make_parents(int dir_fd, const char *path)
{
	char above[PATH_MAX];

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		snprintf(above, sizeof(above), "%.*s", (int)(slash - path), path);
		if (mkdirat(dir_fd, above, 0700) < 0 && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int store(int dir_fd, const char *path, int from, struct kymo_error *err)
{
	int ret = from < 0 || !ky_net_is_path(path, strlen(path)) ? -EPROTO
								  : make_parents(dir_fd, path),
	    to;

	if (!ret) {
		to = ky_file_open(dir_fd, path,
				  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		ret = to < 0 ? -errno : policy_client_copy(from, to);
		if (to >= 0 && close(to) < 0 && !ret)
			ret = -errno;
	}
	if (from >= 0)
		close(from);
	if (!ret)
		return KYMO_OK;
	ret = ky_error_errno(err, -ret, "cannot copy a file of the recording");
	ky_error_path(err, path);
	return ret;
}

static int fetch_files(int fd, int dir_fd, struct kymo_error *err)
{
	const char *const next[] = {"next"};
	struct ky_control_socket_message answer;
	int file, ret;

	do {
		ret = send_words(fd, next, 1, err);
		if (!ret)
			ret = policy_client_receive(fd, &answer, &file, err);
		if (ret)
			return ret;
		if (strcmp(policy_client_word(&answer, 0), "end") == 0)
			return KYMO_OK;
		ret = store(dir_fd, policy_client_word(&answer, 1), file, err);
	} while (!ret);
	return ret;
}

/* What the recorder said, but for where it had the trace, and what to do with it. */
static void print_log(const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");

		if (strncmp(text, "Trace: ", 7) != 0 && strncmp(text, "Next:  ", 7) != 0 &&
		    strncmp(text, "       kymo ", 12) != 0) {
			char line[1024];

			snprintf(line, sizeof(line), "%.*s", (int)len, text);
			ky_cli_put_text(stderr, line);
			fputc('\n', stderr);
		}
		text += len + (text[len] == '\n');
	}
}

/* @answer: the daemon has begun to hand the files over. The directory is there. */
static int policy_client_fetch(int fd, const char *output,
			       const struct ky_control_socket_message *answer,
			       struct kymo_error *err)
{
	const char *const done[] = {"done"};
	int dir_fd = open(output, O_RDONLY | O_DIRECTORY | O_CLOEXEC), ret;

	if (dir_fd < 0) {
		ret = ky_error_errno(err, errno, "cannot use the output directory");
		ky_error_path(err, output);
		return ret;
	}
	ret = fetch_files(fd, dir_fd, err);
	close(dir_fd);
	if (!ret)
		ret = send_words(fd, done, 1, err);
	if (ret)
		return ret;
	print_log(policy_client_word(answer, 2));
	fputs("Trace: ", stderr);
	ky_cli_put_text(stderr, output);
	fputs("\nNext:  kymo info ", stderr);
	ky_cli_put_text(stderr, output);
	fputc('\n', stderr);
	return KYMO_OK;
}

/* ---- recording ------------------------------------------------------------------------ */

static int policy_client_block_signals(sigset_t *old)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, old);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* Until the recording has ended, by itself or by a signal. A second signal ends this process. */
static int policy_client_wait_for_end(int fd, struct ky_control_socket_message *answer,
				      struct kymo_error *err)
{
	const char *const stop[] = {"stop"};
	struct signalfd_siginfo info;
	sigset_t old;
	int signal_fd = policy_client_block_signals(&old), ret = KYMO_OK;
	struct pollfd wanted[] = {{fd, POLLIN, 0}, {signal_fd, POLLIN, 0}};

	while (!ret && !(wanted[0].revents)) {
		if (poll(wanted, 2, -1) < 0 && errno != EINTR)
			ret = ky_error_errno(err, errno, "cannot wait for the daemon");
		if (!ret && wanted[1].revents & POLLIN &&
		    read(signal_fd, &info, sizeof(info)) > 0) {
			sigprocmask(SIG_SETMASK, &old, NULL);
			wanted[1].fd = -1;
			ret = send_words(fd, stop, 1, err);
		}
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (signal_fd >= 0)
		close(signal_fd);
	if (!ret)
		ret = policy_client_receive(fd, answer, NULL, err);
	return ret ? ret : ky_control_socket_result(answer, err);
}

static void policy_client_say_background(const char *name)
{
	fputs("Recording in the background: ", stderr);
	ky_cli_put_text(stderr, name);
	fputs("\nNext:  kymo sessions\n       kymo stop ", stderr);
	ky_cli_put_text(stderr, name);
	fputc('\n', stderr);
}

static int policy_client_record(int fd, const struct ky_policy_request *request, const char *output,
				struct kymo_error *err)
{
	char duration[24] = "", time[32];
	const char *const words[] = {"record", request->policy, duration, request->own ? "own" : "",
				     request->in_background ? "background" : ""};
	struct ky_control_socket_message answer;
	int ret;

	if (request->duration_ns)
		snprintf(duration, sizeof(duration), "%" PRIu64, request->duration_ns);
	ret = policy_client_ask(fd, words, 5, &answer, err);
	if (ret)
		return ret;
	if (request->in_background) {
		policy_client_say_background(policy_client_word(&answer, 1));
		return KYMO_OK;
	}
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "Recording for %s. Ctrl-C stops.\n",
			ky_format_setting(time,
					  strtoull(policy_client_word(&answer, 2), NULL, 10)));
	ret = policy_client_wait_for_end(fd, &answer, err);
	return ret ? ret : policy_client_fetch(fd, output, &answer, err);
}

static int with_output(const char *output,
		       int (*call)(int fd, const void *data, const char *output,
				   struct kymo_error *err),
		       int fd, const void *data, struct kymo_error *err)
{
	bool made;
	int ret = ky_record_dir_make(output, &made, err);

	if (ret < 0)
		return ret;
	ret = call(fd, data, output, err);
	/* Only when it is empty. */
	if (ret < 0 && made)
		(void)rmdir(output);
	return ret;
}

static int call_record(int fd, const void *data, const char *output, struct kymo_error *err)
{
	return policy_client_record(fd, data, output, err);
}

int ky_policy_record(const struct ky_policy_request *request, struct kymo_error *err)
{
	int fd = connect_daemon(err), ret;
	char name[128];

	if (fd < 0)
		return fd;
	if (request->in_background) {
		ret = policy_client_record(fd, request, NULL, err);
	} else {
		time_t now = time(NULL);
		struct tm tm;
		size_t len = (size_t)snprintf(name, sizeof(name), "%.64s-", request->policy);

		strftime(name + len, sizeof(name) - len, "%Y%m%d-%H%M%S", localtime_r(&now, &tm));
		ret = with_output(request->output ? request->output : name, call_record, fd,
				  request, err);
	}
	close(fd);
	return ret;
}

static int call_fetch(int fd, const void *data, const char *output, struct kymo_error *err)
{
	return policy_client_fetch(fd, output, data, err);
}

static int ask_and_fetch(const char *what, const char *id, const char *output, const char *suffix,
			 struct kymo_error *err)
{
	const char *const words[] = {what, id ? id : ""};
	struct ky_control_socket_message answer;
	int fd = connect_daemon(err), ret;
	char name[128];

	if (fd < 0)
		return fd;
	ret = policy_client_ask(fd, words, 2, &answer, err);
	if (!ret) {
		snprintf(name, sizeof(name), "%.64s%s", policy_client_word(&answer, 1), suffix);
		/* The name is the daemon's, but the directory this user's. */
		ret = !output && !ky_net_is_name(name, strlen(name))
			      ? ky_error_set(err, KYMO_E_FORMAT,
					     "the daemon's answer makes no sense")
			      : with_output(output ? output : name, call_fetch, fd, &answer, err);
	}
	close(fd);
	return ret;
}

int ky_policy_stop(const char *id, const char *output, struct kymo_error *err)
{
	return ask_and_fetch("stop", id, output, "", err);
}

int ky_policy_snapshot(const char *id, const char *output, struct kymo_error *err)
{
	return ask_and_fetch("snapshot", id, output, "-snapshot", err);
}

/* ---- lists ---------------------------------------------------------------------------- */

static void set_timeout(int fd)
{
	const struct timeval limit = {.tv_sec = STATUS_TIMEOUT_S};

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

void ky_policy_each(void (*found)(void *data, const char *name, const char *policy,
				  const struct ky_control_socket_message *status),
		    void *data)
{
	const char *const words[] = {"sessions"};
	struct ky_control_socket_message list, status;
	int fd = connect_daemon(NULL), ret = KYMO_OK;
	const char *name, *policy, *state;
	size_t at = 0;

	if (fd < 0)
		return;
	set_timeout(fd);
	ret = policy_client_ask(fd, words, 1, &list, NULL);
	(void)ky_control_socket_next(&list, &at);
	while (!ret && (name = ky_control_socket_next(&list, &at)) &&
	       (policy = ky_control_socket_next(&list, &at)) &&
	       (state = ky_control_socket_next(&list, &at))) {
		const char *const request[] = {"status", name};
		int own;

		if (strcmp(state, "runs") != 0) {
			found(data, name, policy, NULL);
			continue;
		}
		/* A refusal ends the connection. */
		own = policy_client_ask(fd, request, 2, &status, NULL);
		if (own == KYMO_OK) {
			found(data, name, policy, &status);
			continue;
		}
		close(fd);
		fd = connect_daemon(NULL);
		if (fd < 0)
			return;
		set_timeout(fd);
	}
	close(fd);
}

struct named {
	const char *id;
	bool is_found;
};

static void compare_name(void *data, const char *name, const char *policy,
			 const struct ky_control_socket_message *status)
{
	struct named *named = data;

	(void)status;
	if (strcmp(named->id, name) == 0 || strcmp(named->id, policy) == 0)
		named->is_found = true;
}

bool ky_policy_has(const char *id)
{
	struct named named = {.id = id};

	if (geteuid() != 0)
		ky_policy_each(compare_name, &named);
	return named.is_found;
}

static json_t *policy_json(const char *name, const char *duration_ns, const char *bytes, bool own,
			   const char *args)
{
	return json_pack("{s:o, s:I, s:I, s:b, s:o}", "name", ky_jansson_text(name),
			 "max_duration_ns", (json_int_t)strtoll(duration_ns, NULL, 10), "max_bytes",
			 (json_int_t)strtoll(bytes, NULL, 10), "own_processes", own, "options",
			 ky_jansson_text(args));
}

int ky_policy_print(bool json, struct kymo_error *err)
{
	const char *const words[] = {"policies"}, *name, *duration, *bytes, *own, *args;
	struct ky_control_socket_message list;
	int fd = connect_daemon(err), ret;
	char time[32], size[32];
	json_t *policies;
	size_t at = 0;

	if (fd < 0)
		return fd;
	set_timeout(fd);
	ret = policy_client_ask(fd, words, 1, &list, err);
	policies = json && !ret ? json_array() : NULL;
	close(fd);
	(void)ky_control_socket_next(&list, &at);
	while (!ret && (name = ky_control_socket_next(&list, &at)) &&
	       (duration = ky_control_socket_next(&list, &at)) &&
	       (bytes = ky_control_socket_next(&list, &at)) &&
	       (own = ky_control_socket_next(&list, &at)) &&
	       (args = ky_control_socket_next(&list, &at))) {
		if (policies) {
			json_array_append_new(policies,
					      policy_json(name, duration, bytes, *own, args));
			continue;
		}
		ky_cli_put_padded(stdout, name, 16);
		printf(" up to %s, %s%s\n         ",
		       ky_format_setting(time, strtoull(duration, NULL, 10)),
		       ky_format_bytes(size, strtoull(bytes, NULL, 10)),
		       *own ? ", your own processes" : "");
		ky_cli_put_text(stdout, args);
		putchar('\n');
	}
	if (!ret && json)
		return ky_cli_put_json(json_pack("{s:o}", "policies", policies), 1, err);
	if (!ret && at == list.len && strcmp(policy_client_word(&list, 1), "") == 0)
		puts("No policy is for you.");
	return ret;
}
