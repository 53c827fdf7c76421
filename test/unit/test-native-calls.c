/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "kernel/events/native-calls.h"

#if defined(__x86_64__)

static void find(const char *const *names, bool unknown[KY_CONTENT_MAX_CALLS])
{
	struct ky_catalogue catalogue = {0};
	char event[64];

	ky_arena_init(&catalogue.arena);
	for (size_t i = 0; names[i]; i++) {
		snprintf(event, sizeof(event), "sys_enter_%s", names[i]);
		assert_int_equal(ky_catalogue_add(&catalogue, "syscalls", event, names[i], false),
				 0);
		snprintf(event, sizeof(event), "sys_exit_%s", names[i]);
		assert_int_equal(ky_catalogue_add(&catalogue, "syscalls", event, names[i], false),
				 0);
	}
	assert_int_equal(ky_catalogue_add(&catalogue, "raw_syscalls", "sys_enter_read", "x", false),
			 0);
	ky_native_calls_unknown(&catalogue, unknown);
	ky_catalogue_fini(&catalogue);
}

static size_t count_known(const bool unknown[KY_CONTENT_MAX_CALLS])
{
	size_t n = 0;

	for (size_t i = 0; i < KY_CONTENT_MAX_CALLS; i++)
		n += !unknown[i];
	return n;
}

/* One at each end of what lies without a gap: so those between have theirs. */
static void test_numbers(void **state)
{
	static const struct {
		const char *name;
		uint32_t number;
	} calls[] = {
		{"read", SYS_read},
		{"newstat", SYS_stat},
		{"sendfile64", SYS_sendfile},
		{"newuname", SYS_uname},
		{"sysfs", SYS_sysfs},
		{"sched_rr_get_interval", SYS_sched_rr_get_interval},
		{"modify_ldt", SYS_modify_ldt},
		{"prctl", SYS_prctl},
		{"umount", SYS_umount2},
		{"ioperm", SYS_ioperm},
		{"init_module", SYS_init_module},
		{"quotactl", SYS_quotactl},
		{"gettid", SYS_gettid},
		{"sched_getaffinity", SYS_sched_getaffinity},
		{"io_setup", SYS_io_setup},
		{"io_cancel", SYS_io_cancel},
		{"remap_file_pages", SYS_remap_file_pages},
		{"utimes", SYS_utimes},
		{"mbind", SYS_mbind},
		{"rseq", 334},
		{"uprobe", 336},
		{"pidfd_send_signal", 424},
		{"set_mempolicy_home_node", 450},
		{"mseal", 462},
		{"file_setattr", 469},
	};
	bool unknown[KY_CONTENT_MAX_CALLS];

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		const char *const names[] = {calls[i].name, NULL};

		find(names, unknown);
		if (unknown[calls[i].number] || count_known(unknown) != 1)
			fail_msg("%s is not %u", calls[i].name, calls[i].number);
	}
}

static void test_gaps(void **state)
{
	static const char *const names[] = {"read", "close", NULL}, *const none[] = {NULL};
	bool unknown[KY_CONTENT_MAX_CALLS];

	find(names, unknown);
	assert_false(unknown[0]);
	assert_true(unknown[1]);
	assert_true(unknown[2]);
	assert_false(unknown[3]);
	assert_int_equal(count_known(unknown), 2);
	find(none, unknown);
	assert_int_equal(count_known(unknown), 0);
}

/* Those that nobody here has heard of are behind the last one that is known. */
static void test_newer_kernel(void **state)
{
	static const char *const names[] = {"read", "quantum", "teleport", NULL};
	bool unknown[KY_CONTENT_MAX_CALLS];

	find(names, unknown);
	assert_int_equal(count_known(unknown), 3);
	assert_false(unknown[0]);
	assert_true(unknown[469]);
	assert_true(unknown[470]);
	assert_false(unknown[471]);
	assert_false(unknown[472]);
	assert_true(unknown[KY_CONTENT_BEYOND]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_gaps),
		cmocka_unit_test(test_newer_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 77;
}

#endif
