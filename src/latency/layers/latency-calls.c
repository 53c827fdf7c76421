/* SPDX-License-Identifier: MIT */
/* Kinds of system calls, and what a thread waits for that sleeps in one. */
#include <string.h>

#include "base/error.h"
#include "kernel/events/native-calls.h"
#include "latency/layers/latency-internal.h"

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

static const struct {
	uint8_t role;
	const char *names;
} roles[] = {
	{KY_LATENCY_ROLE_ACCEPT, "accept accept4"},
	{KY_LATENCY_ROLE_WRITE, "write writev pwritev2 sendto sendmsg sendmmsg sendfile64"},
	{KY_LATENCY_ROLE_CLOSE, "close"},
};

/* The number of the call at *@at, a list of names, which moves on; -1: no call has that name. */
static int next_call(const char **at)
{
	size_t len = strcspn(*at, " ");
	char name[64];
	int number;

	memcpy(name, *at, len);
	name[len] = '\0';
	*at += len + strspn(*at + len, " ");
	number = ky_native_call_number(name);
	return number < KY_LATENCY_CALL_COUNT ? number : -1;
}

static void set_group(struct ky_latency_config *config, size_t group)
{
	const char *at = groups[group].names;

	while (*at) {
		int number = next_call(&at);

		if (number >= 0 && groups[group].kind)
			config->kind[number] = groups[group].kind;
		if (number >= 0 && groups[group].reason)
			config->reason[number] = groups[group].reason;
	}
}

static void set_role_of(struct ky_latency_config *config, size_t i)
{
	const char *at = roles[i].names;

	while (*at) {
		int number = next_call(&at);

		if (number >= 0)
			config->role[number] = roles[i].role;
	}
}

static void set_roles(struct ky_latency_config *config)
{
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++)
		set_role_of(config, i);
}

int ky_latency_choose_calls(const struct ky_latency_options *options,
			    struct ky_latency_config *config, struct kymo_error *err)
{
	int code;

	memset(config->reason, KY_LATENCY_OFF_CALL, sizeof(config->reason));
	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
		set_group(config, i);
	set_roles(config);
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
