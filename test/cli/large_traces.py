# SPDX-License-Identifier: MIT
"""Traces with very many of one thing, in CTF 1.8 and CTF 2: what reads them may do work in proportion, not more.

    MAKERS[name](path, n)   makes a trace, or several below path, with n of what the name says
"""

import functools
import json
import os
import struct

UUID = bytes(range(16))
UUID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"


# ---- CTF 1.8 ----

def tsdl_head(extra=""):
    return f"""/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
trace {{
	major = 1; minor = 8; uuid = "{UUID_TEXT}"; byte_order = le;
	packet.header := struct {{ uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }};
}};
{extra}"""


def tsdl_stream(context="uint64_t timestamp_begin; uint64_t timestamp_end;", header="uint32_t id;"):
    return f"""stream {{
	id = 0;
	packet.context := struct {{ {context} }};
	event.header := struct {{ {header} }};
}};
"""


def tsdl_event(fields, number=0, name="e"):
    return f"""event {{ name = "{name}{number}"; id = {number}; stream_id = 0; fields := struct {{ {fields} }}; }};
"""


def labels(n):
    return tsdl_event("enum : uint32_t { %s } f;" % ", ".join(f"L{i} = {i}" for i in range(n)))


def ranges(n):
    """All of one label."""
    return tsdl_event("enum : uint32_t { %s } f;" % ", ".join(f"L = {2 * i}" for i in range(n)))


def overlaps(n):
    """Labels of the same number."""
    return tsdl_event("enum : uint32_t { %s } f;" % ", ".join(f"L{i} = 7" for i in range(n)))


def fields(n):
    return tsdl_event(" ".join(f"uint8_t f{i};" for i in range(n)))


def strings(n):
    return tsdl_event(" ".join(f"string f{i};" for i in range(n)))


def sequences(n):
    return tsdl_event("uint8_t n; " + " ".join(f"uint8_t f{i}[n];" for i in range(n)))


def lengths(n):
    return tsdl_event(" ".join(f"uint8_t n{i}; uint8_t f{i}[n{i}];" for i in range(n)))


def structs(n):
    return tsdl_event(" ".join("struct { uint8_t a; } f%d;" % i for i in range(n)))


def options(n):
    return tsdl_event("enum : uint32_t { %s } tag; variant <tag> { %s } v;" %
                      (", ".join(f"o{i}" for i in range(n)),
                       " ".join(f"uint8_t o{i};" for i in range(n))))


def variants(n):
    return tsdl_event("enum : uint8_t { a, b } tag; " + " ".join(
        "variant <tag> { uint8_t a; string b; } v%d;" % i for i in range(n)))


def events(n):
    return "".join(tsdl_event("uint8_t f;", i) for i in range(n))


def same_events(n):
    """Of one name."""
    return "".join(tsdl_event("uint8_t f;", i).replace(f'"e{i}"', '"e"') for i in range(n))


def aliases(n):
    return tsdl_event("t0 f0; t%d f1;" % (n - 1))


def alias_text(n):
    return "".join("typealias integer { size = 8; align = 8; } := t%d;\n" % i for i in range(n))


def named_structs(n):
    return tsdl_event("struct s0 f0; struct s%d f1;" % (n - 1))


def struct_text(n):
    return "".join("struct s%d { uint8_t a; };\n" % i for i in range(n))


def environment(n):
    return "env { %s };\n" % " ".join(f'v{i} = "x";' for i in range(n))


def clocks(n):
    return "".join('clock { name = c%d; freq = 1000; };\n' % i for i in range(n))


def streams(n):
    return "".join("stream { id = %d; event.header := struct { uint32_t id; }; };\n" % i
                   for i in range(1, n))


TSDL = {
    "labels": ("", labels), "ranges": ("", ranges), "overlaps": ("", overlaps), "fields": ("", fields),
    "strings": ("", strings), "sequences": ("", sequences), "lengths": ("", lengths),
    "structs": ("", structs), "options": ("", options), "variants": ("", variants),
    "events": ("", events), "same-events": ("", same_events), "aliases": (alias_text, aliases),
    "named-structs": (struct_text, named_structs), "environment": (environment, lambda n: fields(1)),
    "clocks": (clocks, lambda n: fields(1)), "streams": (streams, lambda n: fields(1)),
}


def packet(body):
    content = 4 + 16 + 4 + 16 + len(body)
    return struct.pack("<I16sIQQ", 0xC1FC1FC1, UUID, 0, 0, 1) + body if content else b""


def make_tsdl(path, n, kind):
    """A trace with @n of @kind, and an empty packet."""
    before, after = TSDL[kind]
    os.makedirs(path)
    with open(os.path.join(path, "metadata"), "w", encoding="ascii") as file:
        file.write(tsdl_head(before(n) if before else "") + tsdl_stream() + after(n))
    with open(os.path.join(path, "channel0_0"), "wb") as file:
        file.write(packet(b""))


# ---- CTF 2 ----

def uint(bits=8, **more):
    return {"type": "fixed-length-unsigned-integer", "length": bits, "byte-order": "little-endian", **more}


def structure(members):
    return {"type": "structure", "member-classes": [
        {"name": name, "field-class": cls} for name, cls in members]}


def event2(cls, number=0, **more):
    return {"type": "event-record-class", "id": number, "name": f"e{number}",
            "payload-field-class": cls, **more}


def place(name):
    return {"origin": "event-record-payload", "path": [name]}


def labels2(n):
    return [event2(structure([("f", uint(32, mappings={f"L{i}": [[i, i]] for i in range(n)}))]))]


def ranges2(n):
    return [event2(structure([("f", uint(32, mappings={"L": [[2 * i, 2 * i] for i in range(n)]}))]))]


def flags2(n):
    cls = {"type": "fixed-length-bit-map", "length": 64, "byte-order": "little-endian",
           "flags": {f"F{i}": [[i % 64, i % 64]] for i in range(n)}}
    return [event2(structure([("f", cls)]))]


def fields2(n):
    return [event2(structure([(f"f{i}", uint()) for i in range(n)]))]


def odd_names2(n):
    """Names that CTF 1.8 does not have."""
    return [event2(structure([(f"f {i}", uint()) for i in range(n)]))]


def varints2(n):
    return [event2(structure([(f"f{i}", {"type": "variable-length-unsigned-integer"}) for i in range(n)]))]


def optionals2(n):
    return [event2(structure([("tag", {"type": "fixed-length-boolean", "length": 8,
                                       "byte-order": "little-endian"})] + [
        (f"f{i}", {"type": "optional", "selector-field-location": place("tag"), "field-class": uint()})
        for i in range(n)]))]


def options2(n):
    return [event2(structure([("tag", uint(32)), ("v", {
        "type": "variant", "selector-field-location": place("tag"), "options": [
            {"name": f"o{i}", "selector-field-ranges": [[i, i]], "field-class": uint()}
            for i in range(n)]})]))]


def option_ranges2(n):
    return [event2(structure([("tag", uint(32)), ("v", {
        "type": "variant", "selector-field-location": place("tag"), "options": [
            {"name": "o", "selector-field-ranges": [[2 * i, 2 * i] for i in range(n)],
             "field-class": uint()},
            {"name": "p", "selector-field-ranges": [[2 * i + 1, 2 * i + 1] for i in range(n)],
             "field-class": uint()}]})]))]


def blobs2(n):
    return [event2(structure([("n", uint())] + [
        (f"f{i}", {"type": "dynamic-length-blob", "length-field-location": place("n")}) for i in range(n)]))]


def var_lengths2(n):
    members = []
    for i in range(n):
        members += [(f"n{i}", {"type": "variable-length-unsigned-integer"}),
                    (f"f{i}", {"type": "dynamic-length-array", "element-field-class": uint(),
                               "length-field-location": place(f"n{i}")})]
    return [event2(structure(members))]


def roles2(n):
    return [event2(structure([("f", uint())]))]


def events2(n):
    return [event2(structure([("f", uint())]), i) for i in range(n)]


def named2(n):
    return [{"type": "field-class-alias", "name": f"t{i}", "field-class": uint()} for i in range(n)] + [
        event2(structure([(f"f{i}", f"t{i}") for i in range(n)]))]


def streams2(n):
    return [event2(structure([("f", uint())]))] + [
        {"type": "data-stream-class", "id": i} for i in range(1, n)]


def clocks2(n):
    return [{"type": "clock-class", "id": f"c{i}", "name": f"c{i}", "frequency": 1000} for i in range(n)] + \
        events2(1)


def attributes2(n):
    return [event2(structure([("f", uint())]), attributes={"x": {f"a{i}": i for i in range(n)}})]


def environment2(n):
    return events2(1)


CTF2 = {
    "labels": labels2, "ranges": ranges2, "flags": flags2, "fields": fields2, "odd-names": odd_names2,
    "varints": varints2, "optionals": optionals2, "options": options2, "option-ranges": option_ranges2,
    "blobs": blobs2, "var-lengths": var_lengths2, "events": events2, "named": named2,
    "streams": streams2, "clocks": clocks2, "attributes": attributes2, "environment": environment2,
}


def make_ctf2(path, n, kind):
    trace_class = {"type": "trace-class", "packet-header-field-class": structure([
        ("magic", uint(32, roles=["packet-magic-number"])),
        ("stream", uint(32, roles=["data-stream-class-id"]))])}
    if kind == "environment":
        trace_class["environment"] = {f"v{i}": "x" for i in range(n)}
    fragments = [{"type": "preamble", "version": 2}, trace_class]
    made = CTF2[kind](n)
    early = [f for f in made if f["type"] in ("field-class-alias", "clock-class")]
    fragments += early + [{"type": "data-stream-class", "id": 0, "event-record-header-field-class":
                           structure([("id", uint(32, roles=["event-record-class-id"]))])}]
    fragments += [f for f in made if f not in early] if len(early) < 10 else made[len(early):]
    os.makedirs(path)
    with open(os.path.join(path, "metadata"), "w", encoding="ascii") as file:
        file.write("".join("\x1e" + json.dumps(fragment) + "\n" for fragment in fragments))
    with open(os.path.join(path, "data"), "wb") as file:
        file.write(struct.pack("<II", 0xC1FC1FC1, 0))


# ---- data ----

def data_packet(time, n_events=1, magic=0xC1FC1FC1):
    body = struct.pack("<IB", 0, 1) * n_events
    bits = (48 + len(body)) * 8
    return struct.pack("<I16sIQQII", magic, UUID, 0, time, time + 1, bits, bits) + body


def make_data(path, packets):
    """A trace of one file for each item of packets, which is a list of packets."""
    os.makedirs(path)
    with open(os.path.join(path, "metadata"), "w", encoding="ascii") as file:
        file.write(tsdl_head() + tsdl_stream(
            "uint64_t timestamp_begin; uint64_t timestamp_end; uint32_t content_size; uint32_t packet_size;")
            + fields(1))
    for i, some in enumerate(packets):
        with open(os.path.join(path, f"data{i}"), "wb") as file:
            file.write(b"".join(some))


def packets(path, n):
    make_data(path, [(data_packet(i, 0) for i in range(n))])


def late_packets(path, n):
    make_data(path, [(data_packet(n - i) for i in range(n))])


def torn_packets(path, n):
    """Every second one cannot be read."""
    make_data(path, [(data_packet(i, magic=0xC1FC1FC1 if i % 2 else 0) for i in range(n))])


def files(path, n):
    make_data(path, [[data_packet(i)] for i in range(n)])


def empty_files(path, n):
    make_data(path, [[]] * n)


def traces(path, n):
    """With one identity, at the same time: they are not places of one trace."""
    for i in range(n):
        make_data(os.path.join(path, str(i)), [[data_packet(i % 2)]])


def index(path, n):
    packets(path, n)
    size_bytes = len(data_packet(0, 0))
    os.mkdir(os.path.join(path, "index"))
    with open(os.path.join(path, "index", "data0.idx"), "wb") as file:
        file.write(struct.pack(">IIII", 0xC1F1DCC1, 1, 1, 72))
        for i in range(n):
            file.write(struct.pack(">9Q", i * size_bytes, size_bytes * 8, size_bytes * 8, i, i + 1, 0, 0, 0, i))


METADATA = {f"tsdl-{kind}": functools.partial(make_tsdl, kind=kind) for kind in TSDL} | {
    f"ctf2-{kind}": functools.partial(make_ctf2, kind=kind) for kind in CTF2}
DATA = {"packets": packets, "late-packets": late_packets, "torn-packets": torn_packets, "files": files,
        "empty-files": empty_files, "traces": traces, "index": index}
MAKERS = METADATA | DATA
