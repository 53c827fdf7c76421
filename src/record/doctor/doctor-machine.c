/* SPDX-License-Identifier: MIT */
/* kymo doctor: clock, CPUs, memory, disk, containers. */
#include "record/doctor/doctor.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/text.h"
#include "os/clock.h"

#define DISK_LITTLE_BYTES   (UINT64_C(1) << 30)
#define MEMORY_LITTLE_BYTES (UINT64_C(256) << 20)
/* The inode number of the first pid namespace is part of the kernel's interface. */
#define PID_INIT_INO 0xEFFFFFFCu

static void check_clock(struct ky_doctor *doctor)
{
	const char *why = ky_os_tsc_unsound();
	char source[64];

	ky_os_clocksource(source);
	if (!why) {
		ky_doctor_add(doctor, "tsc", KY_CHECK_OK,
			      "invariant, and the kernel keeps time by it");
		return;
	}
	ky_doctor_add(doctor, "tsc", KY_CHECK_WARN,
		      "not used: %s (clocksource %s); the monotonic clock is, at some 10 ns more "
		      "per event",
		      why, source);
	ky_doctor_advice(doctor,
			 "if the machine's TSC is sound: boot with tsc=reliable, or write tsc to "
			 "the file current_clocksource in "
			 "/sys/devices/system/clocksource/clocksource0");
}

static void check_cpus_memory(struct ky_doctor *doctor)
{
	char total[32], available[32];
	struct sysinfo info;
	uint64_t free_bytes;

	if (sysinfo(&info) < 0)
		return;
	free_bytes = (uint64_t)(info.freeram + info.bufferram) * info.mem_unit;
	ky_doctor_add(doctor, "cpus", KY_CHECK_OK, "%ld online of %ld",
		      sysconf(_SC_NPROCESSORS_ONLN), sysconf(_SC_NPROCESSORS_CONF));
	ky_doctor_add(doctor, "memory",
		      free_bytes < MEMORY_LITTLE_BYTES ? KY_CHECK_WARN : KY_CHECK_OK,
		      "%s free of %s", ky_format_bytes(available, free_bytes),
		      ky_format_bytes(total, (uint64_t)info.totalram * info.mem_unit));
	if (free_bytes < MEMORY_LITTLE_BYTES)
		ky_doctor_advice(doctor,
				 "record with a small --buffer-size: it is taken once per CPU");
}

static void check_disk(struct ky_doctor *doctor)
{
	struct statvfs fs;
	uint64_t free_bytes;
	char text[32];

	if (statvfs(".", &fs) < 0) {
		ky_doctor_add(doctor, "disk", KY_CHECK_WARN, "the current directory: %s",
			      strerror(errno));
		return;
	}
	free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	ky_doctor_add(doctor, "disk", free_bytes < DISK_LITTLE_BYTES ? KY_CHECK_WARN : KY_CHECK_OK,
		      "%s free in the current directory%s", ky_format_bytes(text, free_bytes),
		      fs.f_flag & ST_RDONLY ? ", which is read-only" : "");
	if (free_bytes < DISK_LITTLE_BYTES)
		ky_doctor_advice(
			doctor,
			"a busy machine fills some 10 MB/s per CPU; name another place with "
			"kymo record -o");
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void check_container(struct ky_doctor *doctor)
{
	bool inner_pids = false;
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) == 0)
		inner_pids = st.st_ino != PID_INIT_INO;
	if (inner_pids) {
		ky_doctor_add(doctor, "container", KY_CHECK_WARN,
			      "this is an inner pid namespace: events carry the host's thread ids, "
			      "the state dump carries the container's, and they do not match");
		ky_doctor_advice(doctor,
				 "record from the host, or in the host's pid namespace (docker run "
				 "--pid=host --privileged)");
		return;
	}
	ky_doctor_add(doctor, "container", KY_CHECK_OK, "%s",
		      exists("/.dockerenv") || exists("/run/.containerenv") ||
				      exists("/run/systemd/container")
			      ? "yes, but with the host's pid namespace"
			      : "no");
}

void ky_doctor_machine(struct ky_doctor *doctor)
{
	check_clock(doctor);
	check_cpus_memory(doctor);
	check_disk(doctor);
	check_container(doctor);
}
