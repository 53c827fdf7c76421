# SPDX-License-Identifier: MIT
"""What traces, files and other programs say never reaches a terminal as what it would obey."""

import csv
import io
import json
import os
import re
import subprocess

import pytest

import kernel_trace
from test_report_made import switch

# A colour, a title, a line feed, C1's form of both, a direction, DEL; and what is no UTF-8.
EVIL = "e\x1b[31m\x1b]0;title\x07\n\u009b31m\u009dx\u202ey\u2066z\x7f!"
BYTES = b"b\xff\x9b31m\xc3(" + EVIL.encode()
SHOWN = r"e\x1b[31m\x1b]0;title\x07\x0a\u009b31m\u009dx\u202ey\u2066z\x7f!"
# A colour that Kymo writes itself.
OWN_COLOUR = re.compile("\x1b\\[[0-9;]*m")

U8 = {"type": "fixed-length-unsigned-integer", "length": 8, "alignment": 8, "byte-order": "little-endian"}


def is_clean(raw, colours=False):
    """Is it UTF-8 without what a terminal would obey, but line feeds (and colours)?"""
    text = raw.decode("utf-8")
    if colours:
        text = OWN_COLOUR.sub("", text)
    return not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]", text)


def packed(fields, *values):
    return b"".join(values), {"type": "structure", "member-classes": [
        {"name": name, "field-class": cls} for name, cls in fields]}


@pytest.fixture(scope="module")
def ctf2(tmp_path_factory):
    """Every name of a CTF 2 trace, and its values, are evil; also of the files."""
    string = {"type": "null-terminated-string"}
    data, payload = packed(
        [(EVIL, string), ("n", U8),
         ("sequence" + EVIL, {"type": "dynamic-length-array", "length-field-location": {"path": ["n"]},
                              "element-field-class": {"type": "structure", "member-classes": [
                                  {"name": "in" + EVIL, "field-class": string}]}}),
         ("label" + EVIL, U8 | {"mappings": {"L" + EVIL: [[1, 1]]}}),
         ("wide", string | {"encoding": "utf-16le"})],
        BYTES + b"\0", b"\1", BYTES + b"\0", b"\1", EVIL.encode("utf-16le") + b"\0\0")
    fragments = [
        {"type": "preamble", "version": 2, "attributes": {"a" + EVIL: EVIL}},
        {"type": "clock-class", "id": "c", "name": "clock" + EVIL, "description": EVIL, "frequency": 1000000000,
         "origin": "unix-epoch", "offset-from-origin": {"seconds": 0, "cycles": 0}},
        {"type": "trace-class", "name": "trace" + EVIL, "attributes": {EVIL: EVIL},
         "environment": {"hostname": EVIL, "procname": EVIL, "env" + EVIL: EVIL}},
        {"type": "data-stream-class", "id": 0, "default-clock-class-id": "c",
         "event-record-header-field-class": {"type": "structure", "member-classes": [
             {"name": "time", "field-class": U8 | {"roles": ["default-clock-timestamp"]}}]}},
        {"type": "event-record-class", "id": 0, "data-stream-class-id": 0, "name": "event" + EVIL,
         "attributes": {"lttng.org,2009": {"emf-uri": EVIL, "log-level": 3}}, "payload-field-class": payload}]
    trace = tmp_path_factory.mktemp("foreign") / ("trace" + EVIL)
    trace.mkdir()
    (trace / "metadata").write_text("".join("\x1e" + json.dumps(one) + "\n" for one in fragments))
    with open(os.path.join(os.fsencode(trace), b"s" + BYTES), "wb") as file:
        file.write(b"\5" + data)
    return trace


PEOPLE = (["print"], ["print", "--fields", "all", "--names", "all"], ["print", "--color", "always"],
          ["print", "--color", "always", "--fields", "all", "--names", "all"], ["info"],
          ["convert", "--to", "details"], ["convert", "--to", "text"])


@pytest.mark.parametrize("command", PEOPLE, ids=" ".join)
def test_traces_for_people(kymo, ctf2, command):
    done = kymo(*command, ctf2)
    assert is_clean(done.raw, "--color" in command), done
    assert is_clean(done.err.encode("utf-8", "surrogateescape"))
    assert f"event{SHOWN}" in done.out or command[-1] == "details"
    assert r"\u202ey" in done.out


def test_print_shows_all_of_it(kymo, ctf2):
    line = kymo("print", ctf2).out
    text = r"e\e[31m\e]0;title\a\n\u009b31m\u009dx\u202ey\u2066z\x7f!"
    assert f"] ({'+?.?????????'}) {SHOWN}:{SHOWN} event{SHOWN}: " in line
    assert f'{SHOWN} = "b\\xff\\x9b31m\\xc3({text}", n = 1, ' in line
    assert f'sequence{SHOWN} = [ [0] = {{ in{SHOWN} = "b\\xff\\x9b31m\\xc3({text}" }} ]' in line
    assert f'label{SHOWN} = ( "L{text}" : container = 1 ), wide = "{text}" }}\n' in line


def test_json_is_whole_and_harmless(kymo, ctf2):
    """What programs read says what the trace said, as far as JSON can; a terminal has nothing to obey in it."""
    done = kymo("convert", "--to", "json", ctf2)
    assert is_clean(done.raw)
    event = json.loads(done.out)
    assert event["event"] == "event" + EVIL
    assert event["fields"][EVIL] == BYTES.decode("utf-8", "replace")
    done = kymo("info", "--json", ctf2)
    assert is_clean(done.raw)
    found = json.loads(done.out)["traces"][0]
    assert found["environment"]["env" + EVIL] == EVIL
    assert found["event_types"][0]["name"] == "event" + EVIL
    assert found["streams"][0]["file"] == "s" + BYTES.decode("utf-8", "replace")


def test_errors(kymo, ctf2, tmp_path):
    """Paths, names of fields that are near, words of the command line."""
    for args in (["print", ctf2 / EVIL], ["print", "--filter", f'"{EVIL}', ctf2], ["print", "--event", EVIL, ctf2],
                 ["convert", "--to", "csv", "--fields", "n" + EVIL, ctf2], ["convert", "--to", EVIL, ctf2],
                 ["info", "--" + EVIL], [EVIL], ["--" + EVIL], ["report", EVIL, ctf2], ["help", EVIL],
                 ["list", "--sdt", tmp_path / EVIL], ["snapshot", EVIL], ["ctl", EVIL, "--stop"],
                 ["recover", "-o", tmp_path / "out", tmp_path / EVIL],
                 ["record", "-k", EVIL, "-o", tmp_path / "out2", "true"]):
        done = kymo(*args, code=None)
        assert is_clean(done.err.encode("utf-8", "surrogateescape")), args
        assert is_clean(done.raw), args


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """Threads have evil names, which the kernel's limit of 15 bytes cuts."""
    comms = {"t10": "k\x1b[31m\u009b\n\u202ex"}
    events = [switch(0, 0, 0, 10), switch(1000, 0, 10, 0, 1), switch(2000, 0, 0, 10), switch(5000, 0, 10, 0, 1)]
    for one in events:
        for name in ("prev_comm", "next_comm"):
            one.fields[name] = comms.get(one.fields[name], one.fields[name])
    trace = tmp_path_factory.mktemp("foreign-kernel") / "kernel"
    kernel_trace.write(trace, events)
    # Its own bytes, which are no UTF-8.
    path = trace / "stream_0"
    path.write_bytes(path.read_bytes().replace(b"k\x1b", b"\xff\x1b"))
    return trace


FORMULAS = ("=1+1", "+a", "-bash", "@x", "\tx", "-1.5", "plain", "-")
SAFE = ("'=1+1", "'+a", "'-bash", "'@x", "'\tx", "-1.5", "plain", "'-")


@pytest.fixture(scope="module")
def formulas(tmp_path_factory):
    """Threads with names that spreadsheets take for formulas."""
    events = [switch(0, 0, 0, 10)]
    for n in range(1, len(FORMULAS) + 1):
        events.append(switch(n * 1000, 0, 10 + n - 1, 10 + n))
    events.append(switch(90000, 0, 10 + len(FORMULAS), 0))
    comms = dict(zip((f"t{n}" for n in range(10, 20)), FORMULAS))
    for one in events:
        for name in ("prev_comm", "next_comm"):
            one.fields[name] = comms.get(one.fields[name], one.fields[name])
    trace = tmp_path_factory.mktemp("formulas") / "kernel"
    kernel_trace.write(trace, events)
    return trace


@pytest.mark.parametrize("raw", [False, True])
def test_spreadsheets_take_no_text_for_a_formula(kymo, formulas, tmp_path, raw):
    """In reports, files per event, and tables; numbers stay numbers."""
    option = "--csv-raw" if raw else "--csv"
    wanted = set(FORMULAS if raw else SAFE)
    rows = list(csv.reader(io.StringIO(kymo("report", "cpu", "-t", "threads", option, formulas).out)))
    at = rows[0].index("name")
    assert wanted <= {row[at] for row in rows if len(row) > at}
    options = ["--csv-raw"] if raw else []
    kymo("convert", "--to", "csv", *options, "-o", tmp_path / "all", formulas)
    with open(tmp_path / "all" / "sched_switch.csv", encoding="utf-8", newline="") as file:
        assert wanted <= {row["prev_comm"] for row in csv.DictReader(file)}
    table = kymo("convert", "--to", "csv", *options, "--fields", "$time,prev_comm", formulas).out
    assert wanted <= {row["prev_comm"] for row in csv.DictReader(io.StringIO(table))}
    rows = kymo("query", option, formulas, "SELECT prev_comm FROM sched_switch").out
    assert wanted <= {row["prev_comm"] for row in csv.DictReader(io.StringIO(rows))}
    kymo("convert", "--to", "json", "--csv-raw", formulas, code=2)


@pytest.mark.parametrize("form", ([], ["--csv"], ["--json"], ["--html"]), ids=str)
def test_reports(kymo, kernel, form):
    done = kymo("report", *form, "cpu,sched,summary,threads", kernel)
    if form == ["--csv"]:
        done.raw.decode("utf-8")
        return
    assert is_clean(done.raw)
    if form == ["--json"]:
        name = "\ufffd\x1b[31m\u009b\n\u202ex"
        names = [row["process"]["name"] for report in json.loads(done.out)["reports"][:1]
                 for table in report["tables"] if table["name"] == "threads" for row in table["rows"]]
        assert name in names
    else:
        assert r"\xff\x1b[31m\u009b\x0a\u202ex" in done.out


def test_lami(kymo, kernel):
    done = kymo("lami", "cpu", kernel)
    assert is_clean(done.raw)
    assert "\\u202e" in done.raw.decode()
    json.loads(done.out)


def test_lint_finds_what_goes_around(root_dir, tmp_path):
    """Of a copy of the sources with one line more, tools/check-foreign finds the line."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "src/cli").mkdir(parents=True)
    code = ('#include <stdio.h>\nstatic void show(const char *own, const struct event *event)\n{\n'
            '\tprintf("%s\\n", own);\n\tprintf("%d %s\\n", 1, EVENT);\n}\n'
            'void f(const struct event *event)\n{\n\tshow("a", event);\n}\n')
    for text, code_found in (('event->fd ? "a" : "b"', 0), ("event->name", 1), ("event->fd ? event->name : own", 1),
                             ("event->name /* lint: own text */", 0)):
        (tmp_path / "src/cli/x.c").write_text(code.replace("EVENT", text))
        (tmp_path / "tools").mkdir(exist_ok=True)
        done = subprocess.run([os.path.join(root_dir, "tools", "check-foreign")], cwd=tmp_path,
                              capture_output=True, text=True, check=False)
        assert done.returncode == code_found, (text, done)
        assert not code_found or "src/cli/x.c:5: printf() writes " in done.stdout
