/* SPDX-License-Identifier: MIT */
#include "record/triggers/trigger-match.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S INT64_C(1000000000)

/* ---- time of day ---------------------------------------------------------------------- */

/* The next time after @now_ns at which the local clock shows so many seconds after midnight. */
static int64_t next_time_of_day(uint64_t second_of_day, int64_t now_ns)
{
	time_t now = (time_t)(now_ns / NS_PER_S), at;
	struct tm tm;

	for (int days = 0; days < 3; days++) {
		if (!localtime_r(&now, &tm))
			return INT64_MAX;
		tm.tm_mday += days;
		tm.tm_hour = (int)(second_of_day / 3600);
		tm.tm_min = (int)(second_of_day / 60 % 60);
		tm.tm_sec = (int)(second_of_day % 60);
		tm.tm_isdst = -1;
		at = mktime(&tm);
		if (at > now)
			return (int64_t)at * NS_PER_S;
	}
	return INT64_MAX;
}

static void trigger_match_set_due(struct ky_trigger_match *match, int64_t now_ns)
{
	const struct ky_trigger_condition *condition = match->condition;

	if (condition->kind == KY_TRIGGER_AT)
		match->due_ns = next_time_of_day(condition->number, now_ns);
	else if (condition->kind == KY_TRIGGER_EVERY)
		match->due_ns = now_ns + (int64_t)condition->within_ns;
	else
		match->due_ns = INT64_MAX;
}

/* ---- begins --------------------------------------------------------------------------- */

int ky_trigger_match_init(struct ky_trigger_match *match,
			  const struct ky_trigger_condition *condition, int64_t now_ns)
{
	*match = (struct ky_trigger_match){.condition = condition};
	ky_map_init(&match->open);
	trigger_match_set_due(match, now_ns);
	if (condition->kind != KY_TRIGGER_EVENT || condition->count < 2)
		return KYMO_OK;
	match->times = calloc(condition->count, sizeof(*match->times));
	return match->times ? KYMO_OK : KYMO_E_MEMORY;
}

static void close_one(struct ky_trigger_match *match, struct ky_trigger_open *open)
{
	*(open->older ? &open->older->newer : &match->oldest) = open->newer;
	*(open->newer ? &open->newer->older : &match->newest) = open->older;
	(void)ky_map_del(&match->open, open->key);
	free(open);
}

void ky_trigger_match_fini(struct ky_trigger_match *match)
{
	while (match->oldest)
		close_one(match, match->oldest);
	ky_map_fini(&match->open);
	free(match->times);
	match->times = NULL;
}

/* A begin at @ns; one that is open already is replaced. */
static void trigger_match_open_one(struct ky_trigger_match *match, uint64_t key, int64_t ns)
{
	struct ky_trigger_open *open = ky_map_get(&match->open, key);

	if (open)
		close_one(match, open);
	open = malloc(sizeof(*open));
	if (!open || ky_map_set(&match->open, key, open) < 0) {
		free(open);
		match->n_dropped++;
		return;
	}
	*open = (struct ky_trigger_open){.older = match->newest, .key = key, .ns = ns};
	*(match->newest ? &match->newest->newer : &match->oldest) = open;
	match->newest = open;
	if (match->open.len > KY_TRIGGER_OPEN_MAX) {
		close_one(match, match->oldest);
		match->n_dropped++;
	}
}

/* ---- limits --------------------------------------------------------------------------- */

static bool fires(struct ky_trigger_match *match, int64_t ns)
{
	const struct ky_trigger_condition *condition = match->condition;
	bool is_over = condition->first_n && match->n_fired >= condition->first_n;
	bool is_early = match->n_fired && condition->once_per_ns &&
			ns - match->fired_ns < (int64_t)condition->once_per_ns;

	if (is_over || is_early) {
		match->n_held++;
		return false;
	}
	match->n_fired++;
	match->fired_ns = ns;
	return true;
}

/* ---- events --------------------------------------------------------------------------- */

static bool trigger_match_take_event(struct ky_trigger_match *match, int64_t ns)
{
	uint64_t count = match->condition->count;
	int64_t *oldest;

	if (count < 2)
		return true;
	oldest = &match->times[match->n_times % count];
	*oldest = ns;
	match->n_times++;
	/* Now this is the oldest one of them. */
	oldest = &match->times[match->n_times % count];
	if (match->n_times < count || ns - *oldest > (int64_t)match->condition->within_ns)
		return false;
	/* The next time needs as many events again. */
	match->n_times = 0;
	return true;
}

static bool trigger_match_compare(enum ky_trigger_compare how, uint64_t value, uint64_t limit)
{
	switch (how) {
	case KY_TRIGGER_GT:
		return value > limit;
	case KY_TRIGGER_GE:
		return value >= limit;
	case KY_TRIGGER_LT:
		return value < limit;
	case KY_TRIGGER_LE:
		break;
	}
	return value <= limit;
}

static bool trigger_match_take_end(struct ky_trigger_match *match, uint64_t key, int64_t ns,
				   struct ky_trigger_hit *hit)
{
	const struct ky_trigger_condition *condition = match->condition;
	struct ky_trigger_open *open = ky_map_get(&match->open, key);
	bool is_pair = open && open->ns <= ns;

	if (!is_pair)
		return false;
	hit->duration_ns = (uint64_t)(ns - open->ns);
	hit->has_duration = true;
	close_one(match, open);
	return condition->kind == KY_TRIGGER_DURATION &&
	       trigger_match_compare(condition->compare, hit->duration_ns, condition->duration_ns);
}

bool ky_trigger_match_event(struct ky_trigger_match *match, bool is_second, uint64_t key,
			    int64_t ns, struct ky_trigger_hit *hit)
{
	enum ky_trigger_kind kind = match->condition->kind;
	bool is_hit = false;

	*hit = (struct ky_trigger_hit){.ns = ns};
	if (kind == KY_TRIGGER_EVENT)
		is_hit = trigger_match_take_event(match, ns);
	else if (is_second)
		is_hit = trigger_match_take_end(match, key, ns, hit);
	/* The first of several begins decides when the time is over. */
	else if (kind == KY_TRIGGER_DURATION || !ky_map_get(&match->open, key))
		trigger_match_open_one(match, key, ns);
	return is_hit && fires(match, ns);
}

bool ky_trigger_match_amount(struct ky_trigger_match *match, uint64_t amount, int64_t now_ns)
{
	uint64_t number = match->condition->number;

	switch (match->condition->kind) {
	case KY_TRIGGER_FILL:
		return amount > number && fires(match, now_ns);
	case KY_TRIGGER_LOSS:
	case KY_TRIGGER_SIZE:
		if (amount < match->base)
			match->base = amount;
		if (amount - match->base <= number || !fires(match, now_ns))
			return false;
		match->base = amount;
		return true;
	default:
		return false;
	}
}

/* ---- deadlines ------------------------------------------------------------------------ */

int64_t ky_trigger_match_due(const struct ky_trigger_match *match)
{
	if (match->condition->kind != KY_TRIGGER_WITHOUT)
		return match->due_ns;
	return match->oldest ? match->oldest->ns + (int64_t)match->condition->within_ns : INT64_MAX;
}

bool ky_trigger_match_expire(struct ky_trigger_match *match, int64_t now_ns,
			     struct ky_trigger_hit *hit)
{
	int64_t due_ns;

	while ((due_ns = ky_trigger_match_due(match)) <= now_ns) {
		*hit = (struct ky_trigger_hit){.ns = due_ns};
		if (match->condition->kind == KY_TRIGGER_WITHOUT)
			close_one(match, match->oldest);
		else
			trigger_match_set_due(match, now_ns);
		if (fires(match, due_ns))
			return true;
	}
	return false;
}
