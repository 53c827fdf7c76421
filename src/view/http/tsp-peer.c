/* SPDX-License-Identifier: MIT */
/* By the kernel's socket diagnostics. */
#include "view/http/tsp-peer.h"

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

static void set_address(const struct sockaddr *address, __be16 *port, __be32 *ip)
{
	if (address->sa_family == AF_INET6) {
		struct sockaddr_in6 in6;

		memcpy(&in6, address, sizeof(in6));
		*port = in6.sin6_port;
		memcpy(ip, &in6.sin6_addr, sizeof(in6.sin6_addr));
	} else {
		struct sockaddr_in in;

		memcpy(&in, address, sizeof(in));
		*port = in.sin_port;
		memcpy(ip, &in.sin_addr, sizeof(in.sin_addr));
	}
}

static int tsp_peer_ask(int fd, const struct sockaddr *peer, const struct sockaddr *own)
{
	struct question question = {
		.head = {.nlmsg_len = sizeof(question),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST},
		.body = {.sdiag_family = (__u8)peer->sa_family,
			 .sdiag_protocol = IPPROTO_TCP,
			 .idiag_states = ~0U,
			 .id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}},
	};
	struct inet_diag_sockid *id = &question.body.id;

	set_address(peer, &id->idiag_sport, id->idiag_src);
	set_address(own, &id->idiag_dport, id->idiag_dst);
	return send(fd, &question, sizeof(question), 0) < 0 ? errno : 0;
}

/* 0, or a number of errno. */
static int tsp_peer_take(int fd, uid_t *user)
{
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} answer;
	ssize_t n = recv(fd, &answer, sizeof(answer), 0);
	struct inet_diag_msg found;
	struct nlmsgerr error;

	if (n < 0)
		return errno;
	if (NLMSG_OK(&answer.head, (size_t)n) && answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
	    answer.head.nlmsg_len >= NLMSG_LENGTH(sizeof(found))) {
		memcpy(&found, NLMSG_DATA(&answer.head), sizeof(found));
		*user = found.idiag_uid;
		/* The kernel says user 0 of a socket that no process has any more. */
		return found.idiag_inode ? 0 : ENOENT;
	}
	if (!NLMSG_OK(&answer.head, (size_t)n) || answer.head.nlmsg_type != NLMSG_ERROR ||
	    answer.head.nlmsg_len < NLMSG_LENGTH(sizeof(error)))
		return EPROTO;
	memcpy(&error, NLMSG_DATA(&answer.head), sizeof(error));
	return error.error < 0 ? -error.error : EPROTO;
}

int ky_tsp_peer_user(const struct sockaddr *peer, const struct sockaddr *own, uid_t *user,
		     struct kymo_error *err)
{
	int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int error = fd < 0 ? errno : tsp_peer_ask(fd, peer, own);

	if (!error)
		error = tsp_peer_take(fd, user);
	if (fd >= 0)
		close(fd);
	if (!error)
		return KYMO_OK;
	if (error == ENOENT)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "the connection is from elsewhere");
	ky_error_errno(err, error, "cannot see whose connection it is");
	return KYMO_E_IO;
}
