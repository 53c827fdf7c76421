/* SPDX-License-Identifier: MIT */
#include "cli/view/view-perfetto.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/perfetto/perfetto.h"
#include "base/error.h"
#include "cli/view/view-tsp.h"
#include "cli/reading/run-flow.h"
#include "cli/reading/open-link.h"
#include "os/file.h"
#include "view/server/file-server.h"

/* The only address of a machine that the page's policy lets it read from. */
#define PERFETTO_PORT	9001
#define PERFETTO_ORIGIN "https://ui.perfetto.dev"

/* The traces as a Perfetto trace in a file without a name. The descriptor, or negative; *damage: what was wrong with them. */
static int view_perfetto_convert(const struct ky_trace_set *set, struct kymo_error *damage,
				 struct kymo_error *err)
{
	const struct ky_text_options times = {0};
	struct ky_flow_run run = {.times = &times, .set = set, .progress = "converting"};
	const char *directory = getenv("TMPDIR");
	struct ky_sink *sink;
	struct ky_flow *flow;
	int fd = ky_file_open_unnamed(directory ? directory : "/var/tmp"), ret;

	if (fd < 0)
		return ky_error_errno(err, -fd, "cannot make a temporary file");
	ret = ky_perfetto_sink_open(set, fd, &sink, err);
	if (ret == KYMO_OK) {
		ret = ky_flow_open_set(set, &flow, err);
		if (ret == KYMO_OK) {
			ret = ky_cli_run_flow(&run, flow, sink, err);
			ky_flow_close(flow);
		}
		ky_sink_free(sink);
	}
	if (ret == KYMO_E_FORMAT || ret == KYMO_E_LIMIT) {
		*damage = *err;
		ret = KYMO_OK;
	}
	if (ret < 0)
		close(fd);
	return ret < 0 ? ret : fd;
}

/* The command waits with these signals blocked; they end a conversion. */
static int view_perfetto_interruptible(const struct ky_trace_set *set, struct kymo_error *damage,
				       struct kymo_error *err)
{
	sigset_t ends, before;
	int fd;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	ky_cli_catch_signals();
	pthread_sigmask(SIG_UNBLOCK, &ends, &before);
	fd = view_perfetto_convert(set, damage, err);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return fd;
}

int view_serve_perfetto(const struct ky_trace_set *set, bool opens_browser, struct kymo_error *err)
{
	struct ky_open_link opened = KY_OPEN_LINK_INIT;
	struct ky_file_server *server;
	struct kymo_error damage = {0};
	char link[256];
	int fd = view_perfetto_interruptible(set, &damage, err), ret;

	if (fd < 0)
		return fd;
	ret = ky_file_server_open(fd, ".pftrace", PERFETTO_ORIGIN, PERFETTO_PORT, &server, err);
	if (ret < 0)
		return ret;
	snprintf(link, sizeof(link), PERFETTO_ORIGIN "/#!/?url=%s", ky_file_server_link(server));
	printf("%s\n", link); /* lint: own text */
	fflush(stdout);
	ky_log_info(&ky_cli_log, "the page reads the trace from here until Ctrl-C");
	if (opens_browser)
		ky_open_link(&opened, link);
	ret = view_wait_for_end(err);
	ky_open_link_end(&opened);
	ky_file_server_close(server);
	if (ret == KYMO_OK && damage.code) {
		*err = damage;
		ret = damage.code;
	}
	return ret;
}
