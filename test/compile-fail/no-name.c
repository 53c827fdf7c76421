/* SPDX-License-Identifier: MIT */
/* A provider alone. Says: an event has a provider and a name */
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
	KYMO_EVENT(shop, sold);
#else
	KYMO_EVENT(shop);
#endif
}
