# SPDX-License-Identifier: MIT
"""kymo report NAME -- COMMAND: reports on a command, and nothing is left of its recording."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

CALLS = "import os\nfor _ in range(150):\n    os.getppid()\n    os.getpgid(0)\n"


@pytest.fixture
def room(tmp_path):
    """The environment with a directory for temporary files of its own."""
    path = tmp_path / "room"
    path.mkdir()
    return path, {"TMPDIR": str(path)}


def test_reports_are_of_the_command_and_its_children(kymo, room):
    path, env = room
    script = 'for i in 1 2; do "$@"; done; echo said >&2'
    result = kymo("report", "syscalls,threads", "--json", "--", "sh", "-c", script, "sh", sys.executable, "-c", CALLS, env=env)
    assert "said" in result.err and "Recorded" not in result.err
    found = json.loads(result.out)
    tables = {(report["name"], table["name"]): table["rows"] for report in found["reports"] for table in report["tables"]}
    counts = {row["syscall"]: row["count"] for row in tables["syscalls", "syscalls"]}
    assert counts["getppid"] >= 300 and counts["getpgid"] == 300
    names = {row["process"]["name"] for row in tables["syscalls", "threads"]} if ("syscalls", "threads") in tables else set()
    assert names <= {"sh", os.path.basename(sys.executable), "python3", "kymo"}
    assert not os.listdir(path)


def test_output_of_the_command_comes_first(kymo, room):
    path, env = room
    out = kymo("report", "syscalls", "--limit", "0", "--", "echo", "from the command", env=env).out
    assert out.startswith("from the command\n") and "write" in out and "/echo/kernel" in out
    assert "Next:" not in out and not os.listdir(path)
    out = kymo("report", "cpu", "--comm", "nobody", "--csv", "--", "true", env=env).out
    assert out.startswith("report,") and not os.listdir(path)


def test_exit_codes_and_errors(kymo, room):
    path, env = room
    assert kymo("report", "cpu", "--", "sh", "-c", "exit 9", code=9, env=env).out
    assert "cannot run '/nowhere'" in kymo("report", "cpu", "--", "/nowhere", code=1, env=env).err
    for words, message in ((("cpu", "trace", "--", "true"), "a trace and a command exclude"), (("cpu", "--live", "--", "true"), "--live"),
                           (("cpu", "--archive", "x", "--", "true"), "--archive"), (("cpu", "--"), "a command is missing"),
                           (("nothing", "--", "true"), "is not a report")):
        result = kymo("report", *words, code=2, env=env)
        assert message in result.err and not result.out, result
    assert "temporary directory" in kymo("report", "cpu", "--", "true", code=1, env={"TMPDIR": str(path / "not-there")}).err
    assert not os.listdir(path)


def test_search_for_the_program_is_not_in_the_recording(kymo, room):
    _, env = room
    env = {**env, "PATH": "/nowhere/one:/nowhere/two:" + os.environ["PATH"]}
    found = json.loads(kymo("report", "syscalls", "-t", "log", "--limit", "0", "--json", "--", "true", env=env).out)
    calls = [row for row in found["reports"][0]["tables"][0]["rows"] if row["syscall"] == "execve"]
    assert [row["ret"] for row in calls] == [0]


@pytest.mark.parametrize("number", (signal.SIGTERM, signal.SIGHUP))
def test_signals_end_the_recording_and_leave_nothing(kymo_bin, room, number):
    path, env = room
    process = subprocess.Popen([kymo_bin, "report", "cpu", "--", "sh", "-c", f"echo > {path}/../runs; exec sleep 1000"],
                               env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not os.path.exists(f"{path}/../runs"):
        assert time.monotonic() < until and process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "CPU time" in out, (out, err)
    assert not os.listdir(path)


def test_without_root_it_says_what_is_missing(kymo_bin):
    with tempfile.TemporaryDirectory(dir="/var/tmp") as path:
        os.chmod(path, 0o777)
        other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if subprocess.run([*other, "test", "-x", kymo_bin], check=False).returncode:
            pytest.skip("others may not run this program")
        result = subprocess.run([*other, kymo_bin, "report", "cpu", "--", "true"], env={**os.environ, "TMPDIR": path},
                                capture_output=True, text=True, check=False, timeout=60)
        assert result.returncode == 1 and "root" in result.stderr and not os.listdir(path), result
