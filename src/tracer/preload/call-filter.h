/* SPDX-License-Identifier: MIT */
/*
 * Which functions are recorded: those that the patterns in the environment variable KYMO_CALLS choose, as kymo record --calls
 * sets it: "parse*,shop::*,!shop::log". '!' leaves out. Without the variable, or with "*", all of them.
 *
 * Names are those of the symbol tables of the program and of the libraries that it has at its start; C++ and Rust names also
 * have their form in the source, without parameters.
 *
 * Threads: any. Nothing allocates or locks after ky_call_filter_init().
 */
#ifndef KY_TRACER_PRELOAD_CALL_FILTER_H
#define KY_TRACER_PRELOAD_CALL_FILTER_H

#include <stdbool.h>
#include <stdint.h>

/* Before the first function is asked for; again does nothing. */
void ky_call_filter_init(void);
/* Is the function with the code at @address chosen? */
bool ky_call_filter_chooses(uintptr_t address);

/* How a function that the linker calls @mangled is called in the source, in @name; @mangled itself where that is not known. */
const char *ky_call_filter_name(const char *mangled, char *name, uint32_t bytes);

#endif
