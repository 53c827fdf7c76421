/* SPDX-License-Identifier: MIT */
/* Interrupts, requests of block devices, packets, waits at locks: what the state model tells of them. */
#include "base/error.h"
#include "sql/sql-sources.h"

static struct ky_sql_cell *sql_devices_row(struct ky_sql_pass *pass, int64_t begin_ns,
					   int64_t end_ns)
{
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return NULL;
	ky_sql_put_time(&row[0], begin_ns);
	ky_sql_put_time(&row[1], end_ns);
	if (begin_ns != INT64_MIN && end_ns != INT64_MIN)
		ky_sql_put(&row[2], (int64_t)((uint64_t)end_ns - (uint64_t)begin_ns));
	return row;
}

/* ---- irq ------------------------------------------------------------------------------ */

enum {
	IRQ_RAISED = 3,
	IRQ_KIND,
	IRQ_NR,
	IRQ_NAME,
	IRQ_CPU,
	IRQ_TID,
	IRQ_PID,
	IRQ_COMM,
	IRQ_NESTED,
	IRQ_HOST,
};

static const struct ky_sql_column irq_columns[] = {
	KY_SQL_BEGIN_COL("when the handler began, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "when it ended, ns since 1970"),
	KY_SQL_COL("duration", "INTEGER", "ns, with the handlers that interrupted it"),
	KY_SQL_COL("raised", "INTEGER", "softirqs: when it was raised, ns since 1970"),
	KY_SQL_COL("kind", "TEXT", "'irq', 'softirq' or 'vector' (of the CPU itself)"),
	KY_SQL_COL("nr", "INTEGER", "its number"),
	KY_SQL_COL("name", "TEXT", "its name"),
	KY_SQL_COL("cpu", "INTEGER", "the CPU"),
	KY_SQL_THREAD_COLS("", "the thread that it interrupted"),
	KY_SQL_COL("nested", "INTEGER", "1: it interrupted another handler"),
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

static int sql_devices_on_irq(void *data, const struct ky_irq *irq)
{
	static const char *const kinds[KY_IRQ_KINDS] = {
		[KY_IRQ_HARD] = "irq", [KY_IRQ_SOFT] = "softirq", [KY_IRQ_VECTOR] = "vector"};
	struct ky_sql_pass *pass = data;
	struct ky_sql_cell *row = sql_devices_row(pass, irq->begin_ns, irq->end_ns);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_time(&row[IRQ_RAISED], irq->raise_ns);
	ky_sql_put_name(&row[IRQ_KIND], kinds[irq->line->kind]);
	ky_sql_put(&row[IRQ_NR], irq->line->nr);
	ky_sql_put_name(&row[IRQ_NAME], irq->line->name);
	ky_sql_put(&row[IRQ_CPU], irq->cpu->id);
	ky_sql_put_thread(&pass->rows, &row[IRQ_TID], irq->thread);
	ky_sql_put(&row[IRQ_NESTED], irq->nested);
	ky_sql_put_host(&row[IRQ_HOST], irq->cpu->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_devices_listen_irq(struct ky_sql_pass *pass, struct ky_listener *listener,
				  struct kymo_error *err)
{
	(void)pass;
	(void)err;
	listener->irq = sql_devices_on_irq;
	return 0;
}

const struct ky_sql_source ky_sql_source_irq = {
	.name = "irq",
	.about = "interrupt handlers that ran, in the order of their ends",
	.columns = irq_columns,
	.n_columns = sizeof(irq_columns) / sizeof(*irq_columns),
	.listen = sql_devices_listen_irq,
	.by_end = true,
};

/* ---- block_request -------------------------------------------------------------------- */

enum {
	RQ_QUEUED = 3,
	RQ_ISSUED,
	RQ_DISK,
	RQ_OPERATION,
	RQ_SECTOR,
	RQ_BYTES,
	RQ_SYNC,
	RQ_ERROR,
	RQ_AHEAD,
	RQ_TID,
	RQ_PID,
	RQ_COMM,
	RQ_HOST,
};

static const struct ky_sql_column request_columns[] = {
	KY_SQL_BEGIN_COL("when it came to the queue, or to the device, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "when it completed, ns since 1970"),
	KY_SQL_COL("duration", "INTEGER", "ns, in the queue and in the device"),
	KY_SQL_COL("queued", "INTEGER", "when it came to the queue, ns since 1970"),
	KY_SQL_COL("issued", "INTEGER", "when the device got it, ns since 1970"),
	KY_SQL_COL("disk", "TEXT", "the device's name"),
	KY_SQL_COL("operation", "TEXT", "'read', 'write', 'discard' or 'flush'"),
	KY_SQL_COL("sector", "INTEGER", "its first sector, of 512 bytes"),
	KY_SQL_COL("bytes", "INTEGER", "its size in bytes"),
	KY_SQL_COL("sync", "INTEGER", "1: someone waits for it"),
	KY_SQL_COL("error", "INTEGER", "the number of its error; NULL: none"),
	KY_SQL_COL("ahead", "INTEGER", "how many requests were before it when it came"),
	KY_SQL_THREAD_COLS("", "the thread that it is for"),
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

static const char *sql_devices_operation(const struct ky_request *request)
{
	if (request->rwbs & KY_RWBS_FLUSH)
		return "flush";
	if (request->rwbs & KY_RWBS_DISCARD)
		return "discard";
	return request->rwbs & KY_RWBS_WRITE  ? "write"
	       : request->rwbs & KY_RWBS_READ ? "read"
					      : NULL;
}

static int sql_devices_on_request(void *data, const struct ky_request *request)
{
	struct ky_sql_pass *pass = data;
	int64_t begin_ns = request->queue_ns != INT64_MIN ? request->queue_ns : request->issue_ns;
	struct ky_sql_cell *row = sql_devices_row(pass, begin_ns, request->end_ns);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_time(&row[RQ_QUEUED], request->queue_ns);
	ky_sql_put_time(&row[RQ_ISSUED], request->issue_ns);
	ky_sql_put_name(&row[RQ_DISK], request->disk->name);
	ky_sql_put_name(&row[RQ_OPERATION], sql_devices_operation(request));
	ky_sql_put(&row[RQ_SECTOR], (int64_t)request->sector);
	ky_sql_put(&row[RQ_BYTES], (int64_t)(request->n_sectors * 512));
	ky_sql_put(&row[RQ_SYNC], (request->rwbs & KY_RWBS_SYNC) != 0);
	if (request->error)
		ky_sql_put(&row[RQ_ERROR], request->error);
	ky_sql_put(&row[RQ_AHEAD], request->n_ahead);
	ky_sql_put_thread(&pass->rows, &row[RQ_TID], request->thread);
	ky_sql_put_host(&row[RQ_HOST], request->disk->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_devices_listen_requests(struct ky_sql_pass *pass, struct ky_listener *listener,
				       struct kymo_error *err)
{
	(void)pass;
	(void)err;
	listener->request = sql_devices_on_request;
	listener->flush = sql_devices_on_request;
	return 0;
}

const struct ky_sql_source ky_sql_source_block_request = {
	.name = "block_request",
	.about = "requests of block devices that completed, in that order",
	.columns = request_columns,
	.n_columns = sizeof(request_columns) / sizeof(*request_columns),
	.listen = sql_devices_listen_requests,
	.by_end = true,
};

/* ---- network -------------------------------------------------------------------------- */

enum {
	NET_TIME,
	NET_INTERFACE,
	NET_DIRECTION,
	NET_BYTES,
	NET_FAILED,
	NET_TID,
	NET_HOST = NET_TID + 3
};

static const struct ky_sql_column network_columns[] = {
	KY_SQL_BEGIN_COL("ns since 1970"),
	KY_SQL_COL("interface", "TEXT", "the network interface"),
	KY_SQL_COL("direction", "TEXT", "'received' or 'sent'"),
	KY_SQL_COL("bytes", "INTEGER", "its size in bytes"),
	KY_SQL_COL("failed", "INTEGER", "1: the driver did not take it"),
	KY_SQL_THREAD_COLS("", "the thread that ran: often not the sender or the receiver"),
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

static int sql_devices_on_packet(void *data, const struct ky_packet_seen *packet)
{
	struct ky_sql_pass *pass = data;
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_time(&row[NET_TIME], packet->ns);
	ky_sql_put_name(&row[NET_INTERFACE], packet->netif->name);
	ky_sql_put_name(&row[NET_DIRECTION], packet->received ? "received" : "sent");
	ky_sql_put(&row[NET_BYTES], (int64_t)packet->bytes);
	ky_sql_put(&row[NET_FAILED], packet->failed);
	ky_sql_put_thread(&pass->rows, &row[NET_TID], packet->thread);
	ky_sql_put_host(&row[NET_HOST], packet->netif->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_devices_listen_packets(struct ky_sql_pass *pass, struct ky_listener *listener,
				      struct kymo_error *err)
{
	(void)pass;
	(void)err;
	listener->packet = sql_devices_on_packet;
	return 0;
}

const struct ky_sql_source ky_sql_source_network = {
	.name = "network",
	.about = "packets of network interfaces, in the order of time",
	.columns = network_columns,
	.n_columns = sizeof(network_columns) / sizeof(*network_columns),
	.listen = sql_devices_listen_packets,
	.by_end = true,
};

/* ---- lock_wait ------------------------------------------------------------------------ */

enum {
	LOCK_TID = 3,
	LOCK_ADDRESS = LOCK_TID + 3,
	LOCK_RET,
	LOCK_HOLDER_TID,
	LOCK_HELD_FROM = LOCK_HOLDER_TID + 3,
	LOCK_HELD_UNTIL,
	LOCK_HOLDERS,
	LOCK_IS_LOCK,
	LOCK_HOST,
};

static const struct ky_sql_column lock_columns[] = {
	KY_SQL_BEGIN_COL("when the wait began, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "when it ended, ns since 1970"),
	KY_SQL_COL("duration", "INTEGER", "ns"),
	KY_SQL_THREAD_COLS("", "the thread that waited"),
	KY_SQL_COL("address", "INTEGER", "the address of the futex in the process"),
	KY_SQL_COL("ret", "INTEGER", "what futex() returned; -110: the time was over"),
	KY_SQL_THREAD_COLS("holder_", "who held the lock for the longest part"),
	KY_SQL_COL("held_from", "INTEGER", "since when, ns since 1970"),
	KY_SQL_COL("held_until", "INTEGER", "until when, ns since 1970"),
	KY_SQL_COL("holders", "INTEGER", "how many threads held it, one after the other"),
	KY_SQL_COL("is_lock", "INTEGER", "1: a lock; 0: a condition, a semaphore, a barrier"),
	KY_SQL_HOST_COL,
	KY_SQL_RANGE_COLS,
};

/* Only the end of the trace tells what is a lock: an earlier pass. */
static bool sql_devices_is_lock(const struct ky_sql_pass *pass, const struct ky_lock *lock)
{
	const struct ky_model *before = pass->before ? pass->before->model : NULL;

	return before && lock->index < ky_model_n_locks(before) &&
	       ky_lock_is_lock(ky_model_lock(before, lock->index));
}

static int sql_devices_on_wait(void *data, const struct ky_lock_wait *wait)
{
	struct ky_sql_pass *pass = data;
	const struct ky_call *call = wait->call;
	struct ky_sql_cell *row = sql_devices_row(pass, call->begin_ns, call->end_ns);
	int64_t holders = 0;

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put_thread(&pass->rows, &row[LOCK_TID], call->thread);
	ky_sql_put(&row[LOCK_ADDRESS], call->args[0]);
	if (call->has_ret)
		ky_sql_put(&row[LOCK_RET], call->ret);
	if (wait->hold) {
		ky_sql_put_thread(&pass->rows, &row[LOCK_HOLDER_TID], wait->hold->thread);
		ky_sql_put_time(&row[LOCK_HELD_FROM], wait->hold->begin_ns);
		ky_sql_put_time(&row[LOCK_HELD_UNTIL], wait->hold->end_ns);
	}
	for (size_t i = 0; i < wait->n_parts; i++)
		holders += wait->parts[i].hold != NULL;
	ky_sql_put(&row[LOCK_HOLDERS], holders);
	ky_sql_put(&row[LOCK_IS_LOCK], sql_devices_is_lock(pass, wait->lock));
	ky_sql_put_host(&row[LOCK_HOST], call->thread->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_devices_listen_locks(struct ky_sql_pass *pass, struct ky_listener *listener,
				    struct kymo_error *err)
{
	listener->lock_wait = sql_devices_on_wait;
	return ky_sql_rows_uses(&pass->rows, LOCK_IS_LOCK)
		       ? ky_sql_pass_before(pass, false, true, err)
		       : 0;
}

const struct ky_sql_source ky_sql_source_lock_wait = {
	.name = "lock_wait",
	.about = "waits in futex(): at locks, conditions and semaphores",
	.columns = lock_columns,
	.n_columns = sizeof(lock_columns) / sizeof(*lock_columns),
	.listen = sql_devices_listen_locks,
};
