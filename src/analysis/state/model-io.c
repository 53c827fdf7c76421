/* SPDX-License-Identifier: MIT */
/*
 * The state model's system calls on files: which call does what, what its arguments are called, and
 * what it changes. Arguments are read at the entry, results at the exit; a call that failed changes
 * nothing.
 */
#include "analysis/state/model-internal.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Arguments in ky_syscall.args and ky_class_info.fields + KY_SYSCALL_ARGS. */
enum { ARG_A, ARG_B, ARG_C, ARG_D, N_ARGS };

#define O_CLOEXEC_FLAG	    02000000 /* also of sockets, pipes, eventfd, ... */
#define FD_CLOEXEC_FLAG	    1
#define CMD_DUPFD	    0
#define CMD_SETFD	    2
#define CMD_DUPFD_CLOEXEC   1030
#define CLOSE_RANGE_CLOEXEC 4
#define FAMILY_UNIX	    1
#define FAMILY_INET	    2
#define FAMILY_INET6	    10
#define FAMILY_NETLINK	    16

enum action {
	ACT_NONE,
	ACT_OPEN,	 /* path flags -> descriptor */
	ACT_SOCKET,	 /* family type -> descriptor */
	ACT_ACCEPT,	 /* fd flags -> descriptor */
	ACT_CONNECT,	 /* fd; address in the entry's last fields */
	ACT_DUP,	 /* fd -> descriptor */
	ACT_DUP_TO,	 /* fd, newfd flags */
	ACT_FCNTL,	 /* fd cmd arg */
	ACT_PAIR,	 /* two descriptors in an array of the exit; family or flags */
	ACT_SPECIAL,	 /* -> descriptor of what is named like the call; flags */
	ACT_CLOSE,	 /* fd */
	ACT_CLOSE_RANGE, /* first last flags */
	ACT_FUTEX,
};

/* What a call does; its entry's and exit's arguments, as class rows have them. */
struct ky_call_row {
	const char *name;
	enum ky_io_kind io;
	enum action action;
	const char *entry, *exit;
	bool no_bytes; /* it returns something else */
};

#define FD "fd"
/* Where kymo found no text at the entry, it may have found it at the exit. */
#define LATE  "late_filename|late_pathname"
#define FUTEX "uaddr op val"

/* clang-format off */
static const struct ky_call_row rows[] = {
	{"read", KY_IO_READ, ACT_NONE, FD, "", false},
	{"pread64", KY_IO_READ, ACT_NONE, FD, "", false},
	{"readv", KY_IO_READ, ACT_NONE, FD, "", false},
	{"preadv", KY_IO_READ, ACT_NONE, FD, "", false},
	{"preadv2", KY_IO_READ, ACT_NONE, FD, "", false},
	{"recv", KY_IO_READ, ACT_NONE, FD, "", false},
	{"recvfrom", KY_IO_READ, ACT_NONE, FD, "", false},
	{"recvmsg", KY_IO_READ, ACT_NONE, FD, "", false},
	{"recvmmsg", KY_IO_READ, ACT_NONE, FD, "", true},
	{"write", KY_IO_WRITE, ACT_NONE, FD, "", false},
	{"pwrite64", KY_IO_WRITE, ACT_NONE, FD, "", false},
	{"writev", KY_IO_WRITE, ACT_NONE, FD, "", false},
	{"pwritev", KY_IO_WRITE, ACT_NONE, FD, "", false},
	{"pwritev2", KY_IO_WRITE, ACT_NONE, FD, "", false},
	{"send", KY_IO_WRITE, ACT_NONE, FD, "", false},
	{"sendto", KY_IO_WRITE, ACT_NONE, FD, "", false},
	{"sendmsg", KY_IO_WRITE, ACT_NONE, FD, "", false},
	{"sendmmsg", KY_IO_WRITE, ACT_NONE, FD, "", true},
	{"vmsplice", KY_IO_WRITE, ACT_NONE, FD, "", false},
	{"fsync", KY_IO_SYNC, ACT_NONE, FD, "", true},
	{"fdatasync", KY_IO_SYNC, ACT_NONE, FD, "", true},
	{"sync_file_range", KY_IO_SYNC, ACT_NONE, FD, "", true},
	{"sync_file_range2", KY_IO_SYNC, ACT_NONE, FD, "", true},
	{"syncfs", KY_IO_SYNC, ACT_NONE, FD, "", true},
	{"sync", KY_IO_SYNC, ACT_NONE, "", "", true},
	{"msync", KY_IO_SYNC, ACT_NONE, "", "", true},
	{"sendfile", KY_IO_COPY, ACT_NONE, "in_fd out_fd", "", false},
	{"sendfile64", KY_IO_COPY, ACT_NONE, "in_fd out_fd", "", false},
	{"splice", KY_IO_COPY, ACT_NONE, "fd_in fd_out", "", false},
	{"tee", KY_IO_COPY, ACT_NONE, "fdin|fd_in fdout|fd_out", "", false},
	{"copy_file_range", KY_IO_COPY, ACT_NONE, "fd_in fd_out", "", false},
	{"open", KY_IO_OPEN, ACT_OPEN, "filename|pathname flags", LATE, true},
	{"openat", KY_IO_OPEN, ACT_OPEN, "filename|pathname flags", LATE, true},
	{"openat2", KY_IO_OPEN, ACT_OPEN, "filename|pathname -", LATE, true},
	{"creat", KY_IO_OPEN, ACT_OPEN, "pathname|filename -", LATE, true},
	{"socket", KY_IO_OPEN, ACT_SOCKET, "family|domain type", "", true},
	{"dup", KY_IO_OPEN, ACT_DUP, "fildes|oldfd", "", true},
	{"dup2", KY_IO_OPEN, ACT_DUP_TO, "oldfd newfd -", "", true},
	{"dup3", KY_IO_OPEN, ACT_DUP_TO, "oldfd newfd flags", "", true},
	{"fcntl", KY_IO_NONE, ACT_FCNTL, "fd cmd arg", "", true},
	{"fcntl64", KY_IO_NONE, ACT_FCNTL, "fd cmd arg", "", true},
	{"accept", KY_IO_NONE, ACT_ACCEPT, "fd -", "sport v4addr", true},
	{"accept4", KY_IO_NONE, ACT_ACCEPT, "fd flags", "sport v4addr", true},
	{"connect", KY_IO_NONE, ACT_CONNECT, "fd family dport v4addr v6addr", "", true},
	{"pipe", KY_IO_NONE, ACT_PAIR, "- -", "fildes", true},
	{"pipe2", KY_IO_NONE, ACT_PAIR, "- flags", "fildes", true},
	{"socketpair", KY_IO_NONE, ACT_PAIR, "family type", "usockvec", true},
	{"eventfd", KY_IO_NONE, ACT_SPECIAL, "-", "", true},
	{"eventfd2", KY_IO_NONE, ACT_SPECIAL, "flags", "", true},
	{"signalfd", KY_IO_NONE, ACT_SPECIAL, "-", "", true},
	{"signalfd4", KY_IO_NONE, ACT_SPECIAL, "flags", "", true},
	{"timerfd_create", KY_IO_NONE, ACT_SPECIAL, "flags", "", true},
	{"epoll_create", KY_IO_NONE, ACT_SPECIAL, "-", "", true},
	{"epoll_create1", KY_IO_NONE, ACT_SPECIAL, "flags", "", true},
	{"inotify_init", KY_IO_NONE, ACT_SPECIAL, "-", "", true},
	{"inotify_init1", KY_IO_NONE, ACT_SPECIAL, "flags", "", true},
	{"fanotify_init", KY_IO_NONE, ACT_SPECIAL, "-", "", true},
	{"memfd_create", KY_IO_NONE, ACT_SPECIAL, "-", "", true},
	{"userfaultfd", KY_IO_NONE, ACT_SPECIAL, "flags", "", true},
	{"perf_event_open", KY_IO_NONE, ACT_SPECIAL, "-", "", true},
	{"io_uring_setup", KY_IO_NONE, ACT_SPECIAL, "-", "", true},
	{"pidfd_open", KY_IO_NONE, ACT_SPECIAL, "-", "", true},
	{"close", KY_IO_NONE, ACT_CLOSE, "fd", "", true},
	{"close_range", KY_IO_NONE, ACT_CLOSE_RANGE, "fd max_fd flags", "", true},
	{"futex", KY_IO_NONE, ACT_FUTEX, FUTEX, "", true},
};
/* clang-format on */

const struct ky_call_row *ky_call_row_find(const char *syscall)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (rows[i].name[0] == syscall[0] && strcmp(rows[i].name, syscall) == 0)
			return &rows[i];
	}
	return NULL;
}

const char *ky_call_row_fields(const struct ky_call_row *row, bool exit)
{
	return exit ? row->exit : row->entry;
}

/* ---- the beginning ----------------------------------------------------------------------- */

static bool has_elements(const struct ky_event *event, const struct ky_handle *array, uint64_t n)
{
	struct ky_place place;

	return array->cls && ky_handle_place(event, array, &place) && place.length == n;
}

int ky_address_format(const struct ky_event *event, const struct ky_handle *v4,
		      const struct ky_handle *v6, int port, char *out, size_t size)
{
	char behind[16] = "";
	uint8_t b[16];
	int at;

	if (port >= 0)
		snprintf(behind, sizeof(behind), ":%d", port);
	if (has_elements(event, v4, 4) && ky_get_array_bytes(event, v4, 0, b, 4))
		return snprintf(out, size, "%d.%d.%d.%d%s", b[0], b[1], b[2], b[3], behind);
	if (!v6 || !has_elements(event, v6, 16) || !ky_get_array_bytes(event, v6, 0, b, 16))
		return 0;
	at = snprintf(out, size, "[");
	for (int i = 0; i < 8; i++)
		at += snprintf(out + at, size - (size_t)at, "%s%x", i ? ":" : "",
			       b[2 * i] << 8 | b[2 * i + 1]);
	return at + snprintf(out + at, size - (size_t)at, "]%s", behind);
}

/* The file that connect() makes of a socket: its peer. */
static int name_peer(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_class_info *info, struct ky_thread *thread)
{
	const struct ky_handle *fields = &info->fields[KY_SYSCALL_ARGS];
	char name[80];
	int len = ky_address_format(event, &fields[3], &fields[4],
				    (uint16_t)thread->syscall.args[2], name, sizeof(name));

	if (len <= 0)
		return 0;
	thread->syscall.to = ky_file_get(feed->model, feed->host, name, (size_t)len, KY_FILE_NET);
	return thread->syscall.to ? 0 : KYMO_E_MEMORY;
}

/* The address replaces a text that the recorder could not read. */
static bool is_address(const char *text, size_t len)
{
	size_t i = 2;

	if (len < 3 || text[0] != '0' || text[1] != 'x')
		return false;
	while (i < len && isxdigit((unsigned char)text[i]))
		i++;
	return i == len;
}

/* The file of a path that an event tells; *@file is NULL where it does not. */
static int path_file(struct ky_feed *feed, const struct ky_event *event,
		     const struct ky_handle *field, struct ky_file **file)
{
	size_t len;
	const char *path = ky_get_text(event, field, &len);

	*file = NULL;
	if (!len || is_address(path, len))
		return 0;
	*file = ky_file_get(feed->model, feed->host, path, len, ky_file_kind_of(path, len));
	return *file ? 0 : KYMO_E_MEMORY;
}

int ky_io_begin(struct ky_feed *feed, const struct ky_event *event,
		const struct ky_class_info *info, struct ky_thread *thread)
{
	struct ky_syscall *begun = &thread->syscall;
	const struct ky_handle *first = &info->fields[KY_SYSCALL_ARGS];
	int status = 0;

	for (int i = 0; i < N_ARGS; i++)
		begun->args[i] = ky_get_i64(event, &first[i], 0);
	if (begun->row->action == ACT_FUTEX && feed->model->subjects & KY_ABOUT_LOCKS)
		return ky_lock_begin(feed->model, thread);
	if (!(feed->model->subjects & KY_ABOUT_FILES))
		return 0;
	if (begun->row->action == ACT_OPEN)
		return path_file(feed, event, first, &begun->file);
	if (!first->cls || begun->row->action == ACT_SOCKET || begun->row->action == ACT_FUTEX ||
	    begun->row->action == ACT_PAIR || begun->row->action == ACT_SPECIAL ||
	    begun->row->action == ACT_CLOSE || begun->row->action == ACT_CLOSE_RANGE)
		return 0;
	status = ky_fd_get(feed->model, thread, begun->args[ARG_A], &begun->file);
	if (status >= 0 && begun->row->io == KY_IO_COPY)
		status = ky_fd_get(feed->model, thread, begun->args[ARG_B], &begun->to);
	if (status >= 0 && begun->row->action == ACT_CONNECT)
		status = name_peer(feed, event, info, thread);
	return status;
}

/* ---- the end ----------------------------------------------------------------------------- */

/* A descriptor of what has no path: named by what it is. */
static int set_named(struct ky_feed *feed, struct ky_thread *thread, int64_t fd, const char *name,
		     enum ky_file_kind kind, bool cloexec, const struct ky_file **made)
{
	struct ky_file *file = ky_file_get(feed->model, feed->host, name, strlen(name), kind);

	if (!file)
		return KYMO_E_MEMORY;
	*made = file;
	return ky_fd_set(feed->model, thread, fd, file, cloexec);
}

static int end_socket(struct ky_feed *feed, struct ky_thread *thread,
		      const struct ky_syscall *begun, int64_t fd, const struct ky_file **made)
{
	bool cloexec = begun->args[ARG_B] & O_CLOEXEC_FLAG;

	switch (begun->args[ARG_A]) {
	case FAMILY_UNIX:
		return set_named(feed, thread, fd, "unix socket", KY_FILE_OTHER, cloexec, made);
	case FAMILY_NETLINK:
		return set_named(feed, thread, fd, "netlink socket", KY_FILE_OTHER, cloexec, made);
	case FAMILY_INET:
	case FAMILY_INET6:
		return set_named(feed, thread, fd, "internet socket", KY_FILE_NET, cloexec, made);
	default:
		return set_named(feed, thread, fd, "socket", KY_FILE_NET, cloexec, made);
	}
}

/* What an accepted connection is called: by its peer, else by the socket that listens. */
static int end_accept(struct ky_feed *feed, const struct ky_event *event,
		      const struct ky_class_info *info, struct ky_thread *thread,
		      const struct ky_syscall *begun, int64_t fd, const struct ky_file **made)
{
	const struct ky_handle *fields = &info->fields[KY_SYSCALL_ARGS];
	enum ky_file_kind kind = begun->file ? begun->file->kind : KY_FILE_UNKNOWN;
	char name[300];
	int len = ky_address_format(event, &fields[1], NULL, (uint16_t)ky_get_u64(event, fields, 0),
				    name, sizeof(name));

	if (len <= 0)
		snprintf(name, sizeof(name), "accepted on %.250s",
			 begun->file ? begun->file->name : "?");
	return set_named(feed, thread, fd, name, kind, begun->args[ARG_B] & O_CLOEXEC_FLAG, made);
}

static int end_fcntl(struct ky_feed *feed, struct ky_thread *thread, const struct ky_syscall *begun,
		     int64_t ret)
{
	if (begun->args[ARG_B] == CMD_SETFD)
		return ky_fd_set_cloexec(feed->model, thread, begun->args[ARG_A],
					 begun->args[ARG_C] & FD_CLOEXEC_FLAG);
	if ((begun->args[ARG_B] != CMD_DUPFD && begun->args[ARG_B] != CMD_DUPFD_CLOEXEC) ||
	    !begun->file)
		return 0;
	return ky_fd_set(feed->model, thread, ret, begun->file,
			 begun->args[ARG_B] == CMD_DUPFD_CLOEXEC);
}

static int end_pair(struct ky_feed *feed, const struct ky_event *event,
		    const struct ky_class_info *info, struct ky_thread *thread,
		    const struct ky_syscall *begun)
{
	const struct ky_handle *array = &info->fields[KY_SYSCALL_ARGS];
	bool cloexec = begun->args[ARG_B] & O_CLOEXEC_FLAG;
	bool is_pipe = strncmp(begun->row->name, "pipe", 4) == 0;
	const struct ky_file *made;
	int status = 0;

	if (!has_elements(event, array, 2))
		return 0;
	for (uint64_t i = 0; i < 2 && status >= 0; i++) {
		struct ky_handle element;

		if (ky_handle_child(&element, event->cls, array, i) < 0)
			return 0;
		status = set_named(feed, thread, ky_get_i64(event, &element, -1),
				   is_pipe ? "pipe" : "socket pair",
				   is_pipe ? KY_FILE_PIPE : KY_FILE_OTHER, cloexec, &made);
	}
	return status;
}

static int close_range(struct ky_feed *feed, struct ky_thread *thread,
		       const struct ky_syscall *begun)
{
	/* With CLOSE_RANGE_CLOEXEC they stay, until an exec: which is when they will be gone. */
	if (begun->args[ARG_C] & CLOSE_RANGE_CLOEXEC)
		return 0;
	return ky_fd_close(feed->model, thread, (uint32_t)begun->args[ARG_A],
			   (uint32_t)begun->args[ARG_B]);
}

/* Change the files as a call did that returned @ret; *@made is what it opened. */
static int model_io_act(struct ky_feed *feed, const struct ky_event *event,
			const struct ky_class_info *info, struct ky_thread *thread,
			const struct ky_syscall *begun, int64_t ret, const struct ky_file **made)
{
	struct ky_model *model = feed->model;

	switch (begun->row->action) {
	case ACT_OPEN:
		*made = begun->file;
		feed->host->nameless += !begun->file;
		if (!begun->file)
			return ky_fd_close(model, thread, (uint64_t)ret, (uint64_t)ret);
		return ky_fd_set(model, thread, ret, begun->file,
				 begun->args[ARG_B] & O_CLOEXEC_FLAG);
	case ACT_SOCKET:
		return end_socket(feed, thread, begun, ret, made);
	case ACT_ACCEPT:
		return end_accept(feed, event, info, thread, begun, ret, made);
	case ACT_CONNECT:
		return begun->to ? ky_fd_set(model, thread, begun->args[ARG_A], begun->to, false)
				 : 0;
	case ACT_DUP:
		*made = begun->file;
		return begun->file ? ky_fd_set(model, thread, ret, begun->file, false) : 0;
	case ACT_DUP_TO:
		*made = begun->file;
		return begun->file ? ky_fd_set(model, thread, begun->args[ARG_B], begun->file,
					       begun->args[ARG_C] & O_CLOEXEC_FLAG)
				   : 0;
	case ACT_FCNTL:
		return end_fcntl(feed, thread, begun, ret);
	case ACT_PAIR:
		return end_pair(feed, event, info, thread, begun);
	case ACT_SPECIAL:
		return set_named(feed, thread, ret, begun->row->name, KY_FILE_OTHER,
				 begun->args[ARG_A] & O_CLOEXEC_FLAG, made);
	case ACT_CLOSE:
		return ky_fd_close(model, thread, (uint64_t)begun->args[ARG_A],
				   (uint64_t)begun->args[ARG_A]);
	case ACT_CLOSE_RANGE:
		return close_range(feed, thread, begun);
	case ACT_FUTEX:
	case ACT_NONE:
		break;
	}
	return 0;
}

#define EINPROGRESS_NUMBER 115
#define EINTR_NUMBER	   4

/* Did the call have its effect? A connection that is still being made, and a close that a signal met, have. */
static bool took_effect(const struct ky_call_row *row, int64_t ret)
{
	return ret >= 0 || (row->action == ACT_CONNECT && ret == -EINPROGRESS_NUMBER) ||
	       (row->action == ACT_CLOSE && ret == -EINTR_NUMBER);
}

/* Operations of futex() that wait; what is above the low 7 bits says how. */
#define OP_MASK		   0x7f
#define OP_WAIT		   0
#define OP_LOCK_PI	   6
#define OP_WAIT_BITSET	   9
#define OP_WAIT_REQUEUE_PI 11
#define OP_LOCK_PI2	   13

bool ky_futex_waits(int64_t op)
{
	switch (op & OP_MASK) {
	case OP_WAIT:
	case OP_LOCK_PI:
	case OP_WAIT_BITSET:
	case OP_WAIT_REQUEUE_PI:
	case OP_LOCK_PI2:
		return true;
	default:
		return false;
	}
}

static int tell_futex(struct ky_model *model, const struct ky_call *call)
{
	bool tells = ky_model_tells(model, call->thread, call->cpu_id) &&
		     ky_model_tells_long(model, call->end_ns - call->begin_ns);
	int status = tells ? ky_model_notify(model, futex, call) : 0;

	if (status < 0 || !(model->subjects & KY_ABOUT_LOCKS))
		return status;
	return ky_lock_end(model, call, tells);
}

int ky_io_end(struct ky_feed *feed, const struct ky_event *event, const struct ky_class_info *info,
	      struct ky_syscall *begun, const struct ky_call *call)
{
	struct ky_io io = {.call = call, .kind = begun->row->io};
	int status = 0;

	if (begun->row->action == ACT_FUTEX)
		return tell_futex(feed->model, call);
	if (!(feed->model->subjects & KY_ABOUT_FILES))
		return 0;
	if (begun->row->action == ACT_OPEN && !begun->file)
		status = path_file(feed, event, &info->fields[KY_SYSCALL_ARGS], &begun->file);
	io.file = begun->file;
	io.to = begun->to;
	if (status >= 0 && took_effect(begun->row, call->ret))
		status = model_io_act(feed, event, info, call->thread, begun, call->ret, &io.file);
	if (status < 0 || io.kind == KY_IO_NONE ||
	    !ky_model_tells(feed->model, call->thread, call->cpu_id) ||
	    !ky_model_tells_long(feed->model, call->end_ns - call->begin_ns))
		return status;
	if (!begun->row->no_bytes && call->ret > 0)
		io.bytes = (uint64_t)call->ret;
	return ky_model_notify(feed->model, io, &io);
}
