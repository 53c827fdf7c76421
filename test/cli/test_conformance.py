# SPDX-License-Identifier: MIT
"""Our own small traces, one for each rule of CTF (docs/design/conformance.md): what is printed and
said of each, and that the other commands agree about what is right."""

import json
import os
import re
import subprocess

import pytest

from conftest import run

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(ROOT, "test", "data")


# Where babeltrace2 goes its own way: it stops at a packet that ends before it begins, and shows a
# sequence number that is some array's length too.
# Nor does it know floats of 16 or 128 bits, which CTF 1.8 has.
PEER_DIFFERS = ("ctf2-end-before-begin", "ctf2-floats", "ctf2-ranges", "ctf2-scopes")


def cases():
    for kind in ("ok", "bad"):
        for folder in ("traces", "rules"):
            for name in sorted(os.listdir(os.path.join(DATA, kind, folder))):
                if name != "README":
                    yield os.path.join(kind, folder), name


def is_bad(kind):
    return kind.startswith("bad")


def ours(kymo, kind, name, *args, **kwargs):
    return kymo(*args, name, code=is_bad(kind), cwd=os.path.join(DATA, kind), **kwargs)


@pytest.mark.parametrize("kind,name", cases())
def test_printed_and_said(kymo, kind, name):
    result = ours(kymo, kind, name, "print")
    with open(os.path.join(DATA, kind.split("/")[0], "expected", name + ".txt"), encoding="utf-8",
              errors="surrogateescape") as file:
        expected = file.read().splitlines()
    assert result.out.splitlines() == [line for line in expected if not line.startswith("! ")]
    assert ["! " + line for line in result.err.splitlines()] == \
        [line for line in expected if line.startswith("! ")]


@pytest.mark.parametrize("kind,name", cases())
def test_other_commands_agree(kymo, kind, name, tmp_path):
    printed = ours(kymo, kind, name, "print")
    lines = printed.out.count("\n")
    info = ours(kymo, kind, name, "info", "--json")
    if info.out:
        assert json.loads(info.out)["events"] == lines
    assert info.err.splitlines()[-1:] == printed.err.splitlines()[-1:] or not is_bad(kind)
    converted = ours(kymo, kind, name, "convert", "--to", "json")
    assert converted.out.count("\n") == lines
    for line in converted.out.splitlines():
        json.loads(line)


def test_copies_say_the_same(kymo, tmp_path):
    """Written anew in both versions, or refused with a reason."""
    refused = []
    for kind, name in cases():
        if is_bad(kind):
            continue
        printed = ours(kymo, kind, name, "print").out
        for version in ("ctf1.8", "ctf2"):
            out = tmp_path / f"{name}-{version}"
            result = kymo("convert", "--to", version, "-o", out, name, code=None,
                          cwd=os.path.join(DATA, kind))
            if result.code == 0 and (name, version) == ("underscores", "ctf2"):
                # Names have but one form there: `_str` beside `str` keeps what tells them apart.
                assert kymo("print", out).out == printed.replace("str = 2", "_str = 2")
            elif result.code == 0 and name.startswith("ctf2-") and version == "ctf1.8":
                # Shown in the forms that CTF 1.8 has for it: test_convert.py looks closer.
                assert kymo("print", out).out.count("\n") == printed.count("\n")
            elif result.code == 0:
                assert kymo("print", out).out == printed, (name, version)
            else:
                assert re.search(r"cannot|not supported", result.err), (name, version, result)
                refused.append((name, version))
    # What CTF 1.8 has no words for; and bit fields whose place varies.
    assert all(version == "ctf1.8" or name == "bit-fields" for name, version in refused)


def test_babeltrace2_reads_what_became_ctf18(kymo, tmp_path):
    """CTF 2 in the words of CTF 1.8, as its most used reader understands them."""
    equal = []
    for kind, name in cases():
        out = tmp_path / name
        if is_bad(kind) or not name.startswith("ctf2-") or name in PEER_DIFFERS:
            continue
        if kymo("convert", "--to", "ctf1.8", "-o", out, name, code=None,
                cwd=os.path.join(DATA, kind)).code:
            continue
        peer = run(["babeltrace2", "--clock-gmt", out])
        assert peer.code == 0, (name, peer.err)
        assert peer.out == kymo("print", "--clock-gmt", out).out, name
        equal.append(name)
    # With what is written in other bits.
    assert {"ctf2-leb128", "ctf2-clock-leb128", "ctf2-texts", "ctf2-alignment"} <= set(equal)
    assert len(equal) > 15


# Babeltrace 1 finds a variant's tag in the variant's own struct only, and knows no other floats,
# no time before 1970, and no field that begins behind the last byte.
OLD_PEER_DIFFERS = ("ctf2-alignment", "ctf2-clock-offset", "ctf2-floats", "ctf2-optionals")


def test_babeltrace1_opens_what_became_ctf18(kymo, tmp_path):
    opened = []
    for kind, name in cases():
        out = tmp_path / name
        if is_bad(kind) or not name.startswith("ctf2-") or name in OLD_PEER_DIFFERS:
            continue
        if kymo("convert", "--to", "ctf1.8", "-o", out, name, code=None,
                cwd=os.path.join(DATA, kind)).code:
            continue
        peer = run(["babeltrace", out])
        assert peer.code == 0, (name, peer.err)
        assert peer.out.count("\n") == kymo("print", out).out.count("\n"), name
        opened.append(name)
    # With lengths far from what they are for.
    assert {"ctf2-locations", "ctf2-scopes"} <= set(opened)
    assert len(opened) > 15


def test_traces_are_what_the_script_makes(root_dir):
    subprocess.run([os.path.join(root_dir, "tools", "make-test-traces"), "--check"], check=True)


def test_each_has_its_rule(root_dir):
    with open(os.path.join(root_dir, "docs", "design", "conformance.md"), encoding="utf-8") as file:
        named = set(re.findall(r"`([^`]+)`", file.read()))
    names = {name for _kind, name in cases()}
    assert names <= named, names - named
