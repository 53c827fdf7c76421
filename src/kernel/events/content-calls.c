/* SPDX-License-Identifier: MIT */
#include "kernel/events/content-calls.h"

#include <string.h>

#include <sys/syscall.h>

/* Numbers of x86-64, which never change; headers may be older than the kernel. */
#if defined(__x86_64__)

#define CALL(call, nr, ...)                                           \
	{                                                             \
		.name = #call, .number = nr, .items = { __VA_ARGS__ } \
	}

#define A(kind_, ...)	  [KY_CONTENT_IN_A] = {KY_CONTENT_##kind_, __VA_ARGS__}
#define B(kind_, ...)	  [KY_CONTENT_IN_B] = {KY_CONTENT_##kind_, __VA_ARGS__}
#define C(kind_, ...)	  [KY_CONTENT_IN_C] = {KY_CONTENT_##kind_, __VA_ARGS__}
#define OUT_A(kind_, ...) [KY_CONTENT_OUT_A] = {KY_CONTENT_##kind_, __VA_ARGS__}
#define IDS		  [KY_CONTENT_OUT_IDS] = {KY_CONTENT_IDS, 0, 0, NULL}
#define OUT_B(kind_, ...) [KY_CONTENT_OUT_B] = {KY_CONTENT_##kind_, __VA_ARGS__}

static const struct ky_content_call calls[] = {
	/* Files. */
	CALL(open, 2, A(TEXT, 0, 0, "filename")),
	CALL(creat, 85, A(TEXT, 0, 0, "pathname")),
	CALL(openat, 257, A(TEXT, 1, 0, "filename")),
	CALL(openat2, 437, A(TEXT, 1, 0, "filename")),
	CALL(name_to_handle_at, 303, A(TEXT, 1, 0, "name")),
	CALL(newstat, 4, A(TEXT, 0, 0, "filename")),
	CALL(newlstat, 6, A(TEXT, 0, 0, "filename")),
	CALL(newfstatat, 262, A(TEXT, 1, 0, "filename")),
	CALL(statx, 332, A(TEXT, 1, 0, "filename")),
	CALL(statfs, 137, A(TEXT, 0, 0, "pathname")),
	CALL(access, 21, A(TEXT, 0, 0, "filename")),
	CALL(faccessat, 269, A(TEXT, 1, 0, "filename")),
	CALL(faccessat2, 439, A(TEXT, 1, 0, "filename")),
	CALL(truncate, 76, A(TEXT, 0, 0, "path")),
	CALL(chmod, 90, A(TEXT, 0, 0, "filename")),
	CALL(fchmodat, 268, A(TEXT, 1, 0, "filename")),
	CALL(fchmodat2, 452, A(TEXT, 1, 0, "filename")),
	CALL(chown, 92, A(TEXT, 0, 0, "filename")),
	CALL(lchown, 94, A(TEXT, 0, 0, "filename")),
	CALL(fchownat, 260, A(TEXT, 1, 0, "filename")),
	CALL(utime, 132, A(TEXT, 0, 0, "filename")),
	CALL(utimes, 235, A(TEXT, 0, 0, "filename")),
	CALL(futimesat, 261, A(TEXT, 1, 0, "filename")),
	CALL(utimensat, 280, A(TEXT, 1, 0, "filename")),
	CALL(file_getattr, 468, A(TEXT, 1, 0, "filename")),
	CALL(file_setattr, 469, A(TEXT, 1, 0, "filename")),
	/* Names. */
	CALL(rename, 82, A(TEXT, 0, 0, "oldname"), B(TEXT, 1, 0, "newname")),
	CALL(renameat, 264, A(TEXT, 1, 0, "oldname"), B(TEXT, 3, 0, "newname")),
	CALL(renameat2, 316, A(TEXT, 1, 0, "oldname"), B(TEXT, 3, 0, "newname")),
	CALL(link, 86, A(TEXT, 0, 0, "oldname"), B(TEXT, 1, 0, "newname")),
	CALL(linkat, 265, A(TEXT, 1, 0, "oldname"), B(TEXT, 3, 0, "newname")),
	CALL(symlink, 88, A(TEXT, 0, 0, "oldname"), B(TEXT, 1, 0, "newname")),
	CALL(symlinkat, 266, A(TEXT, 0, 0, "oldname"), B(TEXT, 2, 0, "newname")),
	CALL(unlink, 87, A(TEXT, 0, 0, "pathname")),
	CALL(unlinkat, 263, A(TEXT, 1, 0, "pathname")),
	CALL(readlink, 89, A(TEXT, 0, 0, "path"), OUT_B(OUT_TEXT, 1, 2, "buf")),
	CALL(readlinkat, 267, A(TEXT, 1, 0, "pathname"), OUT_B(OUT_TEXT, 2, 3, "buf")),
	/* Directories. */
	CALL(mkdir, 83, A(TEXT, 0, 0, "pathname")),
	CALL(mkdirat, 258, A(TEXT, 1, 0, "pathname")),
	CALL(rmdir, 84, A(TEXT, 0, 0, "pathname")),
	CALL(mknod, 133, A(TEXT, 0, 0, "filename")),
	CALL(mknodat, 259, A(TEXT, 1, 0, "filename")),
	CALL(chdir, 80, A(TEXT, 0, 0, "filename")),
	CALL(chroot, 161, A(TEXT, 0, 0, "filename")),
	CALL(getcwd, 79, OUT_B(OUT_TEXT, 0, 1, "buf")),
	CALL(inotify_add_watch, 254, A(TEXT, 1, 0, "pathname")),
	CALL(fanotify_mark, 301, A(TEXT, 4, 0, "pathname")),
	/* Extended attributes. */
	CALL(setxattr, 188, A(TEXT, 0, 0, "pathname"), C(TEXT, 1, 0, "name"),
	     B(BUFFER, 2, 3, "value")),
	CALL(lsetxattr, 189, A(TEXT, 0, 0, "pathname"), C(TEXT, 1, 0, "name"),
	     B(BUFFER, 2, 3, "value")),
	CALL(fsetxattr, 190, C(TEXT, 1, 0, "name"), B(BUFFER, 2, 3, "value")),
	CALL(getxattr, 191, A(TEXT, 0, 0, "pathname"), C(TEXT, 1, 0, "name"),
	     OUT_B(BUFFER, 2, 3, "value")),
	CALL(lgetxattr, 192, A(TEXT, 0, 0, "pathname"), C(TEXT, 1, 0, "name"),
	     OUT_B(BUFFER, 2, 3, "value")),
	CALL(fgetxattr, 193, C(TEXT, 1, 0, "name"), OUT_B(BUFFER, 2, 3, "value")),
	CALL(listxattr, 194, A(TEXT, 0, 0, "pathname"), OUT_B(BUFFER, 1, 2, "list")),
	CALL(llistxattr, 195, A(TEXT, 0, 0, "pathname"), OUT_B(BUFFER, 1, 2, "list")),
	CALL(flistxattr, 196, OUT_B(BUFFER, 1, 2, "list")),
	CALL(removexattr, 197, A(TEXT, 0, 0, "pathname"), C(TEXT, 1, 0, "name")),
	CALL(lremovexattr, 198, A(TEXT, 0, 0, "pathname"), C(TEXT, 1, 0, "name")),
	CALL(fremovexattr, 199, C(TEXT, 1, 0, "name")),
	CALL(setxattrat, 463, A(TEXT, 1, 0, "pathname"), C(TEXT, 3, 0, "name")),
	CALL(getxattrat, 464, A(TEXT, 1, 0, "pathname"), C(TEXT, 3, 0, "name")),
	CALL(listxattrat, 465, A(TEXT, 1, 0, "pathname"), OUT_B(BUFFER, 3, 4, "list")),
	CALL(removexattrat, 466, A(TEXT, 1, 0, "pathname"), C(TEXT, 3, 0, "name")),
	/* File systems. */
	CALL(mount, 165, A(TEXT, 0, 0, "dev_name"), B(TEXT, 1, 0, "dir_name"),
	     C(TEXT, 2, 0, "type")),
	CALL(umount, 166, A(TEXT, 0, 0, "name")),
	CALL(pivot_root, 155, A(TEXT, 0, 0, "new_root"), B(TEXT, 1, 0, "put_old")),
	CALL(open_tree, 428, A(TEXT, 1, 0, "filename")),
	CALL(open_tree_attr, 467, A(TEXT, 1, 0, "filename")),
	CALL(move_mount, 429, A(TEXT, 1, 0, "from_pathname"), B(TEXT, 3, 0, "to_pathname")),
	CALL(mount_setattr, 442, A(TEXT, 1, 0, "path")),
	CALL(fsopen, 430, A(TEXT, 0, 0, "_fs_name")),
	CALL(fsconfig, 431, A(TEXT, 2, 0, "_key")),
	CALL(fspick, 433, A(TEXT, 1, 0, "path")),
	CALL(swapon, 167, A(TEXT, 0, 0, "specialfile")),
	CALL(swapoff, 168, A(TEXT, 0, 0, "specialfile")),
	CALL(quotactl, 179, A(TEXT, 1, 0, "special")),
	CALL(acct, 163, A(TEXT, 0, 0, "name")),
	/* Processes, keys, queues, names of the machine. */
	{.name = "execve",
	 .number = 59,
	 .replaces_memory = true,
	 .items = {A(TEXT, 0, 0, "filename"), B(TEXTS, 1, 0, "argv"), C(ENVIRON, 2, 0, "envp"),
		   IDS}},
	{.name = "execveat",
	 .number = 322,
	 .replaces_memory = true,
	 .items = {A(TEXT, 1, 0, "filename"), B(TEXTS, 2, 0, "argv"), C(ENVIRON, 3, 0, "envp"),
		   IDS}},
	CALL(memfd_create, 319, A(TEXT, 0, 0, "uname")),
	CALL(init_module, 175, A(TEXT, 2, 0, "uargs")),
	CALL(finit_module, 313, A(TEXT, 1, 0, "uargs")),
	CALL(delete_module, 176, A(TEXT, 0, 0, "name_user")),
	CALL(sethostname, 170, B(BUFFER, 0, 1, "name")),
	CALL(setdomainname, 171, B(BUFFER, 0, 1, "name")),
	CALL(syslog, 103, OUT_B(BUFFER, 1, 2, "buf")),
	CALL(add_key, 248, A(TEXT, 0, 0, "_type"), C(TEXT, 1, 0, "_description"),
	     B(BUFFER, 2, 3, "_payload")),
	CALL(request_key, 249, A(TEXT, 0, 0, "_type"), B(TEXT, 1, 0, "_description"),
	     C(TEXT, 2, 0, "_callout_info")),
	CALL(mq_open, 240, A(TEXT, 0, 0, "u_name")),
	CALL(mq_unlink, 241, A(TEXT, 0, 0, "u_name")),
	CALL(mq_timedsend, 242, B(BUFFER, 1, 2, "u_msg_ptr")),
	CALL(mq_timedreceive, 243, OUT_B(BUFFER, 1, 2, "u_msg_ptr")),
	CALL(getrandom, 318, OUT_B(BUFFER, 0, 1, "ubuf")),
	/* The identity of a thread, which its child inherits. */
	CALL(setuid, 105, IDS),
	CALL(setgid, 106, IDS),
	CALL(setreuid, 113, IDS),
	CALL(setregid, 114, IDS),
	CALL(setresuid, 117, IDS),
	CALL(setresgid, 119, IDS),
	CALL(setfsuid, 122, IDS),
	CALL(setfsgid, 123, IDS),
	CALL(unshare, 272, IDS),
	CALL(setns, 308, IDS),
	CALL(clone, 56, IDS),
	CALL(fork, 57, IDS),
	CALL(vfork, 58, IDS),
	CALL(clone3, 435, IDS),
	/* Data. */
	CALL(read, 0, OUT_B(BUFFER, 1, 2, "buf")),
	CALL(pread64, 17, OUT_B(BUFFER, 1, 2, "buf")),
	CALL(readv, 19, OUT_B(IOVEC, 1, 2, "vec")),
	CALL(preadv, 295, OUT_B(IOVEC, 1, 2, "vec")),
	CALL(preadv2, 327, OUT_B(IOVEC, 1, 2, "vec")),
	CALL(write, 1, B(BUFFER, 1, 2, "buf")),
	CALL(pwrite64, 18, B(BUFFER, 1, 2, "buf")),
	CALL(writev, 20, B(IOVEC, 1, 2, "vec")),
	CALL(pwritev, 296, B(IOVEC, 1, 2, "vec")),
	CALL(pwritev2, 328, B(IOVEC, 1, 2, "vec")),
	CALL(vmsplice, 278, B(IOVEC, 1, 2, "uiov")),
	CALL(process_vm_readv, 310, OUT_B(IOVEC, 1, 2, "lvec")),
	CALL(process_vm_writev, 311, B(IOVEC, 1, 2, "lvec")),
	/* Sockets. */
	CALL(connect, 42, A(SOCKADDR, 1, 2, "uservaddr")),
	CALL(bind, 49, A(SOCKADDR, 1, 2, "umyaddr")),
	CALL(accept, 43, OUT_A(SOCKADDR, 1, 2, "upeer_sockaddr")),
	CALL(accept4, 288, OUT_A(SOCKADDR, 1, 2, "upeer_sockaddr")),
	CALL(getsockname, 51, OUT_A(SOCKADDR, 1, 2, "usockaddr")),
	CALL(getpeername, 52, OUT_A(SOCKADDR, 1, 2, "usockaddr")),
	CALL(sendto, 44, A(SOCKADDR, 4, 5, "addr"), B(BUFFER, 1, 2, "buff")),
	CALL(recvfrom, 45, OUT_A(SOCKADDR, 4, 5, "addr"), OUT_B(BUFFER, 1, 2, "ubuf")),
	CALL(setsockopt, 54, A(VALUE, 3, 4, "optval")),
	CALL(getsockopt, 55, OUT_A(VALUE, 3, 4, "optval")),
	CALL(sendmsg, 46, A(MSG_NAME, 1, 0, "msg"), B(MSG_IOVEC, 1, 0, "msg")),
	CALL(recvmsg, 47, OUT_A(MSG_NAME, 1, 0, "msg"), OUT_B(MSG_IOVEC, 1, 0, "msg")),
	CALL(sendmmsg, 307, B(MESSAGES, 1, 2, "mmsg")),
	CALL(recvmmsg, 299, OUT_B(MESSAGES, 1, 2, "mmsg")),
};
#else
static const struct ky_content_call calls[1];
#endif

const struct ky_content_call *ky_content_call_find(const char *event, bool *is_exit)
{
	*is_exit = strncmp(event, "sys_exit_", 9) == 0;
	if (!*is_exit && strncmp(event, "sys_enter_", 10) != 0)
		return NULL;
	event += *is_exit ? 9 : 10;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (calls[i].name && strcmp(calls[i].name, event) == 0)
			return &calls[i];
	return NULL;
}

const char *ky_content_call_of_ids(size_t i)
{
	for (size_t k = 0; k < sizeof(calls) / sizeof(calls[0]); k++)
		if (calls[k].items[KY_CONTENT_OUT_IDS].kind && i-- == 0)
			return calls[k].name;
	return NULL;
}
