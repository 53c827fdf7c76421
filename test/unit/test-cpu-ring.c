/* SPDX-License-Identifier: MIT */
/*
 * Reading the rings of the real kernel in every way. The events are numbered: lseek(-1, n) fails, and
 * its event says n. So an event that is lost, doubled or out of order is seen.
 */
#include "unit.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel/tracefs/format.h"
#include "kernel/tracefs/cpu-ring.h"

#define EVENT "events/syscalls/sys_enter_lseek"

static const enum ky_cpu_ring_way ways[] = {KY_CPU_RING_MMAP, KY_CPU_RING_SPLICE, KY_CPU_RING_READ,
					    KY_CPU_RING_AUTO};

struct fixture {
	struct ky_tracefs fs;
	struct ky_instance instance;
	struct ky_page_layout layout;
	struct ky_cpu_ring ring;
	struct ky_arena arena;
	struct ky_format format;
	uint32_t page_bytes, number_at;
	int64_t called; /* the next event's number */
	/* What was read: */
	int64_t next;
	uint64_t events, lost, pages, cycles;
};

static void write_file(struct fixture *f, const char *name, const char *text)
{
	assert_int_equal(ky_instance_write(&f->instance, name, text, NULL), 0);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void read_formats(struct fixture *f)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	assert_int_equal(ky_tracefs_read(f->fs.fd, f->fs.path, "events/header_page", &text, NULL),
			 0);
	assert_int_equal(ky_page_layout_parse(ky_strbuf_text(&text), text.len, &f->layout, NULL),
			 0);
	ky_strbuf_clear(&text);
	assert_int_equal(ky_tracefs_read(f->fs.fd, f->fs.path, EVENT "/format", &text, NULL), 0);
	assert_int_equal(
		ky_format_parse(&f->arena, ky_strbuf_text(&text), text.len, &f->format, NULL), 0);
	ky_strbuf_fini(&text);
	for (size_t i = 0; i < f->format.n_fields; i++)
		if (strcmp(f->format.fields[i].name, "offset") == 0)
			f->number_at = f->format.fields[i].offset;
	assert_int_not_equal(f->number_at, 0);
}

/* An instance that records process @pid's lseek() calls on the first CPU. */
static void set_up(struct fixture *f, uint32_t page_kib, uint32_t ring_kib, pid_t pid,
		   enum ky_cpu_ring_way way)
{
	struct kymo_error err = {0};

	memset(f, 0, sizeof(*f));
	ky_arena_init(&f->arena);
	if (geteuid() != 0 || ky_tracefs_open(&f->fs, NULL) < 0)
		skip();
	assert_int_equal(ky_instance_create(&f->fs, "", &f->instance, NULL), 0);
	read_formats(f);
	assert_int_equal(
		ky_instance_write_u64(&f->instance, "buffer_subbuf_size_kb", page_kib, NULL), 0);
	assert_int_equal(ky_instance_write_u64(&f->instance, "buffer_size_kb", ring_kib, NULL), 0);
	assert_int_equal(ky_instance_write_u64(&f->instance, "set_event_pid", (uint64_t)pid, NULL),
			 0);
	write_file(f, EVENT "/enable", "1");
	f->page_bytes = page_kib * 1024;
	if (ky_cpu_ring_open(&f->ring, &f->instance, 0, f->page_bytes, &f->layout, way, &err) < 0)
		fail_msg("%s: %s", err.path, err.message);
	write_file(f, "tracing_on", "1");
	pin(0);
}

static void tear_down(struct fixture *f)
{
	ky_cpu_ring_close(&f->ring);
	assert_int_equal(ky_instance_remove(&f->instance, NULL), 0);
	ky_tracefs_close(&f->fs);
	ky_arena_fini(&f->arena);
}

static void call(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++)
		syscall(SYS_lseek, -1, f->called++, SEEK_SET);
}

static void take_event(struct fixture *f, const struct ky_page *page,
		       const struct ky_record *record, bool after_loss)
{
	int64_t number;
	uint16_t type;

	assert_true(record->len >= f->format.fixed_bytes);
	memcpy(&type, page->records + record->data + f->format.type_offset, 2);
	assert_int_equal(type, f->format.id);
	memcpy(&number, page->records + record->data + f->number_at, 8);
	if (after_loss) {
		assert_true(number > f->next);
		if (page->lost)
			assert_int_equal(number - f->next, page->lost);
		f->lost += (uint64_t)(number - f->next);
		f->next = number;
	}
	assert_int_equal(number, f->next);
	f->next++;
	f->events++;
}

static void take_page(struct fixture *f, const struct ky_page *page)
{
	uint64_t cycles = page->cycles;
	enum ky_record_kind kind;
	struct ky_record record = {0};
	bool first = true;

	f->pages++;
	for (uint32_t at = page->at;; at = record.next) {
		kind = ky_record_parse(page->records, at, page->end, &cycles, &record);
		if (kind == KY_RECORD_TIME)
			continue;
		if (kind == KY_RECORD_END)
			break;
		assert_int_equal(kind, KY_RECORD_EVENT);
		cycles += record.delta;
		assert_true(cycles >= f->cycles);
		f->cycles = cycles;
		take_event(f, page, &record, first && page->missed);
		first = false;
	}
}

/* Up to @pages pages; returns how many there were. */
static unsigned int take(struct fixture *f, bool partial, unsigned int pages)
{
	struct kymo_error err = {0};
	struct ky_page page;
	unsigned int n = 0;
	int ret;

	while (n < pages && (ret = ky_cpu_ring_next(&f->ring, partial, &page, &err)) != 0) {
		if (ret < 0)
			fail_msg("%s: %s", err.path, err.message);
		take_page(f, &page);
		n++;
	}
	return n;
}

static bool is_mapped(const struct ky_cpu_ring *ring)
{
	char line[512];
	bool found = false;
	FILE *file = fopen("/proc/self/maps", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		found |= strstr(line, strstr(ring->path, "/instances/")) != NULL;
	fclose(file);
	return found;
}

/* ---- one way at a time ---------------------------------------------------------------- */

static void counts(void **state)
{
	static const uint32_t page_kib[] = {4, 16, 64};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 3 * 4; i++) {
		set_up(&f, page_kib[i % 3], 1024, getpid(), ways[i / 3]);
		assert_int_equal(take(&f, true, 9), 0);
		call(&f, 5000);
		take(&f, true, 1000);
		assert_int_equal(f.events, 5000);
		assert_int_equal(f.lost, 0);
		tear_down(&f);
	}
}

/* A page that is being written is handed out in parts, each event once, as soon as it is there. */
static void partial_pages(void **state)
{
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		set_up(&f, i % 2 ? 64 : 4, 512, getpid(), ways[i]);
		for (int n = 1; n < 300; n++) {
			call(&f, n % 7);
			take(&f, true, 1000);
			assert_int_equal(f.events, f.called);
			assert_int_equal(take(&f, true, 1), 0);
		}
		assert_int_equal(f.lost, 0);
		tear_down(&f);
	}
}

/* It is left where it is when it is not wanted, where the way allows that. */
static void whole_pages(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 4, 1024, getpid(), KY_CPU_RING_SPLICE);
	call(&f, 1000);
	take(&f, false, 1000);
	assert_in_range(f.events, 800, 999);
	assert_false(f.ring.is_partial);
	take(&f, true, 1000);
	assert_int_equal(f.events, 1000);
	tear_down(&f);
	set_up(&f, 4, 1024, getpid(), KY_CPU_RING_MMAP);
	call(&f, 1000);
	while (!f.ring.is_partial)
		assert_int_equal(take(&f, false, 1), 1);
	assert_int_equal(f.events, 1000);
	tear_down(&f);
}

/* The reader reports exactly the number of overwritten events, in every way; before, between and after reading. */
static void losses(void **state)
{
	struct ky_cpu_ring_stats stats;
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		set_up(&f, i % 2 ? 16 : 4, 256, getpid(), ways[i / 2]);
		call(&f, 100);
		take(&f, true, 1);
		for (int n = 0; n < 20; n++) {
			call(&f, 1000 * n);
			take(&f, true, (unsigned int)n);
		}
		take(&f, true, 1000);
		assert_int_equal(f.events + f.lost, f.called);
		assert_true(f.lost > 50000);
		assert_int_equal(ky_cpu_ring_stats(&f.instance, 0, &stats, NULL), 0);
		assert_int_equal(stats.overrun + stats.commit_overrun + stats.dropped, f.lost);
		assert_int_equal(stats.read, f.events);
		tear_down(&f);
	}
}

/* ---- from one to the other ------------------------------------------------------------ */

static void change_way(struct fixture *f, uint32_t *seed)
{
	*seed = *seed * 1103515245 + 12345;
	assert_int_equal(ky_cpu_ring_switch(&f->ring, ways[(*seed >> 16) % 3], NULL), 0);
	assert_int_equal(is_mapped(&f->ring), f->ring.way == KY_CPU_RING_MMAP);
}

/* In the middle of pages, with pages waiting in the pipe, with nothing there. */
static void switching(void **state)
{
	uint32_t seed = 1;
	struct fixture f;

	(void)state;
	for (int page_kib = 4; page_kib <= 64; page_kib *= 4) {
		set_up(&f, (uint32_t)page_kib, 4096, getpid(), KY_CPU_RING_SPLICE);
		for (int n = 0; n < 400; n++) {
			change_way(&f, &seed);
			call(&f, (seed >> 8) % 4 ? (int)(seed >> 20) % 100 : 3000);
			take(&f, seed & (1 << 14), (seed >> 10) % 6 * 64 / (uint32_t)page_kib);
		}
		take(&f, true, 100000);
		assert_int_equal(f.lost, 0);
		assert_int_equal(f.events, f.called);
		tear_down(&f);
	}
}

/* The same while another process writes, faster than is read at times. */
static void switching_under_load(void **state)
{
	const int calls = 400000;
	struct ky_cpu_ring_stats stats;
	uint32_t seed = 7;
	int go[2], status;
	struct fixture f = {0};
	pid_t child;

	(void)state;
	assert_int_equal(pipe(go), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(go[1]);
		if (read(go[0], &seed, 1) == 1)
			call(&f, calls);
		_exit(0);
	}
	set_up(&f, 16, 512, child, KY_CPU_RING_SPLICE);
	pin((int)(sysconf(_SC_NPROCESSORS_ONLN) > 1));
	assert_int_equal(write(go[1], "!", 1), 1);
	while (waitpid(child, &status, WNOHANG) == 0) {
		change_way(&f, &seed);
		take(&f, seed & (1 << 14), (seed >> 10) % 200);
	}
	take(&f, true, 100000);
	close(go[0]);
	close(go[1]);
	assert_int_equal(ky_cpu_ring_stats(&f.instance, 0, &stats, NULL), 0);
	assert_int_equal(f.events + f.lost, f.next);
	/* The last may be lost to nobody but the writer's own interrupts. */
	assert_int_equal(f.next, calls);
	assert_int_equal(stats.overrun + stats.commit_overrun + stats.dropped, f.lost);
	tear_down(&f);
}

static void light_round(struct fixture *f)
{
	call(f, 3);
	take(f, true, 1000);
	assert_int_equal(f->events, f->called);
}

/* AUTO: mapped when there is little, by splice when there is much, and back. */
static void adapting(void **state)
{
	struct fixture f;

	(void)state;
	set_up(&f, 64, 1024, getpid(), KY_CPU_RING_AUTO);
	for (int cycle = 0; cycle < 3; cycle++) {
		assert_int_equal(f.ring.way, KY_CPU_RING_SPLICE);
		assert_false(is_mapped(&f.ring));
		for (int i = 0; i <= KY_CPU_RING_LIGHT_ROUNDS; i++)
			light_round(&f);
		assert_int_equal(f.ring.way, KY_CPU_RING_MMAP);
		assert_true(is_mapped(&f.ring));
		/* Some more do not change it. */
		call(&f, 2000);
		take(&f, true, 1000);
		light_round(&f);
		assert_int_equal(f.ring.way, KY_CPU_RING_MMAP);
		call(&f, 10000);
		take(&f, true, 1000);
		assert_int_equal(f.events, f.called);
	}
	assert_int_equal(f.lost, 0);
	tear_down(&f);
}

/* No memory for a mapping: AUTO goes on as before, MMAP says so, and what is there can be read. */
static void refused(void **state)
{
	struct rlimit old, small = {.rlim_cur = 1 << 20};
	struct kymo_error err = {0};
	struct fixture f;

	(void)state;
	set_up(&f, 64, 1024, getpid(), KY_CPU_RING_AUTO);
	assert_int_equal(getrlimit(RLIMIT_AS, &old), 0);
	small.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &small), 0);
	for (int i = 0; i < 2 * KY_CPU_RING_LIGHT_ROUNDS; i++)
		light_round(&f);
	assert_int_equal(f.ring.way, KY_CPU_RING_SPLICE);
	assert_true(f.ring.no_map);
	call(&f, 10);
	assert_int_equal(ky_cpu_ring_switch(&f.ring, KY_CPU_RING_MMAP, &err), KYMO_E_UNSUPPORTED);
	assert_non_null(strstr(err.message, "Cannot allocate memory"));
	assert_int_equal(setrlimit(RLIMIT_AS, &old), 0);
	take(&f, true, 10);
	assert_int_equal(f.events, f.called);
	/* A size of sub-buffers that is not the ring's. */
	f.ring.page_bytes = 4096;
	assert_int_equal(ky_cpu_ring_switch(&f.ring, KY_CPU_RING_MMAP, &err), KYMO_E_FORMAT);
	assert_false(is_mapped(&f.ring));
	tear_down(&f);
}

/* A mapped ring keeps its size; unmapped it is resized, and mapped again with the new size. */
static void resizing(void **state)
{
	struct fixture f;
	uint32_t n;

	(void)state;
	set_up(&f, 16, 512, getpid(), KY_CPU_RING_MMAP);
	n = f.ring.map.n_subbufs;
	call(&f, 1000);
	take(&f, true, 1);
	assert_true(ky_instance_write(&f.instance, "buffer_size_kb", "2048", NULL) < 0);
	call(&f, 1000);
	take(&f, true, 1);
	assert_int_equal(ky_cpu_ring_switch(&f.ring, KY_CPU_RING_SPLICE, NULL), 0);
	write_file(&f, "buffer_size_kb", "2048");
	assert_int_equal(ky_cpu_ring_switch(&f.ring, KY_CPU_RING_MMAP, NULL), 0);
	assert_true(f.ring.map.n_subbufs > 3 * n);
	call(&f, 20000);
	take(&f, true, 1000);
	assert_int_equal(f.events, f.called);
	assert_int_equal(f.lost, 0);
	tear_down(&f);
}

/* ---- what the kernel says ------------------------------------------------------------- */

static const struct ky_page_layout layout = {0, 8, 8, 16};

static struct ky_cpu_ring_meta good_meta(void)
{
	return (struct ky_cpu_ring_meta){
		.meta_page_bytes = 4096,
		.meta_struct_bytes = sizeof(struct ky_cpu_ring_meta) + 16,
		.subbuf_bytes = 65536,
		.n_subbufs = 65,
		.reader = {.id = 64, .read = 65520},
	};
}

static int check(const struct ky_cpu_ring_meta *meta, struct kymo_error *err)
{
	return ky_cpu_ring_meta_check(meta, 4096, 65536, &layout, err);
}

static void hostile_meta(void **state)
{
	/* Each field in turn: where it is, and what it must not be. */
	static const struct {
		size_t offset;
		uint32_t bad[5];
		const char *message;
	} fields[] = {
		{0, {0, 1, 4095, 131072, 0xfffff000}, "meta page size"},
		{4, {0, 16, 31, 4097, 0xffffffff}, "description size"},
		{8, {0, 4096, 65535, 131072, 0xffffffff}, "sub-buffer size"},
		{12, {0, 1, 16385, 0x7fffffff, 0xffffffff}, "sub-buffer count"},
		{24, {65, 66, 1000, 0x80000000, 0xffffffff}, "reader's number"},
		{28, {65521, 65536, 1 << 20, 0x80000000, 0xffffffff}, "reader's position"},
	};
	struct ky_cpu_ring_meta meta = good_meta();
	struct kymo_error err = {0};

	(void)state;
	assert_int_equal(check(&meta, &err), 0);
	meta.meta_page_bytes = 65536;
	assert_int_equal(check(&meta, &err), 0);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		for (size_t j = 0; j < 5; j++) {
			meta = good_meta();
			memcpy((uint8_t *)&meta + fields[i].offset, &fields[i].bad[j], 4);
			assert_int_equal(check(&meta, &err), KYMO_E_FORMAT);
			assert_non_null(strstr(err.message, fields[i].message));
		}
	}
	/* Sizes whose product overflows 32 bits, or is too much to map. */
	meta = good_meta();
	meta.n_subbufs = 65536;
	assert_int_equal(check(&meta, &err), KYMO_E_FORMAT);
}

/* A file that is no ring. */
static void no_ring(void **state)
{
	struct kymo_error err = {0};
	struct ky_cpu_ring_map map;
	int fd = open("/dev/null", O_RDONLY);

	(void)state;
	assert_int_equal(ky_cpu_ring_map_open(&map, fd, 4096, &layout, &err), KYMO_E_UNSUPPORTED);
	close(fd);
	fd = open("/dev/zero", O_RDONLY);
	assert_int_equal(ky_cpu_ring_map_open(&map, fd, 4096, &layout, &err), KYMO_E_FORMAT);
	assert_null(map.meta);
	ky_cpu_ring_map_close(&map);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),      cmocka_unit_test(partial_pages),
		cmocka_unit_test(whole_pages), cmocka_unit_test(losses),
		cmocka_unit_test(switching),   cmocka_unit_test(switching_under_load),
		cmocka_unit_test(adapting),    cmocka_unit_test(refused),
		cmocka_unit_test(resizing),    cmocka_unit_test(hostile_meta),
		cmocka_unit_test(no_ring),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
