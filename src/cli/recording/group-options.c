/* SPDX-License-Identifier: MIT */
#include "cli/recording/group-options.h"

#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES KY_USER_GROUP_NAME_MAX
#define MIN_BYTES      (64u << 10)
#define MAX_BYTES      (UINT64_C(64) << 30)
#define USER_PREFIX    "user:"
#define OVERWRITE      "overwrite:"
#define CONDITION      " if "

static bool group_options_is_taken(const struct ky_group_options *groups, const char *name)
{
	for (size_t i = 0; i < groups->n_kernel; i++)
		if (strcmp(groups->kernel[i].name, name) == 0)
			return true;
	for (size_t i = 0; i < groups->n_user; i++)
		if (strcmp(groups->user[i].name, name) == 0)
			return true;
	return false;
}

/* The parts of @text, which are cut there. False: they are not all there. */
static bool group_options_cut(char *text, char **size, char **events, bool *overwrite)
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

static int too_many(const struct ky_command *command, int max, const char *of)
{
	return ky_cli_usage(command, "--group: the maximum is %d groups of %s", max, of);
}

static int group_options_add_kernel(const struct ky_command *command,
				    struct ky_group_options *groups,
				    const struct ky_session_group *group)
{
	if (groups->n_kernel == KY_SESSION_GROUPS_MAX)
		return too_many(command, KY_SESSION_GROUPS_MAX, "kernel events");
	groups->kernel[groups->n_kernel++] = *group;
	return KY_EXIT_OK;
}

/* "shop:*,bank:transfer if amount > 5": patterns between commas, and maybe a filter; @list is cut there. */
static int parse_patterns(const struct ky_command *command, struct ky_group_patterns *to)
{
	char *condition = strstr(to->list, CONDITION), *rest = NULL;

	if (condition) {
		*condition = '\0';
		to->filter = condition + strlen(CONDITION);
	}
	for (char *at = strtok_r(to->list, ",", &rest); at; at = strtok_r(NULL, ",", &rest))
		if (ky_vec_push(&to->patterns, at) < 0)
			return ky_cli_usage(command, "--group: not enough memory");
	if (!to->patterns.len)
		return ky_cli_usage(command, "--group: the group names no event of a program");
	return KY_EXIT_OK;
}

static int group_options_add_user(const struct ky_command *command, struct ky_group_options *groups,
				  const struct ky_session_group *group)
{
	struct ky_group_patterns *to = &groups->patterns[groups->n_user];
	int code;

	if (groups->n_user == KY_RECORDING_USER_GROUPS_MAX)
		return too_many(command, KY_RECORDING_USER_GROUPS_MAX, "programs' events");
	to->list = strdup(group->events + strlen(USER_PREFIX));
	code = to->list ? parse_patterns(command, to)
			: ky_cli_usage(command, "--group: not enough memory");
	groups->user[groups->n_user++] = (struct ky_recording_user_group){
		.name = group->name,
		.events = group->events,
		.patterns = to->patterns.data,
		.n_patterns = to->patterns.len,
		.filter = to->filter,
		.buffer_bytes = group->buffer_bytes,
		.overwrite = group->overwrite,
	};
	return code;
}

static int group_options_parse(const struct ky_command *command, const char *text, char *copy,
			       struct ky_group_options *groups)
{
	struct ky_session_group group = {.name = copy};
	char *size, *events;

	if (!group_options_cut(copy, &size, &events, &group.overwrite))
		return ky_cli_usage(command, "--group: '%s' is not NAME:SIZE[:overwrite]:EVENTS",
				    text);
	if (!ky_user_is_group_name(copy))
		return ky_cli_usage(command,
				    "--group: '%s' is not a name of a group: use up to %d letters, "
				    "digits, '_' and '-'; channel0, statedump and watch are taken",
				    copy, NAME_MAX_BYTES);
	if (group_options_is_taken(groups, copy))
		return ky_cli_usage(command, "--group: there are two groups '%s'", copy);
	if (ky_parse_size(size, &group.buffer_bytes) < 0 || group.buffer_bytes < MIN_BYTES ||
	    group.buffer_bytes > MAX_BYTES)
		return ky_cli_usage(
			command, "--group: '%s' is not a size from 64k to 64G for each CPU", size);
	group.events = events;
	return strncmp(events, USER_PREFIX, strlen(USER_PREFIX)) == 0
		       ? group_options_add_user(command, groups, &group)
		       : group_options_add_kernel(command, groups, &group);
}

int ky_group_options_parse(const struct ky_command *command, const struct ky_text_list *texts,
			   struct ky_group_options *groups)
{
	int code = KY_EXIT_OK;

	for (size_t i = 0; i < texts->len && !code; i++) {
		if (i >= KY_GROUPS_MAX)
			return too_many(command, KY_GROUPS_MAX, "events");
		groups->copies[i] = strdup(texts->items[i]);
		code = groups->copies[i] ? group_options_parse(command, texts->items[i],
							       groups->copies[i], groups)
					 : ky_cli_usage(command, "--group: not enough memory");
	}
	return code;
}

void ky_group_options_fini(struct ky_group_options *groups)
{
	for (size_t i = 0; i < KY_GROUPS_MAX; i++)
		free(groups->copies[i]);
	for (size_t i = 0; i < KY_RECORDING_USER_GROUPS_MAX; i++) {
		ky_vec_fini(&groups->patterns[i].patterns);
		free(groups->patterns[i].list);
	}
	*groups = (struct ky_group_options){0};
}
