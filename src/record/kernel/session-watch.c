/* SPDX-License-Identifier: MIT */
/*
 * Members of users and control groups. A second instance, with a few events of all threads, shows when a thread changes
 * its user or group; then the recorder searches for the members again. The instance does not show 32-bit programs that
 * change their user, so the recorder also searches every few seconds. A thread that joins or leaves is recorded from or
 * until a moment later, mostly less than 0.1 s, since the kernel takes this time to change its lists. When the recording
 * also selects processes or threads, a thread that leaves stays recorded: it may be a child of one of these.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/now.h"
#include "record/kernel/session-internal.h"

/* Looking takes less than this part of a CPU. */
#define IDLE_PARTS 10

/* The time between searches without a sign: the kernel has no events of 32-bit programs' calls. */
#define SLOW_NS 2000000000

struct watched {
	const char *event, *filter;
};

static const struct watched of_users[] = {
	{"syscalls/sys_exit_setuid", "ret == 0"},
	{"syscalls/sys_exit_setreuid", "ret == 0"},
	{"syscalls/sys_exit_setresuid", "ret == 0"},
	{NULL, NULL},
};

static const struct watched of_groups[] = {
	{"cgroup/cgroup_attach_task", NULL},
	{"cgroup/cgroup_transfer_tasks", NULL},
	{"task/task_newtask", "clone_flags & 0x200000000"}, /* CLONE_INTO_CGROUP */
	{NULL, NULL},
};

/* What this kernel has of them. */
static void session_watch_switch_on(const struct ky_instance *instance,
				    const struct watched *watched)
{
	char name[100];

	for (; watched->event; watched++) {
		snprintf(name, sizeof(name), "events/%s/filter", watched->event);
		if (watched->filter)
			(void)ky_instance_write(instance, name, watched->filter, NULL);
		snprintf(name, sizeof(name), "events/%s/enable", watched->event);
		(void)ky_instance_write(instance, name, "1", NULL);
	}
}

static int session_watch_open_instance(struct ky_session *session, struct kymo_error *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &session->watch};
	struct ky_instance *instance = &session->watch.instance;
	int ret;

	/* Told at once, not when the buffer is half full; since Linux 5.0. */
	(void)ky_instance_write(instance, "buffer_percent", "0", NULL);
	ret = ky_instance_write(instance, "buffer_size_kb", "64", err);
	if (ret < 0)
		return ret;
	session->watch.fd = openat(instance->fd, "trace_pipe", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (session->watch.fd < 0)
		return ky_error_errno(err, errno, "cannot read a tracefs instance");
	if (epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, session->watch.fd, &event) < 0)
		return ky_error_errno(err, errno, "cannot wait for an event");
	return ky_instance_write(instance, "tracing_on", "1", err);
}

static void session_watch_close_fd(struct ky_session_watch *watch)
{
	if (watch->fd >= 0)
		close(watch->fd);
	watch->fd = -1;
}

/* A whole one or none: what tells of nothing would not be made again. */
static int session_watch_make_instance(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_watch *watch = &session->watch;
	int ret = ky_instance_create(&session->fs, "-watch", &watch->instance, err);

	if (ret < 0)
		return ret;
	ret = session_watch_open_instance(session, err);
	if (!ret)
		return KYMO_OK;
	session_watch_close_fd(watch);
	(void)ky_instance_remove(&watch->instance, NULL);
	watch->instance.path[0] = '\0';
	return ret;
}

int ky_session_watch_start(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_watch *watch = &session->watch;
	int ret = KYMO_OK;

	if (!watch->uids.len && !watch->groups.len)
		return KYMO_OK;
	if (!watch->instance.path[0])
		ret = session_watch_make_instance(session, err);
	if (!ret && watch->uids.len)
		session_watch_switch_on(&watch->instance, of_users);
	if (!ret && watch->groups.len)
		session_watch_switch_on(&watch->instance, of_groups);
	return ret;
}

/* Threads that were recorded before and are no longer found. An ended thread is in no list. */
static int leave_out(struct ky_session *session, const struct ky_map *before, struct ky_map *found,
		     struct kymo_error *err)
{
	size_t pos = 0;
	uint64_t tid;
	void *value;
	size_t n_new;
	char path[32];
	int ret = KYMO_OK;

	ky_vec_clear(&session->collected);
	while (!ret && ky_map_next(before, &pos, &tid, &value)) {
		snprintf(path, sizeof(path), "/proc/%d",
			 (int)ky_pid_to_own(&session->view, (int32_t)tid));
		if (!ky_map_get(found, tid) && access(path, F_OK) == 0 &&
		    ky_vec_push(&session->collected, (int32_t)tid) < 0)
			ret = ky_error_nomem(err);
	}
	if (!ret && session->collected.len)
		ret = ky_session_pids_remove(session, &session->collected, &n_new, err);
	return ret;
}

/* @found: the threads that were found; a second look finds those that moved during the first one. */
static int session_watch_look_again(struct ky_session *session, struct ky_map *found,
				    struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (int i = 0; i < 2 && !ret; i++) {
		ky_vec_clear(&session->collected);
		ret = ky_session_collect_watched(session, err);
		ky_vec_foreach(&session->collected, tid)
			if (!ret && ky_map_set(found, (uint32_t)*tid, found) < 0)
				ret = ky_error_nomem(err);
	}
	return ret;
}

static int session_watch_look(struct ky_session *session, struct kymo_error *err)
{
	struct ky_map before, left_out, found;
	size_t pos = 0;
	uint64_t tid;
	void *value;
	int ret = ky_session_pids_read(session, &before, &left_out, err);

	ky_map_init(&found);
	while (ky_map_next(&left_out, &pos, &tid, &value))
		(void)ky_map_del(&before, tid);
	if (!ret)
		ret = ky_session_choose_watched(session, err);
	if (!ret && !session->has_ids)
		ret = session_watch_look_again(session, &found, err);
	if (!ret && !session->has_ids)
		ret = leave_out(session, &before, &found, err);
	ky_map_fini(&before);
	ky_map_fini(&left_out);
	ky_map_fini(&found);
	return ret;
}

int ky_session_watch_look(struct ky_session *session, bool told, struct kymo_error *err)
{
	struct ky_session_watch *watch = &session->watch;
	uint64_t cpu_ns;
	char text[4096];
	int ret;

	if (session->pauses.is_on)
		return KYMO_OK;
	if (told) {
		/* That something has happened is all that is wanted of it. */
		while (read(watch->fd, text, sizeof(text)) > 0)
			;
		watch->is_due = true;
	}
	if (watch->uids.len && ky_os_now_ns() - watch->looked_ns > SLOW_NS)
		watch->is_due = true;
	/* A recording of all threads removes none. */
	watch->is_due = watch->is_due && session->has_list;
	if (!watch->is_due)
		return KYMO_OK;
	if (ky_os_now_ns() - watch->looked_ns < watch->took_ns * IDLE_PARTS)
		return KYMO_OK;
	watch->is_due = false;
	cpu_ns = ky_os_time_ns(CLOCK_THREAD_CPUTIME_ID);
	ret = session_watch_look(session, err);
	watch->took_ns = ky_os_time_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	watch->looked_ns = ky_os_now_ns();
	if (ret >= 0 || ret == KYMO_E_MEMORY)
		return ret;
	/* Something has gone away meanwhile, or the kernel was short of something: no reason to end the recording. */
	if (!watch->has_failed)
		ky_log_warning(session->options.log,
			       "cannot find threads that join a user or a control group, trying "
			       "again: %s",
			       err ? err->message : "");
	watch->has_failed = true;
	watch->is_due = true;
	return KYMO_OK;
}

int ky_session_watch_close(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_watch *watch = &session->watch;

	session_watch_close_fd(watch);
	ky_vec_fini(&watch->uids);
	ky_vec_foreach(&watch->groups, group)
		free(*group);
	ky_vec_fini(&watch->groups);
	return ky_instance_remove(&watch->instance, err);
}
