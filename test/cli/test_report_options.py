# SPDX-License-Identifier: MIT
"""Every option that chooses works in every report, or is refused in a line that says why. One trace
of this machine that has what all reports need, and one pass of all of them for each option."""

import errno
import collections
import json
import os
import re
import subprocess
import time

import pytest

PERIODS = ("--period", "call : $event =~ 'syscall_entry_*' : $event =~ 'syscall_exit_*' : $ctx.tid")
IGNORES_BY = {"summary", "io-log", "irq", "softirq"}
IGNORES_DURATION = {"cpu", "threads", "net", "memory"}
# Which table's rows are of threads, and can be added up; which column adds up, too.
BY = {"cpu": ("threads", "cpu_time"), "threads": ("processes", "cpu_time"),
      "sched": ("threads", "preempted"), "syscalls": ("threads", "count"),
      "syscall-rates": ("threads", "count"), "io": ("processes", "bytes"),
      "io-latency": ("threads", "count"), "block": ("processes", "requests"),
      "net": ("processes", "sent"), "locks": ("threads", "count"),
      "memory": ("processes", "allocated"), "periods": ("threads", "count")}
# A table with a row for each thing that took time, and the columns that say how long.
LONG = {"sched": ("log", "duration"), "syscalls": ("log", "duration"), "io-latency": ("log", "duration"),
        "io-log": ("log", "duration"), "block": ("log", "duration"), "locks": ("log", "duration"),
        "irq": ("log", "duration"), "softirq": ("log", "duration"), "periods": ("log", "duration")}


@pytest.fixture(scope="module")
def machine(kymo, needs_root_tracefs, without_losses, tmp_path_factory):
    path = tmp_path_factory.mktemp("options")
    work = (f"dd if=/dev/zero of={path}/file bs=64k count=16 conv=fsync; "
            "for i in 1 2 3 4 5; do ls -R /etc; done | cat; "
            "/usr/bin/python3 -c 'import threading, time\n"
            "lock = threading.Lock(); lock.acquire()\n"
            "waiter = threading.Thread(target=lock.acquire); waiter.start()\n"
            "time.sleep(0.1); lock.release(); waiter.join()'")
    counter = iter(range(9))

    def record(*options):
        out = path / f"trace-{next(counter)}"
        return out, kymo("record", "-o", out, *options, "--", "sh", "-c", work)

    return without_losses(record, "-k", "default", "-k", "kmem_mm_page_*")[0]


@pytest.fixture(scope="module")
def everything(kymo, machine):
    """everything(*options) -> {report: {table: rows}}, notes; of all reports, logs too."""
    names = json.loads(kymo("report", "all", "--json", *PERIODS, machine).out)["reports"]
    tables = {"log"} | {table["name"] for report in names for table in report["tables"]}
    words = [word for table in sorted(tables) for word in ("-t", table)]

    def call(*options, times=1):
        reports = json.loads(kymo("report", "all", "--json", *PERIODS, *words, *options, machine).out)["reports"]
        assert [r["name"] for r in reports] == [r["name"] for r in names] * times
        return ({r["name"]: {t["name"]: t["rows"] for t in r["tables"]} for r in reports},
                {r["name"]: r["notes"] for r in reports})

    return call


@pytest.fixture(scope="module")
def whole(everything):
    return everything("--limit", "0")[0]


def test_table_is_of_all_reports(whole):
    """A new report has to say here what it heeds."""
    others = {"signals", "timers", "page-cache"}  # by receivers, owners and readers
    assert set(BY) | IGNORES_BY | others == set(whole)
    assert set(LONG) | IGNORES_DURATION | {"summary", "syscall-rates", "io"} | others == set(whole)


def test_limit(everything, whole):
    """The first rows, or as many groups with as many rows each; tables that are always whole are whole."""
    for name, tables in everything("--limit", "2")[0].items():
        for table, rows in tables.items():
            every = whole[name][table]
            if (name, table) == ("syscalls", "freq"):  # two headings, with all their steps
                calls = list(dict.fromkeys(row["syscall"] for row in every))[:2]
                assert rows == [row for row in every if row["syscall"] in calls]
                continue
            groups = 5 if (name, table) == ("io-latency", "top") else 2 if (name, table) in GROUPED else 1
            assert rows == every or (len(rows) <= 2 * groups and rows[0] == every[0]), (name, table)
        if name in ("cpu", "threads", "sched", "syscalls", "io"):
            assert any(len(rows) < len(whole[name][table]) for table, rows in tables.items()), name


@pytest.mark.parametrize("column", ("total", "count", "begin"))
def test_sort(everything, column):
    """Every table that has the column is in its order; those of groups within the groups."""
    sorted_tables = 0
    for name, tables in everything("--sort", f"{column}:asc", "--limit", "0")[0].items():
        for table, rows in tables.items():
            if not rows or column not in rows[0] or (name, table) in GROUPED:
                continue
            values = [row[column] for row in rows if row[column] is not None]
            assert values == sorted(values), (name, table)
            sorted_tables += 1
    assert sorted_tables > 5


GROUPED = {(name, table) for name, table in (
    ("syscalls", "threads"), ("syscall-rates", "threads"), ("io-latency", "threads"), ("io-latency", "top"),
    *((name, "freq") for name in ("sched", "syscalls", "io-latency", "block", "locks", "irq", "softirq", "periods")),
    ("softirq", "latency_freq"))}


@pytest.mark.parametrize("by", ("name", "process", "cgroup"))
def test_group_by(everything, whole, by):
    """Rows of threads become rows of names or processes, and what they count stays the same."""
    found, notes = everything("--group-by", by, "--limit", "0")
    for name, (table, column) in BY.items():
        rows = found[name][table]
        who = [row["process"] for row in rows if row["process"] and row["process"].get("name")]
        if by in ("name", "cgroup"):
            assert all(process["tid"] is None and process["pid"] is None for process in who), name
        else:
            assert all(process["tid"] is None or process["pid"] is None for process in who), name
        assert sum(row[column] or 0 for row in rows) == \
            sum(row[column] or 0 for row in whole[name][table]), name
        assert not any("no rows of threads to group" in note for note in notes[name]), name
    for name in IGNORES_BY:
        assert any("no rows of threads to group" in note for note in notes[name]), name
        assert found[name] == whole[name], name


def test_min_and_max(everything, whole):
    low, high = 20_000, 2_000_000
    found, notes = everything("--min", "20us", "--max", "2ms", "--limit", "0")
    for name, (table, column) in LONG.items():
        values = [row[column] for row in found[name][table] if row[column] is not None]
        assert all(low <= value <= high for value in values), name
        if table == "log":
            want = [row for row in whole[name][table]
                    if row[column] is not None and low <= row[column] <= high]
            kept = [row for row in found[name][table] if row[column] is not None]
            assert len(kept) == len(want), name
    for name in IGNORES_DURATION:
        assert any("no durations to select by" in note for note in notes[name]), name
        assert found[name] == whole[name], name


def test_threads_and_cpus(everything):
    """--comm and --cpu exclude all other threads."""
    found, _ = everything("--comm", "ls", "--limit", "0")
    for name, (table, _) in BY.items():
        assert {row["process"]["name"] for row in found[name][table] if row["process"]} <= {"ls", "sh"}, name
    found, _ = everything("--cpu", "0", "--limit", "0")
    for name, tables in found.items():
        for table, rows in tables.items():
            assert all(row["cpu"] in (0, None) for row in rows if "cpu" in row), (name, table)


def test_control_group(kymo, record, without_losses, control_groups):
    """By its number or its directory: its processes and their children; other groups likewise."""
    group = os.path.join(control_groups, f"kymo-report-{os.getpid()}")
    os.mkdir(group)
    try:
        number = os.stat(group).st_ino
        trace, _ = without_losses(record, "--context", "cgroup", command=[
            "sh", "-c", f"ls /; sh -c 'echo $$ >{group}/cgroup.procs; /bin/echo in; exec od /proc/self/stat'; ls /"])
        by_directory = kymo("report", "cpu,syscalls", "--json", "-n", "0", "--cgroup", group, trace).out
    finally:
        os.rmdir(group)
    found = kymo("report", "cpu,syscalls", "--json", "-n", "0", "--cgroup", number, trace).out
    assert found == by_directory
    for report in json.loads(found)["reports"]:
        rows = next(table["rows"] for table in report["tables"] if table["name"] == "threads")
        assert {row["process"]["name"] for row in rows} == {"echo", "od"}, report["name"]
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        mine = next(line[3:].strip("/\n") for line in file if line.startswith("0::"))
    others = json.loads(kymo("report", "syscalls", "--json", "-n", "0", "-t", "processes",
                             "--cgroup", os.stat(os.path.join(control_groups, mine)).st_ino, "--comm", "nobody",
                             trace).out)
    names = {row["process"]["name"] for row in others["reports"][0]["tables"][0]["rows"]}
    assert "ls" in names and "echo" not in names


def remove_group(group):
    """Once the last one in it has ended."""
    for _ in range(400):
        try:
            os.rmdir(group)
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        time.sleep(0.05)
    pytest.fail(f"{group} does not become empty")


def test_control_groups_of_processes_that_were_there_before(kymo, record, without_losses, control_groups):
    """By the state dump, and by the events of those who change: no context is needed."""
    names = [f"kymo-before-{os.getpid()}-{i}" for i in range(2)]
    for name in names:
        os.mkdir(os.path.join(control_groups, name))
    groups = [os.path.join(control_groups, name) for name in names]
    spin = "while :; do /bin/true; done"
    try:
        with subprocess.Popen(["sh", "-c", f"echo $$ >{groups[0]}/cgroup.procs; echo in; exec sh -c '{spin}'"],
                              stdout=subprocess.PIPE) as before:
            try:
                assert before.stdout.readline() == b"in\n"
                trace, _ = without_losses(record, command=[
                    "sh", "-c", f"sleep 0.2; echo $$ >{groups[1]}/cgroup.procs; ls /; exec od /proc/self/stat"])
            finally:
                before.kill()
    finally:
        for group in groups:
            remove_group(group)

    def threads(report, *options):
        found = json.loads(kymo("report", report, "--json", "-n", "0", *options, trace).out)["reports"][0]
        return next(table["rows"] for table in found["tables"] if table["name"] == "threads")

    inside = threads("cpu", "--cgroup", "/" + names[0])
    assert before.pid in {row["process"]["tid"] for row in inside}
    assert {row["process"]["name"] for row in inside} == {"sh", "true"}
    moved = threads("cpu", "--cgroup", f"/kymo-before-*{os.getpid()}-1")
    assert {row["process"]["name"] for row in moved} == {"ls", "od"}
    # Everybody is in one group, whose row adds up its threads'.
    every = {row["process"]["tid"]: row for row in threads("cpu")}
    rows = {row["process"]["name"]: row for row in threads("cpu", "--group-by", "cgroup")}
    assert {"/" + name for name in names} <= set(rows)
    assert sum(row["cpu_time"] for row in rows.values()) == sum(row["cpu_time"] for row in every.values())
    assert sum(row["threads"] for row in rows.values()) == len(threads("cpu"))
    # Before the state dump has a process, its group is unknown.
    assert rows["/" + names[0]]["cpu_time"] >= sum(row["cpu_time"] for row in inside)
    calls = {row["process"]["name"] for row in threads("syscalls", "--group-by", "cgroup")}
    assert {"/" + name for name in names} <= calls


def test_control_group_of_a_trace_without(kymo, machine, lttng_kernel):
    theirs = os.path.join(lttng_kernel, "kernel")
    for options in (("--cgroup", "17"), ("--cgroup", "/"), ("--group-by", "cgroup")):
        refused = kymo("report", "all", *options, theirs, code=1)
        assert refused.out == "" and ": the trace does not contain the threads' control groups" in refused.err
        assert ("grouped" if options[0] == "--group-by" else "selected") in refused.err
        assert "the state dump of kymo record contains them" in refused.err
    assert "is not a number, directory or path" in kymo("report", "cpu", "--cgroup", "nowhere", machine,
                                                            code=2).err


def test_filter(everything, whole):
    """Without system calls no report knows any; the others' events are all there."""
    found, _ = everything("--filter", "!($event =~ '*syscall_*')", "--limit", "0")
    for name in ("syscalls", "syscall-rates", "io-latency", "io-log", "locks", "periods"):
        assert not any(rows for table, rows in found[name].items()
                       if table in ("log", "threads", "top", "syscalls")), name
    for name in ("irq", "softirq", "memory"):
        assert found[name].keys() == whole[name].keys()
        assert any(found[name].values()), name


# With half of the switches, what CPUs did is often known only later, or not at all.
@pytest.mark.parametrize("chosen", ((), ("--filter", "$event != 'sched_switch' || next_tid % 2 == 1")))
def test_refresh(kymo, machine, chosen):
    """Intervals of all reports; what is counted is counted in one of them, and they add up to the whole
    however late it was known what a CPU had done."""
    def sums(*options):
        found = json.loads(kymo("report", "all", "--json", *PERIODS, "--limit", "0", *options, *chosen, machine).out)
        length = found["range"]["end_ns"] - found["range"]["begin_ns"]
        reports = found["reports"]
        parts = {name: [r for r in reports if r["name"] == name] for name in BY}
        return length, parts, {
            name: sum(row[column] or 0 for r in parts[name] for t in r["tables"] if t["name"] == table
                      for row in t["rows"]) for name, (table, column) in BY.items()}

    length, whole, expected = sums()
    # There may be some 600 of them, for all reports together.
    for interval in (100_000_000, 10_000_000):
        _, parts, found = sums("--refresh", f"{max(interval, length // 500)}ns")
        assert all(len(part) > 1 and all("interval" in r for r in part) for part in parts.values())
        assert found == expected
    assert not chosen or "not recorded (by" in str(whole["cpu"][0]["notes"])


def test_missing_switches_are_of_the_range(kymo, machine):
    """
    The intervals' add up to those of the whole; each interval has its own note, in text too. Without the switches to odd threads, since
    a busy machine has none to idle.
    """
    options = ("report", "cpu", "--filter", 'next_tid & 1 == 0', machine)

    def missing(*more):
        notes = [note for r in json.loads(kymo(*options, *more, "--json").out)["reports"] for note in r["notes"]]
        return [int(note.split()[0]) for note in notes if " not recorded (by" in note]

    (whole,), parts = missing(), missing("--refresh", "5ms")
    assert len(parts) > 3 and sum(parts) == whole
    assert missing("--end", "50%")[0] + missing("--begin", "50%")[0] in (whole, whole + 1)
    assert kymo(*options, "--refresh", "5ms").out.count("not recorded (by") == len(parts)


def test_refresh_says_once_what_stays_the_same(kymo, lttng_kernel):
    """The reference trace has no page events: a note in each interval, in text in the first one."""
    trace = os.path.join(lttng_kernel, "kernel")
    options = ("report", "cpu,memory", "--refresh", "500ms")
    found = [r for r in json.loads(kymo(*options, "--json", trace).out)["reports"] if r["name"] == "memory"]
    assert len(found) > 5 and all("kmem_mm_page" in r["notes"][0] for r in found)
    for text in (kymo(*options, trace).out, kymo(*options, "--html", trace).out):
        assert text.count("the trace has no kmem_mm_page") == 1


def first_rows(name, table, limit):
    """What --limit leaves of a table: of groups so many, or of each so many, by the table's kind."""
    first = table["columns"][0]["name"] if name in GROUPED else None
    kept, groups, last, n = [], 0, None, 0
    for row in table["rows"]:
        if first and row[first] != last:
            last, n, groups = row[first], 0, groups + 1
        n += 1
        if (n <= limit or name == ("syscalls", "freq")) and (groups <= limit or name[1] == "top"):
            kept.append(row)
    return kept


@pytest.mark.parametrize("column", ("begin", "duration:asc", "duration", "count:asc", "bytes", "syscall"))
def test_rows_are_sorted_and_then_limited(kymo, reference, column):
    """Whatever the order, --limit takes the first rows of it, and not some of those that another order chose."""
    words = [word for table in ("log", "top", "freq", "threads", "processes", "files", "syscalls", "rss", "pairs",
                                "captured", "irqs", "softirqs", "latency") for word in ("-t", table)]

    def tables_of(*options):
        found = json.loads(kymo("report", "all", "--json", "--sort", column, *PERIODS, "--end", "5%",
                                *words, *options, reference).out)["reports"]
        return {(report["name"], table["name"]): table for report in found for table in report["tables"]}

    whole, some = tables_of("--limit", "0"), tables_of("--limit", "3")
    for name, table in whole.items():
        if column.split(":")[0] not in [c["name"] for c in table["columns"]] or \
                name[1].endswith("freq") and name != ("syscalls", "freq"):
            continue
        assert some[name]["rows"] == first_rows(name, table, 3), (name, column)
        assert some[name]["omitted"] == len(table["rows"]) - len(some[name]["rows"])


@pytest.mark.parametrize("by, of", (("name", lambda who: who["name"]), ("process", lambda who: who["pid"])))
def test_pairs_are_grouped(kymo, reference, by, of):
    """Both sides of who waited for whom are added up."""
    def pairs(*options):
        out = kymo("report", "locks", "-t", "pairs", "--json", "--limit", "0", *options, reference).out
        (table,) = json.loads(out)["reports"][0]["tables"]
        return table["rows"]

    expected = collections.Counter()
    for row in pairs():
        expected[of(row["waiter"]), of(row["waker"])] += row["count"]
    found = {(of(row["waiter"]), of(row["waker"])): row["count"] for row in pairs("--group-by", by)}
    assert found and found == expected


@pytest.mark.parametrize("options, message", (
    (("-t", "nosuch"), "no table has the name 'nosuch'; there are locks, holders, holds, threads, pairs, top, freq, log"),
    (("-s", "nosuch"), "no table has a column 'nosuch'; there are process, address, waiters, "),
    (("-t", "pairs", "-s", "begin"), None)))
def test_names_that_are_unknown(kymo, machine, options, message):
    done = kymo("report", "locks", *options, machine, code=2 if message else 0)
    assert not message or message in done.err


@pytest.mark.parametrize("name", sorted(IGNORES_BY))
def test_group_by_is_refused(kymo, machine, name):
    failed = kymo("report", name, "--group-by", "name", machine, code=2)
    assert failed.err == f"kymo: --group-by: report {name} has no rows of threads to group\n"
    assert failed.out == ""


@pytest.mark.parametrize("name", sorted(IGNORES_DURATION))
def test_min_and_max_are_refused(kymo, machine, name):
    for option in ("--min", "--max"):
        failed = kymo("report", name, option, "5ms", machine, code=2)
        assert failed.out == "" and re.fullmatch(
            f"kymo: --min, --max: report {name} has no durations .*\n", failed.err)


def test_period_is_refused_elsewhere(kymo, machine, whole):
    for name in sorted(set(whole) - {"periods"}):
        assert "--period needs report periods" in kymo("report", name, *PERIODS, machine, code=2).err


@pytest.mark.parametrize("name", ("cpu", "all"))
@pytest.mark.parametrize("times", (("--begin", "2040-01-01"), ("--end", "1990-01-01"), ("--begin", "+1000s"),
                                   ("--timerange", "1980-01-01,1990-01-01")))
def test_range_outside_of_the_trace(kymo, machine, name, times):
    """No events, no range, and one note that says where the trace is."""
    for refresh in ((), ("--refresh", "10ms")):
        found = json.loads(kymo("report", name, "--json", *times, *refresh, machine).out)
        assert found["range"] is None and found["events"] == 0
        notes = [note for report in found["reports"] for note in report["notes"] if "record them with" not in note]
        assert len(notes) == 1 and re.match("the range contains no events.* goes from .* to ", notes[0])
        assert not any(table["rows"] for report in found["reports"] for table in report["tables"])
    text = kymo("report", name, *times, machine).out
    assert "Range  no events\n" in text and text.count("the range contains no events") == 1


def test_bound_on_intervals_is_of_all_reports_together(kymo, machine):
    """9,999 intervals of one report, and of more of them so many fewer, so that memory has a bound."""
    for name, most in (("cpu", 9999), ("summary,cpu", 4999), ("summary,cpu,irq,net", 2499)):
        stopped = kymo("report", name, "--csv", "-t", "total", "--refresh", "1us", machine, code=1)
        assert f"more than {most} intervals: the output leaves out the rest; choose longer intervals" in stopped.err
        rows = [line.split(",") for line in stopped.out.splitlines() if line.startswith("cpu.total,")]
        assert len(rows) == most
        assert all(int(row[2]) - int(row[1]) == 1000 for row in rows)
        assert [row[1] for row in rows[1:]] == [row[2] for row in rows[:-1]]  # none twice


def test_note_says_that_nobody_has_the_name(kymo, reference):
    def note(*words):
        return [note for report in json.loads(kymo("report", "--json", *words, reference).out)["reports"] for note in report["notes"]
                if "no thread" in note or "no process" in note]

    assert note("syscalls,locks", "--comm", "nosuchname") == ["no thread is named 'nosuchname'"]
    found, = note("syscalls", "--comm", "a-name-of-20-letters", "--tid", "99999999", "--pid", "99999998")
    assert found == ("no thread is named 'a-name-of-20-letters' (the kernel keeps 15 bytes of a name: 'a-name-of-20-le'); "
                     "no process has the ID 99999998; no thread has the ID 99999999")
    assert "no thread is named" in kymo("report", "heatmap", "--of", "syscall:read", "--comm", "nosuchname", reference).out
    tables = json.loads(kymo("report", "--json", "cpu", "-t", "threads", reference).out)["reports"][0]["tables"]
    assert not note("cpu", "--comm", tables[0]["rows"][0]["process"]["name"]) and not note("cpu", "--comm", "*")
    assert "<" not in kymo("report", "heatmap", reference, code=2).err
    assert "report compare [OPTIONS] A B" in kymo("report", "compare", "--help").out
