/* SPDX-License-Identifier: MIT */
#include "net/files/relay-symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "net/files/relay-files.h"
#include "os/file.h"

#define DIRECTORY "symbols"
#define NEW_FILE  ".new"

static int relay_symbols_error(int errnum, struct kymo_error *err)
{
	return ky_relay_io_error(DIRECTORY, errnum, "write symbols", err);
}

static int relay_symbols_check(const struct ky_net_file *file, struct kymo_error *err)
{
	if (!memchr(file->place, '\0', sizeof(file->place)) ||
	    (*file->place && !ky_net_is_path(file->place, strlen(file->place))))
		return ky_error_set(err, KYMO_E_FORMAT, "the place of symbols cannot be used");
	if (!memchr(file->name, '\0', sizeof(file->name)) || !ky_net_is_symbols_name(file->name))
		return ky_error_set(err, KYMO_E_FORMAT,
				    "a file of symbols has a name that cannot be used");
	return KYMO_OK;
}

/* The directory of the recording, or of an archive in it; -1: it is gone. */
static int relay_symbols_open_place(int session_fd, const char *place)
{
	char path[sizeof(((struct ky_net_file *)0)->place) + sizeof(DIRECTORY)];
	const char *name;

	memcpy(stpcpy(stpcpy(path, place), *place ? "/" : ""), DIRECTORY, sizeof(DIRECTORY));
	return ky_relay_open_above(session_fd, path, &name);
}

int ky_relay_symbols_begin(struct ky_relay_symbols *symbols, int session_fd,
			   const struct ky_net_file *file, uint64_t *added_bytes,
			   struct kymo_error *err)
{
	int ret = relay_symbols_check(file, err), place_fd, errnum;

	if (ret < 0)
		return ret;
	place_fd = relay_symbols_open_place(session_fd, file->place);
	if (place_fd < 0)
		return errno == ENOENT ? KYMO_OK : relay_symbols_error(errno, err);
	symbols->dir_fd = ky_relay_open_directory(place_fd, DIRECTORY, added_bytes);
	errnum = errno;
	close(place_fd);
	if (symbols->dir_fd < 0)
		return relay_symbols_error(errnum, err);
	symbols->fd = ky_file_open(symbols->dir_fd, NEW_FILE,
				   O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (symbols->fd < 0)
		return relay_symbols_error(errno, err);
	memcpy(symbols->name, file->name, sizeof(symbols->name));
	symbols->bytes = 0;
	return KYMO_OK;
}

int ky_relay_symbols_write(struct ky_relay_symbols *symbols, const uint8_t *data, size_t bytes,
			   uint64_t *added_bytes, struct kymo_error *err)
{
	int ret;

	if (symbols->fd < 0)
		return KYMO_OK;
	ret = ky_relay_write(symbols->fd, data, bytes, symbols->bytes);
	symbols->bytes += bytes;
	*added_bytes += bytes;
	return ret < 0 ? relay_symbols_error(-ret, err) : KYMO_OK;
}

int ky_relay_symbols_end(struct ky_relay_symbols *symbols, uint64_t *added_bytes,
			 uint64_t *removed_bytes, struct kymo_error *err)
{
	struct stat st;
	uint64_t old_bytes = 0;

	if (symbols->fd < 0)
		return KYMO_OK;
	if (fstatat(symbols->dir_fd, symbols->name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		old_bytes = ky_relay_counted(symbols->name, &st);
	if (renameat(symbols->dir_fd, NEW_FILE, symbols->dir_fd, symbols->name) < 0)
		return relay_symbols_error(errno, err);
	*removed_bytes += old_bytes;
	*added_bytes += KY_RELAY_ENTRY_BYTES;
	ky_relay_close_fd(&symbols->fd);
	ky_relay_close_fd(&symbols->dir_fd);
	return KYMO_OK;
}

void ky_relay_symbols_fini(struct ky_relay_symbols *symbols, uint64_t *removed_bytes)
{
	if (symbols->fd >= 0) {
		(void)unlinkat(symbols->dir_fd, NEW_FILE, 0);
		*removed_bytes += symbols->bytes;
	}
	ky_relay_close_fd(&symbols->fd);
	ky_relay_close_fd(&symbols->dir_fd);
}
