/* SPDX-License-Identifier: MIT */
/* The state history: a pass over a range begins with a state of the model that the index has. */
#include "analysis/history/history-internal.h"
#include "analysis/history/history-save.h"
#include "base/error.h"

/* What states have; for files, devices, address spaces, locks and periods a pass begins with the trace. */
#define SAVED_SUBJECTS                                                                   \
	((unsigned int)KY_ABOUT_WAITS | KY_ABOUT_IRQS | KY_ABOUT_RUNS | KY_ABOUT_QUIET | \
	 KY_ABOUT_SIGNALS | KY_ABOUT_CALLS)

/* The last state at or before @ns; NULL: none. */
static const struct ky_saved_state *last_state(const struct ky_history *history, int64_t ns)
{
	const struct ky_saved_state *found = NULL;

	ky_vec_foreach(&history->states, state) {
		if (state->ns <= ns)
			found = state;
	}
	return found;
}

static bool has_all(const struct ky_model *model)
{
	unsigned int missing = model->subjects & ~SAVED_SUBJECTS;

	/* Without events of timers, nothing is known of them at any time. */
	if (!(ky_model_abilities(model) & KY_CAN_TIMERS))
		missing &= ~(unsigned int)KY_ABOUT_TIMERS;
	return !missing && !model->follows_cgroups;
}

int ky_history_resume(struct ky_history *history, struct ky_model *model, int64_t begin_ns,
		      int64_t *ns, struct kymo_error *err)
{
	const struct ky_saved_state *state = last_state(history, begin_ns);
	struct ky_bytes bytes;
	int status;

	if (!state || !history->slot.is_complete || !has_all(model))
		return 0;
	status = ky_history_record(history, state->offset, KY_RECORD_STATE, 0, 0, &bytes, err);
	if (status < 0)
		return status == KYMO_E_FORMAT ? 0 : status;
	status = ky_history_restore(model, &bytes, ns);
	if (status == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	if (status < 0 || *ns != state->ns)
		return ky_history_damaged(history, state->offset, "a malformed state", err);
	return 1;
}
