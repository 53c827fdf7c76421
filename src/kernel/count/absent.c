/* SPDX-License-Identifier: MIT */
/* A build without BPF programs has these functions in the place of count.c. */
#include "kernel/bpf/absent.h"
#include "kernel/count/count.h"

int ky_count_open(const struct ky_count_options *options, struct ky_count **count,
		  struct kymo_error *err)
{
	(void)options;
	*count = NULL;
	return ky_bpf_absent(err, "count events");
}

void ky_count_close(struct ky_count *count)
{
	(void)count;
}

int ky_count_follow(struct ky_count *count, pid_t pid, struct kymo_error *err)
{
	(void)count;
	(void)pid;
	return ky_bpf_absent(err, "count events");
}

int ky_count_start(struct ky_count *count, struct kymo_error *err)
{
	(void)count;
	return ky_bpf_absent(err, "count events");
}

void ky_count_stop(struct ky_count *count)
{
	(void)count;
}

int ky_count_read(struct ky_count *count, struct kymo_error *err)
{
	(void)count;
	return ky_bpf_absent(err, "count events");
}

const struct ky_count_row *ky_count_rows(const struct ky_count *count, size_t *n)
{
	(void)count;
	*n = 0;
	return NULL;
}

const struct ky_count_column *ky_count_columns(const struct ky_count *count, size_t *n)
{
	(void)count;
	*n = 0;
	return NULL;
}

bool ky_count_has(const struct ky_count *count, const struct ky_count_row *row, size_t column)
{
	(void)count;
	(void)row;
	(void)column;
	return false;
}

uint64_t ky_count_number(const struct ky_count *count, const struct ky_count_row *row,
			 size_t column)
{
	(void)count;
	(void)row;
	(void)column;
	return 0;
}

const char *ky_count_text(const struct ky_count *count, const struct ky_count_row *row,
			  size_t column)
{
	(void)count;
	(void)row;
	(void)column;
	return "";
}

size_t ky_count_stack(const struct ky_count *count, const struct ky_count_row *row, size_t column,
		      uint64_t *addresses, size_t max)
{
	(void)count;
	(void)row;
	(void)column;
	(void)addresses;
	(void)max;
	return 0;
}

const char *ky_count_event(const struct ky_count *count, uint64_t i)
{
	(void)count;
	(void)i;
	return "";
}

size_t ky_count_n_events(const struct ky_count *count)
{
	(void)count;
	return 0;
}

void ky_count_losses(const struct ky_count *count, uint64_t *lost, uint64_t *missed)
{
	(void)count;
	*lost = *missed = 0;
}
