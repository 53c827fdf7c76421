/* SPDX-License-Identifier: MIT */
/*
 * The kernel's own type information, /sys/kernel/btf/vmlinux: what the constants are worth that
 * the formats of events mention by name (HRTIMER_MODE_ABS).
 *
 * It is read when the first name is asked for: most recordings never need it. A kernel without it,
 * or one whose BTF contradicts itself, knows no names.
 *
 * Threads: one at a time per struct.
 */
#ifndef KY_KERNEL_BPF_BTF_H
#define KY_KERNEL_BPF_BTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/strbuf.h"

struct ky_btf {
	const char *path; /* borrowed */
	bool is_read;
	struct ky_strbuf data;
	struct ky_arena arena;
	struct ky_names constants;
};

/* @path must outlive it; NULL: this kernel's. */
void ky_btf_init(struct ky_btf *btf, const char *path);
void ky_btf_fini(struct ky_btf *btf);

/*
 * The value of enumeration constant @name. False: none exists, there are several of that name
 * with different values, or memory ran out.
 */
bool ky_btf_constant(struct ky_btf *btf, const char *name, size_t len, int64_t *value);

/* Append the constants that were asked for, a line "constant NAME VALUE" each. */
void ky_btf_asked(const struct ky_btf *btf, struct ky_strbuf *text);
/*
 * What @text, such lines and no others, says is all there is: another kernel's constants. False: a line makes no
 * sense, or memory ran out.
 */
bool ky_btf_know(struct ky_btf *btf, const char *text);

#endif
