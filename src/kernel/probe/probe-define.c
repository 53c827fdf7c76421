/* SPDX-License-Identifier: MIT */
/* Definitions of probes in the kernel's files: put there, taken away, and cleared of what killed recorders left. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "kernel/probe/probe-internal.h"

static const char *const definition_files[] = {"uprobe_events", "kprobe_events"};

static int probe_define_append(const struct ky_tracefs *fs, const char *file, const char *text,
			       size_t len)
{
	int fd = openat(fs->fd, file, O_WRONLY | O_APPEND | O_CLOEXEC), ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, len) != (ssize_t)len)
		ret = -errno;
	close(fd);
	return ret;
}

/* What the kernel's log of such errors says last, without the place in its line. */
static void add_reason(const struct ky_tracefs *fs, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *at, *last = NULL;

	if (ky_tracefs_read(fs->fd, fs->path, "error_log", &text, NULL) == 0) {
		for (at = ky_strbuf_text(&text); (at = strstr(at, "probe: error: ")); at++)
			last = at + 14;
		if (last)
			ky_error_hint(err, "the kernel says: %.*s", (int)strcspn(last, "\n"), last);
	}
	ky_strbuf_fini(&text);
}

/* Of a function that there is only as what the compiler has made of it, that. */
static int no_function(struct ky_probes *probes, const struct ky_probe_event *event,
		       struct kymo_error *err)
{
	int code = ky_error_set(err, KYMO_E_NOT_FOUND, "the kernel has no function for %s",
				event->name);
	struct ky_strbuf names = KY_STRBUF_INIT;
	char function[256] = "";

	if (event->places.len)
		snprintf(function, sizeof(function), "%.*s",
			 (int)strcspn(event->places.data[0], " +"), event->places.data[0]);
	if (ky_probe_clones_of(probes, NULL, function, &names) && !ky_strbuf_failed(&names))
		ky_error_hint(err, "the compiler made other functions of it: %s",
			      ky_strbuf_text(&names));
	else
		ky_error_hint(err, "/proc/kallsyms lists them; inlined ones have no place");
	ky_strbuf_fini(&names);
	return code;
}

static int probe_define_refused(struct ky_probes *probes, const struct ky_tracefs *fs,
				const struct ky_probe_event *event, int errnum,
				struct kymo_error *err)
{
	int code;

	if (errnum == ENOENT &&
	    faccessat(fs->fd, definition_files[event->is_kernel], F_OK, 0) < 0) {
		code = ky_error_set(err, KYMO_E_UNSUPPORTED, "this kernel has no %s",
				    event->is_kernel ? "kprobes" : "uprobes");
		ky_error_hint(err, "it was built without CONFIG_%s_EVENTS",
			      event->is_kernel ? "KPROBE" : "UPROBE");
		return code;
	}
	if (errnum == ENOENT && event->is_kernel)
		return no_function(probes, event, err);
	code = ky_error_errno(err, errnum, "the kernel refuses the probe %s", event->name);
	if (errnum == EINVAL || errnum == E2BIG || errnum == ENOSPC || errnum == EADDRNOTAVAIL)
		add_reason(fs, err);
	return code;
}

static int probe_define_define(struct ky_probes *probes, struct ky_probe_event *event,
			       const struct ky_tracefs *fs, struct kymo_error *err)
{
	ky_vec_foreach(&event->places, place) {
		struct ky_strbuf text = KY_STRBUF_INIT;
		int ret;

		ky_strbuf_addf(&text, "%c:%s/%s %s\n", event->type, probes->group, event->event,
			       *place);
		ret = ky_strbuf_failed(&text)
			      ? -ENOMEM
			      : probe_define_append(fs, definition_files[event->is_kernel],
						    ky_strbuf_text(&text), text.len);
		ky_strbuf_fini(&text);
		/* The compiler has put it twice at one place: once is what it is. */
		if (ret == -EEXIST && event->defined)
			continue;
		if (ret < 0)
			return probe_define_refused(probes, fs, event, -ret, err);
		event->defined = true;
	}
	return KYMO_OK;
}

int ky_probes_define(struct ky_probes *probes, const struct ky_tracefs *fs, struct kymo_error *err)
{
	ky_vec_foreach(&probes->events, event) {
		int ret = probe_define_define(probes, event, fs, err);

		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

/* The kernel lets go of an instance's events a moment after it. */
static int remove_definition(const struct ky_tracefs *fs, const char *file, const char *name)
{
	const struct timespec pause = {0, 5 * 1000 * 1000};
	char text[160];
	int len = snprintf(text, sizeof(text), "-:%.140s\n", name), ret;

	for (int i = 0; i < 200; i++) {
		ret = probe_define_append(fs, file, text, (size_t)len);
		if (ret != -EBUSY)
			return ret;
		nanosleep(&pause, NULL);
	}
	return ret;
}

void ky_probes_remove(struct ky_probes *probes, const struct ky_tracefs *fs)
{
	ky_vec_foreach(&probes->events, event) {
		char name[100];
		int ret;

		if (!event->defined)
			continue;
		event->defined = false;
		snprintf(name, sizeof(name), "%s/%s", probes->group, event->event);
		ret = remove_definition(fs, definition_files[event->is_kernel], name);
		if (ret < 0)
			ky_log_warning(probes->log, "cannot remove the probe %s: %s", name,
				       strerror(-ret));
	}
}

/* ---- what killed recorders left ------------------------------------------------------- */

/* "p:kymo_12_34_56/p0 /bin/sh:0x..." -> is kymo-12-34-56 dead? @name becomes "kymo_12_34_56/p0". */
static bool probe_define_is_stale(const char *line, char name[128])
{
	const char *colon = strchr(line, ':');
	char instance[64];
	size_t len;

	if (!colon)
		return false;
	len = strcspn(++colon, " \n");
	if (!ky_probes_is_group(colon) || len >= 128)
		return false;
	memcpy(name, colon, len);
	name[len] = '\0';
	len = strcspn(name, "/");
	if (len >= sizeof(instance))
		return false;
	memcpy(instance, name, len);
	instance[len] = '\0';
	for (char *c = instance; *c; c++)
		*c = *c == '_' ? '-' : *c;
	return ky_tracefs_is_stale(instance);
}

unsigned int ky_probes_clean(const struct ky_tracefs *fs, const struct ky_log *log)
{
	unsigned int removed = 0;

	for (size_t i = 0; i < 2; i++) {
		struct ky_strbuf text = KY_STRBUF_INIT;
		char name[128], last[128] = "";

		if (ky_tracefs_read(fs->fd, fs->path, definition_files[i], &text, NULL) == 0) {
			for (const char *line = ky_strbuf_text(&text); *line;
			     line += strcspn(line, "\n"), line += *line == '\n') {
				/* An event of several places is removed at once. */
				if (!probe_define_is_stale(line, name) || strcmp(name, last) == 0)
					continue;
				memcpy(last, name, sizeof(last));
				if (remove_definition(fs, definition_files[i], name) == 0)
					removed++;
				else
					ky_log_warning(log,
						       "cannot remove the probe %s of a dead "
						       "recorder",
						       name);
			}
		}
		ky_strbuf_fini(&text);
	}
	return removed;
}
