/* SPDX-License-Identifier: MIT */
#include "analysis/export/waits-dot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/state/model.h"
#include "base/error.h"
#include "base/utf8.h"
#include "os/file.h"

/* More arrows are no picture: the longest waits stay. */
#define ARROWS_MAX 150

struct waits_arrow {
	const struct ky_thread *waker; /* NULL: see irq */
	const struct ky_irq_line *irq; /* NULL, too: unknown */
	const struct ky_thread *woken;
	uint64_t n, wait_ns;
};

struct waits_dot {
	struct ky_sink sink;
	int fd;
	struct ky_model *model;
	struct ky_map by_ends; /* -> index in arrows + 1 */
	KY_VEC(struct waits_arrow) arrows;
};

static int waits_dot_off(void *data, const struct ky_time_off *off)
{
	struct waits_dot *dot = data;
	const struct ky_wait *woken = off->woken;
	struct waits_arrow arrow = {.woken = off->thread};
	uint64_t waker, key;
	uintptr_t at;

	if (!woken || woken->begin_ns < off->begin_ns ||
	    (off->kind != KY_OFF_SLEEP && off->kind != KY_OFF_DISK))
		return 0;
	arrow.irq = woken->irq;
	arrow.waker = woken->irq ? NULL : woken->waker;
	waker = arrow.irq     ? UINT64_C(1) << 62 | arrow.irq->index
		: arrow.waker ? arrow.waker->index
			      : UINT64_C(1) << 63;
	key = ky_hash_u64(waker) ^ off->thread->index;
	at = (uintptr_t)ky_map_get(&dot->by_ends, key);
	if (!at) {
		at = dot->arrows.len + 1;
		if (ky_vec_push(&dot->arrows, arrow) < 0 ||
		    ky_map_set(&dot->by_ends, key, (void *)at) < 0)
			return KYMO_E_MEMORY;
	}
	dot->arrows.data[at - 1].n++;
	dot->arrows.data[at - 1].wait_ns += (uint64_t)(woken->begin_ns - off->begin_ns);
	return 0;
}

/* ---- the picture ---------------------------------------------------------------------------- */

/* dot takes a label that is not UTF-8 for Latin-1: each malformed byte becomes '?', as control characters do. */
static void waits_dot_text(struct ky_strbuf *out, const char *text)
{
	for (size_t left = strlen(text), n; left; text += n, left -= n) {
		bool is_plain;

		n = ky_utf8_length((const uint8_t *)text, left);
		is_plain = n && (unsigned char)*text >= ' ' && *text != 127;
		if (*text == '"' || *text == '\\')
			ky_strbuf_addc(out, '\\');
		n = n ? n : 1;
		if (is_plain)
			ky_strbuf_add(out, text, n);
		else
			ky_strbuf_addc(out, '?');
	}
}

static void waits_dot_duration(struct ky_strbuf *out, uint64_t ns)
{
	if (ns >= 1000000000)
		ky_strbuf_addf(out, "%.2f s", (double)ns / 1e9);
	else if (ns >= 1000000)
		ky_strbuf_addf(out, "%.2f ms", (double)ns / 1e6);
	else
		ky_strbuf_addf(out, "%.1f us", (double)ns / 1e3);
}

static void waits_dot_waker(struct ky_strbuf *out, const struct waits_arrow *arrow)
{
	if (arrow->irq)
		ky_strbuf_addf(out, "i%u", arrow->irq->index);
	else if (arrow->waker)
		ky_strbuf_addf(out, "t%u", arrow->waker->index);
	else
		ky_strbuf_adds(out, "unknown");
}

static void waits_dot_thread(struct ky_strbuf *out, const struct ky_thread *thread)
{
	ky_strbuf_addf(out, "  t%u [label=\"", thread->index);
	waits_dot_text(out, thread->comm[0] ? thread->comm : "?");
	ky_strbuf_addf(out, "\\n%d\"];\n", thread->tid);
}

static void waits_dot_nodes(struct ky_strbuf *out, const struct waits_dot *dot, size_t n)
{
	uint8_t *threads = calloc(ky_model_n_threads(dot->model) + 1, 1);
	uint8_t *lines = calloc(ky_model_n_irq_lines(dot->model) + 1, 1);

	if (!threads || !lines)
		out->failed = true;
	for (size_t i = 0; threads && lines && i < n; i++) {
		const struct waits_arrow *arrow = &dot->arrows.data[i];

		if (!threads[arrow->woken->index]++)
			waits_dot_thread(out, arrow->woken);
		if (arrow->waker && !threads[arrow->waker->index]++)
			waits_dot_thread(out, arrow->waker);
		if (arrow->irq && !lines[arrow->irq->index]++) {
			ky_strbuf_addf(out, "  i%u [shape=ellipse, label=\"", arrow->irq->index);
			waits_dot_text(out, arrow->irq->name[0] ? arrow->irq->name : "interrupt");
			ky_strbuf_addf(out, "\\n%d\"];\n", arrow->irq->nr);
		}
	}
	free(threads);
	free(lines);
}

static void waits_dot_arrow(struct ky_strbuf *out, const struct waits_arrow *arrow, uint64_t sum_ns)
{
	double part = sum_ns ? (double)arrow->wait_ns / (double)sum_ns : 0;

	ky_strbuf_adds(out, "  ");
	waits_dot_waker(out, arrow);
	ky_strbuf_addf(out, " -> t%u [penwidth=%.1f, label=\"", arrow->woken->index,
		       0.5 + 6 * part);
	waits_dot_duration(out, arrow->wait_ns);
	ky_strbuf_addf(out, "\\n%" PRIu64 " times\"];\n", arrow->n);
}

static int waits_dot_compare(const void *a, const void *b)
{
	const struct waits_arrow *one = a, *other = b;

	if (one->wait_ns != other->wait_ns)
		return one->wait_ns > other->wait_ns ? -1 : 1;
	return one->woken->index < other->woken->index ? -1 : 1;
}

static void waits_dot_graph(struct ky_strbuf *out, struct waits_dot *dot)
{
	size_t n = dot->arrows.len < ARROWS_MAX ? dot->arrows.len : ARROWS_MAX;
	uint64_t sum_ns = 0;

	qsort(dot->arrows.data, dot->arrows.len, sizeof(*dot->arrows.data), waits_dot_compare);
	ky_vec_foreach(&dot->arrows, arrow)
		sum_ns += arrow->wait_ns;
	ky_strbuf_addf(out, "digraph waits {\n  // wake-ups; %zu of %zu arrows\n", n,
		       dot->arrows.len);
	ky_strbuf_adds(out, "  rankdir=LR;\n  node [shape=box, fontname=\"sans-serif\"];\n"
			    "  edge [fontname=\"sans-serif\", fontsize=10];\n");
	waits_dot_nodes(out, dot, n);
	for (size_t i = 0; i < n; i++)
		waits_dot_arrow(out, &dot->arrows.data[i], sum_ns);
	ky_strbuf_adds(out, "}\n");
}

static int waits_dot_batch(struct ky_sink *sink, const struct ky_batch *batch,
			   struct kymo_error *err)
{
	struct waits_dot *dot = (struct waits_dot *)sink;
	int ret = ky_model_feed(dot->model, batch, err);

	return ret < 0 ? ret : KYMO_OK;
}

static int waits_dot_finish(struct ky_sink *sink, struct kymo_error *err)
{
	struct waits_dot *dot = (struct waits_dot *)sink;
	struct ky_strbuf out = KY_STRBUF_INIT;
	int ret = ky_model_end(dot->model, err);

	if (ret < 0)
		return ret;
	if (!dot->arrows.len) {
		ky_error_set(err, KYMO_E_UNSUPPORTED, "the trace has no wait that a wake-up ended");
		ky_error_hint(err, "record sched_switch and sched_waking, which kymo record does");
		return KYMO_E_UNSUPPORTED;
	}
	waits_dot_graph(&out, dot);
	ret = ky_strbuf_failed(&out) ? ky_error_nomem(err)
				     : ky_write_all(dot->fd, out.data, out.len);
	if (ret < 0 && !ky_strbuf_failed(&out))
		ret = ky_error_errno(err, -ret, "cannot write the graph");
	ky_strbuf_fini(&out);
	return ret;
}

static void waits_dot_free(struct ky_sink *sink)
{
	struct waits_dot *dot = (struct waits_dot *)sink;

	ky_map_fini(&dot->by_ends);
	ky_vec_fini(&dot->arrows);
	ky_model_free(dot->model);
	free(dot);
}

static const struct ky_sink_ops waits_dot_ops = {
	.batch = waits_dot_batch,
	.finish = waits_dot_finish,
	.free = waits_dot_free,
};

int ky_waits_dot_open(const struct ky_trace_set *set, int fd, struct ky_sink **sink,
		      struct kymo_error *err)
{
	struct waits_dot *dot = calloc(1, sizeof(*dot));
	const struct ky_listener listener = {.data = dot, .off = waits_dot_off};

	if (!dot)
		return ky_error_nomem(err);
	dot->sink.ops = &waits_dot_ops;
	dot->fd = fd;
	dot->model = ky_model_new(set, err);
	if (!dot->model || ky_model_listen(dot->model, &listener) < 0) {
		waits_dot_free(&dot->sink);
		return ky_error_nomem(err);
	}
	*sink = &dot->sink;
	return 0;
}
