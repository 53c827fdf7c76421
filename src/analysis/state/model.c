/* SPDX-License-Identifier: MIT */
/* The state model: the pass over the events. See model.h. */
#include "analysis/state/model-internal.h"

#include <string.h>

#include "base/error.h"

/* ---- the thread of an event ------------------------------------------------------------- */

/* Mostly the context confirms the thread that @cpu runs. NULL: compare all of it. */
static inline struct ky_thread *known_current(const struct ky_cpu *cpu, int32_t tid)
{
	struct ky_thread *thread = cpu && cpu->state == KY_CPU_BUSY ? cpu->current : NULL;

	return thread && thread->tid == tid && thread->pid != KY_UNKNOWN && thread->comm[0] ? thread
											    : NULL;
}

struct ky_thread *ky_model_context_thread(struct ky_feed *feed, const struct ky_event *event,
					  const struct ky_class_info *info, int32_t tid)
{
	struct ky_cpu *cpu = feed->cpu;
	struct ky_thread *thread;
	size_t len;

	if (cpu && cpu->state == KY_CPU_BUSY && cpu->current->tid == tid)
		thread = cpu->current;
	else
		thread = ky_model_thread_get(feed->model, feed->host, tid);
	if (!thread)
		return NULL;
	if (thread->pid == KY_UNKNOWN)
		thread->pid = (int32_t)ky_get_i64(event, &info->pid, KY_UNKNOWN);
	if (!thread->comm[0] && info->comm.cls) {
		const char *comm = ky_get_text(event, &info->comm, &len);

		ky_thread_name(thread, comm, len);
	}
	return thread;
}

struct ky_thread *ky_feed_thread(struct ky_feed *feed, const struct ky_event *event,
				 const struct ky_class_info *info)
{
	const struct ky_cpu *cpu = feed->cpu;
	struct ky_thread *known;
	int32_t tid;

	if (feed->asked == event)
		return feed->thread;
	tid = (int32_t)ky_get_i64(event, &info->tid, KY_UNKNOWN);
	known = known_current(cpu, tid);
	if (known)
		return known;
	if (tid > 0)
		return ky_model_context_thread(feed, event, info, tid);
	return tid < 0 && cpu && cpu->state == KY_CPU_BUSY ? cpu->current : NULL;
}

/* As ky_model_current(), of an event whose context does not tell what is known. */
static int look_closer(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info, int32_t tid)
{
	struct ky_cpu *cpu = feed->cpu;

	if (tid < 0) {
		feed->thread = cpu && cpu->state == KY_CPU_BUSY ? cpu->current : NULL;
		return 0;
	}
	feed->thread = NULL;
	if (tid > 0) {
		feed->thread = ky_model_context_thread(feed, event, info, tid);
		if (!feed->thread)
			return KYMO_E_MEMORY;
	}
	if (cpu && feed->stream->has_switch)
		return ky_cpu_learn(feed->model, cpu, feed->thread, event->ns);
	return 0;
}

static inline int find_current(struct ky_feed *feed, const struct ky_event *event,
			       const struct ky_class_info *info)
{
	int32_t tid = (int32_t)ky_get_i64(event, &info->tid, KY_UNKNOWN);

	feed->asked = event;
	feed->thread = known_current(feed->cpu, tid);
	if (__builtin_expect(!feed->thread, 0))
		return look_closer(feed, event, info, tid);
	if (feed->stream->has_switch)
		feed->cpu->seen_ns = event->ns;
	return 0;
}

int ky_model_current(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info, struct ky_thread **thread)
{
	int status = feed->asked == event ? 0 : find_current(feed, event, info);

	*thread = feed->thread;
	return status;
}

/* ---- the pass -------------------------------------------------------------------------- */

/*
 * Where the record of a stream begins: with the trace, when its first packet is the first of
 * the stream; else where that packet begins (a flight recorder's older ones are gone).
 */
static int64_t stream_begin(const struct ky_model *model, const struct ky_event *first)
{
	const struct ky_packet *packet = first->packet;

	if (packet->has_sequence && packet->sequence == 0 && !packet->discarded)
		return model->first_ns;
	if (packet->has_begin && packet->begin_ns <= first->ns)
		return packet->begin_ns > model->first_ns ? packet->begin_ns : model->first_ns;
	return first->ns;
}

static int be_on_cpu(struct ky_feed *feed, uint32_t id)
{
	struct ky_stream_state *stream = feed->stream;

	if (id == UINT32_MAX) {
		feed->cpu = stream->cpu = NULL;
		return 0;
	}
	if (!stream->cpu || stream->cpu_id != id) {
		stream->cpu = ky_model_cpu_get(feed->model, feed->host, id);
		stream->cpu_id = id;
		if (!stream->cpu)
			return KYMO_E_MEMORY;
	}
	feed->cpu = stream->cpu;
	return 0;
}

/* Linux has no more CPUs. Each loss is noted for each of them. */
#define NAMED_MAX 8192

/* The event at hand says that it was on that CPU: what is lost of its stream is lost of that one, too. */
static int note_named(struct ky_feed *feed)
{
	struct ky_map *cpus = &feed->stream->cpus;

	if (!feed->cpu || cpus->len == NAMED_MAX)
		return 0;
	return ky_map_set(cpus, feed->cpu->index, feed->cpu);
}

/* *@event is on another CPU than the last one; @own is for one whose packet does not tell which. */
static int use_cpu(struct ky_feed *feed, const struct ky_event **event, struct ky_event *own)
{
	const struct ky_class_info *info = &feed->host->classes[(*event)->cls->index];
	uint32_t id = ky_event_cpu(*event, info);
	bool is_known = feed->cpu && feed->stream->cpu_id == id;
	int status;

	if (id == (*event)->cpu_id)
		return be_on_cpu(feed, id);
	*own = **event;
	own->cpu_id = id;
	*event = own;
	feed->asked = NULL; /* it knew events by their addresses */
	status = be_on_cpu(feed, id);
	return status < 0 || is_known ? status : note_named(feed);
}

/* The first event of a CPU in a stream that records switches. */
static void begin_cpu(struct ky_feed *feed, const struct ky_event *event)
{
	struct ky_cpu *cpu = feed->cpu;

	cpu->begin_ns = feed->stream->begun ? event->ns : stream_begin(feed->model, event);
	if (cpu->since_ns < cpu->begin_ns)
		cpu->since_ns = cpu->begin_ns;
	/* Time before the range does not count. Later events may correct complete intervals. */
	if (cpu->since_ns < feed->model->range_ns)
		cpu->since_ns = feed->model->range_ns;
	feed->stream->begun = true;
}

/* After some time without an event, one comes. Of a busy CPU, the tick's softirqs are events, if they are recorded. */
static int end_quiet(struct ky_feed *feed, const struct ky_event *event)
{
	struct ky_cpu *cpu = feed->cpu;
	int64_t begin = cpu->event_ns;

	if (begin == INT64_MIN || begin > event->ns ||
	    (uint64_t)event->ns - (uint64_t)begin < KY_QUIET_NS || cpu->state != KY_CPU_BUSY ||
	    begin < feed->host->torn_until_ns || begin < cpu->lost_until_ns ||
	    !(feed->host->abilities & (KY_CAN_SOFTIRQ | KY_CAN_VECTORS | KY_CAN_TIMERS)) ||
	    !feed->model->telling || !ky_model_tells_cpu(feed->model, cpu->id))
		return 0;
	return ky_model_notify(feed->model, quiet, cpu, cpu->current, begin, event->ns);
}

/* What any event may tell of, when listeners or the focus ask for it. */
static int see_event(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info)
{
	unsigned int subjects = feed->model->subjects;
	int status = 0;

	if (feed->model->follows_cgroups)
		status = ky_cgroup_see(feed, event, info);
	if (status >= 0 && info->has_stacks && subjects & KY_ABOUT_STACKS)
		status = ky_stacks_see(feed, event, info);
	/* First, as a switch is an event of the thread that it takes off. */
	if (status >= 0 && info->in_periods && subjects & KY_ABOUT_PERIODS)
		status = ky_periods_see(feed, event, info);
	return status;
}

static int feed_event(struct ky_feed *feed, const struct ky_event *event)
{
	const struct ky_class_info *info = &feed->host->classes[event->cls->index];
	unsigned int subjects = feed->model->subjects;
	struct ky_cpu *cpu = feed->cpu;
	int status;

	if (subjects & KY_ABOUT_LAST_EVENTS && cpu && !info->no_sign) {
		/* Unsigned, for the earliest moments of all. */
		if (__builtin_expect((uint64_t)event->ns - (uint64_t)cpu->event_ns >= KY_QUIET_NS,
				     0)) {
			status = end_quiet(feed, event);
			if (status < 0)
				return status;
		}
		cpu->event_ns = event->ns;
	}
	if (subjects & KY_ABOUT_EACH || feed->model->follows_cgroups) {
		status = see_event(feed, event, info);
		if (status < 0)
			return status;
	}
	/* The first run of a thread: its process may come from any event. */
	if (cpu && cpu->unnamed && info->pid.cls && !info->no_sign) {
		(void)ky_feed_thread(feed, event, info);
		cpu->unnamed = cpu->current && cpu->current->pid == KY_UNKNOWN;
	}
	if (!info->handle && (!cpu || (cpu->state != KY_CPU_UNKNOWN && !cpu->missing)))
		return 0;
	if (cpu && feed->stream->has_switch && !info->no_sign) {
		if (cpu->begin_ns == INT64_MIN)
			begin_cpu(feed, event);
		/*
		 * Any event's context tells what a CPU runs that is unknown, or that misses
		 * switches; a switch tells by itself.
		 */
		if ((cpu->state == KY_CPU_UNKNOWN || cpu->missing) && info->tid.cls &&
		    info->handle != ky_on_switch) {
			status = find_current(feed, event, info);
			if (status < 0)
				return status;
		}
	}
	return info->handle ? info->handle(feed, event, info) : 0;
}

/* What comes next is of @stream. */
static void enter_stream(struct ky_feed *feed, const struct ky_stream *stream)
{
	feed->stream = &feed->model->streams[stream->index];
	feed->host = feed->stream->host;
	feed->cpu = feed->stream->cpu;
}

/* Another CPU may have decoded it. */
#define PREFETCH_EVENTS 8

static inline void state_model_fetch(const struct ky_event *event)
{
	__builtin_prefetch(event + PREFETCH_EVENTS);
	__builtin_prefetch(event->packet->data + event->begin_bits / 8);
}

bool ky_model_is_before(const struct ky_model *model, const struct ky_host *host,
			const struct ky_event *event)
{
	return model->first_ns == INT64_MIN && host->classes[event->cls->index].of_before;
}

/* Before anything happened: no time, no CPU. */
static int feed_before(struct ky_feed *feed, const struct ky_event *event)
{
	const struct ky_class_info *info = &feed->host->classes[event->cls->index];

	return info->before ? info->before(feed, event, info) : 0;
}

/* The same with a time that can be. */
static const struct ky_event *bring_near(struct ky_feed *feed, const struct ky_event *event,
					 struct ky_event *own)
{
	*own = *event;
	own->ns = ky_near_ns(feed->model->first_ns, event->ns);
	feed->asked = NULL; /* it knew events by their addresses */
	return own;
}

/* Between which times an event needs no look at feed_check(). */
static void set_calm(struct ky_feed *feed)
{
	const struct ky_model *model = feed->model;
	bool has_begun = model->first_ns != INT64_MIN;
	int64_t until =
		model->boundary_ns < model->latest_ns ? model->boundary_ns : model->latest_ns;

	feed->calm_from_ns = !has_begun			       ? INT64_MAX
			     : model->earliest_ns == INT64_MIN ? INT64_MIN + 1
							       : model->earliest_ns;
	feed->calm_until_ns = has_begun ? until : INT64_MIN;
}

/*
 * The first event, one without a time or with one that cannot be, and the first one from a boundary on. *@event becomes the
 * one to go on with; NULL: none. 0, 1 when the focus is over, or negative.
 */
static int feed_check(struct ky_feed *feed, const struct ky_event **event, struct ky_event *own)
{
	struct ky_model *model = feed->model;
	const struct ky_event *given = *event;
	int status = 0;

	*event = NULL;
	if (given->ns == INT64_MIN) {
		model->n_events++;
		return 0; /* no time: nothing to order it by */
	}
	if (model->first_ns == INT64_MIN) {
		if (ky_model_is_before(model, feed->host, given)) {
			status = feed_before(feed, given);
			return status < 0 ? status : 0;
		}
		ky_model_first(model, given->ns);
	}
	*event = given;
	if (given->ns < model->earliest_ns || given->ns > model->latest_ns)
		*event = bring_near(feed, given, own);
	if ((*event)->ns >= model->boundary_ns)
		status = ky_model_boundary(model, (*event)->ns);
	set_calm(feed);
	return status;
}

static int feed_events(struct ky_feed *feed, const struct ky_batch *batch)
{
	struct ky_model *model = feed->model;
	const struct ky_packet *packet = NULL;
	struct ky_event own;
	int status = 0;

	set_calm(feed);
	for (size_t i = 0; i < batch->n_events; i++) {
		const struct ky_event *event = &batch->events[i];

		if (i + PREFETCH_EVENTS < batch->n_events)
			state_model_fetch(&batch->events[i + PREFETCH_EVENTS]);
		if (event->packet != packet) {
			packet = event->packet;
			enter_stream(feed, ky_batch_stream(batch, event));
		}
		if (event->ns < feed->calm_from_ns || event->ns >= feed->calm_until_ns) {
			status = feed_check(feed, &event, &own);
			if (status)
				return status;
			if (!event)
				continue;
		}
		if (model->telling) {
			model->n_events++;
			if (event->ns > model->end_ns)
				model->end_ns = event->ns;
		}
		feed->stream->last_ns = event->ns;
		if (event->cpu_id != feed->stream->cpu_id || !feed->cpu) {
			status = use_cpu(feed, &event, &own);
			if (status < 0)
				return status;
		}
		status = feed_event(feed, event);
		if (status < 0)
			return status;
	}
	return status;
}

int ky_model_feed(struct ky_model *model, const struct ky_batch *batch, struct kymo_error *err)
{
	struct ky_feed feed = {.model = model};
	int status = 0;

	if (batch->loss) {
		const struct ky_stream *stream =
			batch->stream ? batch->stream : batch->loss->stream;

		enter_stream(&feed, stream);
		if (!feed.cpu && stream->has_cpu_id)
			status = be_on_cpu(&feed, stream->cpu_id);
		if (status >= 0)
			status = ky_model_lose(&feed, batch);
	}
	if (!status)
		status = feed_events(&feed, batch);
	if (status == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	return status < 0 ? ky_error_set(err, status, "%s", kymo_status_text(status)) : status;
}

int ky_model_end(struct ky_model *model, struct kymo_error *err)
{
	int status = ky_model_cut(model, model->end_ns);

	ky_vec_foreach(&model->threads, thread) {
		if (status >= 0)
			status = ky_call_abandon(model, *thread, KY_CALL_UNENDED, INT64_MIN);
	}
	if (status >= 0)
		status = ky_functions_end(model);
	if (status >= 0)
		status = ky_locks_end(model);
	if (status >= 0)
		status = ky_periods_end(model);
	return status < 0 ? ky_error_set(err, status, "%s", kymo_status_text(status)) : 0;
}

int ky_model_step(struct ky_model *model, struct ky_flow *flow, struct kymo_error *err)
{
	struct ky_batch batch;
	int status = ky_flow_next(flow, &batch, err), fed = 0, ended;

	if (status > 0)
		fed = ky_model_feed(model, &batch, err);
	if (fed < 0 || (status > 0 && !fed))
		return fed < 0 ? fed : 1;
	if (fed >
	    0) /* Other streams may have ended too early: that is not known to who stops here. */
		status = ky_model_lose_damaged(model, flow, err);
	else if (status < 0 && ky_model_lose_damaged(model, flow, NULL) == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	ended = ky_model_end(model, status < 0 ? NULL : err);
	return status < 0 ? status : ended;
}

int ky_model_run(struct ky_model *model, struct ky_flow *flow, struct kymo_error *err)
{
	int status;

	while ((status = ky_model_step(model, flow, err)) > 0)
		;
	return status;
}
