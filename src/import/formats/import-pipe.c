/* SPDX-License-Identifier: MIT */
/*
 * Standard input and pipes in the place of a file: `dmesg | kymo print -`, `kymo print <(zcat log.gz)`. Importers read any place of a file,
 * some of them several times, so all that comes is written to a file without a name first.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "import/common/import-internal.h"
#include "os/file.h"

#define PIECE_BYTES ((size_t)256 << 10)

static bool import_pipe_is_stdin(const char *path)
{
	return strcmp(path, "-") == 0;
}

bool ky_import_pipe_is(const char *path)
{
	struct stat st;

	return import_pipe_is_stdin(path) || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

static int import_pipe_failed(const char *path, int errnum, const char *what,
			      struct kymo_error *err)
{
	int ret = ky_error_errno(err, errnum, "cannot %s", what);

	ky_error_path(err, path);
	return ret;
}

/* *@n_bytes: what came. */
static int import_pipe_copy(const char *path, int from, int to, uint64_t *n_bytes,
			    struct kymo_error *err)
{
	uint8_t *piece = malloc(PIECE_BYTES);
	int ret = piece ? KYMO_OK : ky_error_nomem(err);

	while (!ret) {
		ssize_t got = read(from, piece, PIECE_BYTES);
		int written;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			ret = import_pipe_failed(path, errno, "read the pipe", err);
		if (got <= 0)
			break;
		*n_bytes += (uint64_t)got;
		written = ky_write_all(to, piece, (size_t)got);
		if (written < 0)
			ret = import_pipe_failed(path, -written, "keep what the pipe has", err);
	}
	free(piece);
	return ret;
}

static int import_pipe_open(const char *path, int *fd, struct kymo_error *err)
{
	*fd = import_pipe_is_stdin(path) ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
					 : open(path, O_RDONLY | O_CLOEXEC);
	if (*fd < 0)
		return import_pipe_failed(path, errno, "open the pipe", err);
	if (!isatty(*fd))
		return KYMO_OK;
	close(*fd);
	ky_error_set(err, KYMO_E_INVALID, "standard input is a terminal");
	ky_error_path(err, path);
	ky_error_hint(err, "try a pipe: dmesg | kymo print -");
	return KYMO_E_INVALID;
}

/*
 * Some commands let signals end them by a flag, which nobody looks at during the copy, and a pipe may have no end. Nothing is written
 * yet, so meanwhile the signals end the process as they do without a handler.
 */
struct import_pipe_signals {
	struct sigaction interrupt, terminate;
	sigset_t mask;
};

static void import_pipe_take_signals(struct import_pipe_signals *old)
{
	struct sigaction plain = {.sa_handler = SIG_DFL};
	sigset_t both;

	sigaction(SIGINT, NULL, &old->interrupt);
	sigaction(SIGTERM, NULL, &old->terminate);
	if (old->interrupt.sa_handler != SIG_IGN)
		sigaction(SIGINT, &plain, NULL);
	if (old->terminate.sa_handler != SIG_IGN)
		sigaction(SIGTERM, &plain, NULL);
	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	pthread_sigmask(SIG_UNBLOCK, &both, &old->mask);
}

static void import_pipe_give_signals(const struct import_pipe_signals *old)
{
	pthread_sigmask(SIG_SETMASK, &old->mask, NULL);
	sigaction(SIGINT, &old->interrupt, NULL);
	sigaction(SIGTERM, &old->terminate, NULL);
}

/* Opening waits, too: for a process that writes. */
static int import_pipe_bring(const char *path, int to, uint64_t *n_bytes, struct kymo_error *err)
{
	struct import_pipe_signals signals;
	int from, ret;

	import_pipe_take_signals(&signals);
	ret = import_pipe_open(path, &from, err);
	if (!ret) {
		ret = import_pipe_copy(path, from, to, n_bytes, err);
		close(from);
	}
	import_pipe_give_signals(&signals);
	return ret;
}

int ky_import_pipe(struct ky_import *imports, const char *path, const struct ky_log *log,
		   struct kymo_error *err)
{
	int to = ky_import_new_file(err), ret;
	uint64_t n_bytes = 0;

	if (to < 0)
		return to;
	ret = import_pipe_bring(path, to, &n_bytes, err);
	if (!ret)
		ret = ky_import_piped(imports, path, to, log, err);
	close(to);
	if (ret != 1)
		return ret;
	ky_error_set(err, KYMO_E_FORMAT,
		     n_bytes ? "what the pipe has is of no format that Kymo knows"
			     : "the pipe is empty");
	ky_error_path(err, path);
	return KYMO_E_FORMAT;
}
