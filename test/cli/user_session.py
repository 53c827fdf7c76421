# SPDX-License-Identifier: MIT
"""A recorder of user-space tracing, small and in the open: the tests' own view of abi/control.h.

It writes session files, runs programs that find them, asks running programs to join, and turns ring
files into CTF traces. Everything goes on in a private directory, which programs see as /run/kymo.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import random
import struct
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
F_OFD_SETLK = 37

CONTROL_ENABLE, PAGES, ENABLE_BYTES = 4096, 256, 4096
CONTROL_TABLE = CONTROL_ENABLE + PAGES * ENABLE_BYTES
CONTROL_BYTES = CONTROL_TABLE + (16 << 20)
SLOTS_OFFSET, SLOT_BYTES = 96, 296

TSC, MONOTONIC = 1, 2
OVERWRITE, PREALLOCATE = 1, 2

CONTEXTS = ["", "vpid", "vtid", "procname", "ip", "cpu_id", "pthread_id", "vuid", "veuid", "vsuid",
            "vgid", "vegid", "vsgid", "cgroup_ns", "ipc_ns", "mnt_ns", "net_ns", "pid_ns",
            "time_ns", "user_ns", "uts_ns", "callstack_user", "perf", "app"]

FILTER = {name: number for number, name in enumerate(
    ["", "int", "unsigned", "real", "text", "field", "context", "has", "==", "!=", "<", "<=", ">",
     ">=", "=~", "|", "^", "&", "<<", ">>", "+", "-", "*", "/", "%", "!", "neg", "~", "and", "or"])}

KINDS = ["plain", "begin", "end", "counter", "text", "context", "query"]
(INTEGER, FLOAT, BOOLEAN, STRING, ENUM, ARRAY, SEQUENCE, TEXT, TEXT_ARRAY, BLOB) = range(1, 11)


class Rule:
    """code: a list of steps: ("field", "id"), ("int", 5), "==", ("and", 7)."""

    def __init__(self, pattern="*", exclude=(), levels=(0, 14), code=()):
        self.pattern, self.exclude, self.levels, self.code = pattern, exclude, levels, code


class Builder:
    """Structs with offsets into texts behind them."""

    def __init__(self, head_bytes):
        self.data = bytearray(head_bytes)

    def add(self, data, align=8):
        self.data += bytes(-len(self.data) % align)
        offset = len(self.data)
        self.data += data
        return offset

    def text(self, text):
        return self.add(text.encode() + b"\0", 1)


def session_bytes(rules, contexts=(), clock=MONOTONIC, flags=0, subbuf_bytes=65536, n_subbufs=4,
                  cookie=None, uuid=None, pids=(), version=1):
    out = Builder(160)

    def step(op):
        name, arg = op if isinstance(op, tuple) else (op, 0)
        if name in ("text", "field", "context", "has"):
            arg = out.text(arg)
        elif name == "real":
            arg = struct.unpack("=Q", struct.pack("=d", arg))[0]
        return struct.pack("=IIQ", FILTER.get(name, name if isinstance(name, int) else 0), 0,
                           arg & (2**64 - 1))

    packed = b""
    for rule in rules:
        exclude = [out.text(text) for text in rule.exclude]
        code = b"".join([step(op) for op in rule.code])
        packed += struct.pack(
            "=IIIBBHII", out.text(rule.pattern), out.add(struct.pack(f"={len(exclude)}I", *exclude)),
            len(exclude), *rule.levels, 0, out.add(code), len(rule.code))
    wanted = b""
    for context in contexts:
        kind, name, *counter = context if isinstance(context, tuple) else (context, "")
        counted, config = counter or (0, 0)
        wanted += struct.pack("=IIIIQ", CONTEXTS.index(kind), out.text(name) if name else 0, counted, 0,
                              config)
    tail = (out.add(wanted), len(contexts), out.add(packed), len(rules),
            out.add(struct.pack(f"={len(pids)}I", *pids), 4), len(pids))
    hz = 10**9
    record = struct.pack("=IIQqqQ16s", clock, 0, hz, 0, 0, 1, bytes(16))
    head = struct.pack("=8sIIQ16s", b"KYMOSESS", version, len(out.data),
                       cookie or random.getrandbits(63) + 1, uuid or random.randbytes(16))
    head += record + struct.pack("=IIIIIIIII", flags, subbuf_bytes, n_subbufs, *tail)
    out.data[:len(head)] = head
    return bytes(out.data)


class Session:
    """A session's directory, with the recorder's lock on its file."""

    def __init__(self, root, name="test", uid=0):
        self.root, self.uid = str(root), uid
        self.runtime = os.path.join(self.root, f"u{uid}")
        self.path = os.path.join(self.runtime, name)
        self.name, self.fd = name, None
        os.makedirs(self.path, mode=0o700)
        os.chmod(self.root, 0o755)
        os.chmod(self.runtime, 0o755)
        os.chown(self.path, uid, uid)

    def start(self, rules, **options):
        data = session_bytes(rules, **options)
        self.cookie = struct.unpack_from("=Q", data, 16)[0]
        self.uuid = data[24:40]
        old = self.fd
        new = os.path.join(self.path, ".session")
        self.fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(self.fd, data)
        fcntl.fcntl(self.fd, F_OFD_SETLK, struct.pack("=hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
        os.rename(new, os.path.join(self.path, "session"))
        if old is not None:
            os.close(old)
        return self

    def die(self):
        """As when the recorder is killed."""
        os.close(self.fd)
        self.fd = None

    def seen_path(self):
        return f"/run/kymo/u{self.uid}/{self.name}"

    def command(self, *argv):
        """What runs a program that sees the directory as /run/kymo."""
        os.makedirs("/run/kymo", exist_ok=True)
        return ["unshare", "-m", "sh", "-c", 'mount --bind "$0" /run/kymo && exec "$@"', self.root,
                *map(str, argv)]

    def run(self, *argv, **options):
        return subprocess.run(self.command(*argv), check=True, timeout=240, **options)

    def rings(self):
        return sorted(os.path.join(self.path, name) for name in os.listdir(self.path)
                      if name.endswith(".ring") and not name.startswith("."))


# ---- the control file ----

class Control:
    """A running program's control file, found as a recorder finds it."""

    def __init__(self, pid):
        self.pid = pid
        for fd in os.listdir(f"/proc/{pid}/fd"):
            link = f"/proc/{pid}/fd/{fd}"
            try:
                if os.readlink(link).startswith("/memfd:kymo-control"):
                    self.fd = os.open(link, os.O_RDWR)
                    break
            except OSError:
                continue
        else:
            raise OSError(errno.ENOENT, f"process {pid} has no control file")
        assert os.fstat(self.fd).st_size == CONTROL_BYTES
        assert fcntl.fcntl(self.fd, 1034) & 0x2, "sealed against shrinking"
        self.map = mmap.mmap(self.fd, CONTROL_BYTES)
        assert self.map[:8] == b"KYMOCTRL"

    def field(self, format, offset):
        return struct.unpack_from(format, self.map, offset)[0]

    def events(self):
        end = self.field("=Q", 56)
        table, at = self.map[CONTROL_TABLE:CONTROL_TABLE + end], 0
        while at < end:
            record = Record(table, at)
            at += record.bytes
            yield record

    def slot(self, i):
        at = SLOTS_OFFSET + i * SLOT_BYTES
        names = ("owner", "cookie", "joined", "reason", "os_error", "n_events", "joined_pid")
        values = struct.unpack_from("=I4xQQIiII", self.map, at)
        return dict(zip(names, values),
                    directory=self.map[at + 40:at + 296].split(b"\0")[0].decode())

    def ask(self, session, i=0, names=None):
        """Fill slot i, and set the enable bytes of the events (all)."""
        at = SLOTS_OFFSET + i * SLOT_BYTES
        struct.pack_into("=I", self.map, at, os.getpid())
        path = session.seen_path().encode()
        self.map[at + 40:at + 40 + len(path) + 1] = path + b"\0"
        is_new = not self.slot(i)["cookie"]
        if not is_new:
            struct.pack_into("=Q", self.map, at + 8, session.cookie)
        for event in self.events():
            if names is None or event.name in names:
                byte = CONTROL_ENABLE + event.page * ENABLE_BYTES + event.enable_byte
                self.map[byte] |= 1 << i
        if is_new:
            struct.pack_into("=Q", self.map, at + 8, session.cookie)

    def stop(self, i=0):
        struct.pack_into("=Q", self.map, SLOTS_OFFSET + i * SLOT_BYTES + 8, 0)

    def enabled(self):
        pages = self.map[CONTROL_ENABLE:CONTROL_ENABLE + self.field("=I", 48) * ENABLE_BYTES]
        return sum(1 for byte in pages if byte)


class Record:
    """struct ky_event_record."""

    def __init__(self, data, at):
        def text(offset):
            start = at + offset
            return bytes(data[start:data.index(b"\0", start)]).decode()

        (self.bytes, self.number, provider, name, file, self.line, self.page, self.enable_byte,
         self.log_level, self.kind, n_fields, self.flags) = struct.unpack_from("=6I2H4B", data, at)
        self.provider, self.name, self.file = text(provider), text(name), text(file)
        self.fields = []
        for i in range(n_fields):
            (name, kind, size, flags, base, length, labels, n_labels, _) = struct.unpack_from(
                "=I4B4I", data, at + 32 + 24 * i)
            names = []
            for j in range(n_labels):
                first, last, label, _ = struct.unpack_from("=qqII", data, at + labels + 24 * j)
                names.append((text(label), first, last))
            self.fields.append((text(name), kind, size, flags, base, length, names))


# ---- from a ring file to a trace ----

class Blob:
    def __init__(self, data):
        (magic, version, head, self.bytes, self.session_uuid, self.uuid) = struct.unpack_from(
            "=8sIIQ16s16s", data, 0)
        assert (magic, version) == (b"KYMOBLOB", 1)
        (self.clock, self.hz) = struct.unpack_from("=I4xQ", data, 56)
        at = 56 + 56
        (self.pid, self.uid, self.start_ns, self.realtime_ns, procname, hostname, exe,
         self.lost_joining, self.lost_no_id, self.lost_large) = struct.unpack_from(
             "=IIQq16s64s256sQQQ", data, at)
        self.procname = procname.split(b"\0")[0].decode()
        self.hostname = hostname.split(b"\0")[0].decode()
        self.exe = exe.split(b"\0")[0].decode()
        self.events, at = [], head
        while at < self.bytes:
            self.events.append(Record(data, at))
            at += self.events[-1].bytes
        self.contexts = self.events.pop(0)
        assert KINDS[self.contexts.kind] == "context"
        assert [event.number for event in self.events] == list(range(len(self.events)))


def integer(size, signed, base=10, order="", extra=""):
    return (f"integer {{ size = {8 * size}; align = 8; signed = {int(signed)}; base = {base}; "
            f"{order}{extra}}}")


def tsdl_fields(fields):
    names = {field[0] for field in fields}
    return " ".join(tsdl_field(field, names) for field in fields)


def element(size, flags, base):
    order = "byte_order = be; " if flags & 2 else ""
    if flags & 8:
        digits = (8, 24) if size == 4 else (11, 53)
        return (f"floating_point {{ exp_dig = {digits[0]}; mant_dig = {digits[1]}; align = 8; "
                f"{order}}}")
    return integer(size, flags & 1, base, order)


def tsdl_field(field, others=()):
    """The text of @field; @others are the names of the fields beside it."""
    name, kind, size, flags, base, length, labels = field
    if flags & 16:
        return ""
    text = integer(1, False, extra="encoding = UTF8; ")
    number = element(size, flags | (8 if kind == FLOAT else 0), base)
    length_of = f"{name}_length"
    while f"_{length_of}" in others:
        length_of += "_"
    count = f"{integer(4, False)} __{length_of}; "
    if kind == STRING:
        return f"string _{name};"
    if kind == ENUM:
        items = ", ".join(f'"{label}" = {first} ... {last}' for label, first, last in labels)
        return f"enum : {number} {{ {items} }} _{name};"
    if kind == ARRAY:
        return f"{number} _{name}[{length}];"
    if kind == SEQUENCE:
        return f"{count}{number} _{name}[__{length_of}];"
    if kind == TEXT:
        return f"{count}{text} _{name}[__{length_of}];"
    if kind == TEXT_ARRAY:
        return f"{text} _{name}[{length}];"
    if kind == BLOB:
        return f"{count}{integer(1, False, 16)} _{name}[__{length_of}];"
    return f"{number} _{name};"


def metadata(blob):
    u8, u32, u64 = integer(1, 0), integer(4, 0), integer(8, 0)
    stamp = integer(8, 0, extra="map = clock.test.value; ")
    uuid = blob.uuid.hex()
    uuid = "-".join([uuid[:8], uuid[8:12], uuid[12:16], uuid[16:20], uuid[20:]])
    out = f"""/* CTF 1.8 */
trace {{ major = 1; minor = 8; uuid = "{uuid}"; byte_order = le;
  packet.header := struct {{ {u32} magic; {u8} uuid[16]; {u32} stream_id;
    {u64} stream_instance_id; }}; }};
env {{ domain = "ust"; vpid = {blob.pid}; procname = "{blob.procname}"; }};
clock {{ name = test; freq = {blob.hz}; }};
struct header {{ enum : integer {{ size = 5; align = 1; }} {{ compact = 0 ... 30, extended = 31 }} id;
  variant <id> {{ struct {{ integer {{ size = 27; align = 1; map = clock.test.value; }} timestamp; }} compact;
    struct {{ {u32} id; {stamp} timestamp; }} extended; }} v; }} align(8);
stream {{ id = 0; event.header := struct header;
  packet.context := struct {{ {stamp} timestamp_begin; {stamp} timestamp_end; {u64} content_size;
    {u64} packet_size; {u64} packet_seq_num; {u64} events_discarded; {u32} cpu_id; }};
"""
    if blob.contexts.fields:
        out += f"event.context := struct {{ {tsdl_fields(blob.contexts.fields)} }};"
    out += "};\n"
    for event in blob.events:
        out += (f'event {{ name = "{event.provider}:{event.name}"; id = {event.number}; stream_id = 0; '
                f"loglevel = {event.log_level}; "
                f"fields := struct {{ {tsdl_fields(event.fields)} }}; }};\n")
    return out


def consume(build, ring, out):
    """Make a CTF trace of a ring file; returns its blob."""
    os.makedirs(out)
    subprocess.run([os.path.join(build, "test", "tracer", "consume"), ring, out], check=True)
    with open(os.path.join(out, "blob"), "rb") as file:
        blob = Blob(file.read())
    os.unlink(os.path.join(out, "blob"))
    with open(os.path.join(out, "metadata"), "w", encoding="ascii") as file:
        file.write(metadata(blob))
    return blob
