/* SPDX-License-Identifier: MIT */
/* Pauses of a recording, and clearing: what was recorded so far is dropped. */
#include <stdio.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "record/recording/recording-internal.h"

/* The traces that a clearing drops, for a moment. */
#define CLEARED_DIR "archives/cleared"

/* ---- pauses ---------------------------------------------------------------------------- */

static int pause_user(struct ky_recording *recording, bool pauses, struct kymo_error *err)
{
	const struct ky_user_change change = {.kind = KY_USER_PAUSE, .enables = pauses};

	return ky_recording_change_programs(recording, &change, err);
}

int ky_recording_pause(struct ky_recording *recording, struct kymo_error *err)
{
	struct ky_recording_pauses *pauses = &recording->pauses;
	int ret = KYMO_OK;

	if (pauses->is_on)
		return ky_error_set(err, KYMO_E_STATE, "the recording is paused already");
	/* The kernel first: it may refuse. */
	if (recording->session)
		ret = ky_session_pause(recording->session, err);
	if (ret < 0)
		return ret;
	pauses->is_on = true;
	pauses->since_ns = ky_os_now_ns();
	pauses->n++;
	return pause_user(recording, true, err);
}

int ky_recording_resume(struct ky_recording *recording, struct kymo_error *err)
{
	struct ky_recording_pauses *pauses = &recording->pauses;
	int ret;

	if (!pauses->is_on)
		return ky_error_set(err, KYMO_E_STATE, "the recording is not paused");
	ret = pause_user(recording, false, err);
	if (!ret && recording->session)
		ret = ky_session_resume(recording->session, err);
	if (ret < 0)
		return ret;
	pauses->total_ns += (uint64_t)(ky_os_now_ns() - pauses->since_ns);
	pauses->is_on = false;
	return KYMO_OK;
}

uint64_t ky_recording_paused_ns(const struct ky_recording *recording)
{
	const struct ky_recording_pauses *pauses = &recording->pauses;

	return pauses->total_ns +
	       (pauses->is_on ? (uint64_t)(ky_os_now_ns() - pauses->since_ns) : 0);
}

/* ---- clearing -------------------------------------------------------------------------- */

static int clear_flight(struct ky_recording *recording, struct kymo_error *err)
{
	int ret = KYMO_OK;

	if (recording->session)
		ret = ky_session_clear(recording->session, err);
	return ret < 0 ? ret : ky_recording_clear_programs(recording, err);
}

void ky_recording_remove_cleared(const struct ky_recording *recording)
{
	char path[PATH_MAX];

	if (snprintf(path, sizeof(path), "%s/" CLEARED_DIR, recording->options.output) <
	    (int)sizeof(path))
		ky_tree_remove(path);
	/* When there are no chunks. */
	if (snprintf(path, sizeof(path), "%s/archives", recording->options.output) <
	    (int)sizeof(path))
		(void)rmdir(path);
}

/* As a rotation, whose chunk goes. */
static int clear_traces(struct ky_recording *recording, struct kymo_error *err)
{
	struct ky_packet_store *store = recording->options.store;
	int ret;

	if (store && !ky_store_can_remove(store)) {
		ky_error_set(err, KYMO_E_UNSUPPORTED,
			     "the relay is of an older version, which keeps what it has");
		ky_error_hint(err, "rotate the recording, and remove its chunks at the relay");
		return KYMO_E_UNSUPPORTED;
	}
	ret = ky_recording_rotate_to(recording, CLEARED_DIR, err);
	if (!store)
		ky_recording_remove_cleared(recording);
	else if (!ret)
		ret = ky_store_remove(store, CLEARED_DIR, err);
	return ret;
}

int ky_recording_clear(struct ky_recording *recording, struct kymo_error *err)
{
	int ret = recording->options.user.overwrite ? clear_flight(recording, err)
						    : clear_traces(recording, err);

	if (ret < 0)
		return ret;
	recording->n_cleared++;
	ky_recording_progress(recording, &recording->cleared);
	ky_recording_restart_chunk(recording);
	return KYMO_OK;
}
