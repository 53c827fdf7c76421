/* SPDX-License-Identifier: MIT */
#include "kernel/convert/convert.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/resolve/lttng-layout.h"
#include "kernel/convert/convert-record.h"
#include "query/filter.h"

int ky_convert_init(struct ky_convert *convert, unsigned int context, struct kymo_error *err)
{
	memset(convert, 0, sizeof(*convert));
	ky_arena_init(&convert->arena);
	convert->context = context;
	ky_convert_context_sizes(convert);
	if (convert->context_bytes > KY_CONTEXT_MAX_BYTES)
		return ky_error_set(err, KYMO_E_INVALID, "too many context fields");
	return KYMO_OK;
}

void ky_convert_set_counters(struct ky_convert *convert, struct ky_counters *counters)
{
	convert->counters = counters;
	ky_convert_context_sizes(convert);
}

void ky_convert_fini(struct ky_convert *convert)
{
	free(convert->plans);
	ky_arena_fini(&convert->arena);
	memset(convert, 0, sizeof(*convert));
}

/* ---- the event context ---------------------------------------------------------------- */

static inline uint8_t *put_context(struct ky_convert_cpu *cpu, uint8_t *out,
				   const struct ky_convert_record *record)
{
	const struct ky_convert *convert = cpu->convert;
	uint32_t tid = record->tid;

	if (convert->context_bytes == 4)
		return ky_put_bytes(out, &tid, 4);
	if (!cpu->has_context || cpu->context_tid != tid ||
	    (convert->threads && cpu->context_generation != convert->threads->generation))
		ky_convert_refresh_context(cpu, tid);
	out = ky_copy_bytes(out, cpu->context, convert->thread_bytes);
	if (convert->context_bytes == convert->thread_bytes)
		return out;
	return ky_convert_put_record_context(convert, record->data[2], record->data[3],
					     record->counters, out);
}

/* ---- one record ----------------------------------------------------------------------- */

/* What an event takes in the packet. */
struct room {
	uint32_t lens[KY_PLAN_MAX_DYNAMIC];
	uint32_t bytes, later; /* now; and what it may grow by, when its call stacks come */
};

static inline void measure_event(const struct ky_convert_cpu *cpu,
				 const struct ky_convert_plan *plan,
				 const struct ky_convert_record *record, struct room *room)
{
	room->bytes = cpu->convert->context_bytes + plan->out_bytes;
	if (plan->n_dynamic)
		room->bytes += ky_convert_measure(plan, record, room->lens);
	room->later = __builtin_expect(plan->stacks != 0, 0) ? ky_stacks_most(plan->stacks) : 0;
}

/* The body of the event whose header was written. */
static inline void convert_put_event(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
				     const struct ky_convert_record *record,
				     const struct room *room, uint8_t *out)
{
	cpu->writer.used_bytes -= room->later;
	ky_convert_put_fields(cpu, plan, record, room->lens, put_context(cpu, out, record));
}

/* Now or soon: the event whose body is at @body, NULL when it is not in the packet, may get its stacks. */
static void expect_stacks(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
			  const struct ky_convert_record *record, const uint8_t *body)
{
	uint32_t at = body ? (uint32_t)(body - cpu->writer.data) + cpu->convert->stacks_at : 0;
	bool has_kernel = cpu->convert->context & KY_CONTEXT_CALLSTACK_KERNEL;

	ky_stacks_event(cpu->stacks, record->data, body ? plan->stacks : 0, at,
			at + (has_kernel ? 4 : 0));
}

static int convert_write_event(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
			       const struct ky_convert_record *record, struct kymo_error *err)
{
	struct room room;
	uint8_t *out;
	int ret;

	measure_event(cpu, plan, record, &room);
	out = ky_packet_writer_event(&cpu->writer, plan->event_id, cpu->cycles,
				     room.bytes + room.later);
	if (__builtin_expect(!out, 0)) {
		ret = ky_convert_flush(cpu, cpu->writer.last_cycles, err);
		if (ret < 0)
			return ret;
		out = ky_packet_writer_event(&cpu->writer, plan->event_id, cpu->cycles,
					     room.bytes + room.later);
		if (!out) {
			cpu->bad++;
			return KYMO_OK;
		}
	}
	convert_put_event(cpu, plan, record, &room, out);
	cpu->events++;
	if (__builtin_expect(cpu->stacks != NULL, 0) && !record->is_foreign)
		expect_stacks(cpu, plan, record, out);
	return KYMO_OK;
}

/* Is the event wanted that was written last, from byte @begin of the packet on? */
static bool convert_is_wanted(const struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
			      uint32_t begin, const uint8_t *body)
{
	const struct ky_packet_writer *writer = &cpu->writer;
	uint32_t header_bits = ((uint32_t)(body - writer->data) - begin) * 8;
	uint32_t payload_bits = header_bits + cpu->convert->context_bytes * 8;
	const struct ky_packet packet = {.data = writer->data};
	struct ky_event event = {
		.cls = plan->event,
		.ns = INT64_MIN,
		.cycles = cpu->cycles,
		.cpu_id = cpu->cpu,
		.stream_context_bits = header_bits,
		.event_context_bits = payload_bits,
		.payload_bits = payload_bits,
		.packet = &packet,
		.begin_bits = (uint64_t)begin * 8,
		.end_bits = (uint64_t)writer->used_bytes * 8,
	};

	return ky_filter_match(plan->filter, 0, &event);
}

/* What the kernel could not decide: it is written, looked at, and taken back when not wanted. */
static int write_filtered(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
			  const struct ky_convert_record *record, struct kymo_error *err)
{
	struct ky_packet_writer *writer = &cpu->writer;
	uint32_t used_bytes;
	uint64_t last_cycles;
	struct room room;
	uint8_t *body;
	bool wanted;
	int ret;

	measure_event(cpu, plan, record, &room);
	if (writer->size_bytes - writer->used_bytes <
	    KY_EVENT_HEADER_MAX_BYTES + room.bytes + room.later) {
		ret = ky_convert_flush(cpu, writer->last_cycles, err);
		if (ret < 0)
			return ret;
	}
	used_bytes = writer->used_bytes;
	last_cycles = writer->last_cycles;
	body = ky_packet_writer_event(writer, plan->event_id, cpu->cycles, room.bytes + room.later);
	if (!body) {
		cpu->bad++;
		return KYMO_OK;
	}
	convert_put_event(cpu, plan, record, &room, body);
	wanted = convert_is_wanted(cpu, plan, used_bytes, body);
	if (__builtin_expect(cpu->stacks != NULL, 0) && !record->is_foreign)
		expect_stacks(cpu, plan, record, wanted ? body : NULL);
	if (wanted) {
		cpu->events++;
		return KYMO_OK;
	}
	writer->used_bytes = used_bytes;
	writer->last_cycles = last_cycles;
	writer->events--;
	cpu->filtered++;
	return KYMO_OK;
}

/* A call stack; or an event that is not written, and so waits for none. */
static void take_stack(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		       const struct ky_convert_record *record)
{
	const uint8_t *data = record->data;

	if (plan->role == KY_EVENT_KERNEL_STACK)
		ky_stacks_take(cpu->stacks, &cpu->writer, data, record->len, plan->at[1],
			       ky_record_word(data + plan->at[0]), KY_STACK_KERNEL);
	else if (plan->role == KY_EVENT_USER_STACK)
		ky_stacks_take(cpu->stacks, &cpu->writer, data, record->len, plan->at[1],
			       KY_STACK_USER_FRAMES, KY_STACK_USER);
	else if (plan->hidden)
		expect_stacks(cpu, plan, record, NULL);
}

static void convert_check_own(struct ky_convert_cpu *cpu, uint32_t tid)
{
	const struct ky_convert *convert = cpu->convert;
	bool is = false;

	for (int i = 0; i < KY_CONVERT_OWN_TIDS; i++)
		is |= tid == (uint32_t)convert->own_tids[i];
	cpu->checked_tid = tid;
	cpu->checked_is_own = is;
}

/* Is the thread the recorder's? Mostly the same thread makes many calls, and the recorder has few dozens of threads. */
static inline bool convert_is_own(struct ky_convert_cpu *cpu, uint32_t tid)
{
	if (__builtin_expect(tid != cpu->checked_tid || !tid, 0))
		convert_check_own(cpu, tid);
	return cpu->checked_is_own;
}

/* Bits of common_flags. */
#define IN_INTERRUPT (0x08 | 0x10 | 0x40)

static const uint64_t *take_counters(const struct ky_convert_cpu *cpu,
				     const struct ky_convert_plan *plan,
				     const struct ky_convert_record *record)
{
	if (!plan->counters_key)
		return ky_counters_last(cpu->convert->counters, cpu->cpu);
	return ky_counters_take(cpu->convert->counters, plan->counters_key, record->tid, cpu->cpu,
				cpu->cycles, record->data[2] & IN_INTERRUPT);
}

/* A record of at least 8 bytes. As a call, it costs 2 ns of the 20 that a record takes. */
__attribute__((always_inline)) static inline int convert_record(struct ky_convert_cpu *cpu,
								uint16_t type, const uint8_t *data,
								uint32_t len,
								struct kymo_error *err)
{
	const struct ky_convert *convert = cpu->convert;
	const struct ky_convert_plan *plan;
	struct ky_convert_record record = {.data = data, .len = len};
	int ret = KYMO_OK;

	record.tid = ky_record_word(data + 4);
	plan = type < convert->n_plans ? convert->plans[type] : NULL;
	if (!plan || len < plan->src_bytes) {
		cpu->bad++;
		return KYMO_OK;
	}
	if (plan->role == KY_EVENT_SYSCALL && convert_is_own(cpu, record.tid)) {
		if (cpu->stacks)
			ky_stacks_event(cpu->stacks, data, 0, 0, 0);
		cpu->own++;
		return KYMO_OK;
	}
	if (plan->content)
		record.content = ky_content_take(convert->content, plan->content, data, record.tid,
						 cpu->cycles);
	if (__builtin_expect(convert->counters != NULL, 0) && !plan->hidden)
		record.counters = take_counters(cpu, plan, &record);
	if (__builtin_expect(plan->filter != NULL, 0))
		ret = write_filtered(cpu, plan, &record, err);
	else if (!plan->hidden)
		ret = convert_write_event(cpu, plan, &record, err);
	else
		cpu->hidden++;
	if (__builtin_expect(cpu->stacks != NULL, 0))
		take_stack(cpu, plan, &record);
	if (plan->role > KY_EVENT_SYSCALL)
		ky_convert_learn(cpu, plan, &record);
	else if (__builtin_expect(plan->learns_ids, 0))
		ky_convert_learn_ids(cpu, &record);
	return ret;
}

int ky_convert_call(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		    const uint8_t *data, uint32_t len, const struct ky_content_record *content,
		    struct kymo_error *err)
{
	struct ky_convert_record record = {.data = data,
					   .len = len,
					   .tid = content->tid,
					   .content = content,
					   .is_foreign = true};
	int ret;

	if (cpu->convert->counters)
		record.counters = ky_counters_last(cpu->convert->counters, cpu->cpu);
	ret = plan->filter ? write_filtered(cpu, plan, &record, err)
			   : convert_write_event(cpu, plan, &record, err);
	if (plan->learns_ids)
		ky_convert_learn_ids(cpu, &record);
	return ret;
}

int ky_convert_foreign(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		       const uint8_t *data, uint32_t len, struct kymo_error *err)
{
	struct ky_convert_record record = {
		.data = data, .len = len, .tid = ky_record_word(data + 4), .is_foreign = true};
	int ret = KYMO_OK;

	if (cpu->convert->counters)
		record.counters = ky_counters_last(cpu->convert->counters, cpu->cpu);
	if (plan->filter)
		ret = write_filtered(cpu, plan, &record, err);
	else if (!plan->hidden)
		ret = convert_write_event(cpu, plan, &record, err);
	else
		cpu->hidden++;
	if (plan->role > KY_EVENT_SYSCALL)
		ky_convert_learn(cpu, plan, &record);
	return ret;
}

int ky_convert_one(struct ky_convert_cpu *cpu, uint64_t cycles, uint16_t type, const uint8_t *data,
		   uint32_t len, struct kymo_error *err)
{
	cpu->cycles = cycles;
	return convert_record(cpu, type, data, len, err);
}

/* ---- pages ---------------------------------------------------------------------------- */

int ky_convert_flush(struct ky_convert_cpu *cpu, uint64_t end_cycles, struct kymo_error *err)
{
	int ret = cpu->convert->packet(cpu, end_cycles, err);

	if (ret < 0)
		return ret;
	if (cpu->stacks)
		ky_stacks_forget(cpu->stacks);
	ky_packet_writer_begin(&cpu->writer, cpu->writer.last_cycles);
	return KYMO_OK;
}

/*
 * Events were lost before this page: end the packet here, so that readers know where. Where the
 * page cannot tell how many, the kernel's count until now is taken, which may include some that
 * were lost since; later gaps then count less, never beyond what the kernel has counted.
 */
static int count_lost(struct ky_convert_cpu *cpu, uint64_t stored, struct kymo_error *err)
{
	uint64_t (*lost_until_now)(struct ky_convert_cpu *) = cpu->convert->lost_until_now;
	uint64_t until_now = lost_until_now ? lost_until_now(cpu) : 0;
	uint64_t lost = cpu->lost + stored;
	int ret = KYMO_OK;

	if (!stored)
		lost = until_now > cpu->lost ? until_now : cpu->lost + 1;
	else if (until_now && until_now >= cpu->lost && lost > until_now)
		lost = until_now;
	/* The end of the packet before tells the place, too. Trace Compass takes an empty packet that is not a stream's first for its end. */
	if (cpu->writer.events || (!cpu->events && !cpu->lost))
		ret = ky_convert_flush(cpu, cpu->writer.last_cycles, err);
	cpu->lost = lost;
	return ret;
}

int ky_convert_page(struct ky_convert_cpu *cpu, const struct ky_page *page, struct kymo_error *err)
{
	int ret = page->missed ? count_lost(cpu, page->lost, err) : KYMO_OK;

	if ((cpu->convert->context & KY_CONTEXT_OF_STACKS) && !cpu->stacks) {
		cpu->stacks = ky_arena_new(&cpu->convert->arena, struct ky_stacks);
		if (!cpu->stacks)
			return ky_error_nomem(err);
	}
	cpu->checked_tid = 0; /* threads may have come */
	cpu->records = page->records;
	cpu->at = page->at;
	cpu->end = page->end;
	cpu->cycles = cpu->next_cycles = page->cycles;
	return ret;
}

int ky_convert_run(struct ky_convert_cpu *cpu, uint64_t until_cycles, struct kymo_error *err)
{
	const uint8_t *records = cpu->records;
	uint32_t at = cpu->at, end = cpu->end;
	uint64_t cycles = cpu->cycles;
	/* Calls of 32-bit programs have their places among the records. */
	uint64_t call_cycles = ky_convert_next_call(cpu);
	enum ky_record_kind kind;
	struct ky_record record;
	uint16_t type;
	int ret = KYMO_OK;

	for (;; at = record.next) {
		kind = ky_record_parse(records, at, end, &cycles, &record);
		if (kind == KY_RECORD_TIME)
			continue;
		if (kind != KY_RECORD_EVENT)
			break;
		cycles += record.delta;
		if (__builtin_expect(call_cycles <= cycles, 0) && call_cycles <= until_cycles) {
			ky_convert_compare_switch(cpu, records + record.data, record.len);
			ret = ky_convert_calls(cpu, cycles < until_cycles ? cycles : until_cycles,
					       err);
			call_cycles = ky_convert_next_call(cpu);
			if (ret < 0)
				break;
		}
		if (cycles > until_cycles) {
			/* Time extensions were taken already: come back to this record alone. */
			cpu->at = at;
			cpu->cycles = cycles - record.delta;
			cpu->next_cycles = cycles;
			return 1;
		}
		cpu->cycles = cycles;
		if (__builtin_expect(record.len < 8, 0)) {
			cpu->bad++;
			continue;
		}
		memcpy(&type, records + record.data, sizeof(type));
		ret = convert_record(cpu, type, records + record.data, record.len, err);
		if (ret < 0)
			break;
	}
	cpu->bad += kind == KY_RECORD_BAD;
	cpu->at = cpu->end = 0;
	return ret;
}
