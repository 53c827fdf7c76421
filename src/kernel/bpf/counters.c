/* SPDX-License-Identifier: MIT */
#include "kernel/bpf/counters.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/error.h"
#include "kernel/bpf/counters.skel.h"
#include "kernel/bpf/object.h"

/*
 * A region of memory per CPU, as large as the ring, in which events wait as long; but not beyond what older kernels
 * allow (they say so), and less where there are many CPUs.
 */
#define DATA_MIN_BYTES (256u << 10)
#define DATA_MAX_BYTES (32u << 20)
#define DATA_ALL_BYTES (256u << 20)

static uint64_t bpf_counters_choose_data_bytes(uint64_t ring_bytes, uint32_t n_cpus)
{
	uint64_t data = DATA_MAX_BYTES;

	while (data > DATA_MIN_BYTES && (data * n_cpus > DATA_ALL_BYTES || data / 2 >= ring_bytes))
		data /= 2;
	return data;
}

static int bpf_counters_make_regions(struct ky_bpf_counters *counters,
				     const struct ky_bpf_counters_options *options,
				     struct kymo_error *err)
{
	struct ky_bpf_regions *regions = &counters->regions;
	int ret;

	regions->n = ky_bpf_possible_cpus();
	regions->data_bytes = bpf_counters_choose_data_bytes(options->ring_bytes, regions->n);
	regions->bytes = KY_COUNTERS_DATA_OFFSET + regions->data_bytes;
	ret = ky_bpf_regions_make(regions, counters->skeleton->maps.kymo_readings, DATA_MIN_BYTES,
				  err);
	counters->slot_bytes = ky_counters_slot_bytes(options->n);
	counters->n_slots = (uint32_t)(regions->data_bytes / counters->slot_bytes);
	return ret;
}

static int bpf_counters_configure_and_load(struct ky_bpf_counters *counters,
					   struct ky_bpf_opening *opening,
					   const struct ky_bpf_counters_options *options,
					   struct kymo_error *err)
{
	struct counters_bpf *skeleton = counters->skeleton;
	struct ky_counters_config *config;
	int ret;

	if (!skeleton)
		return ky_bpf_load(opening, NULL, err);
	ret = bpf_counters_make_regions(counters, options, err);
	if (ret < 0)
		return ret;
	config = &skeleton->rodata->config;
	config->n = options->n;
	config->n_slots = counters->n_slots;
	config->slot_bytes = counters->slot_bytes;
	memcpy(config->of, options->of, sizeof(config->of));
	bpf_map__set_max_entries(skeleton->maps.kymo_counters,
				 counters->regions.n * (uint32_t)options->n);
	return ky_bpf_load(opening, skeleton->skeleton, err);
}

static int bpf_counters_check_kernel(const struct ky_bpf_counters_options *options,
				     struct kymo_error *err)
{
	for (size_t i = 0; i < options->n && !ky_bpf_has_btf(); i++)
		if (options->of[i] >= KY_COUNTER_OF_THREAD) {
			ky_error_set(err, KYMO_E_UNSUPPORTED,
				     "'perf:thread:...': this kernel's BTF does not describe the "
				     "counters of threads");
			ky_error_input(err, "context");
			return KYMO_E_UNSUPPORTED;
		}
	return KYMO_OK;
}

int ky_bpf_counters_load(struct ky_bpf_counters *counters,
			 const struct ky_bpf_counters_options *options, struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	int ret = bpf_counters_check_kernel(options, err);

	*counters = (struct ky_bpf_counters){0};
	if (ret < 0)
		return ret;
	ret = ky_bpf_begin(&opening, err);
	if (!ret) {
		counters->skeleton = counters_bpf__open_opts(&opening.options);
		ret = bpf_counters_configure_and_load(counters, &opening, options, err);
	}
	ky_bpf_end(&opening);
	return ret;
}

void ky_bpf_counters_unload(struct ky_bpf_counters *counters)
{
	ky_bpf_regions_unmap(&counters->regions);
	counters_bpf__destroy(counters->skeleton);
	*counters = (struct ky_bpf_counters){0};
}

int ky_bpf_counters_set(struct ky_bpf_counters *counters, uint32_t cpu, size_t i, int fd,
			struct kymo_error *err)
{
	uint32_t index = cpu * (uint32_t)counters->skeleton->rodata->config.n + (uint32_t)i;
	int map = bpf_map__fd(counters->skeleton->maps.kymo_counters);
	int ret = bpf_map_update_elem(map, &index, &fd, BPF_ANY);

	return ret < 0 ? ky_bpf_refused(err, -ret, "cannot fill a BPF map") : KYMO_OK;
}

/* ---- a program for each kind of event --------------------------------------------------- */

/* Before Linux 6.10, a program at a raw tracepoint does not know the tracepoint. So each kind of event has a copy of it. */
int ky_bpf_counters_attach(struct ky_bpf_counters *counters, const char *tracepoint, uint32_t key,
			   struct kymo_error *err)
{
	int program = ky_bpf_load_copy(counters->skeleton->progs.kymo_read_counters,
				       BPF_PROG_TYPE_RAW_TRACEPOINT, KY_COUNTERS_ANY_KEY, key),
	    link;

	if (program < 0)
		return ky_bpf_refused(err, -program, "cannot load a BPF program");
	link = ky_bpf_attach_raw(program, tracepoint, err);
	close(program);
	return link;
}
