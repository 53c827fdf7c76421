/* SPDX-License-Identifier: MIT */
/*
 * A server of one file for a page of another origin, such as ui.perfetto.dev: on the loopback interface, under a random name, and
 * readable for that origin's pages only. It answers GET, HEAD and the question of browsers before.
 */
#ifndef KY_VIEW_FILE_SERVER_H
#define KY_VIEW_FILE_SERVER_H

#include <stdint.h>

#include <kymo/error.h>

struct ky_file_server;

/*
 * @fd: a regular file, which the server takes. @origin, borrowed: "https://ui.perfetto.dev". @suffix: of the file's name: ".pftrace".
 * 0; KYMO_E_IO: another program has the port; KYMO_E_MEMORY; KYMO_E_UNSUPPORTED.
 */
int ky_file_server_open(int fd, const char *suffix, const char *origin, uint16_t port,
			struct ky_file_server **server, struct kymo_error *err);
/* "http://127.0.0.1:9001/0123456789abcdef.pftrace" */
const char *ky_file_server_link(const struct ky_file_server *server);
void ky_file_server_close(struct ky_file_server *server); /* NULL is allowed */

#endif
