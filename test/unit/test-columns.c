/* SPDX-License-Identifier: MIT */
/* Answers of the viewer in columns: what is written is read again, and damage is refused. */
#include "unit.h"

#include <string.h>

#include "view/answers/columns-read.h"

static const int64_t numbers[] = {
	0, 1, 127, 128, 16384, UINT32_MAX, ((int64_t)1 << 53) - 1, (int64_t)1 << 53, INT64_MAX};
static const int64_t steps[] = {
	0, -1, 5, -((int64_t)1 << 53) + 1, ((int64_t)1 << 53) - 1, INT64_MIN, INT64_MAX, 7};

#define N(ARRAY) (sizeof(ARRAY) / sizeof(*(ARRAY)))

static void write_answer(struct ky_strbuf *out)
{
	struct ky_view_column u = KY_VIEW_COLUMN("u", KY_VIEW_NUMBERS);
	struct ky_view_column d = KY_VIEW_COLUMN("d", KY_VIEW_STEPS);
	struct ky_view_column t = KY_VIEW_COLUMN("t", KY_VIEW_TIMES);
	struct ky_view_column f = KY_VIEW_COLUMN("f", KY_VIEW_REALS);
	struct ky_view_column r = KY_VIEW_COLUMN("r", KY_VIEW_DOUBLES);
	struct ky_view_column lost = KY_VIEW_COLUMN("lost", KY_VIEW_NUMBERS);
	struct ky_view_names names;
	struct ky_view_runs runs;
	struct ky_strbuf head = KY_STRBUF_INIT;

	ky_view_names_init(&names, "names", "name");
	ky_view_runs_init(&runs, "code", "extent");
	for (size_t i = 0; i < N(numbers); i++)
		ky_view_add_number(&u, (uint64_t)numbers[i]);
	for (size_t i = 0; i < N(steps); i++) {
		ky_view_add_step(&d, steps[i]);
		ky_view_add_step(&t, steps[i]);
		ky_view_add_real(&f, (double)steps[i]);
		ky_view_add_real(&r, (double)steps[i] / 3);
	}
	ky_view_add_name(&names, "a");
	ky_view_add_name(&names, "");
	ky_view_add_name(&names, "a");
	ky_view_add_run(&runs, 2, 3, 0);
	ky_view_add_run(&runs, 3, 7, 0);
	ky_view_add_run(&runs, 8, 10, 1);
	for (unsigned int i = 1; i <= 3; i++)
		ky_view_add_number(&lost, i);
	ky_strbuf_adds(&head, "{\"count\": 10}");
	ky_view_begin_columns(out);
	ky_view_put_column(out, &u);
	ky_view_put_column(out, &d);
	ky_view_put_head(out, &head);
	ky_view_put_column(out, &t);
	ky_view_put_column(out, &f);
	ky_view_put_column(out, &r);
	ky_view_put_names(out, &names);
	ky_view_put_runs(out, &runs);
	ky_view_put_column(out, &lost);
	ky_view_end_columns(out);
	ky_strbuf_fini(&head);
	assert_false(ky_strbuf_failed(out));
}

static int64_t within(int64_t number)
{
	const int64_t most = ((int64_t)1 << 53) - 1;

	return number > most ? most : number < -most ? -most : number;
}

static void test_all_types(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_view_columns columns;
	const struct ky_view_values *u, *d, *t, *f, *r, *names, *name;
	static const double lost[10] = {0, 0, 1, 2, 2, 2, 2, 0, 3, 3};
	double pixels[10];
	struct ky_arena arena;

	ky_arena_init(&arena);
	write_answer(&out);
	assert_int_equal(ky_view_read_columns(out.data, out.len, &arena, &columns, NULL), KYMO_OK);
	u = ky_view_find_column(&columns, "u", KY_VIEW_NUMBERS);
	d = ky_view_find_column(&columns, "d", KY_VIEW_STEPS);
	t = ky_view_find_column(&columns, "t", KY_VIEW_TIMES);
	f = ky_view_find_column(&columns, "f", KY_VIEW_REALS);
	r = ky_view_find_column(&columns, "r", KY_VIEW_DOUBLES);
	names = ky_view_find_column(&columns, "names", KY_VIEW_TEXTS);
	name = ky_view_find_column(&columns, "name", KY_VIEW_NUMBERS);
	assert_true(u && d && t && f && r && names && name);
	assert_int_equal(u->n, N(numbers));
	for (size_t i = 0; i < u->n; i++)
		assert_int_equal(u->numbers[i], within(numbers[i]));
	for (size_t i = 0; i < N(steps); i++) {
		assert_int_equal(d->numbers[i], within(steps[i]));
		assert_int_equal(t->numbers[i], steps[i]);
		assert_true(f->reals[i] == (double)steps[i]); /* 64 bits, as some need them */
		assert_true(r->reals[i] == (double)steps[i] / 3);
	}
	assert_int_equal(names->n, 2);
	assert_string_equal(names->texts[0].data, "a");
	assert_string_equal(names->texts[1].data, "");
	assert_true(name->numbers[0] == 1 && name->numbers[1] == 2 && name->numbers[2] == 1);
	assert_true(ky_view_fill_runs(&columns, "lost", pixels, 10));
	assert_memory_equal(pixels, lost, sizeof(lost));
	assert_false(ky_view_fill_runs(&columns, "lost", pixels, 9));
	assert_false(ky_view_fill_runs(&columns, "u", pixels, 10));
	assert_int_equal(ky_view_head(&columns, "count")->integer.u, 10);
	assert_null(ky_view_find_column(&columns, "u", KY_VIEW_TEXTS));
	ky_strbuf_fini(&out);
	ky_arena_fini(&arena);
}

static void test_damage(void **state)
{
	struct ky_strbuf out = KY_STRBUF_INIT;
	struct ky_view_columns columns;
	struct ky_arena arena;
	uint32_t random = 1;

	write_answer(&out);
	for (size_t len = 0; len < out.len; len++) {
		ky_arena_init(&arena);
		assert_int_equal(ky_view_read_columns(out.data, len, &arena, &columns, NULL),
				 KYMO_E_FORMAT);
		ky_arena_fini(&arena);
	}
	for (size_t i = 0; i < 20000; i++) {
		char *byte = &out.data[(random = random * 1664525 + 1013904223) % out.len];
		char before = *byte;

		*byte = (char)(random >> 24);
		ky_arena_init(&arena);
		(void)ky_view_read_columns(out.data, out.len, &arena, &columns, NULL);
		ky_arena_fini(&arena);
		*byte = before;
	}
	ky_strbuf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_types),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
