/* SPDX-License-Identifier: MIT */
#include "latency/chain/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/error.h"
#include "kernel/bpf/object.h"
#include "kernel/process/pid-view.h"
#include "latency/bpf/chain.skel.h"
#include "latency/bpf/bpf-program.h"
#include "latency/bpf/ring-turn.h"

struct ky_chain {
	struct chain_bpf *skeleton;
	struct ring_buffer *ring;
	/* During a step. */
	struct ky_ring_turn turn;
	ky_chain_tell tell;
	void *data;
};

static int chain_take(void *data, void *record, size_t size)
{
	struct ky_chain *chain = data;

	if (size >= sizeof(struct ky_chain_report))
		chain->tell(chain->data, record);
	return ky_ring_turn_next(&chain->turn);
}

/* A name, or its beginning and '*'. */
static int chain_set_comm(struct ky_chain_config *config, const char *comm, struct kymo_error *err)
{
	size_t len = strlen(comm), wild = strcspn(comm, "*");

	if (wild < len && wild + 1 != len)
		return ky_error_set(err, KYMO_E_INVALID, "a name can have '*' only at its end");
	if (wild >= KY_LATENCY_COMM_BYTES)
		return ky_error_set(err, KYMO_E_INVALID,
				    "the kernel's names of threads have at most 15 bytes");
	memcpy(config->comm, comm, wild);
	config->comm_bytes = (uint32_t)(wild < len ? wild : len + 1);
	return KYMO_OK;
}

static int chain_configure(struct ky_chain *chain, const struct ky_chain_options *options,
			   struct kymo_error *err)
{
	struct ky_chain_config *config = &chain->skeleton->rodata->config;
	struct btf *btf = btf__load_vmlinux_btf();
	int ret;

	config->has_prev_state = ky_latency_arguments(btf, "sched_switch") >= 5;
	btf__free(btf);
	config->tid = options->tid;
	config->pid = options->pid;
	config->own_pid = ky_pid_this_process();
	config->over_ns = options->over_ns;
	config->over_worst = options->over_worst;
	ret = ky_latency_kernel_id(&config->tid, err);
	if (ret >= 0)
		ret = ky_latency_kernel_id(&config->pid, err);
	return ret >= 0 && options->comm ? chain_set_comm(config, options->comm, err) : ret;
}

static int chain_load(struct ky_chain *chain, const struct ky_chain_options *options,
		      struct kymo_error *err)
{
	struct ky_bpf_opening opening;
	int ret = ky_bpf_begin(&opening, err);

	if (!ret) {
		chain->skeleton = chain_bpf__open_opts(&opening.options);
		ret = chain->skeleton ? chain_configure(chain, options, err) : KYMO_OK;
	}
	if (!ret)
		ret = ky_bpf_load(&opening, chain->skeleton ? chain->skeleton->skeleton : NULL,
				  err);
	ky_bpf_end(&opening);
	return ret;
}

static int chain_start(struct ky_chain *chain, struct kymo_error *err)
{
	int ret = ky_latency_seed(chain->skeleton->progs.kymo_seed, err);

	if (ret < 0)
		return ret;
	bpf_program__set_autoattach(chain->skeleton->progs.kymo_seed, false);
	chain->ring = ring_buffer__new(bpf_map__fd(chain->skeleton->maps.kymo_reports), chain_take,
				       chain, NULL);
	if (!chain->ring)
		return ky_bpf_refused(err, errno, "cannot map a BPF ring buffer");
	ret = chain_bpf__attach(chain->skeleton);
	return ret < 0 ? ky_bpf_refused(err, -ret, "cannot attach a BPF program") : KYMO_OK;
}

int ky_chain_open(const struct ky_chain_options *options, struct ky_chain **result,
		  struct kymo_error *err)
{
	struct ky_chain *chain = calloc(1, sizeof(*chain));
	int ret = chain ? ky_latency_need_btf(err) : ky_error_nomem(err);

	*result = NULL;
	if (!ret)
		ret = chain_load(chain, options, err);
	if (!ret)
		ret = chain_start(chain, err);
	if (ret < 0)
		ky_chain_close(chain);
	else
		*result = chain;
	return ret;
}

void ky_chain_close(struct ky_chain *chain)
{
	if (!chain)
		return;
	ring_buffer__free(chain->ring);
	chain_bpf__destroy(chain->skeleton);
	free(chain);
}

int ky_chain_step(struct ky_chain *chain, ky_chain_tell tell, void *data, struct kymo_error *err)
{
	chain->tell = tell;
	chain->data = data;
	return ky_ring_turn_read(&chain->turn, chain->ring, err);
}

void ky_chain_turn(struct ky_chain *chain, uint64_t *period)
{
	struct ky_chain_shared *shared = &chain->skeleton->bss->shared;

	*period = shared->period;
	__atomic_store_n(&shared->period, *period + 1, __ATOMIC_RELEASE);
}

int ky_chain_read(struct ky_chain *chain, uint32_t part, struct ky_latency_cell *cells,
		  struct kymo_error *err)
{
	return bpf_map_lookup_elem(bpf_map__fd(chain->skeleton->maps.kymo_cell), &part, cells)
		       ? ky_error_errno(err, errno, "cannot read a BPF map")
		       : KYMO_OK;
}

void ky_chain_state(const struct ky_chain *chain, struct ky_chain_state *state)
{
	const struct ky_chain_shared *shared = &chain->skeleton->bss->shared;
	struct bpf_program *program;

	*state = (struct ky_chain_state){
		.dropped = __atomic_load_n(&shared->n_dropped, __ATOMIC_RELAXED),
		.lost = __atomic_load_n(&shared->n_lost, __ATOMIC_RELAXED),
		.worst_ns = __atomic_load_n(&shared->worst_ns, __ATOMIC_RELAXED)};
	bpf_object__for_each_program(program, chain->skeleton->obj) state->missed +=
		ky_latency_program_misses(program);
}
