/* SPDX-License-Identifier: MIT */
/* What kymo record says at the end. */
#ifndef KY_CLI_RECORD_SUMMARY_H
#define KY_CLI_RECORD_SUMMARY_H

#include "record/kernel/session.h"
#include "record/user/user.h"

/*
 * To stderr: events, losses and their causes, per CPU of the kernel and per program.
 * @kernel, @user: NULL: not recorded. @buffer_bytes: of one CPU's buffer.
 * @is_whole: nothing failed; else that was told before.
 */
void ky_record_summary(const char *output, const struct ky_session_stats *kernel,
		       const struct ky_user_stats *user, uint64_t duration_ns,
		       uint64_t buffer_bytes, bool is_whole);

#endif
