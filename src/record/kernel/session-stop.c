/* SPDX-License-Identifier: MIT */
/* The end of a session: the last events, the counts, the metadata; and its figures while it runs. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"
#include "store/packets/memory-trace.h"

/* Of @cpu: events that are in the trace, or that a flight recorder keeps for it. */
static uint64_t events_of(const struct ky_session *session, const struct ky_session_cpu *cpu)
{
	if (cpu->kernel.packets)
		return ky_memory_trace_kept(cpu->kernel.packets, cpu->kernel.stream);
	return session->disk && !session->options.raw
		       ? ky_memory_trace_kept(session->kernel.packets, cpu->kernel.stream)
		       : cpu->kernel.convert.events;
}

static void count_overwritten_of(struct ky_session *session, const struct ky_session_cpu *cpu)
{
	uint64_t gone;

	if (!cpu->kernel.packets || cpu->kernel.stream < 0)
		return;
	gone = cpu->kernel.convert.events - events_of(session, cpu);
	session->stats.overwritten += gone;
	session->stats.events -= gone;
}

/* Groups that overwrite, beside main buffers that do not. */
static void count_overwritten(struct ky_session *session)
{
	ky_vec_foreach(&session->cpus, it)
		count_overwritten_of(session, *it);
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
	stats->samples_are_chosen = session->has_list || session->options.threads.comm;
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
	if (ky_kernel_trace_clock_ends(&session->kernel) < 0)
		return ky_error_nomem(err);
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
