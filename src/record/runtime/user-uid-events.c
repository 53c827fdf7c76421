/* SPDX-License-Identifier: MIT */
#include "record/runtime/user-uid-events.h"

#include <arpa/inet.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENT_AT (NLMSG_HDRLEN + sizeof(struct cn_msg))
#define EVENT_WHAT \
	0x00000004 /* PROC_EVENT_UID; an enumerator of the kernel's, in one structure or another */

/* The user that the process has now; 32 bits. */
#define EUID_AT (EVENT_AT + offsetof(struct proc_event, event_data) + EUID_IN_DATA)
/* Behind the process, its thread and its real user. */
#define EUID_IN_DATA 12
/* Changes to so many users can be ignored. */
#define KNOWN_MAX 500

/* A message to the kernel: from now on, or no more. */
static bool user_uid_events_ask(int fd, enum proc_cn_mcast_op op)
{
	struct {
		struct nlmsghdr head;
		char body[sizeof(struct cn_msg) + sizeof(op)];
	} message = {.head = {.nlmsg_len = sizeof(message), .nlmsg_type = NLMSG_DONE}};
	struct cn_msg cn = {.id = {CN_IDX_PROC, CN_VAL_PROC}, .len = sizeof(op)};

	memcpy(message.body, &cn, sizeof(cn));
	memcpy(message.body + sizeof(cn), &op, sizeof(op));
	return send(fd, &message, sizeof(message), 0) == (ssize_t)sizeof(message);
}

/* Forks, exits and the rest wake nobody: the kernel drops them for us, and so it does with changes to @uids. */
static bool set_filter(int fd, const uid_t *uids, size_t n)
{
	const struct sock_filter begin[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EVENT_AT),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(EVENT_WHAT), 2, 0),
		/* 0: the answer to our message. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 3),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, EUID_AT),
		BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_filter code[sizeof(begin) / sizeof(begin[0]) + 2 * KNOWN_MAX + 1];
	struct sock_fprog program = {sizeof(begin) / sizeof(begin[0]), code};

	memcpy(code, begin, sizeof(begin));
	for (size_t i = 0; i < n && i < KNOWN_MAX; i++) {
		code[program.len++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
								   htonl(uids[i]), 0, 1);
		code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	}
	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

/* The kernel answers at once, or does not answer processes in other namespaces. */
static bool is_answered(int fd)
{
	_Alignas(struct nlmsghdr) char answer[1024];
	struct proc_event event = {0};
	ssize_t got;

	while ((got = recv(fd, answer, sizeof(answer), MSG_DONTWAIT)) > 0) {
		if ((size_t)got < EVENT_AT + offsetof(struct proc_event, event_data) +
					  sizeof(event.event_data.ack))
			continue;
		memcpy(&event, answer + EVENT_AT,
		       (size_t)got - EVENT_AT < sizeof(event) ? (size_t)got - EVENT_AT
							      : sizeof(event));
		if (event.what == 0)
			return event.event_data.ack.err == 0;
	}
	return false;
}

int ky_uid_events_open(void)
{
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC};
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);

	if (fd < 0)
		return -1;
	if (set_filter(fd, NULL, 0) &&
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    user_uid_events_ask(fd, PROC_CN_MCAST_LISTEN) && is_answered(fd))
		return fd;
	close(fd);
	return -1;
}

void ky_uid_events_ignore(int fd, const uid_t *uids, size_t n)
{
	(void)set_filter(fd, uids, n);
}

void ky_uid_events_clear(int fd)
{
	char events[4096];

	/* An overflow is an error once; it says as much as an event. */
	for (int i = 0; i < 64; i++)
		if (recv(fd, events, sizeof(events), MSG_DONTWAIT) < 0 && i)
			break;
}

void ky_uid_events_close(int fd)
{
	if (fd < 0)
		return;
	/* Older kernels do not see that a listener has gone. */
	(void)user_uid_events_ask(fd, PROC_CN_MCAST_IGNORE);
	close(fd);
}
