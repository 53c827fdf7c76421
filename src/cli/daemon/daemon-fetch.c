/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "cli/daemon/daemon-policies-internal.h"
#include "os/file.h"

/* A trace of many programs has some files for each of them. */
#define FILES_MAX 200000
#define DEPTH_MAX 16

/* The path of an entry, below that of its directory. NULL: no memory. */
static char *daemon_fetch_join(const char *above, const char *name)
{
	char *path = NULL;

	if (asprintf(&path, "%s%s%s", above, *above ? "/" : "", name) < 0)
		return NULL;
	return path;
}

/*
 * Calls @found for each regular file below directory @name of @at_fd; takes over the path @below. Only the daemon's user can
 * write there. 0, or what @found returns.
 */
static int daemon_fetch_walk(int at_fd, const char *name, char *below, int depth,
			     int (*found)(void *data, const struct stat *st, char *path),
			     void *data)
{
	DIR *dir = below && depth < DEPTH_MAX ? ky_dir_open(at_fd, name) : NULL;
	struct dirent *entry;
	struct stat st;
	int ret = 0;

	while (dir && !ret && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISDIR(st.st_mode))
			ret = daemon_fetch_walk(dirfd(dir), entry->d_name,
						daemon_fetch_join(below, entry->d_name), depth + 1,
						found, data);
		else if (S_ISREG(st.st_mode))
			ret = found(data, &st, daemon_fetch_join(below, entry->d_name));
	}
	if (dir)
		closedir(dir);
	free(below);
	return ret;
}

static int daemon_fetch_add_bytes(void *data, const struct stat *st, char *path)
{
	uint64_t *bytes = data;

	*bytes += (uint64_t)st->st_blocks * 512;
	free(path);
	return 0;
}

uint64_t ky_policy_tree_bytes(const char *directory)
{
	uint64_t bytes = 0;

	(void)daemon_fetch_walk(AT_FDCWD, directory, strdup(""), 0, daemon_fetch_add_bytes, &bytes);
	return bytes;
}

static int daemon_fetch_add_file(void *data, const struct stat *st, char *path)
{
	struct ky_policy_client *client = data;

	(void)st;
	if (path && client->files.len < FILES_MAX && ky_vec_push(&client->files, path) == 0)
		return 0;
	free(path);
	return client->files.len == FILES_MAX ? KYMO_E_LIMIT : KYMO_E_MEMORY;
}

int ky_policy_fetch_begin(struct ky_policy_client *client, const char *directory,
			  struct kymo_error *err)
{
	int ret;

	client->root_fd = open(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (client->root_fd < 0)
		return ky_error_errno(err, errno, "the recording has no trace");
	ret = daemon_fetch_walk(client->root_fd, ".", strdup(""), 0, daemon_fetch_add_file, client);
	if (ret == KYMO_E_LIMIT)
		return ky_error_set(err, KYMO_E_LIMIT, "the recording has too many files");
	return ret < 0 ? ky_error_nomem(err) : KYMO_OK;
}

int ky_policy_fetch_next(struct ky_policy_client *client)
{
	struct ky_control_socket_message answer = {.len = 0};
	int file = -1, ret;

	if (client->next < client->files.len) {
		const char *path = client->files.data[client->next++];

		file = ky_file_open(client->root_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
		if (file < 0)
			return -errno;
		ky_control_socket_add(&answer, "file");
		ky_control_socket_add(&answer, path);
	} else {
		ky_control_socket_add(&answer, "end");
	}
	ret = ky_daemon_socket_send(client->fd, &answer, file);
	if (file >= 0)
		close(file);
	return ret;
}

void ky_policy_fetch_end(struct ky_policy_client *client)
{
	if (client->root_fd >= 0)
		close(client->root_fd);
	client->root_fd = -1;
	ky_vec_foreach(&client->files, path)
		free(*path);
	ky_vec_fini(&client->files);
	client->next = 0;
}
