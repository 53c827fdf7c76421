# SPDX-License-Identifier: MIT
"""kymo record of the kernel: which events, and what their fields are."""

import glob
import os
import re

import pytest

DELTA = re.compile(r"\] \(\+[0-9?.]+\)")


def lines(text):
    """Without the time since the line before, in an order of our own: equal times have none."""
    return sorted(DELTA.sub("]", line) for line in text.splitlines())


def metadata(trace):
    with open(trace / "kernel" / "metadata", encoding="utf-8") as file:
        return file.read()


@pytest.mark.deadline(180)
def test_all_events_at_once(record, kymo, peer, needs_root_tracefs):
    """Every event of this kernel is in the metadata, which three readers understand alike."""
    trace, done = record("--kernel", "*", "--duration", "20ms", "--clock", "monotonic",
                         "--buffer-size", "16M", command=None)
    refused = done.err.count("the kernel refuses event")
    names = re.findall(r'^event \{\n\tname = "(.*)";$', metadata(trace), re.MULTILINE)
    names = [name for name in names if not name.startswith("lttng_statedump_")]
    there = [path for path in glob.glob(f"{needs_root_tracefs}/events/*/*/format")
             if "/events/ftrace/" not in path]
    assert len(names) == len(set(names)) == len(there), set(names)
    assert refused < len(there) / 100, done

    ours = kymo("print", trace)
    two = peer("babeltrace2", trace / "kernel", timeout=120)
    one = peer("babeltrace", trace / "kernel", timeout=120)
    assert two.code == 0 and one.code == 0, (two.err[-500:], one.err[-500:])
    assert ours.out == two.out
    assert lines(one.out) == lines(two.out)


def test_names_of_values(record, kymo):
    """What the kernel prints with names is an enumeration; addresses are hexadecimal."""
    trace, _ = record("--kernel", "timer_hrtimer_start,kmem_kmalloc",
                      command=["sleep", "0.1"])
    out = kymo("print", trace).out
    start = re.search(r"timer_hrtimer_start: .*", out).group()
    assert re.search(r'mode = \( "(ABS|REL)[A-Z|_]*" : container = \d+ \)', start), start
    assert re.search(r"hrtimer = 0x[0-9A-F]{16}, function = 0x[0-9A-F]{16}", start), start
    # LTTng's analyses know this one as a number.
    assert re.search(r"kmem_kmalloc: .* call_site = 0x[0-9A-F]+, .* gfp_flags = \d+", out)
    text = metadata(trace)
    assert '"REL" = 1' in text and "HRTIMER_MODE" not in text
    modes = kymo("print", "--filter", 'mode == "REL" || mode == "ABS"', "--count", trace).out
    assert int(modes) > 0


def test_softirq_keeps_its_number(record, kymo):
    trace, _ = record("--kernel", "irq_softirq_*", command=["sleep", "0.2"])
    assert re.search(r"irq_softirq_raise: .*\{ vec = \d+ \}", kymo("print", trace).out)
