# SPDX-License-Identifier: MIT
"""Small CTF 1.8 traces made by hand, for tests that must know every byte.

The layout is LTTng's: header {magic, uuid, stream_id, stream_instance_id}, context
{timestamp_begin, timestamp_end, content_size, packet_size, packet_seq_num, events_discarded,
cpu_id}, compact event headers (5-bit id, 27-bit time stamp; id 31: 32 and 64 bits).
"""

import os
import struct

UUID = bytes(range(16, 32))
UUID_TEXT = "10111213-1415-1617-1819-1a1b1c1d1e1f"
ORIGIN_S = 1700000000  # of the clock, after the Unix epoch
HEADER_BYTES = 32 + 52

METADATA = f"""/* CTF 1.8 */
typealias integer {{ size = 8; align = 8; signed = false; }} := uint8_t;
typealias integer {{ size = 16; align = 8; signed = false; }} := uint16_t;
typealias integer {{ size = 32; align = 8; signed = false; }} := uint32_t;
typealias integer {{ size = 64; align = 8; signed = false; }} := uint64_t;
typealias integer {{ size = 5; align = 1; signed = false; }} := uint5_t;
typealias integer {{ size = 27; align = 1; signed = false; }} := uint27_t;
trace {{
    major = 1; minor = 8; uuid = "{UUID_TEXT}"; byte_order = le;
    packet.header := struct {{
        uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id;
    }};
}};
env {{ hostname = "lab"; domain = "test"; tracer_major = 2; }};
clock {{
    name = "ticks"; uuid = "00112233-4455-6677-8899-aabbccddeeff"; description = "made by hand";
    freq = 1000000000; offset_s = {ORIGIN_S}; offset = 0; absolute = TRUE;
}};
typealias integer {{ size = 27; align = 1; signed = false; map = clock.ticks.value; }} := ts27_t;
typealias integer {{ size = 64; align = 8; signed = false; map = clock.ticks.value; }} := ts64_t;
stream {{
    id = 0;
    event.header := struct {{
        enum : uint5_t {{ compact = 0 ... 30, extended = 31 }} id;
        variant <id> {{
            struct {{ ts27_t timestamp; }} compact;
            struct {{ uint32_t id; ts64_t timestamp; }} extended;
        }} v;
    }} align(8);
    packet.context := struct {{
        ts64_t timestamp_begin; ts64_t timestamp_end; uint64_t content_size; uint64_t packet_size;
        uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id;
    }};
    event.context := struct {{ integer {{ size = 32; align = 8; signed = true; }} _tid; }};
}};
event {{
    name = "tick"; id = 0; stream_id = 0; loglevel = 13;
    fields := struct {{
        uint32_t _number; string _text;
        enum : uint8_t {{ idle, busy = 1 ... 3, "very busy" = 4 }} _state;
    }};
}};
event {{
    name = "data"; id = 1; stream_id = 0;
    fields := struct {{
        uint16_t __n_length; uint32_t _n[__n_length];
        enum : uint8_t {{ small = 0, large = 1 }} _which;
        variant <_which> {{ uint8_t small; integer {{ size = 64; align = 64; }} large; }} _value;
        struct {{ integer {{ size = 16; align = 8; byte_order = be; base = 16; }} _x;
                  uint8_t _y; }} _point;
        integer {{ size = 8; align = 8; encoding = UTF8; }} _comm[8];
        floating_point {{ exp_dig = 11; mant_dig = 53; align = 8; }} _ratio;
    }};
}};
event {{ name = "space, quote\\" and/slash"; id = 2; stream_id = 0; fields := struct {{ }}; }};
"""


class Packet:
    """One packet that is being filled. Times are cycles: ns after ORIGIN_S."""

    def __init__(self, begin, seq=0, discarded=0, cpu=0, instance=0):
        self.begin, self.seq, self.discarded = begin, seq, discarded
        self.cpu, self.instance = cpu, instance
        self.last = begin
        self.body = b""

    def head(self, event_id, time):
        """Header and stream context; the short form whenever it can be decoded."""
        if time - self.last < 1 << 27:
            self.body += struct.pack("<I", event_id | (time & (1 << 27) - 1) << 5)
        else:
            self.body += struct.pack("<BIQ", 31, event_id, time)
        self.last = time
        self.body += struct.pack("<i", 1000 + self.cpu)

    def tick(self, time, number, text=b"tock", state=0):
        self.head(0, time)
        self.body += struct.pack("<I", number) + text + b"\0" + bytes([state])

    def data(self, time, numbers, which, value, comm=b"kymo", ratio=0.5):
        self.head(1, time)
        self.body += struct.pack("<H", len(numbers))
        self.body += b"".join(struct.pack("<I", n) for n in numbers) + bytes([which])
        if which:
            self.body += bytes(-(HEADER_BYTES + len(self.body)) % 8) + struct.pack("<Q", value)
        else:
            self.body += bytes([value])
        self.body += struct.pack(">H", 0xbeef) + b"\x07" + comm.ljust(8, b"\0")
        self.body += struct.pack("<d", ratio)

    def odd(self, time):
        self.head(2, time)

    def raw(self, end=None, pad=0):
        content = HEADER_BYTES + len(self.body)
        return (struct.pack("<I", 0xC1FC1FC1) + UUID + struct.pack("<IQ", 0, self.instance) +
                struct.pack("<QQQQQQI", self.begin, self.last if end is None else end, content * 8,
                            (content + pad) * 8, self.seq, self.discarded, self.cpu) +
                self.body + bytes(pad))


def write(path, streams, metadata=METADATA):
    """A trace directory: @streams maps file names to bytes, or to lists of packets."""
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "metadata"), "w", encoding="utf-8") as file:
        file.write(metadata)
    for name, packets in streams.items():
        if isinstance(packets, list):
            packets = b"".join(p.raw(pad=16) if isinstance(p, Packet) else p for p in packets)
        with open(os.path.join(path, name), "wb") as file:
            file.write(packets)
    return path


def sample(path, packets=4, per_packet=50):
    """Two streams, all event types, a loss in the second packet, a gap before the last.

    No text is empty: babeltrace2 2.0.4 shows the text before it instead.
    """
    streams = {}
    for cpu in range(2):
        made, time = [], 1000 * cpu
        for number in range(packets):
            lost = 7 if number else 0
            packet = Packet(time, number + (number == packets - 1), lost, cpu, cpu)
            for i in range(per_packet):
                # Now and then more than the short time stamp can tell.
                time += 300_000_000 if i == 20 else 1000 + 37 * i
                if i % 5 == 3:
                    packet.data(time, range(i % 4), i // 5 % 2, i, comm=b"task-%d" % i)
                elif i % 11 == 7:
                    packet.odd(time)
                else:
                    packet.tick(time, i + 100 * number, b"t" * (1 + i % 9), i % 6)
            made.append(packet)
            time += 5000
        streams[f"channel_{cpu}"] = made
    return write(path, streams)


SWITCHES = """/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
env { hostname = "h"; domain = "kernel"; };
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := letter;
clock { name = c; freq = 1000000000; offset = 0; };
stream { packet.context := struct { integer { size = 32; align = 8; signed = false; } cpu_id; };
    event.header := struct { integer { size = 64; align = 8; signed = false; map = clock.c.value; } timestamp; }; };
event { name = "sched_switch"; id = 0; fields := struct { letter _prev_comm[8]; i32 _prev_tid; i32 _prev_prio; i32 _prev_state;
    letter _next_comm[8]; i32 _next_tid; i32 _next_prio; }; };
"""


def switches(path, threads):
    """One CPU, on which each of @threads (pairs of name and ID) runs for a microsecond, and then the idle task."""
    task, idle = struct.Struct("<8s2i").pack, struct.pack("<8s2i", b"swapper", 0, 20)
    running, sleeping = struct.pack("<i", 0), struct.pack("<i", 1)
    events = [struct.pack("<Q", 2000 * i) + idle + running + task(name, tid, 20) +
              struct.pack("<Q", 2000 * i + 1000) + task(name, tid, 20) + sleeping + idle
              for i, (name, tid) in enumerate(threads)]
    return write(path, {"c_0": bytes(4) + b"".join(events)}, SWITCHES)
