/* SPDX-License-Identifier: MIT */
#include "cli/daemon/policy.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/options/profile.h"
#include "record/recording/recording.h"

#define DURATION_NS (UINT64_C(600) * 1000000000)
#define BYTES	    (UINT64_C(1) << 30)
#define GROUPS_MAX  64

/* Options that are the daemon's to give, or would be a way around its limits. */
static const char *const refused[] = {"output",	  "name",     "background", "profile",	 "save",
				      "ready-fd", "shm-path", "on-rotate",  "relay-key", "insecure",
				      "policy",	  "spill",    "relay-wait"};
/* These add up with the user. */
static const char *const choices[] = {"pid", "tid", "cgroup", "container", "follow"};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static int take_group(struct ky_policy *policy, const char *text, struct kymo_error *err)
{
	const struct group *group = getgrnam(text);
	uint64_t gid;

	if (group)
		gid = group->gr_gid;
	else if (ky_parse_u64(text, &gid) < 0 || gid >= UINT32_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "there is no group '%s'", text);
	if (policy->groups.len == GROUPS_MAX)
		return ky_error_set(err, KYMO_E_INVALID, "a policy has at most %d groups",
				    GROUPS_MAX);
	return ky_vec_push(&policy->groups, (gid_t)gid) < 0 ? ky_error_nomem(err) : KYMO_OK;
}

static int take_option(struct ky_policy *policy, const char *name, const char *value,
		       struct kymo_error *err)
{
	char *arg = NULL;

	if (asprintf(&arg, value ? "--%s=%s" : "--%s", name, value) < 0 ||
	    ky_vec_push(&policy->args, arg) < 0) {
		free(arg);
		return ky_error_nomem(err);
	}
	policy->chooses |= is_one_of(name, choices, sizeof(choices) / sizeof(choices[0]));
	policy->has_state |= strcmp(name, "statedump") == 0;
	policy->has_user |= strcmp(name, "uid") == 0;
	return KYMO_OK;
}

/* A limit, which is more than 0. */
static int take_limit(const char *name, const char *value,
		      int (*parse)(const char *text, uint64_t *to), uint64_t *to,
		      struct kymo_error *err)
{
	if (value && parse(value, to) == 0 && *to && *to <= INT64_MAX)
		return KYMO_OK;
	return ky_error_set(err, KYMO_E_INVALID, "'%s' is no value of '%s'", value ? value : "",
			    name);
}

static int policy_take_word(void *data, char *name, char *value, struct kymo_error *err)
{
	struct ky_policy *policy = data;

	if (strcmp(name, "group") == 0)
		return take_group(policy, value ? value : "", err);
	if (strcmp(name, "max-duration") == 0)
		return take_limit(name, value, ky_parse_duration, &policy->max_duration_ns, err);
	if (strcmp(name, "duration") == 0)
		return take_limit(name, value, ky_parse_duration, &policy->duration_ns, err);
	if (strcmp(name, "max-size") == 0)
		return take_limit(name, value, ky_parse_size, &policy->max_bytes, err);
	if (strcmp(name, "max-recordings") == 0)
		return take_limit(name, value, ky_parse_u64, &policy->max_recordings, err);
	if (strcmp(name, "own-processes") == 0) {
		policy->own = true;
		return value ? ky_error_set(err, KYMO_E_INVALID, "'%s' has no value", name)
			     : KYMO_OK;
	}
	if (is_one_of(name, refused, sizeof(refused) / sizeof(refused[0])))
		return ky_error_set(err, KYMO_E_INVALID,
				    "a policy cannot have '%s'; remove the line", name);
	return take_option(policy, name, value, err);
}

const char *ky_policy_refuse_file(const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return "is not a regular file";
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return "belongs to another user";
	if (st->st_mode & 022)
		return "can be written by other users: chmod go-w";
	return NULL;
}

static int policy_check(const struct ky_policy *policy, struct kymo_error *err)
{
	if (!policy->groups.len)
		return ky_error_set(err, KYMO_E_INVALID, "the policy names no group");
	if (policy->own && (policy->chooses || policy->has_user))
		return ky_error_set(err, KYMO_E_INVALID,
				    "'own-processes' does not go with pid, tid, uid, cgroup, "
				    "container and follow");
	return KYMO_OK;
}

int ky_policy_read(const char *dir, const char *name, struct ky_policy *policy,
		   struct kymo_error *err)
{
	char path[PATH_MAX], *text = NULL;
	const char *refusal;
	struct stat st;
	int ret;

	*policy = (struct ky_policy){
		.max_duration_ns = DURATION_NS, .max_bytes = BYTES, .max_recordings = 1};
	if (snprintf(path, sizeof(path), "%s/%s" KY_POLICY_SUFFIX, dir, name) >=
		    (int)sizeof(path) ||
	    stat(path, &st) < 0)
		return ky_error_set(err, KYMO_E_NOT_FOUND, "there is no policy '%s'", name);
	refusal = ky_policy_refuse_file(&st);
	if (refusal) {
		ky_error_set(err, KYMO_E_PERMISSION, "the policy %s", refusal);
		ky_error_path(err, path);
		return KYMO_E_PERMISSION;
	}
	ret = ky_profile_read(path, &text, policy_take_word, policy, err);
	free(text);
	if (ret < 0)
		return ret;
	ret = policy_check(policy, err);
	if (ret < 0)
		ky_error_path(err, path);
	return ret;
}

void ky_policy_fini(struct ky_policy *policy)
{
	ky_vec_foreach(&policy->args, arg)
		free(*arg);
	ky_vec_fini(&policy->args);
	ky_vec_fini(&policy->groups);
}

bool ky_policy_file_name(const char *file, const char *suffix, char name[256])
{
	size_t len = strlen(file), end = strlen(suffix);

	if (len <= end || len - end > 255 || strcmp(file + len - end, suffix) != 0)
		return false;
	snprintf(name, 256, "%.*s", (int)(len - end), file);
	return ky_recording_is_name(name);
}
