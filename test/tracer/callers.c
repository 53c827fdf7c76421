/* SPDX-License-Identifier: MIT */
/*
 * Events of every form, each in a function of its own, under a chain of functions that have frame pointers:
 * main(), outer(), middle(), then the event's. What the functions return keeps calls from being tail calls.
 */
#include <string.h>

#include <kymo/trace.h>

#define NOINLINE __attribute__((noinline))

static volatile int one = 1;

static NOINLINE int by_number(void)
{
	KYMO_EVENT(callers, number, (unsigned long)one);
	return one;
}

static NOINLINE int by_numbers(void)
{
	KYMO_EVENT(callers, numbers, one, KYMO_AS(second, one + 1));
	return one;
}

static NOINLINE int by_text(void)
{
	const char *text = "a text";

	KYMO_EVENT(callers, text, text);
	return one;
}

static NOINLINE int by_large_text(void)
{
	char text[1000], other[1000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	memcpy(other, text, sizeof(other));
	KYMO_EVENT(callers, large_text, text, other);
	return one;
}

static NOINLINE int by_printf(void)
{
	kymo_printf("%d", one);
	return one;
}

static NOINLINE int by_span(void)
{
	KYMO_SPAN(callers, span, one);
	return one + one;
}

static int (*const chosen[])(void) = {by_number,     by_numbers, by_text,
				      by_large_text, by_printf,	 by_span};

static NOINLINE int middle(int i)
{
	return chosen[i]() + one;
}

static NOINLINE int outer(int i)
{
	return middle(i) + one;
}

int main(void)
{
	int sum = 0;

	for (int i = 0; i < (int)(sizeof(chosen) / sizeof(chosen[0])); i++)
		sum += outer(i);
	return sum == 0;
}
