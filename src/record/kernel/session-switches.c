/* SPDX-License-Identifier: MIT */
/*
 * Switches from the idle task, where a self-test shows that the kernel's tracing does not record those of some CPU: a BPF
 * program sees them. It does not know filters and chosen threads, and so is on only while there are none.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "kernel/switches/switches.h"
#include "record/kernel/session-internal.h"

static struct ky_event_source *find_switch(struct ky_session *session)
{
	return ky_catalogue_find(&session->kernel.catalogue, "sched", "sched_switch");
}

/* All switches are to be recorded. */
static bool wants_all(const struct ky_session *session)
{
	const struct ky_event_source *source = session->switch_source;

	return source && (source->selected || source->hidden) && !source->off && !source->filter &&
	       !source->kernel_filter && !session->has_list;
}

/* Options that choose threads; which they are is not known yet. */
static bool chooses_threads(const struct ky_session_threads *threads)
{
	return threads->n_pids || threads->n_tids || threads->n_cgroups || threads->uid >= 0 ||
	       threads->follow || threads->comm;
}

/* The session wakes for them when many wait. */
static int watch_switches(struct ky_session *session, struct kymo_error *err)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = session->switches};
	int fd = ky_switches_fd(session->switches);

	if (epoll_ctl(session->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
		return ky_error_errno(err, errno, "cannot wait for switches");
	return KYMO_OK;
}

int ky_session_find_switches(struct ky_session *session, struct kymo_error *err)
{
	struct ky_switches_found found;
	int ret;

	/* No event is added to the catalogue from now on. */
	session->switch_source = find_switch(session);
	/* Counters are read where the kernel records the event. */
	if (session->options.raw || session->options.n_counters ||
	    chooses_threads(&session->options.threads) || !wants_all(session))
		return KYMO_OK;
	/* Without BPF, it is unknown whether some are missing. */
	if (ky_switches_open(&session->switches, NULL) < 0)
		return KYMO_OK;
	ret = ky_switches_test(session->switches, &session->instance, &found, err);
	if (ret < 0)
		return ret;
	if (found.n_lacking + found.n_unknown &&
	    ky_convert_set_switches(&session->kernel.convert, session->switch_source->id,
				    session->switches))
		return watch_switches(session, err);
	ky_switches_close(session->switches);
	session->switches = NULL;
	return KYMO_OK;
}

void ky_session_review_switches(struct ky_session *session)
{
	bool wants = session->switches && session->started && !session->stopped &&
		     !session->pauses.is_on && wants_all(session);

	if (wants == session->takes_switches)
		return;
	session->takes_switches = wants;
	if (wants)
		ky_switches_begin(session->switches, &session->kernel.clock);
	else if (session->switches)
		ky_switches_end(session->switches);
}
