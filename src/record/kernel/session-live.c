/* SPDX-License-Identifier: MIT */
/*
 * Live readers: while a reader follows the recording, the recorder writes all events until now several times a second,
 * in packets that may not be full. A beacon gives the reader the time until which it has all events.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"
#include "store/live-file.h"

/* Between two beacons. A reader is to show an event within 250 ms. */
#define BEACON_MS 100

/*
 * What was stamped so long ago is in the rings, whole. In the order of time, a call waits for its content, and events of
 * one CPU for those of others.
 */
#define SETTLED_NS	 2000000
#define SETTLED_MERGE_NS 30000000

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int ky_session_live_open(struct ky_session *session, struct kymo_error *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = &session->live};
	int fd;

	/* A flight recorder writes only snapshots, and raw pages are not packets. */
	if (session->options.raw || session->options.overwrite)
		return KYMO_OK;
	fd = ky_store_readers_fd(session->store);
	if (fd < 0 || epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0)
		return KYMO_OK;
	return ky_error_errno(err, errno, "cannot wait for readers");
}

void ky_session_live_look(struct ky_session *session)
{
	int fd = ky_store_readers_fd(session->store);

	/* The recorder of programs asks the store, too, and must not take this wake-up away. */
	if (fd >= 0)
		ky_live_watch_clear(fd);
	session->live.is_on = ky_store_has_readers(session->store);
}

int ky_session_live_timeout(const struct ky_session *session)
{
	int64_t left = session->live.due_ms - now_ms();

	if (!session->live.is_on || session->options.prompt)
		return -1;
	return left < 0 ? 0 : left > BEACON_MS ? BEACON_MS : (int)left;
}

static uint64_t known_until(const struct ky_session *session, uint64_t now)
{
	uint64_t settled_ns = session->kernel.merge ? SETTLED_MERGE_NS : SETTLED_NS;
	uint64_t slack = session->kernel.clock.frequency_hz / (1000000000 / settled_ns);
	uint64_t until = now > slack ? now - slack : 0;

	return session->kernel.merge ? ky_kernel_trace_merged_until(&session->kernel, until)
				     : until;
}

int ky_session_read_now(struct ky_session *session, uint64_t *until, struct kymo_error *err)
{
	uint64_t now = ky_os_clock_now(&session->kernel.clock);
	int ret = ky_kernel_trace_read_now(&session->kernel, err);

	*until = known_until(session, now);
	return ret;
}

static int tell(struct ky_session *session, struct kymo_error *err)
{
	uint64_t until;
	int ret = ky_session_read_now(session, &until, err);

	for (size_t i = 0; i < session->cpus.len && !ret; i++) {
		struct ky_convert_cpu *convert = &session->cpus.data[i]->kernel.convert;

		if (convert->writer.events && !session->cpus.data[i]->kernel.packets)
			ret = ky_convert_flush(convert, convert->writer.last_cycles, err);
	}
	/* What a state dump tells is older than when it is written. */
	if (ret < 0 || ky_session_dump_is_busy(session))
		return ret;
	pthread_mutex_lock(&session->kernel.sink_lock);
	ret = ky_store_beacon(session->kernel.packets, -1, until, err);
	pthread_mutex_unlock(&session->kernel.sink_lock);
	return ret;
}

int ky_session_live_step(struct ky_session *session, struct kymo_error *err)
{
	int64_t now = now_ms();

	if (session->options.prompt)
		return tell(session, err);
	if (!session->live.is_on || now < session->live.due_ms)
		return KYMO_OK;
	session->live.due_ms = now + BEACON_MS;
	ky_session_live_look(session);
	return session->live.is_on ? tell(session, err) : KYMO_OK;
}
