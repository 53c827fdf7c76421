/* SPDX-License-Identifier: MIT */
/* The tracefs instance of a session: clock, buffers, events, processes. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "record/kernel/session-internal.h"

/*
 * Large sub-buffers, since each costs the reader some system calls; but enough of them that
 * the one being written and the one being read are a small part of the ring.
 */
#define SUBBUF_MAX_KIB 64
#define SUBBUFS_MIN    16
/* Of raw pages nothing is wanted but that they get to the disk. */
#define RAW_SUBBUF_MAX_KIB (KY_RAW_BLOCK_BYTES / 1024)
#define RAW_SUBBUFS_MIN	   8
/* What is tried next where memory is too fragmented for the size: so much less. */
#define SUBBUF_STEP 4

/* Wake the recorder when a ring is filled to a quarter: three quarters are there for bursts. */

static void choose_page_size(const struct ky_instance *instance, uint64_t buffer_bytes,
			     uint64_t kib, uint64_t n_min, uint32_t *page_bytes)
{
	uint64_t page_kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	struct ky_strbuf text = KY_STRBUF_INIT;

	while (kib > page_kib && kib * 1024 * n_min > buffer_bytes)
		kib /= 2;
	/* Before Linux 6.8 there is no choice; and memory may be too fragmented. */
	while (ky_instance_write_u64(instance, "buffer_subbuf_size_kb", kib, NULL) ==
		       KYMO_E_MEMORY &&
	       kib > page_kib)
		kib /= 2;
	*page_bytes = (uint32_t)page_kib * 1024;
	if (ky_tracefs_read(instance->fd, instance->path, "buffer_subbuf_size_kb", &text, NULL) ==
	    0) {
		kib = strtoull(ky_strbuf_text(&text), NULL, 10);
		if (kib >= page_kib && kib <= 1024)
			*page_bytes = (uint32_t)kib * 1024;
	}
	ky_strbuf_fini(&text);
}

/* The kernel would take all memory that there is before it says that there is not enough. */
static int check_memory(uint64_t kib, struct kymo_error *err)
{
	uint64_t n_cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t page_kib = (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
	uint64_t memory_kib = (uint64_t)sysconf(_SC_PHYS_PAGES) * page_kib;

	if (kib * n_cpus < memory_kib)
		return KYMO_OK;
	ky_error_set(err, KYMO_E_MEMORY,
		     "%" PRIu64 " KiB of buffer on each of %" PRIu64
		     " CPUs are more than the machine's memory of %" PRIu64
		     " KiB; try smaller buffers",
		     kib, n_cpus, memory_kib);
	ky_error_input(err, "buffer size");
	return KYMO_E_MEMORY;
}

static int set_buffers(const struct ky_session *session, const struct ky_instance *instance,
		       uint64_t buffer_bytes, uint32_t *page_bytes, struct kymo_error *err)
{
	bool in_blocks = session->options.raw && !session->options.overwrite;
	uint64_t kib = (buffer_bytes + 1023) / 1024;
	uint64_t subbuf_kib = in_blocks ? RAW_SUBBUF_MAX_KIB : SUBBUF_MAX_KIB;
	int ret = check_memory(kib, err);

	if (ret < 0)
		return ret;
	/* Memory that cannot be had in large pieces may be had in smaller ones. */
	for (;; subbuf_kib = *page_bytes / 1024 / SUBBUF_STEP) {
		choose_page_size(instance, buffer_bytes, subbuf_kib,
				 in_blocks ? RAW_SUBBUFS_MIN : SUBBUFS_MIN, page_bytes);
		ret = ky_instance_write_u64(instance, "buffer_size_kb", kib, err);
		if (ret != KYMO_E_MEMORY || *page_bytes <= (uint32_t)sysconf(_SC_PAGESIZE))
			break;
	}
	if (ret == KYMO_E_MEMORY) {
		ky_error_input(err, "buffer size");
		ky_error_hint(err,
			      "not enough memory for %" PRIu64 " KiB of buffer on each CPU; "
			      "try smaller buffers",
			      kib);
	}
	if (ret < 0)
		return ret;
	/* Kernels before 6.10 have no such file for an instance; they wake at the first page. */
	(void)ky_instance_write_u64(instance, "buffer_percent",
				    session->options.prompt ? 0 : KY_SESSION_WAKE_PERCENT, NULL);
	return KYMO_OK;
}

/* ---- events --------------------------------------------------------------------------- */

static bool session_setup_is_wanted(const struct ky_event_source *source)
{
	/* ftrace's records have no switch: triggers and options have. Some calls are not tracefs's. */
	return !source->of_bpf && !source->off &&
	       ((source->selected && !source->never) || source->hidden) &&
	       strcmp(source->system, "ftrace") != 0;
}

/* One write for a whole system is quicker than hundreds; only when all of it is wanted. */
static bool enable_system(struct ky_session *session, size_t from, size_t to)
{
	const struct ky_event_source *sources = session->kernel.catalogue.events.data;
	char name[300];

	for (size_t i = from; i < to; i++)
		if (!session_setup_is_wanted(&sources[i]) ||
		    sources[i].group != sources[from].group)
			return false;
	snprintf(name, sizeof(name), "events/%s/enable", sources[from].system);
	return ky_instance_write(ky_session_instance_of(session, &sources[from]), name, "1",
				 NULL) == 0;
}

static int enable_event(struct ky_session *session, const struct ky_event_source *source,
			struct kymo_error *err)
{
	char name[400];
	int ret;

	snprintf(name, sizeof(name), "events/%s/%s/enable", source->system, source->event);
	ret = ky_instance_write(ky_session_instance_of(session, source), name, "1", err);
	if (ret < 0 && ret != KYMO_E_MEMORY) {
		ky_log_warning(session->options.log, "the kernel refuses event %s:%s: %s",
			       source->system, source->event, err ? err->message : "");
		return 0;
	}
	return ret < 0 ? ret : 1;
}

static int enable_events(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_event_source *sources = session->kernel.catalogue.events.data;
	size_t n = session->kernel.catalogue.events.len, to;
	struct kymo_error local;
	int ret, enabled = 0;

	ky_vec_foreach(&session->kernel.catalogue.events, source) {
		ret = source->kernel_filter ? ky_session_write_filter(session, source, err) : 0;
		if (ret < 0)
			return ret;
	}
	for (size_t from = 0; from < n; from = to) {
		for (to = from + 1; to < n && strcmp(sources[from].system, sources[to].system) == 0;
		     to++)
			;
		if (enable_system(session, from, to)) {
			enabled++;
			continue;
		}
		for (size_t i = from; i < to; i++) {
			if (!session_setup_is_wanted(&sources[i]))
				continue;
			ret = enable_event(session, &sources[i], err ? err : &local);
			if (ret < 0)
				return ret;
			enabled += ret;
		}
	}
	if (!enabled && !ky_session_has_calls(session) && !session->options.only_samples)
		return ky_error_set(err, KYMO_E_IO, "the kernel refuses all of these events");
	return KYMO_OK;
}

/* Now that filters are known: what is true of none is not recorded. */
static void enable_calls(struct ky_session *session)
{
	ky_vec_foreach(&session->kernel.catalogue.events, source)
		if (source->of_bpf && source->selected && !source->never && !source->off)
			ky_content_select_call(session->kernel.content, source->system,
					       source->event, true);
}

int ky_session_switch_on(struct ky_session *session, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (ky_session_has_calls(session))
		enable_calls(session);
	/* Before the events: content and counters are then there before the event is in the ring. */
	if (session->kernel.content)
		ret = ky_content_attach(session->kernel.content, err);
	if (!ret && session->kernel.counters)
		ret = ky_session_attach_counters(session, err);
	if (!ret)
		ret = enable_events(session, err);
	return ret < 0 ? ret : ky_session_write_stacks(session, err);
}

/* ---- all of it ------------------------------------------------------------------------- */

/* All of them, before an event is on in any. */
static int session_setup_make_instances(struct ky_session *session, struct kymo_error *err)
{
	struct ky_tracefs_names names;
	char suffix[80];
	int ret;

	ky_tracefs_save_no_names(&session->fs, &names);
	ret = ky_instance_create(&session->fs, "", &session->instance, err);
	for (size_t i = 0; i < session->options.n_groups && !ret; i++) {
		struct ky_session_buffers *buffers = &session->buffers[i];

		snprintf(suffix, sizeof(suffix), "-%s", buffers->group->name);
		ret = ky_instance_create(&session->fs, suffix, &buffers->instance, err);
	}
	ky_tracefs_save_names(&session->fs, &names);
	return ret;
}

static int session_setup_prepare(struct ky_session *session, const struct ky_instance *instance,
				 uint64_t buffer_bytes, uint32_t *page_bytes,
				 struct kymo_error *err)
{
	int ret =
		ky_instance_write(instance, "trace_clock", session->kernel.clock.tracefs_name, err);

	return ret < 0 ? ret : set_buffers(session, instance, buffer_bytes, page_bytes, err);
}

static int session_setup_prepare_all(struct ky_session *session, struct kymo_error *err)
{
	int ret = session_setup_prepare(session, &session->instance, session->options.buffer_bytes,
					&session->kernel.page_bytes, err);

	for (size_t i = 0; i < session->options.n_groups && !ret; i++) {
		struct ky_session_buffers *buffers = &session->buffers[i];

		ret = session_setup_prepare(session, &buffers->instance,
					    buffers->group->buffer_bytes, &buffers->page_bytes,
					    err);
	}
	return ret;
}

int ky_session_setup_instance(struct ky_session *session, struct kymo_error *err)
{
	int ret = session_setup_make_instances(session, err);

	if (!ret)
		ret = session_setup_prepare_all(session, err);
	if (!ret)
		ret = ky_session_find_switches(session, err);
	if (!ret)
		ret = ky_session_choose_threads(session, err);
	if (!ret)
		ret = ky_session_switch_on(session, err);
	if (!ret)
		ky_kernel_trace_log_filters(&session->kernel);
	return ret;
}
