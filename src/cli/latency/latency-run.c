/* SPDX-License-Identifier: MIT */
#include "cli/latency/latency-run.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "cli/terminal/command.h"
#include "os/now.h"

static int latency_run_put(const struct ky_latency_run *run, bool is_first, struct kymo_error *err)
{
	const struct ky_latency_view *view = &run->view;
	struct ky_strbuf out = KY_STRBUF_INIT;
	int ret = KYMO_OK;

	if (run->screen)
		return ky_screen_update(run->screen, err);
	if (run->listen && !run->json && !run->csv)
		return KYMO_OK;
	if (run->json) {
		ret = ky_latency_put_json(view, false, err);
	} else if (run->csv) {
		ky_latency_put_csv(&out, view, is_first);
	} else {
		/* What trackers tell stays. */
		if (!run->once && !run->tracks.n && !run->has_chain && !run->members_ns &&
		    isatty(STDOUT_FILENO))
			ky_strbuf_adds(&out, "\033[H\033[2J");
		ret = ky_latency_put_text(&out, view, err);
	}
	ky_cli_write(&out);
	fflush(stdout);
	ky_strbuf_fini(&out);
	return ret;
}

bool ky_latency_run_wants_screen(const struct ky_latency_run *run)
{
	return !run->once && !run->json && !run->csv && !run->plain && !run->listen &&
	       !run->has_chain && !run->tracks.n && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

/* How often trackers tell, programs are looked for, and clients' limits of time are looked at. */
#define STEP_NS 100000000
/* The longest time for what came before the end. */
#define LAST_STEPS_NS 1000000000

/* Sleep for @left_ns, or until something comes. */
static void latency_run_poll(struct ky_latency_run *run, int64_t left_ns)
{
	struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};
	struct pollfd fds[2 + 1 + KY_METRICS_CLIENTS_MAX] = {
		{.fd = run->signal_fd, .events = POLLIN},
		{.fd = run->screen ? STDIN_FILENO : -1, .events = POLLIN}};
	nfds_t n = 2;

	if (run->server)
		n += ky_metrics_wait_for(run->server, fds + n);
	if (ppoll(fds, n, &left, NULL) > 0 && fds[0].revents)
		run->is_over = true;
	if (run->screen && !ky_screen_keys(run->screen))
		run->is_over = true;
	if (run->server)
		ky_metrics_step(run->server, run->view.latency);
}

/* Tell of what came. 1: more is there. */
static int latency_run_step(struct ky_latency_run *run, struct kymo_error *err)
{
	int ret = ky_tracks_step(&run->tracks, run->view.latency, err), more = ret > 0;

	if (ret >= 0 && (run->members_ns || run->screen)) {
		ret = ky_members_step(&run->members, run->view.latency, err);
		more |= ret > 0;
	}
	if (ret >= 0 && run->has_chain) {
		ret = ky_chain_print(ky_latency_chain(run->view.latency), run->json, err);
		more |= ret > 0;
	}
	if (ret >= 0)
		ret = ky_latency_look(run->view.latency, err);
	run->is_over |= ky_cli_pipe_closed();
	return ret < 0 ? ret : more;
}

/* Wait until @until_ns of CLOCK_MONOTONIC, or for a signal, which sets run->is_over. */
static int latency_run_wait(struct ky_latency_run *run, uint64_t until_ns, struct kymo_error *err)
{
	bool steps = run->tracks.n || run->server || run->has_chain || run->members_ns ||
		     run->screen || ky_latency_has_programs(run->view.latency);
	int64_t left_ns, end_ns;
	int ret = KYMO_OK;

	while (!run->is_over && ret >= 0 && (left_ns = (int64_t)until_ns - ky_os_now_ns()) > 0) {
		if (left_ns > STEP_NS && steps)
			left_ns = ret ? 0 : STEP_NS;
		latency_run_poll(run, left_ns);
		ret = latency_run_step(run, err);
	}
	/* What came before the end, unless it comes without end. */
	end_ns = ky_os_now_ns() + LAST_STEPS_NS;
	while ((run->is_over || run->once) && ret > 0 && ky_os_now_ns() < end_ns)
		ret = latency_run_step(run, err);
	return ret < 0 ? ret : KYMO_OK;
}

static int latency_run_follow(struct ky_latency_run *run, struct kymo_error *err)
{
	uint64_t next_ns = (uint64_t)ky_os_time_ns(CLOCK_MONOTONIC);
	bool is_first = true;
	int ret = KYMO_OK;

	while (!run->is_over && ret >= 0) {
		next_ns += run->every_ns;
		ret = latency_run_wait(run, next_ns, err);
		if (ret < 0 || (run->is_over && !run->once))
			break;
		ret = ky_latency_read(run->view.latency, err);
		if (ret >= 0)
			ret = latency_run_put(run, is_first, err);
		is_first = false;
		run->is_over |= run->once || ky_cli_pipe_closed();
	}
	return ret;
}

/* Returns a descriptor that becomes readable with one. */
static int latency_run_catch_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

int ky_latency_run(struct ky_latency_run *run, const struct ky_latency_options *wanted,
		   struct kymo_error *err)
{
	int ret;

	run->signal_fd = latency_run_catch_signals();
	ky_cli_catch_sigpipe();
	ret = ky_latency_open(wanted, &run->view.latency, err);
	if (ret >= 0 && run->listen)
		ret = ky_metrics_listen(run->listen, &run->server, err);
	if (ret >= 0)
		ret = ky_tracks_start(&run->tracks, run->view.latency, err);
	if (ret >= 0 && run->has_chain)
		ret = ky_latency_add_chain(run->view.latency, &run->chain, err);
	/* A terminal that knows too little gets tables. */
	if (ret >= 0 && ky_latency_run_wants_screen(run))
		(void)ky_screen_open(&run->view, &run->members, &run->screen, err);
	run->members.is_kept = run->screen;
	if (ret >= 0) {
		if (run->server)
			fprintf(stderr, "kymo: metrics at %s\n",
				ky_metrics_url(run->server)); /* lint: own text */
		if (!run->screen)
			fputs("kymo: measuring; Ctrl-C ends it\n", stderr);
		ret = latency_run_follow(run, err);
	}
	ky_screen_close(run->screen);
	ky_metrics_close(run->server);
	ky_latency_close(run->view.latency);
	if (run->signal_fd >= 0)
		close(run->signal_fd);
	return ret;
}

void ky_latency_run_fini(struct ky_latency_run *run)
{
	ky_tracks_fini(&run->tracks);
	ky_members_fini(&run->members);
}
