/* SPDX-License-Identifier: MIT */
/*
 * The state model: threads off the CPU. A wait for a CPU begins with the first waking since
 * the thread last ran, or with the switch that preempted it; it ends with the switch to it.
 * A thread that another CPU wakes while it is still on its way off the CPU waits from its switch on.
 * Waits over lost switches do not count, since the thread may have run.
 */
#include "analysis/state/model-internal.h"

/* The kernel's task states, as switches tell them; what is above says "preempted". */
#define TASK_INTERRUPTIBLE   0x01
#define TASK_UNINTERRUPTIBLE 0x02
#define TASK_STATES	     0xff

/* @thread waits for CPU @cpu now, or for none (KY_UNKNOWN, or one that was never seen). */
static int model_wait_count(struct ky_model *model, struct ky_thread *thread, int32_t cpu,
			    int64_t ns)
{
	struct ky_cpu *from = thread->queue, *to = NULL;
	int status = 0;

	if (from ? (int32_t)from->id == cpu : cpu == KY_UNKNOWN)
		return 0;
	if (cpu >= 0)
		to = ky_map_get(&thread->host->cpus, (uint32_t)cpu);
	thread->queue = to;
	if (from && from->n_waiting) {
		from->n_waiting--;
		if (model->telling && ky_model_tells_cpu(model, from->id))
			status = ky_model_notify(model, queued, from, ns);
	}
	if (to) {
		to->n_waiting++;
		if (status >= 0 && model->telling && ky_model_tells_cpu(model, to->id))
			status = ky_model_notify(model, queued, to, ns);
	}
	return status;
}

/* The time off the CPU does not count: the thread may have run meanwhile. */
static int drop_off(struct ky_model *model, struct ky_thread *thread)
{
	int status = thread->off == KY_OFF_UNKNOWN ? 0 : ky_model_doubt(model, thread);

	thread->off = KY_OFF_UNKNOWN;
	return status;
}

/* @woken: of struct ky_time_off. */
static int model_wait_flush(struct ky_model *model, struct ky_thread *thread,
			    const struct ky_wait *woken, int64_t ns)
{
	int64_t begin = thread->off_ns;
	uint32_t cpu = thread->cpu < 0 ? UINT32_MAX : (uint32_t)thread->cpu;

	if (thread->off == KY_OFF_UNKNOWN || begin >= ns)
		return 0;
	if (thread->left_ns < thread->host->blind_until_ns || thread->left_ns <= thread->stray_ns)
		return drop_off(model, thread);
	thread->off_ns = ns;
	if (model->subjects & KY_ABOUT_DID &&
	    ky_lock_note_off(model, thread, thread->off, begin, ns) < 0)
		return KYMO_E_MEMORY;
	if (!ky_model_tells(model, thread, cpu) || ky_model_doubted(model, thread))
		return 0;
	return ky_model_notify(model, off,
			       &(struct ky_time_off){thread, thread->off, begin, ns, woken});
}

int ky_wait_flush(struct ky_model *model, struct ky_thread *thread, int64_t ns)
{
	return model_wait_flush(model, thread, NULL, ns);
}

static int go_off(struct ky_model *model, struct ky_thread *thread, enum ky_off_kind kind,
		  const struct ky_wait *woken, int64_t ns)
{
	int status = model_wait_flush(model, thread, woken, ns);

	thread->off = kind;
	thread->off_ns = thread->left_ns = ns;
	return status;
}

static enum ky_off_kind off_kind(uint64_t state)
{
	if (!(state & TASK_STATES))
		return KY_OFF_READY;
	if (state & TASK_INTERRUPTIBLE)
		return KY_OFF_SLEEP;
	return state & TASK_UNINTERRUPTIBLE ? KY_OFF_DISK : KY_OFF_OTHER;
}

/*
 * @thread runs on @cpu at @ns, or has run there, though no recorded switch ended its wait. The wait
 * ended at its begin at the earliest and at @ns at the latest.
 */
static int bound_wait(struct ky_model *model, struct ky_thread *thread, const struct ky_cpu *cpu,
		      int64_t ns)
{
	struct ky_waited waited = {thread, cpu, thread->wait, ns};
	int64_t begin = thread->wait.begin_ns;
	uint64_t most_ns;

	if (!thread->wait.kind || begin == INT64_MIN || begin < thread->host->blind_until_ns ||
	    begin <= thread->stray_ns || !ky_model_tells(model, thread, cpu->id))
		return 0;
	most_ns = ns > begin ? (uint64_t)ns - (uint64_t)begin : 0;
	model->waits.missed++;
	model->waits.missed_most_ns += most_ns;
	if (model->waits.missed_longest_ns < most_ns)
		model->waits.missed_longest_ns = most_ns;
	return ky_model_notify(model, wait_bounded, &waited);
}

int ky_wait_leave(struct ky_feed *feed, struct ky_thread *thread, const struct ky_thread *next,
		  uint64_t state, int64_t ns)
{
	enum ky_off_kind kind = off_kind(state);
	int status;

	/* What ends may still be taken off a CPU on its way; its last switch is the end. */
	if (thread->dead && kind != KY_OFF_READY)
		kind = KY_OFF_UNKNOWN;
	/* It ran; the begin is unknown if the model did not have it as running. */
	status = drop_off(feed->model, thread);
	if (status >= 0)
		status = go_off(feed->model, thread, kind, NULL, ns);
	if (status >= 0)
		status = bound_wait(feed->model, thread, feed->cpu, ns);
	thread->wait = (struct ky_wait){.kind = KY_WAIT_NONE};
	/* A sched_wakeup from before: no sched_waking that comes now belongs to it. */
	thread->unannounced = false;
	if (kind != KY_OFF_READY)
		return status < 0 ? status : model_wait_count(feed->model, thread, KY_UNKNOWN, ns);
	if (status < 0)
		return status;
	thread->wait = (struct ky_wait){
		.kind = KY_WAIT_PREEMPTED,
		.begin_ns = ns,
		.by = next,
		.cpu_id = feed->cpu->id,
	};
	return model_wait_count(feed->model, thread, (int32_t)feed->cpu->id, ns);
}

/* By what a thread was woken. Fields one by one: to load a struct that has just been put together stalls the CPU. */
struct waking {
	int64_t ns;
	const struct ky_thread *waker;
	const struct ky_irq_line *irq;
};

static struct waking waking_of(struct ky_feed *feed, const struct ky_event *event,
			       const struct ky_class_info *info)
{
	return (struct waking){
		.ns = event->ns,
		.waker = ky_feed_thread(feed, event, info),
		.irq = feed->cpu ? ky_irq_current(feed->cpu) : NULL,
	};
}

static void set_woken(struct ky_wait *wait, const struct waking *waking, uint32_t cpu_id)
{
	wait->kind = KY_WAIT_WOKEN;
	wait->begin_ns = waking->ns;
	wait->waker = waking->waker;
	wait->irq = waking->irq;
	wait->by = NULL;
	wait->cpu_id = cpu_id;
}

/*
 * The thread left for a sleep, and goes on by a waking from before: it waits for a CPU since it left. Where it did not
 * sleep, its sched_wakeup came before the switch, or another sched_waking after it.
 */
static void model_wait_since_left(struct ky_thread *thread)
{
	bool sleeps = thread->off != KY_OFF_UNKNOWN && thread->off != KY_OFF_READY;

	if (thread->early.kind && sleeps && !thread->wait.kind) {
		thread->wait = thread->early;
		thread->wait.begin_ns = thread->left_ns;
		thread->woken = thread->wait;
		thread->off = KY_OFF_READY;
	}
	thread->early.kind = KY_WAIT_NONE;
}

int ky_wait_wake(struct ky_feed *feed, const struct ky_event *event,
		 const struct ky_class_info *info, struct ky_thread *thread, int32_t cpu,
		 bool whole)
{
	bool is_first = thread->announced; /* of two events: sched_waking, not sched_wakeup */
	uint32_t cpu_id = cpu < 0 ? UINT32_MAX : (uint32_t)cpu;
	/* Only sched_waking has the waker and its time. */
	struct waking waking = {.ns = INT64_MIN};
	int status;

	if (!is_first && !thread->running)
		model_wait_since_left(thread);
	thread->early.kind = KY_WAIT_NONE;
	if (is_first && thread->running) {
		waking = waking_of(feed, event, info);
		set_woken(&thread->early, &waking, UINT32_MAX);
	}
	/* A wait that began before a loss may be over: this is the first waking that counts. */
	if (thread->wait.kind && thread->wait.begin_ns < thread->host->blind_until_ns)
		thread->wait.kind = KY_WAIT_NONE;
	/* Only the second event of a wake-up has the CPU that was chosen. */
	if (thread->wait.kind == KY_WAIT_WOKEN && cpu >= 0)
		thread->wait.cpu_id = cpu_id;
	if (thread->running || thread->wait.kind)
		return thread->running ? 0 : model_wait_count(feed->model, thread, cpu, event->ns);
	if (whole)
		waking = waking_of(feed, event, info);
	else
		cpu_id = 0;
	set_woken(&thread->wait, &waking, cpu_id);
	set_woken(&thread->woken, &waking, cpu_id);
	status =
		go_off(feed->model, thread, KY_OFF_READY, whole ? &thread->woken : NULL, event->ns);
	return status < 0 ? status : model_wait_count(feed->model, thread, cpu, event->ns);
}

/* A switch to the thread ended its wait. */
static int tell_waited(struct ky_model *model, const struct ky_waited *waited)
{
	const struct ky_thread *thread = waited->thread;
	int64_t begin = waited->wait.begin_ns;

	if (!waited->wait.kind || begin == INT64_MIN || begin < thread->host->blind_until_ns ||
	    begin <= thread->stray_ns || !ky_model_tells(model, thread, waited->cpu->id) ||
	    !ky_model_tells_long(model, waited->end_ns - begin))
		return 0;
	model->waits.measured++;
	return ky_model_notify(model, waited, waited);
}

int ky_wait_complete(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info, struct ky_thread *thread)
{
	struct ky_waited waited = {.thread = thread, .end_ns = event->ns};
	bool told = thread->woken.begin_ns != INT64_MIN;
	struct waking waking;

	waking = waking_of(feed, event, info);
	set_woken(&thread->woken, &waking, UINT32_MAX);
	if (thread->wait.kind == KY_WAIT_WOKEN)
		set_woken(&thread->wait, &waking, UINT32_MAX);
	if (!thread->running || told)
		return 0;
	/* The switch, too: it had not to wait. */
	waited.cpu = ky_map_get(&thread->host->cpus, (uint32_t)thread->cpu);
	set_woken(&waited.wait, &waking, UINT32_MAX);
	return waited.cpu ? tell_waited(feed->model, &waited) : 0;
}

int ky_wait_run(struct ky_model *model, struct ky_thread *thread, struct ky_cpu *cpu, int64_t ns,
		bool switched)
{
	struct ky_waited waited = {.thread = thread, .cpu = cpu, .end_ns = ns};
	int status;

	if (!(model->subjects & KY_ABOUT_WAITS))
		return 0;
	model_wait_since_left(thread);
	waited.wait = thread->wait;
	status = model_wait_count(model, thread, KY_UNKNOWN, ns);
	if (switched && status >= 0)
		status = ky_wait_flush(model, thread, ns);
	else if (status >= 0)
		status = drop_off(model, thread);
	if (!switched && status >= 0)
		status = bound_wait(model, thread, cpu, ns);
	thread->wait.kind = KY_WAIT_NONE;
	thread->off = KY_OFF_UNKNOWN;
	return status < 0 || !switched ? status : tell_waited(model, &waited);
}

int ky_wait_forget(struct ky_model *model, struct ky_thread *thread, int64_t ns)
{
	int status = drop_off(model, thread);

	thread->wait.kind = KY_WAIT_NONE;
	return status < 0 ? status : model_wait_count(model, thread, KY_UNKNOWN, ns);
}

int ky_wait_move(struct ky_model *model, struct ky_thread *thread, int32_t cpu, int64_t ns)
{
	/* The wait so far belongs to that CPU, and counts only if the focus has this CPU. */
	int status = model->chooses && model->subjects & KY_ABOUT_WAITS
			     ? ky_wait_flush(model, thread, ns)
			     : 0;

	thread->cpu = cpu;
	return status < 0 || !thread->queue ? status : model_wait_count(model, thread, cpu, ns);
}
