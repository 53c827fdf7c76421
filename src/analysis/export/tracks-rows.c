/* SPDX-License-Identifier: MIT */
/* The tracks themselves: one for each thread, CPU, disk and stream that something happens on. */
#include "analysis/export/tracks-internal.h"

#include <stdio.h>
#include <string.h>

#define DISK_LANES 64

/* What identifies a track: kind, machine and number. */
static uint64_t tracks_rows_key(enum ky_track_kind kind, uint32_t machine, uint32_t number)
{
	return ky_hash_u64((uint64_t)kind << 48 | (uint64_t)machine << 32 | number);
}

static struct ky_track *tracks_rows_new(struct ky_tracks *tracks, const struct ky_host *host,
					enum ky_track_kind kind, uint32_t number)
{
	struct ky_track *track = ky_arena_new(&tracks->arena, struct ky_track);

	if (!track)
		return NULL;
	track->index = (uint32_t)tracks->list.len;
	track->kind = kind;
	track->machine = tracks->hosts[host->index].machine;
	track->hostname = host->name;
	track->tid = (int32_t)number;
	if (ky_vec_push(&tracks->list, track) < 0 ||
	    ky_map_set(&tracks->tracks, tracks_rows_key(kind, track->machine, number), track) < 0)
		return NULL;
	return track;
}

static struct ky_track *tracks_rows_find(const struct ky_tracks *tracks, const struct ky_host *host,
					 enum ky_track_kind kind, uint32_t number)
{
	return ky_map_get(&tracks->tracks,
			  tracks_rows_key(kind, tracks->hosts[host->index].machine, number));
}

/* A thread's number is used again after its end: a new life in another process is another track. */
static struct ky_track *tracks_rows_thread(struct ky_tracks *tracks, const struct ky_host *host,
					   int32_t pid, int32_t tid)
{
	struct ky_track *track = tracks_rows_find(tracks, host, KY_TRACK_THREAD, (uint32_t)tid);

	if (track && (pid <= 0 || pid == track->pid))
		return track;
	track = tracks_rows_new(tracks, host, KY_TRACK_THREAD, (uint32_t)tid);
	if (track)
		track->pid = pid > 0 ? pid : tid;
	return track;
}

static void tracks_rows_name(struct ky_track *track, const char *name, size_t len)
{
	if (!len || len >= sizeof(track->name))
		return;
	memcpy(track->name, name, len);
	track->name[len] = '\0';
}

struct ky_track *ky_tracks_of_thread(struct ky_tracks *tracks, const struct ky_thread *thread)
{
	struct ky_track *track = tracks_rows_thread(tracks, thread->host, thread->pid, thread->tid);
	const struct ky_thread *first;

	if (!track)
		return NULL;
	tracks_rows_name(track, thread->comm, strlen(thread->comm));
	first = ky_map_get(&thread->host->threads, (uint32_t)track->pid);
	if (first && first->comm[0])
		snprintf(track->process, sizeof(track->process), "%s", first->comm);
	return track;
}

struct ky_track *ky_tracks_of_process(struct ky_tracks *tracks, const struct ky_host *host)
{
	const struct ky_env *pid = ky_env_find(host->trace->cls, "vpid");
	const struct ky_env *name = ky_env_find(host->trace->cls, "procname");
	struct ky_track *track;

	if (!pid || pid->is_text || pid->number <= 0 || pid->number > INT32_MAX)
		return NULL;
	track = tracks_rows_thread(tracks, host, (int32_t)pid->number, (int32_t)pid->number);
	if (track && name && name->is_text && !track->process[0]) {
		snprintf(track->process, sizeof(track->process), "%s", name->text);
		if (!track->name[0])
			snprintf(track->name, sizeof(track->name), "%s", name->text);
	}
	return track;
}

struct ky_track *ky_tracks_of_user(struct ky_tracks *tracks, const struct ky_host *host,
				   const struct ky_event *event, const struct ky_tracks_class *cls)
{
	int64_t tid = ky_get_i64(event, &cls->thread.tid, 0);
	int64_t pid = ky_get_i64(event, &cls->thread.pid, 0);
	struct ky_track *track;
	const char *name;
	size_t len;

	if (tid <= 0 || tid > INT32_MAX)
		return NULL;
	track = tracks_rows_thread(tracks, host, pid > INT32_MAX ? 0 : (int32_t)pid, (int32_t)tid);
	if (!track)
		return NULL;
	name = ky_get_text(event, &cls->thread.comm, &len);
	tracks_rows_name(track, name, len);
	if (!track->process[0] && track->tid == track->pid)
		snprintf(track->process, sizeof(track->process), "%s", track->name);
	return track;
}

struct ky_track *ky_tracks_of_cpu(struct ky_tracks *tracks, const struct ky_host *host,
				  enum ky_track_kind kind, uint32_t cpu_id)
{
	struct ky_track *track = tracks_rows_find(tracks, host, kind, cpu_id);

	if (track)
		return track;
	track = tracks_rows_new(tracks, host, kind, cpu_id);
	if (track)
		snprintf(track->name, sizeof(track->name),
			 kind == KY_TRACK_CPU ? "CPU %u" : "CPU %u interrupts", cpu_id);
	return track;
}

struct ky_track *ky_tracks_of_disk(struct ky_tracks *tracks, const struct ky_disk *disk,
				   int64_t begin_ns, int64_t end_ns)
{
	struct ky_track *track = NULL;

	for (uint32_t lane = 0; lane < DISK_LANES; lane++) {
		uint32_t number = disk->index * DISK_LANES + lane;

		track = tracks_rows_find(tracks, disk->host, KY_TRACK_DEVICE, number);
		if (!track) {
			track = tracks_rows_new(tracks, disk->host, KY_TRACK_DEVICE, number);
			if (!track)
				return NULL;
			snprintf(track->name, sizeof(track->name), "disk %s%s", disk->name,
				 lane ? " (more)" : "");
			track->busy_until_ns = INT64_MIN;
		}
		if (track->busy_until_ns <= begin_ns)
			break;
	}
	track->busy_until_ns = end_ns;
	return track;
}

struct ky_track *ky_tracks_of_stream(struct ky_tracks *tracks, const struct ky_host *host,
				     const struct ky_stream *stream)
{
	struct ky_track *track =
		tracks_rows_find(tracks, host, KY_TRACK_STREAM, (uint32_t)stream->index);
	const char *slash = strrchr(stream->trace->path, '/');

	if (track)
		return track;
	track = tracks_rows_new(tracks, host, KY_TRACK_STREAM, (uint32_t)stream->index);
	if (track)
		snprintf(track->name, sizeof(track->name), "%.40s %.40s",
			 slash ? slash + 1 : stream->trace->path, stream->name);
	return track;
}
