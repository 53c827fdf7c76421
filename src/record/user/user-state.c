/* SPDX-License-Identifier: MIT */
/* When the state of programs is looked at (user-dump.h), and what that lacks. */
#include "os/file.h"
#include "record/rings/user-dump.h"
#include "record/user/user-internal.h"

/* 1: what the program has noted is written; else 0, negative. */
static int dump_noted(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err)
{
	uint64_t refusals = ky_file_refusals();
	int ret = user->dump_excluded == KY_USER_DUMP_ALL
			  ? 1
			  : ky_user_dump_notes(ring, &user->clock, err);

	ring->dump_missing += ky_file_refusals() - refusals;
	return ret;
}

int ky_user_dump_noted(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err)
{
	int ret = dump_noted(user, ring, err);

	return ret < 0 ? ret : KYMO_OK;
}

/* Nobody waits for the ring. */
int ky_user_dump_all_noted(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err)
{
	int ret;

	do {
		ret = dump_noted(user, ring, err);
	} while (ret >= 0 && user->dump_excluded != KY_USER_DUMP_ALL && ring->is_shared &&
		 !ring->is_broken && ky_user_dump_is_behind(ring));
	return ret;
}

static int dump_now(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err)
{
	const struct ky_blob *blob = ky_user_ring_blob(ring);
	uint64_t refusals = ky_file_refusals();
	int ret = KYMO_OK;

	/* Many programs: their notes are all. */
	if (user->dump_excluded == KY_USER_DUMP_ALL || ring->is_shared)
		return KYMO_OK;
	if (blob->pid && blob->pid <= INT32_MAX)
		ret = ky_user_dump(ring, (pid_t)blob->pid, &user->clock, err);
	/* It may be called otherwise in its PID namespace. */
	if (!ret && !ky_user_ring_is_left(ring))
		ret = ky_user_dump_elsewhere(ring, &user->clock, err);
	ring->dump_missing += ky_file_refusals() - refusals;
	return ret < 0 ? ret : KYMO_OK;
}

int ky_user_dump_ring(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err)
{
	int ret = ky_user_dump_all_noted(user, ring, err);

	return ret < 0 ? ret : dump_now(user, ring, err);
}

int ky_user_dump_opened(struct ky_user *user, struct ky_user_ring *ring, struct kymo_error *err)
{
	int ret = dump_noted(user, ring, err);

	return ret < 0 ? ret : ret ? KYMO_OK : dump_now(user, ring, err);
}
