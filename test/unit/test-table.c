/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <string.h>

#include "analysis/tables/table.h"

static const struct ky_column columns[] = {
	{"group", "Group", KY_CELL_PROCESS, "help", .group = true},
	{"name", "Name", KY_CELL_TEXT, "help"},
	{"count", "Count", KY_CELL_COUNT, "help"},
};

static const struct ky_table_def def = {"test", "Test", "help", columns, 3};

static void add(struct ky_table *table, int tid, const char *name, uint64_t count)
{
	struct ky_cell *row = ky_table_row(table);

	ky_cell_process(table, &row[0], tid, tid, "comm", NULL);
	ky_cell_text(table, &row[1], name);
	if (count)
		ky_cell_u64(&row[2], count);
}

static const char *names(const struct ky_table *table)
{
	static char text[64];

	text[0] = '\0';
	for (size_t i = 0; i < ky_table_n_rows(table); i++)
		strcat(text, ky_table_cells(table, i)[1].text);
	return text;
}

static void test_sort(void **state)
{
	struct ky_table table;

	ky_table_init(&table, &def);
	add(&table, 2, "a", 5);
	add(&table, 1, "b", 0); /* no count */
	add(&table, 1, "c", 7);
	add(&table, 3, "d", 5);
	ky_table_sort(&table, 2, false);
	assert_string_equal(names(&table), "cadb"); /* stable; empty last */
	ky_table_sort(&table, 2, true);
	assert_string_equal(names(&table), "adcb");
	ky_table_sort(&table, 1, false);
	assert_string_equal(names(&table), "dcba");
	ky_table_sort(&table, 0, true);
	assert_string_equal(names(&table), "cbad");
	assert_int_equal(ky_table_status(&table), 0);
	ky_table_fini(&table);
}

static void test_limit_counts_groups(void **state)
{
	struct ky_table table;

	ky_table_init(&table, &def);
	add(&table, 2, "a", 1);
	add(&table, 2, "b", 1);
	add(&table, 1, "c", 1);
	add(&table, 3, "d", 1);
	add(&table, 3, "e", 1);
	ky_table_limit(&table, 0);
	assert_string_equal(names(&table), "abcde");
	ky_table_limit(&table, 3);
	assert_string_equal(names(&table), "abcde");
	assert_int_equal(table.n_omitted, 0);
	ky_table_limit(&table, 2);
	assert_string_equal(names(&table), "abc");
	assert_int_equal(table.n_omitted, 2);
	ky_table_limit(&table, 1); /* one group with one row */
	assert_string_equal(names(&table), "a");
	assert_int_equal(table.n_omitted, 4);
	ky_table_fini(&table);
}

/* Names come from traces; what may be shown of them is the renderers' matter. */
static void test_text_stays(void **state)
{
	static const char text[] = "caf\xc3\xa9 \033[31m\n\x7f \xff\xc3";
	struct ky_table table;
	struct ky_cell cell;

	ky_table_init(&table, &def);
	ky_cell_text(&table, &cell, text);
	assert_string_equal(cell.text, text);
	assert_ptr_not_equal(cell.text, text);
	ky_table_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sort),
		cmocka_unit_test(test_limit_counts_groups),
		cmocka_unit_test(test_text_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
