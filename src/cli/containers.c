/* SPDX-License-Identifier: MIT */
#include "cli/containers.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "base/text.h"
#include "os/file.h"
#include "record/session.h"

#define DEPTH_MAX	32
#define MIN_PREFIX	4
#define PROCS_MAX_BYTES (16u << 20)

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
};

/* Do what @each says with each group below walk->path. 0, or what @each returned. */
static int each_below(struct walk *walk, int depth,
		      int (*each)(struct walk *walk, int depth, void *data), void *data)
{
	size_t len = strlen(walk->path);
	DIR *dir = depth < DEPTH_MAX ? ky_dir_open(AT_FDCWD, walk->path) : NULL;
	struct dirent *entry;
	int ret = KYMO_OK;

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

/*
 * With version 1, a container has a group in each hierarchy: what counts is the first that its processes are in. Those of
 * the same name in one hierarchy are different ones.
 */
static int add(struct walk *walk, struct ky_container *container)
{
	ky_vec_foreach(walk->found, other) {
		if (other->hierarchy == container->hierarchy ||
		    strcmp(other->id, container->id) != 0 ||
		    (!container->id[0] && strcmp(other->name, container->name) != 0))
			continue;
		if (other->n_processes || !container->n_processes)
			return KYMO_OK;
		*other = *container;
		return KYMO_OK;
	}
	return ky_vec_push(walk->found, *container);
}

static int look(struct walk *walk, int depth, void *data)
{
	struct ky_container container = {.hierarchy = walk->hierarchy};
	size_t len = strlen(walk->path);
	int ret = KYMO_OK;

	if (is_container(walk->path, &container)) {
		memcpy(container.cgroup, walk->path, len + 1);
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
	if (file) {
		fclose(file);
		return each_below(walk, 0, look, NULL);
	}
	ret = each_below(walk, 0, look_at_hierarchy, &unified);
	return ret < 0 ? ret : each_below(walk, 0, look_at_hierarchy, NULL);
}

int ky_containers_find(struct ky_containers *found, struct kymo_error *err)
{
	struct walk walk = {.found = found};
	int ret = look_everywhere(&walk);

	ky_strbuf_fini(&walk.text);
	if (ret < 0)
		return ky_error_nomem(err);
	ky_vec_foreach(found, container)
		if (container->id[0])
			(void)ky_container_name(container->cgroup, container->id, container->name);
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

/* "web (docker, 0123456789ab), box (lxc)"; as many as there is room for. */
static void add_names(struct ky_strbuf *text, const struct ky_containers *found, const char *wanted)
{
	size_t n = 0, n_left = 0;

	ky_vec_foreach(found, container) {
		if (wanted && !has_name(container, wanted) && !has_id(container, wanted))
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
		else if (wanted)
			ky_strbuf_addf(text, " %s", container->cgroup);
		ky_strbuf_adds(text, ")");
	}
	if (n_left)
		ky_strbuf_addf(text, " and %zu more", n_left);
}

static int not_one(const struct ky_containers *found, const char *name, size_t n,
		   struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	add_names(&text, found, n ? name : NULL);
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
	ky_strbuf_fini(&text);
	return ret;
}

/* Those of that name; when there are none, those whose id begins so. */
static size_t choose(const struct ky_containers *found, const char *name,
		     const struct ky_container **chosen)
{
	size_t n = 0;

	ky_vec_foreach(found, container) {
		if (!has_name(container, name))
			continue;
		*chosen = container;
		n++;
	}
	if (n)
		return n;
	ky_vec_foreach(found, container) {
		if (!has_id(container, name))
			continue;
		*chosen = container;
		n++;
	}
	return n;
}

int ky_container_cgroup(const char *name, char cgroup[KY_CONTAINER_PATH_BYTES],
			struct kymo_error *err)
{
	struct ky_containers found = KY_VEC_INIT;
	const struct ky_container *chosen = NULL;
	int ret = ky_containers_find(&found, err);
	size_t n = ret < 0 ? 0 : choose(&found, name, &chosen);

	if (!ret && n != 1)
		ret = not_one(&found, name, n, err);
	else if (!ret)
		memcpy(cgroup, chosen->cgroup, sizeof(chosen->cgroup));
	ky_vec_fini(&found);
	return ret;
}
