/* SPDX-License-Identifier: MIT */
/* A provider with a dash. Says: my - shop */
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
	KYMO_EVENT(my_shop, sold, n);
#else
	KYMO_EVENT(my - shop, sold, n);
#endif
}
