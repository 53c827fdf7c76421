/* SPDX-License-Identifier: MIT */
/*
 * Groups of events with buffers of their own: each has a tracefs instance, and a stream for each CPU in
 * the session's trace. So frequent events do not push out the rare ones.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "record/kernel/session-internal.h"
#include "store/packets/memory-trace.h"

const struct ky_instance *ky_session_instance_at(const struct ky_session *session, size_t i)
{
	if (!i)
		return &session->instance;
	return i <= session->options.n_groups ? &session->buffers[i - 1].instance : NULL;
}

const struct ky_instance *ky_session_instance_of(const struct ky_session *session,
						 const struct ky_event_source *source)
{
	return ky_session_instance_at(session, source->group);
}

int ky_session_write_all(const struct ky_session *session, const char *name, const char *text,
			 struct kymo_error *err)
{
	const struct ky_instance *instance;
	int ret = KYMO_OK;

	for (size_t i = 0; !ret && (instance = ky_session_instance_at(session, i)); i++)
		ret = ky_instance_write(instance, name, text, err);
	return ret;
}

static int select_group(struct ky_session *session, size_t number, struct kymo_error *err)
{
	struct ky_catalogue *catalogue = &session->kernel.catalogue;
	const char *rule = session->options.groups[number - 1].events, *filter;
	bool *chosen = calloc(catalogue->events.len, sizeof(*chosen));
	int ret;

	if (!chosen)
		return ky_error_nomem(err);
	ret = ky_catalogue_match_rule(catalogue, rule, chosen, &filter, err);
	if (!ret)
		ret = ky_catalogue_select_rule(catalogue, rule, err);
	for (size_t i = 0; i < catalogue->events.len && ret >= 0; i++) {
		struct ky_event_source *source = &catalogue->events.data[i];

		if (chosen[i] && source->of_bpf)
			ret = ky_error_set(err, KYMO_E_UNSUPPORTED,
					   "%s: calls of 32-bit programs and unknown calls have no "
					   "group",
					   source->name);
		else if (chosen[i] && source->selected)
			source->group = (unsigned int)number;
	}
	free(chosen);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_session_select_groups(struct ky_session *session, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (session->options.n_groups > KY_SESSION_GROUPS_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "more than %d groups",
				    KY_SESSION_GROUPS_MAX);
	if (session->options.n_groups && session->options.raw)
		return ky_error_set(err, KYMO_E_UNSUPPORTED, "a raw recording has no groups");
	for (size_t i = 0; i < session->options.n_groups && !ret; i++)
		ret = select_group(session, i + 1, err);
	return ret;
}

int ky_session_open_groups(struct ky_session *session, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < session->options.n_groups && !ret; i++) {
		struct ky_session_buffers *buffers = &session->buffers[i];

		if (buffers->group->overwrite || session->options.overwrite)
			ret = ky_memory_trace_open(buffers->group->buffer_bytes, &buffers->packets,
						   err);
	}
	return ret;
}

void ky_session_close_groups(struct ky_session *session)
{
	for (size_t i = 0; i < KY_SESSION_GROUPS_MAX; i++) {
		(void)ky_store_close(session->buffers[i].packets, NULL);
		session->buffers[i].packets = NULL;
	}
}

/* Copies or moves the events of groups that overwrite; adds their number to *events. */
static int session_buffers_take_groups(struct ky_session *session, struct ky_store_trace *to,
				       bool moves, uint64_t *events, struct kymo_error *err)
{
	uint64_t n = 0;
	int ret = KYMO_OK;

	pthread_mutex_lock(&session->kernel.sink_lock);
	for (size_t i = 0; i < session->options.n_groups && !ret; i++) {
		struct ky_session_buffers *buffers = &session->buffers[i];

		if (!buffers->packets)
			continue;
		ret = moves ? ky_memory_trace_move_events(buffers->packets, to, &n, err)
			    : ky_memory_trace_copy_events(buffers->packets, to, &n, err);
		if (!moves)
			buffers->kept = n;
		*events += n;
	}
	pthread_mutex_unlock(&session->kernel.sink_lock);
	return ret;
}

int ky_session_copy_groups(struct ky_session *session, struct ky_store_trace *to, uint64_t *events,
			   struct kymo_error *err)
{
	return session_buffers_take_groups(session, to, false, events, err);
}

int ky_session_move_groups(struct ky_session *session, uint64_t *events, struct kymo_error *err)
{
	return session_buffers_take_groups(session, session->kernel.packets, true, events, err);
}

bool ky_session_has_flight_groups(const struct ky_session *session)
{
	for (size_t i = 0; i < session->options.n_groups; i++)
		if (session->buffers[i].packets && !session->options.overwrite)
			return true;
	return false;
}
