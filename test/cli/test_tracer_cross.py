# SPDX-License-Identifier: MIT
"""libkymo-trace on aarch64, where the straight path is C.

Built with a cross compiler, run with qemu's user-mode emulation, which has no restartable sequences:
these are built, and their instructions looked at; the fall-back runs. s390x has no tracer (kymo/trace.h
says so), only ring files.
"""

import glob
import re

import pytest

from test_ring_cross import FLAGS, ROOT, run
from test_tracer import ROUND, ROUND_END, pytestmark, recorded, session  # noqa: F401
from user_session import MONOTONIC, TSC, Rule

SOURCES = sorted(glob.glob(f"{ROOT}/src/tracer/*.c")) + [
    f"{ROOT}/src/ring/ring-{part}.c" for part in ("lock", "map", "switch", "vfork", "wait", "write")]


@pytest.mark.parametrize("clock", [MONOTONIC, TSC], ids=["monotonic", "counter"])
def test_every_field_on_aarch64(session, tmp_path, clock):  # noqa: F811
    program = str(tmp_path / "shop")
    run("aarch64-linux-gnu-gcc", *FLAGS, "-static", "-pthread", f"{ROOT}/test/tracer/shop.c",
        *SOURCES, "-o", program)
    session.start([Rule("*")], clock=clock)
    session.run("qemu-aarch64", program, 2)
    events, blob = recorded(session, tmp_path)
    assert events == 2 * (ROUND + ROUND_END)
    assert blob.clock == clock


def test_straight_path_of_aarch64(tmp_path):
    """A number goes from its site to the commit: head by a load-acquire, a sequence with stores-release."""
    obj = str(tmp_path / "hit.o")
    run("aarch64-linux-gnu-gcc", *FLAGS, "-fPIC", "-DKYMO_RING_STAYS", "-c",
        f"{ROOT}/src/tracer/hit.c", "-o", obj)
    text = run("aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", obj)
    body = text.split("<kymo_hit_one>:\n")[1].split("\n\n")[0]
    names = " ".join(line.split()[1] for line in body.splitlines() if line.count("\t"))
    assert re.search(r"ldar .*ldar .*str ldr cmp b.ne ldr cmp b.ne str .*stlr .*stlr .*stlr", names), body
