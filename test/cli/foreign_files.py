# SPDX-License-Identifier: MIT
"""Small files of other tracers, made by hand in either byte order: perf.data, trace.dat, pcapng."""

import struct

COMMON = """\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
SWITCH = "name: sched_switch\nID: 316\nformat:\n" + COMMON + """\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: "prev_comm=%s prev_pid=%d prev_prio=%d next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, REC->next_comm, REC->next_pid, REC->next_prio
"""
RAW_ENTER = "name: sys_enter\nID: 400\nformat:\n" + COMMON + """\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;
\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;

print fmt: "NR %ld", REC->id
"""
RAW_EXIT = "name: sys_exit\nID: 399\nformat:\n" + COMMON + """\tfield:long id;\toffset:8;\tsize:8;\tsigned:1;
\tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;

print fmt: "NR %ld = %ld", REC->id, REC->ret
"""
PAGE = """\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;
"""


class Order:
    """Numbers in one byte order."""

    def __init__(self, big):
        self.big = big
        self.sign = ">" if big else "<"

    def pack(self, form, *values):
        return struct.pack(self.sign + form, *values)

    def text(self, text):
        """perf's: a length, and the bytes up to a multiple of 64."""
        data = text.encode() + b"\0"
        data += b"\0" * (-len(data) % 64)
        return self.pack("I", len(data)) + data


def switch(order, prev, following):
    """A record of sched_switch from (comm, tid) to (comm, tid)."""
    return (order.pack("HBBi", 316, 0, 0, prev[1]) + prev[0].encode().ljust(16, b"\0") +
            order.pack("iiq", prev[1], 120, 1) + following[0].encode().ljust(16, b"\0") +
            order.pack("ii", following[1], 120))


def raw_enter(order, tid, number, *args):
    return order.pack("HBBiq6Q", 400, 0, 0, tid, number, *(args + (0,) * (6 - len(args))))


def raw_exit(order, tid, number, result):
    return order.pack("HBBiqq", 399, 0, 0, tid, number, result)


def tracing_data(order, version="0.6", events=(("sched", (SWITCH,)), ("raw_syscalls", (RAW_ENTER, RAW_EXIT))), texts=b""):
    """What stands before the records: formats of pages and events, and the kernel's texts."""
    def counted(text):
        return order.pack("Q", len(text)) + text.encode()

    data = b"\x17\x08\x44tracing" + version.encode() + b"\0" + bytes([order.big, 8]) + order.pack("I", 4096)
    data += b"header_page\0" + counted(PAGE) + b"header_event\0" + counted("# compressed entry header\n")
    data += order.pack("I", 0)  # of ftrace
    data += order.pack("I", len(events))
    for system, formats in events:
        data += system.encode() + b"\0" + order.pack("I", len(formats)) + b"".join(map(counted, formats))
    return data + order.pack("I", 0) + order.pack("I", len(texts)) + texts + order.pack("Q", 0)


IDENTIFIER, IP, TID, TIME, ADDR, CHAIN, CPU, PERIOD, RAW = (1 << n for n in (16, 0, 1, 2, 3, 5, 7, 8, 10))


class Perf:
    """perf.data with tracepoints, one sample of cpu-clock, names and mappings."""

    def __init__(self, big=False):
        self.order = Order(big)
        self.records = []
        self.attrs = []  # (type, config, sample_type, name)
        self.has_tracing = True  # a feature describes the tracepoints

    def attr(self, kind, config, sample_type, name):
        self.attrs.append((kind, config, sample_type, name))
        return len(self.attrs)  # the counter's id

    def record(self, kind, misc, body):
        # simpleperf's own records have the upper half of their size in the second number.
        size = 8 + len(body)
        self.records.append(self.order.pack("IHH", kind, misc | size >> 16, size & 0xffff) + body)

    def sample(self, counter, tid, ns, cpu, raw=None, ip=0, chain=None):
        pack, sample_type = self.order.pack, self.attrs[counter - 1][2]
        body = pack("Q", counter) + pack("Q", ip) + pack("II", tid, tid) + pack("Q", ns) + pack("II", cpu, 0)
        body += pack("Q", 1000)
        if sample_type & CHAIN:
            body += pack("Q", len(chain)) + b"".join(pack("Q", one) for one in chain)
        if sample_type & RAW:
            raw += b"\0" * (-(len(raw) + 4) % 8)
            body += pack("I", len(raw)) + raw
        self.record(9, 1, body)

    def trailer(self, tid, ns, cpu):
        pack = self.order.pack
        return pack("II", tid, tid) + pack("Q", ns) + pack("II", cpu, 0) + pack("Q", 1)

    def comm(self, tid, name, ns=0, executes=False):
        name = name.encode() + b"\0"
        name += b"\0" * (-len(name) % 8)
        self.record(3, executes << 13, self.order.pack("II", tid, tid) + name + self.trailer(tid, ns, 0))

    def finish_round(self):
        self.record(68, 0, b"")

    def write(self, path):
        order, pack = self.order, self.order.pack
        attr_bytes = 128
        # Flags: sample_id_all is bit 18, counted from the other end on big-endian machines.
        flags = bytes([0, 0, 0x20 if order.big else 0x04, 0, 0, 0, 0, 0])
        ids_at = 104
        attrs_at = ids_at + 8 * len(self.attrs)
        data_at = attrs_at + len(self.attrs) * (attr_bytes + 16)
        data = b"".join(self.records)
        attrs = b""
        for number, (kind, config, sample_type, _) in enumerate(self.attrs):
            attr = pack("IIQQQQ", kind, attr_bytes, config, 1, sample_type, 0) + flags
            attrs += attr.ljust(attr_bytes, b"\0") + pack("QQ", ids_at + 8 * number, 8)
        descriptions = pack("II", len(self.attrs), attr_bytes)
        for number, (kind, config, sample_type, name) in enumerate(self.attrs):
            attr = pack("IIQQQQ", kind, attr_bytes, config, 1, sample_type, 0) + flags
            descriptions += attr.ljust(attr_bytes, b"\0") + pack("I", 1) + order.text(name) + pack("Q", number + 1)
        features = {1: tracing_data(order), 3: order.text("made"), 4: order.text("6.1.0-made"), 6: order.text("x86_64"),
                    12: descriptions}
        if not self.has_tracing:
            del features[1]
        at = data_at + len(data) + 16 * len(features)
        table = contents = b""
        for content in features.values():
            table += pack("QQ", at + len(contents), len(content))
            contents += content
        bits = pack("4Q", sum(1 << number for number in features), 0, 0, 0)
        magic = b"PERFILE2"
        head = (magic[::-1] if order.big else magic) + pack("QQ", 104, attr_bytes + 16)
        head += pack("QQQQQQ", attrs_at, len(attrs), data_at, len(data), 0, 0) + bits
        ids = b"".join(pack("Q", number + 1) for number in range(len(self.attrs)))
        with open(path, "wb") as file:
            file.write(head + ids + attrs + data + table + contents)
        return path


def perf_example(path, big=False):
    """Switches on two CPUs, out of order within a round, a call, samples, a loss."""
    perf = Perf(big)
    base = IDENTIFIER | IP | TID | TIME | CPU | PERIOD
    switches = perf.attr(2, 316, base | RAW, "sched:sched_switch")
    enter = perf.attr(2, 400, base | RAW, "raw_syscalls:sys_enter")
    leave = perf.attr(2, 399, base | RAW, "raw_syscalls:sys_exit")
    clock = perf.attr(1, 0, base | CHAIN, "cpu-clock")
    order = perf.order
    perf.comm(10, "one")
    perf.comm(20, "two")
    start = 1_000_000_000_000
    perf.sample(switches, 10, start + 3000, 0, switch(order, ("one", 10), ("two", 20)))
    perf.sample(switches, 20, start + 9000, 0, switch(order, ("two", 20), ("one", 10)))
    perf.sample(switches, 0, start + 1000, 1, switch(order, ("swapper/1", 0), ("three", 30)))
    perf.finish_round()
    perf.sample(enter, 30, start + 2000, 1, raw_enter(order, 30, 257, 0xffffff9c, 0x1234, 0, 0))
    perf.sample(leave, 30, start + 5000, 1, raw_exit(order, 30, 257, -2))
    perf.record(2, 0, order.pack("QQ", 1, 7) + perf.trailer(30, start + 6000, 1))
    perf.sample(clock, 20, start + 5500, 0, ip=0x401000,
                chain=[0xffffffffffffff80, 0xffffffff81000010, 0xfffffffffffffe00, 0x401000, 0x402000])
    perf.finish_round()
    perf.sample(enter, 30, start + 7000, 1, raw_enter(order, 30, 9999))
    perf.finish_round()
    return perf.write(path)


def dat_page(order, ns, records):
    """A page of the ring: [(ns, record)]. Bit fields of a big-endian machine begin with the highest bit."""
    def head(kind, delta):
        return order.pack("I", kind << 27 | delta if order.big else delta << 5 | kind)

    data = b""
    for at, record in records:
        delta, ns = at - ns, at
        if delta >= 1 << 27:
            data += head(30, delta & ((1 << 27) - 1)) + order.pack("I", delta >> 27)
            delta = 0
        record += b"\0" * (-len(record) % 4)
        if len(record) > 28 * 4 or len(record) == 0:
            data += head(0, delta) + order.pack("I", len(record) + 4) + record
        else:
            data += head(len(record) // 4, delta) + record
    return data


DAT_START = 1_000_000_000_000


def dat_records(order, start=DAT_START):
    """Of two CPUs, the events of perf_example()."""
    return [
        [(start + 3000, switch(order, ("one", 10), ("two", 20))), (start + 9000, switch(order, ("two", 20), ("one", 10)))],
        [(start + 1000, switch(order, ("swapper/1", 0), ("three", 30))),
         (start + 2000, raw_enter(order, 30, 257, 0xffffff9c, 0x1234, 0, 0)), (start + 5000, raw_exit(order, 30, 257, -2))],
    ]


def dat_write(path, order, buffers, options=()):
    """trace.dat, version 6. @buffers: (name, records of each CPU), the top one first; options: (number, bytes)."""
    n_cpus, uname = len(buffers[0][1]), b"Linux made 6.1.0-made #1 SMP x86_64\0"
    head = tracing_data(order, "6") + order.pack("I", n_cpus) + b"options  \0"
    for number, data in ((5, uname), *options):
        head += order.pack("HI", number, len(data)) + data
    places = len(head) + sum(6 + 8 + len(name) + 1 for name, _ in buffers[1:]) + 2
    section = 10 + 16 * n_cpus
    for i, (name, _) in enumerate(buffers[1:]):
        head += order.pack("HIQ", 3, 8 + len(name) + 1, places + section * (i + 1)) + name.encode() + b"\0"
    head += order.pack("H", 0)
    at = (len(head) + section * len(buffers) + 4095) // 4096 * 4096
    pages = bytearray()
    for _, cpus in buffers:
        head += b"flyrecord\0"
        for records in cpus:
            start = records[0][0] - 1000 if records else 0
            data = dat_page(order, start, records)
            head += order.pack("QQ", at + len(pages), 4096)
            pages += (order.pack("QQ", start, len(data)) + data).ljust(4096, b"\0")
    with open(path, "wb") as file:
        file.write(head.ljust(at, b"\0") + pages)
    return path


def dat_example(path, big=False):
    """trace.dat of two CPUs with the events of perf_example()."""
    order = Order(big)
    return dat_write(path, order, [("", dat_records(order))])


def pcapng_example(path):
    """A packet of TCP over IPv6, one of UDP in a VLAN, one of ARP."""
    def block(kind, body):
        body += b"\0" * (-len(body) % 4)
        return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))

    def packet(ns, data):
        return block(6, struct.pack("<IIIII", 0, ns >> 32, ns & 0xffffffff, len(data), len(data)) + data)

    mac = bytes(12)
    tcp = struct.pack(">HHIIBBHHH", 1000, 80, 7, 9, 0x50, 0x12, 512, 0, 0) + b"hello"
    ipv6 = struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + bytes(15) + b"\1" + bytes(15) + b"\2"
    udp = struct.pack(">HHHH", 53, 5353, 8 + 3, 0) + b"abc"
    ipv4 = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + bytes([10, 0, 0, 1, 192, 168, 100, 200])
    arp = struct.pack(">HHBBH", 1, 0x800, 6, 4, 1) + bytes(6) + bytes([10, 0, 0, 1]) + bytes(6) + bytes([10, 0, 0, 2])
    start = 1_764_181_493_000_000_001
    with open(path, "wb") as file:
        file.write(block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)))
        file.write(block(1, struct.pack("<HHI", 1, 0, 65535) + struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)))
        file.write(packet(start + 5, mac + b"\x86\xdd" + ipv6 + tcp))
        file.write(packet(start, mac + b"\x81\x00\x00\x05\x08\x00" + ipv4 + udp))
        file.write(packet(start + 9, mac + b"\x08\x06" + arp))
    return path
