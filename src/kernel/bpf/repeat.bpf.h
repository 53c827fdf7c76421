/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Loops. The verifier goes through the body of a plain one as often as it may be repeated; where the kernel has
 * bpf_loop() (Linux 5.17), only once. So programs that loop are there twice, and the loader chooses.
 */
#ifndef KY_KERNEL_BPF_REPEAT_BPF_H
#define KY_KERNEL_BPF_REPEAT_BPF_H

#include "kernel/bpf/kernel.bpf.h"

/* bool @step(@type *, uint64_t i) can be repeated. */
#define REPEATABLE(step, type)                          \
	static long step##_again(uint64_t i, void *arg) \
	{                                               \
		return !step(*(type **)arg, i);         \
	}

/* @step(@arg, 0), @step(@arg, 1) ... while it returns true, but @n times. @has_loop is a constant. */
#define REPEAT(has_loop, n, step, arg)                                                         \
	do {                                                                                   \
		if (has_loop) {                                                                \
			bpf_loop(n, step##_again, &(arg), 0);                                  \
		} else {                                                                       \
			_Pragma("clang loop unroll(disable)") for (uint64_t i_ = 0; i_ < (n);  \
								   i_++) if (!step(arg,        \
										   i_)) break; \
		}                                                                              \
	} while (0)

#endif
