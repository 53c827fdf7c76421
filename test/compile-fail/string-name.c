/* SPDX-License-Identifier: MIT */
/* A name in quotes. Says: _is_no_event_name_use_letters_digits_and_underscores */
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
	KYMO_EVENT(shop, sold, n);
#else
	KYMO_EVENT(shop, "sold", n);
#endif
}
