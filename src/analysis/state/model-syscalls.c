/* SPDX-License-Identifier: MIT */
/*
 * The state model's system calls: entry and exit are paired per thread, as threads migrate
 * inside calls. A pair is measured only when nothing was lost in between and both name the
 * same call.
 */
#include "analysis/state/model-internal.h"

#include <string.h>

/* May events of the call be missing? */
static bool model_syscalls_is_torn(const struct ky_thread *thread, int64_t begin_ns)
{
	return begin_ns < thread->host->torn_until_ns || begin_ns < thread->stray_ns;
}

int ky_call_abandon(struct ky_model *model, struct ky_thread *thread, enum ky_call_outcome outcome,
		    int64_t ns)
{
	struct ky_call call;
	int status;

	if (thread->syscall.id == KY_NO_SYSCALL)
		return 0;
	call = (struct ky_call){
		.thread = thread,
		.syscall = thread->syscall.id,
		.outcome = outcome,
		.begin_ns = thread->syscall.begin_ns,
		.end_ns = ns,
	};
	/* The call may have returned in the gap; the end of a thread is certain. */
	if (model_syscalls_is_torn(thread, call.begin_ns) && outcome != KY_CALL_EXITED)
		call.outcome = KY_CALL_TORN;
	call.cpu_id = thread->syscall.cpu_id;
	thread->syscall.id = KY_NO_SYSCALL;
	status = ky_lock_lose(model, thread);
	if (status < 0 || !ky_model_tells(model, thread, call.cpu_id))
		return status;
	return ky_model_notify(model, call, &call);
}

/*
 * Which call an event is about. KY_NO_SYSCALL: it does not say; nor does the end of rt_sigreturn, where the number is the
 * one from before the signal, which is -1 by then.
 */
static int which(struct ky_model *model, const struct ky_event *event,
		 const struct ky_class_info *info, bool is_exit, uint32_t *syscall)
{
	int64_t number;

	*syscall = info->syscall;
	if (*syscall != KY_NO_SYSCALL || !info->fields[KY_SYSCALL_NUMBER].cls)
		return 0;
	number = ky_get_i64(event, &info->fields[KY_SYSCALL_NUMBER], -1);
	if (is_exit && number == -1)
		return 0;
	*syscall = ky_model_syscall_by_number(model, number, info->compat);
	return *syscall == KY_NO_SYSCALL ? KYMO_E_MEMORY : 0;
}

int ky_on_syscall_sign(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info)
{
	struct ky_thread *thread;

	return ky_model_current(feed, event, info, &thread);
}

int ky_on_syscall_entry(struct ky_feed *feed, const struct ky_event *event,
			const struct ky_class_info *info)
{
	struct ky_thread *thread;
	uint32_t syscall;
	int status;

	status = ky_model_current(feed, event, info, &thread);
	if (status < 0 || !thread)
		return status;
	status = which(feed->model, event, info, false, &syscall);
	if (status >= 0)
		status = ky_call_abandon(feed->model, thread, KY_CALL_NO_RETURN, event->ns);
	if (status < 0)
		return status;
	thread->returned = true;
	thread->syscall = (struct ky_syscall){
		.id = syscall, .cpu_id = event->cpu_id, .begin_ns = event->ns, .row = info->row};
	if (feed->model->subjects & KY_ABOUT_ARGS && ky_args_keep(feed, event, info, thread) < 0)
		return KYMO_E_MEMORY;
	if (info->row && feed->model->subjects & (KY_ABOUT_FILES | KY_ABOUT_FUTEX)) {
		status = ky_io_begin(feed, event, info, thread);
		if (status < 0)
			return status;
	}
	if (!ky_model_tells(feed->model, thread, event->cpu_id))
		return 0;
	return ky_model_notify(feed->model, call_begin, thread, event->ns);
}

/* An exit whose entry was not seen. */
static enum ky_call_outcome model_syscalls_headless(const struct ky_thread *thread)
{
	if (!thread->returned)
		return thread->born ? KY_CALL_BIRTH : KY_CALL_HEADLESS;
	return thread->host->torn_until_ns == INT64_MIN && !thread->host->lacks_cpus
		       ? KY_CALL_HEADLESS
		       : KY_CALL_TORN;
}

/* Tell of a call that is over, as far as it is in the focus. */
static int model_syscalls_tell(struct ky_model *model, const struct ky_call *call)
{
	if (!ky_model_tells(model, call->thread, call->cpu_id))
		return 0;
	if (call->outcome == KY_CALL_DONE &&
	    !ky_model_tells_long(model, call->end_ns - call->begin_ns))
		return 0;
	return ky_model_notify(model, call, call);
}

int ky_on_syscall_exit(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info)
{
	struct ky_call call; /* every member is set below: clearing it first costs more */
	struct ky_thread *thread;
	int status;

	status = ky_model_current(feed, event, info, &thread);
	if (status < 0 || !thread)
		return status;
	status = which(feed->model, event, info, true, &call.syscall);
	if (call.syscall == KY_NO_SYSCALL)
		call.syscall = thread->syscall.id;
	if (status >= 0 && thread->syscall.id != call.syscall)
		status = ky_call_abandon(feed->model, thread, KY_CALL_NO_RETURN, event->ns);
	if (status < 0)
		return status;
	call.thread = thread;
	call.outcome = KY_CALL_DONE;
	call.begin_ns = INT64_MIN;
	call.end_ns = event->ns;
	call.cpu_id = event->cpu_id;
	if (thread->syscall.id == KY_NO_SYSCALL)
		call.outcome = model_syscalls_headless(thread);
	else
		call.begin_ns = thread->syscall.begin_ns;
	if (call.outcome == KY_CALL_DONE && model_syscalls_is_torn(thread, call.begin_ns))
		call.outcome = KY_CALL_TORN;
	call.has_ret = info->fields[KY_SYSCALL_RET].cls != NULL;
	call.ret = ky_get_i64(event, &info->fields[KY_SYSCALL_RET], 0);
	memcpy(call.args, thread->syscall.args, sizeof(call.args));
	thread->returned = true;
	thread->syscall.id = KY_NO_SYSCALL;
	if (call.syscall == KY_NO_SYSCALL)
		return 0;
	status = model_syscalls_tell(feed->model, &call);
	/* It is over, but what it began with is still there. */
	if (status >= 0 && call.outcome == KY_CALL_DONE && thread->syscall.row &&
	    feed->model->subjects & (KY_ABOUT_FILES | KY_ABOUT_FUTEX))
		status = ky_io_end(feed, event, info, &thread->syscall, &call);
	return status < 0 ? status : ky_lock_lose(feed->model, thread);
}

const char *ky_call_outcome_text(enum ky_call_outcome outcome)
{
	switch (outcome) {
	case KY_CALL_HEADLESS:
		return "began before the trace";
	case KY_CALL_TORN:
		return "events were lost";
	case KY_CALL_NO_RETURN:
		return "did not return";
	case KY_CALL_EXITED:
		return "the thread ended";
	default:
		return NULL;
	}
}
