/* SPDX-License-Identifier: MIT */
/* A ring of the boot before becomes a raw recording, and that a trace: a session that only reads. */
#include "record/kernel/persistent-ring.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "record/common/record-dir.h"
#include "record/kernel/raw.h"
#include "record/kernel/session-internal.h"

static bool has(const char *dir, const char *name)
{
	char path[4200];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

bool ky_persistent_ring_is_instance(const char *dir)
{
	return has(dir, "tracing_on") && has(dir, "per_cpu") && has(dir, "set_event");
}

bool ky_persistent_ring_is_mapped(const char *dir)
{
	return ky_persistent_ring_is_instance(dir) && has(dir, "last_boot_info");
}

/* ---- the instance --------------------------------------------------------------------- */

static int bad_state(const struct ky_session *session, const char *what, const char *hint,
		     struct kymo_error *err)
{
	int code = ky_error_set(err, KYMO_E_STATE, "%s", what);

	ky_error_path(err, session->instance.path);
	ky_error_hint(err, "%s", hint);
	return code;
}

static int persistent_ring_read_text(const struct ky_session *session, const char *name,
				     struct ky_strbuf *text, struct kymo_error *err)
{
	ky_strbuf_clear(text);
	return ky_tracefs_read(session->instance.fd, session->instance.path, name, text, err);
}

/* A recording in progress adds this boot's events to the old ones. */
static int check_idle(const struct ky_session *session, struct ky_strbuf *text,
		      struct kymo_error *err)
{
	bool on;
	int ret = persistent_ring_read_text(session, "tracing_on", text, err);

	on = !ret && ky_strbuf_text(text)[0] != '0';
	if (on)
		ret = persistent_ring_read_text(session, "set_event", text, err);
	if (ret < 0 || !on || text->len == 0)
		return ret;
	return bad_state(
		session, "this boot records into it",
		"the earlier boot's events are gone, or mixed with this boot's events; to keep "
		"them, boot with trace_instance=NAME^traceoff@trace; to recover the buffer as it "
		"is, write 0 to its tracing_on",
		err);
}

/* Linux 6.15 says "# Current" where 6.12 says nothing. */
static int check_content(const struct ky_session *session, struct ky_strbuf *text,
			 struct kymo_error *err)
{
	int ret = persistent_ring_read_text(session, "last_boot_info", text, err);

	if (ret < 0 || !strstr(ky_strbuf_text(text), "# Current"))
		return ret;
	return bad_state(session, "it has no events of the boot before",
			 "its memory was lost or used for something else, or its events were read",
			 err);
}

/* Of "local [x86-tsc] mono", the one in brackets. */
static void choose_clock(struct ky_session *session, const char *text)
{
	struct ky_os_clock *clock = &session->kernel.clock;
	bool tsc = strstr(text, "[x86-tsc]");

	/* The machine's rate is what it was. Its counter's zero was another. */
	if (!tsc || ky_os_clock_init(clock, KY_OS_CLOCK_TSC, NULL) < 0)
		clock->frequency_hz = 1000000000;
	clock->name = "previous_boot";
	clock->description = "The clock of the boot before, from about its beginning";
	clock->offset_s = clock->offset_cycles = 0;
	clock->precision_ns = 0;
	memcpy(clock->uuid, session->kernel.uuid, sizeof(clock->uuid));
}

static int persistent_ring_open_instance(struct ky_session *session, const char *dir,
					 struct kymo_error *err)
{
	struct ky_instance *instance = &session->instance;
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint64_t kib;
	int ret;

	snprintf(instance->path, sizeof(instance->path), "%s", dir);
	instance->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (instance->fd < 0) {
		ret = ky_error_errno(err, errno, "cannot open the instance");
		ky_error_path(err, dir);
		return ret;
	}
	ret = check_content(session, &text, err);
	if (!ret)
		ret = check_idle(session, &text, err);
	if (!ret)
		ret = persistent_ring_read_text(session, "trace_clock", &text, err);
	if (!ret) {
		choose_clock(session, ky_strbuf_text(&text));
		ret = persistent_ring_read_text(session, "buffer_subbuf_size_kb", &text, err);
	}
	if (!ret) {
		kib = strtoull(ky_strbuf_text(&text), NULL, 10);
		session->kernel.page_bytes = (uint32_t)(kib >= 1 && kib <= 1024 ? kib : 4) * 1024;
	}
	ky_strbuf_fini(&text);
	return ret;
}

/* All events of this kernel: nothing says which ones were recorded. */
static int select_all(struct ky_session *session, struct kymo_error *err)
{
	/* What programs and the kernel wrote as text: no event that can be recorded, but it may be there. */
	static const char *const others[] = {"print", "function"};
	int ret = ky_catalogue_load(&session->kernel.catalogue, &session->fs, err);

	if (!ret)
		ret = ky_catalogue_select_rule(&session->kernel.catalogue, "*", err);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && ret >= 0; i++) {
		char path[200];

		snprintf(path, sizeof(path), "%s/events/ftrace/%s/format", session->fs.path,
			 others[i]);
		if (access(path, R_OK) == 0 &&
		    ky_catalogue_add(&session->kernel.catalogue, "ftrace", others[i], others[i],
				     true) < 0)
			ret = ky_error_nomem(err);
	}
	return ret < 0 ? ret : KYMO_OK;
}

/* ---- the raw recording ---------------------------------------------------------------- */

static int persistent_ring_open_output(struct ky_session *session, struct kymo_error *err)
{
	int ret = ky_record_dir_make(session->output, &session->made_output, err);

	if (!ret)
		ret = ky_raw_make_dir(session, err);
	if (!ret)
		ret = ky_block_writer_open(&session->blocks, KY_BLOCK_BYTES, err);
	return ret < 0 ? ret
		       : ky_store_open(session->store, &ky_raw_state_place,
				       &session->kernel.packets, err);
}

/* The time of the first page of all: packets begin there. */
static void find_start(struct ky_session *session)
{
	uint64_t first = UINT64_MAX, time;
	char path[4200];

	ky_vec_foreach(&session->cpus, cpu) {
		int fd;

		snprintf(path, sizeof(path), "%s/raw/cpu%u", session->output,
			 (*cpu)->kernel.convert.cpu);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			continue;
		if (pread(fd, &time, sizeof(time), session->kernel.page_layout.time_offset) ==
			    (ssize_t)sizeof(time) &&
		    time < first)
			first = time;
		close(fd);
	}
	session->kernel.start_cycles = first == UINT64_MAX ? 0 : first;
}

static int persistent_ring_prepare(struct ky_session *session, const char *dir,
				   struct kymo_error *err)
{
	int ret = ky_tracefs_open(&session->fs, err);

	if (!ret)
		ret = ky_kernel_trace_make_uuid(&session->kernel, err);
	if (!ret)
		ret = persistent_ring_open_instance(session, dir, err);
	if (!ret)
		ret = select_all(session, err);
	if (!ret)
		ret = ky_session_init_convert(session, err);
	if (!ret)
		ret = ky_kernel_trace_build(&session->kernel, err);
	if (!ret)
		session->kernel.clock_class->is_unix_epoch = false;
	return ret;
}

static int persistent_ring_take_pages(struct ky_session *session, struct kymo_error *err)
{
	int ret = persistent_ring_open_output(session, err);

	if (!ret)
		ret = ky_session_open_cpus(session, err);
	if (!ret)
		ret = ky_kernel_trace_write_metadata(&session->kernel, err);
	/* From here on, what is there stays. */
	session->started = !ret;
	if (!ret)
		ret = ky_raw_describe(session, 0, err);
	if (!ret)
		ret = ky_raw_round(session, true, err);
	find_start(session);
	if (!ret)
		ret = ky_raw_count(session, err);
	if (!ret)
		ret = ky_raw_finish(session, session->kernel.start_cycles, err);
	return ret;
}

static int make_raw(const char *dir, const char *output, const struct ky_log *log, uint64_t *bytes,
		    struct kymo_error *err)
{
	const struct ky_session_options options = {.output = output,
						   .threads.uid = -1,
						   .raw = true,
						   .reader = KY_CPU_RING_READ,
						   .log = log};
	struct ky_session *session;
	int ret = ky_session_new(&options, &session, err), closed;

	if (ret < 0)
		return ret;
	ret = persistent_ring_prepare(session, dir, err);
	if (!ret)
		ret = persistent_ring_take_pages(session, err);
	*bytes = session->raw_bytes;
	/* The instance is not ours to remove. */
	if (session->instance.fd >= 0)
		close(session->instance.fd);
	session->instance.fd = -1;
	session->instance.path[0] = '\0';
	closed = ky_session_close(session, ret < 0 ? NULL : err);
	return ret < 0 ? ret : closed;
}

int ky_persistent_ring_recover(const char *dir, const char *output, const struct ky_log *log,
			       struct ky_persistent_ring_stats *stats, struct kymo_error *err)
{
	struct ky_raw_stats raw = {0};
	uint64_t bytes = 0;
	char path[4200];
	int ret;

	memset(stats, 0, sizeof(*stats));
	if (snprintf(path, sizeof(path), "%s-raw", output) >= 4000)
		return ky_error_set(err, KYMO_E_INVALID, "the path is too long");
	ret = make_raw(dir, path, log, &bytes, err);
	if (!ret && !bytes) {
		ret = ky_error_set(err, KYMO_E_STATE, "it is empty");
		ky_error_path(err, dir);
		ky_tree_remove(path);
		return ret;
	}
	if (!ret)
		ret = ky_raw_convert_to_directory(path, output, log, &raw, err);
	stats->events = raw.events;
	stats->lost = raw.lost;
	stats->bad = raw.bad;
	if (ret < 0)
		return ret;
	ky_tree_remove(path);
	return KYMO_OK;
}
