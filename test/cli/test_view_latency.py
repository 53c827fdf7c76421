# SPDX-License-Identifier: MIT
"""Durations in the viewer: the map of time and duration, its members, and the way to one."""

import collections
import json

import pytest

from test_view import address, browser, cache, info, page, view  # noqa: F401: fixtures
from test_view_links import choose
from test_view_rows import ready


@pytest.fixture(scope="module")
def whole(view, info):
    ready(view)
    return {"begin": info["begin"], "end": info["end"]}


@pytest.fixture(scope="module")
def reports(kymo, reference):
    found = json.loads(kymo("report", "syscalls,irq,softirq", "--json", "--limit", "0", reference).out)
    return {one["name"]: {table["name"]: table["rows"] for table in one["tables"]} for one in found["reports"]}


def members(view, name, whole, least=0, most=2**63 - 1, count=512, **words):
    return view.get("members", name=name, least=least, most=most, count=count, **whole, **words)


def test_calls_are_those_of_the_report(view, whole, reports):
    found = view.get("latency", name="calls", count=60, **whole)
    counts = collections.Counter()
    for row in reports["syscalls"]["freq"]:
        counts[row["syscall"]] += row["count"]
    # What a thread did when it was not on a CPU yet is unknown, and so are some calls at the begin.
    names = {name: n for name, n, _ in found["names"]}
    # An exit has no end for the report; here it ends with the thread.
    extra = {name: n for name, n in names.items() if name not in counts and name not in ("exit", "exit_group")}
    assert sum(extra.values()) <= 5, extra
    assert sum(abs(counts[name] - names.get(name, 0)) for name in counts) <= 0.02 * counts.total()
    assert sum(n for _, _, n in found["cells"]) == found["n"] == sum(names.values())
    # The longest ones, to the nanosecond.
    longest = {(row["begin"], row["end"], row["syscall"]) for row in
               sorted(reports["syscalls"]["top"], key=lambda row: row["duration"], reverse=True)[:10]}
    listed = members(view, "calls", whole)
    assert listed["n"] == found["n"]
    sizes = [end - begin for begin, end, *_ in listed["members"]]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == 512
    assert longest <= {(begin, end, name) for begin, end, _, name in listed["members"]}
    tree = {row[0]: row for row in view.get("tree")["rows"]}
    assert all(tree[row][2] == "thread" for _, _, row, _ in listed["members"])


def test_interrupts_are_those_of_the_reports(view, whole, reports):
    wanted = sum(row["count"] for name in ("irq", "softirq") for row in reports[name]["freq"])
    found = view.get("latency", name="irqs", count=30, **whole)
    assert found["n"] == pytest.approx(wanted, abs=4)
    for name, n, _ in found["names"]:
        one = view.get("latency", name="irqs", count=30, text=name, **whole)
        assert one["n"] == n and one["names"] == found["names"]


def test_a_cell_has_its_members(view, whole):
    for name in ("calls", "waits", "ready", "irqs", "requests"):
        found = view.get("latency", name=name, count=20, **whole)
        assert found["n"], name
        column, kind, n = max(found["cells"], key=lambda cell: cell[2])
        size = (whole["end"] - whole["begin"] + 1) / 20
        inside = {"begin": whole["begin"] + int(column * size), "end": whole["begin"] + int((column + 1) * size)}
        least, most = found["classes"][kind], found["classes"][kind + 1]
        listed = members(view, name, inside, int(-(-least // 1)), int(-(-most // 1)))
        assert listed["n"] == pytest.approx(n, abs=2)
        assert all(least <= end - begin < most and inside["begin"] < end <= inside["end"] + 1
                   for begin, end, *_ in listed["members"])


def test_requests_for_durations_are_checked(view, whole):
    assert "no durations" in view.get("latency", name="nothing", count=1, begin=0, end=1, code=404)["error"]
    for query in ("latency", "latency?name=calls&begin=0&end=1", "latency?name=calls&begin=0&end=1&count=513",
                  "latency?name=calls&begin=0&end=1&count=0", "members?name=calls&begin=0&end=1&count=1&least=0",
                  "members?name=calls&begin=0&end=1&count=1&least=-1&most=1", "latency?name=%20&begin=0&end=1&count=1"):
        assert view.ask(f"/{view.token}/api/{query}")[0] == 400, query
    for begin, end in ((-2**63, 2**63 - 1), (-2**63, -2**63), (2**63 - 1, 2**63 - 1)):
        view.get("latency", name="calls", begin=begin, end=end, count=512)
        view.get("members", name="waits", begin=begin, end=end, count=1, least=0, most=1)
    assert view.get("latency", name="spans", count=5, **whole)["n"] == 0


def test_page_shows_durations_and_goes_to_one(page, view, info, whole):
    choose(page, "report", "latency")
    page.until("document.querySelector('.latency[data-ready=true] .heat canvas')")
    found = view.get("latency", name="calls", count=60, **whole)
    label = "document.querySelector('.heat canvas').getAttribute('aria-label')"
    assert page.until(label).startswith(f"{found['n']} durations in")
    name, n, _ = found["names"][0]
    choose(page, "latency-name", name)
    page.until(f"{label}.startsWith('{n} durations in')")
    choose(page, "latency-kind", "waits")
    waits = view.get("latency", name="waits", count=60, **whole)
    page.until(f"{label}.startsWith('{waits['n']} durations in')")
    # The class of the longest ones, by the keyboard.
    page.value("document.querySelector('.heat').focus()")
    for _ in range(64):
        page.key("ArrowUp")
    top = max(kind for _, kind, _ in waits["cells"])
    listed = members(view, "waits", whole, int(waits["classes"][top]), count=100)
    page.until(f"document.querySelector('[data-members]')?.dataset.members === '{listed['n']}'")
    begin, end, row, _ = listed["members"][0]
    page.value("document.querySelector('[data-members] tbody tr').click()")
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('track') === '{row}'")
    page.until(f"Number(new URLSearchParams(location.hash.slice(1)).get('b')) < {end}")
    place = address(page)
    assert int(place["b"]) <= max(begin, info["begin"]) and min(end, info["end"]) <= int(place["e"])
    # The map stays while one looks at a member.
    page.until(f"{label}.startsWith('{waits['n']} durations in')")
