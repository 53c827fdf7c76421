/* SPDX-License-Identifier: MIT */
/*
 * The state model, fed with packets that are written and decoded here: what the listeners hear.
 * The history is kept as text, one word or phrase for each notification.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/state/model.h"
#include "base/strbuf.h"
#include "ctf/resolve/lttng-layout.h"
#include "ctf/encode/packet-writer.h"

#define N_CPUS	    2
#define MAX_PACKETS 64
#define PACKET_SIZE 1024

enum {
	SWITCH,
	MIGRATE,
	FORK,
	EXEC,
	EXIT,
	ENTRY_READ,
	EXIT_READ,
	ENTRY_WRITE,
	EXIT_WRITE,
	ENTRY_UNKNOWN,
	EXIT_UNKNOWN,
	STATEDUMP,
	ATTACH,
	WAKING,
	SWITCH_STATE, /* with the state of the thread that goes */
	N_CLASSES,
};

struct fixture {
	struct ky_trace_class *cls;
	struct ky_event_class *classes[N_CLASSES];
	struct ky_trace trace;
	struct ky_trace *traces[1];
	struct ky_stream streams[N_CPUS];
	struct ky_stream *stream_list[N_CPUS];
	struct ky_trace_set set;
	struct ky_decoder *decoders[N_CPUS];
	struct ky_packet_writer writers[N_CPUS];
	uint8_t *packets[MAX_PACKETS];
	size_t n_packets;
	const char *const *names;
	const char *const (*fields)[6];
	const char *tracer;
	bool context; /* events carry the tid of their thread */
	struct ky_model *model;
	struct ky_strbuf history;
};

static void say(struct fixture *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct fixture *f, const char *fmt, ...)
{
	va_list ap;

	if (f->history.len)
		ky_strbuf_adds(&f->history, "; ");
	va_start(ap, fmt);
	ky_strbuf_addv(&f->history, fmt, ap);
	va_end(ap);
}

static int on_ran(void *data, const struct ky_cpu *cpu, enum ky_cpu_state state,
		  struct ky_thread *thread, int64_t begin_ns, int64_t end_ns)
{
	static const char *const names[] = {"unknown", "idle", "busy"};

	if (state == KY_CPU_BUSY)
		say(data, "%u:%d %d-%d", cpu->id, thread->tid, (int)begin_ns, (int)end_ns);
	else
		say(data, "%u:%s %d-%d", cpu->id, names[state], (int)begin_ns, (int)end_ns);
	return 0;
}

static int on_migrated(void *data, struct ky_thread *thread, int64_t ns)
{
	say(data, "%d to %d", thread->tid, thread->cpu);
	return 0;
}

static int on_call(void *data, const struct ky_call *call)
{
	static const char *const outcomes[] = {"done", "headless", "birth",  "torn",
					       "gone", "exited",   "unended"};
	struct fixture *f = data;

	if (call->outcome == KY_CALL_DONE)
		say(f, "%d %s %d=%d", call->thread->tid,
		    ky_model_syscall_name(f->model, call->syscall),
		    (int)(call->end_ns - call->begin_ns), (int)call->ret);
	else
		say(f, "%d %s %s", call->thread->tid,
		    ky_model_syscall_name(f->model, call->syscall), outcomes[call->outcome]);
	return 0;
}

static int on_lost(void *data, const struct ky_cpu *cpu, int64_t begin_ns, int64_t end_ns,
		   uint64_t events)
{
	say(data, "lost %d on %u %d-%d", (int)events, cpu->id, (int)begin_ns, (int)end_ns);
	return 0;
}

/* ---- the trace ------------------------------------------------------------------------- */

static const char *const class_names[N_CLASSES] = {
	"sched_switch",		 "sched_migrate_task",	 "sched_process_fork",
	"sched_process_exec",	 "sched_process_exit",	 "syscall_entry_read",
	"syscall_exit_read",	 "syscall_entry_write",	 "syscall_exit_write",
	"syscall_entry_unknown", "syscall_exit_unknown", "lttng_statedump_process_state",
	"cgroup_attach_task",	 "sched_waking",	 "sched_switch",
};

/* Fields in order; a name that ends in "comm" is 16 characters, else a signed 32-bit number. */
static const char *const class_fields[N_CLASSES][6] = {
	[SWITCH] = {"_prev_tid", "_next_tid", "_next_comm"},
	[MIGRATE] = {"_tid", "_dest_cpu"},
	[FORK] = {"_parent_tid", "_parent_pid", "_child_tid", "_child_pid"},
	[EXEC] = {"_tid", "_old_tid"},
	[EXIT] = {"_tid"},
	[EXIT_READ] = {"_ret"},
	[EXIT_WRITE] = {"_ret"},
	[ENTRY_UNKNOWN] = {"_id"},
	[EXIT_UNKNOWN] = {"_id", "_ret"},
	[STATEDUMP] = {"_tid", "_pid", "_ppid"},
	[ATTACH] = {"_pid", "_dst_id", "_dst_root"},
	[WAKING] = {"_tid", "_target_cpu"},
	[SWITCH_STATE] = {"_prev_tid", "_prev_state", "_next_tid"},
};

/* What perf's conversion to CTF calls them: the kernel's own words. */
static const char *const perf_names[N_CLASSES] = {
	"sched:sched_switch",
	"sched:sched_migrate_task",
	"sched:sched_process_fork",
	"sched:sched_process_exec",
	"sched:sched_process_exit",
	"syscalls:sys_enter_read",
	"syscalls:sys_exit_read",
	"syscalls:sys_enter_write",
	"syscalls:sys_exit_write",
	"raw_syscalls:sys_enter",
	"raw_syscalls:sys_exit",
	"unused",
	"unused",
	"unused",
	"unused",
};

static const char *const perf_fields[N_CLASSES][6] = {
	[SWITCH] = {"prev_pid", "next_pid", "next_comm"},
	[MIGRATE] = {"pid", "dest_cpu", "prio"},
	[FORK] = {"parent_pid", "child_pid"},
	[EXEC] = {"pid", "old_pid"},
	[EXIT] = {"pid"},
	[ENTRY_READ] = {"__syscall_nr"},
	[EXIT_READ] = {"__syscall_nr", "ret"},
	[ENTRY_WRITE] = {"__syscall_nr"},
	[EXIT_WRITE] = {"__syscall_nr", "ret"},
	[ENTRY_UNKNOWN] = {"id"},
	[EXIT_UNKNOWN] = {"id", "ret"},
};

/* LTTng before 2.6: no word for entries, one exit for all calls. */
static const char *const old_names[N_CLASSES] = {
	"sched_switch",
	"sched_migrate_task",
	"sched_process_fork",
	"sched_process_exec",
	"sched_process_exit",
	"sys_read",
	"exit_syscall",
	"compat_sys_write",
	"unused",
	"unused",
	"unused",
	"unused",
	"unused",
	"unused",
	"unused",
};

static void make_classes(struct fixture *f)
{
	struct ky_clock_class *clock;
	struct ky_stream_class *stream;
	struct kymo_error err;

	f->cls = ky_trace_class_new();
	assert_non_null(f->cls);
	if (f->tracer)
		assert_int_equal(ky_env_add_text(f->cls, "tracer_name", f->tracer), 0);
	clock = ky_clock_class_new(f->cls, "monotonic");
	clock->frequency_hz = 1000000000;
	assert_int_equal(ky_lttng_layout_trace(f->cls), 0);
	stream = ky_lttng_layout_stream(f->cls, 0, clock, false);
	assert_non_null(stream);
	if (f->context) {
		stream->event_context = ky_struct_new(f->cls);
		ky_struct_add_int(f->cls, stream->event_context, "_tid", 32, true, 10);
	}
	for (int i = 0; i < N_CLASSES; i++) {
		f->classes[i] = ky_event_class_new(stream, (uint64_t)i, f->names[i]);
		f->classes[i]->payload = ky_struct_new(f->cls);
		for (int n = 0; n < 6 && f->fields[i][n]; n++) {
			const char *name = f->fields[i][n];

			if (strstr(name, "comm"))
				ky_struct_add_text(f->cls, f->classes[i]->payload, name, 16);
			else
				ky_struct_add_int(f->cls, f->classes[i]->payload, name, 32, true,
						  10);
		}
	}
	assert_int_equal(ky_trace_class_finish(f->cls, true, &err), 0);
}

static void setup_names(struct fixture *f, bool context, const char *const *names,
			const char *const (*fields)[6], const char *tracer)
{
	struct ky_listener listener = {.data = f,
				       .ran = on_ran,
				       .migrated = on_migrated,
				       .call = on_call,
				       .lost = on_lost};
	uint8_t uuid[16] = {0};

	memset(f, 0, sizeof(*f));
	f->context = context;
	f->names = names;
	f->fields = fields;
	f->tracer = tracer;
	make_classes(f);
	f->trace = (struct ky_trace){.path = "test", .cls = f->cls};
	f->traces[0] = &f->trace;
	f->set.traces.data = f->traces;
	f->set.traces.len = 1;
	f->set.streams.data = f->stream_list;
	f->set.streams.len = N_CPUS;
	for (uint32_t i = 0; i < N_CPUS; i++) {
		f->streams[i] = (struct ky_stream){.trace = &f->trace,
						   .index = i,
						   .name = "c",
						   .cls = f->cls->streams.data[0],
						   .has_cpu_id = true,
						   .cpu_id = i};
		f->stream_list[i] = &f->streams[i];
		f->decoders[i] = ky_decoder_new(f->cls);
		assert_non_null(f->decoders[i]);
		assert_int_equal(
			ky_packet_writer_init(&f->writers[i], PACKET_SIZE, uuid, 0, i, i, false),
			0);
	}
	f->model = ky_model_new(&f->set, NULL);
	assert_non_null(f->model);
	assert_int_equal(ky_model_listen(f->model, &listener), 0);
}

static void setup(struct fixture *f, bool context)
{
	setup_names(f, context, class_names, class_fields, NULL);
}

static void teardown(struct fixture *f)
{
	ky_model_free(f->model);
	for (uint32_t i = 0; i < N_CPUS; i++) {
		ky_decoder_free(f->decoders[i]);
		ky_packet_writer_fini(&f->writers[i]);
	}
	for (size_t i = 0; i < f->n_packets; i++)
		free(f->packets[i]);
	ky_trace_class_free(f->cls);
	ky_strbuf_fini(&f->history);
}

/* What was heard since the last call. */
static const char *heard(struct fixture *f)
{
	static char text[4096];

	snprintf(text, sizeof(text), "%s", ky_strbuf_text(&f->history));
	ky_strbuf_clear(&f->history);
	return text;
}

static const char *at_end(struct fixture *f)
{
	assert_int_equal(ky_model_end(f->model, NULL), 0);
	return heard(f);
}

static void feed(struct fixture *f, uint32_t cpu, int64_t ns, int cls, const void *body,
		 uint32_t size, const struct ky_loss *loss)
{
	struct ky_packet_writer *writer = &f->writers[cpu];
	const struct ky_packet *packet;
	struct ky_event event;
	struct kymo_error err;
	uint32_t packet_size;
	uint8_t *at, *copy;

	ky_packet_writer_begin(writer, (uint64_t)ns);
	at = ky_packet_writer_event(writer, (uint32_t)cls, (uint64_t)ns, size);
	assert_non_null(at);
	memcpy(at, body, size);
	packet_size = ky_packet_writer_close(writer, (uint64_t)ns, 0, 8);
	copy = malloc(packet_size);
	assert_true(f->n_packets < MAX_PACKETS);
	f->packets[f->n_packets++] = copy;
	memcpy(copy, writer->data, packet_size);
	assert_int_equal(ky_decoder_packet(f->decoders[cpu], copy, packet_size, 0, &packet, &err),
			 0);
	assert_int_equal(ky_decoder_next(f->decoders[cpu], &event, 1, &err), 1);
	assert_int_equal(event.ns, ns);
	assert_int_equal(event.cpu_id, cpu);
	assert_int_equal(ky_model_feed(f->model,
				       &(struct ky_batch){.stream = &f->streams[cpu],
							  .events = &event,
							  .n_events = 1,
							  .loss = loss},
				       &err),
			 0);
}

/* @tid: the context, where there is one; then the payload's numbers, in order. */
static void emit(struct fixture *f, uint32_t cpu, int64_t ns, int cls, int32_t tid, int32_t a,
		 int32_t b, int32_t c, int32_t d)
{
	int32_t words[5] = {tid, a, b, c, d};
	const int32_t *body = f->context ? words : words + 1;
	uint32_t n = f->context;

	while (n - f->context < 6 && f->fields[cls][n - f->context])
		n++;
	feed(f, cpu, ns, cls, body, n * 4, NULL);
}

static void sched(struct fixture *f, uint32_t cpu, int64_t ns, int32_t prev, int32_t next,
		  const struct ky_loss *loss)
{
	uint8_t body[28] = {0};
	uint32_t at = 0;

	if (f->context) {
		memcpy(body, &prev, 4);
		at = 4;
	}
	memcpy(body + at, &prev, 4);
	memcpy(body + at + 4, &next, 4);
	snprintf((char *)body + at + 8, 16, "comm-%d", next);
	feed(f, cpu, ns, SWITCH, body, at + 24, loss);
}

/* ---- CPUs ------------------------------------------------------------------------------ */

/* The first switch tells what ran before it, and the end what runs then. */
static void test_switches(void **state)
{
	struct fixture f;

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	sched(&f, 1, 110, 8, 0, NULL);
	assert_string_equal(heard(&f), "1:8 100-110");
	sched(&f, 0, 130, 7, 9, NULL);
	sched(&f, 1, 150, 0, 7, NULL);
	assert_string_equal(heard(&f), "0:7 100-130; 1:idle 110-150; 7 to 1");
	sched(&f, 0, 160, 9, 0, NULL);
	assert_string_equal(at_end(&f), "0:9 130-160; 1:7 150-160");
	assert_string_equal(ky_model_thread(f.model, 0)->comm, "comm-7");
	teardown(&f);
}

/* A CPU of which nothing is heard stays unknown; nobody says that it was idle. */
static void test_silent_cpu(void **state)
{
	struct fixture f;

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	sched(&f, 0, 200, 7, 0, NULL);
	assert_string_equal(at_end(&f), "0:7 100-200");
	assert_int_equal(ky_model_n_cpus(f.model), 2);
	assert_int_equal(ky_model_cpu(f.model, 1)->state, KY_CPU_UNKNOWN);
	teardown(&f);
}

/* A stream whose first packets are gone knows nothing of the time before. */
static void test_flight_recorder(void **state)
{
	struct fixture f;

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	f.writers[1].sequence = 5;
	sched(&f, 1, 150, 8, 0, NULL); /* its packet begins at 150 */
	sched(&f, 1, 170, 0, 8, NULL);
	assert_string_equal(at_end(&f), "1:idle 150-170; 0:7 100-170");
	teardown(&f);
}

/* Switches that were filtered out: the time since the last one is unknown. */
static void test_missing_switch(void **state)
{
	struct fixture f;

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	sched(&f, 0, 200, 8, 9, NULL);
	sched(&f, 0, 300, 9, 0, NULL);
	assert_string_equal(at_end(&f), "0:unknown 100-200; 0:9 200-300");
	teardown(&f);
}

/* From the first contradiction on, contexts are signs of what runs. */
static void test_missing_switches_and_signs(void **state)
{
	struct fixture f;

	setup(&f, true);
	sched(&f, 0, 100, 7, 0, NULL);
	emit(&f, 0, 140, MIGRATE, 0, 9, 1, 0, 0); /* idle, but nobody doubts it yet */
	sched(&f, 0, 150, 8, 0, NULL);
	assert_string_equal(heard(&f), "9 to 1; 0:unknown 100-150");
	emit(&f, 0, 160, MIGRATE, 0, 9, 1, 0, 0);
	emit(&f, 0, 170, MIGRATE, 0, 9, 1, 0, 0); /* the last sign of idleness */
	emit(&f, 0, 180, MIGRATE, 8, 9, 1, 0, 0); /* the first of 8 */
	sched(&f, 0, 200, 8, 0, NULL);
	assert_string_equal(heard(&f), "9 to 1; 9 to 1; 0:idle 150-170; 0:unknown 170-180; 9 to 1; "
				       "0:8 180-200");
	assert_int_equal(ky_model_cpu(f.model, 0)->missing, 2);
	teardown(&f);
}

static void test_loss(void **state)
{
	struct fixture f;
	struct ky_loss loss = {.events = 12, .begin_ns = 150, .end_ns = 180};

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	sched(&f, 0, 200, 8, 0, &loss); /* 8 ran since the gap's end */
	assert_string_equal(heard(&f),
			    "0:7 100-150; lost 12 on 0 150-180; 0:unknown 150-180; 0:8 180-200");
	assert_int_equal(ky_model_host(f.model, 0)->lost_events, 12);
	teardown(&f);
}

/* ---- intervals ------------------------------------------------------------------------- */

static int on_tick(void *data)
{
	struct fixture *f = data;

	say(f, "until %d", (int)ky_model_end_ns(f->model));
	return 0;
}

/* Of 100 ns each. CPU 1 takes part from the first moment on, with thread 5. */
static void setup_intervals(struct fixture *f)
{
	setup(f, false);
	ky_model_every(f->model, 100, on_tick, f);
	sched(f, 0, 100, 0, 7, NULL);
	sched(f, 1, 100, 0, 5, NULL);
	assert_string_equal(heard(f), "");
}

/* A loss on CPU 0, without events; nothing is to be told any more. */
static void feed_over(struct fixture *f, const struct ky_loss *loss)
{
	struct ky_batch batch = {.stream = &f->streams[0], .loss = loss};
	struct kymo_error err;

	assert_int_equal(ky_model_feed(f->model, &batch, &err), 1);
}

static void lose_late(struct fixture *f)
{
	struct ky_loss loss = {.events = 12, .begin_ns = 150, .end_ns = 380, .ns = 350};

	sched(f, 1, 310, 5, 5, NULL);
	sched(f, 0, 350, 8, 9, &loss);
	sched(f, 0, 390, 9, 0, NULL);
}

/* What is not known behind a border is the next interval's. */
static void test_loss_beyond_borders(void **state)
{
	struct ky_loss loss = {.events = 12, .begin_ns = 150, .end_ns = 480, .ns = 160};
	struct fixture f;

	setup_intervals(&f);
	sched(&f, 0, 160, 8, 9, &loss);
	assert_string_equal(heard(&f), "0:7 100-150; lost 12 on 0 150-480; 0:unknown 150-160");
	sched(&f, 1, 310, 5, 5, NULL);
	assert_string_equal(heard(&f), "0:unknown 160-200; 1:5 100-200; until 200; "
				       "0:unknown 200-300; 1:5 200-300; until 300; 1:5 300-310");
	sched(&f, 0, 470, 9, 6, NULL);
	sched(&f, 0, 490, 6, 0, NULL);
	assert_string_equal(heard(&f), "0:unknown 300-400; 1:5 310-400; until 400; "
				       "0:unknown 400-470; 0:unknown 470-480; 0:6 480-490");
	assert_false(ky_model_hindsight(f.model));
	teardown(&f);
}

/* Events were lost before the border, which is found after it: the second pass knows. */
static void test_loss_over_a_border(void **state)
{
	struct fixture f, again;

	setup_intervals(&f);
	lose_late(&f);
	assert_string_equal(heard(&f), "0:7 100-200; 1:5 100-200; until 200; "
				       "0:7 200-300; 1:5 200-300; until 300; 1:5 300-310; "
				       "lost 12 on 0 150-380; 0:unknown 300-350; "
				       "0:unknown 350-380; 0:9 380-390");
	assert_true(ky_model_hindsight(f.model));
	setup_intervals(&again);
	assert_int_equal(ky_model_foresee(again.model, f.model), 0);
	lose_late(&again);
	assert_string_equal(heard(&again),
			    "0:7 100-150; 0:unknown 150-200; 1:5 100-200; until 200; "
			    "0:unknown 200-300; 1:5 200-300; until 300; "
			    "1:5 300-310; lost 12 on 0 150-380; "
			    "0:unknown 300-350; 0:unknown 350-380; 0:9 380-390");
	teardown(&again);
	teardown(&f);
}

/* A loss behind a border is the next interval's: nothing else need have told that it was over. */
static void test_loss_behind_a_border(void **state)
{
	struct ky_loss loss = {.events = 12, .begin_ns = 150, .end_ns = 380, .ns = 350};
	struct fixture f;

	setup_intervals(&f);
	sched(&f, 0, 350, 8, 9, &loss);
	assert_string_equal(heard(&f), "0:7 100-200; 1:5 100-200; until 200; "
				       "0:7 200-300; 1:5 200-300; until 300; "
				       "lost 12 on 0 150-380; 0:unknown 300-350");
	assert_int_equal(ky_model_host(f.model, 0)->lost_events, 12);
	teardown(&f);
}

/* The range begins, or ends, in a gap of lost events. */
static void test_range_and_loss(void **state)
{
	struct ky_loss loss = {.events = 12, .begin_ns = 150, .end_ns = 380, .ns = 350};
	struct ky_focus focus;
	struct fixture f;

	ky_focus_init(&focus);
	focus.begin_ns = 300;
	setup(&f, false);
	ky_model_set_focus(f.model, &focus);
	sched(&f, 0, 100, 0, 7, NULL);
	sched(&f, 0, 350, 8, 9, &loss);
	sched(&f, 0, 390, 9, 0, NULL);
	assert_string_equal(heard(&f), "lost 12 on 0 150-380; 0:unknown 300-350; "
				       "0:unknown 350-380; 0:9 380-390");
	assert_int_equal(ky_model_host(f.model, 0)->lost_events, 12);
	teardown(&f);

	focus.begin_ns = INT64_MIN;
	focus.end_ns = 299;
	setup(&f, false);
	ky_model_set_focus(f.model, &focus);
	sched(&f, 0, 100, 0, 7, NULL);
	feed_over(&f, &loss);
	assert_string_equal(at_end(&f), "0:7 100-299");
	assert_int_equal(ky_model_host(f.model, 0)->lost_events, 0);
	teardown(&f);
	ky_focus_fini(&focus);
}

static void lose_and_be_silent(struct fixture *f)
{
	struct ky_loss loss = {.events = 12, .begin_ns = 150, .end_ns = 180, .ns = 160};
	int32_t body[3] = {42, 42, 1};

	feed(f, 0, 160, STATEDUMP, body, sizeof(body), &loss);
	sched(f, 1, 210, 5, 5, NULL);
	sched(f, 0, 250, 8, 0, NULL);
}

/* The first event after the border names the thread that ran since the gap. */
static void test_silence_behind_a_loss(void **state)
{
	struct fixture f, again;

	setup_intervals(&f);
	lose_and_be_silent(&f);
	assert_string_equal(heard(&f), "0:7 100-150; lost 12 on 0 150-180; 0:unknown 150-180; "
				       "0:unknown 180-200; 1:5 100-200; until 200; 1:5 200-210; "
				       "0:8 200-250");
	assert_true(ky_model_hindsight(f.model));
	setup_intervals(&again);
	assert_int_equal(ky_model_foresee(again.model, f.model), 0);
	lose_and_be_silent(&again);
	assert_string_equal(heard(&again), "0:7 100-150; lost 12 on 0 150-180; 0:unknown 150-180; "
					   "0:8 180-200; 1:5 100-200; until 200; 1:5 200-210; "
					   "0:8 200-250");
	teardown(&again);
	teardown(&f);
}

static void test_migrations(void **state)
{
	struct fixture f;

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	sched(&f, 0, 110, 7, 0, NULL);
	heard(&f);
	emit(&f, 1, 120, MIGRATE, 0, 7, 1, 0, 0);
	assert_string_equal(heard(&f), "7 to 1");
	sched(&f, 1, 130, 0, 7, NULL); /* where the event said: the same migration */
	assert_string_equal(heard(&f), "1:idle 100-130");
	sched(&f, 1, 140, 7, 0, NULL);
	sched(&f, 0, 150, 0, 7, NULL); /* without an event */
	assert_string_equal(heard(&f), "1:7 130-140; 0:idle 110-150; 7 to 0");
	teardown(&f);
}

/* ---- calls ----------------------------------------------------------------------------- */

/* Entry on one CPU, exit on another, with another thread's call in between. */
static void test_call_migrates(void **state)
{
	struct fixture f;

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	emit(&f, 0, 110, ENTRY_READ, 7, 0, 0, 0, 0);
	sched(&f, 0, 120, 7, 8, NULL);
	emit(&f, 0, 130, ENTRY_WRITE, 8, 0, 0, 0, 0);
	sched(&f, 1, 140, 0, 7, NULL);
	heard(&f);
	emit(&f, 1, 150, EXIT_READ, 7, 42, 0, 0, 0);
	emit(&f, 0, 160, EXIT_WRITE, 8, -11, 0, 0, 0);
	assert_string_equal(heard(&f), "7 read 40=42; 8 write 30=-11");
	teardown(&f);
}

static void test_unpaired_calls(void **state)
{
	struct fixture f;

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	emit(&f, 0, 110, EXIT_READ, 7, 0, 0, 0, 0);	 /* began before the trace */
	emit(&f, 0, 120, ENTRY_UNKNOWN, 7, 15, 0, 0, 0); /* rt_sigreturn: no exit */
	emit(&f, 0, 130, ENTRY_READ, 7, 0, 0, 0, 0);
	emit(&f, 0, 140, EXIT_READ, 7, 1, 0, 0, 0);
	assert_string_equal(heard(&f), "7 read headless; 7 syscall 15 gone; 7 read 10=1");
	emit(&f, 0, 150, FORK, 7, 7, 7, 20, 20);
	sched(&f, 1, 160, 0, 20, NULL);
	heard(&f);
	emit(&f, 1, 170, EXIT_UNKNOWN, 20, 56, 0, 0, 0); /* the child's side of clone */
	emit(&f, 1, 180, ENTRY_UNKNOWN, 20, 231, 0, 0, 0);
	emit(&f, 1, 190, EXIT, 20, 20, 0, 0, 0);
	emit(&f, 0, 195, ENTRY_WRITE, 7, 0, 0, 0, 0);
	assert_string_equal(heard(&f), "20 syscall 56 birth; 20 syscall 231 exited");
	assert_string_equal(at_end(&f), "0:7 100-195; 1:20 160-195; 7 write unended");
	teardown(&f);
}

/* Where rt_sigreturn ends, the number is the one from before the signal: none. */
static void test_call_without_number(void **state)
{
	struct fixture f;

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	emit(&f, 0, 110, ENTRY_UNKNOWN, 7, 15, 0, 0, 0);
	emit(&f, 0, 120, EXIT_UNKNOWN, 7, -1, 0, 0, 0);
	emit(&f, 0, 130, EXIT_UNKNOWN, 7, -1, 0, 0, 0);
	emit(&f, 0, 140, ENTRY_UNKNOWN, 7, -1, 0, 0, 0);
	emit(&f, 0, 150, EXIT_UNKNOWN, 7, -1, 0, 0, 0);
	assert_string_equal(heard(&f), "7 syscall 15 10=0; 7 syscall -1 10=0");
	teardown(&f);
}

/* An exit of another call than the one under way measures neither. */
static void test_mismatched_call(void **state)
{
	struct fixture f;

	setup(&f, false);
	sched(&f, 0, 100, 0, 7, NULL);
	emit(&f, 0, 110, ENTRY_READ, 7, 0, 0, 0, 0);
	emit(&f, 0, 120, EXIT_WRITE, 7, 0, 0, 0, 0);
	assert_string_equal(heard(&f), "7 read gone; 7 write headless");
	teardown(&f);
}

static void test_call_over_loss(void **state)
{
	struct fixture f;
	struct ky_loss loss = {.events = 1, .begin_ns = 115, .end_ns = 118};

	setup(&f, true);
	sched(&f, 0, 100, 0, 7, NULL);
	emit(&f, 0, 110, ENTRY_READ, 7, 0, 0, 0, 0);
	sched(&f, 1, 120, 0, 8, &loss);
	heard(&f);
	emit(&f, 0, 130, EXIT_READ, 7, 0, 0, 0, 0); /* may be another read's */
	emit(&f, 0, 140, ENTRY_READ, 7, 0, 0, 0, 0);
	emit(&f, 0, 150, EXIT_READ, 7, 0, 0, 0, 0);
	assert_string_equal(heard(&f), "7 read torn; 7 read 10=0");
	teardown(&f);
}

/* ---- context --------------------------------------------------------------------------- */

/* Any event's context tells what a CPU runs, as well as a switch. */
static void test_context(void **state)
{
	struct fixture f;

	setup(&f, true);
	emit(&f, 0, 100, ENTRY_READ, 7, 0, 0, 0, 0);
	emit(&f, 1, 110, EXIT, 8, 8, 0, 0, 0);
	emit(&f, 0, 120, EXIT_READ, 7, 5, 0, 0, 0);
	assert_string_equal(heard(&f), "1:8 100-110; 7 read 20=5");
	assert_string_equal(at_end(&f), "0:7 100-120; 1:8 110-120");
	teardown(&f);
}

/* A recorder may write the state dump on its own: it tells of threads, not of a CPU. */
static void test_state_dump(void **state)
{
	struct fixture f;

	setup(&f, true);
	emit(&f, 1, 100, STATEDUMP, 7, 30, 28, 5, 0);
	emit(&f, 0, 110, ENTRY_READ, 30, 0, 0, 0, 0);
	assert_string_equal(at_end(&f), "0:30 100-110; 30 read unended");
	assert_int_equal(ky_model_cpu(f.model, 1)->state, KY_CPU_UNKNOWN);
	assert_int_equal(ky_model_thread(f.model, 0)->pid, 28);
	assert_int_equal(ky_model_thread(f.model, 0)->ppid, 5);
	teardown(&f);
}

/* ---- lives ----------------------------------------------------------------------------- */

/* Control groups are followed for those who ask; a first thread takes its process along. */
static void test_cgroups(void **state)
{
	struct ky_focus focus;
	struct fixture f;

	ky_focus_init(&focus);
	for (int asks = 0; asks < 2; asks++) {
		focus.by_cgroup = asks;
		setup(&f, true);
		ky_model_set_focus(f.model, &focus);
		emit(&f, 0, 100, STATEDUMP, 7, 30, 30, 5, 0);
		emit(&f, 0, 110, STATEDUMP, 7, 31, 30, 5, 0);
		emit(&f, 0, 120, STATEDUMP, 7, 40, 40, 5, 0);
		emit(&f, 0, 130, ATTACH, 7, 30, 4711, 0, 0);
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(ky_model_thread(f.model, i)->cgroup,
					 asks && i < 2 ? 4711 : 0);
		teardown(&f);
	}
	ky_focus_fini(&focus);
}

static int on_off(void *data, const struct ky_time_off *time)
{
	static const char *const kinds[] = {
		[KY_OFF_READY] = "ready",
		[KY_OFF_SLEEP] = "sleeps",
		[KY_OFF_DISK] = "disk",
		[KY_OFF_OTHER] = "other",
	};

	say(data, "%d %s %d-%d", time->thread->tid, kinds[time->kind], (int)time->begin_ns,
	    (int)time->end_ns);
	if (time->woken)
		say(data, "woken by %d", time->woken->waker ? time->woken->waker->tid : 0);
	return 0;
}

/* A time off the CPU that a wake-up ends says which thread woke it; others say none. */
static void test_wakers(void **state)
{
	struct ky_listener listener = {.off = on_off};
	struct fixture f;

	(void)state;
	setup(&f, true);
	listener.data = &f;
	assert_int_equal(ky_model_listen(f.model, &listener), 0);
	emit(&f, 0, 100, SWITCH_STATE, 7, 7, 1, 0, 0);
	emit(&f, 1, 110, SWITCH_STATE, 0, 0, 0, 8, 0);
	(void)heard(&f);
	emit(&f, 1, 150, WAKING, 8, 7, 0, 0, 0);
	assert_string_equal(heard(&f), "7 sleeps 100-150; woken by 8");
	emit(&f, 0, 160, SWITCH_STATE, 0, 0, 0, 7, 0);
	assert_non_null(strstr(heard(&f), "7 ready 150-160"));
	/* A thread that could run on is off until the switch to it. */
	emit(&f, 0, 170, SWITCH_STATE, 7, 7, 0, 9, 0);
	emit(&f, 0, 190, SWITCH_STATE, 9, 9, 0, 7, 0);
	assert_null(strstr(heard(&f), "woken"));
	teardown(&f);
}

static void test_lives(void **state)
{
	struct fixture f;

	setup(&f, false);
	emit(&f, 0, 100, FORK, 0, 1, 1, 20, 20);
	sched(&f, 0, 110, 1, 20, NULL);
	emit(&f, 0, 120, EXIT, 0, 20, 0, 0, 0);
	sched(&f, 0, 130, 20, 1, NULL);
	emit(&f, 0, 140, FORK, 0, 1, 1, 20, 1); /* the id again: a thread of 1 now */
	sched(&f, 0, 150, 1, 20, NULL);
	assert_int_equal(ky_model_n_threads(f.model), 3);
	assert_true(ky_model_thread(f.model, 1)->dead);
	assert_int_equal(ky_model_thread(f.model, 1)->pid, 20);
	assert_int_equal(ky_model_thread(f.model, 2)->tid, 20);
	assert_int_equal(ky_model_thread(f.model, 2)->pid, 1);
	assert_false(ky_model_thread(f.model, 2)->dead);
	/* exec by a thread that is not the first: it becomes the first */
	emit(&f, 0, 160, EXEC, 0, 1, 20, 0, 0);
	heard(&f);
	sched(&f, 0, 170, 1, 0, NULL);
	assert_string_equal(heard(&f), "0:1 150-170");
	assert_int_equal(ky_model_thread(f.model, 2)->tid, 1);
	teardown(&f);
}

/* ---- names ----------------------------------------------------------------------------- */

static void test_perf_names(void **state)
{
	struct fixture f;

	setup_names(&f, false, perf_names, perf_fields, NULL);
	sched(&f, 0, 100, 0, 7, NULL);
	emit(&f, 0, 110, ENTRY_READ, 0, 0, 0, 0, 0);
	emit(&f, 0, 110, ENTRY_UNKNOWN, 0, 0, 0, 0, 0); /* the same call by its number */
	emit(&f, 0, 120, MIGRATE, 0, 7, 1, 120, 0);
	emit(&f, 0, 130, FORK, 0, 7, 20, 0, 0);
	emit(&f, 0, 140, EXIT_READ, 0, 0, -4, 0, 0);
	assert_string_equal(heard(&f), "7 to 1; 7 read 30=-4");
	assert_int_equal(ky_model_thread(f.model, 0)->prio, 20); /* nice 0 on LTTng's scale */
	assert_int_equal(ky_model_thread(f.model, 1)->tid, 20);
	assert_int_equal(ky_model_thread(f.model, 1)->pid, KY_UNKNOWN);
	teardown(&f);
}

static void test_old_lttng_names(void **state)
{
	struct fixture f;

	setup_names(&f, false, old_names, class_fields, "lttng-modules");
	sched(&f, 0, 100, 0, 7, NULL);
	emit(&f, 0, 110, ENTRY_READ, 0, 0, 0, 0, 0);
	emit(&f, 0, 120, EXIT_READ, 0, 3, 0, 0, 0);
	emit(&f, 0, 130, ENTRY_WRITE, 0, 0, 0, 0, 0);
	emit(&f, 0, 150, EXIT_READ, 0, 4, 0, 0, 0);
	assert_string_equal(heard(&f), "7 read 10=3; 7 compat_write 20=4");
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switches),
		cmocka_unit_test(test_silent_cpu),
		cmocka_unit_test(test_flight_recorder),
		cmocka_unit_test(test_missing_switch),
		cmocka_unit_test(test_missing_switches_and_signs),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_loss_beyond_borders),
		cmocka_unit_test(test_loss_over_a_border),
		cmocka_unit_test(test_silence_behind_a_loss),
		cmocka_unit_test(test_loss_behind_a_border),
		cmocka_unit_test(test_range_and_loss),
		cmocka_unit_test(test_migrations),
		cmocka_unit_test(test_call_migrates),
		cmocka_unit_test(test_unpaired_calls),
		cmocka_unit_test(test_call_without_number),
		cmocka_unit_test(test_mismatched_call),
		cmocka_unit_test(test_call_over_loss),
		cmocka_unit_test(test_context),
		cmocka_unit_test(test_cgroups),
		cmocka_unit_test(test_lives),
		cmocka_unit_test(test_wakers),
		cmocka_unit_test(test_state_dump),
		cmocka_unit_test(test_perf_names),
		cmocka_unit_test(test_old_lttng_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
