/* SPDX-License-Identifier: MIT */
/*
 * The relay: takes in recordings of many machines, and writes their traces to DIR/HOST/NAME.
 *
 * Clients are untrusted. A client gets a small fixed amount of memory, whatever its frames claim;
 * its files are below its host's directory; an error costs only its connection.
 *
 * Threads: one.
 */
#ifndef KY_NET_RELAY_RELAY_H
#define KY_NET_RELAY_RELAY_H

#include <stdint.h>

#include <kymo/error.h>

#include "base/log.h"
#include "net/link/address.h"
#include "net/link/tls.h"
#include "net/viewer/viewer-server.h"
#include "os/event-loop.h"

struct ky_relay_options {
	const char *dir;	  /* an existing directory */
	const char *token;	  /* what clients must know; NULL: nothing */
	const char *reader_token; /* what is enough for readers; NULL: nothing else */
	struct ky_viewer_server
		*viewers;	  /* gets readers; NULL: they are refused; must outlive the relay */
	struct ky_tls *tls;	  /* NULL: without TLS; must outlive the relay */
	uint64_t quota_bytes;	  /* of each host's recordings; 0: none */
	unsigned int clients_max; /* 0: 1000 */
	const struct ky_log *log; /* may be NULL; must outlive the relay */
};

struct ky_relay;

/* The relay adds its sources to @loop, which must outlive it. KYMO_E_IO, KYMO_E_MEMORY. */
int ky_relay_open(const struct ky_relay_options *options, struct ky_loop *loop,
		  struct ky_relay **relay, struct kymo_error *err);
/* Takes clients from the socket @fd, which listens; the relay takes it over. */
int ky_relay_listen(struct ky_relay *relay, int fd, struct kymo_error *err);
/*
 * Takes LTTng's consumer daemons from two sockets that listen: for control, and for data. Both are taken over, on
 * failure, too. KYMO_E_IO, KYMO_E_MEMORY.
 */
int ky_relay_listen_lttng(struct ky_relay *relay, int control_fd, int data_fd,
			  struct kymo_error *err);
/*
 * Has one client whose data comes from @in_fd, with answers to @out_fd; the relay takes both over.
 * The loop ends with this client.
 */
int ky_relay_serve(struct ky_relay *relay, int in_fd, int out_fd, struct kymo_error *err);
/* Closes all connections. NULL is allowed. */
void ky_relay_close(struct ky_relay *relay);

#endif
