/* SPDX-License-Identifier: MIT */
#include "cli/reading/input-options.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "cli/reading/join-marks.h"
#include "cli/reading/times-apart.h"
#include "cli/terminal/command.h"
#include "import/common/import.h"
#include "store/read/clocks.h"

/* Imported traces stay until the program ends: readers keep pointers to them. */
static struct ky_import imports = KY_IMPORT_INIT;

static void free_imports(void)
{
	ky_import_fini(&imports);
}

/* So do recordings that came from relays: of each opening. */
static KY_VEC(struct ky_cli_remotes *) remotes;

static void free_remotes(void)
{
	ky_vec_foreach(&remotes, one) {
		ky_cli_remotes_fini(*one);
		free(*one);
	}
	ky_vec_fini(&remotes);
}

static int import(const struct ky_cli_remotes *from, const struct ky_input_options *options,
		  struct ky_trace_options *to, struct kymo_error *err)
{
	const struct ky_import_options logs = {
		.format = options->log_format,
		.time_format = options->log_time,
		.packet_data = options->packet_data,
	};
	static bool is_registered;
	int ret;

	if (logs.time_format && !logs.format)
		return ky_error_set(
			err, KYMO_E_INVALID,
			"--log-time needs --log-format: a format that is found by the first "
			"lines has its own times");
	if (!is_registered)
		is_registered = atexit(free_imports) == 0;
	to->feeds = from->feeds.data;
	to->n_feeds = from->feeds.len;
	ret = ky_import_paths(&imports, (char **)(uintptr_t)from->local.data, from->local.len,
			      &logs, &ky_cli_log, options->tell_raw, err);
	to->scratch = imports.places.data;
	to->n_scratch = imports.places.len;
	return ret;
}

/* The relays' recordings among the paths, unless the caller has brought them. */
static int bring_remotes(char **args, int n_args, const struct ky_input_options *options,
			 const struct ky_cli_remotes **from, struct kymo_error *err)
{
	const struct ky_cli_remote_options remote_options = {.key_path = options->relay_key,
							     .space_bytes = options->relay_space};
	struct ky_cli_remotes *own;

	*from = options->remotes;
	if (*from)
		return KYMO_OK;
	own = calloc(1, sizeof(*own));
	if (!own || (!remotes.len && atexit(free_remotes) != 0) || ky_vec_push(&remotes, own) < 0) {
		free(own);
		return ky_error_nomem(err);
	}
	*from = own;
	return ky_cli_remotes_open(own, args, n_args, &remote_options, err);
}

static int input_open_set(struct ky_trace_set *set, char **args, int n_args,
			  const struct ky_input_options *options,
			  const struct ky_trace_options *trace_options, struct kymo_error *err)
{
	return ky_trace_set_open_with(set, (const char *const *)args, (size_t)n_args, trace_options,
				      options->is_again ? NULL : &ky_cli_log, err);
}

/* First without the offsets that marks give, which are in the events. */
static int input_open_joined(struct ky_trace_set *set, char **args, int n_args,
			     const struct ky_input_options *options,
			     struct ky_trace_options *trace_options, struct kymo_error *err)
{
	struct ky_joined_offsets known = {.items = KY_VEC_INIT}, all = {.items = KY_VEC_INIT};
	int ret = ky_join_marks(NULL, &options->clock_offsets, &known, err);

	trace_options->clock_offsets = (const char *const *)known.items.data;
	trace_options->n_clock_offsets = known.items.len;
	if (ret == KYMO_OK)
		ret = input_open_set(set, args, n_args, options, trace_options, err);
	if (ret == KYMO_OK) {
		ret = ky_join_marks(set, &options->clock_offsets, &all, err);
		ky_trace_set_close(set);
		trace_options->clock_offsets = (const char *const *)all.items.data;
		trace_options->n_clock_offsets = all.items.len;
		if (ret == KYMO_OK)
			ret = input_open_set(set, args, n_args, options, trace_options, err);
	}
	ky_joined_offsets_fini(&known);
	ky_joined_offsets_fini(&all);
	return ret;
}

static int input_open(struct ky_trace_set *set, char **args, int n_args,
		      const struct ky_input_options *options, struct kymo_error *err)
{
	struct ky_trace_options trace_options = {
		.recover = options->recover,
		.follow = options->follow,
		.leaves_out_late = options->leaves_out_late,
		.leaves_clocks = options->no_sync,
		.clock_offsets = (const char *const *)options->clock_offsets.items,
		.n_clock_offsets = options->clock_offsets.len,
	};
	const struct ky_cli_remotes *from;
	int ret = bring_remotes(args, n_args, options, &from, err);

	if (!ret)
		ret = import(from, options, &trace_options, err);
	if (ret)
		return ret;
	return ky_join_has_marks(&options->clock_offsets)
		       ? input_open_joined(set, args, n_args, options, &trace_options, err)
		       : input_open_set(set, args, n_args, options, &trace_options, err);
}

int ky_cli_open(struct ky_trace_set *set, char **args, int n_args,
		const struct ky_input_options *options, bool merge, struct kymo_error *err)
{
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER; /* for what stays */
	int ret;

	pthread_mutex_lock(&turn);
	ret = input_open(set, args, n_args, options, err);
	pthread_mutex_unlock(&turn);
	if (ret < 0 || !merge || options->force_correlate)
		return ret;
	ret = ky_clocks_correlate(set, err);
	if (ret == KYMO_OK && !options->is_again)
		ky_cli_warn_of_times_apart(set);
	if (ret == KYMO_OK)
		return ret;
	ky_error_hint(err, "--clock-force-correlate merges them by their times, --clock-offset "
			   "shifts one of them");
	ky_trace_set_close(set);
	return ret;
}

int ky_cli_inputs_finish(int code)
{
	if (!imports.broken.code || ky_cli_pipe_closed())
		return code;
	return code ? code : ky_cli_error(&imports.broken);
}
