/* SPDX-License-Identifier: MIT */
#include "kernel/tracefs/page.h"

#include "base/error.h"

/* The commit word of a page: how much was written, and whether events were lost before it. */
#define COMMIT_BYTES  0x000fffffu
#define MISSED_STORED (1u << 30) /* their number stands behind the data */
#define MISSED_EVENTS (1u << 31)

/* What the page says about the number of lost events before it; 0: it has no room to say. */
static uint64_t stored_lost(const uint8_t *data, uint32_t len, uint32_t commit, uint32_t data_end)
{
	unsigned long stored;

	if (!(commit & MISSED_STORED) || len - data_end < sizeof(stored))
		return 0;
	memcpy(&stored, data + data_end, sizeof(stored));
	return stored;
}

int ky_page_open(const struct ky_page_layout *layout, const uint8_t *data, uint32_t len,
		 struct ky_page *page, struct kymo_error *err)
{
	uint32_t commit, data_end;

	memset(page, 0, sizeof(*page));
	if (len < layout->data_offset || len < layout->time_offset + 8u ||
	    len < (uint32_t)layout->commit_offset + layout->commit_bytes)
		return ky_error_set(err, KYMO_E_FORMAT, "a page of the ring that is too short");
	memcpy(&page->cycles, data + layout->time_offset, 8);
	commit = ky_record_word(data + layout->commit_offset);
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ && layout->commit_bytes == 8)
		commit = ky_record_word(data + layout->commit_offset + 4);
	page->records = data + layout->data_offset;
	page->end = commit & COMMIT_BYTES;
	if (page->end > len - layout->data_offset) {
		page->end = 0;
		return ky_error_set(err, KYMO_E_FORMAT, "a page of the ring that is too full");
	}
	data_end = layout->data_offset + page->end;
	page->missed = commit & MISSED_EVENTS;
	if (page->missed)
		page->lost = stored_lost(data, len, commit, data_end);
	return KYMO_OK;
}

void ky_page_skip(struct ky_page *page, uint32_t to)
{
	enum ky_record_kind kind;
	struct ky_record record;

	while (page->at < to) {
		kind = ky_record_parse(page->records, page->at, to, &page->cycles, &record);
		if (kind == KY_RECORD_END || kind == KY_RECORD_BAD)
			break;
		if (kind == KY_RECORD_EVENT)
			page->cycles += record.delta;
		page->at = record.next;
	}
	page->at = to;
}
