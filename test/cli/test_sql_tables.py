# SPDX-License-Identifier: MIT
"""kymo query: tables of the state model have the figures of the reports; joins, ranges and bounds."""

import json
import pathlib
import re

import pytest

import foreign_files

KEYS = ["running", "ready", "sleep", "disk", "other", "runs", "migrations"]


@pytest.fixture(scope="module")
def trace(shared):
    return str(pathlib.Path(shared) / "traces" / "lttng-kernel" / "kernel")


@pytest.fixture
def query(kymo, trace):
    return lambda statement, *options: json.loads(kymo("query", "--json", *options, trace, statement).out)


@pytest.fixture
def report(kymo, trace):
    def run(name, table, *options):
        found = json.loads(kymo("report", name, "-t", table, "--limit", "0", "--json", *options, trace).out)
        return next(one for one in found["reports"][0]["tables"] if one["name"] == table)["rows"]
    return run


def times(rows, ids):
    return sorted((ids(row), *(row["cpu_time" if key == "running" and "cpu_time" in row else key] for key in KEYS)) for row in rows)


def test_threads_and_processes(query, report):
    """The sums of states, too: thread_state has no gap that the report does not have."""
    rows = report("threads", "processes", "--group-by", "thread")
    own = [row for row in query("SELECT * FROM thread") if any(row[key] for key in KEYS)]
    by_tid = lambda row: row["tid"]  # noqa: E731
    assert times(own, by_tid) == times([row for row in rows if any(row["cpu_time" if key == "running" else key] for key in KEYS)],
                                       lambda row: row["process"]["tid"])
    rows = report("threads", "processes")
    own = query("SELECT * FROM process")
    assert times(own, lambda row: row["pid"]) == times(rows, lambda row: row["process"]["pid"])
    sums = query("SELECT t.tid, t.running - ifnull((SELECT sum(duration) FROM thread_state s WHERE s.tid = t.tid AND s.comm = t.comm "
                 "AND state = 'running'), 0) AS rest FROM thread t WHERE t.tid IN (328, 327, 250)")
    assert [row["rest"] for row in sums] == [0, 0, 0]


def test_histograms(query):
    """They have all calls, waits for CPUs, requests and interrupts of the other tables, each within the bounds of its row."""
    for of, table in (("syscall", "syscall"), ("ready", "thread_state WHERE state = 'ready'"), ("block_request", "block_request"), ("irq", "irq")):
        [counts] = query(f"SELECT sum(count) AS n, sum(sum) AS ns FROM histogram WHERE of = '{of}'")
        assert [counts] == query(f"SELECT count(*) AS n, sum(duration) AS ns FROM {table}") and counts["n"]
    assert query("SELECT count(*) AS n FROM histogram WHERE NOT (count * low <= sum AND sum < count * high AND \"end\" = time + 60000000000)") == [{"n": 0}]
    [slow] = query("SELECT sum(count) AS n FROM histogram WHERE of = 'syscall' AND name = 'read' AND low >= 1048576")
    assert [slow] == query("SELECT count(*) AS n FROM syscall WHERE name = 'read' AND duration >= 1048576")


def test_states_of_cpus_and_threads(query, report):
    rows = {row["cpu"]: row for row in report("cpu", "cpus")}
    for row in query("SELECT cpu, state, sum(duration) AS time FROM cpu_state GROUP BY cpu, state"):
        assert rows[row["cpu"]][row["state"]] == row["time"]
    states = query("SELECT tid, time, \"end\", duration, state, woken, waker_tid, cause, who_tid FROM thread_state ORDER BY tid, time")
    assert all(row["end"] - row["time"] == row["duration"] > 0 for row in states)
    assert all(a["end"] <= b["time"] for a, b in zip(states, states[1:]) if a["tid"] == b["tid"])
    # Who woke is who the report says woke.
    waits = {(row["process"]["tid"], row["begin"]): row for row in report("sched", "log") if row["kind"] == "woken"}
    woken = [row for row in states if row["state"] == "ready" and row["waker_tid"]]
    for row in woken:
        wait = waits.get((row["tid"], row["time"]))
        assert not wait or wait["waker"] is None or wait["waker"]["tid"] == row["waker_tid"]
    assert len([row for row in woken if (row["tid"], row["time"]) in waits]) > 100
    assert {"cpu-wait", "kernel", "user"} <= {row["cause"] for row in states}


def test_ranges_are_those_of_reports(query, report):
    """NAME(BEGIN, END) cuts the states at the range, as --begin and --end do."""
    begin, end = 1795239039100000000, 1795239039600000000
    rows = report("threads", "processes", "--begin", f"{begin // 10**9}.{begin % 10**9:09}", "--end", f"{end // 10**9}.{end % 10**9:09}",
                  "--group-by", "thread")
    own = query("SELECT tid, state, sum(duration) AS time FROM thread_state(:begin, :end) GROUP BY tid, state", "-p", f"begin={begin}",
                "-p", f"end={end}")
    names = {"running": "cpu_time"}
    expected = {(row["process"]["tid"], key): row[names.get(key, key)] for row in rows for key in KEYS[:5]}
    assert {(row["tid"], row["state"]): row["time"] for row in own} == {key: value for key, value in expected.items() if value}
    everything = query("SELECT * FROM thread_state")
    bounded = query(f"SELECT * FROM thread_state WHERE time >= {begin} AND \"end\" <= {end} AND tid = 328 AND state = 'running'")
    assert bounded == [row for row in everything if row["time"] >= begin and row["end"] <= end and row["tid"] == 328
                       and row["state"] == "running"] and bounded


def test_devices(query, report):
    """Interrupts, requests, packets and locks."""
    own = query("SELECT name, kind, count(*) AS n, sum(duration) AS time, max(duration) AS longest FROM irq WHERE kind != 'softirq' "
                "GROUP BY kind, name ORDER BY name")
    rows = sorted(report("irq", "irqs"), key=lambda row: row["irq"]["name"])
    assert [(row["name"], row["n"], row["time"], row["longest"]) for row in own] == [
        (row["irq"]["name"], row["count"], row["total"], row["max"]) for row in rows]
    soft = query("SELECT count(*) AS n, sum(duration) AS time FROM irq WHERE kind = 'softirq'")[0]
    rows = report("softirq", "softirqs")
    assert (soft["n"], soft["time"]) == (sum(row["count"] for row in rows), sum(row["total"] for row in rows))
    own = query("SELECT disk, operation, count(*) AS n, sum(bytes) AS bytes, sum(\"end\" - issued) AS time FROM block_request "
                "WHERE operation IN ('read', 'write') GROUP BY disk, operation ORDER BY operation")
    rows = sorted((row for row in report("block", "disks") if row["op"] in ("read", "write")), key=lambda row: row["op"])
    assert [(row["disk"], row["n"], row["bytes"], row["time"]) for row in own] == [
        (row["disk"], row["count"], row["bytes"], row["total"]) for row in rows] and rows
    own = query("SELECT interface, direction, count(*) AS n, sum(bytes) AS bytes FROM network GROUP BY 1, 2 ORDER BY 2")
    rows = sorted(report("net", "interfaces"), key=lambda row: row["way"])
    assert [(row["interface"], row["direction"], row["n"], row["bytes"]) for row in own] == [
        (row["netif"], row["way"], row["packets"], row["bytes"]) for row in rows]
    rows = report("locks", "log")
    own = query("SELECT * FROM lock_wait ORDER BY time")
    assert [(row["time"], row["duration"], row["tid"], row["address"]) for row in own] == [
        (row["begin"], row["duration"], row["process"]["tid"], row["address"]) for row in rows]
    assert {row["is_lock"] for row in own} <= {0, 1} and any(row["is_lock"] and row["holder_tid"] for row in own)


def test_calls_and_counters(query, report):
    own = query("SELECT time, \"end\", name, tid, ret, error, args FROM syscall ORDER BY time, \"end\"")
    rows = sorted(report("syscalls", "log"), key=lambda row: (row["begin"], row["end"]))
    assert [(row["time"], row["end"], row["name"], row["tid"], row["ret"], row["error"]) for row in own] == [
        (row["begin"], row["end"], row["syscall"], row["process"]["tid"], row["ret"], row["error"]) for row in rows]
    assert sum(row["args"] == other["arguments"] for row, other in zip(own, rows)) > len(own) * 0.9
    queue = query("SELECT cpu, max(value) AS most FROM counter WHERE name = 'waiting threads' GROUP BY cpu ORDER BY cpu")
    rows = sorted(report("sched", "cpus"), key=lambda row: row["cpu"])
    assert [row["most"] for row in queue] == [row["max_queue"] for row in rows]


def test_a_join_reads_a_table_once(kymo, trace, query):
    """The second reading comes from memory, with the same rows; a thousand readings end in a moment."""
    joined = query("SELECT s.time, sum(overlap(s.time, s.\"end\", c.time, c.\"end\")) AS ran FROM syscall s CROSS JOIN thread_state c "
                   "ON c.tid = s.tid AND c.time < s.\"end\" AND c.\"end\" > s.time AND c.state = 'running' WHERE s.name = 'openat' GROUP BY s.time")
    calls = query("SELECT time, \"end\", tid FROM syscall WHERE name = 'openat'")
    running = query("SELECT time, \"end\", tid FROM thread_state WHERE state = 'running'")
    expected = {call["time"]: sum(max(0, min(call["end"], run["end"]) - max(call["time"], run["time"])) for run in running
                                  if run["tid"] == call["tid"]) for call in calls}
    assert {row["time"]: row["ran"] for row in joined} == {time: ran for time, ran in expected.items() if ran} and len(joined) > 20
    plan = kymo("query", trace, "EXPLAIN QUERY PLAN SELECT * FROM thread_state(1, 2) WHERE tid = 5 AND state = 'running' AND \"end\" < 7").out
    assert "tid==" in plan and "state==" in plan and "end<" in plan and "range_begin==" in plan
    assert query("SELECT count(*) AS n FROM thread_state WHERE state = 'RUNNING' COLLATE NOCASE")[0]["n"] == len(running)


def test_spans_logs_and_samples(kymo, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps({"traceEvents": [
        {"name": "outer", "ph": "X", "ts": 100, "dur": 50, "pid": 1, "tid": 2, "args": {"a": 1}},
        {"name": "inner", "ph": "B", "ts": 110, "pid": 1, "tid": 2}, {"name": "inner", "ph": "E", "ts": 120, "pid": 1, "tid": 2},
        {"name": "other", "ph": "X", "ts": 110, "dur": 5, "pid": 1, "tid": 3}]}), encoding="ascii")
    rows = json.loads(kymo("query", "--json", tmp_path / "c.json", "SELECT name, time, duration, depth, tid, fields FROM span ORDER BY time, depth").out)
    assert [(row["name"], row["time"], row["duration"], row["depth"], row["tid"]) for row in rows] == [
        ("outer", 100000, 50000, 0, 2), ("other", 110000, 5000, 0, 3), ("inner", 110000, 10000, 1, 2)]
    assert json.loads(rows[0]["fields"])["a"] == 1
    (tmp_path / "s.log").write_text("Nov 26 10:00:00 box sshd[77]: error: no\n<11>Nov 26 10:00:01 box cron[78]: run\n", encoding="ascii")
    rows = json.loads(kymo("query", "--json", tmp_path / "s.log", "SELECT level, program, pid, message FROM log").out)
    assert rows == [{"level": None, "program": "sshd", "pid": 77, "message": "error: no"},
                    {"level": "error", "program": "cron", "pid": 78, "message": "run"}]
    foreign_files.perf_example(tmp_path / "a.data")
    rows = json.loads(kymo("query", "--json", tmp_path / "a.data", "SELECT s.time, source, weight, s.tid, kind, depth, address FROM sample s "
                           "JOIN stack k ON k.stack = s.stack ORDER BY depth").out)
    assert [(row["source"], row["weight"], row["tid"], row["kind"], row["depth"]) for row in rows] == [
        ("cpu-clock", 1000, 20, "kernel", 0), ("cpu-clock", 1000, 20, "user", 1), ("cpu-clock", 1000, 20, "user", 2)]
    assert rows[0]["address"] % 2**64 == 0xffffffff81000010


def test_traces_themselves(kymo, trace, query):
    lost = str(pathlib.Path(__file__).parents[1] / "data" / "ok" / "traces" / "losses")
    assert kymo("query", "--csv", lost, "SELECT sum(events), sum(packets) FROM loss").out.splitlines()[1] == "8,2"
    host = query("SELECT * FROM host")[0]
    assert (host["path"], host["domain"], host["tracer"], host["streams"]) == (trace, "kernel", "lttng-modules", 2)
    clock = query("SELECT name, frequency, origin, is_unix FROM clock")[0]
    assert (clock["name"], clock["frequency"], clock["is_unix"]) == ("monotonic", 10**9, 1)
    schema = kymo("query", "--schema", trace).out
    for table in ("thread", "process", "thread_state", "cpu_state", "irq", "block_request", "network", "lock_wait", "sample", "stack",
                  "span", "counter", "log", "loss", "host", "clock"):
        assert f"\n{table}: " in schema
    # Each column says what it is; times and durations with their unit.
    columns = [line.split(None, 2) for line in schema.splitlines() if line.startswith("  ")]
    assert len(columns) > 1000 and all(len(column) == 3 for column in columns)
    assert all("ns" in re.findall(r"\w+", text) for name, _, text in columns if name in ("time", "end", "duration") and text != "field")


def test_questions_of_the_documentation(kymo, trace):
    """docs/sql.md: each statement has the answer that stands below it."""
    text = (pathlib.Path(__file__).parents[2] / "docs" / "sql.md").read_text(encoding="utf-8")
    questions = text.split("\n### ")[1:]
    assert len(questions) >= 20
    for question in questions:
        statement = question.split("```sql\n")[1].split("```")[0]
        answer = question.split("```\n\n```\n")[1].split("```")[0]
        assert kymo("query", trace, statement).out == answer, question.splitlines()[0]
