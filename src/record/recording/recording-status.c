/* SPDX-License-Identifier: MIT */
/* What a recording has done so far, in detail: for each CPU, each program, and the disk. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/error.h"
#include "record/recording/recording-internal.h"

/* An answer has room for so many programs, with words to spare. */
#define PROGRAMS_MAX 400

static void recording_status_add(struct ky_control_socket_message *answer, const char *name,
				 const char *format, ...)
{
	char text[300];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	ky_control_socket_add(answer, name);
	ky_control_socket_add(answer, text);
}

/* "NUMBER EVENTS LOST FILL GROUP", the fill in hundredths; "-": the main buffers. */
static void add_cpus(const struct ky_recording *recording, struct ky_control_socket_message *answer)
{
	struct ky_session_cpu_progress cpu;

	for (size_t i = 0; ky_session_cpu_progress(recording->session, i, &cpu); i++)
		recording_status_add(answer, "cpu", "%" PRIu32 " %" PRIu64 " %" PRIu64 " %u %s",
				     cpu.cpu, cpu.events, cpu.lost, (unsigned int)(cpu.fill * 100),
				     cpu.group ? cpu.group : "-");
}

/* "PID EVENTS LOST UNREAD BYTES HAS-ENDED GROUP NAME"; "-": the main buffers. */
static int add_programs(struct ky_recording *recording, struct ky_control_socket_message *answer,
			struct kymo_error *err)
{
	struct ky_user_program_progress *list = calloc(PROGRAMS_MAX, sizeof(*list));
	size_t n = 0, n_all = 0;
	int ret;

	if (!list)
		return ky_error_nomem(err);
	ret = ky_recording_list_programs(recording, list, PROGRAMS_MAX, &n, &n_all, err);
	for (size_t i = 0; i < n && !ret; i++)
		recording_status_add(
			answer, "program",
			"%" PRIu32 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %d %s %s",
			list[i].pid, list[i].events, list[i].lost, list[i].unread, list[i].bytes,
			list[i].has_ended, list[i].group ? list[i].group : "-", list[i].procname);
	if (!ret && n_all > n)
		recording_status_add(answer, "programs_left_out", "%zu", n_all - n);
	free(list);
	return ret;
}

/* The rate is the mean since the start, without pauses. */
static void add_disk(const struct ky_recording *recording, struct ky_control_socket_message *answer)
{
	const struct ky_os_clock *clock = ky_recording_clock(recording);
	struct ky_recording_progress progress;
	struct statvfs disk;
	int64_t ns;

	if (recording->options.store || statvfs(recording->options.output, &disk) < 0)
		return;
	recording_status_add(answer, "disk_free_bytes", "%" PRIu64,
			     (uint64_t)disk.f_bavail * disk.f_frsize);
	if (recording->options.user.overwrite)
		return;
	ky_recording_progress(recording, &progress);
	ns = ky_os_clock_to_ns(clock, ky_os_clock_now(clock)) -
	     ky_os_clock_to_ns(clock, recording->start_cycles) -
	     (int64_t)ky_recording_paused_ns(recording);
	if (ns > 0)
		recording_status_add(answer, "bytes_per_s", "%.0f",
				     (double)progress.bytes * 1e9 / (double)ns);
}

int ky_recording_add_details(struct ky_recording *recording,
			     struct ky_control_socket_message *answer, struct kymo_error *err)
{
	recording_status_add(answer, "buffer_bytes", "%" PRIu64,
			     recording->options.kernel.buffer_bytes);
	add_disk(recording, answer);
	if (recording->session)
		add_cpus(recording, answer);
	return recording->programs.n ? add_programs(recording, answer, err) : KYMO_OK;
}

/* As in the option, with the largest unit that loses nothing. */
static void recording_status_add_group(struct ky_control_socket_message *answer, const char *name,
				       uint64_t bytes, bool overwrite, const char *events)
{
	static const char *const units[] = {"", "k", "M", "G"};
	size_t unit = 0;

	for (; unit < 3 && bytes && bytes % 1024 == 0; unit++)
		bytes /= 1024;
	recording_status_add(answer, "group", "%s:%" PRIu64 "%s%s:%s", name, bytes, units[unit],
			     overwrite ? ":overwrite" : "", events);
}

static void recording_status_add_user_group(const struct ky_recording_user_group *group,
					    struct ky_control_socket_message *answer)
{
	recording_status_add_group(answer, group->name, group->buffer_bytes, group->overwrite,
				   group->events);
}

void ky_recording_add_groups(const struct ky_recording *recording,
			     struct ky_control_socket_message *answer)
{
	const struct ky_session_options *kernel = &recording->options.kernel;

	for (size_t i = 0; recording->session && i < kernel->n_groups; i++)
		recording_status_add_group(answer, kernel->groups[i].name,
					   kernel->groups[i].buffer_bytes,
					   kernel->groups[i].overwrite, kernel->groups[i].events);
	for (size_t i = 0; i < recording->options.n_user_groups; i++)
		recording_status_add_user_group(&recording->options.user_groups[i], answer);
}
