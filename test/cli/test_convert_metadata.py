# SPDX-License-Identifier: MIT
"""What metadata says beside the fields: kept, or told to be left out."""

import json
import os

import pytest

UID = "01234567-89ab-cdef-0123-456789abcdef"

FRAGMENTS = [
    {"type": "preamble", "version": 2, "attributes": {"me": {"real": 0.1, "text": "\u00e9\u0007"}}},
    {"type": "trace-class", "namespace": "n.s", "name": "a trace", "uid": "u-1",
     "environment": {"hostname": "h", "attributes": "none"},
     "attributes": {"me": [1, -2, True, None, {}]}},
    {"type": "clock-class", "id": "c", "namespace": "n.s", "name": "c", "uid": UID,
     "frequency": 1000, "origin": {"namespace": "o", "name": "boot", "uid": "77"},
     "offset-from-origin": {"seconds": -3, "cycles": 7}, "precision": 4, "accuracy": 0,
     "description": "a \"clock\"", "attributes": {"me": {"x": 18446744073709551615}}},
    {"type": "data-stream-class", "id": 4, "name": "a stream", "default-clock-class-id": "c",
     "packet-context-field-class": {"type": "structure", "member-classes": [
         {"name": "begin", "attributes": {"me": 1}, "field-class": {
             "type": "fixed-length-unsigned-integer", "length": 32, "byte-order": "big-endian",
             "roles": ["default-clock-timestamp"]}}]}},
    {"type": "event-record-class", "id": 0, "data-stream-class-id": 4, "name": "e",
     "uid": "e-1", "attributes": {"lttng.org,2009": {"log-level": 3}},
     "payload-field-class": {"type": "structure", "member-classes": [
         {"name": "b", "field-class": {"type": "static-length-blob", "length": 2,
                                       "media-type": "image/png"}},
         {"name": "m", "field-class": {
             "type": "fixed-length-bit-map", "length": 8, "byte-order": "little-endian",
             "flags": {"low": [[0, 3]]}}}]}},
]


def write(path, fragments, streams=(("s", b"\0\0\0\5\xab\xcd\6"),)):
    path.mkdir()
    (path / "metadata").write_text("".join("\x1e" + json.dumps(f) for f in fragments))
    for name, data in streams:
        (path / name).write_bytes(data)
    return path


@pytest.fixture
def trace(tmp_path):
    fragments = json.loads(json.dumps(FRAGMENTS))
    # One packet, one class of streams: no header is needed to tell them apart.
    fragments[3]["id"] = fragments[4]["data-stream-class-id"] = 0
    return write(tmp_path / "t", fragments)


def fragments_of(path):
    return [json.loads(text) for text in (path / "metadata").read_text().split("\x1e")[1:]]


def test_only_the_offset_of_a_shifted_clock_changes(kymo, trace, tmp_path):
    kymo("convert", "--to", "ctf2", "--clock-offset", "1s", "-o", tmp_path / "out", trace)
    want = fragments_of(trace)
    want[2]["offset-from-origin"] = {"seconds": -2, "cycles": 7}
    assert fragments_of(tmp_path / "out") == want
    assert "-1" in kymo("print", "--clock-seconds", tmp_path / "out").out


def test_what_ctf_1_8_has_no_place_for_is_told(kymo, trace, tmp_path):
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert ("CTF 1.8 has no place for these, left out: attributes (4), namespaces (2), UIDs (2), "
            "names of traces, streams and clocks (2), clock accuracy (1), clock origins (1), "
            "media types (1), flags of bit maps (1)\n") in result.err
    assert result.err.count("warning") == 1
    clock, = json.loads(kymo("info", "--json", tmp_path / "out").out)["traces"][0]["clocks"]
    assert clock["uuid"] == UID and clock["description"] == 'a "clock"'
    assert clock["precision_cycles"] == 4
    event, = kymo("convert", "--to", "json", tmp_path / "out").out.splitlines()
    assert json.loads(event)["fields"] == {"b": [0xab, 0xcd], "m": 6}
    assert json.loads(event)["loglevel"] == 3


def test_nothing_left_out_is_not_told(kymo, tmp_path):
    fragments = json.loads(json.dumps(FRAGMENTS[:1] + FRAGMENTS[3:]))
    del fragments[0]["attributes"], fragments[1]["name"], fragments[1]["default-clock-class-id"]
    del fragments[1]["packet-context-field-class"], fragments[2]["uid"]
    fragments[1]["id"] = fragments[2]["data-stream-class-id"] = 0
    fragments[2]["payload-field-class"]["member-classes"].clear()
    trace = write(tmp_path / "t", fragments, ())
    assert not kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace).err


NAMES = ["a-b", "a b", "a_b", "", "42", "caf\u00e9", "struct", "_x", "stream.event"]


def test_names_become_identifiers(kymo, peer, tmp_path):
    fragments = json.loads(json.dumps(FRAGMENTS[:1] + FRAGMENTS[3:]))
    del fragments[1]["default-clock-class-id"], fragments[1]["packet-context-field-class"]
    fragments[1]["id"] = fragments[2]["data-stream-class-id"] = 0
    byte = {"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"}
    fragments[2]["payload-field-class"]["member-classes"] = [
        {"name": name, "field-class": byte} for name in NAMES]
    trace = write(tmp_path / "t", fragments, [("s", bytes(range(len(NAMES))))])
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert "CTF 1.8 allows identifiers only: 'event.fields.a-b' is called 'a_b_'" in result.err
    event, = kymo("convert", "--to", "json", tmp_path / "out").out.splitlines()
    fields = json.loads(event)["fields"]
    assert list(fields.values()) == list(range(len(NAMES)))
    assert list(fields) == ["a_b_", "a_b__", "a_b", "", "42", "caf__", "struct", "_x",
                            "stream_event"]


def test_drafts_become_ctf_2(kymo, root_dir, tmp_path):
    """Readers of CTF 2.0 do not know the words of the drafts."""
    trace = os.path.join(root_dir, "test", "data", "ok", "rules", "ctf2-draft")
    kymo("convert", "--to", "ctf2", "-o", tmp_path / "out", trace)
    text = (tmp_path / "out" / "metadata").read_text()
    assert '"id"' in text and "default-clock-class-id" in text and '"origin"' in text
    assert "enumeration" not in text and "default-clock-class-name" not in text
    assert kymo("print", tmp_path / "out").raw == kymo("print", trace).raw
