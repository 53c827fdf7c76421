/* SPDX-License-Identifier: MIT */
/*
 * modes MODE [ARGS]: what programs do that tracing has to survive. Each prints what it counted, and
 * exits with 0.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <kymo/trace.h>

#include "program.h"

static void wait_for(pid_t pid)
{
	int status = 0;

	check(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

static int mode_fork(char **args)
{
	pid_t pid;

	(void)args;
	KYMO_EVENT(modes, before, getpid());
	pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 1000; i++)
			KYMO_EVENT(modes, child, i);
		_exit(0);
	}
	for (int i = 0; i < 1000; i++)
		KYMO_EVENT(modes, parent, i);
	wait_for(pid);
	pid = vfork();
	if (pid == 0) {
		KYMO_EVENT(modes, vfork_child);
		_exit(0);
	}
	wait_for(pid);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	if (pid == 0) {
		KYMO_EVENT(modes, clone_child);
		_exit(0);
	}
	wait_for(pid);
	return 0;
}

enum colour { RED, GREEN, BLUE };
KYMO_LABELS(colour_names, KYMO_LABEL(RED), KYMO_LABEL(GREEN), KYMO_LABEL(BLUE),
	    KYMO_LABEL_RANGE("pale", 4, 7), KYMO_LABEL_AS("both", 8), KYMO_LABEL_AS("both", 10),
	    KYMO_LABEL_RANGE("PEBBLE", 6, 11));

static int mode_colours(char **args)
{
	(void)args;
	for (int colour = 0; colour < 12; colour++)
		KYMO_EVENT(modes, painted, KYMO_ENUM(colour, colour_names));
	return 0;
}

/* numbers N US: counts up, with a pause after each. */
static int mode_numbers(char **args)
{
	for (int i = 0; i < atoi(args[0]); i++) {
		KYMO_EVENT(modes, number, i);
		KYMO_EVENT(modes, other, i);
		if (atoi(args[1]))
			usleep((useconds_t)atoi(args[1]));
	}
	return 0;
}

/* rare N: for each line of the input, N frequent events, and a rare one with the number of the line. */
static int mode_rare(char **args)
{
	char line[80];

	for (int round = 1; fgets(line, sizeof(line), stdin); round++) {
		KYMO_EVENT(modes, rare, round);
		for (int i = 0; i < atoi(args[0]); i++)
			KYMO_EVENT(modes, frequent, round, i);
		printf("%d\n", round);
		fflush(stdout);
	}
	return 0;
}

static int mode_exec(char **args)
{
	KYMO_EVENT(modes, before_exec);
	execv(args[0], args);
	return 1;
}

static int mode_daemon(char **args)
{
	(void)args;
	check(daemon(1, 0) == 0, "daemon");
	KYMO_EVENT(modes, daemon, getpid());
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	KYMO_EVENT(modes, closed);
	return 0;
}

static int mode_setuid(char **args)
{
	KYMO_EVENT(modes, before_setuid);
	check(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0, "setuid");
	for (int i = 0; i < atoi(args[0]); i++)
		KYMO_EVENT(modes, after_setuid, i);
	return 0;
}

static int mode_dlopen(char **args)
{
	for (int i = 0; i < atoi(args[1]); i++) {
		void *handle = dlopen(args[0], RTLD_NOW);
		void (*work)(int);

		if (!handle)
			fprintf(stderr, "%s\n", dlerror());
		check(handle != NULL, "dlopen");
		*(void **)&work = dlsym(handle, "plugin_work");
		work(i);
		dlclose(handle);
	}
	return 0;
}

/* Characters of two bytes, before them one of one or none; and what kymo_printf() has to cut, or not. */
static int mode_cut(char **args)
{
	char text[1400];
	size_t n = 0;

	for (int first = 0; first < 2; first++) {
		memset(text, 'a', sizeof(text));
		for (n = (size_t)first; n + 2 < sizeof(text); n += 2)
			memcpy(text + n, "\u00e9", 2);
		text[n] = 0;
		KYMO_EVENT(modes, cut, KYMO_AS(text, &text[0]));
	}
	kymo_printf("%01023d", 7);
	kymo_printf("%01024d", 7);
	return 0;
}

/* Loads a library without events when it gets SIGUSR1, and stays. */
static int mode_load_plain(char **args)
{
	const struct timespec pause_time = {0, 1000000};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	while (sigtimedwait(&set, NULL, &pause_time) != SIGUSR1)
		KYMO_EVENT(modes, before_load);
	check(dlopen(args[0], RTLD_NOW) != NULL, "dlopen");
	KYMO_EVENT(modes, after_load);
	pause();
	return 0;
}

/* A child that loads a library: it needs a table of its own. */
/* The control file's number is that of standard input's file, which is ours. */
static int mode_reused_dlopen(char **args)
{
	pid_t pid;

	for (int fd = 3; fd < 300; fd++)
		check(dup2(0, fd) == fd, "dup2");
	mode_dlopen(args);
	pid = fork();
	if (pid == 0) {
		mode_dlopen(args);
		for (int fd = 3; fd < 300; fd++)
			check(close(fd) == 0, "close");
		_exit(0);
	}
	wait_for(pid);
	return 0;
}

static int mode_fork_dlopen(char **args)
{
	pid_t pid = fork();

	if (pid == 0) {
		KYMO_EVENT(modes, child_before);
		mode_dlopen(args);
		KYMO_EVENT(modes, child_after);
		_exit(0);
	}
	wait_for(pid);
	KYMO_EVENT(modes, parent_after);
	return 0;
}

static volatile sig_atomic_t n_signals;

static void on_alarm(int number)
{
	(void)number;
	KYMO_EVENT(modes, signal, (int)n_signals);
	n_signals++;
}

static int mode_signal(char **args)
{
	struct itimerval timer = {{0, 50}, {0, 50}};
	int n = atoi(args[0]), i;

	signal(SIGALRM, on_alarm);
	setitimer(ITIMER_REAL, &timer, NULL);
	/* Some signals at least, however quick we are. */
	for (i = 0; i < n || n_signals <= 10; i++)
		KYMO_EVENT(modes, main, i, "a string of 26 characters");
	signal(SIGALRM, SIG_IGN);
	printf("%d %d\n", i, (int)n_signals);
	return 0;
}

static void *thread(void *data)
{
	long n = (long)data;

	for (long i = 0; i < n; i++)
		KYMO_EVENT(modes, thread, i);
	return NULL;
}

static int mode_threads(char **args)
{
	int n = atoi(args[0]);
	pthread_t ids[64];

	for (int i = 0; i < n && i < 64; i++)
		check(pthread_create(&ids[i], NULL, thread, (void *)atol(args[1])) == 0, "thread");
	for (int i = 0; i < n && i < 64; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

static int is_over;

static void *endless(void *data)
{
	(void)data;
	for (unsigned long i = 0; !__atomic_load_n(&is_over, __ATOMIC_RELAXED); i++)
		KYMO_EVENT(modes, thread, i);
	return NULL;
}

/* Until its input ends. */
static int mode_endless(char **args)
{
	int n = atoi(args[0]);
	pthread_t ids[64];
	char c;

	for (int i = 0; i < n && i < 64; i++)
		check(pthread_create(&ids[i], NULL, endless, NULL) == 0, "thread");
	printf("ready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < n && i < 64; i++)
		pthread_join(ids[i], NULL);
	return 0;
}

/* Until it is killed, or its input ends. */
static int mode_loop(char **args)
{
	fd_set set;
	struct timeval zero = {0, 0};

	(void)args;
	printf("ready\n");
	fflush(stdout);
	for (unsigned long i = 0;; i++) {
		KYMO_EVENT(modes, loop, i);
		KYMO_EVENT_LEVEL(KYMO_DEBUG, modes, noise, i);
		if (i % 64)
			continue;
		FD_ZERO(&set);
		FD_SET(0, &set);
		if (select(1, &set, NULL, NULL, &zero) > 0)
			return 0;
	}
}

/* Only what a program that computes needs; anything else kills. */
static int mode_seccomp(char **args)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
	      "seccomp");
	for (int i = 0; i < atoi(args[0]); i++)
		KYMO_EVENT(modes, sandboxed, i);
	_exit(0);
}

/* More events than short headers have ids for. */
#define E(n) KYMO_EVENT(modes, many_##n, i)
#define E10(n)   \
	E(n##0); \
	E(n##1); \
	E(n##2); \
	E(n##3); \
	E(n##4); \
	E(n##5); \
	E(n##6); \
	E(n##7); \
	E(n##8); \
	E(n##9)

static int mode_many(char **args)
{
	for (int i = 0; i < atoi(args[0]); i++) {
		E10(0);
		E10(1);
		E10(2);
		E10(3);
		E10(4);
	}
	return 0;
}

/* Strings that end at the end of what may be read, and some that begin at its beginning. */
static int mode_edges(char **args)
{
	char *page = mmap(NULL, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)args;
	check(page != MAP_FAILED && mprotect(page + 4096, 4096, PROT_READ | PROT_WRITE) == 0,
	      "mmap");
	page += 4096;
	for (size_t length = 0; length < 1040; length += length == 40 ? 970 : 1) {
		char *text = page + 4096 - length - 1;

		for (size_t i = 0; i < length; i++)
			text[i] = (char)('a' + i % 26);
		text[length] = 0;
		KYMO_EVENT(modes, edge, length, text);
		memmove(page, text, length + 1);
		KYMO_EVENT(modes, edge, length, KYMO_AS(text, page), KYMO_AS(last, 7));
	}
	return 0;
}

static int mode_long(char **args)
{
	static char text[200000];
	int numbers[1000];

	(void)args;
	memset(text, 'x', sizeof(text) - 1);
	memset(numbers, 0, sizeof(numbers));
	KYMO_EVENT(modes, strings, text, KYMO_AS(b, text), KYMO_AS(c, text), KYMO_AS(d, text),
		   KYMO_AS(e, text), KYMO_AS(f, text), KYMO_AS(g, text), KYMO_AS(h, text),
		   KYMO_AS(i, text), KYMO_AS(j, text));
	KYMO_EVENT(modes, sequences, KYMO_TEXT(text, 20000), KYMO_SEQUENCE(numbers, 1000),
		   KYMO_BLOB(text, 300), KYMO_AS(last, 1));
	KYMO_EVENT(modes, too_long, KYMO_TEXT(text, sizeof(text)));
	KYMO_EVENT(modes, nothing, KYMO_TEXT((char *)NULL, 7), KYMO_SEQUENCE((int *)NULL, 3),
		   KYMO_ARRAY((int *)NULL, 2));
	return 0;
}

static uint64_t get_number(void *data)
{
	return ++*(uint64_t *)data;
}

static uint64_t get_text(void *data)
{
	return (uint64_t)(uintptr_t)data;
}

static uint64_t number = 40;
static char tenant[] = "acme";

/* Before the sessions are looked for: sessions that are joined later have the context. */
__attribute__((constructor(101))) static void add_contexts(void)
{
	check(kymo_app_context("web", "number", KYMO_APP_NUMBER, get_number, &number) == 0,
	      "context");
	check(kymo_app_context("web", "tenant", KYMO_APP_TEXT, get_text, tenant) == 0, "context");
	check(kymo_app_context("web", "bad name", KYMO_APP_TEXT, get_text, tenant) == -1,
	      "context");
}

static int mode_once(char **args)
{
	const char *off = kymo_trace_off();

	KYMO_EVENT(modes, once, KYMO_AS(arg, args[0] ? args[0] : ""));
	off = off ? off : kymo_trace_off();
	printf("%s\n", off ? off : "on");
	return 0;
}

/* An event, a system call, an event ... */
static int mode_steps(char **args)
{
	for (int i = 0; i < atoi(args[0]); i++) {
		KYMO_EVENT(modes, step, i);
		syscall(SYS_getppid);
	}
	KYMO_EVENT(modes, step, -1);
	return 0;
}

/* Closes all files, as daemons do, and goes on until it is killed. */
static int mode_closed_loop(char **args)
{
	(void)args;
	for (int fd = 3; fd < 1024; fd++)
		close(fd);
	for (;;) {
		KYMO_EVENT(modes, closed_loop);
		usleep(1000);
	}
	return 0;
}

/* Under a filter that allows everything, until it is killed. */
static int mode_sandbox(char **args)
{
	struct sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	(void)args;
	check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
		      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
	      "seccomp");
	for (;;) {
		KYMO_EVENT(modes, sandboxed_too);
		usleep(1000);
	}
	return 0;
}

/* A server: it stays root, its worker gives that up; until it is killed. */
static int mode_worker(char **args)
{
	pid_t worker = fork();

	(void)args;
	if (worker == 0) {
		check(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 &&
			      setresgid(65534, 65534, 65534) == 0 &&
			      setresuid(65534, 65534, 65534) == 0,
		      "worker");
		for (int n = 0;; n++) {
			KYMO_EVENT(modes, served, n);
			usleep(1000);
		}
	}
	for (int n = 0;; n++) {
		KYMO_EVENT(modes, watched, n);
		usleep(1000);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*run)(char **args);
	int n_args;
} modes[] = {
	{"fork", mode_fork, 0},
	{"exec", mode_exec, 1},
	{"numbers", mode_numbers, 2},
	{"rare", mode_rare, 1},
	{"colours", mode_colours, 0},
	{"daemon", mode_daemon, 0},
	{"setuid", mode_setuid, 1},
	{"dlopen", mode_dlopen, 2},
	{"cut", mode_cut, 0},
	{"load-plain", mode_load_plain, 1},
	{"fork-dlopen", mode_fork_dlopen, 2},
	{"reused-dlopen", mode_reused_dlopen, 2},
	{"signal", mode_signal, 1},
	{"threads", mode_threads, 2},
	{"loop", mode_loop, 0},
	{"seccomp", mode_seccomp, 1},
	{"many", mode_many, 1},
	{"long", mode_long, 0},
	{"edges", mode_edges, 0},
	{"once", mode_once, 0},
	{"endless", mode_endless, 1},
	{"steps", mode_steps, 1},
	{"sandbox", mode_sandbox, 0},
	{"closed-loop", mode_closed_loop, 0},
	{"worker", mode_worker, 0},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], modes[i].name) && argc >= 2 + modes[i].n_args)
			return modes[i].run(argv + 2);
	}
	fprintf(stderr, "usage: modes MODE [ARGS]\n");
	return 2;
}
