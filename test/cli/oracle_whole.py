# SPDX-License-Identifier: MIT
"""All figures of a report against the second computation: the checks of oracle_reports.py, what they leave
out, and that no column of any table was left out by both."""

import collections
import errno
import json
import re
import statistics

import kernel_text
import oracle_block
import oracle_calls
import oracle_cpu
import oracle_figures
import oracle_interrupts
import oracle_io
import oracle_moves
import oracle_reports
from oracle_figures import close, number


class Row(dict):
    """A row that notes which of its columns were looked at."""

    def __init__(self, row, looked_at):
        super().__init__(row)
        self.looked_at = looked_at

    def __getitem__(self, key):
        self.looked_at.add(key)
        return super().__getitem__(key)

    def items(self):
        self.looked_at.update(self)
        return super().items()


# ---- cpu and syscalls ----------------------------------------------------------------------------

def check_cpu(report, events):
    true = kernel_text.Cpu(events)
    assert [row["cpu"] for row in report["cpus"]] == true.cpus
    for row in report["cpus"]:
        assert row["busy"] == true.busy[row["cpu"]]
        assert row["idle"] == true.idle[row["cpu"]]
        assert row["busy"] + row["idle"] + row["unknown"] == true.range
        assert bool(row["unknown"]) == bool(true.missing[row["cpu"]])
        assert close(row["usage"], row["busy"] / (row["busy"] + row["idle"]))
    times, migrations = {}, {}
    for row in report["threads"]:
        tid = row["process"]["tid"]
        times[tid] = times.get(tid, 0) + row["cpu_time"]
        migrations[tid] = migrations.get(tid, 0) + row["migrations"]
        assert close(row["usage"], row["cpu_time"] / true.range)
        assert row["threads"] is None
    assert times == {tid: true.time.get(tid, 0) for tid in times}
    assert sum(times.values()) == sum(true.time.values()) == sum(true.busy.values())
    assert migrations == {tid: true.migrations.get(tid, 0) for tid in times}
    if len(times) == len(report["threads"]):  # no id was used twice
        for row in report["threads"]:
            tid = row["process"]["tid"]
            # Of one that the scheduler's events never tell of, contexts tell that it ran, and no more.
            assert row["process"]["name"] == true.name.get(tid, true.called.get(tid, ""))
            assert row["prio"] == true.prio.get(tid)
    oracle_moves.check_migrations(report["migrations"], events, true.migrations)
    total = report["total"][0]
    assert total["busy"] == sum(true.busy.values())
    known = total["busy"] + sum(true.idle.values())
    assert close(total["usage"], total["busy"] / known)
    assert close(total["known"], known / (true.range * len(true.cpus)))
    assert total["cpus"] == len(true.cpus)
    assert total["threads"] == len([row for row in report["threads"] if row["cpu_time"]])


def check_call(row, durations, errors):
    assert row["failed"] == sum(errors.values())
    oracle_figures.check_stats(row, durations)
    # Some numbers have two names; 512 and up have none in Python.
    ours = {(getattr(errno, name), count) for name, count in (row["errors"] or {}).items()
            if not name.startswith("ERESTART")}
    assert ours == {pair for pair in errors.items() if pair[0] in errno.errorcode}


def check_syscalls(report, events):
    true = kernel_text.Syscalls(events)
    rows = {}
    for row in report["threads"]:
        rows.setdefault((row["process"]["tid"], row["syscall"]), []).append(row)
    assert set(rows) == set(true.durations)
    for key, lives in rows.items():
        if len(lives) == 1:
            check_call(lives[0], true.durations[key], true.errors[key])
        else:  # an id that was used twice
            assert sum(row["count"] for row in lives) == len(true.durations[key])
    by_call, errors = {}, {}
    for (tid, call), durations in true.durations.items():
        by_call.setdefault(call, []).extend(durations)
        errors.setdefault(call, type(true.errors[tid, call])()).update(true.errors[tid, call])
    for row in report["syscalls"]:
        if row["count"]:
            check_call(row, by_call.pop(row["syscall"]), errors[row["syscall"]])
    assert not by_call
    outcomes = {row["outcome"]: row["count"] for row in report["outcomes"]}
    assert outcomes["measured"] == sum(map(len, true.durations.values()))
    assert outcomes["began before the trace"] == true.headless
    assert outcomes["return of a new thread"] == true.births
    assert outcomes["never returned, thread went on"] == true.gone
    assert outcomes["thread ended in it"] == true.exited
    assert outcomes["under way at the end"] == true.unended
    assert outcomes["events lost in between"] == 0
    assert sum(row["unmeasured"] for row in report["syscalls"]) == \
        sum(outcomes.values()) - outcomes["measured"] - outcomes["return of a new thread"]
    check_processes(report["processes"], true, oracle_io.files_of(events).pids)


def more_syscalls(report, events):
    """Each by itself, and how long those of a name took."""
    exits = {(e.ns, e.context.get("tid")): e.cpu for e in events if "syscall_exit_" in e.name}
    found = oracle_calls.calls(events)
    assert [(row["begin"], row["end"], row["syscall"], row["process"]["tid"], row["ret"])
            for row in report["log"]] == found
    files = {(io.begin, io.tid): io.file for io in oracle_io.files_of(events).calls
             if io.kind in ("read", "write") and io.file}
    durations = collections.defaultdict(list)
    entries = {(e.ns, e.context.get("tid")): e.fields for e in events if "syscall_entry_" in e.name}
    for row in report["log"]:
        check_arguments(row["arguments"] or "", entries[row["begin"], row["process"]["tid"]])
        file = row["file"]
        if (row["begin"], row["process"]["tid"]) in files:
            assert file == files[row["begin"], row["process"]["tid"]], row
        assert row["duration"] == row["end"] - row["begin"]
        assert row["cpu"] == exits[row["end"], row["process"]["tid"]]
        failed = -4096 < row["ret"] < 0
        assert row["error"] in result_of(row["ret"]) if failed else row["error"] is None
        durations[row["syscall"]].append(row["duration"])
    ranked = sorted(durations, key=lambda call: (-len(durations[call]), call))
    assert list(dict.fromkeys(row["syscall"] for row in report["freq"])) == ranked
    for call in ranked:
        oracle_figures.check_freq([row for row in report["freq"] if row["syscall"] == call], durations[call])


def check_arguments(text, fields):
    """The numbers of the entry, by name, in their order: decimal or hexadecimal."""
    numbers = [(name, value) for name, value in fields.items()
               if isinstance(value, int) and not name.endswith("_length") and name not in ("id", "nr")]
    at = 0
    for name, value in numbers[:4]:
        found = re.compile(rf"(?:^|, ){re.escape(name)}=(-?\w+)").search(text, at)
        assert found, (text, name)
        assert int(found.group(1), 0) in (value, value & (1 << 64) - 1), (text, name, value)
        at = found.start()


def check_processes(rows, true, pids):
    sums, tids = collections.defaultdict(collections.Counter), collections.defaultdict(set)
    for (tid, call), durations in true.durations.items():
        who = pids.get(tid, -tid)
        sums[who].update(count=len(durations), total=sum(durations),
                         failed=sum(true.errors[tid, call].values()))
        tids[who].add(tid)
    every = sum(who["count"] for who in sums.values())
    assert {process_of(row) for row in rows} == set(sums)
    mine = collections.defaultdict(collections.Counter)
    for row in rows:
        mine[process_of(row)].update({column: row[column] for column in ("count", "total", "failed")})
        assert row["threads"] >= len(tids[process_of(row)])  # an id that was used twice is two
        assert close(row["share"], row["count"] / every)
    for who, want in sums.items():
        assert +mine[who] == +want, who


def process_of(row):
    """Its id; of a thread whose process is not known, that one's, negative."""
    process = row["process"]
    return process["pid"] if process["pid"] is not None else -process["tid"]


# ---- what the checks of oracle_reports leave out ---------------------------------------------------

def result_of(ret):
    """What a column of errors says: names that a number may have."""
    restarts = {512: "ERESTARTSYS", 513: "ERESTARTNOINTR", 514: "ERESTARTNOHAND",
                516: "ERESTART_RESTARTBLOCK"}
    return {name for name in dir(errno) if getattr(errno, name) == -ret} | {restarts.get(-ret, f"errno {-ret}")}


def more_block(report, events):
    done = oracle_io.requests(events)
    disks = slow_disks(events)
    oracle_block.check_more(report, events, lambda dev: disks.get(dev, f"{dev >> 20},{dev & 0xfffff}"), done)
    ends = [e for e in events if e.name == "block_rq_complete" and e.fields.get("nr_sector")]
    errors = {(e.ns, e.fields["dev"]): e.fields["error"] for e in ends}
    by_op, who = collections.Counter(), collections.defaultdict(collections.Counter)
    for r, row in zip(done, report["log"]):
        error = errors[r.end, r.dev]
        assert (row["error"] or 0) == error
        assert row["disk"] == disks.get(r.dev, f"{r.dev >> 20},{r.dev & 0xfffff}")
        assert (row["process"] and row["process"]["tid"]) == r.tid
        assert row["sector"] is not None
        assert row["duration"] == (r.issued and r.end - r.issued)
        assert row["queue_time"] == (r.issued - r.queued if r.issued and r.queued else None)
        by_op[row["disk"], row["op"]] += error != 0
        mine = who[r.tid]
        mine["requests"] += 1
        mine["read"] += 512 * r.sectors * (row["op"] == "read")
        mine["written"] += 512 * r.sectors * (row["op"] == "write")
        mine["total"] += r.end - r.issued if r.issued else 0
    for row in report["disks"]:
        assert row["errors"] == by_op[row["disk"], row["op"]]
    mine = collections.defaultdict(collections.Counter)
    every = sum(w["read"] + w["written"] for w in who.values())
    for row in report["processes"]:
        tid = row["process"] and row["process"]["tid"]
        mine[tid].update({column: row[column] or 0 for column in ("requests", "read", "written", "total")})
        assert close(row["share"] or 0, (row["read"] + row["written"]) / max(every, 1))
    assert {tid: +sums for tid, sums in mine.items()} == {tid: +sums for tid, sums in who.items()}


def slow_disks(events):
    return {e.fields["dev"]: e.fields["diskname"] for e in events
            if e.name == "lttng_statedump_block_device"}


def more_interrupts(report, events):
    """Whom they interrupted, and what they are."""
    entered, ran = {}, collections.defaultdict(dict)
    for event in events:
        what = oracle_interrupts.irq_event(event)
        if what and what[3] == "entry":
            entered[event.ns, event.cpu] = event.context.get("tid") or None
    for row in report["log"]:
        tid = entered[row["begin"], row["cpu"]]
        assert (row["thread"] and row["thread"]["tid"]) == tid, (tid, row)
        ran[row["kind"]][row["irq"]["name"]] = True
    for table in ("irqs", "softirqs", "latency"):
        for row in report.get(table, ()):
            assert row["kind"] == row["irq"]["kind"] and row["irq"]["name"] in ran[row["kind"]]
    runs = [run for run in oracle_interrupts.interrupts(events) if run.raised is not None]
    for row in report.get("latency", ()):
        there = collections.Counter(run.cpu for run in runs if (run.nr, run.kind) == (row["irq"]["nr"], "soft"))
        assert row["cpus"] == {str(cpu): n for cpu, n in there.items()}


def more_locks(report, events):
    found = oracle_calls.futexes(events)
    for row, wait in zip(report["log"], found):
        assert row["result"] == "woken" if wait.ret >= 0 else row["result"] in result_of(wait.ret)
    other = [wait for wait in found if wait.ret < 0 and wait.ret not in (-11, -110)]
    assert sum(row["failed"] for row in report["locks"]) == len(other)
    for result in {row["result"] for row in report["freq"]}:
        oracle_figures.check_freq([row for row in report["freq"] if row["result"] == result],
                                [w.end - w.begin for w in found if (w.ret >= 0) == (result == "woken")])
    assert sum(row["count"] for row in report["freq"]) == len(found)


def more_memory(report, events):
    faults = {"x86_exceptions_page_fault_user": "user_faults",
              "x86_exceptions_page_fault_kernel": "kernel_faults"}
    who = collections.defaultdict(collections.Counter)
    for event in events:
        if event.name in faults:
            who[event.context.get("tid") or None][faults[event.name]] += 1
    total, = report["total"]
    mine = collections.defaultdict(collections.Counter)
    for row in report["processes"]:
        mine[row["process"] and row["process"]["tid"]].update(
            {column: row[column] or 0 for column in faults.values()})
    for column in faults.values():
        assert (total[column] or 0) == sum(sums[column] for sums in who.values())
        for tid, sums in mine.items():
            assert sums[column] == who[tid][column]
    for row in report["rss"]:
        assert row["last"] == row["file"] + row["anonymous"] + row["shared"]
        assert row["process"]["pid"] is not None or row["process"]["tid"] is not None


def more_sched(report, events):
    oracle_moves.check_preemptions(report, events, oracle_cpu.waits(events))
    oracle_moves.check_migrations(report["migrations"], events, kernel_text.Cpu(events).migrations)
    prio = kernel_text.Cpu(events).prio
    rows = [row["process"]["tid"] for row in report["threads"]]
    for row in report["threads"]:
        assert row["threads"] is None
        if rows.count(row["process"]["tid"]) == 1:
            assert row["prio"] == prio[row["process"]["tid"]]
    queues, irqs = queue_lengths(events)
    for row in report["cpus"]:
        assert row["max_queue"] == queues[row["cpu"]]
    for row in report["log"]:
        irq = row["irq"] and (row["irq"]["kind"], row["irq"]["nr"], row["irq"]["name"])
        assert irq == irqs.get((row["begin"], row["process"]["tid"])), row


def queue_lengths(events):
    """The most threads that waited for each CPU at a time; and the interrupts that woke, by time and thread."""
    running, stacks, where, longest = oracle_cpu.Running(), oracle_interrupts.Stacks(), {}, collections.Counter()
    left_early = set()
    early, irqs, tops = oracle_cpu.Early(), {}, {}

    def wait(tid, cpu):
        where[tid] = cpu
        longest[cpu] = max(longest[cpu], sum(other == cpu for other in where.values()))

    for event in events:
        fields = event.fields
        where.pop(running.see(event), None)
        if event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            woken, stack = fields["tid"], stacks.stacks[event.cpu]
            if woken in running.current.values():
                early.runs(event)
                tops[woken] = stack and stack[-1][:3]
                continue
            if woken not in where and stack and woken not in left_early:
                irqs[event.ns, woken] = stack[-1][:3]
            left_early.discard(woken)
            if where.get(woken) != fields["target_cpu"]:
                wait(woken, fields["target_cpu"])
        elif event.name == "sched_switch":
            running.current[event.cpu] = fields["next_tid"]
            where.pop(fields["prev_tid"], None)
            if early.leaves(event):
                left_early.add(fields["prev_tid"])
                if tops[fields["prev_tid"]]:
                    irqs[event.ns, fields["prev_tid"]] = tops[fields["prev_tid"]]
            if fields["prev_tid"] and number(fields["prev_state"]) & 0xff == 0:
                wait(fields["prev_tid"], event.cpu)
            where.pop(fields["next_tid"], None)
        elif event.name == "sched_migrate_task" and where.get(fields["tid"], fields["dest_cpu"]) != fields["dest_cpu"]:
            wait(fields["tid"], fields["dest_cpu"])
        stacks.see(event)
    return longest, irqs


def more_rates(report, events):
    begin, end, length = events[0].ns, events[-1].ns, 1000000
    while (end - begin) // length >= 30:
        length *= 2
    counts = collections.Counter()
    for call in oracle_calls.calls(events):
        counts[(call[1] - begin) // length, call[3], call[2]] += 1
    mine = collections.Counter()
    for row in report["log"]:
        mine[(row["begin"] - begin) // length, row["process"]["tid"], row["syscall"]] += row["count"]
        span = min(length, end - row["begin"])  # the last one may be cut
        assert row["rate"] is None and not span or close(row["rate"], row["count"] * 1e9 / span)
    assert mine == counts
    assert [row["begin"] for row in report["log"]] == sorted(row["begin"] for row in report["log"])


def more_threads(report, events):
    true = kernel_text.Cpu(events)
    pids = oracle_io.files_of(events).pids
    parents = {}
    for event in events:
        fields = event.fields
        if event.name == "lttng_statedump_process_state":
            parents[fields["tid"]] = fields["ppid"]
        elif event.name == "sched_process_fork":
            same = fields["child_pid"] == fields["parent_pid"]
            parents[fields["child_tid"]] = parents.get(fields["parent_tid"]) if same else fields["parent_pid"]
    times, migrations = (collections.Counter() for _ in range(2))
    tids = [row["process"]["tid"] for row in report["processes"]]
    for row in report["processes"]:
        tid = row["process"]["tid"]
        assert row["threads"] is None
        times[tid] += row["cpu_time"]
        migrations[tid] += row["migrations"]
        assert close(row["usage"], row["cpu_time"] / true.range)
        if tids.count(tid) == 1:
            assert row["prio"] == true.prio.get(tid)
            assert row["parent"] == parents.get(tid)
            assert row["process"]["pid"] == pids.get(tid), (row, pids.get(tid))
    assert +times == +true.time and +migrations == +true.migrations


MORE = {"block": more_block, "irq": more_interrupts, "locks": more_locks, "memory": more_memory,
        "sched": more_sched, "softirq": more_interrupts, "syscall-rates": more_rates,
        "syscalls": more_syscalls, "threads": more_threads}
CHECKS = {**oracle_reports.CHECKS, "cpu": check_cpu, "syscalls": check_syscalls}
# Words, which are the program's.
WORDS = {("summary", "facts", "subject"), ("locks", "holds", "did"), ("locks", "log", "did")}


# ---- all of a report -----------------------------------------------------------------------------

def check_top(report):
    """The longest are rows of the log."""
    if "top" in report and "log" in report and report["log"]:
        every = {json.dumps(row, sort_keys=True) for row in report["log"]}
        for row in report["top"]:
            row.looked_at.update(row)
            assert json.dumps(row, sort_keys=True) in every
        durations = sorted((row["duration"] or 0 for row in report["log"]), reverse=True)
        if report["top"] and "kind" not in report["top"][0]:
            assert [row["duration"] for row in report["top"]] == durations[:len(report["top"])]


def check(name, tables, events):
    """@tables: {name: rows}, all of the report's, with all rows."""
    looked_at = {table: set() for table in tables}
    report = {table: [Row(row, looked_at[table]) for row in rows] for table, rows in tables.items()}
    CHECKS[name](report, events)
    if name in MORE:
        MORE[name](report, events)
    check_top(report)
    for table, rows in report.items():
        for row in rows:
            assert dict.get(row, "host") is None  # there is one
        missed = {column for column in (rows[0] if rows else ()) if column != "host"} - looked_at[table]
        assert {column for column in missed if (name, table, column) not in WORDS} == set(), (name, table)
