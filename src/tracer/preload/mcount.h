/* SPDX-License-Identifier: MIT */
/*
 * libkymo-mcount: calls of functions that compilers instrument with a call at their begin: -pg (mcount), -pg -mfentry
 * (__fentry__), and -fpatchable-function-entry=5 and more, whose NOPs the library replaces by calls when it is loaded.
 *
 *	mcount-x86-64.S		the hooks: they save the registers of a call and of a return
 *	mcount.c		entries and returns
 *	mcount-unwind.c		exceptions, and threads that end
 *	mcount-patch.c		NOPs
 *
 * Returns. The entry hook replaces the return address in the stack by that of ky_mcount_return, and keeps the original one in a list of
 * the thread, the outermost call first. The hook there looks for the call by the place of its return address.
 *
 * What may go wrong, and what happens then: the original address must never be lost. So a call leaves the list only when it returns, or
 * with its original address back in its place.
 *	longjmp()		calls whose places are below the stack's end are over: the next entry or return finds them
 *	exceptions		before the unwinder reads the stack, all original addresses are back in their places; the catch, or the
 *				next entry, hooks those again that are still there
 *	other stacks		(signals, coroutines) calls are found wherever they are in the list
 *	signals in a hook	the list is changed by single stores, in an order that suits a signal handler in between
 *	tail calls		two calls have one place; the later one's original address is that of ky_mcount_return
 */
#ifndef KY_TRACER_PRELOAD_MCOUNT_H
#define KY_TRACER_PRELOAD_MCOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* mcount-x86-64.S */
void ky_mcount_return(void);
/* Called as by a function's first instructions. */
void ky_mcount_patched(void);
/* How the hooks save vector registers: KY_MCOUNT_SSE, ... */
extern uint32_t ky_mcount_vectors;

#define KY_MCOUNT_SSE 0 /* 128 bits: the CPU has no more */
#define KY_MCOUNT_ASK 1 /* as many as the CPU says that are in use */
#define KY_MCOUNT_AVX 2 /* 256 bits: it cannot say */

/* mcount.c; called by the hooks. */
void ky_mcount_enter(uintptr_t *place, uintptr_t function);
uintptr_t ky_mcount_leave(uintptr_t *place);

/* All original addresses of the thread are back in their places. */
void ky_mcount_unhook(void);
/* The stack ends at @place now: calls below are over, and the others are hooked again. */
void ky_mcount_rehook(const uintptr_t *place);

/* mcount-patch.c: replaces the NOPs of the chosen functions of all objects. */
void ky_mcount_patch(void);

#endif
