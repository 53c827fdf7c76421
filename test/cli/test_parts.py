# SPDX-License-Identifier: MIT
"""Report breakdown against a second computation, in every call of a recording: all parts, to the nanosecond."""

import collections
import shutil
import sys

import pytest

import oracle_calls
import oracle_figures
import oracle_parts

# Traced children, pipes, locks, sleeps, polls, syncs.
PROGRAM = r"""
import os, select, socket, subprocess, tempfile, threading, time

TURNS = 60

def writer(send, ns):
    for _ in range(TURNS):
        time.sleep(ns)
        send(b"x")

def polls(make, fds, send, receive):
    thread = threading.Thread(target=writer, args=(send, 0.001))
    poll = make()
    poll.register(fds, select.POLLIN)
    thread.start()
    for _ in range(TURNS):
        while not poll.poll(5):
            pass
        receive(1)
    thread.join()

def locks(condition, turns):
    for _ in range(TURNS):
        with condition:
            turns.append(0)
            condition.notify()
            condition.wait(0.002)

def syncs():
    with tempfile.TemporaryFile(dir=".") as out:
        for _ in range(10):
            out.write(b"x" * 4096)
            out.flush()
            os.fsync(out.fileno())
            select.select([], [], [], 0.001)

def pipe(child_reads):
    there, here = os.pipe()
    child = os.fork()
    if (child == 0) == child_reads:
        os.close(here)
        while os.read(there, 100):
            pass
    else:
        os.close(there)
        for _ in range(20 * TURNS):
            os.write(here, b"x" * 100)
        os.close(here)
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)

a, b = os.pipe()
c, d = socket.socketpair()
condition, turns = threading.Condition(), []
threads = [threading.Thread(target=polls, args=(select.poll, a, lambda x: os.write(b, x), lambda n: os.read(a, n))),
           threading.Thread(target=polls, args=(select.epoll, c, d.send, c.recv)),
           threading.Thread(target=locks, args=(condition, turns)), threading.Thread(target=locks, args=(condition, turns)),
           threading.Thread(target=syncs)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
pipe(True)
pipe(False)
for _ in range(3):
    subprocess.run(["true"])
subprocess.run(["strace", "-f", "-o", "/dev/null", "sh", "-c", "ls -l /; ls /usr/bin; ls -l /etc"], stdout=subprocess.DEVNULL)
"""

CALLS = ("wait4 read write openat futex clock_nanosleep poll epoll_wait fsync execve ptrace sendto recvfrom pselect6 close "
         "newfstatat").split()

EVENTS = "sched_*,irq_handler_*,irq_softirq_*," + ",".join(f"syscall:{call}" for call in CALLS)


def members(kymo, trace):
    """{(thread, begin): (call, end, parts, {end of a wait for a thread: which})} of all system calls."""
    found = oracle_figures.tables(kymo("report", "--json", "breakdown", "--of", "syscall", "-t", "members", "-t", "log",
                                       "--limit", "0", trace), "breakdown")
    parts, who = (collections.defaultdict(list) for _ in range(2))
    for row in found["log"]:
        parts[row["member"]].append(oracle_parts.Part(oracle_parts.kind_of(row["cause"]), row["begin"], row["end"]))
        if row["cause"] == "blocked: another thread":
            who[row["member"]].append((row["end"], row["who"]["tid"]))
    return {(row["process"]["tid"], row["begin"]): (row["what"], row["end"], parts[row["member"]], who[row["member"]])
            for row in found["members"]}


def check(threads, tid, begin, member):
    """The parts lie one after the other; each is what the thread did; and who woke it is the thread that ended a wait."""
    _, end, parts, who = member
    assert [part.begin for part in parts] == [begin] + [part.end for part in parts[:-1]]
    assert oracle_parts.join(parts) == threads.parts(tid, begin, end), (tid, member)
    for at, waker in who:
        # The last piece of a wait, or one at whose end another reason began.
        assert threads.wakers.get((tid, at), waker) == waker, (tid, member)


def test_all_parts_of_all_calls(without_losses, record, kymo, tmp_path):
    if not shutil.which("strace"):
        pytest.skip("strace is not installed: tools/install-deps test")
    trace, _ = without_losses(record, "-k", EVENTS, command=(sys.executable, "-c", PROGRAM), cwd=tmp_path)
    events = oracle_figures.load(kymo("convert", "--to", "json", trace).out)
    threads = oracle_parts.Threads(events)
    found = members(kymo, trace)
    expected = {(tid, begin): (call, end) for begin, end, call, tid, _ in oracle_calls.calls(events)}
    assert {key: member[:2] for key, member in found.items()} == expected
    counts = collections.Counter()
    for (tid, begin), member in found.items():
        # A switch that the kernel did not record: there is no second way to know.
        if not threads.is_doubtful(begin, member[1]):
            check(threads, tid, begin, member)
            counts[member[0]] += 1
    assert all(counts[call] for call in CALLS), counts
    assert sum(counts.values()) > 0.8 * len(found)
    named = sum(len(member[3]) for member in found.values() if member[0] == "wait4")
    waits = sum(part.kind == "blocked" for member in found.values() if member[0] == "wait4" for part in member[2])
    assert named > 0.9 * waits > 50
