/* SPDX-License-Identifier: MIT */
#include "view/answers/report-choice.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/causes/of-span.h"
#include "analysis/state/periods.h"
#include "base/error.h"

static const char span_of[] = "span:";

/* The thread of the row that is chosen, for reports that are about a thread. */
static int report_choice_thread(struct ky_view *view, const struct ky_view_request *request,
				struct ky_focus *focus, struct kymo_error *err)
{
	const struct ky_history_row *row = NULL;
	struct ky_history *history;
	int ret = ky_view_take_history(view, &history, err);

	if (ret == KYMO_OK && history && request->row < ky_history_n_rows(history))
		row = ky_history_row(history, (uint32_t)request->row);
	if (ret == KYMO_OK && (!row || row->kind != KY_ROW_THREAD))
		ret = ky_error_set(err, KYMO_E_INVALID, "the report is about a thread; select one");
	if (ret == KYMO_OK && ky_vec_push(&focus->tids, (int32_t)row->number) < 0)
		ret = ky_error_nomem(err);
	ky_view_put_history(view);
	return ret;
}

/* A definition in each line of @text, which is cut. */
static int report_choice_lines(struct ky_view_choice *choice, char *text,
			       const struct ky_trace_set *set, struct kymo_error *err)
{
	const char *lines[KY_PERIODS_MAX];
	char *rest = text, *line;
	size_t n = 0;

	while ((line = strsep(&rest, "\n"))) {
		if (!line[strspn(line, " \t\r")])
			continue;
		if (n == KY_PERIODS_MAX)
			return ky_error_set(err, KYMO_E_INVALID, "there are more than %d periods",
					    KY_PERIODS_MAX);
		lines[n++] = line;
	}
	return n ? ky_periods_new(lines, n, set, &choice->periods, err) : KYMO_OK;
}

/* The periods that are defined, or the spans of a name. */
static int report_choice_periods(struct ky_view_choice *choice, const struct ky_trace_set *set,
				 const struct ky_view_request *request, struct kymo_error *err)
{
	bool is_span = strncmp(request->of, span_of, sizeof(span_of) - 1) == 0;
	struct ky_strbuf text = KY_STRBUF_INIT;
	char *copy;
	int ret;

	if (is_span)
		ky_of_define_span(&text, request->of + sizeof(span_of) - 1);
	else
		ky_strbuf_adds(&text, request->periods);
	copy = ky_strbuf_take(&text);
	ret = copy ? report_choice_lines(choice, copy, set, err) : ky_error_nomem(err);
	free(copy);
	choice->options.periods = choice->periods;
	return ret;
}

/* All tables of a path, so that it can be drawn; of a cell of a map, its members. */
static void report_choice_tables(struct ky_view_choice *choice, const struct ky_report *report)
{
	static const char *const path[] = {"threads", "parts", "log", "arrows"};
	static const char *const cell[] = {"axis", "members"};
	const char *const *names = NULL;
	size_t n = 0;

	if (report->wants_choice) {
		names = path;
		n = sizeof(path) / sizeof(*path);
	} else if (report->wants_of && choice->options.cell_column) {
		names = cell;
		n = sizeof(cell) / sizeof(*cell);
	}
	for (size_t i = 0; i < n; i++)
		choice->tables[i] = names[i];
	choice->options.tables = n ? choice->tables : NULL;
	choice->options.n_tables = n;
}

int ky_view_choice_init(struct ky_view_choice *choice, struct ky_view *view,
			const struct ky_trace_set *set, const struct ky_report *report,
			const struct ky_view_request *request, struct kymo_error *err)
{
	struct ky_report_options *options = &choice->options;
	int ret = KYMO_OK;

	*choice = (struct ky_view_choice){0};
	ky_report_options_init(options);
	options->for_people = false;
	options->of = request->of[0] ? request->of : NULL;
	options->cell_column = request->cell_column;
	options->cell_row = request->cell_row;
	options->focus.min_ns = request->least_ns;
	if (request->most_ns)
		options->focus.max_ns = request->most_ns;
	if (request->comm[0] && ky_vec_push(&options->focus.comms, (const char *)request->comm) < 0)
		ret = ky_error_nomem(err);
	report_choice_tables(choice, report);
	if (ret == KYMO_OK && report->wants_choice)
		ret = report_choice_thread(view, request, &options->focus, err);
	return ret == KYMO_OK ? report_choice_periods(choice, set, request, err) : ret;
}

void ky_view_choice_fini(struct ky_view_choice *choice)
{
	ky_periods_free(choice->periods);
	ky_report_options_fini(&choice->options);
}
