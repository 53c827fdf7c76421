# SPDX-License-Identifier: MIT
"""Traces of real LTTng-UST, made here: rotated, size-limited, snapshots, losses, crashes.

An own session daemon, whose files and sockets all lie in a directory of the test's.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import time

import pytest

WAIT_FILES = "/dev/shm/lttng-ust-wait-*"

PROVIDER = """
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER prov
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./tp.h"
#if !defined(TP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define TP_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(prov, tick, LTTNG_UST_TP_ARGS(int, n, const char *, text),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, n, n)
                        lttng_ust_field_string(text, text)))
#endif
#include <lttng/tracepoint-event.h>
"""

# prog FIRST COUNT [PAUSE_US [kill]]: ticks, with a pause after each hundred.
PROGRAM = """
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "tp.h"
int main(int argc, char **argv)
{
    int first = atoi(argv[1]), n = atoi(argv[2]);
    for (int i = first; i < first + n; i++) {
        lttng_ust_tracepoint(prov, tick, i, "some text that fills the buffers");
        if (argc > 3 && i % 100 == 0)
            usleep((useconds_t)atoi(argv[3]));
    }
    if (argc > 4)
        raise(SIGKILL);
    return 0;
}
"""


class Lab:
    """A session daemon of our own, and a program to trace."""

    def __init__(self, path):
        self.path = path
        self.env = dict(os.environ, LC_ALL="C", TZ="UTC", HOME=str(path), LTTNG_HOME=str(path),
                        LTTNG_RUNDIR=str(path / ".lttng"), LTTNG_UST_REGISTER_TIMEOUT="-1")
        (path / "tp.h").write_text(PROVIDER)
        (path / "prog.c").write_text(PROGRAM)
        self.daemon = None

    def run(self, *args, codes=(0,)):
        done = subprocess.run([str(arg) for arg in args], cwd=self.path, env=self.env, timeout=60,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        assert done.returncode in codes, (args, done.returncode, done.stdout.decode())
        return done.stdout.decode()

    def build(self):
        self.run("gcc", "-I.", "-o", "prog", "prog.c", "-llttng-ust", "-ldl")

    def start(self):
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.env,
                                       cwd=self.path, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while "Error" in self.run("lttng", "list", codes=(0, 1)):
            assert time.monotonic() < end, "the session daemon does not answer"
            assert self.daemon.poll() is None, "the session daemon ended"
            time.sleep(0.1)

    def stop(self):
        """The daemon ends its consumers itself."""
        if self.daemon and self.daemon.poll() is None:
            self.daemon.terminate()
            try:
                self.daemon.wait(20)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()

    def session(self, name, *channel, create=()):
        self.run("lttng", "create", name, *(create or [f"--output={self.path / name}"]))
        self.run("lttng", "enable-channel", "-u", "-s", name, *channel, "ch")
        self.run("lttng", "enable-event", "-u", "-s", name, "-c", "ch", "prov:*")
        self.run("lttng", "start", name)
        return self.path / name

    def end(self, name):
        self.run("lttng", "stop", name)
        self.run("lttng", "destroy", name)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    for program in ("lttng", "lttng-sessiond", "gcc"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed: tools/install-deps test")
    if subprocess.run(["gcc", "-E", "-xc", "-"], input=b"#include <lttng/tracepoint.h>\n",
                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                      check=False).returncode:
        pytest.skip("no headers of lttng-ust: tools/install-deps test")
    before = set(glob.glob(WAIT_FILES))
    made = Lab(tmp_path_factory.mktemp("u"))
    made.build()
    try:
        made.start()
        yield made
    finally:
        made.stop()
        # By these programs wait for a daemon; they would stay.
        for path in set(glob.glob(WAIT_FILES)) - before:
            os.unlink(path)


def numbers(text):
    return [int(n) for n in re.findall(r"\bn = (\d+)", text)]


def assert_equal_text(kymo, peer, trace):
    ours, theirs = kymo("print", trace), peer("babeltrace2", trace)
    assert theirs.code == 0, theirs
    assert ours.raw == theirs.raw
    return ours


def info_of(kymo, trace):
    return json.loads(kymo("info", "--json", trace).out)


def test_rotated_chunks_of_limited_files_are_one_trace(kymo, peer, lab):
    trace = lab.session("rot", "--subbuf-size=4096", "--num-subbuf=8", "--tracefile-size=16384")
    lab.run("./prog", 0, 1500, 2000)
    lab.run("lttng", "rotate", "rot")
    lab.run("./prog", 1500, 1000, 2000)
    lab.run("lttng", "rotate", "rot")
    lab.run("./prog", 2500, 500, 2000)
    lab.end("rot")
    assert len(os.listdir(trace / "archives")) == 3
    text = assert_equal_text(kymo, peer, trace)
    info = info_of(kymo, trace)
    assert len(info["traces"]) == 1
    streams = info["traces"][0]["streams"]
    assert len({stream["cpu"] for stream in streams}) == len(streams)
    assert info["lost_packets"] == 0
    assert info["events"] + info["lost_events"] == 3000
    assert numbers(text.out) == sorted(numbers(text.out))
    # Seeking works over the files too.
    middle = kymo("print", "--begin", "50%", trace).out.splitlines()
    lines = text.out.splitlines()
    assert middle[1:] == lines[len(lines) - len(middle) + 1:]


def test_files_that_are_written_over(kymo, peer, lab):
    trace = lab.session("cnt", "--subbuf-size=4096", "--num-subbuf=8", "--tracefile-size=8192",
                        "--tracefile-count=3")
    lab.run("./prog", 0, 3000, 2000)
    lab.end("cnt")
    text = assert_equal_text(kymo, peer, trace)
    assert 0 < len(numbers(text.out)) < 3000
    assert len(info_of(kymo, trace)["traces"][0]["streams"]) <= os.cpu_count()


def test_snapshots_that_overlap_tell_each_event_once(kymo, peer, lab):
    trace = lab.path / "snap"
    lab.session("snap", "--subbuf-size=4096", "--num-subbuf=8", "--overwrite",
                create=["--snapshot", f"--output={trace}"])
    for first, count in ((0, 200), (200, 200), (400, 0), (400, 3000)):
        lab.run("./prog", first, count, 1000)
        lab.run("lttng", "snapshot", "record", "-s", "snap")
    lab.end("snap")
    assert len(os.listdir(trace)) == 4
    text = assert_equal_text(kymo, peer, trace)
    found = numbers(text.out)
    assert len(set(found)) == len(found) > 400
    info = info_of(kymo, trace)
    assert len(info["traces"]) == 1 and info["events"] == len(found)
    # Alone, a snapshot is all that it holds.
    one = sorted(os.listdir(trace))[0]
    assert_equal_text(kymo, peer, trace / one)


def test_discarded_events(kymo, peer, lab):
    trace = lab.session("lossy", "--subbuf-size=4096", "--num-subbuf=2")
    lab.run("./prog", 0, 30000)
    lab.end("lossy")
    text = assert_equal_text(kymo, peer, trace)
    info = info_of(kymo, trace)
    assert info["lost_events"] > 0
    lost = re.findall(r"Tracer discarded (\d+) events", peer("babeltrace2", trace).err)
    assert sum(map(int, lost)) == info["lost_events"]
    assert str(info["lost_events"]) in text.err or len(lost) > 1
    for stream in info["traces"][0]["streams"]:
        assert sum(loss["events"] for loss in stream["losses"]) == stream["lost_events"]


def test_buffers_after_a_crash(kymo, peer, lab):
    lab.session("crash", "--subbuf-size=4096", "--num-subbuf=8",
                create=[f"--output={lab.path / 'crash'}", f"--shm-path={lab.path / 'shm'}"])
    lab.run("./prog", 0, 300, 1000, "kill", codes=(-9,))
    lab.run("lttng-crash", "-x", lab.path / "out", lab.path / "shm")
    lab.end("crash")
    text = assert_equal_text(kymo, peer, lab.path / "out")
    assert numbers(text.out)
