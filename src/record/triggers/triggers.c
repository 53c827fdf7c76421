/* SPDX-License-Identifier: MIT */
#include "record/triggers/triggers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/convert/convert.h"
#include "os/now.h"

#define NS_PER_S INT64_C(1000000000)
/* Firings that wait for the recording; more of them are counted as held back. */
#define FIRINGS_MAX 1024
/*
 * An event that must come may be on its way so long: in the rings of programs, which are read a few
 * times a second, or in those of the kernel.
 */
#define LATE_USER_NS   INT64_C(400000000)
#define LATE_KERNEL_NS INT64_C(20000000)

struct trigger {
	struct ky_triggers *set;
	uint32_t number;
	struct ky_trigger_rule rule;
	struct ky_trigger_match match; /* of the set's lock */
	struct ky_trigger_source source;
	bool has_source, is_awaited; /* its descriptor is in the epoll set and armed */
};

struct ky_triggers {
	struct ky_trigger_scope scope;
	KY_VEC(struct trigger *) list;
	uint32_t last_number;
	int epoll_fd, timer_fd, fired_fd;
	bool is_started;
	int32_t own_tids[KY_OWN_PROGRAMS_MAX];
	size_t n_own_tids;
	pthread_mutex_t lock; /* of all matches and of what follows */
	KY_VEC(struct ky_trigger_firing *) firings;
};

/*
 * Now, in the time of the trigger's events. Its clock does not follow the system's, which may be set meanwhile: then no
 * event would seem to be missing. Times of day are the system's.
 */
static int64_t now_of(const struct trigger *trigger)
{
	const struct ky_os_clock *clock = trigger->set->scope.clock;

	if (trigger->source.session)
		clock = ky_session_clock(trigger->source.session);
	if (!clock || trigger->rule.condition.kind == KY_TRIGGER_AT)
		return ky_os_time_ns(CLOCK_REALTIME);
	return ky_os_clock_to_ns(clock, ky_os_clock_now(clock));
}

/* ---- firing ---------------------------------------------------------------------------- */

/* With the lock. */
static void fire(struct trigger *trigger, const struct ky_trigger_hit *hit,
		 const struct ky_event *event)
{
	struct ky_triggers *set = trigger->set;
	struct ky_trigger_firing *firing = NULL;

	if (set->firings.len < FIRINGS_MAX)
		firing = ky_trigger_firing_new(trigger->number, &trigger->match, hit, event);
	if (!firing || ky_vec_push(&set->firings, firing) < 0) {
		ky_trigger_firing_free(firing);
		trigger->match.n_held++;
		return;
	}
	(void)eventfd_write(set->fired_fd, 1);
}

/* An event of a source, in any thread. */
static void triggers_take_event(void *data, const struct ky_event *event, bool is_second,
				uint64_t key)
{
	struct trigger *trigger = data;
	struct ky_triggers *set = trigger->set;
	bool opens = trigger->rule.condition.kind == KY_TRIGGER_WITHOUT && !is_second;
	struct ky_trigger_hit hit;

	pthread_mutex_lock(&set->lock);
	if (ky_trigger_match_event(&trigger->match, is_second, key, event->ns, &hit))
		fire(trigger, &hit, event);
	pthread_mutex_unlock(&set->lock);
	/* Its deadline is set in the set's thread. */
	if (opens)
		(void)eventfd_write(set->fired_fd, 1);
}

struct ky_trigger_firing *ky_triggers_take(struct ky_triggers *set)
{
	struct ky_trigger_firing *firing = NULL;

	pthread_mutex_lock(&set->lock);
	if (set->firings.len) {
		firing = set->firings.data[0];
		set->firings.len--;
		memmove(set->firings.data, set->firings.data + 1,
			set->firings.len * sizeof(set->firings.data[0]));
	}
	/* The caller may leave the others for its next step. */
	if (set->firings.len)
		(void)eventfd_write(set->fired_fd, 1);
	pthread_mutex_unlock(&set->lock);
	return firing;
}

/* ---- the set --------------------------------------------------------------------------- */

int ky_triggers_new(const struct ky_trigger_scope *scope, struct ky_triggers **out,
		    struct kymo_error *err)
{
	struct ky_triggers *set = calloc(1, sizeof(*set));
	struct epoll_event event = {.events = EPOLLIN};

	*out = NULL;
	if (!set)
		return ky_error_nomem(err);
	set->scope = *scope;
	pthread_mutex_init(&set->lock, NULL);
	set->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	set->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	set->fired_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (set->epoll_fd < 0 || set->timer_fd < 0 || set->fired_fd < 0 ||
	    epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, set->timer_fd, &event) < 0 ||
	    epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, set->fired_fd, &event) < 0) {
		ky_error_errno(err, errno, "cannot set up triggers");
		ky_triggers_free(set);
		return err ? err->code : KYMO_E_IO;
	}
	*out = set;
	return KYMO_OK;
}

/* Its threads end, and hand on what they have. */
static void close_source(struct trigger *trigger)
{
	int fd = trigger->has_source ? ky_trigger_source_fd(&trigger->source) : -1;

	/* A process that was forked just now may have it, too: then its end does not remove it from the set. */
	if (fd >= 0)
		(void)epoll_ctl(trigger->set->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	if (trigger->has_source)
		ky_trigger_source_close(&trigger->source);
	trigger->has_source = false;
}

static void free_trigger(struct trigger *trigger)
{
	close_source(trigger);
	ky_trigger_match_fini(&trigger->match);
	ky_trigger_rule_fini(&trigger->rule);
	free(trigger);
}

void ky_triggers_free(struct ky_triggers *set)
{
	if (!set)
		return;
	ky_vec_foreach(&set->list, trigger)
		free_trigger(*trigger);
	ky_vec_fini(&set->list);
	ky_vec_foreach(&set->firings, firing)
		ky_trigger_firing_free(*firing);
	ky_vec_fini(&set->firings);
	if (set->epoll_fd >= 0)
		close(set->epoll_fd);
	if (set->timer_fd >= 0)
		close(set->timer_fd);
	if (set->fired_fd >= 0)
		close(set->fired_fd);
	pthread_mutex_destroy(&set->lock);
	free(set);
}

int ky_triggers_fd(const struct ky_triggers *set)
{
	return set->epoll_fd;
}

/* ---- time ------------------------------------------------------------------------------ */

static int64_t late_ns(const struct ky_trigger_condition *condition)
{
	if (condition->kind != KY_TRIGGER_WITHOUT)
		return 0;
	return condition->first.of_programs || condition->second.of_programs ? LATE_USER_NS
									     : LATE_KERNEL_NS;
}

/* Its source has failed: what it waits for cannot come. */
static bool triggers_is_over(const struct trigger *trigger)
{
	return !trigger->has_source && ky_trigger_has_events(&trigger->rule.condition);
}

/* CLOCK_MONOTONIC time of the trigger's next work; INT64_MAX: none. With the lock. */
static int64_t due_of(const struct trigger *trigger, int64_t mono_ns)
{
	int64_t due_ns =
		triggers_is_over(trigger) ? INT64_MAX : ky_trigger_match_due(&trigger->match);
	int64_t source_ns = INT64_MAX;

	if (due_ns != INT64_MAX)
		due_ns += late_ns(&trigger->rule.condition) - now_of(trigger) + mono_ns;
	if (trigger->has_source && trigger->source.is_started) {
		source_ns = trigger->source.due_ns;
		if (!trigger->is_awaited && trigger->source.rests_until_ns < source_ns)
			source_ns = trigger->source.rests_until_ns;
	}
	return due_ns < source_ns ? due_ns : source_ns;
}

static void triggers_set_timer(struct ky_triggers *set)
{
	int64_t mono_ns = ky_os_now_ns();
	int64_t due_ns = INT64_MAX;
	struct itimerspec spec = {{0}};

	pthread_mutex_lock(&set->lock);
	ky_vec_foreach(&set->list, it) {
		int64_t next_ns = due_of(*it, mono_ns);

		due_ns = next_ns < due_ns ? next_ns : due_ns;
	}
	pthread_mutex_unlock(&set->lock);
	if (due_ns != INT64_MAX) {
		/* The clock may be set meanwhile: times of day are looked at again. */
		if (due_ns > mono_ns + 60 * NS_PER_S)
			due_ns = mono_ns + 60 * NS_PER_S;
		due_ns = due_ns > 1 ? due_ns : 1;
		spec.it_value.tv_sec = due_ns / NS_PER_S;
		spec.it_value.tv_nsec = due_ns % NS_PER_S;
	}
	(void)timerfd_settime(set->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

static void expire(struct trigger *trigger)
{
	struct ky_triggers *set = trigger->set;
	int64_t now_ns = now_of(trigger) - late_ns(&trigger->rule.condition);
	struct ky_trigger_hit hit;

	pthread_mutex_lock(&set->lock);
	while (ky_trigger_match_expire(&trigger->match, now_ns, &hit))
		fire(trigger, &hit, NULL);
	pthread_mutex_unlock(&set->lock);
}

/* ---- triggers -------------------------------------------------------------------------- */

static struct trigger *triggers_find(const struct ky_triggers *set, uint32_t number, size_t *at)
{
	for (size_t i = 0; i < set->list.len; i++) {
		if (set->list.data[i]->number == number) {
			*at = i;
			return set->list.data[i];
		}
	}
	return NULL;
}

const struct ky_trigger_rule *ky_triggers_rule(const struct ky_triggers *set, uint32_t number)
{
	size_t at;
	const struct trigger *trigger = triggers_find(set, number, &at);

	return trigger ? &trigger->rule : NULL;
}

bool ky_triggers_at(struct ky_triggers *set, size_t i, struct ky_trigger_info *info)
{
	const struct trigger *trigger;

	if (i >= set->list.len)
		return false;
	trigger = set->list.data[i];
	pthread_mutex_lock(&set->lock);
	*info = (struct ky_trigger_info){
		.number = trigger->number,
		.rule = &trigger->rule,
		.n_fired = trigger->match.n_fired,
		.n_held = trigger->match.n_held,
		.n_lost = trigger->match.n_dropped,
	};
	pthread_mutex_unlock(&set->lock);
	if (trigger->has_source)
		info->n_lost += ky_trigger_source_lost(&trigger->source);
	return true;
}

/* One shot: while the source rests, its descriptor must not end the wait. */
static void await(struct trigger *trigger, int how)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = trigger};
	int fd = ky_trigger_source_fd(&trigger->source);

	trigger->is_awaited = true;
	if (fd >= 0)
		(void)epoll_ctl(trigger->set->epoll_fd, how, fd, &event);
}

static int start_source(struct trigger *trigger, struct kymo_error *err)
{
	struct ky_triggers *set = trigger->set;
	int ret;

	if (!trigger->has_source)
		return KYMO_OK;
	ret = ky_trigger_source_start(&trigger->source, set->own_tids, set->n_own_tids, err);
	if (!ret)
		await(trigger, EPOLL_CTL_ADD);
	return ret;
}

static bool needs_stacks(const struct ky_trigger_rule *rule)
{
	ky_vec_foreach(&rule->actions, action)
		if (action->kind == KY_TRIGGER_REPORT)
			return true;
	return false;
}

static int open_trigger(struct trigger *trigger, struct kymo_error *err)
{
	const struct ky_trigger_condition *condition = &trigger->rule.condition;
	int ret = ky_trigger_match_init(&trigger->match, condition, now_of(trigger));

	if (ret < 0)
		return ky_error_nomem(err);
	if (!ky_trigger_has_events(condition))
		return KYMO_OK;
	trigger->has_source = true;
	ret = ky_trigger_source_open(&trigger->source, condition, &trigger->set->scope,
				     needs_stacks(&trigger->rule), triggers_take_event, trigger,
				     err);
	return !ret && trigger->set->is_started ? start_source(trigger, err) : ret;
}

int ky_triggers_add(struct ky_triggers *set, struct ky_trigger_rule *rule, uint32_t *number,
		    struct kymo_error *err)
{
	struct trigger *trigger = calloc(1, sizeof(*trigger));
	int ret;

	if (!trigger) {
		ky_trigger_rule_fini(rule);
		return ky_error_nomem(err);
	}
	trigger->set = set;
	trigger->number = ++set->last_number;
	trigger->rule = *rule;
	*rule = (struct ky_trigger_rule){0};
	if (set->list.len == KY_TRIGGERS_MAX)
		ret = ky_error_set(err, KYMO_E_LIMIT, "a recording has %d triggers at most",
				   KY_TRIGGERS_MAX);
	else
		ret = open_trigger(trigger, err);
	if (!ret && ky_vec_push(&set->list, trigger) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0) {
		free_trigger(trigger);
		return ret;
	}
	if (number)
		*number = trigger->number;
	triggers_set_timer(set);
	return KYMO_OK;
}

int ky_triggers_remove(struct ky_triggers *set, uint32_t number, struct kymo_error *err)
{
	struct trigger *trigger;
	size_t at;

	trigger = triggers_find(set, number, &at);
	if (!trigger)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "the recording has no trigger %u",
				    number);
	set->list.len--;
	memmove(set->list.data + at, set->list.data + at + 1,
		(set->list.len - at) * sizeof(set->list.data[0]));
	free_trigger(trigger);
	triggers_set_timer(set);
	return KYMO_OK;
}

/* ---- recording ------------------------------------------------------------------------- */

int ky_triggers_choose_child(struct ky_triggers *set, int32_t pid, struct kymo_error *err)
{
	int ret = KYMO_OK;

	set->scope.child = pid;
	ky_vec_foreach(&set->list, it)
		if (!ret && (*it)->has_source && (*it)->source.session)
			ret = ky_session_choose_child((*it)->source.session, pid, err);
	return ret;
}

int ky_triggers_start(struct ky_triggers *set, const int32_t *own_tids, size_t n_own_tids,
		      struct kymo_error *err)
{
	int ret = KYMO_OK;

	set->is_started = true;
	set->n_own_tids = n_own_tids < KY_OWN_PROGRAMS_MAX ? n_own_tids : KY_OWN_PROGRAMS_MAX;
	if (set->n_own_tids)
		memcpy(set->own_tids, own_tids, set->n_own_tids * sizeof(own_tids[0]));
	ky_vec_foreach(&set->list, it)
		if (!ret)
			ret = start_source(*it, err);
	triggers_set_timer(set);
	return ret;
}

void ky_triggers_stop(struct ky_triggers *set)
{
	ky_vec_foreach(&set->list, it)
		close_source(*it);
}

/* A source that fails ends; the recording goes on. */
static void step_source(struct trigger *trigger)
{
	struct kymo_error err;

	trigger->is_awaited = false;
	if (ky_trigger_source_step(&trigger->source, &err) == 0)
		return;
	ky_log_warning(trigger->set->scope.log, "trigger '%s' has ended: %s",
		       trigger->rule.condition.text, err.message);
	close_source(trigger);
}

static void take_counts(const struct ky_triggers *set)
{
	uint64_t count;

	(void)!read(set->timer_fd, &count, sizeof(count));
	(void)!read(set->fired_fd, &count, sizeof(count));
}

static void step_all(struct ky_triggers *set)
{
	int64_t mono_ns = ky_os_now_ns();

	ky_vec_foreach(&set->list, it) {
		struct trigger *trigger = *it;
		struct ky_trigger_source *source = &trigger->source;

		if (trigger->has_source && source->is_started && source->due_ns <= mono_ns)
			step_source(trigger);
		else if (trigger->has_source && source->is_started && !trigger->is_awaited &&
			 source->rests_until_ns <= mono_ns)
			await(trigger, EPOLL_CTL_MOD);
		if (!triggers_is_over(trigger))
			expire(trigger);
	}
}

static void triggers_step_one(struct trigger *trigger)
{
	if (trigger && trigger->has_source)
		step_source(trigger);
}

void ky_triggers_step(struct ky_triggers *set)
{
	struct epoll_event events[KY_TRIGGERS_MAX + 2];
	int n = epoll_wait(set->epoll_fd, events, KY_TRIGGERS_MAX + 2, 0);

	take_counts(set);
	for (int i = 0; i < n; i++)
		triggers_step_one(events[i].data.ptr);
	step_all(set);
	triggers_set_timer(set);
}

bool ky_triggers_want_amounts(const struct ky_triggers *set)
{
	ky_vec_foreach(&set->list, it) {
		enum ky_trigger_kind kind = (*it)->rule.condition.kind;

		if (kind == KY_TRIGGER_LOSS || kind == KY_TRIGGER_FILL || kind == KY_TRIGGER_SIZE)
			return true;
	}
	return false;
}

static void triggers_report_to(const struct ky_triggers_amounts *amounts, struct trigger *trigger)
{
	enum ky_trigger_kind kind = trigger->rule.condition.kind;
	uint64_t amount = kind == KY_TRIGGER_FILL   ? amounts->fill_percent
			  : kind == KY_TRIGGER_LOSS ? amounts->lost
						    : amounts->bytes;
	const struct ky_trigger_hit hit = {.ns = now_of(trigger)};

	if (ky_trigger_match_amount(&trigger->match, amount, hit.ns))
		fire(trigger, &hit, NULL);
}

void ky_triggers_report(struct ky_triggers *set, const struct ky_triggers_amounts *amounts)
{
	pthread_mutex_lock(&set->lock);
	ky_vec_foreach(&set->list, it)
		triggers_report_to(amounts, *it);
	pthread_mutex_unlock(&set->lock);
}
