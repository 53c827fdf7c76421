/* SPDX-License-Identifier: MIT */
/*
 * The recorder's own system calls, in raw recordings. Other recordings drop them at once, during the conversion. A raw
 * recording keeps the whole content of the rings, and a flight recorder has no other room than these. So while the
 * recorder makes many calls, for a state dump or a snapshot, a filter of the kernel excludes the recorder's threads from
 * all events of system calls. The filter costs each call of every process about 60 ns, so it is removed afterwards. Each
 * change takes two writes of some milliseconds; meanwhile the converter applies the filters of single events.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "record/kernel/session-internal.h"

#define SYSTEM "syscalls"

static bool has_calls(const struct ky_session *session)
{
	ky_vec_foreach(&session->kernel.catalogue.events, source)
		if ((source->selected || source->hidden) && !source->of_bpf &&
		    strcmp(source->system, SYSTEM) == 0)
			return true;
	return false;
}

/* "common_pid != 1 && common_pid != 2". "0" is the kernel's word for no filter. */
static void say_others(const struct ky_session *session, char *text, size_t size)
{
	size_t len = 0;

	snprintf(text, size, "0");
	for (int i = 0; i < KY_CONVERT_OWN_TIDS && len < size; i++)
		if (session->kernel.convert.own_tids[i])
			len += (size_t)snprintf(text + len, size - len, "%scommon_pid != %" PRId32,
						len ? " && " : "",
						session->kernel.convert.own_tids[i]);
}

/* What an event has of its own has to be said again, since the system's replaces it. */
static void write_again(struct ky_session *session, const struct ky_event_source *source,
			const char *others)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char name[400];

	snprintf(name, sizeof(name), "events/%s/%s/filter", source->system, source->event);
	if (others)
		ky_strbuf_addf(&text, "(%s) && %s", source->kernel_filter, others);
	else
		ky_strbuf_adds(&text, source->kernel_filter);
	/* Where the kernel takes no more, it records more: what is not wanted is left out when records are converted. */
	if (!ky_strbuf_failed(&text))
		(void)ky_instance_write(&session->instance, name, ky_strbuf_text(&text), NULL);
	ky_strbuf_fini(&text);
}

void ky_session_hide_own(struct ky_session *session, bool hides)
{
	char others[KY_CONVERT_OWN_TIDS * 32];

	/* A recording of processes by name does not contain the recorder. */
	if (!(session->options.raw || session->options.prompt) || session->options.threads.comm ||
	    session->hides_own == hides || !has_calls(session))
		return;
	session->hides_own = hides;
	say_others(session, others, sizeof(others));
	if (ky_instance_write(&session->instance, "events/" SYSTEM "/filter", hides ? others : "0",
			      NULL) < 0)
		return;
	ky_vec_foreach(&session->kernel.catalogue.events, source)
		if (source->kernel_filter && strcmp(source->system, SYSTEM) == 0)
			write_again(session, source, hides ? others : NULL);
}
