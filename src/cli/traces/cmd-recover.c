/* SPDX-License-Identifier: MIT */
/* kymo recover: ring files that killed programs, recorders and machines left become traces. */
#include "cli/terminal/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "os/file.h"
#include "record/kernel/persistent-ring.h"
#include "record/common/record-dir.h"
#include "record/kernel/raw.h"
#include "record/request/user-group.h"
#include "record/rings/user-ring.h"
#include "record/runtime/user-runtime.h"
#include "store/directory/directory-store.h"

/* Directories within directories: a runtime directory has sessions', those have ring files. */
#define DEPTH_MAX 3

struct options {
	const char *output;
	bool remove;
};

struct recovery {
	const struct options *options;
	struct ky_packet_store *store; /* where programs' traces go */
	uint8_t boot_id[16];	       /* zeros: not known */
	unsigned int n_rings, n_failed;
	uint64_t events, lost;
};

/* A file or directory: what is opened is what is removed in the end, whatever has its name by then. */
struct place {
	int dir_fd; /* where @name is looked for */
	const char *name;
	const char *path; /* for people */
	int depth;	  /* 0: somebody asked for it; below: others may have put it there */
};

static void cmd_recover_say(const struct kymo_error *err, const char *path)
{
	struct kymo_error copy = *err;

	if (!copy.path[0])
		ky_error_path(&copy, path);
	(void)ky_cli_error(&copy);
}

/* "PATH: 17 events of process 4711, group rare -> TRACE" */
static void print_ring(const struct ky_user_ring *ring, const char *path)
{
	const struct ky_blob *blob = ky_user_ring_blob(ring);

	ky_cli_put_text(stdout, path);
	printf(": %" PRIu64 " events of %s%" PRIu32, ring->events,
	       ring->is_shared ? "the programs of user " : "process ",
	       ring->is_shared ? blob->uid : blob->pid);
	if (ring->trace.group) {
		fputs(", group ", stdout);
		ky_cli_put_text(stdout, ring->trace.group);
	}
	fputs(" -> ", stdout);
	ky_cli_put_text(stdout, ring->trace.path);
}

/* What is complete, and what is not. */
static void cmd_recover_report(struct recovery *recovery, const struct ky_user_ring *ring,
			       const char *path)
{
	uint64_t lost = ky_user_ring_lost(ring);
	const struct ky_blob *blob = ky_user_ring_blob(ring);

	recovery->events += ring->events;
	if (__builtin_add_overflow(recovery->lost, lost, &recovery->lost))
		recovery->lost = UINT64_MAX;
	print_ring(ring, path);
	if (ring->stats.overwritten)
		printf("; %" PRIu64 " older ones were overwritten", ring->stats.overwritten);
	if (ring->stats.records > ring->events + ring->unread + ring->stats.overwritten)
		printf("; %" PRIu64 " were read before",
		       ring->stats.records - ring->events - ring->unread - ring->stats.overwritten);
	if (lost)
		printf("; %" PRIu64 " were lost while it was recorded", lost);
	if (ring->lost_claimed)
		printf("; its count of %" PRIu64 " lost events is impossible", ring->lost_claimed);
	if (ring->is_broken || ring->n_damaged)
		printf("; damaged: %" PRIu64 " could not be read", ring->unread);
	else if (ky_user_blob_is_of_earlier_boot(blob, recovery->boot_id))
		printf("; the machine has rebooted since: events that were not on disk may be "
		       "missing");
	else if (!lost && !ring->lost_claimed)
		printf("; complete");
	putchar('\n');
}

static int cmd_recover_open_ring(const struct place *place, struct kymo_error *err)
{
	int fd = ky_file_open_regular(place->dir_fd, place->name,
				      O_RDONLY | (place->depth ? O_NOFOLLOW : 0));

	if (fd >= 0)
		return fd;
	if (fd == -EINVAL)
		return ky_error_set(err, KYMO_E_INVALID, "not a ring file and not a directory");
	return ky_error_errno(err, -fd, "cannot open it");
}

/* The file of @name, if that is still @fd. */
static void cmd_recover_remove_file(const struct place *place, int fd)
{
	struct stat named, opened;

	if (fstatat(place->dir_fd, place->name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    fstat(fd, &opened) == 0 && named.st_dev == opened.st_dev &&
	    named.st_ino == opened.st_ino)
		(void)unlinkat(place->dir_fd, place->name, 0);
}

static int read_ring(struct recovery *recovery, const struct place *place, int fd, int same_fd,
		     struct kymo_error *err)
{
	struct ky_user_ring_options options = {
		.store = recovery->store, .log = &ky_cli_log, .read_only = true};
	const char *name = strrchr(place->name, '/');
	char group[KY_USER_GROUP_NAME_MAX + 1];
	struct ky_user_ring *ring;
	int ret;

	if (ky_user_dir_group(place->dir_fd, group))
		options.group = group;
	ret = ky_user_ring_open(fd, name ? name + 1 : place->name, &options, &ring, err);

	if (ret < 0)
		return ret;
	ret = ky_user_ring_finish(ring, err);
	if (!ret)
		cmd_recover_report(recovery, ring, place->path);
	if (!ret && recovery->options->remove && !ring->is_broken)
		cmd_recover_remove_file(place, same_fd);
	ky_user_ring_free(ring);
	return ret;
}

static int recover_file(struct recovery *recovery, const struct place *place,
			struct kymo_error *err)
{
	int fd = cmd_recover_open_ring(place, err), same_fd = fd < 0 ? -1 : dup(fd), ret = fd;

	if (same_fd >= 0) {
		ret = read_ring(recovery, place, fd, same_fd, err);
		close(same_fd);
	} else if (fd >= 0) {
		ret = ky_error_errno(err, errno, "cannot open it");
		close(fd);
	}
	if (ret < 0 && !err->path[0])
		ky_error_path(err, place->path);
	recovery->n_rings += ret == 0;
	return ret;
}

static void last_name(const char *path, char *name, size_t size)
{
	size_t end = strlen(path), start;

	while (end > 1 && path[end - 1] == '/')
		end--;
	for (start = end; start && path[start - 1] != '/'; start--)
		;
	snprintf(name, size, "%.*s", (int)(end - start), path + start);
}

/* A tracefs instance that the boot before recorded into. */
static int recover_instance(struct recovery *recovery, const char *path, struct kymo_error *err)
{
	struct ky_persistent_ring_stats stats;
	char output[4096], name[256];
	int ret;

	if (!ky_persistent_ring_is_mapped(path)) {
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "this instance is not in memory that survives a reboot");
		ky_error_hint(err, "trace_instance=NAME@... on the kernel's command line makes "
				   "such an instance");
		return ret;
	}
	last_name(path, name, sizeof(name));
	if (snprintf(output, sizeof(output), "%s/%s", recovery->options->output, name) >=
	    (int)sizeof(output))
		return ky_error_set(err, KYMO_E_INVALID, "the path is too long");
	ret = ky_persistent_ring_recover(path, output, &ky_cli_log, &stats, err);
	if (ret < 0)
		return ret;
	recovery->n_rings++;
	recovery->events += stats.events;
	recovery->lost += stats.lost;
	ky_cli_put_text(stdout, path);
	printf(": %" PRIu64 " events of the boot before -> ", stats.events);
	ky_cli_put_text(stdout, output);
	if (stats.lost)
		printf("; %" PRIu64 " older ones were overwritten or lost", stats.lost);
	putchar('\n');
	return KYMO_OK;
}

static void recover_place(struct recovery *recovery, const struct place *place);

static void recover_inner(struct recovery *recovery, const struct place *outer, int dir_fd,
			  const char *name)
{
	struct place place = {dir_fd, name, NULL, outer->depth + 1};
	char path[4096];
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    snprintf(path, sizeof(path), "%s/%s", outer->path, name) >= (int)sizeof(path) ||
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	place.path = path;
	if (S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && ky_user_is_ring_name(name)))
		recover_place(recovery, &place);
}

/* All that is in @dir, which is @place. */
static void recover_directory(struct recovery *recovery, const struct place *place, DIR *dir)
{
	enum ky_user_dir_state state = ky_user_dir_state(dirfd(dir));
	struct dirent *entry;

	if (state == KY_USER_DIR_LIVE) {
		ky_log_warning(&ky_cli_log,
			       "%s is skipped: its recorder still runs, and makes the trace",
			       place->path);
		return;
	}
	while ((entry = readdir(dir)))
		recover_inner(recovery, place, dirfd(dir), entry->d_name);
	if (recovery->options->remove && state == KY_USER_DIR_DEAD)
		ky_user_dir_clean(place->dir_fd, place->name, dirfd(dir));
}

/* What a killed recorder has written of the kernel's events is a trace, up to there. */
static bool is_trace(const char *path)
{
	char metadata[4096];

	return ky_raw_is(path) || (snprintf(metadata, sizeof(metadata), "%s/kernel/metadata",
					    path) < (int)sizeof(metadata) &&
				   access(metadata, F_OK) == 0);
}

/* Files in a directory of somebody may be called as an instance's are. */
static bool is_instance(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && fs.f_type == TRACEFS_MAGIC &&
	       ky_persistent_ring_is_instance(path);
}

static bool is_in_tracefs(int dir_fd)
{
	struct statfs fs;

	return fstatfs(dir_fd, &fs) == 0 && fs.f_type == TRACEFS_MAGIC;
}

/* NULL: not a directory, or none that can be opened. */
static DIR *cmd_recover_open_directory(const struct place *place)
{
	int fd;
	DIR *dir;

	if (place->depth >= DEPTH_MAX)
		return NULL;
	fd = openat(place->dir_fd, place->name,
		    O_RDONLY | O_DIRECTORY | O_CLOEXEC | (place->depth ? O_NOFOLLOW : 0));
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

static void recover_place(struct recovery *recovery, const struct place *place)
{
	/* Below what somebody asked for, others may swap a path, or mount what never answers. */
	bool is_boots = (!place->depth || is_in_tracefs(place->dir_fd)) && is_instance(place->path);
	struct kymo_error err;
	DIR *dir;
	int ret;

	if (!is_boots && !place->depth && is_trace(place->path)) {
		ky_error_set(&err, KYMO_E_INVALID, "this is a recording, not a ring file");
		ky_error_hint(
			&err,
			"kymo print, kymo convert and other commands read it; a damaged one with "
			"--recover");
		cmd_recover_say(&err, place->path);
		recovery->n_failed++;
		return;
	}
	dir = is_boots ? NULL : cmd_recover_open_directory(place);
	if (dir) {
		recover_directory(recovery, place, dir);
		closedir(dir);
		return;
	}
	/* Among others, those of recordings are not meant. */
	if (is_boots && place->depth && !ky_persistent_ring_is_mapped(place->path))
		return;
	ret = is_boots ? recover_instance(recovery, place->path, &err)
		       : recover_file(recovery, place, &err);
	if (ret < 0) {
		cmd_recover_say(&err, place->path);
		recovery->n_failed++;
	}
}

/* "a/b/" is *name "b" in "a", which is opened; @path is changed. */
static int open_parent(char *path, const char **name)
{
	const char *parent = ".";
	char *slash;

	for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
		path[len - 1] = 0;
	slash = strrchr(path, '/');
	*name = slash ? slash + 1 : path;
	if (slash) {
		parent = slash == path ? "/" : path;
		*slash = 0;
	}
	return open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static void recover_path(struct recovery *recovery, const char *path)
{
	struct place place = {-1, NULL, path, 0};
	struct kymo_error err;
	char *copy = strdup(path);

	if (copy)
		place.dir_fd = open_parent(copy, &place.name);
	if (place.dir_fd >= 0) {
		place.name = *place.name ? place.name : ".";
		recover_place(recovery, &place);
		close(place.dir_fd);
	} else {
		ky_error_errno(&err, errno, "cannot open it");
		cmd_recover_say(&err, path);
		recovery->n_failed++;
	}
	free(copy);
}

/* ---- without a path ------------------------------------------------------------------- */

static void recover_stale(void *data, const struct ky_user_stale *stale)
{
	struct recovery *recovery = data;
	/* Not by its path: it is its user's to say what that leads to. */
	const struct place place = {stale->parent_fd, stale->name, stale->path, 1};
	DIR *dir = ky_dir_open(stale->fd, ".");

	if (!dir)
		return;
	recover_directory(recovery, &place, dir);
	closedir(dir);
}

static void cmd_recover_look_everywhere(struct recovery *recovery)
{
	ky_user_stale_scan(NULL, false, recover_stale, recovery);
}

static void say_nothing(bool has_paths)
{
	fputs(has_paths ? "kymo: no ring file found\n"
			: "kymo: no ring file of a killed recorder found; after kymo record "
			  "--shm-path DIR, try 'kymo recover DIR'\n",
	      stderr);
}

static int recover_all(struct recovery *recovery, int n_args, char **args, struct kymo_error *err)
{
	int ret = ky_directory_store_open(recovery->options->output, &recovery->store, err);

	if (ret < 0)
		return ret;
	for (int i = 0; i < n_args; i++)
		recover_path(recovery, args[i]);
	if (!n_args)
		cmd_recover_look_everywhere(recovery);
	ky_store_free(recovery->store);
	return KYMO_OK;
}

static int run_recover(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct recovery recovery = {.options = data};
	struct kymo_error err;
	bool made;

	if (!recovery.options->output)
		return ky_cli_usage(command, "no output directory; give -o DIR");
	if (ky_record_dir_make(recovery.options->output, &made, &err) < 0)
		return ky_cli_error(&err);
	(void)ky_os_boot_id(recovery.boot_id);
	if (recover_all(&recovery, n_args, args, &err) < 0)
		return ky_cli_error(&err);
	if (!recovery.n_rings) {
		if (made)
			(void)rmdir(recovery.options->output);
		if (!recovery.n_failed)
			say_nothing(n_args > 0);
		return KY_EXIT_FAIL;
	}
	printf("%u ring file%s: %" PRIu64 " events recovered, %" PRIu64 " lost.\n",
	       recovery.n_rings, recovery.n_rings == 1 ? "" : "s", recovery.events, recovery.lost);
	return recovery.n_failed ? KY_EXIT_FAIL : KY_EXIT_OK;
}

static const struct ky_option_def option_defs[] = {
	{"output", 'o', KY_OPTION_TEXT, "DIR",
	 "Directory to create for the traces; its parent must exist.",
	 offsetof(struct options, output), NULL},
	{"remove", 0, KY_OPTION_FLAG, NULL, "Remove each ring file that has become a trace.",
	 offsetof(struct options, remove), NULL},
	{0},
};

const struct ky_command ky_command_recover = {
	.name = "recover",
	.is_rare = true,
	.summary = "make traces from ring files of killed recorders",
	.usage = "[OPTIONS] -o DIR [PATH...]",
	.description =
		"Each recorded program writes to a ring file in the session directory. The session "
		"directory is in memory: /run/kymo/uUID/SESSION, /run/user/UID/kymo/SESSION or "
		"/dev/shm/kymo-UID/SESSION; or, with kymo record --shm-path DIR, on disk: "
		"DIR/SESSION, which survives a reboot. The recorder reads and removes these files. "
		"After a killed recorder they remain, with the events that it had not read, and "
		"with later events of the programs until the buffers were full. A ring file "
		"contains its own description, so this command needs only the ring file to make a "
		"trace.\n\n"
		"Without a PATH, the command takes the ring files of killed recorders from these "
		"directories in memory: your own and, as root, those of all users. A PATH is a "
		"ring file or a directory that contains ring files. For each file, the command "
		"prints whether it is complete: how many events the recorder had read (they are in "
		"its trace), how many were lost, and how many cannot be read. A file of an earlier "
		"boot (by its boot ID) never counts as complete, because events may be missing "
		"that were not on disk at the end of that boot.\n\n"
		"The command changes no file, unless --remove is given. No program should still "
		"write to the files. The command skips a session whose recorder still runs.\n\n"
		"A PATH may also be a tracefs instance in memory that survives a reboot (Linux "
		"6.12: on the kernel's command line, reserve_mem=20M:2M:trace "
		"trace_instance=NAME^traceoff@trace), or the directory of all instances. The "
		"events that the instance had when the machine crashed or was reset become the "
		"trace DIR/NAME. Reading removes the events from the kernel's buffer. Their times "
		"count from that boot, because its date is unknown. The running kernel must be the "
		"same as the one that crashed, because the command uses the event formats of this "
		"boot. At boot, the kernel drops the buffer of a CPU if it is inconsistent.",
	.examples = "# the ring files of killed recorders; as root, of all users\n"
		    "kymo recover --remove -o found\n\n"
		    "# the kernel's events before a crash of the machine\n"
		    "kymo recover -o crash /sys/kernel/tracing/instances\n\n"
		    "# the ring files of kymo record --shm-path, after a reboot\n"
		    "kymo recover --remove -o found /var/lib/shop-trace\n\n"
		    "# the ring file of one program\nkymo recover -o found 4711-2f0a1b-shop.ring",
	.see_also = "record print info",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.min_args = 0,
	.max_args = -1,
	.run = run_recover,
};
