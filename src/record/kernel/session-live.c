/* SPDX-License-Identifier: MIT */
/*
 * Live readers: while a reader follows the recording, the recorder writes all events until now several times a second,
 * in packets that may not be full. A beacon gives the reader the time until which it has all events.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/error.h"

#include "os/now.h"
#include "record/kernel/session-internal.h"
#include "store/live/live-file.h"

/*
 * Between two updates: a part of the delay that the readers want, as the reader and a relay need the rest. Without events, the
 * time of a beacon can wait longer.
 */
#define UPDATE_MS(delay_ms) ((int64_t)(delay_ms)*2 / 5)
#define IDLE_MS		    1000

/*
 * What was stamped so long ago is in the rings, whole. In the order of time, a call waits for its content, and events of
 * one CPU for those of others.
 */
#define SETTLED_NS	 2000000
#define SETTLED_MERGE_NS 30000000

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

static void session_live_wake_cpu(struct ky_session *session, struct ky_session_cpu *cpu)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = cpu};

	if (!cpu->unpollable)
		(void)epoll_ctl(session->epoll_fd, EPOLL_CTL_MOD, cpu->kernel.ring.fd, &event);
}

/* The kernel asks for the fill only when a ring is added or changed. */
static bool wake_at(struct ky_session *session, uint64_t percent)
{
	if (ky_instance_write_u64(&session->instance, "buffer_percent", percent, NULL) < 0)
		return false;
	ky_vec_foreach(&session->cpus, it)
		session_live_wake_cpu(session, *it);
	return true;
}

static void be_idle(struct ky_session *session, bool is_idle)
{
	if (is_idle == session->live.is_idle)
		return;
	/* A kernel without that setting cannot wake the session at the first event. */
	session->live.is_idle = wake_at(session, is_idle ? 0 : KY_SESSION_WAKE_PERCENT) && is_idle;
}

void ky_session_live_look(struct ky_session *session)
{
	int fd = ky_store_readers_fd(session->store);
	uint32_t before_ms = session->live.delay_ms;

	/* The recorder of programs asks the store, too, and must not take this wake-up away. */
	if (fd >= 0)
		ky_live_watch_clear(fd);
	session->live.delay_ms = ky_store_readers_delay_ms(session->store);
	if (!session->live.delay_ms)
		be_idle(session, false);
	/* A new reader waits no longer than it wants. */
	if (session->live.delay_ms && session->live.delay_ms != before_ms)
		session->live.due_ms = 0;
}

void ky_session_live_wake(struct ky_session *session)
{
	if (!session->live.is_idle)
		return;
	be_idle(session, false);
	session->live.due_ms = ky_os_now_ms() + UPDATE_MS(session->live.delay_ms);
}

int ky_session_live_timeout(const struct ky_session *session)
{
	int64_t left = session->live.due_ms - ky_os_now_ms();

	if (!session->live.delay_ms || session->options.prompt)
		return -1;
	return left < 0 ? 0 : (int)left;
}

static uint64_t session_live_known_until(const struct ky_session *session, uint64_t now)
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

	*until = session_live_known_until(session, now);
	return ret < 0 ? ret : ky_session_flush_samples(session, until, err);
}

int ky_session_read_past(struct ky_session *session, uint64_t *until, struct kymo_error *err)
{
	uint64_t now = ky_os_clock_now(&session->kernel.clock);
	int ret = ky_kernel_trace_read_past(&session->kernel, err);

	*until = session_live_known_until(session, now);
	return ret;
}

static int session_live_tell(struct ky_session *session, struct kymo_error *err)
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

static uint64_t session_live_count_events(const struct ky_session *session)
{
	uint64_t n = 0;

	ky_vec_foreach(&session->cpus, cpu)
		n += (*cpu)->kernel.convert.events;
	ky_vec_foreach(&session->samples.cpus, cpu)
		n += cpu->samples;
	return n;
}

int ky_session_live_step(struct ky_session *session, struct kymo_error *err)
{
	int64_t now = ky_os_now_ms(), update_ms;
	uint64_t n_events;
	int ret;

	if (session->options.prompt)
		return session_live_tell(session, err);
	if (!session->live.delay_ms || now < session->live.due_ms)
		return KYMO_OK;
	ky_session_live_look(session);
	if (!session->live.delay_ms)
		return KYMO_OK;
	ret = session_live_tell(session, err);
	session->live.n_beacons++;
	n_events = session_live_count_events(session);
	/*
	 * Programs of the recording may write while the kernel is idle, and readers need both bounds. Groups have instances
	 * of their own, which do not wake at the first event.
	 */
	be_idle(session, n_events == session->live.n_events && !session->live.programs_write &&
				 !session->options.n_groups && !ky_session_dump_is_busy(session));
	session->live.n_events = n_events;
	update_ms = UPDATE_MS(session->live.delay_ms);
	if (session->live.is_idle && update_ms < IDLE_MS)
		update_ms = IDLE_MS;
	session->live.due_ms = now + update_ms;
	/* The idle beacons of all recorders of a machine come together, so that it wakes once for them. */
	if (session->live.is_idle && update_ms == IDLE_MS)
		session->live.due_ms = (now / IDLE_MS + 1) * IDLE_MS;
	return ret;
}

void ky_session_live_programs(struct ky_session *session, bool write)
{
	session->live.programs_write = write;
	if (write)
		ky_session_live_wake(session);
}

uint64_t ky_session_live_beacons(const struct ky_session *session)
{
	return session->live.n_beacons;
}

uint32_t ky_session_live_delay_ms(const struct ky_session *session)
{
	return session->live.delay_ms;
}
