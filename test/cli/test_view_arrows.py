# SPDX-License-Identifier: MIT
"""Wake-ups of the selected thread in the viewer, as arrows between rows."""

import json
import re

import pytest

from kernel_trace import write
from test_timeline import event, switch
from test_view import Viewer, address, browser, cache, info, page, view  # noqa: F401: fixtures
from test_view_rows import ready, row_of
from test_view_save import open_page

MS = 10**6


@pytest.fixture
def woken(kymo_bin, tmp_path):
    """Thread 7 wakes thread 8 after 20 ms, which runs after 40 ms; thread 8 wakes thread 7 after 50 ms, which runs after 60 ms."""
    def wake(ns, tid):
        return event(ns, "sched_waking", comm=f"t{tid}", tid=tid, prio=20, target_cpu=0)
    trace = write(tmp_path / "t", [
        switch(1000 * MS, 0, 7), wake(1020 * MS, 8), switch(1040 * MS, 7, 8, state=1), wake(1050 * MS, 7),
        switch(1060 * MS, 8, 7, state=1), wake(1070 * MS, 9), switch(1080 * MS, 7, 0, state=1), switch(1090 * MS, 0, 9),
        switch(1100 * MS, 9, 0, state=1)])
    viewer = Viewer(kymo_bin, "--no-browser", trace, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    yield viewer, trace
    viewer.end()


def arrows(viewer, row, begin, end, count=100):
    found = viewer.get("arrows", row=row, begin=begin, end=end, count=count)
    flat = found["arrows"]
    return [tuple(flat[i:i + 4]) for i in range(0, len(flat), 4)]


def test_arrows_of_a_made_trace(woken):
    viewer, _ = woken
    tree = ready(viewer)
    seven, eight, nine = (row_of(tree, "thread", tid)[0] for tid in (7, 8, 9))
    begin, end = 1000 * MS, 1100 * MS - 1
    assert arrows(viewer, seven, begin, end) == [(seven, eight, 20, 40), (eight, seven, 50, 60), (seven, nine, 70, 90)]
    assert arrows(viewer, eight, begin, end) == [(seven, eight, 20, 40), (eight, seven, 50, 60)]
    assert arrows(viewer, nine, begin, end, 10) == [(seven, nine, 7, 9)]
    assert arrows(viewer, seven, 1030 * MS, 1065 * MS - 1, 35) == [(eight, seven, 20, 30)]
    assert arrows(viewer, row_of(tree, "cpu", 0)[0], begin, end) == []
    assert arrows(viewer, 10**6, begin, end) == arrows(viewer, seven, -2**63, -2**63 + 1) == []
    viewer.get("arrows", row=seven, begin=-2**63, end=2**63 - 1, count=4096)
    for query in ("arrows", "arrows?row=1&begin=0&end=1", "arrows?row=x&begin=0&end=1&count=1", "arrows?row=1&begin=0&end=1&count=5000"):
        assert viewer.ask(f"/{viewer.token}/api/{query}")[0] == 400, query


def test_arrows_of_a_real_trace(view, info, kymo, reference):
    """All wake-ups by threads: the context of the event has the waker."""
    tree = ready(view)
    tids = {row[0]: row[3] for row in tree["rows"] if row[2] == "thread"}
    events = [json.loads(line) for line in kymo("convert", "--to", "json", "--filter", '$event == "sched_waking"', reference).out.splitlines()]
    some = {one["fields"]["tid"] for one in events}
    n_found = 0
    for row in [row for row, tid in tids.items() if tid in some][:12]:
        wanted = [(one["context"]["tid"], one["fields"]["tid"]) for one in events
                  if tids[row] in (one["context"]["tid"], one["fields"]["tid"]) and one["context"]["tid"]]
        found = [(tids[source], tids[target]) for source, target, begin, end in arrows(view, row, info["begin"], info["end"], 4096)]
        assert set(found) <= set(wanted) and len(found) <= len(wanted)
        n_found += len(found)
    assert n_found > 50


COLUMN = """((x, y, high) => Array.from(document.querySelector('.scroller canvas').getContext('2d').getImageData(x - 2, y, 5, high).data).join())(%d, %d, %d)"""
PLACE = "(r => r && [r.offsetTop, r.offsetHeight])(document.getElementById('row-%s'))"


def test_page_draws_arrows(browser, woken, kymo, tmp_path):
    """In the page of the server and in a saved one: an arrow from the row of the waker to that of the woken thread."""
    viewer, trace = woken
    tree = ready(viewer)
    seven, nine = row_of(tree, "thread", 7)[0], row_of(tree, "thread", 9)[0]
    path = tmp_path / "page.html"
    kymo("view", "--save", path, trace, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    info = viewer.get("info")
    for url in (viewer.link, path):
        open_page(browser, f"{url}#track={nine}")
        label = f"document.getElementById('row-{nine}')?.getAttribute('aria-label') ?? ''"
        browser.until(f"/woken once, wakes others 0 times$/.test({label})")
        width = browser.value("document.querySelector('.scroller canvas').clientWidth")
        top, bottom = (browser.still(PLACE % row) for row in (seven, nine))
        (high, tall), (low, _) = sorted((top, bottom))
        # Half-way between the rows.
        x = (1080 * MS - info["begin"]) / (info["end"] - info["begin"] + 1) * width
        y = (high + low + tall) / 2
        place = (x, y - 4, 8)
        browser.value(f"location.hash = 'track={row_of(tree, 'cpu', 0)[0]}'")
        browser.until(f"!/woken/.test({label})")
        without = browser.still(COLUMN % place)
        browser.value(f"location.hash = 'track={nine}'")
        browser.until(f"{COLUMN % place} !== '{without}'")
        browser.value(f"location.hash = 'track={row_of(tree, 'thread', 8)[0]}'")
        browser.until(f"{COLUMN % place} === '{without}'")
    assert not [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"]


def test_closed_rows_take_the_arrows_of_what_they_hold(page, view, info):
    """The real trace: the words of the row have the number of its wake-ups."""
    tree = ready(view)
    row = max((row[0] for row in tree["rows"] if row[2] == "thread" and row[3] > 0),
              key=lambda one: len(arrows(view, one, info["begin"], info["end"], 1000)))
    page.value(f"location.hash = 'track={row}'")
    text = page.until(f"(t => /woken/.test(t) && t)(document.getElementById('row-{row}')?.getAttribute('aria-label') ?? '')")
    woken, wakes = (1 if one == "once" else int(one.split()[0]) for one in re.search(r"woken (.*), wakes others (.*)$", text).groups())
    assert woken + wakes > 10
    page.key("[")
    page.until(f"!document.getElementById('row-{row}') || document.querySelectorAll('.scroller .track').length < 12")
    assert address(page)["track"] == str(row)
