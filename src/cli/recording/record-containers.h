/* SPDX-License-Identifier: MIT */
/* Containers whose events kymo record takes: each is chosen by its control group. */
#ifndef KY_CLI_RECORD_CONTAINERS_H
#define KY_CLI_RECORD_CONTAINERS_H

#include "cli/options/options.h"
#include "cli/recording/record-run.h"

/*
 * What run->kernel chooses from now on: @cgroups, and the control groups of @containers. KYMO_E_NOT_FOUND,
 * KYMO_E_INVALID (several are meant), KYMO_E_MEMORY; ky_record_containers_fini() is due in any case.
 */
int ky_record_containers_find(struct ky_record_run *run, const struct ky_text_list *cgroups,
			      const struct ky_text_list *containers, struct kymo_error *err);
void ky_record_containers_fini(struct ky_record_run *run);

/*
 * While recording: what happens in this one, too, or no more. Who asks has found its control group (""; it does not run):
 * that may take long. One that has gone is known by the name that it was added by.
 */
int ky_record_container_choose(struct ky_record_run *run, const char *name, const char *cgroup,
			       bool adds, struct kymo_error *err);

#endif
