/* SPDX-License-Identifier: MIT */
/* Files that get shorter while they are mapped; and handlers of SIGBUS that are not ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/sigbus-guard.h"

#define PAGES 8

static size_t page;

/* A file of PAGES pages full of 'x', mapped; *fd is its file. */
static const volatile char *map(int *fd)
{
	char name[] = "/tmp/kymo-guard-XXXXXX";
	char *data;

	page = (size_t)sysconf(_SC_PAGESIZE);
	*fd = mkstemp(name);
	assert_true(*fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(*fd, (off_t)(PAGES * page)), 0);
	data = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	assert_true(data != MAP_FAILED);
	memset(data, 'x', PAGES * page);
	munmap(data, PAGES * page);
	data = mmap(NULL, PAGES * page, PROT_READ, MAP_PRIVATE, *fd, 0);
	assert_true(data != MAP_FAILED);
	return data;
}

static void unmap(const volatile char *data, int fd)
{
	ky_sigbus_guard_remove((const void *)(uintptr_t)data, PAGES * page);
	munmap((void *)(uintptr_t)data, PAGES * page);
	close(fd);
}

static bool hit(const volatile char *data)
{
	return ky_sigbus_guard_hit((const void *)(uintptr_t)data, PAGES * page);
}

static void *read_all(void *arg)
{
	const volatile char *data = arg;
	uintptr_t sum = 0;

	for (size_t i = 0; i < PAGES * page; i++)
		sum += data[i] == 'x';
	return (void *)sum;
}

static void missing_bytes_are_zeros(void **state)
{
	int fd, other_fd;
	const volatile char *data = map(&fd), *other = map(&other_fd);

	assert_int_equal(ky_sigbus_guard_add((const void *)(uintptr_t)data, PAGES * page), 0);
	assert_int_equal(ky_sigbus_guard_add((const void *)(uintptr_t)other, PAGES * page), 0);
	assert_int_equal((uintptr_t)read_all((void *)(uintptr_t)data), PAGES * page);
	assert_false(hit(data));
	assert_int_equal(ftruncate(fd, (off_t)(2 * page)), 0);
	assert_int_equal((uintptr_t)read_all((void *)(uintptr_t)data), 2 * page);
	assert_true(hit(data));
	assert_false(hit(other));
	unmap(data, fd);
	assert_int_equal((uintptr_t)read_all((void *)(uintptr_t)other), PAGES * page);
	unmap(other, other_fd);
}

static void several_threads_meet_it_at_once(void **state)
{
	pthread_t threads[4];
	void *sum;
	int fd;

	for (int round = 0; round < 50; round++) {
		const volatile char *data = map(&fd);

		assert_int_equal(ky_sigbus_guard_add((const void *)(uintptr_t)data, PAGES * page),
				 0);
		assert_int_equal(ftruncate(fd, (off_t)page), 0);
		for (int i = 0; i < 4; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, read_all,
							(void *)(uintptr_t)data),
					 0);
		for (int i = 0; i < 4; i++) {
			assert_int_equal(pthread_join(threads[i], &sum), 0);
			assert_int_equal((uintptr_t)sum, page);
		}
		assert_true(hit(data));
		unmap(data, fd);
	}
}

static sigjmp_buf back;
static const volatile char *faulted;

static void application_handler(int number, siginfo_t *info, void *context)
{
	faulted = info->si_addr;
	siglongjmp(back, 1);
}

/* What is not guarded goes to the handler that the application had set; and it gets its place back. */
static void other_handlers_keep_their_work(void **state)
{
	struct sigaction mine = {.sa_sigaction = application_handler, .sa_flags = SA_SIGINFO};
	struct sigaction original, now;
	int fd, other_fd;
	const volatile char *data = map(&fd), *other = map(&other_fd);

	assert_int_equal(sigaction(SIGBUS, &mine, &original), 0);
	assert_int_equal(ky_sigbus_guard_add((const void *)(uintptr_t)data, PAGES * page), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(ftruncate(other_fd, 0), 0);
	faulted = NULL;
	if (!sigsetjmp(back, 1))
		(void)other[page];
	assert_ptr_equal((const void *)(uintptr_t)faulted, (const void *)(uintptr_t)&other[page]);
	assert_int_equal(data[page], 0);
	assert_true(hit(data));
	unmap(data, fd);
	assert_int_equal(sigaction(SIGBUS, &original, &now), 0);
	assert_ptr_equal(now.sa_sigaction, application_handler);
	unmap(other, other_fd);
}

static void more_ranges_than_one_chunk_holds(void **state)
{
	const volatile char *data[200];
	int fds[200];

	for (int i = 0; i < 200; i++) {
		data[i] = map(&fds[i]);
		assert_int_equal(
			ky_sigbus_guard_add((const void *)(uintptr_t)data[i], PAGES * page), 0);
	}
	assert_int_equal(ftruncate(fds[199], 0), 0);
	assert_int_equal(data[199][0], 0);
	for (int i = 0; i < 200; i++)
		assert_int_equal(hit(data[i]), i == 199);
	for (int i = 0; i < 200; i++)
		unmap(data[i], fds[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(missing_bytes_are_zeros),
		cmocka_unit_test(several_threads_meet_it_at_once),
		cmocka_unit_test(other_handlers_keep_their_work),
		cmocka_unit_test(more_ranges_than_one_chunk_holds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
