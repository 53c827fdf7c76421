# SPDX-License-Identifier: MIT
"""kymo convert --to formats of other viewers, each judged by a program that reads it."""

import collections
import json
import os
import re
import shutil
import subprocess

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

COMPLAINTS = ("SELECT name, idx, value FROM stats "
              "WHERE value > 0 AND severity IN ('error', 'data_loss')")


@pytest.fixture
def convert(kymo, tmp_path):
    def call(form, *args, code=0):
        out = tmp_path / f"out.{form}"
        kymo("convert", "--to", form, "-o", out, *args, code=code)
        return out

    return call


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """perf.data with call stacks."""
    perf = shutil.which("perf")
    if not perf or os.geteuid():
        pytest.skip("perf is not installed, or may not record: tools/install-deps test")
    path = tmp_path_factory.mktemp("samples") / "perf.data"
    work = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; ls -lR /etc"
    done = subprocess.run([perf, "record", "-q", "-g", "-e", "cpu-clock", "-F", "999", "-o", path, "--",
                           "sh", "-c", work], capture_output=True, check=False, timeout=100)
    if done.returncode:
        pytest.skip(f"perf cannot record here: {done.stderr[-300:]}")
    return path


def table(kymo, trace, report, name):
    found = json.loads(kymo("report", report, "--limit", 0, "--json", trace).out)
    return {t["name"]: t["rows"] for t in found["reports"][0]["tables"]}[name]


def events(kymo, *args):
    return [json.loads(line) for line in kymo("convert", "--to", "json", *args).out.splitlines()]


def calls_of(rows):
    """Calls without a name have events of one name."""
    return {row["syscall"]: row["count"] for row in rows if row["count"] and " " not in row["syscall"]}


# ---- Chrome's JSON ------------------------------------------------------------------------------


def test_chrome_json_of_a_kernel(kymo, convert, query, shared):
    """Perfetto finds the system calls, run times and requests that Kymo's reports find."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    out = convert("chrome-json", trace)
    complaints, calls, kinds, sched, names = query(
        out, COMPLAINTS,
        """SELECT s.name, COUNT(*) AS n, SUM(dur) AS total FROM slice s WHERE category = 'syscall' AND dur > 0
           AND NOT EXISTS (SELECT 1 FROM args o WHERE o.arg_set_id = s.arg_set_id AND o.key = 'args.outcome')
           GROUP BY 1""",
        "SELECT category, COUNT(*) AS n FROM slice GROUP BY 1",
        "SELECT SUM(dur) AS total FROM slice WHERE category = 'sched'",
        "SELECT tid, t.name, pid FROM thread t JOIN process USING (upid) WHERE tid = 250")
    assert not complaints
    assert {r["name"]: (r["n"], r["total"]) for r in calls} == {
        r["syscall"]: (r["count"], r["total"]) for r in table(kymo, trace, "syscalls", "syscalls") if r["count"]}
    assert names[0]["name"] == "Client manageme" and names[0]["pid"] == 240
    busy = sum(row["cpu_time"] for row in table(kymo, trace, "cpu", "threads"))
    assert abs(sched[0]["total"] - busy) < 1000
    n = {row["category"]: row["n"] for row in kinds}
    issues = events(kymo, "--event", "block_rq_issue", trace)
    assert n["block"] == len(issues)


def test_chrome_json_comes_back(kymo, convert, shared):
    """The importer of the same format finds the same calls at the same times."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    back = events(kymo, "--event", "read_begin", "--event", "read_end", convert("chrome-json", trace))
    back = [e for e in back if e["fields"].get("cat") == "syscall"]
    told = events(kymo, "--event", "syscall_*_read", trace)
    assert [e["timestamp_ns"] for e in back] == [e["timestamp_ns"] for e in told] and told
    assert [e["fields"].get("fd") for e in back] == [e["fields"].get("fd") for e in told]


def test_chrome_json_of_programs(convert, query, shared):
    trace = f"{shared}/traces/lttng-ust"
    out = convert("chrome-json", trace)
    complaints, kinds, threads = query(
        out, COMPLAINTS, "SELECT COUNT(*) AS n FROM slice WHERE category = 'user'",
        "SELECT COUNT(*) AS n FROM thread WHERE tid > 0")
    assert not complaints and kinds[0]["n"] > 0 and threads[0]["n"] > 0
    assert len(json.loads(out.read_text())["traceEvents"]) > kinds[0]["n"]


# ---- perf script ----------------------------------------------------------------------------------


def test_perf_script_comes_back(kymo, convert, shared):
    """Reports on the text are those on the trace."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    out = convert("perf-script", trace)
    assert calls_of(table(kymo, out, "syscalls", "syscalls")) == calls_of(table(kymo, trace, "syscalls", "syscalls"))
    switches = [(e["timestamp_ns"], e["fields"]["prev_tid"], e["fields"]["next_tid"], e["fields"]["next_prio"])
                for e in events(kymo, "--event", "sched_switch", trace)]
    assert [(e["timestamp_ns"], e["fields"]["prev_tid"], e["fields"]["next_tid"], e["fields"]["next_prio"])
            for e in events(kymo, "--event", "sched_switch", out)] == switches


HEAD = re.compile(r"^\s*(\S.*?)\s+(\d+)\s+(?:\[(\d+)\] +)?(\d+)\.(\d{9}):\s+(?:(\d+)\s+)?(\S+):")


def stacks_of(text):
    """As FlameGraph's stackcollapse-perf.pl takes it: {(time, tid, event, period, addresses)}."""
    found, head = collections.Counter(), None
    addresses = []
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if head:
                found[(*head, tuple(addresses))] += 1
            head, addresses = None, []
        elif head is None:
            match = HEAD.match(line)
            head = (match[4] + match[5], match[2], match[6], match[7])
        else:
            # perf shows some addresses of files, and not of processes: their places in a page are the same. It shows
            # one of two equal frames.
            at = int(line.split()[0], 16) % 4096
            addresses += [at] if addresses[-1:] != [at] else []
    return found


@needs_root
def test_perf_script_has_perfs_stacks(peer, convert, samples):
    theirs = stacks_of(peer("perf", "script", "--ns", "-F", "comm,tid,time,period,event,ip", "-i", samples).out)
    assert stacks_of(convert("perf-script", samples).read_text()) == theirs and theirs


# ---- call stacks ----------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("form", ["folded", "speedscope", "pprof"])
def test_stacks_are_those_of_the_report(kymo, kymo_bin, convert, samples, form):
    made = convert(form, samples).read_bytes()
    told = subprocess.run([kymo_bin, "report", "flame", "--to", form, samples], capture_output=True, check=True).stdout
    assert made == told and len(made) > 100


def test_stacks_need_samples(kymo, shared, tmp_path):
    result = kymo("convert", "--to", "folded", "-o", tmp_path / "x", f"{shared}/traces/lttng-kernel/kernel", code=1)
    assert "no event of the trace is a sample" in result.err and not (tmp_path / "x").exists()
