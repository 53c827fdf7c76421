/* SPDX-License-Identifier: MIT */
#include "kernel/events/native-calls.h"

#include <stdio.h>
#include <string.h>

#include "kernel/events/events.h"

/* Numbers that follow one another, from @first on: names with a blank between them. */
static const struct run {
	uint32_t first;
	const char *names;
} runs[] = {
#if defined(__x86_64__)
	/* clang-format off */
	{0,
	 "read write open close newstat newfstat newlstat poll lseek mmap mprotect munmap "
	 "brk rt_sigaction rt_sigprocmask rt_sigreturn ioctl pread64 pwrite64 readv writev "
	 "access pipe select sched_yield mremap msync mincore madvise shmget shmat shmctl "
	 "dup dup2 pause nanosleep getitimer alarm setitimer getpid sendfile64 socket "
	 "connect accept sendto recvfrom sendmsg recvmsg shutdown bind listen getsockname "
	 "getpeername socketpair setsockopt getsockopt clone fork vfork execve exit wait4 "
	 "kill newuname semget semop semctl shmdt msgget msgsnd msgrcv msgctl fcntl flock "
	 "fsync fdatasync truncate ftruncate getdents getcwd chdir fchdir rename mkdir rmdir "
	 "creat link unlink symlink readlink chmod fchmod chown fchown lchown umask "
	 "gettimeofday getrlimit getrusage sysinfo times ptrace getuid syslog getgid setuid "
	 "setgid geteuid getegid setpgid getppid getpgrp setsid setreuid setregid getgroups "
	 "setgroups setresuid getresuid setresgid getresgid getpgid setfsuid setfsgid getsid "
	 "capget capset rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend "
	 "sigaltstack utime mknod uselib personality ustat statfs fstatfs sysfs getpriority "
	 "setpriority sched_setparam sched_getparam sched_setscheduler sched_getscheduler "
	 "sched_get_priority_max sched_get_priority_min sched_rr_get_interval mlock munlock "
	 "mlockall munlockall vhangup modify_ldt pivot_root sysctl prctl arch_prctl adjtimex setrlimit chroot sync acct settimeofday mount umount "
	 "swapon swapoff reboot sethostname setdomainname iopl ioperm"},
	{175,
	 "init_module delete_module"},
	{179,
	 "quotactl"},
	{186,
	 "gettid readahead setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr "
	 "listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr tkill time "
	 "futex sched_setaffinity sched_getaffinity"},
	{206,
	 "io_setup io_destroy io_getevents io_submit io_cancel"},
	{212,
	 "lookup_dcookie epoll_create"},
	{216,
	 "remap_file_pages getdents64 set_tid_address restart_syscall semtimedop fadvise64 "
	 "timer_create timer_settime timer_gettime timer_getoverrun timer_delete "
	 "clock_settime clock_gettime clock_getres clock_nanosleep exit_group epoll_wait "
	 "epoll_ctl tgkill utimes"},
	{237,
	 "mbind set_mempolicy get_mempolicy mq_open mq_unlink mq_timedsend mq_timedreceive "
	 "mq_notify mq_getsetattr kexec_load waitid add_key request_key keyctl ioprio_set "
	 "ioprio_get inotify_init inotify_add_watch inotify_rm_watch migrate_pages openat "
	 "mkdirat mknodat fchownat futimesat newfstatat unlinkat renameat linkat symlinkat "
	 "readlinkat fchmodat faccessat pselect6 ppoll unshare set_robust_list "
	 "get_robust_list splice tee sync_file_range vmsplice move_pages utimensat "
	 "epoll_pwait signalfd timerfd_create eventfd fallocate timerfd_settime "
	 "timerfd_gettime accept4 signalfd4 eventfd2 epoll_create1 dup3 pipe2 inotify_init1 "
	 "preadv pwritev rt_tgsigqueueinfo perf_event_open recvmmsg fanotify_init "
	 "fanotify_mark prlimit64 name_to_handle_at open_by_handle_at clock_adjtime syncfs "
	 "sendmmsg setns getcpu process_vm_readv process_vm_writev kcmp finit_module "
	 "sched_setattr sched_getattr renameat2 seccomp getrandom memfd_create "
	 "kexec_file_load bpf execveat userfaultfd membarrier mlock2 copy_file_range preadv2 "
	 "pwritev2 pkey_mprotect pkey_alloc pkey_free statx io_pgetevents rseq uretprobe "
	 "uprobe"},
	{424,
	 "pidfd_send_signal io_uring_setup io_uring_enter io_uring_register open_tree "
	 "move_mount fsopen fsconfig fsmount fspick pidfd_open clone3 close_range openat2 "
	 "pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr quotactl_fd "
	 "landlock_create_ruleset landlock_add_rule landlock_restrict_self memfd_secret "
	 "process_mrelease futex_waitv set_mempolicy_home_node cachestat fchmodat2 "
	 "map_shadow_stack futex_wake futex_wait futex_requeue statmount listmount "
	 "lsm_get_self_attr lsm_set_self_attr lsm_list_modules mseal setxattrat getxattrat "
	 "listxattrat removexattrat open_tree_attr file_getattr file_setattr listns"},
/* clang-format on */
#else
	{0, ""},
#endif
};

#define N_RUNS (sizeof(runs) / sizeof(runs[0]))

/* The next name from *@at on; *@len: 0 when none exists. */
static const char *next_name(const char **at, size_t *len)
{
	const char *name = *at + strspn(*at, " ");

	*len = strcspn(name, " ");
	*at = name + *len;
	return name;
}

static bool native_calls_has_event(struct ky_catalogue *catalogue, const char *name, size_t len)
{
	char event[KY_EVENT_NAME_BYTES];

	snprintf(event, sizeof(event), "sys_enter_%.*s", (int)len, name);
	return ky_catalogue_find(catalogue, "syscalls", event) != NULL;
}

void ky_native_calls_unknown(struct ky_catalogue *catalogue, bool unknown[KY_CONTENT_MAX_CALLS])
{
	uint32_t number = 0, n_theirs = 0, n_found = 0;

	memset(unknown, true, KY_CONTENT_MAX_CALLS);
	ky_vec_foreach(&catalogue->events, source)
		n_theirs += strcmp(source->system, "syscalls") == 0 &&
			    strncmp(source->event, "sys_enter_", 10) == 0;
	for (size_t i = 0; i < N_RUNS; i++) {
		const char *at = runs[i].names, *name;
		size_t len;

		number = runs[i].first;
		while (name = next_name(&at, &len), len) {
			bool has = native_calls_has_event(catalogue, name, len);

			unknown[number++] = !has;
			n_found += has;
		}
	}
	for (; n_found < n_theirs && number < KY_CONTENT_MAX_CALLS; n_found++)
		unknown[number++] = false;
}

static int native_calls_find(const char *name, size_t name_len)
{
	for (size_t i = 0; i < N_RUNS; i++) {
		const char *at = runs[i].names, *found;
		uint32_t number = runs[i].first;
		size_t len;

		for (; found = next_name(&at, &len), len; number++)
			if (len == name_len && memcmp(found, name, len) == 0)
				return (int)number;
	}
	return -1;
}

int ky_native_call_number(const char *name)
{
	char renewed[KY_EVENT_NAME_BYTES];
	int number = native_calls_find(name, strlen(name));

	if (number >= 0)
		return number;
	snprintf(renewed, sizeof(renewed), "new%s", name);
	return native_calls_find(renewed, strlen(renewed));
}
