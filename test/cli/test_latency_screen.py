# SPDX-License-Identifier: MIT
"""The screen of kymo latency, on a terminal that a library emulates."""

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time

import pytest

from test_latency import Load, needs_bpf  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("needs_bpf")
pyte = pytest.importorskip("pyte", reason="needs python3-pyte")

ENTER, ESCAPE, DOWN, UP = "\n", "\x1b", "\x1bOB", "\x1bOA"


class Screen:
    def __init__(self, args, columns, lines):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.settings = termios.tcgetattr(slave)
        self.master, self.slave, self.raw = master, slave, b""
        self.screen = pyte.Screen(columns, lines)
        self.stream = pyte.ByteStream(self.screen)
        self.process = subprocess.Popen([str(arg) for arg in args], stdin=slave, stdout=slave, stderr=slave,
                                        env=os.environ | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}, start_new_session=True)

    def take(self):
        while select.select([self.master], [], [], 0.05)[0]:
            data = os.read(self.master, 65536)
            self.raw += data
            self.stream.feed(data)

    def wait(self, pattern, seconds=40):
        """Until the screen has it; gives the match."""
        end = time.monotonic() + seconds
        while True:
            self.take()
            text = "\n".join(line.rstrip() for line in self.screen.display)
            if match := re.search(pattern, text, re.M):
                return match
            assert time.monotonic() < end, f"no {pattern!r} in\n{text}"

    def press(self, keys):
        os.write(self.master, keys.encode())

    def press_until(self, key, pattern):
        """A key that comes while the list changes may be of a row that is gone."""
        for _ in range(10):
            self.press(key)
            with contextlib.suppress(AssertionError):
                return self.wait(pattern, 4)
        return self.wait(pattern)

    def close(self):
        with contextlib.suppress(OSError):
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def screen(kymo_bin):
    with contextlib.ExitStack() as stack:
        def begin(*args, columns=130, lines=40):
            one = Screen([kymo_bin, "latency", "--every", "300ms", *args], columns, lines)
            stack.callback(one.close)
            return one
        yield begin


def test_layers_side_by_side(screen):
    one = screen()
    one.wait(r"^System calls .*max\s+\S.* count .*max")
    one.wait("Softirqs")
    one.press("w")
    one.wait(r"kymo latency   1m: the last")
    one.press("q")
    assert one.process.wait(60) == 0
    one.take()
    # The terminal is as it was.
    assert b"\x1b[?1049l" in one.raw
    assert termios.tcgetattr(one.slave) == one.settings


def test_a_row_with_its_members(screen):
    load = Load("import time\nfor line in sys.stdin: time.sleep(0.25)")
    one = screen("--pid", str(load.pid), "--layers", "offcpu", "--syscalls", "fsync", "--members", "100ms")
    one.wait("kymo latency")
    load.process.stdin.write("\n\n\n\n")
    load.process.stdin.flush()
    one.press("w")
    one.wait(r"^sleep +[1-9].*\d ms")
    one.press_until(ENTER, "Last members")
    # The row may be above or below, and rows come meanwhile.
    for key_to_next in 5 * [DOWN] + 10 * [UP] + 10 * [DOWN]:
        if "sleep" in one.screen.display[1]:
            break
        for key, shown in ((ESCAPE, "Enter one row"), (key_to_next, "Enter one row"), (ENTER, "Last members")):
            one.press_until(key, shown)
            time.sleep(0.2)  # an escape and a key at once are another key
    assert "sleep" in one.screen.display[1], one.screen.display
    one.wait(r"15m +[1-9]")
    one.wait(rf"offcpu sleep 25\d.\d ms  python3 \(tid {load.pid}, pid {load.pid}\)")
    # Where it slept.
    one.wait(r"[0-9a-f]{16}  \S*nanosleep\S*\+0x")
    # The range above all of them has none, the one that they are in has.
    one.press(DOWN)
    one.wait(r"134.2 ms +[1-9]")
    one.wait("offcpu sleep")
    # The row and its range stay when nothing happens in them.
    one.press("www")
    one.wait(r"^ kymo latency   now:(?:.*\n)+?.*Off the CPU +sleep\n(?:.*\n)+? *now +0 (?:.*\n)+? +(?:134.2|268.4|536.9)\D* 0\b")
    one.press("q")
    assert one.process.wait(60) == 0
    load.process.stdin.close()
    load.process.wait()


def test_hostile_names(screen):
    load = Load("import ctypes, os, time\nctypes.CDLL(None).prctl(15, b'\\x1b]0;own\\x07')\n"
                "while True: os.getppid(); time.sleep(0.01)")
    load.process.stdin.write("\n")
    load.process.stdin.flush()
    try:
        one = screen("--by", "process", "--layers", "syscall", "--pid", str(load.pid))
        one.wait(r"\\x1b\]0;own\\x07")
        assert b"\x1b]0;own" not in one.raw
    finally:
        load.process.kill()
        load.process.wait()


@pytest.mark.parametrize("columns, lines", ((20, 5), (40, 10), (400, 100)))
def test_sizes(screen, columns, lines):
    one = screen(columns=columns, lines=lines)
    one.wait("kymo latency")
    for keys in (DOWN, "\t", ENTER, DOWN, UP, "n", "p", "a", ESCAPE, " ", "w"):
        one.press(keys)
        time.sleep(0.05)
    one.wait("kymo lat")
    assert one.process.poll() is None
    one.press("q")
    assert one.process.wait(60) == 0


def test_plain_and_a_terminal_without_a_name(kymo_bin):
    for args, env in ((["--plain"], {}), ([], {"TERM": "nothing"})):
        master, slave = pty.openpty()
        with subprocess.Popen([kymo_bin, "latency", "--every", "100ms", "--layers", "syscall", *args], stdin=slave, stdout=slave,
                              stderr=slave, env=os.environ | env) as process:
            os.close(slave)
            data = b""
            while data.count(b"System calls") < 2:
                data += os.read(master, 65536)
            process.terminate()
        os.close(master)
        assert process.returncode == 0
        assert b"1049h" not in data
