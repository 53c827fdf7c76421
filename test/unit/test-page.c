/* SPDX-License-Identifier: MIT */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "kernel/tracefs/page.h"
#include "ring-data.h"

static const struct ky_page_layout layout = {0, 8, 8, 16};

static void real_page(void **state)
{
	struct ky_page page;
	size_t len;
	uint8_t *data = ring_data("page-0", &len);

	(void)state;
	assert_int_equal(ky_page_open(&layout, data, (uint32_t)len, &page, NULL), 0);
	assert_ptr_equal(page.records, data + 16);
	assert_int_equal(page.at, 0);
	assert_true(page.end > 0 && page.end <= len - 16);
	assert_true(page.cycles == 12110428994726);
	assert_false(page.missed);
	free(data);
}

static void headers(void **state)
{
	uint64_t head[8] = {1000, 40};
	uint64_t lost = 42;
	uint8_t *data = (uint8_t *)head;
	struct ky_page page;

	(void)state;
	assert_int_equal(ky_page_open(&layout, data, 64, &page, NULL), 0);
	assert_int_equal(page.end, 40);
	assert_false(page.missed);
	/* Lost events: how many stands behind the data, where there is room. */
	head[1] = 40 | 1u << 31;
	assert_int_equal(ky_page_open(&layout, data, 64, &page, NULL), 0);
	assert_true(page.missed);
	assert_int_equal(page.lost, 0);
	head[1] |= 1u << 30;
	memcpy(data + 16 + 40, &lost, 8);
	assert_int_equal(ky_page_open(&layout, data, 64, &page, NULL), 0);
	assert_int_equal(page.lost, 42);
	assert_int_equal(ky_page_open(&layout, data, 63, &page, NULL), 0);
	assert_int_equal(page.lost, 0);
	/* More data than the page holds; a page without a header. */
	assert_int_equal(ky_page_open(&layout, data, 55, &page, NULL), KYMO_E_FORMAT);
	assert_int_equal(page.end, 0);
	for (uint32_t len = 0; len < 16; len++)
		assert_int_equal(ky_page_open(&layout, data, len, &page, NULL), KYMO_E_FORMAT);
}

/* Skipping arrives at the time at which reading arrives, whatever is skipped. */
static void skipping(void **state)
{
	struct ky_page page, skipped;
	enum ky_record_kind kind;
	struct ky_record record = {0};
	unsigned int events = 0;
	uint64_t cycles;
	size_t len;
	uint8_t *data = ring_data("page-0", &len);

	(void)state;
	assert_int_equal(ky_page_open(&layout, data, (uint32_t)len, &page, NULL), 0);
	cycles = page.cycles;
	for (uint32_t at = 0; at < page.end; at = record.next) {
		skipped = page;
		ky_page_skip(&skipped, at);
		assert_int_equal(skipped.at, at);
		assert_true(skipped.cycles == cycles);
		kind = ky_record_parse(page.records, at, page.end, &cycles, &record);
		if (kind == KY_RECORD_END)
			break;
		cycles += kind == KY_RECORD_EVENT ? record.delta : 0;
		events += kind == KY_RECORD_EVENT;
	}
	assert_int_equal(events, 12);
	/* Into the middle of a record: no further than was said. */
	skipped = page;
	ky_page_skip(&skipped, 6);
	assert_int_equal(skipped.at, 6);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_page),
		cmocka_unit_test(headers),
		cmocka_unit_test(skipping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
