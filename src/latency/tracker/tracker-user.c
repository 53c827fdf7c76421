/* SPDX-License-Identifier: MIT */
#include "latency/tracker/tracker-user.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/vec.h"
#include "ctf/decode/decode.h"
#include "os/clock.h"
#include "os/now.h"
#include "record/triggers/trigger-source.h"

#define OPEN_DEFAULT 10240u
#define REPORTS_MAX  65536u

struct open_pair {
	uint64_t hash; /* of its key */
	size_t place;  /* in `all` */
	struct ky_tracker_key key;
	struct ky_tracker_open open;
};

struct ky_tracker_user {
	const struct ky_tracker_definition *definition;
	struct ky_trigger_source source;
	struct ky_os_clock clock;
	bool has_source;
	int64_t mono_ns; /* CLOCK_MONOTONIC minus CLOCK_REALTIME, at the start */
	uint64_t over_ns;
	size_t max_open;
	pthread_mutex_t lock; /* of all that follows: events come in another thread */
	struct ky_map by_hash;
	KY_VEC(struct open_pair *) all;
	KY_VEC(struct ky_tracker_report) reports;
	struct ky_latency_cell cell;
	struct ky_tracker_shared shared;
};

/* ---- what an event says ------------------------------------------------------------------- */

static const struct ky_value *tracker_user_value(const struct ky_values *values, const char *name)
{
	const struct ky_value *value = values->list.data, *end;

	if (!values->list.len)
		return NULL;
	end = value + 1 + value->n_below;
	for (value++; value < end; value += 1 + value->n_below)
		if (value->name && strcmp(value->name, name) == 0)
			return value;
	return NULL;
}

static bool tracker_user_number(const struct ky_values *values, const char *name, uint64_t *number)
{
	const struct ky_value *value = tracker_user_value(values, name);
	enum ky_field_kind kind = value ? value->cls->kind : KY_FIELD_STRING;

	if (kind != KY_FIELD_UINT && kind != KY_FIELD_SINT && kind != KY_FIELD_VARUINT &&
	    kind != KY_FIELD_VARSINT)
		return false;
	*number = value->u;
	return true;
}

static void tracker_user_text(const struct ky_values *values, const char *name, char *to,
			      size_t size)
{
	const struct ky_value *value = tracker_user_value(values, name);
	size_t len;

	if (!value || (value->cls->kind != KY_FIELD_STRING && value->cls->kind != KY_FIELD_TEXT))
		return;
	len = strnlen(value->str.data, value->str.len_bytes);
	len = len < size ? len : size - 1;
	memset(to, 0, size);
	memcpy(to, value->str.data, len);
}

/* Who, and the values of keys that are numbers; others appear as what identifies them. */
static void tracker_user_see(const struct ky_tracker_user *user, const struct ky_event *event,
			     uint64_t hash, struct ky_tracker_thread *thread,
			     struct ky_tracker_key *key)
{
	static const enum ky_scope scopes[] = {KY_SCOPE_PAYLOAD, KY_SCOPE_EVENT_CONTEXT,
					       KY_SCOPE_STREAM_CONTEXT};
	struct ky_values values;
	uint64_t number;

	*thread = (struct ky_tracker_thread){.kernel_stack = -1, .user_stack = -1};
	for (size_t i = 0; i < KY_TRACKER_KEYS && key; i++)
		key->values[i] = user->definition->key_names[i] ? hash : 0;
	for (size_t s = 0; s < sizeof(scopes) / sizeof(scopes[0]); s++) {
		ky_values_init(&values);
		if (ky_values_decode(&values, event, scopes[s], NULL) > 0) {
			if (tracker_user_number(&values, "vtid", &number))
				thread->tid = (int32_t)number;
			if (tracker_user_number(&values, "vpid", &number))
				thread->pid = (int32_t)number;
			tracker_user_text(&values, "procname", thread->comm, sizeof(thread->comm));
			for (size_t i = 0; key && i < KY_TRACKER_KEYS; i++)
				if (user->definition->key_names[i])
					(void)tracker_user_number(&values,
								  user->definition->key_names[i],
								  &key->values[i]);
		}
		ky_values_fini(&values);
	}
}

/* ---- pairs -------------------------------------------------------------------------------- */

static void tracker_user_begin(struct ky_tracker_user *user, const struct ky_event *event,
			       uint64_t hash)
{
	struct open_pair *pair = ky_map_get(&user->by_hash, hash);

	if (pair) {
		user->shared.n_again++;
	} else if (user->all.len >= user->max_open || !(pair = calloc(1, sizeof(*pair)))) {
		user->shared.n_full++;
		return;
	} else {
		pair->hash = hash;
		pair->place = user->all.len;
		if (ky_vec_push(&user->all, pair) < 0) {
			free(pair);
			return;
		}
		if (ky_map_set(&user->by_hash, hash, pair) < 0) {
			user->all.len--;
			free(pair);
			return;
		}
	}
	pair->open.begin_ns = (uint64_t)(event->ns + user->mono_ns);
	tracker_user_see(user, event, hash, &pair->open.begin, &pair->key);
}

static void tracker_user_count(struct ky_tracker_user *user, uint64_t ns)
{
	struct ky_latency_peak *peak = &user->cell.peaks[user->shared.period & 1];

	user->cell.buckets[ky_latency_bucket(ns)]++;
	user->cell.sum_ns += ns;
	if (peak->period != user->shared.period || ns > peak->ns)
		peak->ns = ns;
	peak->period = user->shared.period;
}

static void tracker_user_end(struct ky_tracker_user *user, const struct ky_event *event,
			     uint64_t hash)
{
	struct open_pair *pair = ky_map_get(&user->by_hash, hash), *last;
	struct ky_tracker_report report;
	uint64_t ns;

	if (!pair)
		return;
	report = (struct ky_tracker_report){.key = pair->key,
					    .begin_ns = pair->open.begin_ns,
					    .end_ns = (uint64_t)(event->ns + user->mono_ns),
					    .begin = pair->open.begin};
	tracker_user_see(user, event, hash, &report.end, NULL);
	ky_map_del(&user->by_hash, hash);
	last = *ky_vec_last(&user->all);
	user->all.data[pair->place] = last;
	last->place = pair->place;
	user->all.len--;
	free(pair);
	ns = report.end_ns > report.begin_ns ? report.end_ns - report.begin_ns : 0;
	tracker_user_count(user, ns);
	user->shared.worst_ns = ns > user->shared.worst_ns ? ns : user->shared.worst_ns;
	if (ns <= user->over_ns)
		return;
	if (user->reports.len >= REPORTS_MAX || ky_vec_push(&user->reports, report) < 0)
		user->shared.n_lost++;
}

static void tracker_user_event(void *data, const struct ky_event *event, bool is_second,
			       uint64_t hash)
{
	struct ky_tracker_user *user = data;

	pthread_mutex_lock(&user->lock);
	if (is_second)
		tracker_user_end(user, event, hash);
	else
		tracker_user_begin(user, event, hash);
	pthread_mutex_unlock(&user->lock);
}

/* ---- its life ------------------------------------------------------------------------------ */

int ky_tracker_user_open(const struct ky_tracker_definition *definition,
			 const struct ky_tracker_options *options, struct ky_tracker_user **result,
			 struct kymo_error *err)
{
	struct ky_tracker_user *user = calloc(1, sizeof(*user));
	struct ky_trigger_scope scope = {0};
	int ret;

	*result = user;
	if (!user)
		return ky_error_nomem(err);
	pthread_mutex_init(&user->lock, NULL);
	user->definition = definition;
	user->over_ns = options->over_worst ? 0 : options->over_ns;
	if (options->timeout_ns && options->timeout_ns < user->over_ns)
		user->over_ns = options->timeout_ns;
	user->max_open = options->max_open ? options->max_open : OPEN_DEFAULT;
	ret = ky_os_clock_init(&user->clock, KY_OS_CLOCK_AUTO, err);
	if (ret < 0)
		return ret;
	user->mono_ns = ky_os_time_ns(CLOCK_MONOTONIC) - ky_os_time_ns(CLOCK_REALTIME);
	scope.clock_kind = user->clock.kind;
	scope.clock = &user->clock;
	user->has_source = true;
	ret = ky_trigger_source_open(&user->source, &definition->rule.condition, &scope, false,
				     tracker_user_event, user, err);
	return ret < 0 ? ret : ky_trigger_source_start(&user->source, NULL, 0, err);
}

void ky_tracker_user_close(struct ky_tracker_user *user)
{
	if (!user)
		return;
	if (user->has_source)
		ky_trigger_source_close(&user->source);
	ky_vec_foreach(&user->all, pair)
		free(*pair);
	ky_vec_fini(&user->all);
	ky_vec_fini(&user->reports);
	ky_map_fini(&user->by_hash);
	pthread_mutex_destroy(&user->lock);
	free(user);
}

/* ---- reading ------------------------------------------------------------------------------- */

int ky_tracker_user_each(struct ky_tracker_user *user, ky_tracker_user_open_pair each, void *data)
{
	int ret = KYMO_OK;

	pthread_mutex_lock(&user->lock);
	for (size_t i = 0; i < user->all.len && !ret; i++)
		ret = each(data, &user->all.data[i]->key, &user->all.data[i]->open);
	pthread_mutex_unlock(&user->lock);
	return ret;
}

void ky_tracker_user_take(struct ky_tracker_user *user, ky_tracker_user_report take, void *data)
{
	__typeof__(user->reports) reports;

	/* Output may block: events go on meanwhile. */
	pthread_mutex_lock(&user->lock);
	reports = user->reports;
	memset(&user->reports, 0, sizeof(user->reports));
	pthread_mutex_unlock(&user->lock);
	ky_vec_foreach(&reports, report)
		(void)take(data, report);
	ky_vec_fini(&reports);
}

void ky_tracker_user_read(struct ky_tracker_user *user, struct ky_latency_cell *cell,
			  uint64_t *period)
{
	pthread_mutex_lock(&user->lock);
	*cell = user->cell;
	*period = user->shared.period++;
	pthread_mutex_unlock(&user->lock);
}

void ky_tracker_user_shared(struct ky_tracker_user *user, struct ky_tracker_shared *shared)
{
	pthread_mutex_lock(&user->lock);
	*shared = user->shared;
	shared->n_lost += ky_trigger_source_lost(&user->source);
	pthread_mutex_unlock(&user->lock);
}
