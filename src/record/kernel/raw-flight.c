/* SPDX-License-Identifier: MIT */
/*
 * A raw flight recorder. The kernel's rings overwrite their oldest events, and the recorder reads them only for a
 * snapshot. Reading removes pages from a ring, so recording is off until the snapshot's files are complete. The next
 * snapshot begins with the content of the last one, unless events were overwritten in between.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "record/kernel/session-internal.h"
#include "store/directory/directory-store.h"

/* Whole pages, as many as the ring has room for. Without them it does too. */
static int begin_with_last(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	const struct ky_raw_flight *last = &cpu->raw_flight;
	uint64_t page = cpu->session->kernel.page_bytes, room = cpu->session->options.buffer_bytes;
	uint64_t from = last->bytes > room ? (last->bytes - room + page - 1) / page * page : 0;
	off_t at = (off_t)from;
	int ret = ky_raw_open_file(cpu, err);

	if (ret < 0)
		return ret;
	while ((uint64_t)at < last->bytes) {
		ssize_t n = sendfile(cpu->raw_fd, last->fd, &at, last->bytes - (uint64_t)at);

		if (n < 0)
			return ky_error_errno(err, errno, "cannot write the snapshot");
		if (n == 0)
			break;
	}
	cpu->raw_bytes = last->bytes - from;
	if ((uint64_t)at < last->bytes) {
		cpu->raw_bytes = 0;
		if (ftruncate(cpu->raw_fd, 0) < 0 || lseek(cpu->raw_fd, 0, SEEK_SET) < 0)
			return ky_error_set(err, KYMO_E_IO, "cannot write the snapshot");
	}
	return KYMO_OK;
}

/* All that is in the ring goes to the file. */
static int raw_flight_take_pages(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	uint32_t bytes = cpu->kernel.ring.page_bytes;
	uint8_t *page = malloc(bytes);
	int ret = page ? 1 : ky_error_nomem(err);

	while (ret > 0) {
		ret = ky_cpu_ring_copy(&cpu->kernel.ring, true, page, err);
		if (ret <= 0)
			break;
		ret = ky_raw_open_file(cpu, err);
		if (ret < 0)
			break;
		if (ky_write_all(cpu->raw_fd, page, bytes) < 0) {
			ret = ky_error_errno(err, errno, "cannot write the snapshot");
			/* The next one begins with the whole pages of this one. */
			(void)!ftruncate(cpu->raw_fd, (off_t)cpu->raw_bytes);
			break;
		}
		cpu->raw_bytes += bytes;
		ret = 1;
	}
	free(page);
	return ret;
}

static int take_ring(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	struct ky_raw_flight *last = &cpu->raw_flight;
	struct ky_cpu_ring_stats stats;
	uint64_t kept = 0;
	int ret = ky_cpu_ring_stats(&cpu->session->instance, cpu->kernel.convert.cpu, &stats, err);

	if (!ret && last->fd >= 0 && last->bytes && stats.overrun == last->overrun) {
		ret = begin_with_last(cpu, err);
		/* The events of omitted pages are not counted. */
		kept = (uint64_t)((double)last->events * (double)cpu->raw_bytes /
				  (double)last->bytes);
	}
	if (!ret)
		ret = raw_flight_take_pages(cpu, err);
	if (!ret)
		ret = ky_cpu_ring_stats(&cpu->session->instance, cpu->kernel.convert.cpu, &stats,
					err);
	if (ret < 0)
		return ret;
	last->events = kept + stats.read - last->read;
	last->read = stats.read;
	last->overrun = stats.overrun;
	return KYMO_OK;
}

/* What was taken is the last now, also when that failed. */
static void keep_file(struct ky_session_cpu *cpu)
{
	struct ky_raw_flight *last = &cpu->raw_flight;

	if (cpu->raw_fd < 0)
		return;
	if (last->fd >= 0)
		close(last->fd);
	last->fd = cpu->raw_fd;
	last->bytes = cpu->raw_bytes;
	cpu->raw_fd = -1;
	cpu->raw_bytes = 0;
}

int ky_raw_take_rings(struct ky_session *session, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&session->cpus, cpu) {
		(*cpu)->raw_bytes = 0;
		if (!ret)
			ret = take_ring(*cpu, err);
	}
	return ret;
}

static int write_state(struct ky_session *session, uint64_t *bytes, struct kymo_error *err)
{
	struct ky_packet_store *store;
	struct ky_store_trace *to = NULL;
	uint64_t dumped;
	int ret = ky_directory_store_open(session->raw_output, &store, err), closed;

	if (ret < 0)
		return ret;
	ret = ky_store_open(store, &ky_raw_state_place, &to, err);
	if (!ret) {
		ret = ky_session_copy_flight(session, to, true, &dumped, err);
		*bytes += to->bytes_written;
	}
	closed = ky_store_close(to, ret < 0 ? NULL : err);
	ky_store_free(store);
	return ret < 0 ? ret : closed;
}

static int take_paused(struct ky_session *session, struct kymo_error *err)
{
	int ret = ky_instance_write(&session->instance, "tracing_on", "0", err), on;

	session->flight.at_cycles = ky_os_clock_now(&session->kernel.clock);
	if (!ret)
		ret = ky_raw_take_rings(session, err);
	on = ky_instance_write(&session->instance, "tracing_on", "1", ret < 0 ? NULL : err);
	return ret < 0 ? ret : on;
}

/* When the first page of a file begins; 0: that is not known. */
static uint64_t raw_flight_begin_of(const struct ky_session_cpu *cpu)
{
	uint64_t cycles;

	return pread(cpu->raw_fd, &cycles, sizeof(cycles),
		     cpu->session->kernel.page_layout.time_offset) == sizeof(cycles)
		       ? cycles
		       : 0;
}

static void raw_flight_keep_cpu(bool counts, struct ky_session_flight *flight,
				struct ky_session_cpu *cpu)
{
	uint64_t begin = cpu->raw_bytes ? raw_flight_begin_of(cpu) : UINT64_MAX;

	if (begin < flight->oldest_cycles)
		flight->oldest_cycles = begin;
	flight->events += counts ? cpu->raw_flight.events : 0;
	flight->bytes += cpu->raw_bytes;
	keep_file(cpu);
}

/* What was taken is counted, and is the last now. */
static void keep_files(struct ky_session *session, bool counts)
{
	struct ky_session_flight *flight = &session->flight;

	flight->events = flight->bytes = 0;
	flight->oldest_cycles = UINT64_MAX;
	ky_vec_foreach(&session->cpus, cpu)
		raw_flight_keep_cpu(counts, flight, *cpu);
}

int ky_raw_snapshot(struct ky_session *session, const char *output, struct kymo_error *err)
{
	int ret;

	session->raw_output = output;
	ret = ky_raw_make_dir(session, err);
	if (!ret)
		ret = take_paused(session, err);
	keep_files(session, !ret);
	if (!ret)
		ret = ky_session_finish_clock(session, err);
	if (ret < 0)
		session->raw_output = session->output;
	return ret;
}

int ky_raw_snapshot_finish(struct ky_session *session, uint64_t *events, uint64_t *bytes,
			   struct kymo_error *err)
{
	struct ky_session_flight *flight = &session->flight;
	/* Who was started since the beginning: that may have been overwritten. */
	int ret = session->kernel.has_threads ? ky_threads_scan(&session->kernel.threads, err)
					      : KYMO_OK;

	*events = flight->events;
	*bytes = flight->bytes;
	if (!ret)
		ret = ky_session_renew_state(session, flight->at_cycles, flight->oldest_cycles,
					     err);
	if (!ret)
		ret = ky_raw_describe(session, flight->at_cycles, err);
	if (!ret)
		ret = ky_kernel_trace_write_metadata(&session->kernel, err);
	if (!ret)
		ret = write_state(session, bytes, err);
	session->raw_output = session->output;
	flight->is_taken = false;
	ky_session_hide_own(session, false);
	return ret;
}
