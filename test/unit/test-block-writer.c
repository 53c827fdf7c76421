/* SPDX-License-Identifier: MIT */
/* Blocks reach their files in order, whatever their length, and whatever the disk does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/packets/block-writer.h"

static struct ky_block_writer *writer;

static int setup(void **state)
{
	return ky_block_writer_open(&writer, KY_BLOCK_BYTES, NULL);
}

static int teardown(void **state)
{
	ky_block_writer_close(writer);
	return 0;
}

/* A file without a name, on a disk if the build directory is on one. */
static int open_file(void)
{
	char path[] = "block-writer-XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	return fd;
}

/* The block number @n of its file begins with that number and is full of it. */
static int put(struct ky_block_file *file, uint32_t n, uint32_t len)
{
	struct ky_block *block = ky_block_take(writer);

	assert_non_null(block);
	memset(block->data, (int)(n % 251), len);
	memcpy(block->data, &n, sizeof(n));
	return ky_block_file_put(file, block, len);
}

static void check(int fd, uint64_t offset, uint32_t n, uint32_t len)
{
	uint8_t *bytes = malloc(len);
	uint32_t number;

	assert_non_null(bytes);
	assert_int_equal(pread(fd, bytes, len, (off_t)offset), len);
	memcpy(&number, bytes, sizeof(number));
	assert_int_equal(number, n);
	for (uint32_t i = sizeof(number); i < len; i++)
		assert_int_equal(bytes[i], n % 251);
	free(bytes);
}

static uint64_t size_of(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t)st.st_size;
}

/* More than may wait, of two files in turn. */
static void test_many(void **state)
{
	const uint32_t n_blocks = 150;
	struct ky_block_file *files[2];
	uint64_t written;
	int fds[2];

	for (int i = 0; i < 2; i++) {
		fds[i] = open_file();
		files[i] = ky_block_file_open(writer, fds[i]);
		assert_non_null(files[i]);
	}
	for (uint32_t n = 0; n < n_blocks; n++)
		for (int i = 0; i < 2; i++)
			assert_int_equal(put(files[i], n, KY_BLOCK_BYTES), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ky_block_file_close(files[i], &written), 0);
		assert_int_equal(written, (uint64_t)n_blocks * KY_BLOCK_BYTES);
		assert_int_equal(size_of(fds[i]), written);
		for (uint32_t n = 0; n < n_blocks; n++)
			check(fds[i], (uint64_t)n * KY_BLOCK_BYTES, n, KY_BLOCK_BYTES);
		close(fds[i]);
	}
}

/* Where the file system can, the page cache is not used. */
static void test_direct(void **state)
{
	struct ky_block_file *file;
	int fd = open_file(), flags = fcntl(fd, F_GETFL);
	bool can = fcntl(fd, F_SETFL, flags | O_DIRECT) == 0;

	assert_int_equal(fcntl(fd, F_SETFL, flags & ~O_DIRECT), 0);
	file = ky_block_file_open(writer, fd);
	assert_non_null(file);
	assert_int_equal(put(file, 0, KY_BLOCK_BYTES), 0);
	assert_int_equal(ky_block_file_wait(file), 0);
	assert_int_equal((fcntl(fd, F_GETFL) & O_DIRECT) != 0, can);
	assert_int_equal(ky_block_file_close(file, NULL), 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_DIRECT, 0);
	close(fd);
}

/* Lengths that no disk takes, between those that it does. */
static void test_lengths(void **state)
{
	static const uint32_t lens[] = {KY_BLOCK_BYTES, 4096,		8192, 4097, 4096, 7, 12,
					4096,		KY_BLOCK_BYTES, 1000};
	const uint32_t n_lens = sizeof(lens) / sizeof(lens[0]);
	struct ky_block_file *file;
	uint64_t offset = 0, written;
	int fd = open_file();

	file = ky_block_file_open(writer, fd);
	assert_non_null(file);
	for (uint32_t n = 0; n < n_lens; n++) {
		assert_int_equal(put(file, n, lens[n]), 0);
		offset += lens[n];
		ky_block_writer_kick(writer);
		if (n % 3 == 0) {
			assert_int_equal(ky_block_file_wait(file), 0);
			assert_int_equal(ky_block_file_written(file), offset);
		}
	}
	assert_int_equal(ky_block_file_close(file, &written), 0);
	assert_int_equal(written, offset);
	offset = 0;
	for (uint32_t n = 0; n < n_lens; offset += lens[n++])
		check(fd, offset, n, lens[n]);
	assert_int_equal(size_of(fd), offset);
	close(fd);
}

static void test_hurry(void **state)
{
	struct ky_block_file *file;
	int fd = open_file();

	file = ky_block_file_open(writer, fd);
	assert_non_null(file);
	for (uint32_t n = 0; n < 12; n++) {
		assert_int_equal(put(file, n, KY_BLOCK_BYTES), 0);
		if (n == 5)
			ky_block_writer_hurry(writer);
	}
	assert_int_equal(ky_block_file_close(file, NULL), 0);
	for (uint32_t n = 0; n < 12; n++)
		check(fd, (uint64_t)n * KY_BLOCK_BYTES, n, KY_BLOCK_BYTES);
	close(fd);
}

/* Data that does not fit is an error, the file ends with a whole block, and other files go on. */
static void test_full(void **state)
{
	struct rlimit old, limit;
	struct ky_block_file *file, *other;
	uint64_t written;
	int fd = open_file(), other_fd = open_file(), ret = 0;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	limit = old;
	limit.rlim_cur = 5 * KY_BLOCK_BYTES + 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	file = ky_block_file_open(writer, fd);
	other = ky_block_file_open(writer, other_fd);
	assert_true(file && other);
	for (uint32_t n = 0; n < 10; n++)
		ret = ret ? ret : put(file, n, KY_BLOCK_BYTES);
	assert_int_equal(put(other, 1, 4096), 0);
	assert_int_equal(ky_block_file_wait(file), -EFBIG);
	assert_int_equal(put(file, 10, KY_BLOCK_BYTES), -EFBIG);
	assert_int_equal(ky_block_file_close(file, &written), -EFBIG);
	assert_int_equal(written, 5 * KY_BLOCK_BYTES);
	assert_int_equal(size_of(fd), written);
	for (uint32_t n = 0; n < 5; n++)
		check(fd, (uint64_t)n * KY_BLOCK_BYTES, n, KY_BLOCK_BYTES);
	assert_int_equal(ky_block_file_close(other, NULL), 0);
	check(other_fd, 0, 1, 4096);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	close(fd);
	close(other_fd);
}

/* Nothing was put; a block was taken and not used. */
static void test_nothing(void **state)
{
	struct ky_block *block = ky_block_take(writer);
	struct ky_block_file *file;
	int fd = open_file();

	assert_non_null(block);
	assert_int_equal((uintptr_t)block->data % KY_BLOCK_ALIGN, 0);
	assert_true(ky_block_writer_tid(writer) > 0);
	file = ky_block_file_open(writer, fd);
	assert_non_null(file);
	ky_block_writer_kick(writer);
	assert_int_equal(ky_block_file_close(file, NULL), 0);
	ky_block_give_back(writer, block);
	assert_ptr_equal(ky_block_take(writer), block);
	assert_int_equal(size_of(fd), 0);
	close(fd);
}

/* What the caller writes itself has its place among the blocks; a file that is cut stays so. */
static void test_reserved(void **state)
{
	struct ky_block_file *file;
	struct ky_block *block = ky_block_take(writer);
	int fd = open_file();
	uint64_t at;

	assert_non_null(block);
	file = ky_block_file_open(writer, fd);
	assert_non_null(file);
	assert_true(ky_block_file_is_idle(file));
	assert_int_equal(put(file, 0, KY_BLOCK_BYTES), 0);
	assert_false(ky_block_file_is_idle(file));
	assert_int_equal(ky_block_file_wait(file), 0);
	assert_true(ky_block_file_is_idle(file));
	at = ky_block_file_reserve(file, KY_BLOCK_BYTES);
	assert_int_equal(at, KY_BLOCK_BYTES);
	/* Put before the caller has written. */
	assert_int_equal(put(file, 2, KY_BLOCK_BYTES), 0);
	memset(block->data, 1, KY_BLOCK_BYTES);
	memcpy(block->data, &(uint32_t){1}, sizeof(uint32_t));
	assert_int_equal(pwrite(fd, block->data, KY_BLOCK_BYTES, (off_t)at), KY_BLOCK_BYTES);
	ky_block_give_back(writer, block);
	assert_int_equal(ky_block_file_wait(file), 0);
	assert_int_equal(ky_block_file_written(file), 3 * KY_BLOCK_BYTES);
	at = ky_block_file_reserve(file, KY_BLOCK_BYTES);
	ky_block_file_cut(file, at, -ENOSPC);
	assert_false(ky_block_file_is_idle(file));
	assert_int_equal(put(file, 4, KY_BLOCK_BYTES), -ENOSPC);
	assert_int_equal(ky_block_file_written(file), at);
	assert_int_equal(ky_block_file_close(file, NULL), -ENOSPC);
	assert_int_equal(size_of(fd), at);
	for (uint32_t n = 0; n < 3; n++)
		check(fd, (uint64_t)n * KY_BLOCK_BYTES, n, KY_BLOCK_BYTES);
	close(fd);
}

/* Also what is on its way when it is cut does not come back behind the cut. */
static void test_cut_while_written(void **state)
{
	for (int round = 0; round < 100; round++) {
		struct ky_block_file *file;
		int fd = open_file();
		uint64_t at;

		file = ky_block_file_open(writer, fd);
		assert_non_null(file);
		at = ky_block_file_reserve(file, KY_BLOCK_BYTES);
		for (uint32_t n = 1; n < 3; n++)
			assert_int_equal(put(file, n, KY_BLOCK_BYTES), 0);
		ky_block_writer_kick(writer);
		while (ky_block_writer_waits(writer))
			;
		ky_block_file_cut(file, at, -EIO);
		assert_int_equal(ky_block_file_close(file, NULL), -EIO);
		assert_int_equal(size_of(fd), at);
		close(fd);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_direct, setup, teardown),
		cmocka_unit_test_setup_teardown(test_lengths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hurry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reserved, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut_while_written, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
