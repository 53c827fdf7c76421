/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/stacks.h"

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "kernel/bpf/stacks.skel.h"

int ky_bpf_stacks_load(struct ky_bpf_stacks *stacks, bool has_events, bool has_counters,
		       struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	struct stacks_bpf *skeleton;
	int ret = ky_bpf_begin(&opening, err);

	*stacks = (struct ky_bpf_stacks){0};
	if (!ret) {
		skeleton = stacks->skeleton = stacks_bpf__open_opts(&opening.options);
		if (skeleton) {
			bpf_program__set_autoload(skeleton->progs.kymo_at_event, has_events);
			bpf_program__set_autoload(skeleton->progs.kymo_at_counter, has_counters);
			bpf_map__set_max_entries(skeleton->maps.kymo_rings, ky_bpf_possible_cpus());
		}
		ret = ky_bpf_load(&opening, skeleton ? skeleton->skeleton : NULL, err);
	}
	ky_bpf_end(&opening);
	return ret;
}

void ky_bpf_stacks_unload(struct ky_bpf_stacks *stacks)
{
	stacks_bpf__destroy(stacks->skeleton);
	stacks->skeleton = NULL;
}

int ky_bpf_stacks_ring(struct ky_bpf_stacks *stacks, uint32_t cpu, int fd, struct kymo_error *err)
{
	int ret = bpf_map_update_elem(bpf_map__fd(stacks->skeleton->maps.kymo_rings), &cpu, &fd,
				      BPF_ANY);

	return ret < 0 ? ky_bpf_refused(err, -ret, "cannot fill a BPF map") : KYMO_OK;
}

int ky_bpf_stacks_program(const struct ky_bpf_stacks *stacks, bool is_event, uint32_t source,
			  struct kymo_error *err)
{
	const struct stacks_bpf *skeleton = stacks->skeleton;
	int program = ky_bpf_load_copy(
		is_event ? skeleton->progs.kymo_at_event : skeleton->progs.kymo_at_counter,
		is_event ? BPF_PROG_TYPE_TRACEPOINT : BPF_PROG_TYPE_PERF_EVENT,
		KY_BPF_STACKS_ANY_SOURCE, source);

	return program < 0 ? ky_bpf_refused(err, -program, "cannot load a BPF program") : program;
}

void ky_bpf_stacks_turn(struct ky_bpf_stacks *stacks, bool is_on)
{
	__atomic_store_n(&stacks->skeleton->bss->kymo_is_on, is_on, __ATOMIC_RELAXED);
}
