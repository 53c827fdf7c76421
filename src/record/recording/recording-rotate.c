/* SPDX-License-Identifier: MIT */
/*
 * Rotation: when a chunk is complete, where it goes, and how long it stays. Chunks are where
 * LTTng has them: OUTPUT/archives/BEGIN-END-NUMBER.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "record/recording/recording-internal.h"

#define NS_PER_S INT64_C(1000000000)
/*
 * Between two looks at the size: half of the time that the rest of the chunk takes, at the rate since
 * the last look.
 */
#define LOOK_MIN_NS (NS_PER_S / 20)
#define LOOK_MAX_NS NS_PER_S
#define STAMP_BYTES 32

void ky_recording_progress(const struct ky_recording *recording,
			   struct ky_recording_progress *progress)
{
	struct ky_session_progress kernel = {0};
	struct ky_user_progress user = {0};

	if (recording->session)
		ky_session_progress(recording->session, &kernel);
	ky_recording_program_progress(recording, &user);
	*progress = (struct ky_recording_progress){
		kernel.events + user.events, kernel.lost + user.lost, kernel.bytes + user.bytes,
		kernel.archived_dump_events + user.archived_dump_events};
}

/* ---- the timer ------------------------------------------------------------------------ */

int ky_recording_open_chunks(struct ky_recording *recording, struct kymo_error *err)
{
	const struct ky_recording_rotation *options = &recording->options.rotation;

	if (!options->size_bytes && !options->every_ns)
		return KYMO_OK;
	recording->chunks.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (recording->chunks.timer_fd < 0)
		return ky_error_errno(err, errno, "cannot set up the timer of the chunks");
	return KYMO_OK;
}

/* The time of the next look at the size. */
static int64_t next_look(struct ky_recording *recording, int64_t now)
{
	struct ky_recording_chunks *chunks = &recording->chunks;
	struct ky_recording_progress now_at;
	uint64_t bytes, grown, rest;
	int64_t wait = LOOK_MAX_NS;

	ky_recording_progress(recording, &now_at);
	bytes = now_at.bytes;
	grown = bytes - chunks->looked_bytes;
	rest = recording->options.rotation.size_bytes - (bytes - chunks->bytes);
	if (grown && now > chunks->looked_ns)
		wait = (int64_t)((double)(now - chunks->looked_ns) * (double)rest / (double)grown /
				 2);
	chunks->looked_bytes = bytes;
	chunks->looked_ns = now;
	wait = wait < LOOK_MIN_NS ? LOOK_MIN_NS : wait > LOOK_MAX_NS ? LOOK_MAX_NS : wait;
	return now + wait;
}

static void recording_rotate_set_timer(struct ky_recording *recording)
{
	const struct ky_recording_rotation *options = &recording->options.rotation;
	struct ky_recording_chunks *chunks = &recording->chunks;
	int64_t now = ky_os_now_ns(), at = chunks->due_ns;
	struct itimerspec spec = {{0}};

	if (options->size_bytes) {
		int64_t look = next_look(recording, now);

		at = at && at < look ? at : look;
	}
	if (chunks->timer_fd < 0)
		return;
	spec.it_value.tv_sec = (time_t)(at / NS_PER_S);
	spec.it_value.tv_nsec = (long)(at % NS_PER_S);
	(void)timerfd_settime(chunks->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

/* In a pause there is nothing to rotate: the next look comes after the same time. */
static void restart_age(struct ky_recording_chunks *chunks,
			const struct ky_recording_rotation *options)
{
	if (options->every_ns)
		chunks->due_ns = ky_os_now_ns() + (int64_t)options->every_ns;
}

void ky_recording_begin_chunks(struct ky_recording *recording)
{
	struct ky_recording_chunks *chunks = &recording->chunks;

	chunks->begin_ns = ky_os_time_ns(CLOCK_REALTIME);
	chunks->looked_ns = ky_os_now_ns();
	if (recording->options.rotation.every_ns)
		chunks->due_ns = chunks->looked_ns + (int64_t)recording->options.rotation.every_ns;
	recording_rotate_set_timer(recording);
}

int ky_recording_check_chunk(struct ky_recording *recording, struct kymo_error *err)
{
	const struct ky_recording_rotation *options = &recording->options.rotation;
	struct ky_recording_chunks *chunks = &recording->chunks;
	struct ky_recording_chunk chunk;
	struct ky_recording_progress progress;
	uint64_t count;
	int ret = KYMO_OK;

	(void)!read(chunks->timer_fd, &count, sizeof(count));
	ky_recording_progress(recording, &progress);
	if (recording->pauses.is_on)
		restart_age(chunks, options);
	else if ((options->size_bytes && progress.bytes - chunks->bytes >= options->size_bytes) ||
		 (chunks->due_ns && ky_os_now_ns() >= chunks->due_ns))
		ret = ky_recording_rotate(recording, &chunk, err);
	recording_rotate_set_timer(recording);
	return ret;
}

/* ---- how long chunks stay ------------------------------------------------------------- */

static bool is_too_many(const struct ky_recording *recording)
{
	const struct ky_recording_rotation *options = &recording->options.rotation;
	const struct ky_recording_chunks *chunks = &recording->chunks;
	uint64_t bytes = 0;

	ky_vec_foreach(&chunks->kept, kept)
		bytes += kept->bytes;
	return chunks->kept.len &&
	       ((options->keep && chunks->kept.len > options->keep) ||
		(options->keep_bytes && bytes > options->keep_bytes) ||
		(options->keep_ns && ky_os_time_ns(CLOCK_REALTIME) - chunks->kept.data[0].end_ns >
					     (int64_t)options->keep_ns));
}

static void recording_rotate_remove_old(struct ky_recording *recording)
{
	struct ky_recording_chunks *chunks = &recording->chunks;
	size_t n = 0;

	while (is_too_many(recording)) {
		ky_tree_remove(chunks->kept.data[0].path);
		free(chunks->kept.data[0].path);
		chunks->kept.len--;
		memmove(chunks->kept.data, chunks->kept.data + 1,
			chunks->kept.len * sizeof(chunks->kept.data[0]));
		n++;
	}
	chunks->n_removed += n;
}

static int recording_rotate_keep(struct ky_recording *recording,
				 const struct ky_recording_chunk *chunk, int64_t end_ns,
				 struct kymo_error *err)
{
	struct ky_recording_chunks *chunks = &recording->chunks;
	/* All its files count: metadata can be larger than the packets. */
	uint64_t bytes = recording->options.rotation.keep_bytes ? ky_tree_bytes(chunk->path) : 0;
	struct ky_recording_kept kept = {strdup(chunk->path), bytes, end_ns};

	chunks->number++;
	if (!kept.path || ky_vec_push(&chunks->kept, kept) < 0) {
		free(kept.path);
		return ky_error_nomem(err);
	}
	return ky_vec_push(&chunks->fresh, *chunk) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

/* ---- rotating ------------------------------------------------------------------------- */

/* "20261124T025954Z" */
static void recording_rotate_put_stamp(char stamp[STAMP_BYTES], int64_t ns)
{
	time_t seconds = (time_t)(ns / NS_PER_S);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	if (!strftime(stamp, STAMP_BYTES, "%Y%m%dT%H%M%SZ", &tm))
		stamp[0] = '\0';
}

/* While the programs' traces rotate, the kernel's buffers are read. */
static int read_kernel(void *data, int fd, struct kymo_error *err)
{
	struct ky_recording *recording = data;

	return ky_session_wait_for(recording->session, fd, err);
}

static int rotate_all(struct ky_recording *recording, const char *archive, struct kymo_error *err)
{
	const struct ky_user_pause pause = {read_kernel, recording};
	struct ky_os_clock ended;
	int ret = KYMO_OK;

	if (recording->session) {
		ret = ky_session_rotate(recording->session, archive, &ended, err);
	} else {
		struct ky_os_clock_drift drift;

		ky_os_clock_resample(&recording->user_clock, &drift);
		(void)ky_os_clock_refine(&recording->user_clock, &drift);
		ended = recording->user_clock;
		(void)ky_os_clock_continue(&recording->user_clock, &drift);
	}
	if (!ret)
		ret = ky_recording_rotate_programs(recording, archive, &ended,
						   recording->session ? &pause : NULL, err);
	if (!ret)
		ret = ky_recording_write_marks(recording, recording->options.store,
					       recording->options.output, archive, &ended, err);
	if (!ret)
		ky_recording_drop_marks(recording);
	return ret;
}

static int recording_rotate_check(const struct ky_recording *recording, struct kymo_error *err)
{
	const struct ky_recording_options *options = &recording->options;

	if (options->user.overwrite || options->kernel.overwrite)
		return ky_error_set(err, KYMO_E_STATE,
				    "this recording is a flight recorder: take a snapshot of it");
	if (options->has_kernel && options->kernel.raw)
		return ky_error_set(err, KYMO_E_STATE,
				    "this recording is raw: its files cannot be cut into chunks");
	return KYMO_OK;
}

int ky_recording_rotate_to(struct ky_recording *recording, const char *archive,
			   struct kymo_error *err)
{
	int ret = recording_rotate_check(recording, err);

	return ret < 0 ? ret : rotate_all(recording, archive, err);
}

void ky_recording_restart_chunk(struct ky_recording *recording)
{
	struct ky_recording_chunks *chunks = &recording->chunks;
	struct ky_recording_progress progress;

	ky_recording_progress(recording, &progress);
	chunks->begin_ns = ky_os_time_ns(CLOCK_REALTIME);
	chunks->events = progress.events;
	chunks->bytes = progress.bytes;
	restart_age(chunks, &recording->options.rotation);
}

int ky_recording_rotate(struct ky_recording *recording, struct ky_recording_chunk *chunk,
			struct kymo_error *err)
{
	struct ky_recording_chunks *chunks = &recording->chunks;
	char archive[2 * STAMP_BYTES + 40], begin[STAMP_BYTES], end[STAMP_BYTES];
	int64_t end_ns = ky_os_time_ns(CLOCK_REALTIME);
	struct ky_recording_progress progress;
	int ret = recording_rotate_check(recording, err);

	if (ret < 0)
		return ret;
	recording_rotate_put_stamp(begin, chunks->begin_ns);
	recording_rotate_put_stamp(end, end_ns);
	snprintf(archive, sizeof(archive), "archives/%s-%s-%" PRIu64, begin, end,
		 chunks->number + 1);
	ret = rotate_all(recording, archive, err);
	if (ret < 0)
		return ret;
	ky_recording_progress(recording, &progress);
	*chunk = (struct ky_recording_chunk){
		.number = chunks->number + 1,
		.events = progress.events - chunks->events,
		.bytes = progress.bytes - chunks->bytes,
	};
	snprintf(chunk->path, sizeof(chunk->path), "%s/%s", recording->options.output, archive);
	ky_recording_restart_chunk(recording);
	chunks->begin_ns = end_ns;
	/* No program had a trace. */
	if (!recording->options.store && access(chunk->path, F_OK) < 0)
		*chunk = (struct ky_recording_chunk){.number = 0};
	else
		ret = recording_rotate_keep(recording, chunk, end_ns, err);
	if (!ret && chunk->number)
		ky_recording_tell_trace(recording, "rotation", chunk->path, chunk->events,
					chunk->bytes);
	recording_rotate_remove_old(recording);
	return ret;
}

bool ky_recording_take_chunk(struct ky_recording *recording, struct ky_recording_chunk *chunk)
{
	struct ky_recording_chunks *chunks = &recording->chunks;

	if (!chunks->fresh.len)
		return false;
	*chunk = chunks->fresh.data[0];
	chunks->fresh.len--;
	memmove(chunks->fresh.data, chunks->fresh.data + 1,
		chunks->fresh.len * sizeof(chunks->fresh.data[0]));
	return true;
}

void ky_recording_close_chunks(struct ky_recording *recording)
{
	struct ky_recording_chunks *chunks = &recording->chunks;

	if (chunks->timer_fd >= 0)
		close(chunks->timer_fd);
	ky_vec_foreach(&chunks->kept, kept)
		free(kept->path);
	ky_vec_fini(&chunks->kept);
	ky_vec_fini(&chunks->fresh);
}
