/* SPDX-License-Identifier: MIT */
/*
 * The kernel's flight recorder: the rings are read and converted as ever, but packets stay in memory,
 * as many as --buffer-size says, until somebody wants a snapshot. So the kernel's buffers are never
 * stopped, and any number of snapshots can be taken.
 */
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "record/session-internal.h"
#include "store/flight-sink.h"

/* In the order of time, the newest events are held back for so long. */
#define HELD_BACK_US 4000

int ky_session_open_sink(struct ky_session *session, const char *path, struct kymo_error *err)
{
	int ret;

	if (!session->options.overwrite) {
		ret = ky_block_writer_open(
			&session->blocks,
			session->options.raw ? KY_RAW_BLOCK_BYTES : KY_BLOCK_BYTES, err);
		if (!ret)
			ret = ky_dir_sink_open(path, &session->sink, err);
		if (!ret)
			ky_dir_sink_use_blocks(session->sink, session->blocks);
		return ret;
	}
	/* Where the last snapshot goes: better known now that it can. */
	ret = ky_dir_sink_open(path, &session->disk, err);
	return ret < 0 ? ret
		       : ky_flight_sink_open(session->options.buffer_bytes, &session->sink, err);
}

int ky_session_copy_flight(struct ky_session *session, struct ky_packet_sink *to, uint64_t *events,
			   struct kymo_error *err)
{
	int ret;

	pthread_mutex_lock(&session->sink_lock);
	ret = ky_flight_sink_copy(session->sink, to, events, err);
	pthread_mutex_unlock(&session->sink_lock);
	return ret;
}

/* All that was recorded until now goes to the sink. */
static int read_until_now(struct ky_session *session, struct kymo_error *err)
{
	int ret;

	if (session->merge)
		usleep(HELD_BACK_US);
	ret = ky_session_read_now(session, err);
	for (size_t i = 0; i < session->cpus.len && !ret; i++) {
		struct ky_convert_cpu *convert = &session->cpus.data[i]->convert;

		if (convert->writer.events)
			ret = ky_convert_flush(convert, convert->writer.last_cycles, err);
	}
	return ret;
}

int ky_session_snapshot(struct ky_session *session, const char *output, uint64_t *events,
			uint64_t *bytes, struct kymo_error *err)
{
	struct ky_packet_sink *to;
	char path[4200];
	int ret, closed;

	*events = *bytes = 0;
	if (!session->options.overwrite || !session->started || session->stopped)
		return ky_error_set(err, KYMO_E_STATE, "this recording is no flight recorder");
	if (session->options.raw)
		return ky_raw_snapshot(session, output, events, bytes, err);
	ret = read_until_now(session, err);
	if (!ret)
		ret = ky_session_finish_clock(session, err);
	if (!ret)
		ret = ky_session_write_metadata(session, err);
	if (ret < 0)
		return ret;
	snprintf(path, sizeof(path), "%s/kernel", output);
	ret = ky_dir_sink_open(path, &to, err);
	if (ret < 0)
		return ret;
	ret = ky_session_copy_flight(session, to, events, err);
	*bytes = to->bytes_written;
	closed = to->ops->close(to, ret < 0 ? NULL : err);
	return ret < 0 ? ret : closed;
}
