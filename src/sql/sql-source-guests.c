/* SPDX-License-Identifier: MIT */
/* Tables vcpu and vcpu_off: CPUs of virtual machines, and the times that the threads of these CPUs did not run. */
#include <stdlib.h>

#include "analysis/scheduling/guests.h"
#include "base/error.h"
#include "sql/sql-sources.h"

/* Rows that are in memory at a time. */
#define ROWS_AT_ONCE 4096

struct vcpus {
	struct ky_guests_seen seen; /* listens, so it comes first */
	bool is_finished;
	size_t at; /* in seen.aways */
};

static int sql_guests_listen(struct ky_sql_pass *pass, struct ky_listener *listener,
			     struct kymo_error *err)
{
	struct vcpus *own = calloc(1, sizeof(*own));

	pass->own = own;
	if (!own)
		return ky_error_nomem(err);
	ky_guests_seen_init(&own->seen, pass->model, INT64_MIN);
	*listener = ky_guests_listener;
	listener->data = &own->seen;
	return 0;
}

static void sql_guests_close(struct ky_sql_pass *pass)
{
	struct vcpus *own = pass->own;

	if (own)
		ky_guests_seen_fini(&own->seen);
	free(own);
}

/* ---- vcpu ----------------------------------------------------------------------------- */

enum {
	VCPU_GUEST,
	VCPU_GUEST_CPU,
	VCPU_TID,
	VCPU_PID,
	VCPU_COMM,
	VCPU_IN_GUEST,
	VCPU_EXITS,
	VCPU_BUSY,
	VCPU_STOLEN,
	VCPU_BLOCKED,
	VCPU_LATE,
	VCPU_WAITED,
	VCPU_HOST,
};

/* A condition on the host does not choose traces: those of the guests are needed, too. */
static const struct ky_sql_column vcpu_columns[] = {
	KY_SQL_COL("guest", "TEXT", "the name of the guest; NULL: none of the traces is of it"),
	KY_SQL_COL("guest_cpu", "INTEGER", "the guest's CPU"),
	KY_SQL_THREAD_COLS("", "the host's thread that runs this CPU"),
	KY_SQL_COL("in_guest", "INTEGER",
		   "time between kvm_entry and kvm_exit, ns; NULL: there are no such events"),
	KY_SQL_COL("exits", "INTEGER", "how often the thread came back from the guest"),
	KY_SQL_COL("busy", "INTEGER", "time that it ran threads, as the guest has it, ns"),
	KY_SQL_COL("stolen", "INTEGER", "of it: another thread had the host's CPU, ns"),
	KY_SQL_COL("blocked", "INTEGER", "of it: the thread waited for something on the host, ns"),
	KY_SQL_COL("late", "INTEGER",
		   "time that the idle CPU's wake-ups waited for the host's CPU, ns"),
	KY_SQL_COL("waited", "INTEGER", "time that the thread waited for the host's CPUs, ns"),
	KY_SQL_COL("host", "TEXT", "the name of the host"),
};

static void sql_guests_put_guest(const struct ky_vcpu *vcpu, struct ky_sql_cell *cells)
{
	if (vcpu->guest)
		ky_sql_put_host(&cells[0], vcpu->guest);
	ky_sql_put(&cells[1], vcpu->id);
}

static int sql_guests_put_vcpu(struct ky_sql_pass *pass, const struct ky_vcpu *vcpu,
			       const struct ky_vcpu_sums *sums)
{
	struct vcpus *own = pass->own;
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	sql_guests_put_guest(vcpu, &row[VCPU_GUEST]);
	ky_sql_put_thread(&pass->rows, &row[VCPU_TID], vcpu->thread);
	if (vcpu->exits) {
		ky_sql_put(&row[VCPU_IN_GUEST], (int64_t)vcpu->in_guest_ns);
		ky_sql_put(&row[VCPU_EXITS], (int64_t)vcpu->exits);
	}
	ky_sql_put(&row[VCPU_WAITED], (int64_t)sums->waited);
	ky_sql_put_host(&row[VCPU_HOST], vcpu->host);
	if (vcpu->cpu) {
		ky_sql_put(&row[VCPU_BUSY], (int64_t)ky_guests_busy_ns(&own->seen, vcpu->cpu));
		ky_sql_put(&row[VCPU_STOLEN], (int64_t)sums->stolen);
		ky_sql_put(&row[VCPU_BLOCKED], (int64_t)sums->held);
		ky_sql_put(&row[VCPU_LATE], (int64_t)sums->late);
	}
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_guests_finish_vcpus(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct vcpus *own = pass->own;
	struct ky_vcpu_sums *sums = calloc(own->seen.vcpus.len + 1, sizeof(*sums));
	int ret = sums ? 0 : KYMO_E_MEMORY;

	ky_guests_finish(&own->seen);
	for (size_t i = 0; i < own->seen.aways.len && !ret; i++)
		ky_guests_add(&sums[own->seen.aways.data[i].vcpu], &own->seen.aways.data[i]);
	for (size_t i = 0; i < own->seen.vcpus.len && !ret; i++)
		ret = sql_guests_put_vcpu(pass, own->seen.vcpus.data[i], &sums[i]);
	free(sums);
	return ret < 0 ? ky_error_nomem(err) : 0;
}

const struct ky_sql_source ky_sql_source_vcpu = {
	.name = "vcpu",
	.about = "CPUs of virtual machines: the host's threads that run them, and stolen time",
	.columns = vcpu_columns,
	.n_columns = sizeof(vcpu_columns) / sizeof(*vcpu_columns),
	.listen = sql_guests_listen,
	.finish = sql_guests_finish_vcpus,
	.close = sql_guests_close,
};

/* ---- vcpu_off ------------------------------------------------------------------------- */

enum {
	OFF_TIME,
	OFF_END,
	OFF_DURATION,
	OFF_WHY,
	OFF_GUEST,
	OFF_GUEST_CPU,
	OFF_GUEST_TID,
	OFF_GUEST_PID,
	OFF_GUEST_COMM,
	OFF_TID,
	OFF_PID,
	OFF_COMM,
	OFF_CPU,
	OFF_WHO_TID,
	OFF_WHO_PID,
	OFF_WHO_COMM,
	OFF_WHO_DURATION,
	OFF_HOST,
};

static const struct ky_sql_column off_columns[] = {
	KY_SQL_BEGIN_COL("when the thread went off the host's CPU, ns since 1970"),
	KY_SQL_COL("end", "INTEGER", "when it ran again, or could run again, ns since 1970"),
	KY_SQL_COL("duration", "INTEGER", "ns"),
	KY_SQL_COL("why", "TEXT",
		   "'stolen', 'blocked', 'late', 'idle' or 'unknown': see docs/reports/guests.md"),
	KY_SQL_COL("guest", "TEXT", "the name of the guest; NULL: none of the traces is of it"),
	KY_SQL_COL("guest_cpu", "INTEGER", "the guest's CPU"),
	KY_SQL_THREAD_COLS("guest_", "the guest's thread that seemed to run"),
	KY_SQL_THREAD_COLS("", "the host's thread that runs this CPU"),
	KY_SQL_COL("cpu", "INTEGER", "the host's CPU that it waited for"),
	KY_SQL_THREAD_COLS("who_", "who ran longest there meanwhile"),
	KY_SQL_COL("who_duration", "INTEGER", "how long that one ran, ns"),
	KY_SQL_COL("host", "TEXT", "the name of the host"),
};

static const char *sql_guests_why(const struct ky_away *away)
{
	static const char *const names[] = {
		[KY_AWAY_UNKNOWN] = "unknown", [KY_AWAY_IDLE] = "idle",	   [KY_AWAY_LATE] = "late",
		[KY_AWAY_STOLEN] = "stolen",   [KY_AWAY_HELD] = "blocked",
	};

	return names[ky_guests_why(away)];
}

static int sql_guests_put_off(struct ky_sql_pass *pass, const struct ky_away *away)
{
	const struct vcpus *own = pass->own;
	const struct ky_vcpu *vcpu = own->seen.vcpus.data[away->vcpu];
	const struct ky_instead *who = ky_guests_longest(&own->seen, away);
	struct ky_sql_cell *row = ky_sql_rows_new(&pass->rows);

	if (!row)
		return KYMO_E_MEMORY;
	ky_sql_put(&row[OFF_TIME], away->begin_ns);
	ky_sql_put(&row[OFF_END], away->end_ns);
	ky_sql_put(&row[OFF_DURATION], away->end_ns - away->begin_ns);
	ky_sql_put_name(&row[OFF_WHY], sql_guests_why(away));
	sql_guests_put_guest(vcpu, &row[OFF_GUEST]);
	ky_sql_put_thread(&pass->rows, &row[OFF_GUEST_TID], away->running);
	ky_sql_put_thread(&pass->rows, &row[OFF_TID], vcpu->thread);
	if (away->cpu)
		ky_sql_put(&row[OFF_CPU], away->cpu->id);
	if (who) {
		ky_sql_put_thread(&pass->rows, &row[OFF_WHO_TID], who->thread);
		ky_sql_put(&row[OFF_WHO_DURATION], (int64_t)who->ns);
	}
	ky_sql_put_host(&row[OFF_HOST], vcpu->host);
	return ky_sql_rows_keep(&pass->rows);
}

static int sql_guests_finish_off(struct ky_sql_pass *pass, struct kymo_error *err)
{
	struct vcpus *own = pass->own;
	int ret = 0;

	if (!own->is_finished)
		ky_guests_finish(&own->seen);
	own->is_finished = true;
	for (size_t i = 0; i < ROWS_AT_ONCE && own->at < own->seen.aways.len && ret >= 0; i++)
		ret = sql_guests_put_off(pass, &own->seen.aways.data[own->at++]);
	return ret < 0 ? ky_error_nomem(err) : own->at < own->seen.aways.len;
}

const struct ky_sql_source ky_sql_source_vcpu_off = {
	.name = "vcpu_off",
	.about = "times that the host's threads of guests' CPUs did not run, and who ran instead",
	.columns = off_columns,
	.n_columns = sizeof(off_columns) / sizeof(*off_columns),
	.listen = sql_guests_listen,
	.finish = sql_guests_finish_off,
	.close = sql_guests_close,
};
