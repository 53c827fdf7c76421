/* SPDX-License-Identifier: MIT */
/* A counter is one number. Says: a counter has one value */
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
	KYMO_COUNTER(shop, queue, n);
#else
	KYMO_COUNTER(shop, queue, n, n);
#endif
}
