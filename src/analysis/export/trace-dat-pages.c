/* SPDX-License-Identifier: MIT */
/* The kernel's ring buffer pages: a time, the length of the events, and events that have the time since the one before. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "analysis/export/trace-dat-internal.h"
#include "base/error.h"
#include "os/file.h"

#define DELTA_BITS   27
#define TIME_EXTEND  30
#define LARGE	     0	 /* the length follows, with itself */
#define SMALL_MAX    112 /* 28 words */
#define MISSED	     (UINT64_C(1) << 31)
#define EVENTS_BYTES (KY_DAT_PAGE_BYTES - KY_DAT_PAGE_HEAD)

int ky_dat_cpu_open(struct ky_dat_cpu *cpu, const char *directory, struct kymo_error *err)
{
	cpu->fd = ky_file_open_unnamed(directory);
	if (cpu->fd >= 0)
		return KYMO_OK;
	return ky_error_errno(err, -cpu->fd, "cannot make a temporary file in %s", directory);
}

void ky_dat_cpu_close(struct ky_dat_cpu *cpu)
{
	if (cpu->fd >= 0)
		close(cpu->fd);
}

int ky_dat_cpu_flush(struct ky_dat_cpu *cpu, struct kymo_error *err)
{
	uint64_t commit = cpu->used | (cpu->lost ? MISSED : 0);
	int ret;

	if (!cpu->used)
		return KYMO_OK;
	memcpy(cpu->page + 8, &commit, sizeof(commit));
	memset(cpu->page + KY_DAT_PAGE_HEAD + cpu->used, 0, EVENTS_BYTES - cpu->used);
	ret = ky_write_all(cpu->fd, cpu->page, sizeof(cpu->page));
	cpu->used = 0;
	cpu->lost = false;
	cpu->n_pages++;
	return ret < 0 ? ky_error_errno(err, -ret, "cannot write a temporary file") : KYMO_OK;
}

static void dat_pages_word(struct ky_dat_cpu *cpu, uint32_t word)
{
	memcpy(cpu->page + KY_DAT_PAGE_HEAD + cpu->used, &word, sizeof(word));
	cpu->used += (uint32_t)sizeof(word);
}

int ky_dat_cpu_add(struct ky_dat_cpu *cpu, uint64_t ns, const struct ky_strbuf *record,
		   struct kymo_error *err)
{
	uint32_t bytes = ((uint32_t)record->len + 3) & ~3u;
	uint32_t kind = bytes > SMALL_MAX ? LARGE : bytes / 4;
	uint64_t delta;
	int ret = KYMO_OK;

	if (cpu->used + bytes + 16 > EVENTS_BYTES)
		ret = ky_dat_cpu_flush(cpu, err);
	if (ret < 0)
		return ret;
	if (ns < cpu->last_ns)
		ns = cpu->last_ns;
	if (!cpu->used) {
		memcpy(cpu->page, &ns, sizeof(ns));
		cpu->last_ns = ns;
	}
	delta = ns - cpu->last_ns;
	cpu->last_ns = ns;
	if (delta >> DELTA_BITS) {
		dat_pages_word(cpu, TIME_EXTEND | (uint32_t)(delta & ((1u << DELTA_BITS) - 1))
							  << 5);
		dat_pages_word(cpu, (uint32_t)(delta >> DELTA_BITS));
		delta = 0;
	}
	dat_pages_word(cpu, kind | (uint32_t)delta << 5);
	if (kind == LARGE)
		dat_pages_word(cpu, bytes + 4);
	memcpy(cpu->page + KY_DAT_PAGE_HEAD + cpu->used, record->data, record->len);
	memset(cpu->page + KY_DAT_PAGE_HEAD + cpu->used + record->len, 0, bytes - record->len);
	cpu->used += bytes;
	return KYMO_OK;
}
