/* SPDX-License-Identifier: MIT */
/*
 * Probes that programs bring along (SystemTap's <sys/sdt.h>, "USDT"): a no-operation in the code, and a note
 * that says where it is, what it is called, and where its arguments are at that place.
 * Threads: one at a time per file.
 */
#ifndef KY_KERNEL_PROBE_PROBE_SDT_H
#define KY_KERNEL_PROBE_PROBE_SDT_H

#include <stdint.h>

#include <kymo/error.h>

#include "base/arena.h"
#include "base/vec.h"
#include "kernel/probe/probe-file.h"

struct ky_sdt_probe {
	const char *provider, *name,
		*arguments;	     /* arguments as in the note: "4@%edi -8@16(%rsp)" */
	uint64_t address, semaphore; /* as the file says them; 0: no semaphore */
};

KY_VEC_TYPE(ky_sdt_probes, struct ky_sdt_probe);

/* All of @file; texts are in @arena. What is damaged is left out. 0 or KYMO_E_MEMORY. */
int ky_sdt_read(const struct ky_probe_file *file, struct ky_arena *arena,
		struct ky_sdt_probes *probes, struct kymo_error *err);

/*
 * Append " arg1=%di:s32 arg2=..." as the kernel wants it. Returns how many arguments had to be left
 * out: floating-point numbers, and addresses that need more than one register. @base: the probe's address
 * minus its offset in the file, from which the kernel counts addresses of variables.
 */
int ky_sdt_fetch(const struct ky_probe_file *file, uint64_t base, const char *arguments,
		 struct ky_strbuf *fetch);

/* "(arg1, path=arg2:string)" -> @spec's arguments. 0, or KYMO_E_INVALID with what is wrong, KYMO_E_MEMORY. */
int ky_sdt_arguments_parse(const char *text, struct ky_probe_spec *spec, struct kymo_error *err);

/*
 * Append those of @fetched (what ky_sdt_fetch() made) that @spec wants, under its names and as its types. @probe: its
 * name. KYMO_E_NOT_FOUND: there is no such argument.
 */
int ky_sdt_arguments_pick(const struct ky_probe_spec *spec, const char *probe, const char *fetched,
			  struct ky_strbuf *fetch, struct kymo_error *err);

#endif
