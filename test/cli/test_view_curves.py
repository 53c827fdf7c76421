# SPDX-License-Identifier: MIT
"""Curves of `kymo view`: counters in the state history, CPU use, fields of events."""

import json
import re
import time

import pytest

from kernel_trace import write
from test_timeline import event, switch
from test_view import Viewer, address, browser, cache, info, page, view  # noqa: F401: fixtures
from test_view_rows import press, ready, row_of, until

MS = 10**6
KINDS = ("frequency", "read", "written", "received", "sent", "memory")


def request(ns, what, sector, sectors, rwbs):
    return event(ns, f"block_rq_{what}", dev=8, sector=sector, nr_sector=sectors, rwbs=rwbs, tid=7, error=0, bytes=512 * sectors)


def make_counters(path):
    """20 ms of thread 7."""
    begin = 1000 * MS
    return write(path, [
        event(begin, "lttng_statedump_process_state", tid=7, pid=7, ppid=1, name="t7"),
        switch(begin, 0, 7),
        event(begin + MS, "power_cpu_frequency", state=1200000, cpu_id=0),
        event(begin + 2 * MS, "kmem_rss_stat", member=1, size=65536 * 100, mm_id=5, curr=1),
        event(begin + 3 * MS, "net_dev_xmit", skbaddr=1, rc=0, len=1000, name="eth0"),
        event(begin + 3 * MS + 10, "net_dev_xmit", skbaddr=1, rc=0, len=500, name="eth0"),
        event(begin + 5 * MS, "net_if_receive_skb", skbaddr=2, len=300, name="eth0"),
        request(begin + 6 * MS, "issue", 100, 8, 4),
        request(begin + 6 * MS + 5, "issue", 200, 16, 1),
        request(begin + 7 * MS, "complete", 100, 8, 4),
        request(begin + 9 * MS, "complete", 200, 16, 1),
        event(begin + 10 * MS, "power_cpu_frequency", state=2400000, cpu_id=0),
        event(begin + 11 * MS, "kmem_rss_stat", member=0, size=65536 * 20, mm_id=5, curr=1),
        switch(begin + 15 * MS, 7, 0, state=1),
        switch(begin + 20 * MS, 0, 7),
    ])


@pytest.fixture
def counters(kymo_bin, tmp_path):
    viewer = Viewer(kymo_bin, "--no-browser", make_counters(tmp_path / "t"), env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    yield viewer
    viewer.end()


def curve(viewer, row, count=20, first=0, last=20):
    """[from, to, least, mean, greatest] of a row, in ms of the trace."""
    begin = viewer.get("info")["begin"]
    found = viewer.get("curves", begin=begin + first * MS, end=begin + last * MS - 1, count=count, ids=row)
    flat = found["rows"][0]["runs"]
    return [flat[i:i + 5] for i in range(0, len(flat), 5)]


def test_counters_of_a_made_trace(counters):
    tree = ready(counters)
    rows = {row[4].rpartition(" ")[2]: row for row in tree["rows"] if row[2] == "counter"}
    assert {name: row[3] for name, row in rows.items()} == {name: KINDS.index(name) for name in KINDS}
    cpu, disk = row_of(tree, "cpu", 0), next(row for row in tree["rows"] if row[2] == "disk")
    machine, process = row_of(tree, "machine", 0), row_of(tree, "process", 7)
    assert [rows[name][1] for name in KINDS] == [cpu[0], disk[0], disk[0], machine[0], machine[0], process[0]]
    assert rows["sent"][4] == "eth0 sent"
    assert curve(counters, rows["frequency"][0]) == [[1, 10, 1200, 1200, 1200], [10, 20, 2400, 2400, 2400]]
    assert curve(counters, rows["memory"][0]) == [[2, 11, 100, 100, 100], [11, 20, 120, 120, 120]]
    assert curve(counters, rows["sent"][0]) == [[0, 3, 0, 0, 0], [3, 4, 1500, 1500, 1500], [4, 20, 0, 0, 0]]
    assert curve(counters, rows["received"][0]) == [[0, 5, 0, 0, 0], [5, 6, 300, 300, 300], [6, 20, 0, 0, 0]]
    assert curve(counters, rows["read"][0]) == [[0, 7, 0, 0, 0], [7, 8, 4096, 4096, 4096], [8, 20, 0, 0, 0]]
    assert curve(counters, rows["written"][0], 10)[-2:] == [[4, 5, 0, 4096, 8192], [5, 10, 0, 0, 0]]
    # How many requests the disk has; how much CPUs and processes run; events.
    assert [run[4] for run in curve(counters, disk[0], 1, 6, 9)] == [2]
    for row in (cpu, machine, process):
        assert curve(counters, row[0], 4) == [[0, 3, 1, 1, 1], [3, 4, 0, 0, 0]]
        assert curve(counters, row[0], 2)[-1] == [1, 2, 0.5, 0.5, 0.5]
    stream = next(row for row in tree["rows"] if row[2] == "stream")
    assert sum((to - begin) * mean for begin, to, _, mean, _ in curve(counters, stream[0], 21, 0, 21)) == pytest.approx(15)


def test_cpu_use_agrees_with_the_report(view, info, kymo, reference, cache):
    tree = ready(view)
    report = json.loads(kymo("report", "cpu", "--json", reference, env=cache).out)["reports"][0]["tables"]
    cpus = next(table for table in report if "cpu" in table["name"])
    for row in cpus["rows"]:
        number, part = row["cpu"], row["usage"]
        found = view.get("curves", begin=info["begin"], end=info["end"], count=100, ids=row_of(tree, "cpu", number)[0])["rows"]
        flat = found[0]["runs"]
        mean = sum((flat[i + 1] - flat[i]) * flat[i + 3] for i in range(0, len(flat), 5)) / 100
        assert mean == pytest.approx(part / 100 if part > 1 else part, abs=0.02)


def test_field_of_an_event(view, info, kymo, reference):
    lines = kymo("convert", "--to", "json", "--filter", '$event == "sched_switch"', reference).out.splitlines()
    values = [json.loads(line) for line in lines]
    prios = [next(scope["next_prio"] for scope in one.values() if isinstance(scope, dict) and "next_prio" in scope)
             for one in values]
    found = view.get("field", begin=info["begin"], end=info["end"], count=1, field="sched_switch.next_prio")
    assert found["values"] == len(prios)
    assert found["runs"] == [0, 1, min(prios), pytest.approx(sum(prios) / len(prios), rel=1e-5), max(prios)]
    only = view.get("field", begin=info["begin"], end=info["end"], count=7, field="sched_switch.next_prio",
                    filter="next_prio < 0")
    assert only["values"] == len([prio for prio in prios if prio < 0])
    both = view.get("field", begin=info["begin"], end=info["end"], count=7, field="sched_switch.next_prio",
                    filter="next_prio < 0 ?? SWAPPER")
    assert 0 < both["values"] <= only["values"]
    assert "sched_switch.next_prio" in view.get("fields")["fields"]
    assert not [name for name in view.get("fields")["fields"] if name.endswith(".next_comm")]
    for wrong in ("x", ".x", "x.", 'a".b', "a\\.b"):
        assert "EVENT.FIELD" in view.get("field", begin=0, end=1, count=1, field=wrong, code=400)["error"]
    assert view.get("field", begin=-2**63, end=2**63 - 1, count=4096, field="sched_switch.next_prio")["values"] == len(prios)


def mean_of(view, info, row, **more):
    flat = view.get("curves", begin=info["begin"], end=info["end"], count=200, ids=row, **more)["rows"][0]["runs"]
    return sum((flat[i + 1] - flat[i]) * flat[i + 3] for i in range(0, len(flat), 5)) / 200


def test_threads_that_wait_for_any_cpu(page, view, info, kymo, reference, tmp_path):
    """The curve of the machine is the sum of those of its CPUs; in a saved page, too."""
    tree = ready(view)
    machine = row_of(tree, "machine", 0)[0]
    queues = [row[0] for row in tree["rows"] if row[2] == "queue"]
    known = [view.get("curves", begin=info["begin"], end=info["end"], count=200, ids=row)["rows"][0]["runs"] for row in queues]
    assert len(queues) == 2 and all(sum(runs[i + 1] - runs[i] for i in range(0, len(runs), 5)) > 150 for runs in known)
    all_of = mean_of(view, info, machine, name="queues")
    assert all_of == pytest.approx(sum(mean_of(view, info, row) for row in queues), rel=0.1) and all_of > 0.1
    assert mean_of(view, info, machine) <= 1  # its use, as before
    assert "no curves" in view.get("curves", begin=0, end=1, count=1, ids=machine, name="none", code=404)["error"]
    path = tmp_path / "page.html"
    kymo("view", "--save", path, reference, env={"XDG_CACHE_HOME": str(tmp_path)})
    label = f"document.getElementById('row-queue{machine}')?.getAttribute('aria-label') ?? ''"
    told = page.until(f"(t => /^waiting threads: mean /.test(t) && t)({label})")
    page.until(f"document.querySelectorAll('.scroller .track')[1].id === 'row-queue{machine}'")
    page.go(f"file://{path}")
    saved = page.until(f"(t => /^waiting threads: mean /.test(t) && t)({label})")
    numbers = [re.search(r"mean ([\d.]+)", text).group(1) for text in (told, saved)]
    assert float(numbers[0]) == pytest.approx(float(numbers[1]), rel=0.02) == pytest.approx(all_of, rel=0.05)
    page.requests.clear()  # a saved page is a file


def test_large_numbers_are_exact(kymo_bin, browser, tmp_path):
    """Curves have 32 bits for each number where that is enough, and 64 where it is not."""
    numbers = 7, 2**24 + 1, 2**40 + 1, 2**53 - 1
    path = write(tmp_path / "t", [switch(1000 * MS, 0, 7)] + [
        event((1000 + i) * MS, "kmem_rss_stat", member=1, size=n, mm_id=5, curr=1) for i, n in enumerate(numbers)] + [switch(1004 * MS, 7, 0)])
    viewer = Viewer(kymo_bin, "--no-browser", path, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    ends = viewer.get("info")
    for count in (1, 4):
        few = viewer.get("field", field="kmem_rss_stat.size", begin=ends["begin"], end=ends["begin"] + MS // 2, count=count)
        assert few["runs"][2::5] == [7]
    found = viewer.get("field", field="kmem_rss_stat.size", begin=ends["begin"], end=ends["end"], count=40)
    assert found["runs"][2::5] == list(numbers)
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(f"{viewer.link}#field=kmem_rss_stat.size")
    row = "document.getElementById('row-field kmem_rss_stat.size')"
    browser.until(f"/at most/.test({row}?.getAttribute('aria-label'))")
    press(browser, "t", "End")

    def tells():
        """The pixel of the value, or one beside it."""
        y = browser.value(f"(r => r.y + r.height / 2)({row}.getBoundingClientRect())")
        left, width = browser.value("(r => [r.x, r.width])(document.querySelector('.scroller canvas').getBoundingClientRect())")
        for x in range(-2, 3):
            browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=left + width / 2 + x, y=y)
            time.sleep(0.1)
            if str(2**40 + 1) in browser.value("document.querySelector('#row-tip').textContent"):
                return True
        return False

    browser.meet(tells, lambda: browser.value("document.querySelector('#row-tip').textContent"))
    viewer.end()


def about(page, label):
    """The row as a screen reader tells it."""
    return page.value("Array.from(document.querySelectorAll('.scroller .track')).map(e => e.getAttribute('aria-label'))"
                      f".find(text => text.startsWith({json.dumps(label)}))") or ""


def test_page_shows_curves(browser, counters):
    ready(counters)
    browser.go("about:blank")
    browser.trouble.clear()
    browser.go(counters.link)
    browser.until("document.querySelectorAll('.scroller .track').length > 5")
    browser.value("document.querySelector('.tracks').style.height = '700px'")
    press(browser, "]")
    for label, mean, most in (("CPUs", (75, "%"), "100 %"), ("CPU use", (75, "%"), "100 %"), ("frequency", (1.83, "GHz"), "2.40 GHz"),
                              ("eth0 sent", (75, "kB/s"), "1.50 MB/s"), ("eth0 received", (15, "kB/s"), "300 kB/s"),
                              ("memory", (7.21, "MB"), "7.86 MB"), ("written", (410, "kB/s"), "8.19 MB/s")):
        until(browser, lambda: about(browser, label).endswith(f"at most {most}"), label)
        number, unit = re.search(r": mean ([\d.]+) (\S+), ", about(browser, label)).groups()
        assert (float(number), unit) == (pytest.approx(mean[0], rel=0.01), mean[1]), label
    # A field, by the keyboard.
    press(browser, "c")
    browser.until("document.activeElement.id === 'row-field'")
    browser.call("Input.insertText", text="power_cpu_frequency.state")
    press(browser, "Enter", "Escape")
    until(browser, lambda: "at most 2.40 M" in about(browser, "power_cpu_frequency.state"), "the curve of a field")
    browser.until("new URLSearchParams(location.hash.slice(1)).get('field') === 'power_cpu_frequency.state'")
    # The pixels of the curve of the sent bytes: only the millisecond with packets.
    ink = """(() => { const c = document.querySelector('.scroller canvas'), d = c.getContext('2d');
      const row = Array.from(document.querySelectorAll('.scroller .track')).find(e => /^eth0 sent/.test(e.getAttribute('aria-label')));
      const y = row.offsetTop + 30, n = [];
      for (let x = 0; x < c.width; x++) { const p = d.getImageData(x, y, 1, 1).data; if (p[0] === 0x56 && p[1] === 0xb4) n.push(x / c.width * 20); }
      return [Math.min(...n), Math.max(...n)]; })()"""
    browser.meet(lambda: browser.value(ink) == [pytest.approx(3, abs=0.05), pytest.approx(4, abs=0.05)], lambda: browser.value(ink))
    press(browser, "t", "End")
    until(browser, lambda: browser.value("document.querySelector('.scroller .track[aria-selected=true]')?.id") ==
          "row-field power_cpu_frequency.state", "the row of the field is selected")
    press(browser, "Delete")
    until(browser, lambda: not about(browser, "power_cpu_frequency.state"), "the curve is removed")
    assert not [one for one in browser.trouble if not isinstance(one, dict) or one.get("source") != "rendering"]
