/* SPDX-License-Identifier: MIT */
/*
 * view-queries [-c] [-n QUERIES] [-r ROWS] [-w PIXELS] INDEX: times pictures from an index file of the state history.
 *
 * A picture is ROWS (200) rows of PIXELS (2000) pixels of a random range, from the whole trace down to a millionth of it; the rows
 * with most time between their first and last state come first, and again if there are fewer. -c: the kernel's cache has nothing
 * of the file when a picture begins. One line of JSON: milliseconds
 * of a picture at percentiles (wall clock, and CPU time), and the resident memory in KiB.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "analysis/history/history.h"

struct order {
	size_t n_queries, n_rows, n_pixels;
	bool cold;
	int fd;
	uint32_t *asked; /* the rows of a picture */
};

static double now_ms(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static struct ky_history *sorting;

static int longest_first(const void *left, const void *right)
{
	const struct ky_history_row *a = ky_history_row(sorting, *(const uint32_t *)left);
	const struct ky_history_row *b = ky_history_row(sorting, *(const uint32_t *)right);
	int64_t x = a->end_ns - a->begin_ns, y = b->end_ns - b->begin_ns;

	if ((a->kind == KY_ROW_CPU) != (b->kind == KY_ROW_CPU))
		return a->kind == KY_ROW_CPU ? -1 : 1;
	return x > y ? -1 : x < y;
}

/* Rows with states, CPUs first. Returns how many. */
static size_t choose_rows(struct ky_history *history, uint32_t *rows)
{
	size_t n = 0;

	for (uint32_t i = 0; i < ky_history_n_rows(history); i++) {
		const struct ky_history_row *row = ky_history_row(history, i);

		if (row->begin_ns != INT64_MIN && row->kind != KY_ROW_STREAM)
			rows[n++] = i;
	}
	sorting = history;
	qsort(rows, n, sizeof(*rows), longest_first);
	return n;
}

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void choose_range(const struct ky_history *history, uint64_t *random, size_t n_pixels,
			 int64_t *begin, int64_t *end)
{
	uint64_t all = (uint64_t)(ky_history_end_ns(history) - ky_history_begin_ns(history));
	uint64_t span = all >> next_random(random) % 21;

	if (span < n_pixels)
		span = n_pixels;
	*begin = ky_history_begin_ns(history);
	if (all > span)
		*begin += (int64_t)(next_random(random) % (all - span));
	*end = *begin + (int64_t)span;
}

static int picture(struct ky_history *history, const struct order *order, int64_t begin,
		   int64_t end, struct ky_history_pixel *pixels)
{
	struct kymo_error err;

	ky_history_expect(history, order->asked, order->n_rows, begin, end, order->n_pixels);
	if (ky_history_picture(history, order->asked, order->n_rows, begin, end, order->n_pixels,
			       pixels, &err) >= 0)
		return 0;
	fprintf(stderr, "view-queries: %s\n", err.message);
	return -1;
}

static int run(struct ky_history *history, struct order *order)
{
	uint32_t *rows = calloc(ky_history_n_rows(history) + 1, sizeof(*rows));
	struct ky_history_pixel *pixels = calloc(order->n_pixels * order->n_rows, sizeof(*pixels));
	double *times = calloc(order->n_queries, sizeof(*times));
	double *cpu_times = calloc(order->n_queries, sizeof(*cpu_times));
	uint64_t random = 88172645463325252;
	struct rusage usage;
	size_t n = rows && pixels && times && cpu_times ? choose_rows(history, rows) : 0,
	       last = order->n_queries - 1;
	int failed;

	order->asked = calloc(order->n_rows + 1, sizeof(*order->asked));
	failed = n && order->asked ? 0 : -1;
	for (size_t i = 0; i < order->n_rows && !failed; i++)
		order->asked[i] = rows[i % n];

	for (size_t i = 0; i < order->n_queries && !failed; i++) {
		int64_t begin, end;
		double ms, cpu_ms;

		choose_range(history, &random, order->n_pixels, &begin, &end);
		if (order->cold)
			(void)posix_fadvise(order->fd, 0, 0, POSIX_FADV_DONTNEED);
		ms = now_ms(CLOCK_MONOTONIC);
		cpu_ms = now_ms(CLOCK_PROCESS_CPUTIME_ID);
		failed = picture(history, order, begin, end, pixels);
		times[i] = now_ms(CLOCK_MONOTONIC) - ms;
		cpu_times[i] = now_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_ms;
	}
	if (!failed) {
		qsort(times, order->n_queries, sizeof(*times), compare);
		qsort(cpu_times, order->n_queries, sizeof(*cpu_times), compare);
		getrusage(RUSAGE_SELF, &usage);
		printf("{\"rows\": %zu, \"of\": %zu, \"pixels\": %zu, \"queries\": %zu, \"p50_ms\": %.3f, "
		       "\"p99_ms\": %.3f, \"max_ms\": %.3f, \"p99_cpu_ms\": %.3f, \"resident_kib\": %ld}\n",
		       order->n_rows, n, order->n_pixels, order->n_queries, times[last / 2],
		       times[last * 99 / 100], times[last], cpu_times[last * 99 / 100],
		       usage.ru_maxrss);
	}
	free(rows);
	free(order->asked);
	free(pixels);
	free(times);
	free(cpu_times);
	return failed;
}

int main(int argc, char **argv)
{
	struct order order = {.n_queries = 200, .n_rows = 200, .n_pixels = 2000};
	struct ky_history *history;
	struct kymo_error err;
	int option, fd, failed;

	while ((option = getopt(argc, argv, "cn:r:w:")) != -1) {
		if (option == 'n')
			order.n_queries = strtoul(optarg, NULL, 10);
		else if (option == 'r')
			order.n_rows = strtoul(optarg, NULL, 10);
		else if (option == 'w')
			order.n_pixels = strtoul(optarg, NULL, 10);
		else if (option == 'c')
			order.cold = true;
		else
			return 2;
	}
	fd = optind < argc ? open(argv[optind], O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || !order.n_queries || !order.n_pixels) {
		fputs("usage: view-queries [-c] [-n QUERIES] [-r ROWS] [-w PIXELS] INDEX\n",
		      stderr);
		return 2;
	}
	if (ky_history_open_fd(fd, NULL, false, &history, &err) < 0) {
		fprintf(stderr, "view-queries: %s\n", err.message);
		return 1;
	}
	order.fd = fd;
	failed = run(history, &order);
	ky_history_close(history);
	close(fd);
	return failed ? 1 : 0;
}
