# SPDX-License-Identifier: MIT
"""System calls of kymo latency where threads come and go, and where many are in a call at once."""

import pytest

from test_latency import Load, check, measure, needs_bpf, now  # noqa: F401

pytestmark = pytest.mark.usefixtures("needs_bpf", "needs_root_tracefs")

# Threads that end leave their stacks to others, of this process and of new ones. Those that wait are in a call all the time.
CROWD = """
import os, subprocess, threading
threading.stack_size(1 << 16)
end = threading.Event()
def call():
    for _ in range(20):
        os.getppid()
for i in range(300):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if i % 30 == 0:
        subprocess.run(["true"])
waiting = [threading.Thread(target=end.wait) for _ in range(1500)]
for thread in waiting:
    thread.start()
for i in range(300):
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
end.set()
for thread in waiting:
    thread.join()
"""


def test_every_call_of_many_threads_counts(measure):  # noqa: F811
    load = Load(CROWD)
    measured = measure("--pid", load.pid, "--layers", "syscall", "--syscalls", "getppid,exit")
    load.go()
    histogram = now(measured.end(), "syscall", "getppid")
    check(histogram)
    assert histogram["count"] == 600 * 20
