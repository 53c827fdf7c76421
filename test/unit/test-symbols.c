/* SPDX-License-Identifier: MIT */
/* Addresses of this process and of this kernel, and what a process maps over time. */
#include "symbols/lookup/symbols.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "symbols/tables/jit-table.h"
#include "symbols/tables/kernel-lookup.h"
#include "symbols/tables/kernel-table.h"
#include "unit.h"

static struct ky_symbols *open_here(bool want_lines)
{
	struct ky_symbols *symbols;
	struct ky_symbols_options options = {.is_here = true, .want_lines = want_lines};

	assert_int_equal(ky_symbols_open(&options, &symbols, NULL), 0);
	return symbols;
}

static size_t look(struct ky_symbols *symbols, int64_t pid, uintptr_t address,
		   const struct ky_symbols_frame **frames)
{
	return ky_symbols_resolve(
		symbols,
		&(struct ky_symbols_query){.pid = pid, .address = address, .time_ns = UINT64_MAX},
		frames);
}

static volatile int sink;

static inline __attribute__((always_inline)) uintptr_t inner_function(void)
{
	uintptr_t here;

	sink++;
	__asm__ volatile("lea 0(%%rip), %0" : "=r"(here));
	sink++;
	return here;
}

__attribute__((noinline)) static uintptr_t outer_function(void)
{
	return inner_function();
}

static void test_function(void **state)
{
	struct ky_symbols *symbols = open_here(false);
	const struct ky_symbols_frame *frames;

	assert_int_equal(look(symbols, getpid(), (uintptr_t)test_function + 1, &frames), 1);
	assert_string_equal(frames[0].function, "test_function");
	assert_int_equal(frames[0].offset, 1);
	assert_non_null(strstr(frames[0].object, "test-symbols"));
	assert_null(frames[0].file);
	assert_int_equal(look(symbols, getpid(), (uintptr_t)&sink, &frames), 0);
	assert_int_equal(look(symbols, getpid(), 1, &frames), 0);
	assert_int_equal(look(symbols, getpid(), UINTPTR_MAX, &frames), 0);
	ky_symbols_close(symbols);
}

static void test_library(void **state)
{
	struct ky_symbols *symbols = open_here(false);
	const struct ky_symbols_frame *frames;

	assert_int_equal(look(symbols, getpid(), (uintptr_t)getenv, &frames), 1);
	assert_string_equal(frames[0].function, "getenv");
	assert_int_equal(frames[0].offset, 0);
	ky_symbols_close(symbols);
}

static void test_return_address(void **state)
{
	struct ky_symbols *symbols = open_here(false);
	const struct ky_symbols_frame *frames;
	struct ky_symbols_query query = {.pid = getpid(),
					 .address = (uintptr_t)outer_function,
					 .time_ns = UINT64_MAX,
					 .is_return = true};

	/* A return address at a function's begin is of a call at the end of the one before. */
	assert_int_equal(ky_symbols_resolve(symbols, &query, &frames), 1);
	assert_string_not_equal(frames[0].function ? frames[0].function : "", "outer_function");
	query.address += 4;
	assert_int_equal(ky_symbols_resolve(symbols, &query, &frames), 1);
	assert_string_equal(frames[0].function, "outer_function");
	assert_int_equal(frames[0].offset, 4);
	ky_symbols_close(symbols);
}

static void test_inlined(void **state)
{
	struct ky_symbols *symbols = open_here(true);
	const struct ky_symbols_frame *frames;
	uintptr_t address = outer_function();

	for (int i = 0; i < 2; i++) { /* then from the cache */
		assert_int_equal(look(symbols, getpid(), address, &frames), 2);
		assert_string_equal(frames[0].function, "inner_function");
		assert_true(frames[0].is_inlined && !frames[1].is_inlined);
		assert_string_equal(frames[1].function, "outer_function");
		assert_non_null(strstr(frames[0].file, "test-symbols.c"));
		assert_true(frames[0].line && frames[0].line < frames[1].line);
		assert_int_equal(frames[0].offset, address - (uintptr_t)outer_function);
	}
	ky_symbols_close(symbols);
}

static void test_vdso(void **state)
{
	struct ky_symbols *symbols = open_here(false);
	const struct ky_symbols_frame *frames;
	uintptr_t begin = getauxval(AT_SYSINFO_EHDR);
	bool is_found = false;

	if (!begin)
		skip();
	for (uintptr_t at = begin; at < begin + 8192 && !is_found; at += 16)
		is_found = look(symbols, getpid(), at, &frames) && frames[0].function &&
			   strstr(frames[0].function, "clock_gettime");
	assert_true(is_found);
	assert_string_equal(frames[0].object, "[vdso]");
	ky_symbols_close(symbols);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_kernel(void **state)
{
	char path[] = "/tmp/test-symbols.XXXXXX";
	struct ky_symbols *symbols;
	const struct ky_symbols_frame *frames;
	struct ky_symbols_options options = {.kallsyms = path};

	close(mkstemp(path));
	write_file(path, "ffffffff81000000 T _text\nffffffff81000000 t startup\n"
			 "ffffffff81000100 W weak_one\nffffffff81000100 T strong_one\n"
			 "ffffffff81001000 T _etext\nffffffff81002000 D data\n"
			 "0000000000001000 A percpu\nnonsense\nffffffffc0000000 t mod_run\t[mod]\n"
			 "ffffffffc0001000 t bpf_prog_12_x\t[bpf]");
	assert_int_equal(ky_symbols_open(&options, &symbols, NULL), 0);
	assert_int_equal(look(symbols, -1, 0xffffffff81000010, &frames), 1);
	assert_string_equal(frames[0].object, "[kernel]");
	assert_int_equal(look(symbols, -1, 0xffffffff81000110, &frames), 1);
	assert_string_equal(frames[0].function, "strong_one");
	assert_int_equal(frames[0].offset, 0x10);
	assert_int_equal(look(symbols, -1, 0xffffffff81001001, &frames), 0);
	assert_int_equal(look(symbols, -1, 0xffffffff82000000, &frames), 0);
	assert_int_equal(look(symbols, -1, 0xffffffffc0000020, &frames), 1);
	assert_string_equal(frames[0].object, "[mod]");
	assert_int_equal(look(symbols, -1, 0xffffffffc0001020, &frames), 1);
	assert_string_equal(frames[0].function, "bpf_prog_12_x");
	assert_null(ky_symbols_kernel_problem(symbols));
	ky_symbols_close(symbols);

	write_file(path, "0000000000000000 T _text\n0000000000000000 T startup\n");
	assert_int_equal(ky_symbols_open(&options, &symbols, NULL), 0);
	assert_int_equal(look(symbols, -1, 0xffffffff81000010, &frames), 0);
	assert_non_null(strstr(ky_symbols_kernel_problem(symbols), "kptr_restrict"));
	ky_symbols_close(symbols);
	unlink(path);
}

/* The kernel says the same of a single address as its list. */
static void test_kernel_lookup(void **state)
{
	struct ky_kernel_lookup lookup;
	struct ky_kernel_table table = {0};
	const struct ky_kernel_function *function;

	(void)state;
	if (!ky_kernel_lookup_open(&lookup)) {
		ky_kernel_lookup_fini(&lookup);
		skip();
	}
	assert_int_equal(ky_kernel_table_read(&table, "/proc/kallsyms"), 0);
	for (size_t i = 0; i < table.table.symbols.len; i += 101) {
		const struct ky_symbol *symbol = &table.table.symbols.data[i];

		if (symbol->group || symbol->kind == KY_SYMBOL_END)
			continue;
		assert_int_equal(ky_kernel_lookup_find(&lookup, symbol->address, &function), 1);
		assert_string_equal(function->name, ky_symbol_name(&table.table, symbol));
		assert_int_equal(function->begin, symbol->address);
		assert_string_equal(function->module, "[kernel]");
	}
	assert_true(lookup.functions.len > 50);
	assert_int_equal(ky_kernel_lookup_find(&lookup, 0xffffffffffffff00, &function), 0);
	ky_kernel_table_fini(&table);
	ky_kernel_lookup_fini(&lookup);
}

/* What lay there at each time, by the file's name. */
static const char *name_at(struct ky_symbols *symbols, int64_t pid, uint64_t address, uint64_t time)
{
	const struct ky_symbols_frame *frames;
	struct ky_symbols_query query = {.pid = pid, .address = address, .time_ns = time};

	return ky_symbols_resolve(symbols, &query, &frames) ? frames[0].object : "";
}

static void map(struct ky_symbols *symbols, int64_t pid, uint64_t begin, uint64_t end,
		const char *path, uint64_t time)
{
	struct ky_symbols_mapping mapping = {.begin = begin, .end = end, .time_ns = time};

	mapping.object = ky_symbols_object(symbols, path, NULL, 0, pid);
	assert_int_equal(ky_symbols_map(symbols, pid, &mapping), 0);
}

static void map_old(struct ky_symbols *symbols, int64_t pid, uint64_t begin, uint64_t end,
		    const char *path, uint64_t time)
{
	struct ky_symbols_mapping mapping = {
		.begin = begin, .end = end, .time_ns = time, .is_old = true};

	mapping.object = ky_symbols_object(symbols, path, NULL, 0, pid);
	assert_int_equal(ky_symbols_map(symbols, pid, &mapping), 0);
}

static void test_times(void **state)
{
	struct ky_symbols *symbols;

	assert_int_equal(ky_symbols_open(&(struct ky_symbols_options){0}, &symbols, NULL), 0);
	map(symbols, 7, 0x1000, 0x9000, "/none/a", 0);
	map(symbols, 7, 0x3000, 0x4000, "/none/b", 100);
	ky_symbols_unmap(symbols, 7, 0x5000, 0x6000, 200);
	assert_string_equal(name_at(symbols, 7, 0x3500, 99), "/none/a");
	assert_string_equal(name_at(symbols, 7, 0x3500, 100), "/none/b");
	assert_string_equal(name_at(symbols, 7, 0x2fff, UINT64_MAX), "/none/a");
	assert_string_equal(name_at(symbols, 7, 0x4000, UINT64_MAX), "/none/a");
	assert_string_equal(name_at(symbols, 7, 0x5500, 199), "/none/a");
	assert_string_equal(name_at(symbols, 7, 0x5500, 200), "");
	assert_string_equal(name_at(symbols, 7, 0x6000, 200), "/none/a");
	assert_int_equal(ky_symbols_fork(symbols, 7, 8, 150), 0);
	map_old(symbols, 6, 0x1000, 0x2000, "/none/a", 50);
	map_old(symbols, 6, 0x1000, 0x2000, "/none/a", 60);
	map_old(symbols, 6, 0x1800, 0x2000, "/none/b", 70);
	assert_string_equal(name_at(symbols, 6, 0x1900, 1), "/none/a");
	assert_string_equal(name_at(symbols, 6, 0x1900, 69), "/none/a");
	assert_string_equal(name_at(symbols, 6, 0x1900, 70), "/none/b");
	ky_symbols_exec(symbols, 7, 300);
	assert_string_equal(name_at(symbols, 7, 0x3500, 299), "/none/b");
	assert_string_equal(name_at(symbols, 7, 0x3500, 300), "");
	assert_string_equal(name_at(symbols, 8, 0x3500, 300), "/none/b");
	assert_string_equal(name_at(symbols, 8, 0x3500, 149), "");
	assert_string_equal(name_at(symbols, 9, 0x3500, 1), "");
	ky_symbols_close(symbols);
}

static void test_wrong_build_id(void **state)
{
	struct ky_symbols *symbols = open_here(false);
	const struct ky_symbols_frame *frames;
	struct ky_symbols_mapping mapping = {.begin = 0x1000, .end = 1 << 30, .is_image = true};
	static const uint8_t id[20] = {1, 2, 3};

	mapping.object = ky_symbols_object(symbols, "/proc/self/exe", id, sizeof(id), -1);
	assert_int_equal(ky_symbols_map(symbols, 7, &mapping), 0);
	assert_int_equal(look(symbols, 7, 0x2000, &frames), 1);
	assert_null(frames[0].function);
	assert_int_equal(frames[0].object_offset, 0x1000);
	ky_symbols_close(symbols);
}

static void test_perf_map(void **state)
{
	struct ky_symbols *symbols = open_here(false);
	const struct ky_symbols_frame *frames;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	write_file(path,
		   "1000 100 old\nbad line\n0x1080 0x10 LazyCompile:~run app.js:1\n1000 20 new\n");
	assert_int_equal(look(symbols, getpid(), 0x1010, &frames), 1);
	assert_string_equal(frames[0].function, "new");
	assert_string_equal(frames[0].object, "[jit]");
	assert_int_equal(look(symbols, getpid(), 0x1088, &frames), 1);
	assert_string_equal(frames[0].function, "LazyCompile:~run app.js:1");
	assert_int_equal(look(symbols, getpid(), 0x1090, &frames), 1);
	assert_string_equal(frames[0].function, "old");
	assert_int_equal(look(symbols, getpid(), 0x1100, &frames), 0);
	ky_symbols_close(symbols);
	if (geteuid() == 0 && chown(path, 12345, 12345) == 0) {
		symbols = open_here(false); /* another user's is not believed */
		assert_int_equal(look(symbols, getpid(), 0x1010, &frames), 0);
		ky_symbols_close(symbols);
	}
	unlink(path);
}

/* Processes of one user that have one large file: the files that are read have a limit together. */
static void test_large_perf_maps(void **state)
{
	struct ky_symbols *symbols = open_here(false);
	const struct ky_symbols_frame *frames;
	char first[64], path[64];
	pid_t pids[3];

	snprintf(first, sizeof(first), "/tmp/perf-large-%d.map", getpid());
	write_file(first, "1000 100 found\n");
	assert_int_equal(truncate(first, KY_JIT_FILE_MAX_BYTES), 0);
	for (size_t i = 0; i < 3; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			pause();
			_exit(0);
		}
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", pids[i]);
		assert_int_equal(link(first, path), 0);
		assert_int_equal(look(symbols, pids[i], 0x1010, &frames), i < 2);
		unlink(path);
	}
	for (size_t i = 0; i < 3; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	unlink(first);
	ky_symbols_close(symbols);
}

struct load {
	uint32_t id, bytes;
	uint64_t time;
	uint32_t pid, tid;
	uint64_t vma, address, size, index;
	char name[8];
};

static void test_jitdump(void **state)
{
	struct {
		uint32_t magic, version, bytes, machine, padding, pid;
		uint64_t time, flags;
		struct load loads[2];
	} dump = {0x4A695444,
		  1,
		  40,
		  62,
		  0,
		  1,
		  0,
		  0,
		  {{0, sizeof(struct load), 100, 1, 1, 0, 0x1000, 0x80, 1, "first"},
		   {0, sizeof(struct load), 200, 1, 1, 0, 0x1000, 0x40, 2, "second"}}};
	struct ky_jit_table table;

	ky_jit_table_init(&table);
	for (size_t len = 0; len < sizeof(dump); len++) /* cut anywhere */
		ky_jit_table_read_dump(&table, (const char *)&dump, len, 0);
	ky_jit_table_fini(&table);
	ky_jit_table_init(&table);
	ky_jit_table_read_dump(&table, (const char *)&dump, sizeof(dump), 1000);
	assert_null(ky_jit_table_find(&table, 0x1010, 1099));
	assert_string_equal(ky_jit_table_find(&table, 0x1010, 1150)->name, "first");
	assert_string_equal(ky_jit_table_find(&table, 0x1010, 1200)->name, "second");
	assert_string_equal(ky_jit_table_find(&table, 0x1050, 1200)->name, "first");
	ky_jit_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_function),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_return_address),
		cmocka_unit_test(test_inlined),
		cmocka_unit_test(test_vdso),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_kernel_lookup),
		cmocka_unit_test(test_times),
		cmocka_unit_test(test_wrong_build_id),
		cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_large_perf_maps),
		cmocka_unit_test(test_jitdump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
