/* SPDX-License-Identifier: MIT */
#include "cli/recording/group-options.h"

#include <stdlib.h>
#include <string.h>

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define NAME_MAX_BYTES	32
#define MIN_BYTES	(64u << 10)
#define MAX_BYTES	(UINT64_C(64) << 30)
#define USER_PREFIX	"user:"
#define OVERWRITE	"overwrite:"

/* A name is the begin of the names of streams; these are Kymo's own. */
static bool is_name(const char *name)
{
	size_t len = strlen(name);

	return len && len <= NAME_MAX_BYTES && strspn(name, NAME_CHARACTERS) == len &&
	       *name != '-' && strcmp(name, "channel0") != 0 &&
	       strncmp(name, "statedump", 9) != 0 && strcmp(name, "watch") != 0;
}

static bool is_taken(const struct ky_group_options *groups, const char *name)
{
	for (size_t i = 0; i < groups->n_kernel; i++)
		if (strcmp(groups->kernel[i].name, name) == 0)
			return true;
	return false;
}

/* The parts of @text, which are cut there. False: they are not all there. */
static bool cut(char *text, char **size, char **events, bool *overwrite)
{
	char *colon = strchr(text, ':');

	if (!colon)
		return false;
	*colon = '\0';
	*size = colon + 1;
	colon = strchr(*size, ':');
	if (!colon)
		return false;
	*colon = '\0';
	*events = colon + 1;
	*overwrite = strncmp(*events, OVERWRITE, strlen(OVERWRITE)) == 0;
	if (*overwrite)
		*events += strlen(OVERWRITE);
	return **events != '\0';
}

static int add(const struct ky_command *command, struct ky_group_options *groups, const char *name,
	       uint64_t bytes, bool overwrite, const char *events)
{
	if (strncmp(events, USER_PREFIX, strlen(USER_PREFIX)) == 0)
		return ky_cli_usage(command, "--group is for kernel events; for programs, start a "
					     "second recording with the other events");
	if (groups->n_kernel == KY_SESSION_GROUPS_MAX)
		return ky_cli_usage(command, "--group: the maximum is %d groups",
				    KY_SESSION_GROUPS_MAX);
	groups->kernel[groups->n_kernel++] =
		(struct ky_session_group){name, events, bytes, overwrite};
	return KY_EXIT_OK;
}

static int parse(const struct ky_command *command, const char *text, char *copy,
		 struct ky_group_options *groups)
{
	char *size, *events;
	uint64_t bytes;
	bool overwrite;

	if (!cut(copy, &size, &events, &overwrite))
		return ky_cli_usage(command, "--group: '%s' is not NAME:SIZE[:overwrite]:EVENTS",
				    text);
	if (!is_name(copy))
		return ky_cli_usage(command,
				    "--group: '%s' is not a name of a group: use up to %d letters, "
				    "digits, '_' and '-'; channel0, statedump and watch are taken",
				    copy, NAME_MAX_BYTES);
	if (is_taken(groups, copy))
		return ky_cli_usage(command, "--group: there are two groups '%s'", copy);
	if (ky_parse_size(size, &bytes) < 0 || bytes < MIN_BYTES || bytes > MAX_BYTES)
		return ky_cli_usage(
			command, "--group: '%s' is not a size from 64k to 64G for each CPU", size);
	return add(command, groups, copy, bytes, overwrite, events);
}

int ky_group_options_parse(const struct ky_command *command, const struct ky_text_list *texts,
			   struct ky_group_options *groups)
{
	int code = KY_EXIT_OK;

	for (size_t i = 0; i < texts->len && !code; i++) {
		if (i >= KY_SESSION_GROUPS_MAX)
			return ky_cli_usage(command, "--group: the maximum is %d groups",
					    KY_SESSION_GROUPS_MAX);
		groups->copies[i] = strdup(texts->items[i]);
		code = groups->copies[i]
			       ? parse(command, texts->items[i], groups->copies[i], groups)
			       : ky_cli_usage(command, "--group: not enough memory");
	}
	return code;
}

void ky_group_options_fini(struct ky_group_options *groups)
{
	for (size_t i = 0; i < KY_SESSION_GROUPS_MAX; i++)
		free(groups->copies[i]);
	*groups = (struct ky_group_options){0};
}
