# SPDX-License-Identifier: MIT
"""kymo view of a recording that goes on: the page shows what is new, stays where one looks, and says when it has ended."""

import subprocess
import time

import pytest

from recording import Recording
from test_live_viewer import relay  # noqa: F401 (a fixture)
from test_view import PATIENCE_S, Page, Viewer, as_line, browser, rows_of  # noqa: F401 (a fixture)

TOTAL = "Number(document.querySelector('.body')?.getAttribute('aria-rowcount') ?? -1)"
PAGE = "document.querySelector('#live')"


def forks(n=20):
    for _ in range(n):
        subprocess.run(["true"], check=True)


def until(check):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = check()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(check)


@pytest.fixture
def recording(needs_root_tracefs, kymo, kymo_bin, tmp_path):
    made = Recording(kymo, kymo_bin, needs_root_tracefs, tmp_path / "out", "--name", f"seen-{tmp_path.name}", "--kernel",
                     "sched_process_*,sched_switch")
    yield made
    if made.process.poll() is None:
        made.stop()


def test_answers_go_on_with_the_recording(recording, kymo, kymo_bin, tmp_path):
    """All numbers of the last state are those of a viewer that comes when the recording has ended."""
    viewer = Viewer(kymo_bin, "--no-browser", f"seen-{tmp_path.name}", env={"XDG_CACHE_HOME": str(tmp_path)})
    generation, total = 0, 0
    for _ in range(5):
        forks()
        info = until(lambda: (i := viewer.get("info"))["recording"]["generation"] > generation and i["begin"] and i)
        assert info["recording"]["running"] and not info["recording"]["error"]
        generation = info["recording"]["generation"]
        # Nothing is lost or counted twice by the states after each other.
        found = until(lambda: (f := viewer.get("rows", row=0, count=512))["progress"] == 1 and f["total"] > total and f)
        total = found["total"]
        density = viewer.get("density", begin=info["begin"], end=info["end"], count=100)
        assert sum(density["events"]) <= density["total"] >= total
        filtered = until(lambda: (f := viewer.get("rows", row=0, count=1, filter="child_tid > 0"))["progress"] == 1 and f)
        assert 0 < filtered["total"] < viewer.get("rows", row=0, count=1)["total"]
        assert [row[0] for row in found["rows"]] == sorted(row[0] for row in found["rows"])
    # All of it, as it was counted piece by piece; what is older than the recorder's delay is final.
    counted = []
    while (found := viewer.get("rows", row=len(counted), count=512))["rows"]:
        counted += found["rows"]
    settled = [row for row in counted if row[0] < info["end"] - 10**9]
    until(lambda: viewer.get("tree")["ready"])
    assert recording.stop()
    until(lambda: not viewer.get("info")["recording"]["running"])
    lines = kymo("print", "--no-delta", "--fields", "none", tmp_path / "out").out.splitlines()
    assert viewer.counted()["total"] == len(lines)
    rows = []
    while len(rows) < len(lines):
        rows += viewer.get("rows", row=len(rows), count=512)["rows"]
    assert [as_line(row) for row in rows] == lines
    # The clock is known better in the end.
    assert len(settled) > 50 and [row[3:] for row in settled] == [row[3:] for row in rows[:len(settled)]]
    viewer.end()


def test_page_stays_at_the_present_until_one_goes_back(browser, recording, kymo, kymo_bin, tmp_path):
    viewer = Viewer(kymo_bin, "--no-browser", tmp_path / "out", env={"XDG_CACHE_HOME": str(tmp_path)})
    forks()
    browser.trouble.clear()
    browser.go("about:blank")
    browser.go(viewer.link)
    browser.until(f"{PAGE}?.textContent === '● Live'")
    # New events come to the table, whose last row is the last event, and to the graph.
    for _ in range(3):
        before = browser.value(TOTAL)
        forks()
        browser.until(f"{TOTAL} > {before}")
    browser.until(f"Number(Array.from(document.querySelectorAll('.body .line')).at(-1)?.children[0].textContent) === {TOTAL}")
    browser.until("/^Events .*: \\d*[1-9]\\d* events/.test(document.querySelector('#graph canvas').getAttribute('aria-label'))")
    browser.until("document.querySelectorAll('.scroller .track').length > 2")
    # Zooming stays at the present; a move to the left does not.
    browser.value("document.activeElement.blur()")
    browser.key("w")
    browser.key("w")
    forks()
    assert browser.value(PAGE + ".textContent") == "● Live"
    browser.key("a")
    browser.until(PAGE + ".textContent === 'Go to the present'")
    view = browser.until("new URLSearchParams(location.hash.slice(1)).get('live') === null && location.hash")
    before = browser.value(TOTAL)
    rows = rows_of(browser)
    forks()
    browser.until(f"{TOTAL} > {before}")
    assert browser.value("location.hash").split("&top")[0] == view.split("&top")[0]
    assert rows_of(browser)[0] == rows[0]
    browser.key("l")
    browser.until(PAGE + ".textContent === '● Live'")
    # So does the wheel in the table.
    browser.value("document.querySelector('.body').dispatchEvent(new WheelEvent('wheel', {deltaY: -400, bubbles: true, "
                  "cancelable: true}))")
    browser.until(PAGE + ".textContent === 'Go to the present'")
    recording.stop()
    browser.until(PAGE + ".textContent === 'The recording has ended'")
    n = len(kymo("print", tmp_path / "out").out.splitlines())
    browser.until(f"{TOTAL} === {n}")
    assert [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"] == []
    viewer.end()


@pytest.mark.parametrize("way", ("address", "url"))
def test_recordings_at_a_relay(relay, kymo, kymo_bin, tmp_path, way):
    """They are brought while they are made, and all of them stays there."""
    one = relay()
    with subprocess.Popen([kymo_bin, "record", "-o", one.address("shop"), "-k", "sched_process_*"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as recorder:
        try:
            until(lambda: forks(1) or "/shop (" in kymo("print", one.address(""), code=None).out)
            viewer = Viewer(kymo_bin, "--no-browser", getattr(one, way)("shop"), env={"XDG_CACHE_HOME": str(tmp_path)})
            for _ in range(3):
                before = viewer.counted()["total"]
                until(lambda: forks(5) or viewer.counted()["total"] > before + 10)
                assert viewer.get("info")["recording"]["running"]
        finally:
            recorder.terminate()
    info = until(lambda: not (i := viewer.get("info"))["recording"]["running"] and i)
    assert info["recording"]["error"] is None
    lines = kymo("print", "--no-delta", "--fields", "none", one.trace("shop")).out.splitlines()
    assert viewer.counted()["total"] == len(lines)
    found = viewer.get("rows", row=len(lines) - 50, count=50)["rows"]
    # The relay has the clock as it was known in the end.
    assert [as_line(row).split("] ")[1:] for row in found] == [line.split("] ")[1:] for line in lines[-50:]]
    viewer.end()
