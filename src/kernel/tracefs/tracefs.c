/* SPDX-License-Identifier: MIT */
#include "kernel/tracefs/tracefs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

#define TRACEFS_MAGIC_NUMBER 0x74726163
#define MOUNT_POINT	     "/sys/kernel/tracing"

static bool is_tracefs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == TRACEFS_MAGIC_NUMBER;
}

static int need_root(struct kymo_error *err)
{
	int code = ky_error_set(err, KYMO_E_PERMISSION, "recording the kernel needs root");

	ky_error_hint(err, "run it with sudo, or by a policy of root's: kymo help sessions");
	return code;
}

static int mount_tracefs(struct kymo_error *err)
{
	int code;

	if (mount("tracefs", MOUNT_POINT, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0)
		return KYMO_OK;
	if (geteuid() != 0)
		return need_root(err);
	if (errno == ENODEV || errno == ENOENT) {
		code = ky_error_set(err, KYMO_E_UNSUPPORTED, "this kernel has no tracefs");
		ky_error_hint(err, "it must be built with CONFIG_EVENT_TRACING and "
				   "CONFIG_FTRACE_SYSCALLS");
		return code;
	}
	code = ky_error_errno(err, errno, "cannot mount tracefs");
	ky_error_path(err, MOUNT_POINT);
	ky_error_hint(err, "in a container, give it the host's " MOUNT_POINT);
	return code;
}

int ky_tracefs_open(struct ky_tracefs *fs, struct kymo_error *err)
{
	static const char *const places[] = {MOUNT_POINT, "/sys/kernel/debug/tracing"};
	const char *path = NULL;
	int code;

	fs->fd = -1;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !path; i++)
		path = is_tracefs(places[i]) ? places[i] : NULL;
	if (!path) {
		code = mount_tracefs(err);
		if (code < 0)
			return code;
		path = MOUNT_POINT;
	}
	snprintf(fs->path, sizeof(fs->path), "%s", path);
	fs->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fs->fd >= 0 && faccessat(fs->fd, "instances", W_OK, AT_EACCESS) == 0)
		return KYMO_OK;
	code = errno;
	ky_tracefs_close(fs);
	if (code == EACCES || code == EPERM)
		return need_root(err);
	code = ky_error_errno(err, code, "cannot use tracefs");
	ky_error_path(err, path);
	return code;
}

void ky_tracefs_close(struct ky_tracefs *fs)
{
	if (fs->fd >= 0)
		close(fs->fd);
	fs->fd = -1;
}

static void error_file(struct kymo_error *err, const char *dir, const char *name)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	ky_error_path(err, path);
}

int ky_tracefs_read(int dir_fd, const char *dir, const char *name, struct ky_strbuf *text,
		    struct kymo_error *err)
{
	int ret = ky_read_file(dir_fd, name, KY_TRACEFS_TEXT_MAX, text);

	if (ret == 0)
		return KYMO_OK;
	ret = ky_error_errno(err, -ret, "cannot read");
	error_file(err, dir, name);
	return ret;
}

/* ---- the owner of an instance --------------------------------------------------------- */

/* Field 22 of /proc/PID/stat; 0: no such process. The name, field 2, may hold anything. */
static uint64_t start_ticks(const char *pid)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint64_t ticks = 0;
	char path[64];
	char *at;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	if (ky_read_file(AT_FDCWD, path, 4096, &text) == 0) {
		at = strrchr(ky_strbuf_text(&text), ')');
		for (int field = 2; at && field < 22; field++)
			at = strchr(at + 1, ' ');
		ticks = at ? strtoull(at, NULL, 10) : 0;
	}
	ky_strbuf_fini(&text);
	return ticks;
}

static uint64_t pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
}

/* A number and a suffix may follow: of a second recording, the watch, a group of events. */
bool ky_tracefs_is_stale(const char *name)
{
	uint64_t start, ns;
	unsigned int pid;
	char text[16];
	int len = 0;

	if (sscanf(name, "kymo-%9u-%20" SCNu64 "-%20" SCNu64 "%n", &pid, &start, &ns, &len) < 3)
		return false;
	if (name[len] && name[len] != '-')
		return false;
	if (ns != pid_namespace())
		return false;
	snprintf(text, sizeof(text), "%u", pid);
	return start_ticks(text) != start;
}

unsigned int ky_tracefs_clean(const struct ky_tracefs *fs, const struct ky_log *log)
{
	DIR *dir = ky_dir_open(fs->fd, "instances");
	unsigned int removed = 0;
	struct dirent *entry;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (!ky_tracefs_is_stale(entry->d_name))
			continue;
		if (unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR) == 0)
			removed++;
		else if (errno != ENOENT && errno != ENODEV) /* another recorder was quicker */
			ky_log_warning(log, "cannot remove the instance %s of a dead recorder: %s",
				       entry->d_name, strerror(errno));
	}
	closedir(dir);
	return removed;
}

/* ---- an instance of our own ----------------------------------------------------------- */

void ky_instance_own_name(unsigned int number, char *name, size_t size)
{
	size_t len;

	snprintf(name, size, "kymo-%d-%" PRIu64 "-%" PRIu64, getpid(), start_ticks("self"),
		 pid_namespace());
	len = strlen(name);
	if (number > 1)
		snprintf(name + len, size - len, "-%u", number);
}

/* One that no other recording of this process has. 0, or an errno. */
static int tracefs_make_instance(const struct ky_tracefs *fs, const char *suffix,
				 struct ky_instance *instance)
{
	for (unsigned int number = 1; number <= KY_INSTANCES_MAX; number++) {
		size_t len;

		ky_instance_own_name(number, instance->name, sizeof(instance->name));
		len = strlen(instance->name);
		snprintf(instance->name + len, sizeof(instance->name) - len, "%s", suffix);
		snprintf(instance->path, sizeof(instance->path), "%s/instances/%s", fs->path,
			 instance->name);
		if (mkdir(instance->path, 0700) == 0)
			return 0;
		if (errno != EEXIST)
			return errno;
	}
	return EEXIST;
}

int ky_instance_create(const struct ky_tracefs *fs, const char *suffix,
		       struct ky_instance *instance, struct kymo_error *err)
{
	int code = tracefs_make_instance(fs, suffix, instance);

	instance->fd = -1;
	if (code) {
		if (code == EACCES || code == EPERM) {
			code = need_root(err);
		} else {
			code = ky_error_errno(err, code, "cannot create a tracefs instance");
			ky_error_path(err, instance->path);
		}
		instance->path[0] = '\0'; /* nothing to remove */
		return code;
	}
	instance->fd = open(instance->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (instance->fd < 0) {
		code = ky_error_errno(err, errno, "cannot open the tracefs instance");
		ky_error_path(err, instance->path);
		ky_instance_remove(instance, NULL);
		return code;
	}
	code = ky_instance_write(instance, "tracing_on", "0", err);
	if (code < 0)
		ky_instance_remove(instance, NULL);
	return code;
}

int ky_instance_remove(struct ky_instance *instance, struct kymo_error *err)
{
	int code;

	if (!instance->path[0])
		return KYMO_OK;
	if (instance->fd >= 0)
		close(instance->fd);
	instance->fd = -1;
	if (rmdir(instance->path) < 0 && errno != ENOENT) {
		code = ky_error_errno(err, errno, "cannot remove the tracefs instance");
		ky_error_path(err, instance->path);
		ky_error_hint(err, "some program has a file of it open; the next recording "
				   "removes it");
		return code;
	}
	instance->path[0] = '\0';
	return KYMO_OK;
}

int ky_instance_write(const struct ky_instance *instance, const char *name, const char *text,
		      struct kymo_error *err)
{
	/* Without O_TRUNC, so that lists (set_event_pid) are added to. */
	int fd = openat(instance->fd, name, O_WRONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? write(fd, text, strlen(text)) : -1;
	int code = KYMO_OK;

	if (n < 0) {
		code = ky_error_errno(err, errno, "cannot write '%s'", text);
		error_file(err, instance->path, name);
	}
	if (fd >= 0)
		close(fd);
	return code;
}

int ky_instance_write_u64(const struct ky_instance *instance, const char *name, uint64_t value,
			  struct kymo_error *err)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return ky_instance_write(instance, name, text, err);
}
