/* SPDX-License-Identifier: MIT */
/*
 * A file of a kernel module: it is not linked, so each of its sections begins at 0, and elfutils puts them one behind the other. The
 * kernel puts the sections of code together, in the file's order, and forgets those of the module's start.
 * Threads: any.
 */
#ifndef KY_SYMBOLS_MAKE_KDI_MODULE_H
#define KY_SYMBOLS_MAKE_KDI_MODULE_H

#include "symbols/kdi/kdi-info.h"
#include "symbols/object/object.h"

/* Is @object such a file? */
bool ky_kdi_is_module(const struct ky_object *object);
/* Leave out the functions that the kernel forgets. 0 or KYMO_E_MEMORY. */
int ky_kdi_module_keep(struct ky_kdi_info *info, const struct ky_object *object);
/* Functions, lines and inlined functions count from the module's code, as the kernel has it. 0 or KYMO_E_MEMORY. */
int ky_kdi_module_move(struct ky_kdi_info *info, const struct ky_object *object);

#endif
