# SPDX-License-Identifier: MIT
"""SQL in the viewer: the rows of kymo query for the range, no way out of the traces, and a click that leads to the picture."""

import http.client
import json
import os
import shutil
import signal
import time
import urllib.parse

from test_view import Viewer, address, browser, cache, info, page, shown, view  # noqa: F401: fixtures
from test_view_path import choose
from test_view_rows import ready

SLOW = "SELECT count(*) FROM event a, event b, event c WHERE a.cpu + b.cpu + c.cpu < 0"


def test_rows_of_statements(view, info, kymo, reference, tmp_path):  # noqa: F811
    whole = {"begin": info["begin"], "end": info["end"]}
    statement = "SELECT time, duration, name, tid, comm, ret FROM syscall WHERE time BETWEEN :begin AND :end ORDER BY duration DESC LIMIT 20"
    found = view.get("query", "POST", text=statement, **whole)["reports"][0]["tables"][0]
    expected = json.loads(kymo("query", "--json", "-p", f"begin={info['begin']}", "-p", f"end={info['end']}", reference, statement).out)
    assert [(row["time"], row["duration"], row["name"], row["tid"]["tid"], row["ret"]) for row in found["rows"]] == [
        (row["time"], row["duration"], row["name"], row["tid"], row["ret"]) for row in expected]
    assert {column["name"]: column["class"] for column in found["columns"]} == {
        "time": "timestamp", "duration": "duration", "name": "text", "tid": "process", "comm": "text", "ret": "number"}
    middle = (info["begin"] + info["end"]) // 2
    some = view.get("query", "POST", text=statement.replace(" LIMIT 20", ""), begin=info["begin"], end=middle)["reports"][0]["tables"][0]
    assert all(row["time"] <= middle for row in some["rows"]) and len(some["rows"]) == 1000 and some["omitted"] > 0
    # Only traces, only with the page's method, in bounds.
    for text in (f"ATTACH '{tmp_path}/x' AS x", "SELECT load_extension('x')", f"VACUUM INTO '{tmp_path}/x'", "SELECT x", "", "DROP TABLE event"):
        answer = view.get("query", "POST", text=text or "--", code=400, **whole)
        assert answer["error"] and not os.listdir(tmp_path)
    assert view.ask(f"/{view.token}/api/query?" + urllib.parse.urlencode({"text": "SELECT 1", **whole}), "GET")[0] == 403
    assert view.ask(f"/{view.token}/api/query?" + urllib.parse.urlencode({"text": "SELECT 1 " + "x" * 5000, **whole}), "POST")[0] == 400


def ticks(view):  # noqa: F811
    """CPU time of the server."""
    with open(f"/proc/{view.process.pid}/stat", encoding="ascii") as file:
        return sum(map(int, file.read().rpartition(")")[2].split()[11:13]))


def test_a_statement_ends_with_its_page(view, info):  # noqa: F811
    path = f"/{view.token}/api/query?" + urllib.parse.urlencode({"text": SLOW, "begin": info["begin"], "end": info["end"]})
    deadline, before = time.monotonic() + 100, ticks(view)
    connection = http.client.HTTPConnection("127.0.0.1", view.port, timeout=120)
    connection.request("POST", path, headers={"Origin": f"http://127.0.0.1:{view.port}"})
    while ticks(view) < before + 100:
        assert time.monotonic() < deadline, "the statement does not run"
        time.sleep(0.05)
    connection.close()
    last = None
    while last != ticks(view):
        assert time.monotonic() < deadline, "the statement of a page that has gone runs on"
        last = ticks(view)
        time.sleep(1)
    assert view.get("query", "POST", text="SELECT 1 AS one", begin=info["begin"], end=info["end"])["reports"][0]["tables"][0]["rows"]


def test_rows_lead_to_the_picture(page, info, kymo, reference):  # noqa: F811
    choose(page, "report", "?sql")
    page.until("document.querySelector('#sql')")
    page.value("document.getElementById('sql').focus(), document.getElementById('sql').select()")
    page.call("Input.insertText", text="SELECT time, tid, comm, name, duration FROM syscall WHERE name = 'fsync' ORDER BY duration DESC")
    page.value("document.getElementById('run-sql').click()")
    page.until("document.querySelectorAll('.report[data-ready=true] tbody tr.goes').length > 3")
    first = json.loads(kymo("query", "--json", reference, "SELECT time_text(time) AS time FROM syscall WHERE name = 'fsync' ORDER BY duration DESC LIMIT 1").out)
    page.value("document.querySelector('.report tbody tr').click()")
    clock = first[0]["time"].split()[1]
    page.until(f"document.querySelector('.line[aria-selected=true]')?.children[1].textContent === '{clock}'")


def test_rows_in_memory_have_a_limit(view, info):  # noqa: F811
    """A value has 1 MiB at most, since SQLite's functions cannot be stopped, and the rows of a report 256 MiB."""
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 1000) SELECT x, hex(zeroblob({})) AS h FROM c"
    whole = {"begin": info["begin"], "end": info["end"]}
    assert "too big" in view.get("query", "POST", text=many.format(1000000), code=400, **whole)["error"]
    assert "256 MiB" in view.get("query", "POST", text=many.format(500000), code=503, **whole)["error"]


def test_own_reports_are_in_the_list(kymo_bin, kymo, reference, cache, browser, root_dir, tmp_path):  # noqa: F811
    """A file of SQL, for the range that the page shows; what is changed in it is there the next time."""
    own = tmp_path / "slow-calls.sql"
    text = open(os.path.join(root_dir, "examples", "slow-calls.sql"), encoding="utf-8").read()
    own.write_text(text.replace("least=10000000", "least=1000"))
    viewer = Viewer(kymo_bin, "--no-browser", "--report", own, reference, env=cache)
    try:
        times = viewer.get("info")
        assert viewer.get("programs") == {"programs": ["slow-calls.sql"]}
        begin, end = times["begin"], (times["begin"] + times["end"]) // 2
        report = viewer.get("program", "POST", row=0, begin=begin, end=end)["reports"][0]
        span = [word for option, ns in (("--begin", begin), ("--end", end)) for word in (option, f"{ns // 10**9}.{ns % 10**9:09}")]
        wanted = json.loads(kymo("report", own, "--json", "--limit", "1000", *span, reference).out)["reports"][0]
        assert [table["title"] for table in report["tables"]] == ["Calls, the slowest first", "Slow calls of each program"]
        assert [table["rows"] for table in report["tables"]] == [table["rows"] for table in wanted["tables"]] and report["tables"][0]["rows"]
        # On the page, a click on a call goes to it.
        browser.go("about:blank")
        browser.go(viewer.link)
        browser.until("document.querySelector('#report option[value=\"program/slow-calls.sql\"]')")
        choose(browser, "report", "program/slow-calls.sql")
        first = browser.until("document.querySelector('.report[data-ready=true] [data-table=calls] tbody tr td')?.title")
        browser.value("document.querySelector('.report [data-table=calls] tbody tr').click()")
        browser.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{first}'")
        own.write_text("-- title: Another one\n-- table one: One\nSELECT 1 AS one;\n")
        choose(browser, "report", "")
        choose(browser, "report", "program/slow-calls.sql")
        browser.until("document.querySelector('.report[data-ready=true] [data-table=one] caption')?.textContent === 'One'")
        own.write_text("SELECT x FROM nowhere;\n")
        assert "nowhere" in viewer.get("program", "POST", row=0, begin=begin, end=end, code=400)["error"]
        own.unlink()
        assert "slow-calls.sql" in viewer.get("program", "POST", row=0, begin=begin, end=end, code=422)["error"]
        viewer.get("program", "POST", row=1, begin=begin, end=end, code=404)
    finally:
        viewer.end()
    assert "cannot read the report" in kymo("view", "--no-browser", "--report", tmp_path / "none.sql", reference, code=1).err
    assert "--report" in kymo("view", "--tsp", "--report", own, reference, code=2).err


def test_hosts_and_guests(kymo, kymo_bin, root_dir, browser, cache, tmp_path):  # noqa: F811
    """Both machines have rows; the times that a guest did not run, in the report and in SQL, lead to the picture."""
    traces = [str(shutil.copytree(os.path.join(root_dir, "test", "data", "guests", name), tmp_path / name)) for name in ("host", "guest")]
    kymo("sync", *traces)
    viewer = Viewer(kymo_bin, "--no-browser", *traces, env=cache)
    try:
        browser.go("about:blank")
        browser.go(viewer.link)
        labels = [row[4] for row in ready(viewer)["rows"] if row[2] == "machine"]
        assert labels == ["host", "guest"]
        choose(browser, "report", "guests")
        begin = browser.until("document.querySelector('.report[data-ready=true] [data-table=top] tbody tr td')?.title")
        browser.value("document.querySelector('.report [data-table=top] tbody tr').click()")
        browser.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{begin}'")
        [row] = json.loads(kymo("query", "--json", *traces, "SELECT time FROM vcpu_off WHERE why = 'stolen' ORDER BY duration DESC LIMIT 1 OFFSET 1").out)
        choose(browser, "report", "?sql")
        browser.until("document.querySelector('#sql')")
        browser.value("document.getElementById('sql').focus(), document.getElementById('sql').select()")
        browser.call("Input.insertText", text="SELECT time, duration, tid, guest, guest_comm, who_tid FROM vcpu_off WHERE why = 'stolen' "
                     "ORDER BY duration DESC LIMIT 9 OFFSET 1")
        browser.value("document.getElementById('run-sql').click()")
        browser.until("document.querySelectorAll('.report[data-ready=true] tbody tr.goes').length === 9")
        browser.value("document.querySelector('.report tbody tr').click()")
        browser.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{row['time']}'")
    finally:
        viewer.end()


def test_temporary_files_have_a_limit(kymo, kymo_bin, reference, tmp_path):
    many = "SELECT count(*) FROM (SELECT a.time, b.time AS c FROM event a, (SELECT time FROM event LIMIT 400) b ORDER BY a.time * 7919 % 10007)"
    words = "the statement sorts or groups more than 1.0 MiB of rows"
    found = kymo("query", "--query-space", "1M", reference, many, code=1)
    assert words in found.err and "--query-space" in found.err
    report = tmp_path / "many.sql"
    report.write_text(many)
    assert words in kymo("report", "--query-space", "1M", report, reference, code=1).err
    assert kymo("query", "--query-space", "1M", reference, "SELECT count(*) FROM event").out
    viewer = Viewer(kymo_bin, "--no-browser", "--query-space", "1M", reference, env={"XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)})
    ends = viewer.get("info")
    answer = viewer.get("query", "POST", text=many, begin=ends["begin"], end=ends["end"], code=503)
    assert words in answer["error"]
    assert viewer.get("query", "POST", text="SELECT 1 AS one", begin=ends["begin"], end=ends["end"])["reports"]
    viewer.end()


def test_a_second_signal_ends_the_viewer_at_once(kymo_bin, reference, tmp_path):
    """While a function of SQLite computes, which nothing can stop."""
    viewer = Viewer(kymo_bin, "--no-browser", reference, env={"XDG_CACHE_HOME": str(tmp_path)})
    ends, before = viewer.get("info"), ticks(viewer)
    text = "SELECT instr(hex(zeroblob(500000)), hex(zeroblob(250000)) || '1')"
    path = f"/{viewer.token}/api/query?" + urllib.parse.urlencode({"text": text, "begin": ends["begin"], "end": ends["end"]})
    connection = http.client.HTTPConnection("127.0.0.1", viewer.port, timeout=120)
    connection.request("POST", path, headers={"Origin": f"http://127.0.0.1:{viewer.port}"})
    while ticks(viewer) < before + 20:
        time.sleep(0.02)
    # Two signals that come before the first one is handled are one.
    while viewer.process.poll() is None:
        viewer.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
    connection.close()
    assert viewer.process.returncode == -signal.SIGINT, viewer.process.communicate()
