# SPDX-License-Identifier: MIT
"""Programs on a pseudo terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import termios

import pytest


def on_terminal(args, columns, **env):
    """What a program writes to a terminal of that width."""
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"needs a pseudo terminal: {error}")
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environ = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    environ.update({"TERM": "xterm"} | env)
    with subprocess.Popen(args, stdin=slave, stdout=slave, stderr=slave, env=environ) as proc:
        os.close(slave)
        chunks = []
        while True:
            try:
                chunk = os.read(master, 65536)
            except OSError:  # EIO: the other side is closed
                break
            if not chunk:
                break
            chunks.append(chunk)
    os.close(master)
    assert proc.returncode == 0
    return b"".join(chunks).decode("utf-8", "surrogateescape")
