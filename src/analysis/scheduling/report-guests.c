/* SPDX-License-Identifier: MIT */
/* Report guests: CPUs of virtual machines, their threads on the host, and who ran there instead. */
#include "analysis/reports/report-list.h"

#include "analysis/scheduling/guests.h"

/* ---- documentation --------------------------------------------------------------------- */

enum {
	CPU_GUEST,
	CPU_CPU,
	CPU_THREAD,
	CPU_HOST,
	CPU_IN_GUEST,
	CPU_EXITS,
	CPU_BUSY,
	CPU_STOLEN,
	CPU_SHARE,
	CPU_BLOCKED,
	CPU_LATE,
	CPU_LONGEST,
	CPU_WAITED,
};

static const struct ky_column cpu_columns[] = {
	[CPU_GUEST] = {"guest", "Guest", KY_CELL_TEXT,
		       "The guest's trace; empty when none of the traces is of this machine."},
	[CPU_CPU] = {"cpu", "CPU", KY_CELL_CPU, "The guest's CPU."},
	[CPU_THREAD] = {"thread", "Thread", KY_CELL_PROCESS,
			"The host's thread that runs this CPU."},
	[CPU_HOST] = {"host", "Host", KY_CELL_TEXT, "The host's trace.", .spare = 3},
	[CPU_IN_GUEST] =
		{"in_guest", "In guest", KY_CELL_DURATION,
		 "The time between entries and exits. Needs the events kvm_entry and kvm_exit.",
		 .spare = 3},
	[CPU_EXITS] = {"exits", "Exits", KY_CELL_COUNT,
		       "How often the thread came back from the guest.", .spare = 4},
	[CPU_BUSY] =
		{"busy", "Busy", KY_CELL_DURATION,
		 "How long the CPU ran threads, as the guest's trace has it, while the host was recorded.",
		 .spare = 2},
	[CPU_STOLEN] =
		{"stolen", "Stolen", KY_CELL_DURATION,
		 "Of the busy time: the thread could run, but another one had the host's CPU.",
		 .bar = KY_BAR_MOST},
	[CPU_SHARE] = {"share", "Share", KY_CELL_RATIO, "Stolen, as a part of the busy time."},
	[CPU_BLOCKED] =
		{"blocked", "Blocked", KY_CELL_DURATION,
		 "Of the busy time: the thread waited for something on the host, such as a page or "
		 "a device that the host emulates.",
		 .spare = 1},
	[CPU_LATE] =
		{"late", "Late", KY_CELL_DURATION,
		 "The CPU was idle and an interrupt came, but the thread had to wait for the host's "
		 "CPU. The guest's wake-ups were late by this.",
		 .spare = 5},
	[CPU_LONGEST] = {"longest", "Longest", KY_CELL_DURATION, "The longest stolen time."},
	[CPU_WAITED] =
		{"waited", "Waited", KY_CELL_DURATION,
		 "How long the thread waited for the host's CPUs in all: what the guest's kernel "
		 "counts as steal. Stolen, late, and what happened while the guest's trace does not "
		 "tell what the CPU did."},
};

static const struct ky_table_def cpu_table =
	KY_TABLE_DEF("cpus", "CPUs of guests",
		     "One row for each CPU of a virtual machine, by host, machine and number.",
		     cpu_columns, KY_TABLE_FIXED);

enum { BY_GUEST, BY_CPU, BY_PROCESS, BY_TIME, BY_STOLEN };

static const struct ky_column by_columns[] = {
	[BY_GUEST] = {"guest", "Guest", KY_CELL_TEXT, "The guest's trace."},
	[BY_CPU] = {"cpu", "CPU", KY_CELL_CPU, "The guest's CPU."},
	[BY_PROCESS] = {"process", "Ran instead", KY_CELL_PROCESS,
			"Who ran on the host's CPU that the thread waited for."},
	[BY_TIME] = {"time", "Time", KY_CELL_DURATION, "How long, while the thread waited.",
		     .bar = KY_BAR_MOST},
	[BY_STOLEN] = {"stolen", "Stolen", KY_CELL_DURATION,
		       "The part of it in which the guest's CPU was busy."},
};

static const struct ky_table_def by_table =
	KY_TABLE_DEF("instead", "Who ran instead of guests",
		     "One row for each CPU of a guest and thread of the host, the most time first.",
		     by_columns, KY_TABLE_RANK);

enum { ONE_BEGIN, ONE_DURATION, ONE_GUEST, ONE_CPU, ONE_WHY, ONE_RUNNING, ONE_BY, ONE_BY_TIME };

static const struct ky_column one_columns[] = {
	[ONE_BEGIN] = {"begin", "Begin", KY_CELL_TIMESTAMP, "When the thread went off the CPU."},
	[ONE_DURATION] = {"duration", "Duration", KY_CELL_DURATION, "How long it was off."},
	[ONE_GUEST] = {"guest", "Guest", KY_CELL_TEXT, "The guest's trace."},
	[ONE_CPU] = {"cpu", "CPU", KY_CELL_CPU, "The guest's CPU."},
	[ONE_WHY] =
		{"why", "Why", KY_CELL_TEXT,
		 "'stolen': another thread had the host's CPU; 'blocked': the thread waited for "
		 "something on the host.",
		 .spare = 2},
	[ONE_RUNNING] = {"running", "Guest ran", KY_CELL_PROCESS,
			 "The guest's thread that seemed to run."},
	[ONE_BY] = {"instead", "Ran instead", KY_CELL_PROCESS,
		    "Who ran longest on the host's CPU meanwhile.", .second = true},
	[ONE_BY_TIME] = {"instead_time", "For", KY_CELL_DURATION, "How long it ran.", .spare = 1},
};

static const struct ky_table_def top_table = KY_TABLE_DEF(
	"top", "Longest times that guests did not run",
	"One row for each time that a guest's CPU seemed to run and its thread did not, the "
	"longest first.",
	one_columns, KY_TABLE_TOP);

static const struct ky_table_def log_table =
	KY_TABLE_DEF("log", "All times that guests did not run", "The same rows, by begin.",
		     one_columns, KY_TABLE_LOG);

static const struct ky_table_def *const tables[] = {&cpu_table, &by_table, &top_table, &log_table,
						    NULL};

enum { TABLE_CPUS, TABLE_BY, TABLE_TOP, TABLE_LOG };

/* ---- the run --------------------------------------------------------------------------- */

/* Of a CPU and a thread. */
enum { BY_SUM_TIME, BY_SUM_STOLEN };

struct run {
	struct ky_guests_seen seen; /* listens, so it comes first */
	struct ky_model *model;
	struct ky_aggregation by; /* what: the virtual CPU's index */
	struct ky_happenings single;
};

static void report_guests_free_run(void *data)
{
	struct run *run = data;

	ky_guests_seen_fini(&run->seen);
	ky_aggregation_fini(&run->by);
	ky_happenings_fini(&run->single);
	free(run);
}

static void *report_guests_begin(struct ky_model *model, const struct ky_report_options *options)
{
	struct run *run = ky_report_run(model, sizeof(*run), &ky_guests_listener);

	if (!run)
		return NULL;
	run->model = model;
	ky_guests_seen_init(&run->seen, model, options->focus.begin_ns);
	ky_happenings_init(&run->single, sizeof(struct ky_away), options, &ky_report_guests,
			   TABLE_TOP, TABLE_LOG);
	return run;
}

/* ---- the tables ------------------------------------------------------------------------ */

static void report_guests_name(struct ky_table *table, struct ky_cell *cell,
			       const struct ky_vcpu *vcpu)
{
	if (vcpu->guest)
		ky_cell_text(table, cell, vcpu->guest->label);
}

/* --tid and the like name threads of the host; --cpu names CPUs of guests. */
static bool report_guests_is_chosen(const struct ky_focus *focus, const struct ky_vcpu *vcpu)
{
	bool found = !focus->cpus.len;

	ky_vec_foreach(&focus->cpus, cpu)
		found |= *cpu == vcpu->id;
	return found && ky_focus_has_thread(focus, vcpu->thread);
}

static int report_guests_add_instead(struct run *run, const struct ky_away *away)
{
	for (size_t i = 0; i < away->n_instead; i++) {
		const struct ky_instead *instead = &run->seen.instead.data[away->instead + i];
		struct ky_entry *entry = ky_aggregation_get(&run->by, instead->thread, away->vcpu);

		if (!entry)
			return KYMO_E_MEMORY;
		entry->sums[BY_SUM_TIME] += instead->ns;
		if (ky_guests_why(away) == KY_AWAY_STOLEN)
			entry->sums[BY_SUM_STOLEN] += instead->ns;
	}
	return 0;
}

static int report_guests_add(struct run *run, const struct ky_away *away, struct ky_vcpu_sums *sums)
{
	int ret = 0;

	ky_guests_add(sums, away);
	if (away->kind == KY_AWAY_WAITED)
		ret = report_guests_add_instead(run, away);
	if (!ret && away->running)
		ret = ky_happenings_add(&run->single, (uint64_t)(away->end_ns - away->begin_ns),
					away);
	return ret;
}

static void report_guests_fill_cpu(const struct run *run, struct ky_table *table,
				   const struct ky_vcpu *vcpu, const struct ky_vcpu_sums *sums)
{
	uint64_t busy = vcpu->cpu ? ky_guests_busy_ns(&run->seen, vcpu->cpu) : 0;
	struct ky_cell *row = ky_table_row(table);

	report_guests_name(table, &row[CPU_GUEST], vcpu);
	ky_cell_u64(&row[CPU_CPU], vcpu->id);
	ky_cell_thread(table, &row[CPU_THREAD], run->model, vcpu->thread);
	ky_cell_text(table, &row[CPU_HOST], vcpu->host->label);
	if (vcpu->exits) {
		ky_cell_u64(&row[CPU_IN_GUEST], vcpu->in_guest_ns);
		ky_cell_u64(&row[CPU_EXITS], vcpu->exits);
	}
	ky_cell_u64(&row[CPU_WAITED], sums->waited);
	if (!vcpu->cpu)
		return;
	ky_cell_u64(&row[CPU_BUSY], busy);
	ky_cell_u64(&row[CPU_STOLEN], sums->stolen);
	if (busy)
		ky_cell_f64(&row[CPU_SHARE], ky_part(sums->stolen, busy));
	ky_cell_u64(&row[CPU_BLOCKED], sums->held);
	ky_cell_u64(&row[CPU_LATE], sums->late);
	ky_cell_u64(&row[CPU_LONGEST], sums->longest);
}

static void report_guests_fill_by(const void *data, struct ky_table *table,
				  const struct ky_entry *entry, enum ky_by by)
{
	const struct run *run = data;
	const struct ky_vcpu *vcpu = run->seen.vcpus.data[entry->what];
	struct ky_cell *row = ky_table_row(table);

	report_guests_name(table, &row[BY_GUEST], vcpu);
	ky_cell_u64(&row[BY_CPU], vcpu->id);
	ky_cell_who(table, &row[BY_PROCESS], run->model, entry->thread, by);
	ky_cell_u64(&row[BY_TIME], entry->sums[BY_SUM_TIME]);
	ky_cell_u64(&row[BY_STOLEN], entry->sums[BY_SUM_STOLEN]);
}

static void report_guests_fill_one(const void *data, struct ky_table *table, struct ky_cell *row,
				   const void *record)
{
	const struct run *run = data;
	const struct ky_away *away = record;
	const struct ky_vcpu *vcpu = run->seen.vcpus.data[away->vcpu];
	const struct ky_instead *most = ky_guests_longest(&run->seen, away);

	ky_cell_i64(&row[ONE_BEGIN], away->begin_ns);
	ky_cell_u64(&row[ONE_DURATION], (uint64_t)(away->end_ns - away->begin_ns));
	report_guests_name(table, &row[ONE_GUEST], vcpu);
	ky_cell_u64(&row[ONE_CPU], vcpu->id);
	ky_cell_text(table, &row[ONE_WHY], away->kind == KY_AWAY_WAITED ? "stolen" : "blocked");
	ky_cell_thread(table, &row[ONE_RUNNING], run->model, away->running);
	if (!most)
		return;
	ky_cell_thread(table, &row[ONE_BY], run->model, most->thread);
	ky_cell_u64(&row[ONE_BY_TIME], most->ns);
}

static int report_guests_compare(const void *a, const void *b)
{
	const struct ky_vcpu *x = *(const struct ky_vcpu *const *)a;
	const struct ky_vcpu *y = *(const struct ky_vcpu *const *)b;

	if (x->host->index != y->host->index)
		return x->host->index < y->host->index ? -1 : 1;
	if (x->vm != y->vm)
		return x->vm < y->vm ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static int report_guests_note(const struct run *run, struct ky_report_result *result)
{
	size_t n_alone = 0;
	int ret = 0;

	ky_vec_foreach(&run->seen.vcpus, it)
		n_alone += !(*it)->guest;
	if (!run->seen.vcpus.len)
		ret = ky_report_note(
			result, "no thread runs a CPU of a virtual machine: the traces have no "
				"kvm_entry events, and no threads that are called 'CPU 0/KVM'");
	else if (n_alone)
		ret = ky_report_note(
			result,
			"the guest's trace of %zu CPUs is not known: it is not there, has "
			"no sched_switch events, or its clock is not the host's (kymo sync)",
			n_alone);
	if (!ret && run->seen.n_forgotten)
		ret = ky_report_note(result, "%llu times are left out: there are too many",
				     (unsigned long long)run->seen.n_forgotten);
	return ret ? ret : ky_report_note_losses(result);
}

static int report_guests_fill_cpus(struct run *run, const struct ky_focus *focus,
				   struct ky_table *table)
{
	size_t n = run->seen.vcpus.len;
	struct ky_vcpu_sums *sums = calloc(n + 1, sizeof(*sums));
	struct ky_vcpu **sorted = calloc(n + 1, sizeof(struct ky_vcpu *));
	int ret = sums && sorted ? 0 : KYMO_E_MEMORY;

	for (size_t i = 0; i < run->seen.aways.len && !ret; i++) {
		const struct ky_away *away = &run->seen.aways.data[i];

		if (report_guests_is_chosen(focus, run->seen.vcpus.data[away->vcpu]))
			ret = report_guests_add(run, away, &sums[away->vcpu]);
	}
	for (size_t i = 0; i < n && !ret; i++)
		sorted[i] = run->seen.vcpus.data[i];
	if (!ret && n)
		qsort(sorted, n, sizeof(struct ky_vcpu *), report_guests_compare);
	for (size_t i = 0; i < n && !ret; i++)
		if (report_guests_is_chosen(focus, sorted[i]))
			report_guests_fill_cpu(run, table, sorted[i], &sums[sorted[i]->index]);
	free(sums);
	free(sorted);
	return ret;
}

static int report_guests_finish(void *data, const struct ky_report_options *options,
				struct ky_report_result *result)
{
	struct run *run = data;
	struct ky_table *by = &result->tables[TABLE_BY];
	int ret;

	ky_guests_finish(&run->seen);
	ret = report_guests_fill_cpus(run, &options->focus, &result->tables[TABLE_CPUS]);
	if (!ret)
		ret = ky_fill_groups(by, &run->by, ky_report_by(options, KY_BY_THREAD), true,
				     report_guests_fill_by, run);
	if (ret < 0)
		return ret;
	ky_table_sort(by, BY_TIME, false);
	ky_fill_records(&result->tables[TABLE_TOP], &run->single.top, report_guests_fill_one, run);
	ky_fill_records(&result->tables[TABLE_LOG], &run->single.log, report_guests_fill_one, run);
	return report_guests_note(run, result);
}

const struct ky_report ky_report_guests = {
	.name = "guests",
	.summary = "CPUs of virtual machines: stolen time, and who ran instead",
	.description =
		"Joins the traces of a host and of its guests. A guest's CPU is a thread of the host. The "
		"guest's trace tells what this CPU seemed to run; the host's trace tells when the thread "
		"did not run, and who had the CPU instead.\n"
		"\n"
		"The traces need one clock: 'kymo sync HOST GUEST' finds the difference of the clocks by "
		"the time stamp counter that host and guest share. Traces of trace-cmd's hosts and guests "
		"have it already. A trace is taken for the guest's when at least 95 % of its switches "
		"happened while the thread of their CPU ran.",
	.events =
		"sched_switch and sched_waking of the host and of the guest; kvm_entry and kvm_exit of "
		"the host for the times in the guest. The threads of guests' CPUs are known by "
		"kvm_entry, by the state dump (lttng_statedump_kvm_vcpu, since Linux 6.0), or by the names that QEMU "
		"gives them under libvirt ('CPU 0/KVM').",
	.reading =
		"Much stolen time means that the host has more to run than CPUs; the table of who ran "
		"instead names the threads to move. A guest sees this as slow code: its own trace shows the "
		"thread running all the time. 'Late' makes timers and network answers of an idle guest "
		"late. 'Blocked' is mostly memory that the host has to fetch, or a lock in the program "
		"that runs the guest.",
	.example =
		"$ kymo report guests -n 3 host guest\n"
		"Trace  host\n"
		"       guest\n"
		"Range  2026-11-27 04:08:35.916662593 to 2026-11-27 04:08:41.727080113\n"
		"       5.810 s, 6499 events\n"
		"\n"
		"CPUs of guests\n"
		"  Guest  CPU  Host  TID  Name               Stolen    Share   Longest    Waited\n"
		"  guest    0  host  132  qemu-system-x86  470.0 ms  34.22 %  170.7 ms  871.0 ms\n"
		"  guest    1  host  135  qemu-system-x86  923.6 ms  28.93 %  116.5 ms  994.6 ms\n"
		"  --wide shows: Late, Exits, Host, In guest, Busy, PID, Blocked\n"
		"\n"
		"Who ran instead of guests\n"
		"  Guest  CPU  Host  TID  PID  Name                 Time    Stolen\n"
		"  guest    1  host  132  106  qemu-system-x86  396.8 ms  376.9 ms  █████████████\n"
		"  guest    0  host  135  106  qemu-system-x86  381.6 ms  289.3 ms  ████████████▌\n"
		"  guest    1  host  497  497  hog              253.4 ms  249.6 ms  ████████▎\n"
		"  23 more rows: --limit 0 shows all\n",
	.next = "report sched|the threads that wait for the host's CPUs\n"
		"report why|what the guest's threads wait for",
	.tables = tables,
	.needs = KY_CAN_SWITCH,
	.needs_text = "sched_switch events",
	.needs_hint = "record them on host and guest with: kymo record -k sched,kvm_entry,kvm_exit",
	.ignores = KY_IGNORES_DURATION,
	.whole = true,
	.begin = report_guests_begin,
	.finish = report_guests_finish,
	.free = report_guests_free_run,
};
