# SPDX-License-Identifier: MIT
"""Chrome's JSON trace format, as programs write it that are not Chrome."""

import collections
import json

from test_import import events_of


def chrome(kymo, path, events):
    path.write_text(events if isinstance(events, str) else json.dumps(events), encoding="utf-8")
    return events_of(kymo, path)


def brief(event):
    return event["event"], event["timestamp_ns"], event["context"]["tid"], event["fields"]


def test_ends_without_names(kymo, tmp_path):
    """The format asks for no name at the end of a duration: it ends the innermost one of its thread."""
    events = [("B", 1, 7, "outer"), ("B", 2, 7, "inner"), ("B", 3, 8, "other"), ("E", 4, 7, None), ("E", 5, 8, None), ("E", 6, 7, None), ("E", 7, 7, None)]
    found = chrome(kymo, tmp_path / "a.json", [{"ph": ph, "ts": ts, "pid": 1, "tid": tid, **({"name": name} if name else {})} for ph, ts, tid, name in events])
    assert [(event["event"], event["context"]["tid"]) for event in found] == [
        ("outer_begin", 7), ("inner_begin", 7), ("other_begin", 8), ("inner_end", 7), ("other_end", 8), ("outer_end", 7), ("_end", 7)]


def test_deep_and_unordered_durations(kymo, tmp_path):
    """Five hundred durations within each other, and those of a thousand threads in any order, have their own times."""
    expected = collections.Counter()
    events = [{"name": f"f{i}", "ph": "X", "ts": i, "dur": 2000 - 2 * i, "pid": 1, "tid": 1} for i in range(500)]
    events += [{"name": "g", "ph": "X", "ts": i * 7919 % 10007, "dur": i * 31 % 1009 + .5, "pid": 1, "tid": 2 + i % 1000} for i in range(10000)]
    for event in events:
        begin = event["ts"] * 1000
        expected[event["name"] + "_begin", begin, event["tid"]] += 1
        expected[event["name"] + "_end", begin + int(event["dur"] * 1000), event["tid"]] += 1
    found = chrome(kymo, tmp_path / "a.json", events)
    assert collections.Counter(brief(event)[:3] for event in found) == expected
    assert [event["timestamp_ns"] for event in found] == sorted(event["timestamp_ns"] for event in found)


def test_ids_and_numbers(kymo, tmp_path):
    """Events of one name have their ids; a number of 64 bits in one place changes no other number; threads may have texts for numbers."""
    base = {"pid": 5, "tid": 6.0, "name": "n"}
    found = chrome(kymo, tmp_path / "a.json", [
        {**base, "ph": "b", "ts": 1, "id": "0x1"}, {**base, "ph": "e", "ts": 2, "id2": {"local": "0x2"}}, {**base, "ph": "s", "ts": 3, "id": 7},
        {**base, "ph": "i", "ts": 4, "args": {"address": 2**64 - 1, "n": 3}}, {**base, "ph": "C", "ts": 5, "args": [1]}, {**base, "ts": "6.5"},
        {**base, "ph": "i", "ts": 7, "tid": "Main", "args": {"x": "a\0b"}}])
    assert [brief(event) for event in found[:6]] == [
        ("n_begin", 1000, 6, {"id": "0x1"}), ("n_end", 2000, 6, {"id": "0x2"}), ("n", 3000, 6, {"id": 7, "ph": "s"}),
        ("n", 4000, 6, {"address": 2**64 - 1, "n": 3}), ("n", 5000, 6, {"args": "[1]"}), ("n", 6500, 6, {})]
    assert found[6]["context"]["comm"] == "Main" and found[6]["fields"] == {"x": "a\\0b"} and found[3]["context"]["pid"] == 5


def test_events_that_are_no_json(kymo, tmp_path):
    """Text that is nearly JSON is read; an event that is not is left out, and told with its place; those behind it are there."""
    event = b'{"ph":"i","ts":%d,"pid":1,"tid":1,"name":"%s"}'
    path = tmp_path / "a.json"
    path.write_bytes(b"[" + b",".join([event % (1, b"a\xff\tb"), event % (2, b'b","args":{"x":NaN,"y":1e999},"z":"')]) + b"]")
    first, second = events_of(kymo, path)
    assert first["event"] == "a\ufffd\tb" and second["fields"] == {"x": "NaN", "y": "1e999"}
    path.write_bytes(b"[" + b",".join([event % (1, b"a"), b'{"ph":"i",bad}', event % (3, b"c")]) + b"]")
    done = kymo("convert", "--to", "json", path, code=1)
    assert [json.loads(line)["event"] for line in done.out.splitlines()] == ["a", "c"]
    assert f"an event is no JSON (at byte {len(event % (1, b'a')) + 2})" in done.err


def test_an_event_that_is_too_long(kymo, tmp_path):
    """It is left out, and told; those behind it are there. Without its end, it is the file's end."""
    event = '{"ph":"i","ts":%d,"pid":1,"tid":1,"name":"%s","args":{"x":"%s"}}'
    text = "[" + ",".join([event % (1, "a", "]}"), event % (2, "b", '\\\\\\"]}' * 900000), event % (3, "c", "")]) + "]"
    (tmp_path / "a.json").write_text(text, encoding="ascii")
    done = kymo("convert", "--to", "json", tmp_path / "a.json", code=1)
    assert [json.loads(line)["event"] for line in done.out.splitlines()] == ["a", "c"] and "an event is longer than 1 MiB" in done.err
    (tmp_path / "a.json").write_text(text[:3000000], encoding="ascii")
    done = kymo("convert", "--to", "json", tmp_path / "a.json", code=1)
    assert [json.loads(line)["event"] for line in done.out.splitlines()] == ["a"] and "an event is cut" in done.err


def test_times_below_zero(kymo, tmp_path):
    """A trace has none: the events are at 0, and a warning counts them."""
    (tmp_path / "a.json").write_text('[{"ph":"i","ts":-5,"pid":1,"tid":1,"name":"a"},{"ph":"i","ts":1,"pid":1,"tid":1,"name":"b"}]', encoding="ascii")
    done = kymo("print", tmp_path / "a.json")
    assert len(done.out.splitlines()) == 2 and "1 events have a time below 0" in done.err
