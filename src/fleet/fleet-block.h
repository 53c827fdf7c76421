/* SPDX-License-Identifier: MIT */
/*
 * Columns of batches as bytes. Numbers are small differences - to the row before, to the begin of the interval, or to its length - as
 * varints, texts are numbers of a dictionary, and zstd packs both.
 *
 * Layout, before zstd: the flags; with NULLs a bit for each row; of texts their number, and length and bytes of each; the values that are not
 * NULL, or only the first one if all differences are equal. In front: a byte that says whether zstd packed it, and the size as a varint.
 */
#ifndef KY_FLEET_FLEET_BLOCK_H
#define KY_FLEET_FLEET_BLOCK_H

#include "fleet/fleet-batch.h"

/* Rows of a block, at most. */
#define KY_FLEET_BLOCK_ROWS ((uint64_t)1 << 20)

/* Appends column @i of @batch to @out. 0; KYMO_E_MEMORY; KYMO_E_UNSUPPORTED: libzstd is missing. */
int ky_fleet_block_encode(const struct ky_fleet_batch *batch, size_t i, struct ky_strbuf *out,
			  struct kymo_error *err);

/*
 * The column from its bytes: *type is KY_SQL_INTEGER, KY_SQL_REAL or KY_SQL_TEXT. @time, @end: those columns of the same rows, decoded before; NULL: this is one of them, or there are none. @vector is
 * emptied first. KYMO_E_FORMAT: the bytes are none of such a column.
 */
int ky_fleet_block_decode(const char *data, size_t len, uint64_t n_rows,
			  const struct ky_fleet_vector *time, const struct ky_fleet_vector *end,
			  struct ky_fleet_vector *vector, enum ky_sql_type *type,
			  struct kymo_error *err);

#endif
