# SPDX-License-Identifier: MIT
"""Clocks over several traces: correlating and shifting; odd times and gaps inside one trace."""

import json
import os
import re

import pytest

FORCE = "--clock-force-correlate"


def clock(name="monotonic", uuid=None, absolute=True, offset_s=1600000000, offset=0, freq=10**9):
    text = f'clock {{ name = "{name}"; freq = {freq}; offset_s = {offset_s}; offset = {offset};'
    if uuid:
        text += f' uuid = "{uuid}";'
    return text + f' absolute = {"TRUE" if absolute else "FALSE"}; }};\n'


def write(maker, path, cpu, clk, begin=1000, step=10):
    """Five ticks, numbered from 10 times @cpu on."""
    events = maker.ticks(10 * cpu, 5, begin, step)
    uuid = bytes([cpu]) + maker.UUID[1:]
    name = re.search(r'name = "(\w+)"', clk).group(1)
    meta = maker.metadata(clock=clk, env=f'env {{ hostname = "h{cpu}"; }};\n')
    meta = meta.replace("clock.monotonic.", f"clock.{name}.")
    meta = meta.replace(f'"{maker.UUID_TEXT[:2]}', f'"{uuid[:1].hex()}')
    maker.write_trace(path, {"c_0": maker.packet(events, begin, begin + 4 * step, stream=cpu,
                                                 uuid=uuid)}, meta)


def numbers(result):
    return [int(n) for n in re.findall(r"\bn = (\d+)", result.out)]


UUIDS = ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002")

CASES = {
    "epoch": ({}, {}, True),
    "epoch, other names": ({"name": "a"}, {"name": "b", "uuid": UUIDS[0]}, True),
    "same uuid": ({"absolute": False, "name": "a", "uuid": UUIDS[0]},
                  {"absolute": False, "name": "b", "uuid": UUIDS[0]}, True),
    "other uuid": ({"absolute": False, "name": "a", "uuid": UUIDS[0]},
                   {"absolute": False, "name": "a", "uuid": UUIDS[1]}, False),
    "no uuid": ({"absolute": False, "name": "a"}, {"absolute": False, "name": "a"}, True),
    "one uuid": ({"absolute": False, "name": "a"},
                 {"absolute": False, "name": "a", "uuid": UUIDS[0]}, False),
    "epoch and not": ({}, {"absolute": False, "name": "a", "uuid": UUIDS[0]}, False),
}


@pytest.mark.parametrize("name", CASES)
def test_what_correlates(kymo, peer, maker, tmp_path, name):
    one, two, together = CASES[name]
    write(maker, tmp_path / "one", 0, clock(**one))
    write(maker, tmp_path / "two", 1, clock(**two), begin=1005)
    mixed = [n + 10 * k for n in range(5) for k in range(2)]
    assert (peer("babeltrace2", tmp_path).code == 0) == together
    if together:
        assert numbers(kymo("print", tmp_path)) == mixed
        return
    result = kymo("print", tmp_path, code=1)
    assert not result.out
    assert "two: its clock" in result.err and FORCE in result.err
    assert kymo("convert", "--to", "json", tmp_path, code=1).err == result.err
    assert kymo("report", "cpu", tmp_path, code=1).err == result.err
    assert numbers(kymo("print", FORCE, tmp_path)) == mixed
    # Alone each of them is fine; and nothing is compared to describe them.
    assert numbers(kymo("print", tmp_path / "two")) == mixed[1::2]
    assert len(json.loads(kymo("info", "--json", tmp_path).out)["traces"]) == 2


@pytest.mark.parametrize("offset, ns", (
    ("1500", 1500), ("-1500", -1500), ("+3ms", 3000000), ("-2s", -2 * 10**9), ("0", 0),
    ("-1600000001s", -1600000001 * 10**9)))
def test_offsets_shift_all_times(kymo, maker, tmp_path, offset, ns):
    write(maker, tmp_path / "t", 0, clock(offset=7))
    zero = 1600000000 * 10**9 + 7 + 1000 + ns
    option = f"--clock-offset={offset}"
    lines = kymo("convert", "--to", "json", option, tmp_path / "t").out.splitlines()
    assert [json.loads(line)["timestamp_ns"] for line in lines] == \
        [zero + 10 * i for i in range(5)]
    assert json.loads(kymo("info", "--json", option, tmp_path / "t").out)["begin_ns"] == zero
    # What is written says it too.
    for version in ("ctf1.8", "ctf2"):
        kymo("convert", "--to", version, option, "-o", tmp_path / version, tmp_path / "t")
        assert kymo("print", tmp_path / version).out == kymo("print", option, tmp_path / "t").out


def test_offsets_of_one_trace(kymo, maker, tmp_path):
    write(maker, tmp_path / "one", 0, clock())
    write(maker, tmp_path / "two", 1, clock(offset_s=1600000005))
    assert numbers(kymo("print", tmp_path)) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    for which in ("two", "tw*", f"{tmp_path}/two"):
        moved = kymo("print", f"--clock-offset={which}:-4999999995ns", tmp_path)
        assert numbers(moved) == [n + 10 * k for n in range(5) for k in range(2)]
    twice = kymo("print", "--clock-offset=two:-5s", "--clock-offset=5", "--clock-offset=one:-1us",
                 tmp_path)
    assert numbers(twice) == [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]


@pytest.mark.parametrize("which, moved", (
    ("one", {0, 1}), ("one/", {0, 1}), ("./one", {0, 1}), ("o?e", {0, 1}), ("one/ust", {1}), ("ust", {1}), ("pid", {1}),
    ("kernel", {0, 2}), ("two/kernel", {2})))
def test_offsets_of_the_trace_that_is_given(kymo, maker, tmp_path, which, moved):
    """However it is written on the command line, and of what is in it."""
    for cpu, name in enumerate(("one/kernel", "one/ust/pid", "two/kernel")):
        write(maker, tmp_path / name, cpu, clock())
    printed = numbers(kymo("print", f"--clock-offset={which}:1000s", "./one/", "./two", cwd=tmp_path))
    assert len(printed) == 15 and {n // 10 for n in printed[-5 * len(moved):]} == moved


@pytest.mark.parametrize("wrong", ("x", "", "two:", "5parsecs", "none:5s", "9999999999999999999",
                                   "9000000000s"))
def test_wrong_offsets_are_usage_errors(kymo, maker, tmp_path, wrong):
    write(maker, tmp_path / "two", 0, clock())
    for command in (["print"], ["info"], ["convert", "--to", "json"], ["report", "cpu"]):
        result = kymo(*command, f"--clock-offset={wrong}", tmp_path, code=2)
        assert "clock offset" in result.err


def test_negative_offsets_of_seconds_and_cycles(kymo, maker, tmp_path):
    """-1 s and +- half a second in cycles of a slow clock, below and above zero."""
    for offset_s, offset, zero in ((-1, -16384, -1500000000), (-1, 16384, -500000000),
                                   (0, -16384, -500000000), (1, -16384, 500000000)):
        path = tmp_path / f"{offset_s}.{offset}"
        write(maker, path, 0, clock(offset_s=offset_s, offset=offset, freq=32768), begin=0,
              step=16384)
        lines = kymo("convert", "--to", "json", path).out.splitlines()
        assert [json.loads(line)["timestamp_ns"] for line in lines] == \
            [zero + 500000000 * i for i in range(5)]


def test_time_going_back_warns_once_and_loses_nothing(kymo, maker, tmp_path):
    """Again and again, inside packets too (64-bit time stamps can tell)."""
    data = b""
    for k in range(20):
        events = b"".join(maker.extended(5000 - 100 * k - 10 * i, 0, bytes([k * 10 + i, 0, 0, 0]))
                          for i in range(10))
        data += maker.packet(events, 5000 - 100 * k, 5000, seq=k)
    maker.write_trace(tmp_path, {"c_0": data})
    result = kymo("print", tmp_path)
    assert numbers(result) == list(range(200))
    assert result.err.count("time goes back") == 1
    assert kymo("print", "--count", tmp_path).out == "200\n"


def test_hundreds_of_streams(kymo, maker, tmp_path):
    """400, each with a gap in its sequence numbers and discarded events."""
    files = {}
    for stream in range(400):
        data = b""
        for k in range(3):
            begin = 10000 * k + stream * 7 % 400
            data += maker.packet(maker.ticks(stream * 10 + 2 * k, 2, begin, 1), begin, begin + 1,
                                 stream=stream, cpu=stream, seq=2 * k, discarded=k)
        files[f"c_{stream}"] = data
    maker.write_trace(tmp_path, files)
    result = kymo("print", tmp_path)
    assert len(numbers(result)) == 2400
    assert result.err.count("is missing") == result.err.count("1 event lost") == 800
    info = json.loads(kymo("info", "--json", tmp_path).out)
    assert info["lost_events"] == info["lost_packets"] == 800
    times = re.findall(r"^\[([\d:.]+)\]", result.out, re.M)
    assert times == sorted(times)
