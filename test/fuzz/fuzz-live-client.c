/* SPDX-License-Identifier: MIT */
/*
 * What a relay sends to a reader. The first byte says whether the reader is one of Kymo's relay, and whether the recording is
 * followed. Bytes that are missing are a closed connection. Whatever it is, opening ends, and reading what came is safe.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flow/graph/flow.h"
#include "net/reader/live-feed.h"
#include "store/read/follow.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROUNDS_MAX 64

static void read_all(const struct ky_trace_set *set)
{
	struct kymo_error err;
	struct ky_batch batch;
	struct ky_flow *flow;

	if (ky_flow_open_set(set, &flow, &err) < 0)
		return;
	while (ky_flow_next(flow, &batch, &err) > 0)
		;
	ky_flow_close(flow);
}

static void open_set(struct ky_feed *feed)
{
	const struct ky_trace_at_feed at = {"net://fuzz", feed};
	const struct ky_trace_options options = {
		.follow = feed->is_live, .feeds = &at, .n_feeds = 1};
	struct ky_trace_set set;
	struct kymo_error err;

	if (ky_trace_set_open_with(&set, &at.path, 1, &options, NULL, &err) < 0)
		return;
	read_all(&set);
	ky_trace_set_close(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ky_live_address address = {.machine = "h", .name = "s"};
	struct ky_live_client_options options = {.is_kymo = false};
	struct ky_live_client *client;
	struct ky_feed *feed = NULL;
	struct kymo_error err;
	int fds[2], bytes = 1 << 20;

	if (!size || size > 1 << 17 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return 0;
	options.is_kymo = data[0] & 1;
	/* The sockets take all of it, and all requests, without a reader. */
	(void)setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fds[1], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	if (write(fds[1], data + 1, size - 1) < 0 || shutdown(fds[1], SHUT_WR) < 0)
		abort();
	if (ky_live_client_begin(fds[0], &options, &client, &err) == 0)
		(void)ky_live_feed_open(
			client, &address,
			&(struct ky_live_feed_options){.is_live = data[0] & 2,
						       .keeps = data[0] & 4,
						       .space_bytes = data[0] & 8 ? 65536 : 0},
			&feed, &err);
	for (int i = 0; feed && i < ROUNDS_MAX && !feed->has_ended; i++)
		ky_feed_wait(feed, 0);
	if (feed)
		open_set(feed);
	ky_feed_free(feed);
	close(fds[1]);
	return 0;
}
