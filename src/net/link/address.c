/* SPDX-License-Identifier: MIT */
#include "net/link/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "net/protocol/frame.h"

#define SCHEME "kymo://"
/* A fleet of recorders may begin at the same time. The kernel has a limit of its own: somaxconn. */
#define BACKLOG 4096

bool ky_net_address_is(const char *text)
{
	return strncmp(text, SCHEME, strlen(SCHEME)) == 0;
}

static bool is_port(const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	return *text >= '0' && *text <= '9' && !*end && port <= 65535 && end - text <= 5;
}

/* "HOST:PORT", "[HOST]:PORT", "HOST", ":PORT", "". */
static int parse_host(const char *text, size_t len, struct ky_net_address *address,
		      struct kymo_error *err)
{
	const char *end = text + len, *host = text, *colon = NULL;
	size_t host_len = len;

	if (len && *text == '[') {
		const char *close = memchr(text, ']', len);

		if (!close)
			return ky_error_set(err, KYMO_E_INVALID, "'%.*s' lacks a ']'", (int)len,
					    text);
		host = text + 1;
		host_len = (size_t)(close - host);
		colon = close + 1 < end ? close + 1 : NULL;
	} else {
		colon = memchr(text, ':', len);
		host_len = colon ? (size_t)(colon - text) : len;
	}
	if (host_len >= sizeof(address->host))
		return ky_error_set(err, KYMO_E_INVALID, "the name of the host is too long");
	memcpy(address->host, host, host_len);
	address->host[host_len] = '\0';
	snprintf(address->port, sizeof(address->port), "%u", KY_NET_PORT);
	if (colon)
		snprintf(address->port, sizeof(address->port), "%.*s", (int)(end - colon - 1),
			 colon + 1);
	if (colon && (*colon != ':' || end - colon > 6 || !is_port(address->port)))
		return ky_error_set(err, KYMO_E_INVALID, "'%.*s' is not a port", (int)(end - colon),
				    colon);
	return KYMO_OK;
}

int ky_net_address_parse_host(const char *text, struct ky_net_address *address,
			      struct kymo_error *err)
{
	int ret;

	*address = (struct ky_net_address){.host = ""};
	ret = parse_host(text, strlen(text), address, err);
	if (!ret && !address->host[0])
		snprintf(address->host, sizeof(address->host), "localhost");
	return ret;
}

int ky_net_address_parse(const char *text, struct ky_net_address *address, struct kymo_error *err)
{
	const char *host = text + strlen(SCHEME), *slash;
	size_t name_len;
	int ret;

	*address = (struct ky_net_address){.host = ""};
	if (!ky_net_address_is(text))
		return ky_error_set(err, KYMO_E_INVALID, "'%s' does not begin with " SCHEME, text);
	slash = strchr(host, '/');
	if (!slash || slash == host)
		return ky_error_set(err, KYMO_E_INVALID, "'%s' is not " SCHEME "HOST[:PORT]/NAME",
				    text);
	name_len = strlen(slash + 1);
	if (!ky_net_is_name(slash + 1, name_len) || name_len >= sizeof(address->name))
		return ky_error_set(err, KYMO_E_INVALID,
				    "'%s' is not a name of a session: use letters, digits, '.', "
				    "'_' and '-'",
				    slash + 1);
	ret = parse_host(host, (size_t)(slash - host), address, err);
	memcpy(address->name, slash + 1, name_len + 1);
	return ret;
}

/* ---- sockets -------------------------------------------------------------------------- */

static bool is_loopback_address(const struct sockaddr *address)
{
	const struct sockaddr_in *v4 = (const void *)address;
	const struct sockaddr_in6 *v6 = (const void *)address;

	if (address->sa_family == AF_INET)
		return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
	return address->sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

bool ky_net_peer_is_local(int fd)
{
	struct sockaddr_storage peer = {0}, own = {0};
	socklen_t peer_bytes = sizeof(peer), own_bytes = sizeof(own);
	const struct sockaddr_in *v4 = (const void *)&peer, *own_v4 = (const void *)&own;
	const struct sockaddr_in6 *v6 = (const void *)&peer, *own_v6 = (const void *)&own;

	if (getpeername(fd, (struct sockaddr *)&peer, &peer_bytes) < 0 ||
	    getsockname(fd, (struct sockaddr *)&own, &own_bytes) < 0 ||
	    peer.ss_family != own.ss_family)
		return false;
	if (peer.ss_family == AF_INET)
		return is_loopback_address((const struct sockaddr *)&peer) ||
		       v4->sin_addr.s_addr == own_v4->sin_addr.s_addr;
	if (peer.ss_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&v6->sin6_addr, &own_v6->sin6_addr);
	return peer.ss_family == AF_UNIX;
}

static int address_look_up(const struct ky_net_address *address, int flags, struct addrinfo **found,
			   struct kymo_error *err)
{
	const struct addrinfo hints = {
		.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
	int ret = getaddrinfo(address->host, address->port, &hints, found);

	if (ret)
		return ky_error_set(err, KYMO_E_IO, "cannot find the host '%s': %s", address->host,
				    ret == EAI_SYSTEM ? strerror(errno) : gai_strerror(ret));
	return KYMO_OK;
}

/* 0, or an errno. */
static int wait_for_connection(int fd, int timeout_ms)
{
	struct pollfd wanted = {fd, POLLOUT, 0};
	socklen_t len = sizeof(int);
	int errnum = 0, n;

	do {
		n = poll(&wanted, 1, timeout_ms);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		return ETIMEDOUT;
	if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &errnum, &len) < 0)
		return errno;
	return errnum;
}

static int address_connect_to(const struct addrinfo *to, int timeout_ms)
{
	int fd = socket(to->ai_family, to->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
			to->ai_protocol);
	int one = 1, errnum = 0;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	if (connect(fd, to->ai_addr, to->ai_addrlen) < 0)
		errnum = errno == EINPROGRESS ? wait_for_connection(fd, timeout_ms) : errno;
	if (!errnum)
		return fd;
	close(fd);
	return -errnum;
}

int ky_net_connect(const struct ky_net_address *address, int timeout_ms, bool *is_loopback,
		   int *errnum, struct kymo_error *err)
{
	struct addrinfo *found;
	int ret = address_look_up(address, 0, &found, err), fd = -EHOSTUNREACH;

	*errnum = 0;
	if (ret < 0)
		return ret;
	for (const struct addrinfo *to = found; to && fd < 0; to = to->ai_next) {
		fd = address_connect_to(to, timeout_ms);
		*is_loopback = is_loopback_address(to->ai_addr);
	}
	freeaddrinfo(found);
	if (fd >= 0)
		return fd;
	*errnum = -fd;
	ky_error_errno(err, -fd, "cannot connect to %s, port %s", address->host, address->port);
	if (err)
		err->code = KYMO_E_IO;
	return KYMO_E_IO;
}

static int address_listen_at(const struct addrinfo *at)
{
	int fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
			at->ai_protocol);
	int one = 1, errnum;

	if (fd < 0)
		return -errno;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	errnum = errno;
	close(fd);
	return -errnum;
}

static uint16_t port_of(int fd)
{
	struct sockaddr_storage storage = {0};
	socklen_t len = sizeof(storage);

	if (getsockname(fd, (struct sockaddr *)&storage, &len) < 0)
		return 0;
	if (storage.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&storage)->sin6_port);
	return ntohs(((const struct sockaddr_in *)&storage)->sin_port);
}

int ky_net_listen(const struct ky_net_address *address, uint16_t *port, bool *is_loopback,
		  struct kymo_error *err)
{
	struct addrinfo *found;
	int ret = address_look_up(address, AI_PASSIVE, &found, err), fd;

	if (ret < 0)
		return ret;
	/* Clients try all addresses of "localhost"; the relay has that of version 4. */
	for (const struct addrinfo *at = found; at; at = at->ai_next) {
		if (at->ai_family != AF_INET || at == found)
			continue;
		memcpy(found->ai_addr, at->ai_addr, at->ai_addrlen);
		found->ai_addrlen = at->ai_addrlen;
		found->ai_family = AF_INET;
		break;
	}
	fd = address_listen_at(found);
	*is_loopback = is_loopback_address(found->ai_addr);
	freeaddrinfo(found);
	if (fd < 0) {
		ky_error_errno(err, -fd, "cannot listen at %s, port %s", address->host,
			       address->port);
		return err ? err->code : KYMO_E_IO;
	}
	*port = port_of(fd);
	return fd;
}
