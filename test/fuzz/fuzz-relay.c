/* SPDX-License-Identifier: MIT */
/*
 * What a recorder sends to a relay. The first byte says in which pieces it comes, and whether a greeting and a trace
 * come before it, so that inputs need not find these. Whatever it is, the relay goes on.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/protocol/frame.h"
#include "net/relay/relay.h"
#include "os/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t put(uint8_t *to, uint32_t type, uint32_t trace, const void *payload, size_t bytes)
{
	const struct ky_frame frame = {type, trace, 0, bytes};

	ky_frame_put(&frame, to);
	memcpy(to + KY_FRAME_HEAD_BYTES, payload, bytes);
	return KY_FRAME_HEAD_BYTES + bytes;
}

static size_t put_begin(uint8_t *to)
{
	uint8_t hello[sizeof(struct ky_net_hello) + 2] = KY_NET_MAGIC "\1";
	size_t at;

	hello[34] = hello[36] = 1; /* bytes of the host and of the name */
	hello[40] = 'h';
	hello[41] = 'n';
	at = put(to, KY_FRAME_HELLO, 0, hello, sizeof(hello));
	at += put(to + at, KY_FRAME_OPEN, 1, "\0\0\0\0kernel", 10);
	return at + put(to + at, KY_FRAME_STREAM, 1, "\0\0\0\0\0\0\0\0a", 9);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t input[1 << 18];
	char dir[] = "/dev/shm/fuzz-relay.XXXXXX";
	const struct ky_relay_options options = {.dir = dir, .quota_bytes = 64 << 20};
	struct kymo_error err;
	struct ky_relay *relay;
	struct ky_loop *loop;
	size_t bytes = 0;
	int fds[2];

	if (!size || size > sizeof(input) / 2)
		return 0;
	if (data[0] & 1)
		bytes = put_begin(input);
	memcpy(input + bytes, data + 1, size - 1);
	bytes += size - 1;
	if (!mkdtemp(dir) || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ||
	    ky_loop_new(&loop, &err) < 0 || ky_relay_open(&options, loop, &relay, &err) < 0)
		abort();
	/* The socket takes this much without a reader. */
	if (write(fds[1], input, bytes) < 0 || shutdown(fds[1], SHUT_WR) < 0 ||
	    ky_relay_serve(relay, fds[0], fds[0], &err) < 0 || ky_loop_run(loop, &err) < 0)
		abort();
	ky_relay_close(relay);
	ky_loop_free(loop);
	close(fds[1]);
	ky_tree_remove(dir);
	return 0;
}
