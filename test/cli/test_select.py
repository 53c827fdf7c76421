# SPDX-License-Identifier: MIT
"""Which events the options select, computed a second time from what `kymo print` shows."""

import fnmatch
import re

import make_trace
import pytest

LINE = re.compile(r"\[(\d+)\.(\d{9})\] \S+ (.*?): \{ cpu_id = (\d+) \}, \{ (.*)")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return make_trace.sample(tmp_path_factory.mktemp("select") / "trace")


@pytest.fixture(scope="module")
def lines(kymo, trace):
    """Every event: (ns, name, cpu, text without time and difference)."""
    return parse(kymo("print", "--clock-seconds", "--no-delta", trace).out)


def parse(text):
    events = []
    for line in text.splitlines():
        match = LINE.match(line)
        assert match, line
        ns = int(match[1]) * 10**9 + int(match[2])
        events.append((ns, match[3], int(match[4]), line))
    return events


@pytest.fixture
def select(kymo, trace):
    def call(*options, code=0):
        return parse(kymo("print", "--clock-seconds", "--no-delta", *options, trace, code=code).out)

    return call


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}"


def number(event):
    match = re.search(r"number = (\d+)", event[3])
    return int(match[1]) if match else None


def test_everything_is_there(lines):
    assert len(lines) == 400
    assert lines == sorted(lines, key=lambda event: event[0])


@pytest.mark.parametrize("globs", [["tick"], ["t*"], ["tick", "data"], ["?a*"], ["space*"]])
def test_event(select, lines, globs):
    options = [word for glob in globs for word in ("--event", glob)]
    want = [e for e in lines
            if any(fnmatch.fnmatchcase(e[1], glob) for glob in globs)]
    assert want and select(*options) == want


@pytest.mark.parametrize("globs, want", [
    (["!tick"], lambda name: name != "tick"), (["!t*", "!data"], lambda name: name[0] != "t" and name != "data"),
    (["t*", "!tick"], lambda name: name[0] == "t" and name != "tick"), (["!*", "data"], lambda name: name == "data")])
def test_events_left_out(kymo, trace, select, lines, globs, want):
    """The last wildcard that matches says it, as in rules of kymo record."""
    options = [word for glob in globs for word in ("--event", glob)]
    wanted = [event for event in lines if want(event[1])]
    assert select(*options) == wanted
    assert kymo("print", "--count", *options, trace).out == f"{len(wanted)}\n"


@pytest.mark.parametrize("glob, cpus", [("channel_1", [1]), ("*_0", [0]), ("c*", [0, 1])])
def test_stream(select, lines, glob, cpus):
    assert select("--stream", glob) == [e for e in lines if e[2] in cpus]


def test_times(select, lines):
    first, last = lines[0][0], lines[-1][0]
    begin, end = lines[90][0], lines[310][0]
    want = [e for e in lines if begin <= e[0] <= end]
    assert select("--begin", seconds(begin), "--end", seconds(end)) == want
    assert select("--timerange", f"{seconds(begin)},{seconds(end)}") == want
    assert select("--timerange", f"[{seconds(begin)},{seconds(end)}]") == want
    # Just beyond both events.
    want = [e for e in lines if begin < e[0] < end]
    assert select("--begin", seconds(begin + 1), "--end", seconds(end - 1)) == want
    assert select("--begin", "+300ms") == [e for e in lines if e[0] >= first + 300_000_000]
    assert select("--end", "+300ms") == [e for e in lines if e[0] <= first + 300_000_000]
    assert select("--begin", "-300ms") == [e for e in lines if e[0] >= last - 300_000_000]
    half = first + (last - first) // 2
    assert select("--begin", "50%") == [e for e in lines if e[0] >= half]
    # 2023-11-14 22:13:20 is ORIGIN_S in UTC, which TZ says here.
    assert select("--begin", "22:13:21") == [
        e for e in lines if e[0] >= (make_trace.ORIGIN_S + 1) * 10**9]
    assert select("--begin", "2023-11-14 22:13:21", "--clock-gmt") == select("--begin", "22:13:21")


def test_intersection(select, lines):
    begin = max(min(e[0] for e in lines if e[2] == cpu) for cpu in (0, 1))
    end = min(max(e[0] for e in lines if e[2] == cpu) for cpu in (0, 1))
    want = [e for e in lines if begin <= e[0] <= end]
    assert select("--stream-intersection") == want
    assert 0 < len(want) < len(lines)
    middle = lines[200][0]
    assert select("--stream-intersection", "--begin", seconds(middle)) == [
        e for e in want if e[0] >= middle]


@pytest.mark.parametrize("count", [0, 1, 7, 256, 399, 400, 5000])
def test_head_and_tail(select, lines, count):
    assert select("--head", count) == lines[:count]
    assert select("--tail", count) == (lines[-count:] if count else [])


FILTERS = {
    "number >= 300": lambda e: number(e) is not None and number(e) >= 300,
    "!(number >= 300)": lambda e: number(e) is None or number(e) < 300,
    '$event == "data" && $cpu == 1': lambda e: e[1] == "data" and e[2] == 1,
    "number % 7 == 2 || has(ratio)":
        lambda e: (number(e) is not None and number(e) % 7 == 2) or "ratio" in e[3],
    'state == "busy"': lambda e: '"busy"' in e[3],
    'comm =~ "task-?"': lambda e: re.search(r'comm = "task-.",', e[3]),
    "tid == 1001": lambda e: "tid = 1001" in e[3],
    "$ctx.tid in (1000, 7)": lambda e: "tid = 1000" in e[3],
}


@pytest.mark.parametrize("text", FILTERS)
def test_filter(select, lines, text):
    want = [e for e in lines if FILTERS[text](e)]
    assert 0 < len(want) < len(lines)
    assert select("--filter", text) == want


def test_together(select, lines):
    begin = lines[100][0]
    want = [e for e in lines
            if e[1] == "tick" and e[2] == 0 and e[0] >= begin and number(e) % 2 == 0]
    options = ("--event", "tick", "--stream", "*_0", "--begin", seconds(begin), "--filter",
               "number % 2 == 0")
    assert want and select(*options) == want
    assert select(*options, "--head", 5) == want[:5]
    assert select(*options, "--tail", 5) == want[-5:]


@pytest.mark.parametrize("options", [
    [], ["--event", "tick"], ["--event", "t*", "--stream", "*_1"], ["--filter", "number > 10"],
    ["--begin", "50%"], ["--head", 10], ["--tail", 10], ["--filter", '$event == "data"'],
    ["--event", "data", "--filter", "ratio > 0", "--end", "70%"],
])
def test_count(kymo, trace, select, options):
    assert int(kymo("print", "--count", *options, trace).out) == len(select(*options))


def test_count_of_a_damaged_trace(kymo, tmp_path):
    good, bad = make_trace.Packet(0), make_trace.Packet(100, seq=1)
    good.tick(10, 1)
    bad.tick(110, 2)
    bad.head(9, 120)
    path = make_trace.write(tmp_path / "t", {"s": [good, bad]})
    for options in ([], ["--filter", "number > 0"], ["--tail", 5]):
        result = kymo("print", "--count", *options, path, code=1)
        assert result.out == "2\n"
        assert "no event class with id 9" in result.err
    assert len(kymo("print", "--tail", 1, path, code=1).out.splitlines()) == 1


@pytest.mark.parametrize("options, message", [
    (["--event", "tock"], "no event of the trace is named 'tock'"),
    (["--event", "!tock"], "no event of the trace is named 'tock'"),
    (["--stream", "nowhere"], "no stream of the trace is named 'nowhere'"),
    (["--stream", "nowhere"], "; there are channel_0, channel_1"),
    (["--filter", "numbr > 1"], "numbr"),
    (["--filter", "number >"], "--filter:1:9"),
    (["--begin", "soon"], "'soon' is not a time"),
    (["--timerange", "1"], "BEGIN,END"),
    (["--timerange", "1,2", "--end", "2"], "exclude each other"),
    (["--begin", "60%", "--end", "40%"], "the end is before the begin"),
    (["--head", 1, "--tail", 1], "exclude each other"),
])
def test_mistakes(kymo, trace, options, message):
    for extra in ([], ["--count"]):
        result = kymo("print", *options, *extra, trace, code=2)
        assert message in result.err and not result.out


def test_kernel_trace(kymo, shared):
    path = f"{shared}/traces/lttng-kernel/kernel"
    lines = kymo("print", "--clock-seconds", "--no-delta", path).out.splitlines()
    names = [line.split(": ", 1)[0].rsplit(" ", 1)[1] for line in lines]
    want = [line for line, name in zip(lines, names)
            if name.startswith("sched_") and "cpu_id = 1" in line.split("}", 1)[0]]
    got = kymo("print", "--clock-seconds", "--no-delta", "--event", "sched_*", "--filter",
               "$cpu == 1", path).out.splitlines()
    assert got == want
    assert kymo("print", "--count", "--event", "sched_*", path).out == \
        f"{sum(name.startswith('sched_') for name in names)}\n"
    want = [line for line, name in zip(lines, names)
            if name.startswith("syscall_exit_") and re.search(r"\bret = -\d", line)]
    got = kymo("print", "--clock-seconds", "--no-delta", "--event", "syscall_exit_*", "--filter",
               "ret < 0", path).out.splitlines()
    assert want and got == want


@pytest.mark.parametrize("expression, place", [
    ("$event == 't*'", 11), ("number > 1 && !($event != 'ti?k')", 27), ("$event in ('tick', 'd*')", 20)])
def test_patterns_where_there_are_none(kymo, trace, expression, place):
    """LTTng's == takes '*': there is a warning where Kymo's does not; each time, also where nothing is printed."""
    for command in (["print"], ["print", "--count"], ["convert", "--to", "json"], ["report", "summary"]):
        err = kymo(*command, "--filter", expression, trace, code=None).err
        assert err.count("literally") == 1 and f"(column {place})" in err and "=~" in err, command


@pytest.mark.parametrize("expression", ["$event =~ 't*'", "$event == 'tick'", "number * 2 == 4"])
def test_no_warning_of_patterns(kymo, trace, expression):
    assert "letter" not in kymo("print", "--filter", expression, trace).err
