# SPDX-License-Identifier: MIT
"""The rows of `kymo view`: what the server tells of the state history, and the tree of the page."""

import json
import time

import pytest

from kernel_trace import write
from test_timeline import event, make_kernel, switch
from test_view import PATIENCE_S, Viewer, address, browser, cache, info, page, rows_of, view  # noqa: F401: fixtures

THREADS = 3000


def ready(viewer):
    """The tree, once the history is complete."""
    until = time.monotonic() + PATIENCE_S
    while not (found := viewer.get("tree"))["ready"] and time.monotonic() < until:
        time.sleep(0.05)
    assert found["ready"]
    return found


def runs(viewer, begin, end, count, row):
    """[from, to, kind, detail] of a row, details as names where the kind has names."""
    found = viewer.get("timeline", begin=begin, end=end, count=count, ids=row)
    flat = found["rows"][0]["runs"]
    named = {4, 5, 6, 8, 9, 10, 11, 12, 13, 15}
    return [[*flat[i:i + 3], found["names"][flat[i + 3] - 1] if flat[i + 2] in named and flat[i + 3] else flat[i + 3]]
            for i in range(0, len(flat), 4)]


# ---- answers ---------------------------------------------------------------------------------


@pytest.fixture
def small(kymo_bin, tmp_path):
    """The trace of 14 events."""
    viewer = Viewer(kymo_bin, "--no-browser", make_kernel(tmp_path / "t"), env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    yield viewer
    viewer.end()


def row_of(tree, kind, number):
    return next(row for row in tree["rows"] if row[2] == kind and row[3] == number)


def test_answers_of_a_made_trace(small):
    tree = ready(small)
    begin, end = (small.get("info")[word] for word in ("begin", "end"))
    assert end - begin == 99
    cpu, seven, eight = row_of(tree, "cpu", 0), row_of(tree, "thread", 7), row_of(tree, "thread", 8)
    process = row_of(tree, "process", 7)
    assert seven[1] == process[0] and process[5] == 1 and not process[6] and seven[4] == "t7"
    irq = next(row for row in tree["rows"] if row[2] == "irq")
    assert irq[1] == cpu[0]
    assert runs(small, begin, end - 1, 99, cpu[0]) == [
        [0, 30, 2, seven[0]], [30, 60, 2, eight[0]], [60, 80, 2, seven[0]], [80, 90, 2, eight[0]], [90, 99, 1, 0]]
    assert runs(small, begin + 15, begin + 44, 30, seven[0]) == [
        [0, 5, 3, 0], [5, 15, 4, "futex"], [15, 30, 10, "futex"]]
    activity = dict(small.get("activity", begin=begin, end=end)["rows"])
    assert [round(activity[row[0]]) for row in (cpu, seven, eight, irq)] == [90, 50, 40, 10]
    activity = dict(small.get("activity", begin=begin + 40, end=begin + 49)["rows"])
    assert [round(activity[row[0]]) for row in (cpu, seven, eight, irq)] == [10, 0, 10, 10]
    moment = small.get("moment", row=seven[0], ns=begin + 37)
    assert moment == {"begin": begin + 30, "end": begin + 45, "kind": 10, "value": moment["value"], "name": "futex"}
    assert small.get("moment", row=seven[0], ns=begin - 1)["begin"] is None
    assert "no such row" in small.get("moment", row=4000, ns=begin, code=404)["error"]
    assert "no row" in small.get("timeline", begin=begin, end=end, count=10, ids=4000, code=400)["error"]


def test_answers_agree_with_the_program(view, info, kymo, reference, cache):
    tree = ready(view)
    found = json.loads(kymo("timeline", "--json", "--rows", "*", "--width", 50, reference, env=cache).out)
    assert sorted((row["kind"], row["number"], row["name"]) for row in found["rows"]) == \
        sorted(tuple(row[2:5]) for row in tree["rows"])
    report = json.loads(kymo("report", "cpu", "--json", reference, env=cache).out)
    times = {row["process"]["tid"]: row["cpu_time"] for row in report["reports"][0]["tables"][0]["rows"]}
    activity = dict(view.get("activity", begin=info["begin"], end=info["end"])["rows"])
    mine = {row[3]: activity[row[0]] for row in tree["rows"] if row[2] == "thread" and row[0] in activity}
    for tid, ns in times.items():
        assert mine[tid] == pytest.approx(ns, rel=0.03, abs=(info["end"] - info["begin"]) / 64 / 255 + 2e5), tid


def test_waker_of_a_thread(small):
    tree = ready(small)
    begin = small.get("info")["begin"]
    seven, eight = row_of(tree, "thread", 7)[0], row_of(tree, "thread", 8)[0]
    # While it waits for the lock, for the CPU afterwards, and when it runs.
    for ns, kinds in ((35, ["state", "waited"]), (50, ["state", "ready"])):
        cause = small.get("cause", row=seven, ns=begin + ns)
        waker = cause["waker"]
        assert waker["ns"] == cause["waited"]["end"] == begin + 45
        assert (waker["cpu"], waker["row"], waker["tid"], waker["handler"]) == (0, eight, 8, "irq 24 eth0")
        assert cause[kinds[0]] == cause[kinds[1]] and cause["waited"]["begin"] <= begin + 35
    # It has not waited yet; it was taken off the CPU; it waits to the end; a row of a CPU.
    for row, ns in ((seven, 10), (eight, 70), (seven, 90), (row_of(tree, "cpu", 0)[0], 35)):
        assert small.get("cause", row=row, ns=begin + ns)["waker"] is None
    assert "no such row" in small.get("cause", row=4000, ns=begin, code=404)["error"]


# ---- the page --------------------------------------------------------------------------------

# [label, level, is open, is selected] of the rows that exist, from the top of the screen.
TRACKS = """Array.from(document.querySelectorAll('%s .track')).map(e => [e.querySelector('.text').textContent,
  +e.getAttribute('aria-level'), e.getAttribute('aria-expanded'), e.getAttribute('aria-selected') === 'true'])"""


def tracks(page, where=".scroller"):
    return page.value(TRACKS % where)


def labels(page, where=".scroller"):
    return [track[0] for track in tracks(page, where)]


def chosen(page):
    return page.value("document.querySelector('.scroller .track[aria-selected=true] .text')?.textContent")


def press(page, *keys):
    for key in keys:
        page.key(key)


def until(page, condition, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError(f"{what}: {tracks(page)}")


@pytest.fixture
def tree(page):
    """The page with its rows, and the focus there."""
    page.value("document.activeElement.blur()")
    page.until("document.querySelectorAll('.scroller .track').length > 5")
    page.key("t")
    page.until("document.activeElement.id === 'rows-tree'")
    return page


def test_rows_are_a_tree_for_the_keyboard(tree):
    assert labels(tree)[:5] == ["CPUs", "waiting threads", "CPU 0", "CPU 1", "Processes"]
    assert [track[1:3] for track in tracks(tree)[:4]] == [[1, "true"], [2, None], [2, "false"], [2, "false"]]
    press(tree, "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight")
    until(tree, lambda: tracks(tree)[2] == ["CPU 0", 2, "true", True], "CPU 0 opens")
    below = [track for track in tracks(tree)[3:] if track[1] == 3]
    assert any(name.startswith("softirq") for name, *_ in below)
    press(tree, "ArrowRight")
    until(tree, lambda: chosen(tree) == below[0][0], "the first row below is selected")
    press(tree, "ArrowLeft")
    until(tree, lambda: chosen(tree) == "CPU 0", "the row above is selected")
    press(tree, "ArrowLeft", "ArrowDown")
    until(tree, lambda: chosen(tree) == "CPU 1" and tracks(tree)[3][0] == "CPU 1", "CPU 0 closes")
    tree.until("document.activeElement.getAttribute('aria-activedescendant') === "
               "document.querySelector('.scroller [aria-selected=true]').id")
    tree.until("/^CPU 1: .*% idle/.test(document.querySelector('.scroller [aria-selected=true]').getAttribute('aria-label'))")
    press(tree, "]", "Home")
    until(tree, lambda: tracks(tree)[2][2] == "true", "all rows open")
    press(tree, "[", "Home")
    until(tree, lambda: labels(tree)[:2] == ["CPUs", "Processes"], "all rows close")


def test_rows_open_by_the_mouse(tree):
    place = "(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelectorAll('.scroller .track')[2]" \
        ".querySelector('%s').getBoundingClientRect())"
    for element, wanted in ((".fold", "true"), (".fold", "false")):
        x, y = tree.value(place % element)
        for kind in ("mousePressed", "mouseReleased"):
            tree.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        until(tree, lambda: tracks(tree)[2][2] == wanted, "the mouse opens and closes CPU 0")


def test_rows_are_filtered_pinned_and_sorted(tree, view, info):
    def choose(value):
        tree.value(f"(s => {{ s.value = '{value}'; s.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
                   "(document.getElementById('row-sort'))")

    def threads():
        return [name for name, level, *_ in tracks(tree) if name.startswith("ls (")]

    press(tree, "r")
    tree.until("document.activeElement.id === 'row-filter'")
    tree.call("Input.insertText", text="ls (")
    until(tree, lambda: labels(tree)[0] == "Processes" and len(threads()) > 3, "rows are filtered")
    assert not [name for name in labels(tree) if name.startswith("CPU")]
    times = dict(view.get("activity", begin=info["begin"], end=info["end"])["rows"])
    by_tid = {row[3]: times.get(row[0], 0) for row in ready(view)["rows"] if row[2] == "thread"}
    tid = lambda name: int(name.rpartition("(")[2][:-1])  # noqa: E731
    sums = lambda: [by_tid[tid(name)] for name in threads()]  # noqa: E731
    until(tree, lambda: sums() == sorted(sums(), reverse=True), "rows are sorted by CPU time")
    choose("number")
    until(tree, lambda: threads() == sorted(threads(), key=tid), "rows are sorted by number")
    choose("name")
    until(tree, lambda: threads() == sorted(threads()), "rows are sorted by name")
    first = threads()[0]
    press(tree, "Escape", "t", "End", "k")
    until(tree, lambda: labels(tree, ".pinned") == [chosen(tree)], "the last row is at the top")
    tree.meet(lambda: address(tree).get("rows") == "ls (" and address(tree).get("sort") == "name" and "pin" in address(tree),
              lambda: address(tree))
    # The link restores the rows.
    link = tree.value("location.href")
    tree.go("about:blank")
    tree.go(link)
    tree.until("document.querySelectorAll('.pinned .track').length === 1")
    until(tree, lambda: first in labels(tree), "the rows of the link")
    press(tree, "k")
    until(tree, lambda: not labels(tree, ".pinned"), "no row is at the top")


def test_next_and_previous_change_select_the_event(tree, view, info):
    seen = ready(view)
    row = row_of(seen, "cpu", 1)[0]
    moment = view.get("moment", row=row, ns=info["begin"])
    press(tree, "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown")
    until(tree, lambda: chosen(tree) == "CPU 1", "CPU 1 is selected")
    times = []
    for _ in range(3):
        times.append(moment["end"])
        press(tree, "n")
        tree.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{moment['end']}'")
        clock = time.strftime("%H:%M:%S", time.gmtime(moment["end"] // 10**9)) + f".{moment['end'] % 10**9:09}"
        tree.until(f"document.querySelector('.line[aria-selected=true]')?.children[1].textContent === '{clock}'")
        moment = view.get("moment", row=row, ns=moment["end"])
    for ns in reversed(times[:-1]):
        press(tree, "p")
        tree.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{ns}'")


def tip(page):
    return page.value("document.querySelector('#row-tip').textContent")


def test_tip_has_states_with_times_and_wakers(browser, small):
    ready(small)
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(small.link)
    browser.until("document.querySelectorAll('.scroller .track').length > 5")
    press(browser, "]")
    info = small.get("info")
    box = browser.value("(r => [r.x, r.y, r.width])(document.querySelector('.scroller canvas').getBoundingClientRect())")
    middle = "(r => r.y + r.height / 2)(Array.from(document.querySelectorAll('.scroller .track')).find(" \
        "e => e.querySelector('.text').textContent === %s).getBoundingClientRect())"
    for label, ns, words in (("t7 (7)", 35, ("waits for a lock: futex", "15 ns", "woken by the interrupt handler irq 24 eth0 on CPU 0")),
                             ("t7 (7)", 10, ("system call: read", "10 ns")),
                             ("t8 (8)", 45, ("interrupted: irq 24 eth0", "10 ns")),
                             ("t8 (8)", 70, ("waits for a CPU", "20 ns", "another thread took the CPU")),
                             ("CPU 0", 35, ("runs: t8 (8)", "30 ns")),
                             ("irq 24 eth0", 45, ("active: in the time of t8 (8)", "10 ns"))):
        x = box[0] + (ns + 0.5) / (info["end"] - info["begin"]) * box[2]

        def says():
            # Rows get another order when their CPU times are known.
            browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=browser.value(middle % json.dumps(label)))
            time.sleep(0.2)
            return all(word in tip(browser) for word in (label, *words))

        until(browser, says, f"{label}: {words}, not {tip(browser)}")
    # The same for the keyboard: the selected row at the cursor.
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=5, y=5)
    browser.value("document.activeElement.blur()")
    press(browser, "t", "Home")
    while chosen(browser) != "t7 (7)":
        before = chosen(browser)
        press(browser, "ArrowDown")
        until(browser, lambda: chosen(browser) != before, "the next row is selected")
    for _ in range(4):
        before = tip(browser)
        press(browser, "n")
        until(browser, lambda: tip(browser) != before and " ns" in tip(browser), "the tip follows the cursor")
    assert "waits for a lock: futex" in tip(browser) and "woken by" in tip(browser)
    assert browser.value("document.querySelector('#row-tip').getAttribute('role')") == "status"
    assert not [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"]


@pytest.fixture
def crowd(kymo_bin, tmp_path):
    """Thousands of threads; their processes form a long chain, and a circle."""
    events = [event(1000 + i, "lttng_statedump_process_state", tid=i, pid=i, ppid=i - 1 if i > 1 else 3, name=f"c{i}")
              for i in range(1, 200)]
    events += [event(1200 + i, "lttng_statedump_process_state", tid=i, pid=i, ppid=1, name=f"w{i}")
               for i in range(200, THREADS)]
    events += [switch(10000 + 10 * i, 1 + (i - 1) % (THREADS - 1), 1 + i % (THREADS - 1), state=1)
               for i in range(2 * THREADS)]
    viewer = Viewer(kymo_bin, "--no-browser", write(tmp_path / "t", events), env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    yield viewer
    viewer.end()


def test_thousands_of_rows_are_virtual(browser, crowd):
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(crowd.link)
    browser.until("document.querySelectorAll('.scroller .track').length > 5")
    browser.until(f"document.querySelector('.scroller').scrollHeight > {18 * THREADS}")
    seen = set()
    for step in range(40):
        browser.value("(s => { s.scrollTop = (s.scrollHeight - s.clientHeight) * %f; })"
                      "(document.querySelector('.scroller'))" % (step / 40))
        until(browser, lambda: not seen & set(labels(browser)) and 5 < len(labels(browser)) < 80, "other rows come")
        seen |= set(labels(browser))
    assert len(seen) > 400
    browser.until("Array.from(document.querySelectorAll('.scroller .track')).every(t => !/\\(/.test(t.textContent) || "
                  "/: \\d+ %/.test(t.getAttribute('aria-label')))")
    assert not browser.trouble


def test_machines_are_apart(browser, kymo_bin, tmp_path):
    """The same thread ids on two machines; processes and CPUs are below their machine."""
    for host in ("alpha", "beta"):
        write(tmp_path / "t" / host, [event(1000, "lttng_statedump_process_state", tid=7, pid=7, ppid=1, name=f"on-{host}"),
                                      switch(1000, 0, 7), switch(1050, 7, 0, state=1), switch(1100, 0, 7)],
              env=f'domain = "kernel"; hostname = "{host}";')
    viewer = Viewer(kymo_bin, "--no-browser", "--clock-force-correlate", tmp_path / "t", env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    try:
        ready(viewer)
        browser.go("about:blank")
        browser.trouble.clear()
        browser.go(viewer.link)
        browser.until("document.querySelectorAll('.scroller .track').length > 5")
        browser.value("document.querySelector('.tracks').style.height = '700px'")
        wanted = [[1, "alpha"], [2, "CPUs"], [3, "CPU 0"], [2, "Processes"], [3, "t7 (7)"], [2, "Data streams"], [3, "alpha/stream_0"]]
        wanted += [[level, name.replace("alpha", "beta")] for level, name in wanted]
        until(browser, lambda: [[level, name] for name, level, *_ in tracks(browser)] == wanted, "two machines")
        press(browser, "t", "Home", "ArrowLeft")
        until(browser, lambda: labels(browser)[:2] == ["alpha", "beta"], "a machine closes")
    finally:
        viewer.end()
