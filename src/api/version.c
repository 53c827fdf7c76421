/* SPDX-License-Identifier: MIT */
#include <kymo/version.h>

const char *kymo_version(void)
{
	return KYMO_VERSION;
}

unsigned int kymo_version_number(void)
{
	return KYMO_VERSION_NUMBER;
}
