/* SPDX-License-Identifier: MIT */
/*
 * Root's recorder records the programs of all users. A user without processes at the start gets a session directory
 * later. The recorder then asks programs that started before the directory existed to join, as at the start.
 * It searches for new users when a process has changed its user (user-uid-events.h), or, where it hears of no such
 * changes, every two seconds.
 *
 * The search through all processes takes longer than rings can wait: so the search and the requests are tasks.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "record/user/user-internal.h"

/* Between two searches. Without the kernel's events, there is no other sign of a new user than a process of theirs. */
#define PERIOD_NS	250000000u
#define BLIND_PERIOD_NS 2000000000u

/* In a user namespace of one's own one can be many users: each takes memory and descriptors of ours. */
#define OWNERS_MAX 1024
#define AT_A_TIME  16

bool ky_user_follows_uids(const struct ky_user *user)
{
	return __atomic_load_n(&user->follows_uids, __ATOMIC_RELAXED);
}

static struct ky_user *user_uids_user_of(struct ky_user_task *task)
{
	struct ky_user_newcomers *newcomers =
		(struct ky_user_newcomers *)((char *)task -
					     offsetof(struct ky_user_newcomers, task));

	return (struct ky_user *)((char *)newcomers - offsetof(struct ky_user, newcomers));
}

/* ---- the tasks ------------------------------------------------------------------------ */

static bool user_uids_is_known(const struct ky_user_newcomers *newcomers, uid_t uid)
{
	for (size_t i = 0; i < newcomers->uids.len; i++) {
		if (newcomers->uids.data[i] == uid)
			return true;
	}
	return false;
}

/* What cannot be had for this user is a warning. */
static void meet(struct ky_user *user, uid_t uid)
{
	struct ky_user_newcomers *newcomers = &user->newcomers;
	struct ky_user_owner *owner;
	struct kymo_error err;
	int ret;

	if (ky_vec_push(&newcomers->uids, uid) < 0 || ky_user_owner_of(user, uid))
		return;
	if (user->owners.len + newcomers->fresh.len >= OWNERS_MAX) {
		if (!user->is_full_told)
			ky_log_warning(user->options.log,
				       "programs of more than %d users are left out", OWNERS_MAX);
		user->is_full_told = true;
		return;
	}
	/* The lock: a change replaces the file that the directory gets. */
	pthread_mutex_lock(&user->lock);
	ret = ky_user_owner_new(user, uid, &owner, &err);
	pthread_mutex_unlock(&user->lock);
	if (ret < 0)
		ky_log_warning(user->options.log, "programs of user %u are left out: %s: %s", uid,
			       err.path, err.message);
	else if (ky_vec_push(&newcomers->fresh, owner) < 0)
		ky_user_owner_free(owner);
}

static void look_at(struct ky_user *user, int proc_fd, const char *pid)
{
	struct stat st;

	if (fstatat(proc_fd, pid, &st, 0) == 0 && !user_uids_is_known(&user->newcomers, st.st_uid))
		meet(user, st.st_uid);
}

/* False: the recording is not of a few processes. */
static bool look_at_chosen(struct ky_user *user, int proc_fd)
{
	KY_VEC(uint32_t) pids = {0};
	bool ok;

	pthread_mutex_lock(&user->lock);
	ok = ky_user_has_pids_only(user);
	ky_vec_foreach(&user->request.choice.pids, chosen)
		ok = ok && ky_vec_push(&pids, chosen->pid) == 0;
	pthread_mutex_unlock(&user->lock);
	for (size_t i = 0; ok && i < pids.len; i++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", pids.data[i]);
		look_at(user, proc_fd, name);
	}
	ky_vec_fini(&pids);
	return ok;
}

static void run_look(struct ky_user_task *task)
{
	struct ky_user *user = user_uids_user_of(task);
	DIR *dir = ky_dir_open(AT_FDCWD, "/proc");
	struct dirent *entry;

	if (!dir)
		return;
	if (!look_at_chosen(user, dirfd(dir)))
		while (user->newcomers.fresh.len < AT_A_TIME && (entry = readdir(dir)))
			if (isdigit((unsigned char)entry->d_name[0]))
				look_at(user, dirfd(dir), entry->d_name);
	closedir(dir);
}

/* Programs of the new directories' users that ran before these were there. */
static void run_ask(struct ky_user_task *task)
{
	struct ky_user *user = user_uids_user_of(task);

	pthread_mutex_lock(&user->lock);
	if (!user->is_ending)
		(void)ky_user_scan(user, false, NULL);
	for (size_t i = 0; i < user->programs.list.len && !user->is_ending; i++) {
		struct ky_program *program = user->programs.list.data[i];

		for (size_t k = user->newcomers.first; k < user->owners.len && program->is_seen;
		     k++) {
			if (user->owners.data[k]->dir.uid == program->uid)
				ky_user_ask_program(user, program);
		}
	}
	pthread_mutex_unlock(&user->lock);
}

/* ---- the thread that reads ------------------------------------------------------------- */

static void user_uids_give(struct ky_user *user, void (*run)(struct ky_user_task *task))
{
	user->newcomers.is_away = true;
	user->newcomers.task.run = run;
	ky_user_work_add(&user->work, &user->newcomers.queue, &user->newcomers.task);
}

void ky_user_newcomers_done(struct ky_user *user)
{
	user->newcomers.is_away = false;
	/* Users that are known need no search. */
	if (user->newcomers.events_fd >= 0 &&
	    user->newcomers.uids.len != user->newcomers.n_ignored) {
		user->newcomers.n_ignored = user->newcomers.uids.len;
		ky_uid_events_ignore(user->newcomers.events_fd, user->newcomers.uids.data,
				     user->newcomers.uids.len);
	}
	user->newcomers.has_new = user->newcomers.fresh.len != 0;
	/* There may be more. */
	user->newcomers.is_due |= user->newcomers.fresh.len >= AT_A_TIME;
}

/* Programs of the new users can find the session from now on. False: another thread has the lock. */
static bool introduce(struct ky_user *user)
{
	struct ky_user_newcomers *newcomers = &user->newcomers;
	struct kymo_error err;

	/* Who holds it is about to look through all programs; rings are to be read meanwhile. */
	if (pthread_mutex_trylock(&user->lock) != 0)
		return false;
	newcomers->first = user->owners.len;
	for (size_t i = 0; i < newcomers->fresh.len; i++) {
		struct ky_user_owner *owner = newcomers->fresh.data[i];
		uid_t uid = owner->dir.uid;

		if (user->is_ending)
			ky_user_owner_free(owner);
		/* The rules may have changed since the task made it. */
		else if (ky_user_owner_add(user, owner, &err) < 0 ||
			 ky_user_owner_update(user, owner, &err) < 0 ||
			 ky_user_dir_publish(&owner->dir, &err) < 0)
			ky_log_warning(user->options.log,
				       "programs of user %u are left out: %s: %s", uid, err.path,
				       err.message);
	}
	newcomers->fresh.len = 0;
	newcomers->has_new = false;
	pthread_mutex_unlock(&user->lock);
	if (newcomers->first < user->owners.len)
		user_uids_give(user, run_ask);
	return true;
}

void ky_user_uids_told(struct ky_user *user)
{
	ky_uid_events_clear(user->newcomers.events_fd);
	user->newcomers.is_due = true;
}

/* The first time: users that came since the start are found by a search. */
static void listen_for_uids(struct ky_user_newcomers *newcomers)
{
	if (newcomers->is_listening)
		return;
	newcomers->is_listening = newcomers->is_due = true;
	newcomers->events_fd = ky_uid_events_open();
}

static uint64_t due_ns(const struct ky_user_newcomers *newcomers)
{
	return newcomers->looked_ns + (newcomers->is_due ? PERIOD_NS : BLIND_PERIOD_NS);
}

int ky_user_uids_wait_ms(const struct ky_user *user)
{
	const struct ky_user_newcomers *newcomers = &user->newcomers;
	uint64_t now = ky_os_now_ns();

	if (!newcomers->is_listening || newcomers->is_away ||
	    (newcomers->events_fd >= 0 && !newcomers->is_due))
		return -1;
	return now >= due_ns(newcomers) ? 0 : (int)((due_ns(newcomers) - now) / 1000000 + 1);
}

void ky_user_look_for_uids(struct ky_user *user)
{
	struct ky_user_newcomers *newcomers = &user->newcomers;

	if (!ky_user_follows_uids(user) || newcomers->is_away)
		return;
	listen_for_uids(newcomers);
	/* Partner: follow_uids(). */
	newcomers->is_due |= __atomic_exchange_n(&newcomers->is_asked, false, __ATOMIC_RELAXED);
	if (newcomers->has_new && (!introduce(user) || newcomers->is_away))
		return;
	if (ky_user_uids_wait_ms(user) != 0)
		return;
	newcomers->looked_ns = ky_os_now_ns();
	newcomers->is_due = false;
	user_uids_give(user, run_look);
}
