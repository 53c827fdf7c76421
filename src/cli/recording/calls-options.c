/* SPDX-License-Identifier: MIT */
#include "cli/recording/calls-options.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define EVENTS "lttng_ust_cyg_profile:*"
/* Calls of a thread nest. A trace of one process tells the process by itself; a name in each event costs a system call. */
#define CONTEXTS	"vtid"
#define CONTEXTS_SHARED "vtid,vpid,procname"

static const char *const libraries[] = {"libkymo-cyg-profile.so", "libkymo-mcount.so"};

/* Where libraries are, as seen from the directory of kymo: in the build, installed; else the dynamic linker looks for them. */
static const char *const places[] = {"../tracer/preload", ("../" KY_LIBDIR), "../lib"};

static bool calls_options_find(const char *library, char path[PATH_MAX])
{
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	char *slash;

	exe[len > 0 ? len : 0] = '\0';
	slash = strrchr(exe, '/');
	if (!slash)
		return false;
	*slash = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		char found[PATH_MAX];

		if (snprintf(found, sizeof(found), "%s/%s/%s", exe, places[i], library) <
			    (int)sizeof(found) &&
		    realpath(found, path))
			return true;
	}
	return false;
}

/* What is in LD_PRELOAD already stays. */
static int calls_options_preload(struct ky_strbuf *preload)
{
	const char *before = getenv("LD_PRELOAD");
	struct kymo_error err;
	char path[PATH_MAX];

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		if (!calls_options_find(libraries[i], path)) {
			ky_error_set(&err, KYMO_E_NOT_FOUND,
				     "cannot find %s, which --calls loads into the command",
				     libraries[i]);
			ky_error_hint(
				&err,
				"install it beside kymo; on machines other than x86-64 it does "
				"not exist: use libkymo-cyg-profile.so with --user");
			return ky_cli_error(&err);
		}
		ky_strbuf_adds(preload, preload->len ? ":" : "");
		ky_strbuf_adds(preload, path);
	}
	if (before && *before) {
		ky_strbuf_addc(preload, ':');
		ky_strbuf_adds(preload, before);
	}
	return KY_EXIT_OK;
}

static int calls_options_add(struct ky_calls_options *calls)
{
	struct ky_record_options *options = &calls->options;
	struct kymo_error err;

	calls->user = calloc(options->user.len + 1, sizeof(*calls->user));
	if (options->context)
		ky_strbuf_addf(&calls->context, "%s,", options->context);
	ky_strbuf_adds(&calls->context, options->buffers && strcmp(options->buffers, "user") == 0
						? CONTEXTS_SHARED
						: CONTEXTS);
	if (!calls->user || ky_strbuf_failed(&calls->context)) {
		ky_error_nomem(&err);
		return ky_cli_error(&err);
	}
	if (options->user.len)
		memcpy(calls->user, options->user.items, options->user.len * sizeof(*calls->user));
	calls->user[options->user.len] = EVENTS;
	options->user = (struct ky_text_list){calls->user, options->user.len + 1};
	options->context = ky_strbuf_text(&calls->context);
	options->symbols = !options->no_symbols;
	return calls_options_preload(&calls->preload);
}

int ky_calls_options_init(const struct ky_command *command, const struct ky_record_options *options,
			  bool has_command, struct ky_calls_options *calls)
{
	*calls = (struct ky_calls_options){
		.options = *options, .context = KY_STRBUF_INIT, .preload = KY_STRBUF_INIT};
	if (!options->calls)
		return KY_EXIT_OK;
	if (!has_command)
		return ky_cli_usage(
			command,
			"--calls needs a COMMAND: the program gets libraries at its start");
	return calls_options_add(calls);
}

void ky_calls_options_fini(struct ky_calls_options *calls)
{
	free(calls->user);
	ky_strbuf_fini(&calls->context);
	ky_strbuf_fini(&calls->preload);
}

void ky_calls_options_child(const struct ky_calls_options *calls, struct ky_child *child)
{
	if (!calls->options.calls)
		return;
	child->preload = ky_strbuf_text(&calls->preload);
	child->calls = calls->options.calls;
}
