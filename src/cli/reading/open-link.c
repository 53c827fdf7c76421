/* SPDX-License-Identifier: MIT */
#include "cli/reading/open-link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/terminal/command.h"
#include "os/file.h"

extern char **environ;

static bool has_display(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");

	return (x && x[0]) || (wayland && wayland[0]);
}

/* A file that only this user can read. Returns 0 or a negative errno. */
static int open_link_write_page(struct ky_open_link *opened, const char *link)
{
	const char *directory = getenv("XDG_RUNTIME_DIR");
	char *text = NULL;
	int fd, ret;

	if (!directory || directory[0] != '/')
		directory = "/tmp";
	if (asprintf(&opened->path, "%s/kymo-view-XXXXXX.html", directory) < 0) {
		opened->path = NULL;
		return -ENOMEM;
	}
	fd = mkostemps(opened->path, 5, O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		free(opened->path);
		opened->path = NULL;
		return ret;
	}
	ret = asprintf(&text,
		       "<!doctype html><meta http-equiv=\"refresh\" content=\"0; url=%s\">"
		       "<a href=\"%s\">Kymo</a>\n",
		       link, link);
	ret = ret < 0 ? -ENOMEM : ky_write_all(fd, text, (size_t)ret);
	free(text);
	close(fd);
	return ret < 0 ? ret : 0;
}

/* Quiet, in a session of its own, with the usual signals. Returns an errno. */
static int open_link_start(struct ky_open_link *opened)
{
	char *args[] = {(char[]){"xdg-open"}, opened->path, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t none;
	int ret;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	ret = posix_spawnp(&opened->pid, args[0], &files, &attributes, args, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attributes);
	if (ret)
		opened->pid = 0;
	return ret;
}

void ky_open_link(struct ky_open_link *opened, const char *link)
{
	int ret;

	if (!has_display())
		return;
	ret = -open_link_write_page(opened, link);
	if (!ret)
		ret = open_link_start(opened);
	if (ret)
		ky_log_warning(&ky_cli_log, "cannot open a browser: %s; open the link by hand",
			       strerror(ret));
}

void ky_open_link_end(struct ky_open_link *opened)
{
	/* An opener that still runs becomes init's child at the end of this process. */
	if (opened->pid)
		(void)waitpid(opened->pid, NULL, WNOHANG);
	if (opened->path)
		unlink(opened->path);
	free(opened->path);
	*opened = (struct ky_open_link)KY_OPEN_LINK_INIT;
}
