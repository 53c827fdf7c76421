/* SPDX-License-Identifier: MIT */
/*
 * Rotation: the kernel's trace so far moves to an archive, complete, and the recording continues in a
 * new trace, which begins with a state dump of its own.
 *
 * Babeltrace 2 reads the chunks of a stream as one only if the begins of their packets ascend. So an
 * empty packet at an end or a beginning is 2 ns away from its neighbours.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"

static int session_rotate_check(const struct ky_session *session, struct kymo_error *err)
{
	if (!session->started || session->stopped)
		return ky_error_set(err, KYMO_E_STATE, "the recording is over");
	if (session->options.overwrite)
		return ky_error_set(err, KYMO_E_STATE, "a flight recorder has no chunks");
	if (session->options.raw)
		return ky_error_set(err, KYMO_E_STATE, "a raw recording has no chunks");
	return KYMO_OK;
}

/* All that was recorded until now is in the trace, and its streams end. */
static int session_rotate_complete(struct ky_session *session, uint64_t *until,
				   struct kymo_error *err)
{
	int ret = ky_session_dump_wait(session, err);

	if (!ret)
		ret = ky_session_read_past(session, until, err);
	if (ret < 0)
		return ret;
	/* The next trace begins before the first of its events. */
	*until -= *until ? 2 * ky_kernel_trace_step(&session->kernel) : 0;
	if (*until < session->kernel.start_cycles)
		*until = session->kernel.start_cycles;
	ret = ky_kernel_trace_split_streams(&session->kernel, *until, err);
	if (!ret)
		ret = ky_session_split_samples(session, *until, err);
	return ret < 0 ? ret : ky_session_dump_end_stream(session, *until, err);
}

/* What groups that overwrite have in memory is a part of this trace, and of none after it. */
static int session_rotate_take_groups(struct ky_session *session, struct kymo_error *err)
{
	uint64_t events = 0;
	int ret = KYMO_OK;

	ky_vec_foreach(&session->cpus, it) {
		struct ky_convert_cpu *convert = &(*it)->kernel.convert;

		if ((*it)->kernel.packets && convert->writer.events && !ret)
			ret = ky_convert_flush(convert, convert->writer.last_cycles, err);
	}
	return ret < 0 ? ret : ky_session_move_groups(session, &events, err);
}

/* The last metadata of the trace so far, and then the clock of the next trace. */
static int change_clock(struct ky_session *session, struct ky_os_clock *ended,
			struct kymo_error *err)
{
	struct ky_os_clock *clock = &session->kernel.clock;
	struct ky_os_clock_drift drift;
	int ret = KYMO_OK;

	ky_os_clock_resample(clock, &drift);
	if (ky_kernel_trace_clock_ends(&session->kernel) < 0)
		return ky_error_nomem(err);
	if (ky_os_clock_refine(clock, &drift))
		ret = ky_kernel_trace_update_clock(&session->kernel, err);
	if (!ret)
		ret = ky_kernel_trace_write_metadata(&session->kernel, err);
	*ended = *clock;
	if (!ret && ky_os_clock_continue(clock, &drift))
		ret = ky_kernel_trace_update_clock(&session->kernel, err);
	return ret;
}

static int session_rotate_move(struct ky_session *session, const char *archive,
			       struct kymo_error *err)
{
	struct ky_kernel_trace *kernel = &session->kernel;
	char *place;
	int ret;

	if (asprintf(&place, "%s/%s", archive, kernel->packets->path) < 0)
		return ky_error_nomem(err);
	pthread_mutex_lock(&kernel->sink_lock);
	ret = ky_store_rotate(kernel->packets, place, err);
	pthread_mutex_unlock(&kernel->sink_lock);
	free(place);
	return ret;
}

int ky_session_rotate(struct ky_session *session, const char *archive, struct ky_os_clock *ended,
		      struct kymo_error *err)
{
	uint64_t until = 0;
	int ret = session_rotate_check(session, err);

	if (!ret)
		ret = session_rotate_complete(session, &until, err);
	if (!ret)
		ret = session_rotate_take_groups(session, err);
	if (!ret)
		ret = change_clock(session, ended, err);
	if (!ret)
		ret = session_rotate_move(session, archive, err);
	if (!ret)
		ret = ky_kernel_trace_write_metadata(&session->kernel, err);
	if (!ret)
		ret = ky_kernel_trace_begin_streams(&session->kernel, err);
	if (!ret)
		ret = ky_session_continue_samples(session, err);
	session->dump.archived_events = session->dump.events;
	return ret < 0 ? ret : ky_session_dump_again(session, until, err);
}
