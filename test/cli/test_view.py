# SPDX-License-Identifier: MIT
"""kymo view: the server's answers and refusals, and its page in a real browser."""

import base64
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

import pytest

import make_trace
import view_columns
from browser import Browser
from view_server import PATIENCE_S, ViewServer

BUILD = os.environ.get("KYMO_BUILD") or os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))), "build")


class Viewer(ViewServer):
    """A running `kymo view`."""

    def __init__(self, kymo_bin, *args, env=None, **more):
        super().__init__(kymo_bin, *args, env=env, **more)
        parts = urllib.parse.urlsplit(self.link)
        self.port, self.token = parts.port, parts.path.strip("/")

    def ask(self, path, method="GET", headers=None, body=None):
        """One request; status, headers and body of the answer."""
        own = {"Origin": f"http://127.0.0.1:{self.port}"} if method == "POST" else {}
        return self.request(method, path, body, {**own, **(headers or {})})

    def get(self, resource, method="GET", code=200, **words):
        query = urllib.parse.urlencode(words)
        status, headers, body = self.ask(f"/{self.token}/api/{resource}?{query}", method)
        assert status == code, (resource, words, status, body)
        return json.loads(body) if headers["Content-Type"] == "application/json" else view_columns.decode(resource, body)

    def counted(self, **words):
        """The answer with all rows of the begin, once counting is over."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = self.get("rows", row=0, count=1, **words)
            if found["progress"] == 1:
                return found
            time.sleep(0.05)
        raise AssertionError("counting does not end")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """For state histories."""
    return {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="module")
def view(kymo_bin, reference, cache):
    viewer = Viewer(kymo_bin, "--no-browser", reference, env=cache)
    yield viewer
    viewer.end()


@pytest.fixture(scope="module")
def lines(kymo, reference):
    return kymo("print", "--no-delta", "--fields", "none", reference).out.splitlines()


@pytest.fixture(scope="module")
def info(view):
    return view.get("info")


def as_line(row):
    ns, _, _, name, text = row
    clock = time.strftime("%H:%M:%S", time.gmtime(ns // 10**9))
    return f"[{clock}.{ns % 10**9:09}] {name}: {text}"


def test_pictures_come_while_the_trace_is_read(kymo_bin, tmp_path, browser):
    """And the table has ten million rows, by keyboard and by its bar."""
    trace = tmp_path / "trace"
    subprocess.run([os.path.join(BUILD, "bench", "make-trace"), "-n", "10000000", trace], check=True)
    viewer = Viewer(kymo_bin, "--no-browser", trace, env={"XDG_CACHE_HOME": str(tmp_path)})
    try:
        numbers, end = [], time.monotonic() + PATIENCE_S
        while not numbers or not tree["ready"]:  # noqa: F821
            tree = viewer.get("tree")
            numbers.append((tree["read"], len(tree["rows"])))
            assert time.monotonic() < end
            time.sleep(0.01)
        assert numbers == sorted(numbers)
        # Some rows before all is read, all of them in the end.
        assert any(n and read < 9000000 for read, n in numbers), numbers
        assert numbers[-1][1] > 500
        browser.go(viewer.link)
        browser.until("document.querySelector('#total')?.textContent === '10000000 events'")
        browser.until("document.querySelector('.body .line')")
        browser.value("document.querySelector('.body').focus()")
        last = "Array.from(document.querySelectorAll('.body .line')).map(e => e.children[0].textContent)"

        def at_the_end():  # a page that still draws can miss a key
            browser.key("End")
            return browser.still(f"({last}).includes('10000000')", times=20)

        browser.meet(at_the_end)
        (line,) = viewer.get("rows", row=10000000 - 1, count=1)["rows"]
        assert rows_of(browser)[-1][3:5] == line[3:5]
        # As somebody who drags the bar: the page may still move it to the end, where it was asked to go.
        middle = "(b => { b.scrollTop = (b.scrollHeight - b.clientHeight) / 2; return false; })(document.querySelector('.bar'))"
        browser.until(f"(n => n > 4990000 && n < 5010000)(Number(({last})[0])) || {middle}")
        row = rows_of(browser)[0]
        (line,) = viewer.get("rows", row=int(row[0]) - 1, count=1)["rows"]
        assert row[3:5] == line[3:5]
    finally:
        viewer.end()


# ---- answers ---------------------------------------------------------------------------------


def test_rows_are_those_of_print(view, lines):
    assert view.counted()["total"] == len(lines)
    rows = []
    while len(rows) < len(lines):
        found = view.get("rows", row=len(rows), count=512)
        assert found["exact"] and found["rows"]
        rows += found["rows"]
    assert [as_line(row) for row in rows] == lines
    assert view.get("rows", row=len(lines), count=5)["rows"] == []


def test_rows_of_a_filter(view, kymo, reference):
    expression = "name ~= 'x'"  # no such operator
    assert "filter" in view.get("rows", row=0, count=1, filter=expression, code=400)["error"]
    expression = 'prev_tid == 0 && next_comm =~ "*"'
    wanted = kymo("print", "--no-delta", "--fields", "none", "--filter", expression, reference).out.splitlines()
    assert wanted
    assert view.counted(filter=expression)["total"] == len(wanted)
    found = view.get("rows", row=len(wanted) // 2, count=40, filter=expression)["rows"]
    assert [as_line(row) for row in found] == wanted[len(wanted) // 2:][:40]


def test_rank_leads_to_the_first_event_at_a_time(view, events):
    view.counted()
    times = [event.ns for event in events]
    for i in (0, 1, len(times) // 3, len(times) - 1):
        assert view.get("rank", ns=times[i])["row"] == times.index(times[i])
        assert view.get("rank", ns=times[i] + 1)["row"] == next((k for k in range(i, len(times)) if times[k] > times[i]),
                                                               len(times))
    assert view.get("rank", ns=-5)["row"] == 0


def test_density_is_exact_at_every_zoom(view, info, events):
    view.counted()
    times = [event.ns for event in events]
    begin, end = info["begin"], info["end"]
    assert (begin, end) == (min(times), max(times))
    for _ in range(7):
        found = view.get("density", begin=begin, end=end, count=50)
        inside = [ns for ns in times if begin <= ns <= end]
        assert found["exact"] == 50
        width = (end - begin + 1) / 50
        for i, count in enumerate(found["events"]):
            # At borders of pixels the events of one bucket may be on either side.
            near = sum(1 for ns in inside if abs((ns - begin) / width - i - 0.5) <= 0.6)
            sure = sum(1 for ns in inside if abs((ns - begin) / width - i - 0.5) < 0.4)
            assert sure <= count <= near
        assert sum(found["events"]) == pytest.approx(len(inside), abs=len(inside) * 0.02 + 1)
        begin, end = times[len(times) // 2] - (end - begin) // 20, times[len(times) // 2] + (end - begin) // 20


def test_report_is_that_of_the_program(view, info, kymo, reference):
    begin = info["begin"] + 10**9 // 5
    end = begin + 10**9
    for name in ("cpu", "sched", "syscalls", "irq"):
        wanted = json.loads(kymo("report", name, "--json", "--begin", f"{begin // 10**9}.{begin % 10**9:09}",
                                 "--end", f"{end // 10**9}.{end % 10**9:09}", reference).out)
        assert view.get("report", method="POST", name=name, begin=begin, end=end) == wanted
    assert "no such report" in view.get("report", method="POST", name="cpuu", begin=begin, end=end, code=404)["error"]


def test_event_has_all_fields(view, kymo, reference):
    view.counted()
    wanted = kymo("convert", "--to", "json", reference).out.splitlines()
    for row in (0, 777):
        assert view.get("event", row=row)["event"] == json.loads(wanted[row])
    view.get("event", row=10**9, code=404)


# ---- what is refused -------------------------------------------------------------------------


def test_only_the_own_page_gets_answers(view):
    own = f"/{view.token}/api/info"
    report = f"/{view.token}/api/report?name=cpu&begin=0&end=1"
    origin = f"http://127.0.0.1:{view.port}"
    assert view.ask(own)[0] == 200
    assert view.ask(own, headers={"Host": f"localhost:{view.port}"})[0] == 200
    for host in ("evil.example", f"evil.example:{view.port}", "127.0.0.1", "127.0.0.1:1", f"[::1]:{view.port}", None):
        assert view.ask(own, headers={"Host": host})[0] in (400, 403)
    for path in ("/", "/api/info", f"/{view.token[:-1]}0x/api/info", f"/{view.token.swapcase()}x/", f"/{'0' * 32}/api/info",
                 f"/{view.token}", f"/{view.token}.html"):
        assert view.ask(path)[0] == 403
    assert view.ask(own, headers={"Origin": "https://evil.example"})[0] == 403
    assert view.ask(own, headers={"Origin": "null"})[0] == 403
    for wrong in (None, "null", "https://evil.example", f"https://127.0.0.1:{view.port}", origin + "0", origin + "/"):
        assert view.ask(report, "POST", {"Origin": wrong})[0] == 403
    assert view.ask(report, "POST")[0] == 200
    assert view.ask(report)[0] == 403  # it is no GET
    assert view.ask(own, "POST")[0] == 403
    for method in ("HEAD", "PUT", "DELETE", "OPTIONS"):
        assert view.ask(own, method)[0] == 403
    assert view.ask(report, "POST", {"Content-Length": "5"}, b"hello")[0] == 400


HOLD = """import socket, sys, time
held = []
for _ in range(60):
    sock = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    try:
        sock.sendall(b"GET / HTTP/1.1\\r\\nHost: x")
    except OSError:
        pass
    held.append(sock)
print("held", flush=True)
sys.stdin.read()
for sock in held:
    sock.settimeout(60)
    try:
        assert not sock.recv(1)
    except ConnectionError:
        pass
print("closed")
"""


def test_other_users_take_no_connections(kymo_bin):
    """Slow requests of another user, more than the server has connections for."""
    if os.getuid() != 0:
        pytest.skip("only root can become other users")
    place = tempfile.mkdtemp(prefix="kymo-view-")
    try:
        os.chmod(place, 0o755)
        program = shutil.copy(kymo_bin, place)
        trace = make_trace.sample(pathlib.Path(place) / "trace")
        viewer = Viewer(program, "--no-browser", trace, env={"XDG_CACHE_HOME": "/nonexistent"}, user=65534, group=65534, extra_groups=[])
        with subprocess.Popen([sys.executable, "-c", HOLD, str(viewer.port)], user=4711, group=4711, extra_groups=[], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as other:
            assert other.stdout.readline() == "held\n"
            assert viewer.get("info")["traces"] and viewer.get("tree")
            assert other.communicate("")[0] == "closed\n"
        viewer.end()
    finally:
        shutil.rmtree(place)


def test_malformed_requests_are_refused(view):
    for query in ("rows", "rows?row=0", "rows?row=0&count=0", "rows?row=0&count=513", "rows?row=-1&count=1",
                  "rows?row=0&row=0&count=1", "rows?row=0&count=1&x=1", "rows?row=0x1&count=1", "rows?row=&count=1",
                  "rows?row=99999999999999999999&count=1", "rows?row=0&count=1&filter=%", "rows?row=0&count=1&filter=%ff",
                  "rows?row=0&count=1&filter=%00", "density?begin=5&end=4&count=1", "density?begin=0&end=1&count=4097",
                  "rows?row=0&count=1&filter=" + "a" * 5000, "info?x", "info?&",
                  "timeline?begin=0&end=1&count=1", "timeline?begin=0&end=1&count=1&ids=", "moment?row=1",
                  "timeline?begin=0&end=1&count=1&ids=1,", "timeline?begin=0&end=1&count=1&ids=,1",
                  "timeline?begin=0&end=1&count=1&ids=1,,2", "timeline?begin=0&end=1&count=1&ids=-1",
                  "timeline?begin=0&end=1&count=1&ids=4294967296", "activity?begin=1&end=0", "tree?begin=0",
                  "timeline?begin=0&end=1&count=1&ids=" + ",".join(["1"] * 257)):
        assert view.ask(f"/{view.token}/api/{query}")[0] == 400, query
    for path in ("api/", "api/nothing", "api/rows/", "../etc/passwd", "..%2fetc", "app.js/", "API/info", "nothing.js"):
        assert view.ask(f"/{view.token}/{path}")[0] == 404, path
    status = view.ask(f"/{view.token}/api/rows?row=0&count=1&filter=" + "a" * 100000)[0]
    assert status in (413, 414, 431)
    for begin, end in ((-2**63, 2**63 - 1), (2**63 - 1, 2**63 - 1), (-2**63, -2**63)):
        found = view.get("density", begin=begin, end=end, count=4096)
        assert len(found["events"]) == 4096
    view.get("rank", ns=-2**63)
    view.get("rank", ns=2**63 - 1)
    assert view.get("rows", row=2**63 - 1, count=1)["rows"] == []


def test_answers_cannot_be_used_elsewhere(view):
    status, headers, body = view.ask(f"/{view.token}/")
    assert status == 200 and headers["Content-Encoding"] == "gzip"
    assert b"app.js" in gzip.decompress(body)
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Referrer-Policy"] == "no-referrer" and headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store" and headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert not [name for name in headers if name.lower().startswith("access-control")]


# ---- the command -----------------------------------------------------------------------------


def test_command_says_what_is_wrong(kymo, view, reference, tmp_path):
    assert "65535" in kymo("view", "--port", "70000", reference, code=2).err
    taken = kymo("view", "--no-browser", "--port", view.port, reference, code=1)
    assert f"port {view.port}" in taken.err
    assert "kymo:" in kymo("view", "--no-browser", tmp_path, code=1).err


def test_browser_gets_a_file_and_not_the_link(kymo_bin, reference, tmp_path, view):
    """All users can see the arguments of processes."""
    opener = tmp_path / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$#:$1" >{tmp_path}/args.new\ncp -p "$1" {tmp_path}/page\n'
                      f"mv {tmp_path}/args.new {tmp_path}/args\n")
    opener.chmod(0o755)
    runtime = tmp_path / "run"
    runtime.mkdir()
    env = {"DISPLAY": ":99", "PATH": f"{tmp_path}:{os.environ['PATH']}", "XDG_RUNTIME_DIR": str(runtime)}
    viewer = Viewer(kymo_bin, reference, env=env)
    until = time.monotonic() + PATIENCE_S
    while not (tmp_path / "args").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert re.fullmatch(rf"1:{runtime}/kymo-view-\w+\.html\n", (tmp_path / "args").read_text())
    assert viewer.link in (tmp_path / "page").read_text()
    assert (tmp_path / "page").stat().st_mode & 0o777 == 0o600
    viewer.end()
    assert not list(runtime.iterdir())


# ---- the page --------------------------------------------------------------------------------


class Page(Browser):
    """The viewer's page."""

    def go(self, url):
        document = self.call("Page.navigate", url=url).get("loaderId")
        while document and document not in self.loaded:
            self.message()

    def until(self, script, what=None):
        """Wait for a condition of the page."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            value = self.value(f"(v => v instanceof Node ? true : v)({script})")
            if value:
                return value
            time.sleep(0.05)
        raise AssertionError(what or script)

    def meet(self, check, what=None):
        """Wait for a condition that Python checks: what a page shows may still change, from estimates to what is exact."""
        end = time.monotonic() + PATIENCE_S
        while not check():
            assert time.monotonic() < end, what() if callable(what) else what
            time.sleep(0.05)

    def still(self, script, times=6, pause_s=0.05):
        """What an expression is once it has not changed for a while: a picture that frames still draw."""
        same, before = 0, self.value(script)
        while same < times:
            time.sleep(pause_s)
            now = self.value(script)
            same = same + 1 if now == before else 0
            before = now
        return before

    def key(self, key, code=None):
        text = {"text": key} if len(key) == 1 else {}
        if key == "Enter":
            text = {"text": "\r"}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, **(text if kind == "keyDown" else {}),
                      windowsVirtualKeyCode={"Enter": 13, "Escape": 27}.get(key, 0))

    def type(self, element, text):
        self.value(f"document.getElementById('{element}').focus(), document.getElementById('{element}').select()")
        self.call("Input.insertText", text=text)
        self.key("Enter")

    def shot(self, path):
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))


ROWS = """Array.from(document.querySelectorAll('.body .line')).map(
  row => Array.from(row.children).map(cell => cell.textContent))"""
# Dark pixels of a canvas: something is drawn there.
INK = """(() => { const c = document.querySelector('#%s canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
  const f = document.createElement('canvas').getContext('2d'); f.fillStyle = getComputedStyle(c).getPropertyValue('--events');
  f.fillRect(0, 0, 1, 1); const p = f.getImageData(0, 0, 1, 1).data; let n = 0;
  for (let i = 0; i < d.length; i += 4) if (d[i] === p[0] && d[i+1] === p[1] && d[i+2] === p[2] && d[i+3] === 255) n++;
  return n; })()"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not shutil.which("chromium"):
        pytest.skip("no chromium to look at the page with")
    os.environ["TZ"] = "UTC"
    page = Page(tmp_path_factory.mktemp("profile"))
    page.look(1400, 900, "light")
    yield page
    page.close()


@pytest.fixture
def page(browser, view):
    browser.go("about:blank")
    browser.trouble.clear()
    browser.requests.clear()
    browser.go(view.link)
    browser.until("/^\\d+ events/.test(document.querySelector('#total')?.textContent ?? '')")
    yield browser
    # Chromium advises those who read a canvas again and again, as this test does.
    assert [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"] == []
    assert all(url.startswith(view.link) for url in browser.requests if not url.startswith("about:"))


def address(page):
    return dict(urllib.parse.parse_qsl(page.value("location.hash.slice(1)")))


def rows_of(page, least=5):
    page.until(f"document.querySelectorAll('.body .line').length >= {least} && "
               "!Array.from(document.querySelectorAll('.body .line')).some(r => r.children[1].textContent === '…')")
    return page.value(ROWS)


def shown(line):
    """A line of the table as one of kymo print."""
    return f"[{line[1]}] {line[3]}: {line[4]}"


def test_page_shows_density_and_rows(page, lines):
    page.until(f"document.querySelector('#total').textContent === '{len(lines)} events'")
    page.until(INK % "overview" + " > 500")
    page.until(INK % "graph" + " > 500")
    page.until(f"document.querySelector('#graph canvas').getAttribute('aria-label').includes('{len(lines)} events')")
    rows = rows_of(page)
    assert [shown(row) for row in rows] == lines[:len(rows)]
    page.until(f"document.querySelector('.body').getAttribute('aria-rowcount') === '{len(lines)}'")
    # The event's own fields stand before its contexts, and are as long as there is room.
    left = "document.querySelector('.body .line .%s').getBoundingClientRect().left"
    page.until(f"{left % 'own'} < {left % 'contexts'}")


def test_page_zooms_by_keyboard_and_the_table_follows(page, lines, info):
    page.value("document.activeElement.blur()")
    for _ in range(3):
        page.key("w")
    page.key("d")
    page.until("location.hash.includes('b=')")
    page.until(f"BigInt(new URLSearchParams(location.hash.slice(1)).get('b')) > {info['begin']}n")
    time.sleep(0.3)
    begin, end = int(address(page)["b"]), int(address(page)["e"])
    assert info["begin"] < begin < end < info["end"]
    clock = time.strftime("%H:%M:%S", time.gmtime(begin // 10**9)) + f".{begin % 10**9:09}"
    first = next(i for i, line in enumerate(lines) if line[1:19] >= clock)
    page.until(f"document.querySelector('.body .line')?.children[0].textContent === '{first + 1}'")
    rows = rows_of(page)
    assert [shown(row) for row in rows] == lines[first:][:len(rows)]
    # Out again, to the left, and both undone.
    size = "(w => Number(BigInt(w.get('e')) - BigInt(w.get('b'))))(new URLSearchParams(location.hash.slice(1)))"
    page.key("s")
    page.until(f"{size} > {1.2 * (end - begin)}")
    wide = int(page.still("new URLSearchParams(location.hash.slice(1)).get('b')"))
    page.key("a")
    page.until(f"BigInt(new URLSearchParams(location.hash.slice(1)).get('b')) < {wide}n")
    page.key("z")
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('b') === '{wide}'")
    page.key("z")
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('b') === '{begin}' && {size} === {end - begin}")
    page.key("f")
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('b') === '{info['begin']}'")


def test_page_filters_and_shows_details(page, kymo, reference):
    expression = 'next_comm =~ "swapper*" && prev_tid != 0'
    wanted = kymo("print", "--no-delta", "--fields", "none", "--filter", expression, reference).out.splitlines()
    page.type("filter", expression)
    page.until(f"document.querySelector('#total').textContent === '{len(wanted)} events'")
    page.until(f"document.querySelector('.body').getAttribute('aria-rowcount') === '{len(wanted)}'")
    rows = rows_of(page)
    assert [shown(row) for row in rows] == wanted[:len(rows)]
    page.value("document.querySelector('.body').focus()")
    page.key("ArrowDown")
    page.key("ArrowDown")
    page.until("document.querySelector('aside dl')")
    page.until("document.querySelector('.line[aria-selected=true]').children[0].textContent === '2'")
    names = page.until("Array.from(document.querySelectorAll('aside dt')).map(e => e.textContent)")
    assert {"Time", "prev_comm", "prev_tid", "next_comm", "cpu_id"} <= set(names)
    page.type("filter", "prev_tid ==")
    page.until("document.querySelector('.body .error')?.textContent.includes('filter')")
    # A request with the status 400, as the browser's console says.
    page.trouble.clear()


def test_page_shows_a_report_of_the_selected_range(page, view, info):
    page.value("document.activeElement.blur()")
    page.key("w")
    page.key("w")
    page.key("m")
    page.value("(s => { s.value = 'cpu'; s.dispatchEvent(new Event('change', {bubbles: true})); })"
               "(document.getElementById('report'))")
    page.until("document.querySelector('.report[data-ready=true] table')")
    page.until("new URLSearchParams(location.hash.slice(1)).get('s')")
    begin, end = map(int, address(page)["s"].split(","))
    assert info["begin"] < begin < end < info["end"]
    report = view.get("report", method="POST", name="cpu", begin=begin, end=end)
    for table in report["reports"][0]["tables"]:
        heads, titles = page.still(f"(t => !t ? [[], []] : ['th', 'tbody tr'].map(s => Array.from(t.querySelectorAll(s)).map(e => s === 'th' ? e.textContent : "
                                   f"Array.from(e.children).map(c => c.title))))(document.querySelector('[data-table={table['name']}]'))")
        columns = [column for column in table["columns"] if column["title"] in heads]  # those that have room
        wanted = [[row[column["name"]] for column in columns] for row in table["rows"][:50]]
        assert [[json.loads(title) for title in row] for row in titles] == wanted


def test_page_helps_and_goes_to_a_time(page, info):
    page.value("document.activeElement.blur()")
    page.key("?")
    page.until("document.querySelector('dialog[open]')?.textContent.includes('zoom in')")
    page.key("Escape")
    page.until("!document.querySelector('dialog')")
    for _ in range(4):
        page.key("w")
    second = info["begin"] // 10**9 + 1
    clock, day = (time.strftime(form, time.gmtime(second)) for form in ("%H:%M:%S", "%Y-%m-%d"))
    middle = info["begin"] + round((info["end"] - info["begin"]) / 2)
    for text, ns in (("+1s", info["begin"] + 10**9), (f"{clock}.25", second * 10**9 + 250 * 10**6), (f"{day} {clock}", second * 10**9),
                     ("-500ms", info["end"] - 500 * 10**6), ("50%", middle), (f"{second}.125", second * 10**9 + 125 * 10**6),
                     (f"{day}T{clock}.000000001", second * 10**9 + 1)):
        page.type("time", text)
        page.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{ns}'", text)
    page.type("time", "soon")
    page.until("document.querySelector('#time').getAttribute('aria-invalid') === 'true'")
    page.until("document.querySelector('#time').validationMessage.includes('try 08:30:00.5')")


@pytest.fixture
def hostile(kymo_bin, tmp_path):
    """Names and texts that are markup, and losses: 7 events in each of two streams."""
    markup = "<img src=x onerror=alert(1)>"
    trace = make_trace.sample(tmp_path / "<b>trace", packets=3, per_packet=20)
    metadata = make_trace.METADATA.replace('name = "tick"', f'name = "{markup}"').replace('"lab"', '"<script>alert(2)</script>"')
    (trace / "metadata").write_text(metadata)
    for name in ("channel_0", "channel_1"):
        data = (trace / name).read_bytes()
        (trace / name).write_bytes(data.replace(b"ttttttttt\0", b"<b>'\x1b&\"</\0"[:9] + b"\0"))
    viewer = Viewer(kymo_bin, "--no-browser", trace, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    yield viewer
    viewer.end()


def test_hostile_names_are_text_and_losses_are_seen(browser, hostile):
    assert hostile.counted()["total"] == 120
    info = hostile.get("info")
    assert info["lost"] == 14
    found = hostile.get("density", begin=info["begin"], end=info["end"], count=100)
    assert sum(found["events"]) == 120 and sum(found["lost"]) >= 14
    browser.trouble.clear()
    browser.go("about:blank")
    browser.go(hostile.link)
    browser.until("document.querySelector('#total')?.textContent === '120 events, 14 lost'")
    rows = rows_of(browser)
    assert any(row[3] == "<img src=x onerror=alert(1)>" for row in rows)
    browser.until("document.querySelector('.traces').textContent.includes('<script>alert(2)</script>')")
    browser.value("document.querySelector('.body').focus()")
    browser.key("ArrowDown")
    browser.until("document.querySelector('aside dl')")
    assert browser.value("document.querySelectorAll('#app img, #app script, #app b').length") == 0
    browser.until(INK.replace("--events", "--lost") % "graph" + " > 20")
    browser.until("document.querySelector('#graph canvas').getAttribute('aria-label').includes('events were lost')")


@pytest.mark.parametrize("width,scheme", ((1024, "dark"), (3840, "light")))
def test_page_fits_windows(browser, page, width, scheme):
    browser.look(width, 800, scheme)
    page.until(f"document.documentElement.dataset.theme === '{scheme}'")
    page.until(INK % "graph" + " > 500")
    page.until(f"document.documentElement.scrollWidth <= {width}")
    rows_of(page)
    browser.look(1400, 900, "light")
