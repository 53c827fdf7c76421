# SPDX-License-Identifier: MIT
"""Reports of the viewer that are about something that one chooses: members, periods, threads, durations, two traces."""

import json
import shutil
import urllib.parse

import pytest

from test_live_viewer import relay  # noqa: F401: a fixture
from test_view import Viewer, address, browser, cache, info, page, view  # noqa: F401: fixtures
from test_view_links import choose
from test_view_save import at

SYNC = 'sleep : $event == "syscall_entry_futex" : $event == "syscall_exit_futex"'
REPORT = ".report[data-ready=true]"


@pytest.fixture
def part(info):
    """A range in the trace."""
    return info["begin"] + 10**8, info["begin"] + 8 * 10**8


def fill(page, **words):
    for name, text in words.items():
        page.value(f"(e => {{ e.value = {json.dumps(text)}; e.dispatchEvent(new Event('input', {{bubbles: true}})); }})"
                   f"(document.getElementById('report-{name}'))")
    page.value("document.getElementById('report-choice').requestSubmit()")


def tables(text):
    return {table["name"]: table["rows"] for table in json.loads(text)["reports"][0]["tables"]}


def compare(viewer, side, **words):
    status, _, body = viewer.ask(f"/{viewer.token}/{side}/api/report?{urllib.parse.urlencode({'name': 'compare', **words})}", "POST")
    assert status == 200, body
    return json.loads(body)["reports"][0]


def command(kymo, name, part, reference, *more):
    return tables(kymo("report", name, "--json", *more, "--begin", at(part[0]), "--end", at(part[1]), reference).out)


def test_all_reports_of_the_command_are_in_the_page(page, kymo):
    own = [line.split()[0] for line in kymo("report", "--list").out.splitlines() if line.startswith("  ")]
    offered = page.value("Array.from(document.getElementById('report').options).map(o => o.value)")
    assert len(own) > 20 and set(own) <= set(offered), set(own) - set(offered)


def test_heat_map_of_chosen_members(page, view, kymo, reference, part):
    """The map, the figures and the members of a cell are those of the command; the address restores them."""
    page.value(f"location.hash = 'b={part[0]}&e={part[1]}'")
    choose(page, "report", "heatmap")
    assert "such as syscall:read" in page.until(f"document.querySelector('{REPORT} [role=status]')?.textContent")
    fill(page, of="syscall:*", least="2us")
    wanted = command(kymo, "heatmap", part, reference, "--of", "syscall:*", "--min", "2us")
    label = f"{wanted['axis'][0]['count']} durations in {sum(1 for row in wanted['map'] if row['count'])} classes and 48 columns of time"
    page.until(f"document.querySelector('{REPORT} .heat canvas')?.getAttribute('aria-label') === {json.dumps(label)}")
    page.until(f"document.querySelectorAll('{REPORT} [data-table=top] tbody tr').length === {len(wanted['top'])}")
    page.value("document.querySelector('.heat').focus()")
    for key in ("ArrowUp", "ArrowRight"):
        page.key(key)
    shown = page.until("(n => n.length && n)(Array.from(document.querySelectorAll('[data-table=members] tbody tr td:first-child')).map(e => e.title))")
    # The lowest row with members.
    cells = [(column + 1, row["row"]) for row in wanted["map"] for column, n in enumerate(row["counts"]) if n]
    cells = [cell for cell in cells if cell[1] == cells[-1][1]][:1]
    members = [[str(row["member"]) for row in command(
        kymo, "heatmap", part, reference, "--of", "syscall:*", "--min", "2us", "-t", "members", "-n", "0", "--cell", f"{column},{row}")["members"]]
        for column, row in cells]
    assert shown in [one[:50] for one in members]
    page.until("location.hash.includes('about=')")
    words = address(page)
    assert (words["r"], words["about"], words["least"]) == ("heatmap", "syscall:*", "2us")
    page.value("window.isOld = true, location.reload()")
    page.until(f"!window.isOld && document.querySelector('{REPORT} .heat canvas')?.getAttribute('aria-label') === {json.dumps(label)}")
    # The field refuses a text that names no duration, and the page asks nothing.
    fill(page, least="soon")
    page.until("document.getElementById('report-least').validationMessage.startsWith('Not a duration')")
    assert address(page)["least"] == "2us"


def test_breakdown_and_periods_by_choice(page, kymo, reference, part):
    page.value(f"location.hash = 'b={part[0]}&e={part[1]}&r=breakdown&about=syscall:futex&comm=w*'")
    wanted = command(kymo, "breakdown", part, reference, "--of", "syscall:futex", "--comm", "w*")
    sums = f"Array.from(document.querySelectorAll('{REPORT} [data-table=causes] tbody tr')).map(r => [r.children[0].title, r.children[1].title])"
    assert page.until(f"(l => l.length && l)({sums})") == [[json.dumps(row["cause"]), str(row["time"])] for row in wanted["causes"]]
    choose(page, "report", "periods")
    page.until(f"document.querySelector('{REPORT} [role=status]')")
    fill(page, periods=f"{SYNC}\n\n", comm="")
    wanted = command(kymo, "periods", part, reference, "--period", SYNC)["periods"][0]
    assert page.until(f"document.querySelector('{REPORT} [data-table=periods] tbody td:nth-child(2)')?.title") == str(wanted["count"])
    # The same periods as members of another report.
    choose(page, "report", "heatmap")
    fill(page, of="period:sleep")
    assert page.until(f"document.querySelector('{REPORT} .heat canvas')?.getAttribute('aria-label')").startswith(f"{wanted['count']} durations")
    fill(page, periods="no definition")
    assert "period" in page.until(f"document.querySelector('{REPORT} .error')?.textContent")
    page.trouble.clear()  # the browser tells of the refusal


def test_threads_of_other_reports(page, kymo, reference, part):
    page.value(f"location.hash = 'b={part[0]}&e={part[1]}&r=syscalls&comm=work'")
    wanted = sum(row["count"] for row in command(kymo, "syscalls", part, reference, "--comm", "work", "-t", "syscalls")["syscalls"])
    count = (f"Array.from(document.querySelectorAll('{REPORT} [data-table=syscalls] tbody tr')).reduce("
             "(n, r) => n + Number(r.querySelector('td.number').title), 0)")
    page.until(f"document.querySelector('{REPORT} [data-table=syscalls] tbody tr')")
    page.until(f"({count}) === {wanted}")


def test_requests_are_checked(view, info):
    whole = {"begin": info["begin"], "end": info["end"]}
    for words in ({"name": "heatmap", "of": "nothing"}, {"name": "heatmap", "of": "syscall:*", "cell": "0,1"}, {"name": "heatmap"},
                  {"name": "heatmap", "of": "syscall:*", "cell": "1"}, {"name": "cpu", "least": "-1"}, {"name": "cpu", "of": "wakeup"},
                  {"name": "periods", "periods": "x"}, {"name": "periods", "periods": "\n".join([SYNC] * 65)},
                  {"name": "cpu", "comm": "x" * 300}):
        view.get("report", "POST", code=400, **words, **whole)
    assert "beside" in view.get("report", "POST", code=422, name="compare", **whole)["error"]
    span = view.get("report", "POST", name="breakdown", of='span:a"b\\', **whole)["reports"][0]
    assert span["notes"] and not any(table["rows"] for table in span["tables"] if table["name"] == "top")


# ---- two traces ------------------------------------------------------------------------------


def test_compare_of_two_traces(kymo_bin, kymo, reference, cache, tmp_path, browser):
    """Whole traces as the command does it; then the range of both that the window shows."""
    other = tmp_path / "other"
    kymo("convert", "--to", "ctf1.8", "--end", "+1500ms", reference, "-o", other)
    viewer = Viewer(kymo_bin, "--no-browser", "--beside", other, reference, env=cache)
    try:
        own = json.loads(viewer.ask(f"/{viewer.token}/a/api/info")[2])
        whole = {"begin": own["begin"], "end": own["end"]}
        wanted = tables(kymo("report", "compare", "--json", reference, other).out)
        found = {table["name"]: table["rows"] for table in compare(viewer, "a", **whole)["tables"]}
        assert found == wanted and [side["duration"] for side in found["sides"]] == [
            pytest.approx(own["end"] - own["begin"], rel=0.1), pytest.approx(1.5e9, rel=0.2)]
        # The same range of the same trace: nothing differs.
        half = {"begin": own["begin"] + 10**8, "end": own["begin"] + 9 * 10**8, "ns": own["begin"] + 10**8}
        report = compare(viewer, "b", **half)
        sides = next(table["rows"] for table in report["tables"] if table["name"] == "sides")
        assert [(side["begin"], side["duration"], side["calls"]) for side in sides] == [(half["begin"], 8 * 10**8, sides[0]["calls"])] * 2
        assert sides[0]["calls"] and any("nothing differs" in note for note in report["notes"])
        compare(viewer, "a", **{**half, "ns": 2**63 - 1})
        browser.go(viewer.link)
        frame = "document.querySelectorAll('iframe')[0].contentWindow"
        for i in range(2):  # a page that begins shows all of both traces
            browser.until(f"document.querySelectorAll('iframe')[{i}].contentWindow.document.querySelector('.body .line')")
        browser.value(f"{frame}.location.hash = 'b={half['begin']}&e={half['end']}&r=compare'")
        rows = f"Array.from({frame}.document.querySelectorAll('{REPORT} [data-table=sides] tbody tr')).map(r => Array.from(r.children).map(c => c.title))"
        browser.until(f"(l => l.length === 2 && l.every(r => r.includes('{8 * 10**8}')))({rows})")
    finally:
        viewer.end()
    shutil.rmtree(other)


def test_compare_of_recordings_at_a_relay(relay, kymo, kymo_bin, cache):  # noqa: F811
    """Two recordings at a relay; and one beside a directory: what the command says of the same traces."""
    one = relay()
    for name, times in (("few", 20), ("many", 60)):
        done = kymo("record", "-o", one.address(name), "-k", "default", "-b", "8M", "--", "sh", "-c",
                    f"for i in $(seq {times}); do /bin/true; done", code=None)
        if done.code:
            pytest.skip(f"no recording of the kernel: {done.err.strip()[:200]}")
    for own, other in ((one.address("few"), one.address("many")), (one.address("few"), one.trace("many"))):
        viewer = Viewer(kymo_bin, "--no-browser", "--beside", other, own, env=cache)
        try:
            times = json.loads(viewer.ask(f"/{viewer.token}/a/api/info")[2])
            wanted = tables(kymo("report", "compare", "--json", one.trace("few"), one.trace("many")).out)
            for _ in range(2):  # the second report reads what came for the first one
                report = compare(viewer, "a", begin=times["begin"], end=times["end"])
                found = {table["name"]: table["rows"] for table in report["tables"]}
                assert [side["calls"] for side in found["sides"]] == [side["calls"] for side in wanted["sides"]]
                assert [side["duration"] for side in found["sides"]] == [side["duration"] for side in wanted["sides"]]
        finally:
            viewer.end()
