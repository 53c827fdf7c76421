# SPDX-License-Identifier: MIT
"""The CTF 1.8 traces of tools/make-test-traces: a small one for each rule of the specification.

Metadata that must be refused is in test/data/bad/tsdl. These are about how metadata is wrapped,
where fields lie, what time it is, and what packets hold: (name, reason, files, metadata).
"""

import struct

UUID = bytes(range(0x10, 0x20))
UUID_TEXT = "10111213-1415-1617-1819-1a1b1c1d1e1f"
TYPES = "".join(f"typealias integer {{ size = {n}; align = 8; }} := u{n};\n" for n in (8, 16, 32, 64))
CLOCK = "clock { name = c; absolute = TRUE; %s };\n"


def plain(fields, order="le", types="", env="", context="", comment=""):
    """One stream, one event type, no headers."""
    return f"/* CTF 1.8{comment} */\n{TYPES}{types}trace {{ major = 1; minor = 8; byte_order = {order}; }};\n" \
        f"{env}event {{ name = e; {context}fields := struct {{ {fields} }}; }};\n"


def timed(header, clock="", context="", fields="u8 n;", types=""):
    return f"/* CTF 1.8 */\n{TYPES}trace {{ major = 1; minor = 8; byte_order = le; }};\n" + \
        (CLOCK % clock) + types + f"stream {{ {context}event.header := struct {{ {header} }}; }};\n" \
        f"event {{ name = e; fields := struct {{ {fields} }}; }};\n"


def sized(context):
    """A packet context, and one byte per event."""
    return f"/* CTF 1.8 */\n{TYPES}trace {{ major = 1; minor = 8; byte_order = le; }};\n" \
        f"stream {{ packet.context := struct {{ {context} }}; }};\n" \
        "event { name = e; fields := struct { u8 n; }; };\n"


def pmeta(text, order="<", uuid=UUID, pad=0, schemes=(0, 0, 0), version=(1, 8)):
    text = text.encode()
    size = 37 + len(text)
    return struct.pack(order + "I", 0x75D11D57) + uuid + \
        struct.pack(order + "III", 0, size * 8, (size + pad) * 8) + bytes(schemes + version) + \
        text + bytes(pad)


SCOPES = f"""/* CTF 1.8 */
{TYPES}trace {{
	major = 1; minor = 8; byte_order = le; uuid = "{UUID_TEXT}";
	packet.header := struct {{ u32 magic; u8 uuid[16]; u8 stream_id; u8 hlen; }};
}};
env {{ n = 2; }};
stream {{
	id = 3;
	packet.context := struct {{ u8 clen; u16 content_size; u16 packet_size; }};
	event.header := struct {{ enum : u8 {{ a = 0, b = 1 }} id; u8 elen; }};
	event.context := struct {{ u8 slen; }};
}};
stream {{ id = 4; }};
event {{
	name = all; id = 1; stream_id = 3;
	context := struct {{ u8 xlen; u8 from_header[trace.packet.header.hlen]; }};
	fields := struct {{
		u8 flen;
		u8 a[trace.packet.header.hlen]; u8 b[stream.packet.context.clen];
		u8 c[stream.event.header.elen]; u8 d[stream.event.context.slen];
		u8 e[event.context.xlen]; u8 f[event.fields.flen]; u8 g[env.n];
		variant <stream.event.header.id> {{ u8 a; u16 b; }} v;
		u8 nearest[slen];
	}};
}};
event {{ name = other; id = 0; stream_id = 4; fields := struct {{ u8 n; }}; }};
"""

LTTNG = """	event.header := struct {
		enum : integer { size = %d; align = %d; } { compact = 0 ... %d, extended = %d } id;
		variant <id> {
			struct { integer { size = %d; align = %d; map = clock.c.value; } timestamp; } compact;
			struct { u32 id; integer { size = 64; align = 8; map = clock.c.value; } timestamp; } extended;
		} v;
	} align(8);
"""


def lttng(compact):
    header = LTTNG % ((5, 1, 30, 31, 27, 1) if compact else (16, 8, 65534, 65535, 32, 8))
    return f"/* CTF 1.8 */\n{TYPES}trace {{ major = 1; minor = 8; byte_order = le; }};\n" + \
        CLOCK % "" + "stream { packet.context := struct { u64 timestamp_begin; u64 timestamp_end; };\n" + \
        header + "};\nevent { name = one; id = 1; fields := struct { u8 n; }; };\n" \
        "event { name = far; id = 70000; fields := struct { u8 n; }; };\n"


def header5(ident, stamp):
    return struct.pack("<I", ident | (stamp & (1 << 27) - 1) << 5)


QUIRK = """/* CTF 1.8 */
%strace { major = 1; minor = 8; byte_order = le; };
env { %s };
%sstream {
	packet.context := struct { u64 timestamp_begin; u64 timestamp_end; u16 content_size; u16 packet_size; };
	event.header := struct { u64 timestamp; };
};
event { name = e; fields := struct { u8 n; }; };
"""


def quirk(env):
    return QUIRK % (TYPES, env, CLOCK % "")


def quirk_packet(begin, end, *stamps):
    size = (20 + 9 * len(stamps)) * 8
    return struct.pack("<QQHH", begin, end, size, size) + \
        b"".join(struct.pack("<QB", stamp, i) for i, stamp in enumerate(stamps))


def ok():
    # ---- how metadata is wrapped
    text = plain("u8 n;")
    yield "packetized", "Metadata in packets; padding between them.", {"s": b"\1"}, \
        pmeta(text[:40], pad=11) + pmeta(text[40:])
    yield "packetized-be", "The same, big-endian, with a byte too many.", {"s": b"\1"}, \
        pmeta(plain("u8 n;", "be"), ">") + b"\0"
    yield "signature", "White space before the signature, CRLF, a longer first comment.", {"s": b"\1"}, \
        "\r\n \t" + plain("u8 n;", comment=" by hand").replace("\n", "\r\n")
    # ---- TSDL
    yield "scope-paths", "Absolute paths to all scopes, and a relative one to the nearest.", \
        {"s_3": struct.pack("<I", 0xC1FC1FC1) + UUID + b"\3\1" + struct.pack("<BHH", 2, 384, 384) +
         b"\1\3" + b"\1" + b"\2\x10" + b"\1" + b"\x11" + b"\x21\x22" + b"\x31\x32\x33" + b"\x41" +
         b"\x51\x52" + b"\x61" + b"\x71\x72" + b"\x81\x82" + b"\x91",
         "s_4": struct.pack("<I", 0xC1FC1FC1) + UUID + b"\4\0" + b"\x2a"}, SCOPES
    yield "underscores", "One leading _ is not shown; _str beside str; __x is _x.", {"s": b"\1\2\3\2\5\6"}, \
        plain("u8 str; u8 _str; u8 __x; u8 _len; u8 a[_len];")
    yield "tags", "Typedef'd variant with the tag of its definition, labels without option, options " \
        "without label, overlapping labels.", {"s": b"\0\x09\x10" + b"\1\1\x20\x21" + b"\5\2\x30"}, \
        plain("enum : u8 { a, b, d = 3 ... 9, c = 5 } x;"
              " typedef variant <x> { u8 a; struct { u8 p; u8 q; } b; u8 d; u8 never; } t;"
              " struct { enum : u8 { p, q, r } x; t v; } in;")
    yield "enums", "First value 0, then the end before + 1; overlaps; gaps; 64 bits, signed and not; " \
        "the base type int.", {"s": b"\0\1\6\x0a\x0b" + b"\xff" * 8 + struct.pack("<q", -2**63) +
                               struct.pack("<i", -1)}, \
        plain("enum : u8 { A, B = 1 ... 5, C, D = 10, \"E \\\"e\" } a, b, c, d, e;"
              " enum : u64 { top = 0x8000000000000000 ... 18446744073709551615 } t;"
              " enum : integer { size = 64; align = 8; signed = true; } { least = -9223372036854775808 } l;"
              " enum { minus = -1 } i;",
              types="typealias integer { size = 32; align = 8; signed = true; } := int;\n")
    yield "alignment", "Integers by default, align() of structs, empty arrays and structs align, a " \
        "variant's options do but the variant does not.", \
        {"s": b"\xb1\2\3\0\4" + b"\5\0\0\0" + bytes(7) + b"\6\7" + bytes(6) + b"\x08\1" + bytes(6) +
         b"\x09" + bytes(7) + b"\x0a"}, \
        plain("integer { size = 5; } bits; integer { size = 3; } b3; u8 two;"
              " struct { u8 in; } align(16) st; struct { u8 x; } align(32) w; u32 x;"
              " integer { size = 8; align = 64; } none[0]; u8 after; struct { } align(8) empty; u8 seven;"
              " integer { size = 8; align = 64; } eight;"
              " enum : u8 { a, b } tag; struct { variant <tag> { u8 a; integer { size = 64; align = 64; } b; } v; } s;"
              " u8 last;")
    yield "number-orders", "native, network, le and be; bit fields from the other end.", \
        {"s": b"\0\1" + b"\0\2" + b"\3\0" + b"\x45\x67" + b"\x12\x34\x56" + struct.pack(">f", 1.5)}, \
        plain("".join(f"integer {{ size = 16; align = 8; byte_order = {o}; base = {b}; }} {n}; " for n, o, b in
                      (("nat", "native", 10), ("net", "network", 10), ("le", "le", 10))) +
              "integer { size = 4; } hi; integer { size = 12; } lo; integer { size = 24; align = 8; base = 16; } x;"
              " floating_point { exp_dig = 8; mant_dig = 24; align = 8; } f;", "be")
    yield "texts", "Arrays and sequences of characters are text, cut at NUL; other bases are not.", \
        {"s": b"ab\0x" + b"\3cde" + b"\xc3\xa9\0" + b"AB" + b"C"}, \
        plain("c8 a[4]; u8 n; c8 b[n]; string { encoding = UTF8; } s; u8 nums[2]; c8 one;",
              types="typealias integer { size = 8; align = 8; encoding = ASCII; } := c8;\n")
    yield "floats", "Floats of 16, 32, 64 and 128 bits.", \
        {"s": struct.pack("<efd", -2, 0.1, 1e-300) + bytes(14) + b"\0\xc0"}, \
        plain("".join(f"floating_point {{ exp_dig = {e}; mant_dig = {m}; align = 8; }} f{e + m}; " for e, m in
                      ((5, 11), (8, 24), (11, 53), (15, 113))))
    yield "wide-integers", "Integers of 128 bits are shown in hexadecimal.", \
        {"s": bytes(range(1, 17)) + b"\x07"}, plain("integer { size = 128; align = 8; } w; u8 n;")
    yield "bit-fields", "Bit fields in C's notation, as in the specification's example.", \
        {"s": struct.pack("<I", 0xFFB | 0x1D << 16 | 1 << 21 | 2 << 24 | 5 << 26) + b"x\0" + b"\5\0" +
         struct.pack("<II", 0x12345678, 9 | 7 << 4)}, \
        plain("short a:12; short b:5; u8 c:3, d:2; u8 :3; string s; packed e:3; packed f:30; packed g:4; packed h:28;",
              types="typealias integer { size = 16; align = 16; signed = true; } := short;\n"
                    "typealias integer { size = 32; align = 8; } := packed;\n")
    yield "spellings", "Universal character names in identifiers.", \
        {"s": b"\1\xff\x2aab"}, \
        plain('u8 \\u00e9t; u8 a\\U0001F600b[\\u00e9t];'
              ' integer { size = 8; align = 8; signed = false; base = hex; byte_order = be; } h;'
              ' integer { size = 8; align = 8; encoding = UTF8; } t[2];')
    yield "environment", "Lengths that the environment says.", {"s": b"\1\2\3ab"}, \
        plain("u8 a[env.n]; u8 none[env.zero]; integer { size = 8; align = 8; encoding = UTF8; } t[env.two];",
              env="env { n = 3; zero = 0; two = 2; };\n")
    yield "callsite", "callsite blocks are skipped, whatever is in them.", {"s": b"\1"}, \
        plain("u8 n;") + 'callsite { name = "e"; func = "f"; line = 39; ip = 0x40096c; { } };\n'
    # ---- headers and clocks
    yield "compact-header", "LTTng's compact header: 27 bits wrap, extended for far ids and times.", \
        {"s": struct.pack("<QQ", 0x7FFFFF0, 1 << 40) + header5(1, 0x7FFFFF5) + b"\1" + header5(1, 3) + b"\2" +
         struct.pack("<BIQ", 31, 70000, 1 << 35) + b"\3" + header5(1, 7) + b"\4" +
         struct.pack("<BIQ", 31, 1, 1 << 36) + b"\5"}, lttng(True)
    yield "large-header", "LTTng's large header: 32 bits wrap, 65535 is extended.", \
        {"s": struct.pack("<QQ", 0xFFFFFFF0, 1 << 40) + struct.pack("<HIB", 1, 0xFFFFFFF5, 1) +
         struct.pack("<HIB", 1, 3, 2) + struct.pack("<HIQB", 65535, 70000, 1 << 35, 3)}, lttng(False)
    yield "clock-bits", "Time stamps of 8 bits wrap once against the running clock; the packet's end " \
        "does not move it.", {"s": struct.pack("<II", 250, 9999) + b"\xfa\1\xff\2\3\3\3\4\2\5"}, \
        timed("integer { size = 8; align = 8; map = clock.c.value; } timestamp;",
              context="packet.context := struct { u32 timestamp_begin; u32 timestamp_end; }; ")
    yield "clock-negative", "A clock whose offsets are negative: before 1970.", {"s": struct.pack("<QB", 0, 1)}, \
        timed("u64 timestamp;", clock="freq = 1000; offset_s = -2; offset = -250;")
    yield "clock-fast", "2^63 cycles of 4 GHz, 1.6e9 s from the origin: no overflow.", \
        {"s": struct.pack("<QB", 1 << 63, 1)}, \
        timed("u64 timestamp;", clock="freq = 4000000000; offset_s = 1600000000;")
    yield "clock-odd", "32768 Hz, rounded down.", {"s": struct.pack("<QBQB", 1, 1, 32769, 2)}, \
        timed("u64 timestamp;", clock="freq = 32768;")
    # ---- packets
    for name, reason, context, data in (
            ("packet-whole-file", "No sizes: one packet per file.", "u8 x;", b"\7\1\2\3"),
            ("packet-size-only", "Only packet_size: it is the content's, too.", "u8 packet_size;",
             b"\x18\1\2" + b"\x10\3"),
            ("content-size-only", "Only content_size: it is the packet's, too.", "u8 content_size;",
             b"\x18\1\2" + b"\x10\3"),
            ("padding", "Both: what lies between is skipped.", "u8 content_size; u8 packet_size;",
             b"\x18\x28\1\xee\xee" + b"\x10\x10" + b"\x20\x20\2\3")):
        yield name, reason, {"s": data}, sized(context)
    sequence = "u8 packet_size; u8 packet_seq_num; u8 events_discarded;"
    yield "losses-narrow", "8-bit counters of discarded events and packets wrap: 3 events lost, no packet.", \
        {"s": b"\x20\xfe\xfe\1" + b"\x20\xff\xfe\2" + b"\x20\0\1\3"}, sized(sequence)
    # ---- tracers' mistakes
    late = quirk_packet(100, 110, 105, 150) + quirk_packet(160, 170, 165, 190)
    for name, env in (("ust", 'domain = "ust"; tracer_name = "lttng-ust"; tracer_major = 2; tracer_minor = 10;'),
                      ("modules", 'domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; '
                                  'tracer_minor = 9; tracer_patchlevel = 12;')):
        yield "quirk-" + name, "Events behind the packet's end, by an old tracer: the end moves.", \
            {"s": late}, quirk(env)
    yield "quirk-new-ust", "Events behind the packet's end, by a tracer that should know better: " \
        "delivered all the same.", {"s": quirk_packet(100, 110, 105, 150)}, \
        quirk('domain = "ust"; tracer_name = "lttng-ust"; tracer_major = 2; tracer_minor = 13;')
    yield "quirk-barectf", "Events before the packet's begin, by an old barectf: the begin moves.", \
        {"s": quirk_packet(120, 150, 110, 130) + quirk_packet(180, 200, 170, 190)}, \
        quirk('domain = "bare"; tracer_name = "barectf"; tracer_major = 2; tracer_minor = 3; tracer_patch = 0;')
    yield "quirk-crash", "lttng-crash: the last packet was never closed, its end is 0.", \
        {"s": quirk_packet(100, 160, 105) + quirk_packet(160, 0, 165, 190)}, \
        quirk('domain = "ust"; tracer_name = "lttng-ust"; tracer_major = 2; tracer_minor = 13;')


def bad():
    data = {"s": b"\1\2\3\4"}
    text = plain("u8 n;")
    # ---- how metadata is wrapped
    yield "packetized-uuid", "Metadata packets with two UUIDs.", data, \
        pmeta(text[:40]) + pmeta(text[40:], uuid=bytes(16))
    yield "packetized-order", "Big-endian packets of a little-endian trace.", data, pmeta(text, ">")
    yield "packetized-version", "A metadata packet of version 1.9.", data, pmeta(text, version=(1, 9))
    yield "packetized-mixed", "Metadata packets of two versions.", data, \
        pmeta(text[:40]) + pmeta(text[40:], version=(2, 0))
    for i, what in enumerate(("compressed", "encrypted", "checksum")):
        yield "packetized-" + what, f"Metadata that is {what}: not supported.", data, \
            pmeta(text, schemes=tuple(int(i == k) for k in range(3)))
    yield "packetized-cut", "Metadata that ends within a packet.", data, pmeta(text)[:-3]
    yield "packetized-header-cut", "Metadata that ends within a packet's header.", data, \
        pmeta(text[:40]) + pmeta(text[40:])[:30]
    yield "packetized-size", "A metadata packet smaller than its content.", data, \
        pmeta(text)[:28] + struct.pack("<I", 64) + pmeta(text)[32:]
    yield "packetized-magic", "Something else behind a metadata packet.", data, pmeta(text) + b"more"
    yield "empty-metadata", "Metadata of no byte.", data, b""
    yield "version-1.9", "Text of another version.", data, text.replace("CTF 1.8", "CTF 1.9")
    yield "no-signature", "Text that does not begin with the signature.", data, text[text.index("*/") + 2:]
    # ---- where fields lie
    yield "byte-order-change", "The byte order changes inside a byte.", {"s": b"\1\2"}, \
        plain("integer { size = 4; } a; integer { size = 4; byte_order = be; } b;")
    yield "no-option", "A tag whose label no option has.", {"s": b"\0\1" + b"\1\2"}, \
        plain("enum : u8 { a, b } t; variant <t> { u8 a; } v;")
    yield "no-label", "A tag of a value without a label.", {"s": b"\0\1" + b"\7\2"}, \
        plain("enum : u8 { a, b } t; variant <t> { u8 a; u8 b; } v;")
    yield "sequence-past-content", "A sequence longer than the packet.", {"s": b"\1\1" + b"\xff\2"}, \
        plain("u8 n; u8 a[n];")
    yield "no-bits", "An event without a bit.", {"s": b"\1"}, plain("")
    yield "aligned-past-content", "Alignment that goes past the content.", {"s": b"\1\0\0\0\2\3"}, \
        plain("u8 a; integer { size = 8; align = 32; } b;")
    # ---- packets
    one = struct.pack("<IBB", 0xC1FC1FC1, 3, 0)
    yield "unknown-stream", "A packet of a stream that the metadata does not have.", \
        {"s": one[:4] + UUID + b"\x09\0" + bytes(20)}, SCOPES
    yield "content-only-zero", "Only content_size, and it is 0: no loop.", {"s": b"\x10\1" + b"\0\2"}, \
        sized("u8 content_size;")
    yield "packet-size-17", "Only packet_size, of 17 bits.", {"s": b"\x10\1" + b"\x11\2\3"}, \
        sized("u8 packet_size;")
