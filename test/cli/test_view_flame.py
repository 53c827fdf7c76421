# SPDX-License-Identifier: MIT
"""The flame graph of call stacks in the viewer's page."""

import collections
import json

import pytest

from test_view import Viewer, browser  # noqa: F401 (a fixture)

FLAME = "document.querySelector('.report[data-ready=true] .flame')"
NOTE = f"{FLAME}?.querySelector('[role=status]')?.textContent ?? ''"
# The colours of the middles of boxes at places of the width, in a row of boxes.
COLOURS = f"""((row, n) => {{ const c = {FLAME}.querySelector('canvas'), p = c.getContext('2d'); return Array.from({{length: n}}, (_, i) =>
  Array.from(p.getImageData(Math.floor((i + 0.5) / n * c.width), row * 17 + 3, 1, 1).data).join()); }})"""


def most_of(colours):
    """That of more than half of them: the others are letters and frames."""
    colour, n = collections.Counter(colours).most_common(1)[0]
    return colour if n > len(colours) / 2 and colour != "0,0,0,0" else None


@pytest.fixture(scope="module")
def trace(kymo, tmp_path_factory):
    trace = tmp_path_factory.mktemp("flame") / "trace"
    done = kymo("record", "-k", "sched_switch", "--callstack-kernel", "sched_switch", "--duration", "300ms", "-o", trace, code=None)
    if done.code:
        pytest.skip(f"no recording of the kernel: {done.err.strip()[:200]}")
    return trace


def test_flame_graph_of_a_selection(kymo, kymo_bin, browser, trace, tmp_path):  # noqa: F811
    tree = json.loads(kymo("report", "flame", "--of", "sched_switch", "--json", trace).out)["reports"][0]["tables"][0]["rows"]
    viewer = Viewer(kymo_bin, "--no-browser", trace, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    try:
        info = viewer.get("info")
        browser.go("about:blank")
        browser.trouble.clear()
        browser.go(f"{viewer.link}#b={info['begin']}&e={info['end']}&r=flame&about=sched_switch")
        deepest = max(row["depth"] for row in tree) + 1
        assert browser.until(f"{FLAME}?.querySelector('canvas').getAttribute('aria-label')") == f"Flame graph: {len(tree)} functions, up to {deepest} deep"
        # The first function fills its part of the width, and what it calls no more than that.
        share = tree[0]["share"]
        first = browser.until(f"(l => l[0] !== '0,0,0,0' && l)({COLOURS}(0, 200))")
        own = first[:int(share * 200) - 1]
        assert len(own) > 5 and most_of(own) and most_of(own) not in first[int(share * 200) + 2:int(share * 200) + 3]
        # By keyboard: the name of the first one and of its first callee, alone, and all again.
        browser.value(f"{FLAME}.querySelector('[role=group]').focus()")
        browser.key("ArrowDown")
        assert browser.until(f"(t => /Total/.test(t) && t)({NOTE})").startswith(f"{tree[0]['function']}: Total {100 * share:.1f} %")
        browser.key("ArrowDown")
        below = tree[1]["function"].strip()
        browser.until(f"({NOTE}).startsWith({json.dumps(below + ':')})")
        browser.key("Enter")
        browser.until(f"Array.from({FLAME}.querySelectorAll('button')).some(b => b.textContent === 'Show all')")
        browser.meet(lambda: most_of(browser.value(f"{COLOURS}(1, 40)")), "the function fills the width")
        browser.key("Escape")
        browser.until(f"!{FLAME}.querySelector('button')")
        # Marked functions have another colour.
        part = f"{COLOURS}(1, 200).slice(0, {int(tree[1]['share'] * 200) - 1})"
        before = most_of(browser.still(part))
        browser.value(f"(e => {{ e.value = {json.dumps(below)}; e.dispatchEvent(new Event('input', {{bubbles: true}})); }})({FLAME}.querySelector('input'))")
        browser.until(f"!{part}.includes({json.dumps(before)})")
        # A part of the time has less.
        half = info["begin"] + (info["end"] - info["begin"]) // 2
        browser.value(f"location.hash = 'b={info['begin']}&e={half}&r=flame&about=sched_switch'")
        count = f"Array.from(document.querySelectorAll('[data-table=tree] tbody tr'))[0]?.children"
        browser.until(f"Array.from({count} ?? []).some(c => Number(c.title) > 0 && Number(c.title) < {tree[0]['count']} && Number.isInteger(Number(c.title)))")
        assert browser.trouble == [] or all(one.get("source") == "rendering" for one in browser.trouble if isinstance(one, dict))
        browser.requests.clear()
    finally:
        viewer.end()
