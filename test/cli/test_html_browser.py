# SPDX-License-Identifier: MIT
"""The HTML page of the reports in a real browser: it runs without trouble, loads nothing, and is to be
seen in wide and narrow, light and dark windows."""

import json
import re
import shutil

import pytest

from browser import Browser

# What is on the page: sizes of what must be seen, and the height of the lines of its tables' first rows.
SIZES = """(() => {
  const box = e => { const r = e.getBoundingClientRect(); return [r.width, r.height, r.left, r.right]; };
  const all = (what) => Array.from(document.querySelectorAll(what));
  const seen = e => !e.closest('details:not([open])');
  return {
    window: innerWidth,
    page: document.documentElement.scrollWidth,
    tables: all('.rows table').filter(seen).map(box),
    frames: all('.rows').filter(seen).map(box),
    charts: all('svg').filter(seen).map(box),
    figures: all('figure').filter(seen).map(box),
    bars: all('svg rect').filter(seen).map(box),
    lines: all('svg polyline').filter(seen).map(box),
    labels: all('svg text').filter(seen).map(e => [parseFloat(getComputedStyle(e).fontSize) *
      e.ownerSVGElement.getBoundingClientRect().width / e.ownerSVGElement.viewBox.baseVal.width]),
    empty: all('h3').filter(seen).filter(e => !e.nextElementSibling || e.nextElementSibling.matches('h2,h3')).length,
    ink: getComputedStyle(document.body).color,
    paper: getComputedStyle(document.querySelector('th')).backgroundColor,
    search: document.getElementById('search').hidden,
  };
})()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not shutil.which("chromium"):
        pytest.skip("no chromium to look at the page with")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def trace(kymo, needs_root_tracefs, tmp_path_factory):
    """Of this machine, with something in every report's tables."""
    path = tmp_path_factory.mktemp("page")
    kymo("record", "-o", path / "trace", "-k", "default", "-k", "kmem_mm_page_*", "--", "sh", "-c",
         f"ls -R /etc | cat; dd if=/dev/zero of={path}/file bs=64k count=8 conv=fsync")
    return path / "trace"


@pytest.fixture(scope="module")
def pages(kymo, trace):
    """The page of all reports, and one of intervals."""
    whole, intervals = trace.parent / "whole.html", trace.parent / "intervals.html"
    whole.write_text(kymo("report", "all", "--html", "--limit", "60", trace).out)
    intervals.write_text(kymo("report", "cpu,sched,syscalls,io,block", "--html", "--limit", "20",
                              "--refresh", "10ms", "-t", "threads", "-t", "cpus", "-t", "total", trace).out)
    return whole, intervals


def luminance(colour):
    return sum(float(part) for part in re.findall(r"[\d.]+", colour)[:3]) / (3 * 255)


@pytest.mark.parametrize("width,scheme", ((1300, "light"), (420, "dark")))
@pytest.mark.parametrize("which", (0, 1))
def test_page_is_seen(browser, pages, which, width, scheme):
    browser.requests.clear()
    browser.look(width, 900, scheme)
    browser.open(pages[which])
    sizes = browser.value(SIZES)
    assert browser.trouble == []
    assert browser.requests == [f"file://{pages[which]}"]
    # The page is as wide as the window: what is wider scrolls in its own frame.
    assert sizes["window"] == width and sizes["page"] <= width
    for w, h, left, right in sizes["frames"] + sizes["figures"]:
        assert w > 40 and h > 20 and left >= 0 and right <= width
    assert all(w > 40 and h > 20 for w, h, _, _ in sizes["tables"] + sizes["charts"])
    assert all(w > 1 for w, _, _, _ in sizes["lines"])
    assert all(size >= 9 for size, in sizes["labels"])
    if which == 0:
        assert len(sizes["tables"]) > 20 and len(sizes["charts"]) > 8
        assert sum(h >= 1 for _, h, _, _ in sizes["bars"]) > 30
    else:
        assert len(sizes["lines"]) > 10
    assert not sizes["search"] and not sizes["empty"]
    ink, paper = luminance(sizes["ink"]), luminance(sizes["paper"])
    assert (ink < 0.3 and paper > 0.8) if scheme == "light" else (ink > 0.7 and paper < 0.3)


def test_click_sorts_and_text_finds(browser, kymo, trace, pages):
    """A click on a heading sorts by it, another one the other way; the field above leaves rows that have its text."""
    browser.open(pages[0])
    table = "document.querySelector('#cpu table')"
    column = f"Array.from({table}.tHead.rows[0].cells).findIndex(th => th.textContent === 'CPU time')"
    values = f"Array.from({table}.tBodies[0].rows).map(row => Number(row.cells[{column}].dataset.v))"
    report, = json.loads(kymo("report", "cpu", "--json", "-n", "60", "-t", "threads", trace).out)["reports"]
    times = [row["cpu_time"] for row in report["tables"][0]["rows"]]
    assert browser.value(values) == times
    for down in (True, False):
        browser.value(f"{table}.tHead.rows[0].cells[{column}].click()")
        assert browser.value(values) == sorted(times, reverse=down)
    # Dates have more digits than JavaScript's numbers.
    begins = "Array.from(document.querySelectorAll('#io-log tbody tr')).map(row => row.cells[1].textContent)"
    heading = "document.querySelectorAll('#io-log th')[1]"
    assert browser.value(f"{heading}.textContent") == "Begin"
    browser.value(f"{heading}.click()")
    assert browser.value(begins) == sorted(browser.value(begins), reverse=True)
    browser.value("search.value = 'DD'; search.dispatchEvent(new Event('input'))")
    left = browser.value("Array.from(document.querySelectorAll('tbody tr:not([hidden])')).map(row => row.textContent)")
    assert left and all("dd" in text.lower() for text in left)
    assert browser.trouble == []
