# SPDX-License-Identifier: MIT
"""kymo record --shm-path: rings in files of a file system that outlives programs, recorders and reboots.

A reboot is a /dev/shm that is empty from one moment to the next, with everybody gone.
"""

import glob
import os
import re
import struct
import subprocess

import pytest

from test_user import KYMO, box, events, nothing_left, pytestmark  # noqa: F401 (a fixture)

PLACE = """
session_in_place() { ls rings/*/session >/dev/null 2>&1; }
reboot() { umount -l /dev/shm; mount -t tmpfs tmpfs /dev/shm; }
"""


def numbers(out):
    """Of rough:told in all traces of the directory; the one whose recorder was killed may end anyhow."""
    shown = subprocess.run([KYMO, "print", "--recover", out], capture_output=True, text=True)
    return [int(n) for n in re.findall(r"rough:told: .*\bi = (\d+)", shown.stdout)]


def test_traces_are_as_always(box):
    done = box(PLACE + """
kymo record --user 'shop:*' --shm-path rings -o out -- $T/shop 2
ls -A rings >left.txt; [ ! -s left.txt ] || exit 96
[ $(stat -c %a rings) = 711 ] || exit 95
""" + nothing_left())
    assert sum(line.startswith("shop:order_placed") for line in events(done.traces()[0])) == 2
    assert "; 0 lost" in done.err


def test_everything_committed_survives(box):
    """Recorder and program are killed, and /dev/shm is lost: each event that there was is there."""
    done = box(PLACE + """
kymo record --user 'rough:*' --shm-path rings -o out & recorder=$!
wait_for session_is_there
$T/rough told count 100000 & program=$!
wait_for 'told count 20000'
kill -9 $recorder; wait $recorder
wait_for 'told count 60000'
kill -9 $program; wait $program
reboot
kymo record --user 'rough:*' --shm-path rings -o other -- true
kymo recover -o found rings || exit 97
kymo recover -o again rings/* || exit 96
kymo recover --remove -o removed rings || exit 95
ls -A rings >left.txt; [ ! -s left.txt ] || exit 94
""" + nothing_left())
    with open(os.path.join(done.cwd, "count"), "rb") as file:
        told = struct.unpack("=Q", file.read())[0]
    found = numbers(os.path.join(done.cwd, "found"))
    assert found == sorted(set(found))
    # What the killed recorder had written last, it may not have handed back any more.
    everything = set(numbers(os.path.join(done.cwd, "out"))) | set(found)
    assert told >= 60000 and len(everything) in (told, told + 1)
    assert everything == set(range(len(everything)))
    assert re.search(r"1 ring buffer of a recorder that was killed; 'kymo recover \S+/rings/\d+-", done.err)
    assert "; complete" in done.out and f"{len(found)} events recovered, 0 lost" in done.out
    for other in "again", "removed":
        assert numbers(os.path.join(done.cwd, other)) == found


def test_black_box(box):
    """A flight recorder of which nothing is left but its files."""
    done = box(PLACE + """
kymo record --overwrite --user 'modes:number' --buffer-size 64k --shm-path rings -o out & recorder=$!
wait_for session_is_there
taskset -c $CPU $T/modes numbers 100000 0
kill -9 $recorder; wait $recorder
reboot
kymo recover --remove -o found rings || exit 97
""" + nothing_left())
    found = [int(re.search(r"\bn? ?i = (\d+)|= (\d+) }", line).group(1) or 0)
             for line in events(done.traces("found")[0])]
    assert found[-1] == 99999 and found == list(range(found[0], 100000)) and len(found) > 1000


def test_programs_that_run_already_and_change(box):
    done = box(PLACE + """
$T/shop 1000000 1000 & shop=$!
wait_for 'kymo list --user | grep -q shop'
kymo record --user 'shop:depth' --shm-path rings -o out & recorder=$!
wait_for 'ls rings/*/*.ring >/dev/null 2>&1'
readlink /dev/shm/kymo-0/* >link.txt
kymo recover -o never rings && exit 96
kymo ctl out --enable-event 'shop:order_placed'
wait_for 'grep -q order_placed rings/*/*.ring'
sleeps $shop 5
kill -TERM $recorder; wait $recorder || exit 95
kill $shop
""" + nothing_left())
    assert {line.split(":")[1].split()[0] for line in events(done.traces()[0])} == \
        {"depth", "order_placed"}
    with open(os.path.join(done.cwd, "link.txt")) as file:
        assert os.path.dirname(file.read()) == os.path.join(os.path.realpath(done.cwd), "rings")
    assert "is skipped: its recorder still runs" in done.err


def test_of_other_users(box):
    """Their programs create files in a directory of their own in there; where they get there at all."""
    done = box(PLACE + """
D=$(mktemp -d /tmp/kymo-shm-path.XXXXXX); chmod 755 $D
trap 'rm -r --one-file-system $D' EXIT
mkdir $D/bin; cp -r $T/shop $(which kymo) $(dirname $T)/../src/tracer/*.so* $D/bin
setpriv --reuid 1234 --clear-groups sleep 600 & sleeper=$!
kymo record --user 'shop:started' --shm-path $D/open -o open & recorder=$!
wait_for 'session_is_there 1234'
stat -c '%u %a' $D/open/* | sort >owners.txt
setpriv --reuid 1234 --clear-groups env LD_LIBRARY_PATH=$D/bin $D/bin/shop 2
kill -TERM $recorder; wait $recorder || exit 95
mkdir -m 700 $D/shut
kymo record --user 'shop:started' --shm-path $D/shut/in -o shut -- true
ls $D $D/shut/in
mkdir $D/mine; chown 1234 $D/mine; cd $D/mine
setpriv --reuid 1234 --clear-groups $D/bin/kymo record --user 'shop:*' --shm-path $D/own -o never -- true && exit 94
kill $sleeper
""" + nothing_left())
    assert len(done.traces("open")) == 1 and len(events(done.traces("open")[0])) == 2
    with open(os.path.join(done.cwd, "owners.txt")) as file:
        assert {"0 700", "1234 700"} <= set(file.read().splitlines())
    assert re.search(r"programs of user 1234 are left out: \S+/shut/in: "
                     r"programs of user 1234 have no permission there", done.err)
    assert "own: cannot create the directory for ring buffers: Permission denied" in done.err


REFUSED = {
    "a file": ("touch bad", "bad", "not a directory"),
    "no parent": ("", "no/such", "cannot create the directory for ring buffers: No such file"),
    "for all": ("mkdir bad; chmod 777 bad", "bad", "other users can write there"),
    "for the group": ("mkdir bad; chmod 770 bad", "bad", "other users can write there"),
    "above": ("mkdir up; chmod 777 up; mkdir up/bad", "up/bad", "up: other users can write there"),
    "somebody's": ("mkdir bad; chown 1234 bad", "bad", "it belongs to user 1234"),
    "a link": ("mkdir up; chown 1234 up; mkdir up/bad; ln -s up/bad link", "link", "up: it belongs to"),
    "too long": ("d=$(printf %0190d 7); mkdir $d; mv $d bad; ln -s bad x; mv bad $d; rm x",
                 "$d", "too long a path: programs take up to 191 bytes"),
    "read only": ("mkdir bad; mount -t tmpfs -o ro tmpfs bad; chmod 755 bad", "bad",
                  "cannot create files there: Read-only file system"),
    "nothing": ("", "''", "cannot create the directory for ring buffers"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_places(box, what):
    prepare, place, expected = REFUSED[what]
    done = box(f"""
umask 022
{prepare}
kymo record --user 'shop:*' --shm-path {place} -o out -- true; code=$?
[ $code = 1 ] || exit 96
[ ! -e out ] || exit 95
""" + nothing_left())
    assert expected in done.err and len(done.err.splitlines()) <= 2


def test_it_is_about_programs(kymo, tmp_path):
    result = kymo("record", "--shm-path", tmp_path, "-o", tmp_path / "out", code=2)
    assert "--shm-path is for programs" in result.err


def test_after_a_restart_nothing_is_called_complete(box):
    """What the kernel had not yet written to disk when the machine went down is missing, unseen."""
    done = box(PLACE + """
starts_anew() { echo $1 >boot_id; mount --bind boot_id /proc/sys/kernel/random/boot_id; }
kymo record --user 'shop:started' --shm-path rings -o out & recorder=$!
wait_for session_is_there
$T/shop 3 1000000 & program=$!
wait_for 'ls rings/*/*.ring >/dev/null 2>&1'
kill -9 $recorder $program; wait
reboot
kymo recover -o same rings || exit 97
starts_anew c0ffee00-cafe-4ace-8bed-c0de5eafb00c
kymo recover -o anew rings || exit 96
starts_anew unknown
kymo recover -o clock rings || exit 95
""" + nothing_left())
    said = [line for line in done.out.splitlines() if " -> " in line]
    assert ["; complete" in line for line in said] == [True, False, True]
    assert ["; the machine has rebooted since" in line for line in said] == [False, True, False]
