/* SPDX-License-Identifier: MIT */
/*
 * stepping MODE PLUGIN [STRIDE OFFSETS]: events with a signal at each instant of them: there is one event for each
 * instruction, with a breakpoint there; when it is reached the signal comes, whose handler traces, too. Which
 * instructions there are is found by trapping behind each one of such an event; for events that take too
 * many, each STRIDEth of the library's is tried, whose offsets are in a file. Prints what is left behind.
 *
 *	event			an event like any other
 *	switch			one that is as large as a sub-buffer
 *	first			the first one of a thread
 *	change			one that finds that the rules have changed: this program does that to itself
 *	jump, exit, fork	as change; the handler does not come back, ends the thread, makes a child
 *	fork-first		as first, and the handler makes a child
 *	jump-spare, fork-spare	to the ring's spare buffer, which has a lock; the handler jumps away, makes a child
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <kymo/trace.h>

#include "abi/control.h"
#include "program.h"

#if defined(__x86_64__)

static bool changes; /* of the rules */
static volatile sig_atomic_t instant, n_handlers;
static void (*then)(void); /* what the handler does besides */
static sigjmp_buf back;

/* ---- instants: the addresses of instructions ---- */

#define INSTANTS_MAX 65536

static uint8_t *instants[INSTANTS_MAX]; /* hashed; then in no order, without gaps */
static volatile int n_instants;

static void add_instant(uint8_t *at)
{
	size_t i = ((uintptr_t)at * UINT64_C(0x9e3779b97f4a7c15)) >> 48;

	if (n_instants > INSTANTS_MAX / 2)
		return;
	for (; instants[i] != at; i = (i + 1) % INSTANTS_MAX) {
		if (instants[i])
			continue;
		instants[i] = at;
		n_instants++;
		return;
	}
}

static uint8_t *library;

/* Where the library is: where one of its functions is. */
static void find_library(void)
{
	Dl_info info;

	check(dladdr(dlsym(RTLD_DEFAULT, "kymo_hit"), &info) != 0, "library");
	library = info.dli_fbase;
}

static void read_instants(const char *path, int stride)
{
	FILE *file = fopen(path, "r");
	unsigned long offset;

	check(file != NULL, path);
	for (int i = 0; fscanf(file, "%lx", &offset) == 1; i++) {
		if (i % stride == 0)
			add_instant(library + offset);
	}
	fclose(file);
}

/* Those in code that can be changed. */
static void gather_instants(void)
{
	int n = 0;

	for (size_t i = 0; i < INSTANTS_MAX; i++) {
		uint8_t *at = instants[i];
		void *page = (void *)((uintptr_t)at &
				      ~(uintptr_t)4095); // NOLINT(performance-no-int-to-ptr)

		if (at && mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) == 0)
			instants[n++] = at;
	}
	n_instants = n;
}

/* ---- signals ---- */

#define BREAKPOINT 0xcc

static uint8_t *armed, was;

static void arm(uint8_t *at)
{
	armed = at;
	was = *at;
	*(volatile uint8_t *)at = BREAKPOINT;
}

static void disarm(void)
{
	if (armed)
		*(volatile uint8_t *)armed = was;
	armed = NULL;
}

/* Behind an instruction: it is noted. At a breakpoint: the signal comes when we are back there. */
static void on_trap(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	greg_t *ip = &context->uc_mcontext.gregs[REG_RIP];

	(void)number;
	(void)info;
	if (!armed) {
		add_instant((uint8_t *)*ip); // NOLINT(performance-no-int-to-ptr)
		return;
	}
	/* In a restartable sequence it is elsewhere by now. */
	if (*ip == (greg_t)armed + 1)
		*ip = (greg_t)armed;
	disarm();
	syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
}

static void on_signal(int number)
{
	(void)number;
	n_handlers++;
	KYMO_EVENT(stepping, handler, (int)instant);
	if (then)
		then();
}

static void jump(void)
{
	siglongjmp(back, 1);
}

static void leave(void)
{
	pthread_exit(NULL);
}

static pid_t child;

static void make_child(void)
{
	child = fork();
	check(child >= 0, "fork");
}

static void set_up(void)
{
	struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
	struct sigaction signal = {.sa_handler = on_signal};

	sigaddset(&trap.sa_mask, SIGUSR1);
	check(sigaction(SIGTRAP, &trap, NULL) == 0 && sigaction(SIGUSR1, &signal, NULL) == 0,
	      "sigaction");
}

/* The trap flag, on and off, below the stack's red zone. */
static inline __attribute__((always_inline)) void step(bool on)
{
	if (on)
		__asm__ __volatile__("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\t"
				     "popfq\n\tleaq 128(%%rsp), %%rsp" ::
					     : "memory", "cc");
	else
		__asm__ __volatile__(
			"leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $-0x101, (%%rsp)\n\t"
			"popfq\n\tleaq 128(%%rsp), %%rsp" ::
				: "memory", "cc");
}

/* ---- the rules change ---- */

static struct ky_control *control;
static uint64_t cookie; /* the recorder's */

static void map_control(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	char target[64];

	while (dir && (entry = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);

		target[len < 0 ? 0 : len] = 0;
		if (strstr(target, KY_CONTROL_MEMFD))
			control = mmap(NULL, KY_CONTROL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
				       atoi(entry->d_name), 0);
	}
	if (dir)
		closedir(dir);
	check(control && control != MAP_FAILED, "control file");
	cookie = control->slots[0].cookie;
	check(cookie != 0, "session");
}

/* The same file, but it may be another one for all that is known. */
static void change(void)
{
	static uint64_t n;

	__atomic_store_n(&control->slots[0].cookie, changes ? ++n : cookie, __ATOMIC_RELEASE);
}

/* ---- events ---- */

static void *look(void *unused)
{
	step(true);
	KYMO_EVENT(stepping, looked, (long)instant);
	step(false);
	return unused;
}

static void *run(void *unused)
{
	arm(instants[instant]);
	KYMO_EVENT(stepping, stepped, (long)instant);
	disarm();
	KYMO_EVENT(stepping, after, (int)instant, KYMO_AS(at, (long)(instants[instant] - library)));
	return unused;
}

static void *run_large(void *unused)
{
	static char large[3500];

	memset(large, 'x', sizeof(large) - 1);
	arm(instants[instant]);
	KYMO_EVENT(stepping, stepped, (long)instant, KYMO_BLOB(large, sizeof(large)));
	disarm();
	return unused;
}

static void *run_back(void *unused)
{
	if (!sigsetjmp(back, 1))
		return run(unused);
	KYMO_EVENT(stepping, jumped, (int)instant);
	return unused;
}

static void *run_child(void *unused)
{
	int status = 0;

	child = -1;
	run(unused);
	if (child == 0)
		_exit(0);
	check(child < 0 || (waitpid(child, &status, 0) == child && !status), "child");
	return unused;
}

static const struct mode {
	const char *name;
	void *(*run)(void *data);
	void (*then)(void);
	bool has_thread; /* a new one for each */
	bool changes;
	bool is_spare;
} modes[] = {
	{"event", run, NULL, false, false, false},
	{"switch", run_large, NULL, false, false, false},
	{"first", run, NULL, true, false, false},
	{"change", run, NULL, false, true, false},
	{"jump", run_back, jump, false, true, false},
	{"exit", run, leave, true, true, false},
	{"fork", run_child, make_child, false, true, false},
	{"fork-first", run_child, make_child, true, false, false},
	{"jump-spare", run_back, jump, false, false, true},
	{"fork-spare", run_child, make_child, false, false, true},
};

static void run_in(bool has_thread, void *(*function)(void *))
{
	pthread_t thread;

	if (!has_thread) {
		function(NULL);
		return;
	}
	check(pthread_create(&thread, NULL, function, NULL) == 0, "thread");
	pthread_join(thread, NULL);
}

static int do_nothing(void *unused)
{
	(void)unused;
	return 0;
}

/* A thread that has had a child in its memory has no restartable sequences any more. */
static void go_to_spare(void)
{
	static char stack[65536] __attribute__((aligned(16)));
	int status = 0;
	pid_t pid = clone(do_nothing, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

	check(pid > 0 && waitpid(pid, &status, 0) == pid && !status, "clone");
}

static void run_mode(const struct mode *mode, int stride, const char *offsets)
{
	if (mode->is_spare)
		go_to_spare();
	then = mode->then;
	changes = mode->changes;
	change();
	if (offsets)
		read_instants(offsets, stride);
	else
		run_in(mode->has_thread, look);
	gather_instants();
	for (instant = 0; instant < n_instants; instant = instant + 1) {
		change();
		run_in(mode->has_thread, mode->run);
		disarm();
	}
	changes = false;
	change();
	KYMO_EVENT(stepping, done, KYMO_AS(instant, n_instants));
}

int main(int argc, char **argv)
{
	const char *name = argc > 2 ? argv[1] : "";

	set_up();
	find_library();
	map_control();
	/* The first calls of functions are not what is looked for. */
	KYMO_EVENT(stepping, begin, KYMO_AS(instant, 0));
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(modes[i].name, name) == 0)
			run_mode(&modes[i], argc > 4 ? atoi(argv[3]) : 0,
				 argc > 4 ? argv[4] : NULL);
	}
	/* Hangs where a change was left half-way. */
	check(argc > 2 && dlopen(argv[2], RTLD_NOW), "plugin");
	printf("instants %d handlers %d files %d\n", n_instants, (int)n_handlers,
	       count_files("perf_event"));
	return 0;
}

#else
int main(void)
{
	printf("unsupported\n");
	return 0;
}
#endif
