/* SPDX-License-Identifier: MIT */
#include "analysis/resources/block-load.h"

#define FIRST_STEP_NS 1000000

enum { LOAD_NAME, LOAD_HOST, LOAD_MEAN, LOAD_MOST, LOAD_BUSY, LOAD_SHARE };

static const struct ky_column load_columns[] = {
	[LOAD_NAME] = {"disk", "Device", KY_CELL_DISK, "The block device."},
	[LOAD_HOST] = {"host", "Host", KY_CELL_TEXT,
		       "The trace's host, when the report reads several traces; else empty."},
	[LOAD_MEAN] = {"mean", "Mean depth", KY_CELL_RATE,
		       "How many requests the device had at a time, on average over the range."},
	[LOAD_MOST] = {"most", "Max depth", KY_CELL_COUNT, "The most requests at a time."},
	[LOAD_BUSY] = {"busy", "Busy", KY_CELL_DURATION,
		       "How long the device had at least one request."},
	[LOAD_SHARE] = {"share", "Share", KY_CELL_RATIO, "Busy time divided by the range.",
			.bar = KY_BAR_WHOLE},
};

const struct ky_table_def ky_load_table =
	KY_TABLE_DEF("depth", "Requests in the device at a time",
		     "One row for each device. Requests from before the range count from their "
		     "first event on.",
		     load_columns, KY_TABLE_FIXED);

enum { STEP_NAME, STEP_BEGIN, STEP_MEAN, STEP_MOST, STEP_BUSY };

static const struct ky_column load_step_columns[] = {
	[STEP_NAME] = {"disk", "Device", KY_CELL_DISK, "The block device.", .group = true},
	[STEP_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "The begin of the step."},
	[STEP_MEAN] = {"mean", "Mean depth", KY_CELL_RATE,
		       "How many requests the device had at a time, on average over the step.",
		       .bar = KY_BAR_MOST},
	[STEP_MOST] = {"most", "Max depth", KY_CELL_COUNT, "The most requests at a time."},
	[STEP_BUSY] = {"busy", "Busy", KY_CELL_DURATION,
		       "How long the device had at least one request."},
};

const struct ky_table_def ky_load_steps_table = KY_DETAIL_TABLE_DEF(
	"depth_steps", "Requests in the device over time",
	"One row for each step of the range and each device: at most 20 steps of equal length, 1 ms, "
	"or 1 ms doubled as often as necessary.",
	load_step_columns, KY_TABLE_FIXED);

void ky_loads_fini(struct ky_loads *loads)
{
	ky_vec_fini(&loads->devices);
}

static void block_load_sum_steps(struct ky_device_load *load, int i)
{
	typeof(load->steps[0]) sum = {0};

	for (int j = 2 * i; j < 2 * i + 2 && j < KY_LOAD_STEPS; j++) {
		sum.ns += load->steps[j].ns;
		sum.busy_ns += load->steps[j].busy_ns;
		if (load->steps[j].most > sum.most)
			sum.most = load->steps[j].most;
	}
	load->steps[i] = sum;
}

/* Steps of twice the length: each of them has two of the old ones. */
static void block_load_double(struct ky_device_load *load)
{
	for (int i = 0; i < KY_LOAD_STEPS; i++)
		block_load_sum_steps(load, i);
	load->step_ns *= 2;
}

static void block_load_add_step(struct ky_device_load *load, int64_t ns)
{
	int64_t i = (load->since_ns - load->begin_ns) / load->step_ns;
	int64_t end = load->begin_ns + (i + 1) * load->step_ns;
	uint64_t part = ky_ns_between(load->since_ns, end < ns ? end : ns);

	load->steps[i].ns += part * load->n_issued;
	load->steps[i].busy_ns += load->n_issued ? part : 0;
	if (load->n_issued > load->steps[i].most)
		load->steps[i].most = load->n_issued;
	load->since_ns = end < ns ? end : ns;
}

/* The device had n_issued requests up to @ns. */
static void block_load_add(struct ky_device_load *load, int64_t ns)
{
	while (ky_ns_between(load->begin_ns, ns) > (uint64_t)load->step_ns * KY_LOAD_STEPS)
		block_load_double(load);
	while (load->since_ns < ns)
		block_load_add_step(load, ns);
}

int ky_loads_see(struct ky_loads *loads, const struct ky_disk *disk, int64_t begin_ns, int64_t ns)
{
	struct ky_device_load *load;

	while (loads->devices.len <= disk->index) {
		struct ky_device_load none = {.disk = NULL};

		if (ky_vec_push(&loads->devices, none) < 0)
			return KYMO_E_MEMORY;
	}
	load = &loads->devices.data[disk->index];
	if (!load->disk) {
		load->disk = disk;
		load->begin_ns = load->since_ns = begin_ns;
		load->step_ns = FIRST_STEP_NS;
	}
	block_load_add(load, ns);
	load->n_issued = disk->n_issued;
	return 0;
}

static void block_load_fill_steps(const struct ky_device_load *load, int64_t end_ns,
				  struct ky_table *table)
{
	for (int i = 0; i < KY_LOAD_STEPS; i++) {
		int64_t begin = load->begin_ns + i * load->step_ns, end = begin + load->step_ns;
		struct ky_cell *row;

		if (begin >= end_ns)
			return;
		row = ky_table_row(table);
		ky_cell_text(table, &row[STEP_NAME], load->disk->name);
		ky_cell_i64(&row[STEP_BEGIN], begin);
		ky_cell_f64(&row[STEP_MEAN],
			    ky_part(load->steps[i].ns,
				    ky_ns_between(begin, end < end_ns ? end : end_ns)));
		ky_cell_u64(&row[STEP_MOST], load->steps[i].most);
		ky_cell_u64(&row[STEP_BUSY], load->steps[i].busy_ns);
	}
}

static void block_load_fill(const struct ky_device_load *load, const struct ky_model *model,
			    int64_t end_ns, struct ky_table *table)
{
	uint64_t ns = 0, busy_ns = 0, range_ns = ky_ns_between(load->begin_ns, end_ns);
	struct ky_cell *row = ky_table_row(table);
	uint32_t most = 0;

	for (int i = 0; i < KY_LOAD_STEPS; i++) {
		ns += load->steps[i].ns;
		busy_ns += load->steps[i].busy_ns;
		most = load->steps[i].most > most ? load->steps[i].most : most;
	}
	ky_cell_text(table, &row[LOAD_NAME], load->disk->name);
	ky_cell_host(table, &row[LOAD_HOST], model, load->disk->host);
	ky_cell_f64(&row[LOAD_MEAN], ky_part(ns, range_ns));
	ky_cell_u64(&row[LOAD_MOST], most);
	ky_cell_u64(&row[LOAD_BUSY], busy_ns);
	ky_cell_f64(&row[LOAD_SHARE], ky_part(busy_ns, range_ns));
}

void ky_loads_fill(struct ky_loads *loads, const struct ky_model *model, int64_t end_ns,
		   struct ky_table *sums, struct ky_table *steps)
{
	ky_vec_foreach(&loads->devices, load) {
		if (!load->disk)
			continue;
		block_load_add(load, end_ns);
		block_load_fill(load, model, end_ns, sums);
		block_load_fill_steps(load, end_ns, steps);
	}
}
