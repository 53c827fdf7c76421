# SPDX-License-Identifier: MIT
"""Commands that need no OpenSSL, libmicrohttpd, libbpf and elfutils run without them; the others say which package is missing."""

import glob
import os
import subprocess

import pytest

TRACE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "data", "ok", "traces", "equal-times")
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts over a library")


def without(library, program, *args, cwd):
    """The program where the library is an empty file."""
    paths = [path for folder in ("/lib", "/usr/lib") for path in glob.glob(f"{folder}/*/{library}*")]
    assert paths
    script = "for path in $PATHS; do mount --bind /dev/null $path || exit 99; done; exec \"$@\""
    return subprocess.run(["unshare", "-m", "bash", "-c", script, "-", program, *args], cwd=cwd, timeout=60,
                          capture_output=True, text=True, env=os.environ | {"PATHS": " ".join(paths)})


@pytest.mark.parametrize("library, package, args", [
    ("libcrypto.so.3", "libssl3", ["relay", "--init", "--dir", "relay"]),
    ("libmicrohttpd.so.12", "libmicrohttpd12", ["view", "--no-browser", TRACE]),
    ("libbpf.so.1", "libbpf1", ["count", "--duration", "1", "sched_switch"]),
    ("libdw.so.1", "libdw1", ["debug-info", "make", "/bin/true", "-o", "true.kdi"]),
    ("libelf.so.1", "libelf1", ["debug-info", "make", "/bin/true", "-o", "true.kdi"]),
])
def test_a_missing_library_costs_only_its_command(kymo_bin, tmp_path, library, package, args):
    done = without(library, kymo_bin, "print", "--count", TRACE, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = without(library, kymo_bin, *args, cwd=tmp_path)
    assert done.returncode == 1
    assert library in done.stderr and f"install the package {package}" in done.stderr
