/* SPDX-License-Identifier: MIT */
#include "record/containers/containers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"
#include "base/strbuf.h"
#include "os/file.h"
#include "record/common/cgroup.h"

#define DEPTH_MAX	32
#define PROCS_MAX_BYTES (16u << 20)
#define SYSTEMS_MAX	4096
/* Of each user, and of all. */
#define USER_MAX  512
#define USERS_MAX 4096

/* ---- walking --------------------------------------------------------------------------- */

struct walk {
	struct ky_containers *found;
	struct ky_strbuf text;
	char path[KY_CONTAINER_PATH_BYTES];
	unsigned int n_hierarchies;
	size_t below; /* of .path: where that in the hierarchy begins */
	size_t n_systems, n_users;
	struct kymo_error *err;
};

/* Do what @each says with each group below walk->path. 0, or what @each returned. */
static int each_below(struct walk *walk, int depth,
		      int (*each)(struct walk *walk, int depth, void *data), void *data)
{
	size_t len = strlen(walk->path);
	DIR *dir = depth < DEPTH_MAX ? ky_dir_open(AT_FDCWD, walk->path) : NULL;
	struct dirent *entry;
	int ret = KYMO_OK;

	if (!dir && !depth) {
		ret = ky_error_errno(walk->err, errno, "cannot look for control groups");
		ky_error_path(walk->err, walk->path);
	}
	while (dir && ret >= 0 && (entry = readdir(dir))) {
		if (entry->d_type != DT_DIR || strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0 ||
		    len + 1 + strlen(entry->d_name) >= sizeof(walk->path))
			continue;
		snprintf(walk->path + len, sizeof(walk->path) - len, "/%s", entry->d_name);
		ret = each(walk, depth + 1, data);
	}
	walk->path[len] = '\0';
	if (dir)
		closedir(dir);
	return ret;
}

static int count_processes(struct walk *walk, int depth, void *data)
{
	size_t len = strlen(walk->path), *n = data;

	if (len + strlen("/cgroup.procs") < sizeof(walk->path)) {
		memcpy(walk->path + len, "/cgroup.procs", sizeof("/cgroup.procs"));
		if (ky_read_file(AT_FDCWD, walk->path, PROCS_MAX_BYTES, &walk->text) == 0)
			for (size_t i = 0; i < walk->text.len; i++)
				*n += walk->text.data[i] == '\n';
		walk->path[len] = '\0';
	}
	return each_below(walk, depth, count_processes, data);
}

/* What systemd-nspawn has in a group of its own, it has not in the container. */
static void containers_take_payload(struct ky_container *container)
{
	size_t len = strlen(container->cgroup);
	DIR *dir;

	if (strcmp(container->runtime, "systemd") != 0 ||
	    len + strlen("/payload") >= sizeof(container->cgroup))
		return;
	memcpy(container->cgroup + len, "/payload", sizeof("/payload"));
	dir = ky_dir_open(AT_FDCWD, container->cgroup);
	if (dir)
		closedir(dir);
	else
		container->cgroup[len] = '\0';
}

/*
 * The user who may have made this group, and named it freely: the user of its slice, or the owner of a group above it. That is
 * also the root of a container whose users have other numbers outside.
 */
static void take_owner(struct ky_container *container)
{
	const char *slice = strstr(container->cgroup, "/user-");
	char path[KY_CONTAINER_PATH_BYTES];
	unsigned int uid;
	struct stat st;

	if (slice) {
		container->uid = UINT32_MAX;
		if (sscanf(slice, "/user-%u.slice/", &uid) == 1)
			container->uid = uid;
	}
	memcpy(path, container->cgroup, sizeof(path));
	for (size_t i = container->below + 1; i < container->base_len && !container->uid; i++) {
		if (path[i] != '/')
			continue;
		path[i] = '\0';
		if (lstat(path, &st) == 0)
			container->uid = st.st_uid;
		path[i] = '/';
	}
	container->is_users = container->uid != 0;
}

static bool has_same_owner(const struct ky_container *a, const struct ky_container *b)
{
	return a->is_users == b->is_users && a->uid == b->uid;
}

/* One container by one path in two hierarchies. */
static bool containers_is_same(const struct ky_container *a, const struct ky_container *b)
{
	size_t len = a->base_len - a->below;

	return !(a->hierarchies & b->hierarchies) && b->base_len - b->below == len &&
	       has_same_owner(a, b) && memcmp(a->cgroup + a->below, b->cgroup + b->below, len) == 0;
}

static struct ky_container_user *containers_user_of(struct ky_containers *found, uint32_t uid)
{
	struct ky_container_user user = {.uid = uid};

	ky_vec_foreach(&found->users, known) {
		if (known->uid == uid)
			return known;
	}
	return ky_vec_push(&found->users, user) < 0 ? NULL
						    : &found->users.data[found->users.len - 1];
}

/* KYMO_E_LIMIT: there are too many. The list then leaves out groups of users only, so that other groups do not suffer. */
static int count_in(struct walk *walk, const struct ky_container *container, bool *is_wanted)
{
	struct ky_container_user *user;

	*is_wanted = true;
	if (!container->is_users && walk->n_systems++ >= SYSTEMS_MAX)
		return ky_error_set(walk->err, KYMO_E_LIMIT,
				    "there are more than %d containers; try a control group's path",
				    SYSTEMS_MAX);
	if (!container->is_users)
		return KYMO_OK;
	user = containers_user_of(walk->found, container->uid);
	if (!user)
		return ky_error_nomem(walk->err);
	*is_wanted = user->n_containers < USER_MAX && walk->n_users < USERS_MAX;
	user->has_more |= !*is_wanted;
	user->n_containers += *is_wanted;
	walk->n_users += *is_wanted;
	return KYMO_OK;
}

/* With version 1, a container has a group in each hierarchy: what counts is the first that its processes are in. */
static int containers_add(struct walk *walk, const struct ky_container *container)
{
	bool is_wanted;
	int ret;

	ky_vec_foreach(&walk->found->all, other) {
		uint64_t hierarchies = other->hierarchies | container->hierarchies;

		if (!containers_is_same(other, container))
			continue;
		if (!other->n_processes && container->n_processes)
			*other = *container;
		other->hierarchies = hierarchies;
		return KYMO_OK;
	}
	ret = count_in(walk, container, &is_wanted);
	if (ret < 0 || !is_wanted)
		return ret;
	return ky_vec_push(&walk->found->all, *container) < 0 ? ky_error_nomem(walk->err) : KYMO_OK;
}

static int containers_look(struct walk *walk, int depth, void *data)
{
	size_t len = strlen(walk->path);
	struct ky_container container = {
		.order = walk->n_hierarchies,
		.hierarchies = UINT64_C(1) << (walk->n_hierarchies < 63 ? walk->n_hierarchies : 63),
		.below = walk->below,
		.base_len = len,
	};
	int ret = KYMO_OK;

	if (ky_container_of_group(walk->path, &container)) {
		memcpy(container.cgroup, walk->path, len + 1);
		take_owner(&container);
		containers_take_payload(&container);
		memcpy(walk->path, container.cgroup, strlen(container.cgroup) + 1);
		ret = count_processes(walk, depth, &container.n_processes);
		walk->path[len] = '\0';
		if (!ret)
			ret = containers_add(walk, &container);
	}
	return ret < 0 ? ret : each_below(walk, depth, containers_look, data);
}

static int look_at_hierarchy(struct walk *walk, int depth, void *data)
{
	static const char unified[] = KY_CGROUP_ROOT "/unified";
	bool is_unified = strcmp(walk->path, unified) == 0;

	/* Once: before the others. */
	if (is_unified == (data == NULL))
		return KYMO_OK;
	walk->n_hierarchies++;
	walk->below = strlen(walk->path);
	return each_below(walk, depth, containers_look, NULL);
}

/* The directory of all groups of version 2; or one for each hierarchy, of which one may be of version 2. */
static int containers_look_everywhere(struct walk *walk)
{
	bool unified = true;
	FILE *file = fopen(KY_CGROUP_ROOT "/cgroup.controllers", "re");
	int ret;

	snprintf(walk->path, sizeof(walk->path), KY_CGROUP_ROOT);
	walk->below = strlen(walk->path);
	if (file) {
		fclose(file);
		return each_below(walk, 0, containers_look, NULL);
	}
	ret = each_below(walk, 0, look_at_hierarchy, &unified);
	return ret < 0 ? ret : each_below(walk, 0, look_at_hierarchy, NULL);
}

/* ---- one container, several groups ------------------------------------------------------- */

/* Those with one id of one owner beside each other. */
static int by_id(const void *left, const void *right)
{
	const struct ky_container *a = left, *b = right;
	int order = strcmp(a->id, b->id);

	order = order ? order : (a->uid > b->uid) - (a->uid < b->uid);
	order = order ? order : (a->order > b->order) - (a->order < b->order);
	return order ? order : strcmp(a->cgroup, b->cgroup);
}

/* How many, from the first of @containers on, have its id and owner. */
static size_t count_twins(const struct ky_container *containers, size_t n)
{
	size_t i = 1;

	while (i < n && containers[0].id[0] && strcmp(containers[i].id, containers[0].id) == 0 &&
	       has_same_owner(&containers[i], &containers[0]))
		i++;
	return i;
}

/* One container, if no two of the @n groups with its id are in one hierarchy: it goes to the first's place. */
static bool is_one(struct ky_container *twins, size_t n)
{
	uint64_t hierarchies = 0;
	size_t best = n;

	for (size_t i = 0; i < n; i++) {
		if (hierarchies & twins[i].hierarchies)
			return false;
		hierarchies |= twins[i].hierarchies;
		if (best == n && twins[i].n_processes)
			best = i;
	}
	if (best > 0 && best < n)
		twins[0] = twins[best];
	twins[0].hierarchies = hierarchies;
	return true;
}

/* With version 1, runtimes and init may use other paths in each hierarchy, which have the id in common. */
static void join_by_id(struct ky_containers *found)
{
	struct ky_container *all = found->all.data;
	size_t n_kept = 0, n;

	if (found->all.len)
		qsort(all, found->all.len, sizeof(*all), by_id);
	for (size_t i = 0; i < found->all.len; i += n) {
		size_t n_different;

		n = count_twins(&all[i], found->all.len - i);
		n_different = is_one(&all[i], n) ? 1 : n;
		memmove(&all[n_kept], &all[i], n_different * sizeof(*all));
		n_kept += n_different;
	}
	found->all.len = n_kept;
}

/* ---- finding ----------------------------------------------------------------------------- */

static int containers_by_name(const void *left, const void *right)
{
	const struct ky_container *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	order = order ? order : strcmp(a->id, b->id);
	return order ? order : strcmp(a->cgroup, b->cgroup);
}

static void warn_of_user(const struct ky_container_user *user, const struct ky_log *log)
{
	char who[32] = "(unknown)";

	if (user->uid != UINT32_MAX)
		snprintf(who, sizeof(who), "%u", user->uid);
	if (user->has_more)
		ky_log_warning(log,
			       "user %s has more than %zu containers; for others, try the path of "
			       "a control group",
			       who, user->n_containers);
}

int ky_containers_find(struct ky_containers *found, const struct ky_log *log,
		       struct kymo_error *err)
{
	struct walk walk = {.found = found, .err = err};
	int ret;

	*found = (struct ky_containers){KY_VEC_INIT, KY_VEC_INIT};
	ret = containers_look_everywhere(&walk);
	ky_strbuf_fini(&walk.text);
	if (ret < 0)
		return ret;
	join_by_id(found);
	if (found->all.len)
		qsort(found->all.data, found->all.len, sizeof(found->all.data[0]),
		      containers_by_name);
	ky_vec_foreach(&found->users, user)
		warn_of_user(user, log);
	return KYMO_OK;
}

void ky_containers_fini(struct ky_containers *found)
{
	ky_vec_fini(&found->all);
	ky_vec_fini(&found->users);
}
