/* SPDX-License-Identifier: MIT */
/*
 * What test/cli/test_preload.py runs with libkymo-libc, -pthread and -fd loaded before it. Between two
 * allocations of MARK bytes stands nothing but what a mode is about; it says afterwards which events
 * that makes. Compiled with -fno-builtin: the compiler removes none of it.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <kymo/trace.h>

#define MARK 1000003

static char said[65536];
static size_t said_bytes;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Does not allocate, and locks nothing. */
static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	said_bytes += (size_t)vsnprintf(said + said_bytes, sizeof(said) - said_bytes, format, args);
	va_end(args);
}

static __attribute__((noinline)) void *mark(void)
{
	void *volatile ptr = malloc(MARK);

	return ptr;
}

#define P(ptr) (unsigned long)(uintptr_t)(ptr)

static void say_free(void *ptr)
{
	if (ptr)
		say("lttng_ust_libc:free: { ptr = 0x%lX }\n", P(ptr));
	else
		say("lttng_ust_libc:free: { ptr = 0x0 }\n");
	free(ptr);
}

static void *say_new(const char *name, const char *fields, void *ptr)
{
	say("lttng_ust_libc:%s: { %s, ptr = 0x%lX }\n", name, fields, P(ptr));
	return ptr;
}

/* @has_pvalloc: jemalloc does not, and its free() crashes on what glibc gives then. */
static void allocate(bool has_pvalloc)
{
	unsigned long page = (unsigned long)sysconf(_SC_PAGESIZE), old;
	volatile size_t huge = SIZE_MAX / 2 + 1;
	char fields[100];
	void *ptr;
	int result;

	ptr = say_new("malloc", "size = 77", malloc(77));
	old = P(ptr);
	ptr = realloc(ptr, 88888);
	say("lttng_ust_libc:realloc: { in_ptr = 0x%lX, size = 88888, ptr = 0x%lX }\n", old, P(ptr));
	say_free(ptr);
	say_free(NULL);
	say_free(say_new("calloc", "nmemb = 3, size = 55", calloc(3, 55)));
	say_free(say_new("realloc", "in_ptr = 0x0, size = 44", realloc(NULL, 44)));
	say_free(say_new("realloc", "in_ptr = 0x0, size = 550", reallocarray(NULL, 10, 55)));
	say_free(say_new("memalign", "alignment = 64, size = 500", memalign(64, 500)));
	say_free(say_new("memalign", "alignment = 64, size = 640", aligned_alloc(64, 640)));
	snprintf(fields, sizeof(fields), "alignment = %lu, size = 700", page);
	say_free(say_new("memalign", fields, valloc(700)));
	if (has_pvalloc)
		say_free(say_new("memalign", fields, pvalloc(700)));
	say_free(say_new("malloc", "size = 5", strdup("four")));
	result = posix_memalign(&ptr, 128, 600);
	say("lttng_ust_libc:posix_memalign: { out_ptr = 0x%lX, alignment = 128, size = 600, result = "
	    "%d }\n",
	    P(ptr), result);
	say_free(ptr);
	result = posix_memalign(&ptr, 3, 600);
	say("lttng_ust_libc:posix_memalign: { out_ptr = 0x0, alignment = 3, size = 600, result = %d }\n",
	    result);
	errno = 0;
	snprintf(fields, sizeof(fields), "size = %zu", huge);
	ptr = malloc(huge);
	if (ptr || errno != ENOMEM)
		abort();
	say("lttng_ust_libc:malloc: { %s, ptr = 0x0 }\n", fields);
}

static void say_lock(const char *name, int status)
{
	say("lttng_ust_pthread:pthread_mutex_%s: { mutex = 0x%lX, status = %d }\n", name, P(&mutex),
	    status);
}

static void say_request(void)
{
	say("lttng_ust_pthread:pthread_mutex_lock_req: { mutex = 0x%lX }\n", P(&mutex));
}

static void lock(void)
{
	struct timespec past = {0};

	say_request();
	say_lock("lock_acq", pthread_mutex_lock(&mutex));
	say_lock("trylock", pthread_mutex_trylock(&mutex));
	say_request();
	say_lock("lock_acq", pthread_mutex_timedlock(&mutex, &past));
	say_request();
	say_lock("lock_acq", pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &past));
	say_lock("unlock", pthread_mutex_unlock(&mutex));
	say_lock("trylock", pthread_mutex_trylock(&mutex));
	say_lock("unlock", pthread_mutex_unlock(&mutex));
}

/* ---- threads: each allocates, also when it ends ---- */

static int rounds;
static pthread_key_t key;

static void at_thread_end(void *ptr)
{
	free(ptr);
	free(malloc(40003));
}

static void *thread(void *unused)
{
	(void)unused;
	pthread_setspecific(key, malloc(40001));
	for (int i = 0; i < rounds; i++) {
		void *ptr = malloc(40002);

		pthread_mutex_lock(&mutex);
		ptr = realloc(ptr, 40004);
		pthread_mutex_unlock(&mutex);
		free(ptr);
	}
	return NULL;
}

static void threads(int n)
{
	pthread_t started[64];

	pthread_key_create(&key, at_thread_end);
	for (int i = 0; i < n; i++) {
		if (pthread_create(&started[i], NULL, thread, NULL))
			abort();
	}
	for (int i = 0; i < n; i++)
		pthread_join(started[i], NULL);
}

/* ---- children, of a program with threads that allocate all the time ---- */

static volatile int is_over;

static void *allocator(void *unused)
{
	(void)unused;
	while (!is_over)
		free(malloc(50001));
	return NULL;
}

static void children(int n)
{
	pthread_t beside;
	int status;

	if (pthread_create(&beside, NULL, allocator, NULL))
		abort();
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (!pid) {
			free(malloc(50002));
			pthread_mutex_lock(&mutex);
			_exit(pthread_mutex_unlock(&mutex));
		}
		if (waitpid(pid, &status, 0) != pid || status)
			abort();
		free(malloc(50003));
	}
	is_over = 1;
	pthread_join(beside, NULL);
}

/* ---- signals: a handler that interrupts all of this, and locks ---- */

static volatile int n_signals;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;

static void on_alarm(int number)
{
	(void)number;
	if (!pthread_mutex_trylock(&other))
		pthread_mutex_unlock(&other);
	n_signals++;
}

static void signals(int n)
{
	struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	int i;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	/* Some signals at least, however quick we are. */
	for (i = 0; i < n || n_signals <= 10; i++)
		free(malloc(60001));
	setitimer(ITIMER_REAL, &never, NULL);
	say("%d %d\n", n_signals, i);
}

/* ---- programs that close what they did not open, or take its number ---- */

static int descriptors(const char *how)
{
	int n_open = 0;

	if (!strcmp(how, "close")) {
		for (int fd = 3; fd < 1024; fd++)
			n_open += !close(fd);
	} else if (!strcmp(how, "closefrom")) {
		closefrom(3);
	} else if (!strcmp(how, "close_range")) {
		n_open = close_range(3, ~0U, 0);
	} else if (!strcmp(how, "dup2")) {
		for (int fd = 150; fd < 300; fd++)
			n_open += dup2(0, fd) != fd || dup2(-1, fd) != -1;
	} else {
		for (int fd = 150; fd < 300; fd++)
			n_open += dup3(0, fd, 0) != fd || dup3(-1, fd, 0) != -1;
	}
	return n_open;
}

/* ---- before main() and after: memory lives through both ---- */

static void *from_start, *from_context;

static uint64_t context(void *data)
{
	(void)data;
	free(from_context);
	from_context = malloc(70001);
	return 4711;
}

static __attribute__((constructor(101))) void start(void)
{
	from_start = realloc(calloc(1, 10), 100);
	kymo_app_context("preload", "number", KYMO_APP_NUMBER, context, NULL);
}

static __attribute__((destructor(101))) void stop(void)
{
	free(from_start);
	free(from_context);
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 1;
	void *first;
	char byte;

	if (!strcmp(mode, "descriptors") && argc > 2 && descriptors(argv[2]))
		return 2;
	/* Until somebody has asked for events. */
	if ((!strcmp(mode, "wait") || !strcmp(mode, "descriptors")) &&
	    (write(1, "ready\n", 6) != 6 || read(0, &byte, 1) < 0))
		return 1;
	first = mark();
	if (argc > 3)
		rounds = atoi(argv[3]);
	if (!strcmp(mode, "libc"))
		allocate(n);
	else if (!strcmp(mode, "pthread"))
		lock();
	else if (!strcmp(mode, "threads"))
		threads(n);
	else if (!strcmp(mode, "fork"))
		children(n);
	else if (!strcmp(mode, "signals"))
		signals(n);
	else if (!strcmp(mode, "where"))
		say("%lX\n", P(mark));
	free(mark());
	free(first);
	fwrite(said, 1, said_bytes, stdout);
	return 0;
}
