# SPDX-License-Identifier: MIT
"""kymo sync: clocks of several machines, whose true differences are known to the ns: a real exchange with shifted times."""

import json
import os
import shutil
import struct
import subprocess
import sys
import time

import pytest

S = 10**9
PROGRAM = """
import socket, sys, time
if sys.argv[1] == "server":
    with socket.socket() as listener:
        listener.bind(("10.214.0.2", 7000))
        listener.listen()
        print(flush=True)
        with listener.accept()[0] as peer:
            while question := peer.recv(4096):
                peer.send(question)
else:
    with socket.create_connection(("10.214.0.2", 7000)) as peer:
        for i in range(150):
            peer.send(b"question")
            peer.recv(100)
            time.sleep(0.005)
"""


def wait_for(condition, seconds=60):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.05)


def ip(*args):
    return subprocess.run(["ip", *args], capture_output=True, check=False).returncode == 0


def capture(name, side, path):
    return subprocess.Popen(["ip", "netns", "exec", f"{name}{side}", "tcpdump", "-U", "-q", "-i", f"{name}{side}", "-w", path,
                             "--time-stamp-precision=nano", "-Z", "root", "tcp"], stderr=subprocess.DEVNULL)


def exchange(name, folder):
    """Two captures of the same packets, with the same clock."""
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    paths = [folder / f"{side}.pcap" for side in ("client", "server")]
    captures = [capture(name, side, path) for side, path in enumerate(paths)]
    wait_for(lambda: all(path.exists() and path.stat().st_size >= 24 for path in paths))
    server = subprocess.Popen(["ip", "netns", "exec", f"{name}1", sys.executable, folder / "program.py", "server"],
                              stdout=subprocess.PIPE)
    server.stdout.readline()
    subprocess.run(["ip", "netns", "exec", f"{name}0", sys.executable, folder / "program.py", "client"], check=True)
    server.wait()
    # The last packets are written when tcpdump gets to them.
    sizes = []
    wait_for(lambda: sizes.append([path.stat().st_size for path in paths]) or
             (len(sizes) > 10 and len(set(map(tuple, sizes[-10:]))) == 1 and min(sizes[-1]) > 20000))
    for one in captures:
        one.terminate()
        one.wait()
    return paths


@pytest.fixture(scope="session")
def captures(tmp_path_factory):
    if os.geteuid() or not shutil.which("ip") or not shutil.which("tcpdump"):
        pytest.skip("needs root, ip and tcpdump")
    name, folder = f"ks{os.getpid()}n", tmp_path_factory.mktemp("exchange")
    try:
        if not (ip("netns", "add", f"{name}0") and ip("netns", "add", f"{name}1") and
                ip("link", "add", f"{name}0", "netns", f"{name}0", "type", "veth",
                   "peer", "name", f"{name}1", "netns", f"{name}1")):
            pytest.skip("no network namespaces with veth here")
        for side in (0, 1):
            if not (ip("-n", f"{name}{side}", "addr", "add", f"10.214.0.{side + 1}/24", "dev", f"{name}{side}") and
                    ip("-n", f"{name}{side}", "link", "set", f"{name}{side}", "up")):
                pytest.skip("the wire between network namespaces does not work here")
        return exchange(name, folder)
    finally:
        for side in (0, 1):
            ip("netns", "del", f"{name}{side}")


def packets(path):
    """[(ns, the lengths, the bytes)] of a capture with ns."""
    data, at, found = path.read_bytes(), 24, []
    assert data[:4] == b"\x4d\x3c\xb2\xa1"
    while at + 16 <= len(data):
        seconds, ns, captured, length = struct.unpack_from("<IIII", data, at)
        found.append((seconds * S + ns, length, data[at + 16:at + 16 + captured]))
        at += 16 + captured
    return found


def write(path, like, content):
    with open(path, "wb") as file:
        file.write(like.read_bytes()[:24])
        for ns, length, data in content:
            file.write(struct.pack("<IIII", ns // S, ns % S, len(data), length) + data)
    return path


def drifted(content, offset, ppb, begin):
    """What another clock would have read at these times."""
    return [(ns + offset + (ns - begin) * ppb // S, length, data) for ns, length, data in content]


def times(kymo, *args):
    return [int(json.loads(line)["timestamp_ns"]) for line in kymo("convert", "--to", "json", *args).out.splitlines()]


def sync(kymo, *args):
    return json.loads(kymo("sync", "--json", *args).out)


@pytest.fixture
def shifted(captures, tmp_path):
    """The client's capture, the server's with another clock, the true times of the latter."""
    client = shutil.copy(captures[0], tmp_path / "client.pcap")
    true = packets(captures[1])
    server = write(tmp_path / "server.pcap", captures[1], drifted(true, 3_200_000_000, 40_000, true[0][0]))
    return client, server, [ns for ns, _, _ in true]


def test_times_come_back(kymo, shifted, tmp_path):
    client, server, true = shifted
    raw = times(kymo, server)
    assert max(abs(a - b) for a, b in zip(raw, true)) > 3 * S
    result = sync(kymo, client, server)
    assert result["reference"] == str(client)
    [pair] = result["pairs"]
    assert pair["quality"] == "ACCURATE" and pair["in_tree"]
    assert pair["messages_ab"] > 100 and pair["messages_ba"] > 100
    machine = result["machines"][1]
    bound = max(machine["begin_bound_ns"], machine["end_bound_ns"])
    assert bound < 5_000_000
    assert abs(machine["drift"] + 40_000 * S) <= machine["drift_bound"] + 2 * S
    # Every reader has the right times now, within what it says.
    read = times(kymo, server)
    assert max(abs(a - b) for a, b in zip(read, true)) <= bound
    asked = json.loads(kymo("query", "--json", server, "SELECT time FROM tcp").out)
    assert [row["time"] for row in asked] == read
    for version in ("ctf1.8", "ctf2"):
        kymo("convert", "--to", version, "-o", tmp_path / version, server)
        assert times(kymo, tmp_path / version) == read
    # From a time on: the index finds it by corrected times.
    some = json.loads(kymo("query", "--json", server, "-p", f"from={read[100]}",
                           "SELECT count(*) AS n FROM tcp WHERE time >= :from").out)
    assert some[0]["n"] == sum(ns >= read[100] for ns in read)
    # Not asked for; and never again.
    assert times(kymo, "--no-sync", server) == raw
    assert kymo("sync", "--show", client, server).out.count("ACCURATE") == 2
    assert "removed 2 files" in kymo("sync", "--remove", client, server).out
    assert times(kymo, server) == raw


def test_other_order_is_uncertain(kymo, shifted):
    client, server, _ = shifted
    plain = kymo("print", "--uncertain", client).out.splitlines()
    assert all(line.startswith("  [") for line in plain)
    sync(kymo, client, server)
    lines = kymo("print", "--uncertain", "--jobs", "4", client, server).out.splitlines()
    assert {line[:3] for line in lines} == {"  [", "~ ["}
    # Seconds apart: nothing is uncertain.
    apart = kymo("print", "--uncertain", "--clock-offset", "client.pcap:100s", client, server).out.splitlines()
    assert not any(line.startswith("~") for line in apart)


def test_one_way_and_none(kymo, captures, shifted, tmp_path):
    client, server, _ = shifted
    there = [one for one in packets(captures[0]) if one[2][26:30] == bytes([10, 214, 0, 1])]
    half = write(tmp_path / "half.pcap", captures[0], there)
    result = sync(kymo, half, server)
    assert [pair["quality"] for pair in result["pairs"]] == ["INCOMPLETE"]
    assert result["machines"][1]["quality"] == "INCOMPLETE"
    assert times(kymo, server) == times(kymo, "--no-sync", server)
    # Others' packets.
    moved = [(ns, length, data[:26] + bytes([10, 9, 9, 9]) + data[30:]) for ns, length, data in packets(captures[0])]
    other = write(tmp_path / "other.pcap", captures[0], moved)
    done = kymo("sync", client, other)
    assert "ABSENT" in done.out and "stay as they are" in done.err
    # One exchange: no drift.
    few = write(tmp_path / "few.pcap", captures[0], packets(captures[0])[:6])
    assert [pair["quality"] for pair in sync(kymo, few, server)["pairs"]] == ["APPROXIMATE"]
    assert "all traces are of one machine" in kymo("sync", client, code=2).err
    assert "no machine" in kymo("sync", "--reference", "nobody", client, server, code=2).err


def test_a_clock_that_was_set(kymo, captures, tmp_path):
    true = packets(captures[1])
    half = len(true) // 2
    server = write(tmp_path / "server.pcap", captures[1], true[:half] + drifted(true[half:], S, 0, 0))
    [pair] = sync(kymo, captures[0], server)["pairs"]
    assert pair["quality"] == "APPROXIMATE" and pair["bound_ns"] > 100_000_000
    kymo("sync", "--remove", captures[0], server)


def test_hostile_files(kymo, shifted):
    client, server, _ = shifted
    sync(kymo, client, server)
    raw = times(kymo, "--no-sync", server)
    file = server.with_name(".server.pcap.kymo-sync.json")
    good = json.loads(file.read_text(encoding="utf-8"))
    for change in ({"drift": 10**18}, {"drift": "1"}, {"at_ns": 2**70}, {"begin_ns": 5, "end_ns": 4}, {"quality": "GOOD"},
                   {"trace": "0" * 16}, {"kymo_sync": 2}, {"pairs": [[[[[[[[[[[]]]]]]]]]]]}, {"machine": "x" * 5000}):
        file.write_text(json.dumps(good | change), encoding="utf-8")
        done = kymo("print", server)
        assert "not corrected" in done.err
        assert times(kymo, server) == raw
    file.write_bytes(b"\xff" * 10)
    assert "not corrected" in kymo("print", server).err
    # The trace is another one now.
    file.write_text(json.dumps(good), encoding="utf-8")
    with open(server, "r+b") as trace:
        trace.seek(30)
        trace.write(b"\1")
    assert "another trace" in kymo("print", server).err


def test_marks(kymo, tmp_path):
    begin = 1_795_000_000 * S
    logs = []
    for name, offset, ppb in (("a", 0, 0), ("b", -7 * S, 25_000)):
        path = tmp_path / f"{name}.log"
        with open(path, "w", encoding="utf-8") as log:
            for i in range(200):
                ns = begin + i * S // 10 + (i * 7919 % 2000)
                ns += offset + (ns - begin) * ppb // S
                log.write(f"{ns // S}.{ns % S:09d} pulse {i}\n")
        logs.append(path)
    options = ["--log-format", r"(?<time>\d+\.\d+) (?<word>\w+) (?<number>\d+)", "--log-time", "%s.%f"]
    events = [json.loads(line) for line in kymo("convert", "--to", "json", *options, logs[0]).out.splitlines()]
    assert len(events) == 200
    mark = f"{events[0]['event']}:number"
    result = sync(kymo, *options, "--mark", mark, "--mark-error", "10us", *logs)
    [pair] = result["pairs"]
    assert pair["quality"] == "ACCURATE" and pair["bound_ns"] < 20_000
    machine = result["machines"][1]
    assert machine["marks"] == 200
    assert abs(machine["shift_ns"] - 7 * S) < 20_000
    assert abs(machine["drift"] + 25_000 * S) <= machine["drift_bound"] + 2 * S


def test_headers_of_lttng(kymo, lttng_kernel, tmp_path):
    """Packets that it sent to itself, once as sender and once as receiver: one direction."""
    for name, event in (("sent", "net_dev_queue"), ("received", "net_if_receive_skb")):
        kymo("convert", "--to", "ctf1.8", "-e", event, "-o", tmp_path / name, lttng_kernel)
    result = sync(kymo, tmp_path / "sent", tmp_path / "received")
    [pair] = result["pairs"]
    assert pair["quality"] == "INCOMPLETE"
    assert pair["messages_ab"] > 300 and not pair["messages_ba"]


def test_addon_events_of_lttng(kymo, tmp_path):
    """inet_sock_local_out and _in: the events that Trace Compass knows packets by."""
    lines = {"a": [], "b": []}

    def see(machine, event, ns, seq):
        ns = ns if machine == "a" else ns + 80_000_000 + ns * 30_000 // S  # 30 ppm
        lines[machine].append(f"   app-7 [000] ..... {ns // S}.{ns % S:09d}: inet_sock_local_{event}: seq={seq} ack_seq=5 flags=24")

    for i in range(300):
        begin = 100 * S + i * S // 50
        for k, (sender, receiver) in enumerate((("a", "b"), ("b", "a"))):
            see(sender, "out", begin, 2 * i + k)
            begin += 50_000 + (i + k) * 7919 % 100_000
            see(receiver, "in", begin, 2 * i + k)
            begin += 30_000
    for name, text in lines.items():
        (tmp_path / name).write_text("# tracer: nop\n" + "\n".join(text) + "\n", encoding="ascii")
    result = sync(kymo, tmp_path / "a", tmp_path / "b")
    [pair] = result["pairs"]
    assert (pair["quality"], pair["messages_ab"], pair["messages_ba"]) == ("ACCURATE", 300, 300)
    machine = result["machines"][1]
    truth = -80_000_000 - (machine["at_ns"] - 80_000_000) * 30_000 // S
    assert abs(machine["shift_ns"] - truth) <= pair["bound_ns"] + 100 and pair["bound_ns"] < 100_000


def test_a_hundred_machines(kymo, captures, tmp_path):
    """Machine 0 talks to some, and these to the others."""
    client, server = packets(captures[0]), packets(captures[1])
    begin = client[0][0]

    def between(content, a, b):
        names = {bytes([10, 214, 0, 1]): bytes([10, 7, 0, a]), bytes([10, 214, 0, 2]): bytes([10, 7, 0, b])}
        return [(ns, n, data[:26] + names[data[26:30]] + names[data[30:34]] + data[34:]) for ns, n, data in content]

    seen = [[] for _ in range(100)]
    for number in range(1, 100):
        by = 0 if number < 10 else number % 9 + 1
        seen[by] += between(client, by, number)
        seen[number] += between(server, by, number)
    paths = []
    for number, content in enumerate(seen):
        content.sort(key=lambda one: one[0])
        clock = drifted(content, number * 17_000_003, number * 331 % 80 * 1000, begin)
        paths.append(write(tmp_path / f"{number}.pcap", captures[0], clock))
    result = sync(kymo, *paths)
    assert result["absent_pairs"] == 100 * 99 // 2 - 99
    assert all(machine["quality"] == "ACCURATE" for machine in result["machines"])
    assert sum(pair["in_tree"] for pair in result["pairs"]) == 99
    for number in (5, 50, 99):
        machine = result["machines"][number]
        assert machine["by"] == str(paths[0 if number < 10 else number % 9 + 1])
        bound = max(machine["begin_bound_ns"], machine["end_bound_ns"])
        assert max(abs(a - b[0]) for a, b in zip(times(kymo, paths[number]), seen[number])) <= bound
