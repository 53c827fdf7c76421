/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A tracker: tracker-layout.h. The programs get an event's record as tracefs describes it; at probes in programs, they make
 * such a record themselves. All of config is constant when they are loaded, so nothing is left in them of what a
 * tracker does not ask for.
 */
#include "kernel/condition/condition.bpf.h"
#include "latency/bpf/latency-kernel.bpf.h"
#include "latency/bpf/tracker-layout.h"

char kymo_license[] SEC("license") = "Dual MIT/GPL";

const volatile struct ky_tracker_config config = {};
struct ky_tracker_shared shared = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct ky_tracker_key);
	__type(value, struct ky_tracker_open);
	__uint(max_entries, 10240);
} kymo_open SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, uint32_t);
	__type(value, struct ky_latency_cell);
	__uint(max_entries, 1);
} kymo_cell SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_STACK_TRACE);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, KY_TRACKER_FRAMES * sizeof(uint64_t));
	__uint(max_entries, 1);
} kymo_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} kymo_reports SEC(".maps");

/* ---- keys and threads -------------------------------------------------------------------- */

static __always_inline void make_key(struct ky_tracker_key *key, const struct ky_record *record,
				     const volatile struct ky_tracker_side *side)
{
	key->values[0] = record_number(record, &side->keys[0]);
	key->values[1] = side->n_keys > 1 ? record_number(record, &side->keys[1]) : 0;
}

static __always_inline void see_thread(struct ky_tracker_thread *thread, void *ctx, bool stacks)
{
	uint64_t id = bpf_get_current_pid_tgid();

	thread->tid = (int32_t)id;
	thread->pid = (int32_t)(id >> 32);
	bpf_get_current_comm(thread->comm, sizeof(thread->comm));
	thread->kernel_stack = -1;
	thread->user_stack = -1;
	if (!stacks)
		return;
	thread->kernel_stack = (int32_t)bpf_get_stackid(ctx, &kymo_stacks, 0);
	thread->user_stack = (int32_t)bpf_get_stackid(ctx, &kymo_stacks, BPF_F_USER_STACK);
}

/* ---- begin and end ---------------------------------------------------------------------- */

/* Does the condition of @side pass the event? */
static __always_inline bool passes(struct ky_record *record,
				   const volatile struct ky_tracker_side *side)
{
	uint64_t text[KY_CONDITION_TEXT_BYTES / 8];

	record->text = text;
	return !side->condition.n_steps || condition_is_true(record, &side->condition);
}

static __always_inline int begin(void *ctx, struct ky_record *record)
{
	struct ky_tracker_open open = {};
	struct ky_tracker_key key;

	if (!passes(record, &config.begin))
		return 0;
	make_key(&key, record, &config.begin);
	see_thread(&open.begin, ctx, config.stacks);
	open.begin_ns = bpf_ktime_get_ns();
	if (!bpf_map_update_elem(&kymo_open, &key, &open, BPF_NOEXIST))
		return 0;
	if (!bpf_map_update_elem(&kymo_open, &key, &open, BPF_EXIST))
		__sync_fetch_and_add(&shared.n_again, 1);
	else
		__sync_fetch_and_add(&shared.n_full, 1);
	return 0;
}

static __always_inline void add(uint64_t ns)
{
	uint64_t period = *(volatile uint64_t *)&shared.period;
	uint64_t bucket = at_most(ky_latency_bucket(ns), KY_LATENCY_BUCKETS - 1);
	struct ky_latency_peak *peak;
	struct ky_latency_cell *cell;
	uint32_t zero = 0;

	cell = bpf_map_lookup_elem(&kymo_cell, &zero);
	if (!cell)
		return;
	cell->buckets[bucket]++;
	cell->sum_ns += ns;
	peak = &cell->peaks[period & 1];
	if (peak->period != period || ns > peak->ns)
		peak->ns = ns;
	peak->period = period;
}

static __always_inline void report(void *ctx, const struct ky_tracker_key *key,
				   const struct ky_tracker_open *open, uint64_t end_ns)
{
	struct ky_tracker_report *report = bpf_ringbuf_reserve(&kymo_reports, sizeof(*report), 0);

	if (!report) {
		__sync_fetch_and_add(&shared.n_lost, 1);
		return;
	}
	report->key = *key;
	report->begin_ns = open->begin_ns;
	report->end_ns = end_ns;
	report->begin = open->begin;
	see_thread(&report->end, ctx, config.stacks);
	bpf_ringbuf_submit(report, 0);
}

static __always_inline bool is_worst(uint64_t ns)
{
	if (ns <= shared.worst_ns)
		return false;
	shared.worst_ns = ns;
	return true;
}

static __always_inline int end(void *ctx, struct ky_record *record)
{
	struct ky_tracker_open *open, copy;
	uint64_t now_ns = bpf_ktime_get_ns(), ns;
	struct ky_tracker_key key;
	bool is_record;

	if (!passes(record, &config.end))
		return 0;
	make_key(&key, record, &config.end);
	open = bpf_map_lookup_elem(&kymo_open, &key);
	if (!open)
		return 0;
	copy = *open;
	bpf_map_delete_elem(&kymo_open, &key);
	ns = now_ns - copy.begin_ns;
	add(ns);
	is_record = is_worst(ns);
	if (config.over_worst ? is_record : ns > config.over_ns)
		report(ctx, &key, &copy, now_ns);
	return 0;
}

static __always_inline uint64_t current_task(void)
{
	return HAS_CAST ? bpf_get_current_task() : 0;
}

SEC("tp")
int kymo_begin(void *ctx)
{
	struct ky_record record = {.ctx = ctx, .task = current_task()};

	return begin(ctx, &record);
}

SEC("tp")
int kymo_end(void *ctx)
{
	struct ky_record record = {.ctx = ctx, .task = current_task()};

	return end(ctx, &record);
}

/* ---- probes in programs ------------------------------------------------------------------ */

/* What @fetch begins with, before its steps through memory. */
static __always_inline uint64_t fetch_base(const void *ctx,
					   const volatile struct ky_tracker_fetch *fetch,
					   uint64_t place_offset)
{
	uint64_t raw = 0;

	if (fetch->base == KY_TRACKER_CONSTANT)
		return fetch->constant;
	bpf_probe_read_kernel(&raw, sizeof(raw), ctx + (fetch->reg & 0xff));
	if (fetch->base == KY_TRACKER_IN_FILE)
		raw += fetch->constant - place_offset;
	return raw;
}

/* A string at a bad address is empty, as in recordings. False: a number cannot be read. */
static __always_inline bool fetch_one(const void *ctx,
				      const volatile struct ky_tracker_fetch *fetch,
				      uint64_t place_offset, void *to)
{
	uint64_t value = fetch_base(ctx, fetch, place_offset);
	uint64_t raw = 0;

#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_TRACKER_LOADS; i++) {
		if (i >= fetch->n_loads)
			break;
		raw = 0;
		if (bpf_probe_read_user(&raw, sizeof(raw), (void *)(value + fetch->offsets[i])))
			return fetch->is_text;
		value = raw;
	}
	value += fetch->last_offset;
	if (fetch->is_text) {
		bpf_probe_read_user_str(to, KY_TRACKER_TEXT_BYTES + 1, (void *)value);
		return true;
	}
	if (fetch->in_memory) {
		raw = 0;
		if (bpf_probe_read_user(&raw, at_most(fetch->size, sizeof(raw)), (void *)value))
			return false;
		value = raw;
	}
	if (fetch->bits)
		value = (value >> (fetch->bit_offset & 63)) &
			(UINT64_MAX >> ((64 - fetch->bits) & 63));
	*(uint64_t *)to = value;
	return true;
}

/* The record of a probe: its fields, KY_TRACKER_FETCH_BYTES apart. */
static __always_inline bool fetch_all(const void *ctx, const volatile struct ky_tracker_side *side,
				      uint8_t *record)
{
	uint64_t place = 0;

	if (side->n_places > 1)
		place = at_most(bpf_get_attach_cookie((void *)ctx), KY_TRACKER_PLACES - 1);
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < KY_TRACKER_FETCHES; i++)
		if ((side->used >> i & 1) &&
		    !fetch_one(ctx, &side->places[place].fetches[i], side->places[place].offset,
			       record + i * KY_TRACKER_FETCH_BYTES)) {
			__sync_fetch_and_add(&shared.n_unread, 1);
			return false;
		}
	return true;
}

SEC("kprobe")
int kymo_begin_probe(void *ctx)
{
	uint64_t fields[KY_TRACKER_RECORD_WORDS] = {};
	struct ky_record record = {.copy = (uint8_t *)fields, .task = current_task()};

	return fetch_all(ctx, &config.begin, (uint8_t *)fields) ? begin(ctx, &record) : 0;
}

SEC("kprobe")
int kymo_end_probe(void *ctx)
{
	uint64_t fields[KY_TRACKER_RECORD_WORDS] = {};
	struct ky_record record = {.copy = (uint8_t *)fields, .task = current_task()};

	return fetch_all(ctx, &config.end, (uint8_t *)fields) ? end(ctx, &record) : 0;
}
