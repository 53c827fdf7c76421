# SPDX-License-Identifier: MIT
"""kymo convert --to perfetto, judged by Perfetto's own trace_processor (docs/perfetto.md)."""

import collections
import http.client
import json
import os
import re
import signal
import subprocess
import time

import pytest

import make_trace
import oracle_figures
from kernel_trace import write

# What trace_processor complains of while it imports a trace.
COMPLAINTS = ("SELECT name, idx, value FROM stats "
              "WHERE value > 0 AND severity IN ('error', 'data_loss')")
RANGE = "SELECT start_ts, end_ts FROM trace_bounds"
SCHED = "SELECT ucpu AS cpu, COUNT(*) AS n FROM sched GROUP BY 1"
# dur is -1 for what has no end; slices with an outcome are not measured.
MEASURED = """category = 'syscall' AND dur >= 0 AND NOT EXISTS
    (SELECT 1 FROM args o WHERE o.arg_set_id = s.arg_set_id AND o.key = 'debug.outcome')"""
CALLS = f"SELECT s.name, COUNT(*) AS n, SUM(dur) AS total FROM slice s WHERE {MEASURED} GROUP BY 1"
FAILED = f"""SELECT s.name, a.string_value AS error, COUNT(*) AS n
    FROM slice s JOIN args a USING (arg_set_id)
    WHERE {MEASURED} AND a.key = 'debug.error' GROUP BY 1, 2"""


@pytest.fixture
def convert(kymo, tmp_path):
    def call(*traces, code=0, options=()):
        out = tmp_path / "out.pftrace"
        result = kymo("convert", "--to", "perfetto", "-o", out, *options, *traces, code=code)
        assert not result.out
        return out

    return call


def numbers(row):
    """Beyond 2^53 they come as text."""
    return {key: int(value) if isinstance(value, str) and value.lstrip("-").isdigit() else value
            for key, value in row.items()}


def report(kymo, trace, table="syscalls"):
    """The table's rows by system call."""
    found = json.loads(kymo("report", "syscalls", "--limit", 0, "--json", trace).out)
    tables = {table["name"]: table["rows"] for table in found["reports"][0]["tables"]}
    return {row["syscall"]: row for row in tables[table]}


def info(kymo, trace):
    return json.loads(kymo("info", "--json", trace).out)


def check_range(row, found):
    """Equal; trace_processor takes 1 off when what has no end begins last: its duration is -1."""
    row = numbers(row)
    assert row["start_ts"] == found["begin_ns"]
    assert row["end_ts"] in (found["end_ns"], found["end_ns"] - 1)


def count_events(kymo, trace, name):
    """By CPU."""
    out = kymo("convert", "--to", "json", "--event", name, trace).out
    return collections.Counter(json.loads(line)["packet"]["cpu_id"] for line in out.splitlines())


def check_calls(kymo, trace, calls, failed):
    rows = report(kymo, trace)
    ours = {row["name"]: (row["n"], row["total"]) for row in map(numbers, calls)}
    assert ours == {name: (row["count"], row["total"]) for name, row in rows.items() if row["count"]}
    errors = {}
    for row in failed:
        errors.setdefault(row["name"], {})[row["error"]] = row["n"]
    assert errors == {name: row["errors"] for name, row in rows.items() if row["errors"]}


# ---- kernel traces --------------------------------------------------------------------------

def test_lttng_kernel(kymo, convert, query, shared):
    trace = f"{shared}/traces/lttng-kernel/kernel"
    complaints, bounds, sched, calls, failed, threads, counters, slices, parents = query(
        convert(trace), COMPLAINTS, RANGE, SCHED, CALLS, FAILED,
        "SELECT tid, t.name, pid FROM thread t LEFT JOIN process USING (upid)",
        "SELECT t.name, COUNT(*) AS n FROM counter c JOIN track t ON c.track_id = t.id GROUP BY 1",
        "SELECT category, COUNT(*) AS n, SUM(dur < 0) AS open FROM slice GROUP BY 1",
        """SELECT c.pid, p.pid AS ppid FROM process c JOIN process p ON c.parent_upid = p.upid""")
    assert not complaints
    check_range(bounds[0], info(kymo, trace))
    assert {row["cpu"]: row["n"] for row in sched} == count_events(kymo, trace, "sched_switch")
    check_calls(kymo, trace, calls, failed)
    by_tid = {row["tid"]: row for row in threads}
    assert by_tid[250]["name"] == "Client manageme" and by_tid[250]["pid"] == 240
    assert {row["pid"]: row["ppid"] for row in parents}[240] == 1
    assert counters == [{"name": "cpuidle", "n": 744}]
    found = {row["category"]: row for row in slices}
    irqs = sum(sum(count_events(kymo, trace, name).values())
               for name in ("irq_softirq_entry", "irq_handler_entry"))
    assert found["irq"]["n"] == irqs
    assert found["block"]["n"] == sum(count_events(kymo, trace, "block_rq_issue").values())
    assert found["block"]["open"] == 0


def test_lttng_thread_states_are_the_kernels(kymo, convert, query, shared):
    """The time that each thread ran is what kymo report cpu says."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    (rows,) = query(convert(trace),
                    """SELECT tid, SUM(dur) AS total FROM sched JOIN thread USING (utid)
                       WHERE dur >= 0 AND tid > 0 GROUP BY 1""")
    found = json.loads(kymo("report", "cpu", "--limit", 0, "--json", trace).out)
    tables = {table["name"]: table["rows"] for table in found["reports"][0]["tables"]}
    ours = {row["process"]["tid"]: row["cpu_time"] for row in tables["threads"]}
    missing = 0
    for row in map(numbers, rows):
        missing += ours[row["tid"]] - row["total"]
    # What ran at the trace's two ends has no switch on one side: less than 2 CPUs * 2 stretches.
    assert 0 <= missing < found["range"]["end_ns"] - found["range"]["begin_ns"]
    same = [row for row in map(numbers, rows) if ours[row["tid"]] == row["total"]]
    assert len(same) >= len(rows) - 4


def test_own_recording(kymo, record, convert, query):
    """This kernel, with a workload of known system calls and names."""
    script = ("import os, time, threading\n"
              "for _ in range(100):\n"
              "    os.getppid()\n"
              "    try: os.stat('/nonexistent')\n"
              "    except OSError: pass\n"
              "threads = [threading.Thread(target=time.sleep, args=(0.05,)) for _ in range(3)]\n"
              "[t.start() for t in threads]; [t.join() for t in threads]\n")
    trace, _ = record(command=("/usr/bin/python3", "-c", script))
    complaints, bounds, sched, calls, failed, threads = query(
        convert(trace), COMPLAINTS, RANGE, SCHED, CALLS, FAILED,
        """SELECT pid, COUNT(*) AS n FROM thread t JOIN process p USING (upid)
           WHERE t.name LIKE 'python3%' AND t.start_ts IS NOT NULL GROUP BY 1""")
    # Some kernels lose events, and some do not tell every switch (docs/reports/cpu.md).
    known = {"ftrace_cpu_has_data_loss", "mismatched_sched_switch_tids"}
    assert not [row for row in complaints if row["name"] not in known]
    rows = report(kymo, trace)
    check_range(bounds[0], info(kymo, trace))
    assert {row["cpu"]: row["n"] for row in sched} == count_events(kymo, trace, "sched_switch")
    check_calls(kymo, trace, calls, failed)
    assert rows["getppid"]["count"] >= 100
    assert any(row["n"] >= 3 for row in threads)


# ---- programs ---------------------------------------------------------------------------------

def test_lttng_ust(kymo, convert, query, shared):
    trace = f"{shared}/traces/lttng-ust"
    complaints, bounds, instants, args = query(
        convert(trace), COMPLAINTS, RANGE,
        """SELECT s.name, t.tid, COUNT(*) AS n FROM slice s JOIN thread_track tt
           ON s.track_id = tt.id JOIN thread t USING (utid) WHERE dur = 0 GROUP BY 1, 2""",
        """SELECT key, COUNT(*) AS n FROM args JOIN slice USING (arg_set_id) GROUP BY 1""")
    assert not complaints
    check_range(bounds[0], info(kymo, trace))
    truth = collections.Counter()
    for line in kymo("convert", "--to", "json", trace).out.splitlines():
        event = json.loads(line)
        truth[event["event"], event["context"]["vtid"]] += 1
    assert {(row["name"], row["tid"]): row["n"] for row in instants} == truth
    assert {row["key"]: row["n"] for row in args}["debug.s"] == 5000


SPANS = make_trace.METADATA.replace('name = "tick"', 'name = "work_begin"') + """
event { name = "work_end"; id = 3; stream_id = 0; fields := struct { uint32_t _result; }; };
event { name = "other_end"; id = 4; stream_id = 0; fields := struct { uint32_t _result; }; };
"""


def test_spans_and_fields(convert, query, tmp_path):
    """Spans nest; what has no counterpart is an instant; every kind of field arrives."""
    packet = make_trace.Packet(1000)
    packet.tick(1000, 1, b"outer \xff")
    packet.tick(2000, 2, b"inner", 4)
    for event, at, result in ((3, 3000, 7), (3, 5000, 1 << 31), (4, 6000, 9)):
        packet.head(event, at)
        packet.body += result.to_bytes(4, "little")
    packet.data(7000, [1, 2, 3], 0, 5)
    trace = make_trace.write(str(tmp_path / "t"), {"c": [packet]}, SPANS)
    complaints, slices, args = query(
        convert(trace), COMPLAINTS,
        "SELECT s.name, ts, dur, depth, t.name AS track FROM slice s "
        "JOIN track t ON s.track_id = t.id ORDER BY ts",
        "SELECT s.ts, key, display_value AS v FROM slice s JOIN args USING (arg_set_id)")
    assert not complaints
    origin = make_trace.ORIGIN_S * 10 ** 9
    found = [(row["name"], row["ts"] - origin, row["dur"], row["depth"])
             for row in map(numbers, slices)]
    assert found == [("work", 1000, 4000, 0), ("work", 2000, 1000, 1), ("other_end", 6000, 0, 0),
                     ("data", 7000, 0, 0)]
    assert {row["track"] for row in slices} == {"? (thread 1000)"}  # no event names its process
    values = {(int(row["ts"]) - origin, row["key"]): row["v"] for row in args}
    assert values[1000, "debug.number"] == "1" and values[1000, "debug.text"] == "outer \ufffd"
    assert values[1000, "debug.state"] == "idle" and values[2000, "debug.state"] == "very busy"
    assert values[1000, "debug.result"] == str(1 << 31) and values[2000, "debug.result"] == "7"
    assert [values[7000, f"debug.n[{i}]"] for i in range(3)] == ["1", "2", "3"]
    assert values[7000, "debug.point.x"] == "0xbeef" and values[7000, "debug.point.y"] == "7"
    assert values[7000, "debug.value"] == "5" and values[7000, "debug.comm"] == "kymo"
    assert values[7000, "debug.ratio"] == "0.5"


def test_machines(convert, query, tmp_path):
    """Traces of two hosts are two machines: their thread ids do not mix."""
    for name in ("lab", "shop"):
        packet = make_trace.Packet(1000)
        packet.tick(1000 if name == "lab" else 1500, 1)
        metadata = make_trace.METADATA.replace("_tid;", "_vtid; uint32_t _vpid;")
        packet.body = packet.body[:8] + (77).to_bytes(4, "little") + packet.body[8:]
        make_trace.write(str(tmp_path / name), {"c": [packet]},
                         metadata.replace('"lab"', f'"{name}"'))
    complaints, threads, slices = query(
        convert(tmp_path / "lab", tmp_path / "shop"), COMPLAINTS,
        "SELECT tid, pid, t.machine_id AS m FROM thread t JOIN process USING (upid) WHERE tid = 1000",
        "SELECT ts FROM slice ORDER BY ts")
    assert not complaints
    assert sorted((row["tid"], row["pid"]) for row in threads) == [(1000, 77)] * 2
    assert len({row["m"] for row in threads}) == 2
    origin = make_trace.ORIGIN_S * 10 ** 9
    assert [int(row["ts"]) - origin for row in slices] == [1000, 1500]


# ---- the file ---------------------------------------------------------------------------------

def test_what_perf_tells_of_the_time_before(convert, query, tmp_path):
    """perf data convert --all has processes at time 0: the time line begins with what was recorded."""
    fields = {"prev_comm": "a", "prev_pid": 1, "prev_prio": 120, "prev_state": 0, "next_comm": "b",
              "next_pid": 2, "next_prio": 120, "perf_tid": 1, "perf_pid": 1}
    Event = oracle_figures.Event
    events = [Event(0, 0, "perf_fork", {}, {"pid": 1, "ppid": 0, "tid": 1, "ptid": 0, "time": 0}),
              Event(5 * 10**12, 0, "sched:sched_switch", {}, fields),
              Event(6 * 10**12, 0, "sched:sched_switch", {}, fields | {"prev_pid": 2, "next_pid": 1})]
    trace = write(tmp_path / "all", events, env='domain = "kernel"; tracer_name = "perf";')
    bounds, = query(convert(trace), RANGE)
    assert bounds == [{"start_ts": 5 * 10**12, "end_ts": 6 * 10**12}]


def test_selection(kymo, convert, query, shared):
    """Any selection has the names and processes."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    sched, threads = query(convert(trace, options=("--event", "sched_switch")), SCHED,
                           "SELECT pid FROM thread JOIN process USING (upid) WHERE tid = 250")
    assert {row["cpu"]: row["n"] for row in sched} == count_events(kymo, trace, "sched_switch")
    assert threads == [{"pid": 240}]


def test_damage_keeps_what_came_before(kymo, query, tmp_path):
    trace = make_trace.sample(str(tmp_path / "t"))
    with open(f"{trace}/channel_1", "r+b") as file:
        file.truncate(os.path.getsize(f"{trace}/channel_1") - 700)
    out = tmp_path / "out"
    result = kymo("convert", "--to", "perfetto", "-o", out, trace, code=1)
    assert "channel_1" in result.err and "contains the events that could be read" in result.err
    good = kymo("print", trace, code=1).out.count("\n")
    complaints, slices = query(out, COMPLAINTS, "SELECT COUNT(*) AS n FROM slice")
    assert {row["name"] for row in complaints} == {"ftrace_cpu_has_data_loss"}
    assert slices[0]["n"] == good


def test_whole_or_not_at_all(kymo_bin, tmp_path, shared):
    """A conversion that is interrupted leaves nothing, and the old file as it was."""
    out = tmp_path / "out"
    out.write_text("old")
    traces = [f"{shared}/traces/lttng-kernel/kernel", f"{shared}/traces/lttng-ust"]
    with subprocess.Popen([kymo_bin, "convert", "--to", "perfetto", "-o", out, *traces],
                          stderr=subprocess.DEVNULL) as process:
        time.sleep(0.003)
        process.send_signal(signal.SIGINT)
        code = process.wait(30)
    assert os.listdir(tmp_path) == ["out"]
    assert out.read_bytes() == b"old" if code else out.stat().st_size > 100_000


def test_full_disk(kymo, shared):
    result = kymo("convert", "--to", "perfetto", "-o", "/dev/full",
                  f"{shared}/traces/lttng-ust", code=1)
    assert "No space left" in result.err


def test_no_times(kymo, tmp_path):
    metadata = ('/* CTF 1.8 */ typealias integer { size = 8; align = 8; } := u8;'
                'trace { major = 1; minor = 8; byte_order = le; };'
                'event { name = "e"; fields := struct { u8 a; }; };')
    trace = make_trace.write(str(tmp_path / "t"), {"s": b"abc"}, metadata)
    result = kymo("convert", "--to", "perfetto", "-o", tmp_path / "out", trace, code=1)
    assert "no event has a time" in result.err
    assert not (tmp_path / "out").exists()


# ---- kymo view --perfetto ---------------------------------------------------------------------


def fetch(port, path, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(headers.pop("method", "GET"), path, headers=headers)
    answer = connection.getresponse()
    found = answer.status, dict(answer.getheaders()), answer.read()
    connection.close()
    return found


def test_view_serves_perfettos_page(kymo_bin, query, shared, tmp_path):
    """The page's link, and the trace behind it: for that page only."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    page = "https://ui.perfetto.dev"
    with subprocess.Popen([kymo_bin, "view", "--perfetto", "--no-browser", trace], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as viewer:
        try:
            link = viewer.stdout.readline().strip()
            if not link and "has this port" in viewer.stderr.read():
                pytest.skip("another program has port 9001")
            match = re.fullmatch(page + r"/#!/\?url=http://127\.0\.0\.1:9001(/[0-9a-f]{32}\.pftrace)", link)
            assert match
            path = match[1]
            status, headers, data = fetch(9001, path, Origin=page)
            assert status == 200 and headers["Access-Control-Allow-Origin"] == page
            assert fetch(9001, path, method="OPTIONS", Origin=page)[0] == 204
            assert fetch(9001, path, Origin="https://elsewhere.example")[0] == 403
            assert fetch(9001, path, Host="elsewhere.example:9001")[0] == 403
            assert fetch(9001, "/trace.pftrace", Origin=page)[0] == 404
            assert fetch(9001, path, method="POST", Origin=page)[0] == 405
        finally:
            viewer.send_signal(signal.SIGINT)
            viewer.communicate(timeout=60)
    assert viewer.returncode == 0
    out = tmp_path / "served.pftrace"
    out.write_bytes(data)
    complaints, sched = query(out, COMPLAINTS, "SELECT COUNT(*) AS n FROM sched")
    assert not complaints and sched[0]["n"] > 100
