/* SPDX-License-Identifier: MIT */
/*
 * The ring under everything that can come between: preemption, migration, signals whose handlers
 * write, SIGKILL, fork, single-stepping, snapshots at full load. Each record says who wrote it
 * and as which of his, so that nothing can be missing, doubled or torn unseen.
 *
 * TAP. RACE_SHORT=1 does a twentieth. RACE_LONG=1 takes minutes instead of seconds (10,000 kills). A number as argument: that case.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ring-client.h"

#define THREADS 4

#ifdef __SANITIZE_THREAD__
#define IS_TSAN true
#else
#define IS_TSAN false
#endif
#ifdef __SANITIZE_ADDRESS__
#define IS_ASAN true
#else
#define IS_ASAN false
#endif

static bool is_long;
static uint32_t mode; /* KYMO_RING_LOCKED and so on, added to every ring */

struct ring {
	struct client_ring ends;
	struct client_check check;
};

static void ring_open_with(struct ring *ring, const struct kymo_ring_options *options)
{
	memset(ring, 0, sizeof(*ring));
	client_ring_open(&ring->ends, options);
}

static void ring_open(struct ring *ring, uint32_t flags, uint64_t subbuf_bytes, uint32_t n_subbufs)
{
	struct kymo_ring_options options = {.size_bytes = sizeof(options),
					    .flags = flags | mode,
					    .subbuf_bytes = subbuf_bytes,
					    .n_subbufs = n_subbufs};

	ring_open_with(ring, &options);
}

/* ---- writers ---- */

/* A clock that gives the CPU away: between looking at the head and committing. */
static uint64_t yielding_clock(void)
{
	static __thread unsigned int n;

	if (++n % 97 == 0)
		sched_yield();
	if (n % 9973 == 0)
		usleep(50);
	return client_clock();
}

static const struct kymo_ring_config yielding = {
	sizeof(struct client_header), yielding_clock,	   client_record_header,
	client_subbuf_open,	      client_subbuf_close,
};

struct writer {
	struct ring *ring;
	const struct kymo_ring_config *config;
	pthread_t thread;
	uint64_t who, records, written, lost;
	bool is_done;
	const bool *stop;
};

static int write_one(const struct kymo_ring_config *config, struct kymo_ring_writer *writer,
		     uint64_t value)
{
	static const uint32_t id = 1;

	if (value % 7 == 0)
		return client_write_text(writer, value, (uint32_t)(value % 301));
	return kymo_ring_write(config, writer, &id, &value, sizeof(value));
}

static void *write_records(void *arg)
{
	struct writer *writer = arg;

	for (uint64_t i = 0;
	     writer->stop ? !__atomic_load_n(writer->stop, __ATOMIC_RELAXED) : i < writer->records;
	     i++) {
		if (write_one(writer->config, &writer->ring->ends.writer,
			      client_value(writer->who, i)))
			writer->lost++;
		else
			writer->written++;
	}
	__atomic_store_n(&writer->is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void start(struct writer *writers, struct ring *ring, const struct kymo_ring_config *config,
		  uint64_t records, const bool *stop)
{
	/* An emulated machine takes so much longer. */
	if (getenv("RACE_SHORT"))
		records /= 20;
	for (uint64_t i = 0; i < THREADS; i++) {
		writers[i] = (struct writer){
			.ring = ring, .config = config, .who = i, .records = records, .stop = stop};
		pthread_create(&writers[i].thread, NULL, write_records, &writers[i]);
	}
}

static void join(struct writer *writers)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(writers[i].thread, NULL);
}

static bool is_running(const struct writer *writers)
{
	bool is_any = false;

	for (int i = 0; i < THREADS; i++)
		is_any |= !__atomic_load_n(&writers[i].is_done, __ATOMIC_ACQUIRE);
	return is_any;
}

static bool is_as_written(struct client_check *check, const struct writer *writers)
{
	for (int i = 0; i < THREADS; i++)
		if (check->from[i] != writers[i].written)
			CLIENT_FAIL(check, "writer %d: %llu records, and he wrote %llu", i,
				    (unsigned long long)check->from[i],
				    (unsigned long long)writers[i].written);
	return true;
}

static bool counts_agree(struct ring *ring, uint64_t written, uint64_t lost)
{
	struct kymo_ring_stats stats;

	kymo_ring_reader_stats(ring->ends.reader, KYMO_RING_ALL, &stats);
	if (stats.records != written || stats.lost_total != lost)
		CLIENT_FAIL(&ring->check, "%llu records and %llu lost, and not %llu and %llu",
			    (unsigned long long)stats.records, (unsigned long long)stats.lost_total,
			    (unsigned long long)written, (unsigned long long)lost);
	return true;
}

static bool agrees(struct ring *ring, const struct writer *writers, uint64_t more)
{
	uint64_t written = more, lost = 0;

	for (int i = 0; i < THREADS; i++) {
		written += writers[i].written;
		lost += writers[i].lost;
	}
	return is_as_written(&ring->check, writers) && counts_agree(ring, written, lost);
}

/* ---- the cases; each returns whether all was well, ring->check.why says what was not ---- */

/* Threads that are preempted between looking and committing, with a consumer at work. */
static bool test_preempted(struct ring *ring)
{
	struct writer writers[THREADS];
	bool ok = true;

	ring_open(ring, 0, 4096, 8);
	start(writers, ring, &yielding, is_long ? 20000000 : 50000, NULL);
	while (ok && is_running(writers))
		ok = client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
	join(writers);
	return ok && client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL) &&
	       agrees(ring, writers, 0);
}

/* Threads that are moved from CPU to CPU all the time. */
static bool test_migrated(struct ring *ring)
{
	int n = (int)sysconf(_SC_NPROCESSORS_ONLN);
	struct writer writers[THREADS];
	bool ok = true;

	ring_open(ring, 0, 16384, 8);
	start(writers, ring, &client_config, is_long ? 50000000 : 200000, NULL);
	for (unsigned int k = 0; ok && is_running(writers); k++) {
		for (int i = 0; i < THREADS; i++) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET((k + (unsigned int)i) % (unsigned int)n, &set);
			pthread_setaffinity_np(writers[i].thread, sizeof(set), &set);
		}
		if (k % 16 == 0)
			ok = client_check_all(&ring->check, ring->ends.reader, 0);
	}
	join(writers);
	return ok && client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL) &&
	       agrees(ring, writers, 0);
}

static struct ring *signal_ring;
static uint64_t signal_next, signal_lost;

static void on_signal(int number)
{
	static __thread volatile int depth;
	uint64_t mine;

	/* Where a handler takes longer than the next signal, the stack has an end. */
	if (depth > 8)
		return;
	depth++;
	mine = __atomic_fetch_add(&signal_next, 1, __ATOMIC_RELAXED);

	if (write_one(&client_config, &signal_ring->ends.writer,
		      client_value(HANDLERS + mine % 64, mine)))
		__atomic_fetch_add(&signal_lost, 1, __ATOMIC_RELAXED);
	depth--;
}

/* Signals at any instruction, whose handlers write too. */
static bool test_signals(struct ring *ring)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER};
	struct itimerval each = {{0, 200}, {0, 200}}, none = {0};
	struct writer writers[THREADS];
	struct kymo_ring_stats stats;
	uint64_t seen = 0;
	bool ok = true;

	ring_open(ring, 0, 16384, 16);
	signal_ring = ring;
	signal_next = signal_lost = 0;
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGUSR1, &action, NULL);
	start(writers, ring, &client_config, is_long ? 20000000 : 100000, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
	while (ok && is_running(writers)) {
		for (int i = 0; i < THREADS; i++)
			pthread_kill(writers[i].thread, SIGUSR1);
		ok = client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
	}
	setitimer(ITIMER_REAL, &none, NULL);
	join(writers);
	signal(SIGALRM, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	ok = ok && client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL) &&
	     is_as_written(&ring->check, writers);
	for (unsigned int i = HANDLERS; i < HANDLERS + 64; i++)
		seen += ring->check.from[i];
	kymo_ring_reader_stats(ring->ends.reader, KYMO_RING_ALL, &stats);
	if (ok && seen + signal_lost != signal_next)
		CLIENT_FAIL(&ring->check, "%llu of %llu handlers' records, %llu lost",
			    (unsigned long long)seen, (unsigned long long)signal_next,
			    (unsigned long long)signal_lost);
	if (ok && stats.records != ring->check.records)
		CLIENT_FAIL(&ring->check, "statistics: %llu records, %llu were read",
			    (unsigned long long)stats.records,
			    (unsigned long long)ring->check.records);
	return ok;
}

/* What a writer that will be killed is sure of. */
struct sure {
	uint64_t written[2];
};

struct victim {
	struct ring *ring;
	struct sure *sure;
	uint64_t who;
};

static void *write_until_killed(void *arg)
{
	struct victim *victim = arg;

	for (uint64_t i = 0;; i++) {
		/* Stops when full: then all there is must be there. */
		while (write_one(&client_config, &victim->ring->ends.writer,
				 client_value(victim->who, i)))
			pause();
		__atomic_store_n(&victim->sure->written[victim->who], i + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

static bool check_victim(struct ring *ring, const struct sure *sure)
{
	struct kymo_ring_stats stats;

	if (!client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL))
		return false;
	for (int i = 0; i < 2; i++) {
		/* At most one more than it could say. */
		uint64_t more = ring->check.from[i] - sure->written[i];

		if (more > 1)
			CLIENT_FAIL(&ring->check, "writer %d: %llu records, %llu were sure", i,
				    (unsigned long long)ring->check.from[i],
				    (unsigned long long)sure->written[i]);
	}
	kymo_ring_reader_stats(ring->ends.reader, KYMO_RING_ALL, &stats);
	if (stats.records != ring->check.records)
		CLIENT_FAIL(&ring->check, "%llu records, %llu were read",
			    (unsigned long long)stats.records,
			    (unsigned long long)ring->check.records);
	return true;
}

/* SIGKILL at any instruction: all that was committed is there, and nothing else. */
static bool test_killed(struct ring *ring)
{
	struct sure *sure = mmap(NULL, sizeof(*sure), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int n = is_long ? 10000 : 100;
	bool ok = true;

	for (int k = 0; ok && k < n; k++) {
		struct victim victims[2];
		pid_t pid;

		ring_open(ring, 0, k % 2 ? 512 : 4096, 256);
		memset(sure, 0, sizeof(*sure));
		pid = fork();
		if (pid == 0) {
			pthread_t thread;

			for (uint64_t i = 0; i < 2; i++)
				victims[i] = (struct victim){ring, sure, i};
			pthread_create(&thread, NULL, write_until_killed, &victims[1]);
			write_until_killed(&victims[0]);
		}
		/* Either: the one may fill the ring before the other begins. */
		while (__atomic_load_n(&sure->written[0], __ATOMIC_ACQUIRE) == 0 &&
		       __atomic_load_n(&sure->written[1], __ATOMIC_ACQUIRE) == 0)
			usleep(20);
		usleep((useconds_t)(k * 7919 % 1500));
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		ok = check_victim(ring, sure);
		if (ok && k < n - 1)
			client_ring_close(&ring->ends);
	}
	munmap(sure, sizeof(*sure));
	return ok;
}

/* Children of children, all writing into the ring of the first. */
static bool test_forks(struct ring *ring)
{
	uint64_t each = 200, n = is_long ? 2000 : 120, lost, who = 0;
	uint64_t *shared_lost =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool ok = true;

	ring_open(ring, 0, 65536, 64);
	while (ok && who < n) {
		for (int k = 0; k < 6; k++, who += 2) {
			pid_t pid = fork();

			if (pid)
				continue;
			bool grandchild = fork() == 0;
			for (uint64_t i = 0; i < each; i++)
				if (write_one(&client_config, &ring->ends.writer,
					      client_value(who + grandchild, i)))
					__atomic_fetch_add(shared_lost, 1, __ATOMIC_RELAXED);
			if (!grandchild)
				wait(NULL);
			_exit(0);
		}
		while (wait(NULL) > 0)
			;
		ok = client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
	}
	lost = *shared_lost;
	munmap(shared_lost, 4096);
	if (ok && ring->check.records + lost != who * each)
		CLIENT_FAIL(&ring->check, "%llu records and %llu lost of %llu",
			    (unsigned long long)ring->check.records, (unsigned long long)lost,
			    (unsigned long long)(who * each));
	return ok;
}

static struct vforked {
	uint64_t n, lost;
} vforked;

static void write_vforked(struct ring *ring, uint64_t n)
{
	client_pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	/* Long ones: it takes a while to copy them. */
	for (uint64_t i = 0; i < n; i++)
		vforked.lost += client_write_text(&ring->ends.writer,
						  client_value(THREADS, vforked.n++), 3000) != 0;
	_exit(!kymo_ring_is_shared_thread() && KYMO_RING_HAS_RSEQ);
}

static bool is_bad_child(struct ring *ring, pid_t pid)
{
	int status = -1;

	if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
		return false;
	snprintf(ring->check.why, sizeof(ring->check.why), "a child ended with %x",
		 (unsigned int)status);
	return true;
}

/*
 * Children of vfork() live in their parent's memory, where the CPU still stands that the parent was on;
 * they are on another one, and write beside the threads of this one.
 */
static bool test_vforks(struct ring *ring)
{
	uint64_t each = 100, n = is_long ? 10000 : getenv("RACE_SHORT") ? 20 : 200;
	struct writer writers[THREADS];
	cpu_set_t before;
	bool ok = true;

	vforked = (struct vforked){0};
	ring_open(ring, 0, 65536, 64);
	sched_getaffinity(0, sizeof(before), &before);
	client_pin(0);
	start(writers, ring, &client_config, is_long ? 50000000 : 1000000, NULL);
	for (uint64_t k = 0; ok && k < n; k++) {
		pid_t pid = vfork();

		if (pid == 0)
			write_vforked(ring, each);
		ok = !is_bad_child(ring, pid) && !kymo_ring_is_shared_thread() &&
		     client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
	}
	sched_setaffinity(0, sizeof(before), &before);
	join(writers);
	ok = ok && client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
	if (ok && ring->check.from[THREADS] + vforked.lost != n * each)
		CLIENT_FAIL(&ring->check, "%llu records and %llu lost of %llu",
			    (unsigned long long)ring->check.from[THREADS],
			    (unsigned long long)vforked.lost, (unsigned long long)(n * each));
	/* The threads', and the children's. */
	writers[0].lost += vforked.lost;
	return ok && agrees(ring, writers, n * each - vforked.lost);
}

/* ---- SIGKILL while a lock is held ---- */

enum { DIE_NEVER, DIE_IN_CLOCK, DIE_IN_HEADER, DIE_IN_SWITCH, DIE_WAYS };
static int die_in;

static void die(int where)
{
	if (where == die_in)
		kill(getpid(), SIGKILL);
}

static uint64_t deadly_clock(void)
{
	die(DIE_IN_CLOCK);
	return client_clock();
}

static uint32_t deadly_header(const void *record, const struct kymo_ring_spot *spot,
			      union kymo_ring_header *header)
{
	die(DIE_IN_HEADER);
	return client_record_header(record, spot, header);
}

static void deadly_open(const void *client, const struct kymo_ring_packet *packet, void *header)
{
	die(DIE_IN_SWITCH);
	client_subbuf_open(client, packet, header);
}

static const struct kymo_ring_config deadly = {
	sizeof(struct client_header), deadly_clock, deadly_header, deadly_open, client_subbuf_close,
};

/* What the client's functions are called for is under the lock of whoever writes under locks. */
static void write_and_die(struct ring *ring, uint64_t who, int where, uint64_t *written)
{
	static const uint32_t id = 1;

	for (uint64_t i = 0;; i++) {
		uint64_t value = client_value(who, i);

		/* The first ones are committed in peace; a sub-buffer takes a while to fill. */
		die_in = i < 3 ? DIE_NEVER : where;
		if (kymo_ring_write(&deadly, &ring->ends.writer, &id, &value, sizeof(value)))
			_exit(1);
		*written = i + 1;
	}
}

/*
 * More dead owners than locks: later writers take over, nothing is lost, and all that was
 * committed is there.
 */
static bool test_killed_holding(struct ring *ring)
{
	uint64_t *written =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t who = 0, sum = 0, n;
	bool ok = true;
	int status;

	ring_open(ring, 0, 4096, 64);
	n = 2 * kymo_ring_reader_buffers(ring->ends.reader) + 2;
	n = n < 64 ? n : 64;
	for (int where = DIE_IN_CLOCK; where < DIE_WAYS; where++)
		for (uint64_t k = 0; ok && k < n; k++, who++) {
			pid_t pid;

			*written = 0;
			pid = fork();
			if (pid == 0)
				write_and_die(ring, who, where, written);
			if (waitpid(pid, &status, 0) != pid || !WIFSIGNALED(status) ||
			    WTERMSIG(status) != SIGKILL)
				CLIENT_FAIL(&ring->check, "it did not die in %d", where);
			sum += *written;
			ok = client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
			if (ok && (ring->check.from[who] != *written || *written < 3))
				CLIENT_FAIL(&ring->check, "writer %llu: %llu records of %llu",
					    (unsigned long long)who,
					    (unsigned long long)ring->check.from[who],
					    (unsigned long long)*written);
		}
	for (uint64_t i = 0; i < 1000; i++)
		sum += client_write(&ring->ends.writer, client_value(who, i)) == 0;
	munmap(written, 4096);
	return ok && client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL) &&
	       counts_agree(ring, sum, 0) && ring->check.from[who] == 1000;
}

/* ---- children of clone(CLONE_VM) that are processes ---- */

static struct cloned {
	struct ring *ring;
	uint64_t n_children, each;
	uint64_t n, lost;	  /* of the children, one after the other */
	uint64_t own_n, own_lost; /* of who makes them */
	const char *wrong;
} cloned;

static int write_cloned(void *data)
{
	client_pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	for (uint64_t i = 0; i < cloned.each; i++)
		cloned.lost += client_write_text(&cloned.ring->ends.writer,
						 client_value(THREADS, cloned.n++), 3000) != 0;
	return KYMO_RING_HAS_RSEQ && !kymo_ring_is_shared_thread();
}

/* Waits for each child, or writes beside it, in the very same thread-local memory. */
static void *clone_writers(void *data)
{
	static char stack[262144] __attribute__((aligned(64)));
	int status = 0;

	for (uint64_t k = 0; k < cloned.n_children && !cloned.wrong; k++) {
		/* The sanitizer keeps its stacks in thread-local memory. */
		bool waits = IS_ASAN || k % 2 || k < cloned.n_children / 2;
		pid_t pid = clone(write_cloned, stack + sizeof(stack),
				  CLONE_VM | (waits ? CLONE_VFORK : 0) | SIGCHLD, NULL);

		if (pid > 0 && waits && k < cloned.n_children / 2 && kymo_ring_is_shared_thread())
			cloned.wrong = "who waited is not himself any more";
		for (uint64_t i = 0; pid > 0 && i < cloned.each; i++)
			cloned.own_lost +=
				client_write_text(&cloned.ring->ends.writer,
						  client_value(THREADS + 1, cloned.own_n++),
						  3000) != 0;
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			cloned.wrong = "a child ended otherwise";
	}
	return NULL;
}

/* As vforks; and some whose parent goes on meanwhile. That one's thread is never the same again. */
static bool test_clones(struct ring *ring)
{
	struct writer writers[THREADS];
	cpu_set_t before;
	pthread_t thread;
	bool ok = true;

	cloned = (struct cloned){.ring = ring,
				 .n_children = is_long		      ? 10000
					       : getenv("RACE_SHORT") ? 20
								      : 200,
				 .each = 100};
	ring_open(ring, 0, 65536, 64);
	sched_getaffinity(0, sizeof(before), &before);
	client_pin(0);
	start(writers, ring, &client_config, is_long ? 50000000 : 1000000, NULL);
	pthread_create(&thread, NULL, clone_writers, NULL);
	while (ok && pthread_tryjoin_np(thread, NULL) == EBUSY)
		ok = client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
	if (!ok)
		pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(before), &before);
	join(writers);
	ok = ok && client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
	if (ok && cloned.wrong)
		CLIENT_FAIL(&ring->check, "%s", cloned.wrong);
	if (ok && (cloned.n != cloned.n_children * cloned.each || cloned.own_n != cloned.n ||
		   ring->check.from[THREADS] != cloned.n - cloned.lost ||
		   ring->check.from[THREADS + 1] != cloned.own_n - cloned.own_lost))
		CLIENT_FAIL(&ring->check, "%llu and %llu records, %llu and %llu lost of %llu each",
			    (unsigned long long)ring->check.from[THREADS],
			    (unsigned long long)ring->check.from[THREADS + 1],
			    (unsigned long long)cloned.lost, (unsigned long long)cloned.own_lost,
			    (unsigned long long)cloned.n);
	writers[0].lost += cloned.lost + cloned.own_lost;
	return ok && agrees(ring, writers, 2 * cloned.n - cloned.lost - cloned.own_lost);
}

/* All threads on the last CPU, for which there is no buffer; then all over the machine. */
static bool test_beyond(struct ring *ring)
{
	struct kymo_ring_options options = {
		.size_bytes = sizeof(options), .flags = mode, .n_buffers = 1, .n_subbufs = 8};
	uint64_t spare = 0, n = is_long ? 500000 : 4000;
	struct writer writers[THREADS];
	struct kymo_ring_stats stats;
	cpu_set_t before;
	bool ok = true;

	ring_open_with(ring, &options);
	sched_getaffinity(0, sizeof(before), &before);
	for (int i = 0; ok && i < 2; i++) {
		if (!i)
			client_pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
		start(writers, ring, &yielding, n, NULL);
		while (ok && is_running(writers))
			ok = client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
		join(writers);
		ok = ok && client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
		sched_setaffinity(0, sizeof(before), &before);
		if (ok && i == 0)
			ok = agrees(ring, writers, 0);
		memset(ring->check.from, 0, sizeof(ring->check.from));
	}
	kymo_ring_reader_stats(ring->ends.reader, kymo_ring_reader_buffers(ring->ends.reader) - 1,
			       &stats);
	spare = stats.records;
	if (ok && !mode && sysconf(_SC_NPROCESSORS_ONLN) > 1 && !spare)
		CLIENT_FAIL(&ring->check, "nothing went to the spare buffer");
	return ok;
}

static bool plug(struct ring *ring, bool is_online)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%ld/online",
		 sysconf(_SC_NPROCESSORS_CONF) - 1);
	file = fopen(path, "w");
	if (!file || fprintf(file, "%d", is_online) < 0 || fclose(file))
		CLIENT_FAIL(&ring->check, "%s: %s", path, strerror(errno));
	return true;
}

/* Threads whose CPU goes away under them, and comes back: for machines of their own. */
static bool test_unplugged(struct ring *ring)
{
	struct writer writers[THREADS];
	unsigned int k = 0;
	bool ok = true;

	ring_open(ring, 0, 16384, 8);
	start(writers, ring, &client_config, is_long ? 20000000 : 400000, NULL);
	while (ok && (is_running(writers) || k < 4))
		ok = plug(ring, k++ % 2) &&
		     client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL);
	join(writers);
	return ok && plug(ring, true) &&
	       client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL) &&
	       agrees(ring, writers, 0);
}

/* Writers that wait for their reader, while signals interrupt them, whose handlers do the same: nothing is lost to a full buffer. */
static bool test_waiting(struct ring *ring)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART | SA_NODEFER};
	struct itimerval each = {{0, 500}, {0, 500}}, none = {0};
	struct writer writers[THREADS];
	struct kymo_ring_stats stats;
	sigset_t alarm_only;
	bool ok = true;

	ring_open(ring, 0, 4096, 2);
	ring->ends.writer.wait_ns = UINT64_MAX;
	signal_ring = ring;
	signal_next = signal_lost = 0;
	sigaction(SIGALRM, &action, NULL);
	start(writers, ring, &yielding, is_long ? 2000000 : 20000, NULL);
	/* The reader itself must not wait for itself. */
	sigemptyset(&alarm_only);
	sigaddset(&alarm_only, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &alarm_only, NULL);
	setitimer(ITIMER_REAL, &each, NULL);
	while (ok && is_running(writers))
		ok = client_check_all(&ring->check, ring->ends.reader, 0);
	setitimer(ITIMER_REAL, &none, NULL);
	signal(SIGALRM, SIG_IGN);
	pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
	/* After a failure, nobody reads for those that wait. */
	kymo_ring_reader_abandon(ring->ends.reader);
	join(writers);
	if (!ok || !client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL))
		return false;
	kymo_ring_reader_stats(ring->ends.reader, KYMO_RING_ALL, &stats);
	/* The last handlers' records may have met nobody any more. */
	if (stats.lost[KYMO_RING_LOST_FULL] > signal_lost)
		CLIENT_FAIL(&ring->check, "%llu records were lost to full buffers",
			    (unsigned long long)stats.lost[KYMO_RING_LOST_FULL]);
	return is_as_written(&ring->check, writers);
}

/* Snapshots of a ring that is overwritten at full speed. */
static bool test_snapshots(struct ring *ring)
{
	int n = is_long ? 50000 : 400;
	struct writer writers[THREADS];
	bool stop = false;
	struct kymo_error err;
	bool ok = true;

	ring_open(ring, KYMO_RING_OVERWRITE, 16384, 8);
	start(writers, ring, &client_config, 0, &stop);
	for (int k = 0; ok && (k < n || ring->check.records < 1000); k++) {
		ok = kymo_ring_snapshot_begin(ring->ends.reader, &err) == 0;
		for (uint32_t i = 0; ok && i < kymo_ring_reader_buffers(ring->ends.reader); i++) {
			struct kymo_ring_chunk chunk;
			int status;

			client_check_next_buffer(&ring->check);
			while (ok && (status = kymo_ring_snapshot_next(ring->ends.reader, i, &chunk,
								       &err)) > 0)
				ok = client_check_chunk(&ring->check, &chunk);
			if (ok && status < 0) {
				snprintf(ring->check.why, sizeof(ring->check.why), "%s",
					 err.message);
				ok = false;
			}
		}
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	join(writers);
	return ok;
}

/* Every instruction is followed by a signal stop: no sequence ever ends. Records still arrive. */
static bool test_single_stepped(struct ring *ring)
{
	uint64_t n = is_long ? 100 : 4;
	int status;
	pid_t pid;

	ring_open(ring, 0, 4096, 8);
	pid = fork();
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(2);
		raise(SIGSTOP);
		for (uint64_t i = 0; i < n; i++)
			client_write(&ring->ends.writer, i);
		_exit(0);
	}
	while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
		ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		CLIENT_FAIL(&ring->check, "the child ended with %x", (unsigned int)status);
	if (!client_check_all(&ring->check, ring->ends.reader, KYMO_RING_PARTIAL))
		return false;
	if (ring->check.records != n)
		CLIENT_FAIL(&ring->check, "%llu records of %llu",
			    (unsigned long long)ring->check.records, (unsigned long long)n);
	return true;
}

static const struct {
	const char *name;
	bool (*run)(struct ring *ring);
	bool forks; /* not under sanitizers and emulators that cannot */
} cases[] = {
	{"preempted", test_preempted, false},
	{"migrated", test_migrated, false},
	{"signals", test_signals, false},
	{"snapshots", test_snapshots, false},
	{"waiting", test_waiting, false},
	{"beyond", test_beyond, false},
	{"unplugged", test_unplugged, true},
	{"killed", test_killed, true},
	{"killed holding", test_killed_holding, true},

	{"forks", test_forks, true},
	{"vforks", test_vforks, true},
	{"clones", test_clones, true},
	{"single-stepped", test_single_stepped, true},
};

static const struct {
	const char *name;
	uint32_t flags;
} modes[] = {{"per CPU", 0}, {"locked", KYMO_RING_LOCKED}, {"global", KYMO_RING_GLOBAL}};

int main(int argc, char **argv)
{
	static struct ring ring;
	int n = 0, failed = 0;

	setvbuf(stdout, NULL, _IONBF, 0);
	is_long = getenv("RACE_LONG") != NULL;
	for (unsigned int m = 0; m < 3; m++)
		for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			bool ok;

			/* Stepping through the kernel's emulator, or once per mode, says nothing new. */
			if (cases[i].forks && getenv("RACE_NO_FORKS"))
				continue;
			if (cases[i].run == test_single_stepped && m)
				continue;
			/* It makes fork() of vfork(), and knows no such processes. */
			if ((cases[i].run == test_vforks || cases[i].run == test_clones) && IS_TSAN)
				continue;
			/* Only where it is asked for: others live on the machine. */
			if (cases[i].run == test_unplugged && argc < 2)
				continue;
			if (argc > 1 && strcmp(argv[1], cases[i].name) != 0)
				continue;
			mode = modes[m].flags;
			ok = cases[i].run(&ring);
			printf("%sok %d - %s, %s%s%s\n", ok ? "" : "not ", ++n, cases[i].name,
			       modes[m].name, ok ? "" : ": ", ok ? "" : ring.check.why);
			failed += !ok;
			if (ok)
				client_ring_close(&ring.ends);
		}
	printf("1..%d\n", n);
	return failed > 0;
}
