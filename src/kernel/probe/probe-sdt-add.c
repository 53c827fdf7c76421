/* SPDX-License-Identifier: MIT */
/* Probes that programs and libraries bring along, by name. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/probe/probe-internal.h"
#include "kernel/probe/probe-sdt.h"
#include "kernel/probe/probe-spec.h"

/* @text is FILE:PROVIDER:NAME, FILE:NAME or PROVIDER:NAME. */
struct sdt_choice {
	char head[4096]; /* up to the first colon */
	char provider[200], name[200];
	const struct ky_probe_spec *spec; /* which arguments; NULL: all */
	bool is_open;			  /* the head may be a provider, a library or a program */
};

static int choose_sdt(const char *text, struct sdt_choice *choice, struct kymo_error *err)
{
	const char *last = strrchr(text, ':'), *first = strchr(text, ':');
	int ret;

	if (!last || first == text || !last[1] || strlen(last + 1) >= sizeof(choice->name) ||
	    strlen(text) >= sizeof(choice->head)) {
		ret = ky_error_set(err, KYMO_E_INVALID, "'%.100s' names no probes", text);
		ky_error_hint(err, "PROVIDER:NAME, FILE:NAME or FILE:PROVIDER:NAME: 'libc:*', "
				   "'./server:request_start'");
		return ret;
	}
	snprintf(choice->name, sizeof(choice->name), "%s", last + 1);
	snprintf(choice->head, sizeof(choice->head), "%.*s", (int)(first - text), text);
	snprintf(choice->provider, sizeof(choice->provider), "*");
	if (first != last)
		snprintf(choice->provider, sizeof(choice->provider), "%.*s",
			 (int)(last - first - 1), first + 1);
	choice->is_open =
		first == last && !strchr(choice->head, '/') && !strstr(choice->head, ".so");
	return KYMO_OK;
}

/* How the kernel fetches the arguments of @probe, called @name, that @spec (NULL: all) wants. */
static int add_sdt_arguments(struct ky_probes *probes, const struct ky_probe_file *file,
			     const struct ky_sdt_probe *probe, uint64_t base, const char *name,
			     const struct ky_probe_spec *spec, struct ky_strbuf *text,
			     struct kymo_error *err)
{
	struct ky_strbuf all = KY_STRBUF_INIT;
	int left_out = ky_sdt_fetch(file, base, probe->arguments, &all), ret = KYMO_OK;

	if (spec)
		ret = ky_sdt_arguments_pick(spec, name, ky_strbuf_text(&all), text, err);
	else
		ky_strbuf_add(text, ky_strbuf_text(&all), all.len);
	if (!spec && left_out)
		ky_log_warning(probes->log,
			       "%s: %d of its arguments cannot be fetched by the kernel: %s", name,
			       left_out, probe->arguments);
	if (!ret && ky_strbuf_failed(&all))
		ret = ky_error_nomem(err);
	ky_strbuf_fini(&all);
	return ret;
}

static int add_sdt(struct ky_probes *probes, const struct ky_probe_file *file,
		   const struct ky_sdt_probe *probe, const struct ky_probe_spec *spec, size_t from,
		   struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	struct ky_probe_event *event;
	uint64_t offset, semaphore;
	char name[300];
	int ret;

	ky_probe_name_event(NULL, probe->provider, probe->name, name, sizeof(name));
	if (!ky_probe_file_offset(file, probe->address, &offset))
		return KYMO_OK;
	ky_strbuf_addf(&text, "%s:0x%" PRIx64, file->path, offset);
	if (probe->semaphore && ky_probe_file_offset(file, probe->semaphore, &semaphore))
		ky_strbuf_addf(&text, "(0x%" PRIx64 ")", semaphore);
	ret = add_sdt_arguments(probes, file, probe, probe->address - offset, name, spec, &text,
				err);
	event = ret ? NULL : ky_probe_take_event(probes, from, name, "", 'p', &text);
	if (!event) {
		ky_strbuf_fini(&text);
		return ret ? ret : ky_error_nomem(err);
	}
	return ky_probe_add_place(probes, event, &text, err);
}

/* Those of one file. Returns how many there are in it, or an error. */
static int add_sdt_of(struct ky_probes *probes, const char *path, const char *provider,
		      const char *name, const struct ky_probe_spec *spec, struct kymo_error *err)
{
	struct ky_sdt_probes found = KY_VEC_INIT;
	size_t from = probes->events.len;
	struct ky_probe_file file;
	int ret = ky_probe_check_path(path, err), n;

	if (!ret)
		ret = ky_probe_file_open(&file, path, err);
	if (ret < 0)
		return ret;
	ret = ky_sdt_read(&file, &probes->arena, &found, err);
	for (size_t i = 0; i < found.len && !ret; i++)
		if (ky_glob_match(provider, found.data[i].provider) &&
		    ky_glob_match(name, found.data[i].name))
			ret = add_sdt(probes, &file, &found.data[i], spec, from, err);
	n = (int)found.len;
	ky_vec_fini(&found);
	ky_probe_file_close(&file);
	return ret < 0 ? ret : n;
}

/* A name alone: the provider, in the library of that name; any of that library; a program's. */
static int add_sdt_named(struct ky_probes *probes, const struct sdt_choice *choice, char *path,
			 struct kymo_error *err)
{
	size_t from = probes->events.len;
	int ret;

	if (!choice->is_open || ky_probe_library_find(choice->head, path) < 0)
		return 0;
	ret = add_sdt_of(probes, path, choice->head, choice->name, choice->spec, err);
	if (ret > 0 && probes->events.len == from)
		ret = add_sdt_of(probes, path, "*", choice->name, choice->spec, err);
	return ret;
}

/* "PROBE(ARGUMENTS)": cut @text into both. */
static int cut_sdt_arguments(struct ky_probes *probes, const char **text,
			     const struct ky_probe_spec **spec, struct kymo_error *err)
{
	size_t len = strcspn(*text, "(");
	struct ky_probe_spec *parsed;
	int ret;

	*spec = NULL;
	if (!(*text)[len])
		return KYMO_OK;
	parsed = ky_arena_new(&probes->arena, struct ky_probe_spec);
	ret = parsed ? ky_sdt_arguments_parse(*text + len, parsed, err) : ky_error_nomem(err);
	if (ret < 0)
		return ret;
	*spec = parsed;
	while (len && (*text)[len - 1] == ' ')
		len--;
	*text = ky_arena_strndup(&probes->arena, *text, len);
	return *text ? KYMO_OK : ky_error_nomem(err);
}

int ky_probe_add_sdt_text(struct ky_probes *probes, const char *text, struct kymo_error *err)
{
	size_t from = probes->events.len;
	char path[4096] = "", program[4096];
	const struct ky_probe_spec *spec;
	struct sdt_choice choice;
	int ret = cut_sdt_arguments(probes, &text, &spec, err);

	if (!ret)
		ret = choose_sdt(text, &choice, err);
	choice.spec = spec;
	if (!ret)
		ret = add_sdt_named(probes, &choice, path, err);
	/* There may be a program of that name, too, which has them built in: python3.11. */
	if (ret >= 0 && ky_probe_file_find(choice.head, program, path[0] ? NULL : err) == KYMO_OK) {
		bool has_library = path[0];
		int more = add_sdt_of(probes, program, choice.provider, choice.name, choice.spec,
				      has_library ? NULL : err);

		if (!has_library || more > 0) {
			memcpy(path, program, sizeof(path));
			ret = more;
		}
	} else if (ret >= 0 && !path[0]) {
		return KYMO_E_NOT_FOUND;
	}
	if (ret < 0 || probes->events.len > from)
		return ret < 0 ? ret : KYMO_OK;
	ky_error_set(err, KYMO_E_NOT_FOUND,
		     ret ? "no probe matches '%s'" : "the file has no SDT probes", text);
	ky_error_path(err, path);
	if (ret)
		ky_error_hint(err, "kymo list shows the probes of a file");
	return KYMO_E_NOT_FOUND;
}
