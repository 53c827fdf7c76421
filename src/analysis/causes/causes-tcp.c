/* SPDX-License-Identifier: MIT */
/*
 * Causes: who sent the data that ended a wait, of the same host or another one. The receiver's events name the
 * connection for which data came; the sender's events name the socket that a thread sent on, and the connection of the
 * socket. The last send before the data came counts.
 */
#include "analysis/causes/causes-internal.h"

#include <string.h>

#include "store/read/sync-file.h"

static uint64_t causes_tcp_mix(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *from = bytes;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ from[i]) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t causes_tcp_hash(const struct ky_tcp_pair *pair)
{
	uint64_t hash = causes_tcp_mix(UINT64_C(0xcbf29ce484222325), pair->local, 16);

	hash = causes_tcp_mix(hash, pair->remote, 16);
	hash = causes_tcp_mix(hash, &pair->local_port, 2);
	return causes_tcp_mix(hash, &pair->remote_port, 2);
}

static bool causes_tcp_are_one(const struct ky_tcp_pair *a, const struct ky_tcp_pair *b)
{
	return a->local_port == b->local_port && a->remote_port == b->remote_port &&
	       memcmp(a->local, b->local, 16) == 0 && memcmp(a->remote, b->remote, 16) == 0;
}

/* The place of the connection, + 1; 0: it was not seen. */
static uint32_t causes_tcp_find(const struct ky_tcp *tcp, const struct ky_tcp_pair *pair)
{
	uintptr_t i = (uintptr_t)ky_map_get(&tcp->by_pair, causes_tcp_hash(pair));

	while (i && !causes_tcp_are_one(&tcp->links.data[i - 1].pair, pair))
		i = tcp->links.data[i - 1].next;
	return (uint32_t)i;
}

/* The same; made when it is new. 0: out of memory. */
static uint32_t causes_tcp_link(struct ky_tcp *tcp, const struct ky_tcp_pair *pair)
{
	uint64_t hash = causes_tcp_hash(pair);
	uint32_t found = causes_tcp_find(tcp, pair);
	struct ky_tcp_link link = {.pair = *pair};

	if (found)
		return found;
	link.next = (uint32_t)(uintptr_t)ky_map_get(&tcp->by_pair, hash);
	if (tcp->links.len == UINT32_MAX || ky_vec_push(&tcp->links, link) < 0 ||
	    ky_map_set(&tcp->by_pair, hash, (void *)(uintptr_t)tcp->links.len) < 0)
		return 0;
	return (uint32_t)tcp->links.len;
}

/* Kernel addresses differ in their low 48 bits. The place + 1; made when it is new. 0: out of memory. */
static uint32_t causes_tcp_socket(struct ky_tcp *tcp, const struct ky_tcp_seen *seen)
{
	uint64_t key = seen->socket << 16 | (seen->host->index & 0xffff);
	uintptr_t found = (uintptr_t)ky_map_get(&tcp->by_socket, key);

	if (found)
		return (uint32_t)found;
	if (tcp->sockets.len == UINT32_MAX ||
	    ky_vec_push(&tcp->sockets, (struct ky_tcp_socket){.link = 0}) < 0 ||
	    ky_map_set(&tcp->by_socket, key, (void *)(uintptr_t)tcp->sockets.len) < 0)
		return 0;
	return (uint32_t)tcp->sockets.len;
}

/* From now on, @socket has connection @link. What it sent before, since its last connection ended, counts for it as well. */
static int causes_tcp_connect(struct ky_tcp *tcp, uint32_t socket, uint32_t link)
{
	struct ky_tcp_socket *it = &tcp->sockets.data[socket - 1];
	size_t first = it->sends.len;

	if (it->link == link)
		return 0;
	if (!it->link)
		first = 0;
	it->link = link;
	return ky_vec_push(&tcp->links.data[link - 1].ends, (struct ky_tcp_end){socket, first});
}

int ky_tcp_record(struct ky_tcp *tcp, const struct ky_tcp_seen *seen)
{
	uint32_t socket = seen->socket ? causes_tcp_socket(tcp, seen) : 0;
	uint32_t link = 0;

	if (seen->socket && !socket)
		return KYMO_E_MEMORY;
	if (seen->kind == KY_TCP_SENT) {
		struct ky_tcp_send send = {seen->begin_ns, seen->ns, seen->thread};

		return socket && seen->thread
			       ? ky_vec_push(&tcp->sockets.data[socket - 1].sends, send)
			       : 0;
	}
	link = causes_tcp_link(tcp, &seen->pair);
	if (!link || (socket && causes_tcp_connect(tcp, socket, link) < 0))
		return KYMO_E_MEMORY;
	if (seen->kind != KY_TCP_RECEIVED)
		return 0;
	return ky_vec_push(&tcp->receipts, (struct ky_tcp_receipt){seen->ns, link, seen->cpu});
}

void ky_tcp_fini(struct ky_tcp *tcp)
{
	ky_vec_foreach(&tcp->links, link)
		ky_vec_fini(&link->ends);
	ky_vec_foreach(&tcp->sockets, socket)
		ky_vec_fini(&socket->sends);
	ky_vec_fini(&tcp->links);
	ky_vec_fini(&tcp->sockets);
	ky_vec_fini(&tcp->receipts);
	ky_map_fini(&tcp->by_pair);
	ky_map_fini(&tcp->by_socket);
}

/* ---- after the pass -------------------------------------------------------------------- */

/* How far the clocks of two hosts may be apart at @ns, as `kymo sync` knows. */
static int64_t causes_tcp_slack(const struct ky_host *a, const struct ky_host *b, int64_t ns)
{
	uint64_t slack = a == b ? 0
				: ky_sync_bound_after(a->trace->sync, ns) +
					  ky_sync_bound_after(b->trace->sync, ns);

	return slack > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)slack;
}

/*
 * The last send at an end that began before @ns, by the clock of @host. By the clocks of two hosts, a send may come after its receipt: then the
 * one that is near counts, unless one before is as near. NULL: none.
 */
static const struct ky_tcp_send *causes_tcp_last(const struct ky_tcp *tcp,
						 const struct ky_tcp_end *end,
						 const struct ky_host *host, int64_t ns)
{
	const struct ky_tcp_socket *socket = &tcp->sockets.data[end->socket - 1];
	const struct ky_tcp_send *sends = socket->sends.data;
	size_t i = ky_causes_find(&socket->sends, end_ns, ns);
	int64_t slack;

	/* The data may come while the call is not yet over. */
	if (i < socket->sends.len && sends[i].begin_ns <= ns)
		i++;
	if (i < socket->sends.len && i >= end->first) {
		slack = causes_tcp_slack(host, sends[i].thread->host, ns);
		if (sends[i].begin_ns - ns <= slack &&
		    (i == end->first || ns - sends[i - 1].begin_ns > slack))
			i++;
	}
	return i > end->first ? &sends[i - 1] : NULL;
}

/* The connection as the other side sees it, + 1; 0: it was not seen. */
static uint32_t causes_tcp_peer(const struct ky_tcp *tcp, uint32_t link)
{
	const struct ky_tcp_pair *pair = &tcp->links.data[link - 1].pair;
	struct ky_tcp_pair peer = {.local_port = pair->remote_port,
				   .remote_port = pair->local_port};

	memcpy(peer.local, pair->remote, 16);
	memcpy(peer.remote, pair->local, 16);
	return causes_tcp_find(tcp, &peer);
}

const struct ky_tcp_send *ky_tcp_sender(const struct ky_causes *causes, const struct ky_cpu *cpu,
					int64_t begin_ns, int64_t ns)
{
	const struct ky_tcp *tcp = &causes->tcp;
	size_t i = ky_causes_find(&tcp->receipts, ns, ns);
	const struct ky_tcp_send *last = NULL;
	uint32_t peer;

	while (i > 0 && tcp->receipts.data[i - 1].ns >= begin_ns &&
	       tcp->receipts.data[i - 1].cpu != cpu)
		i--;
	if (!i || tcp->receipts.data[i - 1].ns < begin_ns)
		return NULL;
	peer = causes_tcp_peer(tcp, tcp->receipts.data[i - 1].link);
	for (size_t e = 0; peer && e < tcp->links.data[peer - 1].ends.len; e++) {
		const struct ky_tcp_send *send = causes_tcp_last(
			tcp, &tcp->links.data[peer - 1].ends.data[e], cpu->host, ns);

		if (send && (!last || send->end_ns > last->end_ns))
			last = send;
	}
	return last;
}
