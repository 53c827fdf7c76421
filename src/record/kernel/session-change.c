/* SPDX-License-Identifier: MIT */
/*
 * What a recording that runs takes from now on: other events, under other filters, of other threads. What
 * was recorded before is converted first, by the rules that it was recorded under.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"

/* 1: switched; 0: it stays on, since contexts are made of it. */
static int switch_event(struct ky_session *session, struct ky_event_source *source, bool enables,
			struct kymo_error *err)
{
	char name[400];
	int ret;

	if (source->hidden)
		return enables;
	/* Resuming switches the events on. */
	if (session->pauses.is_on) {
		source->off = !enables;
		return 1;
	}
	if (source->of_bpf) {
		source->off = !enables;
		ky_content_select_call(session->kernel.content, source->system, source->event,
				       enables);
		return 1;
	}
	snprintf(name, sizeof(name), "events/%s/%s/enable", source->system, source->event);
	ret = ky_instance_write(ky_session_instance_of(session, source), name, enables ? "1" : "0",
				err);
	if (!ret) {
		source->off = !enables;
		ky_session_switch_stacks(session, source, enables);
	}
	return ret < 0 ? ret : 1;
}

static int disable(struct ky_session *session, const char *pattern, struct kymo_error *err)
{
	int n_found = 0, n_switched = 0, ret;

	ky_vec_foreach(&session->kernel.catalogue.events, source) {
		if (!source->selected || !ky_catalogue_matches(source, pattern))
			continue;
		ret = switch_event(session, source, false, err);
		if (ret < 0)
			return ret;
		n_found++;
		n_switched += ret;
	}
	if (n_found && !n_switched)
		return ky_error_set(err, KYMO_E_STATE,
				    "'%s' is needed for the other events' context fields", pattern);
	return n_found ? KYMO_OK
		       : ky_error_set(err, KYMO_E_NOT_FOUND,
				      "'%s' matches no kernel event of this recording", pattern);
}

/* Takes back the events that add_new() has added: those of @is_new. */
static void remove_new(struct ky_session *session, const bool *is_new, uint32_t needed_state)
{
	for (size_t i = session->kernel.catalogue.events.len; i-- > 0;)
		if (is_new[i])
			ky_kernel_trace_remove_event(&session->kernel,
						     &session->kernel.catalogue.events.data[i]);
	session->kernel.needed_state = needed_state;
}

static int add_one(struct ky_session *session, struct ky_event_source *source,
		   struct kymo_error *err)
{
	int ret;

	if (session->options.raw)
		return ky_error_set(err, KYMO_E_STATE,
				    "%s: a raw recording keeps to the events that it began with",
				    source->name);
	ret = ky_kernel_trace_add_event(&session->kernel, source, err);
	return ret < 0 ? ret : ky_session_count_at(session, source, err);
}

/* Describe those of the chosen events that are new: is_new. */
static int add_new(struct ky_session *session, const bool *chosen, bool *is_new, bool *added,
		   struct kymo_error *err)
{
	for (size_t i = 0; i < session->kernel.catalogue.events.len; i++) {
		struct ky_event_source *source = &session->kernel.catalogue.events.data[i];
		int ret;

		if (!chosen[i] || source->selected)
			continue;
		ret = add_one(session, source, err);
		is_new[i] = source->selected;
		if (ret < 0)
			return ret;
		*added = true;
	}
	return *added ? ky_trace_class_finish(session->kernel.trace, true, err) : KYMO_OK;
}

static int session_change_switch_on(struct ky_session *session, const bool *chosen,
				    struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < session->kernel.catalogue.events.len && ret >= 0; i++) {
		struct ky_event_source *source = &session->kernel.catalogue.events.data[i];

		if (!chosen[i])
			continue;
		ret = ky_session_write_filter_anew(session, source, err);
		/* An event whose filter is never true stays off. */
		if (!ret)
			ret = switch_event(session, source, !source->never, err);
		if (ret < 0)
			source->off = true;
	}
	return ret < 0 ? ret : KYMO_OK;
}

/*
 * The description is written before the events are there. When something is wrong with the rule, nothing
 * changes.
 */
static int enable(struct ky_session *session, const char *rule, struct kymo_error *err)
{
	size_t n = session->kernel.catalogue.events.len;
	bool *chosen = calloc(2 * n, sizeof(*chosen)), *is_new = chosen + n, added = false;
	uint32_t needed_state = session->kernel.needed_state;
	const char *filter;
	int ret;

	if (!chosen)
		return ky_error_nomem(err);
	ret = ky_catalogue_match_rule(&session->kernel.catalogue, rule, chosen, &filter, err);
	if (!ret)
		ret = add_new(session, chosen, is_new, &added, err);
	if (!ret)
		ret = ky_kernel_trace_set_filter(&session->kernel, chosen, filter, err);
	if (ret < 0)
		remove_new(session, is_new, needed_state);
	if (!ret && added)
		ret = ky_kernel_trace_write_metadata(&session->kernel, err);
	if (!ret)
		ret = session_change_switch_on(session, chosen, err);
	free(chosen);
	return ret;
}

static int session_change_catch_up(struct ky_session *session, struct kymo_error *err)
{
	return session->options.raw ? KYMO_OK : ky_kernel_trace_read_past(&session->kernel, err);
}

int ky_session_change(struct ky_session *session, const char *rule, bool enables,
		      struct kymo_error *err)
{
	int ret = session_change_catch_up(session, err);

	if (ret < 0)
		return ret;
	return enables ? enable(session, rule, err) : disable(session, rule, err);
}

int ky_session_choose_comm(struct ky_session *session, const char *comm, struct kymo_error *err)
{
	const char *before = session->options.threads.comm, *copy = NULL;
	int ret = session_change_catch_up(session, err);

	if (!ret && session->options.raw)
		ret = ky_error_set(err, KYMO_E_STATE,
				   "a raw recording cannot change the name that selects threads");
	if (!ret && comm) {
		copy = ky_arena_strdup(&session->kernel.catalogue.arena, comm);
		if (!copy)
			ret = ky_error_nomem(err);
	}
	if (ret < 0)
		return ret;
	session->options.threads.comm = session->kernel.comm = copy;
	ky_vec_foreach(&session->kernel.catalogue.events, source) {
		if (!source->selected)
			continue;
		ret = ky_kernel_trace_bind_filter(&session->kernel, source, err);
		if (!ret)
			ret = ky_session_write_filter_anew(session, source, err);
		if (ret < 0)
			break;
	}
	if (ret < 0)
		session->options.threads.comm = session->kernel.comm = before;
	return ret;
}
