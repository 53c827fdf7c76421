/* SPDX-License-Identifier: MIT */
/* kymo doctor: what the kernel offers beside tracefs events. */
#include "record/doctor/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#if __has_include(<sys/rseq.h>)
#include <sys/rseq.h>
#define HAVE_GLIBC_RSEQ 1
#else
#define HAVE_GLIBC_RSEQ 0
#endif

#include "kernel/content/content.h"
#include "os/counter.h"
#include "os/file.h"

#define TEXT_MAX 4096

/* A short file without its last line feed; false when it cannot be read. */
static bool read_line(const char *path, char *line, size_t size)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = ky_read_file(AT_FDCWD, path, TEXT_MAX, &text);

	snprintf(line, size, "%s", ky_strbuf_text(&text));
	line[strcspn(line, "\n")] = '\0';
	ky_strbuf_fini(&text);
	return ret == 0;
}

static void doctor_kernel_check_kernel(struct ky_doctor *doctor)
{
	struct utsname uts;

	if (uname(&uts) == 0)
		ky_doctor_add(doctor, "kernel", KY_CHECK_OK, "%s %s, %s", uts.sysname, uts.release,
			      uts.machine);
}

static void check_lockdown(struct ky_doctor *doctor)
{
	char line[128];

	if (!read_line("/sys/kernel/security/lockdown", line, sizeof(line))) {
		ky_doctor_add(doctor, "lockdown", KY_CHECK_OK, "none that can be seen");
		return;
	}
	if (strstr(line, "[none]")) {
		ky_doctor_add(doctor, "lockdown", KY_CHECK_OK, "none");
		return;
	}
	ky_doctor_add(doctor, "lockdown", KY_CHECK_WARN,
		      "%s: the kernel may refuse tracing and BPF", line);
	ky_doctor_advice(doctor,
			 "it comes with Secure Boot, or from lockdown= on the kernel's command "
			 "line");
}

/* With the programs of --syscall-content: what is enough for them is enough. */
static void check_bpf(struct ky_doctor *doctor)
{
	struct ky_content *content = ky_content_new(true, 1, false, 0, (uint32_t)getpid());
	struct kymo_error err;

	if (!content)
		return;
	if (ky_content_load(content, &err) < 0) {
		ky_doctor_add(doctor, "bpf", KY_CHECK_WARN,
			      "%s; without BPF, Kymo has no kymo latency, kymo count, "
			      "--syscall-content, 32-bit system calls or counters at events",
			      err.message);
		ky_doctor_advice(doctor, "%s", err.hint);
	} else {
		ky_doctor_add(doctor, "bpf", KY_CHECK_OK,
			      "the content of system calls can be read (--syscall-content)");
	}
	ky_content_free(content);
}

static void check_btf(struct ky_doctor *doctor)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0) {
		ky_doctor_add(doctor, "btf", KY_CHECK_OK, "/sys/kernel/btf/vmlinux");
		return;
	}
	ky_doctor_add(doctor, "btf", KY_CHECK_WARN,
		      "no /sys/kernel/btf/vmlinux: BPF programs cannot be fitted to this kernel");
	ky_doctor_advice(doctor, "a kernel with CONFIG_DEBUG_INFO_BTF=y has it");
}

static void check_perf(struct ky_doctor *doctor)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
	};
	char paranoid[32] = "?";
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int errnum = errno;

	(void)read_line("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid));
	if (fd >= 0) {
		close(fd);
		ky_doctor_add(doctor, "perf", KY_CHECK_OK, "usable; perf_event_paranoid is %s",
			      paranoid);
		return;
	}
	ky_doctor_add(doctor, "perf", KY_CHECK_WARN, "%s; perf_event_paranoid is %s",
		      strerror(errnum), paranoid);
	ky_doctor_advice(doctor,
			 errnum == ENOSYS || errnum == ENOENT
				 ? "the kernel was built without CONFIG_PERF_EVENTS"
				 : "run kymo with sudo, or: sysctl kernel.perf_event_paranoid=1");
}

/* What --context perf:cpu:NAME can have. */
static void check_counters(struct ky_doctor *doctor)
{
	char names[200];

	ky_os_counters_list(names, sizeof(names));
	if (names[0]) {
		ky_doctor_add(doctor, "counters", KY_CHECK_OK, "%s%s", names,
			      strlen(names) + 1 == sizeof(names) ? " ..." : "");
		return;
	}
	ky_doctor_add(doctor, "counters", KY_CHECK_WARN, "no counters of CPUs for this user");
	ky_doctor_advice(doctor, "run kymo with sudo, for --context perf:cpu:NAME");
}

static bool in_tracefs(const char *name)
{
	char path[96];

	snprintf(path, sizeof(path), "/sys/kernel/tracing/%s", name);
	if (access(path, F_OK) == 0)
		return true;
	snprintf(path, sizeof(path), "/sys/kernel/debug/tracing/%s", name);
	return access(path, F_OK) == 0;
}

static void check_probes(struct ky_doctor *doctor)
{
	bool kprobes = in_tracefs("kprobe_events"), uprobes = in_tracefs("uprobe_events");

	/* Not there or not for this user to see: 'tracefs' has said so. */
	if (!in_tracefs("trace_clock"))
		return;
	ky_doctor_add(doctor, "probes", kprobes && uprobes ? KY_CHECK_OK : KY_CHECK_WARN,
		      "kernel functions (kprobes): %s; program functions (uprobes): %s",
		      kprobes ? "yes" : "no", uprobes ? "yes" : "no");
	if (!kprobes || !uprobes)
		ky_doctor_advice(doctor,
				 "a kernel with CONFIG_KPROBE_EVENTS=y and "
				 "CONFIG_UPROBE_EVENTS=y has both; kymo record does without");
}

/* What glibc registered for this thread; the kernel keeps cpu_id up to date in it. */
static bool rseq_registered(void)
{
#if HAVE_GLIBC_RSEQ
	const struct rseq *area;

	if (!__rseq_size)
		return false;
	area = (const struct rseq *)((const char *)__builtin_thread_pointer() + __rseq_offset);
	return (int32_t)area->cpu_id >= 0;
#else
	return false;
#endif
}

static void check_rseq(struct ky_doctor *doctor)
{
	long ret;

	if (rseq_registered()) {
		ky_doctor_add(doctor, "rseq", KY_CHECK_OK, "registered by the C library");
		return;
	}
	/* An invalid registration tells whether the system call is there. */
	ret = syscall(SYS_rseq, NULL, 0, 0, 0);
	if (ret < 0 && errno == ENOSYS) {
		ky_doctor_add(doctor, "rseq", KY_CHECK_WARN,
			      "the kernel has none: programs would be traced a little slower");
		ky_doctor_advice(doctor, "Linux 4.18 and later have it (CONFIG_RSEQ)");
		return;
	}
	ky_doctor_add(doctor, "rseq", KY_CHECK_WARN,
		      "the kernel has it, the C library does not use it");
	ky_doctor_advice(doctor, "glibc 2.35 and later do, unless GLIBC_TUNABLES has "
				 "glibc.pthread.rseq=0");
}

void ky_doctor_kernel(struct ky_doctor *doctor)
{
	doctor_kernel_check_kernel(doctor);
	check_lockdown(doctor);
	check_bpf(doctor);
	check_btf(doctor);
	check_perf(doctor);
	check_counters(doctor);
	check_probes(doctor);
	check_rseq(doctor);
}
