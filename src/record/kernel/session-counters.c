/* SPDX-License-Identifier: MIT */
/* Perf counters in the context of events: read by BPF at each event's tracepoint. */
#include "base/error.h"
#include "record/kernel/session-internal.h"

/* Readings and events match by time, so the conversion needs all CPUs' events in the order of time. */
int ky_session_open_counters(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_options *options = &session->options;
	int ret;

	if (!options->n_counters)
		return KYMO_OK;
	session->kernel.merge = true;
	session->kernel.counters =
		ky_counters_new(options->counters, options->n_counters, options->buffer_bytes);
	if (!session->kernel.counters)
		return ky_error_nomem(err);
	ret = ky_counters_load(session->kernel.counters, err);
	if (!ret)
		ky_convert_set_counters(&session->kernel.convert, session->kernel.counters);
	return ret;
}

int ky_session_count_at(struct ky_session *session, const struct ky_event_source *source,
			struct kymo_error *err)
{
	struct kymo_error local;
	int ret;

	if (!session->kernel.counters)
		return KYMO_OK;
	ret = ky_counters_attach(session->kernel.counters, source->system, source->event,
				 source->id, err ? err : &local);
	if (ret == KYMO_E_NOT_FOUND) {
		ky_log_warning(session->options.log,
			       "%s: this event has the counters of the previous event on its CPU",
			       source->name);
		return KYMO_OK;
	}
	if (!ret)
		ky_convert_set_counters_key(
			&session->kernel.convert, source->id,
			ky_counters_key(source->system, source->event, source->id));
	return ret;
}

int ky_session_attach_counters(struct ky_session *session, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&session->kernel.catalogue.events, source)
		if (!ret && source->selected && !source->never)
			ret = ky_session_count_at(session, source, err);
	return ret;
}
