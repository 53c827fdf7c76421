/* SPDX-License-Identifier: MIT */
/* The dispatch of the page's requests, and what all answers share. */
#include <string.h>

#include "base/error.h"
#include "flow/sinks/json-value.h"
#include "view/answers/answer-internal.h"
#include "view/answers/area.h"
#include "view/answers/latency.h"
#include "view/answers/query.h"

/* ---- JSON -------------------------------------------------------------------------------- */

void ky_view_put_text(struct ky_strbuf *out, const char *text)
{
	ky_json_text(out, text, strlen(text));
}

void ky_view_put_error(struct ky_strbuf *out, const struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	if (err->path[0])
		ky_strbuf_addf(&text, "%s: ", err->path);
	if (err->column)
		ky_strbuf_addf(&text, "character %u: ", (unsigned int)err->column);
	ky_strbuf_adds(&text, err->message[0] ? err->message : kymo_status_text(err->code));
	if (err->hint[0])
		ky_strbuf_addf(&text, "; %s", err->hint);
	ky_view_put_text(out, ky_strbuf_text(&text));
	ky_strbuf_fini(&text);
}

void ky_view_put_state(const struct ky_view *view, struct ky_counts *counts,
		       const struct ky_counts_state *state, struct ky_strbuf *out)
{
	ky_strbuf_adds(out, "\"total\": ");
	ky_strbuf_addu(out, ky_view_total(view, counts, state));
	ky_strbuf_addf(out, ", \"progress\": %.4f, \"error\": ",
		       state->is_over ? 1.0 : (double)state->n_exact / (double)KY_COUNT_BUCKETS);
	if (state->error.code)
		ky_view_put_error(out, &state->error);
	else
		ky_strbuf_adds(out, "null");
}

/* ---- answers ----------------------------------------------------------------------------- */

static int answer_dispatch(struct ky_view *view, const struct ky_view_request *request,
			   const struct ky_view_stop *stop, struct ky_strbuf *out,
			   struct kymo_error *err)
{
	switch (request->what) {
	case KY_VIEW_INFO:
		return ky_view_info(view, out);
	case KY_VIEW_DENSITY:
		return ky_view_density(view, request, stop, out, err);
	case KY_VIEW_RANK:
		return ky_view_rank(view, request, stop, out, err);
	case KY_VIEW_ROWS:
	case KY_VIEW_EVENT:
		return ky_view_rows(view, request, stop, out, err);
	case KY_VIEW_TREE:
		return ky_view_tree(view, out, err);
	case KY_VIEW_ACTIVITY:
		return ky_view_activity(view, request, stop, out, err);
	case KY_VIEW_CURVES:
		return ky_view_curves(view, request, stop, out, err);
	case KY_VIEW_FIELDS:
		return ky_view_fields(view, out);
	case KY_VIEW_FIELD:
		return ky_view_field(view, request, stop, out, err);
	case KY_VIEW_MARKS:
		return ky_view_marks(view, request, stop, out, err);
	case KY_VIEW_LOSSES:
		return ky_view_losses(view, request, out, err);
	case KY_VIEW_ARROWS:
		return ky_view_arrows(view, request, stop, out, err);
	case KY_VIEW_MOMENT:
		return ky_view_moment(view, request, out, err);
	case KY_VIEW_TIMELINE:
		return ky_view_timeline(view, request, stop, out, err);
	case KY_VIEW_CAUSE:
		return ky_view_cause(view, request, stop, out, err);
	case KY_VIEW_LATENCY:
	case KY_VIEW_MEMBERS:
		return ky_view_latency(view, request, stop, out, err);
	case KY_VIEW_AREA:
		return ky_view_area(view, request, stop, out, err);
	case KY_VIEW_REPORT:
		return ky_view_report(view, request, stop, out, err);
	case KY_VIEW_QUERY:
		return ky_view_query(view, request, stop, out, err);
	case KY_VIEW_NOTES:
	case KY_VIEW_NOTE:
	case KY_VIEW_UNNOTE:
	case KY_VIEW_PROGRAMS:
	case KY_VIEW_PROGRAM:
	case KY_VIEW_DROP:
	case KY_VIEW_DROP_FILE:
	case KY_VIEW_DROP_END:
	case KY_VIEW_DROP_OPEN:
	case KY_VIEW_ASSET:
		break;
	}
	return ky_error_set(err, KYMO_E_NOT_FOUND, "no such page");
}

bool ky_view_is_columns(enum ky_view_what what)
{
	switch (what) {
	case KY_VIEW_DENSITY:
	case KY_VIEW_ROWS:
	case KY_VIEW_TREE:
	case KY_VIEW_ACTIVITY:
	case KY_VIEW_TIMELINE:
	case KY_VIEW_CURVES:
	case KY_VIEW_FIELD:
	case KY_VIEW_MARKS:
	case KY_VIEW_LOSSES:
	case KY_VIEW_ARROWS:
	case KY_VIEW_LATENCY:
	case KY_VIEW_MEMBERS:
	case KY_VIEW_AREA:
		return true;
	default:
		return false;
	}
}

int ky_view_answer(struct ky_view *view, const struct ky_view_request *request,
		   const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	bool is_whole = !out->len;
	int ret = answer_dispatch(view, request, stop, out, err);

	/* What a damaged history cannot tell comes from the next one, as far as that is. */
	if (ret == KYMO_E_FORMAT && is_whole && ky_view_renew_history(view)) {
		ky_strbuf_clear(out);
		ky_error_clear(err);
		ret = answer_dispatch(view, request, stop, out, err);
	}
	return ret == KYMO_OK && ky_strbuf_failed(out) ? ky_error_nomem(err) : ret;
}
