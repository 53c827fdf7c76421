/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include "base/bits.h"
#include "ctf/resolve/lttng-layout.h"
#include "kernel/convert/convert.h"
#include "ring-data.h"

#define PACKET_BYTES 65536

/* Event ids: the order in which they are added. */
enum { SWITCH, EXEC, FORK, OPENAT, OPENAT_EXIT, ISSUE, MIGRATE, NEWTASK };

struct fixture {
	struct ky_arena arena;
	struct ky_trace_class *trace;
	struct ky_convert convert;
	struct ky_convert_cpu cpu;
	struct ky_threads threads;
	uint64_t kernel_lost;
	/* What send_packet() saw. */
	unsigned int packets;
	uint64_t lost_before; /* cpu->lost at the last packet */
};

static int send_packet(struct ky_convert_cpu *cpu, uint64_t end_cycles, struct kymo_error *err)
{
	struct fixture *f = cpu->data;

	(void)err;
	ky_packet_writer_close(&cpu->writer, end_cycles, cpu->lost, 8);
	f->lost_before = cpu->lost;
	f->packets++;
	return 0;
}

static uint64_t lost_until_now(struct ky_convert_cpu *cpu)
{
	return ((struct fixture *)cpu->data)->kernel_lost;
}

static void add(struct fixture *f, struct ky_stream_class *stream, const char *system,
		const char *name, uint32_t id)
{
	struct ky_event_class *event = ky_event_class_new(stream, id, name);
	struct ky_format format;

	ring_format(&f->arena, name, &format);
	assert_non_null(event);
	assert_int_equal(ky_convert_add(&f->convert, system, &format, event, NULL), 0);
	assert_non_null(event->payload);
}

static void set_up(struct fixture *f, unsigned int context)
{
	static const uint8_t uuid[16] = {0};
	struct ky_clock_class *clock;
	struct ky_stream_class *stream;

	memset(f, 0, sizeof(*f));
	ky_arena_init(&f->arena);
	f->trace = ky_trace_class_new();
	clock = ky_clock_class_new(f->trace, "tsc");
	ky_lttng_layout_trace(f->trace);
	stream = ky_lttng_layout_stream(f->trace, 0, clock, false);
	assert_int_equal(ky_convert_init(&f->convert, context, NULL), 0);
	assert_int_equal(ky_threads_init(&f->threads, NULL), 0);
	f->convert.threads = &f->threads;
	f->convert.packet = send_packet;
	stream->event_context = ky_convert_context_class(&f->convert, f->trace);
	add(f, stream, "sched", "sched_switch", SWITCH);
	add(f, stream, "sched", "sched_process_exec", EXEC);
	add(f, stream, "sched", "sched_process_fork", FORK);
	add(f, stream, "syscalls", "sys_enter_openat", OPENAT);
	add(f, stream, "syscalls", "sys_exit_openat", OPENAT_EXIT);
	add(f, stream, "block", "block_rq_issue", ISSUE);
	add(f, stream, "sched", "sched_migrate_task", MIGRATE);
	add(f, stream, "task", "task_newtask", NEWTASK);
	assert_int_equal(ky_trace_class_finish(f->trace, true, NULL), 0);
	f->cpu.convert = &f->convert;
	f->cpu.data = f;
	assert_int_equal(ky_packet_writer_init(&f->cpu.writer, PACKET_BYTES, uuid, 0, 0, 0, false),
			 0);
	ky_packet_writer_begin(&f->cpu.writer, 0);
}

static void tear_down(struct fixture *f)
{
	ky_packet_writer_fini(&f->cpu.writer);
	ky_threads_fini(&f->threads);
	ky_convert_fini(&f->convert);
	ky_trace_class_free(f->trace);
	ky_arena_fini(&f->arena);
}

static void give_page(struct fixture *f, const uint8_t *data, size_t len)
{
	static const struct ky_page_layout layout = {0, 8, 8, 16};
	struct ky_page page;

	assert_int_equal(ky_page_open(&layout, data, (uint32_t)len, &page, NULL), 0);
	assert_int_equal(ky_convert_page(&f->cpu, &page, NULL), 0);
}

static void convert_page(struct fixture *f, const uint8_t *page, size_t len)
{
	give_page(f, page, len);
	assert_int_equal(ky_convert_run(&f->cpu, UINT64_MAX, NULL), 0);
}

/* Walks the packet that is being written. */
struct reader {
	const uint8_t *at, *end;
	uint32_t id;
	int32_t tid;
};

static void begin_reading(const struct fixture *f, struct reader *r)
{
	r->at = f->cpu.writer.data + KY_PACKET_PROLOG_BYTES;
	r->end = f->cpu.writer.data + f->cpu.writer.used_bytes;
}

static uint64_t take(struct reader *r, unsigned int bytes)
{
	uint64_t value = ky_read_bits(r->at, 0, bytes * 8, false);

	r->at += bytes;
	assert_true(r->at <= r->end);
	return value;
}

static const char *take_text(struct reader *r, size_t len)
{
	const char *text = (const char *)r->at;

	r->at += len;
	return text;
}

static void take_header(struct reader *r)
{
	r->id = (uint32_t)take(r, 2);
	if (r->id == 0xffff) {
		r->id = (uint32_t)take(r, 4);
		take(r, 8);
	} else {
		take(r, 4);
	}
	r->tid = (int32_t)take(r, 4);
}

static void check_newtask_and_fork(struct reader *r)
{
	take_header(r);
	assert_int_equal(r->id, NEWTASK);
	assert_int_equal(r->tid, 2505);
	assert_int_equal(take(r, 4), 2547);
	assert_string_equal(take_text(r, 16), "python3");
	assert_int_equal(take(r, 8), 0x4100);
	assert_int_equal(take(r, 2), 0);

	take_header(r);
	assert_int_equal(r->id, FORK);
	assert_string_equal(take_text(r, 16), "python3");
	assert_int_equal(take(r, 4), 2505);
	take(r, 4); /* the parent's pid: what /proc says here */
	assert_string_equal(take_text(r, 16), "python3");
	assert_int_equal(take(r, 4), 2547);
	assert_int_equal(take(r, 4), 2547);
}

static void test_real_page(void **state)
{
	struct reader r;
	struct fixture f;
	size_t len;
	uint8_t *page = ring_data("page-0", &len);

	(void)state;
	set_up(&f, 0);
	convert_page(&f, page, len);
	assert_int_equal(f.cpu.events, 12);
	assert_int_equal(f.cpu.bad, 0);
	assert_int_equal(f.cpu.lost, 0);
	begin_reading(&f, &r);
	check_newtask_and_fork(&r);

	take_header(&r);
	assert_int_equal(r.id, SWITCH);
	assert_string_equal(take_text(&r, 16), "python3");
	assert_int_equal(take(&r, 4), 2505);
	assert_int_equal(take(&r, 4), 20);
	assert_int_equal(take(&r, 8), 2);
	assert_string_equal(take_text(&r, 16), "python3");
	assert_int_equal(take(&r, 4), 2547);
	assert_int_equal(take(&r, 4), 20);

	take_header(&r);
	assert_int_equal(r.id, EXEC);
	assert_int_equal(r.tid, 2547);
	assert_string_equal(take_text(&r, 10), "/bin/true");
	assert_int_equal(take(&r, 4), 2547);
	assert_int_equal(take(&r, 4), 2547);

	take_header(&r);
	assert_int_equal(r.id, OPENAT);
	assert_int_equal((int32_t)take(&r, 4), -100);
	assert_string_equal(take_text(&r, 15), "0x7f68f3dcf0b1");
	assert_int_equal(take(&r, 4), 0x80000);
	assert_int_equal(take(&r, 2), 0);

	take_header(&r);
	assert_int_equal(r.id, OPENAT_EXIT);
	assert_int_equal(take(&r, 8), 3);
	free(page);
	tear_down(&f);
}

/* The recorder's own system calls are left out, nothing else of it. */
static void test_own_syscalls(void **state)
{
	struct fixture f;
	size_t len;
	uint8_t *page = ring_data("page-0", &len);

	(void)state;
	set_up(&f, 0);
	f.convert.own_tids[0] = 2547;
	convert_page(&f, page, len);
	assert_int_equal(f.cpu.events, 12 - 4);
	free(page);
	tear_down(&f);
}

static void test_context(void **state)
{
	struct reader r;
	struct fixture f;
	size_t len;
	uint8_t *page = ring_data("page-0", &len);

	(void)state;
	set_up(&f, KY_CONTEXT_PID | KY_CONTEXT_PPID | KY_CONTEXT_PROCNAME | KY_CONTEXT_PRIO);
	assert_int_equal(f.convert.context_bytes, 32);
	convert_page(&f, page, len);
	begin_reading(&f, &r);
	/* newtask, fork, switch: of a parent that nothing is known about. */
	take_header(&r);
	r.at += 28 + 4 + 16 + 8 + 2;
	take_header(&r);
	r.at += 28 + 16 + 8 + 16 + 8;
	take_header(&r);
	r.at += 28 + 56;
	/* The child's first event: it is known from task_newtask. */
	take_header(&r);
	assert_int_equal(r.id, EXEC);
	assert_int_equal(r.tid, 2547);
	assert_int_equal(take(&r, 4), 2547);
	take(&r, 4);
	assert_string_equal(take_text(&r, 16), "python3");
	assert_int_equal(take(&r, 4), 20);
	free(page);
	tear_down(&f);
}

static void test_until(void **state)
{
	struct fixture f, all;
	size_t len;
	uint8_t *page = ring_data("page-0", &len);
	uint64_t until = 12110428994726;
	int ret, rounds = 0;

	(void)state;
	set_up(&all, 0);
	convert_page(&all, page, len);
	/* In small steps of time, the same bytes come out. */
	set_up(&f, 0);
	give_page(&f, page, len);
	assert_int_equal(f.cpu.next_cycles, until);
	while ((ret = ky_convert_run(&f.cpu, until, NULL)) == 1) {
		assert_true(f.cpu.next_cycles > until);
		until += 1000;
		rounds++;
	}
	assert_int_equal(ret, 0);
	assert_true(rounds > 1000);
	assert_int_equal(f.cpu.writer.used_bytes, all.cpu.writer.used_bytes);
	/* The packet's prolog is written on closing. */
	assert_memory_equal(f.cpu.writer.data + KY_PACKET_PROLOG_BYTES,
			    all.cpu.writer.data + KY_PACKET_PROLOG_BYTES,
			    f.cpu.writer.used_bytes - KY_PACKET_PROLOG_BYTES);
	free(page);
	tear_down(&f);
	tear_down(&all);
}

static void test_lost_without_number(void **state)
{
	struct fixture f;
	size_t len;
	uint8_t *page = ring_data("page-lost", &len);

	(void)state;
	set_up(&f, 0);
	convert_page(&f, page, len);
	assert_int_equal(f.cpu.events, 102);
	assert_int_equal(f.cpu.lost, 1);
	/* The packet before the loss was sent with the old count. */
	assert_int_equal(f.packets, 1);
	assert_int_equal(f.lost_before, 0);
	/* Where the kernel's count is to be had, it is taken. */
	f.convert.lost_until_now = lost_until_now;
	f.kernel_lost = 816;
	convert_page(&f, page, len);
	assert_int_equal(f.cpu.lost, 816);
	assert_int_equal(f.lost_before, 1);
	assert_int_equal(f.packets, 2);
	/* A loss behind the end of a packet makes no empty packet: Trace Compass would stop there. */
	assert_int_equal(ky_convert_flush(&f.cpu, f.cpu.writer.last_cycles, NULL), 0);
	assert_int_equal(f.packets, 3);
	f.kernel_lost = 900;
	convert_page(&f, page, len);
	assert_int_equal(f.cpu.lost, 900);
	assert_int_equal(f.packets, 3);
	free(page);
	tear_down(&f);
}

/* ---- pages by hand -------------------------------------------------------------------- */

struct page {
	uint8_t data[512];
	uint32_t len;
};

static void put32(struct page *page, uint32_t value)
{
	memcpy(page->data + page->len, &value, 4);
	page->len += 4;
}

static void begin_page(struct page *page, uint64_t cycles)
{
	memset(page, 0, sizeof(*page));
	memcpy(page->data, &cycles, 8);
	page->len = 16;
}

static void end_page(struct page *page, uint32_t flags)
{
	uint32_t commit = (page->len - 16) | flags;

	memcpy(page->data + 8, &commit, 4);
}

/* sys_exit_openat of thread @tid. */
static void put_exit(struct page *page, uint32_t delta, uint32_t tid, uint32_t ret)
{
	put32(page, 6 | delta << 5);
	put32(page, 781);
	put32(page, tid);
	put32(page, 257);
	put32(page, 0);
	put32(page, ret);
	put32(page, 0);
}

static void test_time(void **state)
{
	struct fixture f;
	struct page page;

	(void)state;
	set_up(&f, 0);
	begin_page(&page, UINT64_C(0x1000000000000000));
	put_exit(&page, 5, 1, 0);
	assert_int_equal(page.len, 16 + 28);
	put32(&page, 30 | 3u << 5); /* an extension of 2 * 2^27 + 3 */
	put32(&page, 2);
	put_exit(&page, 7, 1, 0);
	put32(&page, 29 | 1u << 5); /* a discarded record of 8 bytes */
	put32(&page, 4);
	put32(&page, 31 | 9u << 5); /* an absolute stamp of 59 bits */
	put32(&page, 0x100);
	put_exit(&page, 0, 1, 0);
	put32(&page, 31 | 1u << 5); /* another, after the 59 bits overflowed */
	put32(&page, 0);
	put_exit(&page, 0, 1, 0);
	put32(&page, 29); /* the rest is empty */
	put32(&page, 0xffffffff);
	end_page(&page, 0);
	give_page(&f, page.data, page.len);
	assert_int_equal(ky_convert_run(&f.cpu, UINT64_C(0x1000000000000005), NULL), 1);
	assert_int_equal(f.cpu.events, 1);
	assert_true(f.cpu.next_cycles == UINT64_C(0x1000000000000005) + (2u << 27) + 3 + 7);
	assert_int_equal(ky_convert_run(&f.cpu, f.cpu.next_cycles, NULL), 1);
	assert_int_equal(f.cpu.events, 2);
	/* The upper bits come from the time before. */
	assert_true(f.cpu.next_cycles == UINT64_C(0x1000000800000009));
	assert_int_equal(ky_convert_run(&f.cpu, f.cpu.next_cycles, NULL), 1);
	assert_int_equal(f.cpu.events, 3);
	assert_true(f.cpu.next_cycles == UINT64_C(0x1800000000000001));
	assert_int_equal(ky_convert_run(&f.cpu, UINT64_MAX, NULL), 0);
	assert_int_equal(f.cpu.events, 4);
	assert_int_equal(f.cpu.bad, 0);
	tear_down(&f);
}

static void test_lost_with_number(void **state)
{
	struct fixture f;
	struct page page;
	uint64_t lost = 42;

	(void)state;
	set_up(&f, 0);
	begin_page(&page, 1000);
	put_exit(&page, 0, 1, 0);
	end_page(&page, 3u << 30);
	memcpy(page.data + page.len, &lost, 8);
	convert_page(&f, page.data, page.len + 8);
	assert_int_equal(f.cpu.lost, 42);
	assert_int_equal(f.cpu.events, 1);
	tear_down(&f);
}

static void test_bad_records(void **state)
{
	struct fixture f;
	struct page page;

	(void)state;
	set_up(&f, 0);
	/* An unknown type, one too short for its format, and a good one. */
	begin_page(&page, 1000);
	put32(&page, 2);
	put32(&page, 9999);
	put32(&page, 1);
	put32(&page, 3);
	put32(&page, 781);
	put32(&page, 1);
	put32(&page, 0);
	put_exit(&page, 0, 1, 0);
	end_page(&page, 0);
	convert_page(&f, page.data, page.len);
	assert_int_equal(f.cpu.bad, 2);
	assert_int_equal(f.cpu.events, 1);
	/* A record that reaches beyond the page. */
	begin_page(&page, 2000);
	put32(&page, 0);
	put32(&page, 5000);
	end_page(&page, 0);
	convert_page(&f, page.data, page.len);
	assert_int_equal(f.cpu.bad, 3);
	tear_down(&f);
}

/* A text that points out of its record is empty; one without NUL is cut at its end. */
static void test_bad_texts(void **state)
{
	static const uint32_t locs[] = {0xffff0014, 0x00080500, 0x00040014};
	static const char *const want[] = {"", "", "abcd"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct reader r;
		struct fixture f;
		struct page page;

		set_up(&f, 0);
		begin_page(&page, 1000);
		put32(&page, 6);
		put32(&page, 365);
		put32(&page, 1);
		put32(&page, locs[i]);
		put32(&page, 11);
		put32(&page, 12);
		put32(&page, 0x64636261);
		end_page(&page, 0);
		convert_page(&f, page.data, page.len);
		assert_int_equal(f.cpu.events, 1);
		begin_reading(&f, &r);
		take_header(&r);
		assert_string_equal(take_text(&r, strlen(want[i]) + 1), want[i]);
		assert_int_equal(take(&r, 4), 11);
		assert_int_equal(take(&r, 4), 12);
		assert_ptr_equal(r.at, r.end);
		tear_down(&f);
	}
}

/* Runs of bytes of every length: all of them arrive, and nothing beyond them is touched. */
static void test_copies(void **state)
{
	static const char head[] = "name: bytes\nID: %u\nformat:\n"
				   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\n"
				   "\tfield:int common_pid;\toffset:4;\tsize:4;\n\n"
				   "\tfield:u8 bytes[%u];\toffset:8;\tsize:%u;\n\n";
	struct ky_stream_class *stream;
	struct fixture f;

	(void)state;
	set_up(&f, 0);
	stream = ky_stream_class_new(f.trace, 1);
	for (uint32_t n = 1; n <= 80; n++) {
		struct ky_event_class *event = ky_event_class_new(stream, n, "bytes");
		struct ky_format format;
		struct page page;
		struct reader r;
		char text[512];

		snprintf(text, sizeof(text), head, 1000 + n, n, n);
		assert_int_equal(ky_format_parse(&f.arena, text, strlen(text), &format, NULL), 0);
		assert_int_equal(ky_convert_add(&f.convert, "other", &format, event, NULL), 0);
		begin_page(&page, 1000);
		put32(&page, (n + 11) / 4);
		put32(&page, 1000 + n);
		put32(&page, 1);
		for (uint32_t i = 0; i < n; i++)
			page.data[page.len++] = (uint8_t)(n + i);
		page.len += -page.len & 3;
		end_page(&page, 0);
		ky_packet_writer_begin(&f.cpu.writer, 0);
		memset(f.cpu.writer.data, 0xee, PACKET_BYTES);
		convert_page(&f, page.data, page.len);
		begin_reading(&f, &r);
		take_header(&r);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(take(&r, 1), (uint8_t)(n + i));
		assert_ptr_equal(r.at, r.end);
		assert_int_equal(*r.end, 0xee);
	}
	assert_int_equal(f.cpu.events, 80);
	tear_down(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_page),
		cmocka_unit_test(test_own_syscalls),
		cmocka_unit_test(test_context),
		cmocka_unit_test(test_until),
		cmocka_unit_test(test_lost_without_number),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_lost_with_number),
		cmocka_unit_test(test_bad_records),
		cmocka_unit_test(test_bad_texts),
		cmocka_unit_test(test_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
