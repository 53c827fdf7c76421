/* SPDX-License-Identifier: MIT */
/* A build without BPF. */
#include "kernel/bpf/absent.h"
#include "latency/layers/latency-internal.h"

int ky_latency_open(const struct ky_latency_options *options, struct ky_latency **latency,
		    struct kymo_error *err)
{
	(void)options;
	*latency = NULL;
	return ky_bpf_absent(err, "measure latencies");
}

int ky_latency_add_tracker(struct ky_latency *latency, const struct ky_tracker_options *options,
			   struct kymo_error *err)
{
	(void)latency;
	(void)options;
	return ky_bpf_absent(err, "measure latencies");
}

int ky_latency_add_chain(struct ky_latency *latency, const struct ky_chain_options *options,
			 struct kymo_error *err)
{
	(void)latency;
	(void)options;
	return ky_bpf_absent(err, "measure latencies");
}

struct ky_chain *ky_latency_chain(const struct ky_latency *latency)
{
	(void)latency;
	return NULL;
}

int ky_chain_step(struct ky_chain *chain, ky_chain_tell tell, void *data, struct kymo_error *err)
{
	(void)chain;
	(void)tell;
	(void)data;
	return ky_bpf_absent(err, "measure latencies");
}

void ky_chain_state(const struct ky_chain *chain, struct ky_chain_state *state)
{
	(void)chain;
	*state = (struct ky_chain_state){0};
}

struct ky_tracker *ky_latency_tracker(const struct ky_latency *latency, size_t i)
{
	(void)latency;
	(void)i;
	return NULL;
}

const char *ky_tracker_name(const struct ky_tracker *tracker)
{
	return tracker ? "" : NULL;
}

const char *ky_tracker_key_name(const struct ky_tracker *tracker, size_t i)
{
	(void)tracker;
	(void)i;
	return NULL;
}

bool ky_tracker_key_is_signed(const struct ky_tracker *tracker, size_t i)
{
	(void)tracker;
	(void)i;
	return false;
}

int ky_tracker_step(struct ky_tracker *tracker, ky_tracker_tell tell, void *data,
		    struct kymo_error *err)
{
	(void)tracker;
	(void)tell;
	(void)data;
	return ky_bpf_absent(err, "measure latencies");
}

void ky_tracker_state(const struct ky_tracker *tracker, struct ky_tracker_state *state)
{
	(void)tracker;
	*state = (struct ky_tracker_state){0};
}

void ky_latency_close(struct ky_latency *latency)
{
	(void)latency;
}

bool ky_latency_comm(const struct ky_latency *latency, uint32_t tgid,
		     char comm[KY_LATENCY_COMM_BYTES])
{
	(void)latency;
	(void)tgid;
	(void)comm;
	return false;
}

bool ky_latency_has_programs(const struct ky_latency *latency)
{
	(void)latency;
	return false;
}

int ky_latency_look(struct ky_latency *latency, struct kymo_error *err)
{
	(void)latency;
	return ky_bpf_absent(err, "measure latencies");
}

int ky_latency_read(struct ky_latency *latency, struct kymo_error *err)
{
	(void)latency;
	return ky_bpf_absent(err, "measure latencies");
}

struct ky_series *const *ky_latency_series(struct ky_latency *latency, size_t *n)
{
	(void)latency;
	*n = 0;
	return NULL;
}

uint64_t ky_latency_slot(const struct ky_latency *latency)
{
	(void)latency;
	return 0;
}

uint64_t ky_latency_window_ns(const struct ky_latency *latency, enum ky_past window)
{
	(void)latency;
	(void)window;
	return 0;
}

int ky_latency_members(struct ky_latency *latency, ky_latency_take_member take, void *data,
		       struct kymo_error *err)
{
	(void)latency;
	(void)take;
	(void)data;
	return ky_bpf_absent(err, "measure latencies");
}

void ky_latency_losses(struct ky_latency *latency, struct ky_latency_losses *losses)
{
	(void)latency;
	*losses = (struct ky_latency_losses){0};
}
