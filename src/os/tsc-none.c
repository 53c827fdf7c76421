/* SPDX-License-Identifier: MIT */
#include "os/tsc.h"

uint64_t ky_tsc_read(void)
{
	return 0;
}

const char *ky_tsc_unsound(void)
{
	return "Kymo supports none on this architecture";
}
