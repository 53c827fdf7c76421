# SPDX-License-Identifier: MIT
"""Lengths and selectors in options of variants, told elsewhere: there or not, in each event anew."""

import json

from test_convert_metadata import number, one_event, structure

BY_SEL = {"selector-field-location": {"path": ["sel"]}}


def choice(*options):
    return {"type": "variant", **BY_SEL, "options": [
        {"selector-field-ranges": [[i, i]], "field-class": cls} for i, cls in enumerate(options)]}


def listed(*path):
    return {"type": "dynamic-length-array", "length-field-location": {"path": list(path)},
            "element-field-class": number(8)}


def events(kymo, trace, code=0):
    result = kymo("convert", "--to", "json", trace, code=code)
    return [json.loads(line)["fields"] for line in result.out.splitlines()], result.err


def test_any_64_bits_select(kymo, tmp_path):
    """No value of a selector stands for none."""
    values = (0, 1, 0xa5c396f17e2d4b09, 2**64 - 1)
    there = {"type": "optional", "selector-field-location": {"path": ["either", "n"]},
             "selector-field-ranges": [[0, 2**64 - 1]], "field-class": number(8)}
    data = b"".join(b"\1" + n.to_bytes(8, "little") + b"\7" for n in values)
    trace = one_event(tmp_path / "t", data, ("sel", number(8)),
                      ("either", choice(structure(), structure(("n", number(64))))),
                      ("there", there))
    assert [e["there"] for e in events(kymo, trace)[0]] == [7] * 4


def test_choices_within_choices(kymo, tmp_path):
    """The inner one counts when the outer one has it, whatever it was in events before."""
    inner = {**choice(structure(("x", number(8))), structure(("n", number(8)))),
             "selector-field-location": {"path": [None, "which"]}}
    trace = one_event(
        tmp_path / "t", b"\0\1" + b"\2ab" + b"\0\1" + b"\1c" + b"\1\1" + b"\1d" + b"\0\0" + b"\x05",
        ("sel", number(8)), ("which", number(8)),
        ("outer", choice(structure(("inner", inner)), structure(("inner", structure(("n", number(8))))),
                         structure())),
        ("list", listed("outer", "inner", "n")))
    got, err = events(kymo, trace, code=1)
    assert [e["list"] for e in got] == [[97, 98], [99], [100]]
    assert "'outer.inner.n', which it needs, is not there (at byte 16, packet 0, event 3)" in err


def test_elements_of_one_event(kymo, tmp_path):
    """What an element has, the next one has not."""
    element = structure(("sel", number(8)), ("either", choice(structure(), structure(("n", number(8))))),
                        ("list", listed("either", "n")))
    trace = one_event(
        tmp_path / "t", b"\1\2ab\1\0" + b"\1\1c\0", ("all", {
            "type": "static-length-array", "length": 2, "element-field-class": element}))
    got, err = events(kymo, trace, code=1)
    assert [[e["list"] for e in event["all"]] for event in got] == [[[97, 98], []]]
    assert "'either.n', which it needs, is not there (at byte 10, packet 0, event 1)" in err


def test_a_copy_of_what_is_not_there(kymo, peer, tmp_path):
    """Where nobody needs the length its copy is 0, not that of the event before."""
    there = {"type": "optional", **BY_SEL, "selector-field-ranges": [[1, 1]],
             "field-class": listed("either", "n")}
    trace = one_event(tmp_path / "t", b"\1\2ab\0" + b"\1\1c", ("sel", number(8)),
                      ("either", choice(structure(), structure(("n", number(8))))),
                      ("there", there))
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    copies = [next(v for k, v in e.items() if k.endswith("_length"))
              for e in events(kymo, tmp_path / "out")[0]]
    assert copies == [2, 0, 1]
    assert peer("babeltrace2", tmp_path / "out").out == kymo("print", tmp_path / "out").out


TSDL = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
trace { major = 1; minor = 8; byte_order = le; };
stream { };
event { name = "e"; id = 0; fields := struct {
	enum : u8 { none = 0, some = 1 } tag;
	variant <tag> { struct { u8 other; } none; struct { u8 n; } some; } v;
	u8 list[v.some.n];
	%s
}; };
"""


def test_tsdl_leads_into_a_variant(kymo, tmp_path):
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "metadata").write_text(TSDL % "")
    (tmp_path / "t" / "s").write_bytes(b"\1\2ab" + b"\1\0" + b"\0\x05zz")
    wrong = "field list: 'v.some.n', which it needs, is not there (at byte 8, packet 0, event 2)"
    got, err = events(kymo, tmp_path / "t", code=1)
    assert [e["list"] for e in got] == [[97, 98], []] and wrong in err
    for command in (["print", "--filter", "tag == 1"], ["print", "--count"],
                    ["convert", "--to", "ctf2", "-o", tmp_path / "out"]):
        assert wrong in kymo(*command, tmp_path / "t", code=1).err
    assert [e["list"] for e in events(kymo, tmp_path / "out")[0]] == [[97, 98], []]


def test_tsdl_leads_into_another_option(kymo, tmp_path):
    """Of the variant that the length is needed in."""
    again = "variant <tag> { struct { u8 n; } none; struct { u8 text[event.fields.w.none.n]; } some; } w;"
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / "metadata").write_text(TSDL.replace("u8 list[v.some.n];", "") % again)
    (tmp_path / "t" / "s").write_bytes(b"\0\5\2" + b"\1\5ab")
    got, err = events(kymo, tmp_path / "t", code=1)
    assert len(got) == 1 and "which it needs, is not there (at byte 5, packet 0, event 1)" in err
