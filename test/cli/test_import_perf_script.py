# SPDX-License-Identifier: MIT
"""The text of perf script, with samples and call stacks, and pages of systrace; perf judges."""

import collections
import json
import os
import re
import shutil
import subprocess

import pytest

from test_import import events_of, needs_root

FTRACE = os.path.join(os.path.dirname(__file__), "..", "fuzz", "corpus", "import", "log-ftrace")


def recorded(place, name, *options):
    """perf's recording of a short command, or a skip; perf sometimes aborts while it looks at processes that come and go."""
    if not shutil.which("perf"):
        pytest.skip("perf is not installed: tools/install-deps test")
    for _ in range(5):
        done = subprocess.run(["perf", "record", "-q", "-o", place / name, *options], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return place / name
    pytest.skip(f"perf cannot record here: {done.stderr[-300:]}")
    return None


def script(data, *options):
    done = subprocess.run(["perf", "script", "-i", data, *options], capture_output=True, text=True, check=True)
    path = data.with_suffix(".txt")
    path.write_text(done.stdout)
    return path


def named(function, file):
    """A function without a name is its file."""
    file = os.path.basename(file.removesuffix(" (deleted)"))
    return function if function != "[unknown]" else file if file.startswith("[") else f"[{file}]"


def stacks_of(text):
    """The call stacks of the text, folded, with the mark of flame graphs behind functions of the kernel: the judge's own reading."""
    found = []
    for paragraph in re.split(r"\n\s*\n", text):
        frames = [line for line in paragraph.splitlines() if line.startswith("\t")]
        names = [named(*re.fullmatch(r"(.*?)(?:\+0x[0-9a-f]+)? \(((?:[^()]|\([^()]*\))*)\)", line.split(None, 1)[1]).groups()) +
                 ("_[k]" if re.match(r"\tffff[0-9a-f]{12} ", line) else "") for line in frames]
        if names:
            found.append(";".join(reversed(names)))
    return found


@needs_root
def test_samples_with_call_stacks(kymo, tmp_path):
    data = recorded(tmp_path, "samples", "-g", "--sample-cpu", "-F", "997", "-e", "cpu-clock", "--", "sh", "-c", "ls -lR /usr/share/doc >/dev/null")
    for options in ((), ("-F", "+pid,-cpu")):
        path = script(data, *options)
        samples = events_of(kymo, path)
        text = path.read_text()
        assert samples and {event["event"] for event in samples} == {"sample"}
        assert len(samples) == len(re.findall(r"\bcpu-clock\S*:", text))
        assert {event["fields"]["event"].split(":")[0] for event in samples} == {"cpu-clock"}
        assert all(event["fields"]["period"] > 0 for event in samples)
        assert collections.Counter(event["fields"]["callstack"] for event in samples if event["fields"].get("callstack")) == \
            collections.Counter(stacks_of(text))
        # Of each sample: thread and time, as perf says them.
        heads = re.findall(r"(?m)^\s*(\S.*?)\s+(?:\d+/)?(\d+)\s+(?:\[\d+\]\s+)?(\d+)\.(\d{6}):", text)
        assert collections.Counter((event["context"]["procname"], event["context"]["tid"], event["timestamp_ns"] // 1000) for event in samples) == \
            collections.Counter((re.sub(r"^:-?\d+$", "", comm), int(tid), int(seconds) * 10**6 + int(us)) for comm, tid, seconds, us in heads)


@needs_root
def test_tracepoints_with_call_stacks_and_periods(kymo, tmp_path):
    data = recorded(tmp_path, "switches", "-a", "-g", "-e", "sched:sched_switch", "--", "sh", "-c", "sleep 0.05; ls >/dev/null")
    path = script(data)
    text = path.read_text()
    switches = [event for event in events_of(kymo, path) if event["event"] == "sched_switch"]
    assert len(switches) == len(re.findall(r"sched:sched_switch:", text)) > 0
    assert all(event["fields"]["callstack"].split(";")[-1] for event in switches if "callstack" in event["fields"])
    assert "CPU time" in kymo("report", "cpu", path).out
    # Without CPUs, with periods.
    path = script(data, "-F", "comm,tid,time,period,event,trace")
    again = [event for event in events_of(kymo, path) if event["event"] == "sched_switch"]
    assert [event["fields"]["next_tid"] for event in again] == \
        [int(pid) for pid in re.findall(r"next_pid=(\d+)", path.read_text())]


def test_lines_that_look_alike(kymo, tmp_path):
    """Names of threads with blanks, functions of C++ with brackets, one frame in the line, idle threads, frames without a head."""
    path = tmp_path / "script.txt"
    path.write_text("""# a comment
my thread 12 7/9 [003] 10.000001:     250000 cycles:ppp:\x20
\t    55d0 a::f(int, b (*)(c))+0x1f (/opt/my app (deleted))
\t    55d1 operator()+0x2 (/opt/my app)
\t    55d2 [unknown] ([vdso])
\t    55d3 [unknown] (/opt/my (x) lib/libx.so (deleted))
\t    55d4 [unknown] ([unknown])

:-1    -1 [000] 10.000002:          1   page-faults:  ffffffff822016e5 _raw_spin_lock+0x5 ([kernel.kallsyms])
\t    55d1 main+0x2 (/bin/x)
not a line of perf
""")
    found = events_of(kymo, path)
    assert [(event["event"], event["context"]["tid"], event["timestamp_ns"]) for event in found] == [
        ("sample", 9, 10_000_001_000), ("sample", -1, 10_000_002_000), ("line", 0, 10_000_002_000)]
    assert [event["context"]["procname"] for event in found] == ["my thread 12", "", ""]
    assert found[0]["fields"] == {"event": "cycles:ppp", "period": 250000, "callstack": "[unknown];[libx.so];[vdso];operator();a::f(int, b (*)(c))"}
    assert found[1]["fields"] == {"event": "page-faults", "period": 1, "callstack": "main"}


def test_names_of_threads_that_look_like_addresses(kymo, tmp_path):
    """perf puts blanks before a short name. Such a line is no frame of the event before it."""
    path = tmp_path / "script.txt"
    path.write_text("""             cc1  4711 [000]    12.000001: sched:sched_wakeup: dd:99 [120]<CPU:001>
\tffffffff8103d0ca ttwu ([kernel.kallsyms])

              dd    99 [001]    12.000002:       1000 cycles:  ffffffff822016e5 _raw_spin_lock+0x5 ([kernel.kallsyms])
             bc1    98 [001]    12.000003:       1000 cycles:  ffffffff822016e5 _raw_spin_lock+0x5 ([kernel.kallsyms])
""")
    found = events_of(kymo, path)
    assert [(event["context"]["tid"], event["fields"].get("callstack")) for event in found] == [
        (4711, "ttwu_[k]"), (99, "_raw_spin_lock_[k]"), (98, "_raw_spin_lock_[k]")]
    assert [event["context"]["procname"] for event in found] == ["cc1", "dd", "bc1"]


def test_headers_and_samples_without_periods(kymo, tmp_path):
    """perf script --header, and perf of years ago, which does not write the period."""
    path = tmp_path / "script.txt"
    header = "".join(f"# line {i} : of the header\n" for i in range(20))
    path.write_text(f"# ========\n# captured on: Sun Oct 25 23:31:43 2015\n{header}# ========\n#\n" """java  7 [001] 10.000001: cycles:\x20
\t    7f1e214c24d9 SpinPause (/opt/libjvm.so)

java  7 [001] 10.000002: sched:sched_wakeup: comm=x pid=8 prio=120 target_cpu=001
\tffffffff8103d0ca ttwu ([kernel.kallsyms])

""")
    first, second = events_of(kymo, path)
    assert (first["event"], first["fields"], first["packet"]) == ("sample", {"event": "cycles", "callstack": "SpinPause"}, {"cpu_id": 1})
    assert second["event"] == "sched_wakeup" and second["fields"]["tid"] == 8 and second["fields"]["callstack"] == "ttwu_[k]"


def test_samples_without_cpus_or_periods(kymo, tmp_path):
    """perf script -F comm,pid,tid,time,event,ip,sym: the first lines alone tell the format."""
    path = tmp_path / "script.txt"
    path.write_text("short  9/10  7.127353: cpu-clock:\x20\n\t  643 beta (/opt/short)\n\n" * 2)
    assert [(event["context"]["tid"], event["timestamp_ns"], event["fields"]["callstack"]) for event in events_of(kymo, path)] == [
        (10, 7_127_353_000, "beta")] * 2
    path.write_text("bash  7  3.000001: sched:sched_wakeup: comm=x pid=8 prio=120 target_cpu=001\n" * 2)
    assert [event["event"] for event in events_of(kymo, path)] == ["sched_wakeup"] * 2


@pytest.mark.parametrize("header", ["", "# ========\n# captured on: Thu Jul  7 20:48:39 2016\n# ========\n#\n"])
def test_samples_without_times(kymo, tmp_path, header):
    """perf of years ago writes no times unless one asks for them. The samples are there nevertheless."""
    path = tmp_path / "script.txt"
    heads = ["my node 31912 cpu-clock: ", "node 5/6 [003]  1001 cycles:ppp: ", "node 7 99 cycles:"]
    path.write_text(header + "".join(f"{head}\n\t  643 leaf+0x1f (/opt/node)\n\t  7f00 main (/opt/node)\n\n" for head in heads))
    assert kymo("print", path).err.endswith("3 events have no time that Kymo knows: they have the time of the event before\n")
    assert [(event["event"], event["context"]["tid"], event["packet"]["cpu_id"], event["fields"])
            for event in sorted(events_of(kymo, path), key=lambda event: event["context"]["tid"], reverse=True)] == [
        ("sample", 31912, 0, {"event": "cpu-clock", "callstack": "main;leaf"}),
        ("sample", 7, 0, {"event": "cycles", "period": 99, "callstack": "main;leaf"}),
        ("sample", 6, 3, {"event": "cycles:ppp", "period": 1001, "callstack": "main;leaf"})]


def test_text_that_is_no_sample(kymo, tmp_path):
    """A list below a line with a number and a colon is no call stack."""
    path = tmp_path / "text"
    path.write_text("These are 12 letters:\n    a first\n    b second\n")
    assert "no file of a known format" in kymo("print", path, code=1).err


def test_names_of_functions_that_are_long_or_have_semicolons(kymo, tmp_path):
    """perf joins the names of inlined functions by "->"; names of Java have the character that separates functions."""
    path = tmp_path / "script.txt"
    inlined = "->".join(f"Lcom/example/Servlet;::doService{i}" for i in range(40))
    path.write_text(f"java 7 [001] 10.000001:  100 cycles:\x20\n\t  643 {inlined} (/tmp/perf-7.map)\n\t  644 main (/bin/java)\n\n")
    assert len(inlined) > 1000
    assert events_of(kymo, path)[0]["fields"]["callstack"] == "main;" + inlined.replace(";", ":")


def test_pages_of_systrace(kymo, tmp_path):
    """ftrace's text in HTML, of today and of years ago, and what atrace writes: the same events."""
    with open(FTRACE, encoding="ascii") as file:
        text = file.read()
    (tmp_path / "plain").write_text(text)
    expected = events_of(kymo, tmp_path / "plain")
    assert expected
    head = "<!DOCTYPE html>\n<html>\n<head><title>Android System Trace</title>\n<script>var a = 'sched_switch: x=1';</script></head>\n"
    old = "".join(line + "\\n\\\n" for line in text.splitlines())
    for page in (f'{head}<script class="trace-data" type="application/text">\n{text}</script>\n<script>x</script></html>',
                 f'{head}<script>\nvar linuxPerfData = "\\\n{old}";\n</script></html>',
                 f"capturing trace... done\nTRACE:\n{text}"):
        (tmp_path / "page.html").write_text(page)
        found = [event for event in events_of(kymo, tmp_path / "page.html") if event["event"] != "line"]
        assert [(event["event"], event["timestamp_ns"], event["fields"]) for event in found] == \
            [(event["event"], event["timestamp_ns"], event["fields"]) for event in expected]
    (tmp_path / "page.html").write_text(f'{head}<script class="trace-data">\n vsync-336   [000] 50260.929925: 0: C|124|VSYNC|1\n</script>')
    assert [(event["event"], event["fields"]) for event in events_of(kymo, tmp_path / "page.html")] == [
        ("tracing_mark_write", {"message": "C|124|VSYNC|1"})]
    (tmp_path / "page.html").write_text(head + "</html>")
    assert "the page has no trace" in kymo("print", tmp_path / "page.html", code=1).err


def test_streams_that_are_no_cpus(kymo, tmp_path):
    """Only formats that know CPUs have cpu_id."""
    (tmp_path / "a.json").write_text('{"time":1700000000,"msg":"a"}\n')
    assert "cpu_id" not in kymo("print", tmp_path / "a.json").out
    assert "cpu_id = 1" in kymo("print", FTRACE).out
    assert kymo("convert", "-o", tmp_path / "out", tmp_path / "a.json").err == ""
    metadata = (tmp_path / "out" / "metadata").read_text()
    assert "cpu_id" not in metadata
    if shutil.which("babeltrace2"):
        done = subprocess.run(["babeltrace2", tmp_path / "out"], capture_output=True, text=True, check=True)
        assert 'msg = "a"' in done.stdout


def test_calls_by_number(kymo, tmp_path):
    """raw_syscalls in the text of perf script and of ftrace: the same events as in perf.data, which the report pairs; a number without a name stays."""
    path = tmp_path / "text"
    for front, system in (("            bash  4711 [001]    12.00000{}: ", "raw_syscalls:"), ("  bash-4711    [001] .....    12.00000{}: ", "")):
        events = ("sys_enter: NR 16 (1, 5401, 7ffd, 0, 0, 8)", "sys_exit: NR 16 = -25", "sys_enter: NR 9999 (1)", "sys_exit: NR 9999 = -38",
                  "sys_enter: NR -1 (0)", "sys_exit: NR 9 = 18446744073709551616")
        text = "".join(front.format(i) + system + event + "\n" for i, event in enumerate(events))
        path.write_text(text)
        assert [(event["event"], event["fields"]) for event in events_of(kymo, path)] == [
            ("syscall_entry_ioctl", {"arguments": "1, 5401, 7ffd, 0, 0, 8"}), ("syscall_exit_ioctl", {"ret": -25}),
            ("raw_syscalls_sys_enter", {"id": 9999, "arguments": "1"}), ("raw_syscalls_sys_exit", {"id": 9999, "ret": -38}),
            ("raw_syscalls_sys_enter", {"id": -1, "arguments": "0"}), ("raw_syscalls_sys_exit", {"message": "NR 9 = 18446744073709551616"})]
        report = kymo("report", "syscalls", path).out
        assert re.search(r"ioctl +1 +1 +1\.000 us.* ENOTTY 1", report)
        path.write_text(text + front.format(9) + system + "sys_enter")
        assert events_of(kymo, path)[-1]["event"] == "raw_syscalls_sys_enter"
        # Of another architecture, 16 is another call.
        path.write_text("# ========\n# arch : aarch64\n" + text)
        assert events_of(kymo, path)[0]["fields"] == {"id": 16, "arguments": "1, 5401, 7ffd, 0, 0, 8"}


@needs_root
def test_calls_by_number_are_those_of_perf_data(kymo, tmp_path):
    data = recorded(tmp_path, "calls", "-e", "raw_syscalls:*", "--", "ls", "/")
    expected = [(event["event"], event["context"]["tid"], str(event["fields"].get("ret"))) for event in events_of(kymo, data)
                if event["event"].startswith("syscall_")]
    found = [(event["event"], event["context"]["tid"], str(event["fields"].get("ret"))) for event in events_of(kymo, script(data))]
    assert expected and sorted(found) == sorted(expected)


def test_threads_and_states_of_switches(kymo, tmp_path):
    """A thread that perf does not know is -1; the states are the kernel's bits, among them that of a thread which lost its CPU while it could run."""
    path = tmp_path / "text"
    states = {"R": 0, "S": 1, "D": 2, "Z": 32, "I": 128, "R+": 256}
    for front, tid in ((":-1    -1 [001]", -1), ("x  -1/-1 [001]", -1), ("bash-1 [001]", 1), ("<...>-1    [001] d..2.", 1), ("bash 1 [001]", 1)):
        path.write_text("".join(f"{front}    12.00000{i}: sched_switch: prev_comm=a prev_pid=7 prev_prio=120 prev_state={state} ==> "
                                "next_comm=b next_pid=8 next_prio=120\n" for i, state in enumerate(states)))
        events = events_of(kymo, path)
        assert [event["context"]["tid"] for event in events] == [tid] * len(states)
        assert [event["fields"]["prev_state"] for event in events] == list(states.values())


@needs_root
def test_switches_are_those_of_perf_data(kymo, tmp_path):
    # The text has microseconds: switches of several CPUs may be in another order.
    data = recorded(tmp_path, "switches", "-a", "-e", "sched:sched_switch", "--", "sh", "-c", "while :; do :; done & sleep 0.2; kill $!")
    names = ("prev_tid", "next_tid", "prev_prio", "next_prio", "prev_state")
    expected = [[event["fields"][name] for name in names] for event in events_of(kymo, data) if event["event"] == "sched_switch"]
    found = [[event["fields"][name] for name in names] for event in events_of(kymo, script(data))]
    assert expected and sorted(found) == sorted(expected)


STACKS = """web server 7/9 [000] 10.000001:     1000 cpu-clock:pppH:\x20
\tffffffff81798299 vfs_read+0xb9 ([kernel.kallsyms])
\t    55d1 read+0x2 (/lib/libc.so.6)
\t    55d0 a::f(int)+0x1f (/opt/app)

web server 7/9 [001] 10.000002:     2000 cpu-clock:pppH:\x20
\t    55d9 a::f(int)+0x2f (/opt/app)

dd    4 [000] 10.000003:      500 cpu-clock:pppH:\x20

dd    4 [000] 10.000004: sched:sched_wakeup: comm=x pid=8 prio=120 target_cpu=001
\tffffffff8103d0ca ttwu ([kernel.kallsyms])

"""
FOLDED = {"web server;a::f(int);read;vfs_read_[k]": 1000, "web server;a::f(int)": 2000, "dd": 500}


def folded_of(text):
    return {stack: int(n) for stack, n in (line.rsplit(" ", 1) for line in text.splitlines())}


def test_flame_of_text(kymo, tmp_path):
    """The text has names and no addresses: report flame, SQL and the exports read these."""
    path = tmp_path / "script.txt"
    path.write_text(STACKS)
    assert folded_of(kymo("report", "flame", "--to", "folded", path).out) == FOLDED
    assert re.search(r" 85\.71 % +0\.00 % +3\.000 us +web server\b", kymo("report", "flame", "-t", "tree", path).out)
    wakeup = kymo("report", "flame", "--of", "sched_wakeup", "--to", "folded", path).out
    assert folded_of(wakeup) == {"dd;ttwu_[k]": 1}
    kymo("convert", "-o", tmp_path / "trace", path)
    kymo("convert", "--to", "folded", "-o", tmp_path / "folded", tmp_path / "trace")
    assert folded_of((tmp_path / "folded").read_text()) == FOLDED
    rows = json.loads(kymo("query", "--json", path, "SELECT sample.source, weight, kind, depth, stack.function FROM sample JOIN stack USING (stack) "
                           "WHERE sample.time = 10000001000 ORDER BY depth").out)
    assert [tuple(row.values()) for row in rows] == [
        ("cpu-clock:pppH", 1000, "kernel", 0, "vfs_read"), ("cpu-clock:pppH", 1000, "user", 1, "read"), ("cpu-clock:pppH", 1000, "user", 2, "a::f(int)")]
    # The text of that is read again.
    kymo("convert", "--to", "perf-script", "-o", tmp_path / "again.txt", path)
    assert folded_of(kymo("report", "flame", "--to", "folded", tmp_path / "again.txt").out) == FOLDED
    kymo("convert", "--to", "firefox", "-o", tmp_path / "profile", path)
    strings = json.loads((tmp_path / "profile").read_text())
    assert "a::f(int)" in json.dumps(strings) and "vfs_read" in json.dumps(strings)


def test_flame_of_text_without_periods(kymo, tmp_path):
    """Such a sample counts as one: no time is claimed."""
    path = tmp_path / "script.txt"
    path.write_text(re.sub(r": +\d+ cpu-clock", ": cpu-clock", STACKS).replace("dd    4 [000] 10.000003: cpu-clock:pppH:\x20\n\n", ""))
    report = kymo("report", "flame", "-t", "tree", path).out
    assert "Count" in report and "Time" not in report
    assert folded_of(kymo("report", "flame", "--to", "folded", path).out) == {stack: 1 for stack in FOLDED if stack != "dd"}


@needs_root
def test_flame_of_text_is_that_of_perf_data(kymo, tmp_path):
    data = recorded(tmp_path, "samples", "-g", "-F", "997", "-e", "cpu-clock", "--", "sh", "-c", "ls -lR /usr/share/doc >/dev/null")
    groups = []
    for path in (data, script(data)):
        found = collections.Counter()
        for stack, n in folded_of(kymo("report", "flame", "--to", "folded", path).out).items():
            frames = stack.split(";")
            found[frames[0], any(frame.endswith("_[k]") for frame in frames)] += n
        groups.append(found)
    assert groups[0] == groups[1] and groups[0].total() > 0


def test_names_of_threads(kymo, tmp_path):
    """The text names the thread of each event. Where ftrace does not know the name, the field is empty."""
    path = tmp_path / "text"
    path.write_text("".join(f"{front} [001] .....    12.00000{i}: sys_close(fd: {i})\n" for i, front in enumerate(
        ("  my app-7    ", "  kworker/0:1-8    ", "  <...>-9    ", "  bash-10    (     10)"))) +
        "  bash-10    (     10) [001] .....    12.000009: sched_process_exec: filename=/bin/env pid=10 old_pid=10\n")
    assert [event["context"] for event in events_of(kymo, path)] == [
        {"tid": 7, "procname": "my app"}, {"tid": 8, "procname": "kworker/0:1"}, {"tid": 9, "procname": ""}, {"tid": 10, "procname": "bash"},
        {"tid": 10, "procname": "bash"}]


def test_names_that_look_like_addresses_without_times(kymo, tmp_path):
    """A hexadecimal name in a line without a time begins a sample, and is no frame of the line before."""
    path = tmp_path / "script.txt"
    sample = "              dd  4712 cycles:\x20\n\t    55d1 {0}+0x2 (/bin/dd)\n\n"
    path.write_text(sample.format("f") + sample.format("main"))
    done = kymo("convert", "--to", "json", path)
    assert [(event["context"]["procname"], event["fields"]["callstack"]) for event in map(json.loads, done.out.splitlines())] == [("dd", "f"), ("dd", "main")]
    assert "2 events have no time" in done.err


def test_lines_that_are_no_frames(kymo, tmp_path):
    """Lists behind a line that is no event, and behind a program's mark; a damaged head; nothing is lost."""
    path = tmp_path / "script.txt"
    event = "            bash  4711 [001]    12.000001: sched:sched_waking: comm=a pid=5\n"
    lines = ["Total:", " 10 apples", " add milk", "perf 1 [4095] 1.000002: 5 cycles:\x20", "\t 7f00 g (/x)", "perf 99999999999 [001] 1.000002: 5 cycles:\x20",
             "perf 1 [001] 99999999999999.000002: 5 cycles:\x20"]
    path.write_text(event + "".join(line + "\n" for line in lines))
    found = events_of(kymo, path)
    assert [event["fields"].get("message") for event in found] == [None, *lines]
    path.write_text("  bash-7 [001] .....  12.000001: tracing_mark_write: a list:\n 10 apples\n bad things\n")
    assert [event["fields"]["message"] for event in events_of(kymo, path)] == ["a list:", " 10 apples", " bad things"]


def test_functions_of_the_kernel(kymo, tmp_path):
    """The address tells them, or the file where machines have other addresses. A stack that was followed wrongly has any address."""
    path = tmp_path / "script.txt"
    path.write_text("java  7 [001] 10.000001:  5 cycles:\x20\n\tffffffff8103d0ca a+0x1 ([ext4])\n\tc000000000012345 b+0x10 ([kernel.kallsyms])\n"
                    "\tc308d3ffb8d0f1a2 [unknown] ([unknown])\n\t          55d0 main+0x1 (/x)\n\n")
    assert [event["fields"]["callstack"] for event in events_of(kymo, path)] == ["main;[unknown];b_[k];a_[k]"]


def test_frames_with_carriage_returns(kymo, tmp_path):
    path = tmp_path / "script.txt"
    text = "java  7 [001] 10.000001:  5 cycles:\x20\n\t    55d0 f+0x1 (/x)\n\t    55d1 A::operator==(A const&)+0x2 (/x)\n\t    55d2 main+0x2 (/x)\n\n"
    for head in ("java  7 [001] 10.000001:  5 cycles: ", "java 7 cycles: "):
        path.write_text(text.replace("java  7 [001] 10.000001:  5 cycles: ", head).replace("\n", "\r\n"), newline="")
        assert [event["fields"]["callstack"] for event in events_of(kymo, path)] == ["main;A::operator==(A const&);f"]


def test_stacks_that_are_too_deep_or_too_large(kymo, tmp_path):
    """The innermost functions remain, and a warning counts the stacks."""
    path = tmp_path / "script.txt"
    for n, name in ((1500, "f{}"), (400, "g{}" + "x" * 3000)):
        path.write_text("java  7 [001] 10.000001:  5 cycles:\x20\n" + "".join(f"\t    55d0 {name.format(i)}+0x1 (/x)\n" for i in range(n)))
        done = kymo("convert", "--to", "json", path)
        stack = json.loads(done.out)["fields"]["callstack"].split(";")
        assert stack[::-1] == [name.format(i) for i in range(len(stack))] and 50 < len(stack) <= 1024
        assert "1 events have more than 255 KiB, 256 fields or 1024 functions" in done.err
