# SPDX-License-Identifier: MIT
"""The installed unit kymo.service, in a machine of its own that systemd runs: recordings of the kernel and of programs within the
sandbox of the unit, from the start to the stop.

One boot does it all; the tests look at what it left.
"""

import collections
import glob
import os
import re
import shutil
import subprocess

import pytest

from machine import BUILD, Machine, compile_c, libraries, once_more, read

# The machine has a deadline of its own.
pytestmark = pytest.mark.deadline(900)

KERNEL = "6.1"
CALLS = 300
NUMBERS = 500
SYSTEMD = ("/lib/systemd/systemd", "/lib/systemd/systemd-journald", "/bin/systemctl", "/bin/journalctl")
# Of Debian's units those that a service needs.
UNITS = ("basic.target", "sysinit.target", "sockets.target", "paths.target", "timers.target", "slices.target", "local-fs.target",
         "local-fs-pre.target", "swap.target", "shutdown.target", "umount.target", "final.target", "systemd-journald.service",
         "systemd-journald.socket", "systemd-journald-dev-log.socket", "sys-kernel-tracing.mount")
WANTED = "systemd-journald.socket systemd-journald-dev-log.socket systemd-journald.service sys-kernel-tracing.mount"
WALK = f"""[Unit]
Requires=basic.target
Wants={WANTED}
After=basic.target {WANTED}
FailureAction=poweroff-force
[Service]
Type=oneshot
ExecStart=/bin/walk
StandardOutput=tty
StandardError=tty
TTYPath=/dev/console
TimeoutStartSec=infinity
"""
PROFILES = {
    "kernel": "kernel=syscall_entry_getppid\ncontext=procname\nstatedump=none\nbuffer-size=64k\non-rotate=touch $KYMO_CHUNK.told\n",
    "programs": "user=modes:*\nbuffer-size=64k\n",
    "later": "kernel=sched_process_exit\nkprobe=do_sys_openat2\ncontext=callstack-kernel\nsample=20\nsymbols\nstatedump=none\nbuffer-size=64k\noutput=/srv/later\n",
}
POLICY = "group=65534\nkernel=sched_switch\nstatedump=none\nbuffer-size=64k\n"
# As docs/sessions.md says.
DROP_IN = "[Service]\nReadWritePaths=/srv\n"

BOOT = "umount /sys/kernel/tracing\nexec /lib/systemd/systemd --unit=walk.service --show-status=no\n"
SCRIPT = f"""#!/bin/busybox sh
export SYSTEMD_PAGER= SYSTEMD_COLORS=0 TERM=dumb PATH=/usr/local/bin:/bin
tell() {{ echo "== $1 $? $(cut -d ' ' -f 1 /proc/uptime)"; }}
until_true() {{
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 150 ] || {{ echo "never true: $*"; journalctl -b --no-pager; poweroff -f; }}
		sleep 0.1
	done
}}
nobody() {{ /usr/local/bin/setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }}
sessions() {{ kymo sessions --json | awk -F '[":, ]+' '$2 == "pid" {{ p = $3 }} $2 == "name" {{ print $3, p }}'; }}
all() {{ [ "$(sessions | sort | cut -d ' ' -f 1 | tr '\\n' ' ')" = "$1 " ]; }}
# None of the recordings is one of these.
others() {{ all "$1" && ! sessions | grep -qE " ($2)\\$"; }}
pids() {{ sessions | cut -d ' ' -f 2 | tr '\\n' '|' | sed 's/|$//'; }}
ended() {{ [ $(kymo ctl programs --status | grep -c 'modes (ended)') = $1 ]; }}
cd /tmp
nobody sleep 1000 &
systemctl start kymo
tell start
until_true all "kernel programs"
tell recording
for p in $(pids | tr '|' ' '); do
	cat /proc/$p/comm
	grep -E 'NoNewPrivs|Seccomp:' /proc/$p/status
	echo "root: $(awk '$5 == "/" {{ print $6 }}' /proc/$p/mountinfo)"
done
modes numbers {NUMBERS} 10
nobody modes numbers {NUMBERS} 10
pinned 0 first {CALLS}
until_true ended 2
tell programs
kymo rotate kernel
tell rotate
old=$(pids)
kill -9 $(echo "$old" | tr '|' ' ')
until_true others "kernel programs" "$old"
tell killed
pinned 0 second {CALLS}
for i in 1 2 3 4; do modes numbers {NUMBERS} 10; done
until_true ended 4
tell ends
mkdir theirs
chown 65534 theirs
(cd theirs; HOME=/tmp/theirs nobody kymo record --policy their -o theirs -d 200ms)
tell policy
old=$(pids)
kill -9 $(systemctl show --property MainPID --value kymo)
until_true others "kernel programs" "$old"
tell daemon
cp /profiles/later.profile /etc/kymo
systemctl reload kymo
tell reload
until_true all "kernel later programs"
pinned 0 third {CALLS}
modes numbers {NUMBERS} 10
i=0
while [ $i -lt 20000 ]; do i=$((i + 1)); done
systemctl stop kymo
tell stop
systemctl show --property Result kymo
kymo sessions
journalctl -b -u kymo --no-pager
cd /
tar cf /dev/nvme0n1 var/lib/kymo srv tmp/theirs
sync
tell over
poweroff -f
"""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """{path: data} of what the service needs of an installed tree."""
    tree = tmp_path_factory.mktemp("destdir")
    subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet"], check=True, env=dict(os.environ, DESTDIR=str(tree)),
                   stdout=subprocess.DEVNULL)
    unit, = glob.glob(f"{tree}/**/kymo.service", recursive=True)
    program = re.search(r"^ExecStart=(\S+)", read(unit).decode(), re.MULTILINE)[1]
    files = {"lib/systemd/system/kymo.service": read(unit), program.lstrip("/"): read(f"{tree}{program}")}
    return files | {path.lstrip("/"): read(path) for path in libraries(f"{tree}{program}")}


def systemd():
    missing = [path for path in SYSTEMD if not os.path.exists(path)]
    if missing:
        pytest.skip(f"{missing[0]} is not there: tools/install-deps test")
    files = {path.lstrip("/"): read(path) for path in SYSTEMD}
    for path in SYSTEMD:
        files |= {library.lstrip("/"): read(library) for library in libraries(path)}
    for name in UNITS:
        files[f"lib/systemd/system/{name}"] = read(f"/lib/systemd/system/{name}")
    return files | {"etc/machine-id": "c0ffee00cafe4ace8bedc0de5eafb00c\n", "etc/passwd": "root:x:0:0::/root:/bin/sh\n",
                    "etc/group": "root:x:0:\n", "lib/systemd/system/walk.service": WALK, "bin/walk": SCRIPT}


@pytest.fixture(scope="module")
def machine(installed, tmp_path_factory):
    directory = tmp_path_factory.mktemp("systemd")
    modes = f"{BUILD}/test/tracer/modes"
    texts = installed | systemd() | {f"etc/kymo/{name}.profile": PROFILES[name] for name in ("kernel", "programs")}
    texts |= {"etc/kymo/their.policy": POLICY, "profiles/later.profile": PROFILES["later"], "srv/empty": "",
              "etc/systemd/system/kymo.service.d/output.conf": DROP_IN, "usr/local/bin/setpriv": read(shutil.which("setpriv"))}
    texts |= {"lib/" + os.path.basename(path): read(path) for path in libraries(modes) if "libkymo-trace" in path}
    programs = [compile_c(directory, "pinned"), modes]
    done = once_more(lambda: Machine(directory, KERNEL, programs, BOOT, texts))
    print(done.text)
    assert "over" in done.steps, done.text
    done.unpack(directory)
    done.directory = directory
    return done


def traces(machine, pattern):
    """The directories with metadata below these."""
    found = [os.path.dirname(path) for top in glob.glob(f"{machine.directory}/{pattern}")
             for path in glob.glob(f"{top}/**/metadata", recursive=True)]
    assert found, machine.text
    return found


def test_all_steps(machine):
    assert [name for name, (code, _) in machine.steps.items() if code] == [], machine.text
    assert re.search(r"^Result=success\r?$", machine.text, re.MULTILINE) and "No recording is running." in machine.text
    assert machine.text.count("the recording has ended; it begins again") >= 2
    # The daemon's end is the first thing that systemd has to repair.
    assert "Scheduled restart job, restart counter is at 1." in machine.text and "counter is at 2" not in machine.text
    assert "with signal SIGKILL" not in machine.text


def test_recorders_are_in_the_sandbox(machine):
    seen = re.findall(r"^kymo\r?\nNoNewPrivs:\t(\d)\r?\nSeccomp:\t(\d)\r?\nroot: (\S+)\r?$", machine.text, re.MULTILINE)
    assert len(seen) == 2 and all((new, seccomp) == ("1", "2") and root.startswith("ro") for new, seccomp, root in seen), machine.text


def test_kernel(machine, kymo, peer):
    """All calls are there: before a recorder was killed, before the daemon was killed, before the stop."""
    found = collections.Counter()
    for trace in traces(machine, "var/lib/kymo/kernel/*"):
        shown = kymo("print", trace).out
        found.update(re.findall(r' syscall_entry_getppid: .*procname = "(first|second|third)"', shown))
        assert peer("babeltrace2", trace).out.count("\n") == shown.count("\n")
    assert found == {"first": CALLS, "second": CALLS, "third": CALLS}
    chunk, = glob.glob(f"{machine.directory}/var/lib/kymo/kernel/*/archives/*.told")
    assert os.path.isdir(chunk[:-len(".told")])


def test_programs(machine, kymo):
    """Each program has all of its numbers, also one of another user."""
    found = [re.findall(r" modes:number: .*\bi = (\d+)", kymo("print", trace).out) for trace in traces(machine, "var/lib/kymo/programs/*")]
    assert found == [[str(i) for i in range(NUMBERS)]] * 7


def test_other_places(machine, kymo):
    """A profile's output outside of the sandbox, by a drop-in; a trace by a policy for users."""
    later, = traces(machine, "srv/later")
    assert {"kernel:do_sys_openat2", "sample", "sched_process_exit"} <= set(re.findall(r" ([\w:]+): \{ cpu_id", kymo("print", later).out))
    kallsyms, = glob.glob(f"{machine.directory}/srv/later/**/kallsyms", recursive=True)
    assert re.search(rb"^[0-9a-f]+ [tT] \w+$", read(kallsyms), re.MULTILINE)
    theirs, = traces(machine, "tmp/theirs/theirs")
    assert "sched_switch: " in kymo("print", theirs).out
