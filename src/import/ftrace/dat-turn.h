/* SPDX-License-Identifier: MIT */
/* Pages of a ring of a machine with the other byte order. Threads: any. */
#ifndef KY_IMPORT_DAT_TURN_H
#define KY_IMPORT_DAT_TURN_H

#include <stdint.h>

#include "kernel/tracefs/format.h"

/*
 * The page at @bytes, of @len, as this machine's kernel would have written it, at @out (of @len): all but what is in the records, which the
 * events' formats describe. @is_big: the other machine's numbers begin with the highest byte.
 */
void ky_dat_turn_page(const struct ky_page_layout *layout, bool is_big, const uint8_t *bytes,
		      uint32_t len, uint8_t *out);

#endif
