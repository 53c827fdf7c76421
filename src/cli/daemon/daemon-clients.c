/* SPDX-License-Identifier: MIT */
/* Clients of the daemon: their answers, and how long they may be silent. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/daemon/daemon-policies-internal.h"

#include "os/now.h"

void ky_policy_client_end_status(struct ky_policy_client *client)
{
	ky_loop_remove(client->status);
	client->status = NULL;
	if (client->status_fd >= 0)
		close(client->status_fd);
	client->status_fd = -1;
}

/* What hung on the client: a recording in the foreground ends, files are free for the next client. */
static void daemon_clients_leave(struct ky_policy_client *client)
{
	struct ky_policy_recording *recording = client->recording;

	ky_policy_client_end_status(client);
	ky_policy_fetch_end(client);
	client->recording = NULL;
	if (!recording)
		return;
	if (client->wait == KY_POLICY_FOR_START || client->wait == KY_POLICY_FOREGROUND)
		ky_policy_recording_end(recording);
	if (client->wait == KY_POLICY_FETCHES && !client->is_snapshot)
		recording->is_fetched = false;
	if (recording->snapshot_client == client) {
		recording->snapshot_client = NULL;
		/* While it is being written, its end removes it. */
		if (!recording->snapshot_pid)
			ky_policy_snapshot_remove(recording);
	}
}

void ky_policy_client_drop(struct ky_policy_client *client)
{
	struct ky_policies *policies = client->policies;
	size_t i = 0;

	while (policies->clients.data[i] != client)
		i++;
	policies->clients.data[i] = policies->clients.data[--policies->clients.len];
	daemon_clients_leave(client);
	ky_loop_remove(client->source);
	close(client->fd);
	free(client);
}

void ky_policy_drop_clients(const struct ky_policy_recording *recording)
{
	struct ky_policies *policies = recording->policies;

	for (size_t i = policies->clients.len; i-- > 0;)
		if (policies->clients.data[i]->recording == recording)
			ky_policy_client_drop(policies->clients.data[i]);
}

/* A client that does not take its answer goes. False: it has gone. */
bool ky_policy_client_answer(struct ky_policy_client *client,
			     const struct ky_control_socket_message *message)
{
	if (ky_daemon_socket_send(client->fd, message, -1) == 0)
		return true;
	ky_policy_client_drop(client);
	return false;
}

void ky_policy_client_refuse(struct ky_policy_client *client, const struct kymo_error *err)
{
	struct ky_control_socket_message message = {.len = 0};

	ky_control_socket_add(&message, "error");
	ky_control_socket_add(&message, err->message);
	ky_control_socket_add(&message, err->path);
	ky_control_socket_add(&message, err->hint);
	if (ky_policy_client_answer(client, &message))
		ky_policy_client_drop(client);
}

void ky_policy_add_number(struct ky_control_socket_message *message, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	ky_control_socket_add(message, text);
}

void ky_policy_client_wait(struct ky_policy_client *client, enum ky_policy_wait wait, int silence_s)
{
	client->wait = wait;
	client->until_s = silence_s ? ky_os_now_s() + silence_s : 0;
	ky_policies_look_soon(client->policies);
}
