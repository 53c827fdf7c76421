# SPDX-License-Identifier: MIT
"""kymo report calls: calls of functions in programs, counted, timed, and as trees and flame charts."""

import gzip
import json
import os
import re
import shutil
import struct
import subprocess
import time

import pytest

import make_trace
from test_flame import messages
from test_view import PATIENCE_S, Viewer

# Of test/tracer/functions.c with 10 times: calls of each function.
TIMES = 10
COUNTS = {"main": 1, "worker": 3, "middle": 3 * TIMES, "larger": 3 * TIMES, "leaf": 3 * TIMES * 4 + 5 + 7,
          "fibonacci": 177, "catcher": 5, "jumper": 20, "handler": 7}


def library(kymo_bin, name):
    return os.path.join(os.path.dirname(kymo_bin), "..", "tracer", "preload", f"libkymo-{name}.so")


def build(root_dir, path, *options, source="functions.c", compiler="gcc"):
    subprocess.run([compiler, "-g", "-O1", *options, "-o", path, os.path.join(root_dir, "test", "tracer", source),
                    "-lpthread"], check=True)
    return path


def tables(kymo, trace, *options):
    report, = json.loads(kymo("report", "calls", "--json", "--limit", "0", *options, trace).out)["reports"]
    found = {table["name"]: table["rows"] for table in report["tables"]}
    return found, [note.removeprefix("calls: ") for note in report["notes"]]


def counts(rows):
    return {row["function"]: row["calls"] for row in rows}


@pytest.fixture(scope="module", params=["cyg-profile", "cyg-profile-fast"])
def trace(request, kymo, kymo_bin, root_dir, tmp_path_factory):
    place = tmp_path_factory.mktemp("calls")
    program = build(root_dir, place / "functions", "-finstrument-functions")
    kymo("record", "-u", "lttng_ust_cyg_profile*", "-u", "lttng_ust_statedump*", "-c", "vpid,vtid,procname", "-o",
         place / "trace", "--", "env", f"LD_PRELOAD={library(kymo_bin, request.param)}", program, str(TIMES))
    return place / "trace", request.param


def test_spans_in_sql(kymo, trace):
    """The table span has the calls by the names of their functions."""
    path, name = trace
    rows = json.loads(kymo("query", "--json", path, "SELECT name, count(*) AS n, min(address) AS a, max(address) AS b, max(depth) AS deep FROM span GROUP BY name").out)
    found = {row["name"]: row for row in rows}
    if name == "cyg-profile":
        # Calls that longjmp() left have no end.
        assert {function: row["n"] for function, row in found.items()} == {function: n for function, n in COUNTS.items() if function != "jumper"}
        assert all(row["a"] == row["b"] > 0 for row in rows) and found["main"]["deep"] == 0 and found["fibonacci"]["deep"] > 5
    assert {"fibonacci", "middle", "leaf"} <= set(found)


def test_counts(kymo, trace):
    """Exactly as often as the program says, by function, caller and thread; times add up."""
    path, name = trace
    found, notes = tables(kymo, path, "-t", "functions", "-t", "tree", "-t", "callers")
    by_name = {row["function"]: row for row in found["functions"]}
    left = {"main": 0, "jumper": 20} if name == "cyg-profile" else None
    assert counts(found["functions"]) == COUNTS
    edges = {(row["caller"], row["function"]): row["calls"] for row in found["callers"]}
    if not left:
        # Nobody knows which call a return without fields is of: after longjmp(), callers are wrong.
        assert notes
        return
    assert notes == ["20 calls were left without a return, as by longjmp(): their time ends with their callers'"]
    assert {function: row["cut"] for function, row in by_name.items() if row["cut"]} == {"jumper": 20}
    # After longjmp(), the next call seems to be one of the function that was left.
    assert edges == {(None, "main"): 1, (None, "worker"): 3, ("worker", "middle"): 30, ("worker", "larger"): 30,
                     ("middle", "leaf"): 120, ("main", "fibonacci"): 1, ("fibonacci", "fibonacci"): 176,
                     ("main", "catcher"): 5, ("catcher", "jumper"): 5, ("jumper", "jumper"): 15,
                     ("jumper", "leaf"): 5, ("main", "handler"): 7, ("handler", "leaf"): 7}
    whole = by_name["main"]["total"] + by_name["worker"]["total"]
    assert sum(row["self"] for row in found["functions"]) == whole
    assert sum(row["total"] for row in found["tree"] if row["depth"] == 0) == whole
    for row in found["functions"]:
        assert row["self"] <= row["total"]
        assert row["calls"] == row["cut"] or row["min"] <= row["p50"] <= row["p99"] * 1.01 <= row["max"] * 1.02
    # Recursion counts once.
    assert by_name["fibonacci"]["total"] == by_name["fibonacci"]["max"] == by_name["fibonacci"]["self"]


def test_rows_of_the_viewer(kymo, kymo_bin, trace, tmp_path):
    """Calls are rows below their thread, one for each depth, with the names of functions."""
    path, name = trace
    viewer = Viewer(kymo_bin, "--no-browser", path, env={"XDG_CACHE_HOME": str(tmp_path)})
    try:
        until = time.monotonic() + PATIENCE_S
        while not (tree := viewer.get("tree"))["ready"] and time.monotonic() < until:
            time.sleep(0.05)
        rows = {row[0]: row for row in tree["rows"]}
        spans = [row for row in tree["rows"] if row[2] == "spans" and row[6]]
        threads = {rows[row[1]][3] for row in spans}
        assert len(threads) == 4 and all(rows[row[1]][2] == "thread" for row in spans)
        times = viewer.get("info")
        found = viewer.get("members", name="spans", begin=times["begin"], end=times["end"], least=0, most=2**63 - 1, text="", count=512)
        assert {one[3] for one in found["members"]} <= set(COUNTS)
        log = tables(kymo, path, "-t", "log")[0]["log"]
        begins = {(row["function"], row["process"]["tid"], row["begin"]): (row["depth"], row["duration"]) for row in log}
        if name == "cyg-profile":
            # All calls that returned, with the report's times, each in the row of its depth.
            assert found["n"] == sum(COUNTS.values()) - COUNTS["jumper"]
        for begin, end, row, function in found["members"]:
            depth, duration = begins[function, rows[rows[row][1]][3], begin]
            assert name != "cyg-profile" or (rows[row][3], end - begin) == (depth, duration), function
    finally:
        viewer.end()


def test_rows_of_two_programs(kymo, tmp_path):
    """Programs with functions at the same addresses have names of their own."""
    for name, pause_us in (("alpha", 50000), ("gamma", 50001)):  # so that their build ids differ
        (tmp_path / f"{name}.c").write_text(f"#include <unistd.h>\n__attribute__((noinline)) void {name}_work(void) {{ usleep({pause_us}); }}\n"
                                            f"int main(void) {{ {name}_work(); }}\n", encoding="ascii")
        subprocess.run(["gcc", "-O1", "-no-pie", "-finstrument-functions", "-o", tmp_path / name, tmp_path / f"{name}.c"], check=True)
    kymo("record", "--calls", "*_work", "-o", tmp_path / "trace", "--", "sh", "-c", f"{tmp_path}/alpha; {tmp_path}/gamma")
    found = kymo("timeline", "--rows", "spans", "--json", tmp_path / "trace", env={"XDG_CACHE_HOME": str(tmp_path)}).out
    assert '"alpha_work"' in found and '"gamma_work"' in found


def test_symbols_that_come_after_the_history(kymo, tmp_path):
    """The index on disk has the addresses, so that later symbols name the functions without another pass."""
    program, debug, trace = tmp_path / "alpha", tmp_path / "debug", tmp_path / "trace"
    program.with_suffix(".c").write_text("#include <unistd.h>\n__attribute__((noinline)) void alpha_work(void) { usleep(50000); }\n"
                                         "int main(void) { alpha_work(); }\n", encoding="ascii")
    subprocess.run(["gcc", "-O1", "-g", "-no-pie", "-finstrument-functions", "-o", program, program.with_suffix(".c")], check=True)
    kymo("record", "--calls", "alpha_work", "-o", trace, "--", program)
    build_id = re.search(r"Build ID: (\w+)", subprocess.run(["readelf", "-n", program], check=True, capture_output=True, text=True).stdout)[1]
    (debug / ".build-id" / build_id[:2]).mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug / ".build-id" / build_id[:2] / f"{build_id[2:]}.debug"], check=True)
    subprocess.run(["strip", program], check=True)
    shutil.rmtree(trace / "symbols")  # which the recorder has stored, because of --calls

    def names():
        found = json.loads(kymo("timeline", "--rows", "spans", "--json", trace, env={"XDG_CACHE_HOME": str(tmp_path)}).out)
        return found["index_built"], {run["name"] for row in found["rows"] for run in row["runs"] if run["state"] == "span"}

    built, before = names()
    assert built and len(before) == 1 and re.fullmatch(r"alpha\+0x[0-9a-f]+", *before), before
    assert names() == (False, before)
    kymo("symbols", "add", "--symbol-dir", debug, trace)
    assert names() == (False, {"alpha_work"})


def test_threads(kymo, trace):
    found, _ = tables(kymo, trace[0], "-t", "functions", "-t", "tree", "--group-by", "thread")
    middle = [row["calls"] for row in found["functions"] if row["function"] == "middle"]
    assert middle == [TIMES] * 3
    assert len({row["process"]["tid"] for row in found["functions"]}) == 4
    groups = [row for row in found["tree"] if row["depth"] == 0]
    assert len(groups) == 4 and all(re.fullmatch(r"functions \(\d+\)", row["function"]) for row in groups)
    one = groups[0]["function"].split("(")[1].rstrip(")")
    alone, _ = tables(kymo, trace[0], "-t", "functions", "--tid", one)
    assert counts(alone["functions"]) == {row["function"]: row["calls"] for row in found["functions"]
                                          if row["process"]["tid"] == int(one)}


def test_chart(kymo, trace):
    """Single calls lie within their callers, as a table and in the formats of other programs."""
    log = tables(kymo, trace[0], "-t", "log")[0]["log"]
    assert len(log) == sum(COUNTS.values())
    assert [row["begin"] for row in log] == sorted(row["begin"] for row in log)
    open_calls = {}
    for row in log:
        stack = open_calls.setdefault(row["process"]["tid"], [])
        del stack[row["depth"]:]
        assert len(stack) == row["depth"]
        assert not stack or row["begin"] + row["duration"] <= stack[-1]
        stack.append(row["begin"] + row["duration"])
    chrome = json.loads(kymo("report", "calls", "--to", "chrome", trace[0]).out)["traceEvents"]
    spans = [event for event in chrome if event["ph"] == "X"]
    first = log[0]["begin"]
    assert sorted((e["name"], e["tid"], round(e["ts"] * 1000), round(e["dur"] * 1000)) for e in spans) == sorted(
        (row["function"], row["process"]["tid"], row["begin"] - first, row["duration"]) for row in log)
    made = json.loads(kymo("report", "calls", "--to", "speedscope", trace[0]).out)
    assert len(made["profiles"]) == 4
    seen = dict.fromkeys(COUNTS, 0)
    for profile in made["profiles"]:
        stack, last = [], profile["startValue"]
        assert profile["type"] == "evented"
        for event in profile["events"]:
            assert last <= event["at"] <= profile["endValue"]
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
                seen[made["shared"]["frames"][event["frame"]]["name"]] += 1
            else:
                assert stack.pop() == event["frame"]
        assert not stack
    assert seen == COUNTS


def test_stacks(kymo, kymo_bin, trace):
    """The call graph for programs that show stacks, and as a page."""
    if trace[1] != "cyg-profile":
        return
    folded = dict(line.rsplit(" ", 1) for line in kymo("report", "calls", "--to", "folded", trace[0]).out.splitlines())
    tree = tables(kymo, trace[0], "-t", "tree")[0]["tree"]
    assert sum(map(int, folded.values())) == sum(row["self"] for row in tree)
    assert "main;fibonacci;fibonacci" in folded and "worker;middle;leaf" in folded
    profile = subprocess.run([kymo_bin, "report", "calls", "--to", "pprof", trace[0]], stdout=subprocess.PIPE, check=True).stdout
    assert len([1 for field, _ in messages(gzip.decompress(profile)) if field == 2]) == len(folded)
    page = kymo("report", "calls", "--html", trace[0]).out
    assert '<div class="flame">' in page and '"fibonacci"' in page
    assert kymo("report", "flame", "--to", "chrome", trace[0], code=1).err


def test_a_call_belongs_to_its_end(kymo, trace):
    log = tables(kymo, trace[0], "-t", "log")[0]["log"]
    middle = sorted(row["begin"] + row["duration"] for row in log)[len(log) // 2]
    parts = [tables(kymo, trace[0], "-t", "functions", *options)[0]["functions"] for options in
             (("--end", f"{middle // 10**9}.{middle % 10**9:09}"), ("--begin", f"{(middle + 1) // 10**9}.{(middle + 1) % 10**9:09}"))]
    assert all(parts)
    both = {function: sum(counts(part).get(function, 0) for part in parts) for function in COUNTS}
    assert both == COUNTS
    long = tables(kymo, trace[0], "-t", "functions", "--min", "1us")[0]["functions"]
    assert counts(long) == {name: n for name in COUNTS if (n := sum(
        1 for row in log if row["function"] == name and row["duration"] >= 1000))}


# ---- programs that compilers instrument in other ways ----

WAYS = {
    "pg": ("gcc", "-pg"),
    "mfentry": ("gcc", "-pg", "-mfentry"),
    "patchable": ("gcc", "-fpatchable-function-entry=5"),
    "clang": ("clang", "-fpatchable-function-entry=16"),
    "instrumented": ("gcc", "-finstrument-functions"),
}
needs_hooks = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the hooks are for x86-64")


def record(kymo, place, program, *options, pattern="*", args=(str(TIMES),)):
    done = kymo("record", "--calls", pattern, *options, "-o", place, "--", program, *args)
    return done.out


def gprof_counts(program, place):
    """gprof's call graph: how often each function was called, with none of Kymo's code. Recursive calls are apart: 1+176."""
    subprocess.run([program, str(TIMES)], cwd=place, check=True, stdout=subprocess.DEVNULL)
    graph = subprocess.run(["gprof", "-b", "-q", program, "gmon.out"], cwd=place, capture_output=True, text=True, check=True).stdout
    return {name: int(calls) + int(inner or 0) for calls, inner, name in
            re.findall(r"^\[\d+\] +[\d.]+ +[\d.]+ +[\d.]+ +(\d+)(?:\+(\d+))? +(\w+)", graph, re.M)}


@needs_hooks
@pytest.mark.parametrize("way", WAYS)
def test_ways(kymo, root_dir, tmp_path, way):
    """Arguments, results, signals and longjmp() survive the hooks; all calls are counted, and callers are right."""
    compiler, *options = WAYS[way]
    program = build(root_dir, tmp_path / "functions", *options, compiler=compiler)
    assert record(kymo, tmp_path / "trace", program).split()[0] == "132"
    found, notes = tables(kymo, tmp_path / "trace", "-t", "functions", "-t", "callers")
    assert counts(found["functions"]) == COUNTS
    if way == "instrumented":
        return
    assert not [note for note in notes if "name" not in note]
    edges = {(row["caller"], row["function"]): row["calls"] for row in found["callers"]}
    assert edges == {(None, "main"): 1, (None, "worker"): 3, ("worker", "middle"): 30, ("worker", "larger"): 30,
                     ("middle", "leaf"): 120, ("main", "fibonacci"): 1, ("fibonacci", "fibonacci"): 176,
                     ("main", "catcher"): 5, ("catcher", "jumper"): 5, ("jumper", "jumper"): 15,
                     ("catcher", "leaf"): 5, ("main", "handler"): 7, ("handler", "leaf"): 7}
    if way == "pg":
        assert not os.path.exists("gmon.out")
        truth = gprof_counts(program, tmp_path)
        assert truth == {name: n for name, n in COUNTS.items() if name in truth} and {"fibonacci", "jumper", "larger"} <= set(truth)


@needs_hooks
@pytest.mark.parametrize("way", ["pg", "patchable", "instrumented"])
def test_exceptions(kymo, root_dir, tmp_path, way):
    """Exceptions, destructors on their way, a thread that ends in a function, a stack that is switched."""
    program = build(root_dir, tmp_path / "exceptions", *WAYS[way][1:], source="exceptions.cc", compiler="g++")
    plain = build(root_dir, tmp_path / "plain", source="exceptions.cc", compiler="g++")
    says = subprocess.run([plain], capture_output=True, text=True, check=True).stdout
    assert record(kymo, tmp_path / "trace", program, args=()).splitlines()[0] + "\n" == says
    found, notes = tables(kymo, tmp_path / "trace", "-t", "functions")
    assert counts(found["functions"]) == {
        "main": 1, "shop::order": 10, "shop::again": 10, "shop::thrower": 30, "shop::guard::~guard": int(says.split()[0]),
        "ends": 1, "leave": 1, "switches": 10, "switched": 1, "inner": 9}
    # Without hooks of returns, nobody sees that a stack was switched.
    assert way == "instrumented" or not any("return" in note for note in notes), notes


@needs_hooks
@pytest.mark.parametrize("way", ["patchable", "instrumented"])
def test_patterns(kymo, root_dir, tmp_path, way):
    program = build(root_dir, tmp_path / "functions", *WAYS[way][1:])
    record(kymo, tmp_path / "one", program, pattern="m*,larger,fib*,!middle")
    found, _ = tables(kymo, tmp_path / "one", "-t", "functions")
    assert counts(found["functions"]) == {name: COUNTS[name] for name in ("main", "larger", "fibonacci")}
    program = build(root_dir, tmp_path / "exceptions", *WAYS[way][1:], source="exceptions.cc", compiler="g++")
    record(kymo, tmp_path / "two", program, pattern="shop::*,!*guard*", args=())
    found, _ = tables(kymo, tmp_path / "two", "-t", "functions")
    assert counts(found["functions"]) == {"shop::order": 10, "shop::again": 10, "shop::thrower": 30}


@needs_hooks
def test_command(kymo, root_dir, tmp_path):
    """A report without a trace; a program that is not compiled for it; mistakes."""
    program = build(root_dir, tmp_path / "functions", "-fpatchable-function-entry=5")
    done = kymo("report", "calls", "-t", "functions", "--json", "--", program, str(TIMES))
    rows, = [table["rows"] for table in json.loads(done.out[done.out.index("{"):])["reports"][0]["tables"]]
    assert counts(rows) == COUNTS
    assert "--calls needs a COMMAND" in kymo("record", "--calls", "*", "-o", tmp_path / "none", code=2).err
    # Names are stored with the trace: it tells them without the program.
    record(kymo, tmp_path / "trace", program)
    os.unlink(program)
    found, _ = tables(kymo, tmp_path / "trace", "-t", "functions")
    assert counts(found["functions"]) == COUNTS


def test_names_while_recording(kymo_bin, needs_root_tracefs, tmp_path):
    """kymo print --live has names of the kernel's functions."""
    recorder = subprocess.Popen([kymo_bin, "record", "-k", "timer_hrtimer_expire_entry", "-d", "60s", "-o", tmp_path / "trace"],
                                stderr=subprocess.DEVNULL)
    reader = None
    try:
        while not os.path.exists(tmp_path / "trace" / "kernel" / "metadata"):
            assert recorder.poll() is None
            time.sleep(0.05)
        reader = subprocess.Popen([kymo_bin, "print", "--live", "--symbols", tmp_path / "trace"], stdout=subprocess.PIPE, text=True)
        assert any(re.search(r"function = 0x\w+ \(\w+\+0x0\)", line) for line in reader.stdout)
    finally:
        for process in (reader, recorder):
            if process:
                process.terminate()
                process.communicate(timeout=240)


# ---- traces made by hand ----

HEAD, _, TAIL = make_trace.METADATA.partition("    event.context := struct { integer { size = 32; align = 8; signed = true; } _tid; };")
METADATA = HEAD.replace('domain = "test"', 'domain = "ust"') + """
    event.context := struct { uint32_t _vtid; };
};
""" + "".join(f"""
event {{
    name = "lttng_ust_cyg_profile{kind}:func_{what}"; id = {number}; stream_id = 0;
    fields := struct {{ {"".join(f"uint64_t _{field};" for field in fields)} }};
}};
""" for number, (kind, what, fields) in enumerate([
    ("", "entry", ["addr", "call_site"]), ("", "exit", ["addr", "call_site"]), ("_fast", "entry", ["addr"]),
    ("_fast", "exit", [])]))


class Packet(make_trace.Packet):
    def put(self, number, time, tid, *values):
        self.body += struct.pack("<I", number | (time & (1 << 27) - 1) << 5) + struct.pack("<I", tid)
        self.body += b"".join(struct.pack("<Q", value) for value in values)
        self.last = time

    def enter(self, time, function, tid=1):
        self.put(0, time, tid, function, 0)

    def leave(self, time, function, tid=1):
        self.put(1, time, tid, function, 0)


def made(tmp_path, *packets):
    return make_trace.write(tmp_path / "made", {"stream_0": list(packets)}, METADATA)


def test_losses(kymo, tmp_path):
    """A loss ends what threads were in; returns of earlier calls count for themselves."""
    before, after = Packet(100), Packet(2000, seq=1, discarded=7)
    before.enter(110, 0xA)
    before.enter(120, 0xB)
    before.leave(150, 0xB)
    before.enter(160, 0xB)
    before.enter(170, 0xC, tid=2)
    after.leave(2010, 0xB)
    after.leave(2020, 0xA)
    after.enter(2030, 0xD)
    after.enter(2040, 0xE)
    after.leave(2050, 0xE)
    trace = made(tmp_path, before, after)
    found, notes = tables(kymo, trace, "-t", "log", "-t", "tree", "-t", "functions")
    log = [(row["begin"] % 10**9, row["duration"], row["self"], row["process"]["tid"], row["depth"], row["cut"])
           for row in found["log"]]
    assert log == [(110, 50, 20, 1, 0, 1), (120, 30, 30, 1, 1, None), (160, 0, 0, 1, 1, 1), (170, 0, 0, 2, 0, 1),
                   (2030, 20, 10, 1, 0, 1), (2040, 10, 10, 1, 1, None)]
    assert any("3 calls were cut where events were lost" in note for note in notes), notes
    assert any("1 calls had not returned at the end" in note for note in notes)
    assert any("2 returns are of calls that the trace does not have" in note for note in notes)
    assert any("7 events" in note for note in notes)
    # Nothing tells the names, or which process it is.
    assert {row["function"] for row in found["functions"]} == {"[unknown]"}


def test_hostile(kymo, tmp_path):
    """Very deep recursion, and as many returns of nothing, take no more than their events."""
    packets, time = [], 100
    for i in range(80):
        packet = Packet(time, seq=i)
        for _ in range(1000):
            time += 1
            packet.enter(time, 0xA)
        for _ in range(100):
            time += 1
            packet.leave(time, 0xB)
        packets.append(packet)
    trace = made(tmp_path, *packets)
    found, notes = tables(kymo, trace, "-t", "functions", "-t", "tree")
    row, = found["functions"]
    assert row["calls"] == 65536 and any(f"{80000 - 65536} calls are deeper" in note for note in notes)
    assert max(row["depth"] for row in found["tree"]) <= 1024
    text = kymo("report", "calls", "--limit", "0", "-t", "tree", "-t", "log", trace).out
    assert len(text) < 20 << 20


def test_without_the_events(kymo, tmp_path):
    done = kymo("report", "calls", make_trace.sample(tmp_path / "sample"), code=1)
    assert "function calls" in done.err and "kymo record" in done.err
