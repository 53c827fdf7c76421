# SPDX-License-Identifier: MIT
"""Virtual machines for the tests: one of Debian's kernels, and an image made on the spot.

The machine is emulated, not virtualized: that works everywhere, also within a virtual machine whose
own /dev/kvm cannot be used. Its disk is a file; what the machine writes there with tar is read here.
"""

import os
import platform
import re
import shutil
import signal
import subprocess
import tarfile
import threading
import time

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("KYMO_BUILD") or os.path.join(ROOT, "build")
SOURCES = os.path.join(ROOT, "test", "machine")
DISK_BYTES = 256 << 20
DEADLINE_S = 600  # a machine takes some 30 s; this is for a very busy one
SILENCE_S = 200  # init.sh says each minute that the machine lives, whatever runs there


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
    """What ldd says that it loads, and what kymo loads when it needs it; a static program has none."""
    def loaded(path):
        done = subprocess.run(["ldd", path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return re.findall(r"(/\S+) \(0x", done.stdout.decode())

    found = loaded(program)
    if os.path.basename(program) == "kymo":
        done = subprocess.run(["/sbin/ldconfig", "-p"], stdout=subprocess.PIPE, check=False)
        for later in re.findall(r"(?:libbpf\.so\.1|libdw\.so\.1|libelf\.so\.1) \(libc6,x86-64\) => (/\S+)", done.stdout.decode()):
            found += [later, *loaded(later)]
    return found


def image(programs, texts):
    """An archive of these programs in /bin, with their libraries, and of {path: text or bytes}."""
    files = {"bin/busybox": read(shutil.which("busybox"))}
    for program in programs:
        files["bin/" + os.path.basename(program)] = read(program)
        for library in libraries(program):
            files[library.lstrip("/")] = read(library)
    files.update((name, text.encode() if isinstance(text, str) else text)
                 for name, text in texts.items())
    folders = {"proc", "sys", "dev", "tmp", "run", "root", "etc"}
    for name in files:
        while name := os.path.dirname(name):
            folders.add(name)
    return archive([(name, 0o40755, b"") for name in sorted(folders)] +
                   [(name, 0o100755, data) for name, data in sorted(files.items())])


def get_kernel(*version):
    """The path of a kernel, or the test is skipped."""
    done = subprocess.run([os.path.join(ROOT, "tools", "get-kernel"), version[0],
                           os.path.join(BUILD, "kernels"), *version[1:]], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        pytest.skip(f"no Linux {' '.join(version)}: {done.stderr.decode().strip()}")
    return done.stdout.decode().strip()


def kernel(version):
    """The path of a kernel of this version, or the test is skipped."""
    for program in ("qemu-system-x86_64", "busybox"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed: tools/install-deps test")
    if platform.machine() != "x86_64":
        pytest.skip("kernels for virtual machines are fetched for x86-64 only")
    if re.search("-[at]san$", BUILD):
        pytest.skip("a sanitized program is too slow on an emulated machine")
    return get_kernel(version)


def modules(version, *names):
    """{path: data} of modules for persistent memory, in an image's /modules; or the test is skipped."""
    directory = os.path.join(os.path.dirname(kernel(version)), "modules")
    paths = {name: os.path.join(directory, name + ".ko") for name in names}
    if not all(os.path.exists(path) for path in paths.values()):
        pytest.skip(f"Linux {version} has no modules {' '.join(names)} that can be loaded as they are")
    return {f"modules/{name}.ko": read(path) for name, path in paths.items()}


def file_of(path, size):
    """@path, so many zero bytes without room on the disk."""
    with open(path, "wb") as file:
        file.truncate(size)
    return path


def compile_c(directory, name, *flags):
    """test/machine/NAME.c as a static program."""
    path = os.path.join(directory, name)
    subprocess.run(["gcc", "-O2", "-D_GNU_SOURCE", "-static", *flags, "-o", path,
                    os.path.join(SOURCES, name + ".c")], check=True, stdin=subprocess.DEVNULL)
    return path


def disk_device(name, path):
    """A disk whose serial number is @name; what the machine wrote there outlives it in any case."""
    return ["-drive", f"file={path},format=raw,if=none,id={name},cache=unsafe",
            "-device", f"nvme,drive={name},serial={name}"]


class EmulatorFailed(AssertionError):
    """The machine stands still (not even a timer goes off there), or its devices forget what it wrote."""


def run_machine(cmd, power_fails_at=None, silence_s=DEADLINE_S):
    """Run qemu until it ends, or is killed at a step: what the machine said.

    Raises EmulatorFailed when it says nothing for so many seconds.
    """
    out = bytearray()
    verdict = []
    heard = [time.monotonic()]
    over = threading.Event()

    def watch(qemu):
        begin = time.monotonic()
        while not over.wait(1):
            now = time.monotonic()
            if now - heard[0] > silence_s:
                verdict.append(EmulatorFailed(f"said nothing for {silence_s} s"))
            elif now - begin > DEADLINE_S:
                verdict.append(AssertionError(f"still running after {DEADLINE_S} s"))
            if verdict:
                qemu.kill()
                return

    with subprocess.Popen(cmd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT) as qemu:
        watcher = threading.Thread(target=watch, args=[qemu])
        watcher.start()
        try:
            for line in qemu.stdout:
                out += line
                if not re.match(rb"\[ *\d+\.\d+\] ", line):  # a kernel tells of its own lockup
                    heard[0] = time.monotonic()
                if power_fails_at and line.startswith(f"== {power_fails_at} ".encode()):
                    qemu.kill()
        except BaseException:  # Ctrl-C, or the test's deadline: nobody waits for the machine
            qemu.kill()
            raise
        finally:
            over.set()
            watcher.join()
    text = out.decode("utf-8", "replace")
    for failure in verdict:
        raise type(failure)(f"{failure}:\n{text}")
    assert qemu.returncode == (-signal.SIGKILL if power_fails_at else 0), text
    return text


def once_more(make):
    """What @make() returns; made anew, once, when the emulator failed: that is no doing of what runs there."""
    try:
        return make()
    except EmulatorFailed as failure:
        print(failure)
        return make()


def thirty_two(directory):
    """A program of 32 bits."""
    return compile_c(directory, "thirty-two", "-m32", "-nostdlib", "-ffreestanding", "-no-pie", "-fno-pic",
                     "-fno-stack-protector")


class Machine:
    """What a machine said, and what it left on its disk.

    text: its console. steps: {name: (exit code, seconds since boot)}, from the script's "tell".
    """

    def __init__(self, directory, version, programs, script, texts=None, parameters="", reboots=False,
                 devices=(), power_fails_at=None):
        """devices: further arguments of qemu. power_fails_at: the machine is killed when it has told this step."""
        path = kernel(version)
        init = read(os.path.join(SOURCES, "init.sh")).decode() + script + "\npoweroff -f\n"
        self.disk = file_of(os.path.join(directory, "disk"), DISK_BYTES)
        initrd = os.path.join(directory, "initrd")
        with open(initrd, "wb") as file:
            file.write(image(programs, {"init": init} | (texts or {})))
        # One thread for both CPUs: of several, qemu 7.2 now and then goes on to execute the breakpoint by
        # which a kernel patches itself (as where a tracepoint is enabled) when it is no longer there.
        cmd = ["qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", "768",
               "-nographic", "-nic", "none", "-kernel", path, "-initrd", initrd,
               "-append", f"console=ttyS0 quiet panic=-1 no_timer_check {parameters}",
               *disk_device("disk", self.disk), *devices]
        if not reboots:
            cmd.append("-no-reboot")  # a machine that panics ends
        self.text = run_machine(cmd, power_fails_at, SILENCE_S)
        self.steps = {name: (int(code), float(at)) for name, code, at in
                      re.findall(r"^== (\S+) (\d+) ([\d.]+)", self.text, re.MULTILINE)}

    def unpack(self, directory):
        with tarfile.open(self.disk, "r:") as tar:
            tar.extractall(directory)
