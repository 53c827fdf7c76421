# SPDX-License-Identifier: MIT
"""kymo record --user --context callstack-user: frames are looked up in the program's symbols."""

import bisect
import os
import re
import subprocess

import pytest

from test_user import KYMO, TESTS, box, events, pytestmark  # noqa: F401 (box is a fixture)


def functions(program):
    """[(first address, name)] of a program that is not position-independent."""
    lines = subprocess.run(["nm", "-n", "--defined-only", program], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return [(int(line.split()[0], 16), line.split()[2]) for line in lines if line.split()[1] in "tTwW"]


def stacks(trace, program):
    """{event: (its context ip, its frames, the functions' names that these are in)}."""
    found, symbols = {}, functions(program)

    def name_of(address):
        # What a call returns to may be the next function's first byte.
        return symbols[bisect.bisect(symbols, (address - 1, "~")) - 1][1]

    for line in events(trace):
        frames = [int(frame, 16) for frame in re.findall(r"\[\d+\] = (0x\w+)", line)]
        ip = int(re.search(r"\bip = (0x\w+)", line)[1], 16)
        found[line.split()[0].rstrip(":")] = ip, frames, [name_of(frame) for frame in frames]
    return found


@pytest.mark.skipif("-tsan" in KYMO, reason="what the thread sanitizer adds to functions keeps no frame pointers")
@pytest.mark.parametrize("program", ["callers", "callers-static"])
def test_frames(box, program):
    """The place of the event comes first, then its callers up to main() at least."""
    done = box(f"kymo record -u '*' -c ip,callstack-user -o out -- $T/{program}")
    (trace,) = done.traces()
    found = stacks(trace, os.path.join(TESTS, program))
    forms = {"callers:number": "by_number", "callers:numbers": "by_numbers", "callers:text": "by_text",
             "callers:large_text": "by_large_text", "kymo:printf": "by_printf",
             "callers:span_begin": "by_span", "callers:span_end": "by_span"}
    assert found.keys() == forms.keys()
    for event, function in forms.items():
        ip, frames, names = found[event]
        assert frames[0] == ip
        assert names[:4] == [function, "middle", "outer", "main"], (event, names)
