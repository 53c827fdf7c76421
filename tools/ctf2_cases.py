# SPDX-License-Identifier: MIT
"""The CTF 2 traces of tools/make-test-traces: a small one for each rule of CTF2-SPEC-2.0.

Like the others written by hand from the specification: (name, reason, files, metadata).
"""

import json
import struct

LE, BE = "little-endian", "big-endian"
UUID = list(range(0x10, 0x20))


def uint(bits=8, order=LE, signed=False, **more):
    kind = "signed" if signed else "unsigned"
    more = {key.replace("_", "-"): value for key, value in more.items()}
    return {"type": f"fixed-length-{kind}-integer", "length": bits, "byte-order": order, **more}


def fixed(kind, bits, order=LE, **more):
    more = {key.replace("_", "-"): value for key, value in more.items()}
    return {"type": f"fixed-length-{kind}", "length": bits, "byte-order": order, **more}


def leb(signed=False, **more):
    kind = "signed" if signed else "unsigned"
    return {"type": f"variable-length-{kind}-integer", **more}


def struct_of(*members, **more):
    """Members are (name, class) pairs."""
    more = {key.replace("_", "-"): value for key, value in more.items()}
    return {"type": "structure",
            "member-classes": [{"name": name, "field-class": cls} for name, cls in members], **more}


def at(*path, origin=None):
    return {"path": list(path)} if origin is None else {"origin": origin, "path": list(path)}


def array(element, length, **more):
    more = {key.replace("_", "-"): value for key, value in more.items()}
    if isinstance(length, dict):
        return {"type": "dynamic-length-array", "element-field-class": element,
                "length-field-location": length, **more}
    return {"type": "static-length-array", "element-field-class": element, "length": length, **more}


def text(length=None, encoding=None):
    more = {} if encoding is None else {"encoding": encoding}
    if length is None:
        return {"type": "null-terminated-string", **more}
    if isinstance(length, dict):
        return {"type": "dynamic-length-string", "length-field-location": length, **more}
    return {"type": "static-length-string", "length": length, **more}


def blob(length, **more):
    more = {key.replace("_", "-"): value for key, value in more.items()}
    if isinstance(length, dict):
        return {"type": "dynamic-length-blob", "length-field-location": length, **more}
    return {"type": "static-length-blob", "length": length, **more}


def optional(cls, where, ranges=None):
    more = {} if ranges is None else {"selector-field-ranges": ranges}
    return {"type": "optional", "field-class": cls, "selector-field-location": where, **more}


def variant(where, *options):
    """Options are (name or None, ranges, class)."""
    out = []
    for name, ranges, cls in options:
        option = {"field-class": cls, "selector-field-ranges": ranges}
        out.append(option if name is None else {"name": name, **option})
    return {"type": "variant", "selector-field-location": where, "options": out}


def fragment(kind, **properties):
    body = {"type": kind, **{key.replace("_", "-"): value for key, value in properties.items()}}
    return "\x1e" + json.dumps(body) + "\n"


def preamble(**more):
    return fragment("preamble", version=2, **more)


def event(*members, **more):
    return fragment("event-record-class", payload_field_class=struct_of(*members), **more)


def plain(*members, **more):
    """Metadata of one stream class with one event class and no headers at all."""
    return preamble() + fragment("data-stream-class") + event(*members, name="e", **more)


CLOCK = {"id": "c", "frequency": 1000000000, "origin": "unix-epoch"}


def timed(stamp, *members, clock=None, context=None):
    stream = {"default_clock_class_id": "c",
              "event_record_header_field_class": struct_of(("t", stamp))}
    if context:
        stream["packet_context_field_class"] = context
    return preamble() + fragment("clock-class", **{**CLOCK, **(clock or {})}) + \
        fragment("data-stream-class", **stream) + event(*members, name="e")


STAMP = "default-clock-timestamp"
HEADER = struct_of(("magic", uint(32, roles=["packet-magic-number"])),
                   ("uuid", blob(16, roles=["metadata-stream-uuid"])),
                   ("class", uint(8, roles=["data-stream-class-id"])),
                   ("stream", uint(8, roles=["data-stream-id"])))
CONTEXT = struct_of(("total", uint(16, roles=["packet-total-length"])),
                    ("content", uint(16, roles=["packet-content-length"])),
                    ("begin", uint(32, roles=[STAMP])),
                    ("end", uint(32, roles=["packet-end-default-clock-timestamp"])),
                    ("lost", uint(8, roles=["discarded-event-record-counter-snapshot"])),
                    ("seq", uint(8, roles=["packet-sequence-number"])),
                    ("cpu_id", uint(8)))
EVENT_HEADER = struct_of(("id", uint(8, roles=["event-record-class-id"])),
                         ("t", uint(16, roles=[STAMP])))


def full_metadata(uuid=True, header=HEADER):
    """All six scopes, all roles, two stream classes, two event classes in one of them."""
    return preamble(**({"uuid": UUID} if uuid else {})) + \
        fragment("trace-class", name="tr", environment={"hostname": "box", "n": -3},
                 packet_header_field_class=header) + \
        fragment("clock-class", **CLOCK, offset_from_origin={"seconds": 1600000000, "cycles": 5}) + \
        "".join(fragment("data-stream-class", id=i, default_clock_class_id="c",
                         packet_context_field_class=CONTEXT,
                         event_record_header_field_class=EVENT_HEADER,
                         event_record_common_context_field_class=struct_of(("n", uint())))
                for i in (0, 7)) + \
        event(("a", array(uint(), at("n", origin="event-record-common-context"))), name="first",
              specific_context_field_class=struct_of(("k", uint()))) + \
        event(("b", array(uint(), at("k", origin="event-record-specific-context"))), name="second",
              id=200, specific_context_field_class=struct_of(("k", uint()))) + \
        event(("c", array(uint(), at("seq", origin="packet-context"))), name="third",
              data_stream_class_id=7)


def packet(cls, stream, begin, end, body, lost=0, seq=0, pad=0, magic=0xC1FC1FC1, uuid=UUID):
    size = 22 + 15 + len(body)
    return struct.pack("<I", magic) + bytes(uuid) + bytes([cls, stream]) + \
        struct.pack("<HHII", (size + pad) * 8, size * 8, begin, end) + \
        bytes([lost, seq, 3]) + body + bytes(pad)


def pmeta(content, version=(2, 0), order="<", header=44, uuid=bytes(range(16)), pad=0):
    """One packet of packetized metadata: 37 bytes of header, or CTF 2's 44."""
    content = content.encode() if isinstance(content, str) else content
    size = header + len(content)
    out = struct.pack(order + "I", 0x75D11D57) + uuid + \
        struct.pack(order + "III", 0, size * 8, (size + pad) * 8) + bytes([0, 0, 0, *version])
    if header == 44:
        out += bytes(3) + struct.pack(order + "I", 44 * 8)
    return out + content + bytes(pad)


def ok():
    first = packet(0, 1, 100, 300, b"\0\x64\0" + b"\2\1" + b"\x0a\x0b" +
                   b"\xc8\x65\0" + b"\1\3" + b"\1\2\3", pad=9)
    second = packet(0, 1, 65500, 65600, b"\0\x04\0" + b"\0\0", lost=4, seq=2)
    other = packet(7, 1, 150, 200, b"\0\x96\0" + b"\0" + b"\x2a", seq=1)
    yield "ctf2-scopes", "All scopes and roles; lengths from three other scopes; 16-bit time " \
        "stamps that wrap; 4 events and 1 packet lost.", {"s_0": first + second, "s_1": other}, \
        full_metadata()
    yield "ctf2-end-before-begin", "A packet that ends before it begins: delivered all the same.", \
        {"s": packet(0, 1, 400, 300, b"\0\xc8\x01" + b"\1\1" + b"\x0b")}, full_metadata()
    yield "ctf2-integers", "Integers in both byte and bit orders, unaligned, of 1 to 128 bits, " \
        "in four bases.", {"s": b"\x5d\x80\x12\x34\x34\x12" + b"\1\1" +
                           b"\xff" * 8 + bytes(range(1, 17)) + b"\xab\xab\xab"}, plain(
            ("bits3", uint(3)), ("bits5", uint(5, signed=True)), ("low", uint(8, signed=True)),
            ("be16", uint(16, BE)), ("le16", uint(16)),
            ("msb", uint(8, BE, bit_order="last-to-first")),
            ("lsb", uint(8, BE, bit_order="first-to-last")), ("u64", uint(64)),
            ("u128", uint(128, BE)), ("hex", uint(8, preferred_display_base=16)),
            ("oct", uint(8, preferred_display_base=8)), ("bin", uint(8, preferred_display_base=2)))
    yield "ctf2-alignment", "Alignment: of numbers, minimum of structures and arrays, 8 for " \
        "strings and LEB128, none of its own for an optional one; an empty array and structure " \
        "align.", {"s": b"\1\0\0\0\2\0\0\0" + b"\1" + b"\x05" + b"a\0" + b"\1\0\0\0" + b"\7\0\0\0" +
                   b"\6" + bytes(3) + b"\x09"}, plain(
            ("a", uint(3)), ("b", uint(32, alignment=32)), ("c", uint(1)), ("leb", leb()),
            ("s", text()), ("sel", fixed("boolean", 1)),
            ("o", optional(uint(32, alignment=32), at("sel"))), ("z", uint(3)),
            ("none", array(uint(32, alignment=64), 0)), ("last", uint()))
    yield "ctf2-leb128", "LEB128: one byte, several, signed, 64 bits, padded beyond that.", \
        {"s": b"\x7f" + b"\xb4\xc7\x72" + b"\xb4\xc7\x72" + b"\xff" * 9 + b"\x01" +
         b"\x80" * 9 + b"\x7f" + b"\x85" + b"\x80" * 10 + b"\0" + b"\xff" * 11 + b"\x7f"}, \
        plain(("one", leb()), ("three", leb()), ("signed", leb(True)), ("max", leb()),
              ("min", leb(True)), ("padded", leb()), ("minus", leb(True)))
    yield "ctf2-floats", "Floats of 16, 32, 64, 128 and 160 bits, and both bit orders.", \
        {"s": struct.pack("<efd", 1.5, -0.25, 1e100) + bytes(14) + b"\xff\x3f" + bytes(20) +
         struct.pack(">f", 2.5) + bytes(int(f"{b:08b}"[::-1], 2) for b in struct.pack(">f", 2.5))},\
        plain(("half", fixed("floating-point-number", 16)),
              ("single", fixed("floating-point-number", 32)),
              ("double", fixed("floating-point-number", 64)),
              ("quad", fixed("floating-point-number", 128)),
              ("wide", fixed("floating-point-number", 160)),
              ("be", fixed("floating-point-number", 32, BE)),
              ("mirrored", fixed("floating-point-number", 32, LE, bit_order="last-to-first")))
    yield "ctf2-bits", "Bit arrays, bit maps with overlapping flags, booleans up to 72 bits.", \
        {"s": b"\xa5" + b"\x0d" + b"\x80\0" + b"\0\0" + bytes(8) + b"\x80"}, plain(
            ("array", fixed("bit-array", 8)),
            ("map", fixed("bit-map", 8, flags={"low": [[0, 1]], "two": [[2, 2]], "x": [[2, 3], [7, 7]],
                                               "none": [[4, 6]]})),
            ("true", fixed("boolean", 16)), ("false", fixed("boolean", 16)),
            ("long", fixed("boolean", 72)))
    ranges = {"neg": [[-128, -1]], "small": [[0, 9]], "nine": [[9, 9], [100, 127]]}
    yield "ctf2-enums", "Mappings: signed, overlapping, none, the whole of 64 bits, of LEB128.", \
        {"s": b"\xff\x09\x0a\x64" + b"\xff" * 8 + struct.pack("<Q", 1 << 63) + b"\x03"}, plain(
            *((name, uint(8, signed=True, mappings=ranges)) for name in ("a", "b", "c", "d")),
            ("big", uint(64, mappings={"top": [[2**63, 2**64 - 1]], "last": [[2**64 - 1] * 2]})),
            ("low", uint(64, signed=True, mappings={"least": [[-2**63, -2**63]]})),
            ("var", leb(mappings={"three": [[3, 3]]})))
    beyond = [[-2**100, -1], [0, 3], [2, 2**80]]
    yield "ctf2-ranges", "Ranges that overlap, of any order and beyond 64 bits, and that no value can be " \
        "in; big numbers in attributes and the environment.", {"s": b"\2\xff\7\1\3" + b"\xfe\0\x09\2\4"}, \
        preamble(attributes={"t": [2**70, -2**70, 1e300]}) + \
        fragment("trace-class", environment={"big": 2**64, "top": 2**63, "low": -2**63}) + \
        fragment("data-stream-class") + event(
            ("u", uint(mappings={"any": beyond, "never": [[-9, -1], [2**64, 2**65]],
                                 "top": [[200, 2**64]]})),
            ("s", uint(8, signed=True, mappings={"any": beyond, "minus": [[-2**70, -1]],
                                                 "never": [[-2**90, -2**80]]})),
            ("n", uint()), ("v", variant(at("s"), ("low", [[-2**70, -1]], uint()),
                                         ("never", [[2**70, 2**71]], text()),
                                         ("high", [[0, 5], [3, 2**66]], uint()))),
            ("o", optional(uint(), at("u"), [[-5, -1]])), ("p", uint()),
            name="e")
    utf = "h\u00e9\U0001f600"
    yield "ctf2-texts", "Strings of all encodings, null-terminated, static and dynamic; bytes " \
        "behind NUL are padding.", \
        {"s": b"".join(utf.encode(e) + n for e, n in (("utf-8", b"\0"), ("utf-16-be", b"\0\0"),
                                                     ("utf-16-le", b"\0\0"), ("utf-32-be", bytes(4)),
                                                     ("utf-32-le", bytes(4)))) +
         b"ab\0xy" + b"\4" + b"cdef" + b"\6" + "gh".encode("utf-16-le") + b"\0\0" + b"\0"}, plain(
            *((e, text(None, e)) for e in ("utf-8", "utf-16be", "utf-16le", "utf-32be", "utf-32le")),
            ("static", text(5)), ("n", uint()), ("dynamic", text(at("n"))), ("m", uint()),
            ("wide", text(at("m"), "utf-16le")), ("z", uint()), ("empty", text(at("z"))))
    yield "ctf2-blobs", "BLOBs, static and dynamic, empty, with media types.", \
        {"s": b"\1\2\3" + b"\2" + b"\xfe\xff"}, plain(
            ("static", blob(3, media_type="image/png")), ("n", leb()), ("dynamic", blob(at("n"))),
            ("none", blob(0)))
    yield "ctf2-locations", "Locations: by parent, through the current array element, through " \
        "the current option, a length that is a variant.", \
        {"s": b"\1" + b"\2" + b"\1\x0a" + b"\2\x0b\x0c" + b"\1" + b"\1\x14" + b"\1" + b"\2\0" + b"\5\6" +
         b"\7"}, plain(
            ("n", uint()), ("len", uint()),
            ("elements", array(struct_of(
                ("k", uint()), ("a", array(uint(), at("elements", "k",
                                                       origin="event-record-payload")))),
                at("len"))),
            ("sel", uint()),
            ("v", variant(at("sel"), ("one", [[1, 1]], struct_of(
                ("k", uint()), ("a", array(uint(), at(None, "v", "k"))))),
                ("two", [[2, 9]], uint(16)))),
            ("sel2", uint()),
            ("length", variant(at("sel2"), (None, [[0, 0]], uint(8)), (None, [[1, 1]], uint(16)))),
            ("a", array(uint(), at("length"))),
            ("inner", struct_of(("a", array(uint(), at(None, "n"))))))
    yield "ctf2-optionals", "Optional fields by boolean, unsigned and signed selectors; a variant " \
        "in one by the same selector.", \
        {"s": b"\1\x11" + b"\0" + b"\2\x22" + b"\3" + b"\xfb\x33" + b"\2\xff\x7f"}, plain(
            ("b", fixed("boolean", 8)), ("yes", optional(uint(), at("b"))),
            ("c", fixed("boolean", 8)), ("no", optional(uint(), at("c"))),
            ("u", uint()), ("in", optional(uint(), at("u"), [[1, 2]])),
            ("w", uint()), ("out", optional(uint(), at("w"), [[1, 2]])),
            ("s", uint(signed=True)), ("neg", optional(uint(), at("s"), [[-5, 0]])),
            ("sel", uint()),
            ("both", optional(variant(at("sel"), ("a", [[1, 1]], text()),
                                      ("b", [[2, 2]], leb(True))), at("sel"), [[1, 255]])))
    yield "ctf2-aliases", "Aliases of aliases, for members, elements, options and scopes.", \
        {"s": b"\1\2\3\1\4"}, preamble() + \
        fragment("field-class-alias", name="u8", field_class=uint()) + \
        fragment("field-class-alias", name="byte", field_class="u8") + \
        fragment("field-class-alias", name="payload", field_class=struct_of(
            ("m", "byte"), ("a", array("byte", 2)), ("s", "u8"), ("o", optional("u8", at("s"), [[1, 1]])))) + \
        fragment("data-stream-class") + \
        fragment("event-record-class", name="e", payload_field_class="payload")
    yield "ctf2-default-ids", "No ids anywhere: stream class 0, event class 0; no clock, no time.", \
        {"s": b"\1\2\3"}, plain(("n", uint()))
    yield "ctf2-several-roles", "One field for total and content length, two with the same role: " \
        "the last one counts.", {"s": b"\xff\x18\x01" + b"\xff\x20\x02\x03"}, \
        preamble() + fragment("data-stream-class", packet_context_field_class=struct_of(
            ("wrong", uint(8, roles=["packet-total-length"])),
            ("size", uint(8, roles=["packet-total-length", "packet-content-length"])))) + \
        event(("n", uint()), name="e")
    twice = ["data-stream-class-id"]
    yield "ctf2-same-roles", "Two stream class ids, the last counts; two times, both move the clock; " \
        "two sequence numbers.", {"s": b"\1\3" + b"\7\0" + b"\5\3\1" + b"\6\6\2"}, \
        preamble() + fragment("trace-class", packet_header_field_class=struct_of(
            ("first", uint(roles=twice)), ("second", uint(roles=twice)))) + \
        fragment("clock-class", **CLOCK) + fragment(
            "data-stream-class", id=3, default_clock_class_id="c",
            packet_context_field_class=struct_of(
                ("a", uint(roles=["packet-sequence-number"])),
                ("b", uint(roles=["packet-sequence-number"]))),
            event_record_header_field_class=struct_of(
                ("t", uint(roles=[STAMP])), ("u", uint(roles=[STAMP])))) + \
        event(("n", uint()), name="e", data_stream_class_id=3)
    total = ["packet-total-length"]
    yield "ctf2-role-in-options", "The packet's size is what is selected: in CTF 1.8 nothing could name it so.", \
        {"s": b"\0\x18\1" + b"\1\x20\0\2"}, \
        preamble() + fragment("data-stream-class", packet_context_field_class=struct_of(
            ("k", uint()), ("size", variant(at("k"), ("byte", [[0, 0]], uint(8, roles=total)),
                                            ("word", [[1, 1]], uint(16, roles=total)))))) + \
        event(("n", uint()), name="e")
    yield "ctf2-clock-bits", "Time stamps of 8 bits wrap against the running clock.", \
        {"s": struct.pack("<I", 250) + b"\xfa\x01" + b"\xff\x02" + b"\x03\x03" + b"\x03\x04" + b"\x02\x05"}, \
        timed(uint(8, roles=[STAMP]), ("n", uint()), context=struct_of(
            ("begin", uint(32, roles=[STAMP]))))
    yield "ctf2-clock-leb128", "LEB128 time stamps count 7 bits per byte.", \
        {"s": b"\xc8\x01\x01" + b"\x49\x02" + b"\x01\x03" + b"\x81\x80\x00\x04"}, \
        timed(leb(roles=[STAMP]), ("n", uint()))
    yield "ctf2-clock-offset", "A negative offset with cycles, another frequency, own origin.", \
        {"s": struct.pack("<QB", 500, 1)}, timed(
            uint(64, roles=[STAMP]), ("n", uint()),
            clock={"frequency": 1000, "origin": {"name": "o", "uid": "1"}, "precision": 1,
                   "accuracy": 2, "offset_from_origin": {"seconds": -10, "cycles": 250}})
    yield "ctf2-clock-frequency", "A fast clock far from its origin: no 64-bit overflow.", \
        {"s": struct.pack("<QB", 2**63, 1)}, timed(
            uint(64, roles=[STAMP]), ("n", uint()),
            clock={"frequency": 4000000000, "offset_from_origin": {"seconds": 1600000000}})
    yield "ctf2-attributes", "Attributes everywhere change nothing; empty extensions declare none.", \
        {"s": b"\1"}, preamble(attributes={"x": 1}, extensions={"my.tracer": {}}) + \
        fragment("data-stream-class", attributes={"x": [1, 2]}, name="s", namespace="n", uid="u") + \
        fragment("event-record-class", name="e", attributes={"lttng.org,2009": {"log-level": 3}},
                 payload_field_class={"type": "structure", "attributes": {"a": None},
                                      "member-classes": [{"name": "n", "attributes": {"b": True},
                                                          "field-class": {**uint(), "attributes": {}}}]})
    yield "ctf2-text-sequence", "Without line feeds, with blanks and empty texts between.", \
        {"s": b"\1"}, plain(("n", uint())).replace("\n", "").replace("\x1e", "\x1e\x1e \n")
    yield "ctf2-no-data-yet", "A preamble alone: a trace without data.", {}, preamble()
    tag = {"type": "fixed-length-unsigned-enumeration", "length": 8, "byte-order": LE,
           "mappings": {"number": [[1, 1]], "text": [[2, 9]]}}
    choice = variant(["event-record-payload", "tag"], ("number", [[1, 1]], uint()),
                     ("text", [[2, 9]], text()))
    stamp = struct_of(("t", uint(roles=["default-clock-timestamp"])))
    yield "ctf2-draft", "The words of the last drafts: a clock by its name, enumerations as types of " \
        "their own, locations that are arrays.", {"s": b"\x0a\1\x2a" + b"\x14\2ok\0"}, \
        preamble() + fragment("clock-class", name="c", frequency=1000000) + \
        fragment("data-stream-class", default_clock_class_name="c",
                 event_record_header_field_class=stamp) + event(("tag", tag), ("v", choice))
    meta = plain(("n", uint()))
    cut = meta.index("\x1e", 1)
    yield "ctf2-packetized", "Metadata in packets with CTF 2's header of 44 bytes.", {"s": b"\1\2"}, \
        pmeta(meta[:cut + 9], pad=7) + pmeta(meta[cut + 9:])
    yield "ctf2-packetized-be", "The same, big-endian.", {"s": b"\1\2"}, \
        pmeta(meta[:cut], order=">") + pmeta(meta[cut:], order=">")
    yield "ctf2-packetized-lttng", "The same with LTTng's header of 37 bytes, and a byte too many.", \
        {"s": b"\1\2"}, pmeta(meta[:cut], header=37) + pmeta(meta[cut:], header=37) + b"\0"


def bad():
    u8 = uint()
    data = {"s": b"\1\2\3\4"}

    def refused(name, reason, meta):
        return "ctf2-" + name, reason, data, meta

    stream = fragment("data-stream-class")
    # ---- fragments
    yield refused("no-preamble", "The first fragment is no preamble.", stream)
    yield refused("two-preambles", "A second preamble.", preamble() + preamble() + stream)
    yield refused("version", "Version 3.", fragment("preamble", version=3))
    yield refused("uuid-length", "A UUID of 15 bytes.", preamble(uuid=UUID[:15]) + stream)
    yield refused("uuid-byte", "A UUID with a byte of 256.", preamble(uuid=UUID[:15] + [256]))
    yield refused("extension", "A declared extension that nobody knows.",
                  preamble(extensions={"my.tracer": {"piano": None}}) + stream)
    yield refused("extension-undeclared", "An extension that the preamble does not declare.",
                  preamble() + fragment("data-stream-class", extensions={"a": {"b": 1}}))
    yield refused("unknown-fragment", "A fragment of a type that there is not.",
                  preamble() + fragment("packet-class"))
    yield refused("no-stream-class", "No data stream class.", preamble())
    yield refused("two-trace-classes", "A second trace class.",
                  preamble() + fragment("trace-class") * 2 + stream)
    yield refused("late-trace-class", "A trace class behind a data stream class.",
                  preamble() + stream + fragment("trace-class"))
    yield refused("same-stream-id", "Two data stream classes with one id.", preamble() + stream * 2)
    yield refused("same-event-id", "Two event record classes with one id.",
                  plain(("n", u8)) + event(("n", u8)))
    yield refused("orphan-event", "An event record class whose stream class comes later.",
                  preamble() + event(("n", u8)) + stream)
    yield refused("same-alias", "Two aliases of one name.",
                  preamble() + fragment("field-class-alias", name="a", field_class=u8) * 2)
    yield refused("late-alias", "An alias that is used before it is there.",
                  preamble() + stream + event(("n", "a")) +
                  fragment("field-class-alias", name="a", field_class=u8))
    yield refused("no-separator", "Text that no record separator begins.", preamble() + "{}")
    yield refused("utf-8", "A name that is no UTF-8.",
                  (preamble() + stream).encode() +
                  b'\x1e{"type": "event-record-class", "name": "\xff"}\n')
    yield refused("number", "A number in a form that JSON does not have.",
                  preamble() + '\x1e{"type": "trace-class", "attributes": {"a": 1.}}\n' + stream)
    yield refused("json", "JSON that is not whole.", preamble() + "\x1e{\"type\": ")
    yield refused("environment", "An environment entry that is a list.",
                  preamble() + fragment("trace-class", environment={"a": []}) + stream)
    # ---- clocks
    for name, reason, clock in (
            ("no-frequency", "A clock class without a frequency.", {"id": "c"}),
            ("frequency-zero", "A clock of 0 Hz.", {"id": "c", "frequency": 0}),
            ("no-id", "A clock class without an id.", {"frequency": 1}),
            ("cycles", "An offset of as many cycles as a second has.",
             {"id": "c", "frequency": 10, "offset_from_origin": {"cycles": 10}}),
            ("origin", "An origin by a word that there is not.",
             {"id": "c", "frequency": 1, "origin": "epoch"}),
            ("origin-uid", "An origin without a uid.",
             {"id": "c", "frequency": 1, "origin": {"name": "a"}}),
            ("accuracy", "A negative accuracy.", {"id": "c", "frequency": 1, "accuracy": -1})):
        yield refused("clock-" + name, reason, preamble() + fragment("clock-class", **clock) + stream)
    yield refused("same-clock", "Two clock classes with one id.",
                  preamble() + fragment("clock-class", **CLOCK) * 2 + stream)
    yield refused("unknown-clock", "A default clock class that is not there.",
                  preamble() + fragment("data-stream-class", default_clock_class_id="c"))
    # ---- field classes
    for name, reason, cls in (
            ("unknown-class", "A field class of a type that there is not.", {"type": "integer"}),
            ("no-length", "A number without a length.", {k: u8[k] for k in ("type", "byte-order")}),
            ("length-zero", "A number of 0 bits.", uint(0)),
            ("no-byte-order", "A number without a byte order.", {k: u8[k] for k in ("type", "length")}),
            ("byte-order", "A byte order by another word.", uint(8, "le")),
            ("bit-order", "A bit order by another word.", uint(8, bit_order="up")),
            ("alignment-3", "An alignment of 3.", uint(8, alignment=3)),
            ("alignment-zero", "An alignment of 0.", uint(8, alignment=0)),
            ("minimum-alignment", "A minimum alignment of 12.", struct_of(minimum_alignment=12)),
            ("base", "A display base of 3.", uint(8, preferred_display_base=3)),
            ("float-length", "A float of 24 bits.", fixed("floating-point-number", 24)),
            ("float-length-144", "A float of 144 bits.", fixed("floating-point-number", 144)),
            ("no-flags", "A bit map without flags.", fixed("bit-map", 8)),
            ("empty-flags", "A bit map with no flag in its flags.", fixed("bit-map", 8, flags={})),
            ("empty-ranges", "A mapping without a range.", uint(8, mappings={"a": []})),
            ("reversed-range", "A range whose upper bound is lower.", uint(8, mappings={"a": [[2, 1]]})),
            ("range-of-three", "A range of three numbers.", uint(8, mappings={"a": [[1, 2, 3]]})),
            ("encoding", "An encoding by a word that there is not.", text(None, "latin-1")),
            ("negative-length", "A string of -1 bytes.", text(-1)),
            ("no-element", "An array without an element class.", {"type": "static-length-array", "length": 1}),
            ("no-member-name", "A member without a name.",
             {"type": "structure", "member-classes": [{"field-class": u8}]}),
            ("roles", "A role that is a number.", uint(8, roles=[1]))):
        yield refused(name, reason, plain(("n", cls)))
    # ---- locations, selectors
    n = ("n", u8)
    for name, reason, members in (
            ("empty-path", "A location with an empty path.", (n, ("a", array(u8, at())))),
            ("path-end", "A path that ends with null.", (n, ("a", array(u8, at(None))))),
            ("path-parent", "A path above the root.", (n, ("a", array(u8, at(None, "n"))))),
            ("path-name", "A path to a name that is not there.", (n, ("a", array(u8, at("x"))))),
            ("path-later", "A path to a field that is decoded later.", (("a", array(u8, at("n"))), n)),
            ("path-into-array", "A path into an array that is over.",
             (("e", array(struct_of(n), 2)), ("a", array(u8, at("e", "n"))))),
            ("path-array", "A path that ends at an array.",
             (("e", array(u8, 2)), ("a", array(u8, at("e"))))),
            ("origin", "An origin by a word that there is not.", (n, ("a", array(u8, at("n", origin="payload"))))),
            ("origin-later", "An origin that is decoded later.", None),
            ("origin-none", "An origin that the event has not.",
             (n, ("a", array(u8, at("n", origin="packet-context"))))),
            ("signed-length", "A signed length.", (("n", uint(signed=True)), ("a", array(u8, at("n"))))),
            ("text-length", "A length that is a string.", (("n", text()), ("a", array(u8, at("n"))))),
            ("boolean-tag", "A variant by a boolean.",
             (("n", fixed("boolean", 8)), ("v", variant(at("n"), (None, [[1, 1]], u8))))),
            ("mixed-tags", "Selectors of two signednesses.",
             (n, ("w", variant(at("n"), (None, [[0, 0]], u8), (None, [[1, 1]], uint(signed=True)))),
              ("o", optional(u8, at("w"), [[1, 1]])))),
            ("no-options", "A variant without options.", (n, ("v", variant(at("n"))))),
            ("same-option", "Two options of one name.",
             (n, ("v", variant(at("n"), ("a", [[0, 0]], u8), ("a", [[1, 1]], u8))))),
            ("overlap", "Options whose ranges intersect.",
             (n, ("v", variant(at("n"), ("a", [[0, 5]], u8), ("b", [[5, 9]], u8))))),
            ("no-ranges", "An option without ranges.",
             (n, ("v", {"type": "variant", "selector-field-location": at("n"),
                        "options": [{"field-class": u8}]}))),
            ("optional-no-ranges", "An optional field by an integer, without ranges.",
             (n, ("o", optional(u8, at("n")))))):
        if members is None:
            yield refused(name, reason, preamble() + fragment(
                "data-stream-class", packet_context_field_class=struct_of(
                    ("a", array(u8, at("n", origin="event-record-payload"))))) + event(n))
        else:
            yield refused(name, reason, plain(*members))
    # ---- roles
    def header(*members):
        return preamble() + fragment("trace-class", packet_header_field_class=struct_of(*members)) + \
            stream + event(n)

    yield refused("magic-size", "A magic number of 16 bits.",
                  header(("m", uint(16, roles=["packet-magic-number"]))))
    yield refused("magic-second", "A magic number that is not first.",
                  header(("x", uint(8, roles=["data-stream-id"])),
                         ("m", uint(32, roles=["packet-magic-number"]))))
    yield refused("uuid-role", "A field for the UUID, but the metadata has none.",
                  header(("u", blob(16, roles=["metadata-stream-uuid"]))))
    yield refused("uuid-size", "A UUID in a BLOB of 15 bytes.",
                  header(("u", blob(15, roles=["metadata-stream-uuid"]))))
    yield refused("signed-role", "An id that is signed.",
                  header(("i", uint(8, signed=True, roles=["data-stream-class-id"]))))
    yield refused("wide-role", "An id of 128 bits: not supported.",
                  header(("i", uint(128, roles=["data-stream-class-id"]))))
    yield refused("time-without-clock", "A time stamp without a default clock.",
                  preamble() + fragment("data-stream-class", event_record_header_field_class=struct_of(
                      ("t", uint(8, roles=[STAMP])))))
    yield refused("root", "A payload that is no structure.",
                  preamble() + stream + fragment("event-record-class", payload_field_class=u8))
    # ---- packetized metadata
    meta = plain(n)
    cut = meta.index("\x1e", 1)
    two = pmeta(meta[:cut]), pmeta(meta[cut:])
    yield refused("packetized-uuid", "Metadata packets with two UUIDs.",
                  two[0] + pmeta(meta[cut:], uuid=bytes(16)))
    yield refused("packetized-version", "Metadata packets of version 2.1.", pmeta(meta, (2, 1)))
    yield refused("packetized-cut", "Metadata that ends within a packet.", two[0] + two[1][:-5])
    yield refused("packetized-header-cut", "Metadata that ends within a packet's header.",
                  two[0] + two[1][:20])
    yield refused("packetized-magic", "A metadata packet without the magic number.",
                  two[0] + b"\1" + two[1][1:])
    yield refused("packetized-size", "A metadata packet of fewer bits than its content.",
                  two[0][:28] + struct.pack("<I", 8) + two[0][32:])
    yield refused("packetized-header-size", "A header that says it has 40 bytes.",
                  two[0][:40] + struct.pack("<I", 320) + two[0][44:])

    # ---- data
    def wrong(name, reason, content, meta):
        return "ctf2-" + name, reason, {"s": content}, meta

    whole = packet(0, 1, 100, 300, b"\0\x64\0" + b"\1\1" + b"\x0a")
    rest = b"\0\x65\0" + b"\1\1" + b"\x0b"
    yield wrong("bad-magic", "A packet without the magic number.",
                whole + packet(0, 1, 400, 500, rest, magic=0), full_metadata())
    yield wrong("foreign-uuid", "A packet of another trace.",
                whole + packet(0, 1, 400, 500, rest, uuid=[0] * 16), full_metadata())
    yield wrong("unknown-stream", "A packet of a stream class that there is not.",
                whole + packet(9, 1, 400, 500, rest), full_metadata())
    yield wrong("unknown-event", "An event class that there is not.",
                whole + packet(0, 1, 400, 500, rest + b"\5\x66\0" + rest), full_metadata())
    yield wrong("truncated", "The second packet is cut in its last event.",
                whole + packet(0, 1, 400, 500, rest + rest)[:-1], full_metadata())
    odd = packet(0, 1, 400, 500, rest)
    yield wrong("content-larger", "A packet of fewer bits than its content.",
                whole + odd[:22] + struct.pack("<H", 80) + odd[24:], full_metadata())
    yield wrong("content-zero", "Content smaller than the header.",
                whole + odd[:24] + struct.pack("<H", 8) + odd[26:], full_metadata())
    yield wrong("packet-zero", "A packet of 0 bits: no progress.",
                whole + odd[:22] + bytes(4) + odd[26:], full_metadata())
    yield wrong("trailing-byte", "A byte behind the last packet.", whole + b"\0", full_metadata())
    yield wrong("past-content", "A field that goes past the content.", b"\1\2\3", plain(("n", uint(16))))
    yield wrong("array-past-content", "An array of more elements than there are bytes.", b"\5\1\2",
                plain(n, ("a", array(u8, at("n")))))
    yield wrong("no-option", "A variant whose selector selects nothing.", b"\1\2\7\2",
                plain(n, ("v", variant(at("n"), ("a", [[1, 1]], u8)))))
    yield wrong("half-unit", "A text of 3 bytes in UTF-16.", b"\2ab\3abc",
                plain(n, ("s", text(at("n"), "utf-16le"))))
    yield wrong("static-half-unit", "A static text of 3 bytes in UTF-16.", b"abc",
                plain(("s", text(3, "utf-16le"))))
    yield wrong("open-string", "A string that no NUL ends.", b"a\0bc", plain(("s", text())))
    yield wrong("open-wide-string", "A UTF-16 string that only half a NUL ends.", b"a\0\0\0b\0\0",
                plain(("s", text(None, "utf-16le"))))
    yield wrong("open-leb128", "A LEB128 number that does not end.", b"\1\x80\x80", plain(("n", leb())))
    yield wrong("long-leb128", "A LEB128 number of more than 64 bits: not supported.",
                b"\1" + b"\xff" * 10 + b"\1", plain(("n", leb())))
    yield wrong("byte-order-change", "The byte order changes inside a byte.", b"\1",
                plain(("a", uint(4)), ("b", uint(4, BE))))
    yield wrong("no-bits", "An event record without a bit.", b"\1", plain())
    yield wrong("aligned-past-content", "Alignment that goes past the content.", b"\1\0\0\0\2\1",
                plain(("a", u8), ("s", struct_of(("b", uint(8, alignment=32))))))
