/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-symbols.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/addresses/trace-store.h"
#include "base/error.h"
#include "cli/reading/symbol-store.h"
#include "cli/terminal/command.h"
#include "os/file.h"
#include "store/directory/directory-store.h"
#include "store/packets/copy-store.h"

/* Of packets in the copy. Nearly all addresses come again and again. */
#define COPY_BYTES  (UINT64_C(256) << 20)
#define FILE_BYTES  (16u << 20)
#define PREFIX	    ".kymo-symbols-"
#define DIRECTORIES 3

/* ---- the copy's directory ------------------------------------------------------------- */

static const char *choose_parent(void)
{
	const char *choices[DIRECTORIES] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};

	for (int i = 0; i < DIRECTORIES; i++)
		if (choices[i] && choices[i][0] == '/' && access(choices[i], W_OK | X_OK) == 0)
			return choices[i];
	return "/tmp";
}

/* Of the directory @name below @parent_fd, if this user has made it and no recorder uses it; else -1. */
static int lock_left(int parent_fd, const char *name)
{
	int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 &&
	    (fstat(fd, &st) < 0 || st.st_uid != geteuid() || flock(fd, LOCK_EX | LOCK_NB) < 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* A recorder that was killed has left its copy. */
static void remove_left(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;
	char path[PATH_MAX];
	int fd;

	while (dir && (entry = readdir(dir))) {
		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		fd = lock_left(dirfd(dir), entry->d_name);
		if (fd < 0)
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name) <
		    (int)sizeof(path))
			ky_tree_remove(path);
		close(fd);
	}
	if (dir)
		closedir(dir);
}

static int record_symbols_make_directory(struct ky_record_symbols *symbols, struct kymo_error *err)
{
	const char *parent = choose_parent();
	int len;

	remove_left(parent);
	len = snprintf(symbols->dir, sizeof(symbols->dir), "%s/" PREFIX "XXXXXX", parent);
	if (len < (int)sizeof(symbols->dir) && mkdtemp(symbols->dir)) {
		symbols->lock_fd = open(symbols->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (symbols->lock_fd >= 0)
			(void)flock(symbols->lock_fd, LOCK_EX | LOCK_NB);
		return KYMO_OK;
	}
	ky_error_errno(err, errno, "cannot create a directory in %s", parent);
	symbols->dir[0] = '\0';
	return KYMO_E_IO;
}

void ky_record_symbols_begin(struct ky_record_symbols *symbols, struct ky_packet_store **store)
{
	struct ky_packet_store *copy = NULL;
	struct kymo_error err;
	int ret;

	if (!ky_store_can_attach(*store)) {
		ky_log_warning(&ky_cli_log,
			       "no symbols will be stored: the relay's version of kymo is too old");
		return;
	}
	ret = record_symbols_make_directory(symbols, &err);
	if (!ret)
		ret = ky_directory_store_open(symbols->dir, &copy, &err);
	if (!ret)
		ret = ky_copy_store_open(*store, copy, COPY_BYTES, &symbols->store, &err);
	if (ret < 0) {
		ky_log_warning(&ky_cli_log, "no symbols will be stored: %s", err.message);
		ky_store_free(copy);
		return;
	}
	*store = symbols->store;
}

void ky_record_symbols_fini(struct ky_record_symbols *symbols)
{
	if (symbols->dir[0])
		ky_tree_remove(symbols->dir);
	symbols->dir[0] = '\0';
	if (symbols->lock_fd >= 0)
		close(symbols->lock_fd);
	symbols->lock_fd = -1;
}

/* ---- the end -------------------------------------------------------------------------- */

static int record_symbols_send_file(struct ky_packet_store *store, int dir_fd, const char *name,
				    struct kymo_error *err)
{
	struct ky_strbuf data = KY_STRBUF_INIT;
	int ret = ky_read_regular(dir_fd, name, FILE_BYTES, &data);

	if (ret < 0) {
		ky_error_errno(err, -ret, "cannot read the symbols in %s", name);
	} else {
		const struct ky_store_file file = {"", name, data.data, data.len};

		ret = ky_store_attach(store, &file, err);
	}
	ky_strbuf_fini(&data);
	return ret;
}

/* A file that cannot be sent does not keep the others back. */
static void send_files(const struct ky_record_symbols *symbols)
{
	char path[PATH_MAX + sizeof("/" KY_TRACE_STORE)];
	struct dirent *entry;
	struct kymo_error err;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/" KY_TRACE_STORE, symbols->dir);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' &&
		    record_symbols_send_file(symbols->store, dirfd(dir), entry->d_name, &err) < 0)
			ky_log_warning(&ky_cli_log, "%s", err.message);
	if (dir)
		closedir(dir);
}

void ky_record_symbols_send(struct ky_record_symbols *symbols,
			    const struct ky_symbol_options *options)
{
	struct kymo_error err;

	if (!symbols->store)
		return;
	ky_error_clear(&err);
	if (ky_cli_symbols_store(symbols->dir, options, false, &err) < 0)
		ky_log_warning(&ky_cli_log, "no symbols were stored: %s", err.message);
	else if (!ky_copy_store_is_whole(symbols->store))
		ky_log_warning(&ky_cli_log,
			       "addresses of later events may have no symbols: the recorder takes "
			       "symbols from the first %u MiB of the trace",
			       (unsigned int)(COPY_BYTES >> 20));
	send_files(symbols);
}
