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
    assert ("CTF 1.8 cannot hold these, left out: attributes (4), namespaces (2), UIDs (2), "
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


# ---- fields that CTF 1.8 has only in parts, or by copies ----------------------------------------

def number(bits, **more):
    kind = more.pop("kind", "fixed-length-unsigned-integer")
    return {"type": kind, "length": bits, "byte-order": "little-endian", "alignment": 8, **more}


def member(name, cls):
    return {"name": name, "field-class": cls}


def structure(*members):
    return {"type": "structure", "member-classes": [member(*pair) for pair in members]}


def one_event(path, data, *members, environment=None):
    """A trace of one event, whose fields are @members."""
    return write(path, [
        {"type": "preamble", "version": 2},
        *([{"type": "trace-class", "environment": environment}] if environment else []),
        {"type": "data-stream-class"},
        {"type": "event-record-class", "name": "e", "payload-field-class": structure(*members)},
    ], [("s", data)])


def fields_of(kymo, path):
    event, = kymo("convert", "--to", "json", path).out.splitlines()
    return json.loads(event)["fields"]


def peers_read(kymo, peer, path):
    """Both of them, and babeltrace2 the same text as we."""
    text = peer("babeltrace2", path)
    assert text.code == 0 and text.out == kymo("print", path).out, text
    assert peer("babeltrace", path).code == 0
    return text.out


@pytest.mark.parametrize("order", ("little", "big"))
@pytest.mark.parametrize("bits", (65, 100, 128, 200))
@pytest.mark.parametrize("kind", ("unsigned-integer", "signed-integer", "bit-array"))
def test_long_integers_become_words(kymo, peer, tmp_path, kind, bits, order):
    signed = kind == "signed-integer"
    value = -(3 << bits - 3) + 5 if signed else (3 << bits - 3) + 5
    raw = value & (1 << bits) - 1
    # The bits of a little-endian number are counted from below, those of a big-endian one from above.
    size = (bits + 7) // 8
    data = (raw if order == "little" else raw << 8 * size - bits).to_bytes(size, order)
    cls = number(bits, kind=f"fixed-length-{kind}", **{"byte-order": f"{order}-endian"})
    trace = one_event(tmp_path / "t", data + b"\7", ("n", cls), ("behind", number(8)))
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    fields = fields_of(kymo, tmp_path / "out")
    names = [f"bits_{i}_{min(i + 63, bits - 1)}" for i in range(0, bits, 64)]
    assert list(fields["n"]) == (names if order == "little" else names[::-1])
    assert sum(word << int(name.split("_")[1]) for name, word in fields["n"].items()) == (
        value if signed else raw)
    assert fields["behind"] == 7
    # The bytes stay what they are.
    assert (tmp_path / "out" / "s").read_bytes() == data + b"\7"
    peers_read(kymo, peer, tmp_path / "out")


def test_labels_of_words_are_told(kymo, tmp_path):
    trace = one_event(tmp_path / "t", bytes(9), ("n", number(72, mappings={"none": [[0, 0]]})))
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert "left out: labels of integers beyond 64 bits (1)\n" in result.err


def test_a_length_in_whichever_option(kymo, peer, tmp_path):
    either = {"type": "variant", "selector-field-location": {"path": ["sel"]}, "options": [
        {"name": "a", "selector-field-ranges": [[0, 0]], "field-class": structure(("n", number(8)))},
        {"name": "b", "selector-field-ranges": [[1, 1]],
         "field-class": structure(("n", number(16)))}]}
    by = {"path": ["either", "n"]}
    data = b"\1\2\0" + bytes([10, 11]) + b"xy" + b"\3"
    trace = one_event(
        tmp_path / "t", data, ("sel", number(8)), ("either", either),
        ("list", {"type": "dynamic-length-array", "length-field-location": by,
                  "element-field-class": number(8)}),
        ("text", {"type": "dynamic-length-string", "length-field-location": by}),
        ("there", {"type": "optional", "selector-field-location": by,
                   "selector-field-ranges": [[2, 7]], "field-class": number(8)}))
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert ("by copies, added: 'event.fields.list_length', 'event.fields.text_length', "
            "'event.fields.there_selector'\n") in result.err
    fields = fields_of(kymo, tmp_path / "out")
    assert list(fields) == ["sel", "either", "list_length", "list", "text_length", "text",
                            "there_selector", "there"]
    assert fields["list"] == [10, 11] and fields["text"] == "xy" and fields["there"] == 3
    assert fields["list_length"] == fields["text_length"] == 2
    assert fields["there_selector"] == {"value": 2, "labels": ["present"]}
    assert "list_length = 2" in peers_read(kymo, peer, tmp_path / "out")


def test_a_length_in_an_option_that_is_not_there(kymo, peer, tmp_path):
    """An event does not take the length of the event before it."""
    either = {"type": "variant", "selector-field-location": {"path": ["sel"]}, "options": [
        {"selector-field-ranges": [[0, 0]], "field-class": structure(("other", number(8)))},
        {"selector-field-ranges": [[1, 1]], "field-class": structure(("n", number(16)))}]}
    trace = one_event(
        tmp_path / "t", b"\1\2\0\7\x08" + b"\0\x09" + b"\1\1", ("sel", number(8)),
        ("either", either),
        ("list", {"type": "dynamic-length-array", "length-field-location": {"path": ["either", "n"]},
                  "element-field-class": number(8)}))
    wrong = "field list: 'either.n', which it needs, is not there (at byte 7, packet 0, event 1)"
    for command in (["print"], ["print", "--count"], ["convert", "--to", "json"]):
        result = kymo(*command, trace, code=1)
        assert wrong in result.err and len(result.out.splitlines()) == 1
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace, code=1)
    assert wrong in result.err and "'event.fields.list_length'" in result.err
    assert fields_of(kymo, tmp_path / "out")["list"] == [7, 8]
    peers_read(kymo, peer, tmp_path / "out")


def test_an_optional_field_that_no_value_selects(kymo, tmp_path):
    optional = {"type": "optional", "selector-field-location": {"path": ["n"]},
                "selector-field-ranges": [[-9, -1]], "field-class": number(8)}
    trace = one_event(tmp_path / "t", b"\1\2\3", ("n", number(8)), ("o", optional))
    assert len(kymo("print", trace).out.splitlines()) == 3


def test_one_selector_of_several(kymo, peer, tmp_path):
    by = {"selector-field-location": {"path": ["sel"]}}

    def optional(ranges):
        return {"type": "optional", **by, "selector-field-ranges": ranges, "field-class": number(8)}

    def variant(*names):
        return {"type": "variant", **by, "options": [
            {**({"name": name} if name is not None else {}),
             "selector-field-ranges": [[2 * i, 2 * i + 1]], "field-class": number(8)}
            for i, name in enumerate(names)]}

    trace = one_event(
        tmp_path / "t", bytes([2, 20, 21, 22, 23, 24]),
        ("sel", number(8, mappings={"low": [[0, 2]]})), ("o", optional([[0, 2]])),
        ("other", optional([[2, 2], [9, 9]])), ("no", optional([[9, 9]])),
        ("v", variant("a", "b")), ("w", variant("struct", "a b", "a-b")),
        ("u", variant(None, "_x", "x")))
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert result.err.count("_selector'") == 6
    fields = fields_of(kymo, tmp_path / "out")
    assert fields["sel"] == {"value": 2, "labels": ["low"]}
    assert [fields[name] for name in ("o", "other", "v", "w", "u")] == [20, 21, 22, 23, 24]
    assert not fields["no"]
    assert all(fields[name]["value"] == 2 for name in fields if name.endswith("_selector"))
    peers_read(kymo, peer, tmp_path / "out")


def location(origin, *path):
    return {"origin": origin, "path": list(path)}


def far_trace(path):
    """Lengths and selectors in other scopes, in structures beside, and further out."""
    payload = "event-record-payload"

    def variant(*where):
        return {"type": "variant", "selector-field-location": location(*where), "options": [
            {"name": "a", "selector-field-ranges": [[0, 0]], "field-class": number(8)},
            {"name": "b", "selector-field-ranges": [[1, 5]], "field-class": number(16)}]}

    def optional(*where):
        return {"type": "optional", "selector-field-location": location(*where),
                "selector-field-ranges": [[1, 5]], "field-class": number(8)}

    def listed(*where):
        return {"type": "dynamic-length-array", "length-field-location": location(*where),
                "element-field-class": number(8)}

    places = [("packet-context", "p"), ("event-record-header", "h"),
              ("event-record-common-context", "c"), ("event-record-common-context", "in", "n"),
              ("event-record-specific-context", "x"), (payload, "s", "t")]
    fields = [("s", structure(("t", number(8)), ("shadow", number(8)))), ("shadow", number(8))]
    for i, place in enumerate(places):
        fields += [(f"v{i}", variant(*place)), (f"o{i}", optional(*place)), (f"q{i}", listed(*place))]
    fields += [("w", structure(("shadow", number(8)), ("v", variant(payload, "shadow")),
                               ("o", optional(payload, "s", "t")), ("q", listed(payload, "s", "t"))))]
    each = b"".join((b"\x11", b"\x22\x33")[n > 0] + b"\x44" * (n > 0) + b"q" * n
                    for n in (1, 0, 2, 1, 0, 3))
    event = b"\0\2\1\0" + b"\3\7\1" + each + b"\0" + b"\x22\x33" + b"\x44" + b"qqq"
    return write(path, [
        {"type": "preamble", "version": 2},
        {"type": "data-stream-class", "packet-context-field-class": structure(("p", number(8))),
         "event-record-header-field-class": structure(("h", number(8))),
         "event-record-common-context-field-class": structure(
             ("c", number(8)), ("in", structure(("n", number(8)))))},
        {"type": "event-record-class", "name": "e",
         "specific-context-field-class": structure(("x", number(8))),
         "payload-field-class": structure(*fields)},
    ], [("s", b"\1" + 2 * event)])


def test_selectors_elsewhere(kymo, peer, tmp_path):
    """Babeltrace finds selectors of variants, by one name, in the same structure only."""
    trace = far_trace(tmp_path / "t")
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert result.err.count("_selector'") == 14
    peers_read(kymo, peer, tmp_path / "out")
    want = [json.loads(line) for line in kymo("convert", "--to", "json", trace).out.splitlines()]
    got = [json.loads(line) for line in
           kymo("convert", "--to", "json", tmp_path / "out").out.splitlines()]
    assert len(want) == 2
    for line, one in zip(got, want):
        fields = line["fields"]
        for inner in (fields, fields["w"]):
            for name in [name for name in inner if name.endswith("_selector")]:
                del inner[name]
            for name in inner:
                # An optional field that is not there is an option without fields.
                if name[0] == "o" and inner[name] == {}:
                    inner[name] = None
        assert line == one


def test_selectors_that_need_no_copy(kymo, tmp_path):
    """Labels that select the same options, and a second field that is there like the first."""
    by = {"selector-field-location": {"path": ["sel"]}}
    choice = {"type": "variant", **by, "options": [
        {"name": name, "selector-field-ranges": [[i, i]], "field-class": number(8)}
        for i, name in enumerate(("a", "b"))]}
    there = {"type": "optional", "selector-field-location": {"path": ["yes"]},
             "selector-field-ranges": [[1, 4]], "field-class": number(8)}
    trace = one_event(tmp_path / "t", bytes([1, 7, 8, 2, 9, 10]),
                      ("sel", number(8, mappings={"a": [[0, 0]], "b": [[1, 1]], "c": [[2, 9]]})),
                      ("v", choice), ("w", choice), ("yes", number(8)), ("p", there), ("q", there))
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert not result.err
    assert list(fields_of(kymo, tmp_path / "out")) == ["sel", "v", "w", "yes", "p", "q"]
    assert (tmp_path / "out" / "s").read_bytes() == (tmp_path / "t" / "s").read_bytes()


def test_names_in_the_environment(kymo, peer, tmp_path):
    names = {"a name": 1, "a-name": "two", "a_name": 3, "": 4, "7": "five", "struct": 6, "ok": "y"}
    trace = one_event(tmp_path / "t", b"\1", ("n", number(8)), environment=names)
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert "CTF 1.8 allows identifiers only: 'env.a name' is called 'a_name_'" in result.err
    env = json.loads(kymo("info", "--json", tmp_path / "out").out)["traces"][0]["environment"]
    assert env == {"a_name_": 1, "a_name__": "two", "a_name": 3, "_": 4, "_7": "five",
                   "_struct": 6, "ok": "y"}
    peers_read(kymo, peer, tmp_path / "out")


def test_many_names_of_the_same_letters(kymo, tmp_path):
    """Time and memory stay in proportion."""
    names = ["-" * 20 + chr(0x4e00 + i) for i in range(3000)]
    trace = one_event(tmp_path / "t", bytes(3000), *((name, number(8)) for name in names))
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert len(fields_of(kymo, tmp_path / "out")) == 3000


# ---- attributes ---------------------------------------------------------------------------------

def with_attributes():
    """A draft, so that converting it to CTF 2 writes the metadata anew; attributes everywhere."""
    def of(name):
        return {"attributes": {"n.s": {name: [1, -2.5, True, None, {"\u00e9\n": 18446744073709551615}]}}}

    byte = {"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"}
    variant = {"type": "variant", "selector-field-location": {"path": ["b"]}, **of("variant"),
               "options": [{"name": "x", "selector-field-ranges": [[0, 255]], **of("option"),
                            "field-class": "alias"}]}
    members = [{"name": "b", "field-class": {**byte, **of("field")}, **of("member")},
               {"name": "alias", "field-class": "alias"}, {"name": "v", "field-class": variant}]
    return [
        {"type": "preamble", "version": 2, **of("preamble")},
        {"type": "trace-class", **of("trace")},
        {"type": "field-class-alias", "name": "alias", "field-class": {**byte, **of("aliased")},
         **of("alias")},
        {"type": "field-class-alias", "name": "again", "field-class": "alias"},
        {"type": "clock-class", "name": "c", "frequency": 1000, **of("clock")},
        {"type": "data-stream-class", "default-clock-class-name": "c", **of("stream"),
         "packet-context-field-class": {"type": "structure", **of("context")}},
        {"type": "event-record-class", "name": "e", "attributes": {
            "n.s": {"event": 1}, "lttng.org,2009": {"more": 2, "log-level": 3, "emf-uri": "u"}},
         "payload-field-class": {"type": "structure", "member-classes": members}},
        {"type": "event-record-class", "id": 1, "name": "plain",
         "attributes": {"lttng.org,2009": {"log-level": 4}}},
        {"type": "event-record-class", "id": 2, "name": "none", "attributes": {}},
    ]


def attributes_of(fragments):
    """All attributes, by the way that leads to them; aliases unfolded."""
    found = {}

    def visit(value, path):
        if isinstance(value, str) and value == "alias" and path[-1] == "field-class":
            value = fragments[2]["field-class"]
        if isinstance(value, dict):
            if value.get("attributes"):
                found[path] = value["attributes"]
            for key, item in value.items():
                if key != "attributes":
                    visit(item, path + (key,))
        elif isinstance(value, list):
            for i, item in enumerate(value):
                visit(item, path + (i,))

    for fragment in fragments:
        if fragment["type"] != "field-class-alias":
            visit(fragment, (fragment["type"], fragment.get("id", 0)
                             if fragment["type"] == "event-record-class" else 0))
    return found


def test_attributes_stay(kymo, tmp_path):
    fragments = with_attributes()
    trace = write(tmp_path / "t", fragments, ())
    kymo("convert", "--to", "ctf2", "-o", tmp_path / "out", trace)
    written = fragments_of(tmp_path / "out")
    assert "default-clock-class-name" not in str(written)
    assert written[1:3] == fragments[2:4]
    del written[1:3]
    assert attributes_of(written) == attributes_of(fragments) and len(attributes_of(written)) == 13
    out = kymo("convert", "--to", "details", tmp_path / "out").out
    assert out.count("attributes {") == 12 and out.count('"\\u00e9') == 0 and "é\\u000a" in out
    assert 'event class 0 "e", log level 3, model u, attributes {"lttng.org,2009": {"more": 2}' in out
    assert 'event class 1 "plain", log level 4\n' in out


def test_attributes_of_aliases_take_memory_once(kymo, tmp_path):
    """A megabyte that is meant ten thousand times."""
    byte = {"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian",
            "attributes": {"n.s": "x" * 1000000}}
    members = [{"name": f"f{i}", "field-class": "a"} for i in range(10000)]
    trace = write(tmp_path / "t", [
        {"type": "preamble", "version": 2},
        {"type": "field-class-alias", "name": "a", "field-class": byte},
        {"type": "data-stream-class"},
        {"type": "event-record-class", "name": "e",
         "payload-field-class": {"type": "structure", "member-classes": members}}], ())
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert ("attributes repeated by aliases go beyond 64 MiB; those of 9934 classes are left out\n"
            in result.err)


def test_what_is_no_utf8(kymo, tmp_path):
    """JSON is UTF-8, texts of CTF 1.8 may be anything."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "metadata").write_bytes(
        b"/* CTF 1.8 */ typealias integer { size = 8; } := u8;\n"
        b'trace { major = 1; minor = 8; byte_order = le; }; env { host = "h\xe9"; };\n'
        b'event { name = "n\xe9\xc3\xa9"; fields := struct { enum : u8 { "l\xe9" = 1 } x; }; };\n')
    (tmp_path / "in" / "s").write_bytes(b"\1\2")
    kymo("convert", "--to", "ctf2", "-o", tmp_path / "out", tmp_path / "in")
    assert kymo("convert", "--to", "json", tmp_path / "out").out == \
        kymo("convert", "--to", "json", tmp_path / "in").out
    (tmp_path / "out" / "metadata").read_text()


# ---- ids that no header tells ---------------------------------------------------------------------

def test_classes_that_nothing_can_be_of(kymo, peer, tmp_path):
    """In CTF 2 an id that no header tells is 0; in CTF 1.8 there is one class then."""
    trace = write(tmp_path / "t", [
        {"type": "preamble", "version": 2},
        {"type": "data-stream-class", "id": 3},
        {"type": "data-stream-class"},
        {"type": "event-record-class", "data-stream-class-id": 3, "name": "of 3",
         "payload-field-class": structure(("x", number(8)))},
        {"type": "event-record-class", "id": 7, "name": "seventh",
         "payload-field-class": structure(("y", number(64)))},
        {"type": "event-record-class", "name": "e", "payload-field-class": structure(
            ("n", number(8)), ("leb", {"type": "variable-length-unsigned-integer"}))},
    ], [("s", b"\1\2\3\4")])
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert "left out: event of 3, event seventh, stream 3\n" in result.err
    want = kymo("convert", "--to", "json", trace).out
    assert kymo("convert", "--to", "json", tmp_path / "out").out == want
    assert len(want.splitlines()) == 2
    peers_read(kymo, peer, tmp_path / "out")


def test_a_stream_without_events(kymo, peer, tmp_path):
    trace = write(tmp_path / "t", [{"type": "preamble", "version": 2}, {"type": "data-stream-class"}],
                  [("s", b"")])
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert peers_read(kymo, peer, tmp_path / "out") == ""


def test_ids_that_no_header_tells(kymo, tmp_path):
    """The only class of CTF 1.8 may have any id; in CTF 2 it is 0."""
    path = tmp_path / "t"
    path.mkdir()
    (path / "metadata").write_text("""/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
stream { id = 5; };
event { name = "e"; id = 9; stream_id = 5; fields := struct { integer { size = 8; } n; }; };
""")
    (path / "s").write_bytes(b"\1\2")
    for select in ([], ["--event", "e"]):
        out = tmp_path / f"out{len(select)}"
        kymo("convert", "--to", "ctf2", *select, "-o", out, path)
        assert kymo("print", out).out == kymo("print", path).out == "e: { n = 1 }\ne: { n = 2 }\n"
    text = (path / "metadata").read_text()
    (path / "metadata").write_text(text.replace("stream {", """clock { name = c; };
stream { event.header := struct { integer { size = 8; map = clock.c.value; } t; };"""))
    for to in ("ctf1.8", "ctf2"):
        kymo("convert", "--to", to, "--clock-offset", "1000000000", "-o", tmp_path / to, path)
        assert kymo("print", "--clock-cycles", tmp_path / to).out.endswith("e: { n = 2 }\n")
