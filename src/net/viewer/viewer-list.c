/* SPDX-License-Identifier: MIT */
#include "net/viewer/viewer-list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/files/relay-files.h"
#include "net/protocol/frame.h"
#include "os/file.h"
#include "os/now.h"

#define FRESH_NS     100000000
#define TIME_SHARE   8
#define SESSIONS_MAX 4096
#define STREAMS_MAX  1000000

/* What is known of one recording. */
struct recording {
	uint32_t traces, streams;
	bool is_ctf2, has_metadata;
};

static void viewer_list_free_entries(struct ky_viewer_list *list)
{
	ky_vec_foreach(&list->entries, entry) {
		free(entry->host);
		free(entry->name);
		free(entry->below);
	}
	ky_vec_clear(&list->entries);
}

void ky_viewer_list_fini(struct ky_viewer_list *list)
{
	viewer_list_free_entries(list);
	ky_vec_fini(&list->entries);
}

/* FNV-1a */
static uint64_t viewer_list_id_of(const char *below)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = below; *c; c++)
		hash = (hash ^ (uint8_t)*c) * UINT64_C(0x100000001b3);
	return hash;
}

/* ---- one recording -------------------------------------------------------------------- */

/* JSON, where CTF 1.8 has text or packets. */
static bool is_ctf2(int dir_fd, bool *has_metadata)
{
	int fd = ky_file_open_regular(dir_fd, "metadata", O_RDONLY | O_NOFOLLOW);
	char first = 0;

	if (fd < 0)
		return false;
	*has_metadata = pread(fd, &first, 1, 0) == 1;
	close(fd);
	return first == '\x1e' || first == '{' || first == '[';
}

static uint32_t viewer_list_count_streams(int dir_fd)
{
	DIR *dir = ky_dir_open(dir_fd, "index");
	uint32_t n = 0;

	while (dir && n < STREAMS_MAX) {
		const struct dirent *entry = readdir(dir);

		if (!entry)
			break;
		n += entry->d_name[0] != '.';
	}
	if (dir)
		closedir(dir);
	return n;
}

static void look_at_trace(void *data, int dir_fd, const char *path)
{
	struct recording *recording = data;

	(void)path;
	recording->streams += viewer_list_count_streams(dir_fd);
	recording->traces++;
	if (!recording->has_metadata)
		recording->is_ctf2 = is_ctf2(dir_fd, &recording->has_metadata);
}

static void viewer_list_add_entry(struct ky_viewer_list *list, const char *host, const char *name,
				  const char *below, const struct recording *recording)
{
	struct ky_viewer_entry entry = {
		.id = viewer_list_id_of(below),
		.host = strdup(host),
		.name = strdup(name),
		.below = strdup(below),
		.streams = recording->streams,
		.is_ctf2 = recording->is_ctf2,
	};

	if (list->entries.len < SESSIONS_MAX && entry.host && entry.name && entry.below &&
	    ky_vec_push(&list->entries, entry) == 0)
		return;
	free(entry.host);
	free(entry.name);
	free(entry.below);
}

static void add_recording(struct ky_viewer_list *list, int fd, const char *host, const char *name,
			  const char *below, bool is_connected)
{
	struct recording recording = {0};

	ky_viewer_scan(fd, look_at_trace, &recording);
	if (recording.traces || is_connected)
		viewer_list_add_entry(list, host, name, below, &recording);
}

/* ---- the relay's directory ------------------------------------------------------------ */

struct look {
	struct ky_viewer_list *list;
	ky_viewer_is_connected is_connected;
	void *data;
	char here[HOST_NAME_MAX + 1];
};

static void look_at_host(struct look *look, DIR *dir, const char *host)
{
	struct dirent *entry;

	while (look->list->entries.len < SESSIONS_MAX && (entry = readdir(dir))) {
		char below[PATH_MAX];
		DIR *child;

		if (!ky_net_is_name(entry->d_name, strlen(entry->d_name)))
			continue;
		child = ky_dir_open(dirfd(dir), entry->d_name);
		if (!child)
			continue;
		snprintf(below, sizeof(below), "%s/%s", host, entry->d_name);
		add_recording(look->list, dirfd(child), host, entry->d_name, below,
			      look->is_connected && look->is_connected(look->data, below));
		closedir(child);
	}
}

/* The directories of a recording's own traces. */
static bool is_part(const char *name)
{
	return strcmp(name, "kernel") == 0 || strcmp(name, "ust") == 0 ||
	       strcmp(name, "archives") == 0;
}

/* @is_recording: so is the directory itself, and what else is in it are hosts. */
static void look_at_dir(struct look *look, DIR *dir, bool is_recording)
{
	struct dirent *entry;

	while (look->list->entries.len < SESSIONS_MAX && (entry = readdir(dir))) {
		DIR *child;

		if (!ky_net_is_name(entry->d_name, strlen(entry->d_name)) ||
		    (is_recording && is_part(entry->d_name)))
			continue;
		child = ky_dir_open(dirfd(dir), entry->d_name);
		if (!child)
			continue;
		if (!ky_relay_is_recording(dirfd(child)))
			look_at_host(look, child, entry->d_name);
		else if (!is_recording)
			add_recording(look->list, dirfd(child), look->here, entry->d_name,
				      entry->d_name, false);
		closedir(child);
	}
}

/* The directory's own name, also for "." and paths that end with it. */
static void look_at_root(struct look *look, DIR *dir)
{
	char *real = realpath(look->list->dir, NULL);
	const char *slash = real ? strrchr(real, '/') : NULL;

	if (slash && slash[1])
		add_recording(look->list, dirfd(dir), look->here, slash + 1, "", false);
	free(real);
}

static int viewer_list_by_name(const void *a, const void *b)
{
	const struct ky_viewer_entry *p = a, *q = b;
	int ret = strcmp(p->host, q->host);

	return ret ? ret : strcmp(p->name, q->name);
}

void ky_viewer_list_look(struct ky_viewer_list *list, int64_t now_ns,
			 ky_viewer_is_connected is_connected, void *data)
{
	struct look look = {list, is_connected, data, ""};
	bool is_recording;
	DIR *dir;

	if (list->made_ns && now_ns - list->made_ns < FRESH_NS + TIME_SHARE * list->took_ns)
		return;
	list->made_ns = now_ns;
	viewer_list_free_entries(list);
	if (gethostname(look.here, sizeof(look.here)) < 0 || !look.here[0])
		snprintf(look.here, sizeof(look.here), "localhost");
	dir = opendir(list->dir);
	is_recording = dir && ky_relay_is_recording(dirfd(dir));
	/* Whatever makes the directory look like a recording hides no other. */
	if (is_recording)
		look_at_root(&look, dir);
	if (dir)
		look_at_dir(&look, dir, is_recording);
	if (dir)
		closedir(dir);
	if (list->entries.len)
		qsort(list->entries.data, list->entries.len, sizeof(list->entries.data[0]),
		      viewer_list_by_name);
	list->took_ns = ky_os_now_ns() - now_ns;
}

const struct ky_viewer_entry *ky_viewer_list_find(const struct ky_viewer_list *list, uint64_t id)
{
	ky_vec_foreach(&list->entries, entry)
		if (entry->id == id)
			return entry;
	return NULL;
}
