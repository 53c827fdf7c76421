/* SPDX-License-Identifier: MIT */
/* What other commands ask a running kymo record: how it is, a snapshot, other events. */
#ifndef KY_CLI_RECORD_REMOTE_H
#define KY_CLI_RECORD_REMOTE_H

#include "cli/recording/record-run.h"

/* Begin to listen. Without that the recording goes on as well: a warning. */
void ky_record_remote_open(struct ky_record_run *run);

/* The socket is readable. True: somebody asks for the end. */
bool ky_record_remote_take(struct ky_record_run *run);

/* A signal asks for a snapshot: OUT-snapshot-1, and so on. */
void ky_record_remote_signal(struct ky_record_run *run);

#endif
