# SPDX-License-Identifier: MIT
"""Searching in the viewer, filters of columns, and what an event's thread waited for."""

import json

from test_view import address, browser, cache, info, page, rows_of, shown, view, as_line, lines  # noqa: F401: fixtures
from test_view_rows import ready

MATCHES = """(() => { const c = document.querySelector('#%s canvas'), x = c.getContext('2d');
  const f = document.createElement('canvas').getContext('2d'); f.fillStyle = getComputedStyle(c).getPropertyValue('--match');
  f.fillRect(0, 0, 1, 1); const p = f.getImageData(0, 0, 1, 1).data, d = x.getImageData(0, 0, c.width, c.height).data; let n = 0;
  for (let i = 0; i < d.length; i += 4) if (d[i] === p[0] && d[i+1] === p[1] && d[i+2] === p[2] && d[i+3] === 255) n++;
  return n; })()"""


def matching(lines, text):
    """Lines that contain a text, without their times."""
    return [line for line in lines if text.lower() in line.split("] ", 1)[1].replace(": {", " {", 1).lower()]


def test_filter_by_text(view, lines, kymo, reference):
    for filter_, wanted in (("?? disk-io", matching(lines, "disk-io")), ("??SCHED_SWITCH", matching(lines, "sched_switch")),
                            ("?? prev_comm = \"disk-io\"", matching(lines, "prev_comm = \"disk-io\""))):
        assert view.counted(filter=filter_)["total"] == len(wanted) > 10
        found = view.get("rows", row=len(wanted) // 2, count=20, filter=filter_)["rows"]
        assert [as_line(row) for row in found] == wanted[len(wanted) // 2:][:20]
    # With an expression, in which "??" is a pattern.
    both = "$event =~ \"sched_switc??\" || $event == 'sched_switch' ?? disk-io"
    wanted = [line for line in matching(lines, "disk-io") if "] sched_switch: " in line]
    assert view.counted(filter=both)["total"] == len(wanted) > 5
    assert view.counted(filter="?? no such text")["total"] == 0
    assert view.counted(filter="??")["total"] == len(lines)
    assert "filter" in view.get("rows", row=0, count=1, filter="x == ?? y", code=400)["error"]
    # Curves, marks, reports and statistics of what is left.
    words = {"begin": view.get("info")["begin"], "end": view.get("info")["end"], "count": 10, "filter": both}
    assert view.get("field", field="sched_switch.next_tid", **words)["values"] == len(wanted)
    ready(view)
    assert view.get("marks", **words)["marks"]
    begin, end = (view.get("info")[word] for word in ("begin", "end"))
    assert view.get("area", begin=begin, end=end, filter="?? disk-io")["events"] == len(matching(lines, "disk-io"))
    assert view.get("report", method="POST", name="cpu", begin=begin, end=end, filter="?? sched_")["events"] > 0


def test_page_searches(page, lines, info):
    wanted = matching(lines, "disk-io")
    page.type("find", "disk-io")
    page.until(f"document.querySelector('#found')?.textContent === '{len(wanted)} found'")
    for place in ("overview", "graph"):
        page.until(MATCHES % place + " > 20")
    # All other events stay, and Enter goes from match to match.
    page.until(f"document.querySelector('.body').getAttribute('aria-rowcount') === '{len(lines)}'")
    times = [int(line[1:3]) * 3600 + int(line[4:6]) * 60 + float(line[7:19]) for line in wanted]
    first = wanted[0][1:19]
    page.until(f"document.querySelector('.line[aria-selected=true]')?.children[1].textContent === '{first}'")
    page.value("document.activeElement.blur()")
    later = next(line for line, time in zip(wanted, times) if time > times[0])[1:19]
    page.key(">")
    page.until(f"document.querySelector('.line[aria-selected=true]')?.children[1].textContent === '{later}'")
    page.key("<")
    page.until(f"document.querySelector('.line[aria-selected=true]')?.children[1].textContent === '{first}'")
    page.key("<")
    page.until("document.querySelector('#found').textContent === 'no earlier match'")
    page.until("new URLSearchParams(location.hash.slice(1)).get('q') === 'disk-io'")
    # An expression, and one that is wrong.
    page.type("find", "prev_tid == 0 && next_tid != 0")
    page.until("/^\\d+ found$/.test(document.querySelector('#found')?.textContent)")
    page.type("find", "no_such == 1")
    page.until("document.querySelector('#found').textContent.includes('no_such')")
    # Of the four questions about it, all have the status 400.
    while len([one for one in page.trouble if one.get("source") == "network"]) < 4:
        page.value("1")
    page.trouble.clear()


def fill(page, name, text):
    page.value(f"document.getElementById('column-{name}').focus()")
    page.call("Input.insertText", text=text)


def test_page_filters_columns(page, lines, kymo, reference):
    fill(page, "event", "switch")
    fill(page, "cpu", "1")
    fill(page, "text", "DISK-io")
    wanted = kymo("print", "--no-delta", "--fields", "none", "--filter", '$event =~ "*switch*" && $cpu == 1', reference).out
    wanted = [line for line in wanted.splitlines() if "disk-io" in line]
    assert wanted
    page.until(f"document.querySelector('.body').getAttribute('aria-rowcount') === '{len(wanted)}'")
    rows = rows_of(page)
    assert [shown(row) for row in rows] == wanted[:len(rows)]
    page.until("new URLSearchParams(location.hash.slice(1)).get('event') === 'switch'")
    place = address(page)
    assert place["cpu"] == "1" and place["text"] == "DISK-io"
    # With a filter that was typed.
    page.type("filter", "prev_tid == 0 || next_tid == 0")
    less = [line for line in wanted if "prev_tid = 0," in line or "next_tid = 0," in line]
    page.until(f"document.querySelector('.body').getAttribute('aria-rowcount') === '{len(less)}'")


def test_details_show_the_waker_and_the_wait(page, view, lines, info):
    """Of the switch to a thread that a wake-up made runnable."""
    ready(view)
    tree = view.get("tree")["rows"]
    expression = '$event == "sched_switch" && next_comm == "disk-io"'
    assert view.counted(filter=expression)["total"] > 10
    switches = view.get("rows", row=0, count=512, filter=expression)["rows"]
    for ns, _, cpu, _, text in switches:
        tid = int(text.split("next_tid = ")[1].split(",")[0])
        thread = next(row for row in tree if row[2] == "thread" and row[3] == tid)
        cause = view.get("cause", row=thread[0], ns=ns)
        if cause["waker"] and cause["waited"]["name"] and cause["waited"]["begin"]:
            break
    else:
        raise AssertionError("no thread was woken")
    # The waking is in the trace, at the end of the wait.
    waking = view.get("rows", row=view.get("rank", ns=cause["waker"]["ns"])["row"], count=5)["rows"]
    assert any(row[0] == cause["waited"]["end"] and row[3].startswith("sched_wak") and f" tid = {tid}," in row[4] for row in waking)
    page.go("about:blank")
    row = view.get("rank", ns=ns)["row"]
    page.go(f"{view.link}#row={row}&c={ns}&top={row}")
    own = f"Array.from(document.querySelectorAll('.cause')).find(e => e.textContent.includes('({tid})'))"
    text = page.until(f"{own}?.textContent")
    assert "Waited before" in text and cause["waited"]["name"] in text and "Woken by" in text
    page.value(f"Array.from({own}.querySelectorAll('button.link')).at(-1).click()")
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{cause['waker']['ns']}'")
    for query in ("cause", "cause?row=1", "cause?row=x&ns=1"):
        assert view.ask(f"/{view.token}/api/{query}")[0] == 400
    view.get("cause", row=10**9, ns=1, code=404)
    assert json.dumps(view.get("cause", row=thread[0], ns=0)["waker"]) == "null"


DROP = """(d => { %s.forEach(n => d.items.add(new File(['x'], n))); document.body.dispatchEvent(
  new DragEvent('drop', {dataTransfer: d, bubbles: true, cancelable: true})); })(new DataTransfer())"""


def test_dropped_files_that_do_not_open_are_explained(page):
    """The browser knows no path: the page names the command that may open them. What opens is in test_view_drop.py."""
    for names, command in ((["my-trace"], "kymo view my-trace"), (["it's <b>", "-x"], "kymo view 'it'\\''s <b>' ./-x"),
                           (["a b", "$(id)"], "kymo view 'a b' '$(id)'")):
        page.value(DROP % json.dumps(names))
        page.until(f"document.querySelector('dialog[open] #open-command')?.textContent === {json.dumps(command)}")
        assert page.value("document.querySelectorAll('dialog b').length") == 0
        page.until("document.querySelector('dialog [role=alert]')?.textContent.includes('does not open')")
        page.key("Escape")
        page.until("!document.querySelector('dialog')")
    page.value(DROP % '["slow.html"]')
    page.until("document.querySelector('dialog[open]')?.textContent.includes('--save')")
    page.key("Escape")
    page.until("!document.querySelector('dialog')")
    rows_of(page)
    page.trouble.clear()  # the browser tells of the refusals


def test_causes_of_waits_come_with_the_rows(page, view, info):
    """The tree of rows may come long after the event that an address selects."""
    view.counted()
    ready(view)
    switches = {"filter": '$event == "sched_switch" && next_tid > 0'}
    view.counted(**switches)
    row = view.get("rows", row=5, count=1, **switches)["rows"][0]
    tid = row[4].split("next_tid = ")[1].split(",")[0]
    late = """(() => { const real = window.fetch; window.held = []; window.fetch = (path, more) => /api.tree/.test(path) && !window.free
      ? new Promise(done => window.held.push(() => done(real(path, more)))) : real(path, more); })()"""
    script = page.call("Page.addScriptToEvaluateOnNewDocument", source=late)["identifier"]
    try:
        page.go("about:blank")
        page.go(f"{view.link}#b={info['begin']}&e={info['end']}&c={row[0]}&row={view.get('rank', ns=row[0])['row']}")
        page.until("window.held.length && /next_tid/.test(document.querySelector('.details')?.textContent ?? '')")
        assert page.value("document.querySelectorAll('.cause').length") == 0
        page.value("window.free = true; window.held.forEach(go => go()); true")
        page.until(f"Array.from(document.querySelectorAll('.cause')).some(e => e.textContent.includes('({tid})'))")
    finally:
        page.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def test_a_filter_is_never_cut(page, view, info):
    """Neither by the page nor by the server: it holds, or there is an error that says why."""
    words = {"begin": info["begin"], "end": info["end"], "count": 10}
    long = " || ".join(["$event == 'sched_switch'"] * 146)
    assert 4000 < len(long) < 4096
    assert view.counted(filter=long)["total"] == view.counted(filter="$event == 'sched_switch'")["total"]
    found = view.get("field", field="sched_switch.next_tid", filter=f"{long[28:]} ?? sched_", **words)
    assert found["values"] == view.get("field", field="sched_switch.next_tid", **words)["values"] > 0
    assert "filter is too long; it may have 4095 bytes" in view.get("density", filter=long * 2, code=400, **words)["error"]
    page.type("filter", long)
    page.until(f"document.querySelector('#total').textContent === '{view.counted(filter=long)['total']} events'")
    page.type("filter", long + " || " + long)
    page.until("document.querySelector('.note.error')?.textContent.includes('too long: it may have 4095 bytes')")
    # The server is not asked again and again about a filter that is wrong.
    page.type("filter", "no_such == 1")
    page.until("document.querySelector('.note.error')?.textContent.includes('no_such')")
    for _ in range(60):
        page.value("new Promise(resolve => requestAnimationFrame(resolve)) && true")
    assert len([one for one in page.trouble if one.get("source") == "network"]) < 20, page.trouble
    page.trouble.clear()
