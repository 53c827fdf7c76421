/* SPDX-License-Identifier: MIT */
#include "cli/options/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "os/file.h"

#define PROFILE_MAX_BYTES (1u << 20)

static char *profile_trim(char *text)
{
	size_t len;

	text += strspn(text, " \t\r");
	len = strlen(text);
	while (len && strchr(" \t\r", text[len - 1]))
		text[--len] = '\0';
	return text;
}

/* "--name VALUE", "name VALUE", "name=VALUE", "name". *value: NULL when none exists. */
static char *profile_split(char *line, char **value)
{
	char *name = line + (strncmp(line, "--", 2) == 0 ? 2 : 0);
	size_t len = strcspn(name, " \t=");

	*value = NULL;
	if (name[len]) {
		char *rest = name + len + strspn(name + len, " \t");

		/* "name = VALUE", too. */
		if (*rest == '=')
			*value = profile_trim(rest + 1);
		else if (*rest)
			*value = rest;
		name[len] = '\0';
	}
	return name;
}

static int profile_read_text(const char *path, char **text, struct kymo_error *err)
{
	struct ky_strbuf content = KY_STRBUF_INIT;
	int ret = ky_read_regular(AT_FDCWD, path, PROFILE_MAX_BYTES, &content);

	*text = NULL;
	if (ret < 0) {
		ret = ky_error_errno(err, -ret, "cannot read the profile");
		ky_error_path(err, path);
	} else if (memchr(ky_strbuf_text(&content), '\0', content.len)) {
		ret = ky_error_set(err, KYMO_E_INVALID, "this profile is not a text");
		ky_error_path(err, path);
	} else {
		*text = strdup(ky_strbuf_text(&content));
		ret = *text ? KYMO_OK : ky_error_nomem(err);
	}
	ky_strbuf_fini(&content);
	return ret;
}

int ky_profile_read(const char *path, char **text,
		    int (*take)(void *data, char *name, char *value, struct kymo_error *err),
		    void *data, struct kymo_error *err)
{
	int ret = profile_read_text(path, text, err);
	char *line = *text, *end;
	uint32_t number = 0;

	for (; !ret && line; line = end) {
		char *value, *name;

		end = strchr(line, '\n');
		if (end)
			*end++ = '\0';
		number++;
		line = profile_trim(line);
		if (!*line || *line == '#')
			continue;
		name = profile_split(line, &value);
		ret = take(data, name, value, err);
		if (ret == KYMO_E_INVALID) {
			ky_error_path(err, path);
			ky_error_line(err, number, 0);
		}
	}
	return ret;
}

static int format(const struct ky_parsed *parsed, struct ky_strbuf *text, struct kymo_error *err)
{
	ky_vec_foreach(&parsed->given, given) {
		const struct ky_option_def *def = given->def;

		if (def->kind == KY_OPTION_PROFILE || def->kind == KY_OPTION_SAVE)
			continue;
		if (given->value && strpbrk(given->value, "\n"))
			return ky_error_set(
				err, KYMO_E_INVALID,
				"--%s: a profile has one line per option, but this value has "
				"several lines",
				def->name);
		ky_strbuf_adds(text, def->name);
		if (given->value)
			ky_strbuf_addf(text, "=%s", given->value);
		ky_strbuf_addc(text, '\n');
	}
	return ky_strbuf_failed(text) ? ky_error_nomem(err) : KYMO_OK;
}

int ky_profile_write(const char *path, const struct ky_parsed *parsed, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = format(parsed, &text, err), fd, failed = 0;
	struct stat st;

	if (!ret) {
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
		/* A file that is there already may be open to others. */
		if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && fchmod(fd, 0600) < 0)
			failed = -errno;
		if (!failed)
			failed =
				fd < 0 ? -errno : ky_write_all(fd, ky_strbuf_text(&text), text.len);
		if (fd >= 0 && close(fd) < 0 && !failed)
			failed = -errno;
	}
	ky_strbuf_fini(&text);
	if (failed < 0) {
		ret = ky_error_errno(err, -failed, "cannot write the profile");
		ky_error_path(err, path);
	}
	return ret;
}
