/* SPDX-License-Identifier: MIT */
/*
 * What a viewer sends to a relay, and the index of a recording that the relay shows. The first byte says whether the
 * beginning of the protocol comes before the input, whether the input begins with entries of the index, and whether the
 * recording is written meanwhile: then it has a further stream after the first half of the requests, and its end may come
 * before the last one. Whatever it is, the relay goes on.
 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/protocol/frame.h"
#include "net/viewer/viewer-client.h"
#include "os/file.h"
#include "store/read/index.h"

#define STREAM_BYTES 4096
#define STEPS_MAX    20000

enum {
	HAS_BEGIN = 1,	 /* of the protocol */
	HAS_INDEX = 2,	 /* its size in the second byte, in units of 8 bytes */
	IS_STRICT = 4,	 /* a viewer of LTTng's port */
	IS_LIVE = 8,	 /* a recorder writes the recording */
	GOES_AWAY = 16,	 /* the further stream is removed before the last request */
	LAST_BYTES = 24, /* of the last request, whose body has 8 */
};

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

static void remove_file(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/h/n/kernel/%s", dir, name);
	(void)unlink(path);
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

/* The recorder's lock; -1: nobody writes. */
static int begin_live(bool is_live)
{
	static const char live[] = "kymo-live 1\nuntil 1\n4096 channel0_0\n";
	char path[256];
	int fd;

	if (!is_live)
		return -1;
	snprintf(path, sizeof(path), "%s/h/n/kernel/index", dir);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) < 0)
		abort();
	write_file(".live", live, sizeof(live) - 1);
	return fd;
}

/* A further stream, of which the recorder tells. */
static void grow(void)
{
	static const char live[] = "kymo-live 1\nuntil 5\n4096 channel0_0\n4096 channel0_1\n";
	static uint8_t stream[STREAM_BYTES], index[16 + sizeof(struct ky_index_record)];
	const struct ky_index_head head = ky_index_head();
	const struct ky_index_record whole = {.packet_bits = htobe64(STREAM_BYTES * 8),
					      .content_bits = htobe64(STREAM_BYTES * 8),
					      .end_cycles = htobe64(5)};

	memcpy(index, &head, sizeof(head));
	memcpy(index + 16, &whole, sizeof(whole));
	write_file("channel0_1", stream, sizeof(stream));
	write_file("index/channel0_1.idx", index, sizeof(index));
	write_file(".live", live, sizeof(live) - 1);
}

static void end_live(int fd)
{
	remove_file(".live");
	remove_file("index/channel0_1.idx");
	remove_file("channel0_1");
	if (fd >= 0)
		close(fd);
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

/* The relay answers all of the input. False: it has ended the connection. */
static bool serve(struct ky_viewer_client *client, int peer, const uint8_t *input, size_t bytes,
		  int64_t *step)
{
	static uint8_t output[1 << 16];
	int ret = KY_VIEWER_WANTS_TURN;

	if (bytes && write(peer, input, bytes) != (ssize_t)bytes)
		abort();
	for (int i = 0; i < STEPS_MAX && ret; i++) {
		ret = ky_viewer_client_step(client, 1000000000 + (*step)++ * 100000000);
		(void)!recv(peer, output, sizeof(output), MSG_DONTWAIT);
		if (ret < 0)
			return false;
	}
	return true;
}

/* The input at once, or in three parts, between which the recording changes. Then the viewer has gone. */
static void serve_parts(struct ky_viewer_client *client, int peer, const uint8_t *input,
			size_t bytes, uint8_t flags, int64_t *step)
{
	size_t first = flags & IS_LIVE ? bytes / 2 : 0;
	size_t last = bytes - first > LAST_BYTES ? bytes - LAST_BYTES : bytes;

	if (!serve(client, peer, input, first, step))
		return;
	if (flags & IS_LIVE)
		grow();
	if (!serve(client, peer, input + first, last - first, step))
		return;
	if (flags & GOES_AWAY)
		end_live(-1);
	if (serve(client, peer, input + last, bytes - last, step) && shutdown(peer, SHUT_WR) == 0)
		(void)serve(client, peer, NULL, 0, step);
}

static struct ky_viewer_client *connect_viewer(struct ky_viewer_hub *hub, int fd, bool is_strict)
{
	struct ky_viewer_client *client;
	struct kymo_error err;
	struct ky_link *link;

	if (ky_link_new(fd, fd, &link, &err) < 0 ||
	    ky_viewer_client_new(hub, link, is_strict, KY_NET_DELAY_USUAL_MS, &client, &err) < 0)
		abort();
	return client;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t input[1 << 16];
	static struct ky_viewer_hub *hub;
	size_t bytes = 0, index_bytes = 0;
	struct ky_viewer_client *client;
	int fds[2], live_fd;
	int64_t step = 0;

	if (size < 2 || size > sizeof(input) / 2)
		return 0;
	if (!hub) {
		hub = calloc(1, sizeof(*hub));
		make_dir();
	}
	if (data[0] & HAS_INDEX)
		index_bytes = data[1] * 8u < size - 2 ? data[1] * 8u : size - 2;
	write_index(data + 2, index_bytes);
	live_fd = begin_live(data[0] & IS_LIVE);
	memset(hub, 0, sizeof(*hub));
	hub->list.dir = dir;
	if (data[0] & HAS_BEGIN)
		bytes = put_begin(hub, input);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		abort();
	client = connect_viewer(hub, fds[0], data[0] & IS_STRICT);
	if (serve(client, fds[1], input, bytes, &step))
		serve_parts(client, fds[1], data + 2 + index_bytes, size - 2 - index_bytes, data[0],
			    &step);
	end_live(live_fd);
	ky_viewer_hub_fini(hub);
	close(fds[1]);
	return 0;
}
