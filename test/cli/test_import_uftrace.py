# SPDX-License-Identifier: MIT
"""uftrace's data directories, read as traces; uftrace itself judges."""

import json
import re
import shutil
import subprocess

import pytest

PROGRAM = r"""
#include <pthread.h>
__attribute__((noinline)) int inner(int x) { return x * 3; }
__attribute__((noinline)) int middle(int x) { int s = 0; for (int i = 0; i < 3; i++) s += inner(x + i); return s; }
static void *run(void *a) { (void)a; middle(7); return 0; }
int main(void) { pthread_t t; pthread_create(&t, 0, run, 0); pthread_join(t, 0); return middle(2) == 0; }
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    uftrace, place = shutil.which("uftrace"), tmp_path_factory.mktemp("uftrace")
    if not uftrace:
        pytest.skip("uftrace is not installed: tools/install-deps test")
    (place / "calls.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O0", "-pg", "-g", "-o", place / "calls", place / "calls.c", "-pthread"], check=True)
    done = subprocess.run([uftrace, "record", "-d", place / "data", place / "calls"], capture_output=True, check=False,
                          timeout=100)
    if done.returncode or not (place / "data" / "task.txt").exists():
        pytest.skip(f"uftrace cannot record here: {done.stderr[-300:]}")
    return place / "data"


def calls(kymo, path, code=0):
    out = kymo("convert", "--to", "json", "--event", "lttng_ust_cyg_profile:*", path, code=code).out
    return [json.loads(line) for line in out.splitlines()]


def test_calls_are_uftraces(kymo, peer, data):
    dump = peer("uftrace", "dump", "-d", data).out
    theirs = sorted((int(s + ns), int(tid), kind, int(address, 16)) for s, ns, tid, kind, address in
                    re.findall(r"^(\d+)\.(\d{9})\s+(\d+): \[(entry|exit )\] .*\(([0-9a-f]+)\) depth", dump, re.M))
    found = calls(kymo, data)
    ours = [(e["timestamp_ns"], e["context"]["vtid"], {"func_entry": "entry", "func_exit": "exit "}[e["event"].split(":")[1]],
             e["fields"]["addr"]) for e in found]
    assert ours == sorted(ours, key=lambda call: call[0]) and sorted(ours) == theirs and theirs
    report = json.loads(kymo("report", "calls", "--limit", 0, "--json", data).out)["reports"][0]
    (rows,) = (table["rows"] for table in report["tables"] if table["name"] == "functions")
    counts = {row["function"]: row["calls"] for row in rows}
    assert (counts["main"], counts["run"], counts["middle"], counts["inner"]) == (1, 1, 2, 6)


def test_damage(kymo, data, tmp_path):
    """A thread's file that is cut or of something else ends there, with file and offset; the other threads are read."""
    whole = len(calls(kymo, data))
    copy = tmp_path / "copy"
    shutil.copytree(data, copy)
    longest = max(copy.glob("[0-9]*.dat"), key=lambda path: path.stat().st_size)
    content = longest.read_bytes()
    for damaged in (content[:40], content[:32] + bytes(16) + content[48:], content[:40] + b"\xff" * 40):
        longest.write_bytes(damaged)
        result = kymo("convert", "--to", "json", copy, code=1)
        assert re.search(rf"{longest.name}: .*\(at byte \d+\)", result.err), result.err
        assert 0 < len(calls(kymo, copy, code=1)) < whole
    longest.write_bytes(content[:8] + bytes([content[8] | 4]) + content[9:])
    assert "arguments follow" in kymo("print", copy, code=1).err
    (copy / "task.txt").write_bytes(b"TASK timestamp=1.2 tid=99999999999 pid=x\n" + b"\xff" * 5000)
    assert kymo("print", copy, code=None).code in (0, 1)
