# SPDX-License-Identifier: MIT
"""kymo convert --to formats of other viewers, each judged by a program that reads it."""

import collections
import json
import os
import re
import shutil
import subprocess

import pytest

import foreign_files

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

COMPLAINTS = ("SELECT name, idx, value FROM stats "
              "WHERE value > 0 AND severity IN ('error', 'data_loss')")


@pytest.fixture
def convert(kymo, tmp_path):
    def call(form, *args, code=0):
        out = tmp_path / f"out.{form}"
        kymo("convert", "--to", form, "-o", out, *args, code=code)
        return out

    return call


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    """perf.data with call stacks."""
    perf = shutil.which("perf")
    if not perf or os.geteuid():
        pytest.skip("perf is not installed, or may not record: tools/install-deps test")
    path = tmp_path_factory.mktemp("samples") / "perf.data"
    work = "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; ls -lR /etc"
    done = subprocess.run([perf, "record", "-q", "-g", "-e", "cpu-clock", "-F", "999", "-o", path, "--",
                           "sh", "-c", work], capture_output=True, check=False, timeout=100)
    if done.returncode:
        pytest.skip(f"perf cannot record here: {done.stderr[-300:]}")
    return path


def table(kymo, trace, report, name):
    found = json.loads(kymo("report", report, "--limit", 0, "--json", trace).out)
    return {t["name"]: t["rows"] for t in found["reports"][0]["tables"]}[name]


def events(kymo, *args):
    return [json.loads(line) for line in kymo("convert", "--to", "json", *args).out.splitlines()]


def calls_of(rows):
    """Calls without a name have events of one name."""
    return {row["syscall"]: row["count"] for row in rows if row["count"] and " " not in row["syscall"]}


# ---- Chrome's JSON ------------------------------------------------------------------------------


def test_chrome_json_of_a_kernel(kymo, convert, query, shared):
    """Perfetto finds the system calls, run times and requests that Kymo's reports find."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    out = convert("chrome-json", trace)
    complaints, calls, kinds, sched, names = query(
        out, COMPLAINTS,
        """SELECT s.name, COUNT(*) AS n, SUM(dur) AS total FROM slice s WHERE category = 'syscall' AND dur > 0
           AND NOT EXISTS (SELECT 1 FROM args o WHERE o.arg_set_id = s.arg_set_id AND o.key = 'args.outcome')
           GROUP BY 1""",
        "SELECT category, COUNT(*) AS n FROM slice GROUP BY 1",
        "SELECT SUM(dur) AS total FROM slice WHERE category = 'sched'",
        "SELECT tid, t.name, pid FROM thread t JOIN process USING (upid) WHERE tid = 250")
    assert not complaints
    assert {r["name"]: (r["n"], r["total"]) for r in calls} == {
        r["syscall"]: (r["count"], r["total"]) for r in table(kymo, trace, "syscalls", "syscalls") if r["count"]}
    assert names[0]["name"] == "Client manageme" and names[0]["pid"] == 240
    busy = sum(row["cpu_time"] for row in table(kymo, trace, "cpu", "threads"))
    assert abs(sched[0]["total"] - busy) < 1000
    n = {row["category"]: row["n"] for row in kinds}
    issues = events(kymo, "--event", "block_rq_issue", trace)
    assert n["block"] == len(issues)


def test_chrome_json_comes_back(kymo, convert, shared):
    """The importer of the same format finds the same calls at the same times."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    back = events(kymo, "--event", "read_begin", "--event", "read_end", convert("chrome-json", trace))
    back = [e for e in back if e["fields"].get("cat") == "syscall"]
    told = events(kymo, "--event", "syscall_*_read", trace)
    assert [e["timestamp_ns"] for e in back] == [e["timestamp_ns"] for e in told] and told
    assert [e["fields"].get("fd") for e in back] == [e["fields"].get("fd") for e in told]


def test_chrome_json_of_programs(convert, query, shared):
    trace = f"{shared}/traces/lttng-ust"
    out = convert("chrome-json", trace)
    complaints, kinds, threads = query(
        out, COMPLAINTS, "SELECT COUNT(*) AS n FROM slice WHERE category = 'user'",
        "SELECT COUNT(*) AS n FROM thread WHERE tid > 0")
    assert not complaints and kinds[0]["n"] > 0 and threads[0]["n"] > 0
    assert len(json.loads(out.read_text())["traceEvents"]) > kinds[0]["n"]


# ---- perf script ----------------------------------------------------------------------------------


def test_perf_script_comes_back(kymo, convert, shared):
    """Reports on the text are those on the trace."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    out = convert("perf-script", trace)
    assert calls_of(table(kymo, out, "syscalls", "syscalls")) == calls_of(table(kymo, trace, "syscalls", "syscalls"))
    switches = [(e["timestamp_ns"], e["fields"]["prev_tid"], e["fields"]["next_tid"], e["fields"]["next_prio"])
                for e in events(kymo, "--event", "sched_switch", trace)]
    assert [(e["timestamp_ns"], e["fields"]["prev_tid"], e["fields"]["next_tid"], e["fields"]["next_prio"])
            for e in events(kymo, "--event", "sched_switch", out)] == switches


HEAD = re.compile(r"^\s*(\S.*?)\s+(\d+)\s+(?:\[(\d+)\] +)?(\d+)\.(\d{6}):\s+(?:(\d+)\s+)?(\S+):")


def stacks_of(text):
    """As FlameGraph's stackcollapse-perf.pl takes it: {(time, tid, event, period, addresses)}."""
    found, head = collections.Counter(), None
    addresses = []
    for line in [*text.splitlines(), ""]:
        if not line.strip():
            if head:
                found[(*head, tuple(addresses))] += 1
            head, addresses = None, []
        elif head is None:
            match = HEAD.match(line)
            head = (match[4] + match[5], match[2], match[6], match[7])
        else:
            # perf shows some addresses of files, and not of processes: their places in a page are the same. It shows
            # one of two equal frames.
            at = int(line.split()[0], 16) % 4096
            addresses += [at] if addresses[-1:] != [at] else []
    return found


@needs_root
def test_perf_script_has_perfs_stacks(peer, convert, samples, query):
    theirs = stacks_of(peer("perf", "script", "-F", "comm,tid,time,period,event,ip", "-i", samples).out)
    text = convert("perf-script", samples)
    assert stacks_of(text.read_text()) == theirs and theirs
    # Perfetto's trace_processor knows the text for perf's.
    (errors,), (found,) = query(text, "select total(value) as n from stats where severity = 'error'",
                                "select count(*) as n from cpu_profile_stack_sample")
    assert errors["n"] == 0 and found["n"] == sum(count for head, count in theirs.items() if head[-1])


@needs_root
def test_kernel_functions_of_this_boot(kymo, peer, convert, samples, tmp_path):
    """
    Of a file whose kernel runs here, the kernel's functions have perf's names; of another kernel they have none. Where functions have
    several names, perf takes the last one of the list (__pi_memset), and Kymo one that people write (memset). BPF programs of other
    tests may be gone by now.
    """
    with open("/proc/kallsyms", encoding="ascii") as lines:
        listed = {tuple(line.split()[0:3:2]) for line in lines}

    def functions(text):
        found = re.findall(r"^\s+(f{8}[0-9a-f]{8}) (.+?)\+0x([0-9a-f]+) ", text, re.M)
        return [(address, offset, (f"{int(address, 16) - int(offset, 16):x}", name) in listed or name)
                for address, name, offset in found if not name.startswith("bpf_")]

    theirs = functions(peer("perf", "script", "-i", samples).out)
    ours = functions(convert("perf-script", samples).read_text())
    if not theirs or not any(int(line.split()[0], 16) for line in open("/proc/kallsyms", encoding="ascii")):
        pytest.skip("the kernel hides its symbols")
    assert set(ours) == set(theirs)
    data = bytearray(samples.read_bytes())
    at = data.rindex(b"[kernel.kallsyms]\0") - 24
    data[at] ^= 1
    other = tmp_path / "other.data"
    other.write_bytes(data)
    assert not functions(kymo("convert", "--to", "perf-script", other).out)


# ---- call stacks ----------------------------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("form", ["folded", "speedscope", "pprof"])
def test_stacks_are_those_of_the_report(kymo, kymo_bin, convert, samples, form):
    made = convert(form, samples).read_bytes()
    told = subprocess.run([kymo_bin, "report", "flame", "--to", form, samples], capture_output=True, check=True).stdout
    assert made == told and len(made) > 100


def test_stacks_need_samples(kymo, shared, tmp_path):
    result = kymo("convert", "--to", "folded", "-o", tmp_path / "x", f"{shared}/traces/lttng-kernel/kernel", code=1)
    assert "no event of the trace is a sample" in result.err and not (tmp_path / "x").exists()


# ---- the Firefox profiler -------------------------------------------------------------------------


def check_firefox(profile):
    """The format's own rules: columns as long as their table, and indices that are in theirs."""
    categories = len(profile["meta"]["categories"])
    schemas = {schema["name"] for schema in profile["meta"]["markerSchema"]}
    for thread in profile["threads"]:
        strings = len(thread["stringArray"])
        for name in ("samples", "markers", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols"):
            for column, values in thread[name].items():
                assert not isinstance(values, list) or len(values) == thread[name]["length"], (name, column)
        stacks, frames, funcs = thread["stackTable"], thread["frameTable"], thread["funcTable"]
        assert all(s is None or s < stacks["length"] for s in thread["samples"]["stack"])
        assert all(p is None or p < i for i, p in enumerate(stacks["prefix"]))
        assert all(f < frames["length"] for f in stacks["frame"]) and all(f < funcs["length"] for f in frames["func"])
        assert all(n < strings for n in funcs["name"] + thread["resourceTable"]["name"] + thread["markers"]["name"])
        assert all(r < thread["resourceTable"]["length"] for r in funcs["resource"])
        assert all(c < categories for c in thread["markers"]["category"] + frames["category"])
        assert {data["type"] for data in thread["markers"]["data"]} <= schemas
        for phase, begin, end in zip(*(thread["markers"][c] for c in ("phase", "startTime", "endTime"))):
            assert (begin is not None) == (phase != 3) and (end is not None) == (phase in (1, 3))


def test_firefox_of_a_kernel(kymo, convert, shared):
    trace = f"{shared}/traces/lttng-kernel/kernel"
    profile = json.loads(convert("firefox", trace).read_text())
    check_firefox(profile)
    calls = collections.Counter()
    for thread in profile["threads"]:
        for name, phase, data in zip(*(thread["markers"][c] for c in ("name", "phase", "data"))):
            if phase == 3 and "outcome" not in data:
                calls[thread["stringArray"][name]] += 1
    assert calls == {r["syscall"]: r["count"] for r in table(kymo, trace, "syscalls", "syscalls") if r["count"]}


@needs_root
def test_firefox_of_samples(convert, query, samples):
    """Perfetto reads these profiles, too: as many samples, and their functions."""
    out = convert("firefox", samples)
    profile = json.loads(out.read_text())
    check_firefox(profile)
    complaints, found, names = query(out, COMPLAINTS, "SELECT COUNT(*) AS n FROM cpu_profile_stack_sample",
                                     "SELECT DISTINCT name FROM stack_profile_frame")
    n = sum(s is not None for thread in profile["threads"] for s in thread["samples"]["stack"])
    assert not complaints and found == [{"n": n}] and n
    ours = {thread["stringArray"][i] for thread in profile["threads"] for i in thread["funcTable"]["name"]}
    assert {row["name"] for row in names} == ours


# ---- OpenTelemetry --------------------------------------------------------------------------------


def spans_of(text):
    """Checked by the rules of OTLP's JSON: ids of 32 and 16 hexadecimal digits, 64-bit numbers as texts."""
    spans = {}
    for line in text.splitlines():
        for resource in json.loads(line)["resourceSpans"]:
            keys = {a["key"] for a in resource["resource"]["attributes"]}
            assert "service.name" in keys
            for span in resource["scopeSpans"][0]["spans"]:
                assert re.fullmatch("[0-9a-f]{32}", span["traceId"]) and int(span["traceId"], 16)
                assert re.fullmatch("[0-9a-f]{16}", span["spanId"]) and int(span["spanId"], 16)
                assert span["spanId"] not in spans and int(span["endTimeUnixNano"]) >= int(span["startTimeUnixNano"])
                for attribute in span["attributes"] + [a for e in span["events"] for a in e["attributes"]]:
                    ((kind, value),) = attribute["value"].items()
                    assert kind in ("stringValue", "intValue", "doubleValue", "boolValue")
                    assert kind != "intValue" or re.fullmatch("-?[0-9]+", value)
                spans[span["spanId"]] = span
    for span in spans.values():
        parent = spans.get(span.get("parentSpanId"))
        assert ("parentSpanId" in span) == (parent is not None)
        if parent:
            assert parent["traceId"] == span["traceId"]
            assert int(parent["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])
            assert int(span["endTimeUnixNano"]) <= int(parent["endTimeUnixNano"])
    return list(spans.values())


def attribute(span, key):
    return next((next(iter(a["value"].values())) for a in span["attributes"] if a["key"] == key), None)


@needs_root
def test_spans_of_a_program(kymo, kymo_bin, tmp_path):
    """Spans of a program, with its system calls in them, under the program's own trace ids."""
    trace = tmp_path / "shop"
    shop = os.path.join(os.path.dirname(kymo_bin), "../../examples/shop")
    kymo("record", "-o", trace, "-u", "shop:*", "-k", "syscall:*,sched_switch", "--", shop, "4")
    spans = spans_of(kymo("convert", "--to", "otlp", trace).out)
    checkouts = [span for span in spans if span["name"] == "shop:checkout"]
    orders = sorted(e["fields"]["id"] for e in events(kymo, "--event", "shop:checkout_begin", trace))
    assert sorted(int(attribute(span, "id")) for span in checkouts) == orders and orders
    assert all("shop:order_placed" in {e["name"] for e in span["events"]} for span in checkouts)
    spans = spans_of(kymo("convert", "--to", "otlp", "--with-syscalls", "--trace-id", "id", trace).out)
    checkouts = {span["spanId"]: span for span in spans if span["name"] == "shop:checkout"}
    assert all(int(span["traceId"], 16) == int(attribute(span, "id")) for span in checkouts.values()
               if attribute(span, "id") != "0")
    inside = collections.Counter(span.get("parentSpanId") for span in spans)
    assert all(inside[span] for span in checkouts)
    result = kymo("convert", "--to", "csv", "--trace-id", "x", "--fields", "id", trace, code=2)
    assert "--trace-id needs --to otlp" in result.err


# ---- Graphviz -------------------------------------------------------------------------------------


def test_dot_of_waits(kymo, convert, shared, tmp_path):
    """Graphviz draws it; the arrows are of wake-ups in the trace."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    out = convert("dot", trace)
    text = out.read_text()
    threads = {node: int(tid) for node, tid in re.findall(r"^  (t\d+) \[label=\".*\\n(\d+)\"\];$", text, re.M)}
    arrows = re.findall(r"^  (\w+) -> (t\d+) \[penwidth=.*\\n(\d+) times\"\];$", text, re.M)
    woken = collections.Counter(e["fields"]["tid"] for e in events(kymo, "--event", "sched_waking", trace))
    n = collections.Counter()
    for _, to, times in arrows:
        n[threads[to]] += int(times)
    assert n and all(n[tid] <= woken[tid] for tid in n)
    dot = shutil.which("dot")
    if not dot:
        pytest.skip("Graphviz is not installed: tools/install-deps test")
    picture = tmp_path / "waits.svg"
    subprocess.run([dot, "-Tsvg", "-o", picture, out], check=True, timeout=100)
    assert picture.read_text().count('class="edge"') == len(arrows)


# ---- hostile names --------------------------------------------------------------------------------

HOSTILE = r"""
import ctypes, threading, time
def run(name):
    ctypes.CDLL(None).prctl(15, name, 0, 0, 0)
    time.sleep(.05)
names = [b'"]};<b>', b"a'b\\", b'\xff\xfe\x01', b'</script>', b'%s%n{}', b'a;b c', b'a\tb->"', b'=cmd()']
threads = [threading.Thread(target=run, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_names_of_threads_are_no_syntax(kymo, convert, tmp_path):
    """A traced program chooses its threads' names: each format stays well-formed, in UTF-8."""
    trace = tmp_path / "hostile"
    kymo("record", "-k", "sched_switch,sched_waking", "-o", trace, "--", "/usr/bin/python3", "-c",
         HOSTILE)
    for form in ("chrome-json", "firefox"):
        assert "</script>" in str(json.loads(convert(form, trace).read_bytes().decode("utf-8")))
    text = convert("dot", trace).read_bytes().decode("utf-8")
    labels = re.findall(r'^  t\d+ \[label="((?:[^"\\]|\\.)*)\\n\d+"\];$', text, re.M)
    assert "???" in labels and '\\"]};<b>' in labels and "a'b\\\\" in labels


# ---- trace.dat ------------------------------------------------------------------------------------


def test_trace_dat_of_a_kernel(kymo, peer, convert, shared):
    """trace-cmd report has the same events at the same times, and Kymo's importer the same reports."""
    trace = f"{shared}/traces/lttng-kernel/kernel"
    out = convert("trace.dat", trace)
    text = peer("trace-cmd", "report", "-t", out).out
    lines = re.findall(r"^\s*(\S.*)-(\d+)\s+\[(\d+)\] (\d+)\.(\d{9}): (\w+):[ ]*(.*)$", text, re.M)
    told = [e for e in events(kymo, trace) if not e["event"].startswith("lttng_statedump_")]
    assert sorted((int(s + ns), int(cpu)) for _, _, cpu, s, ns, _, _ in lines) == \
        sorted((e["timestamp_ns"], e["packet"]["cpu_id"]) for e in told)
    switches = {(int(s + ns), int(cpu)): (int(tid), rest) for _, tid, cpu, s, ns, name, rest in lines
                if name == "sched_switch"}
    for event in told:
        if event["event"] == "sched_switch":
            tid, rest = switches[event["timestamp_ns"], event["packet"]["cpu_id"]]
            fields = event["fields"]
            assert tid == fields["prev_tid"]
            assert f"==> {fields['next_comm']}:{fields['next_tid']} [{fields['next_prio'] + 100}]" in rest
    assert table(kymo, out, "syscalls", "syscalls") == table(kymo, trace, "syscalls", "syscalls")
    assert table(kymo, out, "irq", "irqs")


def test_trace_dat_of_perf(kymo, peer, convert, tmp_path, shared):
    """What is imported can be exported; text longer than a page is cut, and programs have no such file."""
    path = foreign_files.perf_example(tmp_path / "perf.data")
    text = peer("trace-cmd", "report", convert("trace.dat", path)).out
    assert text.count("sched_switch:") == len(events(kymo, "--event", "sched_switch", path)) > 0
    result = kymo("convert", "--to", "trace.dat", "-o", tmp_path / "no", f"{shared}/traces/lttng-ust", code=1)
    assert "events of the kernel" in result.err and not (tmp_path / "no").exists()
