/* SPDX-License-Identifier: MIT */
/* libdw and libelf, loaded when they are needed. Their functions have their own names; a function that no file has called so far needs a line in libdw.c. */
#ifndef KY_SYMBOLS_LIBDW_H
#define KY_SYMBOLS_LIBDW_H

#include <kymo/error.h>

/* Loads the libraries, once. KYMO_E_UNSUPPORTED: one is missing; the hint names the package. Threads: any. */
int ky_libdw_load(struct kymo_error *err);

#endif
