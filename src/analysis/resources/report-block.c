/* SPDX-License-Identifier: MIT */
/* Report block: requests of block devices. */
#include "analysis/resources/block-load.h"
#include "analysis/reports/report-list.h"

/* ---- documentation --------------------------------------------------------------------- */

#define OP_HELP	  "'read', 'write', 'discard' or 'other' (flushes with data and the like)."
#define DISK_HELP "The block device's name; '254,0' (its numbers) without a state dump."

enum { DISK_NAME, DISK_HOST, DISK_OP, DISK_BYTES, DISK_ERRORS, DISK_STATS };

static const struct ky_column disk_columns[] = {
	[DISK_NAME] = {"disk", "Device", KY_CELL_DISK, DISK_HELP},
	[DISK_HOST] = {"host", "Host", KY_CELL_TEXT,
		       "The trace's host, when the report reads several traces; else empty."},
	[DISK_OP] = {"op", "Kind", KY_CELL_TEXT, OP_HELP},
	[DISK_BYTES] = {"bytes", "Bytes", KY_CELL_SIZE, "The bytes that these requests moved."},
	[DISK_ERRORS] = {"errors", "Errors", KY_CELL_COUNT,
			 "How many requests completed with an "
			 "error.",
			 .spare = 9},
	KY_STATS_COLUMN_DEFS(DISK_STATS, "requests"),
};

static const struct ky_table_def disk_table = KY_TABLE_DEF(
	"disks", "Time in the device",
	"One row for each device and kind of request. The durations are from the issue to the device to "
	"the completion.",
	disk_columns, KY_TABLE_FIXED);

enum { QUEUE_NAME, QUEUE_HOST, QUEUE_OP, QUEUE_STATS };

static const struct ky_column queue_columns[] = {
	[QUEUE_NAME] = {"disk", "Device", KY_CELL_DISK, DISK_HELP},
	[QUEUE_HOST] = {"host", "Host", KY_CELL_TEXT,
			"The trace's host, when the report reads several traces; else empty."},
	[QUEUE_OP] = {"op", "Kind", KY_CELL_TEXT, OP_HELP},
	KY_STATS_COLUMN_DEFS(QUEUE_STATS, "requests that went through a queue"),
};

static const struct ky_table_def queue_table = KY_TABLE_DEF(
	"queue", "Time in the queue",
	"One row for each device and kind of request. The durations are from the insertion into "
	"the queue to the issue; requests without a queue are not included.",
	queue_columns, KY_TABLE_FIXED);

enum { WHO_PROCESS, WHO_REQUESTS, WHO_READ, WHO_WRITTEN, WHO_TIME, WHO_SHARE };

static const struct ky_column who_columns[] = {
	[WHO_PROCESS] =
		{"process", "Process", KY_CELL_PROCESS,
		 "The process of the requests: from their events, else the running process; '-' if "
		 "it is unknown. With --group-by, the thread or the name."},
	[WHO_REQUESTS] = {"requests", "Requests", KY_CELL_COUNT, "How many requests completed."},
	[WHO_READ] = {"read", "Read", KY_CELL_SIZE, "Bytes that they read."},
	[WHO_WRITTEN] = {"written", "Written", KY_CELL_SIZE, "Bytes that they wrote."},
	[WHO_TIME] =
		{"total", "Time", KY_CELL_DURATION,
		 "The sum of their times in the device. Requests overlap, so the sum can exceed "
		 "the range."},
	[WHO_SHARE] = {"share", "Share", KY_CELL_RATIO,
		       "Its share of all bytes. The longest bar is the largest value.",
		       .bar = KY_BAR_MOST},
};

static const struct ky_table_def who_table =
	KY_SHORT_TABLE_DEF("processes", "Requests of each process",
			   "One row for each process with requests, the most bytes first.",
			   who_columns, KY_TABLE_RANK);

enum { FLUSH_PROCESS, FLUSH_DISK, FLUSH_ERRORS, FLUSH_STATS };

static const struct ky_column flush_columns[] = {
	[FLUSH_PROCESS] =
		{"process", "Process", KY_CELL_PROCESS,
		 "The process that asked for the flush last before its issue, where events "
		 "show it (block_getrq); else the thread that issued it."},
	[FLUSH_DISK] = {"disk", "Device", KY_CELL_DISK, DISK_HELP},
	[FLUSH_ERRORS] = {"errors", "Errors", KY_CELL_COUNT,
			  "How many flushes completed with an error.", .spare = 9},
	KY_STATS_COLUMN_DEFS(FLUSH_STATS, "flushes"),
};

static const struct ky_table_def flush_table = KY_TABLE_DEF(
	"flushes", "Flushes of the devices' caches",
	"One row for each process and device, the largest sum first. A flush makes data durable: "
	"fsync() and journals wait for it. The durations are from the issue to the device to the "
	"completion.",
	flush_columns, KY_TABLE_RANK);

enum { BYTES_WAY, BYTES_PROGRAMS, BYTES_UNKNOWN, BYTES_DEVICE, BYTES_FACTOR };

static const struct ky_column bytes_columns[] = {
	[BYTES_WAY] = {"way", "Way", KY_CELL_TEXT, "'read' or 'written'."},
	[BYTES_PROGRAMS] = {"programs", "By programs", KY_CELL_SIZE,
			    "Bytes that system calls moved from or to files on disks."},
	[BYTES_UNKNOWN] = {"unknown", "Unknown files", KY_CELL_SIZE,
			   "Bytes that system calls moved from or to files of an unknown kind."},
	[BYTES_DEVICE] = {"device", "By devices", KY_CELL_SIZE,
			  "Bytes of the devices' requests, of all devices."},
	[BYTES_FACTOR] = {"factor", "Factor", KY_CELL_RATE,
			  "Bytes of devices divided by those of programs. Below 1, the page cache "
			  "did the rest, or did not write it yet; above 1, there are read-ahead, "
			  "journals, metadata and mapped files."},
};

static const struct ky_table_def bytes_table =
	KY_DETAIL_TABLE_DEF("bytes", "Bytes of programs and of devices",
			    "One row for each way. Empty without system calls in the trace.",
			    bytes_columns, KY_TABLE_FIXED);

enum {
	RQ_QUEUED,
	RQ_ISSUED,
	RQ_END,
	RQ_WAIT,
	RQ_DEVICE,
	RQ_DISK,
	RQ_OP,
	RQ_SECTOR,
	RQ_BYTES,
	RQ_PROCESS,
	RQ_ERROR,
	RQ_AHEAD,
	RQ_AHEAD_BYTES,
	RQ_AHEAD_OF,
};

static const struct ky_column rq_columns[] = {
	[RQ_QUEUED] = {"queued", "Queued", KY_CELL_TIMESTAMP,
		       "When it was inserted into the queue; '-' without a queue.", .spare = 4},
	[RQ_ISSUED] = {"issued", "Issued", KY_CELL_TIMESTAMP, "When it was issued to the device.",
		       .spare = 3},
	[RQ_END] = {"end", "Completed", KY_CELL_TIMESTAMP, "When it completed."},
	[RQ_WAIT] = {"queue_time", "Queue", KY_CELL_DURATION, "From the queue to the issue."},
	[RQ_DEVICE] = {"duration", "Service", KY_CELL_DURATION,
		       "From the issue to the completion."},
	[RQ_DISK] = {"disk", "Device", KY_CELL_DISK, DISK_HELP},
	[RQ_OP] = {"op", "Kind", KY_CELL_TEXT, OP_HELP},
	[RQ_SECTOR] = {"sector", "Sector", KY_CELL_NUMBER, "Its first sector.", .spare = 5},
	[RQ_BYTES] = {"bytes", "Bytes", KY_CELL_SIZE, "The bytes that it moved."},
	[RQ_PROCESS] = {"process", "Thread", KY_CELL_PROCESS, "The thread of the request.",
			.spare = 2},
	[RQ_AHEAD] = {"ahead", "Ahead", KY_CELL_COUNT,
		      "How many requests were in the queue and in the device when it came.",
		      .spare = 1},
	[RQ_AHEAD_BYTES] = {"ahead_bytes", "Bytes ahead", KY_CELL_SIZE, "Their bytes.", .spare = 3},
	[RQ_AHEAD_OF] = {"ahead_of", "Most of", KY_CELL_PROCESS,
			 "The thread with most of these bytes.", .second = true, .spare = 1},
	[RQ_ERROR] = {"error", "Error", KY_CELL_NUMBER, "The completion's error; empty for none.",
		      .spare = 6},
};

static const struct ky_table_def top_table =
	KY_SHORT_TABLE_DEF("top", "The longest requests",
			   "One row for each request, the longest time in the device first.",
			   rq_columns, KY_TABLE_TOP);

static const struct ky_table_def log_table = KY_TABLE_DEF(
	"log", "Requests", "One row for each request, in the order of their completion.",
	rq_columns, KY_TABLE_LOG);

static const struct ky_column freq_columns[] = {
	KY_FREQ_COLUMN_DEFS("disk", "Device", KY_CELL_DISK, DISK_HELP),
};

static const struct ky_table_def freq_table =
	KY_TABLE_DEF("freq", "Distribution of times in the device",
		     "One row for each step of duration, for each device, from the shortest.",
		     freq_columns, KY_TABLE_FREQ);

static const struct ky_table_def *const tables[] = {
	&disk_table, &queue_table,	   &ky_load_table, &flush_table, &bytes_table, &who_table,
	&top_table,  &ky_load_steps_table, &freq_table,	   &log_table,	 NULL};

enum {
	TABLE_DISKS,
	TABLE_QUEUE,
	TABLE_LOAD,
	TABLE_FLUSHES,
	TABLE_BYTES,
	TABLE_WHO,
	TABLE_TOP,
	TABLE_STEPS,
	TABLE_FREQ,
	TABLE_LOG
};

/* ---- the run --------------------------------------------------------------------------- */

enum { OP_READ, OP_WRITE, OP_DISCARD, OP_OTHER, N_OPS };

static const char *const op_texts[] = {"read", "write", "discard", "other"};

enum { SUM_READ, SUM_WRITTEN, SUM_BYTES, SUM_ERRORS, SUM_REQUESTS };

struct run {
	struct ky_model *model;
	struct ky_aggregation devices, queues; /* what: the disk's index * N_OPS + kind */
	struct ky_aggregation threads;
	KY_VEC(struct ky_freq) freqs; /* by disk */
	struct ky_happenings single;
	struct ky_aggregation flushes; /* what: the disk's index */
	struct ky_loads loads;
	uint64_t bytes;
	struct {
		uint64_t programs, unknown, device;
	} ways[2]; /* read, written */
};

static int op_of(const struct ky_request *request)
{
	if (request->rwbs & KY_RWBS_DISCARD)
		return OP_DISCARD;
	if (request->rwbs & KY_RWBS_READ)
		return OP_READ;
	return request->rwbs & KY_RWBS_WRITE ? OP_WRITE : OP_OTHER;
}

static int add_times(struct run *run, const struct ky_request *request, struct ky_entry *device,
		     struct ky_entry *thread, uint64_t what)
{
	uint32_t disk = request->disk->index;
	struct ky_entry *queue;
	uint64_t ns;

	if (request->issue_ns == INT64_MIN)
		return 0;
	ns = ky_ns_between(request->issue_ns, request->end_ns);
	while (run->freqs.len <= disk) {
		if (ky_vec_push(&run->freqs, (struct ky_freq){{0}, 0}) < 0)
			return KYMO_E_MEMORY;
	}
	ky_freq_add(&run->freqs.data[disk], ns);
	if (ky_stats_add(&device->stats, ns) < 0 || ky_stats_add(&thread->stats, ns) < 0)
		return KYMO_E_MEMORY;
	if (run->single.wants_top && ky_records_add(&run->single.top, ns, request) < 0)
		return KYMO_E_MEMORY;
	if (request->queue_ns == INT64_MIN)
		return 0;
	queue = ky_aggregation_get(&run->queues, NULL, what);
	return queue ? ky_stats_add(&queue->stats,
				    ky_ns_between(request->queue_ns, request->issue_ns))
		     : KYMO_E_MEMORY;
}

static int report_block_on_request(void *data, const struct ky_request *request)
{
	struct run *run = data;
	int op = op_of(request);
	uint64_t what = (uint64_t)request->disk->index * N_OPS + (uint64_t)op;
	struct ky_entry *device = ky_aggregation_get(&run->devices, NULL, what);
	struct ky_entry *thread = ky_aggregation_get(&run->threads, request->thread, 0);
	uint64_t bytes = request->n_sectors * 512;

	if (!device || !thread)
		return KYMO_E_MEMORY;
	device->sums[SUM_BYTES] += bytes;
	device->sums[SUM_ERRORS] += request->error != 0;
	thread->sums[SUM_REQUESTS]++;
	if (op == OP_READ || op == OP_WRITE) {
		thread->sums[op == OP_READ ? SUM_READ : SUM_WRITTEN] += bytes;
		run->bytes += bytes;
		run->ways[op == OP_WRITE].device += bytes;
	}
	if (run->single.wants_log && ky_records_add(&run->single.log, 0, request) < 0)
		return KYMO_E_MEMORY;
	return add_times(run, request, device, thread, what);
}

static int report_block_on_flush(void *data, const struct ky_request *flush)
{
	struct run *run = data;
	struct ky_entry *entry =
		ky_aggregation_get(&run->flushes, flush->thread, flush->disk->index);

	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[SUM_ERRORS] += flush->error != 0;
	return ky_stats_add(&entry->stats, ky_ns_between(flush->issue_ns, flush->end_ns));
}

static int report_block_on_issued(void *data, const struct ky_disk *disk, int64_t ns)
{
	struct run *run = data;

	return ky_loads_see(&run->loads, disk, ky_model_begin_ns(run->model), ns);
}

static void add_bytes(struct run *run, const struct ky_file *file, bool written, uint64_t bytes)
{
	if (!file || file->kind == KY_FILE_UNKNOWN)
		run->ways[written].unknown += bytes;
	else if (file->kind == KY_FILE_DISK)
		run->ways[written].programs += bytes;
}

static int report_block_on_io(void *data, const struct ky_io *io)
{
	struct run *run = data;

	if (io->kind == KY_IO_READ || io->kind == KY_IO_COPY)
		add_bytes(run, io->file, false, io->bytes);
	if (io->kind == KY_IO_WRITE)
		add_bytes(run, io->file, true, io->bytes);
	if (io->kind == KY_IO_COPY)
		add_bytes(run, io->to, true, io->bytes);
	return 0;
}

static void report_block_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->flushes);
	ky_loads_fini(&run->loads);

	ky_aggregation_fini(&run->devices);
	ky_aggregation_fini(&run->queues);
	ky_aggregation_fini(&run->threads);
	ky_vec_fini(&run->freqs);
	ky_happenings_fini(&run->single);
	free(run);
}

static void *report_block_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {
		.request = report_block_on_request,
		.flush = report_block_on_flush,
		.issued = report_block_on_issued,
	};
	struct run *run;

	/* Files take time to follow. */
	if (ky_model_abilities(model) & KY_CAN_SYSCALLS &&
	    ky_report_wants(options, &ky_report_block, TABLE_BYTES))
		listener.io = report_block_on_io;
	run = ky_report_run(model, sizeof(*run), &listener);

	if (!run)
		return NULL;
	ky_happenings_init(&run->single, sizeof(struct ky_request), options, &ky_report_block,
			   TABLE_TOP, TABLE_LOG);
	return run;
}

/* ---- the tables ------------------------------------------------------------------------ */

static void fill_disk(const struct run *run, struct ky_table *table, struct ky_cell *row,
		      const struct ky_entry *entry)
{
	const struct ky_disk *disk = ky_model_disk(run->model, entry->what / N_OPS);

	ky_cell_text(table, &row[DISK_NAME], disk->name);
	ky_cell_host(table, &row[DISK_HOST], run->model, disk->host);
	ky_cell_text(table, &row[DISK_OP], op_texts[entry->what % N_OPS]);
}

static void report_block_fill_disk_bytes(const struct run *run, struct ky_table *table,
					 const struct ky_entry *entry)
{
	struct ky_cell *row = ky_table_row(table);

	fill_disk(run, table, row, entry);
	ky_cell_u64(&row[DISK_BYTES], entry->sums[SUM_BYTES]);
	ky_cell_u64(&row[DISK_ERRORS], entry->sums[SUM_ERRORS]);
	ky_fill_stats(&row[DISK_STATS], &entry->stats);
}

static void report_block_fill_disks(const struct run *run, struct ky_table *table)
{
	ky_vec_foreach(&run->devices.entries, it)
		report_block_fill_disk_bytes(run, table, *it);
	ky_table_sort_then(table, DISK_NAME, true, DISK_OP, true);
}

static void fill_queues(const struct run *run, struct ky_table *table)
{
	ky_vec_foreach(&run->queues.entries, it) {
		struct ky_cell *row = ky_table_row(table);

		fill_disk(run, table, row, *it);
		ky_fill_stats(&row[QUEUE_STATS], &(*it)->stats);
	}
	ky_table_sort_then(table, QUEUE_NAME, true, QUEUE_OP, true);
}

static void report_block_fill_process(const void *data, struct ky_table *table,
				      const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	uint64_t bytes = entry->sums[SUM_READ] + entry->sums[SUM_WRITTEN];
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[WHO_PROCESS], run->model, entry->thread, by);
	ky_cell_u64(&row[WHO_REQUESTS], entry->sums[SUM_REQUESTS]);
	ky_cell_u64(&row[WHO_READ], entry->sums[SUM_READ]);
	ky_cell_u64(&row[WHO_WRITTEN], entry->sums[SUM_WRITTEN]);
	ky_cell_sum(&row[WHO_TIME], ky_stats_moments(&entry->stats).sum);
	ky_cell_f64(&row[WHO_SHARE], ky_part(bytes, run->bytes));
}

static int report_block_fill_processes(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status =
		ky_fill_groups(table, &run->threads, by, false, report_block_fill_process, run);

	ky_table_sort_then(table, WHO_SHARE, false, WHO_PROCESS, true);
	return status;
}

static void fill_request(const void *data, struct ky_table *table, struct ky_cell *row,
			 const void *record)
{
	const struct run *run = data;
	const struct ky_request *request = record;

	if (request->queue_ns != INT64_MIN)
		ky_cell_i64(&row[RQ_QUEUED], request->queue_ns);
	if (request->issue_ns != INT64_MIN) {
		ky_cell_i64(&row[RQ_ISSUED], request->issue_ns);
		ky_cell_u64(&row[RQ_DEVICE], ky_ns_between(request->issue_ns, request->end_ns));
	}
	if (request->queue_ns != INT64_MIN && request->issue_ns != INT64_MIN)
		ky_cell_u64(&row[RQ_WAIT], ky_ns_between(request->queue_ns, request->issue_ns));
	ky_cell_i64(&row[RQ_END], request->end_ns);
	ky_cell_text(table, &row[RQ_DISK], request->disk->name);
	ky_cell_text(table, &row[RQ_OP], op_texts[op_of(request)]);
	ky_cell_u64(&row[RQ_SECTOR], request->sector);
	ky_cell_u64(&row[RQ_BYTES], request->n_sectors * 512);
	if (request->thread)
		ky_cell_thread(table, &row[RQ_PROCESS], run->model, request->thread);
	if (request->error)
		ky_cell_i64(&row[RQ_ERROR], request->error);
	ky_cell_u64(&row[RQ_AHEAD], request->n_ahead);
	ky_cell_u64(&row[RQ_AHEAD_BYTES], request->sectors_ahead * 512);
	if (request->ahead)
		ky_cell_thread(table, &row[RQ_AHEAD_OF], run->model, request->ahead);
}

static void fill_flush(const void *data, struct ky_table *table, const struct ky_entry *entry,
		       enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[FLUSH_PROCESS], run->model, entry->thread, by);
	ky_cell_text(table, &row[FLUSH_DISK], ky_model_disk(run->model, entry->what)->name);
	ky_cell_u64(&row[FLUSH_ERRORS], entry->sums[SUM_ERRORS]);
	ky_fill_stats(&row[FLUSH_STATS], &entry->stats);
}

static int fill_flushes(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status = ky_fill_groups(table, &run->flushes, by, true, fill_flush, run);

	ky_table_sort(table, FLUSH_STATS + KY_STATS_TOTAL, false);
	return status;
}

static void report_block_fill_way(const struct run *run, struct ky_table *table, int i)
{
	static const char *const names[] = {"read", "written"};
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[BYTES_WAY], names[i]);
	ky_cell_u64(&row[BYTES_PROGRAMS], run->ways[i].programs);
	ky_cell_u64(&row[BYTES_UNKNOWN], run->ways[i].unknown);
	ky_cell_u64(&row[BYTES_DEVICE], run->ways[i].device);
	if (run->ways[i].programs)
		ky_cell_f64(&row[BYTES_FACTOR],
			    ky_part(run->ways[i].device, run->ways[i].programs));
}

static void fill_bytes(const struct run *run, struct ky_table *table)
{
	if (!(ky_model_abilities(run->model) & KY_CAN_SYSCALLS))
		return;
	for (int i = 0; i < 2; i++)
		report_block_fill_way(run, table, i);
}

static int report_block_finish(void *data, const struct ky_report_options *options,
			       struct ky_report_result *result)
{
	struct run *run = data;
	struct ky_table *freq = &result->tables[TABLE_FREQ];
	int status = report_block_fill_processes(run, &result->tables[TABLE_WHO],
						 ky_report_by(options, KY_BY_PROCESS));

	report_block_fill_disks(run, &result->tables[TABLE_DISKS]);
	fill_queues(run, &result->tables[TABLE_QUEUE]);
	if (status >= 0)
		status = fill_flushes(run, &result->tables[TABLE_FLUSHES],
				      ky_report_by(options, KY_BY_PROCESS));
	fill_bytes(run, &result->tables[TABLE_BYTES]);
	if (ky_model_end_ns(run->model) != INT64_MIN)
		ky_loads_fill(&run->loads, run->model, ky_model_end_ns(run->model),
			      &result->tables[TABLE_LOAD], &result->tables[TABLE_STEPS]);
	for (size_t i = 0; i < run->freqs.len; i++) {
		struct ky_cell disk = {0};

		ky_cell_text(freq, &disk, ky_model_disk(run->model, i)->name);
		if (run->freqs.data[i].n)
			ky_fill_freq(freq, &run->freqs.data[i], &disk);
	}
	ky_fill_records(&result->tables[TABLE_TOP], &run->single.top, fill_request, run);
	ky_fill_records(&result->tables[TABLE_LOG], &run->single.log, fill_request, run);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_block = {
	.name = "block",
	.summary = "requests of block devices: time in queue and device",
	.description =
		"Follows each request of a block device by device and first sector: from its "
		"insertion into the queue to its issue to the device, and from there to its "
		"completion. Front merges move the first sector of a request. A request that the "
		"kernel merges into another one becomes part of that request. A request that "
		"completes in parts ends with the last part.\n"
		"\n"
		"Flushes have no sectors: the oldest flush of a device is the one that completes. "
		"Only table flushes has them. A request that was issued before the trace has no "
		"duration.",
	.events =
		"block_rq_issue and block_rq_complete; block_rq_insert for the queue; "
		"block_rq_merge, block_bio_frontmerge, block_rq_requeue and block_rq_remap to "
		"follow requests; block_getrq for the threads that ask for flushes; system calls for the bytes "
		"of programs. Names of devices come from lttng_statedump_block_device.",
	.reading =
		"A hard disk takes milliseconds, flash takes tens or hundreds of microseconds, a "
		"virtual disk takes the time of its host. When only the time in the queue grows, "
		"requests come faster than the device handles them; when both times grow, the "
		"device is slow. The column 'Ahead' of the longest requests tells how many "
		"requests were before them, and whose. Slow commits with few bytes come from "
		"flushes: compare their time with fsync in report io-latency. Requests of kworker threads write data of other threads: report "
		"io shows these threads. Report io-latency shows how long programs waited.",
	.example = "$ kymo report block -n 3 -t disks -t processes -t top my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Time in the device\n"
		   "  Device  Kind       Bytes  Count      Time      Mean       Max       "
		   "p99\n"
		   "  vda     read   10.01 MiB    100  55.31 ms  553.1 us  6.934 ms  3.719"
		   " ms\n"
		   "  vda     write  9.172 MiB     51  29.72 ms  582.8 us  4.019 ms  4.019"
		   " ms\n"
		   "  --wide shows: Errors, p99.9, Stdev, Min, p90, p50\n"
		   "\n"
		   "Requests of each process\n"
		   "  PID  Name  Requests       Read    Written      Time    Share\n"
		   "  323  work       139  9.008 MiB  9.113 MiB  81.61 ms  94.48 %  ██████"
		   "██████████\n"
		   "  360  cat          4  512.0 KiB      0 B    618.6 us   2.61 %  ▌\n"
		   "  362  gzip         4  512.0 KiB      0 B    658.4 us   2.61 %  ▌\n"
		   "  1 more rows: --limit 0 shows all\n"
		   "\n"
		   "The longest requests\n"
		   "           Completed   Service  Device  Kind       Bytes  TID  PID  Na"
		   "me\n"
		   "  05:30:39.080625130  6.934 ms  vda     read   64.00 KiB  327  323  di"
		   "sk-io\n"
		   "  05:30:39.114973090  4.019 ms  vda     write  512.0 KiB  327  323  di"
		   "sk-io\n"
		   "  05:30:39.293557750  3.721 ms  vda     read   128.0 KiB  327  323  di"
		   "sk-io\n"
		   "  148 more rows: --limit 0 shows all\n"
		   "  --wide shows: Sector, Issued\n",
	.next = "report io-latency|the calls that waited for the devices\n"
		"report io|which files were read and written",
	.tables = tables,
	.needs = KY_CAN_BLOCK,
	.needs_text = "block_rq events",
	.needs_hint = "record them with: kymo record -k 'block_rq_*'",
	.begin = report_block_begin,
	.finish = report_block_finish,
	.free = report_block_free_run,
};
