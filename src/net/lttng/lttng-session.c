/* SPDX-License-Identifier: MIT */
#include "net/lttng/lttng-session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "net/files/relay-files.h"
#include "os/file.h"

#define CHUNKS_MAX    16
#define PATH_BYTES    (2 * KY_LTTNG_PATH_BYTES)
#define ARCHIVES      "archives"
#define IDENTITY_NAME ".lttng-session"
#define TIME_BYTES    32

/* What the identity file of a session with snapshots has: later connections find its directory. */
struct identity {
	uint8_t daemon[16];
	uint64_t number, created_s;
};

/* ---- sessions ------------------------------------------------------------------------- */

static struct identity identity_of(const struct ky_lttng_session_spec *spec)
{
	struct identity identity = {.number = spec->number, .created_s = spec->created_s};

	memcpy(identity.daemon, spec->daemon, sizeof(identity.daemon));
	return identity;
}

static struct ky_lttng_session *lttng_session_find(const struct ky_lttng_sessions *sessions,
						   const struct ky_lttng_session_spec *spec)
{
	static const uint8_t none[16];

	if (memcmp(spec->daemon, none, sizeof(none)) == 0)
		return NULL;
	ky_vec_foreach(&sessions->list, it) {
		const struct ky_lttng_session *session = *it;

		if (memcmp(session->daemon, spec->daemon, sizeof(spec->daemon)) == 0 &&
		    session->number == spec->number && session->created_s == spec->created_s &&
		    strcmp(session->host->name, spec->host) == 0)
			return *it;
	}
	return NULL;
}

static bool has_identity(int dir_fd, const char *path, const struct identity *identity)
{
	int fd = ky_file_open(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	int file = fd >= 0 ? ky_file_open_here(fd, IDENTITY_NAME, O_RDONLY) : -1;
	struct identity found;
	bool is_same = file >= 0 && read(file, &found, sizeof(found)) == sizeof(found) &&
		       memcmp(&found, identity, sizeof(found)) == 0;

	if (file >= 0)
		close(file);
	if (fd >= 0)
		close(fd);
	return is_same;
}

/* The directory that an earlier snapshot of the session has made. */
static bool lttng_session_find_directory(const struct ky_lttng_sessions *sessions,
					 const struct ky_lttng_session_spec *spec,
					 char path[PATH_BYTES])
{
	const struct identity identity = identity_of(spec);
	struct stat st;

	for (int i = 1; spec->is_snapshot && i < KY_RELAY_NAMES_MAX &&
			ky_relay_numbered_path(spec->host, spec->name, i, path, PATH_BYTES) &&
			fstatat(sessions->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
	     i++)
		if (has_identity(sessions->dir_fd, path, &identity))
			return true;
	return false;
}

static int lttng_session_open_directory(struct ky_lttng_session *session,
					const struct ky_lttng_session_spec *spec,
					struct kymo_error *err)
{
	struct ky_lttng_sessions *sessions = session->sessions;
	const struct identity identity = identity_of(spec);
	char path[PATH_BYTES];
	bool exists = lttng_session_find_directory(sessions, spec, path);
	int ret = exists ? KYMO_OK
			 : ky_relay_make_unique(sessions->dir_fd, spec->host, spec->name, path,
						sizeof(path), err);

	if (ret < 0)
		return ret;
	session->path = strdup(path);
	if (!session->path)
		return ky_error_nomem(err);
	session->fd = ky_file_open(sessions->dir_fd, path,
				   O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (session->fd < 0)
		return ky_relay_io_error(path, errno, "open the session's directory", err);
	if (spec->is_snapshot && !exists)
		ret = ky_file_replace(session->fd, IDENTITY_NAME, &identity, sizeof(identity));
	return ret < 0 ? ky_relay_io_error(path, -ret, "write to the session's directory", err)
		       : KYMO_OK;
}

static void session_free(struct ky_lttng_session *session)
{
	if (session->fd >= 0)
		close(session->fd);
	ky_relay_host_leave(session->host);
	ky_vec_fini(&session->chunks);
	free(session->path);
	free(session);
}

static void lttng_session_note(const struct ky_lttng_session *session, bool is_here)
{
	const struct ky_lttng_sessions *sessions = session->sessions;

	if (sessions->note)
		sessions->note(sessions->note_data, session->path, is_here);
}

static int session_new(struct ky_lttng_sessions *sessions, const struct ky_lttng_session_spec *spec,
		       struct ky_relay_host *host, struct ky_lttng_session **out,
		       struct kymo_error *err)
{
	struct ky_lttng_session *session = calloc(1, sizeof(*session));
	int ret;

	if (!session)
		return ky_error_nomem(err);
	*session = (struct ky_lttng_session){.sessions = sessions,
					     .host = host,
					     .fd = -1,
					     .refs = 1,
					     .number = spec->number,
					     .created_s = spec->created_s,
					     .is_snapshot = spec->is_snapshot,
					     .is_live = spec->is_live};
	memcpy(session->daemon, spec->daemon, sizeof(session->daemon));
	ky_relay_host_keep(host);
	ret = lttng_session_open_directory(session, spec, err);
	if (!ret && ky_vec_push(&sessions->list, session) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0) {
		session_free(session);
		return ret;
	}
	lttng_session_note(session, true);
	*out = session;
	return KYMO_OK;
}

int ky_lttng_session_get(struct ky_lttng_sessions *sessions,
			 const struct ky_lttng_session_spec *spec, struct ky_relay_host *host,
			 struct ky_lttng_session **out, struct kymo_error *err)
{
	*out = lttng_session_find(sessions, spec);
	if (!*out)
		return session_new(sessions, spec, host, out, err);
	(*out)->refs++;
	return KYMO_OK;
}

void ky_lttng_session_put(struct ky_lttng_session *session)
{
	struct ky_lttng_sessions *sessions;
	size_t i = 0;

	if (!session || --session->refs)
		return;
	sessions = session->sessions;
	while (sessions->list.data[i] != session)
		i++;
	sessions->list.data[i] = sessions->list.data[--sessions->list.len];
	lttng_session_note(session, false);
	session_free(session);
}

void ky_lttng_sessions_fini(struct ky_lttng_sessions *sessions)
{
	ky_vec_fini(&sessions->list);
}

/* ---- places of chunks ----------------------------------------------------------------- */

static void lttng_session_put_time(char text[TIME_BYTES], uint64_t time_s)
{
	time_t seconds = (time_t)(time_s % (UINT64_C(1) << 37)); /* up to the year 6325 */
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, TIME_BYTES, "%Y%m%dT%H%M%S+0000", &tm);
}

/* archives/BEGIN-NUMBER, or, @is_complete, archives/BEGIN-END-NUMBER. */
static void put_place(const struct ky_lttng_chunk *chunk, bool is_complete, char *path, size_t size)
{
	char begin[TIME_BYTES], end[TIME_BYTES];

	lttng_session_put_time(begin, chunk->created_s);
	lttng_session_put_time(end, chunk->closed_s);
	if (is_complete)
		snprintf(path, size, ARCHIVES "/%s-%s-%" PRIu64, begin, end, chunk->number);
	else
		snprintf(path, size, ARCHIVES "/%s-%" PRIu64, begin, chunk->number);
}

/* Moves the chunk's directories from the session's directory to @path. */
static int move_tops(struct ky_lttng_chunk *chunk, const char *path, struct kymo_error *err)
{
	struct ky_lttng_session *session = chunk->session;
	char *copy = strdup(path);
	int ret = copy ? ky_relay_make_parents(session->fd, path, NULL, err) : ky_error_nomem(err);
	int fd = ret < 0 ? -1 : ky_relay_open_directory(session->fd, path, NULL);

	if (!ret && fd < 0)
		ret = ky_relay_io_error(path, errno, "create the chunk's directory", err);
	ky_vec_foreach(&chunk->tops, top)
		if (!ret && renameat(session->fd, *top, fd, *top) < 0 && errno != ENOENT)
			ret = ky_relay_io_error(path, errno, "move a trace to its chunk", err);
	if (ret < 0) {
		free(copy);
		if (fd >= 0)
			close(fd);
		return ret;
	}
	free(chunk->path);
	chunk->path = copy;
	close(chunk->fd);
	chunk->fd = fd;
	return KYMO_OK;
}

static int archive(struct ky_lttng_chunk *chunk, struct kymo_error *err)
{
	struct ky_lttng_session *session = chunk->session;
	char path[PATH_BYTES];

	put_place(chunk, true, path, sizeof(path));
	if (!chunk->path[0])
		return move_tops(chunk, path, err);
	if (renameat(session->fd, chunk->path, session->fd, path) < 0)
		return ky_relay_io_error(path, errno, "move a chunk to its place", err);
	return KYMO_OK;
}

/* Returns the bytes that are gone. */
static uint64_t remove_tree(const struct ky_lttng_chunk *chunk, const char *below)
{
	const struct ky_lttng_session *session = chunk->session;
	uint64_t bytes;
	char *path;

	if (asprintf(&path, "%s/%s/%s", session->sessions->dir, session->path, below) < 0)
		return 0;
	bytes = ky_relay_remove_tree(path);
	free(path);
	return bytes;
}

/* The host has room again for the chunk's bytes, as far as they were there: another chunk may have moved them away. */
static void delete_files(struct ky_lttng_chunk *chunk)
{
	uint64_t bytes = 0;

	if (chunk->path[0])
		bytes = remove_tree(chunk, chunk->path);
	else
		ky_vec_foreach(&chunk->tops, top)
			bytes += remove_tree(chunk, *top);
	ky_relay_host_subtract(chunk->session->host, bytes < chunk->bytes ? bytes : chunk->bytes);
}

/* ---- chunks --------------------------------------------------------------------------- */

struct ky_lttng_chunk *ky_lttng_chunk_find(const struct ky_lttng_session *session, uint64_t number)
{
	ky_vec_foreach(&session->chunks, chunk)
		if ((*chunk)->number == number)
			return *chunk;
	return NULL;
}

static void chunk_free(struct ky_lttng_chunk *chunk)
{
	if (chunk->fd >= 0)
		close(chunk->fd);
	ky_vec_foreach(&chunk->tops, top)
		free(*top);
	ky_vec_fini(&chunk->tops);
	free(chunk->name);
	free(chunk->path);
	free(chunk);
}

/* The traces in the session's directory make room. */
static int lttng_session_make_room(struct ky_lttng_session *session, struct kymo_error *err)
{
	ky_vec_foreach(&session->chunks, it) {
		struct ky_lttng_chunk *chunk = *it;
		char path[PATH_BYTES];
		int ret;

		if (chunk->path[0])
			continue;
		put_place(chunk, false, path, sizeof(path));
		ret = move_tops(chunk, path, err);
		if (ret < 0)
			return ret;
	}
	return KYMO_OK;
}

static int open_chunk(struct ky_lttng_chunk *chunk, struct kymo_error *err)
{
	int ret = chunk->name ? KYMO_OK : lttng_session_make_room(chunk->session, err);

	if (ret < 0)
		return ret;
	chunk->path = strdup(chunk->name ? chunk->name : "");
	if (!chunk->path)
		return ky_error_nomem(err);
	chunk->fd = chunk->name ? ky_relay_open_directory(chunk->session->fd, chunk->name, NULL)
				: dup(chunk->session->fd);
	return chunk->fd < 0
		       ? ky_relay_io_error(chunk->path, errno, "open the chunk's directory", err)
		       : KYMO_OK;
}

int ky_lttng_chunk_begin(struct ky_lttng_session *session, uint64_t number, uint64_t created_s,
			 const char *name, struct ky_lttng_chunk **out, struct kymo_error *err)
{
	struct ky_lttng_chunk *chunk = ky_lttng_chunk_find(session, number);
	int ret;

	*out = chunk ? ky_lttng_chunk_ref(chunk) : NULL;
	if (chunk)
		return KYMO_OK;
	if (session->chunks.len >= CHUNKS_MAX)
		return ky_error_set(err, KYMO_E_LIMIT, "the session has too many chunks");
	chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return ky_error_nomem(err);
	*chunk = (struct ky_lttng_chunk){.session = session,
					 .number = number,
					 .created_s = created_s,
					 .fd = -1,
					 .refs = 1,
					 .command = KY_LTTNG_CHUNK_KEEP};
	chunk->name = name ? strdup(name) : NULL;
	ret = name && !chunk->name ? ky_error_nomem(err) : open_chunk(chunk, err);
	if (!ret && ky_vec_push(&session->chunks, chunk) < 0)
		ret = ky_error_nomem(err);
	if (ret < 0) {
		chunk_free(chunk);
		return ret;
	}
	session->refs++;
	*out = chunk;
	return KYMO_OK;
}

int ky_lttng_chunk_add_path(struct ky_lttng_chunk *chunk, const char *path, struct kymo_error *err)
{
	size_t len = strcspn(path, "/");
	char *top;

	if (strncmp(path, ARCHIVES, len) == 0 && len == strlen(ARCHIVES))
		return ky_error_set(err, KYMO_E_FORMAT, "a trace cannot have the path '%s'", path);
	ky_vec_foreach(&chunk->tops, it)
		if (strncmp(*it, path, len) == 0 && !(*it)[len])
			return KYMO_OK;
	top = strndup(path, len);
	if (!top || ky_vec_push(&chunk->tops, top) < 0) {
		free(top);
		return ky_error_nomem(err);
	}
	return KYMO_OK;
}

int ky_lttng_chunk_close(struct ky_lttng_chunk *chunk, uint64_t closed_s,
			 enum ky_lttng_chunk_command command, char *path, size_t size,
			 struct kymo_error *err)
{
	const char *session = chunk->session->path;
	char place[PATH_BYTES];
	int len;

	if (command > KY_LTTNG_CHUNK_DELETE)
		return ky_error_set(err, KYMO_E_FORMAT, "a chunk cannot be closed with command %u",
				    command);
	if (!chunk->is_closed) {
		chunk->closed_s = closed_s;
		chunk->command = command;
	}
	chunk->is_closed = true;
	put_place(chunk, true, place, sizeof(place));
	if (chunk->name)
		len = snprintf(path, size, "%s/%s", session, chunk->name);
	else if (chunk->command == KY_LTTNG_CHUNK_KEEP && !chunk->path[0])
		len = snprintf(path, size, "%s", session);
	else
		len = snprintf(path, size, "%s/%s", session, place);
	return (size_t)len < size ? KYMO_OK
				  : ky_error_set(err, KYMO_E_LIMIT, "the chunk's path is too long");
}

static void lttng_session_add_bytes(uint64_t *sum, int64_t bytes)
{
	uint64_t fewer = bytes < 0 ? (uint64_t)-bytes : 0;

	*sum = bytes < 0 ? *sum - (fewer < *sum ? fewer : *sum) : *sum + (uint64_t)bytes;
}

void ky_lttng_chunk_count(struct ky_lttng_chunk *chunk, int64_t bytes)
{
	lttng_session_add_bytes(&chunk->bytes, bytes);
	lttng_session_add_bytes(&chunk->session->host->bytes, bytes);
}

struct ky_lttng_chunk *ky_lttng_chunk_ref(struct ky_lttng_chunk *chunk)
{
	chunk->refs++;
	return chunk;
}

/* A chunk that its daemon has not closed is complete all the same, when a later one has begun. */
static void lttng_session_settle(struct ky_lttng_chunk *chunk)
{
	struct kymo_error err;
	int ret = KYMO_OK;

	if (!chunk->is_closed)
		chunk->closed_s = (uint64_t)time(NULL);
	if (chunk->command == KY_LTTNG_CHUNK_DELETE)
		delete_files(chunk);
	else if (!chunk->name && (chunk->path[0] || chunk->command == KY_LTTNG_CHUNK_ARCHIVE))
		ret = archive(chunk, &err);
	if (ret < 0)
		ky_log_warning(chunk->session->sessions->log, "%s: %s: %s", chunk->session->path,
			       err.path, err.message);
}

void ky_lttng_chunk_put(struct ky_lttng_chunk *chunk)
{
	struct ky_lttng_session *session;
	size_t i = 0;

	if (!chunk || --chunk->refs)
		return;
	session = chunk->session;
	lttng_session_settle(chunk);
	while (session->chunks.data[i] != chunk)
		i++;
	session->chunks.data[i] = session->chunks.data[--session->chunks.len];
	chunk_free(chunk);
	ky_lttng_session_put(session);
}
