/* SPDX-License-Identifier: MIT */
/*
 * Where the calling convention of x86-64 (System V's) puts the parameters of a function.
 *
 * Threads: one at a time per file that the types are of.
 */
#ifndef KY_KERNEL_PROBE_PROBE_CONVENTION_H
#define KY_KERNEL_PROBE_PROBE_CONVENTION_H

#include "kernel/probe/probe-location.h"

#define KY_PROBE_ARGUMENT_REGISTERS 6
extern const char *const ky_probe_argument_registers[KY_PROBE_ARGUMENT_REGISTERS];

/* Begins as {0}; a hidden first argument, the address for the result, counts as an integer. */
struct ky_probe_convention {
	unsigned int integers, floats, stack; /* used up to now; of the stack, words */
	bool unknown; /* the places of a parameter and of all later ones are unknown */
};

/*
 * The next parameter, of @type: where it is goes to @place. @is_class: structs may be
 * objects that are passed by their address (C++). False: not known, or where the kernel cannot fetch it.
 */
bool ky_probe_pass(struct ky_probe_convention *convention, Dwarf_Die *type, bool is_class,
		   struct ky_probe_location *place);

#endif
