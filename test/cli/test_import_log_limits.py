# SPDX-License-Identifier: MIT
"""Logs that would take much memory or time: names without end, entries without end, expressions that try everything."""

import json
import subprocess
import sys

import pytest

from test_import import events_of

MEASURE = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=100)
print(done.returncode, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
MEMORY_KIB = 256 << 10


def memory_of(kymo_bin, *args):
    """KiB that the command had at most. Builds with sanitizers take more."""
    out = subprocess.run([sys.executable, "-c", MEASURE, kymo_bin, *args], capture_output=True, text=True, check=True).stdout
    code, kib = map(int, out.split())
    assert code == 0
    return kib


def is_sanitized(kymo_bin):
    with open(kymo_bin, "rb") as file:
        return b"__asan_init" in file.read()


def made(path, lines):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(lines)
    return path


def test_names_without_end(kymo, kymo_bin, tmp_path):
    """Two million names of fields, a hundred thousand names with one field, a hundred thousand names of events: all events are there."""
    fields = made(tmp_path / "a.json", ('{"time":%d,%s}\n' % (1764181493 + i, ",".join(f'"k{i}_{j}":{j}' for j in range(250))) for i in range(8192)))
    one = made(tmp_path / "b.json", ('{"time":%d,"k%d":%d}\n' % (1764181493 + i, i, i) for i in range(100000)))
    (tmp_path / "c.json").write_text(json.dumps([{"name": f"n{i}", "ph": "i", "ts": i, "pid": 1, "tid": 1} for i in range(100000)]), encoding="ascii")
    for path, n in ((fields, 8192), (one, 100000), (tmp_path / "c.json", 100000)):
        assert kymo("print", "--count", path).out == f"{n}\n"
        if not is_sanitized(kymo_bin):
            assert memory_of(kymo_bin, "print", "--count", path) < MEMORY_KIB
    assert json.loads(kymo("convert", "--to", "json", one).out.splitlines()[-1])["fields"] == {"fields": "k99999=99999"}
    last = json.loads(kymo("convert", "--to", "json", tmp_path / "c.json").out.splitlines()[-1])
    assert (last["event"], last["fields"]) == ("other", {"fields": "", "name": "n99999"})


def test_an_entry_without_end(kymo, kymo_bin, tmp_path):
    """An entry of journald of six million fields keeps the first ones."""
    path = tmp_path / "j"
    path.write_text("__CURSOR=1\n__REALTIME_TIMESTAMP=1795713893123456\n" + "A=1\n" * 6000000, encoding="ascii")
    done = kymo("print", path)
    assert len(done.out.splitlines()) == 1 and "256 fields" in done.err
    if not is_sanitized(kymo_bin):
        assert memory_of(kymo_bin, "print", path) < 64 << 10


def test_what_does_not_fit_into_an_event_is_told(kymo, tmp_path):
    long = made(tmp_path / "a.json", ['{"time":1,"n":1}\n', '{"time":2,"m":"%s","n":2}\n' % ("x" * 500000)])
    many = made(tmp_path / "b.json", ['{"time":1,%s}\n' % ",".join(f'"f{i}":{i}' for i in range(400))])
    for path in (long, many):
        done = kymo("convert", "--to", "json", path)
        assert "1 events have more than 255 KiB, 256 fields or 1024 functions" in done.err
    assert json.loads(kymo("convert", "--to", "json", long).out.splitlines()[1])["fields"]["n"] == 2


def test_expressions_that_try_everything(kymo, tmp_path):
    """The lines before are events; the error names the line and the option."""
    path = made(tmp_path / "a", ["aaa\n"] + ["a" * 28 + "b\n"] * 5000)
    done = kymo("print", "--log-format", "^(?<x>(a+)+)$", path, code=1, timeout=60)
    assert 'x = "aaa"' in done.out and "--log-format takes too many steps" in done.err and "at byte" in done.err
    # A long line needs more than the stack of a compiled expression.
    made(path, ["xy" * 100000 + "\n"])
    done = kymo("convert", "--to", "json", "--log-format", "^(?<x>(?:x|y)*)$", path)
    assert len(json.loads(done.out)["fields"]["x"]) == 200000


@pytest.mark.parametrize("cpu, name", [("1023", "event"), ("70000", "line")])
def test_cpus_with_many_digits(kymo, tmp_path, cpu, name):
    path = made(tmp_path / "a", [f"  a[001]-7 [{number}] ..... 12.000001: sched_waking: comm=b pid=3\n" for number in ("001", cpu, "002")])
    events = events_of(kymo, path)
    assert len(events) == 3 and {event["context"]["tid"] for event in events if event["event"] != "line"} == {7}
    cpus = {event["packet"]["cpu_id"] for event in events if event["event"] == "sched_waking"}
    assert cpus == ({1, 2, 1023} if name == "event" else {1, 2}) and (name == "line") == any(event["event"] == "line" for event in events)


def test_numbers_at_the_end_of_a_file(kymo, tmp_path):
    """No NUL ends them, and what lies behind is no part of them."""
    path = tmp_path / "t"
    path.write_text("x-1     [000] ..... 1.000000: sys_exit_openat: 3")
    assert "{ ret = 3 }" in kymo("print", path).out
    path.write_text("x-1     [000] ..... 1.000000: sys_exit_openat: \n7zip-1     [000] ..... 2.000000: foo: a=1\n")
    assert "{ ret = 0 }" in kymo("print", path).out
    path.write_text("<34>1 2026-11-21T05:30:01Z host app 7 id ")
    assert 'data = "", message = ""' in kymo("print", path).out
    path.write_text("x 1 [000] 1.0: 123")
    kymo("print", path, code=1)


def test_format_of_a_log_that_begins_with_a_hole(kymo, tmp_path):
    path = tmp_path / "log"
    with open(path, "wb") as file:
        file.seek(1 << 20)
        file.write(b"2026-11-21T05:30:01.000001+00:00 host app[7]: line\n" * 3)
    assert kymo("print", path, code=None).out.count("program = \"app\"") == 3


def test_format_of_numbers_that_are_times(kymo, tmp_path):
    path = tmp_path / "log"
    path.write_text('{"time":20261121050000,"m":"x"}\n')
    done = kymo("print", "--clock-date", "--log-format", "json", "--log-time", "%Y%m%d%H%M%S", path)
    assert done.out.startswith("[2026-11-21 05:00:00")
