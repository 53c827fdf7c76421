/* SPDX-License-Identifier: MIT */
#include "record/common/record-dir.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

/* Is there anything in directory @path? 0: it is not there; 1: it is empty; else negative. */
static int record_dir_look_at(const char *path, struct kymo_error *err)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int ret = 1;

	if (!dir) {
		if (errno == ENOENT)
			return 0;
		ret = ky_error_errno(err, errno, "cannot use the output directory");
		ky_error_path(err, path);
		return ret;
	}
	while (ret > 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			ret = ky_error_set(err, KYMO_E_INVALID, "the directory is not empty");
	closedir(dir);
	if (ret < 0) {
		ky_error_path(err, path);
		ky_error_hint(err, "name one that does not exist yet: -o DIR");
	}
	return ret;
}

int ky_record_dir_make(const char *path, bool *made, struct kymo_error *err)
{
	int ret = record_dir_look_at(path, err);

	*made = false;
	if (ret)
		return ret < 0 ? ret : KYMO_OK;
	if (mkdir(path, 0700) < 0) {
		ret = ky_error_errno(err, errno, "cannot create the output directory");
		ky_error_path(err, path);
		if (errno == ENOENT)
			ky_error_hint(err, "its parent directory must exist");
		return ret;
	}
	*made = true;
	return KYMO_OK;
}
