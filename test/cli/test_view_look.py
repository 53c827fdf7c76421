# SPDX-License-Identifier: MIT
"""How the rows of `kymo view` look: colours that colour-blind people can distinguish, narrow and wide windows, words for all."""

import itertools
import math
import os
import re

import pytest

from test_view import address, browser, cache, info, page, view  # noqa: F401: fixtures
from test_view_rows import chosen, press, tracks, tree, until  # noqa: F401: a fixture

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WHITE, BLACK = "#ffffff", "#14181e"  # the page's two papers
# Machado, Oliveira and Fernandes: what is left of the colours.
EYES = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
STATES_OF_THREADS = (3, 4, 5, 6, 7, 9, 10, 11)
BRIGHT = (6, 7, 9, 15)


@pytest.fixture(scope="module")
def colours():
    with open(os.path.join(ROOT, "web", "src", "states.ts"), encoding="utf-8") as file:
        return re.findall(r'^  \["([^"]+)", "(#[0-9a-f]{6})"\],$', file.read(), re.M)


def linear(colour):
    values = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def lab(rgb):
    x, y, z = (sum(a * b for a, b in zip(row, rgb)) for row in (
        (0.4339, 0.3762, 0.1899), (0.2126, 0.7152, 0.0722), (0.0177, 0.1095, 0.8729)))
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(colour, eye):
    return lab([min(max(sum(a * b for a, b in zip(row, linear(colour))), 0), 1) for row in EYES[eye]])


def contrast(one, other):
    light = sorted(sum(a * b for a, b in zip((0.2126, 0.7152, 0.0722), linear(c))) for c in (one, other))
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("eye", EYES)
def test_states_of_threads_are_distinct(colours, eye):
    assert len(colours) == 22
    for a, b in itertools.combinations(STATES_OF_THREADS, 2):
        assert math.dist(seen(colours[a][1], eye), seen(colours[b][1], eye)) > 15, (colours[a], colours[b])


def test_states_are_visible_on_both_papers(colours):
    for kind, (text, colour) in enumerate(colours):
        edge = "#" + "".join(f"{round(int(colour[i:i + 2], 16) * 0.45):02x}" for i in (1, 3, 5))
        assert contrast(edge if kind in BRIGHT + (19, 20) else colour, WHITE) >= 2.9, text
        assert contrast(colour, BLACK) >= 2.7, text


# Contrast of texts with what is behind them, the least of all visible ones.
CONTRAST = """(() => { const parse = c => c.match(/[\\d.]+/g).map(Number), lin = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const lum = c => 0.2126 * lin(c[0]) + 0.7152 * lin(c[1]) + 0.0722 * lin(c[2]);
  const behind = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if ((c[3] ?? 1) > 0.99) return c; }
    return [255, 255, 255]; };
  return Math.min(...Array.from(document.querySelectorAll('.track .text, .tip, .rows-bar label, .colours li')).map(e => {
    const l = [lum(parse(getComputedStyle(e).color)), lum(behind(e))].sort((a, b) => a - b); return (l[1] + 0.05) / (l[0] + 0.05); })); })()"""


@pytest.mark.parametrize("width,height,scheme", ((1024, 768, "dark"), (1024, 768, "light"), (3840, 2160, "light"), (3840, 2160, "dark")))
def test_rows_fit_windows(browser, tree, width, height, scheme):
    browser.look(width, height, scheme)
    try:
        tree.until(f"document.querySelector('.scroller canvas').clientWidth > {width * 0.7}")
        box = "(e => (r => [r.left, r.right, r.top, r.bottom])(e.getBoundingClientRect()))(document.querySelector('%s'))"
        # One time axis: rows begin and end where the graph does.
        sides = lambda: [tree.value(box % where)[:2] for where in ("#graph canvas", ".scroller canvas")]  # noqa: E731
        tree.meet(lambda: (lambda graph, rows: rows == pytest.approx(graph, abs=2) and rows[1] <= width)(*sides()), sides)
        tree.until(f"document.documentElement.scrollWidth <= {width}")
        tree.until("Array.from(document.querySelectorAll('.rows-bar > *')).every(e => e.getBoundingClientRect().right <= "
                          "document.querySelector('.rows-bar').getBoundingClientRect().right)")
        tree.until("Math.max(...Array.from(document.querySelectorAll('.rows-bar > *')).map(e => e.getBoundingClientRect().bottom)) <= "
                   "document.querySelector('.rows-bar').getBoundingClientRect().bottom")
        # All of the width is drawn, up to the last event.
        tree.until("""(c => { const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, w = c.width; let last = 0;
          for (let y = 36; y < c.height; y++) for (let x = w - 1; x > last; x--) if (d[4 * (y * w + x) + 3] === 255) last = x;
          return last > 0.99 * w; })(document.querySelector('.scroller canvas'))""")
        press(tree, "ArrowDown", "ArrowDown", "ArrowDown")
        until(tree, lambda: chosen(tree) == "CPU 0", "CPU 0 is selected")
        press(tree, "n", "?")
        tree.until("document.querySelector('.colours li')")
        tree.meet(lambda: tree.value(CONTRAST) >= 4.5, lambda: tree.value(CONTRAST))
        tree.until("document.querySelectorAll('.colours li').length === 20")
        press(tree, "Escape")
    finally:
        browser.look(1400, 900, "light")


def test_rows_have_words(tree):
    """What a screen reader finds: each row has a name, a level, its place; nothing that can be operated lacks a name."""
    press(tree, "]", "Home")
    until(tree, lambda: tracks(tree)[2][2] == "true", "all rows open")
    tree.until("(rows => rows.length > 8 && rows.every(e => ['aria-label', 'aria-level', 'aria-posinset', 'aria-setsize', 'aria-selected'].every("
               "a => e.getAttribute(a))))(Array.from(document.querySelectorAll('[role=treeitem]')))")
    tree.until("Array.from(document.querySelectorAll('[role=treeitem]')).filter(e => / \\(\\d+\\)$/.test(e.querySelector('.text').textContent))"
               ".every(e => /: (\\d+ %|mean|no )/.test(e.getAttribute('aria-label')))")
    tree.until("Array.from(document.querySelectorAll('#timeline :is(button, input, select), .rows-bar :is(button, input, select)'))"
               ".every(e => e.labels?.length || e.getAttribute('aria-label'))")
    tree.until("Array.from(document.querySelectorAll('#timeline canvas')).every(c => c.getAttribute('aria-hidden') === 'true')")
    # Keys of the help are in the documentation.
    press(tree, "?")
    keys = tree.until("Array.from(document.querySelectorAll('dialog dt')).map(e => e.textContent)")
    with open(os.path.join(ROOT, "docs", "viewer.md"), encoding="utf-8") as file:
        text = file.read()
    documented = {key for line in text.splitlines() if line.startswith("| ")
                  for key in [*line.split("|")[1].strip().split(", "), *line.split("|")[1]]}
    for key in itertools.chain(*(one.split(", ") for one in keys if not re.search("wheel|[Dd]rag|Arrows", one))):
        assert {"comma": ",", "full stop": "."}.get(key, key.split(" (")[0]) in documented, key
    press(tree, "Escape")
