# SPDX-License-Identifier: MIT
"""kymo query: the same rows as kymo print's events, whatever the statement; and no way out of the traces."""

import json
import os
import pathlib
import re
import resource
import struct
import subprocess

import pytest

import foreign_files
import hostile_names
import make_trace

BUILD = os.environ.get("KYMO_BUILD") or os.path.join(os.path.dirname(__file__), "..", "..", "build")


@pytest.fixture(scope="module")
def trace(shared):
    return str(pathlib.Path(shared) / "traces" / "lttng-kernel" / "kernel")


@pytest.fixture(scope="module")
def printed(kymo, trace):
    return [json.loads(line) for line in kymo("convert", "--to", "json", trace).out.splitlines()]


@pytest.fixture
def query(kymo, trace):
    return lambda statement, *options: json.loads(kymo("query", "--json", *options, trace, statement).out)


def test_every_table_has_its_events(query, printed):
    names = sorted({event["event"] for event in printed})[::4]
    statement = " UNION ALL ".join(f"SELECT '{name}' AS name, count(*) AS n, min(time) AS first FROM \"{name}\"" for name in names)
    rows = {row["name"]: (row["n"], row["first"]) for row in query(statement)}
    assert rows == {name: (sum(event["event"] == name for event in printed),
                           min(event["timestamp_ns"] for event in printed if event["event"] == name)) for name in names}
    rows = query("SELECT time, name, cpu, fields FROM event ORDER BY time LIMIT 500")
    assert [(row["time"], row["name"], row["cpu"]) for row in rows] == [
        (event["timestamp_ns"], event["event"], event["packet"]["cpu_id"]) for event in printed[:500]]
    for row, event in zip(rows, printed):
        fields = json.loads(row["fields"])
        context = {(f"context_{name}" if name in event["fields"] else name): value for name, value in event.get("context", {}).items()}
        assert fields == context | event["fields"]


def test_conditions_select_while_reading(kymo, trace, query, printed):
    switches = [event for event in printed if event["event"] == "sched_switch"]
    tid = switches[len(switches) // 2]["fields"]["next_tid"]
    begin, end = switches[10]["timestamp_ns"], switches[-10]["timestamp_ns"]
    rows = query("SELECT time, prev_comm, next_tid, prev_state FROM sched_switch WHERE next_tid = :tid AND time >= :begin "
                 "AND time < :end ORDER BY time", "-p", f"tid={tid}", "-p", f"begin={begin}", "-p", f"end={end}")
    expected = [event for event in switches if event["fields"]["next_tid"] == tid and begin <= event["timestamp_ns"] < end]
    assert [(row["time"], row["prev_comm"]) for row in rows] == [
        (event["timestamp_ns"], event["fields"]["prev_comm"]) for event in expected] and rows
    plan = kymo("query", trace, "EXPLAIN QUERY PLAN SELECT * FROM sched_switch WHERE next_tid = 5 AND time > 7 ORDER BY time").out
    assert "next_tid==;time>;" in plan and "TEMP B-TREE" not in plan
    # What the reader cannot compare, SQLite does.
    assert query("SELECT count(*) AS n FROM sched_switch WHERE next_comm LIKE 'SWAPPER%'")[0]["n"] == sum(
        event["fields"]["next_comm"].startswith("swapper") for event in switches)
    for condition in ("time > 1e300", "time < -1e300", "time = 'x'", "next_tid = 1.5", "next_tid = 'x'", "time IS NULL"):
        assert query(f"SELECT count(*) AS n FROM sched_switch WHERE {condition}")[0]["n"] == 0
    assert query("SELECT count(*) AS n FROM event WHERE name = 'no*' OR name = 'nothing'")[0]["n"] == 0


def test_calls_and_slices(kymo, trace, query):
    """Counts equal those of the reports, and slices of a CPU never overlap."""
    rows = query("SELECT name, count(*) AS n FROM syscall GROUP BY name ORDER BY n DESC, name LIMIT 5")
    table = kymo("report", "syscalls", "--limit", "0", trace).out
    for row in rows:
        line = next(line for line in table.splitlines() if line.split()[:1] == [row["name"]])
        assert int(line.split()[1].replace(",", "")) == row["n"]
    rows = query("SELECT cpu, time, \"end\", duration FROM cpu_slice ORDER BY cpu, time")
    assert rows and all(row["end"] - row["time"] == row["duration"] >= 0 for row in rows)
    assert all(a["end"] == b["time"] for a, b in zip(rows, rows[1:]) if a["cpu"] == b["cpu"])
    joined = query("SELECT count(*) AS n FROM syscall s JOIN cpu_slice c ON s.tid = c.tid AND overlap(s.time, s.\"end\", c.time, "
                   "c.\"end\") > 0 WHERE s.name = 'openat'")
    assert joined[0]["n"] > 0


def test_forms_and_functions(kymo, trace, tmp_path):
    statement = "SELECT 1 AS a, NULL AS b, 'x,\"y\"' AS c, 1.5 AS d, time_text(1500000000123456789) AS t, duration_text(1250000) AS u"
    assert kymo("query", "--table", trace, statement).out == kymo("query", trace, statement).out
    assert "exclude each other" in kymo("query", "--table", "--csv", trace, statement, code=2).err
    assert kymo("query", "--csv", trace, statement).out == (
        'a,b,c,d,t,u\n1,,"x,""y""",1.5,2017-07-14 02:40:00.123456789,1.250 ms\n')
    assert kymo("query", trace, statement).out.splitlines()[1].split()[:2] == ["1", "-"]
    (tmp_path / "a.sql").write_text("SELECT 2 AS two;\n-- a comment\nSELECT :x AS x;\n", encoding="ascii")
    assert kymo("query", "-p", "x=y", trace, tmp_path / "a.sql").out == "two\n  2\n\nx\ny\n"
    schema = kymo("query", "--schema", trace).out
    assert "\nsched_switch: " in schema and "\n  prev_tid " in schema and "\nsyscall: " in schema


def test_errors_and_limits(kymo, trace, tmp_path):
    error = kymo("query", trace, "SELECT nothing\n  FRO event", code=2).err
    assert "<query>:2:" in error or "<query>:1:" in error
    assert "no value" in kymo("query", trace, "SELECT :x", code=2).err
    for statement in (f"ATTACH '{tmp_path}/db' AS x", f"VACUUM INTO '{tmp_path}/db'", "SELECT load_extension('x')",
                      "PRAGMA temp_store_directory = '/tmp'", "SELECT writefile('x', 'y')"):
        assert kymo("query", trace, statement, code=None).code != 0
    assert not os.listdir(tmp_path)
    assert "cannot read" in kymo("query", trace, tmp_path / "no.sql", code=1).err


def test_any_files(kymo, tmp_path):
    """Also of imported files, whose damage kymo reports after the rows before it."""
    whole = foreign_files.perf_example(tmp_path / "a.data").read_bytes()
    assert json.loads(kymo("query", "--json", tmp_path / "a.data", "SELECT name, ret, duration FROM syscall").out) == [
        {"name": "openat", "ret": -2, "duration": 3000}]
    (tmp_path / "cut.data").write_bytes(whole[:len(whole) - 4000])
    done = kymo("query", tmp_path / "cut.data", "SELECT count(*) FROM event", code=1)
    assert "cut" in done.err


CONDITIONS = {
    "sched_switch": ["prev_tid = 0 OR next_tid = 0", "next_tid IN (0, 1, 326) AND NOT prev_tid = 0", "prev_comm = 'ls' OR next_prio < 20",
                     "next_tid BETWEEN '1' AND 326.5", "prev_tid = NULL OR next_tid IS NULL", "next_tid >= -1 AND next_tid < 9223372036854775807"],
    "syscall": ["name = 'openat' OR ret = 0", "\"end\" IN (-5, (SELECT max(\"end\") FROM syscall))", "duration > 50000 OR ret < 0"],
    "thread_state": ["tid IN (0, 326) OR duration < 1000", "\"end\" IN (5, (SELECT min(\"end\") FROM thread_state)) OR cpu = 1"],
    "event": ["name IN ('sched_switch', 'sched_waking') OR time = (SELECT min(time) FROM event)",
              "time IN ((SELECT min(time) FROM event), (SELECT max(time) FROM event))"],
}


@pytest.mark.parametrize("table", CONDITIONS)
def test_conditions_are_those_of_sqlite(kymo, trace, table):
    """What the reader selects is what SQLite selects from a copy of the table: no row is missing, none comes twice."""
    counts = [f"(SELECT count(*) FROM {{0}} WHERE {condition})" for condition in CONDITIONS[table]]
    out = kymo("query", "--csv", trace, f"CREATE TABLE copied AS SELECT * FROM {table};" + ";".join(
        "SELECT " + ", ".join(f"{count} AS c" for count in counts).format(source) for source in (table, "copied"))).out.splitlines()
    assert out[1] == out[3] and set(out[1].split(",")) != {"0"}


def test_values_at_their_limits(kymo, trace):
    out = kymo("query", "--csv", trace, "-p", "a=010", "-p", "b=0x10", "-p", "c=99999999999999999999", "-p", "d=1.5",
               "SELECT time_text(-9223372036854775808), time_text(-1), overlap(-9223372036854775808, 9223372036854775807, "
               "-9223372036854775808, 9223372036854775807), overlap(1, NULL, 2, 3), overlap(1, 5, 3, 9), :a + 0, :b + 0, typeof(:c), "
               "typeof(:d), x'00ff', 0.1 + 0.2").out.splitlines()
    assert out[1].split(",") == ["1677-09-21 00:12:43.145224192", "1969-12-31 23:59:59.999999999", "9223372036854775807", "", "2", "10",
                                 "16", "text", "real", "00ff", "0.30000000000000004"]


def test_sorting_needs_little_memory(kymo_bin, tmp_path):
    """What is beyond the cache goes to files that nobody else can open, and that have no name from the begin."""
    large, spill = tmp_path / "large", tmp_path / "spill"
    spill.mkdir()
    subprocess.run([os.path.join(BUILD, "bench", "make-trace"), "-n", "2000000", large], check=True)
    limits = None if re.search("-[at]san$", BUILD) else lambda: resource.setrlimit(resource.RLIMIT_DATA, (160 << 20, 160 << 20))
    environment = {**os.environ, "TMPDIR": str(spill)}
    questions = ["SELECT count(*) FROM (SELECT DISTINCT time, cpu, name FROM event)",
                 "SELECT count(*) FROM (SELECT time, cpu, tid, count(*) FROM event GROUP BY time, cpu, tid)",
                 "WITH kept AS MATERIALIZED (SELECT time, cpu, name, tid FROM event) SELECT count(*) FROM kept"]
    done = subprocess.run([kymo_bin, "query", "--csv", large, ";".join(questions)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=300, check=False, preexec_fn=limits, env=environment)
    assert done.stdout.split()[1::2] == ["2000000"] * 3, done
    calls = subprocess.run(["strace", "-f", "-e", "trace=openat,unlink", "-o", "/dev/stdout", kymo_bin, "query", "--csv", large,
                            "SELECT count(*) FROM (SELECT DISTINCT time, cpu, name FROM event LIMIT 300000)"],
                           stdout=subprocess.PIPE, text=True, timeout=300, check=True,
                           env={**environment, "ASAN_OPTIONS": "detect_leaks=0"}).stdout  # which cannot be seen under strace
    made = re.findall(r'openat\(.*"([^"]*etilqs[^"]*)".*O_EXCL.* 0600\)', calls)
    assert made and all(f'unlink("{name}")' in calls for name in made) and not list(spill.iterdir())


def test_names_of_events_are_not_those_of_sqlite(kymo, tmp_path):
    """A trace cannot take the place of SQLite's own tables, nor one event of another."""
    names = ["json_each", "sqlite_master", "select", "Event", "x'; DROP TABLE event;--", "a;b=<c", "*", "", "9", "_"]
    path = str(make_trace.write(tmp_path / "t", {"c": [make_trace.Packet(1000)]}, make_trace.METADATA + "".join(
        f'event {{ name = "{name}"; id = {50 + i}; stream_id = 0; fields := struct {{ uint32_t _in; uint32_t _order; }}; }};\n'
        for i, name in enumerate(names))))
    assert [line.split(",") for line in kymo("query", "--csv", path, "SELECT value FROM json_each('[4, 5]')").out.splitlines()] == [
        ["value"], ["4"], ["5"]]
    tables = [line.split(":")[0] for line in kymo("query", "--schema", path).out.splitlines() if line and line[0] != " "]
    assert len({name.lower() for name in tables}) == len(tables) and {"json_each_2", "Event_2", "sqlite_master_2"} <= set(tables)
    for name in tables[-len(names):]:
        assert kymo("query", "--csv", path, f'SELECT count(*) FROM "{name}" WHERE "in" = 5 OR "order" > -1').out.splitlines()[1] == "0"


def test_machines_and_cpus_select(kymo, trace, tmp_path):
    """The streams of other machines, and the events of other CPUs, are left out by the reader; EXPLAIN tells it."""
    hostile_names.make(tmp_path / "t", "it's me", many=3, kinds=3)
    both = [trace, tmp_path / "t"]
    for condition in ("host = 'it''s me'", "host = ''", "host = 'nobody'", "host = '' AND host = 'it''s me'", "cpu = 1", "cpu < 1", "cpu >= 0", "host = '' AND cpu = 0",
                      "host = 5", "cpu = 'x'", "cpu = 1.5", "cpu = -1"):
        plain = condition.replace("host", "+host").replace("cpu", "+cpu")
        ours, theirs = (kymo("query", "--csv", *both, f"SELECT name, count(*) FROM event WHERE {where} GROUP BY name").out for where in (condition, plain))
        assert ours == theirs, condition
    plan = kymo("query", "--csv", trace, "EXPLAIN QUERY PLAN SELECT next_comm FROM sched_switch WHERE host = 'x' AND cpu = 1 AND prev_tid > 5 AND time < 9").out
    words = re.search(r"INDEX 0:(.*?); reads (.*?)\"?\n", plan)
    assert set(words[1].split(";")) == {"host==", "cpu==", "prev_tid>", "time<"} and set(words[2].split(", ")) == {"time", "cpu", "host", "prev_tid", "next_comm"}
    assert "reads no columns" in kymo("query", "--csv", trace, "EXPLAIN QUERY PLAN SELECT count(*) FROM syscall").out


def test_names_of_any_kind(kymo, tmp_path):
    """10,000 fields of one event, also such that become the same word; names of SQL, quotes, controls, bytes that are no UTF-8."""
    path = tmp_path / "t"
    events = hostile_names.make(path, "h")
    names = {name for name, _ in events}
    rows = json.loads(kymo("query", "--json", path, "SELECT count(*) AS n, count(DISTINCT name) AS names FROM event").out)
    assert rows == [{"n": 3 * len(events), "names": len(names) - 1}]
    for table in ("many", "same", "all_names"):
        [row] = json.loads(kymo("query", "--json", path, f"SELECT * FROM {table} LIMIT 1").out)
        fields = {name: value for name, value in row.items() if name not in ("time", "cpu", "host", "stream")}
        assert set(fields.values()) == {1} and len(fields) == (len(hostile_names.NAMES) - 1 if table == "all_names" else 1896), table
    schema = kymo("query", "--schema", path).out
    assert schema.count("the fields beyond 1900 are in the column fields of event") == 2
    [row] = json.loads(kymo("query", "--json", path, "SELECT json_extract(fields, '$.f9999') AS f FROM event WHERE name = 'many' LIMIT 1").out)
    assert row == {"f": 1}
    # A table comes to be when a statement names it.
    for table in ('"MANY"', "[Many]", "`many`", "many/**/", "temp_view"):
        text = f"CREATE TEMP VIEW temp_view AS SELECT * FROM mANY; SELECT count(*) AS n FROM {table}"
        assert json.loads(kymo("query", "--json", path, text).out) == [{"n": 3}]
    # CTF 1.8 says nothing of encodings.
    other = make_trace.write(tmp_path / "u", {"c": [make_trace.Packet(1000)]}, make_trace.METADATA + 'event { name = "a@b"; id = 70; stream_id = 0; };\n')
    metadata = pathlib.Path(str(other)) / "metadata"
    metadata.write_bytes(metadata.read_bytes().replace(b"a@b", b"a\xff\xc3b"))
    assert 'a__b: events "a\\xff\\xc3b"' in kymo("query", "--schema", other).out


def test_both_contexts_have_one_name(kymo, tmp_path):
    """Stream and event have a context field of one name: each is compared with its own values."""
    packet = make_trace.Packet(1000)
    for i in range(6):
        packet.last = 1000 + 10 * i
        packet.body += struct.pack("<BIQIiII", 31, 60, packet.last, i, 1000, 5 - i, i)
    metadata = make_trace.METADATA.replace("event.context := struct {", "event.context := struct { uint32_t _who;")
    path = str(make_trace.write(tmp_path / "t", {"c": [packet]}, metadata + (
        'event { name = "both"; id = 60; stream_id = 0; context := struct { uint32_t _who; }; fields := struct { uint32_t _x; }; };\n')))
    assert kymo("query", "--csv", path, "SELECT x FROM both WHERE who = 1; SELECT x FROM both WHERE context_who = 1").out == "x\n1\nx\n4\n"
