/* SPDX-License-Identifier: MIT */
/* Kinds of system calls, and what a thread waits for that sleeps in one. */
#include <string.h>

#include "base/error.h"
#include "kernel/events/native-calls.h"
#include "latency/latency-internal.h"

static const struct {
	uint8_t kind, reason; /* 0: of another row, or of none */
	const char *names;
} groups[] = {
	{KY_LATENCY_CALL_READ, KY_LATENCY_OFF_READ,
	 "read pread64 readv preadv preadv2 recvfrom recvmsg recvmmsg getdents getdents64 "
	 "sendfile64 splice tee copy_file_range mq_timedreceive msgrcv"},
	{KY_LATENCY_CALL_WRITE, KY_LATENCY_OFF_WRITE,
	 "write pwrite64 writev pwritev pwritev2 sendto sendmsg sendmmsg vmsplice mq_timedsend "
	 "msgsnd"},
	{KY_LATENCY_CALL_SYNC, KY_LATENCY_OFF_SYNC,
	 "fsync fdatasync sync syncfs msync sync_file_range"},
	{KY_LATENCY_CALL_OPEN, 0, "open openat openat2 creat open_by_handle_at"},
	{KY_LATENCY_CALL_CLOSE, 0, "close close_range"},
	{KY_LATENCY_CALL_POLL, KY_LATENCY_OFF_POLL,
	 "poll ppoll select pselect6 epoll_wait epoll_pwait epoll_pwait2 io_getevents "
	 "io_pgetevents io_uring_enter"},
	{KY_LATENCY_CALL_FUTEX, KY_LATENCY_OFF_FUTEX, "futex futex_wait futex_waitv"},
	{KY_LATENCY_CALL_SLEEP, KY_LATENCY_OFF_SLEEP,
	 "nanosleep clock_nanosleep pause rt_sigsuspend rt_sigtimedwait"},
	{0, KY_LATENCY_OFF_CHILD, "wait4 waitid"},
	{0, KY_LATENCY_OFF_READ, "accept accept4"},
	{0, KY_LATENCY_OFF_WRITE, "connect"},
	{0, KY_LATENCY_OFF_YIELD, "sched_yield"},
};

static void set_group(struct ky_latency_config *config, size_t group)
{
	const char *at = groups[group].names;
	char name[64];

	while (*at) {
		size_t len = strcspn(at, " ");
		int number;

		memcpy(name, at, len);
		name[len] = '\0';
		number = ky_native_call_number(name);
		if (number >= 0 && number < KY_LATENCY_CALL_COUNT && groups[group].kind)
			config->kind[number] = groups[group].kind;
		if (number >= 0 && number < KY_LATENCY_CALL_COUNT && groups[group].reason)
			config->reason[number] = groups[group].reason;
		at += len + strspn(at + len, " ");
	}
}

int ky_latency_choose_calls(const struct ky_latency_options *options,
			    struct ky_latency_config *config, struct kymo_error *err)
{
	int code;

	memset(config->reason, KY_LATENCY_OFF_CALL, sizeof(config->reason));
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		set_group(config, i);
	if (options->n_syscalls > KY_LATENCY_MAX_CHOSEN)
		return ky_error_set(err, KYMO_E_INVALID,
				    "at most %u system calls can have histograms of their own",
				    KY_LATENCY_MAX_CHOSEN);
	for (size_t i = 0; i < options->n_syscalls; i++) {
		int number = ky_native_call_number(options->syscalls[i]);

		if (number < 0 || number >= KY_LATENCY_CALL_COUNT) {
			code = ky_error_set(err, KYMO_E_INVALID, "there is no system call '%s'",
					    options->syscalls[i]);
			ky_error_hint(err, "'kymo list' shows the system calls' names");
			return code;
		}
		config->kind[number] = (uint8_t)(KY_LATENCY_CALL_KINDS + i);
	}
	return KYMO_OK;
}
