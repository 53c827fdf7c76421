# SPDX-License-Identifier: MIT
"""A host and its guest, both recorded: a virtual machine of KVM within an emulated machine.

KVM needs a processor that can virtualize. The test machine's cannot, so the host is emulated, too: QEMU emulates a
processor with AMD's extension, on which Debian's kernel has KVM, and runs QEMU again. That takes two minutes, so the
tests have what it left: test/data/guests. This makes it anew:

    python3 test/cli/guest_machine.py test/data/guests
"""

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

import machine

KERNEL = "6.1"
QEMU = "qemu-system-x86_64"
ROMS = ("bios-256k.bin", "kvmvapic.bin", "linuxboot_dma.bin", "linuxboot.bin")
MODULES = ("irqbypass", "kvm", "kvm-amd")

# It computes and sleeps by turns, so that its CPUs are busy and idle while the host records.
GUEST_WORK = """#!/bin/busybox sh
echo RECORDING
n=0
while [ $n -lt 60 ]; do
	n=$((n + 1)); i=0
	while [ $i -lt 3000 ]; do i=$((i + 1)); done
	sleep 0.05
done
"""

GUEST = """
hostname guest
kymo record -o guest -k 'sched_switch,sched_process_*,local_timer_*' -- work 2>&1
tar cf /dev/nvme0n1 guest
sync
poweroff -f
"""

# First the guest has the host's CPUs for itself, then it has to share them.
COMPETE = """#!/bin/busybox sh
sleep 1
hog & a=$!
hog & b=$!
sleep 2
kill $a $b
sleep 0.5
"""

HOST = f"""
hostname host
mount -t debugfs debug /sys/kernel/debug
for module in {" ".join(MODULES)}; do insmod /modules/$module.ko; done
tell modules
truncate -s 64M inner
: > serial
{QEMU} -L /roms -accel kvm -cpu host -smp 2 -m 256 -nographic -nic none -vga none -no-reboot -kernel /vmlinuz \\
	-initrd /guest -append 'console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable' \\
	-drive file=inner,format=raw,if=none,id=disk,cache=unsafe -device nvme,drive=disk,serial=disk > serial &
while ! grep -q RECORDING serial; do sleep 0.2; done
kymo record -o host -k 'sched_switch,sched_process_*,sched_waking,kvm_entry,kvm_exit,kvm_write_tsc_offset' -- compete
tell recorded
wait
tar cf /dev/nvme0n1 host inner
sync
tell over
poweroff -f
"""


def kvm_modules():
    """{path: data} of KVM's modules for the host."""
    folder = os.path.join(os.path.dirname(machine.kernel(KERNEL)), "modules")
    return {f"modules/{name}.ko": machine.read(os.path.join(folder, name + ".ko")) for name in MODULES}


def roms():
    found = {}
    for name in ROMS:
        path = next(os.path.join(folder, name) for folder in ("/usr/share/seabios", "/usr/share/qemu")
                    if os.path.exists(os.path.join(folder, name)))
        found["roms/" + name] = machine.read(path)
    return found


def boot(kymo, folder):
    """Both machines run; their traces are folder/host and folder/guest."""
    init = machine.read(os.path.join(machine.SOURCES, "init.sh")).decode()
    guest = machine.image([kymo], {"init": init + GUEST, "bin/work": GUEST_WORK})
    files = {"init": init + HOST, "bin/compete": COMPETE, "bin/hog": "#!/bin/busybox sh\nwhile :; do :; done\n",
             "vmlinuz": machine.read(machine.kernel(KERNEL)), "guest": gzip.compress(guest, 1)}
    files |= kvm_modules() | roms()
    initrd, disk = os.path.join(folder, "initrd"), machine.file_of(os.path.join(folder, "disk"), machine.DISK_BYTES)
    with open(initrd, "wb") as file:
        file.write(machine.image([kymo, shutil.which(QEMU)], files))
    text = machine.run_machine(
        [QEMU, "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "1500", "-nographic", "-nic", "none",
         "-kernel", machine.kernel(KERNEL), "-initrd", initrd, "-no-reboot",
         "-append", "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable", *machine.disk_device("disk", disk)])
    assert "== over 0" in text, text
    for archive in (disk, os.path.join(folder, "inner")):
        with tarfile.open(archive, "r:") as tar:
            tar.extractall(folder)
    return folder


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09d}"


def make(kymo, folder, out):
    """The guest's trace only as long as the host's, and a bit before and after."""
    boot(kymo, folder)
    host, guest = (os.path.join(folder, name) for name in ("host", "guest"))
    shown = subprocess.run([kymo, "query", "--csv", host, "SELECT min(time), max(time) FROM event"],
                           check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    begin, end = (int(number) for number in shown.split(","))
    for name, trace, cut in (("host", host, []), ("guest", guest, ["--begin", seconds(begin - 10**9), "--end", seconds(end + 10**9)])):
        shutil.rmtree(os.path.join(out, name), ignore_errors=True)
        subprocess.run([kymo, "convert", *cut, "-o", os.path.join(out, name), trace], check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        make(os.path.join(machine.BUILD, "src", "cli", "kymo"), scratch, sys.argv[1])
