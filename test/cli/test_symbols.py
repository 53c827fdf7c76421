# SPDX-License-Identifier: MIT
"""Functions and lines of addresses in traces, against babeltrace2's debug-info and /proc/kallsyms."""

import bisect
import json
import os
import re
import subprocess

from test_lttng_ust import lab  # noqa: F401 (a fixture)
from test_user import KYMO, TESTS, box, pytestmark  # noqa: F401


def run(*words, code=0):
    done = subprocess.run([KYMO, *words], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, (done.returncode, done.stderr)
    return done.stdout if code == 0 else done.stderr


def theirs(trace):
    """[(event, function+offset, file:line)] as babeltrace2 finds them."""
    done = subprocess.run(["babeltrace2", "--debug-info", trace], capture_output=True, text=True, check=True)
    found = []
    for line in done.stdout.splitlines():
        name = re.search(r"(\w+:\w+): \{", line)[1]
        match = re.search(r'debug_info = \{ bin = "(.*?)", func = "(.*?)", src = "(.*?)" \}', line)
        found.append((name, match[2], os.path.basename(match[3])))
    return found


def ours(trace):
    """The same as we do. babeltrace2 has no frames of inlined functions: the outermost function, the innermost line."""
    found = []
    for line in run("convert", "--symbols", "--to", "json", trace).splitlines():
        event = json.loads(line)
        name = event.get("symbols", {}).get("ip") or ""
        line = re.match(r"\S+ (\S+:\d+)", name)
        function = name.split(", inlined in ")[-1].split(" ")[0]
        if ".so" in function:  # a file without symbols: babeltrace2 tells of none
            function = ""
        found.append((event["event"], function, line[1] if line else ""))
    return found


def assert_same(trace, least):
    left, right = ours(trace), theirs(trace)
    assert len(left) == len(right)
    named = 0
    for mine, peer in zip(left, right):
        assert mine[0] == peer[0]
        if not mine[1] and not peer[1]:
            continue
        named += 1
        assert mine[1] == peer[1] and mine[2] == peer[2], (mine, peer)
    assert named >= least


def test_programs(box):
    done = box("kymo record -u '*' -c vpid,ip -o out -- $T/callers")
    assert_same(done.traces()[0], 7)
    text = run("print", "--symbols", os.path.join(done.cwd, "out"))
    assert re.search(r"callers:number: .* ip = 0x[0-9A-F]+ \(by_number\+0x[0-9a-f]+ callers\.c:\d+\) \}", text)


def test_programs_of_lttng(box, lab):
    trace = lab.session("symbols", contexts=("vpid", "ip"), more="lttng_ust_statedump:*")
    lab.run("./prog", 0, 5)
    lab.end("symbols")
    assert_same(trace, 5)


def test_library_that_comes_and_goes(box):
    done = box("kymo record -u 'plugin:*' -c vpid,ip -o out -- $T/modes dlopen $T/plugin.so 2")
    assert_same(done.traces()[0], 2)


def test_ring_of_many_programs(box):
    done = box("kymo record --buffers user -c vpid,ip -u '*' -o out -- sh -c \"$T/callers; $T/shop 2\"")
    events = [event for event in ours(os.path.join(done.cwd, "out")) if not event[0].startswith("lttng")]
    assert {"by_number", "by_text"} <= {event[1].split("+")[0] for event in events}
    assert all(event[2].startswith(("callers.c", "shop.c", "")) for event in events)


def kallsyms():
    table = {}
    for line in open("/proc/kallsyms"):
        address, kind, name = line.split()[:3]
        if kind in "tTwW":
            table.setdefault(int(address, 16), set()).add(name)
    return table


def test_kernel(box):
    done = box("kymo record -k 'syscall:openat,timer_start' -c callstack-kernel,pid -o out -- "
               "sh -c 'cat /etc/passwd >/dev/null; sleep 0.05; cat /etc/passwd >/dev/null'")
    trace = os.path.join(done.cwd, "out")
    table = kallsyms()
    starts = sorted(table)
    n = functions = 0
    for line in run("convert", "--symbols", "--to", "json", trace).splitlines():
        event = json.loads(line)
        context = event.get("context", {}) | event.get("event_context", {})
        if "callstack_kernel" not in context:
            continue
        addresses, names = context["callstack_kernel"], event["symbols"]["callstack_kernel"]
        assert len(addresses) == len(names)
        for i, (address, name) in enumerate(zip(addresses, names)):
            start = starts[bisect.bisect(starts, address - (i > 0)) - 1]
            function, offset = name.split("+")
            assert function in table[start] and int(offset, 16) == address - start, (hex(address), name)
            n += 1
        if event["event"] == "timer_start":
            address, name = event["fields"]["function"], event["symbols"]["function"]
            assert address in table and name.split("+") == [name.split("+")[0], "0x0"]
            assert name.split("+")[0] in table[address]
            functions += 1
    assert n > 20 and functions
    # Files have names only with the option.
    plain = run("print", trace)
    assert plain == run("print", "--no-symbols", trace) and "do_syscall_64+" not in plain
    with_names = run("print", "--symbols", trace)
    assert re.sub(r" \([\w.]+\+0x[0-9a-f]+\)", "", with_names) == plain != with_names


def test_user_stacks(box):
    """Of a process that runs when the recording begins, by the kernel's state dump."""
    done = box("""$T/shop 100000 1000 & shop=$!
kymo record -k 'syscall:clock_nanosleep' --maps -c callstack-user,pid -o out -d 300ms
kill $shop""")
    names = re.findall(r"\[\d+\] = 0x[0-9A-F]+ \(([^)]*)\)", run("print", "--symbols", os.path.join(done.cwd, "out")))
    assert any(re.match(r"\S*nanosleep\S*\+0x", name) for name in names), names[:20]


def test_usage(box):
    done = box("kymo record -u '*' -c vpid,ip -o out -- $T/callers")
    trace = done.traces()[0]
    assert "exclude each other" in run("print", "--symbols", "--no-symbols", trace, code=2)
    assert "--symbols needs --to text, json" in run("convert", "--symbols", "--to", "ctf2", "-o", trace + "-2", trace, code=2)
