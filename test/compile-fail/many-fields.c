/* SPDX-License-Identifier: MIT */
/* Eleven fields. Says: an event has at most 10 fields */
#include <stddef.h>

#include <kymo/trace.h>

struct point {
	int x, y;
};
void f(int n, struct point point, void *data);
void f(int n, struct point point, void *data)
{
	(void)n;
	(void)point;
	(void)data;
#ifdef GOOD
	KYMO_EVENT(shop, many, n, n, n, n, n, n, n, n, n, n);
#else
	KYMO_EVENT(shop, many, n, n, n, n, n, n, n, n, n, n, n);
#endif
}
