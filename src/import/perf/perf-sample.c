/* SPDX-License-Identifier: MIT */
#include "import/perf/perf-sample.h"

/* perf_event_attr.sample_type, in the order of the fields in a sample. */
#define SAMPLE_IDENTIFIER (1u << 16)
#define SAMPLE_IP	  (1u << 0)
#define SAMPLE_TID	  (1u << 1)
#define SAMPLE_TIME	  (1u << 2)
#define SAMPLE_ADDR	  (1u << 3)
#define SAMPLE_ID	  (1u << 6)
#define SAMPLE_STREAM_ID  (1u << 9)
#define SAMPLE_CPU	  (1u << 7)
#define SAMPLE_PERIOD	  (1u << 8)
#define SAMPLE_READ	  (1u << 4)
#define SAMPLE_CALLCHAIN  (1u << 5)
#define SAMPLE_RAW	  (1u << 10)
#define SAMPLE_BRANCHES	  (1u << 11)
#define SAMPLE_REGISTERS  (1u << 12)
#define SAMPLE_STACK	  (1u << 13)

#define BRANCH_HW_INDEX (1u << 17)
#define BRANCH_BYTES	24u
#define ABI_64		2u

#define READ_TIME_ENABLED (1u << 0)
#define READ_TIME_RUNNING (1u << 1)
#define READ_ID		  (1u << 2)
#define READ_GROUP	  (1u << 3)
#define READ_LOST	  (1u << 4)

struct cursor {
	const uint8_t *at, *end;
	bool swap, is_short;
};

static uint64_t take_u64(struct cursor *cursor)
{
	uint64_t value;

	if (cursor->end - cursor->at < 8) {
		cursor->is_short = true;
		return 0;
	}
	value = ky_foreign_u64(cursor->at, cursor->swap);
	cursor->at += 8;
	return value;
}

static void take_two(struct cursor *cursor, uint32_t *first, uint32_t *second)
{
	uint32_t ignored;

	if (cursor->end - cursor->at < 8) {
		cursor->is_short = true;
		return;
	}
	second = second ? second : &ignored;
	*first = ky_foreign_u32(cursor->at, cursor->swap);
	*second = ky_foreign_u32(cursor->at + 4, cursor->swap);
	cursor->at += 8;
}

static void perf_sample_skip(struct cursor *cursor, uint64_t bytes)
{
	if (bytes > (uint64_t)(cursor->end - cursor->at)) {
		cursor->is_short = true;
		cursor->at = cursor->end;
	} else {
		cursor->at += bytes;
	}
}

static void skip_read(struct cursor *cursor, uint64_t format)
{
	uint64_t each = 1 + !!(format & READ_ID) + !!(format & READ_LOST);
	uint64_t times = (uint64_t) !!(format & READ_TIME_ENABLED) + !!(format & READ_TIME_RUNNING);
	uint64_t n = format & READ_GROUP ? take_u64(cursor) : 1;

	if (n > UINT16_MAX) {
		cursor->is_short = true;
		return;
	}
	perf_sample_skip(cursor, 8 * (times + each * n));
}

static void take_chain(struct cursor *cursor, struct ky_perf_sample *sample)
{
	uint64_t n = take_u64(cursor);

	if (n > (uint64_t)(cursor->end - cursor->at) / 8) {
		cursor->is_short = true;
		return;
	}
	sample->chain = cursor->at;
	sample->n_chain = (uint32_t)n;
	cursor->at += 8 * n;
}

static void take_raw(struct cursor *cursor, struct ky_perf_sample *sample)
{
	uint32_t len;

	if (cursor->end - cursor->at < 4) {
		cursor->is_short = true;
		return;
	}
	len = ky_foreign_u32(cursor->at, cursor->swap);
	cursor->at += 4;
	if (len > (size_t)(cursor->end - cursor->at)) {
		cursor->is_short = true;
		return;
	}
	sample->raw = cursor->at;
	sample->raw_bytes = len;
	cursor->at += len;
}

static void skip_branches(struct cursor *cursor, uint64_t type)
{
	uint64_t n = take_u64(cursor);

	if (type & BRANCH_HW_INDEX)
		(void)take_u64(cursor);
	if (n > UINT16_MAX)
		cursor->is_short = true;
	else
		perf_sample_skip(cursor, n * BRANCH_BYTES);
}

static void take_registers(struct cursor *cursor, struct ky_perf_sample *sample)
{
	uint64_t abi = take_u64(cursor);

	if (!abi)
		return;
	if (abi == ABI_64)
		sample->registers = cursor->at;
	perf_sample_skip(cursor,
			 8ull * (unsigned int)__builtin_popcountll(sample->attr->user_registers));
}

/* Its size, the bytes, and how many of these the kernel has filled. */
static void perf_sample_take_stack(struct cursor *cursor, struct ky_perf_sample *sample)
{
	uint64_t size = take_u64(cursor), filled;

	if (!size)
		return;
	sample->stack = cursor->at;
	perf_sample_skip(cursor, size);
	filled = take_u64(cursor);
	sample->stack_bytes = filled < size ? filled : size;
}

/* What stands behind the tracepoint's record, up to the copies. */
static void take_copies(struct cursor *cursor, struct ky_perf_sample *sample)
{
	uint64_t type = sample->attr->sample_type;

	if (!ky_perf_has_user_stack(sample->attr) || cursor->is_short)
		return;
	if (type & SAMPLE_BRANCHES)
		skip_branches(cursor, sample->attr->branch_type);
	take_registers(cursor, sample);
	perf_sample_take_stack(cursor, sample);
	if (cursor->is_short)
		sample->registers = sample->stack = NULL;
}

/* Without IDENTIFIER all events of a file have the same sample_type, so the first one's tells where the id is. */
static uint64_t find_id(const struct ky_perf_file *perf, const struct ky_perf_head *head,
			uint64_t type)
{
	unsigned int before = 0;

	if (head->size < KY_PERF_HEAD_BYTES + 8)
		return 0;
	if (type & SAMPLE_IDENTIFIER)
		return ky_foreign_u64(head->bytes + KY_PERF_HEAD_BYTES, perf->file.swap);
	if (!(type & SAMPLE_ID))
		return 0;
	for (unsigned int bit = 0; bit < 4; bit++)
		before += type >> bit & 1;
	if (head->size < KY_PERF_HEAD_BYTES + 8 * (before + 1))
		return 0;
	return ky_foreign_u64(head->bytes + KY_PERF_HEAD_BYTES + 8u * before, perf->file.swap);
}

/* The counter's ids and the CPU, which samples and trailers have in the same order. */
static void take_origin(struct cursor *cursor, uint64_t type, struct ky_perf_sample *sample)
{
	if (type & SAMPLE_ID)
		(void)take_u64(cursor);
	if (type & SAMPLE_STREAM_ID)
		(void)take_u64(cursor);
	if (type & SAMPLE_CPU)
		take_two(cursor, &sample->cpu, NULL);
}

static bool parse_sample(struct ky_perf_file *perf, const struct ky_perf_head *head,
			 struct ky_perf_sample *sample)
{
	struct cursor cursor = {head->bytes + KY_PERF_HEAD_BYTES, head->bytes + head->size,
				perf->file.swap, false};
	uint64_t type = perf->attrs.data[0].sample_type;

	sample->attr = ky_perf_attr(perf, find_id(perf, head, type));
	if (!sample->attr)
		return false;
	type = sample->attr->sample_type;
	if (type & SAMPLE_IDENTIFIER)
		(void)take_u64(&cursor);
	if (type & SAMPLE_IP)
		sample->ip = take_u64(&cursor);
	if (type & SAMPLE_TID)
		take_two(&cursor, &sample->pid, &sample->tid);
	if (type & SAMPLE_TIME)
		sample->ns = take_u64(&cursor);
	if (type & SAMPLE_ADDR)
		sample->address = take_u64(&cursor);
	take_origin(&cursor, type, sample);
	sample->period = type & SAMPLE_PERIOD ? take_u64(&cursor) : sample->attr->period;
	if (type & SAMPLE_READ)
		skip_read(&cursor, sample->attr->read_format);
	if (type & SAMPLE_CALLCHAIN)
		take_chain(&cursor, sample);
	if (type & SAMPLE_RAW)
		take_raw(&cursor, sample);
	take_copies(&cursor, sample);
	return !cursor.is_short;
}

/* Behind the record's own fields: the same, in another order, IDENTIFIER last. */
static bool parse_trailer(struct ky_perf_file *perf, const struct ky_perf_head *head,
			  struct ky_perf_sample *sample)
{
	const struct ky_perf_attr *attr = &perf->attrs.data[0];
	uint64_t type = attr->sample_type;
	struct cursor cursor = {.swap = perf->file.swap, .end = head->bytes + head->size};
	uint64_t parts;

	type &= SAMPLE_TID | SAMPLE_TIME | SAMPLE_ID | SAMPLE_STREAM_ID | SAMPLE_CPU |
		SAMPLE_IDENTIFIER;
	parts = 8 * (uint64_t)__builtin_popcountll(type);
	if (!attr->sample_id_all || head->size < KY_PERF_HEAD_BYTES + parts)
		return false;
	cursor.at = cursor.end - parts;
	if (type & SAMPLE_TID)
		take_two(&cursor, &sample->pid, &sample->tid);
	if (type & SAMPLE_TIME)
		sample->ns = take_u64(&cursor);
	take_origin(&cursor, type, sample);
	return true;
}

bool ky_perf_sample_parse(struct ky_perf_file *perf, const struct ky_perf_head *head,
			  struct ky_perf_sample *sample)
{
	memset(sample, 0, sizeof(*sample));
	if (!perf->attrs.len)
		return false;
	return head->type == KY_PERF_SAMPLE ? parse_sample(perf, head, sample)
					    : parse_trailer(perf, head, sample);
}

void ky_perf_sample_prepare(struct ky_perf_attr *attr)
{
	/* All of 8 bytes, in this order. */
	static const uint32_t order[] = {SAMPLE_IDENTIFIER, SAMPLE_IP,	 SAMPLE_TID,
					 SAMPLE_TIME,	    SAMPLE_ADDR, SAMPLE_ID,
					 SAMPLE_STREAM_ID,  SAMPLE_CPU,	 SAMPLE_PERIOD};
	uint16_t at = KY_PERF_HEAD_BYTES;

	attr->at_id = attr->at_time = attr->at_cpu = 0;
	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		if (!(attr->sample_type & order[i]))
			continue;
		if (order[i] == SAMPLE_IDENTIFIER || (order[i] == SAMPLE_ID && !attr->at_id))
			attr->at_id = at;
		if (order[i] == SAMPLE_TIME)
			attr->at_time = at;
		if (order[i] == SAMPLE_CPU)
			attr->at_cpu = at;
		at = (uint16_t)(at + 8);
	}
	attr->at_raw = attr->type == KY_PERF_TYPE_TRACEPOINT && attr->at_time &&
				       (attr->sample_type & SAMPLE_RAW) &&
				       !(attr->sample_type & (SAMPLE_READ | SAMPLE_CALLCHAIN))
			       ? at
			       : 0;
}

void ky_perf_sample_place(struct ky_perf_file *perf, const struct ky_perf_head *head, uint64_t *ns,
			  uint32_t *cpu)
{
	const struct ky_perf_attr *attr = NULL;
	struct ky_perf_sample sample;

	if (head->type == KY_PERF_SAMPLE && perf->attrs.len)
		attr = ky_perf_attr(perf, find_id(perf, head, perf->attrs.data[0].sample_type));
	if (!attr || !attr->at_time || head->size < attr->at_time + 8 ||
	    head->size < attr->at_cpu + 8) {
		(void)ky_perf_sample_parse(perf, head, &sample);
		*ns = sample.ns;
		*cpu = sample.cpu;
		return;
	}
	*ns = ky_foreign_u64(head->bytes + attr->at_time, perf->file.swap);
	*cpu = attr->at_cpu ? ky_foreign_u32(head->bytes + attr->at_cpu, perf->file.swap) : 0;
}
