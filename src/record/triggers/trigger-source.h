/* SPDX-License-Identifier: MIT */
/*
 * The small sessions that get a trigger's events: one of the kernel, one of programs, as the
 * condition needs them. They have buffers and filters of their own, so that they work beside a
 * flight recorder, which does not read its buffers.
 *
 * Threads: one at a time per source; `take` may be called in other threads.
 */
#ifndef KY_RECORD_TRIGGERS_TRIGGER_SOURCE_H
#define KY_RECORD_TRIGGERS_TRIGGER_SOURCE_H

#include "record/kernel/session.h"
#include "record/triggers/trigger-store.h"
#include "record/user/user.h"

/* What the sources have in common with the recording. */
struct ky_trigger_scope {
	/* The recording's: which threads; only these members count. */
	const struct ky_session_options *kernel;
	const struct ky_user_options *user;
	const struct ky_session *session; /* its threads are the recorder's; NULL: none exists */
	enum ky_os_clock_kind clock_kind;
	const struct ky_os_clock *clock; /* of programs' events */
	int32_t child;			 /* the process of ky_session_choose_child(); 0: none */
	const struct ky_log *log;
};

struct ky_trigger_source {
	const struct ky_trigger_condition *condition;
	struct ky_packet_store *kernel_store, *user_store;
	struct ky_session *session;	    /* NULL: no events of the kernel */
	struct ky_user *user;		    /* NULL: no events of programs */
	const struct ky_session *recording; /* as in the scope */
	bool is_started;
	int64_t rests_until_ns; /* CLOCK_MONOTONIC: the session is not read until then; 0: no pause */
	int64_t due_ns;		/* CLOCK_MONOTONIC: the session's next step; INT64_MAX: none */
};

/*
 * Set up the sessions that @condition needs. @has_stacks: events have call stacks. Errors: those of
 * ky_session_open() and ky_user_open(), a wrong filter with its column in the condition. On
 * failure, the caller must call close, too.
 */
int ky_trigger_source_open(struct ky_trigger_source *source,
			   const struct ky_trigger_condition *condition,
			   const struct ky_trigger_scope *scope, bool has_stacks,
			   void (*take)(void *data, const struct ky_event *event, bool is_second,
					uint64_t key),
			   void *data, struct kymo_error *err);
/* @own_tids: threads of the recorder, of which the kernel's events do not count. */
int ky_trigger_source_start(struct ky_trigger_source *source, const int32_t *own_tids,
			    size_t n_own_tids, struct kymo_error *err);
/* Of the kernel's session: becomes readable when a step is due; -1: none exists. */
int ky_trigger_source_fd(const struct ky_trigger_source *source);
/* When the descriptor is readable, or due_ns has come. In the thread of the recording's session. */
int ky_trigger_source_step(struct ky_trigger_source *source, struct kymo_error *err);
/* Events that could not be read in time, because there were too many. */
uint64_t ky_trigger_source_lost(const struct ky_trigger_source *source);
void ky_trigger_source_close(struct ky_trigger_source *source);

#endif
