/* SPDX-License-Identifier: MIT */
#include "view/session/drops.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

#define MAX_DROPS   8
#define MAX_FILES   20000u /* of all */
#define MAX_DEPTH   16
#define IDLE_S	    60	  /* a drop that nobody fills any more may go */
#define MAX_PATHS   16	  /* beside each other: more are the files of one trace */
#define BLOCK_BYTES 4096u /* an empty file costs something, too */

enum drop_state { DROP_FREE, DROP_FILLING, DROP_OPENING, DROP_OPEN };

struct drop {
	enum drop_state state;
	uint64_t number, bytes;
	unsigned int n_files;
	time_t used;
	struct ky_trace_set set;
	struct ky_view *view;
	struct ky_view_notes *notes;
};

struct ky_view_drops {
	struct ky_view_drop_source source;
	pthread_mutex_t lock; /* for what follows */
	char *top;	      /* the directory; NULL: not yet */
	int top_fd;	      /* -1: not yet */
	uint64_t last, bytes;
	unsigned int n_files;
	struct drop list[MAX_DROPS];
};

int ky_view_drops_open(const struct ky_view_drop_source *source, struct ky_view_drops **made,
		       struct kymo_error *err)
{
	struct ky_view_drops *drops = calloc(1, sizeof(*drops));

	if (!drops)
		return ky_error_nomem(err);
	drops->source = *source;
	drops->top_fd = -1;
	pthread_mutex_init(&drops->lock, NULL);
	*made = drops;
	return KYMO_OK;
}

/* "/var/tmp/kymo-view-AbCdEf/3" */
static char *drops_path(const struct ky_view_drops *drops, uint64_t number, const char *name)
{
	struct ky_strbuf path = KY_STRBUF_INIT;

	ky_strbuf_addf(&path, "%s/%llu%s%s", drops->top, (unsigned long long)number,
		       name ? "/" : "", name ? name : "");
	return ky_strbuf_take(&path);
}

static void drops_end(struct ky_view_drops *drops, struct drop *drop)
{
	char *path = drops_path(drops, drop->number, NULL);

	ky_view_notes_close(drop->notes);
	ky_view_free(drop->view);
	if (drop->state == DROP_OPEN)
		ky_trace_set_close(&drop->set);
	if (path)
		ky_tree_remove(path);
	free(path);
	drops->bytes -= drop->bytes;
	drops->n_files -= drop->n_files;
	*drop = (struct drop){.state = DROP_FREE};
}

void ky_view_drops_forget(struct ky_view_drops *drops)
{
	pthread_mutex_lock(&drops->lock);
	if (drops->top)
		ky_tree_remove(drops->top);
	pthread_mutex_unlock(&drops->lock);
}

void ky_view_drops_close(struct ky_view_drops *drops)
{
	if (!drops)
		return;
	for (size_t i = 0; i < MAX_DROPS; i++)
		if (drops->list[i].state != DROP_FREE)
			drops_end(drops, &drops->list[i]);
	if (drops->top_fd >= 0)
		close(drops->top_fd);
	if (drops->top)
		ky_tree_remove(drops->top);
	free(drops->top);
	pthread_mutex_destroy(&drops->lock);
	free(drops);
}

/* ---- filling ----------------------------------------------------------------------------- */

static int drops_make_top(struct ky_view_drops *drops, struct kymo_error *err)
{
	const char *directory = getenv("TMPDIR");
	struct ky_strbuf path = KY_STRBUF_INIT;
	char *made;

	if (drops->top_fd >= 0)
		return KYMO_OK;
	ky_strbuf_addf(&path, "%s/kymo-view-XXXXXX",
		       directory && directory[0] == '/' ? directory : "/var/tmp");
	made = ky_strbuf_take(&path);
	if (!made)
		return ky_error_nomem(err);
	if (!mkdtemp(made)) { /* mode 0700 */
		ky_error_errno(err, errno, "cannot make a directory for what is dropped: %s", made);
		free(made);
		return err->code;
	}
	drops->top = made;
	drops->top_fd = open(made, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return drops->top_fd < 0 ? ky_error_errno(err, errno, "cannot open %s", made) : KYMO_OK;
}

/* A place for one more: a free one, or that of a drop whose page has gone. */
static struct drop *drops_place(struct ky_view_drops *drops)
{
	for (size_t i = 0; i < MAX_DROPS; i++)
		if (drops->list[i].state == DROP_FREE)
			return &drops->list[i];
	for (size_t i = 0; i < MAX_DROPS; i++) {
		struct drop *drop = &drops->list[i];

		if (drop->state != DROP_FILLING || time(NULL) - drop->used < IDLE_S)
			continue;
		drops_end(drops, drop);
		return drop;
	}
	return NULL;
}

static int drops_begin(struct ky_view_drops *drops, uint64_t *number, struct kymo_error *err)
{
	struct drop *drop = drops_place(drops);
	char name[32];
	int ret;

	if (!drop)
		return ky_error_set(err, KYMO_E_LIMIT,
				    "%d dropped traces are open; start another viewer", MAX_DROPS);
	ret = drops_make_top(drops, err);
	if (ret < 0)
		return ret;
	snprintf(name, sizeof(name), "%llu", (unsigned long long)drops->last + 1);
	if (mkdirat(drops->top_fd, name, 0700) < 0)
		return ky_error_errno(err, errno, "cannot make a directory in %s", drops->top);
	*drop = (struct drop){.state = DROP_FILLING, .number = ++drops->last, .used = time(NULL)};
	*number = drop->number;
	return KYMO_OK;
}

int ky_view_drops_begin(struct ky_view_drops *drops, uint64_t *number, uint64_t *space_bytes,
			struct kymo_error *err)
{
	int ret;

	if (!drops->source.space_bytes) {
		ky_error_set(err, KYMO_E_UNSUPPORTED, "this viewer takes no copies of traces");
		ky_error_hint(err, "start kymo view with space for copies");
		return KYMO_E_UNSUPPORTED;
	}
	pthread_mutex_lock(&drops->lock);
	ret = drops_begin(drops, number, err);
	*space_bytes = drops->source.space_bytes - drops->bytes;
	pthread_mutex_unlock(&drops->lock);
	return ret;
}

static struct drop *drops_find(struct ky_view_drops *drops, uint64_t number, enum drop_state state)
{
	for (size_t i = 0; i < MAX_DROPS; i++)
		if (drops->list[i].state == state && drops->list[i].number == number)
			return &drops->list[i];
	return NULL;
}

/* Take @bytes more for a drop that is being filled. */
static int drops_charge(struct ky_view_drops *drops, uint64_t number, uint64_t bytes, bool is_file,
			struct kymo_error *err)
{
	struct drop *drop;
	int ret = KYMO_OK;

	pthread_mutex_lock(&drops->lock);
	drop = drops_find(drops, number, DROP_FILLING);
	if (!drop) {
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such drop");
	} else if (is_file && drops->n_files == MAX_FILES) {
		ret = ky_error_set(err, KYMO_E_LIMIT, "there are more than %u files", MAX_FILES);
	} else if (bytes > drops->source.space_bytes - drops->bytes) {
		ky_error_set(err, KYMO_E_LIMIT, "what is dropped needs more than %llu bytes",
			     (unsigned long long)drops->source.space_bytes);
		ky_error_hint(err, "start kymo view with more space for copies, or with the trace");
		ret = KYMO_E_LIMIT;
	} else {
		drop->bytes += bytes;
		drops->bytes += bytes;
		drop->n_files += is_file;
		drops->n_files += is_file;
		drop->used = time(NULL);
	}
	pthread_mutex_unlock(&drops->lock);
	return ret;
}

/* One part of a path: no way up, nothing hidden (as traces' finders see it), no text of a terminal. */
static bool drops_is_name(const char *name, size_t len)
{
	if (!len || len > NAME_MAX || name[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 127)
			return false;
	return true;
}

/* Open the directory @fd/@name, made if need be. @fd is closed. */
static int drops_enter(int fd, const char *name)
{
	int below = -1;

	if (mkdirat(fd, name, 0700) == 0 || errno == EEXIST)
		below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	close(fd);
	return below;
}

/* Make the file @path, which is checked and cut, below the directory @fd, which is closed. -1 with errno. */
static int drops_make(int fd, char *path)
{
	char *slash;
	int made, status;

	while (fd >= 0 && (slash = strchr(path, '/'))) {
		*slash = '\0';
		fd = drops_enter(fd, path);
		path = slash + 1;
	}
	if (fd < 0)
		return -1;
	made = openat(fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	status = errno;
	close(fd);
	errno = status;
	return made;
}

static bool drops_is_path(const char *path)
{
	unsigned int depth = 0;

	for (const char *at = path;; at += strcspn(at, "/") + 1) {
		size_t len = strcspn(at, "/");

		if (!drops_is_name(at, len) || ++depth > MAX_DEPTH)
			return false;
		if (!at[len])
			return true;
	}
}

int ky_view_drops_file(struct ky_view_drops *drops, uint64_t number, const char *path,
		       struct kymo_error *err)
{
	char name[32], *copy;
	int fd, ret;

	if (!drops_is_path(path))
		return ky_error_set(err, KYMO_E_INVALID, "no file of a trace has such a path");
	ret = drops_charge(drops, number, BLOCK_BYTES, true, err);
	if (ret < 0)
		return ret;
	copy = strdup(path);
	if (!copy)
		return ky_error_nomem(err);
	snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
	fd = openat(drops->top_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	fd = fd < 0 ? fd : drops_make(fd, copy);
	if (fd < 0 && (errno == EEXIST || errno == ENOTDIR || errno == EISDIR))
		fd = ky_error_set(err, KYMO_E_INVALID, "the file exists");
	else if (fd < 0)
		fd = ky_error_errno(err, errno, "cannot write to %s", drops->top);
	free(copy);
	return fd;
}

int ky_view_drops_write(struct ky_view_drops *drops, uint64_t number, int fd, const void *data,
			size_t len, struct kymo_error *err)
{
	int ret = drops_charge(drops, number, len, false, err);

	if (ret == KYMO_OK && ky_write_all(fd, data, len) < 0)
		ret = ky_error_errno(err, errno, "cannot write to %s", drops->top);
	return ret;
}

int ky_view_drops_remove(struct ky_view_drops *drops, uint64_t number, struct kymo_error *err)
{
	struct drop *drop;

	pthread_mutex_lock(&drops->lock);
	drop = drops_find(drops, number, DROP_FILLING);
	if (drop)
		drops_end(drops, drop);
	pthread_mutex_unlock(&drops->lock);
	return drop ? KYMO_OK : ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such drop");
}

/* ---- opening ----------------------------------------------------------------------------- */

KY_VEC_TYPE(drop_paths, char *);

static int drops_add_path(struct drop_paths *paths, char *path)
{
	if (path && ky_vec_push(paths, path) == 0)
		return KYMO_OK;
	free(path);
	return KYMO_E_MEMORY;
}

/* What lies beside each other: each is a trace, an archive, a file; the loose files of a trace are in the drop's own directory. */
static int drops_list(const struct ky_view_drops *drops, uint64_t number, struct drop_paths *paths)
{
	char *own = drops_path(drops, number, NULL);
	DIR *directory = own ? opendir(own) : NULL;
	bool is_trace = false;
	struct dirent *entry;
	int ret = directory ? KYMO_OK : KYMO_E_IO;

	while (ret == KYMO_OK && !is_trace && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.')
			continue;
		is_trace = strcmp(entry->d_name, "metadata") == 0 || paths->len == MAX_PATHS;
		ret = drops_add_path(paths, drops_path(drops, number, entry->d_name));
	}
	if (directory)
		closedir(directory);
	if (ret < 0 || !is_trace) {
		free(own);
		return ret;
	}
	ky_vec_foreach(paths, path)
		free(*path);
	paths->len = 0;
	return drops_add_path(paths, own);
}

/* With the state DROP_OPENING, nobody else touches the drop. */
static int drops_open_traces(struct ky_view_drops *drops, struct drop *drop, struct kymo_error *err)
{
	struct drop_paths paths = KY_VEC_INIT;
	const char *const *list;
	int ret = drops_list(drops, drop->number, &paths);

	list = (const char *const *)paths.data;
	if (ret < 0 || !paths.len)
		ret = ky_error_set(err, ret < 0 ? ret : KYMO_E_NOT_FOUND, "there is no file");
	if (ret == KYMO_OK)
		ret = drops->source.open(drops->source.data, list, paths.len, &drop->set, err);
	if (ret == KYMO_OK) {
		ret = ky_view_new(&drop->set, &drop->view, err);
		if (ret == KYMO_OK)
			ret = ky_view_notes_open(list, paths.len, &drop->notes, err);
		if (ret < 0) {
			ky_view_free(drop->view);
			drop->view = NULL;
			ky_trace_set_close(&drop->set);
		}
	}
	ky_vec_foreach(&paths, path)
		free(*path);
	ky_vec_fini(&paths);
	return ret;
}

int ky_view_drops_finish(struct ky_view_drops *drops, uint64_t number, struct kymo_error *err)
{
	struct drop *drop;
	int ret;

	pthread_mutex_lock(&drops->lock);
	drop = drops_find(drops, number, DROP_FILLING);
	if (drop)
		drop->state = DROP_OPENING;
	pthread_mutex_unlock(&drops->lock);
	if (!drop)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no such drop");
	ret = drops_open_traces(drops, drop, err);
	pthread_mutex_lock(&drops->lock);
	if (ret == KYMO_OK)
		drop->state = DROP_OPEN;
	else
		drops_end(drops, drop);
	pthread_mutex_unlock(&drops->lock);
	return ret;
}

struct ky_view *ky_view_drops_view(struct ky_view_drops *drops, uint64_t number,
				   struct ky_view_notes **notes)
{
	struct ky_view *view = NULL;
	struct drop *drop;

	pthread_mutex_lock(&drops->lock);
	drop = drops_find(drops, number, DROP_OPEN);
	if (drop) {
		view = drop->view;
		*notes = drop->notes;
	}
	pthread_mutex_unlock(&drops->lock);
	return view;
}
