# SPDX-License-Identifier: MIT
"""Traces of real LTTng-UST, made here: every kind of field, rotated, size-limited, snapshots,
losses, crashes, buffers per process, and what a relay daemon receives.

An own session daemon, whose files and sockets all lie in a directory of the test's.
"""

import glob
import json
import os
import re
import shutil
import socket
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

# Every kind of field. No text of length 0: babeltrace2 2.0.4 shows that of an earlier event there.
KINDS = """
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kinds
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./kp.h"
#if !defined(KP_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define KP_H
#include <stdint.h>
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_ENUM(kinds, state, LTTNG_UST_TP_ENUM_VALUES(
    lttng_ust_field_enum_value("idle", 0) lttng_ust_field_enum_range("busy", 1, 4)
    lttng_ust_field_enum_value("failed", -1) lttng_ust_field_enum_auto("next")))
LTTNG_UST_TRACEPOINT_EVENT(kinds, all,
    LTTNG_UST_TP_ARGS(int, n, const char *, text, int64_t *, longs, uint8_t *, bytes),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(int8_t, i8, n - 9) lttng_ust_field_integer(uint16_t, u16, n)
        lttng_ust_field_integer(int64_t, i64, longs[0])
        lttng_ust_field_integer_hex(uint32_t, hex, n * 77)
        lttng_ust_field_integer_network(uint16_t, net16, htons(n))
        lttng_ust_field_integer_network_hex(uint32_t, net32, htonl(n))
        lttng_ust_field_float(float, flt, n / 4.0f) lttng_ust_field_float(double, dbl, n / 7.0)
        lttng_ust_field_string(text, text)
        lttng_ust_field_array(int64_t, arr, longs, 3)
        lttng_ust_field_array_hex(uint8_t, arr_hex, bytes, 4)
        lttng_ust_field_array_network(int64_t, arr_net, longs, 2)
        lttng_ust_field_array_text(uint8_t, arr_text, bytes, 6)
        lttng_ust_field_sequence(uint8_t, seq, bytes, unsigned, (unsigned)n % 9)
        lttng_ust_field_sequence_hex(int64_t, seq_hex, longs, uint8_t, (uint8_t)(n % 3))
        lttng_ust_field_sequence_network(int64_t, seq_net, longs, unsigned, (unsigned)n % 4)
        lttng_ust_field_sequence_text(uint8_t, seq_text, bytes, size_t, (size_t)n % 6 + 1)
        lttng_ust_field_enum(kinds, state, int, st, n % 7 - 1)
        lttng_ust_field_integer_nowrite(int, unseen, n)))
LTTNG_UST_TRACEPOINT_LOGLEVEL(kinds, all, LTTNG_UST_TRACEPOINT_LOGLEVEL_WARNING)
LTTNG_UST_TRACEPOINT_EVENT(kinds, none, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
#endif
#include <lttng/tracepoint-event.h>
"""

LABELS = {-1: ["failed"], 0: ["idle", "next"], 5: []}  # "next" is what follows -1

KINDS_PROGRAM = """
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "kp.h"
int main(int argc, char **argv)
{
    int64_t longs[] = {0, 1LL << 40, INT64_MIN};
    uint8_t bytes[16] = "h\\303\\251\\"o\\n";
    char text[64];
    for (int i = 0; i < atoi(argv[1]); i++) {
        memset(text, 'a', sizeof(text));
        strcpy(text + i % 40, i % 5 ? "" : "q\\"\\\\\\n\\t\\001\\303\\251");
        longs[0] = -i * 1000003L;
        lttng_ust_tracepoint(kinds, all, i, text, longs, bytes);
        lttng_ust_tracepoint(kinds, none);
    }
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
        (path / "kp.h").write_text(KINDS)
        (path / "kinds.c").write_text(KINDS_PROGRAM)
        self.daemon = self.space = None

    def enter(self):
        """The command that runs others with a /run/lttng of this lab's own: root's session daemons share that one."""
        if os.geteuid() != 0 or not shutil.which("nsenter"):
            return []
        if not self.space:
            self.space = subprocess.Popen(["unshare", "--mount", "sh", "-c", "mkdir -p /run/lttng && mount -t tmpfs none "
                                           "/run/lttng && echo && exec sleep 100000"], stdout=subprocess.PIPE)
            self.space.stdout.readline()
        return ["nsenter", f"--mount=/proc/{self.space.pid}/ns/mnt", f"--wd={self.path}", "--"]

    def popen(self, *args):
        return subprocess.Popen([*self.enter(), *map(str, args)], env=self.env, cwd=self.path, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def run(self, *args, codes=(0,)):
        done = subprocess.run([*self.enter(), *map(str, args)], cwd=self.path, env=self.env, timeout=240,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
        assert done.returncode in codes, (args, done.returncode, done.stdout.decode())
        return done.stdout.decode()

    def build(self):
        for program in ("prog", "kinds"):
            self.run("gcc", "-I.", "-o", program, f"{program}.c", "-llttng-ust", "-ldl")

    def start(self):
        self.daemon = self.popen("lttng-sessiond", "--no-kernel")
        end = time.monotonic() + 120
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
        if self.space:
            self.space.kill()
            self.space.communicate()
            self.space = None

    def session(self, name, *channel, create=(), contexts=(), more=""):
        self.run("lttng", "create", name, *(create or [f"--output={self.path / name}"]))
        self.run("lttng", "enable-channel", "-u", "-s", name, *channel, "ch")
        self.run("lttng", "enable-event", "-u", "-s", name, "-c", "ch", ",".join(filter(None, ["prov:*", "kinds:*", more])))
        for context in contexts:
            self.run("lttng", "add-context", "-u", "-s", name, "-c", "ch", "-t", context)
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
    assert ours.raw == theirs.shown
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
    lost = re.findall(r"Tracer discarded (\d+) events?", peer("babeltrace2", trace).err)
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


def test_every_kind_of_field(kymo, peer, lab):
    contexts = ("vpid", "vtid", "procname", "pthread_id", "ip", "vuid", "veuid", "pid_ns", "net_ns")
    trace = lab.session("fields", "--subbuf-size=65536", contexts=contexts)
    lab.run("./kinds", 200)
    lab.end("fields")
    assert_equal_text(kymo, peer, trace)
    events = [json.loads(line) for line in
              kymo("convert", "--to", "json", "--event", "kinds:all", trace).out.splitlines()]
    assert len(events) == 200
    assert list(events[0]["context"]) == list(contexts)
    assert all(event["context"]["procname"] == "kinds" for event in events)
    for i, event in enumerate(events):
        f = event["fields"]
        assert [f[name] for name in ("u16", "net16", "net32", "hex")] == [i, i, i, i * 77]
        assert f["i8"] == (i - 9 + 128) % 256 - 128
        assert f["flt"] == i / 4 and f["dbl"] == i / 7
        assert f["text"] == "a" * (i % 40) + ("" if i % 5 else 'q"\\\n\t\1\u00e9')
        assert f["arr"] == [-i * 1000003, 1 << 40, -1 << 63]
        assert f["arr_net"][1] == int.from_bytes((1 << 40).to_bytes(8, "little"), "big")
        assert f["arr_text"] == 'h\u00e9"o\n'
        assert f["seq"] == list('h\u00e9"o\n\0\0\0'.encode()[:i % 9])
        assert f["seq_hex"] == [-i * 1000003, 1 << 40][:i % 3]
        assert f["st"]["value"] == i % 7 - 1
        assert f["st"]["labels"] == LABELS.get(i % 7 - 1, ["busy"])


def test_buffers_of_each_process(kymo, peer, lab):
    trace = lab.session("per-pid", "--buffers-pid")
    for first in (0, 100, 200):
        lab.run("./prog", first, 100)
    lab.end("per-pid")
    text = assert_equal_text(kymo, peer, trace)
    assert numbers(text.out) == list(range(300))
    assert len(info_of(kymo, trace)["traces"]) == 3


@pytest.fixture(scope="module")
def relay(lab):
    """A relay daemon: where it writes, and the options that make a session use it."""
    with socket.socket() as a, socket.socket() as b, socket.socket() as c:
        ports = []
        for sock in (a, b, c):
            sock.bind(("127.0.0.1", 0))
            ports.append(sock.getsockname()[1])
    urls = [f"tcp4://127.0.0.1:{port}" for port in ports]
    with subprocess.Popen(["lttng-relayd", f"--output={lab.path / 'relay'}", "-C", urls[0],
                           "-D", urls[1], "-L", urls[2]], env=lab.env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        try:
            end = time.monotonic() + 120
            while True:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", ports[2])) == 0:
                        break
                assert time.monotonic() < end and daemon.poll() is None, "no relay daemon"
                time.sleep(0.1)
            yield lab.path / "relay", [f"--ctrl-url={urls[0]}", f"--data-url={urls[1]}"]
        finally:
            daemon.terminate()


@pytest.mark.parametrize("name, options", [("net", []), ("live", ["--live=100000"])])
def test_what_a_relay_daemon_receives(kymo, peer, lab, relay, name, options):
    path, urls = relay
    lab.session(name, create=options + urls)
    lab.run("./prog", 0, 200, 1000)
    lab.run("./kinds", 20)
    lab.end(name)
    trace, = path.glob(f"*/{name}-*")
    text = assert_equal_text(kymo, peer, trace)
    assert numbers(text.out) == list(range(200))
    assert text.out.count("kinds:") == 40
