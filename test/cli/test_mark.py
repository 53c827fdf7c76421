# SPDX-License-Identifier: MIT
"""kymo mark, and files on different clocks that are joined by it."""

import json
import os
import pathlib
import re
import subprocess
import time

import pytest

from conftest import tracefs

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def stamp(ns):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ns // 10**9)) + f".{ns % 10**9:09d}Z"


def times(kymo, *args):
    return [json.loads(line) for line in kymo("convert", "--to", "json", *args).out.splitlines()]


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@needs_root
def test_one_mark_in_kernel_and_recordings(kymo, kymo_bin, needs_root_tracefs, tmp_path):  # pylint: disable=unused-argument
    """The mark is at its time in a recording; the kernel's text, whose clock counts from boot, is shifted to it."""
    out, ready = tmp_path / "trace", tmp_path / "ready"
    root = pathlib.Path(tracefs())
    if (root / "tracing_on").read_text().strip() != "1":
        pytest.skip("the kernel's own trace is off")
    with subprocess.Popen([kymo_bin, "record", "-o", out, "-k", "sched_switch", "--", "sh", "-c",
                           f"touch {ready}; while [ -e {ready} ]; do sleep 0.05; done"], stderr=subprocess.DEVNULL) as recorder:
        wait_for(ready.exists)
        result = kymo("mark", "a test of ours")
        kernel = (root / "trace").read_text(errors="replace")
        ready.unlink()
        recorder.wait(60)
    line = result.out.strip()
    ns = int(re.fullmatch(r"kymo-mark (\d{19}) a test of ours", line)[1])
    assert f"recording {recorder.pid}" in result.err and "trace_marker" in result.err
    (mark,) = times(kymo, "--event", "kymo:mark", out)
    assert mark["fields"]["name"] == "a test of ours" and abs(mark["timestamp_ns"] - ns) < 10**6
    text = tmp_path / "kernel.txt"
    text.write_text("# tracer: nop\n#\n" + "".join(row + "\n" for row in kernel.splitlines() if line in row))
    alone = times(kymo, text)
    joined = times(kymo, "--clock-offset", "kernel.txt:mark", text)
    assert len(alone) == 1 and abs(alone[0]["timestamp_ns"] - ns) > 10**12 and joined[0]["timestamp_ns"] == ns


def test_logs_are_joined(kymo, tmp_path):
    """Two logs whose clocks are wrong by hours become one order of events."""
    ns = 1_795_729_659_330_226_722
    line = f"kymo-mark {ns} begin"
    one, two = tmp_path / "a.log", tmp_path / "b.log"
    late = ns + 3 * 3600 * 10**9
    one.write_text("".join(f"{stamp(at)} host app[1]: {text}\n" for at, text in
                           ((late - 2000, "before"), (late + 1000, line), (late + 9000, "after"))))
    early = ns - 7200 * 10**9
    two.write_text("".join(json.dumps({"time": stamp(at), "msg": text}) + "\n" for at, text in
                           ((early - 1000, "between"), (early + 500, line), (early + 5000, "last but one"))))
    found = times(kymo, "--clock-offset", "a.log:mark", "--clock-offset", "b.log:mark", one, two)
    words = [e["fields"].get("message", e["fields"].get("msg")) for e in found]
    assert words == ["before", "between", line, line, "last but one", "after"]
    assert [e["timestamp_ns"] for e in found][2:4] == [ns, ns]
    both = times(kymo, "--clock-offset", "mark", one)
    assert [e["timestamp_ns"] - ns for e in both] == [-3000, 0, 8000]


def test_files_without_marks(kymo, tmp_path):
    log = tmp_path / "a.log"
    log.write_text("2026-11-26T10:00:00Z host app[1]: kymo-mark 12 no\n" * 2)
    result = kymo("print", "--clock-offset", "a.log:mark", log, code=None)
    assert result.code in (1, 2) and "no event of it is a mark" in result.err
    assert "TEXT is a line" in kymo("mark", "two\nlines", code=2).err


def test_times_of_two_kinds_are_said(kymo, tmp_path):
    """Times since the machine's start and wall times in one order: a warning, unless an offset or an option says that this is meant."""
    boot, wall = tmp_path / "d", tmp_path / "s"
    boot.write_text("".join(f"[{second:5}.250000] usb 1-1: message {second}\n" for second in range(3)))
    wall.write_text("".join(f"2026-11-26T10:00:{second:02}Z host app[1]: message\n" for second in range(3)))
    result = kymo("print", boot, wall)
    assert f"the times of {boot}/log count from the start of a machine or program, and {wall}/log has wall times" in result.err
    assert result.err.count("warning") == 1 and "--clock-offset" in result.err and len(result.out.splitlines()) == 6
    assert result.err in kymo("print", wall, boot).err
    assert "has wall times" in kymo("query", boot, wall, "SELECT count(*) FROM event").err
    for args in ((boot,), (boot, boot), (wall, wall), ("--clock-offset", "d/log:1795687200s", boot, wall), ("--clock-force-correlate", boot, wall)):
        assert kymo("print", *args).err == ""
    assert kymo("info", boot, wall).err == ""
