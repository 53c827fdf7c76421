# SPDX-License-Identifier: MIT
"""Bookmarks and notes of the viewer: they stay beside the trace, and are seen."""

import json
import os
import shutil
import stat

import pytest

import make_trace
from test_view import Viewer, address, browser  # noqa: F401 (a fixture)

# Pixels of flags.
FLAGS = """(() => { const c = document.querySelector('#%s canvas'), x = c.getContext('2d');
  const f = document.createElement('canvas').getContext('2d'); f.fillStyle = getComputedStyle(c).getPropertyValue('--note');
  f.fillRect(0, 0, 1, 1); const p = f.getImageData(0, 0, 1, 1).data, d = x.getImageData(0, 0, c.width, c.height).data; let n = 0;
  for (let i = 0; i < d.length; i += 4) if (d[i] === p[0] && d[i+1] === p[1] && d[i+2] === p[2] && d[i+3] === 255) n++;
  return n; })()"""


@pytest.fixture
def start(kymo_bin, tmp_path):
    viewers = []

    def begin(*paths, **env):
        env = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "XDG_DATA_HOME": str(tmp_path / "data")} | env
        viewers.append(Viewer(kymo_bin, "--no-browser", *paths, env=env))
        return viewers[-1]

    yield begin
    for viewer in viewers:
        viewer.end()


@pytest.fixture
def trace(tmp_path):
    return make_trace.sample(tmp_path / "trace", packets=3, per_packet=20)


def texts(found):
    return [note["text"] for note in found["notes"]]


def test_notes_stay_beside_the_trace(start, trace):
    first = start(trace)
    assert texts(first.get("notes")) == []
    assert not os.path.exists(f"{trace}.kymo-notes.json")
    info = first.get("info")
    begin, end = info["begin"], info["end"]
    first.get("note", "POST", begin=begin + 10, end=begin + 10, text="später <b>\n\"")
    found = first.get("note", "POST", begin=begin + 5, end=end, text="")
    assert texts(found) == ["", "später <b>\n\""] and found["file"] == "trace.kymo-notes.json"
    path = f"{trace}.kymo-notes.json"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert json.load(open(path))["notes"] == found["notes"]
    # Another viewer shares them; numbers stay.
    second = start(trace)
    assert second.get("notes") == found
    number = found["notes"][1]["id"]
    changed = second.get("note", "POST", begin=begin + 1, end=begin + 1, text="früher", row=number)
    assert texts(changed) == ["früher", ""] and changed["notes"][0]["id"] == number
    assert texts(first.get("unnote", "POST", row=number)) == [""]
    assert "no such note" in first.get("unnote", "POST", row=number, code=404)["error"]
    assert "no such note" in first.get("note", "POST", begin=1, end=1, text="x", row=99, code=404)["error"]


def test_notes_are_the_users_own_where_others_write(start, trace, tmp_path):
    """A directory that others can write to, such as /tmp, and several traces."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    shutil.copytree(trace, shared / "trace")
    viewer = start(shared / "trace")
    found = viewer.get("note", "POST", begin=1, end=1, text="mine")
    assert found["directory"] == str(tmp_path / "data/kymo/notes")
    assert sorted(os.listdir(shared)) == ["trace"]
    assert stat.S_IMODE(os.stat(tmp_path / "data/kymo/notes").st_mode) == 0o700
    assert texts(start(shared / "trace").get("notes")) == ["mine"]
    several = start(trace, shared / "trace")
    assert texts(several.get("notes")) == []
    several.get("note", "POST", begin=1, end=1, text="both")
    assert len(os.listdir(tmp_path / "data/kymo/notes")) == 2


def test_damaged_files_and_wrong_requests(start, trace):
    path = f"{trace}.kymo-notes.json"
    viewer = start(trace)
    for text in ("", "{", "[]", '{"notes": 1}', '{"notes": [{}]}', '{"notes": [{"id": 0, "begin": 1, "end": 1, "text": ""}]}',
                 '{"notes": [{"id": 1, "begin": 2, "end": 1, "text": ""}]}', '{"notes": [{"id": 1, "begin": 1, "end": 1, "text": 1}]}',
                 json.dumps({"notes": [{"id": 1, "begin": 1, "end": 1, "text": "x" * 2001}]}), "\0" * 100, "[" * 100000,
                 json.dumps({"notes": [{"id": 1, "begin": 1, "end": 1, "text": ""}] * 1001})):
        with open(path, "w") as file:
            file.write(text)
        assert "damaged" in viewer.get("notes", code=500)["error"], text[:50]
        assert "damaged" in viewer.get("note", "POST", begin=1, end=1, text="x", code=500)["error"]
        assert open(path).read() == text
    os.remove(path)
    os.mkfifo(path)
    assert "error" in viewer.get("notes", code=500)
    os.remove(path)
    assert viewer.get("notes")["notes"] == []
    viewer.get("note", "POST", begin=2, end=1, text="x", code=400)
    viewer.get("note", "POST", begin=1, end=1, code=400)
    viewer.get("unnote", "POST", code=400)
    assert viewer.ask(f"/{viewer.token}/api/note?begin=1&end=1&text=x")[0] == 403  # it is no GET
    assert viewer.ask(f"/{viewer.token}/api/note?begin=1&end=1&text=x", "POST", {"Origin": None})[0] == 403
    assert "longer" in viewer.get("note", "POST", begin=1, end=1, text="x" * 2001, code=503)["error"]
    assert not os.path.exists(path)


def test_page_sets_lists_and_shows_notes(browser, start, trace, kymo, tmp_path):
    viewer = start(trace)
    info = viewer.get("info")
    browser.trouble.clear()
    browser.go("about:blank")
    browser.go(viewer.link)
    browser.until("/^\\d+ events/.test(document.querySelector('#total')?.textContent ?? '')")
    browser.value("document.querySelector('.body').focus()")
    browser.key("ArrowDown")
    browser.key("ArrowDown")
    browser.until("location.hash.includes('c=')")
    cursor = int(address(browser)["c"])
    browser.value("document.activeElement.blur()")
    browser.key("b")
    browser.until("document.activeElement?.id === 'note'")
    browser.call("Input.insertText", text="<img src=x onerror=alert(1)>")
    browser.key("Enter")
    browser.until("document.querySelector('.notes td.text')?.textContent === '<img src=x onerror=alert(1)>'")
    assert viewer.get("notes")["notes"] == [{"id": 1, "begin": cursor, "end": cursor, "text": "<img src=x onerror=alert(1)>"}]
    browser.until(FLAGS % "graph" + " > 10")
    browser.until(FLAGS % "overview" + " > 10")
    # A bookmark of an area.
    for key in "wwmb":
        browser.key(key)
    browser.until("document.activeElement?.id === 'note'")
    browser.key("Enter")
    browser.until("document.querySelectorAll('.notes tbody tr').length === 2")
    area = next(note for note in viewer.get("notes")["notes"] if note["id"] == 2)
    browser.until(f"new URLSearchParams(location.hash.slice(1)).get('s') === '{area['begin']},{area['end']}'")
    # From one to the other.
    browser.value("document.activeElement.blur()")
    first, second = sorted((cursor, area["begin"]))
    for key, ns in ((",", first), (".", second)):
        browser.key(key)
        browser.key(key)
        browser.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{ns}'")
    # The page that others get has them, too.
    kymo("view", "--save", tmp_path / "page.html", trace)
    browser.go(f"file://{tmp_path}/page.html#r=notes")
    browser.until("document.querySelectorAll('.notes tbody tr').length === 2")
    browser.until(FLAGS % "graph" + " > 10")
    browser.go("about:blank")
    browser.go(viewer.link + "#r=notes")
    browser.until("document.querySelectorAll('.notes tbody tr').length === 2")
    browser.value("document.querySelector('.notes [aria-label=Remove]').click()")
    browser.until("document.querySelectorAll('.notes tbody tr').length === 1")
    assert browser.value("document.querySelectorAll('#app img').length") == 0
    assert [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"] == []
    assert info["begin"] <= cursor <= info["end"]
