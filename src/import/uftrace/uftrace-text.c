/* SPDX-License-Identifier: MIT */
#include "import/uftrace/uftrace-text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "os/file.h"

#define TEXT_BYTES     ((size_t)64 << 20)
#define MAPS_BYTES     (4 * TEXT_BYTES)
#define BUILD_ID_BYTES 20

int ky_uftrace_keep_broken(struct uftrace *uftrace)
{
	if (!uftrace->broken->code)
		*uftrace->broken = *uftrace->err;
	ky_error_clear(uftrace->err);
	return KYMO_OK;
}

int ky_uftrace_no_file(struct uftrace *uftrace)
{
	if (uftrace->err->code == KYMO_E_MEMORY)
		return KYMO_E_MEMORY;
	if (uftrace->err->code != KYMO_E_NOT_FOUND)
		return ky_uftrace_keep_broken(uftrace);
	ky_error_clear(uftrace->err);
	return KYMO_OK;
}

/* ---- texts ------------------------------------------------------------------------------ */

/* A byte 0, as a crash of the machine leaves it, would end the text: it ends a line instead, and the importer says so. */
static void uftrace_text_end_lines(struct uftrace *uftrace, const char *path,
				   struct ky_strbuf *text)
{
	bool told = false;

	for (size_t i = 0; i < text->len; i++) {
		if (text->data[i])
			continue;
		text->data[i] = '\n';
		if (told)
			continue;
		told = true;
		ky_error_set(uftrace->err, KYMO_E_FORMAT, "a byte 0 in the text");
		ky_error_path(uftrace->err, path);
		ky_error_offset(uftrace->err, i);
		ky_uftrace_keep_broken(uftrace);
	}
}

int ky_uftrace_text(struct uftrace *uftrace, const char *path, struct ky_strbuf *text)
{
	int got = ky_read_regular(AT_FDCWD, path, TEXT_BYTES, text);

	if (got == 0) {
		uftrace_text_end_lines(uftrace, path, text);
		return KYMO_OK;
	}
	if (got == -EINVAL)
		ky_error_set(uftrace->err, KYMO_E_IO, "cannot read: not a regular file");
	else if (got == -EFBIG)
		ky_error_set(uftrace->err, KYMO_E_LIMIT, "the file has more than 64 MiB");
	else
		ky_error_errno(uftrace->err, -got, "cannot read");
	ky_error_path(uftrace->err, path);
	return uftrace->err->code;
}

int64_t ky_uftrace_word(const char *line, const char *name)
{
	size_t len = strlen(name), line_len = strcspn(line, "\n");

	for (size_t i = 0; i + len < line_len; i++) {
		if (line[i] == ' ' && strncmp(line + i + 1, name, len) == 0 &&
		    line[i + 1 + len] == '=')
			return strtoll(line + i + 2 + len, NULL, 10);
	}
	return -1;
}

/* ---- maps ------------------------------------------------------------------------------- */

static void uftrace_text_begin_event(struct uftrace *uftrace, int event, int64_t pid, uint64_t ns)
{
	ky_maker_begin(uftrace->maker, 0, uftrace->events[event], ns);
	ky_maker_number(uftrace->maker, (uint64_t)pid);
	ky_maker_number(uftrace->maker, (uint64_t)pid);
}

/* Hexadecimal digits as bytes. */
static void uftrace_text_bytes(struct uftrace *uftrace, const char *text, const char *end)
{
	uint8_t bytes[BUILD_ID_BYTES];
	size_t n = 0;

	for (; n < sizeof(bytes) && end - text >= 2; n++, text += 2) {
		const char digits[3] = {text[0], text[1], '\0'};

		bytes[n] = (uint8_t)strtoul(digits, NULL, 16);
	}
	ky_maker_bytes(uftrace->maker, bytes, n);
}

/* "55e6e6f7e000-55e6e6f83000 r-xp 00000000 00:00 0   /tmp/p build-id:20cd..." */
static int uftrace_text_map(struct uftrace *uftrace, const char *line, int64_t pid,
			    uint64_t begin_ns)
{
	size_t len = strcspn(line, "\n");
	const char *end = line + len, *path = memchr(line, '/', len), *id, *path_end;
	uint64_t begin, stop, offset;
	char mode[8] = "", head[128];
	int ret;

	/* sscanf() looks at the whole text, of which this is a line. */
	(void)snprintf(head, sizeof(head), "%.*s", (int)(len < 127 ? len : 127), line);
	if (!path ||
	    sscanf(head, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64, &begin, &stop, mode, &offset) !=
		    4 ||
	    mode[2] != 'x' || stop <= begin)
		return KYMO_OK;
	id = memmem(path, (size_t)(end - path), " build-id:", 10);
	path_end = id ? id : end;
	while (path_end > path && isspace((unsigned char)path_end[-1]))
		path_end--;
	uftrace_text_begin_event(uftrace, UFTRACE_IMAGE, pid, begin_ns);
	ky_maker_number(uftrace->maker, begin);
	ky_maker_number(uftrace->maker, stop - begin);
	ky_maker_text(uftrace->maker, path, (size_t)(path_end - path));
	ky_maker_number(uftrace->maker, 1);
	ky_maker_number(uftrace->maker, id != NULL);
	ret = ky_maker_commit(uftrace->maker, uftrace->err);
	if (ret == KYMO_OK)
		ret = ky_uftrace_names_map(
			uftrace, (struct uftrace_image){.pid = pid, .begin = begin, .end = stop},
			offset, path, (size_t)(path_end - path), id ? id + 10 : NULL);
	if (ret < 0 || !id)
		return ret;
	uftrace_text_begin_event(uftrace, UFTRACE_BUILD_ID, pid, begin_ns);
	ky_maker_number(uftrace->maker, begin);
	uftrace_text_bytes(uftrace, id + 10, end);
	return ky_maker_commit(uftrace->maker, uftrace->err);
}

static int uftrace_text_images(struct uftrace *uftrace, const char *text, int64_t pid,
			       uint64_t begin_ns)
{
	int ret = KYMO_OK;

	for (const char *at = text; *at && ret == KYMO_OK;) {
		ret = uftrace_text_map(uftrace, at, pid, begin_ns);
		at += strcspn(at, "\n");
		at += strspn(at, "\n");
	}
	return ret;
}

/* The map of the session, which several lines of task.txt can name; it is read once. NULL: memory is out. */
static struct uftrace_map *uftrace_text_session(struct uftrace *uftrace, const char *sid)
{
	struct uftrace_map *map = ky_names_get(&uftrace->maps, sid);

	if (map)
		return map;
	map = calloc(1, sizeof(*map));
	if (!map)
		return NULL;
	(void)snprintf(map->sid, sizeof(map->sid), "%s", sid);
	if (ky_names_set(&uftrace->maps, map->sid, map) == 0)
		return map;
	free(map);
	return NULL;
}

/* Counts bytes of maps. False: they are too many, which the importer says, and the rest is missing. */
static bool uftrace_text_count(struct uftrace *uftrace, uint64_t bytes)
{
	uftrace->map_bytes += bytes;
	if (uftrace->map_bytes <= MAPS_BYTES)
		return true;
	uftrace->map_bytes = MAPS_BYTES;
	uftrace->maps_are_over = true;
	ky_error_set(
		uftrace->err, KYMO_E_LIMIT,
		"the maps of sessions have more than 256 MiB: functions of later ones have no names");
	ky_error_path(uftrace->err, uftrace->path);
	ky_uftrace_keep_broken(uftrace);
	return false;
}

static int uftrace_text_read_map(struct uftrace *uftrace, struct uftrace_map *map)
{
	char path[PATH_MAX];
	int ret;

	map->is_read = true;
	if (snprintf(path, sizeof(path), "%s/sid-%s.map", uftrace->path, map->sid) >=
	    (int)sizeof(path)) {
		ky_error_set(uftrace->err, KYMO_E_INVALID, "the path is too long");
		ky_error_path(uftrace->err, uftrace->path);
		return ky_uftrace_keep_broken(uftrace);
	}
	if (ky_uftrace_text(uftrace, path, &map->text) == KYMO_OK)
		return KYMO_OK;
	ret = ky_uftrace_no_file(uftrace);
	/* A part of a map would give functions wrong names. The importer has read it, though. */
	if (ret == KYMO_OK)
		(void)uftrace_text_count(uftrace, map->text.len);
	ky_strbuf_fini(&map->text);
	ky_strbuf_init(&map->text);
	return ret;
}

int ky_uftrace_maps(struct uftrace *uftrace, const char *line)
{
	size_t line_len = strcspn(line, "\n");
	const char *sid = memmem(line, line_len, " sid=", 5);
	const char *stamp = memmem(line, line_len, "timestamp=", 10);
	size_t len = sid ? strspn(sid + 5, "0123456789abcdef") : 0;
	struct uftrace_map *map;
	uint64_t s = 0, ns = 0;
	char name[UFTRACE_SID_MAX + 1], times[64];
	int ret = KYMO_OK;

	(void)snprintf(times, sizeof(times), "%.*s", 63, stamp ? stamp : "");
	if (uftrace->maps_are_over || !len || len > UFTRACE_SID_MAX || !stamp ||
	    sscanf(times, "timestamp=%" SCNu64 ".%" SCNu64, &s, &ns) != 2 || s > INT32_MAX)
		return KYMO_OK;
	(void)snprintf(name, sizeof(name), "%.*s", (int)len, sid + 5);
	map = uftrace_text_session(uftrace, name);
	if (!map)
		return ky_error_nomem(uftrace->err);
	if (!map->is_read)
		ret = uftrace_text_read_map(uftrace, map);
	if (ret < 0 || !map->text.len || !uftrace_text_count(uftrace, map->text.len))
		return ret;
	return uftrace_text_images(uftrace, ky_strbuf_text(&map->text),
				   ky_uftrace_word(line, "pid"), s * 1000000000 + ns % 1000000000);
}

void ky_uftrace_free_maps(struct uftrace *uftrace)
{
	size_t at = 0;
	const char *sid;
	void *map;

	while (ky_names_next(&uftrace->maps, &at, &sid, &map)) {
		ky_strbuf_fini(&((struct uftrace_map *)map)->text);
		free(map);
	}
	ky_names_fini(&uftrace->maps);
}
