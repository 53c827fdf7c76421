/* SPDX-License-Identifier: MIT */
/*
 * The state history: rows of counters. A level (a frequency, the size of a process) holds from one event to the next. A rate
 * (bytes of a disk, of a network interface) has what each millisecond brought.
 */
#include "analysis/history/history-build.h"

#include <stdio.h>

#define RATE_NS	     INT64_C(1000000)
#define MEMORY_SHIFT 16 /* 64 KiB */

static bool is_rate(enum ky_counter what)
{
	return what >= KY_COUNTER_READ && what <= KY_COUNTER_SENT;
}

/* ---- levels and rates ------------------------------------------------------------------------ */

static int history_counters_begin(struct ky_history_builder *builder,
				  struct ky_counter_row *counter, enum ky_counter what,
				  uint32_t parent, const char *name)
{
	*counter = (struct ky_counter_row){.what = what, .since_ns = INT64_MIN};
	counter->row = ky_history_writer_row(&builder->writer, KY_ROW_COUNTER, parent, what, name);
	return counter->row && ky_vec_push(&builder->counters, counter) == 0 ? 0 : KYMO_E_MEMORY;
}

static int history_counters_add(struct ky_history_builder *builder,
				const struct ky_counter_row *counter, int64_t begin_ns,
				int64_t end_ns, uint64_t value)
{
	return ky_open_row_add(&builder->writer, counter->row, begin_ns, end_ns,
			       ky_state(KY_STATE_VALUE, value));
}

/* The begin of the millisecond of @ns; the first one begins with the trace. */
static int64_t history_counters_slot_of(const struct ky_history_builder *builder, int64_t ns)
{
	int64_t rest = ns % RATE_NS, slot;

	rest += rest < 0 ? RATE_NS : 0;
	if (__builtin_sub_overflow(ns, rest, &slot) || slot < builder->begin_ns)
		return builder->begin_ns < ns ? builder->begin_ns : ns;
	return slot;
}

/* The rate is known up to the millisecond that begins at @slot_ns. */
static int pass_to(struct ky_history_builder *builder, struct ky_counter_row *counter,
		   int64_t slot_ns)
{
	int64_t end_ns, rest = counter->since_ns % RATE_NS;
	int status;

	rest += rest < 0 ? RATE_NS : 0;
	if (slot_ns <= counter->since_ns)
		return 0;
	if (__builtin_add_overflow(counter->since_ns, RATE_NS - rest, &end_ns) || end_ns > slot_ns)
		end_ns = slot_ns;
	status = history_counters_add(builder, counter, counter->since_ns, end_ns, counter->value);
	if (status >= 0)
		status = history_counters_add(builder, counter, end_ns, slot_ns, 0);
	counter->since_ns = slot_ns;
	counter->value = 0;
	return status;
}

static int bring(struct ky_history_builder *builder, struct ky_counter_row *counter, int64_t ns,
		 uint64_t amount)
{
	int64_t slot_ns = history_counters_slot_of(builder, ns);
	int status = 0;

	if (counter->since_ns == INT64_MIN)
		counter->since_ns = builder->begin_ns < slot_ns ? builder->begin_ns : slot_ns;
	status = pass_to(builder, counter, slot_ns);
	counter->value += amount;
	return status;
}

static int become(struct ky_history_builder *builder, struct ky_counter_row *counter, int64_t ns,
		  uint64_t value)
{
	int status = 0;

	if (counter->since_ns != INT64_MIN && counter->since_ns < ns)
		status = history_counters_add(builder, counter, counter->since_ns, ns,
					      counter->value);
	if (counter->since_ns < ns)
		counter->since_ns = ns;
	counter->value = value;
	return status;
}

int ky_history_counters_up(struct ky_history_builder *builder, bool over)
{
	int64_t ns = builder->end_ns;
	int status = 0;

	ky_vec_foreach(&builder->counters, it) {
		struct ky_counter_row *counter = *it;

		if (counter->since_ns == INT64_MIN || status < 0)
			continue;
		if (!is_rate(counter->what))
			status = become(builder, counter, ns, counter->value);
		else
			status = pass_to(builder, counter,
					 over ? ns : history_counters_slot_of(builder, ns));
	}
	return status;
}

void ky_history_counters_fini(struct ky_history_builder *builder)
{
	ky_vec_fini(&builder->counters);
	ky_vec_fini(&builder->received);
	ky_vec_fini(&builder->sent);
	ky_map_fini(&builder->frequencies);
	ky_map_fini(&builder->memories);
}

/* The counter of @key in @map; made when it is new. NULL: out of memory. */
static struct ky_counter_row *in_map(struct ky_history_builder *builder, struct ky_map *map,
				     uint32_t parent, enum ky_counter what, const char *name)
{
	struct ky_counter_row *counter = ky_map_get(map, parent);

	if (counter)
		return counter;
	counter = ky_arena_new(&builder->writer.arena, struct ky_counter_row);
	if (!counter || history_counters_begin(builder, counter, what, parent, name) < 0)
		return NULL;
	return ky_map_set(map, parent, counter) == 0 ? counter : NULL;
}

/* ---- what is counted ------------------------------------------------------------------------- */

int ky_history_transfer(struct ky_history_builder *builder, struct ky_disk_row *disk,
			const struct ky_request *request)
{
	bool writes = request->rwbs & KY_RWBS_WRITE;
	struct ky_counter_row *counter = writes ? &disk->written : &disk->read;
	int status = 0;

	if (!(request->rwbs & (KY_RWBS_WRITE | KY_RWBS_READ)))
		return 0;
	if (!counter->row)
		status = history_counters_begin(builder, counter,
						writes ? KY_COUNTER_WRITTEN : KY_COUNTER_READ,
						disk->row->id, writes ? "written" : "read");
	/* More sectors than fit come only from damaged events. */
	if (status < 0 || request->n_sectors > UINT32_MAX)
		return status;
	return bring(builder, counter, request->end_ns, request->n_sectors * 512);
}

static struct ky_counter_row *netif_row(struct ky_history_builder *builder,
					const struct ky_packet_seen *packet)
{
	struct ky_counter_row **place, *counter;
	size_t index = packet->netif->index;
	char name[64];

	while (builder->sent.len <= index) {
		if (ky_vec_push(&builder->received, NULL) < 0 ||
		    ky_vec_push(&builder->sent, NULL) < 0)
			return NULL;
	}
	place = packet->received ? &builder->received.data[index] : &builder->sent.data[index];
	if (*place)
		return *place;
	counter = ky_arena_new(&builder->writer.arena, struct ky_counter_row);
	snprintf(name, sizeof(name), "%.40s %s", packet->netif->name,
		 packet->received ? "received" : "sent");
	if (!counter ||
	    history_counters_begin(
		    builder, counter, packet->received ? KY_COUNTER_RECEIVED : KY_COUNTER_SENT,
		    builder->machine_of[packet->netif->host->index]->row->id, name) < 0)
		return NULL;
	*place = counter;
	return counter;
}

int ky_history_packet(void *data, const struct ky_packet_seen *packet)
{
	struct ky_history_builder *builder = data;
	struct ky_counter_row *counter;

	if (packet->failed || packet->bytes > UINT32_MAX)
		return 0;
	counter = netif_row(builder, packet);
	return counter ? bring(builder, counter, packet->ns, packet->bytes) : KYMO_E_MEMORY;
}

int ky_history_memory(void *data, const struct ky_memory *memory)
{
	struct ky_history_builder *builder = data;
	const struct ky_space *space = memory->space;
	struct ky_counter_row *counter;
	struct ky_open_row *process;
	uint64_t bytes = 0;

	if (memory->kind != KY_MEMORY_RSS || !space->thread || space->thread->pid == KY_UNKNOWN)
		return 0;
	process = ky_history_process_row(builder, builder->machine_of[memory->host->index],
					 space->thread->pid);
	counter = process ? in_map(builder, &builder->memories, process->id, KY_COUNTER_MEMORY,
				   "memory")
			  : NULL;
	if (!counter)
		return KYMO_E_MEMORY;
	for (int i = 0; i < KY_RSS_MEMBERS; i++)
		bytes += i == KY_RSS_SWAP ? 0 : space->bytes[i];
	return become(builder, counter, memory->ns,
		      (bytes + (UINT64_C(1) << (MEMORY_SHIFT - 1))) >> MEMORY_SHIFT);
}

int ky_history_frequency(struct ky_history_builder *builder, const struct ky_stream_row *stream,
			 const struct ky_event *event, const struct ky_span_class *cls)
{
	uint64_t id = ky_get_u64(event, &cls->cpu, UINT64_MAX);
	uint64_t khz = ky_get_u64(event, &cls->khz, 0);
	const struct ky_cpu *cpu = id < UINT32_MAX ? ky_map_get(&stream->host->cpus, id) : NULL;
	struct ky_counter_row *counter;
	struct ky_cpu_row *on;

	/* A CPU of which nothing else is known has no row; so many GHz, no CPU. */
	if (!cpu || khz > UINT32_MAX)
		return 0;
	on = ky_history_cpu(builder, cpu);
	counter = on ? in_map(builder, &builder->frequencies, on->row->id, KY_COUNTER_FREQUENCY,
			      "frequency")
		     : NULL;
	return counter ? become(builder, counter, event->ns, (khz + 500) / 1000) : KYMO_E_MEMORY;
}
