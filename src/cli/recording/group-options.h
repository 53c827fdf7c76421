/* SPDX-License-Identifier: MIT */
/* kymo record --group: events with buffers of their own. */
#ifndef KY_CLI_RECORDING_GROUP_OPTIONS_H
#define KY_CLI_RECORDING_GROUP_OPTIONS_H

#include "base/text.h"
#include "base/vec.h"
#include "cli/terminal/command.h"
#include "record/recording/recording.h"

#define KY_GROUPS_MAX (KY_SESSION_GROUPS_MAX + KY_RECORDING_USER_GROUPS_MAX)

/* The events of a group of programs. */
struct ky_group_patterns {
	char *list; /* memory of the others */
	KY_VEC(const char *) patterns;
	const char *filter; /* NULL: none */
};

/* Groups of the kernel's events, and of programs' events. */
struct ky_group_options {
	struct ky_session_group kernel[KY_SESSION_GROUPS_MAX];
	size_t n_kernel;
	struct ky_recording_user_group user[KY_RECORDING_USER_GROUPS_MAX];
	size_t n_user;
	char *copies[KY_GROUPS_MAX]; /* memory of names and events */
	struct ky_group_patterns patterns[KY_RECORDING_USER_GROUPS_MAX];
};

/*
 * Parses the values of --group, NAME:SIZE[:overwrite]:EVENTS each. Returns an exit code: of a mistake, or
 * KY_EXIT_OK. The caller must call ky_group_options_fini() in any case.
 */
int ky_group_options_parse(const struct ky_command *command, const struct ky_text_list *texts,
			   struct ky_group_options *groups);
void ky_group_options_fini(struct ky_group_options *groups);

#endif
