/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-units.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "net/relay/relay-session.h"
#include "os/file.h"
#include "store/read/follow.h"

#define ARCHIVES "archives"
#define METADATA "metadata"
/* NAME/ust/uid/1000/64-bit is the deepest trace. */
#define DEPTH_MAX 6
/* How soon the recorders of live recordings are to send packets. */
#define DELAY_MS 1000
/* A recorder that was away for so long does not come again. */
#define AWAY_NS (UINT64_C(3600) * 1000000000)
/* What is new, and nobody writes yet, may be written soon. */
#define BEGIN_NS UINT64_C(3000000000)

/* ---- the list ------------------------------------------------------------------------- */

static void units_free(struct ky_fleet_unit *unit)
{
	if (unit->want_fd >= 0)
		close(unit->want_fd);
	free(unit->path);
}

static void units_forget_open(struct ky_fleet_units *units)
{
	size_t pos = 0;
	const char *path;
	void *value;

	while (ky_names_next(&units->open, &pos, &path, &value))
		free(value);
	ky_names_fini(&units->open);
	ky_names_init(&units->open);
}

int ky_fleet_units_open(struct ky_fleet_units *units, const char *dir, struct kymo_error *err)
{
	int ret;

	*units = (struct ky_fleet_units){
		.dir_fd = ky_file_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)};
	ky_names_init(&units->known);
	ky_names_init(&units->open);
	if (units->dir_fd >= 0)
		return KYMO_OK;
	ret = ky_error_errno(err, errno, "cannot open the relay's directory");
	ky_error_path(err, dir);
	return ret;
}

void ky_fleet_units_close(struct ky_fleet_units *units)
{
	ky_vec_foreach(&units->list, unit)
		units_free(unit);
	ky_vec_fini(&units->list);
	units_forget_open(units);
	if (units->dir_fd >= 0)
		close(units->dir_fd);
}

static int units_note(struct ky_fleet_units *units, size_t place)
{
	return ky_names_set(&units->known, units->list.data[place - 1].path,
			    (void *)(uintptr_t)place);
}

static int units_see(struct ky_fleet_units *units, const char *path, bool is_chunk, uint64_t now_ns)
{
	struct ky_fleet_unit unit = {.path = NULL,
				     .is_chunk = is_chunk,
				     .is_seen = true,
				     .want_fd = -1,
				     .begin_ns = now_ns,
				     .written_ns = now_ns};

	uintptr_t place = (uintptr_t)ky_names_get(&units->known, path);

	if (place) {
		units->list.data[place - 1].is_seen = true;
		return KYMO_OK;
	}
	unit.path = strdup(path);
	if (unit.path && ky_vec_push(&units->list, unit) == 0)
		return units_note(units, units->list.len);
	free(unit.path);
	return KYMO_E_MEMORY;
}

/* Calls @see for each directory in @path. */
static int units_each(struct ky_fleet_units *units, const char *path, uint64_t now_ns,
		      int (*see)(struct ky_fleet_units *units, const char *path, uint64_t now_ns))
{
	DIR *dir = ky_dir_open(units->dir_fd, path);
	struct dirent *entry;
	char below[PATH_MAX];
	struct stat st;
	int ret = KYMO_OK;

	while (dir && !ret && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) <
		    (int)sizeof(below))
			ret = see(units, strcmp(path, ".") == 0 ? entry->d_name : below, now_ns);
	}
	if (dir)
		closedir(dir);
	return ret;
}

static int units_see_chunk(struct ky_fleet_units *units, const char *path, uint64_t now_ns)
{
	return units_see(units, path, true, now_ns);
}

static int units_see_recording(struct ky_fleet_units *units, const char *path, uint64_t now_ns)
{
	char archives[PATH_MAX];
	int ret = units_see(units, path, false, now_ns);

	if (ret ||
	    snprintf(archives, sizeof(archives), "%s/" ARCHIVES, path) >= (int)sizeof(archives))
		return ret;
	return units_each(units, archives, now_ns, units_see_chunk);
}

static int units_see_host(struct ky_fleet_units *units, const char *path, uint64_t now_ns)
{
	return units_each(units, path, now_ns, units_see_recording);
}

static int units_take_open(void *data, const char *path)
{
	struct ky_fleet_units *units = data;
	char *copy;

	if (ky_names_get(&units->open, path))
		return KYMO_OK;
	copy = strdup(path);
	if (copy && ky_names_set(&units->open, copy, copy) == 0)
		return KYMO_OK;
	free(copy);
	return KYMO_E_MEMORY;
}

static bool units_is_open(const struct ky_fleet_units *units, const struct ky_fleet_unit *unit)
{
	return ky_names_get(&units->open, unit->path) != NULL;
}

/* All directories. */
static int units_see_all(struct ky_fleet_units *units, uint64_t now_ns)
{
	int ret = KYMO_OK;

	for (size_t i = 0; i < units->list.len; i++) {
		units->list.data[i].is_seen = false;
		ret = ret ? ret : units_note(units, i + 1);
	}
	ret = ret ? ret : units_each(units, ".", now_ns, units_see_host);
	ky_names_fini(&units->known);
	ky_names_init(&units->known);
	return ret;
}

static void units_keep_seen(struct ky_fleet_units *units)
{
	size_t n = 0;

	for (size_t i = 0; i < units->list.len; i++) {
		if (units->list.data[i].is_seen)
			units->list.data[n++] = units->list.data[i];
		else
			units_free(&units->list.data[i]);
	}
	units->list.len = n;
}

int ky_fleet_units_scan(struct ky_fleet_units *units, uint64_t now_ns)
{
	int ret = units_see_all(units, now_ns);

	/* After the directories, which the relay makes first. */
	units_forget_open(units);
	if (!ret)
		ret = ky_relay_session_list_open(units->dir_fd, units_take_open, units);
	if (!ret)
		units_keep_seen(units);
	ky_vec_foreach(&units->list, unit) {
		bool was_open = unit->is_open;

		unit->is_open = units_is_open(units, unit);
		/* What is complete waits no more. */
		if (was_open && !unit->is_open)
			unit->next_ns = 0;
		if (!was_open && unit->is_open)
			unit->is_whole = false;
	}
	return ret;
}

/* ---- one of them ---------------------------------------------------------------------- */

static bool units_has_trace(int dir_fd, const char *path, unsigned int depth)
{
	DIR *dir = ky_dir_open(dir_fd, path);
	struct dirent *entry;
	bool has = false;

	if (!dir)
		return false;
	has = faccessat(dirfd(dir), METADATA, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	while (!has && depth && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && entry->d_type == DT_DIR)
			has = units_has_trace(dirfd(dir), entry->d_name, depth - 1);
	closedir(dir);
	return has;
}

KY_VEC_TYPE(units_paths, char *);

/* The parts of a recording that are not chunks of it. */
static int units_find_parts(struct ky_fleet_units *units, const struct ky_fleet_unit *unit,
			    const char *dir, struct units_paths *paths)
{
	DIR *at = ky_dir_open(units->dir_fd, unit->path);
	struct dirent *entry;
	char *path;
	int ret = KYMO_OK;

	while (at && !ret && (entry = readdir(at))) {
		if (entry->d_name[0] == '.' || strcmp(entry->d_name, ARCHIVES) == 0 ||
		    !units_has_trace(dirfd(at), entry->d_name, DEPTH_MAX))
			continue;
		if (asprintf(&path, "%s/%s/%s", dir, unit->path, entry->d_name) < 0)
			ret = KYMO_E_MEMORY;
		else if (ky_vec_push(paths, path) < 0) {
			free(path);
			ret = KYMO_E_MEMORY;
		}
	}
	if (at)
		closedir(at);
	return ret;
}

static int units_find_paths(struct ky_fleet_units *units, const struct ky_fleet_unit *unit,
			    const char *dir, struct units_paths *paths)
{
	char *path;

	if (!unit->is_chunk)
		return units_find_parts(units, unit, dir, paths);
	if (!units_has_trace(units->dir_fd, unit->path, DEPTH_MAX))
		return KYMO_OK;
	if (asprintf(&path, "%s/%s", dir, unit->path) < 0)
		return KYMO_E_MEMORY;
	if (ky_vec_push(paths, path) == 0)
		return KYMO_OK;
	free(path);
	return KYMO_E_MEMORY;
}

/*
 * What the writer has told must be of all streams that there are: a relay that begins again hears of them one after the other. INT64_MIN: it is not.
 */
static int64_t units_told(const struct ky_trace *trace)
{
	struct stat st;

	ky_vec_foreach(&trace->streams, stream)
		if (!ky_live_size(&trace->live.state, (*stream)->name) &&
		    stat((*stream)->file.path, &st) == 0 && st.st_size > 0)
			return INT64_MIN;
	return ky_follow_told_ns(trace);
}

/* @is_open: the relay expects more. */
static int64_t units_until(struct ky_fleet_unit *unit, const struct ky_trace_set *set, bool is_open,
			   uint64_t now_ns)
{
	int64_t until_ns = INT64_MAX;

	if (unit->is_chunk)
		return INT64_MAX;
	ky_vec_foreach(&set->traces, trace)
		if ((*trace)->live.is_written && units_told(*trace) < until_ns)
			until_ns = units_told(*trace);
	if (until_ns < INT64_MAX)
		unit->written_ns = now_ns;
	else if (now_ns - unit->written_ns < (is_open ? AWAY_NS : BEGIN_NS))
		until_ns = INT64_MIN;
	return until_ns;
}

static void units_want(struct ky_fleet_units *units, struct ky_fleet_unit *unit)
{
	if (unit->is_chunk || unit->want_fd >= 0)
		return;
	unit->want_fd = ky_file_open(units->dir_fd, unit->path,
				     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (unit->want_fd >= 0)
		ky_live_want(unit->want_fd, DELAY_MS);
}

int ky_fleet_unit_open(struct ky_fleet_units *units, struct ky_fleet_unit *unit, const char *dir,
		       uint64_t now_ns, struct ky_trace_set *set, int64_t *until_ns,
		       struct kymo_error *err)
{
	const struct ky_trace_options options = {.recover = true, .follow = !unit->is_chunk};
	/* Asked before the files: a recording that is complete grows no more. */
	bool is_open = units_is_open(units, unit);
	struct units_paths paths = KY_VEC_INIT;
	int ret = units_find_paths(units, unit, dir, &paths);

	if (!ret && !paths.len)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "no trace");
	else if (!ret)
		ret = ky_trace_set_open_with(set, (const char *const *)paths.data, paths.len,
					     &options, NULL, err);
	ky_vec_foreach(&paths, path)
		free(*path);
	ky_vec_fini(&paths);
	if (ret < 0)
		return ret;
	*until_ns = units_until(unit, set, is_open, now_ns);
	if (*until_ns < INT64_MAX)
		units_want(units, unit);
	/* What is there is read to its end, which is not waited for. */
	ky_vec_foreach(&set->traces, trace)
		(*trace)->live.is_written = false;
	return KYMO_OK;
}
