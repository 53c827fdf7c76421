/* SPDX-License-Identifier: MIT */
/* kymo ctl --status: a recording in detail. */
#ifndef KY_CLI_RECORDING_CTL_STATUS_H
#define KY_CLI_RECORDING_CTL_STATUS_H

#include <stdbool.h>

#include <kymo/error.h>

#include "record/control/control-socket.h"

/* Asks the recording and prints its answer. Errors: those of ky_control_socket_ask(). */
int ky_ctl_print_status(const struct ky_control_socket_place *place, bool json,
			struct kymo_error *err);

#endif
