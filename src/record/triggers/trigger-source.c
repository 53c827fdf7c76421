/* SPDX-License-Identifier: MIT */
#include "record/triggers/trigger-source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kernel/convert/convert.h"
#include "os/now.h"

/* Events that pass are few. Of each CPU, and of each CPU and program. */
#define KERNEL_BUFFER_BYTES (256u << 10)
#define USER_BUFFER_BYTES   (64u << 10)
/* How often the programs' buffers are read. */
#define USER_PERIOD_MS 50
/* The kernel's buffers are read at most once in this time, whatever happens. */
#define PAUSE_NS INT64_C(5000000)

static int open_store(struct ky_trigger_store_options *options, bool of_programs,
		      struct ky_packet_store **store, struct kymo_error *err)
{
	options->of_programs = of_programs;
	return ky_trigger_store_open(options, store, err);
}

/* An error in the filter has a column; here it counts in the condition. */
static int place_error(const struct ky_trigger_condition *condition, int ret,
		       struct kymo_error *err)
{
	const struct ky_trigger_events *only =
		condition->first.filter ? &condition->first : &condition->second;

	if (ret == KYMO_E_INVALID && err && err->column &&
	    !(condition->first.filter && condition->second.filter)) {
		ky_error_input(err, "trigger");
		ky_error_line(err, 1, err->column + (uint32_t)only->filter_at);
	}
	return ret;
}

/* ---- the kernel ------------------------------------------------------------------------ */

static char *make_rule(const char *pattern, const char *filter, const char *or_filter)
{
	char *rule = NULL;
	int len;

	if (filter && or_filter)
		len = asprintf(&rule, "%s if (%s) || (%s)", pattern, filter, or_filter);
	else if (filter)
		len = asprintf(&rule, "%s if %s", pattern, filter);
	else
		len = asprintf(&rule, "%s", pattern);
	return len < 0 ? NULL : rule;
}

static bool trigger_source_is_same(const struct ky_trigger_events *a,
				   const struct ky_trigger_events *b)
{
	return a->pattern && b->pattern && a->of_programs == b->of_programs &&
	       strcmp(a->pattern, b->pattern) == 0;
}

/* Returns the number of rules, or -1: out of memory. */
static int trigger_source_make_rules(const struct ky_trigger_condition *condition, char *rules[2])
{
	const struct ky_trigger_events *first = &condition->first, *second = &condition->second;
	int n = 0;

	if (trigger_source_is_same(first, second)) {
		bool both = first->filter && second->filter;

		rules[n++] = make_rule(first->pattern, both ? first->filter : NULL,
				       both ? second->filter : NULL);
	} else {
		if (first->pattern && !first->of_programs)
			rules[n++] = make_rule(first->pattern, first->filter, NULL);
		if (second->pattern && !second->of_programs)
			rules[n++] = make_rule(second->pattern, second->filter, NULL);
	}
	for (int i = 0; i < n; i++)
		if (!rules[i])
			return -1;
	return n;
}

/*
 * The context fields that the condition names, as $ctx.NAME. Others are not there: to know a thread's name, a session
 * needs many more events than those of the condition.
 */
static unsigned int trigger_source_find_context(const char *text)
{
	unsigned int context = 0;

	while ((text = strstr(text, "$ctx."))) {
		text += 5;
		context |=
			ky_convert_context_find(text, strspn(text, "abcdefghijklmnopqrstuvwxyz_"));
	}
	return context;
}

static int open_kernel(struct ky_trigger_source *source, const struct ky_trigger_scope *scope,
		       bool has_stacks, struct kymo_error *err)
{
	static const char *const all[] = {"*"};
	char *rules[2] = {NULL, NULL};
	int n = trigger_source_make_rules(source->condition, rules), ret;
	struct ky_session_options options = {
		.output = "trigger",
		.store = source->kernel_store,
		.events = (const char *const *)rules,
		.n_events = (size_t)n,
		.buffer_bytes = KERNEL_BUFFER_BYTES,
		.context = trigger_source_find_context(source->condition->text),
		.kernel_stacks = all,
		.n_kernel_stacks = has_stacks,
		.user_stacks = all,
		.n_user_stacks = has_stacks,
		.clock = scope->clock_kind,
		.reader = KY_CPU_RING_READ,
		.state = KY_SESSION_STATE_NONE,
		.prompt = true,
		.log = scope->log,
	};

	options.threads =
		scope->kernel ? scope->kernel->threads : (struct ky_session_threads){.uid = -1};
	ret = n < 0 ? ky_error_nomem(err) : ky_session_open(&options, &source->session, err);
	if (!ret && scope->child)
		ret = ky_session_choose_child(source->session, scope->child, err);
	free(rules[0]);
	free(rules[1]);
	ret = place_error(source->condition, ret, err);
	return ret < 0 ? ret : ky_trigger_store_check(source->kernel_store, err);
}

/* ---- programs -------------------------------------------------------------------------- */

static int open_user(struct ky_trigger_source *source, const struct ky_trigger_scope *scope,
		     struct kymo_error *err)
{
	static const char *const state[] = {"lttng_ust_statedump:*"};
	const struct ky_trigger_condition *condition = source->condition;
	const struct ky_trigger_events *events =
		condition->first.of_programs ? &condition->first : &condition->second;
	const char *const patterns[] = {events->pattern};
	struct ky_user_options options = {
		.output = "trigger",
		.store = source->user_store,
		.patterns = patterns,
		.n_patterns = 1,
		.exclusions = state,
		.n_exclusions = 1,
		.level_max = 14,
		.filter = trigger_source_is_same(&condition->first, &condition->second)
				  ? NULL
				  : events->filter,
		.contexts = "vpid,vtid,procname",
		.buffer_bytes = USER_BUFFER_BYTES,
		.uid = -1,
		.period_ms = USER_PERIOD_MS,
		.clock = scope->clock,
		.log = scope->log,
	};

	if (scope->user) {
		options.pids = scope->user->pids;
		options.n_pids = scope->user->n_pids;
		options.comm = scope->user->comm;
		options.uid = scope->user->uid;
	}
	return place_error(condition, ky_user_open(&options, &source->user, err), err);
}

/* The other kind of programs' events. */
static int add_second(const struct ky_trigger_source *source, struct kymo_error *err)
{
	const struct ky_trigger_condition *condition = source->condition;
	const struct ky_user_change change = {
		.enables = true,
		.pattern = condition->second.pattern,
		.filter = condition->second.filter,
		.level_max = 14,
	};

	if (!condition->first.of_programs || !condition->second.of_programs ||
	    trigger_source_is_same(&condition->first, &condition->second))
		return KYMO_OK;
	return place_error(condition, ky_user_change(source->user, &change, err), err);
}

/* ---- both ------------------------------------------------------------------------------ */

int ky_trigger_source_open(struct ky_trigger_source *source,
			   const struct ky_trigger_condition *condition,
			   const struct ky_trigger_scope *scope, bool has_stacks,
			   void (*take)(void *data, const struct ky_event *event, bool is_second,
					uint64_t key),
			   void *data, struct kymo_error *err)
{
	const struct ky_trigger_events *first = &condition->first, *second = &condition->second;
	struct ky_trigger_store_options options = {
		.condition = condition, .log = scope->log, .take = take, .data = data};
	bool of_kernel = (first->pattern && !first->of_programs) ||
			 (second->pattern && !second->of_programs);
	bool of_programs =
		(first->pattern && first->of_programs) || (second->pattern && second->of_programs);
	int ret = KYMO_OK;

	*source = (struct ky_trigger_source){
		.condition = condition, .recording = scope->session, .due_ns = INT64_MAX};
	if (of_kernel)
		ret = open_store(&options, false, &source->kernel_store, err);
	if (!ret && of_kernel)
		ret = open_kernel(source, scope, has_stacks, err);
	if (!ret && of_programs)
		ret = open_store(&options, true, &source->user_store, err);
	if (!ret && of_programs)
		ret = open_user(source, scope, err);
	return ret;
}

static void trigger_source_set_due(struct ky_trigger_source *source)
{
	bool rests;
	int64_t due_ns = ky_session_due_ns(source->session, &rests);

	/* A session that rests needs no step before it has something to read. */
	source->due_ns = due_ns < 0 || rests ? INT64_MAX : ky_os_now_ns() + due_ns;
}

/* Each state dump of the recording has a thread of its own. */
static void hide_recording(struct ky_trigger_source *source)
{
	if (source->recording)
		ky_session_own_of(source->session, source->recording);
}

int ky_trigger_source_start(struct ky_trigger_source *source, const int32_t *own_tids,
			    size_t n_own_tids, struct kymo_error *err)
{
	int ret = KYMO_OK;

	source->is_started = true;
	if (source->session) {
		ky_session_own_threads(source->session, own_tids, n_own_tids);
		hide_recording(source);
		ret = ky_session_start(source->session, err);
		if (!ret)
			trigger_source_set_due(source);
	}
	if (!ret && source->user)
		ret = ky_user_start(source->user, err);
	if (!ret && source->user)
		ret = add_second(source, err);
	return ret;
}

int ky_trigger_source_fd(const struct ky_trigger_source *source)
{
	return source->session ? ky_session_fd(source->session) : -1;
}

int ky_trigger_source_step(struct ky_trigger_source *source, struct kymo_error *err)
{
	int ret;

	if (!source->session)
		return KYMO_OK;
	hide_recording(source);
	ret = ky_session_step(source->session, err);
	source->rests_until_ns = ky_os_now_ns() + PAUSE_NS;
	trigger_source_set_due(source);
	return ret;
}

uint64_t ky_trigger_source_lost(const struct ky_trigger_source *source)
{
	struct ky_session_progress kernel = {0};
	struct ky_user_progress user = {0};

	if (source->session && source->is_started)
		ky_session_progress(source->session, &kernel);
	if (source->user && source->is_started)
		ky_user_progress(source->user, &user);
	return kernel.lost + user.lost;
}

void ky_trigger_source_close(struct ky_trigger_source *source)
{
	if (source->user && source->is_started)
		(void)ky_user_stop(source->user, NULL);
	if (source->session && source->is_started)
		(void)ky_session_stop(source->session, NULL);
	ky_user_close(source->user);
	(void)ky_session_close(source->session, NULL);
	ky_store_free(source->kernel_store);
	ky_store_free(source->user_store);
	*source = (struct ky_trigger_source){0};
}
