# SPDX-License-Identifier: MIT
"""Virtual machines for the tests: one of Debian's kernels, and an image made on the spot.

The machine is emulated, not virtualized: that works everywhere, also within a virtual machine whose
own /dev/kvm cannot be used. Its disk is a file; what the machine writes there with tar is read here.
"""

import os
import platform
import re
import shutil
import subprocess
import tarfile

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("KYMO_BUILD") or os.path.join(ROOT, "build")
SOURCES = os.path.join(ROOT, "test", "machine")
DISK_BYTES = 256 << 20
DEADLINE_S = 420  # a machine takes some 30 s; this is for a very busy one


def archive(files):
    """A cpio archive of (name, mode, data), as the kernel unpacks it into its memory."""
    out = bytearray()
    for i, (name, mode, data) in enumerate([*files, ("TRAILER!!!", 0, b"")]):
        head = [i + 1, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08X" % number for number in head) + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + data
        out += bytes(-len(out) % 4)
    return bytes(out)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def libraries(program):
    """What ldd says that it loads; a static program has none."""
    done = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          check=False)
    return re.findall(r"(/\S+) \(0x", done.stdout.decode())


def image(programs, texts):
    """An archive of these programs in /bin, with their libraries, and of {path: text}."""
    files = {"bin/busybox": read(shutil.which("busybox"))}
    for program in programs:
        files["bin/" + os.path.basename(program)] = read(program)
        for library in libraries(program):
            files[library.lstrip("/")] = read(library)
    files.update((name, text.encode()) for name, text in texts.items())
    folders = {"proc", "sys", "dev", "tmp", "run", "root", "etc"}
    for name in files:
        while name := os.path.dirname(name):
            folders.add(name)
    return archive([(name, 0o40755, b"") for name in sorted(folders)] +
                   [(name, 0o100755, data) for name, data in sorted(files.items())])


def kernel(version):
    """The path of a kernel of this version, or the test is skipped."""
    for program in ("qemu-system-x86_64", "busybox"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed: tools/install-deps test")
    if platform.machine() != "x86_64":
        pytest.skip("kernels for virtual machines are fetched for x86-64 only")
    if re.search("-[at]san$", BUILD):
        pytest.skip("a sanitized program is too slow on an emulated machine")
    done = subprocess.run([os.path.join(ROOT, "tools", "get-kernel"), version,
                           os.path.join(BUILD, "kernels")], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        pytest.skip(f"no Linux {version}: {done.stderr.decode().strip()}")
    return done.stdout.decode().strip()


def compile_c(directory, name, *flags):
    """test/machine/NAME.c as a static program."""
    path = os.path.join(directory, name)
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-static", *flags, "-o", path,
                    os.path.join(SOURCES, name + ".c")], check=True, stdin=subprocess.DEVNULL)
    return path


class Machine:
    """What a machine said, and what it left on its disk.

    text: its console. steps: {name: (exit code, seconds since boot)}, from the script's "tell".
    """

    def __init__(self, directory, version, programs, script, texts=None, parameters="", reboots=False):
        path = kernel(version)
        init = read(os.path.join(SOURCES, "init.sh")).decode() + script + "\npoweroff -f\n"
        self.disk = os.path.join(directory, "disk")
        initrd = os.path.join(directory, "initrd")
        with open(initrd, "wb") as file:
            file.write(image(programs, {"init": init} | (texts or {})))
        with open(self.disk, "wb") as file:
            file.truncate(DISK_BYTES)
        cmd = ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-smp", "2", "-m", "768",
               "-nographic", "-nic", "none", "-kernel", path, "-initrd", initrd,
               "-append", f"console=ttyS0 quiet panic=-1 {parameters}",
               "-drive", f"file={self.disk},format=raw,if=none,id=disk,cache=unsafe",
               "-device", "nvme,drive=disk,serial=disk"]
        if not reboots:
            cmd.append("-no-reboot")  # a machine that panics ends
        try:
            done = subprocess.run(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=DEADLINE_S, check=False)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(f"still running after {DEADLINE_S} s:\n"
                                 f"{(late.stdout or b'').decode(errors='replace')}") from late
        self.text = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0, self.text
        self.steps = {name: (int(code), float(at)) for name, code, at in
                      re.findall(r"^== (\S+) (\d+) ([\d.]+)", self.text, re.MULTILINE)}

    def unpack(self, directory):
        with tarfile.open(self.disk, "r:") as tar:
            tar.extractall(directory)
