/* SPDX-License-Identifier: MIT */
#include "cli/report/report-live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analysis/export/chart.h"
#include "analysis/render/render.h"
#include "base/error.h"
#include "cli/reading/run-flow.h"

#define PIPE_COLUMNS 100 /* the width of tables where no terminal tells its own */

#define HOME_AND_CLEAR "\033[H\033[J"

/* ---- showing --------------------------------------------------------------------------- */

/* As many lines as the terminal has, without the last line feed, which would scroll. */
static void put_screen(struct ky_strbuf *out)
{
	const char *text = ky_strbuf_text(out), *at = text;
	struct ky_strbuf screen = KY_STRBUF_INIT;
	struct winsize size = {.ws_row = 24};
	int rows;

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	rows = size.ws_row ? size.ws_row : 24;
	for (int i = 0; i < rows && (at = strchr(i ? at + 1 : at, '\n')); i++)
		;
	ky_strbuf_adds(&screen, HOME_AND_CLEAR);
	ky_strbuf_add(&screen, text, at ? (size_t)(at - text) : out->len);
	if (!ky_strbuf_failed(&screen))
		ky_cli_write(&screen);
	ky_strbuf_fini(&screen);
}

/* The stacks of the report that has them. */
static int report_live_put_stacks(struct ky_strbuf *out, const struct ky_report_results *results,
				  enum ky_stacks_form form, struct kymo_error *err)
{
	const char *name = results->set->traces.len ? results->set->traces.data[0]->path : "";

	ky_vec_foreach(&results->list, result)
		if (result->chart && form == KY_STACKS_CHROME)
			return ky_chart_chrome(out, result->chart, result->stacks, err);
		else if (result->chart && form == KY_STACKS_SPEEDSCOPE)
			return ky_chart_speedscope(out, result->chart, result->stacks, name, err);
		else if (result->stacks)
			return ky_stacks_export(out, result->stacks, name, form, err);
	return ky_error_set(err, KYMO_E_INVALID, "--to is for reports flame and calls");
}

int ky_cli_show_reports(const struct ky_report_results *results, const struct ky_report_form *form,
			struct kymo_error *err)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	int status = 0;

	if (form->stacks != KY_STACKS_FORMS) {
		status = report_live_put_stacks(&out, results, form->stacks, err);
	} else if (form->json) {
		status = ky_render_json(&out, results, err);
	} else if (form->csv || form->html) {
		if (form->html)
			ky_render_html(&out, results);
		else
			ky_render_csv(&out, results, form->csv_raw);
		if (ky_strbuf_failed(&out))
			status = ky_error_nomem(err);
	} else {
		struct ky_render_options render = {
			.columns = form->wide		   ? 0
				   : isatty(STDOUT_FILENO) ? ky_cli_columns(stdout)
							   : PIPE_COLUMNS,
			.hints = !form->is_screen && !form->is_temporary,
			.is_temporary = form->is_temporary,
			.colour = ky_cli_colour(stdout),
			.utf8 = ky_cli_locale_is_utf8(),
		};

		ky_render_text(&out, results, &render);
		if (ky_strbuf_failed(&out))
			status = ky_error_nomem(err);
	}
	if (!status && form->is_screen)
		put_screen(&out);
	else if (!status)
		ky_cli_write(&out);
	ky_strbuf_fini(&out);
	return status;
}

/* ---- following ------------------------------------------------------------------------- */

struct watcher {
	const struct ky_report_live *live;
	struct ky_report_form form;
	struct ky_live_reports *reports; /* NULL: they have not begun */
};

static int report_live_show_interval(void *data, const struct ky_report_results *results,
				     struct kymo_error *err)
{
	const struct watcher *w = data;

	return ky_cli_show_reports(results, &w->form, err);
}

static int open_reports(void *data, const struct ky_trace_set *set, struct kymo_error *err)
{
	struct watcher *w = data;

	if (w->reports)
		return ky_live_reports_rebind(w->reports, set, err);
	return ky_live_reports_open(w->live->reports, w->live->n_reports, set, w->live->options,
				    report_live_show_interval, w, &w->reports, err);
}

static int feed_reports(void *data, const struct ky_batch *batch, struct kymo_error *err)
{
	return ky_live_reports_feed(((struct watcher *)data)->reports, batch, err);
}

static int flush_reports(void *data, int64_t until_ns, struct kymo_error *err)
{
	struct watcher *w = data;

	return until_ns == INT64_MIN ? KYMO_OK : ky_live_reports_reach(w->reports, until_ns, err);
}

/* What has come is shown in any case. */
static int end_reports(void *data, int ret, struct kymo_error *err)
{
	struct watcher *w = data;
	int ended;

	if (!w->reports || ret == KYMO_E_MEMORY || ky_cli_pipe_closed())
		return ret;
	ended = ky_live_reports_end(w->reports, ret < 0 ? NULL : err);
	if (w->form.is_screen)
		puts("");
	return ret < 0 ? ret : ended;
}

int ky_report_live(const struct ky_report_live *live, struct kymo_error *err)
{
	struct watcher watcher = {.live = live, .form = live->form};
	struct ky_follow_run run = live->run;
	int ret;

	watcher.form.is_screen = !live->form.json && !live->form.csv && isatty(STDOUT_FILENO);
	run.open = open_reports;
	run.batch = feed_reports;
	run.flush = flush_reports;
	run.close = end_reports;
	run.data = &watcher;
	ret = ky_cli_follow(&run, err);
	ky_live_reports_free(watcher.reports);
	return ret;
}
