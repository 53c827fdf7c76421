/* SPDX-License-Identifier: MIT */
#include "cli/list/list-counters.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/terminal/json-output.h"
#include "kernel/counters/counters.h"

/* As this user; -1: of this thread. */
static bool list_counters_is_there(const struct ky_os_counter *counter, int cpu)
{
	int fd = ky_os_counter_open(counter, cpu, false);

	if (fd < 0 && cpu < 0 && !ky_os_counter_is_software(counter))
		fd = ky_os_counter_open(counter, cpu, true);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

int ky_list_counters(bool json, struct kymo_error *err)
{
	const struct ky_os_counter *counter;
	int cpu = sched_getcpu(), n = 0;
	json_t *list = json_array();

	for (size_t i = 0; (counter = ky_os_counter_at(i)); i++) {
		bool of_cpu = list_counters_is_there(counter, cpu < 0 ? 0 : cpu);
		bool of_thread = of_cpu && ky_counter_has_threads(counter);
		bool of_programs = list_counters_is_there(counter, -1);

		if (!of_cpu && !of_programs)
			continue;
		json_array_append_new(list, json_pack("{s:s, s:b, s:b, s:b}", "name", counter->name,
						      "kernel_cpu", of_cpu, "kernel_thread",
						      of_thread, "programs", of_programs));
		if (!json && !n++)
			puts("                          for kernel events            for programs");
		if (!json)
			printf("%-24s  %-13s %-14s %s\n", counter->name, of_cpu ? "perf:cpu:" : "-",
			       of_thread ? "perf:thread:" : "-", of_programs ? "perf:" : "-");
	}
	if (json)
		return ky_cli_put_json(json_pack("{s:o}", "counters", list), 1, err);
	json_decref(list);
	if (!n)
		puts("No counters: this user has no permission, or the kernel has no counters "
		     "(kymo doctor).");
	return KYMO_OK;
}
