/* SPDX-License-Identifier: MIT */
/* Clocks of Perfetto's packets, by snapshots of them. */
#include "base/error.h"
#include "import/perfetto/perfetto-trace.h"

#define OWN_CLOCKS 64  /* from there on, clocks are of sequences */
#define CLOCKS_MAX 256 /* a sequence has a few */

static struct ky_perfetto_clock perfetto_clock_read(const struct ky_pb_field *message)
{
	struct ky_pb_reader reader = ky_pb_reader(message->data, message->len);
	struct ky_perfetto_clock clock = {.unit_ns = 1};
	struct ky_pb_field field;

	while (ky_pb_next(&reader, &field)) {
		if (field.number == 1)
			clock.id = (uint32_t)field.value;
		else if (field.number == 2)
			clock.at = clock.last = field.value;
		else if (field.number == 3)
			clock.is_incremental = field.value != 0;
		else if (field.number == 4 && field.value && field.value < 1000000000)
			clock.unit_ns = field.value;
	}
	return clock;
}

bool ky_perfetto_clock_value(const struct ky_pb_field *snapshot, uint32_t id, uint64_t *value)
{
	struct ky_pb_reader reader = ky_pb_reader(snapshot->data, snapshot->len);
	struct ky_pb_field field;

	while (ky_pb_next(&reader, &field)) {
		struct ky_perfetto_clock clock = {0};

		if (field.number != 1 || !field.has_bytes)
			continue;
		clock = perfetto_clock_read(&field);
		*value = clock.at;
		if (clock.id == id)
			return true;
	}
	return false;
}

static struct ky_perfetto_clock *perfetto_clock_find(struct ky_perfetto *perfetto,
						     struct ky_perfetto_sequence *sequence,
						     uint32_t id)
{
	if (id >= OWN_CLOCKS) {
		ky_vec_foreach(&sequence->clocks, clock) {
			if (clock->id == id)
				return clock;
		}
		return NULL;
	}
	ky_vec_foreach(&perfetto->clocks, clock) {
		if (clock->id == id)
			return clock;
	}
	return NULL;
}

int ky_perfetto_snapshot(struct ky_perfetto *perfetto, struct ky_perfetto_sequence *sequence,
			 const struct ky_pb_field *snapshot)
{
	struct ky_pb_reader reader = ky_pb_reader(snapshot->data, snapshot->len);
	struct ky_pb_field field;
	uint64_t boot;
	int ret = KYMO_OK;

	if (!ky_perfetto_clock_value(snapshot, KY_PERFETTO_CLOCK_BOOT, &boot))
		return KYMO_OK;
	while (ret == KYMO_OK && ky_pb_next(&reader, &field)) {
		struct ky_perfetto_clock clock, *known;

		if (field.number != 1 || !field.has_bytes)
			continue;
		clock = perfetto_clock_read(&field);
		clock.trace_ns = (int64_t)boot;
		known = perfetto_clock_find(perfetto, sequence, clock.id);
		if (known)
			*known = clock;
		else if (clock.id >= OWN_CLOCKS && sequence->clocks.len < CLOCKS_MAX)
			ret = ky_vec_push(&sequence->clocks, clock);
		else if (clock.id < OWN_CLOCKS)
			ret = ky_vec_push(&perfetto->clocks, clock);
	}
	return ret < 0 ? ky_error_nomem(perfetto->err) : KYMO_OK;
}

/* The packet's time on the trace's clock. */
int64_t ky_perfetto_time(struct ky_perfetto *perfetto, struct ky_perfetto_sequence *sequence,
			 uint64_t clock_id, uint64_t value)
{
	uint32_t id = clock_id ? (uint32_t)clock_id : sequence->clock;
	struct ky_perfetto_clock *clock;

	if (!id || id == KY_PERFETTO_CLOCK_BOOT)
		return (int64_t)value;
	clock = perfetto_clock_find(perfetto, sequence, id);
	if (!clock)
		return (int64_t)value;
	/* What a wrong file makes of it wraps around. */
	if (clock->is_incremental)
		value = clock->last += value;
	return (int64_t)((uint64_t)clock->trace_ns + (value - clock->at) * clock->unit_ns);
}
