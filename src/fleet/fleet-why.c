/* SPDX-License-Identifier: MIT */
#include "fleet/fleet-why.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"

/* Fewer machines have no "others". */
#define HOSTS_MIN 3
/* So much more than the others, and so many times their usual distance from the median. */
#define TIMES_MIN  1.3
#define SPREAD_MIN 4.0
/* The median of distances, of a normal distribution, in standard deviations. */
#define MAD_TO_SIGMA 1.4826

/* Calls that wait because the program wants to. */
#define WAITING                                                                                 \
	"'poll', 'ppoll', 'select', 'pselect6', 'epoll_wait', 'epoll_pwait', 'epoll_pwait2', "  \
	"'futex', 'futex_wait', 'nanosleep', 'clock_nanosleep', 'wait4', 'waitid', 'pause', "   \
	"'rt_sigtimedwait', 'rt_sigsuspend', 'io_getevents', 'accept', 'accept4', 'recvfrom', " \
	"'recvmsg', 'read', 'io_uring_enter', 'restart_syscall'"

static const struct ky_fleet_measure measures[] = {
	{"latency of system calls", "ns", "syscall", "sum(duration)", "count(*)",
	 "name NOT IN (" WAITING ")", 1},
	{"wait for a CPU", "ns", "thread_state", "sum(duration)", "count(*)", "state = 'ready'", 1},
	{"latency of disks", "ns", "block_request", "sum(duration)", "count(*)", "", 1},
	{"wait for locks", "ns", "lock_wait", "sum(duration)", "count(*)", "", 1},
	{"busy CPUs", "%", "cpu_slice", "sum(CASE WHEN tid != 0 THEN duration ELSE 0 END)",
	 "sum(duration)", "", 100},
	{"calls that fail", "%", "syscall",
	 "sum(CASE WHEN error IS NULL OR error IN ('EAGAIN', 'EINTR', 'ETIMEDOUT', 'EINPROGRESS') "
	 "THEN 0 ELSE 1 END)",
	 "count(*)", "", 100},
	{"failed disk requests", "%", "block_request",
	 "sum(CASE WHEN error IS NULL THEN 0 ELSE 1 END)", "count(*)", "", 100},
	{"lost events", "", "loss", "sum(events)", "1", "", 1},
};

struct why_host {
	const char *name, *kernel, *tracer;
	double value;
	bool has;
};

struct why_run {
	struct ky_fleet *store;
	struct ky_fleet_why *why;
	KY_VEC(struct why_host) hosts;
	struct ky_names by_name; /* -> number + 1 */
	KY_VEC(const char *) tables;
};

/* ---- rows ----------------------------------------------------------------------------- */

static int no_names(void *data, const char *const *names, size_t n, struct kymo_error *err)
{
	(void)data;
	(void)names;
	(void)n;
	(void)err;
	return KYMO_OK;
}

static const char *why_text(struct why_run *run, const struct ky_sql_value *value)
{
	return value->type == KY_SQL_TEXT
		       ? ky_arena_strndup(&run->why->arena, value->text, value->len)
		       : ky_arena_strdup(&run->why->arena, "");
}

static struct why_host *why_host(struct why_run *run, const struct ky_sql_value *value)
{
	const char *name = why_text(run, value);
	uintptr_t number;

	if (!name)
		return NULL;
	number = (uintptr_t)ky_names_get(&run->by_name, name);
	if (number)
		return &run->hosts.data[number - 1];
	if (ky_vec_push(&run->hosts, (struct why_host){name, "", "", 0, false}) < 0 ||
	    ky_names_set(&run->by_name, name, (void *)(uintptr_t)run->hosts.len) < 0)
		return NULL;
	return &run->hosts.data[run->hosts.len - 1];
}

static int on_table(void *data, const struct ky_sql_value *row, size_t n, struct kymo_error *err)
{
	struct why_run *run = data;
	const char *name = n ? why_text(run, &row[0]) : NULL;

	return name && ky_vec_push(&run->tables, name) == 0 ? KYMO_OK : ky_error_nomem(err);
}

static int on_newest(void *data, const struct ky_sql_value *row, size_t n, struct kymo_error *err)
{
	struct why_run *run = data;

	(void)err;
	if (n && row[0].type == KY_SQL_INTEGER && row[0].integer > run->why->end_ns)
		run->why->end_ns = row[0].integer;
	return KYMO_OK;
}

static int on_host(void *data, const struct ky_sql_value *row, size_t n, struct kymo_error *err)
{
	struct why_run *run = data;
	struct why_host *host = n == 4 ? why_host(run, &row[0]) : NULL;

	if (!host)
		return ky_error_nomem(err);
	host->kernel = why_text(run, &row[1]);
	host->tracer = row[3].type == KY_SQL_TEXT && row[3].len
			       ? ky_arena_printf(&run->why->arena, "%.*s %.*s", (int)row[2].len,
						 row[2].text, (int)row[3].len, row[3].text)
			       : why_text(run, &row[2]);
	return host->kernel && host->tracer ? KYMO_OK : ky_error_nomem(err);
}

static double fleet_why_number_of(const struct ky_sql_value *value)
{
	return value->type == KY_SQL_INTEGER ? (double)value->integer
	       : value->type == KY_SQL_REAL  ? value->real
					     : 0;
}

static int on_value(void *data, const struct ky_sql_value *row, size_t n, struct kymo_error *err)
{
	struct why_run *run = data;
	struct why_host *host = n == 3 ? why_host(run, &row[0]) : NULL;
	double per = n == 3 ? fleet_why_number_of(&row[2]) : 0;

	if (!host)
		return ky_error_nomem(err);
	host->has = per > 0;
	host->value = per > 0 ? fleet_why_number_of(&row[1]) / per : 0;
	return KYMO_OK;
}

static int why_ask(struct why_run *run, struct ky_strbuf *text,
		   int (*row)(void *, const struct ky_sql_value *, size_t, struct kymo_error *),
		   struct kymo_error *err)
{
	const struct ky_sql_sink sink = {run, no_names, row};
	int ret = ky_strbuf_failed(text)
			  ? ky_error_nomem(err)
			  : ky_fleet_query(run->store, ky_strbuf_text(text), &sink, err);

	ky_strbuf_fini(text);
	return ret;
}

/* ---- what stands out ------------------------------------------------------------------ */

static int by_value(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static int fleet_why_why_add(struct why_run *run, const struct ky_fleet_measure *measure,
			     const char *kind, const char *name, const double *figures,
			     uint64_t n_hosts)
{
	const struct ky_fleet_finding finding = {
		measure, kind, name, figures[0] * measure->factor, figures[1] * measure->factor,
		n_hosts};

	return ky_vec_push(&run->why->findings, finding);
}

static int why_hosts(struct why_run *run, const struct ky_fleet_measure *measure, double *room)
{
	double usual, spread;
	size_t n = 0;
	int ret = KYMO_OK;

	ky_vec_foreach(&run->hosts, host)
		if (host->has)
			room[n++] = host->value;
	if (n < HOSTS_MIN)
		return KYMO_OK;
	run->why->n_measures++;
	usual = median(room, n);
	n = 0;
	ky_vec_foreach(&run->hosts, host)
		if (host->has)
			room[n++] = fabs(host->value - usual);
	spread = median(room, n) * MAD_TO_SIGMA;
	ky_vec_foreach(&run->hosts, host) {
		const double figures[] = {host->value, usual};

		if (!ret && host->has && host->value > usual * TIMES_MIN &&
		    host->value - usual > SPREAD_MIN * spread)
			ret = fleet_why_why_add(run, measure, "host", host->name, figures, 1);
	}
	return ret;
}

static const char *group_of(const struct why_host *host, bool is_kernel)
{
	return is_kernel ? host->kernel : host->tracer;
}

/* The hosts of one kernel, or tracer, against all others: by their medians, which must be apart for most of them. */
static int why_group(struct why_run *run, const struct ky_fleet_measure *measure, bool is_kernel,
		     const char *group, double *room)
{
	double *others = room + run->hosts.len, figures[2];
	size_t n = 0, n_others = 0, n_above = 0;

	ky_vec_foreach(&run->hosts, host) {
		if (!host->has)
			continue;
		if (strcmp(group_of(host, is_kernel), group) == 0)
			room[n++] = host->value;
		else
			others[n_others++] = host->value;
	}
	if (n < HOSTS_MIN || n_others < HOSTS_MIN)
		return KYMO_OK;
	figures[0] = median(room, n);
	figures[1] = median(others, n_others);
	/* Three quarters of its hosts are above three quarters of the others. */
	for (size_t i = 0; i < n; i++)
		n_above += room[i] > others[n_others * 3 / 4];
	if (figures[0] <= figures[1] * TIMES_MIN || n_above * 4 < n * 3)
		return KYMO_OK;
	return fleet_why_why_add(run, measure, is_kernel ? "kernel" : "tracer", group, figures, n);
}

static int why_groups(struct why_run *run, const struct ky_fleet_measure *measure, bool is_kernel,
		      double *room)
{
	struct ky_names seen;
	int ret = KYMO_OK;

	ky_names_init(&seen);
	for (size_t i = 0; i < run->hosts.len && !ret; i++) {
		const char *group = group_of(&run->hosts.data[i], is_kernel);

		if (!*group || ky_names_get(&seen, group))
			continue;
		ret = ky_names_set(&seen, group, run);
		ret = ret ? ret : why_group(run, measure, is_kernel, group, room);
	}
	ky_names_fini(&seen);
	return ret;
}

static bool why_has(const struct why_run *run, const char *table)
{
	for (size_t i = 0; i < run->tables.len; i++)
		if (strcmp(run->tables.data[i], table) == 0)
			return true;
	return false;
}

static int why_measure(struct why_run *run, const struct ky_fleet_measure *measure,
		       struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	double *room;
	int ret;

	if (!why_has(run, measure->table))
		return KYMO_OK;
	ky_vec_foreach(&run->hosts, host)
		host->has = false;
	ky_strbuf_addf(&text,
		       "SELECT host, %s AS of, %s AS per FROM %s WHERE \"time\" >= %" PRId64
		       "%s%s GROUP BY host",
		       measure->of, measure->per, measure->table, run->why->begin_ns,
		       measure->where[0] ? " AND " : "", measure->where);
	ret = why_ask(run, &text, on_value, err);
	if (ret < 0)
		return ret;
	room = calloc(2 * run->hosts.len + 1, sizeof(*room));
	if (!room || why_hosts(run, measure, room) < 0 ||
	    why_groups(run, measure, true, room) < 0 || why_groups(run, measure, false, room) < 0)
		ret = ky_error_nomem(err);
	free(room);
	return ret;
}

static double times(const struct ky_fleet_finding *finding)
{
	return finding->usual > 0 ? finding->value / finding->usual : 1e300;
}

static int by_times(const void *a, const void *b)
{
	double one = times(a), other = times(b);

	return one > other ? -1 : one < other;
}

static int why_begin(struct why_run *run, uint64_t since_ns, struct kymo_error *err)
{
	struct ky_strbuf text = KY_STRBUF_INIT;
	int ret;

	ky_strbuf_adds(&text, run->store->is_clickhouse
				      ? "SELECT name FROM system.tables WHERE database = "
					"currentDatabase()"
				      : "SELECT DISTINCT of FROM kymo_column");
	ret = why_ask(run, &text, on_table, err);
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]) && !ret; i++) {
		if (!why_has(run, measures[i].table))
			continue;
		text = (struct ky_strbuf)KY_STRBUF_INIT;
		/* A directory's store knows the times of its batches. */
		ky_strbuf_addf(&text,
			       run->store->is_clickhouse
				       ? "SELECT max(\"time\") FROM %s"
				       : "SELECT max(last_ns) FROM kymo_batch WHERE of = '%s' AND "
					 "n_left > 0 AND first_ns IS NOT NULL",
			       measures[i].table);
		ret = why_ask(run, &text, on_newest, err);
	}
	run->why->begin_ns =
		run->why->end_ns - (since_ns > INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)since_ns);
	if (ret < 0 || !why_has(run, "host"))
		return ret;
	text = (struct ky_strbuf)KY_STRBUF_INIT;
	ky_strbuf_adds(
		&text,
		"SELECT host, max(kernel_release), max(tracer), max(tracer_version) FROM host GROUP BY host");
	return why_ask(run, &text, on_host, err);
}

int ky_fleet_find_why(struct ky_fleet *store, uint64_t since_ns, struct ky_fleet_why *why,
		      struct kymo_error *err)
{
	struct why_run run = {.store = store, .why = why};
	int ret;

	memset(why, 0, sizeof(*why));
	ky_arena_init(&why->arena);
	ky_names_init(&run.by_name);
	ret = why_begin(&run, since_ns, err);
	for (size_t i = 0; i < sizeof(measures) / sizeof(measures[0]) && !ret; i++)
		ret = why_measure(&run, &measures[i], err);
	why->n_hosts = run.hosts.len;
	if (why->findings.len)
		qsort(why->findings.data, why->findings.len, sizeof(*why->findings.data), by_times);
	ky_vec_fini(&run.hosts);
	ky_vec_fini(&run.tables);
	ky_names_fini(&run.by_name);
	return ret;
}

void ky_fleet_why_fini(struct ky_fleet_why *why)
{
	ky_vec_fini(&why->findings);
	ky_arena_fini(&why->arena);
}
