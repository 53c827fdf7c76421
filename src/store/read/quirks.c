/* SPDX-License-Identifier: MIT */
#include "store/read/quirks.h"

#include <string.h>

#define VERSION(major, minor, patch) \
	((uint64_t)(major) << 42 | (uint64_t)(minor) << 21 | (uint64_t)(patch))
#define ANY VERSION(1 << 20, 0, 0)

/* Known quirks, and the tracers with them: versions from @from on, before @below. */
static const struct {
	const char *tracer;
	uint64_t from, below;
	enum ky_quirk quirk;
} quirks[] = {
	{"lttng-ust", 0, VERSION(2, 11, 0), KY_QUIRK_LATE_EVENTS},
	{"lttng-modules", 0, VERSION(2, 9, 13), KY_QUIRK_LATE_EVENTS},
	{"lttng-modules", VERSION(2, 10, 0), VERSION(2, 10, 10), KY_QUIRK_LATE_EVENTS},
	{"lttng-ust", 0, ANY, KY_QUIRK_ZERO_END},
	{"lttng-modules", 0, ANY, KY_QUIRK_ZERO_END},
	{"lttng-modules", 0, VERSION(2, 7, 1), KY_QUIRK_WAKE_PRIO},
	{"barectf", 0, VERSION(2, 3, 1), KY_QUIRK_EARLY_EVENTS},
};

static uint64_t quirks_number(const struct ky_trace_class *trace, const char *name)
{
	const struct ky_env *env = ky_env_find(trace, name);

	if (!env || env->is_text || env->number < 0)
		return 0;
	return env->number < 1 << 20 ? (uint64_t)env->number : (1 << 20) - 1;
}

/* LTTng writes tracer_patchlevel, barectf tracer_patch. */
static uint64_t version_of(const struct ky_trace_class *trace)
{
	uint64_t patch = quirks_number(trace, "tracer_patchlevel");

	return VERSION(quirks_number(trace, "tracer_major"), quirks_number(trace, "tracer_minor"),
		       patch ? patch : quirks_number(trace, "tracer_patch"));
}

unsigned int ky_quirks_of(const struct ky_trace_class *trace)
{
	const struct ky_env *name = ky_env_find(trace, "tracer_name");
	uint64_t version = version_of(trace);
	unsigned int found = 0;

	/* Without a version nothing is known. */
	if (!name || !name->is_text || !ky_env_find(trace, "tracer_major"))
		return 0;
	for (size_t i = 0; i < sizeof(quirks) / sizeof(quirks[0]); i++) {
		if (strcmp(name->text, quirks[i].tracer) == 0 && version >= quirks[i].from &&
		    version < quirks[i].below)
			found |= quirks[i].quirk;
	}
	return found;
}
