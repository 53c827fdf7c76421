# SPDX-License-Identifier: MIT
"""Reports as people see them: tables that fit, and what else there is."""

import json
import os
import re

import pytest

SCREEN_LINES, PIPE_COLUMNS = 56, 100


@pytest.fixture(scope="module")
def trace(shared):
    return os.path.join(shared, "traces", "lttng-kernel", "kernel")


@pytest.fixture(scope="module")
def names(kymo_names):
    return kymo_names


@pytest.fixture(scope="session")
def kymo_names(kymo):
    listed = kymo("report", "--list").out
    return [name for name in re.findall(r"^  (\S+) ", listed, re.M) if name not in ("periods", "breakdown", "calls", "critical-path", "flame", "heatmap", "why")]


def test_default_output_fits_a_screen(kymo, trace, names):
    """Its lines and their lengths; notes and the head are sentences and paths."""
    for name in names:
        done = kymo("report", name, trace, code=None)
        if done.code:  # the trace lacks the events
            continue
        lines = done.out.splitlines()
        assert len(lines) <= SCREEN_LINES, (name, len(lines))
        if name == "summary":  # its facts are sentences
            continue
        for line in lines:
            if not line.startswith(("Note: ", "Trace  ", "Next: ", "       ")):
                assert len(line) <= PIPE_COLUMNS, (name, line)


def test_wide_shows_all(kymo, trace, names):
    for name in names:
        narrow, wide = (kymo("report", name, *options, trace, code=None) for options in ((), ("--wide",)))
        if narrow.code:
            continue
        assert "--wide shows:" not in wide.out
        left_out = re.findall(r"^  --wide shows: ((?:.*,\n)*.*)$", narrow.out, re.M)
        for title in {title.strip() for text in left_out for title in text.split(",")} - {"TID", "PID"}:
            assert re.search(rf"^.*  {re.escape(title)}(  |$)", wide.out, re.M), (name, title)


def test_other_tables_are_named(kymo, trace, names):
    """What the default output leaves out is named at its end, and is there when it is asked for."""
    for name in names:
        done = kymo("report", name, trace, code=None)
        if done.code or name in ("summary", "io-log"):
            continue
        every = json.loads(kymo("report", name, "--json", trace).out)["reports"][0]["tables"]
        more = re.search(r"^More:  (.*)$", done.out, re.M)
        hidden = re.findall(r"-t (\S+?)(?:,|$)", more.group(1)) if more else []
        for table in every:
            assert (f"\n{table['title']}\n" in done.out) != (table["name"] in hidden), (name, table["name"])
        for table in hidden:
            asked = kymo("report", name, "-t", table, trace).out
            assert "More: " not in asked and "Next: " not in asked
        assert re.search(r"^Next:  kymo report \S.*   \S", done.out, re.M), name


def test_next_commands_work(kymo, trace, names):
    """Each command of 'Next' is one that the program takes."""
    for name in names:
        done = kymo("report", name, trace, code=None)
        for command in re.findall(r"^(?:Next:|     )  kymo (report .*?)   ", done.out, re.M):
            command = command.replace("syscall:NAME", "syscall:read")
            assert kymo(*command.split(), code=None).code in (0, 1), command


def test_long_texts_are_cut(kymo, trace):
    """Of a path, the end stays; --wide shows it whole."""
    narrow = kymo("report", "io-latency", "-t", "log", "-n", "0", trace).out
    wide = kymo("report", "io-latency", "-t", "log", "-n", "0", "--wide", trace).out
    cut = re.findall(r"  \.\.\.(\S+)$", narrow, re.M)
    for end in cut:
        assert re.search(rf"\S{re.escape(end)}(  |$)", wide, re.M), end
    assert all(len(line) <= PIPE_COLUMNS for line in narrow.splitlines()[4:] if not line.startswith("Note"))
