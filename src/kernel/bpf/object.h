/* SPDX-License-Identifier: MIT */
/*
 * What BPF objects have in common. An object is a skeleton (NAME.skel.h, which the build makes of NAME.bpf.c): its
 * programs and their maps.
 *
 *	struct ky_bpf_opening opening;
 *	ret = ky_bpf_begin(&opening, err);
 *	skel = NAME_bpf__open_opts(&opening.options);
 *	... constants (skel->rodata), sizes of maps, which programs ...
 *	ret = ky_bpf_load(&opening, skel ? skel->skeleton : NULL, err);
 *	ky_bpf_end(&opening);
 *
 * Only files that are built with the programs include this; what others call is in content.h, counters.h and pids.h.
 * Threads: any, but one at a time for each object.
 */
#ifndef KY_KERNEL_BPF_OBJECT_H
#define KY_KERNEL_BPF_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include <bpf/libbpf.h>

#include <kymo/error.h>

#include "kernel/bpf/regions.h"

struct ky_bpf_opening {
	struct bpf_object_open_opts options;
	char *log; /* the verifier's */
	int btf_fd;
	char btf_path[32];
};

/* 0 or KYMO_E_MEMORY, KYMO_E_IO. In any case ky_bpf_end() follows. */
int ky_bpf_begin(struct ky_bpf_opening *opening, struct kymo_error *err);
struct btf;
/* The types of @btf, which is freed, stand for the kernel's; NULL: memory was out. 0, KYMO_E_MEMORY, KYMO_E_IO: the kernel's are used. */
int ky_bpf_use_btf(struct ky_bpf_opening *opening, struct btf *btf, struct kymo_error *err);
/*
 * @skeleton: NULL: it could not be opened, errno says why. 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED (a kernel without
 * BPF, or whose verifier refuses a program: its last words are in the hint), KYMO_E_MEMORY or KYMO_E_IO.
 */
int ky_bpf_load(struct ky_bpf_opening *opening, struct bpf_object_skeleton *skeleton,
		struct kymo_error *err);
void ky_bpf_end(struct ky_bpf_opening *opening);

/*
 * Load a copy of @program, which libbpf has loaded, with @number in the place of @any, which it has once. Its descriptor, or a
 * negative errno.
 */
int ky_bpf_load_copy(const struct bpf_program *program, enum bpf_prog_type type, int32_t any,
		     uint32_t number);

/* Say that the kernel has refused @what with @errnum. Returns the status. */
int ky_bpf_refused(struct kymo_error *err, int errnum, const char *what);

/* Does the kernel tell where its structs have their members? Else programs must do without. */
bool ky_bpf_has_btf(void);
/* Does the kernel have @helper for programs at raw tracepoints? */
bool ky_bpf_has_helper(enum bpf_func_id helper);

/* How many CPUs there may be. */
uint32_t ky_bpf_possible_cpus(void);
/* How many values a key of a map by CPU has. 0, KYMO_E_UNSUPPORTED (libbpf is missing) or KYMO_E_IO. */
int ky_bpf_values_of_key(uint32_t *n, struct kymo_error *err);

/*
 * Give array @map, of an object that is not loaded yet, the regions that @regions says, and map them here. Where the
 * kernel has no such memory, or takes no values of that size, their data are halved, down to @least_bytes.
 * 0, KYMO_E_PERMISSION, KYMO_E_UNSUPPORTED, KYMO_E_MEMORY, KYMO_E_IO.
 */
int ky_bpf_regions_make(struct ky_bpf_regions *regions, struct bpf_map *map, uint64_t least_bytes,
			struct kymo_error *err);
void ky_bpf_regions_unmap(struct ky_bpf_regions *regions);

/*
 * Run program @prog_fd at raw tracepoint @name until the descriptor that is returned is closed.
 * KYMO_E_NOT_FOUND: there is no such tracepoint.
 */
int ky_bpf_attach_raw(int prog_fd, const char *name, struct kymo_error *err);

#endif
