# SPDX-License-Identifier: MIT
"""Perfetto's traces, read as traces: those that Kymo makes, and one made by hand of what Perfetto itself writes; trace_processor judges."""

import json
import re
import zlib



def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A number, or bytes: text, a message, packed numbers."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, list):
        value = b"".join(map(varint, value))
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def message(*pairs):
    return b"".join(field(number, value) for number, value in pairs)


def packet(*pairs):
    return field(1, message(*pairs))


BOOT, UNIX = 1_000_000_000_000, 1_764_181_493_000_000_000


def example():
    """A compact schedule of CPU 1, and slices of a thread with interned names on a clock of their sequence."""
    compact = message((5, "swapper/1"), (5, "work"), (1, [BOOT + 1000, 2000, 3000]), (2, [0, 1, 2]), (3, [7, 0, 8]),
                      (4, [120, 120, 98]), (6, [1, 0, 1]), (7, [BOOT + 1500]), (8, [7]), (9, [1]), (10, [120]), (11, [1]))
    waking = message((1, BOOT + 4000), (2, 7), (20, message((1, "work"), (2, 8), (3, 98), (5, 1))))
    generic = message((1, BOOT + 4500), (2, 7), (327, message(
        (1, "my_event"), (2, message((1, "count"), (4, 3))), (2, message((1, "what"), (3, "text"))))))
    call = message((1, BOOT + 4600), (2, 7), (329, message((1, 257))))
    returned = message((1, BOOT + 4700), (2, 7), (330, message((1, 257), (2, -2))))
    clocks = message((1, message((1, 6), (2, BOOT))), (1, message((1, 1), (2, UNIX))),
                     (1, message((1, 64), (2, 5), (3, 1), (4, 1000))))
    tree = message((1, message((1, 7), (2, 1), (3, "/bin/work"))), (2, message((1, 8), (3, 7))))
    thread = message((1, 99), (4, message((1, 7), (2, 8))))
    names = message((1, message((1, 1), (2, "db"))), (2, message((1, 1), (2, "query"))), (3, message((1, 1), (2, "table"))))
    begin = message((9, 1), (10, 1), (3, 1), (11, 99), (4, message((1, 1), (6, "users"))),
                    (4, message((10, "where"), (11, message((10, "id"), (4, 5))))))
    return b"".join([
        packet((10, 3), (13, 1), (6, clocks), (59, message((58, 64), (11, message((11, 99))))), (8, 0)),
        packet((10, 3), (60, thread)),
        packet((10, 3), (60, message((1, 100), (5, 99), (2, "queue"), (8, b"")))),
        packet((10, 1), (2, tree), (8, BOOT)),
        packet((10, 3), (8, 10), (12, names), (11, begin)),
        packet((10, 1), (1, message((1, 1), (2, waking), (2, generic), (2, call), (2, returned), (4, compact)))),
        packet((50, zlib.compress(packet((10, 3), (8, 5), (11, message((9, 2))))))),
        packet((10, 3), (8, 1), (11, message((9, 4), (11, 100), (30, 17)))),
    ])


def events(kymo, *args, code=0):
    return [json.loads(line) for line in kymo("convert", "--to", "json", *args, code=code).out.splitlines()]


def brief(event):
    return event["event"], event["timestamp_ns"] - UNIX, event["context"]["tid"], event["fields"]


def test_what_perfetto_writes(kymo, query, tmp_path):
    path = tmp_path / "made.pftrace"
    path.write_bytes(example())
    found = events(kymo, path)
    told = [brief(event) for event in found if "statedump" not in event["event"]]
    assert told == [
        ("sched_waking", 1500, 7, {"comm": "work", "tid": 7, "prio": 20, "target_cpu": 1}),
        ("sched_switch", 3000, 7, {"prev_comm": "work", "prev_tid": 7, "prev_prio": 20, "prev_state": 1,
                                   "next_comm": "swapper/1", "next_tid": 0, "next_prio": 20}),
        ("sched_waking", 4000, 7, {"comm": "work", "tid": 8, "prio": -2, "target_cpu": 1}),
        ("my_event", 4500, 7, {"count": 3, "what": "text"}),
        ("syscall_entry_openat", 4600, 7, {}),
        ("syscall_exit_openat", 4700, 7, {"ret": -2}),
        ("sched_switch", 6000, 0, {"prev_comm": "swapper/1", "prev_tid": 0, "prev_prio": 20, "prev_state": 2,
                                   "next_comm": "work", "next_tid": 8, "next_prio": -2}),
        ("query_begin", 10_000, 8, {"cat": "db", "table": "users", "where": "{id=5}"}),
        ("query_end", 15_000, 8, {}),
        ("queue", 16_000, 8, {"value": 17}),
    ]
    assert {e["packet"]["cpu_id"] for e in found if e["event"] == "sched_switch"} == {1}
    dumped = [e["fields"] for e in found if "statedump" in e["event"]]
    assert dumped == [{"tid": 7, "pid": 7, "ppid": 1, "name": "/bin/work"}, {"tid": 8, "pid": 7, "ppid": 0, "name": ""}]
    # Perfetto's own reading of it.
    complaints, slices, switches = query(
        path, "SELECT name FROM stats WHERE value > 0 AND severity = 'error'",
        "SELECT s.name, ts, dur, tid FROM slice s JOIN thread_track t ON s.track_id = t.id JOIN thread USING (utid) "
        "WHERE s.name = 'query'",
        "SELECT ts, ucpu AS cpu, tid FROM sched JOIN thread USING (utid) ORDER BY ts")
    assert not complaints
    assert [(s["name"], int(s["ts"]) - BOOT, int(s["dur"]), s["tid"]) for s in slices] == [("query", 10_000, 5000, 8)]
    assert [(int(s["ts"]) - BOOT, s["cpu"], s["tid"]) for s in switches] == [(3000, 1, 0), (6000, 1, 8)]


def test_kymos_own_come_back(kymo, shared, tmp_path):
    """Reports on what --to perfetto wrote are those on the trace."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    out = tmp_path / "kernel.pftrace"
    kymo("convert", "--to", "perfetto", "-o", out, trace)

    def cpu_times(path):
        found = json.loads(kymo("report", "cpu", "--limit", 0, "--json", path).out)
        (rows,) = (t["rows"] for t in found["reports"][0]["tables"] if t["name"] == "threads")
        return {row["process"]["tid"]: row["cpu_time"] for row in rows}

    ours, back = cpu_times(trace), cpu_times(out)
    same = [tid for tid in ours if back.get(tid) == ours[tid]]
    assert len(same) >= len(ours) - 3
    for name in ("sched_switch", "irq_softirq_entry"):
        keys = [[(e["timestamp_ns"], e["packet"]["cpu_id"]) for e in events(kymo, "--event", name, path)]
                for path in (trace, out)]
        assert keys[0] == keys[1] and keys[0]


def test_programs_come_back(kymo, shared, tmp_path):
    trace, out = f"{shared}/traces/lttng-ust", tmp_path / "user.pftrace"
    kymo("convert", "--to", "perfetto", "-o", out, "--head", 200, trace)
    ours = [(e["timestamp_ns"], e["event"], e["fields"]) for e in events(kymo, "--head", 200, trace)]
    back = [(e["timestamp_ns"], e["event"], {k: v for k, v in e["fields"].items() if k != "cat"}) for e in events(kymo, out)]
    assert back == ours


def test_damage(kymo, tmp_path):
    """What is good before a cut is read, and the error has the offset; anything else ends without a crash."""
    path, data = tmp_path / "cut.pftrace", example()
    whole = len(events(kymo, write(path, data)))
    counts = set()
    for size in range(100, len(data), 7):
        result = kymo("convert", "--to", "json", write(path, data[:size]), code=None)
        assert result.code in (0, 1), result
        if result.code:
            assert re.search(r"\(at byte \d+\)", result.err), (size, result.err)
        counts.add(len(result.out.splitlines()))
    assert max(counts) <= whole and len(counts) > 3
    for at in range(0, len(data), 3):
        assert kymo("convert", "--to", "json", write(path, data[:at] + b"\xff" + data[at + 1:]), code=None).code in (0, 1)


def write(path, data):
    path.write_bytes(data)
    return path


def test_a_bomb_is_refused(kymo, tmp_path):
    data = example() + packet((50, zlib.compress(bytes(300 << 20), 9)))
    result = kymo("convert", "--to", "json", write(tmp_path / "bomb.pftrace", data), code=1)
    assert "unpack" in result.err and result.out.count("\n") > 5


def switch_of(cpu, ns=BOOT + 4000):
    return packet((10, 1), (1, message((1, cpu), (2, message((1, ns), (2, 7), (20, message((1, "work"), (2, 8))))))))


def stopped(kymo, path):
    """The events of a damaged file, and the offset that its error has."""
    result = kymo("convert", "--to", "json", path, code=1)
    assert str(path) in result.err, result.err
    return result.out.splitlines(), result.err, int(re.search(r"\(at byte (\d+)\)", result.err).group(1))


def test_limits_have_a_place(kymo, tmp_path):
    """What is good before a limit is read; the error has the place of the packet."""
    good = b"".join(map(switch_of, (0, 1, 4095)))
    assert len(events(kymo, write(tmp_path / "good", good))) == 3
    for cpu in (4096, (1 << 32) - 1, 1 << 32):
        lines, err, offset = stopped(kymo, write(tmp_path / "cpus", good + switch_of(cpu) + switch_of(2)))
        assert len(lines) == 3 and f"CPU {cpu} is above the limit of 4096 CPUs" in err and offset == len(good) + 2
    sequences = b"".join(packet((10, i)) for i in range(1, 65538))
    lines, err, offset = stopped(kymo, write(tmp_path / "sequences", good + sequences))
    assert len(lines) == 3 and "more than 65536 sequences" in err and offset > len(good + sequences) - 8
    kinds = [packet((10, 1), (8, BOOT), (11, message((9, 3), (23, f"kind{i}")))) for i in range(65537)]
    lines, err, offset = stopped(kymo, write(tmp_path / "kinds", b"".join(kinds)))
    assert len(lines) == 65536 and "more than 65536 kinds" in err and offset == len(b"".join(kinds[:-1])) + 2


def test_damage_within_a_packet_is_told(kymo, tmp_path):
    good = switch_of(0) + switch_of(3)
    for bad in (packet((10, 1), (8, BOOT))[:1] + b"\x03\x08\x01\x0f", packet((1, b"\x08\x01\x12\x7f")),
                packet((8, BOOT), (11, b"\x48\x01\x5a\x7f"))):
        lines, err, offset = stopped(kymo, write(tmp_path / "bad", good + bad + switch_of(1)))
        assert "a packet contradicts itself" in err and offset == len(good) + 2 and len(lines) >= 3
    lines, err, offset = stopped(kymo, write(tmp_path / "late", good + switch_of(1, 1 << 63) + switch_of(2)))
    assert "the time of an event makes no sense" in err and offset == len(good) + 2 and len(lines) == 4
