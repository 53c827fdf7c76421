/* SPDX-License-Identifier: MIT */
/*
 * Index files of the state history, of any bytes. The head, the slot and the checksums of all records that the
 * file's own order reaches are put right first, so that the checks behind them are tested. Each question must come to an
 * end, and an answer must hold the moment that was asked about.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/history/history-format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SIZE_MAX_BYTES 65536
#define N_PIXELS       37
#define ROWS_MAX       16

/* Records follow each other: the right checksum for each. */
static void repair_records(uint8_t *file, size_t size)
{
	struct ky_record_head head;

	for (size_t at = KY_HISTORY_RECORDS_AT; size - at >= sizeof(head);
	     at += sizeof(head) + head.bytes) {
		memcpy(&head, file + at, sizeof(head));
		if (head.bytes > size - at - sizeof(head))
			return;
		head.checksum = ky_record_checksum(&head, at, file + at + sizeof(head));
		memcpy(file + at, &head, sizeof(head));
	}
}

static void repair(uint8_t *file, size_t size)
{
	struct ky_history_head head;
	struct ky_history_slot slot;

	memcpy(&head, file, sizeof(head));
	head.magic = KY_HISTORY_MAGIC;
	head.version = KY_HISTORY_VERSION;
	head.bytes = sizeof(head);
	head.checksum = ky_history_checksum(0, &head, offsetof(struct ky_history_head, checksum));
	memcpy(file, &head, sizeof(head));
	memset(file + KY_HISTORY_SLOT_AT(0), 0, sizeof(slot));
	memcpy(&slot, file + KY_HISTORY_SLOT_AT(1), sizeof(slot));
	slot.generation |= 1; /* that of the first publication */
	slot.end_bytes = size;
	slot.root_bytes %= size;
	slot.checksum = ky_history_checksum(0, &slot, offsetof(struct ky_history_slot, checksum));
	memcpy(file + KY_HISTORY_SLOT_AT(1), &slot, sizeof(slot));
	repair_records(file, size);
}

static void ask_at(struct ky_history *history, uint32_t row, int64_t ns)
{
	struct ky_history_interval found;
	struct kymo_error err;

	if (ky_history_at(history, row, ns, &found, &err) < 0)
		return;
	if (found.begin_ns > ns || (found.end_ns <= ns && found.end_ns != INT64_MAX))
		abort();
	(void)ky_state_text(ky_state_kind(found.state));
	(void)ky_history_name(history, ky_state_value(found.state));
}

static void ask(struct ky_history *history, uint32_t id)
{
	const struct ky_history_row *row = ky_history_row(history, id);
	struct ky_history_pixel pixels[N_PIXELS];
	struct ky_history_height heights[N_PIXELS];
	double events[N_PIXELS];
	struct kymo_error err;
	const int64_t times[] = {INT64_MIN,
				 INT64_MAX,
				 0,
				 row->begin_ns,
				 row->end_ns,
				 row->end_ns - (row->end_ns > INT64_MIN),
				 row->begin_ns / 2 + row->end_ns / 2};

	for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
		ask_at(history, id, times[i]);
		for (size_t j = 0; j < sizeof(times) / sizeof(*times); j++) {
			(void)ky_history_pixels(history, id, times[i], times[j], N_PIXELS, pixels,
						&err);
			(void)ky_history_density(history, id, times[i], times[j], N_PIXELS, events,
						 &err);
			(void)ky_history_heights(history, id, times[i], times[j], N_PIXELS, heights,
						 &err);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t file[SIZE_MAX_BYTES];
	struct ky_history *history;
	struct kymo_error err;
	int fd;

	if (size < KY_HISTORY_RECORDS_AT || size > sizeof(file))
		return 0;
	memcpy(file, data, size);
	/* An odd byte in a place that no record has: the file as it is. */
	if (!(file[191] & 1))
		repair(file, size);
	fd = memfd_create("history", MFD_CLOEXEC);
	if (fd < 0)
		return 0;
	if (write(fd, file, size) == (ssize_t)size &&
	    ky_history_open_fd(fd, NULL, true, &history, &err) >= 0) {
		for (uint32_t i = 0; i < ky_history_n_rows(history) && i < ROWS_MAX; i++)
			ask(history, i);
		ky_history_close(history);
	}
	close(fd);
	return 0;
}
