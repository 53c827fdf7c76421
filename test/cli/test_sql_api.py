# SPDX-License-Identifier: MIT
"""libkymo-query: prepared statements from C and from Python give the rows of kymo query."""

import glob
import gc
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from conftest import SANITIZED
from test_install import build, options, tree  # noqa: F401 (fixtures)

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trace(shared):
    return str(pathlib.Path(shared) / "traces" / "lttng-kernel" / "kernel")


@pytest.fixture(scope="module")
def module(kymo_bin):
    if SANITIZED:
        pytest.skip("a sanitizer wants to be loaded first")
    library = pathlib.Path(kymo_bin).parents[2] / "libkymo-query.so.0"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    os.environ["KYMO_QUERY_LIBRARY"] = str(library)
    sys.path.insert(0, str(ROOT / "python"))
    return importlib.import_module("kymo_query")


def test_python_has_the_rows_of_the_command(module, kymo, trace):
    statement = "SELECT time, name, ret, error, duration / 1e3 AS us FROM syscall WHERE tid = :tid ORDER BY time"
    expected = json.loads(kymo("query", "--json", "-p", "tid=328", trace, statement).out)
    with module.open(trace) as traces:
        assert [row._asdict() for row in traces.query(statement, tid=328)] == expected and expected
        prepared = traces.prepare("SELECT count(*) FROM event WHERE name = :name")
        counts = {name: next(prepared.run(name=name))[0] for name in ("sched_switch", "sched_waking", "nothing", "sched_switch")}
        assert counts["sched_switch"] == 1419 and counts["nothing"] == 0 and counts["sched_waking"] > 0
        # Values of all types, both ways; columns whose names Python does not like.
        row = next(traces.query("SELECT :a, :b, :c, :d, x'00ff'", a=-2**63, b=1.5, c="\u00e4'\"; --", d=None))
        assert tuple(row) == (-2**63, 1.5, "\u00e4'\"; --", None, b"\0\xff")
        # A run that begins again, and one that nobody reads to its end.
        rows = traces.query("SELECT name FROM event")
        assert next(rows).name
        rows = traces.prepare("SELECT 1 AS a UNION SELECT 2")
        assert [list(rows.run()), list(rows.run())] == [[(1,), (2,)]] * 2
    with pytest.raises(ValueError):
        next(prepared.run(name="x"))


def test_python_errors(module, trace, tmp_path):
    with pytest.raises(module.Error) as error:
        module.open(tmp_path)
    assert str(tmp_path) in str(error.value)
    with module.open(trace) as traces:
        for text, says in (("SELECT x", "no such column"), ("SELECT 1; SELECT 2", "more than one"), ("-- nothing", "empty"),
                           ("ATTACH 'x' AS y", "not authorized")):
            with pytest.raises(module.Error) as error:
                traces.prepare(text)
            assert says in str(error.value)
        with pytest.raises(module.Error) as error:
            traces.query("SELECT 1", a=1)
        assert "no parameter :a" in str(error.value)
        with pytest.raises(OverflowError):
            traces.query("SELECT :a", a=2**63)
    damaged = str(ROOT / "test" / "data" / "bad" / "traces" / "unknown-event-beside")
    names = []
    with module.open(damaged) as traces, pytest.raises(module.Error):
        for row in traces.query("SELECT name FROM event"):
            names.append(row.name)
    assert names == ["tick"] * 6
    gc.collect()


def test_the_example_in_c(build, kymo, trace):  # noqa: F811
    program = pathlib.Path(build) / "examples" / "slow-calls"
    if not program.exists():
        pytest.skip(f"{program} is not built")
    done = subprocess.run([program, trace, "900"], capture_output=True, text=True, timeout=60, check=True)
    rows = json.loads(kymo("query", "--json", trace, "SELECT time_text(time) AS time, name, comm, duration FROM syscall "
                           "WHERE duration >= 900000000 ORDER BY duration DESC").out)
    assert [line.split()[:3] for line in done.stdout.splitlines()] == [[*row["time"].split(), row["name"]] for row in rows] and rows
    assert subprocess.run([program], capture_output=True, timeout=60, check=False).returncode == 2
    done = subprocess.run([program, "/nonexistent", "1"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "/nonexistent" in done.stderr


def test_the_library_exports_what_its_header_declares(tree, root_dir):  # noqa: F811
    library = glob.glob(f"{tree}/lib*/**/libkymo-query.so", recursive=True)[0]
    out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    with open(f"{root_dir}/include/kymo/query.h", encoding="utf-8") as file:
        declared = set(re.findall(r"^KYMO_QUERY_API\b[^;(]*?\b(kymo_\w+)\(", re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S), flags=re.M))
    assert {name for name in names if name.startswith("kymo_")} == declared and len(declared) == 16
    assert os.path.exists(glob.glob(f"{tree}/lib*/**/kymo-query.pc", recursive=True)[0])
