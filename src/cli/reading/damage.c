/* SPDX-License-Identifier: MIT */
#include "cli/reading/damage.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/terminal/command.h"

static struct {
	uint64_t places, skipped_bytes;
} told;

void ky_cli_damage(const struct ky_loss *loss)
{
	const struct kymo_error *damage = loss->damage;
	char place[KY_CLI_PLACE_BYTES] = "";

	if (!damage)
		return;
	told.places++;
	told.skipped_bytes += loss->skipped_bytes;
	if (damage->offset != KYMO_NO_OFFSET)
		ky_cli_place(damage, place, sizeof(place));
	ky_log_warning(&ky_cli_log, "%s: %s%s: %llu bytes skipped",
		       damage->path[0] ? damage->path : loss->stream->file.path, damage->message,
		       place, (unsigned long long)loss->skipped_bytes);
}

int ky_cli_damage_end(int ret, struct kymo_error *err)
{
	if (ret < 0 || !told.places)
		return ret;
	return ky_error_set(err, KYMO_E_FORMAT, "damage in %llu place%s: %llu bytes were skipped",
			    (unsigned long long)told.places, told.places == 1 ? "" : "s",
			    (unsigned long long)told.skipped_bytes);
}

/* ---- the stage ---------------------------------------------------------------------------- */

struct stage {
	struct ky_stage base;
	uint64_t n_met, n_told; /* losses: since the beginning, and the most ever */
};

static int damage_stage_next(struct ky_flow *flow, struct ky_batch *batch, struct kymo_error *err)
{
	struct stage *stage = (struct stage *)flow;
	int ret = ky_flow_next(stage->base.input, batch, err);

	/* A second pass over the events repeats no warning. */
	if (ret > 0 && batch->loss && ++stage->n_met > stage->n_told) {
		stage->n_told = stage->n_met;
		ky_cli_damage(batch->loss);
	}
	return ret;
}

static int stage_seek(struct ky_flow *flow, int64_t ns, struct kymo_error *err)
{
	struct stage *stage = (struct stage *)flow;

	if (ns == INT64_MIN)
		stage->n_met = 0;
	return ky_flow_seek(stage->base.input, ns, err);
}

static const struct ky_flow_ops stage_ops = {
	.next = damage_stage_next,
	.seek = stage_seek,
	.broken = ky_stage_broken,
	.close = ky_stage_close,
};

int ky_cli_damage_stage(struct ky_flow *input, struct ky_flow **flow, struct kymo_error *err)
{
	struct stage *stage = calloc(1, sizeof(*stage));

	if (!stage) {
		ky_flow_close(input);
		return ky_error_nomem(err);
	}
	stage->base.flow.ops = &stage_ops;
	stage->base.input = input;
	*flow = &stage->base.flow;
	return KYMO_OK;
}
