# SPDX-License-Identifier: MIT
"""uftrace's data directories, read as traces; uftrace itself judges."""

import json
import os
import re
import shutil
import struct
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


# ---- directories that are made here -----------------------------------------------------------

SESSION = 'SESS timestamp=1.000000000 pid=7 sid=1 exename="/bin/x"\n'
IMAGE = "00001000-00009000 r-xp 00000000 00:00 0    /bin/x\n"


def record(ns, tid, is_exit=0):
    return struct.pack("<QQ", ns, is_exit | 5 << 3 | (0x1000 + tid) << 16)


@pytest.fixture
def made(tmp_path):
    """Threads 1 to 3 of process 7: each enters a function at its number of seconds."""
    place = tmp_path / "made"
    place.mkdir()
    (place / "info").write_bytes(b"Ftrace!\0" + struct.pack("<IHBB", 4, 40, 1, 2) + bytes(24))
    (place / "task.txt").write_text(SESSION + "".join(f"TASK timestamp=1.0 tid={tid} pid=7\n" for tid in (1, 2, 3)))
    for tid in (1, 2, 3):
        (place / f"{tid}.dat").write_bytes(record(tid * 10**9, tid))
    return place


def tids(kymo, path, code=0):
    return [call["context"]["vtid"] for call in calls(kymo, path, code)]


@pytest.mark.parametrize("kind", ["fifo", "directory", "loop"])
@pytest.mark.parametrize("name", ["2.dat", "sid-1.map", "task.txt"])
def test_what_is_no_file_is_told(kymo, made, kind, name):
    """kymo names a thread or map that is no file, without waiting for it, and reads the others. What is missing is no error."""
    path = made / name
    path.unlink(missing_ok=True)
    if name != "task.txt":
        assert tids(kymo, made) == [1, 3] if name == "2.dat" else [1, 2, 3]
    {"fifo": os.mkfifo, "directory": os.mkdir, "loop": lambda loop: os.symlink(loop, loop)}[kind](path)
    result = kymo("convert", "--to", "json", made, code=1, timeout=20)
    assert re.search(rf"{name}: cannot read: ", result.err), result.err
    assert name == "task.txt" or tids(kymo, made, code=1) == ([1, 3] if name == "2.dat" else [1, 2, 3])


def test_byte_0_in_tasks(kymo, made):
    tasks = (made / "task.txt").read_bytes()
    (made / "task.txt").write_bytes(tasks.replace(b"TASK timestamp=1.0 tid=2", bytes(99) + b"TASK timestamp=1.0 tid=2"))
    assert re.search(r"task.txt: .*byte 0 .*\(at byte \d+\)", kymo("print", made, code=1).err)
    assert tids(kymo, made, code=1) == [1, 2, 3]


def test_no_more_descriptors(kymo_bin, made):
    with (made / "task.txt").open("a") as tasks:
        for tid in range(4, 100):
            tasks.write(f"TASK timestamp=1.0 tid={tid} pid=7\n")
            (made / f"{tid}.dat").write_bytes(record(tid * 10**9, tid))
    limit = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh"]
    done = subprocess.run([*limit, kymo_bin, "print", made], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1 and "ulimit -n" in done.stderr and len(done.stdout.splitlines()) > 10, done


def test_many_small_threads_need_little_memory(kymo_bin, made):
    with open(kymo_bin, "rb") as program:
        if re.search(b"__[at]san_init", program.read()):
            pytest.skip("a sanitizer's address space cannot be limited")
    with (made / "task.txt").open("a") as tasks:
        for tid in range(4, 1500):
            tasks.write(f"TASK timestamp=1.0 tid={tid} pid=7\n")
            (made / f"{tid}.dat").write_bytes(record(tid * 10**9, tid))
    done = subprocess.run(["prlimit", "--as=1300000000", kymo_bin, "print", made], capture_output=True, text=True,
                          check=False, timeout=60)
    assert done.returncode == 0 and len(done.stdout.splitlines()) >= 1499, done.stderr


def test_many_threads_in_turn(kymo, made):
    """Threads that take turns at every record: the order is that of times, and of task.txt where times are equal."""
    n = 3000
    (made / "task.txt").write_text("".join(f"TASK timestamp=1.0 tid={tid} pid=7\n" for tid in range(n, 0, -1)))
    for tid in range(1, n + 1):
        (made / f"{tid}.dat").write_bytes(b"".join(record(10**9 + step * n + tid // 2, tid, step & 1) for step in range(10)))
    expected = sorted(range(n, 0, -1), key=lambda tid: tid // 2) * 10
    out = kymo("print", made, timeout=60).out
    assert [int(tid) for tid in re.findall("vtid = ([0-9]+)", out)] == expected


def test_map_of_many_sessions(kymo, made):
    """kymo reads a map once for all sessions that name it; it names one that is too long, and prints the calls."""
    (made / "task.txt").write_text((made / "task.txt").read_text() + 300 * SESSION)
    (made / "sid-1.map").write_text(IMAGE)
    assert kymo("print", made).out.count("bin_info") == 301
    with open(made / "sid-1.map", "wb") as path:
        path.truncate(10 << 30)
    result = kymo("print", made, code=1, timeout=20)
    assert "sid-1.map: the file has more than 64 MiB" in result.err and result.out.count("func_entry") == 3


def test_unreadable_info(kymo, made):
    (made / "info").unlink()
    (made / "info").symlink_to("info")
    assert "info: cannot read: Too many levels" in kymo("print", made, code=1).err


def names_of(kymo, path):
    """{function: calls} of report calls."""
    report = json.loads(kymo("report", "calls", "--limit", 0, "--json", path).out)["reports"][0]
    (rows,) = (table["rows"] for table in report["tables"] if table["name"] == "functions")
    return {row["function"]: row["calls"] for row in rows}


@pytest.mark.parametrize("symbols", [
    "# symbols: 3\n# path name: /bin/x\n# build-id: ab12\n0000000000000001 00000001 T one\n0000000000000002 00000001 t _Z3twoi\n"
    "0000000000000003 00000001 P three\n0000000000000003 00000001 D data\n0000000000000004 00000000 ? __sym_end\nno line\n",
    "0000000000000001 T one\n0000000000000002 t _Z3twoi\n0000000000000003 P three\n0000000000000004 T __sym_end\n"], ids=["now", "old"])
def test_names_of_functions_whose_file_is_missing(kymo, made, symbols):
    """A directory of another machine has the names in tables of its own. Each function tells its name once."""
    (made / "sid-1.map").write_text(IMAGE.replace("\n", " build-id:ab12\n"))
    (made / "x.sym").write_text(symbols)
    (made / "1.dat").write_bytes(record(10**9, 1) + record(10**9 + 5, 1, True) + record(2 * 10**9, 1))
    assert names_of(kymo, made) == {"one": 2, "two": 1, "three": 1}
    told = re.findall(r'uftrace:function: .* begin = (\S+), size = (\d+), name = "(\w+)"', kymo("print", made).out)
    assert told == [("0x1001", "1", "one"), ("0x1002", "1", "_Z3twoi"), ("0x1003", "1", "three")]


def test_names_of_another_file(kymo, made):
    (made / "sid-1.map").write_text(IMAGE.replace("\n", " build-id:ab12\n"))
    (made / "x.sym").write_text("# build-id: ab13\n0000000000000001 00000001 T one\n")
    assert "one" not in names_of(kymo, made)
    (made / "x.sym").unlink()
    os.mkfifo(made / "x.sym")
    assert "x.sym: cannot read: not a regular file" in kymo("print", made, code=1, timeout=20).err
