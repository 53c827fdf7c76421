# SPDX-License-Identifier: MIT
"""Root records programs of all users: what one user does costs that user's recording, and nobody else."""

import ctypes
import os
import re
import struct
import subprocess
import sys
import time

import pytest

from test_user import KYMO, box, names, nothing_left, pytestmark  # noqa: F401

# Limits of memory, and programs that the linker preloads before a sanitizer, are those of plain programs.
unsanitized = pytest.mark.skipif(any(name in KYMO for name in ("-asan", "-tsan")), reason="of plain programs")

# A user's file system, in a user namespace: what is mounted there is called as programs' control files are.
IMPOSTOR = """
import ctypes, os, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("new"); subprocess.run(["mount", "-t", "tmpfs", "new", "new"], check=True)
open("new/memfd:kymo-control", "w").close(); os.mkdir("new/old")
subprocess.run(["mount", "--bind", sys.argv[1], "new/memfd:kymo-control"], check=True)
fd = os.open("new/memfd:kymo-control", os.O_PATH)
os.chdir("new")
assert libc.syscall(155, b".", b"old") == 0, os.strerror(ctypes.get_errno())
os.chdir("/"); libc.umount2(b"/old", 2)
sys.stdout.write("ready\\n"); sys.stdout.flush()
time.sleep(1000)
"""


class Opens:
    """Who opens @path (other than by O_PATH) is counted."""

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self.fd >= 0 and self.libc.inotify_add_watch(self.fd, path.encode(), 0x20) >= 0

    def count(self):
        try:
            return len(os.read(self.fd, 4096)) // struct.calcsize("iIII")
        except BlockingIOError:
            return 0


@pytest.fixture
def impostor(tmp_path):
    """Processes of user 1234 that have a file open whose name is that of a control file."""
    running = []

    def start(path):
        home = tmp_path / f"home-{len(running)}"
        home.mkdir()
        os.chown(home, 1234, 1234)
        for part in (home, *home.parents):
            os.chmod(part, os.stat(part).st_mode | 0o111)
        in_namespace = ["setpriv", "--reuid=1234", "--regid=1234", "--clear-groups", "unshare", "-U", "-r", "-m"]
        tried = subprocess.run([*in_namespace, "true"], capture_output=True, text=True)
        if tried.returncode:
            pytest.skip(f"this kernel lets users have no user namespaces: {tried.stderr.strip()}")
        process = subprocess.Popen([*in_namespace, sys.executable, "-c", IMPOSTOR, path], cwd=home,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        # Any other failure is one of the test: it must not pass for a machine without namespaces.
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        assert any(os.readlink(f"/proc/{process.pid}/fd/{fd}").startswith("/memfd:kymo-control")
                   for fd in os.listdir(f"/proc/{process.pid}/fd"))

    yield start
    for process in running:
        process.kill()
        process.wait()


def test_only_control_files_are_opened(impostor, tmp_path):
    """A file of root's, and one that is a device: neither is opened, whatever it is called."""
    secret = tmp_path / "secret"
    secret.write_text("root's own")
    secret.chmod(0o600)
    watched = [Opens(str(secret)), Opens("/dev/full")]
    for path in (str(secret), "/dev/full"):
        impostor(path)
    for opens in watched:
        opens.count()
    subprocess.run([KYMO, "list", "--user"], check=True, capture_output=True)
    assert [opens.count() for opens in watched] == [0, 0]
    # An open would have been seen.
    for path in (str(secret), "/dev/full"):
        os.close(os.open(path, os.O_RDONLY))
    assert all(opens.count() for opens in watched)


@pytest.mark.parametrize("takes", ["mkdir -m 777", "touch", "ln -s /nowhere"])
def test_names_in_memory_that_another_user_has_taken(box, takes):
    """Where /run is no memory, anybody can make /dev/shm/kymo-0 before root does; also another user's."""
    done = box(f"""
mkdir run; mount --bind run /run; mkdir -p /run/user
for name in kymo-0 kymo-recordings-0 kymo-4321; do
    setpriv --reuid=1234 --clear-groups {takes} /dev/shm/$name || exit 96
done
cp -r $T/shop $(dirname $T)/../src/tracer/*.so* .; chmod -R a+rX . ..
kymo record --user 'shop:depth' -o out & recorder=$!
wait_for 'ls /run/kymo/u0/*/session >/dev/null 2>&1'
wait_for 'kymo sessions | grep -q "$recorder.*/out"'
setpriv --reuid=4321 --clear-groups env LD_LIBRARY_PATH=. ./shop 2000 1000 & shop=$!
wait_for 'ls /run/kymo/u4321/*/$shop-*.ring >/dev/null 2>&1'
[ $(stat -f -c %T -L /run/kymo/u4321/*/) = tmpfs ] || exit 95
LD_LIBRARY_PATH=. ./shop 5
kill $shop; kill -TERM $recorder; wait $recorder || exit 97
""" + nothing_left("ls -A /dev/shm | grep -v '^kymo-\\(\\|recordings-\\)[0-9]*$'; "
                   "find /run/kymo -mindepth 1"))
    sizes = sorted(len(names(trace)) for trace in done.traces())
    assert len(sizes) == 2 and 5 in sizes and all(sizes)


LEFT = """
cp -r $T/rough $(dirname $T)/../src/tracer/*.so* .; chmod -R a+rX . ..; mkdir -m 777 counts
run() { setpriv --reuid=$1 --clear-groups env LD_LIBRARY_PATH=. ./rough told counts/$1 "$2"; }
for uid in 1234 4321; do run $uid 1000000000 & programs="${programs-} $!"; done
"""


def test_what_a_killed_recorder_left_for_other_users(box):
    """The next recorder removes what is empty and tells of the rest; kymo recover finds it."""
    done = box(LEFT + """
for n in 1 2 3; do
    kymo record --user 'rough:*' -o out.$n & recorder=$!
    wait_for 'session_is_there 1234 && session_is_there 4321'
    for uid in 1234 4321; do
        wait_for "[ \\$(ls /dev/shm/kymo-$uid/*/*-rough.ring 2>/dev/null | wc -l) -ge $n ]"
    done
    kill -9 $recorder; wait $recorder
    told_more counts/1234 1000; told_more counts/4321 1000
done
kill -9 $programs
kymo doctor >doctor.txt; cat doctor.txt
# Root's own: no event; other users': what these programs wrote after the recorders' ends.
kymo record --user 'other:*' -o other -- true 2>told.txt; cat told.txt >&2
ls -d /dev/shm/kymo-*/*/ | cut -d/ -f 4 | uniq -c
as() { setpriv --reuid=$1 --clear-groups "${@:2}"; }
mkdir -m 777 found.4321; as 4321 kymo recover -o found.4321 >own.txt || exit 97
kymo recover --remove -o found >all.txt || exit 96
kymo recover -o never; [ $? = 1 ] || exit 95
cat own.txt all.txt
kymo record --user 'other:*' -o last -- true
""" + nothing_left())
    assert re.search(r"warning: 6 ring buffers \(.* MiB\) of recorders that were killed; "
                     r"kymo recover makes traces of them", done.err)
    told = " ".join(done.out.split())
    assert re.search(r"6 ring buffers \(\S+ MiB\) of killed recorders, in \S+ and 5 more "
                     r"kymo recover --remove -o DIR ", told)
    assert re.search(r"\b3 kymo-1234\n\s+3 kymo-4321\n", done.out) and " kymo-0\n" not in done.out
    assert "3 ring files:" in done.out and "6 ring files:" in done.out
    assert len(done.traces("found.4321")) == 3 and len(done.traces("found")) == 6
    for trace in done.traces("found"):
        assert set(names(trace)) == {"rough:told"}
    assert "no ring file of a killed recorder found" in done.err


def test_a_user_cannot_have_root_remove_files(box):
    """What a user puts beside the sessions for him costs him his own files, at most."""
    done = box("""
mkdir -m 755 precious; echo text >precious/file; chmod 755 . ..
touch -d 2020-01-01 precious; there=$PWD/precious
as() { setpriv --reuid=1234 --clear-groups "$@"; }
as mkdir -m 700 /dev/shm/kymo-1234
cd /dev/shm/kymo-1234
as ln -s $there link; as ln -s $there 1-0123456789abcdef; as ln -s $there .1-0123456789abcdef
# A dead recorder's, by its looks, whose cookie is that of one that lives; and links in it.
as mkdir -m 700 2-0123456789abcdef
as ln -s $there/file 2-0123456789abcdef/1-a-b.ring; as ln -s $there/file 2-0123456789abcdef/else
as ln -s $there 2-0123456789abcdef/directory
as mkfifo 2-0123456789abcdef/1-a-c.ring
cd - >/dev/null
as sleep 1000 & sleeper=$!
kymo record --user 'rough:*' -o first & first=$!
wait_for 'session_is_there 1234 && session_is_there'
as cp /dev/shm/kymo-1234/$first-*/session /dev/shm/kymo-1234/2-0123456789abcdef/session
$T/rough told count 1000000000 & rough=$!
wait_for 'ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1'
kymo record --user 'other:*' -o other -- true
as cp -r /dev/shm/kymo-1234/$first-*/session /dev/shm/kymo-1234/copy
timeout 60 kymo recover --remove -o found
timeout 60 kymo recover --remove -o found /dev/shm/kymo-1234
[ "$(cat precious/file)" = text ] || exit 98
told_more count 1000
kill -TERM $first; wait $first || exit 97
kill $rough $sleeper
""")
    (trace,) = done.traces("first")
    # The program had to go on after the second recorder had looked around.
    assert len(names(trace)) > 1000


# Root's program has 200 events, one now and then, while another user's puts ring files beside its own.
FORGED = """
FORGE=%s/forge_rings.py
as() { setpriv --reuid=1234 --clear-groups "$@"; }
cp -r $T/shop $T/modes $(dirname $T)/../src/tracer/*.so* .; chmod -R a+rX . ..; chmod 755 *
as sleep 1000 & others=$!
%s kymo record --user 'shop:*' --user 'modes:*' -o out 2>told.txt & recorder=$!
wait_for 'session_is_there && session_is_there 1234'
as env LD_LIBRARY_PATH=. ./modes numbers 1000000000 20000 & others="$others $!"
wait_for 'ls /dev/shm/kymo-1234/*/*.ring >/dev/null 2>&1'
$T/shop 200 10000 & shop=$!
here=$PWD; cd /dev/shm/kymo-1234/*/
as /usr/bin/python3 - %s %d <$FORGE >$here/forged & forge=$!
cd $here
wait_for 'grep -q told forged || ! kill -0 $forge'
grep -q told forged || exit 95
wait $shop
# One that comes after all that.
$T/modes steps 100
grep VmHWM /proc/$recorder/status
kill -TERM $recorder; wait $recorder || exit 97
kill $others $forge; cat told.txt >&2
du -s --apparent-size -k out | cut -f 1
"""


def printed(trace):
    return subprocess.run([KYMO, "print", trace], capture_output=True, text=True, check=True).stdout


def forged(box, kind, count, prefix=""):
    """The done box; another user's programs do not affect root's: the events of root's programs are complete."""
    done = box(FORGED % (os.path.dirname(os.path.abspath(__file__)), prefix, kind, count) +
               nothing_left())
    # The copies have tens of thousands of descriptions: babeltrace2 reads only the traces that matter.
    found = [trace for trace in done.traces() if re.match(r"(shop|modes)-", os.path.basename(trace)) and
             re.search(r" (shop:order_placed|modes:step): ", printed(trace))]
    done.whole = [of_one for of_one in map(names, found) if of_one.count("shop:order_placed") == 200 or
                  of_one.count("modes:step") == 101]
    assert len(done.whole) == 2
    return done


def test_more_rings_of_one_name_than_numbers(box):
    """998 traces of one program's name and time had names; the next one ended everybody's recording."""
    done = forged(box, "same", 1100)
    assert len([trace for trace in done.traces() if "modes-" in trace]) > 1100
    assert "not read" not in done.err


def test_more_rings_than_descriptors(box):
    """One user gets no more than there is for one."""
    done = forged(box, "held", 100, "prlimit --nofile=300")
    assert done.err.count("too many programs at a time for the limit of open files") == 50
    assert "more ring files are not read" in done.err


@unsanitized
@pytest.mark.parametrize("kind, kib, told", [
    ("labels", 20000, "too many descriptions of events"),
    ("plain", 400000, "too many descriptions of events"),
    ("growing", 400000, ""),
])
def test_descriptions_that_are_too_much(box, kind, kib, told):
    """80 MiB of them; what is made of them is bounded, in time, too: growing ones are not written over and over."""
    done = forged(box, kind, 80)
    hwm, size = (int(re.search(pattern, done.out, re.MULTILINE).group(1))
                 for pattern in (r"VmHWM:\s+(\d+)", r"^(\d+)$"))
    assert told in done.err
    assert size < kib and hwm < 400000, (size, hwm)


def test_summary_of_a_recording_that_filled_the_disk(box):
    """The summary counts the events of programs until then; it once had 0 B and no event."""
    done = box("""
mkdir small; mount -t tmpfs -o size=1m tmpfs small
$T/modes numbers 1000000000 10 & first=$!
$T/modes numbers 1000000000 10 & second=$!
kymo record --user 'modes:number' -o small/out & recorder=$!
wait_for '! kill -0 $recorder 2>/dev/null'
wait $recorder; [ $? = 1 ] || exit 97
kill $first $second
for trace in small/out/ust/pid/*; do kymo print $trace | grep -c modes:number; done
du -sb small/out/ust/pid | cut -f 1
""")
    assert "disk is full" in done.err, done.err
    rows = [(int(row[0]), row[1] + row[2]) for row in re.findall(
        r"^ +\d+ +(\d+) +\d+ +(\S+) (\S*B) +modes$", done.err, re.MULTILINE)]
    *kept, n_bytes = map(int, done.out.split())
    assert len(rows) == 2 and all(events > 1000 and size != "0B" for events, size in rows), done.err
    assert sorted(kept) == sorted(events for events, size in rows) and n_bytes > 1 << 19


@unsanitized
def test_a_file_that_hangs_whoever_opens_it(box):
    """A user's program has a library on a file system that answers no more. That holds up nobody else's programs."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("needs /dev/fuse")
    done = box(f"""
as() {{ setpriv --reuid=$1 --clear-groups env LD_LIBRARY_PATH=. "${{@:2}}"; }}
cp $T/shop $T/modes $T/plugin.so $(dirname $T)/../src/tracer/*.so* .; chmod -R a+rX . ..; mkdir hang
/usr/bin/python3 {os.path.dirname(os.path.abspath(__file__))}/silent_files.py hang plugin.so stop & server=$!
wait_for '[ -e hang/file ]'
setpriv --reuid=1234 --clear-groups env LD_LIBRARY_PATH=. \\
    LD_PRELOAD=./hang/file ./modes numbers 1000000000 1000 & hung=$!
wait_for "grep -q hang/file /proc/$hung/maps"
sleeps $hung 10
touch stop
kymo record --user 'shop:*' --user 'modes:*' -o out 2>told.txt & recorder=$!
wait_for 'ls /dev/shm/kymo-1234/*/*.ring >/dev/null 2>&1'
$T/shop 200 1000
# A user without processes before the hang.
setpriv --reuid=4321 --clear-groups sleep 1000 & sleeper=$!
wait_for 'session_is_there 4321'
as 4321 ./shop 200 1000
kill $sleeper; kill -TERM $recorder
wait_for 'grep -q Recorded told.txt'
# Threads that wait for that file system go on now, if only to their end.
kill -9 $server
wait $recorder || exit 97
kill -9 $hung; cat told.txt >&2
""" + nothing_left())
    assert "programs of user 1234 take too long" in done.err
    whole = [trace for trace in done.traces() if names(trace).count("shop:order_placed") == 200]
    assert len(whole) == 2


def test_users_cannot_fill_run(box):
    """What they write into a session's directory of root's recording lies where they may write anyway."""
    done = box("""
mount -t tmpfs -o size=8m,mode=755 tmpfs /run; mkdir /run/user
as() { setpriv --reuid=1234 --clear-groups env LD_LIBRARY_PATH=. "$@"; }
cp $T/shop $(dirname $T)/../src/tracer/*.so* .; chmod -R a+rX . ..
setpriv --reuid=1234 --clear-groups sleep 1000 & sleeper=$!
kymo record --user 'shop:*' -o out & recorder=$!
wait_for 'ls /run/kymo/u1234/*/session >/dev/null 2>&1'
as sh -c 'cd /run/kymo/u1234/*/ && head -c 20M /dev/zero >fill' || exit 96
[ $(df --output=used /run | tail -n 1) -lt 100 ] || exit 95
as ./shop 10
$T/shop 20
setpriv --reuid=1234 --clear-groups env LD_LIBRARY_PATH=. ./shop 1000000 1000 & shop=$!
wait_for 'ls /run/kymo/u1234/*/$shop-*.ring >/dev/null 2>&1'
kill -9 $recorder; wait $recorder
sleeps $shop 20; kill -9 $shop $sleeper
# Its own user finds what was left, too; and the next recorder takes the link away.
mkdir -m 777 found; as kymo recover -o found/theirs || exit 94
kymo recover --remove -o found/roots || exit 93
kymo record --user 'other:*' -o last -- true
""" + nothing_left("ls -A /dev/shm; find /run/kymo ! -type d"))
    for out in ("found/theirs", "found/roots"):
        (trace,) = done.traces(out)
        assert "shop:order_placed" in names(trace)
    counts = [names(trace).count("shop:order_placed") for trace in done.traces()]
    assert 10 in counts and 20 in counts


AS = """
as() { local uid=$1; shift; setpriv --reuid=$uid --clear-groups env LD_LIBRARY_PATH=. "$@"; }
cp $T/shop $T/modes $T/plugin.so $(dirname $T)/../src/tracer/*.so.? .; chmod -R a+rX . ..
"""


@unsanitized
def test_files_that_hang_a_snapshot(box):
    """A library of user 1234 answers nothing any more: the snapshot has root's programs, and the recorder ends."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("needs /dev/fuse")
    here = os.path.dirname(os.path.abspath(__file__))
    done = box(AS + f"""
mkdir hang
/usr/bin/python3 {here}/silent_files.py hang plugin.so stop & server=$!
wait_for '[ -e hang/file ]'
setpriv --reuid=1234 --clear-groups env LD_LIBRARY_PATH=. LD_PRELOAD=./hang/file ./modes numbers 1000000000 1000 & hung=$!
wait_for "grep -q hang/file /proc/$hung/maps"
$T/modes numbers 1000000000 1000 & own=$!
kymo record --overwrite --user 'modes:*' -o out 2>told.txt & recorder=$!
wait_for '[ $(kymo sessions | grep -c " for ") = 1 ]'
wait_for 'ls /dev/shm/kymo-1234/*/*.ring >/dev/null 2>&1'
sleeps $own 200
touch stop
kymo snapshot -o snap || exit 96
kill -TERM $recorder
wait_for 'grep -q Recorded told.txt'
# Threads that wait for that file system go on now, if only to their end.
kill -9 $server
wait $recorder || exit 97
kill -9 $hung $own; cat told.txt >&2
""")
    assert "not in this snapshot" in done.err
    assert all(names(trace).count("modes:number") > 50 for trace in done.traces("snap"))
    assert len(done.traces("snap")) >= 1


def test_programs_that_ended_push_out_their_users_own(box):
    """More programs of user 1234 end than a flight recorder keeps: root's stays."""
    done = box(AS + """
as 1234 sleep 1000 & sleeper=$!
kymo record --overwrite --user 'shop:*' -o out & recorder=$!
wait_for 'session_is_there 1234'
$T/shop 20
as 1234 bash -c 'for i in $(seq 1010); do ./shop 1 >/dev/null; done'
kill -TERM $recorder
wait $recorder || exit 97
kill $sleeper
""")
    assert re.search(r"buffers of \d+ ended programs? were dropped", done.err), done.err
    assert [trace for trace in done.traces() if names(trace).count("shop:order_placed") == 20]


def test_a_directory_that_takes_no_new_rules(box):
    """User 1234 can only keep the own programs from a change of the rules."""
    done = box(AS + """
as 1234 sleep 1000 & s1=$!
as 4321 sleep 1000 & s2=$!
kymo record --user 'none:*' -o out & recorder=$!
wait_for 'session_is_there 1234'; wait_for 'session_is_there 4321'
as 1234 bash -c 'for d in /dev/shm/kymo-1234/*-*; do rm -f $d/session; mkdir $d/session $d/.session; touch $d/session/x; done'
kymo ctl -e 'shop:*' || exit 96
as 4321 ./shop 20
$T/shop 30
as 1234 ./shop 40
kill -TERM $recorder
wait $recorder || exit 97
kill $s1 $s2
""")
    assert "programs of user 1234 keep the rules that they have: " in done.err
    counts = sorted(names(trace).count("shop:order_placed") for trace in done.traces())
    assert 20 in counts and 30 in counts


def test_a_directory_that_is_taken_away(box):
    """User 1234 renames the session's directory before programs find it: root's programs are recorded all the same."""
    done = box(AS + """
as 1234 sleep 1000 & s1=$!
as 1234 /usr/bin/python3 -c '
import os
while True:
    try:
        for name in os.listdir("/dev/shm/kymo-1234"):
            if name[0] == ".":
                os.rename("/dev/shm/kymo-1234/" + name, "/dev/shm/kymo-1234/x")
    except OSError:
        pass
' & mover=$!
for i in 1 2 3 4 5; do
	kymo record --user 'shop:*' -o out$i -- $T/shop 20 || exit 97
	rm -rf /dev/shm/kymo-1234/x
done
kill $s1 $mover
""")
    assert all([names(trace).count("shop:order_placed") for trace in done.traces(f"out{i}")] == [20]
               for i in range(1, 6))
