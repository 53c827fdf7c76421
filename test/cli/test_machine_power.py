# SPDX-License-Identifier: MIT
"""kymo record --shm-path, and a machine that goes down: in the middle of it, with ring files in persistent
memory (DAX); in an orderly way, with ring files on a disk. Then it is started again.

A power failure is a virtual machine that is killed. What it had in its memory is lost; what it had
stored to persistent memory is there, as on hardware that writes its caches back.
"""

import os
import re
import shutil
import struct
import subprocess

import pytest

from machine import BUILD, EmulatorFailed, Machine, disk_device, file_of, libraries, modules, once_more, read

KERNEL = "6.1"
PMEM_BYTES = 128 << 20
# What the kernel says of the memory stands before the file system: the first time, it is made.
PMEM_OFFSET = 2 << 20
PMEM_INFO = 4 << 10  # where the kernel notes that
MODULES = ("libnvdimm", "nd_btt", "nfit", "nd_pmem")

# Nothing is written down by the file systems' own timers.
BOTH = f"""
until_true() {{
	tries=0
	until "$@" 2>/dev/null; do
		tries=$((tries + 1))
		[ $tries -lt 2000 ] || {{ echo "never true: $*"; poweroff -f; }}
		sleep 0.05
	done
}}
for module in libnvdimm nd_btt nfit; do insmod /modules/$module.ko; done
if [ -n "$NEW" ]; then
	cd /sys/bus/nd/devices/pfn0.0
	echo c0ffee00-cafe-4ace-8bed-c0de5eafb00c >uuid
	echo ram >mode
	echo {PMEM_OFFSET} >align
	echo namespace0.0 >namespace
	cd /tmp
fi
insmod /modules/nd_pmem.ko
until_true [ -e /dev/pmem0 ]
mkdir /pmem /plain /dev/shm
mount -t tmpfs run /run
mount -t ext4 -o dax,commit=3600 /dev/pmem0 /pmem
tell pmem
serial=$(grep -l ^plain /sys/block/nvme*/device/serial)
serial=${{serial#/sys/block/}}
mount -t ext4 -o commit=3600 /dev/${{serial%%/*}} /plain
tell plain
"""

BEFORE = "NEW=yes" + BOTH + """
grep /pmem /proc/mounts
told() { [ "$(od -An -tu8 $1)" -ge $2 ]; }
session_is_there() { ls /run/kymo/u0/*/session; }
dd if=/dev/zero of=/pmem/count bs=8 count=1
sync

kymo record --overwrite --user 'rough:*' --buffer-size 256k --shm-path /plain/rings -o plain &
recorder=$!
until_true session_is_there
taskset 1 rough told /plain/count 100000 &
program=$!
until_true told /plain/count 50000
kill -9 $recorder $program
wait $recorder $program
rm -r /run/kymo
umount /plain
tell unmounted

kymo record --overwrite --user 'rough:*' --buffer-size 256k --shm-path /pmem/rings -o pmem &
until_true session_is_there
taskset 1 rough told /pmem/count 1000000000 &
program=$!
until_true told /pmem/count 50000
grep -A 30 rings/ /proc/$program/smaps | grep VmFlags
# The machine's clock begins with whole seconds: it is to be seen that the next start is later.
sleep 2
tell flowing
sleep 600
"""

AFTER = BOTH + """
for name in plain pmem; do
	kymo recover -o found-$name /$name/rings
	tell recover-$name
	cp /$name/count count-$name
done
kymo record --user 'rough:*' --shm-path /pmem/other -o other -- true
tell other
tar cf $(ls /dev/nvme*n1 | grep -v ${serial%%/*}) found-* count-*
sync
tell over
"""


@pytest.fixture(scope="module")
def boots(kymo_bin, tmp_path_factory):
    return once_more(lambda: both_machines(kymo_bin, tmp_path_factory.mktemp("power")))


def both_machines(kymo_bin, directory):
    """The machine whose power fails, and the one that finds what is left."""
    mkfs = shutil.which("mkfs.ext4", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not mkfs:
        pytest.skip("mkfs.ext4 is not installed: tools/install-deps test")
    # What the platform says that it does: the first machine writes back caches, the other one does not.
    platforms = [["-machine", f"nvdimm=on,nvdimm-persistence={kind}"] for kind in ("cpu", "mem-ctrl")]
    devices = ["-m", "768,slots=1,maxmem=1G"]
    for name, size, offset in (("pmem", PMEM_BYTES, PMEM_OFFSET), ("plain", 64 << 20, 0)):
        subprocess.run([mkfs, "-q", "-b", "4096", "-E", f"offset={offset}",
                        file_of(directory / name, size), f"{(size - offset) >> 10}k"], check=True,
                       stdin=subprocess.DEVNULL)
    devices += ["-object", f"memory-backend-file,id=pmem,share=on,mem-path={directory}/pmem,"
                f"size={PMEM_BYTES}", "-device", "nvdimm,memdev=pmem"]
    devices += disk_device("plain", directory / "plain")
    programs = [kymo_bin, f"{BUILD}/test/tracer/rough"]
    library, = (path for path in libraries(programs[1]) if "libkymo-trace" in path)
    loaded = modules(KERNEL, *MODULES) | {"lib/" + os.path.basename(library): read(library)}
    first = Machine(directory, KERNEL, programs, BEFORE, loaded,
                    devices=platforms[0] + devices, power_fails_at="flowing")
    print(first.text)
    with open(directory / "pmem", "rb") as file:
        file.seek(PMEM_INFO)
        if not file.read(16).startswith(b"NVDIMM_PFN_INFO"):  # was seen on a busy host
            raise EmulatorFailed("nothing of what the machine wrote to its persistent memory is there")
    second = Machine(directory, KERNEL, programs, AFTER, loaded, devices=platforms[1] + devices)
    print(second.text)
    assert "over" in second.steps, second.text
    second.unpack(directory)
    second.directory = directory
    return first, second


def told(boots, kymo, name):
    """What the program had told when it ended, and the numbers that were found."""
    directory = boots[1].directory
    with open(directory / f"count-{name}", "rb") as file:
        count, = struct.unpack("=Q", file.read())
    shown = kymo("print", directory / f"found-{name}").out
    return count, [int(n) for n in re.findall(r"rough:told: .*\bi = (\d+)", shown)]


@pytest.mark.parametrize("name", ["plain", "pmem"])
def test_all_is_there_up_to_the_last(boots, kymo, peer, name):
    assert boots[1].steps[f"recover-{name}"][0] == 0, boots[1].text
    count, found = told(boots, kymo, name)
    # The program is killed between an event and its telling, or not.
    assert count >= 50000 and found[-1] in (count - 1, count)
    assert found == list(range(found[0], found[-1] + 1)) and len(found) > 1000
    trace, = (boots[1].directory / f"found-{name}").rglob("metadata")
    assert peer("babeltrace2", trace.parent).out.count("rough:told") == len(found)


def test_it_was_persistent_memory(boots):
    assert boots[0].steps["pmem"][0] == 0, boots[0].text
    assert re.search(r"^/dev/pmem0 /pmem ext4 \S*\bdax=always\b", boots[0].text, re.MULTILINE)
    # sf: synchronous faults, which is what MAP_SYNC asks for.
    assert re.search(r"^VmFlags: .*\bsf\b", boots[0].text, re.MULTILINE)
    said = [re.findall(r"(\S+): persistent memory \(DAX\); ring files survive a power failure(.*?)\r?$",
                       boot.text, re.MULTILINE) for boot in boots]
    assert said == [[("/pmem/rings", "")],
                    [("/pmem/other", ", except data in the caches of CPUs")]]


def test_recover_says_that_the_machine_went_down(boots):
    assert len(re.findall(r"(?:plain|pmem)/rings/\S+: \d+ events .*; \d+ older ones were overwritten; "
                          r"the machine has rebooted since", boots[1].text)) == 2
