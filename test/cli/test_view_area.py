# SPDX-License-Identifier: MIT
"""Statistics of the selected area in the viewer, charts of reports, and rows of reports that lead to their place."""

import collections
import json
import time

import make_trace
import pytest

from test_view import PATIENCE_S, Viewer, address, browser, cache, info, page, rows_of, view  # noqa: F401: fixtures
from test_view_links import choose
from test_view_rows import ready

AREA = """Object.fromEntries(Array.from(document.querySelectorAll('.area[data-ready=true] table')).map(t => [t.dataset.area,
  Array.from(t.querySelectorAll('tbody tr')).map(r => Array.from(r.children).map(c => c.textContent))]))"""


def at(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}"


def area_of(view, begin, end, **words):
    ready(view)
    return view.get("area", begin=begin, end=end, **words)


def test_statistics_are_those_of_events_and_reports(view, info, kymo, reference, events):
    begin = info["begin"] + 2 * 10**8
    end = begin + 10**9
    found = area_of(view, begin, end)
    inside = collections.Counter(event.name for event in events if begin <= event.ns <= end)
    assert {name: n for name, n, *_ in found["names"]} == dict(inside) and found["events"] == inside.total()
    assert found["counted"] and found["exact"]
    filtered = area_of(view, begin, end, filter="prev_tid != 0")
    assert {name for name, *_ in filtered["names"]} == {"sched_switch"}
    assert 0 < filtered["events"] < inside["sched_switch"]
    # CPU time is that of the report; what the report cannot know, the history does not know.
    report = json.loads(kymo("report", "cpu", "--json", "--begin", at(begin), "--end", at(end), reference).out)
    times = {row["process"]["tid"]: row["cpu_time"] for row in report["reports"][0]["tables"][0]["rows"] if row["cpu_time"]}
    threads = {tid: active for _, tid, _, active, _ in found["threads"]}
    assert {tid for tid, ns in threads.items() if ns} == set(times)
    assert all(abs(threads[tid] - ns) <= 2 for tid, ns in times.items())
    assert all(sum(states) <= end - begin + 1 for *_, states in found["threads"])
    # Of every call in the area, time in the kernel or waiting.
    calls = {name.removeprefix("syscall_entry_") for name in inside if name.startswith("syscall_entry_")}
    missing = calls - {name for name, *_ in found["calls"]}
    assert missing <= {"exit", "exit_group", "rt_sigreturn", "unknown"}, missing  # they have no end
    assert any(kind == "queue" and low <= mean <= high for _, kind, _, _, low, mean, high in found["counters"])


def test_a_row_of_too_many_states_is_measured_by_pixels(kymo_bin, cache, tmp_path):  # noqa: F811
    """A thread that runs each other microsecond, more often than an answer reads one by one."""
    n = 160000
    make_trace.switches(tmp_path / "t", ((b"busy", 77) for _ in range(n)))
    viewer = Viewer(kymo_bin, "--no-browser", tmp_path / "t", env=cache)
    try:
        found = area_of(viewer, 0, 2000 * n)
        [(_, tid, name, active, _)] = found["threads"]
        assert (tid, name, found["exact"]) == (77, "busy", False)
        assert abs(active - 1000 * n) < 1000 * n / 50
    finally:
        viewer.end()


def test_requests_for_an_area_are_checked(view):
    for query in ("area", "area?begin=5&end=4", "area?begin=0&end=1&count=1", "area?begin=0&end=x"):
        assert view.ask(f"/{view.token}/api/{query}")[0] == 400, query
    found = area_of(view, -2**63, 2**63 - 1)
    assert found["events"] == view.counted()["total"]
    nothing = area_of(view, 0, 1)
    assert not nothing["events"] and not nothing["threads"] and nothing["names"] == []


def test_page_shows_the_selected_area(page, view, info):
    page.value("document.activeElement.blur()")
    page.key("w")
    page.key("w")
    page.until("location.hash.includes('b=')")
    page.key("m")
    shown = page.until(f"(a => a.Threads && a)({AREA})")
    begin, end = map(int, page.until("new URLSearchParams(location.hash.slice(1)).get('s')").split(","))
    wanted = area_of(view, begin, end)
    assert [row[0] for row in shown["Threads"]] == [f"{name or '?'} ({tid})" for _, tid, name, *_ in wanted["threads"][:12]]
    title = f"Events: {wanted['events']}"
    assert [row[:2] for row in shown[title]] == [[name, str(n)] for name, n, *_ in wanted["names"][:12]]
    assert [row[0] for row in shown["System calls"]] == [name for name, *_ in wanted["calls"][:12]]
    # A thread leads to its row.
    page.value("document.querySelector('[data-area=Threads] tbody tr').click()")
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('track') === '{wanted['threads'][0][0]}'")
    page.value("document.activeElement.blur()")
    page.key("Escape")
    page.until("!document.querySelector('.area')")
    page.until("document.getElementById('report').value === ''")


def test_rows_and_charts_of_reports_lead_to_their_place(page, view, info):
    choose(page, "report", "syscalls")
    page.until("document.querySelector('.report[data-ready=true] [data-table=top]')")
    report = view.get("report", method="POST", name="syscalls", begin=info["begin"], end=info["end"])
    tables = {table["name"]: table for table in report["reports"][0]["tables"]}
    # A distribution, of all calls and of one.
    label = "document.querySelector('[data-chart=freq] canvas')?.getAttribute('aria-label')"
    assert f"Distribution: {sum(row['count'] for row in tables['freq']['rows'])} in" in page.until(label)
    call = tables["freq"]["rows"][0]["syscall"]
    page.value(f"(s => {{ s.value = {json.dumps(call)}; s.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
               "(document.querySelector('[data-chart=freq] select'))")
    page.until(f"{label}?.includes('Distribution: "
               f"{sum(row['count'] for row in tables['freq']['rows'] if row['syscall'] == call)} in')")
    # The keyboard chooses a class; Enter shows what is in it, and nothing else. Screen readers hear of both.
    chart = "document.querySelector('[data-chart=freq] [role=group]')"
    page.until(f"/: arrows choose a class, Enter shows only what is in it$/.test({chart}?.getAttribute('aria-label'))")
    page.value(f"{chart}.focus()")
    classes = [row for row in tables["freq"]["rows"] if row["syscall"] == call]
    for key, place in (("End", -1), ("ArrowLeft", -2), ("Home", 0)):
        page.key(key)
        page.until(f"document.querySelector('[data-chart=freq] .note[role=status]').textContent.endsWith(': {classes[place]['count']}')")
    page.key("Enter")
    page.until(f"document.getElementById('report-least').value === '{classes[0]['from']}ns'"
               f" && document.getElementById('report-most').value === '{classes[0]['to'] - 1}ns'")
    short = view.get("report", method="POST", name="syscalls", begin=info["begin"], end=info["end"],
                     least=classes[0]["from"], most=classes[0]["to"] - 1)
    shown = sum(row["count"] for table in short["reports"][0]["tables"] if table["name"] == "freq" for row in table["rows"])
    assert 0 < shown < sum(row["count"] for row in tables["freq"]["rows"])
    page.until(f"{label}?.includes('Distribution: {shown} in')")
    page.value("[...document.querySelectorAll('#report-choice button')].find(b => b.textContent === 'Reset').click()")
    page.until(f"{label}?.includes('Distribution: {sum(row['count'] for row in tables['freq']['rows'])} in')")
    # The longest call: its time and its thread.
    ready(view)
    for _ in range(4):
        page.key("w")
    longest = tables["top"]["rows"][0]
    page.until("document.querySelector('[data-table=top] tbody tr.goes')")
    page.value("document.querySelector('[data-table=top] tbody tr').click()")
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{longest['begin']}'")
    page.until("new URLSearchParams(location.hash.slice(1)).get('track')")
    place = address(page)
    assert int(place["b"]) <= longest["begin"] and longest["end"] <= int(place["e"])
    track = next(row for row in view.get("tree")["rows"] if str(row[0]) == place["track"])
    assert track[2] == "thread" and track[3] == longest["process"]["tid"]
    # A series of many values.
    choose(page, "report", "io-log")
    page.until("document.querySelector('[data-chart=log] canvas')?.getAttribute('aria-label').includes('over time')")
    # The keyboard chooses values; dragging shows a part of the time.
    chart = "document.querySelector('[data-chart=log] .goes')"
    page.value(f"{chart}.focus()")
    said = set()
    for _ in range(2):
        page.key("ArrowRight")
        said.add(page.until(f"(t => /: /.test(t) && {json.dumps(sorted(said))}.indexOf(t) < 0 && t)(document.querySelector('[data-chart=log] .note').textContent)"))
    before = page.value("location.hash")
    page.key("Enter")
    page.until(f"location.hash !== {json.dumps(before)}")
    box = page.still(f"(r => [r.x, r.y, r.width, r.height])({chart}.getBoundingClientRect())")
    before = page.still("location.hash")
    for kind, part in (("mousePressed", 0.3), ("mouseMoved", 0.5), ("mouseReleased", 0.5)):
        page.call("Input.dispatchMouseEvent", type=kind, x=box[0] + part * box[2], y=box[1] + box[3] / 2, button="left", clickCount=1, buttons=1)
    page.until(f"location.hash !== {json.dumps(before)}")
