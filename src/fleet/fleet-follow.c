/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-follow.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "fleet/fleet-units.h"

#define STEP_NS	       UINT64_C(500000000)
#define BACKOFF_MAX_NS UINT64_C(30000000000)
#define SECOND_NS      UINT64_C(1000000000)

struct fleet_follow {
	const struct ky_fleet_follow_options *options;
	struct ky_fleet_units units;
	struct ky_fleet *store; /* NULL: it is to be opened again */
	bool is_away;		/* the server does not answer, and the log says so */
	uint64_t backoff_ns;
};

static uint64_t follow_now(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static void follow_sleep(const struct fleet_follow *follow, uint64_t ns)
{
	uint64_t end_ns = follow_now() + ns;

	while (!follow->options->how.stop() && follow_now() < end_ns) {
		const struct timespec step = {0, 100000000};

		(void)nanosleep(&step, NULL);
	}
}

/* ---- the store ------------------------------------------------------------------------ */

static void follow_lose_store(struct fleet_follow *follow, const struct kymo_error *err)
{
	ky_fleet_close(follow->store);
	follow->store = NULL;
	if (!follow->is_away)
		ky_log_warning(follow->options->log,
			       "the store does not answer, recordings wait in their files: %s",
			       err->message);
	follow->is_away = true;
	follow->backoff_ns = follow->backoff_ns ? follow->backoff_ns * 2 : SECOND_NS / 2;
	if (follow->backoff_ns > BACKOFF_MAX_NS)
		follow->backoff_ns = BACKOFF_MAX_NS;
}

static bool follow_has_store(struct fleet_follow *follow)
{
	struct kymo_error err = {0};

	if (!follow->store &&
	    ky_fleet_open(follow->options->place, true, &follow->store, &err) < 0) {
		follow->store = NULL;
		follow_lose_store(follow, &err);
		return false;
	}
	if (follow->is_away)
		ky_log_info(follow->options->log, "the store answers again");
	follow->is_away = false;
	follow->backoff_ns = 0;
	return true;
}

/* ---- one recording -------------------------------------------------------------------- */

/* A slice reads the recording from its beginning: slices get longer with it, so that all of them together read it a few times only. */
static uint64_t follow_pause(const struct fleet_follow *follow, const struct ky_fleet_unit *unit,
			     uint64_t now_ns)
{
	uint64_t age_ns = now_ns - unit->begin_ns;

	return age_ns / 2 > follow->options->every_ns ? age_ns / 2 : follow->options->every_ns;
}

static void follow_tell(const struct fleet_follow *follow, const struct ky_fleet_unit *unit,
			const struct ky_fleet_result *result)
{
	if (result->n_rows)
		ky_log_info(follow->options->log, "%s: %" PRIu64 " new rows%s", unit->path,
			    result->n_rows, unit->is_whole ? ", complete" : "");
}

static int follow_load(struct fleet_follow *follow, struct ky_fleet_unit *unit,
		       const struct ky_trace_set *set, int64_t until_ns, struct kymo_error *err)
{
	struct ky_fleet_result result = {0};
	int ret = KYMO_OK;

	if (until_ns == INT64_MIN)
		return KYMO_OK;
	ret = ky_fleet_load_growing(follow->store, set, &follow->options->how,
				    until_ns == INT64_MAX, &unit->is_whole, &result, err);
	/* The store has all of this chunk; the next one begins in the same place. */
	unit->is_whole &= until_ns == INT64_MAX;
	if (!ret)
		follow_tell(follow, unit, &result);
	return ret;
}

static int follow_step(struct fleet_follow *follow, struct ky_fleet_unit *unit,
		       struct kymo_error *err)
{
	const char *dir = follow->options->dir;
	uint64_t now_ns = follow_now();
	struct ky_trace_set set;
	int64_t until_ns = INT64_MIN;
	int ret = ky_fleet_unit_open(&follow->units, unit, dir, now_ns, &set, &until_ns, err);

	if (ret == KYMO_E_NOT_FOUND) {
		unit->next_ns = now_ns + SECOND_NS;
		return KYMO_OK;
	}
	if (ret < 0)
		return ret;
	ret = follow_load(follow, unit, &set, until_ns, err);
	ky_trace_set_close(&set);
	unit->next_ns = follow_now();
	unit->next_ns += until_ns == INT64_MIN ? SECOND_NS : follow_pause(follow, unit, now_ns);
	return ret;
}

static void follow_failed(struct fleet_follow *follow, struct ky_fleet_unit *unit,
			  const struct kymo_error *err)
{
	struct kymo_error why = {0};
	int64_t one;

	if (ky_fleet_number(follow->store, "SELECT 1", &one, &why) < 0) {
		follow_lose_store(follow, &why);
		return;
	}
	if (!unit->n_fails)
		ky_log_warning(follow->options->log, "%s: %s; it is tried again", unit->path,
			       err->message);
	unit->n_fails += unit->n_fails < 10;
	unit->next_ns = follow_now() + (SECOND_NS << unit->n_fails);
}

/* ---- all of them ---------------------------------------------------------------------- */

/* False: all recordings are in the store. */
static bool follow_all(struct fleet_follow *follow)
{
	bool is_left = false;

	for (size_t i = 0; i < follow->units.list.len && !follow->options->how.stop(); i++) {
		struct ky_fleet_unit *unit = &follow->units.list.data[i];
		struct kymo_error err = {0};

		is_left |= !unit->is_whole;
		if (unit->is_whole || unit->next_ns > follow_now())
			continue;
		if (!follow_has_store(follow))
			return true;
		if (follow_step(follow, unit, &err) == KYMO_OK)
			unit->n_fails = 0;
		else if (!follow->options->how.stop())
			follow_failed(follow, unit, &err);
		if (!follow->store)
			return true;
	}
	return is_left;
}

int ky_fleet_follow(const struct ky_fleet_follow_options *options, struct kymo_error *err)
{
	struct fleet_follow follow = {.options = options};
	bool is_left = true;
	int ret = ky_fleet_units_open(&follow.units, options->dir, err);

	while (!ret && !options->how.stop() && (is_left || !options->ends_when_whole)) {
		ret = ky_fleet_units_scan(&follow.units, follow_now());
		is_left = !ret && follow_all(&follow);
		if (is_left || !options->ends_when_whole)
			follow_sleep(&follow, follow.backoff_ns ? follow.backoff_ns : STEP_NS);
	}
	ky_fleet_units_close(&follow.units);
	ky_fleet_close(follow.store);
	return ret;
}
