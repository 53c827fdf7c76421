/* SPDX-License-Identifier: MIT */
/* Containers whose events a recording takes: each is chosen by its control group. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "record/containers/containers.h"
#include "record/recording/recording-internal.h"

static int recording_containers_remember(struct ky_recording *recording, const char *name,
					 const char *cgroup, struct kymo_error *err)
{
	struct ky_recording_container container;

	ky_vec_foreach(&recording->containers, other)
		if (strcmp(other->name, name) == 0 && strcmp(other->cgroup, cgroup) == 0)
			return KYMO_OK;
	container = (struct ky_recording_container){strdup(name), strdup(cgroup)};
	if (container.name && container.cgroup &&
	    ky_vec_push(&recording->containers, container) == 0)
		return KYMO_OK;
	free(container.name);
	free(container.cgroup);
	return ky_error_nomem(err);
}

static void recording_containers_forget(struct ky_recording *recording, size_t i)
{
	free(recording->containers.data[i].name);
	free(recording->containers.data[i].cgroup);
	recording->containers.data[i] = recording->containers.data[--recording->containers.len];
}

int ky_recording_find_containers(struct ky_recording *recording, struct kymo_error *err)
{
	const struct ky_recording_options *options = &recording->options;
	struct ky_session_options *kernel = &recording->options.kernel;
	char cgroup[KY_CONTAINER_PATH_BYTES];
	int ret = KYMO_OK;

	for (size_t i = 0; i < options->n_containers && !ret; i++) {
		ret = ky_container_cgroup(options->containers[i], cgroup, options->log, err);
		if (!ret)
			ret = recording_containers_remember(recording, options->containers[i],
							    cgroup, err);
	}
	if (ret < 0)
		return ret;
	if (ky_vec_reserve(&recording->cgroups,
			   kernel->threads.n_cgroups + recording->containers.len) < 0)
		return ky_error_nomem(err);
	for (size_t i = 0; i < kernel->threads.n_cgroups; i++)
		(void)ky_vec_push(&recording->cgroups, kernel->threads.cgroups[i]);
	ky_vec_foreach(&recording->containers, container)
		(void)ky_vec_push(&recording->cgroups, container->cgroup);
	kernel->threads.cgroups = recording->cgroups.data;
	kernel->threads.n_cgroups = recording->cgroups.len;
	return KYMO_OK;
}

void ky_recording_forget_containers(struct ky_recording *recording)
{
	while (recording->containers.len)
		recording_containers_forget(recording, recording->containers.len - 1);
	ky_vec_fini(&recording->containers);
	ky_vec_fini(&recording->cgroups);
}

/* All that were added by this name: the container may have been started again, in another group. */
static int remove_added(struct ky_recording *recording, const char *name, bool *was_added,
			struct kymo_error *err)
{
	int ret = KYMO_OK;

	*was_added = false;
	for (size_t i = recording->containers.len; i-- > 0 && !ret;) {
		if (strcmp(recording->containers.data[i].name, name) != 0)
			continue;
		*was_added = true;
		ret = ky_session_choose_group(recording->session,
					      recording->containers.data[i].cgroup, false, err);
		/* The group may be gone, and another name may have removed it. */
		if (ret == KYMO_E_NOT_FOUND)
			ret = KYMO_OK;
		if (!ret)
			recording_containers_forget(recording, i);
	}
	return ret;
}

int ky_recording_choose_container(struct ky_recording *recording, const char *name,
				  const char *cgroup, bool adds, struct kymo_error *err)
{
	bool was_added;
	int ret;

	if (!adds) {
		ret = remove_added(recording, name, &was_added, err);
		if (ret < 0 || was_added)
			return ret;
	}
	if (!*cgroup)
		return ky_error_set(err, KYMO_E_NOT_FOUND,
				    "no container '%.64s' runs, or was added by this name", name);
	ret = ky_session_choose_group(recording->session, cgroup, adds, err);
	return !ret && adds ? recording_containers_remember(recording, name, cgroup, err) : ret;
}
