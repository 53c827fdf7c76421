# SPDX-License-Identifier: MIT
"""Damage anywhere in a trace: one line says where, what lies before is delivered, nothing else breaks.

Traces of our own are changed at places that a seed chooses. $KYMO_MUTATIONS is how often (per trace,
default 12); $KYMO_MUTATION_SEED begins elsewhere. A failure prints the seed of its change.
"""

import os
import random
import re
import resource
import shutil

import make_trace
import pytest

import test_stored_stacks

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
OK = os.path.join(ROOT, "test", "data", "ok")
ROUNDS = int(os.environ.get("KYMO_MUTATIONS", "12"))
SEED = int(os.environ.get("KYMO_MUTATION_SEED", "1"))
DATA_MAX_BYTES = 256 << 20

# Traces of one data file.
TRACES = {"sample": None, "stacks": None, "kinds": "traces", "losses": "traces", "big-endian": "traces",
          "compact-header": "rules", "scope-paths": "rules", "bit-fields": "rules",
          "quirk-ust": "rules", "padding": "rules", "ctf2-locations": "rules", "ctf2-texts": "rules",
          "ctf2-optionals": "rules", "ctf2-clock-leb128": "rules", "ctf2-several-roles": "rules"}


def change(data, rng):
    """Returns the changed bytes and the first place that differs."""
    data, at = bytearray(data), rng.randrange(len(data))
    kind = rng.choice(("bit", "byte", "ones", "cut", "noise", "drop", "again", "extend"))
    if kind == "bit":
        data[at] ^= 1 << rng.randrange(8)
    elif kind == "byte":
        data[at] = rng.randrange(256)
    elif kind == "ones":
        data[at:at + 8] = b"\xff" * 8
    elif kind == "cut":
        del data[at:]
    elif kind == "noise":
        data[at:at + 40] = rng.randbytes(40)
    elif kind == "drop":
        del data[at:at + rng.randrange(1, 9)]
    elif kind == "again":
        data[at:at] = data[at:at + rng.randrange(1, 200)]
    else:
        at = len(data)
        data += rng.choice((bytes(100), rng.randbytes(100), b"\0"))
    return bytes(data), at


@pytest.fixture(scope="module", params=sorted(TRACES))
def trace(request, tmp_path_factory):
    """(directory, its data file)"""
    path = tmp_path_factory.mktemp("mutations") / "trace"
    if request.param == "sample":
        make_trace.sample(path, packets=3, per_packet=12)
        (path / "channel_1").unlink()
    elif request.param == "stacks":
        test_stored_stacks.sample(path)
    else:
        shutil.copytree(os.path.join(OK, TRACES[request.param], request.param), path)
    for other in sorted(path.iterdir())[:-1]:
        if other.name not in ("metadata", "s", "c_0", "channel_0", "s_3"):
            shutil.rmtree(other) if other.is_dir() else other.unlink()
    data = [file for file in path.iterdir() if file.name not in ("metadata", "s_4")]
    for file in path.glob("s_4"):
        file.unlink()
    return path, data[0]


def bounded(kymo, kymo_bin):
    """kymo() with little memory; sanitizers need more."""
    with open(kymo_bin, "rb") as program:
        image = program.read()

    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_MAX_BYTES, DATA_MAX_BYTES))

    more = {} if b"__asan_init" in image or b"__tsan_init" in image else {"preexec_fn": limit}
    return lambda *args: kymo(*args, code=None, timeout=100, **more)


def events_before(details, at):
    """How many events of the intact trace end before byte @at."""
    places = re.findall(r"^event \d+ .* at byte (\d+)(?: bit (\d+))?, (\d+) bits$", details, re.M)
    return sum(int(byte) * 8 + int(bit or 0) + int(bits) <= at * 8 for byte, bit, bits in places)


def check_said(result, file):
    """Exit 0 without an error, or exit 1 with one line that says where."""
    assert result.code in (0, 1), result
    errors = [line for line in result.err.splitlines() if not line.startswith("kymo: warning: ")]
    assert len(errors) == result.code, result
    for line in errors:
        assert re.search(re.escape(str(file)) + r": .*\(at byte \d+, packet \d+(, event \d+)?\)", line) \
            or re.match(r"kymo: damage in \d+ places?: \d+ bytes were skipped", line), result


def test_data(kymo, kymo_bin, trace, tmp_path):
    path, file = trace
    run = bounded(kymo, kymo_bin)
    intact = kymo("print", path).out.splitlines()
    details = kymo("convert", "--to", "details", path).out
    whole = file.read_bytes()
    for seed in range(SEED, SEED + ROUNDS):
        data, at = change(whole, random.Random(f"{path.name} {file.name} {seed}"))
        file.write_bytes(data)
        try:
            known = events_before(details, at)
            results = {"print": run("print", path), "recover": run("print", "--recover", path),
                       "info": run("info", path), "json": run("convert", "--to", "json", path),
                       "ctf": run("convert", "--to", "ctf2", "-o", tmp_path / str(seed), path)}
        finally:
            file.write_bytes(whole)
        for name in ("print", "recover"):
            assert results[name].out.splitlines()[:known] == intact[:known], (seed, name)
        for name in ("print", "recover", "info", "json"):
            check_said(results[name], file)
        assert results["json"].out.count("\n") == results["print"].out.count("\n"), seed
        assert results["ctf"].code in (0, 1) and results["ctf"].err.count("kymo: ") <= 40, seed
        shutil.rmtree(tmp_path / str(seed), ignore_errors=True)


def test_metadata(kymo, kymo_bin, trace):
    path, _file = trace
    run = bounded(kymo, kymo_bin)
    metadata = path / "metadata"
    whole = metadata.read_bytes()
    for seed in range(SEED, SEED + ROUNDS):
        metadata.write_bytes(change(whole, random.Random(f"metadata {seed}"))[0])
        try:
            for args in (["print"], ["info"]):
                result = run(*args, path)
                errors = [line for line in result.err.splitlines()
                          if not line.startswith("kymo: warning: ")]
                assert result.code in (0, 1) and len(errors) == result.code, (seed, result)
        finally:
            metadata.write_bytes(whole)
