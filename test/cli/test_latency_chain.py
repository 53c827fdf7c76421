# SPDX-License-Identifier: MIT
"""kymo latency --chain: from an interrupt to user space, in parts that add up."""

import pytest

from test_latency import FSYNCS, Load, needs_bpf  # noqa: F401 (a fixture)
from test_latency_track import track  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("needs_bpf")

PARTS = ["timer", "handler", "softirq wait", "softirq", "wake-up", "return"]


def check(chains, result):
    """The parts of each chain, and of all histograms, add up to the whole."""
    for chain in chains:
        parts = chain["parts_ns"]
        assert parts["whole"] == sum(parts[name] for name in PARTS) > 0
        assert parts["wake-up"] > 0 and parts["return"] > 0
    found = {one["name"]: one["windows"]["now"] for one in result["series"] if one["layer"] == "chain"}
    whole = found.pop("whole")
    assert whole["sum_ns"] == sum(one["sum_ns"] for one in found.values())
    assert whole["count"] == found["wake-up"]["count"] == found["return"]["count"] == len(chains)
    assert whole["sum_ns"] == sum(chain["parts_ns"]["whole"] for chain in chains)
    for name, histogram in found.items():
        assert histogram["sum_ns"] == sum(chain["parts_ns"][name] for chain in chains)
    assert whole["max_ns"] == result["chain"]["worst_ns"]


def test_timers(track):
    load = Load("import time\nfor _ in range(50): time.sleep(0.002)")
    tracked = track("--chain", "--pid", load.pid, "--over", "0s")
    load.go()
    chains, result = tracked.end()
    check(chains, result)
    timers = [chain for chain in chains if chain["chain"] == "timer"]
    # A sleeper that loses the CPU on its way to sleep has no wake-up.
    assert 40 <= len(timers) <= 50
    for chain in timers:
        assert chain["pid"] == load.pid and not chain["parts_ns"]["softirq"]
        assert chain["parts_ns"]["handler"] > 0


def test_the_network(track, loopback):
    """Over the loopback interface, a softirq wakes up the reader."""
    load = Load("import os, socket\n"
                "server = socket.create_server(('127.0.0.1', 0))\n"
                "client = socket.create_connection(server.getsockname())\n"
                "other, _ = server.accept()\n"
                "if not os.fork():\n    client.close()\n"
                "    while other.recv(1): other.send(b'x')\n"
                "    os._exit(0)\n"
                "other.close()\n"
                "for _ in range(50): client.send(b'x'); client.recv(1)\n"
                "client.close(); os.wait()")
    tracked = track("--chain", "--comm", "python3*", "--over", "0s")
    load.go()
    chains, result = tracked.end()
    check(chains, result)
    network = [chain for chain in chains if chain["chain"] == "softirq net_rx" and chain["pid"] == load.pid]
    assert network
    assert all(chain["parts_ns"]["softirq"] > 0 and not chain["parts_ns"]["timer"] for chain in network)


def test_a_disk(track, tmp_path):
    load = Load(FSYNCS, tmp_path / "file")
    tracked = track("--chain", "--tid", load.pid, "--over", "0s")
    load.go()
    chains, result = tracked.end()
    if not chains:
        pytest.skip("no interrupt wakes up the threads that wait for this file system")
    check(chains, result)
    if not any(chain["chain"].startswith("irq ") for chain in chains):
        pytest.skip("no traced handler wakes up the threads that wait for this file system")
    assert all(chain["parts_ns"]["handler"] > 0 for chain in chains if chain["chain"].startswith("irq "))


def test_text(kymo):
    done = kymo("latency", "--chain", "--once", "--every", "300ms", "--over", "1h", code=0)
    assert "Chain: the worst so far" in done.out


def test_wrong_options(kymo):
    for args, message in {("--comm", "x"): "--tid and --comm are for --chain",
                          ("--chain", "--comm", "a*b"): "'*' only at its end",
                          ("--chain", "--comm", "a" * 16): "at most 15 bytes"}.items():
        done = kymo("latency", *args, code=2)
        assert message in done.err
