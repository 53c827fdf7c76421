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
#include "os/now.h"

#define EVENTS_AT_A_TIME 16
#define CHILD_POLL_NS	 20000000
#define NS_PER_S	 1000000000

struct ky_loop_source {
	struct ky_loop *loop;
	int fd;
	bool is_own; /* the loop's to close */
	bool is_removed;
	int (*take)(struct ky_loop_source *source, struct kymo_error *err);
	ky_loop_call call;
	ky_loop_signal_call signal_call;
	void *data;
	pid_t pid;	/* of a child */
	bool is_timer;	/* without a descriptor */
	int64_t due_ns; /* of a timer; 0: never */
};

struct ky_loop {
	int epoll_fd;
	bool is_calling; /* sources that are removed meanwhile stay until that is over */
	KY_VEC(struct ky_loop_source *) sources;
	KY_VEC(struct ky_loop_source *) timers;
	/*
	 * Of all timers, from the first one on; else -1. A time limit of epoll_wait() would be set and cancelled in each round,
	 * and on a virtual machine both are exits to the host.
	 */
	int timer_fd;
	int64_t armed_ns; /* when timer_fd expires; 0: it is not armed */
};

int ky_loop_new(struct ky_loop **out, struct kymo_error *err)
{
	struct ky_loop *loop = calloc(1, sizeof(*loop));

	*out = NULL;
	if (!loop)
		return ky_error_nomem(err);
	loop->timer_fd = -1;
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
	ky_vec_foreach(&loop->timers, timer)
		free(*timer);
	ky_vec_fini(&loop->timers);
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	close(loop->epoll_fd);
	free(loop);
}

/* ---- sources -------------------------------------------------------------------------- */

static int take_fd(struct ky_loop_source *source, struct kymo_error *err)
{
	return source->call(source->data, err);
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
	uint64_t expired;

	/* Where a timer is waited for, the process may go on. */
	if (waitid(P_PID, (id_t)source->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    !info.si_pid) {
		(void)!read(source->fd, &expired, sizeof(expired));
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

/* Its event has no source. Each expiry is one event, so that nobody has to read it. */
static int open_timer(struct ky_loop *loop, struct kymo_error *err)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLET, .data.ptr = NULL};

	if (loop->timer_fd >= 0)
		return KYMO_OK;
	loop->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (loop->timer_fd >= 0 &&
	    epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, loop->timer_fd, &event) == 0)
		return KYMO_OK;
	(void)ky_error_errno(err, errno, "cannot set up a timer");
	if (loop->timer_fd >= 0)
		close(loop->timer_fd);
	loop->timer_fd = -1;
	return KYMO_E_IO;
}

int ky_loop_add_timer(struct ky_loop *loop, ky_loop_call call, void *data,
		      struct ky_loop_source **source, struct kymo_error *err)
{
	struct ky_loop_source *timer;
	int ret = open_timer(loop, err);

	*source = NULL;
	if (ret < 0)
		return ret;
	timer = calloc(1, sizeof(*timer));
	if (!timer || ky_vec_push(&loop->timers, timer) < 0) {
		free(timer);
		return ky_error_nomem(err);
	}
	*timer = (struct ky_loop_source){
		.loop = loop, .fd = -1, .is_timer = true, .call = call, .data = data};
	*source = timer;
	return KYMO_OK;
}

void ky_loop_set_timer(struct ky_loop_source *source, uint64_t ns)
{
	int64_t now = ky_os_now_ns();

	source->due_ns = !ns ? 0 : ns < (uint64_t)(INT64_MAX - now) ? now + (int64_t)ns : INT64_MAX;
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

/* Timers are few. */
static void remove_timer(struct ky_loop_source *timer)
{
	struct ky_loop *loop = timer->loop;
	size_t i = 0;

	timer->is_removed = true;
	timer->due_ns = 0;
	if (loop->is_calling)
		return;
	while (loop->timers.data[i] != timer)
		i++;
	loop->timers.data[i] = loop->timers.data[--loop->timers.len];
	free(timer);
}

void ky_loop_remove(struct ky_loop_source *source)
{
	struct ky_loop *loop;
	size_t i = 0;

	if (!source || source->is_removed)
		return;
	if (source->is_timer) {
		remove_timer(source);
		return;
	}
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
	for (size_t i = loop->timers.len; i-- > 0;) {
		struct ky_loop_source *timer = loop->timers.data[i];

		if (!timer->is_removed)
			continue;
		loop->timers.data[i] = loop->timers.data[--loop->timers.len];
		free(timer);
	}
}

/* When the first timer expires; 0: none is set. */
static int64_t event_loop_first_due_ns(const struct ky_loop *loop)
{
	int64_t due_ns = 0;

	ky_vec_foreach(&loop->timers, timer)
		if ((*timer)->due_ns && (!due_ns || (*timer)->due_ns < due_ns))
			due_ns = (*timer)->due_ns;
	return due_ns;
}

/* Waits for events. *is_due: a timer may have expired. */
static int event_loop_wait(struct ky_loop *loop, struct epoll_event *events, bool *is_due)
{
	int64_t due_ns = event_loop_first_due_ns(loop);
	const struct itimerspec at = {
		.it_value = {(time_t)(due_ns / NS_PER_S), (long)(due_ns % NS_PER_S)}};

	*is_due = due_ns && due_ns != loop->armed_ns && due_ns <= ky_os_now_ns();
	if (*is_due)
		return epoll_wait(loop->epoll_fd, events, EVENTS_AT_A_TIME, 0);
	if (due_ns != loop->armed_ns) {
		(void)timerfd_settime(loop->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
		loop->armed_ns = due_ns;
	}
	return epoll_wait(loop->epoll_fd, events, EVENTS_AT_A_TIME, -1);
}

static int event_loop_take_timers(struct ky_loop *loop, struct kymo_error *err)
{
	int64_t now = ky_os_now_ns();
	int ret = KYMO_OK;

	/* A call may set and add timers. */
	for (size_t i = 0; i < loop->timers.len && !ret; i++) {
		struct ky_loop_source *timer = loop->timers.data[i];

		if (!timer->due_ns || timer->due_ns > now)
			continue;
		timer->due_ns = 0;
		ret = timer->call(timer->data, err);
	}
	return ret;
}

int ky_loop_run(struct ky_loop *loop, struct kymo_error *err)
{
	struct epoll_event events[EVENTS_AT_A_TIME];
	int ret = KYMO_OK;

	while (!ret) {
		bool is_due;
		int n = event_loop_wait(loop, events, &is_due);

		if (n < 0 && errno != EINTR)
			return ky_error_errno(err, errno, "cannot wait for an event");
		loop->is_calling = true;
		for (int i = 0; i < n && !ret; i++) {
			struct ky_loop_source *source = events[i].data.ptr;

			if (source && !source->is_removed)
				ret = source->take(source, err);
			if (!source) {
				loop->armed_ns = 0;
				is_due = true;
			}
		}
		if (!ret && is_due)
			ret = event_loop_take_timers(loop, err);
		event_loop_sweep(loop);
	}
	return ret < 0 ? ret : KYMO_OK;
}
