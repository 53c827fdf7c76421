/* SPDX-License-Identifier: MIT */
/* Problem: clients get no answer. The server closes none of its connections, until it may open no more files. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define N_CLIENTS 60
#define N_FILES	  32
#define N_FAILED  200

/* Clients that nobody accepts wait in the queue of the socket. */
static void call(const struct sockaddr_in *address)
{
	for (int i = 0; i < N_CLIENTS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		(void)connect(fd, (const struct sockaddr *)address, sizeof(*address));
		close(fd);
	}
}

static void serve(int listener)
{
	int failed = 0;

	while (failed < N_FAILED) {
		int fd = accept(listener, NULL, NULL);

		if (fd >= 0) {
			(void)!write(fd, "hello", 5);
			continue; /* the mistake: nobody closes it */
		}
		if (errno != EMFILE)
			return;
		failed++;
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

int main(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	struct rlimit limit = {N_FILES, N_FILES};
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 ||
	    bind(listener, (const struct sockaddr *)&address, size) < 0 ||
	    listen(listener, N_CLIENTS) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &size) < 0)
		return 1;
	if (fork() == 0) {
		close(listener);
		call(&address);
		return 0;
	}
	serve(listener);
	return 0;
}
