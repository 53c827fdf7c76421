/* SPDX-License-Identifier: MIT */
/*
 * Whose events are recorded: processes, threads, users, control groups. Their threads are looked for here, and put
 * into the kernel's list by session-pids.c; session-watch.c has users and groups looked for again.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/proc.h"
#include "os/file.h"
#include "record/session-internal.h"

#define CGROUP_MAX_BYTES (16u << 20) /* of a list of threads */
#define ROUNDS_MAX	 16
#define INIT_PID_NS	 0xeffffffcu /* the inode of the first pid namespace, since Linux 3.8 */

static int choose_tid(struct ky_session *session, int32_t tid, struct kymo_error *err)
{
	return ky_vec_push(&session->collected, tid) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* All threads of a process. How many; 0: there is none. */
static int choose_process(struct ky_session *session, const char *pid, struct kymo_error *err)
{
	char path[64];
	struct dirent *entry;
	int ret = KYMO_OK, n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%s/task", pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	while (ret >= 0 && (entry = readdir(dir))) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		ret = choose_tid(session, (int32_t)strtol(entry->d_name, NULL, 10), err);
		n++;
	}
	closedir(dir);
	return ret < 0 ? ret : n;
}

static int choose_pid(struct ky_session *session, int32_t pid, struct kymo_error *err)
{
	char text[16];
	int ret;

	snprintf(text, sizeof(text), "%" PRId32, pid);
	ret = choose_process(session, text, err);
	if (ret)
		return ret < 0 ? ret : KYMO_OK;
	ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no process %s", text);
	ky_error_hint(err, "--pid wants the ids of running processes");
	return ret;
}

static int choose_thread(struct ky_session *session, int32_t tid, struct kymo_error *err)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/proc/%" PRId32, tid);
	if (access(path, F_OK) == 0)
		return choose_tid(session, tid, err);
	ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no thread %" PRId32, tid);
	ky_error_hint(err, "--tid wants the ids of running threads");
	return ret;
}

/* All processes of a user, by the real uid. How many threads. */
static int choose_user(struct ky_session *session, uint32_t uid, struct kymo_error *err)
{
	struct ky_proc proc;
	struct ky_proc_ids ids;
	struct dirent *entry;
	int ret = ky_proc_open(&proc, err), n = 0;
	DIR *dir;

	if (ret < 0)
		return ret;
	dir = opendir("/proc");
	while (dir && ret >= 0 && (entry = readdir(dir))) {
		int32_t pid = (int32_t)strtol(entry->d_name, NULL, 10);

		/* Those that end meanwhile are none. */
		if (pid <= 0 || ky_proc_read_ids(&proc, pid, pid, &ids) < 0 || ids.uid != uid)
			continue;
		ret = choose_process(session, entry->d_name, err);
		n += ret > 0 ? ret : 0;
	}
	if (dir)
		closedir(dir);
	ky_proc_close(&proc);
	return ret < 0 ? ret : n;
}

/* ---- control groups ------------------------------------------------------------------- */

/* The list of threads in @dir: of version 2, of version 1. */
static int choose_group_dir(struct ky_session *session, const char *dir, struct kymo_error *err)
{
	static const char *const names[] = {"cgroup.threads", "tasks"};
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[4400];
	int ret = -ENOENT;

	for (size_t i = 0; i < 2 && ret == -ENOENT; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		ret = ky_read_file(AT_FDCWD, path, CGROUP_MAX_BYTES, &text);
	}
	if (ret < 0) {
		ky_strbuf_fini(&text);
		ret = ky_error_errno(err, -ret, "cannot read the threads of a control group");
		ky_error_path(err, dir);
		return ret;
	}
	ret = KYMO_OK;
	for (const char *at = ky_strbuf_text(&text); at && *at && ret >= 0;) {
		int32_t tid = (int32_t)strtol(at, NULL, 10);

		/* 0: of another pid namespace. */
		if (tid > 0)
			ret = choose_tid(session, tid, err);
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	ky_strbuf_fini(&text);
	return ret;
}

/* The group and those in it; of these, some may go away meanwhile. */
static int choose_group_tree(struct ky_session *session, const char *dir, int depth,
			     struct kymo_error *err)
{
	int ret = choose_group_dir(session, dir, depth ? NULL : err);
	struct dirent *entry;
	char path[4096];
	DIR *list = ret >= 0 ? opendir(dir) : NULL;

	if (ret < 0 && depth && ret != KYMO_E_MEMORY)
		return KYMO_OK;
	while (list && ret >= 0 && depth < 32 && (entry = readdir(list))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
			continue;
		ret = choose_group_tree(session, path, depth + 1, err);
	}
	if (list)
		closedir(list);
	return ret < 0 ? ret : KYMO_OK;
}

static bool is_group(const char *dir)
{
	char path[4200];

	return snprintf(path, sizeof(path), "%s/cgroup.procs", dir) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

/* "a/b", or "/a/b" as in /proc/PID/cgroup, of version 2 or else in any hierarchy of version 1; or a directory. */
static bool find_group(const char *name, char path[4096])
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct dirent *entry;
	bool found = false;
	DIR *list;

	if (name[0] == '/' && snprintf(path, 4096, "%s", name) < 4096 && is_group(path))
		return true;
	name += strspn(name, "/");
	for (int i = 0; i < 2; i++)
		if (snprintf(path, 4096, "%s/%s", roots[i], name) < 4096 && is_group(path))
			return true;
	list = opendir(roots[0]);
	while (list && !found && (entry = readdir(list)))
		found = entry->d_name[0] != '.' &&
			snprintf(path, 4096, "%s/%s/%s", roots[0], entry->d_name, name) < 4096 &&
			is_group(path);
	if (list)
		closedir(list);
	return found;
}

static int no_group(const char *name, struct kymo_error *err)
{
	int ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no control group '%s'", name);

	ky_error_hint(err, "a directory below /sys/fs/cgroup is wanted, or what /proc/PID/cgroup "
			   "calls it");
	return ret;
}

/* ---- choosing ------------------------------------------------------------------------- */

/* Who is there as long as it is looked at: processes, threads. */
struct ids {
	const int32_t *pids, *tids;
	size_t n_pids, n_tids;
};

static int choose_all(struct ky_session *session,
		      int (*choose)(struct ky_session *session, int32_t id, struct kymo_error *err),
		      const int32_t *ids, size_t n, bool must_be_there, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && !ret; i++) {
		ret = choose(session, ids[i], err);
		if (ret == KYMO_E_NOT_FOUND && !must_be_there)
			ret = KYMO_OK;
	}
	return ret;
}

int ky_session_collect_watched(struct ky_session *session, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&session->watch.uids, uid)
		if (ret >= 0)
			ret = choose_user(session, (uint32_t)*uid, err);
	/* One that was removed is empty. */
	ky_vec_foreach(&session->watch.groups, group)
		if (ret >= 0 && is_group(*group))
			ret = choose_group_tree(session, *group, 0, err);
	return ret < 0 ? ret : KYMO_OK;
}

/*
 * A thread that started another one before it was chosen, but after its process' threads were listed, has one that is
 * not: so once more, until there is nobody new.
 */
static int choose(struct ky_session *session, const struct ids *ids, struct kymo_error *err)
{
	size_t n_new = 1;
	int ret = KYMO_OK;

	for (int round = 0; n_new && round < ROUNDS_MAX; round++) {
		ky_vec_clear(&session->collected);
		/* Those that end meanwhile were there. */
		ret = choose_all(session, choose_pid, ids->pids, ids->n_pids, !round, err);
		if (!ret && !round)
			ret = choose_all(session, choose_thread, ids->tids, ids->n_tids, true, err);
		if (!ret)
			ret = ky_session_collect_watched(session, err);
		if (!ret)
			ret = ky_session_pids_add(session, &session->collected, &n_new, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

int ky_session_choose_watched(struct ky_session *session, struct kymo_error *err)
{
	return choose(session, &(struct ids){0}, err);
}

static int watch_uid(struct ky_session *session, int32_t uid, struct kymo_error *err)
{
	ky_vec_foreach(&session->watch.uids, other)
		if (*other == uid)
			return KYMO_OK;
	return ky_vec_push(&session->watch.uids, uid) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int watch_group(struct ky_session *session, const char *name, struct kymo_error *err)
{
	char path[4096], *copy;

	if (!find_group(name, path))
		return no_group(name, err);
	ky_vec_foreach(&session->watch.groups, other)
		if (strcmp(*other, path) == 0)
			return KYMO_OK;
	copy = strdup(path);
	if (copy && ky_vec_push(&session->watch.groups, copy) == 0)
		return KYMO_OK;
	free(copy);
	return ky_error_nomem(err);
}

static int follow_children(struct ky_session *session, struct kymo_error *err)
{
	session->convert.chosen_follow = true;
	return ky_instance_write(&session->instance, "options/event-fork", "1", err);
}

/* The kernel's lists are of ids as the first pid namespace has them, which others are not told. */
static int check_namespace(struct kymo_error *err)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == INIT_PID_NS)
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_UNSUPPORTED,
			    "whose events are recorded cannot be chosen from within a pid "
			    "namespace: the kernel's ids are others");
}

int ky_session_choose_child(struct ky_session *session, int32_t pid, struct kymo_error *err)
{
	const struct ids ids = {.pids = &pid, .n_pids = 1};

	if (!session->options.follow || session->has_chosen)
		return KYMO_OK;
	session->has_ids = true;
	return choose(session, &ids, err);
}

int ky_session_choose_threads(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_options *options = &session->options;
	const struct ids ids = {options->pids, options->tids, options->n_pids, options->n_tids};
	bool groups = options->n_pids || options->uid >= 0 || options->cgroup;
	int ret;

	session->has_ids = options->n_pids || options->n_tids;
	session->has_chosen = groups || options->n_tids;
	if (!session->has_chosen && !options->follow)
		return KYMO_OK;
	ret = check_namespace(err);
	if (!ret && (groups || options->follow))
		ret = follow_children(session, err);
	if (!ret && options->uid >= 0)
		ret = watch_uid(session, (int32_t)options->uid, err);
	if (!ret && options->cgroup)
		ret = watch_group(session, options->cgroup, err);
	/* Before they are looked for: who joins meanwhile is then told of. */
	if (!ret)
		ret = ky_session_watch_start(session, err);
	return ret < 0 || !session->has_chosen ? ret : choose(session, &ids, err);
}

/* ---- while recording ------------------------------------------------------------------ */

/* The first choice of a recording of everything ends that it is one. */
static int begin_choice(struct ky_session *session, struct kymo_error *err)
{
	int ret;

	if (session->has_chosen || session->options.follow)
		return KYMO_OK;
	ret = check_namespace(err);
	session->has_chosen = ret == 0;
	return ret;
}

static int add(struct ky_session *session, enum ky_session_choice what, const int32_t *ids,
	       size_t n, struct kymo_error *err)
{
	struct ids chosen = {0};
	int ret = KYMO_OK;

	if (what == KY_SESSION_UIDS) {
		for (size_t i = 0; i < n && !ret; i++)
			ret = watch_uid(session, ids[i], err);
		if (!ret)
			ret = ky_session_watch_start(session, err);
	} else if (what == KY_SESSION_PIDS) {
		chosen = (struct ids){.pids = ids, .n_pids = n};
	} else {
		chosen = (struct ids){.tids = ids, .n_tids = n};
	}
	/* Are they there? Else nothing changes. */
	ky_vec_clear(&session->collected);
	if (!ret)
		ret = choose_all(session, choose_pid, chosen.pids, chosen.n_pids, true, err);
	if (!ret)
		ret = choose_all(session, choose_thread, chosen.tids, chosen.n_tids, true, err);
	if (!ret && what != KY_SESSION_TIDS)
		ret = follow_children(session, err);
	if (!ret)
		ret = begin_choice(session, err);
	if (!ret)
		session->has_ids |= what != KY_SESSION_UIDS;
	return ret < 0 ? ret : choose(session, &chosen, err);
}

static int take_out(struct ky_session *session, enum ky_session_choice what, const int32_t *ids,
		    size_t n, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_clear(&session->collected);
	if (what != KY_SESSION_UIDS)
		ret = choose_all(session, what == KY_SESSION_PIDS ? choose_pid : choose_thread, ids,
				 n, true, err);
	for (size_t i = 0; what == KY_SESSION_UIDS && i < n && ret >= 0; i++) {
		ret = choose_user(session, (uint32_t)ids[i], err);
		for (size_t k = session->watch.uids.len; k-- > 0;)
			if (session->watch.uids.data[k] == ids[i])
				session->watch.uids.data[k] =
					session->watch.uids.data[--session->watch.uids.len];
	}
	return ret < 0 ? ret : ky_session_pids_remove(session, &session->collected, err);
}

static int is_of_all(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_STATE,
			    "this recording is of all processes: choose some first");
}

int ky_session_choose(struct ky_session *session, enum ky_session_choice what, const int32_t *ids,
		      size_t n, bool adds, struct kymo_error *err)
{
	if (adds)
		return add(session, what, ids, n, err);
	if (!session->has_chosen && !session->options.follow)
		return is_of_all(err);
	return take_out(session, what, ids, n, err);
}

int ky_session_choose_group(struct ky_session *session, const char *name, bool adds,
			    struct kymo_error *err)
{
	char path[4096];
	int ret;

	if (adds) {
		ret = watch_group(session, name, err);
		if (!ret)
			ret = ky_session_watch_start(session, err);
		if (!ret)
			ret = follow_children(session, err);
		if (!ret)
			ret = begin_choice(session, err);
		return ret < 0 ? ret : ky_session_choose_watched(session, err);
	}
	if (!session->has_chosen && !session->options.follow)
		return is_of_all(err);
	if (!find_group(name, path))
		return no_group(name, err);
	for (size_t k = session->watch.groups.len; k-- > 0;) {
		if (strcmp(session->watch.groups.data[k], path) != 0)
			continue;
		free(session->watch.groups.data[k]);
		session->watch.groups.data[k] =
			session->watch.groups.data[--session->watch.groups.len];
	}
	ky_vec_clear(&session->collected);
	ret = choose_group_tree(session, path, 0, err);
	return ret < 0 ? ret : ky_session_pids_remove(session, &session->collected, err);
}
