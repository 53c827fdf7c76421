/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/switches.h"

#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "kernel/bpf/switches.skel.h"
#include "kernel/bpf/task-btf.h"

static int bpf_switches_load(struct ky_bpf_switches *switches, struct ky_bpf_opening *opening,
			     struct kymo_error *err)
{
	uint64_t data = (uint64_t)KY_SWITCHES_SLOTS * sizeof(struct ky_switches_slot);
	struct btf *task = ky_bpf_task_btf();
	struct switches_bpf *skeleton;
	int ret;

	/* Without it, libbpf reads all types of the kernel. */
	if (task)
		(void)ky_bpf_use_btf(opening, task, NULL);
	skeleton = switches_bpf__open_opts(&opening->options);
	switches->skeleton = skeleton;
	if (!skeleton)
		return ky_bpf_load(opening, NULL, err);
	switches->regions = (struct ky_bpf_regions){.n = ky_bpf_possible_cpus(),
						    .bytes = KY_SWITCHES_DATA_OFFSET + data,
						    .data_bytes = data};
	ret = ky_bpf_regions_make(&switches->regions, skeleton->maps.kymo_switches, data, err);
	return ret < 0 ? ret : ky_bpf_load(opening, skeleton->skeleton, err);
}

/* A notice only wakes the reader, which looks at all CPUs. */
static int ignore_notice(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return 0;
}

static int bpf_switches_attach(struct ky_bpf_switches *switches, struct kymo_error *err)
{
	int fd = bpf_map__fd(switches->skeleton->maps.kymo_notices);

	switches->notices = ring_buffer__new(fd, ignore_notice, NULL, NULL);
	if (!switches->notices)
		return ky_error_errno(err, errno, "cannot map a ring buffer of BPF");
	switches->link_fd = ky_bpf_attach_raw(
		bpf_program__fd(switches->skeleton->progs.kymo_switch), "sched_switch", err);
	return switches->link_fd < 0 ? switches->link_fd : KYMO_OK;
}

int ky_bpf_switches_load(struct ky_bpf_switches *switches, struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	int ret;

	*switches = (struct ky_bpf_switches){.link_fd = -1};
	if (!ky_bpf_has_btf())
		return ky_error_set(err, KYMO_E_UNSUPPORTED,
				    "this kernel's BTF does not describe its structs");
	ret = ky_bpf_begin(&opening, err);
	if (!ret)
		ret = bpf_switches_load(switches, &opening, err);
	ky_bpf_end(&opening);
	return ret < 0 ? ret : bpf_switches_attach(switches, err);
}

void ky_bpf_switches_unload(struct ky_bpf_switches *switches)
{
	if (switches->link_fd >= 0)
		close(switches->link_fd);
	switches->link_fd = -1;
	ring_buffer__free(switches->notices);
	switches->notices = NULL;
	ky_bpf_regions_unmap(&switches->regions);
	switches_bpf__destroy(switches->skeleton);
	switches->skeleton = NULL;
}

int ky_bpf_switches_fd(const struct ky_bpf_switches *switches)
{
	return switches->skeleton ? bpf_map__fd(switches->skeleton->maps.kymo_notices) : -1;
}

void ky_bpf_switches_heed(struct ky_bpf_switches *switches)
{
	(void)ring_buffer__consume(switches->notices);
}
