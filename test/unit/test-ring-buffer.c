/* SPDX-License-Identifier: MIT */
/* The ring buffer: making, writing, reading, losing, snapshots; one thread. test/race/ has the rest. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../race/ring-client.h"
#include "one-cpu.h"

struct ring {
	int fd;
	struct kymo_ring_writer writer;
	struct kymo_ring_reader *reader;
	struct client_check check;
};

static void ring_open(struct ring *ring, uint32_t flags, uint64_t subbuf_bytes, uint32_t n_subbufs)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options),
					    .flags = flags,
					    .subbuf_bytes = subbuf_bytes,
					    .n_subbufs = n_subbufs};
	struct kymo_error err;

	test_on_one_cpu();
	memset(ring, 0, sizeof(*ring));
	ring->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_true(ring->fd >= 0);
	assert_int_equal(kymo_ring_create(&ring->writer, ring->fd, &client_config, NULL, &options),
			 0);
	assert_int_equal(
		kymo_ring_reader_open(&ring->reader, ring->fd, client_reader_options(0), &err), 0);
}

static void ring_close(struct ring *ring)
{
	kymo_ring_reader_close(ring->reader);
	kymo_ring_unmap(&ring->writer);
	close(ring->fd);
}

static void ring_read(struct ring *ring, uint32_t flags)
{
	bool ok = client_check_all(&ring->check, ring->reader, flags);

	if (!ok)
		fail_msg("%s", ring->check.why);
}

static void ring_stats(struct ring *ring, struct kymo_ring_stats *stats)
{
	kymo_ring_reader_stats(ring->reader, KYMO_RING_ALL, stats);
}

static const uint32_t kinds[] = {0, KYMO_RING_LOCKED, KYMO_RING_GLOBAL};

static void test_every_record_comes_back(void **state)
{
	for (unsigned int k = 0; k < 3; k++) {
		struct kymo_ring_stats stats;
		struct ring ring;

		ring_open(&ring, kinds[k], 4096, 4);
		for (uint64_t i = 0; i < 10000; i++) {
			assert_int_equal(i % 3 ? client_write(&ring.writer, i)
					       : client_write_text(&ring.writer, i, i % 300),
					 0);
			if (i % 50 == 0)
				ring_read(&ring, i % 100 ? KYMO_RING_PARTIAL : 0);
		}
		ring_read(&ring, KYMO_RING_PARTIAL);
		assert_int_equal(ring.check.records, 10000);
		ring_stats(&ring, &stats);
		assert_int_equal(stats.records, 10000);
		assert_int_equal(stats.unread_records, 0);
		assert_int_equal(stats.lost_total, 0);
		ring_close(&ring);
	}
}

static void test_all_sizes(void **state)
{
	/* Small payloads have sequences of their own; every length of the general one. */
	struct ring ring;

	ring_open(&ring, 0, 65536, 8);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t length = 0; length < 700; length++)
			assert_int_equal(
				client_write_text(&ring.writer, round * 700 + length, length), 0);
		ring_read(&ring, KYMO_RING_PARTIAL);
	}
	assert_int_equal(ring.check.records, 2100);
	ring_close(&ring);
}

/* A header of 8 bytes, and payloads of the constant sizes. */
static uint32_t header8(const void *record, const struct kymo_ring_spot *spot,
			union kymo_ring_header *header)
{
	header->word64 = *(const uint64_t *)record;
	return 8;
}

static const struct kymo_ring_config config8 = {
	sizeof(struct client_header), client_clock,	   header8,
	client_subbuf_open,	      client_subbuf_close,
};

static void test_constant_sizes(void **state)
{
	static const uint64_t sizes[] = {0, 4, 8, 12, 16, 20, 24, 5, 28, 100};
	uint64_t record = UINT64_C(0x1122334455667788), payload[16];
	struct kymo_ring_chunk chunk;
	const uint8_t *at;
	struct ring ring;
	uint64_t end = 0;

	ring_open(&ring, 0, 4096, 2);
	for (unsigned int i = 0; i < sizeof(payload); i++)
		((uint8_t *)payload)[i] = (uint8_t)(200 - i);
#define WRITE(n) assert_int_equal(kymo_ring_write(&config8, &ring.writer, &record, payload, n), 0)
	WRITE(0);
	WRITE(4);
	WRITE(8);
	WRITE(12);
	WRITE(16);
	WRITE(20);
	WRITE(24);
	WRITE(5);
	WRITE(28);
	WRITE(100);
	assert_int_equal(kymo_ring_reader_next(ring.reader, (uint32_t)sched_getcpu(),
					       KYMO_RING_PARTIAL, &chunk, NULL),
			 1);
	at = chunk.body;
	for (unsigned int i = 0; i < 10; i++) {
		assert_memory_equal(at + end, &record, 8);
		assert_memory_equal(at + end + 8, payload, sizes[i]);
		end += 8 + sizes[i];
	}
	assert_int_equal(chunk.body_bytes, end);
	ring_close(&ring);
}

static void test_exact_fit(void **state)
{
	/* 4096 - 48 = 4048 bytes: 16 + 16 + length; then nothing is left. */
	struct kymo_ring_stats stats;
	struct ring ring;

	ring_open(&ring, 0, 4096, 2);
	assert_int_equal(client_write_text(&ring.writer, 0, 4048 - 16), 0);
	ring_stats(&ring, &stats);
	assert_int_equal(stats.bytes, 4096);
	ring_read(&ring, 0);
	assert_int_equal(ring.check.records, 0); /* nobody closed it yet */
	ring_read(&ring, KYMO_RING_PARTIAL);
	assert_int_equal(ring.check.records, 1);
	assert_int_equal(client_write_text(&ring.writer, 1, 4048 - 16), 0);
	ring_read(&ring, 0);
	assert_int_equal(client_write_text(&ring.writer, 2, 4048 - 16), 0);
	ring_read(&ring, 0);
	assert_int_equal(ring.check.records, 2);
	/* One byte more does not fit anywhere. */
	assert_int_equal(client_write_text(&ring.writer, 3, 4048 - 15), KYMO_E_LIMIT);
	ring_stats(&ring, &stats);
	assert_int_equal(stats.lost[KYMO_RING_LOST_TOO_LARGE], 1);
	ring_close(&ring);
}

static void test_discard_counts(void **state)
{
	for (unsigned int k = 0; k < 3; k++) {
		struct kymo_ring_stats stats;
		uint64_t written = 0, lost = 0;
		struct ring ring;

		ring_open(&ring, kinds[k], 4096, 2);
		for (uint64_t i = 0; i < 3000; i++) {
			if (client_write(&ring.writer, i))
				lost++;
			else
				written++;
		}
		assert_true(lost > 1000);
		ring_stats(&ring, &stats);
		assert_int_equal(stats.records, written);
		assert_int_equal(stats.unread_records, written);
		assert_int_equal(stats.lost[KYMO_RING_LOST_FULL], lost);
		assert_int_equal(stats.lost_total, lost);
		/* The packet that comes next says it. */
		ring_read(&ring, 0);
		assert_int_equal(client_write_text(&ring.writer, 5000, 3000), 0);
		ring_read(&ring, KYMO_RING_PARTIAL);
		assert_int_equal(ring.check.records, written + 1);
		ring_close(&ring);
	}
}

static void test_loss_shows_without_a_record(void **state)
{
	uint32_t cpu;
	struct kymo_ring_chunk chunk;
	struct ring ring;
	uint64_t lost = 0;

	ring_open(&ring, 0, 4096, 2);
	cpu = (uint32_t)sched_getcpu();
	for (uint64_t i = 0; i < 1000; i++)
		lost += client_write(&ring.writer, i) < 0;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			kymo_ring_reader_next(ring.reader, cpu, KYMO_RING_PARTIAL, &chunk, NULL),
			1);
		assert_int_equal(chunk.is_closed, i == 0);
		kymo_ring_reader_release(ring.reader, &chunk);
	}
	assert_int_equal(chunk.packet.lost, lost);
	assert_int_equal(kymo_ring_reader_next(ring.reader, cpu, KYMO_RING_PARTIAL, &chunk, NULL),
			 0);
	kymo_ring_count_loss(&ring.writer);
	assert_int_equal(kymo_ring_reader_next(ring.reader, cpu, KYMO_RING_PARTIAL, &chunk, NULL),
			 1);
	assert_int_equal(chunk.packet.lost, lost + 1);
	assert_int_equal(chunk.body_bytes, 0);
	kymo_ring_reader_release(ring.reader, &chunk);
	assert_int_equal(kymo_ring_reader_next(ring.reader, cpu, KYMO_RING_PARTIAL, &chunk, NULL),
			 0);
	ring_close(&ring);
}

static uint64_t snapshot(struct ring *ring, uint64_t *first)
{
	struct kymo_ring_chunk chunk;
	struct kymo_error err;
	uint64_t records = ring->check.records;
	int status;

	*first = UINT64_MAX;
	assert_int_equal(kymo_ring_snapshot_begin(ring->reader, &err), 0);
	for (uint32_t i = 0; i < kymo_ring_reader_buffers(ring->reader); i++) {
		client_check_next_buffer(&ring->check);
		while ((status = kymo_ring_snapshot_next(ring->reader, i, &chunk, &err)) > 0) {
			if (*first == UINT64_MAX)
				memcpy(first, (const uint8_t *)chunk.body + 4, 8);
			if (!client_check_chunk(&ring->check, &chunk))
				fail_msg("%s", ring->check.why);
		}
		if (status < 0)
			fail_msg("%s", err.message);
	}
	return ring->check.records - records;
}

static void test_overwrite(void **state)
{
	for (unsigned int k = 0; k < 3; k++) {
		struct kymo_ring_stats stats;
		struct kymo_ring_chunk chunk;
		uint64_t first, n;
		struct ring ring;

		ring_open(&ring, kinds[k] | KYMO_RING_OVERWRITE, 4096, 4);
		assert_int_equal(kymo_ring_reader_next(ring.reader, 0, 0, &chunk, NULL),
				 KYMO_E_STATE);
		for (uint64_t i = 0; i < 100; i++)
			assert_int_equal(client_write(&ring.writer, i), 0);
		assert_int_equal(snapshot(&ring, &first), 100);
		assert_int_equal(first, 0);
		for (uint64_t i = 100; i < 50000; i++)
			assert_int_equal(client_write(&ring.writer, i), 0);
		n = snapshot(&ring, &first);
		assert_true(n > 3 * 300 && n < 4 * 341);
		assert_int_equal(first, 50000 - n);
		ring_stats(&ring, &stats);
		assert_int_equal(stats.records, 50000);
		assert_int_equal(stats.overwritten, 50000 - n);
		assert_int_equal(stats.unread_records, n);
		assert_int_equal(stats.lost_total, 0);
		ring_close(&ring);
	}
}

static void test_smallest_and_largest(void **state)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options)};
	static const struct {
		uint64_t subbuf_bytes;
		uint32_t n_subbufs;
		int status;
	} cases[] = {
		{2048, 2, 0},
		{512, 8, 0},
		{UINT64_C(1) << 29, 2, 0},
		{131072, 8192, 0},
		{1024, 2, -EINVAL},
		{4096, 1, -EINVAL},
		{4096, 3, -EINVAL},
		{4097, 4, -EINVAL},
		{UINT64_C(1) << 29, 4, -EINVAL},
		{UINT64_C(1) << 63, 2, -EINVAL},
	};

	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kymo_ring_writer writer;
		int fd = memfd_create("ring", MFD_CLOEXEC);

		options.subbuf_bytes = cases[i].subbuf_bytes;
		options.n_subbufs = cases[i].n_subbufs;
		assert_int_equal(kymo_ring_create(&writer, fd, &client_config, NULL, &options),
				 cases[i].status);
		if (cases[i].status == 0 && cases[i].subbuf_bytes < 1 << 20) {
			for (uint64_t k = 0; k < 30; k++)
				assert_int_equal(client_write(&writer, k), 0);
		}
		kymo_ring_unmap(&writer);
		close(fd);
	}
}

static void test_client_region(void **state)
{
	struct kymo_ring_options options = {
		.size_bytes = sizeof(options), .client = 77, .clock = 3, .client_bytes = 1 << 20};
	const struct kymo_ring_info *info;
	struct kymo_ring_reader *reader;
	struct kymo_ring_writer writer;
	int fd = memfd_create("ring", MFD_CLOEXEC);

	assert_int_equal(kymo_ring_create(&writer, fd, &client_config, NULL, &options), 0);
	assert_int_equal(kymo_ring_populate(writer.client_region, 100), 0);
	memcpy(writer.client_region, "event table", 12);
	assert_int_equal(kymo_ring_reader_open(&reader, fd, NULL, NULL), 0);
	info = kymo_ring_reader_info(reader);
	assert_int_equal(info->client, 77);
	assert_int_equal(info->clock, 3);
	assert_int_equal(info->client_bytes, 1 << 20);
	assert_string_equal(info->client_region, "event table");
	kymo_ring_reader_close(reader);
	kymo_ring_unmap(&writer);
	close(fd);
}

static void test_second_writer_and_second_reader(void **state)
{
	struct kymo_ring_reader *reader;
	struct kymo_ring_writer second;
	struct kymo_error err;
	struct ring ring;
	char path[64];
	int fd;

	ring_open(&ring, 0, 4096, 4);
	assert_int_equal(kymo_ring_map(&second, ring.fd, &config8, NULL), 0);
	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(client_write(&ring.writer, client_value(0, i)), 0);
		assert_int_equal(client_write(&second, client_value(1, i)), 0);
	}
	kymo_ring_unmap(&second);
	ring_read(&ring, KYMO_RING_PARTIAL);
	assert_int_equal(ring.check.from[0], 100);
	assert_int_equal(ring.check.from[1], 100);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ring.fd);
	fd = open(path, O_RDWR);
	assert_int_equal(kymo_ring_reader_open(&reader, fd, NULL, &err), KYMO_E_STATE);
	kymo_ring_reader_close(ring.reader);
	assert_int_equal(kymo_ring_reader_open(&reader, fd, client_reader_options(0), &err), 0);
	/* It goes on where the first one stopped. */
	assert_int_equal(client_write(&ring.writer, client_value(0, 100)), 0);
	ring.reader = reader;
	ring_read(&ring, KYMO_RING_PARTIAL);
	assert_int_equal(ring.check.records, 201);
	ring_close(&ring);
	close(fd);
}

static void test_not_a_ring(void **state)
{
	struct kymo_ring_reader *reader;
	struct kymo_ring_writer writer;
	struct kymo_error err;
	struct ring ring;
	int fd = memfd_create("not", MFD_CLOEXEC);

	assert_int_equal(kymo_ring_reader_open(&reader, fd, NULL, &err), KYMO_E_FORMAT);
	assert_int_equal(kymo_ring_map(&writer, fd, &client_config, NULL), -EINVAL);
	assert_int_equal(write(fd, "no ring at all, but long enough", 31), 31);
	assert_int_equal(ftruncate(fd, 65536), 0);
	assert_int_equal(kymo_ring_reader_open(&reader, fd, NULL, &err), KYMO_E_FORMAT);
	close(fd);
	ring_open(&ring, 0, 4096, 2);
	kymo_ring_reader_close(ring.reader);
	ring.reader = NULL;
	assert_int_equal(ftruncate(ring.fd, (off_t)ring.writer.map_bytes - 1), 0);
	assert_int_equal(kymo_ring_reader_open(&reader, ring.fd, NULL, &err), KYMO_E_FORMAT);
	assert_non_null(strstr(err.message, "cut short"));
	ring_close(&ring);
}

static void test_cut_short_while_open(void **state)
{
	struct kymo_ring_chunk chunk;
	struct kymo_error err;
	struct ring ring;
	int status;

	ring_open(&ring, 0, 4096, 4);
	for (uint64_t i = 0; i < 1000; i++)
		client_write(&ring.writer, i);
	assert_int_equal(ftruncate(ring.fd, 0), 0);
	for (uint32_t i = 0; i < kymo_ring_reader_buffers(ring.reader); i++) {
		status = kymo_ring_reader_next(ring.reader, i, 0, &chunk, &err);
		assert_int_equal(status, KYMO_E_IO);
	}
	ring_close(&ring);
}

static void test_no_memory(void **state)
{
	/* RLIMIT_FSIZE is looked at before it could raise SIGXFSZ. */
	struct kymo_ring_options options = {.size_bytes = sizeof(options)};
	struct rlimit old, small = {4096, RLIM_INFINITY};
	struct kymo_ring_writer writer;
	int fd = memfd_create("ring", MFD_CLOEXEC);

	getrlimit(RLIMIT_FSIZE, &old);
	small.rlim_max = old.rlim_max;
	setrlimit(RLIMIT_FSIZE, &small);
	assert_int_equal(kymo_ring_create(&writer, fd, &client_config, NULL, &options), -EFBIG);
	setrlimit(RLIMIT_FSIZE, &old);
	close(fd);
}

/* Everything sent to @fd arrives at @from. */
static void check_send(struct ring *ring, int fd, int from)
{
	uint8_t want[8192], got[8192];
	struct kymo_ring_chunk chunk;
	struct kymo_error err;
	uint64_t sent = 0;
	int64_t bytes;

	assert_int_equal(
		kymo_ring_reader_next(ring->reader, (uint32_t)sched_getcpu(), 0, &chunk, &err), 1);
	bytes = kymo_ring_chunk_read(&chunk, want, sizeof(want));
	assert_true(bytes > 3000);
	assert_int_equal(kymo_ring_chunk_read(&chunk, want, (uint64_t)bytes - 1), KYMO_E_LIMIT);
	assert_int_equal(kymo_ring_chunk_send(ring->reader, &chunk, fd, &sent, &err), 0);
	assert_int_equal(sent, bytes);
	for (int64_t at = 0; at < bytes;) {
		ssize_t n = read(from, got + at, (size_t)(bytes - at));

		assert_true(n > 0);
		at += n;
	}
	assert_memory_equal(want, got, (size_t)bytes);
	kymo_ring_reader_release(ring->reader, &chunk);
}

static void test_send(void **state)
{
	char path[] = "/tmp/kymo-test-ring-XXXXXX";
	int pipe_fds[2], sockets[2], file, from, append;
	struct ring ring;

	ring_open(&ring, 0, 4096, 8);
	for (uint64_t i = 0; i < 2000; i++)
		assert_int_equal(client_write(&ring.writer, i), 0);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	file = mkstemp(path);
	from = open(path, O_RDONLY);
	append = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(unlink(path), 0);
	check_send(&ring, pipe_fds[1], pipe_fds[0]);
	check_send(&ring, sockets[0], sockets[1]);
	check_send(&ring, file, from);
	check_send(&ring, append, from);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	close(sockets[0]);
	close(sockets[1]);
	close(file);
	close(from);
	close(append);
	ring_close(&ring);
}

static void test_wait(void **state)
{
	struct ring ring;
	int status;

	ring_open(&ring, 0, 4096, 4);
	assert_int_equal(kymo_ring_reader_wait(ring.reader, 1000000), 0);
	for (uint64_t i = 0; i < 400; i++)
		assert_int_equal(client_write(&ring.writer, i), 0);
	assert_int_equal(kymo_ring_reader_wait(ring.reader, 0), 1);
	ring_read(&ring, 0);
	if (fork() == 0) {
		for (uint64_t i = 0; i < 1000; i++) {
			client_write(&ring.writer, 400 + i);
			usleep(1000);
		}
		_exit(0);
	}
	/* Woken by the child's switch, long before a minute is over. */
	assert_int_equal(kymo_ring_reader_wait(ring.reader, INT64_C(60000000000)), 1);
	assert_true(wait(&status) > 0);
	ring_close(&ring);
}

/* Records until one is lost; returns how many came through. */
static uint64_t fill(struct ring *ring)
{
	uint64_t n = 0;

	while (client_write(&ring->writer, n) == 0)
		n++;
	return n;
}

static bool goes_on(const void *client, struct kymo_ring_wait *wait)
{
	(void)client;
	assert_int_equal(wait->limit_ns, UINT64_MAX);
	assert_int_equal(wait->attended, KYMO_RING_ATTENDED);
	/* Kept between the calls for one record. */
	return ++wait->mark < 3;
}

static void test_waiting_has_an_end(void **state)
{
	for (unsigned int k = 0; k < 3; k++) {
		struct kymo_ring_stats stats;
		struct ring ring;

		ring_open(&ring, kinds[k], 4096, 2);
		ring.writer.wait_ns = 3000000;
		fill(&ring);
		ring_stats(&ring, &stats);
		assert_int_equal(stats.lost[KYMO_RING_LOST_FULL], 1);
		assert_int_equal(stats.lost_total, 1);
		/* The client's word counts, and the reader's. */
		ring.writer.wait_ns = UINT64_MAX;
		ring.writer.goes_on = goes_on;
		assert_int_equal(client_write(&ring.writer, 0), KYMO_E_LIMIT);
		ring.writer.goes_on = NULL;
		kymo_ring_reader_abandon(ring.reader);
		assert_int_equal(client_write(&ring.writer, 0), KYMO_E_LIMIT);
		ring_stats(&ring, &stats);
		assert_int_equal(stats.lost[KYMO_RING_LOST_FULL], 3);
		ring_close(&ring);
	}
}

static void test_waiting_for_a_reader(void **state)
{
	for (unsigned int k = 0; k < 3; k++) {
		struct kymo_ring_stats stats;
		struct ring ring;
		pid_t pid;
		int status;

		ring_open(&ring, kinds[k], 4096, 2);
		ring.writer.wait_ns = UINT64_MAX;
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			for (uint64_t i = 0; i < 20000; i++)
				if (client_write(&ring.writer, i))
					_exit(1);
			_exit(0);
		}
		while (waitpid(pid, &status, WNOHANG) == 0) {
			ring_read(&ring, 0);
			sched_yield();
		}
		assert_int_equal(status, 0);
		ring_read(&ring, KYMO_RING_PARTIAL);
		assert_int_equal(ring.check.records, 20000);
		ring_stats(&ring, &stats);
		assert_int_equal(stats.lost_total, 0);
		ring_close(&ring);
	}
}

static uint64_t clock_values[] = {100, 200, 150, 150, 300, 0};
static unsigned int clock_at;

static uint64_t odd_clock(void)
{
	return clock_values[clock_at < 5 ? clock_at++ : 5];
}

static uint32_t stamp_header(const void *record, const struct kymo_ring_spot *spot,
			     union kymo_ring_header *header)
{
	header->word64 = spot->now;
	return 8;
}

static void test_clock_that_goes_back(void **state)
{
	static const struct kymo_ring_config config = {sizeof(struct client_header), odd_clock,
						       stamp_header, client_subbuf_open,
						       client_subbuf_close};
	struct kymo_ring_chunk chunk;
	uint64_t last = 0;
	struct ring ring;

	ring_open(&ring, 0, 4096, 2);
	for (int i = 0; i < 6; i++)
		assert_int_equal(kymo_ring_write(&config, &ring.writer, NULL, NULL, 0), 0);
	assert_int_equal(kymo_ring_reader_next(ring.reader, (uint32_t)sched_getcpu(),
					       KYMO_RING_PARTIAL, &chunk, NULL),
			 1);
	assert_int_equal(chunk.body_bytes, 48);
	for (int i = 0; i < 6; i++) {
		uint64_t stamp;

		memcpy(&stamp, (const uint8_t *)chunk.body + 8 * i, 8);
		assert_true(stamp >= last);
		last = stamp;
	}
	assert_int_equal(chunk.packet.end_stamp, last);
	ring_close(&ring);
}

static void test_errno_is_kept(void **state)
{
	struct ring ring;

	ring_open(&ring, KYMO_RING_LOCKED, 4096, 2);
	errno = 1234;
	for (uint64_t i = 0; i < 5000; i++)
		client_write(&ring.writer, i);
	assert_int_equal(errno, 1234);
	ring_close(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_record_comes_back),
		cmocka_unit_test(test_all_sizes),
		cmocka_unit_test(test_constant_sizes),
		cmocka_unit_test(test_exact_fit),
		cmocka_unit_test(test_discard_counts),
		cmocka_unit_test(test_loss_shows_without_a_record),
		cmocka_unit_test(test_overwrite),
		cmocka_unit_test(test_smallest_and_largest),
		cmocka_unit_test(test_client_region),
		cmocka_unit_test(test_second_writer_and_second_reader),
		cmocka_unit_test(test_not_a_ring),
		cmocka_unit_test(test_cut_short_while_open),
		cmocka_unit_test(test_no_memory),
		cmocka_unit_test(test_send),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_waiting_has_an_end),
		cmocka_unit_test(test_waiting_for_a_reader),
		cmocka_unit_test(test_clock_that_goes_back),
		cmocka_unit_test(test_errno_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
