# SPDX-License-Identifier: MIT
"""Marks of `kymo view`: events of programs and of triggers, and times without events, on the rows concerned."""

import json
import time

import pytest

import make_trace
from kernel_trace import write
from test_timeline import event, switch
from test_view import PATIENCE_S, Viewer, browser  # noqa: F401: a fixture
from test_view_rows import press, ready, row_of, until

ORIGIN = make_trace.ORIGIN_S * 10**9
LOST = (2000, 2999)  # ns after the origin

MARKS = make_trace.METADATA.replace('name = "tick"', 'name = "kymo:mark"').replace("string _text", "string _name")


@pytest.fixture
def marked(kymo_bin, tmp_path):
    """A kernel's trace with lost events on CPU 0 and damage on CPU 1, a program's trace with losses, marks of triggers."""
    events = [event(ORIGIN, "lttng_statedump_process_state", tid=1000, pid=1000, ppid=1, name="prog")]
    events += [event(ORIGIN, "lttng_statedump_process_state", tid=1001, pid=1000, ppid=1, name="prog")]
    events += [switch(ORIGIN + i, 0 if i % 2 else 1000, 1000 if i % 2 else 0) for i in range(1, 5998)]
    events += [switch(ORIGIN + i, 0 if i % 2 else 1001, 1001 if i % 2 else 0, cpu=1) for i in range(1, 5999)]
    write(tmp_path / "t" / "kernel", events, env='domain = "kernel"; hostname = "lab";', lost={(0, 2)}, whole=True)
    with open(tmp_path / "t" / "kernel" / "stream_1", "r+b") as file:
        size = len(file.read())
        file.seek(size * 2 // 3)
        file.write(b"\xff" * (size // 3))
    first, second = make_trace.Packet(100), make_trace.Packet(3000, seq=1, discarded=7)
    first.tick(100, 1)
    first.tick(500, 2)
    first.odd(500)
    second.tick(4000, 3)
    metadata = make_trace.METADATA.replace('hostname = "lab";', 'hostname = "lab"; vpid = 1000;')
    make_trace.write(str(tmp_path / "t" / "prog"), {"c": [first, second]}, metadata.replace('"tick"', '"<b>tick"'))
    mark = make_trace.Packet(2500)
    mark.tick(2500, 1, b"<i>here")
    make_trace.write(str(tmp_path / "t" / "marks"), {"marks_0": [mark]}, MARKS)
    viewer = Viewer(kymo_bin, "--no-browser", "--clock-force-correlate", tmp_path / "t", env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    yield viewer
    viewer.end()


def chunks(flat, n):
    return [flat[i:i + n] for i in range(0, len(flat), n)]


def test_marks_are_on_rows_of_threads(marked):
    tree = ready(marked)
    thread = row_of(tree, "thread", 1000)[0]
    found = marked.get("marks", begin=ORIGIN, end=ORIGIN + 5999, count=60)
    names = found["names"]
    assert [[row, pixel, n, names[name - 1]] for row, pixel, n, name in chunks(found["marks"], 4)] == [
        [thread, 1, 1, "<b>tick"], [thread, 5, 2, "<b>tick"], [thread, 40, 1, "<b>tick"]]
    assert [[pixel, n, names[name - 1]] for pixel, n, name in chunks(found["triggers"], 3)] == [[25, 1, "<i>here"]]
    assert found["until"] is None
    # With a filter, events of the kernel, too: without a thread, on the CPU.
    only = marked.get("marks", begin=ORIGIN, end=ORIGIN + 5999, count=6, filter="next_tid == 1001")
    assert {mark[0] for mark in chunks(only["marks"], 4)} == {row_of(tree, "cpu", 1)[0]}
    texts = marked.get("marks", begin=ORIGIN, end=ORIGIN + 5999, count=6, filter="$cpu == 0 ?? TOCK")
    assert sum(mark[2] for mark in chunks(texts["marks"], 4)) == 3
    assert "no event has a field" in marked.get("marks", begin=0, end=1, count=1, filter="x == 1", code=400)["error"]


def losses(viewer, count=60):
    found = viewer.get("losses", begin=ORIGIN, end=ORIGIN + 5999, count=count)["streams"]
    return {one["stream"]: (one["rows"], chunks(one["runs"], 4)) for one in found}


def test_losses_are_on_rows_of_their_streams(marked):
    tree = ready(marked)
    until_s = time.monotonic() + PATIENCE_S
    while marked.get("density", begin=ORIGIN, end=ORIGIN + 5999, count=1)["progress"] < 1 and time.monotonic() < until_s:
        time.sleep(0.05)
    found = losses(marked)
    assert set(found) == {"stream_0", "stream_1", "c"}
    rows, runs = found["stream_0"]
    assert set(rows) == {row_of(tree, "cpu", 0)[0], next(row[0] for row in tree["rows"] if row[4].endswith("/stream_0"))}
    assert sum((to - begin) * n for begin, to, n, _ in runs) == pytest.approx(1000, rel=0.001)
    # From the packet before the gap to the end of the one that tells of it.
    assert 19 <= runs[0][0] <= 21 and 30 <= runs[-1][1] <= 41 and not any(run[3] for run in runs)
    rows, runs = found["stream_1"]
    assert row_of(tree, "cpu", 1)[0] in rows and 35 <= runs[0][0] <= 41 and runs[-1][1] == 60 and runs[-1][3] == 1
    rows, runs = found["c"]
    assert row_of(tree, "process", 1000)[0] in rows and sum((to - begin) * n for begin, to, n, _ in runs) == pytest.approx(7, rel=0.001)


TIP = "document.querySelector('.tracks .tip:last-of-type')?.textContent ?? ''"


def test_page_shows_marks_and_losses(browser, marked):
    ready(marked)
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(marked.link)
    browser.until("document.querySelectorAll('.scroller .track').length > 5")
    browser.value("document.querySelector('.tracks').style.height = '700px'")
    press(browser, "]")
    about = "(Array.from(document.querySelectorAll('.scroller .track')).find(e => e.querySelector('.text').textContent === %s)" \
        "?.getAttribute('aria-label') ?? '')"
    row = lambda label: browser.value(about % json.dumps(label))  # noqa: E731
    until(browser, lambda: "4 events" in row("t1000 (1000)"), "events of the program")
    until(browser, lambda: "1000 lost events" in row("CPU 0"), "lost events")
    until(browser, lambda: "damaged" in row("CPU 1"), "damage")
    until(browser, lambda: "lost events" in row("t1000 (1000)") and "lost events" in row("waiting threads"), "lost events of other rows")
    assert "damaged" not in row("CPU 0")
    # The pointer on the second mark, and on the damage.
    box = browser.value("(r => [r.x, r.y, r.width])(document.querySelector('.scroller canvas').getBoundingClientRect())")
    middle = "(r => r.y + r.height / 2)(Array.from(document.querySelectorAll('.scroller .track')).find(" \
        "e => e.querySelector('.text').textContent === %s).getBoundingClientRect())"
    info = marked.get("info")
    for label, ns, words in (("t1000 (1000)", 500, "<b>tick and 1 more events"), ("CPU 1", 5500, "damaged: no events from here on"),
                             ("CPU 0", 2500, "lost events")):
        x = box[0] + (ORIGIN + ns - info["begin"]) / (info["end"] - info["begin"]) * box[2]

        def says():
            browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=browser.value(middle % json.dumps(label)))
            time.sleep(0.2)
            return words in browser.value(TIP)

        until(browser, says, words)
    for canvas in ("overview", "graph"):
        browser.until(f"document.querySelector('#{canvas} canvas').getAttribute('aria-label').includes('1 mark of triggers: <i>here')")
    x = box[0] + (ORIGIN + 2500 - info["begin"]) / (info["end"] - info["begin"]) * box[2]
    browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=box[1] - 120)
    browser.until("document.querySelector('#graph .legend').textContent.includes('<i>here')")
    assert browser.value("document.querySelectorAll('#app b, #app i:not([class])').length") == 0
    assert not [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"]
    # Figures of the range say that they lack events.
    for report, kind in (("latency", "latency"), ("area", "area"), ("cpu", "report")):
        browser.value(f"location.hash = 'r={report}'")
        browser.until(f"/100\\d events were lost here, and the damaged streams? .*stream_1/.test(document.querySelector('.{kind} .losses')?.textContent)")
    browser.value(f"location.hash = 'r=area&s={ORIGIN + 50},{ORIGIN + 90}'")
    browser.until("document.querySelector('.area[data-ready=true] h2')?.textContent === 'Selected area' && !document.querySelector('.losses')")


def test_threads_of_programs_alone_have_rows_with_marks(kymo_bin, kymo, shared, browser, tmp_path):
    trace = f"{shared}/traces/lttng-ust"
    events = [json.loads(line) for line in kymo("convert", "--to", "json", trace).out.splitlines()]
    viewer = Viewer(kymo_bin, "--no-browser", trace, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    try:
        tree, info = ready(viewer), viewer.get("info")
        threads = {row[0]: row[3] for row in tree["rows"] if row[2] == "thread"}
        found = viewer.get("marks", begin=info["begin"], end=info["end"], count=100)
        marks = chunks(found["marks"], 4)
        assert threads and {mark[0] for mark in marks} == set(threads)
        assert sum(mark[2] for mark in marks) == len(events) and found["until"] is None
        browser.go("about:blank")
        browser.trouble.clear()
        browser.go(viewer.link)
        browser.until(f"Array.from(document.querySelectorAll('.scroller .track')).some(e => / \\({min(threads.values())}\\)/.test("
                      "e.getAttribute('aria-label')) && /\\d+ events/.test(e.getAttribute('aria-label')))")
        assert not [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"]
    finally:
        viewer.end()


def test_saved_pages_have_marks_and_losses(kymo, browser, marked, tmp_path):
    begin, end = (marked.get("info")[word] for word in ("begin", "end"))
    path = tmp_path / "page.html"
    trace = marked.get("info")["traces"][0]["path"].rpartition("/")[0]
    kymo("view", "--clock-force-correlate", "--save", path, "--begin", f"{begin / 10**9:.9f}", "--end", f"{end / 10**9:.9f}", trace)
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(f"file://{path}")
    browser.until("document.querySelectorAll('.scroller .track').length > 5")
    browser.until("Array.from(document.querySelectorAll('.scroller .track')).some(e => /^t1000 \\(1000\\).*; 4 events/.test("
                  "e.getAttribute('aria-label')))")
    browser.until("document.querySelector('#overview canvas').getAttribute('aria-label').includes('1 mark of triggers: <i>here')")
    browser.until("Array.from(document.querySelectorAll('.scroller .track')).some(e => /marks_0: mean/.test(e.getAttribute('aria-label')))")
    # The same rows have the same losses.
    told = "Array.from(document.querySelectorAll('.scroller .track')).map(e => e.getAttribute('aria-label')).filter(t => " \
        "/lost events|damaged/.test(t)).map(t => t.replace(/:.*; /, ': '))"
    saved = browser.until(f"(l => l.some(t => /^CPU 0.*1000 lost events/.test(t)) && l.some(t => /^CPU 1.*damaged/.test(t)) && l)({told})")
    ready(marked)
    browser.go(marked.link)
    browser.until(f"JSON.stringify({told}) === {json.dumps(json.dumps(saved, separators=(chr(44), chr(58))))}")
    assert not [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"]
