/* SPDX-License-Identifier: MIT */
/*
 * What runtimes call their containers, out of the files that they keep: docker's of its containers; podman's and CRI-O's
 * storage, or the command line of who watches over them (conmon); what containerd starts them by. Of a user's own
 * containers, files of that user say it, so they are read with care, and only for these.
 */
#include "cli/containers.h"

#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "kernel/proc.h"
#include "os/file.h"

#define FILE_MAX_BYTES (32u << 20)
#define LINE_MAX_BYTES (1u << 20) /* of a command */

struct asked {
	const char *cgroup, *id;
	const char *share; /* of a user's own: ~/.local/share; NULL: of the system's */
	char *name;
};

struct file {
	int fd;
	size_t left_bytes;
};

static size_t read_some(void *buffer, size_t size, void *data)
{
	struct file *file = data;
	ssize_t n = read(file->fd, buffer, size < file->left_bytes ? size : file->left_bytes);

	if (n < 0)
		return (size_t)-1;
	file->left_bytes -= (size_t)n;
	return (size_t)n;
}

/* NULL: there is none that can be read. Not what one could wait for, or read for ever. */
static json_t *load(const char *path)
{
	struct file file = {open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC),
			    FILE_MAX_BYTES};
	json_t *json = NULL;
	struct stat st;

	if (file.fd < 0)
		return NULL;
	if (fstat(file.fd, &st) == 0 && S_ISREG(st.st_mode))
		json = json_load_callback(read_some, &file, 0, NULL);
	close(file.fd);
	return json;
}

/*
 * The name is @text, if that is one. Kubernetes' ask docker and CRI-O for "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT"; none of
 * these has an underscore.
 */
static bool take(const struct asked *asked, const char *text)
{
	char container[128], pod[128], space[128];

	if (!text)
		return false;
	text += *text == '/';
	if (!*text)
		return false;
	if (sscanf(text, "k8s_%127[^_]_%127[^_]_%127[^_]_", container, pod, space) == 3)
		snprintf(asked->name, KY_CONTAINER_NAME_BYTES, "%.100s/%.100s/%.100s", space, pod,
			 container);
	else
		snprintf(asked->name, KY_CONTAINER_NAME_BYTES, "%s", text);
	return true;
}

/* ---- docker ---------------------------------------------------------------------------- */

static bool ask_docker_at(const struct asked *asked, const char *root)
{
	char path[KY_CONTAINER_PATH_BYTES + 128];
	json_t *json;
	bool known;

	snprintf(path, sizeof(path), "%s/containers/%s/config.v2.json", root, asked->id);
	json = load(path);
	known = take(asked, json_string_value(json_object_get(json, "Name")));
	json_decref(json);
	return known;
}

static bool ask_docker(const struct asked *asked)
{
	char root[KY_CONTAINER_PATH_BYTES];
	const char *elsewhere;
	bool known = false;
	json_t *config;

	if (asked->share) {
		snprintf(root, sizeof(root), "%s/docker", asked->share);
		return ask_docker_at(asked, root);
	}
	config = load("/etc/docker/daemon.json");
	elsewhere = json_string_value(json_object_get(config, "data-root"));
	if (elsewhere)
		known = ask_docker_at(asked, elsewhere);
	json_decref(config);
	return known || ask_docker_at(asked, "/var/lib/docker");
}

/* ---- podman, CRI-O --------------------------------------------------------------------- */

/* [{"id": ..., "names": [...]}] */
static bool ask_list(const struct asked *asked, const char *path)
{
	json_t *list = load(path), *container;
	bool known = false;
	size_t i;

	json_array_foreach(list, i, container)
	{
		const char *id = json_string_value(json_object_get(container, "id"));
		json_t *names = json_object_get(container, "names");

		if (id && strcmp(id, asked->id) == 0)
			known = take(asked, json_string_value(json_array_get(names, 0)));
	}
	json_decref(list);
	return known;
}

/* @ask each file that matches, until one answers. */
static bool ask_each(const struct asked *asked, const char *pattern,
		     bool (*ask)(const struct asked *asked, const char *path))
{
	bool known = false;
	glob_t files;

	if (glob(pattern, 0, NULL, &files) == 0)
		for (size_t i = 0; i < files.gl_pathc && !known; i++)
			known = ask(asked, files.gl_pathv[i]);
	globfree(&files);
	return known;
}

static bool ask_storage(const struct asked *asked)
{
	char pattern[KY_CONTAINER_PATH_BYTES];

	/* "overlay-containers", "vfs-containers": by how layers are stored. */
	snprintf(pattern, sizeof(pattern), "%s/containers/storage/*-containers/containers.json",
		 asked->share ? asked->share : "/var/lib");
	return ask_each(asked, pattern, ask_list);
}

/* "conmon ... -c ID ... -n NAME ...": the one of this container. */
static bool ask_command(const struct asked *asked, const struct ky_strbuf *command)
{
	const char *at = ky_strbuf_text(command), *end = at + command->len;
	const char *name = NULL, *last = strrchr(at, '/');
	bool is_its = false;

	if (strcmp(last ? last + 1 : at, "conmon") != 0)
		return false;
	for (const char *next; at < end; at = next) {
		next = at + strlen(at) + 1;
		if (next < end && strcmp(at, "-c") == 0)
			is_its = strcmp(next, asked->id) == 0;
		if (next < end && strcmp(at, "-n") == 0)
			name = next;
	}
	return is_its && take(asked, name);
}

/* Wherever the storage is: who started the container's first process says it. */
static bool ask_conmon(const struct asked *asked)
{
	struct ky_strbuf pids = KY_STRBUF_INIT, command = KY_STRBUF_INIT;
	char path[KY_CONTAINER_PATH_BYTES + 16];
	struct ky_proc_thread thread;
	struct ky_proc proc;
	bool known = false;
	char *next = NULL;

	if (ky_proc_open(&proc, NULL) < 0)
		return false;
	snprintf(path, sizeof(path), "%s/cgroup.procs", asked->cgroup);
	if (ky_read_file(AT_FDCWD, path, LINE_MAX_BYTES, &pids) == 0)
		next = pids.data;
	while (next && *next && !known) {
		int32_t pid = (int32_t)strtol(next, NULL, 10);

		next = strchr(next, '\n');
		next = next ? next + 1 : NULL;
		if (ky_proc_read_thread(&proc, pid, pid, &thread) < 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)thread.ppid);
		known = ky_read_file(AT_FDCWD, path, LINE_MAX_BYTES, &command) == 0 &&
			ask_command(asked, &command);
	}
	ky_strbuf_fini(&pids);
	ky_strbuf_fini(&command);
	ky_proc_close(&proc);
	return known;
}

/* ---- containerd ------------------------------------------------------------------------ */

static bool ask_bundle(const struct asked *asked, const char *path)
{
	static const char *const keys[] = {
		"io.kubernetes.cri.sandbox-namespace",
		"io.kubernetes.cri.sandbox-name",
		"io.kubernetes.cri.container-name",
	};
	json_t *json = load(path), *notes = json_object_get(json, "annotations");
	const char *texts[3], *name = json_string_value(json_object_get(notes, "nerdctl/name"));
	char full[KY_CONTAINER_NAME_BYTES];
	bool known;

	for (size_t i = 0; i < 3; i++)
		texts[i] = json_string_value(json_object_get(notes, keys[i]));
	if (!name && texts[0] && texts[1]) {
		/* What a pod is held by has no name of its own. */
		snprintf(full, sizeof(full), "%.100s/%.100s/%.100s", texts[0], texts[1],
			 texts[2] ? texts[2] : "POD");
		name = full;
	}
	known = take(asked, name);
	json_decref(json);
	return known;
}

static bool ask_containerd(const struct asked *asked)
{
	static const char *const places[] = {"/run/containerd", "/run/k3s/containerd"};
	char pattern[KY_CONTAINER_PATH_BYTES];
	bool known = false;

	for (size_t i = 0; i < 2 && !known; i++) {
		snprintf(pattern, sizeof(pattern),
			 "%s/io.containerd.runtime.v2.task/*/%s/config.json", places[i], asked->id);
		known = ask_each(asked, pattern, ask_bundle);
	}
	return known;
}

bool ky_container_name(const char *cgroup, const char *id, char name[KY_CONTAINER_NAME_BYTES])
{
	struct asked asked = {.cgroup = cgroup, .id = id, .name = name};
	const char *slice = strstr(cgroup, "/user-");
	struct passwd *user = NULL;
	char share[KY_CONTAINER_PATH_BYTES / 2];
	unsigned int uid;

	name[0] = '\0';
	/* A user's own, in user-1000.slice. */
	if (slice && sscanf(slice, "/user-%u.slice/", &uid) == 1)
		user = getpwuid((uid_t)uid);
	if (user) {
		snprintf(share, sizeof(share), "%s/.local/share", user->pw_dir);
		asked.share = share;
	}
	return ask_docker(&asked) || ask_storage(&asked) || ask_conmon(&asked) ||
	       (!asked.share && ask_containerd(&asked));
}
