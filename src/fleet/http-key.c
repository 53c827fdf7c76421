/* SPDX-License-Identifier: MIT */
#include "fleet/http-key.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "os/file.h"

#define KEY_MAX_BYTES 65536

struct http_key {
	struct ky_http_url *url;
	bool is_for_us, has_user;
};

/* The path of the file, or "". */
static void http_key_find_path(char path[PATH_MAX])
{
	const char *home = getenv("HOME"), *config = getenv("XDG_CONFIG_HOME");
	const char *named = getenv("KYMO_FLEET_KEY");

	path[0] = '\0';
	if (named && *named) {
		(void)snprintf(path, PATH_MAX, "%s", named);
		return;
	}
	if (config && *config == '/')
		(void)snprintf(path, PATH_MAX, "%s/kymo/fleet-key", config);
	else if (home && *home == '/')
		(void)snprintf(path, PATH_MAX, "%s/.config/kymo/fleet-key", home);
	if (path[0] && access(path, F_OK) < 0)
		path[0] = '\0';
}

static int http_key_fail(const char *path, unsigned int line, const char *what,
			 struct kymo_error *err)
{
	ky_error_set(err, KYMO_E_INVALID, "%s", what);
	ky_error_path(err, path);
	if (err)
		err->line = line;
	ky_error_hint(err, "lines are 'user NAME', 'password TEXT', 'ca FILE' and 'server "
			   "HOST[:PORT]'; docs/fleet.md has an example");
	return KYMO_E_INVALID;
}

/* HOST or HOST:PORT */
static bool is_server(const struct ky_http_url *url, const char *text)
{
	size_t n = strlen(url->address.host);

	return strncmp(text, url->address.host, n) == 0 &&
	       (!text[n] || (text[n] == ':' && strcmp(text + n + 1, url->address.port) == 0));
}

static bool http_key_put(char *to, size_t bytes, const char *value)
{
	return snprintf(to, bytes, "%s", value) < (int)bytes && !strpbrk(to, "\r\n");
}

/* False: the line makes no sense. */
static bool http_key_take_line(struct http_key *key, const char *line)
{
	struct ky_http_url *url = key->url;

	if (!*line || *line == '#')
		return true;
	if (strncmp(line, "server ", 7) == 0) {
		key->is_for_us = is_server(url, line + 7);
		return true;
	}
	if (strncmp(line, "user ", 5) == 0)
		return !key->is_for_us || key->has_user ||
		       http_key_put(url->user, sizeof(url->user), line + 5);
	if (strncmp(line, "password ", 9) == 0)
		return !key->is_for_us ||
		       http_key_put(url->password, sizeof(url->password), line + 9);
	if (strncmp(line, "ca ", 3) == 0)
		return !key->is_for_us ||
		       http_key_put(url->authorities, sizeof(url->authorities), line + 3);
	return false;
}

static int http_key_take_lines(struct http_key *key, char *text, const char *path,
			       struct kymo_error *err)
{
	char *line;

	for (unsigned int number = 1; (line = strsep(&text, "\n")); number++)
		if (!http_key_take_line(key, line))
			return http_key_fail(path, number, "the line makes no sense", err);
	return KYMO_OK;
}

static int read_key(const char *path, struct ky_strbuf *text, struct kymo_error *err)
{
	int fd = ky_file_open_regular(AT_FDCWD, path, O_RDONLY), ret;
	char link[32];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		ret = ky_error_errno(err, fd < 0 ? -fd : errno, "cannot read the fleet's key");
		ky_error_path(err, path);
	} else if (st.st_mode & 077) {
		ret = ky_error_set(err, KYMO_E_INVALID, "other users can read the password");
		ky_error_path(err, path);
		ky_error_hint(err, "chmod 600 %s", path);
	} else {
		(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		ret = ky_read_file(AT_FDCWD, link, KEY_MAX_BYTES, text);
		if (ret < 0)
			ret = ky_error_errno(err, -ret, "cannot read the fleet's key");
	}
	if (fd >= 0)
		close(fd);
	return ret;
}

static int take_environment(struct ky_http_url *url, bool has_user, struct kymo_error *err)
{
	const char *user = getenv("KYMO_FLEET_USER"), *password = getenv("KYMO_FLEET_PASSWORD"),
		   *authorities = getenv("KYMO_FLEET_CA");

	if ((user && !has_user && !http_key_put(url->user, sizeof(url->user), user)) ||
	    (password && !http_key_put(url->password, sizeof(url->password), password)) ||
	    (authorities && !http_key_put(url->authorities, sizeof(url->authorities), authorities)))
		return ky_error_set(err, KYMO_E_INVALID,
				    "KYMO_FLEET_USER, _PASSWORD or _CA is too long");
	return KYMO_OK;
}

int ky_http_key_find(struct ky_http_url *url, struct kymo_error *err)
{
	struct http_key key = {url, true, url->user[0] != '\0'};
	struct ky_strbuf text = KY_STRBUF_INIT;
	char path[PATH_MAX];
	int ret = KYMO_OK;

	http_key_find_path(path);
	if (path[0]) {
		ret = read_key(path, &text, err);
		ky_strbuf_addc(&text, '\0');
		if (!ret && ky_strbuf_failed(&text))
			ret = ky_error_nomem(err);
		if (!ret)
			ret = http_key_take_lines(&key, text.data, path, err);
		if (text.data)
			explicit_bzero(text.data, text.len);
	}
	ky_strbuf_fini(&text);
	return ret ? ret : take_environment(url, key.has_user, err);
}
