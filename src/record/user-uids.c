/* SPDX-License-Identifier: MIT */
/*
 * A root recorder records the programs of all users; who has processes only later gets a session's
 * directory then. Programs that came before it was there are asked, like those that ran already.
 */
#include <ctype.h>
#include <dirent.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "record/user-internal.h"

#define PERIOD_NS (KY_USER_UIDS_MS * UINT64_C(1000000))

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

bool ky_user_follows_uids(const struct ky_user *user)
{
	return geteuid() == 0 && user->options.uid < 0;
}

static bool is_known(const struct ky_user *user, uid_t uid)
{
	for (size_t i = 0; i < user->uids.len; i++) {
		if (user->uids.data[i] == uid)
			return true;
	}
	return false;
}

/* 1: there is a new directory; 0: this user's programs are left out. */
static int take_uid(struct ky_user *user, uid_t uid, struct kymo_error *err)
{
	size_t before = user->dirs.len;
	int ret;

	if (ky_vec_push(&user->uids, uid) < 0)
		return ky_error_nomem(err);
	ret = ky_user_add_other_dir(user, uid, err);
	if (ret < 0 || user->dirs.len == before)
		return ret;
	if (ky_user_dir_publish(user->dirs.data[before], NULL) < 0)
		return 0;
	return 1;
}

static int look(struct ky_user *user, struct kymo_error *err)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int ret = 0, any = 0;
	struct stat st;

	while (dir && ret >= 0 && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]) ||
		    fstatat(dirfd(dir), entry->d_name, &st, 0) < 0 || is_known(user, st.st_uid))
			continue;
		ret = take_uid(user, st.st_uid, err);
		any |= ret > 0;
	}
	if (dir)
		closedir(dir);
	return ret < 0 ? ret : any;
}

/* Programs of the new directories' users that ran before these were there. */
static int ask_programs(struct ky_user *user, size_t first_dir, struct kymo_error *err)
{
	int ret = ky_programs_scan(&user->programs, err);

	for (size_t i = 0; i < user->programs.list.len && !ret; i++) {
		struct ky_program *program = user->programs.list.data[i];

		for (size_t k = first_dir; k < user->dirs.len && program->is_seen; k++) {
			if (user->dirs.data[k]->uid == program->uid)
				ky_user_ask_program(user, program);
		}
	}
	return ret == KYMO_E_MEMORY ? ret : KYMO_OK;
}

int ky_user_look_for_uids(struct ky_user *user, struct kymo_error *err)
{
	size_t first_dir = user->dirs.len;
	uint64_t now = now_ns();
	int ret = KYMO_OK;

	if (!ky_user_follows_uids(user) || now - user->uids_ns < PERIOD_NS)
		return KYMO_OK;
	/* Who holds it is about to look through all programs; rings are to be read meanwhile. */
	if (pthread_mutex_trylock(&user->lock) != 0)
		return KYMO_OK;
	user->uids_ns = now;
	if (!user->is_ending)
		ret = look(user, err);
	if (ret > 0)
		ret = ask_programs(user, first_dir, err);
	pthread_mutex_unlock(&user->lock);
	return ret;
}
