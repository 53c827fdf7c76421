/* SPDX-License-Identifier: MIT */
/* Reports io-latency and io-log: how long calls on files took, and requests of block devices. */
#include "analysis/reports/report-list.h"

#include "analysis/state/errno-name.h"

/* ---- documentation --------------------------------------------------------------------- */

#define KIND_HELP                                                                                \
	"'open': open, openat, openat2, creat, socket, dup, dup2, dup3; 'read': read, pread64, " \
	"readv, preadv, recv, recvfrom, recvmsg, recvmmsg; 'write': write, pwrite64, writev, "   \
	"pwritev, send, sendto, sendmsg, sendmmsg, vmsplice; 'sync': fsync, fdatasync, sync, "   \
	"syncfs, sync_file_range, msync; 'copy': sendfile, splice, copy_file_range, tee."

enum { KIND_TEXT, KIND_STATS };

static const struct ky_column kind_columns[] = {
	[KIND_TEXT] = {"kind", "Kind", KY_CELL_TEXT, KIND_HELP},
	KY_STATS_COLUMN_DEFS(KIND_STATS, "calls"),
};

static const struct ky_table_def kind_table = KY_TABLE_DEF(
	"kinds", "Calls on files", "One row for each kind of call.", kind_columns, KY_TABLE_FIXED);

enum { DISK_NAME, DISK_HOST, DISK_STAGE, DISK_STATS };

static const struct ky_column disk_columns[] = {
	[DISK_NAME] = {"disk", "Device", KY_CELL_DISK,
		       "The block device's name; '254,0' (its numbers) without a state dump."},
	[DISK_HOST] = {"host", "Host", KY_CELL_TEXT,
		       "The trace's host, when the report reads several traces; else empty."},
	[DISK_STAGE] =
		{"stage", "Stage", KY_CELL_TEXT,
		 "'queue': from the insertion into the queue to the issue; 'device': from the "
		 "issue to the completion."},
	KY_STATS_COLUMN_DEFS(DISK_STATS, "requests"),
};

static const struct ky_table_def disk_table = KY_TABLE_DEF(
	"disks", "Requests of block devices",
	"One row for each device and stage. Requests that were issued without a queue have no queue "
	"time.",
	disk_columns, KY_TABLE_FIXED);

enum { WHO_PROCESS, WHO_KIND, WHO_STATS };

static const struct ky_column who_columns[] = {
	[WHO_PROCESS] =
		{"process", "Thread", KY_CELL_PROCESS,
		 "Thread ID, process ID and last name; with --group-by, the process or the common "
		 "name of threads.",
		 .group = true},
	[WHO_KIND] = {"kind", "Kind", KY_CELL_TEXT, "As in the first table."},
	KY_STATS_COLUMN_DEFS(WHO_STATS, "calls"),
};

static const struct ky_table_def who_table =
	KY_DETAIL_TABLE_DEF("threads", "Calls on files of each thread",
			    "One row for each kind of call of each thread; the largest sums first.",
			    who_columns, KY_TABLE_RANK);

enum { FILE_PATH, FILE_KIND, FILE_STATS };

static const struct ky_column file_columns[] = {
	[FILE_PATH] = {"file", "File", KY_CELL_PATH,
		       "The path of the open, a socket's peer, or other known data."},
	[FILE_KIND] = {"kind", "Kind", KY_CELL_TEXT, "As in the first table."},
	KY_STATS_COLUMN_DEFS(FILE_STATS, "calls"),
};

static const struct ky_table_def file_table = KY_DETAIL_TABLE_DEF(
	"files", "Calls on each file",
	"One row for each kind of call on each file; the largest sums first. Copies are in the "
	"rows of the file that they read.",
	file_columns, KY_TABLE_RANK);

enum {
	CALL_KIND,
	CALL_BEGIN,
	CALL_END,
	CALL_DURATION,
	CALL_SYSCALL,
	CALL_BYTES,
	CALL_PROCESS,
	CALL_FD,
	CALL_FILE,
	CALL_TO,
	CALL_ERROR
};

#define CALL_COLUMN_DEFS(is_group)                                                                 \
	[CALL_KIND] = {"kind", "Kind", KY_CELL_TEXT, KIND_HELP, .group = is_group, .spare = 3},    \
	[CALL_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When the call began.", .spare = 4},  \
	[CALL_END] = {"end", "End", KY_CELL_TIMESTAMP, "When it ended.", .spare = 1},              \
	[CALL_DURATION] = {"duration", "Duration", KY_CELL_DURATION, "The duration."},             \
	[CALL_SYSCALL] = {"syscall", "Call", KY_CELL_SYSCALL, "The system call."},                 \
	[CALL_BYTES] =                                                                             \
		{"bytes", "Bytes", KY_CELL_SIZE,                                                   \
		 "The bytes that the call moved; empty for failed calls, and for calls that move " \
		 "no bytes.",                                                                      \
		 .spare = 2},                                                                      \
	[CALL_PROCESS] = {"process", "Thread", KY_CELL_PROCESS,                                    \
			  "The thread that made the call, with its last name."},                   \
	[CALL_FD] = {"fd", "FD", KY_CELL_NUMBER, "The descriptor that the call used or returned.", \
		     .spare = 5},                                                                  \
	[CALL_FILE] = {"file", "File", KY_CELL_PATH, "What the descriptor refers to."},            \
	[CALL_TO] = {"to", "To", KY_CELL_PATH, "The file that a copy writes.", .spare = 6},        \
	[CALL_ERROR] = {"error", "Error", KY_CELL_TEXT, "The error that it returned, if any.",     \
			.spare = 7}

static const struct ky_column top_columns[] = {CALL_COLUMN_DEFS(true)};
static const struct ky_column log_columns[] = {CALL_COLUMN_DEFS(false)};

static const struct ky_table_def top_table = KY_TABLE_DEF(
	"top", "The longest calls", "One row for each call, the longest of each kind first.",
	top_columns, KY_TABLE_TOP);

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "Calls on files", "One row for each call, in the order of their ends.",
		     log_columns, KY_TABLE_LOG);

static const struct ky_column freq_columns[] = {
	KY_FREQ_COLUMN_DEFS("kind", "Kind", KY_CELL_TEXT, "As in the first table."),
};

static const struct ky_table_def freq_table =
	KY_TABLE_DEF("freq", "Distribution of durations",
		     "One row for each step of duration, for each kind of call, from the shortest.",
		     freq_columns, KY_TABLE_FREQ);

static const struct ky_table_def *const latency_tables[] = {&kind_table, &disk_table, &who_table,
							    &file_table, &top_table,  &freq_table,
							    &log_table,	 NULL};
static const struct ky_table_def *const log_tables[] = {&log_table, NULL};

enum { TABLE_KINDS, TABLE_DISKS, TABLE_WHO, TABLE_FILES, TABLE_TOP, TABLE_FREQ, TABLE_LOG };

/* ---- the run --------------------------------------------------------------------------- */

enum { QUEUE, DEVICE, N_STAGES };

static const char *const stage_texts[] = {[QUEUE] = "queue", [DEVICE] = "device"};

struct io_record {
	enum ky_io_kind kind;
	uint32_t syscall;
	const struct ky_thread *thread;
	const struct ky_file *file, *to;
	int64_t begin_ns, end_ns, ret, fd; /* -1: none */
	uint64_t bytes;
};

struct run {
	struct ky_model *model;
	bool log_only;
	struct ky_aggregation threads; /* what: the kind */
	struct ky_aggregation files;   /* what: the file's index * KY_IO_KINDS + kind */
	struct ky_aggregation disks;   /* what: the disk's index * N_STAGES + stage */
	struct ky_stats stats[KY_IO_KINDS];
	struct ky_freq freqs[KY_IO_KINDS];
	struct ky_records tops[KY_IO_KINDS], log;
	bool wants_log;
};

/* Calls that have no descriptor, or return none. */
static int64_t fd_of(const struct ky_io *io)
{
	if (io->kind == KY_IO_OPEN)
		return io->call->ret >= 0 ? io->call->ret : -1;
	return io->file ? io->call->args[0] : -1;
}

static struct io_record make_record(const struct ky_io *io)
{
	return (struct io_record){
		.kind = io->kind,
		.syscall = io->call->syscall,
		.thread = io->call->thread,
		.file = io->file,
		.to = io->to,
		.begin_ns = io->call->begin_ns,
		.end_ns = io->call->end_ns,
		.ret = io->call->ret,
		.fd = fd_of(io),
		.bytes = io->bytes,
	};
}

static int report_io_latency_add_file(struct run *run, const struct ky_io *io, uint64_t ns)
{
	struct ky_entry *entry;

	if (!io->file)
		return 0;
	entry = ky_aggregation_get(&run->files, NULL,
				   (uint64_t)io->file->index * KY_IO_KINDS + io->kind);
	return entry ? ky_stats_add(&entry->stats, ns) : KYMO_E_MEMORY;
}

static int report_io_latency_on_io(void *data, const struct ky_io *io)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(io->call->begin_ns, io->call->end_ns);
	struct io_record record = make_record(io);
	struct ky_entry *entry;

	if (run->wants_log && ky_records_add(&run->log, 0, &record) < 0)
		return KYMO_E_MEMORY;
	if (run->log_only)
		return 0;
	entry = ky_aggregation_get(&run->threads, io->call->thread, io->kind);
	if (!entry || ky_stats_add(&entry->stats, ns) < 0 ||
	    ky_stats_add(&run->stats[io->kind], ns) < 0 ||
	    report_io_latency_add_file(run, io, ns) < 0)
		return KYMO_E_MEMORY;
	ky_freq_add(&run->freqs[io->kind], ns);
	return ky_records_add(&run->tops[io->kind], ns, &record);
}

static int add_stage(struct run *run, const struct ky_request *request, int stage, int64_t begin_ns,
		     int64_t end_ns)
{
	struct ky_entry *entry;

	if (begin_ns == INT64_MIN || end_ns == INT64_MIN)
		return 0;
	entry = ky_aggregation_get(&run->disks, NULL,
				   (uint64_t)request->disk->index * N_STAGES + (uint64_t)stage);
	return entry ? ky_stats_add(&entry->stats, ky_ns_between(begin_ns, end_ns)) : KYMO_E_MEMORY;
}

static int report_io_latency_on_request(void *data, const struct ky_request *request)
{
	struct run *run = data;
	int status = add_stage(run, request, QUEUE, request->queue_ns, request->issue_ns);

	return status < 0 ? status
			  : add_stage(run, request, DEVICE, request->issue_ns, request->end_ns);
}

static void report_io_latency_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->threads);
	ky_aggregation_fini(&run->files);
	ky_aggregation_fini(&run->disks);
	for (int i = 0; i < KY_IO_KINDS; i++) {
		ky_stats_fini(&run->stats[i]);
		ky_records_fini(&run->tops[i]);
	}
	ky_records_fini(&run->log);
	free(run);
}

static struct run *report_io_latency_begin_run(struct ky_model *model,
					       const struct ky_report_options *options,
					       bool log_only)
{
	struct ky_listener listener = {.io = report_io_latency_on_io,
				       .request = log_only ? NULL : report_io_latency_on_request};
	struct run *run = ky_report_run(model, sizeof(*run), &listener);

	if (!run)
		return NULL;
	run->log_only = log_only;
	run->wants_log = log_only || ky_report_wants(options, &ky_report_io_latency, TABLE_LOG);
	for (int i = 0; i < KY_IO_KINDS; i++)
		ky_records_init(&run->tops[i], sizeof(struct io_record),
				ky_report_keep(options, &ky_report_io_latency, TABLE_TOP), true);
	ky_records_init(&run->log, sizeof(struct io_record),
			log_only ? ky_report_keep(options, &ky_report_io_log, 0)
				 : ky_report_keep(options, &ky_report_io_latency, TABLE_LOG),
			false);
	return run;
}

static void *begin_latency(struct ky_model *model, const struct ky_report_options *options)
{
	return report_io_latency_begin_run(model, options, false);
}

static void *begin_log(struct ky_model *model, const struct ky_report_options *options)
{
	return report_io_latency_begin_run(model, options, true);
}

/* ---- the tables ------------------------------------------------------------------------ */

static void fill_kind(const struct run *run, struct ky_table *table, struct ky_table *freqs, int i)
{
	struct ky_cell kind = {0}, *row;

	if (!run->stats[i].count)
		return;
	row = ky_table_row(table);
	ky_cell_text(table, &row[KIND_TEXT], ky_io_kind_text((enum ky_io_kind)i));
	ky_fill_stats(&row[KIND_STATS], &run->stats[i]);
	ky_cell_text(freqs, &kind, ky_io_kind_text((enum ky_io_kind)i));
	ky_fill_freq(freqs, &run->freqs[i], &kind);
}

static void fill_kinds(const struct run *run, struct ky_table *table, struct ky_table *freqs)
{
	for (int i = KY_IO_OPEN; i < KY_IO_KINDS; i++)
		fill_kind(run, table, freqs, i);
}

static void report_io_latency_fill_disk(const struct run *run, struct ky_table *table,
					const struct ky_entry *entry)
{
	const struct ky_disk *disk = ky_model_disk(run->model, entry->what / N_STAGES);
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[DISK_NAME], disk->name);
	ky_cell_host(table, &row[DISK_HOST], run->model, disk->host);
	ky_cell_text(table, &row[DISK_STAGE], stage_texts[entry->what % N_STAGES]);
	ky_fill_stats(&row[DISK_STATS], &entry->stats);
}

static void report_io_latency_fill_disks(const struct run *run, struct ky_table *table)
{
	ky_vec_foreach(&run->disks.entries, it)
		report_io_latency_fill_disk(run, table, *it);
	ky_table_sort_then(table, DISK_NAME, true, DISK_STAGE, false);
}

static void report_io_latency_fill_thread(const void *data, struct ky_table *table,
					  const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[WHO_PROCESS], run->model, entry->thread, by);
	ky_cell_text(table, &row[WHO_KIND], ky_io_kind_text((enum ky_io_kind)entry->what));
	ky_fill_stats(&row[WHO_STATS], &entry->stats);
}

static int report_io_latency_fill_threads(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status =
		ky_fill_groups(table, &run->threads, by, true, report_io_latency_fill_thread, run);

	ky_table_sort_groups(table, WHO_STATS + KY_STATS_TOTAL, false);
	return status;
}

static void report_io_latency_fill_file(const struct run *run, struct ky_table *table,
					const struct ky_entry *entry)
{
	enum ky_io_kind kind = (enum ky_io_kind)(entry->what % KY_IO_KINDS);
	struct ky_cell *row = ky_table_row(table);

	ky_cell_file(table, &row[FILE_PATH], ky_model_file(run->model, entry->what / KY_IO_KINDS));
	ky_cell_text(table, &row[FILE_KIND], ky_io_kind_text(kind));
	ky_fill_stats(&row[FILE_STATS], &entry->stats);
}

static void report_io_latency_fill_files(const struct run *run, struct ky_table *table)
{
	ky_vec_foreach(&run->files.entries, it)
		report_io_latency_fill_file(run, table, *it);
	ky_table_sort(table, FILE_STATS + KY_STATS_TOTAL, false);
}

static void report_io_latency_fill_single(const void *data, struct ky_table *table,
					  struct ky_cell *row, const void *record)
{
	const struct run *run = data;
	const struct io_record *io = record;

	ky_cell_text(table, &row[CALL_KIND], ky_io_kind_text(io->kind));
	ky_cell_i64(&row[CALL_BEGIN], io->begin_ns);
	ky_cell_i64(&row[CALL_END], io->end_ns);
	ky_cell_u64(&row[CALL_DURATION], ky_ns_between(io->begin_ns, io->end_ns));
	ky_cell_text(table, &row[CALL_SYSCALL], ky_model_syscall_name(run->model, io->syscall));
	if (io->kind != KY_IO_OPEN && io->kind != KY_IO_SYNC && io->ret >= 0)
		ky_cell_u64(&row[CALL_BYTES], io->bytes);
	ky_cell_thread(table, &row[CALL_PROCESS], run->model, io->thread);
	if (io->fd >= 0)
		ky_cell_i64(&row[CALL_FD], io->fd);
	ky_cell_file(table, &row[CALL_FILE], io->file);
	ky_cell_file(table, &row[CALL_TO], io->to);
	if (ky_is_error(io->ret))
		ky_cell_errno(table, &row[CALL_ERROR], (int)-io->ret);
}

static int finish_latency(void *data, const struct ky_report_options *options,
			  struct ky_report_result *result)
{
	struct run *run = data;
	int status = report_io_latency_fill_threads(run, &result->tables[TABLE_WHO],
						    ky_report_by(options, KY_BY_THREAD));

	fill_kinds(run, &result->tables[TABLE_KINDS], &result->tables[TABLE_FREQ]);
	report_io_latency_fill_disks(run, &result->tables[TABLE_DISKS]);
	report_io_latency_fill_files(run, &result->tables[TABLE_FILES]);
	for (int i = KY_IO_OPEN; i < KY_IO_KINDS; i++)
		ky_fill_records(&result->tables[TABLE_TOP], &run->tops[i],
				report_io_latency_fill_single, run);
	ky_fill_records(&result->tables[TABLE_LOG], &run->log, report_io_latency_fill_single, run);
	return status < 0 ? status : ky_report_note_files(result);
}

static int finish_log(void *data, const struct ky_report_options *options,
		      struct ky_report_result *result)
{
	struct run *run = data;

	(void)options;
	ky_fill_records(&result->tables[0], &run->log, report_io_latency_fill_single, run);
	return ky_report_note_files(result);
}

#define EVENTS                                                                                    \
	"System calls with their arguments; lttng_statedump_file_descriptor for files that were " \
	"open before. If the trace has paths as addresses (perf, and kymo record without "        \
	"--syscall-content), files have the names of their descriptors."

const struct ky_report ky_report_io_latency = {
	.name = "io-latency",
	.summary = "how long open, read, write, sync took; block devices",
	.description =
		"Measures the system calls on files from entry to exit, by kind, by thread and by "
		"file; and requests of block devices from the insertion into the queue to the "
		"issue to the device, and from the issue to the completion.\n"
		"\n"
		"The report measures calls with entry and exit in the trace, with failed calls. "
		"Reads from pipes, terminals and sockets include the wait for a writer.",
	.events = EVENTS " block_rq_insert, block_rq_issue and block_rq_complete for devices.",
	.reading =
		"Reads and writes of files take microseconds when the page cache serves them, else "
		"as long as the device: compare with the device's row. Syncs always wait for the "
		"device. A mean far above the median means that a few calls waited: see the "
		"longest calls, and --min 5ms -t log. When 'queue' is long and 'device' is short, "
		"the device has more requests than it handles at once; when 'device' is long, the "
		"device is slow. Durations of reads from sockets and pipes depend on the other "
		"side.",
	.example = "$ kymo report io-latency -n 3 -t kinds -t disks -t top my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Calls on files\n"
		   "  Kind   Count      Time      Mean       Max       p50       p90      "
		   " p99\n"
		   "  open     119  26.85 ms  225.6 us  14.34 ms  54.02 us  383.0 us  528."
		   "4 us\n"
		   "  read     803  242.1 ms  301.4 us  15.41 ms  72.19 us  489.5 us  5.27"
		   "6 ms\n"
		   "  write    901  115.7 ms  128.5 us  30.07 ms  40.19 us  218.1 us  643."
		   "1 us\n"
		   "  sync     191  137.4 ms  719.5 us  17.41 ms  2.223 us  790.5 us  15.2"
		   "7 ms\n"
		   "  copy       2  3.402 ms  1.701 ms  3.385 ms  17.18 us  3.385 ms  3.38"
		   "5 ms\n"
		   "  --wide shows: p99.9, Stdev, Min\n"
		   "\n"
		   "Requests of block devices\n"
		   "  Device  Stage   Count      Time      Mean       Max       p50       "
		   "p99\n"
		   "  vda     device    151  85.03 ms  563.1 us  6.934 ms  195.6 us  4.014"
		   " ms\n"
		   "  --wide shows: p99.9, Stdev, Min, p90\n"
		   "\n"
		   "The longest calls\n"
		   "  Duration  Call        TID  PID  Name        File\n"
		   "  open\n"
		   "  14.34 ms  openat      327  323  disk-io     /mnt/d0\n"
		   "  532.2 us  openat      327  323  disk-io     /mnt/d1\n"
		   "  509.5 us  openat        1    1  init        /proc/sys/vm/drop_caches\n"
		   "  read\n"
		   "  15.41 ms  read        326  323  tcp-server  accepted on internet soc"
		   "ket\n"
		   "  15.19 ms  read        323  323  work        pipe\n"
		   "  12.15 ms  pread64     327  323  disk-io     /mnt/d2\n"
		   "  write\n"
		   "  30.07 ms  write         1    1  init        /proc/sys/vm/drop_caches\n"
		   "  2.857 ms  write       323  323  work        127.0.0.1:7777\n"
		   "  2.365 ms  write       327  323  disk-io     /mnt/d0\n"
		   "  sync\n"
		   "  17.41 ms  fsync       327  323  disk-io     /mnt/d1\n"
		   "  15.23 ms  fdatasync   327  323  disk-io     /mnt/d0\n"
		   "  13.51 ms  fsync       327  323  disk-io     /mnt/d1\n"
		   "  copy\n"
		   "  3.385 ms  sendfile64  360  360  cat         /mnt/d1\n"
		   "  17.18 us  sendfile64  360  360  cat         /mnt/d1\n"
		   "  2002 more rows: --limit 0 shows all\n"
		   "  --wide shows: To, FD, Begin, Bytes, End\n",
	.next = "report io-latency -t files|which files are slow\n"
		"report breakdown --of syscall:NAME|where the time of a call goes\n"
		"report block|the requests of the devices",
	.tables = latency_tables,
	KY_NEEDS_SYSCALLS,
	.begin = begin_latency,
	.finish = finish_latency,
	.free = report_io_latency_free_run,
};

const struct ky_report ky_report_io_log = {
	.name = "io-log",
	.summary = "every call on a file: time, duration, thread, file",
	.description =
		"Lists every system call that opens, reads, writes, synchronises or copies files, "
		"with its duration, its bytes and the file of its descriptor.\n"
		"\n"
		"The list contains only calls with entry and exit in the trace.",
	.events = EVENTS,
	.reading =
		"Select rows: --comm, --tid and --pid for a program, --min for slow calls, --begin "
		"and --end for a time, --sort duration for the longest calls first. The sums are "
		"in report io, the statistics in report io-latency.",
	.example = "$ kymo report io-log --min 10ms -n 5 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Calls on files\n"
		   "  Duration  Call       TID  PID  Name        File\n"
		   "  10.80 ms  read         1    1  init        pipe\n"
		   "  14.34 ms  openat     327  323  disk-io     /mnt/d0\n"
		   "  15.41 ms  read       326  323  tcp-server  accepted on internet sock"
		   "et\n"
		   "  15.23 ms  fdatasync  327  323  disk-io     /mnt/d0\n"
		   "  17.41 ms  fsync      327  323  disk-io     /mnt/d1\n"
		   "  6 more rows: --limit 0 shows all\n"
		   "  --wide shows: FD, Begin, Kind, Bytes, End\n"
		   "\n"
		   "Next:  kymo report io-latency my-trace   the same calls, added up\n",
	.next = "report io-latency|the same calls, added up",
	.tables = log_tables,
	KY_NEEDS_SYSCALLS,
	.ignores = KY_IGNORES_BY,
	.begin = begin_log,
	.finish = finish_log,
	.free = report_io_latency_free_run,
};
