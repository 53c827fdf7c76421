/* SPDX-License-Identifier: MIT */
#include "record/control/daemon-socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "record/control/control-socket-internal.h"
#include "record/runtime/user-runtime.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59
#endif
#define BACKLOG	   32
#define GROUPS_MAX 65536

static int daemon_socket_open_socket(int flags)
{
	return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
}

/* ---- the daemon's end ----------------------------------------------------------------- */

static int make_parent(const char *path)
{
	const char *slash = strrchr(path, '/');
	char directory[KY_CONTROL_SOCKET_PATH_MAX];

	if (!slash || slash == path)
		return 0;
	snprintf(directory, sizeof(directory), "%.*s", (int)(slash - path), path);
	if (mkdir(directory, 0755) < 0)
		return errno == EEXIST ? 0 : -errno;
	/* Under any umask. */
	return chmod(directory, 0755) < 0 ? -errno : 0;
}

/* 0 when the path is free; -EADDRINUSE: another process listens there. */
static int make_free(const char *path)
{
	int fd = daemon_socket_open_socket(SOCK_NONBLOCK), ret;
	struct stat st;

	if (fd < 0)
		return -errno;
	ret = ky_control_socket_connect(fd, path);
	close(fd);
	if (ret == -ENOENT)
		return 0;
	if (ret != -ECONNREFUSED || lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return -EADDRINUSE;
	return unlink(path) < 0 ? -errno : 0;
}

static int bind_at(int fd, const char *path)
{
	struct sockaddr_un to;
	int ret = ky_control_socket_address(&to, path);
	mode_t mask;

	if (!ret)
		ret = make_parent(path);
	if (!ret)
		ret = make_free(path);
	if (ret < 0)
		return ret;
	mask = umask(0111);
	if (bind(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		ret = -errno;
	umask(mask);
	return ret;
}

int ky_daemon_socket_listen(const char *path, struct kymo_error *err)
{
	int fd = daemon_socket_open_socket(SOCK_NONBLOCK),
	    ret = fd < 0 ? -errno : bind_at(fd, path);

	if (!ret && listen(fd, BACKLOG) < 0)
		ret = -errno;
	if (!ret)
		return fd;
	if (fd >= 0)
		close(fd);
	if (ret == -EADDRINUSE)
		ret = ky_error_set(err, KYMO_E_INVALID, "another daemon has this socket");
	else
		ret = ky_error_errno(err, -ret, "cannot listen for users");
	ky_error_path(err, path);
	return ret;
}

bool ky_daemon_socket_user(int fd, uid_t *uid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0 || len != sizeof(peer))
		return false;
	*uid = peer.uid;
	return true;
}

bool ky_daemon_socket_has_group(int fd, gid_t gid)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);
	gid_t *groups;
	bool has = false;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.gid == gid)
		return true;
	len = GROUPS_MAX * sizeof(*groups);
	groups = malloc(len);
	if (groups && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &len) == 0)
		for (size_t i = 0; i < len / sizeof(*groups) && !has; i++)
			has = groups[i] == gid;
	free(groups);
	return has;
}

/* ---- the user's end ------------------------------------------------------------------- */

int ky_daemon_socket_connect(const char *path, struct kymo_error *err)
{
	int fd = daemon_socket_open_socket(0), ret;

	if (fd < 0)
		return ky_error_errno(err, errno, "cannot make a socket");
	ret = ky_control_socket_connect(fd, path);
	if (!ret && ky_control_socket_is_of(fd, geteuid()))
		return fd;
	close(fd);
	if (!ret)
		return ky_error_set(err, KYMO_E_PERMISSION,
				    "the daemon belongs to another user than root");
	ky_error_set(err, KYMO_E_NOT_FOUND, "no kymo daemon takes requests on this machine");
	ky_error_path(err, path);
	ky_error_hint(
		err,
		"the administrator starts it with a policy in /etc/kymo; see kymo help daemon");
	return KYMO_E_NOT_FOUND;
}

int ky_daemon_socket_connect_recorder(pid_t pid)
{
	char directory[KY_SESSION_PATH_MAX + 1], path[KY_CONTROL_SOCKET_PATH_MAX];
	int fd, ret;

	if (ky_user_recordings_make(directory, NULL) < 0)
		return -ENOENT;
	snprintf(path, sizeof(path), "%.80s/%d", directory, (int)pid);
	fd = daemon_socket_open_socket(SOCK_NONBLOCK);
	if (fd < 0)
		return -errno;
	ret = ky_control_socket_connect(fd, path);
	if (!ret && ky_control_socket_is_of(fd, geteuid()))
		return fd;
	close(fd);
	return ret < 0 ? ret : -EPERM;
}

/* ---- messages ------------------------------------------------------------------------- */

int ky_daemon_socket_send(int fd, const struct ky_control_socket_message *message, int file)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {.bytes = {0}};
	struct iovec part = {(void *)message->text, message->len};
	struct msghdr to = {.msg_iov = &part, .msg_iovlen = 1};
	ssize_t sent;

	if (file >= 0) {
		to.msg_control = control.bytes;
		to.msg_controllen = sizeof(control.bytes);
		control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)),
						.cmsg_level = SOL_SOCKET,
						.cmsg_type = SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
	}
	do {
		sent = sendmsg(fd, &to, MSG_NOSIGNAL);
	} while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

/* The file of a message: there is room for one. */
static int take_file(struct msghdr *from)
{
	const struct cmsghdr *head = CMSG_FIRSTHDR(from);
	int file = -1;

	if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
	    head->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(&file, CMSG_DATA(head), sizeof(file));
	return file;
}

int ky_daemon_socket_receive(int fd, struct ky_control_socket_message *message, int *file)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {message->text, sizeof(message->text)};
	struct msghdr from = {.msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes)};
	ssize_t got;

	if (!file)
		return ky_control_socket_receive(fd, message);
	*file = -1;
	message->len = 0;
	got = recvmsg(fd, &from, MSG_CMSG_CLOEXEC);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (got > 0)
		*file = take_file(&from);
	if (got <= 0 || from.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) {
		if (got > 0 && *file >= 0)
			close(*file);
		*file = -1;
		return KYMO_E_IO;
	}
	message->len = (size_t)got;
	return 1;
}
