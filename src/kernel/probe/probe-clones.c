/* SPDX-License-Identifier: MIT */
/*
 * Compilers clone functions for some callers, under other names ("f.constprop.0", "f.part.0"). A probe at the
 * function does not get the calls of its clones. A warning names the clones without a probe, after all probes
 * are in place.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/probe/probe-internal.h"
#include "kernel/probe/probe-name.h"

/* Of one function, in messages. */
#define NAMES_MAX 4

/* Keep that @name, a copy of which is made, is at @place of @file (NULL: the kernel). 0 or KYMO_E_MEMORY. */
static int probe_clones_keep(struct ky_probes *probes, const char *file, const char *function,
			     const char *name, const char *place)
{
	struct ky_probe_clone clone = {
		.file = file,
		.function = function,
		.name = ky_arena_strdup(&probes->arena, name),
		.place = ky_arena_strdup(&probes->arena, place),
	};

	if (!clone.name || !clone.place)
		return KYMO_E_MEMORY;
	return ky_vec_push(&probes->clones, clone);
}

int ky_probe_find_clones(struct ky_probes *probes, const struct ky_probe_file *file,
			 const struct ky_probe_spec *spec,
			 const struct ky_probe_addresses *addresses, struct kymo_error *err)
{
	struct ky_probe_symbols symbols = KY_VEC_INIT;
	int ret = ky_probe_file_clones(file, spec->function, addresses, &symbols);

	ky_vec_foreach(&symbols, symbol) {
		char place[4200];
		uint64_t offset;

		if (ret < 0)
			break;
		if (!ky_probe_file_offset(file, symbol->address, &offset))
			continue;
		snprintf(place, sizeof(place), "%s:0x%" PRIx64, file->path, offset);
		ret = probe_clones_keep(probes, spec->file, spec->function, symbol->name, place);
	}
	ky_vec_fini(&symbols);
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

int ky_probe_find_kernel_clones(struct ky_probes *probes, const char *function,
				struct kymo_error *err)
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	char line[1024], name[512];
	int ret = KYMO_OK;

	/* Without this file, the warning is missing. */
	while (symbols && !ret && fgets(line, sizeof(line), symbols))
		if (sscanf(line, "%*x %*[tT] %511s", name) == 1 &&
		    ky_probe_name_is_clone(name, function))
			ret = probe_clones_keep(probes, NULL, function, name, name);
	if (symbols)
		fclose(symbols);
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- telling -------------------------------------------------------------------------- */

static bool probe_clones_is_recorded(const struct ky_probes *probes,
				     const struct ky_probe_clone *clone)
{
	size_t len = strlen(clone->place);

	ky_vec_foreach(&probes->events, event) {
		if (event->is_kernel != !clone->file)
			continue;
		ky_vec_foreach(&event->places, place)
			if (strncmp(*place, clone->place, len) == 0 &&
			    ((*place)[len] == '\0' || (*place)[len] == ' '))
				return true;
	}
	return false;
}

static bool is_alike(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

const char *ky_probe_clones_of(struct ky_probes *probes, const char *file, const char *function,
			       struct ky_strbuf *names)
{
	const char *first = NULL;
	size_t n = 0;

	ky_strbuf_clear(names);
	ky_vec_foreach(&probes->clones, clone) {
		if (clone->told || !is_alike(clone->file, file) ||
		    strcmp(clone->function, function) != 0 ||
		    probe_clones_is_recorded(probes, clone))
			continue;
		clone->told = true;
		first = first ? first : clone->name;
		if (n++ < NAMES_MAX)
			ky_strbuf_addf(names, "%s%s", n > 1 ? ", " : "", clone->name);
	}
	if (n > NAMES_MAX)
		ky_strbuf_addf(names, " and %zu more", n - NAMES_MAX);
	return first;
}

void ky_probes_tell(struct ky_probes *probes)
{
	struct ky_strbuf names = KY_STRBUF_INIT;

	ky_vec_foreach(&probes->clones, clone) {
		const char *first =
			ky_probe_clones_of(probes, clone->file, clone->function, &names);

		if (!first || ky_strbuf_failed(&names))
			continue;
		ky_log_warning(
			probes->log,
			"%s%s%s: the compiler made %s of it for some callers, and their calls are "
			"not recorded; --%s '%s%s%s' records them",
			clone->file ? clone->file : "", clone->file ? ":" : "", clone->function,
			ky_strbuf_text(&names), clone->file ? "probe" : "kprobe",
			clone->file ? clone->file : "", clone->file ? ":" : "", first);
	}
	ky_strbuf_fini(&names);
}
