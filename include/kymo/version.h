/* SPDX-License-Identifier: MIT */
/* The version of Kymo: of the headers that a program was compiled with, and of the library that it runs with. */
#ifndef KYMO_VERSION_H
#define KYMO_VERSION_H

#include <kymo/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KYMO_VERSION	   "0.1.0"
#define KYMO_VERSION_MAJOR 0
#define KYMO_VERSION_MINOR 1
#define KYMO_VERSION_PATCH 0
/* One number, for comparisons: KYMO_VERSION_NUMBER >= KYMO_VERSION_OF(0, 2, 0). */
#define KYMO_VERSION_OF(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define KYMO_VERSION_NUMBER \
	KYMO_VERSION_OF(KYMO_VERSION_MAJOR, KYMO_VERSION_MINOR, KYMO_VERSION_PATCH)

/* The library's version, "0.1.0". Static storage. Threads: any. */
KYMO_API const char *kymo_version(void);
/* The same as KYMO_VERSION_NUMBER. Threads: any. */
KYMO_API unsigned int kymo_version_number(void);

#ifdef __cplusplus
}
#endif

#endif
