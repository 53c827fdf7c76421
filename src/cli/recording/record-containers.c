/* SPDX-License-Identifier: MIT */
#include "cli/recording/record-containers.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "cli/containers/containers.h"

static int remember(struct ky_record_run *run, const char *name, const char *cgroup,
		    struct kymo_error *err)
{
	struct ky_record_container container;

	ky_vec_foreach(&run->containers, other)
		if (strcmp(other->name, name) == 0 && strcmp(other->cgroup, cgroup) == 0)
			return KYMO_OK;
	container = (struct ky_record_container){strdup(name), strdup(cgroup)};
	if (container.name && container.cgroup && ky_vec_push(&run->containers, container) == 0)
		return KYMO_OK;
	free(container.name);
	free(container.cgroup);
	return ky_error_nomem(err);
}

static void forget(struct ky_record_run *run, size_t i)
{
	free(run->containers.data[i].name);
	free(run->containers.data[i].cgroup);
	run->containers.data[i] = run->containers.data[--run->containers.len];
}

int ky_record_containers_find(struct ky_record_run *run, const struct ky_text_list *cgroups,
			      const struct ky_text_list *containers, struct kymo_error *err)
{
	char cgroup[KY_CONTAINER_PATH_BYTES];
	int ret = KYMO_OK;

	for (size_t i = 0; i < containers->len && !ret; i++) {
		ret = ky_container_cgroup(containers->items[i], cgroup, err);
		if (!ret)
			ret = remember(run, containers->items[i], cgroup, err);
	}
	if (ret < 0)
		return ret;
	if (ky_vec_reserve(&run->cgroups, cgroups->len + run->containers.len) < 0)
		return ky_error_nomem(err);
	for (size_t i = 0; i < cgroups->len; i++)
		(void)ky_vec_push(&run->cgroups, cgroups->items[i]);
	ky_vec_foreach(&run->containers, container)
		(void)ky_vec_push(&run->cgroups, container->cgroup);
	run->kernel.cgroups = run->cgroups.data;
	run->kernel.n_cgroups = run->cgroups.len;
	return KYMO_OK;
}

void ky_record_containers_fini(struct ky_record_run *run)
{
	while (run->containers.len)
		forget(run, run->containers.len - 1);
	ky_vec_fini(&run->containers);
	ky_vec_fini(&run->cgroups);
}

/* All that were added by this name: it may have been begun anew, in another group. */
static int remove_added(struct ky_record_run *run, const char *name, bool *was_added,
			struct kymo_error *err)
{
	int ret = KYMO_OK;

	*was_added = false;
	for (size_t i = run->containers.len; i-- > 0 && !ret;) {
		if (strcmp(run->containers.data[i].name, name) != 0)
			continue;
		*was_added = true;
		ret = ky_session_choose_group(run->session, run->containers.data[i].cgroup, false,
					      err);
		/* It may be gone, and be taken out by another name. */
		if (ret == KYMO_E_NOT_FOUND)
			ret = KYMO_OK;
		if (!ret)
			forget(run, i);
	}
	return ret;
}

int ky_record_container_choose(struct ky_record_run *run, const char *name, const char *cgroup,
			       bool adds, struct kymo_error *err)
{
	bool was_added;
	int ret;

	if (!adds) {
		ret = remove_added(run, name, &was_added, err);
		if (ret < 0 || was_added)
			return ret;
	}
	if (!*cgroup)
		return ky_error_set(err, KYMO_E_NOT_FOUND,
				    "no container '%.64s' runs, or was added by this name", name);
	ret = ky_session_choose_group(run->session, cgroup, adds, err);
	return !ret && adds ? remember(run, name, cgroup, err) : ret;
}
