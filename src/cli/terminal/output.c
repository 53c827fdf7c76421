/* SPDX-License-Identifier: MIT */
#include "cli/terminal/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

static int output_error(const struct ky_cli_output *output, int errnum, const char *what,
			struct kymo_error *err)
{
	int code = ky_error_errno(err, errnum, "cannot %s", what);

	ky_error_path(err, output->path);
	if (errnum == ENOENT)
		ky_error_hint(err, "the parent directory must exist");
	return code;
}

/* "DIR/.NAME.PID.part" for "DIR/NAME"; the slashes at the end of a directory's name go. */
static int set_names(struct ky_cli_output *output, const char *path, struct kymo_error *err)
{
	size_t len = strlen(path);
	const char *slash;

	while (len > 1 && path[len - 1] == '/')
		len--;
	output->path = strndup(path, len);
	if (!output->path)
		return ky_error_nomem(err);
	slash = strrchr(output->path, '/');
	slash = slash ? slash + 1 : output->path;
	if (asprintf(&output->temp, "%.*s.%s.%ld.part", (int)(slash - output->path), output->path,
		     slash, (long)getpid()) >= 0)
		return KYMO_OK;
	output->temp = NULL;
	return ky_error_nomem(err);
}

static void terminal_output_init(struct ky_cli_output *output)
{
	*output = (struct ky_cli_output){.fd = -1};
}

/*
 * Where the file system can do that, the output has no name until it is complete: whatever ends the process
 * leaves nothing. A descriptor, or -1.
 */
static int open_unnamed(const struct ky_cli_output *output)
{
	const char *slash = strrchr(output->path, '/');
	char *dir = slash == output->path ? strdup("/")
		    : slash		  ? strndup(output->path, (size_t)(slash - output->path))
					  : strdup(".");
	int fd = dir ? open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666) : -1;

	free(dir);
	return fd;
}

/* Give an unnamed output the name under which it is renamed. 0 or -errno. */
static int name_output(const struct ky_cli_output *output)
{
	char link[64];

	if (!output->is_unnamed)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", output->fd);
	return linkat(AT_FDCWD, link, AT_FDCWD, output->temp, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

/* Open what is to be written as it is. */
static int terminal_output_open_direct(struct ky_cli_output *output, struct kymo_error *err)
{
	free(output->temp);
	output->temp = NULL;
	output->fd = open(output->path, O_WRONLY | O_CLOEXEC);
	return output->fd < 0 ? output_error(output, errno, "open the output", err) : KYMO_OK;
}

int ky_cli_output_file(struct ky_cli_output *output, const char *path, struct kymo_error *err)
{
	struct stat st;
	int ret;

	terminal_output_init(output);
	if (!path || strcmp(path, "-") == 0) {
		output->fd = STDOUT_FILENO;
		return KYMO_OK;
	}
	ret = set_names(output, path, err);
	if (ret < 0)
		return ret;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		if (S_ISDIR(st.st_mode)) {
			free(output->temp);
			output->temp = NULL;
			return output_error(output, EISDIR, "write the output", err);
		}
		return terminal_output_open_direct(output, err);
	}
	output->fd = open_unnamed(output);
	output->is_unnamed = output->fd >= 0;
	if (output->fd < 0)
		output->fd = open(output->temp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	return output->fd < 0 ? output_error(output, errno, "create the output", err) : KYMO_OK;
}

/* True also when there is no such directory. */
static bool terminal_output_is_empty(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool empty = true;

	if (!dir)
		return errno == ENOENT;
	while (empty && (entry = readdir(dir)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	closedir(dir);
	return empty;
}

int ky_cli_output_directory(struct ky_cli_output *output, const char *path, struct kymo_error *err)
{
	struct stat st;
	int ret;

	terminal_output_init(output);
	ret = set_names(output, path, err);
	if (ret < 0)
		return ret;
	if ((stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) || !terminal_output_is_empty(path)) {
		free(output->temp);
		output->temp = NULL;
		ky_error_set(err, KYMO_E_INVALID,
			     "the output exists and is not an empty directory");
		ky_error_path(err, path);
		ky_error_hint(err, "choose a new directory, or remove the old one");
		return KYMO_E_INVALID;
	}
	output->is_directory = true;
	if (mkdir(output->temp, 0700) == 0)
		return KYMO_OK;
	ret = output_error(output, errno, "create the output", err);
	free(output->temp);
	output->temp = NULL;
	return ret;
}

int ky_cli_output_commit(struct ky_cli_output *output, struct kymo_error *err)
{
	/* Some file systems tell about a full disk only here. */
	if (output->fd >= 0 && output->fd != STDOUT_FILENO) {
		int fd = output->fd, ret = name_output(output);

		if (ret < 0)
			return output_error(output, -ret, "rename the output", err);
		output->fd = -1;
		if (close(fd) < 0)
			return output_error(output, errno, "finish the output", err);
	}
	if (!output->temp)
		return KYMO_OK;
	if (rename(output->temp, output->path) < 0)
		return output_error(output, errno, "rename the output", err);
	free(output->temp);
	output->temp = NULL;
	return KYMO_OK;
}

void ky_cli_output_close(struct ky_cli_output *output)
{
	if (output->fd >= 0 && output->fd != STDOUT_FILENO)
		close(output->fd);
	if (output->temp && output->is_directory)
		ky_tree_remove(output->temp);
	else if (output->temp)
		(void)unlink(output->temp);
	free(output->temp);
	free(output->path);
	terminal_output_init(output);
}
