# SPDX-License-Identifier: MIT
"""kymo convert --to formats of other viewers, of traces whose names, numbers and times are at the edges of what a trace may have."""

import json
import os
import re
import struct

import pytest

from hostile_names import uint

SECOND = 10**9
TEXTS = [b"plain", b"\"quo\\te\"", b"a,b;c\td", b"line\nfeed\r\n", b"\x01\x1b[31m\x7f", b"\xff\xfe\xc3\x28", "\u65e5\u2028\U0001f600".encode(), b"x" * 10240]
NUMBERS = [(2**64 - 1, -2**63, float("nan")), (2**53 + 1, -2**53 - 1, float("inf")), (0, 0, float("-inf")), (1, -1, 5e-324)]
TEXT = {"type": "null-terminated-string"}
SINT = {"type": "fixed-length-signed-integer", "length": 64, "byte-order": "little-endian"}
FLOAT = {"type": "fixed-length-floating-point-number", "length": 64, "byte-order": "little-endian"}


def structure(*members):
    return {"type": "structure", "member-classes": [{"name": name, "field-class": cls} for name, cls in members]}


def make(path, domain, classes, events, origin=1_795_000_000, cpu=0):
    """@classes: (name, field class); @events: (number of the class, payload). They are a microsecond apart."""
    head = structure(("id", uint(32, roles=["event-record-class-id"])), ("time", uint(64, roles=["default-clock-timestamp"])))
    fragments = [
        {"type": "preamble", "version": 2},
        {"type": "trace-class", "environment": {"hostname": "h", "domain": domain, "tracer_name": "lttng-modules" if domain == "kernel" else "lttng-ust"}},
        {"type": "clock-class", "id": "c", "name": "c", "frequency": SECOND, "origin": "unix-epoch", "offset-from-origin": {"seconds": origin}},
        {"type": "data-stream-class", "id": 0, "default-clock-class-id": "c", "event-record-header-field-class": head,
         "packet-context-field-class": structure(("cpu_id", uint(32))),
         "event-record-common-context-field-class": structure(("vpid", uint(32)), ("vtid", uint(32)))},
    ]
    fragments += [{"type": "event-record-class", "id": i, "name": name, "payload-field-class": cls} for i, (name, cls) in enumerate(classes)]
    os.makedirs(path)
    (path / "metadata").write_text("".join("\x1e" + json.dumps(fragment) + "\n" for fragment in fragments), encoding="utf-8")
    data = [struct.pack("<IQII", number, i * 1000, 10, 11) + payload for i, (number, payload) in enumerate(events)]
    (path / "data").write_bytes(struct.pack("<I", cpu) + b"".join(data))
    return path


@pytest.fixture
def edges(tmp_path):
    classes = [("my:text", structure(("s", TEXT))), ("my:numbers", structure(("u", uint(64)), ("s", SINT), ("f", FLOAT))),
               ("we\"ird\n;na\\me, <b>", structure(("k\"e\\y\n", uint()))), ("n" * 10240, structure(("f" * 10240, uint()))),
               ("deep_begin", structure()), ("lone_end", structure()), ("deep_end", structure())]
    events = [(5, b"")] + [(0, text + b"\0") for text in TEXTS] + [(1, struct.pack("<Qqd", *numbers)) for numbers in NUMBERS]
    events += [(2, b"\1"), (3, b"\1")] + [(4, b"")] * 300
    return make(tmp_path / "edges", "ust", classes, events), len(events)


def strict(text):
    """NaN and Infinity are no JSON."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def test_json_of_edges(kymo, edges):
    trace, n = edges
    found = [strict(line)["fields"] for line in kymo("convert", "--to", "json", trace).out.splitlines()]
    assert len(found) == n
    assert [(fields["u"], fields["s"], fields["f"]) for fields in found if "u" in fields] == [
        (2**64 - 1, -2**63, "NaN"), (2**53 + 1, -2**53 - 1, "Infinity"), (0, 0, "-Infinity"), (1, -1, 5e-324)]
    texts = [fields["s"] for fields in found if list(fields) == ["s"]]
    assert texts == [text.decode("utf-8", "replace") for text in TEXTS]


def test_viewers_json_of_edges(kymo, edges):
    trace, n = edges
    items = strict(kymo("convert", "--to", "chrome-json", trace).out)["traceEvents"]
    assert sum(item["ph"] != "M" for item in items) == n
    # Numbers that a float cannot hold are texts.
    found = [(args["u"], args["s"], args["f"]) for args in (item.get("args", {}) for item in items) if "u" in args]
    assert found == [(str(2**64 - 1), str(-2**63), "NaN"), (str(2**53 + 1), str(-2**53 - 1), "Infinity"), (0, 0, "-Infinity"), (1, -1, 5e-324)]
    threads = strict(kymo("convert", "--to", "firefox", trace).out)["threads"]
    assert sum(thread["markers"]["length"] for thread in threads) == n
    lines = [strict(line) for line in kymo("convert", "--to", "otlp", trace).out.splitlines()]
    assert sum(len(line["resourceSpans"][0]["scopeSpans"][0]["spans"]) for line in lines) == 256  # so many within each other


def test_addresses_in_chromes_json(kymo, query, tmp_path):
    """As people write addresses, also in arrays; Perfetto's trace_processor makes no negative numbers of them."""
    address = uint(64, **{"preferred-display-base": 16})
    array = {"type": "static-length-array", "length": 2, "element-field-class": address}
    trace = make(tmp_path / "addresses", "ust", [("my:event", structure(("at", address), ("all", array)))],
                 [(0, struct.pack("<QQQ", 0xffffffff81000000, 0xffff888100000000, 5))])
    kymo("convert", "--to", "chrome-json", "-o", tmp_path / "t.json", trace)
    (rows,) = query(tmp_path / "t.json", "select key, display_value as value from args where key like 'args.a%' order by key")
    assert {row["key"]: row["value"] for row in rows} == {
        "args.at": "0xffffffff81000000", "args.all[0]": "0xffff888100000000", "args.all[1]": "5"}


def test_perf_script_of_edges(kymo, edges):
    """Each event is one line, whatever the names of events and fields are: a program chooses them."""
    trace, n = edges
    lines = kymo("convert", "--to", "perf-script", trace).out.split("\n")[:-1]
    assert len(lines) == n and all(re.match(r"^\s*\S+\s+11 \[000\] \d+\.\d{9}: ", line) for line in lines)
    assert sum("we\"ird?;na\\me, <b>: k\"e\\y?=1" in line for line in lines) == 1


def test_perf_script_of_many_cpus(kymo, tmp_path):
    trace = make(tmp_path / "cpus", "kernel", [("a_b", structure(("x", uint())))], [(0, b"\1")], cpu=1234)
    assert " [1234] " in kymo("convert", "--to", "perf-script", trace).out


def test_trace_dat_of_many_fields(kymo, peer, tmp_path):
    """Events of graphics drivers have more than 60 fields."""
    members = [(f"m{i}", uint() if i % 3 else TEXT) for i in range(150)]
    payload = b"".join(b"\7" if i % 3 else b"text\0" for i in range(150))
    trace = make(tmp_path / "fields", "kernel", [("amdgpu_x", structure(*members))], [(0, payload)])
    out = tmp_path / "trace.dat"
    kymo("convert", "--to", "trace.dat", "-o", out, trace)
    (line,) = [line for line in peer("trace-cmd", "report", out).out.splitlines() if "amdgpu_x" in line]
    assert line.split("amdgpu_x:")[1].split() == [f"m{i}=7" if i % 3 else f"m{i}=text" for i in range(150)]


def test_times_before_1970(kymo, peer, tmp_path):
    """Where a format has no such times, the first event is at 0, and the others are as far from it as they were."""
    trace = make(tmp_path / "early", "kernel", [("a_b", structure(("x", uint())))], [(0, b"\1")] * 3, origin=-5)
    text = kymo("convert", "--to", "perf-script", trace).out
    assert re.findall(r" (\d+\.\d+): ", text) == ["0.000000000", "0.000001000", "0.000002000"]
    kymo("convert", "--to", "trace.dat", "-o", tmp_path / "trace.dat", trace)
    assert re.findall(r" (\d+\.\d+): a_b", peer("trace-cmd", "report", "-t", tmp_path / "trace.dat").out) == [
        "0.000000000", "0.000001000", "0.000002000"]
    program = make(tmp_path / "program", "ust", [("a_begin", structure()), ("a_end", structure())], [(0, b""), (1, b"")], origin=-5)
    assert "no times before 1970" in kymo("convert", "--to", "otlp", program, code=1).err


def test_events_without_a_cpu_in_trace_dat(kymo, tmp_path):
    """trace.dat is of CPUs: an empty file would be a silent loss."""
    path = tmp_path / "s.txt"
    path.write_text('12 1796000000.000001 read(3, "", 1) = 0 <0.000010>\n')
    done = kymo("convert", "--to", "trace.dat", "-o", tmp_path / "out.dat", path, code=1)
    assert "no event of the trace tells its CPU" in done.err
    done = kymo("report", "syscalls", path)
    assert f"kymo report syscalls -t threads {path} " in done.out
    done = kymo("report", "--all", "--archive", tmp_path / "x.tar.zst", path, code=1)
    assert "this is not the directory of a trace" in done.err
