# SPDX-License-Identifier: MIT
"""kymo lami: every object against the rules of LAMI 1.0, the figures against `kymo report --json`, and the
shape of tables and cells against what lttng-analyses wrote for the same trace."""

import json
import os
import re
import subprocess

import pytest

BAD_CLASS = "no such class"
NUMBERS = {"number", "ratio", "timestamp", "duration", "size", "bitrate"}
CLASSES = NUMBERS | {"unknown", "bool", "string", "time-range", "syscall", "process", "path", "fd", "irq",
                     "cpu", "disk", "part", "netif"}
REPORTS = ["summary", "cpu", "threads", "sched", "syscalls", "syscall-rates", "io", "io-latency", "io-log",
           "block", "net", "locks", "memory", "irq", "softirq"]


# ---- the rules --------------------------------------------------------------------------------------

def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_bound(value):
    return is_int(value) or isinstance(value, float) or value in ("-inf", "+inf")


def check_number(cell):
    assert "value" in cell or {"low", "high"} <= set(cell), cell
    assert all(is_bound(cell[key]) for key in ("value", "low", "high") if key in cell), cell
    assert "value" not in cell or not isinstance(cell["value"], str), cell


def check_cell(cell, column="mixed"):
    """One data object, or null; of the class that its column wants."""
    if cell is None:
        return
    cls = cell["class"]
    assert cls in CLASSES, BAD_CLASS
    if cls == "unknown":
        return
    assert column in ("mixed", cls), (cell, column)
    if cls in NUMBERS:
        check_number(cell)
    elif cls == "time-range":
        for key in ("begin", "end"):
            assert cell[key]["class"] == "timestamp"
            check_number(cell[key])
    elif cls == "process":
        assert {"name", "pid", "tid"} & set(cell), cell
        assert isinstance(cell.get("name", ""), str)
        assert is_int(cell.get("pid", 0)) and is_int(cell.get("tid", 0))
    elif cls == "irq":
        assert isinstance(cell.get("hard", True), bool) and is_int(cell["nr"])
        assert isinstance(cell.get("name", ""), str)
    else:
        key, kind = {"bool": ("value", bool), "string": ("value", str), "path": ("path", str),
                     "fd": ("fd", int), "cpu": ("id", int)}.get(cls, ("name", str))
        assert isinstance(cell[key], kind), cell


def check_version(version):
    assert all(is_int(version[key]) for key in ("major", "minor") if key in version)
    assert "patch" not in version or is_int(version["patch"])
    assert isinstance(version.get("extra", ""), str)


def check_class(cls, known=()):
    """A table class object."""
    assert "inherit" not in cls or cls["inherit"] in known, cls
    assert isinstance(cls.get("title", ""), str)
    for column in cls.get("column-descriptions", []):
        assert isinstance(column.get("title", ""), str)
        assert column.get("class", "mixed") in CLASSES - {"unknown"} | {"mixed"}, BAD_CLASS
        assert "unit" not in column or column["class"] == "number", column


def check_metadata(metadata):
    assert metadata["mi-version"] == {"major": 1, "minor": 0}
    check_version(metadata.get("version", {}))
    for key in ("title", "description", "url"):
        assert isinstance(metadata.get(key, ""), str)
    for key in ("authors", "tags"):
        assert all(isinstance(text, str) for text in metadata.get(key, []))
    assert metadata["table-classes"]
    for cls in metadata["table-classes"].values():
        check_class(cls, metadata["table-classes"])


def columns_of(cls, known):
    cls = known[cls] if isinstance(cls, str) else cls
    return cls.get("column-descriptions") or columns_of(cls["inherit"], known)


def check_results(results, metadata):
    known = metadata["table-classes"]
    for table in results["results"]:
        if not isinstance(table["class"], str):
            check_class(table["class"], known)
        check_cell(table["time-range"], "time-range")
        columns = columns_of(table["class"], known)
        for row in table["data"]:
            assert len(row) == len(columns)
            for cell, column in zip(row, columns):
                check_cell(cell, column.get("class", "mixed"))


def split(out):
    """(lines of progress, the object)."""
    *lines, last = out.splitlines()
    return lines, json.loads(last)


def check_progress(lines):
    """Numbers that do not go back, or stars throughout."""
    values = [line.split(" ", 1)[0] for line in lines]
    if "*" in values:
        assert set(values) == {"*"}
        return
    assert all(re.fullmatch(r"0|1|[01]?\.\d+", value) for value in values), lines
    numbers = [float(value) for value in values]
    assert numbers == sorted(numbers) and numbers[-1] <= 1


@pytest.mark.parametrize("cell", [
    {"class": "nonsense"}, {"class": "number"}, {"class": "duration", "value": "12"},
    {"class": "time-range", "begin": {"class": "timestamp", "value": 1}}, {"class": "cpu", "value": 1},
    {"class": "process"}, {"class": "irq", "name": "x"}, {"class": "path", "value": "/"}])
def test_the_rules_find_what_is_wrong(cell):
    with pytest.raises((AssertionError, KeyError)):
        check_cell(cell)


# ---- the samples --------------------------------------------------------------------------------------

def sample(reference, name):
    """(results, metadata) of lttng-analyses."""
    base = os.path.join(os.path.dirname(reference), "expected", f"lttng-{name}")
    with open(base + ".mi.json", encoding="utf-8") as results, \
            open(base + ".mi-metadata.json", encoding="utf-8") as metadata:
        return json.load(results), json.load(metadata)


@pytest.mark.parametrize("name", ["cputop", "irqstats", "irqlog", "irqfreq", "schedstats", "schedlog",
                                  "schedfreq", "syscallstats", "iolatencystats", "iousagetop", "memtop"])
def test_the_rules_hold_for_the_samples(reference, name):
    results, metadata = sample(reference, name)
    check_metadata(metadata)
    check_results(results, metadata)


def lami(kymo, *args, **kwargs):
    return split(kymo("lami", *args, **kwargs).out)[1]


def cells_by_class(results):
    """{class: the keys that its cells have}"""
    found = {}
    for table in results["results"]:
        for row in table["data"]:
            for cell in filter(None, row):
                found.setdefault(cell["class"], set()).update(cell)
    return found


@pytest.mark.parametrize("ours,theirs", [
    ("cpu", "cputop"), ("irq", "irqstats"), ("irq.log", "irqlog"), ("irq", "irqfreq"), ("sched", "schedstats"),
    ("sched.log", "schedlog"), ("syscalls", "syscallstats"), ("io-latency", "iolatencystats"),
    ("io-log", "iolog")])
def test_objects_have_the_keys_of_the_samples(kymo, reference, ours, theirs):
    """Objects, tables and metadata have the same keys; a class of cells has none that theirs lacks."""
    results, metadata = lami(kymo, ours, reference), lami(kymo, ours, "--metadata")
    their_results, their_metadata = sample(reference, theirs)
    assert set(metadata) == set(their_metadata)
    assert set(metadata["version"]) == set(their_metadata["version"])
    assert set(results) == set(their_results)
    assert {frozenset(table) for table in results["results"]} == {
        frozenset(table) for table in their_results["results"]}
    assert [table["time-range"] for table in results["results"]] == [
        their_results["results"][0]["time-range"]] * len(results["results"])
    found, wanted = cells_by_class(results), cells_by_class(their_results)
    for cls in set(found) & set(wanted) - {"process"}:
        assert found[cls] == wanted[cls], cls
    assert found.get("process", set()) <= {"class", "name", "pid", "tid"}


def test_interrupt_log_is_the_samples(kymo, reference):
    """Cell by cell: time range, CPU, interrupt."""
    table, = lami(kymo, "irq.log", reference)["results"]
    theirs, = sample(reference, "irqlog")[0]["results"]
    columns = [c["class"] for c in lami(kymo, "irq", "--metadata")["table-classes"]["log"]["column-descriptions"]]
    at = [columns.index(cls) for cls in ("time-range", "cpu", "irq")]
    hard = [[row[i] for i in at] for row in table["data"]
            if row[at[2]]["hard"] and row[at[2]]["nr"] >= 0]
    assert hard == [[row[0], row[2], row[3]] for row in theirs["data"]]


def test_distributions_are_one_table_for_each_thing(kymo, reference):
    tables = [t for t in lami(kymo, "irq.freq", reference)["results"]]
    theirs = sample(reference, "irqfreq")[0]["results"]
    assert {t["class"]["inherit"] for t in tables} == {"freq"}
    headings = {re.search(r"\[(.*)\]", t["class"]["title"]).group(1) for t in tables}
    assert {re.search(r"\[(.*)\]", t["class"]["title"]).group(1) for t in theirs} <= headings
    for table in tables + theirs:
        assert [cell["class"] for cell in table["data"][0]][:3] == ["duration", "duration", "number"]


# ---- the phases ------------------------------------------------------------------------------------------

def test_every_report_is_offered(kymo):
    listed = [line.split()[0] for line in kymo("report", "--list").out.splitlines() if line.startswith("  ")]
    assert set(REPORTS) <= set(listed)
    for name in listed:
        check_metadata(lami(kymo, name, "--metadata"))


def test_version(kymo):
    assert kymo("lami", "--mi-version").out == "1.0\n"
    assert kymo("lami", "cpu", "--mi-version").out == "1.0\n"


@pytest.mark.parametrize("name", REPORTS)
def test_results_keep_the_rules_and_hold_the_report(kymo, reference, name):
    metadata = lami(kymo, name, "--metadata")
    compatible = kymo("lami", name, "--test-compatibility", reference, code=None)
    if name == "memory":  # the trace has no events of it
        assert "kmem_mm_page" in json.loads(compatible.out)["error-message"] and compatible.code == 1
        assert json.loads(kymo("lami", name, reference, code=1).out) == json.loads(compatible.out)
        return
    assert (compatible.code, compatible.out) == (0, "")
    lines, results = split(kymo("lami", name, "--output-progress", reference).out)
    check_progress(lines)
    check_results(results, metadata)
    report, = json.loads(kymo("report", "--json", name, reference).out)["reports"]
    rows = {}
    for table in results["results"]:
        cls = table["class"] if isinstance(table["class"], str) else table["class"]["inherit"]
        rows.setdefault(cls, []).extend(table["data"])
    assert {t["name"]: len(t["rows"]) for t in report["tables"] if t["rows"]} == {
        cls: len(data) for cls, data in rows.items() if data}
    for table in report["tables"]:
        check_values(table, rows.get(table["name"], []), metadata["table-classes"][table["name"]])


def check_values(table, rows, cls):
    """Columns of numbers hold the report's figures."""
    titles = [column["title"] for column in cls["column-descriptions"]]
    for column in table["columns"]:
        if column["title"] not in titles or titles.count(column["title"]) > 1:
            continue
        at = titles.index(column["title"])
        for row, cells in zip(table["rows"], rows):
            if cells[at] and cells[at]["class"] in NUMBERS:
                assert cells[at]["value"] == row[column["name"]]


def test_range_and_limit(kymo, reference):
    whole = lami(kymo, "sched.log", reference)["results"][0]
    begin = whole["data"][10][0]["begin"]["value"]
    end = whole["data"][40][0]["end"]["value"]
    part = lami(kymo, "sched.log", "--begin", str(begin), f"--end={end}", reference)["results"][0]
    inside = [row for row in whole["data"] if begin <= row[0]["end"]["value"] <= end]
    assert part["data"] == inside
    assert begin <= part["time-range"]["begin"]["value"] <= part["time-range"]["end"]["value"] <= end
    assert lami(kymo, "sched.log", "--limit=5", reference)["results"][0]["data"] == whole["data"][:5]
    assert lami(kymo, "sched.log", "--limit", "unlimited", reference)["results"][0] == whole
    assert lami(kymo, "cpu", "--begin", "1", "--end", "2", reference) == {"results": []}


def test_periods_are_defined_by_an_option(kymo, reference):
    definition = 'sync : $event == "syscall_entry_fsync" : $event == "syscall_exit_fsync" : tid'
    assert kymo("lami", "periods", "--test-compatibility", reference).out == ""
    assert "--period" in kymo("lami", "periods", reference, code=2).err
    assert "--period" in kymo("lami", "cpu", "--period", definition, reference, code=2).err
    results = lami(kymo, "periods.log", "--period", definition, reference)
    check_results(results, lami(kymo, "periods", "--metadata"))
    report, = json.loads(kymo("report", "--json", "periods", "-t", "log", "--period", definition,
                              reference).out)["reports"]
    assert len(results["results"][0]["data"]) == len(report["tables"][0]["rows"]) > 0
    json.loads(kymo("lami", "periods", "--period", "nonsense", reference, code=2).out)


def test_other_options_choose(kymo, reference):
    table, = lami(kymo, "cpu.threads", "--comm", "lock*", "--group-by", "name", reference)["results"]
    report, = json.loads(kymo("report", "--json", "cpu", "-t", "threads", "--comm", "lock*", "-g", "name",
                              reference).out)["reports"]
    assert [row[0]["name"] for row in table["data"]] == [
        row["process"]["name"] for row in report["tables"][0]["rows"]]


def test_errors_are_objects(kymo, reference, tmp_path):
    for args in (["cpu", tmp_path], ["cpu", tmp_path / "none"], ["cpu", "--test-compatibility", tmp_path]):
        result = kymo("lami", *args, code=1)
        error = json.loads(result.out)
        assert set(error) == {"error-message", "error-code"} and is_int(error["error-code"])
        assert str(tmp_path) in error["error-message"]
        assert result.err == ""
    strange = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe")
    assert r"\xff\xfe" in json.loads(kymo("lami", "cpu", strange, code=1).out)["error-message"]
    kymo("lami", "cpu", "--limit", "few", reference, code=2)
    assert "no range" in kymo("lami", "cpu", "--begin", "5", "--end", "2", reference, code=2).err
    assert "did you mean 'cpu'" in kymo("lami", "cpuu", reference, code=2).err
    assert "no trace given" in kymo("lami", "cpu", code=2).err


def test_by_the_name_of_an_executable(kymo_bin, reference, tmp_path):
    for name, tables in (("kymo-cpu-mi", {"threads", "cpus"}), ("kymo-sched-log-mi", {"log"}),
                         ("kymo-io-latency-top-mi", {"top"})):
        path = tmp_path / name
        path.symlink_to(kymo_bin)
        version = subprocess.run([path, "--mi-version"], check=True, stdout=subprocess.PIPE).stdout
        assert version == b"1.0\n"
        out = subprocess.run([path, "--output-progress", reference], check=True, text=True,
                             stdout=subprocess.PIPE).stdout
        found = {t["class"] if isinstance(t["class"], str) else t["class"]["inherit"]
                 for t in split(out)[1]["results"]}
        assert tables <= found, found
    stranger = tmp_path / "kymo-nonsense-mi"
    stranger.symlink_to(kymo_bin)
    done = subprocess.run([stranger, "--metadata"], check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "is not a report" in done.stderr
