# SPDX-License-Identifier: MIT
"""The ring's algorithm, as a model: spin goes through every interleaving of it."""

import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MODEL = os.path.join(ROOT, "test", "model", "ring.pml")


def check(directory, mistake):
    """What the verifier prints, for the model with a mistake (0: none) in it."""
    def run(*cmd):
        return subprocess.run(cmd, cwd=directory, check=True, timeout=240,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.decode()

    run("spin", f"-DMISTAKE={mistake}", "-a", MODEL)
    run("gcc", "-O2", "-DSAFETY", "-DCOLLAPSE", "-w", "-o", "pan", "pan.c")
    return run("./pan", "-m100000", "-E")  # -E: a writer that was killed ends nowhere


def test_ring_model_holds(tmp_path):
    out = check(tmp_path, 0)
    assert "errors: 0" in out
    # All of it, and not until something overflowed.
    assert "Search not completed" not in out and "max search depth too small" not in out


@pytest.mark.parametrize("mistake", [1, 2, 3, 4])
def test_ring_model_finds_mistakes(tmp_path, mistake):
    assert "assertion violated" in check(tmp_path, mistake)
