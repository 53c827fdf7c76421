# SPDX-License-Identifier: MIT
"""The bytes of api/timeline: the page's decoder in TypeScript, with real answers, with damaged ones and with lies."""

import base64
import json
import os
import random
import shutil
import subprocess

import pytest

import view_timeline
from test_view import cache, info, view  # noqa: F401: fixtures
from test_view_rows import ready

WEB = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "web")

# Lines of base64 in, answers out; an error's message as a text. A lie about a size must cost neither time nor memory.
DRIVER = """import { decode } from "%s/src/timeline-bytes.ts";
import { readFileSync } from "node:fs";
for (const line of readFileSync(0, "ascii").split("\\n").slice(0, -1)) {
  let found;
  try { found = decode(new Uint8Array(Buffer.from(line, "base64"))); } catch (error) {
    if (error.constructor !== Error) throw error;
    found = error.message;
  }
  console.log(JSON.stringify(found));
}
"""


@pytest.fixture(scope="module")
def decode(tmp_path_factory):
    """The page's decoder on many inputs, in 256 MiB of memory."""
    if not shutil.which("node") or not os.path.isdir(f"{WEB}/node_modules/esbuild"):
        pytest.skip("no node, or no packages of web/")
    place = tmp_path_factory.mktemp("bytes")
    (place / "driver.ts").write_text(DRIVER % WEB)
    subprocess.run([f"{WEB}/node_modules/.bin/esbuild", "--bundle", "--platform=node", "--format=esm", f"--outfile={place}/driver.mjs",
                    "--log-level=warning", place / "driver.ts"], check=True)

    def run(inputs):

        text = "".join(base64.b64encode(one).decode() + "\n" for one in inputs)
        done = subprocess.run(["node", "--max-old-space-size=256", f"{place}/driver.mjs"], input=text, text=True, stdout=subprocess.PIPE,
                              timeout=120, check=True)
        return [json.loads(line) for line in done.stdout.splitlines()]

    return run


@pytest.fixture(scope="module")
def answers(view, info):
    """Bytes of different ranges and sizes of the real trace."""
    tree = ready(view)
    ids = ",".join(str(row[0]) for row in tree["rows"][:200])
    middle = (info["begin"] + info["end"]) // 2
    found = []
    for begin, end, count in ((info["begin"], info["end"], 2000), (middle, middle + 10**6, 500), (middle, middle + 3, 100), (0, 5, 1)):
        status, headers, body = view.ask(f"/{view.token}/api/timeline?begin={begin}&end={end}&count={count}&ids={ids}")
        assert status == 200 and headers["Content-Type"] == "application/octet-stream"
        found.append(body)
    return found


def test_page_reads_what_the_server_writes(decode, answers):
    for body, found in zip(answers, decode(answers)):
        assert found == view_timeline.decode(body)
    assert sum(len(row["runs"]) for row in view_timeline.decode(answers[0])["rows"]) > 1000


def test_damaged_answers_are_refused_or_small(decode, answers):
    rng = random.Random(17)
    inputs = [b"", b"KT", b"KT\2" + answers[3][3:], b"{}", answers[0][:-1], answers[0] + b"\0"]
    for _ in range(3000):
        body = bytearray(rng.choice(answers[1:]))
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
        inputs.append(bytes(body))
    refused = 0
    for found in decode(inputs):
        if isinstance(found, str):
            assert found == "the answer about rows is malformed"
            refused += 1
            continue
        assert found["count"] <= 4096 and len(found["rows"]) <= 256
        for row in found["rows"]:
            edges = [edge for i in range(0, len(row["runs"]), 4) for edge in row["runs"][i:i + 2]]
            assert edges == sorted(edges) and (not edges or edges[-1] <= found["count"])
    assert refused > 1000


@pytest.mark.parametrize("text", [
    "4b5401 01 00 8020 ffffffffffffff0f", "4b5401 01 00 8020 00 ffffffffffffff0f", "4b5401 01 00 8020 00 00 ffffffffffffff0f",
    "4b5401 01 ffffffffffffffffffff01 01 00 00 00", "4b5401 01 00 8120 00 00 00", "4b5401 01 00 8020 00 01 0100 01 00 ffff7f",
    "4b5401 01 00 05 00 01 0100 01 00 01 02 06", "4b5401 01 00 05 00 01 0100 01 00 01 02 00", "4b5401 01 00 05 00 01 0100 01 00 01 04",
    "4b5401 01 00 05 00 01 0100 01 00 02 00 01 05", "4b5401 01 00 05 01 ff01",
])
def test_lies_about_sizes_are_refused(decode, text):
    assert decode([bytes.fromhex(text.replace(" ", ""))]) == ["the answer about rows is malformed"]
    assert decode([bytes.fromhex("4b5401 01 00 05 00 01 0100 01 00 01 02 05".replace(" ", ""))])[0]["rows"] == [
        {"id": 0, "runs": [0, 5, 1, 0]}]
