/* SPDX-License-Identifier: MIT */
/*
 * shop [ORDERS]: a program with events of its own, for 'kymo record --user'. Every kind of
 * instrumentation once; docs/tracing.md explains it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <kymo/trace.h>

enum order_state { NEW, PAID, SENT };

KYMO_LABELS(order_states, KYMO_LABEL(NEW), KYMO_LABEL(PAID), KYMO_LABEL(SENT));

struct order {
	int id;
	enum order_state state;
	long total_cents;
	int items[3];
};

static void wait_us(long us)
{
	struct timespec time = {.tv_nsec = us * 1000};

	nanosleep(&time, NULL);
}

static void set_state(struct order *order, enum order_state state)
{
	order->state = state;
	KYMO_EVENT(shop, order_changed, order->id, KYMO_ENUM(order->state, order_states));
}

static void check_out(struct order *order, const char *customer_name)
{
	KYMO_SPAN(shop, checkout, order->id);

	KYMO_EVENT(shop, order_placed, order->id, order->total_cents, customer_name,
		   KYMO_ARRAY(order->items, 3));
	wait_us(200);
	set_state(order, PAID);
	if (order->total_cents > 5000)
		KYMO_EVENT_LEVEL(KYMO_WARNING, shop, large_order, order->id, order->total_cents);
}

int main(int argc, char **argv)
{
	static const char *const customers[] = {"Ada", "Grace", "Edsger", "Barbara"};
	int n = argc > 1 ? atoi(argv[1]) : 100;

	for (int i = 0; i < n; i++) {
		struct order order = {
			.id = i, .total_cents = 997 * (i % 7), .items = {i, i + 1, i + 2}};

		KYMO_COUNTER(shop, queue, n - i);
		check_out(&order, customers[i % 4]);
		set_state(&order, SENT);
	}
	kymo_printf("%d orders done", n);
	printf("%d orders\n", n);
	return 0;
}
