# SPDX-License-Identifier: MIT
"""Metadata nested as deep as memory allows: every command reads it, none needs the stack for it."""

import json
import os
import struct

import pytest

# ThreadSanitizer gives up at 65,536 calls in each other, of which a level takes some.
SMALL = "-tsan" in os.environ.get("KYMO_BIN", "")
LEVELS = 10000 if SMALL else 20000
HOSTILE = 10000 if SMALL else 1000000
U8 = {"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"}


def tsdl(levels):
    return "/* CTF 1.8 */ typealias integer { size = 8; align = 8; } := u8;\n" \
        "trace { major = 1; minor = 8; byte_order = le; };\n" \
        "event { name = e; fields := " + "struct { " * levels + "u8 x; " + "} a; " * (levels - 1) + "}; };\n"


def ctf2(levels):
    opening = '{"type": "structure", "member-classes": [{"name": "a", "field-class": '
    return '\x1e{"type": "preamble", "version": 2}\n\x1e{"type": "data-stream-class"}\n' \
        '\x1e{"type": "event-record-class", "name": "e", "payload-field-class": ' + \
        opening * levels + json.dumps(U8) + "}]}" * levels + "}\n"


@pytest.fixture(scope="module", params=[tsdl, ctf2])
def deep(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("deep")
    (path / "metadata").write_text(request.param(LEVELS))
    (path / "s").write_bytes(b"\7\x08")
    return path


@pytest.mark.parametrize("args", [
    ["print"], ["print", "--jobs", "3"], ["info"], ["print", "--filter", "a == 1"],
    *(["convert", "--to", to] for to in ("text", "json", "details"))])
def test_read(kymo, deep, args):
    result = kymo(*args, deep)
    if args[-1] in ("print", "text", "json"):
        assert result.out.count("{") >= 2 * LEVELS


@pytest.mark.parametrize("to", ["ctf1.8", "ctf2", "csv"])
def test_written(kymo, deep, tmp_path, to):
    kymo("convert", "--to", to, "-o", tmp_path / "out", deep)
    if to != "csv":
        assert kymo("print", tmp_path / "out").raw == kymo("print", deep).raw


@pytest.mark.parametrize("text", [
    '\x1e{"type": "preamble", "version": 2}\n\x1e' + "[" * HOSTILE,
    '\x1e{"type": "preamble", "version": 2}\n\x1e' + '{"a":' * (HOSTILE // 2),
    "/* CTF 1.8 */ " + "struct {" * (HOSTILE // 5), "/* CTF 1.8 */ " + "enum : " * (HOSTILE // 5),
    "/* CTF 1.8 */ struct { u8 " + "(" * HOSTILE, "/* CTF 1.8 */ trace { a = " + "(" * HOSTILE],
    ids=["arrays", "objects", "structs", "enums", "declarator", "value"])
def test_refused(kymo, tmp_path, text):
    """Hostile nesting: one line, soon, and in memory that the text's size bounds."""
    (tmp_path / "metadata").write_text(text)
    (tmp_path / "s").write_bytes(struct.pack("<I", 1))
    before = os.path.getsize(tmp_path / "metadata")
    result = kymo("print", tmp_path, code=1)
    assert result.err.count("\n") == 1 and "metadata:" in result.err
    assert before > HOSTILE
