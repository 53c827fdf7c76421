# SPDX-License-Identifier: MIT
"""libkymo-trace: what programs that are instrumented record. How they live and die: test_tracer_life.py.

The recorder here is user_session.py, which speaks abi/control.h in the open; what programs record is
read by babeltrace2 and by kymo.
"""

import glob
import os
import random
import re
import subprocess

import pytest

from user_session import ROOT, TSC, Rule, Session, consume

BUILD = os.environ.get("KYMO_BUILD") or os.path.join(ROOT, "build")
KYMO = os.environ.get("KYMO_BIN") or os.path.join(BUILD, "src", "cli", "kymo")
TESTS = os.path.join(BUILD, "test", "tracer")
SHOP, MODES, PLUGIN = (os.path.join(TESTS, name) for name in ("shop", "modes", "plugin.so"))

# Programs must be built like a sanitized library; and sanitizers need what some tests take away.
SANITIZE = (["-fsanitize=thread", "-Wno-tsan"] if "-tsan" in BUILD else
            ["-fsanitize=address,undefined"] if "-asan" in BUILD else [])
bare = pytest.mark.skipif(bool(SANITIZE), reason="the sanitizer needs what this takes away")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a private /run/kymo needs root")

ROUND = """\
shop:checkout_begin: { n = 3 }
shop:started: { }
shop:order_placed: { id = -7, total_cents = 1234567890123, customer_name = "Ada Lovelac" }
shop:word: { n = 3 }
shop:forms: { id = 0xFFFFFFF9, port = 80, state = ( "paid: 100 % {|}" : container = 3 ), \
items = [ [0] = 0, [1] = -1, [2] = -2, [3] = -3 ], _first_length = 3, \
first = [ [0] = 0, [1] = -1, [2] = -2 ], _text_length = 3, text = "hel", _text_2_length = 2, \
text_2 = [ [0] = 0x68, [1] = 0x65 ], renamed = 04, _weights_length = 2, \
weights = [ [0] = 0.5, [1] = -1 ], n = "odd, n" }
shop:plain: { price = 1.5, rate = 2.25, text = "hello", pointer = 0x1234, is_gift = 1, n = 3, \
n_3 = 3, none = "", port = 0x50 }
shop:depth: { n = 3 }
shop:inlined: { byte = 200 }
kymo:printf: { msg = "n is 3%" }
kymo:printf: { msg = "plain" }
shop:asked: { n = 3 }
""".splitlines()
ROUND_CPP = """\
shop:templated: { value = 3 }
shop:templated: { value = 3 }
shop:cpp: { s = "string", c = 7, s_2 = "string!", size = 6 }
""".splitlines()
ROUND_END = ["shop:checkout_end: { }"]


@pytest.fixture
def session(tmp_path):
    session = Session(tmp_path / "run")
    yield session
    if session.fd is not None:
        session.die()


def trace_of(ring, tmp_path):
    out = tmp_path / f"trace-{os.path.basename(ring)}-{random.getrandbits(32)}"
    return str(out), consume(BUILD, ring, str(out))


def bt2(path):
    """Events as 'name: { fields }', without times and the packet's context; whole and in order."""
    done = subprocess.run(["babeltrace2", path], capture_output=True, text=True, check=True)
    lost = "WARNING: Tracer" in done.stderr
    assert lost or not done.stderr
    lines = done.stdout.splitlines()
    kymo = subprocess.run([KYMO, "print", path], capture_output=True, text=True, check=True)
    assert lost or not kymo.stderr
    assert kymo.stdout.splitlines() == lines, "kymo and babeltrace2 agree"
    return [re.sub(r".*?\([+?.\d]+\) \S+ (\S+) \{ cpu_id = \d+ \}, (.*)", r"\1 \2", line)
            for line in lines]


def recorded(session, tmp_path):
    """The events of a session's only program."""
    [ring] = session.rings()
    path, blob = trace_of(ring, tmp_path)
    return bt2(path), blob


def names(events):
    return [event.split(": ", 1)[0] for event in events]


# ---- building ----

COMPILERS = [("gcc", "c", "c11"), ("clang", "c", "c11"), ("g++", "c++", "c++17"),
             ("clang++", "c++", "c++17")]
KINDS = {"shared": ["-fPIE", "-pie"], "no-pie": ["-fno-pie", "-no-pie"], "static": ["-static"],
         "static-pie": ["-static-pie", "-fPIE"]}
if SANITIZE:
    COMPILERS = [compiler for compiler in COMPILERS if compiler[0].startswith("g")]
    KINDS = {"shared": KINDS["shared"]}


def build(tmp_path, compiler, language, standard, source, *options):
    out = str(tmp_path / f"{os.path.basename(source)}-{compiler}")
    library = os.path.join(BUILD, "src", "tracer")
    subprocess.run([compiler, "-x", language, f"-std={standard}", "-D_DEFAULT_SOURCE", "-Wall",
                    "-Wextra", "-Wpedantic", "-Werror", "-Wshadow", *SANITIZE, "-I",
                    os.path.join(ROOT, "include"), source, "-x", "none", *options, "-o", out, "-L",
                    library, "-lkymo-trace",
                    # glibc refuses a static program with a path for libraries.
                    *([] if "static" in str(options) else [f"-Wl,-rpath,{library}"])], check=True)
    return out


@pytest.mark.parametrize("optimise", ["-O0", "-O2", "-O3 -flto"])
@pytest.mark.parametrize("compiler", COMPILERS, ids=[c[0] for c in COMPILERS])
def test_every_field(session, tmp_path, compiler, optimise):
    if "flto" in optimise and compiler[0].startswith("clang"):
        optimise = "-O3"  # needs a linker with LLVM's plug-in
    program = build(tmp_path, *compiler, os.path.join(ROOT, "test", "tracer", "shop.c"),
                    *optimise.split())
    session.start([Rule("*")])
    session.run(program, 2)
    events, blob = recorded(session, tmp_path)
    cpp = ROUND_CPP if compiler[1] == "c++" else []
    assert events == 2 * (ROUND + cpp + ROUND_END)
    assert blob.procname == os.path.basename(program)[:15]
    assert blob.exe == program
    assert blob.session_uuid == session.uuid
    levels = {event.name: event.log_level for event in blob.events}
    assert (levels["forms"], levels["word"]) == (4, 13)


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_programs(session, tmp_path, kind):
    program = build(tmp_path, *COMPILERS[0], os.path.join(ROOT, "test", "tracer", "shop.c"), "-O2",
                    *KINDS[kind])
    session.start([Rule("shop:*")])
    session.run(program, 1)
    assert recorded(session, tmp_path)[0] == [
        event for event in ROUND + ROUND_END if event.startswith("shop:")]


def test_tsc_and_extended_headers(session, tmp_path):
    session.start([Rule("modes:many_*")], clock=TSC)
    session.run(MODES, "many", 100)
    events, blob = recorded(session, tmp_path)
    assert blob.clock == TSC and len(blob.events) == 50
    assert len(events) == 5000
    assert events[:50] == [f"modes:many_{i // 10}{i % 10}: {{ i = 0 }}" for i in range(50)]


def test_long_records(session, tmp_path):
    session.start([Rule("modes:*")])
    session.run(MODES, "long")
    events, blob = recorded(session, tmp_path)
    assert names(events) == ["modes:strings", "modes:sequences", "modes:nothing"]
    assert events[0].count("x" * 1020 + '..."') == 10 and "x" * 1021 not in events[0]
    assert "x" * 20000 + '"' in events[1] and "[999] = 0" in events[1] and "last = 1" in events[1]
    assert '_text_length = 0, text = ""' in events[1 + 1] or "_length = 0" in events[2]
    assert "[ [0] = 0, [1] = 0 ]" in events[2]


def test_strings_at_the_edge_of_memory(session, tmp_path):
    session.start([Rule("modes:edge")], subbuf_bytes=1 << 20)
    session.run(MODES, "edges")
    events, _ = recorded(session, tmp_path)
    wanted = []
    for length in (*range(41), *range(1010, 1040)):
        text = "".join(chr(ord("a") + i % 26) for i in range(length))
        text = text if length <= 1023 else text[:1020] + "..."
        wanted.append(f'modes:edge: {{ length = {length}, text = "{text}" }}')
        wanted.append(f'modes:edge: {{ length = {length}, text = "{text}", last = 7 }}')
    assert events == wanted


# ---- which events ----

@pytest.mark.parametrize("rules, wanted", [
    ([Rule("shop:word")], ["shop:word"]),
    ([Rule("*:w*d"), Rule("shop:depth")], ["shop:word", "shop:depth"]),
    ([Rule("shop:*", exclude=["*checkout*", "shop:f*", "shop:p*"])],
     ["shop:started", "shop:order_placed", "shop:word", "shop:depth", "shop:inlined", "shop:asked"]),
    ([Rule("*", levels=(0, 4))], ["shop:forms", "kymo:printf"]),
    ([Rule("*", levels=(3, 3))], ["kymo:printf"]),
    ([Rule("none")], None),
])
def test_rules(session, tmp_path, rules, wanted):
    session.start(rules)
    session.run(SHOP, 1)
    if wanted is None:
        assert not session.rings()
    else:
        assert names(recorded(session, tmp_path)[0]) == wanted


FIELD, INT, TEXT = (lambda name: ("field", name)), (lambda n: ("int", n)), (lambda t: ("text", t))


@pytest.mark.parametrize("pattern, code, matches", [
    ("order_placed", [FIELD("id"), INT(-7), "=="], True),
    ("order_placed", [FIELD("id"), INT(-7), "!="], False),
    ("order_placed", [FIELD("id"), INT(0), "<"], True),
    ("order_placed", [FIELD("total_cents"), INT(-1), ">"], True),
    ("order_placed", [FIELD("total_cents"), ("unsigned", 1234567890123), "<="], True),
    ("order_placed", [FIELD("id"), INT(-7), "<"], False),
    ("order_placed", [FIELD("id"), INT(-7), "<="], True),
    ("order_placed", [FIELD("id"), INT(-7), ">"], False),
    ("order_placed", [FIELD("id"), INT(-7), ">="], True),
    ("order_placed", [FIELD("id"), INT(-8), ">"], True),
    ("order_placed", [FIELD("id"), INT(-6), "!="], True),
    ("order_placed", [FIELD("id"), INT(-1 << 63), "<"], False),  # no number is
    ("order_placed", [FIELD("id"), INT(-1 << 63), ">="], True),  # all numbers are
    ("order_placed", [FIELD("id"), INT((1 << 63) - 1), ">"], False),
    ("order_placed", [FIELD("id"), INT((1 << 63) - 1), "<="], True),
    ("word", [FIELD("n"), ("unsigned", 0), "<"], False),
    ("word", [FIELD("n"), ("unsigned", 0), ">="], True),
    ("word", [FIELD("n"), ("unsigned", (1 << 64) - 1), ">"], False),
    ("word", [FIELD("n"), ("unsigned", (1 << 64) - 1), "<="], True),
    ("word", [FIELD("n"), ("unsigned", 1 << 63), "<"], True),
    ("word", [FIELD("n"), ("unsigned", 1 << 63), "!="], True),
    ("order_placed", [FIELD("id"), INT(-7), "==", ("and", 7), FIELD("total_cents"), INT(5), ">"],
     True),
    ("order_placed", [FIELD("id"), INT(-7), "==", ("and", 7), FIELD("total_cents"), INT(5), "<"],
     False),
    ("order_placed", [FIELD("id"), INT(1), "==", ("or", 7), FIELD("total_cents"), INT(5), ">"], True),
    ("order_placed", [FIELD("customer_name"), TEXT("Ada Lovelac"), "=="], True),
    ("order_placed", [FIELD("customer_name"), TEXT("Ada*"), "=~"], True),
    ("order_placed", [FIELD("customer_name"), TEXT("?da L*c"), "=~"], True),
    ("order_placed", [FIELD("customer_name"), TEXT("Bob*"), "=~"], False),
    ("order_placed", [FIELD("customer_name"), TEXT("B"), "<"], True),
    ("order_placed", [FIELD("missing"), INT(1), "!="], False),
    ("order_placed", [FIELD("missing"), INT(1), "==", "!"], True),
    ("order_placed", [("has", "id")], True),
    ("order_placed", [("has", "missing")], False),
    ("order_placed", [FIELD("id"), INT(7), "+", "!"], True),
    ("order_placed", [FIELD("id"), INT(0), "/"], False),
    ("order_placed", [FIELD("id"), INT(-2), "*", INT(14), "=="], True),
    ("order_placed", [FIELD("id"), INT(1), ">>", INT(-4), "=="], True),
    ("order_placed", [FIELD("id"), "~", INT(6), "=="], True),
    ("order_placed", [FIELD("id"), "neg", INT(7), "=="], True),
    ("order_placed", [FIELD("id"), TEXT("x"), "=="], False),
    ("forms", [FIELD("port"), INT(80), "=="], True),
    ("forms", [FIELD("state"), TEXT("paid*"), "=~"], True),
    ("forms", [FIELD("state"), TEXT("STATE_NEW"), "=="], False),
    ("forms", [FIELD("state"), TEXT("paid: 100 % {|}"), "=="], True),
    ("forms", [FIELD("state"), TEXT("paid: 100 % {|}"), "!="], False),
    ("forms", [FIELD("state"), TEXT("STATE_NEW"), "!="], True),
    ("forms", [FIELD("state"), TEXT("odd"), "=="], False),  # a range: not one number
    ("forms", [FIELD("state"), TEXT("nobody"), "!="], True),
    ("forms", [TEXT("paid: 100 % {|}"), FIELD("state"), "=="], True),
    ("forms", [FIELD("state"), INT(3), "=="], True),
    ("forms", [FIELD("text"), TEXT("hel"), "=="], True),
    ("forms", [FIELD("items"), INT(0), "=="], False),
    ("plain", [FIELD("price"), ("real", 1.25), ">"], True),
    ("plain", [FIELD("rate"), ("real", 2.25), "=="], True),
    ("plain", [FIELD("n_2"), INT(3), "=="], True),  # not recorded
    ("plain", [FIELD("is_gift")], True),
    ("plain", [FIELD("none"), TEXT(""), "=="], True),
    ("word", [("context", "procname"), TEXT("shop"), "=="], True),
    ("word", [("context", "vpid"), INT(1), ">"], True),
    ("word", [("context", "vuid"), INT(0), "!="], False),
    # Malformed: the event is not recorded, and the program says why.
    ("word", [FIELD("n"), "=="], None),
    ("word", [FIELD("n"), FIELD("n")], None),
    ("word", [99], None),
    ("word", [INT(1)] * 17 + ["+"] * 16, None),
])
def test_filters(session, tmp_path, pattern, code, matches):
    session.start([Rule("shop:started"), Rule(f"shop:{pattern}", code=code)])
    session.run(SHOP, 1)
    events, _ = recorded(session, tmp_path)
    assert names(events) == ["shop:started"] + [f"shop:{pattern}"] * bool(matches)


def test_rules_are_alternatives(session, tmp_path):
    """Any rule's filter will do; the end of a span goes with its begin."""
    session.start([Rule("shop:word", code=[FIELD("n"), INT(1), "=="]),
                   Rule("shop:word", code=[FIELD("n"), INT(3), "=="]),
                   Rule("shop:checkout*", code=[FIELD("n"), INT(1), "=="])])
    session.run(SHOP, 1)
    assert names(recorded(session, tmp_path)[0]) == ["shop:word"]


def test_sessions_side_by_side(tmp_path):
    """Several sessions with events, filters and contexts of their own."""
    sessions = [Session(tmp_path / "run", "a")]
    sessions[0].start([Rule("shop:word")])
    for i, rules in enumerate([[Rule("shop:*", code=[("has", "n")])], [Rule("kymo:*")]]):
        path = os.path.join(sessions[0].runtime, f"b{i}")
        os.mkdir(path, 0o700)
        other = object.__new__(Session)
        other.__dict__.update(sessions[0].__dict__, path=path, name=f"b{i}", fd=None)
        sessions.append(other.start(rules, contexts=["vpid"] if i else ()))
    sessions[0].run(SHOP, 2)
    found = [recorded(session, tmp_path)[0] for session in sessions]
    assert names(found[0]) == 2 * ["shop:word"]
    assert set(names(found[1])) == {"shop:checkout_begin", "shop:checkout_end", "shop:word",
                                    "shop:forms", "shop:plain", "shop:depth", "shop:asked"}
    assert all(re.match(r"kymo:printf: \{ vpid = \d+ \}, \{ msg", event) for event in found[2])


def test_contexts(session, tmp_path):
    session.start([Rule("modes:once")], contexts=[
        "vpid", "vtid", "procname", "ip", "cpu_id", "pthread_id", "vuid", "veuid", "vsuid", "vgid",
        "vegid", "vsgid", "cgroup_ns", "ipc_ns", "mnt_ns", "net_ns", "pid_ns", "user_ns", "uts_ns",
        "callstack_user", ("app", "web:number"), ("app", "web:tenant"), ("app", "not:there")])
    done = session.run(MODES, "once", "x", capture_output=True, text=True)
    assert done.stdout == "a context field is not available here\n"
    [event], blob = recorded(session, tmp_path)
    fields = dict(re.findall(r"(\w+) = (\"[^\"]*\"|0x\w+|-?\d+)", event))
    assert fields["vpid"] == fields["vtid"] == str(blob.pid)
    assert fields["procname"] == '"modes"' and fields["app_web_tenant"] == '"acme"'
    assert fields["app_web_number"] == "41" and fields["vuid"] == fields["vsgid"] == "0"
    assert int(fields["net_ns"]) == os.stat("/proc/self/ns/net").st_ino
    assert int(fields["mnt_ns"]) != os.stat("/proc/self/ns/mnt").st_ino
    assert int(fields["ip"], 16) > 0x1000 and int(fields["cpu_id"]) < os.cpu_count()
    assert fields["arg"] == '"x"'


# ---- what it is ----

@bare
def test_no_session_no_traces(session, tmp_path):
    """One file, no thread, no signal handler, no environment variable."""
    program = subprocess.Popen(session.command(MODES, "loop"), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    program.stdout.readline()
    with open(f"/proc/{program.pid}/status", encoding="ascii") as file:
        status = dict(line.split(":", 1) for line in file)
    assert status["Threads"].strip() == "1" and int(status["SigCgt"], 16) == 0
    fds = [os.readlink(link) for link in glob.glob(f"/proc/{program.pid}/fd/*")]
    assert sum("kymo" in link for link in fds) == 1
    program.stdin.close()
    program.wait()
    library = os.path.join(BUILD, "src", "tracer", "libkymo-trace.so")
    dynamic = subprocess.run(["readelf", "-d", "--dyn-syms", library], capture_output=True, text=True,
                             check=True).stdout
    assert re.findall(r"NEEDED.*\[(.*)\]", dynamic) == ["libc.so.6"]
    assert " getenv" not in dynamic and " malloc" not in dynamic
    stripped = tmp_path / "stripped.so"
    subprocess.run(["strip", "-o", stripped, library], check=True)
    if "asan" not in BUILD and "tsan" not in BUILD:
        assert os.path.getsize(stripped) <= 150 * 1024


# What is wrong: how, what the compiler has to say, and the same without the mistake.
NO_TYPE = "has a type that cannot be recorded"
MISTAKES = {
    "bad-name": ("KYMO_EVENT(shop, 2sold, n)", "2sold", "KYMO_EVENT(shop, sold2, n)"),
    "bad-provider": ("KYMO_EVENT(my - shop, sold, n)", "my - shop", "KYMO_EVENT(my_shop, sold, n)"),
    "counter-of-two": ("KYMO_COUNTER(shop, queue, n, n)", "a counter has one value",
                       "KYMO_COUNTER(shop, queue, n)"),
    "hex-float": ("KYMO_EVENT(shop, sold, KYMO_HEX(1.5))", NO_TYPE,
                  "KYMO_EVENT(shop, sold, KYMO_HEX(n))"),
    "many-fields": (f"KYMO_EVENT(shop, many{11 * ', n'})", "an event has at most 10 fields",
                    f"KYMO_EVENT(shop, many{10 * ', n'})"),
    "no-name": ("KYMO_EVENT(shop)", "an event has a provider and a name", "KYMO_EVENT(shop, sold)"),
    "sequence-of-structs": ("KYMO_EVENT(shop, sold, KYMO_SEQUENCE(&point, n))", NO_TYPE,
                            "KYMO_EVENT(shop, sold, KYMO_SEQUENCE(&point.x, n))"),
    "span-bad-type": ("KYMO_SPAN(shop, sold, point)", NO_TYPE, "KYMO_SPAN(shop, sold, n)"),
    "string-name": ('KYMO_EVENT(shop, "sold", n)',
                    "_is_no_event_name_use_letters_digits_and_underscores",
                    "KYMO_EVENT(shop, sold, n)"),
    "unknown-type": ("KYMO_EVENT(shop, moved, point)", NO_TYPE,
                     "KYMO_EVENT(shop, moved, point.x)"),
}
MISTAKE = """\
#include <stddef.h>
#include <kymo/trace.h>
struct point {{ int x, y; }};
void f(int n, struct point point);
void f(int n, struct point point)
{{
	(void)n;
	(void)point;
	{};
}}
"""


@pytest.mark.parametrize("compiler", COMPILERS, ids=[c[0] for c in COMPILERS])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_do_not_compile(tmp_path, mistake, compiler):
    def compiled(statement):
        source = tmp_path / "mistake.c"  # compilers show its lines
        source.write_text(MISTAKE.format(statement))
        return subprocess.run([command, "-x", language, f"-std={standard}", "-fsyntax-only", "-I",
                               os.path.join(ROOT, "include"), source], capture_output=True,
                              text=True, check=False)

    command, language, standard = compiler
    bad, wanted, good = MISTAKES[mistake]
    done = compiled(bad)
    assert done.returncode != 0
    assert wanted in done.stderr
    done = compiled(good)
    assert done.returncode == 0, "and without the mistake it compiles:\n" + done.stderr


@pytest.mark.parametrize("field", ["KYMO_AS(wide, (__int128)n)", "KYMO_HEX((unsigned __int128)n)"])
def test_integers_of_128_bits_do_not_compile(tmp_path, field):
    """Also in GNU's dialect of C++, where they are integers like others."""
    source = tmp_path / "wide.cc"
    source.write_text(MISTAKE.format(f"KYMO_EVENT(shop, sold, {field})"))
    done = subprocess.run(["g++", "-std=gnu++17", "-fsyntax-only", "-I", os.path.join(ROOT, "include"), source],
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0 and NO_TYPE in done.stderr
