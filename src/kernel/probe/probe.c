/* SPDX-License-Identifier: MIT */
#include "kernel/probe/probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/probe/probe-internal.h"
#include "kernel/probe/probe-spec.h"

#define GROUP_PREFIX "kymo_"
#define MAX_EVENTS   10000

void ky_probes_init(struct ky_probes *probes, const struct ky_log *log)
{
	static _Atomic unsigned int n_groups;

	memset(probes, 0, sizeof(*probes));
	ky_arena_init(&probes->arena);
	probes->log = log;
	/* Each recording of this process has a group of its own. */
	ky_instance_own_name(++n_groups, probes->group, sizeof(probes->group));
	for (char *c = probes->group; *c; c++)
		*c = *c == '-' ? '_' : *c;
}

void ky_probes_fini(struct ky_probes *probes)
{
	ky_vec_foreach(&probes->events, event)
		ky_vec_fini(&event->places);
	ky_vec_fini(&probes->events);
	ky_vec_fini(&probes->clones);
	ky_arena_fini(&probes->arena);
}

bool ky_probes_is_group(const char *system)
{
	return strncmp(system, GROUP_PREFIX, sizeof(GROUP_PREFIX) - 1) == 0;
}

const char *ky_probes_name(const struct ky_probes *probes, const char *system, const char *event)
{
	if (strcmp(system, probes->group) != 0)
		return NULL;
	ky_vec_foreach(&probes->events, it)
		if (strcmp(it->event, event) == 0)
			return it->name;
	return NULL;
}

/* ---- adding --------------------------------------------------------------------------- */

/* A new event called @name, with @suffix. NULL: out of memory, or there are too many. */
static struct ky_probe_event *probe_add_event(struct ky_probes *probes, const char *name,
					      const char *suffix, char type)
{
	struct ky_probe_event event = {.type = type};
	struct ky_strbuf text = KY_STRBUF_INIT;

	ky_strbuf_addf(&text, "%s%s", name, suffix);
	event.name = ky_strbuf_failed(&text)
			     ? NULL
			     : ky_arena_strdup(&probes->arena, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	snprintf(event.event, sizeof(event.event), "p%zu", probes->events.len);
	if (!event.name || probes->events.len >= MAX_EVENTS ||
	    ky_vec_push(&probes->events, event) < 0)
		return NULL;
	return ky_vec_last(&probes->events);
}

int ky_probe_add_place(struct ky_probes *probes, struct ky_probe_event *event,
		       struct ky_strbuf *text, struct kymo_error *err)
{
	const char *copy = ky_strbuf_failed(text)
				   ? NULL
				   : ky_arena_strdup(&probes->arena, ky_strbuf_text(text));

	ky_strbuf_fini(text);
	if (!copy || ky_vec_push(&event->places, copy) < 0)
		return ky_error_nomem(err);
	return KYMO_OK;
}

static bool any(const struct ky_probe_spec *spec, bool is_return)
{
	for (unsigned int i = 0; i < spec->n_arguments; i++)
		if (spec->arguments[i].is_return == is_return)
			return true;
	return false;
}

/* The arguments of one side, for the function at @address of @file (NULL: the kernel's). */
static int add_arguments(const struct ky_probe_file *file, uint64_t address,
			 const struct ky_probe_spec *spec, bool is_return, struct ky_strbuf *text,
			 struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (unsigned int i = 0; i < spec->n_arguments && !ret; i++) {
		const struct ky_probe_argument *argument = &spec->arguments[i];

		if (argument->is_return != is_return)
			continue;
		ky_strbuf_addf(text, " %s=", argument->name);
		ret = file ? ky_probe_argument_fetch(file, address, !spec->offset, argument, text,
						     err)
			   : ky_probe_raw_fetch(argument, text, err);
	}
	return ret;
}

static int no_code(const struct ky_probe_file *file, const char *what, struct kymo_error *err)
{
	int code = ky_error_set(err, KYMO_E_FORMAT, "'%s' is not in the file", what);

	ky_error_path(err, file->path);
	return code;
}

int ky_probe_check_path(const char *path, struct kymo_error *err)
{
	int code;

	if (!strpbrk(path, " \t\n#"))
		return KYMO_OK;
	code = ky_error_set(err, KYMO_E_UNSUPPORTED,
			    "the kernel takes no probes in files with a space in their path");
	ky_error_path(err, path);
	return code;
}

/* "FILE:0x12 arg1=%di:s32 arg2=..." -> "arg1:s32 arg2:..." NULL: out of memory. */
static const char *signature_of(struct ky_arena *arena, const char *definition)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	const char *copy = NULL;

	for (const char *at = strchr(definition, ' '); at; at = strchr(at + 1, ' ')) {
		size_t len = strcspn(at + 1, " ");
		const char *colon = memrchr(at + 1, ':', len);

		ky_strbuf_add(&text, at, strcspn(at, "="));
		if (colon)
			ky_strbuf_add(&text, colon, len - (size_t)(colon - at - 1));
	}
	if (!ky_strbuf_failed(&text))
		copy = ky_arena_strdup(arena, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	return copy;
}

struct ky_probe_event *ky_probe_take_event(struct ky_probes *probes, size_t from, const char *name,
					   const char *suffix, char type,
					   const struct ky_strbuf *definition)
{
	const char *signature = NULL;
	struct ky_probe_event *event = NULL;

	if (!ky_strbuf_failed(definition))
		signature = signature_of(&probes->arena, ky_strbuf_text(definition));
	if (!signature)
		return NULL;
	for (size_t i = from; i < probes->events.len; i++) {
		event = &probes->events.data[i];
		if (strncmp(event->name, name, strlen(name)) == 0 &&
		    strcmp(event->name + strlen(name), suffix) == 0 &&
		    strcmp(event->signature, signature) == 0)
			return event;
	}
	event = probe_add_event(probes, name, suffix, type);
	if (event)
		event->signature = signature;
	return event;
}

/* The kernel puts a breakpoint at any address, also inside an instruction, which it would then change. */
static void warn_of_middle(const struct ky_probes *probes, const struct ky_probe_file *file,
			   const struct ky_probe_spec *spec)
{
	ky_log_warning(
		probes->log,
		"%s:%s+%" PRIu64
		": cannot check that an instruction begins there; inside an instruction, the probe "
		"breaks programs that run it (objdump -d shows where instructions begin)",
		file->path, spec->function, spec->offset);
}

/* One side of a function, at all places of its name. */
static int add_side(struct ky_probes *probes, const struct ky_probe_file *file,
		    const struct ky_probe_spec *spec, const struct ky_probe_addresses *addresses,
		    const char *name, bool is_return, struct kymo_error *err)
{
	size_t from = probes->events.len;
	int ret = KYMO_OK;

	for (size_t i = 0; i < addresses->len && !ret; i++) {
		struct ky_strbuf text = KY_STRBUF_INIT;
		uint64_t address = addresses->data[i], offset;
		struct ky_probe_event *event;

		if (!ky_probe_file_offset(file, address + spec->offset, &offset)) {
			ky_strbuf_fini(&text);
			return no_code(file, spec->function, err);
		}
		if (spec->offset && !ky_probe_file_is_line(file, address + spec->offset))
			warn_of_middle(probes, file, spec);
		ky_strbuf_addf(&text, "%s:0x%" PRIx64, file->path, offset);
		ret = add_arguments(file, address, spec, is_return, &text, err);
		if (ret < 0) {
			ky_strbuf_fini(&text);
			if (err && !err->path[0])
				ky_error_path(err, file->path);
			return ret;
		}
		event = ky_probe_take_event(probes, from, name, is_return ? "_return" : "",
					    is_return ? 'r' : 'p', &text);
		if (!event) {
			ky_strbuf_fini(&text);
			return ky_error_nomem(err);
		}
		ret = ky_probe_add_place(probes, event, &text, err);
	}
	return ret;
}

void ky_probe_name_event(const char *path, const char *provider, const char *name, char *out,
			 size_t size)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	if (slash)
		provider = slash + 1;
	snprintf(out, size, "%.100s:%.150s", provider, name);
}

/* Calls that the compiler has replaced by the function's code pass no probe. */
static void tell_inlined(const struct ky_probes *probes, const struct ky_probe_file *file,
			 const struct ky_probe_spec *spec,
			 const struct ky_probe_addresses *addresses)
{
	unsigned int n = 0;

	ky_vec_foreach(addresses, address)
		n += ky_probe_file_inlined(file, *address);
	if (n)
		ky_log_warning(probes->log,
			       "%s: the compiler has put a copy of '%s' in %u place%s, where calls "
			       "are not recorded",
			       file->path, spec->function, n, n == 1 ? "" : "s");
}

static int add_function(struct ky_probes *probes, const char *text, struct kymo_error *err)
{
	struct ky_probe_addresses addresses = KY_VEC_INIT;
	struct ky_probe_spec *spec = ky_arena_new(&probes->arena, struct ky_probe_spec);
	char path[4096], name[300];
	struct ky_probe_file file;
	int ret = spec ? ky_probe_spec_parse(text, true, spec, err) : ky_error_nomem(err);

	if (!ret)
		ret = ky_probe_file_find(spec->file, path, err);
	if (!ret)
		ret = ky_probe_check_path(path, err);
	if (!ret)
		ret = ky_probe_file_open(&file, path, err);
	if (ret < 0)
		return ret;
	ky_probe_name_event(spec->file, spec->file, spec->function, name, sizeof(name));
	ret = ky_probe_file_function(&file, spec->function, &addresses, err);
	if (!ret && (any(spec, false) || !any(spec, true)))
		ret = add_side(probes, &file, spec, &addresses, spec->name[0] ? spec->name : name,
			       false, err);
	if (!ret && any(spec, true))
		ret = add_side(probes, &file, spec, &addresses, spec->name[0] ? spec->name : name,
			       true, err);
	if (!ret)
		ret = ky_probe_find_clones(probes, &file, spec, &addresses, err);
	if (!ret)
		tell_inlined(probes, &file, spec, &addresses);
	ky_vec_fini(&addresses);
	ky_probe_file_close(&file);
	return ret;
}

static int probe_add_kernel(struct ky_probes *probes, const char *text, struct kymo_error *err)
{
	struct ky_probe_spec *spec = ky_arena_new(&probes->arena, struct ky_probe_spec);
	char name[300];
	int ret = spec ? ky_probe_spec_parse(text, false, spec, err) : ky_error_nomem(err);

	if (ret < 0)
		return ret;
	ky_probe_name_event(NULL, "kernel", spec->function, name, sizeof(name));
	for (int side = 0; side < 2 && !ret; side++) {
		struct ky_strbuf definition = KY_STRBUF_INIT;
		struct ky_probe_event *event;

		if (side ? !any(spec, true) : !any(spec, false) && any(spec, true))
			continue;
		event = probe_add_event(probes, name, side ? "_return" : "", side ? 'r' : 'p');
		if (!event)
			return ky_error_nomem(err);
		event->is_kernel = true;
		ky_strbuf_adds(&definition, spec->function);
		if (spec->offset)
			ky_strbuf_addf(&definition, "+%" PRIu64, spec->offset);
		ret = add_arguments(NULL, 0, spec, side, &definition, err);
		if (!ret)
			ret = ky_probe_add_place(probes, event, &definition, err);
		else
			ky_strbuf_fini(&definition);
	}
	return ret < 0 ? ret : ky_probe_find_kernel_clones(probes, spec->function, err);
}

/* ---- with filters --------------------------------------------------------------------- */

/* Give what @add adds for the text before " if " the filter behind it: not the results of a function with arguments. */
static int add_filtered(struct ky_probes *probes, const char *text,
			int (*add)(struct ky_probes *, const char *, struct kymo_error *),
			struct kymo_error *err)
{
	const char *at = strstr(text, " if "), *filter;
	size_t from = probes->events.len;
	char *head;
	int ret;

	if (!at)
		return add(probes, text, err);
	head = strndup(text, (size_t)(at - text));
	filter = ky_arena_strdup(&probes->arena, at + 4);
	ret = head && filter ? add(probes, head, err) : ky_error_nomem(err);
	free(head);
	for (size_t i = from; i < probes->events.len && !ret; i++)
		if (probes->events.data[i].type == probes->events.data[from].type)
			probes->events.data[i].filter = filter;
	return ret;
}

int ky_probes_add_function(struct ky_probes *probes, const char *text, struct kymo_error *err)
{
	return add_filtered(probes, text, add_function, err);
}

int ky_probes_add_kernel(struct ky_probes *probes, const char *text, struct kymo_error *err)
{
	return add_filtered(probes, text, probe_add_kernel, err);
}

int ky_probes_add_sdt(struct ky_probes *probes, const char *text, struct kymo_error *err)
{
	return add_filtered(probes, text, ky_probe_add_sdt_text, err);
}
