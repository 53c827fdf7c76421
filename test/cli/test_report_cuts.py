# SPDX-License-Identifier: MIT
"""Parts of a trace against the whole of it, in all reports: each figure of a part agrees with the whole,
or a note says that the figure is unknown."""

import glob
import json
import os
import re
import shutil

import pytest

PERIOD = ("--period", "call : $event =~ 'syscall_entry_*' : $event =~ 'syscall_exit_*' : by $ctx.tid")
# What tells one row of a log from another; who it was may be known better in the whole.
SAME = {"sched": ("begin", "end", "kind", "cpu"), "syscalls": ("begin", "end", "syscall", "ret"),
        "io-log": ("begin", "end", "syscall", "bytes"), "irq": ("begin", "end", "cpu", "irq"),
        "softirq": ("raise", "begin", "end", "cpu", "irq"), "block": ("end", "sector", "op", "duration"),
        "locks": ("begin", "end", "address"), "periods": ("begin", "end", "period", "cpu")}


@pytest.fixture(scope="module")
def logs(kymo):
    """logs(trace, *options) -> {report: its rows, as texts}, {report: notes}."""
    def call(trace, *options, code=0):
        found = json.loads(kymo("report", "all", "--json", "-t", "log", *PERIOD, *options, trace, code=code).out)
        rows = {}
        for report in found["reports"]:
            for table in report["tables"]:
                if table["name"] == "log" and report["name"] in SAME:
                    rows[report["name"]] = [
                        json.dumps([row[column] for column in SAME[report["name"]]] +
                                   [row["process"] and row["process"]["tid"]
                                    if report["name"] in ("sched", "syscalls", "io-log", "locks", "periods") else 0])
                        for row in table["rows"]]
        return rows, {report["name"]: report["notes"] for report in found["reports"]}

    return call


@pytest.fixture(scope="module")
def whole(logs, reference):
    rows, _ = logs(reference)
    assert set(rows) == set(SAME) and all(rows.values())
    return {name: set(found) for name, found in rows.items()}


def wrong(rows, whole):
    return {name: len([row for row in found if row not in whole[name]]) for name, found in rows.items()}


@pytest.mark.parametrize("part", (("--begin", "0.5%"), ("--end", "3%"), ("--begin", "1%", "--end", "2%"),
                                  ("--filter", "!($event =~ 'lttng_statedump*')")))
def test_part_of_the_time_and_no_state_dump(kymo, reference, logs, whole, tmp_path, part):
    kymo("convert", "--to", "ctf1.8", *part, "-o", tmp_path / "part", reference)
    rows, notes = logs(tmp_path / "part")
    bad = wrong(rows, whole)
    # Of who was just being woken on another CPU, when the part begins, it tells the second event only.
    assert bad.pop("sched") <= (part[0] == "--begin") and not any(bad.values()), bad
    assert len(rows["syscalls"]) > 100 and len(rows["sched"]) > 10
    assert not any("record" in note and "CPU" in note for found in notes.values() for note in found)


@pytest.mark.parametrize("kept", (0, 1))
def test_one_cpu_of_two(reference, logs, whole, tmp_path, kept):
    """Its own interrupts and requests are all right. Of calls and waits a few that the other CPU had a part in
    can not be known to be wrong: the notes say that."""
    trace = tmp_path / "one"
    shutil.copytree(reference, trace, copy_function=shutil.copyfile)
    for directory in (trace, trace / "index"):
        os.chmod(directory, 0o700)
    for file in glob.glob(f"{trace}/c_{1 - kept}") + glob.glob(f"{trace}/index/c_{1 - kept}.idx"):
        os.unlink(file)
    rows, notes = logs(trace)
    bad = wrong(rows, whole)
    assert (bad["irq"], bad["softirq"], bad["block"], bad["locks"]) == (0, 0, 0, 0)
    assert bad["syscalls"] <= 1 and bad["io-log"] <= 1 and bad["sched"] <= 1 and bad["periods"] <= 5, bad
    assert len(rows["sched"]) > 250 and len(rows["syscalls"]) > 1800
    for name, found in notes.items():
        assert any(note.startswith(f"events name CPUs without a data stream in the trace ({1 - kept}): ")
                   for note in found), name


def test_file_of_one_cpu_is_cut(reference, logs, whole, tmp_path):
    trace = tmp_path / "cut"
    shutil.copytree(reference, trace, copy_function=shutil.copyfile)
    os.chmod(trace, 0o700)
    shutil.rmtree(trace / "index")
    os.truncate(trace / "c_1", os.path.getsize(trace / "c_1") // 2)
    rows, notes = logs(trace, code=1)
    bad = wrong(rows, whole)
    assert not any(count for name, count in bad.items() if name not in ("sched", "periods")), bad
    assert bad["sched"] <= 8 and bad["periods"] <= 2 and len(rows["sched"]) > 1000
    for name, found in notes.items():
        assert any(note.startswith("damage ends the record of CPU 1 at 05:30:39.205769860: ")
                   for note in found), name


@pytest.mark.parametrize("jobs", ("1", "2"))
def test_damage_before_the_end_of_the_range(kymo, reference, tmp_path, jobs):
    """A note says so, though the reader stops at the end of the range; two files may be cut, at different places."""
    trace = tmp_path / "cut"
    shutil.copytree(reference, trace, copy_function=shutil.copyfile)
    os.chmod(trace, 0o700)
    shutil.rmtree(trace / "index")
    sizes = [os.path.getsize(trace / f"c_{cpu}") for cpu in (0, 1)]

    def cpus(*options, code):
        result = kymo("report", "cpu", "--json", "--jobs", jobs, *options, trace, code=code)
        assert bool(result.err) == bool(code)
        report, = json.loads(result.out)["reports"]
        return ([row["unknown"] for table in report["tables"] if table["name"] == "cpus" for row in table["rows"]],
                [note for note in report["notes"] if note.startswith("damage ends the record of CPU ")])

    os.truncate(trace / "c_1", sizes[1] // 2)
    assert cpus("--end", "2%", code=0) == ([0, 0], [])
    for end in ("30%", "90%", "100%"):
        (first, second), notes = cpus("--end", end, code=1)
        assert first == 0 and second > 500_000_000 and len(notes) == 1 and "CPU 1 at 05:30:39.20" in notes[0]
    os.truncate(trace / "c_0", sizes[0] // 2)
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "more", reference)
    found = kymo("report", "cpu", "--json", "--jobs", jobs, trace, tmp_path / "more", code=1)
    report, = json.loads(found.out)["reports"]
    notes = [note[:32] for note in report["notes"] if note.startswith("damage")]
    assert sorted(notes) == [f"damage ends the record of CPU {cpu} " for cpu in (0, 1)]
    rows = [t["rows"] for t in report["tables"] if t["name"] == "cpus"][0]
    assert sorted(row["unknown"] > 500_000_000 for row in rows) == [False, False, True, True]


def test_trace_that_does_not_name_its_cpus(kymo, reference, tmp_path):
    """What an event ran on is left out then, in every table of every report."""
    nameless = tmp_path / "nameless"
    nameless.mkdir()
    for path in os.listdir(reference):
        if os.path.isfile(os.path.join(reference, path)):
            with open(os.path.join(reference, path), "rb") as file:
                data = file.read()
            (nameless / path).write_bytes(data.replace(b"cpu_id", b"cpu_no") if path == "metadata" else data)
    found = json.loads(kymo("report", "all", "--json", *PERIOD, nameless).out)
    tables = {table["name"]: table["rows"] for report in found["reports"] if report["name"] == "syscalls"
              for table in report["tables"]}
    assert tables["top"] and not any(row.get("cpu") is not None for row in tables["top"])
    # An argument of a call may be this number.
    text = re.sub(r'"arguments": "[^"]*"', "", json.dumps(found))
    assert "4294967295" not in text
