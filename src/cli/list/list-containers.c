/* SPDX-License-Identifier: MIT */
#include "cli/list/list-containers.h"

#include <stdio.h>

#include "base/error.h"
#include "cli/terminal/command.h"
#include "record/containers/containers.h"
#include "cli/terminal/json-output.h"

static json_t *list_containers_text_or_null(const char *text)
{
	return *text ? ky_jansson_text(text) : json_null();
}

static json_t *container_json(const struct ky_container *container)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:I}", "name",
			 list_containers_text_or_null(container->name), "id",
			 list_containers_text_or_null(container->id), "runtime",
			 list_containers_text_or_null(container->runtime), "cgroup",
			 list_containers_text_or_null(container->cgroup), "processes",
			 (json_int_t)container->n_processes);
}

static int list_containers_print_json(const struct ky_containers *found, struct kymo_error *err)
{
	json_t *list = json_array();

	ky_vec_foreach(&found->all, container)
		json_array_append_new(list, container_json(container));
	return ky_cli_put_json(json_pack("{s:o}", "containers", list), 1, err);
}

static void list_containers_print_text(const struct ky_container *container)
{
	char id[13];

	/* As runtimes list them. */
	snprintf(id, sizeof(id), "%s", container->id);
	ky_cli_put_text(stdout, container->name[0] ? container->name : id);
	fputs("  ", stdout);
	ky_cli_put_text(stdout, container->runtime);
	printf("  %zu process%s\n         ", container->n_processes,
	       container->n_processes == 1 ? "" : "es");
	ky_cli_put_text(stdout, container->cgroup);
	putchar('\n');
}

int ky_list_containers(bool json, struct kymo_error *err)
{
	struct ky_containers found;
	int ret = ky_containers_find(&found, &ky_cli_log, err);

	if (!ret && json)
		ret = list_containers_print_json(&found, err);
	else if (!ret && !found.all.len)
		puts("No container is running.");
	else if (!ret)
		ky_vec_foreach(&found.all, container)
			list_containers_print_text(container);
	ky_containers_fini(&found);
	return ret;
}
