/* SPDX-License-Identifier: MIT */
/* Requests of a viewer and their answers, and the list of sessions. */
#include "net/viewer/viewer-client.h"

#include <endian.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/viewer/viewer-client-internal.h"

/* Requests before the others get their turn. */
#define REQUESTS_AT_A_TIME 32
#define TIMER_US	   100000

/* ---- versions and sessions ------------------------------------------------------------ */

static int answer_connect(struct ky_viewer_client *client)
{
	struct ky_viewer_connect answer;
	uint32_t minor;

	memcpy(&answer, client->body, sizeof(answer));
	minor = be32toh(answer.minor);
	if (client->is_connected || be32toh(answer.major) != KY_VIEWER_MAJOR ||
	    be32toh(answer.type) != 1)
		return -EPROTO;
	client->is_connected = true;
	client->minor = minor < KY_VIEWER_MINOR ? minor : KY_VIEWER_MINOR;
	answer.minor = htobe32(KY_VIEWER_MINOR);
	answer.viewer = htobe64(++client->hub->viewer);
	ky_viewer_reply_put(&client->reply, &answer, sizeof(answer));
	return 0;
}

static int answer_create(struct ky_viewer_client *client)
{
	uint32_t status = htobe32(KY_VIEWER_OK);

	client->has_session = true;
	ky_viewer_reply_put(&client->reply, &status, sizeof(status));
	return 0;
}

static uint32_t count_viewers(const struct ky_viewer_hub *hub, uint64_t session)
{
	uint32_t n = 0;

	ky_vec_foreach(&hub->clients, it)
		n += ky_viewer_attachment_of(*it, session) != NULL;
	return n;
}

static size_t put_session(const struct ky_viewer_hub *hub, const struct ky_viewer_entry *entry,
			  uint8_t *to)
{
	struct ky_viewer_session session = {
		.id = htobe64(entry->id),
		.timer_us = htobe32(TIMER_US),
		.clients = htobe32(count_viewers(hub, entry->id)),
		.streams = htobe32(entry->streams),
	};

	snprintf(session.host, sizeof(session.host), "%s", entry->host);
	snprintf(session.name, sizeof(session.name), "%s", entry->name);
	memcpy(to, &session, sizeof(session));
	return sizeof(session);
}

static size_t put_session_15(const struct ky_viewer_hub *hub, const struct ky_viewer_entry *entry,
			     uint8_t *to)
{
	size_t host_bytes = strlen(entry->host), name_bytes = strlen(entry->name);
	const struct ky_viewer_session_15 session = {
		.id = htobe64(entry->id),
		.timer_us = htobe32(TIMER_US),
		.clients = htobe32(count_viewers(hub, entry->id)),
		.streams = htobe32(entry->streams),
		.host_bytes = htobe32((uint32_t)host_bytes),
		.name_bytes = htobe32((uint32_t)name_bytes),
		.format = htobe32(entry->is_ctf2 ? KY_VIEWER_CTF_2 : KY_VIEWER_CTF_1),
	};

	memcpy(to, &session, sizeof(session));
	memcpy(to + sizeof(session), entry->host, host_bytes);
	memcpy(to + sizeof(session) + host_bytes, entry->name, name_bytes);
	return sizeof(session) + host_bytes + name_bytes;
}

/* A viewer of an older version would take a session of CTF 2 for one of CTF 1.8. */
static int answer_list(struct ky_viewer_client *client)
{
	struct ky_viewer_hub *hub = client->hub;
	bool is_15 = client->minor >= KY_VIEWER_MINOR_CTF2;
	uint32_t count = 0;
	size_t room = 0, used = 0;

	ky_viewer_list_look(&hub->list, client->now_ns, hub->is_connected, hub->data);
	ky_vec_foreach(&hub->list.entries, entry)
		room += sizeof(struct ky_viewer_session) + strlen(entry->host) +
			strlen(entry->name);
	client->reply.blob = ky_viewer_blob_new(room);
	if (!client->reply.blob)
		return -ENOMEM;
	ky_vec_foreach(&hub->list.entries, entry) {
		uint8_t *to = client->reply.blob->data + used;

		if (entry->is_ctf2 && !is_15)
			continue;
		used += is_15 ? put_session_15(hub, entry, to) : put_session(hub, entry, to);
		count++;
	}
	client->reply.blob->bytes = used;
	count = htobe32(count);
	ky_viewer_reply_put(&client->reply, &count, sizeof(count));
	return 0;
}

/* ---- requests ------------------------------------------------------------------------- */

static const struct {
	size_t bytes;
	int (*answer)(struct ky_viewer_client *client);
} commands[] = {
	[KY_VIEWER_CONNECT] = {sizeof(struct ky_viewer_connect), answer_connect},
	[KY_VIEWER_LIST_SESSIONS] = {0, answer_list},
	[KY_VIEWER_ATTACH] = {sizeof(struct ky_viewer_attach), ky_viewer_answer_attach},
	[KY_VIEWER_GET_NEXT_INDEX] = {8, ky_viewer_answer_index},
	[KY_VIEWER_GET_PACKET] = {sizeof(struct ky_viewer_get_packet), ky_viewer_answer_packet},
	[KY_VIEWER_GET_METADATA] = {8, ky_viewer_answer_metadata},
	[KY_VIEWER_GET_NEW_STREAMS] = {8, ky_viewer_answer_new_streams},
	[KY_VIEWER_CREATE_SESSION] = {0, answer_create},
	[KY_VIEWER_DETACH] = {8, ky_viewer_answer_detach},
};

/* The size in the head is not used: as in LTTng's relay, the command alone says what follows. */
static int begin_request(struct ky_viewer_client *client)
{
	struct ky_viewer_head head;

	memcpy(&head, client->input, sizeof(head));
	client->command = be32toh(head.command);
	if (!client->command || client->command >= sizeof(commands) / sizeof(commands[0]) ||
	    (!client->is_connected && client->command != KY_VIEWER_CONNECT))
		return -EPROTO;
	client->wanted = sizeof(head) + commands[client->command].bytes;
	/* No other viewer says this. */
	client->ends_early |= client->command == KY_VIEWER_ATTACH && !head.bytes;
	return 0;
}

/*
 * A viewer that sends the head alone, as Trace Compass does, sends the rest when the head is acknowledged (Nagle's algorithm),
 * which the kernel would do 40 ms later.
 */
static void viewer_client_acknowledge(const struct ky_viewer_client *client)
{
	int yes = 1;

	(void)setsockopt(ky_link_in_fd(client->link), IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof(yes));
}

/* Returns 1: a request is complete; 0: more is needed; negative errno. */
static int viewer_client_receive(struct ky_viewer_client *client)
{
	while (client->n_input < client->wanted) {
		ssize_t got = ky_link_receive(client->link, client->input + client->n_input,
					      client->wanted - client->n_input);
		int ret = 0;

		if (got == -EAGAIN && client->n_input)
			viewer_client_acknowledge(client);
		if (got <= 0)
			return got == -EAGAIN ? 0 : got ? (int)got : -ECONNRESET;
		client->n_input += (size_t)got;
		if (client->n_input == sizeof(struct ky_viewer_head))
			ret = begin_request(client);
		if (ret < 0)
			return ret;
	}
	memcpy(client->body, client->input + sizeof(struct ky_viewer_head), sizeof(client->body));
	client->n_input = 0;
	client->wanted = sizeof(struct ky_viewer_head);
	return 1;
}

static int send_reply(struct ky_viewer_client *client)
{
	int ret = ky_viewer_reply_send(&client->reply, client->link, client->hub->scratch);

	if (ret == 0 && !client->stuck_ns)
		client->stuck_ns = client->now_ns;
	if (ret == 1)
		client->stuck_ns = 0;
	return ret;
}

int ky_viewer_client_step(struct ky_viewer_client *client, int64_t now_ns)
{
	client->now_ns = now_ns;
	if (client->is_replying) {
		int ret = send_reply(client);

		if (ret <= 0)
			return ret < 0 ? ret : KY_VIEWER_WANTS_OUTPUT;
		client->is_replying = false;
	}
	for (int i = 0; i < REQUESTS_AT_A_TIME; i++) {
		int ret = client->is_held ? 1 : viewer_client_receive(client);

		if (ret <= 0)
			return ret < 0 ? ret : KY_VIEWER_WANTS_INPUT;
		if (!client->is_held)
			client->asked_ns = now_ns;
		ret = commands[client->command].answer(client);
		if (ret < 0 || client->is_held)
			return ret < 0 ? ret : KY_VIEWER_WANTS_TIME;
		ret = send_reply(client);
		client->is_replying = ret == 0;
		if (ret <= 0)
			return ret < 0 ? ret : KY_VIEWER_WANTS_OUTPUT;
	}
	return KY_VIEWER_WANTS_TURN;
}

/* ---- clients -------------------------------------------------------------------------- */

int ky_viewer_client_new(struct ky_viewer_hub *hub, struct ky_link *link, bool is_strict,
			 uint32_t delay_ms, struct ky_viewer_client **out, struct kymo_error *err)
{
	struct ky_viewer_client *client = calloc(1, sizeof(*client));

	*out = client;
	if (!client || ky_vec_push(&hub->clients, client) < 0) {
		free(client);
		ky_link_free(link);
		return ky_error_nomem(err);
	}
	client->hub = hub;
	client->link = link;
	client->is_strict = is_strict;
	client->held_fd = -1;
	client->delay_ms = delay_ms;
	client->wanted = sizeof(struct ky_viewer_head);
	ky_viewer_reply_init(&client->reply);
	return KYMO_OK;
}

void ky_viewer_client_free(struct ky_viewer_client *client)
{
	struct ky_viewer_hub *hub = client->hub;

	for (size_t i = 0; i < hub->clients.len; i++)
		if (hub->clients.data[i] == client)
			hub->clients.data[i] = hub->clients.data[--hub->clients.len];
	ky_viewer_reply_clear(&client->reply);
	ky_viewer_let_go(client);
	ky_vec_foreach(&client->attached, it)
		ky_viewer_detach(client, *it);
	ky_vec_fini(&client->attached);
	ky_link_free(client->link);
	free(client);
}

struct ky_link *ky_viewer_client_link(const struct ky_viewer_client *client)
{
	return client->link;
}

int64_t ky_viewer_client_idle_since_ns(const struct ky_viewer_client *client,
				       enum ky_viewer_idle *idle)
{
	if (!client->is_connected) {
		*idle = KY_VIEWER_GREETS;
		return client->begun_ns;
	}
	*idle = client->stuck_ns || client->attached.len ? KY_VIEWER_IS_STUCK
							 : KY_VIEWER_WATCHES_NOTHING;
	return *idle == KY_VIEWER_IS_STUCK ? client->stuck_ns : client->asked_ns;
}

void ky_viewer_hub_fini(struct ky_viewer_hub *hub)
{
	while (hub->clients.len)
		ky_viewer_client_free(hub->clients.data[0]);
	ky_vec_fini(&hub->clients);
	ky_vec_fini(&hub->recordings);
	ky_viewer_list_fini(&hub->list);
}
