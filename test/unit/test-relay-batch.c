/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/files/relay-batch.h"

/* More files than a batch has room for. */
#define N_FILES (KY_RELAY_BATCH_FILES + 3)

static struct ky_relay_batch batch;

static int temporary(void)
{
	char name[] = "/tmp/kymo-batch-XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	return fd;
}

static struct ky_relay_stream_file new_file(void)
{
	return (struct ky_relay_stream_file){temporary(), temporary(), 0};
}

static void close_file(const struct ky_relay_stream_file *file)
{
	close(file->fd);
	close(file->index_fd);
}

static void write_now(void)
{
	struct ky_relay_stream_file *failed;

	assert_int_equal(ky_relay_batch_write(&batch, &failed), 0);
}

/* As the relay does it: what does not fit comes after a write. */
static void put(struct ky_relay_stream_file *file, const uint8_t *data, size_t bytes, uint64_t at)
{
	if (ky_relay_batch_data(&batch, file, data, bytes, at))
		return;
	write_now();
	assert_true(ky_relay_batch_data(&batch, file, data, bytes, at));
}

static void put_record(struct ky_relay_stream_file *file, uint8_t value, uint64_t number)
{
	uint8_t record[KY_RELAY_RECORD_BYTES];

	memset(record, value, sizeof(record));
	if (ky_relay_batch_record(&batch, file, record, number * sizeof(record)))
		return;
	write_now();
	assert_true(ky_relay_batch_record(&batch, file, record, number * sizeof(record)));
}

/* Packets of many streams in turns, more than fit, are all where they belong. */
static void test_many_files(void **state)
{
	static uint8_t data[N_FILES][5000], got[sizeof(data[0])];
	struct ky_relay_stream_file files[N_FILES];
	uint8_t record[KY_RELAY_RECORD_BYTES];

	(void)state;
	for (size_t i = 0; i < N_FILES; i++) {
		files[i] = new_file();
		for (size_t k = 0; k < sizeof(data[i]); k++)
			data[i][k] = (uint8_t)(i * 31 + k * 7);
	}
	for (size_t k = 0; k < 100; k++)
		for (size_t i = 0; i < N_FILES; i++) {
			put(&files[i], data[i] + 50 * k, 20, 50 * k);
			put(&files[i], data[i] + 50 * k + 20, 30, 50 * k + 20);
			put_record(&files[i], (uint8_t)(i + k), k);
		}
	write_now();
	for (size_t i = 0; i < N_FILES; i++) {
		assert_int_equal(pread(files[i].fd, got, sizeof(got), 0), sizeof(got));
		assert_memory_equal(got, data[i], sizeof(got));
		for (size_t k = 0; k < 100; k++) {
			assert_int_equal(pread(files[i].index_fd, record, sizeof(record),
					       (off_t)(k * sizeof(record))),
					 sizeof(record));
			assert_int_equal(record[0], (uint8_t)(i + k));
			assert_int_equal(record[sizeof(record) - 1], (uint8_t)(i + k));
		}
		close_file(&files[i]);
	}
}

/* Places that do not follow each other are not one write. */
static void test_places(void **state)
{
	struct ky_relay_stream_file file = new_file();
	uint8_t got[9];

	(void)state;
	put(&file, (const uint8_t *)"abc", 3, 0);
	assert_false(ky_relay_batch_data(&batch, &file, (const uint8_t *)"ghi", 3, 6));
	put(&file, (const uint8_t *)"ghi", 3, 6);
	put(&file, (const uint8_t *)"def", 3, 3);
	put(&file, (const uint8_t *)"X", 1, 0);
	write_now();
	assert_int_equal(pread(file.fd, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(got, "Xbcdefghi", sizeof(got));
	close_file(&file);
}

/* A file that cannot be written is named; the others are written, and the batch can be used again. */
static void test_failure(void **state)
{
	struct ky_relay_stream_file good = new_file(),
				    bad = {open("/dev/full", O_WRONLY), temporary(), 0},
				    *failed = NULL;
	uint8_t got[3];

	(void)state;
	put(&bad, (const uint8_t *)"abc", 3, 0);
	put_record(&bad, 1, 0);
	put(&good, (const uint8_t *)"abc", 3, 0);
	assert_int_equal(ky_relay_batch_write(&batch, &failed), -ENOSPC);
	assert_ptr_equal(failed, &bad);
	assert_int_equal(lseek(bad.index_fd, 0, SEEK_END), 0);
	assert_int_equal(pread(good.fd, got, sizeof(got), 0), sizeof(got));
	write_now();
	close_file(&good);
	close_file(&bad);
}

/* Data is written before the records, which come later, together; without its data a packet has no record. */
static void test_data_first(void **state)
{
	struct ky_relay_stream_file good = new_file(),
				    bad = {open("/dev/full", O_WRONLY), temporary(), 0},
				    *failed = NULL;
	uint8_t data[3] = "abc", got[6];

	(void)state;
	put(&good, data, 3, 0);
	put_record(&good, 1, 0);
	assert_int_equal(ky_relay_batch_write_data(&batch, &failed), 0);
	memcpy(data, "def", 3);
	put(&good, data, 3, 3);
	put_record(&good, 2, 1);
	put(&bad, data, 3, 0);
	put_record(&bad, 1, 0);
	assert_int_equal(ky_relay_batch_write_data(&batch, &failed), -ENOSPC);
	assert_ptr_equal(failed, &bad);
	assert_int_equal(pread(good.fd, got, sizeof(got), 0), sizeof(got));
	assert_memory_equal(got, "abcdef", sizeof(got));
	assert_int_equal(lseek(good.index_fd, 0, SEEK_END), 0);
	write_now();
	assert_int_equal(lseek(good.index_fd, 0, SEEK_END), 2 * KY_RELAY_RECORD_BYTES);
	assert_int_equal(lseek(bad.index_fd, 0, SEEK_END), 0);
	close_file(&good);
	close_file(&bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_files),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_failure),
		cmocka_unit_test(test_data_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
