# SPDX-License-Identifier: MIT
"""Root records programs of all users: what one user does costs that user's recording, and nobody else."""

import ctypes
import os
import struct
import subprocess
import sys
import time

import pytest

from test_user import KYMO, box, names, nothing_left, pytestmark  # noqa: F401

# A user's file system, in a user namespace: what is mounted there is called as programs' control files are.
IMPOSTOR = """
import ctypes, os, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("new"); subprocess.run(["mount", "-t", "tmpfs", "new", "new"], check=True)
open("new/memfd:kymo-control", "w").close(); os.mkdir("new/old")
subprocess.run(["mount", "--bind", sys.argv[1], "new/memfd:kymo-control"], check=True)
fd = os.open("new/memfd:kymo-control", os.O_PATH)
os.chdir("new")
assert libc.syscall(155, b".", b"old") == 0, os.strerror(ctypes.get_errno())
os.chdir("/"); libc.umount2(b"/old", 2)
sys.stdout.write("ready\\n"); sys.stdout.flush()
time.sleep(1000)
"""


class Opens:
    """Who opens @path (other than by O_PATH) is counted."""

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.fd >= 0 and self.libc.inotify_add_watch(self.fd, path.encode(), 0x20) >= 0

    def count(self):
        try:
            return len(os.read(self.fd, 4096)) // struct.calcsize("iIII")
        except BlockingIOError:
            return 0


@pytest.fixture
def impostor(tmp_path):
    """Processes of user 1234 that have a file open whose name is that of a control file."""
    running = []

    def start(path):
        home = tmp_path / f"home-{len(running)}"
        home.mkdir()
        os.chown(home, 1234, 1234)
        for part in (home, *home.parents):
            os.chmod(part, os.stat(part).st_mode | 0o111)
        process = subprocess.Popen(
            ["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", "unshare", "-U", "-r", "-m",
             sys.executable, "-c", IMPOSTOR, path], cwd=home, stdout=subprocess.PIPE, text=True)
        running.append(process)
        if process.stdout.readline() != "ready\n":
            pytest.skip("this kernel lets users have no user namespaces")
        assert any(os.readlink(f"/proc/{process.pid}/fd/{fd}").startswith("/memfd:kymo-control")
                   for fd in os.listdir(f"/proc/{process.pid}/fd"))

    yield start
    for process in running:
        process.kill()
        process.wait()


def test_only_control_files_are_opened(impostor, tmp_path):
    """A file of root's, and one that is a device: neither is opened, whatever it is called."""
    secret = tmp_path / "secret"
    secret.write_text("root's own")
    secret.chmod(0o600)
    watched = [Opens(str(secret)), Opens("/dev/full")]
    for path in (str(secret), "/dev/full"):
        impostor(path)
    for opens in watched:
        opens.count()
    subprocess.run([KYMO, "list", "--user"], check=True, capture_output=True)
    assert [opens.count() for opens in watched] == [0, 0]
