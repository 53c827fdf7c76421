/* SPDX-License-Identifier: MIT */
#include "kernel/events/catalogue.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/events/compat-calls.h"
#include "kernel/events/events.h"
#include "kernel/events/print-fmt.h"
#include "kernel/probe/probe.h"
#include "os/file.h"

static int catalogue_add_event(struct ky_catalogue *catalogue, const char *system,
			       const char *event)
{
	char name[KY_EVENT_NAME_BYTES];
	struct ky_event_source source = {.system = system};

	ky_event_name(system, event, name);
	source.event = ky_arena_strdup(&catalogue->arena, event);
	source.name = ky_arena_strdup(&catalogue->arena, name);
	if (!source.event || !source.name)
		return KYMO_E_MEMORY;
	return ky_vec_push(&catalogue->events, source);
}

/*
 * Directories of @parent, each handed to @take. What cannot be opened is no event, but without descriptors nobody knows
 * what there is: KYMO_E_IO, errno says why.
 */
static int each_dir(int parent, const char *path,
		    int (*take)(struct ky_catalogue *, int, const char *, const char *),
		    struct ky_catalogue *catalogue, const char *system)
{
	DIR *dir = ky_dir_open(parent, path);
	struct dirent *entry;
	int ret = KYMO_OK, errnum;

	if (!dir)
		return errno == EMFILE || errno == ENFILE ? KYMO_E_IO : KYMO_E_NOT_FOUND;
	while (!ret && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
			ret = take(catalogue, dirfd(dir), system, entry->d_name);
	errnum = errno;
	closedir(dir);
	errno = errnum;
	return ret;
}

static int catalogue_take_event(struct ky_catalogue *catalogue, int fd, const char *system,
				const char *event)
{
	(void)fd;
	return catalogue_add_event(catalogue, system, event);
}

static int take_system(struct ky_catalogue *catalogue, int fd, const char *none, const char *system)
{
	const char *name;
	int ret;

	(void)none;
	/* Probes of recordings: one's own are added, others' are not ours to record. */
	if (ky_probes_is_group(system))
		return KYMO_OK;
	/* What the function tracer and trace_marker write; it has no switch of its own. */
	if (strcmp(system, "ftrace") == 0)
		return KYMO_OK;
	name = ky_arena_strdup(&catalogue->arena, system);
	if (!name)
		return KYMO_E_MEMORY;
	ret = each_dir(fd, system, catalogue_take_event, catalogue, name);
	return ret == KYMO_E_NOT_FOUND ? KYMO_OK : ret;
}

static int catalogue_compare(const void *a, const void *b)
{
	const struct ky_event_source *x = a, *y = b;
	int order = strcmp(x->system, y->system);

	return order ? order : strcmp(x->event, y->event);
}

int ky_catalogue_load(struct ky_catalogue *catalogue, const struct ky_tracefs *fs,
		      struct kymo_error *err)
{
	int ret;

	memset(catalogue, 0, sizeof(*catalogue));
	ky_arena_init(&catalogue->arena);
	ret = each_dir(fs->fd, "events", take_system, catalogue, NULL);
	if (ret == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	if (ret < 0 || !catalogue->events.len) {
		ret = ret == KYMO_E_IO ? ky_error_errno(err, errno, "cannot list the events")
				       : ky_error_set(err, KYMO_E_IO, "tracefs lists no events");
		ky_error_path(err, fs->path);
		return ret;
	}
	qsort(catalogue->events.data, catalogue->events.len, sizeof(catalogue->events.data[0]),
	      catalogue_compare);
	return KYMO_OK;
}

int ky_catalogue_add(struct ky_catalogue *catalogue, const char *system, const char *event,
		     const char *name, bool selected)
{
	struct ky_event_source source = {.system = ky_arena_strdup(&catalogue->arena, system),
					 .event = ky_arena_strdup(&catalogue->arena, event),
					 .name = ky_arena_strdup(&catalogue->arena, name),
					 .selected = selected};

	if (!source.system || !source.event || !source.name ||
	    ky_vec_push(&catalogue->events, source) < 0)
		return KYMO_E_MEMORY;
	qsort(catalogue->events.data, catalogue->events.len, sizeof(catalogue->events.data[0]),
	      catalogue_compare);
	return KYMO_OK;
}

const char *const ky_catalogue_call_prefixes[2] = {"sys_enter_", "sys_exit_"};

static int add_call(struct ky_catalogue *catalogue, const char *system, const char *name)
{
	char event[KY_EVENT_NAME_BYTES];

	for (size_t i = 0; i < 2; i++) {
		snprintf(event, sizeof(event), "%s%s", ky_catalogue_call_prefixes[i], name);
		if (catalogue_add_event(catalogue, system, event) < 0)
			return KYMO_E_MEMORY;
		catalogue->events.data[catalogue->events.len - 1].of_bpf = true;
	}
	return KYMO_OK;
}

int ky_catalogue_add_calls(struct ky_catalogue *catalogue)
{
	const struct ky_compat_call *call;
	size_t n = catalogue->events.len;
	char event[KY_EVENT_NAME_BYTES];

	for (size_t i = 0; (call = ky_compat_call_at(i)); i++) {
		/* What it takes, this kernel's own description of the other call tells. */
		struct ky_event_source key = {.system = "syscalls", .event = event};

		if (!call->params) {
			snprintf(event, sizeof(event), "sys_enter_%s", call->like);
			if (!n || !bsearch(&key, catalogue->events.data, n,
					   sizeof(catalogue->events.data[0]), catalogue_compare))
				continue;
		}
		if (add_call(catalogue, KY_COMPAT_SYSTEM, call->name) < 0 ||
		    (call->number == KY_COMPAT_UNKNOWN &&
		     add_call(catalogue, KY_UNKNOWN_SYSTEM, call->name) < 0))
			return KYMO_E_MEMORY;
	}
	qsort(catalogue->events.data, catalogue->events.len, sizeof(catalogue->events.data[0]),
	      catalogue_compare);
	return KYMO_OK;
}

/* Texts of the kernel's that events have the addresses of go before the last line, which print-fmt.c looks for them in. */
static int catalogue_add_texts(const struct ky_tracefs *fs, struct ky_strbuf *format,
			       struct kymo_error *err)
{
	struct ky_strbuf whole = KY_STRBUF_INIT, texts = KY_STRBUF_INIT;
	const char *text = ky_strbuf_text(format), *last = strstr(text, "\nprint fmt:");
	int ret = KYMO_OK;

	/* A kernel without that file has no such texts; with too many, raw recordings could not be read. */
	if (last && ky_tracefs_read(fs->fd, fs->path, "printk_formats", &texts, NULL) == 0 &&
	    format->len + sizeof(KY_FORMAT_TEXTS) + texts.len <= KY_TRACEFS_TEXT_MAX) {
		ky_strbuf_add(&whole, text, (size_t)(last - text));
		ky_strbuf_adds(&whole, KY_FORMAT_TEXTS);
		ky_strbuf_add(&whole, ky_strbuf_text(&texts), texts.len);
		ky_strbuf_adds(&whole, last);
		ky_strbuf_clear(format);
		ky_strbuf_add(format, ky_strbuf_text(&whole), whole.len);
		if (ky_strbuf_failed(&whole) || ky_strbuf_failed(format))
			ret = ky_error_nomem(err);
	}
	ky_strbuf_fini(&texts);
	ky_strbuf_fini(&whole);
	return ret;
}

int ky_event_source_format(const struct ky_event_source *source, const struct ky_tracefs *fs,
			   struct ky_strbuf *text, struct kymo_error *err)
{
	char name[2 * KY_EVENT_NAME_BYTES + 32];
	int ret;

	if (source->of_bpf)
		return ky_compat_format(fs, source->system, source->event, text, err);
	if (source->format) {
		ky_strbuf_clear(text);
		ky_strbuf_add(text, source->format, source->format_len);
		return ky_strbuf_failed(text) ? ky_error_nomem(err) : KYMO_OK;
	}
	snprintf(name, sizeof(name), "events/%s/%s/format", source->system, source->event);
	ret = ky_tracefs_read(fs->fd, fs->path, name, text, err);
	if (ret < 0 || strcmp(source->system, "syscalls") == 0 ||
	    !strstr(ky_strbuf_text(text), "\tfield:const char *"))
		return ret;
	return catalogue_add_texts(fs, text, err);
}

void ky_catalogue_fini(struct ky_catalogue *catalogue)
{
	ky_vec_fini(&catalogue->events);
	ky_arena_fini(&catalogue->arena);
}

struct ky_event_source *ky_catalogue_find(struct ky_catalogue *catalogue, const char *system,
					  const char *event)
{
	struct ky_event_source key = {.system = system, .event = event};

	return catalogue->events.len ? bsearch(&key, catalogue->events.data, catalogue->events.len,
					       sizeof(catalogue->events.data[0]), catalogue_compare)
				     : NULL;
}
