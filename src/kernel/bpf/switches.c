/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/switches.h"

#include <unistd.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "kernel/bpf/switches.skel.h"

static int load(struct ky_bpf_switches *switches, struct ky_bpf_opening *opening,
		struct kymo_error *err)
{
	struct switches_bpf *skeleton = switches_bpf__open_opts(&opening->options);
	uint64_t data = (uint64_t)KY_SWITCHES_SLOTS * sizeof(struct ky_switches_slot);
	int ret;

	switches->skeleton = skeleton;
	if (!skeleton)
		return ky_bpf_load(opening, NULL, err);
	switches->regions = (struct ky_bpf_regions){.n = ky_bpf_possible_cpus(),
						    .bytes = KY_SWITCHES_DATA_OFFSET + data,
						    .data_bytes = data};
	ret = ky_bpf_regions_make(&switches->regions, skeleton->maps.kymo_switches, data, err);
	return ret < 0 ? ret : ky_bpf_load(opening, skeleton->skeleton, err);
}

int ky_bpf_switches_load(struct ky_bpf_switches *switches, struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	int ret;

	*switches = (struct ky_bpf_switches){.link_fd = -1};
	if (!ky_bpf_has_btf())
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "this kernel does not tell what its structs hold (BTF)");
	ret = ky_bpf_begin(&opening, err);
	if (!ret)
		ret = load(switches, &opening, err);
	ky_bpf_end(&opening);
	if (ret < 0)
		return ret;
	switches->link_fd = ky_bpf_attach_raw(
		bpf_program__fd(switches->skeleton->progs.kymo_switch), "sched_switch", err);
	return switches->link_fd < 0 ? switches->link_fd : KYMO_OK;
}

void ky_bpf_switches_unload(struct ky_bpf_switches *switches)
{
	if (switches->link_fd >= 0)
		close(switches->link_fd);
	switches->link_fd = -1;
	ky_bpf_regions_unmap(&switches->regions);
	switches_bpf__destroy(switches->skeleton);
	switches->skeleton = NULL;
}
