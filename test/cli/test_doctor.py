# SPDX-License-Identifier: MIT
"""kymo doctor: what it says is so, and nothing of it stays behind."""

import json
import os
import subprocess
import time

import pytest


def checks(kymo, **kwargs):
    report = json.loads(kymo("doctor", "--json", **kwargs).out)
    return report, {check["name"]: check for check in report["checks"]}


def test_recording_is_possible(kymo, needs_root_tracefs):
    report, found = checks(kymo)
    assert report["recording_possible"] is True
    for name in ("privileges", "tracefs", "instance", "trace clock", "events"):
        assert found[name]["status"] == "ok", found[name]
    for name in ("ring buffer", "syscalls", "kernel", "lockdown", "bpf", "btf", "perf", "probes",
                 "rseq", "tsc", "cpus", "memory", "disk", "container", "leftovers"):
        assert name in found
    assert found["cpus"]["text"].startswith(f"{os.cpu_count()} online")
    for check in report["checks"]:
        assert check["status"] in ("ok", "warn", "fail")
        assert check["text"]
        assert (check["status"] == "ok") <= (check["advice"] == ""), check


def test_instance_is_removed(kymo_bin, needs_root_tracefs):
    instances = os.path.join(needs_root_tracefs, "instances")
    doctor = subprocess.Popen([kymo_bin, "doctor"], stdout=subprocess.DEVNULL)
    assert doctor.wait(timeout=240) == 0
    assert not [name for name in os.listdir(instances) if name.startswith(f"kymo-{doctor.pid}-")]


def test_text(kymo, needs_root_tracefs):
    out = kymo("doctor").out
    assert "\033" not in out
    lines = out.splitlines()
    assert lines[-1] == "kymo record works here."
    assert all(line[:4].rstrip() in ("ok", "warn", "fail", "") for line in lines[:-2])
    assert all(len(line) < 80 for line in lines)


def test_without_root(kymo, kymo_bin, needs_root_tracefs, tmp_path):
    """As nobody: exit 1, and one line that says what to do."""
    copy = tmp_path / "kymo"
    copy.write_bytes(open(kymo_bin, "rb").read())
    copy.chmod(0o755)
    for path in (tmp_path, *tmp_path.parents):
        if str(path).startswith("/tmp/"):
            path.chmod(path.stat().st_mode | 0o055)
    done = subprocess.run([copy, "doctor", "--json"], user=65534, group=65534, extra_groups=[],
                          cwd="/", stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240,
                          check=False)
    assert done.returncode == 1, done
    report = json.loads(done.stdout)
    assert report["recording_possible"] is False
    failed = [check for check in report["checks"] if check["status"] == "fail"]
    assert [check["name"] for check in failed] == ["tracefs"]
    assert "sudo" in failed[0]["advice"]


def test_without_tracefs(kymo_bin, needs_root_tracefs):
    """As in a container: tracefs is hidden, and may not be mounted."""
    unshare = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("needs user namespaces")
    hide = f"mount -t tmpfs none {os.path.dirname(needs_root_tracefs)} && exec {kymo_bin} doctor"
    done = subprocess.run([*unshare, "sh", "-c", hide], stdout=subprocess.PIPE, timeout=240,
                          check=False)
    assert done.returncode == 1
    assert b"fail  tracefs" in done.stdout
    assert b"kymo record does not work here" in done.stdout


def test_leftovers(kymo, needs_root_tracefs):
    """An instance whose recorder is gone is seen."""
    gone = subprocess.Popen(["true"])
    gone.wait()
    namespace = os.stat("/proc/self/ns/pid").st_ino
    path = os.path.join(needs_root_tracefs, "instances", f"kymo-{gone.pid}-1-{namespace}")
    os.mkdir(path)
    try:
        _, found = checks(kymo)
        # Another test's recording may have cleaned up meanwhile.
        assert found["leftovers"]["status"] == "warn" or not os.path.exists(path)
    finally:
        for _ in range(50):
            try:
                os.rmdir(path)
                break
            except FileNotFoundError:
                break
            except OSError:
                time.sleep(0.02)
