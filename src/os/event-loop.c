/* SPDX-License-Identifier: MIT */
#include "os/event-loop.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"

#define EVENTS_AT_A_TIME 16
#define CHILD_POLL_NS	 20000000

struct ky_loop_source {
	struct ky_loop *loop;
	int fd;
	bool is_own; /* the loop's to close */
	bool is_removed;
	int (*take)(struct ky_loop_source *source, struct kymo_error *err);
	ky_loop_call call;
	ky_loop_signal_call signal_call;
	void *data;
	pid_t pid; /* of a child */
};

struct ky_loop {
	int epoll_fd;
	bool is_calling; /* sources that are removed meanwhile stay until that is over */
	KY_VEC(struct ky_loop_source *) sources;
};

int ky_loop_new(struct ky_loop **out, struct kymo_error *err)
{
	struct ky_loop *loop = calloc(1, sizeof(*loop));

	*out = NULL;
	if (!loop)
		return ky_error_nomem(err);
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		free(loop);
		return ky_error_errno(err, errno, "cannot set up the event loop");
	}
	*out = loop;
	return KYMO_OK;
}

static void free_source(struct ky_loop_source *source)
{
	if (source->is_own)
		close(source->fd);
	free(source);
}

void ky_loop_free(struct ky_loop *loop)
{
	if (!loop)
		return;
	ky_vec_foreach(&loop->sources, source)
		free_source(*source);
	ky_vec_fini(&loop->sources);
	close(loop->epoll_fd);
	free(loop);
}

/* ---- sources -------------------------------------------------------------------------- */

static int take_fd(struct ky_loop_source *source, struct kymo_error *err)
{
	return source->call(source->data, err);
}

/* Returns whether its time has come: the timer may have been set again since. */
static bool drain_timer(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof(count)) == sizeof(count);
}

static int event_loop_take_timer(struct ky_loop_source *source, struct kymo_error *err)
{
	return drain_timer(source->fd) ? source->call(source->data, err) : KYMO_OK;
}

static int take_signals(struct ky_loop_source *source, struct kymo_error *err)
{
	struct signalfd_siginfo info;
	int ret = KYMO_OK;

	while (!ret && !source->is_removed && read(source->fd, &info, sizeof(info)) == sizeof(info))
		ret = source->signal_call(source->data, &info, err);
	return ret;
}

/* A process that has ended stays so: one call is enough. */
static int event_loop_take_child(struct ky_loop_source *source, struct kymo_error *err)
{
	siginfo_t info = {.si_pid = 0};

	/* Where a timer is waited for, the process may go on. */
	if (waitid(P_PID, (id_t)source->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    !info.si_pid) {
		drain_timer(source->fd);
		return KYMO_OK;
	}
	(void)epoll_ctl(source->loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	return source->call(source->data, err);
}

/* Before Linux 5.3, the process is looked at from time to time. Returns -1 on failure. */
static int open_child(pid_t pid)
{
	const struct itimerspec often = {.it_value.tv_nsec = CHILD_POLL_NS,
					 .it_interval.tv_nsec = CHILD_POLL_NS};
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0 || errno != ENOSYS)
		return fd;
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (fd >= 0)
		(void)timerfd_settime(fd, 0, &often, NULL);
	return fd;
}

/* @source: its fd and calls; copied. An own fd is closed on failure. */
static int event_loop_add(struct ky_loop *loop, const struct ky_loop_source *source,
			  struct ky_loop_source **out, struct kymo_error *err)
{
	struct ky_loop_source *copy = malloc(sizeof(*copy));
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = copy};
	int ret = KYMO_OK;

	if (out)
		*out = NULL;
	if (!copy || ky_vec_reserve(&loop->sources, 1) < 0)
		ret = ky_error_nomem(err);
	else if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &event) < 0)
		ret = ky_error_errno(err, errno, "cannot wait for an event");
	if (ret < 0) {
		if (source->is_own)
			close(source->fd);
		free(copy);
		return ret;
	}
	*copy = *source;
	copy->loop = loop;
	loop->sources.data[loop->sources.len++] = copy;
	if (out)
		*out = copy;
	return KYMO_OK;
}

int ky_loop_add(struct ky_loop *loop, int fd, ky_loop_call call, void *data,
		struct ky_loop_source **source, struct kymo_error *err)
{
	const struct ky_loop_source add_it = {
		.fd = fd, .take = take_fd, .call = call, .data = data};

	return event_loop_add(loop, &add_it, source, err);
}

int ky_loop_add_timer(struct ky_loop *loop, ky_loop_call call, void *data,
		      struct ky_loop_source **source, struct kymo_error *err)
{
	const struct ky_loop_source add_it = {
		.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
		.is_own = true,
		.take = event_loop_take_timer,
		.call = call,
		.data = data};

	if (add_it.fd < 0)
		return ky_error_errno(err, errno, "cannot set up a timer");
	return event_loop_add(loop, &add_it, source, err);
}

void ky_loop_set_timer(struct ky_loop_source *source, uint64_t ns)
{
	const struct itimerspec spec = {
		.it_value = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)}};

	(void)timerfd_settime(source->fd, 0, &spec, NULL);
}

int ky_loop_add_signals(struct ky_loop *loop, const sigset_t *set, ky_loop_signal_call call,
			void *data, struct ky_loop_source **source, struct kymo_error *err)
{
	const struct ky_loop_source add_it = {.fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK),
					      .is_own = true,
					      .take = take_signals,
					      .signal_call = call,
					      .data = data};

	if (add_it.fd < 0)
		return ky_error_errno(err, errno, "cannot set up signals");
	return event_loop_add(loop, &add_it, source, err);
}

int ky_loop_add_child(struct ky_loop *loop, pid_t pid, ky_loop_call call, void *data,
		      struct ky_loop_source **source, struct kymo_error *err)
{
	const struct ky_loop_source add_it = {.fd = open_child(pid),
					      .is_own = true,
					      .pid = pid,
					      .take = event_loop_take_child,
					      .call = call,
					      .data = data};

	if (add_it.fd < 0)
		return ky_error_errno(err, errno, "cannot wait for process %d", (int)pid);
	return event_loop_add(loop, &add_it, source, err);
}

void ky_loop_remove(struct ky_loop_source *source)
{
	struct ky_loop *loop;
	size_t i = 0;

	if (!source || source->is_removed)
		return;
	loop = source->loop;
	(void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->is_removed = true;
	if (loop->is_calling)
		return;
	while (loop->sources.data[i] != source)
		i++;
	loop->sources.data[i] = loop->sources.data[--loop->sources.len];
	free_source(source);
}

/* ---- the loop ------------------------------------------------------------------------- */

/* What was removed by calls goes now. */
static void event_loop_sweep(struct ky_loop *loop)
{
	loop->is_calling = false;
	for (size_t i = loop->sources.len; i-- > 0;) {
		struct ky_loop_source *source = loop->sources.data[i];

		if (!source->is_removed)
			continue;
		loop->sources.data[i] = loop->sources.data[--loop->sources.len];
		free_source(source);
	}
}

int ky_loop_run(struct ky_loop *loop, struct kymo_error *err)
{
	struct epoll_event events[EVENTS_AT_A_TIME];
	int ret = KYMO_OK;

	while (!ret) {
		int n = epoll_wait(loop->epoll_fd, events, EVENTS_AT_A_TIME, -1);

		if (n < 0 && errno != EINTR)
			return ky_error_errno(err, errno, "cannot wait for an event");
		loop->is_calling = true;
		for (int i = 0; i < n && !ret; i++) {
			struct ky_loop_source *source = events[i].data.ptr;

			if (!source->is_removed)
				ret = source->take(source, err);
		}
		event_loop_sweep(loop);
	}
	return ret < 0 ? ret : KYMO_OK;
}
