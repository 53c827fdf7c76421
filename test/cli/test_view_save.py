# SPDX-License-Identifier: MIT
"""kymo view --save: a range as one file, which a browser opens without a server."""

import json
import os
import re
import shutil
import subprocess
import time

import pytest

import make_trace
from test_view_links import choose
from test_view_rows import ready
from test_view import INK, PATIENCE_S, Viewer, address, browser, rows_of, shown  # noqa: F401 (a fixture)


def at(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}"


def open_page(browser, path):
    browser.go("about:blank")
    browser.trouble.clear()
    browser.requests.clear()
    browser.go(path if str(path).startswith("http") else f"file://{path}")
    browser.until("/^\\d+ events/.test(document.querySelector('#total')?.textContent ?? '')")


def is_quiet(browser, path):
    """No error, and nothing else was asked for."""
    assert [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"] == []
    assert [url for url in browser.requests if not url.startswith("about:")] == [f"file://{path}"]


@pytest.fixture(scope="module")
def saved(kymo, reference, tmp_path_factory, events):
    """A second of the trace, far from where it was recorded."""
    path = tmp_path_factory.mktemp("saved") / "page.html"
    times = [event.ns for event in events]
    begin = times[0] + 10**9 // 5
    end = begin + 10**9
    kymo("view", "--save", path, "--begin", at(begin), "--end", at(end), reference)
    return path, begin, end


def test_page_has_the_events_of_the_range(browser, saved, kymo, reference):
    path, begin, end = saved
    lines = kymo("print", "--no-delta", "--fields", "none", "--begin", at(begin), "--end", at(end), reference).out.splitlines()
    open_page(browser, path)
    browser.until(f"document.querySelector('#total').textContent === '{len(lines)} events'")
    rows = rows_of(browser)
    assert [shown(row) for row in rows] == lines[:len(rows)]
    browser.until(INK % "overview" + " > 500")
    browser.until(f"document.querySelector('#graph canvas').getAttribute('aria-label').includes('{len(lines)} events')")
    # The last event, with its fields.
    browser.value("document.querySelector('.body').focus()")
    browser.key("End")
    browser.until("document.querySelector('aside dl')")
    wanted = json.loads(kymo("convert", "--to", "json", "--begin", at(begin), "--end", at(end), reference).out.splitlines()[-1])
    names = browser.still("Array.from(document.querySelectorAll('aside dt')).map(e => e.textContent)")
    assert set(wanted["fields"]) <= {name.split(".")[0].split("[")[0] for name in names}
    # The filter is a text.
    text = "next_comm = \"swapper/0\""
    browser.type("filter", text)
    found = [line for line in lines if text in line]
    browser.until(f"document.querySelector('#total').textContent === '{len(found)} events'")
    browser.until(f"document.querySelector('.body').getAttribute('aria-rowcount') === '{len(found)}'")
    browser.until("document.querySelector('.body .line')?.children[0].textContent === '1'")
    rows = rows_of(browser, 1)
    assert [shown(row) for row in rows] == found[:len(rows)]
    is_quiet(browser, path)


def test_page_has_rows_and_reports(browser, saved, kymo, kymo_bin, reference, tmp_path):
    path, begin, end = saved
    open_page(browser, path)
    labels = browser.until("(l => l.length > 10 && l.some(t => /^CPU 0: .*idle/.test(t)) && l)(Array.from("
                           "document.querySelectorAll('[role=treeitem]')).map(e => e.getAttribute('aria-label')))")
    # The same rows with the same shares as from the server, but for what lies between two pixels.
    viewer = Viewer(kymo_bin, "--no-browser", reference, env={"XDG_CACHE_HOME": str(tmp_path)})
    until = time.monotonic() + PATIENCE_S
    while not viewer.get("tree")["ready"] and time.monotonic() < until:
        time.sleep(0.05)
    open_page(browser, f"{viewer.link}#b={begin}&e={end}")
    browser.until(f"Array.from(document.querySelectorAll('[role=treeitem]')).some(e => e.getAttribute('aria-label') === "
                  f"{json.dumps(next(one for one in labels if one.startswith('CPU 0: ')))})")
    browser.go("about:blank")
    viewer.end()
    open_page(browser, path)
    browser.value("(s => { s.value = 'cpu'; s.dispatchEvent(new Event('change', {bubbles: true})); })"
                  "(document.getElementById('report'))")
    browser.until("document.querySelector('.report[data-ready=true] table')")
    # The page's reports ran together: who woke whom is known better with the events of interrupts.
    reports = json.loads(kymo("report", "cpu,irq", "--json", "--begin", at(begin), "--end", at(end), reference).out)["reports"]
    for table in next(report for report in reports if report["name"] == "cpu")["tables"]:
        heads, titles = browser.still(f"(t => !t ? [[], []] : ['th', 'tbody tr'].map(s => Array.from(t.querySelectorAll(s)).map(e => s === 'th' ? e.textContent : "
                                      f"Array.from(e.children).map(c => c.title))))(document.querySelector('[data-table={table['name']}]'))")
        columns = [column for column in table["columns"] if column["title"] in heads]  # those that have room
        wanted = [[row[column["name"]] for column in columns] for row in table["rows"][:50]]
        assert [[json.loads(title) for title in row] for row in titles] == wanted
    # Its address has the range, as that of any page.
    browser.value("document.activeElement.blur()")
    browser.key("w")
    browser.until("location.hash.includes('b=')")
    assert begin <= int(address(browser)["b"]) < int(address(browser)["e"]) <= end
    is_quiet(browser, path)


def test_text_of_traces_is_no_markup(browser, kymo, tmp_path):
    """Names and texts that end a script or begin a comment, in all that the page has."""
    evil = "</script><script>alert(1)</script><!--"
    trace = make_trace.sample(tmp_path / "<b>trace", packets=3, per_packet=20)
    metadata = make_trace.METADATA.replace('name = "tick"', f'name = "{evil}"').replace('"lab"', f'"{evil}"')
    (trace / "metadata").write_text(metadata)
    for name in ("channel_0", "channel_1"):
        data = (trace / name).read_bytes()
        (trace / name).write_bytes(data.replace(b"ttttttttt\0", b"</script>\0"))
    path = tmp_path / "page.html"
    kymo("view", "--save", path, trace)
    text = path.read_text()
    assert len(re.findall("<script", text)) == 2 and len(re.findall("</script", text)) == 2
    assert "alert(1)" not in text and "<!--" not in text
    open_page(browser, path)
    browser.until("document.querySelector('#total').textContent === '120 events, 14 lost'")
    assert any(row[3] == evil for row in rows_of(browser))
    browser.until(f"document.querySelector('.traces').textContent.includes({json.dumps(evil)})")
    assert browser.value("document.querySelectorAll('script').length") == 2
    browser.until(INK.replace("--events", "--lost") % "graph" + " > 20")
    is_quiet(browser, path)


def test_command_says_what_is_wrong(kymo, kymo_bin, reference, tmp_path):
    path = tmp_path / "page.html"
    assert "--save" in kymo("view", "--begin", "+1s", reference, code=2).err
    error = kymo("view", "--save", path, "--begin", "1", "--end", "2", reference, code=1).err
    assert re.search(r"no event: the trace goes from \d{4}-\d\d-\d\d \S+ to \d{4}-", error) and not path.exists()
    said = kymo("view", "--save", path, "--end", "+1ms", reference)
    assert said.err.startswith(f"Page: {path}, ") and said.err.endswith("iB\n") and not said.out
    path.unlink()
    big = tmp_path / "big"
    make = os.path.join(os.path.dirname(kymo_bin), "..", "..", "bench", "make-trace")
    if not os.path.exists(make):
        pytest.skip("this build has no benchmarks")
    subprocess.run([make, "-n", "1100000", "-k", "1", big], check=True)
    error = kymo("view", "--save", path, big, code=1).err
    assert "a million events" in error and "--begin" in error and not path.exists()
    shutil.rmtree(big)
    assert "cannot" in kymo("view", "--save", tmp_path / "none" / "page.html", reference, code=1).err


def answers_of(browser, pages, look):
    """What @look finds in the page of the server and in the saved one."""
    found = []
    for url in pages:
        open_page(browser, url)
        found.append(look())
    return found


@pytest.fixture(scope="module")
def server(kymo_bin, reference, tmp_path_factory):
    viewer = Viewer(kymo_bin, "--no-browser", reference, env={"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))})
    ready(viewer)
    yield viewer
    viewer.end()


def test_page_has_the_durations_of_the_server(browser, saved, server):
    """The same maps, pixel for pixel, and the same members."""
    path, begin, end = saved
    heat = "document.querySelector('.latency[data-ready=true] .heat canvas')"

    def look():
        found = {}
        choose(browser, "report", "latency")
        for kind in ("calls", "waits", "ready", "irqs", "requests"):
            choose(browser, "latency-kind", kind)
            n = server.get("latency", name=kind, count=60, begin=begin, end=end)["n"]
            assert n > 0, kind
            browser.until(f"{heat}?.getAttribute('aria-label').startsWith('{n} durations in')")
            browser.value("document.querySelector('.heat').focus()")
            for _ in range(64):
                browser.key("ArrowUp")
            rows = browser.until("(l => l.length && l)(Array.from(document.querySelectorAll('[data-members] tbody tr')).map(e => e.textContent))")
            found[kind] = (rows, browser.still(f"{heat}.toDataURL()"),
                           browser.value("Array.from(document.getElementById('latency-name').options).map(e => e.textContent)"))
        return found

    ours, theirs = answers_of(browser, (f"{server.link}#b={begin}&e={end}", f"{path}#b={begin}&e={end}"), look)
    assert ours == theirs
    assert [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"] == []


def test_page_has_causes_of_waits(browser, saved, server):
    """What a thread waited for and who woke it: in the details, and in the line under the rows."""
    path, begin, end = saved
    threads = {row[3]: row[0] for row in server.get("tree")["rows"] if row[2] == "thread"}
    found = []
    server.counted()
    first = server.get("rank", ns=begin)["row"]
    switches = {"filter": '$event == "sched_switch" && next_tid > 0'}
    server.counted(**switches)
    for row in server.get("rows", row=server.get("rank", ns=begin, **switches)["row"], count=512, **switches)["rows"]:
        tid = int(row[4].split("next_tid = ")[1].split(",")[0])
        if tid in threads:
            cause = server.get("cause", row=threads[tid], ns=row[0])
            if cause["waker"] and cause["waited"]["name"] and cause["waited"]["begin"] and cause["waited"]["end"] >= begin:
                found.append((row[0], tid, cause))
    assert len(found) > 3
    for ns, tid, cause in found[:3]:
        middle = (cause["waited"]["begin"] + cause["waited"]["end"]) // 2

        def look():
            browser.value("document.querySelector('.body').focus()")
            text = browser.until(f"Array.from(document.querySelectorAll('.cause')).map(e => e.textContent).find("
                                 f"t => t.startsWith('The next thread') && t.includes('({tid})'))")
            browser.value(f"location.hash = 'b={begin}&e={end}&c={max(middle, begin)}&track={threads[tid]}'")
            return text, browser.until("(t => t.includes('oken by') && t)(document.getElementById('row-tip')?.textContent ?? '')")

        rows = [server.get("rank", ns=ns)["row"]]
        rows.append(rows[0] - first)
        pages = [f"{base}#b={begin}&e={end}&c={ns}&row={row}" for base, row in zip((server.link, path), rows)]
        ours, theirs = answers_of(browser, pages, look)
        assert ours == theirs and "Waited before" in ours[0] and "Woken by" in ours[0]


def test_page_has_curves_of_fields(browser, saved, server):
    """Integers and the values of enumerations."""
    path, begin, end = saved
    name = "sched_switch.next_prio"

    def look():
        browser.key("c")
        browser.until("document.activeElement.id === 'row-field'")
        browser.type("row-field", name)
        label = browser.until(f"(t => / at most /.test(t) && t)(Array.from(document.querySelectorAll('.scroller .track')).find("
                              f"e => e.querySelector('.text').textContent === '{name}')?.getAttribute('aria-label') ?? '')")
        # But for the first pixel, in which the server knows earlier events, too.
        picture = browser.still("(c => Array.from(c.getContext('2d').getImageData(1, 0, c.width - 1, c.height).data).join())("
                                "document.querySelector('.scroller canvas'))")
        return label, picture, browser.until("document.querySelectorAll('#row-fields option').length")

    words = f"b={begin}&e={end}&rows=next_prio"
    ours, theirs = answers_of(browser, (f"{server.link}#{words}", f"{path}#{words}"), look)
    assert ours == theirs


REPORT = "document.querySelector('.report[data-ready=true]')"


def tables_of(page):
    """The tables of the report, as the values of the cells that are shown."""
    return page.value(f"Array.from({REPORT}.querySelectorAll('table')).map(t => [t.dataset.table, Array.from(t.querySelectorAll('tbody tr')).map("
                      "r => Array.from(r.children).map(c => c.title))])")


def test_page_has_reports_on_causes(browser, saved, server):
    """What stands out, the breakdown, the map, its members, and the path of a thread, as the server has them; and a choice."""
    path, begin, end = saved

    def look(page, report, more=""):
        page.value(f"location.hash = 'b={begin}&e={end}&r={report}{more}'")
        page.until(f"{REPORT}?.querySelector('h2').textContent === '{report}' && {REPORT}.querySelector('tbody tr')")
        return tables_of(page)

    both = {}
    row = next(row[0] for row in ready(server)["rows"] if row[2] == "thread" and row[3] == 326)
    for name in (str(path), f"{server.link}#b={begin}&e={end}"):
        open_page(browser, name)
        found = [look(browser, "why"), look(browser, "breakdown"), look(browser, "heatmap", "&about=syscall:*")]
        canvas = browser.value(f"{REPORT}.querySelector('.heat canvas').getAttribute('aria-label')")
        found.append(look(browser, "critical-path", f"&of={row}&track={row}&rows=tcp-server"))
        browser.until("(t => / % /.test(t))(document.getElementById('row-path')?.getAttribute('aria-label') ?? '')")
        both[name] = found[:2] + [dict(found[2])["axis"], canvas] + [
            {table: sorted(rows) if table == "parts" else rows for table, rows in found[3]}]
    ours, theirs = both.values()
    for one, other in zip(ours, theirs):
        assert one == other
    assert len(ours[4]["log"]) > 20 and len(ours[4]["threads"]) > 1
    # In the saved page: another choice, and the members of a cell.
    open_page(browser, path)
    look(browser, "heatmap")
    choices = browser.value("Array.from(document.getElementById('report-of').options).map(o => o.value)")
    assert choices[0] == "syscall:*" and "softirq" in choices
    before = browser.still(f"{REPORT}.querySelector('.heat canvas').getAttribute('aria-label')")
    choose(browser, "report-of", "softirq")
    browser.until(f"({REPORT}?.querySelector('.heat canvas')?.getAttribute('aria-label') ?? {json.dumps(before)}) !== {json.dumps(before)}")
    browser.value("document.querySelector('.heat').focus()")
    browser.key("ArrowUp")
    browser.until(f"/longest of/.test({REPORT}.textContent)")
    # A thread without a path says so.
    browser.value(f"location.hash = 'b={begin}&e={end}&r=critical-path&of=0'")
    assert "select one" in browser.until(f"{REPORT}?.querySelector('.error')?.textContent")
    is_quiet(browser, path)


def test_page_has_the_flame_graph(kymo, browser, tmp_path):
    trace, page = tmp_path / "trace", tmp_path / "page.html"
    done = kymo("record", "--sample", "999", "--duration", "300ms", "-o", trace, code=None)
    if done.code:
        pytest.skip(f"no samples: {done.err.strip()[:200]}")
    tree = json.loads(kymo("report", "flame", "--json", trace).out)["reports"][0]["tables"][0]["rows"]
    kymo("view", "--save", page, trace)
    open_page(browser, page)
    browser.value("location.hash = 'r=flame'")
    deepest = max(row["depth"] for row in tree) + 1
    assert browser.until(f"{REPORT}?.querySelector('.flame canvas')?.getAttribute('aria-label')") == \
        f"Flame graph: {len(tree)} functions, up to {deepest} deep"
    is_quiet(browser, page)
