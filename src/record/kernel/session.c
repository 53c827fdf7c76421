/* SPDX-License-Identifier: MIT */
#include "record/kernel/session.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>

#include "base/error.h"
#include "kernel/switches/switches.h"
#include "os/now.h"
#include "record/kernel/session-internal.h"

/* How often rings are looked at that cannot be waited for: those of CPUs that were offline. */
#define UNPOLLABLE_MS 500

/* How often it is asked whether users are to be looked at again. */
#define USERS_MS 2100

/* How often content and counters are fetched: the kernel does not say when there are some. */
#define CONTENT_MS 10

/*
 * How often switches from idle tasks are fetched. A notice says when there are many. Few are fetched, too, since their times
 * are more exact the closer the two readings of the clocks are between which they lie.
 */
#define SWITCHES_MS 500

/* How long a few full blocks wait for more of them, to be written together. */
#define COMPANY_MS 50

/* How often CPUs are looked for that have come or gone, while counters are read. */
#define CPUS_NS 500000000

/* How long reading pauses while the store cannot pass on what it has. */
#define FULL_NS 5000000

/* Between two rounds of reading in the order of time. */
#define PAUSE_US	 8000
#define BIG_BUFFER_BYTES (1u << 20)

int ky_session_start(struct ky_session *session, struct kymo_error *err)
{
	int ret = ky_session_dump_prepare(session, err);

	if (ret < 0)
		return ret;
	session->kernel.start_cycles = ky_os_clock_now(&session->kernel.clock);
	if (session->kernel.content)
		ky_content_begin(session->kernel.content, session->kernel.start_cycles);
	ky_vec_foreach(&session->cpus, cpu)
		ky_packet_writer_begin(&(*cpu)->kernel.convert.writer,
				       session->kernel.start_cycles);
	ky_session_hide_own(session, true);
	ret = ky_session_write_all(session, "tracing_on", "1", err);
	if (ret < 0)
		return ret;
	session->started = session->kernel.is_running = true;
	ky_session_review_switches(session);
	ret = ky_session_begin_samples(session, err);
	if (!ret)
		ret = ky_pid_view_refresh(&session->view, err);
	if (!ret)
		ret = ky_session_live_open(session, err);
	if (ret < 0)
		return ret;
	/* After the start: an event announces each thread that is born from now on. */
	if (session->kernel.has_threads)
		ret = ky_threads_scan(&session->kernel.threads, err);
	if (!ret && session->options.raw)
		ret = ky_raw_describe(session, 0, err);
	return ret < 0 ? ret : ky_session_dump_start(session, err);
}

void ky_session_own_threads(struct ky_session *session, const int32_t *tids, size_t n)
{
	for (size_t i = 0; i < n && i < KY_OWN_PROGRAMS_MAX; i++)
		session->kernel.convert.own_tids[KY_OWN_PROGRAMS + i] =
			ky_pid_to_kernel(&session->view, tids[i]);
}

void ky_session_own_of(struct ky_session *session, const struct ky_session *other)
{
	static const int threads[] = {KY_OWN_DUMP, KY_OWN_WRITER, KY_OWN_GUARD};

	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++)
		session->kernel.convert.own_tids[threads[i]] =
			other->kernel.convert.own_tids[threads[i]];
}

const struct ky_os_clock *ky_session_clock(const struct ky_session *session)
{
	return &session->kernel.clock;
}

int ky_session_dump_fd(const struct ky_session *session)
{
	return session->dump.done_fd;
}

static bool any_unpollable(const struct ky_session *session)
{
	for (size_t i = 0; i < session->cpus.len; i++)
		if (session->cpus.data[i]->unpollable)
			return true;
	return false;
}

/* A CPU that was offline may be here by now; the kernel tells only those who ask again. */
static void wait_for_returned(struct ky_session *session)
{
	ky_vec_foreach(&session->cpus, it) {
		struct epoll_event event = {.events = EPOLLIN, .data.ptr = *it};

		if ((*it)->unpollable &&
		    epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, (*it)->kernel.ring.fd, &event) == 0)
			(*it)->unpollable = false;
	}
}

/* A ring that only says "error" would wake us for ever. */
static void take_ring_event(struct ky_session *session, const struct epoll_event *event)
{
	struct ky_session_cpu *cpu = event->data.ptr;

	if (event->events & EPOLLIN) {
		ky_session_live_wake(session);
		return;
	}
	(void)epoll_ctl(session->epoll_fd, EPOLL_CTL_DEL, cpu->kernel.ring.fd, NULL);
	cpu->unpollable = true;
}

static int timeout_without_readers(const struct ky_session *session)
{
	if (session->pauses.is_on)
		return session->blocks && ky_block_writer_waits(session->blocks) ? COMPANY_MS : -1;
	if (session->kernel.content || session->kernel.counters || session->watch.is_due)
		return CONTENT_MS;
	if (session->samples.rings)
		return KY_SESSION_SAMPLES_MS;
	if ((session->blocks && ky_block_writer_waits(session->blocks)) ||
	    ky_session_dump_waits(session) || (session->hides_own && !session->options.prompt))
		return COMPANY_MS;
	if (session->takes_switches && ky_switches_are_needed(session->switches))
		return SWITCHES_MS;
	if (any_unpollable(session))
		return UNPOLLABLE_MS;
	return session->watch.uids.len ? USERS_MS : -1;
}

static int choose_timeout(const struct ky_session *session)
{
	int live_ms = ky_session_live_timeout(session), ms = timeout_without_readers(session);

	return live_ms < 0 || (ms >= 0 && ms < live_ms) ? ms : live_ms;
}

static void follow_cpus(struct ky_session *session)
{
	uint64_t now =
		ky_os_clock_now(&session->kernel.clock); /* what has counters has a clock in ns */

	if (!session->kernel.counters || now - session->followed_ns < CPUS_NS)
		return;
	session->followed_ns = now;
	ky_counters_follow_cpus(session->kernel.counters);
}

/* What is to be written has waited long enough, though the rings keep us awake. */
static bool company_is_over(struct ky_session *session)
{
	int64_t ms = ky_os_time_ns(CLOCK_MONOTONIC_COARSE) / 1000000;

	if (ms - session->kicked_ms < COMPANY_MS)
		return false;
	session->kicked_ms = ms;
	return true;
}

int ky_session_fd(const struct ky_session *session)
{
	return session->epoll_fd;
}

int64_t ky_session_due_ns(const struct ky_session *session, bool *rests)
{
	int64_t left = session->rests_until_ns ? session->rests_until_ns - ky_os_now_ns() : 0;
	int timeout = choose_timeout(session);

	*rests = left > 0;
	if (*rests)
		return left;
	return timeout < 0 ? -1 : (int64_t)timeout * 1000000;
}

/*
 * The time is over, and nothing but switches was waited for. The rings are not read: they wake the session when they have enough,
 * and reading them for a few events costs more than the fetch.
 */
static bool session_waited_for_switches(const struct ky_session *session)
{
	return timeout_without_readers(session) == SWITCHES_MS && !any_unpollable(session) &&
	       ky_session_live_timeout(session) != 0;
}

/* Read the watch's events, and return how many. *is_told: users or groups may have changed. */
static int kernel_session_take_events(struct ky_session *session, bool *is_told,
				      struct kymo_error *err)
{
	struct epoll_event events[64];
	int n = epoll_wait(session->epoll_fd, events, 64, 0);

	*is_told = false;
	if (n < 0 && errno != EINTR)
		return ky_error_errno(err, errno, "cannot wait for events");
	if (n == 0)
		wait_for_returned(session);
	if (session->blocks && (n == 0 || company_is_over(session)))
		ky_block_writer_kick(session->blocks);
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr == &session->watch)
			*is_told = true;
		else if (events[i].data.ptr == &session->samples)
			session->samples.is_woken = true;
		else if (events[i].data.ptr == &session->live)
			ky_session_live_look(session);
		else if (events[i].data.ptr == session->switches)
			ky_switches_heed(session->switches);
		else
			take_ring_event(session, &events[i]);
	}
	return n < 0 ? 0 : n;
}

static int session_read(struct ky_session *session, bool only_switches, struct kymo_error *err)
{
	if (!only_switches)
		return ky_session_read_round(session, false, err);
	ky_switches_drain(session->switches);
	return KYMO_OK;
}

int ky_session_step(struct ky_session *session, struct kymo_error *err)
{
	bool is_told, only_switches = session_waited_for_switches(session);
	int ret = kernel_session_take_events(session, &is_told, err);

	session->rests_until_ns = 0;
	if (ret < 0)
		return ret;
	only_switches = only_switches && ret == 0;
	if (!session->options.prompt && !ky_session_dump_is_busy(session) &&
	    !session->flight.is_taken)
		ky_session_hide_own(session, false);
	follow_cpus(session);
	ky_session_review_switches(session);
	/* The buffers keep further events, and count what they lose. */
	if (session->started && ky_store_is_full(session->store)) {
		session->rests_until_ns = ky_os_now_ns() + FULL_NS;
		return KYMO_OK;
	}
	ret = ky_session_watch_look(session, is_told, err);
	if (!ret)
		ret = ky_session_dump_more(session, err);
	if (!ret)
		ret = session_read(session, only_switches, err);
	if (!ret)
		ret = ky_session_step_samples(session, err);
	if (!ret)
		ret = ky_session_live_step(session, err);
	/*
	 * In the order of time the newest events stay in the rings, which would wake us again at once,
	 * to fetch few events dearly. In this time a ring takes a small part of what it holds.
	 */
	if (!ret && session->kernel.merge)
		session->rests_until_ns =
			ky_os_now_ns() + (session->options.buffer_bytes >= BIG_BUFFER_BYTES
						  ? PAUSE_US
						  : PAUSE_US / 8) *
						 INT64_C(1000);
	return ret;
}

int ky_session_wait_for(struct ky_session *session, int fd, struct kymo_error *err)
{
	bool rests;
	int64_t due_ns = ky_session_due_ns(session, &rests);
	struct pollfd polls[] = {{fd, POLLIN, 0}, {rests ? -1 : session->epoll_fd, POLLIN, 0}};
	int timeout_ms = due_ns < 0 ? -1 : (int)((due_ns + 999999) / 1000000);

	if (poll(polls, 2, timeout_ms) < 0 && errno != EINTR)
		return ky_error_errno(err, errno, "cannot wait for an event");
	return ky_session_step(session, err);
}
