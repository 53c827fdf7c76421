/* SPDX-License-Identifier: MIT */
/* Starts and ends: with libkymo-trace and one event, or -DPLAIN without. */
#ifndef PLAIN
#include <kymo/trace.h>
#endif

int main(int argc, char **argv)
{
	(void)argv;
#ifndef PLAIN
	KYMO_EVENT(bench, start, argc);
#endif
	return argc > 1;
}
