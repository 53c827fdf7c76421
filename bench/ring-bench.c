/* SPDX-License-Identifier: MIT */
/*
 * What a record in the ring costs, against the floor: reading the time stamp counter and storing 16
 * bytes. bench/bench-ring runs it. All that is compared takes turns, in ROUNDS (2000) parts of EVENTS
 * (5000) records, far shorter than a time slice, and the best part counts: everything else on the
 * machine only adds, and shows in all of them alike. SHORT=1: one thread's costs only. Asserts
 * nothing.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test/race/ring-client.h"

static uint64_t events = 5000, rounds = 2000;

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
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

#define BURST 1000

/* ---- running ---- */

struct ring {
	struct client_ring ends;
	int out; /* where the consumer writes to; -1: it only goes through */
	bool stop;
};

static void ring_open(struct ring *ring, uint32_t flags)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options), .flags = flags};

	memset(ring, 0, sizeof(*ring));
	ring->out = -1;
	client_ring_open(&ring->ends, &options);
}

static void consume(struct ring *ring, uint32_t flags)
{
	struct kymo_ring_chunk chunk;
	struct kymo_error err;

	for (uint32_t i = 0; i < kymo_ring_reader_buffers(ring->ends.reader); i++)
		while (kymo_ring_reader_next(ring->ends.reader, i, flags, &chunk, &err) > 0) {
			uint64_t sent = 0;

			if (ring->out >= 0 && kymo_ring_chunk_send(ring->ends.reader, &chunk,
								   ring->out, &sent, &err) < 0)
				client_die(err.message);
			kymo_ring_reader_release(ring->ends.reader, &chunk);
		}
}

static void *consumer(void *arg)
{
	struct ring *ring = arg;

	while (!__atomic_load_n(&ring->stop, __ATOMIC_RELAXED)) {
		kymo_ring_reader_wait(ring->ends.reader, 10000000);
		consume(ring, 0);
	}
	return NULL;
}

/* What takes turns. */
struct subject {
	const char *name;
	body_fn *body;
	uint32_t flags;
	bool is_consumed;
	bool has_two; /* threads, on two CPUs */
	struct ring ring;
	pthread_t reader;
	double ns; /* per record, in the best part */
};

static struct subject subjects[] = {
	{.name = "floor: clock and a 16-byte store", .body = body_floor},
	{.name = "clock alone", .body = body_floor_clock},
	{"12-byte record, overwrite", body_12, KYMO_RING_OVERWRITE},
	{"12-byte record, overwrite, 2 threads on 2 CPUs", body_12, KYMO_RING_OVERWRITE,
	 .has_two = true},
	{"12-byte record, discard, consumed", body_12, 0, .is_consumed = true},
	{"int, u64, 11 characters (28 bytes), overwrite", body_string, KYMO_RING_OVERWRITE},
	{"12-byte record, CLOCK_MONOTONIC", body_monotonic, KYMO_RING_OVERWRITE},
	{"12-byte record, fall-back without rseq", body_12, KYMO_RING_OVERWRITE | KYMO_RING_LOCKED},
	{"12-byte record, one buffer for all", body_12, KYMO_RING_OVERWRITE | KYMO_RING_GLOBAL},
};
#define SUBJECTS (sizeof(subjects) / sizeof(subjects[0]))

static double part(struct subject *subject)
{
	double start = now_ns();

	subject->body(&subject->ring.ends.writer, events);
	return (now_ns() - start) / (double)events;
}

/* The second thread does the parts that it is asked for; these count them. */
static struct subject *asked;
static uint64_t wanted, begun, ended;
static double second_ns;

static void *second_thread(void *arg)
{
	client_pin(1);
	for (uint64_t i = 1;; i++) {
		while (__atomic_load_n(&wanted, __ATOMIC_ACQUIRE) < i)
			sched_yield();
		if (!asked)
			return NULL;
		__atomic_store_n(&begun, i, __ATOMIC_RELEASE);
		second_ns = part(asked);
		__atomic_store_n(&ended, i, __ATOMIC_RELEASE);
	}
}

static void ask(struct subject *subject)
{
	asked = subject;
	__atomic_store_n(&wanted, wanted + 1, __ATOMIC_RELEASE);
}

/* Both at a time: the slower one's. */
static double part_of_two(struct subject *subject)
{
	double ns;

	ask(subject);
	while (__atomic_load_n(&begun, __ATOMIC_ACQUIRE) < wanted)
		sched_yield();
	ns = part(subject);
	while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < wanted)
		sched_yield();
	return ns > second_ns ? ns : second_ns;
}

static void subject_open(struct subject *subject)
{
	ring_open(&subject->ring, subject->flags);
	subject->ns = 1e9;
	if (subject->is_consumed)
		pthread_create(&subject->reader, NULL, consumer, &subject->ring);
	/* Once round the ring: then all of it has memory. */
	for (uint64_t i = 0; i < 400000 / events; i++)
		part(subject);
}

static void subject_print(struct subject *subject)
{
	struct kymo_ring_stats stats;

	printf("%-58s %7.2f ns  %5.2f x floor", subject->name, subject->ns,
	       subject->ns / subjects[0].ns);
	if (subject->is_consumed) {
		__atomic_store_n(&subject->ring.stop, true, __ATOMIC_RELAXED);
		pthread_join(subject->reader, NULL);
		kymo_ring_reader_stats(subject->ring.ends.reader, KYMO_RING_ALL, &stats);
		printf("  %llu lost of %llu", (unsigned long long)stats.lost_total,
		       (unsigned long long)(stats.records + stats.lost_total));
	}
	printf("\n");
	client_ring_close(&subject->ring.ends);
}

static void take_turns(bool is_short)
{
	pthread_t second;

	client_pin(0);
	pthread_create(&second, NULL, second_thread, NULL);
	for (size_t i = 0; i < SUBJECTS; i++)
		subject_open(&subjects[i]);
	for (uint64_t round = 0; round < rounds; round++)
		for (size_t i = 0; i < SUBJECTS; i++) {
			double ns;

			/* On a busy machine two CPUs at a time are hard to get. */
			if (subjects[i].has_two && (is_short || round % 16))
				continue;
			ns = (subjects[i].has_two ? part_of_two : part)(&subjects[i]);
			subjects[i].ns = ns < subjects[i].ns ? ns : subjects[i].ns;
		}
	ask(NULL);
	pthread_join(second, NULL);
	for (size_t i = 0; i < SUBJECTS; i++)
		if (subjects[i].ns < 1e9)
			subject_print(&subjects[i]);
}

/* ---- a steady load, and a consumer that writes to the disk ---- */

struct thread {
	struct ring *ring;
	int cpu;
	double ns; /* per record, bursts only: the median burst's */
};

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* 10 million per second: BURST each 100 us. */
static void *paced_writer(void *arg)
{
	struct thread *thread = arg;
	size_t n = (size_t)(PACED_S * 1e4);
	double *ns = calloc(n, sizeof(*ns)), start;

	client_pin(thread->cpu);
	start = now_ns();
	for (size_t i = 0; i < n; i++) {
		double begin;

		while ((begin = now_ns()) - start < (double)i * 1e5)
			;
		body_12(&thread->ring->ends.writer, BURST);
		ns[i] = (now_ns() - begin) / BURST;
	}
	qsort(ns, n, sizeof(*ns), compare);
	thread->ns = ns[n / 2];
	free(ns);
	return NULL;
}

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
		client_die("cannot make a file; BENCH_DIR says where");
	pthread_create(&reader, NULL, consumer, &ring);
	for (int i = 0; i < n_threads; i++) {
		threads[i] = (struct thread){&ring, i, 0};
		pthread_create(&ids[i], NULL, paced_writer, &threads[i]);
	}
	for (int i = 0; i < n_threads; i++)
		pthread_join(ids[i], NULL);
	__atomic_store_n(&ring.stop, true, __ATOMIC_RELAXED);
	pthread_join(reader, NULL);
	consume(&ring, KYMO_RING_PARTIAL);
	kymo_ring_reader_stats(ring.ends.reader, KYMO_RING_ALL, &stats);
	fstat(ring.out, &status);
	printf("10 M records/s on %d CPU%s for %.0f s, consumer writes to disk: median %.2f ns, "
	       "%llu written, %llu lost, %.0f MB in the file\n",
	       n_threads, n_threads > 1 ? "s" : "", PACED_S, threads[0].ns,
	       (unsigned long long)stats.records, (unsigned long long)stats.lost_total,
	       (double)status.st_size / 1e6);
	close(ring.out);
	client_ring_close(&ring.ends);
}

int main(void)
{
	const char *directory = getenv("BENCH_DIR");

	events = number("EVENTS", events);
	rounds = number("ROUNDS", rounds);
	setvbuf(stdout, NULL, _IOLBF, 0);
	take_turns(number("SHORT", 0));
	if (number("SHORT", 0))
		return 0;
	paced(directory ? directory : "/var/tmp", 1);
	paced(directory ? directory : "/var/tmp", 2);
	return 0;
}
