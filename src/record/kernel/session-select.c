/* SPDX-License-Identifier: MIT */
/*
 * The choice of events: processes, threads, users, control groups. Their threads are looked for here (those of groups
 * by session-groups.c), and put into the kernel's list by session-pids.c; session-watch.c has users and groups looked for
 * again.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/process/proc.h"
#include "record/kernel/session-internal.h"

#define ROUNDS_MAX 16

int ky_session_collect_tid(struct ky_session *session, int32_t tid, struct kymo_error *err)
{
	/* 0: it ended meanwhile. */
	tid = ky_pid_to_kernel(&session->view, tid);
	if (!tid)
		return KYMO_OK;
	return ky_vec_push(&session->collected, tid) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

int ky_session_collect_process(struct ky_session *session, const char *pid, struct kymo_error *err)
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
		ret = ky_session_collect_tid(session, (int32_t)strtol(entry->d_name, NULL, 10),
					     err);
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
	ret = ky_session_collect_process(session, text, err);
	if (ret)
		return ret < 0 ? ret : KYMO_OK;
	ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no process %s", text);
	ky_error_hint(err, "give the id of a running process");
	return ret;
}

static int choose_thread(struct ky_session *session, int32_t tid, struct kymo_error *err)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/proc/%" PRId32, tid);
	if (access(path, F_OK) == 0)
		return ky_session_collect_tid(session, tid, err);
	ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no thread %" PRId32, tid);
	ky_error_hint(err, "give the id of a running thread");
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
		ret = ky_session_collect_process(session, entry->d_name, err);
		n += ret > 0 ? ret : 0;
	}
	if (dir)
		closedir(dir);
	ky_proc_close(&proc);
	return ret < 0 ? ret : n;
}

/* ---- choosing ------------------------------------------------------------------------- */

/* The processes and threads that exist during the search. */
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

/* Their threads, as they are now. */
static int collect_ids(struct ky_session *session, enum ky_session_choice what, const int32_t *ids,
		       size_t n, bool must_be_there, struct kymo_error *err)
{
	int ret = ky_pid_view_refresh(&session->view, err);

	ky_vec_clear(&session->collected);
	if (!ret && what != KY_SESSION_UIDS)
		return choose_all(session, what == KY_SESSION_PIDS ? choose_pid : choose_thread,
				  ids, n, must_be_there, err);
	for (size_t i = 0; i < n && ret >= 0; i++)
		ret = choose_user(session, (uint32_t)ids[i], err);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_session_collect_watched(struct ky_session *session, struct kymo_error *err)
{
	size_t first = session->collected.len;
	int ret = ky_pid_view_refresh(&session->view, err);

	ky_vec_foreach(&session->watch.uids, uid)
		if (ret >= 0)
			ret = choose_user(session, (uint32_t)*uid, err);
	ky_vec_foreach(&session->watch.groups, group)
		if (ret >= 0)
			ret = ky_session_collect_group(session, *group, false, err);
	return ret < 0 ? ret : ky_session_spare_removed(session, first, err);
}

/*
 * A thread that started another one before it was chosen, but after its process' threads were listed, has one that is
 * not: so once more, until there is no new thread.
 */
static int session_select_choose(struct ky_session *session, const struct ids *ids,
				 struct kymo_error *err)
{
	size_t n_new = 1;
	int ret = KYMO_OK;

	for (int round = 0; n_new && round < ROUNDS_MAX; round++) {
		ky_vec_clear(&session->collected);
		ret = ky_pid_view_refresh(&session->view, err);
		if (ret < 0)
			return ret;
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
	return session_select_choose(session, &(struct ids){0}, err);
}

static int watch_uid(struct ky_session *session, int32_t uid, struct kymo_error *err)
{
	ky_vec_foreach(&session->watch.uids, other)
		if (*other == uid)
			return KYMO_OK;
	return ky_vec_push(&session->watch.uids, uid) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int follow_children(struct ky_session *session, struct kymo_error *err)
{
	session->kernel.convert.chosen_follow = true;
	return ky_session_write_all(session, "options/event-fork", "1", err);
}

/* The kernel's lists have ids of the first pid namespace; in other namespaces, BPF provides them. */
static int check_namespace(const struct ky_session *session, struct kymo_error *err)
{
	int ret;

	if (!session->view.is_blind)
		return KYMO_OK;
	ret = ky_error_set(err, KYMO_E_UNSUPPORTED,
			   "processes and threads cannot be chosen from within this pid "
			   "namespace: the kernel's ids differ and are not known: %s",
			   session->blind.message);
	ky_error_hint(err,
		      "%s%srecord on the host and choose this container there, or start the "
		      "container with the host's process ids; thread names and filters choose "
		      "from here, too",
		      session->blind.hint, *session->blind.hint ? "; or " : "");
	return ret;
}

int ky_session_choose_child(struct ky_session *session, int32_t pid, struct kymo_error *err)
{
	const struct ids ids = {.pids = &pid, .n_pids = 1};

	if (!session->options.threads.follow || session->has_chosen)
		return KYMO_OK;
	session->has_ids = true;
	return session_select_choose(session, &ids, err);
}

int ky_session_choose_threads(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_threads *threads = &session->options.threads;
	const struct ids ids = {threads->pids, threads->tids, threads->n_pids, threads->n_tids};
	bool groups = threads->n_pids || threads->uid >= 0 || threads->n_cgroups;
	int ret;

	session->has_ids = threads->n_pids || threads->n_tids;
	session->has_chosen = groups || threads->n_tids;
	if (!session->has_chosen && !threads->follow)
		return KYMO_OK;
	ret = check_namespace(session, err);
	if (!ret && (groups || threads->follow))
		ret = follow_children(session, err);
	if (!ret && threads->uid >= 0)
		ret = watch_uid(session, (int32_t)threads->uid, err);
	for (size_t i = 0; i < threads->n_cgroups && !ret; i++)
		ret = ky_session_watch_group(session, threads->cgroups[i], err);
	/* Before the search, so that the watch reports threads that join meanwhile. */
	if (!ret)
		ret = ky_session_watch_start(session, err);
	return ret < 0 || !session->has_chosen ? ret : session_select_choose(session, &ids, err);
}

/* ---- while recording ------------------------------------------------------------------ */

/* Undo: threads that were not watched before are not. */
static void watch_no_more(struct ky_session *session, size_t n_uids, size_t n_groups)
{
	session->watch.uids.len = n_uids;
	while (session->watch.groups.len > n_groups)
		free(session->watch.groups.data[--session->watch.groups.len]);
}

/*
 * They are there, in session->collected, and all that can be checked was. The first choice of a recording of everything
 * ends that it is one.
 */
static int session_select_begin(struct ky_session *session, enum ky_session_choice what,
				const struct ids *ids, struct kymo_error *err)
{
	bool had_chosen = session->has_chosen, had_ids = session->has_ids;
	int ret = what == KY_SESSION_UIDS ? ky_session_watch_start(session, err) : KYMO_OK;

	if (!ret && what != KY_SESSION_TIDS)
		ret = follow_children(session, err);
	if (ret < 0)
		return ret;
	ky_session_readmit(session);
	session->has_chosen |= !session->options.threads.follow;
	session->has_ids |= what != KY_SESSION_UIDS;
	ret = session_select_choose(session, ids, err);
	if (ret < 0 && !session->has_list) {
		session->has_chosen = had_chosen;
		session->has_ids = had_ids;
	}
	return ret;
}

static int session_select_add(struct ky_session *session, enum ky_session_choice what,
			      const int32_t *ids, size_t n, struct kymo_error *err)
{
	size_t n_uids = session->watch.uids.len, n_groups = session->watch.groups.len;
	struct ids chosen = {0};
	int ret = check_namespace(session, err);

	/* Are they there? Else nothing changes. */
	if (!ret)
		ret = collect_ids(session, what, ids, n, true, err);
	if (what == KY_SESSION_PIDS)
		chosen = (struct ids){.pids = ids, .n_pids = n};
	else if (what == KY_SESSION_TIDS)
		chosen = (struct ids){.tids = ids, .n_tids = n};
	for (size_t i = 0; what == KY_SESSION_UIDS && i < n && !ret; i++)
		ret = watch_uid(session, ids[i], err);
	if (!ret)
		ret = session_select_begin(session, what, &chosen, err);
	if (ret < 0)
		watch_no_more(session, n_uids, n_groups);
	return ret;
}

static int session_select_add_group(struct ky_session *session, const char *name,
				    struct kymo_error *err)
{
	size_t n_uids = session->watch.uids.len, n_groups = session->watch.groups.len;
	int ret = check_namespace(session, err);

	ky_vec_clear(&session->collected);
	if (!ret)
		ret = ky_session_watch_group(session, name, err);
	if (!ret)
		ret = session_select_begin(session, KY_SESSION_UIDS, &(struct ids){0}, err);
	if (ret < 0)
		watch_no_more(session, n_uids, n_groups);
	return ret;
}

/* Removes users or groups; threads of other chosen users or groups stay. */
static int spare_watched(struct ky_session *session, struct kymo_error *err)
{
	struct ky_tids *tids = &session->collected;
	size_t n = tids->len, n_left = 0;
	int ret = ky_session_collect_watched(session, err);
	struct ky_map watched;

	ky_map_init(&watched);
	for (size_t i = n; i < tids->len && !ret; i++)
		if (ky_map_set(&watched, (uint32_t)tids->data[i], tids) < 0)
			ret = ky_error_nomem(err);
	for (size_t i = 0; i < n; i++)
		if (!ky_map_get(&watched, (uint32_t)tids->data[i]))
			tids->data[n_left++] = tids->data[i];
	tids->len = n_left;
	ky_map_fini(&watched);
	return ret;
}

/* @group: instead of ids. Repeats, as session_select_choose() does, until no thread is new. */
static int session_select_take_out(struct ky_session *session, enum ky_session_choice what,
				   const int32_t *ids, size_t n, const char *group,
				   struct kymo_error *err)
{
	size_t n_new = 1;
	int ret = KYMO_OK;

	for (int round = 0; n_new && round < ROUNDS_MAX; round++) {
		ret = collect_ids(session, what, ids, n, !round, err);
		if (!ret && group)
			ret = ky_session_collect_group(session, group, false, err);
		if (!ret && what == KY_SESSION_UIDS)
			ret = spare_watched(session, err);
		if (!ret)
			ret = ky_session_pids_remove(session, &session->collected, &n_new, err);
		if (ret < 0)
			return ret;
	}
	return what == KY_SESSION_UIDS
		       ? KYMO_OK
		       : ky_session_note_removed(session, ids, n, what == KY_SESSION_PIDS, err);
}

static int is_of_all(struct kymo_error *err)
{
	return ky_error_set(err, KYMO_E_STATE,
			    "this recording is of all processes: choose some first");
}

int ky_session_choose(struct ky_session *session, enum ky_session_choice what, const int32_t *ids,
		      size_t n, bool adds, struct kymo_error *err)
{
	struct ky_session_watch *watch = &session->watch;

	if (adds)
		return session_select_add(session, what, ids, n, err);
	if (!session->has_chosen && !session->options.threads.follow)
		return is_of_all(err);
	for (size_t i = 0; what == KY_SESSION_UIDS && i < n; i++)
		for (size_t k = watch->uids.len; k-- > 0;)
			if (watch->uids.data[k] == ids[i])
				watch->uids.data[k] = watch->uids.data[--watch->uids.len];
	return session_select_take_out(session, what, ids, n, NULL, err);
}

int ky_session_choose_group(struct ky_session *session, const char *name, bool adds,
			    struct kymo_error *err)
{
	char path[4096];
	int ret;

	if (adds)
		return session_select_add_group(session, name, err);
	if (!session->has_chosen && !session->options.threads.follow)
		return is_of_all(err);
	ret = ky_session_unwatch_group(session, name, path, err);
	return ret < 0 ? ret
		       : session_select_take_out(session, KY_SESSION_UIDS, NULL, 0, path, err);
}
