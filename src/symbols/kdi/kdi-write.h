/* SPDX-License-Identifier: MIT */
/* Debug information as a file (kdi-format.h). Threads: any; one struct ky_kdi_info at a time. */
#ifndef KY_SYMBOLS_KDI_WRITE_H
#define KY_SYMBOLS_KDI_WRITE_H

#include <kymo/error.h>

#include "base/strbuf.h"
#include "symbols/kdi/kdi-info.h"

/* Appends the file's bytes to @out. Sorts the functions of @info and drops the second of two at one address. 0, KYMO_E_LIMIT or KYMO_E_MEMORY. */
int ky_kdi_write(struct ky_kdi_info *info, struct ky_strbuf *out, struct kymo_error *err);

#endif
