/* SPDX-License-Identifier: MIT */
/*
 * From the rings to packets.
 *
 * Without context fields, the pages of each CPU are converted as they come. With context fields, an
 * event of another CPU may have a thread's name or process. So the pages of all CPUs are converted in
 * the order of time, up to the time until which the events of every CPU are known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "record/trace/kernel-trace-internal.h"
#include "store/live/live-file.h"

/* An event may be stamped before the ring was found empty and yet be finished after that. */
#define UNFINISHED_NS 2000000

/*
 * Pages of a CPU that are read before anything else gets its turn: the other CPUs, and the
 * order to stop, when events come in as fast as they are read.
 */
#define ROUND_PAGES 64

/* Rounds that bring nothing, before the reader gives up. */
#define STUCK_ROUNDS 100

static int send_to(struct ky_kernel_trace *kernel, struct ky_store_trace *packets,
		   struct ky_packet_writer *writer, int stream, struct ky_block *block,
		   uint64_t end_cycles, uint64_t discarded, struct kymo_error *err)
{
	uint64_t content_bits = (uint64_t)writer->used_bytes * 8;
	/* The next block is to begin where a disk can go on; behind the last none exists. */
	uint32_t align_bytes = block && !kernel->is_ending ? KY_BLOCK_ALIGN : 8;
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

	pthread_mutex_lock(&kernel->sink_lock);
	ret = ky_store_packet(packets, stream, &out, err);
	pthread_mutex_unlock(&kernel->sink_lock);
	return ret;
}

int ky_kernel_trace_send(struct ky_kernel_trace *kernel, struct ky_packet_writer *writer,
			 int stream, struct ky_block *block, uint64_t end_cycles,
			 uint64_t discarded, struct kymo_error *err)
{
	return send_to(kernel, kernel->packets, writer, stream, block, end_cycles, discarded, err);
}

static struct ky_store_trace *packets_of(const struct ky_kernel_cpu *cpu)
{
	return cpu->packets ? cpu->packets : cpu->kernel->packets;
}

/* The next packet is built in a block of its own. */
static int lend_block(struct ky_kernel_cpu *cpu, struct kymo_error *err)
{
	struct ky_kernel_trace *kernel = cpu->kernel;

	if (!kernel->blocks || cpu->packets)
		return KYMO_OK;
	cpu->block = ky_block_take(kernel->blocks);
	if (!cpu->block)
		return ky_error_nomem(err);
	ky_packet_writer_lend(&cpu->convert.writer, cpu->block->data);
	return KYMO_OK;
}

/* Packets of a CPU; its stream is announced with the first one. */
static int kernel_trace_read_send_packet(struct ky_convert_cpu *convert, uint64_t end_cycles,
					 struct kymo_error *err)
{
	struct ky_kernel_cpu *cpu = convert->data;
	struct ky_kernel_trace *kernel = cpu->kernel;
	char name[80];
	int ret, lent;

	if (cpu->stream < 0) {
		snprintf(name, sizeof(name), "%s%s_%u", cpu->channel ? cpu->channel : "channel0",
			 cpu->is_late ? KY_LIVE_LATE_MARK : "", convert->cpu);
		pthread_mutex_lock(&kernel->sink_lock);
		cpu->stream = ky_store_stream(packets_of(cpu), name, err);
		pthread_mutex_unlock(&kernel->sink_lock);
		if (cpu->stream < 0)
			return cpu->stream;
	}
	ret = send_to(kernel, packets_of(cpu), &convert->writer, cpu->stream, cpu->block,
		      end_cycles, convert->lost, err);
	lent = lend_block(cpu, ret < 0 ? NULL : err);
	return ret < 0 ? ret : lent;
}

static uint64_t lost_until_now(struct ky_convert_cpu *convert)
{
	struct ky_kernel_cpu *cpu = convert->data;
	const struct ky_content *content = cpu->kernel->content;
	const struct ky_switches *switches = convert->convert->switches;
	const struct ky_instance *instance = cpu->instance ? cpu->instance : cpu->kernel->instance;
	uint64_t calls = 0;
	struct ky_cpu_ring_stats stats;

	if (!instance)
		return cpu->raw_lost;
	if (content && !convert->of_group)
		calls += ky_content_lost_calls(content, convert->cpu);
	if (switches && !convert->of_group)
		calls += ky_switches_lost(switches, convert->cpu);
	if (ky_cpu_ring_stats(instance, convert->cpu, &stats, NULL) < 0)
		return calls;
	return stats.overrun + stats.commit_overrun + stats.dropped + calls;
}

/* ---- the CPUs ------------------------------------------------------------------------- */

void ky_kernel_cpu_init(struct ky_kernel_cpu *cpu, struct ky_kernel_trace *kernel, uint32_t number)
{
	memset(cpu, 0, sizeof(*cpu));
	cpu->kernel = kernel;
	cpu->stream = cpu->ring.fd = -1;
	cpu->ring.pipe[0] = cpu->ring.pipe[1] = -1;
	cpu->convert.convert = &kernel->convert;
	cpu->convert.cpu = number;
	cpu->stream_id = number;
	cpu->convert.data = cpu;
}

void ky_kernel_cpu_fini(struct ky_kernel_cpu *cpu)
{
	ky_cpu_ring_close(&cpu->ring);
	ky_packet_writer_fini(&cpu->convert.writer);
}

void ky_kernel_trace_use_convert(struct ky_kernel_trace *kernel)
{
	kernel->convert.packet = kernel_trace_read_send_packet;
	/* Without a kernel that counts, only the end's count is known. */
	kernel->convert.lost_until_now = kernel->instance ? lost_until_now : NULL;
}

int ky_kernel_cpu_begin(struct ky_kernel_cpu *cpu, struct kymo_error *err)
{
	const struct ky_kernel_trace *kernel = cpu->kernel;
	uint32_t number = cpu->convert.cpu;
	int ret;

	if (ky_packet_writer_init(&cpu->convert.writer, KY_KERNEL_TRACE_PACKET_BYTES, kernel->uuid,
				  0, cpu->stream_id, number, kernel->compact_header) < 0)
		return ky_error_nomem(err);
	ret = lend_block(cpu, err);
	ky_packet_writer_begin(&cpu->convert.writer, kernel->start_cycles);
	return ret;
}

/* ---- reading -------------------------------------------------------------------------- */

/* 1: a page is in hand; 0: none exists. */
static int kernel_trace_read_next_page(struct ky_kernel_cpu *cpu, bool partial,
				       struct kymo_error *err)
{
	struct ky_page page;
	int ret = ky_cpu_ring_next(&cpu->ring, partial, &page, err);

	if (cpu->kernel->convert.switches)
		ky_switches_drain(cpu->kernel->convert.switches);
	if (ret <= 0)
		return ret;
	if (cpu->kernel->content)
		ky_content_drain(cpu->kernel->content);
	if (cpu->kernel->counters)
		ky_counters_drain(cpu->kernel->counters);
	if (cpu->kernel->is_flight && !cpu->has_begun) {
		/* Events that were overwritten before it do not count as lost. */
		page.missed = false;
		ky_packet_writer_begin(&cpu->convert.writer, page.cycles);
	}
	cpu->has_begun = true;
	ret = ky_convert_page(&cpu->convert, &page, err);
	return ret < 0 ? ret : 1;
}

/* All events up to then are finished, and can be read. */
static uint64_t settled_until(const struct ky_kernel_trace *kernel)
{
	const struct ky_os_clock *clock = &kernel->clock;

	return ky_os_clock_now(clock) - clock->frequency_hz / (1000000000 / UNFINISHED_NS);
}

static int kernel_trace_read_drain_cpu(struct ky_kernel_cpu *cpu, bool final,
				       struct kymo_error *err)
{
	int ret;

	for (int n = 0; final || n < ROUND_PAGES; n++) {
		ret = kernel_trace_read_next_page(cpu, final, err);
		/* What no page has waits for a page behind it; now none exists. */
		if (ret == 0 && final)
			ret = ky_convert_calls(&cpu->convert, UINT64_MAX, err);
		if (ret <= 0)
			return ret;
		ret = ky_convert_run(&cpu->convert, UINT64_MAX, err);
		if (ret < 0)
			return ret;
		/* A reader that follows each new event would never sleep. */
		if (cpu->ring.is_partial && !final)
			break;
	}
	return KYMO_OK;
}

/*
 * The next page of @cpu; a page that is being written is fetched once in a round, since the kernel
 * copies that one event by event, and at the end.
 */
static int refill(struct ky_kernel_cpu *cpu, bool final, struct kymo_error *err)
{
	uint64_t until = settled_until(cpu->kernel);
	int ret;

	cpu->has_page = false;
	if (cpu->is_drained)
		return 0;
	ret = kernel_trace_read_next_page(cpu, true, err);
	cpu->has_page = ret > 0;
	if (ret <= 0 || (cpu->ring.is_partial && !final)) {
		cpu->is_drained = true;
		cpu->known_until = final ? UINT64_MAX : until;
	}
	return ret;
}

/* Up to when nothing more will come of @cpu, but what is in hand; *has: that there is some at that time. */
static uint64_t kernel_trace_read_next_time(const struct ky_kernel_cpu *cpu, bool *has)
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
static struct ky_kernel_cpu *oldest(struct ky_kernel_trace *kernel, uint64_t *until)
{
	struct ky_kernel_cpu *first = NULL;
	uint64_t first_time = UINT64_MAX;

	*until = UINT64_MAX;
	ky_vec_foreach(&kernel->cpus, it) {
		bool has;
		uint64_t time = kernel_trace_read_next_time(*it, &has);

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

static int merge_round(struct ky_kernel_trace *kernel, bool final, struct kymo_error *err)
{
	size_t n = 0, limit = ROUND_PAGES * kernel->cpus.len;
	struct ky_kernel_cpu *cpu = NULL;
	uint64_t until = 0;
	bool has;
	int ret;

	ky_vec_foreach(&kernel->cpus, it) {
		(*it)->is_drained = false;
		if ((*it)->has_page)
			continue;
		ret = refill(*it, final, err);
		if (ret < 0)
			return ret;
	}
	while ((final || n < limit) && (cpu = oldest(kernel, &until))) {
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
	if (cpu && (cpu = oldest(kernel, &until)))
		until = kernel_trace_read_next_time(cpu, &has);
	if (kernel->content)
		ky_content_expire(kernel->content, until);
	if (kernel->counters)
		ky_counters_expire(kernel->counters, until);
	return KYMO_OK;
}

uint64_t ky_kernel_trace_merged_until(const struct ky_kernel_trace *kernel, uint64_t until_cycles)
{
	bool has;

	ky_vec_foreach(&kernel->cpus, cpu) {
		uint64_t time = kernel_trace_read_next_time(*cpu, &has);

		until_cycles = time < until_cycles ? time : until_cycles;
	}
	return until_cycles;
}

/* Up to the page that is being written, which is read as far as it goes. */
static int kernel_trace_read_catch_up(struct ky_kernel_cpu *cpu, struct kymo_error *err)
{
	uint64_t bytes = cpu->buffer_bytes ? cpu->buffer_bytes : cpu->kernel->buffer_bytes;
	uint32_t page_bytes = cpu->page_bytes ? cpu->page_bytes : cpu->kernel->page_bytes;
	uint64_t pages = bytes / page_bytes + 2;
	uint64_t until = settled_until(cpu->kernel);
	int ret = 1;

	for (uint64_t n = 0; n < pages && ret > 0 && !(n && cpu->ring.is_partial); n++) {
		ret = kernel_trace_read_next_page(cpu, true, err);
		if (ret > 0 && ky_convert_run(&cpu->convert, UINT64_MAX, err) < 0)
			return err ? err->code : KYMO_E_IO;
	}
	return ret < 0 ? ret : ky_convert_calls(&cpu->convert, until, err);
}

int ky_kernel_trace_read_now(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	if (kernel->merge)
		return merge_round(kernel, false, err);
	ky_vec_foreach(&kernel->cpus, cpu) {
		int ret = kernel_trace_read_catch_up(*cpu, err);

		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static void kernel_trace_read_sleep(int64_t ns)
{
	const struct timespec time = {0, (long)ns};

	(void)nanosleep(&time, NULL);
}

/*
 * In the order of time, a round stops where events of a CPU are not known yet, and after some pages. Each round goes on
 * from there, since what is in the rings is finite.
 */
int ky_kernel_trace_read_past(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	uint64_t at = ky_os_clock_now(&kernel->clock), until = 0, before;
	int ret;

	kernel_trace_read_sleep(UNFINISHED_NS);
	ret = ky_kernel_trace_read_now(kernel, err);
	for (int n_stuck = 0; !ret && kernel->merge && n_stuck < STUCK_ROUNDS;) {
		before = until;
		until = ky_kernel_trace_merged_until(kernel, UINT64_MAX);
		if (until >= at)
			break;
		if (until <= before) {
			n_stuck++;
			kernel_trace_read_sleep(UNFINISHED_NS / 2);
		}
		ret = ky_kernel_trace_read_now(kernel, err);
	}
	return ret;
}

int ky_kernel_trace_read_round(struct ky_kernel_trace *kernel, bool final, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (kernel->content)
		ky_content_drain(kernel->content);
	if (kernel->counters)
		ky_counters_drain(kernel->counters);
	if (kernel->merge)
		return merge_round(kernel, final, err);
	ky_vec_foreach(&kernel->cpus, cpu) {
		ret = kernel_trace_read_drain_cpu(*cpu, final, err);
		if (ret < 0)
			break;
	}
	return ret;
}

/* Losses that no page has: those at the end, or of nested writers. */
static int count_silent_losses(struct ky_kernel_cpu *cpu, struct kymo_error *err)
{
	uint64_t lost = lost_until_now(&cpu->convert);
	int ret;

	if (lost <= cpu->convert.lost)
		return KYMO_OK;
	ret = ky_convert_flush(&cpu->convert, cpu->convert.writer.last_cycles, err);
	cpu->convert.lost = lost;
	return ret;
}

int ky_kernel_trace_end_streams(struct ky_kernel_trace *kernel, uint64_t end_cycles,
				struct kymo_error *err)
{
	ky_vec_foreach(&kernel->cpus, it) {
		struct ky_kernel_cpu *cpu = *it;
		int ret;

		if (!cpu->online && cpu->stream < 0 && !cpu->convert.writer.events)
			continue;
		ret = count_silent_losses(cpu, err);
		if (!ret)
			ret = kernel_trace_read_send_packet(&cpu->convert, end_cycles, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

/* ---- rotation ------------------------------------------------------------------------- */

uint64_t ky_kernel_trace_step(const struct ky_kernel_trace *kernel)
{
	return ky_os_clock_cycles(&kernel->clock, 2);
}

/* The packet in the making ends its stream in this trace. */
static int split_stream(struct ky_kernel_cpu *cpu, uint64_t end_cycles, struct kymo_error *err)
{
	struct ky_packet_writer *writer = &cpu->convert.writer;
	int ret = count_silent_losses(cpu, err);

	if (end_cycles < writer->last_cycles + ky_kernel_trace_step(cpu->kernel))
		end_cycles = writer->last_cycles + ky_kernel_trace_step(cpu->kernel);
	return ret < 0 ? ret : ky_convert_flush(&cpu->convert, end_cycles, err);
}

int ky_kernel_trace_split_streams(struct ky_kernel_trace *kernel, uint64_t end_cycles,
				  struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&kernel->cpus, it) {
		struct ky_kernel_cpu *cpu = *it;

		if (cpu->packets)
			continue;
		if (cpu->online || cpu->stream >= 0 || cpu->convert.writer.events) {
			ret = split_stream(cpu, end_cycles, err);
			if (ret < 0)
				return ret;
		} else {
			/* A CPU that comes later begins with the next trace. */
			cpu->convert.writer.begin_cycles = end_cycles;
			cpu->convert.writer.last_cycles = end_cycles;
		}
	}
	return KYMO_OK;
}

int ky_kernel_trace_begin_streams(struct ky_kernel_trace *kernel, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&kernel->cpus, it) {
		struct ky_packet_writer *writer = &(*it)->convert.writer;

		if (ret < 0 || (*it)->stream < 0 || (*it)->packets)
			continue;
		ret = ky_convert_flush(&(*it)->convert, writer->last_cycles, err);
		writer->begin_cycles += ky_kernel_trace_step(kernel);
		writer->last_cycles = writer->begin_cycles;
	}
	return ret;
}
