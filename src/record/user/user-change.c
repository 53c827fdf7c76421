/* SPDX-License-Identifier: MIT */
/*
 * A recording changes while it runs: a new session file with a new cookie in the same directory, then the
 * cookie in the programs' slots, then the enable bits of the events that are wanted now.
 *
 * A program that starts at this moment may have read the old file, and fill its slot after the recorder's search.
 * Such a program reads the file once more (src/tracer/session-find.c). So the search comes after the new file.
 * Programs in a sandbox keep an old cookie; the end of the recording has a warning about them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "record/user/user-internal.h"

/* Names of the filter must be fields of events that it is about. */
static int check_filter(struct ky_user *user, const struct ky_user_change *change,
			struct kymo_error *err)
{
	struct ky_user_rule rule = {.pattern = (char *)change->pattern, .level_max = 14};
	struct ky_user_filter filter = {0};
	struct ky_user_names names = {0};
	struct ky_user_event event;
	int ret;

	if (change->kind != KY_USER_RULES || !change->enables || !change->filter)
		return KYMO_OK;
	ret = ky_user_filter_compile(change->filter, &filter, err);
	for (size_t i = 0; i < user->programs.list.len && !ret; i++) {
		for (size_t at = 0;
		     !ret && ky_program_next_event(user->programs.list.data[i], &at, &event);) {
			if (!event.is_query && ky_user_rule_takes(&rule, &event) &&
			    ky_user_names_add(&names, &event) < 0)
				ret = ky_error_nomem(err);
		}
	}
	if (!ret)
		ret = ky_user_names_check(&names, &filter, err);
	ky_user_names_fini(&names);
	ky_user_filter_fini(&filter);
	return ret;
}

static int user_change_scan(struct ky_user *user, struct kymo_error *err)
{
	int ret = ky_user_scan(user, true, err);

	for (size_t i = 0; i < user->programs.list.len && !ret; i++) {
		if (ky_programs_read_table(&user->programs, user->programs.list.data[i], NULL) < 0)
			ret = ky_error_nomem(err);
	}
	return ret;
}

static void user_change_tell_program(struct ky_user *user, struct ky_program *program)
{
	const struct ky_user_owner *owner = ky_user_owner_of(user, program->uid);

	if (!program->is_seen || (owner && owner->has_old_rules))
		return;
	for (size_t i = 0; i < user->old_cookies.len; i++)
		ky_program_replace(program, user->old_cookies.data[i], user->request.cookie);
	ky_user_ask_program(user, program);
}

static void user_change_tell_programs(struct ky_user *user)
{
	ky_vec_foreach(&user->programs.list, program)
		user_change_tell_program(user, *program);
}

static int change_files(struct ky_user *user, struct kymo_error *err)
{
	struct kymo_error local;
	int ret = KYMO_OK, here;

	ky_vec_foreach(&user->owners, it) {
		struct ky_user_owner *owner = *it;

		here = ky_user_owner_update(user, owner, &local);
		owner->has_old_rules = here < 0;
		/* What another user does to their own directory costs that user only. */
		if (here < 0 && owner->dir.uid != geteuid())
			ky_log_warning(user->options.log,
				       "programs of user %u keep the rules that they have: %s: %s",
				       owner->dir.uid, local.path, local.message);
		if (here == 0 || owner->dir.uid != geteuid())
			continue;
		ret = here;
		if (err)
			*err = local;
	}
	return ret;
}

static int change_all(struct ky_user *user, const struct ky_user_change *change,
		      struct kymo_error *err)
{
	uint64_t old = user->request.cookie;
	int ret = user_change_scan(user, err), found;

	if (!ret)
		ret = check_filter(user, change, err);
	if (!ret && ky_vec_reserve(&user->old_cookies, 1) < 0)
		ret = ky_error_nomem(err);
	if (!ret)
		ret = ky_user_request_change(&user->request, change, err);
	if (ret < 0)
		return ret;
	user->old_cookies.data[user->old_cookies.len++] = old;
	ret = change_files(user, err);
	/* Those that have come since we looked may have read the old file. */
	found = user_change_scan(user, ret ? NULL : err);
	user_change_tell_programs(user);
	return ret ? ret : found;
}

/* Whether these processes are there, and this user may trace them. */
static int check_pid(int32_t pid, struct kymo_error *err)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) < 0)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no process %d", pid);
	if (geteuid() != 0 && st.st_uid != geteuid())
		return ky_error_set(err, KYMO_E_PERMISSION,
				    "no permission to trace process %d of user %u", pid, st.st_uid);
	return KYMO_OK;
}

static int check_ids(const struct ky_user_change *change, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < change->n_ids && change->enables && !ret; i++) {
		if (change->kind == KY_USER_PIDS)
			ret = check_pid(change->ids[i], err);
		else if (geteuid() != 0 && (uid_t)change->ids[i] != geteuid())
			ret = ky_error_set(err, KYMO_E_PERMISSION,
					   "no permission to trace the programs of user %d",
					   change->ids[i]);
	}
	return ret;
}

/* A recording that began with one user's programs, or with some processes, meets the others now. */
static void follow_uids(struct ky_user *user)
{
	if (geteuid() != 0)
		return;
	__atomic_store_n(&user->follows_uids, true, __ATOMIC_RELAXED);
	__atomic_store_n(&user->newcomers.is_asked, true, __ATOMIC_RELAXED);
	(void)eventfd_write(user->order_fd, 1);
}

int ky_user_change(struct ky_user *user, const struct ky_user_change *change,
		   struct kymo_error *err)
{
	int ret = check_ids(change, err);

	if (ret < 0)
		return ret;
	pthread_mutex_lock(&user->lock);
	ret = change_all(user, change, err);
	pthread_mutex_unlock(&user->lock);
	if (!ret && change->n_ids && change->enables)
		follow_uids(user);
	return ret;
}

const struct ky_user_rule *ky_user_rule_at(const struct ky_user *user, size_t i)
{
	const struct ky_user_rules *rules = &user->request.rules;

	return i < rules->list.len ? &rules->list.data[i] : NULL;
}
