/* SPDX-License-Identifier: MIT */
/*
 * What the files of a server's clients share.
 *
 * Threads: one.
 */
#ifndef KY_NET_LINK_CLIENTS_INTERNAL_H
#define KY_NET_LINK_CLIENTS_INTERNAL_H

#include "net/link/clients.h"

/* When descriptors are short, new clients wait for so long. */
#define KY_CLIENTS_PAUSE_NS UINT64_C(1000000000)
/* Files of a client that are no reason for a shortage. */
#define KY_CLIENTS_FILES_FEW 32

/* Whether the client has said who it is. */
bool ky_client_has_greeted(const struct ky_client *client);
/* When descriptors are short, the client with the most files, more than @more_than, has to wait. */
void ky_clients_drop_greediest(struct ky_clients *clients, size_t more_than);

/* A call of the loop, with struct ky_clients: the end of the time for which new clients have waited. */
int ky_clients_end_pause(void *data, struct kymo_error *err);
void ky_clients_close_ports(struct ky_clients *clients);

#endif
