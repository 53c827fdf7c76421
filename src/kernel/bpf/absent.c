/* SPDX-License-Identifier: MIT */
/*
 * A build without clang, bpftool or libbpf has these functions in the place of the BPF programs and their loader: each
 * fails and says why.
 */
#include "kernel/bpf/absent.h"

#include "base/error.h"
#include "kernel/bpf/content.h"
#include "kernel/bpf/counters.h"
#include "kernel/bpf/pids.h"
#include "kernel/bpf/stacks.h"
#include "kernel/bpf/switches.h"

#define CONTENT	 "read the arguments and the content of system calls"
#define COUNTERS "read counters at events"

int ky_bpf_absent(struct kymo_error *err, const char *what)
{
	int code = ky_error_set(err, KYMO_E_UNSUPPORTED,
				"cannot %s: this build of Kymo has no BPF programs", what);

	ky_error_hint(err, "install clang, bpftool and libbpf-dev, and build Kymo again");
	return code;
}

int ky_bpf_content_load(struct ky_bpf_content *content,
			const struct ky_bpf_content_options *options, struct kymo_error *err)
{
	(void)options;
	*content = (struct ky_bpf_content){0};
	return ky_bpf_absent(err, CONTENT);
}

void ky_bpf_content_unload(struct ky_bpf_content *content)
{
	(void)content;
}

int ky_bpf_content_attach(struct ky_bpf_content *content, struct kymo_error *err)
{
	(void)content;
	return ky_bpf_absent(err, CONTENT);
}

void ky_bpf_content_detach(struct ky_bpf_content *content)
{
	(void)content;
}

int ky_bpf_counters_load(struct ky_bpf_counters *counters,
			 const struct ky_bpf_counters_options *options, struct kymo_error *err)
{
	(void)options;
	*counters = (struct ky_bpf_counters){0};
	return ky_bpf_absent(err, COUNTERS);
}

void ky_bpf_counters_unload(struct ky_bpf_counters *counters)
{
	(void)counters;
}

int ky_bpf_counters_set(struct ky_bpf_counters *counters, uint32_t cpu, size_t i, int fd,
			struct kymo_error *err)
{
	(void)counters, (void)cpu, (void)i, (void)fd;
	return ky_bpf_absent(err, COUNTERS);
}

int ky_bpf_counters_attach(struct ky_bpf_counters *counters, const char *tracepoint, uint32_t key,
			   struct kymo_error *err)
{
	(void)counters, (void)tracepoint, (void)key;
	return ky_bpf_absent(err, COUNTERS);
}

int ky_bpf_switches_load(struct ky_bpf_switches *switches, struct kymo_error *err)
{
	*switches = (struct ky_bpf_switches){0};
	return ky_bpf_absent(err, "see switches from idle");
}

void ky_bpf_switches_unload(struct ky_bpf_switches *switches)
{
	(void)switches;
}

int ky_bpf_switches_fd(const struct ky_bpf_switches *switches)
{
	(void)switches;
	return -1;
}

void ky_bpf_switches_heed(struct ky_bpf_switches *switches)
{
	(void)switches;
}

int ky_bpf_pids_load(struct ky_bpf_pids **pids, struct kymo_error *err)
{
	*pids = NULL;
	return ky_bpf_absent(err, "read the IDs that the kernel gives its threads");
}

void ky_bpf_pids_unload(struct ky_bpf_pids *pids)
{
	(void)pids;
}

int ky_bpf_pids_read(struct ky_bpf_pids *pids, struct kymo_error *err)
{
	(void)pids;
	return ky_bpf_absent(err, "read the IDs that the kernel gives its threads");
}

int ky_bpf_stacks_load(struct ky_bpf_stacks *stacks, bool has_events, bool has_counters,
		       struct kymo_error *err)
{
	(void)has_events, (void)has_counters;
	*stacks = (struct ky_bpf_stacks){0};
	return ky_bpf_absent(err, "record the call stacks of samples once");
}

void ky_bpf_stacks_unload(struct ky_bpf_stacks *stacks)
{
	(void)stacks;
}

int ky_bpf_stacks_ring(struct ky_bpf_stacks *stacks, uint32_t cpu, int fd, struct kymo_error *err)
{
	(void)stacks, (void)cpu, (void)fd;
	return ky_bpf_absent(err, "record the call stacks of samples once");
}

int ky_bpf_stacks_program(const struct ky_bpf_stacks *stacks, bool is_event, uint32_t source,
			  struct kymo_error *err)
{
	(void)stacks, (void)is_event, (void)source;
	return ky_bpf_absent(err, "record the call stacks of samples once");
}

void ky_bpf_stacks_turn(struct ky_bpf_stacks *stacks, bool is_on)
{
	(void)stacks, (void)is_on;
}
