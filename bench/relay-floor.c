/* SPDX-License-Identifier: MIT */
/*
 * The least that a relay for LTTng's daemons can do, for bench-network: `relay-floor KIB PACKETS RATE FILE` sends PACKETS packets
 * of KIB KiB, RATE per second, as a consumer daemon sends them: head and content over one connection, an index over
 * another one, and it waits for the answer to that. The other process answers each index, and writes what has come after
 * 128 KiB to FILE, whose room it takes ahead. It knows nothing of packets and writes no index. Prints this process's CPU time per
 * byte, in ns.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HEAD_BYTES   32
#define INDEX_BYTES  104
#define READ_BYTES   (128u << 10)
#define WAKEUP_BYTES (256 << 10)
#define AHEAD_BYTES  (16 << 20)
#define TICK_NS	     10000000

static uint8_t buffer[256 << 10];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void write_all(int fd, const void *data, size_t bytes)
{
	for (size_t done = 0; done < bytes;) {
		ssize_t n = write(fd, (const uint8_t *)data + done, bytes - done);

		must(n > 0, "write");
		done += (size_t)n;
	}
}

static void connect_to(int pair[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int listening = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t length = sizeof(at);

	must(listening >= 0 && bind(listening, (struct sockaddr *)&at, length) == 0 &&
		     listen(listening, 1) == 0 &&
		     getsockname(listening, (struct sockaddr *)&at, &length) == 0,
	     "listen");
	pair[0] = socket(AF_INET, SOCK_STREAM, 0);
	must(connect(pair[0], (struct sockaddr *)&at, length) == 0, "connect");
	pair[1] = accept(listening, NULL, NULL);
	must(pair[1] >= 0, "accept");
	close(listening);
}

/* The daemon: the packets that are due by now, each millisecond. */
static void send_packets(int data_fd, int control_fd, size_t bytes, uint64_t packets, uint64_t rate)
{
	uint8_t answer[4];
	struct timespec next;
	uint64_t begin_ns, sent = 0;

	clock_gettime(CLOCK_MONOTONIC, &next);
	begin_ns = (uint64_t)next.tv_sec * 1000000000 + (uint64_t)next.tv_nsec;
	for (uint64_t tick = 1; sent < packets; tick++) {
		uint64_t at_ns = begin_ns + tick * TICK_NS,
			 due = tick * TICK_NS * rate / 1000000000;

		next = (struct timespec){(time_t)(at_ns / 1000000000), (long)(at_ns % 1000000000)};
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
		for (; sent < due && sent < packets; sent++) {
			write_all(data_fd, buffer, HEAD_BYTES);
			write_all(data_fd, buffer, bytes);
			write_all(control_fd, buffer, INDEX_BYTES);
			must(read(control_fd, answer, sizeof(answer)) > 0, "answer");
		}
	}
}

/* Returns false at the end of the connection. Reads until @want bytes have come, or until none are there. */
static int take_data(int fd, int file, off_t *at, size_t want)
{
	for (size_t got = 0; got < want;) {
		ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);

		if (n < 0 && errno == EAGAIN)
			return 1;
		must(n >= 0, "recv");
		if (n == 0)
			return 0;
		if (*at % AHEAD_BYTES + n > AHEAD_BYTES || !*at)
			(void)fallocate(file, FALLOC_FL_KEEP_SIZE, *at, AHEAD_BYTES * 2);
		must(pwrite(file, buffer, (size_t)n, *at) == n, "pwrite");
		*at += n;
		got += (size_t)n;
	}
	return 1;
}

static void receive(int data_fd, int control_fd, size_t bytes, int file)
{
	struct epoll_event events[4], event = {.events = EPOLLIN, .data.fd = control_fd};
	int epoll = epoll_create1(0), wakeup = WAKEUP_BYTES;
	size_t unread = 0;
	off_t at = 0;

	setsockopt(data_fd, SOL_SOCKET, SO_RCVLOWAT, &wakeup, sizeof(wakeup));
	must(epoll_ctl(epoll, EPOLL_CTL_ADD, control_fd, &event) == 0, "epoll_ctl");
	event.data.fd = data_fd;
	must(epoll_ctl(epoll, EPOLL_CTL_ADD, data_fd, &event) == 0, "epoll_ctl");
	for (;;) {
		int n = epoll_wait(epoll, events, 4, -1);

		for (int i = 0; i < n; i++) {
			if (events[i].data.fd == data_fd) {
				if (!take_data(data_fd, file, &at, 1))
					return;
				continue;
			}
			if (read(control_fd, buffer, sizeof(buffer)) <= 0) {
				while (take_data(data_fd, file, &at, SIZE_MAX))
					;
				return;
			}
			must(send(control_fd, buffer, 4, MSG_NOSIGNAL) == 4, "send");
			unread += bytes;
			if (unread >= READ_BYTES) {
				(void)take_data(data_fd, file, &at, unread);
				unread = 0;
			}
		}
	}
}

int main(int argc, char **argv)
{
	int data[2], control[2], file;
	struct rusage usage;
	uint64_t packets;
	size_t bytes;
	double ns;

	must(argc == 5, "usage: relay-floor KIB PACKETS RATE FILE");
	bytes = strtoul(argv[1], NULL, 10) << 10;
	must(bytes && bytes <= sizeof(buffer), "KIB");
	packets = strtoull(argv[2], NULL, 10);
	connect_to(data);
	connect_to(control);
	if (fork() == 0) {
		close(data[1]);
		close(control[1]);
		send_packets(data[0], control[0], bytes, packets, strtoull(argv[3], NULL, 10));
		_exit(0);
	}
	close(data[0]);
	close(control[0]);
	file = open(argv[4], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	must(file >= 0, argv[4]);
	receive(data[1], control[1], bytes, file);
	getrusage(RUSAGE_SELF, &usage);
	(void)wait(NULL);
	ns = ((double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec) * 1e9 +
	     ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) * 1e3;
	printf("%.3f\n", ns / (double)(packets * bytes));
	return 0;
}
