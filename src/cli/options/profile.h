/* SPDX-License-Identifier: MIT */
/* Profiles: files of options, read and written. The syntax is in cli/options/options.h. */
#ifndef KY_CLI_OPTIONS_PROFILE_H
#define KY_CLI_OPTIONS_PROFILE_H

#include "cli/options/options.h"

/*
 * Read the profile @path and call @take with each option's name and value (NULL: none) in their order. @text gets the file's
 * text, which they point into; the caller frees it. KYMO_E_INVALID with file and line; what reading fails with.
 */
int ky_profile_read(const char *path, char **text,
		    int (*take)(void *data, char *name, char *value, struct kymo_error *err),
		    void *data, struct kymo_error *err);

/* Write what was given, but for profiles themselves, to @path (0600), which is replaced. */
int ky_profile_write(const char *path, const struct ky_parsed *parsed, struct kymo_error *err);

#endif
