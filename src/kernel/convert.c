/* SPDX-License-Identifier: MIT */
#include "kernel/convert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctf/lttng-layout.h"
#include "kernel/convert-plan.h"
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

static uint8_t *put(uint8_t *out, const void *data, size_t len)
{
	memcpy(out, data, len);
	return out + len;
}

/*
 * A few dozen bytes: cheaper inline than a call of memcpy(). What is no multiple of a word ends with
 * a word that overlaps the one before.
 */
static inline uint8_t *copy_bytes(uint8_t *out, const uint8_t *from, uint32_t len)
{
	if (len >= 16) {
		for (uint32_t at = 0; at < len - 16; at += 16)
			memcpy(out + at, from + at, 16);
		memcpy(out + len - 16, from + len - 16, 16);
	} else if (len >= 8) {
		memcpy(out, from, 8);
		memcpy(out + len - 8, from + len - 8, 8);
	} else if (len >= 4) {
		memcpy(out, from, 4);
		memcpy(out + len - 4, from + len - 4, 4);
	} else {
		for (uint32_t at = 0; at < len; at++)
			out[at] = from[at];
	}
	return out + len;
}

/* Each CPU's idle thread has id 0; they differ in name only. */
static void idle_thread(const struct ky_convert_cpu *cpu, struct ky_thread *thread)
{
	const struct ky_threads *threads = cpu->convert->threads;

	memset(thread, 0, sizeof(*thread));
	if (threads)
		thread->ids = threads->kernel_ids;
	thread->prio = 20;
	snprintf(thread->comm, sizeof(thread->comm), "swapper/%u", cpu->cpu);
}

static void refresh_context(struct ky_convert_cpu *cpu, uint32_t tid)
{
	struct ky_threads *threads = cpu->convert->threads;
	struct ky_thread unknown = {.tid = (int32_t)tid, .pid = (int32_t)tid};
	struct ky_thread *thread = NULL;

	if (tid == 0)
		idle_thread(cpu, &unknown);
	else if (threads)
		thread = ky_threads_get(threads, (int32_t)tid);
	ky_convert_context(cpu->convert, thread ? thread : &unknown, cpu->context);
	cpu->context_tid = tid;
	cpu->context_generation = threads ? threads->generation : 0;
	cpu->has_context = true;
}

struct record {
	const uint8_t *data;
	uint32_t len;
	uint32_t tid;
	const struct ky_content_record *content;
	const uint64_t *counters;
	bool is_foreign; /* of no page: no call stack is its */
};

static inline uint8_t *put_context(struct ky_convert_cpu *cpu, uint8_t *out,
				   const struct record *record)
{
	const struct ky_convert *convert = cpu->convert;
	uint32_t tid = record->tid;

	if (convert->context_bytes == 4)
		return put(out, &tid, 4);
	if (!cpu->has_context || cpu->context_tid != tid ||
	    (convert->threads && cpu->context_generation != convert->threads->generation))
		refresh_context(cpu, tid);
	out = copy_bytes(out, cpu->context, convert->thread_bytes);
	if (convert->context_bytes == convert->thread_bytes)
		return out;
	return ky_convert_put_record_context(convert, record->data[2], record->data[3],
					     record->counters, out);
}

/* ---- one record ----------------------------------------------------------------------- */

static inline uint32_t load32(const uint8_t *at)
{
	return ky_record_word(at);
}

/* Where a dynamic field lies; empty when it points outside of the record. */
static const uint8_t *locate(const struct record *record, const struct ky_convert_op *op,
			     uint32_t *len)
{
	uint32_t word, at;

	if (op->code == KY_OP_STRING && op->len) {
		*len = record->len > op->src ? record->len - op->src : 0;
		return record->data + (*len ? op->src : 0);
	}
	word = load32(record->data + op->src);
	at = word & 0xffff;
	*len = word >> 16;
	if (op->relative)
		at += op->src + 4u;
	if (at > record->len || *len > record->len - at) {
		*len = 0;
		return record->data;
	}
	return record->data + at;
}

static uint32_t string_len(const uint8_t *text, uint32_t len)
{
	return (uint32_t)strnlen((const char *)text, len);
}

static inline uint64_t load64(const uint8_t *at)
{
	uint64_t value;

	memcpy(&value, at, 8);
	return value;
}

static uint32_t hex_digits(uint64_t value)
{
	return value ? (67u - (uint32_t)__builtin_clzll(value)) / 4 : 1;
}

/* The bytes that the dynamic fields add. Their lengths are kept for the writing pass. */
static uint32_t measure(const struct ky_convert_plan *plan, const struct record *record,
			uint32_t *lens)
{
	uint32_t total = 0, n = 0, len;

	for (uint32_t i = 0; i < plan->n_ops; i++) {
		const struct ky_convert_op *op = &plan->ops[i];
		const uint8_t *data;

		if (op->code == KY_OP_STRING) {
			data = locate(record, op, &len);
			len = string_len(data, len);
			total += len + 1;
		} else if (op->code == KY_OP_SEQUENCE) {
			locate(record, op, &len);
			len -= len % op->len;
			total += len;
		} else if (op->code == KY_OP_ADDRESS) {
			len = hex_digits(load64(record->data + op->src));
			total += len + 3;
		} else if (op->code == KY_OP_CONTENT) {
			if (ky_content_text(record->content, op->len, &len)) {
				total += len + 1;
			} else {
				len = hex_digits(load64(record->data + op->src));
				total += len + 3;
			}
		} else if (op->code == KY_OP_CONTENT_TAIL) {
			len = ky_content_tail_bytes(plan->content, record->content);
			total += len;
		} else {
			continue;
		}
		lens[n++] = len;
	}
	return total;
}

static uint8_t *put_pid(const struct ky_convert_cpu *cpu, uint8_t *out, uint32_t tid)
{
	struct ky_threads *threads = cpu->convert->threads;
	struct ky_thread *thread = threads ? ky_threads_get(threads, (int32_t)tid) : NULL;
	int32_t pid = thread ? thread->pid : (int32_t)tid;

	return put(out, &pid, 4);
}

static uint8_t *put_comm(const struct record *record, const struct ky_convert_op *op, uint8_t *out)
{
	uint32_t len;
	const uint8_t *text = locate(record, op, &len);

	memset(out, 0, KY_EVENT_COMM_BYTES);
	memcpy(out, text, string_len(text, len < KY_EVENT_COMM_BYTES ? len : KY_EVENT_COMM_BYTES));
	return out + KY_EVENT_COMM_BYTES;
}

static uint8_t *put_address(uint8_t *out, uint64_t value, uint32_t digits)
{
	*out++ = '0';
	*out++ = 'x';
	for (uint32_t i = digits; i-- > 0; value >>= 4)
		out[i] = (uint8_t) "0123456789abcdef"[value & 15];
	out[digits] = '\0';
	return out + digits + 1;
}

/* A text that could not be read, or was lost: its address stands there, as without content. */
static uint8_t *put_content(const struct record *record, const struct ky_convert_op *op,
			    uint8_t *out, uint32_t len)
{
	uint32_t ignored;
	const char *text = ky_content_text(record->content, op->len, &ignored);

	if (!text)
		return put_address(out, load64(record->data + op->src), len);
	out = put(out, text, len);
	*out++ = '\0';
	return out;
}

static uint8_t *put_sequence(const struct record *record, const struct ky_convert_op *op,
			     uint8_t *out, uint32_t len)
{
	uint32_t ignored, elements = len / op->len;
	const uint8_t *data = locate(record, op, &ignored);

	out = put(out, &elements, 4);
	return put(out, data, len);
}

static inline uint8_t *put_fields(const struct ky_convert_cpu *cpu,
				  const struct ky_convert_plan *plan, const struct record *record,
				  const uint32_t *lens, uint8_t *out)
{
	const struct ky_convert_op *op = plan->ops, *end = op + plan->n_ops;
	const uint8_t *from = record->data;
	uint32_t value, ignored;

	for (; op < end; op++) {
		switch ((enum ky_op)op->code) {
		case KY_OP_COPY4:
			out = put(out, from + op->src, 4);
			break;
		case KY_OP_COPY8:
			out = put(out, from + op->src, 8);
			break;
		case KY_OP_COPY16:
			out = put(out, from + op->src, 16);
			break;
		case KY_OP_COPY:
			out = copy_bytes(out, from + op->src, op->len);
			break;
		case KY_OP_ADD:
			value = load32(out - op->len) + (uint32_t)op->add;
			memcpy(out - op->len, &value, 4);
			break;
		case KY_OP_RWBS:
			value = ky_rwbs_mask((const char *)from + op->src, op->len);
			out = put(out, &value, 4);
			break;
		case KY_OP_TID:
			out = put(out, &record->tid, 4);
			break;
		case KY_OP_PID:
			out = put_pid(cpu, out, load32(from + op->src));
			break;
		case KY_OP_COMM:
			out = put_comm(record, op, out);
			break;
		case KY_OP_ADDRESS:
			out = put_address(out, load64(from + op->src), *lens++);
			break;
		case KY_OP_CONTENT:
			out = put_content(record, op, out, *lens++);
			break;
		case KY_OP_CONTENT_TAIL:
			out = ky_content_put_tail(plan->content, record->content, out);
			lens++;
			break;
		case KY_OP_STRING:
			out = put(out, locate(record, op, &ignored), *lens++);
			*out++ = '\0';
			break;
		case KY_OP_SEQUENCE:
			out = put_sequence(record, op, out, *lens++);
			break;
		}
	}
	return out;
}

/* Keep the threads up to date; after the event itself, whose context is from before it. */
static void learn(const struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		  const struct record *record)
{
	struct ky_threads *threads = cpu->convert->threads;
	const uint8_t *data = record->data;
	const char *text = (const char *)data;
	uint64_t flags;
	int32_t tid;

	if (!threads)
		return;
	tid = (int32_t)load32(data + plan->at[0]);
	switch ((enum ky_event_role)plan->role) {
	case KY_EVENT_SWITCH:
		if (tid == 0)
			break;
		ky_threads_set_prio(threads, tid, (int32_t)load32(data + plan->at[1]) - 100);
		ky_threads_rename(threads, tid, text + plan->at[2], KY_COMM_BYTES);
		break;
	case KY_EVENT_NEWTASK:
		memcpy(&flags, data + plan->at[1], 8);
		(void)ky_threads_newtask(threads, (int32_t)record->tid, tid, text + plan->at[2],
					 flags);
		ky_convert_choose_child(cpu->convert, record->tid, (uint32_t)tid);
		break;
	case KY_EVENT_RENAME:
		ky_threads_rename(threads, tid, text + plan->at[1], KY_COMM_BYTES);
		break;
	case KY_EVENT_EXEC:
		ky_threads_exec(threads, tid, (int32_t)load32(data + plan->at[1]));
		break;
	case KY_EVENT_EXIT:
		ky_threads_exit(threads, tid);
		ky_convert_choose_no_more(cpu->convert, (uint32_t)tid);
		break;
	case KY_EVENT_SETPRIO:
		ky_threads_set_prio(threads, tid, (int32_t)load32(data + plan->at[1]) - 100);
		break;
	case KY_EVENT_CGROUP:
		memcpy(&flags, data + plan->at[2], 8);
		/* Version 2's hierarchy is number 0. */
		if (load32(data + plan->at[1]) == 0)
			ky_threads_set_cgroup(threads, tid, flags);
		break;
	case KY_EVENT_KERNEL_STACK:
	case KY_EVENT_USER_STACK:
	case KY_EVENT_FORK:
	case KY_EVENT_SYSCALL:
	case KY_EVENT_PLAIN:
		break;
	}
}

/* Of a call that succeeded. Without BPF, /proc tells how it is by now. */
static void learn_ids(const struct ky_convert_cpu *cpu, const struct record *record)
{
	const struct ky_thread_ids *ids = ky_content_ids(record->content);
	struct ky_threads *threads = cpu->convert->threads;

	if (!threads || (record->len >= 24 && (int64_t)load64(record->data + 16) < 0))
		return;
	if (ids)
		ky_threads_set_ids(threads, (int32_t)record->tid, ids);
	else
		ky_threads_refresh_ids(threads, (int32_t)record->tid);
}

/* What an event takes in the packet. */
struct room {
	uint32_t lens[KY_PLAN_MAX_DYNAMIC];
	uint32_t bytes, later; /* now; and what it may grow by, when its call stacks come */
};

static inline void measure_event(const struct ky_convert_cpu *cpu,
				 const struct ky_convert_plan *plan, const struct record *record,
				 struct room *room)
{
	room->bytes = cpu->convert->context_bytes + plan->out_bytes;
	if (plan->n_dynamic)
		room->bytes += measure(plan, record, room->lens);
	room->later = __builtin_expect(plan->stacks != 0, 0) ? ky_stacks_most(plan->stacks) : 0;
}

/* The body of the event whose header was written. */
static inline void put_event(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
			     const struct record *record, const struct room *room, uint8_t *out)
{
	cpu->writer.used_bytes -= room->later;
	put_fields(cpu, plan, record, room->lens, put_context(cpu, out, record));
}

/* Now or soon: the event whose body is at @body, NULL when it is not in the packet, may get its stacks. */
static void expect_stacks(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
			  const struct record *record, const uint8_t *body)
{
	uint32_t at = body ? (uint32_t)(body - cpu->writer.data) + cpu->convert->stacks_at : 0;
	bool has_kernel = cpu->convert->context & KY_CONTEXT_CALLSTACK_KERNEL;

	ky_stacks_event(cpu->stacks, record->data, body ? plan->stacks : 0, at,
			at + (has_kernel ? 4 : 0));
}

static int write_event(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		       const struct record *record, struct kymo_error *err)
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
	put_event(cpu, plan, record, &room, out);
	cpu->events++;
	if (__builtin_expect(cpu->stacks != NULL, 0) && !record->is_foreign)
		expect_stacks(cpu, plan, record, out);
	return KYMO_OK;
}

/* Is the event wanted that was written last, from byte @begin of the packet on? */
static bool is_wanted(const struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
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
			  const struct record *record, struct kymo_error *err)
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
	put_event(cpu, plan, record, &room, body);
	wanted = is_wanted(cpu, plan, used_bytes, body);
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
		       const struct record *record)
{
	const uint8_t *data = record->data;

	if (plan->role == KY_EVENT_KERNEL_STACK)
		ky_stacks_take(cpu->stacks, &cpu->writer, data, record->len, plan->at[1],
			       load32(data + plan->at[0]), KY_STACK_KERNEL);
	else if (plan->role == KY_EVENT_USER_STACK)
		ky_stacks_take(cpu->stacks, &cpu->writer, data, record->len, plan->at[1],
			       KY_STACK_USER_FRAMES, KY_STACK_USER);
	else if (plan->hidden)
		expect_stacks(cpu, plan, record, NULL);
}

static inline bool is_own(const struct ky_convert *convert, uint32_t tid)
{
	bool is = false;

	for (int i = 0; i < KY_CONVERT_OWN_TIDS; i++)
		is |= tid == (uint32_t)convert->own_tids[i];
	return is;
}

/* Bits of common_flags. */
#define IN_INTERRUPT (0x08 | 0x10 | 0x40)

static const uint64_t *take_counters(const struct ky_convert_cpu *cpu,
				     const struct ky_convert_plan *plan,
				     const struct record *record)
{
	if (!plan->counters_key)
		return ky_counters_last(cpu->convert->counters, cpu->cpu);
	return ky_counters_take(cpu->convert->counters, plan->counters_key, record->tid, cpu->cpu,
				cpu->cycles, record->data[2] & IN_INTERRUPT);
}

static inline int convert_record(struct ky_convert_cpu *cpu, const uint8_t *data, uint32_t len,
				 struct kymo_error *err)
{
	const struct ky_convert *convert = cpu->convert;
	const struct ky_convert_plan *plan;
	struct record record = {.data = data, .len = len};
	uint16_t type;
	int ret = KYMO_OK;

	if (len < 8) {
		cpu->bad++;
		return KYMO_OK;
	}
	memcpy(&type, data, 2);
	record.tid = load32(data + 4);
	plan = type < convert->n_plans ? convert->plans[type] : NULL;
	if (!plan || len < plan->src_bytes) {
		cpu->bad++;
		return KYMO_OK;
	}
	if (plan->role == KY_EVENT_SYSCALL && is_own(convert, record.tid)) {
		if (cpu->stacks)
			ky_stacks_event(cpu->stacks, data, 0, 0, 0);
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
		ret = write_event(cpu, plan, &record, err);
	if (__builtin_expect(cpu->stacks != NULL, 0))
		take_stack(cpu, plan, &record);
	if (plan->role > KY_EVENT_SYSCALL)
		learn(cpu, plan, &record);
	else if (__builtin_expect(plan->learns_ids, 0))
		learn_ids(cpu, &record);
	return ret;
}

int ky_convert_call(struct ky_convert_cpu *cpu, const struct ky_convert_plan *plan,
		    const uint8_t *data, uint32_t len, const struct ky_content_record *content,
		    struct kymo_error *err)
{
	struct record record = {.data = data,
				.len = len,
				.tid = content->tid,
				.content = content,
				.is_foreign = true};
	int ret;

	if (cpu->convert->counters)
		record.counters = ky_counters_last(cpu->convert->counters, cpu->cpu);
	ret = plan->filter ? write_filtered(cpu, plan, &record, err)
			   : write_event(cpu, plan, &record, err);
	if (plan->learns_ids)
		learn_ids(cpu, &record);
	return ret;
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
	int ret;

	if (!stored)
		lost = until_now > cpu->lost ? until_now : cpu->lost + 1;
	else if (until_now && until_now >= cpu->lost && lost > until_now)
		lost = until_now;
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
	int ret = KYMO_OK;

	for (;; at = record.next) {
		kind = ky_record_parse(records, at, end, &cycles, &record);
		if (kind == KY_RECORD_TIME)
			continue;
		if (kind != KY_RECORD_EVENT)
			break;
		cycles += record.delta;
		if (__builtin_expect(call_cycles <= cycles, 0) && call_cycles <= until_cycles) {
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
		ret = convert_record(cpu, records + record.data, record.len, err);
		if (ret < 0)
			break;
	}
	cpu->bad += kind == KY_RECORD_BAD;
	cpu->at = cpu->end = 0;
	return ret;
}
