# SPDX-License-Identifier: MIT
"""Ready-made instrumentation by LD_PRELOAD: every call of a known program is recorded once, with what
it was called with; and programs live as they do without.
"""

import os
import re
import subprocess

import pytest

from test_tracer import BUILD, KYMO, SANITIZE, TESTS, bt2, session, trace_of  # noqa: F401
from user_session import OVERWRITE, Control, Rule

PROGRAM, CALLS = (os.path.join(TESTS, name) for name in ("preload", "calls"))
MARK = "lttng_ust_libc:malloc: { size = 1000003"

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting a private /run/kymo needs root"),
    pytest.mark.skipif(bool(SANITIZE), reason="sanitizers take the place of malloc() and of locks"),
]


def preload(*names):
    paths = [os.path.join(BUILD, "src", "tracer", "preload", f"libkymo-{name}.so") for name in names]
    assert all(map(os.path.exists, paths))
    return "LD_PRELOAD=" + " ".join(paths)


ALL = preload("libc", "pthread", "cyg-profile", "fd")


def run(session, *argv, libraries=ALL):
    return session.run("env", libraries, *argv, capture_output=True, text=True)


def events_of(session, tmp_path):
    """Of a session's only program."""
    [ring] = session.rings()
    return bt2(trace_of(ring, tmp_path)[0])


def between_marks(events):
    marks = [i for i, event in enumerate(events) if event.startswith(MARK)]
    assert len(marks) == 2
    return events[marks[0] + 1:marks[1]]


@pytest.mark.parametrize("mode", ["libc", "pthread"])
def test_every_call(session, tmp_path, mode):
    session.start([Rule("lttng_ust_libc:*"), Rule("lttng_ust_pthread:*")])
    done = run(session, PROGRAM, mode)
    assert not done.stderr
    expected = done.stdout.splitlines()
    assert len(expected) >= 10
    assert between_marks(events_of(session, tmp_path)) == expected


@pytest.mark.parametrize("mode", ["libc", "pthread"])
def test_look_up_that_allocates(session, tmp_path, mode):
    """dlsym() calls what it is asked for."""
    session.start([Rule("lttng_ust_libc:*"), Rule("lttng_ust_pthread:*")])
    done = run(session, PROGRAM, mode, libraries=f"{ALL} {os.path.join(TESTS, 'early.so')}")
    assert not done.stderr
    assert between_marks(events_of(session, tmp_path)) == done.stdout.splitlines()


ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}


@pytest.fixture(params=ALLOCATORS)
def allocator(request):
    """As programs load them: by name."""
    name = ALLOCATORS[request.param]
    if subprocess.run(["env", f"LD_PRELOAD={name}", "true"], capture_output=True,
                      check=False).stderr:
        pytest.skip(f"{name} is missing")
    return name


@pytest.mark.parametrize("mode", ["libc", "pthread"])
def test_other_allocators(session, tmp_path, allocator, mode):
    """They allocate while they are looked up, and while threads start and end."""
    session.start([Rule("lttng_ust_libc:*"), Rule("lttng_ust_pthread:*")])
    done = run(session, PROGRAM, mode, 0, libraries=f"{ALL} {allocator}")
    assert not done.stderr
    events = between_marks(events_of(session, tmp_path))
    expected = done.stdout.splitlines()
    # What they call of each other (locks, in malloc()) is recorded, too.
    assert [event for event in events if event in expected] == expected


def test_other_allocators_threads_and_children(session, tmp_path, allocator):
    session.start([Rule("lttng_ust_libc:*")], subbuf_bytes=65536, n_subbufs=256)
    libraries = f"{ALL} {allocator}"
    run(session, PROGRAM, "threads", 8, 1000, libraries=libraries)
    events = events_of(session, tmp_path)
    assert [sum(1 for event in events if f"malloc: {{ size = {size}," in event)
            for size in (40001, 40002, 40003)] == [8, 8000, 8]
    os.unlink(session.rings()[0])
    run(session, PROGRAM, "fork", 50, libraries=libraries)
    run(session, PROGRAM, "signals", 50000, libraries=libraries)


def test_allocator_in_front(session, tmp_path, allocator):
    """Ours are never called: nothing of them is recorded, and nobody minds."""
    session.start([Rule("lttng_ust_libc:*")])
    done = run(session, PROGRAM, "threads", 4, 100,
               libraries=f"LD_PRELOAD={allocator} {ALL.split('=')[1]}")
    assert not done.stderr
    assert not any("malloc" in event for event in events_of(session, tmp_path))


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Each program is compiled once."""
    made = {}

    def compile_it(source, *options):
        if (source, options) not in made:
            path = tmp_path_factory.mktemp("program") / "program"
            subprocess.run(["g++", "-std=c++17", "-g", *options, "-o", path, "-x", "c++", "-", "-ldl",
                            "-lpthread"], input=source, text=True, check=True)
            made[source, options] = str(path)
        return made[source, options]

    return compile_it


# Memory that is taken and given back in all places where C++ does so.
LIFE = """
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#include <unistd.h>
struct thing { std::vector<int> numbers; thing() : numbers(1000) {} ~thing() { numbers.resize(5000); } };
thing global;
thread_local thing per_thread;
extern "C" void on_signal(int) { free(malloc(123)); }
__attribute__((constructor(101))) void early() { free(malloc(77)); signal(SIGUSR1, on_signal); }
int main()
{
    for (int i = 0; i < 50; i++) {
        std::thread a([] { per_thread.numbers[0] = 1; raise(SIGUSR1); });
        std::thread b([] { per_thread.numbers[0] = 2; std::vector<int> more(100000); });
        a.join();
        b.join();
    }
    atexit([] { free(malloc(99)); });
    per_thread.numbers.resize(10000);
    puts("done");
}
"""


@pytest.mark.parametrize("libraries", ["libc", "all", "jemalloc"])
def test_life_of_cpp_programs(session, tmp_path, build, libraries):
    """Constructors before main(), destructors of threads and after it, signal handlers."""
    program = build(LIFE)
    session.start([Rule("lttng_ust_libc:*")], subbuf_bytes=65536, n_subbufs=64)
    preloaded = {"libc": preload("libc"), "all": ALL,
                 "jemalloc": f"{ALL} {ALLOCATORS['jemalloc']}"}[libraries]
    done = run(session, program, libraries=preloaded)
    assert done.stdout == "done\n"
    events = events_of(session, tmp_path)
    if libraries != "jemalloc":  # which has an operator new of its own
        assert sum("malloc: { size = 20000," in event for event in events) >= 100  # 5000 numbers
    assert sum("malloc: { size = 99," in event for event in events) == 1
    assert sum("malloc: { size = 123," in event for event in events) == 50


@pytest.mark.parametrize("sanitizer, library", [("address", "libasan.so"), ("thread", "libtsan.so"),
                                                ("undefined", "libubsan.so")])
def test_programs_with_sanitizers(session, build, sanitizer, library):
    """A sanitizer must come first; then it takes what is ours, and lives."""
    program = build(LIFE.replace("raise(SIGUSR1);", ""), f"-fsanitize={sanitizer}")
    path = subprocess.run(["g++", f"-print-file-name={library}"], capture_output=True, text=True,
                          check=True).stdout.strip()
    session.start([Rule("*")], subbuf_bytes=65536, n_subbufs=64)
    done = run(session, program, libraries=f"LD_PRELOAD={path} {ALL.split('=')[1]}")
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_static_programs(session, build):
    """No loader, no libraries: they run as they are."""
    program = build(LIFE, "-static")
    session.start([Rule("*")])
    done = run(session, program)
    assert (done.stdout, done.stderr) == ("done\n", "") and not any(
        "program" in ring for ring in session.rings())


LOADED = """
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
int main(int argc, char **argv)
{
    for (int round = 0; round < 3; round++) {
        for (int i = 1; i < argc; i++) {
            void *handle = dlopen(argv[i], RTLD_NOW | (round ? RTLD_GLOBAL : RTLD_LOCAL));
            if (!handle) {
                puts(dlerror());
                return 1;
            }
            auto allocate = (void *(*)(size_t))dlsym(handle, "malloc");
            auto release = (void (*)(void *))dlsym(handle, "free");
            if (allocate && release)
                release(allocate(4321));
            free(malloc(1234));
            if (round < 2)
                dlclose(handle);
        }
    }
    puts("done");
}
"""


def test_loaded_libraries(session, tmp_path, build):
    """Not preloaded, but loaded (and unloaded) like any other library, they take no one's place."""
    program = build(LOADED)
    session.start([Rule("*")])
    done = run(session, program, *ALL.split("=")[1].split(), libraries="A=B")
    assert (done.stdout, done.stderr) == ("done\n", "")
    events = [event for ring in session.rings() for event in bt2(trace_of(ring, tmp_path)[0])]
    assert sum("malloc: { size = 4321," in event for event in events) >= 1
    assert not any("size = 1234," in event for event in events)


def test_types_are_lttngs(session, tmp_path):
    """Widths, signs, bases and log levels, as LTTng-UST 2.13 has them."""
    session.start([Rule("lttng_ust_*")])
    for mode in ("libc", "pthread"):
        run(session, PROGRAM, mode, libraries=preload("libc", "pthread"))
    size, ptr, status = (8, 0, 0), (8, 0, 1), (4, 1, 0)
    wanted = {
        "malloc": [("size", *size), ("ptr", *ptr)],
        "free": [("ptr", *ptr)],
        "calloc": [("nmemb", *size), ("size", *size), ("ptr", *ptr)],
        "realloc": [("in_ptr", *ptr), ("size", *size), ("ptr", *ptr)],
        "memalign": [("alignment", *size), ("size", *size), ("ptr", *ptr)],
        "posix_memalign": [("out_ptr", *ptr), ("alignment", *size), ("size", *size),
                           ("result", *status)],
        "pthread_mutex_lock_req": [("mutex", *ptr)],
        "pthread_mutex_lock_acq": [("mutex", *ptr), ("status", *status)],
        "pthread_mutex_trylock": [("mutex", *ptr), ("status", *status)],
        "pthread_mutex_unlock": [("mutex", *ptr), ("status", *status)],
    }
    found = {}
    for ring in session.rings():
        for event in trace_of(ring, tmp_path)[1].events:
            # Kind 1 is an integer.
            assert all(kind == 1 for _, kind, *_ in event.fields)
            found[event.name] = [(name, size, flags & 1, int(base == 16))
                                 for name, _, size, flags, base, _, _ in event.fields]
            assert event.log_level == 13
            assert event.provider == ("lttng_ust_pthread" if "mutex" in event.name
                                      else "lttng_ust_libc")
    assert found == wanted


def test_who_called(session, tmp_path):
    session.start([Rule("lttng_ust_libc:malloc")], contexts=["ip"])
    done = run(session, PROGRAM, "where")
    begin = int(done.stdout, 16)
    ips = [int(re.search(r"ip = 0x(\w+)", event).group(1), 16)
           for event in events_of(session, tmp_path) if "size = 1000003" in event]
    assert len(ips) == 2 and all(begin < ip < begin + 100 for ip in ips)


def test_context_that_allocates(session, tmp_path):
    """What an application's context does is recorded, and does not go round in circles."""
    program = subprocess.Popen(session.command("env", ALL, PROGRAM, "wait"), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    control = Control(program.pid)
    session.start([Rule("lttng_ust_libc:*")], contexts=[("app", "preload:number")])
    control.ask(session)
    program.stdin.close()
    assert program.wait(timeout=240) == 0
    events = events_of(session, tmp_path)
    mine = [event for event in events if "size = 70001" in event]
    others = [event for event in events if "size = 1000003" in event]
    assert mine and all("app_preload_number = 0 }" in event for event in mine)
    assert len(others) == 2 and all("app_preload_number = 4711 }" in event for event in others)


def test_threads(session, tmp_path):
    session.start([Rule("lttng_ust_*")], subbuf_bytes=65536, n_subbufs=256)
    run(session, PROGRAM, "threads", 8, 1000)
    events = events_of(session, tmp_path)

    def count(text):
        return sum(1 for event in events if text in event)

    assert [count(f"malloc: {{ size = {size},") for size in (40001, 40002, 40003)] == [8, 8000, 8]
    assert count("size = 40004,") == 8000
    mutex = re.search(r"unlock: { mutex = (0x\w+)",
                      [event for event in events if "unlock" in event][-1]).group(1)
    assert count(f"pthread_mutex_lock_req: {{ mutex = {mutex} }}") >= 8000
    assert (count(f"pthread_mutex_lock_acq: {{ mutex = {mutex}, status = 0 }}") ==
            count(f"pthread_mutex_unlock: {{ mutex = {mutex}, status = 0 }}") ==
            count(f"pthread_mutex_lock_req: {{ mutex = {mutex} }}"))


def test_fork_with_threads(session, tmp_path):
    session.start([Rule("lttng_ust_*", code=[("field", "size"), ("int", 50001), "!="])],
                  contexts=["vpid"], flags=0, subbuf_bytes=65536, n_subbufs=64)
    run(session, PROGRAM, "fork", 100)
    events = events_of(session, tmp_path)
    pids = {size: [re.search(r"vpid = (\d+)", event).group(1) for event in events
                   if "libc:malloc" in event and f"size = {size}," in event]
            for size in (50002, 50003)}
    assert len(set(pids[50002])) == len(pids[50002]) == 100
    assert len(set(pids[50003])) == 1 and len(pids[50003]) == 100


def test_signals(session, tmp_path):
    session.start([Rule("lttng_ust_*")], subbuf_bytes=65536, n_subbufs=512)
    done = run(session, PROGRAM, "signals", 30000)
    events = between_marks(events_of(session, tmp_path))
    signals, allocations = map(int, done.stdout.split())
    assert signals > 10 and allocations >= 30000
    assert sum(1 for event in events if "trylock" in event) == signals
    assert sum(1 for event in events if "unlock" in event) == signals
    assert sum(1 for event in events if "size = 60001," in event) == allocations


# ---- functions ----

CALL = re.compile(r"lttng_ust_cyg_profile\w*:func_(\w+): \{ vpid = (\d+), vtid = (\d+) \}, "
                  r"\{ (?:addr = (0x\w+))?(?:, call_site = 0x(\w+))? ?\}")


def follow(events, stacks, count):
    """Calls and returns of each thread match; count: calls by function."""
    for event in events:
        what, pid, tid, addr, site = CALL.fullmatch(event).groups()
        stack = stacks.setdefault((pid, tid), [])
        if what == "entry":
            stack.append((addr, site))
            count[addr] = count.get(addr, 0) + 1
        else:
            entered = stack.pop()
            assert addr is None or entered == (addr, site)


@pytest.mark.parametrize("library", ["cyg-profile", "cyg-profile-fast"])
def test_functions(session, tmp_path, library):
    """Threads, a signal handler in the midst of them, a forked child."""
    session.start([Rule(f"lttng_ust_{library.replace('-', '_')}:*", levels=(12, 12))],
                  contexts=["vpid", "vtid"], subbuf_bytes=65536, n_subbufs=512)
    done = run(session, CALLS, 12, 300, libraries=preload(library))
    n_leaves, *functions = done.stdout.split()
    main, thread, tree, leaf = (hex(int(addr, 16)).upper().replace("X", "x") for addr in functions)
    stacks, count = {}, {}
    follow(events_of(session, tmp_path), stacks, count)
    assert count == {main: 1, thread: 4, tree: 4 * (2**12 - 1) + 7, leaf: int(n_leaves)}
    assert int(n_leaves) > 10
    assert not any(stacks.values())
    ring = session.rings()[0]
    fields = {event.name: [field[:5] for field in event.fields]
              for event in trace_of(ring, tmp_path)[1].events}
    addr, site = ("addr", 1, 8, 0, 16), ("call_site", 1, 8, 0, 16)
    assert fields == ({"func_entry": [addr], "func_exit": []} if "fast" in library else
                      {"func_entry": [addr, site], "func_exit": [addr, site]})


# ---- descriptors ----

@pytest.mark.parametrize("how", ["close", "closefrom", "close_range", "dup2", "dup3"])
@pytest.mark.parametrize("is_protected", [True, False])
def test_descriptors(session, tmp_path, how, is_protected):
    """A program that closes all descriptors is still found."""
    libraries = ALL if is_protected else preload("libc")
    program = subprocess.Popen(session.command("env", libraries, PROGRAM, "descriptors", how),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if not is_protected:
        assert program.stdout.readline() in ("ready\n", "")
        with pytest.raises(OSError):
            Control(program.pid)
        program.communicate()
        return
    assert program.stdout.readline() == "ready\n"
    session.start([Rule("lttng_ust_libc:*")])
    Control(program.pid).ask(session)
    program.stdin.close()
    assert program.wait(timeout=240) == 0
    assert len([event for event in events_of(session, tmp_path) if event.startswith(MARK)]) == 2


# ---- programs that know nothing of this ----

PYTHON = """
import json, re, subprocess, sys, threading
def work():
    for i in range(5):
        json.loads(json.dumps({str(n): [n] * 10 for n in range(200)}))
threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
print(subprocess.run(["sort", "-R"], input="a\\nb\\n" * 1000, text=True, capture_output=True,
                     check=True).stdout.count("a"), flush=True)
for thread in threads: thread.join()
import os
pid = os.fork()
if not pid:
    work()
    sys.exit(0)
print(os.waitpid(pid, 0)[1])
"""


@pytest.mark.parametrize("is_traced", [False, True])
@pytest.mark.parametrize("argv, output", [
    (["env", "PYTHONMALLOC=malloc", "python3", "-c", PYTHON], "1000\n0\n"),
    (["sh", "-c", "seq 200000 | sort --parallel=4 -n -r | tail -1"], "1\n"),
    (["bash", "-c", "exec 200>/dev/null; echo $(echo a | cat); (sleep 0 & wait)"], "a\n"),
    (["g++", "-x", "c++", "-fsyntax-only", "-include", "regex", "/dev/null"], ""),
], ids=["python3", "sort", "bash", "g++"])
def test_real_programs(session, tmp_path, argv, output, is_traced):
    if is_traced:
        session.start([Rule("*")], flags=OVERWRITE, contexts=["vpid", "callstack_user"])
    done = run(session, *argv)
    assert (done.returncode, done.stdout, done.stderr) == (0, output, "")
    assert bool(session.rings()) == is_traced


def test_with_the_recorder(tmp_path):
    out = str(tmp_path / "trace")
    done = subprocess.run([KYMO, "record", "--user", "lttng_ust_*", "-o", out, "--", "env", ALL,
                           PROGRAM, "libc"], capture_output=True, text=True, check=True, timeout=240)
    expected = done.stdout.splitlines()
    lines = subprocess.run(["babeltrace2", out], capture_output=True, text=True, check=True).stdout
    events = [re.sub(r".*?(lttng_ust_\w+:\w+: ).*?(\{[^}]*\})$", r"\1\2", line)
              for line in lines.splitlines()]
    # The recorder looks at the program at a time of its own.
    events = [event for event in events if not event.startswith("lttng_ust_statedump:")]
    assert between_marks(events) == [line for line in expected if line.startswith("lttng_ust_")]


def test_only_what_it_should():
    """A library takes the place of what it wraps, and of nothing else."""
    for name, wrapped in [
            ("libc", "malloc free calloc realloc memalign posix_memalign aligned_alloc valloc pvalloc"),
            ("pthread", "pthread_mutex_lock pthread_mutex_trylock pthread_mutex_timedlock "
                        "pthread_mutex_clocklock pthread_mutex_unlock"),
            ("cyg-profile", "__cyg_profile_func_enter __cyg_profile_func_exit"),
            ("cyg-profile-fast", "__cyg_profile_func_enter __cyg_profile_func_exit"),
            *([("mcount", "mcount _mcount __fentry__ __monstartup _mcleanup _Unwind_RaiseException _Unwind_Resume "
                          "_Unwind_Resume_or_Rethrow _Unwind_ForcedUnwind _Unwind_Backtrace __cxa_begin_catch pthread_exit")]
              if os.uname().machine == "x86_64" else []),
            ("fd", "close close_range closefrom dup2 dup3")]:
        library = preload(name).split("=")[1]
        out = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                             check=True).stdout
        assert {line.split()[-1] for line in out.splitlines()} == set(wrapped.split())
