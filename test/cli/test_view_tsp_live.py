# SPDX-License-Identifier: MIT
"""kymo view --tsp of a recording that goes on: the clients' own library sees it grow, and then complete."""

import time

import pytest

from test_view_live import forks, recording, until  # noqa: F401 (a fixture)
from test_view_tsp import HISTOGRAM, TABLE, Client, Server, query


@pytest.fixture
def serve(kymo_bin, root_dir, tmp_path):
    opened = []

    def start(*words):
        server = Server(kymo_bin, *words, cache=tmp_path)
        client = Client(root_dir, server.base)
        opened[:0] = [client.close, server.end]
        return server, client

    yield start
    for close in opened:
        close()


def bars(client, uuid, begin, end):
    """The sums of the histogram's curves."""
    tree = client.model("fetchXYTree", uuid, HISTOGRAM, query(begin, end))
    items = [entry["id"] for entry in tree["entries"] if entry["hasData"]]
    found = client.model("fetchXY", uuid, HISTOGRAM, query(begin, end, 100, requested_items=items))
    return sum(sum(one["yValues"]) for one in found["series"])


def forked(client, uuid, begin, end):
    """How many threads have states in the range; entries without states are not counted."""
    tree = client.model("fetchTimeGraphTree", uuid, "kymo.threads", query(begin, end))
    items = [entry["id"] for entry in tree["entries"] if entry["hasData"]]
    states = client.model("fetchTimeGraphStates", uuid, "kymo.threads", query(begin, end, 500, requested_items=items))
    return sum(1 for row in states["rows"] if row["states"])


def grows(client, uuid):
    """Events come, and all views have them; what the library said last."""
    before = until(lambda: (e := client.call("fetchExperiment", uuid))["end"] and e)  # it has an event
    assert before["indexingStatus"] == "RUNNING" and [trace["indexingStatus"] for trace in before["traces"]] == ["RUNNING"]
    for _ in range(2):
        forks()
        after = until(lambda: (e := client.call("fetchExperiment", uuid))["end"] > before["end"] and e["nbEvents"] > before["nbEvents"] and e)
        assert after["indexingStatus"] == "RUNNING" and after["start"] == before["start"]
        assert after["traces"][0]["end"] >= after["end"]
        assert before["start"] < after["end"] < time.time_ns()
        before = after
    return after


def is_complete(client, uuid):
    found = client.call("fetchExperiment", uuid)
    return found["indexingStatus"] == "COMPLETED" and found


def check_end(client, uuid, kymo, trace):
    """All of it, as a server that opens the complete trace says."""
    end = until(lambda: is_complete(client, uuid))
    lines = kymo("print", "--no-delta", "--fields", "none", trace).out.splitlines()
    assert end["nbEvents"] == len(lines) and end["traces"][0]["indexingStatus"] == "COMPLETED"
    assert end["traces"][0]["end"] == end["end"]
    table = client.model("fetchTableLines", uuid, TABLE, {"query": {"requested_table_index": len(lines) - 1, "requested_table_count": 5}})
    assert len(table["lines"]) == 1
    assert bars(client, uuid, end["start"], end["end"]) == len(lines)
    return end


def test_recording_of_the_command_line(serve, recording, kymo, tmp_path):  # noqa: F811
    forks()
    _, client = serve(f"seen-{tmp_path.name}")
    until(lambda: client.call("fetchExperiments")[0]["end"])
    uuid = client.call("fetchExperiments")[0]["UUID"]
    seen = grows(client, uuid)
    # Views answer with what is there: they do not wait for the end.
    n_threads = until(lambda: forked(client, uuid, seen["start"], seen["end"]))
    assert bars(client, uuid, seen["start"], seen["end"]) > 100
    seen = grows(client, uuid)
    assert until(lambda: (n := forked(client, uuid, seen["start"], seen["end"])) > n_threads and n)
    assert recording.stop()
    end = check_end(client, uuid, kymo, tmp_path / "out")
    assert end["traces"][0]["properties"]["domain"] == "kernel"
    assert forked(client, uuid, end["start"], end["end"]) >= n_threads


def test_recording_that_a_client_opens(serve, recording, kymo, tmp_path):  # noqa: F811
    forks()
    until(lambda: (tmp_path / "out").exists() and kymo("info", tmp_path / "out", code=None).code == 0)
    _, client = serve()
    trace = client.call("openTrace", query(uri=str(tmp_path / "out"), name="now"))
    uuid = client.call("createExperiment", query(name="now", traces=[trace["UUID"]]))["UUID"]
    grows(client, uuid)
    # Another one of the same traces, which goes first.
    other = client.call("createExperiment", query(name="again", traces=[trace["UUID"]]))["UUID"]
    assert client.call("deleteExperiment", other)["UUID"] == other
    assert recording.stop()
    check_end(client, uuid, kymo, tmp_path / "out")


def test_what_does_not_follow(serve, recording, tmp_path):  # noqa: F811
    forks()
    _, client = serve("--no-follow", tmp_path / "out")
    uuid = client.call("fetchExperiments")[0]["UUID"]
    first = until(lambda: is_complete(client, uuid))
    forks()
    time.sleep(1)
    assert client.call("fetchExperiment", uuid)["end"] == first["end"]
