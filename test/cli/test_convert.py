# SPDX-License-Identifier: MIT
"""kymo convert: formats, and output that appears whole or not at all."""

import json
import os

import make_trace
import pytest


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return make_trace.sample(tmp_path_factory.mktemp("convert") / "trace")


def damaged(path):
    """Two events, then one of an unknown class, and a good packet after it."""
    packets = [make_trace.Packet(100 * n, seq=n) for n in range(3)]
    for n, packet in enumerate(packets):
        packet.tick(100 * n + 10, n)
    packets[1].head(9, 120)
    return make_trace.write(path, {"s": packets})


def test_text(kymo, trace, tmp_path):
    out = tmp_path / "out.txt"
    for options in ([], ["--clock-seconds", "--filter", "number > 30"]):
        want = kymo("print", *options, trace).out
        assert kymo("convert", "--to", "text", *options, trace).out == want
        assert not kymo("convert", "--to", "text", *options, "-o", out, trace).out
        assert out.read_text() == want
        assert kymo("convert", "--to", "text", *options, "-o", "-", trace).out == want
    assert os.listdir(tmp_path) == ["out.txt"]


def test_json(kymo, trace):
    lines = kymo("convert", "--to", "json", trace).out.splitlines()
    events = [json.loads(line) for line in lines]
    assert len(events) == int(kymo("print", "--count", trace).out)
    data = next(e for e in events if e["event"] == "data")
    assert data["fields"]["point"] == {"x": 0xbeef, "y": 7}
    assert data["fields"]["which"] == {"value": 0, "labels": ["small"]}
    assert data["context"] == {"tid": 1000} and data["packet"] == {"cpu_id": 0}
    assert events[0]["timestamp_ns"] == make_trace.ORIGIN_S * 10**9 + 1000


def test_damage_keeps_what_was_good(kymo, tmp_path):
    path, out = damaged(tmp_path / "t"), tmp_path / "out"
    result = kymo("convert", "--to", "text", "-o", out, path, code=1)
    assert "no event class with id 9" in result.err and "holds what could be read" in result.err
    assert len(out.read_text().splitlines()) == 2


def test_nothing_is_left_of_a_failure(kymo, trace, tmp_path):
    out = tmp_path / "d" / "out"
    (tmp_path / "d").mkdir()
    kymo("convert", "--to", "json", "--filter", "nothing > 1", "-o", out, trace, code=2)
    kymo("convert", "--to", "json", "-o", tmp_path / "no" / "out", trace, code=1)
    kymo("convert", "--to", "json", "-o", tmp_path, trace, code=1)
    assert not os.listdir(tmp_path / "d")


def test_old_output_is_replaced_only_in_the_end(kymo, trace, tmp_path):
    out = tmp_path / "out"
    out.write_text("old")
    kymo("convert", "--to", "text", "--filter", "nothing > 1", "-o", out, trace, code=2)
    assert out.read_text() == "old"
    kymo("convert", "--to", "text", "--head", 1, "-o", out, trace)
    assert "tick" in out.read_text()


def test_usage(kymo, trace):
    assert "--to" in kymo("convert", trace, code=2).err
    assert "'xml'" in kymo("convert", "--to", "xml", trace, code=2).err


def test_full_disk(kymo, trace):
    result = kymo("convert", "--to", "text", "-o", "/dev/full", trace, code=1)
    assert "No space left" in result.err
