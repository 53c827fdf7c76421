/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/daemon/daemon-policies-internal.h"
#include "os/file.h"
#include "os/now.h"

#define DIRECTORY "/.policies"
/* Recorders of all users at a time. */
#define RECORDERS_MAX 16
/* A recording that its user does not fetch goes after this. */
#define KEEP_S 86400
/* Numbers of one user's recordings of one policy. */
#define NUMBERS_MAX   10000
#define LOG_BYTES_MAX 16384
/* What is found at the start: more than users can have. */
#define FOUND_MAX 10000
#define READY_FD  3

bool ky_policy_is_active(const struct ky_policy_recording *recording)
{
	return recording->state != KY_POLICY_HAS_ENDED;
}

void ky_policy_log(const struct ky_policy_recording *recording, const char *name,
		   struct ky_strbuf *text)
{
	char path[PATH_MAX], data[LOG_BYTES_MAX];
	struct stat st;
	ssize_t got = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", recording->path, name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0)
		got = pread(fd, data, sizeof(data),
			    st.st_size > LOG_BYTES_MAX ? st.st_size - LOG_BYTES_MAX : 0);
	close(fd);
	if (got > 0)
		ky_strbuf_add(text, data, strnlen(data, (size_t)got));
}

/* ---- the end -------------------------------------------------------------------------- */

void ky_policy_recording_end(struct ky_policy_recording *recording)
{
	if (!recording->pid || recording->state == KY_POLICY_ENDS)
		return;
	recording->state = KY_POLICY_ENDS;
	(void)kill(recording->pid, SIGTERM);
}

static void end_ready(struct ky_policy_recording *recording)
{
	ky_loop_remove(recording->ready);
	recording->ready = NULL;
	if (recording->ready_fd >= 0)
		close(recording->ready_fd);
	recording->ready_fd = -1;
}

/* One byte: recording is on. Without it, the end of the process follows. */
static int take_ready(void *data, struct kymo_error *err)
{
	struct ky_policy_recording *recording = data;
	ssize_t got;
	char byte;

	(void)err;
	got = read(recording->ready_fd, &byte, 1);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return KYMO_OK;
	ky_loop_remove(recording->ready);
	recording->ready = NULL;
	if (got != 1)
		return KYMO_OK;
	end_ready(recording);
	if (recording->state == KY_POLICY_STARTS)
		recording->state = KY_POLICY_RUNS;
	ky_policy_has_begun(recording);
	return KYMO_OK;
}

static int daemon_recordings_take_end(void *data, struct kymo_error *err)
{
	struct ky_policy_recording *recording = data;
	bool had_begun;

	(void)err;
	if (waitpid(recording->pid, &recording->exit_status, WNOHANG) != recording->pid)
		return KYMO_OK;
	ky_loop_remove(recording->child);
	recording->child = NULL;
	recording->pid = 0;
	/* It may have said that it records, and ended at once. */
	if (recording->ready_fd >= 0)
		(void)take_ready(recording, NULL);
	had_begun = recording->ready_fd < 0;
	end_ready(recording);
	recording->state = KY_POLICY_HAS_ENDED;
	recording->ended_s = ky_os_now_s();
	return ky_policy_has_ended(recording, had_begun);
}

/* ---- the start ------------------------------------------------------------------------ */

/* Standard streams and, for a recorder, where it says that it records. Only calls that a forked child may make. */
static void set_streams(int null, int log, int ready_fd)
{
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(log, STDOUT_FILENO);
	(void)dup2(log, STDERR_FILENO);
	if (ready_fd >= 0)
		(void)dup2(ready_fd, READY_FD);
}

/* Runs kymo with @args. Returns the process, or a negative errno. */
static pid_t daemon_recordings_run(const struct ky_policy_recording *recording,
				   const char *log_name, char *const *args, int ready_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), log, errnum;
	char path[PATH_MAX];
	pid_t pid = -1;

	snprintf(path, sizeof(path), "%s/%s", recording->path, log_name);
	log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (null >= 0 && log >= 0)
		pid = fork();
	errnum = errno;
	if (pid == 0) {
		set_streams(null, log, ready_fd);
		sigprocmask(SIG_SETMASK, &recording->policies->options.mask, NULL);
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
		execv("/proc/self/exe", args);
		_exit(127);
	}
	if (null >= 0)
		close(null);
	if (log >= 0)
		close(log);
	return pid < 0 ? -errnum : pid;
}

/* The recorder's command line; those behind the policy's options replace them. */
static int make_args(const struct ky_policy_recording *recording, const struct ky_policy *policy,
		     bool own, struct ky_strbuf *text, char ***args)
{
	size_t n = 0, at[7], n_own = 0;

	ky_strbuf_addf(text, "--output=%s/trace%c", recording->path, 0);
	at[n_own++] = 0;
	at[n_own++] = text->len;
	ky_strbuf_addf(text, "--name=%s%c", recording->name, 0);
	at[n_own++] = text->len;
	ky_strbuf_addf(text, "--duration=%" PRIu64 "ns%c", recording->duration_ns, 0);
	at[n_own++] = text->len;
	ky_strbuf_addf(text, "--ready-fd=%d%c", READY_FD, 0);
	if (own) {
		at[n_own++] = text->len;
		ky_strbuf_addf(text, "--uid=%u%c", (unsigned int)recording->uid, 0);
	}
	/* It lists the processes of all users. */
	if (own && !policy->has_state) {
		at[n_own++] = text->len;
		ky_strbuf_addf(text, "--statedump=none%c", 0);
	}
	*args = calloc(policy->args.len + n_own + 3, sizeof(**args));
	if (!*args || ky_strbuf_failed(text))
		return KYMO_E_MEMORY;
	(*args)[n++] = (char *)"kymo";
	(*args)[n++] = (char *)"record";
	ky_vec_foreach(&policy->args, arg)
		(*args)[n++] = *arg;
	for (size_t i = 0; i < n_own; i++)
		(*args)[n++] = text->data + at[i];
	return KYMO_OK;
}

static int spawn(struct ky_policy_recording *recording, const struct ky_policy *policy, bool own,
		 struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_loop *loop = recording->policies->options.loop;
	char **args = NULL;
	int fds[2], ret;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0)
		return ky_error_errno(err, errno, "cannot start a recorder");
	ret = make_args(recording, policy, own, &text, &args);
	/* A descriptor that is there already would lose its end at execv(). */
	if (!ret && fds[1] == READY_FD)
		ret = fcntl(fds[1], F_SETFD, 0) < 0 ? KYMO_E_IO : KYMO_OK;
	pid = ret < 0 ? -ENOMEM : daemon_recordings_run(recording, "log", args, fds[1]);
	close(fds[1]);
	free(args);
	ky_strbuf_fini(&text);
	recording->ready_fd = fds[0];
	if (pid < 0)
		return ky_error_errno(err, -pid, "cannot start a recorder");
	recording->pid = pid;
	ret = ky_loop_add_child(loop, pid, daemon_recordings_take_end, recording, &recording->child,
				err);
	if (!ret)
		ret = ky_loop_add(loop, fds[0], take_ready, recording, &recording->ready, err);
	return ret;
}

/* OUTPUT/.policies/UID/NAME: only this daemon's user can enter it. */
static int daemon_recordings_make_directory(struct ky_policy_recording *recording,
					    struct kymo_error *err)
{
	const char *output = recording->policies->options.output;
	char path[PATH_MAX];

	(void)mkdir(output, 0700);
	snprintf(path, sizeof(path), "%s" DIRECTORY, output);
	(void)mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s" DIRECTORY "/%u", output, (unsigned int)recording->uid);
	(void)mkdir(path, 0700);
	for (int i = 1; i < NUMBERS_MAX; i++) {
		snprintf(recording->name, sizeof(recording->name), "%s-%u-%d", recording->policy,
			 (unsigned int)recording->uid, i);
		free(recording->path);
		if (asprintf(&recording->path, "%s/%s", path, recording->name) < 0) {
			recording->path = NULL;
			return ky_error_nomem(err);
		}
		if (mkdir(recording->path, 0700) == 0)
			return KYMO_OK;
		if (errno != EEXIST)
			break;
	}
	return ky_error_errno(err, errno, "cannot make a directory for the recording");
}

static struct ky_policy_recording *recording_new(struct ky_policies *policies, const char *policy,
						 uid_t uid)
{
	struct ky_policy_recording *recording = calloc(1, sizeof(*recording));

	if (!recording)
		return NULL;
	recording->policies = policies;
	recording->uid = uid;
	recording->ready_fd = -1;
	snprintf(recording->policy, sizeof(recording->policy), "%s", policy);
	if (ky_vec_push(&policies->recordings, recording) < 0) {
		free(recording);
		return NULL;
	}
	return recording;
}

/* Whether the user, and all users, may have one more. */
static int check_number(const struct ky_policies *policies, const struct ky_policy *policy,
			const char *name, uid_t uid, struct kymo_error *err)
{
	const struct ky_policy_recording *last = NULL;
	uint64_t n = 0, n_active = 0;

	ky_vec_foreach(&policies->recordings, it) {
		n_active += ky_policy_is_active(*it);
		if ((*it)->uid != uid || strcmp((*it)->policy, name) != 0)
			continue;
		last = *it;
		n++;
	}
	if (n >= policy->max_recordings && last) {
		ky_error_set(err, KYMO_E_STATE,
			     "you have %" PRIu64
			     " recording%s of the policy '%s' already, which is its limit",
			     n, n == 1 ? "" : "s", name);
		ky_error_hint(err, "'kymo stop %s' ends and fetches one", last->name);
		return KYMO_E_STATE;
	}
	if (n_active >= RECORDERS_MAX)
		return ky_error_set(err, KYMO_E_STATE,
				    "%d recordings of users run, which is the limit",
				    RECORDERS_MAX);
	return KYMO_OK;
}

int ky_policy_recording_start(struct ky_policies *policies, const struct ky_policy *policy,
			      const char *name, uid_t uid, uint64_t duration_ns, bool own,
			      struct ky_policy_recording **out, struct kymo_error *err)
{
	struct ky_policy_recording *recording;
	int ret = check_number(policies, policy, name, uid, err);

	*out = NULL;
	if (ret < 0)
		return ret;
	recording = recording_new(policies, name, uid);
	if (!recording)
		return ky_error_nomem(err);
	recording->max_bytes = policy->max_bytes;
	recording->duration_ns = duration_ns;
	ret = daemon_recordings_make_directory(recording, err);
	if (!ret)
		ret = spawn(recording, policy, own, err);
	if (ret < 0) {
		ky_policy_recording_remove(recording);
		return ret;
	}
	*out = recording;
	return KYMO_OK;
}

/* ---- snapshots ------------------------------------------------------------------------ */

static int take_snapshot_end(void *data, struct kymo_error *err)
{
	struct ky_policy_recording *recording = data;
	struct ky_policy_client *client = recording->snapshot_client;
	int status;

	(void)err;
	if (waitpid(recording->snapshot_pid, &status, WNOHANG) != recording->snapshot_pid)
		return KYMO_OK;
	ky_loop_remove(recording->snapshot_child);
	recording->snapshot_child = NULL;
	recording->snapshot_pid = 0;
	if (client)
		ky_policy_has_snapshot(recording, client,
				       WIFEXITED(status) && !WEXITSTATUS(status));
	else
		ky_policy_snapshot_remove(recording);
	return KYMO_OK;
}

int ky_policy_recording_snapshot(struct ky_policy_recording *recording,
				 struct ky_policy_client *client, struct kymo_error *err)
{
	char output[PATH_MAX], recorder[32];
	/* Of this recorder only: what others call theirs is their choice. */
	char *const args[] = {(char *)"kymo", (char *)"snapshot", output, recorder, NULL};
	pid_t pid;

	if (recording->snapshot_pid || recording->snapshot_client)
		return ky_error_set(err, KYMO_E_STATE, "a snapshot of '%s' is in work",
				    recording->name);
	ky_policy_snapshot_remove(recording);
	snprintf(output, sizeof(output), "--output=%s/snapshot", recording->path);
	snprintf(recorder, sizeof(recorder), "--recorder=%d", (int)recording->pid);
	pid = daemon_recordings_run(recording, "snapshot-log", args, -1);
	if (pid < 0)
		return ky_error_errno(err, -pid, "cannot take a snapshot");
	recording->snapshot_pid = pid;
	recording->snapshot_client = client;
	return ky_loop_add_child(recording->policies->options.loop, pid, take_snapshot_end,
				 recording, &recording->snapshot_child, err);
}

void ky_policy_snapshot_remove(struct ky_policy_recording *recording)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/snapshot", recording->path);
	ky_tree_remove(path);
}

/* ---- all of them ---------------------------------------------------------------------- */

void ky_policy_recording_free(struct ky_policy_recording *recording)
{
	struct ky_policies *policies = recording->policies;
	size_t i = 0;

	while (policies->recordings.data[i] != recording)
		i++;
	policies->recordings.data[i] = policies->recordings.data[--policies->recordings.len];
	ky_loop_remove(recording->child);
	ky_loop_remove(recording->snapshot_child);
	end_ready(recording);
	if (recording->snapshot_pid) {
		(void)kill(recording->snapshot_pid, SIGKILL);
		(void)waitpid(recording->snapshot_pid, NULL, 0);
	}
	if (recording->pid) {
		(void)kill(recording->pid, SIGKILL);
		(void)waitpid(recording->pid, NULL, 0);
	}
	free(recording->path);
	free(recording);
}

void ky_policy_recording_remove(struct ky_policy_recording *recording)
{
	ky_policy_drop_clients(recording);
	if (recording->path)
		ky_tree_remove(recording->path);
	ky_policy_recording_free(recording);
}

static void look_at_recording(struct ky_policy_recording *recording, int64_t now)
{
	if (!ky_policy_is_active(recording)) {
		if (now - recording->ended_s > KEEP_S && !recording->is_fetched)
			ky_policy_recording_remove(recording);
	} else if (ky_policy_tree_bytes(recording->path) > recording->max_bytes) {
		ky_policy_recording_end(recording);
	}
}

void ky_policy_recordings_look(struct ky_policies *policies)
{
	int64_t now = ky_os_now_s();

	for (size_t i = policies->recordings.len; i-- > 0;)
		look_at_recording(policies->recordings.data[i], now);
}

/* NAME of NAME-UID-NUMBER. */
static bool policy_of(const char *name, const char *uid, char policy[KY_POLICY_NAME_MAX + 1])
{
	char end[32];
	int len = snprintf(end, sizeof(end), "-%s-", uid);
	const char *at = NULL;

	for (const char *next = strstr(name, end); next; next = strstr(next + 1, end))
		at = next;
	if (!at || at == name || at - name > KY_POLICY_NAME_MAX || !at[len])
		return false;
	snprintf(policy, KY_POLICY_NAME_MAX + 1, "%.*s", (int)(at - name), name);
	return true;
}

static void find_of_user(struct ky_policies *policies, int dir_fd, const char *directory,
			 const char *uid_text)
{
	DIR *dir = ky_dir_open(dir_fd, uid_text);
	char policy[KY_POLICY_NAME_MAX + 1];
	struct dirent *entry;
	uint64_t uid;

	while (dir && (entry = readdir(dir)) && policies->recordings.len < FOUND_MAX) {
		struct ky_policy_recording *recording;

		if (ky_parse_u64(uid_text, &uid) < 0 || strlen(entry->d_name) > 64 ||
		    !policy_of(entry->d_name, uid_text, policy))
			continue;
		recording = recording_new(policies, policy, (uid_t)uid);
		if (!recording)
			continue;
		recording->state = KY_POLICY_HAS_ENDED;
		recording->ended_s = ky_os_now_s();
		snprintf(recording->name, sizeof(recording->name), "%s", entry->d_name);
		if (asprintf(&recording->path, "%s/%s/%s", directory, uid_text, entry->d_name) <
		    0) {
			recording->path = NULL;
			ky_policy_recording_free(recording);
		}
	}
	if (dir)
		closedir(dir);
}

void ky_policy_recordings_find(struct ky_policies *policies)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "%s" DIRECTORY, policies->options.output);
	dir = ky_dir_open(AT_FDCWD, path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			find_of_user(policies, dirfd(dir), path, entry->d_name);
	if (dir)
		closedir(dir);
}
