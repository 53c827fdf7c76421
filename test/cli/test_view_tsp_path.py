# SPDX-License-Identifier: MIT
"""kymo view --tsp: critical paths, which are outputs that a client makes from a thread."""

import json

import pytest

from test_view_tsp import cache, client, experiment, query, reference, server  # noqa: F401: fixtures

PATH = "kymo.critical-path"


def configuration(name="path", source="kymo.thread", **parameters):
    return {"name": name, "sourceTypeId": source, "parameters": parameters}


def wanted_of(kymo, reference, tid, *span):
    tables = json.loads(kymo("report", "critical-path", "--tid", tid, "-t", "log", "-t", "arrows", "--json", *span, reference).out)["reports"][0]["tables"]
    return {table["name"]: table["rows"] for table in tables}


def label(row):
    return row["cause"] + (f", {row['syscall']}" if row.get("syscall") else "")


@pytest.fixture
def path(client, experiment):
    made = client.call("createDerivedOutput", experiment["UUID"], PATH, configuration("time of 103", tid=103))
    yield made
    client.call("deleteDerivedOutput", experiment["UUID"], PATH, made["id"])


def test_path_is_that_of_the_report(client, experiment, path, kymo, reference):
    uuid, begin, end = experiment["UUID"], experiment["start"], experiment["end"]
    assert path["id"] == f"{PATH}.103" and path["name"] == "time of 103" and path["type"] == "TIME_GRAPH"
    assert path["parentId"] == PATH and path["capabilities"] == {"canDelete": True}
    wanted = wanted_of(kymo, reference, 103)
    tree = client.model("fetchTimeGraphTree", uuid, path["id"], query(begin, end))
    root, *rows = tree["entries"]
    assert root["labels"] == ["time of 103"] and not root["hasData"]
    ids = {row["labels"][0]: row["id"] for row in rows}
    assert list(ids) == list(dict.fromkeys(f"{one['process']['name']} ({one['process']['tid']})" for one in wanted["log"]))
    # With enough samples, each part is there, and the parts are the whole range.
    found = client.model("fetchTimeGraphStates", uuid, path["id"], query(begin, end, 65536, requested_items=list(ids.values())))
    parts = sorted((state["start"], state["end"], row["entryId"], state["label"]) for row in found["rows"] for state in row["states"])
    every = sorted((one["begin"], one["end"], ids[f"{one['process']['name']} ({one['process']['tid']})"], label(one)) for one in wanted["log"])
    assert len(every) > 50 and set(parts) <= set(every)
    shown = [one for one in every if one[1] - one[0] > 2 * (end - begin) / 65536]
    assert set(shown) <= set(parts) and len(shown) > 20
    # Few samples: few parts, whatever the path has.
    few = client.model("fetchTimeGraphStates", uuid, path["id"], query(begin, end, 10, requested_items=list(ids.values())))
    assert all(len(row["states"]) <= 12 for row in few["rows"])
    arrows = client.model("fetchTimeGraphArrows", uuid, path["id"], query(begin, end, 1000))
    assert sorted((arrow["start"], arrow["sourceId"], arrow["targetId"]) for arrow in arrows) == sorted(
        (one["time"], ids[f"{one['waker']['name']} ({one['waker']['tid']})"], ids[f"{one['process']['name']} ({one['process']['tid']})"])
        for one in wanted["arrows"] if one["waker"]["tid"] != one["process"]["tid"])
    start, stop, row, text = max(shown, key=lambda one: one[1] - one[0])
    element = {"elementType": "state", "time": start, "duration": stop - start}
    tip = client.model("fetchTimeGraphTooltip", uuid, path["id"], query(requested_times=[(start + stop) // 2], requested_items=[row],
                                                                        requested_element=element))
    assert tip["part"] == text and f"({tip['thread'].rsplit('(', 1)[1]}" in tip["thread"]
    styles = client.model("fetchStyles", uuid, path["id"], query())["styles"]
    assert all(state["style"]["parentKey"] in styles for row in found["rows"] for state in row["states"])


def test_path_of_a_range(client, experiment, kymo, reference):
    uuid = experiment["UUID"]
    begin, end = experiment["start"] + 10**8, experiment["start"] + 3 * 10**8
    made = client.call("createDerivedOutput", uuid, PATH, configuration(tid=104, start=begin, end=end))
    try:
        span = [word for option, ns in (("--begin", begin), ("--end", end)) for word in (option, f"{ns // 10**9}.{ns % 10**9:09}")]
        wanted = wanted_of(kymo, reference, 104, *span)["log"]
        tree = client.model("fetchTimeGraphTree", uuid, made["id"], query())
        assert (tree["entries"][0]["start"], tree["entries"][0]["end"]) == (begin, end)
        items = [entry["id"] for entry in tree["entries"]]
        found = client.model("fetchTimeGraphStates", uuid, made["id"], query(begin, end, 65536, requested_items=items))
        texts = {state["label"] for row in found["rows"] for state in row["states"]}
        assert texts and texts <= {label(one) for one in wanted}
        excluded = client.model("fetchTimeGraphStates", uuid, made["id"], query(
            begin, end, 65536, requested_items=items, filter_query_parameters={"filter_expressions_map": {"4": ["running"]}}))
        texts = {state["label"] for row in excluded["rows"] for state in row["states"]}
        assert texts and all("running" in text for text in texts)
    finally:
        client.call("deleteDerivedOutput", uuid, PATH, made["id"])


def test_paths_are_listed_and_removed(client, experiment, path):
    uuid = experiment["UUID"]
    again = client.call("createDerivedOutput", uuid, PATH, configuration("another name", tid=103))
    assert again["id"] == path["id"] and again["name"] == "time of 103"
    outputs = client.call("experimentOutputs", uuid)
    assert [one for one in outputs if one["id"] == path["id"]] == [path]
    assert next(one for one in outputs if one["id"] == PATH)["capabilities"] == {"canCreate": True}
    assert client.call("rest", "get", f"/experiments/{uuid}/outputs/{path['id']}") == path
    (kind,) = client.call("fetchOutputConfigurationTypes", uuid, PATH)
    assert kind["schema"]["required"] == ["tid"] and kind == client.call("fetchOutputConfigurationType", uuid, PATH, kind["id"])
    other = client.call("createDerivedOutput", uuid, PATH, configuration(tid=105))
    client.call("deleteDerivedOutput", uuid, PATH, other["id"])
    assert other["id"] not in [one["id"] for one in client.call("experimentOutputs", uuid)]
    client.call("deleteDerivedOutput", uuid, PATH, other["id"], code=404)
    client.call("fetchTimeGraphTree", uuid, other["id"], query(), code=404)


def test_wrong_configurations_are_refused(client, server, experiment, path):
    uuid = experiment["UUID"]
    for wrong in ({}, {"tid": -1}, {"tid": "103"}, {"tid": 2**40}, {"tid": 103, "start": 5}, {"tid": 103, "start": 5, "end": 4}):
        client.call("createDerivedOutput", uuid, PATH, configuration(**wrong), code=400)
    client.call("createDerivedOutput", uuid, PATH, configuration(source="another", tid=103), code=404)
    client.call("createDerivedOutput", uuid, "kymo.threads", configuration(tid=103), code=400)
    client.call("createDerivedOutput", uuid, "none", configuration(tid=103), code=404)
    client.call("deleteDerivedOutput", uuid, "kymo.threads", path["id"], code=404)
    client.call("fetchOutputConfigurationType", uuid, PATH, "another", code=404)
    # No such thread: the path says so when it is asked for.
    made = client.call("createDerivedOutput", uuid, PATH, configuration(tid=9999))
    assert "no thread 9999" in client.call("fetchTimeGraphTree", uuid, made["id"], query(), code=404)["detail"]
    client.call("deleteDerivedOutput", uuid, PATH, made["id"])
    # And there is an end to how many a client makes.
    many = [client.call("createDerivedOutput", uuid, PATH, configuration(tid=n))["id"] for n in range(1000, 1031)]
    assert "delete one" in client.call("createDerivedOutput", uuid, PATH, configuration(tid=2000), code=400)["detail"]
    for one in many:
        client.call("deleteDerivedOutput", uuid, PATH, one)
