/* SPDX-License-Identifier: MIT */
/* An event that begins with a digit. Says: 2sold */
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
	KYMO_EVENT(shop, sold2, n);
#else
	KYMO_EVENT(shop, 2sold, n);
#endif
}
