# SPDX-License-Identifier: MIT
"""kymo record --raw, and reading what it wrote."""

import collections
import glob
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

LOOP = "import os\nfor i in range({}): os.getpriority(0, 0)\n"


def python(calls):
    return ["/usr/bin/python3", "-c", LOOP.format(calls)]


def events(kymo, trace, expr):
    out = kymo("print", "--filter", expr, trace).out
    return [line.split(") ", 1)[1] for line in out.splitlines()]


@pytest.mark.parametrize("context", [[], ["-c", "pid,ppid,procname,prio,interruptible"]])
def test_same_as_converted_at_once(record, kymo, kymo_bin, tmp_path, context):
    """One recorder beside the other: of a thread they tell the same."""
    rules = ["-k", "sched_switch,syscall:openat,sched_process_*,signal_*,irq_softirq_entry",
             "-k", "syscall_*_getpriority if ret == 20 || has(which)"]
    script = f"echo $$ > {tmp_path}/tid; exec /usr/bin/python3 -c '{LOOP.format(500)}'"
    raw = tmp_path / "raw"
    plain, _ = record(*rules, *context, command=[
        kymo_bin, "record", "--raw", "-o", raw, *rules, *context, "--", "sh", "-c", script])
    tid = int((tmp_path / "tid").read_text())
    wanted = f'$ctx.tid == {tid} && !($event =~ "lttng_*")'
    # An interrupt may come when one of them has recorded a system call, and the other is about to.
    irqs = [collections.Counter(events(kymo, trace, wanted + ' && $event =~ "irq_*"')) for trace in (raw, plain)]
    assert not irqs[0] - irqs[1]
    wanted += ' && !($event =~ "irq_*")'
    ours, theirs = events(kymo, raw, wanted), events(kymo, plain, wanted)
    assert ours == theirs[-len(ours):]
    # The other one has seen what became the command wait, while this one was still to begin.
    before = theirs[:len(theirs) - len(ours)]
    assert not any(re.search("sched_process_exec|syscall_", line) for line in before)
    assert sum("sched_process_exec" in line for line in ours) >= 2
    assert sum("syscall_entry_getpriority" in line for line in ours) == 500
    assert sum("syscall_exit_getpriority" in line for line in ours) == 500
    assert any("sched_switch" in line for line in ours)
    if context:
        assert 'procname = "python3"' in ours[-1]


def test_all_commands_read_it(record, kymo, peer, tmp_path):
    raw, done = record("--raw", "--clock", "monotonic",
                       command=["sh", "-c", "ls -R /usr/include > /dev/null"])
    assert not (raw / "kernel").exists() and "0 lost" in done.err
    env = {"TMPDIR": str(tmp_path)}
    printed = kymo("print", raw, env=env).out
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "ctf", raw, env=env)
    assert kymo("print", tmp_path / "ctf").out == printed
    assert peer("babeltrace2", tmp_path / "ctf").out == printed
    assert len(printed.splitlines()) > 1000 and "lttng_statedump_process_state" in printed
    assert "sched_switch" in kymo("info", raw, env=env).out
    assert "CPU time of each thread" in kymo("report", "cpu", raw, env=env).out
    kymo("convert", "--to", "json", "-o", tmp_path / "json", raw, tmp_path / "ctf", env=env)
    assert not glob.glob(f"{tmp_path}/kymo-raw-*")


def test_losses_are_exact(record, kymo):
    calls = 300000
    raw, done = record("--raw", "-k", "syscall_*_getpriority", "-b", "64k",
                       command=["taskset", "1", *python(calls)])
    lost = int(re.search(r" (\d+) lost\.", done.err)[1])
    count = int(kymo("print", "--event", "syscall_*", "--count", raw).out)
    assert 0 <= count + lost - 2 * calls < 2000
    if lost:
        assert f"{lost} events lost" in kymo("print", "--event", "syscall_*", raw).err or \
            sum(map(int, re.findall(r"(\d+) events? lost", kymo("print", raw).err))) == lost


def test_killed_recorder(kymo, kymo_bin, needs_root_tracefs, tmp_path):
    """What is on the disk can be read."""
    raw = tmp_path / "raw"
    with subprocess.Popen([kymo_bin, "record", "--raw", "-o", raw, "-k", "syscall_*_getpriority",
                           "-b", "256k"], stderr=subprocess.DEVNULL) as recorder:
        for _ in range(200):
            if (raw / "raw" / "state" / "statedump_0").exists():
                break
            time.sleep(0.05)
        time.sleep(0.3)
        subprocess.run(python(20000), check=True)
        time.sleep(0.3)
        recorder.send_signal(signal.SIGKILL)
    # A slow machine's recorder loses some, and what was not read yet is gone.
    assert int(kymo("print", "--event", "syscall_*", "--count", raw).out) > 100
    kymo("record", "-o", tmp_path / "next", "-k", "sched_switch", "--", "true")
    assert not glob.glob(f"{needs_root_tracefs}/instances/kymo-{recorder.pid}-*")


def test_mistakes(kymo, tmp_path, needs_root_tracefs):
    def fails(*options, code):
        done = kymo("record", "--raw", *options, "--", "true", code=code)
        assert len(done.err.strip().splitlines()) == 1, done
        return done.err

    assert "alone" in fails("--user", "x:*", "--kernel", "irq", code=2)
    assert "alone" in fails("--overwrite", code=2)
    assert "no event" in fails("-o", tmp_path / "t", "-k", "nonsense", code=1)
    assert not (tmp_path / "t").exists()
    kymo("record", "--raw", "-o", tmp_path / "t", "-k", "sched_switch", "--", "true")
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "t/raw/recording").stat().st_mode & 0o777 == 0o600
    fails("-o", tmp_path / "t", "-k", "sched_switch", code=1)


def damage(path, rng):
    data = bytearray(path.read_bytes())
    kind = rng.randrange(4)
    if kind == 0 or not data:
        data = data[:rng.randrange(len(data) + 1)]
    elif kind == 1:
        for _ in range(rng.randrange(1, 20)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 2:
        at = rng.randrange(len(data))
        del data[at:at + rng.randrange(1, 100)]
    else:
        at = rng.randrange(min(len(data), 400))
        data[at:at + 1] = bytes(rng.choice(b"0123456789 -\nx") for _ in range(rng.randrange(1, 30)))
    path.write_bytes(data)


@pytest.mark.deadline(180)
def test_damaged_recordings(record, kymo, tmp_path):
    """Each is read as far as can be, or refused with one line; nothing crashes or hangs."""
    good, _ = record("--raw", "-k", "sched_switch,syscall:getpriority", "-c", "procname",
                     command=python(2000))
    rng = random.Random(int(os.environ.get("KYMO_SEED", "1")))
    codes = set()
    for i in range(int(os.environ.get("KYMO_MUTATIONS", "60"))):
        bad = tmp_path / "bad"
        shutil.copytree(good, bad)
        files = [path for path in (bad / "raw").glob("*") if path.is_file()]
        files += list((bad / "raw" / "state").glob("statedump_0"))
        for _ in range(rng.randrange(1, 3)):
            damage(rng.choice(files), rng)
        done = kymo("print", "--count", bad, code=None, timeout=60)
        assert done.code in (0, 1), (i, done)
        codes.add(done.code)
        shutil.rmtree(bad)
    assert codes == {0, 1}
