/* SPDX-License-Identifier: MIT */
#include "cli/view/view-tsp.h"

#include <stdio.h>

#include "base/error.h"
#include "cli/recording/recordings.h"
#include "cli/terminal/command.h"
#include "view/server/tsp-server.h"

static int check_origins(const struct view_tsp *options, struct kymo_error *err)
{
	for (size_t i = 0; i < options->n_origins; i++) {
		if (ky_tsp_is_origin_text(options->origins[i]))
			continue;
		ky_error_set(err, KYMO_E_INVALID, "--origin: '%.100s' is not the origin of a page",
			     options->origins[i]);
		ky_error_hint(err, "try http://localhost:3000, without a path");
		return KYMO_E_INVALID;
	}
	return KYMO_OK;
}

static int view_tsp_serve(struct ky_tsp *tsp, const struct view_tsp *options,
			  struct kymo_error *err)
{
	uint16_t port = options->port ? options->port : KY_TSP_PORT;
	struct ky_tsp_server *server;
	int ret = ky_tsp_server_open(tsp, port, options->origins, options->n_origins, &ky_cli_log,
				     &server, err);

	if (ret < 0)
		return ret;
	printf("%s\n", ky_tsp_server_link(server)); /* lint: own text */
	fflush(stdout);
	ky_log_info(&ky_cli_log, "the trace server runs until Ctrl-C");
	ret = view_wait_for_end(err);
	ky_tsp_server_close(server);
	return ret;
}

static bool view_tsp_is_recorded(const char *const *paths, size_t n_paths)
{
	return ky_recordings_write((char **)(uintptr_t)paths, (int)n_paths);
}

int view_serve_tsp(const struct view_tsp *options, struct ky_view *view, struct ky_view_live *live,
		   struct kymo_error *err)
{
	const struct ky_tsp_source source = {options->paths, options->n_paths, view, live,
					     options->follows ? view_tsp_is_recorded : NULL};
	struct ky_tsp *tsp;
	int ret = check_origins(options, err);

	if (ret == KYMO_OK)
		ret = ky_tsp_new(&source, &tsp, err);
	if (ret < 0)
		return ret;
	ret = view_tsp_serve(tsp, options, err);
	ky_tsp_free(tsp);
	return ret;
}
