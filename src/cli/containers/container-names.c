/* SPDX-License-Identifier: MIT */
/*
 * What runtimes call their containers, out of the files that they keep: docker's of its containers; podman's and CRI-O's
 * storage, or the command line of who watches over them (conmon); what containerd starts them by. Of a user's own
 * containers, files of that user say it, so they are read with care, and only for these.
 */
#include "cli/containers/container-names.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <jansson.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/strbuf.h"
#include "kernel/process/proc.h"
#include "os/file.h"

/* JSON takes up to a hundred times its size in memory. */
#define FILE_MAX_BYTES	 (1u << 20)
#define SYSTEM_MAX_BYTES (8u << 20) /* of lists of the system's */
#define LINE_MAX_BYTES	 (1u << 20) /* of a command */
#define PIDS_MAX	 64
#define DEPTH_MAX	 32

/* One container, and who names it. */
struct asked {
	struct ky_container_namer *namer;
	struct ky_container *container;
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

/*
 * Open a file of whose containers these are. It is seen to be one before it is opened, which does things of its own to a device
 * or FIFO. A user's is none that links or mounts of his lead to.
 */
static int open_file(const struct ky_container_namer *namer, const char *path)
{
	const struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = namer->is_users ? RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV
					   : 0,
	};
	int seen = (int)syscall(SYS_openat2, namer->home, path, &how, sizeof(how)), fd = -1;
	struct stat st;

	if (seen < 0)
		return -1;
	if (fstat(seen, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == namer->uid)
		fd = ky_file_reopen(seen, O_RDONLY);
	close(seen);
	return fd;
}

/* NULL: there is none that can be read. *left_bytes: how much may be read, still. */
static json_t *load_some(const struct ky_container_namer *namer, const char *path,
			 size_t *left_bytes)
{
	struct file file = {open_file(namer, path), *left_bytes};
	json_t *json;

	if (file.fd < 0)
		return NULL;
	json = json_load_callback(read_some, &file, 0, NULL);
	close(file.fd);
	*left_bytes = file.left_bytes;
	return json;
}

static json_t *load(const struct ky_container_namer *namer, const char *path)
{
	size_t left_bytes = FILE_MAX_BYTES;

	return load_some(namer, path, &left_bytes);
}

/*
 * The name is @text, if that is one. Kubernetes' ask docker and CRI-O for "k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT"; none of
 * these has an underscore.
 */
static bool take(const struct asked *asked, const char *text)
{
	char *name = asked->container->name, container[64], pod[256], space[64];

	if (!text)
		return false;
	text += *text == '/';
	if (!*text)
		return false;
	if (sscanf(text, "k8s_%63[^_]_%255[^_]_%63[^_]_", container, pod, space) == 3)
		snprintf(name, KY_CONTAINER_NAME_BYTES, "%s/%s/%s", space, pod, container);
	else
		snprintf(name, KY_CONTAINER_NAME_BYTES, "%s", text);
	return true;
}

/* ---- docker ---------------------------------------------------------------------------- */

static bool ask_docker_at(const struct asked *asked, const char *root)
{
	char path[KY_CONTAINER_PATH_BYTES];
	json_t *json;
	bool known;

	if (snprintf(path, sizeof(path), "%s/containers/%s/config.v2.json", root,
		     asked->container->id) >= (int)sizeof(path))
		return false;
	json = load(asked->namer, path);
	known = take(asked, json_string_value(json_object_get(json, "Name")));
	json_decref(json);
	return known;
}

static bool ask_docker(const struct asked *asked)
{
	const char *elsewhere;
	bool known = false;
	json_t *config;
	char root[64];

	if (!asked->namer->is_users) {
		config = load(asked->namer, "/etc/docker/daemon.json");
		elsewhere = json_string_value(json_object_get(config, "data-root"));
		if (elsewhere)
			known = ask_docker_at(asked, elsewhere);
		json_decref(config);
	}
	snprintf(root, sizeof(root), "%s/docker", asked->namer->share);
	return known || ask_docker_at(asked, root);
}

/* ---- podman, CRI-O --------------------------------------------------------------------- */

/* The first name of @container, {"id": ..., "names": [...]}, if it has one. */
static void take_listed(struct ky_container_namer *namer, json_t *container)
{
	const char *id = json_string_value(json_object_get(container, "id"));
	json_t *names = json_object_get(container, "names");
	const char *name = json_string_value(json_array_get(names, 0));
	char *kept;

	if (!id || !name || strlen(id) != KY_CONTAINER_ID_DIGITS ||
	    ky_names_get(&namer->listed, id))
		return;
	id = ky_arena_strdup(&namer->arena, id);
	kept = ky_arena_strdup(&namer->arena, name);
	/* Without memory: it has no name. */
	if (id && kept)
		(void)ky_names_set(&namer->listed, id, kept);
}

/*
 * By how layers are stored; and of those that are to be gone after a boot. No pattern: users' directories are not listed.
 * Once for all containers: who has many has long lists.
 */
static void read_lists(struct ky_container_namer *namer)
{
	static const char *const drivers[] = {"overlay", "vfs", "btrfs", "zfs", "aufs"};
	size_t left_bytes = namer->is_users ? FILE_MAX_BYTES : SYSTEM_MAX_BYTES, k;
	json_t *list, *container;
	char path[160];

	namer->has_listed = true;
	for (size_t i = 0; i < 2 * sizeof(drivers) / sizeof(drivers[0]); i++) {
		snprintf(path, sizeof(path),
			 "%s/containers/storage/%s-containers/%scontainers.json", namer->share,
			 drivers[i / 2], i % 2 ? "volatile-" : "");
		list = load_some(namer, path, &left_bytes);
		json_array_foreach(list, k, container) take_listed(namer, container);
		json_decref(list);
	}
}

static bool ask_storage(const struct asked *asked)
{
	if (!asked->namer->has_listed)
		read_lists(asked->namer);
	return take(asked, ky_names_get(&asked->namer->listed, asked->container->id));
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
			is_its = strcmp(next, asked->container->id) == 0;
		if (next < end && strcmp(at, "-n") == 0)
			name = next;
	}
	return is_its && take(asked, name);
}

/* The first processes in @group, or of the first group below it that has any. */
static bool find_pids(const char *group, int depth, struct ky_strbuf *pids)
{
	char path[KY_CONTAINER_PATH_BYTES];
	struct dirent *entry = NULL;
	DIR *dir;

	if (depth == DEPTH_MAX ||
	    snprintf(path, sizeof(path), "%s/cgroup.procs", group) >= (int)sizeof(path))
		return false;
	if (ky_read_file(AT_FDCWD, path, LINE_MAX_BYTES, pids) == 0 && pids->len)
		return true;
	dir = ky_dir_open(AT_FDCWD, group);
	while (dir && (entry = readdir(dir)))
		if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
		    snprintf(path, sizeof(path), "%s/%s", group, entry->d_name) <
			    (int)sizeof(path) &&
		    find_pids(path, depth + 1, pids))
			break;
	if (dir)
		closedir(dir);
	return entry != NULL;
}

/*
 * Not a process of the container's own, which may call itself what it likes: of root's or the user's whose slice this is,
 * and in no hierarchy in the container's group.
 */
static bool is_trusted(const struct asked *asked, struct ky_proc *proc, int32_t pid)
{
	const char *base = strrchr(asked->container->cgroup, '/');
	struct ky_strbuf groups = KY_STRBUF_INIT;
	struct ky_proc_ids ids;
	size_t len = strlen(base);
	char path[32];
	bool is_one = false;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (ky_proc_read_ids(proc, pid, pid, &ids) == 0 &&
	    (!ids.uid || ids.uid == asked->namer->uid) &&
	    ky_read_file(AT_FDCWD, path, LINE_MAX_BYTES, &groups) == 0 && groups.len) {
		is_one = true;
		for (const char *at = groups.data; (at = strstr(at, base)); at += len)
			is_one = is_one && !strchr("/\n", at[len]);
	}
	ky_strbuf_fini(&groups);
	return is_one;
}

/* Wherever the storage is: who started the container's first process says it. */
static bool ask_conmon(const struct asked *asked)
{
	struct ky_strbuf pids = KY_STRBUF_INIT, command = KY_STRBUF_INIT;
	struct ky_proc_thread thread;
	struct ky_proc proc;
	bool known = false;
	char path[32], *next = NULL;

	if (strcmp(asked->container->runtime, "podman") != 0 &&
	    strcmp(asked->container->runtime, "cri-o") != 0)
		return false;
	if (ky_proc_open(&proc, NULL) < 0)
		return false;
	if (find_pids(asked->container->cgroup, 0, &pids))
		next = pids.data;
	for (int i = 0; i < PIDS_MAX && next && *next && !known; i++) {
		int32_t pid = (int32_t)strtol(next, NULL, 10);

		next = strchr(next, '\n');
		next = next ? next + 1 : NULL;
		if (ky_proc_read_thread(&proc, pid, pid, &thread) < 0 ||
		    !is_trusted(asked, &proc, thread.ppid))
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
	json_t *json = load(asked->namer, path), *notes = json_object_get(json, "annotations");
	const char *texts[3], *name = json_string_value(json_object_get(notes, "nerdctl/name"));
	char full[KY_CONTAINER_NAME_BYTES];
	bool known;

	for (size_t i = 0; i < 3; i++)
		texts[i] = json_string_value(json_object_get(notes, keys[i]));
	if (!name && texts[0] && texts[1]) {
		/* What a pod is held by has no name of its own. */
		snprintf(full, sizeof(full), "%.63s/%.255s/%.63s", texts[0], texts[1],
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
	char pattern[160];
	bool known = false;
	glob_t files;

	for (size_t i = 0; i < 2 && !known; i++) {
		snprintf(pattern, sizeof(pattern),
			 "%s/io.containerd.runtime.v2.task/*/%s/config.json", places[i],
			 asked->container->id);
		if (glob(pattern, 0, NULL, &files) == 0)
			for (size_t k = 0; k < files.gl_pathc && !known; k++)
				known = ask_bundle(asked, files.gl_pathv[k]);
		globfree(&files);
	}
	return known;
}

/* ---- all of them ------------------------------------------------------------------------- */

void ky_container_namer_init(struct ky_container_namer *namer)
{
	*namer = (struct ky_container_namer){.home = AT_FDCWD, .share = "/var/lib"};
	ky_names_init(&namer->listed);
	ky_arena_init(&namer->arena);
}

void ky_container_namer_init_user(struct ky_container_namer *namer, uint32_t uid, int home)
{
	ky_container_namer_init(namer);
	namer->is_users = true;
	namer->uid = uid;
	namer->home = home;
	namer->share = ".local/share";
}

void ky_container_namer_fini(struct ky_container_namer *namer)
{
	ky_names_fini(&namer->listed);
	ky_arena_fini(&namer->arena);
}

void ky_container_name(struct ky_container_namer *namer, struct ky_container *container)
{
	struct asked asked = {namer, container};

	(void)(ask_docker(&asked) || ask_storage(&asked) ||
	       (!namer->is_users && ask_containerd(&asked)) || ask_conmon(&asked));
}
