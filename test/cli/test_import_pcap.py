# SPDX-License-Identifier: MIT
"""Files of packets, made by their formats' rules: variants of pcap, blocks of pcapng, damage. tcpdump judges where it reads them."""

import json
import os
import re
import resource
import struct
import subprocess

import pytest

START = 1_764_181_493
UDP = struct.pack(">HHHH", 7, 9, 8 + 3, 0) + b"abc"
TCP = struct.pack(">HHIIBBHHH", 1000, 80, 7, 9, 0x50, 0x12, 512, 0, 0) + b"hello"


def ipv4(payload, protocol=17, total=None, words=5):
    total = 20 + len(payload) if total is None else total
    return struct.pack(">BBHHHBBH", 0x40 | words, 0, total, 1, 0, 64, protocol, 0) + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + payload


def ipv6(payload, protocol, length=None):
    length = len(payload) if length is None else length
    return struct.pack(">IHBB", 6 << 28, length, protocol, 64) + bytes(15) + b"\1" + bytes(15) + b"\2" + payload


def ethernet(kind, payload):
    return bytes(12) + struct.pack(">H", kind) + payload


FRAME = ethernet(0x800, ipv4(UDP))


def pcap(path, packets, order="<", magic=0xa1b2c3d4, link=1, more=b""):
    """@packets: (seconds, fraction, data, length or None)."""
    with open(path, "wb") as file:
        file.write(struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link))
        for seconds, fraction, data, length in packets:
            file.write(struct.pack(order + "IIII", seconds, fraction, len(data), len(data) if length is None else length) + more + data)
    return path


def block(kind, body, order="<", end=None):
    body += bytes(-len(body) % 4)
    length = 12 + len(body)
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length if end is None else end)


def section(order="<"):
    return block(0x0a0d0d0a, struct.pack(order + "IHHq", 0x1a2b3c4d, 1, 0, -1), order)


def option(code, data, order="<"):
    return struct.pack(order + "HH", code, len(data)) + data + bytes(-len(data) % 4)


def interface(link=1, order="<", snap=262144, options=b""):
    return block(1, struct.pack(order + "HHI", link, 0, snap) + options, order)


def packet(data, number=0, ticks=START * 1_000_000, order="<", captured=None):
    captured = len(data) if captured is None else captured
    return block(6, struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xffffffff, captured, len(data)) + data, order)


def write(path, *parts):
    path.write_bytes(b"".join(parts))
    return path


def events_of(kymo, path, **how):
    return [json.loads(line) for line in kymo("convert", "--to", "json", path, **how).out.splitlines()]


def fields_of(kymo, path, **how):
    return [event["fields"] for event in events_of(kymo, path, **how)]


# ---- pcap -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("magic, more, unit", [(0xa1b2c3d4, b"", 1000), (0xa1b23c4d, b"", 1), (0xa1b2cd34, bytes(8), 1000)])
def test_variants_of_pcap(kymo, peer, tmp_path, order, magic, more, unit):
    path = pcap(tmp_path / "x.pcap", [(START, 5, FRAME, None), (START, 999_999, FRAME, 4000)], order, magic, more=more)
    first, second = events_of(kymo, path)
    assert first["timestamp_ns"] == START * 10**9 + 5 * unit and second["timestamp_ns"] == START * 10**9 + 999_999 * unit
    assert first["fields"]["payload"] == 3 and (second["fields"]["length"], second["fields"]["captured"]) == (4000, len(FRAME))
    assert len(peer("tcpdump", "-nr", path).out.splitlines()) == 2


@pytest.mark.parametrize("order", "<>")
def test_times_at_the_edges(kymo, tmp_path, order):
    """Seconds have 32 bits without a sign: until 2106, not 2038."""
    path = pcap(tmp_path / "x.pcap", [(1, 2_500_000, FRAME, None), (2**31, 1, FRAME, None), (2**32 - 1, 999_999, FRAME, None)], order)
    assert [event["timestamp_ns"] for event in events_of(kymo, path)] == [
        3_500_000_000, 2**31 * 10**9 + 1000, (2**32 - 1) * 10**9 + 999_999_000]


def test_times_that_go_back_often(kymo, tmp_path):
    """Each stream of a trace is in order, and there are not as many streams as a file may have turns: a warning counts them."""
    path = pcap(tmp_path / "x.pcap", [(START - i, 0, FRAME, None) for i in range(100)])
    done = kymo("convert", "--to", "json", path)
    assert len(done.out.splitlines()) == 100
    assert "x.pcap: 36 packets have a later time than in the file" in done.err


def test_same_file_comes_back(kymo, tmp_path):
    """The kinds of links have the numbers of files, which differ from libpcap's: raw IP is 101, and 12 only on some systems."""
    for link, data in ((1, FRAME), (101, ipv4(UDP)), (113, bytes(14) + b"\x08\0" + ipv4(UDP)), (276, b"\x08\0" + bytes(18) + ipv4(UDP)),
                       (0, struct.pack("<I", 2) + ipv4(UDP)), (127, bytes(30)), (4242, b"?")):
        path = pcap(tmp_path / "x.pcap", [(START, 7, data, None), (START, 8, data, 1000), (START, 9, b"", 60)], magic=0xa1b23c4d, link=link)
        kymo("convert", "--to", "pcap", "-o", tmp_path / "again.pcap", path)
        assert (tmp_path / "again.pcap").read_bytes() == path.read_bytes(), link
        if link not in (127, 4242):
            assert [(event["event"], event["fields"].get("payload")) for event in events_of(kymo, path)][:2] == [("udp", 3)] * 2


def test_times_that_pcap_lacks(kymo, tmp_path):
    path = pcap(tmp_path / "x.pcap", [(5, 0, FRAME, None)])
    for offset in ("-6s", "4294967291s"):
        done = kymo("convert", "--to", "pcap", "--clock-offset", offset, "-o", tmp_path / "again.pcap", path, code=1)
        assert "times from 1970 to 2106" in done.err and not (tmp_path / "again.pcap").exists()
    kymo("convert", "--to", "pcap", "--clock-offset", "-5s", "-o", tmp_path / "again.pcap", path)
    assert [event["timestamp_ns"] for event in events_of(kymo, tmp_path / "again.pcap")] == [0]


# ---- headers --------------------------------------------------------------------------------------


def test_payloads_are_tcpdumps(kymo, peer, tmp_path):
    """Also of what has no length of its own (large segments, cut by the card), is padded, or contradicts itself."""
    large = ethernet(0x800, ipv4(TCP, 6, total=0))
    jumbo = ethernet(0x86dd, ipv6(TCP, 6, length=0))
    packets = [
        (ethernet(0x800, ipv4(TCP, 6)), None, 5),
        (ethernet(0x800, ipv4(TCP, 6)) + bytes(9), None, 5),
        (ethernet(0x86dd, ipv6(TCP, 6)), None, 5),
        (ethernet(0x9100, b"\0\5\x81\0\0\6\x08\0" + ipv4(UDP)), None, 3),
        (large, 100_000, 100_000 - 14 - 20 - 20),
        (jumbo, None, 5),
        (ethernet(0x800, ipv4(UDP[:4] + b"\0\x09" + UDP[6:])), None, 1),
        (ethernet(0x800, ipv4(UDP[:4] + b"\xff\xff" + UDP[6:])), None, 3),
    ]
    path = pcap(tmp_path / "x.pcap", [(START, i, data, length) for i, (data, length, _) in enumerate(packets)])
    assert [fields["payload"] for fields in fields_of(kymo, path)] == [expected for _, _, expected in packets]
    # Packets of more than 64 KiB are new; tcpdump of 2023 calls them broken.
    pcap(path, [(START, i, data, length) for i, (data, length, _) in enumerate(packets) if data not in (large, jumbo)])
    lengths = [int(length) for length in re.findall(r"(?:length|tcp|>) (\d+)$", peer("tcpdump", "-qnr", path).out, re.M)]
    assert lengths == [expected for data, _, expected in packets if data not in (large, jumbo)]


def test_longer_headers_than_packets(kymo, tmp_path):
    """What is behind a header that is cut is no other header: the packet has no ports."""
    path = pcap(tmp_path / "x.pcap", [(START, 0, ethernet(0x86dd, ipv6(bytes([17, 255]) + bytes(6) + UDP, 60)), None)])
    (fields,) = fields_of(kymo, path)
    assert fields["protocol"] == 60 and fields["src"] == "::1" and "sport" not in fields


def test_headers_cut_at_each_byte(kymo, tmp_path):
    whole = [ethernet(0x800, ipv4(TCP, 6)), ethernet(0x86dd, ipv6(bytes([60, 0]) + bytes(6) + bytes([6, 0]) + bytes(6) + TCP, 0)),
             ethernet(0x8100, b"\0\5\x08\0" + ipv4(UDP)), ethernet(0x806, struct.pack(">HHBBH", 1, 0x800, 6, 4, 1) + bytes(20)),
             ethernet(0x800, ipv4(TCP, 6, words=4)), ethernet(0x800, ipv4(TCP[:12] + b"\0" + TCP[13:], 6)),
             ethernet(0x86dd, ipv6((bytes([0, 0]) + bytes(6)) * 40, 0))]
    cut = [(START, 0, data[:n], len(data)) for data in whole for n in range(len(data) + 1)]
    assert len(events_of(kymo, pcap(tmp_path / "x.pcap", cut))) == len(cut)


# ---- pcapng ---------------------------------------------------------------------------------------


def test_links_and_sections_of_pcapng(kymo, tmp_path):
    """What libpcap does not read: interfaces of several kinds and lengths, and sections of either byte order."""
    path = write(tmp_path / "x.pcapng",
                 section(), interface(), interface(101, snap=100), interface(276), packet(FRAME), packet(ipv4(UDP), 1),
                 packet(b"\x08\0" + bytes(18) + ipv4(UDP), 2),
                 section(">"), interface(101, ">", snap=0), packet(ipv4(UDP), order=">"),
                 section(), interface(), packet(FRAME))
    found = events_of(kymo, path)
    assert [event["event"] for event in found] == ["udp"] * 5
    assert {(event["timestamp_ns"], event["fields"]["payload"], event["fields"]["dst"]) for event in found} == {
        (START * 10**9, 3, "10.0.0.2")}
    # A file of pcap is of one kind of link.
    done = kymo("convert", "--to", "pcap", "-o", tmp_path / "x.pcap", path, code=1)
    assert "these are of 1 and 101" in done.err and "the filter \"data_link == 101\"" in done.err
    kymo("convert", "--to", "pcap", "--filter", "data_link == 101", "-o", tmp_path / "x.pcap", path)
    assert fields_of(kymo, tmp_path / "x.pcap") == [found[1]["fields"]] * 2


def test_thousands_of_interfaces(kymo, tmp_path):
    path = write(tmp_path / "x.pcapng", section(), *[interface(i % 300) for i in range(40_000)], packet(FRAME, 39_901))
    assert [fields["payload"] for fields in fields_of(kymo, path)] == [3]


TICKS = [(b"", START * 10**6, START * 10**9), (b"\0", START, START * 10**9), (b"\6", START * 10**6 + 1, START * 10**9 + 1000),
         (b"\x09", START * 10**9 + 7, START * 10**9 + 7), (b"\x0a", START * 10**10 + 77, START * 10**9 + 7),
         (b"\x7f", 2**64 - 1, 0), (b"\x80", START, START * 10**9), (b"\x81", START * 2 + 1, START * 10**9 + 500_000_000),
         (b"\xa0", (START << 32) + (1 << 31), START * 10**9 + 500_000_000), (b"\xff", 2**64 - 1, 0)]


@pytest.mark.parametrize("resolution, ticks, ns", TICKS)
def test_resolutions_of_time(kymo, tmp_path, resolution, ticks, ns):
    options = option(9, resolution) if resolution else b""
    for offset in (0, 100):
        more = option(14, struct.pack("<q", offset)) if offset else b""
        path = write(tmp_path / "x.pcapng", section(), interface(options=options + more + option(0, b"")), packet(FRAME, ticks=ticks))
        assert [event["timestamp_ns"] for event in events_of(kymo, path)] == [ns + offset * 10**9]


def test_packets_without_a_time(kymo, tmp_path):
    """Those of simple blocks, and of times that no clock has, stay behind the packet before; a warning counts them."""
    path = write(tmp_path / "x.pcapng", section(), interface(snap=40), interface(options=option(14, struct.pack("<q", -2**63))),
                 packet(FRAME), block(3, struct.pack("<I", len(FRAME)) + FRAME[:40]), packet(FRAME, 1), packet(FRAME, ticks=START * 10**6 + 5))
    done = kymo("convert", "--to", "json", path)
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [event["timestamp_ns"] - START * 10**9 for event in found] == [0, 0, 0, 5000]
    assert [event["fields"]["captured"] for event in found] == [len(FRAME), 40, len(FRAME), len(FRAME)]
    assert "x.pcapng: 2 packets have no time" in done.err


def test_other_blocks_of_pcapng(kymo, tmp_path):
    old = block(2, struct.pack("<HHIIII", 0, 3, START * 10**6 >> 32, START * 10**6 & 0xffffffff, len(FRAME), len(FRAME)) + FRAME)
    path = write(tmp_path / "x.pcapng", section(), interface(), block(4, bytes(20)), old, block(5, bytes(12)), block(10, bytes(20)),
                 block(0xbad, b"custom"), block(0x40000bad, bytes(4)), block(0x80000001, b""), packet(FRAME))
    assert [event["timestamp_ns"] for event in events_of(kymo, path)] == [START * 10**9] * 2


GOOD = section() + interface() + packet(FRAME)
DAMAGE = [
    ("length", struct.pack("<II", 6, 10) + bytes(100), "a block has an impossible length", 1),
    ("zeros", bytes(5000), "a block has an impossible length", 1),
    ("huge", struct.pack("<II", 6, 0xfffffffc) + bytes(100), "a block is cut", 1),
    ("cut", packet(FRAME)[:-5], "a block is cut", 1),
    ("few", b"\6\0\0\0", "a block is cut", 1),
    ("end", block(6, bytes(20), end=36) + packet(FRAME), "another length at its end", 1),
    ("order", b"\n\r\r\n" + bytes(24), "a section has no byte order", 1),
    ("version", block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 9, 0, -1)) + packet(FRAME), "a section is of an unknown version", 1),
    # Behind these, the blocks still make sense.
    ("interface", packet(FRAME, 7) + packet(FRAME), "an interface that the file does not describe", 2),
    ("captured", packet(FRAME, captured=9999) + packet(FRAME), "a packet is longer than its block", 2),
    ("endless", packet(FRAME, captured=2**32 - 1) + packet(FRAME), "a packet is longer than its block", 2),
    ("short", block(6, bytes(8)) + packet(FRAME), "the block of a packet is too short", 2),
    ("described", block(1, b"\1\0\0\0") + interface() + packet(FRAME, 2), "the description of an interface is too short", 2),
]


@pytest.mark.parametrize("more, message, n", [pytest.param(*d[1:], id=d[0]) for d in DAMAGE])
def test_damaged_pcapng(kymo, tmp_path, more, message, n):
    path = write(tmp_path / "x.pcapng", GOOD, more)
    done = kymo("convert", "--to", "json", path, code=1)
    assert len(done.out.splitlines()) == n
    assert re.search(rf"x\.pcapng: .*{message}.* \(at byte {len(GOOD)}\)", done.err), done.err


def test_pcap_cut_in_a_packet(kymo, tmp_path):
    """The place of the damage is that of the packet."""
    path = pcap(tmp_path / "x.pcap", [(START, 0, FRAME, None)] * 2)
    whole = path.read_bytes()
    for size in range(len(whole) - len(FRAME) - 15, len(whole)):
        path.write_bytes(whole[:size])
        done = kymo("convert", "--to", "json", path, code=1)
        assert len(done.out.splitlines()) == 1 and f"(at byte {24 + 16 + len(FRAME)})" in done.err, (size, done.err)


def test_huge_blocks_take_no_memory(kymo_bin, tmp_path):
    """A file of holes: the packet of 2 GB is an event, and the bytes that nobody asked for are not read."""
    path, size = tmp_path / "x.pcapng", 2_000_000_000
    with open(path, "wb") as file:
        for kind in (6, 0xbad):
            file.write(GOOD + struct.pack("<IIIIIII", kind, size, 0, 0, 5, size - 32, size - 32))
            file.seek(size - 32, os.SEEK_CUR)
            file.write(struct.pack("<I", size))
        file.write(packet(FRAME))
    limit = None if "asan" in kymo_bin else lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    done = subprocess.run([kymo_bin, "convert", "--to", "json", path], preexec_fn=limit,  # pylint: disable=subprocess-popen-preexec-fn
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["fields"]["length"] for line in done.stdout.splitlines()].count(size - 32) == 1
    assert len(done.stdout.splitlines()) == 4
