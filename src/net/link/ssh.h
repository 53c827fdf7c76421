/* SPDX-License-Identifier: MIT */
/* A connection to a relay on another machine through the user's ssh. Threads: any. */
#ifndef KY_NET_LINK_SSH_H
#define KY_NET_LINK_SSH_H

#include <sys/types.h>

#include <kymo/error.h>

/*
 * Runs ssh, which runs kymo relay --stdio --dir @dir on @host. Returns a descriptor of a socket to
 * it, which the caller closes, or KYMO_E_IO. *pid: of ssh.
 */
int ky_ssh_connect(const char *host, const char *dir, pid_t *pid, struct kymo_error *err);
/* After the close of the descriptor: ends ssh. *pid 0: no effect. */
void ky_ssh_end(pid_t *pid);

#endif
