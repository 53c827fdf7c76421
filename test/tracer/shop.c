/* SPDX-License-Identifier: MIT */
/*
 * shop N [US]: N rounds of events of every kind of field, US microseconds apart. C11 and C++17:
 * test_tracer.py compiles it with each compiler.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <kymo/trace.h>
#ifdef __cplusplus
#include <string>
#endif

enum state { STATE_NEW, STATE_PAID = 3 };

KYMO_LABELS(order_state, KYMO_LABEL(STATE_NEW), KYMO_LABEL_AS("paid: 100 % {|}", STATE_PAID),
	    KYMO_LABEL_RANGE("odd", 5, 9));

struct order {
	int id;
	enum state state;
	unsigned long total_cents;
	double price;
	float rate;
	const char *customer_name;
	unsigned short port; /* network order */
	short items[4];
	bool is_gift;
};

/* In an inline function: its site must not clash with those of ordinary ones. */
static inline void in_header(unsigned char byte)
{
	KYMO_EVENT(shop, inlined, byte);
}

#ifdef __cplusplus
template <class T> void in_template(T value)
{
	KYMO_EVENT(shop, templated, value);
}

struct thing {
	enum class color : unsigned char { red = 7 };
	void method(color c)
	{
		auto lambda = [&](const std::string &s) {
			KYMO_EVENT(shop, cpp, s, c, s + "!", s.size());
		};

		lambda("string");
	}
};
#endif

static void round_of(const struct order *order, long n, const char *text)
{
	const double weights[2] = {0.5, -1};
	const void *pointer = (const void *)0x1234;
	const char *none = NULL;

	KYMO_SPAN(shop, checkout, n);
	KYMO_EVENT(shop, started);
	KYMO_EVENT(shop, order_placed, order->id, order->total_cents, order->customer_name);
	KYMO_EVENT(shop, word, n);
	KYMO_EVENT_LEVEL(KYMO_WARNING, shop, forms, KYMO_HEX(order->id), KYMO_NET(order->port),
			 KYMO_ENUM(order->state, order_state), KYMO_ARRAY(order->items, 4),
			 KYMO_AS(first, KYMO_SEQUENCE(order->items, n)), KYMO_TEXT(text, n),
			 KYMO_BLOB(text, 2), KYMO_AS(renamed, KYMO_OCT(n + 1)),
			 KYMO_SEQUENCE(weights, 2), n % 2 ? "odd, n" : "even");
	KYMO_EVENT(shop, plain, order->price, order->rate, text, pointer, order->is_gift, (char)n,
		   KYMO_FILTER_ONLY(n), (n), none, KYMO_NET_HEX(order->port));
	KYMO_COUNTER(shop, depth, n);
	in_header(200);
	kymo_printf("n is %ld%%", n);
	kymo_log(KYMO_ERROR, "plain");
	if (kymo_enabled(shop, asked))
		KYMO_EVENT(shop, asked, n);
#ifdef __cplusplus
	in_template(n);
	in_template((short)n);
	thing().method(thing::color::red);
#endif
}

int main(int argc, char **argv)
{
	struct order order = {0, STATE_NEW, 0, 0, 0, NULL, 0, {0}, false};
	int n = argc > 1 ? atoi(argv[1]) : 1, us = argc > 2 ? atoi(argv[2]) : 0;
	const char *off = kymo_trace_off();

	order.id = -7;
	order.state = STATE_PAID;
	order.total_cents = 1234567890123;
	order.price = 1.5;
	order.rate = 2.25f;
	order.customer_name = "Ada Lovelac";
	order.port = 0x5000;
	order.is_gift = true;
	for (int i = 0; i < 4; i++)
		order.items[i] = (short)(-i);
	if (off)
		fprintf(stderr, "off: %s\n", off);
	for (int i = 0; i < n; i++) {
		round_of(&order, 3, "hello");
		if (us)
			usleep((useconds_t)us);
	}
	return 0;
}
