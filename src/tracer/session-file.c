/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tracer/tracer.h"

int ky_directory_open(const char *path)
{
	return (int)ky_sys(SYS_openat, AT_FDCWD, (long)path,
			   O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0, 0, 0);
}

bool ky_directory_is_safe(int fd)
{
	uid_t uid = (uid_t)ky_sys(SYS_geteuid, 0, 0, 0, 0, 0, 0);
	struct stat st;

	return ky_fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) &&
	       (st.st_uid == uid || st.st_uid == 0) && !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* ---- checking ---- */

static bool session_file_is_array(const struct ky_session_file *file, uint64_t offset, uint64_t n,
				  uint64_t item_bytes, uint64_t n_max)
{
	return !n || (n <= n_max && offset % (item_bytes % 8 ? 4 : 8) == 0 &&
		      offset <= file->bytes && n * item_bytes <= file->bytes - offset);
}

static bool session_file_is_text(const struct ky_session_file *file, uint64_t offset)
{
	return offset < file->bytes &&
	       memchr((const char *)file + offset, 0, file->bytes - offset) != NULL;
}

static bool check_code(const struct ky_session_file *file, const struct ky_session_rule *rule)
{
	const struct ky_filter_op *op = (const void *)((const char *)file + rule->code);

	for (uint32_t i = 0; i < rule->n_code; i++, op++) {
		bool has_text = op->code == KY_FILTER_TEXT || op->code == KY_FILTER_FIELD ||
				op->code == KY_FILTER_CONTEXT || op->code == KY_FILTER_HAS;

		if (has_text && !session_file_is_text(file, op->arg))
			return false;
		if ((op->code == KY_FILTER_AND || op->code == KY_FILTER_OR) &&
		    (op->arg <= i || op->arg > rule->n_code))
			return false;
	}
	return true;
}

static bool check_rule(const struct ky_session_file *file, const struct ky_session_rule *rule)
{
	const uint32_t *exclusions = (const void *)((const char *)file + rule->exclusions);

	if (!session_file_is_text(file, rule->pattern) ||
	    !session_file_is_array(file, rule->exclusions, rule->n_exclusions, 4,
				   KY_SESSION_BYTES_MAX) ||
	    !session_file_is_array(file, rule->code, rule->n_code, sizeof(struct ky_filter_op),
				   KY_FILTER_OPS_MAX))
		return false;
	for (uint32_t i = 0; i < rule->n_exclusions; i++) {
		if (!session_file_is_text(file, exclusions[i]))
			return false;
	}
	return check_code(file, rule);
}

static bool is_power(uint32_t n)
{
	return n && !(n & (n - 1));
}

static bool session_file_check(const struct ky_session_file *file)
{
	const struct ky_session_context *contexts =
		(const void *)((const char *)file + file->contexts);
	const struct ky_session_rule *rules = (const void *)((const char *)file + file->rules);

	if (!file->cookie || !is_power(file->subbuf_bytes) || !is_power(file->n_subbufs) ||
	    file->subbuf_bytes < 4096 || file->subbuf_bytes > (64u << 20) || file->n_subbufs < 2 ||
	    file->n_subbufs > 1024 ||
	    !session_file_is_array(file, file->contexts, file->n_contexts, sizeof(*contexts),
				   KY_CONTEXTS_MAX) ||
	    !session_file_is_array(file, file->rules, file->n_rules, sizeof(*rules), 1024) ||
	    !session_file_is_array(file, file->track_pids, file->n_track_pids, 4,
				   KY_SESSION_BYTES_MAX))
		return false;
	for (uint32_t i = 0; i < file->n_contexts; i++) {
		if (contexts[i].name && !session_file_is_text(file, contexts[i].name))
			return false;
	}
	for (uint32_t i = 0; i < file->n_rules; i++) {
		if (!check_rule(file, &rules[i]))
			return false;
	}
	return true;
}

/* ---- reading ---- */

/* Somebody holds a write lock: the recorder lives. */
static bool is_locked(int fd)
{
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

	return ky_sys(SYS_fcntl, fd, F_OFD_GETLK, (long)&lock, 0, 0, 0) == 0 &&
	       lock.l_type != F_UNLCK;
}

static int session_file_read_all(int fd, uint8_t *to, uint32_t bytes)
{
	uint32_t done = 0;

	while (done < bytes) {
		long got = ky_sys(SYS_pread64, fd, (long)(to + done), bytes - done, done, 0, 0);

		if (got == -EINTR)
			continue;
		if (got <= 0)
			return KY_OFF_SESSION;
		done += (uint32_t)got;
	}
	return 0;
}

static int read_file(int fd, const struct ky_session_file **to, uint32_t *bytes)
{
	struct ky_session_file *file;
	struct stat st;
	int result = ky_fstat(fd, &st);
	long map;

	if (result || !S_ISREG(st.st_mode) || st.st_size < (off_t)sizeof(*file) ||
	    st.st_size > KY_SESSION_BYTES_MAX)
		return KY_OFF_SESSION;
	if (!is_locked(fd))
		return KY_OFF_NO_RECORDER;
	map = ky_sys(SYS_mmap, 0, st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	if (map < 0)
		return KY_OFF_MEMORY;
	file = (struct ky_session_file *)map; // NOLINT(performance-no-int-to-ptr)
	result = session_file_read_all(fd, (uint8_t *)file, (uint32_t)st.st_size);
	if (!result && file->magic != KY_SESSION_MAGIC)
		result = KY_OFF_SESSION;
	if (!result && file->version != KY_CONTROL_VERSION)
		result = KY_OFF_VERSION;
	if (!result && (file->bytes != st.st_size || !session_file_check(file)))
		result = KY_OFF_SESSION;
	if (result) {
		ky_sys(SYS_munmap, map, st.st_size, 0, 0, 0, 0);
		return result;
	}
	*to = file;
	*bytes = file->bytes;
	return 0;
}

int ky_session_read(int dir_fd, const struct ky_session_file **file, uint32_t *bytes, int *os_error)
{
	long fd;
	int result;

	*os_error = 0;
	if (!ky_directory_is_safe(dir_fd))
		return KY_OFF_OWNER;
	fd = ky_sys(SYS_openat, dir_fd, (long)KY_SESSION_FILE,
		    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0, 0, 0);
	if (fd < 0) {
		*os_error = (int)-fd;
		return KY_OFF_SESSION;
	}
	result = read_file((int)fd, file, bytes);
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return result;
}

const struct ky_session_file *ky_session_map(int dir_fd)
{
	long fd = ky_sys(SYS_openat, dir_fd, (long)KY_SESSION_FILE,
			 O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0, 0, 0);
	struct stat st;
	long map = -1;

	if (fd < 0)
		return NULL;
	if (ky_fstat((int)fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size >= (off_t)sizeof(struct ky_session_file))
		map = ky_sys(SYS_mmap, 0, sizeof(struct ky_session_file), PROT_READ, MAP_SHARED, fd,
			     0);
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return map < 0 ? NULL : (const void *)map; // NOLINT(performance-no-int-to-ptr)
}

uint64_t ky_session_cookie(int dir_fd)
{
	struct ky_session_file head = {0};
	long fd = ky_sys(SYS_openat, dir_fd, (long)KY_SESSION_FILE,
			 O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0, 0, 0);

	if (fd < 0)
		return 0;
	if (!is_locked((int)fd) || session_file_read_all((int)fd, (uint8_t *)&head, sizeof(head)))
		head.cookie = 0;
	ky_sys(SYS_close, fd, 0, 0, 0, 0, 0);
	return head.cookie;
}

/* ---- rules ---- */

static bool session_file_matches(const char *pattern, const struct ky_event_record *record)
{
	const char *provider = ky_record_text(record, record->provider);
	const char *name = ky_record_text(record, record->name);
	char full[2 * KY_NAME_MAX + 2];
	size_t n = strnlen(provider, KY_NAME_MAX), m = strnlen(name, KY_NAME_MAX);

	memcpy(full, provider, n);
	full[n] = ':';
	memcpy(full + n + 1, name, m);
	return ky_trace_glob(pattern, strlen(pattern), full, n + 1 + m, false);
}

bool ky_rule_takes(const struct ky_session_file *file, const struct ky_session_rule *rule,
		   const struct ky_event *event)
{
	const uint32_t *exclusions = (const void *)((const char *)file + rule->exclusions);

	if (event->kind != KY_EVENT_QUERY &&
	    (event->log_level < rule->log_level_min || event->log_level > rule->log_level_max))
		return false;
	if (!session_file_matches((const char *)file + rule->pattern, event->record))
		return false;
	for (uint32_t i = 0; i < rule->n_exclusions; i++) {
		if (session_file_matches((const char *)file + exclusions[i], event->record))
			return false;
	}
	return true;
}
