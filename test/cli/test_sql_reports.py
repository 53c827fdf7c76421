# SPDX-License-Identifier: MIT
"""kymo report FILE.sql: a user's own report looks like any other, and its figures are those of the built-in ones."""

import json
import pathlib

import pytest


@pytest.fixture(scope="module")
def trace(shared):
    return str(pathlib.Path(shared) / "traces" / "lttng-kernel" / "kernel")


def tables(kymo, *args):
    return {table["name"]: table for table in json.loads(kymo("report", "--json", *args).out)["reports"][0]["tables"]}


def test_an_own_report_in_all_forms(kymo, trace):
    path = pathlib.Path(__file__).parents[2] / "examples" / "slow-calls.sql"
    found = tables(kymo, path, "--limit", "0", trace)
    log = [row for row in tables(kymo, "syscalls", "-t", "log", trace)["log"]["rows"] if row["duration"] >= 10**7]
    log.sort(key=lambda row: -row["duration"])
    assert [(row["began"], row["took"], row["name"]) for row in found["calls"]["rows"]] == [
        (row["begin"], row["duration"], row["syscall"]) for row in log] and log
    classes = {column["name"]: column["class"] for column in found["calls"]["columns"]}
    assert classes == {"began": "timestamp", "took": "duration", "name": "text", "comm": "text", "error": "text"}
    assert sum(row["calls"] for row in found["programs"]["rows"]) == len(log)
    text = kymo("report", path, "-n", "2", trace).out
    assert "Calls, the slowest first" in text and "3.675 s" in text and "more rows: --limit 0 shows all" in text
    assert kymo("report", path, "--csv", "-t", "programs", "-n", "1", trace).out.splitlines()[1].startswith("slow-calls.programs,")
    assert "Slow calls of each program" in kymo("report", path, "--html", trace).out
    # Parameters, the range, the order.
    found = tables(kymo, path, "--param", "least=3000000000", trace)
    assert len(found["calls"]["rows"]) == sum(row["duration"] >= 3 * 10**9 for row in log)
    found = tables(kymo, path, "--begin", "+1s", "--end", "+3s", "-t", "calls", "--sort", "began", trace)["calls"]["rows"]
    begin = tables(kymo, "cpu", trace) and json.loads(kymo("report", "--json", "cpu", trace).out)["range"]["begin_ns"]
    assert all(begin + 10**9 <= row["began"] <= begin + 3 * 10**9 for row in found) and found


def test_reports_without_a_head_and_with_errors(kymo, trace, tmp_path):
    own = tmp_path / "own.sql"
    own.write_text("SELECT cpu, sum(duration) / 2.0 AS half, state FROM cpu_state GROUP BY cpu, state; SELECT -1 AS x, NULL AS y", encoding="ascii")
    found = tables(kymo, own, trace)
    assert [column["class"] for column in found["rows"]["columns"]] == ["cpu", "number", "text"]
    assert found["rows2"]["rows"] == [{"x": -1, "y": None}]
    for text, error in (("SELECT x FROM y", "no such table: y"), ("-- column a kilo: x\nSELECT 1 AS a", "a class such as"),
                        ("SELECT :none", ":none has no value"), ("", "has no SELECT"), ("ATTACH 'x' AS y", "not authorized")):
        own.write_text(text, encoding="ascii")
        done = kymo("report", own, trace, code=None)
        assert done.code != 0 and error in done.err, done.err
    assert "cannot read" in kymo("report", tmp_path / "no.sql", trace, code=1).err
    own.write_text("SELECT 1", encoding="ascii")
    assert "NAME=VALUE" in kymo("report", own, "--param", "x", trace, code=2).err
