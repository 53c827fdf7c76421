/* SPDX-License-Identifier: MIT */
/* The functions of libzstd that archives and stores of fleets need. They are loaded with the first of these. */
#ifndef KY_OS_ZSTD_LIBRARY_H
#define KY_OS_ZSTD_LIBRARY_H

#include <zstd.h>
#include <zstd_errors.h>

#include <kymo/error.h>

#include "os/library.h"

#define KY_ZSTD_FUNCTIONS(X)      \
	X(ZSTD_CCtx_setParameter) \
	X(ZSTD_CStreamOutSize)    \
	X(ZSTD_DCtx_setParameter) \
	X(ZSTD_DStreamInSize)     \
	X(ZSTD_DStreamOutSize)    \
	X(ZSTD_compress)          \
	X(ZSTD_compressBound)     \
	X(ZSTD_decompress)        \
	X(ZSTD_compressStream2)   \
	X(ZSTD_createCStream)     \
	X(ZSTD_createDStream)     \
	X(ZSTD_decompressStream)  \
	X(ZSTD_freeCStream)       \
	X(ZSTD_freeDStream)       \
	X(ZSTD_getErrorCode)      \
	X(ZSTD_getErrorName)      \
	X(ZSTD_isError)

KY_ZSTD_FUNCTIONS(KY_LIBRARY_TYPE)

struct ky_zstd_library {
	KY_ZSTD_FUNCTIONS(KY_LIBRARY_MEMBER)
};

/* The functions; NULL before ky_zstd_library_load(). */
extern struct ky_zstd_library ky_zstd;

/* KYMO_E_UNSUPPORTED: the library is missing. Any thread. */
int ky_zstd_library_load(struct kymo_error *err);

#endif
