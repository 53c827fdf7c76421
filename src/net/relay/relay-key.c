/* SPDX-License-Identifier: MIT */
#include "net/relay/relay-key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/strbuf.h"
#include "os/file.h"

#define STATE_DIR     ".kymo"
#define KEY_NAME      "relay-key.pem"
#define CERT_NAME     "relay.pem"
#define RECORDER_NAME "recorder-key"
#define READER_NAME   "reader-key"
#define HEAD	      "kymo-relay 1\n"
#define TOKEN_RANDOM  32
#define TEXT_MAX      1024

/* ---- text ----------------------------------------------------------------------------- */

static int relay_key_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The digits behind @word at the beginning of *at, which moves behind the line. Their number, or 0. */
static size_t relay_key_take_line(const char **at, const char *word, const char **digits)
{
	size_t len = strlen(word), n = 0;

	if (strncmp(*at, word, len) != 0)
		return 0;
	*digits = *at + len;
	while (relay_key_digit((*digits)[n]) >= 0)
		n++;
	if ((*digits)[n] != '\n')
		return 0;
	*at = *digits + n + 1;
	return n;
}

int ky_relay_key_parse(const char *text, struct ky_relay_key *key, struct kymo_error *err)
{
	const char *at = text + strlen(HEAD), *digits = "";
	size_t n;

	if (strncmp(text, HEAD, strlen(HEAD)) != 0)
		return ky_error_set(err, KYMO_E_FORMAT, "not a key for a relay");
	if (relay_key_take_line(&at, "fingerprint ", &digits) != 2 * sizeof(key->fingerprint))
		return ky_error_set(err, KYMO_E_FORMAT, "line 2 is not a fingerprint");
	for (size_t i = 0; i < sizeof(key->fingerprint); i++)
		key->fingerprint[i] = (uint8_t)(relay_key_digit(digits[2 * i]) << 4 |
						relay_key_digit(digits[2 * i + 1]));
	n = relay_key_take_line(&at, "token ", &digits);
	if (!n || n >= sizeof(key->token) || *at)
		return ky_error_set(err, KYMO_E_FORMAT, "line 3 is not a token");
	memcpy(key->token, digits, n);
	key->token[n] = '\0';
	return KYMO_OK;
}

int ky_relay_key_read(const char *path, struct ky_relay_key *key, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret = ky_read_file(AT_FDCWD, path, TEXT_MAX, &text);

	if (ret < 0)
		ret = ky_error_errno(err, -ret, "cannot read the relay's key");
	else
		ret = ky_relay_key_parse(ky_strbuf_text(&text), key, err);
	if (ret < 0)
		ky_error_path(err, path);
	ky_strbuf_fini(&text);
	return ret;
}

/* ---- the relay's files ---------------------------------------------------------------- */

static void put_digits(struct ky_strbuf *text, const uint8_t *data, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		ky_strbuf_addf(text, "%02x", data[i]);
}

static int write_token(int dir_fd, const char *name, const uint8_t *fingerprint,
		       struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	uint8_t token[TOKEN_RANDOM];
	int ret;

	if (getrandom(token, sizeof(token), 0) != sizeof(token))
		return ky_error_errno(err, errno, "no random numbers");
	ky_strbuf_adds(&text, HEAD "fingerprint ");
	put_digits(&text, fingerprint, KY_TLS_FINGERPRINT_BYTES);
	ky_strbuf_adds(&text, "\ntoken ");
	put_digits(&text, token, sizeof(token));
	ky_strbuf_addc(&text, '\n');
	ret = ky_strbuf_failed(&text)
		      ? -ENOMEM
		      : ky_file_replace(dir_fd, name, ky_strbuf_text(&text), text.len);
	if (ret < 0)
		ret = ky_error_errno(err, -ret, "cannot write the key for other machines");
	ky_strbuf_fini(&text);
	return ret;
}

int ky_relay_key_make(const char *dir, struct kymo_error *err)
{
	uint8_t fingerprint[KY_TLS_FINGERPRINT_BYTES];
	int dir_fd = ky_file_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0), fd, ret;

	if (dir_fd < 0 || (mkdirat(dir_fd, STATE_DIR, 0700) < 0 && errno != EEXIST)) {
		ret = ky_error_errno(err, errno, "cannot use the relay's directory");
		ky_error_path(err, dir);
		if (dir_fd >= 0)
			close(dir_fd);
		return ret;
	}
	fd = ky_file_open(dir_fd, STATE_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	close(dir_fd);
	if (fd < 0)
		return ky_error_errno(err, errno, "cannot use the relay's directory");
	ret = ky_tls_make_key(fd, KEY_NAME, CERT_NAME, fingerprint, err);
	if (!ret)
		ret = write_token(fd, RECORDER_NAME, fingerprint, err);
	if (!ret)
		ret = write_token(fd, READER_NAME, fingerprint, err);
	close(fd);
	return ret;
}

int ky_relay_key_load(const char *dir, struct ky_tls **tls, struct ky_relay_key *key,
		      struct kymo_error *err)
{
	struct ky_relay_key reader;
	char *paths[4] = {NULL};
	int ret = KYMO_OK;

	*tls = NULL;
	if (asprintf(&paths[0], "%s/" STATE_DIR "/" KEY_NAME, dir) < 0 ||
	    asprintf(&paths[1], "%s/" STATE_DIR "/" CERT_NAME, dir) < 0 ||
	    asprintf(&paths[2], "%s/" STATE_DIR "/" RECORDER_NAME, dir) < 0 ||
	    asprintf(&paths[3], "%s/" STATE_DIR "/" READER_NAME, dir) < 0)
		ret = ky_error_nomem(err);
	if (!ret && access(paths[0], F_OK) == 0) {
		ret = ky_relay_key_read(paths[2], key, err);
		key->reader_token[0] = '\0';
		/* Relays of earlier versions have none. */
		if (!ret && access(paths[3], F_OK) == 0)
			ret = ky_relay_key_read(paths[3], &reader, err);
		else
			reader.token[0] = '\0';
		memcpy(key->reader_token, reader.token, sizeof(key->reader_token));
		if (!ret)
			ret = ky_tls_relay(paths[0], paths[1], tls, err);
	}
	for (int i = 0; i < 4; i++)
		free(paths[i]);
	return ret;
}
