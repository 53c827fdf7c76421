# SPDX-License-Identifier: MIT
"""kymo record --user: programs with libkymo-trace, in every way that they come and go.

Each test runs in a box: namespaces of its own for processes and mounts, with a /dev/shm of its own, so
that recordings of other tests see none of its programs.
"""

import glob
import json
import os
import re
import struct
import subprocess

import pytest

import same_events

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("KYMO_BUILD") or os.path.join(ROOT, "build")
KYMO = os.environ.get("KYMO_BIN") or os.path.join(BUILD, "src", "cli", "kymo")
TESTS = os.path.join(BUILD, "test", "tracer")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a private /dev/shm needs root")

PRELUDE = f"""
set -u
mount -t tmpfs tmpfs /dev/shm
PATH={os.path.dirname(KYMO)}:$PATH
T={TESTS}
CPU={min(os.sched_getaffinity(0))} OTHER_CPU={max(os.sched_getaffinity(0))} # the same if there is only one
wait_for() {{ for i in $(seq 8000); do eval "$1" && return 0; sleep 0.02; done; echo "never: $1" >&2; exit 99; }}
session_is_there() {{ ls /dev/shm/kymo-${{1:-0}}/*/session >/dev/null 2>&1; }}
# told FILE N: "rough told FILE ..." has told of N events at least; told_more FILE N: waits for so many more.
told() {{ [ -s $1 ] && [ $(od -An -tu8 $1) -ge $2 ]; }}
told_more() {{ wait_for "told $1 $(($(od -An -tu8 $1) + $2))"; }}
# sleeps PID N: waits until it has slept N more times.
slept() {{ sed -n 's/^voluntary_ctxt_switches:\\s*//p' /proc/$1/status; }}
sleeps() {{ wait_for "[ \\$(slept $1) -ge $(($(slept $1) + $2)) ]"; }}
# record_program PID OPTIONS...: until that program, which runs, has had some events.
record_program() {{
	local pid=$1 recorder; shift
	kymo record "$@" & recorder=$!
	wait_for 'ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1'
	sleeps $pid 5
	kill -TERM $recorder; wait $recorder || exit 97
}}
"""


class Done:
    def __init__(self, done, cwd):
        self.code, self.out, self.err, self.cwd = done.returncode, done.stdout, done.stderr, cwd

    def traces(self, out="out"):
        return sorted(glob.glob(os.path.join(self.cwd, out, "ust", "pid", "*")))


@pytest.fixture
def box(tmp_path):
    def run(script, code=0):
        done = subprocess.run(
            ["unshare", "-m", "-p", "-f", "--mount-proc", "--kill-child", "bash", "-c",
             PRELUDE + script],
            cwd=tmp_path, capture_output=True, text=True, timeout=240, errors="replace",
            env=dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC"))
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
        return Done(done, str(tmp_path))

    return run


def events(path, dump=False):
    """'name: {fields}' of all events, on which babeltrace2 and kymo agree; in the order of time."""
    peer = subprocess.run(["babeltrace2", path], capture_output=True, text=True, check=True)
    kymo = subprocess.run([KYMO, "print", path], capture_output=True, text=True, check=True)
    same_events.assert_same(kymo.stdout, peer.stdout)
    if "lost" not in peer.stderr and "discarded" not in peer.stderr:
        assert not kymo.stderr, kymo.stderr
    found = [re.sub(r".*?\([+?.\d]+\) \S+ (\S+) \{ cpu_id = \d+ \}, (.*)", r"\1 \2", line)
             for line in kymo.stdout.splitlines()]
    return [line for line in found if dump or not line.startswith(("lttng_ust_statedump:", "lttng_ust_lib:"))]


def names(path):
    return [line.split()[0].rstrip(":") for line in events(path)]


def nothing_left(box_script="ls -A /dev/shm"):
    """To end a script with: whatever is left fails it."""
    return f'\nleft=$({box_script}); [ -z "$left" ] || {{ echo "left: $left" >&2; exit 98; }}\n'


def test_short_program(box):
    done = box("kymo record --user 'shop:*' -o out -- $T/shop 2" + nothing_left())
    assert re.search(r"Recorded \d+ events, .*; 0 lost\.", done.err)
    (trace,) = done.traces()
    assert re.fullmatch(r"shop-\d+-\d{8}-\d{6}", os.path.basename(trace))
    assert names(trace).count("shop:order_placed") == 2
    assert all(name.startswith("shop:") for name in names(trace))
    assert "kymo:printf" not in open(os.path.join(trace, "metadata")).read()


def test_metadata_is_lttngs(box):
    done = box("kymo record --user '*' -o out -- $T/shop 1")
    text = open(os.path.join(done.traces()[0], "metadata")).read()
    for line in ('domain = "ust"', 'tracer_name = "lttng-ust"', 'tracer_buffering_scheme = "pid"',
                 'procname = "shop"', "architecture_bit_width = 64", "struct event_header_compact"):
        assert line in text
    assert re.search(r'name = "shop:forms";\s+id = \d+;\s+stream_id = 0;\s+loglevel = 4;', text)


def test_programs_that_run_already(box):
    done = box("""
$T/shop 1000000 1000 & shop=$!
wait_for 'kymo list --user | grep -q shop'
record_program $shop --user 'shop:depth' -o out
kill $shop
""" + nothing_left())
    assert set(names(done.traces()[0])) == {"shop:depth"}


def test_many_short_programs(box):
    done = box("""
kymo record --user 'shop:started' -o out -- sh -c 'for i in $(seq 60); do $0 5; done' $T/shop
""" + nothing_left())
    assert len(done.traces()) == 60
    assert sum(names(trace).count("shop:started") for trace in done.traces()[:10]) == 50
    # With what the state dump tells of those that live long enough.
    assert int(re.search(r"Recorded (\d+) events", done.err)[1]) >= 300 and "; 0 lost" in done.err


def test_fork_and_exec(box):
    done = box(f"""
kymo record --user 'modes:*' --user 'shop:started' -o out --context vpid -- $T/modes fork
kymo record --user 'modes:*' --user 'shop:started' -o exec -- $T/modes exec $T/shop 3
""" + nothing_left())
    found = [line for trace in done.traces() for line in events(trace)]
    assert sum("modes:child:" in line for line in found) == 1000
    assert sum("modes:parent:" in line for line in found) == 1000
    assert any("modes:clone_child" in line for line in found)
    execed = {os.path.basename(trace).split("-")[0]: names(trace) for trace in done.traces("exec")}
    assert execed == {"modes": ["modes:before_exec"], "shop": ["shop:started"] * 3}


def test_killed_program_loses_nothing(box):
    done = box("""
kymo record --user 'rough:told' -o out & recorder=$!
wait_for session_is_there
$T/rough told count 100000 & rough=$!
wait_for 'told count 5000'
kill -9 $rough; wait $rough
wait_for '! ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1'
kill -TERM $recorder; wait $recorder || exit 97
od -An -tu8 count
""" + nothing_left())
    found = names(done.traces()[0])
    # The program is killed between an event and its telling, or not.
    assert len(found) - int(done.out) in (0, 1) and set(found) == {"rough:told"}
    assert "; 0 lost." in done.err


def test_library_that_is_loaded_later(box):
    done = box("kymo record --user 'plugin:*' -o out -- $T/modes dlopen $T/plugin.so 5" +
               nothing_left())
    assert events(done.traces()[0]) == [f"plugin:work: {{ n = {i} }}" for i in range(5)]


def test_texts_that_are_cut(box):
    """They end with a mark, behind whole characters; and are counted."""
    done = box("kymo record --user '*' -o out -- $T/modes cut; kymo record --user '*' -o out2 -- $T/shop 3" + nothing_left())
    found = [re.search(r'"(.*)"', line)[1] for line in events(done.traces()[0])]
    assert found == ["\u00e9" * 510 + "...", "a" + "\u00e9" * 509 + "...", "7".zfill(1023), "0" * 1020 + "..."]
    warnings = [line for line in done.err.splitlines() if "longer than 1023 bytes" in line]
    assert len(warnings) == 1 and "warning: 3 texts of programs, such as modes (" in warnings[0]


def test_two_sessions_at_once(box):
    done = box("""
kymo record --user 'shop:depth' --buffer-size 64k -o a & a=$!
kymo record --user 'shop:*' --exclude 'shop:depth' --filter 'total_cents > 1000' -o b & b=$!
wait_for '[ $(ls /dev/shm/kymo-0/*/session 2>/dev/null | wc -l) = 2 ]'
$T/shop 4
kill -TERM $a $b; wait $a || exit 97; wait $b || exit 96
""" + nothing_left())
    assert names(done.traces("a")[0]) == ["shop:depth"] * 4
    # The end of a span belongs to its begin.
    assert set(names(done.traces("b")[0])) - {"shop:checkout_end"} == {"shop:order_placed"}


@pytest.mark.parametrize("options, wanted", [
    ("--loglevel WARNING..", {"shop:forms"}),
    ("--loglevel WARNING", {"shop:forms"}),
    ("--filter 'id == -7 && customer_name =~ \"Ada*\"'", {"shop:order_placed"}),
    ("--filter 'n in (1, 3) && !has(items) && $ctx.procname == \"shop\"'",
     {"shop:checkout_begin", "shop:word", "shop:depth", "shop:asked", "shop:plain"}),
    ("--exclude 'shop:*o*' --exclude '*inlined'", {"shop:depth", "shop:asked", "shop:started",
                                                    "shop:plain"}),
    ("--comm shop --filter 'byte > 199'", {"shop:inlined"}),
])
def test_selection(box, options, wanted):
    done = box(f"kymo record --user 'shop:*' {options} -o out -- $T/shop 1")
    assert set(names(done.traces()[0])) - {"shop:checkout_end"} == wanted


@pytest.mark.parametrize("expression", [
    'colour == "RED"', 'colour != "RED"', 'colour == "pale"', 'colour != "pale"', '"BLUE" == colour',
    'colour in ("BLUE", "pale")', 'colour =~ "*E*"', '!(colour == "RED") && colour < 9',
    'colour == "GREEN" || colour == 3', 'has(colour) && colour == "both"',
])
def test_labels_in_filters(box, expression):
    """While recording as when the whole is read."""
    done = box(f"""
kymo record --user 'modes:painted' -o all -- $T/modes colours
kymo record --user 'modes:painted' --filter '{expression}' -o some -- $T/modes colours
kymo print all --filter '{expression}' --count
""" + nothing_left())
    found = names(done.traces("some")[0]) if done.traces("some") else []
    assert len(found) == int(done.out.split()[-1]) and 0 < len(found) < 12


def test_unknown_label_in_a_filter(box):
    done = box("""
$T/modes numbers 100000 1000 & numbers=$!
wait_for 'kymo list --user | grep -q modes:painted'
kymo record --user 'modes:*' --filter 'n == 1 || colour == "REED"' -o out --duration 1s; echo $?
kymo record --user 'modes:*' --filter 'i > 1 && colour == "REED"' -o out --duration 1s; echo $?
kymo record --user 'modes:*' --filter 'colour in ("RED", "BLU")' -o out --duration 1s; echo $?
kymo record --user 'modes:*' --filter 'colour =~ "BLU*" && colour != "GREEN"' -o out --duration 100ms
kill $numbers
""")
    assert done.out.split() == ["2"] * 3
    assert "--filter:1:10: 'colour' has no label 'REED'; the nearest are: RED," in done.err
    assert "'colour' has no label 'BLU'; the nearest are: BLUE" in done.err


def test_comm_leaves_others_out(box):
    done = box("kymo record --user '*' --comm modes -o out -- sh -c '$0/shop 1; $0/modes fork' $T")
    assert {os.path.basename(trace).split("-")[0] for trace in done.traces()} == {"modes"}


def test_pid(box):
    done = box("""
$T/shop 1000000 1000 & a=$!
$T/shop 1000000 1000 & b=$!
wait_for '[ $(kymo list --user --json | grep -c procname) = 2 ]'
record_program $a --user 'shop:depth' --pid $a -o out
kill $a $b; echo $a
""")
    (trace,) = done.traces()
    assert os.path.basename(trace).split("-")[1] == done.out.strip()


def test_contexts(box):
    done = box("kymo record --user 'shop:depth' --context vpid,vtid,procname,cpu_id -o out -- "
               "$T/shop 1")
    (line,) = events(done.traces()[0])
    assert re.fullmatch(r'shop:depth: \{ vpid = (\d+), vtid = \1, procname = "shop", '
                        r'cpu_id = \d+ \}, \{ n = 3 \}', line)


def test_unknown_field_in_a_filter(box):
    done = box("""
$T/shop 1000000 1000 & shop=$!
wait_for 'kymo list --user | grep -q shop'
kymo record --user 'shop:*' --filter 'totl_cents > 1' -o out --duration 1s
echo $?; kill $shop; [ ! -e out ]
""" + nothing_left())
    assert "--filter:1:1: none of these events has a field 'totl_cents'; the nearest names are: " \
           "total_cents" in done.err
    assert done.out == "2\n"


def test_filter_is_checked_when_programs_come(box):
    done = box("kymo record --user 'shop:*' --filter 'totl_cents > 1' -o out -- $T/shop 1")
    assert "none of these events has a field 'totl_cents'" in done.err


def test_wrong_context_in_a_filter(box):
    """Programs have all of their contexts, whatever --context says: so the name is a mistake."""
    done = box("kymo record --user 'shop:*' --filter '$ctx.pid > 1' -o out -- $T/shop 1")
    assert "--filter:1:1: programs have no context field 'pid'; the nearest names are: vpid, vtid, ip" in done.err


def test_call_stacks_by_their_fields_name(box):
    """--context callstack-user, as LTTng spells it, or as the field is called."""
    for name in ("callstack-user", "callstack_user"):
        done = box(f"kymo record -u 'shop:*' -c {name} -o out -- $T/shop 1; kymo print out")
        assert "callstack_user = [" in done.out


@pytest.mark.parametrize("pattern, name, near", [
    # Some of these events have a ring buffer all the same: ends of spans. The others have none.
    ("shop:*", "nosuch", "none, n,"), ("shop:depth", "m", "n"),
    ("shop:order_placed", "totl_cents", "total_cents, id"),
])
def test_filter_that_no_event_can_pass(box, pattern, name, near):
    """A warning says so, and not that no such program ran, however short its life was."""
    done = box(f"kymo record -u '{pattern}' --filter '{name} > 3' -o out -- sh -c '$0 1; $0 1' $T/shop" +
               nothing_left())
    warning, = re.findall("^kymo: warning: --filter.*$", done.err, re.MULTILINE)
    assert f":1:1: none of these events has a field '{name}'; the nearest names are: {near}" in warning
    assert "no program with matching events ran" not in done.err
    assert done.traces() or "2 programs with matching events ran" in done.err


def test_filter_that_one_program_can_pass(box):
    done = box("kymo record -u '*' --filter 'total_cents > 0' -o out -- sh -c '$0/modes steps 3; $0/shop 2' $T" +
               nothing_left())
    assert "--filter" not in done.err and len(done.traces()) == 1


@pytest.mark.parametrize("args, message", [
    ("--filter 'a >'", "--filter:1:4: "),
    ("--filter '$event == \"x\"'", "$event is for reading"),
    ("--filter '$time > 5'", "is for reading"),
    ("--context nonsense", "unknown field 'nonsense'"),
    ("--loglevel LOUD", "unknown level 'LOUD'"),
    ("--pid 99999999", "there is no process"),
])
def test_mistakes(box, args, message):
    done = box(f"kymo record --user 'shop:*' {args} -o out -- true; echo $?; [ ! -e out ]" +
               nothing_left())
    assert message in done.err
    assert done.out.strip() in ("1", "2")


def test_options_of_programs_need_programs(box):
    done = box("kymo record --filter 'a > 1' -o out -- true", code=2)
    assert "for programs; add --user" in done.err


def test_losses_are_counted_by_cause(box):
    done = box("""
kymo record --user 'modes:*' --buffer-size 64k -o out & recorder=$!
wait_for session_is_there
kill -STOP $recorder
$T/modes fork
kill -CONT $recorder; kill -TERM $recorder; wait $recorder || exit 97
""" + nothing_left())
    found = sum(len(names(trace)) for trace in done.traces())
    lost = int(re.search(r"; (\d+) lost\.", done.err).group(1))
    assert found + lost == 2003
    if lost:
        assert "no free sub-buffer" in done.err
        babeltrace = subprocess.run(["babeltrace2", done.traces()[0]], capture_output=True,
                                    text=True, check=True).stderr
        assert "discarded" in babeltrace


def test_limit_on_the_size_of_files(box):
    """The summary counts the events until then, a reader reads them, and no file is left."""
    done = box("""
prlimit --fsize=300000 kymo record --user 'rough:*' -o out & recorder=$!
wait_for session_is_there
$T/rough told count 1000000000 & rough=$!
wait $recorder; [ $? = 1 ] || exit 97
kill -9 $rough
""" + nothing_left())
    assert "File too large; the limit on the size of files is reached: raise it (ulimit -f)" in done.err
    found = names(done.traces()[0])
    assert len(found) > 1000
    (events_told, size), = re.findall(r"^ +\d+ +(\d+) +\d+ +(\S+ [KM]iB)  rough$", done.err, re.MULTILINE)
    assert int(events_told) == len(found) and not size.startswith("0")


def test_state_dump(box):
    done = box("kymo record --user 'shop:started' -o out -- $T/shop 500 1000")
    dump = [line for line in events(done.traces()[0], dump=True) if "statedump" in line]
    assert dump[0].startswith("lttng_ust_statedump:start: ") and "statedump:end:" in dump[-1]
    shop = os.path.realpath(os.path.join(TESTS, "shop"))
    (binary,) = [line for line in dump if f'path = "{shop}"' in line]
    base, memsz = re.search(r"baddr = (0x[0-9A-F]+), memsz = (\d+),", binary).groups()
    assert "is_pic = 1, has_build_id = 1" in binary and int(memsz) >= 4096
    notes = subprocess.run(["readelf", "-n", shop], capture_output=True, text=True).stdout
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes).group(1)
    (line,) = [line for line in dump if "build_id:" in line and f"baddr = {base}," in line]
    assert "".join(f"{int(x, 16):02x}" for x in re.findall(r"\] = 0x([0-9A-F]+)", line)) == build_id
    assert any("libc.so.6" in line for line in dump)


@pytest.mark.parametrize("pattern, left", [
    ("lttng_ust_statedump:*", set()), ("*:b*", {"start", "end", "procname", "debug_link"}),
    ("*_id", {"start", "end", "procname", "debug_link", "bin_info"}),
])
def test_state_dump_that_is_excluded(box, pattern, left):
    """The summary counts what is left of it."""
    done = box(f"""
kymo record --user 'shop:started' --exclude '{pattern}' -o out & recorder=$!
wait_for session_is_there
$T/shop 1000000 1000 & shop=$!
wait_for 'ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1'; sleeps $shop 20
kill -TERM $recorder; wait $recorder || exit 97
kill $shop
""" + nothing_left())
    dump = [line for line in events(done.traces()[0], dump=True) if "statedump:" in line]
    assert {re.match(r"lttng_ust_statedump:(\w+):", line).group(1) for line in dump} | {"debug_link"} == \
        left | {"debug_link"}
    assert re.search(rf"^   state +{len(dump)}$", done.err, re.MULTILINE)


def test_kernel_and_programs_in_exact_order(box):
    """An event, a system call, an event ...: stamped by one clock, merged in that order."""
    done = box("kymo record --kernel 'syscall_entry_getppid' --user 'modes:step' "
               "-o out -- $T/modes steps 200; ls out")
    assert done.out.split() == ["kernel", "ust"]
    shown = subprocess.run([KYMO, "print", os.path.join(done.cwd, "out")], capture_output=True,
                           text=True, check=True).stdout.splitlines()
    calls = [re.search(r"getppid:.* tid = (\d+)", line) for line in shown]

    def kinds(tid):
        return ["call" if call else "event" for call, line in zip(calls, shown)
                if (call and call.group(1) == tid) or "modes:step" in line]

    # Its thread's number is another one there, and others of the machine call, too.
    tids = {call.group(1) for call in calls if call}
    assert ["event", "call"] * 200 + ["event"] in map(kinds, tids)


def test_recorder_that_is_killed(box):
    """What its rings hold is recovered; the next recorder says so, and cleans up after that."""
    done = box("""
kymo record --user 'shop:depth' --user 'rough:told' -o out & recorder=$!
wait_for session_is_there
$T/shop 50
$T/rough told count 1000000000 & rough=$!
wait_for 'told count 1000'
kill -9 $recorder; wait $recorder
told_more count 1000
kill -9 $rough; wait $rough
kymo record --user 'other:*' -o other -- true
kymo recover -o found /dev/shm/kymo-0/*
rm -r found
kymo recover --remove -o found /dev/shm/kymo-0
kymo record --user 'other:*' -o other2 -- true
""" + nothing_left())
    assert "kymo recover" in done.err
    (trace,) = [path for path in done.traces("found") if os.path.basename(path).startswith("rough-")]
    found = names(trace)
    assert len(found) >= 1000 and set(found) == {"rough:told"}


def packets_end(path):
    """Where the last whole packet of this stream ends, and where the first one does."""
    with open(path, "rb") as file:
        data = file.read()
    ends = [0]
    while ends[-1] + 88 <= len(data):
        ends.append(ends[-1] + struct.unpack_from("<Q", data, ends[-1] + 48)[0] // 8)
    return max(end for end in ends if end <= len(data)), ends[1]


def test_both_halves_of_a_torn_recording(box, kymo):
    """The packet that the killed recorder was writing is recovered whole; of both together, each event is there once."""
    done = box("""
kymo record --user 'rough:told' -o out & recorder=$!
wait_for session_is_there
$T/rough told count 1000000000 & rough=$!
wait_for 'test $(cat out/ust/pid/*/channel0_* | wc -c) -gt 300000'
kill -9 $recorder; wait $recorder
told_more count 1000
kill -9 $rough; wait $rough
kymo recover -o found /dev/shm/kymo-0
""")

    def numbers(*traces):
        out = kymo("print", *traces).out
        return [int(i) for i in re.findall(r"rough:told: .*?\bi = (\d+)", out)]

    (ours,), (found,) = done.traces("out"), done.traces("found")
    streams = [(os.path.join(ours, name), os.path.join(found, name))
               for name in os.listdir(found) if name.startswith("channel") and os.path.exists(os.path.join(ours, name))]
    assert streams
    # Wherever the kill struck: first without what it tore, then with what a write that was torn leaves.
    for mine, _ in streams:
        os.truncate(mine, packets_end(mine)[0])
    expected = sorted(numbers(ours) + numbers(found))
    for mine, other in streams:
        with open(mine, "ab") as file, open(other, "rb") as whole:
            file.write(whole.read(packets_end(other)[1] // 2))
    assert "packet is truncated" in kymo("print", "--no-output", ours, code=1).err
    assert numbers(ours, found) == numbers(found, ours) == expected
    assert len(set(expected)) == len(expected)


def test_list(box):
    done = box("""
$T/shop 1000000 1000 & shop=$!
wait_for 'kymo list --user | grep -q shop:forms'
kymo list --user --json >list.json
kymo list --user 'shop:order*' --fields
kill $shop
""")
    assert "shop:order_placed" in done.out and "total_cents" in done.out
    assert "shop:depth" not in done.out
    with open(os.path.join(done.cwd, "list.json")) as file:
        (program,) = json.load(file)["programs"]
    assert program["procname"] == "shop"
    forms = {event["name"]: event for event in program["events"]}["shop:forms"]
    assert forms["log_level"] == "WARNING" and forms["file"].endswith("shop.c") and forms["line"]
    assert {"name": "items", "type": "int16[4]", "filter_only": False} in forms["fields"]


def test_hostile_ring_files(box):
    """Whatever lies in the session's directory: it is named, left out, removed."""
    done = box("""
kymo record --user 'shop:depth' -o out & recorder=$!
wait_for session_is_there
cd /dev/shm/kymo-0/*/
head -c 100000 /dev/urandom >.x; mv .x 1-a-random.ring
: >.x; mv .x 1-a-empty.ring
ln -s /etc/passwd .x; mv .x 1-a-link.ring
mkfifo .x; mv .x 1-a-pipe.ring
mkdir .x; mv .x 1-a-dir.ring
truncate -s 1T .x; mv .x 1-a-large.ring
cd - >/dev/null
$T/shop 3
rmdir /dev/shm/kymo-0/*/1-a-dir.ring
kill -TERM $recorder; wait $recorder || exit 97
""" + nothing_left())
    assert names(done.traces()[0]) == ["shop:depth"] * 3
    assert len(re.findall(r"-dir.ring is not read", done.err)) == 1
    for name in ("random", "empty", "link", "pipe", "large"):
        assert f"1-a-{name}.ring is not read" in done.err


def test_other_users_programs(box):
    """Root records programs of users that have processes, before and after its beginning."""
    done = box("""
cp -r $T /dev/shm/t; cp -L $T/../../src/tracer/libkymo-trace.so.? /dev/shm/t
chmod -R a+rX /dev/shm/t
run() { setpriv --reuid=$1 --clear-groups env LD_LIBRARY_PATH=/dev/shm/t /dev/shm/t/shop "${@:2}"; }
run 1234 1000000 1000 &
wait_for 'shop=$(pgrep -u 1234 shop)'
kymo record --user 'shop:depth' --context vuid -o out & recorder=$!
wait_for 'session_is_there 1234'
run 1234 2
run 4321 2
wait_for "ls /dev/shm/kymo-1234/*/$shop-*.ring >/dev/null 2>&1"
sleeps $shop 5
kill -TERM $recorder; wait $recorder || exit 97
rm -r /dev/shm/t; kill $shop
""" + nothing_left())
    users = [set(re.findall(r" vuid = (\d+) ", "\n".join(events(trace)))) for trace in done.traces()]
    # The recorder may or may not see such a short program of a later user.
    assert [user for user in users if user - {"4321"}] == [{"1234"}] * 2 and len(users) <= 3


def test_program_under_seccomp_is_left_alone(box):
    done = box("""
$T/modes sandbox & modes=$!
wait_for 'kymo list --user | grep -q modes && grep -q "Seccomp:.*2" /proc/$modes/status'
kymo record --user 'modes:*' -o out --duration 200ms
kymo doctor | grep -A3 programs
kill $modes
""")
    assert "is left alone: it runs under seccomp" in done.err
    assert "seccomp" in done.out


def test_without_root(box):
    """A user records programs of their own, and nobody else's."""
    done = box("""
mkdir -m 777 /dev/shm/t; cp $T/shop $T/../../src/cli/kymo /dev/shm/t
cp -L $T/../../src/tracer/libkymo-trace.so.? /dev/shm/t; chmod 755 /dev/shm/t/*
export LD_LIBRARY_PATH=/dev/shm/t
as() { setpriv --reuid=1234 --clear-groups "$@"; }
cd /dev/shm/t
as ./kymo record --user 'shop:depth' -o out -- ./shop 2 || exit 97
as ./kymo record --user 'shop:depth' --uid 0 -o other -- ./shop 2; [ $? = 1 ] || exit 96
ls out/ust/pid >&2
cd /; rm -r /dev/shm/t
""" + nothing_left())
    assert "shop-" in done.err and "no permission to trace the programs of user 0" in done.err


def test_daemon_that_closed_all_its_files(box):
    """Its control file is found by the mapping."""
    done = box("""
$T/modes closed-loop & modes=$!
wait_for 'kymo list --user | grep -q closed_loop'
wait_for '! ls -l /proc/$modes/fd | grep -q kymo-control'
record_program $modes --user 'modes:closed_loop' -o out
kill $modes
""" + nothing_left())
    assert set(names(done.traces()[0])) == {"modes:closed_loop"}


def test_program_in_another_pid_namespace(box):
    """Its state is dumped; --pid means what we call it."""
    done = box("""
unshare -p -f --kill-child $T/shop 1000000 500 & outer=$!
wait_for 'kymo list --user | grep -q shop'
shop=$(pgrep -P $outer); echo $shop
record_program $shop --user 'shop:depth' -o all
record_program $shop --user 'shop:depth' --pid $shop -o one
record_program $shop --overwrite --user 'shop:depth' -o flight
kill -9 $shop; wait $outer
kymo record --user 'shop:depth' -o new -- unshare -p -f $T/shop 3 100000
""" + nothing_left())
    assert done.out.strip() != "1"
    for out in "all", "one", "flight", "new":
        (trace,) = done.traces(out)
        assert os.path.basename(trace).startswith("shop-1-")
        dump = events(trace, dump=True)
        assert any("bin_info" in line and "/shop" in line and "vpid = 1 }" in line for line in dump)
        assert any(line.startswith("shop:depth:") for line in dump)


@pytest.mark.parametrize("mode", ["", "--overwrite"])
def test_user_who_comes_later(box, mode):
    """Programs of users that had no processes when root's recording began; also the first one."""
    done = box(f"""
kymo record --user 'shop:depth' {mode} -o out & recorder=$!
wait_for session_is_there
cp -r $T/shop $(dirname $T)/../src/tracer/*.so* .; chmod -R a+rX . ..
setpriv --reuid 61234 --clear-groups env LD_LIBRARY_PATH=. ./shop 1000000 1000 & first=$!
wait_for 'session_is_there 61234'
setpriv --reuid 61234 --clear-groups env LD_LIBRARY_PATH=. ./shop 10
wait_for 'ls /dev/shm/kymo-61234/*/$first-*.ring >/dev/null 2>&1'
sleeps $first 20
kill $first
kill -TERM $recorder; wait $recorder || exit 97
""" + nothing_left())
    sizes = sorted(len(names(trace)) for trace in done.traces())
    assert len(sizes) == 2 and sizes[0] == 10 and sizes[1] > 10
