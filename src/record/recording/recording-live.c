/* SPDX-License-Identifier: MIT */
/*
 * Live readers of a recording with kernel and programs need the beacons of both, also while one of them is idle. So the
 * kernel's recorder looks for readers, and sets the idle programs' beacons together with its own: the machine wakes once
 * for both. And while programs write, the kernel's beacons come often.
 */
#include <sys/eventfd.h>

#include "record/recording/recording-internal.h"

void ky_recording_programs_write(struct ky_recording *recording)
{
	eventfd_t count;

	for (size_t i = 0; i < recording->programs.n; i++)
		(void)eventfd_read(ky_user_active_fd(recording->programs.users[i]), &count);
	if (recording->session)
		ky_session_live_programs(recording->session, true);
}

static bool any_program_writes(const struct ky_recording *recording)
{
	for (size_t i = 0; i < recording->programs.n; i++)
		if (!ky_user_is_idle(recording->programs.users[i]))
			return true;
	return false;
}

/* Readers that have come or gone; a beacon. */
static int recording_live_tell_programs(struct ky_recording *recording, struct kymo_error *err)
{
	uint32_t delay_ms = ky_session_live_delay_ms(recording->session);
	uint64_t n_beacons = ky_session_live_beacons(recording->session);
	bool is_change = delay_ms != recording->live.delay_ms;
	bool is_beacon = n_beacons != recording->live.n_beacons;
	int ret = KYMO_OK;

	recording->live.delay_ms = delay_ms;
	recording->live.n_beacons = n_beacons;
	for (size_t i = 0; i < recording->programs.n && !ret; i++) {
		if (is_change)
			ky_user_look_for_readers(recording->programs.users[i]);
		if (is_beacon)
			ret = ky_user_tell_readers(recording->programs.users[i], err);
	}
	return ret;
}

int ky_recording_step_session(struct ky_recording *recording, struct kymo_error *err)
{
	int ret;

	ky_session_live_programs(recording->session, any_program_writes(recording));
	ret = ky_session_step(recording->session, err);
	return ret < 0 ? ret : recording_live_tell_programs(recording, err);
}
