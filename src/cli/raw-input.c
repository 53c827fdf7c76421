/* SPDX-License-Identifier: MIT */
#include "cli/raw-input.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/vec.h"
#include "cli/command.h"
#include "os/file.h"
#include "record/raw.h"

/* The directory, once there is one, and the traces in it. */
static char made[4000];
static KY_VEC(char *) traces;

static void remove_made(void)
{
	ky_tree_remove(made);
	ky_vec_foreach(&traces, path)
		free(*path);
	ky_vec_fini(&traces);
}

static int make_directory(struct kymo_error *err)
{
	const char *tmp = getenv("TMPDIR");
	char path[sizeof(made)];
	int code;

	if (made[0])
		return KYMO_OK;
	snprintf(path, sizeof(path), "%s/kymo-raw-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(path)) {
		code = ky_error_errno(err, errno, "cannot make a directory for the trace");
		ky_error_path(err, path);
		ky_error_hint(err, "TMPDIR names another place");
		return code;
	}
	memcpy(made, path, sizeof(path));
	atexit(remove_made);
	return KYMO_OK;
}

/* While nftw() walks: what is linked, and where to. */
static const char *linked_from, *linked_to;

static int link_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
	char to[8200];

	(void)st;
	(void)ftw;
	if (kind == FTW_DNR || kind == FTW_NS) {
		errno = EACCES;
		return -1;
	}
	snprintf(to, sizeof(to), "%s%s", linked_to, path + strlen(linked_from));
	if (kind == FTW_D)
		return mkdir(to, 0700);
	return kind == FTW_F ? symlink(path, to) : 0;
}

/*
 * What programs have recorded beside it is traces already. Their directories are made, not linked: where a
 * trace is said to be is in one place with the kernel's, then.
 */
static int add_programs(const char *from, const char *to, struct kymo_error *err)
{
	char path[4300], *real;
	int ret = KYMO_OK;

	snprintf(path, sizeof(path), "%s/ust", from);
	real = realpath(path, NULL);
	snprintf(path, sizeof(path), "%s/ust", to);
	linked_from = real;
	linked_to = path;
	if (real ? nftw(real, link_one, 16, FTW_PHYS) != 0 : errno != ENOENT) {
		ret = ky_error_errno(err, errno, "cannot link the programs' traces");
		ky_error_path(err, path);
	}
	free(real);
	return ret;
}

static void add_part(struct ky_strbuf *text, uint64_t n, const char *what)
{
	if (n)
		ky_strbuf_addf(text, "%s%" PRIu64 " %s", text->len ? ", " : "", n, what);
}

static void tell_left_out(const char *path, const struct ky_raw_stats *stats)
{
	uint64_t left_out = stats->own + stats->hidden + stats->filtered;
	struct ky_strbuf parts = KY_STRBUF_INIT;

	add_part(&parts, stats->own, "system calls of Kymo's own");
	add_part(&parts, stats->hidden, "that only tell of threads or are call stacks");
	add_part(&parts, stats->filtered, "that the filters did not want");
	ky_log_info(&ky_cli_log, "%s: %" PRIu64 " raw records, %" PRIu64 " events; left out: %s",
		    path, stats->events + left_out, stats->events,
		    left_out ? ky_strbuf_text(&parts) : "none");
	ky_strbuf_fini(&parts);
}

int ky_cli_convert_raw(char **paths, int n_paths, bool tell, struct kymo_error *err)
{
	struct ky_raw_stats stats;
	char path[4200], *name;
	int ret;

	for (int i = 0; i < n_paths; i++) {
		if (!ky_raw_is(paths[i]))
			continue;
		ret = make_directory(err);
		if (ret < 0)
			return ret;
		snprintf(path, sizeof(path), "%s/%d", made, i);
		ret = ky_raw_convert(paths[i], path, &ky_cli_log, &stats, err);
		if (!ret && tell)
			tell_left_out(paths[i], &stats);
		if (!ret)
			ret = add_programs(paths[i], path, err);
		if (ret < 0)
			return ret;
		name = strdup(path);
		if (!name || ky_vec_push(&traces, name) < 0) {
			free(name);
			return ky_error_nomem(err);
		}
		paths[i] = name;
	}
	return KYMO_OK;
}
