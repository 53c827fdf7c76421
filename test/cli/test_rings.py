# SPDX-License-Identifier: MIT
"""The ways of reading the kernel's rings, --reader: each tells all events, once, in order."""

import collections
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

WAYS = ["mmap", "splice", "read", "auto"]
# Nobody else calls it while a test runs: a busy machine's shells all call getppid, for one.
CALL = "sched_get_priority_max"
EVENTS = f"syscall_*_{CALL}"

# That call as fast as can be, or with pauses of the second argument in seconds; on one CPU, until
# standard input ends or as often as the third argument says. Prints how often.
CALLS = r"""
import os, select, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
pause, limit, calls = float(sys.argv[2]), int(sys.argv[3]), 0
while calls < limit and not select.select([0], [], [], 0)[0]:
    for _ in range(1 if pause else min(1000, limit - calls)):
        os.sched_get_priority_max(0)
        calls += 1
    time.sleep(pause)
print(calls)
"""


def calls_on(cpu, pause=0, limit=1 << 40):
    return subprocess.Popen([sys.executable, "-c", CALLS, str(cpu), str(pause), str(limit)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def finish(process, now=False):
    """(pid, number of calls), once it has made all, or now."""
    if now:
        process.stdin.close()
    with process:
        return process.pid, int(process.stdout.read())


def lines_of(peer, trace):
    """(time, cpu, tid, name) of each event, in the order of babeltrace2."""
    done = peer("babeltrace2", "--clock-cycles", "--no-delta", trace / "kernel", timeout=240)
    assert done.code == 0, done
    found = re.findall(r"^\[(\d+)\] (?:\S+ )?(\w+): \{ cpu_id = (\d+) \}, \{ tid = (-?\d+)", done.out,
                       re.MULTILINE)
    assert len(found) == len(done.out.splitlines())
    return [(int(cycles), int(cpu), int(tid), name) for cycles, name, cpu, tid in found]


def check_order(lines):
    """Of each CPU: no event before the one before it."""
    last = collections.defaultdict(int)
    for cycles, cpu, _, name in lines:
        if not name.startswith("lttng_statedump"):
            assert cycles >= last[cpu]
            last[cpu] = cycles


def check_calls(lines, pid, calls):
    """Each of @pid's calls once, entries and exits in turn."""
    names = [name for _, _, tid, name in lines if tid == pid]
    assert len(names) == 2 * calls
    assert set(names[0::2]) == {f"syscall_entry_{CALL}"}
    assert set(names[1::2]) == {f"syscall_exit_{CALL}"}


def check_losses(found, lost, calls, options):
    """To the event; but what the recorder itself needs, for names, is lost like all else, and counted."""
    own = len(found) + lost - 2 * calls
    assert 0 <= own < 2000 if lost and options else own == 0


class Recorder:
    """kymo record in the background, until stop(). Use it with `with`."""

    def __init__(self, kymo_bin, trace, *options):
        self.trace = trace
        self.process = subprocess.Popen([kymo_bin, "record", "-o", trace, "-k", EVENTS, *options],
                                        stderr=subprocess.PIPE, text=True)
        self.wait(lambda: os.path.exists(trace / "kernel" / "statedump_0"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def wait(self, condition):
        deadline = time.monotonic() + 200
        while not condition():
            assert self.process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)

    def mapped(self):
        """The CPUs whose rings are mapped."""
        with open(f"/proc/{self.process.pid}/maps", encoding="ascii") as maps:
            return {int(cpu) for cpu in re.findall(r"per_cpu/cpu(\d+)/trace_pipe_raw", maps.read())}

    def stop(self):
        """How many events were lost."""
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate(timeout=240)
        assert self.process.returncode == 0, err
        assert "could not be read" not in err
        return int(re.search(r" (\d+) lost\.", err)[1])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [[], ["-c", "procname"], ["-b", "64k"], ["-b", "64k", "-c", "pid"]])
def test_counts(kymo_bin, needs_root_tracefs, peer, tmp_path, way, options):
    """Few calls, with pauses: pages that are being written, and the last one at the end."""
    with Recorder(kymo_bin, tmp_path / "t", "--reader", way, *options) as recorder:
        loads = [calls_on(cpu, 0.001, 200) for cpu in sorted(os.sched_getaffinity(0))]
        done = [finish(load) for load in loads]
        assert recorder.stop() == 0
    lines = lines_of(peer, tmp_path / "t")
    check_order(lines)
    for pid, calls in done:
        check_calls(lines, pid, calls)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [[], ["-c", "procname"]])
def test_many(kymo_bin, needs_root_tracefs, peer, tmp_path, way, options):
    """More than the rings hold at once."""
    with Recorder(kymo_bin, tmp_path / "t", "--reader", way, "-b", "2M", *options) as recorder:
        load = calls_on(min(os.sched_getaffinity(0)), 0, 150000)
        pid, calls = finish(load)
        lost = recorder.stop()
    lines = lines_of(peer, tmp_path / "t")
    check_order(lines)
    # On a busy machine the recorder may come too late; then it says so, to the event.
    if lost == 0:
        check_calls(lines, pid, calls)
    check_losses([1 for line in lines if CALL in line[3]], lost, calls, options)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("options", [[], ["-c", "procname"]])
def test_losses(kymo, kymo_bin, needs_root_tracefs, tmp_path, way, options):
    """A ring that is far too small: what is there and what is lost is what happened."""
    with Recorder(kymo_bin, tmp_path / "t", "--reader", way, "-b", "64k", *options) as recorder:
        _, calls = finish(calls_on(min(os.sched_getaffinity(0)), 0, 200000))
        lost = recorder.stop()
    info = json.loads(kymo("info", "--json", tmp_path / "t").out)
    assert info["lost_events"] == lost
    got = int(kymo("print", "--count", "--event", EVENTS, tmp_path / "t").out)
    check_losses(range(got), lost, calls, options)


def test_mapping(kymo_bin, needs_root_tracefs, tmp_path):
    """mmap maps all rings; the others none."""
    for way in WAYS:
        with Recorder(kymo_bin, tmp_path / way, "--reader", way) as recorder:
            rings = set(range(os.cpu_count())) if way == "mmap" else set()
            assert recorder.mapped() >= rings and (rings or not recorder.mapped())
            assert recorder.stop() == 0


def test_adapting(kymo_bin, needs_root_tracefs, peer, tmp_path, tsan):
    """auto maps the ring of a CPU on which little happens, while it follows another's events."""
    if tsan:
        pytest.skip("with ThreadSanitizer the recorder is too slow for what is busy here")
    busy, idle = 0, 1
    if not os.sched_getaffinity(0) >= {busy, idle}:
        pytest.skip("needs two CPUs")
    with Recorder(kymo_bin, tmp_path / "t", "-c", "procname", "-b", "1M") as recorder:
        loads = [calls_on(busy), calls_on(idle, 0.0005)]
        recorder.wait(lambda: idle in recorder.mapped())
        # Now that one is busy too.
        loads.append(calls_on(idle))
        recorder.wait(lambda: not recorder.mapped())
        done = [finish(load, now=True) for load in loads]
        lost = recorder.stop()
    lines = lines_of(peer, tmp_path / "t")
    check_order(lines)
    calls = sum(n for _, n in done)
    check_losses([1 for line in lines if CALL in line[3]], lost, calls, ["-c", "procname"])
    if lost == 0:
        for pid, n in done:
            check_calls(lines, pid, n)


def test_refused(kymo, kymo_bin, needs_root_tracefs, tmp_path):
    """No room to map a ring: an explicit mmap is an error; auto and the doctor go on."""
    with open(kymo_bin, "rb") as program:
        if re.search(rb"__[at]san_init", program.read()):
            pytest.skip("a sanitizer needs more memory than this test allows")
    limit = ["prlimit", f"--as={60 << 20}", kymo_bin]
    options = ["-k", EVENTS, "-b", "64M", "--", "true"]
    done = subprocess.run([*limit, "record", "-o", tmp_path / "t", "--reader=mmap", *options],
                          stderr=subprocess.PIPE, text=True, timeout=240, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "does not map its ring buffer: Cannot allocate memory" in done.stderr
    assert "the reader 'auto'" in done.stderr
    assert not os.path.exists(tmp_path / "t")
    done = subprocess.run([*limit, "record", "-o", tmp_path / "t", *options],
                          stderr=subprocess.PIPE, text=True, timeout=240, check=False)
    assert done.returncode == 0, done
    assert "map" not in done.stderr


def test_usage(kymo, tmp_path):
    err = kymo("record", "-o", tmp_path / "t", "--reader", "cat", code=2).err
    assert "unknown reader 'cat'; try auto, mmap, splice or read" in err


def test_doctor(kymo, needs_root_tracefs):
    checks = json.loads(kymo("doctor", "--json").out)["checks"]
    text = {check["name"]: check["text"] for check in checks}["ring buffer"]
    assert "splice" in text and "mmap" in text
