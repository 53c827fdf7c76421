# SPDX-License-Identifier: MIT
"""The critical path over two hosts: two network namespaces, each with a CPU of its own, which is a trace of its own."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from oracle_figures import tables

N_REQUESTS, SLEEP = 10, 0.02

PROGRAM = f"""
import os, socket, sys, time
name, address = sys.argv[1], ("10.211.0.2", 7777)
open("/proc/self/comm", "w").write(name)
if name == "kt-server":
    listener = socket.create_server(address)
    print("ready", flush=True)
    peer, _ = listener.accept()
    while peer.recv(100):
        time.sleep({SLEEP})
        peer.send(b"answer")
else:
    peer = socket.create_connection(address)
    for _ in range({N_REQUESTS}):
        peer.send(b"question")
        peer.recv(100)
"""

RUN = """
import subprocess, sys
space, program = sys.argv[1], sys.argv[2]
def start(side, name):
    return subprocess.Popen(["ip", "netns", "exec", f"{space}{side}", "taskset", "-c", str(side), sys.executable, program,
                             name], stdout=subprocess.PIPE)
server = start(1, "kt-server")
server.stdout.readline()
sys.exit(start(0, "kt-client").wait() or server.wait())
"""

# Few events, as others on a busy machine make many: then none is lost.
FEW = "sched_*,irq_softirq_*,syscall:recvfrom,syscall:sendto,syscall:clock_nanosleep"
TCP = "tcp_probe,sock_send_length,inet_sock_set_state"


def ip(*args):
    return subprocess.run(["ip", *args], capture_output=True, check=False).returncode == 0


@pytest.fixture
def space():
    """The name of two network namespaces with a wire between them; packets come in on their own CPU."""
    if not shutil.which("ip") or os.cpu_count() < 2 or not {0, 1} <= os.sched_getaffinity(0):
        pytest.skip("needs ip and two CPUs")
    name = f"kt{os.getpid()}n"
    try:
        if not (ip("netns", "add", f"{name}0") and ip("netns", "add", f"{name}1") and
                ip("link", "add", f"{name}0", "netns", f"{name}0", "type", "veth",
                   "peer", "name", f"{name}1", "netns", f"{name}1")):
            pytest.skip("no network namespaces with veth here")
        for side in (0, 1):
            steer = f"echo {1 << side} > /sys/class/net/{name}{side}/queues/rx-0/rps_cpus"
            if not (ip("-n", f"{name}{side}", "addr", "add", f"10.211.0.{side + 1}/24", "dev", f"{name}{side}") and
                    ip("-n", f"{name}{side}", "link", "set", f"{name}{side}", "up") and
                    ip("netns", "exec", f"{name}{side}", "sh", "-c", steer)):
                pytest.skip("the wire between network namespaces does not work here")
        yield name
    finally:
        for side in (0, 1):
            ip("netns", "del", f"{name}{side}")


@pytest.fixture
def hosts(record, without_losses, space, tmp_path):
    """hosts(events) -> the traces of the client's and of the server's host."""
    def call(events):
        (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
        (tmp_path / "run.py").write_text(RUN, encoding="utf-8")
        trace, _ = without_losses(record, "-k", events, command=[sys.executable, tmp_path / "run.py", space,
                                                                 tmp_path / "program.py"])
        traces = []
        for cpu in (0, 1):
            host = tmp_path / f"host-{len(events)}-{cpu}"
            shutil.copytree(trace / "kernel", host)
            for stream in host.rglob("channel0_*"):
                if not re.match(rf"channel0_{cpu}\b", stream.name):
                    stream.unlink()
            metadata = (host / "metadata").read_bytes()
            (host / "metadata").write_bytes(re.sub(rb'hostname = "[^"]*"', b'hostname = "host-%d"' % cpu, metadata))
            traces.append(host)
        return traces
    return call


def path_of(kymo, traces, *more):
    return tables(kymo("report", "--json", "critical-path", *traces, "--comm", "kt-client", "--of", "syscall:recvfrom",
                       "-t", "threads", "-t", "log", "-t", "arrows", "-n", "0", *more), "critical-path")


def test_path_goes_to_the_other_host(kymo, hosts):
    for event in ("tcp/tcp_probe", "sock/sock_send_length"):
        if not os.path.isdir(f"/sys/kernel/tracing/events/{event}"):
            pytest.skip(f"this kernel has no event {event}")
    traces = hosts(f"{FEW},{TCP}")
    both = path_of(kymo, traces)
    times = {row["process"]["name"]: row["time"] for row in both["threads"][:-1]}
    whole = both["threads"][-1]["time"]
    assert sum(times.values()) == whole >= N_REQUESTS * SLEEP * 1e9
    # The server's sleeps are the path; the client has only the way of the packets, and waits for its CPU.
    slept = sum(row["duration"] for row in both["log"] if row["process"]["name"] == "kt-server" and
                row["cause"] == "blocked: timer")
    assert slept >= 0.9 * N_REQUESTS * SLEEP * 1e9
    arrows = [row for row in both["arrows"] if row["process"]["name"] == "kt-client" and
              row["waker"]["name"] == "kt-server"]
    assert len(arrows) >= N_REQUESTS
    at = {}
    for row in both["log"]:
        assert row["begin"] == at.get(row["member"], row["begin"])
        at[row["member"]] = row["end"]
    # With one host alone, nobody can tell what the other one did.
    alone = path_of(kymo, traces[:1])
    assert {row["process"]["name"] for row in alone["threads"][:-1]} == {"kt-client"}
    assert sum(row["duration"] for row in alone["log"] if row["cause"] == "blocked: network") >= slept


def test_clocks_of_hosts(kymo, hosts):
    """kymo sync by the kernel's events of TCP, where the server's clock is 250 us behind and drifts; the path goes by its result."""
    traces = hosts(f"{FEW},{TCP}")
    true = [json.loads(line)["timestamp_ns"] for line in kymo("convert", "--to", "json", traces[1]).out.splitlines()]
    before = path_of(kymo, traces)
    metadata = (traces[1] / "metadata").read_text(encoding="utf-8")
    clock = dict(re.findall(r"(freq|offset_s|offset) = (\d+);", metadata[metadata.index("clock {"):]))
    freq, begin = int(clock["freq"]), true[0]
    # At the first event it is 250 us behind; then it gains 30 us a second.
    faster = round(freq * (1 - 30e-6))
    cycles = (begin - int(clock["offset_s"]) * 10**9) * freq // 10**9 - int(clock["offset"])
    origin = begin - 250_000 - cycles * 10**9 // faster
    for name, value in (("freq", faster), ("offset_s", origin // 10**9), ("offset", origin % 10**9 * faster // 10**9)):
        metadata = metadata.replace(f"{name} = {clock[name]};", f"{name} = {value};", 1)
    (traces[1] / "metadata").write_text(metadata, encoding="utf-8")
    result = json.loads(kymo("sync", "--json", *traces).out)
    [pair] = result["pairs"]
    machine = result["machines"][1]
    assert pair["quality"] in ("ACCURATE", "APPROXIMATE") and pair["messages_ab"] >= N_REQUESTS
    read = [json.loads(line)["timestamp_ns"] for line in kymo("convert", "--to", "json", traces[1]).out.splitlines()]
    for ns, right in zip(read, true):
        beyond = max(0, machine["begin_ns"] + 250_000 - right, right - machine["end_ns"] - 250_000)
        bound = max(machine["begin_bound_ns"], machine["end_bound_ns"]) + beyond * machine["drift_bound"] // 10**18
        assert abs(int(ns) - int(right)) <= bound + 5
    both = path_of(kymo, traces)
    arrows = [len([row for row in path["arrows"] if row["process"]["name"] == "kt-client" and
                   row["waker"]["name"] == "kt-server"]) for path in (before, both)]
    assert arrows[1] >= N_REQUESTS
    # A send that seems to come after its receipt is its cause as long as the errors of the clocks allow it, and no longer.
    path = traces[1] / ".kymo-sync.json"
    known = json.loads(path.read_text(encoding="utf-8"))
    found = {}
    for bound in (0, 9_000_000):
        late = {"shift_ns": known["shift_ns"] + 8_000_000, "begin_bound_ns": bound, "end_bound_ns": bound}
        path.write_text(json.dumps(known | late), encoding="utf-8")
        both = path_of(kymo, traces)
        found[bound] = (len([row for row in both["arrows"] if row["process"]["name"] == "kt-client" and row["waker"]["name"] == "kt-server"]),
                        sum(row["duration"] for row in both["log"] if row["process"]["name"] == "kt-server" and row["cause"] == "blocked: timer"))
    assert found[9_000_000][0] >= N_REQUESTS and found[9_000_000][1] > found[0][1], found
