/* SPDX-License-Identifier: MIT */
/*
 * From the rings to packets.
 *
 * Without context fields each CPU is converted by itself, as its pages come. With them, a thread's
 * name or process may be told by an event of another CPU, so pages of all CPUs are converted in
 * the order of time, as far as every CPU's events are known.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "record/kernel/session-internal.h"

/* An event may be stamped before the ring was found empty and yet be finished after that. */
#define UNFINISHED_NS 2000000

/*
 * Pages of a CPU that are read before anything else gets its turn: the other CPUs, and the
 * order to stop, when events come in as fast as they are read.
 */
#define ROUND_PAGES 64

int ky_session_send(struct ky_session *session, struct ky_packet_writer *writer, int stream,
		    struct ky_block *block, uint64_t end_cycles, uint64_t discarded,
		    struct kymo_error *err)
{
	uint64_t content_bits = (uint64_t)writer->used_bytes * 8;
	/* The next block is to begin where a disk can go on; behind the last there is none. */
	uint32_t align_bytes = block && !session->stopped ? KY_BLOCK_ALIGN : 8;
	struct ky_packet_out out = {
		.size_bytes = ky_packet_writer_close(writer, end_cycles, discarded, align_bytes),
		.block = block,
		.data = writer->data,
		.content_bits = content_bits,
		.n_events = writer->events,
		.begin_cycles = writer->begin_cycles,
		.end_cycles = writer->last_cycles,
		.discarded = discarded,
		.sequence = writer->sequence,
		.stream_class_id = writer->stream_class_id,
		.stream_id = writer->stream_id,
	};
	int ret;

	pthread_mutex_lock(&session->sink_lock);
	ret = ky_store_packet(session->packets, stream, &out, err);
	pthread_mutex_unlock(&session->sink_lock);
	return ret;
}

/* The next packet is built in a block of its own. */
static int lend_block(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	struct ky_session *session = cpu->session;

	if (!session->blocks || session->options.raw)
		return KYMO_OK;
	cpu->block = ky_block_take(session->blocks);
	if (!cpu->block)
		return ky_error_nomem(err);
	ky_packet_writer_lend(&cpu->convert.writer, cpu->block->data);
	return KYMO_OK;
}

/* Packets of a CPU; its stream is announced with the first one. */
static int send_packet(struct ky_convert_cpu *convert, uint64_t end_cycles, struct kymo_error *err)
{
	struct ky_session_cpu *cpu = convert->data;
	struct ky_session *session = cpu->session;
	char name[32];
	int ret, lent;

	if (cpu->stream < 0) {
		snprintf(name, sizeof(name), "channel0_%u", convert->cpu);
		pthread_mutex_lock(&session->sink_lock);
		cpu->stream = ky_store_stream(session->packets, name, err);
		pthread_mutex_unlock(&session->sink_lock);
		if (cpu->stream < 0)
			return cpu->stream;
	}
	ret = ky_session_send(session, &convert->writer, cpu->stream, cpu->block, end_cycles,
			      convert->lost, err);
	lent = lend_block(cpu, ret < 0 ? NULL : err);
	return ret < 0 ? ret : lent;
}

static uint64_t lost_until_now(struct ky_convert_cpu *convert)
{
	struct ky_session_cpu *cpu = convert->data;
	const struct ky_content *content = cpu->session->content;
	uint64_t calls = content ? ky_content_lost_calls(content, convert->cpu) : 0;
	struct ky_ring_stats stats;

	if (cpu->session->is_replay)
		return cpu->raw_lost;
	if (ky_ring_stats(&cpu->session->instance, convert->cpu, &stats, NULL) < 0)
		return calls;
	return stats.overrun + stats.commit_overrun + stats.dropped + calls;
}

/* ---- the CPUs ------------------------------------------------------------------------- */

static bool is_online(uint32_t cpu)
{
	char path[64], state = '1'; /* CPU 0 may have no such file: it cannot go offline */
	int fd;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/online", cpu);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	if (read(fd, &state, 1) != 1)
		state = '1';
	close(fd);
	return state != '0';
}

static int watch(struct ky_session *session, struct ky_session_cpu *cpu, struct kymo_error *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = cpu};

	/* Rings of the boot before: nothing will come. A raw flight recorder reads when it is told to. */
	if (session->epoll_fd < 0 || (session->options.raw && session->options.overwrite))
		return KYMO_OK;
	if (epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, cpu->ring.fd, &event) < 0)
		return ky_error_errno(err, errno, "cannot wait for the ring buffer");
	return KYMO_OK;
}

static int open_cpu(struct ky_session *session, uint32_t number, struct kymo_error *err)
{
	struct ky_session_cpu *cpu = calloc(1, sizeof(*cpu));
	int ret;

	if (!cpu || ky_vec_push(&session->cpus, cpu) < 0) {
		free(cpu);
		return ky_error_nomem(err);
	}
	cpu->session = session;
	cpu->stream = cpu->raw_fd = cpu->direct_fd = cpu->raw_flight.fd = -1;
	cpu->online = is_online(number);
	cpu->convert.convert = &session->convert;
	cpu->convert.cpu = number;
	cpu->convert.data = cpu;
	ret = ky_ring_open(&cpu->ring, &session->instance, number, session->page_bytes,
			   &session->page_layout, session->options.reader, err);
	if (!ret &&
	    ky_packet_writer_init(&cpu->convert.writer, KY_SESSION_PACKET_BYTES, session->uuid, 0,
				  number, number, session->compact_header) < 0)
		ret = ky_error_nomem(err);
	if (!ret)
		ret = lend_block(cpu, err);
	return ret < 0 ? ret : watch(session, cpu, err);
}

static int compare_cpus(const void *a, const void *b)
{
	const struct ky_session_cpu *x = *(struct ky_session_cpu *const *)a;
	const struct ky_session_cpu *y = *(struct ky_session_cpu *const *)b;

	return x->convert.cpu < y->convert.cpu ? -1 : x->convert.cpu > y->convert.cpu;
}

void ky_session_use_convert(struct ky_session *session)
{
	session->convert.packet = send_packet;
	/* Of a raw recording, only the end's count is known. */
	session->convert.lost_until_now = session->is_replay ? NULL : lost_until_now;
}

int ky_session_open_cpus(struct ky_session *session, struct kymo_error *err)
{
	DIR *dir;
	struct dirent *entry;
	unsigned int cpu;
	int ret = KYMO_OK, len;

	ky_session_use_convert(session);
	dir = ky_dir_open(session->instance.fd, "per_cpu");
	if (!dir) {
		ret = ky_error_errno(err, errno, "cannot list the CPUs");
		ky_error_path(err, session->instance.path);
		return ret;
	}
	while (!ret && (entry = readdir(dir)))
		if (sscanf(entry->d_name, "cpu%9u%n", &cpu, &len) == 1 && !entry->d_name[len])
			ret = open_cpu(session, cpu, err);
	closedir(dir);
	if (!ret && !session->cpus.len)
		ret = ky_error_set(err, KYMO_E_IO, "tracefs lists no CPUs");
	if (session->cpus.len)
		qsort(session->cpus.data, session->cpus.len, sizeof(session->cpus.data[0]),
		      compare_cpus);
	return ret;
}

void ky_session_close_cpus(struct ky_session *session)
{
	ky_vec_foreach(&session->cpus, cpu) {
		ky_ring_close(&(*cpu)->ring);
		(void)ky_block_file_close((*cpu)->raw_file, NULL);
		if ((*cpu)->raw_fd >= 0)
			close((*cpu)->raw_fd);
		if ((*cpu)->direct_fd >= 0)
			close((*cpu)->direct_fd);
		if ((*cpu)->raw_flight.fd >= 0)
			close((*cpu)->raw_flight.fd);
		ky_packet_writer_fini(&(*cpu)->convert.writer);
		free(*cpu);
	}
	ky_vec_fini(&session->cpus);
}

/* ---- reading -------------------------------------------------------------------------- */

/* 1: a page is in hand; 0: there is none. */
static int next_page(struct ky_session_cpu *cpu, bool partial, struct kymo_error *err)
{
	struct ky_page page;
	int ret = ky_ring_next(&cpu->ring, partial, &page, err);

	if (ret <= 0)
		return ret;
	if (cpu->session->content)
		ky_content_drain(cpu->session->content);
	if (cpu->session->counters)
		ky_counters_drain(cpu->session->counters);
	if (cpu->session->is_replay && cpu->session->options.overwrite && !cpu->has_begun) {
		/* What was overwritten before it is nobody's loss. */
		page.missed = false;
		ky_packet_writer_begin(&cpu->convert.writer, page.cycles);
	}
	cpu->has_begun = true;
	ret = ky_convert_page(&cpu->convert, &page, err);
	return ret < 0 ? ret : 1;
}

static int drain_cpu(struct ky_session_cpu *cpu, bool final, struct kymo_error *err)
{
	int ret;

	for (int n = 0; final || n < ROUND_PAGES; n++) {
		ret = next_page(cpu, final, err);
		if (ret <= 0)
			return ret;
		ret = ky_convert_run(&cpu->convert, UINT64_MAX, err);
		if (ret < 0)
			return ret;
		/* Whoever runs after events as they come never gets to sleep. */
		if (cpu->ring.is_partial && !final)
			break;
	}
	return KYMO_OK;
}

/*
 * The next page of @cpu; a page that is being written is fetched once in a round, since the kernel
 * copies that one event by event, and at the end.
 */
static int refill(struct ky_session_cpu *cpu, bool final, struct kymo_error *err)
{
	const struct ky_os_clock *clock = &cpu->session->clock;
	uint64_t slack = clock->frequency_hz / (1000000000 / UNFINISHED_NS);
	uint64_t now = ky_os_clock_now(clock);
	int ret;

	cpu->has_page = false;
	if (cpu->is_drained)
		return 0;
	ret = next_page(cpu, true, err);
	cpu->has_page = ret > 0;
	if (ret <= 0 || (cpu->ring.is_partial && !final)) {
		cpu->is_drained = true;
		cpu->known_until = final ? UINT64_MAX : now - slack;
	}
	return ret;
}

/* Up to when nothing more will come of @cpu, but what is in hand; *has: that there is some at that time. */
static uint64_t next_time(const struct ky_session_cpu *cpu, bool *has)
{
	uint64_t time = cpu->has_page ? cpu->convert.next_cycles : cpu->known_until;
	uint64_t call = ky_convert_next_call(&cpu->convert);

	*has = cpu->has_page || (call <= time && call < UINT64_MAX);
	return call < time ? call : time;
}

/*
 * The CPU whose next event is the oldest. *until: how far it may be converted: up to the next CPU's
 * oldest event, and not beyond what is known of CPUs without any.
 */
static struct ky_session_cpu *oldest(struct ky_session *session, uint64_t *until)
{
	struct ky_session_cpu *first = NULL;
	uint64_t first_time = UINT64_MAX;

	*until = UINT64_MAX;
	ky_vec_foreach(&session->cpus, it) {
		bool has;
		uint64_t time = next_time(*it, &has);

		if (!has || (first && time >= first_time)) {
			*until = time < *until ? time : *until;
			continue;
		}
		if (first && first_time < *until)
			*until = first_time;
		first = *it;
		first_time = time;
	}
	if (first && !first->has_page && first->known_until < *until)
		*until = first->known_until;
	return first && first_time <= *until ? first : NULL;
}

static int merge_round(struct ky_session *session, bool final, struct kymo_error *err)
{
	size_t n = 0, limit = ROUND_PAGES * session->cpus.len;
	struct ky_session_cpu *cpu = NULL;
	uint64_t until = 0;
	bool has;
	int ret;

	ky_vec_foreach(&session->cpus, it) {
		(*it)->is_drained = false;
		if ((*it)->has_page)
			continue;
		ret = refill(*it, final, err);
		if (ret < 0)
			return ret;
	}
	while ((final || n < limit) && (cpu = oldest(session, &until))) {
		ret = cpu->has_page ? ky_convert_run(&cpu->convert, until, err)
				    : ky_convert_calls(&cpu->convert, until, err);
		if (ret == 0 && cpu->has_page) {
			ret = refill(cpu, final, err);
			n++;
		}
		if (ret < 0)
			return ret;
	}
	/* Others wait for more than one round holds: what is older than the oldest of that is done with. */
	if (cpu && (cpu = oldest(session, &until)))
		until = next_time(cpu, &has);
	if (session->content)
		ky_content_expire(session->content, until);
	if (session->counters)
		ky_counters_expire(session->counters, until);
	return KYMO_OK;
}

uint64_t ky_session_merged_until(const struct ky_session *session, uint64_t until_cycles)
{
	bool has;

	ky_vec_foreach(&session->cpus, cpu) {
		uint64_t time = next_time(*cpu, &has);

		until_cycles = time < until_cycles ? time : until_cycles;
	}
	return until_cycles;
}

/* Up to the page that is being written, which is read as far as it goes. */
static int catch_up(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	uint64_t pages = cpu->session->options.buffer_bytes / cpu->session->page_bytes + 2;
	int ret = 1;

	for (uint64_t n = 0; n < pages && ret > 0 && !(n && cpu->ring.is_partial); n++) {
		ret = next_page(cpu, true, err);
		if (ret > 0 && ky_convert_run(&cpu->convert, UINT64_MAX, err) < 0)
			return err ? err->code : KYMO_E_IO;
	}
	return ret < 0 ? ret : KYMO_OK;
}

int ky_session_read_now(struct ky_session *session, struct kymo_error *err)
{
	if (session->merge)
		return merge_round(session, false, err);
	ky_vec_foreach(&session->cpus, cpu) {
		int ret = catch_up(*cpu, err);

		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

int ky_session_read_round(struct ky_session *session, bool final, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (session->options.raw)
		return ky_raw_round(session, final, err);
	if (session->content)
		ky_content_drain(session->content);
	if (session->counters)
		ky_counters_drain(session->counters);
	if (session->merge)
		return merge_round(session, final, err);
	ky_vec_foreach(&session->cpus, cpu) {
		ret = drain_cpu(*cpu, final, err);
		if (ret < 0)
			break;
	}
	return ret;
}

/* What the kernel lost but told with no page: at the very end, or to nested writers. */
static int count_silent_losses(struct ky_session_cpu *cpu, struct kymo_error *err)
{
	uint64_t lost = lost_until_now(&cpu->convert);
	int ret;

	if (lost <= cpu->convert.lost)
		return KYMO_OK;
	ret = ky_convert_flush(&cpu->convert, cpu->convert.writer.last_cycles, err);
	cpu->convert.lost = lost;
	return ret;
}

int ky_session_end_streams(struct ky_session *session, uint64_t end_cycles, struct kymo_error *err)
{
	ky_vec_foreach(&session->cpus, it) {
		struct ky_session_cpu *cpu = *it;
		int ret;

		if (!cpu->online && cpu->stream < 0 && !cpu->convert.writer.events)
			continue;
		ret = count_silent_losses(cpu, err);
		if (!ret)
			ret = send_packet(&cpu->convert, end_cycles, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}
