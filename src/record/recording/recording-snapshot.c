/* SPDX-License-Identifier: MIT */
/* Snapshots of a flight recorder: of the kernel and of programs, with one clock. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "record/common/record-dir.h"
#include "record/recording/recording-internal.h"

/* OUTPUT-snapshot-1, the first that does not exist. */
static bool choose_path(const struct ky_recording *recording,
			struct ky_recording_snapshot *snapshot)
{
	size_t len = strlen(recording->options.output);

	while (len > 1 && recording->options.output[len - 1] == '/')
		len--;
	for (int i = 1; i < INT_MAX; i++) {
		if (snprintf(snapshot->path, sizeof(snapshot->path), "%.*s-snapshot-%d", (int)len,
			     recording->options.output, i) >= (int)sizeof(snapshot->path))
			return false;
		if (access(snapshot->path, F_OK) < 0)
			return true;
	}
	return false;
}

/* The events of both sides come first: the state takes longer, and newer events overwrite older ones meanwhile. */
static int recording_snapshot_copy_all(struct ky_recording *recording,
				       struct ky_recording_snapshot *snapshot,
				       struct kymo_error *err)
{
	struct ky_user_snapshot user = {0};
	/* Else its events are in the recording's own trace. */
	bool of_kernel = recording->session && ky_session_has_snapshots(recording->session);
	struct kymo_error next;
	int ret = KYMO_OK, finished;

	/* The kernel's snapshot refines the clock that both sides have. */
	if (of_kernel)
		ret = ky_session_snapshot(recording->session, snapshot->path, err);
	else
		ky_recording_refine_clock(recording);
	if (ret < 0)
		return ret;
	ret = ky_recording_snapshot_programs(recording, snapshot->path, &user, err);
	finished = of_kernel ? ky_session_snapshot_finish(recording->session, &snapshot->events,
							  &snapshot->bytes, &next)
			     : KYMO_OK;
	snapshot->events += user.events;
	snapshot->bytes += user.bytes;
	ret = ky_recording_keep_error(ret, finished, err, &next);
	if (ret < 0)
		return ret;
	return ky_recording_write_marks(recording, NULL, snapshot->path, "",
					ky_recording_clock(recording), err);
}

int ky_recording_snapshot(struct ky_recording *recording, const char *path,
			  struct ky_recording_snapshot *snapshot, struct kymo_error *err)
{
	bool made;
	int ret;

	*snapshot = (struct ky_recording_snapshot){.is_raw = recording->session &&
							     recording->options.kernel.raw};
	if (!recording->options.user.overwrite && !ky_recording_has_flight_groups(recording))
		return ky_error_set(err, KYMO_E_STATE,
				    "this recording is not a flight recorder; its events are in %s "
				    "already",
				    recording->options.output);
	if (recording->options.store && !(path && *path))
		return ky_error_set(err, KYMO_E_INVALID,
				    "the recording goes to a relay: a snapshot needs a directory");
	if (path && *path ? snprintf(snapshot->path, sizeof(snapshot->path), "%s", path) >=
				    (int)sizeof(snapshot->path)
			  : !choose_path(recording, snapshot))
		return ky_error_set(err, KYMO_E_INVALID, "the path of the snapshot is too long");
	ret = ky_record_dir_make(snapshot->path, &made, err);
	if (ret < 0)
		return ret;
	ret = recording_snapshot_copy_all(recording, snapshot, err);
	ky_recording_set_timer(recording);
	if (!ret && !snapshot->events)
		ret = ky_error_set(err, KYMO_E_STATE, "no events were recorded yet");
	if (ret < 0 && made)
		(void)rmdir(snapshot->path);
	if (!ret)
		ky_recording_tell_trace(recording, "snapshot", snapshot->path, snapshot->events,
					snapshot->bytes);
	return ret;
}
