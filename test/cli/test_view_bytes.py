# SPDX-License-Identifier: MIT
"""Answers in columns: the page's decoder in TypeScript, with real answers, with damaged ones and with lies."""

import base64
import json
import os
import random
import shutil
import struct
import subprocess
import urllib.parse

import pytest

import view_columns
from test_view import Viewer, browser, cache, info, view  # noqa: F401: fixtures
from test_view_marks import marked  # noqa: F401: a fixture
from test_view_rows import ready

WEB = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "web")
REFUSED = "the server's answer is malformed"

# Lines of a name, a count and base64 in, answers out; an error's message as a text. A lie about a size must cost neither time nor memory.
DRIVER = """import { Columns } from "%s/src/answer-bytes.ts";
import * as answers from "%s/src/answers.ts";
import { readFileSync } from "node:fs";
const plain = (key, value) => typeof value === "bigint" ? `${value}` : ArrayBuffer.isView(value) ? Array.from(value, (x) => plain("", x))
  : value instanceof Map ? [...value] : value;
for (const line of readFileSync(0, "ascii").split("\\n").slice(0, -1)) {
  const [name, count, text] = line.split(" ");
  let found;
  try { found = answers[`${name}Of`](new Columns(new Uint8Array(Buffer.from(text, "base64"))), Number(count)); } catch (error) {
    if (error.constructor !== Error) throw error;
    found = error.message;
  }
  console.log(JSON.stringify(found, plain));
}
"""


@pytest.fixture(scope="module")
def decode(tmp_path_factory):
    """The page's decoder on many inputs, in 256 MiB of memory."""
    if not shutil.which("node") or not os.path.isdir(f"{WEB}/node_modules/esbuild"):
        pytest.skip("no node, or no packages of web/")
    place = tmp_path_factory.mktemp("bytes")
    (place / "driver.ts").write_text(DRIVER % (WEB, WEB))
    subprocess.run([f"{WEB}/node_modules/.bin/esbuild", "--bundle", "--platform=node", "--format=esm", f"--outfile={place}/driver.mjs",
                    "--log-level=warning", place / "driver.ts"], check=True)

    def run(inputs):

        text = "".join(f"{name} {count} {base64.b64encode(one).decode()}\n" for name, count, one in inputs)
        done = subprocess.run(["node", "--max-old-space-size=256", f"{place}/driver.mjs"], input=text, text=True, stdout=subprocess.PIPE,
                              timeout=120, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


def questions(tree, begin, end):
    """All kinds of answers."""
    ids = ",".join(str(row[0]) for row in tree["rows"][:200])
    thread = next(row[0] for row in tree["rows"] if row[2] == "thread" and row[6])
    whole = {"begin": begin, "end": end}
    few = {"begin": (begin + end) // 2, "end": (begin + end) // 2 + 3}
    return [
        ("timeline", {**whole, "count": 2000, "ids": ids}), ("timeline", {**few, "count": 100, "ids": ids}),
        ("timeline", {"begin": 0, "end": 5, "count": 1, "ids": ids}), ("curves", {**whole, "count": 2000, "ids": ids}),
        ("curves", {**whole, "count": 2000, "ids": tree["rows"][0][0], "name": "queues"}),
        ("field", {**whole, "count": 2000, "field": "sched_switch.next_prio"}), ("density", {**whole, "count": 2000}),
        ("density", {**few, "count": 4, "filter": "$cpu == 1"}), ("marks", {**whole, "count": 2000, "filter": "$cpu == 1"}),
        ("arrows", {**whole, "count": 2000, "row": thread}), ("losses", {**whole, "count": 2000}), ("rows", {"row": 0, "count": 300}),
        ("tree", {}), ("activity", whole), ("latency", {"name": "calls", **whole, "count": 60, "text": ""}),
        ("members", {"name": "calls", **whole, "least": 0, "most": 2**63 - 1, "text": "", "count": 100}), ("area", whole),
    ]


def ask_all(viewer, times):
    viewer.counted()
    found = []
    for name, words in questions(ready(viewer), times["begin"], times["end"]):
        status, headers, body = viewer.ask(f"/{viewer.token}/api/{name}?{urllib.parse.urlencode(words)}")
        assert status == 200 and headers["Content-Type"] == "application/octet-stream", (name, body)
        found.append((name, words.get("count", 0), body))
    return found


@pytest.fixture(scope="module")
def answers(view, info):
    """Of the real trace."""
    return ask_all(view, info)


def as_page(name, body):
    """What the page makes of an answer."""
    found = view_columns.decode(name, body)
    if name == "rows":
        found["rows"] = [{"ns": str(ns), "trace": trace, "cpu": cpu, "name": event, "text": text} for ns, trace, cpu, event, text in found["rows"]]
    elif name == "tree":
        keys = ("id", "parent", "kind", "number", "name", "origin", "states")
        found["rows"] = [{**dict(zip(keys, row)), "states": row[6] == 1} for row in found["rows"]]
    elif name == "activity":
        found = found["rows"]
    elif name == "latency":
        found["columns"] = 60
    elif name == "members":
        found = {"n": found["n"], "members": [{"begin": str(a), "end": str(b), "row": row, "name": one} for a, b, row, one in found["members"]]}
    elif name == "area":
        for title in ("names", "calls", "spans", "irqs", "requests"):
            found[title] = [dict(zip(("name", "n", "ns", "waiting", "longest"), one)) for one in found[title]]
        found["threads"] = [dict(zip(("id", "tid", "name", "active", "states"), one)) for one in found["threads"]]
        found["counters"] = [dict(zip(("id", "kind", "number", "name", "low", "mean", "high"), one)) for one in found["counters"]]
    elif name == "density":
        found["begin"], found["end"] = str(found["begin"]), str(found["end"])
    return found


def with_texts(name, found):
    """Small times are numbers in the page."""
    if name == "density":
        found["begin"], found["end"] = str(found["begin"]), str(found["end"])
    return found


def test_page_reads_what_the_server_writes(decode, answers):
    sizes = {}
    for (name, _, body), found in zip(answers, decode(answers)):
        wanted = as_page(name, body)
        assert with_texts(name, found) == wanted, name
        sizes[name] = max(sizes.get(name, 0), len(json.dumps(wanted)))
    # Each kind of answer has something in this trace, but losses.
    assert all(size > 300 for name, size in sizes.items() if name not in ("losses", "field")), sizes


def test_lost_events_damage_and_triggers_come_as_they_are(decode, marked):
    marked.counted()
    ready(marked)
    times = marked.get("info")
    for name in ("losses", "marks", "density"):
        words = {"begin": times["begin"], "end": times["end"], "count": 500}
        body = marked.ask(f"/{marked.token}/api/{name}?{urllib.parse.urlencode(words)}")[2]
        wanted, (found,) = as_page(name, body), decode([(name, 500, body)])
        assert with_texts(name, found) == wanted
        assert any(wanted["lost"] if name == "density" else wanted["triggers"] if name == "marks" else
                   [run for stream in wanted["streams"] for run in stream["runs"]]), name


def broken(rng, body):
    body = bytearray(body)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(body))
        kind = rng.randrange(4)
        if kind == 0:
            body[at] = rng.randrange(256)
        elif kind == 1:
            del body[at:at + rng.randrange(1, 9)]
        elif kind == 2:
            body[at:at] = bytes(rng.choice((0, 127, 128, 255)) for _ in range(rng.randrange(1, 9)))
        else:
            body = body[:at + 1]
        if not body:
            body = bytearray(b"K")
    return bytes(body)


def edges_of(found):
    """Of runs in an answer: edges, and how wide it is."""
    for row in found.get("rows", ()) if isinstance(found, dict) else ():
        if "runs" in row:
            width = 4 if "names" in found else 5
            yield [edge for i in range(0, len(row["runs"]), width) for edge in row["runs"][i:i + 2]], found["count"]


def test_damaged_answers_are_refused_or_small(decode, answers):
    rng = random.Random(17)
    small = [answer for answer in answers if len(answer[2]) < 20000]
    assert {"timeline", "curves", "density", "marks", "area"} <= {name for name, _, _ in small} | {"curves"}
    name, count, body = small[0]
    inputs = [(name, count, one) for one in (b"", b"KYA", b"KYA\2" + body[4:], b"{}", body[:-1], body + b"\0")]
    inputs += [(name, count, broken(rng, body)) for name, count, body in (rng.choice(small) for _ in range(3000))]
    refused = 0
    for (name, _, _), found in zip(inputs, decode(inputs)):
        if isinstance(found, str):
            assert found == REFUSED
            refused += 1
            continue
        for edges, count in edges_of(found):
            assert edges == sorted(edges) and (not edges or edges[-1] <= count <= 4096)
    assert refused > 1000


def number(value):
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])


def column(kind, name, n, data):
    return kind.encode() + number(len(name)) + name.encode() + number(n) + number(len(data)) + data


def timeline(count=5, code=(2,), extent=(5,), kinds=(1,), runs=(1,), columns=None):
    """An answer with one row, of columns that may lie."""
    found = {"names": ("s", 0, b""), "kind": ("u", len(kinds), bytes(kinds)), "detail": ("u", len(kinds), bytes(len(kinds))),
             "id": ("d", len(runs), bytes(len(runs))), "runs": ("u", len(runs), b"".join(map(number, runs))),
             "code": ("u", len(code), b"".join(map(number, code))), "extent": ("u", len(extent), b"".join(map(number, extent)))}
    found.update(columns or {})
    head = json.dumps({"ready": True, "read": 0, "count": count}).encode()
    return b"KYA\1" + column("j", "", 1, head) + b"".join(column(kind, name, n, data) for name, (kind, n, data) in found.items()) + b"\0"


@pytest.mark.parametrize("lie", [
    {"count": 4097}, {"count": -1}, {"count": "5"}, {"extent": (6,)}, {"extent": (0,)}, {"extent": ()}, {"extent": (5, 5)}, {"code": (3,)},
    {"code": (6,)}, {"runs": (2,)}, {"runs": (0,)}, {"runs": (2**53 - 1,)}, {"kinds": ()}, {"columns": {"code": ("u", 2**50, b"\2")}},
    {"columns": {"code": ("u", 1, b"\xff" * 9 + b"\1")}}, {"columns": {"code": ("u", 1, b"\2\2")}}, {"columns": {"code": ("t", 1, b"\2")}},
    {"columns": {"names": ("s", 1, b"\x7f")}}, {"columns": {"id": ("d", 1, b"\xff" * 9 + b"\3")}},
    {"columns": {"id": ("d", 1, b"\xfe" + b"\xff" * 8 + b"\1")}}, {"columns": {"id": ("f", 1, struct.pack("<f", 0))}},
])
def test_lies_about_sizes_are_refused(decode, lie):
    assert decode([("timeline", 0, timeline(**lie))]) == [REFUSED]
    assert decode([("timeline", 0, timeline())])[0]["rows"] == [{"id": 0, "runs": [0, 5, 1, 0]}]


def test_a_page_tells_of_a_malformed_answer(kymo_bin, cache, reference, browser):
    """And goes on with the next one."""
    viewer = Viewer(kymo_bin, "--no-browser", reference, env=cache)
    try:
        browser.go(viewer.link)
        browser.until("/^\\d+ events/.test(document.querySelector('#total')?.textContent)")
        browser.value("window.real = window.fetch; window.fetch = (path, more) => /api.timeline/.test(path) ? "
                      "Promise.resolve(new Response(new Uint8Array([75, 89, 65, 1, 117]))) : window.real(path, more); true")
        browser.key("w")
        browser.until(f"document.body.textContent.includes({json.dumps(REFUSED)})")
        browser.value("window.fetch = window.real; true")
        browser.key("w")
        browser.until(f"!document.body.textContent.includes({json.dumps(REFUSED)})")
    finally:
        viewer.end()
