/* SPDX-License-Identifier: MIT */
/*
 * Who was taken out by its id, which is the kernel's here. Users and control groups that it is in do not bring it back
 * when they are looked for again; choosing it does, or a user or group that it is in. Ids are forgotten when no
 * thread has them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"

/* The map's values: a thread by itself, or the process of which each thread is meant. */
static void *const by_itself = (void *)UINTPTR_MAX;

static void *of_process(uint64_t pid)
{
	return (void *)(uintptr_t)pid;
}

static int session_removed_note(struct ky_session *session, int32_t tid, void *how,
				struct kymo_error *err)
{
	return ky_map_set(&session->removed, (uint32_t)tid, how) < 0 ? ky_error_nomem(err)
								     : KYMO_OK;
}

int ky_session_note_removed(struct ky_session *session, const int32_t *ids, size_t n,
			    bool processes, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && !ret; i++) {
		int32_t id = ky_pid_to_kernel(&session->view, ids[i]);

		ret = id ? session_removed_note(session, id,
						processes ? of_process((uint32_t)id) : by_itself,
						err)
			 : KYMO_OK;
	}
	return ret;
}

/* Threads that a process has by now are meant, too. */
static int note_threads(struct ky_session *session, int32_t pid, struct kymo_error *err)
{
	size_t first = session->collected.len;
	char text[16];
	int ret;

	snprintf(text, sizeof(text), "%" PRId32, ky_pid_to_own(&session->view, pid));
	ret = ky_session_collect_process(session, text, err);
	for (size_t i = first; i < session->collected.len && ret >= 0; i++)
		ret = session_removed_note(session, session->collected.data[i],
					   of_process((uint32_t)pid), err);
	session->collected.len = first;
	return ret < 0 ? ret : KYMO_OK;
}

static int session_removed_refresh(struct ky_session *session, struct kymo_error *err)
{
	struct ky_tids gone = KY_VEC_INIT, pids = KY_VEC_INIT;
	size_t pos = 0;
	uint64_t tid;
	void *how;
	char path[32];
	int ret = KYMO_OK;

	while (!ret && ky_map_next(&session->removed, &pos, &tid, &how)) {
		snprintf(path, sizeof(path), "/proc/%" PRId32,
			 ky_pid_to_own(&session->view, (int32_t)tid));
		if (access(path, F_OK) < 0)
			ret = ky_vec_push(&gone, (int32_t)tid);
		else if (how == of_process(tid))
			ret = ky_vec_push(&pids, (int32_t)tid);
	}
	if (ret < 0)
		ret = ky_error_nomem(err);
	ky_vec_foreach(&gone, id)
		(void)ky_map_del(&session->removed, (uint32_t)*id);
	ky_vec_foreach(&pids, id)
		if (!ret)
			ret = note_threads(session, *id, err);
	ky_vec_fini(&gone);
	ky_vec_fini(&pids);
	return ret;
}

int ky_session_spare_removed(struct ky_session *session, size_t first, struct kymo_error *err)
{
	struct ky_tids *tids = &session->collected;
	size_t n_left = first;
	int ret;

	if (!session->removed.len)
		return KYMO_OK;
	ret = session_removed_refresh(session, err);
	if (ret < 0)
		return ret;
	for (size_t i = first; i < tids->len; i++)
		if (!ky_map_get(&session->removed, (uint32_t)tids->data[i]))
			tids->data[n_left++] = tids->data[i];
	tids->len = n_left;
	return KYMO_OK;
}

void ky_session_readmit(struct ky_session *session)
{
	ky_vec_foreach(&session->collected, id) {
		void *how = ky_map_del(&session->removed, (uint32_t)*id);
		uint64_t pid = (uintptr_t)how;

		/* The recording no longer has the whole process. */
		if (how && how != by_itself && ky_map_get(&session->removed, pid) == how)
			(void)ky_map_set(&session->removed, pid, by_itself);
	}
}
