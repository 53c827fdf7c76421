# SPDX-License-Identifier: MIT
"""kymo daemon: profiles of a directory become recordings, which come back when they end."""

import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

from conftest import ROOT

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")


@pytest.fixture
def daemon(kymo_bin, kymo, tmp_path):
    """The running daemon; .profile(name, text), .names(), .wait(names)."""
    class Daemon:
        dir, out = tmp_path / "profiles", tmp_path / "out"

        def begin(self):
            self.log = open(tmp_path / "log", "w+")
            self.process = subprocess.Popen([kymo_bin, "daemon", "--profiles", self.dir, "--output", self.out, "--socket",
                                             tmp_path / "socket"],
                                            stderr=self.log)

        def profile(self, name, text, mode=0o600):
            path = self.dir / f"{name}.profile"
            path.write_text(text)
            path.chmod(mode)

        def sessions(self):
            found = json.loads(kymo("sessions", "--json").out)["recordings"]
            return {one["name"]: one for one in found if (one.get("output") or "").startswith(str(tmp_path))}

        def wait(self, names):
            end = time.monotonic() + 60
            while set(self.sessions()) != set(names):
                assert time.monotonic() < end and self.process.poll() is None, (self.sessions().keys(), self.said())
                time.sleep(0.1)

        def said(self):
            return open(tmp_path / "log").read()

        def reload(self):
            self.process.send_signal(signal.SIGHUP)

    one = Daemon()
    one.dir.mkdir()
    yield one
    one.process.kill() if one.process.poll() is None else None
    end = time.monotonic() + 30
    while one.sessions() and time.monotonic() < end:
        time.sleep(0.1)


KERNEL = "kernel=sched_switch\nstatedump=none\nbuffer-size=64k\n"


def test_life(kymo, daemon):
    """Recordings begin, come back when they are killed, change and go with their profiles."""
    daemon.profile("always", KERNEL)
    daemon.profile("other", KERNEL + f"output={daemon.out}-other\n")
    (daemon.dir / "notes.txt").write_text("no profile")
    daemon.begin()
    daemon.wait({"always", "other"})
    first = daemon.sessions()
    assert re.fullmatch(rf"{re.escape(str(daemon.out))}/always/\d{{8}}T\d{{6}}Z", first["always"]["output"])
    assert first["other"]["output"] == f"{daemon.out}-other"
    assert os.stat(daemon.out).st_mode & 0o777 == 0o700
    for name in first:
        os.kill(first[name]["pid"], signal.SIGKILL)
    end = time.monotonic() + 60
    while any(daemon.sessions().get(name, first[name])["pid"] == first[name]["pid"] for name in first):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert daemon.sessions()["other"]["output"] == f"{daemon.out}-other-2"
    assert "always: the recording has ended; it begins again" in daemon.said()
    # Another profile, a changed one, and one that is gone.
    daemon.profile("third", KERNEL)
    daemon.profile("always", KERNEL.replace("sched_switch", "sched_waking"))
    (daemon.dir / "other.profile").unlink()
    daemon.reload()
    daemon.wait({"always", "third"})
    end = time.monotonic() + 60
    while daemon.sessions().get("always", {}).get("kernel") != ["sched_waking"]:
        assert time.monotonic() < end
        time.sleep(0.1)
    daemon.process.terminate()
    assert daemon.process.wait(timeout=60) == 0
    assert not daemon.sessions()
    # The traces are complete.
    for trace in [f"{daemon.out}-other-2", *glob.glob(f"{daemon.out}/third/*")]:
        assert kymo("info", trace).err == ""


def test_profiles_that_do_not_run(daemon, tmp_path):
    """Each with its reason; the others run."""
    daemon.profile("good", KERNEL)
    daemon.profile("open", KERNEL, 0o666)
    daemon.profile("named", KERNEL + "name=x\n")
    daemon.profile("back", KERNEL + "--background\n")
    daemon.profile("wrong", KERNEL + "bogus=1\n")
    daemon.profile("alien", KERNEL)
    os.chown(daemon.dir / "alien.profile", 65534, -1)
    os.mkfifo(daemon.dir / "fifo.profile")
    daemon.begin()
    daemon.wait({"good"})
    end = time.monotonic() + 30
    while "wrong: the profile has a mistake" not in daemon.said():
        assert time.monotonic() < end, daemon.said()
        time.sleep(0.1)
    said = daemon.said()
    assert "open: the profile can be written by other users" in said and "alien: the profile belongs to another user" in said
    assert "named: the name of the file" in said and "back: a profile of the daemon cannot have 'background'" in said
    assert "fifo: the profile is not a regular file" in said and "unknown option --bogus" in said
    assert set(daemon.sessions()) == {"good"}


def test_killed_daemon(daemon):
    """Its recordings end, too, with complete traces."""
    daemon.profile("one", KERNEL)
    daemon.begin()
    daemon.wait({"one"})
    daemon.process.kill()
    daemon.process.wait()
    end = time.monotonic() + 60
    while daemon.sessions():
        assert time.monotonic() < end
        time.sleep(0.1)


def test_no_directory(kymo, tmp_path):
    done = kymo("daemon", "--profiles", tmp_path / "nothing", code=1)
    assert "cannot read the directory of profiles" in done.err and "--profiles DIR" in done.err


def test_unit(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze here")
    text = open(os.path.join(ROOT, "systemd", "kymo.service.in")).read().replace("@bindir@/kymo", "/bin/true")
    (tmp_path / "kymo.service").write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "kymo.service"], capture_output=True, text=True,
                          check=False)
    assert "kymo.service" not in done.stderr, done.stderr
