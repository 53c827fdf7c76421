/* SPDX-License-Identifier: MIT */
/* How many waits and calls of each minute lasted how long: few rows that stand for many, for long times and many machines. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sql/sql-sources.h"

#define MINUTE_NS INT64_C(60000000000)

enum {
	HISTOGRAM_TIME,
	HISTOGRAM_END,
	HISTOGRAM_OF,
	HISTOGRAM_NAME,
	HISTOGRAM_LOW,
	HISTOGRAM_HIGH,
	HISTOGRAM_COUNT,
	HISTOGRAM_SUM,
	HISTOGRAM_HOST,
};

static const struct ky_sql_column histogram_columns[] = {
	KY_SQL_BEGIN_COL("the begin of the minute, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "the end of the minute, ns since 1970"),
	KY_SQL_COL("of", "TEXT", "'syscall', 'ready' (waits for a CPU), 'block_request', 'irq'"),
	KY_SQL_COL("name", "TEXT", "of the call, the disk, the interrupt"),
	KY_SQL_COL("low", "INTEGER", "the shortest duration that counts here, ns: a power of two"),
	KY_SQL_COL("high", "INTEGER", "the first one that does not, ns"),
	KY_SQL_COL("count", "INTEGER", "how many ended in the minute"),
	KY_SQL_COL("sum", "INTEGER", "their time, ns"),
	KY_SQL_HOST_COL,
};

struct histogram_bucket {
	const char *of, *name; /* static, or of the model */
	const struct ky_host *host;
	unsigned int bit; /* of the duration's highest one */
	uint64_t count, sum;
};

struct histograms {
	KY_VEC(struct histogram_bucket) buckets; /* of the minute */
	struct ky_map by_key;			 /* hash -> number in buckets plus 1 */
	int64_t minute;				 /* INT64_MIN: none yet */
};

static unsigned int sql_histogram_bit(uint64_t ns)
{
	return ns ? 63 - (unsigned int)__builtin_clzll(ns) : 0;
}

static int sql_histogram_put(struct ky_sql_pass *pass, const struct histogram_bucket *bucket,
			     int64_t begin_ns)
{
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put(&row[HISTOGRAM_TIME], begin_ns);
	ky_sql_put(&row[HISTOGRAM_END], begin_ns + MINUTE_NS);
	ky_sql_put_name(&row[HISTOGRAM_OF], bucket->of);
	/* Names of disks and interrupts may change. */
	if (bucket->name)
		ky_sql_put_text(&pass->rows, &row[HISTOGRAM_NAME], bucket->name,
				strlen(bucket->name));
	ky_sql_put(&row[HISTOGRAM_LOW], bucket->bit ? INT64_C(1) << bucket->bit : 0);
	ky_sql_put(&row[HISTOGRAM_HIGH],
		   bucket->bit < 62 ? INT64_C(1) << (bucket->bit + 1) : INT64_MAX);
	ky_sql_put(&row[HISTOGRAM_COUNT], (int64_t)bucket->count);
	ky_sql_put(&row[HISTOGRAM_SUM], (int64_t)bucket->sum);
	ky_sql_put_host(&row[HISTOGRAM_HOST], bucket->host);
	return ky_sql_rows_keep(&pass->rows);
}

/* The rows of the minute, in the order of their first occurrence. */
static int sql_histogram_flush(struct ky_sql_pass *pass)
{
	struct histograms *own = pass->own;
	int ret = 0;

	for (size_t i = 0; i < own->buckets.len && ret >= 0; i++)
		ret = sql_histogram_put(pass, &own->buckets.data[i], own->minute * MINUTE_NS);
	ky_vec_clear(&own->buckets);
	ky_map_fini(&own->by_key);
	ky_map_init(&own->by_key);
	return ret;
}

static bool sql_histogram_is(const struct histogram_bucket *one,
			     const struct histogram_bucket *other)
{
	return one->of == other->of && one->name == other->name && one->host == other->host &&
	       one->bit == other->bit;
}

static struct histogram_bucket *sql_histogram_find(struct histograms *own,
						   const struct histogram_bucket *like)
{
	uint64_t key = ky_hash_u64(
		(uintptr_t)like->name ^
		ky_hash_u64((uintptr_t)like->host ^ ky_hash_u64((uintptr_t)like->of ^ like->bit)));
	uintptr_t number;

	for (; (number = (uintptr_t)ky_map_get(&own->by_key, key)) != 0; key++)
		if (sql_histogram_is(&own->buckets.data[number - 1], like))
			return &own->buckets.data[number - 1];
	if (ky_vec_push(&own->buckets, *like) < 0 ||
	    ky_map_set(&own->by_key, key, (void *)own->buckets.len) < 0)
		return NULL;
	return ky_vec_last(&own->buckets);
}

static int sql_histogram_add(struct ky_sql_pass *pass, struct histogram_bucket like,
			     int64_t begin_ns, int64_t end_ns)
{
	struct histograms *own = pass->own;
	uint64_t ns = (uint64_t)end_ns - (uint64_t)begin_ns;
	int64_t minute = end_ns / MINUTE_NS - (end_ns % MINUTE_NS < 0);
	struct histogram_bucket *bucket;
	int ret = 0;

	if (begin_ns == INT64_MIN || end_ns < begin_ns)
		return 0;
	if (minute != own->minute)
		ret = sql_histogram_flush(pass);
	own->minute = minute;
	like.bit = sql_histogram_bit(ns);
	bucket = ret < 0 ? NULL : sql_histogram_find(own, &like);
	if (!bucket)
		return KYMO_E_MEMORY;
	bucket->count++;
	bucket->sum += ns;
	return 0;
}

static const char of_call[] = "syscall", of_ready[] = "ready", of_request[] = "block_request",
		  of_irq[] = "irq";

static int sql_histogram_on_call(void *data, const struct ky_call *call)
{
	struct ky_sql_pass *pass = data;

	if (call->outcome != KY_CALL_DONE)
		return 0;
	return sql_histogram_add(
		pass,
		(struct histogram_bucket){.of = of_call,
					  .name = ky_model_syscall_name(pass->model, call->syscall),
					  .host = call->thread->host},
		call->begin_ns, call->end_ns);
}

static int sql_histogram_on_off(void *data, const struct ky_time_off *off)
{
	if (off->kind != KY_OFF_READY)
		return 0;
	return sql_histogram_add(
		data, (struct histogram_bucket){.of = of_ready, .host = off->thread->host},
		off->begin_ns, off->end_ns);
}

static int sql_histogram_on_request(void *data, const struct ky_request *request)
{
	return sql_histogram_add(
		data,
		(struct histogram_bucket){
			.of = of_request, .name = request->disk->name, .host = request->disk->host},
		request->queue_ns != INT64_MIN ? request->queue_ns : request->issue_ns,
		request->end_ns);
}

static int sql_histogram_on_irq(void *data, const struct ky_irq *irq)
{
	return sql_histogram_add(data,
				 (struct histogram_bucket){.of = of_irq,
							   .name = irq->line->name,
							   .host = irq->cpu->host},
				 irq->begin_ns, irq->end_ns);
}

static int sql_histogram_listen(struct ky_sql_pass *pass, struct ky_listener *listener,
				struct kymo_error *err)
{
	struct histograms *own = calloc(1, sizeof(*own));

	pass->own = own;
	if (!own)
		return ky_error_nomem(err);
	ky_map_init(&own->by_key);
	own->minute = INT64_MIN;
	listener->call = sql_histogram_on_call;
	listener->off = sql_histogram_on_off;
	listener->request = sql_histogram_on_request;
	listener->flush = sql_histogram_on_request;
	listener->irq = sql_histogram_on_irq;
	return 0;
}

static int sql_histogram_finish(struct ky_sql_pass *pass, struct kymo_error *err)
{
	return sql_histogram_flush(pass) < 0 ? ky_error_nomem(err) : 0;
}

static void sql_histogram_close(struct ky_sql_pass *pass)
{
	struct histograms *own = pass->own;

	if (!own)
		return;
	ky_vec_fini(&own->buckets);
	ky_map_fini(&own->by_key);
	free(own);
}

const struct ky_sql_source ky_sql_source_histogram = {
	.name = "histogram",
	.about = "how many calls and waits of each minute lasted how long, by powers of two",
	.columns = histogram_columns,
	.n_columns = sizeof(histogram_columns) / sizeof(*histogram_columns),
	.listen = sql_histogram_listen,
	.finish = sql_histogram_finish,
	.close = sql_histogram_close,
};
