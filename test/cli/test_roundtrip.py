# SPDX-License-Identifier: MIT
"""Random traces, from one version of CTF into the other and back: events and metadata stay."""

import json
import os
import re

import pytest
import random_trace

SEEDS = int(os.environ.get("SEEDS", "25"))
ANY_CLOCK = "--clock-force-correlate"


@pytest.fixture(scope="module", params=[
    (1, "COMMON"), (2, "COMMON"), (2, "LOWERED"), (2, "ANEW"), (2, "MORE"), (2, "ALL")], ids=lambda p: f"ctf{p[0]}-{p[1]}")
def traces(request, tmp_path_factory):
    """(directory, version, kinds, what the streams' events are) of SEEDS traces."""
    version, kinds = request.param
    path = tmp_path_factory.mktemp(f"random-{version}-{kinds}")
    expected = {}
    for seed in range(SEEDS):
        trace = random_trace.Trace(seed, version, getattr(random_trace, kinds))
        trace.write(path / f"t{seed:03}")
        for event in trace.expected:
            expected.setdefault(dict(event)["stream"], []).append(json.dumps(event))
    return path, version, kinds, expected


def to_json(kymo, path, *options):
    return kymo("convert", "--to", "json", ANY_CLOCK, *options, path).out


def parse(text):
    """Events as lists of pairs: the order and repetition of names count. One at a time."""
    for line in text.splitlines():
        yield json.loads(line, object_pairs_hook=list)


def is_object(value):
    return isinstance(value, list) and value and isinstance(value[0], tuple)


def lowered(value):
    """A value as CTF 1.8 says it: neither booleans, flags, BLOBs, absent fields nor copies."""
    if is_object(value):
        members = dict(value)
        if "bits_0_63" in members:
            return random_trace.words_of(members)
        value = random_trace.without_copies(value)
        if "labels" in members:
            flags = members["labels"]
            return int(flags == ["true"]) if flags in (["true"], ["false"]) else members["value"]
        return [(name, lowered(member)) for name, member in value]
    if isinstance(value, list):
        items = [lowered(item) for item in value]
        if items and all(isinstance(item, int) and 0 <= item < 256 for item in items):
            return bytes(items).hex()
        return items
    if isinstance(value, bool):
        return int(value)
    return [] if value is None or value == "" else value


def test_events_are_what_was_written(kymo, traces):
    """The original is read right: else nothing below would mean anything."""
    path, _, _, expected = traces
    found = {}
    for event in parse(to_json(kymo, path)):
        found.setdefault(dict(event)["stream"], []).append(json.dumps(event))
    assert sum(map(len, expected.values())) > 3 * SEEDS
    assert sorted(found) == sorted(expected)
    for stream, events in expected.items():
        # Through JSON, so that both are of the same types.
        assert found[stream] == events, stream


@pytest.mark.parametrize("select", ([], ["--head", 10**9], ["--event", "e1"]), ids=str)
@pytest.mark.parametrize("to", ("ctf1.8", "ctf2"))
def test_there_and_back(kymo, traces, tmp_path, select, to):
    path, version, kinds, _ = traces
    want = to_json(kymo, path, *select)
    kymo("convert", "--to", to, ANY_CLOCK, *select, "-o", tmp_path / "there", path)
    got = to_json(kymo, tmp_path / "there")
    if kinds != "COMMON" and to == "ctf1.8":
        assert [json.dumps(lowered(event)) for event in parse(got)] == \
            [json.dumps(lowered(event)) for event in parse(want)]
    else:
        assert got.splitlines() == want.splitlines()
    if kinds == "COMMON":
        back = "ctf1.8" if version == 1 else "ctf2"
        kymo("convert", "--to", back, ANY_CLOCK, "-o", tmp_path / "back", tmp_path / "there")
        assert to_json(kymo, tmp_path / "back").splitlines() == want.splitlines()


def metadata(kymo, path):
    """What `details` says of metadata, without places."""
    out = kymo("convert", "--to", "details", ANY_CLOCK, "--head", 0, path).out
    # A path may be shorter or longer, and have the '_' that CTF 1.8 does not show.
    out = re.sub(r"(selected by|length by) '(?:[^']*\.)?_?([^']*)'", r"\1 '\2'", out)
    return [re.sub(r"^(trace|stream) /.*/", r"\1 ", line) for line in out.splitlines()]


def test_metadata_stays(kymo, traces, tmp_path):
    """There and back where both versions can say it all; else shifted by nothing, and rewritten."""
    path, version, kinds, _ = traces
    own, other = ("ctf1.8", "ctf2") if version == 1 else ("ctf2", "ctf1.8")
    there = other if kinds == "COMMON" else own
    kymo("convert", "--to", there, ANY_CLOCK, "--clock-offset", "0", "-o", tmp_path / "there", path)
    kymo("convert", "--to", own, ANY_CLOCK, "-o", tmp_path / "back", tmp_path / "there")
    assert metadata(kymo, tmp_path / "back") == metadata(kymo, path)
