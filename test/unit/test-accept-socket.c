/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/accept-socket.h"

#define PAUSE_NS UINT64_C(50000000)

static struct sockaddr_un any_name;
static socklen_t name_len;

static void open_port(struct ky_accept_socket *port)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const struct sockaddr_un name = {.sun_family = AF_UNIX};

	assert_true(fd >= 0);
	/* The kernel chooses a name. */
	assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof(name.sun_family)), 0);
	name_len = sizeof(any_name);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&any_name, &name_len), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(ky_accept_socket_open(port, fd, PAUSE_NS, NULL), 0);
}

static int new_client(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&any_name, name_len), 0);
	return fd;
}

static bool is_readable(const struct ky_accept_socket *port, int timeout_ms)
{
	struct pollfd wanted = {.fd = port->fd, .events = POLLIN};

	return poll(&wanted, 1, timeout_ms) == 1;
}

/* How many descriptors the process may have from now on: all that it has, and @more. */
static struct rlimit limit_descriptors(unsigned int more)
{
	struct rlimit before, now;
	int lowest = fcntl(0, F_DUPFD_CLOEXEC, 0);

	assert_true(lowest >= 0);
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = before;
	now.rlim_cur = (rlim_t)lowest + more;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	return before;
}

static int take_soon(struct ky_accept_socket *port)
{
	int fd;

	do {
		assert_true(is_readable(port, 10000));
		fd = ky_accept_socket_take(port);
	} while (fd == -EAGAIN);
	return fd;
}

static void test_connections(void **state)
{
	struct ky_accept_socket port;
	int clients[2], fd;

	(void)state;
	open_port(&port);
	assert_false(is_readable(&port, 0));
	assert_int_equal(ky_accept_socket_take(&port), -EAGAIN);
	clients[0] = new_client();
	clients[1] = new_client();
	for (int i = 0; i < 2; i++) {
		fd = take_soon(&port);
		assert_true(fd >= 0);
		assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
		close(fd);
		close(clients[i]);
	}
	assert_false(is_readable(&port, 0));
	ky_accept_socket_close(&port);
	ky_accept_socket_close(&port);
}

/* Without a descriptor, nothing wakes the server before the end of the pause; with one, it gets the connection. */
static void test_no_descriptors(void **state)
{
	struct ky_accept_socket port;
	int client, fd;

	(void)state;
	open_port(&port);
	client = new_client();
	for (int keeps_some = 0; keeps_some < 2; keeps_some++) {
		struct rlimit before = limit_descriptors(keeps_some ? 1 : 0);

		port.keeps_some = keeps_some != 0;
		fd = take_soon(&port);
		assert_int_equal(fd, -EMFILE);
		assert_true(ky_accept_socket_is_shortage(-fd));
		assert_true(port.pauses);
		assert_int_equal(ky_accept_socket_take(&port), -EAGAIN);
		/* After the pause, the same once more. */
		assert_int_equal(take_soon(&port), -EMFILE);
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	}
	fd = take_soon(&port);
	assert_true(fd >= 0);
	assert_false(port.pauses);
	close(fd);
	close(client);
	ky_accept_socket_close(&port);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_connections),
		cmocka_unit_test(test_no_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
