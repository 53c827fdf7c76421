/* SPDX-License-Identifier: MIT */
/*
 * make-trace [-n EVENTS] [-s STREAMS] [-k KIND] [-p BYTES] DIR: a trace for benchmarks.
 *
 * KIND 0 looks like a busy kernel's: LTTng's layout and event names, a tid context. KIND 1 has
 * events of 12 bytes: compact header and a 64-bit number, no context. One stream per CPU, whose times
 * interleave finely, packets of BYTES (1 MiB). The same arguments give the same bytes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/encode/packet-writer.h"
#include "ctf/tsdl/tsdl.h"
#include "store/directory/directory-store.h"

#define PACKET_BYTES   (1u << 20)
#define PACKET_MIN     (1u << 12)
#define PACKET_MAX     (1u << 28)
#define STREAMS_MAX    4096
#define BODY_BYTES_MAX 96
#define START_CYCLES   UINT64_C(1000000000000)
#define BASE_S	       1700000000 /* the clock's zero, a day in November 2023 */

static const uint8_t uuid[16] = {0x6b, 0x79, 0x6d, 0x6f, 0x2d, 0x62, 0x4e, 0x63,
				 0x80, 1,    2,	   3,	 4,    5,    6,	   7};

/* A body under construction; every field is byte-aligned and little-endian. */
struct body {
	uint8_t data[BODY_BYTES_MAX];
	uint32_t len;
};

struct cpu {
	struct ky_packet_writer writer;
	int number; /* the sink's */
	uint64_t cycles, random;
	uint32_t tid;
	const struct flavour *flavour;
};

/* What is to be made. */
struct order {
	const struct flavour *flavour;
	uint64_t n_events;
	uint32_t n_cpus, packet_bytes;
};

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void put(struct body *body, uint64_t value, uint32_t bytes)
{
	memcpy(body->data + body->len, &value, bytes);
	body->len += bytes;
}

static void put_comm(struct body *body, uint32_t tid)
{
	static const char *const names[] = {"swapper/0", "kworker/1:1",	   "postgres", "bash",
					    "sshd",	 "lttng-consumer", "node",     "gcc"};
	char comm[16] = "";

	strcpy(comm, names[tid % 8]);
	memcpy(body->data + body->len, comm, 16);
	body->len += 16;
}

static void put_string(struct body *body, const char *text)
{
	uint32_t len = (uint32_t)strlen(text) + 1;

	memcpy(body->data + body->len, text, len);
	body->len += len;
}

/* ---- event types ------------------------------------------------------------------------- */

struct kind {
	const char *name;
	const char *fields; /* "name:type ...": s32 u32 u64 x64 comm str */
	uint32_t weight;    /* of 100 */
	void (*fill)(struct body *body, struct cpu *cpu);
};

static void fill_switch(struct body *body, struct cpu *cpu)
{
	uint32_t next = (uint32_t)next_random(&cpu->random) % 500;

	put_comm(body, cpu->tid);
	put(body, cpu->tid, 4);
	put(body, 20, 4);
	put(body, 1, 8);
	put_comm(body, next);
	put(body, next, 4);
	put(body, 20, 4);
	cpu->tid = next;
}

static void fill_waking(struct body *body, struct cpu *cpu)
{
	uint32_t tid = (uint32_t)next_random(&cpu->random) % 500;

	put_comm(body, tid);
	put(body, tid, 4);
	put(body, 120, 4);
	put(body, tid & 3, 4);
}

static void fill_rw_entry(struct body *body, struct cpu *cpu)
{
	put(body, next_random(&cpu->random) % 64, 4);
	put(body, 0x7f0000000000 | (next_random(&cpu->random) & 0xfffffff0), 8);
	put(body, 1 + next_random(&cpu->random) % 65536, 8);
}

static void fill_ret(struct body *body, struct cpu *cpu)
{
	put(body, next_random(&cpu->random) % 4096, 8);
}

static void fill_openat(struct body *body, struct cpu *cpu)
{
	static const char *const paths[] = {"/etc/ld.so.cache", "/proc/self/stat", "/tmp/x",
					    "/usr/lib/x86_64-linux-gnu/libc.so.6"};

	put(body, (uint32_t)-100, 4);
	put_string(body, paths[next_random(&cpu->random) % 4]);
	put(body, 02000000, 4);
	put(body, 0, 4);
}

static void fill_futex(struct body *body, struct cpu *cpu)
{
	put(body, 0x550000000000 | (next_random(&cpu->random) & 0xfffff0), 8);
	put(body, 128, 4);
	put(body, 1, 4);
}

static void fill_vec(struct body *body, struct cpu *cpu)
{
	put(body, next_random(&cpu->random) % 10, 4);
}

static void fill_timer(struct body *body, struct cpu *cpu)
{
	put(body, 0xffff888000000000 | (next_random(&cpu->random) & 0xfffffff0), 8);
	put(body, cpu->cycles, 8);
	put(body, 4000000, 8);
}

static void fill_tick(struct body *body, struct cpu *cpu)
{
	put(body, cpu->writer.events, 8);
}

static void fill_idle(struct body *body, struct cpu *cpu)
{
	put(body, next_random(&cpu->random) & 1 ? 1 : UINT32_MAX, 4);
	put(body, cpu->writer.cpu_id, 4);
}

#define SWITCH_FIELDS                                                                           \
	"prev_comm:comm prev_tid:s32 prev_prio:s32 prev_state:s64 next_comm:comm next_tid:s32 " \
	"next_prio:s32"

static const struct kind kinds[] = {
	{"sched_switch", SWITCH_FIELDS, 12, fill_switch},
	{"sched_waking", "comm:comm tid:s32 prio:s32 target_cpu:s32", 8, fill_waking},
	{"syscall_entry_read", "fd:u32 buf:x64 count:u64", 12, fill_rw_entry},
	{"syscall_exit_read", "ret:s64", 12, fill_ret},
	{"syscall_entry_write", "fd:u32 buf:x64 count:u64", 8, fill_rw_entry},
	{"syscall_exit_write", "ret:s64", 8, fill_ret},
	{"syscall_entry_openat", "dfd:s32 filename:str flags:s32 mode:u32", 3, fill_openat},
	{"syscall_exit_openat", "ret:s64", 3, fill_ret},
	{"syscall_entry_futex", "uaddr:x64 op:s32 val:u32", 5, fill_futex},
	{"syscall_exit_futex", "ret:s64", 5, fill_ret},
	{"irq_softirq_raise", "vec:u32", 5, fill_vec},
	{"irq_softirq_entry", "vec:u32", 5, fill_vec},
	{"irq_softirq_exit", "vec:u32", 5, fill_vec},
	{"timer_hrtimer_start", "hrtimer:x64 expires:s64 softexpires:s64", 5, fill_timer},
	{"power_cpu_idle", "state:u32 cpu_id:u32", 4, fill_idle},
};

static const struct kind tick_kinds[] = {{"tick", "value:u64", 100, fill_tick}};

/* A kind of trace. */
struct flavour {
	const struct kind *kinds;
	size_t n_kinds;
	bool compact;	  /* LTTng's small event header */
	bool has_context; /* the thread's number */
};

static const struct flavour flavours[] = {
	{kinds, sizeof(kinds) / sizeof(kinds[0]), false, true},
	{tick_kinds, 1, true, false},
};

#define N_FLAVOURS (sizeof(flavours) / sizeof(flavours[0]))

/* ---- metadata ---------------------------------------------------------------------------- */

static bool add_field(struct ky_trace_class *trace, struct ky_field_class *st, const char *name,
		      const char *type)
{
	if (strcmp(type, "comm") == 0)
		return ky_struct_add_text(trace, st, name, 16);
	if (strcmp(type, "str") == 0)
		return ky_struct_add_string(trace, st, name);
	return ky_struct_add_int(trace, st, name, (uint32_t)atoi(type + 1), type[0] == 's',
				 type[0] == 'x' ? 16 : 10);
}

static bool add_kind(struct ky_trace_class *trace, struct ky_stream_class *stream, size_t id,
		     const struct kind *kind)
{
	struct ky_event_class *event = ky_event_class_new(stream, id, kind->name);
	char fields[256], name[64], *rest = fields, *field, *colon;

	if (!event || !(event->payload = ky_struct_new(trace)))
		return false;
	snprintf(fields, sizeof(fields), "%s", kind->fields);
	while ((field = strsep(&rest, " "))) {
		colon = strchr(field, ':');
		*colon = '\0';
		snprintf(name, sizeof(name), "_%s", field);
		if (!add_field(trace, event->payload, name, colon + 1))
			return false;
	}
	return true;
}

static bool add_context(struct ky_trace_class *trace, struct ky_stream_class *stream)
{
	stream->event_context = ky_struct_new(trace);
	return stream->event_context &&
	       ky_struct_add_int(trace, stream->event_context, "_tid", 32, true, 10);
}

static bool describe(struct ky_trace_class *trace, const struct flavour *flavour)
{
	struct ky_clock_class *clock = ky_clock_class_new(trace, "monotonic");
	struct ky_stream_class *stream;

	trace->has_uuid = true;
	memcpy(trace->uuid, uuid, sizeof(uuid));
	if (!clock || ky_env_add_text(trace, "hostname", "bench") < 0 ||
	    ky_env_add_text(trace, "domain", "kernel") < 0 || ky_lttng_layout_trace(trace) < 0)
		return false;
	clock->frequency_hz = 1000000000;
	clock->offset_s = BASE_S;
	clock->is_unix_epoch = true;
	stream = ky_lttng_layout_stream(trace, 0, clock, flavour->compact);
	if (!stream || (flavour->has_context && !add_context(trace, stream)))
		return false;
	for (size_t i = 0; i < flavour->n_kinds; i++) {
		if (!add_kind(trace, stream, i, &flavour->kinds[i]))
			return false;
	}
	return true;
}

static int write_metadata(struct ky_store_trace *sink, const struct flavour *flavour,
			  struct kymo_error *err)
{
	struct ky_trace_class *trace = ky_trace_class_new();
	char *text = NULL;
	size_t len;
	int ret;

	if (!trace || !describe(trace, flavour))
		ret = ky_error_nomem(err);
	else
		ret = ky_trace_class_finish(trace, true, err);
	if (ret == KYMO_OK)
		ret = ky_tsdl_write(trace, &text, &len, err);
	if (ret == KYMO_OK)
		ret = ky_store_metadata(sink, text, len, err);
	free(text);
	ky_trace_class_free(trace);
	return ret;
}

/* ---- events ------------------------------------------------------------------------------ */

static int send_packet(struct ky_store_trace *sink, struct cpu *cpu, struct kymo_error *err)
{
	struct ky_packet_writer *w = &cpu->writer;
	uint64_t content_bits = (uint64_t)w->used_bytes * 8;
	uint32_t size = ky_packet_writer_close(w, cpu->cycles, 0, 4096);
	struct ky_packet_out out = {
		.data = w->data,
		.size_bytes = size,
		.content_bits = content_bits,
		.begin_cycles = w->begin_cycles,
		.end_cycles = cpu->cycles,
		.sequence = w->sequence,
		.stream_id = w->stream_id,
	};

	return ky_store_packet(sink, cpu->number, &out, err);
}

static uint32_t pick_kind(struct cpu *cpu)
{
	uint32_t dice = (uint32_t)(next_random(&cpu->random) >> 32) % 100, kind = 0;

	while (dice >= cpu->flavour->kinds[kind].weight)
		dice -= cpu->flavour->kinds[kind++].weight;
	return kind;
}

static int write_event(struct ky_store_trace *sink, struct cpu *cpu, uint32_t n_cpus,
		       struct kymo_error *err)
{
	uint32_t kind = pick_kind(cpu);
	struct body body = {.len = 0};
	uint8_t *at;
	int ret;

	cpu->cycles += 100 + next_random(&cpu->random) % (1000 * n_cpus);
	if (cpu->flavour->has_context)
		put(&body, cpu->tid, 4);
	cpu->flavour->kinds[kind].fill(&body, cpu);
	at = ky_packet_writer_event(&cpu->writer, kind, cpu->cycles, body.len);
	if (!at) {
		ret = send_packet(sink, cpu, err);
		if (ret < 0)
			return ret;
		ky_packet_writer_begin(&cpu->writer, cpu->cycles);
		at = ky_packet_writer_event(&cpu->writer, kind, cpu->cycles, body.len);
	}
	memcpy(at, body.data, body.len);
	return KYMO_OK;
}

static int write_streams(struct ky_store_trace *sink, struct cpu *cpus, const struct order *order,
			 struct kymo_error *err)
{
	char name[32];
	int ret = KYMO_OK;

	for (uint32_t i = 0; i < order->n_cpus && ret == KYMO_OK; i++) {
		struct cpu *cpu = &cpus[i];

		if (ky_packet_writer_init(&cpu->writer, order->packet_bytes, uuid, 0, i, i,
					  order->flavour->compact) < 0)
			return ky_error_nomem(err);
		snprintf(name, sizeof(name), "channel0_%u", i);
		ret = cpu->number = ky_store_stream(sink, name, err);
		cpu->cycles = START_CYCLES + i * 37;
		cpu->random = UINT64_C(0x9e3779b97f4a7c15) * (i + 1);
		cpu->tid = i;
		cpu->flavour = order->flavour;
		ky_packet_writer_begin(&cpu->writer, cpu->cycles);
		ret = ret < 0 ? ret : KYMO_OK;
		for (uint64_t n = i; n < order->n_events && ret == KYMO_OK; n += order->n_cpus)
			ret = write_event(sink, cpu, order->n_cpus, err);
		if (ret == KYMO_OK)
			ret = send_packet(sink, cpu, err);
		ky_packet_writer_fini(&cpu->writer);
	}
	return ret;
}

static int make_trace(const char *path, const struct order *order, struct kymo_error *err)
{
	struct cpu *cpus = calloc(order->n_cpus, sizeof(*cpus));
	struct ky_store_trace *sink;
	int ret, closed;

	if (!cpus)
		return ky_error_nomem(err);
	ret = ky_directory_trace_open(path, false, &sink, err);
	if (ret == KYMO_OK) {
		ret = write_metadata(sink, order->flavour, err);
		if (ret == KYMO_OK)
			ret = write_streams(sink, cpus, order, err);
		closed = ky_store_close(sink, ret < 0 ? NULL : err);
		ret = ret < 0 ? ret : closed;
	}
	free(cpus);
	return ret;
}

int main(int argc, char **argv)
{
	uint64_t n_events = 5000000, n_cpus = 4, kind = 0, packet_bytes = PACKET_BYTES;
	struct kymo_error err;
	struct order order;
	int option;

	while ((option = getopt(argc, argv, "n:s:k:p:")) != -1) {
		uint64_t *value = option == 'n'	  ? &n_events
				  : option == 's' ? &n_cpus
				  : option == 'p' ? &packet_bytes
						  : &kind;

		if (option == '?' || ky_parse_u64(optarg, value) < 0)
			return 2;
	}
	if (optind + 1 != argc || n_cpus < 1 || n_cpus > STREAMS_MAX || kind >= N_FLAVOURS ||
	    packet_bytes < PACKET_MIN || packet_bytes > PACKET_MAX) {
		fprintf(stderr,
			"usage: make-trace [-n EVENTS] [-s STREAMS] [-k KIND] [-p BYTES] DIR\n");
		return 2;
	}
	order = (struct order){&flavours[kind], n_events, (uint32_t)n_cpus, (uint32_t)packet_bytes};
	ky_error_clear(&err);
	if (make_trace(argv[optind], &order, &err) < 0) {
		fprintf(stderr, "make-trace: %s: %s\n", err.path, err.message);
		return 1;
	}
	return 0;
}
