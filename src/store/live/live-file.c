/* SPDX-License-Identifier: MIT */
#include "store/live/live-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/error.h"
#include "os/file.h"

#define HEAD	       "kymo-live 1\nuntil "
#define FILE_MAX_BYTES ((size_t)16 << 20)
#define STREAMS_MAX    65536
#define LOCK_TRIES     50
/* Of a recorder's lock; delays are before it. */
#define RECORDER_AT ((off_t)1 << 40)

/* ---- locks ---------------------------------------------------------------------------- */

void ky_live_begin(int index_fd)
{
	/* A reader that looks whether there is a lock holds one for a moment. A file system without locks has no live readers. */
	for (int i = 0; i < LOCK_TRIES; i++) {
		if (flock(index_fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
			return;
		usleep(1000);
	}
}

bool ky_live_has_readers(int dir_fd)
{
	if (flock(dir_fd, LOCK_EX | LOCK_NB) < 0)
		return errno == EWOULDBLOCK;
	(void)flock(dir_fd, LOCK_UN);
	return false;
}

/* Of readers that say nothing about it. */
#define DELAY_USUAL_MS 250

void ky_live_want(int dir_fd, uint32_t delay_ms)
{
	struct flock wanted = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = delay_ms, .l_len = 1};

	/* The delay first: a writer that finds a reader asks for it. Without locks, there is no writer that looks. */
	(void)fcntl(dir_fd, F_OFD_SETLK, &wanted);
	(void)flock(dir_fd, LOCK_SH);
}

uint32_t ky_live_delay_ms(int dir_fd)
{
	uint32_t delay_ms = DELAY_USUAL_MS;
	struct flock asked = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 1, .l_len = RECORDER_AT - 1};
	bool any = false;

	if (!ky_live_has_readers(dir_fd))
		return 0;
	/* The kernel names one of the locks; shorter delays lie before it. */
	while (fcntl(dir_fd, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK &&
	       asked.l_start >= 1 && (!any || asked.l_start < delay_ms)) {
		any = true;
		delay_ms = asked.l_start < UINT32_MAX ? (uint32_t)asked.l_start : DELAY_USUAL_MS;
		if (delay_ms == 1)
			break;
		asked = (struct flock){.l_type = F_WRLCK,
				       .l_whence = SEEK_SET,
				       .l_start = 1,
				       .l_len = delay_ms - 1};
	}
	return delay_ms;
}

static struct flock recorder_lock(short type)
{
	return (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = RECORDER_AT, .l_len = 1};
}

void ky_live_claim(int dir_fd)
{
	struct flock lock = recorder_lock(F_RDLCK);

	/* Where there are no locks, readers ask the recorder. */
	(void)fcntl(dir_fd, F_OFD_SETLK, &lock);
}

bool ky_live_is_claimed(int dir_fd)
{
	struct flock asked = recorder_lock(F_WRLCK);

	return fcntl(dir_fd, F_OFD_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
}

int ky_live_watch(const char *path)
{
	int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);

	if (fd < 0 || inotify_add_watch(fd, path, IN_OPEN | IN_ONLYDIR) >= 0)
		return fd;
	close(fd);
	return -1;
}

void ky_live_watch_clear(int watch_fd)
{
	char events[4096];

	while (read(watch_fd, events, sizeof(events)) > 0)
		;
}

bool ky_live_is_written(const char *path)
{
	char index[PATH_MAX];
	bool locked;
	int fd;

	if (snprintf(index, sizeof(index), "%s/index", path) >= (int)sizeof(index))
		return false;
	fd = open(index, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return false;
	locked = flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
	close(fd);
	return locked;
}

/* ---- writing -------------------------------------------------------------------------- */

void ky_live_put_head(struct ky_strbuf *text, uint64_t until_cycles)
{
	ky_strbuf_addf(text, HEAD "%" PRIu64 "\n", until_cycles);
}

void ky_live_put_stream(struct ky_strbuf *text, const char *name, uint64_t size_bytes)
{
	if (!strchr(name, '\n'))
		ky_strbuf_addf(text, "%" PRIu64 " %s\n", size_bytes, name);
}

bool ky_live_is_late(const char *name)
{
	return strstr(name, KY_LIVE_LATE_MARK "_");
}

/* ---- reading -------------------------------------------------------------------------- */

void ky_live_state_fini(struct ky_live_state *state)
{
	ky_vec_foreach(&state->streams, stream)
		free(stream->name);
	ky_vec_fini(&state->streams);
	ky_names_fini(&state->numbers);
	*state = (struct ky_live_state){0};
}

/* A number in decimal at *at, which is moved behind it; false: none exists, or it is too large. */
static bool live_file_take_number(const char **at, const char *end, uint64_t *value)
{
	const char *begin = *at;

	*value = 0;
	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		if (__builtin_mul_overflow(*value, (uint64_t)10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(**at - '0'), value))
			return false;
	}
	return *at > begin;
}

static int malformed(struct kymo_error *err, uint32_t line)
{
	int ret = ky_error_set(err, KYMO_E_FORMAT, "this is not a recorder's file for readers");

	if (err)
		err->line = line;
	return ret;
}

int ky_live_add_stream(struct ky_live_state *state, const char *name, size_t len_bytes,
		       uint64_t size_bytes)
{
	const struct ky_live_stream stream = {strndup(name, len_bytes), size_bytes};

	if (!stream.name || ky_vec_push(&state->streams, stream) < 0) {
		free(stream.name);
		return KYMO_E_MEMORY;
	}
	if (ky_names_get(&state->numbers, stream.name))
		return KYMO_OK;
	return ky_names_set(&state->numbers, stream.name, (void *)(uintptr_t)state->streams.len);
}

/* "BYTES NAME", up to @end. */
static int live_file_add_stream(struct ky_live_state *state, const char *at, const char *end,
				uint32_t line, struct kymo_error *err)
{
	uint64_t size_bytes;

	if (!live_file_take_number(&at, end, &size_bytes) || end - at < 2 || *at != ' ' ||
	    memchr(at, '\0', (size_t)(end - at)) || memchr(at, '/', (size_t)(end - at)))
		return malformed(err, line);
	return ky_live_add_stream(state, at + 1, (size_t)(end - at - 1), size_bytes) < 0
		       ? ky_error_nomem(err)
		       : KYMO_OK;
}

int ky_live_parse(const char *text, size_t len_bytes, struct ky_live_state *state,
		  struct kymo_error *err)
{
	const char *at = text + sizeof(HEAD) - 1, *end = text + len_bytes;
	uint32_t line = 2;
	int ret = KYMO_OK;

	*state = (struct ky_live_state){0};
	if (len_bytes < sizeof(HEAD) - 1 || memcmp(text, HEAD, sizeof(HEAD) - 1) != 0)
		return malformed(err, 1);
	if (!live_file_take_number(&at, end, &state->until_cycles) || at == end || *at++ != '\n')
		return malformed(err, 2);
	while (at < end && !ret) {
		const char *eol = memchr(at, '\n', (size_t)(end - at));

		if (++line > STREAMS_MAX || !eol)
			return malformed(err, line);
		ret = live_file_add_stream(state, at, eol, line, err);
		at = eol + 1;
	}
	state->is_told = true;
	return ret;
}

int ky_live_read(const char *path, struct ky_live_state *state, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	char file[PATH_MAX];
	int ret;

	*state = (struct ky_live_state){0};
	if (snprintf(file, sizeof(file), "%s/" KY_LIVE_FILE_NAME, path) >= (int)sizeof(file))
		return ky_error_set(err, KYMO_E_INVALID, "the path is too long");
	ret = ky_read_regular(AT_FDCWD, file, FILE_MAX_BYTES, &text);
	if (ret == 0)
		ret = ky_live_parse(ky_strbuf_text(&text), text.len, state, err);
	else
		ret = ret == -ENOENT
			      ? KYMO_OK
			      : ky_error_errno(err, -ret, "cannot read how far the trace is");
	if (ret < 0)
		ky_error_path(err, file);
	ky_strbuf_fini(&text);
	return ret;
}

uint64_t ky_live_size(const struct ky_live_state *state, const char *name)
{
	size_t number = (size_t)(uintptr_t)ky_names_get(&state->numbers, name);

	return number ? state->streams.data[number - 1].size_bytes : 0;
}
