/* SPDX-License-Identifier: MIT */
/* Spans are checked like events. Says: has a type that cannot be recorded */
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
	KYMO_SPAN(shop, sold, n);
#else
	KYMO_SPAN(shop, sold, point);
#endif
}
