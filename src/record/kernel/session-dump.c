/* SPDX-License-Identifier: MIT */
/*
 * The state dump, in a thread of its own: it may take a second on a large machine, and the rings
 * must be read meanwhile. It has its own packet writer; only the sink is shared, under its lock.
 *
 * The thread waits for orders: the first dump, when the recording begins; then what is needed of threads that are chosen
 * later, and of events that are switched on later; of a flight recorder, the whole state anew for each snapshot. What
 * is in `order` is the session's while `busy` is false, and the thread's else.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"

static int dump_flush(void *data, uint64_t end_cycles, struct kymo_error *err)
{
	struct ky_session *session = data;
	struct ky_session_dump *dump = &session->dump;
	/* Also when it is to stop: what is in the packet was counted. */
	int ret = ky_kernel_trace_send(&session->kernel, &dump->writer, dump->stream, NULL,
				       end_cycles, 0, err);

	if (ret >= 0 && atomic_load_explicit(&dump->stop, memory_order_relaxed))
		ret = ky_error_set(err, KYMO_E_INTERRUPTED, "the state dump was stopped");
	return ret;
}

/* ---- the thread ------------------------------------------------------------------------- */

static void session_dump_obey(struct ky_session_dump *dump)
{
	int ret = ky_statedump_run(&dump->dump, dump->result < 0 ? NULL : &dump->err);

	dump->result = dump->result < 0 ? dump->result : ret;
	dump->events += dump->dump.events;
	dump->missing += dump->dump.missing;
	/* In this order: who sees that it is done may clear the file for the next order. */
	(void)eventfd_write(dump->done_fd, 1);
	/* Pairs with is_busy(). */
	atomic_store_explicit(&dump->busy, false, memory_order_release);
}

static void *session_dump_thread(void *data)
{
	struct ky_session *session = data;
	struct ky_session_dump *dump = &session->dump;
	eventfd_t orders;

	atomic_store_explicit(&dump->tid, ky_pid_to_kernel(&session->view, gettid()),
			      memory_order_relaxed);
	(void)eventfd_write(dump->tid_fd, 1);
	while (eventfd_read(dump->order_fd, &orders) == 0 &&
	       atomic_load_explicit(&dump->busy, memory_order_acquire))
		session_dump_obey(dump);
	return NULL;
}

static bool is_busy(const struct ky_session_dump *dump)
{
	return atomic_load_explicit(&dump->busy, memory_order_acquire);
}

int ky_session_dump_open(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;

	dump->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	dump->order_fd = eventfd(0, EFD_CLOEXEC);
	dump->tid_fd = eventfd(0, EFD_CLOEXEC);
	if (dump->done_fd < 0 || dump->order_fd < 0 || dump->tid_fd < 0)
		return ky_error_errno(err, errno, "cannot set up the state dump");
	return KYMO_OK;
}

/* Its id is known then: its system calls are no part of the recording. */
static int session_dump_start_thread(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	eventfd_t started;
	int errnum = pthread_create(&dump->thread, NULL, session_dump_thread, session);

	if (errnum)
		return ky_error_errno(err, errnum, "cannot start the state dump's thread");
	dump->is_running = true;
	while (eventfd_read(dump->tid_fd, &started) < 0 && errno == EINTR)
		;
	session->kernel.convert.own_tids[KY_OWN_DUMP] =
		atomic_load_explicit(&dump->tid, memory_order_relaxed);
	return KYMO_OK;
}

/* ---- the stream ------------------------------------------------------------------------- */

/* What events of the recorder's own thread have as their context. */
static int make_context(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	int32_t pid = ky_pid_to_kernel(&session->view, getpid());
	struct ky_thread self = {
		.tid = pid, .pid = pid, .ppid = ky_pid_to_kernel(&session->view, getppid())};
	uint8_t context[KY_CONTEXT_MAX_BYTES];

	if (session->kernel.has_threads) {
		struct ky_thread *known = ky_threads_get(&session->kernel.threads, self.tid);

		if (known)
			self = *known;
	}
	dump->dump.context_bytes = ky_convert_context(&session->kernel.convert, &self, context);
	dump->dump.context =
		ky_arena_memdup(&session->kernel.convert.arena, context, sizeof(context));
	return dump->dump.context ? KYMO_OK : ky_error_nomem(err);
}

/*
 * An empty packet here, and one at the end: readers such as lttng-analyses look only at the time in
 * which all streams have packets.
 */
static int begin_stream(struct ky_session *session, uint64_t begin_cycles, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;

	ky_packet_writer_begin(&dump->writer, begin_cycles);
	return ky_kernel_trace_send(&session->kernel, &dump->writer, dump->stream, NULL,
				    begin_cycles, 0, err);
}

static int session_dump_open_stream(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	int ret;

	pthread_mutex_lock(&session->kernel.sink_lock);
	dump->stream = ky_store_stream(session->kernel.packets, "statedump_0", err);
	pthread_mutex_unlock(&session->kernel.sink_lock);
	if (dump->stream < 0)
		return dump->stream;
	ret = ky_packet_writer_init(&dump->writer, KY_SESSION_DUMP_BYTES, session->kernel.uuid, 0,
				    session->cpus.len, 0, session->kernel.compact_header);
	if (ret < 0)
		return ky_error_nomem(err);
	dump->dump = (struct ky_statedump){
		.writer = &dump->writer,
		.first_id = session->kernel.first_dump_id,
		.clock = &session->kernel.clock,
		.flush = dump_flush,
		.data = session,
		.view = &session->view,
		.only_nested = session->options.state == KY_SESSION_STATE_NEEDED,
	};
	ret = make_context(session, err);
	return ret < 0 ? ret : begin_stream(session, session->kernel.start_cycles, err);
}

/* ---- content of the dump ----------------------------------------------------------------- */

/* The set of state dump events that the present events of the recording need. 0: none. */
static uint32_t wanted(const struct ky_session *session)
{
	const struct ky_session_options *options = &session->options;
	uint32_t set = session->kernel.needed_state;

	if (options->state == KY_SESSION_STATE_NONE)
		return 0;
	if (options->state == KY_SESSION_STATE_ALL)
		set = KY_STATEDUMP_ALL;
	if (options->n_kernel_stacks || options->n_kprobes || options->n_samples)
		set |= KY_STATEDUMP_BIT(KY_STATEDUMP_MODULE);
	if (options->maps)
		set |= KY_STATEDUMP_BIT(KY_STATEDUMP_PROCESS_MAP);
	set &= ~session->dump.excluded;
	return set & ~KY_STATEDUMP_FRAME ? set : 0;
}

/* The processes of the dump: those of the chosen threads that the kernel records. */
static int find_chosen(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	struct ky_map chosen, left_out;
	size_t pos = 0;
	uint64_t tid;
	void *value;
	int ret;

	dump->dump.tids = NULL;
	ky_vec_clear(&dump->tids);
	if (!session->has_list || session->options.state == KY_SESSION_STATE_ALL)
		return KYMO_OK;
	ret = ky_session_pids_read(session, &chosen, &left_out, err);
	while (!ret && ky_map_next(&chosen, &pos, &tid, &value))
		if (!ky_map_get(&left_out, tid) && ky_vec_push(&dump->tids, (int32_t)tid) < 0)
			ret = ky_error_nomem(err);
	ky_map_fini(&chosen);
	ky_map_fini(&left_out);
	/* An empty list would mean all processes. */
	if (!ret && ky_vec_reserve(&dump->tids, 1) < 0)
		ret = ky_error_nomem(err);
	dump->dump.tids = dump->tids.data;
	dump->dump.n_tids = dump->tids.len;
	return ret;
}

/* Dump the set @events of dump->dump.tids. @at_cycles: the time of the events; 0: the time of each look. */
static int session_dump_give_order(struct ky_session *session, uint32_t events, uint64_t at_cycles,
				   struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	eventfd_t done;
	int ret = KYMO_OK;

	if (!dump->writer.data)
		ret = session_dump_open_stream(session, err);
	if (!ret && !dump->is_running)
		ret = session_dump_start_thread(session, err);
	if (ret < 0)
		return ret;
	dump->dump.wanted = events;
	dump->dump.at_cycles = at_cycles;
	(void)eventfd_read(dump->done_fd, &done);
	if (!session->stopped)
		ky_session_hide_own(session, true);
	/* Pairs with the thread's look. */
	atomic_store_explicit(&dump->busy, true, memory_order_release);
	if (eventfd_write(dump->order_fd, 1) == 0)
		return KYMO_OK;
	atomic_store_explicit(&dump->busy, false, memory_order_relaxed);
	return ky_error_errno(err, errno, "cannot begin the state dump");
}

int ky_session_dump_prepare(struct ky_session *session, struct kymo_error *err)
{
	return wanted(session) ? session_dump_start_thread(session, err) : KYMO_OK;
}

int ky_session_dump_start(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	uint32_t events = wanted(session);
	int ret;

	dump->told = events;
	dump->of_chosen = session->has_list && session->options.state == KY_SESSION_STATE_NEEDED;
	if (!events)
		return eventfd_write(dump->done_fd, 1) < 0
			       ? ky_error_errno(err, errno, "cannot begin")
			       : KYMO_OK;
	ret = session_dump_open_stream(session, err);
	if (!ret)
		ret = find_chosen(session, err);
	return ret < 0 ? ret : session_dump_give_order(session, events, 0, err);
}

/* ---- while recording --------------------------------------------------------------------- */

int ky_session_dump_add(struct ky_session *session, int32_t tid, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;

	/* A flight recorder tells of them with the snapshot. */
	if (!session->started || !dump->of_chosen || session->options.overwrite || !dump->told)
		return KYMO_OK;
	return ky_vec_push(&dump->late, tid) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

bool ky_session_dump_waits(const struct ky_session *session)
{
	const struct ky_session_dump *dump = &session->dump;

	return dump->late.len || (!session->options.overwrite && (wanted(session) & ~dump->told));
}

/* A complete dump of the threads that the recording has chosen since. */
static int tell_late(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	struct ky_tids done = dump->tids;

	dump->tids = dump->late;
	dump->late = done;
	ky_vec_clear(&dump->late);
	dump->dump.tids = dump->tids.data;
	dump->dump.n_tids = dump->tids.len;
	return session_dump_give_order(session, dump->told | KY_STATEDUMP_FRAME, 0, err);
}

int ky_session_dump_more(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	uint32_t events;
	int ret;

	if (!ky_session_dump_waits(session) || is_busy(dump))
		return KYMO_OK;
	if (dump->late.len)
		return tell_late(session, err);
	events = wanted(session) & ~dump->told;
	ret = find_chosen(session, err);
	if (ret < 0)
		return ret;
	dump->told |= events;
	return session_dump_give_order(session, events | KY_STATEDUMP_FRAME, 0, err);
}

int ky_session_dump_again(struct ky_session *session, uint64_t begin_cycles, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	int ret;

	if (!dump->writer.data)
		return KYMO_OK;
	if (begin_cycles < dump->writer.last_cycles)
		begin_cycles = dump->writer.last_cycles;
	begin_cycles += ky_kernel_trace_step(&session->kernel);
	ret = begin_stream(session, begin_cycles, err);
	return ret < 0 ? ret : ky_session_dump_anew(session, err);
}

int ky_session_dump_anew(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	int ret;

	if (!wanted(session))
		return KYMO_OK;
	ky_vec_clear(&dump->late);
	dump->told = wanted(session);
	ret = find_chosen(session, err);
	return ret < 0 ? ret : session_dump_give_order(session, dump->told, 0, err);
}

int ky_session_dump_event(struct ky_session *session, const struct ky_event_class *event,
			  uint64_t cycles, const void *body, uint32_t body_bytes,
			  struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	struct ky_packet_writer *writer = &dump->writer;
	uint32_t context_bytes;
	uint8_t *at;
	int ret = writer->data ? KYMO_OK : session_dump_open_stream(session, err);

	if (ret < 0)
		return ret;
	context_bytes = dump->dump.context_bytes;
	ky_packet_writer_begin(writer, cycles);
	at = ky_packet_writer_event(writer, (uint32_t)event->id, cycles,
				    context_bytes + body_bytes);
	if (!at)
		return ky_error_set(err, KYMO_E_LIMIT, "the event does not fit into a packet");
	memcpy(at, dump->dump.context, context_bytes);
	/* An event without fields has no body. */
	if (body_bytes)
		memcpy(at + context_bytes, body, body_bytes);
	dump->events++;
	return ky_kernel_trace_send(&session->kernel, writer, dump->stream, NULL, cycles, 0, err);
}

/* ---- a flight recorder's ----------------------------------------------------------------- */

bool ky_session_dump_is_busy(const struct ky_session *session)
{
	return is_busy(&session->dump);
}

int ky_session_dump_wait(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	struct pollfd poll_done = {.fd = dump->done_fd, .events = POLLIN};
	int ret = KYMO_OK;

	while (!ret && is_busy(dump)) {
		if (!session->stopped)
			ret = ky_session_wait_for(session, dump->done_fd, err);
		else if (poll(&poll_done, 1, -1) < 0 && errno != EINTR)
			ret = ky_error_errno(err, errno, "cannot wait for the state dump");
	}
	return ret;
}

int ky_session_dump_now(struct ky_session *session, uint64_t at_cycles, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	uint32_t events = wanted(session);
	int ret = events ? find_chosen(session, err) : KYMO_OK;

	if (ret < 0 || !events)
		return ret;
	ret = session_dump_give_order(session, events, at_cycles, err);
	if (!ret)
		ret = ky_session_dump_wait(session, err);
	if (!ret && dump->result < 0) {
		ret = dump->result;
		if (err)
			*err = dump->err;
	}
	return ret;
}

/* ---- the end ----------------------------------------------------------------------------- */

int ky_session_dump_finish(struct ky_session *session, bool abort_it, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	struct pollfd poll_done = {.fd = dump->done_fd, .events = POLLIN};

	if (!dump->is_running)
		return KYMO_OK;
	if (abort_it)
		atomic_store_explicit(&dump->stop, true, memory_order_relaxed);
	while (is_busy(dump))
		(void)poll(&poll_done, 1, -1);
	(void)eventfd_write(dump->order_fd, 1); /* with nothing to do: that is the end */
	pthread_join(dump->thread, NULL);
	dump->is_running = false;
	session->stats.dump_events = dump->events;
	session->stats.dump_missing = dump->missing;
	if (dump->result < 0 && dump->result != KYMO_E_INTERRUPTED) {
		if (err)
			*err = dump->err;
		return dump->result;
	}
	return KYMO_OK;
}

int ky_session_dump_end_stream(struct ky_session *session, uint64_t end_cycles,
			       struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;

	if (!dump->writer.data)
		return KYMO_OK;
	ky_packet_writer_begin(&dump->writer,
			       dump->writer.last_cycles + ky_kernel_trace_step(&session->kernel));
	return ky_kernel_trace_send(&session->kernel, &dump->writer, dump->stream, NULL, end_cycles,
				    0, err);
}

void ky_session_dump_close(struct ky_session *session)
{
	struct ky_session_dump *dump = &session->dump;
	int *fds[] = {&dump->done_fd, &dump->order_fd, &dump->tid_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	ky_packet_writer_fini(&dump->writer);
	ky_vec_fini(&dump->tids);
	ky_vec_fini(&dump->late);
}
