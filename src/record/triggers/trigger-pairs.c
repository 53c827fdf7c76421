/* SPDX-License-Identifier: MIT */
/* Pairs of events that are the begin and the end of something. */
#include <stdlib.h>
#include <string.h>

#include "record/triggers/trigger-rule.h"

static const struct pair {
	const char *end, *begin; /* prefixes, when they end with '_' */
	const char *keys[2];
} pairs[] = {
	{"syscall_exit_", "syscall_entry_", {"$ctx.tid"}},
	{"irq_handler_exit", "irq_handler_entry", {"$cpu", "irq"}},
	{"softirq_exit", "softirq_entry", {"$cpu", "vec"}},
	{"irq_softirq_exit", "irq_softirq_entry", {"$cpu", "vec"}},
	{"block_rq_complete", "block_rq_issue", {"dev", "sector"}},
	{"hrtimer_expire_exit", "hrtimer_expire_entry", {"$cpu", "hrtimer"}},
	{"timer_hrtimer_expire_exit", "timer_hrtimer_expire_entry", {"$cpu", "hrtimer"}},
	{"timer_expire_exit", "timer_expire_entry", {"$cpu", "timer"}},
	{"workqueue_execute_end", "workqueue_execute_start", {"$ctx.tid"}},
};

/* Of programs: in one thread. */
static const char *const suffixes[][2] = {
	{"_exit", "_entry"},  {"_end", "_begin"},   {"_stop", "_start"},
	{"_leave", "_enter"}, {"_return", "_call"},
};

static char *trigger_pairs_join(const char *a, size_t a_bytes, const char *b)
{
	char *text = malloc(a_bytes + strlen(b) + 1);

	if (text) {
		memcpy(text, a, a_bytes);
		memcpy(text + a_bytes, b, strlen(b) + 1);
	}
	return text;
}

static int trigger_pairs_add_key(struct ky_trigger_condition *condition, const char *key)
{
	struct ky_trigger_key *to = &condition->keys[condition->n_keys++];

	to->begin = strdup(key);
	to->end = strdup(key);
	return to->begin && to->end ? KYMO_OK : KYMO_E_MEMORY;
}

static int find_of_programs(struct ky_trigger_condition *condition)
{
	const char *end = condition->second.pattern;
	size_t len = strlen(end);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t bytes = strlen(suffixes[i][0]);

		if (len <= bytes || strcmp(end + len - bytes, suffixes[i][0]) != 0)
			continue;
		condition->first.of_programs = true;
		condition->first.pattern = trigger_pairs_join(end, len - bytes, suffixes[i][1]);
		return condition->first.pattern ? trigger_pairs_add_key(condition, "$ctx.vtid")
						: KYMO_E_MEMORY;
	}
	return KYMO_E_NOT_FOUND;
}

int ky_trigger_find_begin(struct ky_trigger_condition *condition)
{
	const char *end = condition->second.pattern;
	int ret = KYMO_OK;

	if (condition->second.of_programs)
		return find_of_programs(condition);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct pair *pair = &pairs[i];
		size_t bytes = strlen(pair->end);
		bool is_prefix = pair->end[bytes - 1] == '_';

		if (strncmp(end, pair->end, bytes) != 0 || (!is_prefix && end[bytes]))
			continue;
		condition->first.pattern =
			trigger_pairs_join(pair->begin, strlen(pair->begin), end + bytes);
		if (!condition->first.pattern)
			return KYMO_E_MEMORY;
		for (size_t k = 0; k < 2 && pair->keys[k] && !ret; k++)
			ret = trigger_pairs_add_key(condition, pair->keys[k]);
		return ret;
	}
	return KYMO_E_NOT_FOUND;
}
