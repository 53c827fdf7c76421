/* SPDX-License-Identifier: MIT */
/*
 * The state model: timers of the kernel, from their start to the run of their function. The thread that starts a
 * timer owns it; a timer that its own function starts again keeps its owner.
 */
#include "analysis/state/model-internal.h"

static struct ky_timer_state *get_timer(struct ky_feed *feed, uint64_t address)
{
	struct ky_map *timers = &feed->host->state->timers;
	struct ky_timer_state *timer = ky_map_get(timers, address);

	if (timer)
		return timer;
	timer = ky_arena_new(&feed->model->arena, struct ky_timer_state);
	return timer && ky_map_set(timers, address, timer) == 0 ? timer : NULL;
}

/* A timer whose function wants that is started again after its end, still in the interrupt. */
#define AGAIN_NS 20000

static bool is_again(const struct ky_feed *feed, uint64_t address, int64_t ns)
{
	const struct ky_timer *last = &feed->cpu->timer;

	return last->is_running || (last->address == address && ns - last->end_ns < AGAIN_NS);
}

int ky_on_timer_start(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info)
{
	uint64_t address = ky_get_u64(event, &info->fields[KY_TIMER_ADDRESS], 0);
	struct ky_timer_state *timer = get_timer(feed, address);

	if (!timer)
		return KYMO_E_MEMORY;
	/* In an interrupt, the thread that runs has nothing to do with it. */
	if (feed->cpu && !is_again(feed, address, event->ns) && !ky_irq_current(feed->cpu))
		timer->owner = ky_feed_thread(feed, event, info);
	return 0;
}

static int timer_entry(struct ky_feed *feed, const struct ky_event *event,
		       const struct ky_class_info *info, bool high)
{
	struct ky_timer_state *timer;
	uint64_t address = ky_get_u64(event, &info->fields[KY_TIMER_ADDRESS], 0);

	if (!feed->cpu)
		return 0;
	timer = get_timer(feed, address);
	if (!timer)
		return KYMO_E_MEMORY;
	feed->cpu->timer = (struct ky_timer){
		.is_running = true,
		.is_high = high,
		.address = address,
		.function = ky_get_u64(event, &info->fields[KY_TIMER_FUNCTION], 0),
		.owner = timer->owner,
		.thread = ky_feed_thread(feed, event, info),
		.cpu = feed->cpu,
		.begin_ns = event->ns,
	};
	return 0;
}

int ky_on_timer_entry(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info)
{
	return timer_entry(feed, event, info, false);
}

int ky_on_hrtimer_entry(struct ky_feed *feed, const struct ky_event *event,
			const struct ky_class_info *info)
{
	return timer_entry(feed, event, info, true);
}

int ky_on_timer_exit(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info)
{
	struct ky_timer *timer = feed->cpu ? &feed->cpu->timer : NULL;

	(void)info;
	if (!timer || !timer->is_running)
		return 0;
	timer->is_running = false;
	timer->end_ns = event->ns;
	if (timer->begin_ns < feed->host->torn_until_ns ||
	    (!ky_model_tells(feed->model, timer->thread, event->cpu_id) &&
	     !ky_model_tells(feed->model, timer->owner, event->cpu_id)) ||
	    !ky_model_tells_long(feed->model, timer->end_ns - timer->begin_ns))
		return 0;
	return ky_model_notify(feed->model, timer, timer);
}
