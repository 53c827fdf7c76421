# SPDX-License-Identifier: MIT
"""kymo info: what it counts, against kymo print and babeltrace2."""

import collections
import json
import os
import re
import subprocess

import make_trace
import pytest


@pytest.fixture(scope="module")
def ok(root_dir):
    return os.path.join(root_dir, "test", "data", "ok", "traces")


def test_losses(kymo, ok):
    info = json.loads(kymo("info", "--json", os.path.join(ok, "losses")).out)
    trace, = info["traces"]
    stream, = trace["streams"]
    assert info["events"] == stream["events"] == 5
    assert info["lost_events"] == stream["lost_events"] == 8
    assert info["lost_packets"] == stream["lost_packets"] == 2
    assert info["packets"] == stream["packets"] == 4
    assert info["begin_ns"] == 1600000000000001000
    assert info["end_ns"] == 1600000000000004000
    assert info["duration_ns"] == 3000
    assert trace["format"] == "CTF 1.8"
    assert trace["byte_order"] == "little-endian"
    assert trace["uuid"] == "10111213-1415-1617-1819-1a1b1c1d1e1f"
    assert trace["environment"] == {"hostname": "box"}
    assert trace["event_classes"] == 2
    assert trace["event_types"] == [{"name": "tick", "id": 0, "stream_class_id": 0, "count": 5}]
    clock, = trace["clocks"]
    assert clock["frequency_hz"] == 1000000000
    assert clock["unix_epoch"] is True
    assert clock["zero_ns"] == 1600000000 * 10**9
    text = kymo("info", os.path.join(ok, "losses")).out
    assert "8 events dropped by the tracer, 2 packets missing" in text
    assert "from 2020-09-13 12:26:40.000001000 to 2020-09-13 12:26:40.000004000: 3.000 us" in text
    assert "nothing lost" in kymo("info", os.path.join(ok, "index")).out


def test_streams_without_packets(kymo, ok):
    info = json.loads(kymo("info", "--json", os.path.join(ok, "empty-stream")).out)
    streams = info["traces"][0]["streams"]
    assert [s["file"] for s in streams] == ["c_0", "c_1"]
    assert streams[1] == {"file": "c_1", "files": ["c_1"], "class_id": None, "id": None, "cpu": None, "packets": 0,
                          "bytes": 0, "events": 0, "lost_events": 0, "lost_packets": 0,
                          "losses": [], "damages": [], "skipped_bytes": 0,
                          "begin_ns": None, "end_ns": None}


def test_all_files_of_a_stream_are_named(kymo, tmp_path):
    def packet(begin, seq):
        made = make_trace.Packet(begin, seq)
        made.tick(begin + 10, seq)
        return made

    trace = tmp_path / "trace"
    make_trace.write(trace / "1", {"c_0_0": [packet(1000, 0)], "c_0_1": [packet(2000, 1)]})
    make_trace.write(trace / "2", {"c_0_0": [packet(3000, 2), packet(4000, 3)]})
    found, = json.loads(kymo("info", "--json", trace).out)["traces"]
    stream, = found["streams"]
    assert stream["files"][:2] == ["c_0_0", "c_0_1"]
    assert stream["files"][2] == str(trace / "2" / "c_0_0")
    assert stream["bytes"] == sum(file.stat().st_size for file in trace.glob("*/c_0_*"))
    lines = kymo("info", trace).out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.endswith("  c_0_0"))
    column = lines[at].index("c_0_0")
    assert lines[at + 1].index("c_0_1") == lines[at + 2].index(str(trace)) == column


def test_all_traces_below(kymo, ok):
    info = json.loads(kymo("info", "--json", ok).out)
    assert len(info["traces"]) >= 15
    assert info["events"] == sum(s["events"] for t in info["traces"] for s in t["streams"])
    lines = kymo("print", "--clock-force-correlate", ok).out.count("\n")
    assert info["events"] == lines


def test_odd_text_is_still_json(kymo, ok, tmp_path):
    """Bytes that are no UTF-8, and control characters, in names and environment."""
    trace = tmp_path / "t"
    trace.mkdir()
    (trace / "metadata").write_bytes(
        b'/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; };\n'
        b'env { hostname = "h\xff\\x1b[31m"; \n };\n'
        b'event { name = "e\xc3\x28\\a"; fields := struct {\n'
        b' integer { size = 8; align = 8; } a; }; };\n')
    (trace / "s").write_bytes(b"\1")
    info = json.loads(kymo("info", "--json", trace).out)
    assert info["traces"][0]["environment"]["hostname"].startswith("h\ufffd")
    assert info["traces"][0]["event_types"][0]["name"].startswith("e\ufffd(")
    text = kymo("info", trace)
    assert b"\x1b" not in text.raw and b"\a" not in text.raw


@pytest.mark.parametrize("name", ("lttng-kernel", "lttng-ust"))
def test_shared_traces(kymo, peer, shared, name):
    trace = os.path.join(shared, "traces", name)
    info = json.loads(kymo("info", "--json", trace).out)
    lines = kymo("print", trace).out.splitlines()
    names = collections.Counter(
        re.match(r"\[\S+\] \(\S+\) \S+ ([^ {]+): \{", line).group(1) for line in lines)
    types = {t["name"]: t["count"] for t in info["traces"][0]["event_types"]}
    assert types == names
    assert info["events"] == len(lines)
    theirs = peer("babeltrace2", "--clock-seconds", trace).out.splitlines()
    assert len(theirs) == info["events"]
    for key, line in (("begin_ns", theirs[0]), ("end_ns", theirs[-1])):
        seconds, nanos = re.match(r"\[(\d+)\.(\d+)\]", line).groups()
        assert info[key] == int(seconds) * 10**9 + int(nanos)


@pytest.fixture(scope="module")
def large(kymo_bin, tmp_path_factory):
    """More than what is counted unasked: 84 MB, 1 300 packets."""
    build = os.path.dirname(os.path.dirname(os.path.dirname(kymo_bin)))
    path = tmp_path_factory.mktemp("large") / "trace"
    subprocess.run([os.path.join(build, "bench", "make-trace"), "-n", "3000000", "-p", "65536",
                    path], check=True)
    return path


def test_large_traces_are_not_counted(kymo, large):
    """What the index tells is what counting tells."""
    info = json.loads(kymo("info", "--json", large).out)
    counted = json.loads(kymo("info", "--json", "--count", large).out)
    assert counted["events"] == 3000000
    assert info["events"] is None
    assert info["traces"][0]["event_types"] is None
    for one, other in zip(info["traces"][0]["streams"], counted["traces"][0]["streams"]):
        assert one.pop("events") is None
        assert other.pop("events") == 750000
        assert one == other
    for key in ("packets", "bytes", "lost_events", "begin_ns", "end_ns", "duration_ns"):
        assert info[key] == counted[key]
    text = kymo("info", large).out
    assert "15 event types; --count counts" in text
    assert " events, " not in text
    assert "3000000 events, " in kymo("info", "--count", large).out


def test_large_traces_are_not_read(kymo, large):
    """A packet that is not there any more is noticed by those who read it."""
    info = json.loads(kymo("info", "--json", large).out)
    stream = large / info["traces"][0]["streams"][0]["file"]
    content = stream.read_bytes()
    try:
        with open(stream, "r+b") as file:
            file.seek(103 * 65536)
            file.write(bytes(65536))
        assert json.loads(kymo("info", "--json", large).out) == info
        assert "packet" in kymo("info", "--count", large, code=1).err
    finally:
        stream.write_bytes(content)


def test_no_stream_class(kymo, tmp_path):
    """Of a trace of CTF 1.8 whose metadata describes no stream, nothing can be read: that is no empty trace."""
    (tmp_path / "metadata").write_text("/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n")
    assert kymo("info", tmp_path).err == ""
    (tmp_path / "stream").write_bytes(b"")
    assert "describes no data stream" in kymo("info", tmp_path).err
