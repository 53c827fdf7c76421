# SPDX-License-Identifier: MIT
"""Reports of other programs in the viewer: those of lttng-analyses, and hostile ones."""

import contextlib
import http.client
import json
import shutil
import stat
import subprocess
import threading
import time

import pytest

from test_view import PATIENCE_S, Viewer, address, browser  # noqa: F401: a fixture
from test_view_links import choose
from test_view_rows import ready

NAMES = ("lttng-cputop-mi", "lttng-syscallstats-mi", "lttng-irqlog-mi", "lttng-schedlog-mi")


def script(path, text):
    path.write_text("#!/usr/bin/python3\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def lami(classes, results):
    """A program with these tables, which notes its words."""
    about = {"mi-version": {"major": 1, "minor": 0}, "title": "A <b>title", "description": "<img src=x>", "table-classes": classes}
    return f"""import json, sys
open(sys.argv[0] + '.words', 'a').write(json.dumps(sys.argv[1:]) + '\\n')
print('0.5 half of it')
print(json.dumps({about!r} if sys.argv[1] == '--metadata' else {{'results': {results!r}}}))
"""


@pytest.fixture
def viewer(kymo_bin, reference, tmp_path):
    """The server with programs: a list of their paths."""
    started = []

    def start(*programs):
        words = [word for program in programs for word in ("--lami", program)]
        started.append(Viewer(kymo_bin, "--no-browser", *words, reference, env={"XDG_CACHE_HOME": str(tmp_path / "cache")}))
        return started[-1]

    yield start
    for one in started:
        one.end()


def ask(viewer, row=0, begin=0, end=10**18, code=200):
    return viewer.get("program", "POST", row=row, begin=begin, end=end, code=code)


def test_programs_of_lttng_analyses(viewer, browser, reference):
    """The rows that the program writes, in the page, for the range of the page; a click goes to the time."""
    if not shutil.which(NAMES[0]):
        pytest.skip("no lttng-analyses")
    server = viewer(*NAMES)
    ready(server)
    assert server.get("programs")["programs"] == list(NAMES)
    info = server.get("info")
    begin, end = info["begin"] + 10**9 // 5, info["begin"] + 10**9
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(f"{server.link}#b={begin}&e={end}")
    browser.until("/^\\d+ events/.test(document.querySelector('#total')?.textContent ?? '')")
    for name in NAMES:
        done = subprocess.run([name, "--begin", str(begin), "--end", str(end), reference], stdout=subprocess.PIPE, check=True)
        wanted = json.loads(done.stdout)["results"]
        choose(browser, "report", f"program/{name}")
        browser.until(f"document.querySelector('.report[data-ready=true] h2')?.textContent === '{name}'")
        assert browser.value("document.querySelector('.report .error')?.textContent") is None
        shown = browser.value("Array.from(document.querySelectorAll('.report table')).map(t => Array.from(t.querySelectorAll('tbody tr'))"
                              ".map(r => Array.from(r.children).map(c => c.title)))")
        tables = [table["data"] for table in wanted if table["data"]]
        assert [len(rows) for rows in shown] == [min(len(rows), 50) for rows in tables], name
        for rows, ours in zip(tables, shown):
            for row, our in zip(rows, ours):
                for cell in row:
                    value = "" if cell is None else cell.get("tid", cell.get("name", cell.get("value", "")))
                    text = str(int(value) if isinstance(value, float) and value.is_integer() else value)
                    assert text == "" or any(text in one for one in our), (name, text, our)
    # A click on a row goes to its time.
    first = wanted[0]["data"][0]
    times = [cell["value"] for cell in first if cell and cell["class"] == "timestamp"]
    browser.value("document.querySelector('.report table tbody tr').click()")
    browser.until(f"new URLSearchParams(location.hash.slice(1)).get('b') !== '{begin}'")
    place = address(browser)
    assert place["r"] == f"program/{NAMES[-1]}"
    assert any(int(place["b"]) <= ns <= int(place["e"]) for ns in times)
    assert not [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"]


EVERY = {
    "one": {"title": "All <i>classes", "column-descriptions": [
        {"title": name, "class": name} for name in (
            "number", "string", "bool", "ratio", "timestamp", "duration", "size", "bitrate", "time-range", "syscall", "process", "path",
            "fd", "irq", "cpu", "disk", "part", "netif", "mixed", "surprise")]},
}


def cell(kind, **members):
    return {"class": kind, **members}


def test_all_kinds_of_cells(viewer, browser, reference, tmp_path):
    stamp = 1795239039065245630
    row = [cell("number", value=7.5), cell("string", value="</script><script>alert(1)</script>"), cell("bool", value=True),
           cell("ratio", value=0.5), cell("timestamp", value=stamp), cell("duration", value=1500), cell("size", value=2048),
           cell("bitrate", value=10), cell("time-range", begin=cell("timestamp", value=stamp), end=cell("timestamp", value=stamp + 1)),
           cell("syscall", name="read"), cell("process", name="work", pid=1, tid=2), cell("path", path="/tmp/x"), cell("fd", fd=3),
           cell("irq", hard=False, nr=4, name="NET_RX"), cell("cpu", id=1), cell("disk", name="sda"), cell("part", name="sda1"),
           cell("netif", name="eth0"), cell("duration", value=1500), cell("surprise", value="?")]
    low = [cell("number", low=1, high=2)] + [None] * 8 + [cell("unknown")] * 11
    results = [{"class": "one", "data": [row, low]},
               {"class": {"inherit": "one", "title": "Another"}, "data": [row[:2]]},
               {"class": {"title": "Own", "column-descriptions": [{"title": "n", "class": "number", "unit": "pages"}]}, "data": [[cell("number", value=2**60 + 1)]]}]
    program = script(tmp_path / "tables", lami(EVERY, results))
    server = viewer(program)
    found = ask(server, begin=5, end=9)["reports"][0]
    assert (found["summary"], found["notes"]) == ("A <b>title", ["<img src=x>"])
    assert [table["title"] for table in found["tables"]] == ["All <i>classes", "Another", "Own"]
    one = found["tables"][0]
    assert [column["name"] for column in one["columns"]][:10] == [f"c{i}" for i in range(9)] + ["c8e"]
    values = list(one["rows"][0].values())
    assert values == [7.5, row[1]["value"], "yes", 0.5, stamp, 1500, 2048, 10, stamp, stamp + 1, "read",
                      {"name": "work", "pid": 1, "tid": 2, "host": None}, "/tmp/x", "3", {"kind": "softirq", "nr": 4, "name": "NET_RX"},
                      1, "sda", "sda1", "eth0", "1.500 us", "?"]
    assert one["rows"][1]["c0"] == "1 – 2" and set(list(one["rows"][1].values())[1:]) == {None}
    assert found["tables"][1]["rows"] == [{"c0": 7.5, "c1": row[1]["value"]}]
    assert found["tables"][2]["columns"][0]["title"] == "n (pages)" and found["tables"][2]["rows"] == [{"c0": 2**60 + 1}]
    words = [json.loads(line) for line in open(f"{program}.words")]
    assert words == [["--metadata"], ["--begin", "5", "--end", "9", str(reference)]]
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(f"{server.link}#r=program/tables")
    browser.until("document.querySelectorAll('.report[data-ready=true] table').length === 3")
    assert browser.value("document.querySelectorAll('.report script, .report b, .report i, .report img').length") == 0
    assert row[1]["value"] in browser.value("document.querySelector('.report').textContent")
    assert not [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"]


@pytest.mark.parametrize("text, words", [
    ("import sys; sys.exit('no <b>trace')", "status 1): no <b>trace"),
    ("import sys; print('{\"error-message\": \"lost\", \"error-code\": 1}'); sys.exit(3)", "status 3): lost"),
    ("pass", "does not write LAMI"),
    ("print('[]')", "does not write LAMI"),
    ("print('{\"results\": 3}')", "no results"),
    ("print('{\"results\": [')", "does not write LAMI"),
    ("print('{\"results\":' + '[' * 100000)", "does not write LAMI"),
    ("import sys\nwhile True: sys.stdout.write('x' * 65536)", "more than 8 MiB"),
    ("import os; os.kill(os.getpid(), 11)", "status 139"),
    ("import sys\nsys.stderr.write('e' * 10000000); sys.exit(1)", "status 1): eee"),
])
def test_hostile_programs(viewer, tmp_path, text, words):
    server = viewer(script(tmp_path / "bad", text))
    query = f"/{server.token}/api/program?row=0&begin=1&end=2"
    status, _, body = server.ask(query, "POST")
    assert status >= 400 and words in json.loads(body)["error"], body[:300]
    assert len(body) < 2000
    server.get("info")


@pytest.mark.parametrize("results", [
    [], [3], [{}], [{"class": "none", "data": [[1], 2, {}]}], [{"class": 5, "data": "x"}], [{"class": {"inherit": "one"}, "data": [[1, 2, 3], [[]], [{}], [None] * 99]}],
    [{"class": {"title": 5, "column-descriptions": [1, {}, {"class": 7}]}, "data": [["a", 1.5, True]]}],
    [{"class": "one", "data": [[cell(kind, value="x", id="y", tid=1.5, begin=7) for kind in ("process", "irq", "cpu", "timestamp") * 5]]}],
    [{"class": "one", "data": [[1e308, 2**70, -1, "x", 2**63]]}],
    [{"class": "one", "data": [[]] * 20000}], [{"class": "one", "data": []}] * 100,
])
def test_odd_results(viewer, browser, tmp_path, results):
    server = viewer(script(tmp_path / "odd", lami(EVERY, results)))
    tables = ask(server)["reports"][0]["tables"]
    assert len(tables) <= 64 and all(len(table["rows"]) <= 10000 for table in tables)
    assert sum(len(table["rows"]) + table["omitted"] for table in tables) <= 20000
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(f"{server.link}#r=program/odd")
    browser.until("document.querySelector('.report[data-ready=true]')")
    assert not [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"]


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def until(condition, what):
    end = time.monotonic() + PATIENCE_S
    while not (found := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    assert found, what
    return found


def test_program_ends_with_its_question(viewer, browser, tmp_path):
    """A program and its children, when the page asks for something else, and when the server ends."""
    pids = tmp_path / "pids"
    text = f"""import os, subprocess, time
child = subprocess.Popen(["sleep", "1000"])
open({str(pids)!r}, "a").write(f"{{os.getpid()}} {{child.pid}}\\n")
time.sleep(1000)
"""
    server = viewer(script(tmp_path / "slow", text))
    browser.go("about:blank")
    browser.go(f"{server.link}#r=program/slow")
    first = until(lambda: pids.exists() and pids.read_text().split(), "the program runs")
    assert len(first) == 2 and all(map(is_alive, first))
    choose(browser, "report", "")
    until(lambda: not any(map(is_alive, first)), "the program ends")
    choose(browser, "report", "program/slow")
    both = until(lambda: len(pids.read_text().split()) == 4 and pids.read_text().split(), "the program runs again")
    browser.go("about:blank")

    def ask_in_vain():
        with contextlib.suppress(OSError, http.client.HTTPException):  # The server ends before it answers.
            server.ask(f"/{server.token}/api/program?row=0&begin=1&end=2", "POST")

    asking = threading.Thread(target=ask_in_vain)
    asking.start()
    all_of = until(lambda: len(pids.read_text().split()) == 6 and pids.read_text().split(), "and again")
    until(lambda: not any(map(is_alive, both[2:])), "the second program ends")
    server.end()
    asking.join()
    until(lambda: not any(map(is_alive, all_of)), "all programs end")


def test_a_browser_chooses_only_from_the_list(viewer, kymo, reference, tmp_path):
    server = viewer(script(tmp_path / "p", "print('{}')"))
    assert "no such program" in ask(server, row=1, code=404)["error"]
    for query in ("program?row=0", "program?row=x&begin=1&end=2", "program?name=ls&begin=1&end=2", "program?row=0&begin=2&end=1",
                  "programs?row=1"):
        assert server.ask(f"/{server.token}/api/{query}", "POST" if query[7] == "?" else "GET")[0] == 400, query
    assert server.ask(f"/{server.token}/api/program?row=0&begin=1&end=2")[0] == 403
    assert server.ask(f"/{server.token}/api/program?row=0&begin=1&end=2", "POST", {"Origin": "http://evil.example"})[0] == 403
    missing = viewer(script(tmp_path / "missing", ""))
    (tmp_path / "missing").unlink()
    assert "cannot run" in ask(missing, code=404)["error"]
    for words in (("--tsp",), ("--save", "x.html"), (reference,)):
        assert "--lami" in kymo("view", "--lami", "x", *words, reference, code=2).err
    assert "cannot run 'nosuchprog'" in kymo("view", "--no-browser", "--lami", "nosuchprog", reference, code=1).err

