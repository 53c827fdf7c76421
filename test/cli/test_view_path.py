# SPDX-License-Identifier: MIT
"""Reports on causes in the viewer: the critical path of a thread as a row with arrows, what stands out, and columns that have room."""

import json

import pytest

from test_view import address, browser, cache, info, page, view  # noqa: F401: fixtures
from test_view_links import choose
from test_view_rows import press, ready
from test_view_save import at

TID = 326  # of the real trace: a server that another thread wakes


@pytest.fixture
def path(page, view, info, kymo, reference):
    """The page with the path of the thread in 6 ms, and the report of the command."""
    row = next(row[0] for row in ready(view)["rows"] if row[2] == "thread" and row[3] == TID)
    begin = info["begin"] + 10**9 // 5
    end = begin + 6 * 10**6
    page.value(f"location.hash = 'b={begin}&e={end}&track={row}&active=1'")
    page.until(f"/woken/.test(document.getElementById('row-{row}')?.getAttribute('aria-label') ?? '')")
    press(page, "x")
    page.until("document.querySelector('.report[data-ready=true] table')")
    found = json.loads(kymo("report", "critical-path", "--tid", TID, "-t", "threads", "-t", "parts", "-t", "log", "-t", "arrows", "--json",
                            "--begin", at(begin), "--end", at(end), reference).out)
    return row, begin, end, {table["name"]: table["rows"] for table in found["reports"][0]["tables"]}


ROW = "document.getElementById('row-path')?.getAttribute('aria-label') ?? ''"


def test_key_shows_the_path_of_the_selected_thread(page, path):
    """The tables are those of the report; the row under the thread has the parts, the canvas the arrows."""
    row, begin, end, tables = path
    shown = page.until("(l => l.length === 4 && l)(Array.from(document.querySelectorAll('.report table')).map("
                       "t => [t.dataset.table, t.querySelectorAll('tbody tr').length]))")
    assert shown == [[name, min(len(rows), 50)] for name, rows in tables.items()]
    titles = page.value("Array.from(document.querySelectorAll('[data-table=threads] tbody tr')).map(r => Array.from(r.children).map(c => c.title))")
    assert [(json.loads(line[0])["tid"], json.loads(line[1])) for line in titles] == [
        (one["process"]["tid"], one["time"]) for one in tables["threads"]]
    assert address(page)["r"] == "critical-path" and address(page)["of"] == str(row)
    assert int(address(page)["s"].split(",")[0]) == begin
    text = page.until(f"(t => / % /.test(t) && t)({ROW})")
    whole = end - begin + 1
    shares = {"waits for a CPU": ("preempted", "waiting for a CPU"), "user space": ("running in user space",), "system call": ("running in the kernel",)}
    for state, causes in shares.items():
        wanted = 100 * sum(one["duration"] for one in tables["log"] if one["cause"] in causes) / whole
        said = next((float(part.split(" % ")[0]) for part in text.split(": ", 1)[1].split(", ") if part.endswith(f"% {state}")), 0)
        assert said == pytest.approx(wanted, abs=2), (state, text)
    # It is directly below the thread, and its arrows are drawn: without the report the canvas is another one.
    page.until(f"(order => order.indexOf('row-path') === order.indexOf('row-{row}') + 1)("
               "Array.from(document.querySelectorAll('.scroller .track')).map(e => e.id))")
    assert len(tables["arrows"]) > 5
    # A part of the path leads to its time, and the row stays.
    page.value("document.querySelectorAll('[data-table=log] tbody tr')[20].click()")
    part = tables["log"][20]
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('c') === '{part['begin']}'")
    page.until(f"(t => / % /.test(t))({ROW})")
    # The pointer tells whose part it is.
    choose(page, "report", "")
    page.until("!document.getElementById('row-path')")


def test_link_restores_a_path(page, view, path):
    row, begin, end, tables = path
    address_ = page.until("location.hash.includes('of=') && location.href")
    page.go("about:blank")
    page.go(address_)
    page.until("document.querySelectorAll('.report[data-ready=true] table').length === 4")
    page.until(f"(t => / % /.test(t))({ROW})")
    # Another thread, by the button.
    other = next(one["process"]["tid"] for one in tables["threads"] if one["process"]["tid"] not in (TID, None))
    key = next(row[0] for row in view.get("tree")["rows"] if row[2] == "thread" and row[3] == other)
    page.value(f"document.querySelector('#row-{key} .name').click()")
    page.until("Array.from(document.querySelectorAll('.report button')).some(b => b.textContent === 'The path of the selected row')")
    page.value("Array.from(document.querySelectorAll('.report button')).find(b => b.textContent === 'The path of the selected row').click()")
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('of') === '{key}'")
    page.until(f"(l => l[l.indexOf('row-path') - 1] === 'row-{key}')(Array.from(document.querySelectorAll('.scroller .track')).map(e => e.id))")



def test_path_needs_a_thread(page, view, info):
    whole = {"begin": info["begin"], "end": info["end"]}
    assert "select one" in view.get("report", "POST", name="critical-path", code=400, **whole)["error"]
    assert "select one" in view.get("report", "POST", name="critical-path", row=10**6, code=400, **whole)["error"]
    page.value("location.hash = ''")
    choose(page, "report", "critical-path")
    assert "select one" in page.until("document.querySelector('.report[data-ready=true] .error')?.textContent")
    page.trouble.clear()  # the browser tells of the refusal


def test_what_stands_out_comes_first(page, view, info):
    ready(view)
    names = page.value("Array.from(document.getElementById('report').options).map(o => o.value)")
    # Before all other reports of the command.
    own = [report["name"] for report in info["reports"]]
    assert [name for name in names if name in own][0] == "why" and {"breakdown", "critical-path", "cpu"} <= set(names)
    choose(page, "report", "why")
    page.until("document.querySelector('.report[data-ready=true] [data-table=findings] tbody tr')")
    rows = page.value("Array.from(document.querySelectorAll('[data-table=findings] tbody tr')).map(r => r.children[0].textContent)")
    at_row, tid = next((i, text.split("(tid ")[1].split(")")[0]) for i, text in enumerate(rows) if "(tid " in text)
    key = next(row[0] for row in view.get("tree")["rows"] if row[2] == "thread" and row[3] == int(tid))
    page.value(f"document.querySelectorAll('[data-table=findings] tbody tr')[{at_row}].click()")
    page.until(f"new URLSearchParams(location.hash.slice(1)).get('track') === '{key}'")
    page.until("document.querySelector('td.long').scrollWidth <= document.querySelector('.report').clientWidth")


def test_columns_that_have_no_room_are_left_out(page, view, info):
    choose(page, "report", "locks")
    page.until("document.querySelector('.report[data-ready=true] table')")
    heads = "Array.from(document.querySelector('.report table').querySelectorAll('th')).map(e => e.textContent)"
    few = page.still(heads)
    report = view.get("report", "POST", name="locks", begin=info["begin"], end=info["end"])
    columns = next(table for table in report["reports"][0]["tables"] if table["rows"])["columns"]
    assert set(few) < {column["title"] for column in columns}
    assert {column["title"] for column in columns if not column.get("spare")} <= set(few)
    least = min(column["spare"] for column in columns if column["title"] not in few)
    assert all(column.get("spare", 0) <= least for column in columns if column["title"] in few)
    button = f"Array.from(document.querySelectorAll('.report button')).find(b => b.textContent === 'Show all {len(columns)} columns')"
    page.value(f"{button}.click()")
    page.until(f"{heads}.length === {len(columns)}")
    page.value("Array.from(document.querySelectorAll('.report button')).find(b => b.textContent === 'Only columns that have room').click()")
    page.until(f"{heads}.length === {len(few)}")
