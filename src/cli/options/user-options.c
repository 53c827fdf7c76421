/* SPDX-License-Identifier: MIT */
#include "cli/options/user-options.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

int ky_cli_parse_user(const char *text, uint32_t *uid)
{
	const struct passwd *user;
	uint64_t number;

	if (ky_parse_u64(text, &number) == 0 && number < UINT32_MAX) {
		*uid = (uint32_t)number;
		return 0;
	}
	user = getpwnam(text);
	if (!user)
		return -1;
	*uid = user->pw_uid;
	return 0;
}

int ky_cli_user_ids(const char *text, struct ky_strbuf *ids, struct kymo_error *err)
{
	char *words = strdup(text), *rest, *word;
	int ret = words ? KYMO_OK : ky_error_nomem(err);
	uint32_t uid;

	for (word = words ? strtok_r(words, ",", &rest) : NULL; word && !ret;
	     word = strtok_r(NULL, ",", &rest)) {
		if (ky_cli_parse_user(word, &uid) < 0)
			ret = ky_error_set(err, KYMO_E_NOT_FOUND, "user '%s' does not exist", word);
		else
			ky_strbuf_addf(ids, "%s%" PRIu32, ids->len ? "," : "", uid);
	}
	free(words);
	return !ret && ky_strbuf_failed(ids) ? ky_error_nomem(err) : ret;
}
