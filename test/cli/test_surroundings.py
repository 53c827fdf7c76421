# SPDX-License-Identifier: MIT
"""Where programs live: sandboxes, limits, full file systems, children that share memory, descriptors that
are closed and taken. They go on as without tracing, which goes on too, or says why it does not.
"""

import os
import re

import pytest

from test_user import KYMO, box, events, names, nothing_left, pytestmark  # noqa: F401

bare = pytest.mark.skipif(any(name in KYMO for name in ("-asan", "-tsan")),
                          reason="the sanitizer needs what this takes away")


@bare
@pytest.mark.parametrize("call, reasons", [
    ("memfd_create", {"the ring file or the control file cannot be created"}),
    ("ftruncate", {"the ring file or the control file cannot be created"}),
    ("fcntl", {"the ring file or the control file cannot be created"}),
    ("madvise", {"no memory"}),
    ("futex", {"no space for the ring file"}),
    ("renameat2", {"the ring file or the control file cannot be created"}),
    # Without these it does.
    ("prlimit64", {"on"}), ("getrandom", {"on"}), ("rseq", {"on"}), ("uname", {"on"}),
    ("prctl", {"on"}), ("readlinkat", {"on"}), ("unlinkat", {"on"}), ("sched_getaffinity", {"on"}),
    # Sessions are not found then; asked for, it would take part.
    ("getdents64", {"on"}), ("geteuid", {"on"}),
])
def test_refused_calls(box, call, reasons):
    """A sandbox from the start, in which a call of ours is refused: EPERM as containers, ENOSYS."""
    done = box("".join(
        f"kymo record --user 'rough:*' -o out{errno} -- $T/rough refuse {call} {errno} "
        "$T/rough once || exit 97\n" for errno in (1, 38)))
    said = done.out.split("\n")[:-1]
    assert len(said) == 2 and set(said) <= reasons
    if reasons == {"on"} and call not in ("getdents64", "geteuid"):
        for out in ("out1", "out38"):
            assert sum(names(trace) == ["rough:once"] for trace in done.traces(out)) == 1


@bare
def test_sandbox_while_traced(box):
    """Where a system call is the end, the session's end makes none."""
    done = box("""
kymo record --user 'rough:*' --buffer-size 64M -o out & recorder=$!
wait_for session_is_there
$T/rough strict >said & rough=$!
wait_for '[ -s said ] && grep -q "Seccomp:.*2" /proc/$rough/status'
kymo list --user
kymo doctor | grep -A3 programs
kill -TERM $recorder; wait $recorder || exit 97
wait $rough || exit 96
""" + nothing_left())
    assert done.out.count("it runs under seccomp") == 2
    found = names(done.traces()[0])
    assert found[0] == "rough:free" and set(found[1:]) <= {"rough:caught"}


@pytest.mark.skipif("-tsan" in KYMO, reason="ThreadSanitizer knows no children that share memory")
def test_children(box):
    """posix_spawn(), system(), clone(CLONE_VM | CLONE_VFORK), clone3(), vfork() and exec(); clone(CLONE_VM)."""
    # AddressSanitizer's stacks of its own are a thread's; here two use one.
    done = box("export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_stack_use_after_return=0\n"
               "kymo record --user 'rough:*' --context vpid,vtid -o out -- "
               "$T/rough children $T/rough once" + nothing_left())
    found = {os.path.basename(trace): events(trace) for trace in done.traces()}
    (parent,) = [lines for lines in found.values() if len(lines) > 1]
    short = [line for line in parent if "rough:step:" in line]
    assert [int(re.search(r"n = (\d)", line).group(1)) for line in short] == [0, 1, 2, 3, 4, 5]
    assert sum("rough:beside:" in line for line in parent) == 100
    # Children of clone(), clone3() and of vfork() have numbers of their own.
    for name, count in ("in_clone3", 1), ("in_vfork", 1), ("in_clone_vfork", 1), ("in_clone", 100):
        lines = [line for line in parent if f"rough:{name}:" in line]
        assert len(lines) == count and len(set(lines)) == 1
        line = lines[0]
        vpid, vtid, own = re.fullmatch(
            r"rough:\w+: \{ vpid = (\d+), vtid = (\d+) \}, \{ \w+ = (\d+) \}", line).groups()
        assert vpid == vtid == own and f"vpid = {vpid}," not in short[0]
    # What was started is a program of its own, four times.
    assert sorted(len(lines) for lines in found.values()) == [1, 1, 1, 1, len(parent)]


@bare
def test_only_the_system_calls_that_are_documented(box):
    """Any other is the program's end: at start, and where there is a session."""
    done = box("$T/rough only start $T/rough once || exit 97\n"
               "kymo record --user 'rough:*' -o out -- $T/rough only session $T/rough names || exit 96" +
               nothing_left())
    assert done.out.startswith("on\n")
    # Who put the filter there has a trace, too.
    assert sorted(name for trace in done.traces() for name in names(trace)) == \
        ["rough:names", "rough:names_too"]
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "tracing.md")) as file:
        text = " ".join(file.read().split())
    with open(os.path.join(os.path.dirname(__file__), "..", "tracer", "rough.c")) as file:
        source = file.read().split("/* the library, at start */")[1].split("};")[0]
    for part in source.split("/* with a session"):
        told = ", ".join(f"`{name}`" for name in re.findall(r"SYS_(\w+)", part))
        assert told in text, told


# $T/shop runs, and cannot make a file of this size; then two more. All have ended at the recording's end.
ENDED = """
(ulimit -f 30000; exec $T/shop 1000000 1000) & shop=$!
wait_for 'kymo list --user | grep -q shop'
kymo record --user 'shop:*' --user 'rough:*' --buffer-size 64M -o out & recorder=$!
wait_for session_is_there
(ulimit -f 30000; $T/rough once; $T/rough once; :)
kill $shop; wait $shop
wait_for '! ls /dev/shm/kymo-0/*/ | grep off-'
kill -TERM $recorder; wait $recorder || exit 97
"""


@bare
def test_reasons_of_programs_that_have_ended(box):
    """Those that started meanwhile leave a note; those that ran already have said it in shared memory."""
    done = box(ENDED + nothing_left())
    why = re.escape("its limit of file sizes (ulimit -f) is too low")
    assert len(re.findall(rf"warning: rough \(\d+\): {why}", done.err)) == 2
    assert len(re.findall(rf"warning: shop \(\d+\): {why}", done.err)) <= 1
    assert re.search(r"[23] programs could not join, or not fully: see above", done.err)
    assert "no program with matching events ran" not in done.err


@bare
def test_chroot(box):
    """No /proc, no session's directory, nobody's rights: what was joined before goes on."""
    done = box("mkdir empty; kymo record --user 'rough:*' -o out -- $T/rough chroot empty" +
               nothing_left())
    found = names(done.traces()[0])
    assert found.count("rough:enclosed") == 2000 and done.out == "on\n"


@bare
def test_chroot_before_a_session(box):
    """Who cannot open the session's directory is named, with the reason."""
    done = box("""
mkdir -p root/lib64 root/lib; cp $T/rough root/
for l in $(ldd $T/rough | grep -o '/[^ )]*'); do mkdir -p root/$(dirname $l); cp -L $l root/$l; done
libraries=$(dirname $(ldd $T/rough | grep -o '/[^ ]*libkymo-trace[^ ]*'))
LD_LIBRARY_PATH=$libraries chroot root /rough off & rough=$!
wait_for 'kymo list --user | grep -q rough'
kymo record --user 'rough:tried' -o out & recorder=$!
wait_for session_is_there
sleeps $rough 200
kill -TERM $recorder; wait $recorder || exit 97
kill $rough
""" + nothing_left())
    assert "it cannot open the session's directory (a container?): No such file" in done.err


@bare
def test_taken_descriptors(box):
    """A program closes all that it did not open, and gives the numbers to a file of its own."""
    done = box("""
$T/rough taken mine & rough=$!
wait_for 'kymo list --user | grep -q rough:taken && [ $(ls /proc/$rough/fd | wc -l) -ge 300 ]'
ls -l /proc/$rough/fd | grep -q kymo-control && exit 96
record_program $rough --user 'rough:taken' -o out
kill $rough; wait $rough
[ ! -s mine ] || exit 95
""" + nothing_left())
    assert set(names(done.traces()[0])) == {"rough:taken"}


TOLD = """
kymo record --user 'rough:*' %s -o out & recorder=$!
wait_for session_is_there
%s $T/rough off >said & rough=$!
wait_for '[ -s said ]'
cat said
kill -TERM $recorder; wait $recorder || exit 97
kill $rough
"""


@bare
@pytest.mark.parametrize("limit, said, told", [
    # A control file, but no ring: the recorder tells.
    ("prlimit --fsize=30000000", "the limit for file sizes (ulimit -f) is too low",
     "its limit of file sizes (ulimit -f) is too low"),
    ("prlimit --as=80000000", "no memory", "it has no memory"),
    # Not even that: nobody can see it, but the program knows.
    ("prlimit --fsize=100000", "the limit for file sizes (ulimit -f) is too low", None),
    ("prlimit --nofile=4", "on", None),
])
def test_limits(box, limit, said, told):
    done = box(TOLD % ("--buffer-size 64m", limit))
    assert done.out == said + "\n"
    assert told is None or re.search(rf"rough \(\d+\): {re.escape(told)}", done.err)


@bare
def test_no_space_is_told(box):
    """The session's directory is in a file system that is full."""
    done = box("mount -t tmpfs -o size=200k tmpfs /dev/shm; head -c 180k /dev/zero >/dev/shm/ballast\n"
               + TOLD % ("", "") + "rm /dev/shm/ballast" + nothing_left())
    assert done.out == "no space for the ring file\n"
    assert re.search(r"rough \(\d+\): no space for its ring buffer", done.err)


@bare
def test_space_that_ends_later(box):
    """What does not fit is lost, counted with its cause, and nobody gets SIGBUS."""
    done = box("mount -t tmpfs -o size=800k tmpfs /dev/shm\n"
               "kymo record --user 'modes:*' --buffer-size 8m -o out -- $T/modes threads 2 30000"
               + nothing_left())
    assert "no memory for the next sub-buffer" in done.err
    recorded, lost = re.search(r"Recorded (\d+) events.*; (\d+) lost", done.err).groups()
    assert int(lost) > 0 and done.traces()
    assert len([line for line in names(done.traces()[0])]) + int(lost) >= 60000
