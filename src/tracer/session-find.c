/* SPDX-License-Identifier: MIT */
/* Sessions that the runtime directories tell of: a program that starts joins them by itself. */
#include <string.h>
#include <sys/syscall.h>

#include "tracer/tracer.h"

/* A free slot of the control file, for us. */
static struct ky_control_slot *claim_slot(uint64_t cookie, uint32_t *number)
{
	struct ky_control_slot *slots = ky_trace.control->slots;
	uint32_t free;

	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		if (__atomic_load_n(&slots[i].cookie, __ATOMIC_ACQUIRE) == cookie)
			return NULL;
	}
	for (uint32_t i = 0; i < KY_CONTROL_SLOTS; i++) {
		free = 0;
		if (__atomic_compare_exchange_n(&slots[i].owner, &free, ky_trace_pid(), false,
						__ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
			*number = i;
			return &slots[i];
		}
	}
	ky_trace.off = KY_OFF_SLOTS;
	return NULL;
}

/*
 * Where the session's directory is, in @to, which has KY_SESSION_PATH_MAX + 1: the recorder may have it
 * elsewhere; then there is a link to it, which only a trusted user can have made.
 */
static bool session_find_directory(int runtime_fd, const char *path, const char *name, char *to)
{
	size_t n = strlen(path), m = strlen(name);
	long got;

	if (m > KY_SESSION_NAME_MAX || n + 1 + m > KY_SESSION_PATH_MAX)
		return false;
	got = ky_sys(SYS_readlinkat, runtime_fd, (long)name, (long)to, KY_SESSION_PATH_MAX + 1, 0,
		     0);
	if (got > 0) {
		to[got <= KY_SESSION_PATH_MAX ? got : 0] = 0;
		return to[0] == '/';
	}
	memcpy(to, path, n);
	to[n] = '/';
	memcpy(to + n + 1, name, m + 1);
	return true;
}

/* The session in @directory; NULL: not one for this process. */
static struct ky_slot *open_session(int dir_fd, const char *directory)
{
	struct ky_slot *slot = ky_trace_alloc(sizeof(*slot));
	int os_error;

	if (!slot || ky_session_open(slot, dir_fd, &os_error))
		return NULL;
	memcpy(slot->directory, directory, sizeof(slot->directory));
	slot->cookie = slot->file->cookie;
	return slot;
}

/*
 * A recorder that changes its rules, or ends, first writes its file, and then searches for slots with the old cookie.
 * So a process that has filled a slot reads the file once more: either the recorder has seen the slot, or the process
 * sees the new file. Returns the joined session of the slot; NULL: none, and the slot is free again.
 */
static struct ky_slot *session_find_fill_slot(struct ky_control_slot *shared, struct ky_slot *slot,
					      int dir_fd)
{
	uint64_t asked = 0;

	for (;;) {
		uint64_t cookie = slot->cookie;
		struct ky_slot *again;

		/* Another cookie than ours: the recorder has seen the slot, and says what it is now. */
		if (!__atomic_compare_exchange_n(&shared->cookie, &asked, cookie, false,
						 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
			return slot;
		if (ky_session_cookie(dir_fd) == cookie)
			return slot;
		again = open_session(dir_fd, slot->directory);
		asked = cookie;
		if (again) {
			slot = again;
			continue;
		}
		if (__atomic_compare_exchange_n(&shared->cookie, &asked, 0, false, __ATOMIC_SEQ_CST,
						__ATOMIC_RELAXED) ||
		    !asked)
			__atomic_store_n(&shared->owner, 0, __ATOMIC_RELEASE);
		return NULL;
	}
}

static void join_found(int dir_fd, const char *directory)
{
	struct ky_slot *slot = open_session(dir_fd, directory);
	struct ky_control_slot *shared;
	uint32_t number;

	if (!slot)
		return;
	shared = claim_slot(slot->cookie, &number);
	if (!shared)
		return;
	memcpy(shared->directory, slot->directory, sizeof(slot->directory));
	shared->os_error = 0;
	slot = session_find_fill_slot(shared, slot, dir_fd);
	if (slot)
		ky_session_enter(slot, number, 0);
}

/* The session in directory @name of @runtime, whose path is @path. */
static void find_session(int runtime_fd, const char *path, const char *name)
{
	char directory[KY_SESSION_PATH_MAX + 1] = "";
	int dir_fd;

	if (!session_find_directory(runtime_fd, path, name, directory))
		return;
	dir_fd = ky_directory_open(directory);
	if (dir_fd < 0)
		return;
	join_found(dir_fd, directory);
	ky_sys(SYS_close, dir_fd, 0, 0, 0, 0, 0);
}

/* As the kernel gives them. */
struct entry {
	uint64_t inode;
	int64_t offset;
	uint16_t bytes;
	uint8_t type;
	char name[];
};

static void session_find_in(const char *path)
{
	_Alignas(8) char buffer[2048];
	int fd = ky_directory_open(path);
	long got;

	if (fd < 0)
		return;
	while (ky_directory_is_safe(fd) &&
	       (got = ky_sys(SYS_getdents64, fd, (long)buffer, sizeof(buffer), 0, 0, 0)) > 0) {
		for (long at = 0; at < got;) {
			const struct entry *entry = (const struct entry *)(buffer + at);

			if (entry->name[0] != '.')
				find_session(fd, path, entry->name);
			at += entry->bytes;
		}
	}
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* @format has one %u. */
static void session_find_put_path(char *to, const char *format, uint32_t uid)
{
	char digits[11];
	int n = 0;

	for (; *format; format++) {
		if (format[0] != '%') {
			*to++ = *format;
			continue;
		}
		format++;
		do {
			digits[n++] = (char)('0' + uid % 10);
			uid /= 10;
		} while (uid);
		while (n)
			*to++ = digits[--n];
	}
	*to = 0;
}

void ky_sessions_find(void)
{
	static const char *const formats[] = {KY_RUNTIME_ROOT, KY_RUNTIME_USER, KY_RUNTIME_SHM};
	uint32_t uid = ky_trace.uid;
	char path[64];

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		session_find_put_path(path, formats[i], uid);
		session_find_in(path);
	}
}
