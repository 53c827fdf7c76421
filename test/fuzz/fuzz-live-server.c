/* SPDX-License-Identifier: MIT */
/*
 * What a viewer sends to a relay, and the index of a recording that the relay shows. The first byte says whether the
 * beginning of the protocol comes before the input, and whether the input begins with entries of the index. Whatever it
 * is, the relay goes on.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/protocol/frame.h"
#include "net/viewer/viewer-client.h"
#include "os/file.h"
#include "store/index.h"

#define STREAM_BYTES 4096
#define STEPS_MAX    20000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char dir[] = "/dev/shm/fuzz-live-server.XXXXXX";

static void write_file(const char *name, const void *data, size_t size)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/h/n/kernel/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

static void remove_dir(void)
{
	ky_tree_remove(dir);
}

static void make_dir(void)
{
	static const char *const parts[] = {"", "/h", "/h/n", "/h/n/kernel", "/h/n/kernel/index"};
	static uint8_t stream[STREAM_BYTES];
	char path[256];

	if (!mkdtemp(dir))
		abort();
	atexit(remove_dir);
	for (size_t i = 1; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", dir, parts[i]);
		if (mkdir(path, 0700) < 0)
			abort();
	}
	write_file("metadata", "/* CTF 1.8 */", 13);
	write_file("channel0_0", stream, sizeof(stream));
	(void)signal(SIGPIPE, SIG_IGN);
}

static void write_index(const uint8_t *data, size_t size)
{
	static uint8_t index[16 + 8 * sizeof(struct ky_index_record)];
	const struct ky_index_head head = ky_index_head();
	const struct ky_index_record whole = {.packet_bits = htobe64(STREAM_BYTES * 8),
					      .content_bits = htobe64(STREAM_BYTES * 8)};

	size = size < sizeof(index) - 16 ? size : sizeof(index) - 16;
	memcpy(index, &head, sizeof(head));
	if (size)
		memcpy(index + 16, data, size);
	else
		memcpy(index + 16, &whole, size = sizeof(whole));
	write_file("index/channel0_0.idx", index, 16 + size);
}

static size_t put(uint8_t *to, uint32_t command, const void *body, size_t bytes)
{
	const struct ky_viewer_head head = {htobe64(bytes), htobe32(command), 0};

	memcpy(to, &head, sizeof(head));
	memcpy(to + sizeof(head), body, bytes);
	return sizeof(head) + bytes;
}

static size_t put_begin(struct ky_viewer_hub *hub, uint8_t *to)
{
	const struct ky_viewer_connect connect = {0, htobe32(2), htobe32(4), htobe32(1)};
	struct ky_viewer_attach attach = {.seek = htobe32(KY_VIEWER_SEEK_BEGIN)};
	size_t at = put(to, KY_VIEWER_CONNECT, &connect, sizeof(connect));

	ky_viewer_list_look(&hub->list, 1, NULL, NULL);
	if (hub->list.entries.len)
		attach.session = htobe64(hub->list.entries.data[0].id);
	at += put(to + at, KY_VIEWER_CREATE_SESSION, "", 0);
	return at + put(to + at, KY_VIEWER_ATTACH, &attach, sizeof(attach));
}

static void serve(struct ky_viewer_hub *hub, int fd, bool is_strict, int peer)
{
	static uint8_t output[1 << 16];
	struct ky_viewer_client *client;
	struct kymo_error err;
	struct ky_link *link;

	if (ky_link_new(fd, fd, &link, &err) < 0 ||
	    ky_viewer_client_new(hub, link, is_strict, KY_NET_DELAY_USUAL_MS, &client, &err) < 0)
		abort();
	for (int64_t i = 0; i < STEPS_MAX; i++) {
		if (ky_viewer_client_step(client, 1000000000 + i * 100000000) < 0)
			break;
		(void)!recv(peer, output, sizeof(output), MSG_DONTWAIT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t input[1 << 16];
	static struct ky_viewer_hub *hub;
	size_t bytes = 0, index_bytes = 0;
	int fds[2];

	if (size < 2 || size > sizeof(input) / 2)
		return 0;
	if (!hub) {
		hub = calloc(1, sizeof(*hub));
		make_dir();
	}
	if (data[0] & 2)
		index_bytes = data[1] * 8u < size - 2 ? data[1] * 8u : size - 2;
	write_index(data + 2, index_bytes);
	memset(hub, 0, sizeof(*hub));
	hub->list.dir = dir;
	if (data[0] & 1)
		bytes = put_begin(hub, input);
	memcpy(input + bytes, data + 2 + index_bytes, size - 2 - index_bytes);
	bytes += size - 2 - index_bytes;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ||
	    write(fds[1], input, bytes) != (ssize_t)bytes || shutdown(fds[1], SHUT_WR) < 0)
		abort();
	serve(hub, fds[0], data[0] & 4, fds[1]);
	ky_viewer_hub_fini(hub);
	close(fds[1]);
	return 0;
}
