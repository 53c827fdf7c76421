# SPDX-License-Identifier: MIT
"""kymo view --tsp: the Trace Server Protocol, with the clients' own library and the protocol's description as judges."""

import contextlib
import fcntl
import http.client
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import pytest

import make_trace
import oracle_figures
from kernel_trace import write
from test_perfetto import SPANS
from test_timeline import event, make_kernel, switch
from test_view import Viewer
from view_server import PATIENCE_S, ViewServer

TABLE = "org.eclipse.tracecompass.internal.provisional.tmf.core.model.events.TmfEventTableDataProvider"
HISTOGRAM = "org.eclipse.tracecompass.internal.tmf.core.histogram.HistogramDataProvider"
GRAPHS = ("kymo.cpus", "kymo.threads", "kymo.disks")
NEEDED = "tools/install-deps test brings it where the npm registry can be reached"


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Server(ViewServer):
    """A running `kymo view --tsp`."""

    def __init__(self, kymo_bin, *args, cache, **more):
        self.port = free_port()
        super().__init__(kymo_bin, "--tsp", "--port", self.port, *args, env={"XDG_CACHE_HOME": str(cache)}, **more)
        self.base = self.link
        assert self.base == f"http://127.0.0.1:{self.port}/tsp/api"

    def ask(self, method, path, body=None, headers=None, host="127.0.0.1"):
        """One request as it is; status, headers, body of the answer."""
        own = {} if body is None else {"Content-Type": "application/json", "Content-Length": str(len(body))}
        return self.request(method, path, body, {**own, **(headers or {})}, host)

    def post(self, path, parameters, code=200):
        status, _, body = self.ask("POST", "/tsp/api" + path, json.dumps({"parameters": parameters}).encode())
        assert status == code, (path, status, body)
        return json.loads(body)

    def get(self, path, code=200, method="GET"):
        status, headers, body = self.ask(method, "/tsp/api" + path)
        assert status == code and headers["Content-Type"] == "application/json", (path, status, body)
        return json.loads(body)


class Client:
    """The library of VS Code's and Theia's extensions, in node; each answer fits the protocol's description."""

    def __init__(self, root_dir, base):
        directory = os.path.join(root_dir, "test", "tsp")
        node = shutil.which("node")
        if not node:
            pytest.skip(f"node is not installed: {NEEDED}")
        if not os.path.isdir(os.path.join(directory, "node_modules", "tsp-typescript-client")):
            pytest.skip(f"tsp-typescript-client is not installed: {NEEDED}")
        self.process = subprocess.Popen([node, os.path.join(directory, "client.mjs"), base], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def call(self, *call, code=200):
        self.process.stdin.write(json.dumps(call) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        assert answer["problems"] == [], (call, answer["problems"][:3])
        assert answer["status"] == code, (call, answer["text"][:1000])
        assert answer["ok"] == (code == 200)
        if code == 200:
            assert answer["model"] is not None, (call, answer["text"][:1000])
        return answer["model"] if code == 200 else json.loads(answer["text"])

    def model(self, *call):
        """Of an output, which may not be complete yet."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            answer = self.call(*call)
            if answer["status"] == "COMPLETED":
                return answer["model"]
            assert answer["status"] == "RUNNING"
            time.sleep(0.05)
        raise AssertionError(f"{call} does not complete")

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def query(begin=None, end=None, n=None, **more):
    found = dict(more)
    if begin is not None:
        found["requested_timerange"] = {"start": begin, "end": end, **({"nbTimes": n} if n else {})}
    return {"query": found}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


BEGIN = 1795239038_865245630
CALLS = ("read", "write", "futex", "recvfrom", "nanosleep")


def make_load(path, n_events=8000):
    """Eight threads on two CPUs: they compute, call, wait, wake each other, and are interrupted."""
    chance, ns, found = random.Random(7), BEGIN, []
    running, calls, waiting, ready = [0, 0], {}, [], list(range(100, 108))
    name = {0: "swapper/0", **{tid: f"work-{tid}" for tid in ready}}
    for tid in ready:
        found.append(event(ns, "lttng_statedump_process_state", tid=tid, pid=tid - tid % 2, ppid=1, name=name[tid]))
    while len(found) < n_events:
        ns += chance.randrange(500, 200_000)
        cpu = chance.randrange(2)
        tid, what = running[cpu], chance.random()
        one = None
        if what < 0.35 or (not tid and what < 0.7):
            after = ready.pop(0) if ready else 0
            if after == tid == 0:
                continue
            state = 1 if tid in calls else 0
            if tid:
                (waiting if state else ready).append(tid)
            one = switch(ns, tid, after, state, cpu)._replace(fields={
                "prev_comm": name[tid] if tid else f"swapper/{cpu}", "prev_tid": tid, "prev_prio": 20, "prev_state": state,
                "next_comm": name[after] if after else f"swapper/{cpu}", "next_tid": after, "next_prio": 20})
            running[cpu] = after
        elif what < 0.75 and tid and tid not in calls:
            calls[tid] = chance.choice(CALLS)
            one = event(ns, f"syscall_entry_{calls[tid]}", fd=3)
        elif what < 0.9 and tid and tid in calls:
            one = event(ns, f"syscall_exit_{calls.pop(tid)}", ret=chance.randrange(-20, 100))
        elif waiting:
            woken = waiting.pop(chance.randrange(len(waiting)))
            ready.append(woken)
            one = event(ns, "sched_waking", comm=name[woken], tid=woken, prio=20, target_cpu=cpu)
        if one:
            found.append(one._replace(cpu=cpu))
        if what > 0.95:
            found.append(event(ns + 100, "irq_handler_entry", irq=24, name="eth0")._replace(cpu=cpu))
            found.append(event(ns + 300, "irq_handler_exit", irq=24, ret=1)._replace(cpu=cpu))
    return write(path, found, whole=True)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """Instead of other tracers' traces: one that is made here."""
    return make_load(tmp_path_factory.mktemp("load") / "kernel")


@pytest.fixture(scope="module")
def events(kymo, reference):
    return oracle_figures.load(kymo("convert", "--to", "json", reference).out)


@pytest.fixture(scope="module")
def server(kymo_bin, reference, cache):
    running = Server(kymo_bin, reference, cache=cache)
    yield running
    running.end()


@pytest.fixture(scope="module")
def client(root_dir, server):
    made = Client(root_dir, server.base)
    yield made
    made.close()


@pytest.fixture(scope="module")
def experiment(client):
    """The one of the command line, when it is indexed."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        (found,) = client.call("fetchExperiments")
        if found["indexingStatus"] == "COMPLETED":
            return found
        time.sleep(0.05)
    raise AssertionError("indexing does not end")


@pytest.fixture
def serve(kymo_bin, root_dir, tmp_path):
    """serve(args...) -> a server and a client, of this test."""
    with contextlib.ExitStack() as stack:
        def call(*args, **more):
            running = Server(kymo_bin, *args, cache=tmp_path / "cache", **more)
            stack.callback(running.end)
            client = Client(root_dir, running.base)
            stack.callback(client.close)
            return running, client
        yield call


# ---- traces and experiments ------------------------------------------------------------------


def test_server_tells_of_itself(client, kymo):
    assert client.call("checkHealth") == {"status": "UP"}
    found = client.call("fetchIdentifier")
    assert found["productId"] == "kymo" and found["tspVersion"] == "0.6.0" and found["os"] == "Linux"
    assert found["version"] in kymo("--version").out
    assert client.call("fetchConfigurationSourceTypes") == []


def test_trace_of_the_command_line_is_there(client, experiment, reference, events):
    (trace,) = client.call("fetchTraces")
    times = [one.ns for one in events]
    assert trace["path"] == os.path.realpath(reference) and trace["name"] == "kernel"
    assert (trace["start"], trace["end"]) == (min(times), max(times)) == (experiment["start"], experiment["end"])
    assert trace["nbEvents"] == experiment["nbEvents"] == len(events)
    assert trace["indexingStatus"] == "COMPLETED"
    assert experiment["traces"] == [trace] == [client.call("fetchTrace", trace["UUID"])]
    assert client.call("fetchExperiment", experiment["UUID"]) == experiment


def test_traces_are_opened_and_closed(serve, tmp_path):
    """As the clients do: a trace, an experiment of it; clashes of names; both are removed."""
    one, two = make_kernel(tmp_path / "one"), make_trace.sample(tmp_path / "two")
    _, client = serve()
    assert client.call("fetchTraces") == [] and client.call("fetchExperiments") == []
    trace = client.call("openTrace", query(uri=str(one), name="t"))
    assert trace["indexingStatus"] == "CLOSED" and trace["nbEvents"] == 0 and trace["start"] == 1000 and trace["end"] == 1099
    assert client.call("openTrace", query(uri=str(one), name="t")) == trace
    clash = client.call("openTrace", query(uri=str(two), name="t"), code=409)
    assert clash["trace"] == trace
    other = client.call("openTrace", query(uri=str(two)))
    assert other["name"] == "two" and len(client.call("fetchTraces")) == 2
    made = client.call("createExperiment", query(name="e", traces=[trace["UUID"]]))
    assert client.call("createExperiment", query(name="e", traces=[trace["UUID"]]))["UUID"] == made["UUID"]
    clash = client.call("createExperiment", query(name="e", traces=[other["UUID"]]), code=409)
    assert clash["experiment"]["UUID"] == made["UUID"]
    same = client.call("createExperiment", query(name="e2", traces=[trace["UUID"]]))
    assert len(client.call("fetchExperiments")) == 2
    assert "experiment" in client.call("deleteTrace", trace["UUID"], code=409)["title"]
    client.model("fetchTimeGraphTree", made["UUID"], "kymo.threads", query())
    for uuid in (made["UUID"], same["UUID"]):
        assert client.call("deleteExperiment", uuid)["UUID"] == uuid
        client.call("fetchExperiment", uuid, code=404)
    assert client.call("deleteTrace", trace["UUID"])["UUID"] == trace["UUID"]
    client.call("deleteTrace", trace["UUID"], code=404)
    assert os.path.exists(os.path.join(one, "metadata"))  # only the server forgets it


def test_experiment_of_two_traces(serve, kymo, tmp_path):
    one = make_kernel(tmp_path / "one")
    two = write(tmp_path / "two", [switch(1500, 0, 9), event(1600, "irq_handler_entry", irq=3, name="x")])
    _, client = serve(tmp_path / "one", tmp_path / "two")
    (both,) = client.call("fetchExperiments")
    assert (both["start"], both["end"]) == (1000, 1600) and len(both["traces"]) == 2
    traces = {trace["name"]: trace["UUID"] for trace in client.call("fetchTraces")}
    single = client.call("createExperiment", query(name="second", traces=[traces["two"]]))
    assert (single["start"], single["end"]) == (1500, 1600)
    lines = client.model("fetchTableLines", both["UUID"], TABLE, query(requested_table_index=0, requested_table_count=100))
    assert lines["size"] == len(kymo("print", one, two).out.splitlines()) == 16
    client.call("createExperiment", query(name="none", traces=[]), code=400)
    client.call("createExperiment", query(name="none", traces=["0" * 8 + "-0000-0000-0000-" + "0" * 12]), code=404)


def test_trace_of_the_command_line_comes_back(serve, kymo, tmp_path):
    """An archive, which only the command line opens: clients may remove it, and open it again."""
    archive = tmp_path / "one.tar.zst"
    kymo("report", "cpu", "--archive", archive, make_kernel(tmp_path / "one"), code=None)
    running, client = serve(archive)
    (trace,), (experiment,) = client.call("fetchTraces"), client.call("fetchExperiments")
    assert trace["path"] == str(archive) and (trace["start"], trace["end"]) == (1000, 1099)
    client.call("deleteExperiment", experiment["UUID"])
    client.call("deleteTrace", trace["UUID"])
    assert client.call("fetchTraces") == [] and client.call("fetchExperiments") == []
    client.call("fetchTrace", trace["UUID"], code=404)
    client.call("createExperiment", query(name="e", traces=[trace["UUID"]]), code=404)
    again = client.call("openTrace", query(uri=str(archive), name="again"))
    assert again["name"] == "again" and (again["start"], again["end"]) == (1000, 1099)
    made = client.call("createExperiment", query(name="e", traces=[again["UUID"]]))
    assert client.model("fetchTimeGraphTree", made["UUID"], "kymo.threads", query())["entries"]
    assert running.get("/traces") == [client.call("fetchTrace", again["UUID"])]


# ---- graphs ----------------------------------------------------------------------------------


def pixels_of(runs, n):
    """The state and its label of each pixel of a row of kymo timeline."""
    found = [("unknown", None)] * n
    for run in runs:
        state = "several" if run["state"] == "unknown" else run["state"]
        found[run["begin_px"]:run["end_px"]] = [(state, run)] * (run["end_px"] - run["begin_px"])
    return found


def state_at(states, ns):
    return next((state for state in states if state["start"] <= ns < state["end"]), None)


def compare_rows(client, uuid, timeline, begin, end, n):
    """States of all rows are those of kymo timeline, in the middle of each pixel; labels are its names."""
    found = json.loads(timeline("--width", n, "--begin", f"{begin // 10**9}.{begin % 10**9:09}",
                                "--end", f"{end // 10**9}.{end % 10**9:09}").out)
    assert found["width_px"] == n
    rows = {row["id"]: row for row in found["rows"]}
    n_compared = n_states = 0
    for graph in GRAPHS:
        tree = client.model("fetchTimeGraphTree", uuid, graph, query(begin, end))
        ids = [entry["id"] for entry in tree["entries"]]
        states = client.model("fetchTimeGraphStates", uuid, graph, query(begin, end, n, requested_items=ids))
        for row in states["rows"]:
            ends = [ns for state in row["states"] for ns in (state["start"], state["end"])]
            assert ends == sorted(ends) and all(begin <= ns <= end + 1 for ns in ends)
            pixels = pixels_of(rows[row["entryId"]]["runs"], n)
            n_states += len(row["states"])
            for x, (kind, run) in enumerate(pixels):
                middle = begin + (end + 1 - begin) * (2 * x + 1) // (2 * n)
                state = state_at(row["states"], middle)
                found_kind = state["style"]["parentKey"] if state else "unknown"
                near = pixels[max(0, x - 1):x + 2]
                if any(one[1] is not run for one in near):
                    # The border of a state is exact in one, and at the edge of the pixel in the other.
                    assert found_kind in [one[0] for one in near] or "several" in [one[0] for one in near]
                    continue
                if kind != "several":
                    assert found_kind == kind, (row["entryId"], x, run, state)
                if run and "name" in run:
                    assert state["label"] == run["name"]
                if kind == "runs":
                    assert state["label"] == f"{rows[run['row']]['name']} ({rows[run['row']]['number']})"
                n_compared += run is not None
    return n_compared, n_states


def test_states_are_those_of_timeline(client, experiment, kymo, reference, cache):
    def timeline(*args):
        return kymo("timeline", "--json", *args, reference, env={"XDG_CACHE_HOME": str(cache)})

    begin, end = experiment["start"], experiment["end"]
    for part, n in ((1, 1000), (20, 700), (500, 333)):
        middle = begin + (end - begin) // 3
        first = begin if part == 1 else middle
        last = end if part == 1 else middle + (end - begin) // part
        n_compared, n_states = compare_rows(client, experiment["UUID"], timeline, first, last, n)
        assert n_compared > 1000 and n_states > 20


def test_states_of_a_real_trace(serve, kymo, lttng_kernel, tmp_path):
    """Of another tracer, if its trace is here."""
    trace = os.path.join(lttng_kernel, "kernel")

    def timeline(*args):
        return kymo("timeline", "--json", *args, trace, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})

    _, client = serve(trace)
    (experiment,) = client.call("fetchExperiments")
    n_compared, n_states = compare_rows(client, experiment["UUID"], timeline, experiment["start"], experiment["end"], 1500)
    assert n_compared > 10000 and n_states > 1000


def test_states_of_a_made_trace_are_exact(serve, kymo, tmp_path):
    """Where every state is wider than a sample, its times are those of the events."""
    trace = make_kernel(tmp_path / "t")
    _, client = serve(trace)
    (experiment,) = client.call("fetchExperiments")
    tree = client.model("fetchTimeGraphTree", experiment["UUID"], "kymo.threads", query())
    assert tree["entries"][0]["start"] == 1000 and tree["entries"][0]["parentId"] == -1
    ids = {entry["labels"][0]: entry["id"] for entry in tree["entries"]}
    parents = {entry["id"]: entry["parentId"] for entry in tree["entries"]}
    assert parents[ids["t7 (7)"]] == ids["process t7 (7)"] and all(one in parents for one in parents.values() if one >= 0)
    # Samples of 3 ns: borders lie in the middle of them.
    found = client.model("fetchTimeGraphStates", experiment["UUID"], "kymo.threads",
                         query(1000, 1099, 34, requested_items=[ids["t7 (7)"], 10**6]))
    (row,) = found["rows"]
    assert [(s["start"], s["end"], s["style"]["parentKey"], s.get("label")) for s in row["states"]][:6] == [
        (1000, 1005, "user", None), (1005, 1015, "syscall", "read"), (1015, 1020, "user", None), (1020, 1030, "syscall", "futex"),
        (1030, 1045, "lock", "futex"), (1045, 1060, "wait-cpu", None)]
    arrows = client.model("fetchTimeGraphArrows", experiment["UUID"], "kymo.threads", query(1000, 1099, 100))
    assert arrows == [{"sourceId": ids["t8 (8)"], "targetId": ids["t7 (7)"], "start": 1045, "end": 1060}]
    element = {"elementType": "state", "time": 1030, "duration": 15}
    tooltip = client.model("fetchTimeGraphTooltip", experiment["UUID"], "kymo.threads",
                           query(requested_times=[1037], requested_items=[ids["t7 (7)"]], requested_element=element))
    assert tooltip["state"] == "lock" and tooltip["name"] == "futex" and tooltip["begin"].endswith("00:00:00.000001030")
    assert tooltip["thread"] == "t7 (7)"
    for expressions, dim, left in (({"1": ["read"]}, {"syscall": 0, "user": 1}, None), ({"4": ["read"]}, None, 1),
                                   ({"4": ["syscall", "duration > 9ns"]}, None, 2), ({"4": ["no such"]}, None, 0)):
        found = client.model("fetchTimeGraphStates", experiment["UUID"], "kymo.threads", query(
            1000, 1099, 34, requested_items=[ids["t7 (7)"]],
            filter_query_parameters={"strategy": "SAMPLED", "filter_expressions_map": expressions}))
        states = found["rows"][0]["states"]
        if dim:
            assert all(s["tags"] == (s.get("label") != "read") for s in states)
        else:
            assert len(states) == left


def test_spans_of_programs_are_rows(serve, tmp_path):
    """Below their thread, a row for each depth."""
    packet = make_trace.Packet(1000)
    packet.tick(1000, 1, b"outer")
    packet.tick(1020, 2, b"inner", 4)
    for number, at in ((3, 1040), (3, 1060), (4, 1080)):
        packet.head(number, at)
        packet.body += (0).to_bytes(4, "little")
    packet.odd(1099)
    _, client = serve(make_trace.write(str(tmp_path / "t"), {"c": [packet]}, SPANS))
    (experiment,) = client.call("fetchExperiments")
    entries = client.model("fetchTimeGraphTree", experiment["UUID"], "kymo.threads", query())["entries"]
    ids, begin = [entry["id"] for entry in entries], experiment["start"]
    assert set(ids) >= {entry["parentId"] for entry in entries} - {-1}
    found = client.model("fetchTimeGraphStates", experiment["UUID"], "kymo.threads",
                         query(begin, experiment["end"], 100, requested_items=ids))
    states = [[(s["start"] - begin, s["end"] - begin, s["label"], s["style"]["parentKey"]) for s in row["states"]] for row in found["rows"]]
    assert [(0, 60, "work", "span")] in states and [(20, 40, "work", "span")] in states


def test_status_is_running_while_the_history_is_built(serve, kymo, tmp_path):
    """Another process has the lock of the index: the server waits for it, and says so."""
    trace = make_kernel(tmp_path / "t")
    kymo("timeline", trace, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    (index,) = (tmp_path / "cache" / "kymo").iterdir()
    index.unlink()
    whole = query(1000, 1099, 50, requested_items=[1, 2, 3])
    with open(index.with_suffix(".part"), "w", encoding="ascii") as part:
        fcntl.flock(part, fcntl.LOCK_EX)
        _, client = serve(trace)
        (experiment,) = client.call("fetchExperiments")
        uuid = experiment["UUID"]
        assert experiment["indexingStatus"] == "RUNNING"
        element = {"elementType": "state", "time": 1030, "duration": 15}
        for call, left in ((("fetchTimeGraphTree", uuid, "kymo.threads", whole), "entries"),
                           (("fetchTimeGraphStates", uuid, "kymo.threads", whole), "rows"),
                           (("fetchXY", uuid, "kymo.cpu-usage", whole), "series")):
            found = client.call(*call)
            assert found["status"] == "RUNNING" and found["model"][left] == []
        assert client.call("fetchTimeGraphArrows", uuid, "kymo.threads", whole)["status"] == "RUNNING"
        assert client.call("fetchTimeGraphTooltip", uuid, "kymo.threads", query(
            requested_times=[1030], requested_items=[1], requested_element=element))["status"] == "RUNNING"
        # What needs no history is there.
        assert client.model("fetchTableLines", uuid, TABLE, query(requested_table_index=0, requested_table_count=99))["size"] == 14
    assert client.model("fetchTimeGraphTree", uuid, "kymo.threads", whole)["entries"]
    (experiment,) = client.call("fetchExperiments")
    assert experiment["indexingStatus"] == "COMPLETED"


def test_styles_cover_all_states(client, experiment):
    styles = client.model("fetchStyles", experiment["UUID"], "kymo.cpus", query())["styles"]
    for graph in GRAPHS:
        entries = client.model("fetchTimeGraphTree", experiment["UUID"], graph, query())["entries"]
        found = client.model("fetchTimeGraphStates", experiment["UUID"], graph, query(
            experiment["start"], experiment["end"], 500, requested_items=[entry["id"] for entry in entries]))
        assert {state["style"]["parentKey"] for row in found["rows"] for state in row["states"]} <= set(styles)
        assert {entry["style"]["parentKey"] for entry in entries} <= {"unknown"} <= set(styles)


# ---- charts, tables, trees -------------------------------------------------------------------


def test_histogram_counts_all_events(client, experiment, events):
    begin, end = experiment["start"], experiment["end"]
    tree = client.model("fetchXYTree", experiment["UUID"], HISTOGRAM, query(begin, end))
    total = next(entry for entry in tree["entries"] if entry.get("isDefault"))
    assert {entry["parentId"] for entry in tree["entries"]} == {-1, 0}
    found = client.model("fetchXY", experiment["UUID"], HISTOGRAM, query(begin, end, 100, requested_items=[total["id"]]))
    (series,) = found["series"]
    assert sum(series["yValues"]) == len(events) and len(series["xValues"]) == 100
    assert series["xValues"][0] == begin and series["xValues"] == sorted(series["xValues"]) and series["xValues"][-1] <= end


def test_cpu_usage_is_that_of_the_report(client, experiment, kymo, reference):
    begin, end = experiment["start"], experiment["end"]
    tree = client.model("fetchXYTree", experiment["UUID"], "kymo.cpu-usage", query(begin, end))
    ids = {entry["labels"][0]: entry["id"] for entry in tree["entries"] if entry["parentId"] == 0}
    assert {"Total", "CPU 0", "CPU 1"} == set(ids)
    found = client.model("fetchXY", experiment["UUID"], "kymo.cpu-usage", query(begin, end, 2000, requested_items=list(ids.values())))
    means = {series["seriesName"]: sum(series["yValues"]) / 2000 for series in found["series"]}
    assert means["Total"] == pytest.approx((means["CPU 0"] + means["CPU 1"]) / 2, abs=0.01)
    report = json.loads(kymo("report", "cpu", "--json", reference).out)
    table = next(table for table in report["reports"][0]["tables"] if any(column["class"] == "cpu" for column in table["columns"]))
    for row in table["rows"]:
        usage = next(row[column["name"]] for column in table["columns"] if column["class"] == "ratio")
        assert means[f"CPU {row['cpu']}"] == pytest.approx(100 * usage, abs=1)


def test_counters_are_curves(serve, tmp_path):
    """Two threads wait for the CPU from 1045 and 1050 on, until 1060 and 1070."""
    trace = write(tmp_path / "t", [
        switch(1000, 0, 9), event(1045, "sched_waking", comm="t7", tid=7, prio=20, target_cpu=0),
        event(1050, "sched_waking", comm="t8", tid=8, prio=20, target_cpu=0), switch(1060, 9, 7, state=1), switch(1070, 7, 8, state=1),
        switch(1080, 8, 0, state=1), switch(1099, 0, 9)])
    _, client = serve(trace)
    (experiment,) = client.call("fetchExperiments")
    tree = client.model("fetchXYTree", experiment["UUID"], "kymo.counters", query())["entries"]
    names, parents = ({entry["id"]: entry[key] for entry in tree} for key in ("labels", "parentId"))
    (queue,) = [entry["id"] for entry in tree if entry["hasData"] and names[parents[entry["id"]]] == ["CPU 0"]]
    (series,) = client.model("fetchXY", experiment["UUID"], "kymo.counters",
                             query(1000, 1099, 100, requested_items=[queue, 0, 10**6]))["series"]
    assert series["seriesName"].startswith("CPU 0: ")
    assert series["yValues"][45:80] == [1] * 5 + [2] * 10 + [1] * 10 + [0] * 10


def test_durations_are_a_generic_chart(client, experiment, kymo, reference):
    """How many calls and interrupts took how long: those of the reports."""
    uuid, begin, end = experiment["UUID"], experiment["start"], experiment["end"]
    tree = client.model("fetchGenericXYTree", uuid, "kymo.durations", query(begin, end))["entries"]
    ids = {entry["labels"][0]: entry["id"] for entry in tree if entry["parentId"] == 0}
    assert len(ids) == 6 and [entry["labels"][0] for entry in tree if entry.get("isDefault")] == ["System calls"]
    wanted = [ids["System calls"], ids["Interrupts"], 99, -1, ids["Interrupts"]]
    found = client.model("fetchGenericXY", uuid, "kymo.durations", query(begin, end, requested_items=wanted))
    calls, irqs = found["series"]
    assert (calls["seriesName"], irqs["seriesName"]) == ("System calls", "Interrupts") and calls["xRanges"] == irqs["xRanges"]
    ranges = [(int(one["start"]), int(one["end"])) for one in calls["xRanges"]]
    assert all(a <= b for a, b in ranges) and all(after[0] == before[1] + 1 for before, after in zip(ranges, ranges[1:]))
    reports = json.loads(kymo("report", "syscalls,irq,softirq", "--json", "--limit", "0", reference).out)["reports"]
    counts = {report["name"]: sum(row["count"] for table in report["tables"] if table["name"] == "freq" for row in table["rows"])
              for report in reports}
    assert sum(calls["yValues"]) == pytest.approx(counts["syscalls"], rel=0.02)
    assert sum(irqs["yValues"]) == pytest.approx(counts["irq"] + counts["softirq"], abs=4)
    middle = (begin + end) // 2
    (half,) = client.model("fetchGenericXY", uuid, "kymo.durations", query(middle, end, requested_items=[ids["System calls"]]))["series"]
    assert 0 < sum(half["yValues"]) < sum(calls["yValues"])
    client.call("fetchGenericXY", uuid, "kymo.cpu-usage", query(begin, end, requested_items=[1]), code=404)
    client.call("fetchXY", uuid, "kymo.durations", query(begin, end, requested_items=[1]), code=404)


def test_table_is_that_of_print(client, experiment, kymo, reference):
    lines = kymo("print", "--no-delta", "--fields", "none", reference).out.splitlines()
    uuid = experiment["UUID"]
    columns = client.model("fetchTableColumns", uuid, TABLE, query())
    ids = {column["name"]: column["id"] for column in columns}
    wanted = [ids["Timestamp"], ids["Event type"], ids["Contents"]]
    found = client.model("fetchTableLines", uuid, TABLE, query(requested_table_index=1000, requested_table_count=700,
                                                               requested_table_column_ids=wanted))
    assert found["size"] == len(lines) and found["lowIndex"] == 1000 and found["columnIds"] == wanted
    assert [line["index"] for line in found["lines"]] == list(range(1000, 1700))
    for line in found["lines"]:
        clock, name, text = (cell["content"] for cell in line["cells"])
        assert lines[line["index"]] == f"[{clock[11:]}] {name}: {text}"
    tail = client.model("fetchTableLines", uuid, TABLE, query(requested_table_index=len(lines) - 1, requested_table_count=9))
    assert len(tail["lines"]) == 1
    past = client.model("fetchTableLines", uuid, TABLE, query(requested_table_index=10**15, requested_table_count=9))
    assert past["lines"] == [] and past["size"] == len(lines)


def test_table_by_time_search_and_filter(client, experiment, events, kymo, reference):
    uuid, names = experiment["UUID"], [one.name for one in events]
    columns = client.model("fetchTableColumns", uuid, TABLE, query())
    ids = {column["name"]: column["id"] for column in columns}
    times = [one.ns for one in events]
    found = client.model("fetchTableLines", uuid, TABLE, query(requested_times=[times[500]], requested_table_count=2))
    assert found["lowIndex"] == times.index(times[500])
    ns = [cell["content"] for cell in found["lines"][0]["cells"]][ids["Timestamp ns"]]
    assert ns == str(times[500])

    def search(index, direction, pattern, count=3):
        return client.model("fetchTableLines", uuid, TABLE, query(
            requested_table_index=index, requested_table_count=count, table_search_direction=direction,
            table_search_expressions={str(ids["Event type"]): pattern}))

    matches = [i for i, name in enumerate(names) if name.startswith("sched_w") and name.endswith("g")]
    for i in (0, len(names) // 2, matches[-1]):
        found = search(i, "NEXT", "^sched_w.*g$")
        assert found["lowIndex"] == next(k for k in matches if k >= i) and found["lines"][0]["tags"] > 0
        found = search(i, "PREVIOUS", "^sched_(waking|xx)$")
        before = [k for k in matches if k <= i]
        assert (found["lines"][0]["index"] == before[-1]) if before else not found["lines"]
        assert all((line["tags"] > 0) == (names[line["index"]] == "sched_waking") for line in found["lines"])
    assert search(0, "NEXT", "no such")["lines"] == [] and search(10**15, "PREVIOUS", "sched")["lines"] != []
    # Several columns; a name that no event has; what only the contents tell.
    both = {str(ids["Event type"]): "sched_switch", str(ids["Contents"]): "next_comm = \"swapper/1\""}
    wanted = [i for i, one in enumerate(events) if one.name == "sched_switch" and one.fields["next_comm"] == "swapper/1"]
    for i, direction in ((0, "NEXT"), (len(events) // 2, "NEXT"), (len(events) // 2, "PREVIOUS"), (wanted[0] - 1, "PREVIOUS")):
        for expressions in (both, {str(ids["Contents"]): "prev_tid.*" + both[str(ids["Contents"])]}):
            found = client.model("fetchTableLines", uuid, TABLE, query(
                requested_table_index=i, requested_table_count=2, table_search_direction=direction, table_search_expressions=expressions))
            near = [k for k in wanted if (k >= i if direction == "NEXT" else k <= i)]
            assert [line["index"] for line in found["lines"]][:1] == (near[:1] if direction == "NEXT" else near[-1:])
    for wrong in ("(", "a{2}", "[", "*", "\\q", "(" * 100, "a" * 5000):
        client.call("fetchTableLines", uuid, TABLE, query(requested_table_index=0, requested_table_count=1, table_search_direction="NEXT",
                                                          table_search_expressions={"1": wrong}), code=400)
    expression = 'prev_tid == 0 && next_comm =~ "*"'
    wanted = kymo("print", "--filter", expression, reference).out.splitlines()
    found = client.model("fetchTableLines", uuid, TABLE, query(requested_table_index=5, requested_table_count=10, kymo_filter=expression))
    assert found["size"] == len(wanted) and len(found["lines"]) == 10


def test_reports_are_trees(client, experiment, kymo, reference):
    uuid = experiment["UUID"]
    outputs = client.call("experimentOutputs", uuid)
    assert {output["type"] for output in outputs} == {"TABLE", "TREE_TIME_XY", "TREE_GENERIC_XY", "TIME_GRAPH", "DATA_TREE", "NONE"}
    reports = [output["id"] for output in outputs if output["type"] == "DATA_TREE"]
    assert {"kymo.report.cpu", "kymo.report.sched", "kymo.report.syscalls"} <= set(reports)
    for output in outputs:
        assert client.call("rest", "get", f"/experiments/{uuid}/outputs/{output['id']}") == output
        types = client.call("fetchOutputConfigurationTypes", uuid, output["id"])
        assert [one["id"] for one in types] == (["kymo.thread"] if output["id"] == "kymo.critical-path" else [])
    wanted = json.loads(kymo("report", "syscalls", "--json", reference).out)["reports"][0]["tables"]
    tree = client.model("fetchDataTree", uuid, "kymo.report.syscalls", query())
    tops = [entry for entry in tree["entries"] if entry["parentId"] == -1]
    assert [top["labels"][0].split(": ")[0] for top in tops] == [table["title"] for table in wanted]
    for top, table in zip(tops, wanted):
        rows = [entry["labels"] for entry in tree["entries"] if entry["parentId"] == top["id"]]
        assert len(rows) == len(table["rows"])
        for labels, row in zip(rows, table["rows"]):
            assert len(labels) == len(tree["headers"])
            for label, column in zip(labels, table["columns"]):
                if isinstance(row[column["name"]], (str, int)):
                    assert label == str(row[column["name"]])
    begin = experiment["start"] + 10**9
    part = client.model("fetchDataTree", uuid, "kymo.report.syscalls", query(begin, begin + 10**8))
    assert len(part["entries"]) < len(tree["entries"])


def test_reports_on_causes_are_trees(client, experiment, kymo, reference):
    uuid = experiment["UUID"]
    begin, end = experiment["start"] + 10**8, experiment["start"] + 5 * 10**8
    span = [word for option, ns in (("--begin", begin), ("--end", end)) for word in (option, f"{ns // 10**9}.{ns % 10**9:09}")]
    offered = {output["id"]: output["name"] for output in client.call("experimentOutputs", uuid)}
    for name, command, title in (("why", ["why"], "why"), ("breakdown", ["breakdown", "--comm", "*"], "breakdown of threads"),
                                 ("heatmap.syscalls", ["heatmap", "--of", "syscall:*"], "heatmap of system calls")):
        assert offered[f"kymo.report.{name}"] == f"Report: {title}"
        tree = client.model("fetchDataTree", uuid, f"kymo.report.{name}", query(begin, end))
        wanted = json.loads(kymo("report", *command, "--json", *span, reference).out)["reports"][0]["tables"]
        tops = [entry for entry in tree["entries"] if entry["parentId"] == -1]
        if len(wanted) == 1:
            assert len(tops) == len(wanted[0]["rows"]) > 0
            continue
        assert [top["labels"][0].split(": ")[0] for top in tops] == [table["title"] for table in wanted]
        for top, table in zip(tops, wanted):
            assert sum(entry["parentId"] == top["id"] for entry in tree["entries"]) == len(table["rows"])


def test_call_stacks_are_a_tree(serve, kymo, tmp_path):
    trace = tmp_path / "trace"
    work = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; ls -lR /etc >/dev/null"
    done = kymo("record", "--sample", "999", "-o", trace, "--", "sh", "-c", work, code=None)
    if done.code:
        pytest.skip(f"no samples: {done.err.strip()[:200]}")
    _, client = serve(trace)
    until = time.monotonic() + PATIENCE_S
    while (experiment := client.call("fetchExperiments")[0])["indexingStatus"] != "COMPLETED" and time.monotonic() < until:
        time.sleep(0.05)
    tree = client.model("fetchDataTree", experiment["UUID"], "kymo.report.flame", query())
    tables = json.loads(kymo("report", "flame", "--json", trace).out)["reports"][0]["tables"]
    ids = {entry["id"]: entry for entry in tree["entries"]}
    top = next(entry for entry in tree["entries"] if entry["parentId"] == -1)
    last = next(entry["id"] for entry in tree["entries"] if entry["parentId"] == -1 and entry is not top) if len(tables) > 1 else 10**9
    own = [entry for entry in tree["entries"] if top["id"] < entry["id"] < last]
    depths = []
    for entry in own:
        depth = 0
        while ids[entry["parentId"]] is not top:
            entry, depth = ids[entry["parentId"]], depth + 1
        depths.append(depth)
    wanted = next(table for table in tables if table["name"] == "tree")["rows"]
    assert depths == [row["depth"] for row in wanted] and max(depths) > 1


def test_annotations_are_losses_and_marks(serve, tmp_path):
    trace = make_trace.sample(tmp_path / "t", packets=3)
    _, client = serve(trace)
    (experiment,) = client.call("fetchExperiments")
    uuid, begin, end = experiment["UUID"], experiment["start"], experiment["end"]
    assert client.model("fetchMarkerSets", uuid) == []
    assert client.model("fetchAnnotationsCategories", uuid, "kymo.threads")["annotationCategories"] == ["Lost events"]
    found = client.model("fetchAnnotations", uuid, "kymo.threads", query(begin, end, 10**4, requested_items=[0]))
    losses = found["annotations"]["Lost events"]
    assert losses and all(one["label"] in ("7 lost events", "lost packets") and one["entryId"] == -1 for one in losses)
    assert all(begin <= one["time"] <= end for one in losses)
    assert client.model("fetchAnnotations", uuid, "kymo.threads",
                        query(begin, end, requested_marker_categories=[]))["annotations"] == {}


def test_marks_of_triggers_are_annotations(serve, tmp_path, kymo):
    trace = make_trace.sample(tmp_path / "t")
    (trace / "metadata").write_text(make_trace.METADATA.replace('name = "tick"', 'name = "kymo:mark"'))
    _, client = serve(trace)
    (experiment,) = client.call("fetchExperiments")
    uuid, begin, end = experiment["UUID"], experiment["start"], experiment["end"]
    assert client.model("fetchAnnotationsCategories", uuid, "kymo.cpus")["annotationCategories"] == ["Lost events", "Marks"]
    found = client.model("fetchAnnotations", uuid, "kymo.cpus", query(begin, end, 65536, requested_marker_categories=["Marks"]))
    lines = [json.loads(line) for line in kymo("convert", "--to", "json", trace).out.splitlines()]
    times = {line["timestamp_ns"] for line in lines if line["event"] == "kymo:mark"}
    marks = found["annotations"]["Marks"]
    assert len(marks) > 5 and all(mark["duration"] == 0 and mark["label"].startswith("{") for mark in marks)
    assert {mark["time"] for mark in marks} <= times


def test_annotations_of_a_late_range_are_its_marks(serve, tmp_path):
    """However many marks are before it."""
    packet = make_trace.Packet(0)
    for number in range(12000):
        packet.tick(1000 * number, number)
    metadata = make_trace.METADATA.replace('name = "tick"', 'name = "kymo:mark"')
    _, client = serve(make_trace.write(tmp_path / "t", {"c_0": [packet]}, metadata))
    (experiment,) = client.call("fetchExperiments")
    begin = experiment["start"] + 11990 * 1000
    found = client.model("fetchAnnotations", experiment["UUID"], "kymo.cpus",
                         query(begin, begin + 4000, 65536, requested_marker_categories=["Marks"]))
    assert [mark["time"] - begin for mark in found["annotations"]["Marks"]] == [0, 1000, 2000, 3000, 4000]


def test_bookmarks_are_the_notes_of_the_page(client, experiment, kymo_bin, reference, cache):
    path = f"/experiments/{experiment['UUID']}/bookmarks"
    file = reference.with_name(reference.name + ".kymo-notes.json")
    assert client.call("rest", "get", path) == [] and not file.exists()
    wanted = {"name": "slow <b>", "start": experiment["start"], "end": experiment["start"] + 5}
    made = client.call("rest", "post", path, {"parameters": wanted})
    assert made == {**wanted, "uuid": made["uuid"]}
    other = client.call("rest", "post", path, {"parameters": {**wanted, "start": 7, "end": 8}})
    assert other["uuid"] != made["uuid"] and client.call("rest", "get", path) == [other, made]
    changed = client.call("rest", "put", f"{path}/{made['uuid']}", {"parameters": {**wanted, "name": "x", "start": 1, "end": 2}})
    assert changed == {"uuid": made["uuid"], "name": "x", "start": 1, "end": 2}
    assert client.call("rest", "get", f"{path}/{made['uuid']}") == changed
    assert client.call("rest", "delete", f"{path}/{made['uuid']}") == changed
    client.call("rest", "get", f"{path}/{made['uuid']}", code=404)
    client.call("rest", "post", path, {"parameters": {**wanted, "end": 0}}, code=400)
    assert file.stat().st_mode & 0o777 == 0o600
    page = Viewer(kymo_bin, "--no-browser", reference, env={"XDG_CACHE_HOME": str(cache)})
    (note,) = page.get("notes")["notes"]
    page.end()
    assert (note["begin"], note["end"], note["text"]) == (7, 8, "slow <b>")
    # Another server knows it by the same id.
    again = Server(kymo_bin, reference, cache=cache)
    assert again.get(path) == [other]
    again.end()
    assert client.call("rest", "delete", f"{path}/{other['uuid']}") == other
    assert client.call("rest", "get", path) == []


# ---- what is refused -------------------------------------------------------------------------


def test_only_clients_get_answers(server):
    health, traces = "/tsp/api/health", "/tsp/api/traces"
    for host in (f"localhost:{server.port}", f"[::1]:{server.port}", f"127.0.0.1:{server.port}"):
        assert server.ask("GET", health, headers={"Host": host})[0] == 200
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1", "localhost", f"127.0.0.1:{server.port}0",
                 f"localhost.evil.example:{server.port}", None):
        assert server.ask("GET", health, headers={"Host": host})[0] in (400, 403)
    webview = "vscode-webview://1abcdef0-uuid"
    status, headers, _ = server.ask("GET", health, headers={"Origin": webview})
    assert status == 200 and headers["Access-Control-Allow-Origin"] == webview and headers["Vary"] == "Origin"
    assert server.ask("GET", health)[1]["Access-Control-Allow-Origin"] is None
    for origin in ("https://evil.example", "null", "", f"http://localhost:{server.port}", f"http://127.0.0.1:{server.port}",
                   "http://localhost:3000", "vscode-webview://", "vscode-webview://a b", "vscode-webview:", "file://"):
        for method, path, body in (("GET", health, None), ("POST", traces, b"{}"), ("OPTIONS", traces, None),
                                   ("DELETE", traces + "/" + "0" * 8 + "-0000-0000-0000-" + "0" * 12, None)):
            status, headers, _ = server.ask(method, path, body, {"Origin": origin})
            assert status == 403 and headers["Access-Control-Allow-Origin"] is None, (method, origin)
    for site in ("cross-site", "same-site", "same-origin"):
        assert server.ask("GET", health, headers={"Sec-Fetch-Site": site})[0] == 403
    status, headers, body = server.ask("OPTIONS", traces, headers={
        "Origin": webview, "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"})
    assert status == 204 and body == b"" and headers["Access-Control-Allow-Origin"] == webview
    assert "POST" in headers["Access-Control-Allow-Methods"] and "Content-Type" in headers["Access-Control-Allow-Headers"]
    # Forms of a page can send these types without asking.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx", None):
        assert server.ask("POST", traces, b"{}", {"Content-Type": kind})[0] == 415
    assert server.ask("POST", traces, b"{}", {"Content-Type": "application/json; charset=utf-8"})[0] == 400


def test_other_origins_by_option(kymo_bin, kymo, cache):
    theia = "http://localhost:3000"
    running = Server(kymo_bin, "--origin", theia, cache=cache)
    status, headers, _ = running.ask("GET", "/tsp/api/health", headers={"Origin": theia})
    assert status == 200 and headers["Access-Control-Allow-Origin"] == theia
    assert running.ask("GET", "/tsp/api/health", headers={"Origin": "http://localhost:30000"})[0] == 403
    running.end()
    for wrong in ("*", "localhost:3000", "http://localhost:3000/", "http://", "ftp://x"):
        assert "is not the origin of a page" in kymo("view", "--tsp", "--origin", wrong, code=2).err
    assert "--origin needs --tsp" in kymo("view", "--origin", theia, "x", code=2).err
    assert "which trace?" in kymo("view", code=2).err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        failed = kymo("view", "--tsp", "--port", taken.getsockname()[1], code=1)
        assert "cannot listen on port" in failed.err and "another program has this port" in failed.err


ASK = """import http.client, sys
connection = http.client.HTTPConnection("localhost", int(sys.argv[1]), timeout=60)
try:
    connection.request("GET", "/tsp/api/health")
    print(connection.getresponse().status)
except (http.client.HTTPException, OSError) as error:
    print("closed")
"""


# Requests whose sender does not wait.
HURRY = """import socket, sys
body = b'{"parameters": {"uri": "TRACE", "name": "hurry"}}'
for _ in range(300):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as sock:
        sock.sendall(b"POST /tsp/api/traces HTTP/1.1\\r\\nHost: localhost:" + sys.argv[1].encode() +
                     b"\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(body) + body)
"""


@pytest.fixture
def others(kymo_bin):
    """A directory that all users can reach, with a program."""
    if os.getuid() != 0:
        pytest.skip("only root can become other users")
    directory = tempfile.mkdtemp(prefix="kymo-tsp-")
    os.chmod(directory, 0o755)
    shutil.copy(kymo_bin, os.path.join(directory, "kymo"))
    yield directory
    shutil.rmtree(directory)


def test_other_users_get_no_answers(others):
    """A server of root, and one of user 65534: root may ask each, other users only their own."""
    trace = os.path.join(others, "trace")
    make_trace.sample(trace)

    def ask(server, uid):
        return subprocess.run([sys.executable, "-c", ASK, str(server.port)], user=uid, group=uid, extra_groups=[], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip()

    kymo = os.path.join(others, "kymo")
    for owner, answers in ((0, {0: "200", 65534: "closed", 4711: "closed"}), (65534, {0: "200", 65534: "200", 4711: "closed"})):
        cache = os.path.join(others, f"cache-{owner}")
        running = Server(kymo, cache=cache, user=owner, group=owner, extra_groups=[])
        assert {uid: ask(running, uid) for uid in answers} == answers
        # The kernel knows no owner of a connection that was closed at once.
        give(trace, owner)
        subprocess.run([sys.executable, "-c", HURRY.replace("TRACE", trace), str(running.port)], user=4711, group=4711,
                       extra_groups=[], check=True)
        assert [trace["name"] for trace in running.get("/traces")] == []
        assert running.end().count("gets no answers: the server is for user") == 1


def give(path, uid):
    os.chown(path, uid, uid)
    for directory, names, files in os.walk(path):
        for name in names + files:
            os.chown(os.path.join(directory, name), uid, uid, follow_symlinks=False)


def test_only_own_traces_are_opened(others):
    """Without TRACE: traces with all files of the user. Links lead to no other ones."""
    own, foreign = os.path.join(others, "own"), os.path.join(others, "foreign")
    half, link, inner = (os.path.join(others, name) for name in ("half", "link", "inner"))
    make_trace.sample(own)
    make_trace.sample(foreign)
    shutil.copytree(own, half)
    os.mkdir(inner)
    for name in os.listdir(half):
        if name.startswith("channel_1"):
            os.unlink(os.path.join(half, name))
            os.symlink(os.path.join(foreign, name), os.path.join(half, name))
    os.symlink(foreign, link)
    os.symlink(foreign, os.path.join(inner, "x"))
    many = os.path.join(others, "many")
    os.mkdir(many)
    for path in (own, half, inner, many):
        give(path, 65534)
    for i in range(20001):
        os.mknod(os.path.join(many, str(i)))
    running = Server(os.path.join(others, "kymo"), cache=os.path.join(others, "cache"), user=65534, group=65534, extra_groups=[])
    assert running.post("/traces", {"uri": own})["path"] == own
    assert running.post("/traces", {"uri": own + "/../own/."})["path"] == own
    for path in (foreign, link, half, inner, others, "/", "/proc/1"):
        answer = running.post("/traces", {"uri": path, "name": path}, code=403)
        assert "does not open this path" in answer["detail"]
    assert "too many files" in running.post("/traces", {"uri": many}, code=400)["detail"]
    assert "absolute" in running.post("/traces", {"uri": "own"}, code=400)["detail"]
    running.post("/traces", {"uri": own + "/nothing"}, code=404)
    running.post("/traces", {"uri": own + "/metadata"}, code=404)
    assert len(running.get("/traces")) == 1
    running.end()


def test_only_traces_of_the_command_line_are_opened(kymo_bin, cache, tmp_path):
    all_of, other = tmp_path / "all", tmp_path / "all-other"
    inside = make_trace.sample(all_of / "a" / "b")
    make_trace.sample(other)
    running = Server(kymo_bin, all_of, cache=cache)
    assert running.post("/traces", {"uri": str(inside)})["path"] == str(inside)
    for path in (other, tmp_path, all_of / ".." / "all-other", tmp_path / "nothing", "/etc/passwd"):
        assert "below the paths of its command line" in running.post("/traces", {"uri": str(path)}, code=403)["detail"]
    running.post("/traces", {"uri": str(all_of / "nothing")}, code=403)
    (all_of / "a" / "bad").mkdir()
    (all_of / "a" / "bad" / "metadata").write_text("/* CTF 1.8 */ nonsense")
    running.post("/traces", {"uri": str(all_of / "a" / "bad")}, code=406)
    running.end()


def test_malformed_requests_are_refused(server, experiment):
    outputs = f"/experiments/{experiment['UUID']}/outputs"
    states, lines = f"{outputs}/timeGraph/kymo.threads/states", f"{outputs}/table/{TABLE}/lines"
    good = {"requested_timerange": {"start": 0, "end": 1}, "requested_items": [1]}
    for path in (states, lines, "/traces", "/experiments", f"{outputs}/kymo.cpus/annotations"):
        for body in (b"", b"{", b"[]", b"null", b"{}", b'{"parameters": null}', b'{"parameters": []}', b'{"parameters": {}} x', b"\xff\xfe",
                     b'{"parameters": {}}\0', b"[" * 100000, b'{"parameters":' * 100, b'{"parameters": {"uri": 1, "name": [], "traces": 5}}'):
            status, headers, answer = server.ask("POST", "/tsp/api" + path, body)
            assert status == 400 and headers["Content-Type"] == "application/json" and "title" in json.loads(answer), (path, body[:50])
    for change in ({"requested_timerange": 5}, {"requested_timerange": {}}, {"requested_timerange": {"start": "0", "end": 1}},
                   {"requested_timerange": {"start": 0, "end": 1.5}}, {"requested_timerange": {"start": 1, "end": 0}},
                   {"requested_timerange": {"start": 0, "end": 1, "nbTimes": 0}}, {"requested_timerange": {"start": 0, "end": 10**18, "nbTimes": 10**9}},
                   {"requested_timerange": {"start": 0, "end": 1, "nbTimes": -1}}, {"requested_timerange": {"start": -2**63, "end": 2**63 - 1}},
                   {"requested_timerange": {"start": 0, "end": 2**64}}, {"requested_items": None}, {"requested_items": "1"},
                   {"requested_items": [1, "2"]}, {"requested_items": [2**63]}, {"filter_query_parameters": 5},
                   {"filter_query_parameters": {"filter_expressions_map": {"2": []}}},
                   {"filter_query_parameters": {"filter_expressions_map": {"1": "x"}}},
                   {"requested_timerange": {"start": 0, "end": 10**18, "nbTimes": 65536}, "requested_items": list(range(300))}):
        assert "detail" in server.post(states, {**good, **change}, code=400)
    for change in ({}, {"requested_table_count": -1}, {"requested_table_count": 10**9}, {"requested_table_count": 1, "requested_table_index": -1},
                   {"requested_table_count": 1, "requested_times": [1, 2]}, {"requested_table_count": 1, "requested_times": []},
                   {"requested_table_count": 1, "requested_table_column_ids": [99]}, {"requested_table_count": 1, "requested_table_column_ids": [0] * 99},
                   {"requested_table_count": 1, "table_search_expressions": {"x": "y"}},
                   {"requested_table_count": 1, "table_search_expressions": {"77": "y"}}, {"requested_table_count": 1, "table_search_direction": "UP"},
                   {"requested_table_count": 1, "kymo_filter": "name ~= 5"}):
        server.post(lines, change, code=400)
    wide = {"requested_timerange": {"start": -2**60, "end": 2**60, "nbTimes": 65536}, "requested_items": [0, 1, 2, 2**62, -5]}
    assert server.post(states, wide)["status"] == "COMPLETED"
    for method, path in (("GET", "/tsp"), ("GET", "/"), ("GET", "/tsp/api"), ("GET", "/tsp/api/"), ("GET", "/tsp/api/healthx"),
                         ("GET", "/tsp/api/experiments/x"), ("GET", "/tsp/api" + outputs + "/none"), ("GET", "/tsp/api//health"),
                         ("GET", "/tsp/api" + outputs + "/..%2f.."), ("GET", "/tsp/api/traces/" + "a" * 5000)):
        assert server.ask(method, path)[0] == 404, path
    for wrong in (outputs + "/timeGraph/none/tree", outputs + f"/timeGraph/{TABLE}/tree", outputs + "/XY/kymo.cpus/tree",
                  outputs + "/data/kymo.report.none/tree", f"/experiments/{'0' * 8}-0000-0000-0000-{'0' * 12}/outputs/kymo.cpus/style"):
        server.post(wrong, {}, code=404)
    for method in ("PUT", "DELETE", "HEAD", "PATCH"):
        assert server.ask(method, "/tsp/api/health")[0] in (404, 405)
    assert server.get("/health")["status"] == "UP"


def test_long_bodies_are_refused(server):
    traces = "/tsp/api/traces"
    assert server.ask("POST", traces, b"x", {"Content-Length": str(10**12)})[0] == 413
    assert server.ask("POST", traces, b"x", {"Content-Length": "9" * 40})[0] in (400, 411, 413)
    assert server.ask("POST", traces, b"0\r\n\r\n", {"Content-Length": None, "Transfer-Encoding": "chunked"})[0] == 411
    assert server.ask("GET", traces, b"hello", {"Content-Length": "5"})[0] == 400
    times = b'{"parameters": {"requested_times": [' + b"1," * 120000 + b"1]}}"
    assert server.ask("POST", traces, times)[0] == 400
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        assert server.ask("POST", traces, b"x" * (1 << 20))[0] == 413
    assert server.get("/health")["status"] == "UP"


def test_many_clients_at_the_same_time(kymo_bin, reference, tmp_path):
    """Experiments come and go while others ask, and while the history is built."""
    running = Server(kymo_bin, cache=tmp_path / "cache")
    trace = running.post("/traces", {"uri": os.path.realpath(reference)})
    troubles, n_answers = [], [0]

    def work(name):
        try:
            for _ in range(6):
                uuid = running.post("/experiments", {"name": name, "traces": [trace["UUID"]]})["UUID"]
                whole = {"requested_timerange": {"start": trace["start"], "end": trace["end"], "nbTimes": 300}}
                for path, more in (("timeGraph/kymo.threads/states", {"requested_items": list(range(60))}), ("timeGraph/kymo.cpus/tree", {}),
                                   (f"XY/{HISTOGRAM}/xy", {"requested_items": [1]}), ("timeGraph/kymo.threads/arrows", {}),
                                   (f"table/{TABLE}/lines", {"requested_table_index": 0, "requested_table_count": 50})):
                    status, _, body = running.ask("POST", f"/tsp/api/experiments/{uuid}/outputs/{path}",
                                                  json.dumps({"parameters": {**whole, **more}}).encode())
                    # Another one may have removed it.
                    assert status in (200, 404) and json.loads(body)
                    n_answers[0] += 1
                running.ask("DELETE", f"/tsp/api/experiments/{uuid}")
        except Exception as error:  # pylint: disable=broad-except
            troubles.append(error)

    threads = [threading.Thread(target=work, args=(f"e{i % 4}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert troubles == [] and n_answers[0] == 8 * 6 * 5
    running.end()
