# SPDX-License-Identifier: MIT
"""kymo report --html: a whole page, that loads nothing, in which whatever a trace says is text."""

import base64
import hashlib
import html.parser
import json
import re
import shutil
import subprocess

import pytest

VOID = {"meta", "input", "br", "rect", "line"}
LOADS = {"src", "srcset", "action", "formaction", "data", "poster", "background", "xlink:href"}


class Page(html.parser.HTMLParser):
    """Elements balance, nothing is loaded, scripts are in one place; texts of tables' cells."""

    def __init__(self, text):
        super().__init__()
        self.open, self.scripts, self.rows, self.titles, self.text = [], [], [], [], ""
        self.counts = {}
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        for name, value in attrs:
            assert name not in LOADS and not name.startswith("on"), (tag, name)
            assert name != "href" or re.fullmatch(r"#[a-z-]+", value), value
            assert name != "style" or re.fullmatch(r"--w:\d+\.\d%", value), value
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        elif tag == "script":
            self.scripts.append("")

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag, tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        elif self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        elif self.open and self.open[-1] == "h3":
            self.titles.append(data)


@pytest.fixture(scope="module")
def whole(kymo, reference):
    """(text, page) of all reports."""
    text = kymo("report", "all", "--html", reference).out
    return text, Page(text)


def test_page_holds_every_table_and_row(kymo, reference, whole):
    reports = json.loads(kymo("report", "all", "--json", reference).out)["reports"]
    tables = [table for report in reports for table in report["tables"]]
    assert whole[1].titles == [table["title"] for table in tables]
    heads = sum(1 for table in tables if table["rows"])
    assert len(whole[1].rows) == heads + sum(len(table["rows"]) for table in tables)
    assert whole[1].counts["section"] == len(reports)
    assert whole[1].counts["svg"] > 10 and whole[1].counts["rect"] > 50


def test_only_its_own_script_runs(whole):
    script, = whole[1].scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', whole[0]).group(1)
    assert "default-src 'none'" in policy and f"script-src 'sha256-{digest}'" in policy
    assert not re.search(r"https?:|@import|url\(", whole[0].replace("http://www.w3.org", ""))


def test_script_is_javascript(whole, tmp_path):
    node = shutil.which("node")
    if not node:
        pytest.skip("no node to read the script with")
    (tmp_path / "page.js").write_text(whole[1].scripts[0])
    subprocess.run([node, "--check", tmp_path / "page.js"], check=True)


def test_bars_have_the_values_lengths(kymo, reference):
    text = kymo("report", "cpu", "--html", "-t", "threads", reference).out
    report, = json.loads(kymo("report", "cpu", "--json", "-t", "threads", reference).out)["reports"]
    usages = [row["usage"] for row in report["tables"][0]["rows"]]
    lengths = [float(length) for length in re.findall(r"--w:([\d.]+)%", text)]
    assert len(lengths) == len(usages)
    assert all(abs(length - 100 * usage / max(usages)) < 0.06 for length, usage in zip(lengths, usages))


def test_statistics_have_bars_of_their_times(kymo, reference):
    options = ("report", "sched", "-t", "threads", reference)
    report, = json.loads(kymo(*options, "--json").out)["reports"]
    times = [row["total"] or 0 for row in report["tables"][0]["rows"]]
    lengths = [float(length) for length in re.findall(r"--w:([\d.]+)%", kymo(*options, "--html").out)]
    assert len(lengths) == len(times)
    assert all(abs(length - 100 * time / max(times)) < 0.06 for length, time in zip(lengths, times))


def test_intervals_are_lines_over_time(kymo, reference):
    page = Page(kymo("report", "cpu,sched", "--html", "--refresh", "500ms", reference).out)
    assert page.counts["section"] == 2
    assert page.counts["polyline"] >= 8
    # What has no line has no heading before the intervals either.
    assert page.titles[:2] == ["CPU time of each thread", "Usage of each CPU"]
    assert page.counts["details"] > 16  # one for each interval of each report


def test_hostile_names_are_text(kymo, reference, tmp_path):
    """The same trace, in which a thread and a file are called like markup, at the same length."""
    trace = tmp_path / "<b>&\"'trace"
    shutil.copytree(reference, trace)
    for name in ("c_0", "c_1"):
        data = (trace / name).read_bytes()
        data = data.replace(b"tcp-server\0", b"<script>a&\0").replace(b"disk-io\0", b"\"><b>'&\0")
        data = data.replace(b"/dev/console\0", b"</td></table\0")
        (trace / name).write_bytes(data)
    text = kymo("report", "all", "--html", trace).out
    page = Page(text)
    assert len(page.scripts) == 1 and "b" not in page.counts and "img" not in page.counts
    assert "<script>a&" in page.text and "\"><b>'&" in page.text and "</td></table" in page.text
    assert "<b>&\"'trace" in page.text
    cells = [cell for row in page.rows for cell in row]
    assert any(cell.startswith("<script>a&") for cell in cells)


def test_outputs_exclude_each_other(kymo, reference):
    for pair in (("--html", "--json"), ("--html", "--csv")):
        assert "exclude each other" in kymo("report", "cpu", *pair, reference, code=2).err


def test_page_without_events(kymo, reference):
    page = Page(kymo("report", "cpu", "--html", "--filter", "cpu_id == 99", reference).out)
    assert "no events" in page.text or "nothing" in page.text
