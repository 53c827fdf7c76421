/* SPDX-License-Identifier: MIT */
/* Requests of kymo ctl about a recording's triggers. */
#ifndef KY_CLI_RECORDING_TRIGGER_REQUESTS_H
#define KY_CLI_RECORDING_TRIGGER_REQUESTS_H

#include <stdbool.h>

#include "cli/recording/trigger-options.h"
#include "record/control/control-socket.h"

/* Adds triggers, and prints their numbers. Errors: those of ky_control_socket_ask(). */
int ky_trigger_requests_add(const struct ky_control_socket_place *place,
			    const struct ky_trigger_rules *rules, struct kymo_error *err);
/* Removes the triggers with these numbers ("all": all of them). */
int ky_trigger_requests_remove(const struct ky_control_socket_place *place,
			       const struct ky_text_list *numbers, struct kymo_error *err);
/* Prints the recording's triggers as a table, or as JSON. */
int ky_trigger_requests_list(const struct ky_control_socket_place *place, bool json,
			     struct kymo_error *err);

#endif
