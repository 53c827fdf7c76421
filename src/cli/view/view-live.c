/* SPDX-License-Identifier: MIT */
#include "cli/view/view-live.h"

#include "base/error.h"
#include "cli/recording/recordings.h"
#include "net/reader/live-feed.h"
#include "store/read/feed.h"

#define DELAY_MS 250

struct opener {
	char **paths;
	int n_paths;
	const struct ky_input_options *input;
	struct ky_cli_remotes remotes;
	unsigned int n_opened;
};

bool ky_view_live_is(char **paths, int n_paths)
{
	for (int i = 0; i < n_paths; i++)
		if (ky_live_address_is(paths[i]))
			return true;
	return ky_recordings_write(paths, n_paths);
}

static bool view_live_is_recorded(void *data)
{
	struct opener *opener = data;

	ky_vec_foreach(&opener->remotes.feeds, at)
		if (!at->feed->has_ended)
			return true;
	return opener->remotes.local.len &&
	       ky_recordings_write((char **)(uintptr_t)opener->remotes.local.data,
				   (int)opener->remotes.local.len);
}

static int view_live_open_traces(void *data, enum ky_view_live_how how, struct ky_trace_set *set,
				 struct kymo_error *err)
{
	struct opener *opener = data;
	struct ky_input_options input = *opener->input;

	input.follow = how != KY_VIEW_LIVE_COMPLETE;
	input.leaves_out_late = input.follow;
	input.remotes = &opener->remotes;
	input.is_again = opener->n_opened++ > 0;
	return ky_cli_open(set, opener->paths, opener->n_paths, &input, true, err);
}

static int view_live_run(struct opener *opener,
			 int (*serve)(void *data, struct ky_view_live *live,
				      struct kymo_error *err),
			 void *data, struct kymo_error *err)
{
	KY_VEC(struct ky_feed *) feeds = KY_VEC_INIT;
	struct ky_view_live_source source = {
		.open = view_live_open_traces,
		.is_recorded = view_live_is_recorded,
		.data = opener,
		.paths = opener->remotes.local.data,
		.n_paths = opener->remotes.local.len,
	};
	struct ky_view_live *live;
	int ret = KYMO_OK;

	ky_vec_foreach(&opener->remotes.feeds, at)
		if (!ret && ky_vec_push(&feeds, at->feed) < 0)
			ret = ky_error_nomem(err);
	source.feeds = feeds.data;
	source.n_feeds = feeds.len;
	if (!ret)
		ret = ky_view_live_open(&source, &live, err);
	if (!ret) {
		ret = serve(data, live, err);
		ky_view_live_close(live);
	}
	ky_vec_fini(&feeds);
	return ret;
}

int ky_view_live_run(char **paths, int n_paths, const struct ky_input_options *input,
		     int (*serve)(void *data, struct ky_view_live *live, struct kymo_error *err),
		     void *data, struct kymo_error *err)
{
	struct opener opener = {.paths = paths, .n_paths = n_paths, .input = input};
	const struct ky_cli_remote_options options = {.key_path = input->relay_key,
						      .delay_ms = DELAY_MS,
						      .keeps = true,
						      .space_bytes = input->relay_space};
	int ret = ky_cli_remotes_open(&opener.remotes, paths, n_paths, &options, err);

	if (!ret)
		ret = view_live_run(&opener, serve, data, err);
	ky_cli_remotes_fini(&opener.remotes);
	return ret;
}
