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

from conftest import ROOT
from recording import middle_of

LOOP = "import os\nfor i in range({}): os.getpriority(0, 0)\n"


def python(calls):
    return ["/usr/bin/python3", "-c", LOOP.format(calls)]


def events(kymo, trace, expr):
    out = kymo("print", "--filter", expr, trace).out
    return [line.split(") ", 1)[1] for line in out.splitlines()]


@pytest.mark.parametrize("context", [[], ["-c", "pid,ppid,procname,prio,interruptible"]])
def test_same_as_converted_at_once(record, kymo, kymo_bin, tmp_path, context):
    """One recorder beside the other: of a thread they tell the same."""
    rules = ["-b", "16M", "-k", "sched_switch,syscall:openat,sched_process_*,signal_*,irq_softirq_entry",
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
    # The other one has seen what became the command wait, while this one was still to begin; and it leave its CPU, of
    # whose end this one had been told by then.
    before, after = middle_of(ours, theirs)
    assert not any(re.search("sched_process_exec|syscall_", line) for line in before)
    assert all("sched_switch: " in line for line in after)
    assert sum("sched_process_exec" in line for line in ours) >= 2
    assert sum("syscall_entry_getpriority" in line for line in ours) == 500
    assert sum("syscall_exit_getpriority" in line for line in ours) == 500
    assert any("sched_switch" in line for line in ours)
    if context:
        assert 'procname = "python3"' in ours[-1]


def test_all_commands_read_it(record, without_losses, kymo, peer, tmp_path):
    raw, _ = without_losses(record, "--raw", "--clock", "monotonic",
                            command=["sh", "-c", "ls -R /usr/include > /dev/null"])
    assert not (raw / "kernel").exists()
    (tmp_path / "temporary").mkdir()
    env = {"TMPDIR": str(tmp_path / "temporary")}
    printed = kymo("print", raw, env=env).out
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "ctf", raw, env=env)
    assert kymo("print", tmp_path / "ctf").out == printed
    assert peer("babeltrace2", tmp_path / "ctf").out == printed
    assert len(printed.splitlines()) > 1000 and "lttng_statedump_process_state" in printed
    assert "sched_switch" in kymo("info", raw, env=env).out
    assert "CPU time of each thread" in kymo("report", "cpu", raw, env=env).out
    kymo("convert", "--to", "json", "-o", tmp_path / "json", raw, tmp_path / "ctf", env=env)
    # The same one twice is one; and what is shown is where the user has it.
    assert kymo("print", raw, f"{raw}/", env=env).out == printed
    for command in (["info"], ["report", "summary"], ["info", "--json"]):
        told = kymo(*command, raw, env=env).out
        assert str(raw) in told and str(tmp_path / "temporary") not in told
    assert not os.listdir(tmp_path / "temporary")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_nothing_stays_behind(record, without_losses, kymo_bin, tmp_path, number):
    """A command that reads a raw recording ends in its midst: what it made of it was never to be seen."""
    raw, _ = without_losses(record, "--raw", command=["sh", "-c", "ls -R /usr/include > /dev/null"])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = dict(os.environ, TMPDIR=str(temporary))
    for command in (["print"], ["convert", "--to", "text"], ["convert", "--to", "json"]):
        # Nobody reads its output: it waits in the midst of it.
        with subprocess.Popen([kymo_bin, *command, raw], stdout=subprocess.PIPE, env=env) as kymo:
            kymo.stdout.read(1)
            files = [os.readlink(f"/proc/{kymo.pid}/fd/{fd}")
                     for fd in os.listdir(f"/proc/{kymo.pid}/fd")]
            assert any(name.startswith(str(temporary)) for name in files)
            assert not os.listdir(temporary)
            kymo.send_signal(number)
            kymo.stdout.close()
        assert not os.listdir(temporary)


def test_no_room_for_the_conversion(record, kymo_bin, tmp_path):
    # More than stays in memory.
    raw, _ = record("--raw", "-k", "syscall:read,syscall:write", command=["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1500000"])
    small = tmp_path / "small"
    small.mkdir()
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o size=64k tmpfs {small} && "
         f"TMPDIR={small} exec {kymo_bin} print {raw}"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{small}: cannot write a temporary file: No space left" in done.stderr
    assert "TMPDIR" in done.stderr


def test_what_is_left_out_is_told(record, kymo, tmp_path):
    """The recorder does not count events in raw pages: it shows records, and the conversion shows the events."""
    raw, done = record("--raw", "-k", "syscall:getpriority,syscall:openat,syscall:read",
                       "-k", "syscall_*_getpriority if ret == 20 || has(which)", "-c", "procname",
                       command=python(500))
    records, state = map(int, re.search(r"Recorded (\d+) raw records and (\d+) events, ",
                                              done.err).groups())
    assert re.search(r"^ +CPU +records +lost$", done.err, re.M) and "'kymo convert' leaves out records" in done.err
    converted = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "ctf", raw).err
    before, after, parts = re.search(rf"kymo: {raw}: (\d+) raw records, (\d+) events; left out: (.*)",
                                     converted).groups()
    assert int(before) == records
    assert int(kymo("print", "--count", tmp_path / "ctf").out) == int(after) + state
    assert sum(int(part.split()[0]) for part in parts.split(", ")) == records - int(after)
    assert "that only describe threads" in parts
    # It is conversions that are asked for it: others have their output to themselves.
    assert "left out" not in kymo("print", "--count", raw).err


def test_another_kernels_constants(record, kymo, kymo_bin):
    """What the formats' names are worth is the recording's: the machine that converts it may not know."""
    raw, _ = record("--raw", "-k", 'timer_hrtimer_start if mode == "REL" || has(nosuch)', "-d", "500ms")
    text = (raw / "raw" / "recording").read_text()
    assert "\nconstants\n" in text and re.search(r"^constant HRTIMER_MODE_REL 1$", text, re.MULTILINE)
    here = kymo("print", raw).out
    modes = set(re.findall(r"timer_hrtimer_start: .* mode = (\( \S+ : container = \d+ \))", here))
    assert modes <= {'( "REL" : container = 1 )'}, modes
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        return
    script = 'mount --bind /dev/null /sys/kernel/btf/vmlinux && exec "$@"'
    there = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", kymo_bin, "print", raw],
                           capture_output=True, text=True, check=False)
    assert there.returncode == 0 and there.stdout == here, there.stderr
    # The conversion has exactly the announced events.
    (raw / "raw" / "recording").write_text(text.replace("constant HRTIMER_MODE_REL 1\n", "constant HRTIMER_MODE_REL one\n"))
    assert "this line is malformed" in kymo("print", raw, code=1).err


def test_losses_are_exact(record, kymo):
    calls = 300000
    raw, done = record("--raw", "--follow", "-k", "syscall_*_getpriority", "-b", "64k",
                       command=["taskset", "-c", min(os.sched_getaffinity(0)), *python(calls)])
    lost = int(re.search(r" (\d+) lost\.", done.err)[1])
    count = int(kymo("print", "--event", "syscall_*", "--count", raw).out)
    assert 0 <= count + lost - 2 * calls < 100
    if lost:
        assert f"{lost} events lost" in kymo("print", "--event", "syscall_*", raw).err or \
            sum(map(int, re.findall(r"(\d+) events? lost", kymo("print", raw).err))) == lost


def test_programs_beside(record, kymo, peer, tmp_path):
    """The kernel's pages as they are, programs as ever: one trace, in the order of time."""
    shop = os.path.join(os.environ.get("KYMO_BUILD") or os.path.join(ROOT, "build"), "examples", "shop")
    if not os.access(shop, os.X_OK):
        pytest.skip(f"{shop} is not built")
    raw, _ = record("--raw", "-k", "sched_process_*,syscall:exit_group", "--user", "shop:*", command=[shop])
    assert (raw / "raw" / "recording").exists() and (raw / "ust").is_dir()
    printed = kymo("print", raw).out
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "ctf", raw)
    assert (tmp_path / "ctf" / "kernel" / "metadata").exists()
    assert kymo("print", "--count", tmp_path / "ctf").out == kymo("print", "--count", raw).out
    names = re.findall(r" (sched_process_exec|shop:[a-z_]+|sched_process_exit|syscall_entry_exit_group): ", printed)
    orders = [i for i, name in enumerate(names) if name.startswith("shop:")]
    assert orders and "sched_process_exec" in names[:orders[0]]
    assert "syscall_entry_exit_group" in names[orders[-1]:]
    assert "shop:" in peer("babeltrace2", tmp_path / "ctf").out


def marks(kymo, trace, tid):
    """The numbers of the marks that @tid has made."""
    shown = kymo("print", "--event", "syscall_entry_lseek", "--filter", f"$ctx.tid == {tid} && whence == 99",
                 trace)
    assert "lost" not in shown.err and "discarded" not in shown.err
    return [int(number) for number in re.findall(r" offset = (\d+)", shown.out)]


def test_flight_recorder(record, kymo, kymo_bin, peer, tmp_path):
    """Each snapshot has what the ones before it had, as long as nothing was overwritten; at the end, the newest."""
    (tmp_path / "marks.c").write_text("""
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int i = atoi(argv[1]); i < atoi(argv[2]); i++)
		syscall(SYS_lseek, -1, i, 99);
	return 0;
}
""")
    subprocess.run(["cc", "-w", "-o", tmp_path / "marks", tmp_path / "marks.c"], check=True)
    script = f"""
cd {tmp_path}
./marks 0 300 & echo $! > 1; wait; {kymo_bin} snapshot -o snap1 || exit 9
./marks 300 600 & echo $! > 2; wait; {kymo_bin} snapshot -o snap2 || exit 9
taskset -c {min(os.sched_getaffinity(0))} ./marks 600 100000 & echo $! > 3; wait
"""
    out, done = record("--raw", "--overwrite", "--clock", "monotonic", "-b", "256k", "-k", "syscall:lseek", "-c",
                       "procname", "--follow", command=["sh", "-c", script])
    tids = [int((tmp_path / name).read_text()) for name in "123"]
    assert marks(kymo, tmp_path / "snap1", tids[0]) == list(range(300))
    assert marks(kymo, tmp_path / "snap2", tids[0]) == list(range(300))
    assert marks(kymo, tmp_path / "snap2", tids[1]) == list(range(300, 600))
    last = marks(kymo, out, tids[2])
    assert 500 < len(last) < 90000 and last == list(range(last[0], 100000))
    assert "; 0 lost." in done.err and "older events were overwritten" in done.err
    assert done.err.count(" raw records and events, ") == 2  # the snapshots
    for trace in tmp_path / "snap2", out:
        assert "lttng_statedump_process_state" in kymo("print", trace).out
        assert (trace / "raw" / "recording").stat().st_mode & 0o777 == 0o600
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "ctf", out)
    assert len(peer("babeltrace2", tmp_path / "ctf").out.splitlines()) == len(kymo("print", out).out.splitlines())


def test_large_sub_buffers(kymo_bin, needs_root_tracefs, tmp_path):
    """Eight of the largest size fit into 4 MiB; into less, smaller ones. Old kernels have no choice."""
    for size, kib in (("4M", 512), ("1M", 128), ("256k", 32)):
        recorder = subprocess.Popen([kymo_bin, "record", "--raw", "-b", size, "-k", "sched:sched_switch",
                                     "-o", tmp_path / size], stderr=subprocess.DEVNULL)
        try:
            # The state dump begins once events are recorded.
            while not (tmp_path / size / "raw/state/statedump_0").exists():
                assert recorder.poll() is None
                time.sleep(0.01)
            for path in glob.glob(f"{needs_root_tracefs}/instances/kymo-{recorder.pid}-*"
                                  "/buffer_subbuf_size_kb"):
                with open(path, encoding="ascii") as file:
                    assert int(file.read()) == kib
        finally:
            recorder.send_signal(signal.SIGINT)
            assert recorder.wait() == 0


def test_killed_recorder(kymo, kymo_bin, needs_root_tracefs, tmp_path):
    """What is on the disk can be read."""
    raw = tmp_path / "raw"
    with subprocess.Popen([kymo_bin, "record", "--raw", "-o", raw, "-k", "syscall_*_getpriority",
                           "-b", "256k"], stderr=subprocess.DEVNULL) as recorder:
        for _ in range(200):
            if (raw / "raw" / "state" / "statedump_0").exists():
                break
            time.sleep(0.05)
        for _ in range(200):
            subprocess.run(python(20000), check=True)
            if sum(path.stat().st_size for path in (raw / "raw").glob("cpu*")) > 1 << 20:
                break
            time.sleep(0.05)
        recorder.send_signal(signal.SIGKILL)
    # A slow machine's recorder loses some, and what was not read yet is gone.
    assert int(kymo("print", "--event", "syscall_*", "--count", raw).out) > 100
    assert "this is a recording" in kymo("recover", "-o", tmp_path / "recovered", raw, code=1).err
    assert not (tmp_path / "recovered").exists()
    kymo("record", "-o", tmp_path / "next", "-k", "sched_switch", "--", "true")
    assert not glob.glob(f"{needs_root_tracefs}/instances/kymo-{recorder.pid}-*")


def test_mistakes(kymo, tmp_path, needs_root_tracefs):
    def fails(*options, code):
        done = kymo("record", "--raw", *options, "--", "true", code=code)
        assert len(done.err.strip().splitlines()) == 1, done
        return done.err

    assert "for kernel events; add --kernel" in fails("--user", "x:*", code=2)
    assert "--syscall-content" in fails("--syscall-content=paths", code=2)
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


@pytest.mark.parametrize("name", ["recording", "state/metadata.ctf", "state/statedump_0", "cpu0"])
def test_pipes_in_a_recording(record, kymo, tmp_path, name):
    """No command waits for a pipe that stands in the place of a file."""
    out, _ = record("--raw", "-k", "sched_switch", command=["true"])
    path = out / "raw" / name
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert "kymo: " in kymo("print", out, code=1, timeout=60).err


def test_state_dump_that_claims_any_length(record, kymo, tmp_path):
    """A file of 100 GiB that takes no room on the disk takes none in memory, either."""
    if re.search("-[at]san", os.environ.get("KYMO_BIN", "")):
        pytest.skip("a sanitizer takes more addresses than the limit allows")
    out, _ = record("--raw", "-k", "sched_switch", command=["true"])
    whole = kymo("print", out).out
    os.truncate(out / "raw" / "state" / "statedump_0", 100 << 30)
    limited = ["prlimit", "--as=4294967296", "--", os.environ.get("KYMO_BIN") or
               os.path.join(ROOT, "build", "src", "cli", "kymo"), "print", out]
    done = subprocess.run(limited, capture_output=True, text=True, errors="replace", timeout=240)
    assert done.returncode == 0 and done.stdout == whole, done.stderr
