/* SPDX-License-Identifier: MIT */
/* Which container a name or an id means. */
#include "record/containers/containers.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/strbuf.h"

#define MIN_PREFIX 4

static bool container_choose_has_name(const struct ky_container *container, const char *name)
{
	return *name && strcmp(container->name, name) == 0;
}

static bool has_id(const struct ky_container *container, const char *id)
{
	size_t len = strlen(id);

	return len >= MIN_PREFIX && strncmp(container->id, id, len) == 0;
}

/* What @name may mean: the system's containers come before those of users, who may name theirs as they like. */
enum meant {
	SYSTEMS_NAME,
	SYSTEMS_ID,
	USERS_NAME,
	USERS_ID,
	NONE,
};

static bool container_choose_is_meant(const struct ky_container *container, const char *name,
				      enum meant how)
{
	if (how == NONE || container->is_users != (how == USERS_NAME || how == USERS_ID))
		return false;
	return how == SYSTEMS_NAME || how == USERS_NAME ? container_choose_has_name(container, name)
							: has_id(container, name);
}

/* How many are meant, in the first way that any are; *chosen is one of them. */
static size_t container_choose_choose(const struct ky_containers *found, const char *name,
				      const struct ky_container **chosen, enum meant *how)
{
	size_t n = 0;

	for (*how = SYSTEMS_NAME; *how < NONE; ++*how) {
		ky_vec_foreach(&found->all, container) {
			if (!container_choose_is_meant(container, name, *how))
				continue;
			*chosen = container;
			n++;
		}
		if (n)
			break;
	}
	return n;
}

/* Is its id another's, too? The system's and users' are never meant together. */
static bool has_twin(const struct ky_containers *found, const struct ky_container *container)
{
	ky_vec_foreach(&found->all, other)
		if (other != container && other->is_users == container->is_users &&
		    strcmp(other->id, container->id) == 0)
			return true;
	return false;
}

/* "web (docker 0123456789ab), box (lxc)": all, or those that are meant; as many as there is room for. */
static void container_choose_add_names(struct ky_strbuf *text, const struct ky_containers *found,
				       const char *wanted, enum meant how)
{
	size_t n = 0, n_left = 0;

	ky_vec_foreach(&found->all, container) {
		if (how != NONE && !container_choose_is_meant(container, wanted, how))
			continue;
		if (text->len > 300) {
			n_left++;
			continue;
		}
		ky_strbuf_addf(text, "%s%s%s(", n++ ? ", " : "", container->name,
			       container->name[0] ? " " : "");
		if (how != NONE && has_twin(found, container))
			ky_strbuf_adds(text, container->cgroup);
		else
			ky_strbuf_addf(text, "%s%s%.12s", container->runtime,
				       container->id[0] ? " " : "", container->id);
		ky_strbuf_adds(text, ")");
	}
	if (n_left)
		ky_strbuf_addf(text, " and %zu more", n_left);
}

static int container_choose_not_one(const struct ky_containers *found, const char *name, size_t n,
				    enum meant how, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	container_choose_add_names(&text, found, name, how);
	if (n)
		ret = ky_error_set(err, KYMO_E_INVALID,
				   "%zu containers match '%.64s'; name one of: %s", n, name,
				   ky_strbuf_text(&text));
	else if (found->all.len)
		ret = ky_error_set(err, KYMO_E_NOT_FOUND, "no container '%.64s' runs; these do: %s",
				   name, ky_strbuf_text(&text));
	else
		ret = ky_error_set(
			err, KYMO_E_NOT_FOUND,
			"no container '%.64s' is running, and no other container, by the names of "
			"control groups; try the path of a control group",
			name);
	if (n)
		ky_error_hint(
			err,
			"kymo list shows the containers' control groups, which choose exactly one");
	ky_strbuf_fini(&text);
	return ret;
}

int ky_container_cgroup(const char *name, char cgroup[KY_CONTAINER_PATH_BYTES],
			const struct ky_log *log, struct kymo_error *err)
{
	const struct ky_container *chosen = NULL;
	struct ky_containers found;
	enum meant how = NONE;
	int ret = ky_containers_find(&found, log, err);
	size_t n = ret < 0 ? 0 : container_choose_choose(&found, name, &chosen, &how);

	if (!ret && n != 1)
		ret = container_choose_not_one(&found, name, n, how, err);
	else if (!ret)
		memcpy(cgroup, chosen->cgroup, sizeof(chosen->cgroup));
	ky_containers_fini(&found);
	return ret;
}
