/* SPDX-License-Identifier: MIT */
/* The state model's events of TCP: which connection a socket has, data that came, data that was sent. */
#include "analysis/state/model-internal.h"

#include <string.h>

#define TCP_FAMILY_V4 2
#define TCP_PROTOCOL  6
/* Where addresses lie in struct sockaddr_in and struct sockaddr_in6. */
#define TCP_V4_AT 4
#define TCP_V6_AT 8

/* An address as sockets have it. */
static bool model_tcp_sockaddr(const struct ky_event *event, const struct ky_handle *array, bool v4,
			       uint8_t *address)
{
	if (!v4)
		return ky_get_array_bytes(event, array, TCP_V6_AT, address, 16);
	memset(address, 0, 10);
	memset(address + 10, 0xff, 2);
	return ky_get_array_bytes(event, array, TCP_V4_AT, address + 12, 4);
}

static int model_tcp_tell(struct ky_feed *feed, const struct ky_event *event,
			  const struct ky_class_info *info, struct ky_tcp_seen *seen)
{
	seen->host = feed->host;
	seen->cpu = feed->cpu;
	seen->thread = ky_feed_thread(feed, event, info);
	seen->ns = event->ns;
	seen->begin_ns = event->ns;
	if (seen->kind == KY_TCP_SENT && seen->thread && seen->thread->syscall.id != KY_NO_SYSCALL)
		seen->begin_ns = seen->thread->syscall.begin_ns;
	return ky_model_notify(feed->model, tcp, seen);
}

static void model_tcp_ends(const struct ky_event *event, const struct ky_class_info *info,
			   struct ky_tcp_seen *seen)
{
	const struct ky_handle *fields = info->fields;

	seen->pair.local_port = (uint16_t)ky_get_u64(event, &fields[KY_TCP_PROBE_LOCAL_PORT], 0);
	seen->pair.remote_port = (uint16_t)ky_get_u64(event, &fields[KY_TCP_PROBE_REMOTE_PORT], 0);
	seen->socket = ky_get_u64(event, &fields[KY_TCP_PROBE_SOCKET], 0);
}

int ky_on_tcp_probe(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	const struct ky_handle *fields = info->fields;
	bool v4 = ky_get_u64(event, &fields[KY_TCP_PROBE_FAMILY], 0) == TCP_FAMILY_V4;
	struct ky_tcp_seen seen = {.kind = KY_TCP_SOCKET};

	if (ky_get_u64(event, &fields[KY_TCP_PROBE_BYTES], 0))
		seen.kind = KY_TCP_RECEIVED;
	model_tcp_ends(event, info, &seen);
	if (!model_tcp_sockaddr(event, &fields[KY_TCP_PROBE_LOCAL], v4, seen.pair.local) ||
	    !model_tcp_sockaddr(event, &fields[KY_TCP_PROBE_REMOTE], v4, seen.pair.remote))
		return 0;
	return model_tcp_tell(feed, event, info, &seen);
}

int ky_on_tcp_socket(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info)
{
	const struct ky_handle *fields = info->fields;
	struct ky_tcp_seen seen = {.kind = KY_TCP_SOCKET};

	model_tcp_ends(event, info, &seen);
	/* A socket that listens, or one that is not yet connected. */
	if (!seen.pair.local_port || !seen.pair.remote_port ||
	    !ky_get_array_bytes(event, &fields[KY_TCP_PROBE_LOCAL], 0, seen.pair.local, 16) ||
	    !ky_get_array_bytes(event, &fields[KY_TCP_PROBE_REMOTE], 0, seen.pair.remote, 16))
		return 0;
	return model_tcp_tell(feed, event, info, &seen);
}

int ky_on_sock_sent(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info)
{
	const struct ky_handle *fields = info->fields;
	struct ky_tcp_seen seen = {.kind = KY_TCP_SENT};

	seen.socket = ky_get_u64(event, &fields[KY_SOCK_SENT_SOCKET], 0);
	if (ky_get_u64(event, &fields[KY_SOCK_SENT_PROTOCOL], 0) != TCP_PROTOCOL ||
	    ky_get_i64(event, &fields[KY_SOCK_SENT_RET], 0) <= 0)
		return 0;
	return model_tcp_tell(feed, event, info, &seen);
}
