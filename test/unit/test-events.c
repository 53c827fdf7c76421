/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unit.h"

#include "kernel/events/events.h"
#include "kernel/tracefs/tracefs.h"
#include "ring-data.h"

static void check_name(const char *system, const char *event, const char *want)
{
	char name[KY_EVENT_NAME_BYTES];

	ky_event_name(system, event, name);
	assert_string_equal(name, want);
}

static void test_names(void **state)
{
	(void)state;
	check_name("sched", "sched_switch", "sched_switch");
	check_name("irq", "irq_handler_entry", "irq_handler_entry");
	check_name("irq", "softirq_entry", "irq_softirq_entry");
	check_name("irq_vectors", "local_timer_entry", "x86_irq_vectors_local_timer_entry");
	check_name("kmem", "mm_page_alloc", "kmem_mm_page_alloc");
	check_name("kmem", "kmem_cache_alloc", "kmem_cache_alloc");
	check_name("kmem", "kmalloc", "kmem_kmalloc");
	check_name("net", "net_dev_queue", "net_dev_queue");
	check_name("net", "netif_receive_skb", "net_if_receive_skb");
	check_name("net", "netif_rx", "net_if_rx");
	check_name("net", "napi_gro_frags_exit", "net_napi_gro_frags_exit");
	check_name("timer", "hrtimer_start", "timer_hrtimer_start");
	check_name("timer", "timer_start", "timer_start");
	check_name("power", "cpu_idle", "power_cpu_idle");
	check_name("skb", "kfree_skb", "skb_kfree");
	check_name("vmscan", "mm_vmscan_kswapd_wake", "mm_vmscan_kswapd_wake");
	check_name("syscalls", "sys_enter_openat", "syscall_entry_openat");
	check_name("syscalls", "sys_exit_openat", "syscall_exit_openat");
	check_name("io_uring", "io_uring_create", "io_uring_create");
	check_name("task", "taskless", "task_taskless");
}

static void check_field(const struct ky_event_field *field, const char *name, enum ky_field_how how,
			unsigned int offset, unsigned int bytes)
{
	assert_string_equal(field->name, name);
	assert_int_equal(field->how, how);
	assert_int_equal(field->offset, offset);
	assert_int_equal(field->bytes, bytes);
}

static void test_switch(void **state)
{
	struct ky_event_field *fields;
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	ky_arena_init(&arena);
	ring_format(&arena, "sched_switch", &format);
	assert_int_equal(ky_event_fields(&arena, "sched", &format, &fields), 7);
	assert_string_equal(fields[0].name, "prev_comm");
	assert_int_equal(fields[0].how, KY_HOW_TEXT);
	check_field(&fields[1], "prev_tid", KY_HOW_COPY, 24, 4);
	check_field(&fields[2], "prev_prio", KY_HOW_PRIO, 28, 4);
	check_field(&fields[3], "prev_state", KY_HOW_COPY, 32, 8);
	check_field(&fields[6], "next_prio", KY_HOW_PRIO, 60, 4);
	ky_arena_fini(&arena);
}

static void test_fork(void **state)
{
	struct ky_event_field *fields;
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	ky_arena_init(&arena);
	ring_format(&arena, "sched_process_fork", &format);
	assert_int_equal(ky_event_fields(&arena, "sched", &format, &fields), 6);
	assert_int_equal(fields[0].how, KY_HOW_COMM);
	check_field(&fields[1], "parent_tid", KY_HOW_COPY, 12, 4);
	check_field(&fields[2], "parent_pid", KY_HOW_PARENT_PID, 12, 4);
	check_field(&fields[4], "child_tid", KY_HOW_COPY, 20, 4);
	check_field(&fields[5], "child_pid", KY_HOW_CHILD_PID, 20, 4);
	/* The dynamic name of other scheduler events is LTTng's array too. */
	ring_format(&arena, "sched_migrate_task", &format);
	assert_int_equal(ky_event_fields(&arena, "sched", &format, &fields), 5);
	assert_string_equal(fields[0].name, "comm");
	assert_int_equal(fields[0].how, KY_HOW_COMM);
	assert_string_equal(fields[1].name, "tid");
	assert_int_equal(fields[2].how, KY_HOW_PRIO);
	assert_string_equal(fields[4].name, "dest_cpu");
	ky_arena_fini(&arena);
}

static void test_block(void **state)
{
	static const char *const names[] = {"dev",  "sector", "nr_sector", "bytes", "tid",
					    "rwbs", "comm",   "ioprio",	   "cmd"};
	struct ky_event_field *fields;
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	ky_arena_init(&arena);
	ring_format(&arena, "block_rq_issue", &format);
	assert_int_equal(ky_event_fields(&arena, "block", &format, &fields), 9);
	for (size_t i = 0; i < 9; i++)
		assert_string_equal(fields[i].name, names[i]);
	assert_int_equal(fields[4].how, KY_HOW_TID);
	assert_int_equal(fields[5].how, KY_HOW_RWBS);
	assert_int_equal(fields[5].bytes, 4);
	assert_false(fields[5].is_signed);
	ky_arena_fini(&arena);
}

static void test_syscalls(void **state)
{
	struct ky_event_field *fields;
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	ky_arena_init(&arena);
	ring_format(&arena, "sys_enter_openat", &format);
	assert_int_equal(ky_event_fields(&arena, "syscalls", &format, &fields), 4);
	check_field(&fields[0], "dfd", KY_HOW_COPY, 16, 4);
	assert_true(fields[0].is_signed);
	assert_string_equal(fields[1].name, "filename");
	assert_int_equal(fields[1].how, KY_HOW_ADDRESS);
	check_field(&fields[3], "mode", KY_HOW_COPY, 40, 2);
	assert_false(fields[3].is_signed);
	ring_format(&arena, "sys_exit_openat", &format);
	assert_int_equal(ky_event_fields(&arena, "syscalls", &format, &fields), 1);
	check_field(&fields[0], "ret", KY_HOW_COPY, 16, 8);
	assert_true(fields[0].is_signed);
	ky_arena_fini(&arena);
}

/* Kernels that copy the text of an argument into the record. */
static void test_syscall_with_text(void **state)
{
	static const char text[] =
		"name: sys_enter_chdir\nID: 9\nformat:\n"
		"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
		"\tfield:const char * filename;\toffset:16;\tsize:8;\tsigned:0;\n"
		"\tfield:__data_loc char[] __filename_val;\toffset:24;\tsize:4;\tsigned:0;\n";
	struct ky_event_field *fields;
	struct ky_format format;
	struct ky_arena arena;

	(void)state;
	ky_arena_init(&arena);
	assert_int_equal(ky_format_parse(&arena, text, sizeof(text) - 1, &format, NULL), 0);
	assert_int_equal(ky_event_fields(&arena, "syscalls", &format, &fields), 1);
	assert_string_equal(fields[0].name, "filename");
	assert_int_equal(fields[0].how, KY_HOW_STRING);
	assert_int_equal(fields[0].offset, 24);
	ky_arena_fini(&arena);
}

static void test_rwbs(void **state)
{
	(void)state;
	assert_int_equal(ky_rwbs_mask("R", 1), KY_RWBS_READ);
	assert_int_equal(ky_rwbs_mask("RA\0xxxxxxx", 10), KY_RWBS_READ | KY_RWBS_RAHEAD);
	assert_int_equal(ky_rwbs_mask("WS\0", 10), KY_RWBS_WRITE | KY_RWBS_SYNC);
	assert_int_equal(ky_rwbs_mask("FWFSM", 10), KY_RWBS_PREFLUSH | KY_RWBS_WRITE | KY_RWBS_FUA |
							    KY_RWBS_SYNC | KY_RWBS_META);
	assert_int_equal(ky_rwbs_mask("FF", 10), KY_RWBS_PREFLUSH | KY_RWBS_FLUSH);
	assert_int_equal(ky_rwbs_mask("F", 10), KY_RWBS_FLUSH);
	assert_int_equal(ky_rwbs_mask("DE", 10), KY_RWBS_DISCARD | KY_RWBS_SECURE);
	assert_int_equal(ky_rwbs_mask("N", 10), 0);
	assert_int_equal(ky_rwbs_mask("", 0), 0);
	assert_int_equal(ky_rwbs_mask("", 10), 0);
}

static void test_stale_names(void **state)
{
	(void)state;
	assert_false(ky_tracefs_is_stale("foo"));
	assert_false(ky_tracefs_is_stale("kymo"));
	assert_false(ky_tracefs_is_stale("kymo-bench-12"));
	assert_false(ky_tracefs_is_stale("kymo-1-2-3-4"));
	/* Of another pid namespace: not ours to judge. */
	assert_false(ky_tracefs_is_stale("kymo-1-2-3"));
}

/* Instances of a process that this one replaced: the main one, a second one, a group's, the watch. */
static void test_stale_suffixes(void **state)
{
	static const char *const suffixes[] = {"", "-2", "-rare", "-2-rare", "-watch"};
	struct stat st;
	char name[128];

	(void)state;
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(name, sizeof(name), "kymo-%d-1-%llu%s", getpid(),
			 (unsigned long long)st.st_ino, suffixes[i]);
		assert_true(ky_tracefs_is_stale(name));
	}
	snprintf(name, sizeof(name), "kymo-%d-1-%lluX", getpid(), (unsigned long long)st.st_ino);
	assert_false(ky_tracefs_is_stale(name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),	       cmocka_unit_test(test_switch),
		cmocka_unit_test(test_fork),	       cmocka_unit_test(test_block),
		cmocka_unit_test(test_syscalls),       cmocka_unit_test(test_syscall_with_text),
		cmocka_unit_test(test_rwbs),	       cmocka_unit_test(test_stale_names),
		cmocka_unit_test(test_stale_suffixes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
