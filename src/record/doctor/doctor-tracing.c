/* SPDX-License-Identifier: MIT */
/* kymo doctor: privileges and tracefs, by making an instance and recording with it. */
#include "record/doctor/doctor.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "kernel/switches/switches.h"
#include "kernel/tracefs/format.h"
#include "kernel/tracefs/cpu-ring-map.h"
#include "kernel/tracefs/tracefs.h"
#include "os/clock.h"
#include "os/file.h"

#define TEXT_MAX      65536
#define SWITCH_ENABLE "events/sched/sched_switch/enable"

/* The instance that is tried, and a buffer for its files. */
struct trial {
	struct ky_doctor *doctor;
	const struct ky_tracefs *fs;
	struct ky_instance instance;
	struct ky_strbuf text;
};

static const char *doctor_tracing_read_text(struct trial *trial, int dirfd, const char *name)
{
	if (ky_read_file(dirfd, name, TEXT_MAX, &trial->text) < 0)
		return NULL;
	return ky_strbuf_text(&trial->text);
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

/* A failure of the recorder's own parts, with their message. */
static void add_failure(struct ky_doctor *doctor, const char *name, const struct kymo_error *err)
{
	ky_doctor_add(doctor, name, KY_CHECK_FAIL, "%s%s%s", err->path, err->path[0] ? ": " : "",
		      err->message);
	ky_doctor_advice(doctor, "%s", err->hint);
}

/* ---- the trial instance ----------------------------------------------------------------- */

static bool trial_open(struct trial *trial)
{
	struct kymo_error err;
	int ret = ky_instance_create(trial->fs, "", &trial->instance, &err);

	if (ret == KYMO_OK)
		ret = ky_instance_write(&trial->instance, "tracing_on", "1", &err);
	if (ret == KYMO_OK)
		return true;
	add_failure(trial->doctor, "instance", &err);
	if (!err.hint[0])
		ky_doctor_advice(trial->doctor,
				 "free some memory, or look at 'lockdown' and 'leftovers' below");
	return false;
}

static void trial_close(struct trial *trial)
{
	const struct timespec pause = {0, 10 * 1000 * 1000};

	/* It is busy while the kernel lets go of the last reader. */
	for (int i = 0; i < 50 && ky_instance_remove(&trial->instance, NULL) < 0; i++)
		nanosleep(&pause, NULL);
}

/* The number behind "entries: " in a per-CPU stats file. */
static unsigned long entries_in(const char *stats)
{
	const char *at = stats ? strstr(stats, "entries: ") : NULL;

	return at ? strtoul(at + 9, NULL, 10) : 0;
}

/* The first CPU's directory below per_cpu, and all events recorded so far. */
static unsigned long doctor_tracing_count_entries(struct trial *trial, char first_cpu[64])
{
	DIR *dir = ky_dir_open(trial->instance.fd, "per_cpu");
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
		total += entries_in(doctor_tracing_read_text(trial, dirfd(dir), path));
		if (!*first_cpu)
			snprintf(first_cpu, 64, "per_cpu/%.40s", entry->d_name);
	}
	closedir(dir);
	return total;
}

static void try_recording(struct trial *trial, char first_cpu[64])
{
	const struct timespec pause = {0, 2 * 1000 * 1000};
	const struct ky_instance *instance = &trial->instance;
	unsigned long entries = 0;
	struct kymo_error err;
	int ret = ky_instance_write(instance, SWITCH_ENABLE, "1", &err);

	/* Sleeping switches, so there is something to see. */
	for (int i = 0; i < 50 && ret == 0 && !entries; i++) {
		nanosleep(&pause, NULL);
		entries = doctor_tracing_count_entries(trial, first_cpu);
	}
	if (ret < 0) {
		add_failure(trial->doctor, "instance", &err);
		return;
	}
	(void)ky_instance_write(instance, SWITCH_ENABLE, "0", NULL);
	if (entries) {
		ky_doctor_add(trial->doctor, "instance", KY_CHECK_OK,
			      "made one, switched sched_switch on, events arrived");
		return;
	}
	ky_doctor_add(trial->doctor, "instance", KY_CHECK_FAIL, "no event arrived within 100 ms");
	ky_doctor_advice(trial->doctor, "look at 'lockdown' below");
}

/* Do switches from every CPU's idle task get into the ring? */
static void try_switches(struct trial *trial)
{
	struct ky_switches_found found;
	struct ky_switches *switches;
	struct kymo_error err;

	if (ky_switches_open(&switches, NULL) < 0) {
		ky_doctor_add(trial->doctor, "switches", KY_CHECK_WARN,
			      "without BPF, it is unknown whether the kernel records those from "
			      "idle, and recordings lack those that it does not record");
		ky_doctor_advice(trial->doctor, "see 'bpf' below");
		return;
	}
	(void)ky_instance_write(&trial->instance, "tracing_on", "0", NULL);
	if (ky_switches_test(switches, &trial->instance, &found, &err) < 0)
		add_failure(trial->doctor, "switches", &err);
	else if (!found.n_tested)
		ky_doctor_add(
			trial->doctor, "switches", KY_CHECK_WARN,
			"no CPU was idle during the test, so it is unknown whether the kernel "
			"records those from idle; recordings find out");
	else if (!found.n_lacking)
		ky_doctor_add(trial->doctor, "switches", KY_CHECK_OK,
			      "those from idle were recorded on each of %u CPU%s that had some",
			      found.n_tested, found.n_tested == 1 ? "" : "s");
	else
		ky_doctor_add(
			trial->doctor, "switches", KY_CHECK_OK,
			"the kernel does not record those from idle on %u of %u CPUs (CPU %u); "
			"recordings of the whole machine take them from BPF",
			found.n_lacking, found.n_tested, found.first_lacking);
	(void)ky_instance_write(&trial->instance, "tracing_on", "1", NULL);
	ky_switches_close(switches);
}

static void try_clock(struct trial *trial)
{
	struct ky_os_clock clock;
	struct kymo_error err;
	int ret = ky_os_clock_init(&clock, KY_OS_CLOCK_AUTO, &err);

	if (ret == KYMO_OK &&
	    ky_instance_write(&trial->instance, "trace_clock", clock.tracefs_name, NULL) == 0) {
		ky_doctor_add(trial->doctor, "trace clock", KY_CHECK_OK,
			      "%s, at %.6f MHz; maps to wall time within %llu ns",
			      clock.tracefs_name, (double)clock.frequency_hz / 1e6,
			      (unsigned long long)clock.precision_ns);
		return;
	}
	if (ky_instance_write(&trial->instance, "trace_clock", "mono", NULL) == 0) {
		ky_doctor_add(trial->doctor, "trace clock", KY_CHECK_OK, "mono");
		return;
	}
	ky_doctor_add(trial->doctor, "trace clock", KY_CHECK_FAIL,
		      "the kernel takes neither x86-tsc nor mono");
	ky_doctor_advice(trial->doctor, "Kymo needs Linux 3.17 or later");
}

/* 0 or why not: mapping a CPU's buffer. */
static int doctor_tracing_map_ring(struct trial *trial, const char *cpu, struct kymo_error *err)
{
	uint32_t page_bytes = (uint32_t)sysconf(_SC_PAGESIZE); /* of a new instance */
	struct ky_page_layout layout;
	struct ky_cpu_ring_map map;
	const char *text;
	char path[96];
	int fd, ret;

	text = doctor_tracing_read_text(trial, trial->instance.fd, "events/header_page");
	ret = ky_page_layout_parse(text ? text : "", trial->text.len, &layout, err);
	if (ret < 0)
		return ret;
	snprintf(path, sizeof(path), "%s/trace_pipe_raw", cpu);
	fd = openat(trial->instance.fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return ky_error_errno(err, errno, "cannot open the ring buffer");
	ret = ky_cpu_ring_map_open(&map, fd, page_bytes, &layout, err);
	ky_cpu_ring_map_close(&map);
	close(fd);
	return ret;
}

/* 0 or an errno: moving whole pages out of a CPU's buffer, which is how Kymo reads it. */
static int splice_ring(const struct trial *trial, const char *cpu)
{
	char path[96];
	int fd, pipe_fds[2], ret = 0;

	snprintf(path, sizeof(path), "%s/trace_pipe_raw", cpu);
	fd = openat(trial->instance.fd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return errno;
	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		ret = errno;
	} else {
		/* EAGAIN: no more data, which is not a failure. */
		if (splice(fd, NULL, pipe_fds[1], NULL, (size_t)sysconf(_SC_PAGESIZE),
			   SPLICE_F_NONBLOCK) < 0 &&
		    errno != EAGAIN)
			ret = errno;
		close(pipe_fds[0]);
		close(pipe_fds[1]);
	}
	close(fd);
	return ret;
}

static void try_ring(struct trial *trial, const char *cpu)
{
	struct kymo_error err;
	int errnum = splice_ring(trial, cpu);

	if (errnum) {
		ky_doctor_add(trial->doctor, "ring buffer", KY_CHECK_WARN,
			      "cannot be read by splice: %s", strerror(errnum));
		ky_doctor_advice(trial->doctor, "read() does it, at a slightly higher cost");
	} else if (doctor_tracing_map_ring(trial, cpu, &err) < 0) {
		ky_doctor_add(trial->doctor, "ring buffer", KY_CHECK_OK, "read by splice alone: %s",
			      err.message);
	} else {
		ky_doctor_add(trial->doctor, "ring buffer", KY_CHECK_OK,
			      "read by splice, or by mmap while it has few events");
	}
}

static void doctor_tracing_check_events(struct trial *trial)
{
	static const char *const wanted[] = {"sched", "irq",   "block", "net",
					     "power", "timer", "kmem"};
	char missing[128] = "";
	size_t len = 0;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "events/%s/enable", wanted[i]);
		if (faccessat(trial->instance.fd, path, F_OK, 0) < 0) {
			snprintf(missing + len, sizeof(missing) - len, " %s", wanted[i]);
			len += strlen(missing + len);
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
	bool named = faccessat(trial->instance.fd, "events/syscalls/enable", F_OK, 0) == 0;
	bool raw = faccessat(trial->instance.fd, "events/raw_syscalls/enable", F_OK, 0) == 0;

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
static void run_trial(struct ky_doctor *doctor, const struct ky_tracefs *fs)
{
	struct trial trial = {.doctor = doctor, .fs = fs};
	sigset_t block, old;
	char first_cpu[64];

	sigfillset(&block);
	sigprocmask(SIG_BLOCK, &block, &old);
	if (trial_open(&trial)) {
		try_switches(&trial);
		try_recording(&trial, first_cpu);
		try_clock(&trial);
		try_ring(&trial, first_cpu);
		doctor_tracing_check_events(&trial);
		check_syscalls(&trial);
	}
	trial_close(&trial);
	sigprocmask(SIG_SETMASK, &old, NULL);
	ky_strbuf_fini(&trial.text);
}

static void doctor_tracing_check_leftovers(struct ky_doctor *doctor, const struct ky_tracefs *fs)
{
	DIR *dir = ky_dir_open(fs->fd, "instances");
	unsigned int stale = 0, others = 0;
	struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (ky_tracefs_is_stale(entry->d_name))
			stale++;
		else
			others++;
	}
	closedir(dir);
	ky_doctor_add(doctor, "leftovers", stale ? KY_CHECK_WARN : KY_CHECK_OK,
		      "%u tracefs instance%s of recordings that died, %u in use", stale,
		      stale == 1 ? "" : "s", others);
	if (stale)
		ky_doctor_advice(doctor, "the next kymo record removes them");
}

void ky_doctor_tracing(struct ky_doctor *doctor)
{
	struct kymo_error err;
	struct ky_tracefs fs;

	check_privileges(doctor);
	if (ky_tracefs_open(&fs, &err) < 0) {
		add_failure(doctor, "tracefs", &err);
		return;
	}
	ky_doctor_add(doctor, "tracefs", KY_CHECK_OK, "%s", fs.path);
	run_trial(doctor, &fs);
	doctor_tracing_check_leftovers(doctor, &fs);
	ky_tracefs_close(&fs);
}
