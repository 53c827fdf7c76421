/* SPDX-License-Identifier: MIT */
/* The BPF program that sees switches from the idle task: loaded, attached, its regions mapped. */
#ifndef KY_KERNEL_BPF_SWITCHES_H
#define KY_KERNEL_BPF_SWITCHES_H

#include <kymo/error.h>

#include "kernel/bpf/regions.h"
#include "kernel/bpf/switches-layout.h"

struct ring_buffer;
struct switches_bpf;

struct ky_bpf_switches {
	struct switches_bpf *skeleton;
	struct ky_bpf_regions regions; /* by CPU; all off */
	int link_fd;		       /* -1: not attached */
	struct ring_buffer *notices;   /* the program's, that the slots of a CPU are half full */
};

/* 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED, KYMO_E_MEMORY, KYMO_E_IO; unload is due in any case. */
int ky_bpf_switches_load(struct ky_bpf_switches *switches, struct kymo_error *err);
void ky_bpf_switches_unload(struct ky_bpf_switches *switches);

/* Readable when the program has left a notice; -1: none, since nothing is loaded. Owned by @switches. */
int ky_bpf_switches_fd(const struct ky_bpf_switches *switches);
/* Takes all notices. */
void ky_bpf_switches_heed(struct ky_bpf_switches *switches);

#endif
