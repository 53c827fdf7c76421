/* SPDX-License-Identifier: MIT */
/* kymo doctor: privileges and tracefs, by making an instance and recording with it. */
#include "cli/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/file.h"

#define TRACEFS_MAGIC 0x74726163
#define TEXT_MAX      65536

static const char *const mount_points[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

/* The instance that is tried, and a buffer for its files. */
struct trial {
	struct ky_doctor *doctor;
	int instances_fd, fd;
	char name[64];
	struct ky_strbuf text;
};

static const char *read_text(struct trial *trial, int dirfd, const char *name)
{
	if (ky_read_file(dirfd, name, TEXT_MAX, &trial->text) < 0)
		return NULL;
	return ky_strbuf_text(&trial->text);
}

/* 0 or -errno. */
static int write_text(int dirfd, const char *name, const char *text)
{
	int fd = openat(dirfd, name, O_WRONLY | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = ky_write_all(fd, text, strlen(text));
	close(fd);
	return ret;
}

static void check_privileges(struct ky_doctor *doctor)
{
	if (geteuid() == 0) {
		ky_doctor_add(doctor, "privileges", KY_CHECK_OK, "root");
		return;
	}
	ky_doctor_add(doctor, "privileges", KY_CHECK_WARN,
		      "user %u, not root: the state dump shows only this user's open files",
		      (unsigned int)geteuid());
	ky_doctor_advice(doctor, "run kymo with sudo");
}

static const char *find_tracefs(void)
{
	struct statfs fs;

	for (size_t i = 0; i < sizeof(mount_points) / sizeof(mount_points[0]); i++)
		if (statfs(mount_points[i], &fs) == 0 && fs.f_type == TRACEFS_MAGIC)
			return mount_points[i];
	return NULL;
}

static int open_instances(struct ky_doctor *doctor)
{
	const char *path = find_tracefs();
	char instances[64];
	int fd;

	if (!path) {
		ky_doctor_add(doctor, "tracefs", KY_CHECK_FAIL,
			      "not mounted, or not for this user to see");
		ky_doctor_advice(doctor,
				 "as root: mount -t tracefs nodev /sys/kernel/tracing; if that "
				 "fails the kernel was built without CONFIG_TRACING, or this is "
				 "a container without access to it");
		return -1;
	}
	snprintf(instances, sizeof(instances), "%s/instances", path);
	fd = open(instances, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && faccessat(fd, ".", W_OK, AT_EACCESS) == 0) {
		ky_doctor_add(doctor, "tracefs", KY_CHECK_OK, "%s", path);
		return fd;
	}
	ky_doctor_add(doctor, "tracefs", KY_CHECK_FAIL, "%s: %s", instances, strerror(errno));
	ky_doctor_advice(doctor, errno == ENOENT ? "the kernel was built without tracing instances"
						 : "run kymo with sudo");
	if (fd >= 0)
		close(fd);
	return -1;
}

/* ---- the trial instance ----------------------------------------------------------------- */

static bool trial_open(struct trial *trial)
{
	snprintf(trial->name, sizeof(trial->name), "kymo-%d-doctor", (int)getpid());
	if (mkdirat(trial->instances_fd, trial->name, 0700) < 0) {
		ky_doctor_add(trial->doctor, "instance", KY_CHECK_FAIL, "cannot make one: %s",
			      strerror(errno));
		ky_doctor_advice(trial->doctor,
				 errno == EPERM || errno == EACCES
					 ? "run kymo with sudo; check 'lockdown' below"
					 : "free some memory, or remove unused instances");
		return false;
	}
	trial->fd = openat(trial->instances_fd, trial->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return trial->fd >= 0;
}

static void trial_close(struct trial *trial)
{
	const struct timespec pause = {0, 10 * 1000 * 1000};

	if (trial->fd >= 0)
		close(trial->fd);
	/* EBUSY while the kernel lets go of the last reader. */
	for (int i = 0; i < 50; i++) {
		if (unlinkat(trial->instances_fd, trial->name, AT_REMOVEDIR) == 0 || errno != EBUSY)
			return;
		nanosleep(&pause, NULL);
	}
}

/* The number behind "entries: " in a per-CPU stats file. */
static unsigned long entries_in(const char *stats)
{
	const char *at = stats ? strstr(stats, "entries: ") : NULL;

	return at ? strtoul(at + 9, NULL, 10) : 0;
}

/* The first CPU's directory below per_cpu, and all events recorded so far. */
static unsigned long count_entries(struct trial *trial, char first_cpu[64])
{
	int fd = openat(trial->fd, "per_cpu", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	unsigned long total = 0;
	struct dirent *entry;

	*first_cpu = '\0';
	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		char path[NAME_MAX + 16];

		if (strncmp(entry->d_name, "cpu", 3) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/stats", entry->d_name);
		total += entries_in(read_text(trial, dirfd(dir), path));
		if (!*first_cpu)
			snprintf(first_cpu, 64, "per_cpu/%.40s", entry->d_name);
	}
	closedir(dir);
	return total;
}

static void try_recording(struct trial *trial, char first_cpu[64])
{
	const struct timespec pause = {0, 2 * 1000 * 1000};
	unsigned long entries = 0;
	int ret = write_text(trial->fd, "events/sched/sched_switch/enable", "1");

	/* Sleeping switches, so there is something to see. */
	for (int i = 0; i < 50 && ret == 0 && !entries; i++) {
		nanosleep(&pause, NULL);
		entries = count_entries(trial, first_cpu);
	}
	(void)write_text(trial->fd, "events/sched/sched_switch/enable", "0");
	if (entries) {
		ky_doctor_add(trial->doctor, "instance", KY_CHECK_OK,
			      "made one, switched sched_switch on, events arrived");
		return;
	}
	ky_doctor_add(trial->doctor, "instance", KY_CHECK_FAIL, "%s%s",
		      ret ? "cannot switch sched_switch on: " : "no event arrived within 100 ms",
		      ret ? strerror(-ret) : "");
	ky_doctor_advice(trial->doctor, ret == -ENOENT
						? "the kernel was built without its events "
						  "(CONFIG_EVENT_TRACING, CONFIG_SCHED_TRACER)"
						: "look at tracing_on and at 'lockdown' below");
}

static void try_clock(struct trial *trial)
{
	struct ky_os_clock clock;
	struct kymo_error err;
	int ret = ky_os_clock_init(&clock, KY_OS_CLOCK_AUTO, &err);

	if (ret == KYMO_OK && write_text(trial->fd, "trace_clock", clock.tracefs_name) == 0) {
		ky_doctor_add(trial->doctor, "trace clock", KY_CHECK_OK,
			      "%s, at %.6f MHz; maps to wall time within %llu ns",
			      clock.tracefs_name, (double)clock.frequency_hz / 1e6,
			      (unsigned long long)clock.precision_ns);
		return;
	}
	if (write_text(trial->fd, "trace_clock", "mono") == 0) {
		ky_doctor_add(trial->doctor, "trace clock", KY_CHECK_OK, "mono");
		return;
	}
	ky_doctor_add(trial->doctor, "trace clock", KY_CHECK_FAIL,
		      "the kernel takes neither x86-tsc nor mono");
	ky_doctor_advice(trial->doctor, "Kymo needs Linux 3.17 or later");
}

/* 0 or an errno: mapping a CPU's buffer. The first word of its meta page is that page's size. */
static int map_ring(const struct trial *trial, const char *cpu)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	const uint32_t *meta;
	char path[96];
	int fd, ret = 0;

	snprintf(path, sizeof(path), "%s/trace_pipe_raw", cpu);
	fd = openat(trial->fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno;
	meta = mmap(NULL, page_bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (meta == MAP_FAILED) {
		ret = errno;
	} else {
		ret = *meta % page_bytes ? EINVAL : 0;
		munmap((void *)meta, page_bytes);
	}
	close(fd);
	return ret;
}

static void try_ring(struct trial *trial, const char *cpu)
{
	int errnum = map_ring(trial, cpu);

	if (!errnum) {
		ky_doctor_add(trial->doctor, "ring buffer", KY_CHECK_OK, "can be mapped");
		return;
	}
	ky_doctor_add(trial->doctor, "ring buffer", KY_CHECK_WARN,
		      "cannot be mapped (%s): it is read with splice or read, which costs more",
		      strerror(errnum));
	ky_doctor_advice(trial->doctor, "Linux 6.10 and later can map it");
}

static void check_events(struct trial *trial)
{
	static const char *const wanted[] = {"sched", "irq",   "block", "net",
					     "power", "timer", "kmem"};
	char missing[128] = "";

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "events/%s/enable", wanted[i]);
		if (faccessat(trial->fd, path, F_OK, 0) < 0) {
			strcat(missing, " ");
			strcat(missing, wanted[i]);
		}
	}
	if (!*missing) {
		ky_doctor_add(trial->doctor, "events", KY_CHECK_OK,
			      "sched irq block net power timer kmem");
		return;
	}
	ky_doctor_add(trial->doctor, "events", KY_CHECK_WARN,
		      "this kernel has no events of:%s; reports on them stay empty", missing);
}

static void check_syscalls(struct trial *trial)
{
	bool named = faccessat(trial->fd, "events/syscalls/enable", F_OK, 0) == 0;
	bool raw = faccessat(trial->fd, "events/raw_syscalls/enable", F_OK, 0) == 0;

	if (named)
		ky_doctor_add(trial->doctor, "syscalls", KY_CHECK_OK,
			      "with the names of their arguments");
	else if (raw)
		ky_doctor_add(trial->doctor, "syscalls", KY_CHECK_WARN,
			      "by number only (no CONFIG_FTRACE_SYSCALLS)");
	else
		ky_doctor_add(trial->doctor, "syscalls", KY_CHECK_WARN,
			      "cannot be recorded: the kernel has no events for them");
	if (!named)
		ky_doctor_advice(trial->doctor,
				 "a kernel with CONFIG_FTRACE_SYSCALLS=y has them all");
}

/* A signal now would leave the instance behind. */
static void run_trial(struct ky_doctor *doctor, int instances_fd)
{
	struct trial trial = {.doctor = doctor, .instances_fd = instances_fd, .fd = -1};
	sigset_t block, old;
	char first_cpu[64];

	sigfillset(&block);
	sigprocmask(SIG_BLOCK, &block, &old);
	if (trial_open(&trial)) {
		try_recording(&trial, first_cpu);
		try_clock(&trial);
		try_ring(&trial, first_cpu);
		check_events(&trial);
		check_syscalls(&trial);
	}
	trial_close(&trial);
	sigprocmask(SIG_SETMASK, &old, NULL);
	ky_strbuf_fini(&trial.text);
}

/* ---- leftovers -------------------------------------------------------------------------- */

static bool is_stale(const char *name)
{
	char path[32];
	int pid;

	if (sscanf(name, "kymo-%d", &pid) != 1 || pid <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d", pid);
	return access(path, F_OK) < 0;
}

static void check_leftovers(struct ky_doctor *doctor, int instances_fd)
{
	int fd = openat(instances_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	unsigned int stale = 0, others = 0;
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (is_stale(entry->d_name))
			stale++;
		else
			others++;
	}
	closedir(dir);
	ky_doctor_add(doctor, "leftovers", stale ? KY_CHECK_WARN : KY_CHECK_OK,
		      "%u tracefs instances of recordings that died, %u in use", stale, others);
	if (stale)
		ky_doctor_advice(doctor, "the next kymo record removes them");
}

void ky_doctor_tracing(struct ky_doctor *doctor)
{
	int fd;

	check_privileges(doctor);
	fd = open_instances(doctor);
	if (fd < 0)
		return;
	run_trial(doctor, fd);
	check_leftovers(doctor, fd);
	close(fd);
}
