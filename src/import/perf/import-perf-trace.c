/* SPDX-License-Identifier: MIT */
/* Records of perf.data to events. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "import/perf/import-perf.h"

/* In call chains of perf, these are no addresses: what follows is of the kernel, of the program ... */
#define CONTEXT_MAX    ((uint64_t)-4095)
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER   ((uint64_t)-512)

#define MISC_COMM_EXEC	      (1u << 13)
#define MISC_SWITCH_OUT	      (1u << 13)
#define MISC_LOST_SAMPLES_BPF (1u << 15) /* a program decided so: no loss */
#define MISC_CPUMODE	      7u
#define MISC_KERNEL	      1u
#define COMM_BYTES	      16u
#define EXECUTABLE	      4u
#define BUILD_ID_MAX	      20u

/* ---- records -------------------------------------------------------------------------- */

/* The cursor of a record's own fields; what is missing reads as 0. */
struct record {
	const uint8_t *bytes;
	uint32_t size;
	bool swap;
};

static uint32_t record_u32(const struct record *record, uint32_t at)
{
	return at + 4 <= record->size ? ky_foreign_u32(record->bytes + at, record->swap) : 0;
}

static uint64_t record_u64(const struct record *record, uint32_t at)
{
	return at + 8 <= record->size ? ky_foreign_u64(record->bytes + at, record->swap) : 0;
}

static const char *record_text(const struct record *record, uint32_t at, size_t *len)
{
	*len = at < record->size ? strnlen((const char *)record->bytes + at, record->size - at) : 0;
	return at < record->size ? (const char *)record->bytes + at : "";
}

/* The event's context; of samples alone also with the call stacks at hand. */
static void import_perf_trace_begin_event(struct ky_import_perf_trace *trace,
					  enum ky_import_perf_event event,
					  const struct ky_perf_sample *sample)
{
	const char *name = ky_map_get(&trace->names, sample->tid);
	bool has_stacks = event == KY_IMPORT_PERF_SAMPLE;

	ky_maker_begin(trace->maker, sample->cpu < KY_FOREIGN_CPUS_MAX ? sample->cpu : 0,
		       trace->events[event], sample->ns ? sample->ns : trace->begin_ns);
	ky_maker_number(trace->maker, sample->tid);
	ky_maker_number(trace->maker, sample->pid);
	ky_maker_text(trace->maker, name ? name : "", name ? COMM_BYTES : 0);
	ky_maker_numbers(trace->maker, trace->kernel_chain.data,
			 has_stacks ? trace->kernel_chain.len : 0);
	ky_maker_numbers(trace->maker, trace->user_chain.data,
			 has_stacks ? trace->user_chain.len : 0);
}

/* Splits the chain into the kernel's part and the program's. */
static int import_perf_trace_chain(struct ky_import_perf_trace *trace,
				   const struct ky_perf_sample *sample, bool swap, bool is_kernel,
				   struct kymo_error *err)
{
	ky_vec_clear(&trace->kernel_chain);
	ky_vec_clear(&trace->user_chain);
	if (ky_vec_reserve(&trace->kernel_chain, sample->n_chain + 1) < 0 ||
	    ky_vec_reserve(&trace->user_chain, sample->n_chain + 1) < 0)
		return ky_error_nomem(err);
	if (!sample->n_chain && sample->ip) {
		if (is_kernel)
			(void)ky_vec_push(&trace->kernel_chain, sample->ip);
		else
			(void)ky_vec_push(&trace->user_chain, sample->ip);
	}
	for (uint32_t i = 0; i < sample->n_chain; i++) {
		uint64_t ip = ky_foreign_u64(sample->chain + 8ull * i, swap);

		if (ip >= CONTEXT_MAX)
			is_kernel = ip == CONTEXT_KERNEL;
		else if (is_kernel)
			trace->kernel_chain.data[trace->kernel_chain.len++] = ip;
		else
			trace->user_chain.data[trace->user_chain.len++] = ip;
	}
	return KYMO_OK;
}

/* The program's part, where perf has copied the stack. */
static int import_perf_trace_unwind(struct ky_import_perf_trace *trace, struct ky_perf_file *perf,
				    const struct ky_perf_sample *sample, struct kymo_error *err)
{
	uint32_t n = sample->stack ? ky_perf_stacks_unwind(&trace->stacks, perf, sample) : 0;

	if (!n)
		return KYMO_OK;
	ky_vec_clear(&trace->user_chain);
	for (uint32_t i = 0; i < n; i++)
		if (ky_vec_push(&trace->user_chain, trace->stacks.frames[i]) < 0)
			return ky_error_nomem(err);
	return KYMO_OK;
}

static int import_perf_trace_tracepoint(struct ky_import_perf_trace *trace,
					const struct ky_perf_sample *sample, struct kymo_error *err)
{
	const struct ky_foreign_stacks stacks = {
		.kernel = trace->kernel_chain.data,
		.user = trace->user_chain.data,
		.n_kernel = trace->kernel_chain.len,
		.n_user = trace->user_chain.len,
	};

	trace->n_empty += !sample->raw;
	if (!trace->has_kernel || !sample->raw)
		return KYMO_OK;
	return ky_foreign_kernel_record(
		&trace->kernel, sample->cpu < KY_FOREIGN_CPUS_MAX ? sample->cpu : 0,
		(uint32_t)sample->attr->config, sample->ns, sample->raw, sample->raw_bytes,
		sample->n_chain || stacks.n_user ? &stacks : NULL, err);
}

static int import_perf_trace_sample(struct ky_import_perf_trace *trace, struct ky_perf_file *perf,
				    const struct ky_perf_head *head,
				    const struct ky_perf_sample *sample, struct kymo_error *err)
{
	int ret;

	ret = import_perf_trace_chain(trace, sample, perf->file.swap,
				      (head->misc & MISC_CPUMODE) == MISC_KERNEL, err);
	if (!ret)
		ret = import_perf_trace_unwind(trace, perf, sample, err);
	if (ret < 0)
		return ret;
	if (sample->attr->type == KY_PERF_TYPE_TRACEPOINT)
		return import_perf_trace_tracepoint(trace, sample, err);
	if (sample->attr->event < 0)
		return KYMO_OK;
	import_perf_trace_begin_event(trace, KY_IMPORT_PERF_SAMPLE, sample);
	ky_maker_number(trace->maker, (uint64_t)sample->attr->event);
	ky_maker_number(trace->maker, sample->period);
	ky_maker_number(trace->maker, sample->address);
	return ky_maker_commit(trace->maker, err);
}

static int import_perf_trace_comm(struct ky_import_perf_trace *trace,
				  const struct ky_perf_head *head, const struct record *record,
				  const struct ky_perf_sample *sample, struct kymo_error *err)
{
	struct ky_perf_sample who = *sample;
	size_t len;
	const char *name = record_text(record, 16, &len);
	char *kept = ky_map_get(&trace->names, record_u32(record, 12));

	if (!kept) {
		kept = ky_arena_alloc(&trace->arena, COMM_BYTES);
		if (!kept || ky_map_set(&trace->names, record_u32(record, 12), kept) < 0)
			return ky_error_nomem(err);
	}
	memset(kept, 0, COMM_BYTES);
	memcpy(kept, name, len < COMM_BYTES - 1 ? len : COMM_BYTES - 1);
	who.pid = record_u32(record, 8);
	who.tid = record_u32(record, 12);
	if (trace->has_kernel && !sample->ns) {
		int ret = ky_foreign_kernel_thread(&trace->kernel, (int32_t)who.tid,
						   (int32_t)who.pid, kept, err);

		if (ret < 0)
			return ret;
	}
	if (head->misc & MISC_COMM_EXEC) {
		import_perf_trace_begin_event(trace, KY_IMPORT_PERF_EXEC, &who);
		ky_maker_number(trace->maker, who.tid);
	} else {
		import_perf_trace_begin_event(trace, KY_IMPORT_PERF_COMM, &who);
	}
	ky_maker_text(trace->maker, name, len);
	return ky_maker_commit(trace->maker, err);
}

static int import_perf_trace_fork(struct ky_import_perf_trace *trace, bool is_exit,
				  const struct record *record, const struct ky_perf_sample *sample,
				  struct kymo_error *err)
{
	const char *name = ky_map_get(&trace->names, record_u32(record, 20));
	char *kept;

	import_perf_trace_begin_event(trace, is_exit ? KY_IMPORT_PERF_EXIT : KY_IMPORT_PERF_FORK,
				      sample);
	ky_maker_number(trace->maker, record_u32(record, 12));
	ky_maker_number(trace->maker, record_u32(record, 20));
	ky_maker_number(trace->maker, record_u32(record, 8));
	ky_maker_number(trace->maker, record_u32(record, 16));
	/* A child has its parent's name. */
	if (!is_exit && name && !ky_map_get(&trace->names, record_u32(record, 16))) {
		kept = ky_arena_memdup(&trace->arena, name, COMM_BYTES);
		if (!kept || ky_map_set(&trace->names, record_u32(record, 16), kept) < 0)
			return ky_error_nomem(err);
	}
	return ky_maker_commit(trace->maker, err);
}

static int import_perf_trace_mmap(struct ky_import_perf_trace *trace,
				  const struct ky_perf_file *perf, const struct ky_perf_head *head,
				  const struct record *record, const struct ky_perf_sample *sample,
				  struct kymo_error *err)
{
	bool is_2 = head->type == KY_PERF_MMAP2;
	uint8_t id_bytes = ky_perf_map_build_id(perf, head);
	struct ky_perf_sample who = *sample;
	char hex[2 * BUILD_ID_MAX + 1] = "";
	size_t len;
	const char *path;

	/* What cannot be executed has no functions. */
	if (is_2 && !(record_u32(record, 64) & EXECUTABLE))
		return KYMO_OK;
	who.pid = record_u32(record, 8);
	who.tid = record_u32(record, 12);
	path = record_text(record, is_2 ? 72 : 40, &len);
	for (size_t i = 0; i < id_bytes && i < BUILD_ID_MAX; i++)
		snprintf(hex + 2 * i, 3, "%02x", record->bytes[44 + i]);
	import_perf_trace_begin_event(trace, KY_IMPORT_PERF_MMAP, &who);
	ky_maker_number(trace->maker, who.pid);
	ky_maker_number(trace->maker, record_u64(record, 16));
	ky_maker_number(trace->maker, record_u64(record, 16) + record_u64(record, 24));
	ky_maker_number(trace->maker, is_2 ? record_u32(record, 64) : EXECUTABLE);
	ky_maker_number(trace->maker, record_u64(record, 32));
	ky_maker_text(trace->maker, hex, strlen(hex));
	ky_maker_text(trace->maker, path, len);
	return ky_maker_commit(trace->maker, err);
}

static int import_perf_trace_flag(struct ky_import_perf_trace *trace,
				  enum ky_import_perf_event event, bool is_on,
				  const struct ky_perf_sample *sample, struct kymo_error *err)
{
	import_perf_trace_begin_event(trace, event, sample);
	ky_maker_number(trace->maker, is_on);
	return ky_maker_commit(trace->maker, err);
}

static int import_perf_trace_lost(struct ky_import_perf_trace *trace, uint64_t n,
				  const struct ky_perf_sample *sample, struct kymo_error *err)
{
	uint32_t cpu = sample->cpu < KY_FOREIGN_CPUS_MAX ? sample->cpu : 0;

	return trace->has_kernel ? ky_foreign_kernel_lost(&trace->kernel, cpu, n, err)
				 : ky_maker_lost(trace->maker, cpu, n, err);
}

int ky_import_perf_record(struct ky_import_perf_trace *trace, struct ky_perf_file *perf,
			  const struct ky_perf_head *head, const struct ky_perf_sample *sample,
			  struct kymo_error *err)
{
	const struct record record = {head->bytes, head->size, perf->file.swap};

	if (ky_perf_stacks_record(&trace->stacks, perf, head) < 0)
		return ky_error_nomem(err);
	switch (head->type) {
	case KY_PERF_SAMPLE:
		return import_perf_trace_sample(trace, perf, head, sample, err);
	case KY_PERF_COMM:
		return import_perf_trace_comm(trace, head, &record, sample, err);
	case KY_PERF_FORK:
	case KY_PERF_EXIT:
		return import_perf_trace_fork(trace, head->type == KY_PERF_EXIT, &record, sample,
					      err);
	case KY_PERF_MMAP:
	case KY_PERF_MMAP2:
		return import_perf_trace_mmap(trace, perf, head, &record, sample, err);
	case KY_PERF_THROTTLE:
	case KY_PERF_UNTHROTTLE:
		return import_perf_trace_flag(trace, KY_IMPORT_PERF_THROTTLE,
					      head->type == KY_PERF_THROTTLE, sample, err);
	case KY_PERF_SWITCH:
	case KY_PERF_SWITCH_CPU_WIDE:
		return import_perf_trace_flag(trace, KY_IMPORT_PERF_SWITCH,
					      head->misc & MISC_SWITCH_OUT, sample, err);
	case KY_PERF_AUX:
		import_perf_trace_begin_event(trace, KY_IMPORT_PERF_AUX, sample);
		for (uint32_t at = 8; at < 32; at += 8)
			ky_maker_number(trace->maker, record_u64(&record, at));
		return ky_maker_commit(trace->maker, err);
	case KY_PERF_LOST:
		trace->n_lost += record_u64(&record, 16);
		return import_perf_trace_lost(trace, record_u64(&record, 16), sample, err);
	case KY_PERF_LOST_SAMPLES:
		/* Counted at the end, per event: also what a record of KY_PERF_LOST tells at its place. */
		if (!(head->misc & MISC_LOST_SAMPLES_BPF))
			trace->n_lost_samples += record_u64(&record, 8);
		return KYMO_OK;
	default:
		return KYMO_OK;
	}
}

int ky_import_perf_end(struct ky_import_perf_trace *trace, struct kymo_error *err)
{
	struct ky_maker *maker = trace->maker;
	uint64_t n_events, n_bad;
	int ret;

	if (trace->n_lost_samples > trace->n_lost) {
		const struct ky_perf_sample first_cpu = {0};

		ret = import_perf_trace_lost(trace, trace->n_lost_samples - trace->n_lost,
					     &first_cpu, err);
		if (ret < 0)
			return ret;
	}
	trace->maker = NULL;
	ret = ky_maker_close(maker, err);
	if (!ret && trace->has_kernel)
		ret = ky_foreign_kernel_end(&trace->kernel, &n_events, &n_bad, err);
	return ret;
}
