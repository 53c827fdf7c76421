/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/link/link.h"
#include "net/viewer/viewer-client.h"
#include "os/file.h"
#include "store/directory/index-record.h"

#define STREAMS (KY_VIEWER_CURSORS_OWN + 1)

static char dir[] = "/tmp/test-viewer-room.XXXXXX";

static void write_file(const char *name, const void *data, size_t bytes)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/h/n/kernel/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, bytes), bytes);
	close(fd);
}

/* A recording with more streams than a viewer has in any case. */
static int make_recording(void **state)
{
	static const char *const parts[] = {"/h", "/h/n", "/h/n/kernel", "/h/n/kernel/index"};
	struct {
		struct ky_index_head head;
		struct ky_index_record record;
	} index = {ky_index_head(),
		   {.packet_bits = htobe64(32768), .content_bits = htobe64(32768)}};
	char path[256];

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, parts[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	write_file("metadata", "/* CTF 1.8 */", 13);
	for (unsigned int i = 0; i < STREAMS; i++) {
		snprintf(path, sizeof(path), "index/s%u.idx", i);
		write_file(path, &index, sizeof(index));
	}
	return 0;
}

static int remove_recording(void **state)
{
	(void)state;
	ky_tree_remove(dir);
	return 0;
}

static void send_request(int fd, uint32_t command, const void *body, size_t bytes)
{
	const struct ky_viewer_head head = {htobe64(bytes), htobe32(command), 0};

	assert_int_equal(write(fd, &head, sizeof(head)), sizeof(head));
	assert_int_equal(write(fd, body, bytes), bytes);
}

/* Steps until the answer has come; no more of it than that. */
static void take(struct ky_viewer_client *client, int fd, void *to, size_t bytes)
{
	int64_t now = 1000000000;

	for (int i = 0; i < 1000; i++, now += 100000000) {
		assert_true(ky_viewer_client_step(client, now) >= 0);
		if (recv(fd, to, bytes, MSG_DONTWAIT | MSG_PEEK) == (ssize_t)bytes)
			break;
	}
	assert_int_equal(recv(fd, to, bytes, MSG_DONTWAIT), bytes);
}

/* The status of an attachment, where viewers follow @n streams. */
static uint32_t attach(size_t n)
{
	const struct ky_viewer_connect connect = {0, htobe32(2), htobe32(4), htobe32(1)};
	struct ky_viewer_attach request = {.seek = htobe32(KY_VIEWER_SEEK_BEGIN)};
	struct ky_viewer_hub hub = {.list = {.dir = dir}, .n_cursors = n};
	struct ky_viewer_connect connected;
	struct ky_viewer_client *client;
	struct ky_viewer_streams answer;
	struct ky_link *link;
	uint32_t created;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	assert_int_equal(ky_link_new(fds[0], fds[0], &link, NULL), KYMO_OK);
	assert_int_equal(ky_viewer_client_new(&hub, link, false, 250, &client, NULL), KYMO_OK);
	send_request(fds[1], KY_VIEWER_CONNECT, &connect, sizeof(connect));
	take(client, fds[1], &connected, sizeof(connected));
	send_request(fds[1], KY_VIEWER_CREATE_SESSION, "", 0);
	take(client, fds[1], &created, sizeof(created));
	ky_viewer_list_look(&hub.list, 1, NULL, NULL);
	assert_int_equal(hub.list.entries.len, 1);
	request.session = htobe64(hub.list.entries.data[0].id);
	send_request(fds[1], KY_VIEWER_ATTACH, &request, sizeof(request));
	take(client, fds[1], &answer, sizeof(answer));
	assert_true(hub.n_cursors == n || hub.n_cursors == n + STREAMS + 1);
	close(fds[1]);
	ky_viewer_hub_fini(&hub);
	assert_int_equal(hub.n_cursors, n);
	return be32toh(answer.status);
}

static void test_streams_of_all_viewers(void **state)
{
	(void)state;
	assert_int_equal(attach(0), KY_VIEWER_ATTACH_OK);
	assert_int_equal(attach(KY_VIEWER_CURSORS_ALL - STREAMS - 1), KY_VIEWER_ATTACH_OK);
	assert_int_equal(attach(KY_VIEWER_CURSORS_ALL - STREAMS), KY_VIEWER_ATTACH_NO_SESSION);
	assert_int_equal(attach(KY_VIEWER_CURSORS_ALL + 1), KY_VIEWER_ATTACH_NO_SESSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams_of_all_viewers),
	};

	return cmocka_run_group_tests(tests, make_recording, remove_recording);
}
