/* SPDX-License-Identifier: MIT */
/*
 * The kernel's flight recorder. It reads and converts the rings as usual, but packets stay in memory, up to
 * the size of --buffer-size, until a snapshot. So the kernel's buffers never stop, and any number of
 * snapshots is possible.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "ctf/tsdl/tsdl.h"
#include "record/kernel/session-internal.h"
#include "store/directory/directory-store.h"
#include "store/packets/memory-trace.h"

/* Readers know a kernel trace by the name of its directory. */
static const struct ky_store_place trace_place = {.path = "kernel"};

const struct ky_store_place ky_raw_state_place = {.path = "raw/state", .is_part = true};

/* Finished packets are blocks where the store takes them. */
static int use_blocks(struct ky_session *session, struct kymo_error *err)
{
	uint32_t block_bytes = session->options.raw ? KY_RAW_BLOCK_BYTES : KY_BLOCK_BYTES;
	int ret = ky_block_writer_open(&session->blocks, block_bytes, err);

	if (ret < 0 || ky_store_use_blocks(session->kernel.packets, session->blocks))
		return ret;
	ky_block_writer_close(session->blocks);
	session->blocks = NULL;
	return KYMO_OK;
}

int ky_session_open_packets(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_store_place *place =
		session->options.raw ? &ky_raw_state_place : &trace_place;
	int ret;

	if (!session->options.overwrite) {
		ret = ky_store_open(session->store, place, &session->kernel.packets, err);
		return ret < 0 ? ret : use_blocks(session, err);
	}
	/* Where the last snapshot goes: the caller learns now whether it can be written. */
	ret = ky_store_open(session->store, place, &session->disk, err);
	return ret < 0 ? ret
		       : ky_memory_trace_open(session->options.buffer_bytes,
					      &session->kernel.packets, err);
}

int ky_session_copy_flight(struct ky_session *session, struct ky_store_trace *to, bool state,
			   uint64_t *events, struct kymo_error *err)
{
	int ret;

	pthread_mutex_lock(&session->kernel.sink_lock);
	ret = state ? ky_memory_trace_copy_state(session->kernel.packets, to, events, err)
		    : ky_memory_trace_copy_events(session->kernel.packets, to, events, err);
	pthread_mutex_unlock(&session->kernel.sink_lock);
	return ret;
}

/* ---- state ---------------------------------------------------------------------------- */

/* Forget the state dump of these times, if there is one. */
static void drop_dump(struct ky_session *session, struct ky_session_span *dump)
{
	if (!dump->last_cycles)
		return;
	pthread_mutex_lock(&session->kernel.sink_lock);
	session->dump.events -= ky_memory_trace_drop(session->kernel.packets, session->dump.stream,
						     dump->first_cycles, dump->last_cycles);
	pthread_mutex_unlock(&session->kernel.sink_lock);
	*dump = (struct ky_session_span){0};
}

/* Make @dump the first dump of the kept events, if it is older than these. */
static bool becomes_first(struct ky_session *session, struct ky_session_span *dump,
			  uint64_t oldest_cycles)
{
	if (!dump->last_cycles || dump->last_cycles > oldest_cycles)
		return false;
	drop_dump(session, &session->flight.first);
	session->flight.first = *dump;
	*dump = (struct ky_session_span){0};
	return true;
}

/*
 * Three are kept: the one that the events begin with; the last one; and the one before, which may know of processes that
 * have ended since. So snapshots may be taken as often as one likes.
 */
static void session_flight_drop_older(struct ky_session *session, uint64_t oldest_cycles)
{
	struct ky_session_flight *flight = &session->flight;

	(void)becomes_first(session, &flight->before, oldest_cycles);
	if (becomes_first(session, &flight->last, oldest_cycles))
		return;
	drop_dump(session, &flight->before);
	flight->before = flight->last;
	flight->last = (struct ky_session_span){0};
}

int ky_session_renew_state(struct ky_session *session, uint64_t at_cycles, uint64_t oldest_cycles,
			   struct kymo_error *err)
{
	struct ky_session_flight *flight = &session->flight;
	int ret;

	if (!session->dump.writer.data)
		return KYMO_OK; /* there is no state dump */
	/* One that is under way is fresh. */
	if (ky_session_dump_is_busy(session))
		return ky_session_dump_wait(session, err);
	/* The first one begins behind its stream's first, empty packet. */
	if (!flight->first.last_cycles)
		flight->first = (struct ky_session_span){
			1 + (flight->begin_cycles
				     ? flight->begin_cycles + ky_kernel_trace_step(&session->kernel)
				     : session->kernel.start_cycles),
			session->dump.writer.last_cycles};
	session_flight_drop_older(session, oldest_cycles);
	ret = ky_session_dump_now(session, at_cycles, err);
	flight->last = (struct ky_session_span){at_cycles, session->dump.writer.last_cycles};
	return ret;
}

/* ---- events --------------------------------------------------------------------------- */

/* All that was recorded until now goes to the sink. */
static int read_until_now(struct ky_session *session, struct kymo_error *err)
{
	int ret = ky_kernel_trace_read_past(&session->kernel, err);

	for (size_t i = 0; i < session->cpus.len && !ret; i++) {
		struct ky_convert_cpu *convert = &session->cpus.data[i]->kernel.convert;

		if (convert->writer.events)
			ret = ky_convert_flush(convert, convert->writer.last_cycles, err);
	}
	return ret;
}

static int close_snapshot(struct ky_session_flight *flight, struct kymo_error *err)
{
	int ret = ky_store_close(flight->to, err);

	ky_store_free(flight->store);
	flight->to = NULL;
	flight->store = NULL;
	return ret;
}

static int session_flight_take_events(struct ky_session *session, const char *output,
				      struct kymo_error *err)
{
	struct ky_session_flight *flight = &session->flight;
	int ret = read_until_now(session, err);

	if (ret < 0)
		return ret;
	ret = ky_directory_store_open(output, &flight->store, err);
	if (!ret)
		ret = ky_store_open(flight->store, &trace_place, &flight->to, err);
	if (ret < 0) {
		close_snapshot(flight, NULL);
		return ret;
	}
	flight->at_cycles = ky_os_clock_now(&session->kernel.clock);
	flight->oldest_cycles =
		session->options.overwrite ? ky_memory_trace_oldest(session->kernel.packets) : 0;
	flight->events = 0;
	if (session->options.overwrite)
		ret = ky_session_copy_flight(session, flight->to, false, &flight->events, err);
	if (!ret)
		ret = ky_session_copy_groups(session, flight->to, &flight->events, err);
	if (!ret)
		ret = ky_session_finish_clock(session, err);
	if (ret < 0)
		(void)close_snapshot(flight, NULL);
	return ret;
}

bool ky_session_has_snapshots(const struct ky_session *session)
{
	return session->options.overwrite || ky_session_has_flight_groups(session);
}

int ky_session_snapshot(struct ky_session *session, const char *output, struct kymo_error *err)
{
	int ret;

	if (!ky_session_has_snapshots(session) || !session->started || session->stopped)
		return ky_error_set(err, KYMO_E_STATE, "this recording is not a flight recorder");
	ky_session_hide_own(session, true);
	session->flight.is_taken = true;
	ret = session->options.raw ? ky_raw_snapshot(session, output, err)
				   : session_flight_take_events(session, output, err);
	session->flight.is_taken = ret == 0;
	return ret;
}

/* A snapshot of groups alone: the state is in the recording's own trace. */
static int finish_groups(struct ky_session *session, uint64_t *events, uint64_t *bytes,
			 struct kymo_error *err)
{
	struct ky_session_flight *flight = &session->flight;
	char *text = NULL;
	size_t len = 0;
	int ret = ky_tsdl_write(session->kernel.trace, &text, &len, err), closed;

	if (!ret)
		ret = ky_store_metadata(flight->to, text, len, err);
	free(text);
	*events = flight->events;
	*bytes = flight->to->bytes_written;
	closed = close_snapshot(flight, ret < 0 ? NULL : err);
	flight->is_taken = false;
	return ret < 0 ? ret : closed;
}

int ky_session_snapshot_finish(struct ky_session *session, uint64_t *events, uint64_t *bytes,
			       struct kymo_error *err)
{
	struct ky_session_flight *flight = &session->flight;
	uint64_t of_state = 0;
	int ret, closed;

	if (!session->options.overwrite)
		return finish_groups(session, events, bytes, err);
	if (session->options.raw)
		return ky_raw_snapshot_finish(session, events, bytes, err);
	ret = ky_session_renew_state(session, flight->at_cycles, flight->oldest_cycles, err);
	if (!ret)
		ret = ky_kernel_trace_write_metadata(&session->kernel, err);
	if (!ret)
		ret = ky_session_copy_flight(session, flight->to, true, &of_state, err);
	*events = flight->events + of_state;
	*bytes = flight->to->bytes_written;
	closed = close_snapshot(flight, ret < 0 ? NULL : err);
	flight->is_taken = false;
	return ret < 0 ? ret : closed;
}
