/* SPDX-License-Identifier: MIT */
/*
 * What a record in the ring costs, against the floor: reading the time stamp counter and storing 16
 * bytes. bench/bench-ring runs it; ROUNDS (40) rounds of EVENTS (2 million), the best counts, since
 * everything else on the machine only adds. SHORT=1: one thread's costs only. Asserts nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test/race/ring-client.h"

static uint64_t events = 2000000, rounds = 40;
static double floor_ns;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* CPU time of this thread: other load on the machine takes less part in it. */
static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* ---- clients ---- */

static uint64_t clock_monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static const struct kymo_ring_config monotonic_config = {
	sizeof(struct client_header), clock_monotonic,	   client_record_header,
	client_subbuf_open,	      client_subbuf_close,
};

/* ---- what is measured: each writes @n records ---- */

typedef void body_fn(struct kymo_ring_writer *writer, uint64_t n);

static void body_floor_clock(struct kymo_ring_writer *writer, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		__asm__ __volatile__("" : : "r"(client_clock()) : "memory");
}

static void body_floor(struct kymo_ring_writer *writer, uint64_t n)
{
	static uint64_t page[1024];

	for (uint64_t i = 0; i < n; i++) {
		uint64_t *to = &page[2 * i & 1023];

		to[0] = client_clock();
		to[1] = i;
		__asm__ __volatile__("" : : "r"(to) : "memory");
	}
}

static void body_12(struct kymo_ring_writer *writer, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		client_write(writer, i);
}

static void body_monotonic(struct kymo_ring_writer *writer, uint64_t n)
{
	static const uint32_t id = 1;

	for (uint64_t i = 0; i < n; i++)
		kymo_ring_write(&monotonic_config, writer, &id, &i, sizeof(i));
}

/* int, u64, string of 11 characters and its NUL: 28 bytes with the header. */
static void body_string(struct kymo_ring_writer *writer, uint64_t n)
{
	const char *text = "hello world";
	static const uint32_t id = 1;

	__asm__ __volatile__("" : "+r"(text));
	for (uint64_t i = 0; i < n; i++) {
		struct __attribute__((packed)) {
			int32_t number;
			uint64_t wide;
		} head = {(int32_t)i, i};
		struct kymo_ring_part parts[] = {{&head, sizeof(head)}, {text, strlen(text) + 1}};

		kymo_ring_write_parts(&client_config, writer, &id, parts, 2);
	}
}

#define PACED_S 2.0

static void body_paced(struct kymo_ring_writer *writer, uint64_t n)
{
	double start = now_ns();

	/* 10 million per second: 1000 each 100 us. */
	n = n ? (uint64_t)(PACED_S * 1e7) : 0;
	for (uint64_t done = 0; done < n; done += 1000) {
		while (now_ns() - start < (double)done * 100)
			;
		for (uint64_t i = 0; i < 1000; i++)
			client_write(writer, done + i);
	}
}

/* ---- running ---- */

struct ring {
	struct kymo_ring_writer writer;
	struct kymo_ring_reader *reader;
	int fd;
	int out; /* where the consumer writes to; -1: it only goes through */
	bool stop;
};

static void die(const char *what)
{
	fprintf(stderr, "ring-bench: %s\n", what);
	exit(1);
}

static void ring_open(struct ring *ring, uint32_t flags)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options), .flags = flags};
	struct kymo_error err;

	memset(ring, 0, sizeof(*ring));
	ring->out = -1;
	ring->fd = memfd_create("bench", MFD_CLOEXEC);
	if (kymo_ring_create(&ring->writer, ring->fd, &client_config, NULL, &options) < 0)
		die("cannot make a ring");
	if (kymo_ring_reader_open(&ring->reader, ring->fd, client_reader_options(0), &err) < 0)
		die(err.message);
}

static void ring_close(struct ring *ring)
{
	kymo_ring_reader_close(ring->reader);
	kymo_ring_unmap(&ring->writer);
	close(ring->fd);
}

static void consume(struct ring *ring, uint32_t flags)
{
	struct kymo_ring_chunk chunk;
	struct kymo_error err;

	for (uint32_t i = 0; i < kymo_ring_reader_buffers(ring->reader); i++)
		while (kymo_ring_reader_next(ring->reader, i, flags, &chunk, &err) > 0) {
			uint64_t sent = 0;

			if (ring->out >= 0 &&
			    kymo_ring_chunk_send(ring->reader, &chunk, ring->out, &sent, &err) < 0)
				die(err.message);
			kymo_ring_reader_release(ring->reader, &chunk);
		}
}

static void *consumer(void *arg)
{
	struct ring *ring = arg;

	while (!__atomic_load_n(&ring->stop, __ATOMIC_RELAXED)) {
		kymo_ring_reader_wait(ring->reader, 10000000);
		consume(ring, 0);
	}
	return NULL;
}

struct thread {
	struct ring *ring;
	body_fn *body;
	int cpu;
	double ns; /* per record */
};

static void *writer(void *arg)
{
	struct thread *thread = arg;
	double start;

	pin(thread->cpu);
	/* Once round the ring: then all of it has memory. */
	thread->body(&thread->ring->writer, thread->body == body_paced ? 0 : 500000);
	start = cpu_ns();
	thread->body(&thread->ring->writer, events);
	thread->ns = (cpu_ns() - start) / (double)events;
	return NULL;
}

/* One round on @n_threads CPUs; the time per record of the slowest. */
static double run_once(body_fn *body, uint32_t flags, int n_threads, bool consumed, uint64_t *lost)
{
	struct kymo_ring_stats stats;
	struct thread threads[2];
	pthread_t ids[2], reader;
	struct ring ring;
	double worst = 0;

	ring_open(&ring, flags);
	if (consumed)
		pthread_create(&reader, NULL, consumer, &ring);
	for (int i = 0; i < n_threads; i++) {
		threads[i] = (struct thread){&ring, body, i, 0};
		pthread_create(&ids[i], NULL, writer, &threads[i]);
	}
	for (int i = 0; i < n_threads; i++) {
		pthread_join(ids[i], NULL);
		worst = threads[i].ns > worst ? threads[i].ns : worst;
	}
	__atomic_store_n(&ring.stop, true, __ATOMIC_RELAXED);
	if (consumed)
		pthread_join(reader, NULL);
	kymo_ring_reader_stats(ring.reader, KYMO_RING_ALL, &stats);
	*lost = stats.lost_total;
	ring_close(&ring);
	return worst;
}

static double run(const char *name, body_fn *body, uint32_t flags, int n_threads, bool consumed)
{
	double best = 1e9, ns;
	uint64_t lost, best_lost = 0;

	for (uint64_t i = 0; i < rounds; i++) {
		ns = run_once(body, flags, n_threads, consumed, &lost);
		if (ns < best) {
			best = ns;
			best_lost = lost;
		}
	}
	if (body == body_floor)
		floor_ns = best;
	printf("%-58s %7.2f ns", name, best);
	if (floor_ns > 0)
		printf("  %5.2f x floor", best / floor_ns);
	if (consumed)
		printf("  %llu lost", (unsigned long long)best_lost);
	printf("\n");
	return best;
}

/* ---- a steady load, and a consumer that writes to the disk ---- */

static void paced(const char *directory, int n_threads)
{
	struct thread threads[2];
	struct kymo_ring_stats stats;
	pthread_t ids[2], reader;
	struct stat status;
	struct ring ring;

	ring_open(&ring, 0);
	ring.out = open(directory, O_TMPFILE | O_WRONLY, 0600);
	if (ring.out < 0)
		die("cannot make a file; BENCH_DIR says where");
	pthread_create(&reader, NULL, consumer, &ring);
	for (int i = 0; i < n_threads; i++) {
		threads[i] = (struct thread){&ring, body_paced, i, 0};
		pthread_create(&ids[i], NULL, writer, &threads[i]);
	}
	for (int i = 0; i < n_threads; i++)
		pthread_join(ids[i], NULL);
	__atomic_store_n(&ring.stop, true, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	consume(&ring, KYMO_RING_PARTIAL);
	kymo_ring_reader_stats(ring.reader, KYMO_RING_ALL, &stats);
	fstat(ring.out, &status);
	printf("10 M records/s on %d CPU%s for %.0f s, consumer writes to disk:  %llu written, %llu "
	       "lost, %.0f MB in the file\n",
	       n_threads, n_threads > 1 ? "s" : "", PACED_S, (unsigned long long)stats.records,
	       (unsigned long long)stats.lost_total, (double)status.st_size / 1e6);
	close(ring.out);
	ring_close(&ring);
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

int main(void)
{
	const char *directory = getenv("BENCH_DIR");
	double one, two;

	events = number("EVENTS", events);
	rounds = number("ROUNDS", rounds);
	setvbuf(stdout, NULL, _IOLBF, 0);
	run("clock alone", body_floor_clock, 0, 1, false);
	run("floor: clock and a 16-byte store", body_floor, 0, 1, false);
	run("12-byte record, overwrite", body_12, KYMO_RING_OVERWRITE, 1, false);
	run("12-byte record, discard, consumed", body_12, 0, 1, true);
	run("int, u64, 11 characters (28 bytes), overwrite", body_string, KYMO_RING_OVERWRITE, 1,
	    false);
	run("12-byte record, CLOCK_MONOTONIC", body_monotonic, KYMO_RING_OVERWRITE, 1, false);
	run("12-byte record, fall-back without rseq", body_12,
	    KYMO_RING_OVERWRITE | KYMO_RING_LOCKED, 1, false);
	run("12-byte record, one buffer for all", body_12, KYMO_RING_OVERWRITE | KYMO_RING_GLOBAL,
	    1, false);
	if (number("SHORT", 0))
		return 0;
	one = run("12-byte record, overwrite, 1 thread", body_12, KYMO_RING_OVERWRITE, 1, false);
	two = run("12-byte record, overwrite, 2 threads on 2 CPUs", body_12, KYMO_RING_OVERWRITE, 2,
		  false);
	printf("2 threads against 1: %.3f x\n", two / one);
	paced(directory ? directory : "/var/tmp", 1);
	paced(directory ? directory : "/var/tmp", 2);
	return 0;
}
