/* SPDX-License-Identifier: MIT */
/*
 * The state model: periods that the user defined. Those that are open lie in stacks, one for each
 * (definition, host, keys): an end ends the one begun last, so periods nest. Open ones are kept over
 * the borders of intervals. Their number is limited, as a begin may never find its end.
 */
#include "analysis/state/model-internal.h"

#include <string.h>

#include "analysis/state/periods.h"
#include "base/strbuf.h"
#include "query/program.h"

#define MAX_OPEN	   100000
#define MAX_KEY_TEXT	   256
#define MAX_CAPTURED_BYTES 512

struct stack;

struct open_period {
	const struct ky_period_def *def;
	struct ky_thread *thread;
	const struct ky_host *host;
	int64_t begin_ns;
	uint32_t cpu_id;
	char *captured; /* NULL: nothing */
	struct stack *stack;
	struct open_period *below, *above;  /* in the stack */
	struct open_period *older, *newer;  /* of all */
	struct open_period *parent, *child; /* the one that it is in; the first one in it */
	struct open_period *prev, *next;    /* of the same parent */
};

/* Open periods with the same keys. */
struct stack {
	struct open_period *top;
	struct stack *next; /* with the same hash */
	uint64_t hash;
	size_t len;
	char key[];
};

struct ky_open_periods {
	const struct ky_periods *periods;
	struct ky_map stacks; /* hash -> struct stack * */
	struct open_period *oldest, *newest;
	size_t n;
	int64_t *torn_until_ns; /* by host */
	struct ky_strbuf key, text;
};

/* ---- keys ------------------------------------------------------------------------------ */

static void model_periods_add_bytes(struct ky_strbuf *key, char type, const void *data, size_t len)
{
	uint32_t size = (uint32_t)len;

	ky_strbuf_addc(key, type);
	ky_strbuf_add(key, (const char *)&size, sizeof(size));
	ky_strbuf_add(key, data, len);
}

/* False when the event has no such value. */
static bool add_operand(struct ky_strbuf *key, const struct ky_operand *value)
{
	__int128 number = value->number;

	switch (value->type) {
	case KY_TYPE_NONE:
		return false;
	case KY_TYPE_BOOL:
		number = value->truth;
		break;
	case KY_TYPE_TEXT:
		model_periods_add_bytes(key, 't', value->text.data,
					value->text.len < MAX_KEY_TEXT ? value->text.len
								       : MAX_KEY_TEXT);
		return true;
	case KY_TYPE_REAL:
		model_periods_add_bytes(key, 'r', &value->real, sizeof(value->real));
		return true;
	default:
		break;
	}
	model_periods_add_bytes(key, 'n', &number, sizeof(number));
	return true;
}

/* The thread, or else the CPU: what is idle or not known there. */
static void model_periods_add_thread(struct ky_strbuf *key, const struct ky_thread *thread,
				     const struct ky_event *event)
{
	if (thread)
		model_periods_add_bytes(key, 'p', &thread->index, sizeof(thread->index));
	else
		model_periods_add_bytes(key, 'c', &event->cpu_id, sizeof(event->cpu_id));
}

/* The first @n_keys of @def's keys into open->key, as @index's. 1; 0 when the event lacks one. */
static int model_periods_make_key(struct ky_feed *feed, const struct ky_event *event,
				  const struct ky_period_def *def, size_t n_keys, uint32_t index,
				  bool at_end, const struct ky_thread *thread)
{
	struct ky_strbuf *key = &feed->model->periods->key;

	ky_strbuf_clear(key);
	model_periods_add_bytes(key, 'd', &index, sizeof(index));
	model_periods_add_bytes(key, 'h', &feed->host->index, sizeof(feed->host->index));
	for (size_t i = 0; i < n_keys; i++) {
		const struct ky_filter *filter = at_end ? def->keys[i].end : def->keys[i].begin;
		struct ky_operand value;

		if (!filter) {
			model_periods_add_thread(key, thread, event);
			continue;
		}
		value = ky_filter_value(filter, feed->host->index, event);
		if (!add_operand(key, &value))
			return 0;
	}
	return ky_strbuf_failed(key) ? KYMO_E_MEMORY : 1;
}

/* ---- stacks ---------------------------------------------------------------------------- */

/* The stack of open->key; NULL: none exists. */
static struct stack *find_stack(const struct ky_open_periods *open)
{
	uint64_t hash = ky_hash_bytes(ky_strbuf_text(&open->key), open->key.len);
	struct stack *stack = ky_map_get(&open->stacks, hash);

	while (stack && (stack->len != open->key.len ||
			 memcmp(stack->key, ky_strbuf_text(&open->key), stack->len) != 0))
		stack = stack->next;
	return stack;
}

static struct stack *model_periods_add_stack(struct ky_open_periods *open)
{
	struct stack *stack = find_stack(open);

	if (stack)
		return stack;
	stack = malloc(sizeof(*stack) + open->key.len);
	if (!stack)
		return NULL;
	*stack = (struct stack){.hash = ky_hash_bytes(ky_strbuf_text(&open->key), open->key.len),
				.len = open->key.len};
	memcpy(stack->key, ky_strbuf_text(&open->key), stack->len);
	stack->next = ky_map_get(&open->stacks, stack->hash);
	if (ky_map_set(&open->stacks, stack->hash, stack) < 0) {
		free(stack);
		return NULL;
	}
	return stack;
}

/* An empty stack goes. What is in the map is replaced, hence no memory is needed. */
static void drop_stack(struct ky_open_periods *open, struct stack *stack)
{
	struct stack *first = ky_map_get(&open->stacks, stack->hash);

	if (first == stack && !stack->next) {
		ky_map_del(&open->stacks, stack->hash);
	} else if (first == stack) {
		ky_map_set(&open->stacks, stack->hash, stack->next);
	} else {
		while (first->next != stack)
			first = first->next;
		first->next = stack->next;
	}
	free(stack);
}

static void link_open(struct ky_open_periods *open, struct open_period *period)
{
	period->below = period->stack->top;
	if (period->below)
		period->below->above = period;
	period->stack->top = period;
	period->older = open->newest;
	if (open->newest)
		open->newest->newer = period;
	else
		open->oldest = period;
	open->newest = period;
	if (period->parent) {
		period->next = period->parent->child;
		if (period->next)
			period->next->prev = period;
		period->parent->child = period;
	}
	open->n++;
}

static void unlink_open(struct ky_open_periods *open, struct open_period *period)
{
	if (period->above)
		period->above->below = period->below;
	else
		period->stack->top = period->below;
	if (period->below)
		period->below->above = period->above;
	if (period->older)
		period->older->newer = period->newer;
	else
		open->oldest = period->newer;
	if (period->newer)
		period->newer->older = period->older;
	else
		open->newest = period->older;
	if (period->prev)
		period->prev->next = period->next;
	else if (period->parent)
		period->parent->child = period->next;
	if (period->next)
		period->next->prev = period->prev;
	if (!period->stack->top)
		drop_stack(open, period->stack);
	open->n--;
}

/* ---- captures -------------------------------------------------------------------------- */

static void model_periods_add_value(struct ky_strbuf *text, const struct ky_operand *value)
{
	switch (value->type) {
	case KY_TYPE_NONE:
		ky_strbuf_addc(text, '-');
		break;
	case KY_TYPE_BOOL:
		ky_strbuf_adds(text, value->truth ? "true" : "false");
		break;
	case KY_TYPE_REAL:
		ky_strbuf_addf(text, "%.9g", value->real);
		break;
	case KY_TYPE_TEXT:
		ky_strbuf_add(text, value->text.data, value->text.len);
		break;
	default:
		if (value->number < 0)
			ky_strbuf_addi(text, (int64_t)value->number);
		else
			ky_strbuf_addu(text, (uint64_t)value->number);
	}
}

static void model_periods_capture_one(struct ky_feed *feed, const struct ky_event *event,
				      bool at_end, struct ky_strbuf *text,
				      struct ky_capture *capture)
{
	struct ky_operand value;

	if (capture->at_end != at_end || text->len >= MAX_CAPTURED_BYTES)
		return;
	value = ky_filter_value(capture->value, feed->host->index, event);
	if (value.type == KY_TYPE_TEXT && value.text.len > MAX_KEY_TEXT)
		value.text.len = MAX_KEY_TEXT;
	ky_strbuf_addf(text, "%s%s=", text->len ? " " : "", capture->name);
	model_periods_add_value(text, &value);
}

/* Those of the begin or the end, behind what open->text has. */
static void model_periods_capture(struct ky_feed *feed, const struct ky_event *event,
				  const struct ky_period_def *def, bool at_end)
{
	struct ky_strbuf *text = &feed->model->periods->text;

	ky_vec_foreach(&def->captures, it)
		model_periods_capture_one(feed, event, at_end, text, it);
}

/* ---- beginning and ending --------------------------------------------------------------- */

static int model_periods_tell(struct ky_model *model, const struct ky_period *period)
{
	bool done = period->outcome == KY_PERIOD_DONE;

	if (!ky_model_tells(model, period->thread, period->cpu_id) ||
	    (done && !ky_model_tells_long(model, period->end_ns - period->begin_ns)))
		return 0;
	return ky_model_notify(model, period, period);
}

static void free_open(struct open_period *period)
{
	free(period->captured);
	free(period);
}

/* @period is over; so are those in it. @captured: all that was captured. */
static int close_open(struct ky_model *model, struct open_period *period,
		      enum ky_period_outcome outcome, int64_t end_ns, uint32_t cpu_id,
		      const char *captured)
{
	struct ky_period told = {
		.def = period->def,
		.outcome = outcome,
		.begin_ns = period->begin_ns,
		.end_ns = end_ns,
		.parent_ns = period->parent ? period->parent->begin_ns : INT64_MIN,
		.thread = period->thread,
		.cpu_id = cpu_id,
		.captured = captured ? captured : "",
	};
	int status = 0;

	/* At most as deep as definitions nest. */
	while (period->child) {
		int inner = close_open(model, period->child, KY_PERIOD_OUTLIVED, end_ns,
				       period->child->cpu_id, period->child->captured);

		status = status < 0 ? status : inner;
	}
	if (status >= 0)
		status = model_periods_tell(model, &told);
	unlink_open(model->periods, period);
	free_open(period);
	return status;
}

/* An end without a begin; of one that lies in others, only where it could have begun. */
static int model_periods_headless(struct ky_feed *feed, const struct ky_event *event,
				  const struct ky_period_def *def, struct ky_thread *thread)
{
	struct ky_period period = {
		.def = def,
		.outcome = KY_PERIOD_HEADLESS,
		.begin_ns = INT64_MIN,
		.end_ns = event->ns,
		.parent_ns = INT64_MIN,
		.thread = thread,
		.cpu_id = event->cpu_id,
		.captured = "",
	};

	return def->parent ? 0 : model_periods_tell(feed->model, &period);
}

static int end_one(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_period_def *def, struct ky_thread *thread)
{
	struct ky_open_periods *open = feed->model->periods;
	int status =
		model_periods_make_key(feed, event, def, def->n_keys, def->index, true, thread);
	struct open_period *period;
	struct stack *stack;
	bool torn;

	if (status <= 0)
		return status;
	stack = find_stack(open);
	if (!stack)
		return model_periods_headless(feed, event, def, thread);
	period = stack->top;
	torn = period->begin_ns < open->torn_until_ns[feed->host->index];
	ky_strbuf_clear(&open->text);
	ky_strbuf_adds(&open->text, period->captured ? period->captured : "");
	model_periods_capture(feed, event, def, true);
	if (ky_strbuf_failed(&open->text))
		return KYMO_E_MEMORY;
	return close_open(feed->model, period, torn ? KY_PERIOD_TORN : KY_PERIOD_DONE, event->ns,
			  event->cpu_id, ky_strbuf_text(&open->text));
}

/* The one of @def's parent that the event lies in. 1, 0: none, or negative. */
static int find_parent(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_period_def *def, struct ky_thread *thread,
		       struct open_period **parent)
{
	struct stack *stack;
	int status = model_periods_make_key(feed, event, def, def->parent->n_keys,
					    def->parent->index, false, thread);

	if (status <= 0)
		return status;
	stack = find_stack(feed->model->periods);
	*parent = stack ? stack->top : NULL;
	return stack != NULL;
}

static int model_periods_make_room(struct ky_feed *feed)
{
	struct ky_open_periods *open = feed->model->periods;

	if (open->n < MAX_OPEN)
		return 0;
	return close_open(feed->model, open->oldest, KY_PERIOD_FORGOTTEN, INT64_MIN,
			  open->oldest->cpu_id, open->oldest->captured);
}

static int begin_one(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_period_def *def, struct ky_thread *thread)
{
	struct ky_open_periods *open = feed->model->periods;
	struct open_period *period, *parent = NULL;
	int status = model_periods_make_room(feed);

	if (status < 0)
		return status;
	status = def->parent ? find_parent(feed, event, def, thread, &parent) : 1;
	if (status > 0)
		status = model_periods_make_key(feed, event, def, def->n_keys, def->index, false,
						thread);
	if (status <= 0)
		return status;
	period = malloc(sizeof(*period));
	if (!period)
		return KYMO_E_MEMORY;
	*period = (struct open_period){.def = def,
				       .thread = thread,
				       .host = feed->host,
				       .begin_ns = event->ns,
				       .cpu_id = event->cpu_id,
				       .parent = parent};
	ky_strbuf_clear(&open->text);
	model_periods_capture(feed, event, def, false);
	if (open->text.len)
		period->captured = strdup(ky_strbuf_text(&open->text));
	if (!ky_strbuf_failed(&open->text) && (!open->text.len || period->captured))
		period->stack = model_periods_add_stack(open);
	if (!period->stack) {
		free_open(period);
		return KYMO_E_MEMORY;
	}
	link_open(open, period);
	return 0;
}

int ky_periods_see(struct ky_feed *feed, const struct ky_event *event,
		   const struct ky_class_info *info)
{
	const struct ky_periods *periods = feed->model->periods->periods;
	struct ky_thread *thread = feed->host->of_programs ? ky_programs_thread(feed, event, info)
							   : ky_feed_thread(feed, event, info);
	int status = 0;

	/* The inner ones end first and begin last. */
	for (size_t i = periods->defs.len; i-- > 0 && status >= 0;) {
		const struct ky_period_def *def = periods->defs.data[i];

		if (ky_filter_match(def->end, feed->host->index, event))
			status = end_one(feed, event, def, thread);
	}
	for (size_t i = 0; i < periods->defs.len && status >= 0; i++) {
		const struct ky_period_def *def = periods->defs.data[i];

		if (ky_filter_match(def->begin, feed->host->index, event))
			status = begin_one(feed, event, def, thread);
	}
	return status < 0 ? status : 0;
}

void ky_periods_lose(struct ky_model *model, const struct ky_host *host, int64_t end_ns)
{
	if (model->periods && end_ns > model->periods->torn_until_ns[host->index])
		model->periods->torn_until_ns[host->index] = end_ns;
}

int ky_periods_end(struct ky_model *model)
{
	struct ky_open_periods *open = model->periods;
	int status = 0;

	/* The newest first: what is in another one is not outlived here. */
	while (open && open->newest && status >= 0)
		status = close_open(model, open->newest, KY_PERIOD_UNENDED, INT64_MIN,
				    open->newest->cpu_id, open->newest->captured);
	return status;
}

void ky_periods_fini(struct ky_model *model)
{
	struct ky_open_periods *open = model->periods;

	if (!open)
		return;
	while (open->newest) {
		struct open_period *period = open->newest;

		unlink_open(open, period);
		free_open(period);
	}
	ky_map_fini(&open->stacks);
	ky_strbuf_fini(&open->key);
	ky_strbuf_fini(&open->text);
	free(open->torn_until_ns);
	free(open);
	model->periods = NULL;
}

/* Which classes may begin or end one. */
static void mark_classes(struct ky_host *host, const struct ky_periods *periods)
{
	ky_vec_foreach(&host->trace->cls->events, cls) {
		ky_vec_foreach(&periods->defs, def) {
			if (ky_filter_verdict((*def)->begin, host->index, *cls) != KY_NEVER ||
			    ky_filter_verdict((*def)->end, host->index, *cls) != KY_NEVER)
				host->classes[(*cls)->index].in_periods = true;
		}
	}
}

int ky_model_set_periods(struct ky_model *model, const struct ky_periods *periods)
{
	struct ky_open_periods *open = calloc(1, sizeof(*open));

	if (!open)
		return KYMO_E_MEMORY;
	open->periods = periods;
	ky_map_init(&open->stacks);
	ky_strbuf_init(&open->key);
	ky_strbuf_init(&open->text);
	model->periods = open;
	open->torn_until_ns = calloc(model->hosts.len + 1, sizeof(*open->torn_until_ns));
	if (!open->torn_until_ns)
		return KYMO_E_MEMORY; /* ky_model_free() frees it */
	ky_vec_foreach(&model->hosts, host) {
		open->torn_until_ns[(*host)->index] = INT64_MIN;
		mark_classes(*host, periods);
	}
	return 0;
}
