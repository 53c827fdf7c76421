# SPDX-License-Identifier: MIT
"""Traces that are dropped on the viewer's page: real drags in the browser, and requests of others."""

import json
import pathlib
import socket
import time
import urllib.parse

import pytest

import make_trace
from foreign_files import dat_example, pcapng_example, perf_example
from test_view import Viewer, browser, cache  # noqa: F401: fixtures
from view_server import PATIENCE_S

TOTAL = "document.querySelector('#total')?.textContent ?? ''"


@pytest.fixture
def trace(tmp_path):
    return make_trace.sample(tmp_path / "own", packets=2, per_packet=10)


@pytest.fixture
def viewer(kymo_bin, trace, cache, tmp_path):
    """Its copies are in a directory of the test; they end with it."""
    own = tmp_path / "copies"
    own.mkdir()
    started = []

    def start(*words):
        started.append(Viewer(kymo_bin, "--no-browser", *words, trace, env={**cache, "TMPDIR": str(own)}))
        started[-1].copies = own
        return started[-1]

    yield start
    for one in started:
        one.end()
    assert list(own.iterdir()) == []


def post(viewer, resource, body=None, code=200, headers=None, **words):
    query = urllib.parse.urlencode(words)
    sizes = {} if body is None else {"Content-Length": str(len(body))}
    status, _, answer = viewer.ask(f"/{viewer.token}/api/{resource}?{query}", "POST", {**sizes, **(headers or {})}, body)
    assert status == code, (resource, words, status, answer)
    return json.loads(answer)


def info_of(viewer, number):
    status, _, body = viewer.ask(f"/{viewer.token}/d{number}/api/info")
    return json.loads(body) if status == 200 else status


def sizes_below(top):
    return {path.relative_to(top): path.stat().st_size for path in top.rglob("*") if path.is_file()}


def drop(page, *paths):
    """As with the mouse, from the desktop."""
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        page.call("Input.dispatchDragEvent", type=kind, x=300, y=300, data=data)


def test_directory_is_dropped_and_opens(viewer, browser, kymo, reference):
    view = viewer()
    browser.go(view.link)
    browser.until(f"/^40 events/.test({TOTAL})")
    n = len(kymo("print", reference).out.splitlines())
    drop(browser, reference)
    browser.until(f"location.pathname.endsWith('/d1/') && ({TOTAL}) === '{n} events'")
    top = next(view.copies.iterdir())
    assert sizes_below(top / "1" / "kernel") == sizes_below(pathlib.Path(reference))
    assert top.stat().st_mode & 0o777 == 0o700 and all(one.stat().st_mode & 0o077 == 0 for one in top.rglob("*"))
    # It has rows, reports and notes, and the traces of the command line are still there.
    browser.until("document.querySelectorAll('[role=treeitem]').length > 5")
    browser.value("location.hash = 'r=cpu'")
    browser.until("document.querySelector('.report[data-ready=true] [data-table=threads] tbody tr')")
    assert view.get("info")["end"] != info_of(view, 1)["end"]
    browser.go(view.link)
    browser.until(f"/^40 events/.test({TOTAL})")
    assert browser.trouble == []
    browser.requests.clear()


def test_files_and_archives_are_chosen_by_keyboard(viewer, browser, kymo, trace, tmp_path):
    view = viewer()
    archive = tmp_path / "bug.tar.zst"
    kymo("report", "--all", "--archive", archive, trace, code=None)
    assert archive.exists()
    for number, (field, files) in enumerate((("files", [archive]), ("files", sorted(trace.iterdir())), ("directory", [trace])), start=1):
        browser.go(view.link)
        browser.until(f"/^40 events/.test({TOTAL})")
        browser.key("o")
        browser.until(f"document.querySelector('dialog[open] #open-{field}')")
        node = browser.call("DOM.querySelector", nodeId=browser.call("DOM.getDocument")["root"]["nodeId"], selector=f"#open-{field}")["nodeId"]
        browser.call("DOM.setFileInputFiles", nodeId=node, files=[str(path) for path in files])
        browser.until(f"location.pathname.endsWith('/d{number}/') && /^40 events/.test({TOTAL})")
    assert info_of(view, 2)["begin"] == view.get("info")["begin"]
    browser.requests.clear()


STRACE = """42 1700000000.000100 openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 3 <0.000050>
42 1700000000.000300 read(3, "root:x:0:0"..., 4096) = 1200 <0.000020>
42 1700000000.000400 close(3) = 0 <0.000010>
"""


def test_files_of_other_tracers_open(viewer, browser, kymo, tmp_path):
    """Each alone, as with the mouse: their events, and rows where they have states."""
    view = viewer()
    strace = tmp_path / "calls.strace"
    strace.write_text(STRACE)
    files = [perf_example(tmp_path / "perf.data"), dat_example(tmp_path / "trace.dat"), pcapng_example(tmp_path / "net.pcapng"), strace]
    for number, path in enumerate(files, start=1):
        browser.go(view.link)
        browser.until(f"/^40 events/.test({TOTAL})")
        n = len(kymo("print", path).out.splitlines())
        drop(browser, path)
        browser.until(f"location.pathname.endsWith('/d{number}/') && /^{n} events/.test({TOTAL})")
        browser.until("document.querySelectorAll('[role=treeitem]').length")
        browser.until("document.querySelector('.body .line')")
    browser.requests.clear()


def test_what_is_no_trace_is_refused_with_its_reason(viewer, browser, tmp_path):
    view = viewer("--drop-space", "64K")
    text, large = tmp_path / "<b>notes<b>.txt", tmp_path / "large"
    text.write_text("no trace\n")
    large.write_bytes(bytes(200000))
    browser.go(view.link)
    browser.until(f"/^40 events/.test({TOTAL})")
    for path, words in ((text, "does not open"), (large, "195.3 KiB, and copies can have 64 KiB more")):
        drop(browser, path)
        assert words in browser.until("document.querySelector('dialog[open] [role=alert]')?.textContent")
        browser.until("document.querySelector('#open-command').textContent.includes('kymo view ')")
        assert not browser.value("document.querySelectorAll('dialog b').length")
        browser.key("Escape")
        browser.until("!document.querySelector('dialog')")
    assert browser.value("location.pathname").count("/") == 2
    until = time.monotonic() + PATIENCE_S
    while any(list(top.iterdir()) for top in view.copies.iterdir()):
        assert time.monotonic() < until
        time.sleep(0.05)
    browser.trouble.clear()


def test_requests_of_others(viewer, trace):
    view = viewer("--drop-space", "1M")
    path = f"/{view.token}/api/drop"
    for headers in ({"Origin": None}, {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "evil.example"}):
        assert view.ask(path, "POST", headers)[0] == 403, headers
    assert view.ask(path)[0] == 403 and view.ask(path.replace(view.token, "0" * 32), "POST")[0] == 403
    assert view.ask(f"/{view.token}/api/report?name=cpu&begin=0&end=1", "POST", {"Content-Length": "1"}, b"x")[0] == 400
    first = post(view, "drop")["drop"]
    assert post(view, "drop")["space"] == 1 << 20 and first == 1
    for name in ("../x", "/etc/x", "a/../../x", "a//b", "", ".", "a/", ".hidden", "a/.b", "x" * 256, "/".join("a" * 20), "a\nb", "a\x1bb", "a\x7f"):
        post(view, "drop-file", b"x", 400, row=first, text=name)
    post(view, "drop-file", b"x", row=first, text="dir/file")
    post(view, "drop-file", b"x", 400, row=first, text="dir/file")  # it exists
    post(view, "drop-file", b"x", 400, row=first, text="dir/file/below")
    post(view, "drop-file", b"x", 400, row=first, text="dir")
    for number in (0, 3, 99, 2**62):
        post(view, "drop-file", b"x", 404, row=number, text="a")
        post(view, "drop-open", None, 404, row=number)
        post(view, "drop-end", None, 404, row=number)
    assert sorted(str(one.relative_to(view.copies)).split("/", 1)[1] for one in view.copies.rglob("*") if one.parent != view.copies) == [
        "1", "1/dir", "1/dir/file", "2"]
    # Only the header of a size that is too large: the answer comes when the bytes do.
    assert "more space" in post(view, "drop-file", bytes(1 << 20), 503, row=first, text="large")["error"]
    # Its end gives all back; a client that stops in the middle costs nothing after that.
    post(view, "drop-end", row=first)
    with socket.create_connection(("127.0.0.1", view.port)) as raw:
        raw.sendall((f"POST /{view.token}/api/drop-file?row=2&text=half HTTP/1.1\r\nHost: 127.0.0.1:{view.port}\r\nOrigin: http://127.0.0.1:{view.port}\r\n"
                     "Content-Length: 1000000\r\n\r\n").encode() + bytes(1000))
    post(view, "drop-end", row=2)
    begun = post(view, "drop")
    assert begun["space"] == 1 << 20
    # Loose files of a trace; then it is a trace as any, at its own path only.
    for file in trace.iterdir():
        post(view, "drop-file", file.read_bytes(), row=begun["drop"], text=file.name)
    post(view, "drop-open", row=begun["drop"])
    post(view, "drop-file", b"x", 404, row=begun["drop"], text="more")
    post(view, "drop-end", None, 404, row=begun["drop"])
    assert info_of(view, begun["drop"])["begin"] == view.get("info")["begin"]
    assert [info_of(view, other) for other in ("0", "1", "03", "99", "1234567890", "x", "-3")] == [404] * 7
    note = f"/{view.token}/d{begun['drop']}/api/note?begin=1&end=1&text=own"
    assert json.loads(view.ask(note, "POST")[2])["notes"] and not view.get("notes")["notes"]
    # A file that is no trace is an error, and its copy is gone.
    bad = post(view, "drop")["drop"]
    post(view, "drop-file", b"\x7fELF", row=bad, text="program")
    assert post(view, "drop-open", None, 404, row=bad)["error"]
    assert info_of(view, bad) == 404
    for _ in range(7):
        last = post(view, "drop")["drop"]
    assert "start another viewer" in post(view, "drop", code=503)["error"]
    assert info_of(view, last) == 404  # it is not open


def test_viewer_that_takes_no_copies(viewer):
    view = viewer("--drop-space", "0")
    assert "space for copies" in post(view, "drop", code=422)["error"]
    post(view, "drop-file", b"x", 404, row=1, text="a")
