/* SPDX-License-Identifier: MIT */
/* Report page-cache: reads that found their pages and those that did not; who removes whose pages. */
#include "analysis/reports/report-list.h"

/* ---- documentation --------------------------------------------------------------------- */

enum {
	READ_PROCESS,
	READ_HITS,
	READ_HIT_BYTES,
	READ_HIT_NS,
	READ_MISSES,
	READ_MISS_BYTES,
	READ_MISS_NS,
	READ_PAGES,
	READ_UNKNOWN,
};

static const struct ky_column read_columns[] = {
	[READ_PROCESS] = {"process", "Process", KY_CELL_PROCESS,
			  "The process that read; with --group-by, the thread or the name."},
	[READ_HITS] = {"hits", "Hits", KY_CELL_COUNT,
		       "Calls that read a file on a disk, and found all pages in the page cache."},
	[READ_HIT_BYTES] = {"hit_bytes", "Hit bytes", KY_CELL_SIZE, "Bytes that they returned.",
			    .spare = 1},
	[READ_HIT_NS] = {"hit_time", "Hit time", KY_CELL_DURATION, "The sum of their durations."},
	[READ_MISSES] = {"misses", "Misses", KY_CELL_COUNT,
			 "Calls that read a file and added pages to the cache, with read-ahead."},
	[READ_MISS_BYTES] = {"miss_bytes", "Miss bytes", KY_CELL_SIZE, "Bytes that they returned.",
			     .spare = 1},
	[READ_MISS_NS] = {"miss_time", "Miss time", KY_CELL_DURATION,
			  "The sum of their durations."},
	[READ_PAGES] = {"pages", "Pages", KY_CELL_COUNT, "Pages of 4 KiB that they added."},
	[READ_UNKNOWN] =
		{"unknown", "Unknown", KY_CELL_COUNT,
		 "Reads of descriptors that may not be files (opened before the trace, or "
		 "without a path in it), of which no read so far has added a page. They are in no "
		 "other column.",
		 .spare = 2},
};

static const struct ky_table_def read_table =
	KY_TABLE_DEF("reads", "Reads of files and the page cache",
		     "One row for each process that reads files, the most time in misses first.",
		     read_columns, KY_TABLE_RANK);

enum { EVICT_BY, EVICT_CALL, EVICT_VICTIM, EVICT_PAGES, EVICT_SHARE };

static const struct ky_column evict_columns[] = {
	[EVICT_BY] =
		{"process", "Removed by", KY_CELL_PROCESS,
		 "The thread that ran: a kswapd thread, or one that needed memory; or one that "
		 "deleted or cut the file.",
		 .second = true},
	[EVICT_CALL] =
		{"syscall", "In", KY_CELL_SYSCALL,
		 "Its system call: unlink, ftruncate and the like remove pages of a file that "
		 "goes; other calls, or none, took memory."},
	[EVICT_VICTIM] =
		{"victim", "Pages of", KY_CELL_PROCESS,
		 "The thread that added a page of this file last; '-' if that was before the "
		 "trace.",
		 .second = true},
	[EVICT_PAGES] = {"pages", "Pages", KY_CELL_COUNT, "Pages of 4 KiB."},
	[EVICT_SHARE] = {"share", "Share", KY_CELL_RATIO, "Their share of all removed pages.",
			 .bar = KY_BAR_MOST},
};

static const struct ky_table_def evict_table =
	KY_TABLE_DEF("evictions", "Pages that left the cache, by evictor and owner",
		     "One row for each thread, call and victim, the most pages first.",
		     evict_columns, KY_TABLE_RANK);

static const struct ky_table_def *const tables[] = {&read_table, &evict_table, NULL};

enum { TABLE_READS, TABLE_EVICTIONS };

/* ---- the run --------------------------------------------------------------------------- */

enum {
	SUM_HITS,
	SUM_HIT_BYTES,
	SUM_HIT_NS,
	SUM_MISSES,
	SUM_MISS_BYTES,
	SUM_MISS_NS,
	SUM_PAGES,
	SUM_UNKNOWN
};

/* What a thread added in its current call. */
struct added {
	int64_t begin_ns;
	uint64_t pages;
};

struct eviction {
	const struct ky_thread *victim;
	uint32_t syscall;
};

struct run {
	struct ky_model *model;
	struct ky_aggregation readers;
	struct ky_aggregation evictors; /* what: the index of the eviction */
	KY_VEC(struct added) added;	/* by thread */
	KY_VEC(struct eviction) evictions;
	struct ky_map by_eviction; /* -> index + 1 */
	struct ky_map owners;	   /* a file's key -> who added a page of it last */
	struct ky_map cached; /* a descriptor's file, by its index: it has pages in the cache */
	uint64_t removed;
};

static int page_cache_add_pages(struct run *run, const struct ky_cached *cached)
{
	const struct ky_thread *thread = cached->thread;
	struct added *added;

	if (!thread)
		return 0;
	while (run->added.len <= thread->index) {
		if (ky_vec_push(&run->added, (struct added){INT64_MIN, 0}) < 0)
			return KYMO_E_MEMORY;
	}
	added = &run->added.data[thread->index];
	if (thread->syscall.id != KY_NO_SYSCALL) {
		if (added->begin_ns != thread->syscall.begin_ns)
			*added = (struct added){thread->syscall.begin_ns, 0};
		added->pages += cached->pages;
	}
	return ky_map_set(&run->owners, cached->file, (void *)thread);
}

static int remove_pages(struct run *run, const struct ky_cached *cached)
{
	const struct ky_thread *victim = ky_map_get(&run->owners, cached->file);
	uint32_t syscall = cached->thread ? cached->thread->syscall.id : KY_NO_SYSCALL;
	uint64_t key = (victim ? victim->index + UINT64_C(1) : 0) << 32 | syscall;
	uintptr_t found = (uintptr_t)ky_map_get(&run->by_eviction, key);
	struct ky_entry *entry;

	if (!found) {
		found = run->evictions.len + 1;
		if (ky_vec_push(&run->evictions, (struct eviction){victim, syscall}) < 0 ||
		    ky_map_set(&run->by_eviction, key, (void *)found) < 0)
			return KYMO_E_MEMORY;
	}
	entry = ky_aggregation_get(&run->evictors, cached->thread, found - 1);
	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[SUM_PAGES] += cached->pages;
	run->removed += cached->pages;
	return 0;
}

static int report_page_cache_on_cached(void *data, const struct ky_cached *cached)
{
	return cached->is_added ? page_cache_add_pages(data, cached) : remove_pages(data, cached);
}

static int report_page_cache_on_io(void *data, const struct ky_io *io)
{
	struct run *run = data;
	const struct ky_call *call = io->call;
	uint32_t thread = call->thread->index;
	uint64_t ns = ky_ns_between(call->begin_ns, call->end_ns), pages = 0;
	enum ky_file_kind kind = io->file ? io->file->kind : KY_FILE_UNKNOWN;
	struct ky_entry *entry;

	if ((io->kind != KY_IO_READ && io->kind != KY_IO_COPY) ||
	    (kind != KY_FILE_DISK && kind != KY_FILE_UNKNOWN))
		return 0;
	if (thread < run->added.len && run->added.data[thread].begin_ns == call->begin_ns)
		pages = run->added.data[thread].pages;
	entry = ky_aggregation_get(&run->readers, call->thread, 0);
	if (!entry)
		return KYMO_E_MEMORY;
	/* A descriptor without a path is of a file if a read of it has added pages. */
	if (pages && io->file && ky_map_set(&run->cached, io->file->index, run) < 0)
		return KYMO_E_MEMORY;
	if (!pages && kind == KY_FILE_UNKNOWN &&
	    !(io->file && ky_map_get(&run->cached, io->file->index))) {
		entry->sums[SUM_UNKNOWN]++;
		return 0;
	}
	entry->sums[pages ? SUM_MISSES : SUM_HITS]++;
	entry->sums[pages ? SUM_MISS_BYTES : SUM_HIT_BYTES] += io->bytes;
	entry->sums[pages ? SUM_MISS_NS : SUM_HIT_NS] += ns;
	entry->sums[SUM_PAGES] += pages;
	return 0;
}

static void report_page_cache_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->readers);
	ky_aggregation_fini(&run->evictors);
	ky_vec_fini(&run->added);
	ky_vec_fini(&run->evictions);
	ky_map_fini(&run->by_eviction);
	ky_map_fini(&run->owners);
	ky_map_fini(&run->cached);
	free(run);
}

static void *report_page_cache_begin(struct ky_model *model,
				     const struct ky_report_options *options)
{
	struct ky_listener listener = {.cached = report_page_cache_on_cached,
				       .io = report_page_cache_on_io};

	(void)options;
	return ky_report_run(model, sizeof(struct run), &listener);
}

/* ---- the tables ------------------------------------------------------------------------ */

static void fill_reader(const void *data, struct ky_table *table, const struct ky_entry *entry,
			enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row;

	if (!entry->sums[SUM_HITS] && !entry->sums[SUM_MISSES])
		return;
	row = ky_table_row(table);
	ky_cell_who(table, &row[READ_PROCESS], run->model, entry->thread, by);
	for (int i = SUM_HITS; i <= SUM_UNKNOWN; i++)
		ky_cell_u64(&row[READ_HITS + i], entry->sums[i]);
}

static void fill_eviction(const void *data, struct ky_table *table, const struct ky_entry *entry,
			  enum ky_by by)
{
	const struct run *run = data;
	const struct eviction *eviction = &run->evictions.data[entry->what];
	struct ky_cell *row = ky_table_row(table);

	if (entry->thread)
		ky_cell_who(table, &row[EVICT_BY], run->model, entry->thread, by);
	if (eviction->syscall != KY_NO_SYSCALL)
		ky_cell_text(table, &row[EVICT_CALL],
			     ky_model_syscall_name(run->model, eviction->syscall));
	if (eviction->victim)
		ky_cell_who(table, &row[EVICT_VICTIM], run->model, eviction->victim, by);
	ky_cell_u64(&row[EVICT_PAGES], entry->sums[SUM_PAGES]);
	ky_cell_f64(&row[EVICT_SHARE], ky_part(entry->sums[SUM_PAGES], run->removed));
}

static int report_page_cache_finish(void *data, const struct ky_report_options *options,
				    struct ky_report_result *result)
{
	struct run *run = data;
	struct ky_table *reads = &result->tables[TABLE_READS];
	struct ky_table *evictions = &result->tables[TABLE_EVICTIONS];
	int status = ky_fill_groups(reads, &run->readers, ky_report_by(options, KY_BY_PROCESS),
				    false, fill_reader, run);

	if (status >= 0)
		status = ky_fill_groups(evictions, &run->evictors,
					ky_report_by(options, KY_BY_THREAD), true, fill_eviction,
					run);
	ky_table_sort_then(reads, READ_MISS_NS, false, READ_HIT_NS, false);
	ky_table_sort(evictions, EVICT_PAGES, false);
	return status < 0 ? status : ky_report_note_files(result);
}

const struct ky_report ky_report_page_cache = {
	.name = "page-cache",
	.summary = "page cache: reads that hit and missed, evicted pages",
	.description =
		"Divides the reads of files into those that found their pages in the cache and "
		"those that did not: during a miss, the reading thread adds pages to the cache, "
		"by itself or as read-ahead. A read that waits for pages that another thread is "
		"reading counts as a hit.\n"
		"\n"
		"The owner of a file's pages is the thread that added one last. Table evictions "
		"has the pages that leave the cache, by the thread that removes them and the "
		"owner.",
	.events =
		"mm_filemap_add_to_page_cache, mm_filemap_delete_from_page_cache and system "
		"calls; the default of kymo record has no mm_filemap events: kymo record -k "
		"default -k 'mm_filemap_*_page_cache'. Paths (--syscall-content=paths) tell files "
		"from pipes and sockets.",
	.reading =
		"Many misses of a process that reads the same files again mean that something "
		"evicts its pages: table evictions names it. An evictor with calls such as read or "
		"write of a large file fills the cache with pages without a second use "
		"(posix_fadvise(POSIX_FADV_DONTNEED), O_DIRECT, or a memory limit for its control "
		"group). kswapd threads evict for all.",
	.example = "$ kymo report page-cache -n 2 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-26 15:41:21.252891084 to 2026-11-26 15:41:21.583890001\n"
		   "       331.0 ms, 44076 events\n"
		   "\n"
		   "Reads of files and the page cache\n"
		   "   PID  Name  Hits  Hit time  Misses  Miss time  Pages\n"
		   "  8610  tar     12  80.21 us      40   12.17 ms   1280\n"
		   "\n"
		   "Pages that left the cache, by evictor and owner\n"
		   "   TID  Removed by  In    TID  Pages of  Pages    Share\n"
		   "    98  kswapd0          8610  tar        9120  80.12 %\n"
		   "  8620  rm      unlinkat 8610  tar        1280  11.24 %\n",
	.next = "report io-latency -t files|which files were slow to read\n"
		"report memory|who needs the memory",
	.tables = tables,
	.needs = KY_CAN_CACHE | KY_CAN_SYSCALLS,
	.needs_text = "mm_filemap events and system calls",
	.needs_hint = "record them with: kymo record -k default -k 'mm_filemap_*_page_cache'",
	.begin = report_page_cache_begin,
	.finish = report_page_cache_finish,
	.free = report_page_cache_free_run,
};
