/* SPDX-License-Identifier: MIT */
/* Where notes are kept. */
#include "view/session/notes-place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"

#define SUFFIX ".kymo-notes.json"

/* Others cannot put files or links there. */
static bool notes_place_is_safe(const char *directory)
{
	struct stat st;

	return stat(directory, &st) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_uid == geteuid() || st.st_uid == 0) && !(st.st_mode & 022);
}

/* "/a/b" of "/a/b/trace", and "trace.kymo-notes.json". False: it has no such place. */
static bool notes_place_split(const char *path, struct ky_notes_place *place)
{
	char *slash = strrchr(path, '/');

	if (!slash || !slash[1] || strlen(slash + 1) + sizeof(SUFFIX) > NAME_MAX)
		return false;
	snprintf(place->name, sizeof(place->name), "%s" SUFFIX, slash + 1);
	place->directory = slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
	return place->directory != NULL;
}

static void place_beside(const char *path, struct ky_notes_place *place)
{
	char *real = realpath(path, NULL);

	if (real && notes_place_split(real, place) && !notes_place_is_safe(place->directory)) {
		free(place->directory);
		place->directory = NULL;
	}
	if (place->directory)
		place->can_write = access(place->directory, W_OK) == 0;
	free(real);
}

static char *data_directory(void)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	char *path = NULL;

	/* Relative paths are invalid, says the specification. */
	if (data && data[0] == '/' && asprintf(&path, "%s/kymo/notes", data) < 0)
		return NULL;
	if (!path && home && home[0] == '/' &&
	    asprintf(&path, "%s/.local/share/kymo/notes", home) < 0)
		return NULL;
	return path;
}

static uint64_t notes_place_digest(const char *const *paths, size_t n_paths)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n_paths; i++) {
		char *real = realpath(paths[i], NULL);
		const char *path = real ? real : paths[i];

		sum = ky_hash_u64(sum) ^ ky_hash_bytes(path, strlen(path));
		free(real);
	}
	return sum;
}

void ky_notes_places(const char *const *paths, size_t n_paths, struct ky_notes_place places[2])
{
	memset(places, 0, 2 * sizeof(*places));
	if (n_paths == 1 && strstr(paths[0], "://") == NULL)
		place_beside(paths[0], &places[0]);
	places[1].directory = data_directory();
	places[1].can_write = true;
	snprintf(places[1].name, sizeof(places[1].name), "%016llx.json",
		 (unsigned long long)notes_place_digest(paths, n_paths));
}

/* Like mkdir -p, for the last parts only: $XDG_DATA_HOME/kymo/notes. */
static int make_directories(const char *path)
{
	char part[PATH_MAX];

	for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
		size_t len = slash ? (size_t)(slash - path) : strlen(path);

		if (len >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, path, len);
		part[len] = '\0';
		if (mkdir(part, 0700) < 0 && errno != EEXIST)
			return -errno;
		if (!slash)
			return notes_place_is_safe(path) ? 0 : -EPERM;
	}
}

int ky_notes_directory(const struct ky_notes_place *place, bool make, struct kymo_error *err)
{
	int fd, status = make ? make_directories(place->directory) : 0;

	fd = status < 0 ? status : open(place->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		return fd;
	ky_error_errno(err, status < 0 ? -status : errno, "cannot keep notes");
	ky_error_path(err, place->directory);
	return err ? err->code : KYMO_E_IO;
}
