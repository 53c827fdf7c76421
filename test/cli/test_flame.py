# SPDX-License-Identifier: MIT
"""kymo report flame: trees of call stacks, their figures, and their forms for other programs."""

import base64
import collections
import functools
import gzip
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time

import pytest

from browser import PATIENCE_S, Browser
from conftest import SANITIZED
from test_sampling import spinner  # noqa: F401 (a fixture)

# A thread's name is chosen by the program.
HOSTILE = "</script><b>&"


@pytest.fixture(scope="module")
def trace(kymo, needs_root_tracefs, spinner, tmp_path_factory):
    """Samples of the spinner, also under another name; and where threads left the CPU."""
    place = tmp_path_factory.mktemp("flame")
    (place / "hostile.py").write_text(
        f"import ctypes, time\nctypes.CDLL(None).prctl(15, {HOSTILE.encode()!r}, 0, 0, 0)\n"
        "while time.process_time() < 0.3:\n    pass\n")
    script = f"{spinner} 0.5; {sys.executable} {place}/hostile.py; sleep 0.3; head -c 2G /dev/zero > /dev/null"
    kymo("record", "-o", place / "trace", "--sample", "cpu-clock:499Hz", "--sample", "context-switches", "--sample", "page-faults", "-k",
         "sched_switch,sched_waking,sched_process_*", "-b", "16M", "--", "sh", "-c", script)
    return place / "trace"


def tables(kymo, trace, *options):
    report, = json.loads(kymo("report", "flame", "--json", *options, trace).out)["reports"]
    return {table["name"]: table["rows"] for table in report["tables"]}


def below(rows, *path):
    """The row at that path of functions."""
    at, depth = 0, 0
    for name in path:
        at = next(i for i in range(at, len(rows)) if rows[i]["function"] == name and rows[i]["depth"] >= depth)
        depth = rows[at]["depth"] + 1
    return rows[at]


def test_figures(kymo, trace):
    """The program's proportion and time; text, JSON and all exports agree."""
    rows = tables(kymo, trace, "--limit", "0")["tree"]
    hot, warm, whole = (below(rows, "spinner", "main", name) for name in ("hot", "warm", "inner"))
    assert below(rows, "spinner", "main", "hot", "inner")["time"] >= 0.9 * hot["time"]
    assert 0.6 < hot["time"] / (hot["time"] + warm["time"]) < 0.9
    assert 0.3e9 < below(rows, "spinner")["time"] < 0.8e9
    assert whole
    # A row has at least what those below it have.
    stack = []
    for row in rows:
        del stack[row["depth"]:]
        if stack:
            stack[-1][1] -= row["share"]
            assert stack[-1][1] >= -1e-9
        stack.append([row, row["share"] + 0.0])
    shown = kymo("report", "flame", "-t", "tree", trace).out
    assert re.search(r"^ +[\d.]+ % +[\d.]+ % +[\d.]+ ms +   hot\b", shown, re.M), shown


def test_functions(kymo, trace):
    found = {row["function"]: row for row in tables(kymo, trace, "--comm", "spinner", "--limit", "0")["functions"]}
    assert found["inner"]["self"] > 0.8 and found["main"]["self"] < 0.05 and found["main"]["share"] > 0.8
    assert found["inner"]["object"].endswith("/spinner")
    # Kernel's functions are marked: head spends its time there.
    found = tables(kymo, trace, "--comm", "head", "--limit", "0")["functions"]
    assert any(row["function"].endswith("_[k]") for row in found)


def test_folded(kymo, trace):
    rows = tables(kymo, trace, "--limit", "0")["tree"]
    lines = kymo("report", "flame", "--to", "folded", trace).out.splitlines()
    stacks = [line.rsplit(" ", 1) for line in lines]
    assert sum(int(weight) for _, weight in stacks) == sum(row["time"] for row in rows if row["depth"] == 0)
    hot = sum(int(weight) for stack, weight in stacks if re.match(r"spinner;.*;main;hot(;|$)", stack))
    assert hot == below(rows, "spinner", "main", "hot")["time"]


def test_speedscope(kymo, trace):
    made = json.loads(kymo("report", "flame", "--to", "speedscope", trace).out)
    assert made["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    profile, = made["profiles"]
    assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "nanoseconds", 0)
    assert len(profile["samples"]) == len(profile["weights"])
    assert sum(profile["weights"]) == profile["endValue"] == sum(
        row["time"] for row in tables(kymo, trace, "--limit", "0")["tree"] if row["depth"] == 0)
    names = [frame["name"] for frame in made["shared"]["frames"]]
    assert ["spinner", "main", "hot", "inner"] in [
        [names[frame] for frame in stack if names[frame] in ("spinner", "main", "hot", "inner")]
        for stack in profile["samples"]]


SPEEDSCOPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "speedscope", "node_modules", "speedscope", "dist", "release")


def test_speedscope_opens_it(kymo, trace, tmp_path):
    """speedscope's own package reads the profile and shows its name and its views."""
    if not os.path.isdir(SPEEDSCOPE) or not shutil.which("chromium"):
        pytest.skip("speedscope or chromium is not installed: tools/install-deps test brings them")
    shutil.copytree(SPEEDSCOPE, tmp_path / "site")
    (tmp_path / "site" / "good.json").write_text(kymo("report", "flame", "--to", "speedscope", trace).out)
    name = json.loads((tmp_path / "site" / "good.json").read_text())["name"]
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / "site")
    handler.log_message = lambda *_: None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = Browser(tmp_path / "profile", ("--use-angle=swiftshader", "--enable-unsafe-swiftshader"))
    try:
        where = f"127.0.0.1:{server.server_port}"
        browser.open(f"{where}/index.html#profileURL=http://{where}/good.json", "http")
        end = time.monotonic() + PATIENCE_S
        while browser.value("document.title") != f"{name} - speedscope":
            assert time.monotonic() < end, browser.value("document.body.textContent")
            time.sleep(0.05)
        assert "Left Heavy" in browser.value("document.body.textContent")
    finally:
        browser.close()
        server.shutdown()


def messages(data):
    """[(field, value)] of a protocol buffer message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            at += 1
            if data[at - 1] < 128:
                return value
            shift += 7

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            assert key & 7 == 2, key
            length = varint()
            at += length
            assert at <= len(data)
            yield key >> 3, data[at - length:at]


def by_go(path):
    """{(stack, weight)} as 'go tool pprof' reads the profile."""
    raw = subprocess.run(["go", "tool", "pprof", "-raw", path], capture_output=True, text=True, check=True).stdout
    samples, locations = raw.split("Locations\n")
    # It shortens some names for people, and then writes the name behind.
    names = {number: whole or name for number, name, whole in re.findall(
        r"^ +(\d+): 0x[0-9a-f]+ M=\d+ (.*?) (?:[/\[].*)?:\d+(?::\d+)? s=\d+(?:\((.*)\))?$", locations, re.M)}
    return {(";".join(names[number] for number in reversed(stack.split())), int(weight)) for weight, stack in
            re.findall(r"^ +\d+ +(\d+): ([\d ]+)$", samples, re.M)}


def test_pprof(kymo, kymo_bin, trace, tmp_path):
    folded = kymo("report", "flame", "--to", "folded", trace).out
    path = tmp_path / "profile.pb.gz"
    with open(path, "wb") as file:
        subprocess.run([kymo_bin, "report", "flame", "--to", "pprof", trace],
                       stdout=file, check=True)
    fields = list(messages(gzip.decompress(path.read_bytes())))
    strings = [value.decode() for field, value in fields if field == 6]
    assert strings[0] == ""
    functions = {message[1]: strings[message[2]] for message in
                 (dict(messages(value)) for field, value in fields if field == 5)}
    lines = {message[1]: functions[dict(messages(message[4]))[1]] for message in
             (dict(messages(value)) for field, value in fields if field == 4)}
    made = set()
    for field, value in fields:
        if field == 2:
            sample = list(messages(value))
            stack = [lines[number] for key, number in sample if key == 1]
            made.add((";".join(reversed(stack)), [number for key, number in sample if key == 2][1]))
    assert {(stack.replace("_[k]", ""), int(weight)) for stack, weight in
            (line.rsplit(" ", 1) for line in folded.splitlines())} == made
    if shutil.which("go"):
        assert by_go(path) == made


def test_pprof_in_trace_processor(kymo, kymo_bin, trace, tmp_path, query):
    """Perfetto's trace_processor reads the profile: the same time of each innermost function."""
    path = tmp_path / "profile.pb.gz"
    with open(path, "wb") as file:
        subprocess.run([kymo_bin, "report", "flame", "--to", "pprof", trace], stdout=file, check=True)
    rows, complaints = query(path, """
        SELECT f.name, SUM(s.value) AS ns FROM __intrinsic_aggregate_sample s
        JOIN __intrinsic_aggregate_profile p ON p.id = s.aggregate_profile_id
        JOIN stack_profile_callsite c ON c.id = s.callsite_id JOIN stack_profile_frame f ON f.id = c.frame_id
        WHERE p.sample_type_type = 'cpu' GROUP BY 1""",
        "SELECT name FROM stats WHERE value > 0 AND severity IN ('error', 'data_loss')")
    ours = collections.Counter()
    for line in kymo("report", "flame", "--to", "folded", trace).out.splitlines():
        stack, weight = line.rsplit(" ", 1)
        ours[stack.split(";")[-1].replace("_[k]", "")] += int(weight)
    assert not complaints and ours["inner"] > 0.2e9
    assert {row["name"]: int(row["ns"]) for row in rows} == ours


def test_off_cpu(kymo, trace):
    rows = tables(kymo, trace, "--of", "off-cpu", "--comm", "sleep", "--group-by", "process", "--limit", "0")["tree"]
    # Other programs of the machine sleep, too.
    slept = [row for row in rows if "nanosleep" in row["function"]]
    assert any(0.28e9 < row["time"] < 2e9 for row in slept), slept
    cut = tables(kymo, trace, "--of", "off-cpu", "--comm", "sleep", "--begin", "-100ms", "--group-by", "process")["tree"]
    assert all(row["time"] <= 1.05e8 for row in cut)


def test_choices(kymo, trace):
    """Ranges, groups, CPUs, processes."""
    whole = tables(kymo, trace, "--limit", "0")["tree"][0:]
    total = sum(row["time"] for row in whole if row["depth"] == 0)
    parts = [sum(row["time"] for row in tables(kymo, trace, "--limit", "0", "--cpu", str(cpu))["tree"]
                 if row["depth"] == 0) for cpu in range(os.cpu_count())]
    assert sum(parts) == total
    halves = [sum(row["time"] for row in tables(kymo, trace, "--limit", "0", option, "50%")["tree"]
                  if row["depth"] == 0) for option in ("--begin", "--end")]
    assert total <= sum(halves) <= total + 3e7 and all(halves)
    cpus = {row["function"]: row["time"] for row in tables(kymo, trace, "--group-by", "cpu", "--limit", "0")["tree"] if row["depth"] == 0}
    ours = collections.Counter()
    for event in map(json.loads, kymo("convert", "--to", "json", "--event", "sample", trace).out.splitlines()):
        if event["fields"]["source"]["labels"] == ["cpu-clock"]:
            ours[f"CPU {event['packet']['cpu_id']}"] += event["fields"]["period"]
    assert cpus == ours
    assert "no groups by CPU" in kymo("report", "cpu", "--group-by", "cpu", trace, code=2).err
    groups = [row["function"] for row in tables(kymo, trace, "--group-by", "process")["tree"] if row["depth"] == 0]
    assert any(re.fullmatch(r"spinner \(\d+\)", group) for group in groups), groups
    groups = {row["function"]: row["time"] for row in tables(kymo, trace, "--group-by", "thread", "--limit", "0")["tree"] if row["depth"] == 0}
    assert sum(groups.values()) == total
    name, time = next((name, time) for name, time in groups.items() if re.fullmatch(r"spinner \(\d+\)", name))
    tid = re.search(r"\d+", name)[0]
    for option in ("--tid", "--pid"):
        rows = [row for row in tables(kymo, trace, option, tid, "--comm", "spinner", "--limit", "0")["tree"] if row["depth"] == 0]
        assert [(row["function"], row["time"]) for row in rows] == [("spinner", time)]


def test_page_faults(kymo, trace):
    """As many as the events say, below the function that accesses the pages."""
    rows = tables(kymo, trace, "--of", "page-faults", "--limit", "0")["tree"]
    faults = collections.Counter()
    for event in map(json.loads, kymo("convert", "--to", "json", "--event", "sample", trace).out.splitlines()):
        if event["fields"]["source"]["labels"] == ["page-faults"]:
            faults[event["context"]["procname"]] += event["fields"]["period"]
    found = {row["function"]: row["count"] for row in rows if row["depth"] == 0}
    # Of a thread that had begun before, the recorder may not know the name, which the report finds.
    assert sum(found.values()) == faults.total() and found["spinner"] == faults["spinner"] > 10


def test_difference(kymo, trace, reference, tmp_path):
    """Of two traces: the change of each function's share."""
    kymo("convert", "-o", tmp_path / "less", "--filter", "procname == 'spinner'", trace)
    shares = [{row["function"]: row["share"] for row in tables(kymo, path, "--limit", "0")["tree"] if row["depth"] == 0}
              for path in (trace, tmp_path / "less")]
    assert shares[1] == {"spinner": 1} and len(shares[0]) > 2
    for pair in ((trace, tmp_path / "less"), (tmp_path / "less", trace)):
        said = json.loads(kymo("report", "flame", "--json", "--limit", "0", *pair).out)["reports"][0]["tables"][0]["rows"]
        changes = {row["function"]: row["change"] for row in said if row["depth"] == 0}
        sign = 1 if pair[0] == trace else -1
        assert changes == {name: pytest.approx(sign * (shares[1].get(name, 0) - share), abs=1e-6) for name, share in shares[0].items()}
    # A trace and itself, and one without such stacks, are no pair.
    for first, second, which in ((trace, trace, "second"), (trace, reference, "second"), (reference, trace, "first")):
        said = json.loads(kymo("report", "flame", "--json", "--limit", "0", first, second).out)["reports"][0]
        [note] = [note for note in said["notes"] if "nothing is compared" in note]
        assert note.startswith(f"the {which} trace, {second if which == 'second' else first}, has no such stacks")
        rows = [row for row in said["tables"][0]["rows"] if row["depth"] == 0]
        assert {row["function"]: row["share"] for row in rows} == shares[0] and {row["change"] for row in rows} == {None}


def test_any_event_with_a_stack(kymo, record, spinner):
    trace, _ = record("-k", "sched_waking,sched_switch", "--callstack-kernel", "sched_waking", command=[str(spinner), "0.1"])
    rows = tables(kymo, trace, "--of", "wakeup")["functions"]
    assert any(re.match("try_to_wake_up|ttwu", row["function"]) for row in rows)
    counts = {row["function"]: row["self_count"] for row in rows}
    assert sum(counts.values()) > 0
    assert rows == tables(kymo, trace, "--of", "sched_wak*")["functions"]
    assert "no such stacks, only of other events" in kymo("report", "flame", trace).out


def test_page(kymo, trace, tmp_path):
    """The graph's data and script; a thread's name is text; in a browser it draws, zooms and searches."""
    page = kymo("report", "flame", "--html", "--comm", "spinner", "--comm", "</*", trace).out
    scripts = re.findall(r"<script(?: type=\"(.*?)\")?>(.*?)</script>", page, re.S)
    assert [kind for kind, _ in scripts] == ["application/json", "", ""]
    data = json.loads(scripts[0][1])
    assert HOSTILE in [frame[0] for frame in data["frames"]] and "<b>&" not in page
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
    for _, script in scripts[1:]:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'" in policy
    if not shutil.which("chromium"):
        pytest.skip("no chromium to look at the page with")
    (tmp_path / "page.html").write_text(page)
    browser = Browser(tmp_path / "profile")
    try:
        browser.open(tmp_path / "page.html")
        rows = "document.querySelectorAll('.flame svg g')"
        assert browser.value(f"{rows}.length") >= 6
        named = f"Array.from({rows}).filter(g => g.textContent === 'spinner')"
        assert browser.value(f"{named}.length") == 1
        before = browser.value(f"{named}[0].querySelector('rect').getAttribute('width') * 1")
        browser.value(f"{named}[0].dispatchEvent(new MouseEvent('click'))")
        after = browser.value(f"{named}[0].querySelector('rect').getAttribute('width') * 1")
        assert after > before * 1.2
        browser.value("(() => { const i = document.querySelector('.flame input'); i.value = 'inner'; "
                         "i.dispatchEvent(new Event('input')); })()")
        assert re.fullmatch(r"marked: [\d.]+ %", browser.value("document.querySelector('.says').textContent"))
        assert not browser.trouble
    finally:
        browser.close()


def test_command(kymo, needs_root_tracefs, spinner):
    report, = json.loads(kymo("report", "flame", "--json", "--", str(spinner), "0.3").out)["reports"]
    found = {row["function"]: row["self"] for row in report["tables"][1]["rows"]}
    assert found["inner"] > 0.5


ALLOCATIONS = """
#include <stdlib.h>
static void *volatile last;
__attribute__((noinline)) void big(void) { last = malloc(1000); free(last); }
__attribute__((noinline)) void small(void) { last = calloc(5, 2); free(last); last = realloc(NULL, 7); free(last); }
int main(void)
{
	for (int i = 0; i < 100; i++)
		big();
	for (int i = 0; i < 50; i++)
		small();
	return 0;
}
"""


def test_allocations(kymo, kymo_bin, tmp_path):
    """Where a program allocates memory, by bytes and by calls."""
    if SANITIZED:
        pytest.skip("a sanitizer takes the place of malloc()")
    program, library = tmp_path / "allocations", os.path.join(os.path.dirname(kymo_bin), "../tracer/preload/libkymo-libc.so")
    subprocess.run(["cc", "-x", "c", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-fno-builtin", "-o",
                    program, "-"], input=ALLOCATIONS, text=True, check=True)
    kymo("record", "-u", "lttng_ust_libc:*", "-c", "vtid,callstack-user", "-o", tmp_path / "trace", "--", "env",
         f"LD_PRELOAD={library}", program)
    rows = tables(kymo, tmp_path / "trace", "--of", "allocations", "--limit", "0")["functions"]
    found = {row["function"]: round(row["share"] * sum(other["self_count"] for other in rows)) for row in rows}
    assert (found["big"], found["small"]) == (100 * 1000, 50 * (10 + 7))
    rows = tables(kymo, tmp_path / "trace", "--of", "lttng_ust_libc:*alloc", "--limit", "0")["functions"]
    found = {row["function"]: round(row["share"] * sum(other["self_count"] for other in rows)) for row in rows}
    assert (found["big"], found["small"]) == (100, 100)


def test_mistakes(kymo, trace, reference):
    assert "'tree' is no form" in kymo("report", "flame", "--to", "tree", trace, code=2).err
    assert "--to excludes" in kymo("report", "flame", "--to", "folded", "--json", trace, code=2).err
    assert "--to is for reports flame and calls" in kymo("report", "cpu", "--to", "folded", trace, code=2).err
    assert "needs events with call stacks" in kymo("report", "flame", reference, code=1).err
