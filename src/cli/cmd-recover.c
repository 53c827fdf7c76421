/* SPDX-License-Identifier: MIT */
/* kymo recover: ring files that killed programs, recorders and machines left become traces. */
#include "cli/command.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "os/clock.h"
#include "record/boot.h"
#include "record/output.h"
#include "record/raw.h"
#include "record/user-ring.h"
#include "record/user-runtime.h"

/* Directories within directories: a runtime directory has sessions', those have ring files. */
#define DEPTH_MAX 3

struct options {
	const char *output;
	bool remove;
};

struct recovery {
	const struct options *options;
	uint8_t boot_id[16]; /* zeros: not known */
	unsigned int n_rings, n_failed;
	uint64_t events, lost;
};

static void say(const struct kymo_error *err, const char *path)
{
	struct kymo_error copy = *err;

	if (!copy.path[0])
		ky_error_path(&copy, path);
	(void)ky_cli_error(&copy);
}

/* What is complete, and what is not. */
static void report(struct recovery *recovery, const struct ky_user_ring *ring, const char *path)
{
	uint64_t lost = ky_user_ring_lost(ring);
	const struct ky_blob *blob = ky_user_ring_blob(ring);

	recovery->events += ring->events;
	if (__builtin_add_overflow(recovery->lost, lost, &recovery->lost))
		recovery->lost = UINT64_MAX;
	ky_cli_put_text(stdout, path);
	printf(": %" PRIu64 " events of process %" PRIu32 " -> ", ring->events, blob->pid);
	ky_cli_put_text(stdout, ring->trace.path);
	if (ring->stats.overwritten)
		printf("; %" PRIu64 " older ones were overwritten", ring->stats.overwritten);
	if (ring->stats.records > ring->events + ring->unread + ring->stats.overwritten)
		printf("; %" PRIu64 " were read before",
		       ring->stats.records - ring->events - ring->unread - ring->stats.overwritten);
	if (lost)
		printf("; %" PRIu64 " were lost while it was recorded", lost);
	if (ring->lost_claimed)
		printf("; it claims that %" PRIu64 " were lost, which cannot be",
		       ring->lost_claimed);
	if (ring->is_broken || ring->n_damaged)
		printf("; damaged: %" PRIu64 " could not be read", ring->unread);
	else if (ky_user_blob_is_of_earlier_boot(blob, recovery->boot_id))
		printf("; the machine was started anew since: of what was not on disk by then, events may "
		       "be missing");
	else if (!lost && !ring->lost_claimed)
		printf("; complete");
	putchar('\n');
}

static int recover_file(struct recovery *recovery, const char *path, struct kymo_error *err)
{
	struct ky_user_ring_options options = {
		.output = recovery->options->output, .log = &ky_cli_log, .read_only = true};
	const char *name = strrchr(path, '/');
	struct ky_user_ring *ring;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), ret;

	if (fd < 0) {
		ret = ky_error_errno(err, errno, "cannot open it");
		ky_error_path(err, path);
		return ret;
	}
	ret = ky_user_ring_open(fd, name ? name + 1 : path, &options, &ring, err);
	if (!ret) {
		ret = ky_user_ring_finish(ring, err);
		if (!ret)
			report(recovery, ring, path);
		if (!ret && recovery->options->remove && !ring->is_broken)
			(void)unlink(path);
		ky_user_ring_free(ring);
	}
	if (ret < 0 && !err->path[0])
		ky_error_path(err, path);
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
	struct ky_boot_stats stats;
	char output[4096], name[256];
	int ret;

	if (!ky_boot_is_mapped(path)) {
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "this instance is not in memory that outlives a boot");
		ky_error_hint(err, "only those of trace_instance=NAME@... on the kernel's command "
				   "line are");
		return ret;
	}
	last_name(path, name, sizeof(name));
	if (snprintf(output, sizeof(output), "%s/%s", recovery->options->output, name) >=
	    (int)sizeof(output))
		return ky_error_set(err, KYMO_E_INVALID, "the path is too long");
	ret = ky_boot_recover(path, output, &ky_cli_log, &stats, err);
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

static void recover_path(struct recovery *recovery, const char *path, int depth);

static void recover_directory(struct recovery *recovery, const char *path, DIR *dir, int depth)
{
	enum ky_user_dir_state state = ky_user_dir_state(path);
	struct dirent *entry;
	char inner[4096];

	if (state == KY_USER_DIR_LIVE) {
		ky_log_warning(&ky_cli_log,
			       "%s is left out: its recorder runs, and makes the trace", path);
		return;
	}
	while ((entry = readdir(dir))) {
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name) >=
		    (int)sizeof(inner))
			continue;
		if (lstat(inner, &st) == 0 &&
		    (S_ISDIR(st.st_mode) ||
		     (S_ISREG(st.st_mode) && ky_user_is_ring_name(entry->d_name))))
			recover_path(recovery, inner, depth + 1);
	}
	if (recovery->options->remove && state == KY_USER_DIR_DEAD)
		ky_user_dir_clean(path);
}

/* What a killed recorder has written of the kernel's events is a trace, up to there. */
static bool is_trace(const char *path)
{
	char metadata[4096];

	return ky_raw_is(path) || (snprintf(metadata, sizeof(metadata), "%s/kernel/metadata",
					    path) < (int)sizeof(metadata) &&
				   access(metadata, F_OK) == 0);
}

static void recover_path(struct recovery *recovery, const char *path, int depth)
{
	bool is_instance = ky_boot_is_instance(path);
	struct kymo_error err;
	DIR *dir;
	int ret;

	if (!is_instance && !depth && is_trace(path)) {
		ky_error_set(&err, KYMO_E_INVALID, "this is a recording, as far as it was written");
		ky_error_hint(
			&err,
			"kymo print, kymo convert and the others read it as it is, damaged ones with --recover");
		say(&err, path);
		recovery->n_failed++;
		return;
	}
	dir = !is_instance && depth < DEPTH_MAX ? opendir(path) : NULL;
	if (dir) {
		recover_directory(recovery, path, dir, depth);
		closedir(dir);
		return;
	}
	/* Among others, those of recordings are not meant. */
	if (is_instance && depth && !ky_boot_is_mapped(path))
		return;
	ret = is_instance ? recover_instance(recovery, path, &err)
			  : recover_file(recovery, path, &err);
	if (ret < 0) {
		say(&err, path);
		recovery->n_failed++;
	}
}

static int run_recover(const struct ky_command *command, void *data, int n_args, char **args)
{
	struct recovery recovery = {.options = data};
	struct kymo_error err;
	bool made;

	if (!recovery.options->output)
		return ky_cli_usage(command, "where to? Give a directory: -o DIR");
	if (ky_output_make(recovery.options->output, &made, &err) < 0)
		return ky_cli_error(&err);
	(void)ky_os_boot_id(recovery.boot_id);
	for (int i = 0; i < n_args; i++)
		recover_path(&recovery, args[i], 0);
	if (!recovery.n_rings) {
		if (made)
			(void)rmdir(recovery.options->output);
		if (!recovery.n_failed)
			fputs("kymo: there is no ring file\n", stderr);
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
	.summary = "make traces of what killed recorders, or the boot before, left",
	.usage = "[OPTIONS] -o DIR PATH...",
	.description =
		"While programs are recorded, each writes to a ring file in the session's directory, in "
		"memory: /run/kymo/uUID/SESSION, /run/user/UID/kymo/SESSION or /dev/shm/kymo-UID/SESSION; or, "
		"with kymo record --shm-path DIR, on disk: DIR/SESSION, which outlives a reboot. "
		"The recorder empties and removes these files. When it is killed, they stay, with what it "
		"had not read yet, and what programs wrote after that, until the buffers were full. A ring "
		"file describes itself: this command makes a trace of it, and needs nothing else.\n\n"
		"A PATH is a ring file or a directory in which there are any. For each it says whether it is "
		"complete: how many events were read before by the recorder (they are in its trace), how "
		"many were lost, and how many cannot be read. No file of an earlier boot (by the boot id in it) is "
		"called complete, since nobody can tell what had not been written to disk.\n\n"
		"The files are not changed, unless --remove is given. Nobody should be writing to them; a session "
		"whose recorder still runs is left out.\n\n"
		"A PATH may also be an instance of tracefs in memory that outlives a reboot (Linux 6.12: on the "
		"kernel's command line, reserve_mem=20M:2M:trace trace_instance=NAME^traceoff@trace), or the "
		"directory of all instances, of which those are meant. What was recorded into it when the "
		"machine crashed or was reset becomes the trace DIR/NAME. That takes it out of the "
		"kernel's buffer. Its times count from that boot, for nobody knows when that was. "
		"It must be the same kernel: the formats of events are this boot's. Where the kernel finds "
		"a CPU's buffer inconsistent, it has dropped it at boot.",
	.examples = "# what a killed recorder left\n"
		    "kymo recover --remove -o found /dev/shm/kymo-$(id -u)\n\n"
		    "# what the kernel recorded before the machine crashed\n"
		    "kymo recover -o crash /sys/kernel/tracing/instances\n\n"
		    "# what kymo record --shm-path left on disk before the machine went down\n"
		    "kymo recover --remove -o found /var/lib/shop-trace\n\n"
		    "# one program\nkymo recover -o found 4711-2f0a1b-shop.ring",
	.see_also = "record print info",
	.options = option_defs,
	.options_size = sizeof(struct options),
	.min_args = 1,
	.max_args = -1,
	.run = run_recover,
};
