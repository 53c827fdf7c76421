/* SPDX-License-Identifier: MIT */
/* Report net: packets of network interfaces. */
#include "analysis/reports/report-list.h"

/* ---- documentation --------------------------------------------------------------------- */

enum { NET_NAME, NET_HOST, NET_WAY, NET_PACKETS, NET_BYTES, NET_RATE, NET_MEAN, NET_FAILED };

static const struct ky_column net_columns[] = {
	[NET_NAME] = {"netif", "Interface", KY_CELL_NETIF, "The network interface's name."},
	[NET_HOST] = {"host", "Host", KY_CELL_TEXT,
		      "The trace's host, when the report reads several traces; else empty."},
	[NET_WAY] =
		{"way", "Way", KY_CELL_TEXT,
		 "'sent': passed to the driver, with the link layer's header; 'received': passed "
		 "from the driver to the protocols, without this header."},
	[NET_PACKETS] = {"packets", "Packets", KY_CELL_COUNT,
			 "How many packets. Packets that the network card splits or joins "
			 "(segmentation offload) count as one."},
	[NET_BYTES] = {"bytes", "Bytes", KY_CELL_SIZE,
		       "The sum of their lengths. The longest bar is the largest value.",
		       .bar = KY_BAR_MOST},
	[NET_RATE] = {"rate", "Bytes/s", KY_CELL_RATE, "Bytes per second of the range."},
	[NET_MEAN] = {"mean", "Mean size", KY_CELL_SIZE, "The mean length of a packet.",
		      .spare = 1},
	[NET_FAILED] = {"failed", "Failed", KY_CELL_COUNT,
			"Packets that the driver refused; the other columns leave them out.",
			.spare = 2},
};

static const struct ky_table_def net_table =
	KY_TABLE_DEF("interfaces", "Packets of each network interface",
		     "One row for each interface and way, by name.", net_columns, KY_TABLE_FIXED);

enum { WHO_PROCESS, WHO_NETIF, WHO_SENT, WHO_PACKETS_SENT, WHO_RECEIVED, WHO_PACKETS_RECEIVED };

static const struct ky_column who_columns[] = {
	[WHO_PROCESS] =
		{"process", "Process", KY_CELL_PROCESS,
		 "The process that ran when the packet was sent or received; '-' when the CPU was "
		 "idle. For sent packets this is mostly the sender; received packets arrive by "
		 "interrupt, while any process runs."},
	[WHO_NETIF] = {"netif", "Interface", KY_CELL_NETIF, "The network interface's name."},
	[WHO_SENT] = {"sent", "Sent", KY_CELL_SIZE, "Bytes sent while it ran."},
	[WHO_PACKETS_SENT] = {"packets_sent", "Packets sent", KY_CELL_COUNT, "Packets sent."},
	[WHO_RECEIVED] = {"received", "Received", KY_CELL_SIZE, "Bytes received while it ran."},
	[WHO_PACKETS_RECEIVED] = {"packets_received", "Packets received", KY_CELL_COUNT,
				  "Packets received."},
};

static const struct ky_table_def who_table =
	KY_TABLE_DEF("processes", "Packets by running process",
		     "One row for each process and interface, the most bytes sent first.",
		     who_columns, KY_TABLE_RANK);

static const struct ky_table_def *const tables[] = {&net_table, &who_table, NULL};

enum { TABLE_NET, TABLE_WHO };

/* ---- the run --------------------------------------------------------------------------- */

/* Sums: sent, then received. */
enum { SUM_BYTES, SUM_PACKETS = SUM_BYTES + 2, SUM_FAILED = SUM_PACKETS + 2 };

struct run {
	struct ky_model *model;
	struct ky_aggregation netifs, threads; /* what: the interface's index */
};

static int report_net_on_packet(void *data, const struct ky_packet_seen *packet)
{
	struct run *run = data;
	struct ky_entry *entries[2] = {
		ky_aggregation_get(&run->netifs, NULL, packet->netif->index),
		ky_aggregation_get(&run->threads, packet->thread, packet->netif->index),
	};

	for (int i = 0; i < 2; i++) {
		if (!entries[i])
			return KYMO_E_MEMORY;
		entries[i]->sums[SUM_FAILED + packet->received] += packet->failed;
		if (packet->failed)
			continue;
		entries[i]->sums[SUM_BYTES + packet->received] += packet->bytes;
		entries[i]->sums[SUM_PACKETS + packet->received]++;
	}
	return 0;
}

static void report_net_free_run(void *data)
{
	struct run *run = data;

	ky_aggregation_fini(&run->netifs);
	ky_aggregation_fini(&run->threads);
	free(run);
}

static void *report_net_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct ky_listener listener = {.packet = report_net_on_packet};

	(void)options;
	return ky_report_run(model, sizeof(struct run), &listener);
}

/* ---- the tables ------------------------------------------------------------------------ */

static void fill_way(const struct run *run, struct ky_table *table, const struct ky_entry *entry,
		     int way)
{
	static const char *const ways[] = {"sent", "received"};
	const struct ky_netif *netif = ky_model_netif(run->model, entry->what);
	uint64_t range_ns = ky_report_range_ns(run->model);
	struct ky_cell *row = ky_table_row(table);

	ky_cell_text(table, &row[NET_NAME], netif->name);
	ky_cell_host(table, &row[NET_HOST], run->model, netif->host);
	ky_cell_text(table, &row[NET_WAY], ways[way]);
	ky_cell_u64(&row[NET_PACKETS], entry->sums[SUM_PACKETS + way]);
	ky_cell_u64(&row[NET_BYTES], entry->sums[SUM_BYTES + way]);
	if (range_ns)
		ky_cell_f64(&row[NET_RATE], ky_part(entry->sums[SUM_BYTES + way], range_ns) * 1e9);
	if (entry->sums[SUM_PACKETS + way])
		ky_cell_f64(&row[NET_MEAN],
			    ky_part(entry->sums[SUM_BYTES + way], entry->sums[SUM_PACKETS + way]));
	ky_cell_u64(&row[NET_FAILED], entry->sums[SUM_FAILED + way]);
}

static void report_net_fill_process(const void *data, struct ky_table *table,
				    const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	struct ky_cell *row = ky_table_row(table);

	ky_cell_who(table, &row[WHO_PROCESS], run->model, entry->thread, by);
	ky_cell_text(table, &row[WHO_NETIF], ky_model_netif(run->model, entry->what)->name);
	ky_cell_u64(&row[WHO_SENT], entry->sums[SUM_BYTES]);
	ky_cell_u64(&row[WHO_PACKETS_SENT], entry->sums[SUM_PACKETS]);
	ky_cell_u64(&row[WHO_RECEIVED], entry->sums[SUM_BYTES + 1]);
	ky_cell_u64(&row[WHO_PACKETS_RECEIVED], entry->sums[SUM_PACKETS + 1]);
}

static int report_net_fill_processes(struct run *run, struct ky_table *table, enum ky_by by)
{
	int status = ky_fill_groups(table, &run->threads, by, true, report_net_fill_process, run);

	ky_table_sort_then(table, WHO_SENT, false, WHO_RECEIVED, false);
	return status;
}

static int report_net_finish(void *data, const struct ky_report_options *options,
			     struct ky_report_result *result)
{
	struct run *run = data;
	int status = report_net_fill_processes(run, &result->tables[TABLE_WHO],
					       ky_report_by(options, KY_BY_PROCESS));

	ky_vec_foreach(&run->netifs.entries, entry) {
		fill_way(run, &result->tables[TABLE_NET], *entry, 0);
		fill_way(run, &result->tables[TABLE_NET], *entry, 1);
	}
	ky_table_sort(&result->tables[TABLE_NET], NET_NAME, true);
	return status < 0 ? status : ky_report_note_losses(result);
}

const struct ky_report ky_report_net = {
	.name = "net",
	.summary = "packets of network interfaces: how many, how large",
	.description =
		"Counts the packets that drivers of network interfaces send and receive, and their "
		"lengths.\n"
		"\n"
		"The packets have their headers, and include retransmissions and acknowledgements. "
		"Report io shows the bytes that programs write to and read from sockets.",
	.events = "net_dev_xmit for sent packets; net_if_receive_skb (in the kernel and in LTTng "
		  "before 2.8: netif_receive_skb) for received packets.",
	.reading =
		"Compare with 'Net read' and 'Net written' of report io: much larger values here "
		"come from headers of many small packets, or from retransmissions. A mean size "
		"above the link's maximum means that the network card splits packets itself, which "
		"is good. Failed packets mean that the driver's queue was full. Receiving packets "
		"takes CPU time from the running process: report softirq shows how much (NET_RX).",
	.example = "$ kymo report net -n 3 my-trace\n"
		   "Trace  my-trace\n"
		   "Range  2026-11-21 05:30:38.865245630 to 2026-11-21 05:30:42.616398100\n"
		   "       3.751 s, 24723 events\n"
		   "\n"
		   "Packets of each network interface\n"
		   "  Interface  Way       Packets      Bytes    Bytes/s  Mean size  Faile"
		   "d\n"
		   "  lo         sent          608  1.210 MiB  338281.10  2.038 KiB       "
		   "0  ███████\n"
		   "  lo         received      608  1.202 MiB  336011.94  2.024 KiB       "
		   "0  ███████\n"
		   "\n"
		   "Packets by running process\n"
		   "  PID  Name         Interface       Sent  Packets sent   Received  Pac"
		   "kets received\n"
		   "  323  work         lo         1.210 MiB           608  1.200 MiB     "
		   "          606\n"
		   "   14  ksoftirqd/0  lo             0 B               0  2.102 KiB     "
		   "            2\n"
		   "\n"
		   "Next:  kymo report io my-trace   the processes and sockets of these by"
		   "tes\n",
	.next = "report io|the processes and sockets of these bytes",
	.tables = tables,
	.needs = KY_CAN_NET,
	.needs_text = "network events",
	.needs_hint = "record them with: kymo record -k 'net_*'",
	.ignores = KY_IGNORES_DURATION,
	.begin = report_net_begin,
	.finish = report_net_finish,
	.free = report_net_free_run,
};
