/* SPDX-License-Identifier: MIT */
/* The thread that sleeps at the rings of many programs: what wakes it, and what does not. */
#include "unit.h"

#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../race/ring-client.h"
#include "record/runtime/user-sentry.h"

static struct ky_user_sentry sentry;
/* As in rings: other processes write them, too. */
static uint32_t *words;

static int begin(void **state)
{
	words = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(&sentry, 0, sizeof(sentry));
	ky_user_sentry_begin(&sentry);
	/* A kernel without futex_waitv: programs are looked at then. */
	if (sentry.fired_fd < 0)
		skip();
	return words == MAP_FAILED;
}

static int end(void **state)
{
	ky_user_sentry_end(&sentry);
	return munmap(words, 4096);
}

static void watch(unsigned int first, unsigned int n)
{
	struct kymo_ring_futex rings[KY_USER_SENTRY_RINGS_MAX];

	for (unsigned int i = 0; i < n; i++)
		rings[i] = (struct kymo_ring_futex){&words[first + i], words[first + i]};
	ky_user_sentry_watch(&sentry, rings, n);
}

static void wake(unsigned int i)
{
	__atomic_fetch_add(&words[i], 1, __ATOMIC_RELEASE);
	(void)syscall(SYS_futex, &words[i], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void assert_fires(void)
{
	struct pollfd fired = {sentry.fired_fd, POLLIN, 0};

	assert_int_equal(poll(&fired, 1, 60000), 1);
}

/* The thread sleeps in the kernel, or is on its way there. */
static void assert_quiet(void)
{
	struct pollfd fired = {sentry.fired_fd, POLLIN, 0};

	assert_int_equal(poll(&fired, 1, 20), 0);
}

static void test_any_of_many(void **state)
{
	for (unsigned int i = 0; i < KY_USER_SENTRY_RINGS_MAX; i += 9) {
		watch(0, KY_USER_SENTRY_RINGS_MAX);
		assert_quiet();
		wake(i);
		assert_fires();
	}
}

/* Between the request and the sleep. */
static void test_change_that_has_been(void **state)
{
	const struct kymo_ring_futex ring = {&words[3], words[3]};

	wake(3);
	ky_user_sentry_watch(&sentry, &ring, 1);
	assert_fires();
}

/* A program that comes: the owner watches its ring, too, and the rings before are still watched. */
static void test_list_that_grows(void **state)
{
	for (unsigned int n = 1; n <= 20; n++) {
		watch(0, n);
		assert_quiet();
	}
	wake(19);
	assert_fires();
	watch(0, 21);
	wake(0);
	assert_fires();
}

/* A program that ends: its ring wakes nobody. */
static void test_list_that_shrinks(void **state)
{
	watch(0, 2);
	assert_quiet();
	watch(1, 1);
	wake(0);
	assert_quiet();
	wake(1);
	assert_fires();
}

static void test_no_ring(void **state)
{
	watch(0, 1);
	ky_user_sentry_watch(&sentry, NULL, 0);
	wake(0);
	assert_quiet();
	/* What was seen before is over. */
	watch(0, 1);
	wake(0);
	assert_fires();
	ky_user_sentry_watch(&sentry, NULL, 0);
	assert_quiet();
}

/* One wake-up ends the watch: the owner looks, and asks again. */
static void test_watch_is_used_up(void **state)
{
	eventfd_t count;

	watch(0, 2);
	wake(0);
	assert_fires();
	assert_int_equal(eventfd_read(sentry.fired_fd, &count), 0);
	wake(1);
	assert_quiet();
}

static void test_ring_that_is_closed_while_it_is_watched(void **state)
{
	uint32_t *word =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct kymo_ring_futex rings[] = {{word, 0}, {&words[0], words[0]}};

	ky_user_sentry_watch(&sentry, rings, 2);
	assert_quiet();
	assert_int_equal(munmap(word, 4096), 0);
	wake(0);
	assert_fires();
	/* The kernel cannot sleep at it any more: the owner is called, and looks itself. */
	ky_user_sentry_watch(&sentry, rings, 2);
	assert_fires();
}

static void test_end_while_it_watches(void **state)
{
	for (int i = 0; i < 200; i++) {
		struct ky_user_sentry other = {.n = 0};
		struct kymo_ring_futex ring = {&words[0], words[0]};

		ky_user_sentry_begin(&other);
		if (i % 2)
			ky_user_sentry_watch(&other, &ring, 1);
		ky_user_sentry_end(&other);
		ky_user_sentry_end(&other);
	}
}

/* ---- with rings and programs ---- */

static struct client_ring rings[3];

static void arm_rings(unsigned int n)
{
	struct kymo_ring_futex futexes[3];

	for (unsigned int i = 0; i < n; i++)
		assert_int_equal(
			kymo_ring_reader_arm(rings[i].reader, KYMO_RING_WAKE_SWITCH, &futexes[i]),
			0);
	ky_user_sentry_watch(&sentry, futexes, n);
}

/* A program writes until sub-buffers are full, and ends. */
static void run_program(unsigned int i)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		for (uint64_t k = 0; k < 1000; k++)
			(void)client_write(&rings[i].writer, k);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void take_all(unsigned int i)
{
	struct kymo_ring_chunk chunk;
	unsigned int n = 0;

	for (uint32_t k = 0; k < kymo_ring_reader_buffers(rings[i].reader); k++) {
		while (kymo_ring_reader_next(rings[i].reader, k, KYMO_RING_PARTIAL, &chunk, NULL) >
		       0) {
			kymo_ring_reader_release(rings[i].reader, &chunk);
			n++;
		}
	}
	assert_true(n > 0);
}

static void test_programs_that_write(void **state)
{
	const struct kymo_ring_options options = {
		.size_bytes = sizeof(options), .subbuf_bytes = 4096, .n_subbufs = 8};

	for (unsigned int i = 0; i < 3; i++)
		client_ring_open(&rings[i], &options);
	for (unsigned int i = 0; i < 9; i++) {
		/* The third program comes later. */
		unsigned int n = i < 4 ? 2 : 3;

		arm_rings(n);
		assert_quiet();
		run_program(i % n);
		assert_fires();
		take_all(i % n);
	}
	for (unsigned int i = 0; i < 3; i++)
		client_ring_close(&rings[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_any_of_many, begin, end),
		cmocka_unit_test_setup_teardown(test_change_that_has_been, begin, end),
		cmocka_unit_test_setup_teardown(test_list_that_grows, begin, end),
		cmocka_unit_test_setup_teardown(test_list_that_shrinks, begin, end),
		cmocka_unit_test_setup_teardown(test_no_ring, begin, end),
		cmocka_unit_test_setup_teardown(test_watch_is_used_up, begin, end),
		cmocka_unit_test_setup_teardown(test_ring_that_is_closed_while_it_is_watched, begin,
						end),
		cmocka_unit_test_setup_teardown(test_end_while_it_watches, begin, end),
		cmocka_unit_test_setup_teardown(test_programs_that_write, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
