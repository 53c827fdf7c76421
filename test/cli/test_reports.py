# SPDX-License-Identifier: MIT
"""Every figure of the reports against a second, independent computation (oracle_reports.py), against
lttng-analyses where that is right, and against what a program of ours is known to have done."""

import json
import os
import re

import pytest

import make_trace
import oracle_cpu
import oracle_figures
import oracle_io
import oracle_reports
import oracle_whole
from oracle_figures import close, tables


def everything(kymo, name, trace, *options):
    """All tables of a report, logs too."""
    first = kymo("report", "--json", name, *options, trace, code=None)
    if first.code == 1 and "and the trace has none" in first.err:
        pytest.skip(first.err)
    listed = json.loads(first.out)["reports"][0]["tables"]
    result = kymo("report", "--json", name, "-t", "log", *options,
                  *(word for table in listed for word in ("-t", table["name"])), trace, code=None)
    if result.code == 2:  # it has no log
        result = kymo("report", "--json", name, *options, trace)
    assert result.code == 0, result
    return tables(result, name)


def expected(lttng_kernel, name):
    with open(os.path.join(lttng_kernel, "expected", f"lttng-{name}.mi.json"),
              encoding="utf-8") as file:
        return json.load(file)["results"]


# ---- against a second computation ----------------------------------------------------------------

@pytest.mark.parametrize("name", sorted(oracle_whole.CHECKS))
def test_reference_trace_equals_second_computation(kymo, reference, events, name):
    oracle_whole.check(name, everything(kymo, name, reference, *oracle_reports.OPTIONS.get(name, ())),
                     events)


FILES = "for i in 1 2; do ls -R /etc >/dev/null; done; dd if=/dev/zero of=big bs=64k count=64 conv=fsync"
THREADS = """
import os, socket, subprocess, threading, time
lock, pair, pipe = threading.Lock(), socket.socketpair(), os.pipe()
server = socket.create_server(("127.0.0.1", 0))
try:
    client = socket.create_connection(server.getsockname())
    other, _ = server.accept()
except OSError:  # loopback is not up
    client, other = pair

def fight():
    for _ in range(40):
        with lock:
            time.sleep(0.0005)

threads = [threading.Thread(target=fight) for _ in range(3)]
for thread in threads:
    thread.start()
for i in range(20):
    client.send(b"x" * 1000)
    other.recv(10000)
    os.write(pipe[1], b"y" * (i + 1))
    os.read(pipe[0], 100)
    bytearray(1 << 20)
    subprocess.run(["/bin/true", str(i)], check=True)
with open("small", "wb", buffering=0) as file:
    for _ in range(10):
        file.write(b"z" * 5000)
        os.fsync(file)
    try:
        os.lseek(file.fileno(), -1, os.SEEK_SET)
    except OSError:
        pass
for thread in threads:
    thread.join()
"""
WORK = {"files": ((), ["sh", "-c", FILES]),
        "threads": (("-k", "default", "-k", "rss_stat", "-k", "x86_exceptions_*"),
                    ["/usr/bin/python3", "-c", THREADS])}


@pytest.mark.parametrize("work", sorted(WORK))
def test_recorded_trace_equals_second_computation(record, kymo, tmp_path, work):
    """Traces of this machine, recorded now, with the names of this machine's kernel.

    Of a busy machine's only the beginning, as plain Python takes long."""
    options, command = WORK[work]
    whole, _ = record(*options, command=command, cwd=tmp_path)
    trace = tmp_path / "cut"
    kymo("convert", "--to", "ctf1.8", "--head", "60000", "-o", trace, whole)
    notes = json.loads(kymo("report", "--json", "cpu", trace).out)["reports"][0]["notes"]
    if any("were lost" in note for note in notes):
        pytest.skip(f"the second computation has no rule for that: {notes}")
    found = oracle_figures.load(kymo("convert", "--to", "json", trace).out)
    for name in oracle_whole.CHECKS:
        oracle_whole.check(name, everything(kymo, name, trace, *oracle_reports.OPTIONS.get(name, ())), found)


# ---- against lttng-analyses ----------------------------------------------------------------------

def test_sched_equals_lttng_schedlog(kymo, reference, lttng_kernel, events):
    """Every wake-up: both times, thread, CPU, priority; and each thread's statistics.

    Of a thread that was woken before the switch that took it off was over, the wait begins at this switch. There
    lttng-analyses has the sched_wakeup after it.
    """
    report = everything(kymo, "sched", reference)
    early = oracle_cpu.early_waits(events)
    ours = [(row["begin"], row["end"], row["process"]["tid"], row["cpu"], row["prio"])
            for row in report["log"] if row["kind"] == "woken"]
    log, = expected(lttng_kernel, "schedlog")
    theirs = [(begin["value"], end["value"], wakee["tid"], cpu["id"], prio["value"])
              for begin, end, _latency, prio, cpu, wakee, _waker in log["data"]]
    assert len(ours) == len(theirs) and 0 < len(early) < 10
    for mine, other in zip(ours, theirs):
        assert mine[1:] == other[1:]
        assert mine[0] == other[0] or ((mine[0], mine[2]) in early and mine[0] < other[0])
    # Wakers: it tells none where the CPU's first switch had not come yet.
    wakers = {(row["begin"], row["process"]["tid"]): row["waker"] for row in report["log"]}
    for begin, _end, _latency, _prio, _cpu, wakee, waker in log["data"]:
        if waker and (begin["value"], wakee["tid"]) in wakers:
            assert wakers[begin["value"], wakee["tid"]]["tid"] == waker["tid"]
    rows = {row["process"]["tid"]: row for row in report["threads"] if row["count"]}
    stats = expected(lttng_kernel, "schedstats")[0]["data"]
    assert {cells[0]["tid"] for cells in stats} == set(rows)
    for process, count, low, mean, high, stdev, _prios in stats:
        if process["tid"] not in {tid for _, tid in early}:
            check_statistics(rows[process["tid"]], count, low, mean, high, stdev)


def check_statistics(row, count, low, mean, high, stdev):
    assert (row["count"], row["min"], row["max"]) == (count["value"], low["value"], high["value"])
    assert close(row["avg"], mean["value"])
    if stdev["class"] != "unknown":  # it gives none for few samples
        assert close(row["stdev"], stdev["value"], 1e-7)


def test_irq_equals_lttng_irqstats(kymo, reference, lttng_kernel):
    """Every handler's statistics, and every run of it."""
    report = everything(kymo, "irq", reference)
    rows = {row["irq"]["nr"]: row for row in report["irqs"] if row["kind"] == "hard"}
    stats = expected(lttng_kernel, "irqstats")[0]["data"]
    assert set(rows) == {cells[0]["nr"] for cells in stats}
    for irq, *figures in stats:
        assert rows[irq["nr"]]["irq"]["name"] == irq["name"]
        check_statistics(rows[irq["nr"]], *figures)
    log, = expected(lttng_kernel, "irqlog")
    assert [(row["begin"], row["end"], row["cpu"], row["irq"]["nr"])
            for row in report["log"] if row["kind"] == "hard"] == \
        [(span["begin"]["value"], span["end"]["value"], cpu["id"], irq["nr"])
         for span, _raise, cpu, irq in log["data"]]


def test_io_latency_equals_lttng_iolatencystats(kymo, reference, lttng_kernel):
    report = everything(kymo, "io-latency", reference)
    calls, disks = expected(lttng_kernel, "iolatencystats")
    rows = {row["kind"]: row for row in report["kinds"]}
    for kind, *figures in calls["data"]:
        check_statistics(rows[kind["value"].lower()], *figures)
    rows = {row["disk"]: row for row in report["disks"] if row["stage"] == "device"}
    for disk, *figures in disks["data"]:
        check_statistics(rows[disk["name"]], *figures)
    for table in expected(lttng_kernel, "iolatencytop"):  # limit + 1 rows there (difference 6)
        kind = re.search(r"\[(\w+)\]", table["class"]["title"]).group(1)
        ours = [(row["begin"], row["end"], row["syscall"], row["process"]["tid"])
                for row in report["top"] if row["kind"] == kind]
        assert ours == [(span["begin"]["value"], span["end"]["value"], call["name"],
                         process["tid"])
                        for span, _, _, call, _, process, _, _ in table["data"]][:10]


def test_io_log_equals_lttng_iolog(kymo, reference, lttng_kernel):
    """Every call that it logs, in its order; the file wherever it knows one."""
    rows = everything(kymo, "io-log", reference)["log"]
    log, = expected(lttng_kernel, "iolog")
    kinds = set(oracle_io.KIND_OF)
    theirs = [cells for cells in log["data"] if cells[3]["name"] in kinds]
    ours = {(row["begin"], row["process"]["tid"]): row for row in rows}
    # It leaves sendfile64 out.
    assert len(theirs) == len(rows) - sum(row["kind"] == "copy" for row in rows) == 2014
    for span, _, _, call, size, process, path, _fd in theirs:
        row = ours[span["begin"]["value"], process["tid"]]
        assert (row["end"], row["syscall"]) == (span["end"]["value"], call["name"])
        if size and size["value"] is not None:
            assert row["bytes"] == size["value"]
        # What was open before the trace, it takes for what process 1 had open (differences.md).
        name = (path or {}).get("path", "")
        if name[:5] in ("/mnt/", "127.0", "/bin/", "/etc/", "/proc") and row["syscall"] != "socket":
            assert row["file"] == name or row["error"]


@pytest.mark.parametrize("call", ("read", "futex", "ioctl"))
def test_periods_equal_lttng_periodstats(kymo, peer, reference, call):
    """Asked in each one's own words."""
    entry, leave = f"syscall_entry_{call}", f"syscall_exit_{call}"
    theirs = peer("lttng-periodstats-mi", "--no-intersection", "--period",
                  f'call : $evt.$name == "{entry}" : $evt.$name == "{leave}" && '
                  "$evt.$stream_ctx.tid == $begin.$evt.$stream_ctx.tid", reference)
    assert theirs.code == 0, theirs
    row, = tables(kymo("report", "--json", "periods", "--period",
                       f'call : $event == "{entry}" : $event == "{leave}" : by $ctx.tid', reference),
                  "periods")["periods"]
    _name, count, low, mean, high, stdev, total = json.loads(theirs.out)["results"][0]["data"][0]
    check_statistics(row, count, low, mean, high, stdev)
    assert row["total"] == total["value"]


def test_io_equals_lttng_iousagetop(kymo, reference, lttng_kernel):
    """Bytes per thread, file, disk and interface; see differences.md for accepted connections and /proc."""
    report = everything(kymo, "io", reference, "--group-by", "thread")
    by_class = {}
    for table in expected(lttng_kernel, "iousagetop"):
        name = table["class"] if isinstance(table["class"], str) else table["class"]["title"]
        by_class[name] = table["data"]
    threads = {row["process"]["tid"]: row for row in report["processes"]}
    for way, column in (("read", "read"), ("written", "written")):
        for process, total, disk, net, unknown in \
                by_class[f"Per-process top I/O operations [{way}]"]:
            row = threads[process["tid"]]
            assert row[column] == total["value"]
            assert row[f"disk_{column}"] + row[f"net_{column}"] + row[f"other_{column}"] + \
                row[f"unknown_{column}"] == disk["value"] + net["value"] + unknown["value"]
        for process, size in by_class[f"Per-process top block I/O operations [{way}]"]:
            assert threads[process["tid"]][f"block_{column}"] == size["value"]
        files = {row["file"]: row for row in report["files"]}
        for path, size, _fds in by_class[f"Per-file top I/O operations [{way}]"]:
            if path["path"].startswith("/mnt/"):
                # cat's sendfile64 of 512 KiB from /mnt/d1 is missing there.
                copied = 524288 if (path["path"], way) == ("/mnt/d1", "read") else 0
                assert files[path["path"]][column] == size["value"] + copied
    disk, = report["disks"]
    assert disk["sectors"] == by_class["per-disk-top-sector"][0][1]["value"]
    assert disk["requests"] == by_class["per-disk-top-request"][0][1]["value"]
    assert close(disk["latency"], by_class["per-disk-top-rps"][0][1]["value"])
    interface, = report["interfaces"]
    sent, = by_class["Per-network interface top I/O operations [sent]"]
    assert interface["sent"] == sent[1]["value"]


def test_titles_of_a_table_differ(kymo, reference):
    """A column title identifies one column of its table."""
    for report in json.loads(kymo("report", "all", "--json", reference).out)["reports"]:
        for table in report["tables"]:
            titles = [column["title"] for column in table["columns"]]
            assert len(set(titles)) == len(titles), (report["name"], table["name"], titles)


# ---- options that all reports share --------------------------------------------------------------

def test_range_counts_what_ends_in_it(kymo, reference, events):
    """--begin and --end: both inclusive; the state comes from what was before."""
    whole = everything(kymo, "sched", reference)["log"]
    begin, end = events[8000].ns, events[16000].ns
    times = (f"--begin={begin // 10**9}.{begin % 10**9:09d}",
             f"--end={end // 10**9}.{end % 10**9:09d}")
    part = everything(kymo, "sched", reference, *times)["log"]
    assert part == [row for row in whole if begin <= row["end"] <= end]
    head = json.loads(kymo("report", "--json", "cpu", *times, reference).out)
    assert head["range"] == {"begin_ns": begin, "end_ns": end}
    cpus = {row["cpu"]: row for row in head["reports"][0]["tables"][1]["rows"]}
    for row in cpus.values():
        assert row["busy"] + row["idle"] == end - begin and row["unknown"] == 0


def test_intervals_add_up_to_the_whole(kymo, reference):
    """--refresh: every run of an interrupt is in one interval, CPU time is cut at the borders."""
    parts = json.loads(kymo("report", "--json", "irq,cpu", "--refresh", "250ms", reference).out)
    whole = json.loads(kymo("report", "--json", "irq,cpu", reference).out)
    irqs = [r for r in parts["reports"] if r["name"] == "irq"]
    assert len(irqs) == 16  # 3.75 s
    assert irqs[0]["interval"]["begin_ns"] == whole["range"]["begin_ns"]
    assert irqs[-1]["interval"]["end_ns"] == whole["range"]["end_ns"]
    for before, after in zip(irqs, irqs[1:]):
        assert before["interval"]["end_ns"] == after["interval"]["begin_ns"]
    assert parts["range"] == whole["range"]

    def sums(reports, name, table, key, *columns):
        found = {}
        for report in reports:
            if report["name"] != name:
                continue
            for row in next(t for t in report["tables"] if t["name"] == table)["rows"]:
                at = found.setdefault(json.dumps(row[key]), [0] * len(columns))
                for i, column in enumerate(columns):
                    at[i] += row[column] or 0
        return found

    for args in (("irq", "irqs", "irq", "count", "total"), ("cpu", "cpus", "cpu", "busy", "idle"),
                 ("cpu", "total", "cpus", "busy")):
        assert sums(parts["reports"], *args) == sums(whole["reports"], *args)
    times, all_times = {}, {}
    for reports, into in ((parts["reports"], times), (whole["reports"], all_times)):
        for report in reports:
            if report["name"] == "cpu":
                for row in report["tables"][0]["rows"]:
                    tid = row["process"]["tid"]
                    into[tid] = into.get(tid, 0) + row["cpu_time"]
    assert times == all_times


def test_threads_cpus_and_durations_select(kymo, reference):
    whole = everything(kymo, "sched", reference)["log"]
    for options, fits in (
            (("--tid", "323"), lambda row: row["process"]["tid"] == 323),
            (("--tid", "323,326"), lambda row: row["process"]["tid"] in (323, 326)),
            (("--tid", "323", "--tid", "326"), lambda row: row["process"]["tid"] in (323, 326)),
            (("--pid", "323"), lambda row: row["process"]["pid"] == 323),
            (("--comm", "rcu_pre*"), lambda row: row["process"]["name"] == "rcu_preempt"),
            (("--comm", "lock-?", "--tid", "15"),
             lambda row: row["process"]["name"][:5] == "lock-" or row["process"]["tid"] == 15),
            (("--cpu", "1"), lambda row: row["cpu"] == 1),
            (("--min", "1ms"), lambda row: row["duration"] >= 1000000),
            (("--max", "100us"), lambda row: row["duration"] <= 100000),
            (("--min", "1ms", "--max", "2ms", "--cpu", "0"),
             lambda row: 1000000 <= row["duration"] <= 2000000 and row["cpu"] == 0)):
        part = everything(kymo, "sched", reference, *options)["log"]
        want = [row for row in whole if fits(row)]
        if "--comm" in options:  # by the name that the thread had then
            assert part and all(row in whole for row in part)
            assert {row["process"]["tid"] for row in part} <= \
                {row["process"]["tid"] for row in want}
        else:
            assert part == want


def test_sort_group_and_limit(kymo, reference):
    def rows(*options):
        return tables(kymo("report", "--json", "sched", "-t", "threads", *options, reference),
                      "sched")["threads"]

    by_max = rows("--sort", "max")
    assert [row["max"] or 0 for row in by_max] == sorted((row["max"] or 0 for row in by_max),
                                                         reverse=True)
    by_count = rows("--sort", "count:asc", "-n", "5")
    assert [row["count"] for row in by_count] == sorted(row["count"] for row in rows())[:5]
    processes = {row["process"]["pid"]: row for row in rows("--group-by", "process")}
    threads = [row for row in rows() if row["process"]["pid"] == 323]
    assert processes[323]["threads"] == len(threads) == 6
    for column in ("count", "total", "preempted", "preempted_time"):
        assert processes[323][column] == sum(row[column] or 0 for row in threads)
    assert processes[323]["process"] == {"tid": None, "pid": 323, "name": "work"}
    names = {row["process"]["name"]: row for row in rows("--group-by", "name")}
    alike = [row for row in rows() if row["process"]["name"] == "ls"]
    assert names["ls"]["count"] == sum(row["count"] for row in alike)
    assert names["ls"]["threads"] == len(alike) > 1


def test_csv(kymo, reference):
    import csv  # pylint: disable=import-outside-toplevel
    lines = kymo("report", "sched,irq", "--csv", "-t", "threads", "-t", "irqs", reference).out
    blocks = [list(csv.DictReader(block.splitlines())) for block in lines.split("\r\n\r\n")]
    threads = tables(kymo("report", "--json", "sched", reference), "sched")["threads"]
    assert [(int(row["tid"]), row["name"], int(row["count"])) for row in blocks[0]] == \
        [(row["process"]["tid"], row["process"]["name"], row["count"]) for row in threads]
    irqs = tables(kymo("report", "--json", "irq", reference), "irq")["irqs"]
    assert [(row["irq_kind"], row["irq_name"], float(row["avg"])) for row in blocks[1]] == \
        [(row["irq"]["kind"], row["irq"]["name"], row["avg"]) for row in irqs]
    assert {row["report"] for row in blocks[1]} == {"irq.irqs"}


def test_options_that_mean_nothing(kymo, reference):
    for options, words in ((("-t", "nonsense"), "no table has the name 'nonsense'"),
                           (("--sort", "nonsense"), "no table has a column 'nonsense'"),
                           (("--sort", "max:up"), "COLUMN:asc"),
                           (("--group-by", "user"), "thread, process, name, cgroup or cpu"),
                           (("--group-by", "cpu"), "has no groups by CPU"),
                           (("--tid", "1,x"), "is not a number"),
                           (("--begin", "never"), "is not a time"),
                           (("--json", "--csv"), "exclude each other"),
                           (("--filter", "a =="), "--filter")):
        failed = kymo("report", "cpu", *options, reference, code=2)
        assert words in failed.err and failed.out == ""


def test_filter_reads_as_if_no_more_had_been_recorded(kymo, reference):
    only = everything(kymo, "irq", reference, "--filter", "$event =~ 'irq_handler_*'")
    whole = everything(kymo, "irq", reference)
    assert only["irqs"] == [row for row in whole["irqs"] if row["kind"] == "hard"]


def test_all_is_every_report(kymo, reference):
    names = [line.split()[0] for line in kymo("report", "--list").out.splitlines()
             if line.startswith("  ")]
    found = [r["name"] for r in json.loads(kymo("report", "--json", "all", reference).out)["reports"]]
    # The causes of something, or of two traces, are no reports of all.
    asked = {"breakdown", "calls", "critical-path", "flame", "guests", "heatmap", "why", "compare"}
    assert found == [name for name in names if name not in asked | {"periods"}]
    found = kymo("report", "--json", "all", *oracle_reports.OPTIONS["periods"], reference).out
    assert [r["name"] for r in json.loads(found)["reports"]] == [name for name in names if name not in asked]


def test_all_reports_of_any_trace(kymo, root_dir):
    """Traces of anything, and damaged ones: an answer or one line that says why not."""
    data = os.path.join(root_dir, "test", "data")
    traces = [path for path, _dirs, files in os.walk(data) if "metadata" in files]
    assert len(traces) > 20
    for path in traces:
        for options in (("--json",), ("--refresh", "1s", "-t", "log")):
            found = kymo("report", "all", *options, path, code=None)
            assert found.code in (0, 1), found
            assert found.code == 0 or re.match(r"kymo: ", found.err), found


# ---- periods -------------------------------------------------------------------------------------

def test_periods_keep_over_intervals_and_choose(kymo, reference):
    """What begins in one interval and ends in another belongs to that one; nothing is lost."""
    options = ("--period", 'call : $event =~ "syscall_entry_*" : $event =~ "syscall_exit_*"')
    whole = everything(kymo, "periods", reference, *options)
    parts = json.loads(kymo("report", "--json", "periods", *options, "-t", "log", "--refresh", "100ms",
                            reference).out)["reports"]
    assert len(parts) > 10
    def nameless(row):  # names are the last ones seen, by then
        assert row["captured"] is None and row["within"] is None
        return row | {"process": row["process"]["tid"]}

    assert [nameless(row) for part in parts for row in part["tables"][0]["rows"]] == \
        [nameless(row) for row in whole["log"]]
    some = everything(kymo, "periods", reference, *options, "--min", "1ms", "--tid", "323")
    assert some["log"] == [row for row in whole["log"] if row["duration"] >= 1000000
                           and row["process"]["tid"] == 323] != []


def test_periods_of_one_event_and_any_thread(kymo, reference, events):
    """An event that both expressions pick ends one period and begins the next."""
    times = [event.ns for event in events if event.name == "sched_switch" and event.cpu == 1]
    found = everything(kymo, "periods", reference, "--period",
                       'gap : $event == "sched_switch" && $cpu == 1 : '
                       '$event == "sched_switch" && $cpu == 1 : by 0')
    assert [(row["begin"], row["end"]) for row in found["log"]] == list(zip(times, times[1:]))
    row, = found["periods"]
    assert (row["headless"], row["unended"]) == (1, 1)


def test_periods_that_never_end_are_bounded(kymo, tmp_path):
    """A begin without an end, again and again: the oldest make room."""
    n = 100_400
    packet = make_trace.Packet(0)
    for i in range(n):
        packet.tick(i * 10, i)
    trace = make_trace.write(tmp_path / "trace", {"channel_0": [packet]})
    row, = tables(kymo("report", "--json", "periods", "--period", "x : number >= 0 : number < 0 : by number",
                       trace), "periods")["periods"]
    assert (row["count"], row["forgotten"], row["unended"]) == (0, n - 100_000, 100_000)


def test_bad_definitions_of_periods(kymo, reference):
    for text, words in (("x", "NAME : BEGIN : END is wanted"),
                        ("x : ret < 0", "NAME : BEGIN : END is wanted"),
                        (" : ret < 0 : ret < 0", "it has no name"),
                        ("x : ret < 0 :", "the end is empty"),
                        ("x : ret << : ret < 0", "in the begin 'ret <<', column"),
                        ("x : nonsense > 1 : ret < 0", "no event has a field 'nonsense'"),
                        ("x(y) : ret < 0 : ret < 0", "no period 'y' is defined before it"),
                        ("x(y)z : ret < 0 : ret < 0", "NAME(PARENT)"),
                        ("x : ret < 0 : ret < 0 : by 1,2,3,4,5", "more than four keys"),
                        ("x : ret < 0 : ret < 0 : ret : ret : ret", "there is text after"),
                        ("x : ret < 0 : ret < 0 : ret,", "the capture is empty")):
        failed = kymo("report", "periods", "--period", text, reference, code=2)
        assert words in failed.err and failed.out == ""
    one = "x : ret < 0 : ret < 0 : by 1, 2"
    for second, words in ((one, "another period has the name 'x'"),
                          ("y(x) : ret < 0 : ret < 0 : by 1", "the keys of its parent")):
        failed = kymo("report", "periods", "--period", one, "--period", second, reference, code=2)
        assert words in failed.err
    assert "needs --period" in kymo("report", "periods", reference, code=2).err
    assert "--period needs report periods" in kymo("report", "cpu", "--period", one, reference, code=2).err
    # Colons and commas in quotes separate nothing.
    found = everything(kymo, "periods", reference, "--period",
                       "x : $event == 'a:b' : $event == \"c,d\" : by '1:2' : z='a,b:(c'")
    assert found["periods"][0]["count"] == 0


# ---- documentation -------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def names(kymo):
    return [line.split()[0] for line in kymo("report", "--list").out.splitlines()
            if line.startswith("  ")]


def test_every_column_is_documented(kymo, reference, names):
    for name in names:
        page = kymo("report", "--markdown", name).out
        helped = kymo("report", name, "--help").out
        assert kymo("help", "report", name).out == helped
        tables_of = re.findall(r"^## .* \(`(\w+)`\)$", page, re.M)
        assert tables_of
        # Beside cpu, because alone it may lack its events in this trace.
        both = json.loads(kymo("report", "--json", f"cpu,{name}",
                               *(oracle_reports.OPTIONS[name] if name == "periods" else ()),
                               *(("--of", "syscall") if name in ("critical-path", "heatmap") else ()),
                               *(w for t in tables_of for w in ("-t", t)), reference,
                               *([reference] if name == "compare" else ())).out)
        shown = next(r for r in both["reports"] if r["name"] == name)["tables"]
        assert [table["name"] for table in shown] == tables_of
        for table in shown:
            assert f"## {table['title']} (`{table['name']}`)" in page
            assert f"{table['title']} ({table['name']})" in helped
            for column in table["columns"]:
                row = rf"^\| {re.escape(column['title'])} \| `{column['name']}` " \
                      rf"\| {column['class']} \| \S.{{8,}} \|$"
                assert re.search(row, page, re.M), column
                assert re.search(rf"^    {re.escape(column['title'])}( |$)", helped, re.M), column


def test_documentation_is_complete_and_wrapped(kymo, names):
    for name in names:
        helped = kymo("report", name, "--help").out
        for section in ("Description", "Events", "Tables and columns",
                        "How to read it", "Example"):
            assert re.search(rf"^{section}", helped, re.M)
        head, example = helped.split("\nExample\n")
        assert all(len(line) <= 80 for line in head.splitlines())
        assert example.lstrip().startswith(f"$ kymo report {name}")


def test_pages_agree_with_the_program(kymo, root_dir, names):
    for name in names:
        with open(os.path.join(root_dir, "docs", "reports", f"{name}.md"), encoding="utf-8") as file:
            assert file.read() == kymo("report", "--markdown", name).out, \
                f"run: build/src/cli/kymo report --markdown {name} > docs/reports/{name}.md"
    with open(os.path.join(root_dir, "docs", "reports", "README.md"), encoding="utf-8") as file:
        listed = re.findall(r"^- \[(\S+)\]", file.read(), re.M)
    assert listed[:len(names)] == names


# ---- what a program of ours is known to have done ------------------------------------------------

WORKLOAD = """
import os, socket, sys, threading
big = sys.argv[1]
fd = os.open(big, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
for _ in range(37):
    os.write(fd, b"x" * 3001)
os.fsync(fd)
for i in range(11):
    os.pread(fd, 1009, i)
os.close(fd)
for _ in range(23):
    try:
        os.rmdir("/nonexistent/directory")
    except FileNotFoundError:
        pass
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
other, _ = server.accept()
for _ in range(19):
    client.sendall(b"y" * 777)
left = 19 * 777
while left:
    left -= len(other.recv(100000))
"""


def test_known_workload(record, kymo, loopback, tmp_path):
    """Bytes per file and connection, calls by name and error: to the unit."""
    program, big = tmp_path / "work.py", tmp_path / "big"
    program.write_text(WORKLOAD)
    trace, recorded = record("--syscall-content=paths",
                             command=["/usr/bin/python3", str(program), str(big)], code=None)
    if recorded.code:
        pytest.skip(f"no contents of system calls here: {recorded.err}")
    if "0 lost" not in recorded.out + recorded.err:
        pytest.skip("events were lost while recording")
    files = {row["file"]: row for row in everything(kymo, "io", trace)["files"]}
    mine = files[str(big)]
    assert (mine["written"], mine["writes"]) == (37 * 3001, 37)
    assert (mine["read"], mine["reads"]) == (11 * 1009, 11)
    assert (mine["opens"], mine["syncs"], mine["kind"]) == (1, 1, "disk")
    sent = [row for row in files.values() if row["written"] == 19 * 777]
    received = [row for row in files.values() if row["read"] == 19 * 777]
    assert any(row["file"].startswith("127.0.0.1:") for row in sent) and received
    assert {row["kind"] for row in sent + received} == {"net"}
    calls = {}
    for row in everything(kymo, "syscalls", trace)["threads"]:
        if row["syscall"] == "rmdir" and (row["errors"] or {}).get("ENOENT") == 23:
            calls[row["process"]["tid"]] = row
    assert len(calls) == 1
    tid, = calls
    logged = [row for row in everything(kymo, "io-log", trace, "--tid", str(tid))["log"]
              if row["file"] == str(big)]
    assert [row["syscall"] for row in logged] == \
        ["openat"] + 37 * ["write"] + ["fsync"] + 11 * ["pread64"]
    interfaces = {(row["netif"], row["way"]): row
                  for row in everything(kymo, "net", trace)["interfaces"]}
    assert interfaces["lo", "sent"]["bytes"] > 19 * 777
