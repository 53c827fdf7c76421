/* SPDX-License-Identifier: MIT */
/* Report memory: pages allocated and freed, page faults, sizes of processes. */
#include "analysis/reports/report-list.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { TOTAL_ALLOC, TOTAL_FREE, TOTAL_NET, TOTAL_MAX, TOTAL_MIN, TOTAL_USER, TOTAL_KERNEL };

static const struct ky_column total_columns[] = {
	[TOTAL_ALLOC] =
		{"allocated", "Allocated", KY_CELL_COUNT,
		 "Pages that the kernel allocated, for any use; an allocation of order n has 2^n "
		 "pages."},
	[TOTAL_FREE] = {"freed", "Freed", KY_CELL_COUNT, "Pages that the kernel freed."},
	[TOTAL_NET] =
		{"net", "Difference", KY_CELL_NUMBER,
		 "Allocated minus freed: the growth of used memory over the range, in pages."},
	[TOTAL_MAX] = {"highest", "Highest", KY_CELL_NUMBER,
		       "The largest value of the difference in the range."},
	[TOTAL_MIN] = {"lowest", "Lowest", KY_CELL_NUMBER,
		       "The smallest value; below zero when the kernel freed more pages than it "
		       "allocated."},
	[TOTAL_USER] = {"user_faults", "User faults", KY_CELL_COUNT,
			"Page faults of user space, if the trace has them."},
	[TOTAL_KERNEL] = {"kernel_faults", "Kernel faults", KY_CELL_COUNT,
			  "Page faults of the kernel.", .spare = 1},
};

static const struct ky_table_def total_table =
	KY_TABLE_DEF("total", "The whole system", "One row for all traces together.", total_columns,
		     KY_TABLE_FIXED);

enum { WHO_PROCESS, WHO_ALLOC, WHO_FREE, WHO_NET, WHO_USER, WHO_KERNEL };

static const struct ky_column who_columns[] = {
	[WHO_PROCESS] =
		{"process", "Process", KY_CELL_PROCESS,
		 "The process that ran when pages were allocated and freed; '-' when the CPU was "
		 "idle or the process is unknown. With --group-by, the thread or the name."},
	[WHO_ALLOC] = {"allocated", "Allocated", KY_CELL_COUNT, "Pages allocated while it ran."},
	[WHO_FREE] = {"freed", "Freed", KY_CELL_COUNT, "Pages freed while it ran."},
	[WHO_NET] = {"net", "Difference", KY_CELL_NUMBER,
		     "Allocated minus freed. Another process may have allocated the freed pages."},
	[WHO_USER] = {"user_faults", "User faults", KY_CELL_COUNT,
		      "Its page faults in user space."},
	[WHO_KERNEL] = {"kernel_faults", "Kernel faults", KY_CELL_COUNT,
			"Page faults of the kernel while it ran.", .spare = 1},
};

static const struct ky_table_def who_table = KY_TABLE_DEF(
	"processes", "Pages of each process",
	"One row for each process that ran at an allocation, free or fault; the most pages allocated "
	"first.",
	who_columns, KY_TABLE_RANK);

enum { RSS_PROCESS, RSS_LAST, RSS_MAX, RSS_FIRST, RSS_FILE, RSS_ANON, RSS_SHARED, RSS_SWAP };

static const struct ky_column rss_columns[] = {
	[RSS_PROCESS] = {"process", "Process", KY_CELL_PROCESS,
			 "The process of the address space: the process that ran when the address "
			 "space changed."},
	[RSS_LAST] =
		{"last", "Last", KY_CELL_SIZE,
		 "Its resident size at the end: file, anonymous and shared pages, by their last "
		 "events, which may be before the range. A part without events counts as 0, so "
		 "this is a lower bound."},
	[RSS_MAX] = {"highest", "Highest", KY_CELL_SIZE, "The largest resident size.",
		     .bar = KY_BAR_MOST},
	[RSS_FIRST] = {"first", "First", KY_CELL_SIZE, "The first resident size in the trace.",
		       .spare = 1},
	[RSS_FILE] = {"file", "File", KY_CELL_SIZE, "File pages of the last size.", .spare = 2},
	[RSS_ANON] = {"anonymous", "Anonymous", KY_CELL_SIZE,
		      "Anonymous pages of the last size (heap, stack).", .spare = 2},
	[RSS_SHARED] = {"shared", "Shared", KY_CELL_SIZE, "Shared memory pages of the last size.",
			.spare = 3},
	[RSS_SWAP] = {"swap", "Swapped", KY_CELL_SIZE,
		      "The last swapped size; not part of the resident size.", .spare = 4},
};

static const struct ky_table_def rss_table = KY_TABLE_DEF(
	"rss", "Resident size of each process",
	"One row for each address space that changed while its own process ran, the largest first. "
	"A process that calls exec has a row for each program.",
	rss_columns, KY_TABLE_RANK);

enum { MACHINE_HOST, MACHINE_TIME, MACHINE_PARTS };

static const struct ky_column machine_columns[] = {
	[MACHINE_HOST] = {"host", "Host", KY_CELL_TEXT,
			  "The trace's host, when the report reads several traces; else empty."},
	[MACHINE_TIME] = {"dumped", "When", KY_CELL_TIMESTAMP, "The time of these values."},
	[MACHINE_PARTS + KY_MACHINE_TOTAL] = {"size", "Memory", KY_CELL_SIZE,
					      "The size of the memory, without memory that the "
					      "kernel reserved."},
	[MACHINE_PARTS + KY_MACHINE_FREE] = {"free", "Free", KY_CELL_SIZE, "Unused memory."},
	[MACHINE_PARTS + KY_MACHINE_AVAILABLE] =
		{"available", "Available", KY_CELL_SIZE,
		 "Memory that programs could get without swapping, by the kernel's estimate: free "
		 "memory and reclaimable caches."},
	[MACHINE_PARTS + KY_MACHINE_BUFFERS] = {"buffers", "Buffers", KY_CELL_SIZE,
						"Caches of block devices.", .spare = 2},
	[MACHINE_PARTS + KY_MACHINE_CACHED] = {"cached", "Cached", KY_CELL_SIZE,
					       "Caches of files, and shared memory.", .spare = 1},
	[MACHINE_PARTS + KY_MACHINE_SWAP_TOTAL] = {"swap_size", "Swap", KY_CELL_SIZE,
						   "The size of the swap space.", .spare = 3},
	[MACHINE_PARTS + KY_MACHINE_SWAP_FREE] = {"swap_free", "Swap free", KY_CELL_SIZE,
						  "Unused swap space.", .spare = 4},
};

static const struct ky_table_def machine_table = KY_TABLE_DEF(
	"machine", "Memory of the machine at the state dump",
	"One row for each trace with these values in a state dump before the end of the range; "
	"with --refresh, in the interval of the state dump.",
	machine_columns, KY_TABLE_FIXED);

static const struct ky_table_def *const tables[] = {&total_table, &who_table, &rss_table,
						    &machine_table, NULL};

enum { TABLE_TOTAL, TABLE_WHO, TABLE_RSS, TABLE_MACHINE };

/* ---- the run --------------------------------------------------------------------------- */

enum { SUM_ALLOC, SUM_FREE, SUM_USER, SUM_KERNEL };

/* An address space that changed. */
struct space {
	const struct ky_space *at; /* NULL: it did not */
	uint64_t first, max;
};

struct run {
	struct ky_model *model;
	struct ky_aggregation threads;
	uint64_t sums[4];
	int64_t net, max, min;	     /* pages */
	KY_VEC(struct space) spaces; /* by index */
};

static int add_pages(struct run *run, const struct ky_memory *memory)
{
	static const int sum_of[] = {[KY_MEMORY_ALLOC] = SUM_ALLOC, [KY_MEMORY_FREE] = SUM_FREE};
	struct ky_entry *entry = ky_aggregation_get(&run->threads, memory->thread, 0);
	int sum = SUM_KERNEL;
	uint64_t value = 1;

	if (!entry)
		return KYMO_E_MEMORY;
	if (memory->kind == KY_MEMORY_FAULT) {
		sum = memory->value ? SUM_USER : SUM_KERNEL;
	} else {
		sum = sum_of[memory->kind];
		value = memory->value;
		run->net += sum == SUM_ALLOC ? (int64_t)value : -(int64_t)value;
		run->max = run->net > run->max ? run->net : run->max;
		run->min = run->net < run->min ? run->net : run->min;
	}
	entry->sums[sum] += value;
	run->sums[sum] += value;
	return 0;
}

static uint64_t resident(const struct ky_space *space)
{
	return space->bytes[KY_RSS_FILE] + space->bytes[KY_RSS_ANON] + space->bytes[KY_RSS_SHARED];
}

static int set_rss(struct run *run, const struct ky_memory *memory)
{
	uint64_t bytes = resident(memory->space);
	struct space *space;

	while (run->spaces.len <= memory->space->index) {
		if (ky_vec_push(&run->spaces, (struct space){0}) < 0)
			return KYMO_E_MEMORY;
	}
	space = &run->spaces.data[memory->space->index];
	if (!space->at)
		*space = (struct space){.at = memory->space, .first = bytes};
	if (bytes > space->max)
		space->max = bytes;
	return 0;
}

static int on_memory(void *data, const struct ky_memory *memory)
{
	if (memory->kind == KY_MEMORY_RECLAIM)
		return 0;
	return memory->kind == KY_MEMORY_RSS ? set_rss(data, memory) : add_pages(data, memory);
}

static void report_memory_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->threads);
	ky_vec_fini(&run->spaces);
	free(run);
}

static void *report_memory_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.memory = on_memory};

	(void)options;
	return ky_report_run(model, sizeof(struct run), &listener);
}

/* ---- the tables ------------------------------------------------------------------------ */

static void report_memory_fill_pages(const struct run *run, struct ky_cell *row)
{
	ky_cell_u64(&row[TOTAL_ALLOC], run->sums[SUM_ALLOC]);
	ky_cell_u64(&row[TOTAL_FREE], run->sums[SUM_FREE]);
	ky_cell_i64(&row[TOTAL_NET], run->net);
	ky_cell_i64(&row[TOTAL_MAX], run->max);
	ky_cell_i64(&row[TOTAL_MIN], run->min);
}

static void report_memory_fill_total(const struct run *run, struct ky_table *table)
{
	unsigned int abilities = ky_model_abilities(run->model);
	struct ky_cell *row = ky_table_row(table);

	if (abilities & KY_CAN_PAGES)
		report_memory_fill_pages(run, row);
	if (abilities & KY_CAN_FAULT) {
		ky_cell_u64(&row[TOTAL_USER], run->sums[SUM_USER]);
		ky_cell_u64(&row[TOTAL_KERNEL], run->sums[SUM_KERNEL]);
	}
}

static void report_memory_fill_process(const void *data, struct ky_table *table,
				       const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	bool faults = ky_model_abilities(run->model) & KY_CAN_FAULT;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[WHO_PROCESS], run->model, entry->thread, by);
	ky_cell_u64(&row[WHO_ALLOC], entry->sums[SUM_ALLOC]);
	ky_cell_u64(&row[WHO_FREE], entry->sums[SUM_FREE]);
	ky_cell_i64(&row[WHO_NET],
		    (int64_t)entry->sums[SUM_ALLOC] - (int64_t)entry->sums[SUM_FREE]);
	if (!faults)
		return;
	ky_cell_u64(&row[WHO_USER], entry->sums[SUM_USER]);
	ky_cell_u64(&row[WHO_KERNEL], entry->sums[SUM_KERNEL]);
}

static int report_memory_fill_processes(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status =
		ky_fill_groups(table, &run->threads, by, false, report_memory_fill_process, run);

	ky_table_sort_then(table, WHO_ALLOC, false, WHO_PROCESS, true);
	return status;
}

static void fill_rss(const struct run *run, struct ky_table *table)
{
	ky_vec_foreach(&run->spaces, space) {
		struct ky_cell *row;

		if (!space->at || !space->at->thread)
			continue;
		row = ky_table_row(table);
		ky_cell_who(table, &row[RSS_PROCESS], run->model, space->at->thread, KY_BY_PROCESS);
		ky_cell_u64(&row[RSS_LAST], resident(space->at));
		ky_cell_u64(&row[RSS_MAX], space->max);
		ky_cell_u64(&row[RSS_FIRST], space->first);
		ky_cell_u64(&row[RSS_FILE], space->at->bytes[KY_RSS_FILE]);
		ky_cell_u64(&row[RSS_ANON], space->at->bytes[KY_RSS_ANON]);
		ky_cell_u64(&row[RSS_SHARED], space->at->bytes[KY_RSS_SHARED]);
		ky_cell_u64(&row[RSS_SWAP], space->at->bytes[KY_RSS_SWAP]);
	}
	ky_table_sort_then(table, RSS_MAX, false, RSS_PROCESS, true);
}

static void fill_machines(const struct run *run, const struct ky_report_result *result,
			  struct ky_table *table)
{
	for (size_t i = 0; i < ky_model_n_hosts(run->model); i++) {
		const struct ky_host *host = ky_model_host(run->model, i);
		struct ky_cell *row;

		/* What is dumped behind an interval is not known yet. */
		if (host->memory_ns == INT64_MIN ||
		    (result->is_interval && host->memory_ns < result->begin_ns))
			continue;
		row = ky_table_row(table);
		ky_cell_host(table, &row[MACHINE_HOST], run->model, host);
		ky_cell_i64(&row[MACHINE_TIME], host->memory_ns);
		for (int part = 0; part < KY_MACHINE_PARTS; part++)
			ky_cell_u64(&row[MACHINE_PARTS + part], host->memory_bytes[part]);
	}
}

static int report_memory_finish(void *data, const struct ky_report_options *options,
				struct ky_report_result *result)
{
	struct run *run = data;
	int status = report_memory_fill_processes(run, &result->tables[TABLE_WHO],
						  ky_report_by(options, KY_BY_PROCESS));

	report_memory_fill_total(run, &result->tables[TABLE_TOTAL]);
	fill_rss(run, &result->tables[TABLE_RSS]);
	fill_machines(run, result, &result->tables[TABLE_MACHINE]);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_memory = {
	.name = "memory",
	.summary = "pages allocated and freed, page faults, resident sizes",
	.description =
		"Counts the pages that the kernel allocates and frees (2^order for each event), "
		"for the whole system and by running process; page faults; and resident sizes, "
		"which the kernel records when they change.\n"
		"\n"
		"Numbers of pages are differences over the range; the state dump of kymo record "
		"has the used memory. Resident sizes are absolute, but each part (file, anonymous, "
		"shared) is known only from its first change on.",
	.events = "kmem_mm_page_alloc and kmem_mm_page_free (perf: kmem:mm_page_*); rss_stat for "
		  "resident sizes (Linux 5.6); x86_exceptions_page_fault_user and _kernel "
		  "(exceptions:*) for faults; lttng_statedump_memory. Columns and tables without "
		  "events are empty.",
	.reading =
		"The kernel allocates and frees pages all the time: look at the difference, and "
		"check whether it grows from one interval to the next (--refresh 1s). Pages that "
		"were allocated while a process ran may not belong to the process: reading files "
		"fills the page cache. When 'Last' equals 'Highest' in every interval, the process "
		"grows. A process that frees far more than it allocates gives back what others, or itself "
		"before the trace, allocated: it ends, deletes files with pages in the cache, or runs "
		"while the kernel frees pages for others. Many user faults come from the first use of new memory, or from the start "
		"of a program.",
	.example = "$ kymo report memory -n 4 my-trace\n"
		   "Trace  my-trace/kernel\n"
		   "Range  2026-11-21 18:41:03.244734111 to 2026-11-21 18:41:03.779957988\n"
		   "       535.2 ms, 129278 events\n"
		   "\n"
		   "The whole system\n"
		   "  Allocated  Freed  Difference  Highest  Lowest\n"
		   "      32945  28029        4916     7356   -4032\n"
		   "\n"
		   "Pages of each process\n"
		   "   PID  Name     Allocated  Freed  Difference\n"
		   "  8232  kymo          6719    439        6280\n"
		   "  8193  kymo          5827   2451        3376\n"
		   "  4013  python3       4048   9966       -5918\n"
		   "  8034  meson         1796    261        1535\n"
		   "  86 more rows: --limit 0 shows all\n"
		   "\n"
		   "Resident size of each process\n"
		   "    PID  Name              Last    Highest      First       File  Anonymous\n"
		   "  16614  fuzz-tsdl    375.2 MiB  375.2 MiB  374.6 MiB      0 B    375.2 MiB\n"
		   "  16615  fuzz-packet  137.0 MiB  138.9 MiB  138.8 MiB      0 B    137.0 MiB\n"
		   "   4421  cc1          112.3 MiB  112.3 MiB  86.04 MiB  25.40 MiB  86.94 MiB\n"
		   "   3461  cc1          103.0 MiB  103.0 MiB  102.2 MiB      0 B    103.0 MiB\n"
		   "  31 more rows: --limit 0 shows all\n"
		   "  columns that do not fit: Swapped, Shared\n",
	.next = "report io|which files were read\n"
		"report cpu|what the threads cost otherwise",
	.tables = tables,
	.needs = KY_CAN_PAGES,
	.needs_text = "kmem_mm_page events",
	.needs_hint = "record them with: kymo record -k 'kmem_mm_page_*' -k rss_stat",
	.ignores = KY_IGNORES_DURATION,
	.begin = report_memory_begin,
	.finish = report_memory_finish,
	.free = report_memory_free_run,
};
