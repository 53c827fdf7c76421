# SPDX-License-Identifier: MIT
"""Logs whose lines have fields by name: any order, any set, any JSON; journald's own tool judges."""

import gzip
import json
import os
import random
import re
import shutil
import subprocess

import pytest

from test_import import events_of


def test_fields_in_any_order_and_any_set(kymo, tmp_path):
    """journald writes the fields of JSON in the order of a hash table: the same fields are the same kind of event."""
    chance = random.Random(7)
    names = [f"field{i}" for i in range(9)]
    with open(tmp_path / "a.json", "w", encoding="ascii") as file:
        for i in range(66000):
            chance.shuffle(names)
            file.write('{"time":%d,%s}\n' % (1764181493 + i, ",".join(f'"{name}":"{name}{i}"' for name in names)))
    done = kymo("convert", "--to", "json", tmp_path / "a.json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert len(events) == 66000
    assert all(event["fields"] == {f"field{n}": f"field{n}{i}" for n in range(9)} for i, event in enumerate(events))
    # Any set of twenty fields: more sets than a trace has kinds of events.
    with open(tmp_path / "b.json", "w", encoding="ascii") as file:
        for i in range(9000):
            file.write('{"time":%d,%s}\n' % (1764181493 + i, ",".join(f'"f{n}":{n}' for n in range(20) if (i * 7919 + 1) >> n % 16 & 1)))
    events = events_of(kymo, tmp_path / "b.json")
    assert len(events) == 9000
    for i, event in enumerate(events):
        expected = {f"f{n}": n for n in range(20) if (i * 7919 + 1) >> n % 16 & 1}
        assert event["fields"] in (expected, {"fields": " ".join(f"{name}={n}" for name, n in expected.items())})


JSON_LINES = [
    r'{"a":"x\ny\"\/\u00e9","b":-1,"c":0.25,"d":true,"e":null,"f":1e3}', '{ "a" : "\u00fc" , "b":[1,2], "c":{} }',
    '{"a":1,"a":2}', '{"a":null,"a":2}', '{"a":12345678901234567890,"b":[1],"c":9007199254740993}', '{"a":18446744073709551615,"b":-9223372036854775808}',
    '{"a":12345678901234567890}', '{"a":"\xff"}', '{"a":"x\ty"}', "{}", '{"a":1} x', '{"a":01}',
    '{"a":-0}', '{"a":0.5,"b":"' + "x" * 300 + r'\tz"}', '{"a":tru}', '{"a":"' + r'\\' + '"}',
]


def test_lines_of_json_are_what_python_says(kymo, tmp_path):
    """The fast way for simple lines, and jansson for all others."""
    path = tmp_path / "a.json"
    path.write_bytes(b"".join(line.encode("latin-1" if "\xff" in line else "utf-8") + b"\n" for line in JSON_LINES))
    for line, event in zip(JSON_LINES, events_of(kymo, path, "--log-format", "json")):
        try:
            value = json.loads(line, strict=True)
            assert "\xff" not in line
        except (AssertionError, ValueError):
            assert event["event"] == "line", line
            continue
        expected = {name: json.dumps(one, separators=(",", ":")) if isinstance(one, (list, dict)) else one
                    for name, one in value.items() if one is not None}
        assert event["fields"] == expected, line


def test_times_as_programs_write_them(kymo, tmp_path):
    """Python's logging, Spark, glog (Kubernetes): the level and the text; in the last, the letter is the level."""
    for line, level, message in (("2012-07-02 10:22:40,672:DEBUG:foo bar", "DEBUG", "DEBUG:foo bar"),
                                 ("2016-09-28 04:30:31, Info     CBS    Loaded it", "Info", "Info     CBS    Loaded it"),
                                 ("17/06/09 20:10:40 INFO executor.Backend: Registered", "INFO", "INFO executor.Backend: Registered"),
                                 ("E0517 15:04:22.619632 1952 main.cc:253] Log every 3", "ERROR", "1952 main.cc:253] Log every 3")):
        (tmp_path / "app.log").write_text(f"{line}\n{line}\nnot such a line\n")
        events = events_of(kymo, tmp_path / "app.log")
        assert [event["event"] for event in events] == ["log", "log", "line"]
        assert events[0]["fields"] == {"level": level, "message": message}
    assert events[0]["timestamp_ns"] % 10**9 == 619632000
    (tmp_path / "app.log").write_text("E0517 15:04:22.619632\n17/06/09 20:10:40 no level\n")
    refusal = kymo("print", tmp_path / "app.log", code=1).err
    assert "no file of a known format" in refusal and "; --log-format says how the lines of a log are written" in refusal
    (tmp_path / "app.log").write_text("")
    assert "app.log: the file is empty, so it has no events" in kymo("print", tmp_path / "app.log", code=1).err


def log_fields(kymo, path, text, *options):
    """[(time in ns, fields)] of a log with this content, in the order of time."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [(event["timestamp_ns"], event["fields"]) for event in events_of(kymo, path, *options)]


def test_numbers_that_do_not_fit(kymo, tmp_path):
    """A number that JSON allows and no field holds is a text; the other fields of its line keep their types."""
    fields = log_fields(kymo, tmp_path / "a.json", '{"time":1764181493,"x":1e400,"n":5,"y":36893488147419103232,"z":[18446744073709551615]}\n'
                        '{"time":1764181494,"x":NaN,"n":-0.5}\n{"time":1764181495,"s":"a\\u0000b"}\n')
    assert fields == [(1764181493 * 10**9, {"x": "1e400", "n": 5, "y": "36893488147419103232", "z": '["18446744073709551615"]'}),
                      (1764181494 * 10**9, {"x": "NaN", "n": -0.5}), (1764181495 * 10**9, {"s": "a\\0b"})]


TIMES = {
    '{"timestamp":"1764181493123","n":1}': (1764181493123000000, {"n": 1}),
    '{"timestamp":"1764181493123.25","n":1}': (1764181493123250000, {"n": 1}),
    '{"t":17,"time":1764181493000000001}': (1764181493000000001, {"t": 17}),
    '{"time":"2026-11-26T18:24:53Z","t":17}': (1795717493000000000, {"t": 17}),
    '{"time":1764181493,"date":"today"}': (1764181493000000000, {"date": "today"}),
    '{"time":99999999999,"n":1}': (0, {"time": 99999999999, "n": 1}),
    '{"time":1764181493.000005,"o":{}}': (1764181493000005000, {"o": "{}"}),
    '{"time":1764181493.123456789,"n":1}': (1764181493123456789, {"n": 1}),
    '{"time":-5,"n":1}': (0, {"time": -5, "n": 1}),
    "ts=1764181493123 level=info n=1": (1764181493123000000, {"level": "info", "n": 1}),
    "ts=1764181493.5 level=info cached": (1764181493500000000, {"level": "info", "cached": 1}),
    r'ts=1764181493 msg="\x1b[1m\u00e9 \ud83d\ude00 \ud83d \"q\" c:\\d"': (1764181493000000000, {"msg": '\x1b[1m\u00e9 \U0001f600 \ufffd "q" c:\\d'}),
}


@pytest.mark.parametrize("line", TIMES)
def test_times_and_words_of_lines(kymo, tmp_path, line):
    """One field is the time, by its name and not by its place; the others stay."""
    assert log_fields(kymo, tmp_path / "a.log", line + "\n") == [TIMES[line]]


def test_byte_order_mark_and_zeros(kymo, tmp_path):
    """A mark in front of the first line, and zeros that a crash or a cut has left: all lines are read, the zeros are counted."""
    line = "Nov 26 18:00:02 host app: "
    (_, first), = log_fields(kymo, tmp_path / "a.log", b"\xef\xbb\xbf" + line.encode() + b"x\r\n")
    assert first["message"] == "x"
    (tmp_path / "b.log").write_bytes((line + "x\0y\n").encode() + b"\0" * 5000 + (line + "z\n").encode())
    with open(tmp_path / "b.log", "r+b") as file:
        file.truncate(1 << 40)
    done = kymo("print", "--log-format", "syslog", tmp_path / "b.log", timeout=20)
    assert len(done.out.splitlines()) == 2 and "zeros" in done.err and "1 MiB" not in done.err


def test_times_without_a_date_or_year(kymo, tmp_path):
    """They are before the file's last change, which is that of the compressed file, not of its unpacked content; February 29 is of a leap year."""
    midnight = 1764201600
    path = tmp_path / "a.strace"
    path.write_text('7 23:59:59.5 read(0, "", 1) = 0\n7 00:00:01.5 read(0, "", 1) = 0\n', encoding="ascii")
    os.utime(path, (midnight + 60, midnight + 60))
    done = kymo("convert", "--to", "json", path, env={"TZ": "UTC"})
    times = [json.loads(line)["timestamp_ns"] for line in done.out.splitlines()]
    assert times[0] == midnight * 10**9 - 500000000 and times[-1] == midnight * 10**9 + 1500000000
    path = tmp_path / "a.log.gz"
    path.write_bytes(gzip.compress(b"Nov 20 10:00:00 h app: x\nFeb 29 12:00:00 h app: y\n"))
    os.utime(path, (1669000000, 1669000000))
    done = kymo("convert", "--to", "json", path, env={"TZ": "UTC"})
    assert [json.loads(line)["timestamp_ns"] // 10**9 for line in done.out.splitlines()] == [1582977600, 1668938400]


def test_times_that_go_back_often(kymo, tmp_path):
    """Logs of many machines, one behind the other, have all their times."""
    lines = "".join(f'{{"time":{1764181493 + i}.{n:06d},"n":{n}}}\n' for n in range(150) for i in range(20))
    events = log_fields(kymo, tmp_path / "a.json", lines)
    assert sorted(events, key=lambda one: one[0]) == events
    assert {(ns, fields["n"]) for ns, fields in events} == {((1764181493 + i) * 10**9 + n * 1000, n) for n in range(150) for i in range(20)}


DMESG = "ACPI: BIOS-e820: [mem 0x0]"


@pytest.mark.parametrize("front", ["kern  :warn  : [   12.000001] ", "kern  :warn  : [Thu Nov 26 18:00:02 2026] ",
                                   "kern  :warn  : 2026-11-26T18:00:02,000001+00:00 ", "2026-11-26T18:00:02,000001+00:00 ", "<4>[   12.000001] "])
def test_forms_of_dmesg(kymo, tmp_path, front):
    """dmesg -x, -T -x, --time-format iso, -r: the kernel's log has no host."""
    (ns, fields), = log_fields(kymo, tmp_path / "a.log", front + DMESG + "\n")
    severity = {} if front[0] == "2" else {"facility": 0, "severity": "warning"}
    assert fields == {**severity, "message": DMESG} and ns > 0


def test_results_of_strace(kymo, tmp_path):
    """Errors that only the kernel sees, errors without a name, addresses above 2^63, what strace says besides, and what a resumed call has filled in; strace -n and -i."""
    call = "7 1795713893.00000{} [ 257] [00007f6ce3b4a1b4] f(1) = {}\n"
    results = ("? ERESTARTSYS (To be restarted)", "-1 (errno 530)", "-1 ENOTSUPP (Unknown)", "0xffffffffff600000", "-1 ENOENT (No)", "022", "?")
    text = "".join(call.format(i, result) for i, result in enumerate(results))
    text += '8 1795713893.05 openat(3</>, "a") = 4</a b> <0.000004>\n8 1795713893.06 poll([{fd=5}], 1) = 1 ([{fd=5, revents=POLLIN}])\n'
    text += '8 1795713893.1 read(3,  <unfinished ...>\n8 1795713893.2 <... read resumed>"ab", 9) = 2\n'
    found = [fields for _, fields in log_fields(kymo, tmp_path / "a.strace", text)]
    exits = [fields for fields in found if "ret" in fields]
    assert [one["ret"] for one in exits] == [-512, -530, -524, -0xa00000, -2, 0o22, 4, 1, 2] and found[6] == {"arguments": "1"}
    assert [one.get("result") for one in exits[6:]] == ["</a b>", "([{fd=5, revents=POLLIN}])", None]
    assert exits[-1] == {"ret": 2, "error": "", "arguments": '"ab", 9'}


def test_more_in_access_logs(kymo, tmp_path):
    line = '1.2.3.4 me ann [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.0" 200 23 "-" "A/5" "5.6.7.8" rt=0.005\n'
    (_, fields), = log_fields(kymo, tmp_path / "a", line)
    assert (fields["identity"], fields["agent"], fields["rest"]) == ("me", "A/5", '"5.6.7.8" rt=0.005')


def test_words_before_fields_of_ftrace(kymo, tmp_path):
    """Texts of programs are texts, and words that stand before the first field are kept."""
    front = "  a-7 [001] ..... 12.00000{}: {}\n"
    texts = ("print: f: hello a=5", "p_open: (do_sys_openat2+0x0/0x160) path=0x5 n=7", "irq: irq=12 name=x", "tracing_mark_write: S|1|a b=1")
    fields = log_fields(kymo, tmp_path / "a", "".join(front.format(i, text) for i, text in enumerate(texts)))
    assert [one for _, one in fields] == [{"message": "f: hello a=5"}, {"message": "(do_sys_openat2+0x0/0x160)", "path": "0x5", "n": 7},
                                          {"irq": 12, "name": "x"}, {"message": "S|1|a b=1"}]


def test_threads_of_strace_ff(kymo, tmp_path):
    """Each thread has a file with its number in the name, and not in the lines."""
    for tid in (4711, 4712):
        (tmp_path / f"s.{tid}").write_text("1795713893.000001 close(3) = 0 <0.000004>\n", encoding="ascii")
    done = kymo("convert", "--to", "json", tmp_path / "s.4711", tmp_path / "s.4712")
    assert sorted(json.loads(line)["context"]["tid"] for line in done.out.splitlines()) == [4711, 4711, 4712, 4712]


def test_entries_of_journald(kymo, tmp_path):
    """Long fields, in one line or behind their length; bytes that are no text in JSON; a length that lies."""
    head = "__CURSOR=s={0}\n__REALTIME_TIMESTAMP=179571389{0}123456\n"
    path = tmp_path / "j"
    path.write_bytes((head.format(1) + "MESSAGE\n").encode() + (700000).to_bytes(8, "little") + b"z" * 700000 + b"\n_PID=13\n\n" +
                     (head.format(2) + "MESSAGE=" + "y" * ((1 << 20) + 90) + "\n_PID=14\n\n" + head.format(3) + "MESSAGE\n").encode() +
                     b"\xff" * 8 + b"q\n")
    done = kymo("convert", "--to", "json", path, code=1)
    events = [json.loads(line)["fields"] for line in done.out.splitlines()]
    assert [event["__CURSOR"] for event in events] == ["s=1", "s=2", "s=3"] and "a field is cut" in done.err and "255 KiB" in done.err
    assert set(events[0]["MESSAGE"]) == {"z"} and set(events[1]["MESSAGE"]) == {"y"}
    line = {"__REALTIME_TIMESTAMP": "1795717494500001", "MESSAGE": list("\x1b[1mé".encode()), "X": ["a", "b"]}
    assert log_fields(kymo, tmp_path / "a.json", json.dumps(line) + "\n") == [(1795717494500001000, {"MESSAGE": "\x1b[1mé", "X": "a", "X_2": "b"})]


JOURNAL_REMOTE = "/lib/systemd/systemd-journal-remote"


@pytest.mark.parametrize("form", ["export", "json", "json-seq"])
def test_what_journalctl_writes(kymo, tmp_path, form):
    """A journal of real files: its export and its JSON are read, and have the messages and fields that journalctl shows."""
    if not os.path.exists(JOURNAL_REMOTE) or not shutil.which("journalctl"):
        pytest.skip("systemd-journal-remote is not installed: tools/install-deps test")
    with open(tmp_path / "made", "w", encoding="utf-8") as file:
        for i in range(300):
            file.write(f"__CURSOR=s=1;i={i:x}\n__REALTIME_TIMESTAMP={1_764_181_493_000_000 + i * 137}\n__MONOTONIC_TIMESTAMP={i * 137}\n"
                       f"_BOOT_ID={'1' * 32}\nPRIORITY={i % 8}\nSYSLOG_IDENTIFIER=app{i % 7}\n_PID={1000 + i % 50}\n_HOSTNAME=höst\n"
                       f"MESSAGE=request {i} \"took\" {i % 991} µs\n\n")
    journal = tmp_path / "one.journal"
    done = subprocess.run([JOURNAL_REMOTE, "-o", journal, tmp_path / "made"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"systemd-journal-remote cannot write a journal here: {done.stderr[-300:]}")

    def say(how):
        return subprocess.run(["journalctl", "--no-pager", "-o", how, "--file", journal], capture_output=True, check=True).stdout

    (tmp_path / "j").write_bytes(say(form))
    told = [json.loads(line) for line in say("json").splitlines()]
    events = [json.loads(line) for line in kymo("convert", "--to", "json", tmp_path / "j").out.splitlines()]
    assert [(event["timestamp_ns"], event["fields"]["MESSAGE"]) for event in events] == \
        [(int(line["__REALTIME_TIMESTAMP"]) * 1000, line["MESSAGE"]) for line in told] and len(told) == 300
    # The types are those of the format for export.
    (tmp_path / "export").write_bytes(say("export"))
    assert [event["fields"] for event in events] == [event["fields"] for event in events_of(kymo, tmp_path / "export")]
    assert isinstance(events[0]["fields"]["_PID"], int) and isinstance(events[0]["fields"]["_BOOT_ID"], str)
    assert all({name: str(event["fields"].get(name)) for name in line if not name.startswith("__")} ==
               {name: value for name, value in line.items() if not name.startswith("__")} for event, line in zip(events, told))


def test_relative_times_of_strace(kymo, tmp_path):
    """strace -r: each time is the distance to the line before, of any thread; with -t, both times are there."""
    lines = ('     0.000000 execve("/bin/x", ["x"], 0x7ffd /* 3 vars */) = 0', "     0.000100 wait4(-1,  <unfinished ...>", "[pid     8]      1.000200 close(1) = 0",
             "     0.000003 <... wait4 resumed>NULL, 0, NULL) = 8", "     0.000001 what no call is", "     0.000006 --- SIGCHLD {si_signo=SIGCHLD} ---",
             "     0.000010 exit_group(0)     = ?", "     0.000020 +++ exited with 0 +++")
    ends = (0, 100, 1000300, 1000303, 1000304, 1000310, 1000320, 1000340)
    for front in ("", "7   "):
        text = "".join((front if line[0] == " " else "") + line + "\n" for line in lines)
        found = log_fields(kymo, tmp_path / "a.strace", text)
        assert sorted({ns for ns, _ in found}) == sorted({us * 1000 for us in ends} - {1000304000}) and found[-1][1]["message"] == "+++ exited with 0 +++"
    for front, times in (("1795713893.000001 (+     0.000000) ", 1795713893000001000), ("12:00:00.000001 (+     0.000000) ", None)):
        found = log_fields(kymo, tmp_path / "a.strace", f"{front}close(3) = 0 <0.000004>\n")
        assert [fields for _, fields in found] == [{"arguments": "3"}, {"ret": 0, "error": ""}]
        assert found[1][0] - found[0][0] == 4000 and (not times or found[0][0] == times)


@pytest.mark.parametrize("options", [(), ("-f",), ("-f", "-tt")])
def test_what_strace_r_writes(kymo, tmp_path, options):
    if not shutil.which("strace"):
        pytest.skip("strace is not installed: tools/install-deps test")
    path = tmp_path / "s"
    done = subprocess.run(["strace", "-r", "-T", *options, "-o", path, "sh", "-c", "sleep 0.2 & wait"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"strace cannot run here: {done.stderr[-300:]}")
    events = events_of(kymo, path)
    assert events[0]["event"] == "syscall_entry_execve" and "line" not in {event["event"] for event in events}
    assert 0.2e9 < events[-1]["timestamp_ns"] - events[0]["timestamp_ns"] < 60e9
    assert "-tt" in options or events[0]["timestamp_ns"] == 0


def test_calls_of_strace_without_durations(kymo, tmp_path):
    """Without -T, only a call that other lines interrupt has a duration. A call without one has its result in the entry, and is not measured."""
    path = tmp_path / "a.strace"
    path.write_text('8 1795713893.1 openat(3, "a") = -1 ENOENT (No such file or directory)\n8 1795713893.2 read(3,  <unfinished ...>\n'
                    '9 1795713893.3 close(1) = 0\n8 1795713893.4 <... read resumed>"ab", 9) = 2\n8 1795713893.5 exit_group(0) = ?\n')
    done = kymo("convert", "--to", "json", path)
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [(event["event"], event["fields"]) for event in events] == [
        ("syscall_entry_openat", {"arguments": '3, "a"', "ret": -2, "error": "ENOENT"}), ("syscall_entry_read", {"arguments": "3,"}),
        ("syscall_entry_close", {"arguments": "1", "ret": 0, "error": ""}), ("syscall_exit_read", {"ret": 2, "error": "", "arguments": '"ab", 9'}),
        ("syscall_entry_exit_group", {"arguments": "0"})]
    assert "2 system calls have no duration, which strace -T would write" in done.err
    report = kymo("report", "syscalls", "--wide", path).out
    assert re.search(r"read +1 +0 +200\.0 ms", report) and re.search(r"openat +0 +0 .*1\n", report)


def test_zones_of_programs(kymo, tmp_path):
    """PostgreSQL writes the zone behind the time, and then a number in brackets, which is no host. Names of other zones are text."""
    path = tmp_path / "postgresql.log"
    for zone, message in ((" UTC", "[55] LOG:  ready"), (" GMT", "[55] LOG:  ready"), ("Z", "[55] LOG:  ready"), ("", "CET [55] LOG:  ready"),
                          ("", "Zone: left"), ("", "UTCx left")):
        path.write_text(f"2026-11-28 02:02:30.123{zone} {message}\n" * 2)
        done = kymo("convert", "--to", "json", path, env={"TZ": "UTC"})
        assert "not of the format" not in done.err
        events = [json.loads(line) for line in done.out.splitlines()]
        assert [(event["timestamp_ns"], event["fields"]) for event in events] == [(1795831350123000000, {"message": message})] * 2, message


@pytest.mark.parametrize("options, says", [
    (("--log-format", "foo"), ("--log-format: no format has the name 'foo'; formats are chrome, ", ", logfmt, and regular expressions")),
    (("--log-format", "foo.*"), ("--log-format: the expression has no named groups",)),
    (("--log-format", "(?<time>.*)", "--log-time", "%Y %Q"), ("--log-time:1:4: '%Q' is no part of a time",)),
    (("--log-format", "json", "--log-time", "%Y %"), ("--log-time:1:4: '%' is no part of a time",)),
    (("--log-format", "syslog", "--log-time", "%Y"), ("--log-time: the format 'syslog' has its own times",)),
    (("--log-time", "%Y"), ("--log-time needs --log-format",))])
def test_options_that_make_no_sense(kymo, tmp_path, options, says):
    (tmp_path / "a.log").write_text("2026 a\n")
    refusal = kymo("print", *options, tmp_path / "a.log", code=2).err
    assert all(text in refusal for text in says)


def test_every_part_of_a_time(kymo, tmp_path):
    """A format with all conversions is no error, and they are read."""
    line = "28% 26 11 Nov November Nov 28 28 332 02 02 AM 02:02:30 30 2026-11-28 +0000 UTC .5 x"
    form = "28%% %y %m %b %B %h %d %e %j %H %I %p %T %S %F %z %Z .%f"
    (_, fields), = log_fields(kymo, tmp_path / "a.log", line + "\n", "--log-format", "^(?<time>.*) (?<rest>x)$", "--log-time", form)
    assert fields == {"rest": "x"}


def test_lines_before_the_first_event(kymo, tmp_path):
    """They have its time, and stand before it: the trace does not begin in 1970."""
    text = "-- Logs begin at Mon --\n\nanother\n2026-11-26T10:00:00Z host app[1]: first\n  more\n2026-11-26T10:00:05Z host app[1]: second\n"
    (tmp_path / "a.log").write_text(text)
    events = events_of(kymo, tmp_path / "a.log")
    assert [event["fields"]["message"] for event in events] == ["-- Logs begin at Mon --", "another", "first", "  more", "second"]
    begin = events[2]["timestamp_ns"]
    assert [event["timestamp_ns"] - begin for event in events] == [0, 0, 0, 0, 5 * 10**9] and begin > 10**18
    assert "3 of 6 lines are not of the format" in kymo("print", tmp_path / "a.log").err
    # Without an event, the lines are there nevertheless; so are more lines than are kept.
    (tmp_path / "a.log").write_text("one\ntwo\n")
    assert [event["timestamp_ns"] for event in events_of(kymo, tmp_path / "a.log", "--log-format", "syslog")] == [0, 0]
    (tmp_path / "a.log").write_text("".join(f"{number:0999}\n" for number in range(1500)) + text)
    events = events_of(kymo, tmp_path / "a.log", "--log-format", "syslog")
    assert [int(event["fields"]["message"]) for event in events[:1500]] == list(range(1500)) and len(events) == 1505


def test_console_of_a_machine(kymo, tmp_path):
    """What the firmware says stands before the kernel's first line, which may be far down."""
    firmware = "".join(f"U-Boot line {number}\n" for number in range(2000))
    (tmp_path / "console").write_text(firmware + "[    0.000000] Linux version 6.1\n[    1.500000] usb 1-1: new\nlogin: \n")
    events = events_of(kymo, tmp_path / "console")
    assert len(events) == 2003 and [(event["event"], event["timestamp_ns"]) for event in events[-3:]] == [
        ("kernel", 0), ("kernel", 1_500_000_000), ("line", 1_500_000_000)]
    (tmp_path / "console").write_text(firmware)
    assert "no file of a known format" in kymo("print", tmp_path / "console", code=1).err


def test_strace_without_times(kymo, tmp_path):
    """The order of the calls is known, and their results; a warning says how times are recorded."""
    path = tmp_path / "a.strace"
    path.write_text('execve("/bin/ls", ["ls"], 0x7ffd /* 5 vars */) = 0\n[pid  7] openat(AT_FDCWD, "x", O_RDONLY) = -1 ENOENT (No such file)\n'
                    '29063 read(3,  <unfinished ...>\n29063 <... read resumed>"a", 1) = 1\n--- SIGCHLD {si_signo=SIGCHLD} ---\n+++ exited with 0 +++\n')
    done = kymo("convert", "--to", "json", path)
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [(event["event"], event["context"]["tid"], event["fields"].get("ret")) for event in found] == [
        ("syscall_entry_execve", 1, 0), ("syscall_entry_openat", 7, -2), ("syscall_entry_read", 29063, None), ("syscall_exit_read", 29063, 1),
        ("signal", 1, None), ("exit", 1, None)]
    assert done.err.count("warning") == 1 and "the lines have no times, which strace -ttt -T would write" in done.err
    # Code in a text is no call.
    path.write_text("frobnicate(3) = 4\nstd::read(3) = 4\n")
    assert "no file of a known format" in kymo("print", path, code=1).err
    # A file with times keeps them: a line without one is no event.
    path.write_text("12.000001 close(3) = 0\nclose(4) = 0\n12.000003 close(5) = 0\n")
    assert [event["event"] for event in events_of(kymo, path)] == ["syscall_entry_close", "line", "syscall_entry_close"]


def test_whole_seconds_of_strace(kymo, tmp_path):
    """strace -t has whole seconds: a call begins when the thread's call before has ended, so that each has its duration. So it is without times."""
    text = "7 {0}close(3) = 0 <0.000100>\n8 {0}close(4) = 0 <0.000300>\n7 {0}nanosleep({{2, 0}}, NULL) = 0 <2.000182>\n7 {1}close(5) = 0 <0.000200>\n"
    for times, warns in ((("05:00:00 ", "05:00:02 "), False), (("", ""), True)):
        (tmp_path / "a.strace").write_text(text.format(*times))
        done = kymo("convert", "--to", "json", tmp_path / "a.strace")
        found = [json.loads(line) for line in done.out.splitlines()]
        begin = found[0]["timestamp_ns"]
        assert [(event["context"]["tid"], event["event"].split("_")[1], (event["timestamp_ns"] - begin) // 1000) for event in found] == [
            (7, "entry", 0), (8, "entry", 0), (7, "exit", 100), (7, "entry", 100), (8, "exit", 300), (7, "exit", 2000282), (7, "entry", 2000282),
            (7, "exit", 2000482)]
        assert ("the lines have no times" in done.err) == warns
        report = kymo("report", "syscalls", tmp_path / "a.strace").out
        assert re.search(r"nanosleep +1 +0 +2\.000 s", report) and "close " in report and not re.search(r"Calls.*Unmeasured", report)


def test_message_of_strace_in_a_call(kymo, tmp_path):
    """strace -f on a terminal writes its message into the line of the call that makes the process."""
    (tmp_path / "a.strace").write_text("12.000001 vfork(strace: Process 15635 attached\n <unfinished ...>\n[pid 15635] 12.000002 close(3) = 0 <0.000001>\n"
                                       "[pid     1] 12.000005 <... vfork resumed>) = 15635 <0.000004>\n")
    found = events_of(kymo, tmp_path / "a.strace")
    assert [(event["event"], event["context"]["tid"], event["fields"].get("ret")) for event in found] == [
        ("syscall_entry_vfork", 1, None), ("syscall_entry_close", 15635, None), ("syscall_exit_close", 15635, 0), ("syscall_exit_vfork", 1, 15635)]
    assert kymo("print", tmp_path / "a.strace").err == ""


def test_text_that_is_no_strace(kymo, tmp_path):
    """Prose, code and the text of ltrace; a cut first line does not make a log with times one without."""
    for text in ("read(fd, buf, len) = description of the read function\n", "open(x) = y x\n", "malloc(10) = 0x55\nfree(0x55) = <void>\n"):
        (tmp_path / "a.strace").write_text(text)
        assert "no file of a known format" in kymo("print", tmp_path / "a.strace", code=1).err
    (tmp_path / "a.strace").write_text('23456 read(3, "x", 1) = 1 <0.000012>\n1700000001.000001 read(3, "x", 1) = 1 <0.000012>\n')
    found = events_of(kymo, tmp_path / "a.strace")
    assert [(event["event"], event["timestamp_ns"]) for event in found] == [
        ("line", 1700000001000001000), ("syscall_entry_read", 1700000001000001000), ("syscall_exit_read", 1700000001000013000)]


def test_images_are_no_consoles(kymo, tmp_path):
    (tmp_path / "image").write_bytes(b"x" * 100 + b"\0" * 100 + b"\n[    0.000000] Linux version 6.1\n")
    assert "no file of a known format" in kymo("print", tmp_path / "image", code=1).err
    # The kernel may tell the thread or CPU behind the time.
    (tmp_path / "image").write_text("firmware\n" * 20 + "[    0.000000][    T0] Linux version 6.1\n[    1.000000][    T1] next\n")
    assert [event["event"] for event in events_of(kymo, tmp_path / "image")][-2:] == ["kernel", "kernel"]


def test_kernel_that_quotes_strace(kymo, tmp_path):
    (tmp_path / "report").write_text('[pid  3610] mkdir("/dev/binderfs", 0777) = 0\n[   53.123456] BUG: unable to handle page fault\n')
    assert [event["event"] for event in events_of(kymo, tmp_path / "report")] == ["line", "kernel"]
