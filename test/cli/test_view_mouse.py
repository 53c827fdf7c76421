# SPDX-License-Identifier: MIT
"""The mouse and fingers in the viewer: wheel, dragging, pinching, the strip; undo of a move; call stacks in the details."""

import json

import pytest

from test_view import Viewer, address, browser, cache, info, page, view  # noqa: F401: fixtures
from test_view_rows import ready


def box(page, selector):
    return page.value(f"(r => [r.x, r.y, r.width, r.height])(document.querySelector('{selector}').getBoundingClientRect())")


def mouse(page, kind, x, y, **more):
    page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)


def drag(page, start, end, shift=False):
    more = {"button": "left", "modifiers": 8 if shift else 0}
    mouse(page, "mousePressed", *start, clickCount=1, **more)
    for step in range(1, 6):
        mouse(page, "mouseMoved", *(a + (b - a) * step / 5 for a, b in zip(start, end)), buttons=1, **more)
    mouse(page, "mouseReleased", *end, clickCount=1, **more)


def range_of(page, begin):
    """The range of the address, once it is another one."""
    page.until(f"(b => b && b !== '{begin}')(new URLSearchParams(location.hash.slice(1)).get('b'))")
    place = address(page)
    return int(place["b"]), int(place["e"])


@pytest.fixture
def middle(page, view, info):
    """The second quarter of the trace, and the part of a pixel."""
    ready(view)
    size = info["end"] - info["begin"]
    begin, end = info["begin"] + size // 4, info["begin"] + size // 2
    page.value(f"location.hash = 'b={begin}&e={end}'")
    page.until("document.querySelectorAll('.scroller .track').length > 5")
    return begin, end


@pytest.mark.parametrize("place", ["#graph canvas", ".scroller canvas"])
def test_wheel_zooms_at_the_pointer(page, middle, place):
    """With Ctrl, as two fingers on a touchpad send it, too. What is under the pointer stays there."""
    begin, end = middle
    x, y, width, height = box(page, place)
    at = begin + (end - begin) // 4
    mouse(page, "mouseWheel", x + width / 4, y + min(height / 2, 40), deltaX=0, deltaY=-300, modifiers=2)
    first, last = range_of(page, begin)
    assert (last - first) < 0.6 * (end - begin)
    assert abs((at - first) / (last - first) - 0.25) < 0.01
    page.value("document.activeElement.blur()")
    page.key("z")
    assert range_of(page, first) == (begin, end)
    mouse(page, "mouseWheel", x + width / 4, y + min(height / 2, 40), deltaX=0, deltaY=200, modifiers=2)
    wide = range_of(page, begin)
    assert wide[1] - wide[0] > 1.3 * (end - begin)


@pytest.mark.parametrize("place", ["#graph canvas", ".scroller canvas"])
def test_dragging_moves_and_selects(page, middle, place):
    begin, end = middle
    x, y, width, height = box(page, place)
    line = y + min(height / 2, 40)
    drag(page, (x + width / 2, line), (x + width / 4, line))
    first, last = range_of(page, begin)
    assert last - first == pytest.approx(end - begin, rel=0.001) and first - begin == pytest.approx((end - begin) / 4, rel=0.02)
    assert "s" not in address(page)
    drag(page, (x + width / 4, line), (x + width * 3 / 4, line), shift=True)
    page.until("new URLSearchParams(location.hash.slice(1)).has('s')")
    page.until("document.querySelector('.area, .report') !== null")
    chosen = [int(text) for text in address(page)["s"].split(",")]
    for ns, part in zip(chosen, (0.25, 0.75)):
        assert (ns - first) / (last - first) == pytest.approx(part, abs=0.01)
    assert int(address(page)["b"]) == first


def fingers(page, kind, *places):
    page.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)])


@pytest.mark.parametrize("place", ["#graph canvas", ".scroller canvas"])
def test_two_fingers_zoom(page, middle, place):
    """What is between the fingers stays there, also while both move; the finger that stays down then moves nothing."""
    begin, end = middle
    x, y, width, height = box(page, place)
    line = y + min(height / 2, 40)

    def at(part):
        return x + width * part, line

    fingers(page, "touchStart", at(0.4))
    fingers(page, "touchStart", at(0.4), at(0.6))
    for step in range(1, 6):
        fingers(page, "touchMove", at(0.4 - 0.04 * step), at(0.6 + 0.04 * step))
    page.until("(w => Number(w.get('e')) - Number(w.get('b')) < %d)(new URLSearchParams(location.hash.slice(1)))"
               % (0.36 * (end - begin)))
    place_then = address(page)
    first, last = int(place_then["b"]), int(place_then["e"])
    assert last - first == pytest.approx((end - begin) / 3, rel=0.02)
    assert (begin + end) / 2 == pytest.approx((first + last) / 2, abs=0.01 * (end - begin))
    fingers(page, "touchEnd", at(0.2))
    fingers(page, "touchMove", at(0.3))
    fingers(page, "touchEnd")
    page.value("new Promise(done => setTimeout(done, 300))")
    assert (address(page)["b"], address(page)["e"]) == (place_then["b"], place_then["e"])
    assert "s" not in address(page)


def test_dragging_in_the_strip_shows_that_part(page, middle, info):
    begin, _ = middle
    x, y, width, height = box(page, "#overview")
    drag(page, (x + width * 0.6, y + height / 2), (x + width * 0.8, y + height / 2))
    range_of(page, begin)
    page.until("(w => Number(w.get('e')) - Number(w.get('b')) > 0)(new URLSearchParams(location.hash.slice(1)))")
    size = info["end"] - info["begin"]
    page.until(f"Math.abs((Number(new URLSearchParams(location.hash.slice(1)).get('b')) - {info['begin']}) / {size} - 0.6) < 0.2")
    first, last = int(address(page)["b"]), int(address(page)["e"])
    assert info["begin"] <= first < last <= info["end"]


def test_details_have_the_call_stack(kymo, kymo_bin, browser, tmp_path):
    """Of an event of the kernel, with the names of functions or their addresses."""
    trace = tmp_path / "trace"
    done = kymo("record", "-k", "sched_switch", "--callstack-kernel", "sched_switch", "--duration", "300ms", "-o", trace, code=None)
    if done.code:
        pytest.skip(f"no recording of the kernel: {done.err.strip()[:200]}")
    events = [json.loads(line) for line in kymo("convert", "--to", "json", "--filter", '$event == "sched_switch"', trace).out.splitlines()]
    field, frames = next((name, value) for event in events for scope in ("event_context", "context") for name, value in
                         event.get(scope, {}).items() if "callstack" in name and isinstance(value, list) and len(value) > 2)
    viewer = Viewer(kymo_bin, "--no-browser", trace, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    try:
        row = next(row for row in range(500) if viewer.get("event", row=row)["event"].get("event_context", {}).get(field) == frames
                   or viewer.get("event", row=row)["event"].get("context", {}).get(field) == frames)
        browser.go("about:blank")
        browser.trouble.clear()
        browser.go(f"{viewer.link}#row={row}")
        shown = browser.until("(l => l.length && l)(Array.from(document.querySelectorAll('aside ol.stack li')).map(e => e.textContent))")
        assert len(shown) == len(frames)
        for text, frame in zip(shown, frames):
            assert text == (frame if isinstance(frame, str) else hex(frame % 2**64))
    finally:
        viewer.end()
