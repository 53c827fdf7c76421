/* SPDX-License-Identifier: MIT */
/* Report io: who moved how many bytes, to and from what. */
#include "analysis/reports/report-list.h"

/* ---- documentation --------------------------------------------------------------------- */

enum {
	WHO_PROCESS,
	WHO_THREADS,
	WHO_BYTES,
	WHO_READ,
	WHO_WRITTEN,
	WHO_DISK_READ,
	WHO_DISK_WRITTEN,
	WHO_NET_READ,
	WHO_NET_WRITTEN,
	WHO_OTHER_READ,
	WHO_OTHER_WRITTEN,
	WHO_UNKNOWN_READ,
	WHO_UNKNOWN_WRITTEN,
	WHO_CALLS,
	WHO_BLOCK_READ,
	WHO_BLOCK_WRITTEN,
};

static const struct ky_column who_columns[] = {
	[WHO_PROCESS] =
		{"process", "Process", KY_CELL_PROCESS,
		 "Process ID, and the name of its first thread; with --group-by, the thread, or "
		 "the common name of threads."},
	[WHO_THREADS] = {"threads", "Threads", KY_CELL_COUNT, "How many of its threads did I/O.",
			 .spare = 9},
	[WHO_BYTES] = {"bytes", "Total", KY_CELL_SIZE,
		       "Bytes that its system calls read and wrote. The longest bar is the largest "
		       "value.",
		       .bar = KY_BAR_MOST, .spare = 1},
	[WHO_READ] = {"read", "Read", KY_CELL_SIZE,
		      "Bytes that its system calls read, by their return values."},
	[WHO_WRITTEN] = {"written", "Written", KY_CELL_SIZE,
			 "Bytes that its system calls wrote, by their return values."},
	[WHO_DISK_READ] = {"disk_read", "Disk read", KY_CELL_SIZE,
			   "Bytes read from files (paths outside of /dev, /proc and /sys): from "
			   "the page cache or from a disk.",
			   .spare = 2},
	[WHO_DISK_WRITTEN] = {"disk_written", "Disk written", KY_CELL_SIZE,
			      "Bytes written to files.", .spare = 2},
	[WHO_NET_READ] = {"net_read", "Net read", KY_CELL_SIZE,
			  "Bytes read from sockets other than AF_UNIX and netlink.", .spare = 3},
	[WHO_NET_WRITTEN] = {"net_written", "Net written", KY_CELL_SIZE,
			     "Bytes written to such sockets.", .spare = 3},
	[WHO_OTHER_READ] = {"other_read", "Other read", KY_CELL_SIZE,
			    "Bytes read from pipes, devices, /proc, /sys, AF_UNIX sockets and "
			    "other special files.",
			    .spare = 5},
	[WHO_OTHER_WRITTEN] = {"other_written", "Other written", KY_CELL_SIZE,
			       "Bytes written to such files.", .spare = 5},
	[WHO_UNKNOWN_READ] = {"unknown_read", "Unknown read", KY_CELL_SIZE,
			      "Bytes read from descriptors that were open before the trace and are "
			      "not in a state dump, or are only 'socket' in the state dump.",
			      .spare = 6},
	[WHO_UNKNOWN_WRITTEN] = {"unknown_written", "Unknown written", KY_CELL_SIZE,
				 "Bytes written to such descriptors.", .spare = 6},
	[WHO_CALLS] = {"calls", "Calls", KY_CELL_COUNT,
		       "System calls that read, write, sync or copy.", .spare = 4},
	[WHO_BLOCK_READ] = {"block_read", "Block read", KY_CELL_SIZE,
			    "Bytes that the process's block requests read, with read-ahead.",
			    .spare = 7},
	[WHO_BLOCK_WRITTEN] =
		{"block_written", "Block written", KY_CELL_SIZE,
		 "Bytes that the process's block requests wrote; kernel threads often write the "
		 "data later.",
		 .spare = 7},
};

static const struct ky_table_def who_table = KY_TABLE_DEF(
	"processes", "I/O of each process",
	"One row for each process that did I/O, the most bytes first.", who_columns, KY_TABLE_RANK);

enum {
	FILE_PATH,
	FILE_HOST,
	FILE_KIND,
	FILE_BYTES,
	FILE_READ,
	FILE_WRITTEN,
	FILE_READS,
	FILE_WRITES,
	FILE_OPENS,
	FILE_SYNCS,
	FILE_TIME
};

static const struct ky_column file_columns[] = {
	[FILE_PATH] =
		{"file", "File", KY_CELL_PATH,
		 "The path of the open, a socket's peer, or other known data; 'fd 5 of 323' for "
		 "the unknown descriptor 5 of process 323."},
	[FILE_HOST] = {"host", "Host", KY_CELL_TEXT,
		       "The trace's host, when the report reads several traces; else empty."},
	[FILE_KIND] = {"kind", "Kind", KY_CELL_TEXT,
		       "'disk', 'net', 'pipe', 'other' or 'unknown', as in the table above."},
	[FILE_BYTES] = {"bytes", "Total", KY_CELL_SIZE,
			"Bytes read and written. The longest bar is the largest value.",
			.bar = KY_BAR_MOST, .spare = 1},
	[FILE_READ] = {"read", "Read", KY_CELL_SIZE, "Bytes that system calls read from it."},
	[FILE_WRITTEN] = {"written", "Written", KY_CELL_SIZE,
			  "Bytes that system calls wrote to it."},
	[FILE_READS] = {"reads", "Reads", KY_CELL_COUNT, "Calls that read, with failed calls.",
			.spare = 4},
	[FILE_WRITES] = {"writes", "Writes", KY_CELL_COUNT, "Calls that wrote, with failed calls.",
			 .spare = 4},
	[FILE_OPENS] = {"opens", "Opens", KY_CELL_COUNT,
			"Calls that create a descriptor of it (open, dup, socket), with failed "
			"calls.",
			.spare = 5},
	[FILE_SYNCS] = {"syncs", "Syncs", KY_CELL_COUNT, "Calls that synchronised the file.",
			.spare = 6},
	[FILE_TIME] = {"total", "Time", KY_CELL_DURATION, "The time in all these calls.",
		       .spare = 3},
};

static const struct ky_table_def file_table =
	KY_TABLE_DEF("files", "I/O of each file", "One row for each file, the most bytes first.",
		     file_columns, KY_TABLE_RANK);

enum { DISK_NAME, DISK_HOST, DISK_REQUESTS, DISK_SECTORS, DISK_READ, DISK_WRITTEN, DISK_TIME };

static const struct ky_column disk_columns[] = {
	[DISK_NAME] = {"disk", "Device", KY_CELL_DISK,
		       "The block device's name; '254,0' (its numbers) without a state dump."},
	[DISK_HOST] = {"host", "Host", KY_CELL_TEXT,
		       "The trace's host, when the report reads several traces; else empty."},
	[DISK_REQUESTS] = {"requests", "Requests", KY_CELL_COUNT, "Completed requests."},
	[DISK_SECTORS] = {"sectors", "Sectors", KY_CELL_COUNT, "Their sectors of 512 bytes.",
			  .spare = 2},
	[DISK_READ] = {"read", "Read", KY_CELL_SIZE, "Bytes that they read."},
	[DISK_WRITTEN] = {"written", "Written", KY_CELL_SIZE, "Bytes that they wrote."},
	[DISK_TIME] = {"latency", "Mean latency", KY_CELL_DURATION,
		       "The mean time from the issue to the completion."},
};

static const struct ky_table_def disk_table = KY_TABLE_DEF(
	"disks", "Requests of each block device",
	"One row for each device with requests that completed, by name; report block has more.",
	disk_columns, KY_TABLE_FIXED);

enum { NET_NAME, NET_HOST, NET_RECEIVED, NET_SENT, NET_PACKETS_IN, NET_PACKETS_OUT };

static const struct ky_column net_columns[] = {
	[NET_NAME] = {"netif", "Interface", KY_CELL_NETIF, "The network interface's name."},
	[NET_HOST] = {"host", "Host", KY_CELL_TEXT,
		      "The trace's host, when the report reads several traces; else empty."},
	[NET_RECEIVED] = {"received", "Received", KY_CELL_SIZE,
			  "Bytes of received packets, without the link layer's header."},
	[NET_SENT] = {"sent", "Sent", KY_CELL_SIZE,
		      "Bytes of packets that the driver took, with the link layer's header."},
	[NET_PACKETS_IN] = {"packets_in", "Packets in", KY_CELL_COUNT, "Received packets."},
	[NET_PACKETS_OUT] = {"packets_out", "Packets out", KY_CELL_COUNT,
			     "Packets that the driver took."},
};

static const struct ky_table_def net_table = KY_TABLE_DEF(
	"interfaces", "Packets of each network interface",
	"One row for each interface, by name; report net has more.", net_columns, KY_TABLE_FIXED);

static const struct ky_table_def *const tables[] = {&who_table, &file_table, &disk_table,
						    &net_table, NULL};

enum { TABLE_WHO, TABLE_FILES, TABLE_DISKS, TABLE_NET };

/* ---- the run --------------------------------------------------------------------------- */

/* Sums of threads: bytes by kind, reading and writing side by side. */
enum {
	SUM_DISK,
	SUM_NET = SUM_DISK + 2,
	SUM_OTHER = SUM_NET + 2,
	SUM_UNKNOWN = SUM_OTHER + 2,
	SUM_CALLS = SUM_UNKNOWN + 2,
	SUM_BLOCK,
};

/* Sums of files. */
enum { SUM_READ, SUM_WRITTEN, SUM_READS, SUM_WRITES, SUM_OPENS, SUM_SYNCS, SUM_TIME };

/* Sums of disks; stats is the device's time. */
enum { SUM_DISK_READ, SUM_DISK_WRITTEN, SUM_SECTORS, SUM_REQUESTS };

/* Sums of interfaces. */
enum { SUM_RECEIVED, SUM_SENT, SUM_PACKETS_IN, SUM_PACKETS_OUT };

struct run {
	struct ky_model *model;
	struct ky_aggregation threads, files, disks, netifs;
};

static int report_io_sum_of(const struct ky_file *file)
{
	switch (file ? file->kind : KY_FILE_UNKNOWN) {
	case KY_FILE_DISK:
		return SUM_DISK;
	case KY_FILE_NET:
		return SUM_NET;
	case KY_FILE_PIPE:
	case KY_FILE_OTHER:
		return SUM_OTHER;
	default:
		return SUM_UNKNOWN;
	}
}

/* @file was read (or @write: written to). */
static int report_io_move(struct run *run, struct ky_entry *thread, const struct ky_file *file,
			  bool write, uint64_t bytes, uint64_t ns)
{
	struct ky_entry *entry;

	thread->sums[report_io_sum_of(file) + write] += bytes;
	if (!file)
		return 0;
	entry = ky_aggregation_get(&run->files, NULL, file->index);
	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[write ? SUM_WRITTEN : SUM_READ] += bytes;
	entry->sums[write ? SUM_WRITES : SUM_READS]++;
	entry->sums[SUM_TIME] += ns;
	return 0;
}

static int report_io_touch(struct run *run, const struct ky_io *io, int sum, uint64_t ns)
{
	struct ky_entry *entry;

	if (!io->file)
		return 0;
	entry = ky_aggregation_get(&run->files, NULL, io->file->index);
	if (!entry)
		return KYMO_E_MEMORY;
	entry->sums[sum]++;
	entry->sums[SUM_TIME] += ns;
	return 0;
}

static int report_io_on_io(void *data, const struct ky_io *io)
{
	struct run *run = data;
	uint64_t ns = ky_ns_between(io->call->begin_ns, io->call->end_ns);
	struct ky_entry *thread;
	int status;

	if (io->kind == KY_IO_OPEN)
		return report_io_touch(run, io, SUM_OPENS, ns);
	thread = ky_aggregation_get(&run->threads, io->call->thread, 0);
	if (!thread)
		return KYMO_E_MEMORY;
	thread->sums[SUM_CALLS]++;
	switch (io->kind) {
	case KY_IO_READ:
		return report_io_move(run, thread, io->file, false, io->bytes, ns);
	case KY_IO_WRITE:
		return report_io_move(run, thread, io->file, true, io->bytes, ns);
	case KY_IO_COPY:
		status = report_io_move(run, thread, io->file, false, io->bytes, ns);
		return status < 0 ? status
				  : report_io_move(run, thread, io->to, true, io->bytes, ns);
	default:
		return report_io_touch(run, io, SUM_SYNCS, ns);
	}
}

static int report_io_on_request(void *data, const struct ky_request *request)
{
	struct run *run = data;
	struct ky_entry *disk = ky_aggregation_get(&run->disks, NULL, request->disk->index);
	struct ky_entry *thread = ky_aggregation_get(&run->threads, request->thread, 0);
	uint64_t bytes = request->n_sectors * 512;

	if (!disk || !thread)
		return KYMO_E_MEMORY;
	disk->sums[SUM_REQUESTS]++;
	disk->sums[SUM_SECTORS] += request->n_sectors;
	if (request->rwbs & KY_RWBS_READ) {
		disk->sums[SUM_DISK_READ] += bytes;
		thread->sums[SUM_BLOCK] += bytes;
	} else if (request->rwbs & KY_RWBS_WRITE) {
		disk->sums[SUM_DISK_WRITTEN] += bytes;
		thread->sums[SUM_BLOCK + 1] += bytes;
	}
	if (request->issue_ns == INT64_MIN)
		return 0;
	return ky_stats_add(&disk->stats, ky_ns_between(request->issue_ns, request->end_ns));
}

static int report_io_on_packet(void *data, const struct ky_packet_seen *packet)
{
	struct run *run = data;
	struct ky_entry *entry = ky_aggregation_get(&run->netifs, NULL, packet->netif->index);

	if (!entry)
		return KYMO_E_MEMORY;
	if (packet->failed)
		return 0;
	entry->sums[packet->received ? SUM_RECEIVED : SUM_SENT] += packet->bytes;
	entry->sums[packet->received ? SUM_PACKETS_IN : SUM_PACKETS_OUT]++;
	return 0;
}

static void report_io_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->threads);
	ky_aggregation_fini(&run->files);
	ky_aggregation_fini(&run->disks);
	ky_aggregation_fini(&run->netifs);
	free(run);
}

static void *report_io_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.io = report_io_on_io,
				       .request = report_io_on_request,
				       .packet = report_io_on_packet};

	return ky_report_run(model, sizeof(struct run), &listener);
}

/* ---- the tables ------------------------------------------------------------------------ */

static void fill_who(const void *data, struct ky_table *table, const struct ky_entry *entry,
		     enum ky_by by)
{
	const struct run *run = data;
	uint64_t sums[2] = {0, 0};
	struct ky_cell *row;

	if (!entry->thread)
		return;
	row = ky_table_row(table);
	ky_cell_who(table, &row[WHO_PROCESS], run->model, entry->thread, by);
	if (by != KY_BY_THREAD)
		ky_cell_u64(&row[WHO_THREADS], entry->n_threads);
	for (int i = 0; i < SUM_CALLS; i++) {
		sums[i % 2] += entry->sums[i];
		ky_cell_u64(&row[WHO_DISK_READ + i], entry->sums[i]);
	}
	ky_cell_u64(&row[WHO_BYTES], sums[0] + sums[1]);
	ky_cell_u64(&row[WHO_READ], sums[0]);
	ky_cell_u64(&row[WHO_WRITTEN], sums[1]);
	ky_cell_u64(&row[WHO_CALLS], entry->sums[SUM_CALLS]);
	ky_cell_u64(&row[WHO_BLOCK_READ], entry->sums[SUM_BLOCK]);
	ky_cell_u64(&row[WHO_BLOCK_WRITTEN], entry->sums[SUM_BLOCK + 1]);
}

static int report_io_fill_processes(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status = ky_fill_groups(table, &run->threads, by, false, fill_who, run);

	ky_table_sort_then(table, WHO_BYTES, false, WHO_PROCESS, true);
	return status;
}

static void report_io_fill_files(const struct run *run, struct ky_table *table)
{
	ky_vec_foreach(&run->files.entries, it) {
		const struct ky_entry *entry = *it;
		const struct ky_file *file = ky_model_file(run->model, entry->what);
		struct ky_cell *row = ky_table_row(table);

		ky_cell_file(table, &row[FILE_PATH], file);
		ky_cell_host(table, &row[FILE_HOST], run->model, file->host);
		ky_cell_text(table, &row[FILE_KIND], ky_file_kind_text(file->kind));
		ky_cell_u64(&row[FILE_BYTES], entry->sums[SUM_READ] + entry->sums[SUM_WRITTEN]);
		for (int i = SUM_READ; i <= SUM_TIME; i++)
			ky_cell_u64(&row[FILE_READ + i], entry->sums[i]);
	}
	ky_table_sort_then(table, FILE_BYTES, false, FILE_PATH, true);
}

static void report_io_fill_disks(const struct run *run, struct ky_table *table)
{
	ky_vec_foreach(&run->disks.entries, it) {
		const struct ky_entry *entry = *it;
		const struct ky_moments times = ky_stats_moments(&entry->stats);
		const struct ky_disk *disk = ky_model_disk(run->model, entry->what);
		struct ky_cell *row = ky_table_row(table);

		ky_cell_text(table, &row[DISK_NAME], disk->name);
		ky_cell_host(table, &row[DISK_HOST], run->model, disk->host);
		ky_cell_u64(&row[DISK_REQUESTS], entry->sums[SUM_REQUESTS]);
		ky_cell_u64(&row[DISK_SECTORS], entry->sums[SUM_SECTORS]);
		ky_cell_u64(&row[DISK_READ], entry->sums[SUM_DISK_READ]);
		ky_cell_u64(&row[DISK_WRITTEN], entry->sums[SUM_DISK_WRITTEN]);
		if (times.count)
			ky_cell_f64(&row[DISK_TIME], ky_moments_mean(&times));
	}
	ky_table_sort(table, DISK_NAME, true);
}

static void report_io_fill_netif(const struct run *run, struct ky_table *table,
				 const struct ky_entry *entry)
{
	const struct ky_netif *netif = ky_model_netif(run->model, entry->what);
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[NET_NAME], netif->name);
	ky_cell_host(table, &row[NET_HOST], run->model, netif->host);
	for (int i = SUM_RECEIVED; i <= SUM_PACKETS_OUT; i++)
		ky_cell_u64(&row[NET_RECEIVED + i], entry->sums[i]);
}

static void fill_netifs(const struct run *run, struct ky_table *table)
{
	ky_vec_foreach(&run->netifs.entries, it)
		report_io_fill_netif(run, table, *it);
	ky_table_sort(table, NET_NAME, true);
}

static int report_io_finish(void *data, const struct ky_report_options *options,
			    struct ky_report_result *result)
{
	struct run *run = data;
	int status = report_io_fill_processes(run, &result->tables[TABLE_WHO],
					      ky_report_by(options, KY_BY_PROCESS));

	report_io_fill_files(run, &result->tables[TABLE_FILES]);
	report_io_fill_disks(run, &result->tables[TABLE_DISKS]);
	fill_netifs(run, &result->tables[TABLE_NET]);
	return status < 0 ? status : ky_report_note_files(result);
}

const struct ky_report ky_report_io = {
	.name = "io",
	.summary = "bytes moved: by process, file, block device, network interface",
	.description =
		"Adds up the bytes that system calls read and wrote, by their return values, and "
		"finds by their descriptors whether they used a file, a connection or a pipe. "
		"Other tables have the bytes of block devices and network interfaces. These "
		"differ, because the kernel serves reads from memory, and writes reach the device "
		"later.\n"
		"\n"
		"The report follows descriptors through open, socket, accept, connect, dup, fcntl, "
		"pipe, close, fork and exec, from the state dump on. The kinds: 'disk' is any path "
		"outside of /dev, /proc and /sys (no event shows whether the file system is on a "
		"disk); 'net' is any socket except AF_UNIX and netlink. sendfile, splice, "
		"copy_file_range and tee count as a read of one file and a write of the other. "
		"recvmmsg and sendmmsg return a number of messages, so their bytes are unknown and "
		"count as 0.\n"
		"\n"
		"Only calls with entry and exit in the trace count. I/O through mapped memory and "
		"io_uring makes no such calls.",
	.events =
		"System calls with their arguments; lttng_statedump_file_descriptor for files that "
		"were open before; block_rq_insert, block_rq_issue and block_rq_complete for "
		"devices; net_dev_xmit and net_if_receive_skb (netif_receive_skb) for interfaces. "
		"A table without events is empty. If the trace has paths as addresses (perf, and "
		"kymo record without --syscall-content), files have the names of their descriptors.",
	.reading =
		"Compare 'Disk read' with 'Block read': a smaller 'Block read' means that the page "
		"cache served the reads; a larger one is read-ahead. kworker threads write data of "
		"other threads. Many calls with few bytes are small I/O: see report syscalls. A "
		"large 'unknown' means that the trace has no state dump, or that events were lost. "
		"Report io-latency has the durations of calls, report block those of devices.",
	.example = "$ kymo report io -n 3 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "I/O of each process\n"
		   "  PID  Name      Total       Read    Written  Disk read  Disk written\n"
		   "  323  work  15.84 MiB  5.672 MiB  10.17 MiB  4.500 MiB     9.000 MiB "
		   " █████████\n"
		   "  360  cat   1.000 MiB  512.0 KiB  512.0 KiB  512.0 KiB         0 B   "
		   " ▋\n"
		   "  362  gzip  512.5 KiB  512.0 KiB    543 B    512.0 KiB       543 B   "
		   " ▎\n"
		   "  40 more rows: --limit 0 shows all\n"
		   "  --wide shows: Threads, Block read, Block written, Unknown read,\n"
		   "    Unknown written, Other read, Other written, Calls, Net read, Net w"
		   "ritten\n"
		   "\n"
		   "I/O of each file\n"
		   "  File     Kind      Total       Read    Written  Reads  Writes  Opens"
		   "      Time\n"
		   "  /mnt/d1  disk  2.750 MiB  1.250 MiB  1.500 MiB     26      24      4"
		   "  58.25 ms\n"
		   "  /mnt/d0  disk  2.250 MiB  768.0 KiB  1.500 MiB     24      24      3"
		   "  66.60 ms\n"
		   "  /mnt/d2  disk  2.000 MiB  1.000 MiB  1.000 MiB     32      16      4"
		   "  44.82 ms\n"
		   "  69 more rows: --limit 0 shows all\n"
		   "  --wide shows: Syncs\n"
		   "\n"
		   "Requests of each block device\n"
		   "  Device  Requests  Sectors       Read    Written  Mean latency\n"
		   "  vda          151    39280  10.01 MiB  9.172 MiB      563.1 us\n"
		   "\n"
		   "Packets of each network interface\n"
		   "  Interface   Received       Sent  Packets in  Packets out\n"
		   "  lo         1.202 MiB  1.210 MiB         608          608\n"
		   "\n"
		   "Next:  kymo report io-latency my-trace   how long the calls took\n"
		   "       kymo report block my-trace   how long the requests of the devic"
		   "es took\n",
	.next = "report io-latency|how long the calls took\n"
		"report block|how long the requests of the devices took",
	.tables = tables,
	KY_NEEDS_SYSCALLS,
	.begin = report_io_begin,
	.finish = report_io_finish,
	.free = report_io_free_run,
};
