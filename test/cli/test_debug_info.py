# SPDX-License-Identifier: MIT
"""What babeltrace2 --debug-info finds of addresses in recordings of programs, ours and LTTng-UST's."""

import os
import re
import subprocess

import pytest

from test_lttng_ust import lab  # noqa: F401 (a fixture)
from test_user import KYMO, TESTS, box, pytestmark  # noqa: F401

DEBUG_INFO = re.compile(r'debug_info = \{ bin = "(.*?)", func = "(.*?)", src = "(.*?)" \}')


def debug_info(trace):
    """{event: {(bin, func), without offsets}} but for the state dump's."""
    done = subprocess.run(["babeltrace2", "--debug-info", trace], capture_output=True, text=True, check=True)
    found = {}
    for line in done.stdout.splitlines():
        name = re.search(r"(\w+:\w+): \{", line)[1]
        if not name.startswith("lttng_ust_"):
            values = [re.sub(r"[+@]0x[0-9a-f]+$", "+", value) for value in DEBUG_INFO.search(line).groups()]
            found.setdefault(name, set()).add(tuple(values[:2]))
    return found


def is_in(found, binary, function):
    """All of the event is in one function. A sanitizer's code around the event has no name of its own."""
    return found in ({(binary, function)}, {(binary, "")} if "-asan" in KYMO else None)


def dump_forms(trace):
    """{event of the state dump: its fields with their types in letters}."""
    done = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True)
    found = {}
    for line in done.stdout.splitlines():
        match = re.search(r"(lttng_ust_statedump:\w+): \{ cpu_id = \d+ \}, \{ (.*?) \}, (.*)", line)
        if match:
            fields = re.sub(r"\[ .* \]", "[]", match[3])
            fields = re.sub(r'".*?"', "text", re.sub(r"0x[0-9A-F]+", "hex", fields))
            context = re.findall(r"(\w+) =", match[2])
            found[match[1]] = context, re.sub(r"= \d+", "= number", fields)
    return found


def test_short_program(box):
    """However short it lives, what it had loaded is known, and before its first event."""
    done = box("kymo record -u '*' -c vpid,ip -o out -- $T/callers")
    forms = {"callers:number": "by_number", "callers:numbers": "by_numbers", "callers:text": "by_text",
             "callers:large_text": "by_large_text", "kymo:printf": "by_printf",
             "callers:span_begin": "by_span", "callers:span_end": "by_span"}
    assert debug_info(done.traces()[0]) == {
        event: {("callers+", f"{function}+")} for event, function in forms.items()}


def test_program_that_runs_already(box):
    """Its libraries are those of the moment when it joined."""
    done = box("""$T/shop 100000 1000 & shop=$!
wait_for 'kymo list --user | grep -q shop'
kymo record -u 'shop:started' -c vpid,ip -o out & recorder=$!
wait_for 'ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1'
sleeps $shop 5
kill -TERM $recorder; wait $recorder; kill $shop""")
    ((binary, function),) = debug_info(done.traces()[0])["shop:started"]
    # A sanitizer's code around the event has no name of its own.
    assert binary == "shop+" and (function.endswith("+") or "-asan" in KYMO)


def test_snapshot(box):
    done = box("kymo record --overwrite -u 'callers:*' -c vpid,ip -o out -- $T/callers")
    assert debug_info(done.traces()[0])["callers:text"] == {("callers+", "by_text+")}


def later(trace):
    """The dump's events that are not of the first look, and those of @trace's programs, in order, without numbers."""
    lines = subprocess.run(["babeltrace2", "--names=none", trace], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(lttng_ust_lib:(?:load|unload)|plugin:\w+|modes:\w+): ", lines)


def test_library_that_is_loaded_later(box):
    """Its loading stands before its first event; that it is unloaded behind its last one."""
    done = box("kymo record -u 'plugin:*' -c vpid,ip -o out -- $T/modes dlopen $T/plugin.so 2")
    trace = done.traces()[0]
    assert debug_info(trace)["plugin:work"] == {("plugin.so+", "plugin_work+")}
    # The program joins when there is an event of the library: its first load is in the state dump.
    assert later(trace) == ["plugin:work", "lttng_ust_lib:unload", "lttng_ust_lib:load", "plugin:work", "lttng_ust_lib:unload"]


def test_snapshot_of_a_library_that_came_later(box):
    done = box("kymo record --overwrite -u 'plugin:*' -c vpid,ip -o out -- $T/modes dlopen $T/plugin.so 1")
    trace = done.traces()[0]
    assert debug_info(trace)["plugin:work"] == {("plugin.so+", "plugin_work+")}


def test_library_without_events(box):
    """Nobody but the recorder looks, at the end."""
    done = box("""
$T/modes load-plain libcrypt.so.1 & modes=$!
wait_for 'kymo list --user | grep -q modes'
kymo record -u 'modes:*' -c vpid,ip -o out & recorder=$!
wait_for 'test -s out/ust/pid/*/statedump_0'
kill -USR1 $modes
wait_for 'grep -q libcrypt /proc/$modes/maps'
kill -TERM $recorder; wait $recorder
kill $modes
""")
    text = subprocess.run(["babeltrace2", done.traces()[0]], capture_output=True, text=True, check=True).stdout
    assert re.search(r"lttng_ust_lib:load: .*libcrypt", text) and text.count("statedump:start") == 1


# One ring of many programs (--buffers user): what each of them has loaded is known by its vpid.

SHARED = "ust/uid/0/64-bit"
RECORD = "kymo record --buffers user -c vpid,ip -u"


def shared(done, out="out"):
    return os.path.join(done.cwd, out, SHARED)


def dumped(trace):
    """{vpid: the names in its state dumps}"""
    lines = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True).stdout
    found = {}
    for vpid, name in re.findall(r'statedump:procname: .*\{ vpid = (\d+).*\{ procname = "(.*?)" \}', lines):
        found.setdefault(int(vpid), []).append(name)
    return found


def test_short_programs_side_by_side(box):
    done = box(RECORD + """ 'callers:*' -u shop:started -o out -- sh -c '
for i in $(seq 20); do $0/callers & $0/shop 1 > text & done; wait' $T""")
    found = debug_info(shared(done))
    assert found["callers:number"] == {("callers+", "by_number+")} and found["callers:text"] == {("callers+", "by_text+")}
    assert found["shop:started"] and all(binary == "shop+" for binary, _ in found["shop:started"])
    names = dumped(shared(done))
    assert len(names) == 40 and sorted(names.values()) == [["callers"]] * 20 + [["shop"]] * 20


def test_program_that_is_called_like_a_note(box):
    done = box("export LD_LIBRARY_PATH=$T/../../src/tracer; cp $T/callers here.state-1\n" + RECORD + """ 'callers:*' -o out -- ./here.state-1
kymo record -c vpid,ip -u 'callers:*' -o own -- ./here.state-1""")
    assert debug_info(shared(done))["callers:text"] == {("here.state-1+", "by_text+")}
    assert debug_info(done.traces("own")[0])["callers:text"] == {("here.state-1+", "by_text+")}


def test_forked_children_of_a_shared_ring(box):
    """fork() without exec: the child's events have a vpid of their own."""
    done = box(RECORD + " 'modes:*' -o out -- $T/modes fork")
    found = debug_info(shared(done))
    assert found["modes:parent"] == found["modes:child"] and is_in(found["modes:child"], "modes+", "mode_fork+")
    assert list(dumped(shared(done)).values()) == [["modes"]] * 2


def test_later_libraries_of_a_shared_ring(box):
    done = box(RECORD + " 'plugin:*' -u modes:once -o out -- sh -c '$0/modes dlopen $0/plugin.so 2 & $0/modes once & wait' $T")
    trace = shared(done)
    assert debug_info(trace)["plugin:work"] == {("plugin.so+", "plugin_work+")}
    found = [event for event in later(trace) if not event.startswith("modes")]
    assert found == ["lttng_ust_lib:load", "plugin:work", "lttng_ust_lib:unload"] * 2


def test_chunks_of_a_shared_ring(box):
    """Each chunk has the state of the programs that live, and of those that ended in its time."""
    done = box(RECORD + """ 'modes:*' -u 'callers:*' -o out & recorder=$!
wait_for session_is_there
$T/callers; $T/modes numbers 1000000 1000 & modes=$!
sleeps $modes 10
kymo rotate || exit 95
sleeps $modes 10
kymo rotate || exit 96
sleeps $modes 10
kill -TERM $recorder; wait $recorder || exit 94
kill $modes; wait $modes
ls -A /dev/shm/kymo-0/*/ 2>/dev/null | grep state && exit 97
exit 0
""")
    first, second = sorted(os.listdir(os.path.join(done.cwd, "out", "archives")))
    assert sorted(dumped(shared(done, f"out/archives/{first}")).values()) == [["callers"], ["modes"]]
    for out in (f"out/archives/{second}", "out"):
        assert list(dumped(shared(done, out)).values()) == [["modes"]]
        assert is_in(debug_info(shared(done, out))["modes:number"], "modes+", "mode_numbers+")


def test_snapshot_of_a_shared_ring(box):
    done = box(RECORD + """ 'callers:*' --overwrite -o out & recorder=$!
wait_for session_is_there
for i in 1 2 3; do $T/callers; done
kymo snapshot -o snap || exit 95
kill -TERM $recorder; wait $recorder || exit 94""")
    for out in ("snap", "out"):
        assert debug_info(shared(done, out))["callers:text"] == {("callers+", "by_text+")}
        assert list(dumped(shared(done, out)).values()) == [["callers"]] * 3


def test_notes_of_a_shared_ring_that_make_no_sense(box):
    """Any program of the user can write them."""
    done = box(RECORD + """ 'callers:*' -o out & recorder=$!
wait_for session_is_there
$T/callers
cd /dev/shm/kymo-0/*/
for i in 0 1 55 56 57 1000 300000; do head -c $i /dev/urandom > 1-2-x.state-$i; done
mkdir 1-2-d.state-1; ln -s /etc/passwd 1-2-l.state-1; mkfifo 1-2-f.state-1
python3 -c '
import struct, sys
for i, (kind, size, text) in enumerate([(1, 1 << 31, b"x"), (1, 64, b"zz-z r-xp 00000000 00:00 1 /x\\n" * 9), (2, 3, b"abc"), (7, 8, bytes(8))]):
    for flags in (0, 1):
        open(f"9-9-y.state-{i}{flags}", "wb").write(struct.pack("<QII16sQII", 0x454541544f4d594b, 99 + i, flags, b"y" * 16, 1 << 63, kind, size) + text)
'
for i in *.state-*; do mv $i new-$i; done
cd - > where
$T/callers
kill -TERM $recorder; wait $recorder || exit 94""")
    assert debug_info(shared(done))["callers:text"] == {("callers+", "by_text+")}
    assert list(dumped(shared(done)).values()).count(["callers"]) == 2


def test_as_lttngs(box, lab):
    """The same is found in LTTng's own traces, whose state dumps have the same form."""
    theirs = lab.session("debug", contexts=("vpid", "ip"), more="lttng_ust_statedump:*")
    lab.run("./prog", 0, 5)
    lab.end("debug")
    assert debug_info(theirs) == {"prov:tick": {("prog+", "main+")}}
    done = box("kymo record -u '*' -c vpid,ip -o out -- $T/callers")
    ours, theirs = dump_forms(done.traces()[0]), dump_forms(theirs)
    assert ours == theirs and len(ours) == 6
