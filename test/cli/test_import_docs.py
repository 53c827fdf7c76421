# SPDX-License-Identifier: MIT
"""The examples of docs/import.md, word for word, on files with the names that they use."""

import os
import re
import shutil
import subprocess

import pytest

import foreign_files
from test_import import LOGS

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "import.md")
PROGRAM = "int f(int n) { return n ? f(n - 1) : 0; }\nint main(void) { return f(3); }\n"


def examples():
    """The second column of the table of files: shell commands."""
    with open(PAGE, encoding="utf-8") as file:
        rows = re.findall(r"^\| [^|]+ \| `(kymo [^`|]*|[a-z/][^`|]*; kymo [^`|]*)`[^|]*\|", file.read(), re.M)
    assert len(rows) >= 15, rows
    return rows


@pytest.fixture(scope="module")
def place(tmp_path_factory, kymo_bin):
    """A directory with all these files, and a kymo in PATH."""
    here = tmp_path_factory.mktemp("examples")
    foreign_files.perf_example(here / "perf.data")
    subprocess.run(["gzip", "-k", here / "perf.data"], check=True)
    foreign_files.dat_example(here / "trace.dat")
    foreign_files.pcapng_example(here / "capture.pcap")
    (here / "app.log").write_text('{"time":"2026-11-26T18:24:53Z","msg":"hello"}\n')
    (here / "access.log").write_text('10.0.0.1 - - [10/Oct/2000:13:55:36 +0000] "GET /x HTTP/1.0" 200 12\n')
    (here / "trace.json").write_text(LOGS["chrome"][0])
    shutil.copy(os.path.join(os.path.dirname(PAGE), "..", "test", "fuzz", "corpus", "import", "perfetto"), here / "trace.pftrace")
    shutil.copy(os.path.join(os.path.dirname(PAGE), "..", "test", "fuzz", "corpus", "import", "log-systrace"), here / "trace.html")
    shutil.copy(os.path.join(os.path.dirname(PAGE), "..", "test", "fuzz", "corpus", "import", "log-audit"), here / "audit.log")
    subprocess.run([kymo_bin, "convert", here / "perf.data", "-o", here / "ctf"], check=True)
    subprocess.run(["tar", "cJf", "trace.tar.xz", "ctf"], cwd=here, check=True)
    (here / "program.c").write_text(PROGRAM)
    if shutil.which("gcc"):
        subprocess.run(["gcc", "-pg", "-o", "program", "program.c"], cwd=here, check=True)
    os.symlink(kymo_bin, here / "kymo")
    return here


def cannot(command, here):
    """Why this machine cannot run the example; None: it can."""
    for program in ("strace", "uftrace", "journalctl"):
        if command.startswith(program) and not shutil.which(program):
            return f"{program} is not installed: tools/install-deps test"
    if "./program" in command and not (here / "program").exists():
        return "gcc is not installed"
    if "/path/of" in command:
        return "test_lttng_crash.py has such buffers"
    if "/var/log/syslog" in command and not os.path.exists("/var/log/syslog"):
        return "this machine has no /var/log/syslog"
    if "/sys/kernel/tracing" in command:
        return "what the kernel's first buffer has is not ours"
    if command.startswith("journalctl") and not subprocess.run(["journalctl", "-o", "export", "-n", "1"], capture_output=True, check=False).stdout:
        return "this machine has no journal"
    if command.startswith("dmesg") and subprocess.run(["dmesg"], capture_output=True, check=False).stdout.count(b"\n") < 2:
        return "the kernel's log cannot be read"
    return None


@pytest.mark.parametrize("command", examples())
def test_example(command, place, tmp_path):
    why = cannot(command, place)
    if why:
        pytest.skip(why)
    # Examples write files, too.
    place = shutil.copytree(place, tmp_path / "here", symlinks=True)
    env = dict(os.environ, PATH=f"{place}:{os.environ['PATH']}")
    if " view " in f" {command} ":
        with subprocess.Popen(command.split(), cwd=place, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True) as server:
            said = ""
            for line in server.stdout:
                said += line
                if "http://" in line:
                    break
            server.terminate()
            assert "http://" in said, said
        return
    done = subprocess.run(["sh", "-c", command], cwd=place, env=env, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0 and done.stdout.strip(), done
