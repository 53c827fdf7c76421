/* SPDX-License-Identifier: MIT */
#include "cli/daemon/daemon-policies.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/daemon/daemon-policies-internal.h"
#include "os/now.h"

#define NS_PER_S UINT64_C(1000000000)
/* Connections of all users, and of one. */
#define CLIENTS_MAX	 128
#define CLIENTS_USER_MAX 8
/* How often the daemon looks at sizes and times, while there is something to look at, and else. */
#define LOOK_NS (NS_PER_S / 5)
/* When the daemon has no descriptor, new clients wait for so long. */
#define PAUSE_NS       (NS_PER_S / 5)
#define LOOK_RARELY_NS (600 * NS_PER_S)

void ky_policies_look_soon(struct ky_policies *policies)
{
	ky_loop_set_timer(policies->timer, LOOK_NS);
}

static int daemon_policies_look(void *data, struct kymo_error *err)
{
	struct ky_policies *policies = data;
	int64_t now = ky_os_now_s();
	bool has_work = policies->clients.len != 0;

	(void)err;
	for (size_t i = policies->clients.len; i-- > 0;) {
		struct ky_policy_client *client = policies->clients.data[i];

		if (client->until_s && now >= client->until_s)
			ky_policy_client_drop(client);
	}
	ky_policy_recordings_look(policies);
	ky_vec_foreach(&policies->recordings, it)
		has_work = has_work || ky_policy_is_active(*it);
	ky_loop_set_timer(policies->timer, has_work ? LOOK_NS : LOOK_RARELY_NS);
	return KYMO_OK;
}

static bool daemon_policies_has_room(const struct ky_policies *policies, uid_t uid)
{
	size_t n = 0;

	ky_vec_foreach(&policies->clients, it)
		n += (*it)->uid == uid;
	return policies->clients.len < CLIENTS_MAX && n < CLIENTS_USER_MAX;
}

static int take_connection(void *data, struct kymo_error *err)
{
	struct ky_policies *policies = data;
	int fd = ky_accept_socket_take(&policies->listener);
	struct ky_policy_client *client;
	uid_t uid;

	(void)err;
	if (fd < 0)
		return KYMO_OK;
	client = ky_daemon_socket_user(fd, &uid) && daemon_policies_has_room(policies, uid)
			 ? calloc(1, sizeof(*client))
			 : NULL;
	if (!client) {
		close(fd);
		return KYMO_OK;
	}
	*client = (struct ky_policy_client){
		.policies = policies, .fd = fd, .uid = uid, .status_fd = -1, .root_fd = -1};
	if (ky_vec_push(&policies->clients, client) < 0) {
		close(fd);
		free(client);
	} else if (ky_loop_add(policies->options.loop, fd, ky_policy_take_client, client,
			       &client->source, NULL) < 0) {
		ky_policy_client_drop(client);
	} else {
		ky_policy_client_wait(client, KY_POLICY_IDLE, KY_POLICY_SILENCE_S);
	}
	return KYMO_OK;
}

bool ky_policies_exist(const char *profiles)
{
	DIR *dir = opendir(profiles);
	struct dirent *entry;
	bool exist = false;
	char name[256];

	while (dir && !exist && (entry = readdir(dir)))
		exist = ky_policy_file_name(entry->d_name, KY_POLICY_SUFFIX, name);
	if (dir)
		closedir(dir);
	return exist;
}

int ky_policies_open(const struct ky_policies_options *options, struct ky_policies **out,
		     struct kymo_error *err)
{
	struct ky_policies *policies = calloc(1, sizeof(*policies));
	int ret;

	*out = NULL;
	if (!policies)
		return ky_error_nomem(err);
	policies->options = *options;
	policies->listener = (struct ky_accept_socket)KY_ACCEPT_SOCKET_CLOSED;
	ret = ky_daemon_socket_listen(options->socket, err);
	if (ret >= 0)
		ret = ky_accept_socket_open(&policies->listener, ret, PAUSE_NS, err);
	if (!ret)
		ret = ky_loop_add(options->loop, policies->listener.fd, take_connection, policies,
				  &policies->listen, err);
	if (!ret)
		ret = ky_loop_add_timer(options->loop, daemon_policies_look, policies,
					&policies->timer, err);
	if (ret < 0) {
		ky_policies_close(policies);
		return ret;
	}
	ky_policy_recordings_find(policies);
	ky_policies_look_soon(policies);
	*out = policies;
	return KYMO_OK;
}

static void stop_listening(struct ky_policies *policies)
{
	ky_loop_remove(policies->listen);
	policies->listen = NULL;
	if (policies->listener.fd < 0)
		return;
	(void)unlink(policies->options.socket);
	ky_accept_socket_close(&policies->listener);
}

void ky_policies_end(struct ky_policies *policies)
{
	if (!policies)
		return;
	policies->ends = true;
	stop_listening(policies);
	ky_vec_foreach(&policies->recordings, it)
		ky_policy_recording_end(*it);
}

bool ky_policies_any_runs(const struct ky_policies *policies)
{
	if (policies)
		ky_vec_foreach(&policies->recordings, it)
			if ((*it)->pid)
				return true;
	return false;
}

void ky_policies_close(struct ky_policies *policies)
{
	if (!policies)
		return;
	stop_listening(policies);
	while (policies->clients.len)
		ky_policy_client_drop(policies->clients.data[0]);
	while (policies->recordings.len)
		ky_policy_recording_free(policies->recordings.data[0]);
	ky_vec_fini(&policies->clients);
	ky_vec_fini(&policies->recordings);
	ky_loop_remove(policies->timer);
	free(policies);
}
