# SPDX-License-Identifier: MIT
"""Standard input and pipes in the place of a file."""

import array
import fcntl
import gzip
import os
import pty
import signal
import subprocess
import tarfile
import termios
import threading
import time

import pytest

import make_trace

LINES = "".join(f"2026-11-21T05:30:{i % 60:02}.{i:06}+00:00 host app[7]: line {i}\n" for i in range(40)).encode()


def test_standard_input(kymo, tmp_path):
    path = tmp_path / "log"
    path.write_bytes(LINES)
    whole = kymo("print", path).out
    for data in (LINES, gzip.compress(LINES)):
        assert kymo("print", "-", stdin=data).out == whole
    with open(path, encoding="utf-8") as file:
        assert kymo("print", "-", stdin=file).out == whole
    kymo("convert", "-", "-o", tmp_path / "out", stdin=LINES)
    assert kymo("print", tmp_path / "out").out == whole
    assert len(kymo("print", "-", path, stdin=LINES).out.splitlines()) == 80
    assert "40 events" in kymo("report", "summary", "-", stdin=LINES).out


def test_archive_of_a_trace(kymo, tmp_path):
    trace = make_trace.sample(tmp_path / "sample")
    with tarfile.open(tmp_path / "x.tar.gz", "w:gz") as archive:
        archive.add(trace, "s")
    assert kymo("print", "-", stdin=(tmp_path / "x.tar.gz").read_bytes()).out == kymo("print", trace).out


def test_named_pipe(kymo, tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(LINES))
    writer.start()
    assert len(kymo("print", path).out.splitlines()) == 40
    writer.join()


def test_input_of_no_format(kymo):
    assert "is of no format that Kymo knows" in kymo("print", "-", stdin=b"\0\1\2\3" * 100, code=1).err
    assert "the pipe is empty" in kymo("print", "-", stdin=b"", code=1).err


def unread(pipe):
    """How many bytes are in the pipe."""
    number = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, number)
    return number[0]


def test_ctrl_c_while_the_pipe_is_open(kymo_bin, tmp_path):
    above, below = os.pipe()
    with subprocess.Popen([kymo_bin, "convert", "-", "-o", tmp_path / "out"], stdin=above, stderr=subprocess.PIPE, text=True) as one:
        os.write(below, LINES)
        deadline = time.monotonic() + 60
        while unread(above) and time.monotonic() < deadline:
            time.sleep(0.01)
        one.send_signal(signal.SIGINT)
        assert one.wait(timeout=60) == -signal.SIGINT
    os.close(above)
    os.close(below)
    assert not (tmp_path / "out").exists()


def test_damage_in_a_pipe(kymo):
    done = kymo("print", "-", stdin=gzip.compress(LINES)[:-9], code=1)
    assert done.out and "its gzip data are cut" in done.err


def test_terminal(kymo):
    """The command does not wait for a person that has forgotten the pipe."""
    above, below = pty.openpty()
    try:
        assert "standard input is a terminal" in kymo("print", "-", stdin=below, code=2).err
    finally:
        os.close(above)
        os.close(below)


def test_disk_that_is_full(kymo, tmp_path):
    (tmp_path / "small").mkdir()
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", tmp_path / "small"], check=False).returncode:
        pytest.skip("no rights to mount a file system")
    try:
        done = kymo("print", "-", stdin=LINES * 100, env={"TMPDIR": str(tmp_path / "small")}, code=1)
    finally:
        subprocess.run(["umount", tmp_path / "small"], check=True)
    assert "cannot keep what the pipe has: No space left on device" in done.err
