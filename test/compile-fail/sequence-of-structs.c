/* SPDX-License-Identifier: MIT */
/* Elements are numbers. Says: has a type that cannot be recorded */
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
	KYMO_EVENT(shop, sold, KYMO_SEQUENCE(&point.x, n));
#else
	KYMO_EVENT(shop, sold, KYMO_SEQUENCE(&point, n));
#endif
}
