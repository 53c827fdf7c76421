# SPDX-License-Identifier: MIT
"""Several CPUs give what one gives: bytes, warnings and where they stand, exit codes."""

import contextlib
import glob
import os
import shutil
import signal
import stat
import subprocess
import time

import pytest

TRACES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data")
SMALL = sorted(glob.glob(os.path.join(TRACES, "ok", "traces", "*", ""))
               + glob.glob(os.path.join(TRACES, "bad", "traces", "*", "")))

WAYS = {
    "text": ["print", "--clock-date"],
    "cycles": ["print", "--clock-cycles"],
    "recover": ["print", "--recover"],
    "json": ["convert", "--to", "json"],
    "csv": ["convert", "--to", "csv", "--fields", "$time,$event,$stream,$cpu"],
    "none": ["print", "--no-output"],
    "info": ["info"],
    "info-json": ["info", "--json"],
    "count": ["print", "--count"],
    "filter": ["print", "--filter", "$time >= 0"],
    "head": ["print", "--head", "3001"],
    "tail": ["print", "--tail", "3001"],
    "report": ["report", "all"],
    "report-filter": ["report", "--json", "--filter", "$time >= 0", "all"],
    "report-recover": ["report", "--recover", "--refresh", "100ms", "cpu,syscalls"],
}


def both(kymo_bin, args):
    """Exit code and the two outputs as they came, in one."""
    done = subprocess.run([kymo_bin, *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL, timeout=240, check=False,
                          env=dict(os.environ, TZ="UTC"))
    assert done.returncode >= 0
    assert b"Sanitizer" not in done.stdout and b"runtime error" not in done.stdout, done.stdout
    return done.returncode, done.stdout


def compare(kymo_bin, args, trace, jobs=(2, 5)):
    want = both(kymo_bin, [*args, "--jobs", "1", trace])
    for number in jobs:
        assert both(kymo_bin, [*args, "--jobs", str(number), trace]) == want, number
    return want


@pytest.mark.parametrize("trace", SMALL, ids=lambda path: "-".join(path.split("/")[-4:-1:2]))
def test_small(kymo_bin, trace):
    for way in ("text", "cycles", "recover", "json", "csv", "none", "info", "report", "report-recover"):
        compare(kymo_bin, WAYS[way], trace)


@pytest.fixture(scope="module", params=[1, 6])
def trace(request, kymo_bin, tmp_path_factory):
    """60 000 events over one stream or six, as a kernel has them."""
    build = os.path.dirname(os.path.dirname(os.path.dirname(kymo_bin)))
    make = os.path.join(build, "bench", "make-trace")
    if not os.access(make, os.X_OK):
        pytest.skip(f"{make} is not built")
    path = tmp_path_factory.mktemp("jobs") / "trace"
    subprocess.run([make, "-n", "60000", "-s", str(request.param), path], check=True)
    return str(path)


@pytest.mark.parametrize("way", WAYS)
def test_large(kymo_bin, trace, way):
    code, out = compare(kymo_bin, WAYS[way], trace, jobs=(2, 3, 9))
    assert code == 0
    assert out


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("share", [0.02, 0.5, 0.97])
def test_damage(kymo_bin, trace, tmp_path, way, share):
    """A byte run that is no event, somewhere in the first stream."""
    damaged = tmp_path / "damaged"
    shutil.copytree(trace, damaged)
    with open(damaged / "channel0_0", "r+b") as stream:
        at = int(os.path.getsize(damaged / "channel0_0") * share)
        stream.seek(at)
        stream.write(b"\xff" * 64)
    code, _ = compare(kymo_bin, WAYS[way], damaged)
    assert code == 1 or way in ("head", "recover")


def test_cut(kymo_bin, trace, tmp_path):
    cut = tmp_path / "cut"
    shutil.copytree(trace, cut)
    os.truncate(cut / "channel0_0", os.path.getsize(cut / "channel0_0") * 2 // 3)
    for way in ("text", "json", "none", "info"):
        assert compare(kymo_bin, WAYS[way], cut)[0] == 1


def test_full_disk(kymo_bin, trace):
    if not stat.S_ISCHR(os.stat("/dev/full").st_mode):
        pytest.skip("/dev/full is no device here")
    for jobs in ("1", "2"):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([kymo_bin, "print", "--jobs", jobs, trace], stdout=full,
                                  stderr=subprocess.PIPE, timeout=240, check=False)
        assert done.returncode == 1
        assert b"No space left" in done.stderr


@pytest.mark.parametrize("jobs", ["1", "2", "5"])
@pytest.mark.parametrize("args", [["print"], ["print", "--tail", "50000"], ["convert", "--to", "json"],
                                  ["convert", "--to", "text", "--tail", "50000"]],
                         ids=" ".join)
def test_nobody_reads(kymo_bin, trace, args, jobs):
    """A pipe whose reader has gone is no failure, and ends the run."""
    with subprocess.Popen([kymo_bin, *args, "--jobs", jobs, trace], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as run:
        run.stdout.read(1000)
        run.stdout.close()
        assert run.stderr.read() == b""
        assert run.wait(timeout=240) == 0


@pytest.fixture(scope="module")
def long_trace(kymo_bin, tmp_path_factory):
    """So many events that nobody converts them before a signal comes."""
    build = os.path.dirname(os.path.dirname(os.path.dirname(kymo_bin)))
    path = tmp_path_factory.mktemp("long") / "trace"
    subprocess.run([os.path.join(build, "bench", "make-trace"), "-n", "2000000", "-s", "8",
                    "-p", "65536", path], check=True)
    return str(path)


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def writes_under(pid, path):
    """Whether a process has a file below path open: it may have no name before it is complete."""
    links = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            links.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return any(link.startswith(f"{path}/") for link in links)


@pytest.mark.parametrize("jobs", ["1", "2", "5"])
@pytest.mark.parametrize("args", [[], ["--tail", "1900000"], ["--filter", "$time > 0"]],
                         ids=" ".join)
@pytest.mark.parametrize("to", ["json", "csv", "ctf2"])
def test_interrupted(kymo_bin, long_trace, tmp_path, to, args, jobs):
    """Ctrl-C while converting: it ends soon, says so, and leaves nothing behind."""
    with subprocess.Popen([kymo_bin, "convert", "--to", to, "-o", tmp_path / "out", "--jobs", jobs,
                           *(args or ["--event", "*"]), long_trace],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          preexec_fn=lambda: os.nice(10)) as run:
        wait_for(lambda: writes_under(run.pid, tmp_path))  # and it, being nice, waits for us
        run.send_signal(signal.SIGINT)
        errors = run.stderr.read()
        assert run.wait(timeout=240) == 1, errors
    assert b"interrupted" in errors
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("jobs", ["1", "2", "5"])
@pytest.mark.parametrize("args", [[], ["--tail", "1900000"]], ids=" ".join)
def test_print_interrupted(kymo_bin, long_trace, args, jobs):
    """Printing has nothing to clean up: the signal ends it, also while nobody reads the pipe."""
    with subprocess.Popen([kymo_bin, "print", "--jobs", jobs, *args, long_trace],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stdout.read(1000)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=240) == -signal.SIGINT
        assert run.stderr.read() == b""
