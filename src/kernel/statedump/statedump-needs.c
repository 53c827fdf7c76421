/* SPDX-License-Identifier: MIT */
/* Which events of the state dump say what a kernel event means. */
#include <string.h>

#include "kernel/events/compat-calls.h"
#include "kernel/statedump/statedump.h"

#define BIT KY_STATEDUMP_BIT

/* Systems of tracefs whose events are about such things. Interfaces' addresses tell which end of a connection is here. */
static const struct {
	const char *systems; /* with blanks around each */
	uint32_t needs;
} of_systems[] = {
	{" block ", BIT(KY_STATEDUMP_BLOCK_DEVICE)},
	{" net napi qdisc xdp bridge fib fib6 neigh sock tcp udp icmp mptcp ",
	 BIT(KY_STATEDUMP_NETWORK_INTERFACE)},
	{" irq irq_vectors irq_matrix ", BIT(KY_STATEDUMP_INTERRUPT)},
	{" sched power cpuhp thermal ", BIT(KY_STATEDUMP_CPU_TOPOLOGY)},
	{" kmem vmscan compaction oom exceptions huge_memory memcg migrate thp ksm ",
	 BIT(KY_STATEDUMP_MEMORY) | BIT(KY_STATEDUMP_PROCESS_MEMORY)},
};

static bool statedump_needs_is_listed(const char *systems, const char *system)
{
	size_t len = strlen(system);
	const char *at = len ? strstr(systems, system) : NULL;

	while (at && (at[-1] != ' ' || at[len] != ' '))
		at = strstr(at + 1, system);
	return at;
}

/* Arguments of system calls: what the kernel calls descriptors, and tables of them. */
static bool is_descriptor(const char *name)
{
	return strstr(name, "fd") || strcmp(name, "fildes") == 0 || strcmp(name, "mqdes") == 0;
}

/* Places in the kernel. */
static bool is_code(const char *name)
{
	static const char *const names[] = {"call_site", "callsite", "caller",	  "func",
					    "function",	 "ip",	     "parent_ip", "__probe_ip"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

static uint32_t needs_of_field(const struct ky_format_field *field, bool is_call)
{
	bool is_address;

	if (is_call)
		return is_descriptor(field->name) ? BIT(KY_STATEDUMP_FILE_DESCRIPTOR) : 0;
	if (strcmp(field->type, "dev_t") == 0)
		return BIT(KY_STATEDUMP_BLOCK_DEVICE);
	if (strcmp(field->name, "ifindex") == 0)
		return BIT(KY_STATEDUMP_NETWORK_INTERFACE);
	if (strcmp(field->name, "irq") == 0)
		return BIT(KY_STATEDUMP_INTERRUPT);
	is_address = field->kind == KY_FORMAT_POINTER ||
		     (field->kind == KY_FORMAT_INT && field->size == sizeof(long));
	return is_address && is_code(field->name) ? BIT(KY_STATEDUMP_MODULE) : 0;
}

uint32_t ky_statedump_needs(const char *system, const struct ky_format *format)
{
	bool is_call = strcmp(system, "syscalls") == 0 || ky_compat_is_system(system);
	uint32_t needs = KY_STATEDUMP_ALWAYS;

	for (size_t i = 0; i < sizeof(of_systems) / sizeof(of_systems[0]); i++)
		if (statedump_needs_is_listed(of_systems[i].systems, system))
			needs |= of_systems[i].needs;
	for (size_t i = 0; i < format->n_fields; i++)
		needs |= needs_of_field(&format->fields[i], is_call);
	return needs;
}
