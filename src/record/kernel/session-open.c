/* SPDX-License-Identifier: MIT */
/* Opening a session: everything is checked and set up; what fails early fails here. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/events/compat-calls.h"
#include "kernel/events/events.h"
#include "kernel/events/native-calls.h"
#include "os/file.h"
#include "record/common/record-dir.h"
#include "record/kernel/session-internal.h"
#include "store/directory/directory-store.h"

/* Of patterns that are about programs too, those of no kernel event are no mistake; nor those of the state dump. */
static int session_open_exclude(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_options *options = &session->options;
	int ret;

	for (size_t i = 0; i < options->n_exclusions; i++) {
		uint32_t of_state = ky_statedump_match(options->exclusions[i]);

		session->dump.excluded |= of_state;
		ret = ky_catalogue_select(&session->kernel.catalogue, options->exclusions[i], false,
					  err);
		if (ret < 0 &&
		    !(ret == KYMO_E_NOT_FOUND && (of_state || options->exclusions_may_miss)))
			return ret;
	}
	return KYMO_OK;
}

/* A filter is a rule for the event, as people give them to --kernel. */
static int add_probe(struct ky_session *session, const struct ky_probe_event *event,
		     struct kymo_error *err)
{
	struct ky_strbuf rule = KY_STRBUF_INIT;
	int ret = ky_catalogue_add(&session->kernel.catalogue, session->probes.group, event->event,
				   event->name, !event->filter);

	if (ret < 0)
		return ky_error_nomem(err);
	if (!event->filter)
		return KYMO_OK;
	ky_strbuf_addf(&rule, "%s if %s", event->name, event->filter);
	ret = ky_strbuf_failed(&rule) ? ky_error_nomem(err)
				      : ky_catalogue_select_rule(&session->kernel.catalogue,
								 ky_strbuf_text(&rule), err);
	ky_strbuf_fini(&rule);
	return ret < 0 ? ret : KYMO_OK;
}

/* Look up all probes, then put them into the kernel, then they are events as others. */
static int add_probes(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_options *options = &session->options;
	int ret = KYMO_OK;

	/* Instances first: they hold the probes they record. */
	(void)ky_tracefs_clean(&session->fs, options->log);
	(void)ky_probes_clean(&session->fs, options->log);
	for (size_t i = 0; i < options->n_probes && !ret; i++)
		ret = ky_probes_add_function(&session->probes, options->probes[i], err);
	for (size_t i = 0; i < options->n_sdt && !ret; i++)
		ret = ky_probes_add_sdt(&session->probes, options->sdt[i], err);
	for (size_t i = 0; i < options->n_kprobes && !ret; i++)
		ret = ky_probes_add_kernel(&session->probes, options->kprobes[i], err);
	if (!ret)
		ret = ky_probes_define(&session->probes, &session->fs, err);
	if (!ret)
		ky_probes_tell(&session->probes);
	ky_vec_foreach(&session->probes.events, event) {
		if (ret < 0)
			break;
		ret = add_probe(session, event, err);
	}
	return ret;
}

static int session_open_select_events(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_options *options = &session->options;
	int ret = ky_catalogue_load(&session->kernel.catalogue, &session->fs, err);

	if (!ret && ky_catalogue_add_calls(&session->kernel.catalogue) < 0)
		ret = ky_error_nomem(err);
	if (!ret)
		ret = add_probes(session, err);
	if (ret < 0)
		return ret;
	if (!options->n_events && !options->only_probes && !options->only_groups &&
	    !options->only_samples)
		ky_catalogue_select_default(&session->kernel.catalogue);
	for (size_t i = 0; i < options->n_events && !ret; i++)
		ret = ky_catalogue_select_rule(&session->kernel.catalogue, options->events[i], err);
	if (!ret)
		ret = ky_session_select_groups(session, err);
	if (ret < 0)
		return ret;
	ret = session_open_exclude(session, err);
	if (ret < 0)
		return ret;
	ky_vec_foreach(&session->kernel.catalogue.events, source)
		if (source->selected)
			return KYMO_OK;
	if (options->n_samples)
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_INVALID, "'%s' selects no event",
			    options->n_events ? options->events[options->n_events - 1] : "default");
}

static void hide(struct ky_session *session, const char *system, const char *event)
{
	struct ky_event_source *source =
		ky_catalogue_find(&session->kernel.catalogue, system, event);

	if (source)
		source->hidden = true;
}

static void hide_calls_of_ids(struct ky_session *session)
{
	const char *call;
	char name[64];

	for (size_t i = 0; (call = ky_content_call_of_ids(i)); i++) {
		snprintf(name, sizeof(name), "sys_exit_%s", call);
		hide(session, "syscalls", name);
	}
}

/* Context fields, and the processes of sched_process_fork, need events beyond the selected ones. */
static void choose_helpers(struct ky_session *session)
{
	unsigned int context = session->options.context & KY_CONTEXT_OF_THREADS;
	const struct ky_event_source *fork =
		ky_catalogue_find(&session->kernel.catalogue, "sched", "sched_process_fork");

	session->kernel.merge = context != 0 && !session->options.raw;
	ky_vec_foreach(&session->kernel.catalogue.events, source)
		if (source->selected && source->of_bpf)
			*(ky_unknown_is_system(source->system) ? &session->kernel.has_unknown
							       : &session->kernel.has_compat) =
				true;
	session->kernel.has_threads =
		context || (fork && fork->selected) || ky_session_has_calls(session);
	if (!session->kernel.has_threads)
		return;
	hide(session, "task", "task_newtask");
	hide(session, "sched", "sched_process_exit");
	hide(session, "sched", "sched_process_exec");
	if (context & KY_CONTEXT_PROCNAME)
		hide(session, "task", "task_rename");
	if (context & (KY_CONTEXT_PRIO | KY_CONTEXT_NICE)) {
		hide(session, "sched", "sched_switch");
		hide(session, "sched", "sched_pi_setprio");
	}
	if (context & KY_CONTEXT_OF_IDS)
		hide_calls_of_ids(session);
	if (context & KY_CONTEXT_CGROUP)
		hide(session, "cgroup", "cgroup_attach_task");
}

/*
 * Content and calls match by time, so both need the same clock: the one of BPF's stamps. And the
 * conversion needs a thread's calls in their order, on all CPUs that it ran on.
 */
static int open_content(struct ky_session *session, struct kymo_error *err)
{
	const struct ky_session_options *options = &session->options;
	bool ids = (options->context & KY_CONTEXT_OF_IDS) != 0;
	bool needed = options->syscall_content || ky_session_has_calls(session);
	bool unknown[KY_CONTENT_MAX_CALLS];
	int ret;

	if (!needed && !ids)
		return KYMO_OK;
	session->kernel.merge = true;
	session->kernel.content = ky_content_new(
		options->syscall_content, options->content_bytes, ids, options->buffer_bytes,
		(uint32_t)ky_pid_to_kernel(&session->view, getpid()));
	if (!session->kernel.content)
		return ky_error_nomem(err);
	if (session->kernel.has_compat)
		ky_content_want_compat(session->kernel.content);
	if (session->kernel.has_unknown) {
		ky_native_calls_unknown(&session->kernel.catalogue, unknown);
		ky_content_want_unknown(session->kernel.content, unknown);
	}
	ky_vec_foreach(&session->kernel.catalogue.events, source)
		if ((source->selected || source->hidden) && strcmp(source->system, "syscalls") == 0)
			ky_content_select(session->kernel.content, source->event);
	ret = ky_content_load(session->kernel.content, err);
	if (ret < 0 && !needed) {
		ky_log_warning(
			options->log,
			"users, groups, namespaces, ids in them and control groups are as /proc "
			"has them some time after each change: %s%s%s",
			err ? err->message : "BPF is not available",
			err && err->hint[0] ? ": " : "", err ? err->hint : "");
		ky_content_free(session->kernel.content);
		session->kernel.content = NULL;
		return KYMO_OK;
	}
	session->kernel.convert.content = session->kernel.content;
	return ret;
}

int ky_session_init_convert(struct ky_session *session, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret =
		ky_tracefs_read(session->fs.fd, session->fs.path, "events/header_page", &text, err);

	if (!ret)
		ret = ky_page_layout_parse(ky_strbuf_text(&text), text.len,
					   &session->kernel.page_layout, err);
	if (!ret)
		ret = ky_convert_init(&session->kernel.convert, session->options.context, err);
	ky_strbuf_fini(&text);
	if (ret < 0)
		return ret;
	session->kernel.convert.own_tids[KY_OWN_MAIN] = ky_pid_to_kernel(&session->view, getpid());
	if (session->kernel.has_threads) {
		ret = ky_threads_init(&session->kernel.threads, err);
		session->kernel.threads.view = &session->view;
		session->kernel.threads.wants_ids =
			(session->options.context & KY_CONTEXT_OF_IDS) != 0;
		session->kernel.convert.threads = &session->kernel.threads;
	}
	return ret;
}

static int session_open_output(struct ky_session *session, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (session->options.store && session->options.raw)
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "raw pages can only be written to a directory of this machine");
	if (session->own_store)
		ret = ky_record_dir_make(session->output, &session->made_output, err);
	if (!ret && session->options.raw)
		ret = ky_raw_make_dir(session, err);
	if (!ret)
		ret = ky_session_open_packets(session, err);
	return ret < 0 ? ret : ky_session_open_groups(session, err);
}

void ky_session_remove_output(struct ky_session *session)
{
	char path[4200];

	if (session->options.raw) {
		snprintf(path, sizeof(path), "%s/raw", session->output);
		(void)rmdir(path);
	}
	if (session->made_output)
		(void)rmdir(session->output);
}

static int session_open_make_fds(struct ky_session *session, struct kymo_error *err)
{
	session->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (session->epoll_fd < 0)
		return ky_error_errno(err, errno, "cannot set up the event loop");
	return ky_session_dump_open(session, err);
}

/* In a pid namespace; without knowing which ids are which all but choosing goes on. */
static void look_at_ids(struct ky_session *session)
{
	if (ky_pid_view_open(&session->view, &session->blind) == 0)
		return;
	ky_log_warning(
		session->options.log,
		"this pid namespace has other thread IDs than the kernel, and the mapping is "
		"unknown: the state dump and context fields may have wrong IDs: %s",
		session->blind.message);
}

static int session_open_all(struct ky_session *session, struct kymo_error *err)
{
	int ret = ky_tracefs_open(&session->fs, err);

	if (ret < 0)
		return ret;
	look_at_ids(session);
	ret = session_open_make_fds(session, err);
	if (!ret)
		ret = ky_kernel_trace_make_uuid(&session->kernel, err);
	if (!ret)
		ret = session_open_select_events(session, err);
	if (!ret)
		ret = ky_session_choose_stacks(session, err);
	if (!ret)
		ret = ky_session_find_samples(session, err);
	if (ret < 0)
		return ret;
	choose_helpers(session);
	ret = ky_os_clock_init(&session->kernel.clock, session->options.clock, err);
	if (!ret)
		ret = ky_session_init_convert(session, err);
	if (!ret)
		ret = open_content(session, err);
	if (!ret)
		ret = ky_session_open_counters(session, err);
	if (!ret)
		ret = ky_kernel_trace_build(&session->kernel, err);
	if (!ret)
		ret = session_open_output(session, err);
	if (!ret && session->blocks)
		session->kernel.convert.own_tids[KY_OWN_WRITER] =
			ky_pid_to_kernel(&session->view, ky_block_writer_tid(session->blocks));
	if (!ret)
		ret = ky_session_setup_instance(session, err);
	if (!ret)
		ret = ky_session_open_cpus(session, err);
	if (!ret)
		ret = ky_session_open_samples(session, err);
	if (!ret && session->options.raw && session->blocks)
		ret = ky_raw_direct_open(session, err);
	if (!ret)
		ret = ky_kernel_trace_write_metadata(&session->kernel, err);
	return ret;
}

/* What the conversion has to know of the options. */
static void set_up_trace(struct ky_session *session)
{
	const struct ky_session_options *options = &session->options;
	struct ky_kernel_trace *kernel = &session->kernel;

	kernel->name = session->output;
	kernel->identity_kymo = options->identity_kymo;
	kernel->context = options->context;
	kernel->comm = options->threads.comm;
	kernel->fs = &session->fs;
	kernel->instance = &session->instance;
	kernel->log = options->log;
	kernel->view = &session->view;
	kernel->buffer_bytes = options->buffer_bytes;
	kernel->keeps_constants = options->raw;
}

int ky_session_new(const struct ky_session_options *options, struct ky_session **out,
		   struct kymo_error *err)
{
	struct ky_session *session = calloc(1, sizeof(*session));

	*out = NULL;
	if (!session)
		return ky_error_nomem(err);
	session->options = *options;
	session->fs.fd = session->instance.fd = session->watch.instance.fd = session->watch.fd = -1;
	session->epoll_fd = -1;
	session->dump.order_fd = session->dump.done_fd = session->dump.tid_fd = -1;
	for (size_t i = 0; i < KY_SESSION_GROUPS_MAX; i++)
		session->buffers[i].instance.fd = -1;
	for (size_t i = 0; i < options->n_groups && i < KY_SESSION_GROUPS_MAX; i++)
		session->buffers[i].group = &options->groups[i];
	for (uint32_t i = 0; i < KY_SESSION_GROUPS_MAX; i++)
		session->buffers[i].number = i + 1;
	ky_map_init(&session->chosen_tids);
	ky_map_init(&session->removed);
	ky_map_init(&session->samples.left_out);
	ky_kernel_trace_init(&session->kernel);
	ky_probes_init(&session->probes, options->log);
	session->output = strdup(options->output);
	session->store = options->store;
	set_up_trace(session);
	if (session->output && !options->store &&
	    ky_directory_store_open(session->output, &session->own_store, err) == 0)
		session->store = session->own_store;
	if (!session->output || !session->store) {
		(void)ky_session_close(session, NULL);
		return ky_error_nomem(err);
	}
	session->raw_output = session->output;
	/* Each CPU takes up to five. */
	ky_file_raise_limit();
	*out = session;
	return KYMO_OK;
}

int ky_session_open(const struct ky_session_options *options, struct ky_session **out,
		    struct kymo_error *err)
{
	struct ky_session *session;
	int ret = ky_session_new(options, &session, err);

	*out = NULL;
	if (ret < 0)
		return ret;
	ret = session_open_all(session, err);
	if (ret < 0) {
		(void)ky_session_close(session, NULL);
		return ret;
	}
	*out = session;
	return KYMO_OK;
}
