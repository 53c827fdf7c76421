/* SPDX-License-Identifier: MIT */
/* Control groups whose events are recorded: their directories, and the threads in them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"
#include "record/common/cgroup.h"
#include "record/kernel/session-internal.h"

#define CGROUP_MAX_BYTES (16u << 20) /* of a list of threads */

/* The list of threads in @dir: of version 2, of version 1. */
static int collect_dir(struct ky_session *session, const char *dir, struct kymo_error *err)
{
	static const char *const names[] = {"cgroup.threads", "tasks"};
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[4400];
	int ret = -ENOENT;

	for (size_t i = 0; i < 2 && ret == -ENOENT; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		ret = ky_read_file(AT_FDCWD, path, CGROUP_MAX_BYTES, &text);
	}
	if (ret < 0) {
		ky_strbuf_fini(&text);
		ret = ky_error_errno(err, -ret, "cannot read the threads of a control group");
		ky_error_path(err, dir);
		return ret;
	}
	ret = KYMO_OK;
	for (const char *at = ky_strbuf_text(&text); at && *at && ret >= 0;) {
		int32_t tid = (int32_t)strtol(at, NULL, 10);

		/* 0: of another pid namespace. */
		if (tid > 0)
			ret = ky_session_collect_tid(session, tid, err);
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	ky_strbuf_fini(&text);
	return ret;
}

/* The group and those in it; of these, some may go away meanwhile. */
static int collect_tree(struct ky_session *session, const char *dir, int depth,
			struct kymo_error *err)
{
	int ret = collect_dir(session, dir, depth ? NULL : err);
	struct dirent *entry;
	char path[4096];
	DIR *list = ret >= 0 ? opendir(dir) : NULL;

	if (ret < 0 && depth && ret != KYMO_E_MEMORY)
		return KYMO_OK;
	while (list && ret >= 0 && depth < 32 && (entry = readdir(list))) {
		/* Names may begin with a dot: lxc-attach makes such. */
		if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0 ||
		    snprintf(path, sizeof(path), "%s/%s", dir, entry->d_name) >= (int)sizeof(path))
			continue;
		ret = collect_tree(session, path, depth + 1, err);
	}
	if (list)
		closedir(list);
	return ret < 0 ? ret : KYMO_OK;
}

int ky_session_collect_group(struct ky_session *session, const char *dir, bool must_be_there,
			     struct kymo_error *err)
{
	int ret = collect_tree(session, dir, 0, must_be_there ? err : NULL);

	if (ret == KYMO_E_MEMORY)
		return ky_error_nomem(err);
	return must_be_there ? ret : KYMO_OK;
}

static bool is_group(const char *dir)
{
	char path[4200];

	return snprintf(path, sizeof(path), "%s/cgroup.procs", dir) < (int)sizeof(path) &&
	       access(path, F_OK) == 0;
}

/* "a/b", or "/a/b" as in /proc/PID/cgroup, of version 2 or else in any hierarchy of version 1; or a directory. */
static bool find_group(const char *name, char path[4096])
{
	static const char *const roots[] = {KY_CGROUP_ROOT, KY_CGROUP_ROOT "/unified"};
	struct dirent *entry;
	bool found = false;
	DIR *list;

	if (name[0] == '/' && snprintf(path, 4096, "%s", name) < 4096 && is_group(path))
		return true;
	name += strspn(name, "/");
	for (int i = 0; i < 2; i++)
		if (snprintf(path, 4096, "%s/%s", roots[i], name) < 4096 && is_group(path))
			return true;
	list = opendir(roots[0]);
	while (list && !found && (entry = readdir(list)))
		found = entry->d_name[0] != '.' &&
			snprintf(path, 4096, "%s/%s/%s", roots[0], entry->d_name, name) < 4096 &&
			is_group(path);
	if (list)
		closedir(list);
	return found;
}

static int no_group(const char *name, struct kymo_error *err)
{
	int ret = ky_error_set(err, KYMO_E_NOT_FOUND, "there is no control group '%s'", name);

	ky_error_hint(err, "give a directory below " KY_CGROUP_ROOT ", or the group's name in "
			   "/proc/PID/cgroup; containers have an option of their own");
	return ret;
}

int ky_session_watch_group(struct ky_session *session, const char *name, struct kymo_error *err)
{
	char path[4096], *copy;
	int ret;

	if (!find_group(name, path))
		return no_group(name, err);
	ret = ky_session_collect_group(session, path, true, err);
	if (ret < 0)
		return ret;
	ky_vec_foreach(&session->watch.groups, other)
		if (strcmp(*other, path) == 0)
			return KYMO_OK;
	copy = strdup(path);
	if (copy && ky_vec_push(&session->watch.groups, copy) == 0)
		return KYMO_OK;
	free(copy);
	return ky_error_nomem(err);
}

/* Would find_group() have found @dir by @name, while it was there? */
static bool is_named(const char *dir, const char *name)
{
	const char *below;

	if (strcmp(dir, name) == 0)
		return true;
	if (strncmp(dir, KY_CGROUP_ROOT "/", strlen(KY_CGROUP_ROOT "/")) != 0)
		return false;
	dir += strlen(KY_CGROUP_ROOT "/");
	name += strspn(name, "/");
	below = strchr(dir, '/');
	return strcmp(dir, name) == 0 || (below && strcmp(below + 1, name) == 0);
}

int ky_session_unwatch_group(struct ky_session *session, const char *name, char path[4096],
			     struct kymo_error *err)
{
	struct ky_session_watch *watch = &session->watch;
	bool is_there = find_group(name, path), found = is_there;

	for (size_t k = watch->groups.len; k-- > 0;) {
		char *dir = watch->groups.data[k];

		/* A removed group cannot be found, but the recorder may watch it. */
		if (is_there ? strcmp(dir, path) != 0 : !is_named(dir, name))
			continue;
		snprintf(path, 4096, "%s", dir);
		found = true;
		free(dir);
		watch->groups.data[k] = watch->groups.data[--watch->groups.len];
	}
	return found ? KYMO_OK : no_group(name, err);
}
