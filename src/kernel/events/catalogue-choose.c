/* SPDX-License-Identifier: MIT */
/* The selection of events: names, globs, rules, and events that are always recorded. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/events/catalogue.h"
#include "kernel/events/compat-calls.h"
#include "kernel/events/events.h"

/*
 * Left out on purpose: kmalloc, hrtimer and rcu floods, of which no report makes use, and
 * rss_stat, which fires for each page fault.
 */
const char ky_catalogue_default_text[] =
	"sched_switch,sched_waking,sched_wakeup,sched_wakeup_new,sched_migrate_task,"
	"sched_process_*,sched_pi_setprio,task_rename,cgroup_attach_task,"
	"irq_handler_*,irq_softirq_*,"
	"block_getrq,block_rq_insert,block_rq_issue,block_rq_complete,block_rq_merge,block_rq_requeue,"
	"block_bio_remap,block_bio_frontmerge,block_bio_backmerge,"
	"net_dev_queue,net_dev_xmit,net_if_receive_skb,net_if_rx,"
	"kmem_mm_page_alloc,kmem_mm_page_free,"
	"mm_vmscan_direct_reclaim_*,mm_vmscan_memcg_reclaim_*,"
	"signal_*,power_cpu_frequency,"
	"syscalls";

/* Is it entry or exit of a system call that @pattern matches: "open*"? */
static bool matches_syscall(const struct ky_event_source *source, const char *pattern)
{
	if (strcmp(source->system, "syscalls") != 0 && !ky_unknown_is_system(source->system))
		return false;
	for (size_t i = 0; i < 2; i++)
		if (strncmp(source->event, ky_catalogue_call_prefixes[i],
			    strlen(ky_catalogue_call_prefixes[i])) == 0)
			return ky_glob_match(pattern,
					     source->event + strlen(ky_catalogue_call_prefixes[i]));
	return false;
}

/* These slow down each call of all programs, so only an explicit pattern selects them. */
static bool asks_for(const struct ky_event_source *source, const char *pattern)
{
	return ky_compat_is_system(source->system) ? strncmp(pattern, "compat_", 7) == 0
						   : strstr(pattern, "unknown") != NULL;
}

static bool is_of_bpf(const char *pattern)
{
	static const struct ky_event_source unknown[] = {
		{.system = KY_UNKNOWN_SYSTEM,
		 .event = "sys_enter_unknown",
		 .name = "syscall_entry_unknown",
		 .of_bpf = true},
		{.system = KY_UNKNOWN_SYSTEM,
		 .event = "sys_exit_unknown",
		 .name = "syscall_exit_unknown",
		 .of_bpf = true},
	};

	return strncmp(pattern, "compat_", 7) == 0 || ky_catalogue_matches(&unknown[0], pattern) ||
	       ky_catalogue_matches(&unknown[1], pattern);
}

bool ky_catalogue_rule_is_of_bpf(const char *rule)
{
	const char *end = strstr(rule, " if "), *at = rule;
	char pattern[2 * KY_EVENT_NAME_BYTES];

	end = end ? end : rule + strlen(rule);
	while (at < end) {
		size_t len;

		at += strspn(at, " \t,");
		len = strcspn(at, " \t,");
		snprintf(pattern, sizeof(pattern), "%.*s", (int)len, at);
		if (at < end && is_of_bpf(pattern))
			return true;
		at += len;
	}
	return false;
}

bool ky_catalogue_matches(const struct ky_event_source *source, const char *pattern)
{
	char text[2 * KY_EVENT_NAME_BYTES + 2];

	if (source->of_bpf && !asks_for(source, pattern))
		return false;
	if (strncmp(pattern, "syscall:", 8) == 0)
		return matches_syscall(source, pattern + 8);
	if (strcmp(pattern, source->system) == 0 || ky_glob_match(pattern, source->name) ||
	    ky_glob_match(pattern, source->event))
		return true;
	if (!strpbrk(pattern, ":/"))
		return false;
	snprintf(text, sizeof(text), "%s:%s", source->system, source->event);
	if (ky_glob_match(pattern, text))
		return true;
	text[strlen(source->system)] = '/';
	return ky_glob_match(pattern, text);
}

struct near {
	const char *name;
	size_t distance;
};

/* The three nearest names, best first. */
static void catalogue_choose_offer(struct near near[3], const char *name, const char *pattern)
{
	size_t distance = ky_edit_distance(name, pattern);

	for (int i = 0; i < 3; i++) {
		if (near[i].name && strcmp(near[i].name, name) == 0)
			return;
		if (distance >= near[i].distance)
			continue;
		memmove(&near[i + 1], &near[i], (size_t)(2 - i) * sizeof(near[0]));
		near[i] = (struct near){name, distance};
		return;
	}
}

static int catalogue_choose_unknown(struct ky_catalogue *catalogue, const char *pattern,
				    struct kymo_error *err)
{
	/* Before strlen(): behind it gcc's sanitizers see a NULL, and warn. */
	int code = ky_error_set(err, KYMO_E_NOT_FOUND, "this kernel has no event '%s'", pattern);
	size_t limit = strlen(pattern) / 3 + 1;
	struct near near[3] = {{NULL, limit + 1}, {NULL, limit + 1}, {NULL, limit + 1}};

	if (strpbrk(pattern, "*?")) {
		ky_error_hint(err, "kymo list shows the events");
		return code;
	}
	ky_vec_foreach(&catalogue->events, source) {
		catalogue_choose_offer(near, source->name, pattern);
		catalogue_choose_offer(near, source->event, pattern);
		catalogue_choose_offer(near, source->system, pattern);
	}
	if (!near[0].name)
		ky_error_hint(err, "kymo list shows the events");
	else
		ky_error_hint(err, "did you mean %s%s%s%s%s? kymo list shows all", near[0].name,
			      near[1].name ? ", " : "", near[1].name ? near[1].name : "",
			      near[2].name ? ", " : "", near[2].name ? near[2].name : "");
	return code;
}

/* Of an event that several rules choose, what any of them wants is recorded. */
static int catalogue_choose_choose(struct ky_catalogue *catalogue, struct ky_event_source *source,
				   const char *filter)
{
	if (!source->selected) {
		source->selected = true;
		source->filter = filter;
	} else if (!filter || !source->filter) {
		source->filter = NULL;
	} else if (strcmp(source->filter, filter) != 0) {
		source->filter =
			ky_arena_printf(&catalogue->arena, "(%s) || (%s)", source->filter, filter);
		if (!source->filter)
			return KYMO_E_MEMORY;
	}
	return KYMO_OK;
}

/* How many match, or KYMO_E_MEMORY. */
static int select_matching(struct ky_catalogue *catalogue, const char *pattern, bool on,
			   const char *filter)
{
	int n = 0, ret;

	ky_vec_foreach(&catalogue->events, source) {
		if (!ky_catalogue_matches(source, pattern))
			continue;
		n++;
		ret = on ? catalogue_choose_choose(catalogue, source, filter) : KYMO_OK;
		if (ret < 0)
			return ret;
		source->selected = on;
	}
	return n;
}

int ky_catalogue_select(struct ky_catalogue *catalogue, const char *pattern, bool on,
			struct kymo_error *err)
{
	int n = select_matching(catalogue, pattern, on, NULL);

	return n > 0   ? n
	       : n < 0 ? ky_error_nomem(err)
		       : catalogue_choose_unknown(catalogue, pattern, err);
}

/* The next item of a comma-separated list, without blanks around it; NULL at the end. */
static char *catalogue_choose_next_item(char **rest)
{
	char *item;

	while ((item = strsep(rest, ","))) {
		char *end;

		item += strspn(item, " \t");
		end = item + strlen(item);
		while (end > item && (end[-1] == ' ' || end[-1] == '\t'))
			*--end = '\0';
		if (*item)
			return item;
	}
	return NULL;
}

/* Events of the default set that this kernel lacks are left out. */
static int select_default(struct ky_catalogue *catalogue, const char *filter)
{
	char *copy = strdup(ky_catalogue_default_text), *rest = copy, *item;
	int ret = copy ? KYMO_OK : KYMO_E_MEMORY;

	while (ret >= 0 && (item = catalogue_choose_next_item(&rest)))
		ret = select_matching(catalogue, item, true, filter);
	free(copy);
	return ret < 0 ? ret : KYMO_OK;
}

static int select_item(struct ky_catalogue *catalogue, const char *item, const char *filter,
		       struct kymo_error *err)
{
	bool on = item[0] != '!';
	int ret;

	if (strcmp(item, "default") == 0)
		return select_default(catalogue, filter) < 0 ? ky_error_nomem(err) : KYMO_OK;
	ret = select_matching(catalogue, on ? item : item + 1, on, filter);
	if (ret < 0)
		return ky_error_nomem(err);
	return ret ? KYMO_OK : catalogue_choose_unknown(catalogue, on ? item : item + 1, err);
}

/* Cut " if EXPR" from @rule, in place. NULL: none exists. No pattern has a blank in it. */
static const char *cut_filter(char *rule)
{
	char *filter = strstr(rule, " if ");

	if (!filter)
		return NULL;
	*filter = '\0';
	return filter + 4;
}

int ky_catalogue_select_rule(struct ky_catalogue *catalogue, const char *rule,
			     struct kymo_error *err)
{
	char *copy = ky_arena_strdup(&catalogue->arena, rule), *rest = copy, *item;
	const char *filter;
	int ret = KYMO_OK;

	if (!copy)
		return ky_error_nomem(err);
	filter = cut_filter(copy);
	while (!ret && (item = catalogue_choose_next_item(&rest)))
		ret = select_item(catalogue, item, filter, err);
	return ret;
}

static size_t match_item(const struct ky_catalogue *catalogue, const char *item, bool on,
			 bool *chosen)
{
	size_t n = 0;

	for (size_t i = 0; i < catalogue->events.len; i++) {
		if (!ky_catalogue_matches(&catalogue->events.data[i], item))
			continue;
		chosen[i] = on;
		n++;
	}
	return n;
}

int ky_catalogue_match_rule(struct ky_catalogue *catalogue, const char *rule, bool *chosen,
			    const char **filter, struct kymo_error *err)
{
	char *copy = ky_arena_strdup(&catalogue->arena, rule), *rest = copy, *item;
	char *defaults = ky_arena_strdup(&catalogue->arena, ky_catalogue_default_text);

	if (!copy || !defaults)
		return ky_error_nomem(err);
	*filter = cut_filter(copy);
	while ((item = catalogue_choose_next_item(&rest))) {
		bool on = item[0] != '!';

		if (strcmp(item, "default") == 0) {
			while ((item = catalogue_choose_next_item(&defaults)))
				(void)match_item(catalogue, item, true, chosen);
		} else if (!match_item(catalogue, on ? item : item + 1, on, chosen)) {
			return catalogue_choose_unknown(catalogue, on ? item : item + 1, err);
		}
	}
	return KYMO_OK;
}

void ky_catalogue_select_default(struct ky_catalogue *catalogue)
{
	(void)select_default(catalogue, NULL);
}
