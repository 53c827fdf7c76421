# SPDX-License-Identifier: MIT
"""The programs of examples/problems: each is recorded, and the commands of docs/solve.md find what was planted."""

import json
import os

import pytest

from conftest import ROOT

PROGRAMS = os.path.join(os.environ.get("KYMO_BUILD") or os.path.join(ROOT, "build"), "examples", "problems")


@pytest.fixture
def problem(record, without_losses, tmp_path):
    """problem(name, *options): a recording of the program, without losses."""
    def call(name, *options):
        trace, _ = without_losses(record, *options, command=[os.path.join(os.path.abspath(PROGRAMS), name)],
                                  cwd=tmp_path)
        return trace
    return call


@pytest.fixture
def rows(kymo):
    """rows(report, table, trace, *options) -> its rows."""
    def call(report, table, trace, *options):
        out = kymo("report", report, "-t", table, "--json", *options, trace).out
        (found,) = json.loads(out)["reports"][0]["tables"]
        return found["rows"]
    return call


def test_lock_convoy(problem, rows, kymo):
    """Who held the lock, and what it did meanwhile; the last waker is another worker most often."""
    trace = problem("lock-convoy", "-k", "syscalls", "-k", "sched_*")
    mine = ("saver", "worker")
    first = [row for row in rows("locks", "holders", trace) if row["holder"]["name"] in mine][0]
    assert first["holder"]["name"] == "saver"
    # With one worker or another that was about to sleep, 3 of 4 wait.
    assert 10 <= first["count"] <= 20 and first["waits"] >= 2 * first["count"]
    assert first["blocked"] >= first["count"] * 5_000_000
    holds = [row for row in rows("locks", "holds", trace) if row["holder"]["name"] in mine]
    assert holds and {row["holder"]["name"] for row in holds} == {"saver"}
    assert all("in clock_nanosleep" in row["did"] for row in holds), holds
    assert all(row["delay"] <= row["wait"] for row in holds if row["waits"] == 4)
    waits = [row for row in rows("locks", "log", trace)
             if row["process"]["name"] == "worker" and row["held"] and row["held"] > 4_000_000]
    assert {row["holder"]["name"] for row in waits} == {"saver"}
    assert {row["waker"]["name"] for row in waits} > {"saver"}
    assert "in clock_nanosleep" in kymo("report", "locks", "-t", "holds", trace).out
