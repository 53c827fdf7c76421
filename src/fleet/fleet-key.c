/* SPDX-License-Identifier: MIT */
/* What a trace is called in a store, and the clock that all of its slices have. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "fleet/fleet-load.h"
#include "flow/graph/flow.h"
#include "flow/graph/select.h"
#include "store/read/sync-file.h"

/* ---- the name ------------------------------------------------------------------------- */

static uint64_t key_of_trace(const struct ky_trace *trace, uint64_t hash)
{
	const struct ky_env *env = ky_env_find(trace->cls, "hostname");

	/*
	 * The clock of a recording that has not ended gets better: it is no part of the name. Traces that were made of others' files have a new UUID
	 * each time; those of relays have that of the recording.
	 */
	if (trace->cls->has_uuid && (!trace->scratch || trace->feed))
		hash = ky_hash_u64(hash ^
				   ky_hash_bytes(trace->cls->uuid, sizeof(trace->cls->uuid)));
	else
		hash = ky_hash_u64(hash ^ ky_sync_identity(trace));
	if (env && env->is_text)
		hash = ky_hash_u64(hash ^ ky_hash_bytes(env->text, strlen(env->text)));
	return hash;
}

static int key_first(struct ky_fleet_load *load, const struct ky_trace **trace, uint64_t *cycles,
		     struct kymo_error *err)
{
	struct ky_selection selection;
	struct ky_batch batch = {0};
	struct ky_flow *flow;
	int ret;

	ky_selection_init(&selection);
	ret = ky_flow_open_selected(load->set, &selection, &flow, err);
	if (ret < 0)
		return ret;
	/* Reading the tables tells of damage. */
	while (!batch.n_events && ky_flow_next(flow, &batch, NULL) > 0)
		;
	if (batch.n_events) {
		*trace = ky_batch_stream(&batch, batch.events)->trace;
		*cycles = batch.events[0].cycles;
		load->has_events = true;
	}
	ky_flow_close(flow);
	return KYMO_OK;
}

/*
 * The first event: the chunks of a rotated recording have all else in common. Traces of programs that come later do not change it.
 */
int ky_fleet_key_find(struct ky_fleet_load *load, struct kymo_error *err)
{
	const struct ky_trace *trace = load->set->traces.len ? load->set->traces.data[0] : NULL;
	const char *host = load->options->host;
	uint64_t cycles = 0, hash;
	int ret = key_first(load, &trace, &cycles, err);

	if (ret < 0)
		return ret;
	hash = ky_hash_u64(cycles ^ (host ? ky_hash_bytes(host, strlen(host)) : 0));
	if (trace)
		hash = key_of_trace(trace, hash);
	(void)snprintf(load->trace, sizeof(load->trace), "%016" PRIx64, hash);
	return KYMO_OK;
}

/* ---- clocks --------------------------------------------------------------------------- */

/* Positive in the integers of both engines. */
static uint64_t key_of_clock(const struct ky_clock_class *clock)
{
	uint64_t hash = clock->has_uuid ? ky_hash_bytes(clock->uuid, sizeof(clock->uuid))
					: ky_hash_bytes(clock->name, strlen(clock->name));

	return hash >> 2;
}

static int key_clock_part(struct ky_fleet_load *load, const struct ky_clock_class *clock,
			  const char *of, bool is_new, int64_t *value, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint64_t number = key_of_clock(clock);
	int ret;

	if (is_new)
		return load->store->ops->note(load->store, load->trace, of, number, *value, err);
	ky_strbuf_addf(&text,
		       "SELECT max(n_rows) FROM kymo_batch WHERE trace = '%s' AND of = '%s' AND "
		       "number = %" PRIu64,
		       load->trace, of, number);
	ret = ky_strbuf_failed(&text)
		      ? ky_error_nomem(err)
		      : ky_fleet_number(load->store, ky_strbuf_text(&text), value, err);
	ky_strbuf_fini(&text);
	return ret;
}

/* The frequency comes last: with it, the clock is known. */
static int key_keep_clock(struct ky_fleet_load *load, struct ky_clock_class *clock,
			  struct kymo_error *err)
{
	int64_t hz = 0, s = clock->offset_s, cycles = clock->offset_cycles;
	int ret = key_clock_part(load, clock, KY_FLEET_CLOCK "_hz", false, &hz, err);
	bool is_new = !hz;

	if (ret < 0)
		return ret;
	ret = key_clock_part(load, clock, KY_FLEET_CLOCK "_s", is_new, &s, err);
	if (!ret)
		ret = key_clock_part(load, clock, KY_FLEET_CLOCK "_cycles", is_new, &cycles, err);
	hz = is_new ? (int64_t)clock->frequency_hz : hz;
	if (!ret && is_new)
		ret = key_clock_part(load, clock, KY_FLEET_CLOCK "_hz", true, &hz, err);
	if (ret < 0)
		return ret;
	clock->frequency_hz = (uint64_t)hz;
	clock->offset_s = s;
	clock->offset_cycles = cycles;
	return ky_clock_finish(clock, err);
}

int ky_fleet_clocks_keep(struct ky_fleet_load *load, struct kymo_error *err)
{
	int ret = KYMO_OK;

	ky_vec_foreach(&load->set->traces, trace)
		ky_vec_foreach(&(*trace)->cls->clocks, clock)
			if (!ret)
				ret = key_keep_clock(load, *clock, err);
	return ret;
}
