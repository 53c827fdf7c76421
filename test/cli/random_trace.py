# SPDX-License-Identifier: MIT
"""Random traces: metadata in CTF 1.8 or CTF 2, packets, and what their events hold.

Made from a seed, from the formats' descriptions, without any code of ours: bits are put together
one by one, so that writer and reader cannot share a mistake with what they are tested by.
"""

import json
import os
import random
import re
import struct

COMMON = ("uint", "sint", "enum", "float", "string", "text", "array", "struct", "variant")
LOWERED = COMMON + ("bool", "bits", "bitmap", "blob", "optional")
# Those of which CTF 1.8 can say the values, but not with the same bits.
ANEW = LOWERED + ("leb", "sleb", "utf16", "widetext", "reversed")
# What CTF 1.8 says with fields more, or in other structures.
MORE = ANEW + ("big", "bigbool", "either", "shared")
ALL = MORE + ("float16",)
# These may need a field before them.
WITH_OTHERS = ("text", "blob", "widetext", "array", "variant", "optional", "either", "shared")


def words_of(members):
    """What the words of a number say that has more than 64 bits."""
    number = 0
    for name, word in members.items():
        _, begin, end = name.split("_")
        number |= (word & (1 << int(end) - int(begin) + 1) - 1) << int(begin)
    return f"0x{number:0{16 * len(members)}x}"


def without_copies(pairs):
    """Members but for the copies of lengths and selectors that stand before what they are for."""
    names = {name for name, _ in pairs}
    return [(name, value) for name, value in pairs
            if re.sub(r"_(length|selector)_*$", "", name) not in names - {name}]


class Bits:
    """A packet that grows bit by bit."""

    def __init__(self):
        self.data, self.at = bytearray(), 0

    def align(self, bits):
        self.skip(-self.at % bits)

    def skip(self, bits):
        self.at += bits
        self.data.extend(bytes(max(0, (self.at + 7) // 8 - len(self.data))))

    def put(self, value, bits, big, flip=False):
        """@flip: the other bit order than usual for the byte order."""
        begin = self.at
        self.skip(bits)
        for i in range(bits):
            place = begin + (bits - 1 - i if big != flip else i)
            if value >> i & 1:
                self.data[place // 8] |= 1 << (7 - place % 8 if big else place % 8)

    def put_bytes(self, data):
        self.align(8)
        self.data.extend(data)
        self.at += 8 * len(data)


class Field:
    """One field class: how it is described, encoded, and what JSON shows of a value."""

    def __init__(self, kind, **more):
        self.kind, self.align = kind, 1
        self.__dict__.update(more)


def leb128(value):
    out = bytearray()
    while True:
        byte, value = value & 127, value >> 7
        more = not (value == 0 and not byte & 64 or value == -1 and byte & 64)
        out.append(byte | (128 if more else 0))
        if not more:
            return bytes(out)


def uleb128(value):
    out = bytearray()
    while True:
        byte, value = value & 127, value >> 7
        out.append(byte | (128 if value else 0))
        if not value:
            return bytes(out)


class Trace:
    """@version: 1 or 2; @kinds: which field classes may occur."""

    def __init__(self, seed, version, kinds):
        self.rng = random.Random(f"{seed} {version} {len(kinds)}")
        self.seed, self.version, self.kinds = seed, version, kinds
        self.big = self.rng.random() < 0.3
        self.has_clock = self.rng.random() < 0.85
        self.frequency = self.rng.choice((10**9, 10**9, 1000, 2596102043, 32768, 999999937))
        self.offset_s = self.rng.choice((0, 1700000000, -5))
        self.offset = self.rng.choice((0, 1, 500, 999))
        self.stamp_bits = self.rng.choice((16, 27, 32, 64))
        # Times, sizes and numbers of events in LEB128, whose bits are as many as they are.
        self.short = "leb" in kinds and self.rng.random() < 0.5
        self.id_bits = self.rng.choice((5, 8, 16))
        # One field tells the size of packet and content: there is nothing behind it.
        self.joint = "leb" in kinds and self.rng.random() < 0.3
        self.names, self.words = 0, ["event", "int", "clock", "struct", "timestamp", "id"]
        self.streams = [self.make_stream(i) for i in range(self.rng.randint(1, 2))]
        self.expected = []

    # ---- field classes ------------------------------------------------------------------------

    def make_stream(self, number):
        rng = self.rng
        stream = Field("stream", id=number, has_seq=rng.random() < 0.7, events=[],
                       has_lost=rng.random() < 0.7, has_cpu=rng.random() < 0.7,
                       context=self.structure(1, 2) if rng.random() < 0.6 else None)
        for i in range(rng.randint(1, 3)):
            stream.events.append(Field(
                "event", id=i, name=f"e{i}",
                loglevel=rng.choice((None, 3, 13)), uri=rng.choice((None, "http://a.b/c?d=\"e\"")),
                context=self.structure(1, 2) if rng.random() < 0.3 else None,
                payload=self.structure(0, 6)))
        return stream

    def name(self):
        self.names += 1
        if self.version == 2 and self.words and self.rng.random() < 0.2:
            return self.words.pop()
        return self.rng.choice(("f{}", "_f{}", "int{}", "Event{}")).format(self.names)

    def structure(self, least, most, depth=0):
        st = Field("struct", members=[], min_align=self.rng.choice((1, 1, 1, 8, 32)))
        for _ in range(self.rng.randint(least, most)):
            self.add_member(st, depth)
        st.align = max([st.min_align] + [cls.align for _, cls in st.members])
        return st

    def add_member(self, st, depth):
        kinds = self.kinds if depth < 2 else [k for k in self.kinds if k not in (
            "array", "struct", "variant", "optional", "either", "shared")]
        kind = self.rng.choice(kinds)
        st.members.append((self.name(), self.make(kind, st, depth)))

    def number(self, kind, bits=None, **more):
        rng = self.rng
        bits = bits or rng.choice((1, 3, 5, 8, 8, 13, 16, 32, 32, 47, 63, 64, 64))
        align = rng.choice((1, 1, 2, 8, 8, 16, 64))
        cls = Field(kind, bits=bits, flip=False, big=self.big, base=rng.choice((2, 8, 10, 10, 16)),
                    labels=None, **more)
        # A byte holds bits of one byte order only.
        if bits % 8 == 0 and align % 8 == 0 and rng.random() < 0.3:
            cls.big = not self.big
        cls.align = align
        return cls

    def length(self, st, most):
        cls = self.number("uint", 8)
        cls.most = most
        st.members.append((self.name(), cls))
        return st.members[-1]

    def make(self, kind, st, depth):
        make = getattr(self, "make_" + kind, None)
        return make(st, depth) if make else self.number(kind)

    def make_enum(self, _st=None, _depth=0, labels=None):
        rng = self.rng
        signed = rng.random() < 0.4
        cls = self.number("sint" if signed else "uint", rng.choice((3, 8, 16, 32, 64)))
        low = -(1 << cls.bits - 1) if signed else 0
        high = low + (1 << cls.bits) - 1
        cls.labels = []
        for label in labels or rng.sample(("a", "b c", 'quo"te', "\\back", "é"), rng.randint(1, 4)):
            at = rng.choice((low, high - 2, 0, rng.randint(low, high - 2)))
            cls.labels.append((label, at, rng.choice((at, at + 1, at + 2))))
        return cls

    def make_float(self, _st, _depth):
        return self.number("float", self.rng.choice((32, 64)))

    def make_float16(self, _st, _depth):
        return self.number("float", self.rng.choice((16, 128)))

    def make_string(self, _st, _depth):
        return Field("string", align=8)

    def make_text(self, st, _depth):
        if self.rng.random() < 0.5:
            return Field("text", align=8, length=self.rng.randint(1, 9), ref=None)
        return Field("text", align=8, length=0, ref=self.length(st, 9))

    def make_blob(self, st, _depth):
        cls = self.make_text(st, 0)
        cls.kind = "blob"
        return cls

    def make_utf16(self, _st, _depth):
        return Field("utf16", align=8, encoding=self.rng.choice(
            ("utf-16le", "utf-16be", "utf-32le", "utf-32be")))

    def make_widetext(self, st, _depth):
        cls = self.make_utf16(st, 0)
        cls.kind, cls.ref = "widetext", self.length(st, 12) if self.rng.random() < 0.5 else None
        # Whole code units only.
        cls.length = 0 if cls.ref else self.rng.choice((0, 4, 12, 20))
        if cls.ref:
            cls.ref[1].only = (0, 4, 8, 12)
        return cls

    def make_leb(self, _st, _depth):
        return Field("leb", align=8, labels=None)

    def make_sleb(self, _st, _depth):
        return Field("sleb", align=8, labels=None)

    def make_big(self, _st, _depth):
        return self.number(self.rng.choice(("uint", "sint")), self.rng.choice((65, 100, 128, 200)))

    def make_bigbool(self, _st, _depth):
        return self.number("bool", self.rng.choice((65, 128)))

    def make_reversed(self, _st, _depth):
        cls = self.number(self.rng.choice(("uint", "sint", "bool", "bits", "float")))
        cls.flip = True
        # Bits of both orders do not share a byte either.
        cls.align, cls.bits = 8, self.rng.choice((32, 64) if cls.kind == "float" else (
            8, 16, 32, 64))
        return cls

    def make_bitmap(self, _st, _depth):
        cls = self.number("bitmap", self.rng.choice((3, 8, 16)))
        cls.labels = [("low", 0, 0), ("high", 1, 2)]
        return cls

    def make_array(self, st, depth):
        ref = self.length(st, 3) if self.rng.random() < 0.5 else None
        kind = self.rng.choice([k for k in self.kinds if k not in WITH_OTHERS])
        element = self.make(kind, st, depth + 1)
        least = self.rng.choice((1, 1, 16, 64)) if "leb" in self.kinds else 1
        return Field("array", align=max(element.align, least), element=element, ref=ref,
                     least=least, length=0 if ref else self.rng.randint(0, 3))

    def make_struct(self, _st, depth):
        return self.structure(0, 3, depth + 1)

    def make_variant(self, st, depth):
        labels = ["one", "two", "three"][:self.rng.randint(2, 3)]
        tag = self.make_enum(labels=labels)
        # Options must not overlap.
        for i, (label, _, _) in enumerate(tag.labels):
            tag.labels[i] = (label, 2 * i, 2 * i + self.rng.randint(0, 1))
        tag.bits = max(tag.bits, 8)
        tag.only = [v for _, low, high in tag.labels for v in (low, high)]
        st.members.append((self.name(), tag))
        simple = [k for k in self.kinds if k not in WITH_OTHERS]
        return Field("variant", ref=st.members[-1], options=[
            (label, self.make(self.rng.choice(simple), st, depth + 1)) for label in labels])

    def make_either(self, st, depth):
        """An array whose length is in whichever option a variant has."""
        tag = self.number("uint", 8)
        tag.labels, tag.only = [("one", 0, 3), ("two", 4, 9)], (0, 3, 4, 9)
        st.members.append((self.name(), tag))
        name, options = self.name(), []
        for label, bits in (("one", 8), ("two", 16)):
            length = self.number("uint", bits)
            length.most = 3
            options.append((label, Field("struct", members=[(name, length)], min_align=1,
                                         align=length.align)))
        st.members.append((self.name(), Field("variant", ref=st.members[-1], options=options)))
        simple = [k for k in self.kinds if k in ("uint", "string", "float", "big")]
        path = [st.members[-1][0], name]
        if self.rng.random() < 0.5:
            return Field("blob", align=8, length=0, ref=(name, length), path=path)
        element = self.make(self.rng.choice(simple), st, depth + 1)
        return Field("array", align=element.align, element=element, ref=(name, length), path=path,
                     least=1, length=0)

    def make_shared(self, st, depth):
        """Another field that a selector selects, by other ranges or to other names."""
        choice = self.make(self.rng.choice(("variant", "optional")), st, depth)
        st.members.append((self.name(), choice))
        simple = [k for k in self.kinds if k in ("uint", "string", "float", "struct")]
        signed = choice.ref[1].kind != "bool"
        return Field("optional", ref=choice.ref, ranges=[[0, 0], [2, 2]] if signed else None,
                     element=self.make(self.rng.choice(simple), st, depth + 1))

    def make_optional(self, st, depth):
        by_bool = self.rng.random() < 0.5
        selector = self.number("bool" if by_bool else self.rng.choice(("uint", "sint")), 8)
        selector.most = 3
        st.members.append((self.name(), selector))
        simple = [k for k in self.kinds if k in ("uint", "string", "float", "struct")]
        return Field("optional", ref=st.members[-1], ranges=None if by_bool else [[1, 2]],
                     element=self.make(self.rng.choice(simple), st, depth + 1))

    # ---- values -------------------------------------------------------------------------------

    def value(self, cls, seen):
        """A value, and what JSON shows. @seen: what was decoded before, by member."""
        rng, kind = self.rng, cls.kind
        if kind in ("uint", "sint", "bool", "bits", "bitmap"):
            raw = self.raw(cls)
            return raw, self.shown(cls, raw)
        if kind == "float":
            return self.float_value(cls)
        if kind in ("leb", "sleb"):
            raw = rng.choice((0, 1, 63, 64, 127, 128, rng.getrandbits(rng.choice((10, 30, 63)))))
            raw = -raw if kind == "sleb" and rng.random() < 0.5 else raw
            return raw, raw
        if kind in ("string", "utf16"):
            text = "".join(rng.choice("abc \"\\é漢/\t") for _ in range(rng.randint(0, 6)))
            return text, text
        if kind in ("text", "blob"):
            return self.bytes_value(cls, seen)
        if kind == "widetext":
            n = seen[cls.ref[0]] if cls.ref else cls.length
            text = "".join(rng.choice("xé漢😀") for _ in range(rng.randint(0, 5)))
            while len(text.encode(cls.encoding)) > n:
                text = text[:-1]
            return text.encode(cls.encoding).ljust(n, b"\0"), text
        if kind == "array":
            n = seen[cls.ref[0]] if cls.ref else cls.length
            pairs = [self.value(cls.element, seen) for _ in range(n)]
            return [p[0] for p in pairs], [p[1] for p in pairs]
        if kind == "variant":
            raw = seen[cls.ref[0]]
            index = [low <= raw <= high for _, low, high in cls.ref[1].labels].index(True)
            value, shown = self.value(cls.options[index][1], seen)
            return (index, value), shown
        if kind == "optional":
            raw = seen[cls.ref[0]]
            if not (raw if cls.ranges is None else any(a <= raw <= b for a, b in cls.ranges)):
                return None, None
            value, shown = self.value(cls.element, seen)
            return (value,), shown
        return self.struct_value(cls, seen)

    def struct_value(self, cls, seen):
        values, shown = [], []
        for name, member in cls.members:
            value, show = self.value(member, seen)
            seen[name] = value
            values.append(value)
            shown.append((self.display(name), show))
        return values, shown

    def display(self, name):
        return name[1:] if self.version == 1 and name.startswith("_") else name

    def raw(self, cls):
        rng = self.rng
        if hasattr(cls, "only"):
            return rng.choice(cls.only)
        if hasattr(cls, "most"):
            return rng.randint(0, cls.most)
        low = -(1 << cls.bits - 1) if cls.kind == "sint" else 0
        high = low + (1 << cls.bits) - 1
        edge = [v for _, a, b in cls.labels or () for v in (a, b) if low <= v <= high]
        return rng.choice([low, high, rng.randint(low, high), rng.randint(low, high)] + edge)

    def shown(self, cls, raw):
        if cls.kind == "bool":
            return bool(raw)
        if cls.bits > 64:
            words = (cls.bits + 63) // 64
            return f"0x{raw & (1 << cls.bits) - 1:0{16 * words}x}"
        if cls.kind == "bitmap":
            return [("value", raw), ("labels", [
                label for label, a, b in cls.labels if any(raw >> i & 1 for i in range(a, b + 1))])]
        if cls.labels:
            return [("value", raw), ("labels", [
                label for label, a, b in cls.labels if a <= raw <= b])]
        return raw

    def float_value(self, cls):
        value = self.rng.choice((0.0, 1.5, -2.25, 1024.0, 0.125, 65504.0))
        if cls.bits == 128:
            mantissa, exponent = struct.unpack(">Q", struct.pack(">d", value))[0], 0
            sign, exponent = mantissa >> 63, mantissa >> 52 & 0x7ff
            raw = 0 if value == 0 else (sign << 127 | (exponent - 1023 + 16383) << 112 |
                                        (mantissa & (1 << 52) - 1) << 60)
            return raw, value
        code = {16: "e", 32: "f", 64: "d"}[cls.bits]
        return int.from_bytes(struct.pack(">" + code, value), "big"), value

    def bytes_value(self, cls, seen):
        n = seen[cls.ref[0]] if cls.ref else cls.length
        if cls.kind == "blob":
            data = self.rng.randbytes(n)
            return data, data.hex()
        text = "".join(self.rng.choice("xyz ") for _ in range(self.rng.randint(0, n)))
        return text.encode().ljust(n, b"\0"), text

    def encode(self, out, cls, value):
        out.align(cls.align)
        kind = cls.kind
        if kind in ("uint", "sint", "bool", "bits", "bitmap", "float"):
            out.put(value & (1 << cls.bits) - 1, cls.bits, cls.big, cls.flip)
        elif kind == "leb":
            out.put_bytes(uleb128(value))
        elif kind == "sleb":
            out.put_bytes(leb128(value))
        elif kind == "string":
            out.put_bytes(value.encode() + b"\0")
        elif kind == "utf16":
            out.put_bytes((value + "\0").encode(cls.encoding))
        elif kind in ("text", "blob", "widetext"):
            out.put_bytes(value)
        elif kind == "array":
            for item in value:
                self.encode(out, cls.element, item)
        elif kind == "variant":
            self.encode(out, cls.options[value[0]][1], value[1])
        elif kind == "optional":
            if value:
                self.encode(out, cls.element, value[0])
        else:
            for (_, member), item in zip(cls.members, value):
                self.encode(out, member, item)

    # ---- CTF 1.8 ------------------------------------------------------------------------------

    def tsdl(self, cls, name):
        """TYPE NAME with its brackets."""
        if cls.kind in ("uint", "sint"):
            order = "be" if cls.big else "le"
            text = (f"integer {{ size = {cls.bits}; align = {cls.align}; byte_order = {order}; "
                    f"signed = {'true' if cls.kind == 'sint' else 'false'}; base = {cls.base}; }}")
            if cls.labels:
                labels = ", ".join(f"{json.dumps(label, ensure_ascii=False)} = {a} ... {b}"
                                   for label, a, b in cls.labels)
                text = f"enum : {text} {{ {labels} }}"
            return f"{text} {name}"
        if cls.kind == "float":
            exponent = {32: 8, 64: 11}[cls.bits]
            return (f"floating_point {{ exp_dig = {exponent}; mant_dig = {cls.bits - exponent}; "
                    f"align = {cls.align}; byte_order = {'be' if cls.big else 'le'}; }} {name}")
        if cls.kind == "string":
            return f"string {name}"
        if cls.kind == "text":
            return (f"integer {{ size = 8; align = 8; encoding = UTF8; }} {name}"
                    f"[{cls.ref[0] if cls.ref else cls.length}]")
        if cls.kind == "array":
            return self.tsdl(cls.element, name) + f"[{cls.ref[0] if cls.ref else cls.length}]"
        if cls.kind == "variant":
            options = " ".join(self.tsdl(option, label) + ";" for label, option in cls.options)
            return f"variant <{cls.ref[0]}> {{ {options} }} {name}"
        members = " ".join(self.tsdl(member, n) + ";" for n, member in cls.members)
        align = f" align({cls.min_align})" if cls.min_align > 1 else ""
        return f"struct {{ {members} }}{align} {name}"

    def plain(self, bits, name, clock=False):
        order, stamp = "be" if self.big else "le", " map = clock.c.value;" if clock else ""
        return (f"integer {{ size = {bits}; align = {8 if bits % 8 == 0 else 1}; "
                f"byte_order = {order};{stamp} }} {name};")

    def tsdl_metadata(self):
        order = "be" if self.big else "le"
        out = [f'/* CTF 1.8 */ trace {{ major = 1; minor = 8; byte_order = {order}; '
               f'uuid = "{self.uuid_text()}"; packet.header := struct {{ '
               f'{self.plain(32, "magic")} integer {{ size = 8; align = 8; }} uuid[16]; '
               f'{self.plain(32, "stream_id")} {self.plain(64, "stream_instance_id")} }}; }};',
               f'env {{ hostname = "h\\"\\\\é"; number = -{self.seed}; }};']
        if self.has_clock:
            out.append(f'clock {{ name = c; freq = {self.frequency}; offset_s = {self.offset_s}; '
                       f'offset = {self.offset}; absolute = TRUE; description = "a \\"b\\""; '
                       f'uuid = "{self.uuid_text()}"; precision = 7; }};')
        for stream in self.streams:
            context = "".join(self.plain(bits, name, clock)
                              for name, bits, clock in self.context_fields(stream))
            header = self.plain(self.id_bits, "id")
            if self.has_clock:
                header += self.plain(self.stamp_bits, "timestamp", True)
            out.append(f"stream {{ id = {stream.id}; packet.context := struct {{ {context} }}; "
                       f"event.header := struct {{ {header} }} align(8);")
            if stream.context:
                out.append(f"event.context := {self.tsdl(stream.context, '')};")
            out.append("};")
            for event in stream.events:
                out.append(f'event {{ name = "{event.name}"; id = {event.id}; '
                           f'stream_id = {stream.id};')
                if event.loglevel is not None:
                    out.append(f"loglevel = {event.loglevel};")
                if event.uri:
                    out.append(f"model.emf.uri = {json.dumps(event.uri)};")
                if event.context:
                    out.append(f"context := {self.tsdl(event.context, '')};")
                out.append(f"fields := {self.tsdl(event.payload, '')}; }};")
        return "\n".join(out)

    # ---- CTF 2 --------------------------------------------------------------------------------

    def fixed(self, kind, cls):
        types = {"uint": "unsigned-integer", "sint": "signed-integer", "bool": "boolean",
                 "bits": "bit-array", "bitmap": "bit-map", "float": "floating-point-number"}
        out = {"type": "fixed-length-" + types[kind], "length": cls.bits, "alignment": cls.align,
               "byte-order": "big-endian" if cls.big else "little-endian"}
        if cls.flip:
            out["bit-order"] = "first-to-last" if cls.big else "last-to-first"
        if kind in ("uint", "sint"):
            out["preferred-display-base"] = cls.base
        return out

    def location(self, cls):
        return {"path": getattr(cls, "path", [cls.ref[0]])}

    def sized(self, what, cls, key):
        if cls.ref:
            return {"type": f"dynamic-length-{what}", key: self.location(cls)}
        return {"type": f"static-length-{what}", "length": cls.length}

    def ctf2(self, cls):
        kind = cls.kind
        if kind in ("uint", "sint", "bool", "bits", "bitmap", "float"):
            out = self.fixed(kind, cls)
            if cls.labels:
                out["flags" if kind == "bitmap" else "mappings"] = {
                    label: [[a, b]] for label, a, b in cls.labels}
            return out
        if kind in ("leb", "sleb"):
            return {"type": f"variable-length-{'un' if kind == 'leb' else ''}signed-integer"}
        if kind == "string":
            return {"type": "null-terminated-string"}
        if kind == "utf16":
            return {"type": "null-terminated-string", "encoding": cls.encoding}
        if kind in ("text", "blob"):
            return self.sized("string" if kind == "text" else "blob", cls, "length-field-location")
        if kind == "widetext":
            return {**self.sized("string", cls, "length-field-location"), "encoding": cls.encoding}
        if kind == "array" and cls.least > 1:
            return {**self.sized("array", cls, "length-field-location"),
                    "minimum-alignment": cls.least, "element-field-class": self.ctf2(cls.element)}
        if kind == "array":
            return {**self.sized("array", cls, "length-field-location"),
                    "element-field-class": self.ctf2(cls.element)}
        if kind == "variant":
            return {"type": "variant", "selector-field-location": self.location(cls),
                    "options": [{"name": label, "field-class": self.ctf2(option),
                                 "selector-field-ranges": [list(cls.ref[1].labels[i][1:])]}
                                for i, (label, option) in enumerate(cls.options)]}
        if kind == "optional":
            out = {"type": "optional", "selector-field-location": self.location(cls),
                   "field-class": self.ctf2(cls.element)}
            if cls.ranges:
                out["selector-field-ranges"] = cls.ranges
            return out
        return {"type": "structure", "minimum-alignment": cls.min_align, "member-classes": [
            {"name": name, "field-class": self.ctf2(member)} for name, member in cls.members]}

    def short_role(self, name, role):
        return {"name": name, "field-class": {
            "type": "variable-length-unsigned-integer", "roles": [role]}}

    def role(self, bits, name, *roles):
        return {"name": name, "field-class": {
            "type": "fixed-length-unsigned-integer", "length": bits,
            "alignment": 8 if bits % 8 == 0 else 1, "roles": list(roles),
            "byte-order": "big-endian" if self.big else "little-endian"}}

    ROLES = {"timestamp_begin": "default-clock-timestamp",
             "timestamp_end": "packet-end-default-clock-timestamp",
             "content_size": "packet-content-length", "packet_size": "packet-total-length",
             "packet_seq_num": "packet-sequence-number",
             "events_discarded": "discarded-event-record-counter-snapshot"}

    def roles(self, name):
        roles = [self.ROLES[name]] if name in self.ROLES else []
        return roles + ["packet-total-length"] * (self.joint and name == "content_size")

    def ctf2_metadata(self):
        uuid = list(self.uuid())
        out = [{"type": "preamble", "version": 2, "uuid": uuid},
               {"type": "trace-class", "environment": {"hostname": "h\"\\é", "number": -self.seed},
                "packet-header-field-class": {"type": "structure", "member-classes": [
                    self.role(32, "magic", "packet-magic-number"),
                    {"name": "uuid", "field-class": {"type": "static-length-blob", "length": 16,
                                                     "roles": ["metadata-stream-uuid"]}},
                    self.role(32, "stream_id", "data-stream-class-id"),
                    self.role(64, "stream_instance_id", "data-stream-id")]}}]
        if self.has_clock:
            out.append({"type": "clock-class", "id": "c", "name": "c", "uid": self.uuid_text(),
                        "frequency": self.frequency, "origin": "unix-epoch", "precision": 7,
                        "offset-from-origin": {"seconds": self.offset_s, "cycles": self.offset},
                        "description": 'a "b"'})
        for stream in self.streams:
            header = [self.role(self.id_bits, "id", "event-record-class-id")]
            if self.short:
                header = [self.short_role("id", "event-record-class-id")]
            if self.short and self.has_clock:
                header.append(self.short_role("timestamp", "default-clock-timestamp"))
            elif self.has_clock:
                header.append(self.role(self.stamp_bits, "timestamp", "default-clock-timestamp"))
            fragment = {
                "type": "data-stream-class", "id": stream.id,
                "packet-context-field-class": {"type": "structure", "member-classes": [
                    self.role(bits, name, *self.roles(name))
                    for name, bits, _ in self.context_fields(stream)]},
                "event-record-header-field-class": {
                    "type": "structure", "minimum-alignment": 8, "member-classes": header}}
            if self.has_clock:
                fragment["default-clock-class-id"] = "c"
            if stream.context:
                fragment["event-record-common-context-field-class"] = self.ctf2(stream.context)
            out.append(fragment)
            for event in stream.events:
                fragment = {"type": "event-record-class", "id": event.id, "name": event.name,
                            "data-stream-class-id": stream.id,
                            "payload-field-class": self.ctf2(event.payload)}
                lttng = {"log-level": event.loglevel, "emf-uri": event.uri}
                fragment["attributes"] = {"lttng.org,2009": {
                    key: value for key, value in lttng.items() if value is not None}}
                if event.context:
                    fragment["specific-context-field-class"] = self.ctf2(event.context)
                out.append(fragment)
        return "".join("\x1e" + json.dumps(part, ensure_ascii=False) + "\n" for part in out)

    # ---- packets ------------------------------------------------------------------------------

    def uuid(self):
        return struct.pack(">IIII", self.seed, self.version, len(self.kinds), 0x4b796d6f)

    def uuid_text(self):
        text = self.uuid().hex()
        return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))

    def context_fields(self, stream):
        """(name, bits, is a time)."""
        fields = [("timestamp_begin", 64, True), ("timestamp_end", 64, True)] \
            if self.has_clock else []
        fields += [("content_size", 64, False)]
        fields += [] if self.joint else [("packet_size", 64, False)]
        fields += [("packet_seq_num", 64, False)] if stream.has_seq else []
        fields += [("events_discarded", 32, False)] if stream.has_lost else []
        return fields + ([("cpu_id", 32, False)] if stream.has_cpu else [])

    def packet(self, stream, state, file):
        rng, out = self.rng, Bits()
        for value, bits in ((0xC1FC1FC1, 32),):
            out.put(value, bits, self.big)
        out.put_bytes(self.uuid())
        out.put(stream.id, 32, self.big)
        out.put(7, 64, self.big)
        where = {}
        for name, bits, _ in self.context_fields(stream):
            out.align(8)
            where[name] = (out.at, bits)
            out.skip(bits)
        begin = state["time"]
        state["clock"] = begin
        for _ in range(rng.randint(0, 6)):
            self.event(out, stream, state, file)
        content = out.at
        out.align(8)
        if self.joint:
            content = out.at
        else:
            out.skip(8 * rng.choice((0, 8, 24)))
        if rng.random() < 0.3:
            state["lost"] += rng.randint(1, 9)
        values = {"timestamp_begin": begin, "timestamp_end": state["time"], "cpu_id": 3,
                  "content_size": content, "packet_size": out.at,
                  "packet_seq_num": state["seq"], "events_discarded": state["lost"]}
        state["seq"] += rng.choice((1, 1, 1, 3))
        total = out.at
        for name, (at, bits) in where.items():
            out.at = at
            out.put(values[name], bits, self.big)
        out.at = total
        return bytes(out.data)

    def event(self, out, stream, state, file):
        rng = self.rng
        event = rng.choice(stream.events)
        out.align(8)
        if self.short:
            out.put_bytes(uleb128(event.id))
        else:
            out.put(event.id, self.id_bits, self.big)
        shown = []
        if self.has_clock:
            self.stamp(out, state)
            cycles = state["time"]
            shown.append(("timestamp_ns", self.offset_s * 10**9 +
                          self.offset * 10**9 // self.frequency + cycles * 10**9 // self.frequency))
        shown += [("event", event.name), ("stream", file)]
        shown += [("loglevel", event.loglevel)] if event.loglevel is not None else []
        if stream.has_cpu:
            shown.append(("packet", [("cpu_id", 3)]))
        for key, root in (("context", stream.context), ("event_context", event.context),
                          ("fields", event.payload)):
            if root:
                values, show = self.struct_value(root, {})
                self.encode(out, root, values)
                shown.append((key, show))
        self.expected.append(shown)

    def stamp(self, out, state):
        """The low bits of the time: enough of them to tell how much has passed."""
        past, bits = self.rng.randint(0, min(10**6, (1 << self.stamp_bits) - 1)), self.stamp_bits
        state["time"] += past
        if not self.short:
            if bits % 8 == 0:
                out.align(8)
            out.put(state["time"] & (1 << bits) - 1, bits, self.big)
            return
        bits = 7 * max(1, (past.bit_length() + 7) // 7)
        low = state["time"] & (1 << bits) - 1
        # Zeros above count as bits that were written.
        out.put_bytes(bytes(low >> 7 * i & 127 | (128 if 7 * (i + 1) < bits else 0)
                            for i in range(bits // 7)))

    def write(self, path):
        os.makedirs(path)
        with open(os.path.join(path, "metadata"), "w", encoding="utf-8") as file:
            file.write(self.tsdl_metadata() if self.version == 1 else self.ctf2_metadata())
        for stream in self.streams:
            name = f"s{self.seed}_{stream.id}"
            state = {"time": self.rng.choice((0, 1, 10**9)), "seq": 5, "lost": 0}
            data = b"".join(self.packet(stream, state, name)
                            for _ in range(self.rng.randint(0, 4)))
            with open(os.path.join(path, name), "wb") as file:
                file.write(data)
