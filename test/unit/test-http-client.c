/* SPDX-License-Identifier: MIT */
/* When the client of a request waits no longer. */
#include "unit.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "view/http/http-server.h"

#define PATIENCE_MS 60000

/* Both ends of a connection of TCP on this machine. */
static void connect_ends(int *client, int *server)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(address);
	int port = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(port, (struct sockaddr *)&address, len), 0);
	assert_int_equal(listen(port, 1), 0);
	assert_int_equal(getsockname(port, (struct sockaddr *)&address, &len), 0);
	*client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*client, (struct sockaddr *)&address, len), 0);
	*server = accept4(port, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*server >= 0);
	close(port);
}

static void wait_for(int fd, short events)
{
	struct pollfd poller = {.fd = fd, .events = events};

	assert_int_equal(poll(&poller, 1, PATIENCE_MS), 1);
}

static void test_end(void **state)
{
	atomic_bool is_closing = false;

	(void)state;
	for (int sends = 0; sends < 2; sends++) {
		struct ky_http_client http = {.is_closing = &is_closing};
		int client;

		connect_ends(&client, &http.fd);
		assert_false(ky_http_client_is_over(&http));
		if (sends) {
			assert_int_equal(send(client, "x", 1, 0), 1);
			wait_for(http.fd, POLLIN);
			assert_false(ky_http_client_is_over(&http));
		}
		close(client);
		wait_for(http.fd, POLLRDHUP);
		assert_true(ky_http_client_is_over(&http));
		close(http.fd);
	}
}

static void test_end_of_the_server(void **state)
{
	atomic_bool is_closing = false;
	struct ky_http_client http = {.is_closing = &is_closing};
	int client;

	(void)state;
	connect_ends(&client, &http.fd);
	assert_false(ky_http_client_is_over(&http));
	is_closing = true;
	assert_true(ky_http_client_is_over(&http));
	close(client);
	close(http.fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_end_of_the_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
