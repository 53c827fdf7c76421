/* SPDX-License-Identifier: MIT */
/*
 * The search for programs that run already. To look at all processes takes the longer the more there are, and many
 * recorders may start at the same time: so a recording of a few processes looks at those only.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "os/file.h"
#include "record/user/user-internal.h"

/* Whether numbers in /proc are what this process and its user call processes. */
static bool proc_is_ours(void)
{
	char link[16];
	ssize_t len = readlink("/proc/self", link, sizeof(link) - 1);

	if (len <= 0)
		return false;
	link[len] = 0;
	return strtol(link, NULL, 10) == getpid();
}

bool ky_user_has_pids_only(const struct ky_user *user)
{
	const struct ky_user_choice *choice = &user->request.choice;

	return choice->pids.len && !choice->uids.len && !user->old_cookies.len;
}

static bool user_scan_is_chosen(const struct ky_user *user, const struct ky_program *program)
{
	ky_vec_foreach(&user->request.choice.pids, chosen) {
		if ((pid_t)chosen->pid == program->pid && chosen->inner == program->own_pid)
			return true;
	}
	return false;
}

/* *is_complete: the programs of the chosen processes are theirs alone, so that no others matter. */
static int scan_chosen(struct ky_user *user, bool *is_complete, struct kymo_error *err)
{
	const struct ky_user_choice *choice = &user->request.choice;
	KY_VEC(pid_t) pids = {0};
	int ret = KYMO_OK;

	ky_vec_foreach(&choice->pids, chosen) {
		if (!ret && ky_vec_push(&pids, (pid_t)chosen->pid) < 0)
			ret = ky_error_nomem(err);
	}
	if (!ret)
		ret = ky_programs_scan_pids(&user->programs, pids.data, pids.len, err);
	ky_vec_fini(&pids);
	*is_complete = true;
	/* A forked child has its parent's control file: whose it is shows when all processes are looked at. */
	ky_vec_foreach(&user->programs.list, it)
		*is_complete &= !(*it)->is_seen || user_scan_is_chosen(user, *it);
	return ret;
}

static void tell_refusals(struct ky_user *user, uint64_t refusals)
{
	refusals = ky_file_refusals() - refusals + user->programs.n_refused;
	if (refusals && !user->is_short_told)
		ky_log_warning(
			user->options.log,
			"running programs may be missing: %llu files of processes could not be "
			"opened, because too many were open; raise the limit of open files (ulimit "
			"-n)",
			(unsigned long long)refusals);
	user->is_short_told |= refusals != 0;
}

int ky_user_scan(struct ky_user *user, bool all, struct kymo_error *err)
{
	uint64_t refusals = ky_file_refusals();
	bool is_complete = false;
	int ret = KYMO_OK;

	if (!all && ky_user_has_pids_only(user) && proc_is_ours())
		ret = scan_chosen(user, &is_complete, err);
	if (!ret && !is_complete)
		ret = ky_programs_scan(&user->programs, err);
	/* Partner: user_files_has_room(), which looks how many descriptors are left. */
	__atomic_store_n(&user->n_control_files, user->programs.list.len, __ATOMIC_RELAXED);
	tell_refusals(user, refusals);
	return ret;
}

int ky_user_scan_first(struct ky_user *user, struct kymo_error *err)
{
	bool is_roots = geteuid() == 0 && user->options.uid < 0;

	/* The fields of their events. */
	if (user->request.filter.names.len)
		return ky_user_scan(user, true, err);
	if (ky_user_has_pids_only(user))
		return ky_user_scan(user, false, err);
	return is_roots ? ky_programs_find_uids(&user->programs, err) : KYMO_OK;
}

/* ---- programs that are no longer asked -------------------------------------------------- */

/* Whether the program that writes the ring was found. */
static bool is_known(const struct ky_user *user, const struct ky_user_ring *ring)
{
	const struct ky_blob *blob = ky_user_ring_blob(ring);

	ky_vec_foreach(&user->programs.list, program) {
		if ((*program)->own_pid == blob->pid && (*program)->start_ns == blob->start_ns)
			return true;
	}
	return false;
}

bool ky_user_has_strangers(const struct ky_user *user)
{
	if (!ky_user_has_pids_only(user))
		return false;
	ky_vec_foreach(&user->rings, it) {
		const struct ky_user_ring_file *file = *it;

		if (file->is_away)
			return true;
		if (file->ring && file->ring->reader && !ky_user_ring_is_left(file->ring) &&
		    (file->ring->is_shared || !is_known(user, file->ring)))
			return true;
	}
	return false;
}

/* ---- what killed recorders left --------------------------------------------------------- */

struct leftovers {
	struct ky_user *user;
	unsigned int n_told;
	/* One line for other users' leftovers, and for those beyond LEFTOVERS_TOLD. */
	unsigned int n_rings;
	uint64_t bytes;
};

#define LEFTOVERS_TOLD 10

static void take_stale(void *data, const struct ky_user_stale *stale)
{
	struct leftovers *leftovers = data;
	struct ky_user *user = leftovers->user;
	const struct ky_user_left left = {stale->cookie, stale->uid};

	/* Without memory these programs stay as they are. */
	if (stale->cookie)
		(void)!ky_vec_push(&user->left, left);
	if (!stale->n_rings)
		return;
	if (stale->uid != geteuid() || leftovers->n_told++ >= LEFTOVERS_TOLD) {
		leftovers->n_rings += stale->n_rings;
		leftovers->bytes += stale->bytes;
		return;
	}
	ky_log_warning(user->options.log,
		       "%s: %u ring buffer%s of a recorder that was killed; "
		       "'kymo recover %s' makes traces of them",
		       stale->path, stale->n_rings, stale->n_rings == 1 ? "" : "s", stale->path);
}

void ky_user_look_for_leftovers(struct ky_user *user)
{
	struct leftovers leftovers = {.user = user};
	char size[32];

	ky_user_stale_scan(user->place[0] ? user->place : NULL, true, take_stale, &leftovers);
	if (leftovers.n_rings)
		ky_log_warning(user->options.log,
			       "%u %sring buffer%s (%s) of recorders that were killed; "
			       "kymo recover makes traces of them",
			       leftovers.n_rings, leftovers.n_told ? "more " : "",
			       leftovers.n_rings == 1 ? "" : "s",
			       ky_format_bytes(size, leftovers.bytes));
}

void ky_user_free_left(struct ky_user *user)
{
	/* That user's, who may have written any cookie. */
	ky_vec_foreach(&user->left, left) {
		ky_vec_foreach(&user->programs.list, program) {
			if ((*program)->uid == left->uid)
				ky_program_leave(*program, left->cookie);
		}
	}
	ky_vec_fini(&user->left);
}
