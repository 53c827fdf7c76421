/* SPDX-License-Identifier: MIT */
/* The text writer as one sink among others. */
#include <stdlib.h>

#include "flow/graph/sink.h"
#include "flow/sinks/text.h"

struct text_sink {
	struct ky_sink sink;
	struct ky_text *text;
};

static int text_batch(struct ky_sink *sink, const struct ky_batch *batch, struct kymo_error *err)
{
	return ky_text_batch(((struct text_sink *)sink)->text, batch, err);
}

static int text_flush(struct ky_sink *sink, struct kymo_error *err)
{
	return ky_text_flush(((struct text_sink *)sink)->text, err);
}

static void text_hold(struct ky_sink *sink)
{
	ky_text_hold(((struct text_sink *)sink)->text);
}

static void text_resume(struct ky_sink *sink, const struct ky_event *before)
{
	ky_text_resume(((struct text_sink *)sink)->text, before);
}

static void text_begin(struct ky_sink *sink)
{
	ky_text_begin(((struct text_sink *)sink)->text);
}

static size_t text_held(const struct ky_sink *sink)
{
	return ky_text_held(((const struct text_sink *)sink)->text);
}

static void text_take(struct ky_sink *sink, struct ky_sink_before *before,
		      struct ky_sink_held *held)
{
	ky_text_take(((struct text_sink *)sink)->text, before, held);
}

static void text_free(struct ky_sink *sink)
{
	ky_text_free(((struct text_sink *)sink)->text);
	free(sink);
}

static const struct ky_sink_ops text_ops = {
	.batch = text_batch,
	.flush = text_flush,
	.finish = text_flush,
	.free = text_free,
	.hold = text_hold,
	.resume = text_resume,
	.begin = text_begin,
	.held = text_held,
	.take = text_take,
	.any_stream = true,
};

struct ky_sink *ky_text_sink_new(int fd, const struct ky_text_options *options)
{
	struct text_sink *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->sink.ops = &text_ops;
	s->text = ky_text_new(fd, options);
	if (s->text)
		return &s->sink;
	free(s);
	return NULL;
}
