/* SPDX-License-Identifier: MIT */
/*
 * Users, passwords and authorities of servers: from a file that only its owner can read, and from the environment, never from a command
 * line. The file is that of KYMO_FLEET_KEY, or ~/.config/kymo/fleet-key. Its lines:
 *
 *	user NAME		these hold for all servers
 *	password TEXT
 *	server HOST[:PORT]	from here on, lines hold for this server
 *	ca FILE			who signs its certificates
 *
 * KYMO_FLEET_USER, KYMO_FLEET_PASSWORD and KYMO_FLEET_CA come before the file.
 */
#ifndef KY_FLEET_HTTP_KEY_H
#define KY_FLEET_HTTP_KEY_H

#include "fleet/http.h"

/*
 * Fills in what @url needs. A user of the address stays. KYMO_E_INVALID: others can read the file, or a line makes no sense; KYMO_E_IO.
 */
int ky_http_key_find(struct ky_http_url *url, struct kymo_error *err);

#endif
