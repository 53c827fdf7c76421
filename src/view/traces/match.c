/* SPDX-License-Identifier: MIT */
/*
 * Filters of the viewer: "EXPR", "?? TEXT", or "EXPR ?? TEXT". EXPR is that of query/filter.h; TEXT is what the line of an event
 * contains, its name included, in any case of ASCII letters.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "flow/sinks/text.h"
#include "view/traces/view-internal.h"

struct stage {
	struct ky_stage base;
	struct ky_text *text;
	char *wanted;
	size_t len;
	struct ky_event *events; /* those of the batch that match */
	size_t cap;
};

/* ---- the text ------------------------------------------------------------------------------ */

/* Where "??" is outside of quotes; NULL: nowhere. */
static const char *find_mark(const char *filter)
{
	char quote = '\0';

	for (const char *at = filter; *at; at++) {
		if (quote && *at == '\\' && at[1])
			at++;
		else if (quote)
			quote = *at == quote ? '\0' : quote;
		else if (*at == '"' || *at == '\'' || *at == '`')
			quote = *at;
		else if (at[0] == '?' && at[1] == '?')
			return at;
	}
	return NULL;
}

static bool contains(const char *line, size_t len, const char *wanted, size_t wanted_len)
{
	if (!wanted_len)
		return true;
	for (size_t i = 0; i + wanted_len <= len; i++) {
		if ((line[i] | 0x20) == (wanted[0] | 0x20) &&
		    strncasecmp(line + i, wanted, wanted_len) == 0)
			return true;
	}
	return false;
}

static int match_matches(struct stage *stage, const struct ky_batch *batch, size_t i, bool *found,
			 struct kymo_error *err)
{
	const struct ky_event *event = &batch->events[i];
	const char *name = event->cls->name, *line;
	struct ky_batch one = *batch;
	size_t len;
	int ret;

	*found = contains(name, strlen(name), stage->wanted, stage->len);
	if (*found)
		return KYMO_OK;
	one.events = event;
	one.n_events = 1;
	one.loss = NULL;
	one.stream = ky_batch_stream(batch, event);
	ret = ky_view_line(stage->text, &one, &line, &len, err);
	if (ret == KYMO_OK)
		*found = contains(line, len, stage->wanted, stage->len);
	return ret;
}

/* ---- the stage ----------------------------------------------------------------------------- */

static int match_keep_matching(struct stage *stage, struct ky_batch *batch, struct kymo_error *err)
{
	size_t n = 0;
	bool found;
	int ret;

	if (batch->n_events > stage->cap) {
		struct ky_event *grown =
			realloc(stage->events, batch->n_events * sizeof(*stage->events));

		if (!grown)
			return ky_error_nomem(err);
		stage->events = grown;
		stage->cap = batch->n_events;
	}
	for (size_t i = 0; i < batch->n_events; i++) {
		ret = match_matches(stage, batch, i, &found, err);
		if (ret < 0)
			return ret;
		if (found)
			stage->events[n++] = batch->events[i];
	}
	batch->events = stage->events;
	batch->n_events = n;
	batch->window = NULL;
	return KYMO_OK;
}

static int match_stage_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct stage *stage = (struct stage *)flow;
	int ret;

	do {
		ret = ky_flow_next(stage->base.input, batch, err);
		if (ret <= 0)
			return ret;
		ret = match_keep_matching(stage, batch, err);
		if (ret < 0)
			return ret;
	} while (!batch->n_events && !batch->loss);
	return 1;
}

static void stage_close(struct ky_flow *flow)
{
	struct stage *stage = (struct stage *)flow;

	ky_text_free(stage->text);
	free(stage->wanted);
	free(stage->events);
	ky_stage_close(flow);
}

static const struct ky_flow_ops stage_ops = {
	.next = match_stage_next,
	.seek = ky_stage_seek,
	.broken = ky_stage_broken,
	.close = stage_close,
};

static int open_stage(struct ky_flow *input, const char *wanted, struct ky_flow **flow,
		      struct kymo_error *err)
{
	static const struct ky_text_options options = {.no_delta = true,
						       .fields = KY_TEXT_FIELDS_CHOSEN};
	struct stage *stage = calloc(1, sizeof(*stage));

	if (!stage) {
		ky_flow_close(input);
		return ky_error_nomem(err);
	}
	stage->base.flow.ops = &stage_ops;
	stage->base.input = input;
	stage->text = ky_text_new(-1, &options);
	stage->wanted = strdup(wanted);
	if (!stage->text || !stage->wanted) {
		stage_close(&stage->base.flow);
		return ky_error_nomem(err);
	}
	stage->len = strlen(stage->wanted);
	ky_text_hold(stage->text);
	*flow = &stage->base.flow;
	return KYMO_OK;
}

/* ---- filters ------------------------------------------------------------------------------- */

static const char *match_skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

int ky_view_match(struct ky_flow *input, const char *filter, struct ky_flow **flow,
		  struct kymo_error *err)
{
	const char *mark = find_mark(filter);

	*flow = input;
	return mark ? open_stage(input, match_skip_blanks(mark + 2), flow, err) : KYMO_OK;
}

int ky_view_expression(const char *filter, struct ky_strbuf *out, const char **expression,
		       struct kymo_error *err)
{
	const char *mark = find_mark(filter);
	size_t len = mark ? (size_t)(mark - filter) : strlen(filter);

	while (len && (filter[len - 1] == ' ' || filter[len - 1] == '\t'))
		len--;
	ky_strbuf_add(out, filter, len);
	*expression = len ? ky_strbuf_text(out) : NULL;
	return ky_strbuf_failed(out) ? ky_error_nomem(err) : KYMO_OK;
}

const char *ky_view_text(const char *filter)
{
	const char *mark = find_mark(filter);

	return mark ? mark : "";
}
