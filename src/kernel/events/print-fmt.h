/* SPDX-License-Identifier: MIT */
/*
 * What the last line of an event's format says, `print fmt: "bytes=%lx %s", REC->bytes,
 * __print_symbolic(REC->type, { 0, "HOLE" }, ...)`: how the kernel's developers show each field.
 * From it come the base of numbers, and the names of their values.
 *
 * It is C, as the macros left it. What is not understood teaches nothing, and is no error.
 *
 * Threads: any, on different arenas and BTF.
 */
#ifndef KY_KERNEL_EVENTS_PRINT_FMT_H
#define KY_KERNEL_EVENTS_PRINT_FMT_H

#include "kernel/bpf/btf.h"
#include "kernel/tracefs/format.h"

/*
 * Before that line, what catalogue.c has put there: the kernel's texts by their address, `0xffffffff8281a585 : "rcu_preempt"`.
 * A field that is a const char * and shown as text is one of them, and gets them as names of its values.
 */
#define KY_FORMAT_TEXTS "\ntexts:\n"

/* Labels of one field, and of one event, which are kept; more are left out. */
#define KY_FORMAT_MAX_LABELS 1024

/*
 * Look for the line in @text, the whole format file, and fill in `base` and `labels` of the
 * fields of @format. @btf knows the constants; NULL: they are unknown.
 * 0 or KYMO_E_MEMORY.
 */
int ky_print_fmt_apply(struct ky_arena *arena, const char *text, size_t len, struct ky_btf *btf,
		       struct ky_format *format, struct kymo_error *err);

/*
 * The value of constant C expression @text: numbers, names (@btf, may be NULL), casts, and the
 * operators that stand in such lists. False: not an operator.
 */
bool ky_constant_value(const char *text, size_t len, struct ky_btf *btf, int64_t *value);

#endif
