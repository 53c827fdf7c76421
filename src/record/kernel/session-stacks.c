/* SPDX-License-Identifier: MIT */
/*
 * Call stacks of events. The kernel's are written by a trigger of each event, those of programs by an
 * option of the instance, which is for all events: those of others are left out when pages are converted.
 */
#include <stdio.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"

/* Only events of the recording: stacks of other events would have no event. */
static int session_stacks_choose(struct ky_session *session, const char *const *patterns, size_t n,
				 unsigned int which, struct kymo_error *err)
{
	for (size_t i = 0; i < n; i++) {
		bool found = false;

		ky_vec_foreach(&session->kernel.catalogue.events, source) {
			if (!source->selected || source->of_bpf ||
			    !ky_catalogue_matches(source, patterns[i]))
				continue;
			source->stacks |= which;
			found = true;
		}
		if (!found)
			return ky_error_set(err, KYMO_E_NOT_FOUND,
					    "call stacks: '%s' matches no event of the recording",
					    patterns[i]);
	}
	return KYMO_OK;
}

static int add_records(struct ky_session *session, const char *event, struct kymo_error *err)
{
	struct ky_event_source *source;

	if (ky_catalogue_add(&session->kernel.catalogue, "ftrace", event, event, false) < 0)
		return ky_error_nomem(err);
	source = ky_catalogue_find(&session->kernel.catalogue, "ftrace", event);
	source->hidden = true;
	return KYMO_OK;
}

int ky_session_choose_stacks(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_options *options = &session->options;
	int ret = session_stacks_choose(session, options->kernel_stacks, options->n_kernel_stacks,
					KY_STACK_KERNEL, err);

	if (!ret)
		ret = session_stacks_choose(session, options->user_stacks, options->n_user_stacks,
					    KY_STACK_USER, err);
	if (!ret && options->n_kernel_stacks) {
		session->options.context |= KY_CONTEXT_CALLSTACK_KERNEL;
		ret = add_records(session, "kernel_stack", err);
	}
	if (!ret && options->n_user_stacks) {
		session->options.context |= KY_CONTEXT_CALLSTACK_USER;
		ret = add_records(session, "user_stack", err);
	}
	return ret;
}

static int write_trigger(struct ky_session *session, const struct ky_event_source *source,
			 const char *what, struct kymo_error *err)
{
	char name[400];

	snprintf(name, sizeof(name), "events/%s/%s/trigger", source->system, source->event);
	return ky_instance_write(ky_session_instance_of(session, source), name, what, err);
}

int ky_session_write_stacks(struct ky_session *session, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (session->options.context & KY_CONTEXT_CALLSTACK_USER)
		ret = ky_session_write_all(session, "options/userstacktrace", "1", err);

	ky_vec_foreach(&session->kernel.catalogue.events, source) {
		if (ret < 0)
			break;
		if (source->stacks & KY_STACK_KERNEL && !source->off)
			ret = write_trigger(session, source, "stacktrace", err);
	}
	if (ret < 0)
		ky_error_hint(err, "this kernel may be built without call stacks "
				   "(CONFIG_STACKTRACE, CONFIG_USER_STACKTRACE_SUPPORT)");
	return ret;
}

void ky_session_switch_stacks(struct ky_session *session, const struct ky_event_source *source,
			      bool enables)
{
	if (source->stacks & KY_STACK_KERNEL)
		(void)write_trigger(session, source, enables ? "stacktrace" : "!stacktrace", NULL);
}
