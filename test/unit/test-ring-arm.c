/* SPDX-License-Identifier: MIT */
/* Requests of a reader to be woken: which records and which switches do it, and which find no request. */
#include "unit.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../race/ring-client.h"
#include "one-cpu.h"

#define IDLE_STAMPS 1000

/* The writers' clock: the tests move it. Shared with children. */
static uint64_t *stamp;

static uint64_t moved_clock(void)
{
	return *stamp;
}

static uint32_t header8(const void *record, const struct kymo_ring_spot *spot,
			union kymo_ring_header *header)
{
	header->word64 = *(const uint64_t *)record;
	return 8;
}

static const struct kymo_ring_config config = {
	sizeof(struct client_header), moved_clock,	   header8,
	client_subbuf_open,	      client_subbuf_close, .idle_stamps = IDLE_STAMPS,
};

struct ring {
	int fd;
	struct kymo_ring_writer writer;
	struct kymo_ring_reader *reader;
	struct kymo_ring_futex futex;
};

static struct kymo_ring_reader *open_reader(int fd, uint32_t flags)
{
	const struct kymo_ring_reader_options options = {sizeof(options), flags, &config, NULL};
	struct kymo_ring_reader *reader;
	struct kymo_error err;

	assert_int_equal(kymo_ring_reader_open(&reader, fd, &options, &err), 0);
	return reader;
}

static void ring_open(struct ring *ring, uint32_t flags)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options),
					    .flags = flags,
					    .subbuf_bytes = 4096,
					    .n_subbufs = 4};

	test_on_one_cpu();
	memset(ring, 0, sizeof(*ring));
	*stamp = 1;
	ring->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_true(ring->fd >= 0);
	assert_int_equal(kymo_ring_create(&ring->writer, ring->fd, &config, NULL, &options), 0);
	ring->reader = open_reader(ring->fd, 0);
}

static void ring_close(struct ring *ring)
{
	kymo_ring_reader_close(ring->reader);
	kymo_ring_unmap(&ring->writer);
	close(ring->fd);
}

/* A record @later after the last one. */
static void put(struct ring *ring, uint64_t later)
{
	const uint64_t record = 7;

	*stamp += later;
	assert_int_equal(kymo_ring_write(&config, &ring->writer, &record, &record, sizeof(record)),
			 0);
}

static void take_all(struct ring *ring)
{
	struct kymo_ring_chunk chunk;

	for (uint32_t i = 0; i < kymo_ring_reader_buffers(ring->reader); i++)
		while (kymo_ring_reader_next(ring->reader, i, KYMO_RING_PARTIAL, &chunk, NULL) > 0)
			kymo_ring_reader_release(ring->reader, &chunk);
}

static int arm(struct ring *ring, uint32_t events)
{
	return kymo_ring_reader_arm(ring->reader, events, &ring->futex);
}

static bool is_woken(const struct ring *ring)
{
	return __atomic_load_n(ring->futex.word, __ATOMIC_ACQUIRE) != ring->futex.value;
}

static const uint32_t kinds[] = {0, KYMO_RING_LOCKED, KYMO_RING_GLOBAL};

static void test_record_after_an_idle_time(void **state)
{
	for (unsigned int k = 0; k < 3; k++) {
		struct ring ring;

		ring_open(&ring, kinds[k]);
		put(&ring, 1);
		take_all(&ring);
		assert_int_equal(arm(&ring, KYMO_RING_WAKE_RECORD), 0);
		assert_false(is_woken(&ring));
		put(&ring, IDLE_STAMPS);
		assert_true(is_woken(&ring));
		ring_close(&ring);
	}
}

static void test_record_that_is_not_the_first(void **state)
{
	struct ring ring;

	ring_open(&ring, 0);
	put(&ring, 1);
	take_all(&ring);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_RECORD), 0);
	put(&ring, IDLE_STAMPS - 1);
	assert_false(is_woken(&ring));
	ring_close(&ring);
}

static void test_record_that_is_there(void **state)
{
	struct ring ring;

	ring_open(&ring, 0);
	/* The very first record, too. */
	put(&ring, IDLE_STAMPS);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_RECORD), 1);
	/* Nothing is asked then. */
	put(&ring, IDLE_STAMPS);
	assert_false(is_woken(&ring));
	/* A reader that waits for closed sub-buffers only is not woken by an event. */
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_SWITCH), 0);
	take_all(&ring);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_RECORD), 0);
	ring_close(&ring);
}

/* Fills the present sub-buffer, and begins the next one. */
static void fill(struct ring *ring)
{
	for (unsigned int i = 0; i < 4096 / 16 + 1; i++)
		put(ring, 1);
}

static void test_switch(void **state)
{
	for (unsigned int k = 0; k < 3; k++) {
		struct ring ring;

		ring_open(&ring, kinds[k]);
		/* It begins the first sub-buffer, which is a switch, too. */
		put(&ring, 1);
		assert_int_equal(arm(&ring, KYMO_RING_WAKE_SWITCH), 0);
		/* No switch, whatever the pause. */
		put(&ring, IDLE_STAMPS);
		assert_false(is_woken(&ring));
		fill(&ring);
		assert_true(is_woken(&ring));
		/* The sub-buffer that is closed; once it is seen, the next one. */
		take_all(&ring);
		assert_int_equal(arm(&ring, KYMO_RING_WAKE_SWITCH), 0);
		fill(&ring);
		assert_true(is_woken(&ring));
		ring_close(&ring);
	}
}

static void test_switch_that_has_been(void **state)
{
	struct ring ring;

	ring_open(&ring, 0);
	fill(&ring);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_SWITCH), 1);
	ring_close(&ring);
}

/* A flight recorder's ring: a switch counts once, as nobody takes the records. */
static void test_switch_of_a_ring_that_overwrites(void **state)
{
	struct ring ring;

	ring_open(&ring, KYMO_RING_OVERWRITE);
	fill(&ring);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_SWITCH), 1);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_SWITCH), 0);
	fill(&ring);
	assert_true(is_woken(&ring));
	ring_close(&ring);
}

/* One system call for one request: later records find none. */
static void test_request_is_used_up(void **state)
{
	struct ring ring;
	uint32_t wakes;

	ring_open(&ring, 0);
	put(&ring, 1);
	take_all(&ring);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_RECORD), 0);
	put(&ring, IDLE_STAMPS);
	wakes = *ring.futex.word;
	assert_int_equal(wakes, ring.futex.value + 1);
	put(&ring, IDLE_STAMPS);
	fill(&ring);
	assert_int_equal(*ring.futex.word, wakes);
	ring_close(&ring);
}

static void test_disarm(void **state)
{
	struct ring ring;

	ring_open(&ring, 0);
	put(&ring, 1);
	take_all(&ring);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_RECORD | KYMO_RING_WAKE_SWITCH), 0);
	kymo_ring_reader_disarm(ring.reader);
	put(&ring, IDLE_STAMPS);
	fill(&ring);
	assert_false(is_woken(&ring));
	ring_close(&ring);
}

/* A second request asks for its own events. */
static void test_request_that_is_changed(void **state)
{
	struct ring ring;

	ring_open(&ring, 0);
	put(&ring, 1);
	take_all(&ring);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_RECORD), 0);
	assert_int_equal(arm(&ring, KYMO_RING_WAKE_SWITCH), 0);
	put(&ring, IDLE_STAMPS);
	assert_false(is_woken(&ring));
	fill(&ring);
	assert_true(is_woken(&ring));
	ring_close(&ring);
}

static void test_reader_that_must_not_write(void **state)
{
	struct kymo_ring_reader *reader;
	struct kymo_ring_futex futex;
	struct ring ring;

	ring_open(&ring, 0);
	reader = open_reader(ring.fd, KYMO_RING_READ_ONLY);
	assert_int_equal(kymo_ring_reader_arm(reader, KYMO_RING_WAKE_SWITCH, &futex), KYMO_E_STATE);
	kymo_ring_reader_disarm(reader);
	kymo_ring_reader_close(reader);
	ring_close(&ring);
}

/* The writer is another process, and the reader sleeps in the kernel. */
static void test_sleep(void **state)
{
	const struct timespec minute = {60, 0};
	struct ring ring;
	int status;
	pid_t pid;

	ring_open(&ring, 0);
	put(&ring, 1);
	take_all(&ring);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(arm(&ring, KYMO_RING_WAKE_RECORD), 0);
		pid = fork();
		if (pid == 0) {
			put(&ring, IDLE_STAMPS);
			_exit(0);
		}
		while (!is_woken(&ring))
			(void)syscall(SYS_futex, ring.futex.word, FUTEX_WAIT, ring.futex.value,
				      &minute, NULL, 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
		take_all(&ring);
	}
	ring_close(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_after_an_idle_time),
		cmocka_unit_test(test_record_that_is_not_the_first),
		cmocka_unit_test(test_record_that_is_there),
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_switch_that_has_been),
		cmocka_unit_test(test_switch_of_a_ring_that_overwrites),
		cmocka_unit_test(test_request_is_used_up),
		cmocka_unit_test(test_disarm),
		cmocka_unit_test(test_request_that_is_changed),
		cmocka_unit_test(test_reader_that_must_not_write),
		cmocka_unit_test(test_sleep),
	};

	stamp = mmap(NULL, sizeof(*stamp), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	return stamp == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
