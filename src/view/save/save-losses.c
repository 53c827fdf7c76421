/* SPDX-License-Identifier: MIT */
/* The losses of a saved page: of each stream, with the rows that lack the events. */
#include "base/error.h"
#include "view/answers/row-index.h"
#include "view/save/save-internal.h"

struct saved_losses {
	const struct ky_view *view;
	int64_t begin_ns, end_ns; /* both inclusive */
	struct ky_strbuf *out;
	size_t n; /* streams */
};

/* begin, end, events, and so on */
static bool save_losses_put_lost(const struct saved_losses *losses, uint32_t stream,
				 struct ky_strbuf *out)
{
	size_t n;
	const struct ky_view_loss *all = ky_view_losses_of(losses->view, stream, &n);
	bool any = false;

	for (size_t i = 0; i < n; i++) {
		const struct ky_view_loss *loss = &all[i];
		int64_t end_ns = loss->end_ns > loss->begin_ns ? loss->end_ns : loss->begin_ns;

		if (end_ns < losses->begin_ns || loss->begin_ns > losses->end_ns)
			continue;
		ky_strbuf_addf(out, "%s%lld,%lld,%llu", any ? "," : "", (long long)loss->begin_ns,
			       (long long)end_ns, (unsigned long long)loss->events);
		any = true;
	}
	return any;
}

static const struct ky_broken *save_losses_broken(const struct saved_losses *losses,
						  const struct ky_broken_list *broken,
						  uint32_t stream)
{
	ky_vec_foreach(broken, one) {
		if (one->stream == stream && one->ns <= losses->end_ns)
			return one;
	}
	return NULL;
}

static void save_losses_put_rows(struct ky_strbuf *out, const struct ky_row_index *index,
				 const struct ky_history *history, const struct ky_stream *stream)
{
	uint32_t rows[2];
	size_t n = ky_view_stream_rows(index, history, stream, rows);

	for (size_t i = 0; i < n; i++)
		ky_strbuf_addf(out, i ? ",%u" : "%u", rows[i]);
}

static void save_losses_put_stream(struct saved_losses *losses, const struct ky_row_index *index,
				   const struct ky_history *history, const struct ky_stream *stream,
				   const struct ky_broken *broken)
{
	struct ky_strbuf lost = KY_STRBUF_INIT;
	struct ky_strbuf *out = losses->out;

	if (save_losses_put_lost(losses, stream->index, &lost) || broken) {
		ky_strbuf_adds(out, losses->n++ ? ",\n{\"stream\": " : "{\"stream\": ");
		ky_view_put_text(out, stream->name);
		ky_strbuf_adds(out, ", \"rows\": [");
		save_losses_put_rows(out, index, history, stream);
		ky_strbuf_adds(out, "], \"lost\": [");
		ky_strbuf_add(out, ky_strbuf_text(&lost), lost.len);
		ky_strbuf_adds(out, "], \"broken\": ");
		if (broken)
			ky_strbuf_addi(out, broken->ns);
		else
			ky_strbuf_adds(out, "null");
		ky_strbuf_adds(out, "}");
	}
	ky_strbuf_fini(&lost);
}

int ky_saved_losses(const struct ky_view *view, const struct ky_history *history, int64_t begin_ns,
		    int64_t end_ns, const struct ky_broken_list *broken, struct ky_strbuf *out,
		    struct kymo_error *err)
{
	struct saved_losses losses = {view, begin_ns, end_ns, out, 0};
	struct ky_row_index index;
	int ret = ky_row_index_init(&index, history) < 0 ? ky_error_nomem(err) : KYMO_OK;

	ky_strbuf_adds(out, "[");
	ky_vec_foreach(&view->set->streams, stream) {
		if (ret == KYMO_OK)
			save_losses_put_stream(
				&losses, &index, history, *stream,
				save_losses_broken(&losses, broken, (*stream)->index));
	}
	ky_strbuf_adds(out, "]");
	ky_row_index_fini(&index);
	return ret;
}
