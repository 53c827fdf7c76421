# SPDX-License-Identifier: MIT
"""Recordings with groups of events at a relay: readers and viewers get each event once, and none waits for ever."""

import glob
import os
import subprocess
import sys
import time

import pytest

from test_live_viewer import Babeltrace, MODES, begin_recording, contents, end_recording, read, relay, time_of, wait_for  # noqa: F401
from test_network import session_of

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

# Groups of the kernel's and of programs' events; some overwrite. None of the main buffers has these events.
GROUPS = ["-k", "sched_switch", "--user", "modes:*", "--group", "rare:256k:sched_process_exec,sched_process_fork",
          "--group", "late:256k:overwrite:sched_waking", "--group", "few:64k:user:modes:rare",
          "--group", "last:64k:overwrite:user:modes:frequent"]


class Reader(Babeltrace):
    """kymo print --live, which watches."""

    def __init__(self, kymo_bin, address, path):
        self.watch(path, [kymo_bin, "print", "--live", "--clock-seconds", "--no-delta", address])


def without_state(lines):
    return [line for line in lines if "lttng_" not in line]


LATE = ("sched_waking", "modes:frequent")


def rounds(program, count, shown):
    """The program records @count rare events more; returns when every reader has shown them."""
    before = [sum("modes:rare" in line for line in one.lines()) for one in shown]
    for _ in range(count):
        program.stdin.write("\n")
        program.stdin.flush()
    wait_for(lambda: all(sum("modes:rare" in line for line in one.lines()) >= n + count for one, n in zip(shown, before)) or
             any(one.process.poll() is not None for one in shown))


@pytest.mark.parametrize("buffers", ["process", "user"])
def test_groups_while_they_are_recorded(kymo, kymo_bin, relay, tmp_path, buffers):  # noqa: F811
    """Readers have the groups' events in the order of time, from their arrival on, without those of groups that overwrite."""
    here = relay()
    recorder = begin_recording(kymo_bin, "-o", here.address("g"), "--name", "g", "--buffers", buffers, *GROUPS)
    wait_for(lambda: session_of(kymo, here.address("g")))
    program = subprocess.Popen([MODES, "rare", "2000"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    program.stdin.write("\n")
    program.stdin.flush()
    address = here.address("g")
    wait_for(lambda: kymo("info", address, code=None).code == 0)
    shown = [Reader(kymo_bin, address, tmp_path / "reader"), Babeltrace(here.url("g"), tmp_path / "viewer")]
    wait_for(lambda: all("sched_switch" in "".join(one.lines()[-500:]) for one in shown))
    since = f"{time.time():.9f}"
    rounds(program, 3, shown)
    second = subprocess.Popen([MODES, "rare", "3000"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    rounds(second, 2, shown)
    kymo("rotate", "g")
    rounds(program, 2, shown)
    for one in (program, second):
        one.communicate()
    end_recording(recorder)
    whole = [line for line in read(here.trace("g")) if time_of(line) >= since]
    wanted = [line for line in whole if not any(f" {late}: " in line for late in LATE)]
    assert sum("modes:rare" in line for line in wanted) == 7 and len(whole) > len(wanted) + 5000
    for one in shown:
        lines = one.end()
        assert not any(f" {late}: " in line for late in LATE for line in lines)
        # Each chunk tells the state again, which comes late; and the clock is known better when a trace is complete.
        lines = without_state(line for line in lines if time_of(line) >= since)
        assert [time_of(line) for line in lines] == sorted(time_of(line) for line in lines), one.path
        assert sorted(contents(lines)) == sorted(contents(without_state(wanted)))
    # The state dump of a group that overwrites comes with the group's events.
    assert "late for a viewer" not in here.end().replace("-last/statedump_0: packets came too late for a viewer", "")


TURNS = """import os
a, b = os.pipe(), os.pipe()
if os.fork():
    for _ in range(30000): os.write(a[1], b'x'), os.read(b[0], 1)
    os.wait()
else:
    for _ in range(30000): os.read(a[0], 1), os.write(b[1], b'x')
"""


def test_a_long_complete_recording_with_groups(kymo, relay, tmp_path):  # noqa: F811
    """A live reader has all events, those of groups that overwrite too, when it cannot have a stream at once."""
    here, turns = relay(), tmp_path / "turns.py"
    turns.write_text(TURNS)
    kymo("record", "-o", here.address("g"), *GROUPS, "--", "sh", "-c", f"{{ echo; echo; }} | {MODES} rare 100; {sys.executable} {turns}")
    wait_for(lambda: any("complete" in line for line in here.said))
    mine = sorted(kymo("print", "--no-delta", here.trace("g")).out.splitlines())
    assert sum(" sched_switch: " in line for line in mine) > 20000
    assert all(sum(f" {name}: " in line for line in mine) for name in LATE)
    for live in ([], ["--live"]):
        assert sorted(kymo("print", *live, "--no-delta", here.address("g")).out.splitlines()) == mine


@pytest.mark.parametrize("more", [(), ("--overwrite",), ("--rotate-every", "1s")], ids=["trace", "flight", "chunks"])
def test_groups_of_a_complete_recording(kymo, relay, tmp_path, more):  # noqa: F811
    """All events of all groups, once, in any reader."""
    here = relay()
    kymo("record", "-o", here.address("g"), *more, *GROUPS, "--", "sh", "-c", f"{{ echo; sleep 1.3; echo; }} | {MODES} rare 2000")
    whole = read(here.trace("g"))
    assert all(sum(f" {name}: " in line for line in whole) for name in ("sched_switch", "modes:rare", *LATE))
    wait_for(lambda: any("complete" in line for line in here.said))
    viewer = Babeltrace(here.url("g"), tmp_path / "viewer")
    # Of chunks, the viewer gets the clock of the first one for all.
    assert sorted(contents(viewer.end())) == sorted(contents(whole))
    # Events of the same time come in the order of the streams, which the relay lists in another order.
    mine = sorted(kymo("print", "--no-delta", here.trace("g")).out.splitlines())
    for live in ([], ["--live"]):
        shown = kymo("print", *live, "--no-delta", here.address("g")).out.splitlines()
        times = [time_of(line) for line in shown]
        assert sorted(shown) == mine and times == sorted(times)
    assert kymo("print", "--count", here.address("g")).out == f"{len(whole)}\n"
