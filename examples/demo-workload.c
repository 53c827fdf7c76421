/* SPDX-License-Identifier: MIT */
/*
 * demo-workload [SECONDS]: a small real load to trace, for `make demo` and the tests.
 *
 * Five processes work side by side: one starts processes, one writes and fsyncs a file,
 * two talk over loopback TCP, one has threads that fight for a lock, one computes in
 * bursts. Each prints how much it did, so that a trace can be compared with it. Where loopback is
 * down, nobody talks, and a line says so.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int64_t deadline_ns;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static bool time_left(void)
{
	return now_ns() < deadline_ns;
}

static void pause_us(long us)
{
	struct timespec pause = {0, us * 1000};

	nanosleep(&pause, NULL);
}

static void spin_us(int64_t us)
{
	int64_t end_ns = now_ns() + us * 1000;

	while (now_ns() < end_ns)
		;
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "demo-workload: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void start_processes(void)
{
	int count = 0;

	for (; time_left(); count++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid == 0) {
			execl("/bin/true", "true", (char *)NULL);
			_exit(127);
		}
		waitpid(pid, NULL, 0);
		pause_us(10000);
	}
	printf("  %d processes started\n", count);
}

static void write_disk(void)
{
	char path[] = "demo-workload.XXXXXX", block[64 * 1024];
	int fd = mkstemp(path), count = 0;

	if (fd < 0)
		die(path);
	unlink(path);
	memset(block, 'x', sizeof(block));
	for (; time_left(); count++) {
		if (pwrite(fd, block, sizeof(block), (off_t)(count % 64) * (off_t)sizeof(block)) <
		    0)
			die("write");
		if (fsync(fd) < 0)
			die("fsync");
		pause_us(5000);
	}
	close(fd);
	printf("  %d blocks of 64 KiB written and synced\n", count);
}

/* Nobody waits for longer: a peer that has died, or an interface that goes down, ends the talk. */
static int open_socket(void)
{
	const struct timeval patience = {.tv_sec = 10};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	return fd;
}

static int connect_to(const struct sockaddr_in *address)
{
	int fd = open_socket();

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int open_listener(struct sockaddr_in *address)
{
	socklen_t len = sizeof(*address);
	int fd = open_socket();

	memset(address, 0, sizeof(*address));
	address->sin_family = AF_INET;
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd >= 0 && bind(fd, (struct sockaddr *)address, len) == 0 && listen(fd, 1) == 0 &&
	    getsockname(fd, (struct sockaddr *)address, &len) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* Whether one can talk over it is tried first: in a network namespace of its own, loopback may be down. */
static int listen_on_loopback(struct sockaddr_in *address)
{
	int listener = open_listener(address);
	int client = listener < 0 ? -1 : connect_to(address);
	int server = client < 0 ? -1 : accept(listener, NULL, NULL);

	if (server >= 0) {
		close(server);
		close(client);
		return listener;
	}
	printf("  no messages over TCP: 127.0.0.1 cannot be reached (%s)\n", strerror(errno));
	if (client >= 0)
		close(client);
	if (listener >= 0)
		close(listener);
	return -1;
}

static void echo(int listener)
{
	char data[4096];
	ssize_t got;
	int fd = accept(listener, NULL, NULL);

	while (fd >= 0 && (got = recv(fd, data, sizeof(data), 0)) > 0) {
		if (send(fd, data, (size_t)got, MSG_NOSIGNAL) < 0)
			break;
	}
}

static void talk(const struct sockaddr_in *address)
{
	char data[1024] = "ping";
	int fd = connect_to(address), count = 0;

	if (fd < 0)
		die("connect to 127.0.0.1");
	for (; time_left(); count++) {
		if (send(fd, data, sizeof(data), MSG_NOSIGNAL) < 0 ||
		    recv(fd, data, sizeof(data), MSG_WAITALL) <= 0)
			die("loopback");
		pause_us(1000);
	}
	close(fd);
	printf("  %d messages of 1 KiB sent over loopback TCP and back\n", count);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *fight(void *data)
{
	int *count = data;

	for (; time_left(); ++*count) {
		pthread_mutex_lock(&lock);
		spin_us(200);
		pthread_mutex_unlock(&lock);
		pause_us(500);
	}
	return NULL;
}

static void fight_for_a_lock(void)
{
	int counts[4] = {0}, total = 0;
	pthread_t threads[4];

	for (int i = 0; i < 4; i++) {
		if (pthread_create(&threads[i], NULL, fight, &counts[i]) != 0)
			die("pthread_create");
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		total += counts[i];
	}
	printf("  %d times a contended lock was taken by one of 4 threads\n", total);
}

static void compute(void)
{
	int count = 0;

	for (; time_left(); count++) {
		spin_us(4000);
		pause_us(16000);
	}
	printf("  %d bursts of 4 ms computed\n", count);
}

/* Run @work in a process that `ps` and the trace call @name. */
#define IN_PROCESS(name, work)                      \
	do {                                        \
		pid_t child_ = fork();              \
                                                    \
		if (child_ < 0)                     \
			die("fork");                \
		if (child_ == 0) {                  \
			prctl(PR_SET_NAME, (name)); \
			work;                       \
			exit(0);                    \
		}                                   \
	} while (0)

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 3;
	struct sockaddr_in address;
	int listener, status, failed = 0;

	if (seconds <= 0 || seconds > 3600) {
		fputs("usage: demo-workload [SECONDS]\n", stderr);
		return 2;
	}
	deadline_ns = now_ns() + (int64_t)(seconds * 1e9);
	listener = listen_on_loopback(&address);
	fflush(stdout); /* or each process would print it */
	if (listener >= 0) {
		IN_PROCESS("demo-server", echo(listener));
		close(listener);
		IN_PROCESS("demo-client", talk(&address));
	}
	IN_PROCESS("demo-spawn", start_processes());
	IN_PROCESS("demo-disk", write_disk());
	IN_PROCESS("demo-lock", fight_for_a_lock());
	IN_PROCESS("demo-compute", compute());
	while (wait(&status) > 0)
		failed |= status;
	return failed != 0;
}
