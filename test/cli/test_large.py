# SPDX-License-Identifier: MIT
"""Four times as much of anything in a trace is four times the work, and not sixteen times.

valgrind counts the instructions, so a busy machine changes nothing.
"""

import re
import shutil
import subprocess

import pytest

import large_traces

# Sorting adds to the four; what grows with the square of its input comes to ten and more.
RATIO_MAX = 5.0


def instructions(kymo_bin, *args):
    run = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", kymo_bin, *args],
                         stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(r"Collected : (\d+)", run.stderr)
    assert found, run.stderr
    return int(found[1])


@pytest.fixture(name="ratio")
def _ratio(kymo_bin, tmp_path):
    """ratio(make, n, *args): the work of four times n to that of n."""
    if "-asan" in kymo_bin or "-tsan" in kymo_bin:
        pytest.skip("valgrind runs no sanitized program")
    if not shutil.which("valgrind"):
        pytest.skip("no valgrind")

    def ratio(make, n, *args):
        works = []
        for count in (n, 4 * n):
            trace, out = tmp_path / f"trace{count}", tmp_path / f"out{count}"
            make(str(trace), count)
            works.append(instructions(kymo_bin, *args, *(["-o", out] if "--to" in args else []), trace))
        return works[1] / works[0]
    return ratio


@pytest.mark.parametrize("kind", large_traces.METADATA)
def test_metadata(ratio, kind):
    """It is read, described anew in the other language, and read again."""
    to = "ctf2" if kind.startswith("tsdl-") else "ctf1.8"
    assert ratio(large_traces.METADATA[kind], 400, "convert", "--to", to) < RATIO_MAX


@pytest.mark.parametrize("kind", large_traces.DATA)
def test_data(ratio, kind):
    assert ratio(large_traces.DATA[kind], 300, "print", "--recover") < RATIO_MAX
