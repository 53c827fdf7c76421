/* SPDX-License-Identifier: MIT */
#ifndef KY_RECORD_RECORDING_RECORDING_INTERNAL_H
#define KY_RECORD_RECORDING_RECORDING_INTERNAL_H

#include "base/vec.h"
#include "record/control/control-socket.h"
#include "record/recording/recording.h"

/* A container that was chosen by name: its control group when it was. */
struct ky_recording_container {
	char *name, *cgroup;
};

struct ky_recording {
	struct ky_recording_options options;
	KY_VEC(const char *) cgroups; /* what options.kernel.cgroups points to */
	bool made_output;
	struct ky_session *session;    /* NULL: without the kernel */
	struct ky_user *user;	       /* NULL: without programs */
	struct ky_os_clock user_clock; /* without the kernel */
	uint64_t start_cycles, duration_ns;
	bool is_started;
	KY_VEC(struct ky_recording_container) containers;
	/* What is waited for. */
	int epoll_fd;
	int timer_fd;		 /* when the session's next step is due */
	bool session_is_awaited; /* its descriptor ends the wait */
	struct ky_control_socket_server control;
};

const struct ky_os_clock *ky_recording_clock(const struct ky_recording *recording);
/* Have the next step when the kernel's session says that it is due. */
void ky_recording_set_timer(struct ky_recording *recording);
/* Without the kernel's recorder nobody else refines the clock. */
void ky_recording_refine_clock(struct ky_recording *recording);
/* Of two results the first that is an error, in @err: of @next it is @next_err. */
int ky_recording_keep_error(int ret, int next, struct kymo_error *err,
			    const struct kymo_error *next_err);

/* recording-containers.c */

/*
 * Find the control groups of the options' containers: the kernel's options choose these, too. As ky_container_cgroup(),
 * KYMO_E_MEMORY; ky_recording_forget_containers() is due in any case.
 */
int ky_recording_find_containers(struct ky_recording *recording, struct kymo_error *err);
void ky_recording_forget_containers(struct ky_recording *recording);
/*
 * While recording: also, or no longer, what happens in this container. The caller has found its control group ("": it does
 * not run), since that may take long. A container that has gone is known by the name that it was added by.
 */
int ky_recording_choose_container(struct ky_recording *recording, const char *name,
				  const char *cgroup, bool adds, struct kymo_error *err);

/* recording-requests.c: the control socket is readable. Returns whether the request is to stop. */
bool ky_recording_take_request(struct ky_recording *recording);

#endif
