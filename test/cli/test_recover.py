# SPDX-License-Identifier: MIT
"""--recover: reading on behind damage; tracers' mistakes in the times of packets."""

import json
import os
import re

import pytest


def packets(maker, stream=0, **damage):
    """Three packets of three ticks; the middle one as @damage says."""
    return [maker.packet(maker.ticks(3 * i, 3, 1000 * (i + 1)), 1000 * (i + 1),
                         1000 * (i + 1) + 200, seq=i, pad=6, stream=stream,
                         **(damage if i == 1 else {}))
            for i in range(3)]


def numbers(result):
    return [int(n) for n in re.findall(r"\bn = (\d+)", result.out)]


AROUND = [0, 1, 2, 6, 7, 8]
LENGTH = 84 + 3 * 10 + 6

DAMAGE = {
    "magic": ({"magic": 7}, AROUND, LENGTH),
    "uuid": ({"uuid": bytes(16)}, AROUND, LENGTH),
    "content too large": ({"content_bits": 1 << 30}, AROUND, LENGTH),
    "content zero": ({"content_bits": 0}, AROUND, LENGTH),
    "packet zero": ({"packet_bits": 0, "content_bits": 0}, AROUND, LENGTH),
    "packet huge": ({"packet_bits": 2**64 - 8}, AROUND, LENGTH),
    # Its content is right: all of its events, then the next packet, which the size hides.
    "packet too large": ({"packet_bits": 8 * (LENGTH + 40)}, list(range(9)), None),
    "packet beyond the file": ({"packet_bits": 8 << 20}, list(range(9)), None),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_a_wrong_packet_header_costs_that_packet(kymo, maker, tmp_path, what):
    damage, expected, skipped = DAMAGE[what]
    maker.write_trace(tmp_path, {"c_0": b"".join(packets(maker, **damage))})
    result = kymo("print", "--recover", tmp_path, code=1)
    assert numbers(result) == expected
    assert result.err.count("warning") >= 1
    assert "c_0: " in result.err and "(at byte " in result.err
    if skipped:
        assert f"(at byte {LENGTH}, packet 1): {skipped} bytes skipped" in result.err
        assert f"damage in 1 place: {skipped} bytes were skipped" in result.err


def test_without_it_reading_ends_at_the_damage(kymo, maker, tmp_path):
    maker.write_trace(tmp_path, {"c_0": b"".join(packets(maker, magic=7))})
    result = kymo("print", tmp_path, code=1)
    assert numbers(result) == [0, 1, 2]
    assert "skipped" not in result.err


def test_damage_among_the_events_costs_the_rest_of_that_packet(kymo, maker, tmp_path):
    whole = packets(maker)
    events = maker.tick(2000, 3) + maker.event(2100, 9) + maker.tick(2200, 5)
    whole[1] = maker.packet(events, 2000, 2200, seq=1)
    maker.write_trace(tmp_path, {"c_0": b"".join(whole)})
    result = kymo("print", "--recover", tmp_path, code=1)
    assert numbers(result) == [0, 1, 2, 3, 6, 7, 8]
    assert "no event class with id 9" in result.err


def test_noise_zeros_and_a_cut_end(kymo, maker, tmp_path):
    one, two, three = packets(maker)
    maker.write_trace(tmp_path, {"c_0": one + bytes(100) + two + b"noise" * 9 + three[:-9]})
    result = kymo("print", "--recover", tmp_path, code=1)
    assert numbers(result) == [0, 1, 2, 3, 4, 5, 6, 7]
    assert "damage in 3 places: 145 bytes" in result.err


def test_a_file_that_begins_with_damage(kymo, maker, tmp_path):
    maker.write_trace(tmp_path, {"c_0": bytes(64) + b"".join(packets(maker))})
    assert numbers(kymo("print", "--recover", tmp_path, code=1)) == list(range(9))
    info = json.loads(kymo("info", "--json", "--recover", tmp_path, code=1).out)
    assert info["traces"][0]["streams"][0]["cpu"] == 0


def test_all_ways_to_read_agree(kymo, maker, tmp_path):
    files = {f"c_{cpu}": b"".join(packets(maker, cpu, magic=cpu + 7)) for cpu in range(3)}
    maker.write_trace(tmp_path / "t", files)
    trace = tmp_path / "t"
    assert numbers(kymo("print", "--recover", trace, code=1)) == [n for n in AROUND for _ in "abc"]
    for options in (["--count"], ["--count", "--filter", "n >= 0"], ["--count", "--begin", "+0s"]):
        result = kymo("print", "--recover", *options, trace, code=1)
        assert result.out == "18\n"
        assert result.err.count("warning") == 3 == result.err.count("bytes skipped\n")
    assert numbers(kymo("print", "--recover", "--tail", "3", trace, code=1)) == [8, 8, 8]
    assert numbers(kymo("print", "--recover", "--begin", "+1999ns", trace, code=1)) == \
        [n for n in AROUND[3:] for _ in "abc"]
    assert "18 events" in kymo("print", "--recover", "--no-output", trace, code=1).err
    assert len(kymo("convert", "--to", "json", "--recover", trace, code=1).out.splitlines()) == 18
    kymo("convert", "--to", "ctf1.8", "--recover", "-o", tmp_path / "out", trace, code=1)
    assert numbers(kymo("print", tmp_path / "out")) == [n for n in AROUND for _ in "abc"]
    info = json.loads(kymo("info", "--json", "--recover", trace, code=1).out)
    assert info["events"] == 18
    for stream in info["traces"][0]["streams"]:
        damage, = stream["damages"]
        assert damage["offset"] == LENGTH and damage["skipped_bytes"] == LENGTH
        assert damage["path"].endswith(stream["file"]) and "magic" in damage["message"]
        assert stream["lost_packets"] == 1


# ---- losses, and times of packets that tracers get wrong ---------------------------------------

ENV = 'env {{ hostname = "box"; tracer_name = "{}"; tracer_major = {}; tracer_minor = {}; ' \
      'tracer_patchlevel = {}; tracer_patch = {}; }};\n'


def env(name, version):
    major, minor, patch = version.split(".")
    return ENV.format(name, major, minor, patch, patch)


def losses(kymo, trace):
    """Each loss' events, begin and end, in ns from 1600000000 s."""
    info = json.loads(kymo("info", "--json", trace).out)
    zero = 1600000000 * 10**9
    return [(loss["events"], loss["begin_ns"] - zero, loss["end_ns"] - zero)
            for loss in info["traces"][0]["streams"][0]["losses"]]


def lossy(maker, ends, begins=(1000, 2000, 3000), full=False):
    """@full: time stamps of 64 bits, which can lie before the packet's begin."""
    def ticks(i):
        if not full:
            return maker.ticks(3 * i, 3, 1000 * (i + 1) + 50)
        return b"".join(maker.extended(1000 * (i + 1) + 50 + 100 * k, 0, bytes(4))
                        for k in range(3))
    return b"".join(maker.packet(ticks(i), begins[i], ends[i], seq=i, discarded=5 * i)
                    for i in range(3))


RIGHT = [(5, 1200, 2200), (5, 2200, 3200)]
LATE = [(5, 2000, 3000), (5, 3000, 3250)]

QUIRKS = (
    ("lttng-ust", "2.10.9", (1200, 2200, 3200), LATE),
    ("lttng-ust", "2.11.0", (1200, 2200, 3200), RIGHT),
    ("lttng-modules", "2.9.12", (1200, 2200, 3200), LATE),
    ("lttng-modules", "2.9.13", (1200, 2200, 3200), RIGHT),
    ("lttng-modules", "2.10.9", (1200, 2200, 3200), LATE),
    ("lttng-modules", "2.10.10", (1200, 2200, 3200), RIGHT),
    ("lttng-ust", "2.13.5", (0, 2200, 0), [(5, 2000, 2200), (5, 2200, 3250)]),
    ("other", "2.0.0", (1200, 2200, 3200), RIGHT),
)


@pytest.mark.parametrize("tracer, version, ends, expected", QUIRKS)
def test_packet_ends_are_put_right(kymo, maker, tmp_path, tracer, version, ends, expected):
    maker.write_trace(tmp_path, {"c_0": lossy(maker, ends)}, maker.metadata(env=env(tracer, version)))
    assert losses(kymo, tmp_path) == expected


def test_packet_begins_of_old_barectf(kymo, maker, tmp_path):
    data = lossy(maker, (1200, 2200, 3200), begins=(1100, 2100, 3100), full=True)
    maker.write_trace(tmp_path / "a", {"c_0": data}, maker.metadata(env=env("barectf", "2.3.0")))
    maker.write_trace(tmp_path / "b", {"c_0": data}, maker.metadata(env=env("barectf", "2.3.1")))
    assert losses(kymo, tmp_path / "a") == [(5, 2050, 3050), (5, 3050, 3200)]
    assert losses(kymo, tmp_path / "b") == RIGHT


CORRECTED = (
    ("lttng-ust", "2.10.9", {"ends": (1200, 2200, 3200)}),
    ("lttng-ust", "2.13.5", {"ends": (0, 2200, 0)}),
    ("barectf", "2.3.0", {"ends": (1200, 2200, 3200), "begins": (1100, 2100, 3100), "full": True}),
)


@pytest.mark.parametrize("select", ([], ["--head", 100], ["--filter", "n < 0"]), ids=str)
@pytest.mark.parametrize("tracer, version, packets", CORRECTED)
def test_converted_packets_are_right(kymo, maker, tmp_path, tracer, version, packets, select):
    """Losses keep their times, also between packets that are written without any event."""
    trace, out = tmp_path / "t", tmp_path / "out"
    maker.write_trace(trace, {"c_0": lossy(maker, **packets)},
                      maker.metadata(env=env(tracer, version)))
    kymo("convert", "--to", "ctf1.8", *select, "-o", out, trace)
    assert losses(kymo, out) == losses(kymo, trace) != []
    # The index says what the packets say.
    assert "index" not in kymo("print", "--begin", "1600000000", out).err


@pytest.mark.parametrize("index", (False, True))
def test_seeking_finds_events_behind_the_packets_end(kymo, maker, tmp_path, index):
    """Every packet's end lies before its events; the index says the same."""
    data = lossy(maker, (1001, 0, 3001))
    files = {"c_0": data}
    if index:
        files["index/c_0.idx"] = maker.index(maker.index_of(data, range(3)))
    maker.write_trace(tmp_path, files, maker.metadata(env=env("lttng-ust", "2.9.0")))
    for begin in range(1000, 3300, 50):
        expected = [3 * i + k for i in range(3) for k in range(3)
                    if 1000 * (i + 1) + 50 + 100 * k >= begin]
        result = kymo("print", "--begin", f"1600000000.{begin:09}", tmp_path)
        assert numbers(result) == expected, begin


def test_losses_are_told_with_their_time(kymo, maker, tmp_path):
    data = maker.packet(maker.ticks(0, 1, 1000), 1000, 1200, discarded=1)
    data += maker.packet(maker.ticks(1, 1, 2000), 2000, 2200, seq=4, discarded=8)
    maker.write_trace(tmp_path, {"c_0": data})
    result = kymo("print", tmp_path)
    between = "between 12:26:40.000001200 and 12:26:40.000002200"
    assert f"c_0: 7 events lost by the tracer {between}" in result.err
    assert f"c_0: 3 packets are missing {between}" in result.err
    assert "lost between 2020-09-13 12:26:40.000001200" in kymo("info", tmp_path).out
    stream, = json.loads(kymo("info", "--json", tmp_path).out)["traces"][0]["streams"]
    zero = 1600000000 * 10**9
    assert stream["losses"] == [{"events": 7, "packets": 3, "begin_ns": zero + 1200,
                                 "end_ns": zero + 2200}]
