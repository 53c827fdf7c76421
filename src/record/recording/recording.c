/* SPDX-License-Identifier: MIT */
#include "record/recording/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/convert/convert.h"
#include "record/common/record-dir.h"
#include "record/recording/recording-internal.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

/* What a step may find readable. */
enum source {
	OF_SESSION,  /* the kernel's recorder has something to do */
	OF_TIMER,    /* its next step is due */
	OF_DUMP,     /* the kernel's state is written */
	OF_FAILURE,  /* the recording of programs cannot go on */
	OF_CONTROL,  /* another process asks for something */
	OF_TRIGGERS, /* a trigger has fired, or its source has something to do */
	OF_WATCH,    /* amounts are to be compared */
	OF_PROGRAMS, /* programs write again */
	OF_CHUNKS,   /* the size or age of the chunk is to be checked */
	SOURCES,
};

const struct ky_os_clock *ky_recording_clock(const struct ky_recording *recording)
{
	return recording->session ? ky_session_clock(recording->session) : &recording->user_clock;
}

void ky_recording_refine_clock(struct ky_recording *recording)
{
	struct ky_os_clock_drift drift;

	if (recording->session)
		return;
	ky_os_clock_resample(&recording->user_clock, &drift);
	(void)ky_os_clock_refine(&recording->user_clock, &drift);
}

int ky_recording_keep_error(int ret, int next, struct kymo_error *err,
			    const struct kymo_error *next_err)
{
	if (ret < 0 || next >= 0)
		return ret;
	if (err)
		*err = *next_err;
	return next;
}

bool ky_recording_is_name(const char *name)
{
	size_t len = strlen(name);

	return len && len <= 64 && *name != '-' && *name != '.' &&
	       strspn(name, NAME_CHARACTERS) == len && strspn(name, "0123456789-") < len;
}

/* ---- opening -------------------------------------------------------------------------- */

static int open_wait(struct ky_recording *recording, struct kymo_error *err)
{
	recording->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	recording->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (recording->epoll_fd < 0 || recording->timer_fd < 0)
		return ky_error_errno(err, errno, "cannot set up the recording's event loop");
	return KYMO_OK;
}

static int open_sessions(struct ky_recording *recording, struct kymo_error *err)
{
	struct ky_recording_options *options = &recording->options;
	int ret;

	options->kernel.output = options->user.output = options->output;
	options->kernel.store = options->user.store = options->store;
	options->kernel.log = options->user.log = options->log;
	options->kernel.clock = options->clock;
	if (options->has_kernel) {
		ret = ky_session_open(&options->kernel, &recording->session, err);
	} else {
		ret = ky_os_clock_init(&recording->user_clock, options->clock, err);
		if (!ret && !options->store)
			ret = ky_record_dir_make(options->output, &recording->made_output, err);
	}
	if (ret < 0 || !options->has_user)
		return ret;
	options->user.clock = ky_recording_clock(recording);
	/* A raw recording of the kernel has no live readers. */
	options->user.is_beside_kernel = recording->session && !options->kernel.raw;
	return ky_recording_open_programs(recording, err);
}

int ky_recording_open(const struct ky_recording_options *options, struct ky_recording **out,
		      struct kymo_error *err)
{
	struct ky_recording *recording = calloc(1, sizeof(*recording));
	int ret;

	*out = NULL;
	if (!recording)
		return ky_error_nomem(err);
	recording->options = *options;
	recording->control = (struct ky_control_socket_server)KY_CONTROL_SOCKET_SERVER_INIT;
	recording->epoll_fd = recording->timer_fd = recording->chunks.timer_fd = -1;
	recording->name_fd = recording->watch.timer_fd = -1;
	ret = open_wait(recording, err);
	if (!ret)
		ret = ky_recording_open_watch(recording, err);
	if (!ret)
		ret = ky_recording_open_chunks(recording, err);
	if (!ret)
		ret = ky_recording_claim_name(recording, err);
	if (!ret)
		ret = ky_recording_find_containers(recording, err);
	if (!ret)
		ret = open_sessions(recording, err);
	if (!ret)
		ret = ky_recording_open_triggers(recording, err);
	if (ret < 0) {
		(void)ky_recording_close(recording, NULL);
		return ret;
	}
	*out = recording;
	return KYMO_OK;
}

int ky_recording_choose_child(struct ky_recording *recording, int32_t pid, struct kymo_error *err)
{
	int ret = recording->session ? ky_session_choose_child(recording->session, pid, err)
				     : KYMO_OK;

	return !ret && recording->triggers ? ky_triggers_choose_child(recording->triggers, pid, err)
					   : ret;
}

/* ---- waiting -------------------------------------------------------------------------- */

static int recording_watch(struct ky_recording *recording, enum source source, int fd,
			   uint32_t flags, struct kymo_error *err)
{
	struct epoll_event event = {.events = EPOLLIN | flags, .data.u32 = source};

	if (fd < 0)
		return KYMO_OK;
	if (epoll_ctl(recording->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return ky_error_errno(err, errno, "cannot wait for an event");
	return KYMO_OK;
}

int ky_recording_watch_triggers(struct ky_recording *recording, struct kymo_error *err)
{
	return recording_watch(recording, OF_TRIGGERS, ky_recording_triggers_fd(recording), 0, err);
}

static int watch_all(struct ky_recording *recording, struct kymo_error *err)
{
	int ret = recording_watch(recording, OF_TIMER, recording->timer_fd, 0, err);

	if (!ret && recording->session) {
		/* One shot: while the session rests, its descriptor must not end the wait. */
		ret = recording_watch(recording, OF_SESSION, ky_session_fd(recording->session),
				      EPOLLONESHOT, err);
		recording->session_is_awaited = true;
		if (!ret)
			ret = recording_watch(recording, OF_DUMP,
					      ky_session_dump_fd(recording->session), EPOLLONESHOT,
					      err);
	}
	for (size_t i = 0; i < recording->programs.n && !ret; i++)
		ret = recording_watch(recording, OF_FAILURE,
				      ky_user_failed_fd(recording->programs.users[i]), 0, err);
	for (size_t i = 0; i < recording->programs.n && !ret; i++)
		ret = recording_watch(recording, OF_PROGRAMS,
				      ky_user_active_fd(recording->programs.users[i]), 0, err);
	if (!ret)
		ret = recording_watch(recording, OF_CHUNKS, recording->chunks.timer_fd, 0, err);
	if (!ret)
		ret = recording_watch(recording, OF_WATCH, recording->watch.timer_fd, 0, err);
	if (!ret)
		ret = ky_recording_watch_triggers(recording, err);
	return ret ? ret
		   : recording_watch(recording, OF_CONTROL,
				     ky_control_socket_fd(&recording->control), 0, err);
}

void ky_recording_set_timer(struct ky_recording *recording)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.u32 = OF_SESSION};
	struct itimerspec spec = {{0}};
	bool rests;
	int64_t due_ns;

	if (!recording->session)
		return;
	due_ns = ky_session_due_ns(recording->session, &rests);
	if (due_ns >= 0) {
		spec.it_value.tv_sec = (time_t)(due_ns / 1000000000);
		spec.it_value.tv_nsec = (long)(due_ns % 1000000000);
		/* 0 would be: never. */
		spec.it_value.tv_nsec += due_ns == 0;
	}
	(void)timerfd_settime(recording->timer_fd, 0, &spec, NULL);
	if (rests || recording->session_is_awaited)
		return;
	(void)epoll_ctl(recording->epoll_fd, EPOLL_CTL_MOD, ky_session_fd(recording->session),
			&event);
	recording->session_is_awaited = true;
}

int ky_recording_fd(const struct ky_recording *recording)
{
	return recording->epoll_fd;
}

/* ---- recording ------------------------------------------------------------------------ */

static void recording_open_control(struct ky_recording *recording)
{
	struct kymo_error err;

	if (ky_control_socket_open(&recording->control, &err) == 0)
		return;
	ky_control_socket_close(&recording->control);
	ky_log_warning(recording->options.log, "no other command finds this recording: %s%s%s",
		       err.path, err.path[0] ? ": " : "", err.message);
}

_Static_assert(KY_RECORDING_USER_THREADS_MAX == KY_OWN_PROGRAMS_MAX,
	       "all threads of programs are excluded");

/* The system calls of the threads that record programs are the recorder's own, too. */
static void recording_hide_threads(struct ky_recording *recording)
{
	int32_t tids[KY_RECORDING_USER_THREADS_MAX];

	ky_session_own_threads(recording->session, tids,
			       ky_recording_program_threads(recording, tids));
}

int ky_recording_start(struct ky_recording *recording, struct kymo_error *err)
{
	const struct itimerspec now = {.it_value.tv_nsec = 1};
	int ret = KYMO_OK;

	recording->start_cycles = ky_os_clock_now(ky_recording_clock(recording));
	if (recording->session)
		ret = ky_session_start(recording->session, err);
	if (!ret)
		ret = ky_recording_start_programs(recording, err);
	if (ret < 0)
		return ret;
	recording->is_started = true;
	if (recording->session && recording->programs.n)
		recording_hide_threads(recording);
	ret = ky_recording_start_triggers(recording, err);
	if (ret < 0)
		return ret;
	recording_open_control(recording);
	ky_recording_set_tick(recording);
	ky_recording_begin_chunks(recording);
	/* Without the kernel there is no state dump to wait for: the first step says that the recording has begun. */
	if (!recording->session)
		(void)timerfd_settime(recording->timer_fd, 0, &now, NULL);
	ret = watch_all(recording, err);
	ky_recording_set_timer(recording);
	return ret;
}

static void recording_take_timer(const struct ky_recording *recording)
{
	uint64_t count;

	/* The timer may have been set again meanwhile: then there is nothing to read. */
	(void)!read(recording->timer_fd, &count, sizeof(count));
}

int ky_recording_step(struct ky_recording *recording, unsigned int *found, struct kymo_error *err)
{
	struct epoll_event events[SOURCES];
	bool is_readable[SOURCES] = {false};
	int n = epoll_wait(recording->epoll_fd, events, SOURCES, 0), ret = KYMO_OK;

	*found = 0;
	if (n < 0 && errno != EINTR)
		return ky_error_errno(err, errno, "cannot wait for an event");
	for (int i = 0; i < n; i++)
		is_readable[events[i].data.u32] = true;
	if (is_readable[OF_TIMER])
		recording_take_timer(recording);
	if (is_readable[OF_SESSION])
		recording->session_is_awaited = false;
	if (is_readable[OF_PROGRAMS])
		ky_recording_programs_write(recording);
	if (recording->session && (is_readable[OF_SESSION] || is_readable[OF_TIMER]))
		ret = ky_recording_step_session(recording, err);
	if (ret < 0)
		return ret;
	if (is_readable[recording->session ? OF_DUMP : OF_TIMER])
		*found |= KY_RECORDING_HAS_BEGUN;
	if (is_readable[OF_FAILURE] ||
	    (is_readable[OF_CONTROL] && ky_recording_take_request(recording)))
		*found |= KY_RECORDING_ENDS;
	if (is_readable[OF_CHUNKS])
		ret = ky_recording_check_chunk(recording, err);
	if (!ret && is_readable[OF_TRIGGERS] && recording->triggers)
		ret = ky_recording_step_triggers(recording, err);
	if (is_readable[OF_WATCH])
		ky_recording_tick(recording);
	if (ret < 0)
		return ret;
	if (recording->tasks.len)
		*found |= KY_RECORDING_HAS_TASK;
	if (recording->chunks.fresh.len)
		*found |= KY_RECORDING_HAS_CHUNK;
	/* A request may have asked for more of the kernel's state: its dump begins before the recording can stop. */
	if (recording->session && is_readable[OF_CONTROL])
		ret = ky_recording_step_session(recording, err);
	ky_recording_set_timer(recording);
	return ret;
}

/* ---- the end -------------------------------------------------------------------------- */

int ky_recording_stop(struct ky_recording *recording, struct kymo_error *err)
{
	const struct ky_os_clock *clock = ky_recording_clock(recording);
	uint64_t end_cycles = ky_os_clock_now(clock);
	struct kymo_error next;
	int ret = KYMO_OK;

	ret = ky_recording_end_triggers(recording, err);
	recording->pauses.total_ns = ky_recording_paused_ns(recording);
	recording->pauses.is_on = false;
	ky_control_socket_close(&recording->control);
	/* No command finds it by its name now. */
	ky_recording_free_name(recording);
	ret = ky_recording_keep_error(ret, ky_recording_stop_programs(recording, &next), err,
				      &next);
	if (recording->session)
		ret = ky_recording_keep_error(ret, ky_session_stop(recording->session, &next), err,
					      &next);
	ky_recording_refine_clock(recording);
	ret = ky_recording_keep_error(ret, ky_recording_finish_programs(recording, clock, &next),
				      err, &next);
	ret = ky_recording_keep_error(ret,
				      ky_recording_write_marks(recording, recording->options.store,
							       recording->options.output, "", clock,
							       &next),
				      err, &next);
	ky_recording_tell(recording, "end", "the recording has ended", NULL);
	if (recording->n_cleared && !recording->options.store)
		ky_recording_remove_cleared(recording);
	recording->duration_ns = (uint64_t)(ky_os_clock_to_ns(clock, end_cycles) -
					    ky_os_clock_to_ns(clock, recording->start_cycles));
	return ret;
}

void ky_recording_stats(const struct ky_recording *recording, struct ky_recording_stats *stats)
{
	*stats = (struct ky_recording_stats){
		.kernel = recording->session ? ky_session_stats(recording->session) : NULL,
		.user = recording->programs.n ? &recording->programs.stats : NULL,
		.duration_ns = recording->duration_ns,
		.n_pauses = recording->pauses.n,
		.n_cleared = recording->n_cleared,
		.paused_ns = recording->pauses.total_ns,
		/* A flight recorder counts what it has. */
		.cleared_events = recording->options.user.overwrite
					  ? 0
					  : recording->cleared.events +
						    recording->cleared.archived_dump_events,
		.cleared_bytes = recording->options.user.overwrite ? 0 : recording->cleared.bytes,
		.n_chunks = recording->chunks.number,
		.n_removed = recording->chunks.n_removed,
	};
	ky_recording_count_buffers(recording, stats);
}

int ky_recording_close(struct ky_recording *recording, struct kymo_error *err)
{
	int ret;

	if (!recording)
		return KYMO_OK;
	ky_control_socket_close(&recording->control);
	ky_recording_close_triggers(recording);
	ky_recording_close_programs(recording);
	ret = ky_session_close(recording->session, err);
	if (!recording->is_started && recording->made_output)
		(void)rmdir(recording->options.output);
	ky_recording_drop_marks(recording);
	ky_recording_close_watch(recording);
	ky_recording_forget_containers(recording);
	ky_recording_close_chunks(recording);
	ky_recording_free_name(recording);
	while (recording->waiters.n)
		close(recording->waiters.fds[--recording->waiters.n]);
	ky_vec_foreach(&recording->changes, change)
		free(*change);
	ky_vec_fini(&recording->changes);
	if (recording->epoll_fd >= 0)
		close(recording->epoll_fd);
	if (recording->timer_fd >= 0)
		close(recording->timer_fd);
	free(recording);
	return ret;
}
