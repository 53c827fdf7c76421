/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/switches.h"

#include <errno.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "kernel/bpf/switches.skel.h"

static int bpf_switches_load(struct ky_bpf_switches *switches, struct ky_bpf_opening *opening,
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
	switches->link = bpf_program__attach_trace(switches->skeleton->progs.kymo_switch);
	return switches->link ? KYMO_OK : ky_bpf_refused(err, errno, "cannot attach a BPF program");
}

int ky_bpf_switches_load(struct ky_bpf_switches *switches, struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	int ret;

	*switches = (struct ky_bpf_switches){0};
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
	bpf_link__destroy(switches->link);
	switches->link = NULL;
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
