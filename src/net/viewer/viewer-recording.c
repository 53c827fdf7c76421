/* SPDX-License-Identifier: MIT */
#include "net/viewer/viewer-recording.h"

#include "net/viewer/viewer-trace-files.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "os/now.h"
#include "store/read/follow.h"

/* Between two looks at the same thing. */
#define LOOK_NS 20000000
/* After a trace has ended, its successor has this time to appear. */
#define GRACE_NS 500000000
/* So long a recorder may take until it tells the first bound of a trace: a state dump comes before. */
#define FIRST_BOUND_NS 5000000000
/* A relay locks a trace's directory a moment after it has made it. */
#define YOUNG_NS 50000000
/* The part of the time that looking for new traces may take: one in so many. */
#define SCAN_SHARE  3
#define DEPTH_MAX   12
#define ENTRIES_MAX 1000000
#define TRACKS_MAX  1000000
#define INDEX_MAX   4096 /* bytes of one entry */

/* ---- finding traces ------------------------------------------------------------------- */

struct scan {
	ky_viewer_found found;
	void *data;
	char path[PATH_MAX];
	unsigned int left; /* entries */
};

static void scan_dir(struct scan *scan, DIR *dir, size_t len, int depth)
{
	struct dirent *entry;
	struct stat st;

	/* The metadata of a new trace may come later. */
	if (fstatat(dirfd(dir), "metadata", &st, AT_SYMLINK_NOFOLLOW) == 0 ||
	    fstatat(dirfd(dir), "index", &st, AT_SYMLINK_NOFOLLOW) == 0)
		scan->found(scan->data, dirfd(dir), scan->path);
	while (depth < DEPTH_MAX && scan->left && (entry = readdir(dir))) {
		size_t room = sizeof(scan->path) - len;
		DIR *child;

		scan->left--;
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, "index") == 0 ||
		    (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN))
			continue;
		if (snprintf(scan->path + len, room, "%s%s", len ? "/" : "", entry->d_name) >=
		    (int)room)
			continue;
		child = ky_dir_open(dirfd(dir), entry->d_name);
		if (!child)
			continue;
		scan_dir(scan, child, strlen(scan->path), depth + 1);
		closedir(child);
	}
	scan->path[len] = '\0';
}

void ky_viewer_scan(int dir_fd, ky_viewer_found found, void *data)
{
	struct scan *scan = calloc(1, sizeof(*scan));
	DIR *dir = ky_dir_open(dir_fd, ".");

	if (scan && dir) {
		scan->found = found;
		scan->data = data;
		scan->left = ENTRIES_MAX;
		scan_dir(scan, dir, 0, 0);
	}
	if (dir)
		closedir(dir);
	free(scan);
}

static void viewer_recording_trace_free(struct ky_viewer_trace *trace)
{
	if (!trace)
		return;
	ky_live_state_fini(&trace->state);
	ky_names_fini(&trace->names);
	ky_viewer_trace_close(trace);
	free(trace->place);
	free(trace->path);
	free(trace);
}

static struct ky_viewer_trace *
viewer_recording_trace_new(const struct ky_viewer_recording *recording, int dir_fd,
			   const char *path)
{
	struct ky_viewer_trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	if (asprintf(&trace->path, "%s%s%s", recording->name, path[0] ? "/" : "", path) < 0)
		trace->path = NULL;
	trace->found_ns = recording->known_ns;
	trace->metadata = SIZE_MAX;
	ky_names_init(&trace->names);
	if (ky_viewer_trace_open(trace, dir_fd) && trace->path)
		return trace;
	viewer_recording_trace_free(trace);
	return NULL;
}

/* False: it goes on, and there is no descriptor to follow it. */
static bool may_keep(struct ky_viewer_trace *trace)
{
	char path[40];

	if (!ky_viewer_traces_are_many())
		return true;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", trace->fd);
	if (ky_live_is_written(path))
		return !ky_viewer_traces_are_too_many();
	ky_viewer_trace_close(trace);
	return trace->place != NULL;
}

static void viewer_recording_add_trace(void *data, int dir_fd, const char *path)
{
	struct ky_viewer_recording *recording = data;
	struct ky_viewer_trace *trace;
	struct ky_viewer_trace_id id;

	if (!ky_viewer_trace_identify(dir_fd, &id))
		return;
	ky_vec_foreach(&recording->traces, it)
		if (ky_viewer_trace_is(*it, &id))
			return;
	trace = viewer_recording_trace_new(recording, dir_fd, path);
	if (trace && may_keep(trace) && ky_vec_push(&recording->traces, trace) == 0)
		return;
	recording->lacks_traces = true;
	viewer_recording_trace_free(trace);
}

static int by_path(const void *a, const void *b)
{
	const struct ky_viewer_trace *const *p = a, *const *q = b;

	return strcmp((*p)->path, (*q)->path);
}

/* The new watch first, and the old one goes last: no moment is without a reader's lock. */
static int scan_recording(struct ky_viewer_recording *recording, int64_t now_ns,
			  struct kymo_error *err)
{
	const char *path = recording->path;
	struct ky_follow *follow;
	size_t known = recording->traces.len;
	int ret = ky_follow_open(&path, 1, recording->delay_ms, &follow, err), fd;

	if (ret < 0)
		return ret;
	ky_follow_close(recording->follow);
	recording->follow = follow;
	recording->scanned_ns = now_ns;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ky_error_errno(err, errno, "cannot read the recording's directory");
	ky_viewer_scan(fd, viewer_recording_add_trace, recording);
	close(fd);
	if (recording->traces.len > known)
		qsort(recording->traces.data + known, recording->traces.len - known,
		      sizeof(recording->traces.data[0]), by_path);
	return KYMO_OK;
}

/* No viewer asks for the streams of a trace that has none yet, and what a recorder tells of it is no news of the directory. */
static void look_at_beginners(struct ky_viewer_recording *recording, int64_t now_ns)
{
	ky_vec_foreach(&recording->traces, trace)
		if ((*trace)->metadata == SIZE_MAX || !(*trace)->state.is_told)
			ky_viewer_trace_look(recording, *trace, now_ns);
}

static bool is_settled(const struct ky_viewer_trace *trace, int64_t now_ns)
{
	return trace->is_complete && now_ns - trace->ended_ns >= GRACE_NS;
}

/* Complete traces give their descriptors back while there are many. */
static void save_descriptors(struct ky_viewer_recording *recording, int64_t now_ns)
{
	if (!ky_viewer_traces_are_many())
		return;
	ky_vec_foreach(&recording->traces, trace)
		if (is_settled(*trace, now_ns))
			ky_viewer_trace_close(*trace);
}

int ky_viewer_recording_look(struct ky_viewer_recording *recording, int64_t now_ns,
			     struct kymo_error *err)
{
	int64_t before_ns;
	int ret;

	if (!recording->follow)
		recording->known_ns = now_ns;
	else
		recording->has_news |= ky_follow_has_news(recording->follow);
	look_at_beginners(recording, now_ns);
	save_descriptors(recording, now_ns);
	if (recording->follow && !recording->has_news) {
		recording->known_ns = now_ns;
		return KYMO_OK;
	}
	if (recording->follow &&
	    now_ns - recording->scanned_ns < SCAN_SHARE * recording->scan_took_ns)
		return KYMO_OK;
	before_ns = ky_os_now_ns();
	ret = scan_recording(recording, now_ns, err);
	recording->scan_took_ns = ky_os_now_ns() - before_ns;
	recording->is_unreadable = ret < 0;
	if (ret < 0)
		return ret;
	recording->has_news = recording->lacks_traces;
	recording->lacks_traces = false;
	ky_viewer_recording_look_at_all(recording, now_ns);
	return KYMO_OK;
}

int ky_viewer_recording_open(const char *path, const char *name, uint32_t delay_ms, int64_t now_ns,
			     struct ky_viewer_recording **out, struct kymo_error *err)
{
	struct ky_viewer_recording *recording = calloc(1, sizeof(*recording));
	int ret = KYMO_OK;

	*out = NULL;
	if (!recording)
		return ky_error_nomem(err);
	recording->delay_ms = delay_ms;
	recording->path = strdup(path);
	recording->name = strdup(name);
	if (!recording->path || !recording->name)
		ret = ky_error_nomem(err);
	if (!ret)
		ret = ky_viewer_recording_look(recording, now_ns, err);
	if (ret < 0)
		ky_viewer_recording_close(recording);
	else
		*out = recording;
	return ret;
}

/* A new watch has the new delay. */
void ky_viewer_recording_want(struct ky_viewer_recording *recording, uint32_t delay_ms)
{
	recording->has_news |= delay_ms != recording->delay_ms;
	recording->delay_ms = delay_ms;
}

void ky_viewer_recording_close(struct ky_viewer_recording *recording)
{
	if (!recording)
		return;
	ky_vec_foreach(&recording->tracks, track)
		free(track->name);
	ky_vec_fini(&recording->tracks);
	ky_vec_foreach(&recording->traces, trace)
		viewer_recording_trace_free(*trace);
	ky_vec_fini(&recording->traces);
	ky_follow_close(recording->follow);
	free(recording->path);
	free(recording->name);
	free(recording);
}

/* ---- streams -------------------------------------------------------------------------- */

/* The index file, and the size of its entries. */
static int viewer_recording_open_index(const struct ky_viewer_track *track, uint32_t *entry_bytes)
{
	struct ky_index_head head;
	char path[NAME_MAX + 16];
	int fd;

	snprintf(path, sizeof(path), "index/%s.idx", track->name);
	fd = ky_file_open_regular(ky_viewer_trace_fd(track->trace), path, O_RDONLY | O_NOFOLLOW);
	if (fd < 0)
		return fd;
	if (pread(fd, &head, sizeof(head), 0) == sizeof(head) &&
	    be32toh(head.magic) == KY_INDEX_MAGIC) {
		*entry_bytes = be32toh(head.record_bytes);
		if (*entry_bytes >= KY_INDEX_ENTRY_1_0 && *entry_bytes <= INDEX_MAX)
			return fd;
	}
	close(fd);
	return -EINVAL;
}

static bool is_within(const struct ky_index_record *entry, uint64_t limit_bytes)
{
	uint64_t bits = be64toh(entry->packet_bits), at = be64toh(entry->offset_bytes), end;

	return bits && bits % 8 == 0 && be64toh(entry->content_bits) <= bits &&
	       bits / 8 <= UINT32_MAX && !__builtin_add_overflow(at, bits / 8, &end) &&
	       end <= limit_bytes;
}

static bool viewer_recording_read_entry(const struct ky_viewer_track *track, uint64_t number,
					struct ky_index_record *entry)
{
	uint32_t entry_bytes, wanted;
	uint64_t at;
	ssize_t got;
	int fd = viewer_recording_open_index(track, &entry_bytes);

	if (fd < 0)
		return false;
	memset(entry, 0, sizeof(*entry));
	wanted = entry_bytes < sizeof(*entry) ? KY_INDEX_ENTRY_1_0 : sizeof(*entry);
	at = KY_INDEX_HEADER_BYTES + number * entry_bytes;
	got = number < UINT32_MAX ? pread(fd, entry, wanted, (off_t)at) : 0;
	close(fd);
	return got == (ssize_t)wanted;
}

static bool push_track(struct ky_viewer_recording *recording, struct ky_viewer_track track)
{
	if (recording->tracks.len < TRACKS_MAX && ky_vec_push(&recording->tracks, track) == 0) {
		/* Without memory for the name, the stream comes twice. */
		if (track.name)
			(void)ky_names_set(&track.trace->names, track.name, track.trace);
		return true;
	}
	free(track.name);
	return false;
}

static int hold_metadata(struct ky_viewer_trace *trace)
{
	int fd = ky_file_open_regular(ky_viewer_trace_fd(trace), "metadata", O_RDONLY | O_NOFOLLOW);

	if (fd >= 0)
		ky_viewer_trace_keep_metadata(trace, fd);
	return trace->metadata_fd;
}

int ky_viewer_trace_metadata(struct ky_viewer_trace *trace)
{
	int fd = hold_metadata(trace);

	return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* Viewers have followed the recording: what comes late is no more in the order of times. */
static bool is_followed(const struct ky_viewer_recording *recording)
{
	ky_vec_foreach(&recording->traces, trace)
		if ((*trace)->is_written || (*trace)->ended_ns)
			return true;
	return false;
}

/* A stream without packets is no stream yet: its first packet says what it is. */
static void add_track(struct ky_viewer_recording *recording, struct ky_viewer_trace *trace,
		      const char *name, size_t len, uint64_t base_cycles)
{
	struct ky_viewer_track track = {.trace = trace, .base_cycles = base_cycles};
	struct ky_index_record first;
	struct stat st;

	if (!len || len > NAME_MAX - 4 || name[0] == '.' || trace->is_late ||
	    ky_names_getn(&trace->names, name, len) ||
	    fstatat(ky_viewer_trace_fd(trace), "metadata", &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	track.name = strndup(name, len);
	if (!track.name || (ky_live_is_late(track.name) && is_followed(recording)) ||
	    !viewer_recording_read_entry(&track, 0, &first) || !is_within(&first, UINT64_MAX)) {
		free(track.name);
		return;
	}
	track.class_id = be64toh(first.stream_class_id);
	if (trace->metadata == SIZE_MAX) {
		const struct ky_viewer_track metadata = {.trace = trace};

		if (!push_track(recording, metadata)) {
			free(track.name);
			return;
		}
		trace->metadata = recording->tracks.len - 1;
		(void)hold_metadata(trace);
	}
	(void)push_track(recording, track);
}

void ky_viewer_trace_list(struct ky_viewer_recording *recording, struct ky_viewer_trace *trace)
{
	DIR *dir = ky_dir_open(ky_viewer_trace_fd(trace), "index");
	struct dirent *entry;

	/* Of a complete trace in a recording that goes on. */
	for (int i = 0; dir && i < ENTRIES_MAX && (entry = readdir(dir)); i++)
		trace->is_late |= !trace->ended_ns && !trace->is_written &&
				  ky_live_is_late(entry->d_name) && is_followed(recording);
	if (dir)
		rewinddir(dir);
	for (int i = 0; dir && i < ENTRIES_MAX && (entry = readdir(dir)); i++) {
		size_t len = strlen(entry->d_name);

		if (len > 4 && strcmp(entry->d_name + len - 4, ".idx") == 0)
			add_track(recording, trace, entry->d_name, len - 4,
				  trace->state.until_cycles);
	}
	if (dir)
		closedir(dir);
}

/* ---- how far a trace is --------------------------------------------------------------- */

static void take_state(struct ky_viewer_recording *recording, struct ky_viewer_trace *trace,
		       const char *path, int64_t now_ns)
{
	struct ky_live_state state;
	uint64_t before = trace->state.until_cycles;

	if (ky_live_read(path, &state, NULL) < 0 || !state.is_told) {
		ky_live_state_fini(&state);
		return;
	}
	if (!trace->state.is_told)
		trace->is_tardy = now_ns - trace->found_ns >= FIRST_BOUND_NS;
	ky_live_state_fini(&trace->state);
	trace->state = state;
	if (state.until_cycles > before || !trace->n_untils) {
		if (trace->n_untils == KY_VIEWER_UNTILS)
			memmove(trace->untils, trace->untils + 1,
				sizeof(trace->untils[0]) * --trace->n_untils);
		trace->untils[trace->n_untils++] =
			(struct ky_viewer_until){state.until_cycles, now_ns};
	}
	ky_vec_foreach(&trace->state.streams, stream)
		if (stream->size_bytes)
			add_track(recording, trace, stream->name, strlen(stream->name), before);
}

static void viewer_recording_complete(struct ky_viewer_recording *recording,
				      struct ky_viewer_trace *trace, int64_t now_ns)
{
	/* A recorder that connects again continues the trace. */
	if (trace->is_complete || recording->is_away)
		return;
	trace->is_complete = true;
	trace->ended_ns = trace->is_written ? now_ns : 0;
	trace->is_written = false;
	ky_viewer_trace_list(recording, trace);
}

/* Found while its recorder is connected, and not locked yet. */
static bool is_young(const struct ky_viewer_recording *recording,
		     const struct ky_viewer_trace *trace, int64_t now_ns)
{
	return recording->is_connected && !trace->is_written && !trace->is_complete &&
	       now_ns - trace->found_ns < YOUNG_NS;
}

void ky_viewer_trace_look(struct ky_viewer_recording *recording, struct ky_viewer_trace *trace,
			  int64_t now_ns)
{
	char path[40];

	if (is_settled(trace, now_ns) || (trace->looked_ns && now_ns - trace->looked_ns < LOOK_NS))
		return;
	trace->looked_ns = now_ns;
	/* The path through the descriptor is the trace's also after a rotation has moved it. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ky_viewer_trace_fd(trace));
	if (!ky_live_is_written(path)) {
		if (!is_young(recording, trace, now_ns))
			viewer_recording_complete(recording, trace, now_ns);
		if (is_settled(trace, now_ns) && ky_viewer_traces_are_many())
			ky_viewer_trace_close(trace);
		return;
	}
	trace->is_written = true;
	trace->is_complete = false;
	take_state(recording, trace, path, now_ns);
}

void ky_viewer_recording_look_at_all(struct ky_viewer_recording *recording, int64_t now_ns)
{
	ky_vec_foreach(&recording->traces, trace)
		ky_viewer_trace_look(recording, *trace, now_ns);
}

/* The first bound may be from before. */
bool ky_viewer_recording_is_told(const struct ky_viewer_recording *recording)
{
	ky_vec_foreach(&recording->traces, it)
		if ((*it)->is_written && !(*it)->is_late && (*it)->n_untils < 2)
			return false;
	return true;
}

bool ky_viewer_recording_is_over(const struct ky_viewer_recording *recording, int64_t now_ns)
{
	if (recording->is_connected || recording->is_away)
		return false;
	/* The last program's trace may have come after the last look. */
	if (recording->has_news && !recording->is_unreadable)
		return false;
	ky_vec_foreach(&recording->traces, trace)
		if (!is_settled(*trace, now_ns))
			return false;
	return true;
}

int64_t ky_viewer_recording_settled_ns(const struct ky_viewer_recording *recording, int64_t now_ns)
{
	int64_t settled_ns = recording->has_news ? recording->known_ns : now_ns;

	ky_vec_foreach(&recording->traces, it) {
		const struct ky_viewer_trace *trace = *it;

		if (((trace->is_written && !trace->state.is_told) ||
		     is_young(recording, trace, now_ns)) &&
		    trace->found_ns < settled_ns && now_ns - trace->found_ns < FIRST_BOUND_NS)
			settled_ns = trace->found_ns;
	}
	return settled_ns;
}

uint64_t ky_viewer_trace_horizon(const struct ky_viewer_trace *trace, int64_t now_ns,
				 int64_t hold_ns)
{
	if (is_settled(trace, now_ns))
		return UINT64_MAX;
	for (unsigned int i = trace->n_untils; i-- > 0;)
		if (trace->untils[i].seen_ns <= now_ns - hold_ns)
			return trace->untils[i].cycles;
	return 0;
}

/* ---- packets -------------------------------------------------------------------------- */

uint64_t ky_viewer_track_bytes(const struct ky_viewer_track *track)
{
	struct stat st;
	uint64_t told;

	if (fstatat(ky_viewer_trace_fd(track->trace), track->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode))
		return 0;
	told = track->trace->is_complete ? UINT64_MAX
					 : ky_live_size(&track->trace->state, track->name);
	return told < (uint64_t)st.st_size ? told : (uint64_t)st.st_size;
}

bool ky_viewer_track_entry(const struct ky_viewer_track *track, uint64_t number,
			   struct ky_index_record *entry)
{
	return viewer_recording_read_entry(track, number, entry) &&
	       is_within(entry, ky_viewer_track_bytes(track));
}

uint64_t ky_viewer_track_entries(const struct ky_viewer_track *track)
{
	uint32_t entry_bytes;
	uint64_t n = 0;
	struct stat st;
	int fd = viewer_recording_open_index(track, &entry_bytes);

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0 && st.st_size > KY_INDEX_HEADER_BYTES)
		n = ((uint64_t)st.st_size - KY_INDEX_HEADER_BYTES) / entry_bytes;
	close(fd);
	return n;
}
