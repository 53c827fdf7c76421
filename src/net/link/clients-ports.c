/* SPDX-License-Identifier: MIT */
/* The ports of a server: how clients come in, and how they wait while descriptors are short. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/link/clients-internal.h"
#include "os/accept-socket.h"

struct ky_clients_port {
	struct ky_clients *clients;
	const struct ky_client_calls *calls;
	void *owner;
	struct ky_tls *tls;
	struct ky_loop_source *source;
	struct ky_accept_socket listener;
};

static void note_shortage(struct ky_clients *clients, int errnum)
{
	if (!clients->is_short)
		ky_log_warning(clients->log, "new clients wait: %s", strerror(errnum));
	clients->is_short = true;
	ky_clients_drop_greediest(clients, KY_CLIENTS_FILES_FEW);
}

/* Many that say nothing do not keep others out. False: all have said who they are. */
static bool clients_make_room(struct ky_clients *clients)
{
	struct ky_client *oldest = NULL;

	if (clients->list.len < clients->max)
		return true;
	ky_vec_foreach(&clients->list, it)
		if (!ky_client_has_greeted(*it) && (!oldest || (*it)->number < oldest->number))
			oldest = *it;
	if (!oldest)
		return false;
	ky_log_info(clients->log, "%s: silent while others want its place",
		    oldest->calls->name(oldest));
	ky_client_drop(oldest);
	return true;
}

static int accept_client(void *data, struct kymo_error *loop_err)
{
	struct ky_clients_port *port = data;
	struct ky_clients *clients = port->clients;
	int fd = ky_accept_socket_take(&port->listener);
	struct kymo_error err;

	(void)loop_err;
	if (fd < 0) {
		if (ky_accept_socket_is_shortage(-fd))
			note_shortage(clients, -fd);
		return KYMO_OK;
	}
	clients->is_short = false;
	ky_link_set_options(fd);
	if (!clients_make_room(clients)) {
		ky_log_warning(clients->log, "a client is refused: %zu clients are connected",
			       clients->list.len);
		close(fd);
	} else if (ky_clients_add(clients, fd, fd, port->calls, port->owner, port->tls, false,
				  &err) < 0) {
		ky_log_warning(clients->log, "a client is refused: %s", err.message);
	}
	return KYMO_OK;
}

static void ky_clients_close_pausing(struct ky_clients *clients)
{
	ky_vec_foreach(&clients->pausing, link)
		ky_link_free(*link);
	clients->pausing.len = 0;
}

int ky_clients_end_pause(void *data, struct kymo_error *err)
{
	struct ky_clients *clients = data;

	(void)err;
	ky_loop_set_timer(clients->pause_timer, 0);
	ky_clients_close_pausing(clients);
	return KYMO_OK;
}

int ky_clients_listen(struct ky_clients *clients, int fd, const struct ky_client_calls *calls,
		      void *owner, struct ky_tls *tls, struct kymo_error *err)
{
	struct ky_clients_port *port = calloc(1, sizeof(*port));
	int ret;

	if (!port) {
		close(fd);
		return ky_error_nomem(err);
	}
	*port = (struct ky_clients_port){
		.clients = clients, .calls = calls, .owner = owner, .tls = tls};
	ret = ky_accept_socket_open(&port->listener, fd, KY_CLIENTS_PAUSE_NS, err);
	port->listener.keeps_some = true;
	if (!ret)
		ret = ky_loop_add(clients->loop, port->listener.fd, accept_client, port,
				  &port->source, err);
	if (!ret && ky_vec_push(&clients->ports, port) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0) {
		ky_loop_remove(port->source);
		ky_accept_socket_close(&port->listener);
		free(port);
	}
	return ret;
}

void ky_clients_close_ports(struct ky_clients *clients)
{
	ky_clients_close_pausing(clients);
	ky_vec_fini(&clients->pausing);
	ky_vec_foreach(&clients->ports, port) {
		ky_loop_remove((*port)->source);
		ky_accept_socket_close(&(*port)->listener);
		free(*port);
	}
	ky_vec_fini(&clients->ports);
}
