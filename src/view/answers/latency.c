/* SPDX-License-Identifier: MIT */
/*
 * Durations of what ended in a range: system calls, waits, times without a CPU, interrupts, requests of disks, spans; as a map
 * of time and duration, and as a list.
 *
 * They are intervals of the state history. A call is several of them: its time in the kernel, its waits, and what
 * interrupted it in between.
 */
#include "view/answers/latency.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/tables/duration-class.h"
#include "base/error.h"
#include "base/hash.h"
#include "view/answers/columns.h"

/* That many states are read in about a second. */
#define MAX_STATES  ((size_t)1000000)
#define MAX_BACK    1000 /* pieces of a call that began before the range */
#define MAX_NAMES   100
#define MAX_MEMBERS 1000
#define CLASSES	    KY_DURATION_CLASSES

enum what { CALLS, WAITS, READY, IRQS, REQUESTS, SPANS, N_WHAT };

static const char *const what_names[N_WHAT] = {
	[CALLS] = "calls", [WAITS] = "waits",	    [READY] = "ready",
	[IRQS] = "irqs",   [REQUESTS] = "requests", [SPANS] = "spans",
};

/* Something that took time. */
struct member {
	int64_t begin_ns, end_ns;
	uint32_t row;
	const char *name;
};

struct name {
	const char *name;
	uint64_t n;
	double ns;
};

struct latency {
	struct ky_history *history;
	const struct ky_view_request *request;
	const struct ky_view_stop *stop;
	enum what what;
	int64_t begin_ns, end_ns; /* the end is exclusive */
	size_t n_states;
	/* A map: counts by column and class. */
	uint32_t *cells;
	struct ky_names places;
	KY_VEC(struct name) names;
	/* Or a list. */
	KY_VEC(struct member) members;
	uint64_t n;
	struct kymo_error *err;
};

/* ---- durations ----------------------------------------------------------------------------- */

static int latency_add_name(struct latency *latency, const char *name, double ns)
{
	uintptr_t place = (uintptr_t)ky_names_get(&latency->places, name);

	if (!place) {
		if (ky_vec_push(&latency->names, (struct name){.name = name}) < 0 ||
		    ky_names_set(&latency->places, name, (void *)(uintptr_t)latency->names.len) < 0)
			return KYMO_E_MEMORY;
		place = latency->names.len;
	}
	latency->names.data[place - 1].n++;
	latency->names.data[place - 1].ns += ns;
	return KYMO_OK;
}

/* The shortest ones leave a full list. */
static int latency_keep(struct latency *latency, const struct member *member)
{
	size_t most = latency->request->count < MAX_MEMBERS ? (size_t)latency->request->count
							    : MAX_MEMBERS;
	size_t shortest = 0;

	if (latency->members.len < most)
		return ky_vec_push(&latency->members, *member);
	for (size_t i = 1; i < latency->members.len; i++) {
		const struct member *a = &latency->members.data[i];
		const struct member *b = &latency->members.data[shortest];

		if (a->end_ns - a->begin_ns < b->end_ns - b->begin_ns)
			shortest = i;
	}
	if (member->end_ns - member->begin_ns >
	    latency->members.data[shortest].end_ns - latency->members.data[shortest].begin_ns)
		latency->members.data[shortest] = *member;
	return KYMO_OK;
}

/* What ended in the range counts. */
static int view_latency_add(struct latency *latency, const struct member *member)
{
	const struct ky_view_request *request = latency->request;
	uint64_t ns = (uint64_t)member->end_ns - (uint64_t)member->begin_ns;
	bool is_wanted = !request->filter[0] || strcmp(request->filter, member->name) == 0;
	double span, column;

	if (member->begin_ns == INT64_MIN || member->end_ns <= latency->begin_ns ||
	    member->end_ns > latency->end_ns)
		return KYMO_OK;
	if (!latency->cells) {
		if (!is_wanted || ns < request->least_ns || ns >= request->most_ns)
			return KYMO_OK;
		latency->n++;
		return latency_keep(latency, member);
	}
	if (is_wanted) {
		span = (double)((uint64_t)latency->end_ns - (uint64_t)latency->begin_ns);
		column = (double)((uint64_t)member->end_ns - 1 - (uint64_t)latency->begin_ns) /
			 span * (double)request->count;
		if (column >= (double)request->count)
			column = (double)request->count - 1;
		latency->cells[(size_t)column * CLASSES + ky_duration_class(ns)]++;
		latency->n++;
	}
	return latency_add_name(latency, member->name, (double)ns);
}

/* ---- intervals ----------------------------------------------------------------------------- */

static int latency_next(struct latency *latency, uint32_t row, int64_t ns,
			struct ky_history_interval *found)
{
	if (++latency->n_states > MAX_STATES)
		return ky_error_set(latency->err, KYMO_E_LIMIT,
				    "the range has more than a million states; zoom in");
	if (latency->n_states % 4096 == 0 && latency->stop->is_over(latency->stop->data))
		return ky_error_set(latency->err, KYMO_E_INTERRUPTED,
				    "the client has closed the connection");
	return ky_history_at(latency->history, row, ns, found, latency->err);
}

static bool latency_is_wait(enum ky_state_kind kind)
{
	return kind >= KY_STATE_BLOCKED && kind <= KY_STATE_STOPPED;
}

static const char *latency_name_of(const struct latency *latency, const struct ky_history_row *row,
				   uint64_t state)
{
	enum ky_state_kind kind = ky_state_kind(state);
	const char *name = ky_state_has_name(kind)
				   ? ky_history_name(latency->history, ky_state_value(state))
				   : "";

	if (row->kind == KY_ROW_IRQ || kind == KY_STATE_WAIT_CPU)
		return row->name;
	return *name ? name : ky_state_text(kind);
}

/* Whether a state is one of what is asked for; not for calls. */
static bool is_asked_for(enum what what, enum ky_state_kind kind)
{
	switch (what) {
	case WAITS:
		return latency_is_wait(kind);
	case READY:
		return kind == KY_STATE_WAIT_CPU;
	case IRQS:
		return kind == KY_STATE_ACTIVE;
	case REQUESTS:
		return kind == KY_STATE_READ || kind == KY_STATE_WRITE || kind == KY_STATE_OTHER;
	case SPANS:
		return kind == KY_STATE_SPAN;
	default:
		return false;
	}
}

static int latency_walk(struct latency *latency, const struct ky_history_row *row)
{
	struct ky_history_interval found;
	int ret = KYMO_OK;

	for (int64_t ns = latency->begin_ns; ns < latency->end_ns && ret == KYMO_OK;
	     ns = found.end_ns) {
		ret = latency_next(latency, row->id, ns, &found);
		if (ret < 0 || found.end_ns <= ns)
			break;
		if (is_asked_for(latency->what, ky_state_kind(found.state)))
			ret = view_latency_add(
				latency,
				&(struct member){found.begin_ns, found.end_ns, row->id,
						 latency_name_of(latency, row, found.state)});
	}
	return ret;
}

/* ---- calls --------------------------------------------------------------------------------- */

/* 1: a piece of call @name (0: of any); 0: what may lie between its pieces; -1: the call is over. */
static int piece_of(uint64_t state, uint64_t name)
{
	enum ky_state_kind kind = ky_state_kind(state);

	if (kind == KY_STATE_IRQ || kind == KY_STATE_SOFTIRQ || kind == KY_STATE_WAIT_CPU)
		return 0;
	if (kind != KY_STATE_SYSCALL && !latency_is_wait(kind))
		return -1;
	if (!ky_state_value(state) || !ky_state_has_name(kind))
		return latency_is_wait(kind) ? 0 : -1;
	return !name || ky_state_value(state) == name ? 1 : -1;
}

/* Where the call that @ns is in began; @ns: it is in none. */
static int latency_find_begin(struct latency *latency, uint32_t row, int64_t ns, int64_t *begin_ns)
{
	struct ky_history_interval found;
	uint64_t name = 0;
	int64_t at = ns;
	int ret = KYMO_OK;

	*begin_ns = ns;
	for (int i = 0; i < MAX_BACK; i++) {
		int piece;

		ret = latency_next(latency, row, at, &found);
		piece = ret < 0 ? -1 : piece_of(found.state, name);
		if (piece < 0)
			break;
		if (piece > 0) {
			name = ky_state_value(found.state);
			*begin_ns = found.begin_ns;
		}
		if (found.begin_ns == INT64_MIN)
			break;
		at = found.begin_ns - 1;
	}
	return ret;
}

/* A call: from its first to its last piece. */
struct call {
	struct member member;
	uint64_t name; /* 0: none */
};

static int end_call(struct latency *latency, struct call *call)
{
	int ret = call->name ? view_latency_add(latency, &call->member) : KYMO_OK;

	call->name = 0;
	return ret;
}

static int walk_calls(struct latency *latency, const struct ky_history_row *row)
{
	struct ky_history_interval found;
	struct call call = {.name = 0};
	int64_t ns;
	int ret = latency_find_begin(latency, row->id, latency->begin_ns, &ns);

	if (ns == INT64_MIN)
		ns = latency->begin_ns;
	for (; ns < INT64_MAX && ret == KYMO_OK; ns = found.end_ns) {
		int piece;

		if (ns >= latency->end_ns && !call.name)
			return KYMO_OK;
		ret = latency_next(latency, row->id, ns, &found);
		if (ret < 0 || found.end_ns <= ns)
			break;
		piece = piece_of(found.state, call.name);
		if (piece < 0) {
			/* The end of a call is unknown that a thread does not leave. */
			if (ky_state_kind(found.state) == KY_STATE_NONE)
				call.name = 0;
			ret = end_call(latency, &call);
			piece = piece_of(found.state, 0);
		}
		if (piece <= 0)
			continue;
		if (!call.name)
			call.member = (struct member){found.begin_ns, found.end_ns, row->id,
						      latency_name_of(latency, row, found.state)};
		call.name = ky_state_value(found.state);
		call.member.end_ns = found.end_ns;
	}
	/* What goes on at the end of the trace has no end. */
	return ret;
}

/* ---- all rows ------------------------------------------------------------------------------ */

static enum ky_row_kind row_kind(enum what what)
{
	return what == IRQS	  ? KY_ROW_IRQ
	       : what == REQUESTS ? KY_ROW_REQUESTS
	       : what == SPANS	  ? KY_ROW_SPANS
				  : KY_ROW_THREAD;
}

static int walk_all(struct latency *latency)
{
	size_t n = ky_history_n_rows(latency->history);
	int ret = KYMO_OK;

	for (size_t i = 0; i < n && ret == KYMO_OK; i++) {
		const struct ky_history_row *row = ky_history_row(latency->history, (uint32_t)i);

		if (row->kind != row_kind(latency->what) || row->begin_ns == INT64_MIN ||
		    row->end_ns <= latency->begin_ns || row->begin_ns >= latency->end_ns)
			continue;
		ret = latency->what == CALLS ? walk_calls(latency, row)
					     : latency_walk(latency, row);
		if (ret == KYMO_E_MEMORY)
			ky_error_nomem(latency->err);
	}
	return ret;
}

/* ---- the answers --------------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
	const struct name *one = a, *other = b;

	if (one->n != other->n)
		return one->n < other->n ? 1 : -1;
	return strcmp(one->name, other->name);
}

static void latency_put_cells(const struct latency *latency, struct ky_strbuf *out)
{
	struct ky_view_column columns = KY_VIEW_COLUMN("column", KY_VIEW_STEPS);
	struct ky_view_column classes = KY_VIEW_COLUMN("class", KY_VIEW_STEPS);
	struct ky_view_column counts = KY_VIEW_COLUMN("count", KY_VIEW_NUMBERS);

	for (size_t i = 0; i < (size_t)latency->request->count * CLASSES; i++) {
		if (!latency->cells[i])
			continue;
		ky_view_add_step(&columns, (int64_t)(i / CLASSES));
		ky_view_add_step(&classes, (int64_t)(i % CLASSES));
		ky_view_add_number(&counts, latency->cells[i]);
	}
	ky_view_put_column(out, &columns);
	ky_view_put_column(out, &classes);
	ky_view_put_column(out, &counts);
}

/* Lower ends of classes; cells; names with their numbers and times. */
static void put_map(struct latency *latency, struct ky_strbuf *out)
{
	struct ky_view_column classes = KY_VIEW_COLUMN("classes", KY_VIEW_REALS);
	struct ky_view_column names = KY_VIEW_COLUMN("name", KY_VIEW_TEXTS);
	struct ky_view_column counts = KY_VIEW_COLUMN("n", KY_VIEW_NUMBERS);
	struct ky_view_column times = KY_VIEW_COLUMN("ns", KY_VIEW_NUMBERS);

	for (size_t i = 0; i < CLASSES; i++)
		ky_view_add_real(&classes, ky_duration_class_ns(i));
	if (latency->names.len)
		qsort(latency->names.data, latency->names.len, sizeof(*latency->names.data),
		      by_number);
	for (size_t i = 0; i < latency->names.len && i < MAX_NAMES; i++) {
		const struct name *name = &latency->names.data[i];

		ky_view_add_text(&names, name->name, strlen(name->name));
		ky_view_add_number(&counts, name->n);
		ky_view_add_number(&times, (uint64_t)(name->ns + 0.5));
	}
	ky_view_put_column(out, &classes);
	latency_put_cells(latency, out);
	ky_view_put_column(out, &names);
	ky_view_put_column(out, &counts);
	ky_view_put_column(out, &times);
}

static int by_duration(const void *a, const void *b)
{
	const struct member *one = a, *other = b;
	int64_t x = one->end_ns - one->begin_ns, y = other->end_ns - other->begin_ns;

	if (x != y)
		return x < y ? 1 : -1;
	return one->begin_ns < other->begin_ns ? -1 : one->begin_ns > other->begin_ns;
}

/* The longest first. */
static void latency_put_members(struct latency *latency, struct ky_strbuf *out)
{
	struct ky_view_column begins = KY_VIEW_COLUMN("begin", KY_VIEW_TIMES);
	struct ky_view_column ends = KY_VIEW_COLUMN("end", KY_VIEW_TIMES);
	struct ky_view_column rows = KY_VIEW_COLUMN("row", KY_VIEW_NUMBERS);
	struct ky_view_names names;

	ky_view_names_init(&names, "names", "name");
	if (latency->members.len)
		qsort(latency->members.data, latency->members.len, sizeof(*latency->members.data),
		      by_duration);
	ky_vec_foreach(&latency->members, member) {
		ky_view_add_step(&begins, member->begin_ns);
		ky_view_add_step(&ends, member->end_ns);
		ky_view_add_number(&rows, member->row);
		ky_view_add_name(&names, member->name);
	}
	ky_view_put_column(out, &begins);
	ky_view_put_column(out, &ends);
	ky_view_put_column(out, &rows);
	ky_view_put_names(out, &names);
}

/* @head: of the answer, without its end. */
static int latency_find_and_put(struct latency *latency, struct ky_strbuf *head,
				struct ky_strbuf *out)
{
	int ret = latency->history ? walk_all(latency) : KYMO_OK;

	ky_strbuf_addf(head, ", \"n\": %llu}", (unsigned long long)latency->n);
	ky_view_begin_columns(out);
	ky_view_put_head(out, head);
	if (latency->cells)
		put_map(latency, out);
	else
		latency_put_members(latency, out);
	ky_view_end_columns(out);
	return ret;
}

static int latency_choose(const char *name, enum what *what, struct kymo_error *err)
{
	for (int i = 0; i < N_WHAT; i++) {
		*what = (enum what)i;
		if (strcmp(what_names[i], name) == 0)
			return KYMO_OK;
	}
	return ky_error_set(err, KYMO_E_NOT_FOUND, "there are no durations of that name");
}

int ky_view_latency(struct ky_view *view, const struct ky_view_request *request,
		    const struct ky_view_stop *stop, struct ky_strbuf *out, struct kymo_error *err)
{
	struct latency latency = {.request = request,
				  .stop = stop,
				  .begin_ns = request->begin_ns,
				  .end_ns = request->end_ns < INT64_MAX ? request->end_ns + 1
									: INT64_MAX,
				  .err = err};
	struct ky_strbuf head = KY_STRBUF_INIT;
	int ret = latency_choose(request->name, &latency.what, err);

	if (ret < 0)
		return ret;
	if (request->what == KY_VIEW_LATENCY) {
		latency.cells = calloc((size_t)request->count * CLASSES, sizeof(*latency.cells));
		if (!latency.cells)
			return ky_error_nomem(err);
	}
	ky_names_init(&latency.places);
	ret = ky_view_take_history(view, &latency.history, err);
	ky_strbuf_adds(&head, "{");
	ky_view_put_ready(view, &head);
	if (ret == KYMO_OK)
		ret = latency_find_and_put(&latency, &head, out);
	ky_view_put_history(view);
	ky_strbuf_fini(&head);
	ky_names_fini(&latency.places);
	ky_vec_fini(&latency.names);
	ky_vec_fini(&latency.members);
	free(latency.cells);
	return ret;
}
