/* SPDX-License-Identifier: MIT */
/* One run of kymo record: the sessions of kernel and programs, the command, signals, the end. */
#ifndef KY_CLI_RECORD_RUN_H
#define KY_CLI_RECORD_RUN_H

#include <signal.h>

#include "base/vec.h"
#include "cli/options/choose-options.h"
#include "cli/recording/record-child.h"
#include "record/control/control-socket.h"
#include "record/kernel/session.h"
#include "record/user/user.h"

/* One that was chosen: by this name, for what is in this control group. */
struct ky_record_container {
	char *name, *cgroup;
};

struct ky_record_run {
	/* What is wanted. */
	bool has_kernel, has_user;
	struct ky_session_options kernel; /* but for the output */
	struct ky_user_options user;	  /* but for output and clock */
	enum ky_os_clock_kind clock;
	const char *output;
	uint64_t duration_ns;
	uint64_t buffer_bytes;
	struct ky_child command;
	int32_t pids[KY_CLI_MAX_IDS], tids[KY_CLI_MAX_IDS]; /* what kernel.pids, tids point to */
	KY_VEC(const char *) cgroups;			    /* what kernel.cgroups points to */
	/* While it runs. */
	struct ky_session *session;
	struct ky_user *user_session;
	struct ky_os_clock user_clock; /* without the kernel */
	uint64_t start_cycles;
	KY_VEC(struct ky_record_container) containers;
	int signal_fd, timer_fd;
	struct ky_control_socket_server remote;
	bool wants_snapshot; /* by a signal */
	sigset_t old_mask;
	bool made_output;
	bool started;
	bool ended_by_command;
};

#define KY_RECORD_RUN_INIT                                                                \
	{                                                                                 \
		.signal_fd = -1, .timer_fd = -1, .command = {.go_fd = -1, .fail_fd = -1}, \
		.remote = KY_CONTROL_SOCKET_SERVER_INIT                                   \
	}

/* Record; say at the end what was recorded. Returns an exit code. */
int ky_record_run(struct ky_record_run *run);

/* Of two results the first that is an error, in @err: of @next it is @next_err. */
int ky_record_keep_error(int ret, int next, struct kymo_error *err,
			 const struct kymo_error *next_err);

/* The recording's clock; and that as exact as it can be known by now. */
const struct ky_os_clock *ky_record_clock(const struct ky_record_run *run);
void ky_record_refine_clock(struct ky_record_run *run);

#endif
