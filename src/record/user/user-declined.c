/* SPDX-License-Identifier: MIT */
/*
 * Programs that could not take part. Those that run still say why in their control file; one that has ended
 * has left a note: an empty file whose name says it (abi/control.h). Nothing in it is trusted.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/user/user-internal.h"

/* The maximum number of warnings about one user's notes. */
#define NOTES_TOLD 50
/* The maximum number of notes whose missing names it looks up. */
#define LACKING_READ 1000

static bool user_declined_is_known(struct ky_user *user, uint64_t who)
{
	for (size_t i = 0; i < user->left_out.len; i++) {
		if (user->left_out.data[i] == who)
			return true;
	}
	return user->left_out.len > NOTES_TOLD || ky_vec_push(&user->left_out, who) < 0;
}

void ky_user_tell_left_out(struct ky_user *user, const char *procname, uint32_t pid,
			   uint32_t reason, int os_error)
{
	bool is_new, is_told;

	/* The end of the recording tells of those that run, while the thread that reads finds notes. */
	pthread_mutex_lock(&user->notes_lock);
	is_new = !user_declined_is_known(user, (uint64_t)pid << 32 | reason);
	is_told = user->left_out.len <= NOTES_TOLD;
	user->stats.n_left_out += is_new;
	pthread_mutex_unlock(&user->notes_lock);
	if (!is_new)
		return;
	if (!is_told)
		ky_log_warning(user->options.log,
			       "no more warnings about programs that cannot join");
	else
		ky_log_warning(user->options.log, "%s (%u): %s%s%s", procname, pid,
			       ky_off_text(reason), os_error ? ": " : "",
			       os_error ? strerror(os_error) : "");
}

void ky_user_tell_filter(struct ky_user *user)
{
	struct kymo_error err;
	int ret;

	if (user->is_filter_told)
		return;
	pthread_mutex_lock(&user->notes_lock);
	ret = ky_user_names_check(&user->seen_names, &user->request.filter, &err);
	pthread_mutex_unlock(&user->notes_lock);
	if (ret == KYMO_OK)
		return;
	user->is_filter_told = true;
	ky_log_warning(user->options.log, "%s:%u:%u: %s", err.path, err.line, err.column,
		       err.message);
}

/* A number up to @max, and then @end; *at goes behind it. */
static bool user_declined_take_number(const char **at, int base, uint64_t max, char end,
				      uint64_t *to)
{
	char *behind;

	if (!**at || !strchr("0123456789abcdef", **at))
		return false;
	errno = 0;
	*to = strtoull(*at, &behind, base);
	if (errno || *to > max || *behind != end)
		return false;
	*at = behind + (end != 0);
	return true;
}

/* "<pid>-<start>-<procname>.off-<reason>-<errno>" */
static bool user_declined_parse(const char *name, char procname[16], uint64_t *pid,
				uint64_t *reason, uint64_t *os_error)
{
	const char *at = name, *suffix = strstr(name, KY_NOTE_SUFFIX);
	uint64_t start;
	size_t len;

	if (!suffix || !user_declined_take_number(&at, 10, UINT32_MAX, '-', pid) ||
	    !user_declined_take_number(&at, 16, UINT64_MAX, '-', &start) || at > suffix)
		return false;
	len = (size_t)(suffix - at);
	if (len > 15)
		return false;
	memcpy(procname, at, len);
	procname[len] = 0;
	at = suffix + strlen(KY_NOTE_SUFFIX);
	return user_declined_take_number(&at, 10, UINT32_MAX, '-', reason) &&
	       user_declined_take_number(&at, 10, 4095, 0, os_error);
}

/* Events without what the filter is about: their names are known from now on. */
static void take_records(struct ky_user *user, const struct ky_user_dir *dir, const char *name)
{
	int fd = ky_user_dir_open_file(dir, name, O_RDONLY);
	uint64_t *records = fd >= 0 ? malloc(KY_NOTE_BYTES_MAX) : NULL;
	ssize_t got = records ? pread(fd, records, KY_NOTE_BYTES_MAX, 0) : 0;
	const char *at = (const char *)records, *end = at + (got > 0 ? got : 0);
	struct ky_user_event event;
	size_t bytes;
	bool is_good;

	pthread_mutex_lock(&user->notes_lock);
	while (at < end && (bytes = ky_user_event_next(at, end, &event, &is_good))) {
		/* Without memory, less is known of what the filter could have meant. */
		if (is_good)
			(void)ky_user_names_add(&user->seen_names, &event);
		at += bytes;
	}
	pthread_mutex_unlock(&user->notes_lock);
	free(records);
	if (fd >= 0)
		close(fd);
}

bool ky_user_take_note(struct ky_user *user, struct ky_user_dir *dir, const char *name)
{
	uint64_t pid, reason, os_error;
	bool is_meant, is_field;
	char procname[16];

	if (!user_declined_parse(name, procname, &pid, &reason, &os_error))
		return false;
	is_meant = !user->options.comm || strncmp(user->options.comm, procname, 15) == 0;
	is_field = reason == KY_OFF_FIELD;
	/* Of a crowd of programs, some tell enough. */
	if (is_meant && is_field && user->request.filter.names.len &&
	    user->stats.n_lacking++ < LACKING_READ)
		take_records(user, dir, name);
	(void)unlinkat(dir->fd, name, 0);
	if (is_meant && !is_field)
		ky_user_tell_left_out(user, procname, (uint32_t)pid, (uint32_t)reason,
				      (int)os_error);
	return true;
}
