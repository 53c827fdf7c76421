# SPDX-License-Identifier: MIT
"""The address of the viewer's page: in another tab it shows the same."""

import json
import urllib.parse

from test_view import address, browser, cache, info, page, rows_of, view  # noqa: F401: fixtures

SEEN = """(() => ({
  legend: document.querySelector('.legend span')?.textContent,
  filter: document.getElementById('filter')?.value,
  total: document.getElementById('total')?.textContent,
  selected: document.querySelector('.line[aria-selected=true]')?.textContent ?? null,
  rows: Array.from(document.querySelectorAll('.body .line')).map(row => row.textContent),
  report: document.querySelector('.report[data-ready=true] table')?.textContent ?? null,
  chosen: document.getElementById('report')?.value,
  tracks: Array.from(document.querySelectorAll('[role=treeitem]')).map(
    row => row.getAttribute('aria-label').split(': ')[0]),
}))()"""


def new_tab(browser):
    """Go on in another tab."""
    browser.session = None
    target = browser.call("Target.createTarget", url="about:blank")["targetId"]
    browser.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    for domain in ("Page", "Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable")
    browser.call("Page.setLifecycleEventsEnabled", enabled=True)
    browser.look(1400, 900, "light")


def settled(page):
    """What is seen once nothing changes any more."""
    return page.still(SEEN, times=10, pause_s=0.1)


def choose(browser, element, value):
    browser.value(f"(s => {{ s.value = {json.dumps(value)}; s.dispatchEvent(new Event('change', {{bubbles: true}})); }})"
                  f"(document.getElementById('{element}'))")


def test_link_restores_range_selection_filter_report_and_event(page, view, info):
    """What a colleague sees who gets the link."""
    first = page.session
    begin = info["begin"] + 10**8
    # A page of its own: the address of one that is open counts a moment later, and would take the filter away.
    page.go("about:blank")
    page.go(f"{view.link}#b={begin}&e={begin + 10**9}")
    page.until("document.getElementById('filter') && document.querySelectorAll('.body .line').length > 5")
    page.type("filter", "prev_tid != 0")
    # The text counts a moment after its last character.
    page.until("new URLSearchParams(location.hash.slice(1)).get('f') === 'prev_tid != 0'")
    page.until("/^\\d+ events/.test(document.querySelector('#total').textContent)")
    page.value("document.activeElement.blur()")
    for key in "wwm":  # a selection, and a view that is wider
        page.key(key)
    page.key("s")
    rows_of(page)
    page.value("document.querySelector('.body').focus()")
    for _ in range(3):
        page.key("ArrowDown")
    page.until("document.querySelector('.line[aria-selected=true]')")
    choose(page, "report", "cpu")
    choose(page, "row-sort", "name")
    page.until("document.querySelector('.report[data-ready=true] table')")
    page.until("Array.from(document.querySelectorAll('[role=treeitem]')).filter(e => e.textContent).length > 5")
    page.until("new URLSearchParams(location.hash.slice(1)).get('sort') === 'name'")
    wanted = address(page)
    assert {"b", "e", "s", "f", "r", "row", "c", "sort"} <= set(wanted)
    seen = settled(page)
    link = page.value("location.href")
    assert urllib.parse.urlsplit(link).fragment
    try:
        new_tab(page)
        page.go(link)
        page.until("document.querySelector('.report[data-ready=true] table')")
        page.until("document.querySelector('.line[aria-selected=true]')")
        page.meet(lambda: settled(page) == seen and address(page) == wanted, lambda: (settled(page), seen, address(page), wanted))
    finally:
        page.session = first


def test_link_with_nonsense_shows_the_trace(page, view, info):
    page.go(view.link + "#b=9&e=1&s=x,y&row=-1&c=%3Cb%3E&r=nothing&top=1e9&toggled=%20%20&sort=%22")
    rows_of(page)
    assert page.value("document.querySelectorAll('#app b').length") == 0
    page.key("w")
    page.until("new URLSearchParams(location.hash.slice(1)).get('b') !== '9'")
    assert info["begin"] <= int(address(page)["b"]) < int(address(page)["e"]) <= info["end"]
