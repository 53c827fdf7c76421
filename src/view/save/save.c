/* SPDX-License-Identifier: MIT */
/* The sections of a saved page. */
#include "view/save/save.h"

#include <string.h>

#include "analysis/render/render.h"
#include "analysis/reports/report.h"
#include "analysis/tables/render-cell.h"
#include "base/error.h"
#include "view/save/save-internal.h"

struct save {
	struct ky_view *view;
	struct ky_view_notes *notes;
	int64_t begin_ns, end_ns;
	struct ky_strbuf data, sections; /* all of them, and "NAME": [offset, length] of each */
	struct ky_strbuf times;
	uint64_t n_events;
	size_t block_at; /* where the block of events begins */
	struct kymo_error damage;
	struct ky_broken_list broken;
	struct ky_saved_threads threads;
};

static bool never(void *data)
{
	(void)data;
	return false;
}

static const struct ky_view_stop no_stop = {never, NULL};

int ky_saved_too_much(const char *what, struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_LIMIT, "cannot save the range: it has more than %s", what);
	ky_error_hint(err, "choose a shorter range");
	return KYMO_E_LIMIT;
}

/* What was added from @at on is a section. */
static int end_section(struct save *save, const char *name, uint64_t number, size_t at,
		       struct kymo_error *err)
{
	struct ky_strbuf *out = &save->sections;

	ky_strbuf_adds(out, out->len ? ", \"" : "\"");
	ky_strbuf_adds(out, name);
	if (number != UINT64_MAX)
		ky_strbuf_addu(out, number);
	ky_strbuf_addf(out, "\": [%zu, %zu]", at, save->data.len - at);
	if (ky_strbuf_failed(&save->data) || ky_strbuf_failed(out))
		return ky_error_nomem(err);
	if (save->data.len > KY_SAVED_MAX_BYTES)
		return ky_saved_too_much("256 MiB of data", err);
	return KYMO_OK;
}

/* ---- events -------------------------------------------------------------------------------- */

static int end_block(struct save *save, struct kymo_error *err)
{
	ky_strbuf_adds(&save->data, "]");
	return end_section(save, "events/", (save->n_events - 1) / KY_SAVED_BLOCK, save->block_at,
			   err);
}

static int save_put_event(void *data, int64_t ns, const struct ky_strbuf *json,
			  struct kymo_error *err)
{
	struct save *save = data;
	uint64_t after = (uint64_t)ns - (uint64_t)save->begin_ns;
	bool is_first = !(save->n_events % KY_SAVED_BLOCK);
	int ret = KYMO_OK;

	if (save->n_events >= KY_SAVED_MAX_EVENTS)
		return ky_saved_too_much("a million events", err);
	if (is_first && save->n_events)
		ret = end_block(save, err);
	if (is_first)
		save->block_at = save->data.len;
	for (int i = 0; i < 8; i++)
		ky_strbuf_addc(&save->times, (char)(after >> 8 * i));
	ky_strbuf_adds(&save->data, is_first ? "[" : ",\n");
	ky_strbuf_add(&save->data, ky_strbuf_text(json), json->len);
	save->n_events++;
	if (ret == KYMO_OK && save->data.len > KY_SAVED_MAX_BYTES)
		ret = ky_saved_too_much("256 MiB of data", err);
	return ret;
}

static int save_add_events(struct save *save, struct kymo_error *err)
{
	size_t at;
	int ret = ky_view_walk(save->view, save->begin_ns, save->end_ns, &no_stop, save_put_event,
			       save, &save->damage, &save->broken, err);

	if (ret < 0)
		return ret;
	if (!save->n_events)
		return ky_error_set(err, KYMO_E_NOT_FOUND,
				    "cannot save the range: it has no event");
	ret = end_block(save, err);
	at = save->data.len;
	ky_strbuf_add(&save->data, ky_strbuf_text(&save->times), save->times.len);
	return ret < 0 ? ret : end_section(save, "times", UINT64_MAX, at, err);
}

/* ---- reports and rows ---------------------------------------------------------------------- */

/* One pass for all that the traces have the events for. */
static int save_run_reports(struct save *save, const struct ky_report **reports, size_t n,
			    struct ky_report_results *results, struct kymo_error *err)
{
	struct ky_report_options options;
	struct ky_flow *flow;
	int ret = ky_view_flow(save->view, "", INT64_MIN, INT64_MAX, &no_stop, &flow, err);

	if (ret < 0)
		return ret;
	ky_report_options_init(&options);
	options.for_people = false;
	options.focus.begin_ns = save->begin_ns;
	options.focus.end_ns = save->end_ns;
	ret = ky_reports_run(reports, n, save->view->set, flow, &options, results, err);
	ky_report_options_fini(&options);
	ky_flow_close(flow);
	return ret;
}

static int save_add_reports(struct save *save, struct kymo_error *err)
{
	const struct ky_report *reports[128];
	struct ky_report_results results = {0};
	size_t n = 0, at = save->data.len;
	int ret = KYMO_OK;

	for (const struct ky_report *const *it = ky_reports; *it; it++) {
		struct kymo_error ignored;

		if (!(*it)->wants_periods && !(*it)->whole &&
		    n < sizeof(reports) / sizeof(*reports) &&
		    ky_report_check(*it, save->view->set, &ignored) == KYMO_OK)
			reports[n++] = *it;
	}
	if (!n)
		return KYMO_OK;
	ret = save_run_reports(save, reports, n, &results, err);
	/* Of a damaged trace: what could be read. */
	if (ret >= 0 || ((ret == KYMO_E_FORMAT || ret == KYMO_E_IO || ret == KYMO_E_LIMIT) &&
			 results.begin_ns != INT64_MIN))
		ret = ky_render_json(&save->data, &results, err);
	ky_report_results_fini(&results);
	return ret < 0 ? ret : end_section(save, "reports", UINT64_MAX, at, err);
}

static int save_add_rows(struct save *save, struct kymo_error *err)
{
	size_t at = save->data.len;
	bool again = false;
	int ret = ky_saved_rows(save->view, save->begin_ns, save->end_ns, &save->broken,
				&save->threads, &save->data, &again, err);

	if (again) {
		save->data.len = at;
		ky_vec_fini(&save->threads);
		ky_error_clear(err);
		ret = ky_saved_rows(save->view, save->begin_ns, save->end_ns, &save->broken,
				    &save->threads, &save->data, &again, err);
	}
	return ret < 0 ? ret : end_section(save, "rows", UINT64_MAX, at, err);
}

static int save_add_section(struct save *save, const char *name, const struct ky_strbuf *text,
			    struct kymo_error *err)
{
	size_t at = save->data.len;

	if (!text->len)
		return KYMO_OK;
	ky_strbuf_add(&save->data, ky_strbuf_text(text), text->len);
	return end_section(save, name, UINT64_MAX, at, err);
}

/* Where there is room for them. */
static int save_add_causes(struct save *save, struct kymo_error *err)
{
	struct ky_saved_causes causes = {KY_STRBUF_INIT, KY_STRBUF_INIT, KY_STRBUF_INIT};
	const struct ky_view_range range = {save->begin_ns, save->end_ns};
	int ret = ky_saved_causes(save->view, &range, &no_stop, &save->threads, &causes, err);

	if (ret == KYMO_OK && (ky_strbuf_failed(&causes.reports) || ky_strbuf_failed(&causes.path)))
		ret = ky_error_nomem(err);
	if (save->data.len + causes.reports.len + causes.path.len + causes.ofs.len <=
	    KY_SAVED_MAX_BYTES) {
		if (ret == KYMO_OK)
			ret = save_add_section(save, "causes", &causes.reports, err);
		if (ret == KYMO_OK)
			ret = save_add_section(save, "ofs", &causes.ofs, err);
		if (ret == KYMO_OK)
			ret = save_add_section(save, "path", &causes.path, err);
	}
	ky_strbuf_fini(&causes.reports);
	ky_strbuf_fini(&causes.path);
	ky_strbuf_fini(&causes.ofs);
	return ret;
}

static int save_add_fields(struct save *save, struct kymo_error *err)
{
	size_t at = save->data.len;
	int ret = ky_view_fields(save->view, &save->data);

	return ret < 0 ? ret : end_section(save, "fields", UINT64_MAX, at, err);
}

/* ---- the head ------------------------------------------------------------------------------ */

static void save_put_losses(const struct save *save, struct ky_strbuf *out)
{
	bool any = false;

	ky_vec_foreach(&save->view->losses, loss) {
		if (loss->end_ns < save->begin_ns || loss->begin_ns > save->end_ns)
			continue;
		ky_strbuf_addf(out, "%s[%lld, %lld, %llu]", any ? ", " : "",
			       (long long)loss->begin_ns, (long long)loss->end_ns,
			       (unsigned long long)loss->events);
		any = true;
	}
}

static int save_put_head(const struct save *save, struct ky_strbuf *out, struct kymo_error *err)
{
	const struct ky_view_request request = {.what = KY_VIEW_INFO};
	const struct ky_view_request notes = {.what = KY_VIEW_NOTES};
	int ret;

	ky_strbuf_adds(out, "{\"version\": 1, \"info\": ");
	ret = ky_view_answer(save->view, &request, &no_stop, out, err);
	ky_strbuf_addf(out,
		       ", \"begin\": %lld, \"end\": %lld, \"n\": %llu, \"block\": %d, "
		       "\"lost\": [",
		       (long long)save->begin_ns, (long long)save->end_ns,
		       (unsigned long long)save->n_events, KY_SAVED_BLOCK);
	save_put_losses(save, out);
	ky_strbuf_adds(out, "], \"damage\": ");
	if (save->damage.code)
		ky_view_put_error(out, &save->damage);
	else
		ky_strbuf_adds(out, "null");
	ky_strbuf_adds(out, ", \"notes\": ");
	if (ret == KYMO_OK)
		ret = ky_view_notes_answer(save->notes, &notes, out, err);
	ky_strbuf_adds(out, ", \"sections\": {");
	ky_strbuf_add(out, ky_strbuf_text(&save->sections), save->sections.len);
	ky_strbuf_adds(out, "}}");
	return ret == KYMO_OK && ky_strbuf_failed(out) ? ky_error_nomem(err) : ret;
}

/* The range has no event: which one has. */
static int save_empty(const struct ky_view *view, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (view->begin_ns != INT64_MIN) {
		ky_strbuf_adds(&text, ": the trace goes from ");
		ky_render_time(&text, view->begin_ns, true);
		ky_strbuf_adds(&text, " to ");
		ky_render_time(&text, view->end_ns, true);
	}
	ky_error_set(err, KYMO_E_NOT_FOUND, "cannot save the range: it has no event%s",
		     ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
	return KYMO_E_NOT_FOUND;
}

int ky_view_save(struct ky_view *view, struct ky_view_notes *notes, int64_t begin_ns,
		 int64_t end_ns, int fd, struct kymo_error *err)
{
	struct save save = {.view = view,
			    .notes = notes,
			    .begin_ns = begin_ns > view->begin_ns ? begin_ns : view->begin_ns,
			    .end_ns = end_ns < view->end_ns ? end_ns : view->end_ns,
			    .data = KY_STRBUF_INIT,
			    .sections = KY_STRBUF_INIT,
			    .times = KY_STRBUF_INIT};
	struct ky_strbuf head = KY_STRBUF_INIT;
	int ret = view->begin_ns == INT64_MIN || save.end_ns < save.begin_ns
			  ? save_empty(view, err)
			  : save_add_events(&save, err);

	if (ret == KYMO_OK)
		ret = save_add_rows(&save, err);
	if (ret == KYMO_OK)
		ret = save_add_fields(&save, err);
	if (ret == KYMO_OK)
		ret = save_add_reports(&save, err);
	if (ret == KYMO_OK)
		ret = save_add_causes(&save, err);
	if (ret == KYMO_OK)
		ret = save_put_head(&save, &head, err);
	if (ret == KYMO_OK)
		ret = ky_saved_page(&head, &save.data, fd, err);
	ky_strbuf_fini(&head);
	ky_strbuf_fini(&save.data);
	ky_strbuf_fini(&save.sections);
	ky_strbuf_fini(&save.times);
	ky_vec_fini(&save.broken);
	ky_vec_fini(&save.threads);
	return ret;
}
