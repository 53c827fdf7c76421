/* SPDX-License-Identifier: MIT */
#include "cli/containers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "os/file.h"
#include "record/session.h"

#define DEPTH_MAX	32
#define MIN_PREFIX	4
#define PROCS_MAX_BYTES (16u << 20)
#define SYSTEMS_MAX	4096
#define USERS_MAX	512

/* ---- what a control group's name says -------------------------------------------------- */

static bool ends_with(const char *text, size_t len, const char *end)
{
	return len >= strlen(end) && strncmp(text + len - strlen(end), end, strlen(end)) == 0;
}

/* systemd's units have "\x2d" for what may not stand in their names. */
static void take_unescaped(const char *text, size_t len, char name[KY_CONTAINER_NAME_BYTES])
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < KY_CONTAINER_NAME_BYTES; i++) {
		int high = KY_NO_DIGIT, low = KY_NO_DIGIT;

		if (i + 3 < len && text[i] == '\\' && text[i + 1] == 'x') {
			high = ky_digit_value(text[i + 2]);
			low = ky_digit_value(text[i + 3]);
		}
		if (high == KY_NO_DIGIT || low == KY_NO_DIGIT || !(high | low)) {
			name[n++] = text[i];
			continue;
		}
		name[n++] = (char)(high << 4 | low);
		i += 3;
	}
	name[n] = '\0';
}

/* "machine-my\x2dbox.scope"; "systemd-nspawn@my-box.service". */
static bool is_machine(const char *base, struct ky_container *to)
{
	static const struct {
		const char *begin, *end;
	} units[] = {{"machine-", ".scope"}, {"systemd-nspawn@", ".service"}};
	size_t len = strlen(base);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t begin = strlen(units[i].begin), end = strlen(units[i].end);

		if (len <= begin + end || strncmp(base, units[i].begin, begin) != 0 ||
		    !ends_with(base, len, units[i].end))
			continue;
		/* A virtual machine of libvirt's is no container. */
		if (strncmp(base + begin, "qemu\\x2d", strlen("qemu\\x2d")) == 0)
			return false;
		take_unescaped(base + begin, len - begin - end, to->name);
		snprintf(to->runtime, sizeof(to->runtime), "systemd");
		return true;
	}
	return false;
}

/* "lxc.payload.NAME"; before lxc 4, "lxc.payload/NAME" and "lxc/NAME". Not "lxc.monitor.NAME", who starts and watches it. */
static bool is_lxc(const char *parent, const char *base, struct ky_container *to)
{
	static const char begin[] = "lxc.payload.";
	const char *name = base;

	if (strncmp(base, begin, strlen(begin)) == 0)
		name = base + strlen(begin);
	else if (strcmp(parent, "lxc") != 0 && strcmp(parent, "lxc.payload") != 0)
		return false;
	snprintf(to->name, sizeof(to->name), "%s", name);
	snprintf(to->runtime, sizeof(to->runtime), "lxc");
	return *name != '\0';
}

/* What stands before the id, by itself or with its slice ("a.slice:cri-containerd:ID"). */
static void take_runtime(const char *path, const char *parent, const char *before, size_t len,
			 struct ky_container *to)
{
	static const char *const names[][2] = {
		{"libpod", "podman"},
		{"libpod-payload", "podman"},
		{"crio", "cri-o"},
		{"cri-containerd", "containerd"},
	};
	int n = (int)len;

	for (size_t i = len; i-- > 0;) {
		if (before[i] != ':')
			continue;
		before += i + 1;
		n = (int)(len - i - 1);
		break;
	}
	if (n)
		snprintf(to->runtime, sizeof(to->runtime), "%.*s", n, before);
	else if (strcmp(parent, "docker") == 0)
		snprintf(to->runtime, sizeof(to->runtime), "docker");
	else
		snprintf(to->runtime, sizeof(to->runtime),
			 strstr(path, "kubepods") ? "kubernetes" : "container");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(to->runtime, names[i][0]) == 0)
			snprintf(to->runtime, sizeof(to->runtime), "%s", names[i][1]);
}

/* "ID", "docker-ID.scope", "libpod-ID", "a.slice:cri-containerd:ID". */
static bool is_oci(const char *path, const char *parent, const char *base, struct ky_container *to)
{
	size_t len = strlen(base), digits = KY_CONTAINER_ID_DIGITS;

	if (ends_with(base, len, ".scope"))
		len -= strlen(".scope");
	if (len < digits)
		return false;
	len -= digits;
	if (strspn(base + len, "0123456789abcdef") < digits)
		return false;
	if (len && base[len - 1] != '-' && base[len - 1] != ':')
		return false;
	/* Who starts it and watches it; and, of podman, a pod: what its containers' groups are in. */
	if (ends_with(base, len, "conmon-") || (!len && strcmp(parent, "libpod_parent") == 0))
		return false;
	memcpy(to->id, base + len, digits);
	to->id[digits] = '\0';
	take_runtime(path, parent, base, len ? len - 1 : 0, to);
	return true;
}

static bool is_container(char *path, struct ky_container *to)
{
	char *slash = strrchr(path, '/'), *up;
	bool is_one;

	*slash = '\0';
	up = strrchr(path, '/');
	is_one = is_lxc(up ? up + 1 : "", slash + 1, to) || is_machine(slash + 1, to) ||
		 is_oci(path, up ? up + 1 : "", slash + 1, to);
	*slash = '/';
	return is_one;
}

/* ---- walking --------------------------------------------------------------------------- */

struct walk {
	struct ky_containers *found;
	struct ky_strbuf text;
	char path[KY_CONTAINER_PATH_BYTES];
	unsigned int hierarchy;
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
static void take_payload(struct ky_container *container)
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

/* Whose slice it is in: what a user makes there is only taken for that user's. */
static void take_owner(struct ky_container *container)
{
	const char *slice = strstr(container->cgroup, "/user-");
	unsigned int uid;

	if (!slice)
		return;
	container->uid = UINT32_MAX;
	if (sscanf(slice, "/user-%u.slice/", &uid) == 1)
		container->uid = uid;
	container->is_users = container->uid != 0;
}

static bool is_same(const struct ky_container *a, const struct ky_container *b)
{
	size_t len = a->base_len - a->below;

	return a->hierarchy != b->hierarchy && b->base_len - b->below == len &&
	       memcmp(a->cgroup + a->below, b->cgroup + b->below, len) == 0;
}

/*
 * With version 1, a container has a group in each hierarchy, by one path: what counts is the first that its processes are
 * in. All others are different ones, whatever their ids and names are: these can be forged.
 */
static int add(struct walk *walk, struct ky_container *container)
{
	ky_vec_foreach(walk->found, other) {
		if (!is_same(other, container))
			continue;
		if (!other->n_processes && container->n_processes)
			*other = *container;
		return KYMO_OK;
	}
	if (container->is_users && walk->n_users++ >= USERS_MAX)
		return KYMO_OK;
	if (!container->is_users && walk->n_systems++ >= SYSTEMS_MAX)
		return ky_error_set(walk->err, KYMO_E_LIMIT,
				    "there are more than %d containers; --cgroup takes any group",
				    SYSTEMS_MAX);
	return ky_vec_push(walk->found, *container) < 0 ? ky_error_nomem(walk->err) : KYMO_OK;
}

static int look(struct walk *walk, int depth, void *data)
{
	size_t len = strlen(walk->path);
	struct ky_container container = {
		.hierarchy = walk->hierarchy, .below = walk->below, .base_len = len};
	int ret = KYMO_OK;

	if (is_container(walk->path, &container)) {
		memcpy(container.cgroup, walk->path, len + 1);
		take_owner(&container);
		take_payload(&container);
		memcpy(walk->path, container.cgroup, strlen(container.cgroup) + 1);
		ret = count_processes(walk, depth, &container.n_processes);
		walk->path[len] = '\0';
		if (!ret)
			ret = add(walk, &container);
	}
	return ret < 0 ? ret : each_below(walk, depth, look, data);
}

static int look_at_hierarchy(struct walk *walk, int depth, void *data)
{
	static const char unified[] = KY_CGROUP_ROOT "/unified";
	bool is_unified = strcmp(walk->path, unified) == 0;

	/* Once: before the others. */
	if (is_unified == (data == NULL))
		return KYMO_OK;
	walk->hierarchy++;
	walk->below = strlen(walk->path);
	return each_below(walk, depth, look, NULL);
}

static int by_name(const void *left, const void *right)
{
	const struct ky_container *a = left, *b = right;
	int order = strcmp(a->name, b->name);

	order = order ? order : strcmp(a->id, b->id);
	return order ? order : strcmp(a->cgroup, b->cgroup);
}

/* The directory of all groups of version 2; or one for each hierarchy, of which one may be of version 2. */
static int look_everywhere(struct walk *walk)
{
	bool unified = true;
	FILE *file = fopen(KY_CGROUP_ROOT "/cgroup.controllers", "re");
	int ret;

	snprintf(walk->path, sizeof(walk->path), KY_CGROUP_ROOT);
	walk->below = strlen(walk->path);
	if (file) {
		fclose(file);
		return each_below(walk, 0, look, NULL);
	}
	ret = each_below(walk, 0, look_at_hierarchy, &unified);
	return ret < 0 ? ret : each_below(walk, 0, look_at_hierarchy, NULL);
}

int ky_containers_find(struct ky_containers *found, struct kymo_error *err)
{
	struct walk walk = {.found = found, .err = err};
	int ret = look_everywhere(&walk);

	ky_strbuf_fini(&walk.text);
	if (ret < 0)
		return ret;
	ky_vec_foreach(found, container)
		if (container->id[0])
			ky_container_name(container);
	if (found->len)
		qsort(found->data, found->len, sizeof(found->data[0]), by_name);
	return KYMO_OK;
}

/* ---- choosing one ---------------------------------------------------------------------- */

/* All of it, or, of kubernetes', POD/CONTAINER or CONTAINER. */
static bool has_name(const struct ky_container *container, const char *name)
{
	size_t len = strlen(container->name), end = strlen(name);

	return len >= end && end && strcmp(container->name + len - end, name) == 0 &&
	       (len == end || container->name[len - end - 1] == '/');
}

static bool has_id(const struct ky_container *container, const char *id)
{
	size_t len = strlen(id);

	return len >= MIN_PREFIX && strncmp(container->id, id, len) == 0;
}

/* What @name may mean: the system's containers come before those of users, who may name theirs as they like. */
enum meant {
	SYSTEMS_NAME,
	SYSTEMS_ID,
	USERS_NAME,
	USERS_ID,
	NONE,
};

static bool is_meant(const struct ky_container *container, const char *name, enum meant how)
{
	if (how == NONE || container->is_users != (how == USERS_NAME || how == USERS_ID))
		return false;
	return how == SYSTEMS_NAME || how == USERS_NAME ? has_name(container, name)
							: has_id(container, name);
}

/* How many are meant, in the first way that any are; *chosen is one of them. */
static size_t choose(const struct ky_containers *found, const char *name,
		     const struct ky_container **chosen, enum meant *how)
{
	size_t n = 0;

	for (*how = SYSTEMS_NAME; *how < NONE; ++*how) {
		ky_vec_foreach(found, container) {
			if (!is_meant(container, name, *how))
				continue;
			*chosen = container;
			n++;
		}
		if (n)
			break;
	}
	return n;
}

/* Is its id another's, too? The system's and users' are never meant together. */
static bool has_twin(const struct ky_containers *found, const struct ky_container *container)
{
	ky_vec_foreach(found, other)
		if (other != container && other->is_users == container->is_users &&
		    strcmp(other->id, container->id) == 0)
			return true;
	return false;
}

/* "web (docker, 0123456789ab), box (lxc)": all, or those that are meant; as many as there is room for. */
static void add_names(struct ky_strbuf *text, const struct ky_containers *found, const char *wanted,
		      enum meant how)
{
	size_t n = 0, n_left = 0;

	ky_vec_foreach(found, container) {
		if (how != NONE && !is_meant(container, wanted, how))
			continue;
		if (text->len > 300) {
			n_left++;
			continue;
		}
		ky_strbuf_addf(text, "%s%s%s", n++ ? ", " : "", container->name,
			       container->name[0] ? " (" : "(");
		ky_strbuf_addf(text, "%s", container->runtime);
		if (container->id[0])
			ky_strbuf_addf(text, " %.12s", container->id);
		if (how != NONE && has_twin(found, container))
			ky_strbuf_addf(text, " %s", container->cgroup);
		ky_strbuf_adds(text, ")");
	}
	if (n_left)
		ky_strbuf_addf(text, " and %zu more", n_left);
}

/* Some have no name because only root may read the files that say it. */
static bool lacks_names(const struct ky_containers *found)
{
	ky_vec_foreach(found, container)
		if (!container->name[0] && geteuid() != 0)
			return true;
	return false;
}

static int not_one(const struct ky_containers *found, const char *name, size_t n, enum meant how,
		   struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	add_names(&text, found, name, how);
	if (n)
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "there are %zu containers '%.64s': which one? %s", n, name,
				   ky_strbuf_text(&text));
	else if (found->len)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND,
				   "no container '%.64s' runs; those that do: %s", name,
				   ky_strbuf_text(&text));
	else
		ret = ky_error_set(err, KYMO_E_NOT_FOUND,
				   "no container '%.64s' runs, and no other one, as far as the "
				   "names of control groups tell; --cgroup takes any of these",
				   name);
	if (!n && lacks_names(found))
		ky_error_hint(err, "the names of docker's and others' are known to root only: "
				   "sudo, or take the id");
	ky_strbuf_fini(&text);
	return ret;
}

int ky_container_cgroup(const char *name, char cgroup[KY_CONTAINER_PATH_BYTES],
			struct kymo_error *err)
{
	struct ky_containers found = KY_VEC_INIT;
	const struct ky_container *chosen = NULL;
	enum meant how = NONE;
	int ret = ky_containers_find(&found, err);
	size_t n = ret < 0 ? 0 : choose(&found, name, &chosen, &how);

	if (!ret && n != 1)
		ret = not_one(&found, name, n, how, err);
	else if (!ret)
		memcpy(cgroup, chosen->cgroup, sizeof(chosen->cgroup));
	ky_vec_fini(&found);
	return ret;
}
