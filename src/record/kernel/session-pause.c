/* SPDX-License-Identifier: MIT */
/*
 * Pauses: the kernel's tracepoints are off, so that a paused recording costs the machine nothing. The
 * trace says so by two events in the state dump's stream, and each CPU's packet ends at the begin of the
 * pause. What has happened to processes meanwhile comes with a state dump after it.
 */
#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"
#include "record/kernel/session-internal.h"
#include "store/packets/memory-trace.h"

/* Readers know them by these names. */
#define BEGIN_NAME "kymo_recording_paused"
#define END_NAME   "kymo_recording_resumed"

static int session_pause_check(const struct ky_session *session, struct kymo_error *err)
{
	if (!session->started || session->stopped)
		return ky_error_set(err, KYMO_E_STATE, "the recording is over");
	if (session->options.raw)
		return ky_error_set(err, KYMO_E_STATE,
				    "a raw recording has no place for the times of pauses");
	return KYMO_OK;
}

/* ---- the events ------------------------------------------------------------------------ */

static struct ky_event_class *session_pause_add_class(struct ky_session *session, const char *name,
						      const char *field)
{
	struct ky_kernel_trace *kernel = &session->kernel;
	struct ky_event_class *event =
		ky_event_class_new(kernel->stream, kernel->stream->events.len, name);

	if (!event)
		return NULL;
	kernel->n_added++;
	event->payload = ky_struct_new(kernel->trace);
	if (!event->payload ||
	    (field && !ky_struct_add_int(kernel->trace, event->payload, field, 64, false, 10)))
		return NULL;
	return event;
}

/* With the first pause, the trace describes them. */
static int session_pause_describe(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_pauses *pauses = &session->pauses;
	int ret;

	if (pauses->end)
		return KYMO_OK;
	pauses->begin = session_pause_add_class(session, BEGIN_NAME, NULL);
	pauses->end =
		pauses->begin ? session_pause_add_class(session, END_NAME, "_paused_ns") : NULL;
	if (!pauses->end)
		return ky_error_nomem(err);
	ret = ky_trace_class_finish(session->kernel.trace, true, err);
	return ret < 0 ? ret : ky_kernel_trace_write_metadata(&session->kernel, err);
}

/* ---- pausing --------------------------------------------------------------------------- */

/* Everything that costs something where the kernel's tracepoints are. */
static int switch_off(struct ky_session *session, struct kymo_error *err)
{
	int ret = ky_session_write_all(session, "events/enable", "0", err);

	ky_vec_foreach(&session->kernel.catalogue.events, source)
		if (!source->off)
			ky_session_switch_stacks(session, source, false);
	if (session->kernel.content)
		ky_content_detach(session->kernel.content);
	if (session->kernel.counters)
		ky_counters_detach(session->kernel.counters);
	if (!ret && session->watch.instance.path[0])
		ret = ky_instance_write(&session->watch.instance, "events/enable", "0", err);
	return ret;
}

/* Each CPU's packet ends here; its next one begins after the pause. */
static int end_packets(struct ky_session *session, uint64_t cycles, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < session->cpus.len && !ret; i++) {
		struct ky_convert_cpu *convert = &session->cpus.data[i]->kernel.convert;

		if (convert->writer.events)
			ret = ky_convert_flush(convert,
					       cycles > convert->writer.last_cycles
						       ? cycles
						       : convert->writer.last_cycles,
					       err);
	}
	return ret;
}

int ky_session_pause(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_pauses *pauses = &session->pauses;
	int ret = session_pause_check(session, err);

	if (ret < 0 || pauses->is_on)
		return ret;
	ret = ky_session_dump_wait(session, err);
	if (!ret)
		ret = session_pause_describe(session, err);
	if (!ret)
		ret = ky_session_write_all(session, "tracing_on", "0", err);
	if (ret < 0)
		return ret;
	pauses->is_on = true;
	ky_session_review_switches(session);
	pauses->since_cycles = ky_os_clock_now(&session->kernel.clock);
	ret = switch_off(session, err);
	if (!ret)
		ret = ky_session_read_round(session, true, err);
	if (!ret)
		ret = end_packets(session, pauses->since_cycles, err);
	if (!ret)
		ret = ky_session_pause_samples(session, pauses->since_cycles, err);
	if (!ret)
		ret = ky_session_dump_event(session, pauses->begin, pauses->since_cycles, NULL, 0,
					    err);
	if (session->blocks)
		ky_block_writer_kick(session->blocks);
	return ret;
}

/* ---- resuming -------------------------------------------------------------------------- */

/* Processes that ended meanwhile are unknown, and others may have their ids. */
static int forget_threads(struct ky_session *session, struct kymo_error *err)
{
	struct ky_threads *threads = &session->kernel.threads, old = *threads;
	int ret;

	if (!session->kernel.has_threads)
		return KYMO_OK;
	ky_threads_fini(threads);
	ret = ky_threads_init(threads, err);
	threads->view = old.view;
	threads->wants_ids = old.wants_ids;
	threads->generation = old.generation + 1;
	return ret;
}

static void begin_packets(struct ky_session *session, uint64_t cycles)
{
	ky_vec_foreach(&session->cpus, it) {
		struct ky_packet_writer *writer = &(*it)->kernel.convert.writer;

		(*it)->kernel.convert.has_context = false;
		if (cycles > writer->last_cycles)
			writer->begin_cycles = writer->last_cycles = cycles;
	}
}

static int session_pause_switch_on(struct ky_session *session, struct kymo_error *err)
{
	int ret = ky_session_switch_on(session, err);

	if (!ret)
		ret = ky_session_watch_start(session, err);
	if (!ret)
		ret = ky_session_write_all(session, "tracing_on", "1", err);
	if (!ret)
		ret = ky_session_begin_samples(session, err);
	if (ret < 0)
		return ret;
	session->pauses.is_on = false;
	session->watch.is_due = true;
	ky_session_review_switches(session);
	ret = ky_pid_view_refresh(&session->view, err);
	/* As at the begin: an event announces each thread that is born from now on. */
	return ret < 0 || !session->kernel.has_threads
		       ? ret
		       : ky_threads_scan(&session->kernel.threads, err);
}

int ky_session_resume(struct ky_session *session, struct kymo_error *err)
{
	struct ky_session_pauses *pauses = &session->pauses;
	const struct ky_os_clock *clock = &session->kernel.clock;
	uint64_t cycles, paused_ns;
	int ret = session_pause_check(session, err);

	if (ret < 0 || !pauses->is_on)
		return ret;
	/* A rotation or a snapshot may have begun one. */
	ret = ky_session_dump_wait(session, err);
	if (!ret)
		ret = forget_threads(session, err);
	if (ret < 0)
		return ret;
	cycles = ky_os_clock_now(clock);
	paused_ns = (uint64_t)(ky_os_clock_to_ns(clock, cycles) -
			       ky_os_clock_to_ns(clock, pauses->since_cycles));
	ret = ky_session_dump_event(session, pauses->end, cycles, &paused_ns, sizeof(paused_ns),
				    err);
	begin_packets(session, cycles);
	if (!ret)
		ret = session_pause_switch_on(session, err);
	return ret < 0 ? ret : ky_session_dump_anew(session, err);
}

/* ---- clearing -------------------------------------------------------------------------- */

int ky_session_clear(struct ky_session *session, struct kymo_error *err)
{
	uint64_t cycles;
	int ret = session_pause_check(session, err);

	if (!ret && !session->options.overwrite)
		ret = ky_error_set(err, KYMO_E_STATE, "this recording is not a flight recorder");
	if (!ret)
		ret = ky_session_dump_wait(session, err);
	if (!ret)
		ret = ky_kernel_trace_read_past(&session->kernel, err);
	cycles = ky_os_clock_now(&session->kernel.clock);
	if (!ret)
		ret = end_packets(session, cycles, err);
	if (ret < 0)
		return ret;
	pthread_mutex_lock(&session->kernel.sink_lock);
	ky_memory_trace_clear(session->kernel.packets);
	for (size_t i = 0; i < session->options.n_groups; i++)
		if (session->buffers[i].packets)
			ky_memory_trace_clear(session->buffers[i].packets);
	pthread_mutex_unlock(&session->kernel.sink_lock);
	session->dump.events = 0;
	session->flight = (struct ky_session_flight){.begin_cycles = cycles};
	ky_vec_foreach(&session->cpus, cpu)
		session->flight.cleared += (*cpu)->kernel.convert.events;
	return ky_session_dump_again(session, cycles, err);
}
