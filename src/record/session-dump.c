/* SPDX-License-Identifier: MIT */
/*
 * The state dump, in a thread of its own: it may take a second on a large machine, and the rings
 * must be read meanwhile. It has its own packet writer; only the sink is shared, under its lock.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/error.h"
#include "record/session-internal.h"

static int dump_flush(void *data, uint64_t end_cycles, struct kymo_error *err)
{
	struct ky_session *session = data;
	struct ky_session_dump *dump = &session->dump;
	/* Also when it is to stop: what is in the packet was counted. */
	int ret = ky_session_send(session, &dump->writer, dump->stream, NULL, end_cycles, 0, err);

	if (ret >= 0 && atomic_load_explicit(&dump->stop, memory_order_relaxed))
		ret = ky_error_set(err, KYMO_E_INTERRUPTED, "the state dump was stopped");
	return ret;
}

static void *dump_thread(void *data)
{
	struct ky_session *session = data;
	struct ky_session_dump *dump = &session->dump;
	uint64_t one = 1;

	atomic_store_explicit(&dump->tid, ky_pid_to_kernel(&session->view, gettid()),
			      memory_order_relaxed);
	dump->result = ky_statedump_run(&dump->dump, &dump->err);
	if (write(dump->done_fd, &one, sizeof(one)) < 0)
		dump->result = dump->result < 0 ? dump->result : KYMO_E_IO;
	return NULL;
}

static int prepare(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	int32_t pid = ky_pid_to_kernel(&session->view, getpid());
	struct ky_thread self = {
		.tid = pid, .pid = pid, .ppid = ky_pid_to_kernel(&session->view, getppid())};
	uint8_t context[KY_CONTEXT_MAX_BYTES];
	int ret;

	if (session->has_threads) {
		struct ky_thread *known = ky_threads_get(&session->threads, self.tid);

		if (known)
			self = *known;
	}
	dump->stream = session->sink->ops->stream(session->sink, "statedump_0", err);
	if (dump->stream < 0)
		return dump->stream;
	ret = ky_packet_writer_init(&dump->writer, KY_SESSION_DUMP_BYTES, session->uuid, 0,
				    session->cpus.len, 0, session->compact_header);
	if (ret < 0)
		return ky_error_nomem(err);
	dump->dump = (struct ky_statedump){
		.writer = &dump->writer,
		.first_id = session->first_dump_id,
		.clock = &session->clock,
		.context_bytes = ky_convert_context(&session->convert, &self, context),
		.flush = dump_flush,
		.data = session,
		.view = &session->view,
		.maps = session->options.maps,
	};
	dump->dump.context = ky_arena_memdup(&session->convert.arena, context, sizeof(context));
	return dump->dump.context ? KYMO_OK : ky_error_nomem(err);
}

int ky_session_dump_start(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;
	int ret;

	ret = prepare(session, err);
	if (ret < 0)
		return ret;
	/*
	 * An empty packet here, and one at the end: readers such as lttng-analyses look only at the
	 * time in which all streams have packets.
	 */
	ky_packet_writer_begin(&dump->writer, session->start_cycles);
	ret = ky_session_send(session, &dump->writer, dump->stream, NULL, session->start_cycles, 0,
			      err);
	if (ret < 0)
		return ret;
	ret = pthread_create(&dump->thread, NULL, dump_thread, session);
	if (ret)
		return ky_error_errno(err, ret, "cannot start the state dump's thread");
	dump->running = true;
	return KYMO_OK;
}

int ky_session_dump_finish(struct ky_session *session, bool abort_it, struct kymo_error *err)
{
	struct ky_session_dump *dump = &session->dump;

	if (!dump->running)
		return KYMO_OK;
	if (abort_it)
		atomic_store_explicit(&dump->stop, true, memory_order_relaxed);
	pthread_join(dump->thread, NULL);
	dump->running = false;
	session->stats.dump_events = dump->dump.events;
	session->stats.dump_missing = dump->dump.missing;
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
	ky_packet_writer_begin(&dump->writer, dump->writer.last_cycles);
	return ky_session_send(session, &dump->writer, dump->stream, NULL, end_cycles, 0, err);
}
