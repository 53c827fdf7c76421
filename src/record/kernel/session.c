/* SPDX-License-Identifier: MIT */
#include "record/kernel/session.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/switches/switches.h"
#include "os/now.h"
#include "record/kernel/session-internal.h"
#include "store/memory-trace.h"

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

/* ---- recording ------------------------------------------------------------------------ */

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

/* Read the watch's events. *is_told: users or groups may have changed. */
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
	return KYMO_OK;
}

int ky_session_step(struct ky_session *session, struct kymo_error *err)
{
	bool is_told;
	int ret = kernel_session_take_events(session, &is_told, err);

	session->rests_until_ns = 0;
	if (ret < 0)
		return ret;
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
		ret = ky_session_read_round(session, false, err);
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

/* ---- stopping ------------------------------------------------------------------------- */

/* Of @cpu: events that are in the trace, or that a flight recorder keeps for it. */
static uint64_t events_of(const struct ky_session *session, const struct ky_session_cpu *cpu)
{
	if (cpu->kernel.packets)
		return ky_memory_trace_kept(cpu->kernel.packets, cpu->kernel.stream);
	return session->disk && !session->options.raw
		       ? ky_memory_trace_kept(session->kernel.packets, cpu->kernel.stream)
		       : cpu->kernel.convert.events;
}

/* Groups that overwrite, beside main buffers that do not. */
static void count_overwritten(struct ky_session *session)
{
	ky_vec_foreach(&session->cpus, it) {
		const struct ky_session_cpu *cpu = *it;
		uint64_t gone;

		if (!cpu->kernel.packets || cpu->kernel.stream < 0)
			continue;
		gone = cpu->kernel.convert.events - events_of(session, cpu);
		session->stats.overwritten += gone;
		session->stats.events -= gone;
	}
}

/* @kept: by a flight recorder. */
static void kernel_session_count(struct ky_session *session, uint64_t kept)
{
	struct ky_session_stats *stats = &session->stats;

	stats->cpus = ky_arena_array(&session->kernel.convert.arena, session->cpus.len,
				     sizeof(*stats->cpus));
	ky_vec_foreach(&session->cpus, it) {
		const struct ky_session_cpu *cpu = *it;

		stats->events += cpu->kernel.convert.events;
		stats->lost += cpu->kernel.convert.lost;
		stats->bad += cpu->kernel.convert.bad;
		if (cpu->kernel.stream < 0 || !stats->cpus)
			continue;
		stats->cpus[stats->n_cpus++] = (struct ky_session_cpu_stats){
			.group = cpu->kernel.channel,
			.cpu = cpu->kernel.convert.cpu,
			.events = events_of(session, cpu),
			.lost = cpu->kernel.convert.lost,
			.bad = cpu->kernel.convert.bad,
		};
	}
	stats->samples = ky_session_count_samples(session, &stats->samples_lost);
	stats->events += stats->samples;
	stats->lost += stats->samples_lost;
	if (session->kernel.content) {
		struct ky_content_stats content;

		ky_content_stats(session->kernel.content, &content);
		stats->content_missing = content.missing;
	}
	if (session->kernel.counters)
		stats->counters_missing = ky_counters_missing(session->kernel.counters);
	stats->bytes = (session->kernel.packets ? session->kernel.packets->bytes_written : 0) +
		       session->raw_bytes;
	if (session->disk && session->options.raw) {
		stats->bytes = session->disk->bytes_written + session->raw_bytes;
		ky_vec_foreach(&session->cpus, it)
			stats->overwritten += (*it)->raw_flight.overrun;
	} else if (session->disk) {
		uint64_t all = stats->events - session->flight.cleared + stats->dump_events;

		stats->events -= session->flight.cleared;
		stats->bytes = session->disk->bytes_written;
		stats->overwritten = all > kept ? all - kept : 0;
		stats->events =
			stats->events > stats->overwritten ? stats->events - stats->overwritten : 0;
	}
	if (!session->disk)
		count_overwritten(session);
	stats->event_classes = session->kernel.first_dump_id + session->kernel.n_added;
	stats->is_raw = session->options.raw;
	stats->clock = session->kernel.clock;
}

/* Wall time may have been steered meanwhile: choose the frequency that is right at both ends. */
int ky_session_finish_clock(struct ky_session *session, struct kymo_error *err)
{
	ky_os_clock_resample(&session->kernel.clock, &session->stats.drift);
	if (!ky_os_clock_refine(&session->kernel.clock, &session->stats.drift))
		return KYMO_OK;
	return ky_kernel_trace_update_clock(&session->kernel, err);
}

static int copy_flight(struct ky_session *session, uint64_t *kept, struct kymo_error *err)
{
	uint64_t of_state = 0;
	int ret = ky_session_copy_flight(session, session->disk, false, kept, err);

	if (!ret)
		ret = ky_session_copy_groups(session, session->disk, kept, err);
	if (!ret)
		ret = ky_session_copy_flight(session, session->disk, true, &of_state, err);
	*kept += of_state;
	return ret;
}

/* The state dump and the metadata; of a flight recorder, all that is in memory. */
static int finish_state(struct ky_session *session, uint64_t end_cycles, uint64_t *kept,
			struct kymo_error *err)
{
	int ret = ky_session_dump_end_stream(session, end_cycles, err);

	if (!ret)
		ret = ky_session_finish_clock(session, err);
	if (!ret)
		ret = ky_kernel_trace_write_metadata(&session->kernel, err);
	if (!ret && session->disk)
		ret = copy_flight(session, kept, err);
	else if (!ret)
		ret = ky_session_move_groups(session, kept, err);
	return ret;
}

/* All that was recorded is in the files then, or it is said why not. */
static int close_output(struct ky_session *session, struct kymo_error *err)
{
	struct ky_store_trace *traces[] = {session->kernel.packets, session->disk};
	int ret = KYMO_OK;

	session->kernel.packets = session->disk = NULL;
	for (int i = 0; i < 2; i++) {
		int closed = ky_store_close(traces[i], ret < 0 ? NULL : err);

		ret = ret < 0 ? ret : closed;
	}
	return ret;
}

/* Nothing was recorded: no trace stays. */
static void discard_output(struct ky_session *session)
{
	ky_store_discard(session->kernel.packets);
	ky_store_discard(session->disk);
	session->kernel.packets = session->disk = NULL;
}

int ky_session_stop(struct ky_session *session, struct kymo_error *err)
{
	uint64_t end_cycles, kept = 0;
	int ret, dump, counted, closed;

	if (!session->started || session->stopped)
		return KYMO_OK;
	session->stopped = session->kernel.is_ending = true;
	ret = ky_session_write_all(session, "tracing_on", "0", err);
	ky_session_review_switches(session);
	if (session->blocks)
		ky_block_writer_hurry(session->blocks);
	if (session->kernel.content)
		ky_content_detach(session->kernel.content);
	if (session->kernel.counters)
		ky_counters_detach(session->kernel.counters);
	end_cycles = session->pauses.is_on ? session->pauses.since_cycles
					   : ky_os_clock_now(&session->kernel.clock);
	/* In a pause, a state dump may have been after its begin. */
	if (session->dump.writer.data && !ky_session_dump_is_busy(session) &&
	    session->dump.writer.last_cycles > end_cycles)
		end_cycles = session->dump.writer.last_cycles;
	/* A dump in progress is new enough, and must end. */
	if (!ret && session->options.overwrite && !ky_session_dump_is_busy(session))
		ret = ky_session_renew_state(session, end_cycles, 0, err);
	dump = ky_session_dump_finish(session, true, ret < 0 ? NULL : err);
	ret = ret < 0 ? ret : dump;
	/* Without the state a raw recording cannot be read: it goes first, where the disk may be full. */
	if (!ret && session->options.raw)
		ret = finish_state(session, end_cycles, &kept, err);
	if (!ret)
		ret = ky_session_read_round(session, true, err);
	ky_raw_direct_close(session);
	/* Also after a full disk: the counts describe the files. */
	counted = session->options.raw ? ky_raw_count(session, ret < 0 ? NULL : err) : KYMO_OK;
	ret = ret < 0 ? ret : counted;
	if (!ret)
		ret = ky_session_pause_samples(session, end_cycles, err);
	if (!ret)
		ret = session->options.raw
			      ? ky_raw_finish(session, end_cycles, err)
			      : ky_kernel_trace_end_streams(&session->kernel, end_cycles, err);
	if (!ret && !session->options.raw)
		ret = finish_state(session, end_cycles, &kept, err);
	session->stats.duration_ns =
		(uint64_t)(ky_os_clock_to_ns(&session->kernel.clock, end_cycles) -
			   ky_os_clock_to_ns(&session->kernel.clock, session->kernel.start_cycles));
	kernel_session_count(session, kept);
	closed = close_output(session, ret < 0 ? NULL : err);
	return ret < 0 ? ret : closed;
}

bool ky_session_cpu_progress(const struct ky_session *session, size_t i,
			     struct ky_session_cpu_progress *progress)
{
	const struct ky_kernel_cpu *cpu;
	struct ky_cpu_ring_stats stats;

	if (i >= session->cpus.len)
		return false;
	cpu = &session->cpus.data[i]->kernel;
	*progress = (struct ky_session_cpu_progress){
		.group = cpu->channel,
		.cpu = cpu->convert.cpu,
		.events = cpu->convert.events,
		.lost = cpu->convert.lost,
	};
	if (ky_cpu_ring_stats(cpu->instance ? cpu->instance : &session->instance, cpu->convert.cpu,
			      &stats, NULL) < 0)
		return true;
	/* No code reads raw records before they are read back. */
	if (session->options.raw) {
		progress->events += stats.read;
		progress->lost += stats.overrun + stats.commit_overrun + stats.dropped;
	}
	progress->fill =
		(double)stats.bytes /
		(double)(cpu->buffer_bytes ? cpu->buffer_bytes : session->options.buffer_bytes);
	if (progress->fill > 1)
		progress->fill = 1;
	return true;
}

void ky_session_progress(const struct ky_session *session, struct ky_session_progress *progress)
{
	struct ky_session_cpu_progress cpu;

	*progress = (struct ky_session_progress){
		.archived_dump_events = session->dump.archived_events,
		.bytes = session->raw_bytes + (session->kernel.packets && !session->disk
						       ? session->kernel.packets->bytes_written
						       : 0)};
	for (size_t i = 0; ky_session_cpu_progress(session, i, &cpu); i++) {
		progress->bytes += session->cpus.data[i]->raw_bytes;
		progress->events += cpu.events;
		progress->lost += cpu.lost;
		progress->fill = cpu.fill > progress->fill ? cpu.fill : progress->fill;
	}
}

const struct ky_session_stats *ky_session_stats(const struct ky_session *session)
{
	return &session->stats;
}

int ky_session_close(struct ky_session *session, struct kymo_error *err)
{
	bool is_empty;
	int ret, removed;

	if (!session)
		return KYMO_OK;
	(void)ky_session_dump_finish(session, true, NULL);
	ky_raw_direct_close(session);
	ky_session_close_samples(session);
	ky_session_close_cpus(session);
	is_empty = session->kernel.packets && !session->started;
	if (is_empty)
		discard_output(session);
	ret = close_output(session, err);
	ky_block_writer_close(session->blocks);
	if (is_empty)
		ky_session_remove_output(session);
	ky_store_free(session->own_store);
	ky_session_close_groups(session);
	for (size_t i = KY_SESSION_GROUPS_MAX; i-- > 0;) {
		removed = ky_instance_remove(&session->buffers[i].instance, ret < 0 ? NULL : err);
		ret = ret < 0 ? ret : removed;
	}
	removed = ky_instance_remove(&session->instance, ret < 0 ? NULL : err);
	ret = ret < 0 ? ret : removed;
	removed = ky_session_watch_close(session, ret < 0 ? NULL : err);
	ret = ret < 0 ? ret : removed;
	ky_probes_remove(&session->probes, &session->fs);
	ky_probes_fini(&session->probes);
	ky_session_dump_close(session);
	ky_content_free(session->kernel.content);
	ky_counters_free(session->kernel.counters);
	ky_switches_close(session->switches);
	ky_kernel_trace_fini(&session->kernel);
	ky_pid_view_close(&session->view);
	ky_map_fini(&session->chosen_tids);
	ky_map_fini(&session->removed);
	ky_vec_fini(&session->collected);
	ky_tracefs_close(&session->fs);
	if (session->epoll_fd >= 0)
		close(session->epoll_fd);
	free(session->output);
	free(session);
	return ret;
}
