/* SPDX-License-Identifier: MIT */
/*
 * The state history: what is written is read again, at every moment and in pictures of any range; damaged files
 * are refused. test-history-oracle.c has real traces.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/history/history-writer.h"
#include "base/error.h"
#include "os/file.h"

#define BEGIN_NS    INT64_C(1700000000000000000)
#define N_INTERVALS 60000
#define N_PIXELS    500

static const struct ky_history_identity identity = {{1, 2, 3}, {4, 5, 6}};

static uint64_t random_state;

static uint64_t random_number(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state % below;
}

static int new_file(void)
{
	int fd = ky_file_open_unnamed("/tmp");

	assert_true(fd >= 0);
	return fd;
}

/* ---- made-up rows --------------------------------------------------------------------------- */

struct made {
	struct ky_history_interval *intervals;
	size_t n;
	struct ky_history_writer writer;
	struct ky_open_row *row, *stream;
	int fd;
};

/* Bursts of short intervals, and long ones between them; some times are unknown. */
static void make_intervals(struct made *made, size_t n)
{
	int64_t ns = BEGIN_NS;

	made->intervals = calloc(n, sizeof(*made->intervals));
	assert_non_null(made->intervals);
	random_state = 88172645463325252;
	for (size_t i = 0; i < n; i++) {
		bool burst = i / 700 % 3 != 0;
		struct ky_history_interval *interval = &made->intervals[made->n++];

		interval->begin_ns = ns;
		ns += 1 + (int64_t)random_number(burst ? 300 : 100000);
		interval->end_ns = ns;
		interval->state = ky_state(KY_STATE_SYSCALL, i % 5 ? i % 7 : random_number(2000));
		if (i && interval->state == interval[-1].state)
			interval->state = KY_STATE_USER;
		if (random_number(100) == 0)
			ns += 5000;
	}
}

static void begin_file(struct made *made)
{
	made->fd = new_file();
	assert_int_equal(ky_history_writer_init(&made->writer, made->fd, &identity), 0);
	assert_non_null(
		ky_history_writer_row(&made->writer, KY_ROW_MACHINE, KY_HISTORY_NO_ROW, 0, "m"));
	made->row = ky_history_writer_row(&made->writer, KY_ROW_THREAD, 0, 4711, "worker");
	made->stream = ky_history_writer_row(&made->writer, KY_ROW_STREAM, 0, 0, "channel0_0");
	assert_non_null(made->row);
	assert_non_null(made->stream);
	assert_true(ky_history_writer_name(&made->writer, "read") == 1);
	assert_true(ky_history_writer_name(&made->writer, "read") == 1);
	assert_true(ky_history_writer_name(&made->writer, "write") == 2);
}

static void add_intervals(struct made *made, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		const struct ky_history_interval *it = &made->intervals[i];

		assert_int_equal(ky_open_row_add(&made->writer, made->row, it->begin_ns, it->end_ns,
						 it->state),
				 0);
		assert_int_equal(ky_open_row_add(&made->writer, made->stream, it->begin_ns,
						 it->end_ns, ky_state(KY_STATE_EVENTS, 0)),
				 0);
	}
}

static void publish(struct made *made, size_t n, bool complete)
{
	const struct ky_history_facts facts = {BEGIN_NS, made->intervals[n - 1].end_ns, n};

	assert_int_equal(ky_history_writer_publish(&made->writer, &facts, complete), 0);
}

static void make_file(struct made *made, size_t n)
{
	*made = (struct made){.n = 0};
	make_intervals(made, n);
	begin_file(made);
	add_intervals(made, 0, n);
	publish(made, n, true);
}

static void free_made(struct made *made)
{
	ky_history_writer_fini(&made->writer);
	free(made->intervals);
	close(made->fd);
}

static struct ky_history *open_file(int fd, bool partial)
{
	struct ky_history *history;
	struct kymo_error err = {0};
	int status = ky_history_open_fd(fd, &identity, partial, &history, &err);

	if (status < 0)
		fail_msg("%s", err.message);
	return history;
}

/* ---- moments ----------------------------------------------------------------------------------- */

static void check_at(struct ky_history *history, uint32_t row, int64_t ns, int64_t begin_ns,
		     int64_t end_ns, uint64_t state)
{
	struct ky_history_interval found;
	struct kymo_error err;

	assert_int_equal(ky_history_at(history, row, ns, &found, &err), 0);
	assert_true(found.begin_ns == begin_ns && found.end_ns == end_ns && found.state == state);
}

static void every_moment_is_as_written(void **unused)
{
	struct made made;
	struct ky_history *history;
	int64_t last = INT64_MIN;

	(void)unused;
	make_file(&made, N_INTERVALS);
	history = open_file(made.fd, false);
	assert_true(ky_history_is_complete(history));
	assert_int_equal(ky_history_n_rows(history), 3);
	assert_string_equal(ky_history_name(history, 2), "write");
	assert_string_equal(ky_history_name(history, 99), "");
	assert_string_equal(ky_history_row(history, 1)->name, "worker");
	assert_int_equal(ky_history_row(history, 1)->parent, 0);
	assert_int_equal(ky_history_row(history, 1)->number, 4711);
	for (size_t i = 0; i < made.n; i++) {
		const struct ky_history_interval *it = &made.intervals[i];

		if (last != it->begin_ns)
			check_at(history, 1, it->begin_ns - 1, last, it->begin_ns, KY_STATE_NONE);
		check_at(history, 1, it->begin_ns, it->begin_ns, it->end_ns, it->state);
		check_at(history, 1, it->end_ns - 1, it->begin_ns, it->end_ns, it->state);
		last = it->end_ns;
	}
	check_at(history, 1, last, last, INT64_MAX, KY_STATE_NONE);
	check_at(history, 0, last, INT64_MIN, INT64_MAX, KY_STATE_NONE);
	ky_history_close(history);
	free_made(&made);
}

/* ---- pictures ----------------------------------------------------------------------------------- */

/* How long the row was in @state between the two times. */
static int64_t time_in(const struct made *made, size_t from, int64_t begin_ns, int64_t end_ns,
		       uint64_t state, int64_t *known)
{
	int64_t sum = 0;

	*known = 0;
	for (size_t i = from; i < made->n && made->intervals[i].begin_ns < end_ns; i++) {
		const struct ky_history_interval *it = &made->intervals[i];
		int64_t begin = it->begin_ns > begin_ns ? it->begin_ns : begin_ns;
		int64_t end = it->end_ns < end_ns ? it->end_ns : end_ns;

		if (end <= begin)
			continue;
		*known += end - begin;
		if (it->state == state)
			sum += end - begin;
	}
	if (state == KY_STATE_NONE)
		sum = end_ns - begin_ns - *known;
	return sum;
}

/* The first interval that ends after @ns. */
static size_t first_after(const struct made *made, int64_t ns)
{
	size_t low = 0, high = made->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (made->intervals[middle].end_ns <= ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The most time that any state has in the pixel. */
static int64_t most_time(const struct made *made, size_t from, int64_t begin_ns, int64_t end_ns)
{
	int64_t known, most = time_in(made, from, begin_ns, end_ns, KY_STATE_NONE, &known);

	for (size_t i = from; i < made->n && made->intervals[i].begin_ns < end_ns; i++) {
		int64_t ns =
			time_in(made, from, begin_ns, end_ns, made->intervals[i].state, &known);

		most = ns > most ? ns : most;
	}
	return most;
}

/* Returns in how many of the pixels the state is not the one with the most time. */
static size_t check_picture(struct made *made, struct ky_history *history, int64_t begin_ns,
			    int64_t span_ns)
{
	static struct ky_history_pixel pixels[N_PIXELS];
	struct kymo_error err;
	size_t wrong = 0;

	assert_int_equal(
		ky_history_pixels(history, 1, begin_ns, begin_ns + span_ns, N_PIXELS, pixels, &err),
		0);
	for (int64_t x = 0; x < N_PIXELS; x++) {
		int64_t from =
			begin_ns + span_ns / N_PIXELS * x + span_ns % N_PIXELS * x / N_PIXELS;
		int64_t to = begin_ns + span_ns / N_PIXELS * (x + 1) +
			     span_ns % N_PIXELS * (x + 1) / N_PIXELS;
		size_t first = first_after(made, from);
		int64_t known, ns = time_in(made, first, from, to, pixels[x].state, &known);

		wrong += ns < most_time(made, first, from, to);
		if (!pixels[x].more) /* nothing else is in it */
			assert_true(ns == to - from);
	}
	return wrong;
}

static void pictures_show_what_fills_most(void **unused)
{
	struct made made;
	struct ky_history *history;
	size_t wrong = 0;

	(void)unused;
	make_file(&made, N_INTERVALS);
	history = open_file(made.fd, false);
	/* So short a range is read to its intervals, also in the bursts. */
	for (int i = 0; i < 40; i++)
		assert_int_equal(check_picture(&made, history,
					       made.intervals[random_number(made.n)].begin_ns -
						       (int64_t)random_number(1000),
					       (int64_t)(N_PIXELS + random_number(800))),
				 0);
	/* In longer ones some pixels have several states that are nearly as long. */
	for (int64_t span = 100000; span < INT64_C(10000000); span *= 10) {
		for (int i = 0; i < 5; i++)
			wrong +=
				check_picture(&made, history,
					      made.intervals[random_number(made.n)].begin_ns, span);
	}
	assert_true(wrong < 10 * N_PIXELS / 5);
	ky_history_close(history);
	free_made(&made);
}

static void densities_add_up(void **unused)
{
	struct made made;
	struct ky_history *history;
	struct kymo_error err;
	double events[N_PIXELS], sum;

	(void)unused;
	make_file(&made, N_INTERVALS);
	history = open_file(made.fd, false);
	for (int i = 0; i < 50; i++) {
		size_t a = random_number(made.n - 2), b = a + 1 + random_number(made.n - a - 1);
		int64_t begin = made.intervals[a].begin_ns, end = made.intervals[b].begin_ns;
		double expected = (double)(b - a) * KY_HISTORY_EVENTS;

		if (end - begin < N_PIXELS)
			continue;
		assert_int_equal(ky_history_density(history, 2, begin, end, N_PIXELS, events, &err),
				 0);
		sum = 0;
		for (size_t x = 0; x < N_PIXELS; x++)
			sum += events[x];
		/* A cell at either end may lie across it. */
		assert_true(sum > expected * 0.97 - 1200 && sum < expected * 1.03 + 1200);
	}
	ky_history_close(history);
	free_made(&made);
}

/* ---- curves ------------------------------------------------------------------------------------ */

/* Row 1: a thread runs and waits in turn. Row 3: a counter with random values at the same times. */
static void make_curves(struct made *made, size_t n)
{
	struct ky_open_row *counter;

	*made = (struct made){.n = 0};
	make_intervals(made, n);
	begin_file(made);
	counter = ky_history_writer_row(&made->writer, KY_ROW_COUNTER, 0, 0, "value");
	assert_non_null(counter);
	for (size_t i = 0; i < n; i++) {
		struct ky_history_interval *it = &made->intervals[i];

		assert_int_equal(ky_open_row_add(&made->writer, made->row, it->begin_ns, it->end_ns,
						 i & 1 ? KY_STATE_USER : KY_STATE_WAIT_CPU),
				 0);
		it->state = ky_state(KY_STATE_VALUE, 100 + random_number(i % 900 + 1));
		assert_int_equal(ky_open_row_add(&made->writer, counter, it->begin_ns, it->end_ns,
						 it->state),
				 0);
	}
	publish(made, n, true);
}

/* What heights must be from @begin_ns to @end_ns: of the counter, and ->sum_ns of the thread. */
static struct ky_history_height expect_height(const struct made *made, int64_t begin_ns,
					      int64_t end_ns, double *active_ns)
{
	struct ky_history_height height = {.low = 1e9};

	*active_ns = 0;
	for (size_t i = first_after(made, begin_ns);
	     i < made->n && made->intervals[i].begin_ns < end_ns; i++) {
		const struct ky_history_interval *it = &made->intervals[i];
		int64_t begin = it->begin_ns > begin_ns ? it->begin_ns : begin_ns;
		int64_t end = it->end_ns < end_ns ? it->end_ns : end_ns;
		double value = (double)ky_state_value(it->state), ns = (double)(end - begin);

		height.low = value < height.low ? value : height.low;
		height.high = value > height.high ? value : height.high;
		height.sum_ns += value * ns;
		height.ns += ns;
		*active_ns += i & 1 ? ns : 0;
	}
	return height;
}

static bool is_near(double a, double b, double part)
{
	double most = a > b ? a : b;

	return (a > b ? a - b : b - a) <= most * part + 1e-6;
}

/* @part: how far sums may be from the right ones. */
static void check_curves(const struct made *made, struct ky_history *history, int64_t begin_ns,
			 int64_t end_ns, size_t n, double part)
{
	struct ky_history_height all = {.low = 1e9}, heights[N_PIXELS], expected;
	double active_ns = 0, expected_ns;
	struct kymo_error err;

	assert_int_equal(ky_history_heights(history, 1, begin_ns, end_ns, n, heights, &err), 0);
	for (size_t x = 0; x < n; x++)
		active_ns += heights[x].sum_ns;
	assert_int_equal(ky_history_heights(history, 3, begin_ns, end_ns, n, heights, &err), 0);
	for (size_t x = 0; x < n; x++) {
		all.sum_ns += heights[x].sum_ns;
		all.ns += heights[x].ns;
		if (heights[x].ns <= 0)
			continue;
		all.low = heights[x].low < all.low ? heights[x].low : all.low;
		all.high = heights[x].high > all.high ? heights[x].high : all.high;
	}
	expected = expect_height(made, begin_ns, end_ns, &expected_ns);
	assert_true(is_near(active_ns, expected_ns, part));
	assert_true(is_near(all.sum_ns, expected.sum_ns, part));
	assert_true(is_near(all.ns, expected.ns, part));
	assert_true(all.high == expected.high);
	assert_true(is_near(all.low, expected.low, part + 0.06));
}

static void curves_have_peaks_and_sums(void **unused)
{
	struct ky_history *history;
	struct made made;

	(void)unused;
	make_curves(&made, N_INTERVALS);
	history = open_file(made.fd, false);
	check_curves(&made, history, made.intervals[0].begin_ns, made.intervals[made.n - 1].end_ns,
		     N_PIXELS, 0.02);
	check_curves(&made, history, made.intervals[0].begin_ns, made.intervals[made.n - 1].end_ns,
		     1, 0.02);
	/* Read to the intervals, it is exact. */
	for (int i = 0; i < 200; i++) {
		int64_t ns = made.intervals[random_number(made.n)].begin_ns;

		check_curves(&made, history, ns, ns + N_PIXELS + (int64_t)random_number(800),
			     N_PIXELS, 1e-6);
	}
	ky_history_close(history);
	free_made(&made);
}

static void ranges_without_time_are_refused(void **unused)
{
	struct ky_history_pixel pixels[4];
	struct ky_history *history;
	struct kymo_error err;
	struct made made;

	(void)unused;
	make_file(&made, 10);
	history = open_file(made.fd, false);
	assert_int_equal(ky_history_pixels(history, 1, BEGIN_NS, BEGIN_NS, 4, pixels, &err),
			 KYMO_E_INVALID);
	assert_int_equal(ky_history_pixels(history, 1, BEGIN_NS, BEGIN_NS + 3, 4, pixels, &err),
			 KYMO_E_INVALID);
	assert_int_equal(ky_history_pixels(history, 9, BEGIN_NS, BEGIN_NS + 9, 4, pixels, &err),
			 KYMO_E_INVALID);
	assert_int_equal(ky_history_pixels(history, 1, INT64_MIN, INT64_MAX, 4, pixels, &err), 0);
	ky_history_close(history);
	free_made(&made);
}

/* ---- readers beside the builder ----------------------------------------------------------------- */

static void readers_see_what_is_published(void **unused)
{
	struct ky_history *history;
	struct made made = {.n = 0};
	struct kymo_error err;

	(void)unused;
	make_intervals(&made, 5000);
	begin_file(&made);
	assert_int_equal(ky_history_open_fd(made.fd, &identity, true, &history, &err),
			 KYMO_E_AGAIN);
	add_intervals(&made, 0, 3);
	publish(&made, 3, false);
	assert_int_equal(ky_history_open_fd(made.fd, &identity, false, &history, &err),
			 KYMO_E_AGAIN);
	history = open_file(made.fd, true);
	for (size_t n = 4; n <= made.n; n += n / 3 + 1) {
		const struct ky_history_interval *last = &made.intervals[n - 1];

		assert_int_equal(ky_history_refresh(history, made.fd, &err), 0);
		add_intervals(&made, ky_history_n_events(history), n);
		publish(&made, n, false);
		/* What an open file had stays until then. */
		check_at(history, 1, BEGIN_NS, BEGIN_NS, made.intervals[0].end_ns,
			 made.intervals[0].state);
		assert_int_equal(ky_history_refresh(history, made.fd, &err), 1);
		assert_int_equal(ky_history_n_events(history), n);
		check_at(history, 1, last->begin_ns, last->begin_ns, last->end_ns, last->state);
		check_at(history, 1, last->end_ns, last->end_ns, INT64_MAX, KY_STATE_NONE);
	}
	ky_history_close(history);
	free_made(&made);
}

static void overlaps_are_left_out(void **unused)
{
	struct ky_history *history;
	struct made made = {.n = 0};
	const struct ky_history_facts facts = {0, 100, 1};

	(void)unused;
	begin_file(&made);
	assert_int_equal(ky_open_row_add(&made.writer, made.row, 10, 20, KY_STATE_USER), 0);
	assert_int_equal(ky_open_row_add(&made.writer, made.row, 15, 30, KY_STATE_WAIT_CPU), 0);
	assert_int_equal(ky_open_row_add(&made.writer, made.row, 5, 25, KY_STATE_USER), 0);
	assert_int_equal(ky_open_row_add(&made.writer, made.row, 30, 40, KY_STATE_WAIT_CPU), 0);
	assert_int_equal(ky_history_writer_publish(&made.writer, &facts, true), 0);
	history = open_file(made.fd, false);
	check_at(history, 1, 12, 10, 20, KY_STATE_USER);
	check_at(history, 1, 20, 20, 40, KY_STATE_WAIT_CPU);
	ky_history_close(history);
	free_made(&made);
}

/* ---- damaged and foreign files ------------------------------------------------------------------- */

/* Everything that can be asked. 0 or a negative status. */
static int ask_all(struct ky_history *history, uint64_t *sum)
{
	static struct ky_history_pixel pixels[64];
	static double events[64];
	int64_t begin = BEGIN_NS - 10, end = ky_history_end_ns(history) + 10;
	struct ky_history_interval found;
	struct kymo_error err;
	int status = 0;

	*sum = ky_history_n_rows(history);
	for (uint32_t row = 0; row < ky_history_n_rows(history) && status >= 0; row++) {
		for (int64_t ns = begin; ns < end && status >= 0; ns = found.end_ns) {
			status = ky_history_at(history, row, ns, &found, &err);
			*sum = *sum * 31 + found.state + (uint64_t)found.end_ns;
		}
		if (status >= 0)
			status = ky_history_pixels(history, row, begin, end, 64, pixels, &err);
		for (int x = 0; x < 64; x++)
			*sum = *sum * 31 + pixels[x].state + pixels[x].share;
		if (status >= 0)
			status = ky_history_density(history, row, begin, end, 64, events, &err);
		for (int x = 0; x < 64; x++)
			*sum = *sum * 31 + (uint64_t)events[x];
	}
	return status;
}

/* Either an error, or what the whole file says. */
static void check_damaged(int fd, uint64_t right)
{
	struct ky_history *history;
	struct kymo_error err;
	uint64_t sum;

	if (ky_history_open_fd(fd, &identity, true, &history, &err) < 0)
		return;
	if (ask_all(history, &sum) >= 0)
		assert_true(sum == right);
	ky_history_close(history);
}

static void damage_is_found(void **unused)
{
	struct ky_history *history;
	struct made made;
	struct stat st;
	uint64_t right;

	(void)unused;
	make_file(&made, 2500);
	history = open_file(made.fd, false);
	assert_int_equal(ask_all(history, &right), 0);
	ky_history_close(history);
	assert_int_equal(fstat(made.fd, &st), 0);
	for (off_t at = 0; at < st.st_size; at += at < 400 ? 1 : 13) {
		uint8_t byte, other;

		assert_int_equal(pread(made.fd, &byte, 1, at), 1);
		other = byte ^ (uint8_t)(1 << at % 8);
		assert_int_equal(pwrite(made.fd, &other, 1, at), 1);
		check_damaged(made.fd, right);
		assert_int_equal(pwrite(made.fd, &byte, 1, at), 1);
	}
	for (off_t size = st.st_size - 1; size > 0; size -= 1 + size / 50) {
		assert_int_equal(ftruncate(made.fd, size), 0);
		assert_true(ky_history_open_fd(made.fd, &identity, true, &history, NULL) < 0);
	}
	free_made(&made);
}

static void foreign_files_are_refused(void **unused)
{
	struct ky_history_identity other = identity;
	struct ky_history *history;
	struct kymo_error err;
	struct made made;

	(void)unused;
	make_file(&made, 10);
	other.content[15] = 1;
	assert_int_equal(ky_history_open_fd(made.fd, &other, false, &history, &err),
			 KYMO_E_NOT_FOUND);
	assert_int_equal(ky_history_open_fd(made.fd, NULL, false, &history, &err), 0);
	ky_history_close(history);
	free_made(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_moment_is_as_written),
		cmocka_unit_test(pictures_show_what_fills_most),
		cmocka_unit_test(densities_add_up),
		cmocka_unit_test(curves_have_peaks_and_sums),
		cmocka_unit_test(ranges_without_time_are_refused),
		cmocka_unit_test(readers_see_what_is_published),
		cmocka_unit_test(overlaps_are_left_out),
		cmocka_unit_test(damage_is_found),
		cmocka_unit_test(foreign_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
