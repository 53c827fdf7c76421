/* SPDX-License-Identifier: MIT */
/* Compressed pieces of files whose unpacked size the file tells. The libraries are loaded with the first piece. Threads: any. */
#ifndef KY_IMPORT_UNPACK_H
#define KY_IMPORT_UNPACK_H

#include <stddef.h>
#include <stdint.h>

#include <kymo/error.h>

enum ky_unpack_kind {
	KY_UNPACK_NONE,
	KY_UNPACK_ZSTD,
	KY_UNPACK_ZLIB,
	KY_UNPACK_UNKNOWN,
};

/* Unpacks @from to @to, whose @to_bytes it must fill. KYMO_E_FORMAT, KYMO_E_UNSUPPORTED (the library is missing). */
int ky_unpack(enum ky_unpack_kind kind, const uint8_t *from, size_t from_bytes, uint8_t *to,
	      size_t to_bytes, struct kymo_error *err);

#endif
