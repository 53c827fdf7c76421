# SPDX-License-Identifier: MIT
"""kymo query without a statement: on a terminal a shell with history and completion, else statements of the standard input."""

import os
import pathlib
import pty
import select
import signal
import subprocess
import termios
import time

import pytest


@pytest.fixture(scope="module")
def trace(shared):
    return str(pathlib.Path(shared) / "traces" / "lttng-kernel" / "kernel")


class Shell:
    def __init__(self, args, **env):
        try:
            self.pid, self.fd = pty.fork()
        except OSError as error:
            pytest.skip(f"needs a pseudo terminal: {error}")
        if not self.pid:
            os.execve(args[0], [str(arg) for arg in args], dict(os.environ, TERM="xterm", NO_COLOR="1", **env))

    def until(self, text, seconds=60):
        """What comes up to @text, which has to come."""
        out, end = b"", time.monotonic() + seconds
        while text.encode() not in out:
            assert time.monotonic() < end, out
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    out += os.read(self.fd, 65536)
                except OSError:
                    break
        return out.decode()

    def press(self, text, seconds=60):
        """Keys, once the shell reads single keys: it prints its prompt before."""
        end = time.monotonic() + seconds
        while termios.tcgetattr(self.fd)[3] & termios.ICANON:
            assert time.monotonic() < end, "the shell does not read keys"
            time.sleep(0.01)
        os.write(self.fd, text.encode())

    def type(self, text, until="kymo> "):
        self.press(text)
        return self.until(until)

    def end(self, keys, seconds=60):
        """The exit code, after keys that end the shell."""
        self.press(keys)
        end = time.monotonic() + seconds
        while True:
            assert time.monotonic() < end, "the shell does not end"
            if select.select([self.fd], [], [], 0.05)[0]:
                try:
                    os.read(self.fd, 65536)
                except OSError:
                    pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)

    def kill(self):
        try:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


@pytest.fixture
def shell(kymo_bin, trace, tmp_path):
    made = []

    def start():
        made.append(Shell([kymo_bin, "query", trace], XDG_STATE_HOME=str(tmp_path)))
        made[-1].until("kymo> ")
        return made[-1]
    yield start
    for one in made:
        one.kill()


def test_statements_and_commands(shell, tmp_path):
    one = shell()
    assert ".schema [TABLE]" in one.type(".help\n")
    assert "block_request" in one.type(".tables\n")
    schema = one.type(".schema loss\n")
    assert "packets" in schema and "waker_tid" not in schema
    one.type("SELECT count(*) AS n\n", "...> ")
    assert "n\r\n0" in one.type("FROM loss;\n").replace(" ", "")
    assert "no such table: no_table" in one.type("SELECT 1 FROM no_table;\n")
    one.type(".mode csv\n")
    one.type(".param x=4711\n")
    assert "4711" in one.type("SELECT :x AS x;\n")
    one.type(".mode table\n")
    (tmp_path / "a.sql").write_text("SELECT 42 AS answer;", encoding="ascii")
    assert "answer" in one.type(f".read {tmp_path}/a.sql\n")
    assert "there is no such table" in one.type(".schema x\n")
    # Ctrl-C ends the statement, not the shell.
    one.press("SELECT count(*) FROM event a, event b, event c;\n")
    one.until("event c;")
    deadline = time.monotonic() + 60
    while True:
        os.write(one.fd, b"\x03")
        try:
            assert "stopped" in one.until("stopped", 2)
            break
        except AssertionError:
            assert time.monotonic() < deadline
    one.type("SELECT 'it goes' || ' on' AS x;\n", "it goes on")
    assert one.end(".quit\n") == 0


def test_completion_and_history(shell, tmp_path):
    one = shell()
    one.press("SELECT count(*) AS n FROM thread_sta\t")
    one.until("te")
    one.press("WHERE waker_c\t")
    one.until("omm")
    one.press("IS NOT NULL;\n")
    assert "367" in one.until("kymo> ")
    assert one.end("\x04") == 0
    path = tmp_path / "kymo" / "query-history"
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    # The arrow up brings it back in the next shell.
    two = shell()
    two.press("\x1b[A")
    two.until("IS NOT NULL;")
    assert "367" in two.type("\n")
    assert two.end("\x04") == 0


def test_the_standard_input(kymo_bin, trace):
    run = lambda text: subprocess.run([kymo_bin, "query", "--csv", trace], input=text, capture_output=True, text=True, timeout=60, check=False)  # noqa: E731
    done = run("SELECT 1 AS a; SELECT\n count(*) AS b FROM host;")
    assert done.returncode == 0 and done.stdout.split() == ["a", "1", "b", "1"]
    done = run("SELECT 1 AS a; SELECT x; SELECT 2;")
    assert done.returncode == 2 and "no such column" in done.stderr and done.stdout.split() == ["a", "1"]
